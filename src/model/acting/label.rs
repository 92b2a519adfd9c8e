//! Words of an agent, cut short and fit for a terminal.

use crate::text::redact::redact;
use crate::text::visible::visible;

/// The longest label, in characters.
const MAX: usize = 300;

/// Returns a text as one short line without keys in which everything is visible.
pub(super) fn label(text: &str) -> String {
    // A key is taken out before the cut: half a key has no shape.
    let begin: String = text.trim().chars().take(10 * MAX).collect();
    let clean = redact(&begin);
    let mut short: String = clean.chars().take(MAX).collect();
    if short.len() < clean.len() {
        short.push('…');
    }
    visible(&short).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_short_and_visible() {
        assert_eq!(label(" a\nb\u{202e} "), "a\\u{a}b\\u{202e}");
        assert_eq!(label(&"x".repeat(1000)).chars().count(), MAX + 1);
    }
}
