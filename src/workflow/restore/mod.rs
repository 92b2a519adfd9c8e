//! Bringing the workspace back to a turn, forward again, or partly: one operation, three-way,
//! itself a turn.

mod bring;
mod landed;
pub mod note;
mod record;
pub mod steps;
mod way;

use std::collections::BTreeMap;

use crate::git::diff;
use serde::Serialize;

use self::bring::{RestoredFiles, bring};
use self::landed::still_landed;
use self::note::RestoreNote;
use self::record::{RestoreTurn, write};
use self::steps::PassedOver;
use self::way::{Planner, Way, hidden, is_below};
use crate::git::object::{CommitId, EntryMode, TreeEntry, TreeId};
use crate::git::refs::Expected;
use crate::git::repository::Repository;
use crate::host::interrupt;
use crate::session::meta::{RestoreCommand, Restored};
use crate::session::publication::Stack;
use crate::session::store::back::TurnsBack;
use crate::session::turn::Turn;
use crate::text::path::{lossy, shown};
use crate::text::visible::visible;
use crate::workflow::project::Project;
use crate::workflow::user::User;
use crate::workspace::complete::{Completed, SessionMove};
use crate::workspace::drift::{taken_from_others, taken_of};
use crate::workspace::file_move::FileMove;
use crate::workspace::marks::marked;
use crate::workspace::missing::MissingChange;
use crate::workspace::missing::missing;
use crate::workspace::notice::obstacles;
use crate::workspace::stack::{PatchId, Stacks, is_patch};
use crate::workspace::transaction::Transaction;
use crate::workspace::turn_files::{files_of, first_after};

/// What to do where the user's own edits and the turn's meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnOverlap {
    /// Change nothing and say where.
    #[default]
    Stop,
    /// Keep the user's side.
    Ours,
    /// Take the turn's side.
    Theirs,
    /// Write conflict markers.
    Markers,
    /// Make the files equal to the turn's, whatever the user did since.
    Exact,
}

/// What is wanted of a restore.
#[derive(Debug, Clone, Default)]
pub struct RestoreOptions {
    /// Paths or folders to restrict it to.
    pub paths: Vec<String>,
    /// What to do where edits meet.
    pub on_overlap: OnOverlap,
    /// Leave the context as it is.
    pub files_only: bool,
    /// Only show what would change.
    pub dry_run: bool,
}

/// What a restore did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RestoreResult {
    /// The turn to which the files were brought.
    pub turn: u64,
    /// The turn that records it; nothing after a dry run or an overlap.
    pub commit: Option<CommitId>,
    /// The turns that an undo or redo went over.
    pub over: Vec<u64>,
    /// The turns that it did not count.
    pub passed_over: Vec<PassedOver>,
    /// Whether exactly the turns are in the files that were in them after that turn.
    pub same_turns: bool,
    /// Files that were written.
    pub written: Vec<String>,
    /// Files that were deleted.
    pub deleted: Vec<String>,
    /// Files of the user's own that were kept.
    pub kept: Vec<String>,
    /// Those among them in which something of a turn is missing, and why.
    pub missing: Vec<MissingChange>,
    /// Those that were written with conflict markers.
    pub conflicts: Vec<String>,
    /// Files where edits meet, left as they are; after the turn is recorded, those that could not be
    /// written.
    pub overlaps: Vec<String>,
    /// What the user must be told about files that were not simply written.
    #[serde(skip)]
    pub notes: Vec<RestoreNote>,
    /// Files that no snapshot has, left as they are.
    pub not_captured: Vec<String>,
}

/// Brings the workspace to a turn.
///
/// # Errors
/// Where there is no such turn, or the repository or the files cannot be written.
pub fn restore(
    project: &Project,
    name: &str,
    wish: &RestoreOptions,
    user: &mut dyn User,
) -> anyhow::Result<RestoreResult> {
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "restore")?;
    let transaction = project.enter("restore", user)?;
    let tip = project.store().tip(&session)?;
    let turn = project.store().turn(&session, name)?;
    turn.session.writable()?;
    let stacks = Stacks::new(&project.repository);
    let here = stacks.here(&tip)?;
    let wanted = wanted(project, &stacks, &turn)?;
    let planner = Planner {
        repository: &project.repository,
        stacks: &stacks,
        here: &here,
    };

    let turns = project.store().back_from(tip.clone());
    let aim = Aim {
        turns: &turns,
        turn: &turn,
        title: format!("Restore {}: {}", turn.number(), turn.title),
        restored: Restored {
            turn: turn.number(),
            by: RestoreCommand::Restore,
            redo: Vec::new(),
            over: Vec::new(),
        },
        way: planner.to(&wanted, &wish.paths)?,
        planner,
        wanted,
    };
    carry_out(&transaction, project, &tip, &aim, wish)
}

