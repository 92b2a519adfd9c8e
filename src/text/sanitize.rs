//! Sanitizes untrusted text for display: replaces characters that could hide, reorder or overwrite
//! what the user sees.
//!
//! The result contains no control, direction, invisible or private-use characters (except newlines
//! in the block form), and no run of spaces that is long enough to push text off the screen.
//! Harmless text is returned unchanged.

use std::borrow::Cow;
use std::fmt::Write as _;

use memchr::memmem;
use unicode_width::UnicodeWidthChar;

use super::path::is_deceptive;

/// Longest run of spaces that is displayed.
pub const MAX_BLANKS: usize = 80;
// In columns.
const TAB: usize = 8;

/// Sanitizes text for a single line. Deceptive characters and newlines are shown as `\u{..}`.
pub fn sanitize_line(text: &str) -> Cow<'_, str> {
    show(text, Shape::Line)
}

/// Shows blank characters other than the space, the tab and line ends as `\u{..}`: to a shell, a
/// no-break space is part of a word.
pub fn sanitize_blanks(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| !matches!(c, ' ' | '\t' | '\n' | '\r') && is_blank(c);
    escape(text, hidden)
}

/// Shows these characters as `\u{..}`.
fn escape(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }

    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match hidden(c) {
            true => write!(out, "\\u{{{:x}}}", u32::from(c)),
            false => out.write_char(c),
        }
        .expect("writing to a string cannot fail");
    }
    Cow::Owned(out)
}

/// Like [`sanitize_line`], but keeps tabs, so that the line can be copied.
pub fn sanitize_tabbed(text: &str) -> String {
    text.split('\t')
        .map(sanitize_line)
        .collect::<Vec<_>>()
        .join("\t")
}

/// Truncates a text to `most` characters and appends an ellipsis.
pub fn excerpt(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Like [`excerpt`], but ends at a word if one ends in the second half.
pub fn excerpt_at_word(text: &str, most: usize) -> Cow<'_, str> {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return Cow::Borrowed(text);
    };
    let word_end = text[..end].rfind(' ').filter(|at| *at > end / 2);
    Cow::Owned(format!("{}…", &text[..word_end.unwrap_or(end)]))
}

/// Like [`sanitize_line`], but keeps newlines.
pub fn sanitize_block(text: &str) -> Cow<'_, str> {
    show(text, Shape::Block)
}

/// Like [`sanitize_block`], but also keeps spaces, tabs and CRLF, for text that programs parse.
pub fn sanitize_text(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| !matches!(c, '\n' | '\t') && is_deceptive(c);
    let parts: Vec<_> = text
        .split("\r\n")
        .map(|part| escape(part, hidden))
        .collect();
    match parts.iter().all(|part| matches!(part, Cow::Borrowed(_))) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(parts.join("\r\n")),
    }
}

/// Like [`sanitize_block`], and shows each byte that is not UTF-8 as `\xff`.
pub fn sanitize_bytes(bytes: &[u8]) -> String {
    let mut screen = TextScreen::new(Shape::Block, bytes.len());
    for chunk in bytes.utf8_chunks() {
        screen.text(chunk.valid());
        for byte in chunk.invalid() {
            screen.word(&format!("\\x{byte:02x}"));
        }
    }
    screen.finish()
}

/// Replaces deceptive characters in JSON by JSON escapes, which don't change its meaning.
pub fn sanitize_json(json: &str) -> Cow<'_, str> {
    let hidden = |c: char| c != '\n' && is_deceptive(c);
    if !json.contains(hidden) {
        return Cow::Borrowed(json);
    }

    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if hidden(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                write!(out, "\\u{unit:04x}").expect("writing to a string cannot fail")
            });
        } else {
            out.push(c);
        }
    }

    Cow::Owned(out)
}

/// Removes terminal escape sequences (colors, cursor moves, titles, links).
///
/// An incomplete sequence is kept.
pub fn strip_ansi(text: &str) -> Cow<'_, str> {
    if !text.contains(starts_sequence) {
        return Cow::Borrowed(text);
    }

    let mut out = String::with_capacity(text.len());
    let mut remaining = text;
    while let Some(at) = remaining.find(starts_sequence) {
        out.push_str(&remaining[..at]);
        remaining = &remaining[at..];
        let length = sequence_length(remaining).unwrap_or_else(|| {
            // All text after an incomplete sequence could disappear with it.
            let first = remaining.chars().next().map_or(0, char::len_utf8);
            out.push_str(&remaining[..first]);
            first
        });

        remaining = &remaining[length..];
    }

    out.push_str(remaining);
    Cow::Owned(out)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Line,
    Block,
}

