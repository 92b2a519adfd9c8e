//! Converts a layer to a tree: the tree that the commands started from, with the layer's files and
//! without what it hides.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::bstr::ByteSlice as _;
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stat};

use super::{MAX_IGNORED, path_in};
use crate::git::diff;
use crate::git::ignore::LazyRules;
use crate::git::keep::damaged::FsTime;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::paths;
use crate::git::repository::Repository;
use crate::git::snapshot;
use crate::git::snapshot::Snapshot;
use crate::git::snapshot::limits::{Forced, SnapshotLimits, display_path};
use crate::git::sparse::Hidden;
use crate::git::worktree::SessionWorktree;
use crate::git::worktree::index::hide_sparse;
use crate::git::worktree::index::mode as index_mode;
use crate::git::worktree::layer::{LayerEntry, is_whiteout, list_layer_dir};
use crate::git::worktree::root::GIT;
use crate::host::file::{FileMode, Root, remove_file};

const RULES: [&str; 2] = [".gitignore", ".gitattributes"];
/// git refuses larger ones.
const MAX_RULES: u64 = 100 << 20;
/// Private index of the snapshot. It is removed afterwards.
const SNAPSHOT_INDEX: &str = "layer-seen";

#[derive(Default)]
struct LayerNames {
    /// Everything that is not a directory or whiteout.
    leaves: Vec<Vec<u8>>,
    whiteouts: Vec<Vec<u8>>,
    dirs: Vec<Vec<u8>>,
    /// Subset of `dirs` that hides the directory below.
    opaque: Vec<Vec<u8>>,
    /// The user's nested repositories.
    repositories: Vec<Vec<u8>>,
    /// Rule files of the lower directory that apply in the layer.
    rules: Vec<Vec<u8>>,
}

/// A layer after commands ran.
pub struct LayerScan<'a> {
    pub worktree: &'a SessionWorktree,
    pub user: &'a Repository,
    /// Tree from which the commands started.
    pub base: TreeId,
}

/// Ignored files of the user's whose change stays in the layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedIgnored {
    /// One of them.
    pub path: Vec<u8>,
    /// How many there are, as far as they were counted.
    pub count: usize,
}

