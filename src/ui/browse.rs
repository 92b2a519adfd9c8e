//! `teddy browse`: sessions and turns on a full screen or line by line.
//!
//! [`browser`] holds the state and reacts to keys, without a terminal. [`source`] reads the
//! repository in two threads. [`screen`] draws the state and connects the two. Actions that change
//! something ([`BrowseCommand`](screen::BrowseCommand)) are run by the caller, with the same
//! previews and questions as the commands.

pub mod browser;
pub mod linear;
pub mod screen;
pub mod source;
pub mod tree;
pub mod turn_view;

use crate::query::view::turn_page::ChangedFile;
use crate::session::name::SessionName;

/// A turn as the user names it, `session:number`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnAddress {
    pub session: SessionName,
    /// Number of the turn in the session.
    pub number: u64,
}

impl std::fmt::Display for TurnAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.session, self.number)
    }
}

/// An action on a turn, a file or the clipboard.
#[derive(Debug, Clone)]
pub enum BrowseAction {
    /// Start a session at a turn.
    Branch(TurnAddress),
    Undo(TurnAddress),
    Restore(TurnAddress),
    Land(TurnAddress),
    /// Review the plan that waits in a session, where comments on its lines are written.
    Review(SessionName),
    Open(Box<ChangedFile>),
    /// Copy text to the clipboard.
    Copy(String),
}

/// Runs an action, with the terminal in its normal mode. Returns the message to show.
pub type CarryOut<'a> = dyn FnMut(BrowseAction) -> String + 'a;

#[cfg(test)]
mod sample;
