//! The look before the first write: which paths are as the old tree says, and which are not.

use std::collections::BTreeSet;

use rustix::fs::RawMode;

use super::Publisher;
use super::onto::{NewBytes, Onto};
use crate::git::diff::TreeChange;
use crate::git::object::{EntryMode, TreeEntry};
use crate::git::place::{IfMissing, OnDisk, Place, Trace, WalkResult};
use crate::git::version;
use crate::git::version::Mark;

/// A change that can be made.
#[derive(Debug)]
pub(super) struct PublishStep {
    /// The change.
    pub(super) change: TreeChange,
    /// What is on disk, known to be what the old tree says.
    pub(super) was: Mark,
    /// How a file on disk was told from others when it was read.
    pub(super) trace: Option<Trace>,
    /// The permissions of the file on disk.
    pub(super) permissions: Option<RawMode>,
    pub(super) onto: Onto,
}

/// What a change comes to.
enum PathVerdict {
    /// It is on disk already, or concerns a repository within.
    Nothing,
    /// It can be made.
    Ready(Box<PublishStep>),
    /// The path must stay as it is.
    Conflict,
}

impl Publisher<'_> {
    /// Judges every change, deletions first, notes the conflicts, and returns what can be done.
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

    /// Judges some changes, in their order.
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

    /// Judges one change.
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
            // What is to go cannot be behind a file or a link: it is gone.
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

    /// Notes a path at which nothing may be changed.
    fn closed(&mut self, change: &TreeChange) -> PathVerdict {
        self.done.closed.push(change.path.clone());
        PathVerdict::Conflict
    }

    /// Returns whether the folders that are missing on the way to a path can be made.
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

    /// Compares what is on disk with what both trees say.
    fn compare(
        &mut self,
        change: &TreeChange,
        place: &Place,
        leaving: &BTreeSet<Vec<u8>>,
    ) -> anyhow::Result<PathVerdict> {
        let here = place.find()?;
        let found = version::look_at(self.repository, &here)?;
        if found.seen.is_folder()
            && change.new.is_some()
            && !self.leaves_whole(place, &change.path, leaving)?
        {
            return Ok(PathVerdict::Conflict);
        }

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

        // What it writes now, or keeps in memory to write, would go into a file without a name.
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

    /// Returns whether everything in a folder is among what leaves, so that a file can take its
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

    /// Returns whether a path is one of those that no snapshot holds, or lies in one.
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

/// Returns the paths of some changes.
fn paths_of(changes: &[TreeChange]) -> Vec<&[u8]> {
    changes
        .iter()
        .map(|change| change.path.as_slice())
        .collect()
}

/// Judges a change whose place on disk is empty.
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
        // The user deleted what is to be changed.
        (Some(_), Some(_)) => PathVerdict::Conflict,
    }
}
