//! Running an approved plan in a worktree: actions in order, each with an outcome.
//!
//! An action that fails is an outcome, never an error, and those behind it are skipped; what was
//! done stays. Where the user ends the run, or the machine cannot go on, the run is interrupted.
//! Each path is looked at again at the moment of use, and a FIND is judged by the matcher of
//! validation. What needs a network, a shell or a session is asked of [`Tools`].

pub mod error;
pub mod write;

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use super::Plan;
use super::action::Action;
use crate::host::file::{Root, reason};
use crate::host::shell;
use crate::plan::action::execute::command::Execute;
use crate::text::edit::MatchPlace;
use crate::text::path::RepoPath;
use crate::text::resource::{Artifact, Resource};
use error::ActionError;
pub use write::difference;

/// Where a plan runs, and what it runs with.
pub struct Stage<'a> {
    /// The worktree.
    pub root: &'a Root,
    /// Everything else.
    pub tools: &'a mut dyn Tools,
}

/// A command that has run.
#[derive(Debug)]
pub struct Executed {
    /// What became of it.
    pub finished: shell::FinishedScript,
    /// What opens what its sandbox refused, or why what was said about it is harmless.
    pub hint: Option<&'static str>,
}

/// What actions need of the world besides files, and who watches them.
pub trait Tools {
    /// Runs a command in the worktree, with its output streamed to whoever watches.
    ///
    /// # Errors
    /// Where the machine cannot run anything. A command that fails or does not begin is no error.
    fn execute(&mut self, execute: &Execute) -> io::Result<Executed>;

    /// Fetches a page, so that the next input has it.
    ///
    /// # Errors
    /// Why it cannot be had, in words.
    fn fetch(&mut self, url: &str) -> Result<(), String>;

    /// Searches the web for one query and returns what was found as text.
    ///
    /// # Errors
    /// Why nothing could be searched, in words.
    fn search(&mut self, query: &str) -> Result<String, String>;

    /// Returns whether a turn has the artifact.
    fn has_artifact(&self, artifact: &Artifact) -> bool;

    /// Returns the bytes of an artifact of this turn that a TAKE names.
    fn taken(&self, name: &str) -> Option<Vec<u8>>;

    /// Returns whether the user wants the run to end.
    fn interrupted(&self) -> bool;

    /// An action that runs begins.
    fn started(&mut self, index: usize, action: &Action);

    /// An action ended or was skipped.
    fn finished(&mut self, index: usize, outcome: &Outcome);
}

/// What came of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ran {
    /// One outcome for each action.
    pub outcomes: Vec<Outcome>,
    /// An action failed that was not allowed to.
    pub failed: bool,
    /// Why the run was cut short, if it was.
    pub interruption: Option<Interruption>,
}

impl Ran {
    /// Returns whether the plan ran to its end: whatever failed was allowed to.
    pub fn is_whole(&self) -> bool {
        !self.failed && self.interruption.is_none()
    }

    /// Notes that the machine could not finish the run; what cut it short before counts.
    pub fn cut_short(&mut self, error: &anyhow::Error) {
        let why = Interruption::World(format!("{error:#}"));
        self.interruption.get_or_insert(why);
    }
}

/// Why a run was cut short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interruption {
    /// The user asked for it, or the system on their behalf: ctrl-c, TERM, HUP.
    User,
    /// The machine could not go on: a full disk, a broken device. Why, in words.
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

/// Runs the chosen actions of a plan, `chosen` by their index.
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

/// Tries an action, measures it, and notes whether the run can go on after it.
fn attempt(index: usize, action: &Action, stage: &mut Stage<'_>, ran: &mut Ran) -> Outcome {
    stage.tools.started(index, action);
    let begun = Instant::now();
    let done = error::point("before-action").and_then(|()| action.kind.perform(stage));
    let outcome = done.unwrap_or_else(|error| match error {
        ActionError::Plan(why) => Outcome::failure(why),
        ActionError::World(error) => {
            let why = reason(&error);
            ran.interruption = Some(Interruption::World(why.clone()));
            Outcome::failure(why)
        }
    });

    if outcome.ending == Ending::Failure {
        // A command that ctrl-c has ended failed, whatever it was allowed to.
        if ran.interruption.is_none() && stage.tools.interrupted() {
            ran.interruption = Some(Interruption::User);
        }
        ran.failed |= ran.interruption.is_some() || !is_allowed(action, &outcome);
    }

    Outcome {
        duration: begun.elapsed(),
        ..outcome
    }
}

