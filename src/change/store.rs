//! The store: changes as refs, their steps as commits.

use std::collections::BTreeMap;

use anyhow::Context as _;

use super::document::Documents;
use super::error::ChangeError;
use super::id::{CHANGES, ChangeId};
use super::state::{self, ChangeState};
use crate::git::diff;
use crate::git::object::batch;
use crate::git::object::{BlobId, CommitId, EntryMode, NewCommit, TreeEntry, TreeId};
use crate::git::refs;
use crate::git::repository::Repository;

/// The folder of the tree that holds the project's specs as they were when the change began.
pub const BASE: &str = "base/specs";

/// The changes of a repository.
pub struct ChangeStore<'a> {
    /// The repository.
    pub repository: &'a Repository,
}

/// A change as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its id.
    pub id: ChangeId,
    /// Its newest commit; nothing where it is about to begin.
    pub commit: Option<CommitId>,
    /// The tree of that commit; an empty one, or with the base alone, where it is about to begin.
    pub tree: TreeId,
    /// The state.
    pub state: ChangeState,
    /// The documents.
    pub documents: Documents,
}

/// One step, as the log lists it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StepRow {
    /// The commit.
    pub commit: CommitId,
    /// What was done.
    pub title: String,
    /// The step, phase and verdict, from the trailers.
    pub step: String,
    /// The phase after it.
    pub phase: String,
    /// The verdict, if it gave one.
    pub verdict: Option<String>,
    /// When, RFC 3339; nothing if the commit has a time that no calendar has.
    pub time: Option<String>,
}

impl ChangeStore<'_> {
    /// Returns every change with its newest commit, by id; refs that name no change are left out.
    ///
    /// # Errors
    /// Where the refs cannot be read.
    pub fn ids(&self) -> anyhow::Result<Vec<(ChangeId, CommitId)>> {
        let references = refs::list(self.repository, CHANGES)?;
        let named = |r: refs::Reference| {
            Some((
                ChangeId::parse(r.name.strip_prefix(CHANGES)?).ok()?,
                r.target,
            ))
        };
        Ok(references.into_iter().filter_map(named).collect())
    }

    /// Reads a change.
    ///
    /// # Errors
    /// [`ChangeError::ChangeNotFound`], or where its state cannot be read.
    pub fn read(&self, id: &ChangeId) -> anyhow::Result<Change> {
        match refs::read(self.repository, &id.reference())? {
            Some(commit) => self.at(id, commit),
            None => Err(ChangeError::ChangeNotFound(id.clone()).into()),
        }
    }

    /// Reads a change as it was after a step.
    ///
    /// # Errors
    /// Where the commit is no step of a change.
    pub fn at(&self, id: &ChangeId, commit: CommitId) -> anyhow::Result<Change> {
        let tree = self.repository.commit(commit)?.tree;
        let text = self
            .repository
            .file(tree, state::FILE)?
            .with_context(|| format!("commit {commit} has no `{}`", state::FILE))?;
        let text = String::from_utf8_lossy(&text);
        let state =
            state::read(&text).with_context(|| format!("reading `{}` of `{id}`", state::FILE))?;
        let mut documents = Documents::default();

        // A link or a repository in the place of a document is none.
        for leaf in self
            .repository
            .leaves(tree)?
            .into_iter()
            .filter(|leaf| matches!(leaf.mode, EntryMode::File | EntryMode::Executable))
        {
            if let Some(path) = std::str::from_utf8(&leaf.path)
                .ok()
                .filter(|path| Documents::is_one(path))
            {
                let bytes = self.repository.blob(BlobId::of(leaf.id))?;
                documents.put(path, String::from_utf8_lossy(&bytes));
            }
        }
        Ok(Change {
            id: id.clone(),
            commit: Some(commit),
            tree,
            state,
            documents,
        })
    }

    /// Returns the tree in which a change begins, the project's specs as they are in a tree, and
    /// the id of those specs.
    ///
    /// # Errors
    /// Where the repository cannot be read or written.
    pub fn beginning(&self, project: TreeId) -> anyhow::Result<(TreeId, Option<TreeId>)> {
        let empty = self.repository.empty_tree();
        match self.repository.entry(project, b"specs")? {
            Some(
                specs @ TreeEntry {
                    mode: EntryMode::Tree,
                    ..
                },
            ) => {
                let id = specs.id.to_string().parse()?;
                Ok((
                    diff::tree_with(
                        self.repository,
                        empty,
                        &BTreeMap::from([(BASE.as_bytes().to_vec(), Some(specs))]),
                    )?,
                    Some(id),
                ))
            }
            _ => Ok((empty, None)),
        }
    }

    /// Writes the objects of a step; no ref moves.
    ///
    /// # Errors
    /// Where the repository cannot be written.
    pub fn write(&self, change: &Change, message: &str) -> anyhow::Result<(CommitId, TreeId)> {
        let mut edits: BTreeMap<Vec<u8>, Option<TreeEntry>> = BTreeMap::new();
        if change.commit.is_some() {
            // What is no longer among the documents goes; everything else in the tree stays.
            let gone = self
                .repository
                .leaves(change.tree)?
                .into_iter()
                .map(|leaf| leaf.path);
            let gone = gone.filter(|path| Documents::is_one(&String::from_utf8_lossy(path)));
            edits.extend(gone.map(|path| (path, None)));
        }

        let batch = batch::batch(self.repository);
        let state = (state::FILE.to_owned(), state::write(&change.state));
        for (path, text) in change.documents.0.clone().into_iter().chain([state]) {
            let blob = batch.blob(text.as_bytes())?;
            edits.insert(
                path.into_bytes(),
                Some(TreeEntry {
                    mode: EntryMode::File,
                    id: blob.into(),
                }),
            );
        }

        let tree = batch.tree_with(change.tree, &edits)?;
        let parents: Vec<CommitId> = change.commit.into_iter().collect();
        let time = crate::host::clock::now();
        let commit = batch.commit(&NewCommit {
            tree,
            parents: &parents,
            message,
            time: &time,
        })?;

        batch.stage()?;
        Ok((commit, tree))
    }

    /// Returns the commits of a change, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn steps(&self, newest: CommitId) -> anyhow::Result<Vec<StepRow>> {
        let (mut rows, mut at) = (Vec::new(), Some(newest));
        while let Some(id) = at {
            let commit = self.repository.commit(id)?;
            let trailer = |name: &str| {
                let key = format!("Teddy-{name}: ");
                commit
                    .message
                    .lines()
                    .rev()
                    .find_map(|line| line.strip_prefix(&key))
                    .map(str::to_owned)
            };

            rows.push(StepRow {
                commit: id,
                title: commit.message.lines().next().unwrap_or_default().to_owned(),
                step: trailer("Step").unwrap_or_else(|| "edit".to_owned()),
                phase: trailer("Phase").unwrap_or_default(),
                verdict: trailer("Verdict"),
                time: crate::host::clock::of_seconds(commit.seconds),
            });
            at = commit.parents.first().copied();
        }

        Ok(rows)
    }
}
