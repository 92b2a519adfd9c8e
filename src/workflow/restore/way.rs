//! Plans a restore: the patches to revert and apply between the current files and the target, for
//! each part of the project. The user's own edits are merged around them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::RestoreOptions;
use crate::git::object::{CommitId, TreeId};
use crate::git::repository::Repository;
use crate::session::publication::Stack;
use crate::session::turn::Turn;
use crate::workspace::stack::series::{PathStacks, Series};
use crate::workspace::stack::{PatchId, Stacks};

/// Difference that some consecutive turns made to the files, without edits of the user in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leg {
    pub from: TreeId,
    pub to: TreeId,
    /// Applied patches before this step.
    pub series: Series,
}

/// Steps in one part of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PartWay {
    legs: Vec<Leg>,
    /// Applied patches after the last step.
    end: Option<PatchId>,
    /// Number of steps that are complete, because they belong to an earlier undo step.
    sealed: usize,
}

impl PartWay {
    fn from(end: Option<PatchId>) -> PartWay {
        PartWay {
            legs: Vec::new(),
            end,
            sealed: 0,
        }
    }

    /// Adds a step, or joins it with the last one of the same undo step if it continues there.
    fn push(&mut self, [from, to]: [TreeId; 2], series: &Series) {
        let is_open = self.legs.len() > self.sealed;
        match self.legs.last_mut().filter(|_| is_open) {
            Some(last) if last.to == from => last.to = to,
            _ => self.legs.push(Leg {
                from,
                to,
                series: series.clone(),
            }),
        }
    }
}

/// The plan of a restore in all parts of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    /// Steps by directory. The empty path has all files outside of a part.
    parts: BTreeMap<Vec<u8>, PartWay>,
}

/// How to revert one turn, or one step of an undo.
pub(super) struct CrossedTurn {
    /// Applied patches before and after.
    pub stacks: [Stack<PatchId>; 2],
    /// Recorded files before and after, if they are to be merged exactly. A restore can have changed
    /// more than its patches, such as edits of the user's.
    pub trees: Option<[TreeId; 2]>,
    /// Paths at which the turn was not applied.
    pub left: HashSet<Vec<u8>>,
}

/// Builds plans.
pub(super) struct Planner<'a> {
    pub repository: &'a Repository,
    pub stacks: &'a Stacks<'a>,
    /// Applied patches.
    pub here: &'a Stack<PatchId>,
}

impl Planner<'_> {
    /// Returns the plan that leads to a stack, for these paths or for all.
    pub(super) fn to(&self, target: &Stack<PatchId>, paths: &[String]) -> anyhow::Result<Way> {
        let named = paths
            .iter()
            .map(|path| path.trim_end_matches('/').as_bytes());

        self.by_parts(named.map(<[u8]>::to_vec).collect(), &|part, path| {
            let mut way = PartWay::from(part.top(self.here));
            let to = part.top(target);
            if paths.is_empty() || is_below(path, paths) {
                self.go(part, &mut way, to)?;
            }

            Ok(way)
        })
    }

    /// Returns the plan that reverts turns from the current files. Each step is merged separately, so
    /// `undo N` equals N times `undo`.
    pub(super) fn over(&self, steps: &[Vec<CrossedTurn>]) -> anyhow::Result<Way> {
        let left = steps.iter().flatten().flat_map(|crossed| &crossed.left);

        self.by_parts(left.cloned().collect(), &|part, path| {
            let mut way = PartWay::from(part.top(self.here));
            for step in steps {
                way.sealed = way.legs.len();
                for crossed in step {
                    self.cross(part, &mut way, crossed, path)?;
                }
            }

            Ok(way)
        })
    }

    /// Reverts one turn in one part of the project.
    fn cross(
        &self,
        part: &mut PathStacks<'_>,
        way: &mut PartWay,
        crossed: &CrossedTurn,
        path: &[u8],
    ) -> anyhow::Result<()> {
        let [begin, end] = crossed.stacks.each_ref().map(|stack| part.top(stack));
        self.go(part, way, begin)?;
        match crossed.trees.filter(|_| !crossed.left.contains(path)) {
            Some(trees) => {
                way.push(trees, &Series::below(begin));
                way.end = end;
                Ok(())
            }
            None => self.go(part, way, end),
        }
    }

    /// Adds the steps from one stack to another: reverts what only the first has, applies what only
    /// the second has.
    fn go(
        &self,
        part: &mut PathStacks<'_>,
        way: &mut PartWay,
        to: Option<PatchId>,
    ) -> anyhow::Result<()> {
        let difference = part.difference(way.end, to)?;
        let mut series = difference.from;
        for id in difference.removed {
            let [before, after] = self.trees(id)?;
            way.push([after, before], &series);
            series.above.retain(|above| *above != id);
        }

        for id in difference.added {
            way.push(self.trees(id)?, &series);
            series.above.push(id);
        }

        way.end = to;
        Ok(())
    }

    fn trees(&self, id: PatchId) -> anyhow::Result<[TreeId; 2]> {
        let change = self.stacks.patch(id)?.change;
        let tree = |id: CommitId| Ok::<_, anyhow::Error>(self.repository.commit(id)?.tree);
        Ok([tree(change.before)?, tree(change.after)?])
    }

    /// Plans each part. Planning a part can reveal further parts, which are planned too.
    fn by_parts(
        &self,
        mut paths: BTreeSet<Vec<u8>>,
        make: &dyn Fn(&mut PathStacks<'_>, &[u8]) -> anyhow::Result<PartWay>,
    ) -> anyhow::Result<Way> {
        paths.insert(Vec::new());
        loop {
            let (mut parts, mut seen) = (BTreeMap::new(), paths.clone());
            for path in &paths {
                let mut part = PathStacks::new(self.stacks, path);
                parts.insert(path.clone(), make(&mut part, path)?);
                seen.extend(part.apart);
            }

            if seen == paths {
                return Ok(Way { parts });
            }

            paths = seen;
        }
    }

    pub(super) fn taken_back(&self, turn: &Turn) -> anyhow::Result<CrossedTurn> {
        let own = self.stacks.own(turn)?.map(|(_, publication)| publication);
        let is_restore = own
            .as_ref()
            .is_some_and(|publication| publication.change.is_none());
        let mut trees = None;

        if let Some(workspace) = turn.meta.workspace.as_ref().filter(|_| is_restore) {
            let tree = |id: CommitId| Ok::<_, anyhow::Error>(self.repository.commit(id)?.tree);
            trees = Some([tree(workspace.after)?, tree(workspace.before)?]);
        }

        Ok(CrossedTurn {
            stacks: [self.stacks.after(turn)?, self.stacks.below(turn)?],
            trees,
            left: own.map_or_else(HashSet::new, |publication| {
                publication.left.into_iter().collect()
            }),
        })
    }
}

