//! A program that is talked to: its input stays open, its output comes in pieces, and what it
//! complains of is kept apart. It is confined and supervised like a command of a plan, and nothing
//! of it is left when the dialogue is over.
//!
//! Its input is a named pipe in a private folder, because the supervisor's own input is the socket
//! to us and nothing else can be handed over without unsafe code.

mod pipe;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use super::shell::{CommandEnvironment, Marker, VARIABLE};
use super::supervisor::{
    self, CommandEnding, CommandOutputs, Launcher, Supervisor, SupervisorMessage,
};
use super::temporary::temporary_folder;
use super::{process, sandbox};
use pipe::InputPipe;

/// How long a supervisor may take to start a program, or to end all after it was told to.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a program may take to end by itself once its input is closed.
const HANG_UP: Duration = Duration::from_millis(500);
/// How long output is still read after everything has ended.
const DRAIN: Duration = Duration::from_secs(1);
/// How many pieces of output wait to be taken; then the program waits.
const PIECES: usize = 64;

/// How much of its last complaints is kept, in bytes; a piece more at most.
const MAX_COMPLAINTS: usize = 64 << 10;

/// The private folder of a dialogue, which goes with it.
#[derive(Debug)]
pub struct DialogueFolder {
    /// The folder, readable by this user only.
    folder: tempfile::TempDir,
}

impl DialogueFolder {
    /// Makes one.
    ///
    /// # Errors
    /// There is no room for temporary files.
    pub fn new() -> io::Result<DialogueFolder> {
        let folder = temporary_folder()?;
        let made = DialogueFolder { folder };
        std::fs::create_dir(made.temporary())?;
        Ok(made)
    }

    /// Returns the folder for the program's own temporary files, which it may write.
    pub fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// Returns the named pipe.
    fn pipe(&self) -> PathBuf {
        self.folder.path().join("input")
    }
}

/// A program to talk to.
#[derive(Debug, Clone)]
pub struct DialogueOrder<'a> {
    /// The program, a path or a name, and its arguments.
    pub words: &'a [String],
    /// The folder in which it runs.
    pub folder: &'a Path,
    /// What starts it, in a sandbox or not.
    pub launcher: &'a Launcher,
    /// Variables besides the inherited ones; these win.
    pub variables: &'a [(String, String)],
    /// Inherited variables that pass although their name says secret or git.
    pub keep_env: &'a [String],
}

/// Why a program was not started.
#[derive(Debug)]
pub enum DialogueRefusal {
    /// There is no such program.
    Missing,
    /// The arguments are longer than the system allows.
    TooLong,
    /// Anything else, in words.
    Failed(String),
}

impl From<io::Error> for DialogueRefusal {
    fn from(error: io::Error) -> DialogueRefusal {
        DialogueRefusal::Failed(super::file::reason(&error))
    }
}

/// What a program says or does.
#[derive(Debug, PartialEq, Eq)]
pub enum DialogueEvent {
    /// It wrote to its output.
    Said(Vec<u8>),
    /// It wrote to its error output.
    Complained(Vec<u8>),
    /// Nothing came in the time that was given.
    Silence,
    /// It has ended, all that it started has, and all its output was taken.
    Over(DialogueEnding),
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialogueEnding {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
}

impl std::fmt::Display for DialogueEnding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DialogueEnding::Exited(code) => write!(f, "exit status: {code}"),
            DialogueEnding::Signaled(signal) => write!(f, "signal: {signal}"),
        }
    }
}

/// What is left of a program that was ended.
#[derive(Debug, Default)]
pub struct EndedDialogue {
    /// The processes that could not be ended.
    pub left: Vec<String>,
    /// The last that it wrote to its error output.
    pub complaints: Vec<u8>,
}

/// A program that runs. Dropping it ends it with all that it started.
pub struct Dialogue {
    /// Who ends what it starts.
    supervisor: Supervisor,
    /// What it writes.
    events: Receiver<Heard>,
    /// What writes to it, on a thread of its own; nothing once its input is closed.
    input: Option<Sender<Vec<u8>>>,
    /// What it wrote before we knew that it was started.
    early: VecDeque<DialogueEvent>,
    /// How far it has come.
    state: DialogueState,
    /// What it may do.
    policy: Option<sandbox::Policy>,
}

/// What comes from the threads that listen.
enum Heard {
    /// Output.
    Out(Vec<u8>),
    /// Error output.
    Err(Vec<u8>),
    /// The output has ended.
    Closed,
    /// The supervisor says something.
    Said(SupervisorMessage),
}

