//! `teddy resume`

use std::process::ExitCode;

use super::app::App;
use super::execute::{code, json as execute_json, show, tell_conclusion, tell_question};
use super::exit::{self, ExitStatus};
use super::failure::{ANSWER, Unfinished};
use super::plan::{PlanFlags, json as plan_json};
use super::source;
use crate::host::interrupt;
use crate::session::name::SessionName;
use crate::text::counted;
use crate::workflow::model::choose;
use crate::workflow::model::choose::NoModel;
use crate::workflow::model::pipelines;
use crate::workflow::project::Project;
use crate::workflow::resume::{Ended, ResumeOptions, Resumed, resume};
use crate::workflow::user::{NobodyToAsk, Question, User};

/// Continue the session: run the waiting plan, or ask for a message and plan the next one
///
/// Ends when you leave (ctrl-d) or when the model says that the work is done. With --yolo it runs
/// without approval, and stops at a question from the model, at a limit, or at the second corrected
/// plan in a row that is rejected.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy resume\n  teddy resume -m 'now the tests'\n  teddy resume --yolo --max-turns 5 --max-cost 1 -m 'make the tests pass'\n\nExit codes: 0 done, 1 an action failed, 3 plan rejected, 4 recorded, but your files were not updated,\n5 the model waits for your answer, or the work is not finished and nobody goes on"
)]
pub(super) struct Args {
    #[command(flatten)]
    how: LoopFlags,
}

/// How a loop goes.
#[derive(clap::Args)]
pub(super) struct LoopFlags {
    #[command(flatten)]
    wanted: PlanFlags,
    /// Approve every plan
    #[arg(short, long)]
    yes: bool,
    /// Run unattended: approve every plan and keep going
    #[arg(long)]
    yolo: bool,
    /// Stop after this many turns
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,
    /// Stop before the session costs more than this; overrides `limits.cost`
    #[arg(long, value_name = "USD")]
    max_cost: Option<f64>,
}

impl LoopFlags {
    /// Returns a free session name made of the message.
    pub(super) fn session_name(&self, project: &Project) -> anyhow::Result<SessionName> {
        let wanted = SessionName::from_title(self.wanted.message.as_deref().unwrap_or_default());
        project.free_name(wanted)
    }

    /// Asks for the message that a session is called by, where there is none; tells whether there
    /// is one then.
    pub(super) fn ask(&mut self, user: &mut dyn User) -> anyhow::Result<bool> {
        if self.wanted.message.is_none() {
            self.wanted.message = user.ask(&Question::NextTurn {
                session: "new session",
                turn: 1,
            })?;
        }
        Ok(self.wanted.message.is_some())
    }

    /// Reads the message from standard input where it is `-`.
    pub(super) fn read_message(&mut self) -> anyhow::Result<()> {
        self.wanted.message = self
            .wanted
            .message
            .take()
            .map(source::message)
            .transpose()?;
        Ok(())
    }

    /// Makes sure that a new session has what its first plan takes.
    pub(super) fn check(&self, app: &App, project: &Project) -> anyhow::Result<()> {
        if self.wanted.message.is_none() && !app.is_attended() {
            let what = "stdin is not a terminal, so nobody can be asked what to do";
            return Err(NobodyToAsk::new(what, "`-m '<message>'` says it").into());
        }

        let usual = project
            .settings
            .pipeline
            .as_ref()
            .filter(|_| self.wanted.model.is_none());
        if let Some(pipeline) = self.wanted.pipeline.as_ref().or(usual) {
            pipelines::read_pipeline(project, pipeline)?;
            return Ok(());
        }

        let model = self
            .wanted
            .model
            .as_ref()
            .or(project.settings.model.as_ref())
            .ok_or(NoModel::Plan)?;
        choose::model_settings(project, model)?;
        Ok(())
    }
}

/// Goes on.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let mut how = args.how;
    how.read_message()?;
    go(app, project, how)
}

