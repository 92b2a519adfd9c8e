//! History and completion for message prompts.

use std::rc::Rc;

use super::key::Key;
use super::style::{StyledLine, Tone};

/// Returns earlier messages, the newest last.
pub type History = dyn Fn() -> Vec<String>;

/// Returns completions for the last word of a text.
pub type Candidates = dyn Fn(&str) -> Vec<String>;

/// Returns how a text is used that was typed as a message. Says why if it is not sent.
pub type TextCheck = dyn Fn(&str) -> anyhow::Result<TextUse>;

/// How a text that was typed as a message is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextUse {
    Sent,
    /// It is something else: the prompt asks again.
    IsAskedAgain,
    Leaves,
}

/// Sources of history and completion, and the rules of messages.
#[derive(Clone)]
pub struct PromptHelp {
    /// Messages of the session. Called only when the user goes back.
    pub history: Rc<History>,
    /// Names to complete.
    pub candidates: Rc<Candidates>,
    /// For prompts that take no commands.
    pub check: Rc<TextCheck>,
}

impl Default for PromptHelp {
    fn default() -> PromptHelp {
        PromptHelp {
            history: Rc::new(Vec::new),
            candidates: Rc::new(|_| Vec::new()),
            check: Rc::new(|_| Ok(TextUse::Sent)),
        }
    }
}

impl std::fmt::Debug for PromptHelp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PromptHelp").finish_non_exhaustive()
    }
}

/// History and completion during one prompt.
pub struct PromptText<'a> {
    help: &'a PromptHelp,
    /// Messages typed in this process.
    typed: &'a [String],
    /// Earlier texts, the newest last. Read on first use.
    texts: Option<Vec<String>>,
    /// Index of the shown text. The length of `texts` stands for the user's own.
    at: usize,
    /// The user's text, while an earlier one is shown.
    own_text: String,
    pub keys: TextKeys,
}

/// What enter and leaving mean at a text prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKeys {
    Sending,
    /// The text is the reason to decline a plan.
    Declining,
}

impl PromptText<'_> {
    pub fn new<'a>(help: &'a PromptHelp, typed: &'a [String]) -> PromptText<'a> {
        PromptText {
            help,
            typed,
            texts: None,
            at: 0,
            own_text: String::new(),
            keys: TextKeys::Sending,
        }
    }

    /// Returns the previous text in the history. `text` is the current one, to return to.
    fn earlier(&mut self, text: &str) -> Option<String> {
        if self.texts.is_none() {
            let texts = texts((self.help.history)(), self.typed);
            self.at = texts.len();
            self.texts = Some(texts);
        }

        let texts = self.texts.as_deref().unwrap_or_default();
        let before = self.at.checked_sub(1)?;
        // Keep the user's own text for the way back.
        if self.at == texts.len() {
            text.clone_into(&mut self.own_text);
        }
        self.at = before;
        texts.get(before).cloned()
    }

    /// Returns the next text in the history.
    fn later(&mut self) -> Option<String> {
        let texts = self.texts.as_deref().unwrap_or_default();
        if self.at >= texts.len() {
            return None;
        }

        self.at += 1;
        let text = texts.get(self.at).unwrap_or(&self.own_text);
        Some(text.clone())
    }

    /// Returns the message that a key for the history asks for. `None` if there is none.
    pub fn recall(&mut self, command: InputCommand, text: &str) -> Option<String> {
        match command {
            InputCommand::Earlier => self.earlier(text),
            InputCommand::Later => self.later(),
            _ => None,
        }
    }

    pub fn candidates(&self, before: &str) -> Vec<String> {
        (self.help.candidates)(before)
    }
}

/// Texts of the history: those of the session, then those typed in this process that were not sent,
/// such as commands.
fn texts(mut sent: Vec<String>, typed: &[String]) -> Vec<String> {
    let others = typed.iter().filter(|text| !sent.contains(text));
    let others: Vec<String> = others.cloned().collect();
    sent.extend(others);
    sent
}

// State and layout of a multi-line text prompt, without a terminal.
//
// Enter submits; `\` before enter, or alt-enter, starts a new line; ctrl-e opens the editor.

const PROMPT_MARK: &str = "› ";
const PROMPT_INDENT: &str = "  ";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextInput {
    text: String,
    /// Byte offset, always at a character boundary.
    cursor: usize,
}

/// Command that a key returns to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputCommand {
    /// Submit the text.
    Send,
    /// Leave without an answer.
    Quit,
    Editor,
    Suspend,
    /// Replace the text by the previous one in the history.
    Earlier,
    /// Replace the text by the next one in the history.
    Later,
    /// Complete the last word before the cursor.
    Complete,
}

/// A text wrapped for a screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    pub lines: Vec<StyledLine>,
    /// Line of the cursor, from 0.
    pub row: usize,
    /// Column of the cursor, from 0.
    pub column: usize,
}

