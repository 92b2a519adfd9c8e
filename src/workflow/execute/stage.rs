//! Runs a plan in the session's worktree and collects the result.
//!
//! Everything that commands left is untrusted: objects are verified, commits are imported like a
//! push, and nothing is read while one of their processes survives.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use anyhow::Context as _;

use super::capture::WorktreeCapture;
use super::prepare::{PreparedWorktree, prepare};
use crate::git::diff;
use crate::git::fingerprint::{self, Fingerprint};
use crate::git::keep::damaged::{self, FsTime};
use crate::git::merge::merge_trees;
use crate::git::object::{CommitId, TreeId, writer};
use crate::git::snapshot;
use crate::git::worktree::moved::{Before, keep_unstored};
use crate::git::worktree::private::ImportedCommits;
use crate::git::worktree::{Extent, SessionWorktree};
use crate::host::file::{FileMode, temporary_parent};
use crate::host::overlay::path_in_overlay;
use crate::host::sandbox::Network;
use crate::host::shell::{self, Script, Shell};
use crate::host::supervisor::Launcher;
use crate::host::{fault, interrupt};
use crate::plan::action::Action;
use crate::plan::action::execute::Execute;
use crate::plan::memo::{self, MemoChange};
use crate::plan::run::{Executed, Outcome, Ran, Stage, Tools, run};
use crate::project::Project;
use crate::project::teddy_files::{self, MEMOS};
use crate::session::meta::NotCaptured;
use crate::text::path_alias::PathAliases;
use crate::text::resource::Artifact;
use crate::workflow::confine::{self, CommandDirs};
use crate::workflow::context::lists;
use crate::workflow::context::pages::{Pages, pages};
use crate::workflow::execute::prepare::RunEnv;
use crate::workflow::user::{Approved, Event, User};
use crate::workspace;
use crate::workspace::file_move::with_paths_of;
use crate::workspace::snapshot::{RecordedFiles, not_captured};

pub(in crate::workflow) struct RunResult {
    pub ran: Ran,
    pub pages: Pages,
    pub worktree: WorktreeResult,
    /// Dropping it waits for the unmount, which takes a while.
    _unmounting: PreparedWorktree,
}

pub(in crate::workflow) struct WorktreeResult {
    pub tree: TreeId,
    /// The commit before the run, or one that the plan's commands made on it.
    pub base: CommitId,
    /// Also work of commands that was not imported.
    pub repository_changes: Vec<String>,
    pub not_captured: Vec<NotCaptured>,
    /// Paths that the snapshot left out, at which the run changed a file that the user has.
    pub changed: BTreeSet<String>,
}

impl WorktreeResult {
    /// The initial state, if the worktree cannot be read.
    fn nothing(env: &RunEnv<'_>) -> WorktreeResult {
        WorktreeResult {
            tree: env.tree,
            base: env.before,
            repository_changes: Vec::new(),
            not_captured: Vec::new(),
            changed: BTreeSet::new(),
        }
    }

    /// Returns the files to report. `users` are left out of the user's files and `earlier` out of
    /// the last turn, so they were reported before. A change to a file that the user has is lost,
    /// which is reported each time.
    pub(in crate::workflow) fn unreported(
        &self,
        users: &[NotCaptured],
        earlier: &[NotCaptured],
    ) -> Vec<NotCaptured> {
        let is_unreported = |file: &&NotCaptured| {
            let is_users = users.iter().any(|known| known.path == file.path);
            self.changed.contains(&file.path) || !(is_users || earlier.contains(file))
        };
        let files = self.not_captured.iter();
        files.filter(is_unreported).cloned().collect()
    }
}

