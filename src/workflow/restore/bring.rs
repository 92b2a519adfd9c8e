//! Bringing trees along a way: three-way at each leg, so that the user's own edits stay.

use std::collections::{BTreeMap, BTreeSet};

use super::OnOverlap;
use super::way::{Leg, Way};
use crate::git::diff;
use crate::git::object::{TreeEntry, TreeId};
use crate::git::reclean::{alike, is_attributes, reclean};
use crate::workflow::project::Project;
use crate::workspace::fit::{Fit, fit};
use crate::workspace::stack::series::Series;

/// Where the user's files come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RestoredFiles {
    /// The files.
    pub tree: TreeId,
    /// Where the user's own edits meet with what a turn on the way did.
    pub overlaps: BTreeSet<Vec<u8>>,
    /// Where they stay for that reason, and what is in them there.
    pub stopped: BTreeMap<Vec<u8>, Series>,
}

impl RestoredFiles {
    /// Returns files that stand for themselves, whatever the user did.
    pub(super) fn exactly(tree: TreeId) -> RestoredFiles {
        RestoredFiles {
            tree,
            overlaps: BTreeSet::new(),
            stopped: BTreeMap::new(),
        }
    }
}

/// Entries by path.
type PathEntries = BTreeMap<Vec<u8>, Option<TreeEntry>>;

/// Brings a tree along a way. `closed` are paths that cannot be written: what a leg does there counts as
/// an overlap.
pub(super) fn bring(
    project: &Project,
    now: TreeId,
    way: &Way,
    on_overlap: OnOverlap,
    closed: &BTreeSet<Vec<u8>>,
) -> anyhow::Result<RestoredFiles> {
    let mut carrier = Carrier {
        project,
        way,
        on_overlap,
        closed,
        parts: BTreeSet::new(),
        brought: RestoredFiles::exactly(now),
    };
    let mut edits = PathEntries::new();

    for (legs, parts) in way.routes() {
        carrier.parts = parts;
        let tree = carrier.follow(now, legs)?;
        if way.is_one() {
            carrier.brought.tree = tree;
            return Ok(carrier.brought);
        }
        edits.extend(carrier.inside(now, tree)?);
    }

    carrier.compose(now, edits)?;
    Ok(carrier.brought)
}

/// A tree on its way.
struct Carrier<'a> {
    /// The project.
    project: &'a Project,
    /// The way.
    way: &'a Way,
    /// What to do where edits meet.
    on_overlap: OnOverlap,
    /// Paths that cannot be written.
    closed: &'a BTreeSet<Vec<u8>>,
    /// The parts for which the legs are that are gone just now.
    parts: BTreeSet<&'a [u8]>,
    /// What was found so far.
    brought: RestoredFiles,
}

