//! The loop: plans, executes, and decides whether to continue.

use super::remaining::{RemainingWork, remaining_work};
use super::state::{NextStep, ResumeLoop};
use super::{Console, Ended};
use crate::host::interrupt;
use crate::model::ModelError;
use crate::session::artifact;
use crate::session::draft::Draft;
use crate::session::meta::MessageOrigin;
use crate::session::turn::Turn;
use crate::workflow::execute::result::{RecordedTurn, ReviewedPlan, TurnEnding};
use crate::workflow::execute::{ExecuteOptions, execute};
use crate::workflow::model::budget;
use crate::workflow::notice::Notice;
use crate::workflow::plan::{PlanOptions, plan_next_turn};
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};

impl ResumeLoop<'_> {
    pub(super) fn run(
        &mut self,
        user: &mut dyn User,
        console: &mut dyn Console,
    ) -> anyhow::Result<Ended> {
        let (_, draft) = read_in_progress(self.project)?;
        if draft.is_planned() && self.message.is_some() {
            user.report(Event::Notice(Notice::PlanComesFirst));
        }

        loop {
            let (tip, draft) = read_in_progress(self.project)?;
            if !draft.is_planned() {
                match self.next_step((&tip, &draft), user, console)? {
                    NextStep::Plan(message, origin) => {
                        if let Some(ended) = self.plan(&tip, message, origin, user)? {
                            return Ok(ended);
                        }
                    }
                    NextStep::Again => continue,
                    NextStep::End(ended) => return Ok(ended),
                }
            }

            let recorded = match self.execute(user)? {
                ReviewedPlan::Undecided(plan) if !plan.doubts.is_empty() => {
                    return Ok(Ended::InDoubt(plan.turn));
                }
                ReviewedPlan::Undecided(plan) => return Ok(Ended::Undecided(plan.turn)),
                ReviewedPlan::Recorded(recorded) => recorded,
            };
            console.recorded(&recorded)?;

            let ended = self.why_stop(&recorded)?;
            self.last = Some(recorded);
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// Makes the next plan. Returns the reason if the loop must end.
    fn plan(
        &mut self,
        tip: &Turn,
        message: Option<String>,
        origin: MessageOrigin,
        user: &mut dyn User,
    ) -> anyhow::Result<Option<Ended>> {
        let plan_options = PlanOptions {
            message,
            model: self.options.model.clone(),
            pipeline: self.options.pipeline.clone(),
            depth: self.options.depth,
            origin,
            ..PlanOptions::default()
        };
        let planned = match plan_next_turn(self.project, &plan_options, user) {
            Ok(planned) => planned,
            Err(error) => return self.why_no_plan(error, origin).map(Some),
        };

        // Without a review, a model that repeats itself would run until the limit.
        let before = tip.text(&self.project.repository, artifact::PLAN)?;
        let agent = self.project.store().draft(tip)?.meta.agent;
        let is_circle = origin == MessageOrigin::Loop
            && tip.meta.agent == agent
            && before.as_ref() == Some(&planned.text);
        self.waiting = Some(planned);
        Ok((is_circle && self.unseen).then_some(Ended::Repeated))
    }

    /// The reason to end if there is no plan. An error is not a failure of the loop if the model
    /// was only asked to continue: the request before is complete.
    fn why_no_plan(&self, error: anyhow::Error, origin: MessageOrigin) -> anyhow::Result<Ended> {
        let by_itself = origin == MessageOrigin::Loop && self.is_one_message();
        let ends = by_itself || (self.options.yolo && is_cost_limit(&error));
        if ends && !interrupt::requested() {
            return Ok(Ended::NextCall(format!("{error:#}")));
        }
        Err(error)
    }

    fn execute(&mut self, user: &mut dyn User) -> anyhow::Result<ReviewedPlan> {
        let options = ExecuteOptions {
            file: None,
            replan: true,
            model: self.options.model.clone(),
            yolo: self.options.yolo,
            leaves_question: true,
            recorded: self.waiting.as_ref().map(|plan| plan.recorded.clone()),
        };
        let reviewed = execute(self.project, &options, user)?;
        let ReviewedPlan::Recorded(recorded) = &reviewed else {
            return Ok(reviewed);
        };

        if let Some(instead) = recorded.instead() {
            // The reply to the declined plan comes before the earlier message.
            let later = self
                .message
                .take()
                .map(|later| format!("\n\n{later}"))
                .unwrap_or_default();
            self.message = Some(format!("{instead}{later}"));
        }

        self.turns += 1;
        self.waiting = recorded.replanned().cloned();
        Ok(reviewed)
    }

    fn why_stop(&self, recorded: &RecordedTurn) -> anyhow::Result<Option<Ended>> {
        if recorded.interruption().is_some() {
            return Ok(Some(Ended::Left));
        }

        if !recorded.overlaps.is_empty() {
            return Ok(Some(Ended::Overlap));
        }

        if let Some(question) = recorded.unanswered() {
            return Ok(self
                .options
                .alone
                .then(|| Ended::Question(question.to_owned())));
        }

        if recorded.user_left() {
            return Ok(Some(Ended::Left));
        }

        // `next_step` decides about a concluded turn, with a prompt if a user is present.
        if recorded.conclusion().is_some() {
            return Ok(None);
        }

        self.why_stop_unseen(recorded)
    }

    fn why_stop_unseen(&self, recorded: &RecordedTurn) -> anyhow::Result<Option<Ended>> {
        let is_rejected = matches!(
            recorded.ending,
            TurnEnding::Rejected {
                replanned: None,
                ..
            }
        );
        if is_rejected && (self.options.yolo || self.options.alone) {
            return Ok(Some(Ended::Rejected));
        }

        let (tip, draft) = read_in_progress(self.project)?;
        if self.options.yolo {
            let used = budget::session_spending(self.project, &tip, &draft)?;
            let limit = self.project.settings.limits.cost;
            if used >= limit {
                return Ok(Some(Ended::Cost { used, limit }));
            }
        }

        let goes_on =
            draft.is_planned() || remaining_work(self.project, &tip)? == RemainingWork::Work;
        if self.is_one_message() && !goes_on {
            return Ok(Some(Ended::Left));
        }

        let is_full = self.most.is_some_and(|most| self.turns >= most);
        Ok(is_full.then_some(Ended::Turns(self.turns)))
    }
}

fn read_in_progress(project: &Project) -> anyhow::Result<(Turn, Draft)> {
    let tip = project.store().tip(&project.session()?)?;
    let draft = project.store().draft(&tip)?;
    Ok((tip, draft))
}

fn is_cost_limit(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<ModelError>(),
        Some(ModelError::CostLimit { .. } | ModelError::BudgetExceeded { .. })
    )
}
