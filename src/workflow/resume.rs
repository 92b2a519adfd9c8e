//! Going on with a session: execute what waits, else ask and plan, again and again.

use crate::model::ModelError;
use crate::plan::run::{Effect, Ending};
use crate::session::draft::Draft;
use crate::session::meta::{MessageOrigin, Status};
use crate::session::turn::Turn;
use crate::workflow::context::message::{MessageCancelled, Unanswered, keep_message};
use crate::workflow::execute::result::{RecordedTurn, ReviewedPlan, TurnEnding};
use crate::workflow::execute::{ExecuteOptions, execute};
use crate::workflow::model::budget;
use crate::workflow::plan::{PlanOptions, WaitingPlan, plan};
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// How many corrections in a row may be rejected before a loop without a person stops.
const YOLO_REPLANS: u32 = 2;
/// What the model is told where nobody says what comes next.
const GO_ON: &str = "Continue with the next step.";

/// What is wanted of a loop.
#[derive(Debug, Clone, Default)]
pub struct ResumeOptions {
    /// The first message.
    pub message: Option<String>,
    /// Goes on without a person, until a question, a limit, or a second rejected correction in a
    /// row.
    pub yolo: bool,
    /// One turn is all, because nobody can be asked for the next message.
    pub once: bool,
    /// The most turns.
    pub max_turns: Option<u32>,
    /// The most dollars of the session, in place of the configured limit.
    pub max_cost: Option<f64>,
    /// How many turns before the previous one the model sees.
    pub depth: u64,
    /// The model.
    pub model: Option<String>,
    /// The pipeline; the configured one, if there is one, without it.
    pub pipeline: Option<String>,
}

/// What came of a loop.
#[derive(Debug, Clone)]
pub struct Resumed {
    /// The last turn that was executed.
    pub last: Option<Box<RecordedTurn>>,
    /// The plan that waits at the end.
    pub waiting: Option<WaitingPlan>,
    /// Why it ended.
    pub ended: Ended,
}

/// Why a loop ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// The user left, or the one turn that was wanted is recorded.
    Left,
    /// The model called the work done, with these words.
    Complete(String),
    /// The model waits for the answer to this question.
    Question(String),
    /// The user left the plan of this turn undecided.
    Undecided(u64),
    /// The result of the last turn meets the user's own edits.
    Overlap,
    /// The plan was rejected, and no other one waits.
    Rejected,
    /// So many turns were run.
    Turns(u32),
    /// The session has cost as much as it may, in dollars.
    Cost {
        /// What it has cost.
        spent: f64,
        /// What it may cost.
        limit: f64,
    },
    /// The next call of the model would cost more than is left; why, in words.
    NextCall(String),
    /// Nobody goes on behind the one turn that was run, and its plan did not do the work yet.
    Unfinished,
}

/// Hears of each turn as soon as it is recorded.
pub type Heard<'a> = &'a mut dyn FnMut(&RecordedTurn) -> anyhow::Result<()>;

/// Goes on with the session in use until the user leaves, the work is done, or an unattended loop
/// ends.
///
/// # Errors
/// Where planning or executing fails; the turns before it are recorded, and `heard` knows them.
pub fn resume(
    project: &mut Project,
    wish: &ResumeOptions,
    user: &mut dyn User,
    heard: Heard<'_>,
) -> anyhow::Result<Resumed> {
    project.settings.limits.cost = wish.max_cost.unwrap_or(project.settings.limits.cost);
    if wish.yolo {
        project.settings.replan.max = project.settings.replan.max.min(YOLO_REPLANS);
    }

    let mut rounds = Rounds {
        most: wish
            .max_turns
            .or(wish.yolo.then_some(project.settings.limits.turns)),
        project,
        wish,
        message: wish.message.clone(),
        turns: 0,
        last: None,
        waiting: None,
    };
    let ended = rounds.run(user, heard)?;
    let Rounds {
        message,
        last,
        waiting,
        ..
    } = rounds;
    keep_message(project, message, user)?;

    Ok(Resumed {
        last,
        waiting,
        ended,
    })
}

/// A loop under way.
struct Rounds<'a> {
    /// The project.
    project: &'a mut Project,
    /// What is wanted.
    wish: &'a ResumeOptions,
    /// The most turns.
    most: Option<u32>,
    /// What the user said that no plan was made for yet.
    message: Option<String>,
    /// How many turns were executed.
    turns: u32,
    /// The last of them.
    last: Option<Box<RecordedTurn>>,
    /// The plan that waits.
    waiting: Option<WaitingPlan>,
}

