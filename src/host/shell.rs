//! EXECUTE: a script run by a shell, watched until nothing of it is left.
//!
//! The script is a file given to `sh`, in its own process group, without input. Output and error
//! output come through one pipe in the order in which they were written. The time limit and an
//! interrupt end the whole group: TERM, and KILL for what is left after [`GRACE`]. A background
//! process ends with its script, so it cannot hold the turn open.

mod capture;
mod environment;
mod stragglers;

use std::io::{self, Read, Write as _};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

pub use capture::Captured;
pub use environment::may_set;
pub use stragglers::end_orphans;

use super::file::reason;
use super::sandbox::Launcher;
use super::{interrupt, process, sandbox};
use capture::Capture;
use stragglers::Marker;

/// How long a script may take to end after TERM.
pub const GRACE: Duration = Duration::from_secs(2);
/// How long output is still read after everything was killed.
const DRAIN: Duration = Duration::from_secs(1);
/// How often the interrupt flag is looked at.
const TICK: Duration = Duration::from_millis(50);
/// The exit code of a script that ran out of time, as `timeout` has it.
pub const EXIT_TIMED_OUT: i32 = 124;
/// The exit code of a script that could not be started, as shells have it.
pub const EXIT_NOT_STARTED: i32 = 127;

/// A script to run.
#[derive(Debug, Clone)]
pub struct Script {
    /// The text, of any length.
    pub text: String,
    /// The folder in which it runs.
    pub cwd: PathBuf,
    /// Variables besides the inherited ones; these win.
    pub env: Vec<(String, String)>,
    /// The shell and its options; the script's file comes behind them.
    pub shell: Vec<String>,
    /// The time limit.
    pub timeout: Option<Duration>,
    /// How many bytes of output are kept, half from the beginning and half from the end.
    pub capture: usize,
    /// Inherited variables that pass although their name says secret or git.
    pub keep_env: Vec<String>,
    /// The program that starts the shell, in a sandbox or not; without one the shell is started
    /// directly.
    pub launcher: Option<Launcher>,
}

/// What became of a script.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// What it wrote.
    pub output: Captured,
    /// What opens what the sandbox refused, or why what was said about it is harmless.
    pub hint: Option<&'static str>,
}

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// Killed by a signal that was not ours.
    Signaled(i32),
    /// Killed after its time limit.
    TimedOut(Duration),
    /// Killed because the user asked for it.
    Interrupted,
    /// It did not begin; why.
    NotStarted(String),
}

impl End {
    /// Returns the exit code as a shell would give it.
    pub fn code(&self) -> i32 {
        match self {
            End::Exited(code) => *code,
            End::Signaled(signal) => 128 + signal,
            End::TimedOut(_) => EXIT_TIMED_OUT,
            End::Interrupted => interrupt::EXIT_INTERRUPTED,
            End::NotStarted(_) => EXIT_NOT_STARTED,
        }
    }
}

impl Script {
    /// Returns a script for `sh` without time limit that keeps 1 MiB of output.
    pub fn new(text: impl Into<String>, cwd: impl Into<PathBuf>) -> Script {
        Script {
            text: text.into(),
            cwd: cwd.into(),
            env: Vec::new(),
            shell: vec!["sh".to_owned()],
            timeout: None,
            capture: 1 << 20,
            keep_env: Vec::new(),
            launcher: None,
        }
    }
}

/// Runs a script and hands on its output as it comes.
///
/// # Errors
/// The system has no temporary file, pipe or thread for it. A script that cannot begin is no
/// error but [`End::NotStarted`].
pub fn run(script: &Script, output: &mut dyn FnMut(&[u8])) -> io::Result<Finished> {
    run_until(script, &interrupt::flag(), output)
}

/// Runs a script until it ends or the flag is set; fails where [`run`] does.
pub fn run_until(
    script: &Script,
    stop: &AtomicBool,
    output: &mut dyn FnMut(&[u8]),
) -> io::Result<Finished> {
    let finished = |end, output| {
        Ok(Finished {
            end,
            output,
            hint: None,
        })
    };
    if !script.cwd.is_dir() {
        return finished(
            End::NotStarted(format!(
                "the folder `{}` does not exist",
                script.cwd.display()
            )),
            Captured::default(),
        );
    }
    let scratch = Scratch::new(&script.text)?;
    let mut capture = Capture::new(script.capture);
    let running = match Running::start(script, &scratch)? {
        Ok(running) => running,
        Err(e) => {
            return finished(
                End::NotStarted(format!(
                    "cannot start `{}`: {}",
                    script.shell.join(" "),
                    reason(&e)
                )),
                Captured::default(),
            );
        }
    };
    let mut sink = |bytes: &[u8]| {
        capture.add(bytes);
        output(bytes);
    };
    let end = running.watch(script.timeout, stop, &mut sink)?;
    let (policy, output) = (
        script
            .launcher
            .as_ref()
            .and_then(|launcher| launcher.policy.as_ref()),
        capture.finish(),
    );
    policy.into_iter().for_each(sandbox::sweep);
    let hint = policy.and_then(|policy| policy.remark(end.code(), &output.joined()));
    Ok(Finished { end, output, hint })
}

/// The files that a script needs while it runs; removed afterwards.
struct Scratch {
    /// The folder, readable by this user only.
    folder: tempfile::TempDir,
}

impl Scratch {
    /// Writes the script's file and makes its folder for temporary files.
    fn new(text: &str) -> io::Result<Scratch> {
        let folder = tempfile::Builder::new().prefix("teddy-").tempdir()?;
        let scratch = Scratch { folder };
        let mut file = std::fs::File::create(scratch.script())?;
        file.write_all(text.as_bytes())?;
        std::fs::create_dir(scratch.temporary())?;
        Ok(scratch)
    }

