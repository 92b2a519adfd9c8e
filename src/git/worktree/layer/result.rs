//! Converts a layer to a tree: the tree that the commands started from, with the layer's files and
//! without what it hides.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use gix::bstr::ByteSlice as _;
use gix::index::State;
use gix::index::entry::{Flags, Mode, Stat};

use super::changes::{LayerEntry, is_whiteout, list};
use super::{below, place};
use crate::git::diff;
use crate::git::ignore::LazyRules;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::git::snapshot;
use crate::git::snapshot::Snapshot;
use crate::git::snapshot::limits::{Forced, SnapshotLimits, shown};
use crate::git::worktree::SessionWorktree;
use crate::git::worktree::index::mode as index_mode;
use crate::git::worktree::root::GIT;
use crate::git::worktree::sparse::hide;
use crate::host::file::{FileMode, Root, remove_file};

const RULES: [&str; 2] = [".gitignore", ".gitattributes"];
/// git refuses larger ones.
const MAX_RULES: u64 = 100 << 20;
/// Private index of the snapshot. It is removed afterwards.
const SEEN: &str = "layer-seen";

#[derive(Default)]
struct LayerNames {
    /// Everything that is not a directory or whiteout.
    leaves: Vec<Vec<u8>>,
    /// Whiteouts.
    gone: Vec<Vec<u8>>,
    folders: Vec<Vec<u8>>,
    /// Subset of `folders` that hides the directory below.
    opaque: Vec<Vec<u8>>,
    /// The user's nested repositories.
    repositories: Vec<Vec<u8>>,
    /// Rule files of the lower directory that apply in the layer.
    rules: Vec<Vec<u8>>,
}

/// A layer after commands ran.
pub struct LayerScan<'a> {
    /// The session's worktree.
    pub worktree: &'a SessionWorktree,
    /// The user's repository, the lower directory.
    pub user: &'a Repository,
    /// Tree of the lower directory.
    pub base: TreeId,
}

