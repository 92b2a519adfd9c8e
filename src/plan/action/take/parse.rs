//! Parses and writes the fields of a TAKE.

use super::{TakePath, TakenState};
use crate::plan::Field;
use crate::plan::action::body::Body;
use crate::plan::diagnostic::quote;
use crate::plan::state::{Imprint, KnownState, StateMode};

/// A path that does not exist. An empty value is not possible: `nothing` means that a field is
/// omitted.
const NO_FILE: &str = "no file";
const ARTIFACT_DIR: &str = "taken/";
const MAX_NAME_DIGITS: usize = 6;

pub(super) fn state_word(mode: Option<StateMode>) -> &'static str {
    mode.map_or(NO_FILE, StateMode::word)
}

pub(super) fn format_artifact(state: &TakenState) -> String {
    format!("{}, {}", state.artifact, format_imprint(&state.imprint))
}

pub(super) fn format_state(state: Option<&KnownState>) -> String {
    state.map_or_else(
        || NO_FILE.to_owned(),
        |state| format!("{}, {}", state.mode, format_imprint(&state.imprint)),
    )
}

fn format_imprint(of: &Imprint) -> String {
    format!("{} bytes, sha256:{}", of.size, of.hash)
}

pub(super) fn parse_take(body: &mut Body<'_>) -> Option<TakePath> {
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
pub(super) const TAKE_HINT: &str =
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
