//! The workflow `plan`: proposal, challenge, and revisions until a final verdict or the limit.

use serde::Serialize;

use super::ChangeOptions;
use super::ask::RoleClient;
use super::challenge::{Judgement, judge};
use super::proposal::{Idea, propose};
use super::reproposal::revise;
use crate::change::error::{ChangeError, next_step};
use crate::change::id::ChangeId;
use crate::change::phase::ChangePhase;
use crate::change::review::Issues;
use crate::change::verdict::ReviewVerdict;
use crate::git::refs;
use crate::workflow::change;
use crate::workflow::change::change;
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// What a call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanningStep {
    /// Planned the change.
    Planned,
    /// Nothing: planning was already complete.
    AlreadyComplete,
    /// Nothing: the change is past planning.
    BeyondPlanning,
}

/// Result of planning a change.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedChange {
    /// The change.
    pub change: ChangeId,
    /// What this call did.
    pub action: PlanningStep,
    /// The phase afterwards.
    pub phase: ChangePhase,
    /// Iteration of the proposal.
    pub iteration: u32,
    /// Number of documents written.
    pub written: usize,
    /// Challenges in this call.
    pub challenges: u32,
    /// Revisions in this call.
    pub reproposals: u32,
    /// Last verdict of this call.
    pub verdict: Option<ReviewVerdict>,
    /// Its issues.
    pub issues: Issues,
    /// Only minor issues remain.
    pub only_minor_issues: bool,
    /// Suggested next command.
    pub next: String,
}

/// Continues planning from the current phase of the change.
pub fn plan(
    project: &Project,
    idea: &Idea<'_>,
    wish: &ChangeOptions,
    user: &mut dyn User,
) -> anyhow::Result<PlannedChange> {
    let id = idea.id;
    let _lock = change::lock_change(project, id, "plan")?;
    project.recover(user)?;
    let mut planned = PlannedChange {
        change: id.clone(),
        action: PlanningStep::Planned,
        phase: ChangePhase::Proposed,
        iteration: 1,
        written: 0,
        challenges: 0,
        reproposals: 0,
        verdict: None,
        issues: Issues::default(),
        only_minor_issues: false,
        next: String::new(),
    };

    let known = refs::read(&project.repository, &id.reference())?
        .map(|_| change(project, id))
        .transpose()?;
    match known.map(|change| (change.state.phase, change.state.iteration)) {
        None | Some((ChangePhase::Proposed, _)) => cycle(
            &mut RoleClient {
                project,
                id,
                wish,
                user,
            },
            idea.description,
            &mut planned,
        )?,
        Some((ChangePhase::Rejected, _)) => return Err(ChangeError::Rejected(id.clone()).into()),
        Some((phase, iteration)) => {
            let beyond = phase != ChangePhase::Challenged;
            planned.action = if beyond {
                PlanningStep::BeyondPlanning
            } else {
                PlanningStep::AlreadyComplete
            };
            (planned.phase, planned.iteration) = (phase, iteration);
        }
    }

    planned.next = next_step(id, planned.phase);
    Ok(planned)
}

fn cycle(
    desk: &mut RoleClient<'_>,
    description: Option<&str>,
    planned: &mut PlannedChange,
) -> anyhow::Result<()> {
    let (mut change, written) = propose(desk, description)?;
    planned.written = written;
    let most = desk.project.settings.change.planning_iterations;
    loop {
        note(planned, &judge(desk, &mut change)?);
        if planned.verdict != Some(ReviewVerdict::NeedsRevision) || planned.reproposals >= most {
            return Ok(());
        }
        revise(desk, &mut change, None)?;
        planned.reproposals += 1;
    }
}

fn note(planned: &mut PlannedChange, judgement: &Judgement) {
    planned.challenges += 1;
    planned.phase = judgement.phase;
    planned.iteration = judgement.iteration;
    planned.verdict = Some(judgement.verdict);
    planned.issues = judgement.issues;
    planned.only_minor_issues = judgement.only_minor_issues;
}
