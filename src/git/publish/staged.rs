//! Staged files: decides what happens to each path, and writes new versions under temporary names.
//!
//! All paths are classified before the first write: already applied, applicable, or a conflict. A
//! new version is then staged next to its destination, and stays staged until it is swapped in or
//! discarded. A path that changed since it was classified becomes a conflict and keeps its file.
//!
//! Limitation: without `RENAME_EXCHANGE`, a save between the final comparison and the rename is lost
//! (`TemporaryFiles::replace`).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{self, ErrorKind};

use anyhow::Context as _;
use rustix::fs::RawMode;

use super::displaced::{
    self, Conflict, Displaced, KeptAs, MOST_OPEN, TemporaryFiles, cannot_write,
};
use crate::git::diff::TreeChange;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::path_handle::{IfMissing, OnDisk, PathHandle, Trace, WalkResult};
use crate::git::paths::{is_valid_link_name, parent_dirs, split};
use crate::git::version::{self, DiskVersion, Mark, TreeVersion};
use crate::host::fault;
use crate::text::transplant::keeps_own_lines;

/// Options of a publication.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// Part of each temporary name; letters, digits and `-` only.
    pub operation: String,
    /// What to do if a path differs from the old tree.
    pub overlap: OverlapRule,
    /// Whether a change that does not fit the bytes on disk replaces them; they are kept in
    /// `undo/replaced`.
    pub overwrite: bool,
}

/// What to do about a conflict: a path that differs from both the old and the new tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverlapRule {
    /// Write no file at all.
    #[default]
    Stop,
    /// Skip the path and write the others; used to finish an interrupted publication.
    PassOver,
}

/// A change that can be applied.
#[derive(Debug)]
pub(super) struct PublishStep {
    pub(super) change: TreeChange,
    /// Content on disk, which equals the old tree's.
    old_mark: Mark,
    /// Metadata of the file when its content was read; a cheap check that it did not change since.
    trace: Option<Trace>,
    pub(super) permissions: Option<RawMode>,
    onto: Onto,
}

pub(super) enum PathVerdict {
    /// Already applied, or a submodule on both sides.
    Nothing,
    Proceed(Box<PublishStep>),
    Conflict(Conflict),
}

/// A new version, written and flushed next to its destination under a temporary name.
pub(super) struct Staged {
    new: TreeEntry,
    trace: Option<Trace>,
    /// What the swap displaces.
    pub(super) file: Displaced,
}

pub(super) enum Staging {
    Ready(Box<Staged>),
    /// The directory cannot be created until a deleted file frees its name.
    Deferred(Box<PublishStep>),
    Conflict(Conflict),
}

/// The part of a publication that one thread does.
pub(super) struct PartPublisher<'repo> {
    pub(super) files: TemporaryFiles<'repo>,
    guard: &'repo Guard,
    /// Converts the old tree's entries to their form on disk, with filters applied.
    old: TreeVersion<'repo>,
    new: TreeVersion<'repo>,
    collisions: CaseCollisions,
    /// Staged files with an open handle.
    open: usize,
}

