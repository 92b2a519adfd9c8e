//! Validates an EDIT: the model has seen the file, it is text, and each FIND matches exactly one
//! place.

use super::{Edit, Pair};
use crate::plan::diagnostic::MAX_MISTAKES;
use crate::plan::validate::simulated_files::Lookup;
use crate::plan::validate::{Mistake, Validator, elision_mistake, missing_file};
use crate::text::edit::{FailedPair, MatchError, apply, explain, explain_shortly, find_match};
use crate::text::elision::elided;
use crate::text::sanitize::sanitize_line;
use crate::text::shell_word::shell_operand;

/// Texts of failed pairs kept per file. Each later FIND without a match is searched in all of them.
const MAX_FAILED_EDITS: usize = 200;

pub(super) fn check_edit(validator: &mut Validator<'_>, edit: &Edit) -> anyhow::Result<()> {
    let entry = validator.files.look_up(&edit.path)?;
    elisions(validator, edit);
    let is_known = validator.files.is_known(&edit.path);
    if !is_known && matches!(entry, Lookup::File(_)) {
        validator.step().outside_context = true;
        // Not `miss`: no command can show the file to the model.
        validator.refuse(unknown(edit));
    }

    match text_of(validator, edit, entry)? {
        Ok(text) => pairs(validator, edit, text)?,
        Err(mistake) => {
            validator.refuse_unless_fixable(mistake);
            // Blank pairs and pairs without a change are wrong in any file.
            for (number, pair) in edit.pairs.iter().enumerate() {
                malformed(validator, edit, number, pair);
            }
        }
    }

    Ok(())
}

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
        shell_operand(edit.path.as_str())
    );
    Mistake::new(format!("`{path}` is in no context list"), hint)
}

/// Returns the text of the file, or the mistake if it has none.
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
pub(super) fn readable_text(bytes: Vec<u8>) -> Result<String, &'static str> {
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
        let explanation = explain(&case(edit, number, pair, "x", &[]), &error);
        validator.refuse_at(
            pair.line,
            Mistake::new(explanation.message, explanation.hint),
        );
    }
}

fn case<'a>(
    edit: &'a Edit,
    number: usize,
    pair: &'a Pair,
    text: &'a str,
    others: &'a [(String, String)],
) -> FailedPair<'a> {
    let (path, find, replace) = (
        edit.path.as_str(),
        pair.find.as_str(),
        pair.replace.as_str(),
    );
    FailedPair {
        path,
        text,
        number: number + 1,
        count: edit.pairs.len(),
        find,
        replace,
        others,
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
                    report_failed_pair(
                        validator,
                        case(edit, number, pair, &text, &[]),
                        pair.line,
                        &error,
                    )?;
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

/// Records the REPLACE of a failed pair, for `rests_on_a_failed_pair`.
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
    positions: &[(usize, crate::text::edit::MatchPlace)],
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
