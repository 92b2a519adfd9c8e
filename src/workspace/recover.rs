//! Recovery: what a crash left is finished or undone, and damaged state is put right or named.
//!
//! Runs at the start of every command that changes something, under the lock. Running it twice,
//! or being killed in the middle of it, comes to the same.

use std::collections::HashSet;

use anyhow::Context as _;

use crate::git::keep::damaged;
use crate::git::keep::pack::keep;
use crate::git::keep::torn_packs;
use crate::git::object::CommitId;
use crate::git::object::staged;
use crate::git::publish::displaced;
use crate::git::publish::rescue;
use crate::git::publish::{Guard, OverlapRule, Published};
use crate::git::refs;
use crate::git::refs::heal::ForeignLock;
use crate::git::refs::heal::RefScan;
use crate::git::repository::Repository;
use crate::git::revision;
use crate::git::snapshot::{self, paths};
use crate::host::fault;
use crate::host::lock::holder_of;
use crate::session::journal::{JournalState, Pending, SCHEMA};
use crate::session::name::{DRAFTS, SESSIONS, SessionName};
use crate::session::publication::Publication;
use crate::session::turn::Turn;
use crate::workspace::Checkout;
use crate::workspace::complete;
use crate::workspace::complete::{guard, publish};
use crate::workspace::file_move::FileMove;
use crate::workspace::fit::{Fit, fit};
use crate::workspace::intended::checkout_of;
use crate::workspace::kept;
use crate::workspace::landing;
use crate::workspace::notice::{FilesNotice, ReferenceRepair, Tell, obstacles};
use crate::workspace::stack::record::amend;
use crate::workspace::worktrees;

/// How far what the refs reach is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// The commits that they name.
    Tips,
    /// Every object.
    Everything,
}

/// Finishes what a crash interrupted. The caller holds the lock. Returns whether there was
/// anything to do.
///
/// # Errors
/// Where the files cannot be brought along even now.
pub fn recover(checkout: &Checkout<'_>, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    recover_to(checkout, Depth::Tips, tell)
}

/// Finishes what a crash interrupted, and looks at everything that the refs reach: what a power
/// cut or a failing disk took shows nowhere else before it is needed. The caller holds the lock.
///
/// # Errors
/// As for [`recover`].
pub fn recover_thoroughly(checkout: &Checkout<'_>, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    recover_to(checkout, Depth::Everything, tell)
}

/// Finishes what a crash interrupted.
fn recover_to(checkout: &Checkout<'_>, depth: Depth, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    fault::point("recover-start")?;
    // A turn takes the lock several times. What a crash beside it leaves meanwhile can wait for the
    // next look but for an intent: on that stands which files there are.
    let again = depth == Depth::Tips && checkout.repository.is_looked_over();
    if again && !checkout.journal().has_intent() {
        return Ok(false);
    }
    checkout.journal().move_old_notes();
    let was_down = damaged::was_down(checkout.repository);

    // Before anything that has git read its records: a pipe among them is waited at for ever.
    let mut found = worktrees::take_over_worktrees(checkout, tell)?;
    found |= set_torn_packs_aside(checkout.repository, tell)?;
    if was_down || depth == Depth::Everything {
        found |= set_damaged_objects_aside(checkout.repository, tell)?;
    }

    found |= remove_stale_locks(checkout, tell)?;
    found |= mend_references(checkout, depth, tell)?;
    checkout.repository.note_looked_over();
    if was_down {
        damaged::note_start(checkout.repository)?;
    }

    fault::point("recover-healed")?;
    found |= finish_pending(checkout, tell)?;
    found |= clear_displaced(checkout.repository, tell)?;
    // Records a turn, for which no other intent may be under way.
    found |= landing::recover(checkout, tell)?;
    if depth == Depth::Everything {
        found |= worktrees::tidy_worktrees(checkout, tell)?;
    }

    keep::release_all(checkout.repository)?;
    Ok(found)
}

/// Puts packs aside whose bytes a power cut took; before refs are looked at, so that no object
/// is found in one.
fn set_torn_packs_aside(repository: &Repository, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    let torn = torn_packs::set_torn_packs_aside(repository)?;
    for name in &torn {
        tell(FilesNotice::TornPackMoved(name.clone()));
    }
    Ok(!torn.is_empty())
}

/// Puts objects aside that a power cut left without their bytes: they count as missing, so that
/// whatever needs them writes them again.
fn set_damaged_objects_aside(repository: &Repository, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    let damaged = damaged::set_damaged_objects_aside(repository)?;
    if damaged.is_empty() {
        return Ok(false);
    }

    // They take objects for written that are gone.
    let indexes = repository.teddy_dir().join("index");
    for index in std::fs::read_dir(indexes).into_iter().flatten().flatten() {
        snapshot::forget(repository, &index.path());
    }

    tell(FilesNotice::DamagedObjectsMoved(damaged.len()));
    Ok(true)
}

