//! Names what a new version of a file does to its encoding, byte order mark and line ends: a
//! difference by lines shows none of it clearly, and a program that rewrites a file often means none
//! of it.

/// What stands for bytes that could not be decoded.
const REPLACEMENT_CHAR: &str = "\u{fffd}";
/// Byte order marks, with the encoding of each.
const BYTE_ORDER_MARKS: [(&[u8], &str); 3] = [
    (b"\xef\xbb\xbf", "UTF-8"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
];

/// Returns what happens to the encoding and line ends of a file, as parts of a sentence.
pub fn encoding_changes(before: &[u8], after: &[u8]) -> Vec<String> {
    if before.is_empty() || after.is_empty() {
        return Vec::new();
    }
    let changes = [
        encoding_change(before, after),
        byte_order_mark_change(before, after),
        line_end_change(before, after),
    ];
    changes.into_iter().flatten().collect()
}

fn encoding_change(before: &[u8], after: &[u8]) -> Option<String> {
    let lost = count_invalid(before).saturating_sub(count_invalid(after));
    if lost == 0 || byte_order_mark_of(before).is_some_and(|mark| mark == "UTF-16") {
        return None;
    }
    let replaced = count_replacements(after).saturating_sub(count_replacements(before));
    let bytes = if lost == 1 { "byte" } else { "bytes" };
    let verb = if lost == 1 { "is" } else { "are" };
    if replaced > 0 {
        return Some(format!(
            "{lost} {bytes} that {verb} not UTF-8 became U+FFFD, and what they were is lost"
        ));
    }
    std::str::from_utf8(after)
        .is_ok()
        .then(|| "the encoding changes to UTF-8".to_owned())
}

fn byte_order_mark_change(before: &[u8], after: &[u8]) -> Option<String> {
    match (byte_order_mark_of(before), byte_order_mark_of(after)) {
        (Some(_), None) => Some("the byte order mark is removed".to_owned()),
        (None, Some(_)) => Some("a byte order mark is added".to_owned()),
        (Some(old), Some(new)) if old != new => {
            Some(format!("the byte order mark changes from {old} to {new}"))
        }
        _ => None,
    }
}

fn line_end_change(before: &[u8], after: &[u8]) -> Option<String> {
    let (before, after) = (line_ends_of(before), line_ends_of(after));
    match (before, after) {
        _ if before == after => None,
        (LineEnds::None, _) | (_, LineEnds::None) => None,
        _ => Some(format!(
            "line ends change from {} to {}",
            before.name(),
            after.name()
        )),
    }
}

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnds {
    None,
    Lf,
    CrLf,
    Mixed,
}

impl LineEnds {
    fn name(self) -> &'static str {
        match self {
            LineEnds::None => "none",
            LineEnds::Lf => "LF",
            LineEnds::CrLf => "CRLF",
            LineEnds::Mixed => "CRLF and LF mixed",
        }
    }
}

fn line_ends_of(text: &[u8]) -> LineEnds {
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    let ended = lines.filter(|line| line.ends_with(b"\n"));
    let (with_cr, without): (Vec<_>, Vec<_>) = ended.partition(|line| line.ends_with(b"\r\n"));
    match (with_cr.is_empty(), without.is_empty()) {
        (true, true) => LineEnds::None,
        (true, false) => LineEnds::Lf,
        (false, true) => LineEnds::CrLf,
        (false, false) => LineEnds::Mixed,
    }
}

fn byte_order_mark_of(text: &[u8]) -> Option<&'static str> {
    let entry = BYTE_ORDER_MARKS
        .iter()
        .find(|(mark, _)| text.starts_with(mark));
    entry.map(|(_, encoding)| *encoding)
}

/// Counts the bytes that are not UTF-8.
fn count_invalid(text: &[u8]) -> usize {
    text.utf8_chunks().map(|chunk| chunk.invalid().len()).sum()
}

fn count_replacements(text: &[u8]) -> usize {
    let valid = text.utf8_chunks().map(|chunk| chunk.valid());
    valid
        .map(|part| part.matches(REPLACEMENT_CHAR).count())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &[u8], after: &[u8], expected: &[&str]) {
        assert_eq!(encoding_changes(before, after), expected);
    }

    #[test]
    fn damage_to_bytes_is_named() {
        let lost = "3 bytes that are not UTF-8 became U+FFFD, and what they were is lost";
        check(
            b"caf\xe9 d\xe9j\xe0\n",
            "caf\u{fffd} d\u{fffd}j\u{fffd}\n".as_bytes(),
            &[lost],
        );
        check(
            b"caf\xe9\n",
            "caf\u{e9}\n".as_bytes(),
            &["the encoding changes to UTF-8"],
        );
        check(
            b"\xef\xbb\xbfa\r\nb\r\n",
            b"a\nb\n",
            &[
                "the byte order mark is removed",
                "line ends change from CRLF to LF",
            ],
        );
        check(b"a\n", b"\xef\xbb\xbfa\n", &["a byte order mark is added"]);
        check(
            b"a\r\n",
            b"a\r\nb\n",
            &["line ends change from CRLF to CRLF and LF mixed"],
        );
        check(b"\xff\xfea\0", b"a", &["the byte order mark is removed"]);
    }

    #[test]
    fn a_plain_change_names_nothing() {
        check(b"a\n", b"b\nc\n", &[]);
        check(b"a\r\n", b"b\r\n", &[]);
        check(b"caf\xe9\n", b"caf\xe9s\n", &[]);
        check(b"", b"\xef\xbb\xbfa\r\n", &[]);
        check(b"a\xe9b\n", b"ab\n", &["the encoding changes to UTF-8"]);
        check("\u{fffd}".as_bytes(), "\u{fffd}x".as_bytes(), &[]);
    }
}
