//! The supervisor: a process between TeDDy and a command that ensures that nothing outlives the
//! command.
//!
//! It is a child subreaper, so every orphan below it becomes its child. When the command ends,
//! TeDDy asks for it, or TeDDy dies, it kills all remaining processes and waits until the kernel
//! reports that it has no child left. If it is killed itself, [`process_tree`] kills the orphans.

mod process_tree;
mod serve;

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use process_tree::Adoption;
pub(super) use process_tree::{register_supervisor, unregister_supervisor};
pub use serve::serve_if_asked;

use super::file::{Root, make_dirs, remove_below, temporary_dir};
use super::sandbox::{Availability, Isolation, Kernel, Policy, availability};
use super::{env, process};
use crate::host::raw::RawText;

/// First argument of the supervisor.
const WORD: &str = "__supervise";

/// How long a supervisor has to start a command, or to kill all processes.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// How long output is still read after all processes have ended.
const DRAIN: Duration = Duration::from_secs(1);

/// How long a command has to exit after TERM.
pub const GRACE: Duration = Duration::from_secs(2);

const TICK: Duration = Duration::from_millis(1);

/// Buffered pieces of output. The command blocks when the channel is full.
const EVENTS: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The supervisor program and its first arguments. It must call [`serve_if_asked`].
    pub command: Vec<OsString>,
    /// Sandbox policy. `None` does not restrict the command.
    pub policy: Option<Policy>,
    /// A file that stays locked until all processes of the command have ended, even if TeDDy is
    /// killed.
    pub lock: Option<PathBuf>,
    /// The process that holds the overlay in which the command runs.
    pub overlay_holder: Option<u32>,
}

impl Launcher {
    /// Returns a launcher that uses this program. It has no sandbox if the machine cannot enforce
    /// any.
    pub fn new(policy: Option<Policy>) -> io::Result<Launcher> {
        let enforceable = !matches!(availability(), Availability::None(_));
        Ok(Launcher {
            command: vec![env::current_exe()?.into()],
            policy: policy.filter(|_| enforceable),
            lock: None,
            overlay_holder: None,
        })
    }

    /// Sets the file to lock while processes of the command run.
    pub fn holding(self, lock: PathBuf) -> Launcher {
        Launcher {
            lock: Some(lock),
            ..self
        }
    }

    pub fn with_overlay(self, overlay_holder: Option<u32>) -> Launcher {
        Launcher {
            overlay_holder,
            ..self
        }
    }

    pub(super) fn command(&self) -> io::Result<Command> {
        let (program, first) = self
            .command
            .split_first()
            .ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = process::command(program);
        command.args(first).arg(WORD);
        Ok(command)
    }
}

const TEMPORARY: &str = "tmp";

/// Private directory of a command. Dropping it deletes the directory.
#[derive(Debug)]
pub struct CommandDir {
    dir: TempDir,
}

impl CommandDir {
    pub fn new() -> io::Result<CommandDir> {
        let dir = temporary_dir()?;
        let command_dir = CommandDir { dir };
        make_dirs(&command_dir.temporary())?;
        Ok(command_dir)
    }

