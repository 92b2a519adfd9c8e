//! EDIT: replaces exact, unique places of a file.

use std::path::Path;

pub use super::behavior::Pair;

use super::behavior::{Behavior, Editable, PreviewPart, UserEdit};
use super::create::Create;
use super::{ActionKind, ActionRow, BodyShape, SummaryGroup, foreign, path_fields, write_block};
use crate::plan::action::body::{Body, BodyPart};
use crate::plan::diagnostic::MAX_MISTAKES;
use crate::plan::field::Field;
use crate::plan::line::Label;
use crate::plan::line::key::PATH_KEYS;
use crate::plan::run;
use crate::plan::run::{ActionError, Ending, Outcome, Stage};
use crate::plan::validate::simulated_files::Lookup;
use crate::plan::validate::{Mistake, Step, Validator, elision_mistake, missing_file};
use crate::text::context_list::rooted;
use crate::text::edit::{
    FailedPair, MatchError, MatchPlace, apply, explain, explain_shortly, find_match,
};
use crate::text::elision::elided;
use crate::text::path::RepoPath;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_word;
use crate::text::{counted, diff};

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
    fn fields(&self) -> Vec<Field> {
        path_fields(&self.path)
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
        let entry = validator.files.look_up(&self.path)?;
        elisions(validator, self);
        let is_known = validator.files.is_known(&self.path);
        if !is_known && matches!(entry, Lookup::File(_)) {
            validator.step().outside_context = true;
            // No command can show the file to the model.
            validator.refuse(unknown(self));
        }

        match text_of(validator, self, entry)? {
            Ok(text) => pairs(validator, self, text)?,
            Err(mistake) => {
                validator.refuse_unless_fixable(mistake);
                // Blank pairs and pairs without a change are wrong in any file.
                for (number, pair) in self.pairs.iter().enumerate() {
                    malformed(validator, self, number, pair);
                }
            }
        }

        Ok(())
    }

    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        let (root, path) = (stage.root, Path::new(self.path.as_str()));
        run::no_repository_above(root, &self.path)?;
        let bytes = root
            .read(path, MAX_EDITED_FILE)
            .map_err(ActionError::reading)?;
        let before = readable_text(bytes)
            .map_err(|problem| format!("`{}` is {problem}", sanitize_line(self.path.as_str())))?;
        let (after, positions) = replace_pairs(self, &before)?;

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
            difference: run::file_difference(&self.path, Some(&before), Some(&after)),
            written: vec![self.path.clone()],
            ..Outcome::of(Ending::Success, detail)
        })
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

    fn with_version(&self, edit: UserEdit<'_>) -> Option<ActionKind> {
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

/// Returns the line of a block that has a change in another format, and what it means.
fn foreign_change(part: &BodyPart) -> Option<(usize, String)> {
    let BodyPart::Code {
        line,
        text,
        language,
    } = part
    else {
        return None;
    };
    Some((*line, foreign::change(text, language)?))
}

fn parse_edit(body: &mut Body<'_>) -> Option<Edit> {
    let path = body.path();
    let parts = std::mem::take(&mut body.parts);
    let is_unexpected = |part: &BodyPart| matches!(part, BodyPart::Unexpected { .. });
    if parts.iter().all(is_unexpected) {
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
                pending = Some(Pair {
                    line,
                    find: text,
                    replace: String::new(),
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
            (part, _) => match foreign_change(&part).filter(|_| pending.is_none()) {
                // More helpful than "no label": the message shows the equivalent pairs.
                Some((line, message)) => {
                    body.report(line, message, "copy FIND from the current file");
                }
                None => body.misplaced(&part),
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

// Validation: the model has seen the file, it is text, and each FIND matches exactly one place.

/// Texts of failed pairs kept per file. Each later FIND without a match is searched in all of them.
const MAX_FAILED_EDITS: usize = 200;

/// Refuses pairs that would write a comment in the place of code.
fn elisions(validator: &mut Validator<'_>, edit: &Edit) {
    if validator.files.facts.is_from_agent() {
        return;
    }

    for (number, pair) in edit.pairs.iter().enumerate() {
        if let Some(line) = elided(&pair.replace, &pair.find) {
            let label = format!("REPLACE of pair {}", number + 1);
            validator.refuse_at(pair.line, elision_mistake(&label, line));
        }
    }
}

/// Returns what is wrong with an EDIT of a file that the model has not seen.
fn unknown(edit: &Edit) -> Mistake {
    let path = sanitize_line(edit.path.as_str());
    let hint = format!(
        "READ it in this plan and edit it in the next one, when its text is before you; \
         by hand, `teddy context add {}` adds it",
        shell_word(rooted(edit.path.as_str()))
    );
    Mistake::new(format!("`{path}` is in no context list"), hint)
}

fn text_of(
    validator: &Validator<'_>,
    edit: &Edit,
    entry: Lookup,
) -> anyhow::Result<Result<String, Mistake>> {
    let path = sanitize_line(edit.path.as_str());
    if let Some(obstacle) = validator.files.obstacle(&edit.path, &entry)? {
        let destination = validator.files.destination(&edit.path, &entry)?;
        let hint = destination.map_or_else(
            || "EDIT changes text files of the project only".to_owned(),
            |path| format!("EDIT `{}`, to which it leads", sanitize_line(path.as_str())),
        );
        return Ok(Err(Mistake::new(format!("`{path}` {obstacle}"), hint)));
    }

    let Lookup::File(bytes) = entry else {
        return Ok(Err(missing_file(
            validator,
            &edit.path,
            "use CREATE for a new file",
        )?));
    };
    if validator.files.is_hidden(&edit.path)? {
        return Ok(Err(Mistake::new(
            format!("`{path}` is left out by the user's sparse checkout"),
            "EDIT changes files that exist; `git sparse-checkout add` adds a directory",
        )));
    }
    Ok(readable_text(bytes).map_err(|problem| {
        Mistake::new(format!("`{path}` is {problem}"), "change it with EXECUTE")
    }))
}

/// Returns bytes as text that an EDIT can change, or what they are instead.
fn readable_text(bytes: Vec<u8>) -> Result<String, &'static str> {
    if bytes.contains(&0) {
        return Err("binary");
    }
    String::from_utf8(bytes).map_err(|_| "not UTF-8")
}

/// Validates a pair on its own if its file has no text to search.
fn malformed(validator: &mut Validator<'_>, edit: &Edit, number: usize, pair: &Pair) {
    if let Err(error @ (MatchError::Blank | MatchError::Same)) =
        // Any text will do: both mistakes depend on the pair alone.
        apply("x", &pair.find, &pair.replace)
    {
        let explanation = explain(&case(edit, number, pair, "x"), &error);
        validator.refuse_at(
            pair.line,
            Mistake::new(explanation.message, explanation.hint),
        );
    }
}

fn case<'a>(edit: &'a Edit, number: usize, pair: &'a Pair, text: &'a str) -> FailedPair<'a> {
    FailedPair {
        path: edit.path.as_str(),
        text,
        number: number + 1,
        count: edit.pairs.len(),
        find: &pair.find,
        replace: &pair.replace,
        others: &[],
    }
}

/// Validates the pairs in order, each on the result of those before it.
fn pairs(validator: &mut Validator<'_>, edit: &Edit, mut text: String) -> anyhow::Result<()> {
    let before = text.clone();
    let first = validator.simulation.diagnostics.len();
    let (mut positions, mut wrong) = (Vec::new(), Vec::new());
    for (number, pair) in edit.pairs.iter().enumerate() {
        match apply(&text, &pair.find, &pair.replace) {
            Ok((after, position)) => {
                text = after;
                positions.push((number, position));
            }
            Err(error) => {
                wrong.push(number);
                if !depends_on_failed_pair(validator, edit, pair, &error) {
                    let case = case(edit, number, pair, &text);
                    report_failed_pair(validator, case, pair.line, &error)?;
                }
                record_failed_edit(validator, edit, pair);
            }
        }
    }

    hint_matching_pairs(validator, first, &positions, edit);
    let step = validator.step();
    step.before = Some(before.into_bytes());
    step.after = (wrong.is_empty() && !step.wrong).then(|| text.clone().into_bytes());
    // A provisional failure is decided when the action runs.
    step.wrong |= !wrong.is_empty() && !step.provisional;
    step.positions = positions;
    // Later actions see the pairs that matched, so that they don't report follow-up errors.
    validator.files.write(&edit.path, text.into_bytes())?;

    Ok(())
}

/// Records the REPLACE of a failed pair, for [`depends_on_failed_pair`].
fn record_failed_edit(validator: &mut Validator<'_>, edit: &Edit, pair: &Pair) {
    let failed_edits = validator
        .files
        .failed_edits
        .entry(edit.path.clone())
        .or_default();
    if failed_edits.len() < MAX_FAILED_EDITS && !failed_edits.contains(&pair.replace) {
        failed_edits.push(pair.replace.clone());
    }
}

/// Returns whether a FIND is missing only because an earlier pair that would have added it failed.
fn depends_on_failed_pair(
    validator: &Validator<'_>,
    edit: &Edit,
    pair: &Pair,
    error: &MatchError,
) -> bool {
    let failed_edits = validator
        .files
        .failed_edits
        .get(&edit.path)
        .map_or(&[][..], Vec::as_slice);
    *error == MatchError::Absent
        && failed_edits
            .iter()
            .any(|text| find_match(text, &pair.find) != Err(MatchError::Absent))
}

fn report_failed_pair(
    validator: &mut Validator<'_>,
    case: FailedPair<'_>,
    line: usize,
    error: &MatchError,
) -> anyhow::Result<()> {
    // No command can change that a FIND is blank or equals its REPLACE.
    let certain = matches!(error, MatchError::Blank | MatchError::Same);
    if validator.files.unknown_after_command && !certain {
        validator.step().provisional = true;
        return Ok(());
    }

    // Mistakes beyond the limit are only counted, so the costly search for similar places is
    // skipped.
    let explanation = if validator.simulation.diagnostics.len() < MAX_MISTAKES {
        let others = validator.files.others(validator.plan)?;
        explain(&FailedPair { others, ..case }, error)
    } else {
        explain_shortly(&case)
    };
    validator.refuse_at(line, Mistake::new(explanation.message, explanation.hint));
    Ok(())
}

/// Adds to the first mistake of an EDIT which of its pairs match.
fn hint_matching_pairs(
    validator: &mut Validator<'_>,
    first: usize,
    positions: &[(usize, MatchPlace)],
    edit: &Edit,
) {
    let Some(diagnostic) = validator
        .simulation
        .diagnostics
        .get_mut(first)
        .filter(|_| !positions.is_empty())
    else {
        return;
    };

    let numbers: Vec<String> = positions
        .iter()
        .map(|(number, _)| (number + 1).to_string())
        .collect();
    let fit = match numbers.as_slice() {
        [one] => format!(
            "pair {one} of {} fits, repeat it as it is",
            edit.pairs.len()
        ),
        [most @ .., last] => format!(
            "pairs {} and {last} of {} fit, repeat them as they are",
            most.join(", "),
            edit.pairs.len()
        ),
        [] => return,
    };

    let hint = diagnostic
        .hint
        .take()
        .map_or(String::new(), |hint| hint + "; ");
    diagnostic.hint = Some(hint + &fit);
}

// Execution: the same matcher on the file as it is then.

/// Largest file that an EDIT changes, in bytes.
const MAX_EDITED_FILE: u64 = 256 << 20;

/// Returns the text after all pairs and the place of each match, or the mistake of the first pair
/// without one.
fn replace_pairs(edit: &Edit, before: &str) -> Result<(String, Vec<MatchPlace>), String> {
    let mut text = before.to_owned();
    let mut positions = Vec::with_capacity(edit.pairs.len());
    for (number, pair) in edit.pairs.iter().enumerate() {
        let (after, position) = apply(&text, &pair.find, &pair.replace)
            .map_err(|error| explain_in_one_sentence(&case(edit, number, pair, &text), &error))?;
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
