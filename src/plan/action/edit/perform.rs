//! Applies the replacements of an EDIT: all of them or none.

use std::path::Path;

use super::Edit;
use super::check::readable_text;
use crate::host::file::Root;
use crate::plan::run::error::ActionError;
use crate::plan::run::{Ending, Outcome, write};
use crate::text::edit::{FailedPair, MatchError, MatchPlace, apply, explain};
use crate::text::sanitize::sanitize_line;
use crate::text::{counted, diff};

/// Largest file that an EDIT changes, in bytes.
const MAX_EDITED_FILE: u64 = 256 << 20;

pub(super) fn perform_edit(root: &Root, edit: &Edit) -> Result<Outcome, ActionError> {
    let path = Path::new(edit.path.as_str());
    write::no_repository_above(root, &edit.path)?;
    let bytes = root
        .read(path, MAX_EDITED_FILE)
        .map_err(ActionError::reading)?;
    let before = readable_text(bytes)
        .map_err(|problem| format!("`{}` is {problem}", sanitize_line(edit.path.as_str())))?;
    let (after, positions) = replace_pairs(edit, &before)?;

    write::write_guarded(|| root.replace(path, after.as_bytes()))?;
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
        difference: write::file_difference(&edit.path, Some(&before), &after),
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