    /// Directory for the command's temporary files (`TMPDIR`). The command can write to it.
    pub fn temporary(&self) -> PathBuf {
        self.file(TEMPORARY)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for CommandDir {
    /// Also removes directories that a command closed.
    fn drop(&mut self) {
        let _ =
            Root::open(self.dir.path()).and_then(|root| remove_below(&root, OsStr::new(TEMPORARY)));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputPipes {
    /// Output and error output stay in order, and arrive as output.
    Joined,
    Separate,
}

/// Dropping it kills the command and all its children.
pub(super) struct Supervisor {
    child: Child,
    /// The supervisor kills all processes when this is closed.
    channel: Option<UnixStream>,
    /// While the supervisor runs, its orphans become our children if it is killed.
    _adoption: Adoption,
    events: Receiver<CommandEvent>,
    pub(super) state: CommandState,
}

enum CommandEvent {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// The last process has closed its end of a pipe.
    Eof,
    Message(SupervisorMessage),
}

pub(super) enum SupervisorEvent {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// The state has changed.
    State,
    Timeout,
}

/// What is known about a command.
#[derive(Default)]
pub(super) struct CommandState {
    /// Set once it was started.
    pub(super) started: Option<Isolation>,
    /// Why it was not started: because of the command itself.
    pub(super) refused: Option<String>,
    /// Why it was not started: because the machine failed.
    pub(super) broken: Option<String>,
    ended: Option<CommandEnding>,
    /// Set once all processes have ended: the ones that could not be killed.
    survivors: Option<Vec<String>>,
    is_lost: bool,
    open_outputs: usize,
}

impl Supervisor {
    pub(super) fn start(
        mut command: Command,
        order: &Order,
        pipes: OutputPipes,
    ) -> io::Result<Supervisor> {
        let (out, stdout) = io::pipe()?;
        let (err, stderr) = match pipes {
            OutputPipes::Joined => (None, stdout.try_clone()?),
            OutputPipes::Separate => {
                let (err, stderr) = io::pipe()?;
                (Some(err), stderr)
            }
        };
        let adoption = Adoption::begin();
        let (parent_end, child_end) = UnixStream::pair()?;
        command
            .current_dir("/")
            .stdin(OwnedFd::from(child_end))
            .stdout(stdout)
            .stderr(stderr);
        let child = command.spawn()?;

        // `command` owns copies of the socket and pipes, which would never close.
        drop(command);

        let messages = parent_end.try_clone();
        let (sender, events) = sync_channel(EVENTS);
        let mut supervisor = Supervisor {
            child,
            channel: Some(parent_end),
            _adoption: adoption,
            events,
            state: CommandState {
                open_outputs: 1 + usize::from(err.is_some()),
                ..CommandState::default()
            },
        };
        // It creates a session, and would count as an orphan.
        process_tree::register_supervisor(supervisor.child.id());
        supervisor.send(&encode_line(order)?)?;

        read_output(out, sender.clone(), CommandEvent::Stdout)?;
        if let Some(err) = err {
            read_output(err, sender.clone(), CommandEvent::Stderr)?;
        }
        read_messages(messages?, sender)?;
        Ok(supervisor)
    }

    /// Waits up to `limit` for output or a message.
    pub(super) fn receive(&mut self, limit: Duration) -> SupervisorEvent {
        match self.events.recv_timeout(limit) {
            Ok(CommandEvent::Stdout(bytes)) => return SupervisorEvent::Stdout(bytes),
            Ok(CommandEvent::Stderr(bytes)) => return SupervisorEvent::Stderr(bytes),
            Ok(CommandEvent::Eof) => self.state.open_outputs -= 1,
            Ok(CommandEvent::Message(message)) => self.state.note(message),
            Err(RecvTimeoutError::Timeout) => return SupervisorEvent::Timeout,
            Err(RecvTimeoutError::Disconnected) => {
                (self.state.is_lost, self.state.open_outputs) = (true, 0);
            }
        }
        SupervisorEvent::State
    }

    /// Passes on events until `is_enough`, or for `limit`.
    pub(super) fn drain(
        &mut self,
        limit: Duration,
        sink: &mut dyn FnMut(SupervisorEvent),
        is_enough: impl Fn(&CommandState) -> bool,
    ) {
        let deadline = Instant::now() + limit;
        while !is_enough(&self.state)
            && let Some(remaining) = deadline.checked_duration_since(Instant::now())
        {
            sink(self.receive(remaining));
        }
    }

    /// Waits until all processes have ended, and passes on the last events. Returns the processes
    /// that could not be killed.
    pub(super) fn finish(&mut self, sink: &mut dyn FnMut(SupervisorEvent)) -> Vec<String> {
        self.drain(PATIENCE, sink, CommandState::is_over);
        let survivors = match self.state.survivors.take() {
            Some(survivors) => survivors,
            None => self.replace(),
        };
        self.drain(DRAIN, sink, CommandState::is_eof);
        survivors
    }

    /// Sends TERM to the command's group. The supervisor kills all processes after [`GRACE`].
    pub(super) fn end(&mut self) {
        // Fails if the supervisor has died, which is reported as `Lost`.
        let _ = self.send(b"e");
    }

    /// Kills a supervisor that does not respond, and the orphans that it leaves. Returns those that
    /// could not be killed.
    fn replace(&mut self) -> Vec<String> {
        self.channel = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
        process_tree::kill_orphans()
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.channel {
            Some(channel) => channel.write_all(bytes),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl CommandState {
    fn note(&mut self, message: SupervisorMessage) {
        match message {
            SupervisorMessage::Started(isolation) => self.started = Some(isolation),
            SupervisorMessage::Halfway(why) => {
                // Some systems let a process create namespaces and then forbid the mounts. That
                // does not change while we run.
                NO_PRIVATE_MOUNTS.store(true, Ordering::SeqCst);
                self.note(SupervisorMessage::Refused(why));
            }
            SupervisorMessage::Refused(why) => {
                self.refused = Some(why);
                self.survivors = Some(Vec::new());
            }
            SupervisorMessage::Broken(why) => {
                self.broken = Some(why);
                self.survivors = Some(Vec::new());
            }
            SupervisorMessage::Ended(ending) => self.ended = Some(ending),
            SupervisorMessage::Gone(survivors) => self.survivors = Some(survivors),
            SupervisorMessage::Lost => self.is_lost = true,
        }
    }

    /// The command has ended. Its children can still run.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some() || self.is_over()
    }

    /// All processes have ended, or the supervisor has.
    pub(super) fn is_over(&self) -> bool {
        self.survivors.is_some() || self.is_lost
    }

    pub(super) fn is_eof(&self) -> bool {
        self.open_outputs == 0
    }

    pub(super) fn ending(&self) -> CommandEnding {
        // Without a reported ending the supervisor was killed, and the command with it.
        let killed = CommandEnding::Signaled(rustix::process::Signal::KILL.as_raw());
        self.ended.unwrap_or(killed)
    }
}

fn read_output(
    mut pipe: io::PipeReader,
    events: SyncSender<CommandEvent>,
    event: fn(Vec<u8>) -> CommandEvent,
) -> io::Result<()> {
    let read = move || {
        let mut buffer = vec![0; 64 << 10];
        loop {
            match pipe.read(&mut buffer) {
                Ok(length @ 1..) if events.send(event(buffer[..length].to_vec())).is_ok() => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }

        let _ = events.send(CommandEvent::Eof);
    };
    let thread = std::thread::Builder::new().name("output".to_owned());
    thread.spawn(read).map(drop)
}

/// The last message is `Gone`, or `Lost` if the socket was closed.
fn read_messages(channel: UnixStream, events: SyncSender<CommandEvent>) -> io::Result<()> {
    let read = move || {
        let send = |message| drop(events.send(CommandEvent::Message(message)));
        for line in BufReader::new(channel).split(b'\n').map_while(Result::ok) {
            let Ok(message) = serde_json::from_slice(&line) else {
                break;
            };
            let is_last = matches!(message, SupervisorMessage::Gone(_));
            send(message);
            if is_last {
                return;
            }
        }

        send(SupervisorMessage::Lost);
    };
    let thread = std::thread::Builder::new().name("supervisor".to_owned());
    thread.spawn(read).map(drop)
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.channel = None;
        // A working supervisor ends within this time.
        let deadline = Instant::now() + serve::PATIENCE + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                self.replace();
            }
            std::thread::park_timeout(TICK);
        }

        process_tree::unregister_supervisor(self.child.id());
    }
}

/// A private mount failed halfway on this machine.
static NO_PRIVATE_MOUNTS: AtomicBool = AtomicBool::new(false);

pub(super) fn gives_private_mounts() -> bool {
    Kernel::running().namespaces && !NO_PRIVATE_MOUNTS.load(Ordering::SeqCst)
}

pub(super) fn order(launcher: &Launcher, argv: Vec<OsString>, dir: &Path) -> Order {
    Order {
        policy: launcher.policy.clone(),
        kernel: Kernel {
            namespaces: gives_private_mounts(),
            ..Kernel::running().clone()
        },
        words: argv.into_iter().map(Into::into).collect(),
        folder: dir.to_owned().into_os_string().into(),
        variables: Vec::new(),
        input: None,
        lock: launcher
            .lock
            .as_ref()
            .map(|path| path.clone().into_os_string().into()),
        view: launcher.overlay_holder,
    }
}

// Messages between TeDDy and a supervisor, one JSON value per line.
//
// They are sent over a socket, because arguments are limited in size and visible to all users.

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub policy: Option<Policy>,
    /// The kernel features to use for it.
    pub kernel: Kernel,
    /// Path of the program, and its arguments.
    pub words: Vec<RawText>,
    pub folder: RawText,
    /// Variables for the command only, not for the supervisor.
    pub variables: Vec<(String, String)>,
    /// Named pipe to use as stdin. `None` means `/dev/null`.
    pub input: Option<RawText>,
    /// File to lock until all processes have ended.
    pub lock: Option<RawText>,
    pub view: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum SupervisorMessage {
    /// The command was started, with this for itself.
    Started(Isolation),
    /// The command was not started because of the command itself, with the reason.
    Refused(String),
    /// The command was not started because the machine failed, with the reason.
    Broken(String),
    /// Like `Refused`, because a private mount failed halfway. A retry without private mounts can
    /// work.
    Halfway(String),
    /// The command has ended. Its children can still run.
    Ended(CommandEnding),
    /// All processes have ended, except these, which could not be killed.
    Gone(Vec<String>),
    /// The supervisor died without sending `Gone`. Generated on our side.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommandEnding {
    Exited(i32),
    Signaled(i32),
}

impl std::fmt::Display for CommandEnding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CommandEnding::Exited(code) => write!(f, "exit status: {code}"),
            CommandEnding::Signaled(signal) => write!(f, "signal: {signal}"),
        }
    }
}

fn encode_line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
