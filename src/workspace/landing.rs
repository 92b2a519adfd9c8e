//! Records a landing as a turn, lets the index follow, and finishes what a crash left.
//!
//! git moves the branch itself. Before it starts, a directory gets a note of what is about to be
//! committed ([`LandingNote`]). If TeDDy is killed, the next command compares the note with the
//! branch, records the commits that exist, and updates the user's index.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::git::diff;
use crate::git::history::{find_commit_by_message, is_ancestor, is_on_branch};
use crate::git::land::commit::{self, CommitSite, commits_since};
use crate::git::land::index::{self, NewIndex};
use crate::git::merge;
use crate::git::object::{CommitId, TreeId};
use crate::git::refs::{self, Expected};
use crate::git::remote;
use crate::git::repository::Repository;
use crate::host::fault;
use crate::host::file::{read_regular, write_atomic};
use crate::host::process::is_alive;
use crate::session::journal::Journal;
use crate::session::meta::{Landed, LandedCommit, LandedTurn, Status};
use crate::session::name::SessionName;
use crate::session::store::Store;
use crate::session::turn::Turn;
use crate::text::sanitize::sanitize_line;
use crate::workspace::Checkout;
use crate::workspace::complete::{Completed, SessionMove, complete};
use crate::workspace::draft_transfer::{self, TransferScope};
use crate::workspace::file_move::FileMove;
use crate::workspace::files_turn::FilesTurn;
use crate::workspace::notice::{FilesNotice, Notify};
use crate::workspace::snapshot::{self, RecordedFiles};
use crate::workspace::stack::record::publish_turn;

const LANDINGS: &str = ".landing";

const NOTE: &str = "landing.json";

const MAX_NOTE: u64 = 16 << 20;

/// How long recovery waits for a git that outlives a killed TeDDy.
const PATIENCE: Duration = Duration::from_secs(2);

const PAUSE: Duration = Duration::from_millis(20);

