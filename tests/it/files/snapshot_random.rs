//! Snapshots match git's tree after every step of random histories.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use teddy::git::repository::Repository;
use teddy::git::snapshot::limits::{Forced, SnapshotLimits};
use teddy::git::snapshot::take_snapshot;

use super::snapshot_check::check;
use crate::support::{TestRepo, seeds};

#[derive(Debug, Clone)]
enum Step {
    Write(usize, u8),
    /// Replaces a file by a rename, as editors and turns do.
    Replace(usize, u8),
    Toggle(usize),
    Delete(usize),
    Folder(usize),
    Link(usize, usize),
    Move(usize, usize),
    Ignore(usize, u8),
    Attributes(usize, u8),
    Git(u8),
}

/// Some paths are directories of others.
const PATHS: [&str; 12] = [
    "a",
    "b",
    "a/x",
    "a/y.log",
    "b/x",
    "b/sub/z",
    "b/sub/z.log",
    "c.log",
    "c",
    "c/deep/er/file",
    "B",
    "a.txt",
];
const TEXTS: [&str; 6] = ["", "1\n", "2\n", "1\r\n2\r\n", "1\r\n2\n", "\0\r\n"];
/// Directories that can have ignore rules and attributes.
const FOLDERS: [&str; 4] = ["", "a/", "b/", "b/sub/"];
const RULES: [&str; 8] = [
    "",
    "*.log\n",
    "/a\n",
    "sub/\n",
    "*\n!*.txt\n",
    "x\n!/b/x\n",
    "!*.log\n",
    ".gitignore\n",
];
const ATTRIBUTES: [&str; 4] = ["", "* text\n", "*.log -text\n", "x text eol=crlf\n"];
const COMMANDS: [&[&str]; 10] = [
    &["add", "-A"],
    &["add", "-f", "."],
    &["commit", "-q", "--allow-empty", "-m", "x"],
    &["rm", "-r", "-q", "--cached", "--ignore-unmatch", "a"],
    &["rm", "-r", "-q", "-f", "--ignore-unmatch", "b"],
    &["stash", "-q"],
    &["reset", "-q", "--hard"],
    &["reset", "-q"],
    &["gc", "-q", "--prune=now"],
    &["add", "-N", "."],
];

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    prop_oneof![
        6 => (path(), 0..6u8).prop_map(|(at, text)| Step::Write(at, text)),
        3 => (path(), 0..6u8).prop_map(|(at, text)| Step::Replace(at, text)),
        1 => path().prop_map(Step::Toggle),
        2 => path().prop_map(Step::Delete),
        1 => path().prop_map(Step::Folder),
        1 => (path(), path()).prop_map(|(at, to)| Step::Link(at, to)),
        2 => (path(), path()).prop_map(|(from, to)| Step::Move(from, to)),
        2 => (0..FOLDERS.len(), 0..RULES.len() as u8).prop_map(|(at, text)| Step::Ignore(at, text)),
        1 => (0..FOLDERS.len(), 0..ATTRIBUTES.len() as u8).prop_map(|(at, text)| Step::Attributes(at, text)),
        5 => (0..COMMANDS.len() as u8).prop_map(Step::Git),
    ]
}

/// Does nothing if the step is not possible.
fn take(repo: &TestRepo, step: &Step) {
    let at = |n: usize| repo.path().join(PATHS[n]);
    let parent = |path: &PathBuf| {
        path.parent()
            .is_some_and(|folder| std::fs::create_dir_all(folder).is_ok())
    };
    match step {
        Step::Write(n, text) => {
            let path = at(*n);
            if parent(&path) && !path.is_symlink() {
                let _ = std::fs::write(path, TEXTS[usize::from(*text)]);
            }
        }
        Step::Replace(n, text) => {
            let (path, other) = (at(*n), repo.path().join(".git/other"));
            if path.is_file() && !path.is_symlink() {
                std::fs::write(&other, TEXTS[usize::from(*text)]).unwrap();
                std::fs::rename(other, path).unwrap();
            }
        }
        Step::Toggle(n) => {
            if let Ok(metadata) = at(*n).symlink_metadata().as_ref()
                && metadata.is_file()
            {
                let mode = metadata.permissions().mode() ^ 0o111;
                std::fs::set_permissions(at(*n), std::fs::Permissions::from_mode(mode)).unwrap();
            }
        }
        Step::Delete(n) => {
            drop(std::fs::remove_file(at(*n)).or_else(|_| std::fs::remove_dir_all(at(*n))))
        }
        Step::Folder(n) => drop(std::fs::create_dir_all(at(*n))),
        Step::Link(n, to) => drop((parent(&at(*n)), symlink(PATHS[*to], at(*n)))),
        Step::Move(from, to) => drop((parent(&at(*to)), std::fs::rename(at(*from), at(*to)))),
        Step::Ignore(n, text) => drop(std::fs::write(
            repo.path().join(FOLDERS[*n]).join(".gitignore"),
            RULES[usize::from(*text)],
        )),
        Step::Attributes(n, text) => {
            drop(std::fs::write(
                repo.path().join(FOLDERS[*n]).join(".gitattributes"),
                ATTRIBUTES[usize::from(*text)],
            ));
        }
        Step::Git(n) => {
            let mut git = repo.command("git");
            let _ = git
                .current_dir(repo.path())
                .args(COMMANDS[usize::from(*n)])
                .output()
                .unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: seeds(2, 8).count() as u32, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_gives_gits_tree(steps in proptest::collection::vec(step(), 1..25)) {
        let repo = TestRepo::new();
        repo.git(&["config", "core.safecrlf", "false"]);
        for step in &steps {
            take(&repo, step);
            check(&repo);
        }
    }

    /// The forced paths change at every step. A snapshot with an old index must match one without.
    #[test]
    fn any_history_gives_the_tree_of_a_first_look(
        steps in proptest::collection::vec((step(), proptest::collection::vec(0..PATHS.len(), 0..4)), 1..25)
    ) {
        let repo = TestRepo::new();
        repo.git(&["config", "core.safecrlf", "false"]);
        let index = |name: &str| repo.path().join(".git/teddy/index").join(name);
        for (step, forced) in &steps {
            take(&repo, step);
            let forced = forced.iter().map(|at| Forced { path: PATHS[*at].into(), created: None });
            let forced: Vec<Forced> = forced.collect();
            let look = |index: &Path| {
                let repository = Repository::open(&repo.path()).unwrap();
                let looked = take_snapshot(&repository, index, &SnapshotLimits::none(), &forced).unwrap();
                (looked.tree, looked.left_out)
            };
            let again = look(&index("main"));
            let _ = std::fs::remove_file(index("first"));
            prop_assert_eq!(again, look(&index("first")));
        }
    }
}
