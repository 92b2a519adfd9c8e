//! Compact summary for a low screen: counts only, except for commands and risks.

use super::group::{ActionGroup, by_row};
use super::{Summary, TextArea, command, difference, facts, prompt_rows};
use crate::plan::memo::Verb;
use crate::ui::diff;
use crate::ui::style::{StyledLine, Tone, wrap_all};
use crate::workflow::user::ReviewRequest;

pub(super) fn lines(summary: &Summary<'_>, room: TextArea) -> Vec<StyledLine> {
    let proposal = summary.proposal;
    let title = StyledLine::of(Tone::Accent, "▶ ").with(Tone::Strong, &proposal.plan.title);
    let mut lines = vec![
        // Cut these two. Commands and risks are wrapped instead.
        title.cut(room.width),
        facts(proposal).cut(room.width),
        StyledLine::of(Tone::Faint, &"─".repeat(room.width)),
    ];
    lines.extend(memos(proposal));
    let counts = StyledLine::plain(&format!(" {}", counts(proposal).join(", ")));
    lines.push(match summary.files.as_slice() {
        [] => counts,
        files => counts
            .with(Tone::Plain, "  ")
            .join(diff::counted(difference::counts(files))),
    });

    lines.extend(summary.whole_risk_lines());
    for (index, action) in proposal.plan.actions.iter().enumerate() {
        if let Some(execute) = action.kind.command() {
            lines.extend(command(execute));
        }
        lines.extend(summary.risks_of(Some(index), "  "));
    }

    let mut lines = wrap_all(lines, room.width);
    if lines.len() + prompt_rows(room.width) < room.height {
        lines.extend(summary.more_keys());
    }
    lines
}

fn memos(proposal: &ReviewRequest<'_>) -> Option<StyledLine> {
    let number = |verb: Verb| {
        proposal
            .plan
            .memos
            .iter()
            .filter(|memo| memo.verb == verb)
            .count()
    };
    let words = [
        (number(Verb::Add), "added"),
        (number(Verb::Remove), "removed"),
    ];
    let words: Vec<String> = words
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();

    (!words.is_empty()).then(|| StyledLine::plain(&format!(" memos: {}", words.join(", "))))
}

/// Counts by kind, such as `CREATE 1 file`.
fn counts(proposal: &ReviewRequest<'_>) -> Vec<String> {
    let counted: Vec<String> = by_row(proposal)
        .into_iter()
        .map(
            |ActionGroup {
                 row, number, how, ..
             }| format!("{} {number}{how}", row.name),
        )
        .collect();
    if counted.is_empty() {
        vec!["no actions".to_owned()]
    } else {
        counted
    }
}
