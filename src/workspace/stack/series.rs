//! Compares stacks of patches, separately for each subtree in which they differ.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::{PatchId, Stacks};
use crate::git::object::CommitId;
use crate::session::publication::Stack;

/// Patches from oldest to newest, on top of others that a caller need not read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Series {
    /// The top of the patches below.
    pub base: Option<PatchId>,
    /// The patches above `base`, oldest first.
    pub above: Vec<PatchId>,
}

impl Series {
    /// A series that leaves out all patches.
    pub fn up_to(top: Option<PatchId>) -> Series {
        Series {
            base: top,
            above: Vec::new(),
        }
    }
}

/// Difference between two stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackDifference {
    /// The first stack, above the newest common patch.
    pub from: Series,
    /// Patches that only the first stack has, newest first.
    pub removed: Vec<PatchId>,
    /// Patches that only the second stack has, oldest first.
    pub added: Vec<PatchId>,
}

/// Returns the patches that only the first stack has, newest first, and those that only the second
/// has, oldest first. Covers all subtrees.
pub fn stack_differences(
    stacks: &Stacks<'_>,
    one: &Stack<PatchId>,
    other: &Stack<PatchId>,
) -> anyhow::Result<[Vec<PatchId>; 2]> {
    let (mut patches, mut visited) = ([Vec::new(), Vec::new()], BTreeSet::new());
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let mut part = PathStacks::new(stacks, &path);
        let tops = [part.top(one), part.top(other)];
        let StackDifference { removed, added, .. } = part.difference(tops[0], tops[1])?;
        for (list, ids) in patches.iter_mut().zip([removed, added]) {
            let is_new = |id: &PatchId| !list.contains(id);
            let new: Vec<PatchId> = ids.into_iter().filter(is_new).collect();
            list.extend(new);
        }

        let split = part.split_paths;
        visited.insert(path);
        waiting.extend(split.into_iter().filter(|path| !visited.contains(path)));
        waiting.sort();
        waiting.dedup();
    }

    Ok(patches)
}

/// Stacks as seen in one subtree.
pub struct PathStacks<'a> {
    stacks: &'a Stacks<'a>,
    /// File or directory; empty for the root.
    path: &'a [u8],
    /// Files and directories whose stack differs from this subtree's in some patch read so far.
    /// Each must be compared on its own.
    pub split_paths: BTreeSet<Vec<u8>>,
}

impl<'a> PathStacks<'a> {
    /// Reads stacks in the subtree at `path`.
    pub fn new(stacks: &'a Stacks<'a>, path: &'a [u8]) -> PathStacks<'a> {
        PathStacks {
            stacks,
            path,
            split_paths: BTreeSet::new(),
        }
    }

    /// The top patch of a stack in this subtree.
    pub fn top(&mut self, stack: &Stack<PatchId>) -> Option<PatchId> {
        self.split_paths.extend(stack.apart.keys().cloned());
        stack.at(self.path)
    }

    fn base_of(&mut self, id: PatchId) -> anyhow::Result<Option<PatchId>> {
        let patch = self.stacks.patch(id)?;
        Ok(self.top(&patch.base))
    }

    /// Compares two stacks. Reads only down to the newest common patch, so the cost depends on the
    /// distance and not on the length of the history.
    pub fn difference(
        &mut self,
        one: Option<PatchId>,
        other: Option<PatchId>,
    ) -> anyhow::Result<StackDifference> {
        let (base, [ours, theirs]) = self.heads(one, other)?;
        // A patch that was written again on another base has a new id and the same change. Compare
        // by change, not by id.
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

    /// Returns the newest common patch and what each stack has above it, newest first.
    fn heads(
        &mut self,
        one: Option<PatchId>,
        other: Option<PatchId>,
    ) -> anyhow::Result<(Option<PatchId>, [Vec<PatchId>; 2])> {
        let mut at = [one, other];
        let mut visited = [BTreeMap::new(), BTreeMap::new()];
        let mut heads = [Vec::new(), Vec::new()];

        loop {
            // Descend both stacks in step, so that the cost is the distance to the common patch.
            for side in [0, 1] {
                let Some(id) = at[side] else { continue };
                if let Some(length) = visited[1 - side].get(&id) {
                    heads[1 - side].truncate(*length);
                    return Ok((Some(id), heads));
                }

                visited[side].insert(id, heads[side].len());
                heads[side].push(id);
                at[side] = self.base_of(id)?;
            }

            if at == [None, None] {
                return Ok((None, heads));
            }
        }
    }

    /// The `after` commit of each patch, which identifies its change across rewrites.
    fn changes(&self, ids: &[PatchId]) -> anyhow::Result<Vec<CommitId>> {
        let after = |id: &PatchId| Ok(self.stacks.patch(*id)?.change.after);
        ids.iter().map(after).collect()
    }

    /// Returns `true` if a stack contains a change.
    pub fn has(&mut self, top: Option<PatchId>, change: CommitId) -> anyhow::Result<bool> {
        let mut at = top;
        while let Some(id) = at {
            if self.stacks.patch(id)?.change.after == change {
                return Ok(true);
            }
            at = self.base_of(id)?;
        }
        Ok(false)
    }

    /// Returns `true` if two stacks contain the same changes.
    pub fn are_same(
        &mut self,
        one: Option<PatchId>,
        other: Option<PatchId>,
    ) -> anyhow::Result<bool> {
        let difference = self.difference(one, other)?;
        Ok(difference.removed.is_empty() && difference.added.is_empty())
    }
}

/// The changes of a stack, read lazily and each patch only once.
pub struct StackChanges<'a> {
    part: PathStacks<'a>,
    next: Option<PatchId>,
    met: HashSet<CommitId>,
}

impl<'a> StackChanges<'a> {
    /// Starts at the top of a stack.
    pub fn of(stacks: &'a Stacks<'a>, stack: &Stack<PatchId>) -> StackChanges<'a> {
        StackChanges {
            part: PathStacks::new(stacks, b""),
            next: stack.top,
            met: HashSet::new(),
        }
    }

    /// Returns `true` if the stack contains a change.
    pub fn has(&mut self, change: CommitId) -> anyhow::Result<bool> {
        while let Some(id) = self.next
            && !self.met.contains(&change)
        {
            self.met.insert(self.part.stacks.patch(id)?.change.after);
            self.next = self.part.base_of(id)?;
        }
        Ok(self.met.contains(&change))
    }
}