/// Where a restore goes, and how.
struct Aim<'a> {
    /// What is in the files.
    planner: Planner<'a>,
    /// The session's turns.
    turns: &'a TurnsBack<'a>,
    /// The turn whose state it is.
    turn: &'a Turn,
    /// The title of the turn that records it.
    title: String,
    /// What that turn says of itself.
    restored: Restored,
    /// The way there.
    way: Way,
    /// What is in the files in that state.
    wanted: Stack<PatchId>,
}

/// Fits what lies on the way into the user's files, writes them and records it.
fn carry_out(
    transaction: &Transaction,
    project: &Project,
    tip: &Turn,
    aim: &Aim<'_>,
    wish: &RestoreOptions,
) -> anyhow::Result<RestoreResult> {
    let target = files_of(&project.checkout(), aim.turn)?;
    let mut recorded = transaction.record(&project.checkout(), tip, &[])?;
    let hidden = hidden(project, recorded.tree, &aim.way)?;
    if !hidden.is_empty() {
        recorded = transaction.record(&project.checkout(), tip, &hidden)?;
    }

    check_paths(&project.repository, aim.turn, wish, [target, recorded.tree])?;
    let mut done = RestoreResult {
        turn: aim.turn.number(),
        over: aim.restored.over.clone(),
        not_captured: recorded
            .not_captured
            .iter()
            .map(|left| left.path.clone())
            .collect(),
        ..RestoreResult::default()
    };

    let target = restrict(&project.repository, recorded.tree, target, &wish.paths)?;
    let brought = match wish.on_overlap {
        OnOverlap::Exact => RestoredFiles::exactly(target),
        on_overlap => bring(project, recorded.tree, &aim.way, on_overlap)?,
    };
    if wish.on_overlap == OnOverlap::Stop && !brought.overlaps.is_empty() {
        done.overlaps = brought.overlaps.iter().map(|path| lossy(path)).collect();
        return Ok(done);
    }

    let files = FileMove {
        from: recorded.tree,
        to: leave_repositories(&project.repository, recorded.tree, brought.tree)?,
    };
    // What turns did that nobody knows of counts as the user's: only a look at the files tells.
    let is_known = aim.planner.stacks.are_known()? || files.to == target;
    done.same_turns = wish.on_overlap == OnOverlap::Exact
        || is_known
            && brought.stopped.is_empty()
            && aim.way.ends_in(aim.planner.stacks, &aim.wanted, wish)?;

    if !is_known {
        done.notes.push(RestoreNote::NoRecord);
    }

    tell_changes(project, (tip, aim), (&files, target), &mut done)?;
    if wish.on_overlap == OnOverlap::Markers {
        let suspects: Vec<Vec<u8>> = brought.overlaps.iter().cloned().collect();
        done.conflicts = shown(&marked(&project.repository, files.to, &suspects)?);
    }
    if wish.dry_run {
        return Ok(done);
    }

    anyhow::ensure!(
        !interrupt::requested(),
        "interrupted before anything was changed"
    );

    let writing = RestoreTurn {
        aim,
        recorded: &recorded,
        files: &files,
        brought: &brought,
        wish,
    };
    let (commit, published) = write(project, tip, &writing)?;
    let step = SessionMove {
        expected: Expected::At(tip.commit),
        new: commit,
        published,
        log: format!("teddy: restore turn {}", aim.turn.number()),
        anyway: false,
    };

    let Completed {
        commit, published, ..
    } = transaction.complete(&project.checkout(), &tip.session, &step, Some(&files))?;
    done.overlaps = shown(&published.conflicts);
    done.notes
        .extend(obstacles(&published).into_iter().map(RestoreNote::Obstacle));
    done.commit = Some(commit);

    // The files are there: what cannot be told is no failure of theirs.
    let notes = what_went(project, tip, aim);
    done.notes.extend(notes.unwrap_or_default());
    Ok(done)
}

