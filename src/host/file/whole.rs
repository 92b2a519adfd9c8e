//! A folder of files that appears as a whole, in the place of nothing or of one that was made so
//! before.
//!
//! A list among the files says which they are. What is not on it is somebody else's, and a folder
//! that has any of that stays as it is.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use tempfile::TempDir;

use super::{FileMode, Root, TEMPORARY, failure, make_folders, read_regular_text};

/// The list.
const LIST: &str = ".teddy-files";
/// Its first line.
const HEAD: &str = "# Written by teddy, which may replace these files and this folder.";
/// A longer list is none of ours.
const MAX_LIST: u64 = 64 << 20;
/// Where the new files are while they are written.
const NEW: &str = "new";

/// A folder that is being written.
#[derive(Debug)]
pub struct WholeFolder {
    /// Where it will be.
    target: PathBuf,
    /// Where it is until then, beside its place.
    aside: TempDir,
    /// The files.
    root: Root,
    /// Their names.
    names: BTreeSet<String>,
}

impl WholeFolder {
    /// Begins to write a folder.
    ///
    /// # Errors
    /// `AlreadyExists` if something else is in its place, named in the words; or the system
    /// refuses.
    pub fn begin(target: &Path) -> io::Result<WholeFolder> {
        if let Some(other) = foreign(target)? {
            let why = match other.as_os_str().is_empty() {
                true => "it is not a directory".to_owned(),
                false => format!("it has `{}`, which did not come from here", other.display()),
            };
            let why = io::Error::new(io::ErrorKind::AlreadyExists, why);
            return Err(failure("replace", target, why));
        }

        let above = target
            .parent()
            .filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        make_folders(above)?;
        let aside = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempdir_in(above)?;
        let new = aside.path().join(NEW);
        std::fs::create_dir(&new)?;
        Ok(WholeFolder {
            target: target.to_owned(),
            root: Root::open(&new)?,
            aside,
            names: BTreeSet::new(),
        })
    }

    /// Writes a file, and the folders above it.
    ///
    /// # Errors
    /// There is one of this name, or the system refuses.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.root
            .create_new(Path::new(name), bytes, FileMode::Plain)?;
        self.names.insert(name.to_owned());
        Ok(())
    }

    /// Puts the folder in its place.
    ///
    /// # Errors
    /// Something else has come into its place, or the system refuses; what was there stays.
    pub fn finish(mut self) -> io::Result<usize> {
        let files = self.names.len();
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let list = format!("{HEAD}\n{}\n", names.join("\n"));
        self.write(LIST, list.as_bytes())?;

        let new = self.aside.path().join(NEW);
        let fail = |error| failure("replace", &self.target, error);
        match std::fs::symlink_metadata(&self.target) {
            Err(_) => std::fs::rename(&new, &self.target).map_err(fail)?,
            Ok(_) => trade(&new, &self.target, &self.aside.path().join("old")).map_err(fail)?,
        }

        // What came into the old folder since it was looked at goes back to where it can be found.
        let old = [NEW, "old"].map(|name| self.aside.path().join(name));
        if old
            .iter()
            .any(|old| foreign(old).is_ok_and(|other| other.is_some()))
        {
            let kept = self.aside.keep();
            let why = format!(
                "files of others came into it meanwhile; they are in `{}`",
                kept.display()
            );
            return Err(failure("replace", &self.target, io::Error::other(why)));
        }
        Ok(files)
    }
}

/// Puts a new folder in the place of an old one, in one step if the system can.
fn trade(new: &Path, target: &Path, old: &Path) -> io::Result<()> {
    if rustix::fs::renameat_with(CWD, new, CWD, target, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }

    std::fs::rename(target, old)?;
    std::fs::rename(new, target).inspect_err(|_| {
        let _ = std::fs::rename(old, target);
    })
}

/// Returns something in a folder that is on no list of its own, or nothing at all of a path if that
/// is no folder; nothing if it may be replaced.
fn foreign(folder: &Path) -> io::Result<Option<PathBuf>> {
    match std::fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failure("look at", folder, error)),
        Ok(found) if !found.is_dir() => return Ok(Some(PathBuf::new())),
        Ok(_) => {}
    }

    let list = read_regular_text(&folder.join(LIST), MAX_LIST).unwrap_or_default();
    let mut lines = list.lines();
    let is_ours = lines.next() == Some(HEAD);
    let ours: BTreeSet<&Path> = lines.filter(|_| is_ours).map(Path::new).collect();
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        for entry in std::fs::read_dir(folder.join(&below))? {
            let entry = entry?;
            let name = below.join(entry.file_name());
            let kind = entry.file_type()?;
            let is_known = ours.contains(name.as_path()) || is_ours && name == Path::new(LIST);
            if kind.is_dir() {
                open.push(name);
            } else if !(kind.is_file() && is_known) {
                return Ok(Some(name));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a folder of one file.
    fn make(target: &Path, name: &str) -> io::Result<usize> {
        let mut folder = WholeFolder::begin(target)?;
        folder.write(name, b"x")?;
        folder.finish()
    }

    /// Returns what is beside a folder.
    fn beside(target: &Path) -> usize {
        std::fs::read_dir(target.parent().unwrap()).unwrap().count()
    }

    #[test]
    fn a_folder_takes_the_place_of_one_of_its_own_kind() {
        let top = tempfile::tempdir().unwrap();
        let target = top.path().join("pages");
        assert_eq!(make(&target, "a/b.html").unwrap(), 1);
        assert_eq!(make(&target, "c.html").unwrap(), 1);
        assert!(target.join("c.html").exists() && !target.join("a").exists());
        assert_eq!(beside(&target), 1);

        let empty = top.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        make(&empty, "a.html").unwrap();
    }

    #[test]
    fn what_is_somebody_elses_stays() {
        let top = tempfile::tempdir().unwrap();
        let target = top.path().join("pages");
        make(&target, "a.html").unwrap();
        let check = |named: &str| {
            let error = make(&target, "b.html").unwrap_err();
            assert!(error.to_string().contains(named), "{error}");
            assert!(!target.join("b.html").exists());
        };
        std::fs::create_dir(target.join("sub")).unwrap();
        std::fs::write(target.join("sub/mine.txt"), "x").unwrap();
        check("sub/mine.txt");
        std::fs::remove_file(target.join("sub/mine.txt")).unwrap();
        std::os::unix::fs::symlink("/etc", target.join("link")).unwrap();
        check("`link`");
        std::fs::remove_file(target.join("link")).unwrap();
        std::fs::write(target.join(LIST), "a.html\n").unwrap();
        check("did not come from here");
        std::fs::remove_dir_all(&target).unwrap();
        std::fs::write(&target, "x").unwrap();
        check("not a directory");
        assert_eq!(beside(&target), 1);
    }
}
