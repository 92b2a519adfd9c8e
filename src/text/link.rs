//! Parses the value of a path field, such as `[src/a.rs](/src/a.rs)`, in the spellings that models
//! use.
//!
//! The user approves the text of a link, so text and destination must agree, and the text is what
//! counts. Escapes and entities are decoded before the comparison, and percent-encoding only for
//! it. The caller validates the result, for example with `RepoPath`.

use std::borrow::Cow;

use super::percent_decoded;
use super::resource::is_url;
use crate::text::markdown::unescape;

// Limits the number of closing parentheses that are tried as the end of a link.
const MAX_ENDS: usize = 20;

/// Why a value is not a single name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    #[error("the value is empty")]
    Empty,
    #[error("there is more than one link")]
    Several,
    #[error("there is text beside the link")]
    Beside,
    /// A reference link, or an unclosed bracket.
    #[error("the link is not of the form `[path](/path)`")]
    Form,
    #[error("the link has a title")]
    Title,
    #[error("the link's text `{text}` and its destination `{destination}` differ")]
    Mismatch { text: String, destination: String },
    #[error("only `http` and `https` addresses are read")]
    Scheme,
    #[error("the path is in quotes")]
    Quotes,
    #[error("a path with a space must be a link or in backticks")]
    Blank,
}

/// Parses a field with one name. Returns a path without a leading `/`, or a URL.
pub fn read(value: &str) -> Result<String, LinkError> {
    let value = value.trim();
    let inner = unquoted(value);
    if inner.bytes().all(|byte| byte == b'`') {
        return Err(LinkError::Empty);
    }

    let quoted = inner.len() < value.len();
    let has_blank = !quoted && inner.contains(' ');
    if inner.starts_with('[') && (inner.contains("](") || has_blank || is_reference(inner)) {
        return link(inner);
    }

    if inner.contains("](") {
        return Err(if inner.matches("](").count() > 1 {
            LinkError::Several
        } else {
            LinkError::Beside
        });
    }

    if let Some(address) = inner
        .strip_prefix('<')
        .and_then(|tail| tail.strip_suffix('>'))
    {
        return if is_url(address) {
            Ok(address.to_owned())
        } else {
            Err(LinkError::Form)
        };
    }

    // A backtick inside means two code spans.
    if inner.contains('`') || inner.starts_with("~~") {
        return Err(LinkError::Beside);
    }

    let in_quotes = [("\"", "\""), ("'", "'"), ("“", "”"), ("‘", "’")]
        .iter()
        .any(|(open, close)| inner.len() > 1 && inner.starts_with(open) && inner.ends_with(close));
    if in_quotes {
        return Err(LinkError::Quotes);
    }

    if !quoted && inner.contains(char::is_whitespace) {
        return Err(LinkError::Blank);
    }

    if !quoted && inner.starts_with('*') && inner.ends_with('*') && inner.len() > 1 {
        return Err(LinkError::Form);
    }

    checked_scheme(if quoted {
        with_forward_slashes(inner)
    } else {
        decode_name(inner)
    })
}

/// Returns whether a text that starts with `[` is a reference link, or a link that is not finished.
/// A directory such as `[id]` also starts a path.
fn is_reference(text: &str) -> bool {
    text.ends_with(']') || !text.contains(']') || text.contains("]:")
}

/// Parses a field with several names, separated by commas. Links can also be separated by spaces.
pub fn read_all(value: &str) -> Result<Vec<String>, LinkError> {
    split(value).into_iter().map(read).collect()
}

/// Writes a path as a link that [`read`] parses as the same path.
pub fn write_path(path: &str) -> String {
    let text = escape_name(path);
    if path.contains([' ', '"', '\'']) {
        format!("[{text}](</{text}>)")
    } else {
        format!("[{text}](/{text})")
    }
}

/// Writes a URL as a link that [`read`] parses as the same URL.
pub fn write_url(url: &str) -> String {
    let text = escape_name(url);
    format!("[{text}]({text})")
}

