//! Text from strangers, made fit for a screen: whatever could hide, reorder or rewrite what a
//! person reads comes out as a plain, visible spelling.
//!
//! Guarantees: the result has no control, direction, invisible or private character (the block
//! form keeps the newline), and no run of blanks long enough to push text off a screen. Text
//! that is harmless comes back as it is.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

use super::path::is_deceptive;

/// The longest run of blanks that is shown as it is.
pub const MAX_BLANKS: usize = 80;
/// The distance between tab stops, in columns.
const TAB: usize = 8;

/// Returns the text for one line: every deceptive character, the newline too, as `\u{..}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    show(text, Shape::Line)
}

/// Returns the text for one line: as [`visible`], but tabs stay, so that the line can be copied.
pub fn visible_tabbed(text: &str) -> String {
    text.split('\t').map(visible).collect::<Vec<_>>().join("\t")
}

/// Returns the start of a text that may have any length: at most so many characters, and an ellipsis
/// if there are more.
pub fn excerpt(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Returns the text for several lines: as [`visible`], but newlines stay.
pub fn visible_block(text: &str) -> Cow<'_, str> {
    show(text, Shape::Block)
}

/// Returns a text that a program reads too: as [`visible_block`], but blanks, tabs and CRLF stay as
/// they are.
pub fn visible_text(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| !matches!(c, '\n' | '\t') && is_deceptive(c);
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }

    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => out.push(c),
            c if hidden(c) => {
                write!(out, "\\u{{{:x}}}", u32::from(c)).expect("writing to a string cannot fail")
            }
            c => out.push(c),
        }
    }

    Cow::Owned(out)
}

/// Returns a command's output for several lines: as [`visible_block`], with each byte that is not
/// UTF-8 as `\xff`.
pub fn visible_bytes(bytes: &[u8]) -> String {
    let mut screen = TextScreen::new(Shape::Block, bytes.len());
    for chunk in bytes.utf8_chunks() {
        screen.text(chunk.valid());
        for byte in chunk.invalid() {
            screen.word(format_args!("\\x{byte:02x}"));
        }
    }
    screen.finish()
}

/// Returns JSON text with each deceptive character of its strings as JSON's own escape; it says the
/// same.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    let hidden = |c: char| c != '\n' && is_deceptive(c);
    let is_plain = |byte: u8| byte == b'\n' || (b' '..=b'~').contains(&byte);
    if json.bytes().all(is_plain) || !json.contains(hidden) {
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

/// Returns the text without terminal escape sequences (colours, cursor moves, titles, links).
///
/// A sequence that is not finished stays, so that nothing behind it can vanish with it.
pub fn strip_ansi(text: &str) -> Cow<'_, str> {
    if !text.contains(starts_sequence) {
        return Cow::Borrowed(text);
    }

    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(starts_sequence) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = sequence_length(rest).unwrap_or_else(|| {
            let first = rest.chars().next().map_or(0, char::len_utf8);
            out.push_str(&rest[..first]);
            first
        });

        rest = &rest[length..];
    }

    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether newlines are part of the text's shape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One line.
    Line,
    /// Several.
    Block,
}

/// Returns the text as the shape shows it, borrowed if that changes nothing.
fn show(text: &str, shape: Shape) -> Cow<'_, str> {
    let mut screen = TextScreen::new(shape, text.len());
    screen.text(text);
    let shown = screen.finish();
    if shown == text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(shown)
    }
}

/// What has been written so far, and where the cursor stands.
struct TextScreen {
    /// The text written.
    out: String,
    /// Whether newlines stay.
    shape: Shape,
    /// The column of the next character, for tab stops.
    column: usize,
    /// The run of blanks at the end: its first byte in `out`, its length.
    blanks: Option<(usize, usize)>,
}

impl TextScreen {
    /// Returns an empty screen.
    fn new(shape: Shape, capacity: usize) -> TextScreen {
        TextScreen {
            out: String::with_capacity(capacity),
            shape,
            column: 0,
            blanks: None,
        }
    }

    /// Writes text.
    fn text(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\n' if self.shape == Shape::Block => self.newline(),
                '\t' => (0..TAB - self.column % TAB).for_each(|_| self.blank(' ')),
                c if is_deceptive(c) => self.word(format_args!("\\u{{{:x}}}", c as u32)),
                c if is_blank(c) => self.blank(c),
                c => self.plain(c),
            }
        }
    }

    /// Ends the line.
    fn newline(&mut self) {
        self.end_blanks();
        self.out.push('\n');
        self.column = 0;
    }

    /// Writes one blank.
    fn blank(&mut self, c: char) {
        let (_, length) = self.blanks.get_or_insert((self.out.len(), 0));
        *length += 1;
        self.out.push(c);
        self.column += 1;
    }

    /// Writes one harmless character.
    fn plain(&mut self, c: char) {
        self.end_blanks();
        self.out.push(c);
        self.column += c.width().unwrap_or(0);
    }

    /// Writes an ASCII spelling of something that cannot be shown.
    fn word(&mut self, word: std::fmt::Arguments<'_>) {
        self.end_blanks();
        let before = self.out.len();
        self.out
            .write_fmt(word)
            .expect("writing to a string cannot fail");
        self.column += self.out.len() - before;
    }

    /// Replaces a run of blanks that is too long by its length in words.
    fn end_blanks(&mut self) {
        if let Some((start, length)) = self.blanks.take()
            && length > MAX_BLANKS
        {
            self.out.truncate(start);
            write!(self.out, "⟨{length} spaces⟩").expect("writing to a string cannot fail");
        }
    }

    /// Returns what was written.
    fn finish(mut self) -> String {
        self.end_blanks();
        self.out
    }
}

/// Returns whether the character takes room and shows nothing.
fn is_blank(c: char) -> bool {
    c == '\u{2800}' || c.is_whitespace()
}

/// Returns whether a terminal reads what follows as a command.
fn starts_sequence(c: char) -> bool {
    matches!(
        c,
        '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9b}' | '\u{9d}'..='\u{9f}'
    )
}

/// Returns the length of the escape sequence at the start of the text, if it is finished.
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

/// Returns the length of a sequence that a terminator ends (a title, a link), on one line.
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
    fn json_says_the_same_without_a_character_that_hides() {
        let value = serde_json::json!({ "a": "\u{9b}2J\u{202e}\u{7f}\u{e0041} ü\n" });
        let pretty = serde_json::to_string_pretty(&value).expect("a value is JSON");
        let shown = visible_json(&pretty);
        assert_eq!(
            shown,
            "{\n  \"a\": \"\\u009b2J\\u202e\\u007f\\udb40\\udc41 ü\\n\"\n}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).expect("it is still JSON"),
            value
        );
    }

    /// Compares the block form.
    fn check(text: &str, expected: &str) {
        assert_eq!(visible_block(text), expected, "for {text:?}");
    }

    #[test]
    fn harmless_text_is_borrowed() {
        let text = "fn größe() -> 数 {\n    1 // 😀\n}\n";
        assert!(matches!(visible_block(text), Cow::Borrowed(_)));
        assert!(matches!(visible("a  b"), Cow::Borrowed(_)));
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
        assert_eq!(visible("a\nb"), "a\\u{a}b");
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
            visible_bytes(b"ok\xff\xfe\nx\xe2\x82"),
            "ok\\xff\\xfe\nx\\xe2\\x82"
        );
        assert_eq!(visible_bytes("ü\u{7}".as_bytes()), "ü\\u{7}");
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
