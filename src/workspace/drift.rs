//! Explains how the user's files differ from what the newest turn of the current session recorded:
//! extra and missing turns, changes that git or the user removed since, results never applied.
//!
//! Read-only, and takes no lock. Each search goes back a bounded number of turns; what is older
//! than that is not explained.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::git::diff::{self, TreeChange};
use crate::git::merge::keeps_ours;
use crate::git::object::{CommitId, TreeEntry, TreeId};
use crate::git::refs;
use crate::session::meta::{Status, Workspace};
use crate::session::name::SessionName;
use crate::session::publication::Stack;
use crate::session::turn::Turn;
use crate::text::path::{lossy, lossy_paths};
use crate::workspace::Checkout;
use crate::workspace::file_move::{changes_of, find_conflict_markers};
use crate::workspace::stack::{Patch, PathStacks, Stacks, is_patch, stack_differences};

const MAX_BACK: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TurnName {
    pub session: String,
    pub turn: u64,
    /// No session has it any more; `session` is the name of the one that had it.
    #[serde(rename = "deleted", skip_serializing_if = "std::ops::Not::not")]
    pub is_deleted: bool,
}

/// A turn whose result was not applied because it conflicted with the user's edits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotBrought {
    pub turn: u64,
    /// Those that still differ from its result.
    pub files: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// Whether the files contain exactly the turns of that moment. `None` if unknown, or before the
    /// first turn.
    pub same_turns: Option<bool>,
    /// Turns in the files that were not in them after that turn.
    pub extra: Vec<TurnName>,
    /// Turns that were in the files after that turn and are not now.
    pub lacking: Vec<TurnName>,
    pub missing: Vec<MissingChange>,
    /// The turn whose files have what is missing.
    #[serde(skip)]
    pub compared: Option<u64>,
    /// The newest turn with files, if its result conflicted and was not applied.
    pub not_brought: Option<NotBrought>,
    /// Files with conflict markers that TeDDy wrote.
    pub marked: Vec<String>,
    pub branch: Option<OtherBranch>,
    /// No turn was ever applied here: the files have changes of turns only through git.
    #[serde(skip)]
    pub untouched: bool,
    /// The newest turn was interrupted, so none of it should be in the files.
    #[serde(skip)]
    pub interrupted: bool,
    /// Name of the published ref, if it is lost: the turns in the files are then unknown.
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
    drift.marked = lossy_paths(&find_marked(checkout, &stacks, &|| Ok(now))?);

    if !stacks.are_known()? {
        drift.no_record = Some(stacks.reference());
    } else if tip.workspace.is_some() {
        compare_stacks(checkout, &stacks, tip, now, &mut drift)?;
    }

    Ok(drift)
}

/// Finds the files that still have conflict markers of a restore, a pick or an archive.
///
/// Calls `now`, which takes a snapshot, only if there were some.
pub fn find_marked(
    checkout: &Checkout<'_>,
    stacks: &Stacks<'_>,
    now: &dyn Fn() -> anyhow::Result<TreeId>,
) -> anyhow::Result<Vec<Vec<u8>>> {
    match stacks.last()? {
        Some((_, last)) if !last.marked.is_empty() => {
            find_conflict_markers(checkout.repository, now()?, &last.marked)
        }
        _ => Ok(Vec::new()),
    }
}

/// Compares the stack in the files with the one that the newest turn wants.
fn compare_stacks(
    checkout: &Checkout<'_>,
    stacks: &Stacks<'_>,
    tip: &Turn,
    now: TreeId,
    drift: &mut Drift,
) -> anyhow::Result<()> {
    let (current, expected) = (stacks.current(tip, &|| Ok(now))?, stacks.expected(tip)?);
    let [extra, lacking] = stack_differences(stacks, &current, &expected)?;
    drift.extra = turns_of(stacks, &extra)?;
    drift.lacking = turns_of(stacks, &lacking)?;

    let is_same = extra.is_empty() && lacking.is_empty();
    drift.same_turns = Some(is_same);
    // Single files are compared only if the stacks agree; otherwise every file of the differing
    // turns would be listed.
    if is_same {
        let compared = compared_turn(checkout, stacks, tip)?;
        drift.compared = Some(compared.number());
        let last_tree = turn_tree(checkout, &compared)?;
        let own = diff::changes(checkout.repository, last_tree, now)?;
        drift.missing = find_missing_changes(checkout, tip, stacks, &expected, &own)?;
    }

    Ok(())
}

