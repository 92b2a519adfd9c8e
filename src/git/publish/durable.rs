//! A power cut finds each file old or new, never empty, and once a publication has returned it finds
//! the new ones.
//!
//! A flush of the whole file system waits for everything that anybody wrote to it, a build beside us
//! included. A turn mostly changes a few files: they are flushed one by one, and so are the folders
//! whose names changed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::Publisher;
use crate::host::sync::{sync, sync_folders};

/// How new versions become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    /// They need not be.
    None,
    /// Each when it is written.
    Each,
    /// All of them at once.
    Whole,
}

/// More files than this, or folders, are flushed at once.
const FEW: usize = 8;

impl Publisher<'_> {
    /// Returns how so many new versions become durable.
    pub(super) fn flush_of(&self, count: usize) -> Flush {
        // Other systems cannot flush all of them at once.
        let at_once = cfg!(target_os = "linux") && count > FEW;
        match (self.guard.durable, at_once) {
            (false, _) => Flush::None,
            (true, false) => Flush::Each,
            (true, true) => Flush::Whole,
        }
    }

    /// Makes the bytes durable that lie ready: a power cut after an exchange must not find empty
    /// files.
    pub(super) fn flush_prepared(&self) -> anyhow::Result<()> {
        match self.flush {
            Flush::None | Flush::Each => Ok(()),
            Flush::Whole => sync(self.repository.workdir(), &[]).context(WORDS),
        }
    }

    /// Makes the names durable that changed, those included that an earlier run changed and a crash
    /// kept from this.
    pub(super) fn flush_names(&self) -> anyhow::Result<()> {
        if !self.guard.durable {
            return Ok(());
        }
        let top = self.repository.workdir();
        let displaced = self.repository.displaced();
        let mut is_durable = sync_folders(&[displaced]).context(WORDS)?;
        if let Some(folders) = &self.folders {
            let folders: Vec<_> = folders.iter().map(|folder| top.join(folder)).collect();
            is_durable = is_durable && sync_folders(&folders).context(WORDS)?;
        }
        if is_durable && self.folders.is_some() {
            return Ok(());
        }
        sync(top, &[]).context(WORDS)
    }
}

/// What is being done.
const WORDS: &str = "making the files durable";

/// Returns the folders above some paths, in which names change if folders are made or removed, too;
/// nothing if they are many.
pub(super) fn folders_of<'p>(paths: impl Iterator<Item = &'p [u8]>) -> Option<BTreeSet<PathBuf>> {
    let mut folders = BTreeSet::new();
    for path in paths {
        let above = Path::new(OsStr::from_bytes(path)).ancestors().skip(1);
        folders.extend(above.map(Path::to_owned));
        if folders.len() > FEW {
            return None;
        }
    }
    Some(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(paths: &[&str], expected: &[&str]) {
        let found = folders_of(paths.iter().map(|path| path.as_bytes())).unwrap();
        let expected = expected.iter().map(PathBuf::from).collect();
        assert_eq!(found, expected, "{paths:?}");
    }

    #[test]
    fn every_folder_above_a_path_is_flushed_up_to_the_top() {
        check(&[], &[]);
        check(&["a"], &[""]);
        check(&["a/b/c", "a/d"], &["", "a", "a/b"]);
    }

    #[test]
    fn many_folders_are_not_flushed_one_by_one() {
        let paths: Vec<_> = (0..FEW).map(|number| format!("{number}/x")).collect();
        let found = folders_of(paths.iter().map(|path| path.as_bytes()));
        assert_eq!(found, None);
    }
}
