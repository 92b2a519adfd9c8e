//! State of a plan between validation and the recorded turn.

use crate::git::refs;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::Workspace;
use crate::session::requests::Requests;
use crate::session::transition::{Caller, Current};
use crate::session::turn::Turn;
use crate::text::context_list;
use crate::workflow::context::lists::ContextLists;
use crate::workflow::model::agents;
use crate::workflow::project::Project;
use crate::workflow::user::Approved;
use crate::workflow::validation::ValidatedPlan;
use crate::workspace::drift::Drift;
use crate::workspace::snapshot::RecordedFiles;

/// A validated plan with everything that its review and run need.
pub(super) struct PlanInReview<'a> {
    pub(super) tip: &'a Turn,
    pub(super) draft: Draft,
    pub(super) recorded: RecordedFiles,
    pub(super) lists: ContextLists,
    /// The turn that handed over to this agent.
    pub(super) caller: Option<Caller>,
    /// The model's question that this turn answers.
    pub(super) question: Option<String>,
    pub(super) requests: Requests,
    pub(super) validated: ValidatedPlan,
    /// Difference between the user's files and the newest turn.
    pub(super) drift: Drift,
    /// The earlier decision, if the user's files changed during the review.
    pub(super) earlier: Option<Approved>,
}

impl PlanInReview<'_> {
    pub(super) fn current<'a>(
        &'a self,
        context: &'a [context_list::ListEntry],
        prompt: &'a str,
    ) -> Current<'a> {
        Current {
            session: &self.tip.session,
            number: self.draft.meta.number,
            turn_id: self.draft.meta.turn_id,
            caller_turn_id: self.draft.meta.caller_turn_id,
            agent: &self.draft.meta.agent,
            system_prompt: prompt,
            context,
            // Task text reaches the model only together with the user's answer to its question. A
            // question by the user does not count as an answer.
            is_asked: (self.draft.is_asked_by_user() && !self.draft.meta.question)
                || self.draft.meta.work.is_some(),
            question: self.question.as_deref(),
            requests: &self.requests,
        }
    }

    /// System prompt for the next turn. A question has a prompt of its own, which must not be
    /// carried over.
    pub(super) fn prompt(&self, project: &Project) -> anyhow::Result<String> {
        let meta = &self.draft.meta;
        if meta.question {
            return agents::standing_prompt(project, self.tip, &meta.agent);
        }
        Ok(self.draft.artifacts.text_or_empty(artifact::SYSTEM_PROMPT))
    }

    /// The workspace record of a turn that changes nothing.
    pub(super) fn unchanged_workspace(&self, project: &Project) -> Workspace {
        let commit = self.recorded.commit;
        Workspace {
            worktree: project.repository.worktree_name(),
            branch: refs::branch_or_head(&project.repository).ok(),
            before: commit,
            after: commit,
            synced: true,
            overlaps: Vec::new(),
        }
    }
}
