//! What happens at a line of a reply as it is read.

use super::state::Nesting;

/// What a reading does at a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RepairEvent {
    /// The plan's title.
    Title,
    /// Opens the fence around the whole plan.
    Wrap,
    /// Closes it.
    Unwrap,
    /// An action begins.
    Action,
    /// Opens a block.
    Open(FenceScope, Nesting),
    /// Closes it.
    Close(FenceScope, How),
    /// The open block ends before this line, its closer is missing.
    Forgotten(FenceScope),
    /// A fence that belongs to nothing.
    Surplus,
    /// A label that needs a blank line before it.
    Glued,
    /// Text that has no place here.
    Prose,
    /// A second plan behind the fence around the first one.
    SecondPlan,
    /// The grammar cannot go on here.
    Broken,
}

/// Whose fence it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FenceScope {
    /// Of a block that the plan's grammar asks for.
    Content,
    /// Of the rationale, which nothing is done with.
    Rationale,
    /// Of a message.
    Message,
}

/// How a closer differs from what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum How {
    /// In nothing, or it is longer.
    Proper,
    /// It is shorter.
    Shorter,
    /// Text stands behind it.
    Trailing,
    /// It has the other character.
    OtherMark,
}
