//! Tree merges: the same result as git where git merges cleanly, and a conflict wherever git finds
//! one.

use std::collections::BTreeMap;

use crate::support::{TestRepo, seeds};
use teddy::git::merge;
use teddy::git::merge::Merged;
use teddy::git::object::batch;
use teddy::git::object::{EntryMode, TreeEntry, TreeId};
use teddy::git::repository::Repository;

/// Mode and content by path.
type Files = BTreeMap<String, (EntryMode, String)>;

fn write(repository: &Repository, files: &Files) -> TreeId {
    let batch = batch::begin_batch(repository);
    let edits = files.iter().map(|(path, (mode, content))| {
        let id = batch.blob(content.as_bytes()).unwrap().into();
        (
            path.clone().into_bytes(),
            Some(TreeEntry { mode: *mode, id }),
        )
    });
    let tree = batch
        .tree_with(repository.empty_tree(), &edits.collect())
        .unwrap();
    batch.finish().unwrap();
    tree
}

fn files(pairs: &[(&str, &str)]) -> Files {
    pairs
        .iter()
        .map(|(path, content)| ((*path).to_owned(), (EntryMode::Blob, (*content).to_owned())))
        .collect()
}

/// Merges with git. `None` on a conflict.
fn git_merge(repo: &TestRepo, [base, ours, theirs]: [TreeId; 3]) -> Option<TreeId> {
    let mut command = repo.command("git");
    command.current_dir(repo.path()).args([
        "merge-tree",
        "--write-tree",
        "--no-messages",
        "-Xfind-renames=100%",
    ]);
    let output = command
        .args([
            format!("--merge-base={base}"),
            ours.to_string(),
            theirs.to_string(),
        ])
        .output()
        .unwrap();
    let code = output.status.code().unwrap();
    assert!(code < 2, "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout)
        .lines()
        .next()
        .unwrap()
        .parse()
        .unwrap();
    (code == 0).then_some(tree)
}

/// Merges base, ours and theirs, and compares the conflicting paths.
fn check(versions: [&[(&str, &str)]; 3], overlap: &[&str]) -> (TestRepo, Merged) {
    let repo = TestRepo::new();
    let repository = repo.open();
    let [base, ours, theirs] = versions.map(|pairs| write(&repository, &files(pairs)));
    let merged = merge::merge_trees(&repository, base, ours, theirs).unwrap();
    let paths = merged.paths.iter();
    let paths: Vec<_> = paths.map(|path| String::from_utf8_lossy(path)).collect();
    assert_eq!(paths, overlap);
    assert_eq!(
        git_merge(&repo, [base, ours, theirs]).is_some(),
        overlap.is_empty(),
        "git sees it differently"
    );
    (repo, merged)
}

#[test]
fn changes_of_different_lines_fit_together() {
    let (repo, merged) = check(
        [
            &[("a", "1\n2\n3\n4\n5\n")],
            &[("a", "1!\n2\n3\n4\n5\n")],
            &[("a", "1\n2\n3\n4\n5!\n"), ("b", "new\n")],
        ],
        &[],
    );
    let read =
        |path| String::from_utf8(repo.open().file(merged.ours, path).unwrap().unwrap()).unwrap();
    assert_eq!(
        (read("a"), read("b")),
        ("1!\n2\n3\n4\n5!\n".to_owned(), "new\n".to_owned())
    );
}

#[test]
fn every_way_out_of_an_overlap_is_a_tree() {
    let (repo, merged) = check(
        [
            &[("a", "1\n")],
            &[("a", "mine\n"), ("m", "mine\n")],
            &[("a", "turn\n"), ("t", "turn\n")],
        ],
        &["a"],
    );
    let Merged {
        ours,
        theirs,
        markers,
        ..
    } = merged;
    let repository = repo.open();
    let all = |tree| {
        ["a", "m", "t"]
            .map(|path| String::from_utf8(repository.file(tree, path).unwrap().unwrap()).unwrap())
    };
    assert_eq!(all(ours), ["mine\n", "mine\n", "turn\n"]);
    assert_eq!(all(theirs), ["turn\n", "mine\n", "turn\n"]);
    assert_eq!(
        all(markers),
        [
            "<<<<<<< yours\nmine\n=======\nturn\n>>>>>>> turn\n",
            "mine\n",
            "turn\n"
        ]
    );
}

#[test]
fn a_deletion_and_an_edit_overlap() {
    check([&[("a", "1\n")], &[], &[("a", "2\n")]], &["a"]);
    check([&[("a", "1\n")], &[("a", "2\n")], &[]], &["a"]);
    check([&[("a", "1\n")], &[], &[]], &[]);
}

#[test]
fn two_new_files_overlap_unless_they_are_the_same() {
    check([&[], &[("a", "1\n")], &[("a", "2\n")]], &["a"]);
    check([&[], &[("a", "1\n")], &[("a", "1\n")]], &[]);
}

#[test]
fn a_file_and_a_folder_of_one_name_overlap() {
    let (repo, merged) = check(
        [
            &[],
            &[("a", "mine\n")],
            &[("a/b", "turn\n"), ("c", "turn\n")],
        ],
        &["a", "a/b"],
    );
    let Merged {
        ours,
        theirs,
        markers,
        ..
    } = merged;
    let repository = repo.open();
    for (tree, mine, turn) in [
        (ours, true, false),
        (theirs, false, true),
        (markers, true, false),
    ] {
        assert_eq!(repository.file(tree, "a").unwrap().is_some(), mine);
        assert_eq!(repository.file(tree, "a/b").unwrap().is_some(), turn);
        assert!(repository.file(tree, "c").unwrap().is_some());
    }
    check(
        [&[("a", "1\n")], &[("a/b", "mine\n")], &[("a", "2\n")]],
        &["a", "a/b"],
    );
    check(
        [
            &[("a/b", "1\n")],
            &[("a", "mine\n")],
            &[("a/b", "1\n"), ("a/c", "2\n")],
        ],
        &["a", "a/c"],
    );
    check(
        [
            &[("a/b", "1\n")],
            &[("a", "mine\n")],
            &[("a/b", "1\n"), ("c", "2\n")],
        ],
        &[],
    );
}

/// The same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn content(&mut self) -> String {
        (0..6 + self.below(6))
            .map(|line| format!("line {line} {}\n", self.below(2)))
            .collect()
    }

    /// Some of these paths are directories of others.
    fn path(&mut self) -> String {
        [
            "a", "b", "a/x", "a/y", "b/x/z", "c/d/e", "c/d/f", "c/d", "g",
        ][self.below(9) as usize]
            .to_owned()
    }

    /// A file is dropped if a later path needs its name as a directory.
    fn tree(&mut self) -> Files {
        let mut files = Files::new();
        for _ in 0..5 {
            let (path, content) = (self.path(), self.content());
            put(&mut files, path, (EntryMode::Blob, content));
        }
        files
    }

    fn edit(&mut self, base: &Files) -> Files {
        let mut files = base.clone();
        for _ in 0..self.below(5) {
            let path = self.path();
            let Some((mode, content)) = files.get(&path).cloned() else {
                let content = self.content();
                put(&mut files, path, (EntryMode::Blob, content));
                continue;
            };
            match self.below(6) {
                0 => drop(files.remove(&path)),
                1 => drop(files.insert(
                    path,
                    (
                        if mode == EntryMode::Blob {
                            EntryMode::BlobExecutable
                        } else {
                            EntryMode::Blob
                        },
                        content,
                    ),
                )),
                2 => drop(files.insert(path, (EntryMode::Link, "target".to_owned()))),
                _ => drop(files.insert(path, (mode, self.lines(&content)))),
            }
        }
        files
    }

    fn lines(&mut self, content: &str) -> String {
        let mut lines: Vec<_> = content.lines().map(str::to_owned).collect();
        let at = self.below(lines.len() as u64 + 1) as usize;
        match self.below(3) {
            0 => lines.insert(at, format!("new {}", self.below(3))),
            _ if at == lines.len() => {}
            1 => drop(lines.remove(at)),
            _ => lines[at] = format!("changed {}", self.below(3)),
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

/// Adds a file, and removes those that are in its way.
fn put(files: &mut Files, path: String, file: (EntryMode, String)) {
    files.retain(|other, _| {
        !other.starts_with(&format!("{path}/")) && !path.starts_with(&format!("{other}/"))
    });
    files.insert(path, file);
}

/// Whether a file that is gone has its content in a new one.
fn renames(base: &Files, side: &Files) -> bool {
    let mut gone = base.iter().filter(|(path, _)| !side.contains_key(*path));
    gone.any(|(_, (_, content))| {
        let mut new = side.iter().filter(|(path, _)| !base.contains_key(*path));
        new.any(|(_, (_, other))| other == content)
    })
}

#[test]
fn random_trees_are_merged_as_git_merges_them() {
    let mut repo = TestRepo::new();
    let mut repository = repo.open();
    let mut clean = 0;
    let cases = seeds(60, 300).count();
    for (case, seed) in seeds(60, 300).enumerate() {
        // Each merge writes packs, and only a turn would combine them.
        if case > 0 && case % 20 == 0 {
            repo = TestRepo::new();
            repository = repo.open();
        }
        let mut random = Random(seed);
        let base = random.tree();
        let (ours, theirs) = (random.edit(&base), random.edit(&base));
        // git follows an exact rename, whatever it is told.
        if renames(&base, &ours) || renames(&base, &theirs) {
            continue;
        }
        let versions = [&base, &ours, &theirs].map(|files| write(&repository, files));
        let expected = git_merge(&repo, versions);
        let merged =
            merge::merge_trees(&repository, versions[0], versions[1], versions[2]).unwrap();
        let found = merged.is_clean().then_some(merged.ours);
        assert_eq!(
            found, expected,
            "seed {seed}: {base:#?}\n{ours:#?}\n{theirs:#?}"
        );
        clean += usize::from(found.is_some());
    }
    assert!(
        (cases / 5..cases * 4 / 5).contains(&clean),
        "{clean} of {cases} are clean: the cases are one-sided"
    );
}
