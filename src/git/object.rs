//! Objects: typed ids, reading, and writing.
//!
//! A batch writes new objects as one pack, or stages a few in memory. Either way they are kept from
//! `git gc` until this process ends, so that there is time to point a ref at them. An object is durable
//! after `keep::durable::flush`.
//!
//! Limitation: what another process prunes while it is being read is an error, not a retry.
//!
//! # Example
//!
//! ```
//! # use std::process::Command;
//! # use teddy::git::repository::Repository;
//! # let dir = tempfile::tempdir()?;
//! # let git = |args: &[&str]| {
//! #     let mut git = Command::new("git");
//! #     git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
//! #     git.current_dir(&dir).args(args).status()
//! # };
//! # git(&["init", "-q", "-b", "main"])?;
//! # let repository = Repository::discover(dir.path(), None)?;
//! use teddy::git::object::batch::begin_batch;
//!
//! let batch = begin_batch(&repository);
//! let blob = batch.blob(b"one\n")?;
//! let tree = batch.tree_of(&[("a.txt".to_owned(), blob)])?;
//! batch.finish()?;
//! assert_eq!(repository.file(tree, "a.txt")?, Some(b"one\n".to_vec()));
//! # Ok::<(), anyhow::Error>(())
//! ```

pub mod absent;
pub mod batch;
pub mod id;
pub mod large;
pub mod leaves;
pub mod read;
pub(in crate::git) mod tree;
pub mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gix::ObjectId;
use gix::bstr::ByteSlice as _;
use gix::objs::{Kind, WriteTo as _};

use id::TagId;
pub use id::{BlobId, CommitId, TreeId};
pub use leaves::Leaf;
use tree::StoredTree;
use writer::Sink;

use crate::git::During as _;
pub use crate::git::object::id::{EntryMode, TreeEntry};
use crate::git::repository::Repository;

/// In characters. The first line of a foreign commit can have megabytes.
const MAX_SUBJECT: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    pub id: CommitId,
    pub tree: TreeId,
    pub parents: Vec<CommitId>,
    /// Bytes that are not UTF-8 are replaced.
    pub message: String,
    /// Committer time in seconds since 1970.
    pub seconds: i64,
}

impl Commit {
    pub fn subject(&self) -> &str {
        let line = self.message.lines().next().unwrap_or_default();
        let end = line.char_indices().nth(MAX_SUBJECT);
        end.map_or(line, |(end, _)| &line[..end])
    }
}

#[derive(Debug, Clone)]
pub struct NewCommit<'a> {
    pub tree: TreeId,
    pub parents: &'a [CommitId],
    pub message: &'a str,
    /// Commit time. The first parent's time is used if that is later.
    pub time: &'a jiff::Zoned,
}

impl Repository {
    /// Writes a blob as a pack of its own and returns its id. Use [`batch::begin_batch`] for several.
    pub fn write_blob(&self, bytes: &[u8]) -> anyhow::Result<BlobId> {
        // Not as a loose object: a power cut can leave that empty, and `git add` of the same
        // content would then rely on the empty file.
        let sink = Sink::new(self);
        let id = sink.add(Kind::Blob, bytes.to_vec())?;
        sink.finish(self)?;
        Ok(BlobId(id))
    }

    /// Stages a commit. The author is the user, if git knows them; the committer is TeDDy.
    pub fn stage_commit(&self, new: &NewCommit<'_>) -> anyhow::Result<CommitId> {
        let batch = batch::begin_batch(self);
        let commit = batch.commit(new)?;
        batch.stage()?;
        Ok(commit)
    }

