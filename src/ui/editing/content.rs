//! The text of an action that is changed at a prompt, and the action with another text.

use crate::plan::action::Kind;

/// What separates the queries of a RESEARCH.
const BETWEEN: &str = "\n\n";

/// Returns what can be changed, without the final newline.
pub(super) fn text(kind: &Kind) -> String {
    let text = match kind {
        Kind::Execute(execute) => execute.command.as_str(),
        Kind::Research(research) => return research.queries.join(BETWEEN),
        Kind::ChatWithUser(chat) => &chat.message,
        Kind::Invoke(invoke) => &invoke.message,
        Kind::Conclude(conclude) => &conclude.message,
        Kind::Create(_) | Kind::Edit(_) | Kind::Read(_) | Kind::Prune(_) => "",
    };
    text.trim_end_matches('\n').to_owned()
}

/// Returns the action with another text; the same where the text is blank.
pub(super) fn with(kind: &Kind, text: &str) -> Kind {
    let mut kind = kind.clone();
    if text.trim().is_empty() {
        return kind;
    }
    let blank_ends = |text: &str| text.trim_matches('\n').to_owned();
    match &mut kind {
        Kind::Execute(execute) => {
            let end = if execute.command.ends_with('\n') {
                "\n"
            } else {
                ""
            };
            execute.command = format!("{}{end}", text.trim_end_matches('\n'));
        }
        Kind::Research(research) => {
            research.queries = text
                .split(BETWEEN)
                .map(blank_ends)
                .filter(|query| !query.trim().is_empty())
                .collect();
        }
        Kind::ChatWithUser(chat) => chat.message = blank_ends(text),
        Kind::Invoke(invoke) => invoke.message = blank_ends(text),
        Kind::Conclude(conclude) => conclude.message = blank_ends(text),
        Kind::Create(_) | Kind::Edit(_) | Kind::Read(_) | Kind::Prune(_) => {}
    }
    kind
}
