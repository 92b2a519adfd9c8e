//! `teddy record`: records changes made without TeDDy as a turn.

use std::process::ExitCode;

use super::app::App;
use super::{exit, source};
use crate::session::meta::Recorded;
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::workflow::damage::FileDamage;
use crate::workflow::hint::with_hint;
use crate::workflow::record::transcript::{self, Transcript};
use crate::workflow::record::{NothingToRecord, RecordOptions, RecordResult, record};

/// Make a turn of what was changed without TeDDy
///
/// Records the difference between the session's newest turn and your files as they are now: what
/// an agent did that you drive yourself, or your own edits. Nothing is run and no file is changed;
/// undo, restore, blame and land work as for any turn. If no session is in use, one is started, and
/// the turn has what changed since HEAD.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy record -m 'add a login form'\n  teddy record -m 'add a login form' --by aider --transcript .aider.chat.history.md\n  git log -1 --format=%B | teddy record -m -"
)]
pub(super) struct Args {
    /// What was asked for; `-` reads standard input
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// What the agent wrote down of it: the end of this file is kept with the turn
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    transcript: Option<String>,
    /// Who did it
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// Record a turn although no file changed
    #[arg(long)]
    allow_empty: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let mut project = app.project()?;
    let message = args.message.map(source::message).transpose()?;
    let options = RecordOptions {
        message: message.unwrap_or_default(),
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
        report(app, &result)?;
    }

    Ok(exit::SUCCESS.into())
}

/// Adds a hint about turns without changes.
fn hint_at_empty(error: anyhow::Error) -> anyhow::Error {
    match error.is::<NothingToRecord>() {
        true => with_hint(error, "`--allow-empty` records a turn all the same"),
        false => error,
    }
}

/// Reads the given transcript.
pub(super) fn read_transcript(app: &App, path: Option<&str>) -> anyhow::Result<Option<Transcript>> {
    let path = path.map(|path| Ok::<_, anyhow::Error>(app.dir()?.join(path)));
    path.transpose()?
        .map(|path| transcript::read(&path))
        .transpose()
}

fn report(app: &App, result: &RecordResult) -> anyhow::Result<()> {
    let line = |word: &str, path: &String| format!("{word} {}\n", sanitize_line(path));
    let written = result.written.iter().map(|path| line("write", path));
    let deleted = result.deleted.iter().map(|path| line("delete", path));
    app.print(written.chain(deleted).collect::<String>())?;

    report_turn(app, result);
    Ok(())
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

/// Reports the recorded turn.
pub(super) fn report_turn(app: &App, result: &RecordResult) {
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
