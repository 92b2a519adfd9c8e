//! Chooses the bytes of a new version: those of a checkout, or the user's own bytes with the change
//! applied.
//!
//! A file can be the same to git as the version before and still have bytes of its own: output that
//! a filter drops, other line ends, an expanded `$Id$`. Writing what git would check out loses them.

use super::Publisher;
use super::replaced::{self, KeptAs};
use crate::git::diff::TreeChange;
use crate::git::object::{EntryMode, TreeEntry};
use crate::git::path_handle::{FileBody, OnDisk};
use crate::git::version::{DiskVersion, Mark};
use crate::text::transplant::keeps_own_lines;

/// Where the bytes of a new version come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NewBytes {
    /// A checkout writes them.
    CheckedOut,
    /// They are here.
    Bytes(Vec<u8>),
    /// The change does not fit the bytes on disk.
    Unfit,
}

/// How a change comes to a file.
#[derive(Debug)]
pub(super) struct Onto {
    pub(super) bytes: NewBytes,
    /// Set if git cannot make the replaced bytes again.
    pub(super) kept_as: Option<KeptAs>,
}

impl Onto {
    /// What git checks out in the place of what git checked out.
    pub(super) fn plain() -> Onto {
        Onto {
            bytes: NewBytes::CheckedOut,
            kept_as: None,
        }
    }
}

impl Publisher<'_> {
    /// Returns how to apply a change to the bytes on disk, which git takes for the old version.
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
            Some(new) => match self.applied(change, [old, new], current, preserved)? {
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

    /// Returns whether the bytes on disk are those of a checkout.
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

    /// Returns whether the bytes on disk are those that a turn made of a version.
    fn is_of_turn(
        &self,
        path: &[u8],
        entry: &TreeEntry,
        id: gix::ObjectId,
    ) -> anyhow::Result<bool> {
        let kept_as = KeptAs::of(self.repository, entry.id, path)?;
        let Some(bytes) = replaced::newest_replaced(self.repository, &kept_as, path) else {
            return Ok(false);
        };
        Ok(self.repository.blob_id(&bytes)?.0 == id)
    }

    /// Returns bytes that were kept for a version and that git stores as it.
    fn preserved_bytes(
        &mut self,
        path: &[u8],
        entry: &TreeEntry,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let kept_as = KeptAs::of(self.repository, entry.id, path)?;
        let Some(bytes) = replaced::newest_replaced(self.repository, &kept_as, path) else {
            return Ok(None);
        };
        let is_version = self.new.stores(path, &bytes, entry)?;
        Ok(is_version.then_some(bytes))
    }

    /// Applies a change to bytes on disk that git would not check out.
    fn applied(
        &mut self,
        change: &TreeChange,
        [old, new]: [&TreeEntry; 2],
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
