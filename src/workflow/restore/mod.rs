//! Bringing the workspace back to a turn, forward again, or partly: one operation, three-way,
//! itself a turn.

mod record;
mod way;

use std::collections::BTreeSet;

use anyhow::Context as _;

use self::record::{Writing, write};
use self::way::{Brought, bring, files_of, hidden, is_below, spans};
use crate::git::object::{CommitId, TreeId};
use crate::git::reference::Expected;
use crate::host::interrupt;
use crate::session::meta::By;
use crate::session::turn::Turn;
use crate::text::visible::visible;
use crate::workflow::complete::{Completed, Move, Step, notes};
use crate::workflow::project::Project;
use crate::workflow::user::User;

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
pub struct Wish {
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
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Done {
    /// The turn to which the files were brought.
    pub turn: u64,
    /// The turn that records it; nothing after a dry run or an overlap.
    pub commit: Option<CommitId>,
    /// Files that were written.
    pub written: Vec<String>,
    /// Files that were deleted.
    pub deleted: Vec<String>,
    /// Files of the user's own that were kept.
    pub kept: Vec<String>,
    /// Files where edits meet, left as they are.
    pub overlaps: Vec<String>,
    /// What the user must be told about files that were not simply written.
    pub notes: Vec<String>,
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
    wish: &Wish,
    user: &mut dyn User,
) -> anyhow::Result<Done> {
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "restore")?;
    let _lock = project.enter("restore", user)?;
    let tip = project.store().tip(&session)?;
    let turn = project.store().turn(&session, name)?;
    go(
        project,
        &tip,
        Aim {
            turn: &turn,
            by: By::Restore,
            redo: Vec::new(),
        },
        wish,
    )
}

/// Goes back over the last `steps` turns.
///
/// # Errors
/// As for [`restore`], and where there are not so many turns.
pub fn undo(
    project: &Project,
    steps: u64,
    wish: &Wish,
    user: &mut dyn User,
) -> anyhow::Result<Done> {
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "undo")?;
    let _lock = project.enter("undo", user)?;
    let store = project.store();
    let tip = store.tip(&session)?;
    let brought = brought(project, &tip)?;
    let mut redo = to_redo(&brought);
    let mut at = brought.position();
    for _ in 0..steps {
        anyhow::ensure!(
            at > 0,
            "there is nothing to undo before the session's start"
        );
        redo.push(at);
        at = before(project, &tip, at)?;
    }
    let turn = store.turn(&session, &at.to_string())?;
    go(
        project,
        &tip,
        Aim {
            turn: &turn,
            by: By::Undo,
            redo,
        },
        wish,
    )
}

/// Goes forward again over the last `steps` undone turns.
///
/// # Errors
/// As for [`restore`], and where fewer turns were undone.
pub fn redo(
    project: &Project,
    steps: u64,
    wish: &Wish,
    user: &mut dyn User,
) -> anyhow::Result<Done> {
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "redo")?;
    let _lock = project.enter("redo", user)?;
    let store = project.store();
    let tip = store.tip(&session)?;
    let mut redo = to_redo(&brought(project, &tip)?);
    let mut at = None;
    for _ in 0..steps {
        at = redo.pop();
        anyhow::ensure!(at.is_some(), "there is nothing to redo");
    }
    let Some(at) = at else {
        anyhow::bail!("there is nothing to redo")
    };
    let turn = store.turn(&session, &at.to_string())?;
    go(
        project,
        &tip,
        Aim {
            turn: &turn,
            by: By::Undo,
            redo,
        },
        wish,
    )
}

/// Returns the newest turn but for restores that a save at the last moment kept from the user's
/// files.
fn brought(project: &Project, tip: &Turn) -> anyhow::Result<Turn> {
    let is_brought = |turn: &Turn| {
        turn.meta.restored.is_none()
            || turn
                .meta
                .workspace
                .as_ref()
                .is_none_or(|workspace| workspace.synced)
    };
    let newest = project
        .store()
        .history(tip.clone())
        .find(|turn| turn.as_ref().map_or(true, is_brought));
    newest.context("a session begins with no restore")?
}

