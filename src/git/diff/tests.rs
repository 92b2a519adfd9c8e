//! Compares the result with a comparison of every path.

use proptest::prelude::*;

use super::*;
use crate::git::object::EntryMode;
use crate::git::sample::{self, Files, entry, files, near, write};

fn expected(repository: &Repository, old: &Files, new: &Files) -> Vec<TreeChange> {
    let entry_of = |files: &Files, path: &String| {
        let byte = files.get(path);
        byte.map(|&byte| entry(repository, byte))
    };
    let paths: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let change = |path: &String| TreeChange {
        path: path.clone().into_bytes(),
        old: entry_of(old, path),
        new: entry_of(new, path),
    };
    let changes = paths.into_iter().map(change);
    changes.filter(|change| change.old != change.new).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn a_difference_is_what_a_comparison_of_every_path_finds(
        old in files(),
        new in files(),
        changed in files(),
    ) {
        let (_dir, repository) = sample::repository();
        for (old, new) in [(&old, &new), (&old, &near(&old, &changed)), (&Files::new(), &new)] {
            let trees = [old, new].map(|files| write(&repository, files));
            for [from, to] in [trees, [trees[1], trees[0]]] {
                let (before, after) = if from == trees[0] { (old, new) } else { (new, old) };
                let actual = changes(&repository, from, to).unwrap();
                prop_assert_eq!(&actual, &expected(&repository, before, after));
                // The second call is answered from the cache.
                prop_assert_eq!(&changes(&repository, from, to).unwrap(), &actual);
            }
        }
    }
}

#[test]
fn trees_that_differ_in_too_much_are_not_compared_to_the_end() {
    let (_dir, repository) = sample::repository();
    let empty = repository.empty_tree();
    let ten = |mode, id: gix::ObjectId, length: usize| {
        let names = (0..10).map(|name| format!("{name:0length$}").into_bytes());
        let edits = names.map(|name| (name, Some(TreeEntry { mode, id })));
        tree_with(&repository, empty, &edits.collect()).unwrap()
    };
    let blob = repository.write_blob(b"x").unwrap();

    // Many files, then few files with long paths.
    for (levels, length) in [(7, 1), (6, 250)] {
        let files = ten(EntryMode::Blob, blob.into(), length);
        let tree = (1..levels).fold(files, |tree, _| ten(EntryMode::Tree, tree.into(), length));
        for (old, new) in [(empty, tree), (tree, empty)] {
            let error = changes(&repository, old, new).unwrap_err();
            assert!(error.is::<TooDifferent>(), "{error:#}");
            assert_eq!(
                format!("{error:#}"),
                "comparing two trees: they differ in more than 1000000 files and directories, or 128 \
                 MiB of paths"
            );
        }
    }
    let files = ten(EntryMode::Blob, blob.into(), 1);
    assert_eq!(count_changes(&repository, empty, files, 10).unwrap(), 10);
    let error = count_changes(&repository, empty, files, 9).unwrap_err();
    assert!(error.is::<TooDifferent>(), "{error:#}");
}
