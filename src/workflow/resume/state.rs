//! State of the loop between two turns.

use super::{Ended, ResumeOptions};
use crate::session::meta::MessageOrigin;
use crate::workflow::execute::result::RecordedTurn;
use crate::workflow::plan::WaitingPlan;
use crate::workflow::project::Project;
use crate::workflow::user::User;

const CONTINUE_MESSAGE: &str = "Continue with the next step.";

pub(super) enum NextStep {
    /// Make a plan from this message, or from the one in the draft.
    Plan(Option<String>, MessageOrigin),
    /// The input was handled and can have changed the session. Decide again.
    Again,
    End(Ended),
}

impl NextStep {
    pub(super) fn go_on() -> NextStep {
        NextStep::Plan(Some(CONTINUE_MESSAGE.to_owned()), MessageOrigin::Loop)
    }
}

pub(super) struct ResumeLoop<'a> {
    pub(super) project: &'a mut Project,
    pub(super) options: ResumeOptions,
    /// Plans run without a review.
    pub(super) unseen: bool,
    pub(super) most: Option<u32>,
    /// A message that no plan was made from yet.
    pub(super) message: Option<String>,
    pub(super) turns: u32,
    pub(super) last: Option<Box<RecordedTurn>>,
    pub(super) waiting: Option<WaitingPlan>,
}

impl<'a> ResumeLoop<'a> {
    /// Creates a loop. Without a review, `limits.turns` applies.
    pub(super) fn new(
        project: &'a mut Project,
        mut options: ResumeOptions,
        user: &dyn User,
    ) -> ResumeLoop<'a> {
        let unseen = options.yolo || user.approves_unseen();
        let limit = unseen.then_some(project.settings.limits.turns);
        ResumeLoop {
            most: options.max_turns.or(limit),
            message: options.message.take(),
            project,
            options,
            unseen,
            turns: 0,
            last: None,
            waiting: None,
        }
    }

    /// Returns `true` if the loop ends with the given message, because no user can enter another
    /// one.
    pub(super) fn is_one_message(&self) -> bool {
        self.options.alone && !self.options.yolo
    }
}