/// Returns the turn whose files are compared with the user's for what turns did: the one that a
/// restore went to, or the one before a landing, if it has the same turns. A restore and a landing
/// record the files as they find them, so changes that the user reverted before them would no longer
/// count as missing.
pub fn compared_turn(
    checkout: &Checkout<'_>,
    stacks: &Stacks<'_>,
    turn: &Turn,
) -> anyhow::Result<Turn> {
    let mut turn = turn.clone();
    loop {
        let number = match &turn.meta.restored {
            Some(restored) => Some(restored.turn),
            None if turn.meta.landed.is_some() && !is_patch(&turn) => turn.number().checked_sub(1),
            None => None,
        };
        let Some(number) = number.filter(|number| *number < turn.number()) else {
            return Ok(turn);
        };

        let before = checkout.store().earlier(&turn, number)?;
        let expected = [stacks.expected(&before)?, stacks.expected(&turn)?];
        let mut differing = stack_differences(stacks, &expected[0], &expected[1])?.into_iter();
        if before.workspace.is_none() || differing.any(|turns| !turns.is_empty()) {
            return Ok(turn);
        }
        turn = before;
    }
}

/// Finds the newest turn with files that ran here, if its result conflicted and the files still lack
/// it. A later restore decides the matter: then `None`.
///
/// Calls `now`, which takes a snapshot, only if the turn was not applied.
pub fn find_unapplied(
    checkout: &Checkout<'_>,
    stacks: &Stacks<'_>,
    tip: &Turn,
    now: &dyn Fn() -> anyhow::Result<TreeId>,
) -> anyhow::Result<Option<NotBrought>> {
    let store = checkout.store();
    for turn in store.history(tip.clone()).take(MAX_BACK) {
        let turn = turn?;
        let workspace = turn.meta.workspace.as_ref();
        let is_of_here = is_patch(&turn) && workspace.is_some_and(|ran| stacks.ran_here(ran));
        if turn.meta.restored.is_none() && !is_of_here {
            continue;
        }

        let files = left_by(checkout, stacks, &turn, now)?;
        return Ok(files.map(|files| NotBrought {
            turn: turn.number(),
            files,
        }));
    }

    Ok(None)
}

/// Files of an unapplied turn that differ from its result. `None` if it was applied or ran in
/// another checkout.
///
/// Calls `now`, which takes a snapshot, only if the turn was not applied.
pub fn left_by(
    checkout: &Checkout<'_>,
    stacks: &Stacks<'_>,
    turn: &Turn,
    now: &dyn Fn() -> anyhow::Result<TreeId>,
) -> anyhow::Result<Option<Vec<String>>> {
    let workspace = turn.meta.workspace.as_ref();
    let Some(workspace) = workspace.filter(|workspace| stacks.ran_here(workspace)) else {
        return Ok(None);
    };

    // The plan of an interrupted turn becomes the next draft; its result is not meant to be
    // applied.
    if is_applied(stacks, turn)? || turn.meta.status == Status::Interrupted {
        return Ok(None);
    }

    let (current, expected) = (stacks.current(turn, now)?, stacks.expected(turn)?);
    // A restore is compared by its whole stack instead.
    let change = match turn.meta.restored {
        Some(_) => None,
        None => Some(stacks.patch(stacks.id(turn)?)?.change.after),
    };
    // By stack, because most files share one.
    let mut cache = BTreeMap::new();
    let mut has_turn = |path: &[u8]| -> anyhow::Result<bool> {
        let tops = [current.at(path), expected.at(path)];
        if let Some(cached) = cache.get(&tops) {
            return Ok(*cached);
        }
        let mut part = PathStacks::new(stacks, path);
        let is_there = match change {
            Some(change) => part.has(tops[0], change)?,
            None => part.are_same(tops[0], tops[1])?,
        };
        cache.insert(tops, is_there);
        Ok(is_there)
    };

    let (now, mut files) = (now()?, Vec::new());
    for change in changes_of(checkout.repository, workspace.change())? {
        // A file can contain the change and differ, because it was edited or another turn changed
        // it since.
        let differs = checkout.repository.entry(now, &change.path)? != change.new;
        if differs && !has_turn(&change.path)? {
            files.push(lossy(&change.path));
        }
    }

    Ok((!files.is_empty()).then_some(files))
}

