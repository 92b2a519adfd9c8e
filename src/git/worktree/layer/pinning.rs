//! Prepares the mounted view of the user's files, so that a plan has the same result in it as in a
//! checkout.
//!
//! The view shows the user's current files and permissions. If a plan changes some that differ from
//! its snapshot, an action could fail halfway, and the first half would be published. In a
//! checkout, publishing finds the difference and applies nothing.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{self, Seek as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::Context as _;

use crate::git::diff;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::path_handle::{IfMissing, NameState, PathHandle, Top, WalkResult};
use crate::git::paths::parent_dirs;
use crate::git::repository::Repository;
use crate::git::sparse::Hidden;
use crate::git::version::{self, TreeVersion};
use crate::host::file::{Root, make_writable};

/// Makes those of the directories writable in the view that are in the tree.
pub fn open_dirs(
    user: &Repository,
    tree: TreeId,
    root: &Root,
    read_only: &[Vec<u8>],
) -> anyhow::Result<()> {
    // Permissions do not apply to root.
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let paths: BTreeSet<&[u8]> = read_only.iter().map(Vec::as_slice).collect();
    // Parents come first.
    for (path, entry) in user.entries_at(tree, &paths)? {
        if entry.mode == EntryMode::Tree {
            open_dir(root, path);
        }
    }
    Ok(())
}

/// Ignores errors: a directory of another user stays as it is, as for the user.
fn open_dir(root: &Root, path: &[u8]) {
    let path = Path::new(OsStr::from_bytes(path));
    if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
        && let Ok(parent) = root.open_dir(parent)
    {
        make_writable(&parent, name);
    }
}

/// Gives the view the tree's versions of files, in directories that are writable. What the user
/// saves from then on does not change them in the view.
pub fn pin(
    user: &Repository,
    tree: TreeId,
    root: &Root,
    view_path: &Path,
    paths: &[Vec<u8>],
) -> anyhow::Result<()> {
    for path in paths {
        let dirs: Vec<_> = parent_dirs(path).collect();
        dirs.iter().rev().for_each(|dir| open_dir(root, dir));
    }

    let hidden = Hidden::of(user)?;
    let asked: BTreeSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
    let mut files = user.entries_at(tree, &asked)?;
    files.retain(|path, entry| entry.is_file() && !hidden.has(path));
    if files.is_empty() {
        return Ok(());
    }

    let top = Top::open(view_path)?;
    let mut pins = Pins {
        user,
        version: version::tree_version(user, tree, files.keys().copied())?,
    };
    for (path, entry) in &files {
        if let WalkResult::Handle(handle) = top.walk(path, IfMissing::Make)? {
            let during = || format!("preparing `{}`", String::from_utf8_lossy(path));
            pins.pin(&handle, path, entry).with_context(during)?;
        }
    }
    Ok(())
}

/// Switches a view of files that have the tree `from` to the tree `to`. Ignored files stay, and so do
/// nested repositories.
pub fn switch_view(
    user: &Repository,
    from: TreeId,
    to: TreeId,
    view_path: &Path,
) -> anyhow::Result<()> {
    let hidden = Hidden::of(user)?;
    let is_link = |entry: &TreeEntry| entry.mode == EntryMode::Commit;
    let mut changes = diff::changes(user, from, to)?;
    changes.retain(|change| {
        let mut entries = change.old.iter().chain(&change.new);
        !entries.any(is_link) && !hidden.has(&change.path)
    });

    let top = Top::open(view_path)?;
    let during = |path: &[u8]| format!("preparing `{}`", String::from_utf8_lossy(path));
    for change in changes.iter().filter(|change| change.old.is_some()) {
        if let WalkResult::Handle(handle) = top.walk(&change.path, IfMissing::Stop)? {
            handle.remove_all().with_context(|| during(&change.path))?;
        }
        if change.new.is_none() {
            // Fails for a directory in one that the user cannot change.
            let _ = top.remove_empty_dirs(parent_dirs(&change.path));
        }
    }

    let new: Vec<_> = changes
        .iter()
        .filter_map(|change| Some((change.path.as_slice(), change.new.as_ref()?)))
        .collect();
    let mut version = version::tree_version(user, to, new.iter().map(|(path, _)| *path))?;
    for (path, entry) in new {
        if let WalkResult::Handle(handle) = top.walk(path, IfMissing::Make)? {
            handle.remove_all().with_context(|| during(path))?;
            let contents = version.contents(path, entry, None)?;
            handle
                .create(&contents, false)
                .with_context(|| during(path))?;
        }
    }
    Ok(())
}

struct Pins<'a> {
    user: &'a Repository,
    version: TreeVersion<'a>,
}

impl Pins<'_> {
    fn pin(&mut self, handle: &PathHandle, path: &[u8], entry: &TreeEntry) -> anyhow::Result<()> {
        let state = handle.find()?;
        let is_current = self.is_current(&state, path, entry)?;
        // In the view, this adds a whiteout to the layer. The user's file stays.
        handle.remove_all()?;
        if is_current && let NameState::File { file, .. } = &state {
            // Keeps the time, by which build tools recognize a file.
            let mut file = file.try_clone()?;
            file.seek(io::SeekFrom::Start(0))?;
            handle.copy_from(&mut file)?;
            // The user can have saved it while it was copied.
            if self.is_current(&handle.find()?, path, entry)? {
                return Ok(());
            }
            handle.remove_all()?;
        }

        let contents = self.version.contents(path, entry, None)?;
        handle.create(&contents, false)?;
        Ok(())
    }

    fn is_current(
        &mut self,
        state: &NameState,
        path: &[u8],
        entry: &TreeEntry,
    ) -> anyhow::Result<bool> {
        let mark = version::read_state(self.user, state)?;
        self.version.is(path, Some(entry), &mark)
    }
}
