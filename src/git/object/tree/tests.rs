//! Lookups in trees of any size and order, and damaged trees.

use std::collections::BTreeMap;

use gix::objs::tree::{Entry, EntryKind};
use gix::objs::{Kind, Tree, Write as _, WriteTo as _};

use super::*;
use crate::git::sample;

/// Builds a tree from names in this order, each with whether it is a directory.
fn tree(names: &[(&str, bool)]) -> StoredTree {
    let id = ObjectId::empty_blob(gix::hash::Kind::Sha1);
    let mut data = Vec::new();
    for (name, is_dir) in names {
        let mode = if *is_dir { "40000" } else { "100644" };
        data.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        data.extend_from_slice(id.as_slice());
    }
    StoredTree::new(id, data)
}

fn check(tree: &StoredTree, name: &str, expected: Option<bool>) {
    for actual in [tree.find(name.as_bytes()), tree.bisect(name.as_bytes())] {
        let actual = actual.unwrap().map(|entry| entry.mode.is_tree());
        assert_eq!(actual, expected, "{name}");
    }
}

#[test]
fn a_name_among_very_many_is_found_in_any_order() {
    let mut names: Vec<String> = (0..4000).map(|n| format!("name-{n:04}")).collect();
    let tree_of = |names: &[String]| {
        let names: Vec<_> = names.iter().map(|name| (name.as_str(), false)).collect();
        tree(&names)
    };
    let sorted = tree_of(&names);
    names.swap(7, 3000);
    let odd = tree_of(&names);
    for (tree, is_sorted) in [(&sorted, true), (&odd, false)] {
        assert!(tree.data.len() > LARGE);
        assert_eq!(tree.known_starts().unwrap().is_sorted, is_sorted);
        for name in &names {
            let entry = tree.find(name.as_bytes()).unwrap();
            assert!(entry.is_some_and(|entry| entry.filename == name), "{name}");
        }
        for absent in ["", "name-", "name-4000", "z"] {
            assert!(tree.find(absent.as_bytes()).unwrap().is_none());
        }
    }

    names.dedup();
    names.push("name-3999".to_owned());
    let twice = tree_of(&names);
    assert!(!twice.known_starts().unwrap().is_sorted);
}

#[test]
fn a_name_is_found_be_it_a_file_or_a_folder() {
    let sorted = tree(&[
        ("a", false),
        ("b-c", false),
        ("b", true),
        ("b0", false),
        ("c", true),
    ]);
    check(&sorted, "a", Some(false));
    check(&sorted, "b", Some(true));
    check(&sorted, "b-c", Some(false));
    check(&sorted, "b0", Some(false));
    check(&sorted, "c", Some(true));
    for absent in ["", "0", "bc", "d"] {
        check(&sorted, absent, None);
    }
    check(&tree(&[]), "a", None);
}

#[test]
fn a_tree_out_of_order_is_read_from_its_start_to_its_end() {
    let unsorted = tree(&[("b", false), ("a", true)]);
    assert!(unsorted.find(b"a").unwrap().is_some());
}

#[test]
fn a_damaged_tree_is_an_error() {
    let full = tree(&[("a", false), ("b", false)]);
    for length in 1..full.data.len() {
        let cut = StoredTree::new(full.id, full.data[..length].to_vec());
        let is_between = length == full.data.len() / 2;
        assert_eq!(cut.find(b"c").is_ok(), is_between, "{length}");
        assert_eq!(cut.bisect(b"c").is_ok(), is_between, "{length}");
    }
    let mut odd = tree(&[("a", false)]);
    odd.data[..6].copy_from_slice(b"nomode");
    assert!(odd.find(b"a").is_err());
}

#[test]
fn large_trees_are_kept_as_long_as_there_is_room() {
    let (_dir, repository) = sample::repository();
    let write = |count: usize, name: &str| {
        let oid = ObjectId::empty_blob(gix::hash::Kind::Sha1);
        let names = (0..count).map(|number| format!("{name}{number:06}"));
        let entry = |name: String| Entry {
            mode: EntryKind::Blob.into(),
            filename: name.into(),
            oid,
        };
        let entries = names.map(entry).collect();
        let mut data = Vec::new();
        Tree { entries }.write_to(&mut data).unwrap();
        repository.gix.objects.write_buf(Kind::Tree, &data).unwrap()
    };

    let small = write(10, "s");
    let large: Vec<ObjectId> = (0..6).map(|n| write(2000, &n.to_string())).collect();
    let huge = write(MOST_BYTES / 30, "h");
    let mut read = BTreeMap::new();
    for id in [small, huge].into_iter().chain(large.iter().copied()) {
        read.insert(id, repository.stored_tree(id).unwrap());
    }
    let is_kept = |id: &ObjectId| {
        let again = repository.stored_tree_if_present(*id).unwrap().unwrap();
        Arc::ptr_eq(&again, &read[id])
    };
    assert!(large[2..].iter().all(is_kept));
    assert!(![small, huge, large[1]].iter().any(is_kept));
    let absent = ObjectId::null(gix::hash::Kind::Sha1);
    assert!(repository.stored_tree_if_present(absent).unwrap().is_none());
    assert!(repository.stored_tree(absent).is_err());
}

#[test]
fn the_pairs_of_trees_that_were_compared_last_are_remembered() {
    let memory = ObjectMemory::default();
    let tree = |number: u8| TreeId(gix::ObjectId::from_bytes_or_panic(&[number; 20]));
    let change = |path: usize| TreeChange {
        path: path.to_string().into_bytes(),
        old: None,
        new: None,
    };
    for number in 0..=8 {
        let changes = [change(usize::from(number))];
        memory.keep_changes([tree(number), tree(100)], &changes);
    }
    let many: Vec<_> = (0..=MOST_CHANGES).map(change).collect();
    memory.keep_changes([tree(9), tree(100)], &many);

    let lookup = |number: u8| memory.changes([tree(number), tree(100)]);
    assert_eq!(lookup(8), Some(vec![change(8)]));
    assert_eq!(lookup(1), Some(vec![change(1)]));
    assert_eq!(lookup(0), None);
    assert_eq!(lookup(9), None);
    assert_eq!(memory.changes([tree(100), tree(8)]), None);
}
