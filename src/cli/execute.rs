//! `teddy execute`

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::exit::{self, Code};
use super::failure::{ANSWER, Unfinished};
use super::plan::json as plan_json;
use super::source;
use crate::plan::run::{Ending, Interruption, Outcome};
use crate::session::meta::Status;
use crate::ui::quiet::Unapproved;
use crate::ui::{markdown, mistakes};
use crate::workflow::execute::decline::execute_or_plan;
use crate::workflow::execute::{Asked, Executed, Wish};

/// Check, review and run the plan; record the turn; update your files
///
/// The plan runs in an isolated worktree. Edits that you make in the meantime are kept; if they
/// overlap with the result, your files are not updated, the result stays in the turn, and the exit
/// code is 4.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy execute                 review the draft's plan\n  teddy execute -y              approve all of it\n  teddy execute plan.md -y      run a plan from elsewhere; starts a session if there is none\n\nExit codes: 0 done, 1 an action failed, 3 plan rejected, 4 recorded, but your files were not updated, 5 the model waits for your answer"
)]
pub(super) struct Args {
    /// Run the plan in this file (or `-`) instead of the draft
    #[arg(value_name = "PLAN", value_hint = clap::ValueHint::FilePath)]
    plan: Option<String>,
    /// Approve everything
    #[arg(short, long)]
    yes: bool,
    /// Don't ask the model for another plan if this one is rejected
    #[arg(long)]
    no_replan: bool,
    /// The model that corrects a rejected plan
    #[arg(long, value_name = "MODEL", add = complete::with(complete::models))]
    model: Option<String>,
}

/// Executes and says what came of it.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let plan = args
        .plan
        .as_deref()
        .map(|path| {
            source::read(
                app,
                path,
                "`teddy execute` runs the plan that waits; `-` reads one from standard input",
            )
        })
        .transpose()?;
    let mut project = app.project()?;
    let mut user = app.user(&project, args.yes);
    let wish = Wish {
        plan,
        replan: !args.no_replan,
        model: args.model,
        yolo: false,
    };
    let executed = execute_or_plan(&mut project, &wish, user.as_mut()).map_err(unapproved)?;
    drop(user);
    show(app, &executed)?;
    if executed.asked == Some(Asked::Answered) {
        app.say("Your answer is kept for the next turn. Next: teddy resume");
    }
    if let Some(question) = executed.unanswered() {
        tell_question(app, question, ANSWER);
    }
    Ok(code(&executed).into())
}

/// Puts what there is to decide on beside the error that nobody decided.
fn unapproved(error: anyhow::Error) -> anyhow::Error {
    let Some(Unapproved { review }) = error.downcast_ref() else {
        return error;
    };
    let shown = serde_json::json!({
        "session": review["session"],
        "turn": review["turn"],
        "commit": null,
        "status": "planned",
        "review": review,
    });
    Unfinished { shown, error }.into()
}

/// Returns the exit code of a result.
pub(super) fn code(executed: &Executed) -> Code {
    match executed.status {
        _ if executed.interruption == Some(Interruption::User) => exit::INTERRUPTED,
        _ if crate::host::interrupt::requested() => exit::INTERRUPTED,
        Some(Status::Interrupted) => exit::FAILED,
        Some(Status::Rejected) => exit::REJECTED,
        _ if !executed.overlaps.is_empty() => exit::OVERLAP,
        _ if executed.unanswered().is_some() => exit::WAITS,
        Some(Status::Failed) => exit::FAILED,
        _ => exit::DONE,
    }
}

