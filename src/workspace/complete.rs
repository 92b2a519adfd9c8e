//! Completes a turn: makes its objects durable, writes the intent, moves the session's ref, and
//! updates the user's files, in this order.
//!
//! The ref is the only commit point. A crash before it leaves unreachable objects and no visible
//! change. After a crash behind it, the next command finishes the turn from the journal.

use crate::git::keep::durable;
use crate::git::keep::protect::{self, MergePolicy, ProtectedObjects};
use crate::git::publish::{self, Conflict, Guard, OverlapRule, Published};
use anyhow::Context as _;

use crate::git::object::{CommitId, TreeId, writer};
use crate::git::refs::{self, Expected, MoveError};
use crate::git::repository::Repository;
use crate::git::snapshot as files;
use crate::host::{fault, interrupt};
use crate::session::journal::{Pending, SCHEMA};
use crate::session::meta::Workspace;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::path::lossy_paths;
use crate::workspace::Checkout;
use crate::workspace::file_move::FileMove;
use crate::workspace::forced_files;
use crate::workspace::snapshot;
use crate::workspace::stack::Stacks;
use crate::workspace::stack::record::{Written, amend};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    pub commit: CommitId,
    pub published: Published,
}

/// Moves a session's ref to a written turn and updates the user's files. The caller holds the lock
/// and has recovered.
pub(super) fn complete(
    checkout: &Checkout<'_>,
    session: &SessionName,
    turn: &SessionMove,
    files: Option<&FileMove>,
) -> anyhow::Result<Completed> {
    let committed = commit(checkout, session, turn, files)?;
    committed.publish().with_context(|| {
        format!(
            "the turn is recorded as {}; `teddy doctor --fix` applies it to your files",
            turn.new
        )
    })
}

/// The commit point. Before it, nothing of the turn is visible; after it, the turn is completed, by the
/// next command if not by this one.
///
/// If the turn moves a branch too (`teddy land`), the branch moves first and is then the commit
/// point: recovery records a landing whose branch moved.
fn commit<'a>(
    checkout: &'a Checkout<'a>,
    session: &'a SessionName,
    turn: &'a SessionMove,
    files: Option<&'a FileMove>,
) -> anyhow::Result<CommittedTurn<'a>> {
    let journal = checkout.journal();
    // `None` if the files stay as they are and nothing is published; no intent is needed then.
    let needed = to_publish(checkout.repository, turn, files)?;
    let tip = refs::read(checkout.repository, &session.reference())?
        .map(|tip| checkout.repository.commit(tip))
        .transpose()?;
    let reachable = snapshot::reachable_trees(
        checkout.repository,
        tip.as_ref().and_then(|tip| tip.parents.get(1).copied()),
    );
    let tip_id = tip.as_ref().map(|tip| tip.id);
    let protected = protect_turn(
        checkout,
        session,
        turn,
        [reachable, tip.map(|tip| tip.tree).into_iter().collect()].concat(),
    )?;

    fault::point("before-objects-sync")?;
    // The ref must never survive a power cut without its objects.
    durable::flush(checkout.repository)?;
    if let Some(files) = needed {
        fault::point("before-intent")?;
        journal
            .begin(&pending(checkout.repository, session, turn, files))
            .context("writing the journal")?;
    }

    // The last check for an interrupt. Once the ref moves, the turn is completed regardless.
    let checked = fault::point("after-intent").and_then(|()| turn.heed_interrupt());
    let recorded = checked.and_then(|()| checkout.record_own(session, turn.new, tip_id));
    let moved = recorded.and_then(|()| fault::point("before-ref"));
    let moved = moved.map_err(MoveError::Store).and_then(|()| {
        refs::move_to(
            checkout.repository,
            &session.reference(),
            turn.expected,
            turn.new,
            &turn.log,
        )
    });

    if let Err(error) = moved {
        // A move can fail after the ref itself was updated, because its reflog could not be
        // written. Only undo the intent if the ref did not move.
        if refs::read(checkout.repository, &session.reference())
            .ok()
            .flatten()
            != Some(turn.new)
        {
            checkout.withdraw_own(session, turn.new)?;
            journal.finish()?;
            return Err(not_moved(session, error));
        }
    }

    Ok(CommittedTurn {
        checkout,
        session,
        turn,
        protected,
        files: needed,
    })
}

fn to_publish<'f>(
    repository: &Repository,
    turn: &SessionMove,
    files: Option<&'f FileMove>,
) -> anyhow::Result<Option<&'f FileMove>> {
    let last = Stacks::new(repository).published()?;
    // A new publication needs an intent even if no file changes: recovery must move its ref.
    let is_new = turn.published.id.is_some() && turn.published.id != last;
    Ok(files.filter(|files| is_new || files.from != files.to))
}

