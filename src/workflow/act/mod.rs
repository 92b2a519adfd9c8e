//! Acting models: a model edits files in the session's worktree, and the plan is written from its
//! changes.
//!
//! Other code sees it as a model that answers with a plan. Everything that the plan cannot express
//! (transcript, raw bytes, conversation id) is collected in an [`ActedRecord`] for the turn.

mod conversation;
mod difference;
mod host;
mod settings;

use std::cell::RefCell;

use anyhow::Context as _;

use crate::git::worktree::SessionWorktree;
use crate::host::supervisor::Launcher;
use crate::model::acting::transcript::render_transcript;
use crate::model::acting::{ActingModel, AgentFailure, AgentResult, AgentTask};
use crate::model::prompt::ACTING;
use crate::model::{Finish, ModelAnswer, ModelError, ModelRequest};
use crate::session::artifact::{self, Artifacts};
use crate::session::draft::Draft;
use crate::session::meta::Acted;
use crate::session::turn::Turn;
use crate::text::fence::fence_for;
use crate::workflow::act::conversation::EarlierTalk;
use crate::workflow::act::host::WatchingUser;
use crate::workflow::confine;
use crate::workflow::execute::run_env::{Reach, RunEnv};
use crate::workflow::execute::stage::{AgentWorktree, WorktreeResult};
use crate::workflow::model::budget::{ActingEnv, BudgetSlice};
use crate::workflow::project::Project;
use crate::workflow::user::User;
use crate::workspace::snapshot::RecordedFiles;

/// Several parts of a request talk to the user, one at a time.
pub type SharedUser<'u> = RefCell<&'u mut dyn User>;

/// The environment in which an acting model runs, and what it leaves for the turn.
pub struct WorktreeEnv<'a, 'u> {
    /// The project.
    pub project: &'a Project,
    /// Newest turn of the session.
    pub tip: &'a Turn,
    /// The user's files, of which the model gets a copy.
    pub recorded: &'a RecordedFiles,
    /// Receives progress and prompts.
    pub user: &'a SharedUser<'u>,
    /// By-products for the turn.
    pub record: RefCell<ActedRecord>,
}

/// By-products of an acting model, besides its plan.
#[derive(Debug, Default)]
pub struct ActedRecord {
    /// JSON lines.
    transcript: Vec<u8>,
    /// The prompt that was sent instead of the input; `None` unless a conversation was resumed.
    sent_prompt: Option<String>,
    /// Contents that the plan refers to by artifact name.
    contents: Vec<(String, Vec<u8>)>,
    is_made: bool,
    /// Cost in dollars of work that produced no plan.
    lost: f64,
    /// The program that ran.
    pub acted: Option<Acted>,
    /// An error of our own with its hint; the model error carries only the text.
    pub trouble: Option<anyhow::Error>,
}

impl ActedRecord {
    /// Moves the by-products into a draft.
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
        draft.meta.acted = self.acted.take().or(draft.meta.acted.take());
    }
}

impl ActingEnv for WorktreeEnv<'_, '_> {
    /// On failure the transcript is kept and the changes are discarded.
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
            // An agent always works in a copy (docs/decisions/0027-worktrees.md).
            users_own: false,
            reach: Reach::AsConfigured,
            artifacts: &artifacts,
        };

        settings::report_agent_settings(self).map_err(|error| self.trouble(error))?;
        let opened = AgentWorktree::open(self.project, env, &mut **self.user.borrow_mut());
        let opened = opened.map_err(|error| self.trouble(error))?;
        let worked = self.work(model, request, budget, opened.worktree());
        // Even if the model failed, so that the worktree's git directory is removed.
        let result = opened.close();
        let worked = worked?;
        let cost = budget.used(worked.usage, worked.cost);
        let result = result.map_err(|error| self.trouble(error));
        let proposed = result.and_then(|result| self.propose(model, worked, &result));
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
        worktree: &SessionWorktree,
    ) -> Result<AgentResult, ModelError> {
        let launcher = self
            .launcher(model, worktree)
            .map_err(|error| self.trouble(error))?;
        let is_confined = launcher.policy.is_some();
        let policy = launcher.policy.as_ref();
        let variables = policy.map(|policy| confine::cache_variables(self.project, policy));
        let conversation = EarlierTalk::of(self.tip, model.name(), &worktree.path);
        let further = conversation.as_ref().map(|it| it.further(self, request));
        let further = further.transpose().map_err(|error| self.trouble(error))?;
        let text = first(request);

        let task = AgentTask {
            text: &text,
            message: &request.message,
            dir: &worktree.path,
            launcher,
            variables: variables.unwrap_or_default(),
            conversation: conversation.map(|conversation| conversation.id),
            further: further.as_deref(),
            limits: model.limits(),
            is_confined,
        };
        let mut host = WatchingUser::new(self.user, model.name(), budget);
        let worked = model.act(&task, &mut host);
        let exceeded = host.is_over_budget();

        let aliases = confine::aliases(self.project, &worktree.path);
        match worked {
            Ok(mut result) => {
                result.message = aliases.replace(&result.message).into_owned();
                result.transcript = aliases.replace_bytes(&result.transcript);
                self.keep(&result, worktree);
                self.record.borrow_mut().sent_prompt = further.filter(|_| result.resumed);
                Ok(result)
            }
            Err(mut failure) => {
                failure.work.transcript = aliases.replace_bytes(&failure.work.transcript);
                Err(self.keep_failure(*failure, exceeded, budget))
            }
        }
    }

    /// The program is confined like commands, except that it has network access and its own state
    /// directories.
    fn launcher(
        &self,
        model: &dyn ActingModel,
        worktree: &SessionWorktree,
    ) -> anyhow::Result<Launcher> {
        let policy = confine::policy_for_agent(self.project, worktree, &model.needs().state)?;
        let launcher = Launcher::new(policy).context("starting the agent")?;
        // The program holds the lock as long as it runs, so that recovery does not touch the
        // worktree while it outlives TeDDy.
        Ok(launcher.holding(self.project.commands_lock(&self.tip.session.dir_name())))
    }

    fn keep(&self, result: &AgentResult, worktree: &SessionWorktree) {
        let mut record = self.record.borrow_mut();
        record.transcript.clone_from(&result.transcript);
        let agent = result.agent.clone().unwrap_or_default();
        let non_empty = |text: String| (!text.is_empty()).then_some(text);
        record.acted = Some(Acted {
            program: non_empty(agent.name),
            version: non_empty(agent.version),
            worktree: result
                .conversation
                .is_some()
                .then(|| conversation::name_of(&worktree.path)),
            conversation: result.conversation.clone(),
            resumed: result.resumed,
        });
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
        record.acted = Some(Acted::default());
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
        worked: AgentResult,
        result: &WorktreeResult,
    ) -> Result<ModelAnswer, ModelError> {
        let leaves = &model.needs().leaves;
        let planned = difference::plan_from(self, &worked.message, (result, leaves));
        let planned = planned.map_err(|error| self.trouble(error))?;
        let mut record = self.record.borrow_mut();
        record.contents = planned.taken_bytes;
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
            action: "letting the agent work".to_owned(),
            detail,
        }
    }
}

/// The whole prompt, for a program that starts without a conversation.
fn first(request: &ModelRequest) -> String {
    let request = ModelRequest {
        system: ACTING.to_owned(),
        ..request.clone()
    };
    request.full_text()
}

fn fenced(text: &str) -> String {
    let fence = fence_for(text, 4);
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}
