//! Writes a directory of generated files atomically. It can replace an empty directory or its own
//! earlier output, nothing else.
//!
//! The digests of all written files are recorded outside of the directory, where neither a plan nor
//! a clone can write, so nothing in the directory itself decides what TeDDy deletes. TeDDy does not
//! touch a directory that contains any other or changed file.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::{FileMode, Root, TEMPORARY, make_shared_dirs, read_regular, read_regular_text};
use super::{uninterrupted, write_cache};
use crate::host::file::{self, failure};
use crate::text::hex;

// In bytes. We never write a larger record.
const MAX_RECORD: u64 = 64 << 20;
// In bytes. A larger file counts as not written by us.
const MAX_FILE: u64 = 64 << 20;
const NEW: &str = "new";

/// A directory that is being written. Dropping it discards the files.
#[derive(Debug)]
pub struct OutputDir {
    target: PathBuf,
    /// Temporary directory next to the target.
    temp_dir: TempDir,
    root: Root,
    digests: BTreeSet<String>,
    /// Record of the earlier output. `None` if only an empty directory can be replaced.
    earlier: Option<OutputRecord>,
}

#[derive(Debug)]
struct OutputRecord {
    file: PathBuf,
    digests: BTreeSet<String>,
}

impl OutputDir {
    /// Starts a directory at `target`. With `records`, a directory for records, an unchanged
    /// earlier output can be replaced. Fails with `AlreadyExists` and the name of the offending
    /// file if `target` contains anything else.
    pub fn begin(target: &Path, records: Option<&Path>) -> io::Result<OutputDir> {
        let above = target
            .parent()
            .filter(|above| !above.as_os_str().is_empty());
        let above = above.unwrap_or(Path::new("."));
        let during = |error| failure("make", above, error);
        make_shared_dirs(above).map_err(during)?;
        let path = above.canonicalize().map_err(during)?;
        let path = path.join(target.file_name().unwrap_or_default());
        let earlier = records.map(|records| OutputRecord::of(&path, records));
        if let Some(other) = foreign(target, earlier.as_ref())? {
            let (verb, why) = match (other.as_os_str().is_empty(), &earlier) {
                (true, _) => ("write", "it is not a directory".to_owned()),
                (false, None) => ("write", "it is not empty".to_owned()),
                (false, Some(_)) => (
                    "replace",
                    format!(
                        "`{}` did not come from here, or was changed since",
                        file::show_path(&other)
                    ),
                ),
            };
            let why = io::Error::new(io::ErrorKind::AlreadyExists, why);
            return Err(failure(verb, target, why));
        }

        // Next to the target, because a rename cannot cross file systems.
        let temp_dir = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempdir_in(above)?;
        let new = temp_dir.path().join(NEW);
        std::fs::create_dir(&new)?;
        Ok(OutputDir {
            target: target.to_owned(),
            root: Root::open(&new)?,
            temp_dir,
            digests: BTreeSet::new(),
            earlier,
        })
    }

    /// Writes a file and its parent directories. Fails if it exists.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let name = Path::new(name);
        self.root.create_new(name, bytes, FileMode::Plain)?;
        self.digests.insert(digest(name, bytes));
        Ok(())
    }

    /// Moves the directory to its target and returns the number of files.
    pub fn finish(self) -> io::Result<usize> {
        let new = self.temp_dir.path().join(NEW);
        let old = self.temp_dir.path().join("old");
        let fail = |error| failure("write", &self.target, error);
        // `rename` replaces an empty directory.
        match (std::fs::rename(&new, &self.target), &self.earlier) {
            (Ok(()), _) => {}
            (Err(error), Some(_)) if is_full(&error) => {
                exchange(&new, &self.target, &old).map_err(fail)?;
            }
            (Err(error), _) => return Err(fail(error)),
        }

        let Some(earlier) = &self.earlier else {
            return Ok(self.digests.len());
        };
        // Files that another program wrote into the old directory after the check in `begin` are
        // not deleted.
        let is_foreign = |old: &Path| !matches!(foreign(old, Some(earlier)), Ok(None));
        if is_foreign(&new) || is_foreign(&old) {
            let temp_path = self.temp_dir.keep();
            let why = format!(
                "files of others came into it meanwhile; they are in `{}`",
                temp_path.display()
            );
            return Err(failure("replace", &self.target, io::Error::other(why)));
        }

        // Without a record this output cannot be replaced later. Nothing else depends on it.
        let lines: Vec<&str> = self.digests.iter().map(String::as_str).collect();
        let _ = write_cache(&earlier.file, lines.join("\n").as_bytes());
        Ok(self.digests.len())
    }
}

