//! RESEARCH: searches the web.

use super::body::Body;
use super::heading::Act;
use super::{Kind, Row, write_block};

/// The line of the table.
pub const ROW: Row = Row {
    act: Act::Research,
    name: "RESEARCH",
    aliases: &[],
    keys: &["Description"],
    shape: "a list and one code block for each query",
    message: false,
    labels: false,
    read: |body| read(body).map(Kind::Research),
};

/// Queries to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Research {
    /// One for each block, without its final newline.
    pub queries: Vec<String>,
}

impl Research {
    /// Writes a block for each query.
    pub fn write(&self, out: &mut String) {
        for query in &self.queries {
            write_block(&format!("{query}\n"), "text", out);
        }
    }
}

/// Reads the action.
fn read(body: &mut Body<'_>) -> Option<Research> {
    let blocks = body.blocks();
    let queries: Vec<String> = blocks
        .iter()
        .map(|(_, content, _)| content.trim_end_matches(['\n', '\r']).to_owned())
        .filter(|q| !q.trim().is_empty())
        .collect();
    if queries.is_empty() {
        body.wrong(
            body.line,
            "RESEARCH has no query",
            "add a code block for each query",
        );
    }
    Some(Research { queries })
}
