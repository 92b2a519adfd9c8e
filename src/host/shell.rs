//! Runs a script (EXECUTE) and waits until none of its processes is left.
//!
//! The script is a file passed to a shell or to the program of its `#!` line, in its own session and without input. Output and error
//! output share one pipe, so they stay in order. A timeout or interrupt sends TERM, then KILL after
//! [`GRACE`]. A supervisor ([`super::supervisor`]) kills all processes of the script, even if this
//! process dies. So they can neither delay the turn nor write into the next one.
//!
//! On Linux, all descendants also inherit an environment variable that identifies them.
//! [`end_orphans`] kills those that outlived a killed TeDDy, even if they left their process group
//! (`setsid`, daemons).

mod interpreter;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

pub use interpreter::{
    Interpreter, Shell, explain_missing_target, explain_syntax, requested_interpreter,
};

use super::file::PRIVATE_FILE;
use super::inherited::ChildKind;
pub use super::supervisor::GRACE;
use super::supervisor::{
    self, CommandDir, CommandEnding, Launcher, OutputPipes, Supervisor, SupervisorEvent,
};
use super::{interrupt, overlay, sandbox};
use crate::host::clock::PauseClock;
use crate::host::env;
use crate::host::file::uninterrupted;
use crate::host::inherited::give_listed;
use crate::host::sandbox::Isolation;
use crate::text::counted;
use crate::text::path_alias::{PathAliasStream, PathAliases};

/// Poll interval for the interrupt flag.
const TICK: Duration = Duration::from_millis(50);

/// Exit code of a script that exceeded its time limit, as for `timeout`.
pub const EXIT_TIMED_OUT: i32 = 124;

/// Exit code of a script that could not be started, as in shells.
pub const EXIT_NOT_STARTED: i32 = 127;

const SCRIPT: &str = "execute.sh";

#[derive(Debug, Clone)]
pub struct Script {
    pub text: String,
    pub cwd: PathBuf,
    /// Additional variables. They override inherited ones.
    pub env: Vec<(String, String)>,
    /// The shell of a script without a `#!` line.
    pub shell: Shell,
    pub timeout: Option<Duration>,
    /// Bytes of output to keep, half from the beginning and half from the end.
    pub capture: usize,
    /// Inherited variables to pass on although no list has them.
    pub keep_env: Vec<String>,
    /// Names for the directories of the run in its output. Those of the script itself are added.
    pub aliases: PathAliases,
    /// How to start the shell, with the sandbox policy. `None` uses this program without a sandbox.
    pub launcher: Option<Launcher>,
}

