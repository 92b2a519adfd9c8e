//! How the user's files differ from what the newest turn of the current session recorded: extra and
//! missing turns, changes that git or the user removed since, and results that were never applied.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::git::diff;
use crate::git::diff::TreeChange;
use crate::git::object::TreeId;
use crate::session::meta::Status;
use crate::session::name::SessionName;
use crate::session::publication::Stack;
use crate::session::turn::Turn;
use crate::text::path::{lossy, lossy_paths};
use crate::workspace::Checkout;
use crate::workspace::branch::{OtherBranch, other_branch};
use crate::workspace::marks::find_conflict_markers;
use crate::workspace::missing::MissingChange;
use crate::workspace::missing::find_missing_changes;
use crate::workspace::stack::series::{PathStacks, stack_differences};
use crate::workspace::stack::{PatchId, Stacks, is_patch};
use crate::workspace::turn_files::turn_tree;

const MAX_BACK: usize = 32;

/// A turn of any session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnName {
    /// Session name.
    pub session: String,
    /// Turn number.
    pub turn: u64,
}

/// A turn whose result was not applied because it conflicted with the user's edits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotBrought {
    /// Turn number.
    pub turn: u64,
    /// Files that still differ from its result.
    pub files: Vec<String>,
}

/// How the user's files differ from what the newest turn of the current session recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Whether the files contain exactly the turns that they contained after that turn. `None` if
    /// unknown, or before the first turn.
    pub same_turns: Option<bool>,
    /// Turns in the files that were not in them after that turn.
    pub extra: Vec<TurnName>,
    /// Turns that were in the files after that turn and are not now.
    pub lacking: Vec<TurnName>,
    /// Files that lack a change of a turn, with the reason.
    pub missing: Vec<MissingChange>,
    /// The newest turn with files, if its result conflicted and was not applied.
    pub not_brought: Option<NotBrought>,
    /// Files with conflict markers from a restore.
    pub marked: Vec<String>,
    /// Set if the user is on another branch than at the last turn.
    pub branch: Option<OtherBranch>,
    /// No turn was ever applied to this checkout. Changes of turns that the files have came with
    /// git.
    #[serde(skip)]
    pub untouched: bool,
    /// The newest turn was interrupted, so none of it should be in the files.
    #[serde(skip)]
    pub interrupted: bool,
    /// Name of the published ref, if it is lost and the turns in the files are therefore unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_record: Option<String>,
}

/// Compares the user's files, whose tree is `now`, with what the newest turn recorded.
pub fn drift(checkout: &Checkout<'_>, tip: &Turn, now: TreeId) -> anyhow::Result<Drift> {
    let stacks = Stacks::new(checkout.repository);
    let mut drift = Drift {
        not_brought: find_unapplied(checkout, &stacks, tip, &|| Ok(now))?,
        branch: other_branch(checkout, tip)?,
        untouched: stacks.is_untouched()?,
        interrupted: tip.meta.status == Status::Interrupted,
        ..Drift::default()
    };
    if let Some((_, last)) = stacks.last()? {
        drift.marked = lossy_paths(&find_conflict_markers(
            checkout.repository,
            now,
            &last.marked,
        )?);
    }

    if !stacks.are_known()? {
        drift.no_record = Some(stacks.reference());
    } else if tip.workspace.is_some() {
        compare_stacks(checkout, &stacks, tip, now, &mut drift)?;
    }

    Ok(drift)
}

/// Compares the stack in the files with the one that the newest turn wants.
fn compare_stacks(
    checkout: &Checkout<'_>,
    stacks: &Stacks<'_>,
    tip: &Turn,
    now: TreeId,
    drift: &mut Drift,
) -> anyhow::Result<()> {
    let (current, expected) = (stacks.current(tip)?, stacks.expected(tip)?);
    let [extra, lacking] = stack_differences(stacks, &current, &expected)?;
    drift.extra = turns_of(stacks, &extra)?;
    drift.lacking = turns_of(stacks, &lacking)?;

    let is_same = extra.is_empty() && lacking.is_empty();
    drift.same_turns = Some(is_same);
    // Single files are compared only if the stacks agree; otherwise every file of the differing
    // turns would be listed.
    if is_same {
        let last_tree = turn_tree(checkout, &before_landings(checkout, tip)?)?;
        let own = diff::changes(checkout.repository, last_tree, now)?;
        drift.missing = find_missing_changes(checkout, tip, stacks, (&expected, &own))?;
    }

    Ok(())
}

