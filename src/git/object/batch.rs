//! Collects objects that are created together, such as a turn with its artifacts.

use std::collections::BTreeMap;

use gix::objs::{CommitRef, Kind};

use crate::git::object::writer::Sink;
use crate::git::object::{BlobId, CommitId, EntryMode, NewCommit, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::git::{During as _, diff};

/// New objects of one operation. They cannot be read before [`Batch::stage`] or [`Batch::finish`].
pub struct Batch<'a> {
    repository: &'a Repository,
    pub(super) sink: Sink,
}

pub fn begin_batch(repository: &Repository) -> Batch<'_> {
    Batch {
        repository,
        sink: Sink::new(repository),
    }
}

/// A batch that [`Batch::stage`] never writes, for what only this process reads.
pub fn begin_memory_batch(repository: &Repository) -> Batch<'_> {
    Batch {
        repository,
        sink: Sink::in_memory(repository),
    }
}

impl Batch<'_> {
    pub fn blob(&self, bytes: &[u8]) -> anyhow::Result<BlobId> {
        self.sink.add(Kind::Blob, bytes.to_vec()).map(BlobId)
    }

    /// Adds a tree with these paths, including subtrees, and returns its id. Fails if git does not
    /// allow a path.
    pub fn tree_of(&self, files: &[(String, BlobId)]) -> anyhow::Result<TreeId> {
        let edits = files.iter().map(|(path, blob)| {
            let (mode, id) = (EntryMode::Blob, blob.0);
            (path.clone().into_bytes(), Some(TreeEntry { mode, id }))
        });
        self.tree_with(self.repository.empty_tree(), &edits.collect())
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

    pub fn commit(&self, new: &NewCommit<'_>) -> anyhow::Result<CommitId> {
        // git reads the empty tree without its object, but `git fsck` reports that as missing.
        if new.tree == self.repository.empty_tree() {
            self.sink.add(Kind::Tree, Vec::new())?;
        }
        self.sink
            .add(Kind::Commit, self.repository.encoded(new)?)
            .map(CommitId)
    }

    pub fn remade(&self, commit: RewrittenCommit) -> anyhow::Result<()> {
        self.sink.add(Kind::Commit, commit.bytes).map(drop)
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

#[derive(Debug, Clone)]
pub struct CommitRewrite<'a> {
    pub tree: TreeId,
    /// New first parent; `None` for a root commit.
    pub parent: Option<CommitId>,
    pub others: &'a [CommitId],
    /// New message; `None` to keep the old one.
    pub message: Option<&'a [u8]>,
}

/// A rewritten commit that is not written yet.
#[derive(Debug, Clone)]
pub struct RewrittenCommit {
    pub id: CommitId,
    bytes: Vec<u8>,
}

impl RewrittenCommit {
    /// Returns the uncompressed size of the commit object.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// Rewrites a commit in memory. Author, committer, dates and encoding stay. Other headers are
/// dropped, because a signature would be invalid.
pub fn rewrite_commit(
    repository: &Repository,
    id: CommitId,
    rewrite: &CommitRewrite<'_>,
) -> anyhow::Result<RewrittenCommit> {
    let read = repository.find_commit(id)?;
    let old = read.decode().during(format_args!("reading commit {id}"))?;
    let bytes = encode(&old, rewrite);
    let id = gix::objs::compute_hash(repository.gix.object_hash(), Kind::Commit, &bytes)
        .during("hashing")?;
    Ok(RewrittenCommit {
        id: CommitId(id),
        bytes,
    })
}

/// Encodes a commit with the old author and committer, byte for byte: gix's encoder panics at the
/// offset `+9999`, which git accepts.
fn encode(old: &CommitRef<'_>, wanted: &CommitRewrite<'_>) -> Vec<u8> {
    let mut bytes = format!("tree {}\n", wanted.tree).into_bytes();
    for parent in wanted.parent.iter().chain(wanted.others) {
        bytes.extend(format!("parent {parent}\n").bytes());
    }
    let headers = [
        ("author", Some(old.author)),
        ("committer", Some(old.committer)),
        ("encoding", old.encoding),
    ];
    for (name, value) in headers {
        if let Some(value) = value {
            bytes.extend(name.bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(value);
            bytes.push(b'\n');
        }
    }

    bytes.push(b'\n');
    bytes.extend_from_slice(wanted.message.unwrap_or(old.message));
    bytes
}

pub fn read_author(repository: &Repository, id: CommitId) -> anyhow::Result<String> {
    let read = repository.find_commit(id)?;
    let author = read.author().during(format_args!("reading commit {id}"))?;
    Ok(author.name.to_string())
}

pub fn read_message(repository: &Repository, id: CommitId) -> anyhow::Result<Vec<u8>> {
    let read = repository.find_commit(id)?;
    let message = read.message_raw();
    let message = message.during(format_args!("reading commit {id}"))?;
    Ok(message.to_vec())
}

/// Reads a blob; `None` if it is larger than `most` bytes.
pub fn read_blob_within(
    repository: &Repository,
    id: BlobId,
    most: u64,
) -> anyhow::Result<Option<Vec<u8>>> {
    if repository.blob_size(id)? > most {
        return Ok(None);
    }
    repository.blob(id).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::sample;

    #[test]
    fn a_batch_is_read_as_objects_that_were_written_alone() {
        let (_dir, repository) = sample::repository();
        let time = crate::host::clock::now();
        let batch = begin_batch(&repository);
        let files = ["a", "next/b", "next/deep/c"]
            .map(|path| (path.to_owned(), batch.blob(path.as_bytes()).unwrap()));
        let tree = batch.tree_of(&files).unwrap();
        let commit = batch.commit(&sample::new_commit(tree, &time)).unwrap();
        assert!(repository.commit(commit).is_err());
        batch.stage().unwrap();
        assert_eq!(repository.commit(commit).unwrap().tree, tree);
        for (path, blob) in &files {
            repository.write_blob(path.as_bytes()).unwrap();
            assert_eq!(repository.blob(*blob).unwrap(), path.as_bytes());
        }
    }
}

#[cfg(test)]
mod rewrite_tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    struct Sample {
        dir: tempfile::TempDir,
        repository: Repository,
    }

    impl Sample {
        fn new() -> Sample {
            let dir = tempfile::tempdir().unwrap();
            let repository = Repository::init(dir.path(), None).unwrap();
            Sample { dir, repository }
        }

        /// Writes the object as git would after a fetch without checks.
        fn write(&self, commit: &[u8]) -> CommitId {
            let mut child = crate::host::process::command("git")
                .args([
                    "hash-object",
                    "-t",
                    "commit",
                    "-w",
                    "--literally",
                    "--stdin",
                ])
                .current_dir(self.dir.path())
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(commit).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout)
                .unwrap()
                .trim()
                .parse()
                .unwrap()
        }

        fn remade(
            &self,
            commit: CommitId,
            message: Option<&[u8]>,
        ) -> anyhow::Result<RewrittenCommit> {
            let rewrite = CommitRewrite {
                tree: self.repository.empty_tree(),
                parent: None,
                others: &[],
                message,
            };
            rewrite_commit(&self.repository, commit, &rewrite)
        }
    }

    fn commit(sample: &Sample, author: &[u8], rest: &[u8]) -> Vec<u8> {
        let tree = sample.repository.empty_tree();
        [format!("tree {tree}\nauthor ").as_bytes(), author, rest].concat()
    }

    #[test]
    fn a_rewritten_commit_keeps_author_and_committer_byte_for_byte() {
        let sample = Sample::new();
        for author in [
            "Ada <ada@example.org> 1700000000 +9999",
            "Ada <ada@example.org> 1700000000 -9959",
            "Ada <ada@example.org> 99999999999999999999 +0000",
            "Ada <ada@example.org> -1 +0545",
            " <> 0 +0000",
        ] {
            let tail = format!("\ncommitter {author}\nencoding latin1\n\nText\n");
            let bytes = commit(&sample, author.as_bytes(), tail.as_bytes());
            let id = sample.write(&bytes);
            let new = sample.remade(id, None).unwrap();
            assert_eq!(new.bytes, bytes, "{author}");
            assert_eq!(new.id, id, "{author}");
        }
    }

    fn offset() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            "[+-][0-9]{4}".prop_map(String::into_bytes),
            "[+-]?[0-9]{0,9}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..6),
        ]
    }

    fn time() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            any::<i64>().prop_map(|time| time.to_string().into_bytes()),
            "-?[0-9]{0,30}".prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..6),
        ]
    }

    fn identity() -> impl Strategy<Value = Vec<u8>> {
        let name = proptest::collection::vec(any::<u8>(), 0..12);
        let plain = "[A-Za-z. ]{0,12} ?<?[a-z@. ]{0,12}>?".prop_map(String::into_bytes);
        let identity = prop_oneof![name, plain];
        (identity, time(), offset()).prop_map(|(identity, time, offset)| {
            [&identity[..], b" ", &time, b" ", &offset].concat()
        })
    }

    /// Headers that are missing, repeated, out of order or not UTF-8.
    fn headers() -> impl Strategy<Value = Vec<u8>> {
        let header = prop_oneof![
            4 => identity().prop_map(|person| [b"\ncommitter ", &person[..]].concat()),
            1 => identity().prop_map(|person| [b"\nauthor ", &person[..]].concat()),
            1 => "\nencoding [a-z0-9-]{0,9}".prop_map(String::into_bytes),
            1 => Just(b"\ngpgsig a\n b\n \n c".to_vec()),
            1 => proptest::collection::vec(any::<u8>(), 0..20),
        ];
        let message = proptest::collection::vec(any::<u8>(), 0..30);
        (proptest::collection::vec(header, 0..4), message)
            .prop_map(|(headers, message)| [headers.concat(), b"\n\n".to_vec(), message].concat())
    }

    #[test]
    fn random_a_foreign_commit_is_read_or_refused() {
        let sample = Sample::new();
        let config = ProptestConfig {
            cases: 100,
            failure_persistence: None,
            rng_seed: proptest::test_runner::RngSeed::Fixed(7),
            ..ProptestConfig::default()
        };
        proptest!(config, |(author in identity(), rest in headers())| {
            let id = sample.write(&commit(&sample, &author, &rest));
            let repository = &sample.repository;
            // None of these panics. Which of them fail is not the subject.
            let _ = repository.commit(id).map(|commit| crate::host::clock::of_seconds(commit.seconds));
            let _ = super::read_author(repository, id);
            let _ = read_message(repository, id);
            let _ = crate::git::history::is_ancestor(repository, id, id);
            if let Ok(new) = sample.remade(id, None) {
                // The new commit can be read like the old one.
                let new = sample.write(&new.bytes);
                prop_assert_eq!(read_message(repository, new).ok(), read_message(repository, id).ok());
                prop_assert_eq!(super::read_author(repository, new).ok(), super::read_author(repository, id).ok());
            }
        });
    }
}
