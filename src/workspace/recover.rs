//! Crash recovery: completes or rolls back interrupted operations; repairs or reports damage.
//!
//! Runs under the lock at the start of every command that changes something. Idempotent, also if
//! recovery itself is killed. Damaged data is quarantined, never deleted.

use std::time::Duration;

use anyhow::Context as _;

use crate::git::keep::damaged;
use crate::git::keep::pack::keep;
use crate::git::keep::store_access::{self, ReadExtent, is_lost};
use crate::git::merge::merge_trees;
use crate::git::object::{CommitId, writer};
use crate::git::publish::{self, Conflict, Guard, OverlapRule, Published};
use crate::git::refs::repair::RefScan;
use crate::git::repository::Repository;
use crate::git::worktree::{self, registered};
use crate::git::{history, refs, snapshot};
use crate::host::fault;
use crate::host::lock::{Lock, holder_of};
use crate::session::journal::{JournalState, Pending, SCHEMA};
use crate::session::name::{DRAFTS, SESSIONS, SessionName};
use crate::session::turn::Turn;
use crate::workspace::complete::{self, guard, publish};
use crate::workspace::file_move::FileMove;
use crate::workspace::notice::{FileObstacle, FilesNotice, Notify, ReferenceRepair, obstacles};
use crate::workspace::stack::Stacks;
use crate::workspace::stack::record::amend;
use crate::workspace::{Checkout, forced_files, landing, set_aside};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Tips,
    /// Also checks every object that refs reach: otherwise damage is not noticed until one is
    /// needed.
    Everything,
}

/// Returns whether there was anything to do. The caller holds the lock.
pub fn recover(
    checkout: &Checkout<'_>,
    depth: Depth,
    notify: &mut Notify<'_>,
) -> anyhow::Result<bool> {
    fault::point("recover-start")?;
    // A turn takes the lock several times and recovers in full only once. Damage from another
    // process that crashes meanwhile can wait, but not an intent: it determines what the user's
    // files should be.
    let again = depth == Depth::Tips && checkout.repository.is_checked();
    if again && !checkout.journal().has_intent() {
        return Ok(false);
    }
    // Only a restart can lose written bytes; a killed process cannot.
    let was_down = damaged::has_rebooted(checkout.repository);

    // Before any git process reads the worktree records: if a command replaced one with a FIFO, git
    // would block on it forever.
    let mut changed = discard_lost_records(checkout, notify)?;
    // Before refs are checked, so that no object is found in such a pack.
    changed |= repair_torn_packs(checkout.repository, notify)?;
    if was_down || depth == Depth::Everything {
        changed |= set_damaged_objects_aside(checkout.repository, notify)?;
    }

    // A lock would make the repair of its ref fail.
    changed |= remove_stale_locks(checkout, notify)?;
    let repaired = repair_references(checkout, depth, notify)?;
    if repaired || was_down {
        // HEAD of a session's worktree can name what a power cut took, and then `git gc` fails.
        registered::discard_records(checkout.repository)?;
    }
    changed |= repaired;
    checkout.repository.note_checked();
    if was_down {
        damaged::note_start(checkout.repository)?;
    }

    fault::point("recover-healed")?;
    changed |= finish_pending(checkout, notify)?;
    changed |= clear_displaced(checkout.repository, notify)?;
    // Records a turn, for which no other intent may be under way.
    changed |= landing::recover(checkout, notify)?;
    if depth == Depth::Everything {
        changed |= tidy_worktrees(checkout, notify)?;
    }

    keep::release_all(checkout.repository)?;
    Ok(changed)
}

fn repair_torn_packs(repository: &Repository, notify: &mut Notify<'_>) -> anyhow::Result<bool> {
    let damaged::TornPacks { indexed, moved } = damaged::repair_torn_packs(repository)?;
    let changed = !indexed.is_empty() || !moved.is_empty();
    let indexed = indexed.into_iter().map(FilesNotice::PackIndexed);
    let moved = moved.into_iter().map(FilesNotice::TornPackMoved);
    indexed.chain(moved).for_each(notify);
    Ok(changed)
}

/// They count as missing then, and the next writer writes them again.
fn set_damaged_objects_aside(
    repository: &Repository,
    notify: &mut Notify<'_>,
) -> anyhow::Result<bool> {
    let damaged = damaged::quarantine_damaged_objects(repository)?;
    if damaged.is_empty() {
        return Ok(false);
    }

    // The indexes would report the lost objects as written.
    let indexes = repository.teddy_dir().join("index");
    for index in std::fs::read_dir(indexes).into_iter().flatten().flatten() {
        snapshot::forget_snapshot(repository, &index.path());
    }

    notify(FilesNotice::DamagedObjectsMoved(damaged.len()));
    Ok(true)
}