pub(in crate::workflow) fn perform(
    project: &Project,
    env: &RunEnv<'_>,
    approved: &Approved,
    user: &mut dyn User,
) -> anyhow::Result<RunResult> {
    fault::point("before-worktree")?;
    let targets = targets(approved);
    let extent = if runs_commands(approved) {
        Extent::All
    } else {
        Extent::Paths(&targets)
    };

    let mut prepared = prepare(project, env, extent, user)?;
    prepared.pin(project, env, &targets)?;
    fault::point("after-worktree")?;
    let began = match extent {
        Extent::All => Some(RunBaseline::record(project, &prepared)?),
        Extent::Paths(_) => None,
    };

    let (mut ran, pages, outlived) = run_in(project, env, &prepared, approved, user)?;
    if let Err(error) = finish_memos(env, &prepared, approved, &ran) {
        ran.cut_short(&error);
    }

    if began.is_some() {
        prepared.warn_low_space(user);
    }
    // Unmounting takes a while. Start now, because only the layer is read from here on.
    prepared.release();
    let worktree = match outlived {
        Some(error) => Err(error),
        None => {
            let written = written(&ran, approved);
            take(project, env, &prepared, began.as_ref(), written)
        }
    };
    let worktree = worktree.unwrap_or_else(|error| {
        ran.cut_short(&error);
        WorktreeResult::nothing(env)
    });

    if began.is_some() {
        // Commits were imported by `take`, or never will be.
        prepared.worktree.remove_git_dir()?;
    }

    Ok(RunResult {
        ran,
        pages,
        worktree,
        _unmounting: prepared,
    })
}

pub(in crate::workflow) struct AgentWorktree<'a> {
    project: &'a Project,
    env: RunEnv<'a>,
    prepared: PreparedWorktree,
    began: RunBaseline,
}

impl<'a> AgentWorktree<'a> {
    pub(in crate::workflow) fn open(
        project: &'a Project,
        env: RunEnv<'a>,
        user: &mut dyn User,
    ) -> anyhow::Result<AgentWorktree<'a>> {
        let prepared = prepare(project, &env, Extent::All, user)?;
        let began = RunBaseline::record(project, &prepared)?;
        Ok(AgentWorktree {
            project,
            env,
            prepared,
            began,
        })
    }

    pub(in crate::workflow) fn worktree(&self) -> &SessionWorktree {
        &self.prepared.worktree
    }

    /// The process that holds the mount namespace of the agent.
    pub(in crate::workflow) fn overlay_holder(&self) -> Option<u32> {
        self.prepared.overlay_holder()
    }

    /// Collects the result. The agent and all its processes must have ended.
    pub(in crate::workflow) fn close(self) -> anyhow::Result<WorktreeResult> {
        let (env, prepared) = (&self.env, &self.prepared);
        let result = take(self.project, env, prepared, Some(&self.began), Vec::new());
        prepared.worktree.remove_git_dir()?;
        result
    }
}

/// The last value is an error if a process outlived the actions: the worktree must not be read
/// then.
fn run_in(
    project: &Project,
    env: &RunEnv<'_>,
    prepared: &PreparedWorktree,
    approved: &Approved,
    user: &mut dyn User,
) -> anyhow::Result<(Ran, Pages, Option<anyhow::Error>)> {
    let pages = match env.is_replay {
        true => pages(project).offline(env.artifacts),
        false => pages(project),
    };
    let root = prepared.root()?;
    let commands = match runs_commands(approved) {
        true => Some(CommandTools::of(project, env, prepared)?),
        false => None,
    };
    let mut tools = PlanTools {
        project,
        env,
        worktree: &prepared.worktree.path,
        commands,
        pages,
        user,
        surviving: Vec::new(),
    };

    let ran = run(
        &approved.plan,
        &approved.actions,
        &mut Stage {
            root: &root,
            tools: &mut tools,
        },
    );
    // The process still writes. That was not approved and would be recorded as the plan's.
    let outlived = (!tools.surviving.is_empty()).then(|| {
        let names = tools.surviving.join(", ");
        anyhow::anyhow!("what a command started could not be ended: {names}")
    });
    Ok((ran, tools.pages, outlived))
}

