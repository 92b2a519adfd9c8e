//! Differences between two trees by path, without rename detection.
//!
//! Fails with [`TooDifferent`] beyond a limit: a small tree can unfold to any number of paths.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use anyhow::Context as _;
use gix::ObjectId;
use gix::bstr::BStr;
use gix::objs::tree::EntryRef;
use gix::objs::{Kind, WriteTo};

pub use crate::git::object::id::TreeChange;

use super::During;
use super::paths;
use super::repository::Repository;
use crate::git::command::run_checked;
use crate::git::object::tree::StoredTree;
use crate::git::object::writer::Sink;
use crate::git::object::{EntryMode, TreeEntry, TreeId, absent};

/// The trees differ in more paths than are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "they differ in more than {} files and directories, or {} MiB of paths",
    MOST_CHANGES,
    MOST_PATH_BYTES >> 20
)]
pub struct TooDifferent;

/// Returns the files, symlinks and submodules that differ between two trees, sorted by path. Fails
/// with [`TooDifferent`] beyond the limits.
pub fn changes(
    repository: &Repository,
    old: TreeId,
    new: TreeId,
) -> anyhow::Result<Vec<TreeChange>> {
    if old == new {
        return Ok(Vec::new());
    }
    if let Some(cached) = repository.memory.changes([old, new]) {
        return Ok(cached);
    }

    let comparison = compare_trees(repository, old, new, MOST_CHANGES)?;
    let changes = comparison.changes.into_iter();
    let changes = changes.filter(|(_, [old, new])| old != new);
    let changes: Vec<TreeChange> = changes
        .map(|(path, [old, new])| TreeChange { path, old, new })
        .collect();
    repository.memory.keep_changes([old, new], &changes);
    Ok(changes)
}

/// Returns the number of files and directories that differ. Fails with [`TooDifferent`] beyond the
/// limits, or if it is more than `most`.
pub fn count_changes(
    repository: &Repository,
    old: TreeId,
    new: TreeId,
    most: usize,
) -> anyhow::Result<usize> {
    if old == new {
        return Ok(0);
    }
    Ok(compare_trees(repository, old, new, most.min(MOST_CHANGES))?.noted)
}

/// Writes a copy of `base` with these paths replaced, or deleted if `None`.
pub fn tree_with(
    repository: &Repository,
    base: TreeId,
    edits: &BTreeMap<Vec<u8>, Option<TreeEntry>>,
) -> anyhow::Result<TreeId> {
    let sink = Sink::new(repository);
    let tree = tree_into(repository, &sink, base, edits)?;
    sink.finish(repository)?;
    Ok(tree)
}

/// Like [`tree_with`], but adds the trees to `sink`.
pub(in crate::git) fn tree_into(
    repository: &Repository,
    sink: &Sink,
    base: TreeId,
    edits: &BTreeMap<Vec<u8>, Option<TreeEntry>>,
) -> anyhow::Result<TreeId> {
    let root = absent::find(|| repository.gix.find_tree(base.0))
        .during(format_args!("reading tree {base}"))?;
    let root = root
        .decode()
        .during(format_args!("reading tree {base}"))?
        .into();
    let mut editor =
        gix::objs::tree::Editor::new(root, &repository.gix.objects, repository.gix.object_hash());

    // Deletions first: a file can become a directory or vice versa. `remove_if_leaf` leaves a
    // directory in place of the file alone.
    for path in edits
        .iter()
        .filter(|(_, entry)| entry.is_none())
        .map(|(path, _)| path)
    {
        editor
            .remove_if_leaf(components(path))
            .during("editing a tree")?;
    }

    for (path, entry) in edits {
        let Some(entry) = entry else { continue };
        editor
            .upsert(components(path), entry.mode, entry.id)
            .during("editing a tree")?;
    }

    let written = editor.write(|tree| {
        let mut bytes = Vec::new();
        tree.write_to(&mut bytes)?;
        sink.add(Kind::Tree, bytes)
    });
    written.map(TreeId)
}

fn components(path: &[u8]) -> impl Iterator<Item = &BStr> {
    path.split(|&byte| byte == b'/').map(BStr::new)
}

// Compares two trees in step. Equal entries are skipped bytewise, so a large directory costs
// little more than reading it.

/// Limit on the number of differing files and directories: a tree of a few hundred bytes can
/// contain the same subtree many times on each level.
pub const MOST_CHANGES: usize = 1_000_000;

/// Limit on the total length of their paths in bytes.
const MOST_PATH_BYTES: usize = 128 << 20;

#[derive(Default)]
struct Comparison {
    /// Directories still to compare: path, and tree on each side.
    dirs: Vec<(Vec<u8>, [Option<ObjectId>; 2])>,
    /// Path -> entry on each side.
    changes: BTreeMap<Vec<u8>, [Option<TreeEntry>; 2]>,
    most: usize,
    noted: usize,
    path_bytes: usize,
}