/// What is known of a program.
#[derive(Default)]
struct DialogueState {
    /// Whether it was started.
    is_started: bool,
    /// Why it was not.
    refused: Option<String>,
    /// Whether it may be started without a private view of folders.
    is_halfway: bool,
    /// How it ended.
    ending: Option<DialogueEnding>,
    /// Nobody but these is left.
    left: Option<Vec<String>>,
    /// The supervisor is gone.
    is_lost: bool,
    /// How many of its outputs have ended.
    closed: usize,
}

impl Dialogue {
    /// Starts a program.
    ///
    /// # Errors
    /// [`DialogueRefusal`]; nothing runs then.
    pub fn start(
        order: &DialogueOrder<'_>,
        folder: &DialogueFolder,
    ) -> Result<Dialogue, DialogueRefusal> {
        let gave_views = supervisor::gives_private_views();
        let mut dialogue = Dialogue::launch(order, folder)?;
        dialogue.await_start();
        if dialogue.state.is_started {
            return Ok(dialogue);
        }

        if dialogue.state.is_halfway && gave_views {
            drop(dialogue);
            supervisor::give_no_private_views();
            return Dialogue::start(order, folder);
        }

        let why = dialogue.state.refused.take();
        Err(refusal(why.unwrap_or_else(|| dialogue.last_words())))
    }

    /// Gives it more to read.
    pub fn say(&self, bytes: Vec<u8>) {
        // A program that does not listen any more is seen to end.
        let _ = self.input.as_ref().map(|input| input.send(bytes));
    }

    /// Closes its input once it has read what was said.
    pub fn hang_up(&mut self) {
        self.input = None;
    }

    /// Waits for something to happen, at most for so long.
    pub fn hear(&mut self, limit: Duration) -> DialogueEvent {
        if let Some(event) = self.early.pop_front() {
            return event;
        }

        let deadline = Instant::now() + limit;
        loop {
            if self.state.is_over() && self.state.closed == 2 {
                return DialogueEvent::Over(self.state.ending());
            }

            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Heard::Out(bytes)) => return DialogueEvent::Said(bytes),
                Ok(Heard::Err(bytes)) => return DialogueEvent::Complained(bytes),
                Ok(Heard::Closed) => self.state.closed += 1,
                Ok(Heard::Said(message)) => self.state.note(message),
                Err(RecvTimeoutError::Timeout) => return DialogueEvent::Silence,
                Err(RecvTimeoutError::Disconnected) => {
                    self.state.is_lost = true;
                    self.state.closed = 2;
                }
            }
        }
    }

    /// Ends it politely: closes its input, waits a moment, and ends what is left then.
    pub fn finish(mut self) -> EndedDialogue {
        let mut complaints = Vec::new();
        self.hang_up();
        self.drain(HANG_UP, &mut complaints);
        self.end_all(complaints)
    }

    /// Ends it with all that it started.
    pub fn end(self) -> EndedDialogue {
        self.end_all(Vec::new())
    }

    /// Ends all that is left, behind what it complained of already.
    fn end_all(mut self, mut complaints: Vec<u8>) -> EndedDialogue {
        self.hang_up();
        if !self.state.is_over() {
            self.supervisor.end();
            self.drain(PATIENCE, &mut complaints);
        }

        let left = match self.state.left.take() {
            Some(left) => left,
            None => self.supervisor.replace(),
        };
        self.drain(DRAIN, &mut complaints);
        self.policy.iter().for_each(sandbox::sweep);
        EndedDialogue { left, complaints }
    }

    /// Starts the supervisor and the threads that listen and speak.
    fn launch(
        order: &DialogueOrder<'_>,
        folder: &DialogueFolder,
    ) -> Result<Dialogue, DialogueRefusal> {
        let words = found(order.words)?;
        let mut launcher = order.launcher.clone();
        if let Some(policy) = &mut launcher.policy {
            policy.write.push(folder.temporary());
        }

        let mut told = supervisor::order(&launcher, words, order.folder);
        told.variables = order.variables.to_vec();
        told.input = Some(folder.pipe().into_os_string().into());
        let pipe = InputPipe::make(&folder.pipe())?;
        let mut command = launcher.command()?;
        let environment = CommandEnvironment {
            keep: order.keep_env,
            temporary: &folder.temporary(),
            is_confined: launcher.policy.is_some(),
        };
        environment.give(&mut command);
        // Some take this for where they are.
        command.env("PWD", order.folder);
        command.env(VARIABLE, Marker::new().value());

        let (out, stdout) = io::pipe()?;
        let (err, stderr) = io::pipe()?;
        let supervisor = Supervisor::start(command, &told, CommandOutputs { stdout, stderr })?;
        let (sender, events) = sync_channel(PIECES);
        listen(out, sender.clone(), Heard::Out)?;
        listen(err, sender.clone(), Heard::Err)?;
        supervisor.listen(move |message| drop(sender.send(Heard::Said(message))))?;

        Ok(Dialogue {
            supervisor,
            events,
            input: Some(pipe.speak()?),
            early: VecDeque::new(),
            state: DialogueState::default(),
            policy: launcher.policy,
        })
    }

    /// Waits until the program was started, or was not.
    fn await_start(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while !self.state.is_started && !self.state.is_over() {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Heard::Said(message)) => self.state.note(message),
                Ok(Heard::Closed) => self.state.closed += 1,
                Ok(Heard::Out(bytes)) => self.early.push_back(DialogueEvent::Said(bytes)),
                Ok(Heard::Err(bytes)) => self.early.push_back(DialogueEvent::Complained(bytes)),
                Err(_) => return,
            }
        }
    }

    /// Returns what a supervisor said that started nothing.
    fn last_words(&self) -> String {
        let words = self.early.iter().map(|event| match event {
            DialogueEvent::Complained(bytes) => String::from_utf8_lossy(bytes),
            _ => "".into(),
        });
        let words: String = words.collect();
        match words.trim() {
            "" => "its supervisor did not start it".to_owned(),
            words => words.to_owned(),
        }
    }

    /// Passes over what it says until all is over or the time is; keeps what it complains of.
    fn drain(&mut self, limit: Duration, complaints: &mut Vec<u8>) {
        let deadline = Instant::now() + limit;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            match self.hear(left) {
                DialogueEvent::Complained(bytes) if complaints.len() < MAX_COMPLAINTS => {
                    complaints.extend(bytes);
                }
                DialogueEvent::Over(_) => return,
                _ => {}
            }
        }
    }
}

