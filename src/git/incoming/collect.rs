//! Packs the objects that an untrusted HEAD reaches and the user's repository lacks.

use std::collections::HashSet;

use gix::ObjectId;
use gix::objs::{CommitRef, Exists as _, Kind, TagRef, TreeRefIter};

use super::UnsoundCommit;
use super::store::ForeignStore;
use crate::git::keep::pack::keep;
use crate::git::keep::pack::{Pack, deflated};
use crate::git::object::CommitId;
use crate::git::repository::Repository;

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
