//! A landing as a turn: what git committed is recorded, the index follows, and what a crash left is
//! finished.
//!
//! git moves the branch itself. A landing therefore has a directory with a note of what it is about to
//! do ([`LandingNote`]). If TeDDy is killed, the next command compares the note with the branch: commits
//! that were made are recorded, and the user's index follows them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::git::diff;
use crate::git::history::{find_commit_by_message, is_on_branch};
use crate::git::land::commit::{self, CommitSite, commits_since};
use crate::git::land::index::{self, NewIndex};
use crate::git::merge::{self, Merged};
use crate::git::object::{CommitId, TreeId};
use crate::git::refs::{self, Expected};
use crate::git::repository::Repository;
use crate::host::fault;
use crate::host::file::{read_regular, write_atomic};
use crate::session::artifact;
use crate::session::meta::{Landed, LandedCommit, LandedTurn, Status};
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::sanitize::sanitize_line;
use crate::workspace::complete::{Completed, SessionMove, complete};
use crate::workspace::files_turn::FilesTurn;
use crate::workspace::fit::FileMove;
use crate::workspace::notice::{FilesNotice, Notify};
use crate::workspace::snapshot::{self, RecordedFiles};
use crate::workspace::stack::record::publish_turn;
use crate::workspace::{Checkout, draft_transfer};

/// The directory below that of the worktrees that has a directory for each landing.
const LANDINGS: &str = ".landing";

/// The note in it.
const NOTE: &str = "landing.json";

const MAX_NOTE: u64 = 16 << 20;

/// How long recovery waits for a git that outlives a killed TeDDy.
const PATIENCE: Duration = Duration::from_secs(2);

const PAUSE: Duration = Duration::from_millis(20);

/// A rewritten commit is looked for among so many.
const MAX_SEARCHED: usize = 1000;

/// What a landing is about to do, written before git starts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LandingNote {
    /// The TeDDy that lands.
    pub process: i32,
    pub session: String,
    /// The newest turn of the session.
    pub tip: CommitId,
    /// The name of the checkout among its siblings.
    pub worktree: String,
    /// The full name of the branch.
    pub branch: String,
    /// The commit on which the first one is made; `None` on an unborn branch.
    pub base: Option<CommitId>,
    /// The tree of `base`.
    pub tree: TreeId,
    /// Whether the user is on the branch, so that their index follows.
    pub is_current: bool,
    /// The user's files before.
    pub files: CommitId,
    /// The commits, oldest first.
    pub commits: Vec<IntendedCommit>,
}

/// A commit that a landing is about to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IntendedCommit {
    pub turns: Vec<LandedTurn>,
    /// The tree, before hooks.
    pub tree: TreeId,
    /// Whether git runs in the user's checkout.
    pub in_checkout: bool,
}

/// A commit that git made.
#[derive(Debug, Clone)]
pub struct MadeCommit {
    pub commit: CommitId,
    /// Its subject.
    pub title: String,
    /// The tree of its parent.
    pub from: TreeId,
    pub tree: TreeId,
    pub intended: IntendedCommit,
}

impl LandingNote {
    /// Writes the note, durably.
    pub fn save(&self, dir: &Path) -> anyhow::Result<()> {
        write_atomic(&dir.join(NOTE), &serde_json::to_vec(self)?)
            .context("writing down what the landing is about to do; nothing was changed")
    }

    fn load(dir: &Path) -> Option<LandingNote> {
        serde_json::from_slice(&read_regular(&dir.join(NOTE), MAX_NOTE).ok()?).ok()
    }

    /// Returns the commit that git made for an intended one, and the newest one of the branch: hooks
    /// can have added others. `None` if git made none.
    ///
    /// A commit is known by its trailers. If git reported success, it is the first one on `parent`,
    /// because the user can remove trailers in the editor.
    pub fn find_created(
        repository: &Repository,
        intended: &IntendedCommit,
        parent: Option<CommitId>,
        now: Option<CommitId>,
        succeeded: bool,
    ) -> anyhow::Result<Option<(MadeCommit, CommitId)>> {
        let chain = commits_since(repository, parent, now)?;
        let (Some(first), Some(newest)) = (chain.first(), chain.last()) else {
            return Ok(None);
        };
        let commit = repository.commit(*first)?;
        if !succeeded && !has_turns(&commit.message, &intended.turns) {
            return Ok(None);
        }

        let from = match parent {
            Some(parent) => repository.commit(parent)?.tree,
            None => repository.empty_tree(),
        };
        let mut intended = intended.clone();
        if commit.tree == from {
            // A hook reset the index: git then makes an empty commit, in which no turn landed.
            intended.turns.clear();
        }
        let created = MadeCommit {
            commit: *first,
            title: commit.subject().to_owned(),
            from,
            tree: commit.tree,
            intended,
        };
        Ok(Some((created, *newest)))
    }
}

