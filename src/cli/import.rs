//! `teddy import`: imports sessions from a bundle.

use std::path::PathBuf;
use std::process::ExitCode;

use super::app::App;
use super::exit;
use crate::git::bundle::SizeLimit;
use crate::session::name::SessionName;
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::workflow::archive::import::{
    ImportOptions, ImportState, Imported, ImportedSession, import,
};

/// Omitted refs that are named.
const MAX_NAMED: usize = 5;

/// Import sessions from a bundle
///
/// Everything in the bundle is checked first: that it is complete and valid, and each session as by
/// `teddy verify`. Nothing in it runs. If anything is wrong, nothing is imported. An existing
/// session is never changed.
///
/// Imported sessions count as another user's, even if you exported them yourself: a waiting plan does
/// not run before `teddy adopt`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy import -n add-auth.bundle          check it and say what is in it\n  teddy import add-auth.bundle\n  teddy import all.bundle add-auth --as other-auth"
)]
pub(super) struct Args {
    /// The bundle
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
    /// Sessions in it; all of them if omitted
    #[arg(value_name = "SESSION")]
    sessions: Vec<String>,
    /// Give the session another name here; its signature stays behind
    #[arg(long = "as", value_name = "NAME")]
    called: Option<String>,
    /// Only check the bundle and say what is in it
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Accept bundles over 4 GiB, and files in them over 512 MiB
    #[arg(long)]
    large: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let sessions = args.sessions.iter().map(|name| SessionName::from_ref(name));
    let options = ImportOptions {
        sessions: sessions.collect::<Result<_, _>>()?,
        called: args.called.as_deref().map(SessionName::parse).transpose()?,
        is_trial: args.dry_run,
        limit: match args.large {
            true => SizeLimit::None,
            false => SizeLimit::Usual,
        },
    };
    let project = app.project()?;
    let path = app.global.resolve(&args.file);
    let result = import(
        &project,
        &path,
        &options,
        app.user(&project, false).as_mut(),
    )?;

    if app.global.json {
        let mut value = serde_json::to_value(&result)?;
        value["dry_run"] = args.dry_run.into();
        app.print_json(&value)?;
        return Ok(exit::SUCCESS.into());
    }

    app.print(result.sessions.iter().map(line).collect::<String>())?;
    if !result.ignored.is_empty() {
        let names = list_names(&result.ignored);
        app.warn(&format!(
            "refs that are no session's were left out: {names}"
        ));
    }
    app.note(&summarize(&result, args.dry_run));
    Ok(exit::SUCCESS.into())
}

/// Returns the first of some names, and the number of further ones.
fn list_names(names: &[String]) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let first = names[..names.len() - more].join(", ");
    match more {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn line(session: &ImportedSession) -> String {
    let mut notes = Vec::new();
    if session.state == ImportState::Here {
        notes.push("already here");
    }
    if session.signed {
        notes.push("signed");
    }
    if session.draft {
        notes.push("with a turn in progress");
    }

    let notes = match notes.is_empty() {
        true => String::new(),
        false => format!(" ({})", notes.join(", ")),
    };
    format!(
        "{}  {}  {}{notes}\n",
        session.session,
        counted(session.turns, "turn"),
        sanitize_line(&session.title)
    )
}

/// Summarizes the import, and what to do next.
fn summarize(result: &Imported, is_trial: bool) -> String {
    let new = |it: &&ImportedSession| it.state == ImportState::Imported;
    let new: Vec<&ImportedSession> = result.sessions.iter().filter(new).collect();
    let count = counted(new.len(), "session");
    match (new.first(), is_trial) {
        (None, _) => "Nothing to import: everything is here already.".to_owned(),
        (Some(_), true) => format!("The bundle is sound; {count} would be imported."),
        (Some(first), false) => format!(
            "Imported {count}. `teddy show -s {}` shows it; `teddy adopt {}` makes it yours.",
            first.session, first.session
        ),
    }
}
