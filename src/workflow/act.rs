//! Acting models: a model edits files in the session's worktree, and TeDDy writes the plan from its
//! changes.
//!
//! Other code sees a model that answers with a plan. What the plan cannot express (transcript, raw
//! bytes, conversation id) is collected in an [`ActedRecord`] for the turn.

mod denial;
pub(in crate::workflow) mod difference;
pub mod permission;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;

use crate::git::diff;
use crate::git::object::TreeId;
use crate::git::worktree::SessionWorktree;
use crate::host::interrupt;
use crate::host::sandbox::Policy;
use crate::host::supervisor::Launcher;
use crate::model::acting::agent::ActingModel;
use crate::model::acting::transcript::{printed_failures, render_transcript};
use crate::model::acting::{
    AgentFailure, AgentHost, AgentProgress, AgentResult, AgentTask, ConversationTotals,
    EarlierConversation, PermissionAnswer, PermissionDecision, PermissionGiver, PermissionQuestion,
};
use crate::model::prompt::ACTING;
use crate::model::{Finish, ModelAnswer, ModelError, ModelRequest};
use crate::project::Project;
use crate::session::artifact::{self, Artifacts};
use crate::session::draft::Draft;
use crate::session::meta::{Acted, Status};
use crate::session::name::SessionName;
use crate::session::turn::Turn;
use crate::text::fence::fenced;
use crate::text::path::lossy;
use crate::text::path_alias::PathAliases;
use crate::text::sanitize::sanitize_line;
use crate::text::{beginning, digest};
use crate::workflow::confine;
use crate::workflow::execute::prepare::RunEnv;
use crate::workflow::execute::stage::{AgentWorktree, WorktreeResult};
use crate::workflow::model::budget::{ActingEnv, BudgetSlice};
use crate::workflow::user::{Event, Notice, User};
use crate::workspace::file_move::trees_of;
use crate::workspace::snapshot::RecordedFiles;

/// Several parts of a request talk to the user, one at a time.
pub type SharedUser<'u> = RefCell<&'u mut dyn User>;

pub struct WorktreeEnv<'a, 'u> {
    pub project: &'a Project,
    pub tip: &'a Turn,
    /// The model gets a copy of these.
    pub recorded: &'a RecordedFiles,
    pub user: &'a SharedUser<'u>,
    /// The last call for this turn, whose work was discarded.
    pub discarded: Option<Acted>,
    pub record: RefCell<ActedRecord>,
}

#[derive(Debug, Default)]
pub struct ActedRecord {
    /// JSON lines.
    transcript: Vec<u8>,
    /// Sent instead of the input if a conversation was resumed.
    sent_prompt: Option<String>,
    /// By artifact name.
    contents: Vec<(String, Vec<u8>)>,
    is_made: bool,
    /// In dollars, for work that produced no plan.
    lost: f64,
    pub acted: Option<Acted>,
    /// An error of our own with its hint; the model error carries only the text.
    pub trouble: Option<anyhow::Error>,
}

impl ActedRecord {
    pub fn keep_in(&mut self, draft: &mut Draft) {
        let artifacts = &mut draft.artifacts;
        if !self.transcript.is_empty() {
            let transcript = std::mem::take(&mut self.transcript);
            artifacts.insert(artifact::TRANSCRIPT_TEXT, render_transcript(&transcript));
            artifacts.insert(artifact::TRANSCRIPT, transcript);
        }

        if let Some(prompt) = self.sent_prompt.take() {
            artifacts.insert(artifact::RESUMED_PROMPT, prompt);
        }
        for (name, bytes) in self.contents.drain(..) {
            artifacts.insert(&name, bytes);
        }

        if self.lost > 0.0 {
            draft.meta.spent = Some(draft.meta.spent.unwrap_or_default() + self.lost);
        }
        draft.meta.made = self.is_made;
        draft.meta.acted = self.acted.take();
    }
}