/// Says what came of an execution.
pub(super) fn show(app: &App, executed: &Executed) -> anyhow::Result<()> {
    if app.global.json {
        return app.print_json(&json(executed));
    }
    let Some(commit) = executed.commit else {
        show_unrecorded(app, executed);
        return Ok(());
    };
    let word = executed.status.map_or("recorded", Status::word);
    let id = commit.to_string();
    app.print(format!("turn {} {word} {}\n", executed.turn, &id[..12]))?;
    for path in &executed.overlaps {
        app.warn(&format!(
            "`{path}` overlaps with your own edits and was left as it is"
        ));
    }
    executed.notes.iter().for_each(|note| app.warn(note));
    if let Some(why) = &executed.interruption {
        app.warn(&format!(
            "the plan was interrupted: {why}; your files are unchanged"
        ));
        app.say(&format!(
            "`teddy execute` runs it again, `teddy diff {0}` shows what it did, `teddy restore {0}` applies that.",
            executed.turn
        ));
    }
    if !executed.overlaps.is_empty() {
        app.say("The result is in the turn: `teddy restore @ --theirs` takes it, `--markers` writes conflict markers, `--ours` keeps your side.");
    }
    if let Some(planned) = &executed.replanned {
        app.say(&match planned.title.as_str() {
            "" => format!(
                "The model answered for turn {}, but that is not a plan. Next: teddy execute",
                planned.turn
            ),
            title => format!(
                "The model wrote another plan for turn {}: {title}. Next: teddy execute",
                planned.turn
            ),
        });
    } else if executed.status == Some(Status::Rejected) {
        app.say(&format!(
            "`teddy show {} report.md` says what is wrong.",
            executed.turn
        ));
    }
    if let Some(said) = &executed.conclusion {
        tell_conclusion(app, said);
    }
    Ok(())
}

/// Says why nothing was recorded.
fn show_unrecorded(app: &App, executed: &Executed) {
    if executed.status != Some(Status::Rejected) {
        app.say(&format!(
            "Nothing was run; the plan of turn {} is waiting.",
            executed.turn
        ));
        return;
    }
    app.tell_lines(&mistakes::rejected(&executed.diagnostics));
    app.warn(if executed.session.is_empty() {
        "the plan is rejected and no session was started"
    } else {
        "this is not a plan; nothing was recorded and no model was asked"
    });
}

/// Shows what the model asks, whole, and says how it is answered.
pub(super) fn tell_question(app: &App, question: &str, hint: &str) {
    app.warn("the model waits for your answer:");
    app.tell_lines(&markdown::quoted(question));
    app.say(&format!("hint: {hint}"));
}

/// Shows what the model said when it called the work done.
pub(super) fn tell_conclusion(app: &App, said: &str) {
    app.say("The work is done, says the model:");
    app.say_lines(&markdown::quoted(said));
}

/// Returns the result as JSON.
pub(super) fn json(executed: &Executed) -> serde_json::Value {
    let action = |(index, action): (usize, &crate::plan::action::Action)| {
        let outcome = executed.outcomes.get(index);
        serde_json::json!({
            "index": index,
            "kind": action.kind.name(),
            "target": action.kind.target(),
            "status": outcome.map_or("not run", ending),
            "detail": outcome.map(|o| &o.detail),
            "exit_code": outcome.and_then(|o| o.exit_code),
            "duration_ms": outcome.map(|o| o.duration.as_millis()),
        })
    };
    serde_json::json!({
        "session": executed.session,
        "turn": executed.turn,
        "commit": executed.commit,
        "status": executed.status.map_or("planned", Status::word),
        "before": executed.before,
        "after": executed.after,
        "synced": executed.synced,
        "overlaps": executed.overlaps,
        "notes": executed.notes,
        "interruption": executed.interruption.as_ref().map(ToString::to_string),
        "actions": executed.plan.actions.iter().enumerate().map(action).collect::<Vec<_>>(),
        "diagnostics": executed.diagnostics,
        "replanned": executed.replanned.as_ref().map(plan_json),
        "question": executed.unanswered(),
        "conclusion": executed.conclusion,
        "workspace": executed.drift,
    })
}

/// Returns the word for an ending.
fn ending(outcome: &Outcome) -> &'static str {
    match outcome.ending {
        Ending::Success => "success",
        Ending::Failure => "failure",
        Ending::Skipped => "skipped",
    }
}
