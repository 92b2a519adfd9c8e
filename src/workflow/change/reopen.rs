//! Opens work on a change again that the user undid, by the turns of its session.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::change::phase::{ChangePhase, ChangeStep};
use crate::change::state::ChangeEntry;
use crate::change::store::Change;
use crate::change::tasks;
use crate::host::clock;
use crate::project::Project;
use crate::session::meta::{RestoreCommand, Restored};
use crate::session::publication::Delta;
use crate::session::turn::Turn;
use crate::workspace::stack::in_effect::{InEffect, UndoneTurns};
use crate::workspace::stack::{Stacks, is_patch};

/// Sets the phase and the ticks to what is in effect (`C13` to `C15` of
/// docs/formats/change-state.md). The next step records them.
pub(super) fn reopen_undone(project: &Project, change: &mut Change) -> anyhow::Result<()> {
    let (store, session) = (project.store(), change.id.session());
    if !store.has(&session)? {
        return Ok(());
    }
    // Newest first.
    let turns: Vec<Turn> = store
        .history(store.tip(&session)?)
        .collect::<anyhow::Result<_>>()?;
    if turns.iter().all(|turn| turn.meta.restored.is_none()) {
        return Ok(());
    }

    let stacks = Stacks::new(&project.repository);
    let checkout = project.checkout();
    let own = turns.partition_point(|turn| checkout.is_own_turn(turn).unwrap_or_default());
    let foreign = turns.get(own).map_or(0, Turn::number);
    let now = TurnsInEffect::after(&stacks, &turns, foreign)?;
    // Of those turns that were in effect after the turn `newest`.
    let lost = |newest: u64, of: &dyn Fn(&Turn) -> bool| -> anyhow::Result<Vec<u64>> {
        let covered = &turns[turns.partition_point(|turn| turn.number() > newest)..];
        let then = TurnsInEffect::after(&stacks, covered, foreign)?;
        let mut lost = Vec::new();
        for turn in covered.iter().filter(|turn| of(turn)) {
            if then.has(turn)? && !now.has(turn)? {
                lost.push(turn.number());
            }
        }
        Ok(lost)
    };
    let mut undone = Vec::new();
    if change.state.phase == ChangePhase::Archived {
        let newest = newest_turn_at(project, change).unwrap_or_default();
        undone = lost(newest, &|turn| turn.archives_change(&project.repository))?;
        if undone.is_empty() {
            return Ok(());
        }
        change.state.phase = ChangePhase::Complete;
    }
    if change.state.phase == ChangePhase::Complete {
        let newest = newest_turn_at(project, change).unwrap_or_default();
        let is_work = |turn: &Turn| turn.meta.restored.is_none();
        let work = lost(newest, &is_work)?;
        if !work.is_empty() {
            change.state.phase = ChangePhase::Implementing;
        }
        undone.extend(work);
    }

    let is_undone = |attempt: &Attempt, turn: &Turn| -> anyhow::Result<bool> {
        if now.has(turn)? {
            return Ok(false);
        }
        // A turn whose conflict was settled for the user's side was never in effect.
        let lost = lost(attempt.newest, &|turn| turn.number() == attempt.turn)?;
        Ok(now.undone.has(attempt.turn) || !lost.is_empty())
    };
    // Without an attempt that is in effect.
    let is_open = |attempts: &[Attempt]| -> anyhow::Result<bool> {
        let mut open = false;
        for attempt in attempts {
            let turn = turns.iter().find(|turn| turn.number() == attempt.turn);
            if let Some(turn) = turn {
                open = is_undone(attempt, turn)?;
                if !open {
                    break;
                }
            }
        }
        Ok(open)
    };
    undone.extend(reopen_work(project, change, &is_open)?);
    undone.sort_unstable();
    undone.dedup();
    change.undone = undone;
    Ok(())
}

/// The session's newest turn when the change last reached its phase.
fn newest_turn_at(project: &Project, change: &Change) -> Option<u64> {
    let reached = noted(project, change).filter(|entry| entry.phase == change.state.phase);
    reached.last()?.newest_turn
}

pub(super) fn newest_turn(project: &Project, change: &Change) -> anyhow::Result<Option<u64>> {
    let (store, session) = (project.store(), change.id.session());
    if !store.has(&session)? {
        return Ok(None);
    }
    Ok(Some(store.tip(&session)?.number()))
}

/// A turn that did a task or a fix.
#[derive(Clone, Copy)]
struct Attempt {
    turn: u64,
    /// Of the session, when the work was recorded. A restore can have settled a conflict.
    newest: u64,
}

