//! `teddy change impl` and `teddy change implement`: run the open tasks of a change.

use std::process::ExitCode;

use super::super::app::App;
use super::super::complete;
use super::super::execute::{code, report_question};
use super::super::exit::{self, ExitStatus};
use super::super::source;
use super::ModelFlags;
use crate::change::id::ChangeId;
use crate::change::phase::ChangePhase;
use crate::host::interrupt;
use crate::text::counted;
use crate::workflow::change::ChangeOptions;
use crate::workflow::change::implement::{
    ImplementStop, Implemented, implement as do_tasks, implement_and_review,
};
use crate::workflow::change::work::WorkStop;
use crate::workflow::execute::result::{RecordedTurn, TurnEnding};

/// Implement a change: run the open tasks as turns of its session, then review and fix
///
/// Goes on where it stopped. Each plan is shown for approval as in `teddy execute`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change impl add-auth\n  teddy change impl add-auth -y\n  teddy -s change/add-auth log\n\nExit codes: 0 complete, 1 not complete, 3 a plan was rejected, 4 a result overlaps with your own edits, 5 the model waits for your answer"
)]
pub(super) struct Args {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// Answer what the model asks, or say more about the next task; `-` reads standard input
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Approve every plan
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    how: ModelFlags,
}

/// Implements a change, then reviews and fixes it.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let mut project = args.how.project(app)?;
    let mut user = app.user(&project, args.yes);
    let options = change_options(args)?;
    let implemented = implement_and_review(&mut project, &id, &options, user.as_mut())?;
    drop(user);
    show(app, &implemented)
}

/// Implements a change without a review.
pub(super) fn implement(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let mut project = args.how.project(app)?;
    let mut user = app.user(&project, args.yes);
    let options = change_options(args)?;
    let implemented = do_tasks(&mut project, &id, &options, user.as_mut())?;

    drop(user);
    let code = show(app, &implemented)?;
    Ok(if implemented.stopped.is_none() {
        exit::SUCCESS.into()
    } else {
        code
    })
}

fn change_options(args: Args) -> anyhow::Result<ChangeOptions> {
    Ok(ChangeOptions {
        message: args.message.map(source::message).transpose()?,
        ..args.how.to_options()
    })
}

/// Prints the result and returns the exit code.
pub(super) fn show(app: &App, implemented: &Implemented) -> anyhow::Result<ExitCode> {
    let stopped = implemented.stopped.as_ref();
    if app.global.json {
        let mut value = serde_json::to_value(implemented)?;
        value["stopped"] = serde_json::json!(stopped.map(|why| describe_stop(implemented, why)));
        app.print_json(&value)?;
    } else {
        let Implemented {
            change,
            phase,
            done,
            tasks,
            ..
        } = implemented;
        app.print(format!(
            "{change} {}, {done} of {tasks} tasks done\n",
            phase.word()
        ))?;
        if let Some(verdict) = implemented.verdict {
            app.note(&format!(
                "{} after {}: {}.",
                verdict.word(),
                counted(implemented.reviews, "review"),
                implemented.issues.summary()
            ));
        }

        if let Some(why) = stopped {
            app.warn(&format!("stopped: {}", describe_stop(implemented, why)));
        }

        app.note(&format!("Next: {}", implemented.next));
    }

    let work = stopped.and_then(ImplementStop::work);
    if let Some(question) = work.and_then(WorkStop::question)
        && !app.global.json
    {
        report_question(app, question, &answer_hint(&implemented.change))?;
    }
    Ok(match (implemented.phase, work) {
        (ChangePhase::Complete, _) => exit::SUCCESS,
        (_, Some(stop)) => stop_code(stop),
        (_, None) => exit::FAILED,
    }
    .into())
}

fn stop_code(stop: &WorkStop) -> ExitStatus {
    match stop {
        WorkStop::Turn(recorded) if code(recorded) != exit::SUCCESS => code(recorded),
        _ if interrupt::requested() => exit::INTERRUPTED,
        WorkStop::Question(_) => exit::WAITS,
        _ => exit::FAILED,
    }
}

/// Explains why an implementation stopped.
fn describe_stop(implemented: &Implemented, stop: &ImplementStop) -> String {
    let change = &implemented.change;
    match stop {
        ImplementStop::Task { number, why } => {
            format!("task {number}: {}", describe_work_stop(change, why))
        }
        ImplementStop::Fix { review, why } => {
            format!("review {review}: {}", describe_work_stop(change, why))
        }
        ImplementStop::TooManyRounds(count) => {
            format!("the review still finds problems after {count} rounds")
        }
        ImplementStop::ReviewRejects => {
            "the review rejects the implementation as a whole".to_owned()
        }
    }
}

/// Explains why a single piece of work stopped.
fn describe_work_stop(change: &ChangeId, stop: &WorkStop) -> String {
    match stop {
        WorkStop::NothingPlanned => "nothing was planned".to_owned(),
        WorkStop::Question(_) => asks(change),
        WorkStop::Undecided => "nothing was run; the plan is waiting".to_owned(),
        WorkStop::Unfinished(turns) => format!("{turns} turns did not finish it"),
        WorkStop::Turn(recorded) => describe_turn_stop(change, recorded),
    }
}

/// Explains why no further turn follows.
fn describe_turn_stop(change: &ChangeId, recorded: &RecordedTurn) -> String {
    match &recorded.ending {
        TurnEnding::Interrupted { cause, .. } => format!("interrupted: {cause}"),
        _ if !recorded.is_synced() => format!(
            "the result is not in all of your files; `teddy -s {} restore @ --theirs` takes it, `--ours` keeps your side",
            change.session()
        ),
        TurnEnding::Rejected { .. } => "the plan was rejected".to_owned(),
        TurnEnding::Declined { .. } => "you declined the plan".to_owned(),
        TurnEnding::Ran { .. } => asks(change),
    }
}

fn asks(change: &ChangeId) -> String {
    format!("the model asks you something; `teddy change impl {change} -m '<answer>'` answers")
}

/// Explains how to answer the model's question.
fn answer_hint(change: &ChangeId) -> String {
    format!("`teddy change impl {change} -m '<answer>'` answers and continues")
}
