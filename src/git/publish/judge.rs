//! The look before the first write: which paths are as the old tree says, and which are not.

use crate::git::version;
use std::collections::BTreeSet;

use rustix::fs::RawMode;

use super::Publisher;
use crate::git::diff::Change;
use crate::git::object::{Entry, Mode};
use crate::git::place::{Missing, Place, Seen, Trace, Walk};
use crate::git::version::Mark;

/// A change that can be made.
#[derive(Debug)]
pub(super) struct Step {
    /// The change.
    pub(super) change: Change,
    /// What is on disk, known to be what the old tree says.
    pub(super) was: Mark,
    /// How a file on disk was told from others when it was read.
    pub(super) trace: Option<Trace>,
    /// The permissions of the file on disk.
    pub(super) permissions: Option<RawMode>,
}

/// What a change comes to.
enum Verdict {
    /// It is on disk already, or concerns a repository within.
    Nothing,
    /// It can be made.
    Ready(Box<Step>),
    /// The path must stay as it is.
    Conflict,
}

impl Publisher<'_> {
    /// Judges every change, deletions first, notes the conflicts, and returns what can be done.
    pub(super) fn judge(&mut self, changes: &[Change]) -> anyhow::Result<Vec<Step>> {
        let (deletions, others): (Vec<_>, Vec<_>) =
            changes.iter().cloned().partition(|it| it.new.is_none());
        let mut leaving = BTreeSet::new();
        let mut steps = Vec::new();
        for (verdict, change) in self.verdicts(deletions, &leaving)? {
            match verdict {
                Verdict::Conflict => self.conflict(&change.path),
                Verdict::Nothing => drop(leaving.insert(change.path)),
                Verdict::Ready(step) => {
                    leaving.insert(change.path);
                    steps.push(*step);
                }
            }
        }
        for (verdict, change) in self.verdicts(others, &leaving)? {
            match verdict {
                Verdict::Conflict => self.conflict(&change.path),
                Verdict::Nothing => {}
                Verdict::Ready(step) => steps.push(*step),
            }
        }
        Ok(steps)
    }

    /// Judges some changes, in their order.
    fn verdicts(
        &mut self,
        changes: Vec<Change>,
        leaving: &BTreeSet<Vec<u8>>,
    ) -> anyhow::Result<Vec<(Verdict, Change)>> {
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
    fn verdict(&mut self, change: &Change, leaving: &BTreeSet<Vec<u8>>) -> anyhow::Result<Verdict> {
        let gitlink = |entry: &Option<Entry>| {
            entry
                .as_ref()
                .is_some_and(|entry| entry.mode == Mode::Gitlink)
        };
        if gitlink(&change.old) || gitlink(&change.new) {
            let only = [&change.old, &change.new]
                .into_iter()
                .all(|entry| entry.is_none() || gitlink(entry));
            return Ok(if only {
                Verdict::Nothing
            } else {
                Verdict::Conflict
            });
        }
        if self.is_untouchable(&change.path) {
            return Ok(Verdict::Conflict);
        }
        let place = match self.walk(&change.path, Missing::Stop)? {
            Walk::Place(place) => place,
            Walk::Missing if change.new.is_none() || self.has_room(&change.path)? => {
                return Ok(absent(change));
            }
            Walk::Closed | Walk::Missing => return Ok(self.closed(change)),
            Walk::Blocked(end) if leaving.contains(&change.path[..end]) => {
                return Ok(absent(change));
            }
            // What is to go cannot be behind a file or a link: it is gone.
            Walk::Blocked(_) if change.new.is_none() => return Ok(Verdict::Nothing),
            Walk::Blocked(_) | Walk::Boundary | Walk::Refused => return Ok(Verdict::Conflict),
        };
        let verdict = self.compare(change, &place, leaving)?;
        if matches!(verdict, Verdict::Ready(..)) && !self.recent.is_free(&place)? {
            return Ok(self.closed(change));
        }
        Ok(verdict)
    }

    /// Notes a path at which nothing may be changed.
    fn closed(&mut self, change: &Change) -> Verdict {
        self.done.closed.push(change.path.clone());
        Verdict::Conflict
    }

    /// Returns whether the folders that are missing on the way to a path can be made.
    fn has_room(&self, path: &[u8]) -> anyhow::Result<bool> {
        let ends = path
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/')
            .map(|(at, _)| at);
        for end in ends.rev() {
            if let Walk::Place(place) = self.top.walk(&path[..end], Missing::Stop)? {
                return Ok(place.is_free()?);
            }
        }
        Ok(true)
    }

    /// Compares what is on disk with what both trees say.
    fn compare(
        &mut self,
        change: &Change,
        place: &Place,
        leaving: &BTreeSet<Vec<u8>>,
    ) -> anyhow::Result<Verdict> {
        let here = place.find()?;
        let found = version::look_at(self.repository, &here)?;
        if found.seen.is_folder()
            && change.new.is_some()
            && !self.leaves_whole(place, &change.path, leaving)?
        {
            return Ok(Verdict::Conflict);
        }
        if self.new.is(&change.path, change.new.as_ref(), &found)? {
            return Ok(Verdict::Nothing);
        }
        if !self.old.is(&change.path, change.old.as_ref(), &found)? {
            return Ok(Verdict::Conflict);
        }
        if found.seen.is_absent()
            && version::abilities(self.repository).ignores_case
            && has_twin(place, &change.path, leaving)?
        {
            return Ok(Verdict::Conflict);
        }
        // What it writes now, or keeps in memory to write, would go into a file without a name.
        if here.writers().are_there() {
            self.done.busy.push(change.path.clone());
            return Ok(Verdict::Conflict);
        }
        let permissions = if let Seen::File { permissions, .. } = found.seen {
            Some(permissions)
        } else {
            None
        };
        Ok(Verdict::Ready(Box::new(Step {
            change: change.clone(),
            was: found.mark,
            trace: here.trace(),
            permissions,
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
fn paths_of(changes: &[Change]) -> Vec<&[u8]> {
    changes
        .iter()
        .map(|change| change.path.as_slice())
        .collect()
}

/// Judges a change whose place on disk is empty.
fn absent(change: &Change) -> Verdict {
    match (&change.old, &change.new) {
        (_, None) => Verdict::Nothing,
        (None, Some(_)) => Verdict::Ready(Box::new(Step {
            change: change.clone(),
            was: Mark::Absent,
            trace: None,
            permissions: None,
        })),
        // The user deleted what is to be changed.
        (Some(_), Some(_)) => Verdict::Conflict,
    }
}

/// Returns whether another name in the folder is the same to a file system that ignores case.
fn has_twin(place: &Place, path: &[u8], leaving: &BTreeSet<Vec<u8>>) -> anyhow::Result<bool> {
    let name = place.name();
    let folded = String::from_utf8_lossy(name).to_lowercase();
    let folder = &path[..path.len() - name.len()];
    Ok(place.siblings()?.iter().any(|other| {
        let same = other != name && String::from_utf8_lossy(other).to_lowercase() == folded;
        same && !leaving.contains(&[folder, other].concat())
    }))
}
