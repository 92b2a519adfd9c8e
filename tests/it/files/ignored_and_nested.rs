//! Changes by turns in places that snapshots skip: ignored directories and nested repositories.

use crate::plans::{create, execute, plan};
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file(".gitignore", "dist/\n")
        .file("a.txt", "a\n")
        .file("b.txt", "b\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo
}

fn run(repo: &TestRepo, script: &str) {
    repo.run_plan(&plan("Run", &[execute(script)]));
}

/// Returns the files that `log` lists for a turn.
fn changed(repo: &TestRepo, turn: usize) -> String {
    let rows = repo.json(&["log"], 0);
    let of = |row: &&serde_json::Value| row["number"] == turn;
    rows.as_array().unwrap().iter().find(of).unwrap()["files"].to_string()
}

/// Returns the paths in the files of the newest turn.
fn paths(repo: &TestRepo) -> String {
    let after = repo.json(&["log"], 0)[0]["after"]
        .as_str()
        .unwrap()
        .to_owned();
    repo.git(&["ls-tree", "-r", "--name-only", &after])
        .replace('\n', " ")
}

/// Asserts that the user's files match the newest turn.
#[track_caller]
fn check_clean(repo: &TestRepo) {
    let status = repo.json(&["status"], 0);
    assert_eq!(status["workspace"]["changed"], serde_json::json!([]));
}

