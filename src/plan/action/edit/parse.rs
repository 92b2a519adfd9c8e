//! Reading an EDIT: labels and blocks in turn.

use super::Edit;
use super::pair::Pair;
use crate::plan::action::body::{Body, Part};
use crate::plan::action::foreign;
use crate::plan::action::heading::Label;

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
pub(super) fn read(body: &mut Body<'_>) -> Option<Edit> {
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
