//! Flushes files and directories, so that they survive a power cut.

use std::fs::File;
use std::io;
use std::path::Path;

use super::fault;
use super::file::open_regular;

/// Flushes the file system that contains `inside`. Returns `false` if the system cannot. After an
/// error the data is lost, even if a retry succeeds.
pub fn sync_whole(inside: &Path) -> io::Result<bool> {
    if fault::emulated("no-syncfs").is_some() {
        return Ok(false);
    }
    sync_file_system(&File::open(inside)?)
}

/// Flushes a regular file. Succeeds if it no longer exists.
pub fn sync_file(path: &Path) -> io::Result<()> {
    match open_regular(path) {
        Ok(file) => file.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Flushes the names in a directory. Returns `false` if the file system cannot flush a single one.
pub fn sync_dir(dir: impl std::os::fd::AsFd) -> io::Result<bool> {
    match rustix::io::retry_on_intr(|| rustix::fs::fsync(&dir)) {
        Ok(()) => Ok(true),
        // For example shared directories of virtual machines.
        Err(rustix::io::Errno::INVAL) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_os = "linux")]
fn sync_file_system(dir: &File) -> io::Result<bool> {
    use rustix::io::Errno;

    match rustix::io::retry_on_intr(|| rustix::fs::syncfs(dir)) {
        Ok(()) => Ok(true),
        // Missing in this kernel, or denied by a seccomp filter.
        Err(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn whole_file_system(_dir: &File) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_durable_and_one_that_is_gone_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "x").unwrap();
        sync_file(&file).unwrap();
        sync_file(&dir.path().join("gone")).unwrap();
        assert!(sync_dir(File::open(dir.path()).unwrap()).unwrap());
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error = sync_whole(&dir.path().join("gone")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
