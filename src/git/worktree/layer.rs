//! The overlay layer of a session: the changes that its commands made on top of the user's files.
//!
//! Only ignored files, such as build output, stay in the layer between turns. All other changes are
//! recorded in a turn and come back from the lower directory once they are applied there. Confined
//! commands write to the layer only through the overlay. Its contents are untrusted: they determine
//! a plan's result and nothing else.

mod pinning;
mod result;
mod stub;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use gix::index::entry::Mode;
use rustix::fs::{AtFlags, CWD, FileType};

pub use pinning::{open_dirs, pin, switch_view};
pub use result::{ChangedIgnored, LayerScan};

use super::root::{self, GIT, WorktreeRoot};
use super::visible::LFS;
use super::{LowerDir, SessionWorktree, record};
use crate::git::ignore::{LazyRules, TextRules};
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::paths;
use crate::git::repository::Repository;
use crate::git::snapshot::limits::SnapshotLimits;
use crate::git::snapshot::secrets::FoundSecrets;
use crate::git::worktree::index;
use crate::host::file::{Root, can_sync_whole, make_writable, remove_below, sync_whole};
use crate::host::interrupt;
use crate::host::machine;
use crate::host::overlay::{self, clear_opaque, is_opaque};
use crate::host::sandbox::OverlayDirs;
use crate::text::path::{FOREIGN_CONTROL_DIRS, is_foreign_control_dir};

/// The overlay's upper directory.
const FILES: &str = "files";

/// The overlay's work directory.
const WORK: &str = "work";

/// The user's files, the lower directory of the overlay.
pub struct LowerFiles<'a> {
    /// Tree of a snapshot of the files.
    pub tree: TreeId,
    /// Tree from which commands start: the same, or an earlier state ([`switch_view`]).
    pub start: TreeId,
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
    root::check_session(session)?;
    let root = WorktreeRoot::make(root, &user.common_dir())?;
    let path = root.worktree_path(session);
    let during = || format!("the layer of session `{session}` at `{}`", path.display());

    let record = record::worktree_record(user, session);
    super::enter(user, &root, &record, session, during)?;
    let layer = root.layer(session).with_context(during)?;
    let fresh = layer.kind(Path::new(FILES))?.is_none();
    // A run removes it at its end.
    let was_cut = layer.kind(Path::new(WORK))?.is_some() && record.boot() != machine::boot_id();
    layer.make_dir(Path::new(FILES)).with_context(during)?;
    let files = root.layer_path(session).join(FILES);
    let index = index::for_layer(user, lower.tree, lower.start, lower.index)?;
    let mut worktree = SessionWorktree {
        repository: user.with_worktree(&files, &record.layer_index())?,
        fresh,
        session: session.to_owned(),
        // As the user's programs name it: environments and caches have absolute paths.
        path: user.workdir().canonicalize().with_context(during)?,
        files,
        lower: Some(LowerDir {
            files: user.workdir().to_owned(),
            tree: lower.tree,
            store_at: Some(path.clone()),
            index_bytes: index::encode(&index)?,
            index: Arc::new(index),
        }),
        linked: Vec::new(),
        module_dirs: Vec::new(),
        record,
        root,
    };

    worktree.keep_record()?;
    if was_cut {
        // The system stopped while the overlay was mounted. Files in it can be torn, even if a
        // command flushed them.
        worktree.replace_layer().with_context(during)?;
    }
    prune_or_replace(&mut worktree, user, lower).with_context(during)?;
    Ok(worktree)
}

/// A file that resists removal must not block the session. Only ignored files are lost then, and
/// the next command makes them again.
fn prune_or_replace(
    worktree: &mut SessionWorktree,
    user: &Repository,
    lower: &LowerFiles<'_>,
) -> anyhow::Result<()> {
    let Err(error) = worktree.prune_layer(user, lower) else {
        return Ok(());
    };
    if interrupt::requested() || !error.chain().any(|cause| cause.is::<std::io::Error>()) {
        return Err(error);
    }
    worktree.replace_layer().context(error)
}

impl SessionWorktree {
    /// Prepares a mount of the overlay.
    pub fn overlay(&self, user: &Repository) -> anyhow::Result<OverlayDirs> {
        // overlayfs requires an empty work directory.
        let layer = self.root.layer(&self.session)?;
        remove_below(&layer, OsStr::new(WORK))?;
        self.record.keep_boot(machine::boot_id())?;
        layer.make_dir(Path::new(WORK))?;
        let lower = user.workdir();
        Ok(OverlayDirs {
            lower: lower
                .canonicalize()
                .with_context(|| format!("cannot use `{}`", lower.display()))?,
            upper: self.files.clone(),
            work: self.files.with_file_name(WORK),
            at: self.path.clone(),
            shared: self.shared_dirs(user),
        })
    }

