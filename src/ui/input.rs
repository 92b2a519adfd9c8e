//! A text that a person writes in the terminal: a pure state machine, and how it is laid out.
//!
//! Enter sends; `\` before enter, or alt-enter, begins another line; ctrl-e asks for the editor.

use super::key::Key;
use super::style::{StyledLine, Tone};

/// What stands before the first line.
const MARK: &str = "› ";
/// What stands before each further line.
const INDENT: &str = "  ";

/// A text under way.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextInput {
    /// What has been written.
    text: String,
    /// The byte before which the cursor stands.
    cursor: usize,
}

/// What a key asks for besides a change of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputCommand {
    /// The text is complete.
    Send,
    /// The person wants to leave.
    Leave,
    /// The person wants to go on in an editor.
    Editor,
    /// The person wants to suspend the program.
    Suspend,
    /// The person wants an earlier text in place of this one.
    Earlier,
    /// The person wants the text after the one that they went back to.
    Later,
    /// The person wants the word before the cursor completed.
    Complete,
}

/// A text as it stands on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Its lines, wrapped.
    pub lines: Vec<StyledLine>,
    /// The line with the cursor, from 0.
    pub row: usize,
    /// The cursor's column, from 0.
    pub column: usize,
}

impl TextInput {
    /// Returns a text with the cursor at its end.
    pub fn new(text: &str) -> TextInput {
        TextInput {
            text: text.to_owned(),
            cursor: text.len(),
        }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes a key.
    pub fn press(mut self, key: &Key) -> (TextInput, Option<InputCommand>) {
        let act = match key {
            Key::Enter if self.text[..self.cursor].ends_with('\\') => {
                self.erase_left();
                self.insert("\n")
            }
            Key::Enter => Some(InputCommand::Send),
            Key::AltEnter | Key::Ctrl('j') => self.insert("\n"),
            Key::Ctrl('e') => Some(InputCommand::Editor),
            Key::Tab => Some(InputCommand::Complete),
            Key::Up => self.line_above(),
            Key::Down => self.line_below(),
            Key::Ctrl('z') => Some(InputCommand::Suspend),
            Key::Ctrl('d') if self.cursor < self.text.len() => self.erase_right(),
            // As in a shell: what is written is not lost to the wish to leave.
            Key::Ctrl('d') if !self.text.is_empty() => None,
            Key::Ctrl('c' | 'd') | Key::Closed => Some(InputCommand::Leave),
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => self.insert(&text.replace("\r\n", "\n").replace('\r', "\n")),
            Key::Backspace | Key::Ctrl('h') => self.erase_left(),
            Key::Delete => self.erase_right(),
            other => self.change(other),
        };
        (self, act)
    }

    /// Returns the text as it stands on a screen of a width.
    pub fn layout(&self, width: usize) -> Layout {
        let before = laid(&self.text[..self.cursor], width);
        let row = before.len() - 1;
        let column = before[row].width();
        if column == width {
            let mut lines = laid(&self.text, width);
            lines.truncate(lines.len().max(row + 1));
            if lines.len() == row + 1 {
                lines.push(StyledLine::default());
            }

            return Layout {
                lines,
                row: row + 1,
                column: 0,
            };
        }

        Layout {
            lines: laid(&self.text, width),
            row,
            column,
        }
    }

    /// Deletes more than one character, or moves.
    fn change(&mut self, key: &Key) -> Option<InputCommand> {
        match key {
            Key::Ctrl('u') => self.erase(self.line_start()),
            Key::Ctrl('w') => self.erase(self.word_start()),
            Key::Ctrl('k') => self.text.truncate(self.cursor),
            Key::Left => {
                self.cursor -= self.text[..self.cursor]
                    .chars()
                    .next_back()
                    .map_or(0, char::len_utf8)
            }
            Key::Right => {
                self.cursor += self.text[self.cursor..]
                    .chars()
                    .next()
                    .map_or(0, char::len_utf8)
            }
            Key::Home | Key::Ctrl('a') => self.cursor = self.line_start(),
            Key::End => {
                self.cursor += self.text[self.cursor..]
                    .find('\n')
                    .unwrap_or(self.text.len() - self.cursor)
            }
            _ => {}
        }

        None
    }

    /// Moves the cursor to the line above; on the first line an earlier text is wanted.
    fn line_above(&mut self) -> Option<InputCommand> {
        let start = self.line_start();
        if start == 0 {
            return Some(InputCommand::Earlier);
        }

        let column = self.text[start..self.cursor].chars().count();
        let above = self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1);
        self.cursor = self.at_column(above, column);
        None
    }

