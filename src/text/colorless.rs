//! Removes the escape sequences of a terminal from a text, and converts offsets back.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::constant_regex;

/// Escape sequences of a terminal, also as JSON, YAML and shells spell them.
static SEQUENCE: LazyLock<Regex> = LazyLock::new(|| {
    constant_regex(concat!(
        r"(?:\x1b|\\{1,8}(?:e|x1[bB]|u001[bB]|033))",
        r"(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\\]*\x07?)"
    ))
});

/// A text without escape sequences. In colors, a key can be in parts.
pub(super) struct Colorless {
    pub text: String,
    /// Offsets in `text`, and the number of bytes that were removed before.
    removed: Vec<(usize, usize)>,
}

impl Colorless {
    /// `None` if the text has no sequence.
    pub fn of(text: &str) -> Option<Colorless> {
        let mut colorless = Colorless {
            text: String::new(),
            removed: Vec::new(),
        };
        let (mut end, mut removed) = (0, 0);
        for sequence in SEQUENCE.find_iter(text) {
            colorless.text.push_str(&text[end..sequence.start()]);
            removed += sequence.len();
            colorless.removed.push((colorless.text.len(), removed));
            end = sequence.end();
        }
        colorless.text.push_str(&text[end..]);
        (end > 0).then_some(colorless)
    }

    /// Converts an offset of a character to that in the original text.
    pub fn original(&self, offset: usize) -> usize {
        let before = self.removed.partition_point(|(at, _)| *at <= offset);
        offset + before.checked_sub(1).map_or(0, |last| self.removed[last].1)
    }

    /// Like [`Colorless::original`], for a range that is not empty.
    pub fn original_range(&self, range: &Range<usize>) -> Range<usize> {
        self.original(range.start)..self.original(range.end - 1) + 1
    }
}
