//! Extracts the commands that ran from the reports.

use serde::Serialize;

use super::{kept, text_of};
use crate::git::repository::Repository;
use crate::session::artifact;
use crate::session::report::read;
use crate::session::turn::Turn;

const COMMAND: &str = "Command:";

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
pub(super) fn runs(repository: &Repository, turns: &[Turn]) -> anyhow::Result<Vec<CommandRun>> {
    let mut found = Vec::new();
    for turn in turns {
        let report = text_of(repository, turn, artifact::REPORT)?;
        let Some(report) = report.as_deref().and_then(read::read) else {
            continue;
        };
        let ran = report.actions.iter();
        found.extend(ran.filter_map(|action| run(turn.number(), action)));
    }

    Ok(found)
}

fn run(turn: u64, action: &read::ReportAction) -> Option<CommandRun> {
    let exit_code = action.field("Exit Code")?.trim().parse().ok()?;
    let mut blocks = action.blocks.iter();
    let command = blocks.find(|block| block.caption == COMMAND)?;
    Some(CommandRun {
        turn,
        about: kept(action.field("Description").unwrap_or_default()),
        command: kept(&command.content),
        exit_code,
    })
}
