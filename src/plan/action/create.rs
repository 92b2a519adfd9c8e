//! CREATE: makes a file that is not there yet.

use crate::text::path::RepoPath;

/// A file to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Create {
    /// Where.
    pub path: RepoPath,
    /// The exact content, with the line ends and the final newline that the fields ask for.
    pub content: String,
    /// The info string of the block.
    pub language: String,
    /// `- **Overwrite:** true`: an existing file may be replaced.
    pub overwrite: bool,
}
