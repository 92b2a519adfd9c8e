//! Opens work on a change again that the user undid, by the turns of its session.

use std::collections::BTreeMap;

use crate::change::phase::{ChangePhase, ChangeStep};
use crate::change::state::ChangeEntry;
use crate::change::store::Change;
use crate::change::tasks;
use crate::host::clock;
use crate::project::Project;
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
    // A turn whose conflict was settled for the user's side was never in effect.
    let is_undone = |number: u64| {
        let lost = lost(number, &|turn| turn.number() == number)?;
        Ok(now.undone.has(number) || !lost.is_empty())
    };
    let is_archive = |turn: &Turn| turn.archives_change(&project.repository);
    let is_work = |turn: &Turn| turn.meta.restored.is_none() && !is_archive(turn);

    let mut undone = undone_work(project, change, &is_undone)?;
    let steps: [(ChangePhase, ChangePhase, &dyn Fn(&Turn) -> bool); 2] = [
        (ChangePhase::Archived, ChangePhase::Complete, &is_archive),
        (ChangePhase::Complete, ChangePhase::Implementing, &is_work),
    ];
    for (from, to, of) in steps {
        let newest = newest_turn_at(project, change).filter(|_| change.state.phase == from);
        if let Some(newest) = newest {
            let lost = lost(newest, of)?;
            if !lost.is_empty() {
                change.state.phase = to;
            }
            undone.extend(lost);
        }
    }

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

/// Removes the ticks of tasks that are undone. Returns their turns, and that of the fix that no
/// review has seen yet.
fn undone_work(
    project: &Project,
    change: &mut Change,
    is_undone: &dyn Fn(u64) -> anyhow::Result<bool>,
) -> anyhow::Result<Vec<u64>> {
    let mut newest: BTreeMap<Option<String>, u64> = BTreeMap::new();
    for entry in noted(project, change) {
        match entry.turn {
            Some(turn) if entry.step == ChangeStep::Task.word() => {
                newest.insert(entry.about.clone(), turn);
            }
            Some(turn) if entry.step == ChangeStep::Fix.word() => {
                newest.insert(None, turn);
            }
            _ if entry.newest_turn.is_some() => {
                newest.remove(&None);
            }
            _ => {}
        }
    }

    let mut undone = BTreeMap::new();
    for (about, turn) in newest {
        if is_undone(turn)? {
            undone.insert(about, turn);
        }
    }
    let text = change.documents.text(tasks::FILE);
    let open = tasks::untick(text, |number| undone.contains_key(&Some(number.to_owned())));
    if open != text {
        set_ticks(change, open);
    }
    Ok(undone.into_values().collect())
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
        Ok(TurnsInEffect {
            undone,
            stack: InEffect::new(stacks, stack),
        })
    }

    fn has(&self, turn: &Turn) -> anyhow::Result<bool> {
        if self.undone.has(turn.number()) {
            return Ok(false);
        }
        match &turn.meta.workspace {
            Some(workspace) if is_patch(turn) => self.stack.has(workspace.change()),
            _ => Ok(true),
        }
    }
}
