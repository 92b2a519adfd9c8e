//! Terminal prompts below the existing output: a single key, yes and no, a choice, or text.
//!
//! A caller that calls [`terminal::forget_typed`] first discards keys that were typed before the
//! prompt was visible. A paste is never an answer. Ctrl-z suspends the program, except in a choice.

use std::io::{self, Write};
use std::time::Duration;

use dialoguer::Select;
use dialoguer::console::Term;
use ratatui::crossterm::cursor::{MoveDown, MoveToColumn, MoveUp};
use ratatui::crossterm::queue;
use ratatui::crossterm::terminal::{Clear, ClearType};
use unicode_width::UnicodeWidthStr;

use super::key::Key;
use super::prompt::{InputCommand, Layout, PromptText, TextInput, TextKeys};
use super::style::{Paint, StyledLine, TextArea, Tone, wrap_all};
use super::terminal::{self, BurstGuard, RawMode};
use crate::host::interrupt;
use crate::host::screen::{self, Screen, is_screen};

/// How long the window size must be stable before a redraw.
const SETTLING: Duration = Duration::from_millis(50);

const YES_OR_NO: [(char, &str); 2] = [('y', "yes"), ('n', "no")];

const TEXT_KEYS: [(&str, &str); 3] = [
    ("\\ enter, alt-enter", "start a new line"),
    ("ctrl-e", "continue in your editor"),
    ("ctrl-u, ctrl-w", "delete the line, the word"),
];

/// How a text prompt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The user submitted the text.
    Text(String),
    /// The user wants to continue in an editor.
    Editor(String),
    /// The user left without an answer.
    Quit(LeaveKey),
}

/// How the user left a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveKey {
    /// Deliberately, with an answer key or ctrl-d.
    Choice,
    /// With ctrl-c, for which a terminal in raw mode sends no signal.
    CtrlC,
}

impl LeaveKey {
    fn of(key: &Key) -> LeaveKey {
        match key {
            Key::Ctrl('c') => LeaveKey::CtrlC,
            _ => LeaveKey::Choice,
        }
    }

    /// Interrupts the program if the user pressed ctrl-c.
    pub fn end(self) {
        if self == LeaveKey::CtrlC {
            interrupt::raise();
        }
    }
}

/// Writes lines, wrapped to the width of the terminal.
pub fn show(lines: &[StyledLine], paint: Paint) {
    put(lines, paint);
}

/// Returns the number of terminal rows written.
fn put(lines: &[StyledLine], paint: Paint) -> usize {
    let mut out = Screen;
    // A terminal in raw mode does not return to column 0 on `\n`.
    let end = if is_screen() { "\r\n" } else { "\n" };
    let rows = wrap_all(lines.to_vec(), terminal::terminal_size().width);
    for row in &rows {
        let _ = write!(out, "{}{end}", row.paint(paint));
    }

    let _ = out.flush();
    rows.len()
}

/// A question answered by a single key.
pub struct KeyQuestion<'a> {
    /// Text above the question for a given screen size. Drawn again after a resize.
    pub about: &'a dyn Fn(TextArea) -> Vec<StyledLine>,
    pub question: &'a str,
    /// Answer keys and what they do. Ctrl-c and ctrl-d choose the last one.
    pub keys: &'a [(char, &'a str)],
    /// The key that approves, if one does. Enter means the same. It must come alone. Without one, every
    /// answer but the last one must come alone, or with Enter.
    pub approving: Option<char>,
    /// Lines below the keys in the help.
    pub more_help: &'a [StyledLine],
    /// Whether to use colors.
    pub paint: Paint,
}

/// Asks a question and returns the chosen key. Ctrl-c and ctrl-d choose the last one.
pub fn key(question: &str, keys: &[(char, &str)]) -> io::Result<char> {
    Ok(bare(question, keys).pressed()?.0)
}

/// Like [`key`], but ctrl-c also interrupts the program.
pub fn key_or_end(question: &str, keys: &[(char, &str)]) -> io::Result<char> {
    bare(question, keys).key_or_end()
}

fn bare<'a>(question: &'a str, keys: &'a [(char, &'a str)]) -> KeyQuestion<'a> {
    KeyQuestion {
        about: &|_| Vec::new(),
        question,
        keys,
        approving: None,
        more_help: &[],
        paint: Paint::Bare,
    }
}