#[test]
fn promise_d4_what_a_plan_makes_in_an_ignored_folder_stays_until_it_is_removed() {
    let repo = project();
    repo.write("dist/theirs.txt", "x\n");
    repo.run_plan(&plan("Make", &[create("dist/made.txt", "1\n")]));
    check_clean(&repo);
    repo.run_plan(&plan("Other", &[create("c.txt", "c\n")]));
    assert_eq!(changed(&repo, 2), r#"["c.txt"]"#);
    assert_eq!(paths(&repo), ".gitignore a.txt b.txt c.txt dist/made.txt");

    repo.write("dist/made.txt", "mine\n");
    assert!(repo.done(&["status"]).contains("  dist/made.txt\n"));
    run(&repo, "cat dist/made.txt; rm dist/made.txt");
    assert!(repo.done(&["show", "3", "report.md"]).contains("mine"));
    assert!(!repo.path().join("dist/made.txt").exists());
    assert_eq!(repo.read("dist/theirs.txt"), "x\n");

    repo.done(&["undo", "-y"]);
    assert_eq!(repo.read("dist/made.txt"), "mine\n");
    check_clean(&repo);
    repo.done(&["redo", "-y"]);
    assert!(!repo.path().join("dist/made.txt").exists());
    check_clean(&repo);
}

#[test]
fn promise_d4_what_the_user_removes_and_makes_anew_is_the_users() {
    let repo = project();
    repo.run_plan(&plan("Make", &[create("dist/made.txt", "1\n")]));
    repo.remove("dist/made.txt");
    run(&repo, "true");
    repo.write("dist/made.txt", "mine\n");
    run(&repo, "true");
    assert_eq!(paths(&repo), ".gitignore a.txt b.txt");
    assert_eq!(repo.read("dist/made.txt"), "mine\n");
}

#[test]
fn promise_d4_a_file_with_a_secrets_name_that_a_plan_made_stays_until_it_is_edited() {
    let repo = project();
    repo.run_plan(&plan("Make", &[create(".env", "PORT=1\n")]));
    check_clean(&repo);
    run(&repo, "true");
    assert_eq!(
        (changed(&repo, 2).as_str(), paths(&repo).as_str()),
        ("[]", ".env .gitignore a.txt b.txt")
    );
    repo.write(".env", "PASSWORD=x\n");
    run(&repo, "true");
    assert_eq!(paths(&repo), ".gitignore a.txt b.txt");
    assert_eq!(repo.read(".env"), "PASSWORD=x\n");
    assert!(
        repo.done(&["status"])
            .contains("  .env: untracked and named like a secret\n")
    );
}

#[test]
fn promise_d4_what_a_command_moves_into_an_ignored_folder_arrives() {
    let repo = project();
    run(
        &repo,
        "mkdir -p dist/deep && mv a.txt dist/deep/ && echo made > dist/other.txt",
    );
    assert_eq!(changed(&repo, 1), r#"["a.txt","dist/deep/a.txt"]"#);
    assert_eq!(repo.read("dist/deep/a.txt"), "a\n");
    assert!(!repo.path().join("a.txt").exists());
    run(&repo, "rm b.txt; mv dist/deep/a.txt .env");
    assert_eq!(changed(&repo, 2), r#"[".env","b.txt","dist/deep/a.txt"]"#);
    assert_eq!(
        (repo.read(".env").as_str(), paths(&repo).as_str()),
        ("a\n", ".env .gitignore")
    );
    check_clean(&repo);
    repo.done(&["undo", "2", "-y"]);
    assert_eq!(
        (repo.read("a.txt").as_str(), repo.read("b.txt").as_str()),
        ("a\n", "b\n")
    );
}

/// Adds a nested repository with one commit, recorded like a submodule.
fn with_repository(repo: &TestRepo) -> String {
    let inside = repo.path().join("sub");
    repo.write("sub/x.txt", "x\n");
    repo.git_in(&inside, &["init", "-q"]);
    repo.git_in(&inside, &["add", "."]);
    repo.git_in(&inside, &["commit", "-qm", "one"]);
    repo.commit("a repository within");
    repo.git_in(&inside, &["rev-parse", "HEAD"])
}

/// Returns the commit of the nested repository, as recorded by the newest turn.
fn recorded(repo: &TestRepo) -> String {
    let after = repo.json(&["log"], 0)[0]["after"]
        .as_str()
        .unwrap()
        .to_owned();
    repo.git(&["rev-parse", &format!("{after}:sub")])
}

#[test]
fn promise_d4_what_a_plan_does_in_a_repository_within_is_said_and_not_recorded() {
    let repo = project();
    let first = with_repository(&repo);
    let git = "git -c user.name=a -c user.email=a@b.c";
    let commits = format!("{git} init -q sub && cd sub && {git} commit -q --allow-empty -m other");
    let out = repo.teddy_reads(&["execute", "-", "-y"], plan("Move", &[execute(&commits)]));
    out.check(
        0,
        &["`sub` stays in the session's worktree: a repository of its own"],
    );
    assert_eq!(
        (recorded(&repo), changed(&repo, 1)),
        (first, "[]".to_owned())
    );
    check_clean(&repo);

    // The user's own commit is recorded, whatever the session's worktree still contains.
    let inside = repo.path().join("sub");
    repo.git_in(&inside, &["commit", "-q", "--allow-empty", "-m", "two"]);
    let second = repo.git_in(&inside, &["rev-parse", "HEAD"]);
    let out = repo.teddy_reads(&["execute", "-", "-y"], plan("Rest", &[execute("true")]));
    assert!(out.code == 0 && !out.stderr.contains("`sub`"), "{out}");
    assert_eq!(
        (recorded(&repo), changed(&repo, 2)),
        (second.clone(), "[]".to_owned())
    );

    let writes = plan("Write", &[execute("echo new > sub/new.txt; mv a.txt sub/")]);
    let out = repo.teddy_reads(&["execute", "-", "-y"], writes);
    out.check(
        0,
        &[
            "`sub` stays",
            "`sub/a.txt` stays",
            "moved into a repository of its own; `a.txt` stays",
        ],
    );
    assert_eq!(
        (recorded(&repo), changed(&repo, 3)),
        (second, "[]".to_owned())
    );
    assert_eq!(repo.read("a.txt"), "a\n");
}

#[test]
fn promise_d4_a_repository_that_a_plan_makes_is_said_and_not_recorded() {
    let repo = project();
    let git = "git -c user.name=a -c user.email=a@b.c";
    let makes = format!(
        "{git} init -q new && cd new && {git} commit -q --allow-empty -m one; cd ..; {git} init -q empty && echo c > c.txt"
    );
    let out = repo.teddy_reads(&["execute", "-", "-y"], plan("Make", &[execute(&makes)]));
    out.check(
        0,
        &[
            "`new` stays in the session's worktree",
            "`empty` stays in the session's worktree",
        ],
    );
    assert_eq!(changed(&repo, 1), r#"["c.txt"]"#);
    check_clean(&repo);
    let out = repo.teddy_reads(&["execute", "-", "-y"], plan("Rest", &[execute("true")]));
    assert!(!out.stderr.contains("`new`"), "{out}");
    assert_eq!(changed(&repo, 2), "[]");
}

/// Bug: after a new ignore rule, `status` reported the files of earlier turns as deleted by the
/// user.
#[test]
fn what_a_turn_made_stays_whatever_is_ignored_later() {
    let ignore = "echo build/ > .gitignore";
    for backend in ["worktree.backend=auto", "worktree.backend=checkout"] {
        for by_user in [false, true] {
            let repo = TestRepo::new().file("a.txt", "a\n");
            repo.commit("init");
            repo.done(&["new", "demo"]);
            let run = |script: &str| {
                repo.write(".git/plan.md", plan("Try", &[execute(script)]));
                repo.done(&["-c", backend, "execute", ".git/plan.md", "-y"]);
            };
            let files = || repo.git(&["ls-tree", "-r", "--name-only", "teddy/sessions/demo^2"]);
            run("mkdir build; echo x > build/x");
            match by_user {
                true => repo.write(".gitignore", "build/\n"),
                false => run(ignore),
            }
            let missing = || repo.json(&["status"], 0)["workspace"]["missing"].clone();
            assert_eq!(missing(), serde_json::json!([]), "{backend} {by_user}");

            run("echo y > y.txt");
            assert_eq!(
                files(),
                ".gitignore\na.txt\nbuild/x\ny.txt",
                "{backend} {by_user}"
            );
            assert_eq!(missing(), serde_json::json!([]), "{backend} {by_user}");

            // A turn changes the ignored file, then the user deletes it.
            run("echo changed > build/x");
            assert_eq!(repo.read("build/x"), "changed\n", "{backend} {by_user}");
            repo.remove("build/x");
            run("echo z > z.txt");
            assert!(!files().contains("build/x"), "{backend} {by_user}");
            repo.write("build/x", "the user's own\n");
            run("echo q > q.txt");
            assert!(!files().contains("build/x"), "{backend} {by_user}");
        }
    }
}

#[test]
fn a_turn_that_lifts_a_rule_brings_only_what_it_made() {
    for backend in ["worktree.backend=auto", "worktree.backend=checkout"] {
        let repo = TestRepo::new().file(".gitignore", "*.log\n");
        repo.commit("init");
        repo.done(&["new", "demo"]);
        let run = |script: &str| {
            repo.write(".git/plan.md", plan("Try", &[execute(script)]));
            repo.done(&["-c", backend, "execute", ".git/plan.md", "-y"]);
        };
        let is_there = |path: &str| repo.path().join(path).exists();
        run("echo 1 > one.log; mkdir d; echo 1 > d/one.log; echo k > keep.txt");
        run("rm .gitignore; echo 2 > two.log; echo 2 > d/two.log");
        assert!(is_there("two.log") && is_there("d/two.log"), "{backend}");
        assert!(!is_there("one.log") && !is_there("d/one.log"), "{backend}");
        run("echo 3 > three.log");
        assert!(is_there("three.log") && !is_there("one.log"), "{backend}");
    }
}

#[test]
fn a_rule_that_a_restore_brings_back_makes_no_file_seem_deleted() {
    let repo = TestRepo::new().file(".gitignore", "*.log\n");
    repo.commit("init");
    repo.write("mine.log", "mine\n");
    repo.done(&["new", "demo"]);
    for script in ["rm .gitignore", "echo b > b.txt"] {
        repo.write(".git/plan.md", plan("Try", &[execute(script)]));
        repo.done(&["execute", ".git/plan.md", "-y"]);
    }
    repo.done(&["restore", "0"]);
    assert_eq!(repo.read("mine.log"), "mine\n");
    let workspace = repo.json(&["status"], 0)["workspace"].clone();
    assert_eq!(workspace["changed"], serde_json::json!([]));
    assert_eq!(workspace["missing"], serde_json::json!([]));
}