fn show(text: &str, shape: Shape) -> Cow<'_, str> {
    // The fast path for most text, including the long lines of minified files.
    if is_harmless(text) {
        return Cow::Borrowed(text);
    }
    let mut screen = TextScreen::new(shape, text.len());
    screen.text(text);
    let sanitized = screen.finish();
    if sanitized == text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(sanitized)
    }
}

/// Returns whether the text is visible ASCII without long runs of spaces.
fn is_harmless(text: &str) -> bool {
    const LONG_RUN: [u8; MAX_BLANKS + 1] = [b' '; MAX_BLANKS + 1];

    let is_visible = |byte| (b' '..=b'~').contains(&byte);
    text.bytes().all(is_visible) && memmem::find(text.as_bytes(), &LONG_RUN).is_none()
}

struct TextScreen {
    out: String,
    shape: Shape,
    /// Column of the next character, for tab stops.
    column: usize,
    /// The trailing run of spaces: its offset in `out` and its length.
    blanks: Option<(usize, usize)>,
}

impl TextScreen {
    fn new(shape: Shape, capacity: usize) -> TextScreen {
        TextScreen {
            out: String::with_capacity(capacity),
            shape,
            column: 0,
            blanks: None,
        }
    }

    fn text(&mut self, text: &str) {
        let mut rest = text;
        loop {
            let is_other = |byte: u8| !(b'!'..=b'~').contains(&byte);
            let end = rest.bytes().position(is_other).unwrap_or(rest.len());
            self.word(&rest[..end]);
            let mut chars = rest[end..].chars();
            let Some(c) = chars.next() else { return };
            rest = chars.as_str();
            match c {
                '\n' if self.shape == Shape::Block => self.newline(),
                '\t' => (0..TAB - self.column % TAB).for_each(|_| self.blank(' ')),
                c if is_deceptive(c) => self.word(&format!("\\u{{{:x}}}", c as u32)),
                c if is_blank(c) => self.blank(c),
                c => self.plain(c),
            }
        }
    }

    fn newline(&mut self) {
        self.end_blanks();
        self.out.push('\n');
        self.column = 0;
    }

    fn blank(&mut self, c: char) {
        let (_, length) = self.blanks.get_or_insert((self.out.len(), 0));
        *length += 1;
        self.out.push(c);
        self.column += 1;
    }

    fn plain(&mut self, c: char) {
        self.end_blanks();
        self.out.push(c);
        self.column += c.width().unwrap_or(0);
    }

    /// Appends visible ASCII without spaces.
    fn word(&mut self, word: &str) {
        if !word.is_empty() {
            self.end_blanks();
            self.out.push_str(word);
            self.column += word.len();
        }
    }

    /// Replaces a run of spaces that is too long by a note.
    fn end_blanks(&mut self) {
        if let Some((start, length)) = self.blanks.take()
            && length > MAX_BLANKS
        {
            self.out.truncate(start);
            write!(self.out, "⟨{length} spaces⟩").expect("writing to a string cannot fail");
        }
    }

    fn finish(mut self) -> String {
        self.end_blanks();
        self.out
    }
}

/// Includes the Braille blank, which is not whitespace in Unicode.
fn is_blank(c: char) -> bool {
    c == '\u{2800}' || c.is_whitespace()
}

fn starts_sequence(c: char) -> bool {
    matches!(
        c,
        '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9b}' | '\u{9d}'..='\u{9f}'
    )
}

/// `None` if the sequence is incomplete.
fn sequence_length(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    let kind = match text.chars().next()? {
        '\u{1b}' => chars.next()?.1,
        c1 => char::from_u32(c1 as u32 - 0x40)?,
    };
    match kind {
        '[' => {
            let (at, end) = chars.find(|(_, c)| !matches!(c, '\u{20}'..='\u{3f}'))?;
            matches!(end, '\u{40}'..='\u{7e}').then_some(at + 1)
        }
        ']' | 'P' | 'X' | '^' | '_' => string_length(text, kind),
        '\u{20}'..='\u{2f}' => {
            let (at, end) = chars.find(|(_, c)| !matches!(c, '\u{20}'..='\u{2f}'))?;
            matches!(end, '\u{30}'..='\u{7e}').then_some(at + 1)
        }
        '\u{30}'..='\u{7e}' => Some(2),
        _ => None,
    }
}

