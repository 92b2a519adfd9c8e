//! Screen area available to a text.

/// In columns, if the output is not a terminal.
const DEFAULT_WIDTH: usize = 100;

/// Space available to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextArea {
    /// Columns.
    pub width: usize,
    /// Lines.
    pub height: usize,
}

impl TextArea {
    /// For files and pipes: nothing is shortened.
    pub const UNLIMITED: TextArea = TextArea {
        width: DEFAULT_WIDTH,
        height: usize::MAX,
    };
}
