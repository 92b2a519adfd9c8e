//! Projects for the tests of `land`, and checks of what a landing must not change.

use teddy::workflow::land::{LandOptions, MessageSource};

use crate::plans::{create, edit, plan};
use crate::support::TestRepo;

/// A session without turns.
pub fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
        .file("c.txt", "c\n")
        .file(".gitignore", "*.log\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo
}

/// The turns change `a.txt`, create `b.txt` and record that `c.txt` is deleted.
pub fn three_turns() -> TestRepo {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    repo.workflow()
        .run_plan(&plan("Make b", &[create("dir/b.txt", "b\n")]));
    repo.remove("c.txt");
    repo.workflow().record("Delete c").done();
    repo
}

pub fn hook(repo: &TestRepo, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = repo.path().join(".git/hooks").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns `git status` of the user's worktree.
pub fn status(repo: &TestRepo) -> String {
    // `git status` must not refresh the index, which the tests compare.
    let args = ["--no-optional-locks", "status", "--porcelain"];
    repo.git(&[&args[..], &["--untracked-files=all"]].concat())
}

pub fn changed(repo: &TestRepo) -> String {
    repo.git(&["show", "--format=", "--name-status", "HEAD"])
}

/// Checks that a landing left no worktree, lock or temporary file.
#[track_caller]
pub fn check_clean(repo: &TestRepo) {
    let worktrees = repo.git(&["worktree", "list", "--porcelain"]);
    let others = worktrees.split("\n\n");
    let others = others.filter(|one| !one.contains("locked teddy session "));
    assert_eq!(others.count(), 1, "{worktrees}");
    for entry in std::fs::read_dir(repo.path().join(".git")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            !name.contains("teddy-") && !name.ends_with(".lock"),
            "{name}"
        );
    }
}

/// Captures refs, index and files, none of which a failed landing can change.
pub fn everything(repo: &TestRepo) -> (crate::support::Users, String, String, String) {
    let sessions = repo.git(&["for-each-ref", "refs/teddy/sessions"]);
    (repo.users(), sessions, repo.tree(), status(repo))
}

/// Returns options of a landing of all turns with this message.
pub fn land_as(message: &str) -> LandOptions {
    LandOptions {
        message: MessageSource::Given(message.to_owned()),
        ..LandOptions::default()
    }
}
