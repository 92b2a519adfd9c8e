//! One replacement of an EDIT.

/// One FIND and its REPLACE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The line of the FIND label in the plan, from 1.
    pub line: usize,
    /// The literal text of the FIND block; it is empty or ends with a line end.
    pub find: String,
    /// The literal text of the REPLACE block.
    pub replace: String,
    /// The info string of the FIND block.
    pub language: String,
}