fn compare_trees(
    repository: &Repository,
    old: TreeId,
    new: TreeId,
    most: usize,
) -> anyhow::Result<Comparison> {
    let mut comparison = Comparison {
        most,
        ..Comparison::default()
    };
    let top = (Vec::new(), [Some(old.0), Some(new.0)]);
    comparison.dirs.push(top);
    while let Some((path, trees)) = comparison.dirs.pop() {
        let compared = comparison.compare_dir(repository, &path, trees);
        compared.context("comparing two trees")?;
    }
    Ok(comparison)
}

impl Comparison {
    fn compare_dir(
        &mut self,
        repository: &Repository,
        path: &[u8],
        trees: [Option<ObjectId>; 2],
    ) -> anyhow::Result<()> {
        let hash = repository.gix.object_hash();
        let [old, new] = trees.map(|tree| match tree {
            Some(id) => repository.stored_tree(id),
            None => Ok(Arc::new(StoredTree::empty(hash))),
        });
        let (old, new) = (old?, new?);
        let (mut before, mut after) = (old.entries(), new.entries());

        loop {
            let (a, b) = (before.peek()?, after.peek()?);
            // Equal bytes mean equal name, mode and id.
            if a == b {
                if a.is_none() {
                    return Ok(());
                }
                before.pass(a);
                after.pass(b);
                continue;
            }

            let old = a.map(|raw| before.decoded(raw)).transpose()?;
            let new = b.map(|raw| after.decoded(raw)).transpose()?;
            let order = match (&old, &new) {
                (Some(old), Some(new)) => old.cmp(new),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            let is_old = order != Ordering::Greater;
            let is_new = order != Ordering::Less;
            self.note(path, [old.filter(|_| is_old), new.filter(|_| is_new)])?;
            before.pass(a.filter(|_| is_old));
            after.pass(b.filter(|_| is_new));
        }
    }

    fn note(&mut self, dir: &[u8], sides: [Option<EntryRef<'_>>; 2]) -> Result<(), TooDifferent> {
        let Some(entry) = sides.iter().flatten().next() else {
            return Ok(());
        };
        let path = paths::join(dir, entry.filename);
        self.count(&path)?;

        let trees = sides.map(|side| side.filter(|entry| entry.mode.is_tree()));
        if trees.iter().any(Option::is_some) {
            let trees = trees.map(|tree| tree.map(|entry| entry.oid.to_owned()));
            self.dirs.push((path.clone(), trees));
        }

        let [old, new] = sides.map(leaf_entry);
        if old.is_some() || new.is_some() {
            // A file and a directory of the same name sort differently, so each side can arrive in
            // its own call.
            let recorded = self.changes.entry(path).or_default();
            let [known_old, known_new] = std::mem::take(recorded);
            *recorded = [known_old.or(old), known_new.or(new)];
        }
        Ok(())
    }

    fn count(&mut self, path: &[u8]) -> Result<(), TooDifferent> {
        self.noted += 1;
        self.path_bytes += path.len();
        match self.noted <= self.most && self.path_bytes <= MOST_PATH_BYTES {
            true => Ok(()),
            false => Err(TooDifferent),
        }
    }
}

/// Converts an entry; `None` for a tree.
fn leaf_entry(entry: Option<EntryRef<'_>>) -> Option<TreeEntry> {
    let entry = entry?;
    let (mode, id) = (EntryMode::from(entry.mode), entry.oid.to_owned());
    (mode != EntryMode::Tree).then_some(TreeEntry { mode, id })
}

/// Total length of paths that certainly fits into a command line.
const MAX_STAT_PATH_BYTES: usize = 1 << 20;

pub fn render_diffstat(
    repository: &Repository,
    old: TreeId,
    new: TreeId,
    width: usize,
    paths: &[Vec<u8>],
) -> anyhow::Result<String> {
    let mut git = repository.git()?;
    // Show letters of all languages as they are. Control characters are still quoted.
    git.args(["-c", "core.quotePath=false"]);
    git.args(["--literal-pathspecs", "diff", &format!("--stat={width}")])
        .args(["--no-ext-diff", "--no-textconv", "--ignore-submodules=none"])
        .args(["--no-color", "--no-renames", "--end-of-options"])
        .args([old.to_string(), new.to_string()]);
    // Paths that don't fit into a command line are nearly all paths, so compare all.
    if paths.iter().map(Vec::len).sum::<usize>() <= MAX_STAT_PATH_BYTES {
        git.arg("--");
        git.args(paths.iter().map(|path| OsStr::from_bytes(path)));
    }

    let output = run_checked(&mut git, "compare the trees")?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

#[cfg(test)]
mod tests;
