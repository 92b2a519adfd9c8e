//! The turn that records a landing, and what comes with it: the branch moves, the index follows,
//! and what hooks changed reaches the user's files.

use super::commits::MadeCommit;
use crate::git::land::branch::Target;
use crate::git::merge;
use crate::git::merge::Merged;
use crate::git::object::TreeId;
use crate::git::refs::{self, Expected};
use crate::git::repository::Repository;
use crate::host::clock;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::journal::BranchMove;
use crate::session::meta::{Landed, LandedCommit, Meta, Status, Workspace};
use crate::session::store::NewTurn;
use crate::session::turn::{Turn, in_next};
use crate::text::visible::visible;
use crate::workflow::project::Project;
use crate::workspace::complete::{Completed, SessionMove};
use crate::workspace::file_move::FileMove;
use crate::workspace::snapshot;
use crate::workspace::snapshot::RecordedFiles;
use crate::workspace::stack::record::publish_turn;
use crate::workspace::transaction::Transaction;

/// What hooks did to files, in the user's.
#[derive(Debug)]
pub(super) struct Formatted {
    /// Their tree with it.
    tree: TreeId,
    /// Where it overlaps with the user's own edits, and stays away.
    pub overlaps: Vec<Vec<u8>>,
}

/// A landing that is on record.
pub(super) struct Recording {
    /// The number of the turn.
    pub turn: u64,
    /// What became of branch, session and files.
    pub completed: Completed,
    /// What hooks did.
    pub formatted: Formatted,
}

/// Moves the branch to commits that git made, and records that as a turn.
///
/// # Errors
/// If the branch or the session moved meanwhile, or the repository cannot be written; nothing has
/// changed then, or the message says what has.
pub(super) fn record(
    transaction: &Transaction,
    project: &Project,
    (tip, target): (&Turn, &Target),
    made: &[MadeCommit],
) -> anyhow::Result<Recording> {
    let checkout = project.checkout();
    let recorded = transaction.record(&checkout, tip, &[])?;
    let formatted = match target.is_current {
        true => formatted(&project.repository, recorded.tree, made)?,
        false => Formatted {
            tree: recorded.tree,
            overlaps: Vec::new(),
        },
    };

    let files = FileMove {
        from: recorded.tree,
        to: formatted.tree,
    };
    let draft = project.store().draft(tip)?;
    let step = write(project, (tip, target), made, (&recorded, &files, &draft))?;
    let completed = transaction.complete(&checkout, &tip.session, &step, Some(&files))?;

    Ok(Recording {
        turn: tip.number() + 1,
        completed,
        formatted,
    })
}

/// Brings what hooks did to the user's files, three-way.
fn formatted(
    repository: &Repository,
    now: TreeId,
    made: &[MadeCommit],
) -> anyhow::Result<Formatted> {
    let mut formatted = Formatted {
        tree: now,
        overlaps: Vec::new(),
    };
    for commit in made {
        formatted.tree = match merge::merge(repository, commit.wanted, formatted.tree, commit.tree)?
        {
            Merged::Clean(tree) => tree,
            Merged::Overlap { paths, ours, .. } => {
                formatted.overlaps.extend(paths);
                ours
            }
        };
    }

    formatted.overlaps.sort();
    formatted.overlaps.dedup();
    Ok(formatted)
}

/// Writes the turn.
fn write(
    project: &Project,
    (tip, target): (&Turn, &Target),
    made: &[MadeCommit],
    (recorded, files, draft): (&RecordedFiles, &FileMove, &Draft),
) -> anyhow::Result<SessionMove> {
    let repository = &project.repository;
    let title = title(made, &target.name);
    let mut draft = draft.clone();
    draft.set_answer_aside();
    draft.begin();
    let after = snapshot::advance(
        repository,
        recorded.commit,
        files.to,
        &format!("{title}\n\nTeddy-Session: {}\n", tip.session),
    )?;
    let workspace = Workspace {
        worktree: repository.worktree_name(),
        branch: Some(refs::branch_or_head(repository)?),
        before: recorded.commit,
        after,
        synced: true,
        overlaps: Vec::new(),
    };

    let published = publish_turn(repository, tip, &workspace, Some(files.to))?;
    let meta = Meta {
        status: Status::Landed,
        ended: Some(clock::stamp()),
        workspace: Some(workspace),
        landed: Some(landed(made, target)),
        not_captured: recorded.not_captured.clone(),
        model: None,
        repair: None,
        ..draft.meta.clone()
    };

    let done = lines(made);
    let mut artifacts = draft.standing();
    tip.hand_on(repository, meta.turn_id, &mut artifacts)?;

    // What the user has put on the list since the newest turn stays there.
    for name in [artifact::TURN_CONTEXT, artifact::SYSTEM_PROMPT] {
        artifacts.put(&in_next(name), draft.artifacts.text_or_empty(name));
    }

    artifacts.put(artifact::REPORT, report(&title, &done));

    let commit = project.store().write(NewTurn {
        session: &tip.session,
        title: &title,
        done: &done,
        artifacts,
        meta: &meta,
        previous: Some(tip.commit),
        workspace: Some(after),
        publication: published.id,
    })?;
    let newest = made.last().expect("a landing has a commit");
    Ok(SessionMove {
        expected: Expected::At(tip.commit),
        new: commit,
        published,
        log: format!("teddy: {}", title.to_lowercase()),
        anyway: false,
        branch: Some(BranchMove {
            name: target.reference(),
            old: target.old,
            new: newest.commit,
            old_tree: target.tree,
            is_current: target.is_current,
            log: format!("teddy land: {}", visible(&newest.title)),
        }),
        overwrite: false,
    })
}

/// Returns what landed where.
fn landed(made: &[MadeCommit], target: &Target) -> Landed {
    let commit = |made: &MadeCommit| LandedCommit {
        commit: made.commit,
        turns: made.turns.clone(),
    };
    Landed {
        branch: target.name.clone(),
        commits: made.iter().map(commit).collect(),
    }
}

/// Returns a line for each commit.
fn lines(made: &[MadeCommit]) -> Vec<String> {
    let line = |made: &MadeCommit| format!("commit {} {}", made.commit, visible(&made.title));
    made.iter().map(line).collect()
}

/// Returns the title of the turn: `Land turns 1, 2 on main`.
fn title(made: &[MadeCommit], branch: &str) -> String {
    let turns = made.iter().flat_map(|commit| &commit.turns);
    let numbers: Vec<u64> = turns.map(|turn| turn.number).collect();
    format!("Land {} on {branch}", super::turns(&numbers))
}

/// Writes the report.
fn report(title: &str, done: &[String]) -> String {
    let lines: String = done.iter().map(|line| format!("- {line}\n")).collect();
    format!("# Execution Report: {title}\n- **Overall Status:** Landed 🟢\n\n## Commits\n\n{lines}")
}
