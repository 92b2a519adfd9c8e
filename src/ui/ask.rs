//! Questions that are asked below what is on the screen: one key, one text, yes or no.

use std::io::{self, Write};
use std::time::Duration;

use ratatui::crossterm::cursor::{MoveDown, MoveToColumn, MoveUp};
use ratatui::crossterm::queue;
use ratatui::crossterm::terminal::{Clear, ClearType};

use super::input::{InputCommand, Layout, TextInput};
use super::key::Key;
use super::prompt::TextHelp;
use super::question;
use super::room::TextArea;
use super::style::{Paint, StyledLine, Tone, wrap_all};
use super::terminal::{self, RawMode};
use crate::host::interrupt;
use crate::host::screen::{Screen, is_screen};

/// How long a window keeps its size before what is on it is drawn anew.
const SETTLING: Duration = Duration::from_millis(50);

/// The keys of a question that is answered with yes or no.
const YES_OR_NO: [(char, &str); 2] = [('y', "yes"), ('n', "no")];

/// The keys of a text.
const TEXT_KEYS: [(&str, &str); 6] = [
    ("enter", "send"),
    ("\\ enter, alt-enter", "start a new line"),
    ("ctrl-e", "continue in your editor"),
    ("ctrl-u, ctrl-w", "delete the line, the word"),
    ("ctrl-d", "leave without an answer, if nothing is written"),
    ("ctrl-c", "leave"),
];

/// How a text came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It was sent.
    Text(String),
    /// It is to be continued in an editor.
    Editor(String),
    /// The person left.
    Left(LeaveKey),
}

/// How a person leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveKey {
    /// By choice.
    Choice,
    /// By ctrl-c, which elsewhere would be a signal.
    CtrlC,
}

impl LeaveKey {
    /// Interrupts the program, if that is what was meant.
    pub fn end(self) {
        if self == LeaveKey::CtrlC {
            interrupt::raise();
        }
    }
}

/// Writes lines to the terminal, folded to its width.
pub fn show(lines: &[StyledLine], paint: Paint) {
    put(lines, paint);
}

/// As [`show`]; returns how many rows they take.
fn put(lines: &[StyledLine], paint: Paint) -> usize {
    let mut out = Screen;
    // A terminal that gives its keys one by one does not go to the start of a line by itself.
    let end = if is_screen() { "\r\n" } else { "\n" };
    let rows = wrap_all(lines.to_vec(), terminal::room().width);
    for row in &rows {
        let _ = write!(out, "{}{end}", row.paint(paint));
    }

    let _ = out.flush();
    rows.len()
}

/// A question that is answered with one key.
pub struct KeyQuestion<'a> {
    /// What it is about, for the room that there is: shown above it, and anew where the window gets
    /// another size.
    pub about: &'a dyn Fn(TextArea) -> Vec<StyledLine>,
    /// The question.
    pub question: &'a str,
    /// The keys that answer, each with what it does; the last one is the answer of who leaves.
    pub keys: &'a [(char, &'a str)],
    /// With colours or without.
    pub paint: Paint,
}

/// Shows a question and waits for one of its keys; ctrl-c and ctrl-d are the last of them.
///
/// # Errors
/// The terminal is gone.
pub fn key(question: &str, keys: &[(char, &str)]) -> io::Result<char> {
    Ok(bare(question, keys).pressed()?.0)
}

/// As [`key`], where to leave is to leave the program: ctrl-c interrupts it.
///
/// # Errors
/// As for [`key`].
pub fn key_or_end(question: &str, keys: &[(char, &str)]) -> io::Result<char> {
    bare(question, keys).key_or_end()
}

/// Returns a question with nothing above it.
fn bare<'a>(question: &'a str, keys: &'a [(char, &'a str)]) -> KeyQuestion<'a> {
    KeyQuestion {
        about: &|_| Vec::new(),
        question,
        keys,
        paint: Paint::Bare,
    }
}