impl DialogueState {
    /// Takes in what the supervisor says.
    fn note(&mut self, message: SupervisorMessage) {
        match message {
            SupervisorMessage::Started => self.is_started = true,
            SupervisorMessage::Refused(why) => {
                self.refused = Some(why);
                self.left = Some(Vec::new());
            }
            SupervisorMessage::Halfway(why) => {
                self.is_halfway = true;
                self.note(SupervisorMessage::Refused(why));
            }
            SupervisorMessage::Ended(CommandEnding::Exited(code)) => {
                self.ending = Some(DialogueEnding::Exited(code));
            }
            SupervisorMessage::Ended(CommandEnding::Signaled(signal)) => {
                self.ending = Some(DialogueEnding::Signaled(signal));
            }
            SupervisorMessage::Gone(left) => self.left = Some(left),
            SupervisorMessage::Lost => self.is_lost = true,
        }
    }

    /// Returns whether the supervisor has nothing more to say.
    fn is_over(&self) -> bool {
        self.left.is_some() || self.is_lost
    }

    /// Returns how it ended; whose supervisor was killed was killed itself.
    fn ending(&self) -> DialogueEnding {
        let killed = DialogueEnding::Signaled(rustix::process::Signal::KILL.as_raw());
        self.ending.clone().unwrap_or(killed)
    }
}

/// Returns the words with the program's path in the place of its name.
fn found(words: &[String]) -> Result<Vec<OsString>, DialogueRefusal> {
    let (program, arguments) = words.split_first().ok_or(DialogueRefusal::Missing)?;
    let path = process::find(program).ok_or(DialogueRefusal::Missing)?;
    // It runs in another folder.
    let path = std::path::absolute(path)?;
    let arguments = arguments.iter().map(OsString::from);
    Ok(std::iter::once(path.into()).chain(arguments).collect())
}

/// Says why a program was not started.
fn refusal(why: String) -> DialogueRefusal {
    // Only words come back from the supervisor.
    if why.to_ascii_lowercase().contains("argument list too long") {
        return DialogueRefusal::TooLong;
    }
    DialogueRefusal::Failed(why)
}

/// Sends on what comes through a pipe, from a thread.
fn listen(
    mut pipe: impl Read + Send + 'static,
    events: SyncSender<Heard>,
    heard: fn(Vec<u8>) -> Heard,
) -> io::Result<()> {
    std::thread::Builder::new()
        .name("output".to_owned())
        .spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(length @ 1..) if events.send(heard(buffer[..length].to_vec())).is_ok() => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    _ => break,
                }
            }

            let _ = events.send(Heard::Closed);
        })?;
    Ok(())
}
