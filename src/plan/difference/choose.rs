//! Chooses the action for a change.

use super::pairs::{SearchBudget, find_pairs};
use super::{FileState, MadeChange, StateMode};
use crate::plan::action::ActionKind;
use crate::plan::action::create::Create;
use crate::plan::action::edit::{Edit, Pair};
use crate::plan::action::take::{TakePath, TakenState};
use crate::plan::state::Imprint;
use crate::text::link;
use crate::text::path::RepoPath;

/// Largest new text in a plan, in bytes.
const MAX_CREATE: usize = 256 << 10;
/// Longest file extension that is used as the language of a block.
const MAX_EXTENSION: usize = 10;

/// Returns the path of a change as a plan names it, or why none can.
pub(super) fn plan_path(change: &MadeChange) -> Result<RepoPath, String> {
    let text = std::str::from_utf8(&change.path);
    let text = text.map_err(|_| "the path is not UTF-8".to_owned())?;
    let name = RepoPath::parse(text).map_err(|error| error.to_string())?;
    if change.before.is_none() {
        name.fit_for_new(0).map_err(|error| error.to_string())?;
    }
    match link::read(&link::write_path(text)) {
        Ok(read) if read == text => Ok(name),
        _ => Err("the path cannot be written as a link".to_owned()),
    }
}

/// Returns a text change as CREATE or EDIT; `None` if neither can express it.
pub(super) fn as_text_action(
    path: &RepoPath,
    change: &MadeChange,
    budget: &mut SearchBudget,
) -> Option<ActionKind> {
    let after = change.after.as_ref()?;
    let new = after.text()?;
    let path = path.clone();
    let language = block_language(&path);

    // An EDIT keeps the mode of its file, and a CREATE makes an ordinary file.
    let before = change.before.as_ref();
    let is_filled = before.is_some_and(|before| !before.bytes.is_empty());
    let mode = match before {
        Some(before) if is_filled || before.mode == StateMode::Link => before.mode,
        _ => StateMode::Plain,
    };
    if after.mode != mode || before.is_some_and(|before| before.mode != mode) {
        return None;
    }

    // An EDIT needs text to find, so CREATE replaces an empty file.
    if !is_filled {
        let create = Create {
            path,
            text: new.to_owned(),
            language,
            overwrite: false,
        };
        return (new.len() <= MAX_CREATE).then(|| create.into());
    }

    let old = change.before.as_ref()?.text()?;
    let with_language = |pair: Pair| Pair {
        language: language.clone(),
        ..pair
    };
    let pairs = find_pairs(old, new, budget)?
        .into_iter()
        .map(with_language)
        .collect();
    Some(Edit { path, pairs }.into())
}

/// Returns any change as a TAKE. The artifact's name is set when the plan is written.
pub(super) fn as_take(path: &RepoPath, change: &MadeChange) -> TakePath {
    TakePath {
        path: path.clone(),
        becomes: change.after.as_ref().map(|after| TakenState {
            mode: after.mode,
            artifact: String::new(),
            imprint: Imprint::of(&after.bytes),
        }),
        previous: change.before.as_ref().map(FileState::known_state),
    }
}

fn block_language(path: &RepoPath) -> String {
    let ending = path.file_name().rsplit_once('.').map(|(_, ending)| ending);
    let is_word = |ending: &&str| {
        ending.len() <= MAX_EXTENSION && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    ending.filter(is_word).unwrap_or_default().to_owned()
}
