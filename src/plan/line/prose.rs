//! Recognizes sentences: text next to the blocks that describes the plan and has no effect.

use super::{key, name, value};
use crate::plan::line;
use crate::plan::line::field_item::canonical;
use crate::text::has_phrase;

/// Characters of code and paths that do not occur in sentences, outside backticks.
const CODE: [char; 12] = ['{', '}', '<', '>', '=', '$', '\\', '|', '^', '~', '[', ']'];
const ENDS: [char; 9] = ['.', '!', '?', ':', '…', '。', '！', '？', ')'];
/// What an empty section of memos says.
const NO_MEMOS: &str = "\
    no memos, no memo, no changes, no new memos, no memo changes, no updates, none at this time, \
    none for this turn, none yet, none needed, none required, empty";
/// Words that make a sentence without punctuation at its end.
const MIN_WORDS: usize = 3;

/// Returns whether lines are sentences: they start and end like one, and contain no code and
/// nothing of the format.
pub fn is_prose(lines: &[&str]) -> bool {
    let text = lines.join(" ");
    let text = text.trim();
    let plain = without_code(text);
    let structured = lines.iter().any(|line| is_structure(line));
    !structured && begins(text) && ends(text) && !plain.contains(CODE) && !plain.contains("--")
}

/// Returns whether a line could be part of the format.
fn is_structure(line: &str) -> bool {
    let line = line.trim();
    let listed = line::is_listed(line);
    let fenced = line.contains("```") || line.contains("~~~");
    let labelled = line::label(line).is_some() || fenced;
    let is_marked = line.starts_with(['#', '>', '+', '$', '@']) || line.ends_with([';', ',', '{']);
    let is_bold_action = name::is_bold_action(line);
    is_bold_action
        || listed
        || labelled
        || is_marked
        || key::split(line).is_some_and(|(key, _)| canonical(key).is_some())
}

/// Returns whether text starts like a sentence: with an upper-case letter, or a letter without
/// case.
fn begins(text: &str) -> bool {
    let first = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let decorated = text.len() - first.len() <= 16;
    decorated && first.starts_with(|c: char| !c.is_lowercase())
}

/// Returns whether text ends like a sentence or has at least `MIN_WORDS` words.
fn ends(text: &str) -> bool {
    let last = text.trim_end_matches(|c: char| {
        "*_\"'”’`".contains(c) || (!c.is_ascii() && !c.is_alphanumeric() && !ENDS.contains(&c))
    });
    let count = text.split_whitespace().count();
    let spaced = count >= 2 || !text.is_ascii();
    (last.ends_with(ENDS) && spaced) || count >= MIN_WORDS
}

pub fn is_ended(lines: &[&str]) -> bool {
    let text = lines.last().map_or("", |line| line.trim_end());
    !text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ',' | '-' | '(' | '/'))
}

/// Returns whether a line below a field without an indentation reads as a sentence of its own, not as
/// the rest of the field's value.
pub fn is_sentence_of_its_own(above: &str, line: &str) -> bool {
    let ended = above.trim_end().ends_with(ENDS);
    let lower = line.trim_start().starts_with(char::is_lowercase);
    !line.trim().is_empty() && (ended || !lower)
}

pub fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect()
}

/// Returns whether lines say "none", as in an empty section.
pub fn says_nothing(lines: &[&str]) -> bool {
    let text = lines.join(" ");
    let lower = line::unlisted(&text).trim().to_lowercase();
    let lower = lower.trim_matches(|c: char| !c.is_alphanumeric());
    value::is_nothing(lower) || has_phrase(NO_MEMOS, lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p35_sentences_are_told_from_code_and_from_the_formats_own_lines() {
        for text in [
            "Then we run the tests.",
            "This plan changes `greet()`. Once you approve it, I will continue!",
            "Here is the new content:",
            "**Note:** the tests are slow.",
            "✅ Done, tell me what you think",
            "まず関数を変えます。",
        ] {
            assert!(is_prose(&[text]), "{text}");
        }
        for text in [
            "return x",
            "and also",
            "Done",
            "x = 1",
            "let x = y;",
            "`FIND:`",
            "- An item.",
            "Description: this one.",
            "# A heading.",
            "cargo test --all",
            "Use vec![1].",
            "```md `x`",
            "`FIND:` ```py and more",
            "",
        ] {
            assert!(!is_prose(&[text]), "{text}");
        }
    }
}
