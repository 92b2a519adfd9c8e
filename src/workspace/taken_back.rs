//! Files that lack what a turn changed because the user took it back: `status` names them, and `land`
//! refuses them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use crate::git::merge::merge_path;
use crate::git::object::id::TreeChange;
use crate::git::object::{CommitId, TreeEntry, TreeId};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::session::publication::Stack;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::workspace::Checkout;
use crate::workspace::drift::{MissingChange, Remedy, WhyMissing, why_missing};
use crate::workspace::file_move::changes_between;
use crate::workspace::landing::LandingClaims;
use crate::workspace::stack::{Patch, Stacks, is_patch};

/// Turns and patches that are read.
const MAX_BACK: usize = 32;

/// Returns the change of a turn that a file lacks, by its index. `landed` is what a landing of all
/// `changes`, oldest first, does to the version in HEAD.
pub fn find_lacking_change(
    repository: &Repository,
    landed: &TreeChange,
    changes: &[TreeChange],
    now: Option<&TreeEntry>,
) -> anyhow::Result<Option<usize>> {
    if landed.old == landed.new || landed.new.as_ref() == now {
        return Ok(None);
    }
    let newest = changes.len().checked_sub(1);
    let is_back = |old: &Option<TreeEntry>| old.as_ref() == now;
    let is_as_before = is_back(&landed.old) || changes.iter().any(|change| is_back(&change.old));
    if now.is_none() || is_as_before {
        return Ok(newest);
    }
    find_replaced(repository, changes, now)
}

