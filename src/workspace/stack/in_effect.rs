//! Turns in effect: neither undone nor restored away.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use super::Stacks;
use crate::git::diff::TreeChange;
use crate::git::object::CommitId;
use crate::session::meta::{RestoreCommand, Workspace};
use crate::session::publication::Stack;
use crate::session::turn::Turn;
use crate::workspace::file_move::changes_between;

/// In effect means: in this stack of turns.
pub struct InEffect<'a> {
    stacks: &'a Stacks<'a>,
    stack: Stack<CommitId>,
    /// By path. The empty path is for all if no path is set apart.
    cache: RefCell<BTreeMap<Vec<u8>, Rc<PathSeries>>>,
}

struct PathSeries {
    changes: HashSet<CommitId>,
    /// The same for all paths.
    is_whole: bool,
}

impl<'a> InEffect<'a> {
    pub fn new(stacks: &'a Stacks<'a>, stack: Stack<CommitId>) -> InEffect<'a> {
        InEffect {
            stacks,
            stack,
            cache: RefCell::default(),
        }
    }

    /// What a turn changed, as far as it is in effect.
    pub fn of(&self, workspace: &Workspace) -> anyhow::Result<Vec<TreeChange>> {
        let repository = self.stacks.repository;
        let mut changes = Vec::new();
        for change in changes_between(repository, workspace.before, workspace.after)? {
            if self.at(&change.path)?.changes.contains(&workspace.after) {
                changes.push(change);
            }
        }

        Ok(changes)
    }

    fn at(&self, path: &[u8]) -> anyhow::Result<Rc<PathSeries>> {
        let root = self.series(b"")?;
        if root.is_whole {
            return Ok(root);
        }
        self.series(path)
    }

    fn series(&self, path: &[u8]) -> anyhow::Result<Rc<PathSeries>> {
        if let Some(cached) = self.cache.borrow().get(path) {
            return Ok(Rc::clone(cached));
        }

        let mut series = PathSeries {
            changes: HashSet::new(),
            is_whole: self.stack.apart.is_empty(),
        };
        let mut next = self.stack.at(path);
        while let Some(id) = next {
            let patch = self.stacks.patch(id)?;
            series.changes.insert(patch.change.after);
            series.is_whole &= patch.base.apart.is_empty();
            next = patch.base.at(path);
        }

        let series = Rc::new(series);
        let mut cache = self.cache.borrow_mut();
        cache.insert(path.to_vec(), Rc::clone(&series));
        Ok(series)
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
