//! `undo` and `redo` over the turns of a session that changed files, independent of what other
//! sessions did in between. Both append a turn.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use anyhow::Context as _;

use super::apply::apply_plan;
use super::carry_out;
use super::outcome::{PassedOver, RestoreResult, WhyPassedOver};
use super::restore_plan::{CrossedTurn, LockedSession, OnOverlap, Restore, RestoreOptions};
use crate::git::object::{CommitId, TreeId};
use crate::project::Project;
use crate::session::meta::{RestoreCommand, Restored};
use crate::session::publication::Stack;
use crate::session::turn::Turn;
use crate::text::counted;
use crate::text::hint::{error_with_hint, with_hint};
use crate::workflow::user::User;
use crate::workspace::drift::NO_RECORD;
use crate::workspace::stack::in_effect::InEffect;
use crate::workspace::stack::{Stacks, is_patch};

const MAX_NAMED: usize = 4;

#[derive(Debug, thiserror::Error)]
#[error("nothing to undo: {NO_RECORD}")]
pub struct NoRecord;

/// Fails if there are fewer steps.
pub fn undo(
    project: &Project,
    steps: u64,
    options: &RestoreOptions,
    user: &mut dyn User,
) -> anyhow::Result<RestoreResult> {
    let session = LockedSession::enter(project, "undo", user)?;
    if !session.stacks.are_known()? {
        let error = NoRecord.into();
        let hint =
            "`teddy restore @` records which turns they have; unchanged files stay as they are";
        return Err(with_hint(error, hint));
    }

    let current = session.current()?;
    let mut walk = UndoWalk::new(&session, &current, options.on_overlap)?;
    let mut redo = to_redo(&session.newest()?);
    for _ in 0..steps {
        redo.push(walk.at.number());
        walk.step()?;
    }

    let UndoWalk {
        at: turn,
        steps,
        passed,
        ..
    } = walk;
    let crossed: Vec<&Turn> = steps.iter().flatten().collect();
    let result = carry_out(&Restore {
        session: &session,
        options,
        title: title("Undo", &crossed),
        restored: restored(&turn, redo, &crossed),
        plan: session
            .planner(&current)
            .plan_crossing(&session.taken_back(&steps)?)?,
        stack: session.target_stack(&turn)?,
        current,
        turn,
    })?;
    Ok(RestoreResult {
        passed_over: passed,
        ..result
    })
}

pub fn steps_to(project: &Project, turn: u64, user: &mut dyn User) -> anyhow::Result<u64> {
    let session = LockedSession::enter(project, "undo", user)?;
    let current = session.current()?;
    let mut walk = UndoWalk::new(&session, &current, OnOverlap::Stop)?;
    while walk.at.number() > turn {
        walk.back()?;
    }

    Ok(walk.counted() as u64)
}

/// Fails if fewer steps were undone.
///
/// A redo reverts the undo: it merges the difference between the files after and before it. Without
/// edits in between it is the exact inverse, whatever the undo skipped or merged.
pub fn redo(
    project: &Project,
    steps: u64,
    options: &RestoreOptions,
    user: &mut dyn User,
) -> anyhow::Result<RestoreResult> {
    let session = LockedSession::enter(project, "redo", user)?;
    let current = session.current()?;
    let mut undo = session.newest()?;
    let mut redo = to_redo(&undo);
    let (mut undone, mut crossed, mut to) = (Vec::new(), Vec::new(), None);
    let mut opened: Option<OpenUndo<'_>> = None;

    let count = redo.len() as u64;
    if count > 0 && steps > count {
        return Err(error_with_hint(
            format!("only {} can be redone", counted(count, "turn")),
            format!("`teddy redo {count}` redoes all of them"),
        ));
    }
    for _ in 0..steps {
        undo = session.undo_behind(undo, redo.len())?;
        let same = opened.take_if(|opened| opened.turn.commit == undo.commit);
        let mut open_undo = match same {
            Some(same) => same,
            None => OpenUndo::read(&session, undo.clone())?,
        };
        let number = open_undo.number(redo.len())?;
        undone.push(vec![open_undo.step(number)?]);
        crossed.extend(open_undo.steps[number - 1].iter().rev().cloned());
        opened = Some(open_undo);
        to = Some(redo.pop().ok_or_else(nothing_to_redo)?);
    }

    let turn = session.turn(to.ok_or_else(nothing_to_redo)?)?;
    let crossed: Vec<&Turn> = crossed.iter().collect();
    carry_out(&Restore {
        session: &session,
        options,
        title: title("Redo", &crossed),
        restored: restored(&turn, redo, &crossed),
        plan: session.planner(&current).plan_crossing(&undone)?,
        stack: session.target_stack(&turn)?,
        current,
        turn,
    })
}

