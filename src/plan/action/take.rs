//! TAKE: takes an agent's version of a path that no other action can express: binary content, a
//! deletion, a mode change, a link, large text.
//!
//! Only TeDDy writes it, and models don't learn of it. The bytes are an artifact of the turn. The
//! plan records their size and hash and those of the previous version, so that no other bytes are
//! written and no later change is overwritten.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::behavior::{Behavior, PreviewPart};
use super::{ActionKind, ActionRow, BodyShape, SummaryGroup, path_fields};
use crate::host::file::{self, FileKind, FileMode, Root};
use crate::plan::action::body::Body;
use crate::plan::diagnostic::quote;
use crate::plan::field::Field;
use crate::plan::line::key::PATH_KEYS;
use crate::plan::run;
use crate::plan::run::{ActionError, Ending, Outcome, Stage};
use crate::plan::state::{FileState, Imprint, KnownState, ModeChange, StateMode};
use crate::plan::validate::simulated_files::Lookup;
use crate::plan::validate::{Mistake, Step, Validator};
use crate::text::counted;
use crate::text::keep_bytes::keep_bytes;
use crate::text::path::{RepoPath, is_deceptive};
use crate::text::sanitize::sanitize_line;

/// Field with which the user keeps the bytes that the agent did not mean to change.
pub const KEEP_BYTES: &str = "Keep Bytes";

/// Table entry of TAKE.
pub static ROW: ActionRow = ActionRow {
    name: "TAKE",
    aliases: &[],
    other_names: &[],
    keys: &[
        "File Path",
        "Description",
        "Becomes",
        "Artifact",
        "Was",
        KEEP_BYTES,
    ],
    other_keys: &[PATH_KEYS],
    shape: BodyShape::ListAlone,
    group: SummaryGroup::Files,
    unit: ("file", "files"),
    counts_targets: false,
    read: |body| parse_take(body).map(ActionKind::from),
};

/// A path whose new state is taken as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakePath {
    pub path: RepoPath,
    /// The new state; `None` if the agent deleted the path.
    pub becomes: Option<TakenState>,
    /// The state before the agent ran; `None` if the path did not exist.
    pub previous: Option<KnownState>,
    /// Keeps encoding, line ends and mode of the previous version, as [`keep_bytes`] does.
    pub keep_bytes: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenState {
    /// File, executable file or link.
    pub mode: StateMode,
    /// Artifact of the turn that holds the bytes, such as `taken/01`.
    pub artifact: String,
    /// Size and hash of the bytes.
    pub imprint: Imprint,
}

impl Behavior for TakePath {
    fn fields(&self) -> Vec<Field> {
        let becomes = self.becomes.as_ref();
        let mut fields = path_fields(&self.path);
        fields.push(Field::new(
            "Becomes",
            state_word(becomes.map(|state| state.mode)),
        ));
        if let Some(state) = becomes {
            fields.push(Field::new("Artifact", format_artifact(state)));
        }
        fields.push(Field::new("Was", format_state(self.previous.as_ref())));
        fields.extend(self.keep_bytes.then(|| Field::new(KEEP_BYTES, "true")));
        fields
    }

    fn path(&self) -> Option<&RepoPath> {
        Some(&self.path)
    }

    fn new_path(&self) -> Option<&RepoPath> {
        let is_new = self.previous.is_none() && self.becomes.is_some();
        is_new.then_some(&self.path)
    }

    fn check(&self, validator: &mut Validator<'_>) -> anyhow::Result<()> {
        let entry = validator.files.look_up(&self.path)?;
        let current = validator.files.state(&self.path)?;
        if let Some(mistake) = find_obstacle(self, &entry, current.as_ref()) {
            validator.refuse_unless_fixable(mistake);
        }

        let facts = validator.files.facts;
        let after = match self.state_after(&|name| facts.taken_bytes(name)) {
            Ok(after) => after.map(|after| self.kept(current.as_ref(), after)),
            Err(message) => {
                // No command can produce the bytes.
                validator.refuse(Mistake::new(message, TAKE_HINT));
                return Ok(());
            }
        };

        let collision = self
            .becomes
            .as_ref()
            .and_then(|_| validator.files.case_collisions.add(&self.path));
        let step = validator.step();
        step.case_collision = collision.map(|(_, other)| other);
        step.before = current.map(|state| state.bytes);
        if !step.wrong {
            step.after = after.as_ref().map(|state| state.bytes.clone());
            step.removed = after.is_none();
        }
        let is_gone = after.is_none();
        // Later actions see the result even if this one is rejected, so that they don't report
        // follow-up errors.
        validator.files.set_state(&self.path, after);
        if is_gone {
            validator.files.forget_name(&self.path)?;
        }
        Ok(())
    }

