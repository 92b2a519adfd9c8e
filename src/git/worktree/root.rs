//! The directory that contains the session worktrees of a repository.
//!
//! Commands can write into the worktrees and nowhere else in it. So the proof of ownership is next
//! to them: a directory in [`OWN`] with the session's name that names the repository. All paths are
//! resolved from one open directory without following symlinks. Whatever is removed is first
//! renamed into [`OWN`], so undeletable files cannot block a session.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;

use super::git_record::git_file;
use crate::host::file::{FileKind, FileMode, Root, make_dirs};
use crate::host::file::{make_writable, remove_below};

/// Our subdirectory, with one directory for each session that has a worktree.
const OWN: &str = ".teddy-worktrees";
/// File in such a directory that names the repository by its common git directory.
const OWNER: &str = "owner";
const LAYER: &str = "layer";
/// Names that are not leftovers.
const RESERVED: [&str; 2] = [OWNER, LAYER];
const MAX_OWNER: u64 = 64 * 1024;
/// Prefix of the names of things that are being removed.
const OLD: &str = "old-";
const MOST_NAMES: u32 = 10_000;
pub(super) const GIT: &str = ".git";
/// Ignores the directory, in case it is inside a project.
const HIDDEN: &[u8] = b"*\n";

pub(super) struct WorktreeRoot {
    path: PathBuf,
    dir: Root,
    /// Our subdirectory [`OWN`].
    own: Root,
    /// Common git directory of the repository.
    owner: Vec<u8>,
}