    pub(in crate::git) fn encoded(&self, new: &NewCommit<'_>) -> anyhow::Result<Vec<u8>> {
        let parent_time = new
            .parents
            .first()
            .map(|&parent| self.commit(parent))
            .transpose()?
            .map_or(i64::MIN, |c| c.seconds);
        let time = gix::date::Time {
            seconds: new.time.timestamp().as_second().max(parent_time),
            offset: new.time.offset().seconds(),
        };

        let (author, committer) = self.signatures(time);
        let commit = gix::objs::Commit {
            tree: new.tree.0,
            parents: new.parents.iter().map(|parent| parent.0).collect(),
            author,
            committer,
            encoding: None,
            message: new.message.into(),
            extra_headers: Vec::new(),
        };

        let mut bytes = Vec::with_capacity(512);
        commit.write_to(&mut bytes)?;
        Ok(bytes)
    }

    pub(in crate::git) fn find_commit(&self, id: CommitId) -> anyhow::Result<gix::Commit<'_>> {
        let commit = absent::find(|| self.gix.find_commit(id.0));
        commit.during(format_args!("reading commit {id}"))
    }

    pub fn commit(&self, id: CommitId) -> anyhow::Result<Commit> {
        let commit = self.find_commit(id)?;
        let decoded = commit
            .decode()
            .during(format_args!("reading commit {id}"))?;
        Ok(Commit {
            id,
            tree: TreeId(decoded.tree()),
            parents: decoded.parents().map(CommitId).collect(),
            message: String::from_utf8_lossy(decoded.message).into_owned(),
            seconds: decoded
                .committer()
                .during(format_args!("reading commit {id}"))?
                .seconds(),
        })
    }

    pub fn blob_size(&self, id: BlobId) -> anyhow::Result<u64> {
        let header = absent::find(|| self.gix.find_header(id.0));
        Ok(header.during(format_args!("reading blob {id}"))?.size())
    }

    pub fn blob(&self, id: BlobId) -> anyhow::Result<Vec<u8>> {
        let mut blob =
            absent::find(|| self.gix.find_blob(id.0)).during(format_args!("reading blob {id}"))?;
        Ok(blob.take_data())
    }

    /// Returns a tree in its stored form, from the cache if it is large.
    pub(in crate::git) fn stored_tree(&self, id: ObjectId) -> anyhow::Result<Arc<StoredTree>> {
        if let Some(cached) = self.memory.trees.find(id) {
            return Ok(cached);
        }
        let tree = absent::find(|| self.gix.find_tree(id));
        let tree = tree.during(format_args!("reading tree {id}"))?;
        Ok(self.memory.trees.keep(StoredTree::of(tree)))
    }

    /// Like [`Repository::stored_tree`], but `None` if the tree is missing.
    pub(in crate::git) fn stored_tree_if_present(
        &self,
        id: ObjectId,
    ) -> anyhow::Result<Option<Arc<StoredTree>>> {
        if let Some(cached) = self.memory.trees.find(id) {
            return Ok(Some(cached));
        }
        let object = self.gix.try_find_object(id).during("reading a tree")?;
        let tree = object.map(|object| object.try_into_tree()).transpose();
        let tree = tree.during("reading a tree")?;
        Ok(tree.map(|tree| self.memory.trees.keep(StoredTree::of(tree))))
    }

    pub fn entry(&self, tree: TreeId, path: &[u8]) -> anyhow::Result<Option<TreeEntry>> {
        let (mut tree, mut names) = (self.stored_tree(tree.0)?, path.split(|&byte| byte == b'/'));
        while let Some(name) = names.next() {
            let Some(entry) = tree.find(name)? else {
                return Ok(None);
            };
            let (mode, id) = (EntryMode::from(entry.mode), entry.oid.to_owned());
            if names.clone().next().is_none() {
                return Ok(Some(TreeEntry { mode, id }));
            }
            if mode != EntryMode::Tree {
                return Ok(None);
            }
            tree = self.stored_tree(id)?;
        }

        Ok(None)
    }

    /// Returns the names in a directory of a tree, without those in its directories; `""` is the
    /// tree itself. Empty for anything else than a directory. A name that is not UTF-8 has replacement
    /// characters.
    pub fn names(&self, tree: TreeId, dir: &str) -> anyhow::Result<Vec<String>> {
        let id = match dir {
            "" => tree.0,
            dir => match self.entry(tree, dir.as_bytes())? {
                Some(entry) if entry.mode == EntryMode::Tree => entry.id,
                _ => return Ok(Vec::new()),
            },
        };
        let tree = self.stored_tree(id)?;
        let mut entries = tree.entries();
        let mut names = Vec::new();
        while let Some(raw) = entries.peek()? {
            let name = entries.decoded(raw)?.filename;
            names.push(String::from_utf8_lossy(name).into_owned());
            entries.pass(Some(raw));
        }
        Ok(names)
    }

    /// Returns the entries at several paths of a tree. Missing paths are left out. Each directory
    /// is read once.
    pub fn entries_at<'p>(
        &self,
        tree: TreeId,
        paths: &BTreeSet<&'p [u8]>,
    ) -> anyhow::Result<BTreeMap<&'p [u8], TreeEntry>> {
        let paths: Vec<&[u8]> = paths.iter().copied().collect();
        let mut entries = BTreeMap::new();
        self.collect_entries(tree.0, 0, &paths, &mut entries)?;
        Ok(entries)
    }

    /// Looks up the rest of sorted paths, from `start` on, in a tree.
    fn collect_entries<'p>(
        &self,
        tree: gix::ObjectId,
        start: usize,
        paths: &[&'p [u8]],
        entries: &mut BTreeMap<&'p [u8], TreeEntry>,
    ) -> anyhow::Result<()> {
        let tree = self.stored_tree(tree)?;
        let name_of = |path: &'p [u8]| {
            let tail = &path[start..];
            &tail[..tail.find_byte(b'/').unwrap_or(tail.len())]
        };

        // In sorted paths, those with the same directory are adjacent.
        for group in paths.chunk_by(|a, b| name_of(a) == name_of(b)) {
            let name = name_of(group[0]);
            let Some(entry) = tree.bisect(name)? else {
                continue;
            };

            let end = start + name.len();
            let (exact, children): (Vec<_>, Vec<_>) =
                group.iter().partition(|path| path.len() == end);
            for path in exact {
                let (mode, id) = (EntryMode::from(entry.mode), entry.oid.to_owned());
                entries.insert(path, TreeEntry { mode, id });
            }

            if !children.is_empty() && entry.mode.is_tree() {
                self.collect_entries(entry.oid.to_owned(), end + 1, &children, entries)?;
            }
        }

        Ok(())
    }

    /// Reads the file at a path of a tree; `None` if there is no file.
    pub fn file(&self, tree: TreeId, path: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let entry = self.entry(tree, path.as_bytes())?;
        let file = entry.filter(|entry| entry.is_file());
        file.map(|file| self.blob(BlobId(file.id))).transpose()
    }

    /// Like [`Repository::file`], but fails without reading if the file is larger than `most`
    /// bytes.
    pub fn file_up_to(
        &self,
        tree: TreeId,
        path: &str,
        most: u64,
    ) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(entry) = self.entry(tree, path.as_bytes())? else {
            return Ok(None);
        };
        let size = absent::find(|| self.gix.find_header(entry.id));
        let size = size.during(format_args!("reading `{path}`"))?.size();
        anyhow::ensure!(
            size <= most,
            "`{path}` has {size} bytes, and no more than {most} are read"
        );
        self.file(tree, path)
    }

    pub fn commit_size(&self, id: CommitId) -> anyhow::Result<u64> {
        let header = absent::find(|| self.gix.find_header(id.0));
        Ok(header.during(format_args!("reading commit {id}"))?.size())
    }

    pub fn has(&self, id: impl Into<gix::ObjectId>) -> bool {
        self.gix.has_object(id.into())
    }

    /// Returns the blob id of some bytes without writing them.
    pub fn blob_id(&self, bytes: &[u8]) -> anyhow::Result<BlobId> {
        gix::objs::compute_hash(self.gix.object_hash(), Kind::Blob, bytes)
            .map(BlobId)
            .during("hashing")
    }

    pub fn empty_tree(&self) -> TreeId {
        TreeId(self.gix.empty_tree().id)
    }
}

