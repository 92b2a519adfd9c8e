//! EXECUTE: a script run by a shell, watched until nothing of it is left.
//!
//! The script is a file given to `sh`, in a session of its own, without input. Output and error
//! output come through one pipe in the order in which they were written. The time limit and an
//! interrupt end it: TERM, and KILL for what is left after [`GRACE`]. Whatever the script started
//! ends with it, so that it can neither hold the turn open nor write into the next one; a
//! supervisor ([`super::supervisor`]) sees to that, even if this process is killed.

mod capture;
mod environment;
mod interpreter;
mod stragglers;

use std::ffi::OsString;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;

pub use super::supervisor::GRACE;
pub use capture::CapturedOutput;
pub use environment::may_set;
use interpreter::DEFAULT_SHELL;
pub use interpreter::interpreter;
pub use stragglers::end_orphans;

use super::supervisor::{
    self, CommandEnding, CommandOutputs, Launcher, Supervisor, SupervisorMessage,
};
use super::temporary::temporary_folder;
use super::{interrupt, overlay, sandbox};
pub use capture::Capture;
pub(super) use environment::CommandEnvironment;
pub(super) use stragglers::{Marker, VARIABLE};

/// How long the supervisor may take to end all after it was told to.
const PATIENCE: Duration = Duration::from_secs(15);
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
    /// What starts the shell, in a sandbox or not; without one this program does, and restricts
    /// nothing.
    pub launcher: Option<Launcher>,
}

