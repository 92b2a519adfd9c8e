//! Notes errors of hooks, which have no output that anyone sees, until a hook records a turn again.

use std::path::{Path, PathBuf};

use crate::host::clock;
use crate::host::file::{append_regular, make_dirs, read_regular};
use crate::text::sanitize::sanitize_line;

/// Further errors are dropped.
const MAX_ERROR_LOG: u64 = 32 << 10;
const MAX_ERROR_LINE: usize = 500;

/// Notes an error. Fails silently, because there is no one to tell.
pub fn note_error(hooks: &Path, message: &str) {
    let file = error_log(hooks);
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    if size > MAX_ERROR_LOG || make_dirs(hooks).is_err() {
        return;
    }

    let line: String = sanitize_line(message)
        .chars()
        .take(MAX_ERROR_LINE)
        .collect();
    let _ = append_regular(&file, format!("{} {line}\n", clock::stamp()).as_bytes());
}

/// Errors since a hook last recorded a turn, oldest first.
pub fn read_errors(hooks: &Path) -> Vec<String> {
    let bytes = read_regular(&error_log(hooks), 4 * MAX_ERROR_LOG).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.lines().map(str::to_owned).collect()
}

/// Clears the notes.
pub fn clear_errors(hooks: &Path) {
    // The file usually does not exist.
    let _ = std::fs::remove_file(error_log(hooks));
}

/// Path of the notes.
pub fn error_log(hooks: &Path) -> PathBuf {
    hooks.join("troubles.log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_are_kept_in_order_bounded_and_visible() {
        let dir = tempfile::tempdir().unwrap();
        let hooks = dir.path().join("hooks");
        assert_eq!(read_errors(&hooks), Vec::<String>::new());
        note_error(&hooks, "one\n\u{1b}[2J");
        note_error(&hooks, &"x".repeat(10_000));
        let lines = read_errors(&hooks);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].ends_with("one\\u{a}\\u{1b}[2J"), "{lines:?}");
        for _ in 0..1000 {
            note_error(&hooks, &"y".repeat(400));
        }
        assert!(error_log(&hooks).metadata().unwrap().len() < MAX_ERROR_LOG + 1000);
        clear_errors(&hooks);
        assert_eq!(read_errors(&hooks), Vec::<String>::new());
    }
}
