//! What a tree holds beyond others that are whole: the objects that have to be there before a ref
//! moves to it, because nothing else may reach them.

use gix::ObjectId;
use gix::objs::tree::EntryRef;

use crate::git::During;
use crate::git::object::TreeId;
use crate::git::repository::Repository;

/// What a tree holds beyond others.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Trees that can be read, and what else they name.
    pub there: Vec<ObjectId>,
    /// Trees that are gone; nobody knows what they name.
    pub gone: Vec<ObjectId>,
}

/// Returns the objects of a tree that others, which are whole, do not have in its place.
///
/// Commits of embedded repositories are not ours to have.
///
/// # Errors
/// Where a tree that is there cannot be read.
pub fn beyond(repository: &Repository, tree: TreeId, whole: &[TreeId]) -> anyhow::Result<Beyond> {
    let mut beyond = Beyond::default();
    let mut pairs = vec![(tree.0, whole.iter().map(|tree| tree.0).collect::<Vec<_>>())];
    while let Some((tree, whole)) = pairs.pop() {
        if whole.contains(&tree) {
            continue;
        }

        let Some(entries) = tree_of(repository, tree)? else {
            beyond.gone.push(tree);
            continue;
        };

        beyond.there.push(tree);
        // Of one that cannot be read, as in a clone without all trees, nothing is taken for
        // there.
        let known: Vec<_> = whole
            .into_iter()
            .filter_map(|whole| tree_of(repository, whole).ok().flatten())
            .collect();
        let mut known: Vec<_> = known.iter().map(InStep::new).collect();

        for entry in entries.iter() {
            let entry = entry.during("reading a tree")?.inner;
            let before: Vec<_> = known
                .iter_mut()
                .filter_map(|known| known.beside(&entry))
                .collect();
            if before.contains(&entry.oid) || entry.mode.is_commit() {
                continue;
            }

            let oid = entry.oid.to_owned();
            if entry.mode.is_tree() {
                let before = before.into_iter().map(ToOwned::to_owned).collect();
                pairs.push((oid, before));
            } else {
                beyond.there.push(oid);
            }
        }
    }

    Ok(beyond)
}

/// The entries of a tree, gone through in step with those of another: both are in git's order, so
/// that a folder of any size is read once from its start to its end.
struct InStep<'t> {
    /// What is still to come, as far as it can be read.
    rest: std::iter::Peekable<Box<dyn Iterator<Item = EntryRef<'t>> + 't>>,
}

impl<'t> InStep<'t> {
    /// Starts at the first entry.
    fn new(tree: &'t gix::Tree<'_>) -> InStep<'t> {
        let entries = tree.iter().map_while(|entry| Some(entry.ok()?.inner));
        let entries: Box<dyn Iterator<Item = EntryRef<'t>> + 't> = Box::new(entries);
        InStep {
            rest: entries.peekable(),
        }
    }

    /// Returns what is in the place of the other tree's next entry: of its name, and a folder if it
    /// is one.
    fn beside(&mut self, entry: &EntryRef<'_>) -> Option<&'t gix::oid> {
        while self.rest.next_if(|known| known < entry).is_some() {}

        let found = self.rest.next_if(|known| known.cmp(entry).is_eq());
        found.map(|known| known.oid)
    }
}

/// Reads a tree; nothing where it is gone.
fn tree_of(repository: &Repository, tree: ObjectId) -> anyhow::Result<Option<gix::Tree<'_>>> {
    let found = repository
        .gix
        .try_find_object(tree)
        .during("reading a tree")?;
    let tree = found.map(|found| found.try_into_tree().during("reading a tree"));
    tree.transpose()
}