/// Returns what a redo after a turn goes through.
fn to_redo(turn: &Turn) -> Vec<u64> {
    turn.meta
        .restored
        .as_ref()
        .map(|restored| restored.redo.clone())
        .unwrap_or_default()
}

/// Returns the turn whose state the workspace had before turn `number`.
fn before(project: &Project, tip: &Turn, number: u64) -> anyhow::Result<u64> {
    let previous = project
        .store()
        .turn(&tip.session, &(number - 1).to_string())?;
    Ok(previous.position())
}

/// A turn to go to.
struct Aim<'a> {
    /// The turn.
    turn: &'a Turn,
    /// What asked for it.
    by: By,
    /// What `redo` goes through afterwards.
    redo: Vec<u64>,
}

/// Fits the turn's files into the user's, writes them and records it.
fn go(project: &Project, tip: &Turn, aim: Aim<'_>, wish: &Wish) -> anyhow::Result<Done> {
    let target = files_of(project, tip, aim.turn)?;
    let spans = spans(project, tip, &aim)?;
    let mut recorded = project.record(tip, &[])?;
    let hidden = hidden(project, recorded.tree, &spans)?;
    if !hidden.is_empty() {
        recorded = project.record(tip, &hidden)?;
    }
    let mut done = Done {
        turn: aim.turn.number(),
        ..Done::default()
    };
    for path in &wish.paths {
        let is_in = |tree: TreeId| {
            Ok::<bool, anyhow::Error>(project.repository.entry(tree, path.as_bytes())?.is_some())
        };
        let (name, number) = (visible(path), done.turn);
        anyhow::ensure!(
            is_in(target)? || is_in(recorded.tree)?,
            "`{name}` is neither in turn {number} nor in a snapshot of your files"
        );
    }
    done.not_captured = recorded
        .not_captured
        .iter()
        .map(|left| left.path.clone())
        .collect();
    let brought = match wish.on_overlap {
        OnOverlap::Exact => Brought {
            tree: target,
            overlaps: BTreeSet::new(),
        },
        on_overlap => bring(project, recorded.tree, &spans, on_overlap)?,
    };
    if wish.on_overlap == OnOverlap::Stop {
        let inside = |path: &Vec<u8>| wish.paths.is_empty() || is_below(path, &wish.paths);
        done.overlaps = brought
            .overlaps
            .iter()
            .filter(|path| inside(path))
            .map(|path| lossy(path))
            .collect();
        if !done.overlaps.is_empty() {
            return Ok(done);
        }
    }
    let to = project.restrict(recorded.tree, brought.tree, &wish.paths)?;
    let files = Move {
        from: recorded.tree,
        to,
    };
    let restricted = project.restrict(recorded.tree, target, &wish.paths)?;
    tell_changes(project, &mut done, &files, restricted)?;
    if wish.dry_run {
        return Ok(done);
    }
    anyhow::ensure!(
        !interrupt::requested(),
        "interrupted before anything was changed"
    );
    let (commit, after) = write(
        project,
        tip,
        &Writing {
            aim: &aim,
            recorded: &recorded,
            files: &files,
            wish,
        },
    )?;
    let step = Step {
        expected: Expected::At(tip.commit),
        new: commit,
        published: Some(after),
        log: format!("teddy: restore turn {}", aim.turn.number()),
        anyway: false,
    };
    let Completed { commit, published } = project.complete(&tip.session, &step, Some(&files))?;
    done.overlaps = shown(&published.conflicts);
    done.notes = notes(&published);
    done.commit = Some(commit);
    Ok(done)
}

/// Says which files are written, deleted and kept.
fn tell_changes(
    project: &Project,
    done: &mut Done,
    files: &Move,
    target: TreeId,
) -> anyhow::Result<()> {
    for change in project.repository.changes(files.from, files.to)? {
        let path = lossy(&change.path);
        if change.new.is_some() {
            done.written.push(path)
        } else {
            done.deleted.push(path)
        }
    }
    done.kept = project
        .repository
        .changes(target, files.to)?
        .iter()
        .map(|change| lossy(&change.path))
        .collect();
    Ok(())
}

/// Returns paths for a person.
pub fn shown(paths: &[Vec<u8>]) -> Vec<String> {
    paths.iter().map(|path| lossy(path)).collect()
}

/// Returns a path for a person.
pub fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