/// Whether all of the result was applied where the turn ran. What the user did since does not count.
pub fn is_applied(stacks: &Stacks<'_>, turn: &Turn) -> anyhow::Result<bool> {
    if let Some((_, own)) = stacks.own(turn)? {
        return Ok(own.applied && own.left.is_empty());
    }
    let workspace = turn.meta.workspace.as_ref();
    Ok(workspace.is_none_or(Workspace::is_whole))
}

impl Drift {
    /// Edits by the user do not count.
    pub fn is_as_left(&self) -> bool {
        self.same_turns != Some(false) && self.missing.is_empty() && self.no_record.is_none()
    }
}

/// Returns the turns of other sessions that a restore removed, without those in `crossed`: a
/// branched session contains turns under another session's name, which are expected to go.
pub fn taken_from_others(
    stacks: &Stacks<'_>,
    session: &SessionName,
    crossed: &[CommitId],
    before: &Stack<CommitId>,
    after: &Stack<CommitId>,
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
    own: &[CommitId],
    before: &Stack<CommitId>,
    after: &Stack<CommitId>,
) -> anyhow::Result<Vec<u64>> {
    let [removed, _] = stack_differences(stacks, before, after)?;
    let sessions = stacks.sessions()?;
    let mut turns = Vec::new();
    for id in removed {
        let patch = stacks.patch(id)?;
        if own.contains(&id) || stacks.session_of(&patch, &sessions).as_ref() == Some(session) {
            turns.push(patch.turn);
        }
    }
    turns.dedup();
    Ok(turns)
}

fn turns_of(stacks: &Stacks<'_>, ids: &[CommitId]) -> anyhow::Result<Vec<TurnName>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sessions = stacks.sessions()?;
    let name = |id: &CommitId| {
        let patch = stacks.patch(*id)?;
        let session = stacks.session_of(&patch, &sessions);
        Ok(TurnName {
            is_deleted: session.is_none(),
            session: session.map_or_else(|| patch.session.clone(), |name| name.to_string()),
            turn: patch.turn,
        })
    };
    let mut turns: Vec<TurnName> = ids.iter().map(name).collect::<anyhow::Result<_>>()?;
    turns.dedup();

    Ok(turns)
}

/// Shown if the published ref is lost.
pub const NO_RECORD: &str = "TeDDy has no record of which turns are in your files, so everything in them counts as your own";

// A stack contains changes that git or the user removed from the files since. What follows
// finds and explains them.

