//! Lists the contents of trees, up to a limit: a tree of a few hundred bytes can contain the same
//! subtree many times on each level, and so more files than fit into memory.

use std::collections::BTreeMap;

use gix::ObjectId;

use super::id::{BlobId, TreeId};
use crate::git::During as _;
use crate::git::object::absent;
use crate::git::object::id::EntryMode;
use crate::git::paths;
use crate::git::repository::Repository;

/// Maximum size of all files of a small tree.
const MAX_FILES: u64 = 1 << 30;

/// An entry that is not a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    pub path: Vec<u8>,
    pub mode: EntryMode,
    pub id: ObjectId,
}

impl Leaf {
    pub fn is_file(&self) -> bool {
        matches!(self.mode, EntryMode::Blob | EntryMode::BlobExecutable)
    }
}

/// Limits of a listing. A larger tree is an error.
#[derive(Debug, Clone, Copy)]
pub struct TreeLimit {
    /// Number of files and directories on all levels.
    pub entries: usize,
    pub depth: usize,
    /// Total length of all paths in bytes.
    pub path_bytes: usize,
    /// Size of each tree object in bytes; `None` for no limit.
    pub object_bytes: Option<u64>,
}

impl TreeLimit {
    /// Limit for the files of a project.
    pub const PROJECT: TreeLimit = TreeLimit {
        entries: 2_000_000,
        depth: 4096,
        path_bytes: 256 << 20,
        object_bytes: None,
    };
    /// Limit for a tree whose files are all read, such as that of a turn.
    pub const SMALL: TreeLimit = TreeLimit {
        entries: 1 << 16,
        depth: 64,
        path_bytes: 16 << 20,
        object_bytes: Some(16 << 20),
    };
}

impl Repository {
    /// Returns all entries of a project's tree that are not trees, sorted by path.
    pub fn leaves(&self, tree: TreeId) -> anyhow::Result<Vec<Leaf>> {
        self.leaves_up_to(tree, TreeLimit::PROJECT)
    }

    /// Returns all entries of a tree that are not trees, sorted by path. Fails beyond the limit.
    pub fn leaves_up_to(&self, tree: TreeId, limit: TreeLimit) -> anyhow::Result<Vec<Leaf>> {
        let mut listing = TreeListing {
            repository: self,
            tree,
            limit,
            dirs: vec![(Vec::new(), tree.0)],
            leaves: Vec::new(),
            entries: 0,
            path_bytes: 0,
        };
        while let Some((path, id)) = listing.dirs.pop() {
            listing.list_dir(&path, id)?;
        }

        let mut leaves = listing.leaves;
        leaves.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(leaves)
    }

    /// Reads all files of a small tree, by path. Fails beyond [`TreeLimit::SMALL`] or 1 GiB.
    pub fn files(&self, tree: TreeId) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
        let (mut files, mut bytes) = (BTreeMap::new(), 0_u64);
        for leaf in self.leaves_up_to(tree, TreeLimit::SMALL)? {
            let blob = BlobId(leaf.id);
            bytes = bytes.saturating_add(self.blob_size(blob)?);
            anyhow::ensure!(
                bytes <= MAX_FILES,
                "the files of tree {tree} have more than {MAX_FILES} bytes"
            );
            let path = String::from_utf8_lossy(&leaf.path).into_owned();
            files.insert(path, self.blob(blob)?);
        }
        Ok(files)
    }
}

struct TreeListing<'a> {
    repository: &'a Repository,
    tree: TreeId,
    limit: TreeLimit,
    dirs: Vec<(Vec<u8>, ObjectId)>,
    leaves: Vec<Leaf>,
    entries: usize,
    path_bytes: usize,
}

