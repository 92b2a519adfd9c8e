//! Second tier of the review at a terminal: runs the checklist until the user runs the plan or
//! leaves.

mod comments;

use std::collections::HashMap;
use std::rc::Rc;

use super::ask::NOT_ALONE;
use super::checklist::{Checklist, ChecklistCommand, ChecklistRow, Item, ItemPart};
use super::draft::EditedPlan;
use super::key::Key;
use super::pager::Pager;
use super::style::{StyledLine, Tone, wrap_all};
use super::terminal::Full;
use super::{draw, editing, preview};
use crate::host::interrupt;
use crate::plan::action::Action;
use crate::plan::action::behavior::Editable;
use crate::plan::memo::MemoChange;
use crate::plan::validate::Simulation;
use crate::plan::{Plan, parse, render, repair};
use crate::session::artifact;
use crate::session::comments::LineComment;
use crate::ui::editing::{EditingPrompts as _, TerminalPrompts, edit_file};
use crate::ui::mistakes;
use crate::workflow::user::{Approved, Decision, ReviewRequest};

const HELP: [(&str, &str); 23] = [
    ("↑ ↓  k j", "move"),
    ("PgUp PgDn", "move by a page"),
    ("home end  g G", "to the first, to the last"),
    (
        "space",
        "switch the memo, action or pair on or off; on a heading: all of it",
    ),
    ("*", "everything on; everything off, if everything is on"),
    (
        "→ ←  l h, tab",
        "show or hide the pairs of an EDIT, to switch single ones",
    ),
    ("e, p", "preview and edit the memo or action"),
    ("f", "change the path of a CREATE"),
    (
        "i",
        "grant the command the network, for this run; again to take it back",
    ),
    ("u", "reset the memo or action to what was proposed"),
    ("v", "the preview on the whole screen"),
    ("c", "comment on lines of the differences"),
    (
        "B",
        "keep your encoding, line ends and mode; again to take it back; on a heading: in all files",
    ),
    ("J K", "scroll the preview"),
    ("/", "search; n and N go to the next and the one before"),
    ("a, enter", "approve: run what is switched on, in order"),
    (
        "s",
        "decline the plan: send your comments, or say what to do instead",
    ),
    (
        "esc, m",
        "back to the summary, which shows what is switched on",
    ),
    ("q", "leave; the plan waits"),
    ("ctrl-z", "suspend; fg resumes"),
    ("?", "this help"),
    ("[✓], [ ]", "runs; does not run"),
    (
        "✗",
        "cannot run with these switches: the line above the keys says why",
    ),
];

const NO_PATH: &str = "only a CREATE has a path that can be changed";

/// Lines of a preview next to the list. The full screen shows all.
const MAX_BESIDE: usize = 2000;

/// Edits and switches of a review. They survive a return to the summary.
pub struct Modify {
    draft: EditedPlan,
    list: Checklist,
    /// Wrapped previews, by row and width. Cleared by every validation.
    previews: HashMap<(ChecklistRow, usize), Rc<[StyledLine]>>,
    /// Comments that are not sent yet.
    pub comments: Vec<LineComment>,
}

/// The full screen, and the normal one for prompts and editors.
struct EditingScreens<'a> {
    full: Full,
    prompts: &'a mut TerminalPrompts,
}

impl Modify {
    /// Returns the proposal, with edits from an earlier approval of the same plan.
    pub fn new(proposal: &ReviewRequest<'_>) -> Modify {
        let mut draft = EditedPlan::new(proposal);
        let mut list = Checklist::new(draft.items());
        if let Some(earlier) = proposal.earlier {
            draft.take_over(earlier, &mut list);
        }

        Modify {
            list,
            draft,
            previews: HashMap::new(),
            comments: proposal.written.to_vec(),
        }
    }

