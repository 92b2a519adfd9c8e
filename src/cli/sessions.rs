//! `teddy sessions`: lists the sessions.

use std::process::ExitCode;

use super::app::App;
use super::exit;
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::workflow::history;
use crate::workflow::history::SessionRow;
use crate::workflow::project::Project;

/// List the sessions, most recently changed first
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy sessions\n  teddy sessions -r                 of remotes, as they were last fetched\n  teddy sessions --json\n  git for-each-ref refs/teddy/sessions"
)]
pub(super) struct Args {
    /// List the sessions of remotes instead, as they were last fetched
    #[arg(short, long)]
    remotes: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.record()?;
    let rows = if args.remotes {
        history::remote_rows(&project)?
    } else {
        history::session_rows(&project)?
    };
    if app.global.json {
        app.print_json(&rows)?;
        return Ok(exit::SUCCESS.into());
    }

    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let line = |row: &SessionRow| {
        let mark = if row.current { '*' } else { ' ' };
        format!(
            "{mark} {:width$}  {:>10}  {}  {}{}\n",
            row.name,
            counted(row.turns, "turn"),
            row.updated.as_deref().map_or("", day),
            sanitize_line(&row.title),
            if row.code == Some(false) {
                " (record)"
            } else {
                ""
            },
        )
    };

    app.print(rows.iter().map(line).collect::<String>())?;
    if rows.is_empty() && args.remotes {
        app.note("No sessions were fetched; `teddy fetch` gets those of the remote.");
    } else if rows.is_empty() {
        app.note(no_sessions(&project));
    }

    Ok(exit::SUCCESS.into())
}

/// Says that there are no sessions, and how to start one if possible.
pub(super) fn no_sessions(project: &Project) -> &'static str {
    match project.repository.is_bare() {
        true => "There are no sessions.",
        false => "There are no sessions; `teddy start '<what you want>'` starts one.",
    }
}

fn day(time: &str) -> &str {
    time.split_once('T').map_or(time, |(day, _)| day)
}
