//! Empty repositories in place of those whose git directory commands do not see.
//!
//! The `.git` of a submodule, or of a linked worktree among the files, is a file that leads into the
//! user's git directory. git would fail on it in every command, and without it, git in that
//! directory would work on the project.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use gix::index::entry::Mode;

use crate::git::irregular::link_target;
use crate::git::keep::damaged::{FsTime, fs_now};
use crate::git::repository::Repository;
use crate::git::worktree::SessionWorktree;
use crate::git::worktree::root::GIT;
use crate::host::file::{Root, remove_below};

/// For git, the submodule has no commit and no files, so that nothing in it differs.
const STUB: [(&str, &[u8]); 2] = [
    ("HEAD", b"ref: refs/heads/none\n"),
    ("info/exclude", b"*\n"),
];

const PAUSE: Duration = Duration::from_millis(1);

impl SessionWorktree {
    /// Does so in a mounted view of the user's files.
    pub fn stub_repositories(&self, user: &Repository, merged: &Root) -> anyhow::Result<()> {
        let Some(lower) = &self.lower else {
            return Ok(());
        };
        let entries = lower.index.entries().iter();
        let mut last = None;
        for entry in entries.filter(|entry| entry.mode == Mode::COMMIT) {
            let path = Path::new(OsStr::from_bytes(entry.path(&lower.index)));
            if !leads_into_git_dir(user, path) {
                continue;
            }
            let dir = merged.open_dir(path)?;
            remove_below(&dir, OsStr::new(GIT))?;
            let git = dir.make_dir(Path::new(GIT))?;
            for name in ["objects", "refs"] {
                git.make_dir(Path::new(name))?;
            }
            for (name, bytes) in STUB {
                git.create_aside(Path::new(name), bytes)?;
            }
            last = Some(self.files.join(path).symlink_metadata()?);
        }

        // What a command changes in one is found by its time, so it must be a later one.
        while let Some(metadata) = &last
            && fs_now(user)? <= FsTime::of(metadata)
        {
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

fn leads_into_git_dir(user: &Repository, path: &Path) -> bool {
    let target = link_target(&user.workdir().join(path).join(GIT));
    let target = target.and_then(|target| target.canonicalize().ok());
    target.is_some_and(|target| target.starts_with(user.common_dir()))
}
