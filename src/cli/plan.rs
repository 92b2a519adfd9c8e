//! `teddy plan`: asks the model for a plan.

use super::app::App;
use super::begin::begin_session_or_hand_to;
use super::exit::{self, ExitStatus};
use super::prompt::message;
use super::request::RequestFlags;
use super::{complete, number, source};
use crate::plan;
use crate::project::Project;
use crate::session::meta::ModelUse;
use crate::text::{counted, grouped, grouped_count};
use crate::ui::mistakes;
use crate::ui::notice::list_paths;
use crate::ui::terminal_user::PROSE_HEADING;
use crate::workflow::ask::AnswerUser;
use crate::workflow::execute::execute;
use crate::workflow::execute::options::ExecuteOptions;
use crate::workflow::model::choose::{self, NoModel};
use crate::workflow::model::pipelines;
use crate::workflow::plan::{self as planning, PlanOptions, WaitingPlan};
use crate::workflow::user::User;

/// Ask the model for a plan, which waits for your approval
///
/// Builds `input.md`, asks the model, repairs the code fences of its answer and checks the plan.
/// Nothing runs until `teddy execute`. If no session is in use, one is started.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy plan 'add a --version flag'\n  teddy plan 'fix the parser' src/parse.rs tests/\n  teddy plan -m - < request.txt\n  teddy plan --from answer.md          take an answer from a chat window\n  teddy plan --model 'command:claude -p' -m 'fix the test'"
)]
pub(super) struct Args {
    /// What you want, then files to show the model
    #[arg(value_name = "TEXT|FILE", value_hint = clap::ValueHint::AnyPath)]
    words: Vec<String>,
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    wanted: PlanFlags,
    /// Read the model's raw answer from this file (or `-`)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    from: Option<String>,
}

/// What a plan is asked for with, be it alone or in a loop.
#[derive(clap::Args)]
pub(super) struct PlanFlags {
    /// The agent that plans, from now on
    #[arg(short, long, value_name = "AGENT", add = complete::with(complete::agents))]
    pub(super) agent: Option<String>,
    /// The model: a name from the configuration, or `kind:id`
    #[arg(long, value_name = "MODEL", add = complete::with(complete::models))]
    pub(super) model: Option<String>,
    /// The pipeline that produces the plan
    #[arg(long, value_name = "NAME", add = complete::with(complete::pipelines))]
    pub(super) pipeline: Option<String>,
    /// Also show the model this many turns before the previous one
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number::depth)]
    pub(super) context_depth: u64,
}

impl PlanFlags {
    /// Checks that the model or pipeline is available, before anything is written for it.
    pub(super) fn check(&self, project: &Project) -> anyhow::Result<()> {
        let usual = project
            .settings
            .pipeline
            .as_ref()
            .filter(|_| self.model.is_none());
        if let Some(pipeline) = self.pipeline.as_ref().or(usual) {
            pipelines::read_pipeline(project, pipeline)?;
            return Ok(());
        }

        check_model(project, self.model.as_deref())
    }

    pub(super) fn model_or_pipeline(&self) -> Option<&str> {
        self.model.as_deref().or(self.pipeline.as_deref())
    }
}