/// Splits a value at commas, and between links at spaces.
fn split(value: &str) -> Vec<&str> {
    let linked = value.contains("](");
    let mut parts = Vec::new();
    let mut remaining = value;
    loop {
        remaining = remaining.trim_start_matches([' ', '\t', ',', ';']);
        if remaining.is_empty() {
            return parts;
        }

        let end = match remaining.find("](") {
            Some(at) if linked && remaining.starts_with(['[', '`']) => link_end(remaining, at),
            _ => remaining.find([',', ';']).unwrap_or(remaining.len()),
        };
        let end = if remaining[end..].starts_with('`') {
            end + 1
        } else {
            end
        };

        parts.push(remaining[..end].trim());
        remaining = &remaining[end..];
    }
}

/// Returns the end of the link at the start of a text: the first `)` with which it is valid, else
/// the first one. `destination` is the offset of `](`.
fn link_end(text: &str, destination: usize) -> usize {
    let ends = || {
        text[destination..]
            .match_indices(')')
            .map(|(at, _)| destination + at + 1)
    };
    let good = |end: &usize| link(text[..*end].trim_start_matches('`')).is_ok();
    ends()
        .take(MAX_ENDS)
        .find(good)
        .or_else(|| ends().next())
        .unwrap_or(text.len())
}

/// Parses `[text](destination)`.
fn link(value: &str) -> Result<String, LinkError> {
    let split = value
        .strip_prefix('[')
        .and_then(|tail| tail.split_once("]("));
    let Some((text, tail)) = split else {
        return Err(LinkError::Form);
    };
    if tail.contains("](") {
        return Err(LinkError::Several);
    }

    let Some(destination) = tail.strip_suffix(')') else {
        return Err(if tail.contains(')') {
            LinkError::Beside
        } else {
            LinkError::Form
        });
    };

    let angled = destination
        .strip_prefix('<')
        .and_then(|d| d.strip_suffix('>'));
    if angled.is_none() && has_title(destination) {
        return Err(LinkError::Title);
    }

    if angled.is_none() && destination.contains(") ") && !text.contains(") ") {
        return Err(LinkError::Beside);
    }

    let text = decode_name(unquoted(text));
    let destination = decode_name(angled.unwrap_or(destination));
    agree(text, destination)
}

fn agree(text: String, destination: String) -> Result<String, LinkError> {
    if is_url(&destination) {
        return if names_address(&text, &destination) {
            Ok(destination)
        } else {
            Err(LinkError::Mismatch { text, destination })
        };
    }

    let relative = destination
        .strip_prefix('/')
        .or_else(|| destination.strip_prefix("./"))
        .unwrap_or(&destination);
    let relative = with_forward_slashes(relative);

    // The caller decides whether a path can start with `/`.
    if destination == text {
        return checked_scheme(text);
    }

    if relative != text && percent_decoded(relative.as_bytes()) != text.as_bytes() {
        return Err(LinkError::Mismatch { text, destination });
    }

    checked_scheme(text)
}

/// Returns `true` if a text can stand for a URL: the URL, with or without its scheme, its host, or
/// words that look like neither a URL nor a path.
fn names_address(text: &str, address: &str) -> bool {
    let bare = |url: &str| {
        url.split_once("://")
            .map_or(url, |(_, tail)| tail)
            .trim_start_matches("www.")
            .trim_end_matches('/')
            .to_owned()
    };
    let (displayed, real) = (bare(text), bare(address));
    let host = real.split(['/', '?', '#']).next().unwrap_or_default();
    let word = !text.contains("://") && (text.contains(' ') || !text.contains(['/', '.']));

    displayed == real || (!text.contains("://") && displayed == host) || word
}

fn has_title(destination: &str) -> bool {
    [('"', " \""), ('\'', " '")]
        .into_iter()
        .any(|(end, start)| destination.ends_with(end) && destination.contains(start))
}

/// Rejects a URL with a scheme other than `http` and `https`.
fn checked_scheme(name: String) -> Result<String, LinkError> {
    let scheme = name.split(':').next().unwrap_or_default();
    let addressed = scheme.len() > 1
        && scheme.len() < name.len()
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    let foreign = addressed
        && (name[scheme.len()..].starts_with(":/")
            || ["data", "mailto", "javascript"].contains(&scheme));

    if foreign && !is_url(&name) {
        Err(LinkError::Scheme)
    } else {
        Ok(name)
    }
}

// Decodes the spellings of a name in a link: backticks, escapes, entities, backslashes,
// percent-encoding.

