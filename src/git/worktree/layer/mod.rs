//! The layer of a session: what the commands of its plans changed of the user's own files, which
//! they see below it.
//!
//! Only what git ignores stays in it from turn to turn, a build's files say; everything else is in
//! the record of its turn, and comes from below again once it was brought there. The layer lies
//! beside the worktree, where no confined command writes but through the overlay. What is in it is
//! a stranger's: it says what a plan's result is, and nothing else.

mod changes;
pub(super) mod index;
mod result;
mod secrets;
mod sweep;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use super::root::{GIT, WorktreeRoot};
use super::{Below, SessionWorktree, former, is_plain_session, record};
use crate::git::object::TreeId;
use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::host::file::remove_below;
use crate::host::overlay;
use crate::host::sandbox::OverlayFolders;
use index::LayerIndex;
pub use result::LayerScan;
pub use secrets::hide_secrets;

/// What takes the changes.
const FILES: &str = "files";
/// What the kernel needs to work.
const WORK: &str = "work";

/// The user's files, which are seen below a layer.
pub struct LowerFiles<'a> {
    /// Their tree.
    pub tree: TreeId,
    /// The private index that the tree was made with.
    pub known: &'a Path,
    /// What names a secret.
    pub limits: &'a SnapshotLimits,
}

/// Returns the session's layer, with nothing in it but what git ignores and a git directory with
/// HEAD still to be made; makes it where there is none. The caller holds the session's lock.
///
/// # Errors
/// Where something else is in its place, or a file cannot be read or written.
pub fn session_layer(
    user: &Repository,
    root: &Path,
    session: &str,
    below: &LowerFiles<'_>,
) -> anyhow::Result<SessionWorktree> {
    is_plain_session(session)?;
    let root = WorktreeRoot::make(root, &user.common_dir())?;
    let path = root.place(session);
    let during = || format!("the layer of session `{session}` at `{}`", path.display());

    former::take_over(user, &root, session).with_context(during)?;
    let record = record::worktree_record(user, session);
    super::remove_unknown(&root, &record, session).with_context(during)?;
    super::make_room(&root, session)?;
    root.clear(session).with_context(during)?;
    root.remove_git_dir(session).with_context(during)?;
    root.worktree(session).with_context(during)?;
    let layer = root.layer(session).with_context(during)?;
    remove_below(&layer, OsStr::new(WORK)).with_context(during)?;
    layer.make_folder(Path::new(WORK)).with_context(during)?;

    let fresh = layer.kind(Path::new(FILES))?.is_none();
    layer.make_folder(Path::new(FILES)).with_context(during)?;
    let place = root.layer_place(session).join(FILES);
    let worktree = SessionWorktree {
        repository: user.with_worktree(&place, &record.layer_index())?,
        fresh,
        session: session.to_owned(),
        path: path.clone(),
        files: place,
        below: Some(Below {
            files: user.workdir().to_owned(),
            index: Arc::new(LayerIndex::of(user, below)?),
        }),
        record,
        root,
    };

    worktree.keep_record()?;
    worktree.record.forget_layer_index();
    worktree.sweep_layer(user, below).with_context(during)?;
    Ok(worktree)
}

impl SessionWorktree {
    /// Returns the folders of the overlay in which commands see this layer over the user's files.
    ///
    /// # Errors
    /// The user's folder has no path without links.
    pub fn overlay(&self, user: &Repository) -> anyhow::Result<OverlayFolders> {
        let lower = user.workdir();
        Ok(OverlayFolders {
            lower: lower
                .canonicalize()
                .with_context(|| format!("cannot use `{}`", lower.display()))?,
            upper: self.files.clone(),
            work: self.files.with_file_name(WORK),
            at: self.path.clone(),
        })
    }

    /// Lets the git directory of the layer hide the user's.
    ///
    /// # Errors
    /// Where the file system has no attributes for it.
    pub fn hide_users_git_dir(&self) -> anyhow::Result<()> {
        let git = self.files.join(GIT);
        overlay::hide_below(&git).with_context(|| format!("marking `{}`", git.display()))
    }

    /// Removes what is in the layer besides ignored files, as after a set-up.
    ///
    /// # Errors
    /// Where something cannot be removed.
    pub fn sweep_layer(&self, user: &Repository, below: &LowerFiles<'_>) -> anyhow::Result<()> {
        sweep::sweep(user, below, &self.recorded(below.tree), &self.files)?;
        self.record.forget_recorded(true);
        Ok(())
    }

    /// Removes the layer whole; it is made anew when it is needed.
    ///
    /// # Errors
    /// Where something cannot be removed.
    pub fn remove_layer(&self) -> anyhow::Result<()> {
        self.record.forget_layer();
        self.root.remove_layer(&self.session)
    }

    /// Removes what the kernel needed to work, once nothing is mounted any more.
    pub fn remove_work(&self) {
        // What is left is removed before the next mount.
        if let Ok(layer) = self.root.layer(&self.session) {
            let _ = remove_below(&layer, OsStr::new(WORK));
        }
    }

    /// Removes everything in the layer, ignored or not.
    ///
    /// # Errors
    /// Where something cannot be removed.
    pub fn clear_layer(&self) -> anyhow::Result<()> {
        let layer = self.root.layer(&self.session)?;
        for name in [FILES, WORK] {
            remove_below(&layer, OsStr::new(name))?;
            layer.make_folder(Path::new(name))?;
        }
        Ok(())
    }
}

/// Returns where a path of a folder is.
fn place(folder: &Path, path: &[u8]) -> PathBuf {
    folder.join(OsStr::from_bytes(path))
}

/// Returns the path of a name in a folder.
fn below(folder: &[u8], name: &OsStr) -> Vec<u8> {
    if folder.is_empty() {
        return name.as_bytes().to_vec();
    }
    [folder, b"/", name.as_bytes()].concat()
}
