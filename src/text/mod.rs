//! Text as values: paths, fences, Markdown structure, edits, differences.
//!
//! Pure: nothing here reads a file, a clock or an environment.

pub mod context_list;
pub mod diff;
pub mod edit;
pub mod fence;
pub mod json_edit;
pub mod language;
pub mod lines;
pub mod link;
pub mod markdown;
pub mod near;
pub mod path;
pub mod redact;
pub mod resource;
pub mod secret;
pub mod visible;
pub mod yaml;

/// Returns a short name for a text, the same for the same bytes.
pub fn digest(text: &str) -> String {
    use sha2::{Digest, Sha256};

    Sha256::digest(text.as_bytes())
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns a number with its noun: `1 file`, `2 files`.
pub fn counted<N: std::fmt::Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let end = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{end}")
}

/// Returns as much of a text as fits into so many bytes, and says so where that is not all.
pub fn beginning(text: &str, most: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let mut ends = (0..=most).rev();
    let end = ends.find(|&at| text.is_char_boundary(at));
    format!("{}\n(cut here)", &text[..end.unwrap_or_default()]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_ends_with_a_whole_character() {
        assert_eq!(beginning("short", 5), "short");
        assert_eq!(beginning("a\u{e9}b", 2), "a\n(cut here)");
    }

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!(
            [counted(0, "file"), counted(1, "file"), counted(2, "file")],
            ["0 files", "1 file", "2 files"]
        );
    }
}
