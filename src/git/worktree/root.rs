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
use crate::host::file::{FileKind, FileMode, Root, make_folders};
use crate::host::file::{open_up, remove_below};

/// Our subdirectory, with one directory for each session that has a worktree.
const OWN: &str = ".teddy-worktrees";
/// File in such a directory that names the repository by its common git directory.
const OWNER: &str = "owner";
const LAYER: &str = "layer";
/// Names that are not leftovers.
const STAYS: [&str; 2] = [OWNER, LAYER];
const MAX_OWNER: u64 = 64 * 1024;
/// Prefix of the names of things that are being removed.
const OLD: &str = "old-";
const MOST_NAMES: u32 = 10_000;
pub(super) const GIT: &str = ".git";
/// Ignores the directory, in case it is inside a project.
const HIDDEN: &[u8] = b"*\n";

pub(super) struct WorktreeRoot {
    /// Canonical path.
    path: PathBuf,
    folder: Root,
    /// Our subdirectory [`OWN`].
    own: Root,
    /// Common git directory of the repository.
    owner: Vec<u8>,
}

impl WorktreeRoot {
    /// Opens the directory, creating it if necessary.
    pub(super) fn make(path: &Path, owner: &Path) -> anyhow::Result<WorktreeRoot> {
        // The project is possibly private, so its copy must be, too.
        make_folders(path).with_context(|| format!("cannot make `{}`", path.display()))?;
        let path = path
            .canonicalize()
            .with_context(|| format!("cannot use `{}`", path.display()))?;
        let during = || format!("the folder of worktrees `{}`", path.display());
        let folder = Root::open_strictly(&path).with_context(during)?;
        let own = folder
            .make_private_folder(Path::new(OWN))
            .with_context(during)?;

        let rules = Path::new(".gitignore");
        if folder.kind(rules).with_context(during)?.is_none() {
            match folder.create_new(rules, HIDDEN, FileMode::Plain) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(error).with_context(during);
                }
                _ => {}
            }
        }

        Ok(WorktreeRoot {
            path,
            folder,
            own,
            owner: owner.as_os_str().as_bytes().to_vec(),
        })
    }

    /// Opens the directory; `None` if it does not exist or is not ours.
    pub(super) fn open(path: &Path, owner: &Path) -> Option<WorktreeRoot> {
        let folder = Root::open_strictly(path).ok()?;
        let own = folder.folder(Path::new(OWN)).ok()?;
        Some(WorktreeRoot {
            path: path.to_owned(),
            folder,
            own,
            owner: owner.as_os_str().as_bytes().to_vec(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn place(&self, session: &str) -> PathBuf {
        self.path.join(session)
    }

    pub(super) fn look(&self, session: &str) -> anyhow::Result<Option<FileKind>> {
        Ok(self.folder.kind(Path::new(session))?)
    }

    /// Returns whether the worktree was created for this repository.
    pub(super) fn is_ours(&self, session: &str) -> bool {
        let named = self.own.read(&Path::new(session).join(OWNER), MAX_OWNER);
        named.is_ok_and(|named| named == self.owner)
    }

    /// Records that the session's worktree is ours, before it is created. Returns our directory for
    /// the session.
    pub(super) fn claim(&self, session: &str) -> anyhow::Result<Root> {
        let own = self.own.make_private_folder(Path::new(session))?;
        if !self.is_ours(session) {
            remove_below(&own, OsStr::new(OWNER))?;
            own.create_new(Path::new(OWNER), &self.owner, FileMode::Plain)?;
        }
        Ok(own)
    }

    pub(super) fn worktree(&self, session: &str) -> std::io::Result<Root> {
        self.folder.make_private_folder(Path::new(session))
    }

    /// Restores the owner's permissions on a session's worktree, and opens it.
    pub(super) fn open_up(&self, session: &str) -> std::io::Result<Root> {
        open_up(&self.folder, OsStr::new(session));
        self.folder.folder(Path::new(session))
    }

    pub(super) fn layer(&self, session: &str) -> anyhow::Result<Root> {
        Ok(self.claim(session)?.make_private_folder(Path::new(LAYER))?)
    }

    pub(super) fn layer_place(&self, session: &str) -> PathBuf {
        layer_place(&self.path, session)
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
        move_away(&self.folder, OsStr::new(session), &self.claim(session)?)
    }

    /// Removes `.git` from a session's worktree, whatever it is.
    pub(super) fn remove_git_dir(&self, session: &str) -> anyhow::Result<()> {
        if self.look(session)? != Some(FileKind::Folder) {
            return Ok(());
        }
        open_up(&self.folder, OsStr::new(session));
        let worktree = self.folder.folder(Path::new(session))?;
        self.remove_git_dir_of(session, &worktree)
    }

    pub(super) fn remove_git_dir_of(&self, session: &str, files: &Root) -> anyhow::Result<()> {
        move_away(files, OsStr::new(GIT), &self.claim(session)?)
    }

    /// Removes what an earlier process left half created or half removed.
    pub(super) fn clear(&self, session: &str) -> anyhow::Result<()> {
        let own = self.claim(session)?;
        let names = own.names()?.into_iter();
        let names = names.filter(|name| !STAYS.iter().any(|stays| name == stays));
        // Files that resist are left for the next attempt.
        names.for_each(|name| drop(remove_below(&own, &name)));
        Ok(())
    }

    /// Returns whether a session's worktree has a git directory of commands, or something is left
    /// half created or half removed.
    pub(super) fn has_leftovers(&self, session: &str) -> bool {
        let git = Path::new(session).join(GIT);
        let common = Path::new(OsStr::from_bytes(&self.owner));
        let is_registered = self.folder.has_bytes(&git, &git_file(common, session));
        let beside = self
            .own
            .folder(Path::new(session))
            .and_then(|own| own.names());
        (matches!(self.folder.kind(&git), Ok(Some(_))) && !is_registered)
            || beside.is_ok_and(|names| {
                let left = |name: &OsString| !STAYS.iter().any(|stays| name == stays);
                names.iter().any(left)
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

pub(super) fn layer_place(root: &Path, session: &str) -> PathBuf {
    root.join(OWN).join(session).join(LAYER)
}

/// Moves a name into one of our directories and removes it there as far as possible.
fn move_away(folder: &Root, name: &OsStr, own: &Root) -> anyhow::Result<()> {
    if folder.kind(Path::new(name))?.is_none() {
        return Ok(());
    }

    open_up(folder, name);
    for number in 0..MOST_NAMES {
        let free = OsString::from(format!("{OLD}{number}"));
        match folder.move_to(name, own, &free) {
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

/// Returns whether a session's name is a single path component.
pub(super) fn is_plain(session: &str) -> bool {
    let mut components = Path::new(session).components();
    matches!(
        (components.next(), components.next()),
        (Some(Component::Normal(_)), None)
    ) && !session.starts_with('.')
}