    // Repeats every check of the validation, since a command can have changed the path.
    fn perform(&self, stage: &mut Stage<'_>) -> Result<Outcome, ActionError> {
        let (root, path) = (stage.root, Path::new(self.path.as_str()));
        run::no_repository_above(root, &self.path)?;
        let before = read_current(root, path, self.previous.as_ref())?;
        if before.as_ref().map(FileState::known_state) != self.previous {
            return Err(changed_path(path));
        }

        let after = self.state_after(&|name| stage.tools.taken_bytes(name))?;
        let after = after.map(|after| self.kept(before.as_ref(), after));
        match &after {
            None => {
                run::write_guarded(|| file::remove_file(root, path))?;
                // Git knows no empty directories, so the agent's deletion includes them (P40).
                file::remove_empty_above(root, path).map_err(ActionError::writing)?;
            }
            Some(state) => run::write_guarded(|| write_state(root, path, state, before.is_some()))?,
        }

        Ok(Outcome {
            difference: state_difference(self, before.as_ref(), after.as_ref()),
            written: vec![self.path.clone()],
            ..Outcome::of(
                Ending::Success,
                describe_change(before.as_ref(), after.as_ref()),
            )
        })
    }

    // A description, then a diff if both states are known.
    fn preview<'a>(&'a self, step: &'a Step) -> Vec<PreviewPart<'a>> {
        let mut parts = vec![PreviewPart::Text(describe_take(self, step))];
        let is_link = |mode: Option<StateMode>| mode == Some(StateMode::Link);
        let becomes = self.becomes.as_ref().map(|state| state.mode);
        let is_shown = step.after.is_some() || step.removed;
        if is_shown && !is_link(becomes) && step.before != step.after {
            parts.push(PreviewPart::Difference {
                path: &self.path,
                before: step.before.as_deref(),
                after: step.after.as_deref(),
            });
        }
        parts
    }

    fn json(&self) -> Vec<(&'static str, Value)> {
        let becomes = self.becomes.as_ref();
        let state = |mode: StateMode, imprint: &Imprint| json!({"kind": mode.word(), "size": imprint.size, "sha256": imprint.hash});
        vec![
            (
                "becomes",
                becomes.map_or(Value::Null, |to| state(to.mode, &to.imprint)),
            ),
            ("artifact", becomes.map(|to| to.artifact.as_str()).into()),
            (
                "was",
                self.previous
                    .as_ref()
                    .map_or(Value::Null, |from| state(from.mode, &from.imprint)),
            ),
        ]
    }

    // Risks that a list of file names does not reveal.
    fn risks(&self, step: &Step) -> Vec<String> {
        let path = &self.path;
        let mut risks = Vec::new();
        let before = self.previous.as_ref();
        let Some(becomes) = &self.becomes else {
            let size = before.map_or(0, |before| before.imprint.size);
            risks.push(format!("{path} is removed ({})", counted(size, "byte")));
            return risks;
        };

        match becomes.mode {
            StateMode::Executable if before.is_none_or(|was| was.mode == StateMode::Link) => {
                risks.push(format!("{path} is executable"));
            }
            StateMode::Link => risks.extend(describe_link(self, step)),
            StateMode::Plain | StateMode::Executable => {}
        }

        let text = step
            .after
            .as_deref()
            .and_then(|bytes| std::str::from_utf8(bytes).ok());
        let text = text.filter(|text| becomes.mode != StateMode::Link && !text.contains('\0'));
        let hidden = text.map_or(0, count_deceptive);
        if hidden > 0 {
            risks.push(format!(
                "{path} has {hidden} hidden or misleading characters, shown as \\u{{..}}"
            ));
        }

        risks
    }

