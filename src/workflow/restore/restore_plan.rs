//! A restore as data: the patches to revert and apply between the current files and the target.
//!
//! Different subtrees can hold different stacks, so a plan has one list of steps per subtree. Each
//! step is merged on its own, so the user's edits in between survive.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::git::diff;
use crate::git::merge::Merged;
use crate::git::object::{CommitId, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::project::Project;
use crate::session::meta::Restored;
use crate::session::publication::Stack;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::text::sanitize::sanitize_line;
use crate::workflow::open_session::EnteredSession;
use crate::workflow::user::User;
use crate::workspace::drift::first_turn_after;
use crate::workspace::file_move::trees_of;
use crate::workspace::snapshot::snapshot;
use crate::workspace::stack::{PathStacks, Series, Stacks};

/// If the user's edits conflict with the turn's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnOverlap {
    /// Change nothing and report the conflicts.
    #[default]
    Stop,
    Ours,
    Theirs,
    Markers,
    /// Make the files equal to the turn's and discard the user's edits.
    Exact,
}

impl OnOverlap {
    /// The turn's version replaces a conflicting one of the user's.
    pub fn replaces(self) -> bool {
        matches!(self, OnOverlap::Theirs | OnOverlap::Exact)
    }

    /// The result of a merge with the user's files as ours. If it must stop, nothing should be
    /// applied.
    pub fn resolve(self, merged: &Merged) -> TreeId {
        match self {
            OnOverlap::Stop | OnOverlap::Ours => merged.ours,
            OnOverlap::Theirs | OnOverlap::Exact => merged.theirs,
            OnOverlap::Markers => merged.markers,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct RestoreOptions {
    /// To restrict the restore to. Empty for all.
    pub paths: Vec<String>,
    pub on_overlap: OnOverlap,
    /// Keeps the context, as paths do.
    pub files_only: bool,
    /// Only shows what would change.
    pub dry_run: bool,
}

impl RestoreOptions {
    pub(super) fn keeps_context(&self) -> bool {
        self.files_only || !self.paths.is_empty()
    }
}

/// The session, with the turns that its files contain.
pub(super) struct LockedSession<'a> {
    pub project: &'a Project,
    pub entered: EnteredSession<'a>,
    pub stacks: Stacks<'a>,
}

impl<'a> LockedSession<'a> {
    /// Also recovers.
    pub(super) fn enter(
        project: &'a Project,
        command: &str,
        user: &mut dyn User,
    ) -> anyhow::Result<LockedSession<'a>> {
        let entered = EnteredSession::enter(project, &project.session()?, command, user)?;
        Ok(LockedSession {
            project,
            stacks: Stacks::new(&project.repository),
            entered,
        })
    }

    pub(super) fn turn(&self, number: u64) -> anyhow::Result<Turn> {
        self.project.store().earlier(&self.entered.tip, number)
    }

    /// What the files contain now.
    pub(super) fn current(&self) -> anyhow::Result<Stack<CommitId>> {
        let files = || Ok(snapshot(&self.project.checkout(), &[])?.tree);
        self.stacks.current(&self.entered.tip, &files)
    }

    pub(super) fn planner<'b>(&'b self, current: &'b Stack<CommitId>) -> Planner<'b> {
        Planner {
            repository: &self.project.repository,
            stacks: &self.stacks,
            current,
        }
    }

    /// What the files contain when the turn is the newest.
    pub(super) fn target_stack(&self, turn: &Turn) -> anyhow::Result<Stack<CommitId>> {
        match first_turn_after(&self.project.checkout(), turn)? {
            Some(next) => self.stacks.base_of(&next),
            None => self.stacks.expected(turn),
        }
    }
}

/// `restore`, `undo` and `redo` are ways to build one.
pub(super) struct Restore<'a> {
    pub session: &'a LockedSession<'a>,
    pub options: &'a RestoreOptions,
    /// Applied now.
    pub current: Stack<CommitId>,
    pub turn: Turn,
    pub title: String,
    pub restored: Restored,
    pub plan: RestorePlan,
    /// Applied in the target.
    pub stack: Stack<CommitId>,
}

