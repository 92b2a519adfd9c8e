//! Putting, exchanging and removing a single name below a root, whatever kind it has.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::swap::{over, to_free_name};
use super::write::{New, Permissions, finish, write_file};
use super::{FileKind, FileMode, Root, failure};

/// Returns the target of a link, as its bytes.
///
/// # Errors
/// There is no link at the path.
pub fn read_link(root: &Root, path: &Path) -> io::Result<Vec<u8>> {
    let read = || {
        let (folder, name) = root.parent(path)?;
        rustix::fs::readlinkat(&folder, name, Vec::new())
    };
    let target = read().map_err(|errno| root.fail("read", path, errno))?;
    Ok(target.into_bytes())
}

/// Puts a file in the place of a file or a link; a link is not followed. Its permissions are
/// those of a new file.
///
/// # Errors
/// There is neither a file nor a link at the path.
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

/// Makes a link, and the folders above it; in the place of a file or a link if that is said,
/// else where nothing is.
///
/// # Errors
/// `AlreadyExists` where something is in the way, or nothing is there to replace.
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

/// Removes a file or a link.
///
/// # Errors
/// There is neither.
pub fn remove_file(root: &Root, path: &Path) -> io::Result<()> {
    is_leaf(root, path)?;
    let removed = root
        .parent(path)
        .and_then(|(folder, name)| rustix::fs::unlinkat(folder, name, AtFlags::empty()));
    removed.map_err(|errno| root.fail("remove", path, errno))
}

/// Removes the folders above a path that are empty, nearest first.
///
/// # Errors
/// One of them may not be removed.
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

/// Makes sure that a path leads to a file or a link.
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
