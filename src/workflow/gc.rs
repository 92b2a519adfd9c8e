//! Giving back room: worktrees that nobody used lately, undo data that has grown old, loose objects
//! that fit into a pack. Never a session, unless it is named.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use serde::Serialize;

use crate::git::incoming::quarantine;
use crate::git::keep::durable;
use crate::git::keep::hold;
use crate::git::keep::hold::Older;
use crate::git::object::{CommitId, NewCommit};
use crate::git::refs::{self, Expected, Reference};
use crate::git::repository::Repository;
use crate::git::worktree;
use crate::git::worktree::RememberedWorktree;
use crate::host::file::Root;
use crate::host::file::remove_below;
use crate::host::{clock, fault};
use crate::session::name::SessionName;
use crate::workflow::confine;
use crate::workflow::log;
use crate::workflow::notice::Notice;
use crate::workflow::project::Project;
use crate::workflow::sign;
use crate::workflow::user::{Event, User, telling};
use crate::workspace::snapshot::KEEPER;
use crate::workspace::worktrees;

/// How the names of temporary files begin: of state files, indexes, clocks, and of gix's loose
/// objects.
const TEMPORARY: [&str; 4] = [
    crate::host::file::TEMPORARY,
    "tmp-index-",
    "moment-",
    ".tmp",
];
/// From which size on git stores a file by itself when it packs.
const LARGE: &str = "core.bigFileThreshold=8m";
/// How much memory each of its threads takes for the files that it compares.
const WINDOW: &str = "pack.windowMemory=128m";
/// A day.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What is wanted.
#[derive(Debug, Clone)]
pub struct GcOptions {
    /// Sessions to forget, with all that only they hold.
    pub sessions: Vec<SessionName>,
    /// Worktrees go that were not used for so many days.
    pub idle_days: u32,
    /// Undo data goes that is older than so many days.
    pub undo_days: u32,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct GcResult {
    /// Sessions that were forgotten.
    pub sessions: Vec<String>,
    /// Sessions whose worktree was removed; it is made anew when it is needed.
    pub worktrees: Vec<String>,
    /// Linked worktrees of git's that are gone, and what was known of their files with them.
    pub checkouts: Vec<String>,
    /// Files of `teddy/undo`, damaged state and temporary files that were removed.
    pub undo_files: usize,
    /// Snapshots of the workspace that no turn holds and that were forgotten.
    pub snapshots: usize,
    /// Whether the caches that commands filled were removed; they fill anew.
    pub caches: bool,
}

/// Gives back room.
///
/// # Errors
/// Where a named session is not there or in use, or something cannot be removed or packed.
pub fn gc(project: &Project, wish: &GcOptions, user: &mut dyn User) -> anyhow::Result<GcResult> {
    // In this order, as whoever executes takes them: it would wait for us, and we for it.
    let sessions: BTreeSet<_> = wish.sessions.iter().collect();
    let _session_locks = sessions
        .iter()
        .map(|session| project.lock_session(session, "gc"))
        .collect::<Result<Vec<_>, _>>()?;
    let _lock = project.enter("gc", user)?;
    let mut done = GcResult::default();

    for session in sessions {
        forget(project, session)?;
        done.sessions.push(session.to_string());
    }

    worktrees::tidy_worktrees(&project.checkout(), &mut telling(user))?;
    let mut is_in_use = false;
    for listed in worktree::session_worktrees(&project.repository) {
        if !is_idle(project, &listed, wish)? {
            continue;
        }

        if remove_worktree(project, &listed.session, user)? {
            done.worktrees.push(listed.session);
        } else {
            is_in_use = true;
        }
    }

    done.caches = !is_in_use && remove_caches(project, wish.idle_days)?;
    done.checkouts = forget_checkouts(project)?;
    done.undo_files = remove_old(&project.repository, wish.undo_days)?
        + remove_left(&quarantine::incoming_dir(&project.repository))?
        + remove_left(&sign::scratch_dir(&project.repository))?;
    done.snapshots = forget_snapshots(&project.repository, wish.undo_days)?;
    pack(&project.repository)?;

    Ok(done)
}

/// Removes a session, which is locked: its refs, the copy of its tip, its worktree.
fn forget(project: &Project, session: &SessionName) -> anyhow::Result<()> {
    let tip = project.store().tip_id(session)?;
    remove_files(project, &session.folder())?;
    refs::delete(&project.repository, &session.reference(), Expected::At(tip))?;
    if refs::read(&project.repository, &session.draft_reference())?.is_some() {
        refs::delete(
            &project.repository,
            &session.draft_reference(),
            Expected::Any,
        )?;
    }

    // It would keep every turn.
    if refs::held(&project.repository, &session.signed_reference())?.is_some() {
        refs::delete(
            &project.repository,
            &session.signed_reference(),
            Expected::Any,
        )?;
    }

    project.journal().forget_draft(session);
    log::forget_log(&project.repository, session);
    project.journal().forget_tip(session)?;
    Ok(())
}

/// Forgets which turns were in the files of checkouts that are gone.
fn forget_checkouts(project: &Project) -> anyhow::Result<Vec<String>> {
    let (repository, mut forgotten) = (&project.repository, Vec::new());
    let linked = repository.common_dir().join("worktrees");
    for reference in refs::list(repository, "refs/teddy/published/")? {
        let name = reference.name.strip_prefix("refs/teddy/published/linked-");
        let Some(name) = name.filter(|name| !linked.join(name).exists()) else {
            continue;
        };
        refs::delete(repository, &reference.name, Expected::At(reference.target))?;
        forgotten.push(name.to_owned());
    }

    Ok(forgotten)
}

/// Returns whether a worktree was not used for some time, or its session is gone.
fn is_idle(
    project: &Project,
    listed: &RememberedWorktree,
    wish: &GcOptions,
) -> anyhow::Result<bool> {
    let session = SessionName::from_folder(&listed.session);
    let exists = match &session {
        Some(session) => refs::read(&project.repository, &session.reference())?.is_some(),
        None => false,
    };
    let used = age(&listed.used);
    Ok(!exists || used.is_none_or(|age| age >= DAY * wish.idle_days))
}

/// Removes the worktree of a session that no process works on; false where one does.
fn remove_worktree(project: &Project, session: &str, user: &mut dyn User) -> anyhow::Result<bool> {
    let Some(_session_lock) = worktrees::try_lock_worktree(&project.checkout(), session, "gc")
    else {
        user.tell(Event::Notice(Notice::WorktreeInUse(session.to_string())));
        return Ok(false);
    };
    remove_files(project, session)
}

/// Removes a worktree, by the name of its folder, and what is known of its files.
fn remove_files(project: &Project, folder: &str) -> anyhow::Result<bool> {
    let removed = worktree::remove_session_worktree(&project.repository, folder)?;
    let _ = std::fs::remove_file(project.index(&format!("session-{folder}")));
    Ok(removed)
}

/// Removes files below `teddy/undo`, and damaged state that was put aside, once they are old.
fn remove_old(repository: &Repository, days: u32) -> anyhow::Result<usize> {
    let teddy = repository.teddy_dir();
    let mut files = files_below(&teddy.join("undo"));
    let aside = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("pending.json.bad"))
    };
    files.extend(
        std::fs::read_dir(&teddy)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(aside),
    );
    let old = files
        .into_iter()
        .filter(|path| age(path).is_some_and(|age| age >= DAY * days));
    let mut removed = 0;

    for path in old.chain(abandoned(repository)) {
        std::fs::remove_file(&path).with_context(|| format!("removing `{}`", path.display()))?;
        removed += 1;
    }

    Ok(removed)
}

