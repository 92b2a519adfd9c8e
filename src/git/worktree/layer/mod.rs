//! The overlay layer of a session: the changes that its commands made on top of the user's files.
//!
//! Only ignored files, such as build output, stay in the layer between turns. All other changes are
//! recorded in a turn and come back from the lower directory once they are applied there. Confined
//! commands write to the layer only through the overlay. Its contents are untrusted: they determine
//! a plan's result and nothing else.

mod changes;
pub(super) mod index;
mod pinning;
mod prune;
mod result;
mod secrets;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use super::root::{GIT, WorktreeRoot};
use super::{LowerDir, SessionWorktree, is_plain_session, legacy, record};
use crate::git::object::TreeId;
use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::host::file::{make_writable, remove_below};
use crate::host::sandbox::OverlayDirs;
use crate::host::{interrupt, overlay};
use index::LayerIndex;
pub use pinning::{open_dirs, pin};
pub use result::LayerScan;
pub use secrets::hide_secrets;

/// The overlay's upper directory.
const FILES: &str = "files";
/// The overlay's work directory.
const WORK: &str = "work";

/// The user's files, the lower directory of the overlay.
pub struct LowerFiles<'a> {
    /// Tree of a snapshot of the files.
    pub tree: TreeId,
    /// The private index of that snapshot.
    pub index: &'a Path,
    /// Defines which names are secrets.
    pub limits: &'a SnapshotLimits,
}

/// Returns the session's layer, creating it if necessary. It then contains only ignored files, and
/// no git directory yet. The caller holds the session's lock.
pub fn session_layer(
    user: &Repository,
    root: &Path,
    session: &str,
    lower: &LowerFiles<'_>,
) -> anyhow::Result<SessionWorktree> {
    is_plain_session(session)?;
    let root = WorktreeRoot::make(root, &user.common_dir())?;
    let path = root.worktree_path(session);
    let during = || format!("the layer of session `{session}` at `{}`", path.display());

    legacy::adopt(user, &root, session).with_context(during)?;
    let record = record::worktree_record(user, session);
    super::remove_unknown(&root, &record, session).with_context(during)?;
    super::prepare_path(&root, session)?;
    root.clear(session).with_context(during)?;
    root.remove_git_dir(session).with_context(during)?;
    root.worktree(session).with_context(during)?;
    let layer = root.layer(session).with_context(during)?;
    // overlayfs requires an empty work directory.
    remove_below(&layer, OsStr::new(WORK)).with_context(during)?;
    layer.make_dir(Path::new(WORK)).with_context(during)?;

    let fresh = layer.kind(Path::new(FILES))?.is_none();
    layer.make_dir(Path::new(FILES)).with_context(during)?;
    let files = root.layer_path(session).join(FILES);
    let mut worktree = SessionWorktree {
        repository: user.with_worktree(&files, &record.layer_index())?,
        fresh,
        session: session.to_owned(),
        path: path.clone(),
        files,
        lower: Some(LowerDir {
            files: user.workdir().to_owned(),
            index: Arc::new(LayerIndex::of(user, lower)?),
        }),
        record,
        root,
    };

    worktree.keep_record()?;
    worktree.record.forget_layer_index();
    if let Err(error) = worktree.prune_layer(user, lower) {
        if interrupt::requested() || !error.chain().any(|cause| cause.is::<std::io::Error>()) {
            return Err(error).with_context(during);
        }
        // A file that resists removal must not block the session. Only ignored files are lost, and
        // the next command makes them again.
        worktree
            .replace_layer()
            .context(error)
            .with_context(during)?;
    }
    Ok(worktree)
}

impl SessionWorktree {
    /// Returns the directories of the overlay mount.
    pub fn overlay(&self, user: &Repository) -> anyhow::Result<OverlayDirs> {
        let lower = user.workdir();
        Ok(OverlayDirs {
            lower: lower
                .canonicalize()
                .with_context(|| format!("cannot use `{}`", lower.display()))?,
            upper: self.files.clone(),
            work: self.files.with_file_name(WORK),
            at: self.path.clone(),
        })
    }

    /// Makes the layer's git directory opaque, so it hides the user's.
    pub fn hide_users_git_dir(&self) -> anyhow::Result<()> {
        let git = self.files.join(GIT);
        overlay::set_opaque(&git).with_context(|| format!("marking `{}`", git.display()))
    }

    /// Notes files that are about to be hidden because of their content, so that a sweep shows them
    /// again: by their names, they could be files that a command has removed.
    pub fn keep_hidden(&self, paths: &[Vec<u8>]) -> std::io::Result<()> {
        self.record.keep_hidden(paths)
    }

    /// Removes everything except ignored files, for example after a set-up.
    pub fn prune_layer(&self, user: &Repository, lower: &LowerFiles<'_>) -> anyhow::Result<()> {
        self.open_up_files()?;
        let recorded = self.recorded(lower.tree);
        let hidden = self.record.hidden();
        prune::prune_files(user, lower, &recorded, &hidden, &self.files)?;
        self.record.forget_recorded(true);
        Ok(())
    }

    /// Removes the layer.
    pub fn remove_layer(&self) -> anyhow::Result<()> {
        self.record.forget_layer();
        self.root.remove_layer(&self.session)
    }

    /// Restores the owner's permissions on the upper directory, which a command can change.
    fn open_up_files(&self) -> anyhow::Result<()> {
        make_writable(&self.root.layer(&self.session)?, OsStr::new(FILES));
        Ok(())
    }

    /// Moves the layer away, removes it as far as possible, and creates an empty one.
    fn replace_layer(&mut self) -> anyhow::Result<()> {
        self.root.move_layer_away(&self.session)?;
        let layer = self.root.layer(&self.session)?;
        for name in [WORK, FILES] {
            layer.make_dir(Path::new(name))?;
        }
        self.record.forget_layer();
        self.record.forget_recorded(true);
        self.fresh = true;
        self.keep_record()
    }

    /// Removes the overlay's work directory after the unmount.
    pub fn remove_work(&self) {
        // Leftovers are removed before the next mount.
        if let Ok(layer) = self.root.layer(&self.session) {
            let _ = remove_below(&layer, OsStr::new(WORK));
        }
    }

    /// Removes everything in the layer, including ignored files.
    pub fn clear_layer(&self) -> anyhow::Result<()> {
        let layer = self.root.layer(&self.session)?;
        for name in [FILES, WORK] {
            remove_below(&layer, OsStr::new(name))?;
            layer.make_dir(Path::new(name))?;
        }
        Ok(())
    }
}

fn path_in(dir: &Path, path: &[u8]) -> PathBuf {
    dir.join(OsStr::from_bytes(path))
}

fn child_path(dir: &[u8], name: &OsStr) -> Vec<u8> {
    if dir.is_empty() {
        return name.as_bytes().to_vec();
    }
    [dir, b"/", name.as_bytes()].concat()
}
