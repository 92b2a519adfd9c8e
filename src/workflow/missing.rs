//! What is missing in the user's files of what turns did that are said to be in them: git or the
//! user took it away.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::git::diff::Change;
use crate::git::object::{CommitId, Entry};
use crate::git::repository::Repository;
use crate::session::publication::Stack;
use crate::workflow::restore::lossy;
use crate::workflow::stack::{PatchId, Stacks};

/// How many turns are asked whether they changed a file.
const MAX_ASKED: usize = 32;

/// A file that is not as the turns left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The file.
    pub path: String,
    /// Why.
    #[serde(flatten)]
    pub why: WhyMissing,
}

/// Why a file is not as the turns left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum WhyMissing {
    /// It is gone.
    Deleted,
    /// It is as it was before a turn.
    TakenBack {
        /// The session of the turn.
        session: String,
        /// Its number.
        turn: u64,
    },
    /// It is as in the user's newest commit.
    Committed {
        /// The commit.
        commit: CommitId,
    },
}

/// Returns what is missing of the turns of a stack. `own` is what the user's files differ in from
/// theirs.
///
/// # Errors
/// If the repository cannot be read.
pub fn missing(
    repository: &Repository,
    stacks: &Stacks<'_>,
    stack: &Stack<PatchId>,
    own: &[Change],
) -> anyhow::Result<Vec<Missing>> {
    let mut found: Vec<Missing> = Vec::new();
    let mut open: BTreeMap<&[u8], &Entry> = BTreeMap::new();
    for change in own {
        match (&change.old, &change.new) {
            (Some(_), None) => found.push(Missing {
                path: lossy(&change.path),
                why: WhyMissing::Deleted,
            }),
            (Some(_), Some(now)) => {
                open.insert(&change.path, now);
            }
            (None, _) => {}
        }
    }

    let head = repository.head()?;
    let head_tree = repository.head_tree()?;
    let mut at = stack.top;
    for _ in 0..MAX_ASKED {
        let Some(id) = at.filter(|_| !open.is_empty()) else {
            break;
        };
        let patch = stacks.patch(id)?;
        let tree = |id: CommitId| Ok::<_, anyhow::Error>(repository.commit(id)?.tree);
        for change in repository.changes(tree(patch.change.before)?, tree(patch.change.after)?)? {
            let Some(now) = open.get(change.path.as_slice()).copied() else {
                continue;
            };
            let why = match head {
                _ if change.old.as_ref() == Some(now) => WhyMissing::TakenBack {
                    session: patch.session.clone(),
                    turn: patch.turn,
                },
                Some(commit)
                    if repository.entry(head_tree, &change.path)?.as_ref() == Some(now) =>
                {
                    WhyMissing::Committed { commit }
                }
                _ => continue,
            };
            open.remove(change.path.as_slice());
            found.push(Missing {
                path: lossy(&change.path),
                why,
            });
        }
        at = patch.below.top;
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}
