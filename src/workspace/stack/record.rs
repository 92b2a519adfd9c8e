//! Writing publications: before the turn that names them, as objects that no ref reaches yet.

use std::collections::BTreeMap;

use anyhow::Context as _;

use super::series::{PathStacks, Series};
use super::{PatchId, Stacks};
use crate::git::object::batch;
use crate::git::object::{CommitId, NewCommit, TreeId};
use crate::git::repository::Repository;
use crate::host::clock;
use crate::session::meta::Workspace;
use crate::session::publication::{Delta, Publication, SCHEMA, Stack};
use crate::session::turn::Turn;
use crate::workspace::marks::marked;

/// A publication that was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// Its commit.
    pub id: Option<CommitId>,
    /// Other publications that were written for it, and that only it reaches.
    pub others: Vec<CommitId>,
}

/// Writes publications.
pub struct Recorder<'a> {
    /// What reads them.
    stacks: &'a Stacks<'a>,
    /// What was written on the way: patches that had no publication yet, by what they were.
    settled: BTreeMap<PatchId, CommitId>,
    /// All that was written.
    others: Vec<CommitId>,
}

/// Whose publication it is.
#[derive(Debug, Clone, Copy)]
pub struct Author<'a> {
    /// The session.
    pub session: &'a str,
    /// The number of the turn.
    pub turn: u64,
}

impl<'a> Recorder<'a> {
    /// Writes nothing yet.
    pub fn new(stacks: &'a Stacks<'a>) -> Recorder<'a> {
        Recorder {
            stacks,
            settled: BTreeMap::new(),
            others: Vec::new(),
        }
    }

    /// Returns the publication of a turn or restore that was brought as a whole.
    ///
    /// # Errors
    /// If the repository cannot be read or written.
    pub fn publication(
        &mut self,
        author: Author<'_>,
        below: &Stack<PatchId>,
    ) -> anyhow::Result<Publication> {
        Ok(Publication {
            schema: SCHEMA,
            session: author.session.to_owned(),
            turn: author.turn,
            change: None,
            below: self.settle(below)?,
            target: None,
            applied: true,
            left: Vec::new(),
            marked: Vec::new(),
        })
    }

    /// Writes a publication; `tree` is what the files are brought to.
    ///
    /// # Errors
    /// If the repository cannot be written.
    pub fn write(self, publication: &Publication, tree: TreeId) -> anyhow::Result<Written> {
        // Staged: whoever moves a ref to it holds it before.
        let batch = batch::batch(self.stacks.repository);
        let id = batch.commit(&NewCommit {
            tree,
            parents: &publication.parents(),
            message: &publication.message(),
            time: &clock::now(),
        })?;

        batch.stage()?;

        Ok(Written {
            id: Some(id),
            others: self.others,
        })
    }

    /// Returns a stack whose patches are all publications, written if they were not.
    ///
    /// # Errors
    /// If the repository cannot be read or written.
    pub fn settle(&mut self, stack: &Stack<PatchId>) -> anyhow::Result<Stack<CommitId>> {
        for id in stack.tops() {
            self.settle_patch(id)?;
        }
        Ok(stack.map(|id| self.publication_of(id)))
    }

    /// Returns the publication of a patch that has one.
    fn publication_of(&self, id: PatchId) -> CommitId {
        match id {
            PatchId::Published(commit) => commit,
            PatchId::Turn(commit) => self.settled.get(&id).copied().unwrap_or(commit),
        }
    }

    /// Writes a publication for a turn of an earlier version, and for those below it.
    fn settle_patch(&mut self, id: PatchId) -> anyhow::Result<()> {
        let is_open = |recorder: &Recorder<'_>, id: &PatchId| {
            matches!(id, PatchId::Turn(_)) && !recorder.settled.contains_key(id)
        };
        let mut waiting = vec![id];

        while let Some(id) = waiting.last().copied() {
            if !is_open(self, &id) {
                waiting.pop();
                continue;
            }

            let patch = self.stacks.patch(id)?;
            let before = waiting.len();
            waiting.extend(patch.below.tops().filter(|below| is_open(self, below)));
            if waiting.len() == before {
                let below = patch.below.map(|below| self.publication_of(below));
                let commit = self.write_patch(id, below)?;
                self.settled.insert(id, commit);
                waiting.pop();
            }
        }

        Ok(())
    }

    /// Writes a publication of a patch on other patches.
    fn write_patch(&mut self, id: PatchId, below: Stack<CommitId>) -> anyhow::Result<CommitId> {
        let repository = self.stacks.repository;
        let patch = self.stacks.patch(id)?;
        let publication = Publication {
            change: Some(patch.change),
            below,
            ..self.publication(
                Author {
                    session: &patch.session,
                    turn: patch.turn,
                },
                &Stack::default(),
            )?
        };

        let after = repository.commit(patch.change.after);
        let commit = repository.stage_commit(&NewCommit {
            tree: after.context("reading what a turn changed")?.tree,
            parents: &publication.parents(),
            message: &publication.message(),
            time: &clock::now(),
        })?;

        self.others.push(commit);
        Ok(commit)
    }

    /// Returns the newest patch of a series in one part of the files. One that lies on others than
    /// it was made on is written anew.
    ///
    /// # Errors
    /// If the repository cannot be read or written.
    pub fn top(&mut self, path: &[u8], series: &Series) -> anyhow::Result<Option<PatchId>> {
        let mut top = series.base;
        for &id in &series.above {
            let patch = self.stacks.patch(id)?;
            if PathStacks::new(self.stacks, path).top(&patch.below) == top {
                top = Some(id);
                continue;
            }
            let below = self.settle(&Stack::of(top))?;
            top = Some(PatchId::Published(self.write_patch(id, below)?));
        }

        Ok(top)
    }
}

