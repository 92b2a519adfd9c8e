//! `teddy start`: starts a session and runs it.

use std::process::ExitCode;

use super::app::App;
use super::begin::begin_session;
use super::exit;
use super::request::RequestFlags;
use super::resume::{LoopFlags, run_loop};
use crate::host::screen::why_no_prompt;
use crate::session::name::SessionName;
use crate::workflow::user::{EmptyInput, NobodyToAsk, Question};

/// Start a session and run it: `new` followed by the loop of `resume`
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy start 'add a login form'\n  teddy start 'fix the parser' src/parse.rs tests/\n  teddy start add-auth -m 'add a login form'     with a name of its own\n  teddy start 'fix the build' --yolo"
)]
pub(super) struct Args {
    /// A session name, what you want, and files to show the model; each is optional. A single
    /// kebab-case word is taken as the name
    #[arg(value_name = "NAME|TEXT|FILE", value_hint = clap::ValueHint::AnyPath)]
    words: Vec<String>,
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    how: LoopFlags,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let mut project = app.project()?;
    let how = args.how;
    let mut request = args.request.read(app, &project, args.words, true)?;
    let name = request
        .name
        .as_deref()
        .map(SessionName::parse)
        .transpose()?;
    if request.message.is_none() && !app.is_attended() {
        let reason = format!("{}, so TeDDy cannot ask what to do", why_no_prompt());
        let hint = match &request.name {
            None => "`teddy start '<message>'` says it".to_owned(),
            Some(name) => taken_as_name(name),
        };
        return Err(NobodyToAsk::new(reason, hint).into());
    }

    app.ensure_model(&mut project, how.model_or_pipeline())?;
    how.check(&project)?;
    if name.is_none() && request.message.is_none() {
        request.message = app.user(&project, false).ask(&Question::NextTurn {
            session: "new session",
            turn: 1,
            empty: EmptyInput::Nothing,
            takes_commands: false,
        })?;
        if request.message.is_none() {
            app.note("Nothing was started.");
            return Ok(exit::SUCCESS.into());
        }
    }

    let name = match name {
        Some(name) => name,
        None => {
            let title = request.message.as_deref().unwrap_or_default();
            project.free_name(SessionName::from_title(title))?
        }
    };
    begin_session(app, &mut project, &name, how.agent())?;
    request.show_files(app, &project)?;
    run_loop(app, project, request.message, how)
}

/// Explains how a single word was understood, since it could have been meant as the message.
fn taken_as_name(name: &str) -> String {
    format!("`{name}` was taken as the session's name; `-m {name}` makes it the message")
}
