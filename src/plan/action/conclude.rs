//! CONCLUDE: returns to the agent that handed over.

use crate::text::resource::Resource;

/// A return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclude {
    /// What the caller gets besides its own context.
    pub resources: Vec<Resource>,
    /// The Markdown, cut from the source, without blank lines at its ends.
    pub message: String,
}
