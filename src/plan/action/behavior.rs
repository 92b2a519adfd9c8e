//! What an action does, asked by whoever checks, runs, shows or reports it.
//!
//! Each action answers in its own file. What is to be seen is said in terms of the plan (a
//! difference, a command, a message); how it looks on a screen or in a report is decided there.

use serde_json::Value;

use super::edit::pair::Pair;
use super::execute::command::Execute;
use super::{Action, ActionKind, ActionRow};
use crate::plan::Field;
use crate::plan::run::error::ActionError;
use crate::plan::run::{Outcome, Stage};
use crate::plan::validate::{Judge, Step};
use crate::text::diff::Counts;
use crate::text::path::RepoPath;
use crate::text::resource::Resource;

/// What every action can say of itself and do.
pub trait Behavior {
    /// Returns its row of the table.
    fn row(&self) -> &'static ActionRow;

    /// Returns its fields that follow from its value, in the format's order; a `Description`
    /// without a value marks the place of the action's own.
    fn fields(&self) -> Vec<Field>;

    /// Writes what stands below its list; messages are left to `border`.
    fn write(&self, _out: &mut String) {}

    /// Returns what it acts on, in one line: a path, a URL, an agent, the first line of a command,
    /// the first query, the first line of a message.
    fn target(&self) -> String;

    /// Finds its mistakes and does in the mind what it does to the files.
    ///
    /// # Errors
    /// Where the snapshot cannot be read.
    fn check(&self, judge: &mut Judge<'_>, action: &Action) -> anyhow::Result<()>;

    /// Does what it says, in the worktree.
    ///
    /// # Errors
    /// It cannot be done as things are, or the machine cannot do anything.
    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError>;

    /// Returns what it would do, for the review.
    fn preview<'a>(&'a self, step: &'a Step) -> Vec<PreviewPart<'a>>;

    /// Returns what stands for it in the summary of a plan.
    fn summary(&self) -> SummaryItem<'_> {
        SummaryItem::Target
    }

    /// Returns what the summary as JSON says of it besides its name, target and description;
    /// `counts` are the lines that come and go in its file.
    fn json(&self, _counts: Counts) -> Vec<(&'static str, Value)> {
        let message = self.message().map(|text| ("message", text.into()));
        message.into_iter().collect()
    }

    /// Returns what the report shows of it below its fields.
    fn report(&self, _outcome: &Outcome) -> Vec<ReportPart<'_>> {
        let message = self.message().map(|text| ReportPart::Block {
            caption: Some("Message"),
            language: "markdown",
            text,
        });
        message.into_iter().collect()
    }

    /// Returns what is risky about it alone, as words without a full stop.
    fn risks(&self, _step: &Step) -> Vec<String> {
        Vec::new()
    }

    /// Returns the texts that the model wrote in it, in which something could be hidden.
    fn texts(&self) -> Vec<&str>;

    /// Names the text that has a NUL, where it may have none.
    fn text_with_nul(&self) -> Option<&'static str> {
        None
    }

    /// Returns what of it the user can change in the review.
    fn editable(&self) -> Editable<'_> {
        Editable::Nothing
    }

    /// Returns the action as the user changed it.
    fn edited(&self, _edit: UserEdit<'_>) -> Option<ActionKind> {
        None
    }

    /// Returns the file that it writes itself, if it writes one.
    fn path(&self) -> Option<&RepoPath> {
        None
    }

    /// Returns the file that it makes, if it makes one.
    fn new_path(&self) -> Option<&RepoPath> {
        None
    }

    /// Returns the file that it removes, if it removes one.
    fn lost_path(&self) -> Option<&RepoPath> {
        None
    }

    /// Returns the artifact of its turn whose bytes it takes, if it takes any.
    fn artifact(&self) -> Option<&str> {
        None
    }

    /// Says what is wrong with the bytes that it takes, if any are missing or are others.
    fn lacks(&self, _bytes: &dyn Fn(&str) -> Option<Vec<u8>>) -> Option<String> {
        None
    }

    /// Returns the file or folder of the worktree that it writes or looks at itself.
    fn worktree_path(&self) -> Option<&RepoPath> {
        self.path()
    }

    /// Returns the resource that joins or leaves the context.
    fn resource(&self) -> Option<&Resource> {
        None
    }

    /// Returns its message.
    fn message(&self) -> Option<&str> {
        None
    }

    /// Returns the replacements in its file, each of which can be left out.
    fn pairs(&self) -> Option<&[Pair]> {
        None
    }

    /// Returns the same, to be changed.
    fn pairs_mut(&mut self) -> Option<&mut Vec<Pair>> {
        None
    }

    /// Returns the command that it runs.
    fn command(&self) -> Option<&Execute> {
        None
    }

    /// Returns whether anything is left to do: the user may have left out every part.
    fn has_work(&self) -> bool {
        true
    }

    /// Returns whether the plan goes on where its command fails.
    fn may_fail(&self) -> bool {
        false
    }

    /// Returns whether another agent goes on after it, so that it must be the last action.
    fn hands_over(&self) -> bool {
        false
    }

    /// Says what it is, in one line that tests compare.
    #[cfg(test)]
    fn say(&self) -> String {
        format!("{} {}", self.name(), self.target())
    }

    /// Returns its name as the format spells it.
    fn name(&self) -> &'static str {
        self.row().name
    }

    /// Returns what it asks the user: nothing goes on before the answer.
    fn question(&self) -> Option<&str> {
        None
    }

    /// Returns whether it may be part of an answer to a question: it changes nothing and reaches
    /// nothing outside of the project.
    fn only_tells(&self) -> bool {
        false
    }

    /// Returns whether it can change files.
    fn changes_files(&self) -> bool {
        self.path().is_some() || self.command().is_some()
    }
}

