//! `TextArea`: how much of a screen, or of a file, a text may take.

/// The columns of a text for which nobody says how wide it may be.
const WIDTH: usize = 100;

/// The room that a text has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextArea {
    /// Columns.
    pub width: usize,
    /// Lines.
    pub height: usize,
}

impl TextArea {
    /// The room of a file or a pipe: nothing is shortened.
    pub const UNLIMITED: TextArea = TextArea {
        width: WIDTH,
        height: usize::MAX,
    };
}
