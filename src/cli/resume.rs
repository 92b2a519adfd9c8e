//! `teddy resume`

use std::process::ExitCode;

use super::app::App;
use super::execute::{code, json as execute_json, show};
use super::exit;
use super::plan::json as plan_json;
use crate::session::name::SessionName;
use crate::workflow::project::Project;
use crate::workflow::resume::{Wish, resume};

/// Go on with the session: execute the plan that waits, else ask for a message and plan, and so on
///
/// Ends when you leave (ctrl-d). With --yolo it runs without approval and stops at a question of the model, a limit,
/// or a second rejected plan in a row.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy resume\n  teddy resume -m 'now the tests'\n  teddy resume --yolo --max-turns 5 --max-cost 1 -m 'make the tests pass'"
)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) how: How,
}

/// How a loop goes.
#[derive(clap::Args)]
pub(super) struct How {
    /// What you want
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Approve every plan
    #[arg(short, long)]
    yes: bool,
    /// Go on without a person
    #[arg(long)]
    yolo: bool,
    /// The model: a name of the configuration, or `kind:id`
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Show the model this many turns before the previous one
    #[arg(long, value_name = "N", default_value_t = 0)]
    context_depth: u64,
    /// Stop after this many turns
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,
    /// Stop when the session has cost this much
    #[arg(long, value_name = "USD")]
    max_cost: Option<f64>,
}

impl How {
    /// Returns a free session name made of the message.
    pub(super) fn session_name(&self, project: &Project) -> anyhow::Result<SessionName> {
        let wanted = SessionName::from_title(self.message.as_deref().unwrap_or("session"));
        project.free_name(wanted)
    }
}

/// Goes on.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    go(app, project, args.how)
}

/// Runs the loop of `start` and `resume`, and says what came of each turn.
pub(super) fn go(app: &App, mut project: Project, how: How) -> anyhow::Result<ExitCode> {
    let attended = crate::ui::terminal::is_there() && !how.yolo && !app.global.json;
    let wish = Wish {
        message: how.message,
        yolo: how.yolo,
        // Where nobody can be asked for the next message, one turn is what was asked for.
        max_turns: how.max_turns.or((!attended && !how.yolo).then_some(1)),
        max_cost: how.max_cost,
        depth: how.context_depth,
        model: how.model,
    };
    let mut user = app.user(&project, how.yes || how.yolo);
    let resumed = resume(&mut project, &wish, user.as_mut())?;
    drop(user);
    if app.global.json {
        let turns: Vec<_> = resumed.executed.iter().map(execute_json).collect();
        app.print_json(&serde_json::json!({ "turns": turns, "waiting": resumed.waiting.as_ref().map(plan_json) }))?;
    } else {
        resumed.executed.iter().try_for_each(|executed| show(app, executed))?;
    }
    Ok(resumed.executed.last().map_or(exit::DONE, code).into())
}