impl TextInput {
    /// Returns a prompt with the cursor at the end of `text`.
    pub fn new(text: &str) -> TextInput {
        TextInput {
            text: text.to_owned(),
            cursor: text.len(),
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn press(&mut self, key: &Key) -> Option<InputCommand> {
        match key {
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
            // As in a shell, ctrl-d leaves only an empty prompt.
            Key::Ctrl('d') if !self.text.is_empty() => None,
            Key::Ctrl('c' | 'd') | Key::Terminate => Some(InputCommand::Quit),
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            // Terminals send CR for the line breaks of a paste.
            Key::Paste(text) => self.insert(&text.replace("\r\n", "\n").replace('\r', "\n")),
            Key::Backspace | Key::Ctrl('h') => self.erase_left(),
            Key::Delete => self.erase_right(),
            other => self.change(other),
        }
    }

    /// Wraps the text for a screen width.
    pub fn layout(&self, width: usize) -> Layout {
        let before = layout_lines(&self.text[..self.cursor], width);
        let mut lines = layout_lines(&self.text, width);
        let row = before.len() - 1;
        let column = before[row].width();
        if column < width {
            return Layout { lines, row, column };
        }

        // The last column is full, so the cursor belongs at the start of the next row, which may
        // not exist yet.
        if lines.len() == row + 1 {
            lines.push(StyledLine::default());
        }
        Layout {
            lines,
            row: row + 1,
            column: 0,
        }
    }

    fn change(&mut self, key: &Key) -> Option<InputCommand> {
        match key {
            Key::Ctrl('u') => self.erase(self.line_start()),
            Key::Ctrl('w') => self.erase(last_word(self.text[..self.cursor].trim_end())),
            Key::Ctrl('k') => self.text.truncate(self.cursor),
            Key::Left => self.cursor = self.character_start(),
            Key::Right => {
                let next = self.text[self.cursor..].chars().next();
                self.cursor += next.map_or(0, char::len_utf8);
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

    /// Moves up a line. On the first line, requests the previous text.
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

    /// Moves down a line. On the last line, requests the next text.
    fn line_below(&mut self) -> Option<InputCommand> {
        let Some(end) = self.text[self.cursor..].find('\n') else {
            return Some(InputCommand::Later);
        };

        let column = self.text[self.line_start()..self.cursor].chars().count();
        self.cursor = self.at_column(self.cursor + end + 1, column);
        None
    }

    /// Byte offset of a column in the line that starts at `start`, or the end of the line.
    fn at_column(&self, start: usize, column: usize) -> usize {
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let inside = line.char_indices().nth(column).map(|(at, _)| at);
        start + inside.unwrap_or(line.len())
    }

    /// Replaces the last word before the cursor by the common prefix of all candidates. Adds a space
    /// after a single candidate. Returns whether the text changed.
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

        let start = last_word(&self.text[..self.cursor]);
        // A directory is not complete: the user continues the path.
        let is_whole = candidates.len() == 1 && !common.ends_with('/');
        let word = format!("{common}{}", if is_whole { " " } else { "" });
        if word.len() <= self.cursor - start {
            return false;
        }

        self.text.replace_range(start..self.cursor, &word);
        self.cursor = start + word.len();
        true
    }

    pub fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    fn insert(&mut self, text: &str) -> Option<InputCommand> {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        None
    }

    fn erase_left(&mut self) -> Option<InputCommand> {
        self.erase(self.character_start());
        None
    }

    fn erase_right(&mut self) -> Option<InputCommand> {
        if self.cursor < self.text.len() {
            self.text.remove(self.cursor);
        }
        None
    }

    fn erase(&mut self, from: usize) {
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    /// Start of the character before the cursor.
    fn character_start(&self) -> usize {
        let mut before = self.text[..self.cursor].char_indices();
        before.next_back().map_or(0, |(at, _)| at)
    }
}

/// Start of what follows the last whitespace.
fn last_word(text: &str) -> usize {
    text.trim_end_matches(|c: char| !c.is_whitespace()).len()
}

fn layout_lines(text: &str, width: usize) -> Vec<StyledLine> {
    let line = |(at, line): (usize, &str)| {
        let mark = if at == 0 { PROMPT_MARK } else { PROMPT_INDENT };
        StyledLine::of(Tone::Accent, mark)
            .with(Tone::Plain, line)
            .wrap(width.max(PROMPT_MARK.len()))
    };
    text.split('\n').enumerate().flat_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_go_through_what_was_sent_and_back_to_what_is_written() {
        let help = PromptHelp {
            history: Rc::new(|| vec!["one".to_owned(), "two".to_owned()]),
            ..PromptHelp::default()
        };
        let typed = ["two".to_owned(), "/undo".to_owned()];
        let mut text = PromptText::new(&help, &typed);
        let mut steps = Vec::new();
        for _ in 0..4 {
            steps.push(text.earlier("new"));
        }
        for _ in 0..4 {
            steps.push(text.later());
        }

        let results: Vec<&str> = steps
            .iter()
            .map(|step| step.as_deref().unwrap_or("-"))
            .collect();
        assert_eq!(
            results,
            ["/undo", "two", "one", "-", "two", "/undo", "new", "-"]
        );
    }
}

#[cfg(test)]
mod input_tests {
    use super::*;

    /// Presses keys and compares the result; `|` is the cursor.
    fn check(start: &str, keys: &[Key], expected: &str, act: Option<InputCommand>) {
        let (mut input, mut last) = (TextInput::new(start), None);
        for key in keys {
            last = input.press(key);
        }
        let mut text = input.text.clone();
        text.insert(input.cursor, '|');
        assert_eq!((text.as_str(), last), (expected, act));
    }

    #[test]
    fn enter_sends_and_a_backslash_goes_on() {
        check("a", &[Key::Enter], "a|", Some(InputCommand::Send));
        check("a\\", &[Key::Enter, Key::Char('b')], "a\nb|", None);
        check("a", &[Key::AltEnter], "a\n|", None);
    }

    #[test]
    fn ctrl_d_leaves_where_nothing_is_written_and_deletes_before_something() {
        check("", &[Key::Ctrl('d')], "|", Some(InputCommand::Quit));
        check("ab", &[Key::Left, Key::Ctrl('d')], "a|", None);
        check("ab", &[Key::Ctrl('d')], "ab|", None);
        check("ab", &[Key::Ctrl('c')], "ab|", Some(InputCommand::Quit));
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
