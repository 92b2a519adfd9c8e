//! EDIT: replaces exact, unique places of a file.

mod check;

use std::path::Path;

pub use super::behavior::Pair;
use check::readable_text;

use super::behavior::{Behavior, Editable, PreviewPart, UserEdit};
use super::create::Create;
use super::{ActionKind, ActionRow, write_block};
use crate::host::file::Root;
use crate::plan::action::body::{Body, BodyPart};
use crate::plan::action::{BodyShape, SummaryGroup, foreign};
use crate::plan::field::Field;
use crate::plan::line::Label;
use crate::plan::line::key::PATH_KEYS;
use crate::plan::run;
use crate::plan::run::{ActionError, Ending, Outcome, Stage};
use crate::plan::validate::{Step, Validator};
use crate::text::edit::{FailedPair, MatchError, MatchPlace, apply, explain};
use crate::text::path::RepoPath;
use crate::text::sanitize::sanitize_line;
use crate::text::{counted, diff, link};

/// Table entry of EDIT.
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
    read: |body| parse_edit(body).map(ActionKind::from),
};

/// A file to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub path: RepoPath,
    /// Replacements; each applies to the result of those before it.
    pub pairs: Vec<Pair>,
}

impl Behavior for Edit {
    fn row(&self) -> &'static ActionRow {
        &ROW
    }

    fn fields(&self) -> Vec<Field> {
        vec![
            Field::new("File Path", link::write_path(self.path.as_str())),
            Field::new("Description", ""),
        ]
    }

    fn write(&self, out: &mut String) {
        for pair in &self.pairs {
            out.push_str("\n`FIND:`\n");
            write_block(&pair.find, &pair.language, out);
            out.push_str("`REPLACE:`\n");
            write_block(&pair.replace, &pair.language, out);
        }
    }

    fn path(&self) -> Option<&RepoPath> {
        Some(&self.path)
    }

    fn pairs(&self) -> Option<&[Pair]> {
        Some(&self.pairs)
    }

    fn pairs_mut(&mut self) -> Option<&mut Vec<Pair>> {
        Some(&mut self.pairs)
    }

    fn has_work(&self) -> bool {
        !self.pairs.is_empty()
    }

    fn check(&self, validator: &mut Validator<'_>) -> anyhow::Result<()> {
        check::check_edit(validator, self)
    }

    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        perform_edit(stage.root, self)
    }

    fn preview<'a>(&'a self, step: &'a Step) -> Vec<PreviewPart<'a>> {
        match step.after.as_deref() {
            Some(after) => vec![PreviewPart::Difference {
                path: &self.path,
                before: step.before.as_deref(),
                after: Some(after),
            }],
            None => self.pairs.iter().map(PreviewPart::Replacement).collect(),
        }
    }

    fn risks(&self, step: &Step) -> Vec<String> {
        let is_emptied = step.after.as_ref().is_some_and(Vec::is_empty);
        let lines = step.replaced_lines().filter(|_| is_emptied);
        let risk = lines.map(|lines| match lines {
            1 => format!("{} becomes empty: its 1 line goes", self.path),
            _ => format!("{} becomes empty: its {lines} lines go", self.path),
        });
        risk.into_iter().collect()
    }

    fn texts(&self) -> Vec<&str> {
        let pairs = self.pairs.iter();
        pairs.map(|pair| pair.replace.as_str()).collect()
    }

    fn text_with_nul(&self) -> Option<&'static str> {
        let mut pairs = self.pairs.iter();
        let has_nul = pairs.any(|pair| pair.find.contains('\0') || pair.replace.contains('\0'));
        has_nul.then_some("a pair")
    }

    fn editable(&self) -> Editable<'_> {
        Editable::FinalVersion { path: &self.path }
    }

    fn edited(&self, edit: UserEdit<'_>) -> Option<ActionKind> {
        match edit {
            UserEdit::FinalVersion { before, after } => Some(whole_file(self, before, after)),
            _ => None,
        }
    }
}

/// Returns an action that turns the original file into its final content: an EDIT with one pair, or
/// a CREATE if no pair can express it, such as a removed final newline.
fn whole_file(edit: &Edit, before: &str, after: String) -> ActionKind {
    let first = edit.pairs.first();
    let (line, language) = first.map_or((0, String::new()), |pair| {
        (pair.line, pair.language.clone())
    });

    // A FIND ends with a line ending. If the file does not, both sides get one, which the matcher
    // removes.
    let end = if before.ends_with('\n') { "" } else { "\n" };
    let pair = Pair {
        line,
        find: format!("{before}{end}"),
        replace: format!("{after}{end}"),
        language,
    };
    match apply(before, &pair.find, &pair.replace) {
        Ok((result, _)) if result == after => {
            let pairs = vec![pair];
            let path = edit.path.clone();
            Edit { path, pairs }.into()
        }
        _ => {
            let create = Create {
                path: edit.path.clone(),
                text: after,
                language: pair.language,
                overwrite: true,
                keep_bytes: false,
            };
            create.into()
        }
    }
}