impl<'repo> PartPublisher<'repo> {
    pub(super) fn new<'p>(
        files: TemporaryFiles<'repo>,
        from: TreeId,
        to: TreeId,
        guard: &'repo Guard,
        paths: impl Iterator<Item = &'p [u8]> + Clone,
    ) -> anyhow::Result<PartPublisher<'repo>> {
        let repository = files.repository;
        Ok(PartPublisher {
            files,
            guard,
            old: version::tree_version(repository, from, paths.clone())?,
            new: version::tree_version(repository, to, paths)?,
            collisions: CaseCollisions::default(),
            open: 0,
        })
    }

    /// Classifies a change. `leaving` has the paths that are to be deleted.
    pub(super) fn judge(
        &mut self,
        change: &TreeChange,
        leaving: &BTreeSet<Vec<u8>>,
    ) -> anyhow::Result<PathVerdict> {
        let path = &change.path;
        let mut entries = [&change.old, &change.new].into_iter().flatten();
        let is_gitlink = |entry: &TreeEntry| entry.mode == EntryMode::Commit;
        // Submodules are never touched.
        if entries.clone().any(is_gitlink) {
            return Ok(if entries.all(is_gitlink) {
                PathVerdict::Nothing
            } else {
                PathVerdict::Conflict(Conflict::Repository)
            });
        }

        let handle = match self.files.walk(path, IfMissing::Stop)? {
            WalkResult::Handle(handle) => handle,
            WalkResult::Missing if change.new.is_none() || self.can_create(path)? => {
                return self.judge_absent(change);
            }
            WalkResult::Denied | WalkResult::Missing => {
                return Ok(PathVerdict::Conflict(Conflict::Unwritable));
            }
            WalkResult::Blocked(end) if leaving.contains(&path[..end]) => {
                return self.judge_absent(change);
            }
            // A file or symlink is in place of a parent directory, so the file to delete does not
            // exist.
            WalkResult::Blocked(_) if change.new.is_none() => return Ok(PathVerdict::Nothing),
            WalkResult::Boundary => return Ok(PathVerdict::Conflict(Conflict::Repository)),
            WalkResult::Blocked(_) | WalkResult::Refused => {
                return Ok(PathVerdict::Conflict(Conflict::Changed));
            }
        };
        let verdict = self.compare(change, &handle, leaving)?;
        if matches!(verdict, PathVerdict::Proceed(..)) && !self.files.recent.is_free(&handle)? {
            return Ok(PathVerdict::Conflict(Conflict::Unwritable));
        }
        Ok(verdict)
    }

    /// Classifies a change of a file whose directory does not exist.
    fn judge_absent(&mut self, change: &TreeChange) -> anyhow::Result<PathVerdict> {
        Ok(match (&change.old, &change.new) {
            (_, None) => PathVerdict::Nothing,
            (None, Some(_)) => PathVerdict::Proceed(Box::new(PublishStep {
                change: change.clone(),
                old_mark: Mark::Absent,
                trace: None,
                permissions: None,
                onto: self.plan_write(change, &NOTHING)?,
            })),
            // The user deleted a file that is to be changed.
            (Some(_), Some(_)) => PathVerdict::Conflict(Conflict::Changed),
        })
    }

    fn can_create(&self, path: &[u8]) -> anyhow::Result<bool> {
        for dir in parent_dirs(path) {
            if let WalkResult::Handle(handle) = self.files.shared.top.walk(dir, IfMissing::Stop)? {
                return Ok(handle.is_free()?);
            }
        }
        Ok(true)
    }

    fn compare(
        &mut self,
        change: &TreeChange,
        handle: &PathHandle,
        leaving: &BTreeSet<Vec<u8>>,
    ) -> anyhow::Result<PathVerdict> {
        // Content and writers are then those of the same inode, even if the name changes hands.
        let state = handle.find()?;
        let current = version::read_state(self.files.repository, &state)?;
        if current.on_disk.is_dir()
            && change.new.is_some()
            && !is_emptied(handle, &change.path, leaving)?
        {
            return Ok(PathVerdict::Conflict(Conflict::Changed));
        }

        // Already applied, by an interrupted run or by the user.
        if self.new.is(&change.path, change.new.as_ref(), &current)? {
            return Ok(PathVerdict::Nothing);
        }

        if !self.old.is(&change.path, change.old.as_ref(), &current)? {
            return Ok(PathVerdict::Conflict(Conflict::Changed));
        }

        // A new name would overwrite the file whose name differs in case only.
        if current.on_disk.is_absent()
            && version::abilities(self.files.repository).ignores_case
            && self.collisions.has(handle, &change.path, leaving)?
        {
            return Ok(PathVerdict::Conflict(Conflict::CaseCollision));
        }

        // Anything that process writes after the swap would go into an unlinked file.
        if state.writers().are_present() {
            return Ok(PathVerdict::Conflict(Conflict::Busy));
        }

        let onto = self.plan_write(change, &current)?;
        if onto.bytes == NewBytes::Unfit {
            return Ok(PathVerdict::Conflict(Conflict::Unfit));
        }
        let permissions = match current.on_disk {
            OnDisk::File { permissions, .. } => Some(permissions),
            _ => None,
        };
        Ok(PathVerdict::Proceed(Box::new(PublishStep {
            change: change.clone(),
            old_mark: current.mark,
            trace: state.trace(),
            permissions,
            onto,
        })))
    }

    /// Writes a new version under a temporary name. With `durable`, its content is flushed.
    pub(super) fn stage(&mut self, step: PublishStep, durable: bool) -> anyhow::Result<Staging> {
        let path = &step.change.path;
        let WalkResult::Handle(handle) = self.files.walk(path, IfMissing::Make)? else {
            return Ok(Staging::Deferred(Box::new(step)));
        };
        let Some(entry) = &step.change.new else {
            anyhow::bail!("a deletion writes nothing")
        };
        if entry.mode == EntryMode::Link && !is_valid_link_name(split(path).1) {
            let why = "git refuses a symlink of this name".to_owned();
            return Ok(Staging::Conflict(Conflict::Failed(why)));
        }
        let contents = match step.onto.bytes {
            NewBytes::Bytes(bytes) => Ok(self.new.contents_of(bytes, entry, step.permissions)),
            NewBytes::CheckedOut | NewBytes::Unfit => {
                self.new.contents(path, entry, step.permissions)
            }
        };
        let contents = match contents {
            Ok(contents) => contents,
            Err(error) => return Ok(Staging::Conflict(Conflict::Failed(format!("{error:#}")))),
        };

        let create = |name: &[u8]| handle.sibling(name).create(&contents, durable);
        let (temporary, executable) = self
            .files
            .with_free_name(create)
            .with_context(|| cannot_write(path))?;
        let new_mark = version::mark(self.files.repository, &contents, executable)?;
        self.open += 1;
        let handle = (self.open <= MOST_OPEN).then(|| handle.sibling(&temporary));
        Ok(Staging::Ready(Box::new(Staged {
            new: entry.clone(),
            trace: step.trace,
            file: Displaced {
                path: step.change.path,
                temporary,
                old_mark: step.old_mark,
                new_mark,
                handle,
                kept_as: step.onto.kept_as,
            },
        })))
    }

    /// Swaps a staged file in. Returns what this displaced, or why the path keeps its file: the
    /// staged file is discarded then.
    pub(super) fn swap_in(
        &mut self,
        staged: Staged,
    ) -> anyhow::Result<Result<Option<Displaced>, Conflict>> {
        fault::point("publish-before-exchange")?;
        let file = &staged.file;
        let swapped = match self.files.walk(&file.path, IfMissing::Stop)? {
            WalkResult::Handle(handle) => {
                let swapped = match file.old_mark {
                    Mark::Absent => self.place(&handle, &staged)?,
                    _ => self.files.exchange(&handle, file, staged.trace)?,
                };
                fault::point("publish-after-exchange")?;
                swapped
            }
            _ => Err(Conflict::Changed),
        };
        match swapped {
            Ok(is_displaced) => Ok(Ok(is_displaced.then_some(staged.file))),
            Err(conflict) => {
                self.discard(&staged)?;
                // Staging can have created them.
                self.files.remove_empty_dirs(&staged.file.path)?;
                Ok(Err(conflict))
            }
        }
    }

    /// Renames a staged file to a name that must still be free (`RENAME_NOREPLACE`).
    fn place(
        &mut self,
        handle: &PathHandle,
        staged: &Staged,
    ) -> anyhow::Result<Result<bool, Conflict>> {
        let file = &staged.file;
        // git does not track empty directories, so they do not occupy the name.
        handle.remove_empty_dirs()?;
        match handle.sibling(&file.temporary).move_to(handle) {
            Ok(()) => Ok(Ok(false)),
            // Another program created the file first, possibly with the new content.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.discard(staged)?;
                let current = version::read_disk(self.files.repository, handle)?;
                let is_new = self.new.is(&file.path, Some(&staged.new), &current)?;
                Ok(if is_new {
                    Ok(false)
                } else {
                    Err(Conflict::Changed)
                })
            }
            // The directory was renamed, and the staged file with it.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Err(Conflict::Changed)),
            Err(error) => Err(error).with_context(|| cannot_write(&file.path)),
        }
    }

    /// Discards a staged file, through its open handle if its directory was renamed. Beyond
    /// [`MOST_OPEN`] it then stays; nothing refers to it.
    pub(super) fn discard(&mut self, staged: &Staged) -> anyhow::Result<()> {
        let file = &staged.file;
        if let Some(handle) = &file.handle {
            return self.files.dispose(handle, &file.new_mark, &file.path);
        }
        let WalkResult::Handle(handle) = self.files.walk(&file.path, IfMissing::Stop)? else {
            return Ok(());
        };
        let temporary = handle.sibling(&file.temporary);
        self.files.dispose(&temporary, &file.new_mark, &file.path)
    }

    /// Moves a file to a temporary name, if it still exists.
    pub(super) fn delete(
        &mut self,
        step: PublishStep,
        is_open: bool,
    ) -> anyhow::Result<Result<Option<Displaced>, Conflict>> {
        let file = Displaced {
            path: step.change.path,
            temporary: Vec::new(),
            old_mark: step.old_mark,
            new_mark: Mark::Absent,
            handle: None,
            kept_as: step.onto.kept_as,
        };
        self.files.delete(file, is_open)
    }

    /// Disposes of one temporary file of an interrupted run, which is staged or displaced.
    ///
    /// Its name doesn't tell which change it belongs to. Its content usually does, by blob id; only
    /// the output of filters must be compared with each change. An empty file is one that was not
    /// written yet.
    pub(super) fn sweep(
        &mut self,
        temporary: &PathHandle,
        path: &[u8],
        changes: &[TreeChange],
        ids: &HashSet<gix::ObjectId>,
    ) -> anyhow::Result<()> {
        let current = version::read_disk(self.files.repository, temporary)?;
        let is_known = match current.mark {
            Mark::Absent | Mark::Other => false,
            Mark::File(..) if current.on_disk.bytes().is_some_and(<[u8]>::is_empty) => true,
            Mark::File(id, _) if !ids.contains(&id) => changes
                .iter()
                .any(|change| self.is_either_version(change, id)),
            Mark::File(..) => true,
            Mark::Link(id) => ids.contains(&id),
        };
        let mark = if is_known { current.mark } else { Mark::Other };
        self.files.dispose(temporary, &mark, path)
    }

    /// Returns whether a file has the bytes that a checkout writes for either version of a change.
    /// Bytes that git merely stores as one of them are the user's.
    fn is_either_version(&mut self, change: &TreeChange, id: gix::ObjectId) -> bool {
        let path = &change.path;
        let entries = [&change.old, &change.new].into_iter().flatten();
        entries.filter(|entry| entry.is_file()).any(|entry| {
            self.old.checked_out_id(path, entry).ok() == Some(id)
                || self.new.checked_out_id(path, entry).ok() == Some(id)
        })
    }
}

