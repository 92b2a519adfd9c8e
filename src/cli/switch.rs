//! `teddy switch`

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::exit;
use crate::session::name::SessionName;
use crate::text::visible::visible;
use crate::ui::choose::choose;
use crate::workflow::branch::switch;
use crate::workflow::project::Project;
use crate::workflow::user::NobodyToAsk;

/// Go on with another session
///
/// Your files stay as they are; `teddy restore @` brings them to its newest turn.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy switch add-auth\n  teddy switch             choose one from the list"
)]
pub(super) struct Args {
    /// The session's name; at a terminal you can choose one if it is left out
    #[arg(add = complete::with(complete::sessions))]
    name: Option<String>,
}

/// Switches.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let mut project = app.project()?;
    let name = match &args.name {
        Some(name) => SessionName::from_ref(name)?,
        None => match chosen(app, &project)? {
            Some(name) => name,
            None => return Ok(exit::FAILED.into()),
        },
    };
    switch(&mut project, &name)?;
    if app.global.json {
        app.print_json(&serde_json::json!({ "session": name, "ref": name.reference() }))?;
    } else {
        app.say(&format!("Going on with session {name}. Your files stay as they are; `teddy restore @` brings them to its newest turn."));
    }
    Ok(exit::DONE.into())
}

/// Lets the person choose a session; nothing where they leave.
fn chosen(app: &App, project: &Project) -> anyhow::Result<Option<SessionName>> {
    let rows = project.session_rows()?;
    anyhow::ensure!(
        !rows.is_empty(),
        "there is no session; `teddy new <name>` starts one"
    );
    if !app.is_attended() {
        let why = "nobody can be asked which session is meant: name it";
        return Err(NobodyToAsk(why.to_owned()).into());
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
