//! Decides which changes in the user's files belong to recorded work, and which are the user's or
//! another agent's.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::git::diff;
use crate::git::object::TreeId;
use crate::git::repository::Repository;
use crate::host::file::Root;
use crate::workspace::file_move::with_paths_of;

/// Delay between the end of the work and its last write, in nanoseconds: a command that was
/// interrupted takes a moment to end.
const SLACK: i64 = 1_000_000_000;

/// Which changes belong to the work. By default, all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribution {
    /// Files that another agent changed at the same time.
    pub others: BTreeSet<Vec<u8>>,
    /// If set, no other files belong to the work.
    pub only: Option<BTreeSet<Vec<u8>>>,
    /// Files that agents named, if several worked at the same time. All may have changed the others.
    pub named: Option<BTreeSet<Vec<u8>>>,
    /// When the work ended, in nanoseconds since 1970. Later changes are the user's. `None` if it
    /// ends with the recording.
    pub ended: Option<i64>,
}

impl Attribution {
    /// Returns the tree that the work made of `old`, if the user's files are now `now`.
    pub(super) fn made(
        &self,
        repository: &Repository,
        old: TreeId,
        now: TreeId,
    ) -> anyhow::Result<TreeId> {
        if *self == Attribution::default() {
            return Ok(now);
        }

        let root = Root::open(repository.workdir())?;
        let changed = diff::changes(repository, old, now)?.into_iter();
        let excluded = changed.map(|change| change.path);
        let excluded = excluded.filter(|path| !self.includes(path, &root));
        with_paths_of(repository, now, old, excluded)
    }

    /// No agent named the file, and several could have changed it.
    pub(super) fn is_uncertain(&self, path: &[u8]) -> bool {
        self.named
            .as_ref()
            .is_some_and(|named| !named.contains(path))
    }

    fn includes(&self, path: &[u8], root: &Root) -> bool {
        let is_listed = self.only.as_ref().is_none_or(|only| only.contains(path));
        let is_in_time = || {
            let ended = self.ended.map(|ended| ended.saturating_add(SLACK));
            ended.is_none_or(|ended| modified(root, path).is_some_and(|time| time <= ended))
        };
        is_listed && !self.others.contains(path) && is_in_time()
    }
}

/// When a file was written or deleted. A deletion is as old as the newest change of its directory.
fn modified(root: &Root, path: &[u8]) -> Option<i64> {
    let path = Path::new(OsStr::from_bytes(path));
    let existing = path
        .ancestors()
        .find_map(|path| root.entry(path).ok().flatten());
    existing.map(|entry| entry.modified)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_belongs_to_the_work_by_its_file_and_its_time() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("a"), "a").unwrap();
        let root = Root::open(dir.path()).unwrap();
        let now = modified(&root, b"a").unwrap();
        let check = |attribution: &Attribution, path: &str, expected: bool| {
            assert_eq!(attribution.includes(path.as_bytes(), &root), expected);
        };

        let names = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let others = Attribution {
            others: names(&["a"]),
            ..Attribution::default()
        };
        check(&others, "a", false);
        check(&others, "b", true);
        let only = Attribution {
            only: Some(names(&["a"])),
            ..Attribution::default()
        };
        check(&only, "a", true);
        check(&only, "b", false);
        for (ended, expected) in [(now, true), (now - 2 * SLACK, false)] {
            let ended = Attribution {
                ended: Some(ended),
                ..Attribution::default()
            };
            check(&ended, "a", expected);
            check(&ended, "d/deleted", expected);
            check(&ended, "deleted", expected);
        }
    }
}
