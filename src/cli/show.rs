//! `teddy show`: shows a turn or one of its files.

use std::collections::BTreeMap;

use super::app::App;
use super::complete;
use super::difference::{self, ViewArgs};
use super::failure::InvalidArgument;
use crate::git::refs;
use crate::plan;
use crate::project::Project;
use crate::query::blame::landed_turns;
use crate::query::log;
use crate::session::artifact;
use crate::session::turn::Turn;
use crate::text::sanitize::sanitize_line;
use crate::text::{beginning, ranges};
use crate::ui::style::StyledLine;
use crate::ui::{markdown, turn_text};
use crate::workspace::file_move::trees_of;

/// Show a turn: its request, its report and its changes
///
/// The turn in progress is called `draft`, or goes by its number; its plan is shown while it waits.
///
/// The files of a turn: input.md, user_prompt.txt, system_prompt.xml, reply.md, plan.md, report.md,
/// turn.context, session.context, meta.yaml, steps/, output/, changes/, next/.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy show                        the newest turn\n  teddy show 3 --stat               what it changed by file only\n  teddy show 3 plan.md\n  teddy show draft                  the plan that waits\n  teddy show origin/add-auth:3      a turn of a session that was fetched\n  teddy show HEAD                   the turns that the newest commit landed\n  git show teddy/sessions/add-auth~2:report.md"
)]
pub(super) struct Args {
    /// The turn: a number, `draft`, or anything that `git rev-parse` accepts; the newest one if
    /// omitted; for a commit of `land`, the turns in it
    #[arg(add = complete::with(complete::turns_and_artifacts))]
    turn: Option<String>,
    /// One of its files, as it is
    #[arg(add = complete::with(complete::artifacts), conflicts_with_all = ["stat", "name_only", "no_patch"])]
    artifact: Option<String>,
    /// How the difference is shown.
    #[command(flatten)]
    view: ViewArgs,
    /// Leave the difference out
    #[arg(long, conflicts_with_all = ["stat", "name_only"])]
    no_patch: bool,
}

/// Note for a turn that was pushed without its files.
const WITHOUT_CODE: &str = "The files of this turn were not pushed (`teddy push --code` does).";

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<()> {
    let project = app.record()?;
    let store = project.store();
    let is_file =
        |word: &str| word.contains('.') && word.parse::<u64>().is_err() && !word.contains(':');
    let (turn, file_name) = match (args.turn.as_deref(), args.artifact.as_deref()) {
        (Some(word), None) if is_file(word) => ("@", Some(word)),
        (turn, file) => (turn.unwrap_or("@"), file),
    };

    let named = project
        .session_of(turn)
        .and_then(|session| store.turn_or_draft(&session, turn));
    let turn = match named {
        Ok(turn) => turn,
        Err(error) => {
            let mut landed = landed(&project, turn)?;
            match landed.len() {
                0 => return Err(error),
                1 => landed.remove(0),
                _ => return show_landed(app, &project, &landed, &args),
            }
        }
    };
    let files = project.repository.files(turn.tree)?;
    if app.global.json {
        if let Some(name) = file_name {
            let message = format!(
                "`--json` describes a turn, and `{}` is a file",
                sanitize_line(name)
            );
            let hint = "without `--json` the file is printed, byte for byte";
            return Err(InvalidArgument::error(message, hint));
        }

        return app.print_json(&json(&project, &turn, &files)?);
    }

    if file_name.is_none() && !turn.is_draft() {
        let lines = turn_lines(&project, &turn, &files, &args)?;
        app.page(&project, &lines)?;
        return Ok(());
    }
    show_file(app, &project, &turn, &files, file_name)
}

fn json(
    project: &Project,
    turn: &Turn,
    files: &BTreeMap<String, Vec<u8>>,
) -> anyhow::Result<serde_json::Value> {
    let mut value = serde_json::to_value(log::one_row(project, turn)?)?;
    if let Some(plan) = files.get(artifact::PLAN).filter(|_| turn.is_draft()) {
        let (plan, _) = plan::parse(&String::from_utf8_lossy(plan));
        value["title"] = plan.title.into();
    }

    value["artifacts"] = serde_json::json!(files.keys().collect::<Vec<_>>());
    Ok(value)
}

