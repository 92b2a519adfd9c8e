//! What is remembered of a session's worktree: in `teddy/worktrees/<session>` of the git directory,
//! where no confined command can write.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::git::object::TreeId;
use crate::git::repository::Repository;
use crate::host::file::remove_below;
use crate::host::file::{Root, write_cache};

/// The folder of all records.
const RECORDS: &str = "worktrees";
/// The folder that holds the worktree.
const ROOT: &str = "root";
/// The set-up that has run in it.
const SETUP: &str = "setup";
/// The index: what is known of its files.
const INDEX: &str = "index";
/// Where the index of the session's layer would be.
const LAYER_INDEX: &str = "layer-index";
/// The set-up that has run in the layer.
const LAYER_SETUP: &str = "layer-setup";
/// The trees between which the last turn in the worktree was recorded.
const RECORDED: &str = "recorded";
/// The trees between which the last turn in the layer was recorded.
const LAYER_RECORDED: &str = "layer-recorded";
/// More bytes than this are in no note.
const MAX_NOTE: u64 = 64 * 1024;

/// The record of a session's worktree.
#[derive(Debug, Clone)]
pub(super) struct WorktreeRecord {
    /// Its folder.
    folder: PathBuf,
}

/// Returns the record of a session's worktree, be there one or not.
pub(super) fn worktree_record(repository: &Repository, session: &str) -> WorktreeRecord {
    WorktreeRecord {
        folder: repository.teddy_dir().join(RECORDS).join(session),
    }
}

/// Returns the sessions that have a record, sorted.
pub(super) fn recorded_worktrees(repository: &Repository) -> Vec<String> {
    let names = Root::open(&repository.teddy_dir().join(RECORDS)).and_then(|root| root.names());
    let names = names.unwrap_or_default().into_iter();
    names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| super::root::is_plain(name))
        .collect()
}

impl WorktreeRecord {
    /// Returns where the index is.
    pub(super) fn index(&self) -> PathBuf {
        self.folder.join(INDEX)
    }

    /// Forgets the index if something else is in its place: a pipe would be waited at.
    pub(super) fn check_index(&self) {
        let index = self.index().symlink_metadata();
        if index.is_ok_and(|metadata| !metadata.is_file())
            && let Ok(folder) = Root::open(&self.folder)
        {
            let _ = remove_below(&folder, OsStr::new(INDEX));
        }
    }

    /// Returns the folder that holds the worktree.
    pub(super) fn root(&self) -> Option<PathBuf> {
        let bytes = self.read(ROOT)?;
        Some(PathBuf::from(OsString::from_vec(bytes)))
    }

    /// Notes the folder that holds the worktree, and that it is used.
    pub(super) fn keep_root(&self, root: &Path) -> std::io::Result<()> {
        let file = self.folder.join(ROOT);
        if self.root().as_deref() == Some(root) {
            let now = rustix::fs::Timestamps {
                last_access: NOW,
                last_modification: NOW,
            };
            let flags = rustix::fs::AtFlags::empty();
            return Ok(rustix::fs::utimensat(rustix::fs::CWD, &file, &now, flags)?);
        }

        write_cache(&file, root.as_os_str().as_bytes())
    }

    /// Returns the set-up that has run in the worktree, or in the layer.
    pub(super) fn setup(&self, layered: bool) -> Option<String> {
        String::from_utf8(self.read(setup_note(layered))?).ok()
    }

    /// Notes the set-up that has run in the worktree, or in the layer.
    pub(super) fn keep_setup(&self, layered: bool, setup: &str) -> std::io::Result<()> {
        write_cache(&self.folder.join(setup_note(layered)), setup.as_bytes())
    }

    /// Returns the trees between which the last turn in the worktree, or in the layer, was
    /// recorded, until they are forgotten.
    pub(super) fn recorded(&self, layered: bool) -> Vec<TreeId> {
        let bytes = self.read(recorded_note(layered)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Notes the trees between which a turn in the worktree, or in the layer, was recorded.
    pub(super) fn keep_recorded(&self, layered: bool, trees: &[TreeId]) -> std::io::Result<()> {
        let text: String = trees.iter().map(|tree| format!("{tree}\n")).collect();
        write_cache(&self.folder.join(recorded_note(layered)), text.as_bytes())
    }

    /// Forgets these trees, once what they say has been put right.
    pub(super) fn forget_recorded(&self, layered: bool) {
        let _ = std::fs::remove_file(self.folder.join(recorded_note(layered)));
    }

    /// Returns where the layer would have an index, beside what is made on the way: it is made of
    /// what is known of the user's files for each run.
    pub(super) fn layer_index(&self) -> PathBuf {
        self.folder.join(LAYER_INDEX)
    }

    /// Removes the index of the layer that earlier versions kept.
    pub(super) fn forget_layer_index(&self) {
        let _ = std::fs::remove_file(self.layer_index());
    }

    /// Forgets what is known of the layer.
    pub(super) fn forget_layer(&self) {
        self.forget_layer_index();
        let _ = std::fs::remove_file(self.folder.join(LAYER_SETUP));
        self.forget_recorded(true);
    }

    /// Returns the file whose time says when the worktree was used.
    pub(super) fn used(&self) -> PathBuf {
        self.folder.join(ROOT)
    }

    /// Forgets what is known of the files, and which set-up has run.
    pub(super) fn forget_files(&self) {
        for name in [super::index::NOTE, SETUP, INDEX, RECORDED] {
            let _ = std::fs::remove_file(self.folder.join(name));
        }
    }

    /// Removes the record.
    pub(super) fn remove(&self) -> std::io::Result<()> {
        let (Some(folder), Some(name)) = (self.folder.parent(), self.folder.file_name()) else {
            return Ok(());
        };
        match Root::open(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            root => remove_below(&root?, name),
        }
    }

    /// Reads a note.
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        let root = Root::open(&self.folder).ok()?;
        root.read(Path::new(name), MAX_NOTE).ok()
    }
}

/// Returns the note of the set-up of a worktree, or of a layer.
fn setup_note(layered: bool) -> &'static str {
    if layered { LAYER_SETUP } else { SETUP }
}

/// Returns the note of what was recorded of a worktree, or of a layer.
fn recorded_note(layered: bool) -> &'static str {
    if layered { LAYER_RECORDED } else { RECORDED }
}

/// The present moment, for the system to fill in.
const NOW: rustix::fs::Timespec = rustix::fs::Timespec {
    tv_sec: 0,
    tv_nsec: rustix::fs::UTIME_NOW,
};
