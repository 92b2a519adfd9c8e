//! Makes an agent's messages safe for use in a plan.

use super::AgentWords;
use crate::plan::action::field::one_line;
use crate::text::visible::visible;

/// Longest title, in characters.
const MAX_TITLE: usize = 100;
/// Longest rationale or message, in bytes.
const MAX_WORDS: usize = 16 << 10;
/// Omitted paths that the rationale lists.
const MAX_NAMED: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlanWords {
    pub(super) title: String,
    pub(super) rationale: String,
    pub(super) message: String,
}

const SILENT: &str = "The agent said nothing.";

/// Returns the texts of the plan: the agent's, and a list of changes that are not in the plan.
pub(super) fn of(author: &AgentWords<'_>, left_out: &[(Vec<u8>, String)]) -> PlanWords {
    let title: String = visible(&one_line(&plain(author.title)))
        .chars()
        .take(MAX_TITLE)
        .collect();
    let title = title.trim();
    let said = plain(author.rationale);
    let said = bounded(said.trim());
    let said = if said.is_empty() { SILENT } else { said };
    let rest = rest(left_out);

    PlanWords {
        title: if title.is_empty() {
            neutral().title
        } else {
            title.to_owned()
        },
        rationale: format!("{said}\n{rest}"),
        message: format!("{said}\n{rest}").trim_end().to_owned(),
    }
}

/// Returns texts without any from the agent.
pub(super) fn neutral() -> PlanWords {
    let words = "What the agent said cannot be shown in a plan.";
    PlanWords {
        title: "What the agent did".to_owned(),
        rationale: format!("{words}\n"),
        message: words.to_owned(),
    }
}

/// Returns a message without code blocks, which could hide text from the renderer.
pub(super) fn without_code(message: &str) -> String {
    message.replace('`', "'").replace("~~~", "---")
}

/// Normalizes line endings and removes NUL.
fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.replace('\0', "")
}

fn bounded(text: &str) -> &str {
    let end = (0..=MAX_WORDS.min(text.len())).rev();
    let end = end.into_iter().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or_default()]
}

/// Lists the changes that are not in the plan.
fn rest(left_out: &[(Vec<u8>, String)]) -> String {
    if left_out.is_empty() {
        return String::new();
    }

    let named = left_out.iter().take(MAX_NAMED).map(|(path, why)| {
        let path = String::from_utf8_lossy(path);
        format!("- {}: {why}\n", visible(&path).replace('`', "'"))
    });
    let more = left_out.len().saturating_sub(MAX_NAMED);
    let more = (more > 0).then(|| format!("- and {more} more\n"));
    let lines: String = named.chain(more).collect();
    format!("\nNot in this plan:\n{lines}")
}
