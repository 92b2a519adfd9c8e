//! Error messages for file operations.

use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::text::sanitize;

/// Payload of an `io::Error` of the same kind as `why`.
#[derive(Debug)]
struct FileError {
    /// As in "cannot {verb} ...".
    verb: &'static str,
    path: PathBuf,
    why: io::Error,
}

/// Prefixes an error with "cannot {verb} `{path}`". Keeps its kind.
pub fn failure(verb: &'static str, path: &Path, why: io::Error) -> io::Error {
    io::Error::new(
        why.kind(),
        FileError {
            verb,
            path: path.to_owned(),
            why,
        },
    )
}

/// Returns an error's message as the end of a sentence: lower case, without "(os error N)".
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => "unknown reason".to_owned(),
    }
}

/// Returns whether an error says that a file could not be read, in contrast to a file that is not
/// there or was read and is wrong.
pub fn is_out_of_reach(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidData
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::UnexpectedEof
    )
}

/// Returns a path as a person may see it.
pub(super) fn show_path(path: &Path) -> String {
    sanitize::sanitize_line(&sanitize::sanitize_bytes(path.as_os_str().as_bytes())).into_owned()
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot {} `{}`: {}",
            self.verb,
            show_path(&self.path),
            reason(&self.why)
        )
    }
}

impl std::error::Error for FileError {}
