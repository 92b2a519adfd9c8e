//! Whether turns are on the branch on which they were landed.

use std::collections::HashSet;

use serde::Serialize;

use crate::git::history::is_on_branch;
use crate::git::object::CommitId;
use crate::project::Project;
use crate::session::turn::Turn;
use crate::workspace::landing::landed_as;
use crate::workspace::stack::{Stacks, is_patch};

// In turns.
const MAX_TURNS_BACK: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LatestLanding {
    pub turn: u64,
    pub branch: String,
    /// A reset or `--amend` removes the newest commit.
    pub on_branch: bool,
    /// Oldest first.
    pub commits: Vec<CommitId>,
    /// Commits with the turns after a rewrite, oldest first, if the branch has all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub now: Vec<CommitId>,
    pub turns: Vec<u64>,
    /// Applied since, and not landed.
    pub waiting: Vec<u64>,
}

/// Among the last turns.
pub fn latest_landing(project: &Project, tip: &Turn) -> anyhow::Result<Option<LatestLanding>> {
    let mut since = Vec::new();
    for turn in project.store().history(tip.clone()).take(MAX_TURNS_BACK) {
        let turn = turn?;
        let number = turn.number();
        let Some(landed) = turn.meta.landed else {
            since.push(turn);
            continue;
        };

        let newest = landed.commits.last();
        let on_branch = newest
            .is_some_and(|newest| is_on_branch(&project.repository, newest.commit, &landed.branch));
        let mut now = Vec::new();
        if !on_branch {
            for commit in &landed.commits {
                now.extend(landed_as(&project.repository, &landed.branch, commit)?);
            }
            if now.len() < landed.commits.len() {
                now.clear();
            }
        }
        let turns = landed.commits.iter().flat_map(|commit| &commit.turns);
        return Ok(Some(LatestLanding {
            turn: number,
            on_branch,
            now,
            branch: landed.branch,
            turns: turns.map(|turn| turn.number).collect(),
            commits: landed.commits.iter().map(|landed| landed.commit).collect(),
            waiting: turns_to_land(project, tip, &since)?,
        }));
    }

    Ok(None)
}

/// Newest first.
fn turns_to_land(project: &Project, tip: &Turn, since: &[Turn]) -> anyhow::Result<Vec<u64>> {
    let stacks = Stacks::new(&project.repository);
    let (mut next, mut applied) = (stacks.after(tip)?.top, HashSet::new());
    while let Some(id) = next.filter(|_| applied.len() < MAX_TURNS_BACK) {
        let patch = stacks.patch(id)?;
        applied.insert(patch.change.after);
        next = patch.base.top;
    }

    let is_waiting = |turn: &&Turn| {
        let after = turn.meta.workspace.as_ref().map(|files| files.after);
        let is_there = after.is_some_and(|after| applied.contains(&after));
        is_there && is_patch(turn) && turn.meta.restored.is_none()
    };
    let mut numbers: Vec<u64> = since.iter().filter(is_waiting).map(Turn::number).collect();
    numbers.reverse();

    Ok(numbers)
}