/// Search limit for a rewritten commit.
const MAX_SEARCHED: usize = 1000;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LandingNote {
    pub process: i32,
    pub session: String,
    pub tip: CommitId,
    pub worktree: String,
    /// The full ref name.
    pub branch: String,
    /// Parent of the first commit; `None` on an unborn branch.
    pub base: Option<CommitId>,
    pub tree: TreeId,
    /// The user is on the branch, so the index follows.
    pub is_current: bool,
    /// Snapshot from before the landing.
    pub files: CommitId,
    pub commits: Vec<IntendedCommit>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IntendedCommit {
    pub turns: Vec<LandedTurn>,
    pub tree: TreeId,
    pub in_checkout: bool,
}

#[derive(Debug, Clone)]
pub struct MadeCommit {
    pub commit: CommitId,
    pub title: String,
    pub from: TreeId,
    pub tree: TreeId,
    pub intended: IntendedCommit,
}

impl LandingNote {
    fn is_running(&self) -> bool {
        u32::try_from(self.process).is_ok_and(is_alive)
    }

    pub fn save(&self, dir: &Path) -> anyhow::Result<()> {
        write_atomic(&dir.join(NOTE), &serde_json::to_vec(self)?)
            .context("writing down what the landing is about to do; nothing was changed")
    }

    fn load(dir: &Path) -> Option<LandingNote> {
        serde_json::from_slice(&read_regular(&dir.join(NOTE), MAX_NOTE).ok()?).ok()
    }

    /// Finds the commit that git made for an intended one, and the newest on the branch: hooks can
    /// add others. `None` if git made none.
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
        // The user can remove the trailers in the editor. After git reported success, the first
        // commit on `parent` is ours even so, except if another one came between.
        let is_own = |id: CommitId| LandingNote::is_own(repository, intended, id);
        if !is_own(*first)? && (!succeeded || is_own(*newest)?) {
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

    /// Whether a commit has the trailers of an intended one.
    pub fn is_own(
        repository: &Repository,
        intended: &IntendedCommit,
        commit: CommitId,
    ) -> anyhow::Result<bool> {
        let message = repository.commit(commit)?.message;
        Ok(has_turns(&message, &intended.turns))
    }
}

fn has_turns(message: &str, turns: &[LandedTurn]) -> bool {
    let lines: Vec<&str> = message.lines().map(str::trim).collect();
    turns.iter().all(|turn| {
        let trailer = format!("Teddy-Turn: {} {}", turn.number, turn.turn_id);
        lines.contains(&trailer.as_str())
    })
}

/// Where a landed commit is now: a rebase or an amended commit keeps the trailers.
pub fn landed_as(
    repository: &Repository,
    branch: &str,
    landed: &LandedCommit,
) -> anyhow::Result<Option<CommitId>> {
    if is_on_branch(repository, landed.commit, branch) {
        return Ok(Some(landed.commit));
    }
    let name = format!("refs/heads/{branch}");
    if !refs::is_name(&name) {
        return Ok(None);
    }
    match refs::read(repository, &name)? {
        Some(tip) => find_by_trailers(repository, tip, landed),
        None => Ok(None),
    }
}

/// Whether the history of a commit has a landed commit, as it was or rewritten.
pub fn is_landed_in(
    repository: &Repository,
    tip: CommitId,
    landed: &LandedCommit,
) -> anyhow::Result<bool> {
    let is_there = is_ancestor(repository, landed.commit, tip).unwrap_or(false);
    Ok(is_there || find_by_trailers(repository, tip, landed)?.is_some())
}

fn find_by_trailers(
    repository: &Repository,
    tip: CommitId,
    landed: &LandedCommit,
) -> anyhow::Result<Option<CommitId>> {
    let is_it = |message: &str| has_turns(message, &landed.turns);
    find_commit_by_message(repository, tip, MAX_SEARCHED, &is_it)
}

/// Returns the remote-tracking branch of the same name, such as `origin/main`, that has a landed
/// commit.
pub fn landed_on_remote(
    repository: &Repository,
    branch: &str,
    landed: &LandedCommit,
) -> anyhow::Result<Option<String>> {
    for remote in remote::names(repository) {
        let name = format!("{remote}/{branch}");
        // A damaged ref of a remote is no reason to fail.
        let Ok(Some(tip)) = refs::read(repository, &format!("refs/remotes/{name}")) else {
            continue;
        };
        if is_landed_in(repository, tip, landed)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Which landings of a session are believed: a turn from elsewhere can name any commit. Asked newest
/// turn first.
pub struct LandingClaims<'a> {
    repository: &'a Repository,
    journal: Journal,
    foreign: Option<CommitId>,
    /// Turns from here on can have been recorded here.
    next: Option<(u64, CommitId)>,
}

impl<'a> LandingClaims<'a> {
    pub fn new(repository: &'a Repository, session: &SessionName) -> LandingClaims<'a> {
        let journal = Journal::new(&repository.teddy_dir());
        let tip = Store { repository }.tip(session).ok();
        let own = tip.as_ref();
        let own = own.and_then(|tip| journal.own_tip(session, tip.commit));
        LandingClaims {
            repository,
            foreign: own.and_then(|own| own.foreign),
            next: tip
                .filter(|_| own.is_some())
                .map(|tip| (tip.number(), tip.commit)),
            journal,
        }
    }

    /// What a turn, by number and commit, says and this repository shows: the commits that exist with
    /// the trailers of their turns, or all if the turn was recorded here.
    pub fn believed(&mut self, number: u64, turn: CommitId, claim: &Landed) -> Option<Landed> {
        let is_shown = |landed: &&LandedCommit| {
            let commit = self.repository.commit(landed.commit);
            let has_turns = commit.is_ok_and(|commit| has_turns(&commit.message, &landed.turns));
            has_turns && !landed.turns.is_empty()
        };
        let commits: Vec<LandedCommit> = claim.commits.iter().filter(is_shown).cloned().collect();
        if commits.len() == claim.commits.len() || self.is_recorded_here(number, turn) {
            return Some(claim.clone());
        }
        let branch = claim.branch.clone();
        (!commits.is_empty()).then_some(Landed { branch, commits })
    }

    /// As [`LandingClaims::believed`].
    pub fn of(&mut self, turn: &Turn) -> Option<Landed> {
        self.believed(turn.number(), turn.commit, turn.meta.landed.as_ref()?)
    }

    fn is_recorded_here(&mut self, number: u64, turn: CommitId) -> bool {
        while let Some((at, id)) = self.next {
            if self.foreign == Some(id) || self.journal.is_adopted(id) {
                self.next = None;
            } else if at <= number {
                return id == turn;
            } else {
                let commit = self.repository.commit(id).ok();
                let previous = commit.and_then(|commit| commit.parents.first().copied());
                self.next = at.checked_sub(1).zip(previous);
            }
        }
        false
    }
}

pub fn landings_dir(checkout: &Checkout<'_>) -> PathBuf {
    checkout.worktrees.join(LANDINGS)
}

/// Updates the user's index to a new tree. Returns the paths whose staged version overlaps with
/// what landed; the staged version stays. The caller holds the repository's lock.
pub fn follow(repository: &Repository, old: TreeId, new: TreeId) -> anyhow::Result<Vec<Vec<u8>>> {
    fault::point("after-branch")?;
    let mut index = NewIndex::prepare(repository, old, new)?;
    let staged = std::mem::take(&mut index.preserved);
    index.put()?;
    fault::point("after-index")?;
    Ok(staged)
}

/// Whether git still runs for a landing on this branch after TeDDy was killed.
pub fn is_ending(checkout: &Checkout<'_>, branch: &str) -> bool {
    let dirs = std::fs::read_dir(landings_dir(checkout));
    dirs.into_iter().flatten().flatten().any(|dir| {
        let landing = LandingNote::load(&dir.path());
        let is_same = |landing: &LandingNote| landing.branch == branch && !landing.is_running();
        landing.is_some_and(|landing| is_same(&landing)) && commit::is_in_use(&dir.path())
    })
}

/// Finishes landings of killed processes. Returns whether there were any. The caller locks.
pub(super) fn recover(checkout: &Checkout<'_>, notify: &mut Notify<'_>) -> anyhow::Result<bool> {
    let dirs = std::fs::read_dir(landings_dir(checkout));
    let mut any = false;
    for dir in dirs.into_iter().flatten().flatten() {
        let dir = dir.path();
        let landing = LandingNote::load(&dir);
        let is_orphan = landing.as_ref().is_none_or(|note| !note.is_running());
        // git and its hooks outlive a killed TeDDy. Without the directory, git would commit an
        // empty tree.
        let start = Instant::now();
        while is_orphan && commit::is_in_use(&dir) && start.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
        if commit::is_in_use(&dir) {
            continue;
        }

        if let Some(landing) = landing {
            // The index to update belongs to the checkout that landed.
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

fn finish(
    checkout: &Checkout<'_>,
    landing: &LandingNote,
    notify: &mut Notify<'_>,
) -> anyhow::Result<()> {
    let repository = checkout.repository;
    index::release(repository)?;
    let now = refs::read(repository, &landing.branch)?;
    // The merge keeps what the user staged or committed since.
    let continues = !commits_since(repository, landing.base, now)?.is_empty();
    let head = refs::head(repository)?.filter(|_| continues && landing.is_current);
    if let Some(head) = head.filter(|head| Some(*head) == now) {
        follow(repository, landing.tree, repository.commit(head)?.tree)?;
    }

    let (mut created, mut parent) = (Vec::new(), landing.base);
    for intended in &landing.commits {
        // Later commits and those of hooks do not matter.
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
    // A newer turn makes it too late to record this one; the commits stay on the branch.
    if refs::read(repository, &session.reference())? == Some(landing.tip) {
        record_landing(checkout, landing, &created)?;
    }
    notify(FilesNotice::LandingFinished {
        branch: landing.branch.trim_start_matches("refs/heads/").to_owned(),
        commit: newest,
    });
    Ok(())
}

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

pub fn discard_branch(repository: &Repository, landing: &LandingNote) -> anyhow::Result<()> {
    let Some(base) = landing.base.filter(|_| !landing.is_current) else {
        return Ok(());
    };
    // Only if it did not move: another process can have committed to it.
    if refs::read(repository, &landing.branch)? == Some(base) {
        refs::delete(repository, &landing.branch, Expected::At(base))?;
    }
    Ok(())
}

pub fn changed_files(
    repository: &Repository,
    before: TreeId,
    now: TreeId,
) -> anyhow::Result<Vec<Vec<u8>>> {
    let changes = diff::changes(repository, before, now)?;
    let was_there = changes.into_iter().filter(|change| change.old.is_some());
    Ok(was_there.map(|change| change.path).collect())
}

impl IntendedCommit {
    pub fn site(&self, is_current: bool) -> CommitSite {
        match (is_current, self.in_checkout) {
            (false, _) => CommitSite::NewBranch,
            (true, true) => CommitSite::Checkout,
            (true, false) => CommitSite::Separate,
        }
    }
}

const MAX_TITLE_TURNS: usize = 4;

pub struct Recording {
    pub turn: u64,
    pub completed: Completed,
    /// Files in which changes of hooks conflict with the user's edits, which stay.
    pub overlaps: Vec<Vec<u8>>,
    /// The user's files before the landing changed any.
    pub files: TreeId,
    /// Why a waiting draft was not carried over.
    pub draft_lost: Option<anyhow::Error>,
}

/// Records commits as a turn and applies changes of hooks to the user's files. The caller holds the
/// lock.
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
    let scope = TransferScope::Whole;
    let transferred = waiting.map(|draft| draft_transfer::transfer(checkout, &tip, draft, scope));

    Ok(Recording {
        turn: tip.number() + 1,
        completed,
        overlaps: changed.overlaps,
        files: recorded.tree,
        draft_lost: transferred.and_then(Result::err),
    })
}

struct HookChanges {
    before: TreeId,
    after: TreeId,
    overlaps: Vec<Vec<u8>>,
}

/// Hooks in the user's checkout have written their changes there already; others are merged.
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
            // These changes are in the files already. `before` is without them, so that the turn
            // shows them.
            let mut edits = BTreeMap::new();
            for change in diff::changes(repository, commit.tree, intended)? {
                if repository.entry(now, &change.path)? == change.old {
                    edits.insert(change.path, change.new);
                }
            }
            changes.before = diff::tree_with(repository, changes.before, &edits)?;
            continue;
        }

        let merged = merge::merge_trees(repository, intended, changes.after, commit.tree)?;
        changes.after = merged.ours;
        changes.overlaps.extend(merged.paths);
    }

    changes.overlaps.sort();
    changes.overlaps.dedup();
    Ok(changes)
}

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

    let published = publish_turn(repository, tip, &workspace, Some(files), &[])?;
    let log = format!("teddy: {}", title.to_lowercase());
    Ok(SessionMove {
        // The commits are on the branch already; an interrupt cannot undo them.
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

/// `Land turns 1, 2 on main`
fn landing_title(landed: &Landed) -> String {
    let turns = landed.commits.iter().flat_map(|commit| &commit.turns);
    let numbers: Vec<u64> = turns.map(|turn| turn.number).collect();
    format!("Land {} on {}", turns_named(&numbers), landed.branch)
}

/// `turn 2`, `turns 1-3`, `turns 1, 3`
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
