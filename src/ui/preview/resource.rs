//! What joins or leaves the context: the file, folder, page or artifact itself, as much of it as a
//! person reads.

use crate::text::resource::Resource;
use crate::ui::checklist::{Checklist, ItemPart};
use crate::ui::draft::EditedPlan;
use crate::ui::style::{StyledLine, Tone, block};
use crate::workflow::user::ResourceContent;

/// The lines of a resource that are shown.
const MAX_LINES: usize = 1000;
/// The bytes of a resource that are shown.
const MAX_BYTES: usize = 256 << 10;

/// Returns the resource of an action that was looked at; as an action before it leaves it,
/// where one writes it.
pub(super) fn content(draft: &EditedPlan, list: &Checklist, at: usize) -> Vec<StyledLine> {
    let Some(resource) = draft.plan.actions[at].kind.resource() else {
        return Vec::new();
    };
    let mut lines = vec![StyledLine::default()];
    if let Some((number, bytes)) = written(draft, list, (at, resource)) {
        lines.push(StyledLine::of(
            Tone::Faint,
            &format!("as action {} of this plan leaves it:", number + 1),
        ));
        lines.extend(text(bytes));
        return lines;
    }

    lines.extend(match draft.seen.get(resource) {
        Some(ResourceContent::Content(bytes)) => text(bytes),
        Some(ResourceContent::Folder(paths)) => bounded(
            paths.iter().map(|path| StyledLine::plain(path)).collect(),
            paths.len(),
        ),
        Some(ResourceContent::Nothing(why)) => vec![StyledLine::of(Tone::Faint, why)],
        None => Vec::new(),
    });
    lines
}

/// Returns the last action before this one that is switched on and writes the file, with what it
/// writes.
fn written<'a>(
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

/// Returns content as lines.
fn text(bytes: &[u8]) -> Vec<StyledLine> {
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

    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_BYTES)]);
    let number = bytes.split_inclusive(|&byte| byte == b'\n').count();
    bounded(block(Tone::Plain, &text), number)
}

/// Returns the first of so many lines, and says how many there are besides.
fn bounded(mut lines: Vec<StyledLine>, number: usize) -> Vec<StyledLine> {
    lines.truncate(MAX_LINES);
    let left = number.saturating_sub(lines.len());
    if left > 0 {
        lines.push(StyledLine::of(
            Tone::Warning,
            &format!("… and {} more", crate::text::counted(left, "line")),
        ));
    }

    lines
}
