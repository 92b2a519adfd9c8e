//! CREATE and EDIT: files of the worktree, written as a whole or not at all.

use std::io;
use std::path::Path;

use super::error::{self, ActionError};
use super::{Ending, Outcome};
use crate::host::file::{Kind, Mode, Root};
use crate::plan::action::create::Create;
use crate::plan::action::edit::Edit;
use crate::plan::validate::edit::readable;
use crate::text::edit::{Case, MatchError, Place, apply, explain};
use crate::text::path::RepoPath;
use crate::text::visible::visible;
use crate::text::{counted, diff};

/// The largest file that an EDIT changes, in bytes.
const MAX_EDIT: u64 = 256 << 20;
/// The largest texts whose difference is kept, in bytes: nobody reads more of them.
const MAX_COMPARED: usize = 8 << 20;

/// Makes a file.
pub(super) fn create(root: &Root, create: &Create) -> Result<Outcome, ActionError> {
    let path = Path::new(create.path.as_str());
    no_repository_above(root, &create.path)?;
    let bytes = create.content.as_bytes();
    let there = root.entry(path).map_err(ActionError::reading)?;
    let verb = match there.map(|entry| (entry.kind, entry.size)) {
        None => "created",
        Some((Kind::File(_), 0)) => "filled the empty file",
        Some((Kind::File(_), _)) if create.overwrite => "replaced as a whole",
        Some((Kind::File(_), _)) => {
            return Err(format!("`{}` already exists", visible(create.path.as_str())).into());
        }
        Some(_) => {
            return Err(format!(
                "`{}` already exists and is not a file",
                visible(create.path.as_str())
            )
            .into());
        }
    };

    let before = match there {
        None => Some(None),
        // What cannot be read as text is replaced without being compared.
        Some(_) => root.read(path, MAX_COMPARED as u64).ok().and_then(|bytes| {
            let text = String::from_utf8(bytes).ok()?;
            Some(Some(text))
        }),
    };
    written(|| match there {
        None => root.create_new(path, bytes, Mode::Plain),
        Some(_) => root.replace(path, bytes),
    })?;
    let lines = counted(create.content.lines().count(), "line");
    Ok(Outcome {
        difference: before.map_or_else(String::new, |before| {
            difference(&create.path, before.as_deref(), &create.content)
        }),
        written: vec![create.path.clone()],
        ..Outcome::of(Ending::Success, format!("{verb}, {lines}"))
    })
}

/// Changes a file: every pair, or nothing.
pub(super) fn edit(root: &Root, edit: &Edit) -> Result<Outcome, ActionError> {
    let path = Path::new(edit.path.as_str());
    no_repository_above(root, &edit.path)?;
    let bytes = root.read(path, MAX_EDIT).map_err(ActionError::reading)?;
    let before =
        readable(bytes).map_err(|what| format!("`{}` is {what}", visible(edit.path.as_str())))?;
    let (after, places) = replace(edit, &before)?;

    written(|| root.replace(path, after.as_bytes()))?;
    let counts = diff::counts(&before, &after);
    let (replaced, added) = (
        counted(places.len(), "place"),
        counted(counts.added, "line"),
    );
    let detail = format!(
        "changed {replaced}: {added} added, {} removed",
        counts.removed
    );
    Ok(Outcome {
        places,
        difference: difference(&edit.path, Some(&before), &after),
        written: vec![edit.path.clone()],
        ..Outcome::of(Ending::Success, detail)
    })
}

/// Returns what becomes of a file, or of nothing, as git shows it; empty where it is too large.
pub fn difference(path: &RepoPath, before: Option<&str>, after: &str) -> String {
    let old = before.unwrap_or_default();
    if old.len() + after.len() > MAX_COMPARED {
        return String::new();
    }
    let name = match before {
        Some(_) => format!("a/{path}"),
        None => "/dev/null".to_owned(),
    };
    diff::unified(old, after, (&name, &format!("b/{path}")))
}

/// Writes a file between two fault points.
fn written(write: impl FnOnce() -> io::Result<()>) -> Result<(), ActionError> {
    error::point("before-write")?;
    write().map_err(ActionError::writing)?;
    error::point("after-write")
}

/// Returns the text after all pairs, and where each applied; else what is wrong with the first that
/// does not.
fn replace(edit: &Edit, before: &str) -> Result<(String, Vec<Place>), String> {
    let mut text = before.to_owned();
    let mut places = Vec::with_capacity(edit.pairs.len());
    for (number, pair) in edit.pairs.iter().enumerate() {
        let (find, replace) = (pair.find.as_str(), pair.replace.as_str());
        let (after, place) = apply(&text, find, replace).map_err(|error| {
            let (path, count) = (edit.path.as_str(), edit.pairs.len());
            in_one_sentence(
                &Case {
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
        places.push(place);
    }
    Ok((text, places))
}

/// Says why a pair does not apply, without the lines that show the place: the next input has them.
fn in_one_sentence(case: &Case<'_>, error: &MatchError) -> String {
    let message = explain(case, error).message;
    let said: Vec<&str> = message
        .lines()
        .filter(|line| !line.starts_with("  "))
        .collect();
    format!("{}; the file is as it was", said.join("; "))
}

/// Refuses a path inside a repository of its own, such as one that a command of the plan cloned.
fn no_repository_above(root: &Root, path: &RepoPath) -> Result<(), ActionError> {
    for folder in path.ancestors() {
        let git = root.kind(&Path::new(folder).join(".git"));
        if git.map_err(ActionError::reading)?.is_some() {
            return Err(format!(
                "`{}` is in `{}`, which is a repository of its own",
                visible(path.as_str()),
                visible(folder)
            )
            .into());
        }
    }
    Ok(())
}
