//! The text of an action that is changed at a prompt, and the action with another text.

use crate::plan::action::ActionKind;

/// What separates the queries of a RESEARCH.
const BETWEEN: &str = "\n\n";

/// Returns what can be changed, without the final newline.
pub(super) fn text(kind: &ActionKind) -> String {
    let text = match kind {
        ActionKind::Execute(execute) => execute.command.as_str(),
        ActionKind::Research(research) => return research.queries.join(BETWEEN),
        ActionKind::ChatWithUser(chat) => &chat.message,
        ActionKind::Invoke(invoke) => &invoke.message,
        ActionKind::Conclude(conclude) => &conclude.message,
        ActionKind::Create(_)
        | ActionKind::Edit(_)
        | ActionKind::Read(_)
        | ActionKind::Prune(_) => "",
    };
    text.trim_end_matches('\n').to_owned()
}

/// Returns the action with another text; the same where the text is blank.
pub(super) fn with(kind: &ActionKind, text: &str) -> ActionKind {
    let mut kind = kind.clone();
    if text.trim().is_empty() {
        return kind;
    }
    let blank_ends = |text: &str| text.trim_matches('\n').to_owned();
    match &mut kind {
        ActionKind::Execute(execute) => {
            let end = if execute.command.ends_with('\n') {
                "\n"
            } else {
                ""
            };
            execute.command = format!("{}{end}", text.trim_end_matches('\n'));
        }
        ActionKind::Research(research) => {
            research.queries = text
                .split(BETWEEN)
                .map(blank_ends)
                .filter(|query| !query.trim().is_empty())
                .collect();
        }
        ActionKind::ChatWithUser(chat) => chat.message = blank_ends(text),
        ActionKind::Invoke(invoke) => invoke.message = blank_ends(text),
        ActionKind::Conclude(conclude) => conclude.message = blank_ends(text),
        ActionKind::Create(_)
        | ActionKind::Edit(_)
        | ActionKind::Read(_)
        | ActionKind::Prune(_) => {}
    }
    kind
}
