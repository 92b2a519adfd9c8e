//! `teddy change log`: lists the steps of a change.

use std::process::ExitCode;

use anyhow::Context as _;

use super::super::app::App;
use super::super::complete;
use super::super::exit;
use super::super::number;
use crate::change::id::ChangeId;
use crate::git::object::CommitId;
use crate::git::refs;
use crate::ui::style::{StyledLine, Tone};
use crate::workflow::change;
use crate::workflow::change::open_change;
use crate::workflow::project::Project;

/// List the steps of a change, newest first
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change log add-auth\n  git log refs/teddy/changes/add-auth"
)]
pub(super) struct Args {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// Show at most this many turns
    #[arg(short = 'n', long, value_name = "N", value_parser = number::most)]
    max_count: Option<usize>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let project = app.project()?;
    let change = open_change(&project, &ChangeId::parse(&args.id)?)?;
    let mut rows = change
        .commit
        .map(|commit| change::change_store(&project).steps(commit))
        .transpose()?
        .unwrap_or_default();
    let all = rows.len();

    rows.truncate(args.max_count.unwrap_or(usize::MAX));
    if app.global.json {
        app.print_json(&rows)?;
        return Ok(exit::SUCCESS.into());
    }

    let line = |(index, row): (usize, &crate::change::store::StepRow)| {
        StyledLine::of(Tone::Strong, &format!("{:>4} ", all - index))
            .with(Tone::Accent, &format!("{} ", &row.commit.to_string()[..8]))
            .with(Tone::Faint, &format!("{:12} ", row.phase))
            .with(Tone::Plain, &row.title)
    };
    app.page(
        &project,
        &rows.iter().enumerate().map(line).collect::<Vec<_>>(),
    )?;
    Ok(exit::SUCCESS.into())
}

/// Returns the commit of a step, given its number or a git revision.
pub(super) fn resolve_step(
    project: &Project,
    id: &ChangeId,
    name: &str,
) -> anyhow::Result<CommitId> {
    let Ok(number) = name.parse::<usize>() else {
        return refs::resolve(&project.repository, name);
    };
    let newest = open_change(project, id)?
        .commit
        .context("the change has no step")?;
    let rows = change::change_store(project).steps(newest)?;
    let row = rows
        .len()
        .checked_sub(number)
        .filter(|_| number > 0)
        .and_then(|at| rows.get(at));

    Ok(row
        .with_context(|| {
            format!(
                "`{id}` has no step {number}; its steps are 1 to {}",
                rows.len()
            )
        })?
        .commit)
}
