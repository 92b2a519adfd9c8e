//! Notes which files only their owner can read, because git does not record that.
//!
//! A file that a turn creates gets default permissions unless its path is noted. A path is noted if
//! a command closed its file to others, or if a turn deleted such a file of the user's. The note is
//! in our own directory, so it is never pushed with a session.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rustix::fs::RawMode;

use super::repository::Repository;
use crate::host::file::{read_regular, write_cache};

const FOLDER: &str = "private";
const MAX_NOTE: u64 = 16 << 20;
/// Permissions of a noted file; the owner can get the executable bit, too.
pub(in crate::git) const PRIVATE: RawMode = 0o600;

pub struct PrivateFiles {
    note: PathBuf,
    paths: BTreeSet<Vec<u8>>,
    is_changed: bool,
}

impl PrivateFiles {
    /// Reads the note of a checkout. An unreadable one is empty.
    pub fn of(repository: &Repository) -> PrivateFiles {
        let note = repository.teddy_dir().join(FOLDER);
        let note = note.join(repository.worktree_name());
        let bytes = read_regular(&note, MAX_NOTE).unwrap_or_default();
        let paths = bytes
            .split(|&byte| byte == 0)
            .filter(|path| !path.is_empty());
        PrivateFiles {
            note,
            paths: paths.map(<[u8]>::to_vec).collect(),
            is_changed: false,
        }
    }

    pub fn has(&self, path: &[u8]) -> bool {
        self.paths.contains(path)
    }

    /// Notes a file with these permissions, or forgets it if others can read it.
    pub fn note(&mut self, path: &[u8], permissions: RawMode) {
        self.is_changed |= match permissions & 0o077 {
            0 => self.paths.insert(path.to_vec()),
            _ => self.paths.remove(path),
        };
    }

    pub fn save(self) -> std::io::Result<()> {
        if !self.is_changed {
            return Ok(());
        }
        let paths: Vec<Vec<u8>> = self.paths.into_iter().collect();
        crate::host::file::make_dirs(self.note.parent().unwrap_or(Path::new(".")))?;
        write_cache(&self.note, &paths.join(&0))
    }
}
