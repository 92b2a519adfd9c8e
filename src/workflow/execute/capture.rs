//! Records what a plan with commands left in the worktree, as a tree to merge into the user's
//! files.
//!
//! Files that a command moved to an ignored place are included; otherwise they would look deleted.
//! Nested repositories are opaque: changes inside are not recorded, and the report says so. A file
//! moved into one counts as unmoved.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::git::diff::{self, TreeChange};
use crate::git::keep::damaged::FsTime;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::paths::is_valid_link_name;
use crate::git::private_files::PrivateFiles;
use crate::git::repository::Repository;
use crate::git::snapshot::{self, Snapshot};

use crate::git::snapshot::limits::{Forced, LeftOut, Reason, display_path};
use crate::git::worktree::SessionWorktree;
use crate::git::worktree::layer::{ChangedIgnored, LayerScan};
use crate::git::worktree::moved::{Before, Moved};
use crate::plan::memo;
use crate::project::Project;
use crate::project::teddy_files::{self, MEMOS};
use crate::session::meta::NotCaptured;
use crate::text::path::{is_teddy_dir, must_be_file};
use crate::text::sanitize::sanitize_line;
use crate::workspace::snapshot::not_captured;

const OPAQUE: &str = "a repository of its own, in which the plan worked";

/// What a run left in the worktree, as far as it is captured.
pub(super) struct WorktreeCapture<'a> {
    pub worktree: &'a SessionWorktree,
    /// To the user's directory.
    pub linked: &'a [Vec<u8>],
    pub before: &'a Before,
    pub began: FsTime,
    /// The files before the run.
    pub start: TreeId,
    /// The files after it.
    pub tree: TreeId,
    pub not_captured: Vec<NotCaptured>,
    /// Paths that the snapshot left out, at which a file that the user has changed since `began`.
    pub changed: BTreeSet<String>,
}

/// `None` removes the path.
type TreeEdits = BTreeMap<Vec<u8>, Option<TreeEntry>>;

