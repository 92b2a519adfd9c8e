//! CREATE and EDIT: files of the worktree, written as a whole or not at all.

use std::path::Path;

use super::{Ending, Outcome};
use crate::host::file::{Kind, Mode, Root, reason};
use crate::plan::action::create::Create;
use crate::plan::action::edit::Edit;
use crate::plan::validate::edit::readable;
use crate::text::edit::{Case, MatchError, Place, apply, explain};
use crate::text::path::RepoPath;
use crate::text::visible::visible;
use crate::text::{counted, diff};

/// The largest file that an EDIT changes, in bytes.
const MAX_EDIT: u64 = 256 << 20;

/// Makes a file.
pub(super) fn create(root: &Root, create: &Create) -> Outcome {
    let path = Path::new(create.path.as_str());
    let written = || -> Result<String, String> {
        no_repository_above(root, &create.path)?;
        let bytes = create.content.as_bytes();
        let there = root.entry(path).map_err(|e| reason(&e))?;
        let size = match there.map(|entry| (entry.kind, entry.size)) {
            None => {
                root.create_new(path, bytes, Mode::Plain)
                    .map_err(|e| reason(&e))?;
                return Ok(format!(
                    "created, {}",
                    counted(create.content.lines().count(), "line")
                ));
            }
            Some((Kind::File(_), size)) => size,
            Some(_) => {
                return Err(format!(
                    "`{}` exists already and is no file",
                    visible(create.path.as_str())
                ));
            }
        };
        if size > 0 && !create.overwrite {
            return Err(format!(
                "`{}` exists already",
                visible(create.path.as_str())
            ));
        }
        root.replace(path, bytes).map_err(|e| reason(&e))?;
        let verb = if size == 0 {
            "filled the empty file"
        } else {
            "replaced as a whole"
        };
        Ok(format!(
            "{verb}, {}",
            counted(create.content.lines().count(), "line")
        ))
    };
    match written() {
        Ok(detail) => Outcome {
            written: vec![create.path.clone()],
            ..Outcome::of(Ending::Success, detail)
        },
        Err(why) => Outcome::failure(why),
    }
}

/// Changes a file: every pair, or nothing.
pub(super) fn edit(root: &Root, edit: &Edit) -> Outcome {
    let path = Path::new(edit.path.as_str());
    let changed = || -> Result<(String, Vec<Place>), String> {
        no_repository_above(root, &edit.path)?;
        let bytes = root.read(path, MAX_EDIT).map_err(|e| reason(&e))?;
        let before = readable(bytes)
            .map_err(|what| format!("`{}` is {what}", visible(edit.path.as_str())))?;
        let (after, places) = replace(edit, &before)?;
        root.replace(path, after.as_bytes())
            .map_err(|e| reason(&e))?;
        let counts = diff::counts(&before, &after);
        let (replaced, added) = (
            counted(places.len(), "place"),
            counted(counts.added, "line"),
        );
        Ok((
            format!(
                "changed {replaced}: {added} added, {} removed",
                counts.removed
            ),
            places,
        ))
    };
    match changed() {
        Ok((detail, places)) => Outcome {
            places,
            written: vec![edit.path.clone()],
            ..Outcome::of(Ending::Success, detail)
        },
        Err(why) => Outcome::failure(why),
    }
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
fn no_repository_above(root: &Root, path: &RepoPath) -> Result<(), String> {
    for folder in path.ancestors() {
        if root
            .kind(&Path::new(folder).join(".git"))
            .map_err(|e| reason(&e))?
            .is_some()
        {
            return Err(format!(
                "`{}` is in `{}`, which is a repository of its own",
                visible(path.as_str()),
                visible(folder)
            ));
        }
    }
    Ok(())
}
