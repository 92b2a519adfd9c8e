//! The plan: a model's proposal for one turn.
//!
//! `parse -> validate -> (review) -> run`, each a function on these values. A mistake in a plan is
//! a [`diagnostic::Diagnostic`], never an `Err`.

pub mod action;
pub mod diagnostic;
pub mod difference;
pub mod memo;

pub mod parse;
pub mod reading;
pub mod render;
pub mod repair;
pub mod run;
#[cfg(test)]
pub mod samples;
pub mod spelling;
pub mod state;
pub mod validate;

pub use crate::plan::reading::outline;
use crate::text::path::RepoPath;
use action::Action;
pub use parse::parse;
pub use render::render;

/// A parsed plan.
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
    /// The actions, in order.
    pub actions: Vec<Action>,
}

/// A `- **Key:** value` item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Field {
    /// Line in the plan, from 1.
    pub line: usize,
    /// The key as the format spells it (`File Path`), or as written if unknown.
    pub key: String,
    /// Text after the colon, as in the plan.
    pub value: String,
    /// Items of a nested list, as in the plan.
    pub items: Vec<String>,
}

impl Field {
    /// Creates a field that is not in a plan yet.
    pub fn new(key: &str, value: impl Into<String>) -> Field {
        Field {
            key: key.to_owned(),
            value: value.into(),
            ..Field::default()
        }
    }
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