    /// Returns whether the overlay is mounted over the checkout itself.
    pub fn covers_checkout(&self) -> bool {
        self.store_at().is_some()
    }

    pub(super) fn store_at(&self) -> Option<&Path> {
        self.lower.as_ref()?.store_at.as_deref()
    }

    /// Mounts the overlay at a path of its own if the store for commands has links into the user's
    /// git directory, which would be covered. Returns whether the path changes.
    pub fn leave_checkout(&mut self, user: &Repository) -> bool {
        let needs_users = !self.record_links().is_empty() || self.borrows_inside(user);
        let Some(lower) = self.lower.as_mut().filter(|_| needs_users) else {
            return false;
        };
        match lower.store_at.take() {
            Some(path) => {
                self.path = path;
                true
            }
            None => false,
        }
    }

    fn shared_dirs(&self, user: &Repository) -> Vec<(PathBuf, PathBuf)> {
        let Some(store_at) = self.store_at() else {
            return Vec::new();
        };
        let store = self.record.visible();
        let lfs = user.common_dir().join(LFS);
        let mut shared = vec![(store, store_at.to_owned())];
        if lfs.is_dir() {
            shared.push((lfs, store_at.join(LFS)));
        }
        shared
    }

    /// Makes the layer's git directory opaque, so it hides the user's.
    pub fn hide_users_git_dir(&self) -> anyhow::Result<()> {
        let git = self.files.join(GIT);
        overlay::set_opaque(&git).with_context(|| format!("marking `{}`", git.display()))
    }

    /// Makes the control directories of other version control systems opaque and empty, if the tree
    /// has none of their files: they have the user's keys to other servers, and objects that no ref
    /// of git reaches. Returns their names.
    pub fn hide_foreign_control_dirs(
        &self,
        user: &Repository,
        tree: TreeId,
    ) -> anyhow::Result<Vec<&'static str>> {
        let lower = Root::open(user.workdir())?;
        let top = self.top()?;
        let mut hidden = Vec::new();
        for name in FOREIGN_CONTROL_DIRS {
            let path = Path::new(name);
            let is_there = lower.kind(path)?.is_some();
            if is_there && user.entry(tree, name.as_bytes())?.is_none() {
                top.make_dir(path)?;
                let dir = self.files.join(name);
                overlay::set_opaque(&dir)
                    .with_context(|| format!("marking `{}`", dir.display()))?;
                hidden.push(name);
            }
        }
        Ok(hidden)
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
        prune_files(user, lower, &recorded, &hidden, &self.files)?;
        self.record.forget_recorded(true);
        Ok(())
    }

    pub fn remove_layer(&self) -> anyhow::Result<()> {
        self.record.forget_layer();
        self.root.remove_layer(&self.session)
    }

    /// Flushes the file system of the layer, whose overlay does not flush anything itself.
    pub fn flush_layer(&self) -> anyhow::Result<()> {
        let flushed = sync_whole(&self.files);
        if !flushed.with_context(|| format!("flushing `{}`", self.files.display()))? {
            // All file systems. Reports no errors.
            rustix::fs::sync();
        }
        Ok(())
    }

    /// Flushes the layer if flushing the objects of a turn does not include it.
    pub fn flush_layer_separately(&self, user: &Repository) -> anyhow::Result<()> {
        let device = |path: &Path| Ok::<_, std::io::Error>(path.metadata()?.dev());
        let objects = user.gix.objects.store_ref().path();
        if self.is_layered() && (device(&self.files)? != device(objects)? || !can_sync_whole()) {
            self.flush_layer()?;
        }
        Ok(())
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
        layer.make_dir(Path::new(FILES))?;
        self.record.forget_layer();
        self.record.forget_recorded(true);
        self.fresh = true;
        self.keep_record()
    }

    /// Removes the overlay's work directory after the unmount.
    pub fn remove_work(&self) {
        // The kernel leaves a directory without permissions in it, on which `find` fails.
        // After an error, leftovers are removed before the next mount.
        if let Ok(layer) = self.root.layer(&self.session) {
            let _ = remove_below(&layer, OsStr::new(WORK));
        }
    }

    pub fn clear_layer(&self) -> anyhow::Result<()> {
        let layer = self.root.layer(&self.session)?;
        remove_below(&layer, OsStr::new(FILES))?;
        layer.make_dir(Path::new(FILES))?;
        Ok(())
    }
}

fn path_in(dir: &Path, path: &[u8]) -> PathBuf {
    dir.join(OsStr::from_bytes(path))
}

// Reads the contents of an overlay layer as the kernel writes it: files, whiteouts and opaque
// directories.

