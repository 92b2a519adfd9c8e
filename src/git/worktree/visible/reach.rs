//! Finds which of the objects that can be unreachable are reached.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Context as _;
use gix::ObjectId;
use gix::objs::Kind;

use super::packs::{Indexes, Packs};
use crate::git::incoming::collect::links;
use crate::git::repository::Repository;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Loose,
    /// In a cruft pack: nothing reached it when git made the pack, but a ref can since then.
    Cruft,
}

/// Objects that are only loose or in cruft packs. Commands do not see them unless they are reached.
pub(super) struct HiddenObjects {
    loose: HashSet<ObjectId>,
    packed: Indexes,
    cruft: Indexes,
}

impl HiddenObjects {
    pub(super) fn list(packs: &Packs) -> anyhow::Result<HiddenObjects> {
        Ok(HiddenObjects {
            loose: list_loose(packs.objects())?,
            packed: packs.open_visible(),
            cruft: packs.open_cruft(),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.loose.is_empty() && self.cruft.is_empty()
    }

    /// Returns where a hidden object is; `None` if commands see it anyway or it does not exist here.
    pub(super) fn place(&self, id: &ObjectId) -> Option<Place> {
        let place = match () {
            () if self.loose.contains(id) => Place::Loose,
            () if self.cruft.have(id) => Place::Cruft,
            () => return None,
        };
        (!self.packed.have(id)).then_some(place)
    }
}

/// Returns the hidden objects that `roots` reach through hidden objects.
pub(super) fn reached_objects(
    user: &Repository,
    hidden: &HiddenObjects,
    roots: BTreeSet<ObjectId>,
) -> anyhow::Result<HashMap<ObjectId, Place>> {
    let hash = user.gix.object_hash();
    let mut reached = HashMap::new();
    // The kind of a root is unknown until it is read.
    let mut next: Vec<(ObjectId, Option<Kind>)> =
        roots.into_iter().map(|root| (root, None)).collect();
    while let Some((id, kind)) = next.pop() {
        if reached.contains_key(&id) {
            continue;
        }
        let Some(place) = hidden.place(&id) else {
            continue;
        };
        reached.insert(id, place);
        if kind == Some(Kind::Blob) {
            continue;
        }

        // A damaged object reaches nothing, and commands see that it is damaged.
        let Ok(object) = user.gix.find_object(id) else {
            continue;
        };
        let found = links(object.kind, &object.data, hash).unwrap_or_default();
        next.extend(found.into_iter().map(|(id, kind)| (id, Some(kind))));
    }

    Ok(reached)
}

fn list_loose(objects: &Path) -> anyhow::Result<HashSet<ObjectId>> {
    let mut loose = HashSet::new();
    for first in 0..=u8::MAX {
        let name = format!("{first:02x}");
        let dir = objects.join(&name);
        let files = match std::fs::read_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            files => files.with_context(|| format!("cannot list `{}`", dir.display()))?,
        };
        for file in files {
            let hex = [name.as_bytes(), file?.file_name().as_encoded_bytes()].concat();
            loose.extend(ObjectId::from_hex(&hex));
        }
    }

    Ok(loose)
}
