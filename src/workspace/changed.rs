//! What the user changed since the newest turn, for read-only commands such as `status`.
//!
//! Takes a snapshot without the lock. An error is part of the result and never ends the command.

use crate::git::diff;
use serde::Serialize;

use crate::git::object::absent::MissingObject;
use crate::git::refs;
use crate::session::meta::NotCaptured;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::workspace::Checkout;
use crate::workspace::drift::{Drift, drift};
use crate::workspace::snapshot::{self, not_captured};
use crate::workspace::stack::Stacks;

#[derive(Debug, Clone, Default, Serialize)]
pub struct Changed {
    /// Changed paths, lossily decoded.
    pub changed: Vec<String>,
    /// HEAD is compared, not a turn: none was published yet.
    #[serde(skip)]
    pub is_since_head: bool,
    pub not_captured: Vec<NotCaptured>,
    /// Why the changes are unknown, for example because the git directory is not writable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    #[serde(flatten)]
    pub drift: Drift,
}

/// The snapshot runs without the lock, so a concurrent `git gc` can remove its objects.
const TRIES: usize = 3;

fn explained(error: &anyhow::Error) -> String {
    let missing: Option<&MissingObject> = error.chain().find_map(|cause| cause.downcast_ref());
    match missing {
        Some(missing) => format!("{error:#}; {}", missing.hint()),
        None => format!("{error:#}"),
    }
}

/// Never fails: the caller can show the rest beside `Changed::unknown`.
pub fn changed_since(checkout: &Checkout<'_>, tip: &Turn) -> Changed {
    let mut why = String::new();
    for _ in 0..TRIES {
        match compare_with(checkout, tip) {
            Ok(changed) => return changed,
            Err(error) => why = explained(&error),
        }
        // The index names objects that `git gc` removed; the next attempt must write them again.
        let _ = std::fs::remove_file(checkout.index(&checkout.repository.worktree_name()));
    }

    Changed {
        unknown: Some(why),
        ..Changed::default()
    }
}

fn compare_with(checkout: &Checkout<'_>, tip: &Turn) -> anyhow::Result<Changed> {
    let now = snapshot::snapshot(checkout, &[])?;
    let drift = drift(checkout, tip, now.tree)?;
    // If the files hold another turn's result, compare with that. Otherwise its changes would count
    // as the user's.
    let last = match drift.same_turns {
        Some(false) => Stacks::new(checkout.repository).last()?.map(|(id, _)| id),
        _ => None,
    };

    let published = last.or(tip.published());
    let base = published.map_or_else(
        || refs::head_tree(checkout.repository),
        |commit| checkout.repository.commit(commit).map(|commit| commit.tree),
    )?;

    let changes = diff::changes(checkout.repository, base, now.tree)?;
    Ok(Changed {
        changed: changes.iter().map(|change| lossy(&change.path)).collect(),
        is_since_head: published.is_none(),
        not_captured: not_captured(&now),
        unknown: None,
        drift,
    })
}
