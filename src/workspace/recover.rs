//! Crash recovery: completes or rolls back interrupted operations; repairs or reports damage.
//!
//! Runs under the lock at the start of every command that changes something. Idempotent, also if
//! recovery itself is killed.

use std::collections::HashSet;

use anyhow::Context as _;

use crate::git::keep::damaged;
use crate::git::keep::pack::keep;
use crate::git::keep::store_access::{self, ReadExtent, is_lost};
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
use crate::workspace::set_aside;
use crate::workspace::stack::record::amend;
use crate::workspace::worktrees;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// The commits at the tips of refs.
    Tips,
    /// Every reachable object.
    Everything,
}

/// Recovers from a crash. The caller holds the lock. Returns whether there was anything to do.
pub fn recover(checkout: &Checkout<'_>, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    recover_to(checkout, Depth::Tips, tell)
}

/// Recovers and checks every object that the refs reach. Damage from a power cut or a failing disk
/// is otherwise not noticed until an object is needed. The caller holds the lock.
pub fn recover_thoroughly(checkout: &Checkout<'_>, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    recover_to(checkout, Depth::Everything, tell)
}

fn recover_to(checkout: &Checkout<'_>, depth: Depth, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    fault::point("recover-start")?;
    // A turn takes the lock several times and recovers in full only once. Damage from another
    // process that crashes meanwhile can wait, but not an intent: it determines what the user's
    // files should be.
    let again = depth == Depth::Tips && checkout.repository.is_looked_over();
    if again && !checkout.journal().has_intent() {
        return Ok(false);
    }
    checkout.journal().move_old_notes();
    let was_down = damaged::was_down(checkout.repository);

    // Before any git process reads the worktree records: if a command replaced one with a FIFO, git
    // would block on it forever.
    let mut found = worktrees::take_over_worktrees(checkout, tell)?;
    // Before refs are checked, so that no object is found in such a pack.
    found |= set_torn_packs_aside(checkout.repository, tell)?;
    if was_down || depth == Depth::Everything {
        found |= set_damaged_objects_aside(checkout.repository, tell)?;
    }

    // A lock would make the repair of its ref fail.
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

/// Quarantines packs that a power cut truncated.
fn set_torn_packs_aside(repository: &Repository, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    let torn = torn_packs::set_torn_packs_aside(repository)?;
    for name in &torn {
        tell(FilesNotice::TornPackMoved(name.clone()));
    }
    Ok(!torn.is_empty())
}

/// Quarantines objects that a power cut left without content. They count as missing then, and the
/// next writer writes them again.
fn set_damaged_objects_aside(repository: &Repository, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    let damaged = damaged::set_damaged_objects_aside(repository)?;
    if damaged.is_empty() {
        return Ok(false);
    }

    // The indexes take the lost objects for written.
    let indexes = repository.teddy_dir().join("index");
    for index in std::fs::read_dir(indexes).into_iter().flatten().flatten() {
        snapshot::forget(repository, &index.path());
    }

    tell(FilesNotice::DamagedObjectsMoved(damaged.len()));
    Ok(true)
}

/// Deletes the old versions of files that earlier commands replaced. Those that a process wrote to
/// since are rescued and reported.
fn clear_displaced(repository: &Repository, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    let published = Published {
        rescued: displaced::clear_displaced(repository)?,
        ..Published::default()
    };
    tell_obstacles(&published, tell);
    Ok(!published.rescued.is_empty())
}

fn tell_obstacles(published: &Published, tell: &mut Tell<'_>) {
    for found in obstacles(published) {
        tell(FilesNotice::Obstacle(found));
    }
}

/// Lock files of git's own. Reported only: a git process might still hold them.
pub fn foreign_locks(repository: &Repository) -> Vec<ForeignLock> {
    refs::heal::foreign_locks(repository)
}

fn remove_stale_locks(checkout: &Checkout<'_>, tell: &mut Tell<'_>) -> anyhow::Result<bool> {
    let removed = refs::heal::remove_stale_locks(checkout.repository, &|name| {
        is_in_use(checkout.repository, name)
    })?;
    for name in &removed {
        tell(FilesNotice::StaleLockRemoved(name.clone()));
    }
    Ok(!removed.is_empty())
}

/// Drafts move under the session's lock and not under the repository's, so a living process can
/// hold such a ref's lock.
fn is_in_use(repository: &Repository, name: &str) -> bool {
    let Some(session) = name.strip_prefix(DRAFTS) else {
        return false;
    };
    let holder = holder_of(&repository.teddy_dir().join("locks").join(session));
    holder.is_some_and(|holder| {
        holder != std::process::id() && crate::host::process::is_alive(holder)
    })
}

/// Points damaged refs of ours at the newest known commit that is complete.
fn mend_references(
    checkout: &Checkout<'_>,
    depth: Depth,
    tell: &mut Tell<'_>,
) -> anyhow::Result<bool> {
    let scan = || match depth {
        Depth::Tips => refs::heal::broken(checkout.repository, RefScan::Quick),
        Depth::Everything => incomplete_references(checkout.repository),
    };
    let mut broken = scan()?;
    if !broken.is_empty() {
        // A ref gives up a turn only if every file that could hold it was read to its end.
        store_access::ensure_readable(checkout.repository, ReadExtent::Whole)?;
        broken = scan()?;
    }
    let aside = set_aside::refs_dir(checkout.repository);
    for name in &broken {
        let known = last_known(checkout, name)?;
        let whole = known
            .iter()
            .find_map(
                |&commit| match damaged::is_complete(checkout.repository, commit) {
                    Ok(false) => None,
                    whole => Some(whole.map(|_| commit)),
                },
            )
            .transpose()?;

        // A readable commit with missing objects is better than none.
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

/// Refs with missing objects anywhere below their tip, sorted.
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
fn last_known(checkout: &Checkout<'_>, name: &str) -> anyhow::Result<Vec<CommitId>> {
    let logged = refs::heal::logged(checkout.repository, name)?;
    let Some(session) = session_of(name) else {
        return Ok(logged);
    };

    let copy = checkout.journal().read_tip(session.as_str())?;
    let known = copy.into_iter().chain(logged);
    Ok(known
        .filter(|&commit| Turn::read(checkout.repository, &session, commit).is_ok())
        .collect())
}

fn number_of(repository: &Repository, name: &str, commit: CommitId) -> Option<u64> {
    let turn = Turn::read(repository, &session_of(name)?, commit).ok()?;
    Some(turn.number())
}

/// Completes the intent of a turn whose ref moved, and drops one whose ref did not.
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
            !is_lost(checkout.repository, pending.commit)?
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

/// Updates the files that an interrupted command did not get to. Returns `false` if that can never
/// succeed, because the checkout or objects are gone.
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
    let is_published_lost = match pending.published {
        Some(id) => is_lost(checkout.repository, id)?,
        None => false,
    };
    if is_published_lost
        || is_lost(checkout.repository, pending.from)?
        || is_lost(checkout.repository, pending.to)?
    {
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

    let told: HashSet<_> = (published.busy.iter())
        .chain(&published.closed)
        .chain(&published.unfit)
        .collect();
    for path in published
        .conflicts
        .iter()
        .filter(|path| !told.contains(path))
    {
        tell(FilesNotice::ChangedMeanwhile(path.clone()));
    }

    tell_obstacles(&published, tell);
    checkout.journal().keep_tip(session, pending.commit)?;
    // An unreadable path must not block recovery; count all conflicts as unapplied.
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

/// Records which paths of an interrupted turn were not applied. Returns the publication that
/// describes the files, if one does.
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

/// Of the conflicting paths, those that the interrupted command had not written yet.
///
/// A file that was written before the crash and edited since conflicts too, but contains the
/// change: an undo can revert it. The test is whether the reverse change still applies to the
/// current file.
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

fn session_of(name: &str) -> Option<SessionName> {
    SessionName::from_ref(name.strip_prefix(SESSIONS)?).ok()
}
