//! The terminal's modes: raw, full screen, and always back to what the person had.
//!
//! Modes are left when their guard is dropped, before a panic prints, and around a suspension; a
//! program that was stopped from outside enters them again when it goes on.

use std::io::{self, BufWriter, Write};
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
use ratatui::prelude::CrosstermBackend;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{QueueSelector, tcflush};

use super::key::Key;
use super::room::TextArea;
use crate::host::screen::{Screen, is_stderr, is_stdout};
use crate::host::{fault, interrupt};

/// How long a wait for a key goes on before the wish to end is looked at.
const PATIENCE: Duration = Duration::from_millis(100);
/// What a signal to the own process group may need to arrive.
const STOPPING: Duration = Duration::from_millis(20);
/// The room of a terminal that does not tell its size.
const UNKNOWN: TextArea = TextArea {
    width: 80,
    height: 24,
};

/// How long the event reader may need for what the terminal has sent.
const READING_TAKES: Duration = Duration::from_secs(1);

/// Whether the event reader is at work.
static READING: AtomicBool = AtomicBool::new(false);
/// Starts the watch over it once.
static WATCH: Once = Once::new();
/// Whether keys come one by one.
static RAW: AtomicBool = AtomicBool::new(false);
/// Whether the other screen is shown.
static FULL: AtomicBool = AtomicBool::new(false);
/// Sets the panic hook once.
static HOOK: Once = Once::new();

/// The mode in which keys come one by one; left when the outermost of them is dropped.
///
/// What is typed between two questions must find it: else the terminal makes another key of enter.
#[derive(Debug)]
pub struct RawMode {
    /// Whether this one entered it.
    is_outermost: bool,
}

/// A full screen of its own; left when it is dropped.
pub struct Full {
    /// What draws on it.
    pub screen: ratatui::Terminal<CrosstermBackend<BufWriter<Screen>>>,
    /// The mode below.
    _raw: RawMode,
}

/// Returns the width of the screen on which words are read; nothing where there is none.
pub fn stderr_width() -> Option<usize> {
    is_stderr().then(|| room().width)
}

/// Returns the width of the screen on which results are read; nothing where there is none.
pub fn stdout_width() -> Option<usize> {
    is_stdout().then(|| room().width)
}

/// Returns the size of the terminal.
pub fn room() -> TextArea {
    match size() {
        Ok((width, height)) if width > 0 && height > 0 => TextArea {
            width: usize::from(width),
            height: usize::from(height),
        },
        _ => UNKNOWN,
    }
}

/// Waits for the next key.
///
/// # Errors
/// The terminal is gone.
pub fn next_key() -> io::Result<Key> {
    loop {
        if let Some(key) = key_within(PATIENCE)? {
            return Ok(key);
        }
    }
}

