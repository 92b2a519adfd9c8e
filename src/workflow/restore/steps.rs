//! `undo` and `redo`: over the turns of a session that changed files, whatever other sessions did
//! meanwhile.

use std::cell::RefCell;

use anyhow::Context as _;
use serde::Serialize;

use super::way::{Direction, Planner};
use super::{Aim, RestoreOptions, RestoreResult, carry_out, wanted};
use crate::host::lock::Lock;
use crate::session::meta::{RestoreCommand, Restored};
use crate::session::publication::Stack;
use crate::session::store::back::TurnsBack;
use crate::session::turn::Turn;
use crate::text::counted;
use crate::workflow::hinted::{hinted, with_hint};
use crate::workflow::project::Project;
use crate::workflow::user::User;
use crate::workspace::drift::NO_RECORD;
use crate::workspace::stack::series::StackChanges;
use crate::workspace::stack::{PatchId, Stacks, is_patch};
use crate::workspace::transaction::Transaction;

/// The turns that a title names one by one.
const MAX_NAMED: usize = 4;

/// A turn that an undo or a redo did not count, as there is nothing of it in the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    /// Its number.
    pub turn: u64,
    /// Why.
    pub why: WhyPassedOver,
}

/// Why a turn was not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhyPassedOver {
    /// It changed no file.
    Unchanged,
    /// It only committed what others did, and a commit stays.
    Landed,
    /// It overlapped with the user's own edits and was not brought.
    NotBrought,
    /// Another session's turn took it back.
    TakenBack,
}

/// Nobody knows which turns are in the user's files.
#[derive(Debug, thiserror::Error)]
#[error("there is nothing to undo: {NO_RECORD}")]
pub struct NoRecord;

/// Goes back over the last `steps` turns that changed files.
///
/// # Errors
/// As for [`super::restore`], and if there are not so many.
pub fn undo(
    project: &Project,
    steps: u64,
    wish: &RestoreOptions,
    user: &mut dyn User,
) -> anyhow::Result<RestoreResult> {
    let session = LockedSession::enter(project, "undo", user)?;
    if !session.stacks.are_known()? {
        let error = NoRecord.into();
        let hint =
            "`teddy restore @` records which turns they have; unchanged files stay as they are";
        return Err(with_hint(error, hint));
    }

    let here = session.stacks.here(&session.tip)?;
    let mut walk = UndoWalk::from(session.newest.position(), Direction::Back);
    let mut redo = to_redo(&session.newest);

    let changes = RefCell::new(StackChanges::of(&session.stacks, &here));
    let why_not = |turn: &Turn| why_passed(&session.stacks, &changes, turn);
    for _ in 0..steps {
        redo.push(walk.at);
        while !walk.back(&session.turns, &why_not)? {}
    }

    let turn = session.turns.turn(walk.at)?;
    let aim = session.aim(&walk, &here, &turn, redo)?;
    let done = carry_out(&session.transaction, project, &session.tip, &aim, wish)?;
    Ok(RestoreResult {
        passed_over: walk.passed,
        ..done
    })
}

/// Returns how many undos lead back to a turn: over all later ones that changed files and are in
/// them.
///
/// # Errors
/// As for [`undo`].
pub fn steps_to(project: &Project, turn: u64, user: &mut dyn User) -> anyhow::Result<u64> {
    let session = LockedSession::enter(project, "undo", user)?;
    let here = session.stacks.here(&session.tip)?;
    let mut walk = UndoWalk::from(session.newest.position(), Direction::Back);
    let changes = RefCell::new(StackChanges::of(&session.stacks, &here));
    let why_not = |turn: &Turn| why_passed(&session.stacks, &changes, turn);
    while walk.at > turn {
        walk.back(&session.turns, &why_not)?;
    }

    Ok(walk.counted().count() as u64)
}

/// Goes forward again over the last `steps` undone turns.
///
/// # Errors
/// As for [`super::restore`], and if fewer turns were undone.
pub fn redo(
    project: &Project,
    steps: u64,
    wish: &RestoreOptions,
    user: &mut dyn User,
) -> anyhow::Result<RestoreResult> {
    let session = LockedSession::enter(project, "redo", user)?;
    let here = session.stacks.here(&session.tip)?;
    let mut redo = to_redo(&session.newest);
    let mut to = None;

    for _ in 0..steps {
        to = Some(redo.pop().ok_or_else(nothing_to_redo)?);
    }

    let mut walk = UndoWalk::from(to.ok_or_else(nothing_to_redo)?, Direction::Forward);
    let turn = session.turns.turn(walk.at)?;
    while walk.at > session.newest.position() {
        walk.back(&session.turns, &why_never_there)?;
    }

    walk.over.reverse();

    let aim = session.aim(&walk, &here, &turn, redo)?;
    carry_out(&session.transaction, project, &session.tip, &aim, wish)
}

/// Says that nothing was undone, or all of it was redone.
fn nothing_to_redo() -> anyhow::Error {
    hinted(
        "there is nothing to redo",
        "`teddy log` lists the turns; `teddy restore <turn>` goes to one",
    )
}

/// The session in use, in which nobody else records a turn.
struct LockedSession<'a> {
    /// The project.
    project: &'a Project,
    /// The newest turn.
    tip: Turn,
    /// The turns from there back.
    turns: TurnsBack<'a>,
    /// The newest turn that is in the user's files.
    newest: Turn,
    /// What is in the files.
    stacks: Stacks<'a>,
    /// What moves refs and files; ended before the session's lock is given back.
    transaction: Transaction,
    /// The session's lock.
    _session: Lock,
}

