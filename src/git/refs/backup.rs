//! Files that keep what a ref was before it was repaired.
//!
//! The name of a file says of which ref it is: `refs:teddy:sessions:a`, then `..2` if there is one
//! already, or `..log` for a log. No ref has `:` or `..` in its name.

use std::path::{Path, PathBuf};

/// Separates the ref's name from what follows.
const BACKUP_SEPARATOR: &str = "..";
const BACKUP_LOG: &str = "log";

/// Returns a file that does not exist yet for what a ref was.
pub(super) fn free_backup_file(dir: &Path, name: &str) -> PathBuf {
    free_numbered(dir, name.replace('/', ":"))
}

/// Returns a file that does not exist yet for what a ref's log was.
pub(super) fn free_backup_log(dir: &Path, name: &str) -> PathBuf {
    free_numbered(
        dir,
        format!("{}{BACKUP_SEPARATOR}{BACKUP_LOG}", name.replace('/', ":")),
    )
}

/// Returns the ref that a file is of. `None` for a log.
pub fn ref_of_backup(file_name: &str) -> Option<String> {
    let (name, tail) = file_name
        .split_once(BACKUP_SEPARATOR)
        .unwrap_or((file_name, ""));
    (!tail.starts_with(BACKUP_LOG)).then(|| name.replace(':', "/"))
}

fn free_numbered(dir: &Path, start: String) -> PathBuf {
    let numbered = (2..).map(|number| dir.join(format!("{start}{BACKUP_SEPARATOR}{number}")));
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
            let file = free_backup_file(dir.path(), name);
            let file_name = file.file_name().unwrap().to_str().unwrap();
            assert_eq!(
                ref_of_backup(file_name).as_deref(),
                Some(name),
                "{file_name}"
            );
            std::fs::write(&file, "").unwrap();
            let log = free_backup_log(dir.path(), name);
            assert_eq!(
                ref_of_backup(log.file_name().unwrap().to_str().unwrap()),
                None
            );
            std::fs::write(&log, "").unwrap();
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 6);
    }
}