/// Returns whether a message has the trailers of turns.
fn has_turns(message: &str, turns: &[LandedTurn]) -> bool {
    let lines: Vec<&str> = message.lines().map(str::trim).collect();
    turns.iter().all(|turn| {
        let trailer = format!("Teddy-Turn: {} {}", turn.number, turn.turn_id);
        lines.contains(&trailer.as_str())
    })
}

/// Returns the commit of a branch that has landed turns, where it is now: a rebase and an amendment
/// keep the trailers.
pub fn landed_as(
    repository: &Repository,
    branch: &str,
    landed: &LandedCommit,
) -> anyhow::Result<Option<CommitId>> {
    if is_on_branch(repository, landed.commit, branch) {
        return Ok(Some(landed.commit));
    }
    let is_it = |message: &str| has_turns(message, &landed.turns);
    find_commit_by_message(repository, branch, MAX_SEARCHED, &is_it)
}

/// Returns the directory that has a directory for each landing.
pub fn landings_dir(checkout: &Checkout<'_>) -> PathBuf {
    checkout.worktrees.join(LANDINGS)
}

/// Makes the user's index follow their branch from one tree to another. Returns the paths whose staged
/// version overlaps with what landed, and stays. The caller holds TeDDy's lock.
pub fn follow(repository: &Repository, old: TreeId, new: TreeId) -> anyhow::Result<Vec<Vec<u8>>> {
    fault::point("after-branch")?;
    let mut index = NewIndex::prepare(repository, old, new)?;
    let staged = std::mem::take(&mut index.preserved);
    index.put()?;
    fault::point("after-index")?;
    Ok(staged)
}

/// Returns whether git still works for a landing on a branch whose TeDDy was killed.
pub fn is_ending(checkout: &Checkout<'_>, branch: &str) -> bool {
    let dirs = std::fs::read_dir(landings_dir(checkout));
    dirs.into_iter().flatten().flatten().any(|dir| {
        let landing = LandingNote::load(&dir.path());
        let is_same =
            |landing: &LandingNote| landing.branch == branch && !is_alive(landing.process);
        landing.is_some_and(|landing| is_same(&landing)) && commit::is_in_use(&dir.path())
    })
}

/// Finishes landings whose TeDDy was killed. Returns whether there were any. The caller holds TeDDy's
/// lock.
pub(super) fn recover(checkout: &Checkout<'_>, notify: &mut Notify<'_>) -> anyhow::Result<bool> {
    let dirs = std::fs::read_dir(landings_dir(checkout));
    let mut any = false;
    for dir in dirs.into_iter().flatten().flatten() {
        let dir = dir.path();
        let landing = LandingNote::load(&dir);
        let is_orphan = landing.as_ref().is_none_or(|note| !is_alive(note.process));
        let start = Instant::now();
        while is_orphan && commit::is_in_use(&dir) && start.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
        if commit::is_in_use(&dir) {
            continue;
        }

        if let Some(landing) = landing {
            if landing.worktree != checkout.repository.worktree_name() {
                continue;
            }
            finish(checkout, &landing, notify)?;
        }
        commit::remove(checkout.repository, &dir);
        any = true;
    }
    Ok(any)
}

/// Finishes one landing.
fn finish(
    checkout: &Checkout<'_>,
    landing: &LandingNote,
    notify: &mut Notify<'_>,
) -> anyhow::Result<()> {
    let repository = checkout.repository;
    index::release(repository)?;
    let now = refs::read(repository, &landing.branch)?;
    // What the user staged or committed since is merged with what landed, or has it already.
    let continues = !commits_since(repository, landing.base, now)?.is_empty();
    let head = refs::head(repository)?.filter(|_| continues && landing.is_current);
    if let Some(head) = head.filter(|head| Some(*head) == now) {
        follow(repository, landing.tree, repository.commit(head)?.tree)?;
    }

    let (mut created, mut parent) = (Vec::new(), landing.base);
    for intended in &landing.commits {
        // Commits that followed on the branch since do not matter, nor does a hook's own.
        let chain = commits_since(repository, parent, now)?;
        let commit = chain.into_iter().find_map(|id| {
            let commit = repository.commit(id).ok()?;
            has_turns(&commit.message, &intended.turns).then_some(id)
        });
        let Some(id) = commit else { break };
        let at = repository.commit(id)?.parents.first().copied();
        if let Some((commit, _)) =
            LandingNote::find_created(repository, intended, at, Some(id), true)?
        {
            created.push(commit);
        }
        parent = Some(id);
    }

    let Some(newest) = created.last() else {
        return not_made(checkout, landing, notify);
    };
    let newest = newest.commit;
    fault::point("recover-landed")?;
    let session = SessionName::from_ref(&landing.session)?;
    if refs::read(repository, &session.reference())? == Some(landing.tip) {
        record_landing(checkout, landing, &created)?;
    }
    notify(FilesNotice::LandingFinished {
        branch: landing.branch.trim_start_matches("refs/heads/").to_owned(),
        commit: newest,
    });
    Ok(())
}

