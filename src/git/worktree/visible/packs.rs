//! The packs of the user's object directory.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix_pack::index::File as Index;

use crate::git::repository::Repository;

pub(super) struct Packs {
    objects: PathBuf,
    /// Packs with an index, without extension.
    visible: Vec<PathBuf>,
    /// Packs of unreachable objects that `git gc` keeps for a while.
    cruft: Vec<PathBuf>,
    hash: gix::hash::Kind,
}

pub(super) struct Indexes(Vec<Index>);

impl Packs {
    pub(super) fn list(user: &Repository) -> io::Result<Packs> {
        let objects = user.gix.objects.store_ref().path().to_owned();
        let names = match std::fs::read_dir(objects.join("pack")) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            names => Some(names?),
        };
        let mut files = BTreeSet::new();
        for name in names.into_iter().flatten() {
            files.insert(name?.path());
        }

        let has = |pack: &Path, ending| files.contains(&pack.with_extension(ending));
        let indexes = files.iter().filter(|file| ends_with(file, "idx"));
        let packs = indexes.map(|index| index.with_extension(""));
        let packs = packs.filter(|pack| has(pack, "pack"));
        let (cruft, visible) = packs.partition(|pack| has(pack, "mtimes"));
        Ok(Packs {
            objects,
            visible,
            cruft,
            hash: user.gix.object_hash(),
        })
    }

    pub(super) fn objects(&self) -> &Path {
        &self.objects
    }

    pub(super) fn visible(&self) -> &[PathBuf] {
        &self.visible
    }

    pub(super) fn names(&self) -> [&[PathBuf]; 2] {
        [&self.visible, &self.cruft]
    }

    pub(super) fn open_visible(&self) -> Indexes {
        self.open(&self.visible)
    }

    pub(super) fn open_cruft(&self) -> Indexes {
        self.open(&self.cruft)
    }

    pub(super) fn open_index(&self, pack: &Path) -> Option<Index> {
        Index::at(pack.with_extension("idx"), self.hash).ok()
    }

    /// Opens indexes. A damaged one, or one that was just replaced, counts as empty.
    fn open(&self, packs: &[PathBuf]) -> Indexes {
        let opened = packs.iter().filter_map(|pack| self.open_index(pack));
        Indexes(opened.collect())
    }
}

impl Indexes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn have(&self, id: &ObjectId) -> bool {
        self.0.iter().any(|index| index.lookup(id).is_some())
    }
}

fn ends_with(path: &Path, ending: &str) -> bool {
    path.extension()
        .is_some_and(|extension| extension == ending)
}
