//! What the user changed since the newest turn, and how far their files are from it.

use crate::git::diff;
use serde::Serialize;

use crate::git::object::absent::MissingObject;
use crate::git::refs;
use crate::session::meta::NotCaptured;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::workspace::Checkout;
use crate::workspace::complete;
use crate::workspace::drift::Drift;
use crate::workspace::drift::drift;
use crate::workspace::snapshot;
use crate::workspace::snapshot::not_captured;

/// What the user changed since the newest turn.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Changed {
    /// Paths, with what happened to them.
    pub changed: Vec<String>,
    /// Files that no snapshot has, and why.
    pub not_captured: Vec<NotCaptured>,
    /// Why that is not known: the git directory cannot be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// How far the files are from what that turn says.
    #[serde(flatten)]
    pub drift: Drift,
}

/// How often the files are compared when `git gc` takes objects away meanwhile.
const TRIES: usize = 3;

/// Returns an error in words, with what helps if an object is missing.
fn explained(error: &anyhow::Error) -> String {
    let missing: Option<&MissingObject> = error.chain().find_map(|cause| cause.downcast_ref());
    match missing {
        Some(missing) => format!("{error:#}; {}", missing.hint()),
        None => format!("{error:#}"),
    }
}

/// Compares the user's files with the newest turn; where that cannot be done, the rest is still
/// to be read.
pub fn changed_since(checkout: &Checkout<'_>, tip: &Turn) -> Changed {
    let mut why = String::new();
    for _ in 0..TRIES {
        match compare_with(checkout, tip) {
            Ok(changed) => return changed,
            Err(error) => why = explained(&error),
        }
        // It names objects that a `git gc` took.
        let _ = std::fs::remove_file(checkout.index(&checkout.repository.worktree_name()));
    }

    Changed {
        unknown: Some(why),
        ..Changed::default()
    }
}

/// Compares the user's files with the newest turn; with what was last brought to them if that
/// was something else.
fn compare_with(checkout: &Checkout<'_>, tip: &Turn) -> anyhow::Result<Changed> {
    let now = snapshot::snapshot(checkout, &[])?;
    let drift = drift(checkout, tip, now.tree)?;
    let last = match drift.same_turns {
        Some(false) => complete::stacks(checkout.repository)
            .last()?
            .map(|(id, _)| id),
        _ => None,
    };

    let base = last.or(tip.published()).map_or_else(
        || refs::head_tree(checkout.repository),
        |commit| checkout.repository.commit(commit).map(|commit| commit.tree),
    )?;

    let changes = diff::changes(checkout.repository, base, now.tree)?;
    Ok(Changed {
        changed: changes.iter().map(|change| lossy(&change.path)).collect(),
        not_captured: not_captured(&now),
        unknown: None,
        drift,
    })
}