/// Returns the line of RESEARCH's output that says that a query found something.
pub fn found_line(query: &str) -> String {
    format!("Query: {}", crate::text::visible::visible(query.trim()))
}

/// How a command or a search ended that the user stopped.
pub const STOPPED: &str = "stopped by the user";

/// Why an action is skipped after the user ended the run.
const INTERRUPTED: &str = "skipped because the run was interrupted";

/// Returns why an action is not tried.
fn why_not(ran: &Ran, action: &Action, chosen: bool) -> Option<&'static str> {
    match () {
        () if !chosen || !action.kind.has_work() => Some("skipped by the user"),
        () if ran.interruption.is_some() => Some(INTERRUPTED),
        () if ran.failed => Some("skipped because an action before it failed"),
        () => None,
    }
}

/// Returns whether the plan goes on after a failure: its command ran, and is allowed to fail.
fn is_allowed(action: &Action, outcome: &Outcome) -> bool {
    outcome.exit_code.is_some() && action.kind.may_fail()
}

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    /// It did what it says.
    Success,
    /// It did not.
    Failure,
    /// It was not tried: switched off by the user, or an action before it failed.
    Skipped,
}

/// The result of one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// One sentence, lower case, without a full stop.
    pub detail: String,
    /// How long it took.
    pub duration: Duration,
    /// EXECUTE: the exit code; 124 after the time limit, 128 + n after signal n.
    pub exit_code: Option<i32>,
    /// EXECUTE and RESEARCH: what came out, whole up to the capture limit.
    pub output: Vec<u8>,
    /// EXECUTE: bytes that were produced beyond the capture limit.
    pub lost_output: u64,
    /// EDIT: where each pair applied.
    pub places: Vec<MatchPlace>,
    /// CREATE and EDIT: what became of the file, as a unified difference; empty where it is too
    /// large to be compared.
    pub difference: String,
    /// The files that it wrote itself; they are in the snapshot even where an ignore rule covers
    /// them.
    pub written: Vec<RepoPath>,
    /// What it does to the next turn.
    pub effect: Option<Effect>,
}

impl Outcome {
    /// Returns an outcome that is no more than its ending.
    pub fn of(ending: Ending, detail: impl Into<String>) -> Outcome {
        Outcome {
            ending,
            detail: detail.into(),
            duration: Duration::ZERO,
            exit_code: None,
            output: Vec::new(),
            lost_output: 0,
            places: Vec::new(),
            difference: String::new(),
            written: Vec::new(),
            effect: None,
        }
    }

    /// Returns a failure.
    pub fn failure(detail: impl Into<String>) -> Outcome {
        Outcome::of(Ending::Failure, detail)
    }

    /// Returns a success that the next turn will see.
    pub fn with(detail: impl Into<String>, effect: Effect) -> Outcome {
        Outcome {
            effect: Some(effect),
            ..Outcome::of(Ending::Success, detail)
        }
    }
}

/// What an action does to the next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// READ: the resource joins the context.
    Add(Resource),
    /// PRUNE: the resource leaves it.
    Remove(Resource),
    /// INVOKE.
    Invoke {
        /// The agent's name.
        agent: String,
        /// Its whole context.
        resources: Vec<Resource>,
        /// What it is told.
        message: String,
    },
    /// CONCLUDE.
    Conclude {
        /// What the caller gets besides its own context.
        resources: Vec<Resource>,
        /// What it is told.
        message: String,
    },
    /// CHAT_WITH_USER: waits for the user's answer.
    Chat {
        /// The Markdown.
        message: String,
    },
}

#[cfg(test)]
mod tests;
