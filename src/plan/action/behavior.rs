//! Trait that every action implements: check, run, preview, report, edit.
//!
//! Each action implements it in its own file. Previews and reports are described in terms of the
//! plan (a diff, a command, a message); the caller decides how to lay them out.

use serde_json::Value;

use super::{ActionKind, Execute};
use crate::plan::field::Field;
use crate::plan::line::is_fence;
use crate::plan::run::{ActionError, Outcome, Stage};
use crate::plan::state::ModeChange;
use crate::plan::validate::{Step, Validator};
use crate::text::path::RepoPath;
use crate::text::resource::Resource;

/// Behavior of an action. Defaults suit an action that touches no file and has no message.
pub trait Behavior {
    /// Returns the fields derived from the value, in the format's order. A `Description` with an
    /// empty value marks the position of the description from the plan.
    fn fields(&self) -> Vec<Field>;

    /// Writes the part below the field list. Messages are written by `border`.
    fn write(&self, _out: &mut String) {}

    /// Returns its target as one line: a path, a URL, an agent, or the first line of a command,
    /// query or message.
    fn target(&self) -> String {
        let path = self.path().map(ToString::to_string);
        let resource = || self.resource().map(ToString::to_string);
        let message = || first_message_line(self.message().unwrap_or_default());
        path.or_else(resource).unwrap_or_else(message)
    }

    /// Validates the action and applies it to the simulated files.
    fn check(&self, _validator: &mut Validator<'_>) -> anyhow::Result<()> {
        Ok(())
    }

    /// Runs the action in the worktree.
    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError>;

    /// Returns the parts of its preview for the review.
    fn preview<'a>(&'a self, step: &'a Step) -> Vec<PreviewPart<'a>>;

    /// Returns its item in the summary of a plan.
    fn summary(&self) -> SummaryItem<'_> {
        match self.path() {
            Some(_) => SummaryItem::ChangedFile,
            None => SummaryItem::Target,
        }
    }

    /// Returns its properties in the JSON summary, besides name, target and description.
    fn json(&self) -> Vec<(&'static str, Value)> {
        let message = self.message().map(|text| ("message", text.into()));
        message.into_iter().collect()
    }

    /// Returns the parts of its report, below the fields.
    fn report(&self, _outcome: &Outcome) -> Vec<ReportPart<'_>> {
        let message = self.message().map(|text| ReportPart::Block {
            caption: Some("Message"),
            language: "markdown",
            text,
        });
        message.into_iter().collect()
    }

    /// Returns the risks of this action alone, as phrases without a full stop.
    fn risks(&self, _step: &Step) -> Vec<String> {
        Vec::new()
    }

    /// Returns how the action changes the mode of its file, if known.
    fn mode_change(&self) -> ModeChange {
        ModeChange::default()
    }

    /// Returns all texts that the model wrote. The review searches them for invisible characters.
    fn texts(&self) -> Vec<&str> {
        self.message().into_iter().collect()
    }

    /// Names a text of the action that contains a NUL character and must not.
    fn text_with_nul(&self) -> Option<&'static str> {
        None
    }

    /// Returns the part that the user can edit in the review.
    fn editable(&self) -> Editable<'_> {
        match self.message() {
            Some(message) => Editable::Text(message.to_owned()),
            None => Editable::Nothing,
        }
    }

    /// Replaces the text of [`Editable::Text`] by the user's.
    fn set_text(&mut self, _text: &str) {}

    /// Returns the action with another version of its file. Used through [`ActionKind::edited`].
    fn with_version(&self, _edit: UserEdit<'_>) -> Option<ActionKind> {
        None
    }

    /// Returns the file that the action itself writes.
    fn path(&self) -> Option<&RepoPath> {
        None
    }

    /// Returns the file that the action creates.
    fn new_path(&self) -> Option<&RepoPath> {
        None
    }

    /// Returns the artifact of the turn that holds the bytes to write.
    fn artifact(&self) -> Option<&str> {
        None
    }

    /// Describes the problem if those bytes are missing or differ from the recorded hash.
    fn check_artifact(&self, _bytes: &dyn Fn(&str) -> Option<Vec<u8>>) -> Option<String> {
        None
    }

    /// Returns the file or directory of the worktree that the action itself reads or writes.
    fn worktree_path(&self) -> Option<&RepoPath> {
        self.path()
    }

    /// Returns the resource to add to or remove from the context.
    fn resource(&self) -> Option<&Resource> {
        None
    }

    fn message(&self) -> Option<&str> {
        None
    }

    /// Returns the replacements, each of which the user can deselect.
    fn pairs(&self) -> Option<&[Pair]> {
        None
    }

    fn pairs_mut(&mut self) -> Option<&mut Vec<Pair>> {
        None
    }

    fn command(&self) -> Option<&Execute> {
        None
    }

    fn command_mut(&mut self) -> Option<&mut Execute> {
        None
    }

    /// Returns the switch that keeps the bytes which its new version did not mean to change.
    fn keeps_bytes_mut(&mut self) -> Option<&mut bool> {
        None
    }

    /// Returns `false` if the user deselected every part of the action.
    fn has_work(&self) -> bool {
        true
    }

    /// Returns whether control passes to another agent, so that it must be the last action.
    fn hands_over(&self) -> bool {
        false
    }

    /// Returns the question for the user; the session waits for the answer.
    fn question(&self) -> Option<&str> {
        None
    }

    /// Returns whether an answer to a question can contain the action: it changes nothing and
    /// reaches nothing outside the project.
    fn is_informational(&self) -> bool {
        false
    }

    fn changes_files(&self) -> bool {
        self.path().is_some() || self.command().is_some()
    }
}