fn nothing_to_redo() -> anyhow::Error {
    error_with_hint(
        "nothing to redo",
        "`teddy log` lists the turns; `teddy restore <turn>` goes to one",
    )
}

impl LockedSession<'_> {
    /// The newest turn that is in the user's files.
    fn newest(&self) -> anyhow::Result<Turn> {
        newest_applied(self.project.store().history(self.entered.tip.clone()))
    }

    fn taken_back(&self, steps: &[Vec<Turn>]) -> anyhow::Result<Vec<Vec<CrossedTurn>>> {
        let nowhere = Stack::default();
        let planner = self.planner(&nowhere);
        let step = |step: &Vec<Turn>| step.iter().map(|turn| planner.taken_back(turn)).collect();
        steps.iter().map(step).collect()
    }

    /// What the files contain once a turn is reverted.
    fn without(&self, current: &Stack<CommitId>, turn: &Turn) -> anyhow::Result<Stack<CommitId>> {
        let planner = self.planner(current);
        let crossed = vec![planner.taken_back(turn)?];
        Ok(planner.plan_crossing(&[crossed])?.end())
    }

    /// The undo that extended the redo list to this length, searching back from `from`, whose list
    /// is at least as long.
    fn undo_behind(&self, from: Turn, length: usize) -> anyhow::Result<Turn> {
        let mut undo = from;
        if length == 0 {
            return Err(nothing_to_redo());
        }
        loop {
            let before = self.before(&undo)?;
            if to_redo(&before).len() < length {
                return Ok(undo);
            }
            undo = before;
        }
    }

    fn before(&self, turn: &Turn) -> anyhow::Result<Turn> {
        newest_applied(self.project.store().history(turn.clone()).skip(1))
    }

    /// The turn to which a restore leads, or the turn itself.
    fn position(&self, turn: Turn) -> anyhow::Result<Turn> {
        match turn.position() {
            number if number == turn.number() => Ok(turn),
            number => self.project.store().earlier(&turn, number),
        }
    }
}

/// An undo that is redone step by step.
struct OpenUndo<'a> {
    session: &'a LockedSession<'a>,
    turn: Turn,
    /// In the order in which it took them back.
    steps: Vec<Vec<Turn>>,
    taken_back: Vec<Vec<CrossedTurn>>,
    whole: CrossedTurn,
    /// What the files contain after each number of steps, beginning with none.
    stacks: Vec<Stack<CommitId>>,
    /// The files then, as far as they were merged.
    trees: BTreeMap<usize, Option<TreeId>>,
}

impl<'a> OpenUndo<'a> {
    fn read(session: &'a LockedSession<'a>, turn: Turn) -> anyhow::Result<OpenUndo<'a>> {
        let restored = turn.meta.restored.as_ref();
        let numbers = restored.map_or(&[][..], |restored| &restored.over);
        let (mut steps, mut last) = (vec![Vec::new()], turn.clone());
        for number in numbers {
            // Newest first, so each is near the one before.
            let from = match *number <= last.number() {
                true => &last,
                false => &session.entered.tip,
            };
            last = session.project.store().earlier(from, *number)?;
            let step = steps.last_mut().expect("there is one from the start");
            step.push(last.clone());
            if last.meta.landed.is_none() {
                steps.push(Vec::new());
            }
        }
        steps.pop();