impl OutputRecord {
    fn of(path: &Path, records: &Path) -> OutputRecord {
        let file = records.join(crate::text::digest(&path.to_string_lossy()));
        let text = read_regular_text(&file, MAX_RECORD).unwrap_or_default();
        OutputRecord {
            digests: text.lines().map(str::to_owned).collect(),
            file,
        }
    }
}

fn digest(name: &Path, bytes: &[u8]) -> String {
    let mut hasher = Sha256::new();
    // The name counts, too: a renamed file was changed.
    hasher.update(name.as_os_str().as_encoded_bytes());
    hasher.update([0]);
    hasher.update(bytes);
    hex(&hasher.finalize())
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty};
    matches!(error.kind(), AlreadyExists | DirectoryNotEmpty)
}

fn exchange(new: &Path, target: &Path, old: &Path) -> io::Result<()> {
    if rustix::fs::renameat_with(CWD, new, CWD, target, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }

    // Not atomic: a crash in between leaves the old directory at `old`.
    std::fs::rename(target, old)?;
    std::fs::rename(new, target).inspect_err(|_| {
        let _ = std::fs::rename(old, target);
    })
}

/// Returns a file that we did not write, an empty path if `dir` is not a directory, or `None` if it
/// can be replaced.
fn foreign(dir: &Path, earlier: Option<&OutputRecord>) -> io::Result<Option<PathBuf>> {
    match std::fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failure("look at", dir, error)),
        Ok(metadata) if !metadata.is_dir() => return Ok(Some(PathBuf::new())),
        Ok(_) => {}
    }

    let is_known = |name: &Path| {
        let bytes = read_regular(&dir.join(name), MAX_FILE);
        let is_of_it = |bytes: Vec<u8>| {
            earlier.is_some_and(|earlier| earlier.digests.contains(&digest(name, &bytes)))
        };
        bytes.is_ok_and(is_of_it)
    };
    let mut open = vec![PathBuf::new()];
    while let Some(subdir) = open.pop() {
        let entries = uninterrupted(|| std::fs::read_dir(dir.join(&subdir)))?;
        let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
        // The file that is named is the same on every file system.
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = subdir.join(entry.file_name());
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

    fn make(target: &Path, name: &str) -> io::Result<usize> {
        let records = target.with_file_name("records");
        let mut dir = OutputDir::begin(target, Some(&records))?;
        dir.write(name, b"x")?;
        dir.finish()
    }

    /// Number of entries next to the target, itself included.
    fn sibling_count(target: &Path) -> usize {
        std::fs::read_dir(target.parent().unwrap()).unwrap().count()
    }

    #[test]
    fn a_folder_takes_the_place_of_one_of_its_own_kind() {
        let top = tempfile::tempdir().unwrap();
        let target = top.path().join("pages");
        assert_eq!(make(&target, "a/b.html").unwrap(), 1);
        assert_eq!(make(&target, "c.html").unwrap(), 1);
        assert!(target.join("c.html").exists() && !target.join("a").exists());
        assert_eq!(sibling_count(&target), 2);

        let empty = top.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        make(&empty, "a.html").unwrap();
    }

    #[test]
    fn what_is_somebody_elses_stays() {
        let top = tempfile::tempdir().unwrap();
        let target = top.path().join("pages");
        make(&target, "a.html").unwrap();
        let check = |offender: &str| {
            let error = make(&target, "b.html").unwrap_err();
            assert!(error.to_string().contains(offender), "{error}");
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
        assert_eq!(sibling_count(&target), 2);
    }

    #[test]
    fn the_first_foreign_file_by_name_is_reported() {
        let top = tempfile::tempdir().unwrap();
        let target = top.path().join("pages");
        make(&target, "a.html").unwrap();
        for number in (10..40).rev() {
            std::fs::write(target.join(format!("{number}.txt")), "x").unwrap();
        }
        let error = make(&target, "b.html").unwrap_err();
        assert!(error.to_string().contains("`10.txt`"), "{error}");
    }

    #[test]
    fn without_a_record_only_nothing_is_replaced() {
        let top = tempfile::tempdir().unwrap();
        let target = top.path().join("a/turns");
        let make = || {
            let mut dir = OutputDir::begin(&target, None)?;
            dir.write("x", b"x")?;
            dir.finish()
        };
        assert_eq!(make().unwrap(), 1);
        let error = make().unwrap_err().to_string();
        assert!(error.ends_with("it is not empty"), "{error}");
        std::fs::remove_file(target.join("x")).unwrap();
        make().unwrap();
        assert_eq!(sibling_count(&target), 1);
    }
}
