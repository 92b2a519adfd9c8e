//! Writes, replaces and removes single files and links below a root.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::swap::{over, to_free_name};
use super::write::{New, Permissions, finish, write_file};
use super::{FileKind, FileMode, Root, failure};

/// Returns the target of a link.
pub fn read_link(root: &Root, path: &Path) -> io::Result<Vec<u8>> {
    let read = || {
        let (folder, name) = root.parent(path)?;
        rustix::fs::readlinkat(&folder, name, Vec::new())
    };
    let target = read().map_err(|errno| root.fail("read", path, errno))?;
    Ok(target.into_bytes())
}

/// Replaces a file or link by a new file, which gets default permissions. A link is replaced
/// itself, not followed. Fails if there is neither.
pub fn exchange(root: &Root, path: &Path, bytes: &[u8], mode: FileMode) -> io::Result<()> {
    is_leaf(root, path)?;
    let (folder, name) = root.parent(path).map_err(|e| root.fail("write", path, e))?;
    let temporary = Root::temporary_name();
    let new = New {
        bytes,
        permissions: Permissions::New(mode),
        durable: false,
    };
    write_file(&folder, &temporary, new).map_err(|e| failure("write", path, e))?;
    finish(&folder, &temporary, name, over).map_err(|e| root.fail("write", path, e))
}

/// Creates a link and its parent directories. With `replaces`, replaces a file or link and fails if
/// there is neither. Otherwise fails with `AlreadyExists` if the path exists.
pub fn put_link(root: &Root, path: &Path, target: &[u8], replaces: bool) -> io::Result<()> {
    if replaces {
        is_leaf(root, path)?;
    }

    let (folder, name) = root
        .make_parent(path)
        .map_err(|e| root.fail("create", path, e))?;
    let temporary = Root::temporary_name();
    rustix::fs::symlinkat(std::ffi::OsStr::from_bytes(target), &folder, &temporary)
        .map_err(|e| root.fail("create", path, e))?;
    let rename = if replaces { over } else { to_free_name };
    finish(&folder, &temporary, name, rename).map_err(|e| root.fail("create", path, e))
}

/// Removes a file or link. Fails if there is neither.
pub fn remove_file(root: &Root, path: &Path) -> io::Result<()> {
    is_leaf(root, path)?;
    let removed = root
        .parent(path)
        .and_then(|(folder, name)| rustix::fs::unlinkat(folder, name, AtFlags::empty()));
    removed.map_err(|errno| root.fail("remove", path, errno))
}

/// Removes the parent directories of `path` that are empty, innermost first.
pub fn remove_empty_above(root: &Root, path: &Path) -> io::Result<()> {
    for folder in path.ancestors().skip(1) {
        if folder.as_os_str().is_empty() {
            break;
        }
        let removed = root
            .parent(folder)
            .and_then(|(above, name)| rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR));
        match removed {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => break,
            Err(errno) => return Err(root.fail("remove", folder, errno)),
        }
    }
    Ok(())
}

fn is_leaf(root: &Root, path: &Path) -> io::Result<()> {
    match root.kind(path)? {
        Some(FileKind::File(_) | FileKind::Link) => Ok(()),
        _ => {
            let words = io::Error::new(
                io::ErrorKind::InvalidInput,
                "there is neither a file nor a link",
            );
            Err(failure("write", path, words))
        }
    }
}
