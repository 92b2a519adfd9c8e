//! Compares the result with a comparison of every path.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::git::sample::{blob, files, near, write};

/// Path -> whether it is a directory, and its object.
type Flat = BTreeMap<String, (bool, ObjectId)>;

fn flat(repository: &Repository, tree: TreeId) -> Flat {
    let mut found = BTreeMap::from([(String::new(), (true, tree.0))]);
    let mut folders = vec![(String::new(), tree.0)];
    while let Some((above, id)) = folders.pop() {
        let tree = repository.gix.find_tree(id).unwrap();
        for entry in tree.decode().unwrap().entries {
            let path = format!("{above}/{}", entry.filename);
            let is_folder = entry.mode.is_tree();
            found.insert(path.clone(), (is_folder, entry.oid.to_owned()));
            if is_folder {
                folders.push((path, entry.oid.to_owned()));
            }
        }
    }
    found
}

fn expected(
    repository: &Repository,
    tree: TreeId,
    whole: &[TreeId],
    new: &HashSet<ObjectId>,
) -> BTreeSet<ObjectId> {
    let whole: Vec<_> = whole.iter().map(|&tree| flat(repository, tree)).collect();
    let is_in = |path: &str, entry: &(bool, ObjectId), most: usize| {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let has_folder = |whole: &&Flat| whole.get(folder).is_some_and(|(is_folder, _)| *is_folder);
        let mut asked = whole.iter().filter(has_folder).take(most);
        asked.any(|whole| whole.get(path) == Some(entry))
    };

    let all = flat(repository, tree);
    let is_beyond = |(path, entry): &(&String, &(bool, ObjectId))| {
        let mut above = path.match_indices('/').map(|(end, _)| &path[..end]);
        let is_new_file = !entry.0 && new.contains(&entry.1);
        let most = if is_new_file { 1 } else { usize::MAX };
        !is_in(path, entry, most) && !above.any(|above| is_in(above, &all[above], usize::MAX))
    };
    let beyond = all.iter().filter(is_beyond);
    beyond.map(|(_, entry)| entry.1).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_beyond_is_what_a_comparison_of_every_path_finds(
        tree in files(),
        whole in prop::collection::vec(files(), 0..3),
        changed in files(),
        new in prop::collection::btree_set(0..4_u8, 0..3),
    ) {
        let folder = tempfile::tempdir().unwrap();
        gix::init(folder.path()).unwrap();
        let repository = Repository::open(folder.path()).unwrap();
        let id = write(&repository, &tree);
        let mut known = vec![write(&repository, &near(&tree, &changed))];
        known.extend(whole.iter().map(|files| write(&repository, files)));
        let new = new.into_iter().map(|content| blob(&repository, content).0).collect();

        for start in 0..known.len() {
            let known = &known[start..];
            let found = beyond(&repository, id, known, &new).unwrap();
            let found: BTreeSet<ObjectId> = found.there.into_iter().collect();
            prop_assert_eq!(found, expected(&repository, id, known, &new));
        }
    }
}
