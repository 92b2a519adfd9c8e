//! The supervisor process: starts one command and outlives it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpgrp, getpid, kill_process_group, wait,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::Adoption;
use super::{GRACE, WORD, encode_line};
use crate::host::file::{PRIVATE_FILE, reason};
use crate::host::raw::RawText;
use crate::host::sandbox::{ConnectionServer, Isolation};
use crate::host::supervisor::process_tree;
use crate::host::supervisor::{CommandEnding, Order, SupervisorMessage};
use crate::host::{fault, inherited, process, sandbox};

/// How long to keep killing remaining processes.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two attempts to kill.
const TICK: Duration = Duration::from_millis(5);
/// Rounds without a pause, for processes forked during the previous round.
const MAX_ROUNDS: usize = 16;
/// How often to check whether TeDDy is stopped.
const PARENT_TICK: Duration = Duration::from_millis(100);
/// Exit code of a supervisor without a valid order.
const EXIT_MISUSED: u8 = 125;
/// `__WALL`: also wait for children that do not send SIGCHLD when they end.
const ALL: WaitOptions = WaitOptions::from_bits_retain(0x4000_0000);

/// `kill(-1)`, which `kill_process_group(1)` becomes: all processes that we are allowed to signal.
const EVERYONE: Pid = Pid::INIT;

/// Runs a supervisor if the arguments (program name first) ask for it, else returns `None`. `main`
/// calls this before anything else.
pub fn serve_if_asked(arguments: &[OsString]) -> Option<ExitCode> {
    let word = arguments.get(1)?;
    if word != OsStr::new(WORD) {
        return None;
    }

    match serve() {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(error) => {
            let why = reason(&error);
            let _ = writeln!(io::stderr(), "teddy: no command was started: {why}");
            Some(ExitCode::from(EXIT_MISUSED))
        }
    }
}

fn serve() -> io::Result<()> {
    inherited::keep_descriptors_from_children();
    let channel = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut line = Vec::new();
    let mut reader = BufReader::with_capacity(64 << 10, channel.try_clone()?);
    reader.read_until(b'\n', &mut line)?;
    let order = serde_json::from_slice(&line);
    let mut order: Order = order.map_err(|_| io::ErrorKind::InvalidInput)?;

    // More bytes after the order mean that TeDDy already asks for the end.
    let ending = !reader.buffer().is_empty();

    let mut supervised = Supervised::prepare(channel)?;
    if ending || supervised.is_alone() {
        return Ok(());
    }

    match supervised.start(&mut order) {
        Ok((_lock, isolation)) => {
            supervised.send(&SupervisorMessage::Started(isolation));
            let survivors = supervised.watch()?;
            supervised.send(&SupervisorMessage::Gone(survivors));
        }
        Err(message) => supervised.send(&message),
    }

    Ok(())
}

#[derive(Clone, Copy)]
enum ServePhase {
    Running,
    /// TERM was sent. The command has until then to exit.
    Ending(Instant),
    /// Remaining processes are being killed. Give up then.
    Killing(Instant),
}

struct Supervised {
    channel: UnixStream,
    _adoption: Adoption,
    /// Readable after a signal.
    wake: UnixStream,
    /// Set when this process receives SIGTERM or a similar signal.
    ended: Arc<AtomicBool>,
    /// `None` once it was reaped.
    command: Option<Pid>,
    parent: ParentState,
    /// TeDDy is stopped, and so is the command.
    is_stopped: bool,
    /// `kill(-1)` reaches exactly the remaining processes.
    scoped: bool,
    phase: ServePhase,
}

