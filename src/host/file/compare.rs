//! Replaces or removes a file that another program can save at the same time, only if it still has
//! the expected bytes.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, RenameFlags, Stat};

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
    match exchange(&dir, name, &temporary) {
        Ok(()) => {}
        Err(errno) if is_unsupported_call(errno) => {
            let replaced = match new {
                Some(_) => rustix::fs::renameat(&dir, &temporary, &dir, name),
                None => remove(&dir, name).and_then(|()| remove(&dir, &temporary)),
            };
            replaced.map_err(|e| root.fail("write", path, e))?;
            return Ok(true);
        }
        Err(errno) => {
            let _ = remove(&dir, &temporary);
            return Err(root.fail("write", path, errno));
        }
    }

    // The program renamed another file to the name, or is about to write to the one we read.
    let moved = stat_at(&dir, &temporary);
    let is_read = moved.is_ok_and(|moved| are_same(&moved, &stat));
    if !is_read || writers.are_present() {
        swap_back(&dir, name, &temporary)?;
        return Ok(false);
    }

    if new.is_none() {
        remove(&dir, name)?;
    }
    remove(&dir, &temporary)?;
    Ok(true)
}

/// Gives the name back to the file of the other program, and removes ours.
fn swap_back(dir: &OwnedFd, name: &OsStr, temporary: &OsStr) -> rustix::io::Result<()> {
    let own = stat_at(dir, name)?;
    exchange(dir, name, temporary)?;
    if !are_same(&stat_at(dir, temporary)?, &own) {
        // The program saved once more meanwhile. Its newest version gets the name.
        exchange(dir, name, temporary)?;
    }
    remove(dir, temporary)
}

fn exchange(dir: &OwnedFd, one: &OsStr, other: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(dir, one, dir, other, RenameFlags::EXCHANGE)
}

fn remove(dir: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::unlinkat(dir, name, AtFlags::empty())
}

fn stat_at(dir: &OwnedFd, name: &OsStr) -> rustix::io::Result<Stat> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn are_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
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
