//! Writes, replaces and removes single files and links below a root.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::swap::{rename_over, rename_to_free_name};
use super::write::{NewContents, Permissions, rename_temporary, write_file};
use super::{FileKind, FileMode, Root, failure};

/// Returns the target of a link.
pub fn read_link(root: &Root, path: &Path) -> io::Result<Vec<u8>> {
    let read = || {
        let (dir, name) = root.parent(path)?;
        rustix::fs::readlinkat(&dir, name, Vec::new())
    };
    let target = read().map_err(|errno| root.fail("read", path, errno))?;
    Ok(target.into_bytes())
}

/// Replaces a file or link by a new file, which gets default permissions. A link is replaced
/// itself, not followed. Fails if there is neither.
pub fn replace_entry(root: &Root, path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<()> {
    require_leaf(root, path)?;
    let (dir, name) = root.parent(path).map_err(|e| root.fail("write", path, e))?;
    let temporary = Root::temporary_name();
    let new = NewContents {
        bytes,
        permissions: Permissions::New(mode),
        durable: false,
    };
    write_file(&dir, &temporary, new).map_err(|e| failure("write", path, e))?;
    rename_temporary(&dir, &temporary, name, rename_over).map_err(|e| root.fail("write", path, e))
}

/// Creates a link and its parent directories. With `replaces`, replaces a file or link and fails if
/// there is neither. Otherwise fails with `AlreadyExists` if the path exists.
pub fn write_link(root: &Root, path: &Path, target: &[u8], replaces: bool) -> io::Result<()> {
    if replaces {
        require_leaf(root, path)?;
    }

    let (dir, name) = root
        .make_parent(path)
        .map_err(|e| root.fail("create", path, e))?;
    let temporary = Root::temporary_name();
    rustix::fs::symlinkat(std::ffi::OsStr::from_bytes(target), &dir, &temporary)
        .map_err(|e| root.fail("create", path, e))?;
    let rename = if replaces {
        rename_over
    } else {
        rename_to_free_name
    };
    rename_temporary(&dir, &temporary, name, rename).map_err(|e| root.fail("create", path, e))
}

/// Removes a file or link. Fails if there is neither.
pub fn remove_file(root: &Root, path: &Path) -> io::Result<()> {
    require_leaf(root, path)?;
    let removed = root
        .parent(path)
        .and_then(|(dir, name)| rustix::fs::unlinkat(dir, name, AtFlags::empty()));
    removed.map_err(|errno| root.fail("remove", path, errno))
}

/// Removes the parent directories of `path` that are empty, innermost first.
pub fn remove_empty_above(root: &Root, path: &Path) -> io::Result<()> {
    for dir in path.ancestors().skip(1) {
        if dir.as_os_str().is_empty() {
            break;
        }
        let removed = root
            .parent(dir)
            .and_then(|(above, name)| rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR));
        match removed {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => break,
            Err(errno) => return Err(root.fail("remove", dir, errno)),
        }
    }
    Ok(())
}

fn require_leaf(root: &Root, path: &Path) -> io::Result<()> {
    match root.kind(path)? {
        Some(FileKind::File(_) | FileKind::Link) => Ok(()),
        _ => {
            let error = io::Error::new(
                io::ErrorKind::InvalidInput,
                "there is neither a file nor a link",
            );
            Err(failure("write", path, error))
        }
    }
}
