//! `teddy record`: records changes made without TeDDy, or by a program that it runs, as a turn.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitStatus as ProgramStatus};

use super::app::App;
use super::exit::{self, ExitStatus};
use super::failure::ProgramNotFound;
use super::source;
use crate::host::{foreground, process};
use crate::project::{NoSession, Project};
use crate::session::meta::Recorded;
use crate::text::counted;
use crate::text::damage::FileDamage;
use crate::text::hint::with_hint;
use crate::text::sanitize::sanitize_line;
use crate::workflow::record::transcript::{self, Transcript};
use crate::workflow::record::{
    self, NothingToRecord, RecordOptions, RecordResult, begin, record, record_since,
    take_back_start,
};

/// Record changes made without TeDDy as a turn
///
/// Records the difference between the session's newest turn and your files as they are now: what
/// an agent that you start yourself did, or your own edits. Nothing is run and no file is changed;
/// undo, restore, blame and land work as for any turn. If no session is in use, one is started, and
/// the turn has what changed since HEAD.
///
/// A program after `--` runs at your terminal, in your files: nothing is isolated. When it ends, the
/// turn has what changed meanwhile; what had changed before is not part of it. The exit code is the
/// program's.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy record 'add a login form'\n  teddy record 'add a login form' --by aider --transcript .aider.chat.history.md\n  git log -1 --format=%B | teddy record -\n  teddy record -- claude\n  teddy record 'generate the tables' -- ./scripts/generate.sh"
)]
pub(super) struct Args {
    /// What was asked for; `-` reads standard input
    #[arg(value_name = "TEXT", conflicts_with = "message")]
    text: Option<String>,
    /// The same as TEXT
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// What the agent wrote down of it: the end of this file is kept with the turn
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    transcript: Option<String>,
    /// Author of the edits, if not the program
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Record a turn although no file changed
    #[arg(long)]
    allow_empty: bool,
    /// A program to run, and its arguments
    #[arg(last = true, value_name = "PROGRAM", value_hint = clap::ValueHint::CommandWithArguments)]
    program: Vec<OsString>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let text = args.text.clone().or_else(|| args.message.clone());
    let message = text.map(source::message).transpose()?.unwrap_or_default();
    if !args.program.is_empty() {
        return run_program(args, app, message);
    }

    let mut project = app.project()?;
    let options = RecordOptions {
        message,
        work: Recorded {
            by: args.by,
            ..Recorded::default()
        },
        transcript: read_transcript(app, args.transcript.as_deref())?,
        allow_empty: args.allow_empty,
        ..RecordOptions::default()
    };

    let mut user = app.user(&project, true);
    let result = record(&mut project, &options, user.as_mut()).map_err(hint_at_empty)?;
    if app.global.json {
        app.print_json(&result)?;
    } else {
        app.print(changed_files(&result.written, &result.deleted))?;
        report_turn(app, &result);
    }

    Ok(exit::SUCCESS)
}

/// Adds a hint about turns without changes.
fn hint_at_empty(error: anyhow::Error) -> anyhow::Error {
    match error.is::<NothingToRecord>() {
        true => with_hint(error, "`--allow-empty` records a turn all the same"),
        false => error,
    }
}

fn read_transcript(app: &App, path: Option<&str>) -> anyhow::Result<Option<Transcript>> {
    let path = path.map(|path| Ok::<_, anyhow::Error>(app.dir()?.join(path)));
    path.transpose()?
        .map(|path| transcript::read(&path))
        .transpose()
}

/// Returns changed files as lines, each with what happened to it.
pub(super) fn changed_files(written: &[String], deleted: &[String]) -> String {
    let line = |word: &str, path: &String| format!("{word} {}\n", sanitize_line(path));
    let written = written.iter().map(|path| line("write", path));
    let deleted = deleted.iter().map(|path| line("delete", path));
    written.chain(deleted).collect()
}

/// Damaged files named one by one.
const MAX_DAMAGE: usize = 10;

/// Warns of what a program did to files besides changing their text.
pub(super) fn warn_of_damage(app: &App, damage: &[FileDamage]) {
    for FileDamage { path, text, .. } in damage.iter().take(MAX_DAMAGE) {
        app.warn(&format!("`{}`: {text}", sanitize_line(path)));
    }
    let others = damage.len().saturating_sub(MAX_DAMAGE);
    if others > 0 {
        app.warn(&format!("{others} more such changes; `--json` names all"));
    }
}

fn report_turn(app: &App, result: &RecordResult) {
    if result.started {
        app.note(&format!(
            "Started session {}.",
            sanitize_line(&result.session)
        ));
    }

    warn_of_damage(app, &result.damage);
    let files = counted(result.written.len() + result.deleted.len(), "file");
    app.note(&format!(
        "Recorded as turn {}: {files} changed.",
        result.turn
    ));
}

/// Runs a program in the user's files, and records what it changed.
fn run_program(args: Args, app: &App, message: String) -> anyhow::Result<ExitStatus> {
    let mut project = app.project()?;
    let name = Path::new(&args.program[0]).file_name();
    let name = name.map(|name| name.to_string_lossy().into_owned());
    let by = args.by.or(name).unwrap_or_default();

    let mut user = app.user(&project, true);
    let started = start(&mut project, [&message, &by], user.as_mut())?;
    let before = begin(&project, user.as_mut())?;
    let status = command(app, &args.program).and_then(|mut command| {
        foreground::accompany(&mut command).map_err(|error| not_started(&command, error))
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
    report_program(app, code, recorded)
}

fn not_started(command: &Command, error: std::io::Error) -> anyhow::Error {
    let program = Path::new(command.get_program());
    let name = sanitize_line(&program.to_string_lossy()).into_owned();
    // The error is the same if the interpreter of a script is missing.
    let is_missing = program.components().count() == 1 || !program.exists();
    match error.kind() == ErrorKind::NotFound && is_missing {
        true => ProgramNotFound(name).into(),
        false => anyhow::Error::from(error).context(format!("cannot run `{name}`")),
    }
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
fn code(status: ProgramStatus) -> i32 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).unwrap_or(1)
}

/// Reports the recorded turn. A failure to record determines the exit code only if the program
/// succeeded.
fn report_program(
    app: &App,
    code: i32,
    recorded: anyhow::Result<RecordResult>,
) -> anyhow::Result<ExitStatus> {
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

    Ok(ExitStatus(u8::try_from(code).unwrap_or(1)))
}
