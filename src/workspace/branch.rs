//! Detects that the user changed branches since the last turn in this checkout.

use serde::Serialize;

use crate::git::refs;
use crate::session::turn::Turn;
use crate::workspace::Checkout;

const MAX_BRANCH_TURNS: usize = 32;

/// The user is on a different branch than at the last turn in this checkout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherBranch {
    /// Number of that turn.
    pub turn: u64,
    /// Branch at that turn; `HEAD` if detached.
    pub then: String,
    /// Current branch; `HEAD` if detached.
    pub now: String,
}

/// Compares the current branch with that of the last turn in this checkout. `None` if it is the
/// same, or no recent turn ran here.
pub fn other_branch(checkout: &Checkout<'_>, tip: &Turn) -> anyhow::Result<Option<OtherBranch>> {
    let worktree = checkout.repository.worktree_name();
    for turn in checkout.store().history(tip.clone()).take(MAX_BRANCH_TURNS) {
        let turn = turn?;
        let workspace = turn.meta.workspace.as_ref();
        let Some(then) = workspace
            .filter(|workspace| workspace.worktree == worktree)
            .and_then(|workspace| workspace.branch.clone())
        else {
            continue;
        };

        let now = refs::branch_or_head(checkout.repository)?;
        return Ok((now != then).then(|| OtherBranch {
            turn: turn.number(),
            then,
            now,
        }));
    }

    Ok(None)
}
