//! `teddy change log`: lists the steps of a change.

use std::process::ExitCode;

use anyhow::Context as _;

use super::super::app::App;
use super::super::difference::{self, ShownAs};
use super::super::{complete, exit, number};
use crate::change::document::Documents;
use crate::change::id::ChangeId;
use crate::git::object::CommitId;
use crate::git::refs;
use crate::project::Project;
use crate::ui::style::{StyledLine, Tone};
use crate::workflow::change::{self, open_change, review};

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

/// Show what a change did to the code, or how its documents differ between two steps
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change diff add-auth          what implementing it changed in the code\n  teddy change diff add-auth 3        its documents from step 3 to now\n  teddy change diff add-auth 3 5      from step 3 to step 5"
)]
pub(super) struct DiffArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// A step: its number in `teddy change log`, or anything that `git rev-parse` takes
    from: Option<String>,
    /// Another step, the newest one if left out
    to: Option<String>,
}

pub(super) fn diff(args: DiffArgs, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let project = app.project()?;
    let change = open_change(&project, &id)?;
    let sides = match &args.from {
        None => review::span_of(&project, &id)?
            .with_context(|| format!("nothing of `{id}` is implemented yet; `teddy change diff {id} 1` compares its documents"))?,
        Some(from) => {
            let old = project.repository.commit(resolve_step(&project, &id, from)?)?.tree;
            let new = args.to.as_ref().map(|to| project.repository.commit(resolve_step(&project, &id, to)?).map(|commit| commit.tree)).transpose()?;
            (old, new.unwrap_or(change.tree))
        }
    };

    let filter = if args.from.is_some() {
        Documents::is_one
    } else {
        |_: &str| true
    };

    difference::show(app, &project, sides.0, sides.1, ShownAs::Patch, &filter)?;
    Ok(exit::SUCCESS.into())
}