fn finish_memos(
    env: &RunEnv<'_>,
    prepared: &PreparedWorktree,
    approved: &Approved,
    ran: &Ran,
) -> anyhow::Result<()> {
    // A memo describes the state after the whole plan.
    if ran.is_whole() {
        fault::point("before-memos")?;
        apply_memos(env, prepared, approved).context("applying the memos")?;
    }
    fault::point("after-run")
}

fn take(
    project: &Project,
    env: &RunEnv<'_>,
    prepared: &PreparedWorktree,
    began: Option<&RunBaseline>,
    mut written: Vec<Vec<u8>>,
) -> anyhow::Result<WorktreeResult> {
    let worktree = &prepared.worktree;
    let Some(began) = began else {
        let snapshot = snapshot::snapshot_paths(&worktree.repository, env.tree, &written)
            .context("recording what the plan did")?;
        writer::transfer_staged(&project.repository, &worktree.repository)?;
        worktree.keep_recorded(env.tree, snapshot.tree)?;
        fault::point("after-run-snapshot")?;
        return Ok(WorktreeResult {
            tree: snapshot.tree,
            not_captured: not_captured(&snapshot),
            ..WorktreeResult::nothing(env)
        });
    };

    // First, so that nothing below reads a forged object.
    let mut repository_changes = began.false_objects(project)?;
    let ImportedCommits {
        commit,
        tracked,
        remarks,
    } = worktree.import(&project.repository, env.before)?;
    written.extend(tracked);
    let mut captured = WorktreeCapture {
        worktree,
        linked: &prepared.linked,
        before: &began.files,
        began: began.objects,
        start: env.tree,
        tree: env.tree,
        not_captured: Vec::new(),
        changed: BTreeSet::new(),
    };
    captured
        .take(project, env.name, &written)
        .context("recording what the plan did")?;
    let tree = captured.tree;
    // The turn is written through another handle, which must know the staged objects.
    writer::transfer_staged(&project.repository, &worktree.repository)?;
    keep_unstored(&project.repository, worktree, env.tree, tree)?;
    worktree.flush_layer_separately(&project.repository)?;
    worktree.keep_recorded(env.tree, tree)?;
    fault::point("after-run-snapshot")?;

    repository_changes.extend(began.changes(project)?);
    repository_changes.extend(remarks);
    Ok(WorktreeResult {
        tree: match worktree.lower_tree() {
            Some(lower) => without_saves(project, env, lower, tree)?,
            None => tree,
        },
        base: commit.unwrap_or(env.before),
        repository_changes,
        not_captured: captured.not_captured,
        changed: captured.changed,
    })
}

/// Takes out of a result what the user or another turn has saved since the start in the same files. An
/// overlay shows it to commands, and a file that one of them writes then contains it. `lower` has the
/// user's files at the start.
fn without_saves(
    project: &Project,
    env: &RunEnv<'_>,
    lower: TreeId,
    result: TreeId,
) -> anyhow::Result<TreeId> {
    let repository = &project.repository;
    let mut changes = diff::changes(repository, env.tree, result)?;
    let names = changes.iter().map(|change| change.path.clone());
    let names: Vec<Vec<u8>> = names.collect();
    let entries = repository.entries_at(lower, &names.iter().map(Vec::as_slice).collect())?;
    changes.retain(|change| {
        let is_edit = change.old.is_some() && change.new.is_some();
        is_edit && entries.get(change.path.as_slice()) == change.old.as_ref()
    });
    let paths: Vec<_> = changes.into_iter().map(|change| change.path).collect();
    if RecordedFiles::of(repository, env.before)?.still_has(repository, &paths) {
        return Ok(result);
    }

    let now = workspace::snapshot::snapshot(&project.checkout(), &[])?.tree;
    let saved = with_paths_of(repository, env.tree, now, paths)?;
    // Lines that both changed stay as the commands left them.
    Ok(merge_trees(repository, saved, result, env.tree)?.ours)
}