/// Removes the caches that this repository's commands filled, if none ran for some time; returns
/// whether there were any.
fn remove_caches(project: &Project, days: u32) -> anyhow::Result<bool> {
    let caches = confine::tool_caches(project);
    if age(&caches).is_none_or(|age| age < DAY * days) {
        return Ok(false);
    }

    // What commands wrote is in there: nothing of it is followed.
    let (Some(folder), Some(name)) = (caches.parent(), caches.file_name()) else {
        return Ok(false);
    };
    let folder = folder.canonicalize()?;
    remove_below(&Root::open_strictly(&folder)?, name)?;

    Ok(true)
}

/// Removes what a killed process has left in a folder: what it had taken in from a command's
/// repository and not yet looked at, or what it was about to sign; returns how many there were.
fn remove_left(folder: &Path) -> anyhow::Result<usize> {
    let Ok(root) = Root::open_strictly(folder) else {
        return Ok(0);
    };
    let names = root.names()?.into_iter();
    let old: Vec<_> = names
        .filter(|name| age(&folder.join(name)).is_some_and(|age| age >= DAY))
        .collect();
    old.iter().try_for_each(|name| remove_below(&root, name))?;

    Ok(old.len())
}

/// Returns temporary files of processes that were killed: state of ours, and loose objects, that
/// never got their names.
fn abandoned(repository: &Repository) -> impl Iterator<Item = PathBuf> {
    let objects = std::fs::read_dir(repository.common_dir().join("objects"))
        .into_iter()
        .flatten()
        .flatten();
    let files = files_below(&repository.teddy_dir())
        .into_iter()
        .chain(objects.map(|entry| entry.path()));
    let of_sessions = ["tips", "own-drafts", "log", "locks", "current"]
        .map(|folder| repository.teddy_dir().join(folder));
    let is_temporary = move |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A session may be called as one of ours begins, but for the first.
        let known = if of_sessions.iter().any(|folder| path.starts_with(folder)) {
            &TEMPORARY[..1]
        } else {
            &TEMPORARY
        };
        known.iter().any(|start| name.starts_with(start)) && path.is_file()
    };

    files.filter(move |path| is_temporary(path) && age(path).is_some_and(|age| age >= DAY))
}

