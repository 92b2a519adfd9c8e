//! Landing: what the session's turns did, without the user's own edits, as ordinary commits on a
//! branch of the user's.

mod commits;
pub mod error;
pub mod latest;
mod message;
mod range;
mod record;

use crate::git::diff;
use serde::Serialize;

use self::commits::{LandPlan, MadeCommit, PlannedCommit};
use self::record::Recording;
use crate::git::diff::TreeChange;
use crate::git::land::branch::{Target, target};
use crate::git::land::hooks::{self, Verify};
use crate::git::land::scratch::LandingWorktree;
use crate::git::object::{CommitId, TreeId};
use crate::host::fault;
use crate::session::turn::Turn;
use crate::text::path::{lossy, shown};
use crate::workflow::carry;
use crate::workflow::notice::Notice;
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};
use crate::workspace::landing::scratch_folder;
use crate::workspace::notice::{FileObstacle, obstacles};

/// The turns that a title names one by one.
const MAX_NAMED: usize = 4;

/// Where the message of a commit comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MessageSource {
    /// The user has said it.
    Given(String),
    /// A draft of the turns' titles and requests, as it is.
    #[default]
    Draft,
    /// The draft, once the user has edited it.
    Edited,
}

/// What is wanted of a landing.
#[derive(Debug, Clone, Default)]
pub struct LandOptions {
    /// A turn, or a range of turns; nothing for all that have not landed.
    pub range: Option<String>,
    /// The message.
    pub message: MessageSource,
    /// A commit for each turn.
    pub each: bool,
    /// A new branch.
    pub branch: Option<String>,
    /// Only show what would be committed.
    pub dry_run: bool,
    /// Skip the hooks that check.
    pub no_verify: bool,
}

/// What a landing did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct LandResult {
    /// The session.
    pub session: String,
    /// The branch.
    pub branch: String,
    /// The number of the turn that records it; nothing after a dry run or an overlap.
    pub turn: Option<u64>,
    /// That turn.
    pub commit: Option<CommitId>,
    /// The commits on the branch, oldest first.
    pub commits: Vec<Committed>,
    /// Files where a turn overlaps with what HEAD has, or hooks with the user's own edits.
    pub overlaps: Vec<String>,
    /// The turn that overlaps with what HEAD has; nothing was changed then.
    pub overlapping: Option<u64>,
    /// Whether other turns were to land with that one.
    #[serde(skip)]
    pub has_others: bool,
    /// Files of the user's that hooks changed.
    pub formatted: Vec<String>,
    /// Files whose staged version overlaps with what landed, and stays.
    pub staged: Vec<String>,
    /// Files that git ignores, left out.
    pub ignored: Vec<String>,
    /// What stood in the way of writing files, other than an overlap.
    #[serde(skip)]
    pub obstacles: Vec<FileObstacle>,
}

/// A commit on the branch.
#[derive(Debug, Clone, Serialize)]
pub struct Committed {
    /// The commit; nothing after a dry run.
    pub commit: Option<CommitId>,
    /// The subject.
    pub title: String,
    /// The whole message.
    pub message: String,
    /// The turns that it has.
    pub turns: Vec<u64>,
    /// The files that it changes.
    pub files: Vec<String>,
    /// Its tree and that of its parent.
    #[serde(skip)]
    pub trees: [TreeId; 2],
}

/// Lands turns.
///
/// # Errors
/// If nothing can be landed, here or now; if git makes no commit; or if the repository or the files
/// cannot be written. Nothing has changed then, unless the message says so.
pub fn land(
    project: &Project,
    wish: &LandOptions,
    user: &mut dyn User,
) -> anyhow::Result<LandResult> {
    let session = project.session()?;
    let _session_lock = project.lock_session(&session, "land")?;
    // What a crash left may be in the way of the commit, and the commit may take long: an editor is
    // open, a hook runs all tests. Others go on meanwhile.
    drop(project.enter("land", user)?);
    let tip = project.store().tip(&session)?;
    let target = target(&project.repository, wish.branch.as_deref())?;
    let selected = range::select(project, &tip, wish.range.as_deref(), &target)?;
    let mut done = LandResult {
        session: session.to_string(),
        branch: target.name.clone(),
        ignored: shown(&selected.ignored),
        has_others: selected.landings.len() > 1,
        ..LandResult::default()
    };

    let planned = match commits::plan(project, selected, &target, wish)? {
        LandPlan::Commits(planned) => planned,
        LandPlan::Overlap(overlap) => {
            done.overlaps = shown(&overlap.paths);
            done.overlapping = Some(overlap.turn);
            return Ok(done);
        }
    };
    if wish.dry_run {
        done.commits = told(project, &planned)?;
        return Ok(done);
    }

    commit(project, (&tip, &target), &planned, wish, (done, user))
}

