//! Detects truncated replies: they end inside a block, in the middle of structure, or before an
//! announced end.
//!
//! Not every model reports that it did not finish, and a plan read from a file never does. A block
//! that repair closes at the end of the text could have had more lines, and more actions after it.

use super::Note;
use super::doubt::{text_after_fence, unclosed_fence};
use super::note::note;
use super::pass::ReadingStep;
use super::reply::ReplyLine;
use super::state::{CloserDeviation, RepairEvent};
use crate::plan::action::{ActionRow, ROWS};
use crate::plan::line::{LineKind, Section, key};

/// Lines above a plan that are searched for tags.
const MAX_TAG_LINES: usize = 100;

/// Prefix of every such note.
pub(super) const TRUNCATED: &str = "the answer was cut off";

/// Reports that a text without a plan ends inside a block. With structure of a plan inside, a
/// missing closing fence is more likely.
pub(super) fn truncation_without_plan(lines: &[ReplyLine<'_>]) -> Option<Note> {
    let open = unclosed_fence(lines, 0..lines.len())?;
    let is_structure = |line: &ReplyLine<'_>| {
        matches!(
            line.kind,
            LineKind::Action(_) | LineKind::Section(_) | LineKind::Label(_)
        )
    };
    (!lines[open..].iter().any(is_structure)).then(|| open_block_note(open))
}

