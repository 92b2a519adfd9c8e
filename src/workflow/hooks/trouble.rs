//! Notes errors of hooks, which have no output that anyone sees, until a hook records a turn again.

use std::path::{Path, PathBuf};

use crate::host::clock;
use crate::host::file::{append_regular, make_folders, read_regular};
use crate::text::visible::visible;

/// Further errors are dropped.
const MAX_FILE: u64 = 32 << 10;
const MAX_LINE: usize = 500;

/// Notes an error. Fails silently, because there is no one to tell.
pub fn note(hooks: &Path, what: &str) {
    let file = file(hooks);
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    if size > MAX_FILE || make_folders(hooks).is_err() {
        return;
    }

    let line: String = visible(what).chars().take(MAX_LINE).collect();
    let _ = append_regular(&file, format!("{} {line}\n", clock::stamp()).as_bytes());
}

/// Errors since a hook last recorded a turn, oldest first.
pub fn noted(hooks: &Path) -> Vec<String> {
    let bytes = read_regular(&file(hooks), 4 * MAX_FILE).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text.lines().map(str::to_owned).collect()
}

/// Clears the notes.
pub fn forget(hooks: &Path) {
    // The file usually does not exist.
    let _ = std::fs::remove_file(file(hooks));
}

/// Path of the notes.
pub fn file(hooks: &Path) -> PathBuf {
    hooks.join("troubles.log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_are_kept_in_order_bounded_and_visible() {
        let folder = tempfile::tempdir().unwrap();
        let hooks = folder.path().join("hooks");
        assert_eq!(noted(&hooks), Vec::<String>::new());
        note(&hooks, "one\n\u{1b}[2J");
        note(&hooks, &"x".repeat(10_000));
        let found = noted(&hooks);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].ends_with("one\\u{a}\\u{1b}[2J"), "{found:?}");
        for _ in 0..1000 {
            note(&hooks, &"y".repeat(400));
        }
        assert!(file(&hooks).metadata().unwrap().len() < MAX_FILE + 1000);
        forget(&hooks);
        assert_eq!(noted(&hooks), Vec::<String>::new());
    }
}
