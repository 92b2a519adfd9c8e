//! Previews of memos, actions and pairs for the pane next to the list.

use super::checklist::{Checklist, ChecklistRow, ItemPart};
use super::diff::{self, FileVersions, replaced};
use super::draft::EditedPlan;
use super::style::{StyledLine, Tone, block};
use super::{markdown, mistakes, risk, summary};
use crate::plan::action::Action;
use crate::plan::action::behavior::PreviewPart;
use crate::plan::action::edit::Pair;
use crate::plan::action::execute::Execute;
use crate::plan::damage::action_damage;
use crate::plan::validate::Step;
use crate::text::resource::Resource;
use crate::workflow::user::ResourceContent;

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
        risk::of_action(action, step, &action_damage(action, step))
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
            lines.extend(resource_lines(draft, list, at));
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

/// Limits for the shown part of a resource.
const MAX_RESOURCE_LINES: usize = 1000;

const MAX_RESOURCE_BYTES: usize = 256 << 10;

/// Returns the contents of an action's resource. If an earlier action writes the file, shows its
/// result.
fn resource_lines(draft: &EditedPlan, list: &Checklist, at: usize) -> Vec<StyledLine> {
    let Some(resource) = draft.plan.actions[at].kind.resource() else {
        return Vec::new();
    };
    let mut lines = vec![StyledLine::default()];
    if let Some((number, bytes)) = earlier_result(draft, list, at, resource) {
        lines.push(StyledLine::of(
            Tone::Faint,
            &format!("as action {} of this plan leaves it:", number + 1),
        ));
        lines.extend(resource_text(bytes));
        return lines;
    }

    lines.extend(match draft.resources.get(resource) {
        Some(ResourceContent::Content(bytes)) => resource_text(bytes),
        Some(ResourceContent::Dir(paths)) => limit_lines(
            paths.iter().map(|path| StyledLine::plain(path)).collect(),
            paths.len(),
        ),
        Some(ResourceContent::Nothing(why)) => vec![StyledLine::of(Tone::Faint, why)],
        None => Vec::new(),
    });
    lines
}

/// Returns the last enabled action before this one that writes the file, and the resulting
/// contents.
fn earlier_result<'a>(
    draft: &'a EditedPlan,
    list: &Checklist,
    at: usize,
    resource: &Resource,
) -> Option<(usize, &'a [u8])> {
    let Resource::File(path) = resource else {
        return None;
    };
    let is_on = |index: usize| {
        list.items
            .iter()
            .any(|item| item.on && item.part == ItemPart::Action(index))
    };

    let writes = |index: &usize| draft.plan.actions[*index].kind.path() == Some(path);
    let last = (0..at).rev().find(|index| writes(index) && is_on(*index))?;
    Some((last, draft.steps[last].after.as_deref()?))
}

fn resource_text(bytes: &[u8]) -> Vec<StyledLine> {
    if bytes.contains(&0) {
        return vec![StyledLine::of(
            Tone::Faint,
            &format!(
                "binary content, {}",
                crate::text::counted(bytes.len(), "byte")
            ),
        )];
    }

    if bytes.is_empty() {
        return vec![StyledLine::of(Tone::Faint, "it is empty")];
    }

    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_RESOURCE_BYTES)]);
    let number = bytes.split_inclusive(|&byte| byte == b'\n').count();
    limit_lines(block(Tone::Plain, &text), number)
}

/// Cuts lines to `MAX_LINES`. `number` is their full count.
fn limit_lines(mut lines: Vec<StyledLine>, number: usize) -> Vec<StyledLine> {
    lines.truncate(MAX_RESOURCE_LINES);
    let remaining = number.saturating_sub(lines.len());
    if remaining > 0 {
        lines.push(StyledLine::of(
            Tone::Warning,
            &format!("… and {} more", crate::text::counted(remaining, "line")),
        ));
    }

    lines
}
