//! `teddy change diff`: shows the changes to code or documents.

use std::process::ExitCode;

use anyhow::Context as _;

use super::super::app::App;
use super::super::complete;
use super::super::difference::{self, ShownAs};
use super::super::exit;
use super::log::resolve_step;
use crate::change::document::Documents;
use crate::change::id::ChangeId;
use crate::workflow::change::open_change;
use crate::workflow::change::review;

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

    difference::show(app, &project, sides, (ShownAs::Patch, &filter))?;
    Ok(exit::SUCCESS.into())
}
