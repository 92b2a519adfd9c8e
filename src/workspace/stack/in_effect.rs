//! Turns in effect: neither undone nor restored away.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};

use super::Stacks;
use crate::git::diff::TreeChange;
use crate::git::object::CommitId;
use crate::session::meta::RestoreCommand;
use crate::session::publication::{Delta, Stack};
use crate::session::turn::Turn;
use crate::workspace::file_move::changes_of;

/// In effect means: in this stack of turns. Reads no more of it than the turns asked for need.
pub struct InEffect<'a> {
    stacks: &'a Stacks<'a>,
    pub stack: Stack<CommitId>,
    /// By path. The empty path is for all if no path is set apart.
    cache: RefCell<BTreeMap<Vec<u8>, PathSeries>>,
    /// Whether a patch read so far sets a path apart.
    is_split: Cell<bool>,
}

struct PathSeries {
    next: Option<CommitId>,
    changes: HashSet<CommitId>,
}

impl<'a> InEffect<'a> {
    pub fn new(stacks: &'a Stacks<'a>, stack: Stack<CommitId>) -> InEffect<'a> {
        InEffect {
            stacks,
            is_split: Cell::new(!stack.apart.is_empty()),
            stack,
            cache: RefCell::default(),
        }
    }

    /// What a turn changed, as far as it is in effect.
    pub fn of(&self, turn: Delta) -> anyhow::Result<Vec<TreeChange>> {
        let mut changes = Vec::new();
        for change in changes_of(self.stacks.repository, turn)? {
            let mut is_there = self.has_at(b"", turn.after)?;
            if self.is_split.get() {
                is_there = self.has_at(&change.path, turn.after)?;
            }
            if is_there {
                changes.push(change);
            }
        }

        Ok(changes)
    }

    /// Whether a turn is in effect at a path that it changed.
    pub fn has(&self, turn: Delta) -> anyhow::Result<bool> {
        let is_there = self.has_at(b"", turn.after)?;
        match self.is_split.get() {
            true => Ok(!self.of(turn)?.is_empty()),
            false => Ok(is_there),
        }
    }

    fn has_at(&self, path: &[u8], change: CommitId) -> anyhow::Result<bool> {
        let mut cache = self.cache.borrow_mut();
        let series = cache.entry(path.to_vec()).or_insert_with(|| PathSeries {
            next: self.stack.at(path),
            changes: HashSet::new(),
        });
        while let Some(id) = series.next
            && !series.changes.contains(&change)
        {
            let patch = self.stacks.patch(id)?;
            series.changes.insert(patch.change.after);
            series.next = patch.base.at(path);
            if !patch.base.apart.is_empty() {
                self.is_split.set(true);
            }
        }

        Ok(series.changes.contains(&change))
    }
}

/// Undone and not redone. Where the user's side was kept, what such a turn did is still in the
/// files, but it is the user's by now.
#[derive(Default)]
pub struct UndoneTurns {
    /// Whether the newest undo or redo took the turn back.
    states: HashMap<u64, bool>,
    /// A restore replaced the state of older turns, so the files show what remains.
    is_over: bool,
}

impl UndoneTurns {
    /// Turns come newest first.
    pub fn add_restore(&mut self, turn: &Turn) {
        let workspace = turn.meta.workspace.as_ref();
        let Some(restored) = &turn.meta.restored else {
            return;
        };
        if self.is_over || workspace.is_some_and(|workspace| !workspace.synced) {
            return;
        }
        self.is_over = restored.by == RestoreCommand::Restore;
        // A redo ends at the newest turn that it crosses, an undo before the oldest.
        let is_undo = restored.over.iter().all(|number| *number > restored.turn);
        for number in &restored.over {
            self.states.entry(*number).or_insert(is_undo);
        }
    }

    pub fn has(&self, number: u64) -> bool {
        self.states.get(&number).copied().unwrap_or_default()
    }
}
