//! What stands below an action's heading, and where a summary counts it.
//!
//! The parser, the repair and the respelling of what models write go by the shape, so that none of
//! them knows an action by its name.

/// What stands below the heading and the list of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyShape {
    /// Nothing.
    ListAlone,
    /// One block with the content of a file.
    File,
    /// FIND and REPLACE in turn, each with a block of a file's text.
    Pairs,
    /// One block with a script for the shell.
    Script,
    /// A block for each query.
    Queries,
    /// Free text up to the next action.
    Message,
}

/// The order in which a summary counts the actions: what changes files and what runs comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SummaryGroup {
    /// Files are written.
    Files,
    /// Commands are run; the summary always shows them whole.
    Commands,
    /// The context of the next turn changes.
    Context,
    /// The web is asked.
    Web,
    /// Somebody is told something.
    Messages,
}

impl BodyShape {
    /// Returns whether a block is the text of a file, whole or in part.
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
