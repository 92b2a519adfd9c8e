//! Runs `git commit` for each planned commit of a landing and checks the result.
//!
//! The note of the landing is saved before each run, so that recovery can find the commit.

use std::collections::HashMap;
use std::process::ExitStatus;

use crate::git::diff;
use crate::git::land::branch::Target;
use crate::git::land::commit::{
    CommitMessage, CommitRequest, CommitSite, LandingDir, Verify, moved, take_back,
};
use crate::git::land::shared::{
    RestoredState, SharedChanges, SharedState, restore_branch, restore_stash,
};
use crate::git::object::{CommitId, TreeId};
use crate::git::refs::{self, MoveError};
use crate::git::repository::Repository;
use crate::host::{fault, interrupt};
use crate::project::Project;
use crate::text::counted;
use crate::text::path::lossy_paths;
use crate::text::sanitize::sanitize_line;
use crate::workflow::land::error::{CommitRefused, HookRepair};
use crate::workflow::land::landing_plan::{LandOptions, PlannedCommit, apply_commit, landed_turn};
use crate::workflow::user::{Event, NobodyToAsk, Notice, User};
use crate::workspace::landing::{self, IntendedCommit, LandingNote, MadeCommit};
use crate::workspace::notice::FilesNotice;
use crate::workspace::snapshot::{self, RecordedFiles};

// Number of times that TeDDy offers to commit the changes of a refusing hook.
const MAX_REPAIRS: usize = 5;
const WITH_REPAIRS: &str = "--with-repairs";

pub(super) struct LandingRun<'a> {
    pub project: &'a Project,
    pub target: &'a Target,
    pub options: &'a LandOptions,
    pub dir: LandingDir<'a>,
    /// For recovery.
    pub landing: LandingNote,
    pub files: RecordedFiles,
    pub created: Vec<MadeCommit>,
    /// Paths whose staged version conflicts with the landed one. It stays staged.
    pub staged: Vec<Vec<u8>>,
    /// A commit was made but the index was not updated. Recovery does that.
    pub is_unfinished: bool,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    head: Option<CommitId>,
    tree: TreeId,
}

