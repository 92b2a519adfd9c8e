//! Applies a restore plan to a tree: merges each step three-way, so that the user's own edits
//! survive.
//!
//! Works on trees; writes no file. A path whose conflict was decided for the user is frozen: later
//! steps skip it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::restore_plan::{OnOverlap, PatchStep, Restore, RestorePlan};
use crate::git::merge::merge_trees;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::reclean::{alike, is_attributes, reclean};
use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::git::{diff, snapshot};
use crate::host::file::FileKind;
use crate::project::Project;
use crate::session::draft::Draft;
use crate::workspace::file_move::FileMove;
use crate::workspace::snapshot::RecordedFiles;
use crate::workspace::stack::Series;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RestoredFiles {
    pub tree: TreeId,
    /// Edits of the user's conflict with a step here.
    pub overlaps: BTreeSet<Vec<u8>>,
    /// Kept the user's side, and what is applied there.
    pub stopped: BTreeMap<Vec<u8>, Series>,
}

impl RestoredFiles {
    /// Without conflicts, whatever the user did.
    pub(super) fn exactly(tree: TreeId) -> RestoredFiles {
        RestoredFiles {
            tree,
            overlaps: BTreeSet::new(),
            stopped: BTreeMap::new(),
        }
    }
}

/// A restore that has nothing in its way: its turn can be recorded.
pub(super) struct FittedRestore<'a> {
    pub restore: &'a Restore<'a>,
    pub recorded: RecordedFiles,
    pub restored: RestoredFiles,
    /// On the requested paths.
    pub target: TreeId,
    pub files: FileMove,
    /// The turn in progress continues after this one and keeps its requests.
    pub waiting: Option<Draft>,
}

type PathEntries = BTreeMap<Vec<u8>, Option<TreeEntry>>;

/// Steps conflict on paths that are `unwritable`.
pub(super) fn apply_plan(
    project: &Project,
    now: TreeId,
    plan: &RestorePlan,
    on_overlap: OnOverlap,
    unwritable: &BTreeSet<Vec<u8>>,
) -> anyhow::Result<RestoredFiles> {
    let mut applier = Applier {
        project,
        plan,
        on_overlap,
        unwritable,
        parts: BTreeSet::new(),
        result: RestoredFiles::exactly(now),
    };
    let mut edits = PathEntries::new();

    for (steps, parts) in plan.routes() {
        applier.parts = parts;
        let tree = applier.apply_steps(now, steps)?;
        if plan.is_one() {
            applier.result.tree = tree;
            return Ok(applier.result);
        }
        edits.extend(applier.inside(now, tree)?);
    }

    applier.compose(now, edits)?;
    Ok(applier.result)
}

struct Applier<'a> {
    project: &'a Project,
    plan: &'a RestorePlan,
    on_overlap: OnOverlap,
    unwritable: &'a BTreeSet<Vec<u8>>,
    /// The parts to which the current steps belong.
    parts: BTreeSet<&'a [u8]>,
    result: RestoredFiles,
}

