//! `teddy compare`

use std::process::ExitCode;

use unicode_width::UnicodeWidthStr as _;

use super::app::App;
use super::difference::{self, ShownAs};
use super::{complete, exit};
use crate::text::visible::visible;
use crate::workflow::compare::{Side, compare};

/// Compare turns or sessions: files, lines, tokens, cost, time, and what a command says of each
///
/// A session counts as a whole, without the turns that all the sessions share. With `--run`, the
/// command runs in a scratch worktree on the files after each of them, confined as the commands of
/// a plan are.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy compare add-auth add-auth-retry-1\n  teddy compare add-auth:3 other:3 --run 'cargo test'\n  teddy compare 2 4 --diff"
)]
pub(super) struct Args {
    /// Turns or sessions
    #[arg(required = true, num_args = 2.., value_name = "TURN|SESSION", add = complete::with(complete::turns))]
    sides: Vec<String>,
    /// Run this line of the shell on the files of each
    #[arg(long, value_name = "COMMAND")]
    run: Option<String>,
    /// Also show how the files after the first two differ
    #[arg(long, conflicts_with = "json")]
    diff: bool,
}

/// Compares and prints.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let mut user = app.user(&project, false);
    let sides = compare(&project, &args.sides, args.run.as_deref(), user.as_mut())?;
    drop(user);
    if app.global.json {
        app.print_json(&sides)?;
        return Ok(exit::DONE.into());
    }

    app.print(table(&sides))?;
    if let ([first, second, ..], true) = (sides.as_slice(), args.diff) {
        let trees = (first.tree, second.tree);
        difference::show(app, &project, trees, (ShownAs::Patch, &|_| true))?;
    }

    Ok(exit::DONE.into())
}

/// Returns the sides as a table: a column for each.
fn table(sides: &[Side]) -> String {
    let mut rows: Vec<(&str, Vec<String>)> = vec![("", column(sides, |side| side.name.clone()))];
    rows.push((
        "status",
        column(sides, |side| side.status.word().to_owned()),
    ));
    rows.push(("model", column(sides, |side| listed(&side.models))));
    rows.push(("turns", column(sides, |side| side.turns.to_string())));
    rows.push(("files", column(sides, |side| side.files.to_string())));
    rows.push(("lines", column(sides, changed_lines)));
    rows.push(("tokens", column(sides, tokens)));

    let cost = |side: &Side| {
        side.cost
            .map_or(UNKNOWN.to_owned(), |cost| format!("${cost:.2}"))
    };
    rows.push(("cost", column(sides, cost)));
    let time = |side: &Side| {
        side.seconds
            .map_or(UNKNOWN.to_owned(), |time| format!("{time:.1} s"))
    };

    rows.push(("time", column(sides, time)));
    if sides.iter().any(|side| side.run.is_some()) {
        let code = |side: &Side| match &side.run {
            Some(run) => format!("exit {} in {:.1} s", run.exit_code, run.seconds),
            None => UNKNOWN.to_owned(),
        };
        rows.push(("run", column(sides, code)));
    }

    let widths: Vec<usize> = (0..sides.len())
        .map(|at| {
            rows.iter()
                .map(|(_, cells)| cells[at].width())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for (name, cells) in rows {
        let mut line = format!("{name:7}");
        for (cell, width) in cells.iter().zip(&widths) {
            line.push_str("  ");
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.width()));
        }

        text.push_str(line.trim_end());
        text.push('\n');
    }

    text
}

/// What stands where something is not known.
const UNKNOWN: &str = "-";

/// Returns a row's cells.
fn column(sides: &[Side], cell: impl Fn(&Side) -> String) -> Vec<String> {
    sides
        .iter()
        .map(|side| visible(&cell(side)).into_owned())
        .collect()
}

/// Returns names in a row.
fn listed(names: &[String]) -> String {
    match names {
        [] => UNKNOWN.to_owned(),
        names => names.join(", "),
    }
}

/// Returns how many lines came and went.
fn changed_lines(side: &Side) -> String {
    match (side.added, side.removed) {
        (Some(added), Some(removed)) => format!("+{added} -{removed}"),
        _ => UNKNOWN.to_owned(),
    }
}

/// Returns the tokens read and written.
fn tokens(side: &Side) -> String {
    match (side.tokens_in, side.tokens_out) {
        (Some(read), Some(written)) => format!("{read} in, {written} out"),
        _ => UNKNOWN.to_owned(),
    }
}
