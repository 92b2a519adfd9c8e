//! Compact summary for a low screen: counts only, except for commands and risks.

use super::group::{ActionGroup, group_by_kind};
use super::{Summary, TextArea, command, difference, facts, prompt_rows};
use crate::plan::memo::Verb;
use crate::ui::diff;
use crate::ui::style::{StyledLine, Tone, wrap_all};
use crate::workflow::user::ReviewRequest;

pub(super) fn compact_lines(summary: &Summary<'_>, area: TextArea) -> Vec<StyledLine> {
    let proposal = summary.proposal;
    let title = StyledLine::of(Tone::Accent, "▶ ").with(Tone::Strong, &proposal.plan.title);
    let mut lines = vec![
        // Cut these two. Commands and risks are wrapped instead.
        title.cut(area.width),
        facts(proposal).cut(area.width),
        StyledLine::of(Tone::Faint, &"─".repeat(area.width)),
    ];
    lines.extend(memo_counts(proposal));
    let counts = StyledLine::plain(&format!(" {}", action_counts(proposal).join(", ")));
    lines.push(match summary.files.as_slice() {
        [] => counts,
        files => counts
            .with(Tone::Plain, "  ")
            .append(diff::counted(difference::counts(files))),
    });

    lines.extend(summary.whole_risk_lines());
    for (index, action) in proposal.plan.actions.iter().enumerate() {
        if let Some(execute) = action.kind.command() {
            lines.extend(command(execute));
        }
        lines.extend(summary.risks_of(Some(index), "  "));
    }

    let mut lines = wrap_all(lines, area.width);
    if lines.len() + prompt_rows(area.width) < area.height {
        lines.extend(summary.more_keys());
    }
    lines
}

fn memo_counts(proposal: &ReviewRequest<'_>) -> Option<StyledLine> {
    let number = |verb: Verb| {
        proposal
            .plan
            .memos
            .iter()
            .filter(|memo| memo.verb == verb)
            .count()
    };
    let parts = [
        (number(Verb::Add), "added"),
        (number(Verb::Remove), "removed"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();

    (!parts.is_empty()).then(|| StyledLine::plain(&format!(" memos: {}", parts.join(", "))))
}

/// Counts by kind, such as `CREATE 1 file`.
fn action_counts(proposal: &ReviewRequest<'_>) -> Vec<String> {
    let counted: Vec<String> = group_by_kind(proposal)
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
