//! Confirms that the object store can be read, before a missing object counts as lost.
//!
//! An object that is not found can be gone, or merely out of reach: a pack without read permission,
//! a failing disk, an alternate on a disk that is not mounted. Recovery gives up what is lost, so
//! it has to know which. Only bytes that were read and are wrong are damage; a file that cannot be
//! read stops the command.

use std::fs::{DirEntry, File};
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use gix::ObjectId;

use crate::git::repository::Repository;
use crate::host::file::reason;

const BLOCK: usize = 1 << 20;

/// A file of the object store that cannot be read, so that what is missing might be in it.
#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be read: {why}; what it holds does not count as lost", path.display())]
pub struct UnreadableStore {
    path: PathBuf,
    why: String,
}

/// How much of each file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadExtent {
    /// The first bytes: finds what is closed or not mounted.
    Start,
    /// Everything: finds a failing disk, too. Takes as long as copying the repository.
    All,
}

impl UnreadableStore {
    fn new(path: &Path, why: impl Into<String>) -> UnreadableStore {
        UnreadableStore {
            path: path.to_owned(),
            why: why.into(),
        }
    }

    pub fn hint(&self) -> String {
        "nothing was changed; make it readable (its permissions, its disk), then try again; for an object store in `objects/info/alternates` that is gone for good, remove its line there".to_owned()
    }
}

/// Reads the files of the repository's object store and its alternates. Returns
/// [`UnreadableStore`] for the first that cannot be read.
pub fn ensure_readable(repository: &Repository, extent: ReadExtent) -> anyhow::Result<()> {
    let own = repository.gix.objects.store_ref().path();
    let own = (own.canonicalize()).map_err(|error| UnreadableStore::new(own, reason(&error)))?;
    read_store(&own, extent)?;

    let alternates = gix::odb::alternate::resolve(own.clone(), &own);
    let alternates = alternates
        .map_err(|error| UnreadableStore::new(&own.join("info/alternates"), error.to_string()))?;
    for alternate in alternates {
        ensure_mounted(&alternate)?;
        read_store(&alternate, extent)?;
    }
    Ok(())
}

/// Returns whether an object is missing from a readable store.
pub fn is_lost(repository: &Repository, id: impl Into<ObjectId>) -> anyhow::Result<bool> {
    let id = id.into();
    if repository.has(id) {
        return Ok(false);
    }
    ensure_readable(repository, ReadExtent::All)?;
    // It can have been out of reach before, or in a pack that `git gc` replaced meanwhile.
    Ok(!repository.reopened()?.has(id))
}

/// Refuses an alternate that is not an object store: an empty mount point.
fn ensure_mounted(alternate: &Path) -> Result<(), UnreadableStore> {
    let is_store = |entry: &DirEntry| {
        let name = entry.file_name();
        ["pack", "info"].iter().any(|expected| name == *expected) || is_fan_out(entry)
    };
    if entries(alternate)?.iter().any(is_store) {
        return Ok(());
    }
    let why = "it has no objects, as if its disk were not mounted";
    Err(UnreadableStore::new(alternate, why))
}

fn read_store(objects: &Path, extent: ReadExtent) -> Result<(), UnreadableStore> {
    for entry in entries(objects)? {
        let is_packs = entry.file_name() == "pack";
        if !is_packs && !is_fan_out(&entry) {
            continue;
        }
        for file in entries(&entry.path())? {
            if is_packs {
                refuse_linked_index(&file.path())?;
            }
            if !is_packs || is_of_pack(&file) {
                read_file(&file.path(), extent)?;
            }
        }
    }
    Ok(())
}

fn is_fan_out(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.as_encoded_bytes();
    name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit)
}

/// Refuses a pack that gix does not see: it opens no index through a link, unlike git.
fn refuse_linked_index(path: &Path) -> Result<(), UnreadableStore> {
    let is_index = path.extension().is_some_and(|ending| ending == "idx");
    if is_index && path.is_symlink() && path.exists() {
        let why = "it is a symbolic link, and TeDDy follows one only to a whole directory of packs";
        return Err(UnreadableStore::new(path, why));
    }
    Ok(())
}

fn is_of_pack(entry: &DirEntry) -> bool {
    let path = entry.path();
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("pack" | "idx")) || path.ends_with("multi-pack-index")
}

fn entries(dir: &Path) -> Result<Vec<DirEntry>, UnreadableStore> {
    let list = || std::fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>();
    list().map_err(|error| UnreadableStore::new(dir, reason(&error)))
}

fn read_file(path: &Path, extent: ReadExtent) -> Result<(), UnreadableStore> {
    let error = match read_to_end(path, extent) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    // `git gc` can have removed it since its directory was listed. A link to a disk that is not
    // mounted is still there.
    let is_gone = error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err();
    if is_gone {
        return Ok(());
    }
    Err(UnreadableStore::new(path, reason(&error)))
}

fn read_to_end(path: &Path, extent: ReadExtent) -> io::Result<()> {
    // A pipe would never answer, and holds no object.
    if !path.metadata()?.is_file() {
        return Ok(());
    }
    let mut file = File::open(path)?;
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(_) if extent == ReadExtent::Start => return Ok(()),
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::git::sample;

    /// Makes a repository, changes its object store, and returns what cannot be read.
    fn check(change: impl Fn(&Path), expected: Option<&str>) {
        let (dir, repository) = sample::repository();
        let objects = dir.path().join(".git/objects");
        std::fs::create_dir_all(objects.join("pack")).unwrap();
        change(&objects);
        for extent in [ReadExtent::Start, ReadExtent::All] {
            let actual = ensure_readable(&repository, extent).map_err(|error| error.to_string());
            match expected {
                None => assert_eq!(actual, Ok(())),
                Some(message) => assert!(actual.unwrap_err().contains(message), "{message}"),
            }
        }
    }

    #[test]
    fn a_store_that_can_be_read_is_told_from_one_that_cannot() {
        check(|_| (), None);
        check(
            |objects| std::fs::write(objects.join("pack/pack-1.pack"), "").unwrap(),
            None,
        );
        check(
            |objects| symlink("/gone/x", objects.join("pack/pack-1.pack")).unwrap(),
            Some("pack-1.pack` cannot be read: "),
        );
        check(
            |objects| symlink("/gone/x", objects.join("1f")).unwrap(),
            Some("1f` cannot be read: "),
        );
        let link_to_file = |objects: &Path| {
            std::fs::write(objects.join("elsewhere"), "").unwrap();
            symlink(objects.join("elsewhere"), objects.join("pack/pack-1.idx")).unwrap();
        };
        check(
            link_to_file,
            Some("pack-1.idx` cannot be read: it is a symbolic link"),
        );
        let alternate = |target: &'static str| {
            move |objects: &Path| {
                std::fs::create_dir_all(objects.join("info")).unwrap();
                std::fs::create_dir(objects.join("empty")).unwrap();
                std::fs::write(objects.join("info/alternates"), format!("{target}\n")).unwrap();
            }
        };
        check(alternate("/gone/objects"), Some("/gone/objects` cannot be"));
        check(alternate("empty"), Some("empty` cannot be read: it has no"));
    }
}