/// Waits so long for the next key.
///
/// # Errors
/// The terminal is gone.
pub fn key_within(patience: Duration) -> io::Result<Option<Key>> {
    // Keys that came together are read together, and nothing more may come after them.
    for patience in [Duration::ZERO, patience] {
        if interrupt::requested() {
            return Ok(Some(Key::Closed));
        }

        // A terminal that is gone reads as empty for ever, and the event reader would never return.
        if is_gone(patience) {
            return Ok(Some(Key::Closed));
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

/// Returns what came, if anything did.
fn read_event() -> io::Result<Option<event::Event>> {
    match event::poll(Duration::ZERO)? {
        true => event::read().map(Some),
        false => Ok(None),
    }
}

/// Uses the event reader.
///
/// It never returns from a terminal that closes just then, as it reads an empty terminal again and
/// again. Then there is nobody left to be asked, nothing was begun yet, and the program ends here.
fn reading<T>(work: impl FnOnce() -> T) -> T {
    WATCH.call_once(|| {
        // Without a thread for it the program spins in that case, as it would without this.
        let _ = std::thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(end_when_stuck);
    });
    READING.store(true, Ordering::SeqCst);

    // Lets a test close the terminal here.
    fault::emulated("before-reading");
    let result = work();
    READING.store(false, Ordering::SeqCst);
    result
}

/// Ends the program if the event reader goes on when the terminal is gone.
fn end_when_stuck() {
    while !is_hung_up() {}
    while {
        std::thread::sleep(READING_TAKES);
        !READING.load(Ordering::SeqCst)
    } {}
    std::process::exit(interrupt::EXIT_INTERRUPTED);
}

/// Waits until the terminal is gone; wakes up now and then.
fn is_hung_up() -> bool {
    let stdin = io::stdin();
    let mut ends = [PollFd::new(&stdin, PollFlags::empty())];
    let limit = Timespec {
        tv_sec: 3600,
        tv_nsec: 0,
    };
    rustix::event::poll(&mut ends, Some(&limit)).is_ok_and(|count| count > 0)
}

/// Waits so long for the next key or another size, and tells whether one has come.
///
/// # Errors
/// The terminal is gone.
pub fn has_more(patience: Duration) -> io::Result<bool> {
    Ok(!is_gone(Duration::ZERO) && reading(|| event::poll(patience))?)
}

/// Waits for something to read, and returns whether the terminal was closed meanwhile.
fn is_gone(patience: Duration) -> bool {
    let stdin = io::stdin();
    let mut ends = [PollFd::new(&stdin, PollFlags::IN)];
    let limit = Timespec::try_from(patience).ok();
    let closed = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    rustix::event::poll(&mut ends, limit.as_ref()).is_ok() && ends[0].revents().intersects(closed)
}

/// Forgets what was typed before anything was asked, so that it cannot answer unseen.
///
/// # Errors
/// The terminal is gone.
pub fn forget_typed() -> io::Result<()> {
    let _raw = RawMode::enter()?;
    tcflush(io::stdin(), QueueSelector::IFlush)?;
    while has_more(Duration::ZERO)? {
        reading(event::read)?;
    }
    Ok(())
}

/// Leaves every mode. Doing so again does nothing.
pub fn restore() {
    let mut out = Screen;
    leave_full();
    if RAW.swap(false, Ordering::SeqCst) {
        let _ = execute!(out, DisableBracketedPaste);
        let _ = disable_raw_mode();
    }
    let _ = out.flush();
}

/// Stops the program as ctrl-z does; returns when it goes on, in the modes that it had.
///
/// # Errors
/// The terminal is gone.
pub fn suspend() -> io::Result<()> {
    let full = FULL.load(Ordering::SeqCst);
    let raw = RAW.load(Ordering::SeqCst);
    restore();

    // The whole group, as the terminal would: `git teddy` has git above it, which must stop too.
    kill_current_process_group(Signal::TSTP)?;
    std::thread::sleep(STOPPING);

    // The caller draws anew in any case.
    interrupt::take_continued();
    enter_again(raw, full)
}

/// Enters modes again, whatever the shell made of the terminal meanwhile.
fn enter_again(raw: bool, full: bool) -> io::Result<()> {
    if raw {
        // What the library remembers is older than what the shell left.
        disable_raw_mode()?;
        enter_raw()?;
    }

    if full {
        enter_full()?;
    }
    Ok(())
}

impl RawMode {
    /// Enters the mode.
    ///
    /// # Errors
    /// There is no terminal.
    pub fn enter() -> io::Result<RawMode> {
        restore_before_panics();
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
    /// Enters the full screen.
    ///
    /// # Errors
    /// There is no terminal.
    pub fn enter() -> io::Result<Full> {
        let raw = RawMode::enter()?;
        enter_full()?;
        let screen = ratatui::Terminal::new(CrosstermBackend::new(BufWriter::new(Screen)))?;
        Ok(Full { screen, _raw: raw })
    }

    /// Stops the program as ctrl-z does, and draws anew afterwards.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn suspend(&mut self) -> io::Result<()> {
        suspend()?;
        self.renew()
    }

    /// Draws everything anew with the next drawing, on a screen of whatever size it has now.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn renew(&mut self) -> io::Result<()> {
        // Not `clear`: it asks the terminal where the cursor stands, and not each answers.
        execute!(Screen, Clear(ClearType::All))?;
        self.screen = ratatui::Terminal::new(CrosstermBackend::new(BufWriter::new(Screen)))?;
        Ok(())
    }

    /// Leaves the full screen for questions below each other, and draws anew afterwards.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn aside<T>(&mut self, work: impl FnOnce() -> T) -> io::Result<T> {
        leave_full();
        let result = work();
        enter_full()?;
        self.renew()?;
        Ok(result)
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        leave_full();
    }
}

/// Gives the terminal back while another program has it.
///
/// # Errors
/// The terminal is gone.
pub fn lend<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let (raw, full) = (RAW.load(Ordering::SeqCst), FULL.load(Ordering::SeqCst));
    restore();
    let result = work();
    enter_again(raw, full)?;
    Ok(result)
}

/// Enters raw mode.
fn enter_raw() -> io::Result<()> {
    enable_raw_mode()?;
    RAW.store(true, Ordering::SeqCst);
    execute!(Screen, EnableBracketedPaste)
}

/// Enters the other screen.
fn enter_full() -> io::Result<()> {
    FULL.store(true, Ordering::SeqCst);
    execute!(Screen, EnterAlternateScreen, Hide)
}

/// Leaves the other screen.
fn leave_full() {
    if FULL.swap(false, Ordering::SeqCst) {
        let _ = execute!(Screen, LeaveAlternateScreen, Show);
    }
}

/// Has a panic leave every mode before it prints.
fn restore_before_panics() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
    });
}

#[cfg(test)]
mod tests;
