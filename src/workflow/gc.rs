//! `gc`: frees disk space by removing idle worktrees and expired undo data, and by packing objects.
//! Deletes a session only if it is named.
//!
//! Everything to remove is found first, so that `--plan` runs the same code.

mod expired;
mod session;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Context as _;
use serde::Serialize;

use crate::workflow::gc::expired::{AgedSnapshots, DAY, IdleWorktrees};
use expired::dir_size;
pub(in crate::workflow) use expired::{file_size, files_below};
use session::ARCHIVE;
pub use session::ArchivedSession;
pub(in crate::workflow) use session::forget;

use crate::git::command::run_checked;
use crate::git::intake;
use crate::git::object::CommitId;
use crate::git::refs::Reference;
use crate::git::repository::Repository;
use crate::git::worktree;
use crate::project::Project;
use crate::session::name::SessionName;
use crate::workflow::user::{Event, Notice, User, telling};
use crate::workflow::{confine, verify};
use crate::workspace::recover::tidy_worktrees;

#[derive(Debug, Clone)]
pub struct GcOptions {
    pub sessions: Vec<SessionName>,
    /// Deletes what was fetched of these sessions of remotes.
    pub fetched: Vec<SessionName>,
    /// Removes worktrees that were idle for this long.
    pub idle_days: u32,
    /// Removes older undo data.
    pub undo_days: u32,
    pub no_bundle: bool,
}

impl GcOptions {
    /// Of the sessions to delete, each once.
    fn names(&self) -> Vec<String> {
        let sessions = self.sessions.iter().collect::<BTreeSet<_>>();
        let fetched = self.fetched.iter().collect::<BTreeSet<_>>();
        let names = sessions.into_iter().chain(fetched);
        names.map(ToString::to_string).collect()
    }
}

/// What was removed, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GcResult {
    pub sessions: Vec<String>,
    pub archived: Vec<ArchivedSession>,
    /// Sessions. Their worktrees are created again when needed.
    pub worktrees: Vec<String>,
    /// Linked worktrees of git that the user deleted.
    pub checkouts: Vec<String>,
    /// In `teddy/undo`, damaged state and temporary files.
    pub undo_files: usize,
    /// That no turn references.
    pub snapshots: usize,
    pub caches: bool,
    /// Of removed files, without objects.
    pub bytes: u64,
    /// Refs that still reach something of the deleted sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<String>,
}

pub fn gc(project: &Project, options: &GcOptions, user: &mut dyn User) -> anyhow::Result<GcResult> {
    // The same order as in `execute`, session before repository. The reverse would deadlock.
    let sessions: BTreeSet<_> = options.sessions.iter().collect();
    let _session_locks = sessions
        .iter()
        .map(|session| project.lock_session(session, "gc"))
        .collect::<Result<Vec<_>, _>>()?;

    // Write all bundles before the first deletion, and outside the repository lock, so that other
    // processes can work.
    let archived = match options.no_bundle {
        true => Vec::new(),
        false => sessions
            .iter()
            .map(|session| session::archive(project, session))
            .collect::<anyhow::Result<Vec<_>>>()?,
    };

    let _lock = project.enter("gc", user)?;
    let commits = deleted_commits(project, options)?;
    for session in &sessions {
        session::forget(project, session)?;
    }
    for session in &options.fetched {
        session::forget_fetched(project, session)?;
    }

    tidy_worktrees(&project.checkout(), &mut telling(user))?;
    let waste = find_waste(project, options)?;
    for session in &waste.worktrees.in_use {
        user.report(Event::Notice(Notice::WorktreeInUse(session.clone())));
    }

    // Measure before the removal.
    let totals = waste.summarize();
    waste.remove(project)?;
    // Before packing, which can prune them.
    let held_by = session::still_held(project, &sessions, &commits)?;
    repack(&project.repository)?;
    Ok(GcResult {
        sessions: options.names(),
        archived,
        held_by,
        ..totals
    })
}

/// Only of sessions that are deleted without a bundle.
fn deleted_commits(project: &Project, options: &GcOptions) -> anyhow::Result<Vec<CommitId>> {
    let mut commits = Vec::new();
    for session in options.sessions.iter().filter(|_| options.no_bundle) {
        commits.extend(session::commits(project, session)?);
    }
    Ok(commits)
}

/// Changes nothing and takes no lock of the repository.
pub fn plan(project: &Project, options: &GcOptions) -> anyhow::Result<GcResult> {
    let sessions: BTreeSet<_> = options.sessions.iter().collect();
    let mut archived = Vec::new();
    for session in sessions.iter().filter(|_| !options.no_bundle) {
        archived.push(ArchivedSession {
            session: session.to_string(),
            file: session::free_file(project, session)?,
            bytes: 0,
            fault: session::fault(project, session)?,
        });
    }

    let commits = deleted_commits(project, options)?;
    Ok(GcResult {
        held_by: session::still_held(project, &sessions, &commits)?,
        sessions: options.names(),
        archived,
        ..find_waste(project, options)?.summarize()
    })
}

struct Waste {
    worktrees: IdleWorktrees,
    caches: Option<PathBuf>,
    /// Of deleted linked worktrees.
    checkouts: Vec<(String, Reference)>,
    files: Vec<PathBuf>,
    /// Untrusted leftovers of killed processes.
    abandoned: Vec<PathBuf>,
    snapshots: Vec<AgedSnapshots>,
}

