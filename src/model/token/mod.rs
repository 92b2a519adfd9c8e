//! Token counting with the `o200k_base` vocabulary: exact for OpenAI's models, approximate for
//! others.
//!
//! The build script converts the vocabulary of tiktoken-rs to tables ([`layout`]), which are
//! compiled in and used without loading or decoding. The first count is as fast as any other.

mod cache;
mod layout;
mod merge;
mod split;
mod table;

pub use cache::{MAX_ENTRIES, TokenCache};

/// Counts the tokens of a text. Special tokens count as plain text.
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
