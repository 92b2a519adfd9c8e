//! Verifies that objects exist, have the content that their ids promise, and that git accepts the
//! names in trees.

use std::collections::HashSet;

use gix::ObjectId;
use gix::objs::{Find as _, Kind, TreeRefIter};

use super::parallel::map_parallel;
use super::paths::{is_valid_link_name, is_valid_name};
use super::repository::Repository;
use crate::git::object::{CommitId, TreeId, large};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedObject {
    pub id: ObjectId,
    pub why: String,
}

#[derive(Default)]
struct ObjectsToRead {
    visited: HashSet<ObjectId>,
    trees: Vec<ObjectId>,
    blobs: Vec<ObjectId>,
}

/// Trees that have only names that git accepts, on all levels.
#[derive(Debug, Default)]
pub struct AcceptedTrees(HashSet<ObjectId>);

impl AcceptedTrees {
    /// Returns the first name that git refuses in this tree or below it. git checks the names when
    /// objects arrive, but not those of objects that an earlier `git clone` fetched.
    ///
    /// Missing and damaged trees are passed over.
    pub fn find_refused(&mut self, repository: &Repository, top: TreeId) -> Option<Vec<u8>> {
        let mut entered = HashSet::new();
        let mut waiting = vec![top.0];
        let mut bytes = Vec::new();
        while let Some(tree) = waiting.pop() {
            if self.0.contains(&tree) || !entered.insert(tree) {
                continue;
            }

            let Ok(Some(data)) = repository.gix.objects.try_find(&tree, &mut bytes) else {
                continue;
            };
            let entries = TreeRefIter::from_bytes(data.data, repository.gix.object_hash());
            for entry in entries.flatten() {
                let is_accepted = match entry.mode.is_link() {
                    true => is_valid_link_name(entry.filename),
                    false => is_valid_name(entry.filename),
                };
                if !is_accepted {
                    return Some(entry.filename.to_vec());
                }
                if entry.mode.is_tree() {
                    waiting.push(entry.oid.to_owned());
                }
            }
        }

        self.0.extend(entered);
        None
    }
}

/// Reads commits and their trees, but not their parents, and returns the objects that are missing
/// or damaged. Objects that a partial clone has not fetched are not reported.
pub fn find_damaged(
    repository: &Repository,
    commits: &[CommitId],
) -> anyhow::Result<Vec<DamagedObject>> {
    let (mut queue, mut wrong) = (ObjectsToRead::default(), Vec::new());
    for commit in commits {
        if !queue.visited.insert(commit.0) {
            continue;
        }

        match read(repository, commit.0, Kind::Commit) {
            Ok(_) => match repository.commit(*commit) {
                Ok(commit) => queue.add_tree(commit.tree.0),
                Err(error) => wrong.push(DamagedObject {
                    id: commit.0,
                    why: format!("{error:#}"),
                }),
            },
            Err(why) => wrong.push(why),
        }
    }

    while let Some(id) = queue.trees.pop() {
        match read(repository, id, Kind::Tree) {
            Ok(Some(bytes)) => wrong.extend(queue.enter(repository, id, &bytes)),
            Ok(None) => {}
            Err(why) => wrong.push(why),
        }
    }

    let blobs = map_parallel(repository, queue.blobs, |repository, blobs| {
        let wrong = blobs
            .into_iter()
            .filter_map(|id| read_blob(repository, id).err());
        Ok(wrong.collect::<Vec<_>>())
    })?;
    wrong.extend(blobs.into_iter().flatten());
    wrong.sort_by_key(|one| one.id);

    Ok(wrong)
}

impl ObjectsToRead {
    fn add_tree(&mut self, id: ObjectId) {
        if self.visited.insert(id) {
            self.trees.push(id);
        }
    }

    fn enter(
        &mut self,
        repository: &Repository,
        tree: ObjectId,
        bytes: &[u8],
    ) -> Option<DamagedObject> {
        for entry in TreeRefIter::from_bytes(bytes, repository.gix.object_hash()) {
            let Ok(entry) = entry else {
                return Some(DamagedObject {
                    id: tree,
                    why: "it is not a tree".to_owned(),
                });
            };

            let id = entry.oid.to_owned();
            if entry.mode.is_tree() {
                self.add_tree(id);
            } else if !entry.mode.is_commit() && self.visited.insert(id) {
                self.blobs.push(id);
            }
        }

        None
    }
}

/// Reads and hashes a blob. A large one is read in blocks.
fn read_blob(repository: &Repository, id: ObjectId) -> Result<(), DamagedObject> {
    let Some(stored) = large::find_large(repository, id) else {
        return read(repository, id, Kind::Blob).map(drop);
    };
    let read = stored.copy_to(&mut std::io::sink());
    read.map_err(|error| DamagedObject {
        id,
        why: error.to_string(),
    })
}

/// Reads and hashes an object. `None` if a partial clone has not fetched it.
fn read(
    repository: &Repository,
    id: ObjectId,
    kind: Kind,
) -> Result<Option<Vec<u8>>, DamagedObject> {
    let wrong = |why: String| DamagedObject { id, why };
    let mut bytes = Vec::new();
    let actual = repository
        .gix
        .objects
        .try_find(&id, &mut bytes)
        .map_err(|error| wrong(error.to_string()))?
        .map(|object| object.kind);

    match actual {
        None if repository.is_partial() => Ok(None),
        // The empty tree exists without being stored.
        None if kind == Kind::Tree && id == repository.gix.empty_tree().id => Ok(None),
        None => Err(wrong(format!("{kind} is missing"))),
        Some(actual) if actual != kind => Err(wrong(format!("it is a {actual}, not a {kind}"))),
        Some(_) => match gix::objs::compute_hash(repository.gix.object_hash(), kind, &bytes) {
            Ok(hashed) if hashed == id => Ok(Some(bytes)),
            _ => Err(wrong(format!(
                "{kind} does not have the bytes that its id says"
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_with_the_content_of_another_one_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let git = gix::init(dir.path()).unwrap();
        let [right, wrong] = ["right", "wrong"].map(|text| git.write_blob(text).unwrap().detach());
        let read = || read_blob(&Repository::open(dir.path()).unwrap(), right);
        assert_eq!(read(), Ok(()));

        let file = |id: ObjectId| {
            let hex = id.to_string();
            let objects = dir.path().join(".git/objects");
            objects.join(&hex[..2]).join(&hex[2..])
        };
        std::fs::remove_file(file(right)).unwrap();
        std::fs::copy(file(wrong), file(right)).unwrap();
        assert_eq!(
            read().unwrap_err().why,
            "blob does not have the bytes that its id says"
        );
    }
}
