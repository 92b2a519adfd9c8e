//! Bringing the workspace back to a turn, forward again, or partly: one operation, three-way, itself a turn.

use crate::git::object::{CommitId, TreeId};
use crate::git::reference::Expected;
use crate::host::clock;
use crate::session::artifact::{self, Artifacts};
use crate::session::meta::{self, Meta, NextMeta, Restored, SCHEMA, Status, Workspace};
use crate::session::store::NewTurn;
use crate::session::turn::Turn;
use crate::workflow::complete::{Fit, Move, Step};
use crate::workflow::project::Project;
use crate::workflow::user::User;
use crate::workflow::workspace::Recorded;

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
    /// Files that no snapshot has, left as they are.
    pub not_captured: Vec<String>,
}

/// Where a restore goes.
struct Target<'a> {
    /// The turn.
    turn: &'a Turn,
    /// The files.
    tree: TreeId,
    /// What `redo` goes through afterwards.
    redo: Vec<u64>,
}

/// Brings the workspace to a turn.
///
/// # Errors
/// Where there is no such turn, or the repository or the files cannot be written.
pub fn restore(project: &Project, name: &str, wish: &Wish, user: &mut dyn User) -> anyhow::Result<Done> {
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "restore")?;
    let _lock = project.lock("restore")?;
    project.recover(user)?;
    let tip = project.store().tip(&session)?;
    let turn = project.store().turn(&session, name)?;
    go(project, &tip, Aim { turn: &turn, redo: Vec::new() }, wish)
}

/// Goes back over the last `steps` turns.
///
/// # Errors
/// As for [`restore`], and where there are not so many turns.
pub fn undo(project: &Project, steps: u64, wish: &Wish, user: &mut dyn User) -> anyhow::Result<Done> {
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "undo")?;
    let _lock = project.lock("undo")?;
    project.recover(user)?;
    let store = project.store();
    let tip = store.tip(&session)?;
    let mut redo = tip.meta.restored.as_ref().map(|restored| restored.redo.clone()).unwrap_or_default();
    let mut at = tip.position();
    for _ in 0..steps {
        anyhow::ensure!(at > 0, "there is nothing to undo before the session's start");
        redo.push(at);
        at = before(project, &tip, at)?;
    }
    let turn = store.turn(&session, &at.to_string())?;
    go(project, &tip, Aim { turn: &turn, redo }, wish)
}

/// Goes forward again over the last `steps` undone turns.
///
/// # Errors
/// As for [`restore`], and where fewer turns were undone.
pub fn redo(project: &Project, steps: u64, wish: &Wish, user: &mut dyn User) -> anyhow::Result<Done> {
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "redo")?;
    let _lock = project.lock("redo")?;
    project.recover(user)?;
    let store = project.store();
    let tip = store.tip(&session)?;
    let mut redo = tip.meta.restored.as_ref().map(|restored| restored.redo.clone()).unwrap_or_default();
    let mut at = None;
    for _ in 0..steps {
        at = redo.pop();
        anyhow::ensure!(at.is_some(), "there is nothing to redo");
    }
    let Some(at) = at else { anyhow::bail!("there is nothing to redo") };
    let turn = store.turn(&session, &at.to_string())?;
    go(project, &tip, Aim { turn: &turn, redo }, wish)
}

/// Returns the turn whose state the workspace had before turn `number`.
fn before(project: &Project, tip: &Turn, number: u64) -> anyhow::Result<u64> {
    let previous = project.store().turn(&tip.session, &(number - 1).to_string())?;
    Ok(previous.position())
}

/// A turn to go to.
struct Aim<'a> {
    /// The turn.
    turn: &'a Turn,
    /// What `redo` goes through afterwards.
    redo: Vec<u64>,
}

