//! INVOKE: hands over to another agent.

use crate::text::resource::Resource;

/// A hand-over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoke {
    /// The agent's name as written.
    pub agent: String,
    /// What the agent starts with.
    pub resources: Vec<Resource>,
    /// The Markdown, cut from the source, without blank lines at its ends.
    pub message: String,
}
