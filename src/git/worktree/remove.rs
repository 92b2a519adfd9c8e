//! Removing what is in the way in a worktree of ours.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;

/// Removes a file, link or folder, if it is there; folders that may not be written to as well.
pub(super) fn remove_any(path: &Path) -> anyhow::Result<()> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path).or_else(|error| {
            if error.kind() != ErrorKind::PermissionDenied {
                return Err(error);
            }
            make_writable(path)?;
            std::fs::remove_dir_all(path)
        }),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove `{}`", path.display()))
        }
        _ => Ok(()),
    }
}

/// Makes a folder and all folders below it writable, as package managers leave them not to be.
fn make_writable(folder: &Path) -> std::io::Result<()> {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}

/// Returns whether something is neither a file nor a link nor a folder.
pub(super) fn is_special(kind: rustix::fs::FileType) -> bool {
    !(kind.is_file() || kind.is_symlink() || kind.is_dir())
}

/// Returns the folder that a path is in, unless it is the top.
pub(super) fn parent(path: &[u8]) -> Option<&[u8]> {
    path.iter()
        .rposition(|&byte| byte == b'/')
        .map(|at| &path[..at])
}
