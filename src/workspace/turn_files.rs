//! The user's files as a turn left them.

use crate::git::object::TreeId;
use crate::session::turn::Turn;
use crate::workspace::Checkout;

/// The tree that a turn left. For the start of a session, the tree before its first turn.
pub fn turn_tree(checkout: &Checkout<'_>, turn: &Turn) -> anyhow::Result<TreeId> {
    if let Some(workspace) = turn.workspace {
        return checkout
            .repository
            .commit(workspace)
            .map(|commit| commit.tree);
    }

    let Some(next) = first_turn_after(checkout, turn)? else {
        anyhow::bail!(
            "session `{}` has no turn yet, so that there is nothing to go back to",
            turn.session
        );
    };
    match next.meta.workspace {
        Some(workspace) => checkout
            .repository
            .commit(workspace.before)
            .map(|commit| commit.tree),
        None => anyhow::bail!(
            "turn {} does not say what your files were before it",
            next.number()
        ),
    }
}

/// The turn after the start of a session. `None` if `turn` recorded files itself, or is the newest.
pub fn first_turn_after(checkout: &Checkout<'_>, turn: &Turn) -> anyhow::Result<Option<Turn>> {
    let store = checkout.store();
    if turn.workspace.is_some() || store.tip(&turn.session)?.number() <= turn.number() {
        return Ok(None);
    }
    let next = (turn.number() + 1).to_string();
    store.turn(&turn.session, &next).map(Some)
}
