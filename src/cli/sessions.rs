//! `teddy sessions`: lists the sessions.

use unicode_width::UnicodeWidthStr as _;

use super::app::App;
use super::begin::no_sessions;
use crate::host::clock;
use crate::project::describe_activity;
use crate::query::history;
use crate::query::history::SessionRow;
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::ui::overlap;
use crate::ui::style::{shortened, shortened_within};
use crate::ui::terminal::stdout_width;
use crate::workflow::overlap::overlaps;

/// List the sessions, most recently changed first
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy sessions\n  teddy sessions -r                 of remotes, as they were last fetched\n  teddy sessions --overlap          which waiting plans change the same lines\n  teddy sessions --json\n  git for-each-ref refs/teddy/sessions"
)]
pub(super) struct Args {
    /// List the sessions of remotes instead, as they were last fetched
    #[arg(short, long)]
    remotes: bool,

    /// Show which waiting plans change the same lines as each other or as your edits
    ///
    /// Plans that wait in different sessions, such as those of a race, are merged with each other
    /// and with your files as they are now. Nothing of yours is changed. What a plan's commands would
    /// change is unknown before the run.
    #[arg(long, conflicts_with = "remotes")]
    overlap: bool,
}

/// In columns. A shorter title is not useful.
const MIN_TITLE: usize = 8;

/// In columns.
const MAX_PLAN_TITLE: usize = 30;
const PLAN_WAITS: &str = " (a plan waits: {})";

/// Columns of a row besides its name, with a title that can be read.
const BESIDE_NAME: usize = 28 + 20;

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    if args.overlap {
        return show_overlaps(app);
    }

    let project = app.record()?;
    let rows = if args.remotes {
        history::remote_rows(&project)?
    } else {
        history::session_rows(&project)?
    };
    if app.global.json {
        return app.print_json(&rows);
    }

    app.print(table(&rows))?;
    if rows.is_empty() && args.remotes {
        app.note("No sessions were fetched; `teddy fetch` gets those of the remote.");
    } else if rows.is_empty() {
        app.note(no_sessions(&project));
    }

    Ok(())
}

/// Returns the sessions as a table, fitted to the terminal.
fn table(rows: &[SessionRow]) -> String {
    let screen = stdout_width();
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    // A name is typed, a title is not.
    let most = |screen: usize| (screen / 3).max(screen.saturating_sub(BESIDE_NAME));
    let width = width.min(screen.map_or(usize::MAX, most));
    let line = |row: &SessionRow| {
        let mark = if row.current { '*' } else { ' ' };
        let kind = match row.code {
            Some(false) => " (without code)",
            _ => "",
        };
        let (name, turns) = (
            shortened_within(&row.name, width),
            counted(row.turns, "turn"),
        );
        let time = row.updated.as_deref().unwrap_or_default();
        let time = match screen {
            Some(_) => clock::age_or_day(time).unwrap_or_default(),
            None => day(time).to_owned(),
        };
        let start = format!("{mark} {name:width$}  {turns:>10}  {time:10}  ");
        let available = screen.map_or(usize::MAX, |screen| screen.saturating_sub(start.width()));
        let plan = row.plan.as_deref().filter(|_| row.at_work.is_none());
        let note = match (&row.at_work, plan) {
            (Some(activity), _) => format!(" ({})", describe_activity(activity)),
            (None, Some(title)) => {
                let most = available.saturating_sub(kind.len() + PLAN_WAITS.len() + MIN_TITLE);
                match shortened(&sanitize_line(title), most.min(MAX_PLAN_TITLE)) {
                    _ if most < MIN_TITLE => " (a plan waits)".to_owned(),
                    title => PLAN_WAITS.replace("{}", &title),
                }
            }
            (None, None) => String::new(),
        };
        let kind = format!("{kind}{note}");
        let title = sanitize_line(row.label());
        let title = match available.saturating_sub(kind.width()) {
            available if available < MIN_TITLE => String::new(),
            available => shortened(&title, available),
        };
        let row = format!("{start}{title}{kind}");
        let row = shortened(row.trim_end(), screen.unwrap_or(usize::MAX));
        format!("{row}\n")
    };

    rows.iter().map(line).collect()
}

fn show_overlaps(app: &App) -> anyhow::Result<()> {
    let overlaps = overlaps(&app.project_for_reading()?)?;
    if app.global.json {
        return app.print_json(&overlaps);
    }

    let lines = overlap::lines(&overlaps);
    app.print(
        lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
    )?;
    for line in overlap::limits(&overlaps) {
        app.note(&line);
    }
    Ok(())
}

fn day(time: &str) -> &str {
    time.split_once('T').map_or(time, |(day, _)| day)
}
