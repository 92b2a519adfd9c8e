//! RESEARCH: searches the web.

use super::body::Body;
use super::shape::{BodyShape, SummaryGroup};
use super::{ActionKind, ActionRow, write_block};
use crate::plan::spelling::key::QUERY;

/// The row of the table.
pub static ROW: ActionRow = ActionRow {
    name: "RESEARCH",
    aliases: &[],
    other_names: &["WEB_SEARCH", "SEARCH_WEB"],
    keys: &["Description"],
    other_keys: &[(QUERY, &["query", "queries", "searchquery", "search"])],
    shape: BodyShape::Queries,
    group: SummaryGroup::Web,
    unit: ("search", "searches"),
    counts_targets: false,
    read: |body| read(body).map(ActionKind::Research),
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
