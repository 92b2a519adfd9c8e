//! Makes an agent's messages safe for use in a plan.

use super::AgentText;
use crate::plan::action::field::one_line;
use crate::text::sanitize::sanitize_line;

/// Longest title, in characters.
const MAX_TITLE: usize = 100;
/// Longest rationale or message, in bytes.
const MAX_AGENT_TEXT: usize = 16 << 10;
/// Omitted paths that the rationale lists.
const MAX_LISTED_PATHS: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlanText {
    pub(super) title: String,
    pub(super) rationale: String,
    pub(super) message: String,
}

const SILENT_AGENT: &str = "The agent said nothing.";

/// Returns the texts of the plan: the agent's, and a list of changes that are not in the plan.
pub(super) fn compose_text(author: &AgentText<'_>, left_out: &[(Vec<u8>, String)]) -> PlanText {
    let title: String = sanitize_line(&one_line(&normalize_text(author.title)))
        .chars()
        .take(MAX_TITLE)
        .collect();
    let title = title.trim();
    let message = normalize_text(author.rationale);
    let message = truncate_text(message.trim());
    let message = if message.is_empty() {
        SILENT_AGENT
    } else {
        message
    };
    let omissions = list_left_out(left_out);

    PlanText {
        title: if title.is_empty() {
            neutral_text().title
        } else {
            title.to_owned()
        },
        rationale: format!("{message}\n{omissions}"),
        message: format!("{message}\n{omissions}").trim_end().to_owned(),
    }
}

/// Returns texts without any from the agent.
pub(super) fn neutral_text() -> PlanText {
    let message = "What the agent said cannot be shown in a plan.";
    PlanText {
        title: "What the agent did".to_owned(),
        rationale: format!("{message}\n"),
        message: message.to_owned(),
    }
}

/// Returns a message without code blocks, which could hide text from the renderer.
pub(super) fn without_code(message: &str) -> String {
    message.replace('`', "'").replace("~~~", "---")
}

/// Normalizes line endings and removes NUL.
fn normalize_text(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.replace('\0', "")
}

fn truncate_text(text: &str) -> &str {
    let end = (0..=MAX_AGENT_TEXT.min(text.len())).rev();
    let end = end.into_iter().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or_default()]
}

/// Lists the changes that are not in the plan.
fn list_left_out(left_out: &[(Vec<u8>, String)]) -> String {
    if left_out.is_empty() {
        return String::new();
    }

    let listed = left_out.iter().take(MAX_LISTED_PATHS).map(|(path, why)| {
        let path = String::from_utf8_lossy(path);
        format!("- {}: {why}\n", sanitize_line(&path).replace('`', "'"))
    });
    let more = left_out.len().saturating_sub(MAX_LISTED_PATHS);
    let more = (more > 0).then(|| format!("- and {more} more\n"));
    let lines: String = listed.chain(more).collect();
    format!("\nNot in this plan:\n{lines}")
}