impl LayerScan<'_> {
    /// Records the layer on top of its base tree.
    pub fn snapshot(&self, limits: &SnapshotLimits, force: &[Forced]) -> anyhow::Result<Snapshot> {
        let (worktree, files) = (self.worktree, &self.worktree.files);
        worktree.open_up_files()?;
        let top = Root::open_strictly(files)?;
        let names = self.names(&top)?;
        let known = self.known(&names)?;
        // Whiteouts are known by now. The snapshot would report them as special files.
        let is_known = |path: &&Vec<u8>| known.contains_key(path.as_slice()) || is_rules(path);
        for path in names.gone.iter().filter(is_known) {
            std::fs::remove_file(place(files, path))?;
        }

        // gix reads rule files in the layer only, but those of the lower directory apply too.
        let lent = self.lend_rules(&top, &names.rules)?;
        let tracked = tracked(self.user, &self.with_insides(&known)?)?;
        // The snapshot uses this index in place of the user's.
        worktree.repository.loaded.take_for_users(tracked);
        let seen = worktree.record.layer_index().with_file_name(SEEN);
        let taken = snapshot::snapshot(&worktree.repository, &seen, limits, force);
        // Also if the snapshot failed: the copies must not stay in the layer.
        for path in &lent {
            remove_file(&top, Path::new(OsStr::from_bytes(path)))?;
        }
        snapshot::forget(&worktree.repository, &seen);
        let mut taken = taken?;

        let mut edits = self.removals(&names, &known)?;
        for leaf in worktree.repository.leaves(taken.tree)? {
            let is_within = |folder: &Vec<u8>| is_below(&leaf.path, folder);
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

        taken.tree = diff::tree_with(&worktree.repository, self.base, &edits)?;
        // A whiteout in a directory that was ignored can appear if commands changed the rules.
        let is_gone = |path: &str| is_whiteout(files, path.as_bytes());
        let within = |path: &str| {
            let folders = names.repositories.iter();
            folders
                .map(|folder| shown(folder))
                .any(|folder| is_below(path.as_bytes(), folder.as_bytes()))
        };
        taken
            .left_out
            .retain(|left| !is_gone(&left.path) && !within(&left.path));
        Ok(taken)
    }

    /// Lists the layer, except in ignored directories.
    fn names(&self, top: &Root) -> anyhow::Result<LayerNames> {
        let mut rules = LazyRules::new(self.user);
        let mut names = LayerNames::default();
        // Directories with whether the user's directory is visible through them.
        let mut folders = vec![(Vec::new(), true)];
        while let Some((path, shows)) = folders.pop() {
            let Some(folder) = list(top, &self.worktree.files, &path) else {
                continue;
            };
            if shows {
                self.look_below(&folder.path, &folder.names, &mut names);
            }

            let paths: Vec<Vec<u8>> = folder
                .names
                .iter()
                .map(|(name, _)| below(&path, name))
                .collect();
            let asked: BTreeSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
            let known = self.worktree.repository.entries_at(self.base, &asked)?;
            for ((_, entry), path) in folder.names.iter().zip(&paths) {
                match *entry {
                    LayerEntry::Gone => names.gone.push(path.clone()),
                    LayerEntry::Leaf => names.leaves.push(path.clone()),
                    LayerEntry::Folder { opaque } => {
                        names.folders.push(path.clone());
                        names.opaque.extend(opaque.then(|| path.clone()));
                        let is_of_tree = known.contains_key(path.as_slice());
                        let ignored = !is_of_tree && rules.ignores(path, Mode::DIR)?;
                        if !ignored {
                            folders.push((path.clone(), shows && !opaque));
                        }
                    }
                }
            }
        }

        Ok(names)
    }

    /// Records the state of the user's directory that applies to one of the layer: nested
    /// repository, rule files.
    fn look_below(
        &self,
        path: &[u8],
        there: &[(std::ffi::OsString, LayerEntry)],
        names: &mut LayerNames,
    ) {
        let under = place(self.user.workdir(), path);
        let has = |name: &str| there.iter().any(|(known, _)| known == name);
        if !path.is_empty() && under.join(GIT).symlink_metadata().is_ok() {
            names.repositories.push(path.to_vec());
        }
        for name in RULES.iter().filter(|name| !has(name)) {
            let is_file = under
                .join(name)
                .symlink_metadata()
                .is_ok_and(|file| file.is_file());
            names
                .rules
                .extend(is_file.then(|| below(path, OsStr::new(name))));
        }
    }

    /// Copies the user's rule files into the layer for the duration of the snapshot; returns their
    /// paths.
    fn lend_rules(&self, top: &Root, rules: &[Vec<u8>]) -> anyhow::Result<BTreeSet<Vec<u8>>> {
        let below = Root::open(self.user.workdir())?;
        let mut lent = BTreeSet::new();
        for path in rules {
            let at = Path::new(OsStr::from_bytes(path));
            // A file that cannot be read contains no rules for git either.
            if let Ok(text) = below.read(at, MAX_RULES)
                && top.create_new(at, &text, FileMode::Plain).is_ok()
            {
                lent.insert(path.clone());
            }
        }
        Ok(lent)
    }

    /// Returns the base tree's entries for the layer's names.
    fn known<'n>(&self, names: &'n LayerNames) -> anyhow::Result<BTreeMap<&'n [u8], TreeEntry>> {
        let all = names.leaves.iter().chain(&names.gone).chain(&names.folders);
        self.worktree
            .repository
            .entries_at(self.base, &all.map(Vec::as_slice).collect())
    }

    /// Adds one file of each tracked directory in which commands created a `.git`. With a tracked
    /// file in it, the snapshot does not treat the directory as a nested repository.
    fn with_insides(
        &self,
        known: &BTreeMap<&[u8], TreeEntry>,
    ) -> anyhow::Result<BTreeMap<Vec<u8>, TreeEntry>> {
        let repository = &self.worktree.repository;
        let mut all: BTreeMap<Vec<u8>, TreeEntry> = BTreeMap::new();
        for (path, entry) in known {
            all.insert(path.to_vec(), entry.clone());
            let inside = place(&self.worktree.files, path);
            if entry.mode == EntryMode::Tree && inside.join(GIT).symlink_metadata().is_ok() {
                let first = repository.leaves(TreeId(entry.id))?.into_iter().next();
                all.extend(first.map(|leaf| {
                    let (mode, id) = (leaf.mode, leaf.id);
                    let path = below(path, OsStr::from_bytes(&leaf.path));
                    (path, TreeEntry { mode, id })
                }));
            }
        }
        Ok(all)
    }

    fn removals(
        &self,
        names: &LayerNames,
        known: &BTreeMap<&[u8], TreeEntry>,
    ) -> anyhow::Result<BTreeMap<Vec<u8>, Option<TreeEntry>>> {
        let mut edits = BTreeMap::new();
        let hiding = names.leaves.iter().chain(&names.gone).chain(&names.opaque);
        for path in hiding {
            let Some(entry) = known.get(path.as_slice()) else {
                continue;
            };
            if entry.mode != EntryMode::Tree {
                edits.insert(path.clone(), None);
                continue;
            }
            for leaf in self.worktree.repository.leaves(TreeId(entry.id))? {
                edits.insert([path.as_slice(), b"/", &leaf.path].concat(), None);
            }
        }

        // A directory in place of a file. A nested repository is opaque and stays.
        for path in &names.folders {
            let entry = known.get(path.as_slice());
            if entry.is_some_and(|it| !matches!(it.mode, EntryMode::Tree | EntryMode::Gitlink)) {
                edits.insert(path.clone(), None);
            }
        }
        Ok(edits)
    }
}

/// Returns an index with those names of the layer that the tree has. Other tracked files must not
/// be expected in the layer.
fn tracked(user: &Repository, known: &BTreeMap<Vec<u8>, TreeEntry>) -> anyhow::Result<State> {
    let mut state = State::new(user.gix.object_hash());
    for (path, entry) in known {
        if let Some(mode) = index_mode(entry.mode) {
            let (stat, flags, path) = (Stat::default(), Flags::empty(), path.as_bstr());
            state.dangerously_push_entry(stat, entry.id, flags, mode, path);
        }
    }

    state.sort_entries();
    hide(user, &mut state)?;
    Ok(state)
}

fn is_rules(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    RULES.iter().any(|rules| rules.as_bytes() == name)
}

fn is_below(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with(b"/"))
}