impl Applier<'_> {
    fn apply_steps(&mut self, now: TreeId, steps: &[PatchStep]) -> anyhow::Result<TreeId> {
        let (mut tree, mut frozen) = (now, PathEntries::new());
        for step in steps {
            tree = self.as_begun(tree, step, &frozen)?;
            let merged = merge_trees(&self.project.repository, step.from, tree, step.to)?;
            let next = self.on_overlap.resolve(&merged);
            for path in merged.paths {
                self.meet(path, tree, step, &mut frozen)?;
            }
            self.keep_unmarked(&merged.unmarked, tree, step, &mut frozen)?;
            for path in self.unwritable_in(step)? {
                self.meet(path, tree, step, &mut frozen)?;
            }
            let next = self.keep(next, tree, step, &mut frozen)?;
            tree = self.keep_bytes(tree, next, step, &frozen)?;
        }

        Ok(tree)
    }

    /// If the user's side is kept, later steps skip the path, because they depend on this one.
    fn meet(
        &mut self,
        path: Vec<u8>,
        tree: TreeId,
        step: &PatchStep,
        frozen: &mut PathEntries,
    ) -> anyhow::Result<()> {
        if frozen.contains_key(&path) || !self.parts.contains(self.plan.part_of(&path)) {
            return Ok(());
        }

        self.result.overlaps.insert(path.clone());
        if matches!(self.on_overlap, OnOverlap::Stop | OnOverlap::Ours) {
            let entry = self.project.repository.entry(tree, &path)?;
            frozen.insert(path.clone(), entry);
            self.result.stopped.insert(path, step.series.clone());
        }

        Ok(())
    }

    /// Keeps the user's side if conflict markers are requested and there are no lines to mark: one
    /// side has a directory in place of the other side's file.
    fn keep_unmarked(
        &mut self,
        unmarked: &BTreeSet<Vec<u8>>,
        tree: TreeId,
        step: &PatchStep,
        frozen: &mut PathEntries,
    ) -> anyhow::Result<()> {
        if self.on_overlap != OnOverlap::Markers {
            return Ok(());
        }
        for path in unmarked {
            if !frozen.contains_key(path) && self.parts.contains(self.plan.part_of(path)) {
                let entry = self.project.repository.entry(tree, path)?;
                frozen.insert(path.clone(), entry);
                self.result
                    .stopped
                    .insert(path.clone(), step.series.clone());
            }
        }
        Ok(())
    }

    fn unwritable_in(&self, step: &PatchStep) -> anyhow::Result<Vec<Vec<u8>>> {
        if self.unwritable.is_empty() {
            return Ok(Vec::new());
        }
        let changes = diff::changes(&self.project.repository, step.from, step.to)?.into_iter();
        let paths = changes.map(|change| change.path);
        Ok(paths
            .filter(|path| self.unwritable.contains(path))
            .collect())
    }

    /// Restores frozen files after a step. A new file in place of a directory with frozen files is
    /// dropped, too.
    fn keep(
        &mut self,
        next: TreeId,
        before: TreeId,
        step: &PatchStep,
        frozen: &mut PathEntries,
    ) -> anyhow::Result<TreeId> {
        let repository = &self.project.repository;
        loop {
            if frozen.is_empty() {
                return Ok(next);
            }

            let with_frozen = diff::tree_with(repository, next, frozen)?;
            let conflicting: Vec<Vec<u8>> = diff::changes(repository, next, with_frozen)?
                .into_iter()
                .map(|change| change.path)
                .filter(|path| !frozen.contains_key(path))
                .collect();
            if conflicting.is_empty() {
                return Ok(with_frozen);
            }

            for path in conflicting {
                let entry = repository.entry(before, &path)?;
                frozen.insert(path.clone(), entry);
                self.result.overlaps.insert(path.clone());
                self.result.stopped.insert(path, step.series.clone());
            }
        }
    }

    /// Replaces entries by those at the start of a step if the bytes on disk are equal: a filter
    /// that was added between two turns changes blobs without an edit.
    fn as_begun(
        &self,
        tree: TreeId,
        step: &PatchStep,
        frozen: &PathEntries,
    ) -> anyhow::Result<TreeId> {
        let repository = &self.project.repository;
        let mut differ = Vec::new();
        for change in diff::changes(repository, step.from, step.to)? {
            let entry = repository.entry(tree, &change.path)?;
            let is_own = entry.is_some() && change.old.is_some() && entry != change.old;
            if is_own && !frozen.contains_key(&change.path) {
                differ.push(change.path);
            }
        }

        match differ.is_empty() {
            true => Ok(tree),
            false => alike(repository, tree, step.from, &differ),
        }
    }

    /// Keeps the bytes of the user's files over a step that changes attributes. Some differ only
    /// because a snapshot stored them through a filter that the turn added.
    fn keep_bytes(
        &self,
        before: TreeId,
        after: TreeId,
        step: &PatchStep,
        frozen: &PathEntries,
    ) -> anyhow::Result<TreeId> {
        let repository = &self.project.repository;
        let mut changed = diff::changes(repository, step.from, step.to)?.into_iter();
        if !changed.any(|change| is_attributes(&change.path)) {
            return Ok(after);
        }

        let mut stays = Vec::new();
        for change in diff::changes(repository, step.from, before)? {
            let is_own = change.new.is_some() && !frozen.contains_key(&change.path);
            if is_own && repository.entry(after, &change.path)? == change.new {
                stays.push(change.path);
            }
        }
        reclean(repository, before, after, &stays)
    }

    /// Changes in the current parts.
    fn inside(&self, now: TreeId, tree: TreeId) -> anyhow::Result<PathEntries> {
        let changes = diff::changes(&self.project.repository, now, tree)?;
        Ok(changes
            .into_iter()
            .filter(|change| self.parts.contains(self.plan.part_of(&change.path)))
            .map(|change| (change.path, change.new))
            .collect())
    }

    /// Combines the parts. If one has a file in place of another's directory, both stay as they
    /// were.
    fn compose(&mut self, now: TreeId, mut edits: PathEntries) -> anyhow::Result<()> {
        let repository = &self.project.repository;
        loop {
            let tree = diff::tree_with(repository, now, &edits)?;
            let changes = diff::changes(repository, now, tree)?.into_iter();
            let actual: PathEntries = changes.map(|change| (change.path, change.new)).collect();
            if actual == edits {
                self.result.tree = tree;
                return Ok(());
            }

            let is_wrong = |path: &&Vec<u8>| actual.get(*path) != edits.get(*path);
            let wrong: BTreeSet<Vec<u8>> = actual
                .keys()
                .chain(edits.keys())
                .filter(is_wrong)
                .cloned()
                .collect();
            let (retained, rejected): (PathEntries, PathEntries) = edits
                .into_iter()
                .partition(|(path, _)| !is_in_line(path, &wrong));
            anyhow::ensure!(
                !rejected.is_empty(),
                "parts of the files do not fit together"
            );

            for path in rejected.into_keys().chain(wrong) {
                let series = self.plan.start(&path);
                self.result.overlaps.insert(path.clone());
                self.result.stopped.insert(path, series);
            }

            edits = retained;
        }
    }
}

