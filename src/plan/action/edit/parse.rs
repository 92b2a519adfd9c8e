//! Parses an EDIT: labels and blocks in turn.

use super::Edit;
use super::pair::Pair;
use crate::plan::action::body::{Body, BodyPart};
use crate::plan::action::foreign;
use crate::plan::action::heading::Label;

/// The label or block expected next.
enum LabelState {
    /// FIND.
    Between,
    /// The block of this label, at this line.
    Labelled(usize, Label),
    /// REPLACE, since a FIND is complete.
    HasFind,
}

pub(super) fn parse_edit(body: &mut Body<'_>) -> Option<Edit> {
    let path = body.path();
    let mut pairs: Vec<Pair> = Vec::new();
    let mut pending: Option<Pair> = None;
    let mut state = LabelState::Between;
    let parts = std::mem::take(&mut body.parts);
    let any = parts
        .iter()
        .any(|part| !matches!(part, BodyPart::Unexpected { .. }));

    for part in parts {
        state = match (part, state) {
            (BodyPart::Label { line, label }, LabelState::Labelled(before, _)) => {
                body.report(
                    before,
                    "this label has no code block below it",
                    "put the code block on the line below the label",
                );
                LabelState::Labelled(line, label)
            }
            (
                BodyPart::Label {
                    line,
                    label: Label::Replace,
                },
                LabelState::Between,
            ) => {
                body.report(
                    line,
                    "REPLACE without a FIND before it",
                    "FIND and REPLACE alternate, FIND first",
                );
                LabelState::Labelled(line, Label::Replace)
            }
            (
                BodyPart::Label {
                    line,
                    label: Label::Find,
                },
                LabelState::HasFind,
            ) => {
                body.report(
                    line,
                    "FIND where a REPLACE is expected: the FIND above has none",
                    "FIND and REPLACE alternate, FIND first",
                );
                pending = None;
                LabelState::Labelled(line, Label::Find)
            }
            (BodyPart::Label { line, label }, _) => LabelState::Labelled(line, label),
            (
                BodyPart::Code {
                    text: content,
                    language,
                    ..
                },
                LabelState::Labelled(line, Label::Find),
            ) => {
                pending = Some(Pair {
                    line,
                    find: content,
                    replace: String::new(),
                    language,
                });
                LabelState::HasFind
            }
            (BodyPart::Code { text, .. }, LabelState::Labelled(_, Label::Replace)) => {
                pairs.extend(pending.take().map(|pair| Pair {
                    replace: text,
                    ..pair
                }));
                LabelState::Between
            }
            (
                BodyPart::Code {
                    line,
                    text,
                    language,
                },
                LabelState::Between,
            ) if foreign::change(&text, &language).is_some() => {
                // More helpful than "no label": the message shows the equivalent pairs.
                let message = foreign::change(&text, &language).unwrap_or_default();
                body.report(line, message, "copy FIND from the current file");
                LabelState::Between
            }
            (part, state) => {
                body.misplaced(&part);
                state
            }
        };
    }

    if let Some(line) = unfinished_label(&state, pending.as_ref()) {
        body.report(
            line,
            "FIND without a REPLACE behind it",
            "add `REPLACE:` and its code block; an empty block deletes the lines",
        );
    }

    if !any {
        body.report(
            body.line,
            "EDIT has no pair of FIND and REPLACE",
            "add `FIND:` with a code block and `REPLACE:` with a code block",
        );
    }

    Some(Edit { path: path?, pairs })
}

/// Returns the line of a label that is incomplete at the end of the action.
fn unfinished_label(state: &LabelState, pending: Option<&Pair>) -> Option<usize> {
    match state {
        LabelState::Labelled(line, _) => Some(*line),
        LabelState::HasFind => pending.map(|pair| pair.line),
        LabelState::Between => None,
    }
}