impl KeyQuestion<'_> {
    /// Asks and returns the chosen key. Ctrl-c chooses the last one and interrupts the program.
    pub fn key_or_end(&self) -> io::Result<char> {
        let (chosen, by) = self.pressed()?;
        by.end();
        Ok(chosen)
    }

    fn pressed(&self) -> io::Result<(char, LeaveKey)> {
        let _raw = RawMode::enter()?;
        let mut out = Screen;
        let mut rows = self.draw()?;
        let mut is_stale = false;
        let mut burst = BurstGuard::default();
        let chosen = loop {
            // Dragging a window causes a burst of resizes. Redraw once it pauses.
            if is_stale && !terminal::has_more(SETTLING)? {
                above(&mut out, rows)?;
                (rows, is_stale) = (self.draw()?, false);
            }

            let key = terminal::next_key()?;
            if let Some(answer) = self.answer_alone(&key) {
                if self.is_alone(&mut burst)? {
                    break (answer, LeaveKey::Choice);
                }
                write!(out, "\r\n")?;
                put(&[StyledLine::of(Tone::Warning, NOT_ALONE)], self.paint);
                rows = self.ask()?;
                continue;
            }

            burst.take()?;
            if let Some(answer) = self.answer(&key) {
                break (answer, LeaveKey::Choice);
            }
            match key {
                Key::Ctrl('c' | 'd') | Key::Terminate => {
                    break (self.quit_key(), LeaveKey::of(&key));
                }
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
                // SIGCONT after a stop from outside: the shell has written below the question.
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

    /// Returns the answer key if it must not be part of a text that was typed or pasted for another
    /// prompt: the one that approves. Without one, each that does more than leave.
    fn answer_alone(&self, key: &Key) -> Option<char> {
        match self.approving {
            Some(approving) => approves(approving, key).then_some(approving),
            None => self.answer(key).filter(|answer| *answer != self.quit_key()),
        }
    }

    fn is_alone(&self, burst: &mut BurstGuard) -> io::Result<bool> {
        match self.approving {
            Some(_) => burst.is_alone(),
            None => burst.is_alone_or_line(),
        }
    }

    /// Returns the answer key for a letter in either case. At yes or no, `q` and escape mean no, as
    /// they leave everywhere else.
    fn answer(&self, key: &Key) -> Option<char> {
        let letter = match key {
            Key::Char(c) => *c,
            Key::Esc => 'q',
            _ => return None,
        };
        let mut keys = self.keys.iter().map(|(own, _)| *own);
        let no = || (self.keys == YES_OR_NO && letter.eq_ignore_ascii_case(&'q')).then_some('n');
        keys.find(|own| *key != Key::Esc && own.eq_ignore_ascii_case(&letter))
            .or_else(no)
    }

    fn quit_key(&self) -> char {
        self.keys.last().map_or('q', |(key, _)| *key)
    }

    fn help(&self) -> Vec<StyledLine> {
        let line = |key: &str, meaning: &str| {
            StyledLine::of(Tone::Accent, &format!("  {key:<7}")).with(Tone::Plain, meaning)
        };
        let keys = self.keys.iter();
        let keys = keys.map(|(key, meaning)| line(&key.to_string(), meaning));
        let quit_help = format!("the same as {}", self.quit_key());
        let enter = self.approving.map(|key| format!("the same as {key}"));
        let enter = enter.iter().map(|text| line("enter", text));
        keys.chain(enter.collect::<Vec<_>>())
            .chain([
                line("ctrl-d", &quit_help),
                line("ctrl-z", "suspend; fg asks again"),
            ])
            .chain(self.more_help.iter().cloned())
            .collect()
    }

    /// Returns the number of rows above the cursor.
    fn draw(&self) -> io::Result<usize> {
        Ok(put(&(self.about)(terminal::terminal_size()), self.paint) + self.ask()?)
    }

    /// The question that approves is highlighted. The space for the cursor is not.
    fn painted(&self, row: &str) -> String {
        let text = row.trim_end();
        let tone = match self.approving {
            Some(_) => Tone::Question,
            None => Tone::Plain,
        };
        let line = StyledLine::of(tone, text).blanks(row.len() - text.len());
        line.paint(self.paint)
    }

    /// Returns the number of rows above the cursor.
    fn ask(&self) -> io::Result<usize> {
        let mut out = Screen;
        let rows = question_rows(self.question, terminal::terminal_size().width);
        let painted: Vec<String> = rows.iter().map(|row| self.painted(row)).collect();
        write!(out, "{}", painted.join("\r\n"))?;
        out.flush()?;
        Ok(rows.len() - 1)
    }
}

/// Shown if an approving key was part of a burst.
pub const NOT_ALONE: &str = "Keys that arrive together approve nothing: press it again.";

fn approves(approving: char, key: &Key) -> bool {
    match key {
        Key::Enter => true,
        Key::Char(c) => c.eq_ignore_ascii_case(&approving),
        _ => false,
    }
}

/// Asks yes or no. Leaving means no.
pub fn yes(question: &str) -> io::Result<bool> {
    Ok(key(&format!("{question} (y/n) › "), &YES_OR_NO)? == 'y')
}

/// Like [`yes`], but ctrl-c also interrupts the program.
pub fn yes_or_end(question: &str) -> io::Result<bool> {
    Ok(key_or_end(&format!("{question} (y/n) › "), &YES_OR_NO)? == 'y')
}

/// Completes the word in front of the cursor. Returns the candidates to list if it cannot.
fn complete(input: &mut TextInput, help: &PromptText<'_>) -> Vec<String> {
    let candidates = help.candidates(input.before_cursor());
    match input.complete(&candidates) {
        true => Vec::new(),
        false => candidates,
    }
}

/// Asks for text, starting with `start`. `help` has history and completion. With it, the text is a
/// message, which ctrl-c drops as a shell does; without it, ctrl-c goes back at once.
pub fn text(start: &str, mut help: Option<&mut PromptText<'_>>, paint: Paint) -> io::Result<Reply> {
    let _raw = RawMode::enter()?;
    let mut input = TextInput::new(start);
    let mut drawn = Layout::default();

    loop {
        drawn = redraw(&drawn, &input, paint)?;
        let key = terminal::next_key()?;
        let command = input.press(&key);
        let help = help.as_deref_mut();
        match command {
            // The shell has written below the text: draw it again there.
            None if key == Key::Continued => {}
            None => continue,
            Some(command @ (InputCommand::Earlier | InputCommand::Later)) => {
                let recalled = help.and_then(|help| help.recall(command, input.text()));
                input = recalled.map_or(input, |text| TextInput::new(&text));
                continue;
            }
            Some(InputCommand::Complete) => {
                let candidates = help.map(|help| complete(&mut input, help));
                if let Some(candidates) = candidates.filter(|it| !it.is_empty()) {
                    move_below(&drawn)?;
                    show(&[listed(&candidates)], paint);
                    drawn = Layout::default();
                }
                continue;
            }
            Some(_) => {}
        }

        move_below(&drawn)?;
        drawn = Layout::default();
        match command {
            // A lone `?` shows the keys and is not sent.
            Some(InputCommand::Send) if input.text().trim() == "?" => {
                put(&text_help(help.as_deref().map(|help| help.keys)), paint);
                input = TextInput::new("");
            }
            Some(InputCommand::Quit)
                if key == Key::Ctrl('c') && help.is_some() && !input.text().is_empty() =>
            {
                input = TextInput::new("");
            }
            Some(InputCommand::Send) => return Ok(Reply::Text(input.text().to_owned())),
            Some(InputCommand::Quit) => return Ok(Reply::Quit(LeaveKey::of(&key))),
            Some(InputCommand::Editor) => return Ok(Reply::Editor(input.text().to_owned())),
            Some(InputCommand::Suspend) => terminal::suspend()?,
            _ => {}
        }
    }
}

const MAX_CANDIDATES: usize = 20;

fn listed(candidates: &[String]) -> StyledLine {
    let some = &candidates[..candidates.len().min(MAX_CANDIDATES)];
    let more = match candidates.len() - some.len() {
        0 => String::new(),
        more => format!("  and {more} more"),
    };
    StyledLine::of(Tone::Faint, &format!("{}{more}", some.join("  ")))
}

/// The answer to a command at a prompt that takes none, or only those for the shell.
pub fn misplaced_command(takes_shell: bool) -> StyledLine {
    StyledLine::of(
        Tone::Warning,
        match takes_shell {
            true => {
                "Commands such as /help are for the prompt of `teddy resume`; !ls works here, too."
            }
            false => "Commands such as /help and !ls are for the prompt of `teddy resume`.",
        },
    )
}

/// Returns the key hint for the prompt of a loop.
pub fn prompt_hint() -> StyledLine {
    StyledLine::of(
        Tone::Faint,
        "enter sends, \\ + enter for a new line, @file adds a file, /help, ctrl-d leaves",
    )
}

/// Returns the key hint for a text prompt.
pub fn hint() -> StyledLine {
    hint_for("enter sends", "ctrl-d leaves")
}

/// Like [`hint`], for a prompt in which enter or leaving means something else.
pub fn hint_for(enter: &str, leave: &str) -> StyledLine {
    let keys = format!("{enter}, \\ + enter for another line, ctrl-e for the editor, {leave}");
    StyledLine::of(Tone::Faint, &keys)
}

/// `keys` is `None` for a text that is not a message.
fn text_help(keys: Option<TextKeys>) -> Vec<StyledLine> {
    let line = |(keys, meaning): (&str, &str)| {
        StyledLine::of(Tone::Accent, &format!("  {keys:<19}")).with(Tone::Plain, meaning)
    };
    let (enter, ctrl_d, ctrl_c) = match keys {
        Some(TextKeys::Sending) => (
            "send",
            "leave without an answer, if nothing is written",
            "drop the text; leave, if nothing is written",
        ),
        Some(TextKeys::Declining) => (
            "decline the plan with this text",
            "decline it without a text, if nothing is written",
            "drop the text; go back to the review, if nothing is written",
        ),
        None => (
            "send",
            "leave without an answer, if nothing is written",
            "leave",
        ),
    };
    let keys = [("enter", enter)].into_iter().chain(TEXT_KEYS);
    let keys = keys.chain([("ctrl-d", ctrl_d), ("ctrl-c", ctrl_c)]);
    keys.map(line).collect()
}

fn redraw(before: &Layout, input: &TextInput, paint: Paint) -> io::Result<Layout> {
    let area = terminal::terminal_size();
    let mut layout = input.layout(area.width.saturating_sub(1));
    let height = area.height.saturating_sub(1).max(1);
    // Text can be taller than the screen: draw the rows that end at the cursor.
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

/// Clears the screen from the line `rows` above the cursor to the end.
fn above(out: &mut impl Write, rows: usize) -> io::Result<()> {
    up(out, rows)?;
    queue!(out, MoveToColumn(0), Clear(ClearType::FromCursorDown))
}

fn up(out: &mut impl Write, lines: usize) -> io::Result<()> {
    // `CSI 0 A` moves up by one line.
    if lines > 0 {
        queue!(out, MoveUp(u16::try_from(lines).unwrap_or(u16::MAX)))?;
    }
    Ok(())
}

/// Moves the cursor to the line after the text.
fn move_below(drawn: &Layout) -> io::Result<()> {
    let mut out = Screen;
    let lines = drawn.lines.len().saturating_sub(drawn.row + 1);
    if lines > 0 {
        queue!(out, MoveDown(u16::try_from(lines).unwrap_or(u16::MAX)))?;
    }
    write!(out, "\r\n")?;
    out.flush()
}

/// Two columns for the cursor, and one left free at the end.
const CHOICE_MARGIN: usize = 3;
/// dialoguer panics in a lower window.
const MIN_CHOICE_HEIGHT: usize = 3;

/// Asks the user to select a row. Returns `None` if they leave with escape or `q`. Ctrl-c is an
/// error.
pub fn choose(question: &str, rows: &[String]) -> io::Result<Option<usize>> {
    let screen = match screen::terminal() {
        Some(terminal) => Term::read_write_pair(terminal.try_clone()?, terminal.try_clone()?),
        None => Term::stderr(),
    };
    // Enter raw mode before dialoguer does. In between, a ctrl-c would arrive as a signal, and
    // dialoguer would wait for a key forever.
    let _raw = RawMode::enter()?;
    terminal::keep_line_ends()?;
    terminal::forget_typed()?;

    // Again after a resize.
    loop {
        let size = terminal::terminal_size();
        if size.height < MIN_CHOICE_HEIGHT {
            let why = "the window is too low for a list";
            return Err(io::Error::other(why));
        }
        // dialoguer assumes that an item takes one row, and would redraw wrapped ones wrongly.
        let width = size.width.saturating_sub(CHOICE_MARGIN);
        let cut = |row: &String| StyledLine::plain(row).cut(width).text();
        let rows: Vec<String> = rows.iter().map(cut).collect();
        let select = Select::new()
            .with_prompt(question)
            .items(&rows)
            .default(0)
            // The caller reports the choice.
            .report(false);
        // dialoguer takes any signal for ctrl-c, also that of a resize, and sends SIGINT.
        let chosen = interrupt::without_handling(|| select.interact_on_opt(&screen));
        // dialoguer leaves the cursor hidden if it is interrupted.
        screen.show_cursor()?;
        let chosen = match chosen {
            Err(dialoguer::Error::IO(error)) if error.kind() == io::ErrorKind::Interrupted => {
                let is_signal = error.raw_os_error().is_some();
                if is_signal && !interrupt::requested() {
                    erase_list(question, &rows)?;
                    continue;
                }
                interrupt::raise();
                return Err(error);
            }
            chosen => chosen.map_err(|dialoguer::Error::IO(error)| error)?,
        };
        // An enter key in pasted text must not choose.
        if !terminal::discard_input()? {
            return Ok(chosen);
        }
    }
}

/// Erases a list whose rows the window can have wrapped anew.
fn erase_list(question: &str, rows: &[String]) -> io::Result<()> {
    let size = terminal::terminal_size();
    let lines = std::iter::once(question).chain(rows.iter().map(String::as_str));
    let widths = lines.map(|line| StyledLine::plain(line).width() + CHOICE_MARGIN);
    let count: usize = widths.map(|width| width.div_ceil(size.width.max(1))).sum();
    let mut out = Screen;
    above(&mut out, count.min(size.height.saturating_sub(1)))?;
    out.flush()
}

/// Returns the rows of a question. A question that does not fit has its keys on separate rows.
pub fn question_rows(question: &str, width: usize) -> Vec<String> {
    let question = StyledLine::plain(question).text();
    // One column stays free for the cursor.
    let fits = |text: &str| text.width() < width;
    let end = question.find("? ").or_else(|| question.find(": "));
    let Some(end) = end.filter(|_| !fits(&question)) else {
        return vec![question];
    };
    let (asked, keys) = (&question[..=end], &question[end + 2..]);
    let mut rows: Vec<String> = StyledLine::plain(asked)
        .fold(width)
        .iter()
        .map(StyledLine::text)
        .collect();

    for (at, key) in keys.split_inclusive(" / ").enumerate() {
        match rows.last_mut() {
            Some(row) if at > 0 && fits(&format!("{row}{key}")) => row.push_str(key),
            _ => rows.push(key.to_owned()),
        }
    }

    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(question: &str, width: usize, expected: &[&str]) {
        assert_eq!(question_rows(question, width), expected);
    }

    #[test]
    fn a_question_is_broken_between_its_keys() {
        let question =
            "Execute this plan? (a)pprove / (r)ead / (m)odify / (e)dit / (s)kip / (q)uit › ";
        check(question, 80, &[question]);
        check(
            "When it answered: from the (c)lipboard / write it / (q)uit › ",
            40,
            &[
                "When it answered:",
                "from the (c)lipboard / write it / ",
                "(q)uit › ",
            ],
        );
        check(
            question,
            70,
            &[
                "Execute this plan?",
                "(a)pprove / (r)ead / (m)odify / (e)dit / (s)kip / (q)uit › ",
            ],
        );
        check(
            question,
            40,
            &[
                "Execute this plan?",
                "(a)pprove / (r)ead / (m)odify / ",
                "(e)dit / (s)kip / (q)uit › ",
            ],
        );
        check(
            "Have you finished and saved it? (y/n) › ",
            20,
            &["Have you finished ", "↪ and saved it?", "(y/n) › "],
        );
    }

    #[test]
    fn what_deceives_is_visible() {
        check("Make a\u{1b}[2J?", 80, &["Make a\\u{1b}[2J?"]);
    }
}
