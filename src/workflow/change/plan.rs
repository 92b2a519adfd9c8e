//! The workflow `plan`: proposal, challenge, and revisions until a final verdict or the limit.

use serde::Serialize;

use super::ChangeOptions;
use super::ask::RoleClient;
use super::challenge::{Judgement, challenge_locked};
use super::proposal::{Idea, write_proposal_locked};
use super::reproposal::revise_proposal_locked;
use crate::change::id::ChangeId;
use crate::change::phase::ChangePhase;
use crate::change::review::Issues;
use crate::change::review::ReviewVerdict;
use crate::change::store::{ChangeError, next_step};
use crate::git::refs;
use crate::project::Project;
use crate::workflow::change;
use crate::workflow::change::open_change;
use crate::workflow::user::User;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanningStep {
    Planned,
    /// Planning was already complete.
    AlreadyComplete,
    /// The change is past planning.
    BeyondPlanning,
}

#[derive(Debug, Clone, Serialize)]
pub struct PlannedChange {
    pub change: ChangeId,
    pub action: PlanningStep,
    pub phase: ChangePhase,
    pub iteration: u32,
    pub written: usize,
    /// In this call.
    pub challenges: u32,
    /// In this call.
    pub reproposals: u32,
    /// In this call.
    pub verdict: Option<ReviewVerdict>,
    pub issues: Issues,
    pub only_minor_issues: bool,
    /// Suggested command.
    pub next: String,
}

pub fn plan_change(
    project: &Project,
    idea: &Idea<'_>,
    options: &ChangeOptions,
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

    let existing = refs::read(&project.repository, &id.reference())?
        .map(|_| open_change(project, id))
        .transpose()?;
    match existing.map(|change| (change.state.phase, change.state.iteration)) {
        None | Some((ChangePhase::Proposed, _)) => revise_until_final(
            &mut RoleClient {
                project,
                id,
                options,
                user,
            },
            idea.description,
            &mut planned,
        )?,
        Some((ChangePhase::Rejected, _)) => return Err(ChangeError::Rejected(id.clone()).into()),
        Some((phase, iteration)) => {
            let is_past_planning = phase != ChangePhase::Challenged;
            planned.action = if is_past_planning {
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

fn revise_until_final(
    client: &mut RoleClient<'_>,
    description: Option<&str>,
    planned: &mut PlannedChange,
) -> anyhow::Result<()> {
    let (mut change, written) = write_proposal_locked(client, description)?;
    planned.written = written;
    let most = client.project.settings.change.planning_iterations;
    loop {
        note_verdict(planned, &challenge_locked(client, &mut change)?);
        if planned.verdict != Some(ReviewVerdict::NeedsRevision) || planned.reproposals >= most {
            return Ok(());
        }
        revise_proposal_locked(client, &mut change, None)?;
        planned.reproposals += 1;
    }
}

fn note_verdict(planned: &mut PlannedChange, judgement: &Judgement) {
    planned.challenges += 1;
    planned.phase = judgement.phase;
    planned.iteration = judgement.iteration;
    planned.verdict = Some(judgement.verdict);
    planned.issues = judgement.issues;
    planned.only_minor_issues = judgement.only_minor_issues;
}
