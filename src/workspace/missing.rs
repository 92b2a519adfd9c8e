//! Explains which changes of turns are missing from the user's files although the stack contains
//! them: git or the user removed them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use serde::Serialize;

use crate::git::diff;
use crate::git::diff::TreeChange;
use crate::git::object::{CommitId, TreeEntry};
use crate::git::refs;
use crate::session::publication::Stack;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::workspace::Checkout;
use crate::workspace::branch::other_branch;
use crate::workspace::stack::{Patch, PatchId, Stacks};

const MAX_EXPLAINED: usize = 32;

/// A file that is not as the turns left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MissingChange {
    /// Path, lossily decoded.
    pub path: String,
    /// The reason.
    #[serde(flatten)]
    pub why: WhyMissing,
}

/// Why a file is not as the turns left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum WhyMissing {
    /// It was deleted.
    Deleted,
    /// It is on disk, and git ignores it now.
    Ignored,
    /// It is not on the branch that the user changed to.
    NotOnBranch {
        /// The branch; `HEAD` if detached.
        branch: String,
    },
    /// It has its content from before a turn.
    TakenBack {
        /// Session of that turn.
        session: String,
        /// Number of that turn.
        turn: u64,
    },
    /// It equals the version in the user's HEAD commit.
    Committed {
        /// The commit.
        commit: CommitId,
    },
}

/// Returns the changes of the stack that the user's files lack. `own` holds the user's differences
/// from the result of `tip`. Edits that match no known state are the user's and not reported.
pub fn find_missing_changes(
    checkout: &Checkout<'_>,
    tip: &Turn,
    stacks: &Stacks<'_>,
    (stack, own): (&Stack<PatchId>, &[TreeChange]),
) -> anyhow::Result<Vec<MissingChange>> {
    let mut missing_changes: Vec<MissingChange> = Vec::new();
    let mut open: BTreeMap<&[u8], &TreeEntry> = BTreeMap::new();
    for change in own {
        match (&change.old, &change.new) {
            (Some(_), None) => missing_changes.push(MissingChange {
                path: lossy(&change.path),
                why: why_missing(checkout, tip, &change.path)?,
            }),
            (Some(_), Some(now)) => {
                open.insert(&change.path, now);
            }
            // A new file is the user's own.
            (None, _) => {}
        }
    }

    let mut at = stack.top;
    for _ in 0..MAX_EXPLAINED {
        let Some(id) = at.filter(|_| !open.is_empty()) else {
            break;
        };
        let patch = stacks.patch(id)?;
        for change in diff::changes(
            checkout.repository,
            checkout.repository.commit(patch.change.before)?.tree,
            checkout.repository.commit(patch.change.after)?.tree,
        )? {
            let now = open.get(change.path.as_slice()).copied();
            let Some(why) = now
                .map(|now| explain_missing(checkout, &patch, &change, now))
                .transpose()?
            else {
                continue;
            };

            if let Some(why) = why {
                open.remove(change.path.as_slice());
                missing_changes.push(MissingChange {
                    path: lossy(&change.path),
                    why,
                });
            }
        }

        at = patch.base.top;
    }

    missing_changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(missing_changes)
}

fn why_missing(checkout: &Checkout<'_>, tip: &Turn, path: &[u8]) -> anyhow::Result<WhyMissing> {
    let on_disk = checkout.repository.workdir().join(OsStr::from_bytes(path));
    if on_disk
        .symlink_metadata()
        .is_ok_and(|metadata| !metadata.is_dir())
    {
        return Ok(WhyMissing::Ignored);
    }
    let is_committed = checkout
        .repository
        .entry(refs::head_tree(checkout.repository)?, path)?
        .is_some();
    let other = other_branch(checkout, tip)?.filter(|_| !is_committed);
    Ok(
        other.map_or(WhyMissing::Deleted, |other| WhyMissing::NotOnBranch {
            branch: other.now,
        }),
    )
}

/// `None` if the current content (`now`) does not reveal why.
fn explain_missing(
    checkout: &Checkout<'_>,
    patch: &Patch,
    change: &TreeChange,
    now: &TreeEntry,
) -> anyhow::Result<Option<WhyMissing>> {
    if change.old.as_ref() == Some(now) {
        return Ok(Some(WhyMissing::TakenBack {
            session: patch.session.clone(),
            turn: patch.turn,
        }));
    }

    let committed = checkout
        .repository
        .entry(refs::head_tree(checkout.repository)?, &change.path)?;
    let commit = refs::head(checkout.repository)?.filter(|_| committed.as_ref() == Some(now));
    Ok(commit.map(|commit| WhyMissing::Committed { commit }))
}
