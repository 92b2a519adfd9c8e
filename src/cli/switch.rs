//! `teddy switch`: selects another session.

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::exit;
use crate::host::screen::why_nobody;
use crate::session::name::SessionName;
use crate::text::visible::visible;
use crate::ui::choose::choose;
use crate::ui::drift::lines;
use crate::workflow::branch::switch;
use crate::workflow::hinted::hinted;
use crate::workflow::history;
use crate::workflow::history::changed;
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

    switch(&mut project, &name)?;
    let (tip, files) = changed(&project)?;
    if app.global.json {
        app.print_json(&serde_json::json!({
            "session": name,
            "ref": name.reference(),
            "workspace": files,
        }))?;
    } else {
        app.say(&format!("Going on with session {name}."));
        tell_files(app, &files, tip.number());
    }

    Ok(exit::DONE.into())
}

/// Describes how the unchanged files differ from the newest turn of a session.
pub(super) fn tell_files(app: &App, files: &Changed, turn: u64) {
    let lines = lines(&files.drift, turn);
    match files.drift.same_turns {
        _ if !lines.is_empty() => {}
        Some(true) => app.say(&format!("Your files are as after turn {turn}.")),
        Some(false) | None if turn == 0 => app.say("Your files stay as they are."),
        Some(false) | None => app.say(&format!(
            "Your files stay as they are; `teddy restore @` updates them to turn {turn}."
        )),
    }

    lines.iter().for_each(|line| app.say(line));
}

/// Lets the user choose a session; `None` if the user declines.
fn chosen(app: &App, project: &Project) -> anyhow::Result<Option<SessionName>> {
    let rows = history::session_rows(project)?;
    if rows.is_empty() {
        return Err(hinted(
            "there are no sessions",
            "`teddy new <name>` starts one",
        ));
    }

    if !app.is_attended() {
        let what = format!("{}, so no session can be chosen", why_nobody());
        let hint = "`teddy switch <name>` names one; `teddy sessions` lists them";
        return Err(NobodyToAsk::new(what, hint).into());
    }

    let shown: Vec<String> = rows
        .iter()
        .map(|row| format!("{}: {}", row.name, visible(&row.title)))
        .collect();
    let at = choose("Go on with", &shown)?;
    Ok(at
        .map(|at| SessionName::from_ref(&rows[at].name))
        .transpose()?)
}
