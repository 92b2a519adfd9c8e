//! Reads the user's index, directory by directory. Never writes it.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode, Stage, Stat};
use gix::index::{Entry, State};

use crate::git::During;

pub(in crate::git) struct Index {
    /// Empty if the index file does not exist.
    pub(in crate::git) state: State,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Tracked {
    pub(super) id: ObjectId,
    pub(super) mode: Mode,
    /// Stat of the file when git last compared it.
    pub(super) stat: Stat,
    /// Set if the user has made git ignore changes of the file.
    pub(super) frozen: Option<Frozen>,
    /// Whether the id is the content: not for conflicts and `add -N`.
    pub(super) is_settled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Frozen {
    /// `skip-worktree`: a sparse checkout leaves it out.
    LeftOut,
    /// `assume-unchanged`.
    Assumed,
}

/// Entries of the index for one name in a directory.
#[derive(Debug, Clone, Default)]
pub(super) struct Name {
    pub(super) file: Option<Tracked>,
    /// Range of the entries below a directory with this name.
    pub(super) children: Range<usize>,
}

/// Entries of the index for one directory, sorted by name.
#[derive(Default)]
pub(super) struct Names<'i> {
    names: Vec<(Cow<'i, [u8]>, Name)>,
    /// Position after the name that was taken last.
    next: usize,
}

impl Index {
    /// Decodes the user's index. Empty if the file does not exist.
    pub(in crate::git) fn load(gix: &gix::Repository) -> anyhow::Result<Index> {
        if !gix.index_path().exists() {
            return Ok(Index {
                state: gix::index::State::new(gix.object_hash()),
            });
        }

        let file = gix.open_index().during("reading git's index")?;
        Ok(Index {
            state: file.into_parts().0,
        })
    }

    pub(super) fn entries_in(&self, dir: &[u8]) -> Range<usize> {
        if dir.is_empty() {
            return 0..self.state.entries().len();
        }

        let mut prefix = dir.to_vec();
        prefix.push(b'/');
        self.state
            .prefixed_entries_range(prefix.as_bstr())
            .unwrap_or_default()
    }

    /// Returns the tree that a sparse index has in place of the directory or one of its parents,
    /// and the remaining path.
    pub(super) fn collapsed<'p>(&self, dir: &'p [u8]) -> Option<(ObjectId, &'p [u8])> {
        if dir.is_empty() || !self.state.is_sparse() {
            return None;
        }

        let ends = dir.find_iter("/").chain([dir.len()]);
        ends.into_iter().find_map(|end| {
            let path = [&dir[..end], b"/"].concat();
            let entry = self.state.entry_by_path(path.as_bstr())?;
            let tail = dir.get(end + 1..).unwrap_or_default();
            (entry.mode == Mode::DIR).then_some((entry.id, tail))
        })
    }

    pub(super) fn names(&self, dir: &[u8], entries: Range<usize>) -> Names<'_> {
        let skip = if dir.is_empty() { 0 } else { dir.len() + 1 };

        let mut names: Vec<(Cow<'_, [u8]>, Name)> = Vec::new();
        for at in entries {
            let entry = &self.state.entries()[at];
            let tail = &entry.path(&self.state)[skip..];
            let end = tail.find_byte(b'/');
            let name = &tail[..end.unwrap_or(tail.len())];
            if names.last().is_none_or(|(last, _)| last.as_ref() != name) {
                names.push((Cow::Borrowed(name), Name::default()));
            }

            let Some((_, current)) = names.last_mut() else {
                continue;
            };
            match end {
                // A sparse index has entries for whole directories, which end with a slash.
                Some(end) if end + 1 < tail.len() => add_child(current, at),
                _ => add_file(current, entry),
            }
        }

        Names::new(names)
    }

    pub(super) fn file(&self, path: &[u8]) -> Option<Tracked> {
        let mut name = Name::default();
        // A sparse index has entries for whole directories, which end with a slash.
        for path in [path, &[path, b"/"].concat()] {
            let range = self.state.entry_range(path.as_bstr()).unwrap_or_default();
            self.state.entries()[range]
                .iter()
                .for_each(|entry| add_file(&mut name, entry));
        }

        name.file
    }

    /// Returns a hash of the tracked paths, ids, modes and flags, but not of the stats.
    pub(super) fn tracking(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        for entry in self.state.entries() {
            let intent = entry.flags.contains(Flags::INTENT_TO_ADD);
            let path: &[u8] = entry.path(&self.state);
            (
                path,
                entry.id,
                entry.mode.bits(),
                entry.stage() as u8,
                frozen(entry),
                intent,
            )
                .hash(&mut hash);
        }

        hash.finish()
    }

    /// Returns whether git ignores changes of one of these entries.
    pub(super) fn any_frozen(&self, entries: Range<usize>) -> bool {
        self.state.entries()[entries]
            .iter()
            .any(|entry| frozen(entry).is_some())
    }
}

impl<'i> Names<'i> {
    /// Sorts by name and merges duplicates: in the index, entries below directory `a` come after
    /// the file `a-b`.
    fn new(mut names: Vec<(Cow<'i, [u8]>, Name)>) -> Names<'i> {
        names.sort_by(|(a, _), (b, _)| a.cmp(b));
        names.dedup_by(|(later, more), (name, merged)| {
            let is_same = later == name;
            if is_same {
                merged.file = merged.file.or(more.file);
                merged.children.start = merged.children.start.max(more.children.start);
                merged.children.end = merged.children.end.max(more.children.end);
            }
            is_same
        });

        Names { names, next: 0 }
    }

    pub(super) fn of_tree(tree: &gix::Tree<'_>) -> anyhow::Result<Names<'static>> {
        let mut names = Vec::new();
        for entry in tree.iter() {
            let entry = entry.during("reading a folder of a sparse index")?;
            let file = Tracked {
                id: entry.id().detach(),
                mode: entry.mode().into(),
                stat: Stat::default(),
                frozen: Some(Frozen::LeftOut),
                is_settled: true,
            };
            let name = Name {
                file: Some(file),
                children: 0..0,
            };
            names.push((Cow::Owned(entry.filename().to_vec()), name));
        }
        Ok(Names::new(names))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Removes and returns the entries of a name. Fast if the names are requested in order.
    pub(super) fn take(&mut self, name: &[u8]) -> Name {
        let is_next = self
            .names
            .get(self.next)
            .is_some_and(|(n, _)| n.as_ref() == name);
        let at = if is_next {
            Ok(self.next)
        } else {
            self.names
                .binary_search_by(|(candidate, _)| candidate.as_ref().cmp(name))
        };

        let Ok(at) = at else { return Name::default() };
        self.next = at + 1;
        std::mem::take(&mut self.names[at].1)
    }

    /// Returns all names; those that were taken are empty.
    pub(super) fn into_remaining(self) -> impl Iterator<Item = (Cow<'i, [u8]>, Name)> {
        self.names.into_iter()
    }
}

fn add_child(name: &mut Name, at: usize) {
    let children = &mut name.children;
    *children = if Range::is_empty(children) {
        at..at + 1
    } else {
        children.start..at + 1
    };
}

/// Adds one stage of a path. The user's own side of a conflict wins.
fn add_file(name: &mut Name, entry: &Entry) {
    let stage = entry.stage();
    if name.file.is_some() && stage != Stage::Ours {
        return;
    }

    name.file = Some(Tracked {
        id: entry.id,
        mode: entry.mode,
        stat: entry.stat,
        frozen: frozen(entry),
        is_settled: stage == Stage::Unconflicted && !entry.flags.contains(Flags::INTENT_TO_ADD),
    });
}

fn frozen(entry: &Entry) -> Option<Frozen> {
    let is_plain =
        entry.stage() == Stage::Unconflicted && !entry.flags.contains(Flags::INTENT_TO_ADD);
    match entry.flags {
        flags if is_plain && flags.contains(Flags::SKIP_WORKTREE) => Some(Frozen::LeftOut),
        flags if is_plain && flags.contains(Flags::ASSUME_VALID) => Some(Frozen::Assumed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracking(path: &str, id: u8, mode: Mode, (flags, mtime): (Flags, u32)) -> u64 {
        let mut state = State::new(gix::hash::Kind::Sha1);
        let mut stat = Stat::default();
        stat.mtime.secs = mtime;
        state.dangerously_push_entry(
            stat,
            ObjectId::from_bytes_or_panic(&[id; 20]),
            flags,
            mode,
            path.into(),
        );
        Index { state }.tracking()
    }

    #[test]
    fn names_of_a_folder_are_in_their_order_and_joined() {
        let mut state = State::new(gix::hash::Kind::Sha1);
        let id = |byte| ObjectId::from_bytes_or_panic(&[byte; 20]);
        let paths = ["d/a", "d/a-b", "d/a/x", "d/a/y", "d/b", "d/b", "d/c/z"];
        for (at, path) in paths.into_iter().enumerate() {
            let stage = match at {
                4 => Stage::Base,
                5 => Stage::Ours,
                _ => Stage::Unconflicted,
            };
            let flags = Flags::from_stage(stage);
            let id = id(at as u8);
            state.dangerously_push_entry(Stat::default(), id, flags, Mode::FILE, path.into());
        }
        let index = Index { state };
        let summary = |name: &Name| (name.file.map(|file| file.id), name.children.clone());

        let mut names = index.names(b"d", index.entries_in(b"d"));
        assert!(!names.is_empty());
        assert_eq!(summary(&names.take(b"b")), (Some(id(5)), 0..0));
        assert_eq!(summary(&names.take(b"a")), (Some(id(0)), 2..4));
        assert_eq!(summary(&names.take(b"a")), (None, 0..0));
        assert_eq!(summary(&names.take(b"aa")), (None, 0..0));
        let remaining: Vec<_> = names
            .into_remaining()
            .map(|(n, name)| (n.into_owned(), summary(&name)))
            .collect();
        let expected = [
            (b"a".to_vec(), (None, 0..0)),
            (b"a-b".to_vec(), (Some(id(1)), 0..0)),
            (b"b".to_vec(), (None, 0..0)),
            (b"c".to_vec(), (None, 6..7)),
        ];
        assert_eq!(remaining, expected);
        assert_eq!(index.file(b"d/b").map(|file| file.id), Some(id(5)));
        assert!(index.file(b"d/c").is_none());
    }

    #[test]
    fn what_is_tracked_has_a_hash_and_times_have_no_part_in_it() {
        let none = Flags::empty();
        let one = tracking("a", 1, Mode::FILE, (none, 1));
        assert_eq!(tracking("a", 1, Mode::FILE, (none, 2)), one);
        let others = [
            tracking("b", 1, Mode::FILE, (none, 1)),
            tracking("a", 2, Mode::FILE, (none, 1)),
            tracking("a", 1, Mode::FILE_EXECUTABLE, (none, 1)),
            tracking("a", 1, Mode::COMMIT, (none, 1)),
            tracking("a", 1, Mode::FILE, (Flags::SKIP_WORKTREE, 1)),
            tracking("a", 1, Mode::FILE, (Flags::ASSUME_VALID, 1)),
            tracking("a", 1, Mode::FILE, (Flags::INTENT_TO_ADD, 1)),
            tracking("a", 1, Mode::FILE, (Flags::from_stage(Stage::Ours), 1)),
            Index {
                state: State::new(gix::hash::Kind::Sha1),
            }
            .tracking(),
        ];
        others
            .iter()
            .enumerate()
            .for_each(|(number, other)| assert_ne!(*other, one, "{number}"));
    }
}
