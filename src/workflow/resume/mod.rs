//! `resume`: executes the waiting plan, or prompts and plans, in a loop.

mod prompt;
mod remaining;
mod resume_loop;
mod state;

use self::state::ResumeLoop;
use crate::workflow::context::message::keep_message;
use crate::workflow::execute::result::RecordedTurn;
use crate::workflow::plan::WaitingPlan;
use crate::workflow::project::Project;
use crate::workflow::user::User;

const YOLO_REPLANS: u32 = 2;

/// Options of the loop.
#[derive(Debug, Clone, Default)]
pub struct ResumeOptions {
    /// The first message.
    pub message: Option<String>,
    /// Run without reviews until a question, a limit, or too many rejected corrections.
    pub yolo: bool,
    /// No user can be prompted: end when the model has nothing left to do.
    pub alone: bool,
    /// Limit for turns.
    pub max_turns: Option<u32>,
    /// Cost limit of the session in dollars, instead of the configured one.
    pub max_cost: Option<f64>,
    /// How many turns before the previous one the model sees.
    pub depth: u64,
    /// The model.
    pub model: Option<String>,
    /// The pipeline; `None` for the configured one.
    pub pipeline: Option<String>,
}

/// Result of the loop.
#[derive(Debug, Clone)]
pub struct Resumed {
    /// The last executed turn.
    pub last: Option<Box<RecordedTurn>>,
    /// The plan that is waiting at the end.
    pub waiting: Option<WaitingPlan>,
    /// Why it ended.
    pub ended: Ended,
}

/// Why a loop ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// The user left, or nothing is left to do and no user can be prompted.
    Left,
    /// The model concluded the work, with this summary.
    Complete(String),
    /// The model asked this question.
    Question(String),
    /// The user left the plan of this turn undecided.
    Undecided(u64),
    /// The plan has text next to a command that no user has judged. It waits.
    InDoubt(u64),
    /// The result of the last turn meets the user's own edits.
    Overlap,
    /// The plan was rejected and there is no correction.
    Rejected,
    /// The model wrote the same plan as in the previous turn. It is waiting.
    Repeated,
    /// The limit for turns was reached.
    Turns(u32),
    /// The cost limit of the session was reached.
    Cost {
        /// Cost so far, in dollars.
        used: f64,
        /// The limit, in dollars.
        limit: f64,
    },
    /// The model could not be asked to continue, for this reason.
    NextCall(String),
}

/// The surroundings of the loop: output of turns, and commands typed at the prompt.
pub trait Console {
    /// Called for each recorded turn.
    fn recorded(&mut self, turn: &RecordedTurn) -> anyhow::Result<()>;

    /// Handles input at the prompt. A command is executed at once.
    fn typed(&mut self, project: &mut Project, text: String) -> anyhow::Result<Typed>;
}

/// Result of input at the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// A message for the model.
    Message(String),
    /// A command, which was executed.
    Done,
    /// Use this model from now on.
    Model(String),
    /// Leave the loop.
    Leave,
}

/// Runs the loop in the current session until the user leaves, the work is complete, or a limit is
/// reached.
pub fn resume(
    project: &mut Project,
    options: ResumeOptions,
    user: &mut dyn User,
    console: &mut dyn Console,
) -> anyhow::Result<Resumed> {
    project.settings.limits.cost = options.max_cost.unwrap_or(project.settings.limits.cost);
    if options.yolo {
        project.settings.replan.max = project.settings.replan.max.min(YOLO_REPLANS);
    }

    let mut resume_loop = ResumeLoop::new(project, options, user);
    let ended = resume_loop.run(user, console);
    let ResumeLoop {
        message,
        last,
        waiting,
        ..
    } = resume_loop;
    let saved = keep_message(project, message, user);
    // The error of the loop takes precedence.
    let ended = ended?;
    saved?;

    Ok(Resumed {
        last,
        waiting,
        ended,
    })
}
