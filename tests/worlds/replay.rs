//! Replays a generated history: each step is a plan, each tree equals git's, and all of them can be
//! restored. `tests/replay/` does the same with published packages.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;

/// One change, as file operations and as actions of a plan.
struct Step {
    by_hand: fn(PathBuf),
    actions: fn() -> Vec<String>,
}

fn put(path: PathBuf, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// A CREATE with one more field.
fn create_with(field: &str, path: &str, content: &str) -> String {
    create(path, content).replace(
        "- **Description:**",
        &format!("{field}\n- **Description:**"),
    )
}

/// All kinds of changes that a new version of a program can contain.
const STEPS: [Step; 11] = [
    Step {
        by_hand: |top| put(top.join("src/new.rs"), b"fn new() {}\n"),
        actions: || vec![create("src/new.rs", "fn new() {}\n")],
    },
    Step {
        by_hand: |top| put(top.join("src/end"), b"no newline"),
        actions: || {
            vec![create_with(
                "- **Final Newline:** no",
                "src/end",
                "no newline\n",
            )]
        },
    },
    Step {
        by_hand: |top| put(top.join("dos.txt"), b"one\r\ntwo\r\n"),
        actions: || {
            vec![create_with(
                "- **Line Endings:** CRLF",
                "dos.txt",
                "one\ntwo\n",
            )]
        },
    },
    Step {
        by_hand: |top| put(top.join("dos.txt"), b"one\r\n2\r\nthree\r\n"),
        actions: || vec![edit("dos.txt", "two", "2\nthree")],
    },
    Step {
        by_hand: |top| put(top.join("a.txt"), b"1\n2 and more\n3\n"),
        actions: || vec![edit("a.txt", "2", "2 and more")],
    },
    Step {
        by_hand: |top| {
            std::fs::rename(top.join("a.txt"), top.join("src/b.txt")).unwrap();
            put(top.join("src/b.txt"), b"1\n2 and more\n4\n");
        },
        actions: || vec![edit("a.txt", "3", "4"), execute("mv a.txt src/b.txt")],
    },
    Step {
        by_hand: |top| {
            std::fs::set_permissions(top.join("src/new.rs"), PermissionsExt::from_mode(0o755))
                .unwrap()
        },
        actions: || vec![execute("chmod +x src/new.rs")],
    },
    Step {
        by_hand: |top| symlink("../dos.txt", top.join("src/link")).unwrap(),
        actions: || vec![execute("ln -s ../dos.txt src/link")],
    },
    Step {
        by_hand: |top| put(top.join("data/bytes"), &[0, 255, 10, 13, 7]),
        actions: || {
            vec![execute(
                "mkdir data && printf '\\000\\377\\012\\015\\007' > data/bytes",
            )]
        },
    },
    Step {
        by_hand: |top| {
            std::fs::remove_file(top.join("src/end")).unwrap();
            put(top.join("src/end/inside"), b"a folder now\n");
        },
        actions: || {
            vec![
                execute("rm src/end"),
                create("src/end/inside", "a folder now\n"),
            ]
        },
    },
    Step {
        by_hand: |top| {
            std::fs::remove_dir_all(top.join("data")).unwrap();
            std::fs::remove_file(top.join("src/link")).unwrap();
            put(top.join("src/b.txt"), b"");
        },
        actions: || {
            vec![
                execute("rm -r data src/link"),
                edit("src/b.txt", "1\n2 and more\n4", "").replace("\n\n````\n", "\n````\n"),
            ]
        },
    },
];

fn start() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "1\n2\n3\n")
        .file("README.md", "# It\n");
    repo.commit("start");
    repo
}

#[test]
fn a_history_replayed_as_plans_has_gits_own_trees() {
    let (mirror, repo) = (start(), start());
    repo.done(&["new", "replayed"]);
    repo.done(&["context", "add", "**/*"]);
    let mut trees = vec![mirror.tree()];
    for (number, step) in STEPS.iter().enumerate() {
        (step.by_hand)(mirror.path());
        trees.push(mirror.tree());
        repo.run_plan(&plan(&format!("Step {number}"), &(step.actions)()));
        let turn = repo.git(&["rev-parse", "teddy/sessions/replayed^2^{tree}"]);
        assert_eq!(
            (turn, repo.tree()),
            (trees[number + 1].clone(), trees[number + 1].clone()),
            "step {number}"
        );
    }
    for number in [1, 7, 3, 10, 4, 11] {
        for exact in [&["restore"][..], &["restore", "--exact", "-y"]] {
            repo.done(&[exact, &[&number.to_string()]].concat());
            assert_eq!(repo.tree(), trees[number], "{exact:?} {number}");
        }
    }
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn a_clone_can_fetch_the_sessions() {
    let repo = start();
    repo.done(&["new", "shared"]);
    repo.run_plan(&plan("Make it", &[create("new", "1\n")]));
    let clone = repo.beside("clone");
    repo.git(&[
        "clone",
        "-q",
        repo.path().to_str().unwrap(),
        clone.to_str().unwrap(),
    ]);
    repo.git_in(
        &clone,
        &["fetch", "-q", "origin", "refs/teddy/*:refs/teddy/*"],
    );
    assert_eq!(
        repo.git_in(&clone, &["show", "teddy/sessions/shared^2:new"]),
        "1"
    );
    assert_eq!(
        repo.git_in(&clone, &["rev-parse", "teddy/sessions/shared"]),
        repo.git(&["rev-parse", "teddy/sessions/shared"])
    );
    repo.git_in(&clone, &["fsck", "--strict"]);
}
