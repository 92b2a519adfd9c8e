//! `Diagnostic`: one mistake of a plan, said so that its author can correct it.

use crate::text::visible::visible;

/// How much of the plan's own text a message repeats, in characters.
pub const MAX_QUOTE: usize = 60;
/// The most mistakes that are said one by one.
pub const MAX_MISTAKES: usize = 200;

/// A mistake.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostic {
    /// The line in the plan, from 1.
    pub line: usize,
    /// The action that it is in, as `EDIT src/a.rs`; empty outside of actions.
    pub action: String,
    /// What is wrong, lower case, without a full stop. May have further lines: the closest place, a
    /// difference.
    pub message: String,
    /// What would be right.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// Makes a diagnostic outside of any action, without a hint.
    pub fn new(line: usize, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            line,
            action: String::new(),
            message: message.into(),
            hint: None,
        }
    }

    /// Adds what would be right.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }
}

/// Returns mistakes by line; of more than [`MAX_MISTAKES`] the rest is counted (P22).
pub fn in_order(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    found.sort_by_key(|wrong| wrong.line);
    let more = found.len().saturating_sub(MAX_MISTAKES);
    if let Some(cut) = found.get(MAX_MISTAKES).map(|wrong| wrong.line) {
        found.truncate(MAX_MISTAKES);
        found.push(Diagnostic::new(
            cut,
            format!("there are {more} more mistakes from here on"),
        ));
    }

    found
}

/// Returns a piece of the plan for use in a message: one line, every character visible, cut at
/// [`MAX_QUOTE`] characters.
pub fn quote(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim_end();
    let start: String = line.chars().take(MAX_QUOTE + 1).collect();
    let shown = visible(&start);
    let mut short: String = shown.chars().take(MAX_QUOTE).collect();
    if short.len() < shown.len() || line.len() < text.trim().len() {
        short.push('…');
    }

    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_one_short_visible_line() {
        assert_eq!(quote("  a\u{202e}b \nc"), "a\\u{202e}b…");
        assert_eq!(quote(&"ü".repeat(61)), "ü".repeat(60) + "…");
        assert_eq!(quote("x"), "x");
    }
}