struct RunBaseline {
    /// `None` if a sandbox protects the user's repository.
    unconfined: Option<Fingerprint>,
    objects: FsTime,
    files: Before,
}

impl RunBaseline {
    fn record(project: &Project, prepared: &PreparedWorktree) -> anyhow::Result<RunBaseline> {
        let repository = &project.repository;
        let unconfined = match confine::is_confined(project) {
            true => None,
            false => Some(fingerprint::take_fingerprint(repository)?),
        };

        Ok(RunBaseline {
            unconfined,
            objects: damaged::fs_now(repository)?,
            files: Before::of(&prepared.worktree)?,
        })
    }

    /// Quarantines objects whose content does not match their id.
    fn false_objects(&self, project: &Project) -> anyhow::Result<Vec<String>> {
        // A sandboxed command cannot write to the user's object store.
        if self.unconfined.is_none() {
            return Ok(Vec::new());
        }

        let names = damaged::quarantine_false_objects(&project.repository, self.objects)?;
        Ok(names
            .iter()
            .map(|name| format!("object {name} did not match its id and was quarantined"))
            .collect())
    }

    fn changes(&self, project: &Project) -> anyhow::Result<Vec<String>> {
        let Some(before) = &self.unconfined else {
            return Ok(Vec::new());
        };
        let changes = before.differences(&fingerprint::take_fingerprint(&project.repository)?);
        Ok(changes.iter().map(ToString::to_string).collect())
    }
}

pub(super) fn runs_commands(approved: &Approved) -> bool {
    approved
        .running()
        .any(|action| action.kind.command().is_some())
}

fn apply_memos(
    env: &RunEnv<'_>,
    prepared: &PreparedWorktree,
    approved: &Approved,
) -> anyhow::Result<()> {
    // Also without memos: it fails if the overlay ended while a command ran.
    let root = prepared.root()?;
    let changes: Vec<MemoChange> = approved.memos().cloned().collect();
    if changes.is_empty() {
        return Ok(());
    }

    let repository = &prepared.worktree.repository;
    let text = match teddy_files::memos_text(&root).filter(|text| memo::parse_file(text).is_ok()) {
        Some(text) => text,
        // The file is missing, or a command left an invalid list.
        None => teddy_files::memos_in(repository, env.tree)?.unwrap_or_default(),
    };
    let new = memo::apply_to_file(&text, &changes);

    let path = Path::new(MEMOS);
    match root.kind(path)? {
        None => root.create_new(path, new.as_bytes(), FileMode::Plain)?,
        Some(_) => root.replace(path, new.as_bytes())?,
    }
    Ok(())
}

/// The plan itself can read or write these.
fn targets(approved: &Approved) -> Vec<Vec<u8>> {
    let memos = approved
        .memos
        .contains(&true)
        .then(|| MEMOS.as_bytes().to_vec());
    let actions = approved.plan.actions.iter();
    actions
        .filter_map(|action| action.kind.worktree_path())
        .map(|path| path.as_str().as_bytes().to_vec())
        .chain(memos)
        .collect()
}

fn written(ran: &Ran, approved: &Approved) -> Vec<Vec<u8>> {
    let paths = ran.outcomes.iter().flat_map(|outcome| &outcome.written);
    let mut unique: BTreeSet<Vec<u8>> = paths
        .map(|path| path.as_str().as_bytes().to_vec())
        .collect();
    if ran.is_whole() && approved.memos().next().is_some() {
        unique.insert(MEMOS.as_bytes().to_vec());
    }

    unique.into_iter().collect()
}

const MAX_CAPTURED: usize = 4 << 20;

struct PlanTools<'a> {
    project: &'a Project,
    env: &'a RunEnv<'a>,
    worktree: &'a Path,
    /// `None` if the plan has no command.
    commands: Option<CommandTools>,
    pages: Pages,
    user: &'a mut dyn User,
    /// Once one process could not be ended, no further action runs.
    surviving: Vec<String>,
}

