//! Plans the commits of a landing: applies the changes of turns to the tree of HEAD, in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use uuid::Uuid;

use super::error::{LandError, RemovedLandings};
use super::message::{self, Comments, TurnSummary, draft, summarize_turn, with_lines};
use crate::git::diff::{self, TreeChange};
use crate::git::land::branch::Target;
use crate::git::land::commit::{CommitMessage, message_template};
use crate::git::merge::{self, Merged};
use crate::git::object::read::list_submodules;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::git::{history, ignore};
use crate::project::Project;
use crate::query::contained::is_contained;
use crate::session::meta::{Landed, LandedTurn, Workspace};
use crate::session::store::StoreError;
use crate::session::turn::Turn;
use crate::text::hint::error_with_hint;
use crate::text::path::lossy_paths;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_operands;
use crate::workspace::file_move::trees_of;
use crate::workspace::landing::{
    LandingClaims, is_landed_in, landed_as, landed_on_remote, turns_named,
};
use crate::workspace::snapshot;
use crate::workspace::stack::in_effect::{InEffect, UndoneTurns};
use crate::workspace::stack::{Stacks, is_patch};

/// Landings that are searched for on the branch, each among many commits.
const MAX_LANDINGS_BACK: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MessageSource {
    Given(String),
    /// Of the turns' titles and requests.
    #[default]
    Draft,
    /// The draft, edited by the user.
    Edited,
}

#[derive(Debug, Clone, Default)]
pub struct LandOptions {
    /// A turn, or a range of turns. `None` for all that have not landed.
    pub range: Option<String>,
    pub message: MessageSource,
    /// A commit for each turn.
    pub each: bool,
    pub branch: Option<String>,
    /// Only shows what would be committed.
    pub dry_run: bool,
    /// Skips the hooks that check.
    pub no_verify: bool,
    /// Commits again with what a hook changed before it refused.
    pub with_repairs: bool,
    /// Lands what the user's files lack.
    pub anyway: bool,
}

#[derive(Debug)]
pub(super) struct PlannedCommit {
    pub landings: Vec<Landing>,
    pub message: CommitMessage,
    pub from: TreeId,
    /// Without changes by hooks.
    pub tree: TreeId,
}

#[derive(Debug)]
pub(super) enum LandPlan {
    Commits(Vec<PlannedCommit>),
    Overlap(LandOverlap),
}

/// A turn conflicts with HEAD.
#[derive(Debug)]
pub(super) struct LandOverlap {
    pub turn: u64,
    pub paths: Vec<Vec<u8>>,
}

/// In order. Fails with [`LandError`] if nothing is left to commit.
pub(super) fn plan_landing(
    project: &Project,
    tip: &Turn,
    selected: SelectedTurns,
    target: &Target,
    options: &LandOptions,
) -> anyhow::Result<LandPlan> {
    let numbers = |landings: &[Landing]| -> Vec<u64> {
        let turns = landings.iter().map(|landing| landing.turn.number());
        turns.collect()
    };
    let all = numbers(&selected.landings);
    let mut tree = target.tree;
    let mut planned: Vec<PlannedCommit> = Vec::new();

    for landing in selected.landings {
        let merged = merge_turn(&project.repository, tree, &landing)?;
        // `select_turns` has checked that the turn is in the files.
        let is_current = target.is_current;
        if !is_contained(project, tip, &landing.turn, &merged.paths, is_current)? {
            return Ok(LandPlan::Overlap(LandOverlap {
                turn: landing.turn.number(),
                paths: merged.paths,
            }));
        }
        let next = merged.ours;
        // HEAD already has the change.
        if next == tree {
            continue;
        }

        match planned.last_mut().filter(|_| !options.each) {
            Some(last) => {
                last.landings.push(landing);
                last.tree = next;
            }
            None => planned.push(PlannedCommit {
                landings: vec![landing],
                message: CommitMessage::default(),
                from: tree,
                tree: next,
            }),
        }

        tree = next;
    }

    if planned.is_empty() {
        return Err(match all.is_empty() {
            true => LandError::Ignored.into(),
            false => LandError::InHead(turns_named(&all)).into(),
        });
    }
    // Only a commit of several turns can be without a change.
    if let [commit] = planned.as_slice()
        && commit.tree == commit.from
    {
        return Err(LandError::Reverted(turns_named(&numbers(&commit.landings))).into());
    }

    for commit in &mut planned {
        commit.message = draft_message(project, commit, options)?;
    }

    Ok(LandPlan::Commits(planned))
}