        let nowhere = Stack::default();
        let whole = session.planner(&nowhere).taken_back(&turn)?;
        let [after, before] = &whole.stacks;
        let mut stacks = vec![before.clone()];
        let (_, first) = steps.split_last().unwrap_or((&Vec::new(), &[]));
        for step in first {
            let last = stacks.last().expect("there is one from the start");
            let mut turns = step.iter();
            let next = turns.try_fold(last.clone(), |stack, turn| session.without(&stack, turn))?;
            stacks.push(next);
        }
        // Only the last one is recorded.
        stacks.push(after.clone());
        Ok(OpenUndo {
            taken_back: session.taken_back(&steps)?,
            trees: BTreeMap::new(),
            session,
            turn,
            steps,
            whole,
            stacks,
        })
    }

    /// Returns the step, from 1, that made the redo list this long.
    fn number(&self, length: usize) -> anyhow::Result<usize> {
        let before = to_redo(&self.session.before(&self.turn)?).len();
        let number = length.checked_sub(before);
        let number = number.filter(|number| (1..=self.steps.len()).contains(number));
        number
            .with_context(|| format!("turn {} does not say what it went over", self.turn.number()))
    }

    fn step(&mut self, number: usize) -> anyhow::Result<CrossedTurn> {
        if self.steps.len() == 1 {
            return Ok(self.whole.clone());
        }

        let [from, to] = [self.tree(number)?, self.tree(number - 1)?];
        let unapplied = match number == self.steps.len() {
            true => self.whole.unapplied.clone(),
            false => HashSet::new(),
        };
        Ok(CrossedTurn {
            stacks: [number, number - 1].map(|number| self.stacks[number].clone()),
            trees: from.zip(to).map(|(from, to)| [from, to]),
            unapplied,
            change: None,
        })
    }

    /// Files after a number of steps. Only those before the first and after the last step are
    /// recorded; the others are merged again. `None` if that conflicts with the user's edits,
    /// because the choice is not recorded.
    fn tree(&mut self, number: usize) -> anyhow::Result<Option<TreeId>> {
        let Some([after, before]) = self.whole.trees else {
            return Ok(None);
        };
        if number == self.steps.len() {
            return Ok(Some(after));
        }
        if let Some(tree) = self.trees.get(&number) {
            return Ok(*tree);
        }

        let planner = self.session.planner(&self.whole.stacks[1]);
        let plan = planner.plan_crossing(&self.taken_back[..number])?;
        let project = self.session.project;
        let merged = apply_plan(project, before, &plan, OnOverlap::Stop, &BTreeSet::new())?;
        let tree = merged.overlaps.is_empty().then_some(merged.tree);
        self.trees.insert(number, tree);
        Ok(tree)
    }
}

fn to_redo(turn: &Turn) -> Vec<u64> {
    turn.meta
        .restored
        .as_ref()
        .map(|restored| restored.redo.clone())
        .unwrap_or_default()
}

fn restored(to: &Turn, redo: Vec<u64>, crossed: &[&Turn]) -> Restored {
    Restored {
        turn: to.number(),
        by: RestoreCommand::Undo,
        paths: Vec::new(),
        redo,
        over: crossed.iter().map(|turn| turn.number()).collect(),
    }
}

/// `Undo 22: Add a form`
fn title(verb: &str, crossed: &[&Turn]) -> String {
    let counted = crossed.iter().filter(|turn| turn.meta.landed.is_none());
    let counted: Vec<&&Turn> = counted.collect();
    let mut numbers: Vec<String> = counted
        .iter()
        .take(MAX_NAMED)
        .map(|turn| turn.number().to_string())
        .collect();
    if counted.len() > MAX_NAMED {
        numbers.push("...".to_owned());
    }

    match counted.as_slice() {
        [] => verb.to_owned(),
        [one] => format!("{verb} {}: {}", one.number(), one.title),
        _ => format!("{verb} {}", numbers.join(", ")),
    }
}