/// Forgets the old ones of the snapshots that are kept beside the sessions.
fn forget_snapshots(repository: &Repository, days: u32) -> anyhow::Result<usize> {
    let oldest = clock::now().timestamp().as_second() - i64::from(days) * 24 * 60 * 60;
    let mut forgotten = 0;
    for reference in refs::list(repository, "refs/teddy/snapshots/")? {
        let mut kept: Vec<CommitId> = Vec::new();
        let (mut at, mut old) = (Some(reference.target), 0);
        while let Some(id) = at {
            let commit = repository.commit(id)?;
            let keeper = commit.message.trim_end() == KEEPER;
            // The newest one is the workspace as it was last recorded, however long ago.
            let stays = kept.is_empty() || commit.seconds >= oldest;
            if stays {
                kept.extend(if keeper {
                    commit.parents.first().copied()
                } else {
                    Some(id)
                })
            } else {
                old += 1
            }

            at = commit.parents.get(1).copied().filter(|_| keeper);
        }

        if old > 0 {
            move_to(repository, &reference, &chain(repository, &kept)?)?;
            forgotten += old;
        }
    }

    Ok(forgotten)
}

/// Makes commits of which the last one reaches all of these, given newest first.
fn chain(repository: &Repository, kept: &[CommitId]) -> anyhow::Result<Vec<CommitId>> {
    let (mut kept, message) = (kept.iter().rev(), format!("{KEEPER}\n"));
    let mut tip = *kept.next().context("the newest snapshot is always kept")?;
    let mut made = vec![tip];
    for &commit in kept {
        let tree = repository.commit(commit)?.tree;
        tip = repository.write_commit(&NewCommit {
            tree,
            parents: &[commit, tip],
            message: &message,
            time: &clock::now(),
        })?;
        made.push(tip);
    }

    Ok(made)
}

/// Moves a ref to the last of these commits, whose trees it reaches already.
fn move_to(
    repository: &Repository,
    reference: &Reference,
    made: &[CommitId],
) -> anyhow::Result<()> {
    let trees = made
        .iter()
        .map(|&commit| Ok(repository.commit(commit)?.tree))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let held = hold::hold(repository, made, &trees, Older::Stay)?;
    let held = held.context(
        "`git gc` removed objects while they were written; nothing was forgotten, try again",
    )?;

    // Once the ref has moved the old commits can go: the new ones must be on disk by then.
    durable::flush(repository)?;
    fault::point("before-snapshot-ref")?;
    let tip = *made.last().context("the newest snapshot is always kept")?;
    refs::move_to(
        repository,
        (&reference.name, Expected::At(reference.target)),
        tip,
        "teddy: gc",
    )?;

    hold::settle(repository, &held)
}

/// Puts loose objects and small packs together; what no ref reaches is left to the user's own `git
/// gc`.
fn pack(repository: &Repository) -> anyhow::Result<()> {
    let mut command = repository.git()?;
    // Git would look for minutes, and in gigabytes of memory, for what two large binaries share.
    command.args(["-c", LARGE, "-c", WINDOW, "repack", "-d", "-l", "-q"]);

    // Git cannot do both: put packs together by size, and leave out what only the server has.
    if !repository.is_partial() {
        command.arg("--geometric=2");
    }

    let output = command.output().context("starting git repack")?;
    anyhow::ensure!(
        output.status.success(),
        "git repack failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

/// Returns how long ago a file was changed or moved to where it is.
fn age(path: &Path) -> Option<Duration> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = std::fs::symlink_metadata(path).ok()?;
    let moved = SystemTime::UNIX_EPOCH
        + Duration::from_secs(u64::try_from(metadata.ctime()).unwrap_or_default());
    let modified = metadata.modified().ok()?.max(moved);
    let now = SystemTime::UNIX_EPOCH
        + Duration::from_secs(u64::try_from(clock::now().timestamp().as_second()).ok()?);

    Some(now.duration_since(modified).unwrap_or_default())
}

/// Returns every file below a folder, links not followed.
pub(super) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path())
            } else {
                files.push(entry.path())
            }
        }
    }

    files
}
