//! Collects objects that are created together, such as a turn with its artifacts.

use std::collections::BTreeMap;

use gix::objs::{Kind, WriteTo as _};

use crate::git::During;
use crate::git::diff;
use crate::git::object::writer::Sink;
use crate::git::object::{BlobId, CommitId, NewCommit, TreeEntry, TreeId};
use crate::git::repository::Repository;

/// New objects of one operation. They cannot be read before [`Batch::stage`] or [`Batch::finish`].
pub struct Batch<'a> {
    repository: &'a Repository,
    pub(super) sink: Sink,
}

/// Returns an empty batch.
pub fn begin_batch(repository: &Repository) -> Batch<'_> {
    Batch {
        repository,
        sink: Sink::new(repository),
    }
}

impl Batch<'_> {
    /// Adds a blob and returns its id.
    pub fn blob(&self, bytes: &[u8]) -> anyhow::Result<BlobId> {
        self.sink.add(Kind::Blob, bytes.to_vec()).map(BlobId)
    }

    /// Adds a tree with these paths, including subtrees, and returns its id. Fails if git does not
    /// allow a path.
    pub fn tree_of(&self, files: &[(String, BlobId)]) -> anyhow::Result<TreeId> {
        let gix = &self.repository.gix;
        let mut editor =
            gix::objs::tree::Editor::new(gix::objs::Tree::empty(), &gix.objects, gix.object_hash());
        for (path, blob) in files {
            let parts = path.split('/').map(gix::bstr::BStr::new);
            editor
                .upsert(parts, gix::objs::tree::EntryKind::Blob, blob.0)
                .during(format_args!("adding `{path}` to a tree"))?;
        }

        let written = editor.write(|tree| {
            let mut bytes = Vec::new();
            tree.write_to(&mut bytes)?;
            self.sink.add(Kind::Tree, bytes)
        });
        written.map(TreeId)
    }

    /// Adds a copy of `base` that differs in the given paths, like [`diff::tree_with`]. The blobs
    /// can be part of this batch.
    pub fn tree_with(
        &self,
        base: TreeId,
        edits: &BTreeMap<Vec<u8>, Option<TreeEntry>>,
    ) -> anyhow::Result<TreeId> {
        diff::tree_into(self.repository, &self.sink, base, edits)
    }

    /// Adds a commit and returns its id.
    pub fn commit(&self, new: &NewCommit<'_>) -> anyhow::Result<CommitId> {
        self.sink
            .add(Kind::Commit, self.repository.encoded(new)?)
            .map(CommitId)
    }

    /// Stages the objects in memory. [`protect_commits`](crate::git::keep::protect::protect_commits) writes them
    /// before a ref moves. A large batch is written right away.
    pub fn stage(self) -> anyhow::Result<()> {
        self.sink.stage(self.repository).map(drop)
    }

    /// Writes the objects as a pack, so git can read them. The pack is kept until the process ends.
    pub fn finish(self) -> anyhow::Result<()> {
        self.sink.finish(self.repository).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_read_as_objects_that_were_written_alone() {
        let dir = tempfile::tempdir().unwrap();
        gix::init(dir.path()).unwrap();
        let repository = Repository::open(dir.path()).unwrap();
        let time = crate::host::clock::now();
        let batch = begin_batch(&repository);
        let files = ["a", "next/b", "next/deep/c"]
            .map(|path| (path.to_owned(), batch.blob(path.as_bytes()).unwrap()));
        let tree = batch.tree_of(&files).unwrap();
        let commit = batch
            .commit(&NewCommit {
                tree,
                parents: &[],
                message: "One\n",
                time: &time,
            })
            .unwrap();
        assert!(repository.commit(commit).is_err());
        batch.stage().unwrap();
        assert_eq!(repository.commit(commit).unwrap().tree, tree);
        for (path, blob) in &files {
            repository.write_blob(path.as_bytes()).unwrap();
            assert_eq!(repository.blob(*blob).unwrap(), path.as_bytes());
        }
    }
}