/// Returns the length of a sequence with a terminator (a title or link) on the same line.
fn string_length(text: &str, kind: char) -> Option<usize> {
    let line = text.split('\n').next()?;
    let bell = line.find('\u{7}').filter(|_| kind == ']').map(|at| at + 1);
    let st = line.find("\u{1b}\\").map(|at| at + 2);
    let c1 = line.find('\u{9c}').map(|at| at + 2);
    [bell, st, c1].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_harmless_is_known_at_every_place() {
        for c in (0..=0x7f_u8).chain([0xe9]).map(char::from) {
            for at in 0..10 {
                let text = format!("{}{c}{}", "a".repeat(at), "b".repeat(9 - at));
                let is_visible = (' '..='~').contains(&c);
                assert_eq!(is_harmless(&text), is_visible, "{text:?}");
            }
        }
        for before in 0..9 {
            let blanks = |number| format!("{}{}x", "a".repeat(before), " ".repeat(number));
            assert_eq!(sanitize_line(&blanks(MAX_BLANKS)), blanks(MAX_BLANKS));
            let many = sanitize_line(&blanks(MAX_BLANKS + 1)).into_owned();
            assert_eq!(many, format!("{}⟨81 spaces⟩x", "a".repeat(before)));
        }
    }

    #[test]
    fn a_blank_that_is_no_space_is_shown() {
        let sanitized = sanitize_blanks("rm\u{a0}-rf \u{2003}x\t\u{3000}\u{2800}\n");
        assert_eq!(sanitized, "rm\\u{a0}-rf \\u{2003}x\t\\u{3000}\\u{2800}\n");
        assert!(matches!(sanitize_blanks("a b\t\r\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_says_the_same_without_a_character_that_hides() {
        let value = serde_json::json!({ "a": "\u{9b}2J\u{202e}\u{7f}\u{e0041} ü\n" });
        let pretty = serde_json::to_string_pretty(&value).expect("a value is JSON");
        let sanitized = sanitize_json(&pretty);
        assert_eq!(
            sanitized,
            "{\n  \"a\": \"\\u009b2J\\u202e\\u007f\\udb40\\udc41 ü\\n\"\n}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&sanitized).expect("it is still JSON"),
            value
        );
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(sanitize_block(text), expected, "for {text:?}");
    }

    #[test]
    fn harmless_text_is_borrowed() {
        let text = "fn größe() -> 数 {\n    1 // 😀\n}\n";
        assert!(matches!(sanitize_block(text), Cow::Borrowed(_)));
        assert!(matches!(sanitize_line("a  b"), Cow::Borrowed(_)));
    }

    #[test]
    fn deceptive_characters_are_spelt() {
        check("a\u{1b}[2Kb", "a\\u{1b}[2Kb");
        check("rm x\rls", "rm x\\u{d}ls");
        check(
            "a\u{202e}b\u{200b}c\u{e0041}\u{9b}\u{7f}",
            "a\\u{202e}b\\u{200b}c\\u{e0041}\\u{9b}\\u{7f}",
        );
        check("a\u{2028}b\u{e000}", "a\\u{2028}b\\u{e000}");
    }

    #[test]
    fn a_newline_stays_in_a_block_only() {
        check("a\nb\r\n", "a\nb\\u{d}\n");
        assert_eq!(sanitize_line("a\nb"), "a\\u{a}b");
    }

    #[test]
    fn tabs_go_to_the_next_stop() {
        check("a\tb\n\tc", "a       b\n        c");
        check("数\tb", "数      b");
    }

    #[test]
    fn long_runs_of_blanks_are_counted() {
        check(
            &format!("a{}b", " ".repeat(80)),
            &format!("a{}b", " ".repeat(80)),
        );
        check(&format!("a{}b", " ".repeat(3000)), "a⟨3000 spaces⟩b");
        check(
            &format!("a{}b", "\u{2003}\u{a0}".repeat(50)),
            "a⟨100 spaces⟩b",
        );
        check(&format!("{}\nb", " ".repeat(81)), "⟨81 spaces⟩\nb");
        check(&"\t".repeat(11), "⟨88 spaces⟩");
    }

    #[test]
    fn a_text_without_end_is_cut() {
        let check = |text, expected| assert_eq!(excerpt(text, 3), expected);
        check("", "");
        check("üüü", "üüü");
        check("üüüü", "üüü…");
    }

    #[test]
    fn bytes_that_are_no_text_are_spelt() {
        assert_eq!(
            sanitize_bytes(b"ok\xff\xfe\nx\xe2\x82"),
            "ok\\xff\\xfe\nx\\xe2\\x82"
        );
        assert_eq!(sanitize_bytes("ü\u{7}".as_bytes()), "ü\\u{7}");
    }

    #[test]
    fn finished_escape_sequences_are_removed() {
        for (text, expected) in [
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}(Bx\u{1b}7y\u{9b}2Jz", "xyz"),
            ("plain", "plain"),
        ] {
            assert_eq!(strip_ansi(text), expected);
        }
    }

    #[test]
    fn an_unfinished_sequence_swallows_nothing() {
        assert_eq!(strip_ansi("\u{1b}]0;rm -rf\nnext"), "\u{1b}]0;rm -rf\nnext");
        assert_eq!(strip_ansi("a\u{1b}"), "a\u{1b}");
        assert_eq!(strip_ansi("\u{1b}[12"), "\u{1b}[12");
    }
}
