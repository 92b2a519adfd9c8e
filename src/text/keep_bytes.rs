//! Keeps the bytes of a file that an edit did not mean to change: encoding, byte order mark, line
//! ends, final newline.
//!
//! Pure: a function of two versions. Lines with the same text have their old bytes in the result.
//! Changed lines are written like the old file. A character for which the old encoding is unknown
//! stays as the edit wrote it: nothing is guessed.

use std::borrow::Cow;
use std::collections::HashSet;

use super::diff;
use super::encoding::{ByteOrder, utf16_text};

/// Of both versions together. The result must be the same in the review and in the run, so there is
/// no limit of time.
const MAX_LINES: usize = 20_000;

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// Stands for bytes that an edit could not decode.
const REPLACEMENT: char = '\u{fffd}';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16(ByteOrder),
    /// Bytes that are not UTF-8, and name no encoding.
    Unknown,
}

/// A version of a file. UTF-16 is decoded to UTF-8.
struct DecodedFile<'a> {
    mark: &'a [u8],
    encoding: Encoding,
    text: Cow<'a, [u8]>,
}

/// Returns the new version with the bytes of the old one wherever the text is the same. Returns
/// `new` if one of them is binary or empty, if they have too many lines, or if the new one cannot be
/// written in the encoding of the old one.
pub fn keep_bytes(old: &[u8], new: &[u8]) -> Vec<u8> {
    let (Some(before), Some(after)) = (DecodedFile::of(old), DecodedFile::of(new)) else {
        return new.to_vec();
    };
    if old.is_empty() || new.is_empty() {
        return new.to_vec();
    }
    let is_utf16 = matches!(before.encoding, Encoding::Utf16(_));
    if is_utf16 && after.encoding == Encoding::Unknown {
        return new.to_vec();
    }
    let (old_lines, new_lines) = (lines(&before.text), lines(&after.text));
    if old_lines.len() + new_lines.len() > MAX_LINES {
        return new.to_vec();
    }
    let rewriter = Rewriter::new(&before, &old_lines, &new_lines);
    let kept = rewriter.rewrite(&old_lines, &new_lines);
    let ended = old_lines.last().is_some_and(|line| !line.end.is_empty());
    finish(
        kept,
        ended.then_some(rewriter.common_end).flatten(),
        &before,
    )
}

/// Returns what lines are compared by. Without a known encoding, characters that are not ASCII are
/// alike in a line that was decoded.
fn line_keys(old: &[Line<'_>], new: &[Line<'_>], is_collapsed: bool) -> (Vec<String>, Vec<String>) {
    let known: HashSet<&[u8]> = old.iter().map(|line| line.text).collect();
    let is_decoded = |line: &[u8]| known.contains(line) || is_reencoded(line);
    let old = old.iter().map(|line| key(line.text, is_collapsed));
    let new = new
        .iter()
        .map(|line| key(line.text, is_collapsed && is_decoded(line.text)));
    (old.collect(), new.collect())
}

/// Writes changed lines in the old encoding, with the old line ends.
struct Rewriter {
    is_collapsed: bool,
    /// Characters whose old byte is proven.
    proven: HashSet<char>,
    common_end: Option<&'static [u8]>,
}

impl Rewriter {
    fn new(before: &DecodedFile<'_>, old: &[Line<'_>], new: &[Line<'_>]) -> Rewriter {
        let is_collapsed = before.encoding == Encoding::Unknown;
        Rewriter {
            is_collapsed,
            // In a file with several encodings, a character has several.
            proven: match is_collapsed && !runs(&before.text).any(is_utf8_run) {
                true => characters_read(old, new),
                false => HashSet::new(),
            },
            common_end: common_end(old),
        }
    }

