//! Writes a file that gets its name only when it is complete (`O_TMPFILE`). If the process is
//! killed, nothing is left behind.
//!
//! File systems without `O_TMPFILE` get a temporary file next to the destination.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::{Root, TEMPORARY};

/// A file that is being written. Only the user can read it.
#[derive(Debug)]
pub struct UnnamedFile {
    file: File,
    dir: PathBuf,
    /// The temporary file, if there is no `O_TMPFILE`.
    temporary: Option<TempPath>,
}

impl UnnamedFile {
    /// Creates a file in the file system of `folder`, in which it is going to be named.
    pub fn make(dir: &Path) -> io::Result<UnnamedFile> {
        let (file, temporary) = match create_unnamed(dir) {
            Some(file) => (file, None),
            None => {
                let mut builder = tempfile::Builder::new();
                let (file, path) = builder.prefix(TEMPORARY).tempfile_in(dir)?.into_parts();
                (file, Some(path))
            }
        };
        Ok(UnnamedFile {
            file,
            dir: dir.to_owned(),
            temporary,
        })
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name. Fails with `AlreadyExists` if the name is taken.
    pub fn name(self, path: &Path) -> io::Result<()> {
        match self.temporary {
            Some(temporary) => Ok(temporary.persist_noclobber(path)?),
            None => link_unnamed(&self.file, path),
        }
    }

    /// Gives the file its name. Replaces an existing file.
    pub fn replace(self, path: &Path) -> io::Result<()> {
        let temporary = match self.temporary {
            Some(temporary) => temporary,
            None => match link_unnamed(&self.file, path) {
                // `linkat` cannot replace a file, so link to a temporary name and rename that.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let sibling = self.dir.join(Root::temporary_name());
                    link_unnamed(&self.file, &sibling)?;
                    TempPath::try_from_path(sibling)?
                }
                result => return result,
            },
        };
        Ok(temporary.persist(path)?)
    }
}

/// Returns `None` if the system or the file system cannot do this.
#[cfg(target_os = "linux")]
fn create_unnamed(dir: &Path) -> Option<File> {
    use rustix::fs::{CWD, Mode, OFlags};

    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = super::openat(CWD, dir, flags, Mode::RUSR | Mode::WUSR).ok()?;
    let file = File::from(file);
    // `link` needs `/proc`.
    descriptor_path(&file).exists().then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn without_name(_dir: &Path) -> Option<File> {
    None
}

fn link_unnamed(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD};

    let from = descriptor_path(file);
    let flags = AtFlags::SYMLINK_FOLLOW;
    Ok(rustix::fs::linkat(CWD, &from, CWD, path, flags)?)
}

fn descriptor_path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd as _;

    // `linkat` of the descriptor itself (`AT_EMPTY_PATH`) needs a privilege.
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn written(dir: &Path, text: &str, with_name: bool) -> UnnamedFile {
        let mut unnamed = UnnamedFile::make(dir).unwrap();
        if with_name {
            let (file, path) = tempfile::NamedTempFile::new_in(dir).unwrap().into_parts();
            (unnamed.file, unnamed.temporary) = (file, Some(path));
        }
        unnamed.file.write_all(text.as_bytes()).unwrap();
        unnamed
    }

    #[test]
    fn it_has_its_name_once_it_is_whole_and_nothing_else_is_left() {
        for with_name in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a");
            let read = || std::fs::read_to_string(&path).unwrap();
            drop(written(dir.path(), "gone", with_name));
            written(dir.path(), "one", with_name).name(&path).unwrap();
            let result = written(dir.path(), "two", with_name).name(&path);
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(read(), "one");

            written(dir.path(), "three", with_name)
                .replace(&path)
                .unwrap();
            assert_eq!(read(), "three");
            assert_eq!(names(dir.path()), ["a"]);
        }
    }

    #[test]
    fn one_that_is_being_written_is_not_seen() {
        let dir = tempfile::tempdir().unwrap();
        // Without `O_TMPFILE`, the temporary file is visible.
        if create_unnamed(dir.path()).is_some() {
            let _file = written(dir.path(), "half", false);
            assert_eq!(names(dir.path()), [""; 0]);
        }
    }
}
