//! Second tier of the review at a terminal: runs the checklist until the user runs the plan or
//! leaves.

mod plan_edit;

use std::collections::HashMap;
use std::rc::Rc;

use ratatui::layout::Rect;

use super::checklist::{Checklist, ChecklistCommand, ChecklistRow, Item, ItemPart};
use super::draft::EditedPlan;
use super::draw::{self, PreviewPane, panes};
use super::key::Key;
use super::prompts::TerminalPrompts;
use super::style::{StyledLine, Tone, wrap_all};
use super::terminal::{self, Full};
use super::viewer::{self, Viewer};
use super::{editing, preview, reader};
use crate::plan::Plan;
use crate::plan::validate::Simulation;
use crate::workflow::user::{Approved, ReviewRequest};

const HELP: [(&str, &str); 19] = [
    ("↑ ↓  k j", "move"),
    ("PgUp PgDn", "move by a page"),
    ("home end  g G", "to the first, to the last"),
    (
        "space, enter",
        "switch the memo, action or pair on or off; on a heading: all of it",
    ),
    ("a", "everything on; everything off, if everything is on"),
    (
        "→ ←  l h, tab",
        "show or hide the pairs of an EDIT, to switch single ones",
    ),
    ("p, e", "preview and edit the memo or action"),
    ("u", "reset the memo or action to what was proposed"),
    ("v", "the preview on the whole screen"),
    ("J K", "scroll the preview"),
    ("/", "search; n and N go to the next and the one before"),
    ("s", "run what is switched on, in order"),
    (
        "q, esc",
        "back to the summary, which shows what is switched on",
    ),
    ("ctrl-z", "suspend; fg comes back here"),
    ("?", "this help"),
    ("", ""),
    ("[✓]", "runs"),
    ("[ ]", "does not run"),
    (
        "✗",
        "cannot run with these switches: the line above the keys says why",
    ),
];

/// Lines of a preview next to the list. The full screen shows all.
const MAX_BESIDE: usize = 2000;

/// Edits and switches of a review. They survive a return to the summary.
pub struct Modify {
    draft: EditedPlan,
    list: Checklist,
    /// Wrapped previews, by row and width. Cleared by every validation.
    previews: HashMap<(ChecklistRow, usize), Rc<[StyledLine]>>,
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

    /// Returns the number of edited actions, and of actions that are switched off.
    pub fn changed_and_off(&self) -> (usize, usize) {
        let is_action = |part: &&ItemPart| matches!(part, ItemPart::Action(_));
        let changed = self.draft.edited.iter().filter(is_action);
        let off = self.list.items.iter().filter(|item| !item.on);
        (
            changed.count(),
            off.filter(|item| is_action(&&item.part)).count(),
        )
    }

    /// Runs the checklist. Returns what to run, or `None` if the user leaves.
    pub fn run(
        &mut self,
        proposal: &ReviewRequest<'_>,
        prompts: &mut TerminalPrompts,
    ) -> anyhow::Result<Option<Approved>> {
        let mut stage = EditingScreens {
            full: Full::enter()?,
            prompts,
        };
        if self.is_changed() {
            self.validate(proposal)?;
        }

        loop {
            self.draw(&mut stage, proposal)?;
            let key = terminal::next_key()?;
            match self.take(&key, proposal)? {
                Some(ChecklistCommand::Run) => return Ok(Some(self.approved())),
                Some(ChecklistCommand::Quit) => return Ok(None),
                Some(ChecklistCommand::Edit(index)) => self.edit(index, &mut stage, proposal)?,
                Some(ChecklistCommand::Preview) => self.show_preview(&mut stage, proposal)?,
                Some(ChecklistCommand::Help) => reader::read(
                    &mut stage.full,
                    Viewer::new("Keys", viewer::key_lines(&HELP)),
                    stage.prompts.paint,
                )?,
                Some(ChecklistCommand::Suspend) => stage.full.suspend()?,
                _ if matches!(key, Key::Resize(..) | Key::Continued) => stage.full.renew()?,
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
        // `press` consumes the list.
        let (list, act) = std::mem::take(&mut self.list).press(key);
        self.list = list;
        match act {
            Some(ChecklistCommand::Changed) => self.validate(proposal)?,
            Some(ChecklistCommand::Undo(index)) => {
                self.draft.undo(self.list.items[index].part);
                self.renew(index, proposal)?;
            }
            _ => {}
        }

        Ok(act)
    }

    fn draw(
        &mut self,
        stage: &mut EditingScreens<'_>,
        proposal: &ReviewRequest<'_>,
    ) -> anyhow::Result<()> {
        let size = stage.full.screen.size()?;
        let panes = panes::split_panes(
            Rect::new(0, 0, size.width, size.height),
            self.list.rows().len(),
        );
        let (width, height) = panes.side.map_or((0, 0), |side| {
            (usize::from(side.width), usize::from(side.height))
        });

        let preview = self.preview(width, proposal)?;
        let max_scroll = preview.len().saturating_sub(height);
        self.list = std::mem::take(&mut self.list).fit(
            usize::from(panes.list.height),
            if width == 0 { 0 } else { max_scroll },
        );
        let pane = PreviewPane {
            title: &self.draft.plan.title,
            preview: &preview,
            paint: stage.prompts.paint,
        };

        stage
            .full
            .screen
            .draw(|frame| draw::checklist(frame, &self.list, &pane))?;
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
                if !editing::can_be_changed(&action.kind) {
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

    /// Updates an item from the draft, and validates.
    fn renew(&mut self, index: usize, proposal: &ReviewRequest<'_>) -> anyhow::Result<()> {
        let item = &self.list.items[index];
        self.list.items[index] = Item {
            on: item.on,
            ..self.draft.item(item.part)
        };
        self.validate(proposal)?;
        self.list.notice = self.list.problem().map(str::to_owned);

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
        reader::read(
            &mut stage.full,
            Viewer::new(&title, lines),
            stage.prompts.paint,
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
