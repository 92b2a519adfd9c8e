//! Quotes words of suggested commands, so that copying one into a shell is safe with any file name.
//!
//! Special characters are quoted. Characters that cannot be displayed are escaped byte by byte as
//! `$'..'`, which bash, zsh and other shells support.

use std::fmt::Write as _;

use super::sanitize::sanitize_line;

/// Quotes a text or the bytes of a path as one word. A leading dash can make it an option; use
/// [`shell_operands`] after all options.
pub fn shell_word(word: impl AsRef<[u8]>) -> String {
    let bytes = word.as_ref();
    let text = std::str::from_utf8(bytes).ok();
    match text.filter(|text| sanitize_line(text) == *text) {
        Some(text) if is_plain(text) => text.to_owned(),
        Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
        None => escaped(bytes),
    }
}

/// Quotes operands, preceded by `--` if one of them starts with a dash.
pub fn shell_operands(words: &[impl AsRef<[u8]>]) -> String {
    let has_dash = words.iter().any(|word| word.as_ref().starts_with(b"-"));
    let dashes = has_dash.then(|| "--".to_owned());
    let quoted = words.iter().map(shell_word);
    let parts: Vec<String> = dashes.into_iter().chain(quoted).collect();
    parts.join(" ")
}

fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-~".contains(c);
    // Shells expand a leading `~`, and zsh also a leading `=`.
    !text.is_empty() && !text.starts_with(['~', '=']) && text.chars().all(is_plain)
}

fn escaped(bytes: &[u8]) -> String {
    let mut word = String::from("$'");
    for &byte in bytes {
        match byte {
            b'\'' | b'\\' => write!(word, "\\x{byte:02x}"),
            b'!'..=b'~' => write!(word, "{}", char::from(byte)),
            _ => write!(word, "\\x{byte:02x}"),
        }
        .expect("writing to a string cannot fail");
    }
    word.push('\'');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_can_be_copied_into_a_shell() {
        let check = |text: &str, expected: &str| assert_eq!(shell_word(text), expected);
        check("remote.origin.push", "remote.origin.push");
        check("src/a-b_c.rs", "src/a-b_c.rs");
        check("a b", "'a b'");
        check("a'b", r"'a'\''b'");
        check("a;touch pwned", "'a;touch pwned'");
        check("d $(id)/`id`", "'d $(id)/`id`'");
        check("~root", "'~root'");
        check("=ls", "'=ls'");
        check("HEAD~1", "HEAD~1");
        check("ü", "'ü'");
        check("", "''");
        check("a\u{1b}b", r"$'a\x1bb'");
        check("a\nb 'c' \\", r"$'a\x0ab\x20\x27c\x27\x20\x5c'");
        check("a\u{202e}b", r"$'a\xe2\x80\xaeb'");
        assert_eq!(shell_word(b"a\xffb"), r"$'a\xffb'");
    }

    #[test]
    fn an_operand_is_no_option() {
        let check = |text: &str, expected: &str| assert_eq!(shell_operands(&[text]), expected);
        check("a", "a");
        check("-rf", "-- -rf");
        check("--exact x", "-- '--exact x'");
        assert_eq!(shell_operands(&["a b", "-c"]), "-- 'a b' -c");
    }
}