/// Fits the turn's files into the user's, writes them and records it.
fn go(project: &Project, tip: &Turn, aim: Aim<'_>, wish: &Wish) -> anyhow::Result<Done> {
    let target = Target { tree: files_of(project, tip, aim.turn)?, turn: aim.turn, redo: aim.redo };
    let recorded = project.record(tip, &[])?;
    let base = project.published(tip)?.map_or(Ok(recorded.tree), |commit| project.repository.commit(commit).map(|c| c.tree))?;
    let restricted = project.restrict(recorded.tree, target.tree, &wish.paths)?;
    let base = project.restrict(recorded.tree, base, &wish.paths)?;
    let mut done = Done { turn: target.turn.number(), ..Done::default() };
    done.not_captured = recorded.not_captured.iter().map(|left| left.path.clone()).collect();
    let files = match choose(project.fit(base, recorded.tree, restricted)?, wish.on_overlap, restricted) {
        Ok(files) => files,
        Err(overlaps) => {
            done.overlaps = shown(&overlaps);
            return Ok(done);
        }
    };
    tell_changes(project, &mut done, &files, restricted)?;
    if wish.dry_run {
        return Ok(done);
    }
    let (commit, after) = write(project, tip, &Writing { target: &target, recorded: &recorded, files: &files, wish })?;
    let step = Step { expected: Expected::At(tip.commit), new: commit, published: Some(after), log: format!("teddy: restore turn {}", target.turn.number()) };
    let published = project.complete(&tip.session, &step, Some(&files))?;
    done.overlaps = shown(&published.conflicts);
    done.commit = Some(commit);
    Ok(done)
}

/// Decides between the ways out of an overlap.
fn choose(fit: Fit, on_overlap: OnOverlap, target: TreeId) -> Result<Move, Vec<Vec<u8>>> {
    let (paths, ways) = match fit {
        Fit::Clean(files) if on_overlap == OnOverlap::Exact => return Ok(Move { from: files.from, to: target }),
        Fit::Clean(files) => return Ok(files),
        Fit::Overlap(paths, ways) => (paths, ways),
    };
    let to = match on_overlap {
        OnOverlap::Stop => return Err(paths),
        OnOverlap::Ours => ways.ours,
        OnOverlap::Theirs => ways.theirs,
        OnOverlap::Markers => ways.markers,
        OnOverlap::Exact => target,
    };
    Ok(Move { from: ways.from, to })
}

/// Says which files are written, deleted and kept.
fn tell_changes(project: &Project, done: &mut Done, files: &Move, target: TreeId) -> anyhow::Result<()> {
    for change in project.repository.changes(files.from, files.to)? {
        let path = lossy(&change.path);
        if change.new.is_some() { done.written.push(path) } else { done.deleted.push(path) }
    }
    done.kept = project.repository.changes(target, files.to)?.iter().map(|change| lossy(&change.path)).collect();
    Ok(())
}

/// Returns the files of a turn: what it left, or what the first turn found.
fn files_of(project: &Project, tip: &Turn, turn: &Turn) -> anyhow::Result<TreeId> {
    if let Some(workspace) = turn.workspace {
        return Ok(project.repository.commit(workspace)?.tree);
    }
    anyhow::ensure!(tip.number() > turn.number(), "session `{}` has no turn yet, so that there is nothing to go back to", tip.session);
    let next = project.store().turn(&tip.session, &(turn.number() + 1).to_string())?;
    match next.meta.workspace {
        Some(workspace) => Ok(project.repository.commit(workspace.before)?.tree),
        None => anyhow::bail!("turn {} does not say what your files were before it", next.number()),
    }
}

/// What the turn of a restore is written from.
struct Writing<'a> {
    /// Where it goes.
    target: &'a Target<'a>,
    /// The user's files before.
    recorded: &'a Recorded,
    /// What happens to them.
    files: &'a Move,
    /// What was wanted.
    wish: &'a Wish,
}