impl LayerScan<'_> {
    /// Finds ignored files of the user's that commands changed or deleted since a moment. Reads at
    /// most [`MAX_IGNORED`] names. `None` if there are none.
    pub fn changed_ignored(&self, since: FsTime) -> anyhow::Result<Option<ChangedIgnored>> {
        let files = &self.worktree.files;
        let top = Root::open_strictly(files)?;
        let mut rules = LazyRules::new(self.user);
        // Directories with whether git ignores them.
        let (mut dirs, mut seen) = (vec![(Vec::new(), false)], 0);
        let mut changed: Option<ChangedIgnored> = None;
        while let Some((path, ignored)) = dirs.pop() {
            let Some(dir) = list_layer_dir(&top, files, &path) else {
                continue;
            };
            for (name, entry) in &dir.names {
                seen += 1;
                if seen > MAX_IGNORED {
                    return Ok(changed);
                }
                let path = paths::join(&path, name.as_bytes());
                let is_dir = matches!(entry, LayerEntry::Dir { .. });
                let mode = if is_dir { Mode::DIR } else { Mode::FILE };
                let ignored = ignored || rules.ignores(&path, mode)?;
                if is_dir {
                    dirs.push((path, ignored));
                } else if ignored
                    && *entry == LayerEntry::Leaf
                    && self.shadows(&path)
                    && !self.worktree.is_older(&path, since)
                {
                    let changed = changed.get_or_insert(ChangedIgnored { path, count: 0 });
                    changed.count += 1;
                }
            }
        }

        Ok(changed)
    }

    /// Returns whether the user has a file at this path, and the base tree has none.
    fn shadows(&self, path: &[u8]) -> bool {
        let is_there = path_in(self.user.workdir(), path)
            .symlink_metadata()
            .is_ok();
        is_there && matches!(self.user.entry(self.base, path), Ok(None))
    }

    /// Records the layer on top of its base tree.
    pub fn snapshot(&self, limits: &SnapshotLimits, force: &[Forced]) -> anyhow::Result<Snapshot> {
        let (worktree, files) = (self.worktree, &self.worktree.files);
        worktree.open_up_files()?;
        let top = Root::open_strictly(files)?;
        let names = self.names(&top)?;
        let recorded = self.recorded_entries(&names)?;
        // Whiteouts are known by now. The snapshot would report them as special files.
        let is_known = |path: &&Vec<u8>| recorded.contains_key(path.as_slice()) || is_rules(path);
        for path in names.whiteouts.iter().filter(is_known) {
            std::fs::remove_file(path_in(files, path))?;
        }

        // gix reads rule files in the layer only, but those of the lower directory apply too.
        let lent = self.lend_rules(&top, &names.rules)?;
        let tracked = tracked(self.user, &self.with_insides(&recorded)?)?;
        // The snapshot uses this index in place of the user's.
        worktree.repository.loaded.take_for_users(tracked);
        let index = worktree.record.layer_index().with_file_name(SNAPSHOT_INDEX);
        let result = snapshot::take_snapshot(&worktree.repository, &index, limits, force);
        // Also if the snapshot failed: the copies must not stay in the layer.
        for path in &lent {
            remove_file(&top, Path::new(OsStr::from_bytes(path)))?;
        }
        snapshot::forget_snapshot(&worktree.repository, &index);
        let mut new_snapshot = result?;

        let mut edits = self.removals(&names, &recorded)?;
        for leaf in worktree.repository.leaves(new_snapshot.tree)? {
            let is_within = |dir: &Vec<u8>| is_below(&leaf.path, dir);
            if lent.contains(&leaf.path) || names.repositories.iter().any(is_within) {
                continue;
            }
            edits.insert(
                leaf.path,
                Some(TreeEntry {
                    mode: leaf.mode,
                    id: leaf.id,
                }),
            );
        }

        new_snapshot.tree = diff::tree_with(&worktree.repository, self.base, &edits)?;
        // A whiteout in a directory that was ignored can appear if commands changed the rules.
        let is_gone = |path: &str| is_whiteout(files, path.as_bytes());
        let is_nested = |path: &str| {
            let dirs = names.repositories.iter();
            dirs.map(|dir| display_path(dir))
                .any(|dir| is_below(path.as_bytes(), dir.as_bytes()))
        };
        new_snapshot
            .left_out
            .retain(|omitted| !is_gone(&omitted.path) && !is_nested(&omitted.path));
        Ok(new_snapshot)
    }

    /// Lists the layer, except in ignored directories.
    fn names(&self, top: &Root) -> anyhow::Result<LayerNames> {
        let mut rules = LazyRules::new(self.user);
        let mut names = LayerNames::default();
        // Directories with whether the user's directory is visible through them.
        let mut dirs = vec![(Vec::new(), true)];
        while let Some((path, shows)) = dirs.pop() {
            let Some(dir) = list_layer_dir(top, &self.worktree.files, &path) else {
                continue;
            };
            if shows {
                self.check_lower(&dir.path, &dir.names, &mut names);
            }

            let paths = dir.paths();
            let path_set: BTreeSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
            let recorded = self.worktree.repository.entries_at(self.base, &path_set)?;
            for ((_, entry), path) in dir.names.iter().zip(&paths) {
                match *entry {
                    LayerEntry::Whiteout => names.whiteouts.push(path.clone()),
                    LayerEntry::Leaf => names.leaves.push(path.clone()),
                    LayerEntry::Dir { opaque } => {
                        names.dirs.push(path.clone());
                        names.opaque.extend(opaque.then(|| path.clone()));
                        let is_of_tree = recorded.contains_key(path.as_slice());
                        let ignored = !is_of_tree && rules.ignores(path, Mode::DIR)?;
                        if !ignored {
                            dirs.push((path.clone(), shows && !opaque));
                        }
                    }
                }
            }
        }

        Ok(names)
    }

    /// Records the state of the user's directory that applies to one of the layer: nested
    /// repository, rule files.
    fn check_lower(
        &self,
        path: &[u8],
        entries: &[(std::ffi::OsString, LayerEntry)],
        names: &mut LayerNames,
    ) {
        let under = path_in(self.user.workdir(), path);
        let has = |name: &str| entries.iter().any(|(listed, _)| listed == name);
        // For git, a directory with tracked files is not a repository.
        let is_tree = || {
            let entry = self.worktree.repository.entry(self.base, path);
            matches!(entry, Ok(Some(entry)) if entry.mode == EntryMode::Tree)
        };
        if !path.is_empty() && under.join(GIT).symlink_metadata().is_ok() && !is_tree() {
            // Nothing in it is recorded. Its times show whether a command worked there.
            names.repositories.push(path.to_vec());
            return;
        }
        for name in RULES.iter().filter(|name| !has(name)) {
            let is_file = under
                .join(name)
                .symlink_metadata()
                .is_ok_and(|file| file.is_file());
            names
                .rules
                .extend(is_file.then(|| paths::join(path, name.as_bytes())));
        }
    }

    /// Copies the user's rule files into the layer for the duration of the snapshot; returns their
    /// paths.
    fn lend_rules(&self, top: &Root, rules: &[Vec<u8>]) -> anyhow::Result<BTreeSet<Vec<u8>>> {
        let lower = Root::open(self.user.workdir())?;
        let mut lent = BTreeSet::new();
        for path in rules {
            let at = Path::new(OsStr::from_bytes(path));
            // A file that cannot be read contains no rules for git either.
            if let Ok(text) = lower.read(at, MAX_RULES)
                && top.create_new(at, &text, FileMode::Plain).is_ok()
            {
                lent.insert(path.clone());
            }
        }
        Ok(lent)
    }

    /// Returns the base tree's entries for the layer's names.
    fn recorded_entries<'n>(
        &self,
        names: &'n LayerNames,
    ) -> anyhow::Result<BTreeMap<&'n [u8], TreeEntry>> {
        let all = names
            .leaves
            .iter()
            .chain(&names.whiteouts)
            .chain(&names.dirs);
        self.worktree
            .repository
            .entries_at(self.base, &all.map(Vec::as_slice).collect())
    }

    /// Adds one file of each tracked directory in which commands created a `.git`. With a tracked
    /// file in it, the snapshot does not treat the directory as a nested repository.
    fn with_insides(
        &self,
        recorded: &BTreeMap<&[u8], TreeEntry>,
    ) -> anyhow::Result<BTreeMap<Vec<u8>, TreeEntry>> {
        let repository = &self.worktree.repository;
        let mut all: BTreeMap<Vec<u8>, TreeEntry> = BTreeMap::new();
        for (path, entry) in recorded {
            all.insert(path.to_vec(), entry.clone());
            let inside = path_in(&self.worktree.files, path);
            if entry.mode == EntryMode::Tree && inside.join(GIT).symlink_metadata().is_ok() {
                let first = repository.leaves(TreeId(entry.id))?.into_iter().next();
                all.extend(first.map(|leaf| {
                    let (mode, id) = (leaf.mode, leaf.id);
                    let path = paths::join(path, &leaf.path);
                    (path, TreeEntry { mode, id })
                }));
            }
        }
        Ok(all)
    }

    fn removals(
        &self,
        names: &LayerNames,
        recorded: &BTreeMap<&[u8], TreeEntry>,
    ) -> anyhow::Result<BTreeMap<Vec<u8>, Option<TreeEntry>>> {
        let mut edits = BTreeMap::new();
        let left_out = Hidden::of(self.user)?;
        let hiding = names
            .leaves
            .iter()
            .chain(&names.whiteouts)
            .chain(&names.opaque);
        for path in hiding {
            let Some(entry) = recorded.get(path.as_slice()) else {
                continue;
            };
            if entry.mode != EntryMode::Tree {
                edits.insert(path.clone(), None);
                continue;
            }
            for leaf in self.worktree.repository.leaves(TreeId(entry.id))? {
                let path = [path.as_slice(), b"/", &leaf.path].concat();
                // Removing a directory keeps the files in it that a sparse checkout leaves out.
                if !left_out.has(&path) {
                    edits.insert(path, None);
                }
            }
        }

        // A directory in place of a file. A nested repository is opaque and stays.
        for path in &names.dirs {
            let entry = recorded.get(path.as_slice());
            if entry.is_some_and(|it| !matches!(it.mode, EntryMode::Tree | EntryMode::Commit)) {
                edits.insert(path.clone(), None);
            }
        }

        // A file that only the earlier state has leaves no whiteout when a command deletes it.
        let repository = &self.worktree.repository;
        let lower = self.worktree.lower.as_ref().map(|lower| lower.tree);
        let leaves: BTreeSet<_> = names.leaves.iter().collect();
        for change in diff::changes(repository, lower.unwrap_or(self.base), self.base)? {
            let is_file = (change.new.as_ref()).is_some_and(|new| new.mode != EntryMode::Commit);
            if change.old.is_none()
                && is_file
                && !left_out.has(&change.path)
                && !leaves.contains(&change.path)
            {
                edits.insert(change.path, None);
            }
        }
        Ok(edits)
    }
}

/// Returns an index with those names of the layer that the tree has. Other tracked files must not
/// be expected in the layer.
fn tracked(user: &Repository, recorded: &BTreeMap<Vec<u8>, TreeEntry>) -> anyhow::Result<State> {
    let mut state = State::new(user.gix.object_hash());
    for (path, entry) in recorded {
        if let Some(mode) = index_mode(entry.mode) {
            let (stat, flags, path) = (Stat::default(), Flags::empty(), path.as_bstr());
            state.dangerously_push_entry(stat, entry.id, flags, mode, path);
        }
    }

    state.sort_entries();
    hide_sparse(user, &mut state)?;
    Ok(state)
}

fn is_rules(path: &[u8]) -> bool {
    let (_, name) = paths::split(path);
    RULES.iter().any(|rules| rules.as_bytes() == name)
}

fn is_below(path: &[u8], dir: &[u8]) -> bool {
    path.strip_prefix(dir)
        .is_some_and(|tail| tail.starts_with(b"/"))
}
