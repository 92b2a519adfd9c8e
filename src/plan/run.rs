//! Runs an approved plan in a worktree: actions in order, each with an outcome.
//!
//! A failed action is an outcome, never an error. Later actions are skipped; earlier changes stay.
//! If the user stops the run or the machine fails, the run is interrupted. Every path is checked
//! again at the moment of use, and validation and run use the same matcher. Network, shell and
//! session are accessed through [`Tools`].

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fmt, io};

use super::action::{Action, Execute};
use super::document::Plan;
use crate::host::file::{Root, reason};
use crate::host::{fault, shell};
use crate::text::diff;
use crate::text::edit::MatchPlace;
use crate::text::path::RepoPath;
use crate::text::resource::{Artifact, Resource};
use crate::text::sanitize::sanitize_line;

/// Context in which a plan runs.
pub struct Stage<'a> {
    pub root: &'a Root,
    /// Access to everything else.
    pub tools: &'a mut dyn Tools,
}

/// A finished command.
#[derive(Debug)]
pub struct Executed {
    pub finished: shell::FinishedScript,
    /// How to permit an access that the sandbox denied, or why a message about it is harmless.
    pub hint: Option<String>,
}

/// Everything that actions need besides files, and progress callbacks.
pub trait Tools {
    /// Runs a command in the worktree and streams its output. Only a machine that can run no
    /// command is an error: a command that fails or cannot start is not.
    fn execute(&mut self, execute: &Execute) -> io::Result<Executed>;

    /// Fetches a page for the next input. The error is a message.
    fn fetch(&mut self, url: &str) -> Result<(), String>;

    /// Runs one web query and returns the results as text. The error is a message.
    fn search(&mut self, query: &str) -> Result<String, String>;

    fn has_artifact(&self, artifact: &Artifact) -> bool;

    /// Returns the content of an artifact of this turn, for TAKE.
    fn taken_bytes(&self, name: &str) -> Option<Vec<u8>>;

    /// Returns whether the user asked to stop.
    fn interrupted(&self) -> bool;

    /// Called before an action runs.
    fn started(&mut self, index: usize, action: &Action);

    /// Called after an action ended or was skipped.
    fn finished(&mut self, index: usize, outcome: &Outcome);
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ran {
    pub outcomes: Vec<Outcome>,
    /// Set if an action failed without permission to.
    pub failed: bool,
    /// Why the run was interrupted.
    pub interruption: Option<Interruption>,
}

impl Ran {
    /// Returns whether the plan ran to its end.
    pub fn is_whole(&self) -> bool {
        !self.failed && self.interruption.is_none()
    }

    /// Records a failure of the machine. An earlier interruption takes precedence.
    pub fn cut_short(&mut self, error: &anyhow::Error) {
        let why = Interruption::World(format!("{error:#}"));
        self.interruption.get_or_insert(why);
    }
}

/// Why a run was interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interruption {
    /// Requested by the user, or by a signal: ctrl-c, TERM, HUP.
    User,
    /// The machine failed: full disk, broken device. Holds the reason.
    World(String),
}

impl fmt::Display for Interruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Interruption::User => f.write_str("stopped by the user"),
            Interruption::World(why) => f.write_str(why),
        }
    }
}

/// Runs the actions selected by `chosen`, which is indexed like the plan's actions.
pub fn run(plan: &Plan, chosen: &[bool], stage: &mut Stage<'_>) -> Ran {
    let mut ran = Ran::default();
    for (index, action) in plan.actions.iter().enumerate() {
        let outcome = match why_not(&ran, action, chosen.get(index) == Some(&true)) {
            Some(reason) => Outcome::of(Ending::Skipped, reason),
            None if stage.tools.interrupted() => {
                ran.interruption = Some(Interruption::User);
                Outcome::of(Ending::Skipped, INTERRUPTED)
            }
            None => attempt(index, action, stage, &mut ran),
        };
        stage.tools.finished(index, &outcome);
        ran.outcomes.push(outcome);
    }

    ran
}

