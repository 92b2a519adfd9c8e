//! `record`: records changes that an agent or the user made without TeDDy as a turn.
//!
//! Runs nothing and changes no file. The turn is the difference between the last known state of the
//! files, or their state when the work began, and now. [`Attribution`] decides which changes belong
//! to the work, and which are the user's or another agent's.

pub mod transcript;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use self::transcript::Transcript;
use crate::git::merge::merge_trees;
use crate::git::object::{CommitId, TreeId};
use crate::git::repository::Repository;
use crate::git::{diff, history, refs};
use crate::host::file::Root;
use crate::project::{NoSession, Project};
use crate::session::artifact;
use crate::session::meta::{Recorded, Status};
use crate::session::name::SessionName;
use crate::session::publication::{Publication, Stack};
use crate::session::turn::{Turn, in_next};
use crate::text::counted;
use crate::text::damage::FileDamage;
use crate::text::hint::error_with_hint;
use crate::text::path::lossy;
use crate::workflow::context::message::without_keys;
use crate::workflow::context::requests;
use crate::workflow::damage::find_damage;
use crate::workflow::gc::forget;
use crate::workflow::lifecycle;
use crate::workflow::open_session::EnteredSession;
use crate::workflow::restore::files_between;
use crate::workflow::user::User;
use crate::workspace::complete::SessionMove;
use crate::workspace::draft_transfer;
use crate::workspace::file_move::{FileMove, tree_left_by, with_paths_of};
use crate::workspace::files_turn::FilesTurn;
use crate::workspace::snapshot::{self, RecordedFiles};
use crate::workspace::stack::Stacks;
use crate::workspace::stack::record::publish_turn;
use crate::workspace::transaction::Transaction;

const UNNAMED: &str = "recorded";

#[derive(Debug, Clone, Default)]
pub struct RecordOptions {
    /// Can be empty.
    pub message: String,
    pub work: Recorded,
    pub transcript: Option<Transcript>,
    /// Even if no file changed.
    pub allow_empty: bool,
    /// The changes that belong to the work.
    pub attribution: Attribution,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct RecordResult {
    pub session: String,
    pub started: bool,
    pub turn: u64,
    pub commit: Option<CommitId>,
    pub written: Vec<String>,
    pub deleted: Vec<String>,
    /// What the changes did to files besides changing their text.
    pub damage: Vec<FileDamage>,
    /// Changed files that no agent named, if several worked at the same time.
    #[serde(skip)]
    pub uncertain: Vec<String>,
}

/// State of the files when the work began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordStart {
    pub files: CommitId,
    /// At that time.
    pub published: Option<CommitId>,
}

impl RecordStart {
    fn of(project: &Project, files: CommitId) -> anyhow::Result<RecordStart> {
        let last = Stacks::new(&project.repository).last()?;
        Ok(RecordStart {
            files,
            published: last.map(|(id, _)| id),
        })
    }

