//! What the user's index tracks, read only, folder by folder.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode, Stage, Stat};
use gix::index::{Entry, State};
use gix::objs::tree::EntryKind;

use crate::git::During;

/// The user's index.
pub(in crate::git) struct Index {
    /// The decoded index; empty where there is none.
    pub(in crate::git) state: State,
}

/// A tracked path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tracked {
    /// The object in the index.
    pub(super) id: ObjectId,
    /// What it is there.
    pub(super) mode: Mode,
    /// The file's stat when git last compared it.
    pub(super) stat: Stat,
    /// Whether git is told not to look at the file.
    pub(super) frozen: Option<Frozen>,
    /// Whether the id stands for the file's content: not where a merge or `add -N` left it open.
    pub(super) settled: bool,
}

/// Why git does not look at a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Frozen {
    /// It is not to be on disk: a sparse checkout leaves it out.
    LeftOut,
    /// It is assumed to be unchanged.
    Assumed,
}

/// What the index has at one name of a folder.
#[derive(Debug, Clone, Default)]
pub(super) struct Name {
    /// The file, link or submodule of this name.
    pub(super) file: Option<Tracked>,
    /// The entries below a folder of this name.
    pub(super) below: Range<usize>,
}

/// What the index has in a folder, in the order of the names.
#[derive(Default)]
pub(super) struct Names<'i> {
    /// The names.
    names: Vec<(Cow<'i, [u8]>, Name)>,
    /// The place after the name that was taken last.
    next: usize,
}

impl Index {
    /// Decodes the user's index; an empty one where there is none.
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

    /// Returns the entries below a folder.
    pub(super) fn below(&self, folder: &[u8]) -> Range<usize> {
        if folder.is_empty() {
            return 0..self.state.entries().len();
        }

        let mut prefix = folder.to_vec();
        prefix.push(b'/');
        self.state
            .prefixed_entries_range(prefix.as_bstr())
            .unwrap_or_default()
    }

    /// Returns the tree that a sparse index has instead of the files of a folder, or of one above
    /// it, and the path from there.
    pub(super) fn collapsed<'p>(&self, folder: &'p [u8]) -> Option<(ObjectId, &'p [u8])> {
        if folder.is_empty() || !self.state.is_sparse() {
            return None;
        }

        let ends = folder.find_iter("/").chain([folder.len()]);
        ends.into_iter().find_map(|end| {
            let path = [&folder[..end], b"/"].concat();
            let entry = self.state.entry_by_path(path.as_bstr())?;
            let rest = folder.get(end + 1..).unwrap_or_default();
            (entry.mode == Mode::DIR).then_some((entry.id, rest))
        })
    }

    /// Returns the names in a folder, of which these are the entries.
    pub(super) fn names(&self, folder: &[u8], entries: Range<usize>) -> Names<'_> {
        let skip = if folder.is_empty() {
            0
        } else {
            folder.len() + 1
        };

        let mut names: Vec<(Cow<'_, [u8]>, Name)> = Vec::new();
        for at in entries {
            let entry = &self.state.entries()[at];
            let rest = &entry.path(&self.state)[skip..];
            let end = rest.find_byte(b'/');
            let name = &rest[..end.unwrap_or(rest.len())];
            if names.last().is_none_or(|(last, _)| last.as_ref() != name) {
                names.push((Cow::Borrowed(name), Name::default()));
            }

            let Some((_, known)) = names.last_mut() else {
                continue;
            };
            match end {
                // A sparse index has whole folders as entries that end in a slash.
                Some(end) if end + 1 < rest.len() => add_below(known, at),
                _ => add_file(known, entry),
            }
        }

        Names::new(names)
    }

    /// Returns the file, link or submodule that the index has at a path.
    pub(super) fn file(&self, path: &[u8]) -> Option<Tracked> {
        let mut name = Name::default();
        // A sparse index has whole folders as entries that end in a slash.
        for path in [path, &[path, b"/"].concat()] {
            let range = self.state.entry_range(path.as_bstr()).unwrap_or_default();
            self.state.entries()[range]
                .iter()
                .for_each(|entry| add_file(&mut name, entry));
        }

        name.file
    }

    /// Returns a hash of all that is tracked and how; when git last compared the files is not in
    /// it.
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

    /// Returns whether git is told not to look at something among these entries.
    pub(super) fn any_frozen(&self, entries: Range<usize>) -> bool {
        self.state.entries()[entries]
            .iter()
            .any(|entry| frozen(entry).is_some())
    }
}