/// A path equals one of `others`, is above one, or below one.
fn is_in_line(path: &[u8], others: &BTreeSet<Vec<u8>>) -> bool {
    let prefix = [path, b"/"].concat();
    let is_below = |other: &Vec<u8>| other.starts_with(&prefix);
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let mut above = ends.map(|(end, _)| &path[..end]);

    others.contains(path)
        || above.any(|dir| others.contains(dir))
        || others.range(prefix.clone()..).next().is_some_and(is_below)
}

// Files outside of snapshots that occupy paths of a restore: ignored files, secrets, or files in a
// directory where a turn has a file.

/// A directory with more files, such as installed packages, is not recorded. It stays and is
/// reported.
const MAX_RECORDED_IN_DIR: usize = 1000;

/// A restore records these before it replaces them.
pub(super) struct HiddenFiles {
    /// At a path that a turn changes.
    at_paths: BTreeSet<Vec<u8>>,
    /// In or above such a path: a file instead of a directory, or the reverse.
    in_the_way: BTreeSet<Vec<u8>>,
}

impl HiddenFiles {
    pub(super) fn is_empty(&self) -> bool {
        self.at_paths.is_empty() && self.in_the_way.is_empty()
    }

    pub(super) fn all(&self) -> Vec<Vec<u8>> {
        self.at_paths.union(&self.in_the_way).cloned().collect()
    }

    /// Files that stay. The next snapshot lacks them, so as part of the turn they would look
    /// deleted.
    pub(super) fn unchanged(
        &self,
        repository: &Repository,
        from: TreeId,
        to: TreeId,
    ) -> anyhow::Result<Vec<Vec<u8>>> {
        let mut unchanged = Vec::new();
        for path in &self.in_the_way {
            let entry = repository.entry(from, path)?;
            if entry.is_some() && entry == repository.entry(to, path)? {
                unchanged.push(path.clone());
            }
        }
        Ok(unchanged)
    }
}

