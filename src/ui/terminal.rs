//! Terminal modes: raw mode, full screen, and their restoration.
//!
//! Modes are left when their guard is dropped, before a panic message is printed, and during a
//! suspension. After SIGCONT, they are entered again.

use std::io::{self, BufWriter, Write};
use std::mem::{self, ManuallyDrop};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use ratatui::layout::Rect;
use ratatui::prelude::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{OptionalActions, OutputModes, QueueSelector, tcflush, tcgetattr, tcsetattr};

use super::key::Key;
use crate::host::screen::{Screen, is_stderr, is_stdout};
use crate::host::{fault, interrupt, panic};
use crate::ui::style::TextArea;

/// Interval at which a wait for a key checks for an interrupt.
const PATIENCE: Duration = Duration::from_millis(100);
/// Time for SIGTSTP to take effect: `kill` can return before the process is stopped.
const STOPPING: Duration = Duration::from_millis(20);
/// For a terminal that does not report its size.
const UNKNOWN: TextArea = TextArea {
    width: 80,
    height: 24,
};

/// A key that follows within this time was typed or pasted together with the one before, or a slow
/// line held both back.
const BURST: Duration = Duration::from_millis(40);

/// Upper limit for the event reader to process pending input.
const READING_TAKES: Duration = Duration::from_secs(1);

/// Set while the event reader runs.
static READING: AtomicBool = AtomicBool::new(false);
/// Starts the watch thread.
static WATCH: Once = Once::new();
static RAW: AtomicBool = AtomicBool::new(false);
static FULL: AtomicBool = AtomicBool::new(false);

/// Guard for raw mode. Guards nest; the outermost restores the terminal.
///
/// Keep one alive across consecutive prompts: keys typed in between would otherwise be read in
/// cooked mode, which delivers enter as another key.
#[derive(Debug)]
pub struct RawMode {
    is_outermost: bool,
}

/// Guard for the full screen.
pub struct Full {
    /// Not dropped: ratatui then reports a closed terminal on stderr, and panics if that is closed,
    /// too. [`leave_full`] shows the cursor again.
    screen: ManuallyDrop<ratatui::Terminal<CrosstermBackend<BufWriter<Screen>>>>,
    burst: BurstGuard,
    _raw: RawMode,
}

/// Returns the width of the terminal that shows messages. `None` if stderr is not a terminal.
pub fn stderr_width() -> Option<usize> {
    is_stderr().then(|| terminal_size().width)
}

/// Returns the width of the terminal that shows results. `None` if stdout is not a terminal.
pub fn stdout_width() -> Option<usize> {
    is_stdout().then(|| terminal_size().width)
}

pub fn terminal_size() -> TextArea {
    match size() {
        Ok((width, height)) if width > 0 && height > 0 => TextArea {
            width: usize::from(width),
            height: usize::from(height),
        },
        _ => UNKNOWN,
    }
}

pub fn next_key() -> io::Result<Key> {
    loop {
        if let Some(key) = key_within(PATIENCE)? {
            return Ok(key);
        }
    }
}

/// Waits up to `patience` for a key.
pub fn key_within(patience: Duration) -> io::Result<Option<Key>> {
    // First without waiting: the event reader can still hold keys that it read together with an
    // earlier one, and stdin does not become readable again for them.
    for patience in [Duration::ZERO, patience] {
        if interrupt::requested() {
            return Ok(Some(Key::Terminate));
        }

        // After a hangup, reads return zero bytes and crossterm loops forever. Check before using
        // it.
        if is_gone(patience) {
            return Ok(Some(Key::Terminate));
        }

        if interrupt::take_continued() {
            enter_again(RAW.load(Ordering::SeqCst), FULL.load(Ordering::SeqCst))?;
            return Ok(Some(Key::Continued));
        }

        if let Some(event) = reading(read_event)?
            && let Some(key) = Key::read(event)
        {
            return Ok(Some(key));
        }
    }

    Ok(None)
}

fn read_event() -> io::Result<Option<event::Event>> {
    match event::poll(Duration::ZERO)? {
        true => event::read().map(Some),
        false => Ok(None),
    }
}

/// Runs the event reader under a watch.
///
/// If the terminal hangs up during the call, crossterm reads zero bytes in an endless loop. The
/// user is gone and nothing has been started, so the watch thread ends the process.
fn reading<T>(work: impl FnOnce() -> T) -> T {
    WATCH.call_once(|| {
        // Without the thread, such a hangup only costs CPU time.
        let _ = std::thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(end_when_stuck);
    });
    READING.store(true, Ordering::SeqCst);

    // Lets a test close the terminal at this point.
    fault::emulated("before-reading");
    let result = work();
    READING.store(false, Ordering::SeqCst);
    result
}

