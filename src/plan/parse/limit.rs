//! Size limits of a plan (P22), each reported as a single mistake.
//!
//! Size and number of actions are checked before parsing, in one pass over the lines.

use memchr::memmem;

use super::{MAX_ACTIONS, MAX_PLAN};
use crate::plan::action::border::looks_like_border;
use crate::plan::action::heading;
use crate::plan::diagnostic::Diagnostic;
use crate::text::fence::{self, split_lines};
use crate::text::markdown::{Document, MAX_NESTING, heading_text};

/// Returns a diagnostic if a text is too large or has too many actions.
pub fn over_limit(text: &str) -> Option<Diagnostic> {
    if text.len() > MAX_PLAN {
        let message = format!(
            "the plan has {} bytes; at most {MAX_PLAN} are read",
            text.len()
        );
        return Some(Diagnostic::new(1, message).hint("write a shorter plan, over several turns"));
    }

    // Most plans have fewer `###` than the limit, so counting them avoids the scan by line.
    let marks = memmem::find_iter(text.as_bytes(), "###")
        .take(MAX_ACTIONS + 1)
        .count();
    if marks > MAX_ACTIONS {
        too_many_actions(count_action_headings(text))
    } else {
        None
    }
}

/// Returns a diagnostic if there are too many actions.
pub fn too_many_actions(number: usize) -> Option<Diagnostic> {
    (number > MAX_ACTIONS).then(|| {
        Diagnostic::new(1, format!("the plan has over {MAX_ACTIONS} actions"))
            .hint("write several plans")
    })
}

/// Returns a diagnostic if a document is nested too deeply or took too long to parse.
pub fn over_structure_limit(document: &Document) -> Option<Diagnostic> {
    if document.abandoned {
        return Some(
            Diagnostic::new(1, "reading the plan's Markdown took too long")
                .hint("write plain blocks, nested less"),
        );
    }

    (document.depth > MAX_NESTING).then(|| {
        let message = format!(
            "lists or quotations are nested {} deep; at most {MAX_NESTING} are read",
            document.depth
        );
        Diagnostic::new(1, message).hint("put such text into a code block")
    })
}

/// Counts action headings outside fences, judging by single lines. Stops beyond the limit.
fn count_action_headings(text: &str) -> usize {
    let mut open: Option<(u8, usize)> = None;
    let mut total = 0;
    for line in split_lines(text) {
        if total > MAX_ACTIONS {
            break;
        }

        match (fence::read(line.text), open) {
            (Some(fence), None) => open = Some((fence.mark, fence.len)),
            (Some(fence), Some((mark, len)))
                if fence.mark == mark && fence.len >= len && fence.info.is_empty() =>
            {
                open = None
            }
            (None, None) if line.text.starts_with("###") && is_action_heading(line.text) => {
                total += 1
            }
            _ => {}
        }
    }

    total
}

fn is_action_heading(line: &str) -> bool {
    looks_like_border(line) && heading::action(heading_text(line)).is_some()
}
