//! The stack of a checkout: which turns, of any session, its files contain.
//!
//! A patch is the change of one turn. Publications, the commits that record what was applied to the
//! checkout, link the patches and name them. Everything between two patches is the user's own edit and
//! belongs to neither.

pub mod in_effect;
pub mod record;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::Context as _;

use crate::git::diff;
use crate::git::object::{CommitId, TreeId};
use crate::git::refs;
use crate::git::repository::{MAIN_WORKTREE, Repository};
use crate::host::file::write_atomic;
use crate::session::journal::Journal;
use crate::session::meta::Workspace;
use crate::session::name::SessionName;
use crate::session::publication::{Delta, Publication, Stack};
use crate::session::store::Store;
use crate::session::turn::Turn;
use crate::workspace::file_move::changes_of;

const MAX_BACK: usize = 32;

/// In TeDDy's directory, if TeDDy has written to the main worktree: `git fetch` can fetch the ref of
/// another repository's.
const MARK_MAIN: &str = "published";

/// In the git directory of a linked worktree to which TeDDy has written. git removes it with the
/// worktree: the ref of one that was made later under the same name is about other files.
const MARK_LINKED: &str = "teddy";

/// The change of one turn, with the stack below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub session: String,
    pub turn: u64,
    pub change: Delta,
    pub base: Stack<CommitId>,
}

pub struct Stacks<'a> {
    repository: &'a Repository,
    patches: RefCell<BTreeMap<CommitId, Rc<Patch>>>,
    /// By the newest turn of a session.
    codes: RefCell<BTreeMap<CommitId, Option<Rc<Codes>>>>,
}

type Codes = Vec<Option<CommitId>>;