impl ActingEnv for WorktreeEnv<'_, '_> {
    /// On failure, the transcript is kept and the changes are discarded.
    fn act(
        &self,
        model: &dyn ActingModel,
        request: &ModelRequest,
        budget: BudgetSlice<'_>,
    ) -> Result<ModelAnswer, ModelError> {
        let name = self.tip.session.dir_name();
        let artifacts = Artifacts::default();
        let env = RunEnv {
            name: &name,
            tip: self.tip,
            before: self.recorded.commit,
            tree: self.recorded.tree,
            users_own: !self.recorded.is_earlier,
            is_replay: false,
            artifacts: &artifacts,
        };

        report_agent_settings(self).map_err(|error| self.trouble(error))?;
        let opened = AgentWorktree::open(self.project, env, &mut **self.user.borrow_mut());
        let opened = opened.map_err(|error| self.trouble(error))?;
        let worked = self.work(model, request, budget, &opened);
        // Even if the model failed, so that the worktree's git directory is removed.
        let result = opened.close();
        let worked = worked?;
        let cost = budget.used(worked.usage, worked.cost);
        let result = result.map_err(|error| self.trouble(error));
        let proposed =
            result.and_then(|result| self.propose(model, &request.message, worked, &result));
        if proposed.is_err() {
            self.record.borrow_mut().lost = cost;
        }
        proposed
    }
}

impl WorktreeEnv<'_, '_> {
    fn work(
        &self,
        model: &dyn ActingModel,
        request: &ModelRequest,
        budget: BudgetSlice<'_>,
        opened: &AgentWorktree<'_>,
    ) -> Result<AgentResult, ModelError> {
        let worktree = opened.worktree();
        let launcher = self
            .launcher(model, opened)
            .map_err(|error| self.trouble(error))?;
        let is_confined = launcher.policy.is_some();
        let variables = self.variables(model, worktree, launcher.policy.as_ref());
        let conversation = earlier_conversation(self, &model.agent().name, &worktree.path)
            .map_err(|error| self.trouble(error))?;
        let further = conversation.as_ref().map(|_| further(self, request));
        let further = further.transpose().map_err(|error| self.trouble(error))?;
        let text = first(request);

        let task = AgentTask {
            text: &text,
            message: &request.message,
            dir: &worktree.path,
            launcher,
            variables,
            conversation,
            further: further.as_deref(),
            limits: model.agent().limits,
            mcp_servers: &self.project.mcp_servers,
            is_confined,
        };
        let mut host = WatchingUser {
            user: self.user,
            name: &model.agent().name,
            budget,
            exceeded: false,
        };
        let worked = model.act(&task, &mut host);
        let exceeded = host.exceeded;

        let aliases = confine::aliases(self.project, &worktree.path);
        let policy = task.launcher.policy.as_ref();
        let denied_paths = |printed: &str| {
            let hints = policy.map(|policy| denial::explain_paths(policy, printed));
            hints.unwrap_or_default()
        };
        match worked {
            Ok(mut result) => {
                // A tool of the agent can have failed although the agent did not.
                let printed = printed_failures(&result.transcript);
                self.report_denied(denied_paths(&printed));
                replace_paths(&aliases, &mut result);
                self.keep(&result, &worktree.path);
                self.record.borrow_mut().sent_prompt = further.filter(|_| result.resumed);
                Ok(result)
            }
            Err(mut failure) => {
                let printed = printed_failures(&failure.work.transcript);
                let variables = denial::explain_variables(&model.agent().needs, &printed);
                self.report_denied(denied_paths(&printed).into_iter().chain(variables));
                replace_paths(&aliases, &mut failure.work);
                // Otherwise the earlier conversation is as it was.
                if failure.work.resumed {
                    self.record.borrow_mut().acted =
                        Some(self.acted(&failure.work, &worktree.path));
                }
                Err(self.keep_failure(*failure, exceeded, budget))
            }
        }
    }

    fn variables(
        &self,
        model: &dyn ActingModel,
        worktree: &SessionWorktree,
        policy: Option<&Policy>,
    ) -> Vec<(String, String)> {
        let mut variables = confine::variables(self.project, worktree, policy);
        // A `sitecustomize.py` of the project would run in the agent itself, with its keys. Without a
        // sandbox, the agent asks before it runs anything, but starts servers in Python without asking.
        if policy.is_none() || model.agent().needs.can_be_python {
            let count = variables.len();
            variables.retain(|(name, _)| name != confine::PYTHON_PATH);
            if variables.len() < count {
                self.report_denied([NO_MODULES.to_owned()]);
            }
        }
        variables
    }

