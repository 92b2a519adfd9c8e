//! Files that the user's sparse checkout leaves out: marked with `skip-worktree` and missing on
//! disk. git clears the mark of files that exist.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use gix::bstr::ByteSlice as _;
use gix::index::entry::Flags;

use super::ignore::user_index;
use super::paths::parent_dirs;
use super::repository::Repository;

/// Marked paths of files, and of whole directories with a final `/`.
pub(in crate::git) struct Hidden {
    top: PathBuf,
    paths: HashSet<Vec<u8>>,
    /// Whether directories exist; a cache.
    dirs: RefCell<HashMap<Vec<u8>, bool>>,
}

impl Hidden {
    pub(in crate::git) fn of(user: &Repository) -> anyhow::Result<Hidden> {
        let mut hidden = Hidden {
            top: user.workdir().to_owned(),
            paths: HashSet::new(),
            dirs: RefCell::default(),
        };
        if is_on(user) {
            let index = &user_index(user)?.state;
            let skipped = index
                .entries()
                .iter()
                .filter(|entry| entry.flags.contains(Flags::SKIP_WORKTREE));
            let paths = skipped.map(|entry| entry.path(index).to_vec());
            hidden.paths = paths.collect();
        }
        Ok(hidden)
    }

    pub(in crate::git) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns whether a path or a directory above it is marked, and the path does not exist.
    pub(in crate::git) fn has(&self, path: &[u8]) -> bool {
        let mut dirs = path.find_iter("/").map(|at| &path[..=at]);
        !self.is_empty()
            && (self.paths.contains(path) || dirs.any(|dir| self.paths.contains(dir)))
            && !self.is_there(path)
    }

    pub(in crate::git) fn is_there(&self, path: &[u8]) -> bool {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        parent_dirs(path).next().is_none_or(|dir| self.has_dir(dir)) && self.on_disk(path)
    }

    fn has_dir(&self, dir: &[u8]) -> bool {
        if let Some(&cached) = self.dirs.borrow().get(dir) {
            return cached;
        }
        let exists = self.is_there(dir);
        self.dirs.borrow_mut().insert(dir.to_vec(), exists);
        exists
    }

    fn on_disk(&self, path: &[u8]) -> bool {
        let path = self.top.join(OsStr::from_bytes(path));
        path.symlink_metadata().is_ok()
    }
}

pub(in crate::git) fn is_on(repository: &Repository) -> bool {
    let config = repository.gix.config_snapshot();
    config.boolean("core.sparseCheckout") == Some(true)
}

/// Returns whether a sparse checkout leaves a file out.
pub fn leaves_out(user: &Repository, path: &[u8]) -> anyhow::Result<bool> {
    Ok(is_on(user) && Hidden::of(user)?.has(path))
}