/// Returns the newest turn before landings. A landing records the files unchanged, so changes that the
/// user reverted before it would no longer count as missing.
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
/// `now` is only called if the turn was not applied, because it takes a snapshot.
pub fn find_unapplied(
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

/// Files of an unapplied turn that differ from its result. `None` if it was applied or ran in
/// another checkout.
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
    // The plan of an interrupted turn becomes the next draft; its result is not meant to be
    // applied.
    if is_brought || turn.meta.status == Status::Interrupted {
        return Ok(None);
    }

    let (current, expected) = (stacks.current(turn)?, stacks.expected(turn)?);
    let (mut presence, now) = (Presence::new(stacks, turn)?, now()?);
    let mut files = Vec::new();
    for change in diff::changes(
        checkout.repository,
        checkout.repository.commit(workspace.before)?.tree,
        checkout.repository.commit(workspace.after)?.tree,
    )? {
        // A file can contain the change and differ, because it was edited or another turn changed
        // it since.
        let differs = checkout.repository.entry(now, &change.path)? != change.new;
        if differs && !presence.has(&change, [&current, &expected])? {
            files.push(lossy(&change.path));
        }
    }

    Ok((!files.is_empty()).then_some(files))
}

/// Whether a file contains the change of a turn. Caches the answer by stack, because most files
/// share one.
struct Presence<'a> {
    stacks: &'a Stacks<'a>,
    /// `None` for a restore, which is compared by its whole stack instead.
    patch: Option<PatchId>,
    /// Results, by the current and the wanted top of the stack.
    cache: BTreeMap<[Option<PatchId>; 2], bool>,
}

impl<'a> Presence<'a> {
    fn new(stacks: &'a Stacks<'a>, turn: &Turn) -> anyhow::Result<Presence<'a>> {
        let patch = match turn.meta.restored {
            Some(_) => None,
            None => Some(stacks.id(turn)?),
        };
        Ok(Presence {
            stacks,
            patch,
            cache: BTreeMap::new(),
        })
    }

    fn has(
        &mut self,
        change: &TreeChange,
        [current, expected]: [&Stack<PatchId>; 2],
    ) -> anyhow::Result<bool> {
        let tops = [current.at(&change.path), expected.at(&change.path)];
        if let Some(cached) = self.cache.get(&tops) {
            return Ok(*cached);
        }

        let mut part = PathStacks::new(self.stacks, &change.path);
        let is_there = match self.patch {
            Some(id) => part.has(tops[0], self.stacks.patch(id)?.change.after)?,
            None => part.are_same(tops[0], tops[1])?,
        };
        self.cache.insert(tops, is_there);

        Ok(is_there)
    }
}

impl Drift {
    /// Returns `true` if nothing suggests that the files differ from how the newest turn left them.
    /// Edits by the user do not count.
    pub fn is_as_left(&self) -> bool {
        self.same_turns != Some(false) && self.missing.is_empty() && self.no_record.is_none()
    }
}

/// Returns the turns of other sessions that a restore removed from the files.
///
/// `over` lists the turns that the restore crossed. On a branched session some of those belong to
/// another session by name and are expected to go; only the others surprise the user.
pub fn taken_from_others(
    stacks: &Stacks<'_>,
    session: &SessionName,
    crossed: &[PatchId],
    [before, after]: [&Stack<PatchId>; 2],
) -> anyhow::Result<Vec<TurnName>> {
    let [mut removed, _] = stack_differences(stacks, before, after)?;
    removed.retain(|patch| !crossed.contains(patch));
    let mut turns = turns_of(stacks, &removed)?;
    turns.retain(|turn| turn.session != session.as_str());
    Ok(turns)
}

/// Returns the numbers of the session's own turns that a restore removed from the files.
pub fn taken_of(
    stacks: &Stacks<'_>,
    session: &SessionName,
    [before, after]: [&Stack<PatchId>; 2],
) -> anyhow::Result<Vec<u64>> {
    let [removed, _] = stack_differences(stacks, before, after)?;
    let turns = turns_of(stacks, &removed)?.into_iter();
    let own = turns.filter(|turn| turn.session == session.as_str());
    Ok(own.map(|turn| turn.turn).collect())
}

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

/// Shown if the published ref is lost.
pub const NO_RECORD: &str = "TeDDy has no record of which turns are in your files, so everything in them counts as your own";
