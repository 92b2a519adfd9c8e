//! Durability: what was written survives a power cut once this returns.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Makes everything durable that was written on the file system of `inside`.
///
/// Where the system has no call for a whole file system, the files and folders of `written` are
/// made durable one by one; one that is gone meanwhile is passed over.
///
/// # Errors
/// The system could not write something: it must be taken for lost, trying again proves nothing.
pub fn sync(inside: &Path, written: &[&Path]) -> io::Result<()> {
    if whole_file_system(&File::open(inside)?)? {
        Ok(())
    } else {
        each(written)
    }
}

/// Makes the names in folders durable; what is no folder any more is passed over. False if one of
/// them cannot be opened, as its permissions let nobody read it, or if the file system flushes no
/// single folder, as shared folders of virtual machines.
///
/// # Errors
/// As for [`sync`].
pub fn sync_folders(folders: &[PathBuf]) -> io::Result<bool> {
    for folder in folders {
        // A pipe that has taken the place of a folder would be waited at.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(folder, flags, Mode::empty()) {
            Ok(folder) => match rustix::fs::fsync(folder) {
                Err(Errno::INVAL) => return Ok(false),
                flushed => flushed?,
            },
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(Errno::ACCESS) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Makes a whole file system durable; false where there is no such call.
#[cfg(target_os = "linux")]
fn whole_file_system(folder: &File) -> io::Result<bool> {
    match rustix::fs::syncfs(folder) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::NOSYS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Makes a whole file system durable; false where there is no such call.
#[cfg(not(target_os = "linux"))]
fn whole_file_system(_folder: &File) -> io::Result<bool> {
    Ok(false)
}

/// Makes files and folders durable one by one, and the folders that they are in.
fn each(written: &[&Path]) -> io::Result<()> {
    for path in written {
        for path in [Some(*path), path.parent()].into_iter().flatten() {
            match File::open(path) {
                Ok(file) => file.sync_all()?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_and_its_files_are_made_durable_either_way() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "x").unwrap();
        sync(folder.path(), &[&file]).unwrap();
        each(&[&file, &folder.path().join("gone")]).unwrap();
    }

    #[test]
    fn what_is_no_folder_any_more_has_no_names_to_be_made_durable() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "x").unwrap();
        let all = [folder.path().to_owned(), file, folder.path().join("gone")];
        assert!(sync_folders(&all).unwrap());
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let error = sync(&folder.path().join("gone"), &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
