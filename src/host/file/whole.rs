//! A folder of files that appears as a whole, in the place of nothing or of one that was made so
//! before.
//!
//! What was written is remembered by its digests at a place of ours, where neither a plan nor a
//! clone can write: nothing in the folder itself says what may be deleted. A folder with anything
//! else in it, or with a file that was changed since, stays as it is.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::write_cache;
use super::{FileMode, Root, TEMPORARY, failure, make_folders, read_regular, read_regular_text};

/// A longer record is none of ours.
const MAX_RECORD: u64 = 64 << 20;
/// A larger file is none of ours.
const MAX_FILE: u64 = 64 << 20;
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
    /// Their digests.
    digests: BTreeSet<String>,
    /// What may be replaced; nothing where only an empty folder may be.
    earlier: Option<WholeRecord>,
}

/// What was written to a folder before.
#[derive(Debug)]
struct WholeRecord {
    /// Where that is remembered.
    file: PathBuf,
    /// The digests of the files.
    digests: BTreeSet<String>,
}

impl WholeFolder {
    /// Begins to write a folder. With a folder for `records`, it may take the place of one that was
    /// written with the same `records` and is as it was; else only that of an empty one.
    ///
    /// # Errors
    /// `AlreadyExists` if something else is in its place, named in the words; or the system
    /// refuses.
    pub fn begin(target: &Path, records: Option<&Path>) -> io::Result<WholeFolder> {
        let above = target
            .parent()
            .filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        let during = |error| failure("make", above, error);
        make_folders(above).map_err(during)?;
        let place = above.canonicalize().map_err(during)?;
        let place = place.join(target.file_name().unwrap_or_default());
        let earlier = records.map(|records| WholeRecord::of(&place, records));
        if let Some(other) = foreign(target, earlier.as_ref())? {
            let (verb, why) = match (other.as_os_str().is_empty(), &earlier) {
                (true, _) => ("write", "it is not a directory".to_owned()),
                (false, None) => ("write", "it is not empty".to_owned()),
                (false, Some(_)) => (
                    "replace",
                    format!(
                        "`{}` did not come from here, or was changed since",
                        failure::show(&other)
                    ),
                ),
            };
            let why = io::Error::new(io::ErrorKind::AlreadyExists, why);
            return Err(failure(verb, target, why));
        }

        let aside = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempdir_in(above)?;
        let new = aside.path().join(NEW);
        std::fs::create_dir(&new)?;
        Ok(WholeFolder {
            target: target.to_owned(),
            root: Root::open(&new)?,
            aside,
            digests: BTreeSet::new(),
            earlier,
        })
    }

    /// Writes a file, and the folders above it.
    ///
    /// # Errors
    /// There is one of this name, or the system refuses.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let name = Path::new(name);
        self.root.create_new(name, bytes, FileMode::Plain)?;
        self.digests.insert(digest(name, bytes));
        Ok(())
    }

    /// Puts the folder in its place, and returns how many files it has.
    ///
    /// # Errors
    /// Something else has come into its place, or the system refuses; what was there stays.
    pub fn finish(self) -> io::Result<usize> {
        let new = self.aside.path().join(NEW);
        let old = self.aside.path().join("old");
        let fail = |error| failure("write", &self.target, error);
        match (std::fs::rename(&new, &self.target), &self.earlier) {
            (Ok(()), _) => {}
            (Err(error), Some(_)) if is_full(&error) => {
                trade(&new, &self.target, &old).map_err(fail)?;
            }
            (Err(error), _) => return Err(fail(error)),
        }

        let Some(earlier) = &self.earlier else {
            return Ok(self.digests.len());
        };
        // What came into the old folder since it was looked at goes back to where it can be found.
        let is_foreign = |old: &Path| !matches!(foreign(old, Some(earlier)), Ok(None));
        if is_foreign(&new) || is_foreign(&old) {
            let kept = self.aside.keep();
            let why = format!(
                "files of others came into it meanwhile; they are in `{}`",
                kept.display()
            );
            return Err(failure("replace", &self.target, io::Error::other(why)));
        }

        // What cannot be remembered is not replaced another time, and that is all.
        let lines: Vec<&str> = self.digests.iter().map(String::as_str).collect();
        let _ = write_cache(&earlier.file, lines.join("\n").as_bytes());
        Ok(self.digests.len())
    }
}

impl WholeRecord {
    /// Returns what was written to a place, as it is remembered in a folder.
    fn of(place: &Path, records: &Path) -> WholeRecord {
        let file = records.join(crate::text::digest(&place.to_string_lossy()));
        let text = read_regular_text(&file, MAX_RECORD).unwrap_or_default();
        WholeRecord {
            digests: text.lines().map(str::to_owned).collect(),
            file,
        }
    }
}

/// Returns the digest of a file and its name.
fn digest(name: &Path, bytes: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(name.as_os_str().as_encoded_bytes());
    hasher.update([0]);
    hasher.update(bytes);
    let digest = hasher.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether a folder was not replaced because something is in it.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty};
    matches!(error.kind(), AlreadyExists | DirectoryNotEmpty)
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

/// Returns something in a folder that was not written there, or nothing at all of a path if that
/// is no folder; nothing if it may be replaced.
fn foreign(folder: &Path, earlier: Option<&WholeRecord>) -> io::Result<Option<PathBuf>> {
    match std::fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failure("look at", folder, error)),
        Ok(found) if !found.is_dir() => return Ok(Some(PathBuf::new())),
        Ok(_) => {}
    }

    let is_known = |name: &Path| {
        let bytes = read_regular(&folder.join(name), MAX_FILE);
        let is_of_it = |bytes: Vec<u8>| {
            earlier.is_some_and(|earlier| earlier.digests.contains(&digest(name, &bytes)))
        };
        bytes.is_ok_and(is_of_it)
    };
    let mut open = vec![PathBuf::new()];
    while let Some(below) = open.pop() {
        for entry in std::fs::read_dir(folder.join(&below))? {
            let entry = entry?;
            let name = below.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() && earlier.is_some() {
                open.push(name);
            } else if !(kind.is_file() && is_known(&name)) {
                return Ok(Some(name));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a folder of one file, which may take the place of an earlier one.
    fn make(target: &Path, name: &str) -> io::Result<usize> {
        let records = target.with_file_name("records");
        let mut folder = WholeFolder::begin(target, Some(&records))?;
        folder.write(name, b"x")?;
        folder.finish()
    }

    /// Returns what is beside a folder and its record.
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
        assert_eq!(beside(&target), 2);

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
        std::fs::write(target.join("a.html"), "mine").unwrap();
        check("`a.html` did not come from here, or was changed since");
        std::fs::remove_dir_all(&target).unwrap();
        std::fs::write(&target, "x").unwrap();
        check("not a directory");
        assert_eq!(beside(&target), 2);
    }

    #[test]
    fn without_a_record_only_nothing_is_replaced() {
        let top = tempfile::tempdir().unwrap();
        let target = top.path().join("a/turns");
        let make = || {
            let mut folder = WholeFolder::begin(&target, None)?;
            folder.write("x", b"x")?;
            folder.finish()
        };
        assert_eq!(make().unwrap(), 1);
        let error = make().unwrap_err().to_string();
        assert!(error.ends_with("it is not empty"), "{error}");
        std::fs::remove_file(target.join("x")).unwrap();
        make().unwrap();
        assert_eq!(beside(&target), 1);
    }
}