struct CommandTools {
    launcher: Launcher,
    /// Names for the directories of the run in the output of commands.
    aliases: PathAliases,
    /// The plan's own variables override these.
    variables: Vec<(String, String)>,
}

impl CommandTools {
    fn of(
        project: &Project,
        env: &RunEnv<'_>,
        prepared: &PreparedWorktree,
    ) -> anyhow::Result<CommandTools> {
        let worktree = &prepared.worktree;
        let mut policy = confine::policy(project, worktree)?;
        if let Some(policy) = policy.as_mut().filter(|_| env.is_replay) {
            policy.network = Network::Off;
        }
        let launcher = Launcher::new(policy).context("starting the commands of the plan")?;
        Ok(CommandTools {
            variables: confine::variables(project, worktree, launcher.policy.as_ref()),
            aliases: confine::aliases(project, &worktree.path),
            launcher: launcher
                .holding(project.checkout().commands_lock(env.name))
                .with_overlay(prepared.overlay_holder()),
        })
    }
}

impl Tools for PlanTools<'_> {
    fn execute(&mut self, execute: &Execute) -> io::Result<Executed> {
        let cwd = match &execute.cwd {
            Some(cwd) => self.worktree.join(cwd.as_str()),
            None => self.worktree.to_owned(),
        };
        let commands = self.commands.as_ref();
        let commands =
            commands.ok_or_else(|| io::Error::other("nothing was prepared for commands"))?;
        let (mut launcher, settings) = (commands.launcher.clone(), &self.project.settings.execute);
        let overlay_holder = launcher.overlay_holder;
        if let Some(policy) = &mut launcher.policy
            && execute.network
            && !self.env.is_replay
        {
            policy.network = Network::On;
        }
        let script = Script {
            env: [commands.variables.as_slice(), &execute.env].concat(),
            shell: Shell::new(settings.shell.as_deref(), &execute.language),
            timeout: Some(execute.timeout.unwrap_or(settings.timeout())),
            capture: MAX_CAPTURED,
            keep_env: settings.keep_env.clone(),
            aliases: commands.aliases.clone(),
            launcher: Some(launcher),
            ..Script::new(execute.command.as_str(), cwd)
        };

        let finished = shell::run(&script, &mut |bytes| {
            self.user.report(Event::Output { bytes })
        })?;
        self.surviving.extend(finished.survivors.iter().cloned());
        let policy = script.launcher.as_ref();
        let policy = policy.and_then(|launcher| launcher.policy.as_ref());
        let in_view = |path: &Path| match overlay_holder {
            Some(holder) => path_in_overlay(holder, path),
            None => path.to_owned(),
        };
        let dirs = CommandDirs {
            worktree: &in_view(self.worktree),
            cwd: &in_view(&script.cwd),
            temporary: &temporary_parent(),
            workspace: self.project.repository.workdir(),
        };
        let hint = confine::explain_failure(policy, &dirs, &finished);

        Ok(Executed { finished, hint })
    }

    fn fetch(&mut self, url: &str) -> Result<(), String> {
        self.pages.get(url).map(|_| ())
    }

    fn search(&mut self, query: &str) -> Result<String, String> {
        self.pages.search(query)
    }

    fn has_artifact(&self, artifact: &Artifact) -> bool {
        lists::has_artifact(self.project, self.env.tip, artifact)
    }

    fn taken_bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.env.artifacts.0.get(name).cloned()
    }

    // No action runs next to a process that could not be ended.
    fn interrupted(&self) -> bool {
        interrupt::requested() || !self.surviving.is_empty()
    }

    fn started(&mut self, index: usize, action: &Action) {
        let label = format!("{} {}", action.kind.name(), action.kind.target());
        self.user.report(Event::Started {
            index,
            label: &label,
        });
    }

    fn finished(&mut self, index: usize, outcome: &Outcome) {
        self.user.report(Event::Finished { index, outcome });
    }
}
