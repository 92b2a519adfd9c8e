//! `teddy log`

use std::process::ExitCode;

use clap::ValueHint;

use super::app::App;
use super::{diff, exit};
use crate::git::diffstat::diffstat;
use crate::session::meta::Status;
use crate::text::counted;
use crate::ui::style::{StyledLine, Tone, block};
use crate::workflow::log::choose::{GraphLine, ListedTurn, LogFilter, choose, draw};
use crate::workflow::log::{LogRow, log};
use crate::workflow::paths;
use crate::workflow::project::Project;

/// List the turns of the session, newest first
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy log\n  teddy log -n 5 --json\n  teddy log --graph --all                sessions and their branches\n  teddy log -p -- src                    what turns changed below src\n  teddy log --stat --since yesterday\n  git log --first-parent teddy/sessions/add-auth"
)]
pub(super) struct Args {
    /// Show at most this many turns
    #[arg(short = 'n', long, value_name = "N")]
    max_count: Option<usize>,
    /// List the turns of all sessions, each once
    #[arg(long)]
    all: bool,
    /// Draw the history as `git log --graph` does; with `--all`, sessions with their branches
    #[arg(long, conflicts_with_all = ["json", "patch", "stat", "since", "paths"])]
    graph: bool,
    /// Also show what each turn changed
    #[arg(short, long, conflicts_with = "json")]
    patch: bool,
    /// Also show how much each turn changed, by file
    #[arg(long, conflicts_with = "json")]
    stat: bool,
    /// Only turns since a time, such as `yesterday` or `2026-11-01`
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only turns that changed one of these files or directories
    #[arg(last = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    paths: Vec<String>,
}

/// Prints the list.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.record()?;
    let lines = if args.graph {
        drawn(&draw(&project, args.all, args.max_count)?)
    } else if args.is_plain() {
        let rows = log(&project, args.max_count.unwrap_or(usize::MAX))?;
        if app.global.json {
            app.print_json(&rows)?;
            return Ok(exit::DONE.into());
        }
        rows.iter().map(|row| line(&number(row), row)).collect()
    } else {
        let paths = if args.paths.is_empty() {
            Vec::new()
        } else {
            paths::below(&project.repository, &app.folder()?, &args.paths)?
        };

        let choice = LogFilter {
            all: args.all,
            most: args.max_count,
            since: args.since.clone(),
            paths,
        };
        let turns = choose(&project, &choice)?;
        if app.global.json {
            let rows: anyhow::Result<Vec<_>> = turns.iter().map(json).collect();
            app.print_json(&rows?)?;
            return Ok(exit::DONE.into());
        }

        listed(&project, &turns, &args)?
    };

    app.page(&project, &lines)?;
    Ok(exit::DONE.into())
}

impl Args {
    /// Returns whether nothing is asked for but the newest turns of the session in use.
    fn is_plain(&self) -> bool {
        let is_shaped = self.all || self.patch || self.stat;
        !is_shaped && self.since.is_none() && self.paths.is_empty()
    }
}

/// Returns a turn as JSON: a row, with its session.
fn json(turn: &ListedTurn) -> anyhow::Result<serde_json::Value> {
    let mut row = serde_json::to_value(&turn.row)?;
    row["session"] = serde_json::to_value(&turn.session)?;
    Ok(row)
}

/// Returns the number of a row as the list has it.
fn number(row: &LogRow) -> String {
    format!("{:>4}", row.number)
}

/// Returns turns as lines, with what they changed if that is asked for.
fn listed(project: &Project, turns: &[ListedTurn], args: &Args) -> anyhow::Result<Vec<StyledLine>> {
    let name = |turn: &ListedTurn| match args.all {
        true => format!("{}:{}", turn.session, turn.row.number),
        false => number(&turn.row),
    };
    let width = turns.iter().map(|turn| name(turn).len()).max().unwrap_or(0);
    let mut lines = Vec::new();

    for turn in turns {
        lines.push(line(&format!("{:width$}", name(turn)), &turn.row));
        let (Some(before), Some(after)) = (turn.row.before, turn.row.after) else {
            continue;
        };
        let tree = |commit| project.repository.commit(commit).map(|commit| commit.tree);
        let trees = (tree(before)?, tree(after)?);

        if args.stat {
            let stat = diffstat(&project.repository, trees.0, trees.1)?;
            lines.extend(block(Tone::Faint, stat.trim_end_matches('\n')));
        }

        if args.patch {
            lines.extend(diff::lines(project, trees, &|_| true)?);
        }

        if args.stat || args.patch {
            lines.push(StyledLine::default());
        }
    }

    Ok(lines)
}

/// Returns a drawing of sessions as lines.
fn drawn(nodes: &[GraphLine]) -> Vec<StyledLine> {
    let node = |node: &GraphLine| {
        let drawing = StyledLine::of(Tone::Faint, &node.drawing);
        let Some(turn) = &node.turn else {
            return drawing;
        };
        let name = format!("{}:{}", turn.session, turn.row.number);
        let tips: String = node.tips.iter().map(|tip| format!(" ({tip})")).collect();

        drawing
            .join(line(&name, &turn.row))
            .with(Tone::Accent, &tips)
    };
    nodes.iter().map(node).collect()
}

/// Returns a row as a line; the turns of an invoked agent are indented.
fn line(name: &str, row: &LogRow) -> StyledLine {
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
    StyledLine::of(Tone::Strong, &format!("{name} "))
        .with(Tone::Accent, &format!("{} ", &row.commit.to_string()[..8]))
        .with(tone, &format!("{:9}", format!("{} ", row.status.word())))
        .with(
            Tone::Plain,
            &format!("{}{}", "  ".repeat(row.depth), row.title),
        )
        .with(Tone::Faint, &format!("{landed}{files}{cost}"))
        .with(Tone::Warning, not_brought)
}
