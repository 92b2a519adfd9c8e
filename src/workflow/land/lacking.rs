//! Finds changes that a landing would commit although the user's files lack them.

use serde::Serialize;

use crate::git::diff;
use crate::git::land::branch::Target;
use crate::git::object::TreeId;
use crate::git::repository::Repository;
use crate::text::path::lossy;
use crate::workflow::land::landing_plan::PlannedCommit;
use crate::workflow::land::range::Landing;

/// A file that lacks the changes of a turn, because the user reverted or deleted it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TakenBackFile {
    pub path: String,
    /// Newest missing turn.
    pub turn: u64,
}

/// Returns the files that lack what a landing commits. After the commit they would differ from HEAD
/// by the reverse of the landing, and the next commit would revert it.
pub(super) fn find_lacking(
    repository: &Repository,
    planned: &[PlannedCommit],
    target: &Target,
    files: TreeId,
) -> anyhow::Result<Vec<TakenBackFile>> {
    let Some(last) = planned.last().filter(|_| target.is_current) else {
        return Ok(Vec::new());
    };
    let landings: Vec<&Landing> = planned.iter().flat_map(|commit| &commit.landings).collect();
    let mut taken_back = Vec::new();
    for change in diff::changes(repository, target.tree, last.tree)? {
        let now = repository.entry(files, &change.path)?;
        if now == change.new {
            continue;
        }

        let (mut newest, mut is_back) = (None, now == change.old || now.is_none());
        for landing in &landings {
            let before = repository.entry(landing.before, &change.path)?;
            if before != repository.entry(landing.after, &change.path)? {
                is_back |= before == now;
                newest = Some(landing.turn.number());
            }
        }
        if let Some(turn) = newest.filter(|_| is_back) {
            taken_back.push(TakenBackFile {
                path: lossy(&change.path),
                turn,
            });
        }
    }
    Ok(taken_back)
}