fn merge_turn(repository: &Repository, tree: TreeId, landing: &Landing) -> anyhow::Result<Merged> {
    merge::merge_trees(repository, landing.before, tree, landing.after)
}

fn draft_message(
    project: &Project,
    commit: &PlannedCommit,
    options: &LandOptions,
) -> anyhow::Result<CommitMessage> {
    let repository = &project.repository;
    let turns: Vec<TurnSummary> = commit
        .landings
        .iter()
        .map(|landing| summarize_turn(repository, &landing.turn))
        .collect::<anyhow::Result<_>>()?;
    let trailers = message::trailers(&turns, &project.settings.land.trailers)?;
    let comments = Comments::of(repository);
    let draft = match &options.message {
        MessageSource::Given(text) => {
            if comments.is_empty(text, &trailers) {
                return Err(LandError::EmptyMessage.into());
            }
            return Ok(CommitMessage {
                text: with_lines(text, &trailers),
                trailers,
                ..CommitMessage::default()
            });
        }
        MessageSource::Draft | MessageSource::Edited => draft(&turns),
    };

    let edit = options.message == MessageSource::Edited;
    let template = edit.then(|| message_template(repository)).flatten();
    let message = comments.message(&draft, template.as_deref(), &trailers);
    Ok(CommitMessage { edit, ..message })
}

/// Hooks can have changed files in the real parent.
pub(super) fn apply_commit(
    repository: &Repository,
    from: TreeId,
    commit: &PlannedCommit,
) -> anyhow::Result<TreeId> {
    if from == commit.from {
        return Ok(commit.tree);
    }

    let mut tree = from;
    for landing in &commit.landings {
        let merged = merge_turn(repository, tree, landing)?;
        if !merged.is_clean() {
            let (turn, paths) = (landing.turn.number(), lossy_paths(&merged.paths));
            let hint = format!(
                "`git commit {}` commits the turn as your files have it; without `--each`, hooks see both turns in one commit",
                shell_operands(&paths)
            );
            let error = format!(
                "a hook changed `{}` where turn {turn} does, too, so that turn {turn} does not land",
                sanitize_line(&paths.join("`, `"))
            );
            return Err(error_with_hint(error, hint));
        }
        tree = merged.ours;
    }

    Ok(tree)
}

pub(super) fn landed_turn(landing: &Landing) -> LandedTurn {
    LandedTurn {
        number: landing.turn.number(),
        turn_id: landing.turn.meta.turn_id,
    }
}

#[derive(Debug, Clone)]
pub(super) struct Landing {
    pub turn: Turn,
    pub before: TreeId,
    /// Without changes that are not in effect, and without files that git ignores.
    pub after: TreeId,
}

#[derive(Debug, Default)]
pub(super) struct SelectedTurns {
    /// Oldest first.
    pub landings: Vec<Landing>,
    pub ignored: Vec<Vec<u8>>,
    /// Not submodules.
    pub repositories: Vec<Vec<u8>>,
}