impl<'a> Stacks<'a> {
    pub fn new(repository: &'a Repository) -> Stacks<'a> {
        Stacks {
            repository,
            patches: RefCell::default(),
            codes: RefCell::default(),
        }
    }

    pub fn reference(&self) -> String {
        format!("refs/teddy/published/{}", self.repository.worktree_name())
    }

    fn mark(&self) -> PathBuf {
        match self.repository.worktree_name() == MAIN_WORKTREE {
            true => self.repository.teddy_dir().join(MARK_MAIN),
            false => self.repository.git_dir().join(MARK_LINKED),
        }
    }

    /// Notes that TeDDy writes to this checkout, before the ref moves.
    pub fn note_written(&self) -> anyhow::Result<()> {
        let mark = self.mark();
        if mark.exists() {
            return Ok(());
        }
        write_atomic(&mark, b"").with_context(|| format!("writing `{}`", mark.display()))
    }

    fn is_written(&self) -> bool {
        self.mark().exists()
    }

    /// Whether a turn that names this worktree ran in it, and not in an earlier one of its name.
    pub fn ran_here(&self, workspace: &Workspace) -> bool {
        workspace.worktree == self.repository.worktree_name() && self.is_written()
    }

    /// Where the ref of this checkout points.
    pub fn published(&self) -> anyhow::Result<Option<CommitId>> {
        match self.is_written() {
            true => refs::read(self.repository, &self.reference()),
            false => Ok(None),
        }
    }

    /// `None` if there is none, or the ref points at something else.
    pub fn last(&self) -> anyhow::Result<Option<(CommitId, Publication)>> {
        let Some(id) = self.published()? else {
            return Ok(None);
        };
        Ok(Publication::read(self.repository, id)?.map(|publication| (id, publication)))
    }

    pub fn is_untouched(&self) -> anyhow::Result<bool> {
        Ok(self.published()?.is_none())
    }

    /// `false` if the published ref is lost. A missing ref is normal before the first snapshot, or
    /// if no recent turn of a session ran here.
    pub fn are_known(&self) -> anyhow::Result<bool> {
        let worktree = self.repository.worktree_name();
        let snapshots = format!("refs/teddy/snapshots/{worktree}");
        if !self.is_untouched()? || refs::read(self.repository, &snapshots)?.is_none() {
            return Ok(true);
        }

        let store = Store {
            repository: self.repository,
        };
        let journal = Journal::new(&self.repository.teddy_dir());
        for (name, id) in store.sessions()? {
            // Sessions of other people were never applied here, even if their worktree has the same
            // name.
            let Some(own) = journal.own_tip(&name, id) else {
                continue;
            };

            let Ok(tip) = Turn::read(self.repository, &name, id) else {
                continue;
            };
            for turn in store.history(tip).take(MAX_BACK) {
                let turn = turn?;
                // Another user's turns were never applied here, even in a session with own turns.
                if journal.is_adopted(turn.commit) || own.foreign == Some(turn.commit) {
                    break;
                }

                let workspace = turn.meta.workspace.as_ref();
                if workspace.is_some_and(|ran| self.ran_here(ran)) && is_patch(&turn) {
                    return Ok(false);
                }
            }
        }

        Ok(true)
    }

    /// `tip` is the newest turn of the current session. Calls `files`, the tree of the user's files,
    /// only if no turn was published here.
    pub fn current(
        &self,
        tip: &Turn,
        files: &dyn Fn() -> anyhow::Result<TreeId>,
    ) -> anyhow::Result<Stack<CommitId>> {
        if let Some((id, publication)) = self.last()? {
            return Ok(publication.stack(id));
        }
        match self.is_untouched()? {
            true => self.checked_out_by_git(tip, files()?),
            false => Ok(Stack::default()),
        }
    }

    /// The stack of files to which TeDDy has not written: the one of the newest turn, if each file
    /// that its turns changed is as it left it, as in a clone of a branch on which they landed.
    /// Otherwise empty, because a guess would revert what the user did since.
    fn checked_out_by_git(&self, tip: &Turn, files: TreeId) -> anyhow::Result<Stack<CommitId>> {
        let empty = Stack::default();
        let Some(after) = tip.workspace.filter(|id| self.repository.has(*id)) else {
            return Ok(empty);
        };
        if !self.are_known()? {
            return Ok(empty);
        }

        let expected = self.expected(tip)?;
        let after = self.repository.commit(after)?.tree;
        let differing = diff::changes(self.repository, after, files)?;
        let differing: HashSet<Vec<u8>> = differing.into_iter().map(|change| change.path).collect();
        if differing.is_empty() {
            return Ok(expected);
        }

        let [_, patches] = stack_differences(self, &empty, &expected)?;
        for id in patches {
            let turn = self.patch(id)?.change;
            for change in changes_of(self.repository, turn)? {
                let path = &change.path;
                if differing.contains(path)
                    && PathStacks::new(self, path).has(expected.at(path), turn.after)?
                {
                    return Ok(empty);
                }
            }
        }

        Ok(expected)
    }

    pub fn after(&self, turn: &Turn) -> anyhow::Result<Stack<CommitId>> {
        let mut turn = turn.clone();
        loop {
            if let Some((id, publication)) = self.publication(&turn)?
                && !self.landed_elsewhere(&turn)?
            {
                return Ok(publication.stack(id));
            }
            match turn.previous {
                Some(previous) => turn = Turn::read(self.repository, &turn.session, previous)?,
                None => return Ok(Stack::default()),
            }
        }
    }

    /// Whether a turn is a landing from another worktree than that of the turn before it. It moved no
    /// files, and says nothing about those of that turn.
    fn landed_elsewhere(&self, turn: &Turn) -> anyhow::Result<bool> {
        let Some(previous) = turn.previous.filter(|_| turn.meta.landed.is_some()) else {
            return Ok(false);
        };
        let previous = Turn::read(self.repository, &turn.session, previous)?;
        let [ran, before] = [turn, &previous].map(|turn| {
            let workspace = turn.meta.workspace.as_ref();
            workspace.map(|workspace| &workspace.worktree)
        });
        Ok(before.is_some() && ran != before)
    }

    /// The stack that a restore to this turn aims at: with its result, applied or not.
    pub fn expected(&self, turn: &Turn) -> anyhow::Result<Stack<CommitId>> {
        match self.own(turn)? {
            Some((id, publication)) => Ok(publication.target_stack(id)),
            // The stack before it would pass for its own.
            None if is_patch(turn)
                && turn.publication.is_some_and(|id| self.repository.has(id)) =>
            {
                Err(says_nothing(turn))
            }
            None => self.after(turn),
        }
    }

    pub fn base_of(&self, turn: &Turn) -> anyhow::Result<Stack<CommitId>> {
        if let Some((_, publication)) = self.own(turn)? {
            return Ok(publication.below);
        }

        if self.publication(turn)?.is_some() {
            return self.after(turn);
        }

        match turn.previous {
            Some(previous) => self.after(&Turn::read(self.repository, &turn.session, previous)?),
            None => Ok(Stack::default()),
        }
    }

    /// `None` if the turn names none, the commit is missing, or it says other things than the turn.
    fn publication(&self, turn: &Turn) -> anyhow::Result<Option<(CommitId, Publication)>> {
        let Some(id) = turn.publication.filter(|id| self.repository.has(*id)) else {
            return Ok(None);
        };
        let Some(publication) = Publication::read(self.repository, id)? else {
            return Ok(None);
        };
        let is_its_own = turn.is_published_by(self.repository, &publication)?;
        Ok(is_its_own.then_some((id, publication)))
    }

    /// Unlike `publication`, skips one that the turn only inherited because it changed nothing.
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

    /// The publication of a turn that changed files.
    pub fn id(&self, turn: &Turn) -> anyhow::Result<CommitId> {
        let own = self.own(turn)?;
        own.map(|(id, _)| id).ok_or_else(|| says_nothing(turn))
    }

    pub fn patch(&self, id: CommitId) -> anyhow::Result<Rc<Patch>> {
        if let Some(patch) = self.patches.borrow().get(&id) {
            return Ok(Rc::clone(patch));
        }

        let damaged = || format!("commit {id} does not say what a turn changed in your files");
        let publication = Publication::read(self.repository, id)?.with_context(damaged)?;
        let patch = Rc::new(Patch {
            change: publication.change.with_context(damaged)?,
            base: publication.below,
            session: publication.session,
            turn: publication.turn,
        });
        self.patches.borrow_mut().insert(id, Rc::clone(&patch));

        Ok(patch)
    }

    /// All sessions here, with their newest turns.
    pub fn sessions(&self) -> anyhow::Result<Vec<(SessionName, CommitId)>> {
        let repository = self.repository;
        Store { repository }.sessions()
    }

    /// The session that has the turn of a patch now. A patch keeps the name that its session had, but
    /// that can be renamed, deleted, or the name of another session by now. `None` if no session has
    /// the turn any more.
    pub fn session_of(
        &self,
        patch: &Patch,
        sessions: &[(SessionName, CommitId)],
    ) -> Option<SessionName> {
        let is_recorded = |name: &SessionName| name.as_str() == patch.session;
        let has_turn = |name: &SessionName, tip: CommitId| {
            let Some(codes) = self.codes(tip) else {
                return is_recorded(name);
            };
            let turn = usize::try_from(patch.turn).ok();
            match turn.and_then(|turn| codes.get(turn).copied()) {
                Some(Some(code)) => code == patch.change.after,
                // Without code, the name is all there is.
                Some(None) => is_recorded(name),
                None => false,
            }
        };
        let recorded = sessions.iter().filter(|(name, _)| is_recorded(name));
        let mut all = recorded.chain(sessions);
        let found = all.find(|(name, tip)| has_turn(name, *tip));
        found.map(|(name, _)| name.clone())
    }

    /// The workspace commits of a session's turns, oldest first. `None` if it cannot be read.
    fn codes(&self, tip: CommitId) -> Option<Rc<Codes>> {
        if let Some(codes) = self.codes.borrow().get(&tip) {
            return codes.clone();
        }

        let (mut codes, mut next) = (Codes::new(), Some(tip));
        while let Some(commit) = next.and_then(|id| self.repository.commit(id).ok()) {
            codes.push(commit.parents.get(1).copied());
            next = commit.parents.first().copied();
        }
        codes.reverse();
        let codes = next.is_none().then(|| Rc::new(codes));
        self.codes.borrow_mut().insert(tip, codes.clone());
        codes
    }
}

fn says_nothing(turn: &Turn) -> anyhow::Error {
    let number = turn.number();
    anyhow::anyhow!("turn {number} does not say what it changed in your files")
}

/// Returns `true` if a turn changed files, applied or not.
pub fn is_patch(turn: &Turn) -> bool {
    let workspace = turn.meta.workspace.as_ref();
    workspace.is_some_and(|workspace| workspace.before != workspace.after)
}

/// Patches on top of others that a caller need not read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Series {
    /// The top of the patches below.
    pub base: Option<CommitId>,
    pub above: Vec<CommitId>,
}

