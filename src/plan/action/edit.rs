//! EDIT: replaces exact, unique places of a file.

use super::body::{Body, Part};
use super::heading::Label;
use super::shape::{BodyShape, SummaryGroup};
use super::{ActionKind, ActionRow, foreign, write_block};
use crate::plan::Field;
use crate::plan::spelling::key::PATH_KEYS;
use crate::text::link;
use crate::text::path::RepoPath;

/// The row of the table.
pub static ROW: ActionRow = ActionRow {
    name: "EDIT",
    aliases: &[],
    other_names: &["MODIFY", "UPDATE", "CHANGE"],
    keys: &["File Path", "Description"],
    other_keys: &[PATH_KEYS],
    shape: BodyShape::Pairs,
    group: SummaryGroup::Files,
    unit: ("file", "files"),
    counts_targets: true,
    read: |body| read(body).map(ActionKind::Edit),
};

/// A file to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// Which.
    pub path: RepoPath,
    /// The replacements; each sees the result of those before it.
    pub pairs: Vec<Pair>,
}

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

impl Edit {
    /// Returns the fields of its value.
    pub fn fields(&self) -> Vec<Field> {
        vec![
            Field::new("File Path", link::write_path(self.path.as_str())),
            Field::new("Description", ""),
        ]
    }

    /// Writes the pairs.
    pub fn write(&self, out: &mut String) {
        for pair in &self.pairs {
            out.push_str("\n`FIND:`\n");
            write_block(&pair.find, &pair.language, out);
            out.push_str("`REPLACE:`\n");
            write_block(&pair.replace, &pair.language, out);
        }
    }
}

/// What the next label must be, and what came so far.
enum State {
    /// FIND; nothing is pending.
    Between,
    /// A label stands here and its block must follow.
    Labelled(usize, Label),
    /// A FIND is complete and its REPLACE must follow.
    Found,
}

/// Reads the action.
fn read(body: &mut Body<'_>) -> Option<Edit> {
    let path = body.path();
    let mut pairs: Vec<Pair> = Vec::new();
    let mut pending: Option<Pair> = None;
    let mut state = State::Between;
    let parts = std::mem::take(&mut body.parts);
    let any = parts.iter().any(|part| !matches!(part, Part::Stray { .. }));
    for part in parts {
        state = match (part, state) {
            (Part::Label { line, label }, State::Labelled(before, _)) => {
                body.wrong(
                    before,
                    "this label has no code block below it",
                    "put the code block on the line below the label",
                );
                State::Labelled(line, label)
            }
            (
                Part::Label {
                    line,
                    label: Label::Replace,
                },
                State::Between,
            ) => {
                body.wrong(
                    line,
                    "REPLACE without a FIND before it",
                    "FIND and REPLACE alternate, FIND first",
                );
                State::Labelled(line, Label::Replace)
            }
            (
                Part::Label {
                    line,
                    label: Label::Find,
                },
                State::Found,
            ) => {
                body.wrong(
                    line,
                    "FIND where a REPLACE is expected: the FIND above has none",
                    "FIND and REPLACE alternate, FIND first",
                );
                pending = None;
                State::Labelled(line, Label::Find)
            }
            (Part::Label { line, label }, _) => State::Labelled(line, label),
            (
                Part::Code {
                    content, language, ..
                },
                State::Labelled(line, Label::Find),
            ) => {
                pending = Some(Pair {
                    line,
                    find: content,
                    replace: String::new(),
                    language,
                });
                State::Found
            }
            (Part::Code { content, .. }, State::Labelled(_, Label::Replace)) => {
                pairs.extend(pending.take().map(|pair| Pair {
                    replace: content,
                    ..pair
                }));
                State::Between
            }
            (
                Part::Code {
                    line,
                    content,
                    language,
                },
                State::Between,
            ) if foreign::change(&content, &language).is_some() => {
                let message = foreign::change(&content, &language).unwrap_or_default();
                body.wrong(
                    line,
                    message,
                    "copy FIND from the file, as it stands there now",
                );
                State::Between
            }
            (part, state) => {
                body.misplaced(&part);
                state
            }
        };
    }
    if let Some(line) = unfinished(&state, pending.as_ref()) {
        body.wrong(
            line,
            "FIND without a REPLACE behind it",
            "add `REPLACE:` and its code block; an empty block deletes the lines",
        );
    }
    if !any {
        body.wrong(
            body.line,
            "EDIT has no pair of FIND and REPLACE",
            "add `FIND:` with a code block and `REPLACE:` with a code block",
        );
    }
    Some(Edit { path: path?, pairs })
}

/// Returns the line of a label that the action's end leaves alone.
fn unfinished(state: &State, pending: Option<&Pair>) -> Option<usize> {
    match state {
        State::Labelled(line, _) => Some(*line),
        State::Found => pending.map(|pair| pair.line),
        State::Between => None,
    }
}
