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

    let is_clear = bisected.culprits.len() == 1 || bisected.edits.is_some();
    Ok(exit::success_if(is_clear))
}

/// Joins arguments into a shell command line. A single argument is a command line already.
pub(super) fn command_line(args: &[String]) -> anyhow::Result<String> {
    match args {
        [line] => Ok(line.clone()),
        args => Ok(shlex::try_join(args.iter().map(String::as_str))?),
    }
}

fn lines(bisected: &Bisected) -> Vec<StyledLine> {
    if let Some(edits) = &bisected.edits {
        let head = format!(
            "No turn: the files were changed before {}:{}, and fail since",
            bisected.session, edits.before
        );
        let mut lines = vec![StyledLine::of(Tone::Strong, &head)];
        lines.extend(file_lines(&edits.files));
        return lines;
    }
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

    lines.extend(file_lines(&culprit.files));
    lines
}

fn file_lines(files: &[String]) -> Vec<StyledLine> {
    let shown = files.iter().take(MOST_LINES);
    let mut lines: Vec<StyledLine> = shown
        .map(|file| StyledLine::of(Tone::Plain, &format!("  {file}")))
        .collect();
    let more = files.len().saturating_sub(MOST_LINES);
    if more > 0 {
        let more = format!("  ... and {more} more");
        lines.push(StyledLine::of(Tone::Faint, &more));
    }
    lines
}

/// Lines shown of a request and of a list of files.
const MOST_LINES: usize = 12;
