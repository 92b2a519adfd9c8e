//! Finds the turns that an undo goes over, step by step.

use super::locked::{LockedSession, newest_applied};
use super::{OnOverlap, find_target_stack};
use serde::Serialize;

use crate::session::publication::Stack;
use crate::session::turn::Turn;
use crate::text::counted;
use crate::workflow::hint::error_with_hint;
use crate::workspace::stack::series::StackChanges;
use crate::workspace::stack::{PatchId, Stacks, is_patch};

/// A turn that an undo or redo skipped, because the files have nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    pub turn: u64,
    pub why: WhyPassedOver,
}

/// Reason that a turn was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyPassedOver {
    Unchanged,
    /// It only committed what other turns did.
    Landed,
    /// Conflicted with the user's edits and was not applied.
    NotBrought,
    /// Reverted by a turn of another session.
    TakenBack,
}

/// Finds the turns that an undo reverts.
pub(super) struct UndoWalk<'a> {
    session: &'a LockedSession<'a>,
    on_overlap: OnOverlap,
    /// Current turn of the session.
    pub(super) at: u64,
    /// Applied patches once the turns found so far are reverted.
    current: StackChanges<'a>,
    /// The turns by steps. A landing whose hooks changed files shares the step of the turn before it.
    pub(super) steps: Vec<Vec<Turn>>,
    pub(super) passed: Vec<PassedOver>,
}

impl<'a> UndoWalk<'a> {
    pub(super) fn new(
        session: &'a LockedSession<'a>,
        current: &Stack<PatchId>,
        on_overlap: OnOverlap,
    ) -> anyhow::Result<UndoWalk<'a>> {
        Ok(UndoWalk {
            session,
            on_overlap,
            at: session.newest.position(),
            current: StackChanges::of(&session.stacks, current),
            steps: vec![Vec::new()],
            passed: Vec::new(),
        })
    }

    pub(super) fn counted(&self) -> usize {
        let turns = self.steps.iter().flatten();
        turns.filter(|turn| turn.meta.landed.is_none()).count()
    }

    /// Goes back by one step.
    pub(super) fn step(&mut self) -> anyhow::Result<()> {
        if self.steps.last().is_none_or(|step| !step.is_empty()) {
            self.steps.push(Vec::new());
        }
        while !self.back()? {}

        let LockedSession {
            project,
            stacks,
            turns,
            ..
        } = self.session;
        if self.on_overlap == OnOverlap::Exact {
            let current = find_target_stack(project, stacks, &turns.turn(self.at)?)?;
            self.current = StackChanges::of(stacks, &current);
        }
        Ok(())
    }

    /// Goes back by one turn; returns whether it is a step.
    pub(super) fn back(&mut self) -> anyhow::Result<bool> {
        let LockedSession { stacks, turns, .. } = self.session;
        let at = self.at;
        let count = self.counted();
        if at == 0 && count > 0 {
            return Err(error_with_hint(
                format!("only {} can be undone", counted(count, "turn")),
                format!("`teddy undo {count}` goes back to the start"),
            ));
        }

        if at == 0 {
            return Err(error_with_hint(
                "there is nothing to undo: no turn of this session that changed files is in them",
                "`teddy log` lists the turns; `teddy restore <turn>` goes back to one",
            ));
        }

        let turn = turns.turn(at)?;
        self.at = newest_applied(turns, at - 1)?.position();

        let counts = turn.meta.landed.is_none();
        match why_passed(stacks, &mut self.current, &turn)? {
            Some(why) => {
                self.passed.push(PassedOver { turn: at, why });
                Ok(false)
            }
            None => {
                self.current = StackChanges::of(stacks, &stacks.base_of(&turn)?);
                let step = self.steps.last_mut().expect("there is one from the start");
                step.push(turn);
                Ok(counts)
            }
        }
    }
}

/// Returns why a turn needs no revert if these patches are applied.
fn why_passed(
    stacks: &Stacks<'_>,
    current: &mut StackChanges<'_>,
    turn: &Turn,
) -> anyhow::Result<Option<WhyPassedOver>> {
    let why = why_never_there(turn)?;
    if why.is_some() || turn.meta.restored.is_some() {
        return Ok(why);
    }
    let change = stacks.patch(stacks.id(turn)?)?.change;
    Ok((!current.has(change.after)?).then_some(WhyPassedOver::TakenBack))
}

fn why_never_there(turn: &Turn) -> anyhow::Result<Option<WhyPassedOver>> {
    let workspace = turn.meta.workspace.as_ref();
    Ok(if !is_patch(turn) && turn.meta.landed.is_some() {
        Some(WhyPassedOver::Landed)
    } else if !is_patch(turn) {
        Some(WhyPassedOver::Unchanged)
    } else if workspace.is_some_and(|workspace| !workspace.synced) {
        Some(WhyPassedOver::NotBrought)
    } else {
        None
    })
}
