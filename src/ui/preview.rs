//! Previews of memos, actions and pairs for the pane next to the list.

mod resource;

use super::checklist::{Checklist, ChecklistRow, ItemPart};
use super::diff::{self, FileVersions, replaced};
use super::draft::EditedPlan;
use super::style::{StyledLine, Tone, block};
use super::{markdown, mistakes, risk, summary};
use crate::plan::action::Action;
use crate::plan::action::behavior::PreviewPart;
use crate::plan::action::edit::Pair;
use crate::plan::action::execute::Execute;
use crate::plan::validate::Step;
use crate::text::resource::Resource;

/// Returns the preview of a row.
pub fn lines(draft: &EditedPlan, list: &Checklist, row: ChecklistRow) -> Vec<StyledLine> {
    match row {
        ChecklistRow::Memos => vec![StyledLine::plain(
            "Changes of the memory, .teddy/memos.yaml",
        )],
        ChecklistRow::Actions => block(Tone::Plain, &draft.plan.rationale),
        ChecklistRow::Item(index) => item(draft, list, index),
        ChecklistRow::Pair(index, pair) => match pair_of(draft, list.items[index].part, pair) {
            Some(edit_pair) => problem(list.items[index].pairs[pair].problem.as_deref())
                .into_iter()
                .chain(replaced(edit_pair))
                .collect(),
            None => Vec::new(),
        },
    }
}

/// Returns the preview of an action: description, risks, then its effect.
pub fn action(action: &Action, step: &Step) -> Vec<StyledLine> {
    let mut lines = block(Tone::Faint, action.description());
    lines.extend(
        risk::of_action(action, step)
            .iter()
            .map(|text| StyledLine::of(Tone::Warning, &format!("⚠ {text}"))),
    );
    if !lines.is_empty() {
        lines.push(StyledLine::default());
    }

    lines.extend(action.kind.preview(step).into_iter().flat_map(part));
    lines
}

fn item(draft: &EditedPlan, list: &Checklist, index: usize) -> Vec<StyledLine> {
    let item = &list.items[index];
    let mut lines: Vec<StyledLine> = problem(item.problem.as_deref()).into_iter().collect();
    match item.part {
        ItemPart::Memo(at) => lines.push(summary::memo(&draft.plan.memos[at])),
        ItemPart::Action(at) => {
            let here = draft
                .mistakes
                .iter()
                .filter(|(part, _)| *part == item.part && item.on);
            lines.extend(here.flat_map(|(_, mistake)| mistakes::diagnostic(mistake)));
            lines.extend(action(&draft.plan.actions[at], &draft.steps[at]));
            lines.extend(resource::resource_lines(draft, list, at));
        }
    }

    lines
}

fn part(part: PreviewPart<'_>) -> Vec<StyledLine> {
    match part {
        PreviewPart::Difference {
            path,
            before,
            after,
        } => diff::unified(&FileVersions {
            path: path.as_str(),
            before,
            after,
        }),
        PreviewPart::Text(texts) => texts.iter().map(|text| StyledLine::plain(text)).collect(),
        PreviewPart::Replacement(pair) => replaced(pair),
        PreviewPart::Command(execute) => command(execute),
        PreviewPart::Query(query) => block(Tone::Accent, query),
        PreviewPart::Resource(resource, note) => {
            let name = StyledLine::of(Tone::Accent, &resource.to_string());
            vec![name.with(Tone::Plain, &format!(" {note}"))]
        }
        PreviewPart::Message(message) => markdown::rendered(message),
        PreviewPart::HandOver {
            lead_in: intro,
            resources,
            message,
        } => handed(&intro, resources, message),
    }
}

fn command(execute: &Execute) -> Vec<StyledLine> {
    let mut lines = summary::command(execute);
    if !execute.expected_outcome.is_empty() {
        lines.push(StyledLine::default());
        lines.push(
            StyledLine::of(Tone::Faint, "expected: ").with(Tone::Plain, &execute.expected_outcome),
        );
    }
    lines
}

fn handed(intro: &str, resources: &[Resource], message: &str) -> Vec<StyledLine> {
    let mut lines = vec![StyledLine::plain(intro)];
    lines.extend(
        resources
            .iter()
            .map(|resource| StyledLine::of(Tone::Accent, &format!("  {resource}"))),
    );
    lines.push(StyledLine::default());
    lines.extend(markdown::lines(message));

    lines
}

fn pair_of(draft: &EditedPlan, part: ItemPart, pair: usize) -> Option<&Pair> {
    match part {
        ItemPart::Action(at) => draft.plan.actions[at].kind.pairs()?.get(pair),
        ItemPart::Memo(_) => None,
    }
}

fn problem(text: Option<&str>) -> Option<StyledLine> {
    text.map(|text| StyledLine::of(Tone::Removed, &format!("✗ {text}")))
}
