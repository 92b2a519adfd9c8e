//! Repositories whose configuration another tool broke: what is said is true, and the command that is
//! named mends it.

use crate::plans::{create, execute, plan};
use crate::support::{Output, TestRepo};
use teddy::workflow::land::LandOptions;

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo
}

/// Returns the checks of `doctor` in a group that are not fine: state, reason and remedy.
fn doctor(repo: &TestRepo, group: &str) -> Vec<[String; 3]> {
    let out = repo.teddy(&["doctor", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap().iter();
    let text = |check: &serde_json::Value, key: &str| {
        let text = check[key].as_str().unwrap_or_default();
        text.to_owned()
    };
    checks
        .filter(|check| check["group"] == group && check["state"] != "ok" && check["name"] != "log")
        .map(|check| ["state", "reason", "remedy"].map(|key| text(check, key)))
        .collect()
}

/// Runs a command that was named.
#[track_caller]
fn run(repo: &TestRepo, command: &str) {
    let mut shell = repo.command("sh");
    shell.current_dir(repo.path()).args(["-c", command]);
    Output::of(&mut shell).check(0, &[]);
}

/// Checks that a command is refused with these words, that `doctor` says the same, and that the
/// command in the hint mends it.
#[track_caller]
fn check_refused(repo: &TestRepo, group: &str, words: &str) {
    let out = repo.teddy(&["status"]);
    out.check(1, &[words, "hint: `git config"]);
    let command = out.stderr.split("hint: `").nth(1).unwrap();
    let command = command.split('`').next().unwrap();
    let found = doctor(repo, group);
    assert!(
        found.iter().any(|[state, reason, remedy]| {
            state == "problem" && reason.contains(words) && remedy.contains(command)
        }),
        "{found:?}"
    );
    run(repo, command);
    repo.done(&["status"]);
    assert_eq!(doctor(repo, group), Vec::<[String; 3]>::new());
}

#[test]
fn files_beside_core_bare_are_named() {
    let repo = project();
    repo.git(&["config", "core.bare", "true"]);
    check_refused(&repo, "git", "has files, but `core.bare` in ");

    repo.git(&["config", "extensions.worktreeConfig", "true"]);
    repo.git(&["config", "--worktree", "core.bare", "true"]);
    check_refused(
        &repo,
        "git",
        "config.worktree` says that it is a bare repository",
    );
}

#[test]
fn core_bare_that_the_worktree_overrides_is_none() {
    let repo = project();
    repo.git(&["config", "extensions.worktreeConfig", "true"]);
    repo.git(&["config", "--worktree", "core.bare", "false"]);
    repo.git(&["config", "core.bare", "true"]);
    repo.git(&["status"]);
    repo.run_plan(&plan(
        "Make it",
        &[
            create("b.txt", "b\n"),
            execute("git status && ls > seen.txt"),
        ],
    ));
    assert_eq!(repo.read("seen.txt"), "a.txt\nb.txt\nseen.txt\n");
    repo.done(&["land", "--no-edit"]);
    repo.workflow().undo(1).done();
}

#[test]
fn a_bare_repository_without_files_stays_one() {
    let repo = project();
    let bare = repo.beside("container/.git");
    let worktree = repo.beside("container/main");
    let [bare, worktree] = [&bare, &worktree].map(|path| path.to_str().unwrap());
    repo.git(&["clone", "-q", "--bare", ".", bare]);
    repo.git(&["-C", bare, "worktree", "add", "-q", worktree, "-b", "x"]);
    let status = |dir: &str| repo.teddy_in(dir.as_ref(), &["status"]);
    status(worktree).check(0, &[]);
    status(bare).check(1, &["is a bare repository: it has no files"]);

    // git refuses to work there then, too.
    repo.git(&["-C", bare, "config", "extensions.worktreeConfig", "true"]);
    let out = status(worktree);
    out.check(1, &["holds for the linked worktree", "hint: `git config"]);
    let command = out.stderr.split("hint: `").nth(1).unwrap();
    run(&repo, command.split('`').next().unwrap());
    status(worktree).check(0, &[]);
    status(bare).check(1, &["is a bare repository: it has no files"]);
}

#[test]
fn a_worktree_that_does_not_exist_is_named_with_its_file() {
    let repo = project();
    repo.git(&["config", "extensions.worktreeConfig", "true"]);
    repo.git(&["config", "--worktree", "core.worktree", "/nonexistent"]);
    check_refused(&repo, "settings", "`/nonexistent` (`core.worktree` in ");
}

#[test]
fn missing_hooks_are_reported() {
    let repo = project();
    repo.git(&["config", "core.hooksPath", "/nonexistent/hooks"]);
    repo.workflow()
        .run_plan(&plan("Make it", &[create("b.txt", "b\n")]));
    insta::assert_snapshot!(repo.workflow().land(&LandOptions::default()).done(), @"
    no hook runs: `core.hooksPath` is `/nonexistent/hooks`, which does not exist; `git config --file [dir]/repo/.git/config --unset-all core.hooksPath` enables those of the repository
    landed [1]: Make it
      commit b.txt
    ");
    let found = doctor(&repo, "git");
    let [[state, reason, remedy]] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(state, "warning");
    assert!(
        reason.contains("`/nonexistent/hooks`, which does not exist"),
        "{reason}"
    );
    run(&repo, remedy);
    assert_eq!(doctor(&repo, "git"), Vec::<[String; 3]>::new());
}

#[test]
fn a_missing_locked_worktree_is_reported() {
    let repo = project();
    let linked = repo.beside("linked");
    let path = linked.to_str().unwrap();
    repo.git(&["worktree", "add", "-q", path, "-b", "x"]);
    repo.git(&["worktree", "lock", path]);
    assert_eq!(doctor(&repo, "worktrees"), Vec::<[String; 3]>::new());
    std::fs::remove_dir_all(&linked).unwrap();
    let found = doctor(&repo, "worktrees");
    let [[state, reason, remedy]] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(state, "note");
    assert!(
        reason.contains("`x` counts as checked out there"),
        "{reason}"
    );
    run(&repo, remedy);
    assert_eq!(doctor(&repo, "worktrees"), Vec::<[String; 3]>::new());
    repo.git(&["checkout", "-q", "x"]);
}