/// A turn that is recorded, and not yet in the user's files.
struct CommittedTurn<'a> {
    checkout: &'a Checkout<'a>,
    session: &'a SessionName,
    turn: &'a SessionMove,
    protected: ProtectedObjects,
    /// `None` if the files stay as they are.
    files: Option<&'a FileMove>,
}

impl CommittedTurn<'_> {
    /// Each step can be repeated, because recovery runs them again.
    fn publish(self) -> anyhow::Result<Completed> {
        let CommittedTurn {
            checkout,
            session,
            turn,
            protected,
            files,
        } = self;
        let (journal, mut tip) = (checkout.journal(), turn.new);
        fault::point("after-ref-before-sync")?;
        // The ref must be durable before the user's files change. Otherwise a power cut could leave a
        // turn's changes without the turn.
        refs::sync(checkout.repository, &session.reference())?;
        protect::release_protected(checkout.repository, &protected)?;
        fault::point("after-ref")?;
        let published = match files {
            Some(files) => publish(
                checkout.repository,
                files,
                &Guard {
                    overwrite: turn.overwrite,
                    ..guard(&operation(tip), OverlapRule::Stop)
                },
            )?,
            None => Published::default(),
        };

        if let Some(files) = files {
            // The next snapshot must include ignored files that the turn created.
            forced_files::record_applied(&checkout.limits, checkout.repository, files, &published)?;
        }

        fault::point("after-publish")?;
        let mut publication = turn.published.id;
        if !published.conflicts.is_empty() {
            // Files that were updated despite conflicts elsewhere can be undone.
            let is_there = !(published.written.is_empty() && published.deleted.is_empty());
            (tip, publication) = record_overlaps(
                checkout,
                session,
                tip,
                &published.conflict_paths(),
                is_there,
            )?;
        }

        note_publication(
            checkout.repository,
            checkout.repository,
            publication,
            &turn.log,
        )?;
        fault::point("before-draft")?;
        checkout.store().discard_draft(session);
        fault::point("before-clear")?;

        // Every intent is this turn's: the caller recovered before it began.
        journal.finish()?;
        fault::point("after-clear")?;
        Ok(Completed {
            commit: tip,
            published,
        })
    }
}

/// Records in the newest turn of a session, and in its publication, which paths were not applied,
/// so that a restore can apply them later. Returns the new tip and publication.
pub fn record_overlaps(
    checkout: &Checkout<'_>,
    session: &SessionName,
    tip: CommitId,
    conflicts: &[Vec<u8>],
    synced: bool,
) -> anyhow::Result<(CommitId, Option<CommitId>)> {
    let turn = Turn::read(checkout.repository, session, tip)?;
    let Some(workspace) = turn.meta.workspace.clone() else {
        return Ok((tip, turn.publication));
    };
    let workspace = Workspace {
        synced,
        overlaps: lossy_paths(conflicts),
        ..workspace
    };

    let stacks = Stacks::new(checkout.repository);
    let publication = match stacks.own(&turn)? {
        Some((id, _)) => Some(amend(&stacks, id, synced, conflicts)?),
        None => turn.publication,
    };
    let amended = checkout
        .store()
        .with_workspace(&turn, workspace, publication)?;

    let new: Vec<CommitId> = [amended].into_iter().chain(publication).collect();
    let publication_tree = publication
        .map(|id| checkout.repository.commit(id).map(|commit| commit.tree))
        .transpose()?;
    let trees: Vec<TreeId> = [turn.tree].into_iter().chain(publication_tree).collect();
    let protected =
        protect::protect_commits(checkout.repository, &new, &trees, MergePolicy::Separate)?;
    let protected =
        protected.context("`git gc` removed objects of the turn while it was recorded")?;

    durable::flush(checkout.repository)?;
    checkout.record_own(session, amended, Some(tip))?;
    refs::move_to(
        checkout.repository,
        &session.reference(),
        Expected::At(tip),
        amended,
        "teddy: overlaps",
    )?;
    refs::sync(checkout.repository, &session.reference())?;
    protect::release_protected(checkout.repository, &protected)?;

    Ok((amended, publication))
}