/// Finds a change that the user took back before the next turn changed the file.
fn find_replaced(
    repository: &Repository,
    changes: &[TreeChange],
    now: Option<&TreeEntry>,
) -> anyhow::Result<Option<usize>> {
    for (index, pair) in changes.windows(2).enumerate().rev() {
        let (change, next) = (&pair[0], &pair[1]);
        let mut earlier = changes[..=index].iter();
        if next.old == change.new || !earlier.any(|earlier| earlier.old == next.old) {
            continue;
        }
        // The next turn can have done the same again, or something else instead.
        let versions = [next.old.as_ref(), now, change.new.as_ref()];
        let merged = merge_path(repository, &change.path, versions)?;
        if merged.clean && merged.entry.as_ref() != now {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Change of a file by a patch of the stack.
struct PatchChange {
    id: CommitId,
    patch: Rc<Patch>,
    change: TreeChange,
}

/// Returns the files that lack what turns up to `tip` changed, as a later turn found them, and that a
/// landing would refuse. `now` are the user's files.
pub fn taken_back_before(
    checkout: &Checkout<'_>,
    stacks: &Stacks<'_>,
    tip: &Turn,
    stack: &Stack<CommitId>,
    now: TreeId,
) -> anyhow::Result<Vec<MissingChange>> {
    let repository = checkout.repository;
    let mut by_path = changes_by_path(repository, stacks, stack)?;
    let paths: Vec<Vec<u8>> = by_path.keys().cloned().collect();
    let paths: BTreeSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
    let files = repository.entries_at(now, &paths)?;
    by_path.retain(|path, changes| is_edited(changes, files.get(&**path)));
    if by_path.is_empty() {
        return Ok(Vec::new());
    }

    let (turns, head) = (turns_to_land(checkout, tip)?, refs::head_tree(repository)?);
    let mut missing = Vec::new();
    for (path, changes) in by_path {
        let mut to_land = Vec::new();
        for change in changes {
            let is_to_land = turns.contains(&change.patch.change.after);
            if is_to_land && stacks.has(stack, change.id, &path)? {
                to_land.push(change);
            }
        }
        let (now, committed) = (files.get(&*path), repository.entry(head, &path)?);
        if let Some((why, remedy)) = explain(checkout, tip, &to_land, committed, now)? {
            let path = lossy(&path);
            missing.push(MissingChange { path, why, remedy });
        }
    }
    Ok(missing)
}

/// Oldest first.
fn changes_by_path(
    repository: &Repository,
    stacks: &Stacks<'_>,
    stack: &Stack<CommitId>,
) -> anyhow::Result<BTreeMap<Vec<u8>, Vec<PatchChange>>> {
    let (mut next, mut ids) = (stack.top, Vec::new());
    while let Some(id) = next.filter(|_| ids.len() < MAX_BACK) {
        ids.push(id);
        next = stacks.patch(id)?.base.top;
    }

    let mut by_path: BTreeMap<Vec<u8>, Vec<PatchChange>> = BTreeMap::new();
    for id in ids.into_iter().rev() {
        let patch = stacks.patch(id)?;
        for change in changes_between(repository, patch.change.before, patch.change.after)? {
            let patch = Rc::clone(&patch);
            let changes = by_path.entry(change.path.clone()).or_default();
            changes.push(PatchChange { id, patch, change });
        }
    }
    Ok(by_path)
}

/// Whether something else than these turns changed a file.
fn is_edited(changes: &[PatchChange], now: Option<&TreeEntry>) -> bool {
    let next = changes.iter().skip(1).map(|next| next.change.old.as_ref());
    let after = changes.iter().map(|change| change.change.new.as_ref());
    after
        .zip(next.chain([now]))
        .any(|(after, next)| after != next)
}

/// Returns what the own turns that have not landed left.
fn turns_to_land(checkout: &Checkout<'_>, tip: &Turn) -> anyhow::Result<HashSet<CommitId>> {
    let (mut turns, mut landed) = (HashSet::new(), HashSet::new());
    let mut claims = LandingClaims::new(checkout.repository, &tip.session);
    // Newest first, so a landing comes before the turns that it landed.
    for turn in checkout.store().history(tip.clone()).take(MAX_BACK) {
        let turn = turn?;
        let claim = turn.meta.landed.as_ref();
        let claim = claim.and_then(|claim| claims.believed(turn.number(), turn.commit, claim));
        for commit in claim.iter().flat_map(|landing| &landing.commits) {
            landed.extend(commit.turns.iter().map(|turn| turn.turn_id));
        }
        if let Some(after) = turn.workspace.filter(|_| is_patch(&turn))
            && !landed.contains(&turn.meta.turn_id)
        {
            turns.insert(after);
        }
    }
    Ok(turns)
}

/// Says what a file lacks of `changes`. `None` if it lacks nothing, or their landing conflicts with
/// the version in HEAD.
fn explain(
    checkout: &Checkout<'_>,
    tip: &Turn,
    changes: &[PatchChange],
    committed: Option<TreeEntry>,
    now: Option<&TreeEntry>,
) -> anyhow::Result<Option<(WhyMissing, Remedy)>> {
    let repository = checkout.repository;
    let Some(newest) = changes.last() else {
        return Ok(None);
    };
    let made: Vec<TreeChange> = changes.iter().map(|made| made.change.clone()).collect();
    let is_back = made.iter().any(|change| change.old.as_ref() == now);
    let is_committed = committed.as_ref() == now;
    let is_between = made.windows(2).any(|pair| pair[0].new != pair[1].old);
    // An edit of the user's. Merges take time.
    if now.is_some() && !is_back && !is_committed && !is_between {
        return Ok(None);
    }
    let mut landed = TreeChange {
        path: newest.change.path.clone(),
        old: committed.clone(),
        new: committed,
    };
    for TreeChange { path, old, new } in &made {
        let versions = [old.as_ref(), landed.new.as_ref(), new.as_ref()];
        let merged = merge_path(repository, path, versions)?;
        if !merged.clean {
            return Ok(None);
        }
        landed.new = merged.entry;
    }
    let Some(index) = find_lacking_change(repository, &landed, &made, now)? else {
        return Ok(None);
    };

    let Patch { session, turn, .. } = &*changes[index].patch;
    let why = match refs::head(repository)? {
        _ if now.is_none() => why_missing(checkout, tip, &landed.path)?,
        Some(commit) if !is_back && is_committed => WhyMissing::Committed { commit },
        _ => WhyMissing::TakenBack {
            session: session.clone(),
            turn: *turn,
        },
    };
    let remedy = match index + 1 == made.len() {
        true => Remedy::Restore(*turn),
        // The state after the turn lacks what later turns changed.
        false => Remedy::Pick(*turn),
    };
    Ok(Some((why, remedy)))
}
