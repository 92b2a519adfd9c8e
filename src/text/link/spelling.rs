//! Decodes the spellings of a name in a link: backticks, escapes, entities, backslashes,
//! percent-encoding.

use std::borrow::Cow;

use crate::text::markdown::unescape;

/// Removes one pair of backtick runs around a text.
pub(super) fn unquoted(text: &str) -> &str {
    let run = text.len() - text.trim_start_matches('`').len();
    let ticks = &text[..run];
    let inner = text.get(run..).and_then(|tail| tail.strip_suffix(ticks));
    match inner {
        Some(inner) if run > 0 && !inner.is_empty() && !inner.ends_with('`') => inner.trim(),
        _ => text,
    }
}

/// Returns a name with the characters that `text::visible` shows as `\u{200c}`: a model has a name only
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
pub(super) fn decode_name(text: &str) -> String {
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
pub(super) fn with_forward_slashes(text: &str) -> String {
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

/// `None` if the result is not UTF-8.
pub(super) fn percent_decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes
            .get(at + 1..at + 3)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        match hex
            .filter(|_| bytes[at] == b'%')
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
        {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }

    String::from_utf8(decoded).ok()
}

/// The inverse of [`percent_decoded`].
pub(super) fn escape_name(name: &str) -> String {
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
