//! TeDDy's record of a session's worktree, in `teddy/worktrees/<session>` of the git directory,
//! where confined commands cannot write.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::git::object::TreeId;
use crate::git::repository::Repository;
use crate::host::file::{Root, remove_at_path, remove_below, write_cache};

const RECORDS: &str = "worktrees";
/// Note of the directory that contains the worktree.
const ROOT: &str = "root";
const SETUP: &str = "setup";
const INDEX: &str = "index";
/// Path that serves as the layer's index; the file does not exist.
const LAYER_INDEX: &str = "layer-index";
const LAYER_SETUP: &str = "layer-setup";
/// Note of the ignored files that were copied from the workspace.
const COPIED: &str = "copied";
const MAX_COPIED: u64 = 64 << 20;
/// Note of the trees of the last turn that was recorded in the worktree.
const RECORDED: &str = "recorded";
/// Note of ignored files that the layer hides because of their content.
const LAYER_HIDDEN: &str = "layer-hidden";
const MAX_HIDDEN: u64 = 4 << 20;
/// Note of the trees of the last turn that was recorded in the layer.
const LAYER_RECORDED: &str = "layer-recorded";
/// Note of the system's boot in which the layer was last mounted.
const LAYER_BOOT: &str = "layer-boot";
const MAX_NOTE: u64 = 64 * 1024;
/// Has the object store for commands, while they run.
const VISIBLE: &str = "visible";

#[derive(Debug, Clone)]
pub(super) struct WorktreeRecord {
    dir: PathBuf,
}

/// Returns the record of a session's worktree, which need not exist.
pub(super) fn worktree_record(repository: &Repository, session: &str) -> WorktreeRecord {
    WorktreeRecord {
        dir: repository.teddy_dir().join(RECORDS).join(session),
    }
}

pub(super) fn recorded_worktrees(repository: &Repository) -> Vec<String> {
    let names = Root::open(&repository.teddy_dir().join(RECORDS)).and_then(|root| root.names());
    let names = names.unwrap_or_default().into_iter();
    names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| super::root::is_plain(name))
        .collect()
}

impl WorktreeRecord {
    pub(super) fn index(&self) -> PathBuf {
        self.dir.join(INDEX)
    }

    pub(super) fn visible(&self) -> PathBuf {
        self.dir.join(VISIBLE)
    }

    /// Removes the index if it is not a regular file: reading a pipe would block.
    pub(super) fn check_index(&self) {
        let index = self.index().symlink_metadata();
        if index.is_ok_and(|metadata| !metadata.is_file())
            && let Ok(dir) = Root::open(&self.dir)
        {
            let _ = remove_below(&dir, OsStr::new(INDEX));
        }
    }

    /// Returns the directory that contains the worktree.
    pub(super) fn root(&self) -> Option<PathBuf> {
        let bytes = self.read(ROOT)?;
        Some(PathBuf::from(OsString::from_vec(bytes)))
    }

