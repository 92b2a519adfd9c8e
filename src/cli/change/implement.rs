//! `teddy change impl` and `teddy change implement`

use std::process::ExitCode;

use super::super::app::App;
use super::super::complete;
use super::super::execute::{code, tell_question};
use super::super::exit;
use super::super::source;
use super::How;
use crate::change::id::ChangeId;
use crate::change::phase::Phase;
use crate::text::counted;
use crate::workflow::change::Wish;
use crate::workflow::change::implement::{
    Implemented, implement as do_tasks, implement_and_review,
};
use crate::workflow::execute::Executed;

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
    how: How,
}

/// Implements and reviews.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let mut project = app.project()?;
    let mut user = app.user(&project, args.yes);
    let wish = wish(args)?;
    let implemented = implement_and_review(&mut project, &id, &wish, user.as_mut())?;
    drop(user);
    show(app, &implemented)
}

/// Implements.
pub(super) fn implement(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let mut project = app.project()?;
    let mut user = app.user(&project, args.yes);
    let wish = wish(args)?;
    let implemented = do_tasks(&mut project, &id, &wish, user.as_mut())?;
    drop(user);
    let code = show(app, &implemented)?;
    Ok(if implemented.stopped.is_none() {
        exit::DONE.into()
    } else {
        code
    })
}

/// Returns what is wanted.
fn wish(args: Args) -> anyhow::Result<Wish> {
    Ok(Wish {
        message: args.message.map(source::message).transpose()?,
        ..args.how.wish()
    })
}

/// Prints what came of it, and returns the exit code.
pub(super) fn show(app: &App, implemented: &Implemented) -> anyhow::Result<ExitCode> {
    if app.global.json {
        app.print_json(implemented)?;
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
            app.say(&format!(
                "{} after {}: {}.",
                verdict.word(),
                counted(implemented.reviews, "review"),
                implemented.issues.words()
            ));
        }
        if let Some(why) = &implemented.stopped {
            app.warn(&format!("stopped: {why}"));
        }
        app.say(&format!("Next: {}", implemented.next));
    }
    if let Some(question) = implemented.at.as_ref().and_then(Executed::unanswered)
        && !app.global.json
    {
        let change = &implemented.change;
        let hint = format!("`teddy change impl {change} -m '<answer>'` answers and goes on");
        tell_question(app, question, &hint);
    }
    let stopped = implemented
        .at
        .as_ref()
        .map(code)
        .filter(|code| *code != exit::DONE);
    Ok(if implemented.phase == Phase::Complete {
        exit::DONE
    } else {
        stopped.unwrap_or(exit::FAILED)
    }
    .into())
}
