//! The person at the other end, as the workflows see them.

use crate::git::worktree::fill::Filled;
use crate::model::acting::AgentProgress;
use crate::plan::Plan;
use crate::plan::action::Action;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::memo;
use crate::plan::repair::Repaired;
use crate::plan::validate::Simulation;
use crate::text::resource::Resource;
use crate::workflow::notice::Notice;
use crate::workspace::drift::Drift;
use crate::workspace::notice::FilesNotice;

/// There is no person to ask.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct NobodyToAsk {
    /// What nobody can be asked.
    pub what: String,
    /// The flag or the command that answers.
    pub hint: String,
}

impl NobodyToAsk {
    /// Returns the error.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> NobodyToAsk {
        NobodyToAsk {
            what: what.into(),
            hint: hint.into(),
        }
    }
}

/// Someone who decides, answers and watches. `ui` implements it for a terminal.
pub trait User {
    /// Shows a proposal and returns what shall happen with it.
    ///
    /// # Errors
    /// Where nobody can be asked; the message names the flag that answers.
    fn review(&mut self, proposal: &ReviewRequest<'_>) -> anyhow::Result<Decision>;

    /// Tells whether plans are approved without a look at them, because that was said beforehand.
    fn approves_unseen(&self) -> bool {
        false
    }

    /// Asks for a message; `None` is the wish to leave.
    ///
    /// # Errors
    /// As for [`User::review`].
    fn ask(&mut self, question: &Question<'_>) -> anyhow::Result<Option<String>>;

    /// Asks yes or no; `flag` is what answers where nobody can be asked.
    ///
    /// # Errors
    /// As for [`User::review`].
    fn confirm(&mut self, question: &str, flag: &str) -> anyhow::Result<bool>;

    /// Lets the user choose one of several things to do, by its position; nothing where nobody can
    /// be asked or the user leaves.
    ///
    /// # Errors
    /// Where the terminal is gone.
    fn choose(
        &mut self,
        _question: &str,
        _choices: &[Choice<'_>],
    ) -> anyhow::Result<Option<usize>> {
        Ok(None)
    }

    /// Tells what is going on; must return at once.
    fn tell(&mut self, event: Event<'_>);
}

/// Something that a user can choose to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice<'a> {
    /// The key that chooses it.
    pub key: char,
    /// What is done, with its key in brackets: `(v)iew`.
    pub label: &'a str,
}

/// A valid plan, ready to be decided on.
pub struct ReviewRequest<'a> {
    /// The session's name.
    pub session: &'a str,
    /// The turn's number.
    pub turn: u64,
    /// The plan.
    pub plan: &'a Plan,
    /// Its text, after repair.
    pub text: &'a str,
    /// What repair did.
    pub repair: &'a Repaired,
    /// What each action would do to the files.
    pub simulation: &'a Simulation,
    /// How commands will be confined, in a few words: `sandboxed, no network`, `not sandboxed`.
    pub confinement: &'a str,
    /// Validates a plan that the user changed, against the same snapshot.
    pub revise: &'a dyn Fn(&Plan) -> anyhow::Result<Simulation>,
    /// Returns what a resource has in the same snapshot.
    pub look: &'a dyn Fn(&Resource) -> anyhow::Result<ResourceContent>,
    /// What the user had approved when their files changed under the review.
    pub earlier: Option<&'a Approved>,
}

impl ReviewRequest<'_> {
    /// Returns the same proposal with another plan, and what that would do.
    pub fn with<'a>(&'a self, plan: &'a Plan, simulation: &'a Simulation) -> ReviewRequest<'a> {
        ReviewRequest {
            plan,
            simulation,
            ..*self
        }
    }
}

/// What a resource has, to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceContent {
    /// A file, a page or an artifact: its content.
    Content(Vec<u8>),
    /// A folder: the paths of its files.
    Folder(Vec<String>),
    /// Nothing that can be shown, and why.
    Nothing(&'static str),
}

/// What the user decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Run this.
    Run(Approved),
    /// Don't run it; plan again with these words, asked for if there are none.
    Skip(Option<String>),
    /// Leave everything as it is.
    Quit,
}

/// What runs: the plan with the user's changes, and which parts of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// The plan as it will run: same number of actions in the same order; switched-off pairs are
    /// gone from their EDIT.
    pub plan: Plan,
    /// For each action whether it runs.
    pub actions: Vec<bool>,
    /// For each memo whether it is applied.
    pub memos: Vec<bool>,
    /// The indices of the actions that the user changed.
    pub modified: Vec<usize>,
}

