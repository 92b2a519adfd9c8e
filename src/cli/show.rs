//! `teddy show`

use std::process::ExitCode;

use super::app::App;
use super::complete;
use super::exit;
use crate::plan;
use crate::session::artifact;
use crate::workflow::log;

/// Show a turn: its report, or one of its files
///
/// The turn in progress is called `draft`, or goes by its number; its plan is shown while it waits.
///
/// The files of a turn: input.md, user_prompt.txt, system_prompt.xml, reply.md, plan.md, report.md,
/// turn.context, session.context, meta.yaml, steps/, output/, changes/, next/.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy show                        the newest turn's report\n  teddy show 3 plan.md\n  teddy show draft                  the plan that waits\n  git show teddy/sessions/add-auth~2:report.md"
)]
pub(super) struct Args {
    /// The turn: a number, `draft`, or anything that `git rev-parse` accepts; the newest one if
    /// omitted
    #[arg(add = complete::with(complete::turns_and_artifacts))]
    turn: Option<String>,
    /// One of its files; `report.md` if omitted
    #[arg(add = complete::with(complete::artifacts))]
    artifact: Option<String>,
}

/// Prints the file.
pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.record()?;
    let store = project.store();
    let session = project.session()?;
    let is_file =
        |word: &str| word.contains('.') && word.parse::<u64>().is_err() && !word.contains(':');
    let (turn, wanted) = match (args.turn.as_deref(), args.artifact.as_deref()) {
        (Some(word), None) if is_file(word) => ("@", Some(word)),
        (turn, file) => (turn.unwrap_or("@"), file),
    };

    let turn = store.turn_or_draft(&session, turn)?;
    let files = project.repository.files(turn.tree)?;
    if app.global.json {
        let mut value = serde_json::to_value(log::one_row(&project, &turn)?)?;
        if let Some(plan) = files.get(artifact::PLAN).filter(|_| turn.is_draft()) {
            let (plan, _) = plan::parse(&String::from_utf8_lossy(plan));
            value["title"] = plan.title.into();
        }

        value["artifacts"] = serde_json::json!(files.keys().collect::<Vec<_>>());
        app.print_json(&value)?;
        return Ok(exit::DONE.into());
    }

    let defaults = [artifact::REPORT, artifact::PLAN, artifact::USER_PROMPT];
    let default = defaults.into_iter().find(|name| files.contains_key(*name));
    let name = wanted.or(default).unwrap_or(artifact::META);
    let Some(content) = files.get(name) else {
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        anyhow::bail!(
            "turn {} has no `{name}`; it has {}",
            turn.number(),
            names.join(", ")
        );
    };

    match name.rsplit_once('.') {
        Some((_, "md")) => app.page_markdown(&project, content)?,
        _ => app.page_foreign(&project, content)?,
    }

    Ok(exit::DONE.into())
}
