//! Going on with a session: execute what waits, else ask and plan, again and again.

mod left;
mod prompt;
mod rounds;
mod state;

use self::state::Rounds;
use crate::workflow::context::message::keep_message;
use crate::workflow::execute::result::RecordedTurn;
use crate::workflow::plan::WaitingPlan;
use crate::workflow::project::Project;
use crate::workflow::user::User;

/// How many corrections in a row may be rejected before a loop without a person stops.
const YOLO_REPLANS: u32 = 2;

/// What is wanted of a loop.
#[derive(Debug, Clone, Default)]
pub struct ResumeOptions {
    /// The first message.
    pub message: Option<String>,
    /// Goes on without a person, until a question, a limit, or a second rejected correction in a
    /// row.
    pub yolo: bool,
    /// Nobody can be asked for a message: the loop ends where the model has nothing left to do.
    pub alone: bool,
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
    /// The user left, or nothing is left to do and nobody can be asked.
    Left,
    /// The model called the work done, with these words.
    Complete(String),
    /// The model waits for the answer to this question.
    Question(String),
    /// The user left the plan of this turn undecided.
    Undecided(u64),
    /// The plan of this turn has words beside a command, and nobody weighed them; it waits.
    InDoubt(u64),
    /// The result of the last turn meets the user's own edits.
    Overlap,
    /// The plan was rejected, and no other one waits.
    Rejected,
    /// The model wrote the plan of the turn before once more; it waits.
    Repeated,
    /// So many turns were run.
    Turns(u32),
    /// The session has cost as much as it may, in dollars.
    Cost {
        /// What it has cost.
        spent: f64,
        /// What it may cost.
        limit: f64,
    },
    /// The model could not be asked to go on; why, in words.
    NextCall(String),
}

/// What stands around a loop: it hears of each turn, and does what is typed at the prompt in place
/// of a message.
pub trait Console {
    /// Hears of a turn as soon as it is recorded.
    ///
    /// # Errors
    /// Where it cannot be told.
    fn recorded(&mut self, turn: &RecordedTurn) -> anyhow::Result<()>;

    /// Takes what was typed at the prompt; a command is done at once.
    ///
    /// # Errors
    /// Where the terminal is gone.
    fn typed(&mut self, project: &mut Project, text: String) -> anyhow::Result<Typed>;
}

/// What became of what was typed at the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// It is a message for the model.
    Message(String),
    /// It was a command, and it is done.
    Done,
    /// This model answers from now on.
    Model(String),
    /// The user leaves.
    Leave,
}

/// Goes on with the session in use until the user leaves, the work is done, or an unattended loop
/// ends.
///
/// # Errors
/// Where planning or executing fails; the turns before it are recorded, and `console` knows them.
pub fn resume(
    project: &mut Project,
    wish: ResumeOptions,
    user: &mut dyn User,
    console: &mut dyn Console,
) -> anyhow::Result<Resumed> {
    project.settings.limits.cost = wish.max_cost.unwrap_or(project.settings.limits.cost);
    if wish.yolo {
        project.settings.replan.max = project.settings.replan.max.min(YOLO_REPLANS);
    }

    let mut rounds = Rounds::new(project, wish, user);
    let ended = rounds.run(user, console);
    let Rounds {
        message,
        last,
        waiting,
        ..
    } = rounds;
    let kept = keep_message(project, message, user);
    // What ended the loop matters more.
    let ended = ended?;
    kept?;

    Ok(Resumed {
        last,
        waiting,
        ended,
    })
}
