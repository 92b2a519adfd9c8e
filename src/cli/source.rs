//! Text from files and standard input, as UTF-8 or with the place where it is none.

use std::io::Read as _;

use anyhow::Context as _;

use super::app::App;
use crate::host::file::read_named;

/// Plans, answers and messages are far smaller; a device without an end is not.
const MAX_BYTES: u64 = 64 << 20;

/// How standard input is called on the command line.
pub(super) const STDIN: &str = "-";

/// Returns a message; `-` stands for standard input.
pub(super) fn message(text: String) -> anyhow::Result<String> {
    let text = if text == STDIN { stdin()? } else { text };
    anyhow::ensure!(
        !text.trim().is_empty(),
        "the message is empty: say what you want"
    );
    Ok(text)
}

/// Reads a file, by its path from the folder in use, or standard input for `-`.
pub(super) fn read(app: &App, path: &str) -> anyhow::Result<String> {
    if path == STDIN {
        stdin()
    } else {
        file(app, path)
    }
}

/// Reads a file, by its path from the folder in use.
pub(super) fn file(app: &App, path: &str) -> anyhow::Result<String> {
    let bytes = read_named(&app.folder()?.join(path), MAX_BYTES)
        .with_context(|| format!("cannot read `{path}`"))?;
    text(bytes, path)
}

/// Reads standard input.
fn stdin() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin()
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

/// Takes bytes for text.
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
