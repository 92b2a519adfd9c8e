//! Result of a run before its turn is recorded.

use super::case::PlanInReview;
use super::stage::RunResult;
use crate::git::object::{CommitId, TreeId};
use crate::session::message;
use crate::workflow::project::Project;
use crate::workflow::user::Approved;
use crate::workspace::snapshot;

pub(super) struct FinishedRun<'a> {
    pub case: PlanInReview<'a>,
    pub approved: Approved,
    pub result: RunResult,
}

impl FinishedRun<'_> {
    pub(super) fn commit(
        &self,
        project: &Project,
        base: CommitId,
        tree: TreeId,
    ) -> anyhow::Result<CommitId> {
        let title = message::commit_subject(&self.approved.plan.title);
        let text = format!(
            "{title}\n\nTeddy-Session: {}\nTeddy-Turn: {}\n",
            self.case.tip.session, self.case.draft.meta.number
        );
        snapshot::advance(&project.repository, base, tree, &text)
    }
}