    fn mode_change(&self) -> ModeChange {
        let before = self.previous.as_ref().map(|was| was.mode);
        let after = self.becomes.as_ref().map(|to| to.mode);
        ModeChange {
            before,
            after: before.filter(|_| self.keep_bytes).or(after),
        }
    }

    fn check_artifact(&self, bytes: &dyn Fn(&str) -> Option<Vec<u8>>) -> Option<String> {
        self.state_after(bytes).err()
    }

    fn keeps_bytes_mut(&mut self) -> Option<&mut bool> {
        let is_file = |mode| mode != StateMode::Link;
        let becomes = self.becomes.as_ref().is_some_and(|to| is_file(to.mode));
        let was = self.previous.as_ref().is_some_and(|was| is_file(was.mode));
        (becomes && was).then_some(&mut self.keep_bytes)
    }

    fn artifact(&self) -> Option<&str> {
        self.becomes.as_ref().map(|to| to.artifact.as_str())
    }
}

impl TakePath {
    /// Returns the new state, or a message if its bytes are missing or don't match the hash.
    fn state_after(
        &self,
        bytes: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Result<Option<FileState>, String> {
        let Some(TakenState {
            mode,
            artifact: name,
            imprint,
        }) = &self.becomes
        else {
            return Ok(None);
        };
        match bytes(name) {
            None => Err(format!("the turn has no `{name}`, whose bytes TAKE needs")),
            Some(bytes) if imprint.is_of(&bytes) => Ok(Some(FileState { mode: *mode, bytes })),
            Some(_) => Err(format!("`{name}` does not have the bytes that TAKE names")),
        }
    }

    /// Returns the new state, with what the user keeps of the previous one.
    fn kept(&self, before: Option<&FileState>, after: FileState) -> FileState {
        let is_file = |state: &FileState| state.mode != StateMode::Link;
        match before.filter(|before| self.keep_bytes && is_file(before) && is_file(&after)) {
            Some(before) => FileState {
                mode: before.mode,
                bytes: keep_bytes(&before.bytes, &after.bytes),
            },
            None => after,
        }
    }
}

fn find_obstacle(take: &TakePath, entry: &Lookup, current: Option<&FileState>) -> Option<Mistake> {
    let path = sanitize_line(take.path.as_str());
    // A link is an obstacle for other actions, but TAKE replaces it as a whole (P40).
    if let Some(obstacle) = entry.obstacle().filter(|_| current.is_none()) {
        let hint = "move it out of the way, or leave this action out";
        return Some(Mistake::new(format!("`{path}` {obstacle}"), hint));
    }

    let known_state = current.map(FileState::known_state);
    let change = match (&take.previous, &known_state) {
        (expected, actual) if expected == actual => return None,
        (None, _) => "is there now, and was not",
        (Some(_), None) => "is missing, and existed",
        (Some(_), Some(_)) => "is not what it was",
    };
    let message = format!("`{path}` {change} when this plan was made");
    let hint = "leave this action out, or restore the file and plan again";
    Some(Mistake::new(message, hint))
}

/// A path that does not exist. An empty value is not possible: `nothing` means that a field is
/// omitted.
const NO_FILE: &str = "no file";

const ARTIFACT_DIR: &str = "taken/";
const MAX_NAME_DIGITS: usize = 6;

fn state_word(mode: Option<StateMode>) -> &'static str {
    mode.map_or(NO_FILE, StateMode::word)
}

fn format_artifact(state: &TakenState) -> String {
    format!("{}, {}", state.artifact, format_imprint(&state.imprint))
}

fn format_state(state: Option<&KnownState>) -> String {
    state.map_or_else(
        || NO_FILE.to_owned(),
        |state| format!("{}, {}", state.mode, format_imprint(&state.imprint)),
    )
}

fn format_imprint(of: &Imprint) -> String {
    format!("{} bytes, sha256:{}", of.size, of.hash)
}