/// Ends the process if the event reader still runs after a hangup.
fn end_when_stuck() {
    while !is_hung_up() {}
    // The reader can be busy with the last input, so give it time before each check.
    while {
        std::thread::sleep(READING_TAKES);
        !READING.load(Ordering::SeqCst)
    } {}
    std::process::exit(interrupt::EXIT_INTERRUPTED);
}

/// Waits for a hangup, with a timeout.
fn is_hung_up() -> bool {
    let stdin = io::stdin();
    // No requested events: `poll` still reports POLLHUP.
    let mut ends = [PollFd::new(&stdin, PollFlags::empty())];
    let limit = Timespec {
        tv_sec: 3600,
        tv_nsec: 0,
    };
    rustix::event::poll(&mut ends, Some(&limit)).is_ok_and(|count| count > 0)
}

/// Returns whether a key or resize arrives within `patience`.
pub fn has_more(patience: Duration) -> io::Result<bool> {
    Ok(!is_gone(Duration::ZERO) && reading(|| event::poll(patience))?)
}

/// Waits for input. Returns whether the terminal has hung up.
fn is_gone(patience: Duration) -> bool {
    let stdin = io::stdin();
    let mut ends = [PollFd::new(&stdin, PollFlags::IN)];
    let limit = Timespec::try_from(patience).ok();
    let hang_up = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    rustix::event::poll(&mut ends, limit.as_ref()).is_ok() && ends[0].revents().intersects(hang_up)
}

/// Discards keys typed before a question was visible, so they can't answer it.
pub fn forget_typed() -> io::Result<()> {
    let _raw = RawMode::enter()?;
    // Pending input in the kernel, then in the event reader.
    tcflush(io::stdin(), QueueSelector::IFlush)?;
    while has_more(Duration::ZERO)? {
        reading(event::read)?;
    }
    Ok(())
}

/// Discards input that arrived together with a key, and returns whether there was any. For keys that
/// a library read instead of the event reader.
pub fn discard_input() -> io::Result<bool> {
    let stdin = io::stdin();
    let mut ends = [PollFd::new(&stdin, PollFlags::IN)];
    let is_waiting = rustix::event::poll(&mut ends, Timespec::try_from(BURST).ok().as_ref())? > 0;
    if is_waiting {
        tcflush(&stdin, QueueSelector::IFlush)?;
    }
    Ok(is_waiting)
}

/// Detects keys that arrive together with others. Such a key must not approve a plan: it can be part of
/// a text that was meant for another prompt.
#[derive(Debug, Default)]
pub struct BurstGuard {
    /// More input was waiting when the last key had been handled.
    is_in_burst: bool,
}

impl BurstGuard {
    /// Returns whether a key that was just read came alone. Discards the rest of a burst.
    pub fn is_alone(&mut self) -> io::Result<bool> {
        let is_first = !std::mem::take(&mut self.is_in_burst);
        let is_last = !has_more(BURST)?;
        if !is_last {
            forget_typed()?;
        }
        Ok(is_first && is_last)
    }

    /// Like [`BurstGuard::is_alone`], but also `true` for a key and Enter: a `y` as a line.
    pub fn is_alone_or_line(&mut self) -> io::Result<bool> {
        let is_first = !self.is_in_burst;
        if is_first && has_more(BURST)? && next_key()? != Key::Enter {
            self.is_in_burst = true;
        }
        self.is_alone()
    }

    /// Records whether more input followed a key that did not decide anything.
    pub fn take(&mut self) -> io::Result<()> {
        self.is_in_burst = has_more(Duration::ZERO)?;
        Ok(())
    }
}

/// Leaves all modes. Idempotent.
pub fn restore() {
    let mut out = Screen;
    leave_full();
    if RAW.swap(false, Ordering::SeqCst) {
        let _ = execute!(out, DisableBracketedPaste);
        let _ = disable_raw_mode();
    }
    let _ = out.flush();
}

/// Suspends the program as ctrl-z does. Restores the modes once it continues.
pub fn suspend() -> io::Result<()> {
    let full = FULL.load(Ordering::SeqCst);
    let raw = RAW.load(Ordering::SeqCst);
    restore();

    // Stop the whole process group, as the terminal does: with `git teddy`, git is the parent and
    // must stop, too.
    kill_current_process_group(Signal::TSTP)?;
    std::thread::sleep(STOPPING);

    // The caller redraws anyway.
    interrupt::take_continued();
    enter_again(raw, full)
}