/// Removes the ticks of tasks that are open. Returns their turns, and those of fixes that no review
/// has seen yet.
fn reopen_work(
    project: &Project,
    change: &mut Change,
    is_open: &dyn Fn(&[Attempt]) -> anyhow::Result<bool>,
) -> anyhow::Result<Vec<u64>> {
    let mut attempts: BTreeMap<Option<String>, Vec<Attempt>> = BTreeMap::new();
    for entry in noted(project, change) {
        let attempt = entry.turn.map(|turn| Attempt {
            turn,
            newest: entry.newest_turn.unwrap_or(turn),
        });
        let is = |step: ChangeStep| entry.step == step.word();
        if is(ChangeStep::Task) {
            let about = attempts.entry(entry.about.clone()).or_default();
            about.extend(attempt);
        } else if is(ChangeStep::Fix) {
            attempts.entry(None).or_default().extend(attempt);
        } else if is(ChangeStep::Review) || is(ChangeStep::Approve) {
            attempts.remove(&None);
        }
    }

    let mut open = BTreeMap::new();
    for (about, turns) in attempts {
        if is_open(&turns)? {
            open.insert(about, turns);
        }
    }
    let text = change.documents.text(tasks::FILE);
    let unticked = tasks::untick(text, |number| open.contains_key(&Some(number.to_owned())));
    if unticked != text {
        set_ticks(change, unticked);
    }
    let turns = open.into_values().flatten();
    Ok(turns.map(|attempt| attempt.turn).collect())
}

/// Entries of the work in this session. Those from before its start name turns of a session that was
/// deleted.
pub(super) fn noted<'a>(
    project: &Project,
    change: &'a Change,
) -> impl Iterator<Item = &'a ChangeEntry> {
    let first = project.store().turn(&change.id.session(), "0").ok();
    let begin = first
        .and_then(|turn| turn.meta.started)
        .and_then(|time| clock::parse(&time));
    let is_before = move |entry: &&ChangeEntry| {
        let at = clock::parse(&entry.at);
        at.zip(begin.as_ref())
            .is_some_and(|(at, begin)| at < *begin)
    };
    let entries = change.state.history.iter();
    entries.filter(move |entry| !is_before(entry))
}

pub(super) fn set_ticks(change: &mut Change, text: String) {
    let stale = change.state.stale(&change.documents);
    // A tick changes no meaning, so the checksum follows it. An edit of the user's must stay
    // visible.
    if !stale.iter().any(|name| name == tasks::FILE) {
        change
            .state
            .seal_one(tasks::FILE, &text, &clock::now().timestamp().to_string());
    }

    change.documents.insert(tasks::FILE, text);
}

/// As `land` sees them: neither undone nor restored away.
struct TurnsInEffect<'a> {
    undone: UndoneTurns,
    in_worktrees: Vec<InEffect<'a>>,
    /// Each with the id of the turn that it picked.
    picks: Vec<(Uuid, Delta)>,
}

impl<'a> TurnsInEffect<'a> {
    /// `turns` are newest first. Those up to `foreign` are another user's.
    fn after(
        stacks: &'a Stacks<'a>,
        turns: &[Turn],
        foreign: u64,
    ) -> anyhow::Result<TurnsInEffect<'a>> {
        let mut undone = UndoneTurns::default();
        turns.iter().for_each(|turn| undone.add_restore(turn));
        // A turn knows only its own worktree. What another one has is lost only by a restore.
        let (mut worktrees, mut in_worktrees) = (BTreeSet::new(), Vec::new());
        for turn in turns {
            let Some(workspace) = &turn.meta.workspace else {
                continue;
            };
            let worktree = (workspace.worktree.as_str(), turn.number() > foreign);
            if !worktrees.contains(&worktree) && stacks.own(turn)?.is_some() {
                worktrees.insert(worktree);
                in_worktrees.push(InEffect::new(stacks, stacks.after(turn)?));
            }
            let restored = turn.meta.restored.as_ref();
            let is_whole = |restored: &Restored| {
                restored.by == RestoreCommand::Restore && restored.paths.is_empty()
            };
            if workspace.synced && restored.is_some_and(is_whole) {
                break;
            }
        }
        let pick = |turn: &Turn| {
            let (picked, workspace) = (turn.meta.picked.as_ref()?, turn.meta.workspace.as_ref()?);
            Some((picked.turn_id, workspace.change()))
        };
        Ok(TurnsInEffect {
            undone,
            in_worktrees,
            picks: turns.iter().filter_map(pick).collect(),
        })
    }

    fn has(&self, turn: &Turn) -> anyhow::Result<bool> {
        let workspace = turn.meta.workspace.as_ref();
        let Some(workspace) = workspace.filter(|_| is_patch(turn)) else {
            return Ok(!self.undone.has(turn.number()));
        };
        if !self.undone.has(turn.number()) && self.contain(workspace.change())? {
            return Ok(true);
        }
        for (id, change) in &self.picks {
            if *id == turn.meta.turn_id && self.contain(*change)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn contain(&self, change: Delta) -> anyhow::Result<bool> {
        for stack in &self.in_worktrees {
            if stack.has(change)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
