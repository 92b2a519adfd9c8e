//! One replacement of an EDIT.

/// A FIND and its REPLACE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Line of the FIND label in the plan, from 1.
    pub line: usize,
    /// Text of the FIND block; empty, or ends with a line ending.
    pub find: String,
    /// Text of the REPLACE block.
    pub replace: String,
    /// Info string of the FIND block.
    pub language: String,
}
