//! A plan that has run, before its turn is recorded.

use super::case::PlanInReview;
use super::stage::RunResult;
use crate::git::object::{CommitId, TreeId};
use crate::session::message;
use crate::workflow::project::Project;
use crate::workflow::user::Approved;
use crate::workspace::snapshot;

/// A plan that has run, before its turn is recorded.
pub(super) struct FinishedRun<'a> {
    /// The turn.
    pub case: PlanInReview<'a>,
    /// What was to run.
    pub approved: Approved,
    /// What it left.
    pub left: RunResult,
}

impl FinishedRun<'_> {
    /// Returns the workspace commit with what the plan did.
    pub(super) fn commit(
        &self,
        project: &Project,
        base: CommitId,
        tree: TreeId,
    ) -> anyhow::Result<CommitId> {
        let title = message::subject(&self.approved.plan.title);
        let text = format!(
            "{title}\n\nTeddy-Session: {}\nTeddy-Turn: {}\n",
            self.case.tip.session, self.case.draft.meta.number
        );
        snapshot::advance(&project.repository, base, tree, &text)
    }
}
