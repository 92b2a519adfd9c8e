//! The stack of a checkout: which turns, of any session, are in its files, read from what was
//! published to it.
//!
//! A patch is what one turn changed. Bringing the files to a turn is undoing the patches that are
//! in them and not part of it, and applying those that are missing; what lies between two patches
//! is the user's and belongs to neither. Turns of earlier versions have no publication: their
//! session says what was below them.

pub mod record;
pub mod series;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Context as _;

use crate::git::object::CommitId;
use crate::git::refs;
use crate::git::repository::Repository;
use crate::session::journal::Journal;
use crate::session::publication::{Delta, Publication, Stack};
use crate::session::store::Store;
use crate::session::turn::Turn;

/// How many turns of each session are asked whether they ran in a checkout.
const MAX_BACK: usize = 32;

/// What says what a turn changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatchId {
    /// A publication.
    Published(CommitId),
    /// A turn without one.
    Turn(CommitId),
}

/// What one turn changed, and what was in the files below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// The session of the turn.
    pub session: String,
    /// The number of the turn.
    pub turn: u64,
    /// The change.
    pub change: Delta,
    /// The patches on which it was made.
    pub below: Stack<PatchId>,
}

/// Reads stacks; what was read once is kept.
pub struct Stacks<'a> {
    /// The repository.
    repository: &'a Repository,
    /// The patches that were read.
    patches: RefCell<BTreeMap<PatchId, Rc<Patch>>>,
    /// The turns that stand for patches.
    turns: RefCell<BTreeMap<CommitId, Turn>>,
}