/// Removes one pair of backtick runs around a text.
fn unquoted(text: &str) -> &str {
    let run = text.len() - text.trim_start_matches('`').len();
    let ticks = &text[..run];
    let inner = text.get(run..).and_then(|tail| tail.strip_suffix(ticks));
    match inner {
        Some(inner) if run > 0 && !inner.is_empty() && !inner.ends_with('`') => inner.trim(),
        _ => text,
    }
}

/// Returns a name with the characters that `text::sanitize` shows as `\u{200c}`: a model has a name only
/// as it is shown. No path has a backslash of its own.
fn revealed(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u{") {
        return Cow::Borrowed(text);
    }

    let mut name = String::with_capacity(text.len());
    let mut remaining = text;
    while let Some((before, after)) = remaining.split_once("\\u{") {
        let escaped = after.split_once('}').and_then(|(digits, tail)| {
            let code = u32::from_str_radix(digits, 16).ok()?;
            Some((char::from_u32(code)?, tail))
        });
        name.push_str(before);
        match escaped {
            Some((c, tail)) => {
                name.push(c);
                remaining = tail;
            }
            None => {
                name.push_str("\\u{");
                remaining = after;
            }
        }
    }

    name.push_str(remaining);
    Cow::Owned(name)
}

/// Decodes escapes and entities; a path that has backslashes alone between its parts gets `/`.
fn decode_name(text: &str) -> String {
    let text = &*revealed(text);
    let slashed = with_forward_slashes(text);
    let escaped = text.contains("\\\\") && !text.replace("\\\\", "").contains('\\');
    match () {
        () if slashed != text => slashed,
        () if escaped => with_forward_slashes(&unescape(text)),
        () => unescape(text),
    }
}

/// Converts a path with backslashes as its only separators.
fn with_forward_slashes(text: &str) -> String {
    let text = &*revealed(text);
    let body = text.strip_prefix('/').unwrap_or(text);
    let separators = body.contains('\\')
        && !body.contains('/')
        && body
            .split('\\')
            .skip(1)
            .all(|part| part.starts_with(char::is_alphanumeric));
    if separators {
        text.replace('\\', "/")
    } else {
        text.to_owned()
    }
}

