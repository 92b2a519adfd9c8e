//! Records what a plan with commands left in the worktree, as a tree to merge into the user's
//! files.
//!
//! Files that a command moved to an ignored place are included; otherwise they would look deleted.
//! Nested repositories are opaque: changes inside are not recorded, and the report says so. A file
//! moved into one counts as unmoved.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::git::diff::{self, TreeChange};
use crate::git::keep::damaged::FsTime;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::private_files::PrivateFiles;
use crate::git::repository::Repository;
use crate::git::snapshot::{self, Snapshot};

use crate::git::snapshot::limits::{Forced, LeftOut, Reason, display_path};
use crate::git::worktree::SessionWorktree;
use crate::git::worktree::layer::{ChangedIgnored, LayerScan};
use crate::git::worktree::moved::{Before, Moved};
use crate::project::Project;
use crate::session::meta::NotCaptured;
use crate::text::sanitize::sanitize_line;
use crate::workflow::execute::prepare::RunEnv;
use crate::workspace::snapshot::not_captured;

const OPAQUE: &str = "a repository of its own, in which the plan worked";

pub(super) struct UsedWorktree<'a> {
    pub worktree: &'a SessionWorktree,
    /// To the user's directory.
    pub linked: &'a [Vec<u8>],
    pub written: &'a [Vec<u8>],
    pub before: &'a Before,
    pub began: FsTime,
}

pub(super) struct CapturedWorktree {
    pub tree: TreeId,
    pub not_captured: Vec<NotCaptured>,
}

/// `None` removes the path.
type TreeEdits = BTreeMap<Vec<u8>, Option<TreeEntry>>;

/// Without the symlinks that TeDDy placed there.
pub(super) fn capture(
    project: &Project,
    env: &RunEnv<'_>,
    opened: &UsedWorktree<'_>,
) -> anyhow::Result<CapturedWorktree> {
    let index = project.index(&format!("session-{}", env.name));
    let repository = &opened.worktree.repository;
    let written: Vec<Forced> = opened.written.iter().cloned().map(Forced::new).collect();
    let limits = project.limits();
    let mut ignored = None;
    let mut snapshot = match opened.worktree.is_layered() {
        true => {
            let user = &project.repository;
            let layer = LayerScan {
                worktree: opened.worktree,
                user,
                base: env.tree,
            };
            ignored = layer.changed_ignored(opened.began)?;
            layer.snapshot(&limits, &written)?
        }
        false => {
            let first_snapshot = snapshot::take_snapshot(repository, &index, &limits, &written)?;
            // A command can leave directories that TeDDy cannot read. Only the executable bit
            // counts.
            match first_snapshot.left_out.iter().any(LeftOut::is_closed) {
                true => {
                    opened.worktree.open_up();
                    snapshot::take_snapshot(repository, &index, &limits, &written)?
                }
                false => first_snapshot,
            }
        }
    };
    // The content is in the plan anyway, so leaving the file out would hide nothing.
    add_written(repository, &mut snapshot, opened.written)?;

    let mut captured = CapturedWorktree {
        not_captured: not_captured(&snapshot),
        tree: snapshot.tree,
    };
    leave_links(repository, env, opened, &mut captured)?;
    leave_repositories(repository, env, opened, &mut captured)?;
    take_moved(repository, env, opened, &mut captured)?;
    leave_earlier(repository, env, opened, &mut captured)?;
    note_private(project, env, repository, captured.tree)?;
    if let Some(ChangedIgnored { path, count }) = ignored {
        captured.exclude(&path, describe_ignored(count));
    }

    Ok(captured)
}

fn describe_ignored(count: usize) -> String {
    match count {
        0 | 1 => "git ignores it".to_owned(),
        2 => "git ignores it, and one more file that changed".to_owned(),
        _ => format!("git ignores it, and {} more files that changed", count - 1),
    }
}

/// Notes new files that commands closed to other users, so that they are published closed.
fn note_private(
    project: &Project,
    env: &RunEnv<'_>,
    repository: &Repository,
    tree: TreeId,
) -> anyhow::Result<()> {
    let mut private = PrivateFiles::of(&project.repository);
    let changes = diff::changes(repository, env.tree, tree)?;
    for change in changes.iter().filter(|change| change.old.is_none()) {
        let path = Path::new(OsStr::from_bytes(&change.path));
        let metadata = repository.workdir().join(path).symlink_metadata();
        if let Ok(metadata) = metadata.as_ref()
            && metadata.is_file()
        {
            private.note(&change.path, metadata.permissions().mode());
        }
    }
    Ok(private.save()?)
}

/// Excludes ignored files of earlier turns if this turn lifted their rule: it did not make them.
fn leave_earlier(
    repository: &Repository,
    env: &RunEnv<'_>,
    opened: &UsedWorktree<'_>,
    captured: &mut CapturedWorktree,
) -> anyhow::Result<()> {
    let changes = diff::changes(repository, env.tree, captured.tree)?;
    let is_rules =
        |change: &TreeChange| change.path == b".gitignore" || change.path.ends_with(b"/.gitignore");
    if !changes.iter().any(is_rules) {
        return Ok(());
    }

    let mut edits = TreeEdits::new();
    let new = changes.into_iter().filter(|change| change.old.is_none());
    for TreeChange { path, .. } in new {
        if opened.worktree.is_older(&path, opened.began) {
            let why = "an earlier turn made it, where git ignored it";
            captured.exclude(&path, why.to_owned());
            edits.insert(path, None);
        }
    }
    captured.edit(repository, &edits)
}