impl Series {
    /// A series that leaves out all patches.
    pub fn up_to(top: Option<CommitId>) -> Series {
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
    pub removed: Vec<CommitId>,
    /// Patches that only the second stack has, oldest first.
    pub added: Vec<CommitId>,
}

/// Returns the patches that only the first stack has, newest first, and those that only the second
/// has, oldest first. Covers all subtrees.
pub fn stack_differences(
    stacks: &Stacks<'_>,
    one: &Stack<CommitId>,
    other: &Stack<CommitId>,
) -> anyhow::Result<[Vec<CommitId>; 2]> {
    let (mut patches, mut visited) = ([Vec::new(), Vec::new()], BTreeSet::new());
    let mut waiting = vec![Vec::new()];
    while let Some(path) = waiting.pop() {
        let mut part = PathStacks::new(stacks, &path);
        let tops = [part.top(one), part.top(other)];
        let StackDifference { removed, added, .. } = part.difference(tops[0], tops[1])?;
        for (list, ids) in patches.iter_mut().zip([removed, added]) {
            for id in ids {
                // A stack of its own for one path leaves out turns that never changed the path.
                if !list.contains(&id) && stacks.changes_path(id, &path)? {
                    list.push(id);
                }
            }
        }

        let split = part.split_paths;
        visited.insert(path);
        waiting.extend(split.into_iter().filter(|path| !visited.contains(path)));
        waiting.sort();
        waiting.dedup();
    }

    Ok(patches)
}

impl Stacks<'_> {
    fn changes_path(&self, id: CommitId, path: &[u8]) -> anyhow::Result<bool> {
        if path.is_empty() {
            return Ok(true);
        }
        let change = self.patch(id)?.change;
        let entry = |commit| {
            let tree = self.repository.commit(commit)?.tree;
            self.repository.entry(tree, path)
        };
        Ok(entry(change.before)? != entry(change.after)?)
    }
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
    pub fn top(&mut self, stack: &Stack<CommitId>) -> Option<CommitId> {
        self.split_paths.extend(stack.apart.keys().cloned());
        stack.at(self.path)
    }

