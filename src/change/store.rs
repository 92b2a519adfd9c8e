//! Stores changes as refs, and their steps as commits.

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

/// Directory in the change's tree with the project's specs from the start of the change.
pub const BASE: &str = "base/specs";
/// Limit in bytes for the state of a change.
const MAX_STATE: u64 = 16 << 20;
/// Limit in bytes for all documents of a change.
const MAX_DOCUMENTS: u64 = 64 << 20;
/// Limit in bytes for the message of a step.
const MAX_MESSAGE: u64 = 1 << 20;

/// The changes of a repository.
pub struct ChangeStore<'a> {
    /// The repository.
    pub repository: &'a Repository,
}

/// A change at one of its steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its id.
    pub id: ChangeId,
    /// Commit of the step. `None` before the first one.
    pub commit: Option<CommitId>,
    /// Tree of that commit. Before the first step, a tree with at most [`BASE`].
    pub tree: TreeId,
    /// Its state.
    pub state: ChangeState,
    /// Its documents.
    pub documents: Documents,
}

/// A step as listed by the log.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StepRow {
    /// Its commit.
    pub commit: CommitId,
    /// Subject of the commit.
    pub title: String,
    /// Kind of step, from the trailers.
    pub step: String,
    /// The phase after it.
    pub phase: String,
    /// The verdict, if there is one.
    pub verdict: Option<String>,
    /// Time in RFC 3339. `None` if the commit time is out of range.
    pub time: Option<String>,
}

impl ChangeStore<'_> {
    /// Returns all changes with their newest commits, sorted by id. Skips refs with invalid ids.
    pub fn ids(&self) -> anyhow::Result<Vec<(ChangeId, CommitId)>> {
        let references = refs::list(self.repository, CHANGES)?;
        let parse_ref = |r: refs::Reference| {
            Some((
                ChangeId::parse(r.name.strip_prefix(CHANGES)?).ok()?,
                r.target,
            ))
        };
        Ok(references.into_iter().filter_map(parse_ref).collect())
    }

    /// Reads a change. Fails with [`ChangeError::ChangeNotFound`] if it does not exist.
    pub fn read(&self, id: &ChangeId) -> anyhow::Result<Change> {
        match refs::read(self.repository, &id.reference())? {
            Some(commit) => self.at(id, commit),
            None => Err(ChangeError::ChangeNotFound(id.clone()).into()),
        }
    }

    /// Reads a change as of a step. Fails if the commit is not a step.
    pub fn at(&self, id: &ChangeId, commit: CommitId) -> anyhow::Result<Change> {
        let tree = self.repository.commit(commit)?.tree;
        let text = self
            .repository
            .file_up_to(tree, state::FILE, MAX_STATE)?
            .with_context(|| format!("commit {commit} has no `{}`", state::FILE))?;
        let text = String::from_utf8_lossy(&text);
        let state =
            state::read(&text).with_context(|| format!("reading `{}` of `{id}`", state::FILE))?;
        let (mut documents, mut bytes) = (Documents::default(), 0);

        // A symbolic link or submodule is not a document.
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
                bytes += self.repository.blob_size(BlobId::of(leaf.id))?;
                anyhow::ensure!(
                    bytes <= MAX_DOCUMENTS,
                    "the documents of `{id}` have more than {MAX_DOCUMENTS} bytes"
                );
                let text = self.repository.blob(BlobId::of(leaf.id))?;
                documents.insert(path, String::from_utf8_lossy(&text));
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

    /// Writes the initial tree of a change, with a copy of the specs in the tree `project`. Also
    /// returns the id of these specs.
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

    /// Writes the objects of a step. Moves no ref.
    pub fn write(&self, change: &Change, message: &str) -> anyhow::Result<(CommitId, TreeId)> {
        let mut edits: BTreeMap<Vec<u8>, Option<TreeEntry>> = BTreeMap::new();
        if change.commit.is_some() {
            // Remove all documents first, then add the current ones. Other files in the tree are
            // kept.
            let removed = self
                .repository
                .leaves(change.tree)?
                .into_iter()
                .map(|leaf| leaf.path);
            let removed = removed.filter(|path| Documents::is_one(&String::from_utf8_lossy(path)));
            edits.extend(removed.map(|path| (path, None)));
        }

        let batch = batch::begin_batch(self.repository);
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

    /// Returns the steps of a change, newest first.
    pub fn steps(&self, newest: CommitId) -> anyhow::Result<Vec<StepRow>> {
        let (mut rows, mut at) = (Vec::new(), Some(newest));
        while let Some(id) = at {
            anyhow::ensure!(
                self.repository.commit_size(id)? <= MAX_MESSAGE,
                "commit {id} has more than {MAX_MESSAGE} bytes, so it is no step of a change"
            );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_without_end_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::init(dir.path(), None).unwrap();
        let store = ChangeStore {
            repository: &repository,
        };
        let id = ChangeId::parse("add-auth").unwrap();
        let check = |state: &str, document: usize, expected: &str| {
            let batch = batch::begin_batch(&repository);
            let files = [
                (state::FILE, state.to_owned()),
                ("proposal.md", " ".repeat(document)),
                ("tasks.md", " ".repeat(document)),
            ];
            let files = files.map(|(path, text)| {
                let blob = batch.blob(text.as_bytes()).unwrap();
                (path.to_owned(), blob)
            });
            let tree = batch.tree_of(&files).unwrap();
            let commit = batch
                .commit(&NewCommit {
                    tree,
                    parents: &[],
                    message: "One\n",
                    time: &crate::host::clock::now(),
                })
                .unwrap();
            batch.finish().unwrap();
            let error = format!("{:#}", store.at(&id, commit).unwrap_err());
            assert!(error.contains(expected), "{error}");
        };
        let state = "#".repeat(usize::try_from(MAX_STATE).unwrap() + 1);
        check(&state, 1, "and no more than 16777216 are read");
        let valid = "change_id: add-auth\nphase: proposed\n";
        check(valid, 33 << 20, "have more than 67108864 bytes");
    }
}