impl KeyQuestion<'_> {
    /// Shows it and waits for one of its keys; ctrl-c interrupts the program.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn key_or_end(&self) -> io::Result<char> {
        let (chosen, by) = self.pressed()?;
        by.end();
        Ok(chosen)
    }

    /// Waits for one of its keys, and returns it with how it came.
    fn pressed(&self) -> io::Result<(char, LeaveKey)> {
        let _raw = RawMode::enter()?;
        let mut out = Screen;
        let mut rows = self.draw()?;
        let mut is_stale = false;
        let chosen = loop {
            // A window that is dragged has a hundred sizes on its way.
            if is_stale && !terminal::has_more(SETTLING)? {
                above(&mut out, rows)?;
                (rows, is_stale) = (self.draw()?, false);
            }

            match terminal::next_key()? {
                Key::Char(c) if self.has(c) => break (c.to_ascii_lowercase(), LeaveKey::Choice),
                Key::Ctrl('c') => break (self.leave(), LeaveKey::CtrlC),
                Key::Ctrl('d') | Key::Closed => break (self.leave(), LeaveKey::Choice),
                Key::Char('?') => {
                    write!(out, "?\r\n")?;
                    put(&self.help(), self.paint);
                    rows = self.ask()?;
                }
                Key::Ctrl('z') => {
                    write!(out, "\r\n")?;
                    terminal::suspend()?;
                    write!(out, "\r")?;
                    rows = self.ask()?;
                }
                Key::Continued => {
                    write!(out, "\r\n")?;
                    rows = self.ask()?;
                }
                Key::Resize(..) => is_stale = true,
                _ => {}
            }
        };

        write!(out, "{}\r\n", chosen.0)?;
        out.flush()?;
        Ok(chosen)
    }

    /// Returns whether a key answers.
    fn has(&self, key: char) -> bool {
        let key = key.to_ascii_lowercase();
        self.keys.iter().any(|(known, _)| *known == key)
    }

    /// Returns the answer of who leaves.
    fn leave(&self) -> char {
        self.keys.last().map_or('q', |(key, _)| *key)
    }

    /// Returns what the keys do.
    fn help(&self) -> Vec<StyledLine> {
        let line = |key: &str, what: &str| {
            StyledLine::of(Tone::Accent, &format!("  {key:<7}")).with(Tone::Plain, what)
        };
        let keys = self.keys.iter();
        let keys = keys.map(|(key, what)| line(&key.to_string(), what));
        let leave = format!("the same as {}", self.leave());
        keys.chain([
            line("ctrl-d", &leave),
            line("ctrl-z", "suspend; fg asks again"),
        ])
        .collect()
    }

    /// Shows what it is about, and asks; returns the rows above the cursor's.
    fn draw(&self) -> io::Result<usize> {
        Ok(put(&(self.about)(terminal::room()), self.paint) + self.ask()?)
    }

    /// Asks; returns the rows above the cursor's.
    fn ask(&self) -> io::Result<usize> {
        let mut out = Screen;
        let rows = question::rows(self.question, terminal::room().width);
        write!(out, "{}", rows.join("\r\n"))?;
        out.flush()?;
        Ok(rows.len() - 1)
    }
}

/// Asks yes or no; leaving is no.
///
/// # Errors
/// The terminal is gone.
pub fn yes(question: &str) -> io::Result<bool> {
    Ok(key(&format!("{question} (y/n) › "), &YES_OR_NO)? == 'y')
}

/// As [`yes`], where ctrl-c interrupts the program.
///
/// # Errors
/// The terminal is gone.
pub fn yes_or_end(question: &str) -> io::Result<bool> {
    Ok(key_or_end(&format!("{question} (y/n) › "), &YES_OR_NO)? == 'y')
}

/// Asks for a text, starting from one.
///
/// # Errors
/// The terminal is gone.
pub fn text(start: &str, paint: Paint) -> io::Result<Reply> {
    helped_text(start, &mut (), paint)
}

/// As [`text`], with something that helps.
///
/// # Errors
/// As for [`text`].
pub fn helped_text(start: &str, help: &mut dyn TextHelp, paint: Paint) -> io::Result<Reply> {
    let _raw = RawMode::enter()?;
    let mut input = TextInput::new(start);
    let mut drawn = Layout {
        lines: Vec::new(),
        row: 0,
        column: 0,
    };

    loop {
        drawn = redraw(&drawn, &input, paint)?;
        let key = terminal::next_key()?;
        let (next, act) = input.press(&key);
        input = next;
        let Some(act) = act else {
            if key == Key::Continued {
                below(&drawn)?;
                drawn = Layout {
                    lines: Vec::new(),
                    row: 0,
                    column: 0,
                };
            }
            continue;
        };

        if let Some(other) = replaced(&mut input, act, help, &drawn, paint)? {
            drawn = other;
            continue;
        }

        below(&drawn)?;
        match act {
            InputCommand::Send if input.text().trim() == "?" => {
                put(&text_help(), paint);
                input = TextInput::new("");
            }
            InputCommand::Send => return Ok(Reply::Text(input.text().to_owned())),
            InputCommand::Leave => {
                return Ok(Reply::Left(if key == Key::Ctrl('c') {
                    LeaveKey::CtrlC
                } else {
                    LeaveKey::Choice
                }));
            }
            InputCommand::Editor => return Ok(Reply::Editor(input.text().to_owned())),
            InputCommand::Suspend => terminal::suspend()?,
            InputCommand::Earlier | InputCommand::Later | InputCommand::Complete => {}
        }

        drawn = Layout {
            lines: Vec::new(),
            row: 0,
            column: 0,
        };
    }
}