impl Supervised {
    fn prepare(channel: UnixStream) -> io::Result<Supervised> {
        // Ctrl-c at the terminal is handled by TeDDy, which then tells the supervisor.
        let _ = rustix::process::setsid();
        let adoption = Adoption::begin();
        let (sender, wake) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let ended = Arc::new(AtomicBool::new(false));

        for signal in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::clone(&ended))?;
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }

        signal_hook::low_level::pipe::register(SIGCHLD, sender)?;
        Ok(Supervised {
            channel,
            _adoption: adoption,
            wake,
            ended,
            command: None,
            parent: ParentState::open(),
            is_stopped: false,
            scoped: false,
            phase: ServePhase::Running,
        })
    }

    /// The result holds the lock of the order.
    fn start(&mut self, order: &mut Order) -> Result<(Option<File>, Isolation), SupervisorMessage> {
        let lock = match &order.lock {
            Some(path) => Some(lock_shared(path.as_os_str()).map_err(SupervisorMessage::Broken)?),
            None => None,
        };
        // Check this only with the lock: while TeDDy lives no other process takes it. If TeDDy has
        // died, the next one could have taken and released it already.
        if self.is_alone() {
            return Err(SupervisorMessage::Refused(
                "its parent has ended".to_owned(),
            ));
        }

        // The sandbox can hide the pipe: a temporary directory in `/dev/shm` disappears in it.
        let input = input(order).map_err(|error| SupervisorMessage::Broken(reason(&error)))?;

        // `setns` and `unshare` need a single-threaded process, so they come before the thread of
        // `spawn`.
        if let Some(holder) = order.view {
            sandbox::enter_namespaces(holder).map_err(SupervisorMessage::Broken)?;
        }

        let mut isolation = Isolation::default();
        if let Some(policy) = &mut order.policy {
            isolation =
                sandbox::isolate(policy, &mut order.kernel).map_err(SupervisorMessage::Halfway)?;
            self.scoped = sandbox::scope(&order.kernel).map_err(SupervisorMessage::Broken)?;
        }

        let child = spawn(order, input, isolation)?;
        self.command = Some(Pid::from_child(&child));
        Ok((lock, isolation))
    }

    /// Waits until all processes have ended. Returns those that could not be killed.
    fn watch(&mut self) -> io::Result<Vec<String>> {
        loop {
            if !self.reap()? {
                return Ok(Vec::new());
            }

            let now = Instant::now();
            if self.is_time_to_kill(now) {
                self.phase = ServePhase::Killing(now + patience());
            }

            match self.phase {
                ServePhase::Running => {
                    self.follow_parent();
                    self.wait_for_event(Some(PARENT_TICK));
                }
                ServePhase::Ending(until) => self.wait_for_event(Some(until - now)),
                ServePhase::Killing(until) if now >= until => return Ok(survivors()),
                ServePhase::Killing(_) => {
                    self.kill_all();
                    self.wait_for_event(Some(TICK));
                }
            }
        }
    }

    fn is_time_to_kill(&self, now: Instant) -> bool {
        let is_over = match self.phase {
            ServePhase::Running => self.command.is_none(),
            ServePhase::Ending(until) => self.command.is_none() || now >= until,
            ServePhase::Killing(_) => return false,
        };
        is_over || self.is_alone() || self.ended.load(Ordering::SeqCst)
    }

    /// Reaps children. Returns `false` if there are none left.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG | ALL) {
                Ok(Some((pid, status))) if Some(pid) == self.command => {
                    self.command = None;
                    self.send(&SupervisorMessage::Ended(ending(status)));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(true),
                // All processes below this one are or will become its children, so all have ended.
                Err(Errno::CHILD) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sleeps until a child ends, TeDDy sends something, or for `limit`.
    fn wait_for_event(&mut self, limit: Option<Duration>) {
        // While killing, ignore the socket. If TeDDy has died, it would be readable all the time.
        let listens = !matches!(self.phase, ServePhase::Killing(_));
        let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let mut sources = [
            PollFd::new(&self.wake, PollFlags::IN),
            PollFd::new(&self.channel, PollFlags::IN),
        ];
        let count = if listens { 2 } else { 1 };
        let _ = poll(&mut sources[..count], limit.as_ref());
        let is_told = listens && !sources[1].revents().is_empty();

        let mut buffer = [0; 64];
        while matches!(self.wake.read(&mut buffer), Ok(1..)) {}
        if is_told && matches!(self.channel.read(&mut buffer), Ok(1..)) {
            self.ask_to_end();
        }
    }

    fn ask_to_end(&mut self) {
        if matches!(self.phase, ServePhase::Running) {
            self.phase = ServePhase::Ending(Instant::now() + GRACE);
            self.signal_group(Signal::TERM);
        }
    }

    /// Returns whether TeDDy's end of the socket is closed.
    fn is_alone(&self) -> bool {
        let mut source = [PollFd::new(&self.channel, PollFlags::empty())];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut source, Some(&now)).is_ok_and(|_| source[0].revents().contains(PollFlags::HUP))
    }

    /// Stops the command while TeDDy is stopped. Ctrl-z stops only the processes of the terminal's
    /// group.
    fn follow_parent(&mut self) {
        let is_stopped = self.parent.is_stopped();
        if is_stopped {
            // Repeated, because a process could fork before it was stopped.
            self.signal_all(Signal::STOP);
        } else if self.is_stopped {
            self.signal_all(Signal::CONT);
        }
        self.is_stopped = is_stopped;
    }

    fn signal_all(&self, signal: Signal) {
        if self.scoped {
            let _ = kill_process_group(EVERYONE, signal);
            return;
        }
        let processes = process_tree::descendants(getpid());
        for process in processes.iter().filter(|process| !process.ended) {
            process_tree::signal_process(process, &processes, signal);
        }
    }

    fn signal_group(&self, signal: Signal) {
        // A stopped process cannot handle a signal.
        for signal in [signal, Signal::CONT] {
            // The command was not reaped, so its group id cannot have been reused.
            let _ = self
                .command
                .map(|command| kill_process_group(command, signal));
        }
    }

    fn kill_all(&self) {
        if fault::emulated("no-kill").is_some() {
            return;
        }

        if self.scoped {
            // Reaches all processes at the same time, so none can fork in between.
            let _ = kill_process_group(EVERYONE, Signal::KILL);
            return;
        }

        // Without a pause, for processes forked during the previous round.
        for _ in 0..MAX_ROUNDS {
            let processes = process_tree::descendants(getpid());
            if processes.iter().all(|process| process.ended) {
                break;
            }

            self.kill_groups(&processes);
            for process in processes.iter().filter(|process| !process.ended) {
                process_tree::signal_process(process, &processes, Signal::KILL);
            }
        }
    }

    fn kill_groups(&self, processes: &[process_tree::Process]) {
        // A process that forks and exits all the time is faster than any list, but cannot escape a
        // signal to its group. Ended children count, too: until they are reaped, their group id is
        // not reused. A group below this process contains no other processes.
        let (own, own_group) = (Some(getpid()), getpgrp());
        let children = processes.iter().filter(|process| process.parent == own);
        let groups = children.filter_map(|child| child.group);
        for group in groups.filter(|group| *group != own_group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    fn send(&mut self, message: &SupervisorMessage) {
        if let Ok(line) = encode_line(message) {
            // Fails if TeDDy has died.
            let _ = self.channel.write_all(&line);
        }
    }
}

/// The state of TeDDy, as the kernel shows it.
struct ParentState {
    /// `None` if it cannot be read. Opened before the sandbox can hide it.
    stat: Option<File>,
}

impl ParentState {
    fn open() -> ParentState {
        let parent = rustix::process::getppid();
        let path = parent.map(|parent| format!("/proc/{}/stat", parent.as_raw_nonzero()));
        ParentState {
            stat: path.and_then(|path| File::open(path).ok()),
        }
    }

    fn is_stopped(&self) -> bool {
        let mut bytes = [0; 256];
        let length = match &self.stat {
            Some(stat) => stat.read_at(&mut bytes, 0).unwrap_or(0),
            None => 0,
        };
        // The process name in parentheses can contain parentheses itself.
        let end = bytes[..length].iter().rposition(|&byte| byte == b')');
        end.is_some_and(|end| bytes[end..length].starts_with(b") T"))
    }
}

fn patience() -> Duration {
    fault::emulated("no-kill").map_or(PATIENCE, |_| TICK)
}

fn lock_shared(path: &OsStr) -> Result<File, String> {
    let describe = |error: &dyn std::fmt::Display| format!("cannot lock {path:?}: {error}");
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        // Otherwise another user could lock it and block the session.
        .mode(PRIVATE_FILE)
        .open(path)
        .map_err(|error| describe(&reason(&error)))?;
    // While this lock is held, other TeDDy processes do not use the worktree.
    file.try_lock_shared().map_err(|error| describe(&error))?;

    Ok(file)
}

/// Starts the command from a thread that has restricted itself.
fn spawn(order: &Order, input: File, isolation: Isolation) -> Result<Child, SupervisorMessage> {
    let (intercepted, to_serve) = channel::<(ConnectionServer, Vec<PathBuf>)>();
    // Not restricted, so it is started before the thread that restricts itself. It ends with the
    // supervisor.
    let served = move || {
        if let Ok((serve, sockets)) = to_serve.recv() {
            serve(&sockets);
        }
    };
    std::thread::Builder::new()
        .name("connections".to_owned())
        .spawn(served)
        .map_err(|error| SupervisorMessage::Broken(reason(&error)))?;

    let confined = move || {
        if let Some(policy) = &order.policy {
            let server = sandbox::enforce(policy, &order.kernel, isolation, &watching())
                .map_err(SupervisorMessage::Broken)?;
            if let Some(server) = server {
                // Fails if the supervisor has died, and the command with it.
                let _ = intercepted.send((server, policy.sockets.clone()));
            }
        }
        let mut command = command(order, input.into()).map_err(SupervisorMessage::Broken)?;
        command.spawn().map_err(|error| not_started(&error))
    };

    // The restrictions are inherited by the thread's children, and end with the thread. Restricting
    // the child between fork and exec would need unsafe code.
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, confined);
        let started = thread.map_err(|error| not_started(&error))?.join();
        let failed = || SupervisorMessage::Broken("the supervisor failed".to_owned());
        started.unwrap_or_else(|_| Err(failed()))
    })
}

