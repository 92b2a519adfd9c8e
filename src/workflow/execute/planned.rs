//! A validated plan on a snapshot of the user's files: what a review decides on.

use crate::git::refs;
use crate::plan::Plan;
use crate::plan::reading::Reading;
use crate::project::teddy_files;
use crate::session::artifact;
use crate::session::comments::LineComment;
use crate::session::meta::Workspace;
use crate::session::requests::Requests;
use crate::session::transition::{Caller, Current};
use crate::text::context_list;
use crate::workflow::context::lists::{ContextLists, add_small_project, lists};
use crate::workflow::context::requests;
use crate::workflow::model::agents;
use crate::workflow::open_session::OpenSession;
use crate::workflow::plan::{drop_question, keep_plan, read_reply, report_replaced};
use crate::workflow::user::{Approved, User, telling};
use crate::workflow::validation::{Beside, ValidatedPlan, ValidationInput, validate_plan};
use crate::workspace::drift::{self, Drift};
use crate::workspace::snapshot::{self, RecordedFiles};

pub(super) struct PlannedTurn<'p> {
    pub session: OpenSession<'p>,
    /// The files on which the plan was validated, and on which it runs.
    pub recorded: RecordedFiles,
    pub lists: ContextLists,
    pub caller: Option<Caller>,
    /// Answered by this turn.
    pub question: Option<String>,
    pub requests: Requests,
    pub validated: ValidatedPlan,
    /// From the newest turn.
    pub drift: Drift,
    /// Set if the user's files changed during the review.
    pub earlier: Option<Approved>,
    /// Comments that are not sent yet. They leave the draft when a review begins.
    pub written: Vec<LineComment>,
}

