//! `land`: commits what the session's turns did, without the user's own edits, to a branch of the
//! user's.
//!
//! git commits and moves the branch, with the user's hooks (docs/decisions/0014-landing.md). A
//! landing that is killed is completed by the next command.

pub mod error;
mod lacking;
mod landing_plan;
mod landing_run;
mod message;

pub use self::lacking::TakenBackFile;
pub use self::landing_plan::{LandOptions, MessageSource};
pub use crate::workspace::landing::turns_named as turns;

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde::Serialize;

use self::error::{CommitRefused, LandError};
use self::lacking::find_lacking;
use self::landing_plan::{LandPlan, PlannedCommit};
use self::landing_run::LandingRun;
use crate::git::diff::{self, TreeChange};
use crate::git::land::branch::{Obstacle, Target, target};
use crate::git::land::commit::LandingDir;
use crate::git::object::{CommitId, TreeId};
use crate::git::repository::Repository;
use crate::plan;
use crate::project::Project;
use crate::project::teddy_files::MEMOS;
use crate::session::turn::Turn;
use crate::text::first_names;
use crate::text::path::{lossy, lossy_paths};
use crate::text::sanitize::sanitize_line;
use crate::workflow::open_session::EnteredSession;
use crate::workflow::user::{Event, NobodyToAsk, Notice, User};
use crate::workspace::drift::find_marked;
use crate::workspace::landing::{self, IntendedCommit, LandingNote, MadeCommit, Recording};
use crate::workspace::notice::{FileObstacle, obstacles};
use crate::workspace::snapshot::{self, RecordedFiles};
use crate::workspace::stack::Stacks;

/// In a question or refusal.
const MAX_NAMED: usize = 5;