/// Removes what earlier commands replaced, and names what somebody has written to since.
fn clear_displaced(repository: &Repository, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    let published = Published {
        rescued: displaced::clear_displaced(repository)?,
        ..Published::default()
    };
    tell_obstacles(&published, tell);
    Ok(!published.rescued.is_empty())
}

/// Tells what stood in the way of a publication.
fn tell_obstacles(published: &Published, tell: &mut Tell<'_>) {
    for found in obstacles(published) {
        tell(FilesNotice::Obstacle(found));
    }
}

/// Returns the locks of git's own that are there; they are never removed.
pub fn foreign_locks(repository: &Repository) -> Vec<ForeignLock> {
    refs::heal::foreign_locks(repository)
}

/// Removes the lock files of our refs that a crash left.
fn remove_stale_locks(checkout: &Checkout<'_>, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    let removed = refs::heal::remove_stale_locks(checkout.repository, &|name| {
        is_in_use(checkout.repository, name)
    })?;
    for name in &removed {
        tell(FilesNotice::StaleLockRemoved(name.clone()));
    }
    Ok(!removed.is_empty())
}

/// Returns whether a living process may be about to move a ref: drafts move under their
/// session's lock.
fn is_in_use(repository: &Repository, name: &str) -> bool {
    let Some(session) = name.strip_prefix(DRAFTS) else {
        return false;
    };
    let holder = holder_of(&repository.teddy_dir().join("locks").join(session));
    holder.is_some_and(|holder| {
        holder != std::process::id() && crate::host::process::is_alive(holder)
    })
}

/// Gives refs of ours that name nothing sound the newest commit that is known for them.
fn mend_references(
    checkout: &Checkout<'_>,
    depth: Depth,
    tell: &mut Tell<'_>,
) -> anyhow::Result<bool> {
    let broken = match depth {
        Depth::Tips => refs::heal::broken(checkout.repository, RefScan::Quick)?,
        Depth::Everything => incomplete_references(checkout.repository)?,
    };
    let aside = checkout.repository.teddy_dir().join("undo").join("refs");
    for name in &broken {
        let known = last_known(checkout, name);
        let whole = known
            .iter()
            .find_map(
                |&commit| match damaged::is_complete(checkout.repository, commit) {
                    Ok(false) => None,
                    whole => Some(whole.map(|_| commit)),
                },
            )
            .transpose()?;

        // A commit that can be read is better than none, as much as is left of it.
        let commit = whole.or(known.first().copied());
        if refs::held(checkout.repository, name).ok().flatten() == commit && commit.is_some() {
            tell(FilesNotice::ReferenceIncomplete(name.clone()));
            continue;
        }

        refs::heal::mend(checkout.repository, name, commit, &aside)
            .with_context(|| format!("`{name}` is damaged"))?;
        let turn = |commit| match number_of(checkout.repository, name, commit) {
            Some(number) => ReferenceRepair::Turn { number, commit },
            None => ReferenceRepair::Commit(commit),
        };
        tell(FilesNotice::ReferenceRepaired {
            name: name.clone(),
            repair: commit.map_or(ReferenceRepair::Removed, turn),
        });
    }

    Ok(!broken.is_empty())
}

/// Returns the refs that do not reach all that they should, sorted.
fn incomplete_references(repository: &Repository) -> anyhow::Result<Vec<String>> {
    let mut broken = refs::heal::broken(repository, RefScan::Whole)?;

    for reference in refs::list(repository, "refs/teddy/")? {
        if !broken.contains(&reference.name) && !damaged::is_complete(repository, reference.target)?
        {
            broken.push(reference.name);
        }
    }

    broken.sort();
    Ok(broken)
}

/// Returns the commits that a ref is known to have had and that can be read, newest first.
fn last_known(checkout: &Checkout<'_>, name: &str) -> Vec<CommitId> {
    let logged = refs::heal::logged(checkout.repository, name);
    let Some(session) = session_of(name) else {
        return logged;
    };

    let copy = checkout.journal().tip(session.as_str());
    copy.into_iter()
        .chain(logged)
        .filter(|&commit| Turn::read(checkout.repository, &session, commit).is_ok())
        .collect()
}

/// Returns the number of the turn that a session's ref points at.
fn number_of(repository: &Repository, name: &str, commit: CommitId) -> Option<u64> {
    let turn = Turn::read(repository, &session_of(name)?, commit).ok()?;
    Some(turn.number())
}

/// Carries out the intent of a turn whose ref moved; forgets one whose ref did not.
fn finish_pending(checkout: &Checkout<'_>, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    let journal = checkout.journal();
    let pending = match journal.read().context("reading the journal")? {
        JournalState::None => return Ok(false),
        JournalState::Damaged(aside) => {
            tell(FilesNotice::JournalDamaged(aside));
            return Ok(true);
        }
        JournalState::Pending(pending) => pending,
    };

    anyhow::ensure!(
        pending.schema <= SCHEMA,
        "a newer TeDDy was interrupted in this repository; use that one to finish its turn"
    );
    let session = SessionName::from_ref(&pending.session)?;
    let committed = match refs::read(checkout.repository, &session.reference())? {
        Some(tip) => {
            checkout.repository.has(pending.commit)
                && revision::is_ancestor(checkout.repository, pending.commit, tip)?
        }
        None => false,
    };
    if committed && !resume_publishing(checkout, &session, &pending, tell)? {
        tell(FilesNotice::PendingPutAside(journal.put_aside()?));
        return Ok(true);
    }

    fault::point("before-clear")?;
    journal.finish()?;
    Ok(true)
}

