//! The plan as a value: title, header, rationale, memos, actions.

use crate::plan::action::{Action, ActionKind};
use crate::plan::field::Field;
use crate::plan::memo;
use crate::text::path::RepoPath;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Text of the level 1 heading.
    pub title: String,
    /// The list below it, in order.
    pub fields: Vec<Field>,
    /// Content of the rationale's block.
    pub rationale: String,
    /// Proposed changes of the long-term memory.
    pub memos: Vec<memo::MemoChange>,
    pub actions: Vec<Action>,
}

/// The model's assessment of its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanStatus {
    /// The last expectation was met.
    Green,
    /// The last expectation was missed.
    Yellow,
    /// Two expectations in a row were missed.
    Red,
}

impl Plan {
    pub fn kinds(&self) -> impl Iterator<Item = &ActionKind> {
        self.actions.iter().map(|action| &action.kind)
    }

    /// Returns the value of a header field; the key is case-insensitive.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|f| f.key.eq_ignore_ascii_case(key))
            .map(|f| f.value.as_str())
    }

    /// Returns the files that the actions themselves write, in order.
    pub fn targets(&self) -> impl Iterator<Item = &RepoPath> {
        self.actions.iter().filter_map(|action| action.kind.path())
    }

    /// Returns the status in the header, with or without its emoji.
    pub fn status(&self) -> Option<PlanStatus> {
        let value = self.field("Status")?.to_lowercase();
        let has = |word: &str, sign: char| value.contains(word) || value.contains(sign);
        [
            ("green", '🟢', PlanStatus::Green),
            ("yellow", '🟡', PlanStatus::Yellow),
            ("red", '🔴', PlanStatus::Red),
        ]
        .into_iter()
        .find(|&(word, sign, _)| has(word, sign))
        .map(|(_, _, status)| status)
    }
}
