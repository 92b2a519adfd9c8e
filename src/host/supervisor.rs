//! The supervisor: a process between TeDDy and a command that ensures that nothing outlives the
//! command.
//!
//! It is a child subreaper, so every orphan below it becomes its child. When the command ends,
//! TeDDy asks for it, or TeDDy dies, it kills all remaining processes and waits until the kernel
//! reports that it has no child left. If it is killed itself, [`process_tree`] kills the orphans.

mod process_tree;
mod serve;

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use process_tree::Adoption;
pub(super) use process_tree::{register_supervisor, unregister_supervisor};
pub use serve::serve_if_asked;

use super::sandbox::{Availability, Isolation, Kernel, Policy, availability};
use super::{env, process};
use crate::host::raw::RawText;

/// First argument of the supervisor.
const WORD: &str = "__supervise";

/// How long a command has to exit after TERM.
pub const GRACE: Duration = Duration::from_secs(2);

const TICK: Duration = Duration::from_millis(1);

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

pub(super) struct CommandOutputs {
    pub(super) stdout: io::PipeWriter,
    pub(super) stderr: io::PipeWriter,
}

/// Dropping it kills the command and all its children.
pub(super) struct Supervisor {
    child: Child,
    /// The supervisor kills all processes when this is closed.
    channel: Option<UnixStream>,
    /// While the supervisor runs, its orphans become our children if it is killed.
    _adoption: Adoption,
}

impl Supervisor {
    pub(super) fn start(
        mut command: Command,
        order: &Order,
        outputs: CommandOutputs,
    ) -> io::Result<Supervisor> {
        let adoption = Adoption::begin();
        let (parent_end, child_end) = UnixStream::pair()?;
        command
            .current_dir("/")
            .stdin(OwnedFd::from(child_end))
            .stdout(outputs.stdout)
            .stderr(outputs.stderr);
        let child = command.spawn()?;

        // `command` owns copies of the socket and pipes, which would never close.
        drop(command);

        let mut supervisor = Supervisor {
            child,
            channel: Some(parent_end),
            _adoption: adoption,
        };
        // It creates a session, and would count as an orphan.
        process_tree::register_supervisor(supervisor.child.id());
        supervisor.send(&order.encode()?)?;

        Ok(supervisor)
    }

    /// Calls `on_message` for each message, from a thread. The last one is `Gone`, or `Lost` if the
    /// socket was closed.
    pub(super) fn listen(
        &self,
        mut on_message: impl FnMut(SupervisorMessage) + Send + 'static,
    ) -> io::Result<()> {
        let Some(channel) = &self.channel else {
            return Ok(());
        };
        let lines = BufReader::new(channel.try_clone()?);
        std::thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn(move || {
                for line in lines.split(b'\n').map_while(Result::ok) {
                    let Some(message) = SupervisorMessage::decode(&line) else {
                        break;
                    };
                    let is_last = matches!(message, SupervisorMessage::Gone(_));
                    on_message(message);
                    if is_last {
                        return;
                    }
                }

                on_message(SupervisorMessage::Lost);
            })?;

        Ok(())
    }

    /// Sends TERM to the command's group. The supervisor kills all processes after [`GRACE`].
    pub(super) fn end(&mut self) {
        // Fails if the supervisor has died, which is reported as `Lost`.
        let _ = self.send(b"e");
    }

    /// Kills a supervisor that does not respond, and the orphans that it leaves. Returns those that
    /// could not be killed.
    pub(super) fn replace(&mut self) -> Vec<String> {
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

pub(super) fn disable_private_mounts() {
    // Some systems let a process create namespaces and then forbid the mounts. That does not change
    // while we run.
    NO_PRIVATE_MOUNTS.store(true, Ordering::SeqCst);
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
pub(super) enum CommandEnding {
    Exited(i32),
    Signaled(i32),
}

impl Order {
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        encode_line(self)
    }

    pub fn decode(line: &[u8]) -> Option<Order> {
        serde_json::from_slice(line).ok()
    }
}

impl SupervisorMessage {
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        encode_line(self)
    }

    pub fn decode(line: &[u8]) -> Option<SupervisorMessage> {
        serde_json::from_slice(line).ok()
    }
}

fn encode_line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