/// The most candidates that are shown.
const MAX_CANDIDATES: usize = 20;

/// Puts another text, or a longer word, in place of what was written, if that is what is wanted;
/// returns what is on the screen then.
fn replaced(
    input: &mut TextInput,
    act: InputCommand,
    help: &mut dyn TextHelp,
    drawn: &Layout,
    paint: Paint,
) -> io::Result<Option<Layout>> {
    let other = match act {
        InputCommand::Earlier => help.earlier(input.text()),
        InputCommand::Later => help.later(),
        InputCommand::Complete => return complete(input, help, drawn, paint).map(Some),
        _ => return Ok(None),
    };
    if let Some(other) = other {
        *input = TextInput::new(&other);
    }
    Ok(Some(drawn.clone()))
}

/// Completes the word before the cursor, or shows what it may become.
fn complete(
    input: &mut TextInput,
    help: &mut dyn TextHelp,
    drawn: &Layout,
    paint: Paint,
) -> io::Result<Layout> {
    let candidates = help.candidates(input.before_cursor());
    if input.complete(&candidates) || candidates.is_empty() {
        return Ok(drawn.clone());
    }

    below(drawn)?;
    let shown: Vec<&str> = candidates
        .iter()
        .take(MAX_CANDIDATES)
        .map(String::as_str)
        .collect();
    let more = candidates.len().saturating_sub(MAX_CANDIDATES);
    let more = if more > 0 {
        format!("  and {more} more")
    } else {
        String::new()
    };
    let line = format!("{}{more}", shown.join("  "));
    show(&[StyledLine::of(Tone::Faint, &line)], paint);

    Ok(Layout {
        lines: Vec::new(),
        row: 0,
        column: 0,
    })
}

/// Says how a text is written at the prompt of a loop.
pub fn prompt_hint() -> StyledLine {
    StyledLine::of(
        Tone::Faint,
        "enter sends, \\ + enter for a new line, @file adds a file, /help, ctrl-d leaves",
    )
}

/// Says how a text is written.
pub fn hint() -> StyledLine {
    StyledLine::of(
        Tone::Faint,
        "enter sends, \\ + enter for another line, ctrl-e for the editor, ctrl-d leaves",
    )
}

/// Returns the keys of a text; a lone `?` asks for them.
fn text_help() -> Vec<StyledLine> {
    let line = |(keys, what): (&str, &str)| {
        StyledLine::of(Tone::Accent, &format!("  {keys:<19}")).with(Tone::Plain, what)
    };
    TEXT_KEYS.map(line).to_vec()
}

/// Draws the text over what was drawn before; of a text higher than the screen, the part with the
/// cursor.
fn redraw(before: &Layout, input: &TextInput, paint: Paint) -> io::Result<Layout> {
    let room = terminal::room();
    let mut layout = input.layout(room.width.saturating_sub(1));
    let height = room.height.saturating_sub(1).max(1);
    let first = (layout.row + 1).saturating_sub(height);
    layout.lines = layout.lines.into_iter().skip(first).take(height).collect();
    layout.row -= first;
    let mut out = Screen;

    above(&mut out, before.row)?;
    let text: Vec<String> = layout.lines.iter().map(|line| line.paint(paint)).collect();
    write!(out, "{}", text.join("\r\n"))?;
    up(&mut out, layout.lines.len().saturating_sub(layout.row + 1))?;
    queue!(
        out,
        MoveToColumn(u16::try_from(layout.column).unwrap_or(u16::MAX))
    )?;
    out.flush()?;

    Ok(layout)
}

/// Takes what is below away, from the start of the line so many rows above the cursor's.
fn above(out: &mut impl Write, rows: usize) -> io::Result<()> {
    up(out, rows)?;
    queue!(out, MoveToColumn(0), Clear(ClearType::FromCursorDown))
}

/// Moves the cursor up, which zero lines would not leave as it is.
fn up(out: &mut impl Write, lines: usize) -> io::Result<()> {
    if lines > 0 {
        queue!(out, MoveUp(u16::try_from(lines).unwrap_or(u16::MAX)))?;
    }
    Ok(())
}

/// Moves the cursor to the line below the text.
fn below(drawn: &Layout) -> io::Result<()> {
    let mut out = Screen;
    let lines = drawn.lines.len().saturating_sub(drawn.row + 1);
    if lines > 0 {
        queue!(out, MoveDown(u16::try_from(lines).unwrap_or(u16::MAX)))?;
    }
    write!(out, "\r\n")?;
    out.flush()
}