impl Way {
    pub(super) fn legs(&self) -> impl Iterator<Item = &Leg> {
        self.parts.values().flat_map(|way| &way.legs)
    }

    /// Returns the distinct steps, each with its parts.
    pub(super) fn routes(&self) -> Vec<(&[Leg], BTreeSet<&[u8]>)> {
        let mut routes: Vec<(&[Leg], BTreeSet<&[u8]>)> = Vec::new();
        for (path, way) in self.parts.iter().filter(|(_, way)| !way.legs.is_empty()) {
            match routes.iter_mut().find(|(legs, _)| *legs == way.legs) {
                Some((_, parts)) => {
                    parts.insert(path);
                }
                None => routes.push((&way.legs, BTreeSet::from([path.as_slice()]))),
            }
        }

        routes
    }

    /// Returns the innermost part that contains a path.
    pub(super) fn part_of(&self, path: &[u8]) -> &[u8] {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let folders = ends.map(|(end, _)| &path[..end]).collect::<Vec<_>>();
        let mut inwards = folders.into_iter().chain([path]).rev();

        inwards
            .find_map(|folder| self.parts.get_key_value(folder))
            .map_or(&[], |(part, _)| part)
    }

    pub(super) fn is_one(&self) -> bool {
        self.parts.len() == 1
    }

    /// Returns the applied patches at a path before the first step.
    pub(super) fn start(&self, path: &[u8]) -> Series {
        let way = &self.parts[self.part_of(path)];
        let first = way.legs.first();
        first.map_or_else(|| Series::below(way.end), |leg| leg.series.clone())
    }

    /// Returns `true` if the plan ends with exactly the patches of a stack, on the requested paths.
    pub(super) fn ends_in(
        &self,
        stacks: &Stacks<'_>,
        stack: &Stack<PatchId>,
        wish: &RestoreOptions,
    ) -> anyhow::Result<bool> {
        for (path, way) in &self.parts {
            let mut part = PathStacks::new(stacks, path);
            let top = part.top(stack);
            let is_asked = wish.paths.is_empty() || is_below(path, &wish.paths);
            if is_asked && !part.are_same(way.end, top)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(super) fn ends(&self) -> impl Iterator<Item = (&[u8], Option<PatchId>)> {
        self.parts
            .iter()
            .map(|(path, way)| (path.as_slice(), way.end))
    }
}

pub(super) fn is_below(path: &[u8], folders: &[String]) -> bool {
    folders.iter().any(|folder| {
        let folder = folder.trim_end_matches('/').as_bytes();
        path == folder || (path.starts_with(folder) && path.get(folder.len()) == Some(&b'/'))
    })
}