/// Writes a name so that [`decode_name`] returns it.
fn escape_name(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        let next = name[at + c.len_utf8()..].chars().next();
        match c {
            ']' if next == Some('(') => text.push_str("&#93;"),
            '&' => text.push_str("&amp;"),
            '<' | '>' | '`' | '\\' => text.extend(['\\', c]),
            _ => text.push(c),
        }
    }

    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: &str) {
        let actual = read(value).unwrap_or_else(|e| e.to_string());
        assert_eq!(actual, expected, "for {value:?}");
    }

    #[test]
    fn every_usual_spelling_of_a_path_is_read() {
        for value in [
            "[src/__main__.py](/src/__main__.py)",
            "`[src/__main__.py](/src/__main__.py)`",
            "[`src/__main__.py`](/src/__main__.py)",
            "[src/__main__.py](src/__main__.py)",
            "[src/__main__.py](</src/__main__.py>)",
            "`src/__main__.py`",
            "src/__main__.py",
        ] {
            check(value, "src/__main__.py");
        }
    }

    #[test]
    fn blanks_and_brackets_are_part_of_a_link_but_not_of_a_plain_path() {
        check("[my file.md](/my file.md)", "my file.md");
        check("[my file.md](</my file.md>)", "my file.md");
        check("[my file.md](/my%20file.md)", "my file.md");
        check("[my%20file.md](/my%20file.md)", "my%20file.md");
        check("`my file.md`", "my file.md");
        check(
            "my file.md",
            "a path with a space must be a link or in backticks",
        );
        check("[a[.md](/a[.md)", "a[.md");
        check(
            "[app/[id]/(x)/page.tsx](/app/[id]/(x)/page.tsx)",
            "app/[id]/(x)/page.tsx",
        );
    }

    #[test]
    fn a_path_can_start_with_a_bracket() {
        for path in [
            "[id]/page.tsx",
            "[...slug].tsx",
            "[[...slug]]/page.tsx",
            "[id]-old.md",
        ] {
            check(&format!("`{path}`"), path);
            check(path, path);
            check(&write_path(path), path);
        }
        check("`[my id]/a.md`", "[my id]/a.md");
        check("`[a](/a)`", "a");
        for link in [
            "[id]",
            "`[id]`",
            "`[a][b]`",
            "[a] /b.md",
            "[a.md",
            "[a][b]",
            "[a]: /b.md",
            "[a]:b",
        ] {
            check(link, "the link is not of the form `[path](/path)`");
        }
    }

    #[test]
    fn text_and_destination_must_agree() {
        check(
            "[a.md](/b.md)",
            "the link's text `a.md` and its destination `/b.md` differ",
        );
        check(
            "[etc/passwd](//etc/passwd)",
            "the link's text `etc/passwd` and its destination `//etc/passwd` differ",
        );
        check("[/etc/passwd](//etc/passwd)", "/etc/passwd");
        check("[/etc/passwd](/etc/passwd)", "/etc/passwd");
        check(
            "[README.md](https://evil.example/x)",
            "the link's text `README.md` and its destination `https://evil.example/x` differ",
        );
        check(
            "[https://a.example](https://b.example)",
            "the link's text `https://a.example` and its destination `https://b.example` differ",
        );
    }

    #[test]
    fn a_value_is_exactly_one_link() {
        check("[a](/a) and [b](/b)", "there is more than one link");
        check("[a](/a) (new)", "there is text beside the link");
        check("see [a](/a)", "there is text beside the link");
        check("[a][ref]", "the link is not of the form `[path](/path)`");
        check("[a.md]", "the link is not of the form `[path](/path)`");
        check("[a](/a \"title\")", "the link has a title");
        check("**a**", "the link is not of the form `[path](/path)`");
        check("  ", "the value is empty");
        check("``", "the value is empty");
    }

    #[test]
    fn escapes_and_entities_are_decoded_first() {
        check("[\\.\\./x](/\\.\\./x)", "../x");
        check("&#46;&#46;/x", "../x");
        check("[a\\_b.md](/a\\_b.md)", "a_b.md");
        check("[a_b.md](/a\\_b.md)", "a_b.md");
    }

    #[test]
    fn backslashes_alone_are_separators() {
        check("[a\\b.toml](/a\\b.toml)", "a/b.toml");
        check("[a\\\\b.toml](/a\\\\b.toml)", "a/b.toml");
        check("src\\logic.py", "src/logic.py");
        check("`src\\logic.py`", "src/logic.py");
        check("..\\..\\etc", "....\\etc");
        check("a\\..\\b", "a..\\b");
    }

    #[test]
    fn addresses_keep_their_destination() {
        check("[x](https://example.com/docs)", "https://example.com/docs");
        check(
            "[www.example.com](https://example.com/docs)",
            "https://example.com/docs",
        );
        check(
            "[example.com/docs](https://example.com/docs)",
            "https://example.com/docs",
        );
        check("<https://example.com/a>", "https://example.com/a");
        check(
            "https://example.com/a?b=1&c=2",
            "https://example.com/a?b=1&c=2",
        );
        for value in [
            "ftp://example.com",
            "[x](file:///etc/passwd)",
            "[file:///etc/passwd](file:///etc/passwd)",
            "javascript:x",
        ] {
            assert!(read(value).is_err(), "{value}");
        }
    }

    #[test]
    fn several_names_may_stand_on_one_line() {
        let names = |value: &str| read_all(value).map_err(|e| e.to_string());
        assert_eq!(
            names("[a](/a), [b c](/b c) `[d](/d)`"),
            Ok(vec!["a".to_owned(), "b c".to_owned(), "d".to_owned()])
        );
        assert_eq!(
            names("a.md, `b.md`"),
            Ok(vec!["a.md".to_owned(), "b.md".to_owned()])
        );
        assert_eq!(names(""), Ok(vec![]));
        assert!(names("[a](/b)").is_err());
        assert!(names("`é](/é)`").is_err());
    }

    #[test]
    fn what_is_written_is_read_again() {
        for path in [
            "src/a.rs",
            "my file.md",
            "a](b.md",
            "`a`",
            "a&amp;b",
            "a<b>c",
            "x \"y\"",
            "%41",
            " a",
            "it's",
        ] {
            check(&write_path(path), path);
        }
        for url in ["https://a.example/x_(y)?q=1&amp;r=2", "http://b.example"] {
            check(&write_url(url), url);
        }
    }
}