    fn report_denied(&self, hints: impl IntoIterator<Item = String>) {
        for hint in hints {
            let notice = Notice::AgentDenied(hint);
            self.user.borrow_mut().report(Event::Notice(notice));
        }
    }

    /// Like for commands, with network access and the agent's own state directories.
    fn launcher(
        &self,
        model: &dyn ActingModel,
        opened: &AgentWorktree<'_>,
    ) -> anyhow::Result<Launcher> {
        let (worktree, state) = (opened.worktree(), &model.agent().needs.state);
        let policy = confine::policy_for_agent(self.project, worktree, state)?;
        let launcher = Launcher::new(policy)
            .context("starting the agent")?
            .with_overlay(opened.overlay_holder());
        // The program holds the lock as long as it runs, so that recovery does not touch the
        // worktree while it outlives TeDDy.
        Ok(launcher.holding(
            self.project
                .checkout()
                .commands_lock(&self.tip.session.dir_name()),
        ))
    }

    fn keep(&self, result: &AgentResult, worktree: &Path) {
        let mut record = self.record.borrow_mut();
        record.transcript.clone_from(&result.transcript);
        record.contents.clone_from(&result.texts);
        record.acted = Some(self.acted(result, worktree));
    }

    fn acted(&self, result: &AgentResult, worktree: &Path) -> Acted {
        let agent = result.agent.clone().unwrap_or_default();
        let non_empty = |text: String| (!text.is_empty()).then_some(text);
        Acted {
            program: non_empty(agent.name),
            version: non_empty(agent.version),
            worktree: result
                .conversation
                .is_some()
                .then(|| place_of(&self.tip.session, worktree)),
            snapshot: Some(self.recorded.commit),
            conversation: result.conversation.clone(),
            resumed: result.resumed,
            stop: result.stop.clone(),
            total_cost: result.totals.cost,
            counts_anew: result.totals.counts_anew,
            total_tokens: result.totals.usage,
        }
    }

    fn keep_failure(
        &self,
        failure: AgentFailure,
        exceeded: bool,
        budget: BudgetSlice<'_>,
    ) -> ModelError {
        let mut record = self.record.borrow_mut();
        record.lost = budget.used(failure.work.usage, failure.work.cost);
        record.transcript = failure.work.transcript;
        record.contents = failure.work.texts;
        if exceeded {
            return ModelError::BudgetExceeded {
                budget: budget.remaining,
            };
        }
        failure.error
    }

    fn propose(
        &self,
        model: &dyn ActingModel,
        message: &str,
        worked: AgentResult,
        result: &WorktreeResult,
    ) -> Result<ModelAnswer, ModelError> {
        let leaves = &model.agent().needs.leaves;
        let planned = difference::plan_from(self, &worked.message, message, result, leaves);
        let planned = planned.map_err(|error| self.trouble(error))?;
        let mut record = self.record.borrow_mut();
        record.contents.extend(planned.taken_bytes);
        record.is_made = true;

        let agent = worked.agent.unwrap_or_default();
        let answered = format!("{} {}", agent.name, agent.version);
        Ok(ModelAnswer {
            text: planned.text,
            model: answered.trim().to_owned(),
            usage: worked.usage,
            cost: worked.cost,
            finish: Finish::Stop,
        })
    }

    fn trouble(&self, error: anyhow::Error) -> ModelError {
        let detail = format!("{error:#}");
        self.record.borrow_mut().trouble = Some(error);
        ModelError::Io {
            action: "running the agent".to_owned(),
            detail,
        }
    }
}

/// Recorded text has aliases instead of paths of this machine.
fn replace_paths(aliases: &PathAliases, result: &mut AgentResult) {
    result.message = aliases.replace(&result.message).into_owned();
    result.transcript = aliases.replace_bytes(&result.transcript);
    for (_, text) in &mut result.texts {
        *text = aliases.replace_bytes(text);
    }
}

/// For a program that starts without a conversation.
fn first(request: &ModelRequest) -> String {
    let request = ModelRequest {
        system: ACTING.to_owned(),
        ..request.clone()
    };
    request.full_text()
}

