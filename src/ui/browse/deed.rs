//! What a person wants to be done from the browser. It is done elsewhere, as the command does it.

use crate::session::name::SessionName;
use crate::workflow::view::turn_page::ChangedFile;

/// A turn, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnAddress {
    /// The session.
    pub session: SessionName,
    /// The number.
    pub number: u64,
}

impl std::fmt::Display for TurnAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.session, self.number)
    }
}

/// Something to be done.
#[derive(Debug, Clone)]
pub enum BrowseDeed {
    /// A session is started at a turn.
    Branch(TurnAddress),
    /// The turns behind one are undone.
    Undo(TurnAddress),
    /// The files are taken back to a turn.
    Restore(TurnAddress),
    /// Turns are committed: all that have not landed, or this one.
    Land(TurnAddress),
    /// A file is opened as it was after a turn.
    Open(Box<ChangedFile>),
    /// A text goes to the clipboard.
    Copy(String),
}

/// Who does it.
pub trait BrowseDeeds {
    /// Does it; the terminal is as the person had it. Returns what is to be said about it then.
    fn carry_out(&mut self, deed: BrowseDeed) -> String;
}