/// A longer path cannot be opened by name.
const MAX_PATH: usize = 4000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LayerEntry {
    Dir {
        /// Whether it hides the directory below.
        opaque: bool,
    },
    /// A file, symlink or special file.
    Leaf,
    /// A whiteout: the file below is deleted.
    Whiteout,
}

struct LayerDir {
    /// Empty for the top.
    path: Vec<u8>,
    names: Vec<(OsString, LayerEntry)>,
}

impl LayerDir {
    /// Paths of its names, in the same order.
    fn paths(&self) -> Vec<Vec<u8>> {
        let names = self.names.iter();
        names
            .map(|(name, _)| paths::join(&self.path, name.as_bytes()))
            .collect()
    }
}

/// Lists a directory of a layer; `None` if it is unreadable or too deep. What a command made
/// unreadable or read-only becomes readable and removable, if the parent directory was listed
/// before: git records no such permissions, and they must not block the next turn.
fn list_layer_dir(top: &Root, files: &Path, path: &[u8]) -> Option<LayerDir> {
    if path.len() + files.as_os_str().len() > MAX_PATH {
        return None;
    }

    let dir = top.open_dir(Path::new(OsStr::from_bytes(path))).ok()?;
    let names = dir.names().ok()?.into_iter();
    let is_control = |name: &OsStr| name == GIT || is_foreign_control_dir(name.as_bytes());
    let names = names.filter(|name| !path.is_empty() || !is_control(name));
    let entries = names.filter_map(|name| {
        make_writable(&dir, &name);
        let entry = read_layer_entry(files, &paths::join(path, name.as_bytes()))?;
        Some((name, entry))
    });

    Some(LayerDir {
        names: entries.collect(),
        path: path.to_vec(),
    })
}

fn is_whiteout(files: &Path, path: &[u8]) -> bool {
    read_layer_entry(files, path) == Some(LayerEntry::Whiteout)
}

fn read_layer_entry(files: &Path, path: &[u8]) -> Option<LayerEntry> {
    let at = path_in(files, path);
    let stat = rustix::fs::statat(CWD, &at, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => LayerEntry::Dir {
            opaque: is_opaque(&at),
        },
        FileType::CharacterDevice if stat.st_rdev == 0 => LayerEntry::Whiteout,
        _ => LayerEntry::Leaf,
    })
}

/// Hides the secrets among `found` in a mounted view of the user's files: all that are not in the
/// tree, except those that `copy` lists in the syntax of `.gitignore`.
pub fn hide_secrets(
    user: &Repository,
    lower: &LowerFiles<'_>,
    merged: &Root,
    secrets: FoundSecrets,
    copy: &[String],
) -> anyhow::Result<()> {
    let mut hidden = [secrets.by_name, secrets.keyed].concat();
    let explicit = TextRules::parse(copy.join("\n").as_bytes());
    hidden.retain(|path| !explicit.excludes(path));

    let paths: BTreeSet<&[u8]> = hidden.iter().map(Vec::as_slice).collect();
    let tracked = user.entries_at(lower.tree, &paths)?;
    for path in hidden
        .iter()
        .filter(|path| !tracked.contains_key(path.as_slice()))
    {
        let at = Path::new(OsStr::from_bytes(path));
        // Skip files that are hidden already or on another file system.
        if let (Some(dir), Some(name)) = (at.parent(), at.file_name())
            && merged.kind(at).is_ok_and(|kind| kind.is_some())
        {
            // In the view, a removal only adds a whiteout to the layer.
            remove_below(&merged.open_dir(dir)?, name)?;
        }
    }

    Ok(())
}

// Removes from a layer what must not stay in it between turns.

/// Maximum number of names to read in a search for changed ignored files. A large build directory must
/// not delay the turn.
const MAX_IGNORED: usize = 2_000;