    /// Moves the cursor to the line below; on the last line a later text is wanted.
    fn line_below(&mut self) -> Option<InputCommand> {
        let Some(end) = self.text[self.cursor..].find('\n') else {
            return Some(InputCommand::Later);
        };

        let column = self.text[self.line_start()..self.cursor].chars().count();
        self.cursor = self.at_column(self.cursor + end + 1, column);
        None
    }

    /// Returns the place of a column of the line that starts at a byte, or its end.
    fn at_column(&self, start: usize, column: usize) -> usize {
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let inside = line.char_indices().nth(column).map(|(at, _)| at);
        start + inside.unwrap_or(line.len())
    }

    /// Puts what all candidates for the word before the cursor begin with in its place: all of it
    /// and a blank where there is one. Returns whether that changed anything.
    pub fn complete(&mut self, candidates: &[String]) -> bool {
        let Some(first) = candidates.first() else {
            return false;
        };

        let mut common = first.as_str();
        for other in candidates {
            let same = common
                .char_indices()
                .zip(other.chars())
                .find(|((_, a), b)| a != b);
            let end = same.map_or(common.len().min(other.len()), |((at, _), _)| at);
            common = &common[..end];
        }

        let before = &self.text[..self.cursor];
        let start = before.rfind(char::is_whitespace).map_or(0, |at| {
            at + before[at..].chars().next().map_or(1, char::len_utf8)
        });
        let is_whole = candidates.len() == 1 && !common.ends_with('/');
        let word = format!("{common}{}", if is_whole { " " } else { "" });
        if word.len() <= self.cursor - start {
            return false;
        }

        self.text.replace_range(start..self.cursor, &word);
        self.cursor = start + word.len();
        true
    }

    /// Returns the text before the cursor.
    pub fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Writes text before the cursor.
    fn insert(&mut self, text: &str) -> Option<InputCommand> {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        None
    }

    /// Deletes the character before the cursor.
    fn erase_left(&mut self) -> Option<InputCommand> {
        let length = self.text[..self.cursor]
            .chars()
            .next_back()
            .map_or(0, char::len_utf8);
        self.erase(self.cursor - length);
        None
    }

    /// Deletes the character behind the cursor.
    fn erase_right(&mut self) -> Option<InputCommand> {
        if self.cursor < self.text.len() {
            self.text.remove(self.cursor);
        }
        None
    }

    /// Deletes from a byte to the cursor.
    fn erase(&mut self, from: usize) {
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
    }

    /// Returns where the cursor's line starts.
    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    /// Returns where the word before the cursor starts.
    fn word_start(&self) -> usize {
        let word = self.text[..self.cursor].trim_end();
        word.rfind(char::is_whitespace).map_or(0, |at| {
            at + word[at..].chars().next().map_or(1, char::len_utf8)
        })
    }
}

