//! Models that edit files themselves: one works in the session's worktree, and the plan is written
//! from what it changed there.
//!
//! To everything else it is a model like any other: it is asked, and answers with a plan. What
//! came besides (the transcript, bytes that a plan cannot say, the conversation) is kept in an
//! [`ActedRecord`] for the turn.

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
use crate::workflow::execute::stage::{WorkRoom, WorktreeResult};
use crate::workflow::model::budget::{Purse, Room};
use crate::workflow::project::Project;
use crate::workflow::user::User;
use crate::workspace::snapshot::RecordedFiles;

/// A user whom several parts of a request talk to, one at a time.
pub type SharedUser<'u> = RefCell<&'u mut dyn User>;

/// Where a model that acts does so, and what is kept of it.
pub struct ActingRoom<'a, 'u> {
    /// The project.
    pub project: &'a Project,
    /// The newest turn.
    pub tip: &'a Turn,
    /// The user's files, which it gets a copy of.
    pub recorded: &'a RecordedFiles,
    /// Who is told and asked.
    pub user: &'a SharedUser<'u>,
    /// What came besides the answer.
    pub record: RefCell<ActedRecord>,
}

/// What came of a model that acted besides its plan.
#[derive(Debug, Default)]
pub struct ActedRecord {
    /// What it said and did, as JSON lines.
    transcript: Vec<u8>,
    /// What it was told in place of the input, where its conversation went on.
    told: Option<String>,
    /// Bytes that the plan names and does not have, by their artifacts' names.
    taken: Vec<(String, Vec<u8>)>,
    /// Whether the plan was written from what it made.
    is_made: bool,
    /// Dollars for work of which nothing came.
    lost: f64,
    /// Which program it was.
    pub acted: Option<Acted>,
    /// What went wrong around it, with the remedy.
    pub trouble: Option<anyhow::Error>,
}

impl ActedRecord {
    /// Puts what was kept into a turn in progress.
    pub fn keep_in(&mut self, draft: &mut Draft) {
        let artifacts = &mut draft.artifacts;
        if !self.transcript.is_empty() {
            let transcript = std::mem::take(&mut self.transcript);
            artifacts.put(artifact::TRANSCRIPT_TEXT, render_transcript(&transcript));
            artifacts.put(artifact::TRANSCRIPT, transcript);
        }

        if let Some(told) = self.told.take() {
            artifacts.put(artifact::TOLD, told);
        }
        for (name, bytes) in self.taken.drain(..) {
            artifacts.put(&name, bytes);
        }

        if self.lost > 0.0 {
            draft.meta.spent = Some(draft.meta.spent.unwrap_or_default() + self.lost);
        }
        draft.meta.made = self.is_made;
        draft.meta.acted = self.acted.take().or(draft.meta.acted.take());
    }
}

impl Room for ActingRoom<'_, '_> {
    /// What it said is kept in any case; what it did is not where it fails, is stopped, or leaves
    /// what cannot be proposed.
    fn act(
        &self,
        model: &dyn ActingModel,
        request: &ModelRequest,
        purse: Purse<'_>,
    ) -> Result<ModelAnswer, ModelError> {
        let name = self.tip.session.folder();
        let artifacts = Artifacts::default();
        let env = RunEnv {
            name: &name,
            tip: self.tip,
            before: self.recorded.commit,
            tree: self.recorded.tree,
            users_own: false,
            reach: Reach::AsConfigured,
            artifacts: &artifacts,
        };

        settings::tell(self).map_err(|error| self.trouble(error))?;
        let room = WorkRoom::open(self.project, env, &mut **self.user.borrow_mut());
        let room = room.map_err(|error| self.trouble(error))?;
        let worked = self.work(model, request, purse, room.worktree());
        let left = room.close();
        let worked = worked?;
        let cost = purse.used(worked.usage, worked.cost);
        let left = left.map_err(|error| self.trouble(error));
        let proposed = left.and_then(|left| self.propose(model, worked, &left));
        if proposed.is_err() {
            self.record.borrow_mut().lost = cost;
        }
        proposed
    }
}

impl ActingRoom<'_, '_> {
    /// Lets the model work in a worktree.
    fn work(
        &self,
        model: &dyn ActingModel,
        request: &ModelRequest,
        purse: Purse<'_>,
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
            folder: &worktree.path,
            launcher,
            variables: variables.unwrap_or_default(),
            conversation: conversation.map(|conversation| conversation.id),
            further: further.as_deref(),
            limits: model.limits(),
            is_confined,
        };
        let mut host = WatchingUser::new(self.user, model.name(), purse);
        let worked = model.act(&task, &mut host);
        let over = host.is_over_budget();

        match worked {
            Ok(result) => {
                self.keep(&result, worktree);
                self.record.borrow_mut().told = further.filter(|_| result.resumed);
                Ok(result)
            }
            Err(failure) => Err(self.keep_failure(*failure, over, purse)),
        }
    }

    /// Returns what starts the program: confined as commands are, but for the network and the
    /// program's own folders.
    fn launcher(
        &self,
        model: &dyn ActingModel,
        worktree: &SessionWorktree,
    ) -> anyhow::Result<Launcher> {
        let policy = confine::policy_for_agent(self.project, worktree, &model.needs().state)?;
        let launcher = Launcher::new(policy).context("starting the agent")?;
        Ok(launcher.holding(self.project.commands_lock(&self.tip.session.folder())))
    }

    /// Keeps what a model said that is done.
    fn keep(&self, result: &AgentResult, worktree: &SessionWorktree) {
        let mut record = self.record.borrow_mut();
        record.transcript.clone_from(&result.transcript);
        let agent = result.agent.clone().unwrap_or_default();
        let told = |text: String| (!text.is_empty()).then_some(text);
        record.acted = Some(Acted {
            program: told(agent.name),
            version: told(agent.version),
            worktree: result
                .conversation
                .is_some()
                .then(|| worktree.path.display().to_string()),
            conversation: result.conversation.clone(),
            resumed: result.resumed,
        });
    }

    /// Keeps what a model said that failed, and returns why it did.
    fn keep_failure(&self, failure: AgentFailure, over: bool, purse: Purse<'_>) -> ModelError {
        let mut record = self.record.borrow_mut();
        record.lost = purse.used(failure.work.usage, failure.work.cost);
        record.transcript = failure.work.transcript;
        record.acted = Some(Acted::default());
        if over {
            return ModelError::SpentWhileActing { left: purse.left };
        }
        failure.error
    }

    /// Writes the plan from what the model left.
    fn propose(
        &self,
        model: &dyn ActingModel,
        worked: AgentResult,
        left: &WorktreeResult,
    ) -> Result<ModelAnswer, ModelError> {
        let leaves = &model.needs().leaves;
        let planned = difference::plan_from(self, &worked.message, (left, leaves));
        let planned = planned.map_err(|error| self.trouble(error))?;
        let mut record = self.record.borrow_mut();
        record.taken = planned.taken;
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

    /// Keeps an error with its remedy, and returns what stands for it.
    fn trouble(&self, error: anyhow::Error) -> ModelError {
        let detail = format!("{error:#}");
        self.record.borrow_mut().trouble = Some(error);
        ModelError::Io {
            action: "letting the agent work".to_owned(),
            detail,
        }
    }
}

/// Returns all that a model gets with which no conversation goes on.
fn first(request: &ModelRequest) -> String {
    let request = ModelRequest {
        system: ACTING.to_owned(),
        ..request.clone()
    };
    request.whole_text()
}

/// Sets a text apart in a fence that nothing in it can close.
fn fenced(text: &str) -> String {
    let fence = fence_for(text, 4);
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}