    /// Returns the script's file.
    fn script(&self) -> PathBuf {
        self.folder.path().join("execute.sh")
    }

    /// Returns the folder for the script's own temporary files.
    fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }
}

/// What a running script tells.
enum Event {
    /// It wrote something.
    Output(Vec<u8>),
    /// Nobody can write any more.
    Closed,
    /// The shell has ended; it is not reaped yet, so its group's number is still its own.
    Exited,
}

/// A script that runs. Dropping it ends its processes.
struct Running {
    /// The shell.
    child: Child,
    /// The shell's number and its group's.
    pid: Pid,
    /// How processes that left the group are found.
    marker: Marker,
    /// What it tells.
    events: Receiver<Event>,
}

impl Running {
    /// Starts the shell. The inner error says that it cannot be started.
    fn start(script: &Script, scratch: &Scratch) -> io::Result<io::Result<Running>> {
        let (reader, writer) = io::pipe()?;
        let marker = Marker::new();
        let Some((shell, options)) = script.shell.split_first() else {
            return Ok(Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "no shell is given",
            )));
        };
        let mut command = match &script.launcher {
            Some(launcher) => launcher.command(shell, &scratch.temporary())?,
            None => process::command(shell),
        };
        command
            .args(options)
            .arg(scratch.script())
            .current_dir(&script.cwd);
        environment::apply(&mut command, script, &scratch.temporary());
        command.env(stragglers::VARIABLE, marker.value());
        command
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer);
        if script.launcher.is_none() {
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        let spawned = command.spawn();
        // The command holds the pipe's writing ends; while they live the pipe does not close.
        drop(command);
        Ok(spawned.and_then(|child| Running::observe(child, reader, marker)))
    }

    /// Begins to listen to a child.
    fn observe(child: Child, reader: io::PipeReader, marker: Marker) -> io::Result<Running> {
        let pid = Pid::from_child(&child);
        let (sender, events) = sync_channel(64);
        let running = Running {
            child,
            pid,
            marker,
            events,
        };
        let exits = sender.clone();
        std::thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || forward(reader, &sender))?;
        std::thread::Builder::new()
            .name("exit".to_owned())
            .spawn(move || announce_exit(pid, &exits))?;
        Ok(running)
    }

    /// Waits for the end, whichever it is, and leaves no process behind.
    fn watch(
        mut self,
        timeout: Option<Duration>,
        stop: &AtomicBool,
        sink: &mut dyn FnMut(&[u8]),
    ) -> io::Result<End> {
        let deadline = timeout.and_then(|limit| Instant::now().checked_add(limit));
        let forced = loop {
            let now = Instant::now();
            if stop.load(Ordering::SeqCst) {
                break Some(End::Interrupted);
            }
            if let Some(limit) = timeout.filter(|_| deadline.is_some_and(|end| now >= end)) {
                break Some(End::TimedOut(limit));
            }
            let wait = deadline.map_or(TICK, |end| TICK.min(end - now));
            match self.events.recv_timeout(wait) {
                Ok(Event::Output(bytes)) => sink(&bytes),
                Ok(Event::Exited) => break None,
                Ok(Event::Closed)
                | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        };
        if forced.is_some() {
            self.signal(Signal::TERM);
            self.drain(Instant::now() + GRACE, Until::Exited, sink);
        }
        self.kill();
        self.drain(Instant::now() + DRAIN, Until::Closed, sink);
        let status = self.child.wait()?;
        Ok(forced.unwrap_or_else(|| ended(status)))
    }

    /// Hands on output until what is waited for has come or the time is over.
    fn drain(&mut self, deadline: Instant, until: Until, sink: &mut dyn FnMut(&[u8])) {
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            match self.events.recv_timeout(left) {
                Ok(Event::Output(bytes)) => sink(&bytes),
                Ok(Event::Exited) if until == Until::Exited => return,
                Ok(Event::Closed) if until == Until::Closed => return,
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    /// Sends a signal to the group, and wakes what is stopped.
    fn signal(&self, signal: Signal) {
        // A launcher that has not come to making the group is alone. Whoever is gone already is
        // where we want it.
        if rustix::process::kill_process_group(self.pid, signal).is_err() {
            let _ = rustix::process::kill_process(self.pid, signal);
        }
        let _ = rustix::process::kill_process_group(self.pid, Signal::CONT);
    }

    /// Kills the group and what left it.
    fn kill(&self) {
        self.signal(Signal::KILL);
        self.marker.kill_all();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After a normal end this process is reaped and its number may belong to another one.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// What output is read for.
#[derive(PartialEq, Eq)]
enum Until {
    /// The shell's end.
    Exited,
    /// The end of all who could write.
    Closed,
}

/// Sends on what comes through the pipe.
fn forward(mut reader: impl Read, events: &SyncSender<Event>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match reader.read(&mut buffer) {
            Ok(length @ 1..)
                if events
                    .send(Event::Output(buffer[..length].to_vec()))
                    .is_ok() => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    let _ = events.send(Event::Closed);
}

/// Says when a process has ended, without reaping it.
fn announce_exit(pid: Pid, events: &SyncSender<Event>) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(
        rustix::process::waitid(WaitId::Pid(pid), options),
        Err(rustix::io::Errno::INTR)
    ) {}
    let _ = events.send(Event::Exited);
}

/// Returns how a shell ended that was left alone.
fn ended(status: ExitStatus) -> End {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, Some(signal)) => End::Signaled(signal),
        (None, None) => End::Exited(EXIT_NOT_STARTED),
    }
}

#[cfg(test)]
mod tests;