/// Points `refs/teddy/published/<worktree>` of `checkout` at a publication. Objects that no other
/// ref reaches are protected from `git gc` until then.
pub fn note_publication(
    repository: &Repository,
    checkout: &Repository,
    publication: Option<CommitId>,
    log: &str,
) -> anyhow::Result<()> {
    let stacks = Stacks::new(checkout);
    let Some(id) = publication else { return Ok(()) };
    // Recovery calls this again for a finished turn.
    if stacks.published()? == Some(id) {
        return Ok(());
    }
    stacks.note_written()?;

    let protected = match writer::is_staged(repository, id) {
        true => {
            let protected =
                protect::protect_commits(repository, &[id], &[], MergePolicy::Separate)?;
            Some(protected.context("`git gc` removed objects of what was published")?)
        }
        false => None,
    };
    // `Any`: the lock is held, and the ref describes the files as they are now.
    refs::move_to(repository, &stacks.reference(), Expected::Any, id, log)?;
    protected.map_or(Ok(()), |protected| {
        protect::release_protected(repository, &protected)
    })
}

fn protect_turn(
    checkout: &Checkout<'_>,
    session: &SessionName,
    turn: &SessionMove,
    // What these trees reach needs no protection: a ref reaches it already.
    mut trees: Vec<TreeId>,
) -> anyhow::Result<ProtectedObjects> {
    let repository = checkout.repository;
    trees.extend(
        refs::read(repository, &session.draft_reference())?
            .map(|commit| checkout.repository.commit(commit).map(|commit| commit.tree))
            .transpose()?,
    );
    let workspace = repository
        .commit(turn.new)
        .ok()
        .and_then(|commit| commit.parents.get(1).copied());
    // HEAD keeps its objects reachable by itself.
    let unreached =
        workspace.filter(|&id| refs::head(repository).is_ok_and(|head| head != Some(id)));
    let commits: Vec<_> = [turn.new]
        .into_iter()
        .chain(unreached)
        .chain(turn.published.id)
        .chain(turn.published.others.iter().copied())
        .collect();

    // Their trees belong to recorded turns, which refs reach.
    for &other in &turn.published.others {
        trees.push(checkout.repository.commit(other)?.tree);
    }

    trees.push(snapshot::kept_tree(checkout.repository)?);
    // Also merges small packs of earlier turns (docs/decisions/0006-kept-packs.md).
    if let Some(protected) =
        protect::protect_commits(repository, &commits, &trees, MergePolicy::Merge)?
    {
        return Ok(protected);
    }

    // These indexes name objects that are gone; the next snapshot must not trust them.
    for index in [
        repository.worktree_name(),
        format!("session-{}", session.dir_name()),
    ] {
        files::forget_snapshot(repository, &checkout.index(&index));
    }

    anyhow::bail!(
        "`git gc` removed objects of the turn while it was recorded; nothing was changed, try again"
    )
}

fn pending(
    repository: &Repository,
    session: &SessionName,
    turn: &SessionMove,
    files: &FileMove,
) -> Pending {
    Pending {
        schema: SCHEMA,
        operation: operation(turn.new),
        session: session.to_string(),
        commit: turn.new,
        workspace: repository.workdir().to_owned(),
        worktree: repository.worktree_name(),
        published: turn.published.id,
        from: files.from,
        to: files.to,
    }
}

pub struct SessionMove {
    pub expected: Expected,
    pub new: CommitId,
    pub published: Written,
    pub log: String,
    /// Completes even after an interrupt.
    pub anyway: bool,
    /// Replaces bytes on disk that the change does not fit. They are kept in `undo/replaced`.
    pub overwrite: bool,
}

impl SessionMove {
    fn heed_interrupt(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.anyway || !interrupt::requested(),
            "interrupted before anything was changed"
        );
        Ok(())
    }
}

/// Updates the user's files durably. A file that another process wrote to during the update counts
/// as a conflict; its bytes were rescued.
pub fn publish(
    repository: &Repository,
    files: &FileMove,
    guard: &Guard,
) -> anyhow::Result<Published> {
    let mut published = publish::publish(repository, files.from, files.to, guard)?;
    for rescued in &published.salvaged {
        let conflict = published.conflicts.entry(rescued.path.clone());
        conflict.or_insert(Conflict::Changed);
    }
    Ok(published)
}

pub fn guard(operation: &str, overlap: OverlapRule) -> Guard {
    Guard {
        operation: operation.to_owned(),
        overlap,
        overwrite: false,
    }
}

/// Names rescued and displaced files of this turn.
fn operation(commit: CommitId) -> String {
    commit.to_string()[..12].to_owned()
}

fn not_moved(session: &SessionName, error: MoveError) -> anyhow::Error {
    match error {
        MoveError::Moved { .. } => anyhow::Error::new(error).context(format!(
            "session `{session}` was continued or deleted meanwhile; nothing was changed"
        )),
        MoveError::Store(error) => error,
    }
}
