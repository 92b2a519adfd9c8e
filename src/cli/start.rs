//! `teddy start`: starts a session and runs it.

use super::app::App;
use super::begin::{begin_session, start_only};
use super::exit::{self, ExitStatus};
use super::failure::InvalidArgument;
use super::prompt::{self, LoopFlags, run_loop};
use super::request::RequestFlags;
use crate::host::screen::why_no_prompt;
use crate::project::Project;
use crate::session::name::SessionName;
use crate::workflow::context::message::without_output;
use crate::workflow::user::NobodyToAsk;

/// Start a session and run its first turns
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy start 'add a login form'\n  teddy start 'fix the parser' src/parse.rs tests/\n  teddy start 'add a login form' --name add-auth\n  teddy start --no-run --name add-auth           only start it, as `new` does\n  teddy start 'fix the build' --yolo"
)]
pub(super) struct Args {
    /// What you want, then files to show the model; each is optional
    #[arg(value_name = "TEXT|FILE", value_hint = clap::ValueHint::AnyPath)]
    words: Vec<String>,
    /// The session's name; derived from the message if omitted
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only start the session; a message only names it
    #[arg(long, conflicts_with_all = ["yes", "yolo", "model", "pipeline", "max_turns", "max_cost"])]
    no_run: bool,
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    how: LoopFlags,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let mut project = app.project()?;
    let how = args.how;
    let name = args.name.as_deref().map(SessionName::from_words);
    let name = name.transpose()?;
    let mut request = args.request.read(app, &project, args.words)?;
    if args.no_run {
        let name = name_session(&project, name, request.message.as_deref())?;
        start_only(app, &mut project, &name, how.wanted.agent.as_deref())?;
        request.show_files(app, &project)?;
        return Ok(exit::SUCCESS);
    }

    if request.message.is_none() && !app.is_attended() {
        let reason = format!("{}, so TeDDy cannot ask what to do", why_no_prompt());
        return Err(NobodyToAsk::new(reason, "`teddy start '<message>'` says it").into());
    }

    app.ensure_model(&mut project, how.wanted.model_or_pipeline())?;
    how.wanted.check(&project)?;
    let is_asked = name.is_none() && request.message.is_none();
    if is_asked {
        request.message = prompt::first_message(app, &project)?;
        if request.message.is_none() {
            app.note("Nothing was started.");
            return Ok(exit::SUCCESS);
        }
    }

    let name = name_session(&project, name, request.message.as_deref())?;
    begin_session(app, &mut project, &name, how.wanted.agent.as_deref())?;
    request.show_files(app, &project)?;
    if let Some(message) = request.message.as_deref().filter(|_| is_asked) {
        prompt::message::add_mentioned(app, &project, message)?;
    }
    run_loop(app, project, request.message, how)
}

/// Names the session as the user does, or after the message.
fn name_session(
    project: &Project,
    name: Option<SessionName>,
    message: Option<&str>,
) -> anyhow::Result<SessionName> {
    match (name, message) {
        (Some(name), _) => Ok(name),
        (None, Some(message)) => {
            project.free_name(SessionName::from_title(without_output(message)))
        }
        (None, None) => {
            let reason = "the session needs a name";
            let hint = "`teddy start --no-run --name <name>` gives it";
            Err(InvalidArgument::error(reason, hint))
        }
    }
}
