//! `teddy change approve`: approves a change despite its challenge or review.

use std::process::ExitCode;

use super::super::app::App;
use super::super::complete;
use super::steps::report_change;
use crate::change::id::ChangeId;
use crate::workflow::change::approve::approve;

/// Approve a change despite its challenge or review; the reason is recorded
///
/// A proposed or rejected change can be implemented then; one whose tasks are done is complete.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  teddy change approve add-auth --reason 'the open point is settled in the next change'"
)]
pub(super) struct ApproveArgs {
    /// The change
    #[arg(add = complete::with(complete::changes))]
    id: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(super) fn approve_change(args: ApproveArgs, app: &mut App) -> anyhow::Result<ExitCode> {
    let id = ChangeId::parse(&args.id)?;
    let project = app.project()?;
    let mut user = app.user(&project, false);
    let change = approve(&project, &id, &args.reason, user.as_mut())?;
    drop(user);
    report_change(app, &change)
}