/// Cleans up after a landing that made no commit.
fn not_made(
    checkout: &Checkout<'_>,
    landing: &LandingNote,
    notify: &mut Notify<'_>,
) -> anyhow::Result<()> {
    let repository = checkout.repository;
    discard_branch(repository, landing)?;
    if landing.is_current && landing.commits.iter().any(|commit| commit.in_checkout) {
        let now = snapshot::snapshot(checkout, &[])?.tree;
        let paths = changed_files(repository, repository.commit(landing.files)?.tree, now)?;
        if !paths.is_empty() {
            notify(FilesNotice::ChangedDuringCommit {
                paths,
                source: landing.files,
            });
        }
    }
    Ok(())
}

/// Deletes the new branch of a landing that made no commit on it.
pub fn discard_branch(repository: &Repository, landing: &LandingNote) -> anyhow::Result<()> {
    let Some(base) = landing.base.filter(|_| !landing.is_current) else {
        return Ok(());
    };
    if refs::read(repository, &landing.branch)? == Some(base) {
        refs::delete(repository, &landing.branch, Expected::At(base))?;
    }
    Ok(())
}

/// Returns the files of a tree that another one does not have as they are.
pub fn changed_files(
    repository: &Repository,
    before: TreeId,
    now: TreeId,
) -> anyhow::Result<Vec<Vec<u8>>> {
    let changes = diff::changes(repository, before, now)?;
    let was_there = changes.into_iter().filter(|change| change.old.is_some());
    Ok(was_there.map(|change| change.path).collect())
}

fn is_alive(process: i32) -> bool {
    Pid::from_raw(process).is_some_and(|pid| test_kill_process(pid).is_ok())
}

impl IntendedCommit {
    /// Returns where git runs for it.
    pub fn site(&self, is_current: bool) -> CommitSite {
        match (is_current, self.in_checkout) {
            (false, _) => CommitSite::NewBranch,
            (true, true) => CommitSite::Checkout,
            (true, false) => CommitSite::Separate,
        }
    }
}

/// The turns that a title names one by one.
const MAX_TITLE_TURNS: usize = 4;

/// A landing on record.
pub struct Recording {
    pub turn: u64,
    /// Result for the session and the files.
    pub completed: Completed,
    /// Files in which what hooks changed overlaps with the user's own edits, which stay.
    pub overlaps: Vec<Vec<u8>>,
    /// The user's files, before anything was written to them.
    pub files: TreeId,
    /// Why a draft that waited was not carried over.
    pub draft_lost: Option<anyhow::Error>,
}

/// Records commits that git made as a turn, and applies the changes of hooks to the user's files. The caller holds TeDDy's lock.
pub fn record_landing(
    checkout: &Checkout<'_>,
    landing: &LandingNote,
    commits: &[MadeCommit],
) -> anyhow::Result<Recording> {
    let session = SessionName::from_ref(&landing.session)?;
    let tip = Turn::read(checkout.repository, &session, landing.tip)?;
    let waiting = draft_transfer::waiting(checkout, &tip)?;
    let recorded = snapshot::record(checkout, &tip, &[])?;
    let changed = hook_changes(checkout.repository, landing, recorded.tree, commits)?;

    let files = FileMove {
        from: recorded.tree,
        to: changed.after,
    };
    let before = match changed.before == recorded.tree {
        true => recorded.commit,
        false => snapshot::commit_of(checkout, changed.before, &tip)?,
    };
    let recorded = RecordedFiles {
        commit: before,
        ..recorded
    };
    let step = write_landing_turn(
        checkout,
        &tip,
        landed_meta(landing, commits),
        &recorded,
        files.to,
    )?;
    let completed = complete(checkout, &session, &step, Some(&files))?;
    let transferred = waiting.map(|draft| draft_transfer::transfer_draft(checkout, &tip, draft));

    Ok(Recording {
        turn: tip.number() + 1,
        completed,
        overlaps: changed.overlaps,
        files: recorded.tree,
        draft_lost: transferred.and_then(Result::err),
    })
}

/// What hooks changed in the files that landed.
struct HookChanges {
    /// The user's files without it.
    before: TreeId,
    /// The user's files with it.
    after: TreeId,
    /// Where it overlaps with the user's own edits.
    overlaps: Vec<Vec<u8>>,
}

