//! Going on with a session: execute what waits, else ask and plan, again and again.

use crate::model::ModelError;
use crate::session::artifact;
use crate::session::meta::{Origin, Status};
use crate::session::store::Draft;
use crate::session::turn::Turn;
use crate::workflow::execute::{Asked, Executed, Wish as ExecuteWish, execute};
use crate::workflow::plan::{Left, Planned, Wish as PlanWish, plan, without_keys};
use crate::workflow::project::Project;
use crate::workflow::user::{Event, User};

/// How many corrections in a row may be rejected before a loop without a person stops.
const YOLO_REPLANS: u32 = 2;
/// What the model is told where nobody says what comes next.
const GO_ON: &str = "Continue with the next step.";

/// What is wanted of a loop.
#[derive(Debug, Clone, Default)]
pub struct Wish {
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
#[derive(Debug, Clone, Default)]
pub struct Resumed {
    /// How many turns were executed.
    pub turns: u32,
    /// The last of them.
    pub last: Option<Executed>,
    /// The plan that waits at the end.
    pub waiting: Option<Planned>,
}

/// Hears of each turn as soon as it is recorded.
pub type Heard<'a> = &'a mut dyn FnMut(&Executed) -> anyhow::Result<()>;

/// Goes on with the session in use until the user leaves, or an unattended loop ends.
///
/// # Errors
/// Where planning or executing fails; the turns before it are recorded, and `heard` knows them.
pub fn resume(
    project: &mut Project,
    wish: &Wish,
    user: &mut dyn User,
    heard: Heard<'_>,
) -> anyhow::Result<Resumed> {
    let most = wish
        .max_turns
        .or(wish.yolo.then_some(project.settings.limits.turns));
    project.settings.limits.cost = wish.max_cost.unwrap_or(project.settings.limits.cost);
    if wish.yolo {
        project.settings.replan.max = project.settings.replan.max.min(YOLO_REPLANS);
    }
    let mut message = wish.message.clone();
    let mut resumed = Resumed::default();
    let why = loop {
        match step(project, wish, (&mut message, &mut resumed), user)? {
            Step::Turn(executed) => {
                heard(&executed)?;
                let stop = why_stop(project, wish, &executed)?;
                resumed.last = Some(*executed);
                if let Some(why) = stop {
                    break why;
                }
            }
            Step::End(why) => break why,
        }
        if wish.once {
            break String::new();
        }
        if most.is_some_and(|most| resumed.turns >= most) {
            break format!(
                "stopped after {}",
                crate::text::counted(resumed.turns as usize, "turn")
            );
        }
    };
    if !why.is_empty() {
        user.tell(Event::Note(&why));
    }
    keep_message(project, message, user)?;
    Ok(resumed)
}

/// One round of the loop.
enum Step {
    /// A turn was recorded.
    Turn(Box<Executed>),
    /// There is nothing more to do, and why, where that is not plain to the user.
    End(String),
}

/// Plans where no plan waits, and executes.
fn step(
    project: &mut Project,
    wish: &Wish,
    (message, resumed): (&mut Option<String>, &mut Resumed),
    user: &mut dyn User,
) -> anyhow::Result<Step> {
    if !in_progress(project)?.1.is_planned() {
        match plan_next(project, wish, message.take(), user) {
            Ok(planned) => resumed.waiting = Some(planned),
            Err(error) if error.is::<Left>() => return Ok(Step::End(String::new())),
            Err(error) if wish.yolo && is_cost_limit(&error) => {
                return Ok(Step::End(format!("stopped: {error:#}")));
            }
            Err(error) => return Err(error),
        }
    }
    let executed = execute(
        project,
        &ExecuteWish {
            plan: None,
            replan: true,
            model: wish.model.clone(),
        },
        user,
    )?;
    if executed.commit.is_none() {
        return Ok(Step::End(format!(
            "Nothing was run; the plan of turn {} waits.",
            executed.turn
        )));
    }
    if let Some(instead) = &executed.instead {
        // What the user says now comes before what they said earlier.
        let later = message
            .take()
            .map(|later| format!("\n\n{later}"))
            .unwrap_or_default();
        *message = Some(format!("{instead}{later}"));
    }
    resumed.turns += 1;
    resumed.waiting.clone_from(&executed.replanned);
    Ok(Step::Turn(Box::new(executed)))
}

/// Returns the newest turn and the turn in progress.
fn in_progress(project: &Project) -> anyhow::Result<(Turn, Draft)> {
    let tip = project.store().tip(&project.session()?)?;
    let draft = project.store().draft(&tip)?;
    Ok((tip, draft))
}

/// Plans the next turn; an unattended loop goes on from the report by itself.
fn plan_next(
    project: &Project,
    wish: &Wish,
    message: Option<String>,
    user: &mut dyn User,
) -> anyhow::Result<Planned> {
    let waits = !in_progress(project)?
        .1
        .artifacts
        .text_or_empty(artifact::USER_PROMPT)
        .trim()
        .is_empty();
    let (message, origin) = match message {
        None if wish.yolo && !waits => (Some(GO_ON.to_owned()), Origin::Loop),
        message => (message, Origin::User),
    };
    let (model, pipeline) = (wish.model.clone(), wish.pipeline.clone());
    plan(
        project,
        &PlanWish {
            message,
            model,
            pipeline,
            depth: wish.depth,
            origin,
            from: None,
        },
        user,
    )
}

/// Returns whether the session has no money left.
fn is_cost_limit(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<ModelError>(),
        Some(ModelError::CostLimit { .. })
    )
}

/// Returns why the loop ends after a turn, if it does; nothing to say is an empty text.
fn why_stop(project: &Project, wish: &Wish, executed: &Executed) -> anyhow::Result<Option<String>> {
    let because = |why: &str| Ok(Some(why.to_owned()));
    if executed.interrupted || executed.asked == Some(Asked::Left) {
        return because("");
    }
    if !executed.overlaps.is_empty() {
        return because("stopped: the result overlaps with your own edits");
    }
    if !wish.yolo {
        return Ok(None);
    }
    if executed.asked == Some(Asked::Nobody) {
        return because(
            "stopped: the model asks you something; `teddy show` has it, `teddy resume -m` answers",
        );
    }
    if executed.status == Some(Status::Rejected) && executed.replanned.is_none() {
        return because("stopped: the plan was rejected, and no other one waits");
    }
    let (tip, draft) = in_progress(project)?;
    let (spent, limit) = (project.spent(&tip, &draft)?, project.settings.limits.cost);
    Ok((spent >= limit).then(|| {
        format!("stopped: the session has cost ${spent:.2}, and the limit is ${limit:.2}")
    }))
}

/// Keeps a message that no turn has used yet, where no plan stands before it.
fn keep_message(
    project: &Project,
    message: Option<String>,
    user: &mut dyn User,
) -> anyhow::Result<()> {
    let Some(message) = message.filter(|message| !message.trim().is_empty()) else {
        return Ok(());
    };
    let (tip, mut draft) = in_progress(project)?;
    if draft.is_planned() {
        user.tell(Event::Warning(
            "your message was not used, because a plan waits before it",
        ));
        return Ok(());
    }
    let _session_lock = project.lock_session(&tip.session, "resume")?;
    draft
        .artifacts
        .put(artifact::USER_PROMPT, without_keys(message, user));
    project.store().save_draft(&tip, &mut draft)?;
    user.tell(Event::Note("your message is kept for the next turn"));
    Ok(())
}