/// Prints a file of a turn; without a name, the one that says most about the turn in progress.
fn show_file(
    app: &App,
    project: &Project,
    turn: &Turn,
    files: &BTreeMap<String, Vec<u8>>,
    name: Option<&str>,
) -> anyhow::Result<()> {
    let defaults = [artifact::REPORT, artifact::PLAN, artifact::USER_PROMPT];
    let default = defaults.into_iter().find(|name| files.contains_key(*name));
    let name = name.or(default).unwrap_or(artifact::META);
    let name = full_name(files, name);
    let Some(bytes) = files.get(name) else {
        let names = files.keys().map(String::as_str);
        let names: Vec<&str> = names
            .filter(|name| !name.starts_with(artifact::REPLACED))
            .collect();
        anyhow::bail!(
            "turn {} has no `{name}`; it has {}",
            turn.number(),
            names.join(", ")
        );
    };

    match name.rsplit_once('.') {
        Some((_, "md")) => app.page_markdown(project, bytes)?,
        _ => app.page_foreign(project, bytes)?,
    }

    Ok(())
}

/// Returns the full name of an artifact given without its extension, such as `plan` or
/// `transcript`. Prefers the readable one.
fn full_name<'a>(files: &'a BTreeMap<String, Vec<u8>>, name: &'a str) -> &'a str {
    let is_meant = |file: &&String| {
        let stem = file.rsplit_once('.').map(|(stem, _)| stem);
        !file.contains('/') && stem == Some(name)
    };
    if files.contains_key(name) {
        return name;
    }

    let mut matches = files.keys().filter(is_meant);
    let to_read = matches.clone().find(|file| file.ends_with(".md"));
    to_read
        .or_else(|| matches.next())
        .map_or(name, String::as_str)
}

/// Returns the turns of a commit of `land`. Empty if the revision names no such commit.
fn landed(project: &Project, revision: &str) -> anyhow::Result<Vec<Turn>> {
    match refs::resolve(&project.repository, revision) {
        Ok(commit) => landed_turns(project, commit),
        Err(_) => Ok(Vec::new()),
    }
}

/// Shows the turns of a commit of `land`, oldest first.
fn show_landed(app: &App, project: &Project, turns: &[Turn], args: &Args) -> anyhow::Result<()> {
    if let Some(name) = &args.artifact {
        let numbers: Vec<u64> = turns.iter().map(Turn::number).collect();
        return Err(InvalidArgument::error(
            format!(
                "the commit has turns {} of `{}`",
                ranges(&numbers),
                turns[0].session
            ),
            format!(
                "`teddy show {}:{} {}` names one of them",
                turns[0].session,
                numbers[0],
                sanitize_line(name)
            ),
        ));
    }

    let (mut lines, mut values) = (Vec::new(), Vec::new());
    for turn in turns {
        let files = project.repository.files(turn.tree)?;
        if app.global.json {
            values.push(json(project, turn, &files)?);
            continue;
        }
        if !lines.is_empty() {
            lines.push(StyledLine::default());
        }
        lines.extend(turn_lines(project, turn, &files, args)?);
    }
    match app.global.json {
        true => app.print_json(&values)?,
        false => app.page(project, &lines)?,
    }
    Ok(())
}

/// Returns a turn as lines: summary, report, diff.
fn turn_lines(
    project: &Project,
    turn: &Turn,
    files: &BTreeMap<String, Vec<u8>>,
    args: &Args,
) -> anyhow::Result<Vec<StyledLine>> {
    let row = log::one_row(project, turn)?;
    let text = |name| files.get(name).map(|text| String::from_utf8_lossy(text));
    let message = text(artifact::USER_PROMPT);
    let message = message.as_deref().map(|text| (text, turn.meta.origin));
    let mut lines = turn_text::header_lines(turn.session.as_str(), &row, message);
    if let Some(report) = text(artifact::REPORT) {
        lines.push(StyledLine::default());
        lines.extend(markdown::lines(&beginning(&report, artifact::MAX_REPORT)));
    }

    if let Some(workspace) = turn.meta.workspace.as_ref().filter(|_| !args.no_patch) {
        let [before, after] = trees_of(&project.repository, workspace.change())?;
        let changes = difference::lines(project, before, after, args.view.shown_as(), &|_| true)?;
        if !changes.is_empty() {
            lines.push(StyledLine::default());
            lines.extend(changes);
        }
    }

    if turn.without_code {
        lines.push(StyledLine::default());
        lines.push(StyledLine::plain(WITHOUT_CODE));
    }

    Ok(lines)
}