/// Has git make the commits, and moves the branch to them.
fn commit(
    project: &Project,
    (tip, target): (&Turn, &Target),
    planned: &[PlannedCommit],
    wish: &LandOptions,
    (mut done, user): (LandResult, &mut dyn User),
) -> anyhow::Result<LandResult> {
    let repository = &project.repository;
    let verify = if wish.no_verify {
        Verify::No
    } else {
        Verify::Yes
    };

    if let Some((dir, file)) = repository.missing_hooks_dir().filter(|_| !wish.no_verify) {
        user.tell(Event::Notice(Notice::NoHooks { dir, file }));
    }

    let folder = scratch_folder(&project.checkout(), &tip.session);
    let scratch = LandingWorktree::make(repository, &folder, target.base, verify)?;
    let made = commits::make(project, &scratch, (target, planned), wish)?;
    fault::point("after-commit")?;

    let transaction = project.enter("land", user)?;
    let waiting = carry::waiting(project, tip)?;
    let recording = record::record(&transaction, project, (tip, target), &made)?;
    done.commits = committed(project, &made)?;
    tell(recording, &mut done);
    if let Some(Err(error)) = waiting.map(|draft| carry::carry(project, tip, draft)) {
        user.tell(Event::Notice(Notice::DraftNotKept(format!("{error:#}"))));
    }

    drop(transaction);
    // Now only: until here they were nobody's.
    drop(scratch);
    if target.is_current {
        hooks::after_commit(repository);
    }

    Ok(done)
}

/// Says what became of branch, index and files.
fn tell(recording: Recording, done: &mut LandResult) {
    let Recording {
        turn,
        completed,
        formatted,
    } = recording;
    done.turn = Some(turn);
    done.commit = Some(completed.commit);
    done.staged = shown(&completed.staged);
    done.obstacles = obstacles(&completed.published);
    done.overlaps = shown(&formatted.overlaps);
    done.overlaps.extend(shown(&completed.published.conflicts));

    let published = completed.published;
    done.formatted = shown(&[published.written, published.deleted].concat());
    done.formatted.sort();
}

/// Returns the commits that would be made.
fn told(project: &Project, planned: &[PlannedCommit]) -> anyhow::Result<Vec<Committed>> {
    let committed = |commit: &PlannedCommit| {
        Ok(Committed {
            commit: None,
            title: commit.message.lines().next().unwrap_or_default().to_owned(),
            message: commit.message.clone(),
            turns: commit
                .landings
                .iter()
                .map(|landing| landing.turn.number())
                .collect(),
            files: files(project, [commit.from, commit.tree])?,
            trees: [commit.from, commit.tree],
        })
    };
    planned.iter().map(committed).collect()
}

/// Returns the commits that were made.
fn committed(project: &Project, made: &[MadeCommit]) -> anyhow::Result<Vec<Committed>> {
    let committed = |commit: &MadeCommit| {
        Ok(Committed {
            commit: Some(commit.commit),
            title: commit.title.clone(),
            message: project.repository.commit(commit.commit)?.message,
            turns: commit.turns.iter().map(|turn| turn.number).collect(),
            files: files(project, [commit.from, commit.tree])?,
            trees: [commit.from, commit.tree],
        })
    };
    made.iter().map(committed).collect()
}

/// Returns the paths that differ between two trees.
fn files(project: &Project, [from, to]: [TreeId; 2]) -> anyhow::Result<Vec<String>> {
    let changes = diff::changes(&project.repository, from, to)?;
    let path = |change: &TreeChange| lossy(&change.path);
    Ok(changes.iter().map(path).collect())
}

/// Returns turns as a title names them: `turn 2`, `turns 1-3`, `turns 1, 3`.
pub fn turns(numbers: &[u64]) -> String {
    let follows = |pair: &[u64]| pair[1] == pair[0] + 1;
    match numbers {
        [] => "no turn".to_owned(),
        [one] => format!("turn {one}"),
        [first, .., last] if numbers.len() > 2 && numbers.windows(2).all(follows) => {
            format!("turns {first}-{last}")
        }
        _ => {
            let mut names: Vec<String> =
                numbers.iter().take(MAX_NAMED).map(u64::to_string).collect();
            if numbers.len() > MAX_NAMED {
                names.push("...".to_owned());
            }
            format!("turns {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_named_in_a_title() {
        let check = |numbers: &[u64], expected: &str| assert_eq!(turns(numbers), expected);
        check(&[2], "turn 2");
        check(&[1, 2], "turns 1, 2");
        check(&[1, 2, 3], "turns 1-3");
        check(&[1, 3, 4], "turns 1, 3, 4");
        check(&[1, 3, 5, 7, 9], "turns 1, 3, 5, 7, ...");
    }
}
