//! Validates an EDIT: the model has seen the file, it is text, and each FIND matches exactly one
//! place.

use super::Edit;
use super::pair::Pair;
use crate::plan::action::Action;
use crate::plan::diagnostic::MAX_MISTAKES;
use crate::plan::validate::elision::elision;
use crate::plan::validate::world::Found;
use crate::plan::validate::{Judge, Mistake};
use crate::text::edit::{FailedPair, MatchError, apply, explain, explain_shortly, find};
use crate::text::elision::elided;
use crate::text::shell_word::shell_operand;
use crate::text::visible::visible;

/// Texts of failed pairs kept per file. Each later FIND without a match is searched in all of them.
const MAX_LOST: usize = 200;

pub(super) fn check(judge: &mut Judge<'_>, action: &Action, edit: &Edit) -> anyhow::Result<()> {
    let found = judge.world.look(&edit.path)?;
    elisions(judge, action, edit);
    let known = judge.world.is_known(&edit.path);
    if !known && matches!(found, Found::File(_)) {
        judge.step().outside_context = true;
        // Not `miss`: no command can show the file to the model.
        judge.refuse(action, action.line, unknown(edit));
    }

    match text_of(judge, edit, found)? {
        Ok(text) => pairs(judge, action, (edit, text))?,
        Err(mistake) => {
            judge.miss(action, action.line, mistake);
            // Blank pairs and pairs without a change are wrong in any file.
            for (number, pair) in edit.pairs.iter().enumerate() {
                malformed(judge, action, (edit, number, pair));
            }
        }
    }

    Ok(())
}

/// Refuses pairs that would write a comment in the place of code.
fn elisions(judge: &mut Judge<'_>, action: &Action, edit: &Edit) {
    if judge.world.facts.is_made() {
        return;
    }

    for (number, pair) in edit.pairs.iter().enumerate() {
        if let Some(line) = elided(&pair.replace, &pair.find) {
            let what = format!("REPLACE of pair {}", number + 1);
            judge.refuse(action, pair.line, elision(&what, line));
        }
    }
}

/// Returns what is wrong with an EDIT of a file that the model has not seen.
fn unknown(edit: &Edit) -> Mistake {
    let path = visible(edit.path.as_str());
    let hint = format!(
        "READ it in this plan and edit it in the next one, when its text is before you; \
         by hand, `teddy context add {}` adds it",
        shell_operand(edit.path.as_str())
    );
    Mistake::new(format!("`{path}` is in no context list"), hint)
}

/// Returns the text of the file, or the mistake if it has none.
fn text_of(
    judge: &Judge<'_>,
    edit: &Edit,
    found: Found,
) -> anyhow::Result<Result<String, Mistake>> {
    let path = visible(edit.path.as_str());
    if let Some(obstacle) = judge.world.obstacle(&edit.path, &found)? {
        let destination = judge.world.destination(&edit.path, &found)?;
        let hint = destination.map_or_else(
            || "EDIT changes text files of the project only".to_owned(),
            |path| format!("EDIT `{}`, to which it leads", visible(path.as_str())),
        );
        return Ok(Err(Mistake::new(format!("`{path}` {obstacle}"), hint)));
    }

    let Found::File(bytes) = found else {
        return Ok(Err(missing(judge, edit)?));
    };
    if judge.world.is_hidden(&edit.path)? {
        return Ok(Err(Mistake::new(
            format!("`{path}` is left out by the user's sparse checkout"),
            "EDIT changes files that exist; `git sparse-checkout add` adds a directory",
        )));
    }
    Ok(readable(bytes)
        .map_err(|what| Mistake::new(format!("`{path}` is {what}"), "change it with EXECUTE")))
}

/// Returns bytes as text that an EDIT can change, or what they are instead.
pub(super) fn readable(bytes: Vec<u8>) -> Result<String, &'static str> {
    if bytes.contains(&0) {
        return Err("binary");
    }
    String::from_utf8(bytes).map_err(|_| "not UTF-8")
}

/// Returns the mistake of an EDIT of a missing file, with similar names.
fn missing(judge: &Judge<'_>, edit: &Edit) -> anyhow::Result<Mistake> {
    let names = judge.world.names_like(&edit.path)?;
    let names: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", visible(name)))
        .collect();
    let hint = if names.is_empty() {
        "use CREATE for a new file".to_owned()
    } else {
        format!("there is {}", names.join(" and "))
    };

    Ok(Mistake::new(
        format!("there is no file `{}`", visible(edit.path.as_str())),
        hint,
    ))
}

