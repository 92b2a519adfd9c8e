//! Preview of the resource that an action adds to or removes from the context.

use crate::text::resource::Resource;
use crate::ui::checklist::{Checklist, ItemPart};
use crate::ui::draft::EditedPlan;
use crate::ui::style::{StyledLine, Tone, block};
use crate::workflow::user::ResourceContent;

/// Limits for the shown part of a resource.
const MAX_RESOURCE_LINES: usize = 1000;
const MAX_RESOURCE_BYTES: usize = 256 << 10;

/// Returns the contents of an action's resource. If an earlier action writes the file, shows its
/// result.
pub(super) fn resource_lines(draft: &EditedPlan, list: &Checklist, at: usize) -> Vec<StyledLine> {
    let Some(resource) = draft.plan.actions[at].kind.resource() else {
        return Vec::new();
    };
    let mut lines = vec![StyledLine::default()];
    if let Some((number, bytes)) = earlier_result(draft, list, (at, resource)) {
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
    (at, resource): (usize, &Resource),
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
