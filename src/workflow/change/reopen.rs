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
    let is_undone = |number: u64| {
        let turn = turns.iter().find(|turn| turn.number() == number);
        turn.map_or(Ok(false), |turn| now.has(turn).map(|has| !has))
    };

    let mut undone = undone_work(project, change, &is_undone)?;
    if change.state.phase == ChangePhase::Archived {
        let mut newest_first = turns.iter();
        let archive = newest_first.find(|turn| turn.archives_change(&project.repository));
        if let Some(archive) = archive
            && !now.has(archive)?
        {
            change.state.phase = ChangePhase::Complete;
            undone.push(archive.number());
        }
    }
    if change.state.phase == ChangePhase::Complete
        && let Some(reviewed) = approved_up_to(project, change)
    {
        let at_review = turns.partition_point(|turn| turn.number() > reviewed);
        let reviewed = &turns[at_review..];
        let then = TurnsInEffect::after(&stacks, reviewed)?;
        let own = reviewed.iter().filter(|turn| turn.meta.restored.is_none());
        let before = undone.len();
        for turn in own {
            if then.has(turn)? && !now.has(turn)? {
                undone.push(turn.number());
            }
        }
        if undone.len() > before {
            change.state.phase = ChangePhase::Implementing;
        }
    }

    undone.sort_unstable();
    undone.dedup();
    change.undone = undone;
    Ok(())
}

/// The newest turn that the last approval covers.
fn approved_up_to(project: &Project, change: &Change) -> Option<u64> {
    let completed = noted(project, change).filter(|entry| entry.phase == ChangePhase::Complete);
    completed.last()?.reviewed
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
            _ if entry.reviewed.is_some() => {
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
