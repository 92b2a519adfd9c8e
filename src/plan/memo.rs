//! Memos: the model's long-term memory in `.teddy/memos.yaml`, and what a plan changes in it.

/// One line of `## Memos`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The line in the plan, from 1.
    pub line: usize,
    /// Whether the memo comes or goes.
    pub verb: Verb,
    /// The memo.
    pub text: String,
    /// What stands behind ` # `; shown, never stored.
    pub comment: Option<String>,
}

/// What happens to a memo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `[+]`
    Add,
    /// `[-]`
    Remove,
}
