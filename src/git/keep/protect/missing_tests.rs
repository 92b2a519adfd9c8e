//! Compares the result with a comparison of every path.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::git::sample::{self, blob, files, near, write};

/// Path -> whether it is a directory, and its object.
type Flat = BTreeMap<String, (bool, ObjectId)>;

fn flat(repository: &Repository, tree: TreeId) -> Flat {
    let mut objects = BTreeMap::from([(String::new(), (true, tree.0))]);
    let mut dirs = vec![(String::new(), tree.0)];
    while let Some((above, id)) = dirs.pop() {
        let tree = repository.gix.find_tree(id).unwrap();
        for entry in tree.decode().unwrap().entries {
            let path = format!("{above}/{}", entry.filename);
            let is_dir = entry.mode.is_tree();
            objects.insert(path.clone(), (is_dir, entry.oid.to_owned()));
            if is_dir {
                dirs.push((path, entry.oid.to_owned()));
            }
        }
    }
    objects
}

fn expected(
    repository: &Repository,
    tree: TreeId,
    complete: &[TreeId],
    new: &HashSet<ObjectId>,
) -> BTreeSet<ObjectId> {
    let complete: Vec<_> = complete
        .iter()
        .map(|&tree| flat(repository, tree))
        .collect();
    let is_in = |path: &str, entry: &(bool, ObjectId), most: usize| {
        let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
        let has_dir = |other: &&Flat| other.get(dir).is_some_and(|(is_dir, _)| *is_dir);
        let mut searched = complete.iter().filter(has_dir).take(most);
        searched.any(|other| other.get(path) == Some(entry))
    };

    let all = flat(repository, tree);
    let is_new = |(path, entry): &(&String, &(bool, ObjectId))| {
        let mut above = path.match_indices('/').map(|(end, _)| &path[..end]);
        let is_new_file = !entry.0 && new.contains(&entry.1);
        let most = if is_new_file { 1 } else { usize::MAX };
        !is_in(path, entry, most) && !above.any(|above| is_in(above, &all[above], usize::MAX))
    };
    let new_objects = all.iter().filter(is_new);
    new_objects.map(|(_, entry)| entry.1).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn what_is_beyond_is_what_a_comparison_of_every_path_finds(
        tree in files(),
        whole in prop::collection::vec(files(), 0..3),
        changed in files(),
        new in prop::collection::btree_set(0..4_u8, 0..3),
    ) {
        let (_dir, repository) = sample::repository();
        let id = write(&repository, &tree);
        let mut complete = vec![write(&repository, &near(&tree, &changed))];
        complete.extend(whole.iter().map(|files| write(&repository, files)));
        let new = new.into_iter().map(|byte| blob(&repository, byte).0).collect();

        for start in 0..complete.len() {
            let complete = &complete[start..];
            let actual = find_new_objects(&repository, id, complete, &new).unwrap();
            let actual: BTreeSet<ObjectId> = actual.present.into_iter().collect();
            prop_assert_eq!(actual, expected(&repository, id, complete, &new));
        }
    }
}