/// Validates a pair on its own if its file has no text to search.
fn malformed(judge: &mut Judge<'_>, action: &Action, (edit, number, pair): (&Edit, usize, &Pair)) {
    if let Err(error @ (MatchError::Blank | MatchError::Same)) =
        // Any text will do: both mistakes depend on the pair alone.
        apply("x", &pair.find, &pair.replace)
    {
        let words = explain(&case((edit, number, pair), "x", &[]), &error);
        judge.refuse(action, pair.line, Mistake::new(words.message, words.hint));
    }
}

fn case<'a>(
    (edit, number, pair): (&'a Edit, usize, &'a Pair),
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
fn pairs(
    judge: &mut Judge<'_>,
    action: &Action,
    (edit, mut text): (&Edit, String),
) -> anyhow::Result<()> {
    let before = text.clone();
    let first = judge.simulation.diagnostics.len();
    let (mut places, mut wrong) = (Vec::new(), Vec::new());
    for (number, pair) in edit.pairs.iter().enumerate() {
        match apply(&text, &pair.find, &pair.replace) {
            Ok((after, place)) => {
                text = after;
                places.push((number, place));
            }
            Err(error) => {
                wrong.push(number);
                if !rests_on_a_failed_pair(judge, edit, (pair, &error)) {
                    fails(
                        judge,
                        action,
                        (case((edit, number, pair), &text, &[]), pair.line, &error),
                    )?;
                }
                lose(judge, edit, pair);
            }
        }
    }

    tell_what_fits(judge, first, (&places, edit));
    let step = judge.step();
    step.before = Some(before.into_bytes());
    step.after = (wrong.is_empty() && !step.wrong).then(|| text.clone().into_bytes());
    // A provisional failure is decided when the action runs.
    step.wrong |= !wrong.is_empty() && !step.provisional;
    step.places = places;
    // Later actions see the pairs that matched, so that they don't report follow-up errors.
    judge.world.write(&edit.path, text.into_bytes())?;

    Ok(())
}

/// Records the REPLACE of a failed pair, for `rests_on_a_failed_pair`.
fn lose(judge: &mut Judge<'_>, edit: &Edit, pair: &Pair) {
    let lost = judge.world.lost.entry(edit.path.clone()).or_default();
    if lost.len() < MAX_LOST && !lost.contains(&pair.replace) {
        lost.push(pair.replace.clone());
    }
}

/// Returns whether a FIND is missing only because an earlier pair that would have added it failed.
fn rests_on_a_failed_pair(
    judge: &Judge<'_>,
    edit: &Edit,
    (pair, error): (&Pair, &MatchError),
) -> bool {
    let lost = judge
        .world
        .lost
        .get(&edit.path)
        .map_or(&[][..], Vec::as_slice);
    *error == MatchError::Absent
        && lost
            .iter()
            .any(|text| find(text, &pair.find) != Err(MatchError::Absent))
}

fn fails(
    judge: &mut Judge<'_>,
    action: &Action,
    (case, line, error): (FailedPair<'_>, usize, &MatchError),
) -> anyhow::Result<()> {
    // No command can change that a FIND is blank or equals its REPLACE.
    let certain = matches!(error, MatchError::Blank | MatchError::Same);
    if judge.world.shaken && !certain {
        judge.step().provisional = true;
        return Ok(());
    }

    // Mistakes beyond the limit are only counted, so the costly search for similar places is
    // skipped.
    let words = if judge.simulation.diagnostics.len() < MAX_MISTAKES {
        let others = judge.world.others(judge.plan)?;
        explain(&FailedPair { others, ..case }, error)
    } else {
        explain_shortly(&case)
    };
    judge.refuse(action, line, Mistake::new(words.message, words.hint));
    Ok(())
}

/// Adds to the first mistake of an EDIT which of its pairs match.
fn tell_what_fits(
    judge: &mut Judge<'_>,
    first: usize,
    (places, edit): (&[(usize, crate::text::edit::MatchPlace)], &Edit),
) {
    let Some(diagnostic) = judge
        .simulation
        .diagnostics
        .get_mut(first)
        .filter(|_| !places.is_empty())
    else {
        return;
    };

    let numbers: Vec<String> = places
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
