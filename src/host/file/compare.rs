//! Replaces or removes a file that another program can save at the same time, only if it still has
//! the expected bytes.

use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, RenameFlags};

use super::write::{Permissions, is_unsupported_call, write_file};
use super::{FileInfo, Root};
use crate::host::file::failure;
use crate::host::lease::Writers;

/// Replaces a file that has exactly the bytes `expected`, or removes it if `new` is `None`. Keeps
/// its permissions. Returns `false` without a change if the file has other bytes, or if a program
/// has it open for writing. Limitation: on a file system that cannot exchange two names, a save
/// between the comparison and the rename is lost.
pub fn replace_if(
    root: &Root,
    path: &Path,
    expected: &[u8],
    new: Option<&[u8]>,
) -> io::Result<bool> {
    let (file, _) = root.open_regular(path)?;
    let file = Arc::new(file);
    // A program that opens the file for writing from here on waits until the lease is dropped.
    let writers = Writers::of(file.clone());
    if writers.are_present() || !has(&file, expected)? {
        return Ok(false);
    }

    let stat = rustix::fs::fstat(&*file)?;
    let (dir, name) = root.parent(path).map_err(|e| root.fail("write", path, e))?;
    let temporary = Root::temporary_name();
    let permissions = Permissions::Exactly(FileInfo::from(&stat).permissions);
    write_file(&dir, &temporary, new.unwrap_or_default(), permissions)
        .map_err(|e| failure("write", path, e))?;
    // The exchange keeps the old file: it is checked again and can be swapped back.
    let exchange =
        || rustix::fs::renameat_with(&dir, name, &dir, &temporary, RenameFlags::EXCHANGE);
    let is_read = |name: &std::ffi::OsStr| {
        let at = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW);
        at.is_ok_and(|at| (at.st_dev, at.st_ino) == (stat.st_dev, stat.st_ino))
    };
    match exchange() {
        Ok(()) => {}
        Err(errno) if is_unsupported_call(errno) => {
            let replaced = match new {
                Some(_) => rustix::fs::renameat(&dir, &temporary, &dir, name),
                None => rustix::fs::unlinkat(&dir, name, AtFlags::empty())
                    .and_then(|()| rustix::fs::unlinkat(&dir, &temporary, AtFlags::empty())),
            };
            replaced.map_err(|e| root.fail("write", path, e))?;
            return Ok(true);
        }
        Err(errno) => {
            let _ = rustix::fs::unlinkat(&dir, &temporary, AtFlags::empty());
            return Err(root.fail("write", path, errno));
        }
    }

    // The program renamed another file to the name, or is about to write to the one we read.
    if !is_read(&temporary) || writers.are_present() {
        let new_stat = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        exchange()?;
        let came_back = rustix::fs::statat(&dir, &temporary, AtFlags::SYMLINK_NOFOLLOW)?;
        if (new_stat.st_dev, new_stat.st_ino) != (came_back.st_dev, came_back.st_ino) {
            // The program saved once more meanwhile. Its newest version gets the name.
            exchange()?;
        }
        rustix::fs::unlinkat(&dir, &temporary, AtFlags::empty())?;
        return Ok(false);
    }

    if new.is_none() {
        rustix::fs::unlinkat(&dir, name, AtFlags::empty())?;
    }
    rustix::fs::unlinkat(&dir, &temporary, AtFlags::empty())?;
    Ok(true)
}

fn has(file: &std::fs::File, expected: &[u8]) -> io::Result<bool> {
    let mut bytes = Vec::with_capacity(expected.len() + 1);
    file.take(expected.len() as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes == expected)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_only_with_the_expected_bytes_and_without_a_writer() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let (path, file) = (Path::new("a"), dir.path().join("a"));
        std::fs::write(&file, "one").unwrap();
        assert!(!replace_if(&root, path, b"two", Some(b"x")).unwrap());
        assert!(!replace_if(&root, path, b"on", Some(b"x")).unwrap());
        assert!(replace_if(&root, path, b"one", Some(b"two")).unwrap());
        assert_eq!(std::fs::read(&file).unwrap(), b"two");

        let mut writer = std::fs::File::options().append(true).open(&file).unwrap();
        if cfg!(target_os = "linux") {
            assert!(!replace_if(&root, path, b"two", Some(b"x")).unwrap());
        }
        writer.write_all(b"!").unwrap();
        drop(writer);
        assert_eq!(std::fs::read(&file).unwrap(), b"two!");
        assert!(replace_if(&root, path, b"two!", None).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
