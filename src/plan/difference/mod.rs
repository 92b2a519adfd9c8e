//! Writes the plan for an agent's changes from their diff.
//!
//! Pure. A new text file becomes a CREATE, a changed one an EDIT with a pair per place, everything
//! else a TAKE. The result is parsed again and must give the same plan, and each EDIT is checked
//! with the matcher of validation: applied to the old files, the plan reproduces the agent's files
//! byte for byte. The agent's messages are untrusted: they can become a title, a rationale or a
//! message, and nothing else.

mod choose;
mod generate;
mod outcome;
mod pairs;
mod text;

use std::collections::{BTreeMap, BTreeSet};

pub use super::state::{FileState, StateMode};
pub use outcome::files_after;

/// Change of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeChange {
    /// Path from the project root.
    pub path: Vec<u8>,
    /// State before the change; `None` if the path did not exist.
    pub before: Option<FileState>,
    /// State after the change; `None` if the path was deleted.
    pub after: Option<FileState>,
}

/// Text from the agent.
#[derive(Debug, Clone, Copy, Default)]
pub struct AgentText<'a> {
    /// Title of the plan.
    pub title: &'a str,
    /// The agent's last message.
    pub rationale: &'a str,
}

/// A generated plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WrittenPlan {
    /// Text of the plan.
    pub text: String,
    /// Artifacts that its TAKEs refer to, such as `taken/01`, with their bytes.
    pub taken_bytes: Vec<(String, Vec<u8>)>,
    /// Changes that are not in the plan, with the reason: a path that a plan cannot name, or too
    /// many actions.
    pub left_out: Vec<(Vec<u8>, String)>,
}

/// Writes the plan for an agent's changes.
pub fn plan_of(changes: &[MadeChange], author: &AgentText<'_>) -> WrittenPlan {
    plan_with_takes(changes, author, &BTreeSet::new())
}

/// Like [`plan_of`], with a TAKE for each path of `whole`. The caller lists paths for which
/// validation in the project rejected CREATE or EDIT.
pub fn plan_with_takes(
    changes: &[MadeChange],
    author: &AgentText<'_>,
    take_paths: &BTreeSet<Vec<u8>>,
) -> WrittenPlan {
    generate::write_plan(changes, author, take_paths)
}

/// Content of a plan's artifacts, by name.
pub type TakenBytes = BTreeMap<String, Vec<u8>>;

#[cfg(test)]
mod tests;