/// Brings the files along that an interrupted call left behind; false where that can never be
/// done.
fn resume_publishing(
    checkout: &Checkout<'_>,
    session: &SessionName,
    pending: &Pending,
    tell: &mut Tell<'_>,
) -> anyhow::Result<bool> {
    let Some(elsewhere) = checkout_of(checkout.repository, pending)? else {
        tell(FilesNotice::CheckoutGone {
            path: pending.workspace.clone(),
            session: session.clone(),
        });
        return Ok(false);
    };

    let repository = elsewhere.as_deref().unwrap_or(checkout.repository);
    let has_all = checkout.repository.has(pending.from)
        && checkout.repository.has(pending.to)
        && (pending.published).is_none_or(|id| checkout.repository.has(id));
    if !has_all {
        tell(FilesNotice::ObjectsGone(session.clone()));
        return Ok(false);
    }

    let files = FileMove {
        from: pending.from,
        to: pending.to,
    };
    let how: Guard = guard(&pending.operation, OverlapRule::PassOver);
    fault::point("recover-before-publish")?;
    let mut published = publish(repository, &files, &how)?;

    fault::point("recover-published")?;
    published.rescued.extend(rescue::sweep_temporaries(
        repository, files.from, files.to, &how,
    )?);
    kept::note_brought(&checkout.limits, repository, &files, &published)?;
    fault::point("recover-swept")?;
    tell(FilesNotice::TurnFinished {
        session: session.clone(),
        files: published.written.len() + published.deleted.len(),
    });

    let told: HashSet<_> = published.busy.iter().chain(&published.closed).collect();
    for path in published
        .conflicts
        .iter()
        .filter(|path| !told.contains(path))
    {
        tell(FilesNotice::ChangedMeanwhile(path.clone()));
    }

    tell_obstacles(&published, tell);
    checkout.journal().keep_tip(session, pending.commit)?;
    // A path that cannot be looked at holds nothing up.
    let left = left(checkout, repository, &files, &published.conflicts)
        .unwrap_or_else(|_| published.conflicts.clone());
    let publication = tell_late_overlaps(checkout, (session, pending), left)?;

    complete::note_publication(
        checkout.repository,
        repository,
        publication,
        "teddy: recovered",
    )?;
    checkout.store().discard_draft(session);
    Ok(true)
}

/// Says where an interrupted turn was not brought, and returns what is in the files.
fn tell_late_overlaps(
    checkout: &Checkout<'_>,
    (session, pending): (&SessionName, &Pending),
    left: Vec<Vec<u8>>,
) -> anyhow::Result<Option<CommitId>> {
    let published = Published {
        conflicts: left,
        ..Published::default()
    };
    if published.conflicts.is_empty() {
        return Ok(pending.published);
    }

    if refs::read(checkout.repository, &session.reference())? == Some(pending.commit) {
        let told = complete::tell_overlaps(checkout, (session, pending.commit), &published, true)?;
        return Ok(told.1);
    }

    match pending.published {
        Some(id) if Publication::read(checkout.repository, id)?.is_some() => amend(
            &complete::stacks(checkout.repository),
            id,
            true,
            &published.conflicts,
        )
        .map(Some),
        _ => Ok(None),
    }
}

/// Returns those of the paths in conflict to which an interrupted call had not come. What was
/// brought before the crash can have been edited since: then it can be taken back, and an undo
/// must look at it.
fn left(
    checkout: &Checkout<'_>,
    repository: &Repository,
    files: &FileMove,
    conflicts: &[Vec<u8>],
) -> anyhow::Result<Vec<Vec<u8>>> {
    let now = paths::snapshot_paths(repository, files.to, conflicts)?.tree;
    staged::take_over(checkout.repository, repository)?;
    let (back, overlaps) = match fit(checkout.repository, files.to, now, files.from)? {
        Fit::Clean(back) => (back.to, HashSet::new()),
        Fit::Overlap(paths, ways) => (ways.ours, paths.into_iter().collect()),
    };
    let mut left = Vec::new();

    for path in conflicts {
        let is_as_before = repository.entry(back, path)? == repository.entry(now, path)?;
        if is_as_before || overlaps.contains(path) {
            left.push(path.clone());
        }
    }

    Ok(left)
}

/// Returns the session whose tip a ref is.
fn session_of(name: &str) -> Option<SessionName> {
    SessionName::from_ref(name.strip_prefix(SESSIONS)?).ok()
}
