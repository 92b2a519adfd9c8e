//! The supervisor itself: a process with nothing to do but to start one command and to outlive it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpgrp, getpid, kill_process_group, wait,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::Adoption;
use super::order::{CommandEnding, Order, SupervisorMessage};
use super::tree;
use super::{GRACE, WORD};
use crate::host::file::reason;
use crate::host::raw::RawText;
use crate::host::{descriptors, fault, process, sandbox};

/// How long it is tried to kill what is left.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How often killing is tried again, while nobody ends.
const TICK: Duration = Duration::from_millis(5);
/// How often it is looked at once for processes that were born while others were killed.
const ROUNDS: usize = 16;
/// The exit code of a supervisor that was not told what to do.
const EXIT_MISUSED: u8 = 125;
/// What `wait` takes besides children that tell with SIGCHLD: all of them (`__WALL`).
const ALL: WaitOptions = WaitOptions::from_bits_retain(0x4000_0000);

/// The group whose number, negative, means to `kill` all whom we may signal.
const EVERYONE: Pid = Pid::INIT;

/// Becomes a supervisor if the arguments (the program's name first) say so; the main function
/// calls this before anything else. Returns nothing if they do not.
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

/// Takes an order from the socket that is the input, and carries it out.
fn serve() -> io::Result<()> {
    descriptors::keep_from_children();
    let channel = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut line = Vec::new();
    let mut reader = BufReader::with_capacity(64 << 10, channel.try_clone()?);
    reader.read_until(b'\n', &mut line)?;
    let mut order = Order::decode(&line).ok_or(io::ErrorKind::InvalidInput)?;

    // What came with the line already; only a TeDDy that asks for the end at once sends any.
    let ending = !reader.buffer().is_empty();

    let mut supervised = Supervised::prepare(channel)?;
    if ending || supervised.is_alone() {
        return Ok(());
    }

    match supervised.start(&mut order) {
        Ok(_lock) => {
            supervised.say(&SupervisorMessage::Started);
            let left = supervised.watch()?;
            supervised.say(&SupervisorMessage::Gone(left));
        }
        Err(message) => supervised.say(&message),
    }

    Ok(())
}

/// How far it has come.
#[derive(Clone, Copy)]
enum ServePhase {
    /// The command runs.
    Running,
    /// It was asked to end, and has until then.
    Ending(Instant),
    /// All that is left is killed, and given up then.
    Killing(Instant),
}

/// A command with all that it starts.
struct Supervised {
    /// The socket to TeDDy.
    channel: UnixStream,
    /// All below become children of this process.
    _adoption: Adoption,
    /// Becomes readable at a signal.
    wake: UnixStream,
    /// Whether somebody wants this process to end.
    ended: Arc<AtomicBool>,
    /// The command, until it was reaped.
    command: Option<Pid>,
    /// Whether one signal reaches all that is left and nobody else.
    scoped: bool,
    /// How far it has come.
    phase: ServePhase,
}

