//! What a loop knows between its turns, and what comes before the next one.

use super::{Ended, ResumeOptions};
use crate::session::meta::MessageOrigin;
use crate::workflow::execute::result::RecordedTurn;
use crate::workflow::plan::WaitingPlan;
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// What the model is told where nobody says what comes next.
const GO_ON: &str = "Continue with the next step.";

/// What comes before the next plan.
pub(super) enum NextStep {
    /// A plan is made from this message; without one, from the message that waits.
    Plan(Option<String>, MessageOrigin),
    /// Something was done that may have moved the session: look again.
    Again,
    /// The loop ends.
    End(Ended),
}

impl NextStep {
    /// Returns the step of a loop in which nobody says anything.
    pub(super) fn go_on() -> NextStep {
        NextStep::Plan(Some(GO_ON.to_owned()), MessageOrigin::Loop)
    }
}

/// A loop under way.
pub(super) struct Rounds<'a> {
    /// The project.
    pub(super) project: &'a mut Project,
    /// What is wanted.
    pub(super) wish: ResumeOptions,
    /// Whether plans are approved without a look at them.
    pub(super) unseen: bool,
    /// The most turns.
    pub(super) most: Option<u32>,
    /// What the user said that no plan was made for yet.
    pub(super) message: Option<String>,
    /// How many turns were executed.
    pub(super) turns: u32,
    /// The last of them.
    pub(super) last: Option<Box<RecordedTurn>>,
    /// The plan that waits.
    pub(super) waiting: Option<WaitingPlan>,
}

impl<'a> Rounds<'a> {
    /// Returns a loop that has done nothing yet.
    pub(super) fn new(
        project: &'a mut Project,
        mut wish: ResumeOptions,
        user: &dyn User,
    ) -> Rounds<'a> {
        let unseen = wish.yolo || user.approves_unseen();
        let limit = unseen.then_some(project.settings.limits.turns);
        Rounds {
            most: wish.max_turns.or(limit),
            message: wish.message.take(),
            project,
            wish,
            unseen,
            turns: 0,
            last: None,
            waiting: None,
        }
    }

    /// Tells whether one message is all that is wanted: nobody says another one.
    pub(super) fn is_one_message(&self) -> bool {
        self.wish.alone && !self.wish.yolo
    }
}
