//! `teddy bisect`: finds the turn that broke something.

use clap::Subcommand;

use super::app::App;
use super::complete;
use super::exit::{self, ExitStatus};
use crate::text::sanitize::sanitize_line;
use crate::ui::style::{StyledLine, Tone, block};
use crate::workflow::bisect::{BisectOptions, Bisected, Culprit, bisect};

/// Find the first turn after which a command fails
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy bisect run 'cargo test'\n  teddy bisect run --good 3 make check\n  git bisect start teddy/sessions/add-auth^2 main"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: BisectCommand,
}

/// What is done.
#[derive(Subcommand)]
enum BisectCommand {
    Run(RunArgs),
}

/// Run a command on what turns left, and find the first turn after which it fails
///
/// The command runs in a scratch worktree, confined as the commands of a plan are; your files are
/// not touched. Exit code 0 means good, and 125 that it cannot tell. 126 and 127, for a command that
/// cannot be run, and everything above stop the search. Any other means bad.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy bisect run 'cargo test'\n  teddy bisect run --good 3 --bad 9 cargo test --lib\n  teddy bisect run --json 'grep -q form login.html'"
)]
struct RunArgs {
    /// A turn after which it succeeds [default: the files before the first turn]
    #[arg(long, value_name = "TURN", add = complete::with(complete::turns))]
    good: Option<String>,
    /// A turn after which it fails [default: the newest turn]
    #[arg(long, value_name = "TURN", add = complete::with(complete::turns))]
    bad: Option<String>,
    /// The command, with everything that follows: one word is a line for the shell, several are a
    /// program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let BisectCommand::Run(args) = args.command;
    let project = app.project()?;
    let command = command_line(&args.command)?;
    let options = BisectOptions {
        command: &command,
        good: args.good.as_deref(),
        bad: args.bad.as_deref(),
    };

    let mut user = app.user(&project, false);
    let bisected = bisect(&project, &options, user.as_mut())?;
    drop(user);
    if app.global.json {
        app.print_json(&bisected)?;
    } else {
        app.page(&project, &lines(&bisected))?;
    }

    let is_told = bisected.culprits.len() == 1;
    Ok(exit::success_if(is_told))
}

/// Joins arguments into a shell command line. A single argument is a command line already.
pub(super) fn command_line(args: &[String]) -> anyhow::Result<String> {
    match args {
        [line] => Ok(line.clone()),
        args => Ok(shlex::try_join(args.iter().map(String::as_str))?),
    }
}

fn lines(bisected: &Bisected) -> Vec<StyledLine> {
    match bisected.culprits.as_slice() {
        [culprit] => {
            let head = format!(
                "{}:{} is the first bad turn",
                bisected.session, culprit.turn
            );
            let mut lines = vec![StyledLine::of(Tone::Strong, &head)];
            lines.extend(described(culprit));
            lines
        }
        culprits => {
            let head =
                "The first bad turn is one of these; some turns between them could not be tested:";
            let mut lines = vec![StyledLine::of(Tone::Strong, head)];
            for culprit in culprits {
                let name = format!("  {}:{} ", bisected.session, culprit.turn);
                lines.push(StyledLine::of(Tone::Accent, &name).with(Tone::Plain, &culprit.title));
            }
            lines
        }
    }
}

/// Describes a turn: title, model, request, changes.
fn described(culprit: &Culprit) -> Vec<StyledLine> {
    let model = culprit.model.as_deref().unwrap_or("no model");
    let mut lines = vec![
        StyledLine::of(Tone::Plain, &format!("  {} ", culprit.title))
            .with(Tone::Faint, &format!("({})", sanitize_line(model))),
    ];
    for line in culprit.request.trim().lines().take(MOST_LINES) {
        lines.extend(block(Tone::Faint, &format!("  > {line}")));
    }

    for file in culprit.files.iter().take(MOST_LINES) {
        lines.push(StyledLine::of(Tone::Plain, &format!("  {file}")));
    }

    let more = culprit.files.len().saturating_sub(MOST_LINES);
    if more > 0 {
        lines.push(StyledLine::of(
            Tone::Faint,
            &format!("  ... and {more} more"),
        ));
    }

    lines
}

/// Lines shown of a request and of a list of files.
const MOST_LINES: usize = 12;
