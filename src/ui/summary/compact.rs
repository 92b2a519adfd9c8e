//! The summary of a low screen: everything is counted, and only commands and what is risky stand in
//! full.

use super::{ActionGroup, TextArea, command, facts, groups, risks};
use crate::plan::memo::Verb;
use crate::ui::style::{StyledLine, Tone, wrap_all};
use crate::workflow::user::ReviewRequest;

/// Returns the summary, folded to the room's width.
pub(super) fn lines(proposal: &ReviewRequest<'_>, room: TextArea) -> Vec<StyledLine> {
    let title = StyledLine::of(Tone::Accent, "▶ ").with(Tone::Strong, &proposal.plan.title);
    let mut lines = vec![
        title.cut(room.width),
        facts(proposal).cut(room.width),
        StyledLine::of(Tone::Faint, &"─".repeat(room.width)),
    ];
    lines.extend(memos(proposal));
    lines.push(StyledLine::plain(&format!(
        " {}",
        counts(proposal).join(", ")
    )));

    for kind in proposal.plan.actions.iter().map(|action| &action.kind) {
        if let Some(execute) = kind.command() {
            lines.extend(command(execute));
        }
    }

    lines.extend(risks(proposal).listed);
    wrap_all(lines, room.width)
}

/// Returns how many memos come and go.
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

/// Returns `CREATE 1 file` for each action's name.
fn counts(proposal: &ReviewRequest<'_>) -> Vec<String> {
    let counted: Vec<String> = groups(proposal)
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
