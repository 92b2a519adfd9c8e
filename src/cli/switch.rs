//! `teddy switch`: selects another session.

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::exit;
use crate::host::screen::why_no_prompt;
use crate::session::name::SessionName;
use crate::text::sanitize::sanitize_line;
use crate::ui::ask::choose;
use crate::ui::drift::lines;
use crate::workflow::hint::error_with_hint;
use crate::workflow::history;
use crate::workflow::history::changed;
use crate::workflow::lifecycle::switch_session;
use crate::workflow::project::Project;
use crate::workflow::user::NobodyToAsk;
use crate::workspace::changed::Changed;

/// Switch to another session
///
/// Your files stay as they are; `teddy restore @` updates them to its newest turn.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy switch add-auth\n  teddy switch             choose one from the list"
)]
pub(super) struct Args {
    /// The session's name; if omitted, choose one from a list
    #[arg(add = complete::with(complete::sessions))]
    name: Option<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let mut project = app.project()?;
    let name = match &args.name {
        Some(name) => SessionName::from_address(name)?,
        None => match chosen(app, &project)? {
            Some(name) => name,
            None => return Ok(exit::FAILED.into()),
        },
    };

    switch_session(&mut project, &name)?;
    let (tip, files) = changed(&project)?;
    if app.global.json {
        app.print_json(&serde_json::json!({
            "session": name,
            "ref": name.reference(),
            "workspace": files,
        }))?;
    } else {
        app.note(&format!("Going on with session {name}."));
        report_files(app, &files, tip.number());
    }

    Ok(exit::SUCCESS.into())
}

/// Describes how the unchanged files differ from the newest turn of a session.
pub(super) fn report_files(app: &App, files: &Changed, turn: u64) {
    let lines = lines(&files.drift, turn);
    match files.drift.same_turns {
        _ if !lines.is_empty() => {}
        Some(true) => app.note(&format!("Your files match turn {turn}.")),
        Some(false) | None if turn == 0 => app.note("Your files stay as they are."),
        Some(false) | None => app.note(&format!(
            "Your files stay as they are; `teddy restore @` updates them to turn {turn}."
        )),
    }

    lines.iter().for_each(|line| app.note(line));
}

/// Lets the user choose a session; `None` if the user declines.
fn chosen(app: &App, project: &Project) -> anyhow::Result<Option<SessionName>> {
    let rows = history::session_rows(project)?;
    if rows.is_empty() {
        return Err(error_with_hint(
            "there are no sessions",
            "`teddy new <name>` starts one",
        ));
    }

    if !app.is_attended() {
        let message = format!("{}, so no session can be chosen", why_no_prompt());
        let hint = "`teddy switch <name>` names one; `teddy sessions` lists them";
        return Err(NobodyToAsk::new(message, hint).into());
    }

    let labels: Vec<String> = rows
        .iter()
        .map(|row| format!("{}: {}", row.name, sanitize_line(&row.title)))
        .collect();
    let at = choose("Go on with", &labels)?;
    Ok(at
        .map(|at| SessionName::from_ref(&rows[at].name))
        .transpose()?)
}
