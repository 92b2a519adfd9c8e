//! Series of patches as they are in one part of the files, and how two of them differ.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{PatchId, Stacks};
use crate::git::object::CommitId;
use crate::session::publication::Stack;

/// Patches from the oldest to the newest, on top of others that nobody has to look at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Series {
    /// The newest of the patches below.
    pub base: Option<PatchId>,
    /// The patches on top, oldest first.
    pub above: Vec<PatchId>,
}

impl Series {
    /// Returns a series of which nobody has to look at a patch.
    pub fn below(top: Option<PatchId>) -> Series {
        Series {
            base: top,
            above: Vec::new(),
        }
    }
}

/// What two stacks do not have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackDifference {
    /// The first, as far as the second is not the same.
    pub from: Series,
    /// What only the first has, newest first.
    pub removed: Vec<PatchId>,
    /// What only the second has, oldest first.
    pub added: Vec<PatchId>,
}

/// Returns the patches that only the first of two stacks has in some part of the files, newest
/// first, and those that only the second one has, oldest first.
///
/// # Errors
/// If a patch cannot be read.
pub fn differences(
    stacks: &Stacks<'_>,
    one: &Stack<PatchId>,
    other: &Stack<PatchId>,
) -> anyhow::Result<[Vec<PatchId>; 2]> {
    let (mut found, mut seen) = ([Vec::new(), Vec::new()], BTreeSet::new());
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let mut part = PathStacks::new(stacks, &path);
        let tops = [part.top(one), part.top(other)];
        let StackDifference { removed, added, .. } = part.difference(tops[0], tops[1])?;
        for (list, ids) in found.iter_mut().zip([removed, added]) {
            let is_new = |id: &PatchId| !list.contains(id);
            let new: Vec<PatchId> = ids.into_iter().filter(is_new).collect();
            list.extend(new);
        }

        let apart = part.apart;
        seen.insert(path);
        waiting.extend(apart.into_iter().filter(|path| !seen.contains(path)));
        waiting.sort();
        waiting.dedup();
    }

    Ok(found)
}

/// One part of the files, and the stacks as they are there.
pub struct PathStacks<'a> {
    /// What reads patches.
    stacks: &'a Stacks<'a>,
    /// The file or folder; empty for the whole.
    path: &'a [u8],
    /// The files and folders that some patch below sets apart: they are parts of their own.
    pub apart: BTreeSet<Vec<u8>>,
}

impl<'a> PathStacks<'a> {
    /// Looks at a part.
    pub fn new(stacks: &'a Stacks<'a>, path: &'a [u8]) -> PathStacks<'a> {
        PathStacks {
            stacks,
            path,
            apart: BTreeSet::new(),
        }
    }

    /// Returns the newest patch of a stack here.
    pub fn top(&mut self, stack: &Stack<PatchId>) -> Option<PatchId> {
        self.apart.extend(stack.apart.keys().cloned());
        stack.at(self.path)
    }

    /// Returns the patch below another one here.
    fn below(&mut self, id: PatchId) -> anyhow::Result<Option<PatchId>> {
        let patch = self.stacks.patch(id)?;
        Ok(self.top(&patch.below))
    }

    /// Compares two stacks here. Both are read down to the first patch that is the same on the
    /// same patches: what that costs is how far they are apart, not how long they are.
    ///
    /// # Errors
    /// If a patch cannot be read.
    pub fn difference(
        &mut self,
        one: Option<PatchId>,
        other: Option<PatchId>,
    ) -> anyhow::Result<StackDifference> {
        let (base, [ours, theirs]) = self.heads(one, other)?;
        // A patch can be there on others than it was made on.
        let (our_changes, their_changes) = (self.changes(&ours)?, self.changes(&theirs)?);
        let only = |ids: &[PatchId], own: &[CommitId], others: &[CommitId]| -> Vec<PatchId> {
            let both = ids.iter().zip(own);
            both.filter(|(_, after)| !others.contains(after))
                .map(|(id, _)| *id)
                .collect()
        };

        let removed = only(&ours, &our_changes, &their_changes);
        let mut added = only(&theirs, &their_changes, &our_changes);
        added.reverse();

        let above = ours.into_iter().rev().collect();
        Ok(StackDifference {
            from: Series { base, above },
            removed,
            added,
        })
    }

    /// Returns the newest patch that two stacks have in common, and what each has above it, newest
    /// first.
    fn heads(
        &mut self,
        one: Option<PatchId>,
        other: Option<PatchId>,
    ) -> anyhow::Result<(Option<PatchId>, [Vec<PatchId>; 2])> {
        let mut at = [one, other];
        let mut seen = [BTreeMap::new(), BTreeMap::new()];
        let mut heads = [Vec::new(), Vec::new()];

        loop {
            for side in [0, 1] {
                let Some(id) = at[side] else { continue };
                if let Some(length) = seen[1 - side].get(&id) {
                    heads[1 - side].truncate(*length);
                    return Ok((Some(id), heads));
                }

                seen[side].insert(id, heads[side].len());
                heads[side].push(id);
                at[side] = self.below(id)?;
            }

            if at == [None, None] {
                return Ok((None, heads));
            }
        }
    }

    /// Returns what names the change of each patch.
    fn changes(&self, ids: &[PatchId]) -> anyhow::Result<Vec<CommitId>> {
        let after = |id: &PatchId| Ok(self.stacks.patch(*id)?.change.after);
        ids.iter().map(after).collect()
    }

    /// Returns whether a change is in a stack.
    ///
    /// # Errors
    /// If a patch cannot be read.
    pub fn has(&mut self, top: Option<PatchId>, change: CommitId) -> anyhow::Result<bool> {
        let mut at = top;
        while let Some(id) = at {
            if self.stacks.patch(id)?.change.after == change {
                return Ok(true);
            }
            at = self.below(id)?;
        }
        Ok(false)
    }

    /// Returns whether two stacks have the same changes.
    ///
    /// # Errors
    /// If a patch cannot be read.
    pub fn are_same(
        &mut self,
        one: Option<PatchId>,
        other: Option<PatchId>,
    ) -> anyhow::Result<bool> {
        let difference = self.difference(one, other)?;
        Ok(difference.removed.is_empty() && difference.added.is_empty())
    }
}

/// The changes in a stack, which is read down as far as one was asked for, and each patch once.
pub struct StackChanges<'a> {
    /// The whole of the files.
    part: PathStacks<'a>,
    /// The newest patch that was not met yet.
    next: Option<PatchId>,
    /// What was met.
    met: HashSet<CommitId>,
}

impl<'a> StackChanges<'a> {
    /// Returns those of a stack.
    pub fn of(stacks: &'a Stacks<'a>, stack: &Stack<PatchId>) -> StackChanges<'a> {
        StackChanges {
            part: PathStacks::new(stacks, b""),
            next: stack.top,
            met: HashSet::new(),
        }
    }

    /// Returns whether a change is in the stack.
    ///
    /// # Errors
    /// If a patch cannot be read.
    pub fn has(&mut self, change: CommitId) -> anyhow::Result<bool> {
        while let Some(id) = self.next
            && !self.met.contains(&change)
        {
            self.met.insert(self.part.stacks.patch(id)?.change.after);
            self.next = self.part.below(id)?;
        }
        Ok(self.met.contains(&change))
    }
}
