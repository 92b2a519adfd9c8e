//! `teddy log`

use std::process::ExitCode;

use super::app::App;
use super::exit;
use crate::session::meta::Status;
use crate::text::counted;
use crate::ui::style::{Line, Tone};
use crate::workflow::log::Row;
use crate::workflow::log::log;

/// List the turns of the session, newest first
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy log\n  teddy log -n 5 --json\n  git log --first-parent teddy/sessions/add-auth"
)]
pub(super) struct Args {
    /// Show at most this many turns
    #[arg(short = 'n', long, value_name = "N")]
    max_count: Option<usize>,
}

/// Prints the list.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.record()?;
    let rows = log(&project, args.max_count.unwrap_or(usize::MAX))?;
    if app.global.json {
        app.print_json(&rows)?;
        return Ok(exit::DONE.into());
    }
    app.page(&project, &rows.iter().map(line).collect::<Vec<_>>())?;
    Ok(exit::DONE.into())
}

/// Returns a row as a line; the turns of an invoked agent are indented.
fn line(row: &Row) -> Line {
    let tone = match row.status {
        Status::Executed | Status::Restored | Status::Landed | Status::Picked => Tone::Added,
        Status::Failed | Status::Rejected | Status::Interrupted => Tone::Removed,
        _ => Tone::Faint,
    };
    let files = match row.files.len() {
        0 => String::new(),
        number => format!(" ({})", counted(number, "file")),
    };
    let cost = row
        .cost
        .map(|cost| format!(" ${cost:.2}"))
        .unwrap_or_default();
    let landed = row.landed.iter().flat_map(|landed| &landed.commits);
    let landed: Vec<String> = landed
        .map(|landed| landed.commit.to_string()[..8].to_owned())
        .collect();
    let landed = match landed.as_slice() {
        [] => String::new(),
        ids => format!(" as {}", ids.join(", ")),
    };
    let not_brought = match row.not_brought.as_slice() {
        [] => "",
        _ => " (not in your files)",
    };
    Line::of(Tone::Strong, &format!("{:>4} ", row.number))
        .with(Tone::Accent, &format!("{} ", &row.commit.to_string()[..8]))
        .with(tone, &format!("{:9}", format!("{} ", row.status.word())))
        .with(
            Tone::Plain,
            &format!("{}{}", "  ".repeat(row.depth), row.title),
        )
        .with(Tone::Faint, &format!("{landed}{files}{cost}"))
        .with(Tone::Warning, not_brought)
}
