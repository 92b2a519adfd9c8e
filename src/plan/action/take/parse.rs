//! Parses and writes the fields of a TAKE.

use super::{TakePath, TakenState};
use crate::plan::Field;
use crate::plan::action::body::Body;
use crate::plan::diagnostic::quote;
use crate::plan::state::{Imprint, KnownState, StateMode};

/// A path that does not exist. An empty value is not possible: `nothing` means that a field is
/// omitted.
const NOTHING: &str = "no file";
const FOLDER: &str = "taken/";
const MAX_DIGITS: usize = 6;

pub(super) fn word(mode: Option<StateMode>) -> &'static str {
    mode.map_or(NOTHING, StateMode::word)
}

pub(super) fn artifact(state: &TakenState) -> String {
    format!("{}, {}", state.artifact, imprint(&state.imprint))
}

pub(super) fn was(state: Option<&KnownState>) -> String {
    state.map_or_else(
        || NOTHING.to_owned(),
        |state| format!("{}, {}", state.mode, imprint(&state.imprint)),
    )
}

fn imprint(of: &Imprint) -> String {
    format!("{} bytes, sha256:{}", of.size, of.hash)
}

pub(super) fn read(body: &mut Body<'_>) -> Option<TakePath> {
    let path = body.path();
    let becomes = required(body, "Becomes", |value| match value {
        NOTHING => Some(None),
        _ => mode(value).map(Some),
    });
    let was = required(body, "Was", |value| match value {
        NOTHING => Some(None),
        _ => {
            let (mode, imprint) = described(value)?;
            Some(Some(KnownState {
                mode: self::mode(mode)?,
                imprint,
            }))
        }
    });
    let artifact = bytes(body, becomes);
    body.nothing_below();

    let (becomes, was) = (becomes?, was?);
    if becomes.is_none() && was.is_none() {
        let line = body.line;
        let message = "TAKE makes nothing of nothing";
        body.wrong(line, message, "leave the action out");
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
        was,
    })
}

/// Reads `Artifact`, which is required unless the path is deleted, and forbidden then.
fn bytes(body: &mut Body<'_>, becomes: Option<Option<StateMode>>) -> Option<(String, Imprint)> {
    match (becomes, body.field("Artifact").map(|field| field.line)) {
        (Some(None), None) => None,
        (Some(None), Some(line)) => {
            let message = "TAKE has an `Artifact` but nothing is made from the file";
            body.wrong(line, message, "leave it out");
            None
        }
        _ => required(body, "Artifact", |value| {
            let (name, imprint) = described(value)?;
            is_name(name).then(|| (name.to_owned(), imprint))
        }),
    }
}

fn required<T>(body: &mut Body<'_>, key: &str, parse: fn(&str) -> Option<T>) -> Option<T> {
    let Some(Field { line, value, .. }) = body.field(key).cloned() else {
        let line = body.line;
        body.wrong(line, format!("TAKE has no `{key}`"), HINT);
        return None;
    };
    let read = parse(value.trim_matches('`'));
    if read.is_none() {
        let message = format!("`{key}` cannot be read: \"{}\"", quote(&value));
        body.wrong(line, message, HINT);
    }
    read
}

/// Hint for a malformed TAKE: a model cannot correct it.
pub(super) const HINT: &str =
    "TAKE is written by TeDDy alone; use CREATE or EDIT for text and EXECUTE for everything else";

fn mode(value: &str) -> Option<StateMode> {
    StateMode::ALL.into_iter().find(|mode| mode.word() == value)
}

/// Parses `WORD, N bytes, sha256:HASH`.
fn described(value: &str) -> Option<(&str, Imprint)> {
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

fn is_name(name: &str) -> bool {
    let digits = name.strip_prefix(FOLDER).unwrap_or_default();
    (2..=MAX_DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}