    /// The files as they are in HEAD, for a checkout that was created during the work.
    pub fn at_head(project: &Project) -> anyhow::Result<RecordStart> {
        let head = refs::head(&project.repository)?.context("the branch has no commit")?;
        RecordStart::of(project, head)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("nothing changed since turn {turn} of session `{session}`")]
pub struct NothingToRecord {
    pub session: SessionName,
    pub turn: u64,
}

/// Since the newest turn. Without a current session, starts one and records the changes since HEAD.
/// Fails with [`NothingToRecord`].
pub fn record(
    project: &mut Project,
    options: &RecordOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordResult> {
    let started = match project.session() {
        Err(error) if error.is::<NoSession>() => {
            if !options.allow_empty {
                // Before a session is started for nothing.
                ensure_changes(project)?;
            }
            start(project, &options.message, user)?;
            true
        }
        session => {
            session?;
            false
        }
    };

    let recorded = write_down(project, None, options, user)?;
    Ok(RecordResult {
        started,
        ..recorded
    })
}

/// In the current session.
pub fn record_since(
    project: &Project,
    baseline: RecordStart,
    options: &RecordOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordResult> {
    write_down(project, Some(baseline), options, user)
}

/// Earlier changes are not part of the work.
pub fn begin(project: &Project, user: &mut dyn User) -> anyhow::Result<RecordStart> {
    let session = project.session()?;
    let transaction = project.enter("record", user)?;
    let tip = project.store().tip(&session)?;
    let recorded = transaction.record(&project.checkout(), &tip, &[])?;
    RecordStart::of(project, recorded.commit)
}

/// Like [`begin`], for a checkout in which no session might exist.
pub fn begin_without_session(
    project: &Project,
    user: &mut dyn User,
) -> anyhow::Result<RecordStart> {
    let _transaction = project.enter("record", user)?;
    RecordStart::of(project, snapshot::record_alone(&project.checkout())?)
}

/// Starts a session named after the message, and makes it the current one.
pub fn start(project: &mut Project, title: &str, user: &mut dyn User) -> anyhow::Result<()> {
    let title = if title.trim().is_empty() {
        UNNAMED
    } else {
        title
    };
    let (name, _) = lifecycle::create_titled(project, title, "record", user)?;
    project.use_session(&name)
}

/// Deletes the session that [`start`] created, if it is still unused.
pub fn take_back_start(project: &Project, user: &mut dyn User) -> anyhow::Result<()> {
    let session = project.session()?;
    let entered = EnteredSession::enter(project, &session, "record", user)?;
    if entered.tip.number() == 0 && project.store().draft(&entered.tip)?.commit.is_none() {
        forget(project, &session)?;
    }
    Ok(())
}

fn ensure_changes(project: &Project) -> anyhow::Result<()> {
    let now = snapshot::snapshot(&project.checkout(), &[])?.tree;
    if state_without_session(project, now)? == now {
        return Err(error_with_hint(
            "nothing changed since HEAD",
            "`--allow-empty` records a turn all the same",
        ));
    }
    Ok(())
}

fn write_down(
    project: &Project,
    baseline: Option<RecordStart>,
    options: &RecordOptions,
    user: &mut dyn User,
) -> anyhow::Result<RecordResult> {
    // The message becomes part of a commit that can be pushed.
    let options = &RecordOptions {
        message: without_keys(options.message.clone(), user),
        ..options.clone()
    };
    let session = project.session()?;
    let entered = EnteredSession::enter(project, &session, "record", user)?;
    let EnteredSession {
        tip, transaction, ..
    } = &entered;
    let before = match baseline {
        Some(baseline) => state_since(project, tip, baseline)?,
        None => read_last_state(project, tip)?,
    };

    let waiting = draft_transfer::waiting(&project.checkout(), tip)?;
    let result = complete(transaction, project, tip, before, options)?;
    entered.carry(waiting, user);
    Ok(result)
}

fn complete(
    transaction: &Transaction,
    project: &Project,
    tip: &Turn,
    before: CommitId,
    options: &RecordOptions,
) -> anyhow::Result<RecordResult> {
    let (repository, checkout) = (&project.repository, project.checkout());
    let files = transaction.record(&checkout, tip, &[])?;
    let old = repository.commit(before)?.tree;
    let work = RecordedWork {
        before,
        result: options.attribution.result_of(repository, old, files.tree)?,
        files,
    };
    let mut result = RecordResult {
        session: tip.session.to_string(),
        turn: tip.number() + 1,
        ..RecordResult::default()
    };
    for change in diff::changes(repository, old, work.result)? {
        if options.attribution.is_uncertain(&change.path) {
            result.uncertain.push(lossy(&change.path));
        }
        match change.new {
            _ if change.is_new_repository() => {}
            Some(_) => result.written.push(lossy(&change.path)),
            None => result.deleted.push(lossy(&change.path)),
        }
    }

    result.damage = find_damage(repository, old, work.result, None)?;

    if old == work.result && !options.allow_empty {
        return Err(NothingToRecord {
            session: tip.session.clone(),
            turn: tip.number(),
        }
        .into());
    }

    let mut options = options.clone();
    options
        .work
        .notes
        .extend(uncertain_note(&result.uncertain, "this turn has"));
    let (step, files) = write_recorded_turn(project, tip, &work, &options)?;
    let completed = transaction.complete(&checkout, &tip.session, &step, Some(&files))?;
    result.commit = Some(completed.commit);
    Ok(result)
}

const MAX_NAMED: usize = 10;

/// Note about files that several agents could have changed. `None` if there are none.
pub fn uncertain_note(paths: &[String], owner: &str) -> Option<String> {
    let names = paths.iter().take(MAX_NAMED).map(|path| format!("`{path}`"));
    let mut names = names.collect::<Vec<_>>().join(", ");
    if paths.len() > MAX_NAMED {
        names.push_str(&format!(" and {} more", paths.len() - MAX_NAMED));
    }
    let them = if paths.len() == 1 { "it" } else { "them" };
    let note = format!("{names} changed meanwhile, and no agent named {them}: {owner} {them}");
    (!paths.is_empty()).then_some(note)
}

/// What was done to the user's files.
struct RecordedWork {
    /// The files without the work.
    before: CommitId,
    /// Those files with the work, and without the user's edits since.
    result: TreeId,
    files: RecordedFiles,
}

fn write_recorded_turn(
    project: &Project,
    tip: &Turn,
    work: &RecordedWork,
    options: &RecordOptions,
) -> anyhow::Result<(SessionMove, FileMove)> {
    let repository = &project.repository;
    let (before, recorded) = (work.before, &work.files);
    let did = FileMove {
        from: repository.commit(before)?.tree,
        to: work.result,
    };
    let lines = did.lines(repository)?;
    let title = turn_title(&options.message, &options.work, &lines);
    let mut turn = FilesTurn::begin(repository, tip, Status::Recorded, recorded)?;
    let workspace = turn.set_files(&title, before, work.result)?;
    let published = publish_turn(repository, tip, &workspace, Some(recorded.tree), &[])?;
    turn.meta.recorded = Some(options.work.clone());
    add_artifacts(project, tip, &mut turn, options)?;

    let log = format!("teddy: record turn {}", turn.meta.number);
    let step = SessionMove {
        // The work is already done, so an interrupt must not lose it.
        anyway: true,
        ..turn.finish(&title, &lines, published, log)?
    };
    // The files stay as they are; only the publication is recorded.
    let stay = FileMove {
        from: recorded.tree,
        to: recorded.tree,
    };
    Ok((step, stay))
}

fn add_artifacts(
    project: &Project,
    tip: &Turn,
    turn: &mut FilesTurn<'_>,
    options: &RecordOptions,
) -> anyhow::Result<()> {
    turn.continue_from(tip)?;
    turn.keep_context_edits();
    if !options.message.trim().is_empty() {
        let message = options.message.as_str();
        turn.draft.artifacts.insert(artifact::USER_PROMPT, message);
        turn.draft.meta = turn.meta.clone();
        let requests = requests::requests_with(project, tip, &turn.draft)?;
        turn.artifacts.insert(artifact::USER_PROMPT, message);
        turn.artifacts
            .insert(&in_next(artifact::REQUESTS), requests.write());
    }

    if let Some(transcript) = &options.transcript {
        turn.artifacts
            .insert(transcript.name, transcript.text.as_str());
    }
    Ok(())
}

/// First line of the message, else who did it, else what changed.
fn turn_title(message: &str, work: &Recorded, lines: &[String]) -> String {
    let first = message.trim().lines().next().unwrap_or_default();
    if !first.trim().is_empty() {
        return first.to_owned();
    }

    let target = match lines {
        [] => "nothing".to_owned(),
        [one] => one.split_once(' ').map_or("", |(_, path)| path).to_owned(),
        _ => counted(lines.len(), "file"),
    };
    match &work.by {
        Some(by) => format!("Record {by}: {target}"),
        None => format!("Record {target}"),
    }
}

// The base of a recorded turn: the files as the newest turn left them, or as they were when the
// work began, plus what other turns have applied since.

/// A commit with the files as the newest turn of the session left them. If another session changed
/// them since, or another branch is checked out: HEAD plus what was applied on top of it.
fn read_last_state(project: &Project, tip: &Turn) -> anyhow::Result<CommitId> {
    let repository = &project.repository;
    let last = Stacks::new(repository).last()?;
    // What other sessions applied since is not part of this work.
    let is_newest = last.is_none_or(|(id, _)| tip.publication == Some(id));
    let workspace = tip.meta.workspace.as_ref().filter(|_| is_newest);
    let branch = refs::branch_or_head(repository)?;
    // After a checkout of another branch, the difference is git's and not work.
    let workspace = workspace.filter(|state| {
        state.worktree == repository.worktree_name()
            && state.branch.as_ref().is_none_or(|old| *old == branch)
    });

    let tree = match workspace {
        Some(workspace) => tree_left_by(repository, workspace)?,
        None => {
            let now = snapshot::snapshot(&project.checkout(), &[])?.tree;
            state_without_session(project, now)?
        }
    };
    snapshot::commit_of(&project.checkout(), tree, tip)
}

/// HEAD, with the applied turns that it lacks. `now` are the user's files.
fn state_without_session(project: &Project, now: TreeId) -> anyhow::Result<TreeId> {
    let repository = &project.repository;
    let head = refs::head_tree(repository)?;
    let Some((id, publication)) = Stacks::new(repository).last()? else {
        return Ok(head);
    };
    let base = match refs::head(repository)? {
        Some(commit) => match history::merge_base(repository, commit, id)? {
            Some(base) => repository.commit(base)?.tree,
            None => return Ok(head),
        },
        None => head,
    };
    let applied = files_between(project, base, &Stack::default(), &publication.stack(id))?;
    // The commits in HEAD are newer than the publication.
    let state = merge_trees(repository, base, head, applied)?.ours;
    // In a file without an uncommitted change, a turn that overlaps with HEAD is one that was
    // committed and edited.
    let changed = diff::changes(repository, head, now)?;
    let changed: BTreeSet<Vec<u8>> = changed.into_iter().map(|change| change.path).collect();
    let applied = diff::changes(repository, head, state)?.into_iter();
    let committed = applied.map(|change| change.path);
    let committed = committed.filter(|path| !changed.contains(path));
    with_paths_of(repository, state, head, committed)
}

/// Files from the start of the work, with what turns and restores did since, which is not part of
/// the work.
fn state_since(project: &Project, tip: &Turn, baseline: RecordStart) -> anyhow::Result<CommitId> {
    let repository = &project.repository;
    let stacks = Stacks::new(repository);
    if stacks.published()? == baseline.published {
        return Ok(baseline.files);
    }

    let files = repository.commit(baseline.files)?.tree;
    let begin = baseline
        .published
        .map(|id| Publication::read(repository, id));
    let begin = begin.transpose()?.flatten().zip(baseline.published);
    let begin = begin.map_or_else(Stack::default, |(publication, id)| publication.stack(id));
    let end = stacks.current(tip, &|| Ok(files))?;
    let now = files_between(project, files, &begin, &end)?;
    snapshot::commit_of(&project.checkout(), now, tip)
}

/// Delay between the end of the work and its last write, in nanoseconds: a command that was
/// interrupted takes a moment to end.
const SLACK: i64 = 1_000_000_000;

/// Which changes belong to the work. By default, all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribution {
    /// Files that another agent changed at the same time.
    pub others: BTreeSet<Vec<u8>>,
    /// If set, no other files belong to the work.
    pub only: Option<BTreeSet<Vec<u8>>>,
    /// Files that agents named, if several worked at the same time. All may have changed the others.
    pub named: Option<BTreeSet<Vec<u8>>>,
    /// When the work ended, in nanoseconds since 1970. Later changes are the user's. `None` if it
    /// ends with the recording.
    pub ended: Option<i64>,
}

impl Attribution {
    /// Returns the tree that the work made of `old` if the user's files are now `now`.
    fn result_of(
        &self,
        repository: &Repository,
        old: TreeId,
        now: TreeId,
    ) -> anyhow::Result<TreeId> {
        if *self == Attribution::default() {
            return Ok(now);
        }

        let root = Root::open(repository.workdir())?;
        let changed = diff::changes(repository, old, now)?.into_iter();
        let excluded = changed.map(|change| change.path);
        let excluded = excluded.filter(|path| !self.includes(path, &root));
        with_paths_of(repository, now, old, excluded)
    }

    /// No agent named the file, and several could have changed it.
    fn is_uncertain(&self, path: &[u8]) -> bool {
        self.named
            .as_ref()
            .is_some_and(|named| !named.contains(path))
    }

    fn includes(&self, path: &[u8], root: &Root) -> bool {
        let is_listed = self.only.as_ref().is_none_or(|only| only.contains(path));
        let is_in_time = || {
            let ended = self.ended.map(|ended| ended.saturating_add(SLACK));
            ended.is_none_or(|ended| modified(root, path).is_some_and(|time| time <= ended))
        };
        is_listed && !self.others.contains(path) && is_in_time()
    }
}

/// When a file was written or deleted. A deletion is as old as the newest change of its directory.
fn modified(root: &Root, path: &[u8]) -> Option<i64> {
    let path = Path::new(OsStr::from_bytes(path));
    let existing = path
        .ancestors()
        .find_map(|path| root.entry(path).ok().flatten());
    existing.map(|entry| entry.modified)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(message: &str, by: Option<&str>, lines: &[&str], expected: &str) {
        let work = Recorded {
            by: by.map(str::to_owned),
            ..Recorded::default()
        };
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(turn_title(message, &work, &lines), expected);
    }

    #[test]
    fn a_title_says_what_was_wanted_or_who_did_what() {
        check("\n add a form\nplease", None, &[], "add a form");
        check(" ", None, &["write a b.txt"], "Record a b.txt");
        check("", None, &["write a", "delete b"], "Record 2 files");
        check("", Some("claude"), &["delete b"], "Record claude: b");
        check("", Some("claude"), &[], "Record claude: nothing");
    }

    #[test]
    fn a_change_belongs_to_the_work_by_its_file_and_its_time() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("d")).unwrap();
        std::fs::write(dir.path().join("a"), "a").unwrap();
        let root = Root::open(dir.path()).unwrap();
        let now = modified(&root, b"a").unwrap();
        let check = |attribution: &Attribution, path: &str, expected: bool| {
            assert_eq!(attribution.includes(path.as_bytes(), &root), expected);
        };

        let names = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let others = Attribution {
            others: names(&["a"]),
            ..Attribution::default()
        };
        check(&others, "a", false);
        check(&others, "b", true);
        let only = Attribution {
            only: Some(names(&["a"])),
            ..Attribution::default()
        };
        check(&only, "a", true);
        check(&only, "b", false);
        for (ended, expected) in [(now, true), (now - 2 * SLACK, false)] {
            let ended = Attribution {
                ended: Some(ended),
                ..Attribution::default()
            };
            check(&ended, "a", expected);
            check(&ended, "d/deleted", expected);
            check(&ended, "deleted", expected);
        }
    }
}