/// Checks that the named model, else the session's, else the configured one is usable.
pub(super) fn check_model(project: &Project, requested: Option<&str>) -> anyhow::Result<()> {
    let usual = match project.session() {
        Ok(session) => project.model_of(&session),
        Err(_) => project.settings.model.clone(),
    };
    let name = requested.or(usual.as_deref());
    choose::check(project, name.ok_or(NoModel::Plan)?)
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitStatus> {
    let mut project = app.project()?;
    if args.from.is_none() {
        app.ensure_model(&mut project, args.wanted.model_or_pipeline())?;
    }

    let request = args.request.read(app, &project, args.words)?;
    let from = args
        .from
        .as_deref()
        .map(|path| source::read(app, path, "`--from -` reads the answer from standard input"))
        .transpose()?;
    if from.is_none() {
        args.wanted.check(&project)?;
    }

    let title = from.as_deref().map(|answer| plan::parse(answer).0.title);
    let title = request.message.clone().or(title).unwrap_or_default();
    begin_session_or_hand_to(app, &mut project, &title, args.wanted.agent.as_deref())?;
    request.show_files(app, &project)?;

    let mut user = app.helped_user(&project, false, message::rules(app));
    let mut text = request.message;
    if text.is_none() && from.is_none() {
        text = planning::ask_next_message(&project, user.as_mut())?;
        if let Some(typed) = &text {
            message::add_mentioned(app, &project, typed)?;
        }
    }

    let options = PlanOptions {
        message: text,
        from,
        model: args.wanted.model,
        pipeline: args.wanted.pipeline,
        depth: args.wanted.context_depth,
        ..PlanOptions::default()
    };
    let planned = planning::plan_next_turn(&project, &options, user.as_mut())?;
    if planned.answer.is_some() {
        keep_answer(&project, user.as_mut())?;
    }
    drop(user);
    show(app, &planned)?;
    Ok(code(&planned))
}

/// Records a prose answer as a turn, so that the model sees it in the next one.
pub(super) fn keep_answer(project: &Project, user: &mut dyn User) -> anyhow::Result<()> {
    let options = ExecuteOptions {
        leaves_question: true,
        ..ExecuteOptions::default()
    };
    execute(project, &options, &mut AnswerUser(user)).map(|_| ())
}

pub(super) fn code(planned: &WaitingPlan) -> ExitStatus {
    match planned.answer {
        Some(_) => exit::WAITS,
        None => exit::success_or(planned.diagnostics.is_empty(), exit::REJECTED),
    }
}

/// Prints the plan, or its diagnostics.
pub(super) fn show(app: &App, planned: &WaitingPlan) -> anyhow::Result<()> {
    if app.global.json {
        return app.print_json(&json(planned));
    }

    if planned.answer.is_none() {
        app.print_foreign(&planned.text)?;
    }
    planned
        .model
        .iter()
        .filter(|used| used.tokens().is_some() || used.cost.is_some())
        .for_each(|used| app.note(&usage(used)));
    if let Some(answer) = &planned.answer {
        return show_answer(app, answer);
    }
    if planned.diagnostics.is_empty() {
        app.note(&format!(
            "Planned turn {}: \"{}\". Next: `teddy execute`",
            planned.turn, planned.title
        ));
        return Ok(());
    }

    if !planned.unseen.is_empty() {
        app.note(&format!(
            "The plan of turn {} changes files that the model has not read: {}. `teddy execute` shows them to it and asks again.",
            planned.turn,
            list_paths(&planned.unseen)
        ));
        return Ok(());
    }

    let count = counted(planned.diagnostics.len(), "mistake");
    app.warn(&match planned.title.as_str() {
        "" => format!(
            "the answer of turn {} is not a plan; {count}:",
            planned.turn
        ),
        _ => format!("the plan of turn {} has {count}:", planned.turn),
    });

    app.eprint_lines(&mistakes::listed(&planned.diagnostics));
    app.note("`teddy execute` records it as rejected and asks the model again.");
    Ok(())
}

/// Shows an answer in prose that a command ends with.
pub(super) fn show_answer(app: &App, answer: &str) -> anyhow::Result<()> {
    if app.global.json {
        return Ok(());
    }
    report_prose(app, answer)?;
    app.note("Next: `teddy resume` replies to it, or asks for the plan");
    Ok(())
}

/// Shows an answer of the model in prose.
pub(super) fn report_prose(app: &App, answer: &str) -> anyhow::Result<()> {
    app.note(PROSE_HEADING);
    app.print_message(answer)
}

/// Describes the cost of a plan: `sonnet: 12,345 tokens in (1,000 cached), 678 out, $0.05`.
fn usage(used: &ModelUse) -> String {
    let cached = if used.tokens_cached > 0 {
        format!(" ({} cached)", grouped(used.tokens_cached))
    } else {
        String::new()
    };

    let cost = used.cost.map_or_else(
        || "; no price is known".to_owned(),
        |cost| format!(", ${cost:.4}"),
    );
    let tokens = match used.tokens() {
        Some((read, written)) => {
            let read = grouped_count(read, "token");
            format!("{read} in{cached}, {} out", grouped(written))
        }
        None => "unknown tokens".to_owned(),
    };
    format!("{}: {tokens}{cost}", used.asked)
}

pub(super) fn json(planned: &WaitingPlan) -> serde_json::Value {
    let model = planned.model.as_ref();
    let tokens = model.and_then(ModelUse::tokens);
    serde_json::json!({
        "session": planned.session,
        "turn": planned.turn,
        "title": planned.title,
        "answer": planned.answer,
        "model": model.map(|m| &m.asked),
        "answered_by": model.map(|m| &m.answered),
        "tokens_in": tokens.map(|(read, _)| read),
        "tokens_out": tokens.map(|(_, written)| written),
        "cost": model.and_then(|m| m.cost),
        "repair": planned.repair,
        "diagnostics": planned.diagnostics,
        "outline": planned.outline,
        "workspace": planned.drift,
    })
}