    /// Returns the new lines: those that stay as they were, the others in the old encoding.
    fn rewrite(&self, old: &[Line<'_>], new: &[Line<'_>]) -> Vec<u8> {
        let (old_keys, new_keys) = line_keys(old, new, self.is_collapsed);
        let [old_keys, new_keys] =
            [&old_keys, &new_keys].map(|keys| keys.iter().map(String::as_str).collect::<Vec<_>>());
        let mut kept = Vec::new();
        let (mut at_old, mut at_new) = (0, 0);
        for (gone, made) in diff::changed_without_deadline(&old_keys, &new_keys) {
            push_alike(
                &mut kept,
                &old[at_old..gone.start],
                &new[at_new..made.start],
            );
            let replaced = &old[gone.clone()];
            let is_paired = gone.len() == made.len();
            for (at, line) in new[made.clone()].iter().enumerate() {
                self.push(&mut kept, is_paired.then(|| replaced[at]), line);
            }
            (at_old, at_new) = (gone.end, made.end);
        }
        debug_assert_eq!(old.len() - at_old, new.len() - at_new);
        push_alike(&mut kept, &old[at_old..], &new[at_new..]);
        kept
    }

    /// Writes a line. `old` is the line that it replaces, if there is one for each.
    fn push(&self, kept: &mut Vec<u8>, old: Option<Line<'_>>, line: &Line<'_>) {
        let text = match old {
            Some(old) if self.is_collapsed => restore_runs(old.text, line.text),
            _ => Cow::Borrowed(line.text),
        };
        let text = match text {
            // Not a line that has old bytes already.
            Cow::Borrowed(text) => encode_proven(text, &self.proven),
            restored => restored,
        };
        let end = match &old {
            _ if line.end.is_empty() => line.end,
            Some(old) if !old.end.is_empty() => old.end,
            _ => self.common_end.unwrap_or(line.end),
        };
        push(kept, &text, end);
    }
}

/// Returns a character of the result of [`keep_bytes`] that is in UTF-8 there, although the old
/// version is not, and does not have it.
pub fn unknown_character(old: &[u8], kept: &[u8]) -> Option<char> {
    let before = DecodedFile::of(old)?;
    if before.encoding != Encoding::Unknown {
        return None;
    }
    let known: HashSet<&[u8]> = runs(&before.text).collect();
    let new = runs(kept).filter(|run| !run.is_ascii() && !known.contains(run));
    new.filter_map(|run| std::str::from_utf8(run).ok())
        .flat_map(str::chars)
        // What U+FFFD was is unknown in every encoding. It stays a risk.
        .find(|&character| character != REPLACEMENT)
}

