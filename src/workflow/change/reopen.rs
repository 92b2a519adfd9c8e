//! Opens work on a change again that the user undid, by the turns of its session.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::change::phase::{ChangePhase, ChangeStep};
use crate::change::state::ChangeEntry;
use crate::change::store::Change;
use crate::change::tasks;
use crate::host::clock;
use crate::project::Project;
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
    let now = TurnsInEffect::after(&stacks, &turns)?;
    // Of those turns that were in effect after the turn `newest`.
    let lost = |newest: u64, of: &dyn Fn(&Turn) -> bool| -> anyhow::Result<Vec<u64>> {
        let covered = &turns[turns.partition_point(|turn| turn.number() > newest)..];
        let then = TurnsInEffect::after(&stacks, covered)?;
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

    let is_undone = |turn: &Turn| -> anyhow::Result<bool> {
        if now.has(turn)? {
            return Ok(false);
        }
        // A turn whose conflict was settled for the user's side was never in effect.
        let number = turn.number();
        let lost = lost(number, &|turn| turn.number() == number)?;
        Ok(now.undone.has(number) || !lost.is_empty())
    };
    let is_open = |attempts: &[u64]| -> anyhow::Result<bool> {
        let of = |turn: &&Turn| attempts.contains(&turn.number());
        let mut open = false;
        for turn in turns.iter().filter(of) {
            open = is_undone(turn)?;
            if !open {
                break;
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

/// Removes the ticks of tasks that are open. Returns their turns, and those of fixes that no review
/// has seen yet.
fn reopen_work(
    project: &Project,
    change: &mut Change,
    is_open: &dyn Fn(&[u64]) -> anyhow::Result<bool>,
) -> anyhow::Result<Vec<u64>> {
    let mut attempts: BTreeMap<Option<String>, Vec<u64>> = BTreeMap::new();
    for entry in noted(project, change) {
        match entry.turn {
            Some(turn) if entry.step == ChangeStep::Task.word() => {
                attempts.entry(entry.about.clone()).or_default().push(turn);
            }
            Some(turn) if entry.step == ChangeStep::Fix.word() => {
                attempts.entry(None).or_default().push(turn);
            }
            _ if entry.newest_turn.is_some() => {
                attempts.remove(&None);
            }
            _ => {}
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
    Ok(open.into_values().flatten().collect())
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
    stack: InEffect<'a>,
    /// Each with the id of the turn that it picked.
    picks: Vec<(Uuid, Delta)>,
}

impl<'a> TurnsInEffect<'a> {
    /// `turns` are newest first.
    fn after(stacks: &'a Stacks<'a>, turns: &[Turn]) -> anyhow::Result<TurnsInEffect<'a>> {
        let mut undone = UndoneTurns::default();
        turns.iter().for_each(|turn| undone.add_restore(turn));
        let stack = match turns.first() {
            Some(newest) => stacks.after(newest)?,
            None => Default::default(),
        };
        let pick = |turn: &Turn| {
            let (picked, workspace) = (turn.meta.picked.as_ref()?, turn.meta.workspace.as_ref()?);
            Some((picked.turn_id, workspace.change()))
        };
        Ok(TurnsInEffect {
            undone,
            stack: InEffect::new(stacks, stack),
            picks: turns.iter().filter_map(pick).collect(),
        })
    }

    fn has(&self, turn: &Turn) -> anyhow::Result<bool> {
        let workspace = turn.meta.workspace.as_ref();
        let Some(workspace) = workspace.filter(|_| is_patch(turn)) else {
            return Ok(!self.undone.has(turn.number()));
        };
        if !self.undone.has(turn.number()) && self.stack.has(workspace.change())? {
            return Ok(true);
        }
        for (id, change) in &self.picks {
            if *id == turn.meta.turn_id && self.stack.has(*change)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
