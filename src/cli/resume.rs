//! `teddy resume`

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::execute::{code, json as execute_json, show};
use super::exit;
use super::plan::json as plan_json;
use super::source;
use crate::host::{interrupt, screen};
use crate::session::name::SessionName;
use crate::workflow::models::NoModel;
use crate::workflow::project::Project;
use crate::workflow::resume::{Wish, resume};

/// Go on with the session: execute the plan that waits, else ask for a message and plan, and so on
///
/// Ends when you leave (ctrl-d). With --yolo it runs without approval and stops at a question of the model that you
/// don't answer, a limit, or a second rejected correction in a row.
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
    /// What you want; `-` reads standard input
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Approve every plan
    #[arg(short, long)]
    yes: bool,
    /// Go on without a person
    #[arg(long)]
    yolo: bool,
    /// The model: a name of the configuration, or `kind:id`
    #[arg(long, value_name = "MODEL", add = complete::with(complete::models))]
    model: Option<String>,
    /// The pipeline that makes each plan
    #[arg(long, value_name = "NAME", add = complete::with(complete::pipelines))]
    pipeline: Option<String>,
    /// Show the model this many turns before the previous one
    #[arg(long, value_name = "N", default_value_t = 0)]
    context_depth: u64,
    /// Stop after this many turns
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,
    /// Stop before the session costs more than this, in place of `limits.cost`
    #[arg(long, value_name = "USD")]
    max_cost: Option<f64>,
}

impl How {
    /// Returns a free session name made of the message.
    pub(super) fn session_name(&self, project: &Project) -> anyhow::Result<SessionName> {
        let wanted = SessionName::from_title(self.message.as_deref().unwrap_or("session"));
        project.free_name(wanted)
    }

    /// Reads the message from standard input where it is `-`.
    pub(super) fn read_message(&mut self) -> anyhow::Result<()> {
        self.message = self.message.take().map(source::message).transpose()?;
        Ok(())
    }

    /// Makes sure that a new session has what its first plan takes.
    pub(super) fn check(&self, app: &App, project: &Project) -> anyhow::Result<()> {
        anyhow::ensure!(self.message.is_some() || is_attended(app), "nobody can be asked what to do: use `-m`");
        let usual = project.settings.pipeline.as_ref().filter(|_| self.model.is_none());
        if let Some(pipeline) = self.pipeline.as_ref().or(usual) {
            project.read_pipeline(pipeline)?;
            return Ok(());
        }
        let model = self.model.as_ref().or(project.settings.model.as_ref()).ok_or(NoModel::Plan)?;
        project.model_settings(model)?;
        Ok(())
    }
}

/// Returns whether a person can be asked.
fn is_attended(app: &App) -> bool {
    screen::is_there() && !app.global.json
}

/// Goes on.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let mut how = args.how;
    how.read_message()?;
    go(app, project, how)
}

/// Runs the loop of `start` and `resume`, and says what came of each turn as it is recorded.
pub(super) fn go(app: &App, mut project: Project, how: How) -> anyhow::Result<ExitCode> {
    let wish = Wish {
        once: !is_attended(app) && !how.yolo,
        message: how.message,
        yolo: how.yolo,
        max_turns: how.max_turns,
        max_cost: how.max_cost,
        depth: how.context_depth,
        model: how.model,
        pipeline: how.pipeline,
    };
    let mut user = app.user(&project, how.yes || how.yolo);
    let mut turns = Vec::new();
    let resumed = resume(&mut project, &wish, user.as_mut(), &mut |executed| {
        if app.global.json {
            turns.push(execute_json(executed));
            return Ok(());
        }
        show(app, executed)
    });
    drop(user);
    if app.global.json {
        let waiting = resumed.as_ref().ok().and_then(|resumed| resumed.waiting.as_ref());
        app.print_json(&serde_json::json!({ "turns": turns, "waiting": waiting.map(plan_json) }))?;
    }
    let last = resumed?.last;
    Ok(if interrupt::requested() { exit::INTERRUPTED } else { last.as_ref().map_or(exit::DONE, code) }.into())
}
