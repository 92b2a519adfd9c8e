//! Keeps the end of an agent's stderr for error messages.

use crate::text::redaction::redact;
use crate::text::sanitize::{sanitize_block, strip_ansi};

/// Bytes to keep.
const MAX_STDERR_TAIL: usize = 4096;
/// Characters to show in an error.
const MAX_IN_ERROR: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Complaints {
    tail: Vec<u8>,
}

impl Complaints {
    pub(super) fn add(&mut self, piece: &[u8]) {
        self.tail
            .extend(&piece[piece.len().saturating_sub(MAX_STDERR_TAIL)..]);
        let surplus = self.tail.len().saturating_sub(MAX_STDERR_TAIL);
        self.tail.drain(..surplus);
    }

    /// The text, sanitized for an error message: no ANSI sequences, keys or control characters.
    pub(super) fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail);
        sanitize_block(&redact(&strip_ansi(text.trim()))).into_owned()
    }

    /// `: ` and the end of the text, or an empty string.
    pub(super) fn behind_colon(&self) -> String {
        let text = self.text();
        if text.is_empty() {
            return text;
        }

        let skipped = text.chars().count().saturating_sub(MAX_IN_ERROR);
        let end: String = text.chars().skip(skipped).collect();
        format!(": {end}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_made_harmless() {
        let mut complaints = Complaints::default();
        assert_eq!(complaints.behind_colon(), "");
        complaints.add(&vec![b'x'; 1 << 20]);
        complaints.add(b"\n\x1b[31mno\x07 key\x1b[0m\n");
        assert!(complaints.text().len() < MAX_STDERR_TAIL + 20);
        assert!(complaints.behind_colon().ends_with("x\nno\\u{7} key"));
    }
}