const MAX_EXPLAINED: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingChange {
    pub path: String,
    #[serde(flatten)]
    pub why: WhyMissing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum WhyMissing {
    Deleted,
    /// It is on disk, and git ignores it now.
    Ignored,
    /// It is not on the branch that the user changed to.
    NotOnBranch {
        branch: String,
    },
    /// It has its content from before a turn.
    TakenBack {
        /// Session of that turn.
        session: String,
        turn: u64,
    },
    /// It equals the version in the user's HEAD commit.
    Committed {
        commit: CommitId,
    },
    /// A nested repository, which only the user moves: to this commit, if it exists.
    Repository {
        #[serde(skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
    },
    /// A file is in place of one of its directories.
    Blocked {
        file: String,
    },
}

/// Returns the changes of the stack that the user's files lack. `own` are the user's differences
/// from the result of `tip`; those that match no known state are edits and not reported, like a
/// deleted file that no turn changed.
pub fn find_missing_changes(
    checkout: &Checkout<'_>,
    tip: &Turn,
    stacks: &Stacks<'_>,
    stack: &Stack<CommitId>,
    own: &[TreeChange],
) -> anyhow::Result<Vec<MissingChange>> {
    let mut missing_changes: Vec<MissingChange> = Vec::new();
    let mut open: BTreeMap<&[u8], &TreeChange> = own
        .iter()
        .map(|change| (change.path.as_slice(), change))
        .collect();

    // Newest first, so that the newest turn that explains a file is named.
    let (mut at, mut is_split) = (stack.top, !stack.apart.is_empty());
    for _ in 0..MAX_EXPLAINED {
        let Some(id) = at.filter(|_| !open.is_empty()) else {
            break;
        };
        let patch = stacks.patch(id)?;
        for change in changes_of(checkout.repository, patch.change)? {
            let Some(own) = open.get(change.path.as_slice()).copied() else {
                continue;
            };
            let why = match (&own.new, &change.new) {
                (None, None) => None,
                (None, Some(_)) => Some(why_missing(checkout, tip, own)?),
                // A new file is the user's own, unless a turn deleted just this.
                (Some(_), _) if own.old.is_none() && own.new != change.old => None,
                (Some(_), _) => explain_missing(checkout, &patch, &change, own)?,
            };
            if let Some(why) = why {
                open.remove(change.path.as_slice());
                missing_changes.push(MissingChange {
                    path: lossy(&change.path),
                    why,
                });
            }
        }

        at = patch.base.top;
        is_split |= !patch.base.apart.is_empty();
    }

    // Turns that were not read can have files that are gone.
    let is_open = at.is_some() || is_split;
    for change in open
        .values()
        .filter(|change| is_open && change.new.is_none())
    {
        missing_changes.push(MissingChange {
            path: lossy(&change.path),
            why: why_missing(checkout, tip, change)?,
        });
    }

    missing_changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(missing_changes)
}

/// `own` is the user's difference: the file is gone.
fn why_missing(
    checkout: &Checkout<'_>,
    tip: &Turn,
    own: &TreeChange,
) -> anyhow::Result<WhyMissing> {
    let path = &own.path;
    if own.old.as_ref().is_some_and(TreeEntry::is_repository) {
        return Ok(WhyMissing::Repository { commit: None });
    }
    if checkout.repository.has_file(path) {
        return Ok(WhyMissing::Ignored);
    }
    if let Some(file) = checkout.repository.file_above(path) {
        let file = lossy(&file);
        return Ok(WhyMissing::Blocked { file });
    }
    let is_committed = checkout
        .repository
        .entry(refs::head_tree(checkout.repository)?, path)?
        .is_some();
    let other = other_branch(checkout, tip)?.filter(|_| !is_committed);
    Ok(
        other.map_or(WhyMissing::Deleted, |other| WhyMissing::NotOnBranch {
            branch: other.now,
        }),
    )
}

/// `own` is the user's difference from the result of the newest turn.
fn explain_missing(
    checkout: &Checkout<'_>,
    patch: &Patch,
    change: &TreeChange,
    own: &TreeChange,
) -> anyhow::Result<Option<WhyMissing>> {
    if change.old == own.new {
        if let Some(wanted) = own.old.as_ref().filter(|old| old.is_repository()) {
            let commit = Some(wanted.id.to_string());
            return Ok(Some(WhyMissing::Repository { commit }));
        }
        return Ok(Some(WhyMissing::TakenBack {
            session: patch.session.clone(),
            turn: patch.turn,
        }));
    }

    let repository = checkout.repository;
    let committed = repository.entry(refs::head_tree(repository)?, &change.path)?;
    let commit = refs::head(repository)?.filter(|_| committed == own.new);
    let (Some(commit), Some(before), Some(now)) = (commit, &change.old, &own.new) else {
        return Ok(None);
    };
    // A later turn can have replaced what this one did.
    for after in [&change.new, &own.old].into_iter().flatten() {
        if keeps_ours(repository, &change.path, before, now, after)? {
            return Ok(None);
        }
    }
    Ok(Some(WhyMissing::Committed { commit }))
}

const MAX_BRANCH_TURNS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherBranch {
    pub turn: u64,
    /// Branch at that turn; `HEAD` if detached.
    pub then: String,
    /// Current branch; `HEAD` if detached.
    pub now: String,
}

/// Compares the current branch with that of the last turn in this checkout. `None` if it is the
/// same, or no recent turn ran here.
pub fn other_branch(checkout: &Checkout<'_>, tip: &Turn) -> anyhow::Result<Option<OtherBranch>> {
    let stacks = Stacks::new(checkout.repository);
    for turn in checkout.store().history(tip.clone()).take(MAX_BRANCH_TURNS) {
        let turn = turn?;
        let workspace = turn.meta.workspace.as_ref();
        let Some(then) = workspace
            .filter(|workspace| stacks.ran_here(workspace))
            .and_then(|workspace| workspace.branch.clone())
        else {
            continue;
        };

        let now = refs::branch_or_head(checkout.repository)?;
        return Ok((now != then).then(|| OtherBranch {
            turn: turn.number(),
            then,
            now,
        }));
    }

    Ok(None)
}

/// The tree that a turn left. For the start of a session, the tree before its first turn.
pub fn turn_tree(checkout: &Checkout<'_>, turn: &Turn) -> anyhow::Result<TreeId> {
    if let Some(workspace) = turn.workspace {
        return checkout
            .repository
            .commit(workspace)
            .map(|commit| commit.tree);
    }

    let Some(next) = first_turn_after(checkout, turn)? else {
        anyhow::bail!(
            "session `{}` has no turn yet, so that there is nothing to go back to",
            turn.session
        );
    };
    match next.meta.workspace {
        Some(workspace) => checkout
            .repository
            .commit(workspace.before)
            .map(|commit| commit.tree),
        None => anyhow::bail!(
            "turn {} does not say what your files were before it",
            next.number()
        ),
    }
}

/// The turn after the start of a session; for a branch without turns of its own, the oldest one in
/// another session. `None` if `turn` recorded files itself, or none follows.
pub fn first_turn_after(checkout: &Checkout<'_>, turn: &Turn) -> anyhow::Result<Option<Turn>> {
    let store = checkout.store();
    if turn.workspace.is_some() {
        return Ok(None);
    }
    let next = turn.number() + 1;
    if store.tip(&turn.session)?.number() >= next {
        return store.turn(&turn.session, &next.to_string()).map(Some);
    }

    let mut oldest: Option<(i64, Turn)> = None;
    for (name, id) in store.sessions()? {
        // An unreadable session does not hide the others.
        let Ok(tip) = Turn::read(checkout.repository, &name, id) else {
            continue;
        };
        if tip.number() < next {
            continue;
        }
        let Ok(other) = store.earlier(&tip, next) else {
            continue;
        };
        let follows = other.previous == Some(turn.commit) && other.meta.workspace.is_some();
        let seconds = checkout.repository.commit(other.commit)?.seconds;
        if follows && oldest.as_ref().is_none_or(|(first, _)| seconds < *first) {
            oldest = Some((seconds, other));
        }
    }
    Ok(oldest.map(|(_, turn)| turn))
}
