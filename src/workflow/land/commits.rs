//! The commits of a landing: what each of them has, and how git makes them.

use super::error::LandError;
use super::message::{TurnSummary, draft, told, with_trailers};
use super::range::{Landing, Selected};
use super::{LandOptions, MessageSource};
use crate::git::land::branch::Target;
use crate::git::land::scratch::{LandingWorktree, MessageEdit, Wanted, template};
use crate::git::merge;
use crate::git::merge::Merged;
use crate::git::object::{CommitId, TreeId};
use crate::git::repository::Repository;
use crate::session::meta::LandedTurn;
use crate::workflow::project::Project;

/// A commit that is to be made.
#[derive(Debug)]
pub(super) struct PlannedCommit {
    /// The turns that it has.
    pub landings: Vec<Landing>,
    /// The message, as the user has not edited it yet.
    pub message: String,
    /// The tree before it.
    pub from: TreeId,
    /// The tree, as no hook has changed it yet.
    pub tree: TreeId,
}

/// A commit that git made.
#[derive(Debug)]
pub(super) struct MadeCommit {
    /// The commit.
    pub commit: CommitId,
    /// The subject.
    pub title: String,
    /// The tree that it was to have.
    pub wanted: TreeId,
    /// The tree that it has: hooks may have changed files.
    pub tree: TreeId,
    /// The tree of its parent.
    pub from: TreeId,
    /// The turns that it has.
    pub turns: Vec<LandedTurn>,
}

/// The commits of a landing, or why there are none.
#[derive(Debug)]
pub(super) enum LandPlan {
    /// These.
    Commits(Vec<PlannedCommit>),
    /// A turn overlaps with what HEAD has.
    Overlap(LandOverlap),
}

/// Where a turn overlaps with what it would land on.
#[derive(Debug)]
pub(super) struct LandOverlap {
    /// Its number.
    pub turn: u64,
    /// Where.
    pub paths: Vec<Vec<u8>>,
}

/// Puts turns on the tree of HEAD, one after another.
///
/// # Errors
/// [`LandError`] if nothing is left to commit, or the repository cannot be read or written.
pub(super) fn plan(
    project: &Project,
    selected: Selected,
    target: &Target,
    wish: &LandOptions,
) -> anyhow::Result<LandPlan> {
    let all: Vec<String> = selected
        .landings
        .iter()
        .map(|landing| landing.turn.number().to_string())
        .collect();
    let mut tree = target.tree;
    let mut planned: Vec<PlannedCommit> = Vec::new();

    for landing in selected.landings {
        let next = match put(&project.repository, tree, &landing)? {
            Ok(next) => next,
            Err(overlap) => return Ok(LandPlan::Overlap(overlap)),
        };
        if next == tree {
            continue;
        }

        match planned.last_mut().filter(|_| !wish.each) {
            Some(last) => {
                last.landings.push(landing);
                last.tree = next;
            }
            None => planned.push(PlannedCommit {
                landings: vec![landing],
                message: String::new(),
                from: tree,
                tree: next,
            }),
        }

        tree = next;
    }

    // Turns that undo each other leave nothing.
    planned.retain(|commit| commit.tree != commit.from);
    if planned.is_empty() {
        return Err(match all.is_empty() {
            true => LandError::Ignored("the turns".to_owned()).into(),
            false => LandError::InHead(turns(&all)).into(),
        });
    }

    for commit in &mut planned {
        commit.message = message(project, commit, wish)?;
    }

    Ok(LandPlan::Commits(planned))
}

/// Returns turns as a sentence names them.
fn turns(numbers: &[String]) -> String {
    match numbers {
        [one] => format!("turn {one}"),
        _ => format!("turns {}", numbers.join(", ")),
    }
}

/// Puts what a turn did on a tree.
fn put(
    repository: &Repository,
    tree: TreeId,
    landing: &Landing,
) -> anyhow::Result<Result<TreeId, LandOverlap>> {
    Ok(
        match merge::merge(repository, landing.before, tree, landing.after)? {
            Merged::Clean(tree) => Ok(tree),
            Merged::Overlap { paths, .. } => Err(LandOverlap {
                turn: landing.turn.number(),
                paths,
            }),
        },
    )
}

/// Returns the message of a commit, as far as nobody has edited it.
fn message(
    project: &Project,
    commit: &PlannedCommit,
    wish: &LandOptions,
) -> anyhow::Result<String> {
    let repository = &project.repository;
    let turns: Vec<TurnSummary> = commit
        .landings
        .iter()
        .map(|landing| told(repository, &landing.turn))
        .collect::<anyhow::Result<_>>()?;
    let text = match &wish.message {
        MessageSource::Given(text) => text.clone(),
        MessageSource::Draft => draft(&turns),
        MessageSource::Edited => match template(repository) {
            Some(template) => format!("{}\n{template}", draft(&turns)),
            None => draft(&turns),
        },
    };

    let trailers = &project.settings.land.trailers;
    Ok(with_trailers(&text, &turns, trailers)?)
}

/// Lets git make the commits, one on another.
///
/// # Errors
/// If git makes one not, for which it has said why; or a hook changed what a later turn changes.
pub(super) fn make(
    project: &Project,
    scratch: &LandingWorktree<'_>,
    (target, planned): (&Target, &[PlannedCommit]),
    wish: &LandOptions,
) -> anyhow::Result<Vec<MadeCommit>> {
    let repository = &project.repository;
    let (mut parent, mut from) = (target.base, target.tree);
    let mut made: Vec<MadeCommit> = Vec::new();
    for (at, commit) in planned.iter().enumerate() {
        let tree = put_all(repository, from, commit)?;
        // Only the first one is made where the branch is; a branch that is new is nowhere yet.
        let is_there = at == 0 && (target.old.is_some() || parent.is_none());
        let id = scratch.commit(&Wanted {
            parent,
            tree,
            branch: is_there.then_some(target.name.as_str()),
            message: &commit.message,
            edit: match wish.message {
                MessageSource::Edited => MessageEdit::InEditor,
                MessageSource::Given(_) | MessageSource::Draft => MessageEdit::No,
            },
        })?;

        let written = repository.commit(id)?;
        made.push(MadeCommit {
            commit: id,
            title: written.subject().to_owned(),
            wanted: tree,
            tree: written.tree,
            from,
            turns: commit.landings.iter().map(landed).collect(),
        });
        (parent, from) = (Some(id), written.tree);
    }

    Ok(made)
}

/// Puts all that a commit has on the tree of its parent, in which hooks may have changed files.
fn put_all(
    repository: &Repository,
    from: TreeId,
    commit: &PlannedCommit,
) -> anyhow::Result<TreeId> {
    if from == commit.from {
        return Ok(commit.tree);
    }

    let mut tree = from;
    for landing in &commit.landings {
        tree = put(repository, tree, landing)?.map_err(|overlap| {
            let paths = crate::text::path::shown(&overlap.paths).join("`, `");
            let turn = overlap.turn;
            anyhow::anyhow!(
                "a hook changed `{paths}` where turn {turn} does, too; nothing was changed"
            )
        })?;
    }

    Ok(tree)
}

/// Returns what names a turn.
fn landed(landing: &Landing) -> LandedTurn {
    LandedTurn {
        number: landing.turn.number(),
        turn_id: landing.turn.meta.turn_id,
    }
}