/// Skips restores that never reached the user's files: they leave the session where it was.
fn newest_applied(mut turns: impl Iterator<Item = anyhow::Result<Turn>>) -> anyhow::Result<Turn> {
    let is_applied = |turn: &Turn| {
        let files = turn.meta.workspace.as_ref();
        turn.meta.restored.is_none() || files.is_none_or(|files| files.synced)
    };
    let newest = turns.find(|turn| turn.as_ref().map_or(true, is_applied));
    newest.context("a session begins with no restore")?
}

struct UndoWalk<'a> {
    session: &'a LockedSession<'a>,
    on_overlap: OnOverlap,
    at: Turn,
    /// Once the turns found so far are reverted.
    current: InEffect<'a>,
    /// A landing whose hooks changed files shares the step of the turn before it.
    steps: Vec<Vec<Turn>>,
    passed: Vec<PassedOver>,
}

impl<'a> UndoWalk<'a> {
    fn new(
        session: &'a LockedSession<'a>,
        current: &Stack<CommitId>,
        on_overlap: OnOverlap,
    ) -> anyhow::Result<UndoWalk<'a>> {
        Ok(UndoWalk {
            session,
            on_overlap,
            at: session.position(session.newest()?)?,
            current: InEffect::new(&session.stacks, current.clone()),
            steps: vec![Vec::new()],
            passed: Vec::new(),
        })
    }

    fn counted(&self) -> usize {
        let turns = self.steps.iter().flatten();
        turns.filter(|turn| turn.meta.landed.is_none()).count()
    }

    fn step(&mut self) -> anyhow::Result<()> {
        if self.steps.last().is_none_or(|step| !step.is_empty()) {
            self.steps.push(Vec::new());
        }
        while !self.back()? {}

        let session = self.session;
        // `--exact` leaves exactly the turns of the target in the files.
        if self.on_overlap == OnOverlap::Exact {
            let current = session.target_stack(&self.at)?;
            self.current = InEffect::new(&session.stacks, current);
        }
        Ok(())
    }

    /// Returns whether the turn is a step.
    fn back(&mut self) -> anyhow::Result<bool> {
        let (session, turn) = (self.session, self.at.clone());
        let count = self.counted();
        if turn.number() == 0 && count > 0 {
            return Err(error_with_hint(
                format!("only {} can be undone", counted(count, "turn")),
                format!("`teddy undo {count}` goes back to the start"),
            ));
        }

        if turn.number() == 0 {
            return Err(error_with_hint(
                "nothing to undo",
                "`teddy log` lists the turns; `teddy restore <turn>` goes back to one",
            ));
        }

        self.at = session.position(session.before(&turn)?)?;

        let counts = turn.meta.landed.is_none();
        match why_passed(&session.stacks, &self.current, &turn)? {
            Some(why) => {
                let turn = turn.number();
                self.passed.push(PassedOver { turn, why });
                Ok(false)
            }
            None => {
                let below = session.without(&self.current.stack, &turn)?;
                self.current = InEffect::new(&session.stacks, below);
                let step = self.steps.last_mut().expect("there is one from the start");
                step.push(turn);
                Ok(counts)
            }
        }
    }
}

/// If these patches are applied.
fn why_passed(
    stacks: &Stacks<'_>,
    current: &InEffect<'_>,
    turn: &Turn,
) -> anyhow::Result<Option<WhyPassedOver>> {
    let why = why_never_there(turn)?;
    if why.is_some() || turn.meta.restored.is_some() {
        return Ok(why);
    }
    let is_there = current.has(stacks.patch(stacks.id(turn)?)?.change)?;
    Ok((!is_there).then_some(WhyPassedOver::TakenBack))
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
