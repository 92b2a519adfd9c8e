//! `teddy retry`: sends a turn's recorded input again.

use super::app::App;
use super::exit::ExitStatus;
use super::prompt::message;
use super::{complete, plan};
use crate::workflow::retry::{RetryOptions, retry};

/// Send a turn's recorded input again, on a new branch
///
/// The model gets exactly the same input. Its plan becomes the draft of a new session,
/// `<session>-retry-<n>`, which shares the earlier turns; the old session is unchanged.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy retry                       the newest turn, the same model\n  teddy retry 3 --model openai:gpt-5\n  teddy switch add-auth             go back to the old session"
)]
pub(super) struct Args {
    /// The turn: a number, or anything that `git rev-parse` accepts
    #[arg(default_value = "@", add = complete::with(complete::turns))]
    turn: String,
    /// The model: a name from the configuration, or `kind:id`
    #[arg(long, value_name = "MODEL", add = complete::with(complete::models))]
    model: Option<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let mut project = app.project()?;
    app.ensure_model_to_retry(&mut project, &args.turn, args.model.as_deref())?;
    let mut user = app.helped_user(&project, false, message::rules(app));
    let planned = retry(
        &mut project,
        &RetryOptions {
            turn: args.turn,
            model: args.model,
        },
        user.as_mut(),
    )?;
    drop(user);
    plan::show(app, &planned)?;
    app.note(&format!("Session {} is in use now.", planned.session));
    app.warn_of_other_session(&planned.session);

    Ok(plan::code(&planned))
}