impl From<CommitId> for gix::ObjectId {
    fn from(id: CommitId) -> gix::ObjectId {
        id.0
    }
}

impl From<TreeId> for gix::ObjectId {
    fn from(id: TreeId) -> gix::ObjectId {
        id.0
    }
}

impl From<BlobId> for gix::ObjectId {
    fn from(id: BlobId) -> gix::ObjectId {
        id.0
    }
}

// Reads annotated tags as untrusted input: nothing in a tag counts before git has verified its
// signature.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedTag {
    pub commit: CommitId,
    pub name: String,
    /// As stated in the tag: `Name <address>`.
    pub tagger: String,
    /// Time of the tag in seconds since 1970.
    pub seconds: i64,
}

/// Reads a tag of a commit. Fails if the object is anything else.
pub fn read_signed_tag(repository: &Repository, id: TagId) -> anyhow::Result<SignedTag> {
    let object =
        absent::find(|| repository.gix.find_object(id.0)).during(format_args!("reading `{id}`"))?;
    anyhow::ensure!(
        object.kind == Kind::Tag,
        "`{id}` is a {}, not a tag",
        object.kind
    );
    parse_tag(&object.data)
}

pub(in crate::git) fn parse_tag(bytes: &[u8]) -> anyhow::Result<SignedTag> {
    let head = bytes.split_str("\n\n").next().unwrap_or_default();
    let mut lines = head.lines().map(|line| line.to_str_lossy());
    let mut field = |key: &str| {
        let line = lines.next().unwrap_or_default().into_owned();
        let value = line.strip_prefix(key).and_then(|it| it.strip_prefix(' '));
        value
            .map(str::to_owned)
            .ok_or_else(|| anyhow::anyhow!("it has no `{key}` where a tag has it"))
    };

    let (object, kind) = (field("object")?, field("type")?);
    anyhow::ensure!(kind == "commit", "it is the tag of a {kind}");
    let (name, signature) = (field("tag")?, field("tagger")?);
    let (tagger, time) = signature.rsplit_once("> ").unwrap_or((&signature, ""));
    let seconds = time.split(' ').next().unwrap_or_default();
    Ok(SignedTag {
        commit: object.parse()?,
        name,
        tagger: format!("{}>", tagger.trim_end_matches('>')),
        seconds: seconds.parse().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod tag_tests {
    use super::*;

    const COMMIT: &str = "1465b844761618fe5910618bbc86deda6df5f057";

    #[test]
    fn the_head_of_a_tag_is_read() {
        let text = format!(
            "object {COMMIT}\ntype commit\ntag teddy/signed/demo\n\
             tagger A <b> C <a@b> 1767322445 +0100\n\nobject x\n"
        );
        let tag = parse_tag(text.as_bytes()).unwrap();
        let expected = SignedTag {
            commit: COMMIT.parse().unwrap(),
            name: "teddy/signed/demo".to_owned(),
            tagger: "A <b> C <a@b>".to_owned(),
            seconds: 1_767_322_445,
        };
        assert_eq!(tag, expected);
    }

    #[test]
    fn what_is_no_tag_of_a_commit_is_refused() {
        let check = |text: &str, expected: &str| {
            let error = parse_tag(text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check("", "it has no `object` where a tag has it");
        check(
            &format!("object {COMMIT}\ntype tree\ntag x\ntagger x\n\n"),
            "it is the tag of a tree",
        );
        check(
            &format!("object {COMMIT}\ntype commit\n\ntag x\n"),
            "it has no `tag` where a tag has it",
        );
    }
}