impl Rounds<'_> {
    /// Plans and executes until something ends it; says what.
    fn run(&mut self, user: &mut dyn User, heard: Heard<'_>) -> anyhow::Result<Ended> {
        loop {
            if let Some(ended) = self.plan_where_none_waits(user)? {
                return Ok(ended);
            }

            let recorded = match self.execute(user)? {
                ReviewedPlan::Undecided(plan) => return Ok(Ended::Undecided(plan.turn)),
                ReviewedPlan::Recorded(recorded) => recorded,
            };
            heard(&recorded)?;

            let ended = self.why_stop(&recorded)?;
            self.last = Some(recorded);
            if let Some(ended) = ended {
                return Ok(ended);
            }
        }
    }

    /// Makes the next plan, unless one waits; says why there is none.
    fn plan_where_none_waits(&mut self, user: &mut dyn User) -> anyhow::Result<Option<Ended>> {
        let (tip, draft) = in_progress(self.project)?;
        if draft.is_planned() {
            return Ok(None);
        }

        let waiting = draft
            .waiting_message()
            .filter(|(_, origin)| *origin != MessageOrigin::Loop);
        let is_asked = self.message.is_some() || waiting.is_some();
        let conclusion = tip.conclusion(&self.project.repository)?;
        if let Some(said) = conclusion.filter(|_| !is_asked) {
            return Ok(Some(Ended::Complete(said)));
        }

        // Words that nobody said are no answer.
        let is_question = tip.question(&self.project.repository)?.is_some();
        let (message, origin) = match self.message.take() {
            None if self.wish.yolo && !is_asked && !is_question => {
                (Some(GO_ON.to_owned()), MessageOrigin::Loop)
            }
            message => (message, MessageOrigin::User),
        };

        let wanted = PlanOptions {
            message,
            model: self.wish.model.clone(),
            pipeline: self.wish.pipeline.clone(),
            depth: self.wish.depth,
            origin,
            from: None,
            work: None,
        };
        match plan(self.project, &wanted, user) {
            Ok(planned) => {
                self.waiting = Some(planned);
                Ok(None)
            }
            Err(error) => self.why_no_plan(error).map(Some),
        }
    }

    /// Returns why a loop ends that has no plan, where that is not a failure.
    fn why_no_plan(&self, error: anyhow::Error) -> anyhow::Result<Ended> {
        if error.is::<MessageCancelled>() {
            return Ok(Ended::Left);
        }

        if let Some(Unanswered(question)) = error.downcast_ref() {
            return Ok(Ended::Question(question.clone()));
        }

        if self.wish.yolo && is_cost_limit(&error) {
            return Ok(Ended::NextCall(format!("{error:#}")));
        }

        Err(error)
    }

    /// Executes the plan that waits.
    fn execute(&mut self, user: &mut dyn User) -> anyhow::Result<ReviewedPlan> {
        let options = ExecuteOptions {
            replan: true,
            model: self.wish.model.clone(),
            yolo: self.wish.yolo,
        };
        let reviewed = execute(self.project, &options, user)?;
        let ReviewedPlan::Recorded(recorded) = &reviewed else {
            return Ok(reviewed);
        };

        if let Some(instead) = recorded.instead() {
            // What the user says now comes before what they said earlier.
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

    /// Returns why the loop ends after a turn, if it does.
    fn why_stop(&self, recorded: &RecordedTurn) -> anyhow::Result<Option<Ended>> {
        if recorded.interruption().is_some() {
            return Ok(Some(Ended::Left));
        }

        if !recorded.overlaps.is_empty() {
            return Ok(Some(Ended::Overlap));
        }

        if let Some(question) = recorded.unanswered() {
            return Ok(Some(Ended::Question(question.to_owned())));
        }

        if recorded.user_left() {
            return Ok(Some(Ended::Left));
        }

        if let Some(said) = recorded.conclusion() {
            return Ok(Some(Ended::Complete(said.to_owned())));
        }

        if self.wish.yolo
            && let Some(ended) = self.why_stop_alone(recorded)?
        {
            return Ok(Some(ended));
        }
        if self.wish.once {
            return Ok(Some(if is_unfinished(recorded) {
                Ended::Unfinished
            } else {
                Ended::Left
            }));
        }

        let is_full = self.most.is_some_and(|most| self.turns >= most);
        Ok(is_full.then_some(Ended::Turns(self.turns)))
    }

    /// Returns why a loop without a person ends after a turn.
    fn why_stop_alone(&self, recorded: &RecordedTurn) -> anyhow::Result<Option<Ended>> {
        let is_rejected = matches!(
            recorded.ending,
            TurnEnding::Rejected {
                replanned: None,
                ..
            }
        );
        if is_rejected {
            return Ok(Some(Ended::Rejected));
        }

        let (tip, draft) = in_progress(self.project)?;
        let (spent, limit) = (
            budget::spent(self.project, &tip, &draft)?,
            self.project.settings.limits.cost,
        );
        Ok((spent >= limit).then_some(Ended::Cost { spent, limit }))
    }
}

/// Returns whether a turn's plan shows that the work goes on behind it: it only looked, or handed
/// over.
fn is_unfinished(recorded: &RecordedTurn) -> bool {
    let outcomes = recorded.ending.outcomes();
    let done = recorded
        .plan
        .actions
        .iter()
        .zip(outcomes)
        .filter(|(_, outcome)| outcome.ending == Ending::Success);
    let hands_over = outcomes.iter().any(|outcome| {
        matches!(
            outcome.effect,
            Some(Effect::Invoke { .. } | Effect::Conclude { .. })
        )
    });

    let worked = done.clone().any(|(action, _)| action.kind.changes_files());
    recorded.status() == Status::Executed && (hands_over || !worked)
}

/// Returns the newest turn and the turn in progress.
fn in_progress(project: &Project) -> anyhow::Result<(Turn, Draft)> {
    let tip = project.store().tip(&project.session()?)?;
    let draft = project.store().draft(&tip)?;
    Ok((tip, draft))
}

/// Returns whether the session has no money left.
fn is_cost_limit(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<ModelError>(),
        Some(ModelError::CostLimit { .. })
    )
}
