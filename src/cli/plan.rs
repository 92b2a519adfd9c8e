//! `teddy plan`

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::exit::{self, ExitStatus};
use super::source;
use crate::session::meta::{MessageOrigin, ModelUse};
use crate::text::counted;
use crate::ui::mistakes;
use crate::ui::progress::grouped;
use crate::workflow::plan::{PlanOptions, WaitingPlan, plan};

/// Ask the model for a plan and save it as the session's draft
///
/// Builds `input.md`, asks the model, repairs the code fences of its answer and checks the plan.
/// Nothing runs until `teddy execute`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy plan -m 'add a --version flag'\n  teddy plan -m - < request.txt\n  teddy plan --from answer.md          take an answer from a chat window\n  teddy plan --model 'command:claude -p' -m 'fix the test'"
)]
pub(super) struct Args {
    #[command(flatten)]
    wanted: PlanFlags,
    /// Read the model's raw answer from this file (or `-`)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    from: Option<String>,
}

/// What a plan is asked for with, be it alone or in a loop.
#[derive(clap::Args)]
pub(super) struct PlanFlags {
    /// What you want; `-` reads standard input
    #[arg(short, long, value_name = "TEXT")]
    pub(super) message: Option<String>,
    /// The model: a name from the configuration, or `kind:id`
    #[arg(long, value_name = "MODEL", add = complete::with(complete::models))]
    pub(super) model: Option<String>,
    /// The pipeline that produces the plan
    #[arg(long, value_name = "NAME", add = complete::with(complete::pipelines))]
    pub(super) pipeline: Option<String>,
    /// Also show the model this many turns before the previous one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) context_depth: u64,
}

/// Plans and says what came of it.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let mut user = app.user(&project, false);
    let PlanFlags {
        message,
        model,
        pipeline,
        context_depth: depth,
    } = args.wanted;
    let message = message.map(source::message).transpose()?;
    let from = args
        .from
        .as_deref()
        .map(|path| source::read(app, path, "`--from -` reads the answer from standard input"))
        .transpose()?;
    let wish = PlanOptions {
        message,
        from,
        model,
        pipeline,
        depth,
        origin: MessageOrigin::User,
        work: None,
    };

    let planned = plan(&project, &wish, user.as_mut())?;
    drop(user);
    show(app, &planned)?;
    Ok(code(&planned).into())
}

/// Returns the exit code of a result.
pub(super) fn code(planned: &WaitingPlan) -> ExitStatus {
    if planned.diagnostics.is_empty() {
        exit::DONE
    } else {
        exit::REJECTED
    }
}

/// Prints the plan, or what is wrong with it.
pub(super) fn show(app: &App, planned: &WaitingPlan) -> anyhow::Result<()> {
    if app.global.json {
        return app.print_json(&json(planned));
    }

    app.print_foreign(&planned.text)?;
    planned
        .model
        .iter()
        .filter(|used| used.tokens().is_some())
        .for_each(|used| app.say(&usage(used)));
    if planned.diagnostics.is_empty() {
        app.say(&format!(
            "Planned turn {}: {}. Next: teddy execute",
            planned.turn, planned.title
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

    app.tell_lines(&mistakes::listed(&planned.diagnostics));
    if let Some(outline) = planned
        .outline
        .as_ref()
        .filter(|outline| !outline.is_empty())
    {
        app.say(&format!("How the plan was read:\n{outline}"));
    }

    app.say("`teddy execute` records it as rejected and asks the model again.");
    Ok(())
}

/// Says what a plan took: `sonnet: 12,345 tokens in (1,000 cached), 678 out, $0.05`.
fn usage(used: &ModelUse) -> String {
    let number = |tokens: u64| grouped(usize::try_from(tokens).unwrap_or(usize::MAX));
    let cached = if used.tokens_cached > 0 {
        format!(" ({} cached)", number(used.tokens_cached))
    } else {
        String::new()
    };

    let cost = used.cost.map_or_else(
        || "; no price is known".to_owned(),
        |cost| format!(", ${cost:.4}"),
    );
    format!(
        "{}: {} tokens in{cached}, {} out{cost}",
        used.asked,
        number(used.tokens_in),
        number(used.tokens_out)
    )
}

/// Returns the result as JSON.
pub(super) fn json(planned: &WaitingPlan) -> serde_json::Value {
    let model = planned.model.as_ref();
    let tokens = model.and_then(ModelUse::tokens);
    serde_json::json!({
        "session": planned.session,
        "turn": planned.turn,
        "title": planned.title,
        "model": model.map(|m| &m.asked),
        "answered_by": model.map(|m| &m.answered),
        "tokens_in": tokens.map(|(read, _)| read),
        "tokens_out": tokens.map(|(_, written)| written),
        "cost": model.and_then(|m| m.cost),
        "repair": planned.repair,
        "diagnostics": planned.diagnostics,
        "workspace": planned.drift,
    })
}
