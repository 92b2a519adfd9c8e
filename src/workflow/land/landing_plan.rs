//! Plans the commits of a landing.

use super::error::LandError;
use super::message::{self, Comments, TurnSummary, draft, summarize_turn, with_lines};
use super::range::{Landing, SelectedTurns};
use super::{LandOptions, MessageSource};
use crate::git::land::branch::Target;
use crate::git::land::message::{CommitMessage, message_template};
use crate::git::merge;
use crate::git::merge::Merged;
use crate::git::object::TreeId;
use crate::git::repository::Repository;
use crate::session::meta::LandedTurn;
use crate::workflow::project::Project;

/// A planned commit.
#[derive(Debug)]
pub(super) struct PlannedCommit {
    pub landings: Vec<Landing>,
    /// Draft of the message.
    pub message: CommitMessage,
    /// Tree of the parent.
    pub from: TreeId,
    /// Tree without changes by hooks.
    pub tree: TreeId,
}

#[derive(Debug)]
pub(super) enum LandPlan {
    Commits(Vec<PlannedCommit>),
    /// A turn conflicts with HEAD.
    Overlap(LandOverlap),
}

/// Conflict of a turn with HEAD.
#[derive(Debug)]
pub(super) struct LandOverlap {
    pub turn: u64,
    /// Conflicting paths.
    pub paths: Vec<Vec<u8>>,
}

/// Applies turns to the tree of HEAD, in order. Fails with [`LandError`] if nothing is left to commit.
pub(super) fn plan_landing(
    project: &Project,
    selected: SelectedTurns,
    target: &Target,
    options: &LandOptions,
) -> anyhow::Result<LandPlan> {
    let all: Vec<String> = selected
        .landings
        .iter()
        .map(|landing| landing.turn.number().to_string())
        .collect();
    let mut tree = target.tree;
    let mut planned: Vec<PlannedCommit> = Vec::new();

    for landing in selected.landings {
        let next = match apply_turn(&project.repository, tree, &landing)? {
            Ok(next) => next,
            Err(overlap) => return Ok(LandPlan::Overlap(overlap)),
        };
        if next == tree {
            continue;
        }

        match planned.last_mut().filter(|_| !options.each) {
            Some(last) => {
                last.landings.push(landing);
                last.tree = next;
            }
            None => planned.push(PlannedCommit {
                landings: vec![landing],
                message: CommitMessage::default(),
                from: tree,
                tree: next,
            }),
        }

        tree = next;
    }

    // Turns that revert each other leave no change.
    planned.retain(|commit| commit.tree != commit.from);
    if planned.is_empty() {
        return Err(match all.is_empty() {
            true => LandError::Ignored("the turns".to_owned()).into(),
            false => LandError::InHead(name_turns(&all)).into(),
        });
    }

    for commit in &mut planned {
        commit.message = draft_message(project, commit, options)?;
    }

    Ok(LandPlan::Commits(planned))
}

/// Formats turns for a sentence.
fn name_turns(numbers: &[String]) -> String {
    match numbers {
        [one] => format!("turn {one}"),
        _ => format!("turns {}", numbers.join(", ")),
    }
}

/// Applies the changes of a turn to a tree.
fn apply_turn(
    repository: &Repository,
    tree: TreeId,
    landing: &Landing,
) -> anyhow::Result<Result<TreeId, LandOverlap>> {
    Ok(
        match merge::merge_trees(repository, landing.before, tree, landing.after)? {
            Merged::Clean(tree) => Ok(tree),
            Merged::Overlap { paths, .. } => Err(LandOverlap {
                turn: landing.turn.number(),
                paths,
            }),
        },
    )
}

/// Returns the draft of a message.
fn draft_message(
    project: &Project,
    commit: &PlannedCommit,
    options: &LandOptions,
) -> anyhow::Result<CommitMessage> {
    let repository = &project.repository;
    let turns: Vec<TurnSummary> = commit
        .landings
        .iter()
        .map(|landing| summarize_turn(repository, &landing.turn))
        .collect::<anyhow::Result<_>>()?;
    let trailers = message::trailers(&turns, &project.settings.land.trailers)?;
    let comments = Comments::of(repository);
    let draft = match &options.message {
        MessageSource::Given(text) => {
            if comments.is_empty(text, &trailers) {
                return Err(LandError::EmptyMessage.into());
            }
            return Ok(CommitMessage {
                text: with_lines(text, &trailers),
                edit: false,
                comment: None,
                comment_prefix: None,
                strips_comments: false,
                trailers,
            });
        }
        MessageSource::Draft | MessageSource::Edited => draft(&turns),
    };

    let edit = options.message == MessageSource::Edited;
    let template = edit.then(|| message_template(repository)).flatten();
    let message = comments.message(&draft, template.as_deref(), &trailers);
    Ok(CommitMessage { edit, ..message })
}

/// Applies a planned commit to its real parent, in which hooks can have changed files.
pub(super) fn apply_commit(
    repository: &Repository,
    from: TreeId,
    commit: &PlannedCommit,
) -> anyhow::Result<TreeId> {
    if from == commit.from {
        return Ok(commit.tree);
    }

    let mut tree = from;
    for landing in &commit.landings {
        tree = apply_turn(repository, tree, landing)?.map_err(|overlap| {
            let paths = crate::text::path::lossy_paths(&overlap.paths).join("`, `");
            let turn = overlap.turn;
            anyhow::anyhow!(
                "a hook changed `{paths}` where turn {turn} does, too, so that turn {turn} does not land"
            )
        })?;
    }

    Ok(tree)
}

pub(super) fn landed_turn(landing: &Landing) -> LandedTurn {
    LandedTurn {
        number: landing.turn.number(),
        turn_id: landing.turn.meta.turn_id,
    }
}
