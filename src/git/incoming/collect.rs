//! Packs the objects that an untrusted HEAD reaches and the user's repository lacks.
//!
//! Fails if there are too many objects, or if their total size is too large.

use std::collections::HashSet;
use std::path::PathBuf;

use gix::ObjectId;
use gix::objs::{CommitRef, Exists as _, Find as _, FindHeader as _, Kind, TagRef, TreeRefIter};
use gix::zlib::Decompress;
use gix::zlib::stream::inflate;

use super::quarantine::{Quarantine, UnsoundCommit};
use crate::git::intake::MAX_OBJECT;
use crate::git::keep::pack::{Pack, deflated, keep};
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::host::file::Root;

const MAX_OBJECTS: usize = 500_000;
const MAX_BYTES: u64 = 2 << 30;

pub(super) struct Collected {
    pub(super) new: usize,
    /// Commits of the user's repository that are parents of new ones.
    pub(super) edges: Vec<CommitId>,
    /// The new objects; `None` if there are none.
    pub(super) pack: Option<Pack>,
}

struct CollectWalk<'a> {
    repository: &'a Repository,
    /// Existing objects, as of the start.
    existing: gix::OdbHandle,
    store: ForeignStore<'a>,
    visited: HashSet<ObjectId>,
    bytes: u64,
    collected: Collected,
}

pub(super) fn collect_objects(
    repository: &Repository,
    store: ForeignStore<'_>,
    head: CommitId,
) -> anyhow::Result<Collected> {
    let mut existing = repository.gix.objects.clone();
    // Looking up a missing object makes gix load new packs once.
    existing.exists(&repository.gix.object_hash().null());
    existing.refresh_never();
    let mut walk = CollectWalk {
        repository,
        existing,
        store,
        visited: HashSet::new(),
        bytes: 0,
        collected: Collected {
            new: 0,
            edges: Vec::new(),
            pack: None,
        },
    };

    let mut next = vec![(head.0, Kind::Commit)];
    while let Some((id, kind)) = next.pop() {
        if walk.visited.insert(id) {
            walk.visit(id, kind, &mut next)?;
        }
    }

    Ok(walk.collected)
}

impl CollectWalk<'_> {
    fn visit(
        &mut self,
        id: ObjectId,
        kind: Kind,
        next: &mut Vec<(ObjectId, Kind)>,
    ) -> anyhow::Result<()> {
        let hash = self.repository.gix.object_hash();
        if id == ObjectId::empty_tree(hash) || self.existing.exists(&id) {
            if kind == Kind::Commit {
                self.collected.edges.push(CommitId(id));
            }
            return Ok(());
        }

        let Some((is, data)) = self.store.read(id)? else {
            // In a partial clone, the server can have this object. git's connectivity check decides
            // whether it was promised.
            let may_be_promised = self.repository.is_partial() && kind != Kind::Commit;
            anyhow::ensure!(
                may_be_promised,
                UnsoundCommit(format!("object {id} is missing"))
            );
            return Ok(());
        };

        anyhow::ensure!(
            is == kind,
            UnsoundCommit(format!("object {id} is a {is} and named as a {kind}"))
        );
        self.collected.new += 1;
        self.bytes += data.len() as u64;
        anyhow::ensure!(
            self.collected.new <= MAX_OBJECTS && self.bytes <= MAX_BYTES,
            UnsoundCommit("it has more new objects than are taken at once".to_owned())
        );
        let links = links(kind, &data, hash);

        next.extend(links.ok_or_else(|| UnsoundCommit(format!("{kind} {id} is malformed")))?);
        let pack = match &mut self.collected.pack {
            Some(pack) => pack,
            none => none.insert(Pack::new(&keep::pack_dir(self.repository))?.for_everybody()),
        };
        pack.push(id, &deflated(kind, &data)?)
    }
}

/// Returns the objects that an object refers to; `None` if it is malformed.
pub(in crate::git) fn links(
    kind: Kind,
    data: &[u8],
    hash: gix::hash::Kind,
) -> Option<Vec<(ObjectId, Kind)>> {
    match kind {
        Kind::Commit => {
            let commit = CommitRef::from_bytes(data, hash).ok()?;
            let parents = commit.parents().map(|parent| (parent, Kind::Commit));
            Some(
                [(commit.tree(), Kind::Tree)]
                    .into_iter()
                    .chain(parents)
                    .collect(),
            )
        }
        Kind::Tree => {
            let mut links = Vec::new();
            for entry in TreeRefIter::from_bytes(data, hash) {
                let entry = entry.ok()?;
                let kind = match entry.mode.kind() {
                    gix::objs::tree::EntryKind::Tree => Kind::Tree,
                    // A submodule's commit is in another repository.
                    gix::objs::tree::EntryKind::Commit => continue,
                    _ => Kind::Blob,
                };
                links.push((entry.oid.to_owned(), kind));
            }

            Some(links)
        }
        Kind::Tag => {
            let tag = TagRef::from_bytes(data, hash).ok()?;
            Some(vec![(tag.target(), tag.target_kind)])
        }
        Kind::Blob => Some(Vec::new()),
    }
}

const MAX_OBJECT_HEADER: usize = 32;

pub(super) struct ForeignStore<'a> {
    repository: &'a Repository,
    /// The untrusted git directory.
    git: &'a Root,
    quarantine: &'a Quarantine,
    /// Its packs with our own indexes, loaded on first use. Inner `None` if there are none.
    packs: Option<Option<gix::OdbHandle>>,
}