/// Writes the turn that records a restore.
fn write(project: &Project, tip: &Turn, writing: &Writing<'_>) -> anyhow::Result<(CommitId, CommitId)> {
    let Writing { target, recorded, files, wish } = writing;
    let repository = &project.repository;
    let draft = project.store().draft(tip)?;
    let title = format!("Restore turn {}: {}", target.turn.number(), target.turn.title);
    let after = project.advance(recorded.commit, files.to, &format!("{title}\n\nTeddy-Session: {}\n", tip.session))?;
    let now = Some(clock::now().timestamp().to_string());
    let restored = Restored { turn: target.turn.number(), redo: target.redo.clone() };
    let workspace = Workspace { worktree: repository.worktree_name(), before: recorded.commit, after, synced: true, overlaps: Vec::new() };
    let meta = Meta {
        status: Status::Restored,
        started: now.clone(),
        ended: now,
        workspace: Some(workspace),
        restored: Some(restored),
        not_captured: recorded.not_captured.clone(),
        replans: 0,
        model: None,
        repair: None,
        ..draft.meta.clone()
    };
    let mut artifacts = Artifacts::default();
    artifacts.put(artifact::SYSTEM_PROMPT, draft.artifacts.text_or_empty(artifact::SYSTEM_PROMPT));
    artifacts.put(artifact::TURN_CONTEXT, draft.artifacts.text_or_empty(artifact::TURN_CONTEXT));
    artifacts.put(artifact::SESSION_CONTEXT, draft.artifacts.text_or_empty(artifact::SESSION_CONTEXT));
    let from = if wish.files_only { tip } else { target.turn };
    next_state(project, &mut artifacts, from, meta.turn_id)?;
    let mut done: Vec<String> = Vec::new();
    for change in repository.changes(files.from, files.to)? {
        done.push(format!("{} {}", if change.new.is_some() { "write" } else { "delete" }, lossy(&change.path)));
    }
    artifacts.put(artifact::REPORT, report(&title, &done));
    let new = NewTurn { session: &tip.session, title: &title, done: &done, artifacts, meta: &meta, previous: Some(tip.commit), workspace: Some(after) };
    Ok((project.store().write(new)?, after))
}

/// Gives the next turn the state that it had after the turn that was restored.
fn next_state(project: &Project, artifacts: &mut Artifacts, from: &Turn, turn_id: uuid::Uuid) -> anyhow::Result<()> {
    let old = from.next(&project.repository)?;
    let next = NextMeta { schema: SCHEMA, turn_id: uuid::Uuid::now_v7(), parent_turn_id: turn_id, ..old };
    artifacts.put(&format!("{}{}", artifact::NEXT, artifact::META), meta::write(&next));
    for name in [artifact::TURN_CONTEXT, artifact::SYSTEM_PROMPT] {
        let name = format!("{}{name}", artifact::NEXT);
        artifacts.put(&name, project.repository.file(from.tree, &name)?.unwrap_or_default());
    }
    Ok(())
}

/// Writes the report of a restore.
fn report(title: &str, done: &[String]) -> String {
    let mut text = format!("# Execution Report: {title}\n- **Overall Status:** Restored 🟢\n\n## Changed Files\n\n");
    done.iter().for_each(|line| text.push_str(&format!("- {}\n", crate::text::visible::visible(line))));
    if done.is_empty() {
        text.push_str("*(No file had to change.)*\n");
    }
    text
}

/// Returns paths for a person.
pub fn shown(paths: &[Vec<u8>]) -> Vec<String> {
    paths.iter().map(|path| lossy(path)).collect()
}

/// Returns a path for a person.
pub fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

impl Project {
    /// Returns the workspace commit that the user's files were last brought to, as this session sees it:
    /// its own newest, or a later one on top of it that another session brought.
    ///
    /// # Errors
    /// Where the repository cannot be read.
    pub fn published(&self, tip: &Turn) -> anyhow::Result<Option<CommitId>> {
        let own = tip.published();
        let last = self.repository.reference(&self.published_reference())?;
        match (own, last) {
            (Some(own), Some(last)) if own != last && self.repository.is_ancestor(own, last)? => Ok(Some(last)),
            (own, _) => Ok(own),
        }
    }

    /// Returns the ref of the workspace commit that this checkout was last brought to.
    pub fn published_reference(&self) -> String {
        format!("refs/teddy/published/{}", self.repository.worktree_name())
    }

    /// Returns `tree` as far as the paths go, and `elsewhere` for all others.
    fn restrict(&self, elsewhere: TreeId, tree: TreeId, paths: &[String]) -> anyhow::Result<TreeId> {
        if paths.is_empty() {
            return Ok(tree);
        }
        let wanted = |path: &[u8]| {
            paths.iter().any(|p| {
                let p = p.trim_end_matches('/').as_bytes();
                path == p || (path.starts_with(p) && path.get(p.len()) == Some(&b'/'))
            })
        };
        let changes = self.repository.changes(elsewhere, tree)?;
        let edits = changes.into_iter().filter(|change| wanted(&change.path)).map(|change| (change.path, change.new)).collect();
        self.repository.tree_with(elsewhere, &edits)
    }
}