/// Says which turns of other sessions went with those of this one, and which of its own are still
/// on a branch; `tip` was the newest turn before.
fn what_went(project: &Project, tip: &Turn, aim: &Aim<'_>) -> anyhow::Result<Vec<RestoreNote>> {
    let before = aim.planner.here;
    let stacks = Stacks::new(&project.repository);
    let now = stacks.wanted(&project.store().tip(&tip.session)?)?;
    let own = taken_of(&stacks, &tip.session, [before, &now])?;
    let landed = still_landed(project, aim.turns, &own)?;
    let mut others = taken_from_others(&stacks, &tip.session, &[], [before, &now])?;
    if !others.is_empty() {
        let over = turns_after(project, &stacks, tip, aim.turn)?;
        others = taken_from_others(&stacks, &tip.session, &over, [before, &now])?;
    }

    let landed = (!landed.is_empty()).then_some(RestoreNote::StillLanded(landed));
    let others = (!others.is_empty()).then_some(RestoreNote::TakenFromOthers(others));
    Ok(landed.into_iter().chain(others).collect())
}

/// Returns what the turns of a session's history changed that come after one of them, up to its
/// newest.
fn turns_after(
    project: &Project,
    stacks: &Stacks<'_>,
    tip: &Turn,
    turn: &Turn,
) -> anyhow::Result<Vec<PatchId>> {
    let mut patches = Vec::new();
    for later in project.store().history(tip.clone()) {
        let later = later?;
        if later.number() <= turn.number() {
            break;
        }
        if is_patch(&later) {
            patches.push(stacks.id(&later)?);
        }
    }
    Ok(patches)
}

/// Refuses paths that are nowhere.
fn check_paths(
    repository: &Repository,
    turn: &Turn,
    wish: &RestoreOptions,
    trees: [TreeId; 2],
) -> anyhow::Result<()> {
    for path in &wish.paths {
        let mut is_there = false;
        for tree in trees {
            is_there |= repository.entry(tree, path.as_bytes())?.is_some();
        }

        let (name, number) = (visible(path), turn.number());
        anyhow::ensure!(
            is_there,
            "`{name}` is neither in turn {number} nor in a snapshot of your files"
        );
    }

    Ok(())
}

/// Says which files are written, deleted and kept, and where something of a turn is missing.
fn tell_changes(
    project: &Project,
    (tip, aim): (&Turn, &Aim<'_>),
    (files, target): (&FileMove, TreeId),
    done: &mut RestoreResult,
) -> anyhow::Result<()> {
    for change in diff::changes(&project.repository, files.from, files.to)? {
        let path = lossy(&change.path);
        if change.new.is_some() {
            done.written.push(path)
        } else {
            done.deleted.push(path)
        }
    }

    let own = diff::changes(&project.repository, target, files.to)?;
    let own_paths = own.iter().map(|change| lossy(&change.path));
    // What was deleted just now is not kept.
    done.kept = own_paths
        .filter(|path| !done.deleted.contains(path))
        .collect();
    if done.same_turns {
        done.missing = missing(
            &project.checkout(),
            tip,
            aim.planner.stacks,
            (&aim.wanted, &own),
        )?;
    }

    Ok(())
}

/// Returns a tree with the repositories within that the files have: a restore neither makes nor deletes
/// nor moves one, so it must not say so.
fn leave_repositories(
    repository: &Repository,
    files: TreeId,
    tree: TreeId,
) -> anyhow::Result<TreeId> {
    let is_other = |entry: &Option<TreeEntry>| {
        let entry = entry.as_ref();
        entry.is_some_and(|entry| entry.mode != EntryMode::Gitlink)
    };
    let mut edits = BTreeMap::new();
    for change in diff::changes(repository, files, tree)? {
        // Files that are to take the place of a repository meet it when they are written.
        let is_dir = repository.entry(tree, &change.path)?;
        let is_dir = is_dir.is_some_and(|entry| entry.mode == EntryMode::Tree);
        if !is_dir && !is_other(&change.old) && !is_other(&change.new) {
            edits.insert(change.path, change.old);
        }
    }
    diff::tree_with(repository, tree, &edits)
}

/// Returns what is in the user's files in the state of a turn.
fn wanted(project: &Project, stacks: &Stacks<'_>, turn: &Turn) -> anyhow::Result<Stack<PatchId>> {
    match first_after(&project.checkout(), turn)? {
        Some(next) => stacks.below(&next),
        None => stacks.wanted(turn),
    }
}

/// Returns `tree` as far as the paths go, and `elsewhere` for all others.
fn restrict(
    repository: &Repository,
    elsewhere: TreeId,
    tree: TreeId,
    paths: &[String],
) -> anyhow::Result<TreeId> {
    if paths.is_empty() {
        return Ok(tree);
    }

    let changes = diff::changes(repository, elsewhere, tree)?;
    let edits = changes
        .into_iter()
        .filter(|change| is_below(&change.path, paths))
        .map(|change| (change.path, change.new))
        .collect();
    diff::tree_with(repository, elsewhere, &edits)
}
