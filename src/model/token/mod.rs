//! Counting tokens, and remembering the counts.
//!
//! Counts are those of `o200k_base`: exact for OpenAI's models, near for others. The vocabulary is
//! a table that the build script makes from the one in tiktoken-rs ([`layout`]); the program has it
//! in itself and looks it up in place, so that the first count costs no more than any other.

mod cache;
mod layout;
mod merge;
mod split;
mod table;

pub use cache::{MAX_ENTRIES, TokenCache};

/// Counts the tokens of a text. What looks like a special token counts as the plain text that it
/// is.
pub fn count(text: &str) -> usize {
    let mut merger = merge::Merger::default();
    split::Pieces::new(text)
        .map(|piece| merger.count(piece))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: usize) {
        assert_eq!(count(text), expected);
    }

    #[test]
    fn tokens_are_those_of_o200k_base() {
        check("", 0);
        check("hello world", 2);
        check("Dependencies: measured choices\n", 5);
    }

    #[test]
    fn a_special_token_in_a_file_is_plain_text() {
        check("<|endoftext|>", 7);
    }
}