/// Reports that a plan ends where the grammar requires more, in the middle of a line or of a pair.
pub(super) fn truncation_of_structure(lines: &[ReplyLine<'_>], step: &ReadingStep) -> Option<Note> {
    let last = last_nonblank(lines)?;
    let is_half = matches!(lines[last].kind, LineKind::Label(_)) || lines[last].ending.is_empty();
    let message = format!("{TRUNCATED}: what this line belongs to is not complete");
    let half = (is_half && step.line >= lines.len()).then(|| note(last, &message));
    truncation_without_plan(lines).or(half)
}

/// Reports how the best reading shows that the reply was truncated.
pub(super) fn truncation_of_reading(
    lines: &[ReplyLine<'_>],
    steps: &[ReadingStep],
) -> Option<Note> {
    let opened = |at: usize| {
        let mut before = steps[..at].iter().rev();
        before
            .find(|step| matches!(step.event, RepairEvent::Open(..)))
            .map(|step| step.line)
    };
    let ends = steps.iter().rposition(|step| match step.event {
        RepairEvent::Forgotten(_) => step.line >= lines.len(),
        RepairEvent::Close(_, CloserDeviation::Proper) => false,
        RepairEvent::Close(_, how) => {
            let is_plain = how == CloserDeviation::Trailing
                && text_after_fence(lines[step.line].text).is_empty();
            Some(step.line) == last_nonblank(lines) && !is_plain
        }
        _ => false,
    });

    let wrapped = |event: RepairEvent| steps.iter().find(|step| step.event == event);
    let wrapper = wrapped(RepairEvent::Wrap).filter(|_| wrapped(RepairEvent::Unwrap).is_none());
    ends.and_then(opened)
        .map(open_block_note)
        .or_else(|| wrapper.map(|step| open_block_note(step.line)))
        .or_else(|| truncation_of_text(lines))
}

/// Reports a text that ends without an announced closing tag, or in the middle of a line.
pub(super) fn truncation_of_text(lines: &[ReplyLine<'_>]) -> Option<Note> {
    unclosed_tag(lines).or_else(|| incomplete_last_line(lines))
}

/// Reports a tag above the plan that is never closed. Its content, the plan or the model's
/// thoughts, was truncated.
fn unclosed_tag(lines: &[ReplyLine<'_>]) -> Option<Note> {
    let begins = |line: &ReplyLine<'_>| {
        matches!(
            line.kind,
            LineKind::Title { .. } | LineKind::Section(_) | LineKind::Action(_)
        )
    };
    let above = lines.iter().position(begins).unwrap_or(lines.len());
    let name = |line: &ReplyLine<'_>| {
        let (name, _) = line.text.trim().strip_prefix('<')?.split_once('>')?;
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
        let plain = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        (is_name && plain && !matches!(name, "br" | "hr" | "p")).then(|| format!("</{name}>"))
    };

    let closes = |closer: &str| lines.iter().any(|line| line.text.contains(closer));
    let mut tags = lines[..above].iter().enumerate().take(MAX_TAG_LINES);
    let open = tags.find(|(_, line)| name(line).is_some_and(|closer| !closes(&closer)));
    open.map(|(at, _)| {
        note(
            at,
            &format!("{TRUNCATED}: the tag that opens here is never closed"),
        )
    })
}

/// Reports a last line that is an incomplete line of the grammar.
pub(super) fn incomplete_last_line(lines: &[ReplyLine<'_>]) -> Option<Note> {
    let last = last_nonblank(lines).filter(|&at| !matches!(lines[at].kind, LineKind::Fence(_)))?;
    let row = lines.iter().rev().find_map(|line| match line.kind {
        LineKind::Action(row) => Some(row),
        _ => None,
    });
    let text = lines[last].text.trim();
    // A setting of an action that writes or runs something: half a directory name is another directory.
    let is_open_setting =
        |row: &'static ActionRow| row.shape.takes_effect() && key::is_open_setting(text, row);
    let cut = is_part_of_heading(text)
        || is_part_of_label(text, row)
        || matches!(text, "`" | "``" | "~" | "~~")
        || !row.is_some_and(ActionRow::is_message) && is_part_of_item(text)
        || lines[last].ending.is_empty() && row.is_some_and(is_open_setting);

    cut.then(|| note(last, &format!("{TRUNCATED}: its last line is not complete")))
}

fn open_block_note(at: usize) -> Note {
    note(
        at,
        &format!("{TRUNCATED}: it ends inside the block that starts here"),
    )
}

fn last_nonblank(lines: &[ReplyLine<'_>]) -> Option<usize> {
    lines.iter().rposition(|line| line.kind != LineKind::Blank)
}

/// Returns whether a line is an incomplete heading of the grammar.
fn is_part_of_heading(text: &str) -> bool {
    let level = text.bytes().take_while(|&b| b == b'#').count();
    if level == 0 || level > 3 {
        return false;
    }

    let heading = text[level..].trim();
    let unnumbered = heading.trim_start_matches(|c: char| c.is_ascii_digit());
    let name = unnumbered.trim_start_matches(['.', ')', ' ', '`', '*']);
    let sections = Section::ALL.map(Section::name);
    let mut names = ROWS.iter().map(|row| row.name).chain(sections);
    let spelled = |name: &str| name.to_uppercase().replace(' ', "_");
    let start = spelled(name);
    let is_part = names
        .any(|candidate| spelled(candidate).starts_with(&start) && spelled(candidate) != start);
    let is_unclosed = heading.matches('`').count() == 1 && !heading.ends_with("**");

    heading.is_empty() || level > 1 && (is_part || is_unclosed)
}

fn is_part_of_label(text: &str, row: Option<&'static ActionRow>) -> bool {
    let name = text
        .trim_matches(['`', '*', '#', '_', ' '])
        .trim_end_matches(':');
    let is_marked = text.starts_with(['`', '*', '#']);
    let is_complete = text.ends_with([':', '`', '*']) && name.len() > 3;
    row.is_some_and(ActionRow::has_labels)
        && !is_complete
        && (name.is_empty() && is_marked
            || !name.is_empty()
                && ["FIND", "REPLACE"]
                    .iter()
                    .any(|label| label.starts_with(name)))
}

fn is_part_of_item(text: &str) -> bool {
    let Some(item) = text.strip_prefix(['-', '*', '+']) else {
        return false;
    };
    let bold = item.trim_start().starts_with("**") && item.matches("**").count() == 1;
    let link = item.rsplit_once('[').is_some_and(|(_, link)| {
        !link.contains(']') || link.contains("](") && !link.contains(')') || link.ends_with(']')
    });

    item.trim().is_empty() || bold || link && item.contains("**")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_heading_a_label_or_a_field_is_no_whole_line() {
        for text in [
            "#",
            "##",
            "###",
            "## Act",
            "### `",
            "### EX",
            "### `EDIT",
            "### 2. `CR",
        ] {
            assert!(is_part_of_heading(text), "{text:?}");
        }
        for text in [
            "### `EDIT`",
            "### READ",
            "### READ**",
            "## Notes",
            "#### x",
            "# T",
            "### Options",
        ] {
            assert!(!is_part_of_heading(text), "{text:?}");
        }
        for text in ["`", "`FI", "`FIND", "`REPLACE", "**REPL", "FIN", "#### `F"] {
            assert!(
                is_part_of_label(text, Some(&crate::plan::action::edit::ROW)),
                "{text:?}"
            );
        }
        for text in ["`FIND:`", "REPLACE:", "Fine.", "`FIND`:"] {
            assert!(
                !is_part_of_label(text, Some(&crate::plan::action::edit::ROW)),
                "{text:?}"
            );
        }
        for text in [
            "-",
            "- **",
            "- **Resou",
            "- **Resource:** [src/a",
            "- **Resource:** [a](/a",
        ] {
            assert!(is_part_of_item(text), "{text:?}");
        }
        for text in [
            "- **Resource:** [a](/a)",
            "- **Description:** Do it",
            "- x",
            "--",
            "- **a** and **b**",
        ] {
            assert!(!is_part_of_item(text), "{text:?}");
        }
    }
}
