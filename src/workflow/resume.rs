//! Going on with a session: execute what waits, else ask and plan, again and again.

use crate::session::meta::{Origin, Status};
use crate::workflow::execute::{Executed, Wish as ExecuteWish, execute};
use crate::workflow::plan::{Left, Planned, Wish as PlanWish, plan};
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};

/// What is wanted of a loop.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// The first message.
    pub message: Option<String>,
    /// Goes on without a person, until a question, a limit, or a second rejected correction.
    pub yolo: bool,
    /// The most turns.
    pub max_turns: Option<u32>,
    /// The most dollars of this call.
    pub max_cost: Option<f64>,
    /// How many turns before the previous one the model sees.
    pub depth: u64,
    /// The model.
    pub model: Option<String>,
}

/// What came of a loop.
#[derive(Debug, Clone, Default)]
pub struct Resumed {
    /// The turns that were executed.
    pub executed: Vec<Executed>,
    /// The plan that waits at the end.
    pub waiting: Option<Planned>,
}

/// Goes on with the session in use until the user leaves, or an unattended loop ends.
///
/// # Errors
/// Where planning or executing fails.
pub fn resume(project: &mut Project, wish: &Wish, user: &mut dyn User) -> anyhow::Result<Resumed> {
    let mut resumed = Resumed::default();
    let mut message = wish.message.clone();
    let most = if wish.yolo { wish.max_turns.unwrap_or(project.settings.limits.turns) } else { wish.max_turns.unwrap_or(u32::MAX) };
    let mut turns = 0;
    while turns < most {
        if !is_planned(project)? {
            match plan_next(project, wish, message.take(), user) {
                Ok(planned) => resumed.waiting = Some(planned),
                Err(error) if error.is::<Left>() => return Ok(resumed),
                Err(error) => return Err(error),
            }
        }
        let before = resumed.executed.len();
        let executed = execute(project, &ExecuteWish { plan: None, replan: true, model: wish.model.clone() }, user)?;
        let stop = judge(project, wish, &executed, &resumed)?;
        message = executed.instead.clone();
        if executed.commit.is_some() {
            resumed.waiting = executed.replanned.clone();
            resumed.executed.push(executed);
        }
        if let Some(why) = stop {
            user.tell(Event::Note(&why));
            return Ok(resumed);
        }
        if resumed.executed.len() == before {
            return Ok(resumed);
        }
        turns += 1;
    }
    user.tell(Event::Note(&format!("stopped after {}", crate::text::counted(most as usize, "turn"))));
    Ok(resumed)
}

/// Returns whether a plan waits.
fn is_planned(project: &Project) -> anyhow::Result<bool> {
    let tip = project.store().tip(&project.session()?)?;
    Ok(project.store().draft(&tip)?.is_planned())
}

/// Plans the next turn; an unattended loop goes on from the report by itself.
fn plan_next(project: &Project, wish: &Wish, message: Option<String>, user: &mut dyn User) -> anyhow::Result<Planned> {
    let message = match message {
        None if wish.yolo && waiting_message(project)?.is_none() => Some("Continue with the next step.".to_owned()),
        message => message,
    };
    let plan_wish = PlanWish { message, model: wish.model.clone(), depth: wish.depth, origin: Origin::User, ..PlanWish::default() };
    plan(project, &plan_wish, user)
}

/// Returns the message that waits in the draft, the answer to a question of the model say.
fn waiting_message(project: &Project) -> anyhow::Result<Option<String>> {
    let tip = project.store().tip(&project.session()?)?;
    let text = project.store().draft(&tip)?.artifacts.text_or_empty(crate::session::artifact::USER_PROMPT);
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// Returns why the loop ends after a turn, if it does.
fn judge(project: &Project, wish: &Wish, executed: &Executed, resumed: &Resumed) -> anyhow::Result<Option<String>> {
    if executed.interrupted {
        return Ok(Some("interrupted".to_owned()));
    }
    if !executed.overlaps.is_empty() {
        return Ok(Some("stopped: the result overlaps with your own edits".to_owned()));
    }
    if !wish.yolo {
        return Ok(None);
    }
    if executed.outcomes.iter().any(|outcome| matches!(outcome.effect, Some(crate::plan::run::Effect::Chat { .. }))) {
        return Ok(Some("stopped: the model asks you something; `teddy show` has it, `teddy resume -m` answers".to_owned()));
    }
    let rejected = |executed: &Executed| executed.status == Some(Status::Rejected);
    if rejected(executed) && (executed.replanned.is_none() || resumed.executed.last().is_some_and(rejected)) {
        return Ok(Some("stopped: two plans in a row were rejected".to_owned()));
    }
    let spent = project.spent()?;
    let limit = wish.max_cost.unwrap_or(project.settings.limits.cost);
    if spent >= limit {
        return Ok(Some(format!("stopped: the session has cost ${spent:.2}, and the limit is ${limit:.2}")));
    }
    Ok(None)
}

impl Project {
    /// Returns what the session in use has cost, in dollars; turns without a known price count as nothing.
    ///
    /// # Errors
    /// Where the repository cannot be read.
    pub fn spent(&self) -> anyhow::Result<f64> {
        let tip = self.store().tip(&self.session()?)?;
        let mut sum = 0.0;
        for turn in self.store().history(tip) {
            sum += turn?.meta.model.and_then(|model| model.cost).unwrap_or(0.0);
        }
        Ok(sum)
    }
}