fn parse_edit(body: &mut Body<'_>) -> Option<Edit> {
    let path = body.path();
    let parts = std::mem::take(&mut body.parts);
    if !parts
        .iter()
        .any(|part| !matches!(part, BodyPart::Unexpected { .. }))
    {
        let hint = "add `FIND:` with a code block and `REPLACE:` with a code block";
        body.report(body.line, "EDIT has no pair of FIND and REPLACE", hint);
    }

    let mut pairs: Vec<Pair> = Vec::new();
    // The label above the next block, and the pair whose REPLACE comes next.
    let (mut label, mut pending) = (None::<(usize, Label)>, None::<Pair>);
    for part in parts {
        match (part, label) {
            (BodyPart::Label { line, label: next }, above) => {
                report_label(body, line, next, above, &mut pending);
                label = Some((line, next));
            }
            (BodyPart::Code { text, language, .. }, Some((line, Label::Find))) => {
                let replace = String::new();
                pending = Some(Pair {
                    line,
                    find: text,
                    replace,
                    language,
                });
                label = None;
            }
            (BodyPart::Code { text, .. }, Some((_, Label::Replace))) => {
                pairs.extend(pending.take().map(|pair| Pair {
                    replace: text,
                    ..pair
                }));
                label = None;
            }
            (part, _) => match &part {
                // More helpful than "no label": the message shows the equivalent pairs.
                BodyPart::Code {
                    line,
                    text,
                    language,
                } if pending.is_none()
                    && let Some(message) = foreign::change(text, language) =>
                {
                    body.report(*line, message, "copy FIND from the current file");
                }
                _ => body.misplaced(&part),
            },
        }
    }

    if let Some(line) = label
        .map(|(line, _)| line)
        .or(pending.map(|pair| pair.line))
    {
        let hint = "add `REPLACE:` and its code block; an empty block deletes the lines";
        body.report(line, "FIND without a REPLACE behind it", hint);
    }
    Some(Edit { path: path?, pairs })
}

/// Reports a label that has no block above it, or that is not the one that comes next.
fn report_label(
    body: &mut Body<'_>,
    line: usize,
    label: Label,
    above: Option<(usize, Label)>,
    pending: &mut Option<Pair>,
) {
    let order = "FIND and REPLACE alternate, FIND first";
    if let Some((above, _)) = above {
        let hint = "put the code block on the line below the label";
        body.report(above, "this label has no code block below it", hint);
    } else if label == Label::Replace && pending.is_none() {
        body.report(line, "REPLACE without a FIND before it", order);
    } else if label == Label::Find && pending.take().is_some() {
        let message = "FIND where a REPLACE is expected: the FIND above has none";
        body.report(line, message, order);
    }
}

/// Largest file that an EDIT changes, in bytes.
const MAX_EDITED_FILE: u64 = 256 << 20;

fn perform_edit(root: &Root, edit: &Edit) -> Result<Outcome, ActionError> {
    let path = Path::new(edit.path.as_str());
    run::no_repository_above(root, &edit.path)?;
    let bytes = root
        .read(path, MAX_EDITED_FILE)
        .map_err(ActionError::reading)?;
    let before = readable_text(bytes)
        .map_err(|problem| format!("`{}` is {problem}", sanitize_line(edit.path.as_str())))?;
    let (after, positions) = replace_pairs(edit, &before)?;

    run::write_guarded(|| root.replace(path, after.as_bytes()))?;
    let counts = diff::counts(&before, &after);
    let (replaced, added) = (
        counted(positions.len(), "place"),
        counted(counts.added, "line"),
    );
    let detail = format!(
        "changed {replaced}: {added} added, {} removed",
        counts.removed
    );

    Ok(Outcome {
        positions,
        difference: run::file_difference(&edit.path, Some(&before), &after),
        written: vec![edit.path.clone()],
        ..Outcome::of(Ending::Success, detail)
    })
}

/// Returns the text after all pairs and the place of each match, or the mistake of the first pair
/// without one.
fn replace_pairs(edit: &Edit, before: &str) -> Result<(String, Vec<MatchPlace>), String> {
    let mut text = before.to_owned();
    let mut positions = Vec::with_capacity(edit.pairs.len());
    for (number, pair) in edit.pairs.iter().enumerate() {
        let (find, replace) = (pair.find.as_str(), pair.replace.as_str());
        let (after, position) = apply(&text, find, replace).map_err(|error| {
            let (path, count) = (edit.path.as_str(), edit.pairs.len());
            explain_in_one_sentence(
                &FailedPair {
                    path,
                    text: &text,
                    number: number + 1,
                    count,
                    find,
                    replace,
                    others: &[],
                },
                &error,
            )
        })?;

        text = after;
        positions.push(position);
    }

    Ok((text, positions))
}

/// Explains a failed pair without an excerpt of the file: the next input contains the file.
fn explain_in_one_sentence(case: &FailedPair<'_>, error: &MatchError) -> String {
    let message = explain(case, error).message;
    let lines: Vec<&str> = message
        .lines()
        .filter(|line| !line.starts_with("  "))
        .collect();
    format!("{}; the file is as it was", lines.join("; "))
}