/// The requested turns, or those in effect that have not landed.
pub(super) fn select_turns(
    project: &Project,
    tip: &Turn,
    range: Option<&str>,
    target: &Target,
) -> anyhow::Result<SelectedTurns> {
    let span = range
        .map(|range| parse_range(project, tip, range))
        .transpose()?;
    let stacks = Stacks::new(&project.repository);
    let in_effect = InEffect::new(&stacks, stacks.after(tip)?);
    let files = || Ok(snapshot::snapshot(&project.checkout(), &[])?.tree);
    // Another branch than the current one is not compared with the user's files.
    let in_files = match target.is_current && stacks.are_known()? {
        true => Some(InEffect::new(&stacks, stacks.current(tip, &files)?)),
        false => None,
    };
    let candidates = candidates(project, tip, span.as_ref())?;
    let newest = tip.meta.workspace.as_ref();
    let is_elsewhere = newest.is_some_and(|workspace| !stacks.ran_here(workspace));

    let mut selected = SelectedTurns::default();
    for turn in candidates {
        let mut changes = in_effect.of(workspace_of(&turn)?.change())?;
        // The newest turn says only what the files of its own worktree contain.
        if let Some(in_files) = in_files
            .as_ref()
            .filter(|_| is_elsewhere && changes.is_empty())
        {
            changes = in_files.of(workspace_of(&turn)?.change())?;
        }
        if changes.is_empty() {
            if span.as_ref().is_some_and(|(from, to)| from == to) {
                return Err(LandError::NotInEffect(turn.number()).into());
            }
            continue;
        }

        if let Some(in_files) = &in_files
            && in_files.of(workspace_of(&turn)?.change())?.len() < changes.len()
        {
            return Err(LandError::NotInFiles(turn.number()).into());
        }
        selected.take(project, turn, changes, target)?;
    }

    if selected.landings.is_empty() && selected.ignored.is_empty() {
        if !selected.repositories.is_empty() {
            return Err(LandError::Repositories.into());
        }
        let removed = match range {
            Some(_) => RemovedLandings::default(),
            None => find_removed(project, tip, target, &in_effect)?,
        };
        let session = tip.session.to_string();
        return Err(LandError::Nothing { session, removed }.into());
    }

    for paths in [&mut selected.ignored, &mut selected.repositories] {
        paths.sort();
        paths.dedup();
    }
    Ok(selected)
}

fn find_removed(
    project: &Project,
    tip: &Turn,
    target: &Target,
    in_effect: &InEffect<'_>,
) -> anyhow::Result<RemovedLandings> {
    let mut removed = RemovedLandings {
        branch: target.name.clone(),
        ..RemovedLandings::default()
    };
    let ids = removed_turns(project, tip, &target.name)?;
    if ids.is_empty() {
        return Ok(removed);
    }

    let (mut in_range, mut found) = (Vec::new(), Vec::new());
    for turn in candidates(project, tip, Some(&(0, tip.number())))? {
        if in_effect.of(workspace_of(&turn)?.change())?.is_empty() {
            continue;
        }
        in_range.push(turn.number());
        if let Some(remote) = ids.get(&turn.meta.turn_id) {
            found.push((turn.number(), remote));
        }
    }
    // To land again what a remote has would commit it twice.
    removed.remote = found.iter().find_map(|(_, remote)| (*remote).clone());
    found.retain(|(_, remote)| **remote == removed.remote);
    removed.turns = found.iter().map(|(number, _)| *number).collect();

    if let [first, .., last] = removed.turns.as_slice() {
        in_range.retain(|number| (first..=last).contains(&number));
        removed.is_range = in_range == removed.turns;
    }
    Ok(removed)
}

/// Turns before one that overlaps with HEAD that changed the same files, are in effect and are not in
/// HEAD, with the remote-tracking branch that has one of them.
pub(super) fn lacking_below(
    project: &Project,
    tip: &Turn,
    overlap: &LandOverlap,
    target: &Target,
) -> anyhow::Result<RemovedLandings> {
    let mut lacking = RemovedLandings::default();
    let range = format!("..{}", overlap.turn);
    let Ok(selected) = select_turns(project, tip, Some(&range), target) else {
        return Ok(lacking);
    };
    let in_head = landed_turns(project, tip, target)?;
    let removed = removed_turns(project, tip, &target.name)?;
    for landing in selected.landings {
        let (number, id) = (landing.turn.number(), landing.turn.meta.turn_id);
        let changes = diff::changes(&project.repository, landing.before, landing.after)?;
        let is_same_file = changes
            .iter()
            .any(|change| overlap.paths.contains(&change.path));
        if number >= overlap.turn || !is_same_file || in_head.contains(&id) {
            continue;
        }
        // A squash merge has the change, but not the commit.
        let merged = merge_turn(&project.repository, target.tree, &landing)?;
        let is_there = merged.ours == target.tree
            && is_contained(
                project,
                tip,
                &landing.turn,
                &merged.paths,
                target.is_current,
            )?;
        if !is_there {
            lacking.turns.push(number);
            let remote = removed.get(&id).cloned().flatten();
            lacking.remote = lacking.remote.or(remote);
        }
    }
    Ok(lacking)
}