impl Restore<'_> {
    pub(super) fn tip(&self) -> &Turn {
        &self.session.entered.tip
    }

    /// Applied once every step of the plan is.
    pub(super) fn end(&self) -> Stack<CommitId> {
        self.plan.end()
    }
}

/// Adjacent turns without edits of the user in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PatchStep {
    pub from: TreeId,
    pub to: TreeId,
    /// Applied before this step.
    pub series: Series,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SubtreePlan {
    steps: Vec<PatchStep>,
    /// Applied after the last step.
    end: Option<CommitId>,
    /// Steps that are complete, because they belong to an earlier undo step.
    sealed: usize,
}

impl SubtreePlan {
    fn from(end: Option<CommitId>) -> SubtreePlan {
        SubtreePlan {
            steps: Vec::new(),
            end,
            sealed: 0,
        }
    }

    /// Joins the step with the last one of the same undo step if it continues there.
    fn push(&mut self, from: TreeId, to: TreeId, series: &Series) {
        let is_open = self.steps.len() > self.sealed;
        match self.steps.last_mut().filter(|_| is_open) {
            // No edit of the user's in between: one merge instead of two.
            Some(last) if last.to == from => last.to = to,
            _ => self.steps.push(PatchStep {
                from,
                to,
                series: series.clone(),
            }),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RestorePlan {
    /// By directory. The empty path has all files outside of a part.
    parts: BTreeMap<Vec<u8>, SubtreePlan>,
}

/// How to revert one turn, or one step of an undo.
#[derive(Clone)]
pub(super) struct CrossedTurn {
    /// Before and after reverting the turn.
    pub stacks: [Stack<CommitId>; 2],
    /// Recorded files, to be merged exactly. A restore can have changed more than its patches, such
    /// as edits of the user's.
    pub trees: Option<[TreeId; 2]>,
    /// The turn was not applied here.
    pub unapplied: HashSet<Vec<u8>>,
    /// The commit `after` of a turn that is not a restore. Nothing is reverted where it is not in the
    /// files.
    pub change: Option<CommitId>,
}

pub(super) struct Planner<'a> {
    pub repository: &'a Repository,
    pub stacks: &'a Stacks<'a>,
    pub current: &'a Stack<CommitId>,
}

impl Planner<'_> {
    /// For these paths, or for all if there are none.
    pub(super) fn plan_to(
        &self,
        target: &Stack<CommitId>,
        paths: &[String],
    ) -> anyhow::Result<RestorePlan> {
        let roots = paths
            .iter()
            .map(|path| path.trim_end_matches('/').as_bytes());

        self.by_parts(roots.map(<[u8]>::to_vec).collect(), &|part, path| {
            let mut plan = SubtreePlan::from(part.top(self.current));
            let to = part.top(target);
            if paths.is_empty() || is_below(path, paths) {
                self.add_steps(part, &mut plan, to)?;
            }

            Ok(plan)
        })
    }

    /// Reverts turns. Each step is merged separately, so that `undo N` equals N times `undo`.
    pub(super) fn plan_crossing(&self, steps: &[Vec<CrossedTurn>]) -> anyhow::Result<RestorePlan> {
        let unapplied = steps
            .iter()
            .flatten()
            .flat_map(|crossed| &crossed.unapplied);

        self.by_parts(unapplied.cloned().collect(), &|part, path| {
            let mut plan = SubtreePlan::from(part.top(self.current));
            for step in steps {
                plan.sealed = plan.steps.len();
                for crossed in step {
                    self.cross(part, &mut plan, crossed, path)?;
                }
            }

            Ok(plan)
        })
    }

    fn cross(
        &self,
        part: &mut PathStacks<'_>,
        plan: &mut SubtreePlan,
        crossed: &CrossedTurn,
        path: &[u8],
    ) -> anyhow::Result<()> {
        if let Some(change) = crossed.change
            && !part.has(plan.end, change)?
        {
            return Ok(());
        }

        let [begin, end] = crossed.stacks.each_ref().map(|stack| part.top(stack));
        self.add_steps(part, plan, begin)?;
        match crossed.trees.filter(|_| !crossed.unapplied.contains(path)) {
            Some([from, to]) => {
                plan.push(from, to, &Series::up_to(begin));
                plan.end = end;
                Ok(())
            }
            None => self.add_steps(part, plan, end),
        }
    }

    /// Reverts what only the current stack has, applies what only the other one has.
    fn add_steps(
        &self,
        part: &mut PathStacks<'_>,
        plan: &mut SubtreePlan,
        to: Option<CommitId>,
    ) -> anyhow::Result<()> {
        let difference = part.difference(plan.end, to)?;
        let mut series = difference.from;
        for id in difference.removed {
            let [before, after] = self.trees(id)?;
            plan.push(after, before, &series);
            series.above.retain(|above| *above != id);
        }

        for id in difference.added {
            let [before, after] = self.trees(id)?;
            plan.push(before, after, &series);
            series.above.push(id);
        }

        plan.end = to;
        Ok(())
    }

    fn trees(&self, id: CommitId) -> anyhow::Result<[TreeId; 2]> {
        trees_of(self.repository, self.stacks.patch(id)?.change)
    }

    fn by_parts(
        &self,
        mut paths: BTreeSet<Vec<u8>>,
        make: &dyn Fn(&mut PathStacks<'_>, &[u8]) -> anyhow::Result<SubtreePlan>,
    ) -> anyhow::Result<RestorePlan> {
        paths.insert(Vec::new());
        // Planning a part can reveal further parts.
        loop {
            let (mut parts, mut next_paths) = (BTreeMap::new(), paths.clone());
            for path in &paths {
                let mut part = PathStacks::new(self.stacks, path);
                parts.insert(path.clone(), make(&mut part, path)?);
                next_paths.extend(part.split_paths);
            }

            if next_paths == paths {
                return Ok(RestorePlan { parts });
            }

            paths = next_paths;
        }
    }

    pub(super) fn taken_back(&self, turn: &Turn) -> anyhow::Result<CrossedTurn> {
        let own = self.stacks.own(turn)?.map(|(_, publication)| publication);
        let is_restore = own
            .as_ref()
            .is_some_and(|publication| publication.change.is_none());
        let workspace = turn.meta.workspace.as_ref().filter(|_| is_restore);
        let trees = workspace.map(|it| trees_of(self.repository, it.change()));
        let change = own.as_ref().and_then(|publication| publication.change);

        Ok(CrossedTurn {
            change: change.map(|change| change.after),
            stacks: [self.stacks.after(turn)?, self.stacks.base_of(turn)?],
            trees: trees.transpose()?.map(|[before, after]| [after, before]),
            unapplied: own.map_or_else(HashSet::new, |publication| {
                publication.left.into_iter().collect()
            }),
        })
    }
}

impl RestorePlan {
    /// Applied once every step is.
    pub(super) fn end(&self) -> Stack<CommitId> {
        let mut end = Stack::default();
        for (path, part) in &self.parts {
            end.set(path, part.end);
        }
        end
    }

    pub(super) fn steps(&self) -> impl Iterator<Item = &PatchStep> {
        self.parts.values().flat_map(|plan| &plan.steps)
    }

    /// Distinct lists of steps, each with its parts.
    pub(super) fn routes(&self) -> Vec<(&[PatchStep], BTreeSet<&[u8]>)> {
        let mut routes: Vec<(&[PatchStep], BTreeSet<&[u8]>)> = Vec::new();
        for (path, plan) in self.parts.iter().filter(|(_, plan)| !plan.steps.is_empty()) {
            match routes.iter_mut().find(|(steps, _)| *steps == plan.steps) {
                Some((_, parts)) => {
                    parts.insert(path);
                }
                None => routes.push((&plan.steps, BTreeSet::from([path.as_slice()]))),
            }
        }

        routes
    }

    /// The innermost part that contains a path.
    pub(super) fn part_of(&self, path: &[u8]) -> &[u8] {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let dirs = ends.map(|(end, _)| &path[..end]).collect::<Vec<_>>();
        let mut inwards = dirs.into_iter().chain([path]).rev();

        inwards
            .find_map(|dir| self.parts.get_key_value(dir))
            .map_or(&[], |(part, _)| part)
    }

    pub(super) fn is_one(&self) -> bool {
        self.parts.len() == 1
    }

    /// Before the first step.
    pub(super) fn start(&self, path: &[u8]) -> Series {
        let plan = &self.parts[self.part_of(path)];
        let first = plan.steps.first();
        first.map_or_else(|| Series::up_to(plan.end), |step| step.series.clone())
    }

    /// Whether a step differs at its part. One can be about other paths.
    pub(super) fn changes_parts(&self, repository: &Repository) -> anyhow::Result<bool> {
        for (path, plan) in &self.parts {
            for step in &plan.steps {
                if repository.entry(step.from, path)? != repository.entry(step.to, path)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// On the requested paths.
    pub(super) fn ends_in(
        &self,
        stacks: &Stacks<'_>,
        stack: &Stack<CommitId>,
        options: &RestoreOptions,
    ) -> anyhow::Result<bool> {
        for (path, plan) in &self.parts {
            let mut part = PathStacks::new(stacks, path);
            let top = part.top(stack);
            let is_asked = options.paths.is_empty() || is_below(path, &options.paths);
            if is_asked && !part.are_same(plan.end, top)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

pub(super) fn is_below(path: &[u8], dirs: &[String]) -> bool {
    dirs.iter().any(|dir| {
        let dir = dir.trim_end_matches('/').as_bytes();
        path == dir || (path.starts_with(dir) && path.get(dir.len()) == Some(&b'/'))
    })
}

/// A path must be in one of the trees.
pub(super) fn check_paths(
    repository: &Repository,
    turn: &Turn,
    options: &RestoreOptions,
    trees: [TreeId; 2],
) -> anyhow::Result<()> {
    for path in &options.paths {
        let mut is_there = false;
        for tree in trees {
            is_there |= repository.entry(tree, path.as_bytes())?.is_some();
        }

        let (name, number) = (sanitize_line(path), turn.number());
        anyhow::ensure!(
            is_there,
            "`{name}` is neither in turn {number} nor in a snapshot of your files"
        );
    }

    Ok(())
}

/// `tree` on the paths, and `elsewhere` on all others. Also returns the files of `elsewhere` that
/// are in the way of a directory on these paths: they are not requested, so they stay.
pub(super) fn restrict_to_paths(
    repository: &Repository,
    elsewhere: TreeId,
    tree: TreeId,
    paths: &[String],
) -> anyhow::Result<(TreeId, Vec<Vec<u8>>)> {
    if paths.is_empty() {
        return Ok((tree, Vec::new()));
    }

    let changes = diff::changes(repository, elsewhere, tree)?;
    let mut edits: BTreeMap<Vec<u8>, Option<TreeEntry>> = changes
        .into_iter()
        .filter(|change| is_below(&change.path, paths))
        .map(|change| (change.path, change.new))
        .collect();
    let restricted = diff::tree_with(repository, elsewhere, &edits)?;
    let changed = diff::changes(repository, elsewhere, restricted)?.into_iter();
    let changed = changed.map(|change| change.path);
    let outside_paths: Vec<Vec<u8>> = changed.filter(|path| !is_below(path, paths)).collect();
    if outside_paths.is_empty() {
        return Ok((restricted, outside_paths));
    }

    let in_the_way: Vec<String> = outside_paths.iter().map(|path| lossy(path)).collect();
    edits.retain(|path, _| !is_below(path, &in_the_way));
    Ok((
        diff::tree_with(repository, elsewhere, &edits)?,
        outside_paths,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_below_a_directory_but_not_below_a_prefix_of_a_name() {
        let check = |path: &str, expected| {
            let dirs = ["a/b/".to_owned(), "c".to_owned()];
            assert_eq!(is_below(path.as_bytes(), &dirs), expected, "{path}");
        };
        check("a/b", true);
        check("a/b/x", true);
        check("c", true);
        check("c/d/e", true);
        check("a", false);
        check("a/bc", false);
        check("a/b-c/x", false);
        check("cc/d", false);
    }
}