/// Runs an action, measures its duration, and records whether the run can continue.
fn attempt(index: usize, action: &Action, stage: &mut Stage<'_>, ran: &mut Ran) -> Outcome {
    stage.tools.started(index, action);
    let start = Instant::now();
    let result = pass_fault_point("before-action").and_then(|()| action.kind.perform(stage));
    let outcome = result.unwrap_or_else(|error| match error {
        ActionError::Plan(why) => Outcome::failure(why),
        ActionError::World(error) => {
            let why = reason(&error);
            ran.interruption = Some(Interruption::World(why.clone()));
            Outcome::failure(why)
        }
    });

    if outcome.ending == Ending::Failure {
        // A command ended by ctrl-c counts as failed even if it is allowed to fail.
        if ran.interruption.is_none() && stage.tools.interrupted() {
            ran.interruption = Some(Interruption::User);
        }
        ran.failed |= ran.interruption.is_some() || !is_allowed(action, &outcome);
    }

    Outcome {
        duration: start.elapsed(),
        ..outcome
    }
}

/// Returns the line in the output of RESEARCH for a query with results.
pub fn found_line(query: &str) -> String {
    format!("Query: {}", sanitize_line(query.trim()))
}

/// Outcome of a command or search that the user stopped.
pub const STOPPED: &str = "stopped by the user";

const INTERRUPTED: &str = "skipped because the run was interrupted";

fn why_not(ran: &Ran, action: &Action, chosen: bool) -> Option<&'static str> {
    match () {
        () if !chosen || !action.kind.has_work() => Some("skipped by the user"),
        () if ran.interruption.is_some() => Some(INTERRUPTED),
        () if ran.failed => Some("skipped because an action before it failed"),
        () => None,
    }
}

/// Returns whether the plan continues after a failure: only if the command ran and is allowed to
/// fail.
fn is_allowed(action: &Action, outcome: &Outcome) -> bool {
    let command = action.kind.command();
    outcome.exit_code.is_some() && command.is_some_and(|command| command.allow_failure)
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    #[default]
    Success,
    Failure,
    /// Not attempted: deselected by the user, or an earlier action failed.
    Skipped,
}

/// The result of one action.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    pub ending: Ending,
    /// One sentence in lower case, without a full stop.
    pub detail: String,
    /// Run time.
    pub duration: Duration,
    /// EXECUTE: exit code; 124 after the time limit, 128 + n after signal n.
    pub exit_code: Option<i32>,
    /// EXECUTE and RESEARCH: output, up to the capture limit.
    pub output: Vec<u8>,
    /// EXECUTE: bytes of output beyond the capture limit.
    pub lost_output: u64,
    /// EDIT: where each pair matched.
    pub positions: Vec<MatchPlace>,
    /// CREATE and EDIT: unified diff of the file; empty if it is too large.
    pub difference: String,
    /// Files that the action itself wrote. They are in the snapshot even if an ignore rule covers
    /// them.
    pub written: Vec<RepoPath>,
    /// Effect on the next turn.
    pub effect: Option<Effect>,
}

impl Outcome {
    pub fn of(ending: Ending, detail: impl Into<String>) -> Outcome {
        Outcome {
            ending,
            detail: detail.into(),
            ..Outcome::default()
        }
    }

    pub fn failure(detail: impl Into<String>) -> Outcome {
        Outcome::of(Ending::Failure, detail)
    }

    pub fn with(detail: impl Into<String>, effect: Effect) -> Outcome {
        Outcome {
            effect: Some(effect),
            ..Outcome::of(Ending::Success, detail)
        }
    }
}

/// Effect of an action on the next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// READ: adds the resource to the context.
    Add(Resource),
    /// PRUNE: removes the resource.
    Remove(Resource),
    Invoke {
        agent: String,
        /// Its full context.
        resources: Vec<Resource>,
        message: String,
    },
    Conclude {
        /// Resources added to the caller's context.
        resources: Vec<Resource>,
        message: String,
    },
    /// CHAT_WITH_USER: waits for the user's answer.
    Chat { message: String },
}

/// Largest texts for which a diff is kept, in bytes.
pub const MAX_COMPARED_TEXT: usize = 8 << 20;

/// Returns the unified diff of a new, changed or deleted file; empty if it is too large.
pub fn file_difference(path: &RepoPath, before: Option<&str>, after: Option<&str>) -> String {
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    if old.len() + new.len() > MAX_COMPARED_TEXT {
        return String::new();
    }

    let name = |side: &str, text: Option<&str>| match text {
        Some(_) => format!("{side}/{path}"),
        None => "/dev/null".to_owned(),
    };
    diff::unified(old, new, (&name("a", before), &name("b", after)))
}

