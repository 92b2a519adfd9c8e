//! Classifies each change before the first write: already applied, applicable, or a conflict.

use std::collections::BTreeSet;

use rustix::fs::RawMode;

use super::Publisher;
use crate::git::diff::TreeChange;
use crate::git::object::{EntryMode, TreeEntry};
use crate::git::path_handle::{FileBody, IfMissing, OnDisk, PathHandle, Trace, WalkResult};
use crate::git::publish::displaced_files;
use crate::git::publish::displaced_files::KeptAs;
use crate::git::version::{self, DiskVersion, Mark};
use crate::text::transplant::keeps_own_lines;

#[derive(Debug)]
pub(super) struct PublishStep {
    pub(super) change: TreeChange,
    /// Content on disk, which equals the old tree's.
    pub(super) old_mark: Mark,
    /// Metadata of the file when its content was read; a cheap check that it did not change since.
    pub(super) trace: Option<Trace>,
    pub(super) permissions: Option<RawMode>,
    pub(super) onto: Onto,
}

enum PathVerdict {
    /// Already applied, or a submodule on both sides.
    Nothing,
    Proceed(Box<PublishStep>),
    Conflict,
}

impl Publisher<'_> {
    /// Classifies all changes, records the conflicts and returns the applicable steps.
    ///
    /// Deletions are classified first: a new file can replace a directory only if everything in the
    /// directory is deleted.
    pub(super) fn classify_changes(
        &mut self,
        changes: &[TreeChange],
    ) -> anyhow::Result<Vec<PublishStep>> {
        let (deletions, others): (Vec<_>, Vec<_>) =
            changes.iter().cloned().partition(|it| it.new.is_none());
        let mut leaving = BTreeSet::new();
        let mut steps = Vec::new();
        for (verdict, change) in self.verdicts(deletions, &leaving)? {
            match verdict {
                PathVerdict::Conflict => self.conflict(&change.path),
                PathVerdict::Nothing => drop(leaving.insert(change.path)),
                PathVerdict::Proceed(step) => {
                    leaving.insert(change.path);
                    steps.push(*step);
                }
            }
        }

        for (verdict, change) in self.verdicts(others, &leaving)? {
            match verdict {
                PathVerdict::Conflict => self.conflict(&change.path),
                PathVerdict::Nothing => {}
                PathVerdict::Proceed(step) => steps.push(*step),
            }
        }

        Ok(steps)
    }

    fn verdicts(
        &mut self,
        changes: Vec<TreeChange>,
        leaving: &BTreeSet<Vec<u8>>,
    ) -> anyhow::Result<Vec<(PathVerdict, TreeChange)>> {
        let judged = self.run_parallel(changes, change_paths, |publisher, changes| {
            changes
                .into_iter()
                .map(|change| Ok((publisher.verdict(&change, leaving)?, change)))
                .collect::<anyhow::Result<Vec<_>>>()
        })?;
        let judged: Vec<_> = judged.into_iter().collect::<anyhow::Result<_>>()?;
        Ok(judged.into_iter().flatten().collect())
    }

    fn verdict(
        &mut self,
        change: &TreeChange,
        leaving: &BTreeSet<Vec<u8>>,
    ) -> anyhow::Result<PathVerdict> {
        let gitlink = |entry: &Option<TreeEntry>| {
            entry
                .as_ref()
                .is_some_and(|entry| entry.mode == EntryMode::Gitlink)
        };
        // Submodules are never touched.
        if gitlink(&change.old) || gitlink(&change.new) {
            let only = [&change.old, &change.new]
                .into_iter()
                .all(|entry| entry.is_none() || gitlink(entry));
            return Ok(if only {
                PathVerdict::Nothing
            } else {
                PathVerdict::Conflict
            });
        }

        if self.is_untouchable(&change.path) {
            return Ok(PathVerdict::Conflict);
        }

        let handle = match self.walk(&change.path, IfMissing::Stop)? {
            WalkResult::Handle(handle) => handle,
            WalkResult::Missing if change.new.is_none() || self.can_create(&change.path)? => {
                return Ok(classify_absent(change));
            }
            WalkResult::Denied | WalkResult::Missing => return Ok(self.unwritable(change)),
            WalkResult::Blocked(end) if leaving.contains(&change.path[..end]) => {
                return Ok(classify_absent(change));
            }
            // A file or symlink is in place of a parent directory, so the file to delete does not
            // exist.
            WalkResult::Blocked(_) if change.new.is_none() => return Ok(PathVerdict::Nothing),
            WalkResult::Blocked(_) | WalkResult::Boundary | WalkResult::Refused => {
                return Ok(PathVerdict::Conflict);
            }
        };
        let verdict = self.compare(change, &handle, leaving)?;
        if matches!(verdict, PathVerdict::Proceed(..)) && !self.recent.is_free(&handle)? {
            return Ok(self.unwritable(change));
        }

        Ok(verdict)
    }

    fn unwritable(&mut self, change: &TreeChange) -> PathVerdict {
        self.published.unwritable.push(change.path.clone());
        PathVerdict::Conflict
    }

    fn can_create(&self, path: &[u8]) -> anyhow::Result<bool> {
        let ends = path
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
            .map(|(at, _)| at);
        for end in ends.rev() {
            if let WalkResult::Handle(handle) = self.top.walk(&path[..end], IfMissing::Stop)? {
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
        let current = version::read_state(self.repository, &state)?;
        if current.on_disk.is_dir()
            && change.new.is_some()
            && !self.is_emptied(handle, &change.path, leaving)?
        {
            return Ok(PathVerdict::Conflict);
        }

        // Already applied, by an interrupted run or by the user.
        if self.new.is(&change.path, change.new.as_ref(), &current)? {
            return Ok(PathVerdict::Nothing);
        }

        if !self.old.is(&change.path, change.old.as_ref(), &current)? {
            return Ok(PathVerdict::Conflict);
        }

        // A new name would overwrite the file whose name differs in case only.
        if current.on_disk.is_absent()
            && version::abilities(self.repository).ignores_case
            && self.case_collisions.has(handle, &change.path, leaving)?
        {
            self.published.case_collisions.push(change.path.clone());
            return Ok(PathVerdict::Conflict);
        }

        // Anything that process writes after the swap would go into an unlinked file.
        if state.writers().are_present() {
            self.published.busy.push(change.path.clone());
            return Ok(PathVerdict::Conflict);
        }

        let onto = self.plan_write(change, &current)?;
        if onto.bytes == NewBytes::Unfit {
            self.published.unfit.push(change.path.clone());
            return Ok(PathVerdict::Conflict);
        }

        let permissions = if let OnDisk::File { permissions, .. } = current.on_disk {
            Some(permissions)
        } else {
            None
        };
        Ok(PathVerdict::Proceed(Box::new(PublishStep {
            change: change.clone(),
            old_mark: current.mark,
            trace: state.trace(),
            permissions,
            onto,
        })))
    }

    /// Returns whether everything in a directory is to be deleted, so that a file can take its
    /// name.
    fn is_emptied(
        &self,
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

    /// Returns whether a path, or a directory above it, is excluded from snapshots.
    fn is_untouchable(&self, path: &[u8]) -> bool {
        let ends = path
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
            .map(|(at, _)| at);
        ends.chain([path.len()])
            .any(|end| self.guard.untouchable.contains(&path[..end]))
    }
}

fn change_paths(changes: &[TreeChange]) -> Vec<&[u8]> {
    changes
        .iter()
        .map(|change| change.path.as_slice())
        .collect()
}

fn classify_absent(change: &TreeChange) -> PathVerdict {
    match (&change.old, &change.new) {
        (_, None) => PathVerdict::Nothing,
        (None, Some(_)) => PathVerdict::Proceed(Box::new(PublishStep {
            change: change.clone(),
            old_mark: Mark::Absent,
            trace: None,
            permissions: None,
            onto: Onto::plain(),
        })),
        // The user deleted a file that is to be changed.
        (Some(_), Some(_)) => PathVerdict::Conflict,
    }
}

// Chooses the bytes of a new version: those of a checkout, or the user's own bytes with the change
// applied.
//
// A file can be equal to the old version for git and still have bytes of its own: output that a
// filter drops, other line endings, an expanded `$Id$`. Writing what git would check out loses
// them.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NewBytes {
    CheckedOut,
    Bytes(Vec<u8>),
    /// The change does not fit the bytes on disk.
    Unfit,
}

#[derive(Debug)]
pub(super) struct Onto {
    pub(super) bytes: NewBytes,
    /// Set if git cannot restore the replaced bytes.
    pub(super) kept_as: Option<KeptAs>,
}

impl Onto {
    /// Replaces checked-out bytes by checked-out bytes.
    pub(super) fn plain() -> Onto {
        Onto {
            bytes: NewBytes::CheckedOut,
            kept_as: None,
        }
    }
}

impl Publisher<'_> {
    /// Decides how to apply a change to the bytes on disk, which git stores as the old version.
    pub(super) fn plan_write(
        &mut self,
        change: &TreeChange,
        current: &DiskVersion,
    ) -> anyhow::Result<Onto> {
        let preserved = match &change.new {
            Some(new) if is_file_entry(new) => self.preserved_bytes(&change.path, new)?,
            _ => None,
        };
        let written =
            |preserved: Option<Vec<u8>>| preserved.map_or(NewBytes::CheckedOut, NewBytes::Bytes);
        let (Some(old), Mark::File(id, _)) = (&change.old, &current.mark) else {
            return Ok(Onto {
                bytes: written(preserved),
                kept_as: None,
            });
        };
        if !is_file_entry(old) || self.is_checked_out(&change.path, old, *id, current)? {
            return Ok(Onto {
                bytes: written(preserved),
                kept_as: None,
            });
        }

        let bytes = match &change.new {
            None => NewBytes::CheckedOut,
            // A turn wrote all bytes on disk, so its undo restores all bytes that it replaced.
            Some(_) if preserved.is_some() && self.is_of_turn(&change.path, old, *id)? => {
                written(preserved)
            }
            Some(new) => match self.applied(change, old, new, current, preserved)? {
                NewBytes::Unfit if self.guard.overwrite => NewBytes::CheckedOut,
                bytes => bytes,
            },
        };
        let kept_as = KeptAs::of(self.repository, old.id, &change.path)?;
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
        let OnDisk::File {
            body: FileBody::Bytes(disk),
            ..
        } = &current.on_disk
        else {
            return Ok(false);
        };
        // A partial clone need not have the blob, which is what git stores of the file.
        let again = self.old.stored_and_checked_out(path, disk);
        Ok(again.is_ok_and(|again| again == *disk))
    }

    /// Returns whether a turn wrote the bytes on disk for this version.
    fn is_of_turn(
        &self,
        path: &[u8],
        entry: &TreeEntry,
        id: gix::ObjectId,
    ) -> anyhow::Result<bool> {
        let kept_as = KeptAs::of(self.repository, entry.id, path)?;
        let Some(bytes) = displaced_files::newest_replaced(self.repository, &kept_as, path) else {
            return Ok(false);
        };
        Ok(self.repository.blob_id(&bytes)?.0 == id)
    }

    /// Returns kept bytes that git stores as this version.
    fn preserved_bytes(
        &mut self,
        path: &[u8],
        entry: &TreeEntry,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let kept_as = KeptAs::of(self.repository, entry.id, path)?;
        let Some(bytes) = displaced_files::newest_replaced(self.repository, &kept_as, path) else {
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
        if !is_file_entry(new) {
            return Ok(NewBytes::Unfit);
        }
        let path = &change.path;
        // A failing filter is reported when the new version is written.
        let Ok(target) = self.new.checked_out(path, new) else {
            return Ok(NewBytes::CheckedOut);
        };
        let OnDisk::File {
            body: FileBody::Bytes(disk),
            ..
        } = &current.on_disk
        else {
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
        let applied = self.new.apply_to_disk(path, [&base, &target], disk, new)?;
        Ok(applied.map_or(NewBytes::Unfit, NewBytes::Bytes))
    }
}

fn is_file_entry(entry: &TreeEntry) -> bool {
    matches!(entry.mode, EntryMode::File | EntryMode::Executable)
}