/// Deletes displaced files; rescues and reports those that a process wrote to since.
fn clear_displaced(repository: &Repository, notify: &mut Notify<'_>) -> anyhow::Result<bool> {
    let published = Published {
        salvaged: publish::clear_displaced(repository)?,
        ..Published::default()
    };
    report_obstacles(&published, notify);
    Ok(!published.salvaged.is_empty())
}

fn report_obstacles(published: &Published, notify: &mut Notify<'_>) {
    for obstacle in obstacles(published) {
        notify(FilesNotice::Obstacle(obstacle));
    }
}

fn remove_stale_locks(checkout: &Checkout<'_>, notify: &mut Notify<'_>) -> anyhow::Result<bool> {
    let removed = refs::repair::remove_stale_locks(checkout.repository, &|name| {
        is_in_use(checkout.repository, name)
    })?;
    for name in &removed {
        notify(FilesNotice::StaleLockRemoved(name.clone()));
    }
    Ok(!removed.is_empty())
}

fn is_in_use(repository: &Repository, name: &str) -> bool {
    let Some(session) = name.strip_prefix(DRAFTS) else {
        // Drafts move under the session's lock, so a live process can hold the ref's lock now.
        return false;
    };
    let holder = holder_of(&repository.teddy_dir().join("locks").join(session));
    holder.is_some_and(|holder| {
        holder != std::process::id() && crate::host::process::is_alive(holder)
    })
}

fn repair_references(
    checkout: &Checkout<'_>,
    depth: Depth,
    notify: &mut Notify<'_>,
) -> anyhow::Result<bool> {
    let scan = || match depth {
        Depth::Tips => refs::repair::broken(checkout.repository, RefScan::Quick),
        Depth::Everything => incomplete_references(checkout.repository),
    };
    // An I/O error must not look like damage.
    let mut broken = scan()?;
    if !broken.is_empty() {
        // A ref gives up a turn only if every file that could hold it was read to its end.
        store_access::ensure_readable(checkout.repository, ReadExtent::All)?;
        broken = scan()?;
    }
    let aside_dir = set_aside::refs_dir(checkout.repository);
    for name in &broken {
        let candidates = last_known(checkout, name)?;
        let complete_tip = candidates
            .iter()
            .find_map(
                |&commit| match damaged::is_complete(checkout.repository, commit) {
                    Ok(false) => None,
                    checked => Some(checked.map(|_| commit)),
                },
            )
            .transpose()?;

        // A readable commit with missing objects is better than none.
        let commit = complete_tip.or(candidates.first().copied());
        if refs::read_unpeeled(checkout.repository, name)
            .ok()
            .flatten()
            == commit
            && commit.is_some()
        {
            notify(FilesNotice::ReferenceIncomplete(name.clone()));
            continue;
        }

        refs::repair::repair_ref(checkout.repository, name, commit, &aside_dir)
            .with_context(|| format!("`{name}` is damaged"))?;
        let turn = |commit| match number_of(checkout.repository, name, commit) {
            Some(number) => ReferenceRepair::Turn { number, commit },
            None => ReferenceRepair::Commit(commit),
        };
        notify(FilesNotice::ReferenceRepaired {
            name: name.clone(),
            repair: commit.map_or(ReferenceRepair::Removed, turn),
        });
    }

    Ok(!broken.is_empty())
}

fn incomplete_references(repository: &Repository) -> anyhow::Result<Vec<String>> {
    let mut broken = refs::repair::broken(repository, RefScan::Full)?;

    for reference in refs::list(repository, "refs/teddy/")? {
        if !broken.contains(&reference.name) && !damaged::is_complete(repository, reference.target)?
        {
            broken.push(reference.name);
        }
    }

    broken.sort();
    Ok(broken)
}

/// The readable values that a ref is known to have had, newest first.
fn last_known(checkout: &Checkout<'_>, name: &str) -> anyhow::Result<Vec<CommitId>> {
    let logged = refs::repair::logged(checkout.repository, name)?;
    let Some(session) = session_of(name) else {
        return Ok(logged);
    };

    // The copy in the journal is flushed; a reflog can be lost with the ref.
    let copies = checkout.journal().read_tips(&session)?;
    let candidates = copies.into_iter().map(|own| own.turn).chain(logged);
    Ok(candidates
        .filter(|&commit| Turn::read(checkout.repository, &session, commit).is_ok())
        .collect())
}

fn number_of(repository: &Repository, name: &str, commit: CommitId) -> Option<u64> {
    let turn = Turn::read(repository, &session_of(name)?, commit).ok()?;
    Some(turn.number())
}