impl<'a> WorktreeCapture<'a> {
    fn repository(&self) -> &'a Repository {
        &self.worktree.repository
    }

    /// Without the symlinks that TeDDy placed there. Includes all files at the `written` paths.
    pub fn take(
        &mut self,
        project: &Project,
        name: &str,
        written: &[Vec<u8>],
    ) -> anyhow::Result<()> {
        let repository = self.repository();
        let forced: Vec<Forced> = written.iter().cloned().map(Forced::new).collect();
        let limits = project.limits();
        let mut ignored = None;
        let mut snapshot = match self.worktree.is_layered() {
            true => {
                let layer = LayerScan {
                    worktree: self.worktree,
                    user: &project.repository,
                    base: self.start,
                };
                ignored = layer.changed_ignored(self.began)?;
                layer.snapshot(&limits, &forced)?
            }
            false => {
                let index = project.checkout().index(&format!("session-{name}"));
                let take = || snapshot::take_snapshot(repository, &index, &limits, &forced);
                let first_snapshot = take()?;
                // A command can leave directories that TeDDy cannot read. Only the executable bit
                // counts.
                match first_snapshot.left_out.iter().any(LeftOut::is_closed) {
                    true => {
                        self.worktree.open_up();
                        take()?
                    }
                    false => first_snapshot,
                }
            }
        };
        // The content is in the plan anyway, so leaving the file out would hide nothing.
        add_written(repository, &mut snapshot, written)?;

        self.not_captured = not_captured(&snapshot);
        self.changed = self.changed_by_run(project);
        self.tree = snapshot.tree;
        self.leave_own(written)?;
        self.leave_links()?;
        self.leave_repositories()?;
        self.take_moved()?;
        self.leave_earlier()?;
        self.note_private(project)?;
        if let Some(ChangedIgnored { path, count }) = ignored {
            self.exclude(&path, describe_ignored(count));
        }

        Ok(())
    }

    fn changed_by_run(&self, project: &Project) -> BTreeSet<String> {
        let left_out = self.not_captured.iter().map(|file| &file.path);
        let users = project.repository.workdir();
        let is_changed = |path: &&String| {
            let is_older = self.worktree.is_older(path.as_bytes(), self.began);
            !is_older && users.join(path).symlink_metadata().is_ok()
        };
        left_out.filter(is_changed).cloned().collect()
    }

    fn leave_links(&mut self) -> anyhow::Result<()> {
        let repository = self.repository();
        let mut edits = TreeEdits::new();
        for path in self.linked {
            if repository.entry(self.tree, path)?.is_some() {
                // TeDDy made the link, so it is no change of the plan.
                edits.insert(path.clone(), repository.entry(self.start, path)?);
            }
        }
        self.edit(&edits)
    }

    /// Commands do not configure the next turn, or choose what is sent to the model. They may add memos.
    fn leave_own(&mut self, written: &[Vec<u8>]) -> anyhow::Result<()> {
        let mut changes = diff::changes(self.repository(), self.start, self.tree)?;
        let memos = teddy_files::memos_in(self.repository(), self.tree)?;
        let are_memos = memos.is_some_and(|text| memo::parse_file(&text).is_ok());
        changes.retain(|TreeChange { path, .. }| {
            let stays = written.contains(path) || are_memos && *path == MEMOS.as_bytes();
            is_own(path) && !stays
        });
        if let Some(first) = changes.first() {
            let why = match changes.len() {
                1 => "no command changes TeDDy's own files".to_owned(),
                count => format!("no command changes TeDDy's own files ({} more)", count - 1),
            };
            self.exclude(&first.path, why);
        }

        let edits = changes.into_iter().map(|change| (change.path, change.old));
        self.edit(&edits.collect())
    }

    fn leave_repositories(&mut self) -> anyhow::Result<()> {
        let repository = self.repository();
        let is_link = |entry: &Option<TreeEntry>| {
            let entry = entry.as_ref();
            entry.is_some_and(|entry| entry.mode == EntryMode::Commit)
        };
        let mut changed = diff::changes(repository, self.start, self.tree)?;
        changed.retain(|change| is_link(&change.old) || is_link(&change.new));

        let mut edits = TreeEdits::new();
        for TreeChange { path, old, .. } in &changed {
            // If the plan replaced a repository by a directory, keep that: it will conflict when the
            // files are merged.
            let is_dir = repository
                .entry(self.tree, path)?
                .is_some_and(|entry| entry.mode == EntryMode::Tree);
            if !is_dir {
                edits.insert(path.clone(), old.clone());
            }
        }

        self.edit(&edits)?;

        let paths: Vec<Vec<u8>> = edits.into_keys().collect();
        let worked_in = self
            .before
            .changed_repositories(self.worktree, &paths, self.began)?;
        for path in worked_in {
            self.exclude(&path, OPAQUE.to_owned());
        }

        Ok(())
    }

    /// A file that cannot be recorded at its new place stays at the old path.
    fn take_moved(&mut self) -> anyhow::Result<()> {
        let repository = self.repository();
        let mut deleted = diff::changes(repository, self.start, self.tree)?;
        deleted.retain(|change| change.new.is_none());
        let moved = self
            .before
            .moved(self.worktree, &deleted, self.start, self.tree)?;
        let (mut refused, mut paths) = (Vec::new(), Vec::new());
        for moved in moved {
            let old = repository.entry(self.start, &moved.from)?;
            match refused_place(&moved, old.as_ref()) {
                Some(place) => refused.push((moved, old, place)),
                None => paths.push(moved.to),
            }
        }
        if !paths.is_empty() {
            self.tree = snapshot::snapshot_paths(repository, self.tree, &paths)?.tree;
            let names: HashSet<String> = paths.iter().map(|path| display_path(path)).collect();
            self.not_captured.retain(|file| !names.contains(&file.path));
        }

        let mut edits = TreeEdits::new();
        for (Moved { from, to, .. }, old, place) in refused {
            if repository.entry(self.tree, &from)?.is_none() {
                let name = display_path(&from);
                let why = format!("moved into {place}; `{}` stays", sanitize_line(&name));
                self.exclude(&to, why);
                edits.insert(from, old);
            }
        }

        self.edit(&edits)
    }

    /// Excludes ignored files of earlier turns if this turn lifted their rule: it did not make them.
    fn leave_earlier(&mut self) -> anyhow::Result<()> {
        let repository = self.repository();
        let changes = diff::changes(repository, self.start, self.tree)?;
        let is_rules = |change: &TreeChange| {
            change.path == b".gitignore" || change.path.ends_with(b"/.gitignore")
        };
        if !changes.iter().any(is_rules) {
            return Ok(());
        }

        // A file keeps its time when a directory above it is moved.
        let gone = changes.iter().filter(|change| change.new.is_none());
        let gone: HashSet<_> = gone
            .filter_map(|change| Some(change.old.as_ref()?.id))
            .collect();

        let mut edits = TreeEdits::new();
        for TreeChange { path, old, new } in changes {
            let is_moved = new.is_some_and(|new| gone.contains(&new.id));
            let is_new = old.is_none() && !is_moved;
            if is_new && self.worktree.is_older(&path, self.began) {
                let why = "an earlier turn made it, where git ignored it";
                self.exclude(&path, why.to_owned());
                edits.insert(path, None);
            }
        }
        self.edit(&edits)
    }

    /// Notes new files that commands closed to other users, so that they are published closed.
    fn note_private(&self, project: &Project) -> anyhow::Result<()> {
        let repository = self.repository();
        let mut private = PrivateFiles::of(&project.repository);
        let changes = diff::changes(repository, self.start, self.tree)?;
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

    fn edit(&mut self, edits: &TreeEdits) -> anyhow::Result<()> {
        if !edits.is_empty() {
            self.tree = diff::tree_with(self.repository(), self.tree, edits)?;
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

fn is_own(path: &[u8]) -> bool {
    let top = path.split(|byte| *byte == b'/').next().unwrap_or_default();
    is_teddy_dir(&display_path(top))
}

/// Describes a place whose files cannot be in a turn. `old` is the entry that was moved there.
fn refused_place(moved: &Moved, old: Option<&TreeEntry>) -> Option<&'static str> {
    let is_link = old.is_some_and(|old| old.mode == EntryMode::Link);
    let mut dirs = moved.to.split(|byte| *byte == b'/');
    let name = dirs.next_back().unwrap_or_default();
    if moved.opaque {
        Some("a repository of its own")
    } else if is_own(&moved.to) {
        Some("TeDDy's own directory")
    } else if is_link && !is_valid_link_name(name) {
        Some("a name that git refuses for a link")
    } else if dirs.any(|dir| must_be_file(&display_path(dir))) {
        Some("a directory, and git requires a file of this name")
    } else {
        None
    }
}

fn describe_ignored(count: usize) -> String {
    match count {
        0 | 1 => "git ignores it".to_owned(),
        2 => "git ignores it, and one more file that changed".to_owned(),
        _ => format!("git ignores it, and {} more files that changed", count - 1),
    }
}

/// Adds files that look like a secret or are excluded, and that the plan itself wrote: their
/// content is in the plan already.
fn add_written(
    repository: &Repository,
    snapshot: &mut Snapshot,
    written: &[Vec<u8>],
) -> anyhow::Result<()> {
    let names: HashSet<String> = written.iter().map(|path| display_path(path)).collect();
    let is_secret = |file: &LeftOut| {
        matches!(
            file.reason,
            Reason::Secret | Reason::Excluded | Reason::Key(_)
        )
    };
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
