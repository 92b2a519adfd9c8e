//! A turn on its way through an execution.

use crate::git::refs;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::Workspace;
use crate::session::requests::Requests;
use crate::session::transition::{Caller, Current};
use crate::session::turn::Turn;
use crate::text::context_list;
use crate::workflow::context::lists::ContextLists;
use crate::workflow::judge::Judged;
use crate::workflow::model::agents;
use crate::workflow::project::Project;
use crate::workflow::user::Approved;
use crate::workspace::drift::Drift;
use crate::workspace::snapshot::RecordedFiles;

/// A turn on its way through an execution.
pub(super) struct PlanInReview<'a> {
    /// The newest turn.
    pub(super) tip: &'a Turn,
    /// The turn in progress.
    pub(super) draft: Draft,
    /// The user's files.
    pub(super) recorded: RecordedFiles,
    /// The context lists.
    pub(super) lists: ContextLists,
    /// Who handed over.
    pub(super) caller: Option<Caller>,
    /// What the model had asked before it.
    pub(super) question: Option<String>,
    /// What the user asked for in the session, in this turn too.
    pub(super) requests: Requests,
    /// The plan.
    pub(super) judged: Judged,
    /// How far the user's files are from the newest turn.
    pub(super) drift: Drift,
    /// What the user had approved when their files changed.
    pub(super) earlier: Option<Approved>,
}

impl PlanInReview<'_> {
    /// Returns the turn that ends, as the transition sees it.
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
            // A piece of work goes to the model only with the answer to what it asked before.
            // A question of the user's is no answer.
            is_asked: (self.draft.is_asked_by_user() && !self.draft.meta.question)
                || self.draft.meta.work.is_some(),
            question: self.question.as_deref(),
            requests: &self.requests,
        }
    }

    /// Returns the instructions of the agent: those of the turn that ends, unless that answers a
    /// question.
    pub(super) fn prompt(&self, project: &Project) -> anyhow::Result<String> {
        let meta = &self.draft.meta;
        if meta.question {
            return agents::standing_prompt(project, self.tip, &meta.agent);
        }
        Ok(self.draft.artifacts.text_or_empty(artifact::SYSTEM_PROMPT))
    }

    /// Returns the workspace of a turn that changed nothing.
    pub(super) fn still(&self, project: &Project) -> Workspace {
        let here = self.recorded.commit;
        Workspace {
            worktree: project.repository.worktree_name(),
            branch: refs::branch_or_head(&project.repository).ok(),
            before: here,
            after: here,
            synced: true,
            overlaps: Vec::new(),
        }
    }
}
