//! The plan of what an agent did to the files, written from their difference.
//!
//! Pure. New text is a CREATE, changed text an EDIT with a pair for each place, everything else a
//! TAKE. What is written is read again before it is handed out, so that it is this very plan, and
//! each EDIT was applied by the matcher of validation: run in the mind it gives what the agent
//! made, byte for byte. The agent's words are a stranger's: they are a title, a rationale or a
//! message, and never more.

mod outcome;
mod pairs;
mod say;
mod words;
mod write;

use std::collections::{BTreeMap, BTreeSet};

pub use super::state::{FileState, StateMode};
pub use outcome::outcome;

/// What became of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeChange {
    /// The path from the root of the project.
    pub path: Vec<u8>,
    /// What was there; `None` where nothing was.
    pub before: Option<FileState>,
    /// What is there now; `None` where nothing is.
    pub after: Option<FileState>,
}

/// What an agent said in the end.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentWords<'a> {
    /// What the plan is called.
    pub title: &'a str,
    /// Why it did what it did: its last message.
    pub rationale: &'a str,
}

/// A plan that was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WrittenPlan {
    /// The plan.
    pub text: String,
    /// The artifacts that its TAKEs name, with their bytes: `taken/01`.
    pub taken: Vec<(String, Vec<u8>)>,
    /// The paths that no plan can name, or for which there was no room, and why.
    pub left_out: Vec<(Vec<u8>, String)>,
}

/// Writes the plan of what an agent did.
pub fn plan_of(changes: &[MadeChange], author: &AgentWords<'_>) -> WrittenPlan {
    plan_taking(changes, author, &BTreeSet::new())
}

/// Writes the plan of what an agent did, in which some paths are taken as a whole: those for which
/// CREATE or EDIT turned out to be wrong where they are.
pub fn plan_taking(
    changes: &[MadeChange],
    author: &AgentWords<'_>,
    whole: &BTreeSet<Vec<u8>>,
) -> WrittenPlan {
    write::written(changes, author, whole)
}

/// The bytes of a plan's artifacts, by name.
pub type TakenBytes = BTreeMap<String, Vec<u8>>;

#[cfg(test)]
mod tests;
