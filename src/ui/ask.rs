//! Questions that are asked below what is on the screen: one key, one text, yes or no.

use std::io::{self, Write};
use std::time::Duration;

use ratatui::crossterm::cursor::{MoveDown, MoveToColumn, MoveUp};
use ratatui::crossterm::queue;
use ratatui::crossterm::terminal::{Clear, ClearType};

use super::input::{InputCommand, Layout, TextInput};
use super::key::Key;
use super::question;
use super::room::TextArea;
use super::style::{Paint, StyledLine, Tone, wrap_all};
use super::terminal::{self, RawMode};
use crate::host::interrupt;
use crate::host::screen::{Screen, is_screen};

/// How long a window keeps its size before what is on it is drawn anew.
const SETTLING: Duration = Duration::from_millis(50);

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
    /// The keys that answer.
    pub keys: &'a [char],
    /// The answer of who leaves.
    pub leave: char,
    /// With colours or without.
    pub paint: Paint,
}

/// Shows a question and waits for one of its keys; ctrl-c and ctrl-d are `leave`.
///
/// # Errors
/// The terminal is gone.
pub fn key(question: &str, keys: &[char], leave: char) -> io::Result<char> {
    Ok(KeyQuestion {
        about: &|_| Vec::new(),
        question,
        keys,
        leave,
        paint: Paint::Bare,
    }
    .pressed()?
    .0)
}

/// As [`key`], where to leave is to leave the program: ctrl-c interrupts it.
///
/// # Errors
/// As for [`key`].
pub fn key_or_end(question: &str, keys: &[char], leave: char) -> io::Result<char> {
    KeyQuestion {
        about: &|_| Vec::new(),
        question,
        keys,
        leave,
        paint: Paint::Bare,
    }
    .key_or_end()
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
                Key::Char(c) if self.keys.contains(&c.to_ascii_lowercase()) => {
                    break (c.to_ascii_lowercase(), LeaveKey::Choice);
                }
                Key::Ctrl('c') => break (self.leave, LeaveKey::CtrlC),
                Key::Ctrl('d') | Key::Closed => break (self.leave, LeaveKey::Choice),
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
    Ok(key(&format!("{question} (y/n) › "), &['y', 'n'], 'n')? == 'y')
}

/// As [`yes`], where ctrl-c interrupts the program.
///
/// # Errors
/// The terminal is gone.
pub fn yes_or_end(question: &str) -> io::Result<bool> {
    Ok(key_or_end(&format!("{question} (y/n) › "), &['y', 'n'], 'n')? == 'y')
}

/// Asks for a text, starting from one.
///
/// # Errors
/// The terminal is gone.
pub fn text(start: &str, paint: Paint) -> io::Result<Reply> {
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

        below(&drawn)?;
        match act {
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
        }

        drawn = Layout {
            lines: Vec::new(),
            row: 0,
            column: 0,
        };
    }
}

/// Says how a text is written.
pub fn hint() -> StyledLine {
    StyledLine::of(
        Tone::Faint,
        "enter sends, \\ + enter for another line, ctrl-e for the editor, ctrl-d leaves",
    )
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