impl<'a> Stacks<'a> {
    /// Reads nothing yet.
    pub fn new(repository: &'a Repository) -> Stacks<'a> {
        Stacks {
            repository,
            patches: RefCell::default(),
            turns: RefCell::default(),
        }
    }

    /// Returns the ref of what was last published to this checkout.
    pub fn reference(&self) -> String {
        format!("refs/teddy/published/{}", self.repository.worktree_name())
    }

    /// Returns the last publication to this checkout; nothing if an earlier version made it.
    ///
    /// # Errors
    /// If the ref or the commit cannot be read.
    pub fn last(&self) -> anyhow::Result<Option<(CommitId, Publication)>> {
        let Some(id) = refs::read(self.repository, &self.reference())? else {
            return Ok(None);
        };
        Ok(Publication::read(self.repository, id)?.map(|publication| (id, publication)))
    }

    /// Returns whether nothing is known to have been brought to this checkout.
    ///
    /// # Errors
    /// If the ref cannot be read.
    pub fn is_untouched(&self) -> anyhow::Result<bool> {
        Ok(refs::read(self.repository, &self.reference())?.is_none())
    }

    /// Returns whether what was brought to this checkout is known: the ref that says it can be
    /// gone. It is not missed where no snapshot was ever taken, or no session ran lately.
    ///
    /// # Errors
    /// If the repository cannot be read.
    pub fn are_known(&self) -> anyhow::Result<bool> {
        let here = self.repository.worktree_name();
        let is_there =
            |name: &str| Ok::<_, anyhow::Error>(refs::read(self.repository, name)?.is_some());
        if is_there(&self.reference())? || !is_there(&format!("refs/teddy/snapshots/{here}"))? {
            return Ok(true);
        }

        let store = Store {
            repository: self.repository,
        };
        let journal = Journal::new(&self.repository.teddy_dir());
        for (name, id) in store.sessions()? {
            // What others made was never brought here, whatever their worktree is called.
            if journal.tip(name.as_str()) != Some(id) {
                continue;
            }

            let Ok(tip) = Turn::read(self.repository, &name, id) else {
                continue;
            };
            for turn in store.history(tip).take(MAX_BACK) {
                let turn = turn?;
                // Nor was what they made before this user adopted it.
                if journal.is_adopted(turn.commit) {
                    break;
                }

                let workspace = turn.meta.workspace.as_ref();
                if workspace.is_some_and(|ran| ran.worktree == here) && is_patch(&turn) {
                    return Ok(false);
                }
            }
        }

        Ok(true)
    }

    /// Returns what is in the files of this checkout; `tip` is the newest turn of the session in
    /// use.
    ///
    /// # Errors
    /// If the repository cannot be read.
    pub fn here(&self, tip: &Turn) -> anyhow::Result<Stack<PatchId>> {
        if let Some((id, publication)) = self.last()? {
            return Ok(publication.stack(id).map(PatchId::Published));
        }

        let brought = refs::read(self.repository, &self.reference())?;
        match self.turn_that_brought(brought, tip)? {
            Some(turn) => self.after(&turn),
            None => Ok(Stack::default()),
        }
    }

    /// Returns the newest turn of the session that brought the files to a workspace commit, which
    /// is all that earlier versions noted of it.
    fn turn_that_brought(
        &self,
        brought: Option<CommitId>,
        tip: &Turn,
    ) -> anyhow::Result<Option<Turn>> {
        let here = self.repository.worktree_name();
        let ran_here = |turn: &Turn| {
            let workspace = turn.meta.workspace.as_ref();
            workspace.is_some_and(|workspace| workspace.worktree == here)
        };
        let store = Store {
            repository: self.repository,
        };

        if brought.is_some() && tip.published() != brought {
            for (name, id) in store.sessions()? {
                let Ok(turn) = Turn::read(self.repository, &name, id) else {
                    continue;
                };
                if turn.published() == brought && ran_here(&turn) {
                    return Ok(Some(turn));
                }
            }
        }

        // Without a ref nothing was ever brought here: what says that it was ran in another clone,
        // whose checkout has the same name.
        for turn in store.history(tip.clone()).take_while(|_| brought.is_some()) {
            let turn = turn?;
            if ran_here(&turn) {
                return Ok(Some(turn));
            }
        }

        Ok(None)
    }

    /// Returns what was in the files after a turn.
    ///
    /// # Errors
    /// If the repository cannot be read.
    pub fn after(&self, turn: &Turn) -> anyhow::Result<Stack<PatchId>> {
        let mut turn = turn.clone();
        loop {
            if let Some((id, publication)) = self.publication(&turn)? {
                return Ok(publication.stack(id).map(PatchId::Published));
            }

            if is_patch(&turn) && turn.published() == turn.workspace {
                return self.after_patch(&turn);
            }

            match turn.previous {
                Some(previous) => turn = Turn::read(self.repository, &turn.session, previous)?,
                None => return Ok(Stack::default()),
            }
        }
    }

    /// Returns what was in the files after a turn without a publication that changed them.
    fn after_patch(&self, turn: &Turn) -> anyhow::Result<Stack<PatchId>> {
        let mut stack = Stack::of(Some(self.stands_for_itself(turn)));
        let workspace = turn.meta.workspace.iter();
        let overlaps: Vec<&String> = workspace
            .flat_map(|workspace| &workspace.overlaps)
            .collect();

        if !overlaps.is_empty() {
            let below = self.below(turn)?;
            for path in overlaps {
                stack.set(path.as_bytes(), below.at(path.as_bytes()));
            }
        }

        Ok(stack)
    }

    /// Returns what a person means by a turn's files: with its result, be it brought or not.
    ///
    /// # Errors
    /// If the repository cannot be read.
    pub fn wanted(&self, turn: &Turn) -> anyhow::Result<Stack<PatchId>> {
        match self.own(turn)? {
            Some((id, publication)) => Ok(publication.wanted(id).map(PatchId::Published)),
            None if turn.publication.is_none() && is_patch(turn) => {
                Ok(Stack::of(Some(self.stands_for_itself(turn))))
            }
            None => self.after(turn),
        }
    }

    /// Returns what was in the files before a turn.
    ///
    /// # Errors
    /// If the repository cannot be read.
    pub fn below(&self, turn: &Turn) -> anyhow::Result<Stack<PatchId>> {
        if let Some((_, publication)) = self.own(turn)? {
            return Ok(publication.below.map(PatchId::Published));
        }

        if self.publication(turn)?.is_some() {
            return self.after(turn);
        }

        match turn.previous {
            Some(previous) => self.after(&Turn::read(self.repository, &turn.session, previous)?),
            None => Ok(Stack::default()),
        }
    }

    /// Returns the publication that a turn names; nothing if it names none or that is gone.
    fn publication(&self, turn: &Turn) -> anyhow::Result<Option<(CommitId, Publication)>> {
        let Some(id) = turn.publication.filter(|id| self.repository.has(*id)) else {
            return Ok(None);
        };
        Ok(Publication::read(self.repository, id)?.map(|publication| (id, publication)))
    }

    /// Returns the publication that a turn made; one that changed nothing names an earlier one.
    pub fn own(&self, turn: &Turn) -> anyhow::Result<Option<(CommitId, Publication)>> {
        let after = turn.workspace;
        Ok(self.publication(turn)?.filter(|(_, publication)| {
            publication.turn == turn.number()
                && match publication.change {
                    Some(change) => Some(change.after) == after && is_patch(turn),
                    None => turn.meta.restored.is_some(),
                }
        }))
    }

    /// Returns what says what a turn changed.
    ///
    /// # Errors
    /// If the repository cannot be read.
    pub fn id(&self, turn: &Turn) -> anyhow::Result<PatchId> {
        Ok(match self.own(turn)? {
            Some((id, _)) => PatchId::Published(id),
            None => self.stands_for_itself(turn),
        })
    }

    /// Returns the id of a turn that has no publication.
    fn stands_for_itself(&self, turn: &Turn) -> PatchId {
        let mut turns = self.turns.borrow_mut();
        turns.entry(turn.commit).or_insert_with(|| turn.clone());
        PatchId::Turn(turn.commit)
    }

    /// Reads a patch.
    ///
    /// # Errors
    /// If it is gone or damaged.
    pub fn patch(&self, id: PatchId) -> anyhow::Result<Rc<Patch>> {
        if let Some(patch) = self.patches.borrow().get(&id) {
            return Ok(Rc::clone(patch));
        }

        let patch = match id {
            PatchId::Published(commit) => self.published_patch(commit)?,
            PatchId::Turn(commit) => self.turns_patch(commit)?,
        };
        let patch = Rc::new(patch);
        self.patches.borrow_mut().insert(id, Rc::clone(&patch));

        Ok(patch)
    }

    /// Reads the patch of a publication.
    fn published_patch(&self, id: CommitId) -> anyhow::Result<Patch> {
        let damaged = || format!("commit {id} does not say what a turn changed in your files");
        let publication = Publication::read(self.repository, id)?.with_context(damaged)?;
        Ok(Patch {
            change: publication.change.with_context(damaged)?,
            below: publication.below.map(PatchId::Published),
            session: publication.session,
            turn: publication.turn,
        })
    }

    /// Reads the patch of a turn.
    fn turns_patch(&self, id: CommitId) -> anyhow::Result<Patch> {
        let turn = self.turns.borrow().get(&id).cloned();
        let turn = turn.with_context(|| format!("turn {id} is not known"))?;
        let workspace = turn.meta.workspace.as_ref();
        let workspace = workspace.with_context(|| format!("turn {id} changed no files"))?;
        Ok(Patch {
            session: turn.recorded_session(self.repository)?.to_string(),
            turn: turn.number(),
            change: Delta {
                before: workspace.before,
                after: workspace.after,
            },
            below: self.below(&turn)?,
        })
    }
}

/// Returns whether a turn changed files, be the result brought or not.
pub fn is_patch(turn: &Turn) -> bool {
    let workspace = turn.meta.workspace.as_ref();
    workspace.is_some_and(|workspace| workspace.before != workspace.after)
}
