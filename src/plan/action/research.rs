//! RESEARCH: searches the web.

/// Queries to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Research {
    /// One for each block, without its final newline.
    pub queries: Vec<String>,
}
