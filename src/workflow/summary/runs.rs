//! Extracts the commands that ran from the reports.

use serde::Serialize;

use super::{prepare_text, text_of};
use crate::git::repository::Repository;
use crate::session::artifact;
use crate::session::report::reading;
use crate::session::turn::Turn;

const COMMAND_FIELD: &str = "Command:";

/// A run of a plan's command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandRun {
    /// Turn number.
    pub turn: u64,
    /// Description in the plan.
    pub about: String,
    /// The command.
    pub command: String,
    /// Its exit code.
    pub exit_code: i32,
}

/// Oldest first.
pub(super) fn collect_runs(
    repository: &Repository,
    turns: &[Turn],
) -> anyhow::Result<Vec<CommandRun>> {
    let mut runs = Vec::new();
    for turn in turns {
        let report = text_of(repository, turn, artifact::REPORT)?;
        let Some(report) = report.as_deref().and_then(reading::read) else {
            continue;
        };
        let ran = report.actions.iter();
        runs.extend(ran.filter_map(|action| parse_run(turn.number(), action)));
    }

    Ok(runs)
}

fn parse_run(turn: u64, action: &reading::ReportAction) -> Option<CommandRun> {
    let exit_code = action.field("Exit Code")?.trim().parse().ok()?;
    let mut blocks = action.blocks.iter();
    let command = blocks.find(|block| block.caption == COMMAND_FIELD)?;
    Some(CommandRun {
        turn,
        about: prepare_text(action.field("Description").unwrap_or_default()),
        command: prepare_text(&command.contents),
        exit_code,
    })
}
