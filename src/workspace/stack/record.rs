//! Writes publications before the turn that names them. They are unreachable until then, so the
//! caller protects them from `git gc`.

use anyhow::Context as _;

use super::Stacks;
use crate::git::object::{CommitId, NewCommit, TreeId};
use crate::git::repository::Repository;
use crate::host::clock;
use crate::session::meta::Workspace;
use crate::session::publication::{Publication, SCHEMA, Stack};
use crate::session::turn::Turn;
use crate::workspace::file_move::find_conflict_markers;
use crate::workspace::stack::{PathStacks, Series};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// `None` if none was needed.
    pub id: Option<CommitId>,
    /// Publications of lower patches that were written for it and are only reachable through it.
    pub others: Vec<CommitId>,
}

pub struct Recorder<'a> {
    stacks: &'a Stacks<'a>,
    others: Vec<CommitId>,
}

impl<'a> Recorder<'a> {
    pub fn new(stacks: &'a Stacks<'a>) -> Recorder<'a> {
        Recorder {
            stacks,
            others: Vec::new(),
        }
    }

    pub fn write(self, publication: &Publication, tree: TreeId) -> anyhow::Result<Written> {
        Ok(Written {
            id: Some(self.stage(publication, tree)?),
            others: self.others,
        })
    }

    /// The caller protects it before a ref points at it.
    fn stage(&self, publication: &Publication, tree: TreeId) -> anyhow::Result<CommitId> {
        self.stacks.repository.stage_commit(&NewCommit {
            tree,
            parents: &publication.parents(),
            message: &publication.message(),
            time: &clock::now(),
        })
    }

    fn write_patch(&mut self, id: CommitId, base: Option<CommitId>) -> anyhow::Result<CommitId> {
        let patch = self.stacks.patch(id)?;
        let publication = Publication {
            change: Some(patch.change),
            ..publication(&patch.session, patch.turn, Stack::of(base))
        };

        let after = self.stacks.repository.commit(patch.change.after);
        let tree = after.context("reading what a turn changed")?.tree;
        let commit = self.stage(&publication, tree)?;
        self.others.push(commit);
        Ok(commit)
    }

    /// The top patch of a series in one subtree. A patch that now has another one below it than it
    /// was made on is written again on the new base.
    pub fn top(&mut self, path: &[u8], series: &Series) -> anyhow::Result<Option<CommitId>> {
        let mut top = series.base;
        for &id in &series.above {
            let patch = self.stacks.patch(id)?;
            if PathStacks::new(self.stacks, path).top(&patch.base) == top {
                top = Some(id);
                continue;
            }
            top = Some(self.write_patch(id, top)?);
        }

        Ok(top)
    }
}

/// A publication on top of `below`, completely applied and without a change of its own.
pub fn publication(session: &str, turn: u64, below: Stack<CommitId>) -> Publication {
    Publication {
        schema: SCHEMA,
        session: session.to_owned(),
        turn,
        change: None,
        below,
        target: None,
        applied: true,
        left: Vec::new(),
        marked: Vec::new(),
    }
}

/// Writes the publication of a turn, applied or not. `to` is the new tree if it is applied. A turn
/// without changes refers to the last publication; the first turn in a checkout always writes one.
/// The turn might have left conflict markers in `suspects`.
pub fn publish_turn(
    repository: &Repository,
    tip: &Turn,
    workspace: &Workspace,
    to: Option<TreeId>,
    suspects: &[Vec<u8>],
) -> anyhow::Result<Written> {
    let stacks = Stacks::new(repository);
    let last = stacks.last()?;
    let change = (workspace.before != workspace.after).then(|| workspace.change());

    if let (None, Some((id, _))) = (change, &last) {
        return Ok(Written {
            id: Some(*id),
            others: Vec::new(),
        });
    }

    let tree = match to {
        Some(to) => to,
        None => repository.commit(workspace.before)?.tree,
    };
    let mut suspects = suspects.to_vec();
    // The user can have resolved earlier markers since.
    suspects.extend(last.map_or_else(Vec::new, |(_, last)| last.marked));
    suspects.sort();
    suspects.dedup();
    let before = || Ok(repository.commit(workspace.before)?.tree);
    let below = stacks.current(tip, &before)?;
    let publication = Publication {
        change,
        applied: workspace.synced,
        marked: find_conflict_markers(repository, tree, &suspects)?,
        ..publication(tip.session.as_str(), tip.number() + 1, below)
    };

    Recorder::new(&stacks).write(&publication, tree)
}

/// Rewrites a publication to say that some paths were not applied.
pub fn amend(
    stacks: &Stacks<'_>,
    id: CommitId,
    applied: bool,
    unapplied: &[Vec<u8>],
) -> anyhow::Result<CommitId> {
    let repository = stacks.repository;
    let publication = Publication::read(repository, id)?;
    let mut publication = publication.with_context(|| format!("{id} is not a publication"))?;
    publication.applied &= applied;
    publication.left.extend_from_slice(unapplied);

    let written = Recorder::new(stacks).write(&publication, repository.commit(id)?.tree)?;
    written.id.context("it was written")
}