impl Supervised {
    /// Makes this process a session of its own that adopts orphans and hears signals.
    fn prepare(channel: UnixStream) -> io::Result<Supervised> {
        // The terminal's ctrl-c is for TeDDy alone, which then says what to do.
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
            scoped: false,
            phase: ServePhase::Running,
        })
    }

    /// Starts the command; the lock is held until what is returned is dropped.
    fn start(&mut self, order: &mut Order) -> Result<Option<File>, SupervisorMessage> {
        let lock = match &order.lock {
            Some(path) => Some(hold(path.as_os_str()).map_err(SupervisorMessage::Refused)?),
            None => None,
        };
        // While TeDDy lives nobody else takes the lock; if it is gone, somebody may have, and has
        // let it go again.
        if self.is_alone() {
            return Err(SupervisorMessage::Refused(
                "its parent has ended".to_owned(),
            ));
        }

        if let Some(holder) = order.view {
            sandbox::join(holder).map_err(SupervisorMessage::Refused)?;
        }

        if let Some(policy) = &mut order.policy {
            sandbox::hide(policy, &order.kernel).map_err(SupervisorMessage::Halfway)?;
            self.scoped = sandbox::scope(&order.kernel).map_err(SupervisorMessage::Refused)?;
        }

        let child = spawn(order).map_err(SupervisorMessage::Refused)?;
        self.command = Some(Pid::from_child(&child));
        Ok(lock)
    }

    /// Waits until nothing is left; returns who could not be ended.
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
                ServePhase::Running => self.rest(None),
                ServePhase::Ending(until) => self.rest(Some(until - now)),
                ServePhase::Killing(until) if now >= until => return Ok(survivors()),
                ServePhase::Killing(_) => {
                    self.kill_all();
                    self.rest(Some(TICK));
                }
            }
        }
    }

    /// Returns whether all that is left must go now.
    fn is_time_to_kill(&self, now: Instant) -> bool {
        let is_over = match self.phase {
            ServePhase::Running => self.command.is_none(),
            ServePhase::Ending(until) => self.command.is_none() || now >= until,
            ServePhase::Killing(_) => return false,
        };
        is_over || self.is_alone() || self.ended.load(Ordering::SeqCst)
    }

    /// Takes the children that have ended; returns whether any are left. Everyone below this
    /// process is its child or will be, so that having none is having nobody.
    fn reap(&mut self) -> io::Result<bool> {
        loop {
            match wait(WaitOptions::NOHANG | ALL) {
                Ok(Some((pid, status))) if Some(pid) == self.command => {
                    self.command = None;
                    self.say(&SupervisorMessage::Ended(ending(status)));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(true),
                Err(Errno::CHILD) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sleeps until a child ends, TeDDy says something or the time is over.
    fn rest(&mut self, limit: Option<Duration>) {
        // While all are killed nothing is left to say, and a closed socket would wake us for ever.
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

    /// Asks the command to end, once.
    fn ask_to_end(&mut self) {
        if matches!(self.phase, ServePhase::Running) {
            self.phase = ServePhase::Ending(Instant::now() + GRACE);
            self.signal_group(Signal::TERM);
        }
    }

    /// Returns whether TeDDy is gone: its end of the socket is closed.
    fn is_alone(&self) -> bool {
        let mut source = [PollFd::new(&self.channel, PollFlags::empty())];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut source, Some(&now)).is_ok_and(|_| source[0].revents().contains(PollFlags::HUP))
    }

    /// Sends a signal to the command's group, and wakes what is stopped.
    fn signal_group(&self, signal: Signal) {
        for signal in [signal, Signal::CONT] {
            // Who is not reaped keeps its number, so that this is the command's group.
            let _ = self
                .command
                .map(|command| kill_process_group(command, signal));
        }
    }

    /// Kills all that is left.
    fn kill_all(&self) {
        if fault::emulated("no-kill").is_some() {
            return;
        }

        if self.scoped {
            // At once and without a list, so that nobody is born meanwhile.
            let _ = kill_process_group(EVERYONE, Signal::KILL);
            return;
        }

        // Again at once for those that were born meanwhile.
        for _ in 0..ROUNDS {
            let found = tree::below(getpid());
            if found.iter().all(|process| process.ended) {
                break;
            }

            self.kill_groups(&found);
            for process in found.iter().filter(|process| !process.ended) {
                tree::signal(process, &found, Signal::KILL);
            }
        }
    }

    /// Kills the groups of our children, each as a whole: who hands its life on to a child all the
    /// time is faster than any list. Children that have ended count, too; until they are reaped
    /// their groups keep their numbers, and groups below this process have nobody else in them.
    fn kill_groups(&self, found: &[tree::Process]) {
        let (own, own_group) = (Some(getpid()), getpgrp());
        let children = found.iter().filter(|process| process.parent == own);
        let groups = children.filter_map(|child| child.group);
        for group in groups.filter(|group| *group != own_group) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Tells TeDDy; a TeDDy that is gone does not listen.
    fn say(&mut self, message: &SupervisorMessage) {
        if let Ok(line) = message.encode() {
            let _ = self.channel.write_all(&line);
        }
    }
}

/// Returns how long it is tried to kill what is left.
fn patience() -> Duration {
    fault::emulated("no-kill").map_or(PATIENCE, |_| TICK)
}

/// Takes the lock that says that a command lives.
fn hold(path: &OsStr) -> Result<File, String> {
    let words = |error: &dyn std::fmt::Display| format!("cannot lock {path:?}: {error}");
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| words(&reason(&error)))?;
    file.try_lock_shared().map_err(|error| words(&error))?;

    Ok(file)
}

/// Starts the command from a thread that has restricted itself.
fn spawn(order: &Order) -> Result<Child, String> {
    // Opened here: the policy need not allow it.
    let input = input(order).map_err(|error| reason(&error))?;
    let confined = || {
        order.policy.as_ref().map_or(Ok(()), |policy| {
            sandbox::enforce(policy, &order.kernel, &watching())
        })?;
        command(order, input.into())?
            .spawn()
            .map_err(|e| reason(&e))
    };

    // What a thread may do is what its children may; this one ends with it.
    std::thread::scope(|scope| match scope.spawn(confined).join() {
        Ok(started) => started,
        Err(_) => Err("the supervisor failed".to_owned()),
    })
}

/// Opens what the command reads.
fn input(order: &Order) -> io::Result<File> {
    let Some(path) = &order.input else {
        return File::open("/dev/null");
    };
    // A pipe whose writer is gone already must not hold this process up.
    let waits_not = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let pipe = File::options()
        .read(true)
        .custom_flags(waits_not)
        .open(path.as_os_str())?;
    fcntl_setfl(&pipe, OFlags::empty())?;

    Ok(pipe)
}

/// Returns this process and its parent.
fn watching() -> Vec<u32> {
    let parent = rustix::process::getppid();
    let parent = parent.map(|parent| parent.as_raw_nonzero().get().unsigned_abs());
    parent.into_iter().chain([std::process::id()]).collect()
}

/// Returns the command, in a group of its own: a signal to it does not come here.
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
        .process_group(0);

    Ok(command)
}

/// Returns how a command ended.
fn ending(status: WaitStatus) -> CommandEnding {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => CommandEnding::Exited(code),
        (None, signal) => CommandEnding::Signaled(signal.unwrap_or_default()),
    }
}

/// Returns the names of the processes that could not be ended.
fn survivors() -> Vec<String> {
    let names: Vec<String> = tree::below(getpid())
        .into_iter()
        .filter(|process| !process.ended)
        .map(|process| tree::name(process.pid))
        .collect();
    if names.is_empty() {
        // The kernel says that there is somebody, and does not show who.
        return vec!["a process that the system does not show".to_owned()];
    }

    names
}
