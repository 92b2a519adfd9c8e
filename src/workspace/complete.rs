//! Completing a turn: objects, intent, the session's ref, the user's files, in this order.
//!
//! The ref is the one commit point. Before it, nothing that anyone sees has changed; after it,
//! the journal makes the next call finish what this one could not.

use crate::git::keep::durable;
use crate::git::keep::hold;
use crate::git::publish;
use anyhow::Context as _;

use crate::git::keep::hold::{Held, Older};
use crate::git::object::{CommitId, TreeId, staged};
use crate::git::publish::{Guard, OverlapRule, Published};
use crate::git::refs::{self, Expected, MoveError};
use crate::git::repository::Repository;
use crate::git::snapshot as files;
use crate::host::{fault, interrupt};
use crate::session::journal::{Pending, SCHEMA};
use crate::session::meta::Workspace;
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::path::shown;
use crate::workspace::Checkout;
use crate::workspace::file_move::FileMove;
use crate::workspace::kept;
use crate::workspace::snapshot;
use crate::workspace::stack::Stacks;
use crate::workspace::stack::record::{Written, amend};

/// A turn that is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// The session's newest commit.
    pub commit: CommitId,
    /// What became of the user's files.
    pub published: Published,
}

/// Moves a session's ref to a written turn and brings the user's files along, in a transaction.
///
/// # Errors
/// Before the ref moved: nothing has changed. After it: the message says that the next call
/// finishes.
pub(super) fn complete(
    checkout: &Checkout<'_>,
    session: &SessionName,
    turn: &SessionMove,
    files: Option<&FileMove>,
) -> anyhow::Result<Completed> {
    let journal = checkout.journal();
    let needed = to_publish(checkout.repository, turn, files)?;
    let tip = refs::read(checkout.repository, &session.reference())?
        .map(|tip| checkout.repository.commit(tip))
        .transpose()?;
    let reached = snapshot::reached(
        checkout.repository,
        tip.as_ref().and_then(|tip| tip.parents.get(1).copied()),
    );
    let held = hold_turn(
        checkout,
        session,
        turn,
        [reached, tip.map(|tip| tip.tree).into_iter().collect()].concat(),
    )?;

    fault::point("before-objects-sync")?;
    durable::flush(checkout.repository)?;
    if let Some(files) = needed {
        fault::point("before-intent")?;
        journal
            .begin(&pending(checkout.repository, session, turn, files))
            .context("writing the journal")?;
    }

    let begun = fault::point("after-intent").and_then(|()| turn.heed_interrupt());
    let moved = begun.map_err(MoveError::Store).and_then(|()| {
        refs::move_to(
            checkout.repository,
            (&session.reference(), turn.expected),
            turn.new,
            &turn.log,
        )
    });

    if let Err(error) = moved {
        // The log of a ref can fail to be written after the ref itself.
        if refs::read(checkout.repository, &session.reference())
            .ok()
            .flatten()
            != Some(turn.new)
        {
            journal.finish()?;
            return Err(not_moved(session, error));
        }
    }

    let done = after_the_ref(checkout, session, turn, &held, needed);
    done.with_context(|| {
        format!(
            "the turn is recorded as {}; `teddy recover` applies it to your files",
            turn.new
        )
    })
}

/// Returns what is to be done to the user's files, or to what is said of them.
fn to_publish<'f>(
    repository: &Repository,
    turn: &SessionMove,
    files: Option<&'f FileMove>,
) -> anyhow::Result<Option<&'f FileMove>> {
    let last = refs::read(repository, &stacks(repository).reference())?;
    let is_new = turn.published.id.is_some() && turn.published.id != last;
    Ok(files.filter(|files| is_new || files.from != files.to))
}