/// Runs the loop of `start` and `resume`, and says what came of each turn as it is recorded.
pub(super) fn go(app: &App, mut project: Project, how: LoopFlags) -> anyhow::Result<ExitCode> {
    let is_alone = !app.is_attended() || how.yolo;
    let wish = ResumeOptions {
        once: !app.is_attended() && !how.yolo,
        message: how.wanted.message,
        yolo: how.yolo,
        max_turns: how.max_turns,
        max_cost: how.max_cost,
        depth: how.wanted.context_depth,
        model: how.wanted.model,
        pipeline: how.wanted.pipeline,
    };

    let mut user = app.user(&project, how.yes || how.yolo);
    let mut turns = Vec::new();
    let resumed = resume(&mut project, &wish, user.as_mut(), &mut |recorded| {
        if app.global.json {
            turns.push(execute_json(recorded));
            return Ok(());
        }
        show(app, recorded)
    });

    drop(user);
    let resumed = resumed.map_err(|error| Unfinished {
        shown: json(&turns, None),
        error,
    })?;
    if app.global.json {
        app.print_json(&json(&turns, Some(&resumed)))?;
    } else {
        tell_end(app, &resumed);
    }

    Ok(code_of(&resumed, is_alone).into())
}

/// Says why the loop ended, where the user cannot know.
fn tell_end(app: &App, resumed: &Resumed) {
    let user_left = resumed.last.as_ref().is_some_and(|last| last.user_left());
    match &resumed.ended {
        // Who left at the question has it on the screen.
        Ended::Question(_) if user_left => {
            app.say(&format!("The model waits for your answer: {ANSWER}."));
        }
        Ended::Question(question) => tell_question(app, question, ANSWER),
        Ended::Complete(said) if resumed.last.is_none() => {
            tell_conclusion(app, said);
            app.say("Next: teddy resume -m '...', if there is more to do");
        }
        ended => stopped(ended).iter().for_each(|why| app.say(why)),
    }
}

/// Returns why a loop stopped, in words, if it was something that stopped it.
fn stopped(ended: &Ended) -> Option<String> {
    Some(match ended {
        Ended::Left | Ended::Complete(_) => return None,
        Ended::Question(_) => "stopped: the model asks you something".to_owned(),
        Ended::Undecided(turn) => format!("Nothing was run; the plan of turn {turn} is waiting."),
        Ended::Overlap => "stopped: the result overlaps with your own edits".to_owned(),
        Ended::Rejected => "stopped: the plan was rejected, and no other plan is waiting".to_owned(),
        Ended::Turns(turns) => format!("stopped after {}", counted(*turns as usize, "turn")),
        Ended::Cost { spent, limit } => {
            format!("stopped: the session has cost ${spent:.2}, and the limit is ${limit:.2}")
        }
        Ended::NextCall(why) => format!("stopped: {why}"),
        Ended::Unfinished => {
            "stopped after one turn: stdin is not a terminal and the work is not finished; `teddy resume --yolo` continues unattended".to_owned()
        }
    })
}

/// Returns the exit code of a loop; `is_alone` tells whether it had no person.
fn code_of(resumed: &Resumed, is_alone: bool) -> ExitStatus {
    if interrupt::requested() {
        return exit::INTERRUPTED;
    }

    let last = resumed.last.as_ref().map_or(exit::DONE, |last| code(last));
    match resumed.ended {
        Ended::Question(_) => exit::WAITS,
        Ended::Turns(_) | Ended::Cost { .. } | Ended::NextCall(_) | Ended::Unfinished
            if is_alone && last == exit::DONE =>
        {
            exit::WAITS
        }
        _ => last,
    }
}

/// Returns the result as JSON; of a loop that failed, what it had done.
fn json(turns: &[serde_json::Value], resumed: Option<&Resumed>) -> serde_json::Value {
    let ended = resumed.map(|resumed| &resumed.ended);
    serde_json::json!({
        "turns": turns,
        "waiting": resumed.and_then(|resumed| resumed.waiting.as_ref()).map(plan_json),
        "question": match ended {
            Some(Ended::Question(question)) => Some(question),
            _ => None,
        },
        "conclusion": match ended {
            Some(Ended::Complete(said)) => Some(said),
            _ => None,
        },
        "stopped": ended.and_then(stopped),
    })
}
