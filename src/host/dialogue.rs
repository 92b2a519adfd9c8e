//! Runs a program that TeDDy talks to, such as an agent: its input stays open, and output and error
//! output arrive separately, in pieces.
//!
//! The program is sandboxed and supervised like a plan's command. No process of it survives the
//! dialogue.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::inherited::ChildKind;
use super::shell::set_environment;
use super::supervisor::{
    self, CommandDir, CommandEnding, CommandState, Launcher, OutputPipes, PATIENCE, Supervisor,
    SupervisorEvent,
};
use super::{process, sandbox};

/// How long a program has to exit after its input is closed.
const HANG_UP: Duration = Duration::from_millis(100);

const PIPE: &str = "input";

/// In bytes. The last piece can exceed the limit.
const MAX_STDERR: usize = 64 << 10;

/// Bytes that wait for a program that does not read. The last message can exceed the limit.
const MAX_UNREAD: usize = 16 << 20;

#[derive(Debug, Clone)]
pub struct DialogueOrder<'a> {
    /// Path or name of the program, then its arguments.
    pub argv: &'a [String],
    pub dir: &'a Path,
    pub launcher: &'a Launcher,
    /// Additional variables. They override inherited ones.
    pub variables: &'a [(String, String)],
    /// Inherited variables to pass on although no list has them.
    pub keep_env: &'a [String],
}

#[derive(Debug)]
pub enum DialogueRefusal {
    Missing,
    /// The arguments exceed the system's limit.
    TooLong,
    Failed(String),
}

impl From<io::Error> for DialogueRefusal {
    fn from(error: io::Error) -> DialogueRefusal {
        DialogueRefusal::Failed(super::file::reason(&error))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum DialogueEvent {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    Timeout,
    /// Ended. All its children have ended too, and all output was delivered.
    Ended(CommandEnding),
}

#[derive(Debug, Default)]
pub struct EndedDialogue {
    /// Processes that could not be killed.
    pub survivors: Vec<String>,
    /// Standard error read while the program was ending, up to 64 KiB.
    pub stderr: Vec<u8>,
}

/// A running program. Dropping it kills the program and all its children.
pub struct Dialogue {
    supervisor: Supervisor,
    /// `None` once it is closed.
    input: Option<Input>,
    /// Output that arrived before the supervisor reported the start.
    early: VecDeque<SupervisorEvent>,
    policy: Option<sandbox::Policy>,
}

impl Dialogue {
    /// Starts a program. Nothing runs if this fails.
    pub fn start(order: &DialogueOrder<'_>, dir: &CommandDir) -> Result<Dialogue, DialogueRefusal> {
        // Read before the start: another dialogue can disable them meanwhile.
        let had_private_mounts = supervisor::gives_private_mounts();
        let mut dialogue = Dialogue::launch(order, dir)?;
        dialogue.await_start();
        if dialogue.supervisor.state.started.is_some() {
            return Ok(dialogue);
        }

        // Some systems let a process create namespaces and then forbid the mounts. Retry without.
        if had_private_mounts && !supervisor::gives_private_mounts() {
            drop(dialogue);
            return Dialogue::start(order, dir);
        }

        let state = &mut dialogue.supervisor.state;
        let why = state.refused.take().or(state.broken.take());
        Err(refusal(why.unwrap_or_else(|| dialogue.last_stderr())))
    }

    pub fn send(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            input.send(bytes);
        }
    }

    /// Closes the input, after everything sent so far has been read.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Waits up to `limit` for the next event.
    pub fn next_event(&mut self, limit: Duration) -> DialogueEvent {
        let deadline = Instant::now() + limit;
        loop {
            // Output can still arrive after the program has ended, so wait for both pipes.
            let state = &self.supervisor.state;
            if self.early.is_empty() && state.is_over() && state.is_eof() {
                return DialogueEvent::Ended(state.ending());
            }

            let remaining = deadline.saturating_duration_since(Instant::now());
            let early = self.early.pop_front();
            match early.unwrap_or_else(|| self.supervisor.receive(remaining)) {
                SupervisorEvent::Stdout(bytes) => return DialogueEvent::Stdout(bytes),
                SupervisorEvent::Stderr(bytes) => return DialogueEvent::Stderr(bytes),
                SupervisorEvent::Timeout => return DialogueEvent::Timeout,
                SupervisorEvent::State => {}
            }
        }
    }

    /// Closes the input, gives the program a moment to exit, then kills what is left.
    pub fn finish(self) -> EndedDialogue {
        self.end_after(HANG_UP)
    }

    pub fn end(self) -> EndedDialogue {
        self.end_after(Duration::ZERO)
    }

    /// Discards output, but keeps error output.
    fn end_after(mut self, patience: Duration) -> EndedDialogue {
        let mut stderr = Vec::new();
        let mut keep = |event| {
            if let SupervisorEvent::Stderr(bytes) = event
                && stderr.len() < MAX_STDERR
            {
                stderr.extend(bytes);
            }
        };

        self.hang_up();
        self.early.drain(..).for_each(&mut keep);
        let is_done = |state: &CommandState| state.is_over() && state.is_eof();
        self.supervisor.drain(patience, &mut keep, is_done);
        if !self.supervisor.state.is_over() {
            self.supervisor.end();
        }
        let survivors = self.supervisor.finish(&mut keep);
        self.policy.iter().for_each(sandbox::clean_up);
        EndedDialogue { survivors, stderr }
    }

    fn launch(order: &DialogueOrder<'_>, dir: &CommandDir) -> Result<Dialogue, DialogueRefusal> {
        let argv = resolve_command(order.argv)?;
        let mut launcher = order.launcher.clone();
        if let Some(policy) = &mut launcher.policy {
            policy.write.push(dir.temporary());
        }

        let mut request = supervisor::order(&launcher, argv, order.dir);
        request.variables = order.variables.to_vec();
        // A named pipe: the supervisor's own stdin is the socket to TeDDy, and passing another
        // descriptor would need unsafe code.
        request.input = Some(dir.file(PIPE).into_os_string().into());
        let pipe = InputPipe::make(&dir.file(PIPE))?;
        let mut command = launcher.command()?;
        let is_confined = launcher.policy.is_some();
        let temporary = dir.temporary();
        set_environment(
            &mut command,
            ChildKind::Model,
            order.keep_env,
            &temporary,
            is_confined,
        );
        // Some programs trust `PWD` over `getcwd`.
        command.env("PWD", order.dir);

        Ok(Dialogue {
            supervisor: Supervisor::start(command, &request, OutputPipes::Separate)?,
            input: Some(pipe.speak()?),
            early: VecDeque::new(),
            policy: launcher.policy,
        })
    }

    fn await_start(&mut self) {
        let is_decided = |state: &CommandState| state.started.is_some() || state.is_over();
        let mut keep = |event| self.early.push_back(event);
        self.supervisor.drain(PATIENCE, &mut keep, is_decided);
    }

    /// Error output of a supervisor that started nothing.
    fn last_stderr(&self) -> String {
        let text = self.early.iter().map(|event| match event {
            SupervisorEvent::Stderr(bytes) => String::from_utf8_lossy(bytes),
            _ => "".into(),
        });
        let text: String = text.collect();
        match text.trim() {
            "" => "its supervisor did not start it".to_owned(),
            text => text.to_owned(),
        }
    }
}

fn resolve_command(argv: &[String]) -> Result<Vec<OsString>, DialogueRefusal> {
    let (program, arguments) = argv.split_first().ok_or(DialogueRefusal::Missing)?;
    let path = process::find(program).ok_or(DialogueRefusal::Missing)?;
    // The program runs in another directory.
    let path = std::path::absolute(path)?;
    let arguments = arguments.iter().map(OsString::from);
    Ok(std::iter::once(path.into()).chain(arguments).collect())
}

fn refusal(why: String) -> DialogueRefusal {
    // The supervisor reports text only, so the errno is not available.
    if why.to_ascii_lowercase().contains("argument list too long") {
        return DialogueRefusal::TooLong;
    }
    DialogueRefusal::Failed(why)
}

struct InputPipe {
    /// Keeps the pipe open until the first write. Before that the program might not have opened it.
    reader: File,
    writer: File,
}

impl InputPipe {
    fn make(path: &Path) -> io::Result<InputPipe> {
        // A retry of a start uses the same directory.
        let _ = std::fs::remove_file(path);
        make_pipe(path)?;
        let waits_not = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        // Without `NONBLOCK`, opening a FIFO waits for the other end.
        let reader = File::options()
            .read(true)
            .custom_flags(waits_not)
            .open(path)?;
        let writer = File::options().write(true).open(path)?;
        Ok(InputPipe { reader, writer })
    }