    /// Records the directory that contains the worktree, and the time of use.
    pub(super) fn keep_root(&self, root: &Path) -> std::io::Result<()> {
        let file = self.dir.join(ROOT);
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

    pub(super) fn setup(&self, layered: bool) -> Option<String> {
        String::from_utf8(self.read(setup_note(layered))?).ok()
    }

    pub(super) fn keep_setup(&self, layered: bool, setup: &str) -> std::io::Result<()> {
        write_cache(&self.dir.join(setup_note(layered)), setup.as_bytes())
    }

    /// Returns the recorded trees of the last turn.
    pub(super) fn recorded(&self, layered: bool) -> Vec<TreeId> {
        let bytes = self.read(recorded_note(layered)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    pub(super) fn keep_recorded(&self, layered: bool, trees: &[TreeId]) -> std::io::Result<()> {
        let text: String = trees.iter().map(|tree| format!("{tree}\n")).collect();
        write_cache(&self.dir.join(recorded_note(layered)), text.as_bytes())
    }

    /// Returns the ignored files that the layer hides because of their content.
    pub(super) fn hidden(&self) -> BTreeSet<Vec<u8>> {
        self.read_paths(LAYER_HIDDEN, MAX_HIDDEN)
    }

    /// Adds to these files. They are forgotten with the layer.
    pub(super) fn keep_hidden(&self, paths: &[Vec<u8>]) -> std::io::Result<()> {
        let mut all = self.hidden();
        let count = all.len();
        all.extend(paths.iter().cloned());
        if all.len() == count {
            return Ok(());
        }
        self.write_paths(LAYER_HIDDEN, all)
    }

    /// Returns the ignored files that were copied from the workspace.
    pub(super) fn copied(&self) -> BTreeSet<Vec<u8>> {
        self.read_paths(COPIED, MAX_COPIED)
    }

    pub(super) fn keep_copied(&self, paths: &BTreeSet<Vec<u8>>) -> std::io::Result<()> {
        match self.copied() == *paths {
            true => Ok(()),
            false => self.write_paths(COPIED, paths.clone()),
        }
    }

    /// Removes the recorded trees, once their files are handled.
    pub(super) fn forget_recorded(&self, layered: bool) {
        let _ = std::fs::remove_file(self.dir.join(recorded_note(layered)));
    }

    /// Returns the boot in which the layer was last mounted.
    pub(super) fn boot(&self) -> Option<String> {
        String::from_utf8(self.read(LAYER_BOOT)?).ok()
    }

    pub(super) fn keep_boot(&self, boot: Option<String>) -> std::io::Result<()> {
        match boot.filter(|boot| self.boot().as_ref() != Some(boot)) {
            Some(boot) => write_cache(&self.dir.join(LAYER_BOOT), boot.as_bytes()),
            None => Ok(()),
        }
    }

    /// Returns the path that serves as the layer's index. The index is generated for each run.
    pub(super) fn layer_index(&self) -> PathBuf {
        self.dir.join(LAYER_INDEX)
    }

    pub(super) fn forget_layer(&self) {
        let _ = std::fs::remove_file(self.dir.join(LAYER_SETUP));
        self.forget_recorded(true);
    }

    /// Returns the file whose mtime is the time of the last use.
    pub(super) fn used(&self) -> PathBuf {
        self.dir.join(ROOT)
    }

    pub(super) fn forget_files(&self) {
        for name in [super::index::TREE_NOTE, SETUP, INDEX, COPIED, RECORDED] {
            let _ = std::fs::remove_file(self.dir.join(name));
        }
    }

    pub(super) fn remove(&self) -> std::io::Result<()> {
        remove_at_path(&self.dir)
    }

    fn read_paths(&self, name: &str, max: u64) -> BTreeSet<Vec<u8>> {
        let bytes = Root::open(&self.dir).and_then(|dir| dir.read(Path::new(name), max));
        let bytes = bytes.unwrap_or_default();
        let paths = bytes
            .split(|&byte| byte == 0)
            .filter(|path| !path.is_empty());
        paths.map(<[u8]>::to_vec).collect()
    }

    fn write_paths(&self, name: &str, paths: BTreeSet<Vec<u8>>) -> std::io::Result<()> {
        let paths: Vec<Vec<u8>> = paths.into_iter().collect();
        write_cache(&self.dir.join(name), &paths.join(&0))
    }

    fn read(&self, name: &str) -> Option<Vec<u8>> {
        let root = Root::open(&self.dir).ok()?;
        root.read(Path::new(name), MAX_NOTE).ok()
    }
}

fn setup_note(layered: bool) -> &'static str {
    if layered { LAYER_SETUP } else { SETUP }
}

fn recorded_note(layered: bool) -> &'static str {
    if layered { LAYER_RECORDED } else { RECORDED }
}

/// Tells the kernel to set the current time.
const NOW: rustix::fs::Timespec = rustix::fs::Timespec {
    tv_sec: 0,
    tv_nsec: rustix::fs::UTIME_NOW,
};
