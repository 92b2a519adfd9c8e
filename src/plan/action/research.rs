//! RESEARCH: searches the web.

use serde_json::Value;

use super::behavior::{
    Behavior, Editable, PreviewPart, ReportPart, SummaryItem, edited_message, first_line,
};
use super::body::Body;
use super::{ActionKind, ActionRow, BodyShape, SummaryGroup, write_block};
use crate::plan::field::Field;
use crate::plan::line::key::QUERY;
use crate::plan::run::{ActionError, Ending, Outcome, STOPPED, Stage, found_line};
use crate::plan::validate::{Mistake, Step, Validator};
use crate::text::sanitize::sanitize_line;

/// Separates the queries in the user's editor.
const BETWEEN: &str = "\n\n";

/// Table entry of RESEARCH.
pub static ROW: ActionRow = ActionRow {
    name: "RESEARCH",
    aliases: &[],
    other_names: &["WEB_SEARCH", "SEARCH_WEB"],
    keys: &["Description"],
    other_keys: &[(QUERY, "query queries searchquery search")],
    shape: BodyShape::Queries,
    group: SummaryGroup::Web,
    unit: ("search", "searches"),
    counts_targets: false,
    read: |body| read(body).map(ActionKind::from),
};

/// Queries to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Research {
    /// One query per block, without its final newline.
    pub queries: Vec<String>,
}

impl Behavior for Research {
    fn fields(&self) -> Vec<Field> {
        vec![Field::new("Description", "")]
    }

    fn write(&self, out: &mut String) {
        for query in &self.queries {
            write_block(&format!("{query}\n"), "text", out);
        }
    }

    fn target(&self) -> String {
        let first = self.queries.first();
        first.map(|query| first_line(query)).unwrap_or_default()
    }

    // Without a usable search engine, the search would fail in the middle of the plan.
    fn check(&self, validator: &mut Validator<'_>) -> anyhow::Result<()> {
        if let Some(why) = validator.files.facts.search_obstacle() {
            let hint = "leave RESEARCH out: READ pages whose address you know, or ask the user to set up a search engine as `docs/research.md` says";
            let mistake = Mistake::new(format!("RESEARCH cannot search: {why}"), hint);
            validator.refuse(mistake);
        }

        let is_option = |query: &&String| query.starts_with('-');
        if validator.files.facts.searches_with_program()
            && let Some(query) = self.queries.iter().find(is_option)
        {
            let mistake = Mistake::new(
                format!(
                    "the query `{}` starts with `-`, and the search program would read it as an option",
                    sanitize_line(&first_line(query))
                ),
                "start the query with a word",
            );
            validator.refuse(mistake);
        }
        Ok(())
    }

    // The action succeeds if one query finds something.
    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        let (mut output, mut failures) = (String::new(), Vec::new());
        for query in &self.queries {
            if stage.tools.interrupted() {
                return Ok(Outcome {
                    output: output.into_bytes(),
                    ..Outcome::failure(STOPPED)
                });
            }

            match stage.tools.search(query) {
                Ok(results) => {
                    output += &format!("{}\n\n{}\n\n", found_line(query), results.trim_end())
                }
                Err(why) => {
                    failures.push(format!(
                        "no result for `{}`: {}",
                        sanitize_line(query.trim()),
                        sanitize_line(&why)
                    ));
                }
            }
        }

        let answered = self.queries.len() - failures.len();
        let ending = if answered == 0 {
            Ending::Failure
        } else {
            Ending::Success
        };

        let share = match self.queries.len() {
            1 => (answered == 1).then(|| "the query has results".to_owned()),
            number => Some(format!("{answered} of {number} queries have results")),
        };
        let detail = share
            .into_iter()
            .chain(failures)
            .collect::<Vec<_>>()
            .join("; ");
        Ok(Outcome {
            output: output.into_bytes(),
            ..Outcome::of(ending, detail)
        })
    }

    fn preview<'a>(&'a self, _step: &'a Step) -> Vec<PreviewPart<'a>> {
        let queries = self.queries.iter();
        queries.map(|query| PreviewPart::Query(query)).collect()
    }

    fn summary(&self) -> SummaryItem<'_> {
        SummaryItem::Lines(&self.queries)
    }

    fn json(&self) -> Vec<(&'static str, Value)> {
        vec![("queries", self.queries.as_slice().into())]
    }

    fn report(&self, _outcome: &Outcome) -> Vec<ReportPart<'_>> {
        let query = |text| ReportPart::Block {
            caption: None,
            language: "text",
            text,
        };
        let queries = self.queries.iter().map(|text| query(text));
        queries.chain([ReportPart::Output]).collect()
    }

    fn texts(&self) -> Vec<&str> {
        self.queries.iter().map(String::as_str).collect()
    }

    fn editable(&self) -> Editable<'_> {
        Editable::Text(self.queries.join(BETWEEN))
    }

    fn set_text(&mut self, text: &str) {
        let queries = text.split(BETWEEN).map(edited_message);
        self.queries = queries.filter(|query| !query.trim().is_empty()).collect();
    }
}

fn read(body: &mut Body<'_>) -> Option<Research> {
    let blocks = body.blocks();
    let queries: Vec<String> = blocks
        .iter()
        .map(|(_, text, _)| text.trim_end_matches(['\n', '\r']).to_owned())
        .filter(|q| !q.trim().is_empty())
        .collect();
    if queries.is_empty() {
        body.report(
            body.line,
            "RESEARCH has no query",
            "add a code block for each query",
        );
    }

    Some(Research { queries })
}
