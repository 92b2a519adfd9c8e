//! Reads text from files and stdin, and reports the position of invalid UTF-8.

use std::io::{self, Read as _};
use std::path::Path;

use anyhow::Context as _;

use super::app::App;
use crate::host::file::{read_named, reason};
use crate::text::hint::{error_with_hint, with_hint};
use crate::text::near::nearest;
use crate::text::sanitize::sanitize_line;

/// Far above any plan or message; stops at an endless device.
const MAX_BYTES: u64 = 64 << 20;

pub(super) const STDIN: &str = "-";

/// Returns a message; `-` means stdin.
pub(super) fn message(text: String) -> anyhow::Result<String> {
    let text = if text == STDIN { stdin()? } else { text };
    if text.trim().is_empty() {
        return Err(error_with_hint(
            "the message is empty",
            "`-m '<message>'` says what you want",
        ));
    }
    Ok(text)
}

/// Reads a file, or stdin for `-`. `otherwise` is the hint if the file is missing and no name is
/// similar.
pub(super) fn read(app: &App, path: &str, otherwise: &str) -> anyhow::Result<String> {
    if path == STDIN {
        return stdin();
    }

    file(app, path).map_err(|error| {
        if !is_missing(&error) {
            return error;
        }
        let near = near(app, path).map(|near| format!("did you mean `{near}`?"));
        with_hint(error, near.unwrap_or_else(|| otherwise.to_owned()))
    })
}

pub(super) fn is_missing(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Returns the existing file with the name most similar to a missing one.
pub(super) fn near(app: &App, path: &str) -> Option<String> {
    near_in(&app.dir().ok()?, path)
}

/// As [`near`], for a path relative to a directory.
pub(super) fn near_in(base: &Path, path: &str) -> Option<String> {
    let (dir, name) = match path.rsplit_once('/') {
        Some((dir, name)) => (format!("{dir}/"), name),
        None => (String::new(), path),
    };
    let entries = std::fs::read_dir(base.join(&dir)).ok()?;
    let names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let near = nearest(name, names.iter().map(String::as_str))?;

    Some(sanitize_line(&format!("{dir}{near}")).into_owned())
}

/// Reads a file, relative to the current directory.
pub(super) fn file(app: &App, path: &str) -> anyhow::Result<String> {
    let bytes = read_named(&app.dir()?.join(path), MAX_BYTES)
        .map_err(|error| io::Error::new(error.kind(), reason(&error)))
        .with_context(|| format!("cannot read `{path}`"))?;
    text(bytes, path)
}

pub(super) fn stdin() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .context("reading standard input")?;
    anyhow::ensure!(
        bytes.len() as u64 <= MAX_BYTES,
        "cannot read standard input: it is larger than {} MiB",
        MAX_BYTES >> 20
    );

    text(bytes, "standard input")
}

fn text(bytes: Vec<u8>, name: &str) -> anyhow::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid]
            .iter()
            .filter(|&&b| b == b'\n')
            .count()
            + 1;
        anyhow::anyhow!(
            "`{name}` is not UTF-8: line {line} has the byte 0x{:02x}; save it as UTF-8",
            error.as_bytes()[valid]
        )
    })
}
