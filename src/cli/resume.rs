//! `teddy resume`: continues the session.

use super::app::App;
use super::begin::begin_session_or_hand_to;
use super::execute::{code, in_doubt, note_replanned, report_conclusion, report_question};
use super::exit::{self, ExitStatus};
use super::failure::{ANSWER, Unfinished};
use super::number;
use super::plan::{PlanFlags, json as plan_json};
use super::prompt::{LoopConsole, message};
use super::request::RequestFlags;
use crate::host::interrupt;
use crate::project::{NoSession, Project};
use crate::text::counted;
use crate::workflow::resume::{Ended, ResumeOptions, Resumed, resume};

/// Continue: run the pending plan, or ask for the next one
///
/// Continues until you leave (ctrl-d). If the model has only read files, or something failed, press
/// enter to let it continue, or pass -y. With --yolo it runs without approval until the model
/// reports that the work is done, and stops at a question from the model, at a limit, or at the
/// second corrected plan in a row that is rejected. Starts a session if there is none.
///
/// At the prompt, /help lists commands such as /undo, /add and /land; !COMMAND runs a command; and
/// @FILE shows the model a file.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy resume\n  teddy resume 'now the tests'\n  teddy 'now the tests'                 the same\n  teddy resume -y 'rename it' src/     approve every plan, and stop once it is done\n  teddy resume --yolo --max-turns 5 --max-cost 1 'make the tests pass'\n\nExit codes: 0 done, 1 an action failed, 3 plan rejected, 4 recorded, but your files were not updated,\n5 the model waits for your answer, or the work is not finished"
)]
pub(super) struct Args {
    /// What you want, then files to show the model
    #[arg(value_name = "TEXT|FILE", value_hint = clap::ValueHint::AnyPath)]
    words: Vec<String>,
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    how: LoopFlags,
}

/// How a loop goes.
#[derive(clap::Args)]
pub(super) struct LoopFlags {
    #[command(flatten)]
    pub wanted: PlanFlags,
    /// Approve every plan
    #[arg(short, long)]
    yes: bool,
    /// Run unattended: approve every plan and keep going
    #[arg(long)]
    yolo: bool,
    /// Stop after this many turns
    #[arg(long, value_name = "N", value_parser = number::turns::<u32>)]
    max_turns: Option<u32>,
    /// Stop before the session costs more than this; overrides `limits.cost`
    #[arg(long, value_name = "USD", value_parser = number::dollars)]
    max_cost: Option<f64>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let mut project = app.project()?;
    let how = args.how;
    let request = args.request.read(app, &project, args.words)?;
    if matches!(project.session(), Err(error) if error.is::<NoSession>()) {
        app.ensure_model(&mut project, how.wanted.model_or_pipeline())?;
        how.wanted.check(&project)?;
    } else {
        app.ensure_model_to_resume(&mut project, how.wanted.model_or_pipeline())?;
    }

    let title = request.message.as_deref().unwrap_or_default();
    begin_session_or_hand_to(app, &mut project, title, how.wanted.agent.as_deref())?;
    request.show_files(app, &project)?;
    run_loop(app, project, request.message, how)
}

/// Runs the loop of `start` and `resume`, and prints each turn when it is recorded.
pub(super) fn run_loop(
    app: &App,
    mut project: Project,
    message: Option<String>,
    how: LoopFlags,
) -> anyhow::Result<ExitStatus> {
    let is_alone = !app.is_attended() || how.yolo;
    let options = ResumeOptions {
        alone: !app.is_attended(),
        message,
        yolo: how.yolo,
        max_turns: how.max_turns,
        max_cost: how.max_cost,
        depth: how.wanted.context_depth,
        model: how.wanted.model,
        pipeline: how.wanted.pipeline,
    };

    let mut user = app.helped_user(&project, how.yes || how.yolo, message::help(app));
    let mut console = LoopConsole::new(app, !is_alone);
    let resumed = resume(&mut project, options, user.as_mut(), &mut console);

    drop(user);
    let turns = console.turns;
    let resumed = resumed.map_err(|error| {
        let partial = json(&turns, None);
        Unfinished { partial, error }
    })?;
    if app.global.json {
        app.print_json(&json(&turns, Some(&resumed)))?;
    } else {
        report_end(app, &resumed)?;
    }

    Ok(code_of(&resumed, is_alone))
}

/// Explains why the loop ended, unless the user knows.
fn report_end(app: &App, resumed: &Resumed) -> anyhow::Result<()> {
    match &resumed.ended {
        // At a terminal, the question is still on the screen.
        Ended::Question(_) if app.is_attended() => {
            app.note(&format!("The model waits for your answer: {ANSWER}."));
        }
        Ended::Question(question) => report_question(app, question, ANSWER)?,
        Ended::Complete(conclusion) if resumed.last.is_none() => {
            report_conclusion(app, conclusion)?;
            app.note("Next: teddy resume '...', if there is more to do");
        }
        ended => {
            stopped(ended).iter().for_each(|why| app.note(why));
            if let (Ended::Turns(_) | Ended::Cost { .. }, Some(planned)) = (ended, &resumed.waiting)
            {
                note_replanned(app, planned);
            }
        }
    }
    Ok(())
}

/// Explains why a loop stopped early; `None` if it did not.
fn stopped(ended: &Ended) -> Option<String> {
    Some(match ended {
        Ended::Left | Ended::Failed | Ended::Complete(_) => return None,
        Ended::InputCut => {
            "stopped: the server read only a part of the input; the plan is waiting".to_owned()
        }
        Ended::NoPlan => "stopped: the model answers without a plan".to_owned(),
        Ended::Question(_) => "stopped: the model asks you something".to_owned(),
        Ended::Undecided(turn) => format!("Nothing was run; the plan of turn {turn} is waiting."),
        Ended::InDoubt(turn) => in_doubt(*turn),
        Ended::Overlap => "stopped: the result is not in all of your files".to_owned(),
        Ended::Rejected => "stopped: the plan was rejected, and no other plan is waiting".to_owned(),
        Ended::Turns(turns) => format!("stopped after {}", counted(*turns as usize, "turn")),
        Ended::Cost { used: spent, limit } => {
            format!("stopped: the session has cost ${spent:.2}, and the limit is ${limit:.2}")
        }
        Ended::NextCall(why) => format!("stopped: {why}"),
        Ended::Repeated => {
            "stopped: the model wrote the same plan again; it is waiting, and `teddy execute` runs it"
                .to_owned()
        }
    })
}

/// Returns the exit code of a loop. `is_alone` if no user was present.
fn code_of(resumed: &Resumed, is_alone: bool) -> ExitStatus {
    if interrupt::requested() {
        return exit::INTERRUPTED;
    }

    let last = resumed
        .last
        .as_ref()
        .map_or(exit::SUCCESS, |last| code(last));
    match resumed.ended {
        Ended::Failed => exit::FAILED,
        Ended::Question(_) | Ended::InDoubt(_) | Ended::NoPlan | Ended::InputCut => exit::WAITS,
        Ended::Turns(_) | Ended::Cost { .. } | Ended::NextCall(_) | Ended::Repeated
            if is_alone && last == exit::SUCCESS =>
        {
            exit::WAITS
        }
        _ => last,
    }
}

/// Returns the result as JSON. `None` for a loop that failed: only its turns are listed.
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
            Some(Ended::Complete(conclusion)) => Some(conclusion),
            _ => None,
        },
        "stopped": ended.and_then(stopped),
    })
}