/// Returns a text behind its mark, wrapped.
fn laid(text: &str, width: usize) -> Vec<StyledLine> {
    let line = |(at, line): (usize, &str)| {
        let mark = if at == 0 { MARK } else { INDENT };
        StyledLine::of(Tone::Accent, mark)
            .with(Tone::Plain, line)
            .wrap(width.max(MARK.len()))
    };
    text.split('\n').enumerate().flat_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Presses keys on a text and compares what becomes of it; `|` is the cursor.
    fn check(start: &str, keys: &[Key], expected: &str, act: Option<InputCommand>) {
        let (mut input, mut last) = (TextInput::new(start), None);
        for key in keys {
            (input, last) = input.press(key);
        }
        let mut found = input.text.clone();
        found.insert(input.cursor, '|');
        assert_eq!((found.as_str(), last), (expected, act));
    }

    #[test]
    fn enter_sends_and_a_backslash_goes_on() {
        check("a", &[Key::Enter], "a|", Some(InputCommand::Send));
        check("a\\", &[Key::Enter, Key::Char('b')], "a\nb|", None);
        check("a", &[Key::AltEnter], "a\n|", None);
    }

    #[test]
    fn ctrl_d_leaves_where_nothing_is_written_and_deletes_before_something() {
        check("", &[Key::Ctrl('d')], "|", Some(InputCommand::Leave));
        check("ab", &[Key::Left, Key::Ctrl('d')], "a|", None);
        check("ab", &[Key::Ctrl('d')], "ab|", None);
        check("ab", &[Key::Ctrl('c')], "ab|", Some(InputCommand::Leave));
    }

    #[test]
    fn a_paste_with_lines_is_not_sent() {
        check("", &[Key::Paste("a\r\nb\n".to_owned())], "a\nb\n|", None);
    }

    #[test]
    fn editing_respects_characters_words_and_lines() {
        check("größe", &[Key::Left, Key::Backspace], "grö|e", None);
        check("one two ", &[Key::Ctrl('w')], "one |", None);
        check("one\ntwo", &[Key::Ctrl('u')], "one\n|", None);
        check(
            "one\ntwo",
            &[Key::Home, Key::Char('x'), Key::End],
            "one\nxtwo|",
            None,
        );
        check("ab", &[Key::Home, Key::Delete, Key::Backspace], "|b", None);
    }

    #[test]
    fn arrows_move_between_lines_and_ask_for_other_texts_at_the_ends() {
        check("one", &[Key::Up], "one|", Some(InputCommand::Earlier));
        check("one", &[Key::Down], "one|", Some(InputCommand::Later));
        check("one\nfour", &[Key::Up], "one|\nfour", None);
        check("öne\nf", &[Key::Up, Key::Down], "öne\nf|", None);
        check("a\nbc", &[Key::Home, Key::Up], "|a\nbc", None);
    }

    #[test]
    fn a_word_is_completed_as_far_as_the_candidates_agree() {
        let check = |start: &str, candidates: &[&str], expected: &str, changed: bool| {
            let mut input = TextInput::new(start);
            let candidates: Vec<String> = candidates.iter().map(|c| (*c).to_owned()).collect();
            assert_eq!(
                (input.complete(&candidates), input.text()),
                (changed, expected)
            );
        };
        check("see @sr", &["@src/"], "see @src/", true);
        check("see @a", &["@a.rs"], "see @a.rs ", true);
        check("@s", &["@src/", "@srv/"], "@sr", true);
        check("@sr", &["@src/", "@srv/"], "@sr", false);
        check("@x", &[], "@x", false);
        check("/u", &["/undo"], "/undo ", true);
        check("@ö", &["@öde", "@öl"], "@ö", false);
    }

    #[test]
    fn the_cursor_stands_where_the_text_wraps() {
        let layout = TextInput::new("日本語\nx").layout(6);
        let lines: Vec<String> = layout.lines.iter().map(StyledLine::text).collect();
        assert_eq!(
            (lines, layout.row, layout.column),
            (
                vec!["› 日本".to_owned(), "語".to_owned(), "  x".to_owned()],
                2,
                3
            )
        );
        let full = TextInput::new("abcd").layout(6);
        assert_eq!((full.lines.len(), full.row, full.column), (2, 1, 0));
    }
}