// Resumes the conversation of an acting model, if the same model made the previous turn in the same
// session and worktree. The prompt then starts with the outcome of its last changes, because the
// files can differ from what the program remembers.

const MAX_EARLIER_REPORT: usize = 64 << 10;

const MAX_NAMED_FILES: usize = 100;

fn totals_of(acted: &Acted) -> ConversationTotals {
    ConversationTotals {
        cost: acted.total_cost,
        counts_anew: acted.counts_anew,
        usage: acted.total_tokens,
    }
}

/// `None` if the previous turn used another model, session or worktree.
fn earlier_conversation(
    env: &WorktreeEnv<'_, '_>,
    model: &str,
    worktree: &Path,
) -> anyhow::Result<Option<EarlierConversation>> {
    let meta = &env.tip.meta;
    let requested = meta.model.as_ref().map(|model| model.asked.as_str());
    let Some(acted) = meta.acted.as_ref().filter(|_| requested == Some(model)) else {
        return Ok(None);
    };
    let place = place_of(&env.tip.session, worktree);
    let is_here = acted.worktree.as_deref() == Some(&place);
    let Some(id) = acted.conversation.clone().filter(|_| is_here) else {
        return Ok(None);
    };
    // Otherwise a turn of another user could name any conversation of this user's.
    if !env.project.checkout().is_own_turn(env.tip)? {
        return Ok(None);
    }

    // The agent can have begun another one since, or TeDDy was killed and does not know how the call
    // ended.
    let last = env.discarded.as_ref().unwrap_or(acted);
    if last.conversation.as_ref() != Some(&id) || seen_trees(env).is_none() {
        return Ok(None);
    }
    let totals = totals_of(last);
    Ok(Some(EarlierConversation { id, totals }))
}

/// The files that the agent got for the newest turn, and then for discarded work. `None` if they are
/// not known any more.
fn seen_trees(env: &WorktreeEnv<'_, '_>) -> Option<Vec<TreeId>> {
    let repository = &env.project.repository;
    let calls = env.tip.meta.acted.iter().chain(&env.discarded);
    let trees = calls.map(|acted| Some(repository.commit(acted.snapshot?).ok()?.tree));
    trees.collect()
}

/// Outcome of the last changes, edits by the user since, and the message.
fn further(env: &WorktreeEnv<'_, '_>, request: &ModelRequest) -> anyhow::Result<String> {
    let mut text = format!("# Your last changes\n\n{}\n", describe_outcome(env.tip));
    // If everything was applied as proposed, the report tells the model nothing new.
    if !is_applied_unchanged(env)? {
        let report = env.tip.text(&env.project.repository, artifact::REPORT)?;
        let report = report.unwrap_or_default();
        let report = beginning(&report, MAX_EARLIER_REPORT);
        text.push_str(&format!(
            "\nThe report on them, with what the user changed or switched off:\n\n{}\n",
            fenced(&report, "", 4)
        ));
    }
    if env.discarded.is_some() {
        text.push_str(
            "\nWhat you have changed since then was discarded: none of it is in the files.\n",
        );
    }

    text.push_str(&changes_since(env)?);
    text.push_str(&format!("\n# Message\n\n{}\n", request.message.trim_end()));
    Ok(text)
}

/// Overlays of all sessions have the path of the checkout, and a branch begins with turns of another
/// session, whose conversation continued. Not the path itself, which contains the user's name.
fn place_of(session: &SessionName, worktree: &Path) -> String {
    digest(&format!("{session} {}", worktree.to_string_lossy()))
}

fn describe_outcome(tip: &Turn) -> &'static str {
    match tip.meta.status {
        Status::Executed => {
            "The user has reviewed them, and the approved ones are in the files of this directory."
        }
        Status::Declined => "The user did not want them: none of them is in the files any more.",
        Status::Failed => "They were applied in part, as the report says.",
        _ => "They were not applied: none of them is in the files any more.",
    }
}

fn is_applied_unchanged(env: &WorktreeEnv<'_, '_>) -> anyhow::Result<bool> {
    let approved = env.tip.text(&env.project.repository, artifact::APPROVED)?;
    Ok(env.tip.meta.status == Status::Executed && approved.is_none())
}

