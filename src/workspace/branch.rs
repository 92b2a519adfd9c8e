//! The branch that the user was on at the last turn, and the one that they are on now.

use serde::Serialize;

use crate::git::refs;
use crate::session::turn::Turn;
use crate::workspace::Checkout;

/// How many turns back the last one that changed files, or ran here, is looked for.
const MAX_BACK: usize = 32;

/// A branch that is not the one of the last turn in this checkout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherBranch {
    /// The number of that turn.
    pub turn: u64,
    /// The branch then; `HEAD` without one.
    pub then: String,
    /// The branch now.
    pub now: String,
}

/// Returns the branch, if it is another one than at the last turn in this checkout.
///
/// # Errors
/// If HEAD or a turn cannot be read.
pub fn other_branch(checkout: &Checkout<'_>, tip: &Turn) -> anyhow::Result<Option<OtherBranch>> {
    let here = checkout.repository.worktree_name();
    for turn in checkout.store().history(tip.clone()).take(MAX_BACK) {
        let turn = turn?;
        let workspace = turn.meta.workspace.as_ref();
        let Some(then) = workspace
            .filter(|workspace| workspace.worktree == here)
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
