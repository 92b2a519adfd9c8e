//! `teddy ask`: answers a question about the files.

use super::app::App;
use super::begin::begin_session_or_hand_to;
use super::exit::{self, ExitStatus};
use super::failure::InvalidArgument;
use super::plan::check_model;
use super::request::RequestFlags;
use super::{complete, number};
use crate::session::meta::ModelUse;
use crate::workflow::ask::{AnsweredQuestion, AskOptions, ask};

/// Ask a question about the files; nothing is changed
///
/// The answer goes to standard output, and is recorded as a turn of the session. If no session is
/// in use, one is started. The model may look at more files of the project before it answers; it
/// can run no command and change nothing.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy ask 'where is the configuration read?'\n  teddy ask 'is this safe to call twice?' src/store.rs\n  git diff | teddy ask -m - > review.md\n\nExit codes: 0 answered, 3 the reply was not an answer, 5 the model only wanted to see more files"
)]
pub(super) struct Args {
    /// The question, then files to show the model
    #[arg(value_name = "TEXT|FILE", value_hint = clap::ValueHint::AnyPath)]
    words: Vec<String>,
    #[command(flatten)]
    request: RequestFlags,
    /// The model: a name from the configuration, or `kind:id`
    #[arg(long, value_name = "MODEL", add = complete::with(complete::models))]
    model: Option<String>,
    /// Also show the model this many turns before the previous one
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number::depth)]
    context_depth: u64,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let mut project = app.project()?;
    let request = args.request.read(app, &project, args.words)?;
    let Some(question) = request.message.clone() else {
        let message = "no question was given";
        let hint = "`teddy ask '<question>'` asks it";
        return Err(InvalidArgument::error(message, hint));
    };

    app.ensure_model(&mut project, args.model.as_deref())?;
    check_model(&project, args.model.as_deref())?;
    begin_session_or_hand_to(app, &mut project, &question, None)?;
    request.show_files(app, &project)?;

    let options = AskOptions {
        question,
        model: args.model,
        depth: args.context_depth,
    };
    let mut user = app.user(&project, true);
    let asked = ask(&project, &options, user.as_mut())?;
    drop(user);
    show(app, &asked)?;
    Ok(code(&asked))
}

/// Prints the answer, or the reason why there is none.
fn show(app: &App, asked: &AnsweredQuestion) -> anyhow::Result<()> {
    if app.global.json {
        return app.print_json(&json(asked));
    }

    match &asked.answer {
        Some(answer) => app.print_message(answer)?,
        None => app.warn("the model gave no answer; `teddy show` shows what it did"),
    }
    for recorded in &asked.turns {
        let id = recorded.commit.to_string();
        let (turn, word) = (recorded.turn, recorded.word());
        app.note(&format!("turn {turn} {word} {}", &id[..12]));
    }
    Ok(())
}

fn code(asked: &AnsweredQuestion) -> ExitStatus {
    let last = asked.turns.last();
    match &asked.answer {
        _ if crate::host::interrupt::requested() => exit::INTERRUPTED,
        Some(_) => exit::SUCCESS,
        None if last.is_some_and(|last| last.is_rejected()) => exit::REJECTED,
        None => exit::WAITS,
    }
}

fn json(asked: &AnsweredQuestion) -> serde_json::Value {
    let last = asked.turns.last();
    let tokens = asked.model.as_ref().and_then(ModelUse::tokens);
    serde_json::json!({
        "session": last.map(|last| last.session.as_str()),
        "turn": last.map(|last| last.turn),
        "commit": last.map(|last| last.commit),
        "answer": asked.answer,
        "turns": asked.turns.len(),
        "model": asked.model.as_ref().map(|model| &model.asked),
        "tokens_in": tokens.map(|(read, _)| read),
        "tokens_out": tokens.map(|(_, written)| written),
        "cost": asked.model.as_ref().and_then(|model| model.cost),
    })
}
