//! `teddy compare`: compares turns or sessions.

use super::app::App;
use super::complete;
use super::difference::{self, ShownAs};
use crate::ui::comparison::table;
use crate::workflow::compare::compare;

/// Compare turns or sessions, and run a command on each
///
/// Shows files, lines, turns, tokens, cost, time, model and status. A session counts as a whole,
/// without the turns that all the sessions share. With `--check`, the command runs in a scratch
/// worktree on the files after each of them, confined as the commands of a plan are.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy compare add-auth add-auth-retry-1\n  teddy compare add-auth:3 other:3 --check 'cargo test'\n  teddy compare 2 4 --diff"
)]
pub(super) struct Args {
    /// Turns or sessions
    #[arg(required = true, num_args = 2.., value_name = "TURN|SESSION", add = complete::with(complete::turns_and_sessions))]
    sides: Vec<String>,
    /// Run this line of the shell on the files of each
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// Also show how the files after the first two differ
    #[arg(long, conflicts_with = "json")]
    diff: bool,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    let project = match args.check {
        Some(_) => app.project()?,
        None => app.project_for_reading()?,
    };
    let mut user = app.user(&project, false);
    let sides = compare(&project, &args.sides, args.check.as_deref(), user.as_mut())?;
    drop(user);
    if app.global.json {
        return app.print_json(&sides);
    }

    app.print(table(&sides))?;
    if let ([first, second, ..], true) = (sides.as_slice(), args.diff) {
        let trees = (first.tree, second.tree);
        difference::show(app, &project, trees.0, trees.1, ShownAs::Patch, &|_| true)?;
    }

    Ok(())
}