#[derive(Debug)]
pub struct FinishedScript {
    pub end: ScriptEnd,
    pub output: CapturedOutput,
    /// Processes that could not be killed. The files can still change while they run.
    pub survivors: Vec<String>,
    /// What the script had for itself.
    pub isolation: Isolation,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptEnd {
    Exited(i32),
    /// Killed by a signal that TeDDy did not send.
    Signaled(i32),
    /// Killed after this time limit.
    TimedOut(Duration),
    Interrupted,
    NotStarted(String),
}

impl FinishedScript {
    fn not_started(why: String) -> FinishedScript {
        FinishedScript {
            end: ScriptEnd::NotStarted(why),
            output: CapturedOutput::default(),
            survivors: Vec::new(),
            isolation: Isolation::default(),
        }
    }
}

impl ScriptEnd {
    /// Returns the exit code that a shell would report.
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

impl From<CommandEnding> for ScriptEnd {
    fn from(ending: CommandEnding) -> ScriptEnd {
        match ending {
            CommandEnding::Exited(code) => ScriptEnd::Exited(code),
            CommandEnding::Signaled(signal) => ScriptEnd::Signaled(signal),
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
            shell: Shell::default(),
            timeout: None,
            capture: 1 << 20,
            keep_env: Vec::new(),
            aliases: PathAliases::default(),
            launcher: None,
        }
    }
}

/// Runs a script and passes on its output as it arrives. A script that cannot be started is not an
/// error but [`ScriptEnd::NotStarted`]; a machine that cannot start any is one.
pub fn run(script: &Script, output: &mut dyn FnMut(&[u8])) -> io::Result<FinishedScript> {
    run_until(script, &interrupt::flag(), output)
}

/// Like [`run`], but ends the script when `stop` is set.
pub fn run_until(
    script: &Script,
    stop: &AtomicBool,
    output: &mut dyn FnMut(&[u8]),
) -> io::Result<FinishedScript> {
    let argv = match script.shell.command_for(&script.text) {
        Ok(argv) => argv,
        Err(why) => return Ok(FinishedScript::not_started(why)),
    };

    if !visible_cwd(script).is_dir() {
        let dir = script.cwd.display();
        return Ok(FinishedScript::not_started(format!(
            "the directory `{dir}` does not exist"
        )));
    }

    let launcher = match &script.launcher {
        Some(launcher) => launcher.clone(),
        None => Launcher::new(None)?,
    };
    let dir = CommandDir::new()?;
    write_script(&script.text, &dir)?;
    let mut capture = Capture::new(script.capture);
    let running = start(script, launcher, argv, &dir)?;
    let mut aliases = script.aliases.clone();
    aliases.add(&dir.temporary(), "$TMPDIR");
    aliases.add(&dir.file(SCRIPT), SCRIPT);
    let mut aliased = PathAliasStream::new(&aliases);
    let mut keep = |bytes: &[u8]| {
        capture.add(bytes);
        output(bytes);
    };
    let mut sink = |bytes: &[u8]| keep(&aliased.push(bytes));

    // Read before `watch`, which can disable them.
    let had_private_mounts = supervisor::gives_private_mounts();
    let watched = watch(running, script.timeout, stop, &mut sink)?;
    keep(&aliased.finish());
    // Some systems let a process create namespaces and then forbid the mounts. Retry without.
    if matches!(watched.end, ScriptEnd::NotStarted(_))
        && had_private_mounts
        && !supervisor::gives_private_mounts()
    {
        return run_until(script, stop, output);
    }

    let launcher = script.launcher.as_ref();
    let policy = launcher.and_then(|launcher| launcher.policy.as_ref());
    policy.into_iter().for_each(sandbox::clean_up);
    Ok(FinishedScript {
        output: capture.finish(),
        ..watched
    })
}

/// Returns the working directory as this process sees it: it can be inside an overlay.
fn visible_cwd(script: &Script) -> PathBuf {
    let overlay_holder = script
        .launcher
        .as_ref()
        .and_then(|launcher| launcher.overlay_holder);
    overlay_holder.map_or_else(
        || script.cwd.clone(),
        |holder| overlay::path_in_overlay(holder, &script.cwd),
    )
}

/// A file and not `sh -c`: Linux limits a single argument to 128 KiB.
fn write_script(text: &str, dir: &CommandDir) -> io::Result<()> {
    let mut file = std::fs::File::options()
        .write(true)
        .create_new(true)
        .mode(PRIVATE_FILE)
        .open(dir.file(SCRIPT))?;
    file.write_all(text.as_bytes())
}

fn start(
    script: &Script,
    mut launcher: Launcher,
    mut argv: Vec<OsString>,
    dir: &CommandDir,
) -> io::Result<Supervisor> {
    argv.push(dir.file(SCRIPT).into());
    let temporary = dir.temporary();
    if let Some(policy) = &mut launcher.policy {
        policy.write.push(temporary.clone());
        policy.sockets.push(temporary.clone());
        policy.read.push(dir.file(SCRIPT));
    }

    let mut command = launcher.command()?;
    let is_confined = launcher.policy.is_some();
    set_environment(
        &mut command,
        ChildKind::Tool,
        &script.keep_env,
        &temporary,
        is_confined,
    );
    let mut order = supervisor::order(&launcher, argv, &script.cwd);
    order.variables.clone_from(&script.env);
    Supervisor::start(command, &order, OutputPipes::Joined)
}

/// Waits until no process of the script is left. The result has no output, which goes to `sink`.
/// Fails if the machine could not start the script.
fn watch(
    mut running: Supervisor,
    timeout: Option<Duration>,
    stop: &AtomicBool,
    sink: &mut dyn FnMut(&[u8]),
) -> io::Result<FinishedScript> {
    let mut deadline = timeout.and_then(|limit| Instant::now().checked_add(limit));
    let mut pauses = PauseClock::start();
    let forced = loop {
        // While this process is stopped, the supervisor stops the command.
        let pause = pauses.take();
        deadline = deadline.and_then(|end| end.checked_add(pause));
        let now = Instant::now();
        if stop.load(Ordering::SeqCst) {
            break Some(ScriptEnd::Interrupted);
        }

        if let Some(limit) = timeout.filter(|_| deadline.is_some_and(|end| now >= end)) {
            break Some(ScriptEnd::TimedOut(limit));
        }

        if running.state.has_ended() {
            break None;
        }

        let wait = deadline.map_or(TICK, |end| TICK.min(end - now));
        pass_on(running.receive(wait), sink);
    };

    if forced.is_some() {
        running.end();
    }

    let survivors = running.finish(&mut |event| pass_on(event, sink));
    if let Some(why) = running.state.broken.take() {
        return Err(io::Error::other(why));
    }

    let not_started = running.state.refused.take().map(ScriptEnd::NotStarted);
    let end = forced.or(not_started);
    Ok(FinishedScript {
        end: end.unwrap_or_else(|| running.state.ending().into()),
        output: CapturedOutput::default(),
        survivors,
        isolation: running.state.started.unwrap_or_default(),
    })
}

fn pass_on(event: SupervisorEvent, sink: &mut dyn FnMut(&[u8])) {
    match event {
        SupervisorEvent::Stdout(bytes) | SupervisorEvent::Stderr(bytes) => sink(&bytes),
        // Lets a live view show what it held back.
        SupervisorEvent::Timeout => sink(&[]),
        SupervisorEvent::State => {}
    }
}

/// Output of a script. If it was long, the middle is missing.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The beginning, or everything if `lost` is 0.
    pub head: Vec<u8>,
    /// The end. Empty if `lost` is 0.
    pub tail: Vec<u8>,
    pub lost: u64,
}

impl CapturedOutput {
    /// Returns the output as one text, with a line about the missing bytes.
    pub fn joined(&self) -> Vec<u8> {
        let mut all = self.head.clone();
        if self.lost > 0 {
            let verb = if self.lost == 1 { "is" } else { "are" };
            let lost = counted(self.lost, "byte");
            all.extend(format!("\n[{lost} {verb} left out here]\n").bytes());
        }
        all.extend(&self.tail);
        all
    }
}

pub struct Capture {
    head: Vec<u8>,
    /// Everything after `head`, up to `tail_limit` bytes.
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    lost: u64,
}

impl Capture {
    /// Returns an empty capture that keeps `limit` bytes.
    pub fn new(limit: usize) -> Capture {
        let head_limit = limit.div_ceil(2);
        Capture {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_limit,
            tail_limit: limit - head_limit,
            lost: 0,
        }
    }

