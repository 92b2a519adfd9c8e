//! `teddy fetch FILE`: takes sessions from a bundle.

use std::path::Path;
use std::process::ExitCode;

use super::Args;
use crate::cli::app::App;
use crate::cli::exit;
use crate::git::bundle::SizeLimit;
use crate::session::name::SessionName;
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::workflow::archive::import::{
    ImportOptions, ImportState, Imported, ImportedSession, import,
};

/// Omitted refs that are named.
const MAX_NAMED: usize = 5;

/// Imports the sessions of a bundle.
pub(super) fn fetch_bundle(app: &App, file: &str, args: &Args) -> anyhow::Result<ExitCode> {
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
    let path = app.global.resolve(Path::new(file));
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
            "Imported {count}. `teddy show -s {}` shows it; `teddy switch --adopt {}` makes it yours.",
            first.session, first.session
        ),
    }
}
