//! What reads like a sentence to a person: words beside the blocks that say what comes or what was
//! done, and mean nothing to a program.

use super::key;
use super::name;
use super::value;
use crate::plan::action::heading;

/// Characters that code and paths have and sentences have not, outside of backticks.
const CODE: [char; 12] = ['{', '}', '<', '>', '=', '$', '\\', '|', '^', '~', '[', ']'];
/// What a sentence ends with.
const ENDS: [char; 9] = ['.', '!', '?', ':', '…', '。', '！', '？', ')'];
/// How many words without an end are a sentence too.
const MIN_WORDS: usize = 3;

/// Returns whether lines are sentences: they begin as one, end as one, and have nothing of code or
/// of the format in them.
pub fn is_prose(lines: &[&str]) -> bool {
    let text = lines.join(" ");
    let text = text.trim();
    let words = without_code(text);
    let structured = lines.iter().any(|line| is_structure(line));
    !structured && begins(text) && ends(text) && !words.contains(CODE) && !words.contains("--")
}

/// Returns whether a line could be one of the format's own.
fn is_structure(line: &str) -> bool {
    let line = line.trim();
    let listed = heading::unlisted(line) != line;
    let fenced = line.contains("```") || line.contains("~~~");
    let labelled = heading::label(line).is_some() || fenced;
    let marked = line.starts_with(['#', '>', '+', '$', '@']) || line.ends_with([';', ',', '{']);
    let named = name::is_bold_action(line);
    named || listed || labelled || marked || key::split(line).is_some_and(|(key, _)| is_key(key))
}

/// Returns whether a key means something anywhere in the format.
fn is_key(key: &str) -> bool {
    crate::plan::action::field::canonical(key).is_some()
}

/// Returns whether words begin as a sentence does: with a capital, or a letter that has none.
fn begins(text: &str) -> bool {
    let first = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let decorated = text.len() - first.len() <= 16;
    decorated && first.starts_with(|c: char| !c.is_lowercase())
}

/// Returns whether words end as a sentence does, or are enough of them.
fn ends(text: &str) -> bool {
    let last = text.trim_end_matches(|c: char| {
        "*_\"'”’`".contains(c) || (!c.is_ascii() && !c.is_alphanumeric() && !ENDS.contains(&c))
    });
    let words = text.split_whitespace().count();
    let spaced = words >= 2 || !text.is_ascii();
    (last.ends_with(ENDS) && spaced) || words >= MIN_WORDS
}

/// Returns whether lines end as a sentence does, or with a sign behind it.
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

/// Returns words without what stands in backticks.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect()
}

/// Returns whether lines say that there is nothing, as a section without content does.
pub fn says_nothing(lines: &[&str]) -> bool {
    let text = lines.join(" ");
    let words = heading::unlisted(&text).trim().to_lowercase();
    let words = words.trim_matches(|c: char| !c.is_alphanumeric());
    let plain = [
        "no memos",
        "no memo",
        "no changes",
        "no new memos",
        "no memo changes",
        "no updates",
        "none at this time",
        "none for this turn",
        "none yet",
        "none needed",
        "none required",
        "empty",
    ];

    value::is_nothing(words) || plain.contains(&words)
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