impl Approved {
    /// Approves all of a plan as it stands.
    pub fn all(plan: &Plan) -> Approved {
        Approved {
            plan: plan.clone(),
            actions: vec![true; plan.actions.len()],
            memos: vec![true; plan.memos.len()],
            modified: Vec::new(),
        }
    }

    /// Returns the actions that run; an EDIT that lost all of its pairs has nothing to do.
    pub fn running(&self) -> impl Iterator<Item = &Action> {
        let chosen = self.plan.actions.iter().zip(&self.actions);
        chosen
            .filter(|(action, chosen)| **chosen && action.kind.has_work())
            .map(|(action, _)| action)
    }

    /// Returns the memos that are applied if the plan runs to its end.
    pub fn memos(&self) -> impl Iterator<Item = &memo::MemoChange> {
        let chosen = self.plan.memos.iter().zip(&self.memos);
        chosen.filter(|(_, chosen)| **chosen).map(|(memo, _)| memo)
    }

    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.running().next().is_none() && self.memos().next().is_none()
    }
}

/// Why a message is asked for.
pub enum Question<'a> {
    /// The message of the next turn.
    NextTurn {
        /// The session's name.
        session: &'a str,
        /// The number of the turn to plan.
        turn: u64,
        /// Whether the model goes on by itself if they say nothing.
        goes_on: bool,
        /// Whether commands can be typed, too.
        takes_commands: bool,
    },
    /// What to do instead of a skipped plan.
    Instead {
        /// The title of the plan.
        title: &'a str,
    },
    /// Why a verdict on a change is overridden.
    Reason {
        /// The id of the change.
        change: &'a str,
    },
    /// The answer to what the model asks.
    Answer {
        /// The Markdown that the model wrote.
        message: &'a str,
        /// Whether commands can be typed, too.
        takes_commands: bool,
    },
}

/// What a call will cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Estimate {
    /// Nothing: no provider is asked.
    Free,
    /// No price is configured.
    Unknown,
    /// So many dollars for what is sent, and so many at most where the length of the answer has a
    /// limit.
    Dollars(f64, Option<f64>),
}

/// Something that happened on the way.
pub enum Event<'a> {
    /// The model is being asked.
    Asking {
        /// The model's name.
        model: &'a str,
        /// About how many tokens it gets.
        tokens: usize,
        /// What that will cost.
        estimate: Estimate,
    },
    /// More of the answer arrived, or it is still awaited.
    Received {
        /// The whole answer so far; empty where nothing came meanwhile.
        text: &'a str,
    },
    /// A model that edits files itself does something.
    Working {
        /// The model's name.
        model: &'a str,
        /// What it does.
        progress: &'a AgentProgress<'a>,
    },
    /// The answer is complete.
    Answered,
    /// The plan was not accepted.
    Rejected {
        /// The file from which it was read, if it was.
        file: Option<&'a str>,
        /// Every mistake, by the lines of that file.
        diagnostics: &'a [Diagnostic],
    },
    /// The worktree is being filled; nothing where that is over.
    Filling(Option<Filled>),
    /// An action starts.
    Started {
        /// Its position, from 0.
        index: usize,
        /// `EXECUTE cargo test`
        label: &'a str,
    },
    /// A command wrote this.
    Output {
        /// As the command wrote it.
        bytes: &'a [u8],
    },
    /// An action ended.
    Finished {
        /// Its position, from 0.
        index: usize,
        /// Its result.
        outcome: &'a crate::plan::run::Outcome,
    },
    /// Something that the user should hear of.
    Notice(Notice),
}

/// Returns what passes notices about the files on to the user.
pub fn telling<'a>(user: &'a mut dyn User) -> impl FnMut(FilesNotice) + 'a {
    |notice| user.tell(Event::Notice(Notice::Files(notice)))
}

/// Tells the user before a turn what of the turns is not in their files; `turn` is the number of
/// the newest one.
pub fn tell_drift(drift: &Drift, turn: u64, user: &mut dyn User) {
    let drift = Box::new(drift.clone());
    user.tell(Event::Notice(Notice::Files(FilesNotice::Drifted {
        drift,
        turn,
    })));
}