fn find_waste(project: &Project, options: &GcOptions) -> anyhow::Result<Waste> {
    let repository = &project.repository;
    let worktrees = expired::find_idle_worktrees(project, &options.sessions, options.idle_days)?;
    let caches = confine::tool_caches(project);
    let is_old = expired::age(&caches).is_some_and(|age| age >= DAY * options.idle_days);
    let mut abandoned = expired::find_leftovers(&intake::incoming_dir(repository))?;
    abandoned.extend(expired::find_leftovers(&verify::signing_dir(repository))?);

    Ok(Waste {
        // A running command can be using the caches.
        caches: (is_old && worktrees.in_use.is_empty()).then_some(caches),
        worktrees,
        checkouts: expired::missing_checkouts(project)?,
        files: expired::old_files(repository, options.undo_days),
        abandoned,
        snapshots: expired::find_aged_snapshots(repository, options.undo_days)?,
    })
}

impl Waste {
    fn remove(&self, project: &Project) -> anyhow::Result<()> {
        for (worktree, _lock) in &self.worktrees.idle {
            expired::remove_worktree(project, &worktree.session)?;
        }

        // The content is untrusted, so no symlink below the directory is followed. Its parent is
        // ours and can be reached through one.
        if let Some(caches) = &self.caches
            && let (Some(dir), Some(name)) = (caches.parent(), caches.file_name())
        {
            expired::remove_foreign(&[dir.canonicalize()?.join(name)])?;
        }

        expired::forget_checkouts(project, &self.checkouts)?;
        expired::remove_files(&self.files)?;
        expired::remove_foreign(&self.abandoned)?;
        expired::forget_snapshots(&project.repository, &self.snapshots)
    }

    fn summarize(&self) -> GcResult {
        let worktrees = self.worktrees.idle.iter().map(|(worktree, _)| worktree);
        let bytes = worktrees.clone().map(|it| it.bytes).sum::<u64>()
            + self.caches.as_deref().map_or(0, expired::dir_size)
            + self.files.iter().map(|path| file_size(path)).sum::<u64>()
            + self
                .abandoned
                .iter()
                .map(|path| expired::dir_size(path))
                .sum::<u64>();
        GcResult {
            worktrees: worktrees.map(|it| it.session.clone()).collect(),
            checkouts: self
                .checkouts
                .iter()
                .map(|(name, _)| name.clone())
                .collect(),
            undo_files: self.files.len() + self.abandoned.len(),
            snapshots: self.snapshots.iter().map(|it| it.old).sum(),
            caches: self.caches.is_some(),
            bytes,
            ..GcResult::default()
        }
    }
}

const BIG_FILE_THRESHOLD: &str = "core.bigFileThreshold=8m";
const WINDOW_MEMORY: &str = "pack.windowMemory=128m";

/// Unreachable objects are left to the user's own `git gc`.
fn repack(repository: &Repository) -> anyhow::Result<()> {
    let mut command = repository.git()?;
    // git would spend minutes and gigabytes on deltas between large binaries.
    command.args([
        "-c",
        BIG_FILE_THRESHOLD,
        "-c",
        WINDOW_MEMORY,
        "repack",
        "-d",
        "-l",
        "-q",
    ]);

    // `--geometric` does not work in partial clones: git cannot leave out promised objects then.
    if !repository.is_partial() {
        command.arg("--geometric=2");
    }

    run_checked(&mut command, "repack").map(drop)
}

// What `gc -n` shows besides: the disk space that TeDDy uses for a repository.

/// In bytes.
#[derive(Debug, Clone, Serialize)]
pub struct DiskUsage {
    /// Objects that only our refs reach.
    pub objects: u64,
    pub worktrees: Vec<WorktreeUsage>,
    pub undo: u64,
    /// Bundles of deleted sessions.
    pub archives: u64,
    /// For the user to inspect.
    pub rescued: Vec<String>,
    /// Indexes, copies and caches below `teddy`.
    pub state: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct WorktreeUsage {
    pub session: String,
    pub path: String,
    /// Includes ignored files.
    pub bytes: u64,
}

/// Takes no lock.
pub fn du(repository: &Repository) -> anyhow::Result<DiskUsage> {
    let undo = repository.teddy_dir().join("undo");
    let all = dir_size(&repository.teddy_dir());
    let archives = dir_size(&repository.teddy_dir().join(ARCHIVE));
    let worktree = |listed: worktree::RecordedWorktree| WorktreeUsage {
        bytes: dir_size(&listed.path) + dir_size(&listed.layer),
        session: listed.session,
        path: listed.path.display().to_string(),
    };

    Ok(DiskUsage {
        objects: objects(repository)?,
        worktrees: worktree::session_worktrees(repository)
            .into_iter()
            .map(worktree)
            .collect(),
        undo: dir_size(&undo),
        archives,
        rescued: files_below(&undo.join("rescued"))
            .map(|path| path.display().to_string())
            .collect(),
        state: all.saturating_sub(dir_size(&undo) + archives),
    })
}

fn objects(repository: &Repository) -> anyhow::Result<u64> {
    let mut command = repository.git()?;
    command.args([
        "rev-list",
        "--disk-usage",
        "--objects",
        "--glob=refs/teddy/*",
        "--not",
        "--branches",
        "--tags",
        "--remotes",
    ]);
    let output = run_checked(&mut command, "measure the objects")?;
    String::from_utf8_lossy(&output)
        .trim()
        .parse()
        .context("reading what git rev-list says")
}
