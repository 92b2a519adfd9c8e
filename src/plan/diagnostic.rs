//! `Diagnostic`: a mistake in a plan, described for its author.

use crate::text::sanitize::sanitize_line;

/// Characters of the plan that a message quotes.
pub const MAX_QUOTE: usize = 60;
/// Diagnostics reported individually; further ones are counted.
pub const MAX_MISTAKES: usize = 200;

/// A mistake in a plan.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostic {
    /// Line in the plan, from 1.
    pub line: usize,
    /// The action with the mistake, such as `EDIT src/a.rs`; empty outside actions.
    pub action: String,
    /// The problem, in lower case without a full stop. Further lines can show the closest match or
    /// a diff.
    pub message: String,
    /// The correct form.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// Creates a diagnostic outside any action, without a hint.
    pub fn new(line: usize, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            line,
            action: String::new(),
            message: message.into(),
            hint: None,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }
}

/// Sorts diagnostics by line. Beyond [`MAX_MISTAKES`], the last one counts the rest (P22).
pub fn in_order(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|wrong| wrong.line);
    let more = diagnostics.len().saturating_sub(MAX_MISTAKES);
    if let Some(cut) = diagnostics.get(MAX_MISTAKES).map(|wrong| wrong.line) {
        diagnostics.truncate(MAX_MISTAKES);
        diagnostics.push(Diagnostic::new(
            cut,
            match more {
                1 => "there is 1 more mistake from here on".to_owned(),
                _ => format!("there are {more} more mistakes from here on"),
            },
        ));
    }

    diagnostics
}

/// Quotes the first line of a text: control characters made visible, at most [`MAX_QUOTE`]
/// characters.
pub fn quote(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default().trim_end();
    let start: String = line.chars().take(MAX_QUOTE + 1).collect();
    let rendered = sanitize_line(&start);
    let mut short: String = rendered.chars().take(MAX_QUOTE).collect();
    if short.len() < rendered.len() || line.len() < text.trim().len() {
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