impl Carrier<'_> {
    /// Goes some legs.
    fn follow(&mut self, now: TreeId, legs: &[Leg]) -> anyhow::Result<TreeId> {
        let (mut tree, mut frozen) = (now, PathEntries::new());
        for leg in legs {
            tree = self.as_begun(tree, leg, &frozen)?;
            let next = match fit(&self.project.repository, leg.from, tree, leg.to)? {
                Fit::Clean(files) => files.to,
                Fit::Overlap(paths, ways) => {
                    for path in paths {
                        self.meet(path, (tree, leg), &mut frozen)?;
                    }
                    self.keep_unmarked(&ways.unmarked, tree, leg, &mut frozen)?;

                    match self.on_overlap {
                        OnOverlap::Theirs => ways.theirs,
                        OnOverlap::Markers => ways.markers,
                        OnOverlap::Stop | OnOverlap::Ours | OnOverlap::Exact => ways.ours,
                    }
                }
            };
            for path in self.closed_in(leg)? {
                self.meet(path, (tree, leg), &mut frozen)?;
            }
            let next = self.keep(next, (tree, leg), &mut frozen)?;
            tree = self.keep_bytes([tree, next], leg, &frozen)?;
        }

        Ok(tree)
    }

    /// Records a conflict at a path. If the user's side is kept, later steps skip the path, because they
    /// depend on this one.
    fn meet(
        &mut self,
        path: Vec<u8>,
        (tree, leg): (TreeId, &Leg),
        frozen: &mut PathEntries,
    ) -> anyhow::Result<()> {
        if frozen.contains_key(&path) || !self.parts.contains(self.way.part_of(&path)) {
            return Ok(());
        }

        self.brought.overlaps.insert(path.clone());
        if matches!(self.on_overlap, OnOverlap::Stop | OnOverlap::Ours) {
            let entry = self.project.repository.entry(tree, &path)?;
            frozen.insert(path.clone(), entry);
            self.brought.stopped.insert(path, leg.series.clone());
        }

        Ok(())
    }

    /// Keeps the user's side where conflict markers were asked for and one side has a directory in the
    /// place of the other side's file: there are no lines to mark.
    fn keep_unmarked(
        &mut self,
        unmarked: &BTreeSet<Vec<u8>>,
        tree: TreeId,
        leg: &Leg,
        frozen: &mut PathEntries,
    ) -> anyhow::Result<()> {
        if self.on_overlap != OnOverlap::Markers {
            return Ok(());
        }
        for path in unmarked {
            if !frozen.contains_key(path) && self.parts.contains(self.way.part_of(path)) {
                let entry = self.project.repository.entry(tree, path)?;
                frozen.insert(path.clone(), entry);
                self.brought
                    .stopped
                    .insert(path.clone(), leg.series.clone());
            }
        }
        Ok(())
    }

    /// Returns the paths that a leg changes and that cannot be written.
    fn closed_in(&self, leg: &Leg) -> anyhow::Result<Vec<Vec<u8>>> {
        if self.closed.is_empty() {
            return Ok(Vec::new());
        }
        let changes = diff::changes(&self.project.repository, leg.from, leg.to)?.into_iter();
        let paths = changes.map(|change| change.path);
        Ok(paths.filter(|path| self.closed.contains(path)).collect())
    }

    /// Puts frozen files back as they were before a leg. What had come where one of them is, a file
    /// in place of a folder, stays away, too.
    fn keep(
        &mut self,
        next: TreeId,
        (before, leg): (TreeId, &Leg),
        frozen: &mut PathEntries,
    ) -> anyhow::Result<TreeId> {
        let repository = &self.project.repository;
        loop {
            if frozen.is_empty() {
                return Ok(next);
            }

            let kept = diff::tree_with(repository, next, frozen)?;
            let displaced: Vec<Vec<u8>> = diff::changes(repository, next, kept)?
                .into_iter()
                .map(|change| change.path)
                .filter(|path| !frozen.contains_key(path))
                .collect();
            if displaced.is_empty() {
                return Ok(kept);
            }

            for path in displaced {
                let entry = repository.entry(before, &path)?;
                frozen.insert(path.clone(), entry);
                self.brought.overlaps.insert(path.clone());
                self.brought.stopped.insert(path, leg.series.clone());
            }
        }
    }

    /// Takes files that a leg changes as it begins with them where they have the same bytes: a
    /// filter that came between two turns makes something else of them, and nobody edited them.
    fn as_begun(&self, tree: TreeId, leg: &Leg, frozen: &PathEntries) -> anyhow::Result<TreeId> {
        let repository = &self.project.repository;
        let mut differ = Vec::new();
        for change in diff::changes(repository, leg.from, leg.to)? {
            let entry = repository.entry(tree, &change.path)?;
            let is_own = entry.is_some() && change.old.is_some() && entry != change.old;
            if is_own && !frozen.contains_key(&change.path) {
                differ.push(change.path);
            }
        }

        match differ.is_empty() {
            true => Ok(tree),
            false => alike(repository, [tree, leg.from], &differ),
        }
    }

    /// Lets files in which the user's differ from the turns' keep their bytes over a leg that changes
    /// attributes. Some differ in nothing else: a snapshot after the turn that brought a filter has
    /// them as the filter stores them.
    fn keep_bytes(
        &self,
        [before, after]: [TreeId; 2],
        leg: &Leg,
        frozen: &PathEntries,
    ) -> anyhow::Result<TreeId> {
        let repository = &self.project.repository;
        let mut changed = diff::changes(repository, leg.from, leg.to)?.into_iter();
        if !changed.any(|change| is_attributes(&change.path)) {
            return Ok(after);
        }

        let mut stays = Vec::new();
        for change in diff::changes(repository, leg.from, before)? {
            let is_own = change.new.is_some() && !frozen.contains_key(&change.path);
            if is_own && repository.entry(after, &change.path)? == change.new {
                stays.push(change.path);
            }
        }
        reclean(repository, [before, after], &stays)
    }

    /// Returns what a tree has in the parts of the legs that were gone.
    fn inside(&self, now: TreeId, tree: TreeId) -> anyhow::Result<PathEntries> {
        let changes = diff::changes(&self.project.repository, now, tree)?;
        Ok(changes
            .into_iter()
            .filter(|change| self.parts.contains(self.way.part_of(&change.path)))
            .map(|change| (change.path, change.new))
            .collect())
    }

    /// Puts the parts together. Where a part has a file and another one a folder, both stay as they
    /// were.
    fn compose(&mut self, now: TreeId, mut edits: PathEntries) -> anyhow::Result<()> {
        let repository = &self.project.repository;
        loop {
            let tree = diff::tree_with(repository, now, &edits)?;
            let changes = diff::changes(repository, now, tree)?.into_iter();
            let done: PathEntries = changes.map(|change| (change.path, change.new)).collect();
            if done == edits {
                self.brought.tree = tree;
                return Ok(());
            }

            let is_wrong = |path: &&Vec<u8>| done.get(*path) != edits.get(*path);
            let wrong: BTreeSet<Vec<u8>> = done
                .keys()
                .chain(edits.keys())
                .filter(is_wrong)
                .cloned()
                .collect();
            let (stay, go): (PathEntries, PathEntries) = edits
                .into_iter()
                .partition(|(path, _)| !is_in_line(path, &wrong));
            anyhow::ensure!(!go.is_empty(), "parts of the files do not fit together");

            for path in go.into_keys().chain(wrong) {
                let series = self.way.start(&path);
                self.brought.overlaps.insert(path.clone());
                self.brought.stopped.insert(path, series);
            }

            edits = stay;
        }
    }
}

/// Returns whether a path is one of others, leads through one, or one leads through it.
fn is_in_line(path: &[u8], others: &BTreeSet<Vec<u8>>) -> bool {
    let folder = [path, b"/"].concat();
    let is_below = |other: &Vec<u8>| other.starts_with(&folder);
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let mut above = ends.map(|(end, _)| &path[..end]);

    others.contains(path)
        || above.any(|folder| others.contains(folder))
        || others.range(folder.clone()..).next().is_some_and(is_below)
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