#[derive(Debug, Clone)]
pub struct Pair {
    /// Line of the FIND label in the plan, from 1. Without effect on equality.
    pub line: usize,
    /// Text of the FIND block; empty, or ends with a line ending.
    pub find: String,
    /// Text of the REPLACE block.
    pub replace: String,
    /// Info string of the FIND block.
    pub language: String,
}

impl PartialEq for Pair {
    fn eq(&self, other: &Pair) -> bool {
        (&self.find, &self.replace, &self.language)
            == (&other.find, &other.replace, &other.language)
    }
}

impl Eq for Pair {}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreviewPart<'a> {
    /// Change of a file. `None` means that the file does not exist.
    Difference {
        path: &'a RepoPath,
        /// Content before the action.
        before: Option<&'a [u8]>,
        /// Content after the action.
        after: Option<&'a [u8]>,
    },
    /// Textual description of a change.
    Text(Vec<String>),
    /// A replacement in a file whose content is unknown.
    Replacement(&'a Pair),
    /// The full command with its expected outcome.
    Command(&'a Execute),
    Query(&'a str),
    /// A resource, and a description of the change.
    Resource(&'a Resource, &'static str),
    Message(&'a str),
    /// A message to an agent, with the resources it receives.
    HandOver {
        /// Description of the receiving agent.
        lead_in: String,
        /// Resources passed along.
        resources: &'a [Resource],
        message: &'a str,
    },
}

/// Item of an action in the summary of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SummaryItem<'a> {
    Target,
    /// The target, with the number of added and removed lines.
    ChangedFile,
    Command(&'a Execute),
    /// One line per text.
    Lines(&'a [String]),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportPart<'a> {
    /// A fenced text.
    Block {
        /// Caption above the block.
        caption: Option<&'static str>,
        language: &'static str,
        text: &'a str,
    },
    /// The captured output, truncated.
    Output,
    Sentence(&'static str),
}

/// Part of an action that the user can edit in the review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Editable<'a> {
    Nothing,
    /// A text, edited at a prompt.
    Text(String),
    /// Path and content of a new file.
    NewFile {
        path: &'a RepoPath,
        /// The proposed content.
        text: &'a str,
    },
    /// The whole file after the action.
    FinalVersion {
        path: &'a RepoPath,
    },
}

/// The user's edit of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserEdit<'a> {
    /// Another text; never blank.
    Text(&'a str),
    /// Another path or content for a new file.
    NewFile { path: RepoPath, text: String },
    /// Another final content than the pairs produce.
    FinalVersion {
        /// The file before the action.
        before: &'a str,
        /// The final content.
        after: String,
    },
}

/// Returns a text without the empty lines that an editor leaves around it.
pub fn edited_message(text: &str) -> String {
    text.trim_matches('\n').to_owned()
}

/// Returns the first line of a Markdown message that has text, even if all of it is in a code block.
pub fn first_message_line(message: &str) -> String {
    let mut lines = message.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty() && !is_fence(line));
    line.unwrap_or_default().to_owned()
}

/// Returns the first non-blank line of a text.
pub fn first_line(text: &str) -> String {
    let mut lines = text.lines();
    let line = lines.find(|line| !line.trim().is_empty());
    line.unwrap_or_default().to_owned()
}
