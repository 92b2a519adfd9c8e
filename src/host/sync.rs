//! Durability: what was written survives a power cut once this returns.

use std::fs::File;
use std::io;
use std::path::Path;

use super::fault;
use super::file::open_regular;

/// Makes everything durable that was written on the file system of `inside`; false if the system
/// has no call for that, as none but Linux has.
///
/// # Errors
/// The system could not write something: it must be taken for lost, trying again proves nothing.
pub fn sync_whole(inside: &Path) -> io::Result<bool> {
    if fault::emulated("no-syncfs").is_some() {
        return Ok(false);
    }
    whole_file_system(&File::open(inside)?)
}

/// Makes the bytes of a regular file durable; what is gone meanwhile is passed over.
///
/// # Errors
/// As for [`sync_whole`].
pub fn sync_file(path: &Path) -> io::Result<()> {
    match open_regular(path) {
        Ok(file) => file.sync_all(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes the names in an open folder durable; false if its file system flushes no single folder, as
/// the shared folders of virtual machines.
///
/// # Errors
/// As for [`sync_whole`].
pub fn sync_folder(folder: impl std::os::fd::AsFd) -> io::Result<bool> {
    match rustix::fs::fsync(folder) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::INVAL) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Makes a whole file system durable; false if there is no such call, or a filter denies it.
#[cfg(target_os = "linux")]
fn whole_file_system(folder: &File) -> io::Result<bool> {
    use rustix::io::Errno;

    match rustix::fs::syncfs(folder) {
        Ok(()) => Ok(true),
        Err(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Makes a whole file system durable; false as there is no such call.
#[cfg(not(target_os = "linux"))]
fn whole_file_system(_folder: &File) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_durable_and_one_that_is_gone_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "x").unwrap();
        sync_file(&file).unwrap();
        sync_file(&folder.path().join("gone")).unwrap();
        assert!(sync_folder(File::open(folder.path()).unwrap()).unwrap());
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = sync_whole(&folder.path().join("gone")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
