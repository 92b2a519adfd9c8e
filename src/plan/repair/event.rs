//! Effects of a line in a reading of a reply.

use super::state::Nesting;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RepairEvent {
    Title,
    Wrap,
    Unwrap,
    Action,
    Open(FenceScope, Nesting),
    Close(FenceScope, CloserDeviation),
    /// The open block ends before this line; its closing fence is missing.
    Forgotten(FenceScope),
    /// A fence that belongs to nothing.
    Surplus,
    /// A label that needs a blank line before it.
    Glued,
    /// Text that does not belong here.
    Prose,
    /// A second plan after the fence around the first one.
    SecondPlan,
    /// The grammar does not allow this line.
    Broken,
}

/// Owner of a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FenceScope {
    /// A block that the plan's grammar requires.
    Content,
    /// The rationale, which has no effect.
    Rationale,
    Message,
}

/// Deviation of a closing fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CloserDeviation {
    /// None, or only longer.
    Proper,
    Shorter,
    /// Text follows the fence.
    Trailing,
    OtherMark,
}
