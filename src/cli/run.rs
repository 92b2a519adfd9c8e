//! `teddy run`: runs a program and records its changes as a turn.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::Context as _;

use super::app::App;
use super::record::{read_transcript, report_turn};
use super::source;
use crate::host::{foreground, process};
use crate::session::meta::Recorded;
use crate::workflow::project::{NoSession, Project};
use crate::workflow::record::{
    self, NothingToRecord, RecordOptions, RecordResult, begin, record_since, take_back_start,
};

/// Run a program of your own, and record what it changed as a turn
///
/// The program has your terminal, your files and ctrl-c: nothing is isolated. When it ends, what
/// changed meanwhile is recorded as one turn, which can be undone; what had changed before is not
/// part of it. The exit code is the program's.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy run -- claude\n  teddy run -m 'add a login form' -- aider --message 'add a login form'\n  teddy run -- ./scripts/generate.sh"
)]
pub(super) struct Args {
    /// What was asked for; `-` reads standard input
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// What the program wrote down of it: the end of this file is kept with the turn
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    transcript: Option<String>,
    /// Who did it, if not the program
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Record a turn although no file changed
    #[arg(long)]
    allow_empty: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM", value_hint = clap::ValueHint::CommandWithArguments)]
    program: Vec<OsString>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let mut project = app.project()?;
    let message = args.message.map(source::message).transpose()?;
    let message = message.unwrap_or_default();
    let name = Path::new(&args.program[0]).file_name();
    let name = name.map(|name| name.to_string_lossy().into_owned());
    let by = args.by.or(name).unwrap_or_default();

    let mut user = app.user(&project, true);
    let started = start(&mut project, [&message, &by], user.as_mut())?;
    let before = begin(&project, user.as_mut())?;
    let status = command(app, &args.program).and_then(|mut command| {
        foreground::accompany(&mut command)
            .with_context(|| format!("cannot run `{}`", args.program[0].display()))
    });
    if started && status.is_err() {
        take_back_start(&project, user.as_mut())?;
    }
    let code = code(status?);

    let recorded = read_transcript(app, args.transcript.as_deref()).and_then(|transcript| {
        let options = RecordOptions {
            message,
            work: Recorded {
                by: Some(by),
                exit_code: Some(code),
                ..Recorded::default()
            },
            transcript,
            allow_empty: args.allow_empty,
            ..RecordOptions::default()
        };
        let result = record_since(&project, before, &options, user.as_mut())?;
        Ok(RecordResult { started, ..result })
    });
    if started
        && recorded
            .as_ref()
            .is_err_and(|error| error.is::<NothingToRecord>())
    {
        take_back_start(&project, user.as_mut())?;
    }
    report(app, code, recorded)
}

/// Starts a session if none is in use. Returns whether it did.
fn start(
    project: &mut Project,
    titles: [&str; 2],
    user: &mut dyn crate::workflow::user::User,
) -> anyhow::Result<bool> {
    match project.session() {
        Err(error) if error.is::<NoSession>() => {
            let title = titles.iter().find(|text| !text.trim().is_empty());
            record::start(project, title.unwrap_or(&""), user)?;
            Ok(true)
        }
        session => session.map(|_| false),
    }
}

/// Returns the command for the program: current directory, full environment. It inherits stdout
/// unless that is reserved for JSON.
fn command(app: &App, argv: &[OsString]) -> anyhow::Result<Command> {
    let dir = app.dir()?;
    let program = Path::new(&argv[0]);
    let mut command = match program.components().count() {
        0 | 1 => process::command(program),
        _ => process::command(dir.join(program)),
    };

    process::restore_env(&mut command, |_| true);
    command.args(&argv[1..]).current_dir(dir);
    if app.global.json {
        command.stdout(std::io::stderr());
    }
    Ok(command)
}

/// Returns the exit code of a program in the convention of shells.
fn code(status: ExitStatus) -> i32 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).unwrap_or(1)
}

/// Reports the recorded turn. A failure to record determines the exit code only if the program
/// succeeded.
fn report(
    app: &App,
    code: i32,
    recorded: anyhow::Result<RecordResult>,
) -> anyhow::Result<ExitCode> {
    let recorded = match recorded {
        Ok(result) => Some(result),
        Err(error) if error.is::<NothingToRecord>() => None,
        Err(error) if code == 0 => return Err(error.context("the program has run")),
        Err(error) => {
            app.warn(&format!("what it changed is not recorded: {error:#}"));
            None
        }
    };

    match &recorded {
        _ if app.global.json => {
            app.print_json(&serde_json::json!({ "exit_code": code, "recorded": recorded }))?;
        }
        Some(result) => report_turn(app, result),
        None => app.note("No file changed; no turn is recorded."),
    }

    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