impl<'i> Names<'i> {
    /// Sorts names, of which a folder's come after files that sort before its slash, and joins what
    /// is said of one.
    fn new(mut names: Vec<(Cow<'i, [u8]>, Name)>) -> Names<'i> {
        names.sort_by(|(a, _), (b, _)| a.cmp(b));
        names.dedup_by(|(later, more), (name, known)| {
            let is_same = later == name;
            if is_same {
                known.file = known.file.or(more.file);
                known.below.start = known.below.start.max(more.below.start);
                known.below.end = known.below.end.max(more.below.end);
            }
            is_same
        });

        Names { names, next: 0 }
    }

    /// Returns the names of a tree that a sparse index has instead of its files.
    pub(super) fn of_tree(tree: &gix::Tree<'_>) -> anyhow::Result<Names<'static>> {
        let mut names = Vec::new();
        for entry in tree.iter() {
            let entry = entry.during("reading a folder of a sparse index")?;
            let mode = match entry.kind() {
                EntryKind::Tree => Mode::DIR,
                EntryKind::Blob => Mode::FILE,
                EntryKind::BlobExecutable => Mode::FILE_EXECUTABLE,
                EntryKind::Link => Mode::SYMLINK,
                EntryKind::Commit => Mode::COMMIT,
            };
            let file = Tracked {
                id: entry.id().detach(),
                mode,
                stat: Stat::default(),
                frozen: Some(Frozen::LeftOut),
                settled: true,
            };
            let name = Name {
                file: Some(file),
                below: 0..0,
            };
            names.push((Cow::Owned(entry.filename().to_vec()), name));
        }
        Ok(Names::new(names))
    }

    /// Returns whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Takes what is known of a name out; nothing where the index does not have it. What is asked
    /// for in the order of names is found at once.
    pub(super) fn take(&mut self, name: &[u8]) -> Name {
        let is_next = self
            .names
            .get(self.next)
            .is_some_and(|(n, _)| n.as_ref() == name);
        let at = if is_next {
            Ok(self.next)
        } else {
            self.names
                .binary_search_by(|(known, _)| known.as_ref().cmp(name))
        };

        let Ok(at) = at else { return Name::default() };
        self.next = at + 1;
        std::mem::take(&mut self.names[at].1)
    }

    /// Returns what was not taken; nothing is said of names that were.
    pub(super) fn into_rest(self) -> impl Iterator<Item = (Cow<'i, [u8]>, Name)> {
        self.names.into_iter()
    }
}

/// Notes an entry below a folder.
fn add_below(name: &mut Name, at: usize) {
    let below = &mut name.below;
    *below = if Range::is_empty(below) {
        at..at + 1
    } else {
        below.start..at + 1
    };
}

/// Notes one stage of a path; the user's own side of a conflict wins.
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
        settled: stage == Stage::Unconflicted && !entry.flags.contains(Flags::INTENT_TO_ADD),
    });
}

/// Returns why git is told not to look at the file of an entry, if it is.
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

    /// Returns the hash of an index with one path.
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
        let said = |name: &Name| (name.file.map(|file| file.id), name.below.clone());

        let mut names = index.names(b"d", index.below(b"d"));
        assert!(!names.is_empty());
        assert_eq!(said(&names.take(b"b")), (Some(id(5)), 0..0));
        assert_eq!(said(&names.take(b"a")), (Some(id(0)), 2..4));
        assert_eq!(said(&names.take(b"a")), (None, 0..0));
        assert_eq!(said(&names.take(b"aa")), (None, 0..0));
        let rest: Vec<_> = names
            .into_rest()
            .map(|(n, name)| (n.into_owned(), said(&name)))
            .collect();
        let expected = [
            (b"a".to_vec(), (None, 0..0)),
            (b"a-b".to_vec(), (Some(id(1)), 0..0)),
            (b"b".to_vec(), (None, 0..0)),
            (b"c".to_vec(), (None, 6..7)),
        ];
        assert_eq!(rest, expected);
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