impl LandingRun<'_> {
    /// If git refuses a commit, those before it stay.
    pub(super) fn run(
        &mut self,
        planned: &[PlannedCommit],
        user: &mut dyn User,
    ) -> anyhow::Result<()> {
        let mut at = Position {
            head: self.target.base,
            tree: self.target.tree,
        };
        for (number, commit) in planned.iter().enumerate() {
            anyhow::ensure!(!interrupt::requested(), "interrupted");
            let shared = self
                .dir
                .has_hooks
                .then(|| SharedState::read(&self.project.repository));
            let shared = shared.transpose()?;
            let result = self.commit(number, commit, at, user);
            if let Some(shared) = shared {
                self.check_shared(&shared, number, result.is_ok(), user)?;
            }
            at = result?;
        }
        Ok(())
    }

    /// Retries with the changes of a refusing hook if the user agrees.
    fn commit(
        &mut self,
        number: usize,
        planned: &PlannedCommit,
        at: Position,
        user: &mut dyn User,
    ) -> anyhow::Result<Position> {
        let repository = &self.project.repository;
        let intended_tree = apply_commit(repository, at.tree, planned)?;
        let mut tree = intended_tree;
        for attempt in 0.. {
            let files = match (number, attempt) {
                (0, 0) => self.files.tree,
                // Hooks of an earlier commit or attempt can have changed files.
                _ => snapshot::snapshot(&self.project.checkout(), &[])?.tree,
            };
            let intended = IntendedCommit {
                turns: planned.landings.iter().map(landed_turn).collect(),
                tree: intended_tree,
                in_checkout: self.target.is_current
                    && has(repository, files, at.tree, tree)?
                    && self.has_hook_changes(files, at.tree)?,
            };
            let site = intended.site(self.target.is_current);
            self.landing.commits[number].clone_from(&intended);
            self.landing.save(self.dir.path())?;
            self.dir.keep(true);

            // From here on, recovery needs the directory if TeDDy is killed.
            fault::point("before-branch")?;
            let to_commit = Position { tree, ..at };
            let status = self.run_git(site, to_commit, &planned.message)?;
            let now = self.branch_tip()?;
            let created =
                LandingNote::find_created(repository, &intended, at.head, now, status.success())?;
            if let Some((new_commit, newest)) = created {
                return self.accept(new_commit, newest, at.tree, user);
            }

            self.dir.keep(false);
            anyhow::ensure!(
                !interrupt::requested(),
                "interrupted before git made the commit"
            );
            if let Some(error) = self.moved_branch(at.head, status)? {
                if let Some(newest) = now.filter(|_| status.success()) {
                    self.take_back(&intended, tree, newest)?;
                }
                return Err(error.into());
            }
            anyhow::ensure!(
                !status.success(),
                "git reported a commit, but a hook took it away again"
            );
            match self.repair([at.tree, tree], attempt, site, user)? {
                Ok(repaired) => tree = repaired,
                Err(repair) => {
                    let refused = CommitRefused {
                        status,
                        repair,
                        files_changed: self.has_hook_changed(files, site)?,
                        failed_editor: self.dir.failed_editor(),
                    };
                    return Err(refused.into());
                }
            }
        }
        unreachable!("every round commits, repairs or fails")
    }

    /// Commits the tree on top of the head.
    fn run_git(
        &mut self,
        site: CommitSite,
        to_commit: Position,
        message: &CommitMessage,
    ) -> anyhow::Result<ExitStatus> {
        let status = self.dir.commit(&CommitRequest {
            site,
            branch: &self.landing.branch,
            parent: to_commit.head,
            tree: to_commit.tree,
            message,
            verify: match self.options.no_verify {
                true => Verify::No,
                false => Verify::Yes,
            },
        });
        status.inspect_err(|_| self.dir.keep(false))
    }

    fn branch_tip(&self) -> anyhow::Result<Option<CommitId>> {
        let repository = &self.project.repository;
        match self.target.is_current {
            true => refs::head(repository),
            false => refs::read(repository, &self.landing.branch),
        }
    }

    /// Returns an error if git made no commit and the branch is no longer at `head`.
    fn moved_branch(
        &self,
        head: Option<CommitId>,
        status: ExitStatus,
    ) -> anyhow::Result<Option<MoveError>> {
        let repository = &self.project.repository;
        // A refused commit does not move the branch: a hook or another process did.
        let is_moved = refs::read(repository, &self.landing.branch)? != head;
        if !self.target.is_current || !(is_moved || status.success()) {
            return Ok(None);
        }
        moved(repository, &self.landing.branch, head)
    }

    fn has_hook_changed(&self, files: TreeId, site: CommitSite) -> anyhow::Result<bool> {
        Ok(site == CommitSite::Checkout
            && self.dir.has_hooks
            && snapshot::snapshot(&self.project.checkout(), &[])?.tree != files)
    }

    /// Takes a commit of this tree back if git made it on top of another process's commit, whose changes
    /// it lacks.
    fn take_back(
        &self,
        intended: &IntendedCommit,
        tree: TreeId,
        newest: CommitId,
    ) -> anyhow::Result<()> {
        let repository = &self.project.repository;
        let (branch, commit) = (refs::branch(repository)?, repository.commit(newest)?);
        let is_own = commit.tree == tree && LandingNote::is_own(repository, intended, newest)?;
        match (branch, commit.parents.first()) {
            (Some(branch), Some(parent)) if is_own => {
                take_back(repository, &format!("refs/heads/{branch}"), newest, *parent)
            }
            _ => Ok(()),
        }
    }

    /// Updates the index for a new commit. `newest` is a later one if a hook committed, too.
    fn accept(
        &mut self,
        created: MadeCommit,
        newest: CommitId,
        old: TreeId,
        user: &mut dyn User,
    ) -> anyhow::Result<Position> {
        let repository = &self.project.repository;
        let tree = repository.commit(newest)?.tree;
        self.created.push(created);
        if self.target.is_current {
            self.is_unfinished = true;
            let _transaction = self.project.enter("land", user)?;
            let staged_paths = landing::follow(repository, old, tree)?;
            self.staged.extend(staged_paths);
            self.is_unfinished = false;
        }
        Ok(Position {
            head: Some(newest),
            tree,
        })
    }

    /// The tree with the changes of a refusing hook if the user wants to commit it, otherwise the
    /// changes.
    fn repair(
        &self,
        trees: [TreeId; 2],
        attempt: usize,
        site: CommitSite,
        user: &mut dyn User,
    ) -> anyhow::Result<Result<TreeId, Option<HookRepair>>> {
        let [from, tree] = trees;
        let repository = &self.project.repository;
        let changes = diff::changes(repository, from, tree)?;
        let paths: Vec<&[u8]> = changes
            .iter()
            .map(|change| change.path.as_slice())
            .collect();
        // Deleting the files is not a repair.
        let repaired = self.dir.repaired(site, tree, &paths).unwrap_or(tree);
        if repaired == tree {
            return Ok(Err(None));
        }

        let changes = diff::changes(repository, tree, repaired)?;
        let repair = HookRepair {
            paths: changes.into_iter().map(|change| change.path).collect(),
            trees: [tree, repaired],
            in_files: site == CommitSite::Checkout,
        };
        if attempt >= MAX_REPAIRS {
            return Ok(Err(Some(repair)));
        }
        if self.options.with_repairs {
            return Ok(Ok(repaired));
        }

        let names: Vec<String> = lossy_paths(&repair.paths);
        let names: Vec<_> = names.iter().map(|name| sanitize_line(name)).collect();
        let question = format!(
            "a hook changed {} and refused: {}; land with that?",
            counted(names.len(), "file"),
            names.join(", ")
        );
        match user.confirm(&question, WITH_REPAIRS) {
            Ok(true) => Ok(Ok(repaired)),
            Ok(false) => Ok(Err(Some(repair))),
            Err(error) if error.is::<NobodyToAsk>() => Ok(Err(Some(repair))),
            Err(error) => Err(error),
        }
    }

    /// Reports changes to the repository besides files. Those of hooks in the separate directory are
    /// reverted: the user's files never had their content.
    fn check_shared(
        &mut self,
        before: &SharedState,
        number: usize,
        is_made: bool,
        user: &mut dyn User,
    ) -> anyhow::Result<()> {
        let repository = &self.project.repository;
        let changes = before.changes(repository, &self.landing.branch)?;
        if changes == SharedChanges::default() {
            return Ok(());
        }

        let is_separate = !self.landing.commits[number].in_checkout;
        if is_separate {
            restore_stash(repository, &changes.dropped)?;
        }
        // With the index, the user changed it.
        let by_hook = is_separate && !is_made && before.has_same_index(repository);
        let old_branch = changes.left_branch.as_ref().filter(|_| by_hook);
        let exists =
            |branch: &&String| refs::resolve(repository, &format!("refs/heads/{branch}")).is_ok();
        let old_branch = old_branch.filter(exists);
        if let Some(branch) = old_branch {
            restore_branch(repository, branch)?;
        } else if self.target.is_current
            && let Some(branch) = refs::branch(repository)?
        {
            // The commit is where HEAD is.
            self.landing.branch = format!("refs/heads/{branch}");
        }
        let restored = RestoredState {
            stash: is_separate,
            head: old_branch.is_some(),
        };
        user.report(Event::Notice(Notice::SharedChanged {
            changes: Box::new(changes),
            restored,
        }));
        Ok(())
    }

    /// Reports files of the user's that changed while git committed, without changes of hooks in
    /// the commits: a hook that puts edits aside can lose them.
    pub(super) fn report_changed(
        &self,
        now: TreeId,
        refused: Option<&CommitRefused>,
        user: &mut dyn User,
    ) -> anyhow::Result<()> {
        let repository = &self.project.repository;
        let ran_here = self.landing.commits.iter().any(|commit| commit.in_checkout);
        if !self.dir.has_hooks || !ran_here {
            return Ok(());
        }

        let repair = refused.and_then(|refused| refused.repair.as_ref());
        let is_repaired = |path: &Vec<u8>| repair.is_some_and(|repair| repair.paths.contains(path));
        let mut committed = HashMap::new();
        for made in &self.created {
            for change in diff::changes(repository, made.from, made.tree)? {
                committed.insert(change.path, change.new);
            }
        }
        let mut paths = Vec::new();
        for path in landing::changed_files(repository, self.files.tree, now)? {
            let is_committed = match committed.get(&path) {
                Some(committed) => *committed == repository.entry(now, &path)?,
                None => false,
            };
            if !is_committed && !is_repaired(&path) {
                paths.push(path);
            }
        }
        if !paths.is_empty() {
            user.report(Event::Notice(Notice::Files(
                FilesNotice::ChangedDuringCommit {
                    paths,
                    source: self.files.commit,
                },
            )));
        }
        Ok(())
    }
}

impl LandingRun<'_> {
    /// The files have what hooks of earlier commits changed. If those ran in the separate directory,
    /// the files get it only at the end.
    fn has_hook_changes(&self, files: TreeId, tree: TreeId) -> anyhow::Result<bool> {
        let repository = &self.project.repository;
        for (made, intended) in self.created.iter().zip(&self.landing.commits) {
            for change in diff::changes(repository, intended.tree, made.tree)? {
                if repository.entry(files, &change.path)? != repository.entry(tree, &change.path)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// The files have what a commit changes.
fn has(repository: &Repository, files: TreeId, from: TreeId, tree: TreeId) -> anyhow::Result<bool> {
    for change in diff::changes(repository, from, tree)? {
        if repository.entry(files, &change.path)? != change.new {
            return Ok(false);
        }
    }
    Ok(true)
}
