//! Files that keep what a ref was before it was repaired.
//!
//! The name of a file says of which ref it is: `refs:teddy:sessions:a`, then `..2` if there is one
//! already, or `..log` for a log. No ref has `:` or `..` in its name.

use std::path::{Path, PathBuf};

/// Separates the ref's name from what follows.
const END: &str = "..";
const LOG: &str = "log";

/// Returns a file that does not exist yet for what a ref was.
pub(super) fn free_file(dir: &Path, name: &str) -> PathBuf {
    free(dir, name.replace('/', ":"))
}

/// Returns a file that does not exist yet for what a ref's log was.
pub(super) fn free_log(dir: &Path, name: &str) -> PathBuf {
    free(dir, format!("{}{END}{LOG}", name.replace('/', ":")))
}

/// Returns the ref that a file is of. `None` for a log.
pub fn ref_of(file_name: &str) -> Option<String> {
    let (name, rest) = file_name.split_once(END).unwrap_or((file_name, ""));
    (!rest.starts_with(LOG)).then(|| name.replace(':', "/"))
}

fn free(dir: &Path, start: String) -> PathBuf {
    let numbered = (2..).map(|number| dir.join(format!("{start}{END}{number}")));
    let mut files = std::iter::once(dir.join(&start)).chain(numbered);
    let is_free = |file: &PathBuf| file.symlink_metadata().is_err();
    files.find(is_free).unwrap_or_else(|| dir.join(&start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ref_is_read_from_the_name_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let name = "refs/teddy/sessions/change/a-b.log";
        for _ in 0..3 {
            let file = free_file(dir.path(), name);
            let file_name = file.file_name().unwrap().to_str().unwrap();
            assert_eq!(ref_of(file_name).as_deref(), Some(name), "{file_name}");
            std::fs::write(&file, "").unwrap();
            let log = free_log(dir.path(), name);
            assert_eq!(ref_of(log.file_name().unwrap().to_str().unwrap()), None);
            std::fs::write(&log, "").unwrap();
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 6);
    }
}