fn parse_take(body: &mut Body<'_>) -> Option<TakePath> {
    let path = body.path();
    let becomes = required_field(body, "Becomes", |value| match value {
        NO_FILE => Some(None),
        _ => parse_mode(value).map(Some),
    });
    let previous = required_field(body, "Was", |value| match value {
        NO_FILE => Some(None),
        _ => {
            let (mode, imprint) = parse_imprint(value)?;
            Some(Some(KnownState {
                mode: self::parse_mode(mode)?,
                imprint,
            }))
        }
    });
    let artifact = parse_bytes(body, becomes);
    let keep_bytes = body.flag(KEEP_BYTES).unwrap_or(false);
    body.nothing_below();

    let (becomes, previous) = (becomes?, previous?);
    if becomes.is_none() && previous.is_none() {
        let line = body.line;
        let message = "TAKE makes nothing of nothing";
        body.report(line, message, "leave the action out");
        return None;
    }

    let becomes = match becomes {
        None => None,
        Some(mode) => {
            let (artifact, imprint) = artifact?;
            Some(TakenState {
                mode,
                artifact,
                imprint,
            })
        }
    };
    Some(TakePath {
        path: path?,
        becomes,
        previous,
        keep_bytes,
    })
}

/// Reads `Artifact`, which is required unless the path is deleted, and forbidden then.
fn parse_bytes(
    body: &mut Body<'_>,
    becomes: Option<Option<StateMode>>,
) -> Option<(String, Imprint)> {
    match (becomes, body.field("Artifact").map(|field| field.line)) {
        (Some(None), None) => None,
        (Some(None), Some(line)) => {
            let message = "TAKE has an `Artifact` but nothing is made from the file";
            body.report(line, message, "leave it out");
            None
        }
        _ => required_field(body, "Artifact", |value| {
            let (name, imprint) = parse_imprint(value)?;
            is_artifact_name(name).then(|| (name.to_owned(), imprint))
        }),
    }
}

fn required_field<T>(body: &mut Body<'_>, key: &str, parse: fn(&str) -> Option<T>) -> Option<T> {
    let Some(Field { line, value, .. }) = body.field(key).cloned() else {
        let line = body.line;
        body.report(line, format!("TAKE has no `{key}`"), TAKE_HINT);
        return None;
    };
    let read = parse(value.trim_matches('`'));
    if read.is_none() {
        let message = format!("`{key}` cannot be read: \"{}\"", quote(&value));
        body.report(line, message, TAKE_HINT);
    }
    read
}

/// Hint for a malformed TAKE: a model cannot correct it.
const TAKE_HINT: &str =
    "TAKE is written by TeDDy alone; use CREATE or EDIT for text and EXECUTE for everything else";

fn parse_mode(value: &str) -> Option<StateMode> {
    StateMode::ALL.into_iter().find(|mode| mode.word() == value)
}

/// Parses `WORD, N bytes, sha256:HASH`.
fn parse_imprint(value: &str) -> Option<(&str, Imprint)> {
    let mut parts = value.split(", ");
    let (word, size, hash) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = size.strip_suffix(" bytes")?;
    let hash = hash.strip_prefix("sha256:")?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_whole = parts.next().is_none() && hash.len() == 64 && hash.bytes().all(is_hex);
    let size: u64 = digits.parse().ok()?;
    let imprint = Imprint {
        size,
        hash: hash.to_owned(),
    };
    (is_whole && digits == size.to_string()).then_some((word, imprint))
}