impl<'a> ForeignStore<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        git: &'a Root,
        quarantine: &'a Quarantine,
    ) -> ForeignStore<'a> {
        ForeignStore {
            repository,
            git,
            quarantine,
            packs: None,
        }
    }

    /// Reads an object and verifies its hash; `None` if it does not exist.
    pub(super) fn read(&mut self, id: ObjectId) -> anyhow::Result<Option<(Kind, Vec<u8>)>> {
        let object = match self.loose(id)? {
            Some(object) => Some(object),
            None => self.packed(id)?,
        };
        let Some((kind, data)) = object else {
            return Ok(None);
        };
        let hashed = gix::objs::compute_hash(self.repository.gix.object_hash(), kind, &data);
        anyhow::ensure!(
            hashed.is_ok_and(|hashed| hashed == id),
            UnsoundCommit(format!("object {id} is not what its name says"))
        );

        Ok(Some((kind, data)))
    }

    fn loose(&self, id: ObjectId) -> anyhow::Result<Option<(Kind, Vec<u8>)>> {
        let hex = id.to_hex().to_string();
        let path = PathBuf::from(format!("objects/{}/{}", &hex[..2], &hex[2..]));
        match self.git.read(&path, MAX_OBJECT) {
            Ok(packed) => match inflate_object(&packed, MAX_OBJECT) {
                Ok(object) => Ok(Some(object)),
                Err(why) => anyhow::bail!(UnsoundCommit(format!("object {id} {why}"))),
            },
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                anyhow::bail!(UnsoundCommit(format!("object {id} is too large")))
            }
            // Whatever the error, the object can still be in a pack.
            Err(_) => Ok(None),
        }
    }

    fn packed(&mut self, id: ObjectId) -> anyhow::Result<Option<(Kind, Vec<u8>)>> {
        if self.packs.is_none() {
            self.packs = Some(self.quarantine.copy_packs(self.repository, self.git)?);
        }

        let Some(packs) = self.packs.as_ref().and_then(Option::as_ref) else {
            return Ok(None);
        };
        let damaged = |_| UnsoundCommit(format!("object {id} cannot be read"));
        let Some(header) = packs.try_header(&id).map_err(damaged)? else {
            return Ok(None);
        };
        anyhow::ensure!(
            header.size <= MAX_OBJECT,
            UnsoundCommit(format!("object {id} is too large"))
        );
        let mut buffer = Vec::new();
        let object = packs.try_find(&id, &mut buffer).map_err(damaged)?;

        Ok(object.map(|data| (data.kind, data.data.to_vec())))
    }
}

/// Inflates and parses a loose object, or returns the reason why it is invalid.
fn inflate_object(packed: &[u8], limit: u64) -> Result<(Kind, Vec<u8>), &'static str> {
    let (mut source, mut state) = (packed, Decompress::new());
    let mut head = [0; MAX_OBJECT_HEADER];
    let length = inflate::read(&mut source, &mut state, &mut head).map_err(|_| DAMAGED_OBJECT)?;
    let end = head[..length].iter().position(|&byte| byte == 0);
    let end = end.ok_or(DAMAGED_OBJECT)?;
    let text = str::from_utf8(&head[..end]).map_err(|_| DAMAGED_OBJECT)?;
    let (kind, size) = text.split_once(' ').ok_or(DAMAGED_OBJECT)?;
    let kind = Kind::from_bytes(kind.as_bytes()).map_err(|_| DAMAGED_OBJECT)?;
    let size: u64 = size.parse().map_err(|_| DAMAGED_OBJECT)?;

    if size > limit {
        return Err("is too large");
    }

    let size = usize::try_from(size).map_err(|_| DAMAGED_OBJECT)?;
    let mut data = head[end + 1..length].to_vec();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read =
            inflate::read(&mut source, &mut state, &mut buffer).map_err(|_| DAMAGED_OBJECT)?;
        data.extend_from_slice(&buffer[..read]);
        // Stop early: the data can expand far beyond the announced size.
        if data.len() > size {
            return Err(DAMAGED_OBJECT);
        }

        if read == 0 {
            break;
        }
    }

    if data.len() == size {
        Ok((kind, data))
    } else {
        Err(DAMAGED_OBJECT)
    }
}

const DAMAGED_OBJECT: &str = "is damaged";

#[cfg(test)]
mod tests {
    use super::*;

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        use std::io::Write as _;
        let level = gix::zlib::Compression::BEST_SPEED;
        let mut stream = gix::zlib::stream::deflate::Write::new(Vec::new(), level);
        stream.write_all(bytes).unwrap();
        stream.flush().unwrap();
        stream.into_inner()
    }

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<(Kind, &[u8]), &str>) {
        let actual = inflate_object(&deflated(bytes), 1000);
        let actual = actual.as_ref().map(|(kind, data)| (*kind, data.as_slice()));
        assert_eq!(actual.map_err(|why| *why), expected);
    }

    #[test]
    fn an_object_is_its_head_and_as_many_bytes_as_that_says() {
        check(b"blob 0\0", Ok((Kind::Blob, b"")));
        check(b"tree 3\0abc", Ok((Kind::Tree, b"abc")));
        let long = "x".repeat(999);
        check(
            format!("commit 999\0{long}").as_bytes(),
            Ok((Kind::Commit, long.as_bytes())),
        );
    }

    #[test]
    fn an_object_that_is_none_is_refused() {
        for bytes in [
            &b""[..],
            b"blob",
            b"blob 3",
            b"blob 3\0ab",
            b"blob 3\0abcd",
            b"blob -1\0",
            b"blob 3 \0abc",
            b"thing 3\0abc",
            b"blob 00000000000000000000000000000003\0abc",
        ] {
            check(bytes, Err("is damaged"));
        }
        check(b"blob 1001\0", Err("is too large"));
        check(b"blob 99999999999999999999999\0", Err("is damaged"));
        assert_eq!(inflate_object(b"garbage", 1000), Err("is damaged"));
    }
}