fn changes_since(env: &WorktreeEnv<'_, '_>) -> anyhow::Result<String> {
    let Some(workspace) = &env.tip.meta.workspace else {
        return Ok(String::new());
    };
    let repository = &env.project.repository;
    let [before, after] = trees_of(repository, workspace.change())?;
    let now = env.recorded.tree;
    // The user can edit files while the agent works, and before the plan runs.
    let seen = seen_trees(env).unwrap_or_default();
    let edited = seen.into_iter().zip([before, now]);
    let mut paths = BTreeSet::new();
    for (old, new) in edited.chain([(after, now)]) {
        let changed = diff::changes(repository, old, new)?;
        paths.extend(changed.into_iter().map(|change| change.path));
    }
    if paths.is_empty() {
        return Ok(String::new());
    }

    let listed = paths.iter().take(MAX_NAMED_FILES);
    let mut list: String = listed
        .map(|path| format!("- {}\n", sanitize_line(&lossy(path))))
        .collect();
    if paths.len() > MAX_NAMED_FILES {
        list.push_str(&format!("- and {} more\n", paths.len() - MAX_NAMED_FILES));
    }
    Ok(format!(
        "\nThese files are not as you left them; read them again before you change them:\n\n{list}"
    ))
}

// Warns about agent settings in the repository: hooks, plugins and servers that take effect when an
// agent works in it. Their author controls part of what the agent does, with its network access and
// login.

/// Files that known agents read from a project and that can start programs.
const AGENT_SETTINGS: [&str; 12] = [
    ".aider.conf.yml",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".mcp.json",
    ".opencode/plugin",
    ".opencode/plugins",
    ".qwen/settings.json",
    "opencode.json",
    "opencode.jsonc",
];

fn report_agent_settings(env: &WorktreeEnv<'_, '_>) -> anyhow::Result<()> {
    let repository = &env.project.repository;
    let mut paths = Vec::new();
    for path in AGENT_SETTINGS {
        if repository
            .entry(env.recorded.tree, path.as_bytes())?
            .is_some()
        {
            paths.push(path.to_owned());
        }
    }

    if !paths.is_empty() {
        let notice = Notice::AgentSettings(paths);
        env.user.borrow_mut().report(Event::Notice(notice));
    }
    Ok(())
}

const NO_MODULES: &str = "the agent does not get the modules of its worktree in `PYTHONPATH`, because it would run them itself: tests that it runs use those that `pip install -e` has installed, or fail if the sandbox hides them";

/// Forwards events to the user and stops the program when its budget is used up.
struct WatchingUser<'a, 'u> {
    user: &'a SharedUser<'u>,
    name: &'a str,
    budget: BudgetSlice<'a>,
    exceeded: bool,
}

impl AgentHost for WatchingUser<'_, '_> {
    fn progress(&mut self, progress: AgentProgress<'_>) {
        if let AgentProgress::Used { usage, cost, .. } = &progress {
            // Checked while the agent works: it could spend any amount before it ends.
            self.exceeded |= self.budget.used(*usage, *cost) > self.budget.remaining;
        }
        self.user.borrow_mut().report(Event::Working(&progress));
    }

    fn permission(&mut self, question: &PermissionQuestion) -> PermissionAnswer {
        let mut user = self.user.borrow_mut();
        let (decision, by) = if user.approves_unseen() {
            (PermissionDecision::Once, PermissionGiver::Beforehand)
        } else {
            match user.permit(self.name, question) {
                Ok(Some(decision)) => (decision, PermissionGiver::Person),
                // An interrupted prompt also returns `None` or an error. Report it as cancelled, not
                // as a refusal.
                Ok(None) | Err(_) if interrupt::requested() => {
                    (PermissionDecision::Cancelled, PermissionGiver::Person)
                }
                Ok(None) | Err(_) => (PermissionDecision::No, PermissionGiver::Nobody),
            }
        };
        PermissionAnswer { decision, by }
    }

    fn stopped(&self) -> bool {
        self.exceeded || interrupt::requested()
    }
}