    /// Switches off actions that no longer apply to the files, and returns the reasons. Only needed
    /// if files changed during the review.
    pub fn leave_out_misfits(
        &mut self,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<Vec<String>> {
        if proposal.simulation.diagnostics.is_empty() {
            return Ok(Vec::new());
        }
        self.draft.leave_out_misfits(&mut self.list, proposal)
    }

    /// Returns the plan with its current switches.
    pub fn approved(&self) -> Approved {
        self.draft.approved(&self.list)
    }

    /// Returns the decision to run what is switched on. `None` if it has a problem, or is nothing.
    pub fn run_if_possible(&self) -> Option<Decision> {
        let approved = self.approved();
        let is_possible = self.problem().is_none() && !approved.is_empty();
        is_possible.then_some(Decision::Run(approved))
    }

    /// Returns whether the user changed anything.
    pub fn is_changed(&self) -> bool {
        !self.draft.edited.is_empty() || !self.list.items.iter().all(Item::is_whole)
    }

    /// Returns the plan that would run and its effects, or `None` if nothing was changed.
    pub fn running(
        &mut self,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<Option<(Plan, Simulation)>> {
        if !self.is_changed() {
            return Ok(None);
        }

        // An earlier approval was for other files: its switches might no longer fit together.
        self.validate(proposal)?;
        let plan = self.draft.running_plan(&self.list);
        let simulation = (proposal.revise)(&plan)?;
        Ok(Some((plan, simulation)))
    }

    /// Returns why the plan can't run with the current switches.
    pub fn problem(&self) -> Option<&str> {
        self.list.problem()
    }

    /// Returns the number of actions that are edited or of which a pair is switched off, and of actions
    /// that are switched off.
    pub fn count_changed_and_off(&self) -> (usize, usize) {
        let items = self.list.items.iter();
        let actions = items.filter(|item| matches!(item.part, ItemPart::Action(_)));
        let (on, off): (Vec<&Item>, Vec<&Item>) = actions.partition(|item| item.on);
        let is_edited = |item: &&&Item| self.draft.edited.contains(&item.part);
        let changed = on.iter().filter(|item| is_edited(item) || !item.is_whole());
        (
            changed.count() + off.iter().filter(is_edited).count(),
            off.len(),
        )
    }

    /// Runs the checklist. Returns the user's decision, or `None` if they return to the summary.
    pub fn run(
        &mut self,
        proposal: &ReviewRequest<'_>,
        prompts: &mut TerminalPrompts,
    ) -> anyhow::Result<Option<Decision>> {
        let mut stage = EditingScreens {
            full: Full::enter()?,
            prompts,
        };
        if self.is_changed() {
            self.validate(proposal)?;
        }

        loop {
            self.draw(&mut stage, proposal)?;
            let key = stage.full.next_key()?;
            match self.take(&key, proposal)? {
                Some(ChecklistCommand::Run) => {
                    if stage.full.is_alone()? {
                        return Ok(Some(Decision::Run(self.approved())));
                    }
                    self.list.list.notice = Some(NOT_ALONE.to_owned());
                }
                Some(ChecklistCommand::Back) => return Ok(None),
                Some(ChecklistCommand::Skip) => return Ok(Some(self.declined())),
                Some(ChecklistCommand::Comment) => {
                    let path = self.list.current().and_then(|at| self.path_of(at));
                    let declined = self.comment_on(&mut stage, proposal, path.as_deref())?;
                    if declined.is_some() {
                        return Ok(declined);
                    }
                }
                Some(ChecklistCommand::Quit) => return Ok(Some(Decision::Quit)),
                Some(ChecklistCommand::Interrupt) => {
                    interrupt::raise();
                    return Ok(Some(Decision::Quit));
                }
                Some(ChecklistCommand::Edit(index)) => self.edit(index, &mut stage, proposal)?,
                Some(ChecklistCommand::EditPath(index)) => {
                    self.edit_path(index, &mut stage, proposal)?;
                }
                Some(ChecklistCommand::Preview) => self.show_preview(&mut stage, proposal)?,
                Some(ChecklistCommand::Help) => {
                    Pager::keys(&HELP).run(&mut stage.full, stage.prompts.paint)?;
                }
                _ => {}
            }
        }
    }

    /// Validates only if a switch or an item changed, so moving stays fast.
    fn take(
        &mut self,
        key: &Key,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<Option<ChecklistCommand>> {
        let act = self.list.press(key);
        match act {
            Some(ChecklistCommand::Changed) => self.validate(proposal)?,
            Some(ChecklistCommand::Undo(index)) => {
                self.draft.undo(self.list.items[index].part);
                self.renew(index, proposal)?;
            }
            Some(ChecklistCommand::Network(index)) => self.switch_network(index, proposal)?,
            Some(ChecklistCommand::KeepBytes(index)) => self.keep_bytes(index, proposal)?,
            Some(ChecklistCommand::KeepAllBytes) => {
                self.list.list.notice = self.keep_all_bytes(proposal)?;
            }
            _ => {}
        }

        Ok(act)
    }

    fn switch_network(&mut self, index: usize, proposal: &ReviewRequest<'_>) -> anyhow::Result<()> {
        let part = self.list.items[index].part;
        if let ItemPart::Action(at) = part
            && self.draft.switch_network(at)
        {
            return self.renew(index, proposal);
        }
        self.list.list.notice = Some("only a command can be granted the network".to_owned());
        Ok(())
    }

    fn keep_bytes(&mut self, index: usize, proposal: &ReviewRequest<'_>) -> anyhow::Result<()> {
        match self.draft.keep_bytes(&mut self.list.items[index]) {
            Ok(()) => self.validate_with_notice(proposal)?,
            Err(why) => self.list.list.notice = Some(why),
        }
        Ok(())
    }

    /// Keeps the bytes of all files that the plan damages. Returns why some are left.
    pub fn keep_all_bytes(
        &mut self,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<Option<String>> {
        let mut problem = None;
        let mut is_any_damaged = false;
        for index in 0..self.list.items.len() {
            let ItemPart::Action(at) = self.list.items[index].part else {
                continue;
            };
            if !self.draft.damages_bytes(at) {
                continue;
            }
            is_any_damaged = true;
            match self.draft.keep_bytes(&mut self.list.items[index]) {
                Ok(()) => self.validate_with_notice(proposal)?,
                Err(why) => {
                    let target = self.draft.plan.actions[at].kind.target();
                    problem = Some(format!("{target}: {why}"));
                }
            }
        }
        let none = (!is_any_damaged).then(|| "no file has bytes to keep".to_owned());
        Ok(problem.or(none))
    }

    fn path_of(&self, index: usize) -> Option<String> {
        let ItemPart::Action(at) = self.list.items[index].part else {
            return None;
        };
        let path = self.draft.plan.actions[at].kind.path();
        path.map(ToString::to_string)
    }

    fn draw(
        &mut self,
        stage: &mut EditingScreens<'_>,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<()> {
        let rows = self.list.rows().len();
        let panes = draw::split_panes(stage.full.area()?, rows);
        let preview = self.preview(usize::from(panes.side.width), proposal)?;
        self.list.list.fit(rows, usize::from(panes.list.height));
        let height = usize::from(panes.side.height);
        self.list.preview.fit(preview.len(), height);
        let (list, title, paint) = (&self.list, &self.draft.plan.title, stage.prompts.paint);
        stage
            .full
            .draw(|frame| draw::checklist(frame, list, title, &preview, paint))?;
        Ok(())
    }

    fn preview(
        &mut self,
        width: usize,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<Rc<[StyledLine]>> {
        let Some(row) = self.list.row().filter(|_| width > 0) else {
            return Ok(Rc::default());
        };
        if let Some(cached) = self.previews.get(&(row, width)) {
            return Ok(Rc::clone(cached));
        }

        let mut lines = self.whole_preview(row, proposal)?;
        if lines.len() > MAX_BESIDE {
            lines.truncate(MAX_BESIDE);
            lines.push(StyledLine::of(Tone::Warning, "… (v) shows the rest"));
        }

        let rendered: Rc<[StyledLine]> = wrap_all(lines, width).into();
        self.previews.insert((row, width), Rc::clone(&rendered));
        Ok(rendered)
    }

    /// Not wrapped.
    fn whole_preview(
        &mut self,
        row: ChecklistRow,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<Vec<StyledLine>> {
        if let ChecklistRow::Item(index) = row {
            self.draft
                .read_resource(self.list.items[index].part, proposal)?;
        }
        Ok(preview::lines(&self.draft, &self.list, row))
    }

    fn validate(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<()> {
        self.previews.clear();
        self.draft.validate(&mut self.list, proposal)
    }

    /// Edits an item on the normal screen.
    fn edit(
        &mut self,
        index: usize,
        stage: &mut EditingScreens<'_>,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<()> {
        let part = self.list.items[index].part;
        match part {
            ItemPart::Memo(at) => {
                let memo = &self.draft.plan.memos[at];
                let Some(changed) = stage
                    .full
                    .outside_full_screen(|| editing::edit_memo(stage.prompts, memo))??
                else {
                    return Ok(());
                };

                self.draft.change_memo(at, changed);
            }
            ItemPart::Action(at) => {
                let action = &self.draft.plan.actions[at];
                if action.kind.editable() == Editable::Nothing {
                    return self.show_preview(stage, proposal);
                }

                let Some(changed) = stage.full.outside_full_screen(|| {
                    editing::edit(stage.prompts, action, &self.draft.steps[at])
                })??
                else {
                    return Ok(());
                };
                self.draft.change(at, changed);
            }
        }

        self.renew(index, proposal)
    }

    /// Changes the path of a CREATE on the normal screen.
    fn edit_path(
        &mut self,
        index: usize,
        stage: &mut EditingScreens<'_>,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<()> {
        let ItemPart::Action(at) = self.list.items[index].part else {
            self.list.list.notice = Some(NO_PATH.to_owned());
            return Ok(());
        };
        let action = &self.draft.plan.actions[at];
        if !matches!(action.kind.editable(), Editable::NewFile { .. }) {
            self.list.list.notice = Some(NO_PATH.to_owned());
            return Ok(());
        }

        let changed = stage
            .full
            .outside_full_screen(|| editing::edit_path(stage.prompts, action))??;
        if let Some(changed) = changed {
            self.draft.change(at, changed);
            self.renew(index, proposal)?;
        }
        Ok(())
    }

    /// Updates an item from the draft, and validates.
    fn renew(&mut self, index: usize, proposal: &ReviewRequest<'_>) -> anyhow::Result<()> {
        let item = &self.list.items[index];
        self.list.items[index] = Item {
            on: item.on,
            ..self.draft.item(item.part)
        };
        self.validate_with_notice(proposal)
    }

    /// Validates, and shows what is wrong with the selected item.
    fn validate_with_notice(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<()> {
        self.validate(proposal)?;
        self.list.list.notice = self.list.problem().map(str::to_owned);

        Ok(())
    }

    fn show_preview(
        &mut self,
        stage: &mut EditingScreens<'_>,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<()> {
        let Some(row) = self.list.row() else {
            return Ok(());
        };
        let title = match row {
            ChecklistRow::Memos | ChecklistRow::Actions => self.draft.plan.title.clone(),
            ChecklistRow::Item(index) => self.list.items[index].label.text(),
            ChecklistRow::Pair(index, pair) => {
                format!("{}, pair {}", self.list.items[index].label.text(), pair + 1)
            }
        };

        let lines = self.whole_preview(row, proposal)?;
        Pager::new(&title, lines).run(&mut stage.full, stage.prompts.paint)?;
        Ok(())
    }
}

// Edits the whole plan in an editor during the review, and matches its parts to the proposal.
//
// Actions and memos can be changed or removed. New or moved ones are refused: the record could not
// attribute them to the user.

/// Keys after an edit that was refused.
const EDIT_AGAIN_KEYS: [(char, &str); 2] = [
    ('e', "continue with what you wrote"),
    ('c', "drop it; the plan stays as it was"),
];

/// Shown if the user changed more than memos and actions.
const ONLY_PARTS_TAKEN: &str =
    "Title, header and rationale stay as the model wrote them; your memos and actions are taken.";

/// New index of each original part. `None` if it was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EditedParts {
    actions: Vec<Option<usize>>,
    memos: Vec<Option<usize>>,
}

const NEW_ACTION: &str = "actions can be changed or taken out here, but not added or moved; \
                          (s)kip the plan and say what is missing";

const NEW_MEMO: &str = "memos can be changed or taken out here, but not added";

impl Modify {
    /// Edits the plan that would run in the user's editor, until the result is accepted or the user
    /// leaves. What is said about that is in the warnings of the prompts.
    pub fn edit_plan(
        &mut self,
        proposal: &ReviewRequest<'_>,
        prompts: &mut TerminalPrompts,
    ) -> anyhow::Result<()> {
        let mut text = match self.is_changed() {
            true => render::render(&self.draft.running_plan(&self.list)),
            // The model's own text, which `render` would normalize.
            false => proposal.text.to_owned(),
        };
        loop {
            let written = edit_file(prompts, artifact::PLAN, &text)?;
            let Some(written) = written.filter(|written| *written != text) else {
                return Ok(());
            };
            match self.take_plan(&written, proposal)? {
                Ok(notes) => {
                    prompts.warnings.extend(notes);
                    return Ok(());
                }
                Err(message) => prompts.show(&message),
            }

            if prompts.key("(e)dit again or (c)lose › ", &EDIT_AGAIN_KEYS)? == 'c' {
                return Ok(());
            }
            text = written;
        }
    }

    /// Applies an edited plan. The outer result is an I/O error; the inner one has notes for the
    /// user, or the reasons why the plan is refused.
    fn take_plan(
        &mut self,
        text: &str,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<Result<Vec<StyledLine>, Vec<StyledLine>>> {
        let (edited, mistakes) = parse(&repair::repair(text).text);
        if !mistakes.is_empty() {
            return Ok(Err(mistakes::rejected(None, &mistakes)));
        }
        let parts = match match_parts(&self.draft.plan, &edited) {
            Ok(parts) => parts,
            Err(message) => return Ok(Err(vec![StyledLine::of(Tone::Warning, message)])),
        };

        for (at, position) in parts.actions.into_iter().enumerate() {
            let edited_action = position.map(|position| &edited.actions[position]);
            let is_changed = |edited: &&Action| **edited != self.draft.plan.actions[at];
            if let Some(action) = edited_action.filter(is_changed) {
                self.draft.change(at, action.clone());
            }
            self.refresh(ItemPart::Action(at), edited_action.is_some());
        }

        for (at, position) in parts.memos.into_iter().enumerate() {
            let edited_memo = position.map(|position| &edited.memos[position]);
            let is_changed = |edited: &&MemoChange| **edited != self.draft.plan.memos[at];
            if let Some(memo) = edited_memo.filter(is_changed) {
                self.draft.change_memo(at, memo.clone());
            }
            self.refresh(ItemPart::Memo(at), edited_memo.is_some());
        }

        // Diagnostics are matched to actions by line number.
        self.draft.plan = with_fresh_line_numbers(&self.draft.plan);
        self.validate(proposal)?;
        let has_more =
            (&edited.title, &edited.rationale) != (&proposal.plan.title, &proposal.plan.rationale);
        Ok(Ok(match has_more {
            true => vec![StyledLine::of(Tone::Warning, ONLY_PARTS_TAKEN)],
            false => Vec::new(),
        }))
    }

    fn refresh(&mut self, part: ItemPart, on: bool) {
        let fresh = self.draft.item(part);
        if let Some(item) = self.list.items.iter_mut().find(|item| item.part == part) {
            *item = Item { on, ..fresh };
        }
    }
}

/// Matches the parts of the original and the edited plan. Fails if something was added or moved.
fn match_parts(plan: &Plan, edited: &Plan) -> Result<EditedParts, &'static str> {
    // Only actions of the same kind match. Equal contents count more than an equal target.
    let likeness = |one: &Action, other: &Action| match () {
        () if one.kind.row() != other.kind.row() => None,
        () if one == other => Some(3),
        () if one.kind.target() == other.kind.target() => Some(2),
        () => Some(1),
    };
    let likeness_of_memos = |one: &MemoChange, other: &MemoChange| {
        Some(match (one.verb, &one.text) == (other.verb, &other.text) {
            true => 2,
            false => 1,
        })
    };

    Ok(EditedParts {
        actions: align_parts(&plan.actions, &edited.actions, likeness).ok_or(NEW_ACTION)?,
        memos: align_parts(&plan.memos, &edited.memos, likeness_of_memos).ok_or(NEW_MEMO)?,
    })
}

/// Returns the plan with the line numbers of its rendered text. Unchanged if that has another meaning.
fn with_fresh_line_numbers(plan: &Plan) -> Plan {
    let (written, mistakes) = parse(&render::render(plan));
    let mut fresh = plan.clone();
    let is_same = written.memos == plan.memos && written.kinds().eq(plan.kinds());
    if mistakes.is_empty() && is_same {
        fresh.memos = written.memos;
        for (action, written) in fresh.actions.iter_mut().zip(written.actions) {
            (action.line, action.kind) = (written.line, written.kind);
        }
    }
    fresh
}

/// Matches every item of `new` to one of `old`, preserving the order and maximizing the total
/// likeness. `None` if that is impossible.
fn align_parts<T>(
    old: &[T],
    new: &[T],
    likeness: impl Fn(&T, &T) -> Option<u32>,
) -> Option<Vec<Option<usize>>> {
    // `best[i][j]`: best score for `old[i..]` and `new[j..]`. `None` if they cannot be matched.
    let mut best = vec![vec![None; new.len() + 1]; old.len() + 1];
    for row in &mut best {
        row[new.len()] = Some(0);
    }
    let paired = |best: &[Vec<Option<u32>>], i: usize, j: usize| {
        let score = likeness(&old[i], &new[j])?;
        best[i + 1][j + 1].map(|tail_score| tail_score + score)
    };
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            best[i][j] = paired(&best, i, j).max(best[i + 1][j]);
        }
    }

    best[0][0]?;
    let mut matches = vec![None; old.len()];
    let mut next = 0;
    for (i, slot) in matches.iter_mut().enumerate() {
        // Pairing the two is part of an optimal match.
        if next < new.len() && paired(&best, i, next) == best[i][next] {
            *slot = Some(next);
            next += 1;
        }
    }
    Some(matches)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod plan_edit_tests {
    use super::*;
    use crate::plan::samples::actions::create;
    use crate::ui::sample;

    fn plan(actions: &[(&str, &str)]) -> Plan {
        let actions = actions.iter().enumerate();
        let action =
            |(at, (path, text)): (usize, &(&str, &str))| sample::action(at + 1, create(path, text));
        let mut plan = sample::bootstrap().plan;
        plan.actions = actions.map(action).collect();
        plan
    }

    fn check(
        before: &[(&str, &str)],
        after: &[(&str, &str)],
        expected: Result<&[Option<usize>], &str>,
    ) {
        let matched = match_parts(&plan(before), &plan(after)).map(|parts| parts.actions);
        assert_eq!(matched.as_deref().map_err(|message| *message), expected);
    }

    #[test]
    fn actions_that_changed_are_found_in_their_places() {
        let before = [("a", "1"), ("b", "2")];
        check(&before, &before, Ok(&[Some(0), Some(1)]));
        check(&before, &[("x", "1"), ("b", "3")], Ok(&[Some(0), Some(1)]));
    }

    #[test]
    fn an_action_that_is_gone_is_the_one_that_is_least_like_the_others() {
        let before = [("a", "1"), ("b", "2"), ("c", "3")];
        check(&before, &[("b", "2")], Ok(&[None, Some(0), None]));
        check(
            &before,
            &[("a", "9"), ("c", "3")],
            Ok(&[Some(0), None, Some(1)]),
        );
        check(&before, &[], Ok(&[None, None, None]));
    }

    #[test]
    fn an_action_that_is_new_is_refused() {
        check(&[("a", "1")], &[("a", "1"), ("b", "2")], Err(NEW_ACTION));
        let mut other = plan(&[]);
        other.actions = vec![sample::bootstrap().plan.actions.remove(1)];
        assert_eq!(match_parts(&plan(&[("a", "1")]), &other), Err(NEW_ACTION));
    }

    #[test]
    fn a_memo_that_is_gone_is_found_and_one_that_is_new_is_refused() {
        let (before, mut after) = (plan(&[]), plan(&[]));
        let memo = after.memos.remove(0);
        assert_eq!(match_parts(&before, &after).unwrap().memos, [None]);
        after.memos = vec![memo.clone(), memo];
        assert_eq!(match_parts(&before, &after), Err(NEW_MEMO));
    }

    #[test]
    fn a_plan_that_is_written_anew_has_its_own_lines() {
        let plan = plan(&[("a", "1\n"), ("b", "2\n")]);
        let result = with_fresh_line_numbers(&plan);
        assert!(result.actions[0].line > 2 && result.actions[1].line > result.actions[0].line);
        assert_eq!(result, plan);
    }
}