impl<'p> PlannedTurn<'p> {
    /// The plan as the user approved it, on the files as they are now.
    pub fn reopened(
        self,
        approved: Approved,
        user: &mut dyn User,
    ) -> anyhow::Result<PlannedTurn<'p>> {
        let planned = PlannedTurn::of_draft(self.session, Some(approved), None, user)?;
        Ok(PlannedTurn {
            written: self.written,
            ..planned
        })
    }

    /// The plan in the session's draft. `reusable` is a recent snapshot.
    pub fn of_draft(
        session: OpenSession<'p>,
        approved: Option<Approved>,
        reusable: Option<RecordedFiles>,
        user: &mut dyn User,
    ) -> anyhow::Result<PlannedTurn<'p>> {
        // Parse the raw reply again: the review must show which repairs were guesses.
        let artifacts = &session.draft.artifacts;
        let text = artifacts
            .text(artifact::REPLY)
            .unwrap_or_else(|| artifacts.text_or_empty(artifact::PLAN));
        let reading = read_reply(&session.tip, &session.draft, &text);
        let plan = approved.as_ref().map(|approved| &approved.plan);
        let paths = forced(plan.unwrap_or(&reading.plan));
        let mut planned = PlannedTurn::validate(session, reading, &paths, reusable, user)?;

        // After a crash the draft can contain an unrepaired plan.
        keep_plan(&mut planned.session.draft, &text, &planned.validated);
        planned.earlier = approved;
        Ok(planned)
    }

    /// A plan that the user wrote. It replaces a waiting one.
    pub fn of_text(
        mut session: OpenSession<'p>,
        text: &str,
        reading: Reading,
        user: &mut dyn User,
    ) -> anyhow::Result<PlannedTurn<'p>> {
        // The draft can be waiting for the answer to a question, which must not change files. A plan
        // of the user's can.
        drop_question(&mut session)?;
        let paths = forced(&reading.plan);
        let recorded = session.record_files(&paths, user)?;
        let (project, tree) = (session.project, recorded.tree);
        let OpenSession { tip, draft, .. } = &mut session;
        // The author of the plan might have seen `teddy context`, which shows a small project as a
        // whole.
        let listed = lists(&project.repository, draft, tree)?;
        add_small_project(project, tip, draft, &listed, tree)?;
        let mut planned = PlannedTurn::validate(session, reading, &paths, Some(recorded), user)?;
        let draft = &mut planned.session.draft;
        let waited = draft.is_planned().then(|| draft.clone());
        if let (Some(waited), Some(dir)) = (waited, draft.archive_answer()) {
            report_replaced(&waited, text, &dir, user);
        }
        draft.begin();
        draft.meta.planned_on = Some(planned.recorded.commit);
        // The plan is no answer to this input.
        draft.artifacts.remove(artifact::INPUT);
        keep_plan(draft, text, &planned.validated);
        // Before the review: if it is aborted, the plan is still waiting.
        planned.session.save_draft()?;
        Ok(planned)
    }

    /// Takes a snapshot with the ignored files at `paths`, and validates the plan. `reusable`
    /// replaces the snapshot if it is fresh and the paths are unchanged.
    fn validate(
        mut session: OpenSession<'p>,
        reading: Reading,
        paths: &[Vec<u8>],
        reusable: Option<RecordedFiles>,
        user: &mut dyn User,
    ) -> anyhow::Result<PlannedTurn<'p>> {
        let (project, repository) = (session.project, &session.project.repository);
        // Saves a scan right after planning. Paths of the plan are compared in any case.
        let reusable =
            reusable.filter(|files| files.is_fresh() && files.still_has(repository, paths));
        let recorded = match reusable {
            Some(files) => files,
            None => session.record_files(paths, user)?,
        };
        let OpenSession { tip, draft, .. } = &mut session;
        let checkout = project.checkout();
        snapshot::report_captured(&checkout, tip, draft, &recorded, &mut telling(user))?;
        let lists = lists(repository, draft, recorded.tree)?;
        let input = ValidationInput {
            tip,
            tree: recorded.tree,
            lists: &lists,
            draft,
        };
        let validated = validate_plan(project, reading, &input, Beside::Workspace)?;

        Ok(PlannedTurn {
            drift: drift::drift(&checkout, tip, recorded.tree)?,
            question: tip.question(repository)?,
            requests: requests::requests_with(project, tip, draft)?,
            caller: project.store().caller(tip, draft.meta.caller_turn_id)?,
            session,
            recorded,
            lists,
            validated,
            earlier: None,
            written: Vec::new(),
        })
    }

    pub fn current<'a>(
        &'a self,
        context: &'a [context_list::ListEntry],
        prompt: &'a str,
    ) -> Current<'a> {
        let OpenSession { tip, draft, .. } = &self.session;
        Current {
            session: &tip.session,
            number: draft.meta.number,
            turn_id: draft.meta.turn_id,
            caller_turn_id: draft.meta.caller_turn_id,
            agent: &draft.meta.agent,
            system_prompt: prompt,
            context,
            // Task text reaches the model only together with the user's answer to its question. A
            // question by the user does not count as an answer.
            is_asked: (draft.is_asked_by_user() && !draft.meta.question)
                || draft.meta.work.is_some(),
            question: self.question.as_deref(),
            requests: &self.requests,
        }
    }

    /// For the next turn. A question has a prompt of its own, which must not be carried over.
    pub fn prompt(&self) -> anyhow::Result<String> {
        let OpenSession {
            project,
            tip,
            draft,
            ..
        } = &self.session;
        if draft.meta.question {
            return agents::standing_prompt(project, tip, &draft.meta.agent);
        }
        Ok(draft.artifacts.text_or_empty(artifact::SYSTEM_PROMPT))
    }

    pub fn unchanged_workspace(&self) -> Workspace {
        let (commit, repository) = (self.recorded.commit, &self.session.project.repository);
        Workspace {
            worktree: repository.worktree_name(),
            branch: refs::branch_or_head(repository).ok(),
            before: commit,
            after: commit,
            synced: true,
            overlaps: Vec::new(),
        }
    }
}

/// Paths that a snapshot includes even if git ignores them: what the plan writes, and the memos.
pub(in crate::workflow) fn forced(plan: &Plan) -> Vec<Vec<u8>> {
    let targets = plan.targets().map(|path| path.as_str().as_bytes().to_vec());
    let mut paths: Vec<Vec<u8>> = targets.collect();
    if !plan.memos.is_empty() {
        paths.push(teddy_files::MEMOS.as_bytes().to_vec());
    }

    paths
}
