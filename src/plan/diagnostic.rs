//! `Diagnostic`: one mistake of a plan, said so that its author can correct it.

/// A mistake.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Diagnostic {
    /// The line in the plan, from 1.
    pub line: usize,
    /// The action that it is in, as `EDIT src/a.rs`; empty outside of actions.
    pub action: String,
    /// What is wrong, lower case, without a full stop. May have further lines: the closest place, a difference.
    pub message: String,
    /// What would be right.
    pub hint: Option<String>,
}