/// Adds files that look like a secret and that the plan itself wrote: their content is in the plan
/// already.
fn add_written(
    repository: &Repository,
    snapshot: &mut Snapshot,
    written: &[Vec<u8>],
) -> anyhow::Result<()> {
    let names: HashSet<String> = written.iter().map(|path| display_path(path)).collect();
    let is_secret = |file: &LeftOut| matches!(file.reason, Reason::Secret | Reason::Key(_));
    let secret = snapshot
        .left_out
        .extract_if(.., |file| is_secret(file) && names.contains(&file.path));
    let secret: HashSet<String> = secret.map(|file| file.path).collect();

    if secret.is_empty() {
        return Ok(());
    }

    let mut paths = written.to_vec();
    paths.retain(|path| secret.contains(&display_path(path)));
    snapshot.tree = snapshot::snapshot_paths(repository, snapshot.tree, &paths)?.tree;
    Ok(())
}

fn leave_links(
    repository: &Repository,
    env: &RunEnv<'_>,
    opened: &UsedWorktree<'_>,
    captured: &mut CapturedWorktree,
) -> anyhow::Result<()> {
    let mut edits = TreeEdits::new();
    for path in opened.linked {
        if repository.entry(captured.tree, path)?.is_some() {
            // TeDDy made the link, so it is no change of the plan.
            edits.insert(path.clone(), repository.entry(env.tree, path)?);
        }
    }
    captured.edit(repository, &edits)
}

fn leave_repositories(
    repository: &Repository,
    env: &RunEnv<'_>,
    opened: &UsedWorktree<'_>,
    captured: &mut CapturedWorktree,
) -> anyhow::Result<()> {
    let is_link = |entry: &Option<TreeEntry>| {
        let entry = entry.as_ref();
        entry.is_some_and(|entry| entry.mode == EntryMode::Gitlink)
    };
    let mut changed = diff::changes(repository, env.tree, captured.tree)?;
    changed.retain(|change| is_link(&change.old) || is_link(&change.new));

    let mut edits = TreeEdits::new();
    for TreeChange { path, old, .. } in &changed {
        // If the plan replaced a repository by a directory, keep that: it will conflict when the
        // files are merged.
        let is_dir = repository
            .entry(captured.tree, path)?
            .is_some_and(|entry| entry.mode == EntryMode::Tree);
        if !is_dir {
            edits.insert(path.clone(), old.clone());
        }
    }

    captured.edit(repository, &edits)?;

    let paths: Vec<Vec<u8>> = edits.into_keys().collect();
    let worked_in = opened
        .before
        .changed_repositories(opened.worktree, &paths, opened.began)?;
    for path in worked_in {
        captured.exclude(&path, OPAQUE.to_owned());
    }

    Ok(())
}

/// A file that cannot be recorded at its new place stays at the old path.
fn take_moved(
    repository: &Repository,
    env: &RunEnv<'_>,
    opened: &UsedWorktree<'_>,
    captured: &mut CapturedWorktree,
) -> anyhow::Result<()> {
    let mut deleted = diff::changes(repository, env.tree, captured.tree)?;
    deleted.retain(|change| change.new.is_none());
    let trees = (env.tree, captured.tree);
    let moved = opened
        .before
        .moved(opened.worktree, &deleted, trees.0, trees.1)?;
    let (opaque_moves, readable_moves): (Vec<Moved>, Vec<Moved>) =
        moved.into_iter().partition(|moved| moved.opaque);

    let paths: Vec<Vec<u8>> = readable_moves.into_iter().map(|moved| moved.to).collect();
    if !paths.is_empty() {
        captured.tree = snapshot::snapshot_paths(repository, captured.tree, &paths)?.tree;
        let names: HashSet<String> = paths.iter().map(|path| display_path(path)).collect();
        captured
            .not_captured
            .retain(|file| !names.contains(&file.path));
    }

    let mut edits = TreeEdits::new();
    for Moved { from, to, .. } in opaque_moves {
        if repository.entry(captured.tree, &from)?.is_none() {
            edits.insert(from.clone(), repository.entry(env.tree, &from)?);
            let from = display_path(&from);
            let why = format!(
                "moved into a repository of its own; `{}` stays",
                sanitize_line(&from)
            );
            captured.exclude(&to, why);
        }
    }

    captured.edit(repository, &edits)
}

impl CapturedWorktree {
    fn edit(&mut self, repository: &Repository, edits: &TreeEdits) -> anyhow::Result<()> {
        if !edits.is_empty() {
            self.tree = diff::tree_with(repository, self.tree, edits)?;
        }
        Ok(())
    }

    fn exclude(&mut self, path: &[u8], reason: String) {
        let path = display_path(path);
        if self.not_captured.iter().all(|file| file.path != path) {
            self.not_captured.push(NotCaptured { path, reason });
        }
    }
}