    pub fn add(&mut self, bytes: &[u8]) {
        let free = self.head_limit - self.head.len();
        let (first, excess_bytes) = bytes.split_at(free.min(bytes.len()));
        self.head.extend(first);
        self.tail.extend(excess_bytes);
        let excess = self.tail.len().saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.lost += excess as u64;
    }

    pub fn finish(mut self) -> CapturedOutput {
        if self.lost == 0 {
            self.head.extend(self.tail.drain(..));
        }

        CapturedOutput {
            head: self.head,
            tail: self.tail.into(),
            lost: self.lost,
        }
    }
}

// The environment of commands and agents: the listed variables of the user's, and which of them a
// plan can set.

// A plan cannot set these, because they decide which code a command runs.
const RESERVED_VARIABLES: [&str; 6] = ["PATH", "HOME", "BASH_ENV", "ENV", "IFS", "SHELLOPTS"];

// Prefixes of such names.
const RESERVED_PREFIXES: [&str; 4] = ["GIT_", "LD_", "DYLD_", "TEDDY_"];

/// Returns whether a plan can set a variable.
pub fn may_set_variable(name: &str) -> bool {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain
        && !RESERVED_VARIABLES.contains(&name)
        && !RESERVED_PREFIXES
            .iter()
            .any(|start| name.starts_with(start))
        && !name.ends_with("_BASE_URL")
}

/// Sets up the environment of a command, which inherits the variables in `keep` although no list has
/// them. The caller adds the variables of the plan later.
pub(super) fn set_environment(
    command: &mut Command,
    kind: ChildKind,
    keep: &[String],
    temporary: &Path,
    is_confined: bool,
) {
    give_listed(command, kind, keep);
    command.env("TMPDIR", temporary);
    command.env(VARIABLE, run_marker());

    // No user can answer a prompt or write a commit message.
    command
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_EDITOR", ":");
    if is_confined {
        // Automatic gc cannot access the user's repository from the sandbox.
        command.env("GIT_CONFIG_COUNT", "2");
        command
            .env("GIT_CONFIG_KEY_0", "gc.auto")
            .env("GIT_CONFIG_VALUE_0", "0");
        command
            .env("GIT_CONFIG_KEY_1", "maintenance.auto")
            .env("GIT_CONFIG_VALUE_1", "false");
    }
}

/// Value: markers separated by `:`, because a script can run TeDDy itself.
const VARIABLE: &str = "TEDDY_RUN";
const SEPARATOR: char = ':';
/// Rounds of killing, to catch processes forked during the previous one.
const MAX_ROUNDS: usize = 8;

/// Returns the marker of the processes of one script: TeDDy's process id, its pid namespace, and a
/// unique id. The markers of the scripts around this one precede it.
fn run_marker() -> String {
    let (process, namespace) = (std::process::id(), namespace());
    let own = format!("{process}.{namespace}.{}", uuid::Uuid::now_v7());
    match env::var(VARIABLE) {
        Some(around) => format!("{around}{SEPARATOR}{own}"),
        None => own,
    }
}

/// Kills processes of scripts whose TeDDy has died. Processes of a running TeDDy are not affected.
pub fn end_orphans() {
    let here = namespace();
    kill_marked(|mark| {
        owner(mark, here).is_some_and(|pid| {
            rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
        })
    });
}

/// Returns the TeDDy process of a marker. `None` if it belongs to another pid namespace.
fn owner(mark: &str, here: u64) -> Option<Pid> {
    let mut parts = mark.split('.');
    let (process, namespace) = (parts.next()?, parts.next()?);
    // A host sees the processes of its containers, but the ids in their markers mean other
    // processes here.
    if namespace.parse() != Ok(here) {
        return None;
    }
    Pid::from_raw(process.parse().ok()?)
}

/// Inode of the pid namespace, or 0 if there is none.
fn namespace() -> u64 {
    use std::os::unix::fs::MetadataExt as _;

    std::fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
}

fn kill_marked(is_wanted: impl Fn(&str) -> bool) {
    for _ in 0..MAX_ROUNDS {
        let pids = marked_processes(&is_wanted);
        if pids.is_empty() {
            return;
        }
        for pid in pids {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

fn marked_processes(is_wanted: impl Fn(&str) -> bool) -> Vec<Pid> {
    let is_match = |pid: &Pid| {
        let environ =
            std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        let value = environ.split(|&byte| byte == 0).find_map(|variable| {
            variable
                .strip_prefix(VARIABLE.as_bytes())?
                .strip_prefix(b"=")
        });
        value
            .and_then(|value| str::from_utf8(value).ok())
            .is_some_and(|value| value.split(SEPARATOR).any(&is_wanted))
    };
    let Ok(entries) = uninterrupted(|| std::fs::read_dir("/proc")) else {
        return Vec::new();
    };

    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let own = rustix::process::getpid();
    numbers
        .filter_map(Pid::from_raw)
        .filter(|pid| *pid != own && is_match(pid))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::process;

    /// Expects head, tail and loss for ten bytes in pieces of three.
    fn check(limit: usize, expected: (&str, &str, u64)) {
        let mut capture = Capture::new(limit);
        b"0123456789".chunks(3).for_each(|piece| capture.add(piece));
        let captured = capture.finish();
        assert_eq!(
            (
                str::from_utf8(&captured.head).unwrap(),
                str::from_utf8(&captured.tail).unwrap(),
                captured.lost
            ),
            expected
        );
    }

    #[test]
    fn beginning_and_end_are_kept() {
        check(10, ("0123456789", "", 0));
        check(5, ("012", "89", 5));
        check(0, ("", "", 10));
    }

    #[test]
    fn the_gap_is_said() {
        let captured = CapturedOutput {
            head: b"a".into(),
            tail: b"b".into(),
            lost: 7,
        };
        assert_eq!(captured.joined(), b"a\n[7 bytes are left out here]\nb");
    }

    #[test]
    fn a_plan_may_not_choose_what_commands_run() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "GIT_SSH_COMMAND",
            "BASH_ENV",
            "OPENAI_BASE_URL",
            "a-b",
            "",
            "1A",
            "BASH_FUNC_x%%",
        ] {
            assert!(!may_set_variable(name), "{name} may be set");
        }
        assert!(may_set_variable("RUST_LOG") && may_set_variable("_X1"));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_outlived_its_program_is_found_later() {
        let start = |mark: String| {
            let mut command = process::command("sleep");
            command.arg("300").env(VARIABLE, mark);
            command.spawn().unwrap()
        };
        // Ended and reaped, so its id is free.
        let mut ended = process::command("true").spawn().unwrap();
        ended.wait().unwrap();
        let (here, ended_id) = (namespace(), ended.id());
        let mut orphan = start(format!("1.{here}.a:{ended_id}.{here}.b"));
        let others = [
            format!("{}.{here}.c", std::process::id()),
            // From a container, in which the id belongs to another process.
            format!("{ended_id}.{}.d", here + 1),
            format!("{ended_id}.e"),
        ];
        let others = others.map(start);
        end_orphans();
        assert!(!orphan.wait().unwrap().success());
        for mut other in others {
            assert!(other.try_wait().unwrap().is_none());
            other.kill().unwrap();
            other.wait().unwrap();
        }
    }
}