/// Turns whose commits are in the history of HEAD. Only the newest landings are searched for; older
/// ones count as there.
fn landed_turns(project: &Project, tip: &Turn, target: &Target) -> anyhow::Result<HashSet<Uuid>> {
    let mut landed_turns = HashSet::new();
    let Some(head) = target.base else {
        return Ok(landed_turns);
    };
    for (searched, landed) in landings(project, tip).enumerate() {
        for commit in &landed?.commits {
            let is_old = searched >= MAX_LANDINGS_BACK;
            if is_old || is_landed_in(&project.repository, head, commit)? {
                landed_turns.extend(commit.turns.iter().map(|turn| turn.turn_id));
            }
        }
    }
    Ok(landed_turns)
}

/// The believed ones of a session, newest first.
fn landings<'a>(
    project: &'a Project,
    tip: &Turn,
) -> impl Iterator<Item = anyhow::Result<Landed>> + use<'a> {
    let mut claims = LandingClaims::new(&project.repository, &tip.session);
    let turns = project.store().history(tip.clone());
    turns.filter_map(move |turn| turn.map(|turn| claims.of(&turn)).transpose())
}

/// Those of the newest landings on a branch that has none of their commits, with the
/// remote-tracking branch that has them.
fn removed_turns(
    project: &Project,
    tip: &Turn,
    branch: &str,
) -> anyhow::Result<HashMap<Uuid, Option<String>>> {
    let (mut there, mut removed) = (HashSet::new(), HashMap::new());
    let on_branch = |landed: &anyhow::Result<Landed>| {
        let landed = landed.as_ref();
        landed.map_or(true, |landed| landed.branch == branch)
    };
    let newest = landings(project, tip).filter(on_branch);
    for landed in newest.take(MAX_LANDINGS_BACK) {
        for commit in &landed?.commits {
            let turns = commit.turns.iter().map(|turn| turn.turn_id);
            match landed_as(&project.repository, branch, commit)? {
                Some(_) => there.extend(turns),
                None => {
                    let remote = landed_on_remote(&project.repository, branch, commit)?;
                    removed.extend(turns.map(|turn| (turn, remote.clone())));
                }
            }
        }
    }

    removed.retain(|turn, _| !there.contains(turn));
    Ok(removed)
}

/// First and last turn, inclusive.
fn parse_range(project: &Project, tip: &Turn, range: &str) -> anyhow::Result<(u64, u64)> {
    let number = |name: &str| -> anyhow::Result<u64> {
        let result = project.store().turn(&tip.session, name);
        let turn = result.map_err(|error| about_session(error, name))?;
        let is_own = turn.session == tip.session
            && history::is_ancestor(&project.repository, turn.commit, tip.commit)?;
        anyhow::ensure!(
            is_own,
            "`{name}` is not a turn of session `{}`; `-s <session>` names another session",
            tip.session
        );

        Ok(turn.number())
    };
    let Some((from, to)) = range.split_once("..") else {
        let number = number(range)?;
        return Ok((number, number));
    };

    let from = if from.is_empty() { 0 } else { number(from)? };
    let to = if to.is_empty() {
        tip.number()
    } else {
        number(to)?
    };

    if from > to {
        return Err(LandError::Range(range.to_owned()).into());
    }

    Ok((from, to))
}

/// A session was given instead of a turn.
fn about_session(error: anyhow::Error, name: &str) -> anyhow::Error {
    match error.downcast_ref() {
        Some(StoreError::NoTurn {
            has_session: true, ..
        }) => LandError::Session(name.to_owned()).into(),
        _ => error,
    }
}

