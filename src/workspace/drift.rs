//! How far the user's files are from what the newest turn of the session in use says: which turns
//! are in them, what git or the user took away since, and what was never brought.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::git::diff;
use crate::git::diff::TreeChange;
use crate::git::object::TreeId;
use crate::session::meta::Status;
use crate::session::name::SessionName;
use crate::session::publication::Stack;
use crate::session::turn::Turn;
use crate::text::path::{lossy, shown};
use crate::workspace::Checkout;
use crate::workspace::branch::{OtherBranch, other_branch};
use crate::workspace::marks::marked;
use crate::workspace::missing::MissingChange;
use crate::workspace::missing::missing;
use crate::workspace::stack::series::{PathStacks, differences};
use crate::workspace::stack::{PatchId, Stacks, is_patch};
use crate::workspace::turn_files::files_of;

/// How many turns back the last one that changed files, or ran here, is looked for.
const MAX_BACK: usize = 32;

/// A turn of any session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnName {
    /// The session.
    pub session: String,
    /// Its number.
    pub turn: u64,
}

/// A turn whose result is not in the user's files, because it overlapped with their own edits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotBrought {
    /// Its number.
    pub turn: u64,
    /// The files that are not as it left them.
    pub files: Vec<String>,
}

/// How far the user's files are from what the newest turn of the session in use says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Whether exactly the turns are in them that were in them after that turn; nothing if that is
    /// not known, or before the first turn.
    pub same_turns: Option<bool>,
    /// Turns in them that were not in them after that turn.
    pub extra: Vec<TurnName>,
    /// Turns that were in them after that turn, and are not.
    pub lacking: Vec<TurnName>,
    /// Files in which something of a turn is missing, and why.
    pub missing: Vec<MissingChange>,
    /// The turn whose result overlapped and is not in them.
    pub not_brought: Option<NotBrought>,
    /// Files in which conflict markers stand.
    pub marked: Vec<String>,
    /// The branch, if it is another one than at the last turn.
    pub branch: Option<OtherBranch>,
    /// Whether nothing was ever brought to them, so that what they have of a turn came with git.
    #[serde(skip)]
    pub untouched: bool,
    /// Whether the newest turn was interrupted, so that nothing of it was to be brought.
    #[serde(skip)]
    pub interrupted: bool,
    /// The ref that would say which turns are in them, if it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_record: Option<String>,
}

/// Returns how far the user's files, whose tree is `now`, are from what the newest turn says.
///
/// # Errors
/// If the repository cannot be read.
pub fn drift(checkout: &Checkout<'_>, tip: &Turn, now: TreeId) -> anyhow::Result<Drift> {
    let stacks = Stacks::new(checkout.repository);
    let mut drift = Drift {
        not_brought: not_brought(checkout, &stacks, tip, &|| Ok(now))?,
        branch: other_branch(checkout, tip)?,
        untouched: stacks.is_untouched()?,
        interrupted: tip.meta.status == Status::Interrupted,
        ..Drift::default()
    };
    if let Some((_, last)) = stacks.last()? {
        drift.marked = shown(&marked(checkout.repository, now, &last.marked)?);
    }

    if !stacks.are_known()? {
        drift.no_record = Some(stacks.reference());
    } else if tip.workspace.is_some() {
        compare(checkout, &stacks, tip, now, &mut drift)?;
    }

    Ok(drift)
}

/// Compares the turns that are in the files with those of the newest turn.
fn compare(
    checkout: &Checkout<'_>,
    stacks: &Stacks<'_>,
    tip: &Turn,
    now: TreeId,
    drift: &mut Drift,
) -> anyhow::Result<()> {
    let (here, wanted) = (stacks.here(tip)?, stacks.wanted(tip)?);
    let [extra, lacking] = differences(stacks, &here, &wanted)?;
    drift.extra = turns_of(stacks, &extra)?;
    drift.lacking = turns_of(stacks, &lacking)?;

    let is_same = extra.is_empty() && lacking.is_empty();
    drift.same_turns = Some(is_same);
    if is_same {
        let left = files_of(checkout, &before_landings(checkout, tip)?)?;
        let own = diff::changes(checkout.repository, left, now)?;
        drift.missing = missing(checkout, tip, stacks, (&wanted, &own))?;
    }

    Ok(())
}

/// Returns the newest turn that is no landing: a landing records the files as they are, so what the user
/// took back before would no longer be missing.
fn before_landings(checkout: &Checkout<'_>, tip: &Turn) -> anyhow::Result<Turn> {
    let mut turn = tip.clone();
    while turn.meta.landed.is_some()
        && !is_patch(&turn)
        && let Some(previous) = turn.previous
    {
        let before = Turn::read(checkout.repository, &turn.session, previous)?;
        if before.workspace.is_none() {
            break;
        }
        turn = before;
    }
    Ok(turn)
}

/// Returns the turn whose result overlapped and is not in the user's files, as long as no other
/// turn changed them and no restore said what to do.
///
/// # Errors
/// If the repository cannot be read.
pub fn not_brought(
    checkout: &Checkout<'_>,
    stacks: &Stacks<'_>,
    tip: &Turn,
    now: &dyn Fn() -> anyhow::Result<TreeId>,
) -> anyhow::Result<Option<NotBrought>> {
    let store = checkout.store();
    for turn in store.history(tip.clone()).take(MAX_BACK) {
        let turn = turn?;
        if turn.meta.restored.is_none() && !is_patch(&turn) {
            continue;
        }

        let Some(files) = left_by(checkout, stacks, &turn, now)? else {
            return Ok(None);
        };
        return Ok(Some(NotBrought {
            turn: turn.number(),
            files,
        }));
    }

    Ok(None)
}