/// What became of a script.
#[derive(Debug)]
pub struct FinishedScript {
    /// How it ended.
    pub end: ScriptEnd,
    /// What it wrote.
    pub output: CapturedOutput,
    /// The processes that could not be ended. The files cannot be believed while they live.
    pub left: Vec<String>,
}

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptEnd {
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

impl FinishedScript {
    /// Returns what is said of a script that did not begin.
    fn not_started(why: String) -> FinishedScript {
        FinishedScript {
            end: ScriptEnd::NotStarted(why),
            output: CapturedOutput::default(),
            left: Vec::new(),
        }
    }
}

impl ScriptEnd {
    /// Returns the exit code as a shell would give it.
    pub fn code(&self) -> i32 {
        match self {
            ScriptEnd::Exited(code) => *code,
            ScriptEnd::Signaled(signal) => 128 + signal,
            ScriptEnd::TimedOut(_) => EXIT_TIMED_OUT,
            ScriptEnd::Interrupted => interrupt::EXIT_INTERRUPTED,
            ScriptEnd::NotStarted(_) => EXIT_NOT_STARTED,
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
            shell: vec![DEFAULT_SHELL.to_owned()],
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
/// error but [`ScriptEnd::NotStarted`].
pub fn run(script: &Script, output: &mut dyn FnMut(&[u8])) -> io::Result<FinishedScript> {
    run_until(script, &interrupt::flag(), output)
}

/// Runs a script until it ends or the flag is set; fails where [`run`] does.
///
/// # Errors
/// As for [`run`].
pub fn run_until(
    script: &Script,
    stop: &AtomicBool,
    output: &mut dyn FnMut(&[u8]),
) -> io::Result<FinishedScript> {
    let words = match interpreter::words(&script.text, &script.shell) {
        Ok(words) => words,
        Err(why) => return Ok(FinishedScript::not_started(why)),
    };

    if !seen(script).is_dir() {
        let folder = script.cwd.display();
        return Ok(FinishedScript::not_started(format!(
            "the directory `{folder}` does not exist"
        )));
    }

    let launcher = match &script.launcher {
        Some(launcher) => launcher.clone(),
        None => Launcher::new(None)?,
    };
    let scratch = ScriptFiles::new(&script.text)?;
    let mut capture = Capture::new(script.capture);
    let running = Running::start(script, launcher, words, &scratch)?;
    let mut sink = |bytes: &[u8]| {
        capture.add(bytes);
        output(bytes);
    };

    let gave_views = supervisor::gives_private_views();
    let (end, left) = running.watch(script.timeout, stop, &mut sink);
    if matches!(end, ScriptEnd::NotStarted(_)) && gave_views && !supervisor::gives_private_views() {
        return run_until(script, stop, output);
    }

    let output = capture.finish();

    let launcher = script.launcher.as_ref();
    let policy = launcher.and_then(|launcher| launcher.policy.as_ref());
    policy.into_iter().for_each(sandbox::sweep);
    Ok(FinishedScript { end, output, left })
}

/// Returns where the folder of a script is for us: it may be in a view that only its command has.
fn seen(script: &Script) -> PathBuf {
    let view = script.launcher.as_ref().and_then(|launcher| launcher.view);
    view.map_or_else(
        || script.cwd.clone(),
        |holder| overlay::within(holder, &script.cwd),
    )
}

/// The files that a script needs while it runs; removed afterwards.
struct ScriptFiles {
    /// The folder, readable by this user only.
    folder: tempfile::TempDir,
}

impl ScriptFiles {
    /// Writes the script's file and makes its folder for temporary files.
    fn new(text: &str) -> io::Result<ScriptFiles> {
        let folder = temporary_folder()?;
        let scratch = ScriptFiles { folder };
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
enum ScriptEvent {
    /// It wrote something.
    Output(Vec<u8>),
    /// Nobody can write any more.
    Closed,
    /// The supervisor says something.
    Said(SupervisorMessage),
}

/// A script that runs. Dropping it ends its processes.
struct Running {
    /// Who ends what it starts.
    supervisor: Supervisor,
    /// What it tells.
    events: Receiver<ScriptEvent>,
}

impl Running {
    /// Starts the shell.
    fn start(
        script: &Script,
        mut launcher: Launcher,
        mut words: Vec<OsString>,
        scratch: &ScriptFiles,
    ) -> io::Result<Running> {
        words.push(scratch.script().into());
        if let Some(policy) = &mut launcher.policy {
            policy.write.push(scratch.temporary());
            policy.read.push(scratch.script());
        }

        let mut command = launcher.command()?;
        let environment = CommandEnvironment {
            keep: &script.keep_env,
            temporary: &scratch.temporary(),
            is_confined: launcher.policy.is_some(),
        };
        environment.give(&mut command);
        command.env(VARIABLE, Marker::new().value());
        let mut order = supervisor::order(&launcher, words, &script.cwd);
        order.variables.clone_from(&script.env);

        // One pipe for both keeps the order in which it writes.
        let (reader, writer) = io::pipe()?;
        let outputs = CommandOutputs {
            stdout: writer.try_clone()?,
            stderr: writer,
        };
        let running = Supervisor::start(command, &order, outputs)?;
        Running::observe(running, reader)
    }

    /// Begins to listen.
    fn observe(supervisor: Supervisor, reader: io::PipeReader) -> io::Result<Running> {
        let (sender, events) = sync_channel(64);
        let said = sender.clone();
        std::thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || forward(reader, &sender))?;
        supervisor.listen(move |message| drop(said.send(ScriptEvent::Said(message))))?;
        Ok(Running { supervisor, events })
    }

    /// Waits for the end, whichever it is, and until nobody is left; returns who is.
    fn watch(
        mut self,
        timeout: Option<Duration>,
        stop: &AtomicBool,
        sink: &mut dyn FnMut(&[u8]),
    ) -> (ScriptEnd, Vec<String>) {
        let deadline = timeout.and_then(|limit| Instant::now().checked_add(limit));
        let mut told = ScriptProgress::default();
        let forced = loop {
            let now = Instant::now();
            if stop.load(Ordering::SeqCst) {
                break Some(ScriptEnd::Interrupted);
            }

            if let Some(limit) = timeout.filter(|_| deadline.is_some_and(|end| now >= end)) {
                break Some(ScriptEnd::TimedOut(limit));
            }

            if told.end.is_some() || told.is_over() {
                break None;
            }

            let wait = deadline.map_or(TICK, |end| TICK.min(end - now));
            self.hear(wait, &mut told, sink);
        };

        if forced.is_some() {
            self.supervisor.end();
        }

        self.drain(PATIENCE, &mut told, sink, ScriptProgress::is_over);
        let left = match told.gone.take() {
            Some(left) => left,
            None => self.supervisor.replace(),
        };
        self.drain(DRAIN, &mut told, sink, |told| told.closed);

        // Whose supervisor was killed was killed itself just now.
        let killed = ScriptEnd::Signaled(Signal::KILL.as_raw());
        (forced.or(told.end).unwrap_or(killed), left)
    }

    /// Hears events until enough is told or the time is over.
    fn drain(
        &mut self,
        limit: Duration,
        told: &mut ScriptProgress,
        sink: &mut dyn FnMut(&[u8]),
        is_enough: impl Fn(&ScriptProgress) -> bool,
    ) {
        let deadline = Instant::now() + limit;
        while !is_enough(told)
            && let Some(left) = deadline.checked_duration_since(Instant::now())
        {
            self.hear(left, told, sink);
        }
    }

    /// Waits for one event.
    fn hear(&mut self, limit: Duration, told: &mut ScriptProgress, sink: &mut dyn FnMut(&[u8])) {
        match self.events.recv_timeout(limit) {
            Ok(ScriptEvent::Output(bytes)) => sink(&bytes),
            Ok(ScriptEvent::Closed) => told.closed = true,
            Ok(ScriptEvent::Said(message)) => told.note(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => (told.closed, told.lost) = (true, true),
        }
    }
}

/// What is known of a running script.
#[derive(Default)]
struct ScriptProgress {
    /// How the shell ended.
    end: Option<ScriptEnd>,
    /// Nobody but these is left.
    gone: Option<Vec<String>>,
    /// The supervisor ended without a word.
    lost: bool,
    /// Nobody writes any more.
    closed: bool,
}

impl ScriptProgress {
    /// Takes in what the supervisor says.
    fn note(&mut self, message: SupervisorMessage) {
        match message {
            SupervisorMessage::Started => {}
            SupervisorMessage::Halfway(why) => {
                supervisor::give_no_private_views();
                self.note(SupervisorMessage::Refused(why));
            }
            SupervisorMessage::Refused(why) => {
                self.end = Some(ScriptEnd::NotStarted(why));
                self.gone = Some(Vec::new());
            }
            SupervisorMessage::Ended(CommandEnding::Exited(code)) => {
                self.end = Some(ScriptEnd::Exited(code))
            }
            SupervisorMessage::Ended(CommandEnding::Signaled(signal)) => {
                self.end = Some(ScriptEnd::Signaled(signal))
            }
            SupervisorMessage::Gone(left) => self.gone = Some(left),
            SupervisorMessage::Lost => self.lost = true,
        }
    }

    /// Returns whether the supervisor has nothing more to say.
    fn is_over(&self) -> bool {
        self.gone.is_some() || self.lost
    }
}

/// Sends on what comes through the pipe.
fn forward(mut reader: impl Read, events: &SyncSender<ScriptEvent>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match reader.read(&mut buffer) {
            Ok(length @ 1..)
                if events
                    .send(ScriptEvent::Output(buffer[..length].to_vec()))
                    .is_ok() => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }

    let _ = events.send(ScriptEvent::Closed);
}