/// A part of what the review shows of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreviewPart<'a> {
    /// What becomes of a file; `None` where there is none.
    Difference {
        /// Which.
        path: &'a RepoPath,
        /// Its content before.
        before: Option<&'a [u8]>,
        /// Its content after.
        after: Option<&'a [u8]>,
    },
    /// What becomes of a file, in words.
    Words(Vec<String>),
    /// Text that is replaced, where its file is not known.
    Replacement(&'a Pair),
    /// A command, whole, with what the model expects of it.
    Command(&'a Execute),
    /// A query for the web.
    Query(&'a str),
    /// A resource and what becomes of it.
    Resource(&'a Resource, &'static str),
    /// A message to the user.
    Message(&'a str),
    /// A message to an agent, with what it gets.
    HandOver {
        /// Who takes over, in words.
        words: String,
        /// What goes along.
        resources: &'a [Resource],
        /// The message.
        message: &'a str,
    },
}

/// What stands for an action in the summary of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SummaryItem<'a> {
    /// Its target.
    Target,
    /// Its target, with the number of lines that come and go.
    ChangedFile,
    /// The whole command.
    Command(&'a Execute),
    /// A line for each text.
    Lines(&'a [String]),
}

/// A part of what the report shows of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportPart<'a> {
    /// A text in a block.
    Block {
        /// What stands above it.
        caption: Option<&'static str>,
        /// The info string.
        language: &'static str,
        /// The text.
        text: &'a str,
    },
    /// What came out, shortened.
    Output,
    /// A sentence.
    Sentence(&'static str),
}

/// What of an action the user can change in the review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Editable<'a> {
    /// Nothing: it is only shown.
    Nothing,
    /// A text, at a prompt.
    Text(String),
    /// Path and content of a new file.
    NewFile {
        /// The proposed path.
        path: &'a RepoPath,
        /// The proposed content.
        content: &'a str,
    },
    /// The file as it would be.
    FinalVersion {
        /// Which.
        path: &'a RepoPath,
    },
}

/// What the user made of the part of an action that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserEdit<'a> {
    /// Another text, which is not blank.
    Text(&'a str),
    /// A file elsewhere or with another content.
    NewFile {
        /// The path.
        path: RepoPath,
        /// The content.
        content: String,
    },
    /// A file with another content than the pairs give it.
    FinalVersion {
        /// The file before the action.
        before: &'a str,
        /// The file as it is to be.
        after: String,
    },
}

impl UserEdit<'_> {
    /// Returns the message, if that was changed: without the empty lines around it that an editor
    /// leaves.
    pub fn message(self) -> Option<String> {
        match self {
            UserEdit::Text(text) => Some(text.trim_matches('\n').to_owned()),
            _ => None,
        }
    }
}

/// Returns the first line of a text that is not blank.
pub fn first_line(text: &str) -> String {
    let mut lines = text.lines();
    let line = lines.find(|line| !line.trim().is_empty());
    line.unwrap_or_default().to_owned()
}