/// Finds what hooks changed. Those that ran in the user's checkout wrote it there themselves.
fn hook_changes(
    repository: &Repository,
    landing: &LandingNote,
    now: TreeId,
    commits: &[MadeCommit],
) -> anyhow::Result<HookChanges> {
    let mut changes = HookChanges {
        before: now,
        after: now,
        overlaps: Vec::new(),
    };
    for commit in commits.iter().filter(|_| landing.is_current) {
        let intended = commit.intended.tree;
        if commit.intended.in_checkout {
            let mut edits = BTreeMap::new();
            for change in diff::changes(repository, commit.tree, intended)? {
                if repository.entry(now, &change.path)? == change.old {
                    edits.insert(change.path, change.new);
                }
            }
            changes.before = diff::tree_with(repository, changes.before, &edits)?;
            continue;
        }

        changes.after = match merge::merge_trees(repository, intended, changes.after, commit.tree)?
        {
            Merged::Clean(tree) => tree,
            Merged::Overlap { paths, ours, .. } => {
                changes.overlaps.extend(paths);
                ours
            }
        };
    }

    changes.overlaps.sort();
    changes.overlaps.dedup();
    Ok(changes)
}

/// Writes the turn.
fn write_landing_turn(
    checkout: &Checkout<'_>,
    tip: &Turn,
    landed: Landed,
    recorded: &RecordedFiles,
    files: TreeId,
) -> anyhow::Result<SessionMove> {
    let repository = checkout.repository;
    let title = landing_title(&landed);
    let summary = commit_lines(repository, &landed)?;
    let mut turn = FilesTurn::begin(repository, tip, Status::Landed, recorded)?;
    let workspace = turn.set_files(&title, recorded.commit, files)?;
    turn.meta.landed = Some(landed);
    turn.continue_from(tip)?;
    turn.keep_context_edits();
    let report = render_landing_report(&title, &summary);
    turn.artifacts.insert(artifact::REPORT, report);

    let published = publish_turn(repository, tip, &workspace, Some(files))?;
    let log = format!("teddy: {}", title.to_lowercase());
    Ok(SessionMove {
        // The commits are on the branch: not to record them would not undo them.
        anyway: true,
        ..turn.finish(&title, &summary, published, log)?
    })
}

fn landed_meta(landing: &LandingNote, commits: &[MadeCommit]) -> Landed {
    let commit = |created: &MadeCommit| LandedCommit {
        commit: created.commit,
        turns: created.intended.turns.clone(),
    };
    Landed {
        branch: landing.branch.trim_start_matches("refs/heads/").to_owned(),
        commits: commits.iter().map(commit).collect(),
    }
}

/// Returns a line for each commit.
fn commit_lines(repository: &Repository, landed: &Landed) -> anyhow::Result<Vec<String>> {
    let line = |landed: &LandedCommit| {
        let commit = repository.commit(landed.commit)?;
        Ok(format!(
            "commit {} {}",
            commit.id,
            sanitize_line(commit.subject())
        ))
    };
    landed.commits.iter().map(line).collect()
}

/// Returns the title of the turn: `Land turns 1, 2 on main`.
fn landing_title(landed: &Landed) -> String {
    let turns = landed.commits.iter().flat_map(|commit| &commit.turns);
    let numbers: Vec<u64> = turns.map(|turn| turn.number).collect();
    format!("Land {} on {}", turns_named(&numbers), landed.branch)
}

fn render_landing_report(title: &str, summary: &[String]) -> String {
    let lines: String = summary.iter().map(|line| format!("- {line}\n")).collect();
    format!("# Execution Report: {title}\n- **Overall Status:** Landed 🟢\n\n## Commits\n\n{lines}")
}

/// Returns turns as a title names them: `turn 2`, `turns 1-3`, `turns 1, 3`.
pub fn turns_named(numbers: &[u64]) -> String {
    let follows = |pair: &[u64]| pair[1] == pair[0] + 1;
    match numbers {
        [] => "no turn".to_owned(),
        [one] => format!("turn {one}"),
        [first, .., last] if numbers.len() > 2 && numbers.windows(2).all(follows) => {
            format!("turns {first}-{last}")
        }
        _ => {
            let mut names: Vec<String> = numbers
                .iter()
                .take(MAX_TITLE_TURNS)
                .map(u64::to_string)
                .collect();
            if numbers.len() > MAX_TITLE_TURNS {
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
        let check = |numbers: &[u64], expected: &str| assert_eq!(turns_named(numbers), expected);
        check(&[2], "turn 2");
        check(&[1, 2], "turns 1, 2");
        check(&[1, 2, 3], "turns 1-3");
        check(&[1, 3, 4], "turns 1, 3, 4");
        check(&[1, 3, 5, 7, 9], "turns 1, 3, 5, 7, ...");
    }
}