fn is_artifact_name(name: &str) -> bool {
    let digits = name.strip_prefix(ARTIFACT_DIR).unwrap_or_default();
    (2..=MAX_NAME_DIGITS).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

// Preview and risks.

/// Bytes of a link's target that are shown.
const MAX_LINK_TARGET: usize = 300;

fn describe_take(take: &TakePath, step: &Step) -> Vec<String> {
    let size = |bytes: u64| counted(bytes, "byte");
    let before = take.previous.as_ref();
    let before = before.map(|before| format!("{}, {}", before.mode, size(before.imprint.size)));
    let Some(becomes) = &take.becomes else {
        let before = before.unwrap_or_default();
        return vec![format!("removed ({before})")];
    };

    let after = match becomes.mode {
        StateMode::Link => format!(
            "{} to `{}`",
            becomes.mode,
            link_target(step).unwrap_or_default()
        ),
        // Kept bytes restore the mode and usually change the size.
        _ if take.keep_bytes => {
            let mode = take.previous.as_ref().map_or(becomes.mode, |was| was.mode);
            let length = step.after.as_ref().map(|after| after.len() as u64);
            format!("{mode}, {}", size(length.unwrap_or(becomes.imprint.size)))
        }
        mode => format!("{mode}, {}", size(becomes.imprint.size)),
    };
    let mut lines = vec![match before {
        Some(before) => format!("{before} → {after}"),
        None => format!("new {after}"),
    }];
    let same = |state: &KnownState| state.imprint == becomes.imprint;
    if take.previous.as_ref().is_some_and(same) {
        lines.push("its bytes stay as they are".to_owned());
    }
    if take.keep_bytes {
        lines.push("your encoding, line ends and mode stay".to_owned());
    }
    lines.push(format!(
        "bytes: `{}`, sha256:{}",
        becomes.artifact, becomes.imprint.hash
    ));
    lines
}

fn link_target(step: &Step) -> Option<String> {
    let bytes = step.after.as_deref()?;
    let target = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_LINK_TARGET)]);
    Some(sanitize_line(&target).into_owned())
}

/// Describes where a link points, and whether that is outside the project.
fn describe_link(take: &TakePath, step: &Step) -> Option<String> {
    let bytes = step.after.as_deref()?;
    let (path, target) = (&take.path, link_target(step)?);
    Some(if leads_out(path.as_str(), bytes) {
        format!("{path} becomes a link out of the project, to `{target}`")
    } else {
        format!("{path} becomes a link to `{target}`")
    })
}

/// Returns whether a link target is outside the project's files, judging by its text: elsewhere, in a
/// `.git` directory, or in TeDDy's own.
fn leads_out(path: &str, target: &[u8]) -> bool {
    let Ok(target) = std::str::from_utf8(target) else {
        return true;
    };
    let mut dirs: Vec<&str> = path.split('/').collect();
    dirs.pop();
    if target.starts_with('/') {
        return true;
    }

    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if dirs.pop().is_none() {
                    return true;
                }
            }
            name => dirs.push(name),
        }
    }
    let is_ours = dirs
        .first()
        .is_some_and(|name| name.eq_ignore_ascii_case(".teddy"));
    is_ours || dirs.iter().any(|name| name.eq_ignore_ascii_case(".git"))
}

fn count_deceptive(text: &str) -> usize {
    let text = text.replace("\r\n", "\n");
    let hidden = |c: &char| !matches!(c, '\t' | '\n') && is_deceptive(*c);
    text.chars().filter(hidden).count()
}

// The state of a path in the worktree, before and after.

fn changed_path(path: &Path) -> ActionError {
    let path = path.to_string_lossy();
    let path = sanitize_line(&path);
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
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(changed_path(path)),
        Err(error) => Err(ActionError::reading(error)),
    }
}

/// Writes the new state; `replaces` if the path exists.
fn write_state(root: &Root, path: &Path, state: &FileState, replaces: bool) -> io::Result<()> {
    let mode = match state.mode {
        StateMode::Plain => FileMode::Plain,
        StateMode::Executable => FileMode::Executable,
        StateMode::Link => return file::write_link(root, path, &state.bytes, replaces),
    };
    match replaces {
        true => file::replace_entry(root, path, &state.bytes, mode),
        false => root.create_new(path, &state.bytes, mode),
    }
}

/// Returns the diff; empty if one side is not text.
fn state_difference<'a>(
    take: &TakePath,
    before: Option<&'a FileState>,
    after: Option<&'a FileState>,
) -> String {
    let text = |state: Option<&'a FileState>| match state {
        None => Some(None),
        Some(state) => state.text().map(Some),
    };
    let (Some(before), Some(after)) = (text(before), text(after)) else {
        return String::new();
    };
    run::file_difference(&take.path, before, after)
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

#[cfg(test)]
mod tests;
