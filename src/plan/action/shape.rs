//! What follows an action's field list, and how the summary counts the action.
//!
//! Parser, repair and respelling depend on the shape and never on an action's name.

/// What follows the heading and field list of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyShape {
    /// Nothing.
    ListAlone,
    /// One block with the content of a file.
    File,
    /// FIND and REPLACE in turn, each with a block of a file's text.
    Pairs,
    /// One block with a shell script.
    Script,
    /// One block per query.
    Queries,
    /// Free text up to the next action.
    Message,
}

/// Group of an action in the summary, in display order: file changes and commands come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SummaryGroup {
    /// Writes files.
    Files,
    /// Runs commands; the summary always shows them in full.
    Commands,
    /// Changes the context of the next turn.
    Context,
    /// Uses the web.
    Web,
    /// Sends a message to the user or an agent.
    Messages,
}

impl BodyShape {
    /// Returns whether its blocks contain text of a file.
    pub fn is_text_of_file(self) -> bool {
        matches!(self, BodyShape::File | BodyShape::Pairs)
    }

    /// Returns whether it reaches beyond the files, where no undo can follow: it runs commands or
    /// sends queries.
    pub fn reaches_outside(self) -> bool {
        matches!(self, BodyShape::Script | BodyShape::Queries)
    }

    /// Returns whether what its blocks say is written or run as it stands.
    pub fn takes_effect(self) -> bool {
        self.is_text_of_file() || self == BodyShape::Script
    }
}