#[derive(Debug, Clone, Default, Serialize)]
pub struct LandResult {
    pub session: String,
    pub branch: String,
    /// Records the landing. `None` after a dry run or a conflict.
    pub turn: Option<u64>,
    pub commit: Option<CommitId>,
    /// Oldest first.
    pub commits: Vec<Committed>,
    /// A turn conflicts with HEAD, or hooks with the user's own edits.
    pub overlaps: Vec<String>,
    /// The turn that conflicts with HEAD; nothing was changed then.
    pub overlapping: Option<u64>,
    /// Those with changes that are not committed. `None` for a branch that is not checked out.
    #[serde(skip)]
    pub uncommitted: Option<Vec<String>>,
    /// Turns before that one that changed the same files, are not in HEAD, and were not to land.
    pub builds_on: Vec<u64>,
    /// The remote-tracking branch that has one of them.
    #[serde(skip)]
    pub builds_on_remote: Option<String>,
    /// Files that lack what would be committed; nothing was changed then.
    pub lacking: Vec<TakenBackFile>,
    /// New files that only commands of the turns made.
    pub by_commands: Vec<String>,
    /// Other turns were to land with that one.
    #[serde(skip)]
    pub has_others: bool,
    /// Files of the user's that hooks changed.
    pub formatted: Vec<String>,
    /// The staged version conflicts with what landed, and stays.
    pub staged: Vec<String>,
    pub ignored: Vec<String>,
    /// Nested repositories that are not submodules.
    pub repositories: Vec<String>,
    /// Other than conflicts.
    #[serde(skip)]
    pub obstacles: Vec<FileObstacle>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Committed {
    /// `None` after a dry run.
    pub commit: Option<CommitId>,
    pub title: String,
    pub message: String,
    pub turns: Vec<u64>,
    pub files: Vec<String>,
    /// Of the parent and the commit.
    #[serde(skip)]
    pub trees: [TreeId; 2],
}

/// Commits that were made before a failure stay, and the error says so.
pub fn land(
    project: &Project,
    options: &LandOptions,
    user: &mut dyn User,
) -> anyhow::Result<LandResult> {
    let session = project.session()?;
    let EnteredSession {
        tip,
        transaction,
        lock: _lock,
        ..
    } = EnteredSession::enter(project, &session, "land", user)?;
    let target = target(&project.repository, options.branch.as_deref())?;
    // The git of a killed TeDDy could still move the branch.
    if landing::is_ending(&project.checkout(), &target.reference()) {
        return Err(Obstacle::Ending(target.name).into());
    }
    let selected = landing_plan::select_turns(project, &tip, options.range.as_deref(), &target)?;
    let mut outcome = LandResult {
        session: session.to_string(),
        branch: target.name.clone(),
        ignored: lossy_paths(&selected.ignored),
        repositories: lossy_paths(&selected.repositories),
        has_others: selected.landings.len() > 1,
        ..LandResult::default()
    };

    let landings = selected.landings.iter();
    let numbers: BTreeSet<u64> = landings.map(|landing| landing.turn.number()).collect();
    let planned = match landing_plan::plan_landing(project, &tip, selected, &target, options)? {
        LandPlan::Commits(planned) => planned,
        LandPlan::Overlap(overlap) => {
            let lacking = landing_plan::lacking_below(project, &tip, &overlap, &target)?;
            outcome.builds_on = lacking.turns;
            outcome.builds_on.retain(|turn| !numbers.contains(turn));
            outcome.builds_on_remote = lacking.remote;
            outcome.overlaps = lossy_paths(&overlap.paths);
            if target.is_current {
                let uncommitted = uncommitted(project, target.tree, &overlap.paths)?;
                outcome.uncommitted = Some(lossy_paths(&uncommitted));
            }
            outcome.overlapping = Some(overlap.turn);
            return Ok(outcome);
        }
    };
    check_markers(project, &planned, &target)?;
    outcome.by_commands = by_commands(project, &planned)?;
    let lacking = |files: TreeId| match options.anyway {
        true => Ok(Vec::new()),
        false => find_lacking(project, &tip, &planned, &target, files),
    };
    if options.dry_run {
        outcome.commits = describe_planned(project, &planned)?;
        outcome.lacking = lacking(snapshot::snapshot(&project.checkout(), &[])?.tree)?;
        return Ok(outcome);
    }

    // Hooks run in the user's files and can lose edits, so the files are recorded before.
    let files = transaction.record(&project.checkout(), &tip, &[])?;
    let lacking = lacking(files.tree)?;
    if !lacking.is_empty() && !confirm_lacking(&lacking, user)? {
        outcome.lacking = lacking;
        return Ok(outcome);
    }
    report_before_commit(project, &outcome, options, user);

    let landing = landing(project, &tip, &target, &planned, &files);
    let dirs = landing::landings_dir(&project.checkout());
    let dir = LandingDir::make(&project.repository, &dirs, &tip.session.dir_name())?;
    // The commit can take long: an editor is open, a hook runs all tests. Other commands can run.
    drop(transaction);

    let mut landing_run = LandingRun {
        project,
        target: &target,
        options,
        dir,
        landing,
        files,
        created: Vec::new(),
        staged: Vec::new(),
        is_unfinished: false,
    };
    let result = landing_run.run(&planned, user);
    finish(landing_run, result, outcome, user)
}

fn uncommitted(project: &Project, head: TreeId, paths: &[Vec<u8>]) -> anyhow::Result<Vec<Vec<u8>>> {
    let now = snapshot::snapshot(&project.checkout(), &[])?.tree;
    let paths = paths.iter().map(Vec::as_slice).collect();
    let now = project.repository.entries_at(now, &paths)?;
    let head = project.repository.entries_at(head, &paths)?;
    let changed = now
        .iter()
        .filter(|(path, entry)| head.get(*path) != Some(entry));
    Ok(changed.map(|(path, _)| path.to_vec()).collect())
}

fn report_before_commit(
    project: &Project,
    outcome: &LandResult,
    options: &LandOptions,
    user: &mut dyn User,
) {
    if !outcome.by_commands.is_empty() {
        let files = outcome.by_commands.clone();
        user.report(Event::Notice(Notice::MadeByCommands(files)));
    }

    let missing = project.repository.missing_hooks_dir();
    if let Some((dir, file)) = missing.filter(|_| !options.no_verify) {
        user.report(Event::Notice(Notice::NoHooks { dir, file }));
    }
}

/// The commit would have the turn's side of a conflict that the user has not resolved yet.
fn check_markers(
    project: &Project,
    planned: &[PlannedCommit],
    target: &Target,
) -> anyhow::Result<()> {
    let Some(last) = planned.last().filter(|_| target.is_current) else {
        return Ok(());
    };
    let (repository, checkout) = (&project.repository, project.checkout());
    let now = || Ok(snapshot::snapshot(&checkout, &[])?.tree);
    let mut with_markers = find_marked(&checkout, &Stacks::new(repository), &now)?;
    let landing = diff::changes(repository, target.tree, last.tree)?;
    with_markers.retain(|path| landing.iter().any(|change| change.path == *path));
    if with_markers.is_empty() {
        return Ok(());
    }

    let name = |path: &String| format!("`{}`", sanitize_line(path));
    let names = first_names(lossy_paths(&with_markers).iter().map(name), MAX_NAMED);
    Err(LandError::Marked(names).into())
}

fn confirm_lacking(lacking: &[TakenBackFile], user: &mut dyn User) -> anyhow::Result<bool> {
    let name = |file: &TakenBackFile| {
        let TakenBackFile { path, turn, .. } = file;
        format!("{} no longer has turn {turn}", sanitize_line(path))
    };
    let mut names: Vec<String> = lacking.iter().take(MAX_NAMED).map(name).collect();
    if lacking.len() > MAX_NAMED {
        names.push(match lacking.len() - MAX_NAMED {
            1 => "1 more file lacks turns".to_owned(),
            more => format!("{more} more files lack turns"),
        });
    }
    let question = format!("{}; land anyway?", names.join(", "));
    // Without a user, landing what the files lack needs the flag.
    match user.confirm(&question, "--anyway") {
        Err(error) if error.is::<NobodyToAsk>() => Ok(false),
        answer => answer,
    }
}

/// New files of the commits that neither an action nor a memo of the plan made, as it ran.
fn by_commands(project: &Project, planned: &[PlannedCommit]) -> anyhow::Result<Vec<String>> {
    let repository = &project.repository;
    let mut created = BTreeSet::new();
    for commit in planned {
        let committed = new_paths(repository, commit.from, commit.tree)?;
        for landing in &commit.landings {
            let Some(text) = landing.turn.plan_as_run(repository)? else {
                continue;
            };
            let (plan, _) = plan::parse(&text);
            let actions = plan.actions.iter();
            let memos = (!plan.memos.is_empty()).then(|| MEMOS.to_owned());
            let plan_paths: BTreeSet<String> = actions
                .filter_map(|action| action.kind.path().map(ToString::to_string))
                .chain(memos)
                .collect();
            let mut added = new_paths(repository, landing.before, landing.after)?;
            added.retain(|path| committed.contains(path) && !plan_paths.contains(path));
            created.extend(added);
        }
    }
    Ok(created.into_iter().collect())
}

fn new_paths(
    repository: &Repository,
    before: TreeId,
    after: TreeId,
) -> anyhow::Result<BTreeSet<String>> {
    let changes = diff::changes(repository, before, after)?.into_iter();
    let new = changes.filter(|change| change.old.is_none());
    Ok(new.map(|change| lossy(&change.path)).collect())
}

fn landing(
    project: &Project,
    tip: &Turn,
    target: &Target,
    planned: &[PlannedCommit],
    files: &RecordedFiles,
) -> LandingNote {
    let intended = |commit: &PlannedCommit| IntendedCommit {
        turns: commit
            .landings
            .iter()
            .map(landing_plan::landed_turn)
            .collect(),
        tree: commit.tree,
        in_checkout: false,
    };
    LandingNote {
        process: i32::try_from(std::process::id()).unwrap_or_default(),
        session: tip.session.to_string(),
        tip: tip.commit,
        worktree: project.repository.worktree_name(),
        branch: target.reference(),
        base: target.base,
        tree: target.tree,
        is_current: target.is_current,
        files: files.commit,
        commits: planned.iter().map(intended).collect(),
    }
}

fn finish(
    mut landing_run: LandingRun<'_>,
    result: anyhow::Result<()>,
    mut outcome: LandResult,
    user: &mut dyn User,
) -> anyhow::Result<LandResult> {
    let project = landing_run.project;
    let refused = result.as_ref().err();
    let refused = refused.and_then(|error| error.downcast_ref::<CommitRefused>());
    if landing_run.created.is_empty() {
        // The failure of the landing matters more than an incomplete report.
        if let Ok(now) = snapshot::snapshot(&project.checkout(), &[]) {
            landing_run.report_changed(now.tree, refused, user)?;
        }
        landing::discard_branch(&project.repository, &landing_run.landing)?;
        result?;
        return Ok(outcome);
    }

    // Commits exist from here on. An error must name the command that records them.
    let unfinished = not_recorded(&landing_run);
    if landing_run.is_unfinished {
        return result.context(unfinished).map(|()| outcome);
    }
    let transaction = project.enter("land", user)?;
    let recording = transaction
        .record_landing(
            &project.checkout(),
            &landing_run.landing,
            &landing_run.created,
        )
        .context(unfinished)?;
    // Recorded, so recovery does not need the note any more.
    landing_run.dir.keep(false);
    drop(transaction);

    let branch = &landing_run.landing.branch;
    outcome.branch = branch.trim_start_matches("refs/heads/").to_owned();
    outcome.commits = committed(project, &landing_run.created)?;
    outcome.staged = lossy_paths(&landing_run.staged);
    landing_run.report_changed(recording.files, refused, user)?;
    apply_recording(recording, &mut outcome, user);
    // On another branch, hooks did not change the user's files.
    if landing_run.target.is_current {
        outcome.formatted = formatted_files(project, &landing_run.created)?;
        let overlaps = &outcome.overlaps;
        outcome.formatted.retain(|path| !overlaps.contains(path));
    }
    match result {
        Ok(()) => Ok(outcome),
        Err(error) => Err(error.context(partly_landed(&outcome))),
    }
}

fn not_recorded(landing_run: &LandingRun<'_>) -> String {
    let (branch, newest) = (&landing_run.landing.branch, landing_run.created.last());
    let newest = newest.map(|made| made.commit.to_string());
    let newest = newest.unwrap_or_default();
    format!(
        "`{branch}` is at {newest} now, but that is not recorded yet; `teddy doctor --fix` does it"
    )
}

/// Files that differ from what was to be committed.
fn formatted_files(project: &Project, created: &[MadeCommit]) -> anyhow::Result<Vec<String>> {
    let mut formatted = BTreeSet::new();
    for made in created {
        formatted.extend(files(project, made.intended.tree, made.tree)?);
    }
    Ok(formatted.into_iter().collect())
}

fn partly_landed(outcome: &LandResult) -> String {
    let landed = outcome.commits.iter().map(|commit| {
        let id = commit.commit.map(|id| format!("{id:.8}"));
        format!("{} as {}", turns(&commit.turns), id.unwrap_or_default())
    });
    let landed: Vec<String> = landed.collect();
    format!(
        "{} landed on {}; the next commit failed",
        landed.join(", "),
        sanitize_line(&outcome.branch)
    )
}

fn apply_recording(recording: Recording, outcome: &mut LandResult, user: &mut dyn User) {
    let completed = recording.completed;
    outcome.turn = Some(recording.turn);
    outcome.commit = Some(completed.commit);
    outcome.obstacles = obstacles(&completed.published);
    outcome.overlaps = lossy_paths(&recording.overlaps);
    outcome
        .overlaps
        .extend(lossy_paths(&completed.published.conflict_paths()));
    if let Some(error) = recording.draft_lost {
        user.report(Event::Notice(Notice::DraftNotKept(format!("{error:#}"))));
    }
}

fn describe_planned(
    project: &Project,
    planned: &[PlannedCommit],
) -> anyhow::Result<Vec<Committed>> {
    let committed = |commit: &PlannedCommit| {
        let message = &commit.message.text;
        Ok(Committed {
            commit: None,
            title: message.lines().next().unwrap_or_default().to_owned(),
            message: message.clone(),
            turns: commit
                .landings
                .iter()
                .map(|landing| landing.turn.number())
                .collect(),
            files: files(project, commit.from, commit.tree)?,
            trees: [commit.from, commit.tree],
        })
    };
    planned.iter().map(committed).collect()
}

fn committed(project: &Project, created: &[MadeCommit]) -> anyhow::Result<Vec<Committed>> {
    let committed = |commit: &MadeCommit| {
        let turns = commit.intended.turns.iter();
        Ok(Committed {
            commit: Some(commit.commit),
            title: commit.title.clone(),
            message: project.repository.commit(commit.commit)?.message,
            turns: turns.map(|turn| turn.number).collect(),
            files: files(project, commit.from, commit.tree)?,
            trees: [commit.from, commit.tree],
        })
    };
    created.iter().map(committed).collect()
}

fn files(project: &Project, from: TreeId, to: TreeId) -> anyhow::Result<Vec<String>> {
    let changes = diff::changes(&project.repository, from, to)?;
    let path = |change: &TreeChange| lossy(&change.path);
    Ok(changes.iter().map(path).collect())
}