/// Returns the files to which a turn was not brought that are not as it left them.
fn left_by(
    checkout: &Checkout<'_>,
    stacks: &Stacks<'_>,
    turn: &Turn,
    now: &dyn Fn() -> anyhow::Result<TreeId>,
) -> anyhow::Result<Option<Vec<String>>> {
    let is_here = |worktree: &str| worktree == checkout.repository.worktree_name();
    let Some(workspace) = turn
        .meta
        .workspace
        .as_ref()
        .filter(|workspace| is_here(&workspace.worktree))
    else {
        return Ok(None);
    };

    let is_brought = match stacks.own(turn)? {
        Some((_, own)) => own.applied && own.left.is_empty(),
        None => workspace.synced && workspace.overlaps.is_empty(),
    };
    // The plan of an interrupted turn waits again: nothing of it was to be brought.
    if is_brought || turn.meta.status == Status::Interrupted {
        return Ok(None);
    }

    let (here, wanted) = (stacks.here(turn)?, stacks.wanted(turn)?);
    let (mut there, now) = (Presence::new(stacks, turn)?, now()?);
    let mut files = Vec::new();
    for change in diff::changes(
        checkout.repository,
        checkout.repository.commit(workspace.before)?.tree,
        checkout.repository.commit(workspace.after)?.tree,
    )? {
        let differs = checkout.repository.entry(now, &change.path)? != change.new;
        if differs && !there.has(&change, [&here, &wanted])? {
            files.push(lossy(&change.path));
        }
    }

    Ok((!files.is_empty()).then_some(files))
}

/// Says whether what a turn was to bring is in a file; each stack is looked through once.
struct Presence<'a> {
    /// What reads stacks.
    stacks: &'a Stacks<'a>,
    /// What the turn changed, unless it is a restore.
    patch: Option<PatchId>,
    /// What was found.
    known: BTreeMap<[Option<PatchId>; 2], bool>,
}

impl<'a> Presence<'a> {
    /// Has found nothing yet.
    fn new(stacks: &'a Stacks<'a>, turn: &Turn) -> anyhow::Result<Presence<'a>> {
        let patch = match turn.meta.restored {
            Some(_) => None,
            None => Some(stacks.id(turn)?),
        };
        Ok(Presence {
            stacks,
            patch,
            known: BTreeMap::new(),
        })
    }

    /// Returns whether it is in the file of a change.
    fn has(
        &mut self,
        change: &TreeChange,
        [here, wanted]: [&Stack<PatchId>; 2],
    ) -> anyhow::Result<bool> {
        let tops = [here.at(&change.path), wanted.at(&change.path)];
        if let Some(known) = self.known.get(&tops) {
            return Ok(*known);
        }

        let mut part = PathStacks::new(self.stacks, &change.path);
        let is_there = match self.patch {
            Some(id) => part.has(tops[0], self.stacks.patch(id)?.change.after)?,
            None => part.are_same(tops[0], tops[1])?,
        };
        self.known.insert(tops, is_there);

        Ok(is_there)
    }
}

impl Drift {
    /// Returns whether nothing speaks against the files being as the newest turn left them.
    pub fn is_as_left(&self) -> bool {
        self.same_turns != Some(false) && self.missing.is_empty() && self.no_record.is_none()
    }
}

/// Returns the turns of other sessions that a restore of this one took out of the files, without
/// the turns that it went back over: a branch has some that were made in another session. That a
/// turn is gone from a file in which both had worked surprises whoever undoes only their own.
///
/// # Errors
/// If a patch cannot be read.
pub fn taken_from_others(
    stacks: &Stacks<'_>,
    session: &SessionName,
    over: &[PatchId],
    [before, after]: [&Stack<PatchId>; 2],
) -> anyhow::Result<Vec<TurnName>> {
    let [mut removed, _] = differences(stacks, before, after)?;
    removed.retain(|patch| !over.contains(patch));
    let mut turns = turns_of(stacks, &removed)?;
    turns.retain(|turn| turn.session != session.as_str());
    Ok(turns)
}

/// Returns the numbers of the turns of a session that a restore took out of the files.
///
/// # Errors
/// If a patch cannot be read.
pub fn taken_of(
    stacks: &Stacks<'_>,
    session: &SessionName,
    [before, after]: [&Stack<PatchId>; 2],
) -> anyhow::Result<Vec<u64>> {
    let [removed, _] = differences(stacks, before, after)?;
    let turns = turns_of(stacks, &removed)?.into_iter();
    let own = turns.filter(|turn| turn.session == session.as_str());
    Ok(own.map(|turn| turn.turn).collect())
}

/// Returns the turns of some patches, each once.
fn turns_of(stacks: &Stacks<'_>, ids: &[PatchId]) -> anyhow::Result<Vec<TurnName>> {
    let name = |id: &PatchId| {
        let patch = stacks.patch(*id)?;
        Ok(TurnName {
            session: patch.session.clone(),
            turn: patch.turn,
        })
    };
    let mut turns: Vec<TurnName> = ids.iter().map(name).collect::<anyhow::Result<_>>()?;
    turns.dedup();

    Ok(turns)
}

/// What is said if nobody knows which turns are in the files.
pub const NO_RECORD: &str = "TeDDy has no record of which turns are in your files, so everything in them counts as your own";