impl<'a> DecodedFile<'a> {
    /// `None` if it is binary.
    fn of(bytes: &'a [u8]) -> Option<DecodedFile<'a>> {
        if let (Some(order), Some(text)) = (ByteOrder::of(bytes), utf16_text(bytes)) {
            return Some(DecodedFile {
                mark: &bytes[..2],
                encoding: Encoding::Utf16(order),
                text: Cow::Owned(text.into_bytes()),
            });
        }
        if bytes.contains(&0) {
            return None;
        }
        let text = bytes.strip_prefix(UTF8_MARK).unwrap_or(bytes);
        let encoding = match std::str::from_utf8(text) {
            Ok(_) => Encoding::Utf8,
            Err(_) => Encoding::Unknown,
        };
        Some(DecodedFile {
            mark: &bytes[..bytes.len() - text.len()],
            encoding,
            text: Cow::Borrowed(text),
        })
    }
}

/// Adds the newline at the end if the old version has one, and writes the text in its encoding.
fn finish(mut text: Vec<u8>, newline: Option<&[u8]>, old: &DecodedFile<'_>) -> Vec<u8> {
    if let Some(newline) = newline
        && !text.is_empty()
        && !text.ends_with(b"\n")
    {
        text.extend_from_slice(newline);
    }
    let text = match old.encoding {
        Encoding::Utf16(order) => order.encode(&String::from_utf8_lossy(&text)),
        Encoding::Utf8 | Encoding::Unknown => text,
    };
    [old.mark, &text].concat()
}

/// Appends lines whose keys are equal. In an unknown encoding different lines can have the same key;
/// such a line was changed.
fn push_alike(kept: &mut Vec<u8>, old: &[Line<'_>], new: &[Line<'_>]) {
    for (old, new) in old.iter().zip(new) {
        push(kept, &restore_runs(old.text, new.text), old.end);
    }
}

/// Appends a line. A line without an end gets one if another follows it.
fn push(kept: &mut Vec<u8>, text: &[u8], end: &[u8]) {
    if !kept.is_empty() && !kept.ends_with(b"\n") {
        let is_crlf = kept.windows(2).any(|pair| pair == b"\r\n");
        kept.extend_from_slice(if is_crlf { b"\r\n" } else { b"\n" });
    }
    kept.extend_from_slice(text);
    kept.extend_from_slice(end);
}

/// Counts the lines that end in CRLF, and those that end in LF.
pub(super) fn count_ends(lines: &[Line<'_>]) -> (usize, usize) {
    let count = |length| lines.iter().filter(|line| line.end.len() == length).count();
    (count(2), count(1))
}

/// Returns the end of most lines. `None` if no line has one.
fn common_end(lines: &[Line<'_>]) -> Option<&'static [u8]> {
    match count_ends(lines) {
        (0, 0) => None,
        (crlf, lf) if crlf > lf => Some(b"\r\n"),
        _ => Some(b"\n"),
    }
}

/// Returns whether a line can be the result of decoding an old one: it is UTF-8, and not ASCII.
fn is_reencoded(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok() && !line.is_ascii()
}

/// Returns the text by which lines are compared. `is_collapsed` compares each run of bytes outside
/// of ASCII as one unknown character.
fn key(line: &[u8], is_collapsed: bool) -> String {
    if !is_collapsed {
        return match std::str::from_utf8(line) {
            Ok(text) => text.to_owned(),
            // Unlike each other, and unlike any text: NUL does not occur.
            Err(_) => line.iter().map(|byte| format!("\0{byte:02x}")).collect(),
        };
    }
    let mut key = String::new();
    for run in runs(line) {
        match run.is_ascii() {
            true => key.push_str(&String::from_utf8_lossy(run)),
            false => key.push(REPLACEMENT),
        }
    }
    key
}

/// Splits a line into runs of ASCII and of other bytes.
fn runs(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.chunk_by(|one, other| one.is_ascii() == other.is_ascii())
}

fn is_utf8_run(run: &[u8]) -> bool {
    !run.is_ascii() && str::from_utf8(run).is_ok()
}

/// Puts the old bytes in place of U+FFFD in a changed line, if both lines have as many runs of
/// other bytes.
fn restore_runs<'a>(old: &[u8], new: &'a [u8]) -> Cow<'a, [u8]> {
    let other = |line: &[u8]| runs(line).filter(|run| !run.is_ascii()).count();
    if !is_reencoded(new) || other(old) != other(new) {
        return Cow::Borrowed(new);
    }
    let mut old_runs = runs(old).filter(|run| !run.is_ascii());
    let restored: Vec<&[u8]> = runs(new)
        .map(|run| match run.is_ascii() {
            true => run,
            false => old_runs
                .next()
                .filter(|old| is_reading(old, run))
                .unwrap_or(run),
        })
        .collect();
    Cow::Owned(restored.concat())
}

/// Returns the characters outside of ASCII that the author of the new version read in lines that
/// stay, as Latin-1.
fn characters_read(old: &[Line<'_>], new: &[Line<'_>]) -> HashSet<char> {
    let latin: HashSet<String> = old
        .iter()
        .filter(|line| std::str::from_utf8(line.text).is_err())
        .map(|line| line.text.iter().map(|&byte| char::from(byte)).collect())
        .collect();
    let lines = new
        .iter()
        .filter_map(|line| std::str::from_utf8(line.text).ok());
    let read = lines.filter(|line| latin.contains(*line));
    read.flat_map(str::chars)
        .filter(|character| !character.is_ascii())
        .collect()
}

/// Encodes a new line, if every character outside of ASCII is known.
fn encode_proven<'a>(line: &'a [u8], proven: &HashSet<char>) -> Cow<'a, [u8]> {
    let encode = |character: char| match character.is_ascii() || proven.contains(&character) {
        true => u8::try_from(character).ok(),
        false => None,
    };
    let text = std::str::from_utf8(line).ok();
    let bytes: Option<Vec<u8>> = text.and_then(|text| text.chars().map(encode).collect());
    bytes.map_or(Cow::Borrowed(line), Cow::Owned)
}

