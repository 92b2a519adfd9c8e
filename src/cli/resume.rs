//! `teddy resume`: continues the session.

use super::app::App;
use super::begin::begin_session_or_hand_to;
use super::exit::ExitStatus;
use super::prompt::{LoopFlags, run_loop};
use super::request::RequestFlags;
use crate::project::NoSession;

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
