//! Classifies each change before the first write: already applied, applicable, or a conflict.

use std::collections::BTreeSet;

use rustix::fs::RawMode;

use super::Publisher;
use super::onto::{NewBytes, Onto};
use crate::git::diff::TreeChange;
use crate::git::object::{EntryMode, TreeEntry};
use crate::git::place::{IfMissing, OnDisk, Place, Trace, WalkResult};
use crate::git::version;
use crate::git::version::Mark;

#[derive(Debug)]
pub(super) struct PublishStep {
    pub(super) change: TreeChange,
    /// Content on disk, which equals the old tree's.
    pub(super) was: Mark,
    /// Metadata of the file when its content was read; a cheap check that it did not change since.
    pub(super) trace: Option<Trace>,
    pub(super) permissions: Option<RawMode>,
    pub(super) onto: Onto,
}

enum PathVerdict {
    /// Already applied, or a submodule on both sides.
    Nothing,
    Ready(Box<PublishStep>),
    Conflict,
}

impl Publisher<'_> {
    /// Classifies all changes, records the conflicts and returns the applicable steps.
    ///
    /// Deletions are classified first: a new file can replace a directory only if everything in the
    /// directory is deleted.
    pub(super) fn judge(&mut self, changes: &[TreeChange]) -> anyhow::Result<Vec<PublishStep>> {
        let (deletions, others): (Vec<_>, Vec<_>) =
            changes.iter().cloned().partition(|it| it.new.is_none());
        let mut leaving = BTreeSet::new();
        let mut steps = Vec::new();
        for (verdict, change) in self.verdicts(deletions, &leaving)? {
            match verdict {
                PathVerdict::Conflict => self.conflict(&change.path),
                PathVerdict::Nothing => drop(leaving.insert(change.path)),
                PathVerdict::Ready(step) => {
                    leaving.insert(change.path);
                    steps.push(*step);
                }
            }
        }

        for (verdict, change) in self.verdicts(others, &leaving)? {
            match verdict {
                PathVerdict::Conflict => self.conflict(&change.path),
                PathVerdict::Nothing => {}
                PathVerdict::Ready(step) => steps.push(*step),
            }
        }

        Ok(steps)
    }

    fn verdicts(
        &mut self,
        changes: Vec<TreeChange>,
        leaving: &BTreeSet<Vec<u8>>,
    ) -> anyhow::Result<Vec<(PathVerdict, TreeChange)>> {
        let judged = self.spread(changes, paths_of, |publisher, changes| {
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

        let place = match self.walk(&change.path, IfMissing::Stop)? {
            WalkResult::Place(place) => place,
            WalkResult::Missing if change.new.is_none() || self.has_room(&change.path)? => {
                return Ok(absent(change));
            }
            WalkResult::Closed | WalkResult::Missing => return Ok(self.closed(change)),
            WalkResult::Blocked(end) if leaving.contains(&change.path[..end]) => {
                return Ok(absent(change));
            }
            // A file or symlink is in place of a parent directory, so the file to delete does not
            // exist.
            WalkResult::Blocked(_) if change.new.is_none() => return Ok(PathVerdict::Nothing),
            WalkResult::Blocked(_) | WalkResult::Boundary | WalkResult::Refused => {
                return Ok(PathVerdict::Conflict);
            }
        };
        let verdict = self.compare(change, &place, leaving)?;
        if matches!(verdict, PathVerdict::Ready(..)) && !self.recent.is_free(&place)? {
            return Ok(self.closed(change));
        }

        Ok(verdict)
    }

    /// Records a conflict on a path that the user has no permission to change.
    fn closed(&mut self, change: &TreeChange) -> PathVerdict {
        self.done.closed.push(change.path.clone());
        PathVerdict::Conflict
    }

    fn has_room(&self, path: &[u8]) -> anyhow::Result<bool> {
        let ends = path
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
            .map(|(at, _)| at);
        for end in ends.rev() {
            if let WalkResult::Place(place) = self.top.walk(&path[..end], IfMissing::Stop)? {
                return Ok(place.is_free()?);
            }
        }

        Ok(true)
    }

    fn compare(
        &mut self,
        change: &TreeChange,
        place: &Place,
        leaving: &BTreeSet<Vec<u8>>,
    ) -> anyhow::Result<PathVerdict> {
        // Content and writers are then those of the same inode, even if the name changes hands.
        let here = place.find()?;
        let found = version::look_at(self.repository, &here)?;
        if found.seen.is_folder()
            && change.new.is_some()
            && !self.leaves_whole(place, &change.path, leaving)?
        {
            return Ok(PathVerdict::Conflict);
        }

        // Already applied, by an interrupted run or by the user.
        if self.new.is(&change.path, change.new.as_ref(), &found)? {
            return Ok(PathVerdict::Nothing);
        }

        if !self.old.is(&change.path, change.old.as_ref(), &found)? {
            return Ok(PathVerdict::Conflict);
        }

        if found.seen.is_absent()
            && version::abilities(self.repository).ignores_case
            && self.twins.has(place, &change.path, leaving)?
        {
            return Ok(PathVerdict::Conflict);
        }

        // Anything that process writes after the swap would go into an unlinked file.
        if here.writers().are_there() {
            self.done.busy.push(change.path.clone());
            return Ok(PathVerdict::Conflict);
        }

        let onto = self.onto(change, &found)?;
        if onto.bytes == NewBytes::Unfit {
            self.done.unfit.push(change.path.clone());
            return Ok(PathVerdict::Conflict);
        }

        let permissions = if let OnDisk::File { permissions, .. } = found.seen {
            Some(permissions)
        } else {
            None
        };
        Ok(PathVerdict::Ready(Box::new(PublishStep {
            change: change.clone(),
            was: found.mark,
            trace: here.trace(),
            permissions,
            onto,
        })))
    }

    /// Returns whether everything in a directory is to be deleted, so that a file can take its
    /// name.
    fn leaves_whole(
        &self,
        place: &Place,
        path: &[u8],
        leaving: &BTreeSet<Vec<u8>>,
    ) -> anyhow::Result<bool> {
        let mut folders = vec![(place.sibling(place.name()), path.to_vec())];
        while let Some((folder, path)) = folders.pop() {
            let Some(inside) = folder.child(b".")? else {
                return Ok(false);
            };
            for name in inside.siblings()? {
                let path = [path.as_slice(), b"/", &name].concat();
                let child = inside.sibling(&name);
                if child.look_kind()? == Some(rustix::fs::FileType::Directory) {
                    folders.push((child, path));
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

fn paths_of(changes: &[TreeChange]) -> Vec<&[u8]> {
    changes
        .iter()
        .map(|change| change.path.as_slice())
        .collect()
}

fn absent(change: &TreeChange) -> PathVerdict {
    match (&change.old, &change.new) {
        (_, None) => PathVerdict::Nothing,
        (None, Some(_)) => PathVerdict::Ready(Box::new(PublishStep {
            change: change.clone(),
            was: Mark::Absent,
            trace: None,
            permissions: None,
            onto: Onto::plain(),
        })),
        // The user deleted a file that is to be changed.
        (Some(_), Some(_)) => PathVerdict::Conflict,
    }
}