/// Returns whether the run is what a decoder made of the old bytes: U+FFFD, or the characters of
/// Latin-1.
fn is_reading(old: &[u8], run: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(run) else {
        return false;
    };
    let is_lost = text.chars().all(|c| c == REPLACEMENT);
    is_lost || text.chars().eq(old.iter().map(|&byte| char::from(byte)))
}

/// A line without its end, and the end: `\n`, `\r\n`, or nothing for the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    pub text: &'a [u8],
    pub end: &'a [u8],
}

/// Splits a text into its lines. A text without bytes has none.
pub fn lines(text: &[u8]) -> Vec<Line<'_>> {
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines
        .map(|line| {
            let length = match line {
                [.., b'\r', b'\n'] => 2,
                [.., b'\n'] => 1,
                _ => 0,
            };
            let (text, end) = line.split_at(line.len() - length);
            Line { text, end }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::damage::{FileFacts, damage};
    use crate::text::path::RepoPath;

    #[track_caller]
    fn check(old: &[u8], new: &[u8], expected: &[u8]) {
        let kept = keep_bytes(old, new);
        let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
        assert_eq!(shown(&kept), shown(expected));
        assert_eq!(shown(&keep_bytes(old, &kept)), shown(&kept), "once more");
    }

    #[test]
    fn each_kind_of_damage_is_taken_back_and_the_change_stays() {
        let cases: [(&[u8], &[u8], &[u8]); 23] = [
            // Lost and re-encoded bytes.
            (
                b"caf\xe9\nb\n",
                "caf\u{fffd}\nc\n".as_bytes(),
                b"caf\xe9\nc\n",
            ),
            (b"caf\xe9\nb\n", "café\nc\n".as_bytes(), b"caf\xe9\nc\n"),
            (b"\x83\x41\nb\n", "ア\nc\n".as_bytes(), "ア\nc\n".as_bytes()),
            // In the changed line itself.
            (
                b"caf\xe9 = 1\n",
                "caf\u{fffd} = 2\n".as_bytes(),
                b"caf\xe9 = 2\n",
            ),
            (b"caf\xe9 = 1\n", "café = 2\n".as_bytes(), b"caf\xe9 = 2\n"),
            // In a new line, with a character that a line that stays shows.
            (
                b"caf\xe9\nb\n",
                "café\nété\nb\n".as_bytes(),
                b"caf\xe9\n\xe9t\xe9\nb\n",
            ),
            // Lines in two encodings.
            (
                b"caf\xe9\n\xc3\xa9t\xc3\xa9\nb\n",
                "café\nété\nété\nb\n".as_bytes(),
                b"caf\xe9\n\xc3\xa9t\xc3\xa9\n\xc3\xa9t\xc3\xa9\nb\n",
            ),
            // What the old encoding calls it is unknown.
            (
                b"caf\xe9\n",
                "caf\u{fffd}\n水\n".as_bytes(),
                b"caf\xe9\n\xe6\xb0\xb4\n",
            ),
            // An edit that kept the encoding is left alone.
            (b"caf\xe9\n", b"caf\xe8\n", b"caf\xe8\n"),
            // Nor is another character, or another line.
            (b"caf\xe9\n", "cafè\n".as_bytes(), "cafè\n".as_bytes()),
            (b"\xe9\n\xe8\n", b"\xe8\n", b"\xe8\n"),
            // What UTF-16 cannot say is not written as U+FFFD.
            (b"\xff\xfea\0\n\0", b"caf\xe9\n", b"caf\xe9\n"),
            // Byte order marks.
            (b"\xef\xbb\xbfa\nb\n", b"a\nc\n", b"\xef\xbb\xbfa\nc\n"),
            (b"a\nb\n", b"\xef\xbb\xbfa\nc\n", b"a\nc\n"),
            (b"\xff\xfea\0\n\0", b"b\n", b"\xff\xfeb\0\n\0"),
            (b"\xfe\xff\0a\0\n", b"a\nb\n", b"\xfe\xff\0a\0\n\0b\0\n"),
            // Line ends.
            (b"a\r\nb\r\n", b"a\nc\n", b"a\r\nc\r\n"),
            (b"a\nb\r\nc\n", b"a\nb\nc\nd\n", b"a\nb\r\nc\nd\n"),
            (b"a\nb\n", b"a\r\nb\r\nc\r\n", b"a\nb\nc\n"),
            // The newline at the end.
            (b"a\nb\n", b"a\nc", b"a\nc\n"),
            (b"a\nb", b"c\nb\n", b"c\nb"),
            (b"a\nb", b"a\nb\nc\n", b"a\nb\nc\n"),
            // Binary.
            (b"a\0", b"b\n", b"b\n"),
        ];
        for (old, new, expected) in cases {
            check(old, new, expected);
        }
        check(b"", b"a\r\n", b"a\r\n");
        check(b"a\n", b"", b"");
    }

    #[test]
    fn a_character_without_known_bytes_is_named() {
        let check = |old: &[u8], new: &str, expected: Option<char>| {
            let found = unknown_character(old, &keep_bytes(old, new.as_bytes()));
            assert_eq!(found, expected, "{new}");
        };
        check(b"caf\xe9\n", "café\nété\n", None);
        check(b"caf\xe9\n", "caf\u{fffd}\nx\n", None);
        check(b"caf\xe9\n", "x\n\u{fffd}\n", None);
        check(b"caf\xe9\n", "café\ncrème\n", Some('è'));
        check(b"caf\xe9\n", "caf\u{fffd}\n水\n", Some('水'));
        check(b"\x83\x41\nb\n", "ア\nb\n", Some('ア'));
        // UTF-8 that was in the old file.
        check(b"\xc3\xa8\n\xe9\n", "è\nx\n", None);
        check(b"\xff\xfea\0\n\0", "水\n", None);
        check(b"a\n", "水\n", None);
    }

    /// Lines of a file in an 8-bit encoding.
    fn file() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let line = proptest::sample::select(vec![
            &b"one"[..],
            b"two",
            b"caf\xe9",
            b"\xfcber",
            b"three",
            b"",
        ]);
        proptest::collection::vec(line.prop_map(<[u8]>::to_vec), 1..12)
    }

    proptest! {
        /// A program decodes the file, changes one line, and writes it in UTF-8 with other ends.
        #[test]
        fn only_the_intended_line_differs(
            lines in file(),
            at in 0..12_usize,
            is_crlf in any::<bool>(),
            has_mark in any::<bool>(),
        ) {
            let at = at % lines.len();
            let join = |lines: &[Vec<u8>], end: &[u8]| -> Vec<u8> {
                lines.iter().flat_map(|line| [line, end].concat()).collect()
            };
            let (end, other) = if is_crlf { ("\r\n", "\n") } else { ("\n", "\r\n") };
            let mark: &[u8] = if has_mark { UTF8_MARK } else { b"" };
            let mut intended = lines.clone();
            intended[at] = b"intended".to_vec();
            let old = [mark, &join(&lines, end.as_bytes())].concat();
            let expected = [mark, &join(&intended, end.as_bytes())].concat();
            let decoded = String::from_utf8_lossy(&join(&intended, other.as_bytes())).into_owned();

            let kept = keep_bytes(&old, decoded.as_bytes());
            prop_assert_eq!(&kept, &expected);
            prop_assert_eq!(damage(&RepoPath::parse("a").unwrap(), &old, &kept, FileFacts::default()), vec![]);
        }
    }
}

#[cfg(test)]
mod line_tests {
    use super::*;

    #[test]
    fn each_line_keeps_the_bytes_of_its_end() {
        let split: Vec<(&[u8], &[u8])> = lines(b"a\r\n\nb\r\r\n\r")
            .iter()
            .map(|line| (line.text, line.end))
            .collect();
        let expected: [(&[u8], &[u8]); 4] = [
            (b"a", b"\r\n"),
            (b"", b"\n"),
            (b"b\r", b"\r\n"),
            (b"\r", b""),
        ];
        assert_eq!(split, expected);
        assert_eq!(lines(b""), []);
    }
}
