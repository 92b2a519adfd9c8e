//! `teddy change status`, `list` and `validate`: report the state of changes.

use std::process::ExitCode;

use super::super::app::App;
use super::super::complete;
use super::super::exit;
use crate::change::finding::is_usable;
use crate::change::id::ChangeId;
use crate::text::counted;
use crate::text::sanitize::sanitize_line;
use crate::workflow::change::status;
use crate::workflow::change::status::{ChangeListRow, ChangeStatus};

/// Show the state of a change; without an id, list the changes
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change status\n  teddy change status add-auth\n  teddy change status add-auth --json"
)]
pub(super) struct Args {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: Option<String>,
}

/// List the changes
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change list\n  teddy change list --archived --json\n  git for-each-ref refs/teddy/changes"
)]
pub(super) struct ListArgs {
    /// Archived ones too
    #[arg(long)]
    archived: bool,
}

/// Check the documents of a change; report every mistake with its line
#[derive(clap::Args)]
#[command(after_help = "Example:\n  teddy change validate add-auth")]
pub(super) struct Validate {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let Some(id) = &args.id else {
        return list(ListArgs { archived: false }, app);
    };
    let status = status::change_status(&app.project()?, &ChangeId::parse(id)?)?;
    if app.global.json {
        app.print_json(&status)?;
        return Ok(exit::SUCCESS.into());
    }

    app.print(render(&status))?;
    app.note(&format!("Next: {}", status.next));
    Ok(exit::SUCCESS.into())
}

fn render(status: &ChangeStatus) -> String {
    let row = &status.row;
    let mut text = format!("Change {}: {}\n", row.change, sanitize_line(&row.title));
    text.push_str(&format!(
        "Phase {}, iteration {}, {} of {} tasks done\n",
        row.phase.word(),
        row.iteration,
        row.done,
        row.tasks
    ));

    if let Some(verdict) = &status.verdict {
        let minor = if status.only_minor_issues {
            "; only minor issues remain"
        } else {
            ""
        };
        text.push_str(&format!(
            "Latest review: {} ({}{minor})\n",
            sanitize_line(verdict),
            status.issues.summary()
        ));
    }

    if !status.stale.is_empty() {
        text.push_str(&format!(
            "Edited since it was challenged: {}\n",
            sanitize_line(&status.stale.join(", "))
        ));
    }

    if status.findings > 0 {
        text.push_str(&format!(
            "The documents have {}; `teddy change validate {}` lists them\n",
            counted(status.findings, "mistake"),
            row.change
        ));
    }

    if let Some(session) = &status.session {
        text.push_str(&format!("Session {session}\n"));
    }

    text.push_str(&format!("{}\n", status.usage.describe()));
    text
}

pub(super) fn list(args: ListArgs, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let (rows, damaged) = status::change_rows(&project, args.archived)?;
    damaged
        .iter()
        .for_each(|change| app.warn(&format!("cannot be read: {change}")));

    if app.global.json {
        app.print_json(&rows)?;
        return Ok(exit::SUCCESS.into());
    }

    let width = rows
        .iter()
        .map(|row| row.change.as_str().len())
        .max()
        .unwrap_or(0);
    let line = |row: &ChangeListRow| {
        let tasks = format!("{}/{}", row.done, row.tasks);
        format!(
            "{:width$}  {:12}  {tasks:>5}  {}\n",
            row.change.as_str(),
            row.phase.word(),
            sanitize_line(&row.title)
        )
    };

    app.print(rows.iter().map(line).collect::<String>())?;
    if rows.is_empty() && !args.archived && !status::change_rows(&project, true)?.0.is_empty() {
        app.note("All changes are archived; `teddy change list --archived` lists them.");
    } else if rows.is_empty() {
        app.note("There are no changes; `teddy change plan <id> '<description>'` starts one.");
    }

    Ok(exit::SUCCESS.into())
}

pub(super) fn validate(args: Validate, app: &mut App) -> anyhow::Result<ExitCode> {
    let findings = status::validate_change(&app.project()?, &ChangeId::parse(&args.id)?)?;
    if app.global.json {
        app.print_json(&findings)?;
    } else {
        app.print(
            findings
                .iter()
                .map(|finding| format!("{}\n", sanitize_line(&finding.to_string())))
                .collect::<String>(),
        )?;
        app.note(&format!("{}.", counted(findings.len(), "mistake")));
    }

    Ok(if is_usable(&findings) {
        exit::SUCCESS
    } else {
        exit::FAILED
    }
    .into())
}
