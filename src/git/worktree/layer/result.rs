//! What commands did, read from their layer: a tree like the one that they began at, with what the
//! layer has in it and without what it hides.

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

/// Files that say what git does with others.
const RULES: [&str; 2] = [".gitignore", ".gitattributes"];
/// git itself refuses larger ones.
const MAX_RULES: u64 = 100 << 20;
/// The private index of a layer is of no use to the next one.
const SEEN: &str = "layer-seen";

/// What is in a layer.
#[derive(Default)]
struct LayerNames {
    /// Files and what else is no folder.
    leaves: Vec<Vec<u8>>,
    /// What is gone.
    gone: Vec<Vec<u8>>,
    /// Folders.
    folders: Vec<Vec<u8>>,
    /// Those among them that hide the one below.
    opaque: Vec<Vec<u8>>,
    /// Repositories of the user's within.
    repositories: Vec<Vec<u8>>,
    /// Files of rules that lie below and count here, too.
    rules: Vec<Vec<u8>>,
}

/// A layer, which is looked at after commands ran.
pub struct LayerScan<'a> {
    /// The worktree.
    pub worktree: &'a SessionWorktree,
    /// The repository of the user's files below.
    pub user: &'a Repository,
    /// The tree of these files.
    pub base: TreeId,
}

impl LayerScan<'_> {
    /// Records what is in the layer, on the tree that it lies on.
    ///
    /// # Errors
    /// As for [`snapshot::snapshot`].
    pub fn snapshot(&self, limits: &SnapshotLimits, force: &[Forced]) -> anyhow::Result<Snapshot> {
        let (worktree, files) = (self.worktree, &self.worktree.files);
        let top = Root::open_strictly(files)?;
        let names = self.names(&top)?;
        let known = self.known(&names)?;
        // What is gone is known by now, and no file for whoever looks.
        let is_known = |path: &&Vec<u8>| known.contains_key(path.as_slice()) || is_rules(path);
        for path in names.gone.iter().filter(is_known) {
            std::fs::remove_file(place(files, path))?;
        }

        let lent = self.lend_rules(&top, &names.rules)?;
        let tracked = tracked(self.user, &self.with_insides(&known)?)?;
        worktree.repository.loaded.take_for_users(tracked);
        let seen = worktree.record.layer_index().with_file_name(SEEN);
        let taken = snapshot::snapshot(&worktree.repository, &seen, limits, force);
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
        // One below an ignored folder may be seen by rules that the commands changed.
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

    /// Returns the names in the layer, besides what git ignores anyway.
    fn names(&self, top: &Root) -> anyhow::Result<LayerNames> {
        let mut rules = LazyRules::new(self.user);
        let mut names = LayerNames::default();
        // With whether something of the user's can be seen in the folder.
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

    /// Notes what of the user's folder below counts for a folder of the layer: that it is a
    /// repository, and its rules.
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

    /// Puts the user's files of rules into the layer as long as it is looked at; returns them.
    fn lend_rules(&self, top: &Root, rules: &[Vec<u8>]) -> anyhow::Result<BTreeSet<Vec<u8>>> {
        let below = Root::open(self.user.workdir())?;
        let mut lent = BTreeSet::new();
        for path in rules {
            let at = Path::new(OsStr::from_bytes(path));
            // What cannot be read is no rule for anybody.
            if let Ok(text) = below.read(at, MAX_RULES)
                && top.create_new(at, &text, FileMode::Plain).is_ok()
            {
                lent.insert(path.clone());
            }
        }
        Ok(lent)
    }

    /// Returns what the tree has at the names of the layer.
    fn known<'n>(&self, names: &'n LayerNames) -> anyhow::Result<BTreeMap<&'n [u8], TreeEntry>> {
        let all = names.leaves.iter().chain(&names.gone).chain(&names.folders);
        self.worktree
            .repository
            .entries_at(self.base, &all.map(Vec::as_slice).collect())
    }

    /// Adds a file of each folder of the tree in which the commands made a repository: git tracks
    /// what is in it, and takes no such folder for an embedded repository.
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

    /// Returns the removal of everything that the layer hides.
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

        // A folder in the place of a file; a repository within is opaque and stays.
        for path in &names.folders {
            let entry = known.get(path.as_slice());
            if entry.is_some_and(|it| !matches!(it.mode, EntryMode::Tree | EntryMode::Gitlink)) {
                edits.insert(path.clone(), None);
            }
        }
        Ok(edits)
    }
}

/// Returns an index with those names of the layer that the tree has: what else it has is not looked
/// for in the layer.
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

/// Returns whether a path is called as files of rules are.
fn is_rules(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    RULES.iter().any(|rules| rules.as_bytes() == name)
}

/// Returns whether a path lies below a folder.
fn is_below(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with(b"/"))
}