fn finish_pending(checkout: &Checkout<'_>, notify: &mut Notify<'_>) -> anyhow::Result<bool> {
    let journal = checkout.journal();
    let pending = match journal.read().context("reading the journal")? {
        JournalState::None => return Ok(false),
        JournalState::Damaged(moved_to) => {
            notify(FilesNotice::JournalDamaged(moved_to));
            return Ok(true);
        }
        JournalState::Pending(pending) => pending,
    };

    // An unknown intent must not be dropped.
    anyhow::ensure!(
        pending.schema <= SCHEMA,
        "a newer TeDDy was interrupted in this repository; use that one to finish its turn"
    );
    let session = SessionName::from_ref(&pending.session)?;
    let tip = refs::read(checkout.repository, &session.reference())?;
    let committed = match tip {
        Some(tip) => {
            !is_lost(checkout.repository, pending.commit)?
                && history::is_ancestor(checkout.repository, pending.commit, tip)?
        }
        None => false,
    };
    if committed && !resume_publishing(checkout, &session, &pending, notify)? {
        notify(FilesNotice::PendingPutAside(journal.quarantine()?));
        return Ok(true);
    }

    if !committed && tip != Some(pending.commit) {
        checkout.withdraw_own(&session, pending.commit)?;
    }

    fault::point("before-clear")?;
    journal.finish()?;
    Ok(true)
}

/// Returns `false` if the update can never succeed, because the checkout or objects are gone.
fn resume_publishing(
    checkout: &Checkout<'_>,
    session: &SessionName,
    pending: &Pending,
    notify: &mut Notify<'_>,
) -> anyhow::Result<bool> {
    let Some(elsewhere) = intended_checkout(checkout.repository, pending)? else {
        notify(FilesNotice::CheckoutGone {
            path: pending.workspace.clone(),
            session: session.clone(),
        });
        return Ok(false);
    };

    let repository = elsewhere.as_deref().unwrap_or(checkout.repository);
    if lacks_objects(checkout.repository, pending)? {
        notify(FilesNotice::ObjectsGone(session.clone()));
        return Ok(false);
    }

    let files = FileMove {
        from: pending.from,
        to: pending.to,
    };
    // The turn is committed, so what still fits is applied and the rest recorded as unapplied.
    let how: Guard = guard(&pending.operation, OverlapRule::PassOver);
    fault::point("recover-before-publish")?;
    let mut published = publish(repository, &files, &how)?;

    fault::point("recover-published")?;
    let rescued = publish::discard_temporaries(repository, files.from, files.to, &how)?;
    published.salvaged.extend(rescued);
    forced_files::record_applied(&checkout.limits, repository, &files, &published)?;
    fault::point("recover-swept")?;
    notify(FilesNotice::TurnFinished {
        session: session.clone(),
        files: published.written.len() + published.deleted.len(),
    });

    for (path, conflict) in &published.conflicts {
        if matches!(conflict, Conflict::Changed | Conflict::Failed(_)) {
            notify(FilesNotice::Obstacle(FileObstacle::NotWritten {
                path: path.clone(),
                conflict: Conflict::Changed,
            }));
        }
    }

    report_obstacles(&published, notify);
    // An unreadable path must not block recovery; count all conflicts as unapplied.
    let conflicts = published.conflict_paths();
    let unapplied = find_unapplied(checkout, repository, &files, &conflicts).unwrap_or(conflicts);
    let publication = record_late_overlaps(checkout, session, pending, unapplied)?;

    complete::note_publication(
        checkout.repository,
        repository,
        publication,
        "teddy: recovered",
    )?;
    checkout.store().discard_draft(session);
    Ok(true)
}

fn lacks_objects(repository: &Repository, pending: &Pending) -> anyhow::Result<bool> {
    let is_published_lost = match pending.published {
        Some(id) => is_lost(repository, id)?,
        None => false,
    };
    Ok(is_published_lost || is_lost(repository, pending.from)? || is_lost(repository, pending.to)?)
}

fn record_late_overlaps(
    checkout: &Checkout<'_>,
    session: &SessionName,
    pending: &Pending,
    unapplied: Vec<Vec<u8>>,
) -> anyhow::Result<Option<CommitId>> {
    if unapplied.is_empty() {
        return Ok(pending.published);
    }

    if refs::read(checkout.repository, &session.reference())? == Some(pending.commit) {
        let recorded =
            complete::record_overlaps(checkout, session, pending.commit, &unapplied, true)?;
        return Ok(recorded.1);
    }

    match pending.published {
        Some(id) => amend(&Stacks::new(checkout.repository), id, true, &unapplied).map(Some),
        None => Ok(None),
    }
}