    fn base_of(&mut self, id: CommitId) -> anyhow::Result<Option<CommitId>> {
        let patch = self.stacks.patch(id)?;
        Ok(self.top(&patch.base))
    }

    /// Compares two stacks. Reads only down to the newest common patch, so the cost depends on the
    /// distance and not on the length of the history.
    pub fn difference(
        &mut self,
        one: Option<CommitId>,
        other: Option<CommitId>,
    ) -> anyhow::Result<StackDifference> {
        let (base, [ours, theirs]) = self.heads(one, other)?;
        // A patch that was written again on another base has a new id and the same change. Compare
        // by change, not by id.
        let (our_changes, their_changes) = (self.changes(&ours)?, self.changes(&theirs)?);
        let only = |ids: &[CommitId], own: &[CommitId], others: &[CommitId]| -> Vec<CommitId> {
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
        one: Option<CommitId>,
        other: Option<CommitId>,
    ) -> anyhow::Result<(Option<CommitId>, [Vec<CommitId>; 2])> {
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
    fn changes(&self, ids: &[CommitId]) -> anyhow::Result<Vec<CommitId>> {
        let after = |id: &CommitId| Ok(self.stacks.patch(*id)?.change.after);
        ids.iter().map(after).collect()
    }

    /// Returns `true` if a stack contains a change.
    pub fn has(&mut self, top: Option<CommitId>, change: CommitId) -> anyhow::Result<bool> {
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
        one: Option<CommitId>,
        other: Option<CommitId>,
    ) -> anyhow::Result<bool> {
        let difference = self.difference(one, other)?;
        Ok(difference.removed.is_empty() && difference.added.is_empty())
    }
}
