//! Runs a TAKE in the worktree. Repeats every check of the validation, since a command can have
//! changed the path.

use std::io;
use std::path::Path;

use super::{TakePath, TakenState};
use crate::host::file::{self, FileKind, FileMode, Root};
use crate::plan::run::error::ActionError;
use crate::plan::run::{Ending, Outcome, Stage, write};
use crate::plan::state::{FileState, KnownState, StateMode};
use crate::text::counted;
use crate::text::sanitize::sanitize_line;

pub(super) fn perform_take(stage: &mut Stage<'_>, take: &TakePath) -> Result<Outcome, ActionError> {
    let (root, path) = (stage.root, Path::new(take.path.as_str()));
    write::no_repository_above(root, &take.path)?;
    let before = read_current(root, path, take.previous.as_ref())?;
    if before.as_ref().map(FileState::known_state) != take.previous {
        return Err(changed_path(take));
    }

    let after = match &take.becomes {
        None => None,
        Some(state) => Some(load_state(stage, state)?),
    };
    match &after {
        None => {
            write::write_guarded(|| file::remove_file(root, path))?;
            // Git knows no empty directories, so the agent's deletion includes them (P40).
            file::remove_empty_above(root, path).map_err(ActionError::writing)?;
        }
        Some(state) => write::write_guarded(|| write_state(root, path, (state, before.is_some())))?,
    }

    Ok(Outcome {
        difference: state_difference(take, before.as_ref(), after.as_ref()),
        written: vec![take.path.clone()],
        ..Outcome::of(
            Ending::Success,
            describe_change(before.as_ref(), after.as_ref()),
        )
    })
}

fn changed_path(take: &TakePath) -> ActionError {
    let path = sanitize_line(take.path.as_str());
    format!("`{path}` is not what it was when this plan was made; it is as it is").into()
}

/// Returns the current state of a path. A file larger than the recorded one has changed and is not
/// read.
fn read_current(
    root: &Root,
    path: &Path,
    expected: Option<&KnownState>,
) -> Result<Option<FileState>, ActionError> {
    let Some(entry) = root.entry(path).map_err(ActionError::reading)? else {
        return Ok(None);
    };
    let limit = expected.map_or(0, |expected| expected.imprint.size);
    let (mode, bytes) = match entry.kind {
        FileKind::File(FileMode::Plain) => (StateMode::Plain, root.read(path, limit)),
        FileKind::File(FileMode::Executable) => (StateMode::Executable, root.read(path, limit)),
        FileKind::Link => (StateMode::Link, file::read_link(root, path)),
        FileKind::Dir | FileKind::Other => {
            let path = sanitize_line(&path.to_string_lossy()).into_owned();
            return Err(format!("`{path}` exists and is not a file").into());
        }
    };

    match bytes {
        Ok(bytes) => Ok(Some(FileState { mode, bytes })),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let path = sanitize_line(&path.to_string_lossy()).into_owned();
            Err(
                format!("`{path}` is not what it was when this plan was made; it is as it is")
                    .into(),
            )
        }
        Err(error) => Err(ActionError::reading(error)),
    }
}

/// Returns the new state after verifying the hash.
fn load_state(stage: &Stage<'_>, state: &TakenState) -> Result<FileState, ActionError> {
    let bytes = state.load_bytes(&|name| stage.tools.taken_bytes(name))?;
    let mode = state.mode;
    Ok(FileState { mode, bytes })
}

/// Writes the new state; `replaces` if the path exists.
fn write_state(root: &Root, path: &Path, (state, replaces): (&FileState, bool)) -> io::Result<()> {
    let bytes = &state.bytes;
    match (state.mode, replaces) {
        (StateMode::Plain, false) => root.create_new(path, bytes, FileMode::Plain),
        (StateMode::Executable, false) => root.create_new(path, bytes, FileMode::Executable),
        (StateMode::Plain, true) => file::replace_entry(root, path, bytes, FileMode::Plain),
        (StateMode::Executable, true) => {
            file::replace_entry(root, path, bytes, FileMode::Executable)
        }
        (StateMode::Link, _) => file::write_link(root, path, bytes, replaces),
    }
}

/// Returns the diff; empty if one side is not text.
fn state_difference(
    take: &TakePath,
    before: Option<&FileState>,
    after: Option<&FileState>,
) -> String {
    let text = |state: Option<&FileState>| match state {
        None => Some(None),
        Some(state) => state.text().map(Some).map(|text| text.map(str::to_owned)),
    };
    let (Some(before), Some(after)) = (text(before), text(after)) else {
        return String::new();
    };
    match after {
        Some(after) => write::file_difference(&take.path, before.as_deref(), &after),
        None => write::removal_difference(&take.path, before.as_deref().unwrap_or_default()),
    }
}

fn describe_change(before: Option<&FileState>, after: Option<&FileState>) -> String {
    let size = |state: &FileState| counted(state.bytes.len() as u64, "byte");
    match (before, after) {
        (Some(before), None) => format!("removed, {}", size(before)),
        (None, Some(after)) => format!("new {}, {}", after.mode, size(after)),
        (Some(before), Some(after)) if before.mode != after.mode => {
            format!("{} → {}, {}", before.mode, after.mode, size(after))
        }
        (_, Some(after)) => format!("replaced, {}", size(after)),
        (None, None) => String::new(),
    }
}
