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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!(
            [counted(0, "file"), counted(1, "file"), counted(2, "file")],
            ["0 files", "1 file", "2 files"]
        );
    }
}