/// Runs a write between two fault points.
pub fn write_guarded(write: impl FnOnce() -> io::Result<()>) -> Result<(), ActionError> {
    pass_fault_point("before-write")?;
    write().map_err(ActionError::writing)?;
    pass_fault_point("after-write")
}

/// Rejects a path inside a nested repository, such as one that a command of the plan cloned.
pub fn no_repository_above(root: &Root, path: &RepoPath) -> Result<(), ActionError> {
    // Snapshots don't look into nested repositories, so a change there would be lost (T9).
    for dir in path.ancestors() {
        let git = root.kind(&Path::new(dir).join(".git"));
        if git.map_err(ActionError::reading)?.is_some() {
            return Err(format!(
                "`{}` is in `{}`, which is a repository of its own",
                sanitize_line(path.as_str()),
                sanitize_line(dir)
            )
            .into());
        }
    }

    Ok(())
}

// Distinguishes failures of the plan from failures of the machine.
//
// A failure of the plan is an outcome, which the model sees. A failure of the machine says nothing
// about the plan: it interrupts the run, and the user's files stay unchanged.

/// Why an action failed.
#[derive(Debug)]
pub enum ActionError {
    /// The action is impossible in the current state of the files.
    Plan(String),
    /// The machine failed: full disk, no inodes, broken device, too many open files.
    World(io::Error),
}

impl ActionError {
    /// Classifies an error from reading or inspecting a path.
    pub fn reading(error: io::Error) -> ActionError {
        // While reading, this is our own limit, which the plan exceeds. While writing, EFBIG is a
        // limit of the machine.
        match error.kind() {
            io::ErrorKind::FileTooLarge => ActionError::Plan(reason(&error)),
            _ => ActionError::writing(error),
        }
    }

    /// Classifies an error from writing a file. A file size limit counts as a failure of the
    /// machine.
    pub fn writing(error: io::Error) -> ActionError {
        if is_about_the_path(error.kind()) {
            ActionError::Plan(reason(&error))
        } else {
            ActionError::World(error)
        }
    }
}

impl From<String> for ActionError {
    fn from(why: String) -> ActionError {
        ActionError::Plan(why)
    }
}

/// Returns whether an error describes the state of the path, which commands and other plans can
/// cause. Any other error counts as the machine's: publishing half a plan is worse than running a
/// plan again.
fn is_about_the_path(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, InvalidData, InvalidFilename, InvalidInput, IsADirectory,
        NotADirectory, NotFound, PermissionDenied, Unsupported,
    };

    matches!(
        kind,
        AlreadyExists
            | DirectoryNotEmpty
            | InvalidData
            | InvalidFilename
            | InvalidInput
            | IsADirectory
            | NotADirectory
            | NotFound
            | PermissionDenied
            | Unsupported
    )
}

/// Passes a fault point. A failure injected by a test counts as the machine's.
pub fn pass_fault_point(name: &str) -> Result<(), ActionError> {
    fault::point(name).map_err(|error| ActionError::World(io::Error::other(format!("{error:#}"))))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod error_tests {
    use super::*;

    /// Names the side that an error from writing a file is attributed to.
    fn classify(errno: i32) -> &'static str {
        match ActionError::writing(io::Error::from_raw_os_error(errno)) {
            ActionError::Plan(_) => "plan",
            ActionError::World(_) => "world",
        }
    }

    #[test]
    fn what_the_machine_cannot_do_is_not_the_plans_fault() {
        // EINTR, EIO, ENOMEM, ENFILE, EMFILE, EFBIG, ENOSPC, EROFS, EDQUOT, ESTALE
        for errno in [4, 5, 12, 23, 24, 27, 28, 30, 122, 116] {
            assert_eq!(classify(errno), "world", "{errno}");
        }
        // ENOENT, EACCES, EEXIST, ENOTDIR, EISDIR, EINVAL, ENAMETOOLONG
        for errno in [2, 13, 17, 20, 21, 22, 36] {
            assert_eq!(classify(errno), "plan", "{errno}");
        }
    }

    #[test]
    fn a_file_that_is_too_large_to_be_read_is_what_the_plan_asked_for() {
        let error = io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 3 bytes");
        assert!(matches!(ActionError::reading(error), ActionError::Plan(_)));
    }
}