/// Oldest first. A turn that is requested can land once more.
fn candidates(
    project: &Project,
    tip: &Turn,
    span: Option<&(u64, u64)>,
) -> anyhow::Result<Vec<Turn>> {
    let (mut candidates, mut landed) = (Vec::new(), HashSet::<Uuid>::new());
    let mut undone = UndoneTurns::default();
    let mut claims = LandingClaims::new(&project.repository, &tip.session);
    for turn in project.store().history(tip.clone()) {
        let turn = turn?;
        let number = turn.number();
        undone.add_restore(&turn);
        // Newest first, so a landing comes before the turns that it landed.
        if let Some(landing) = claims.of(&turn) {
            let turns = landing.commits.iter().flat_map(|commit| &commit.turns);
            landed.extend(turns.map(|turn| turn.turn_id));
        }

        let is_wanted = match span {
            Some((from, to)) => (from..=to).contains(&&number),
            None => !landed.contains(&turn.meta.turn_id),
        };
        let is_own = turn.meta.restored.is_none() && turn.meta.landed.is_none();
        if is_wanted && undone.has(number) {
            if span == Some(&(number, number)) {
                return Err(LandError::NotInEffect(number).into());
            }
        } else if is_wanted && is_own && is_patch(&turn) {
            candidates.push(turn);
        } else if span == Some(&(number, number)) {
            return Err(match turn.meta.restored {
                Some(_) => LandError::Restore(number).into(),
                None => LandError::Unchanged(number).into(),
            });
        }
    }

    candidates.reverse();
    Ok(candidates)
}

impl SelectedTurns {
    /// Excludes ignored files that HEAD does not have, and nested repositories that `.gitmodules`
    /// does not name: another clone gets no content for them.
    fn take(
        &mut self,
        project: &Project,
        turn: Turn,
        changes: Vec<TreeChange>,
        target: &Target,
    ) -> anyhow::Result<()> {
        let repository = &project.repository;
        let paths: Vec<&[u8]> = changes
            .iter()
            .map(|change| change.path.as_slice())
            .collect();
        let statuses = ignore::ignore_status(repository, &paths)?;
        let mut edits: BTreeMap<Vec<u8>, Option<TreeEntry>> = BTreeMap::new();

        let registered = submodule_paths(project, &turn, &changes, target)?;
        for (change, status) in changes.into_iter().zip(statuses) {
            if changes_repository(&change) && !registered.contains(&change.path) {
                self.repositories.push(change.path);
                continue;
            }
            let is_in_head = repository.entry(target.tree, &change.path)?.is_some();
            if status.ignored && !status.tracked && !is_in_head {
                self.ignored.push(change.path);
            } else {
                edits.insert(change.path, change.new);
            }
        }

        if !edits.is_empty() {
            let [before, _] = turn_trees(project, &turn)?;
            self.landings.push(Landing {
                after: diff::tree_with(repository, before, &edits)?,
                before,
                turn,
            });
        }

        Ok(())
    }
}

fn changes_repository(change: &TreeChange) -> bool {
    let entries = [&change.old, &change.new];
    entries
        .into_iter()
        .flatten()
        .any(|entry| entry.mode == EntryMode::Commit)
}

/// Of the branch, and of a turn that changes some.
fn submodule_paths(
    project: &Project,
    turn: &Turn,
    changes: &[TreeChange],
    target: &Target,
) -> anyhow::Result<BTreeSet<Vec<u8>>> {
    let mut registered = BTreeSet::new();
    if changes.iter().any(changes_repository) {
        let [_, after] = turn_trees(project, turn)?;
        for tree in [target.tree, after] {
            registered.extend(list_submodules(&project.repository, tree)?);
        }
        // A gitlink that is committed without `.gitmodules` is intended.
        for change in changes.iter().filter(|change| changes_repository(change)) {
            let entry = project.repository.entry(target.tree, &change.path)?;
            if entry.is_some_and(|entry| entry.mode == EntryMode::Commit) {
                registered.insert(change.path.clone());
            }
        }
    }
    Ok(registered)
}

fn workspace_of(turn: &Turn) -> anyhow::Result<&Workspace> {
    let workspace = turn.meta.workspace.as_ref();
    workspace.ok_or_else(|| LandError::Unchanged(turn.number()).into())
}

/// Before and after the turn.
fn turn_trees(project: &Project, turn: &Turn) -> anyhow::Result<[TreeId; 2]> {
    trees_of(&project.repository, workspace_of(turn)?.change())
}