/// Writes what a turn brings to the files of this checkout, or would have. A turn that changes no
/// file names what is in them; the first one in a checkout writes that, too. `to` is what the files
/// are brought to, if they are.
///
/// # Errors
/// If the repository cannot be read or written.
pub fn publish_turn(
    repository: &Repository,
    tip: &Turn,
    workspace: &Workspace,
    to: Option<TreeId>,
) -> anyhow::Result<Written> {
    publish_turn_with(repository, tip, workspace, (to, &[]))
}

/// As [`publish_turn`], for a turn that may have left conflict markers in some files.
///
/// # Errors
/// As for [`publish_turn`].
pub fn publish_turn_with(
    repository: &Repository,
    tip: &Turn,
    workspace: &Workspace,
    (to, suspects): (Option<TreeId>, &[Vec<u8>]),
) -> anyhow::Result<Written> {
    let stacks = Stacks::new(repository);
    let last = stacks.last()?;
    let change = (workspace.before != workspace.after).then_some(Delta {
        before: workspace.before,
        after: workspace.after,
    });

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
    suspects.extend(last.map_or_else(Vec::new, |(_, last)| last.marked));
    suspects.sort();
    suspects.dedup();
    let mut recorder = Recorder::new(&stacks);
    let publication = Publication {
        change,
        applied: workspace.synced,
        marked: marked(repository, tree, &suspects)?,
        ..recorder.publication(
            Author {
                session: tip.session.as_str(),
                turn: tip.number() + 1,
            },
            &stacks.here(tip)?,
        )?
    };

    recorder.write(&publication, tree)
}

/// Says in a publication that some paths were not brought after all, and writes it anew.
///
/// # Errors
/// If the repository cannot be read or written, or it is not a publication.
pub fn amend(
    stacks: &Stacks<'_>,
    id: CommitId,
    applied: bool,
    left: &[Vec<u8>],
) -> anyhow::Result<CommitId> {
    let repository = stacks.repository;
    let publication = Publication::read(repository, id)?;
    let mut publication = publication.with_context(|| format!("{id} is not a publication"))?;
    publication.applied &= applied;
    publication.left.extend_from_slice(left);

    let written = Recorder::new(stacks).write(&publication, repository.commit(id)?.tree)?;
    written.id.context("it was written")
}