/// Removes everything that git does not ignore, and the whiteouts of secrets: names of secrets and
/// `hidden` paths. The next run searches for secrets again. Files of the `recorded` trees are removed
/// even if git ignores them by now.
fn prune_files(
    user: &Repository,
    lower: &LowerFiles<'_>,
    recorded: &[TreeId],
    hidden: &BTreeSet<Vec<u8>>,
    files: &Path,
) -> anyhow::Result<()> {
    let top = &Root::open_strictly(files)?;
    for name in [GIT].into_iter().chain(FOREIGN_CONTROL_DIRS) {
        remove_below(top, OsStr::new(name))?;
    }
    let mut rules = LazyRules::new(user);
    let (mut dirs, mut entered, mut ignored_dirs) = (vec![Vec::new()], Vec::new(), Vec::new());
    while let Some(path) = dirs.pop() {
        let root = top.open_dir(Path::new(OsStr::from_bytes(&path)))?;
        let Some(dir) = list_layer_dir(top, files, &path) else {
            // Unreadable or too deep, so no command can use it.
            remove_contents(&root)?;
            continue;
        };

        let paths = dir.paths();
        let path_set: BTreeSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
        // Trees that a power cut damaged are skipped: nothing in the layer is precious.
        let earlier = recorded
            .iter()
            .map(|tree| user.entries_at(*tree, &path_set));
        let mut listings: Vec<_> = earlier.flatten().collect();
        listings.push(user.entries_at(lower.tree, &path_set)?);
        for ((name, entry), path) in dir.names.iter().zip(&paths) {
            let is_dir = matches!(entry, LayerEntry::Dir { .. });
            let tracked = listings
                .iter()
                .find_map(|listing| listing.get(path.as_slice()));
            let mode = if is_dir { Mode::DIR } else { Mode::FILE };
            let ignored = rules.ignores(path, mode)?;
            match prune_action(*entry, tracked, ignored, || {
                hidden.contains(path) || lower.limits.is_secret(path)
            }) {
                // The user's later version wins.
                PruneAction::Retained if !is_dir && is_outdated(user, files, path) => {
                    remove_below(&root, name)?;
                }
                PruneAction::Retained if is_dir => ignored_dirs.push(path.clone()),
                PruneAction::Retained => {}
                PruneAction::Removed => remove_below(&root, name)?,
                PruneAction::Entered => dirs.push(path.clone()),
            }
        }
        entered.push(path);
    }

    remove_empty_dirs(files, &entered);
    remove_outdated(user, top, files, ignored_dirs)
}

/// `entered` has each directory before those in it. One that is not empty becomes transparent
/// again.
fn remove_empty_dirs(files: &Path, entered: &[Vec<u8>]) {
    for path in entered.iter().rev().filter(|path| !path.is_empty()) {
        let at = path_in(files, path);
        if std::fs::remove_dir(&at).is_err() {
            clear_opaque(&at);
        }
    }
}

/// Removes files in ignored directories that the user has changed since a command did. A directory
/// that a command has replaced as a whole stays.
fn remove_outdated(
    user: &Repository,
    top: &Root,
    files: &Path,
    mut dirs: Vec<Vec<u8>>,
) -> anyhow::Result<()> {
    let mut seen = 0;
    while let Some(path) = dirs.pop() {
        let Some(dir) = list_layer_dir(top, files, &path) else {
            continue;
        };
        let root = top.open_dir(Path::new(OsStr::from_bytes(&path)))?;
        for (name, entry) in &dir.names {
            seen += 1;
            if seen > MAX_IGNORED {
                return Ok(());
            }
            let path = paths::join(&path, name.as_bytes());
            match entry {
                LayerEntry::Dir { opaque: false } => dirs.push(path),
                LayerEntry::Dir { opaque: true } => {}
                _ if is_outdated(user, files, &path) => remove_below(&root, name)?,
                _ => {}
            }
        }
    }

    Ok(())
}

/// Returns whether the user has changed a file since a command wrote or deleted it in the layer.
fn is_outdated(user: &Repository, files: &Path, path: &[u8]) -> bool {
    let lower = path_in(user.workdir(), path).symlink_metadata();
    let upper = path_in(files, path).symlink_metadata();
    lower.is_ok_and(|lower| {
        // Package managers set an old mtime.
        let changed = (lower.ctime(), lower.ctime_nsec());
        upper.is_ok_and(|upper| changed > (upper.ctime(), upper.ctime_nsec()))
    })
}

enum PruneAction {
    /// Keep it, recursively.
    Retained,
    Removed,
    /// Descend into the directory.
    Entered,
}

fn prune_action(
    entry: LayerEntry,
    tracked: Option<&TreeEntry>,
    ignored: bool,
    is_secret: impl Fn() -> bool,
) -> PruneAction {
    let tracked = tracked.map(|entry| entry.mode);
    match (entry, tracked) {
        // A nested repository: no change in it was recorded.
        (_, Some(EntryMode::Commit)) => PruneAction::Removed,
        (LayerEntry::Dir { .. }, Some(EntryMode::Tree)) => PruneAction::Entered,
        (LayerEntry::Dir { .. }, _) if ignored => PruneAction::Retained,
        (LayerEntry::Dir { .. }, _) => PruneAction::Entered,
        (_, Some(_)) => PruneAction::Removed,
        (LayerEntry::Whiteout, None) if is_secret() => PruneAction::Removed,
        (_, None) if ignored => PruneAction::Retained,
        (_, None) => PruneAction::Removed,
    }
}

fn remove_contents(dir: &Root) -> anyhow::Result<()> {
    for name in dir.names().unwrap_or_default() {
        remove_below(dir, &name)?;
    }
    Ok(())
}
