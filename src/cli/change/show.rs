//! `teddy change show`: prints the documents of a change.

use std::process::ExitCode;

use anyhow::Context as _;

use super::super::app::App;
use super::super::complete;
use super::super::exit;
use super::log::resolve_step;
use crate::change::document::REVIEW;
use crate::change::id::ChangeId;
use crate::change::store::Change;
use crate::change::{proposal, review, state};
use crate::workflow::change;
use crate::workflow::change::open_change;

/// Show the documents of a change
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change show add-auth\n  teddy change show add-auth tasks.md\n  teddy change show add-auth review             the latest review\n  teddy change show add-auth proposal.md --at 1\n  git show refs/teddy/changes/add-auth:STATE.yaml"
)]
pub(super) struct Args {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// proposal.md, specs/<id>.md, tasks.md, review.md, STATE.yaml, or `review`; everything if left
    /// out
    what: Option<String>,
    /// As it was after this step: its number in `teddy change log`, or anything that `git
    /// rev-parse` takes
    #[arg(long, value_name = "STEP")]
    at: Option<String>,
}

pub(super) fn run(args: Args, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let project = app.project()?;
    let mut change = open_change(&project, &id)?;
    if let Some(at) = &args.at {
        change = change::change_store(&project).at(&id, resolve_step(&project, &id, at)?)?;
    }

    if app.global.json {
        app.print_json(&serde_json::json!({ "change": id, "state": change.state, "documents": change.documents.0 }))?;
        return Ok(exit::SUCCESS.into());
    }

    let text = match args.what.as_deref() {
        None => everything(&change),
        Some("review") => latest(&change).context("there is no review yet")?,
        Some(state::FILE) => state::write(&change.state),
        Some(name) => change.documents.0.get(name).cloned().with_context(|| {
            let names: Vec<&str> = change.documents.0.keys().map(String::as_str).collect();
            format!(
                "the change has no `{name}`; it has {}, {}",
                names.join(", "),
                state::FILE
            )
        })?,
    };
    app.page_markdown(&project, text.as_bytes())?;
    Ok(exit::SUCCESS.into())
}

/// Returns the latest review: of the implementation if there is one, else of the proposal.
fn latest(change: &Change) -> Option<String> {
    let newest = [REVIEW, proposal::FILE].iter().find_map(|name| {
        let reviews = review::read(change.documents.text(name));
        review::latest(&reviews).cloned()
    });
    newest.map(|review| review.render())
}

/// Returns all documents, the proposal first.
pub(super) fn everything(change: &Change) -> String {
    let first = change.documents.0.get(proposal::FILE);
    let others = change
        .documents
        .0
        .iter()
        .filter(|(name, _)| *name != proposal::FILE)
        .map(|(_, text)| text);
    first
        .into_iter()
        .chain(others)
        .map(|text| format!("{}\n\n", text.trim_end()))
        .collect()
}