/// Tells a program that cannot be executed from a machine that can execute none.
fn not_started(error: &io::Error) -> SupervisorMessage {
    use Errno as E;

    let why = reason(error);
    match E::from_io_error(error) {
        Some(E::INTR | E::AGAIN | E::NOMEM | E::MFILE | E::NFILE | E::IO | E::NOSPC) => {
            SupervisorMessage::Broken(why)
        }
        _ => SupervisorMessage::Refused(why),
    }
}

fn input(order: &Order) -> io::Result<File> {
    let Some(path) = &order.input else {
        return File::open("/dev/null");
    };
    // Without `NONBLOCK`, `open` would wait forever if the writer has already closed the pipe.
    let waits_not = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let pipe = File::options()
        .read(true)
        .custom_flags(waits_not)
        .open(path.as_os_str())?;
    // The command expects reads that block.
    fcntl_setfl(&pipe, OFlags::empty())?;

    Ok(pipe)
}

/// This process and TeDDy.
fn watching() -> Vec<u32> {
    let parent = rustix::process::getppid();
    let parent = parent.map(|parent| parent.as_raw_nonzero().get().unsigned_abs());
    parent.into_iter().chain([std::process::id()]).collect()
}

fn command(order: &Order, input: Stdio) -> Result<Command, String> {
    let (program, arguments) = order
        .words
        .split_first()
        .ok_or("the supervisor needs a command")?;
    let mut command = process::command(program.as_os_str());
    command
        .args(arguments.iter().map(RawText::as_os_str))
        .envs(order.variables.iter().map(|(name, value)| (name, value)))
        .current_dir(order.folder.as_os_str())
        .stdin(input)
        // A signal to the command must not reach the supervisor.
        .process_group(0);

    Ok(command)
}

fn ending(status: WaitStatus) -> CommandEnding {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => CommandEnding::Exited(code),
        (None, signal) => CommandEnding::Signaled(signal.unwrap_or_default()),
    }
}

fn survivors() -> Vec<String> {
    let names: Vec<String> = process_tree::descendants(getpid())
        .into_iter()
        .filter(|process| !process.ended)
        .map(|process| process_tree::process_name(process.pid))
        .collect();
    if names.is_empty() {
        // The kernel reports a child, but `/proc` does not show it.
        return vec!["a process that the system does not show".to_owned()];
    }

    names
}
