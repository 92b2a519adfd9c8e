//! Projects to land from, and what a landing must leave alone.

use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;

/// A project with a session that has no turn.
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

/// A project after three turns: a.txt is changed, b.txt is made, c.txt is deleted.
pub fn three_turns() -> TestRepo {
    let repo = project();
    repo.run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    repo.run_plan(&plan("Make b", &[create("dir/b.txt", "b\n")]));
    repo.run_plan(&plan("Delete c", &[execute("rm c.txt")]));
    repo
}

/// Writes a hook of the user's.
pub fn hook(repo: &TestRepo, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = repo.path().join(".git/hooks").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns what git says is the user's own.
pub fn status(repo: &TestRepo) -> String {
    // The index that is compared must not be written by looking at it.
    let args = ["--no-optional-locks", "status", "--porcelain"];
    repo.git(&[&args[..], &["--untracked-files=all"]].concat())
}

/// Returns the files that HEAD changed.
pub fn changed(repo: &TestRepo) -> String {
    repo.git(&["show", "--format=", "--name-status", "HEAD"])
}

/// Checks that nothing of a landing is left: no worktree, no lock, no file of ours.
#[track_caller]
pub fn check_clean(repo: &TestRepo) {
    let worktrees = repo.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}");
    for entry in std::fs::read_dir(repo.path().join(".git")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            !name.contains("teddy-") && !name.ends_with(".lock"),
            "{name}"
        );
    }
}

/// Returns refs, index and files: all that a landing that does not happen must leave.
pub fn everything(repo: &TestRepo) -> (crate::support::Users, String, String, String) {
    let sessions = repo.git(&["for-each-ref", "refs/teddy/sessions"]);
    (repo.users(), sessions, repo.tree(), status(repo))
}