impl<'a> LockedSession<'a> {
    /// Locks the session in use, and finishes what a crash interrupted.
    fn enter(
        project: &'a Project,
        command: &str,
        user: &mut dyn User,
    ) -> anyhow::Result<LockedSession<'a>> {
        let session = project.session()?;
        let session_lock = project.lock_session(&session, command)?;
        let transaction = project.enter(command, user)?;
        let tip = project.store().tip(&session)?;
        Ok(LockedSession {
            project,
            newest: brought(project, &tip)?,
            stacks: Stacks::new(&project.repository),
            turns: project.store().back_from(tip.clone()),
            tip,
            transaction,
            _session: session_lock,
        })
    }

    /// Returns where a walk leads: to a turn, whose redo goes through others.
    fn aim<'b>(
        &'b self,
        walk: &UndoWalk,
        here: &'b Stack<PatchId>,
        turn: &'b Turn,
        redo: Vec<u64>,
    ) -> anyhow::Result<Aim<'b>> {
        let planner = Planner {
            repository: &self.project.repository,
            stacks: &self.stacks,
            here,
        };
        let verb = match walk.direction {
            Direction::Back => "Undo",
            Direction::Forward => "Redo",
        };
        Ok(Aim {
            title: title(verb, &walk.counted().collect::<Vec<_>>()),
            way: planner.over(&walk.over, walk.direction)?,
            restored: restored(turn, redo, &walk.over),
            wanted: wanted(self.project, &self.stacks, turn)?,
            planner,
            turns: &self.turns,
            turn,
        })
    }
}

/// Turns that are gone over, found on the way back.
struct UndoWalk {
    /// Which way they are gone over.
    direction: Direction,
    /// The turn whose state the session has.
    at: u64,
    /// The turns that were gone over.
    over: Vec<Turn>,
    /// Those that did not count.
    passed: Vec<PassedOver>,
}

impl UndoWalk {
    /// Starts at a turn.
    fn from(at: u64, direction: Direction) -> UndoWalk {
        UndoWalk {
            direction,
            at,
            over: Vec::new(),
            passed: Vec::new(),
        }
    }

    /// Returns the turns that count: what hooks changed in a landing goes with the turn before it.
    fn counted(&self) -> impl Iterator<Item = &Turn> {
        self.over.iter().filter(|turn| turn.meta.landed.is_none())
    }

    /// Goes one turn back; says whether it counts.
    fn back(
        &mut self,
        turns: &TurnsBack<'_>,
        why_not: &dyn Fn(&Turn) -> anyhow::Result<Option<WhyPassedOver>>,
    ) -> anyhow::Result<bool> {
        let at = self.at;
        let count = self.counted().count();
        if at == 0 && count > 0 {
            return Err(hinted(
                format!("only {} can be undone", counted(count, "turn")),
                format!("`teddy undo {count}` goes back to the start"),
            ));
        }

        if at == 0 {
            return Err(hinted(
                "there is nothing to undo: no turn of this session that changed files is in them",
                "`teddy log` lists the turns; `teddy restore <turn>` goes back to one",
            ));
        }

        let turn = turns.turn(at)?;
        self.at = turns.turn(at - 1)?.position();

        let counts = turn.meta.landed.is_none();
        let why_not = why_not(&turn)?;
        match why_not {
            Some(why) => self.passed.push(PassedOver { turn: at, why }),
            None => self.over.push(turn),
        }

        Ok(why_not.is_none() && counts)
    }
}

/// Returns why there is nothing of a turn to take back, where the files have these changes.
fn why_passed(
    stacks: &Stacks<'_>,
    here: &RefCell<StackChanges<'_>>,
    turn: &Turn,
) -> anyhow::Result<Option<WhyPassedOver>> {
    let why = why_never_there(turn)?;
    if why.is_some() || turn.meta.restored.is_some() {
        return Ok(why);
    }
    let change = stacks.patch(stacks.id(turn)?)?.change;
    let is_there = here.borrow_mut().has(change.after)?;
    Ok((!is_there).then_some(WhyPassedOver::TakenBack))
}

/// Returns why a turn never changed the user's files.
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

/// Returns the newest turn but for restores that a save at the last moment kept from the user's
/// files.
fn brought(project: &Project, tip: &Turn) -> anyhow::Result<Turn> {
    let is_brought = |turn: &Turn| {
        turn.meta.restored.is_none()
            || turn
                .meta
                .workspace
                .as_ref()
                .is_none_or(|workspace| workspace.synced)
    };
    let newest = project
        .store()
        .history(tip.clone())
        .find(|turn| turn.as_ref().map_or(true, is_brought));
    newest.context("a session begins with no restore")?
}

/// Returns what a redo after a turn goes through.
fn to_redo(turn: &Turn) -> Vec<u64> {
    turn.meta
        .restored
        .as_ref()
        .map(|restored| restored.redo.clone())
        .unwrap_or_default()
}

/// Returns what the turn says of itself.
fn restored(to: &Turn, redo: Vec<u64>, over: &[Turn]) -> Restored {
    Restored {
        turn: to.number(),
        by: RestoreCommand::Undo,
        redo,
        over: over.iter().map(Turn::number).collect(),
    }
}

/// Returns the title of a turn that goes over others: `Undo 22: Add a form`.
fn title(verb: &str, over: &[&Turn]) -> String {
    let mut numbers: Vec<String> = over
        .iter()
        .take(MAX_NAMED)
        .map(|turn| turn.number().to_string())
        .collect();
    if over.len() > MAX_NAMED {
        numbers.push("...".to_owned());
    }

    match over {
        [] => verb.to_owned(),
        [one] => format!("{verb} {}: {}", one.number(), one.title),
        _ => format!("{verb} {}", numbers.join(", ")),
    }
}