impl WorktreeRoot {
    /// Opens the directory, creating it if necessary.
    pub(super) fn make(path: &Path, owner: &Path) -> anyhow::Result<WorktreeRoot> {
        // The project is possibly private, so its copy must be, too.
        make_dirs(path).with_context(|| format!("cannot make `{}`", path.display()))?;
        let path = path
            .canonicalize()
            .with_context(|| format!("cannot use `{}`", path.display()))?;
        let during = || format!("the folder of worktrees `{}`", path.display());
        let dir = Root::open_strictly(&path).with_context(during)?;
        let own = dir.make_private_dir(Path::new(OWN)).with_context(during)?;

        let rules = Path::new(".gitignore");
        if dir.kind(rules).with_context(during)?.is_none() {
            match dir.create_new(rules, HIDDEN, FileMode::Plain) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(error).with_context(during);
                }
                _ => {}
            }
        }

        Ok(WorktreeRoot {
            path,
            dir,
            own,
            owner: owner.as_os_str().as_bytes().to_vec(),
        })
    }

    /// Opens the directory; `None` if it does not exist or is not ours.
    pub(super) fn open(path: &Path, owner: &Path) -> Option<WorktreeRoot> {
        let dir = Root::open_strictly(path).ok()?;
        let own = dir.open_dir(Path::new(OWN)).ok()?;
        Some(WorktreeRoot {
            path: path.to_owned(),
            dir,
            own,
            owner: owner.as_os_str().as_bytes().to_vec(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn worktree_path(&self, session: &str) -> PathBuf {
        self.path.join(session)
    }

    pub(super) fn kind(&self, session: &str) -> anyhow::Result<Option<FileKind>> {
        Ok(self.dir.kind(Path::new(session))?)
    }

    /// Returns whether the worktree was created for this repository.
    pub(super) fn is_ours(&self, session: &str) -> bool {
        let owner = self.own.read(&Path::new(session).join(OWNER), MAX_OWNER);
        owner.is_ok_and(|owner| owner == self.owner)
    }

    /// Records that the session's worktree is ours, before it is created. Returns our directory for
    /// the session.
    pub(super) fn claim(&self, session: &str) -> anyhow::Result<Root> {
        let own = self.own.make_private_dir(Path::new(session))?;
        if !self.is_ours(session) {
            remove_below(&own, OsStr::new(OWNER))?;
            own.create_new(Path::new(OWNER), &self.owner, FileMode::Plain)?;
        }
        Ok(own)
    }

    pub(super) fn worktree(&self, session: &str) -> std::io::Result<Root> {
        // A command can have closed it.
        make_writable(&self.dir, OsStr::new(session));
        self.dir.make_private_dir(Path::new(session))
    }

    /// Restores the owner's permissions on a session's worktree, and opens it.
    pub(super) fn open_up(&self, session: &str) -> std::io::Result<Root> {
        make_writable(&self.dir, OsStr::new(session));
        self.dir.open_dir(Path::new(session))
    }

    pub(super) fn layer(&self, session: &str) -> anyhow::Result<Root> {
        Ok(self.claim(session)?.make_private_dir(Path::new(LAYER))?)
    }

    pub(super) fn layer_path(&self, session: &str) -> PathBuf {
        layer_path(&self.path, session)
    }

    pub(super) fn remove_layer(&self, session: &str) -> anyhow::Result<()> {
        let own = self.claim(session)?;
        Ok(remove_below(&own, OsStr::new(LAYER))?)
    }

    /// Moves a session's layer away and removes it as far as possible.
    pub(super) fn move_layer_away(&self, session: &str) -> anyhow::Result<()> {
        let own = self.claim(session)?;
        move_away(&own, OsStr::new(LAYER), &own)
    }

    /// Removes a session's worktree, which must be ours.
    pub(super) fn remove_worktree(&self, session: &str) -> anyhow::Result<()> {
        move_away(&self.dir, OsStr::new(session), &self.claim(session)?)
    }

    /// Removes `.git` from a session's worktree, whatever it is.
    pub(super) fn remove_git_dir(&self, session: &str) -> anyhow::Result<()> {
        if self.kind(session)? != Some(FileKind::Dir) {
            return Ok(());
        }
        make_writable(&self.dir, OsStr::new(session));
        let worktree = self.dir.open_dir(Path::new(session))?;
        self.remove_git_dir_of(session, &worktree)
    }

    pub(super) fn remove_git_dir_of(&self, session: &str, files: &Root) -> anyhow::Result<()> {
        move_away(files, OsStr::new(GIT), &self.claim(session)?)
    }

    /// Removes what an earlier process left half created or half removed.
    pub(super) fn clear(&self, session: &str) -> anyhow::Result<()> {
        let own = self.claim(session)?;
        let names = own.names()?.into_iter();
        let names = names.filter(|name| !RESERVED.iter().any(|reserved| name == reserved));
        // Files that resist are left for the next attempt.
        names.for_each(|name| drop(remove_below(&own, &name)));
        Ok(())
    }

    /// Returns whether a session's worktree has a git directory of commands, or something is left
    /// half created or half removed.
    pub(super) fn has_leftovers(&self, session: &str) -> bool {
        let git = Path::new(session).join(GIT);
        let common = Path::new(OsStr::from_bytes(&self.owner));
        let git_file = git_file(common, session);
        let content = self.dir.read(&git, git_file.len() as u64);
        let is_registered = content.is_ok_and(|content| content == git_file);
        let own_names = self
            .own
            .open_dir(Path::new(session))
            .and_then(|own| own.names());
        (matches!(self.dir.kind(&git), Ok(Some(_))) && !is_registered)
            || own_names.is_ok_and(|names| {
                let is_leftover =
                    |name: &OsString| !RESERVED.iter().any(|reserved| name == reserved);
                names.iter().any(is_leftover)
            })
    }

    /// Removes the proof of ownership, once the worktree is gone.
    pub(super) fn forget(&self, session: &str) -> std::io::Result<()> {
        remove_below(&self.own, OsStr::new(session))
    }
}

/// Returns whether a directory contains worktrees of some repository.
pub(super) fn is_root(path: &Path) -> bool {
    path.join(OWN).symlink_metadata().is_ok()
}

pub(super) fn layer_path(root: &Path, session: &str) -> PathBuf {
    root.join(OWN).join(session).join(LAYER)
}

/// Moves a name into one of our directories and removes it there as far as possible.
fn move_away(dir: &Root, name: &OsStr, own: &Root) -> anyhow::Result<()> {
    if dir.kind(Path::new(name))?.is_none() {
        return Ok(());
    }

    // A directory without write permission cannot move to another parent.
    make_writable(dir, name);
    for number in 0..MOST_NAMES {
        let free = OsString::from(format!("{OLD}{number}"));
        match dir.move_to(name, own, &free) {
            Ok(()) => {
                // Undeletable files stay here, where they do not block the session.
                let _ = remove_below(own, &free);
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }

    anyhow::bail!("the directory for removed files is too full")
}

pub(super) fn check_session(session: &str) -> anyhow::Result<()> {
    anyhow::ensure!(is_plain(session), "`{session}` cannot name a worktree");
    Ok(())
}

/// Returns whether a session's name is a single path component.
pub(super) fn is_plain(session: &str) -> bool {
    let mut components = Path::new(session).components();
    matches!(
        (components.next(), components.next()),
        (Some(Component::Normal(_)), None)
    ) && !session.starts_with('.')
}