/// In a directory that does not exist.
const NOTHING: DiskVersion = DiskVersion {
    on_disk: OnDisk::Absent,
    mark: Mark::Absent,
};

/// Returns whether everything in a directory is to be deleted, so that a file can take its name.
fn is_emptied(
    handle: &PathHandle,
    path: &[u8],
    leaving: &BTreeSet<Vec<u8>>,
) -> anyhow::Result<bool> {
    let mut dirs = vec![(handle.sibling(handle.name()), path.to_vec())];
    while let Some((dir, path)) = dirs.pop() {
        let Some(inside) = dir.child(b".")? else {
            return Ok(false);
        };
        for name in inside.siblings()? {
            let path = [path.as_slice(), b"/", &name].concat();
            let child = inside.sibling(&name);
            if child.file_type()? == Some(rustix::fs::FileType::Directory) {
                dirs.push((child, path));
            } else if !leaving.contains(&path) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

// Chooses the bytes of a new version: those of a checkout, or the user's own bytes with the change
// applied.
//
// A file can be equal to the old version for git and still have bytes of its own: output that a
// filter drops, other line endings, an expanded `$Id$`. Writing what git would check out loses
// them.

#[derive(Debug, Clone, PartialEq, Eq)]
enum NewBytes {
    CheckedOut,
    Bytes(Vec<u8>),
    /// The change does not fit the bytes on disk.
    Unfit,
}

#[derive(Debug)]
struct Onto {
    bytes: NewBytes,
    /// Set if git cannot restore the replaced bytes.
    kept_as: Option<KeptAs>,
}

impl PartPublisher<'_> {
    /// Decides how to apply a change to the bytes on disk, which git stores as the old version.
    fn plan_write(&mut self, change: &TreeChange, current: &DiskVersion) -> anyhow::Result<Onto> {
        let path = &change.path;
        let preserved = match &change.new {
            Some(new) if new.is_file() => self.preserved_bytes(path, new)?,
            _ => None,
        };
        let written =
            |preserved: Option<Vec<u8>>| preserved.map_or(NewBytes::CheckedOut, NewBytes::Bytes);
        let own = match (&change.old, &current.mark) {
            (Some(old), Mark::File(id, _))
                if old.is_file() && !self.is_checked_out(path, old, *id, current)? =>
            {
                Some((old, *id))
            }
            _ => None,
        };
        let Some((old, id)) = own else {
            // Git does not check out the new bytes. Their undo must find those that they replace.
            let replaced = match (&change.old, &current.mark) {
                (Some(old), Mark::File(..)) if preserved.is_some() => Some(old.id),
                _ => None,
            };
            let keep = |id| KeptAs::of(self.files.repository, id, path);
            return Ok(Onto {
                kept_as: replaced.map(keep).transpose()?,
                bytes: written(preserved),
            });
        };

        let kept_as = KeptAs::of(self.files.repository, old.id, path)?;
        let bytes = match &change.new {
            None => NewBytes::CheckedOut,
            // A turn wrote all bytes on disk, so its undo restores all bytes that it replaced.
            Some(_) if preserved.is_some() && self.is_of_turn(&kept_as, path, id)? => {
                written(preserved)
            }
            Some(new) => match self.applied(change, old, new, current, preserved)? {
                NewBytes::Unfit if self.guard.overwrite => NewBytes::CheckedOut,
                bytes => bytes,
            },
        };
        Ok(Onto {
            bytes,
            kept_as: Some(kept_as),
        })
    }

    fn is_checked_out(
        &mut self,
        path: &[u8],
        entry: &TreeEntry,
        id: gix::ObjectId,
        current: &DiskVersion,
    ) -> anyhow::Result<bool> {
        if let Ok(checked_out) = self.old.checked_out_id(path, entry) {
            return Ok(checked_out == id);
        }
        let Some(disk) = current.on_disk.bytes() else {
            return Ok(false);
        };
        // A partial clone need not have the blob, which is what git stores of the file.
        let again = self.old.stored_and_checked_out(path, disk);
        Ok(again.is_ok_and(|again| again == disk))
    }

    /// Returns whether a turn wrote the bytes on disk for this version.
    fn is_of_turn(&self, kept_as: &KeptAs, path: &[u8], id: gix::ObjectId) -> anyhow::Result<bool> {
        let repository = self.files.repository;
        match displaced::newest_replaced(repository, kept_as, path) {
            Some(bytes) => Ok(repository.blob_id(&bytes)?.0 == id),
            None => Ok(false),
        }
    }

    /// Returns kept bytes that git stores as this version.
    fn preserved_bytes(
        &mut self,
        path: &[u8],
        entry: &TreeEntry,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let kept_as = KeptAs::of(self.files.repository, entry.id, path)?;
        let Some(bytes) = displaced::newest_replaced(self.files.repository, &kept_as, path) else {
            return Ok(None);
        };
        let is_version = self.new.stores(path, &bytes, entry)?;
        Ok(is_version.then_some(bytes))
    }

    /// Applies a change to bytes on disk that git would not check out.
    fn applied(
        &mut self,
        change: &TreeChange,
        old: &TreeEntry,
        new: &TreeEntry,
        current: &DiskVersion,
        preserved: Option<Vec<u8>>,
    ) -> anyhow::Result<NewBytes> {
        // Its undo finds the bytes where those of deleted files are.
        if !new.is_file() {
            return Ok(NewBytes::CheckedOut);
        }
        let path = &change.path;
        // A failing filter is reported when the new version is written.
        let Ok(target) = self.new.checked_out(path, new) else {
            return Ok(NewBytes::CheckedOut);
        };
        let Some(disk) = current.on_disk.bytes() else {
            return Ok(NewBytes::Unfit);
        };
        let base = self.old.checked_out(path, old);
        let Ok(base) = base.or_else(|_| self.old.stored_and_checked_out(path, disk)) else {
            return Ok(NewBytes::Unfit);
        };
        if let Some(preserved) = preserved
            && keeps_own_lines(&base, &preserved, disk)
        {
            return Ok(NewBytes::Bytes(preserved));
        }
        let filter = &mut self.new.filter;
        let applied = filter.apply_to_disk(path, [&base, &target], disk, new.id)?;
        Ok(applied.map_or(NewBytes::Unfit, NewBytes::Bytes))
    }
}

/// Names of directories, each directory read once.
#[derive(Debug, Default)]
struct CaseCollisions {
    /// Directory -> lower-case name -> names.
    dirs: HashMap<Vec<u8>, HashMap<String, Vec<Vec<u8>>>>,
}

impl CaseCollisions {
    /// Returns whether the path's directory has another name that differs only in case and is not
    /// to be deleted.
    fn has(
        &mut self,
        handle: &PathHandle,
        path: &[u8],
        leaving: &BTreeSet<Vec<u8>>,
    ) -> io::Result<bool> {
        let name = handle.name();
        let dir = &path[..path.len() - name.len()];
        if !self.dirs.contains_key(dir) {
            self.dirs
                .insert(dir.to_vec(), group_by_lowercase(handle.siblings()?));
        }

        let same = self.dirs[dir].get(&lowercase(name));
        Ok(same
            .into_iter()
            .flatten()
            .any(|other| other != name && !leaving.contains(&[dir, other.as_slice()].concat())))
    }
}

fn group_by_lowercase(names: Vec<Vec<u8>>) -> HashMap<String, Vec<Vec<u8>>> {
    let mut groups: HashMap<String, Vec<Vec<u8>>> = HashMap::new();
    for name in names {
        groups.entry(lowercase(&name)).or_default().push(name);
    }
    groups
}

fn lowercase(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::path_handle::{IfMissing, Top, WalkResult};

    #[test]
    fn a_folder_is_read_once_for_all_its_names() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir(outer.path().join("d")).unwrap();
        for name in ["d/Read", "d/other", "top"] {
            std::fs::write(outer.path().join(name), "").unwrap();
        }
        let top = Top::open(outer.path()).unwrap();
        let mut collisions = CaseCollisions::default();
        let mut has = |path: &str, leaving: &[&str]| {
            let leaving = leaving
                .iter()
                .map(|path| path.as_bytes().to_vec())
                .collect();
            let WalkResult::Handle(handle) = top.walk(path.as_bytes(), IfMissing::Stop).unwrap()
            else {
                panic!("`{path}` has a folder")
            };
            collisions.has(&handle, path.as_bytes(), &leaving).unwrap()
        };

        assert!(has("d/READ", &[]));
        assert!(!has("d/READ", &["d/Read"]));
        assert!(!has("d/Read", &[]));
        assert!(has("Top", &[]));
        assert!(!has("Other", &[]));
        // The directory is not read again.
        std::fs::write(outer.path().join("d/Late"), "").unwrap();
        assert!(!has("d/late", &[]));
    }
}