/// At or above the changed paths, and not in the snapshot `now`. Without secrets.
pub(super) fn find_hidden(
    project: &Project,
    now: TreeId,
    moves: &[[TreeId; 2]],
) -> anyhow::Result<HiddenFiles> {
    let (repository, limits) = (&project.repository, project.limits());
    let mut hidden = HiddenFiles {
        at_paths: BTreeSet::new(),
        in_the_way: BTreeSet::new(),
    };
    for &[from, to] in moves {
        let mut absent = BTreeSet::new();
        for tree in [from, to] {
            let missing = diff::changes(repository, tree, now)?.into_iter();
            absent.extend(
                missing
                    .filter(|change| change.new.is_none())
                    .map(|change| change.path),
            );
        }

        for change in diff::changes(repository, from, to)? {
            if !absent.contains(&change.path) {
                continue;
            }
            if repository.has_file(&change.path) {
                if !limits.is_secret(&change.path) {
                    hidden.at_paths.insert(change.path);
                }
            } else if change.new.is_some() {
                for path in required_in_snapshot(repository, &limits, &change.path) {
                    if repository.entry(now, &path)?.is_none() {
                        hidden.in_the_way.insert(path);
                    }
                }
            }
        }
    }

    Ok(hidden)
}

/// Paths that cannot be written, with the file outside of the snapshot that occupies them.
pub(super) fn find_blocked(
    project: &Project,
    from: TreeId,
    to: TreeId,
) -> anyhow::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let repository = &project.repository;
    let mut blocked = BTreeMap::new();
    for change in diff::changes(repository, from, to)? {
        let is_new = change.old.is_none();
        if !is_new
            || change
                .new
                .is_none_or(|entry| entry.mode == EntryMode::Commit)
        {
            continue;
        }

        let candidates = match repository.has_file(&change.path) {
            true if snapshot::are_paths_unchanged(
                repository,
                to,
                std::slice::from_ref(&change.path),
            )? =>
            {
                continue;
            }
            true => vec![change.path.clone()],
            false => match repository.file_above(&change.path) {
                Some(above) => vec![above],
                None => first_below(repository, from, &change.path)?,
            },
        };
        for path in candidates {
            if repository.entry(from, &path)?.is_none() {
                blocked.insert(change.path.clone(), path);
            }
        }
    }

    Ok(blocked)
}

/// Files in a directory at the path of a new file, or a file in place of a parent directory.
fn required_in_snapshot(
    repository: &Repository,
    limits: &SnapshotLimits,
    path: &[u8],
) -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = repository.file_above(path).into_iter().collect();
    let is_whole = each_below(repository, path, &mut |file| {
        files.push(file);
        files.len() <= MAX_RECORDED_IN_DIR
    });
    files.retain(|path| !limits.is_secret(path));
    if is_whole { files } else { Vec::new() }
}

fn first_below(repository: &Repository, tree: TreeId, dir: &[u8]) -> anyhow::Result<Vec<Vec<u8>>> {
    let (mut files, mut result) = (Vec::new(), Ok(()));
    each_below(
        repository,
        dir,
        &mut |file| match repository.entry(tree, &file) {
            Ok(Some(_)) => true,
            Ok(None) => {
                files.push(file);
                false
            }
            Err(error) => {
                result = Err(error);
                false
            }
        },
    );
    result.map(|()| files)
}

/// Calls `meet` for each file until it returns `false`. Returns whether it never did. An unreadable
/// directory is passed itself.
fn each_below(repository: &Repository, dir: &[u8], meet: &mut dyn FnMut(Vec<u8>) -> bool) -> bool {
    let top = repository.workdir();
    let mut waiting: Vec<PathBuf> = Vec::new();
    if repository.kind_on_disk(dir) == Some(FileKind::Dir) {
        waiting.push(Path::new(OsStr::from_bytes(dir)).to_owned());
    }

    while let Some(dir) = waiting.pop() {
        let Ok(entries) = std::fs::read_dir(top.join(&dir)) else {
            if !meet(dir.as_os_str().as_bytes().to_vec()) {
                return false;
            }
            continue;
        };
        for entry in entries.flatten() {
            let path = dir.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(path),
                _ if meet(path.as_os_str().as_bytes().to_vec()) => {}
                _ => return false,
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_in_line_with_what_leads_through_them() {
        let others: BTreeSet<Vec<u8>> = ["a/b", "c-d", "c/e/f"].map(|path| path.into()).into();
        let check = |path: &str, expected| {
            assert_eq!(is_in_line(path.as_bytes(), &others), expected, "{path}");
        };
        check("a/b", true);
        check("a/b/c", true);
        check("a", true);
        check("a/bc", false);
        check("c", true);
        check("c/e", true);
        check("c/e/g", false);
        check("c/d", false);
        check("d", false);
    }
}
