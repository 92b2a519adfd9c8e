//! The process between TeDDy and a command, which sees to it that nothing outlives the command.
//!
//! The program starts itself again as a supervisor. The supervisor adopts every orphan below it
//! (it is a child subreaper), restricts a thread of its own and starts the command from it, so
//! that nothing between fork and exec needs unsafe code. When the command has ended, or TeDDy has
//! said so, or TeDDy is gone, it kills all that is left and waits until the kernel says that it
//! has no child any more. That is the proof: no list of processes and no variable is believed.
//!
//! The two talk over a socket, which is the supervisor's input. A supervisor that is killed
//! itself leaves its orphans to TeDDy, which is a subreaper for them meanwhile; see [`strays`].

mod order;
mod serve;
mod strays;
mod tree;

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::sandbox::{Availability, Kernel, Policy, availability};
use super::{env, process};

use strays::Adoption;
pub(super) use strays::{forget, know};

pub(super) use order::{CommandEnding, Order, SupervisorMessage};
pub use serve::serve_if_asked;

/// The first argument of a supervisor.
const WORD: &str = "__supervise";

/// How long a command may take to end after TERM.
pub const GRACE: Duration = Duration::from_secs(2);

/// How often it is looked whether a supervisor has ended.
const TICK: Duration = Duration::from_millis(1);

/// How a command is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The program that becomes the supervisor, and its first arguments: one that calls
    /// [`serve_if_asked`].
    pub command: Vec<OsString>,
    /// The sandbox; none leaves the command unrestricted.
    pub policy: Option<Policy>,
    /// A file that stays locked until nothing of the command is left, even if TeDDy is killed.
    pub lock: Option<PathBuf>,
    /// The process that holds the view of the files in which the command runs, if there is one.
    pub view: Option<u32>,
}

impl Launcher {
    /// Returns a launcher that is this program. On a machine that can enforce nothing the command
    /// runs unrestricted, as [`super::sandbox::describe`] says of it.
    ///
    /// # Errors
    /// The system does not tell where this program is.
    pub fn new(policy: Option<Policy>) -> io::Result<Launcher> {
        let enforceable = !matches!(availability(), Availability::None(_));
        Ok(Launcher {
            command: vec![env::current_exe()?.into()],
            policy: policy.filter(|_| enforceable),
            lock: None,
            view: None,
        })
    }

    /// Returns this launcher with a file that is locked while anything of the command lives.
    pub fn holding(self, lock: PathBuf) -> Launcher {
        Launcher {
            lock: Some(lock),
            ..self
        }
    }

    /// Returns this launcher for commands that see what another process sees.
    pub fn within(self, view: Option<u32>) -> Launcher {
        Launcher { view, ..self }
    }

    /// Returns the command that becomes the supervisor, with this program's environment.
    ///
    /// # Errors
    /// The launcher names no program.
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

/// Where a command writes to.
pub(super) struct CommandOutputs {
    /// What takes its output.
    pub(super) stdout: io::PipeWriter,
    /// What takes its error output.
    pub(super) stderr: io::PipeWriter,
}

/// A supervisor at work. Dropping it ends the command and all that it started.
pub(super) struct Supervisor {
    /// Its process.
    child: Child,
    /// Our end of the socket; when it closes, the supervisor kills at once.
    channel: Option<UnixStream>,
    /// What it leaves to us if it is killed comes to us while it lives.
    _adoption: Adoption,
}

impl Supervisor {
    /// Starts a supervisor and gives it its order.
    ///
    /// # Errors
    /// The system has no socket or process for it.
    pub(super) fn start(
        mut command: Command,
        order: &Order,
        outputs: CommandOutputs,
    ) -> io::Result<Supervisor> {
        let adoption = Adoption::begin();
        let (ours, theirs) = UnixStream::pair()?;
        command
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(outputs.stdout)
            .stderr(outputs.stderr);
        let child = command.spawn()?;

        // The command holds the ends of the socket and the pipe; while they live neither closes.
        drop(command);

        let mut supervisor = Supervisor {
            child,
            channel: Some(ours),
            _adoption: adoption,
        };
        strays::know(supervisor.child.id());
        supervisor.send(&order.encode()?)?;

        Ok(supervisor)
    }

    /// Hands on what the supervisor tells, until it has said that all are gone or its end of the
    /// socket closes; then nothing more comes.
    ///
    /// # Errors
    /// The system has no descriptor or thread for it.
    pub(super) fn listen(
        &self,
        mut tell: impl FnMut(SupervisorMessage) + Send + 'static,
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
                    tell(message);
                    if is_last {
                        return;
                    }
                }

                tell(SupervisorMessage::Lost);
            })?;

        Ok(())
    }

    /// Asks for the command's end: TERM for its group, and KILL for all after a while.
    pub(super) fn end(&mut self) {
        // A supervisor that does not listen any more says so itself.
        let _ = self.send(b"e");
    }

    /// Ends a supervisor that does not answer, and what it has left to us; returns who could not
    /// be ended.
    pub(super) fn replace(&mut self) -> Vec<String> {
        self.channel = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
        strays::end_all()
    }

    /// Writes to the socket.
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
        let deadline = Instant::now() + serve::PATIENCE + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                self.replace();
            }
            std::thread::park_timeout(TICK);
        }

        strays::forget(self.child.id());
    }
}

/// Whether a private view of folders could not be finished on this machine.
static HALFWAY: AtomicBool = AtomicBool::new(false);

/// Returns whether commands are given a private view of folders.
pub(super) fn gives_private_views() -> bool {
    Kernel::running().namespaces && !HALFWAY.load(Ordering::SeqCst)
}

/// Gives commands no private view of folders from now on: some systems let a process begin one
/// and then refuse the rest of it.
pub(super) fn give_no_private_views() {
    HALFWAY.store(true, Ordering::SeqCst);
}

/// Returns the order for a command: its words, the folder and more variables.
pub(super) fn order(launcher: &Launcher, words: Vec<OsString>, folder: &Path) -> Order {
    Order {
        policy: launcher.policy.clone(),
        kernel: Kernel {
            namespaces: gives_private_views(),
            ..Kernel::running().clone()
        },
        words: words.into_iter().map(Into::into).collect(),
        folder: folder.to_owned().into_os_string().into(),
        variables: Vec::new(),
        input: None,
        lock: launcher
            .lock
            .as_ref()
            .map(|path| path.clone().into_os_string().into()),
        view: launcher.view,
    }
}