impl TreeListing<'_> {
    fn list_dir(&mut self, path: &[u8], id: ObjectId) -> anyhow::Result<()> {
        if let Some(most) = self.limit.object_bytes {
            let header = absent::find(|| self.repository.gix.find_header(id));
            let size = header.during(format_args!("reading tree {id}"))?.size();
            anyhow::ensure!(
                size <= most,
                "tree {id} has {size} bytes, and no more than {most} are read"
            );
        }

        let read = absent::find(|| self.repository.gix.find_tree(id));
        let read = read.during(format_args!("reading tree {id}"))?;
        for entry in read.iter() {
            let entry = entry.during(format_args!("reading tree {id}"))?;
            let child_path = paths::join(path, entry.filename());
            self.count(&child_path)?;

            let id = entry.object_id();
            match EntryMode::from(entry.mode()) {
                EntryMode::Tree => self.dirs.push((child_path, id)),
                mode => self.leaves.push(Leaf {
                    path: child_path,
                    mode,
                    id,
                }),
            }
        }
        Ok(())
    }

    fn count(&mut self, path: &[u8]) -> anyhow::Result<()> {
        let TreeLimit {
            entries,
            depth,
            path_bytes,
            ..
        } = self.limit;
        self.entries += 1;
        self.path_bytes += path.len();
        anyhow::ensure!(
            self.entries <= entries,
            "tree {} has more than {entries} files and directories",
            self.tree
        );
        anyhow::ensure!(
            self.path_bytes <= path_bytes,
            "the paths in tree {} have more than {path_bytes} bytes",
            self.tree
        );

        // Checked for each entry, because only directories have deeper levels and there are few.
        let levels = path.iter().filter(|byte| **byte == b'/').count() + 1;
        anyhow::ensure!(
            levels <= depth,
            "tree {} has more than {depth} levels",
            self.tree
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::git::object::batch::begin_batch;

    use super::*;
    use crate::git::sample;

    fn check(paths: &[&str], limit: TreeLimit, expected: Result<&[&str], &str>) {
        let (_dir, repository) = sample::repository();
        let batch = begin_batch(&repository);
        let blob = batch.blob(b"x").unwrap();
        let files = paths.iter().map(|path| ((*path).to_owned(), blob));
        let tree = batch.tree_of(&files.collect::<Vec<_>>()).unwrap();
        batch.finish().unwrap();

        let actual = repository.leaves_up_to(tree, limit).map(|leaves| {
            let paths = leaves.into_iter().map(|leaf| leaf.path);
            paths
                .map(|path| String::from_utf8(path).unwrap())
                .collect::<Vec<_>>()
        });
        let actual = actual.map_err(|error| format!("{error:#}").replace(&tree.to_string(), "T"));
        let expected = expected.map(|paths| paths.iter().map(|path| (*path).to_owned()).collect());
        assert_eq!(actual, expected.map_err(str::to_owned));
    }

    #[test]
    fn files_of_all_levels_are_listed_by_path() {
        let paths = ["a", "b-c", "b/x", "b/y/z", "c"];
        check(&paths, TreeLimit::SMALL, Ok(&paths));
        check(&paths, TreeLimit::PROJECT, Ok(&paths));
    }

    #[test]
    fn a_listing_ends_at_each_limit() {
        let limit = |entries, depth, path_bytes| TreeLimit {
            entries,
            depth,
            path_bytes,
            object_bytes: None,
        };
        let paths = ["a/b/c", "d"];
        check(&paths, limit(4, 3, 10), Ok(&paths));
        check(
            &paths,
            limit(3, 3, 10),
            Err("tree T has more than 3 files and directories"),
        );
        check(
            &paths,
            limit(4, 2, 10),
            Err("tree T has more than 2 levels"),
        );
        check(
            &paths,
            limit(4, 3, 9),
            Err("the paths in tree T have more than 9 bytes"),
        );
        let small = TreeLimit {
            object_bytes: Some(56),
            ..TreeLimit::SMALL
        };
        check(
            &paths,
            small,
            Err("tree T has 57 bytes, and no more than 56 are read"),
        );
    }

    #[test]
    fn a_tree_that_names_itself_over_and_over_is_listed_to_its_limit() {
        let (_dir, repository) = sample::repository();
        let mut tree = repository.empty_tree();
        for _ in 0..9 {
            let entry = crate::git::object::TreeEntry {
                mode: EntryMode::Tree,
                id: tree.0,
            };
            let names = (0..10).map(|name: u8| name.to_string().into_bytes());
            let edits = names.map(|name| (name, Some(entry.clone())));
            let edits: BTreeMap<_, _> = edits.collect();
            let base = repository.empty_tree();
            tree = crate::git::diff::tree_with(&repository, base, &edits).unwrap();
        }

        let error_of = |result: anyhow::Result<Vec<Leaf>>| format!("{:#}", result.unwrap_err());
        assert_eq!(
            error_of(repository.leaves(tree)),
            format!("tree {tree} has more than 2000000 files and directories")
        );
        assert_eq!(
            error_of(repository.leaves_up_to(tree, TreeLimit::SMALL)),
            format!("tree {tree} has more than 65536 files and directories")
        );
        assert!(repository.files(tree).is_err());
    }
}
