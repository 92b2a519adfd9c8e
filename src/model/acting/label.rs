//! Agent output, truncated and sanitized for display.

use crate::text::redaction::redact;
use crate::text::sanitize::sanitize_line;

/// Maximum length of a label in characters.
const MAX_LABEL: usize = 300;

/// Returns one short line without keys or control characters.
pub(super) fn sanitize_label(text: &str) -> String {
    // Redact before truncating: a truncated key can't be recognized.
    let begin: String = text.trim().chars().take(10 * MAX_LABEL).collect();
    let clean = redact(&begin);
    let mut short: String = clean.chars().take(MAX_LABEL).collect();
    if short.len() < clean.len() {
        short.push('…');
    }
    sanitize_line(&short).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_short_and_visible() {
        assert_eq!(sanitize_label(" a\nb\u{202e} "), "a\\u{a}b\\u{202e}");
        assert_eq!(
            sanitize_label(&"x".repeat(1000)).chars().count(),
            MAX_LABEL + 1
        );
    }
}
