//! What a restore takes out of the user's files and not out of their branch.

use super::note::UndoneCommit;
use crate::git::refs;
use crate::git::revision::is_on_branch;
use crate::session::turn::Turn;
use crate::workflow::project::Project;

/// Returns which of some turns have landed with commits that are on their branch still; `tip` is the
/// newest turn of their session.
///
/// # Errors
/// If a turn cannot be read.
pub(super) fn still_landed(
    project: &Project,
    tip: &Turn,
    undone: &[u64],
) -> anyhow::Result<Vec<UndoneCommit>> {
    let Some(oldest) = undone.iter().min() else {
        return Ok(Vec::new());
    };
    let current = refs::branch_or_head(&project.repository)?;
    let mut found = Vec::new();
    for turn in project.store().history(tip.clone()) {
        let turn = turn?;
        // A turn lands after it was recorded.
        if turn.number() <= *oldest {
            break;
        }

        let Some(landed) = turn.meta.landed else {
            continue;
        };
        for commit in landed.commits {
            let numbers = commit.turns.iter().map(|turn| turn.number);
            let turns: Vec<u64> = numbers.filter(|number| undone.contains(number)).collect();
            if !turns.is_empty() && is_on_branch(&project.repository, commit.commit, &landed.branch)
            {
                found.push(UndoneCommit {
                    commit: commit.commit,
                    turns,
                    branch: landed.branch.clone(),
                    is_current: landed.branch == current,
                });
            }
        }
    }

    Ok(found)
}
