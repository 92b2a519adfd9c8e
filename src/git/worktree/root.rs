//! The folder that holds the worktrees of a repository's sessions.
//!
//! Commands write in the worktrees and nowhere else in it. So what proves that a worktree is ours
//! lies beside them: a folder of the session's name in [`OWN`] that names the repository.
//! Everything is reached from one open folder and through no link; what goes is moved away first,
//! so that nothing that resists its removal stops a session.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;

use crate::host::file::{FileKind, FileMode, Root};
use crate::host::file::{open_up, remove_below};

/// Our own part of the folder: a folder for each session that has a worktree.
const OWN: &str = ".teddy-worktrees";
/// The file in such a folder that names the repository, by its common git directory.
const OWNER: &str = "owner";
/// The folder with the session's layer.
const LAYER: &str = "layer";
/// What is no leftover among these.
const STAYS: [&str; 2] = [OWNER, LAYER];
/// A path has no more bytes.
const MAX_OWNER: u64 = 64 * 1024;
/// How what is on its way out is called; a number follows.
const OLD: &str = "old-";
/// So often something is moved away and is there again before it is an error.
const MOST_NAMES: u32 = 10_000;
/// The git directory of a worktree.
pub(super) const GIT: &str = ".git";
/// Rules that hide the folder from a project in which it lies.
const HIDDEN: &[u8] = b"*\n";

/// The folder of worktrees, open.
pub(super) struct WorktreeRoot {
    /// Its path, without links.
    path: PathBuf,
    /// The folder.
    folder: Root,
    /// Our own part of it.
    own: Root,
    /// The common git directory of the repository.
    owner: Vec<u8>,
}

impl WorktreeRoot {
    /// Opens the folder, and makes it where there is none.
    pub(super) fn make(path: &Path, owner: &Path) -> anyhow::Result<WorktreeRoot> {
        use std::os::unix::fs::DirBuilderExt as _;

        // The project may be where nobody else looks into: so is its copy.
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path);
        made.with_context(|| format!("cannot make `{}`", path.display()))?;
        let path = path
            .canonicalize()
            .with_context(|| format!("cannot use `{}`", path.display()))?;
        let during = || format!("the folder of worktrees `{}`", path.display());
        let folder = Root::open_strictly(&path).with_context(during)?;
        let own = folder.make_folder(Path::new(OWN)).with_context(during)?;

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

    /// Opens the folder; nothing where it is not there, or is none of ours.
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

    /// Returns the folder's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns where a session's worktree is.
    pub(super) fn place(&self, session: &str) -> PathBuf {
        self.path.join(session)
    }

    /// Returns what is at the place of a session's worktree.
    pub(super) fn look(&self, session: &str) -> anyhow::Result<Option<FileKind>> {
        Ok(self.folder.kind(Path::new(session))?)
    }

    /// Returns whether what is there was made for this repository.
    pub(super) fn is_ours(&self, session: &str) -> bool {
        let named = self.own.read(&Path::new(session).join(OWNER), MAX_OWNER);
        named.is_ok_and(|named| named == self.owner)
    }

    /// Says that the worktree of a session is ours, before it is made; returns our own folder
    /// beside it.
    pub(super) fn claim(&self, session: &str) -> anyhow::Result<Root> {
        let own = self.own.make_folder(Path::new(session))?;
        if !self.is_ours(session) {
            remove_below(&own, OsStr::new(OWNER))?;
            own.create_new(Path::new(OWNER), &self.owner, FileMode::Plain)?;
        }
        Ok(own)
    }

    /// Opens a session's worktree, and makes it where there is none.
    pub(super) fn worktree(&self, session: &str) -> std::io::Result<Root> {
        self.folder.make_folder(Path::new(session))
    }

    /// Opens the folder with a session's layer, and makes it where there is none.
    pub(super) fn layer(&self, session: &str) -> anyhow::Result<Root> {
        Ok(self.claim(session)?.make_folder(Path::new(LAYER))?)
    }

    /// Returns where the folder with a session's layer is.
    pub(super) fn layer_place(&self, session: &str) -> PathBuf {
        layer_place(&self.path, session)
    }

    /// Removes a session's layer.
    pub(super) fn remove_layer(&self, session: &str) -> anyhow::Result<()> {
        let own = self.claim(session)?;
        Ok(remove_below(&own, OsStr::new(LAYER))?)
    }

    /// Removes a session's worktree, which is ours, whatever it has become.
    pub(super) fn remove_worktree(&self, session: &str) -> anyhow::Result<()> {
        move_away(&self.folder, OsStr::new(session), &self.claim(session)?)
    }

    /// Removes what is called `.git` in a session's worktree, whatever it has become.
    pub(super) fn remove_git_dir(&self, session: &str) -> anyhow::Result<()> {
        if self.look(session)? != Some(FileKind::Folder) {
            return Ok(());
        }
        open_up(&self.folder, OsStr::new(session));
        let worktree = self.folder.folder(Path::new(session))?;
        self.remove_git_dir_of(session, &worktree)
    }

    /// Removes what is called `.git` in the files of a session.
    pub(super) fn remove_git_dir_of(&self, session: &str, files: &Root) -> anyhow::Result<()> {
        move_away(files, OsStr::new(GIT), &self.claim(session)?)
    }

    /// Removes what an earlier process began to remove or to make for a session.
    pub(super) fn clear(&self, session: &str) -> anyhow::Result<()> {
        let own = self.claim(session)?;
        let names = own.names()?.into_iter();
        let names = names.filter(|name| !STAYS.iter().any(|stays| name == stays));
        // What still resists is tried again the next time.
        names.for_each(|name| drop(remove_below(&own, &name)));
        Ok(())
    }

    /// Returns whether a session's worktree has a git directory, or our own folder beside it has
    /// something on its way in or out.
    pub(super) fn has_leftovers(&self, session: &str) -> bool {
        let git = Path::new(session).join(GIT);
        let beside = self
            .own
            .folder(Path::new(session))
            .and_then(|own| own.names());
        matches!(self.folder.kind(&git), Ok(Some(_)))
            || beside.is_ok_and(|names| {
                let left = |name: &OsString| !STAYS.iter().any(|stays| name == stays);
                names.iter().any(left)
            })
    }

    /// Forgets a session whose worktree is gone.
    pub(super) fn forget(&self, session: &str) -> std::io::Result<()> {
        remove_below(&self.own, OsStr::new(session))
    }
}

/// Returns where the folder with a session's layer is in a folder of worktrees.
pub(super) fn layer_place(root: &Path, session: &str) -> PathBuf {
    root.join(OWN).join(session).join(LAYER)
}

/// Moves a name out of a folder into one of ours, and removes it there as far as it can be.
fn move_away(folder: &Root, name: &OsStr, own: &Root) -> anyhow::Result<()> {
    if folder.kind(Path::new(name))?.is_none() {
        return Ok(());
    }

    open_up(folder, name);
    for number in 0..MOST_NAMES {
        let free = OsString::from(format!("{OLD}{number}"));
        match folder.move_to(name, own, &free) {
            Ok(()) => {
                let _ = remove_below(own, &free);
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }

    anyhow::bail!("too much lies in the folder for what is removed")
}

/// Returns whether a session's name is that of one folder.
pub(super) fn is_plain(session: &str) -> bool {
    let mut components = Path::new(session).components();
    matches!(
        (components.next(), components.next()),
        (Some(Component::Normal(_)), None)
    ) && !session.starts_with('.')
}