    /// Writes what is sent, from a thread: a program that does not read must not block the caller.
    fn speak(self) -> io::Result<Input> {
        let (sender, pieces) = channel::<Vec<u8>>();
        let unread = Arc::new(AtomicUsize::new(0));
        let waiting = Arc::clone(&unread);
        let mut pipe = Some(self);
        std::thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || {
                // The first piece is sent after the program was started, so it has its own end by
                // then.
                let Some(InputPipe { reader, mut writer }) = pipe.take() else {
                    return;
                };
                let first = pieces.recv();
                drop(reader);
                for bytes in first.into_iter().chain(pieces) {
                    if writer.write_all(&bytes).is_err() {
                        return;
                    }
                    waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
                }
            })?;

        Ok(Input { sender, unread })
    }
}

/// Feeds the writer thread.
struct Input {
    sender: Sender<Vec<u8>>,
    unread: Arc<AtomicUsize>,
}

impl Input {
    fn send(&self, bytes: Vec<u8>) {
        // A program can ask without reading the answers, and they must not take all memory.
        if self.unread.load(Ordering::Relaxed) < MAX_UNREAD {
            self.unread.fetch_add(bytes.len(), Ordering::Relaxed);
            // A failure means that the program stopped reading. Its end is reported as an event.
            let _ = self.sender.send(bytes);
        }
    }
}

#[cfg(not(target_vendor = "apple"))]
fn make_pipe(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    Ok(mknodat(
        CWD,
        path,
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )?)
}

#[cfg(target_vendor = "apple")]
fn make_pipe(path: &Path) -> io::Result<()> {
    // rustix has no `mkfifo` for Apple systems.
    let status = crate::host::process::command("/usr/bin/mkfifo")
        .arg(path)
        .status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other("`mkfifo` failed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_read_is_sent_a_limited_part() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(PIPE);
        let pipe = InputPipe::make(&path).unwrap();
        let _program = File::open(&path).unwrap();
        let input = pipe.speak().unwrap();
        for _ in 0..40 {
            input.send(vec![b'x'; 1 << 20]);
        }
        let unread = input.unread.load(Ordering::Relaxed);
        assert!(unread <= MAX_UNREAD + (1 << 20), "{unread}");
    }
}