/// Enters modes again after another program could have changed the terminal.
fn enter_again(raw: bool, full: bool) -> io::Result<()> {
    if raw {
        // crossterm would do nothing: it still believes that raw mode is on.
        disable_raw_mode()?;
        enter_raw()?;
    }

    if full {
        enter_full()?;
    }
    Ok(())
}

impl RawMode {
    pub fn enter() -> io::Result<RawMode> {
        panic::clean_up_with(restore);
        let is_outermost = !RAW.load(Ordering::SeqCst);
        if is_outermost {
            enter_raw()?;
        }
        Ok(RawMode { is_outermost })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        if self.is_outermost {
            restore();
        }
    }
}

impl Full {
    pub fn enter() -> io::Result<Full> {
        let raw = RawMode::enter()?;
        enter_full()?;
        let screen = ratatui::Terminal::new(CrosstermBackend::new(BufWriter::new(Screen)))?;
        Ok(Full {
            screen: ManuallyDrop::new(screen),
            burst: BurstGuard::default(),
            _raw: raw,
        })
    }

    pub fn area(&self) -> io::Result<Rect> {
        let size = self.screen.size()?;
        Ok(Rect::new(0, 0, size.width, size.height))
    }

    pub fn draw(&mut self, render: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        // A key that is already waiting was typed before this was visible.
        self.burst.take()?;
        self.screen.draw(render).map(drop)
    }

    /// Waits for the next key, and handles the keys of [`Full::handle`].
    pub fn next_key(&mut self) -> io::Result<Key> {
        let key = next_key()?;
        self.handle(&key)?;
        Ok(key)
    }

    /// Returns whether the key of [`Full::next_key`] came alone, so that it can approve something.
    pub fn is_alone(&mut self) -> io::Result<bool> {
        self.burst.is_alone()
    }

    /// Handles the keys that mean the same on every screen: ctrl-z suspends the program; ctrl-l, a
    /// resize, and a stop from outside make the next draw complete.
    pub fn handle(&mut self, key: &Key) -> io::Result<()> {
        match key {
            Key::Ctrl('z') => suspend()?,
            Key::Ctrl('l') | Key::Resize(..) | Key::Continued => {}
            _ => return Ok(()),
        }
        self.renew()
    }

    /// Discards the screen contents and adopts the current size. The next draw is complete.
    pub fn renew(&mut self) -> io::Result<()> {
        // Not `Terminal::clear`: it queries the cursor position, which some terminals never answer.
        execute!(Screen, Clear(ClearType::All))?;
        let screen = ratatui::Terminal::new(CrosstermBackend::new(BufWriter::new(Screen)))?;
        let old = mem::replace(&mut self.screen, ManuallyDrop::new(screen));
        drop(ManuallyDrop::into_inner(old));
        Ok(())
    }

    /// Leaves the full screen for prompts, and redraws afterwards. Discards keys that were typed while
    /// an editor ran: they must not approve its changes.
    pub fn outside_full_screen<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        leave_full();
        let result = work();
        enter_full()?;
        self.renew()?;
        forget_typed()?;
        Ok(result)
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        leave_full();
    }
}

/// Makes a line feed start at the left again. dialoguer expects that, and raw mode turns it off.
pub fn keep_line_ends() -> io::Result<()> {
    let mut modes = tcgetattr(io::stdin())?;
    modes.output_modes |= OutputModes::OPOST;
    Ok(tcsetattr(io::stdin(), OptionalActions::Now, &modes)?)
}

/// Restores the terminal while another program uses it.
pub fn lend<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let (raw, full) = (RAW.load(Ordering::SeqCst), FULL.load(Ordering::SeqCst));
    restore();
    let result = work();
    enter_again(raw, full)?;
    Ok(result)
}

fn enter_raw() -> io::Result<()> {
    enable_raw_mode()?;
    RAW.store(true, Ordering::SeqCst);
    execute!(Screen, EnableBracketedPaste)
}

fn enter_full() -> io::Result<()> {
    FULL.store(true, Ordering::SeqCst);
    execute!(Screen, EnterAlternateScreen, Hide)
}

fn leave_full() {
    if FULL.swap(false, Ordering::SeqCst) {
        let _ = execute!(Screen, LeaveAlternateScreen, Show);
    }
}

#[cfg(test)]
mod tests;