/// Of the conflicting paths, those that the interrupted command had not written yet.
fn find_unapplied(
    checkout: &Checkout<'_>,
    repository: &Repository,
    files: &FileMove,
    conflicts: &[Vec<u8>],
) -> anyhow::Result<Vec<Vec<u8>>> {
    // A file that was written before the crash and edited since conflicts too. It contains the
    // change if the reverse change still applies to it.
    let now = snapshot::snapshot_paths(repository, files.to, conflicts)?.tree;
    writer::transfer_staged(checkout.repository, repository)?;
    let back = merge_trees(checkout.repository, files.to, now, files.from)?;
    let mut unapplied = Vec::new();

    for path in conflicts {
        let is_as_before = repository.entry(back.ours, path)? == repository.entry(now, path)?;
        if is_as_before || back.paths.contains(path) {
            unapplied.push(path.clone());
        }
    }

    Ok(unapplied)
}

fn session_of(name: &str) -> Option<SessionName> {
    SessionName::from_ref(name.strip_prefix(SESSIONS)?).ok()
}

/// `Some(None)` if the intent belongs to this checkout, `Some(Some(..))` for another one, `None` if
/// that checkout is gone.
///
/// Fails if the other checkout exists and is not accessible: recovery must not give up its intent
/// then.
pub(super) fn intended_checkout(
    repository: &Repository,
    pending: &Pending,
) -> anyhow::Result<Option<Option<Box<Repository>>>> {
    let own = repository;
    if pending.workspace == own.workdir() || pending.worktree == own.worktree_name() {
        return Ok(Some(None));
    }

    // A directory of that name may be another one by now.
    let link = pending.workspace.join(".git");
    let is_there = link.try_exists();
    if !is_there.with_context(|| format!("cannot read `{}`", link.display()))? {
        return Ok(None);
    }

    let other = match Repository::open(&pending.workspace) {
        Ok(other) => other,
        Err(_) if is_worktree_pruned(own, &pending.worktree)? => return Ok(None),
        Err(error) => {
            let path = pending.workspace.display();
            let message = format!("a turn is not finished in `{path}`, which cannot be opened");
            return Err(error.context(message));
        }
    };
    Ok((other.common_dir() == own.common_dir()).then(|| Some(Box::new(other))))
}

fn is_worktree_pruned(repository: &Repository, worktree: &str) -> anyhow::Result<bool> {
    let Some(id) = worktree.strip_prefix("linked-") else {
        return Ok(false);
    };
    let record = repository.common_dir().join("worktrees").join(id);
    let is_there = record.try_exists();
    Ok(!is_there.with_context(|| format!("cannot read `{}`", record.display()))?)
}

/// Removes git's records of session worktrees of which TeDDy has none. Returns whether there were any.
fn discard_lost_records(checkout: &Checkout<'_>, notify: &mut Notify<'_>) -> anyhow::Result<bool> {
    let mut any = false;
    for session in registered::lost_records(checkout.repository) {
        let Some(_lock) = try_lock_worktree(checkout, &session, "recover") else {
            continue;
        };
        if registered::discard_record(checkout.repository, &session)? {
            notify(FilesNotice::WorktreeUnlisted(session));
            any = true;
        }
    }

    Ok(any)
}

/// Removes what commands or a crash left in unused worktrees. Returns whether there was anything.
pub fn tidy_worktrees(checkout: &Checkout<'_>, notify: &mut Notify<'_>) -> anyhow::Result<bool> {
    let mut any = false;
    for listed in worktree::session_worktrees(checkout.repository) {
        let Some(_lock) = try_lock_worktree(checkout, &listed.session, "recover") else {
            continue;
        };
        if worktree::tidy_session_worktree(checkout.repository, &listed.session)? {
            notify(FilesNotice::LeftoversRemoved(listed.session));
            any = true;
        }
    }

    Ok(any)
}

/// `None` if a process uses the worktree.
pub fn try_lock_worktree(checkout: &Checkout<'_>, name: &str, command: &str) -> Option<Lock> {
    let session =
        SessionName::from_dir_name(name).map_or_else(|| name.to_owned(), |name| name.to_string());
    let dir = checkout.repository.teddy_dir().join("locks").join(&session);
    let lock = Lock::take(&dir, command, Duration::ZERO).ok()?;

    // A plan's commands can outlive their TeDDy for a moment.
    Lock::wait_released(&checkout.commands_lock(name), Duration::ZERO).ok()?;

    if lock.holder_crashed {
        crate::host::shell::end_orphans();
    }

    Some(lock)
}