/// Does what comes after the commit point; all of it can be done again.
fn after_the_ref(
    checkout: &Checkout<'_>,
    session: &SessionName,
    turn: &SessionMove,
    held: &Held,
    files: Option<&FileMove>,
) -> anyhow::Result<Completed> {
    let (journal, mut tip) = (checkout.journal(), turn.new);
    fault::point("after-ref-before-sync")?;
    refs::sync(checkout.repository, &session.reference())?;
    journal.keep_tip(session, tip)?;
    hold::settle(checkout.repository, held)?;
    fault::point("after-ref")?;
    let published = match files {
        Some(files) => publish(
            checkout.repository,
            files,
            &guard(&operation(tip), OverlapRule::Stop),
        )?,
        None => Published::default(),
    };

    if let Some(files) = files {
        kept::note_brought(&checkout.limits, checkout.repository, files, &published)?;
    }

    fault::point("after-publish")?;
    let mut publication = turn.published.id;
    if !published.conflicts.is_empty() {
        // What was brought in part is there to be undone.
        let is_there = !(published.written.is_empty() && published.deleted.is_empty());
        (tip, publication) = tell_overlaps(checkout, (session, tip), &published, is_there)?;
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

    // Where no intent of this turn was begun, there is none: the caller has recovered.
    journal.finish()?;
    fault::point("after-clear")?;
    Ok(Completed {
        commit: tip,
        published,
    })
}

/// Says in a session's newest turn, and in its publication, where its files were not brought to
/// the user's after all, so that a restore knows what is left to bring; returns both.
pub fn tell_overlaps(
    checkout: &Checkout<'_>,
    (session, tip): (&SessionName, CommitId),
    published: &Published,
    synced: bool,
) -> anyhow::Result<(CommitId, Option<CommitId>)> {
    let turn = Turn::read(checkout.repository, session, tip)?;
    let Some(workspace) = turn.meta.workspace.clone() else {
        return Ok((tip, turn.publication));
    };
    let workspace = Workspace {
        synced,
        overlaps: shown(&published.conflicts),
        ..workspace
    };

    let stacks = stacks(checkout.repository);
    let publication = match stacks.own(&turn)? {
        Some((id, _)) => Some(amend(&stacks, id, synced, &published.conflicts)?),
        None => turn.publication,
    };
    let amended = checkout
        .store()
        .with_workspace(&turn, workspace, publication)?;

    let new: Vec<CommitId> = [amended].into_iter().chain(publication).collect();
    let reached = publication
        .map(|id| checkout.repository.commit(id).map(|commit| commit.tree))
        .transpose()?;
    let whole: Vec<TreeId> = [turn.tree].into_iter().chain(reached).collect();
    let held = hold::hold(checkout.repository, &new, &whole, Older::Stay)?;
    let held = held.context("`git gc` removed objects of the turn while it was recorded")?;

    durable::flush(checkout.repository)?;
    // Before the ref: where only one of them is written, recovery finds the turn as it was and
    // says it again.
    checkout.journal().keep_tip(session, amended)?;
    refs::move_to(
        checkout.repository,
        (&session.reference(), Expected::At(tip)),
        amended,
        "teddy: overlaps",
    )?;
    refs::sync(checkout.repository, &session.reference())?;
    hold::settle(checkout.repository, &held)?;

    Ok((amended, publication))
}

/// Notes what was last published to a checkout, this one or another. What nothing else reaches is
/// written before.
pub fn note_publication(
    repository: &Repository,
    checkout: &Repository,
    publication: Option<CommitId>,
    log: &str,
) -> anyhow::Result<()> {
    let name = Stacks::new(checkout).reference();
    let Some(id) = publication else { return Ok(()) };
    if refs::read(repository, &name)? == Some(id) {
        return Ok(());
    }

    let held = match staged::has(repository, id) {
        true => {
            let held = hold::hold(repository, &[id], &[], Older::Stay)?;
            Some(held.context("`git gc` removed objects of what was published")?)
        }
        false => None,
    };
    refs::move_to(repository, (&name, Expected::Any), id, log)?;
    held.map_or(Ok(()), |held| hold::settle(repository, &held))
}

/// Returns what reads the stacks of turns.
pub fn stacks(repository: &Repository) -> Stacks<'_> {
    Stacks::new(repository)
}

/// Keeps the objects of a turn, as far as no ref reaches them, from whatever `git gc` does from
/// here on.
fn hold_turn(
    checkout: &Checkout<'_>,
    session: &SessionName,
    turn: &SessionMove,
    mut known: Vec<TreeId>,
) -> anyhow::Result<Held> {
    let repository = checkout.repository;
    known.extend(
        refs::read(repository, &session.draft_reference())?
            .map(|commit| checkout.repository.commit(commit).map(|commit| commit.tree))
            .transpose()?,
    );
    let workspace = repository
        .commit(turn.new)
        .ok()
        .and_then(|commit| commit.parents.get(1).copied());
    let unreached =
        workspace.filter(|&id| refs::head(repository).is_ok_and(|head| head != Some(id)));
    let commits: Vec<_> = [turn.new]
        .into_iter()
        .chain(unreached)
        .chain(turn.published.id)
        .chain(turn.published.others.iter().copied())
        .collect();

    // They have the trees of turns that are recorded already.
    for &other in &turn.published.others {
        known.push(checkout.repository.commit(other)?.tree);
    }

    known.push(snapshot::kept_tree(checkout.repository)?);
    if let Some(held) = hold::hold(repository, &commits, &known, Older::Join)? {
        return Ok(held);
    }

    // They name what is gone.
    for index in [
        repository.worktree_name(),
        format!("session-{}", session.folder()),
    ] {
        files::forget(repository, &checkout.index(&index));
    }

    anyhow::bail!(
        "`git gc` removed objects of the turn while it was recorded; nothing was changed, try again"
    )
}

/// Returns the intent to complete a turn.
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

/// The move of a session's ref.
pub struct SessionMove {
    /// Where it must be.
    pub expected: Expected,
    /// Where it goes.
    pub new: CommitId,
    /// What is in the user's files afterwards.
    pub published: Written,
    /// The line in its log.
    pub log: String,
    /// Whether it is made although the user asked to stop, because it records just that.
    pub anyway: bool,
}

impl SessionMove {
    /// Makes sure that the user has not asked to stop. It is the last look: from here on the turn
    /// is finished, whatever is asked.
    fn heed_interrupt(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.anyway || !interrupt::requested(),
            "interrupted before anything was changed"
        );
        Ok(())
    }
}

/// Brings the files along, durably. What was set aside because nobody knows its bytes counts as a
/// conflict.
pub fn publish(
    repository: &Repository,
    files: &FileMove,
    guard: &Guard,
) -> anyhow::Result<Published> {
    let mut published = publish::publish(repository, files.from, files.to, guard)?;
    published
        .conflicts
        .extend(published.rescued.iter().map(|rescued| rescued.path.clone()));
    published.conflicts.sort();
    published.conflicts.dedup();
    Ok(published)
}

/// Returns what a publication respects.
pub fn guard(operation: &str, overlap: OverlapRule) -> Guard {
    Guard {
        operation: operation.to_owned(),
        overlap,
        durable: true,
        ..Guard::default()
    }
}

/// Returns the name of an operation.
fn operation(commit: CommitId) -> String {
    commit.to_string()[..12].to_owned()
}

/// Says why a session's ref did not move.
fn not_moved(session: &SessionName, error: MoveError) -> anyhow::Error {
    match error {
        MoveError::Moved { .. } => anyhow::Error::new(error).context(format!(
            "session `{session}` got another turn meanwhile; nothing was changed"
        )),
        MoveError::Store(error) => error,
    }
}
