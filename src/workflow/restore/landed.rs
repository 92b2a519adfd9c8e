//! What a restore takes out of the user's files and not out of their branch.

use super::outcome::UndoneCommit;
use crate::git::refs;
use crate::session::store::back::TurnsBack;
use crate::workflow::project::Project;
use crate::workspace::landing::landed_as;

/// Returns which of some turns of a session have landed with commits that are on their branch still.
pub(super) fn still_landed(
    project: &Project,
    turns: &TurnsBack<'_>,
    undone: &[u64],
) -> anyhow::Result<Vec<UndoneCommit>> {
    let Some(oldest) = undone.iter().min() else {
        return Ok(Vec::new());
    };
    let current = refs::branch_or_head(&project.repository)?;
    let mut landed_commits = Vec::new();
    // A turn lands after it was recorded.
    for turn in turns.landings_after(*oldest)? {
        let Some(landed) = turn.meta.landed else {
            continue;
        };
        for commit in landed.commits {
            let numbers = commit.turns.iter().map(|turn| turn.number);
            let turns: Vec<u64> = numbers.filter(|number| undone.contains(number)).collect();
            if turns.is_empty() {
                continue;
            }
            if let Some(id) = landed_as(&project.repository, &landed.branch, &commit)? {
                landed_commits.push(UndoneCommit {
                    commit: id,
                    turns,
                    branch: landed.branch.clone(),
                    is_current: landed.branch == current,
                });
            }
        }
    }

    Ok(landed_commits)
}
