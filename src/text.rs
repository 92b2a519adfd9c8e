//! Text processing: paths, fences, Markdown structure, edits, diffs.
//!
//! Pure: does not read files, the clock or the environment.

mod colorless;
pub mod context_list;
pub mod damage;
pub mod diff;
pub mod edit;
pub mod elision;
pub mod encoding;
pub mod fence;
pub mod foreign_json;
pub mod git_file;
pub mod hint;
pub mod json_edit;
pub mod keep_bytes;
pub mod language;
pub mod leak;

pub mod link;
pub mod markdown;
pub mod near;
pub mod path;
pub mod path_alias;

pub mod resource;
pub mod sanitize;
pub mod secret;
pub mod shell_word;
pub mod transplant;
pub mod yaml;

use regex::Regex;

/// Returns a short hash of a text, in hexadecimal.
pub fn digest(text: &str) -> String {
    use sha2::{Digest, Sha256};

    hex(&Sha256::digest(text.as_bytes())[..6])
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a number with a comma between thousands.
pub fn grouped(number: impl std::fmt::Display) -> String {
    let digits = number.to_string();
    let comma = |at: usize| at > 0 && (digits.len() - at).is_multiple_of(3);
    digits
        .chars()
        .enumerate()
        .flat_map(|(at, digit)| comma(at).then_some(',').into_iter().chain([digit]))
        .collect()
}

/// Lower-case letters, digits and single hyphens between them.
pub fn is_kebab(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.split('-')
        .all(|word| !word.is_empty() && word.bytes().all(is_plain))
}

/// Lists the first names: `a, b and 3 more`.
pub fn first_names(mut names: impl Iterator<Item = String>, most: usize) -> String {
    let first: Vec<String> = names.by_ref().take(most).collect();
    let more = match names.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    first.join(", ") + &more
}

/// Formats a number with its noun: `1 file`, `2 files`.
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let end = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{end}")
}

/// Like [`counted`], with a comma between thousands: `1 token`, `1,234 tokens`.
pub fn grouped_count<N: std::fmt::Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let end = if number == N::from(1) { "" } else { "s" };
    format!("{} {noun}{end}", grouped(number))
}

/// Formats ascending numbers: `2-4, 7`.
pub fn ranges(numbers: &[u64]) -> String {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let run = |run: &[u64]| match run {
        [first, .., last] => format!("{first}-{last}"),
        [one] => one.to_string(),
        [] => String::new(),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}

/// Formats a size: `1.5 KiB`.
pub fn sized(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in ["B", "KiB", "MiB"] {
        if size < 1024.0 {
            return if unit == "B" {
                format!("{bytes} B")
            } else {
                format!("{size:.1} {unit}")
            };
        }
        size /= 1024.0;
    }

    format!("{size:.1} GiB")
}

/// Truncates a text to `most` bytes and appends a note.
pub fn beginning(text: &str, most: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let end = floor_char_boundary(text, most);
    format!("{}\n(cut here)", &text[..end]).into()
}

/// Returns the last position up to `at` at which a text can be split.
pub fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut ends = (0..=at.min(text.len())).rev();
    ends.find(|&end| text.is_char_boundary(end))
        .unwrap_or_default()
}

/// Decodes `%XX`. Anything else stays.
pub fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let (mut out, mut remaining) = (Vec::new(), text);
    while let Some((&first, after)) = remaining.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        if let (b'%', Some(code)) = (first, code) {
            out.push(code);
            remaining = &after[2..];
        } else {
            out.push(first);
            remaining = after;
        }
    }
    out
}

/// Returns whether a word is in a list that spaces separate.
pub fn has_word(list: &str, word: &str) -> bool {
    list.split(' ').any(|other| other == word)
}

/// Like [`has_word`], for phrases that commas separate.
pub fn has_phrase(list: &str, phrase: &str) -> bool {
    list.split(", ").any(|other| other == phrase)
}

fn constant_regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant that the tests compile")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_in_a_row_are_a_range() {
        assert_eq!(ranges(&[2, 3, 4, 7, 9, 10]), "2-4, 7, 9-10");
        assert_eq!(ranges(&[1]), "1");
    }

    #[test]
    fn a_beginning_ends_with_a_whole_character() {
        assert_eq!(beginning("short", 5), "short");
        assert_eq!(beginning("a\u{e9}b", 2), "a\n(cut here)");
    }

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        assert_eq!(
            [0, 1023, 1536, 5 << 20, 3 << 40].map(sized),
            ["0 B", "1023 B", "1.5 KiB", "5.0 MiB", "3072.0 GiB"]
        );
    }

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!(
            [counted(0, "file"), counted(1, "file"), counted(2, "file")],
            ["0 files", "1 file", "2 files"]
        );
        assert_eq!(
            [1, 1234].map(|number| grouped_count(number, "token")),
            ["1 token", "1,234 tokens"]
        );
    }
}
