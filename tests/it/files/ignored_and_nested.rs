//! Changes by turns in places that snapshots skip: ignored directories and nested repositories.

use serde_json::{Value, json};

use crate::plans::{create, execute, plan};
use crate::support::TestRepo;
use crate::support::overlay::{self, CHECKOUT, OVERLAY, overlays};

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file(".gitignore", "dist/\n")
        .file("a.txt", "a\n")
        .file("b.txt", "b\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo
}

fn run(repo: &TestRepo, script: &str) {
    repo.run_plan(&plan("Run", &[execute(script)]));
}

/// Returns the files that `log` lists for a turn.
fn changed(repo: &TestRepo, turn: &str) -> Value {
    repo.workflow().turn(turn)["files"].clone()
}

/// Returns the paths in the files of the newest turn.
fn paths(repo: &TestRepo) -> String {
    let tree = "teddy/sessions/demo^2";
    repo.git(&["ls-tree", "-r", "--name-only", tree])
        .replace('\n', " ")
}

/// Asserts that the user's files match the newest turn.
#[track_caller]
fn check_clean(repo: &TestRepo) {
    let status = repo.workflow().status();
    assert_eq!(status["workspace"]["changed"], json!([]));
}

#[test]
fn promise_d4_files_of_a_plan_in_an_ignored_directory_are_kept_until_removed() {
    let repo = project();
    repo.write("dist/theirs.txt", "x\n");
    repo.workflow()
        .run_plan(&plan("Make", &[create("dist/made.txt", "1\n")]));
    check_clean(&repo);
    repo.workflow()
        .run_plan(&plan("Other", &[create("c.txt", "c\n")]));
    assert_eq!(changed(&repo, "2"), json!(["c.txt"]));
    assert_eq!(paths(&repo), ".gitignore a.txt b.txt c.txt dist/made.txt");

    repo.write("dist/made.txt", "mine\n");
    let status = repo.workflow().status();
    assert_eq!(status["workspace"]["changed"], json!(["dist/made.txt"]));
    run(&repo, "cat dist/made.txt; rm dist/made.txt");
    assert_eq!(repo.workflow().artifact("3", "output/01.txt"), "mine\n");
    assert!(!repo.path().join("dist/made.txt").exists());
    assert_eq!(repo.read("dist/theirs.txt"), "x\n");

    repo.workflow().undo(1).done();
    assert_eq!(repo.read("dist/made.txt"), "mine\n");
    check_clean(&repo);
    repo.workflow().redo(1).done();
    assert!(!repo.path().join("dist/made.txt").exists());
    check_clean(&repo);
}

#[test]
fn promise_d4_what_the_user_removes_and_makes_anew_is_the_users() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Make", &[create("dist/made.txt", "1\n")]));
    repo.remove("dist/made.txt");
    run(&repo, "true");
    repo.write("dist/made.txt", "mine\n");
    run(&repo, "true");
    assert_eq!(paths(&repo), ".gitignore a.txt b.txt");
    assert_eq!(repo.read("dist/made.txt"), "mine\n");
}

#[test]
fn promise_d4_a_planned_file_with_the_name_of_a_secret_is_kept_until_edited() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Make", &[create(".env", "PORT=1\n")]));
    check_clean(&repo);
    run(&repo, "true");
    assert_eq!(changed(&repo, "2"), json!([]));
    assert_eq!(paths(&repo), ".env .gitignore a.txt b.txt");
    repo.write(".env", "PASSWORD=x\n");
    run(&repo, "true");
    assert_eq!(paths(&repo), ".gitignore a.txt b.txt");
    assert_eq!(repo.read(".env"), "PASSWORD=x\n");
    assert_eq!(
        repo.workflow().status()["workspace"]["not_captured"],
        json!([{ "path": ".env", "reason": "untracked and named like a secret" }])
    );
}

#[test]
fn promise_d4_what_a_command_moves_into_an_ignored_folder_arrives() {
    let repo = project();
    run(
        &repo,
        "mkdir -p dist/deep && mv a.txt dist/deep/ && echo made > dist/other.txt",
    );
    assert_eq!(changed(&repo, "1"), json!(["a.txt", "dist/deep/a.txt"]));
    assert_eq!(repo.read("dist/deep/a.txt"), "a\n");
    assert!(!repo.path().join("a.txt").exists());
    run(&repo, "rm b.txt; mv dist/deep/a.txt .env");
    assert_eq!(
        changed(&repo, "2"),
        json!([".env", "b.txt", "dist/deep/a.txt"])
    );
    assert_eq!(
        (repo.read(".env").as_str(), paths(&repo).as_str()),
        ("a\n", ".env .gitignore")
    );
    check_clean(&repo);
    repo.workflow().undo(2).done();
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
    repo.git(&["rev-parse", "teddy/sessions/demo^2:sub"])
}

#[test]
fn promise_d4_changes_in_a_nested_repository_are_reported_and_not_recorded() {
    let repo = project();
    let first = with_repository(&repo);
    let git = "git -c user.name=a -c user.email=a@b.c";
    let commits = format!("{git} init -q sub && cd sub && {git} commit -q --allow-empty -m other");
    let out = repo.teddy_reads(
        &["-q", "execute", "-", "-y"],
        plan("Move", &[execute(&commits)]),
    );
    insta::assert_snapshot!(out.shown(&repo), @r"
    turn 1 executed [id]
    --- stderr
    warning: `sub` is not recorded: a repository of its own, in which the plan worked
    exit code 0
    ");
    assert_eq!((recorded(&repo), changed(&repo, "1")), (first, json!([])));
    check_clean(&repo);

    // The user's own commit is recorded, whatever the session's worktree still contains.
    let inside = repo.path().join("sub");
    repo.git_in(&inside, &["commit", "-q", "--allow-empty", "-m", "two"]);
    let second = repo.git_in(&inside, &["rev-parse", "HEAD"]);
    let out = repo.teddy_reads(
        &["-q", "execute", "-", "-y"],
        plan("Rest", &[execute("true")]),
    );
    insta::assert_snapshot!(out.shown(&repo), @r"
    turn 2 executed [id]
    exit code 0
    ");
    assert_eq!(
        (recorded(&repo), changed(&repo, "2")),
        (second.clone(), json!([]))
    );

    let writes = plan("Write", &[execute("echo new > sub/new.txt; mv a.txt sub/")]);
    let out = repo.teddy_reads(&["-q", "execute", "-", "-y"], writes);
    insta::assert_snapshot!(out.shown(&repo), @r"
    turn 3 executed [id]
    --- stderr
    warning: `sub` is not recorded: a repository of its own, in which the plan worked
    warning: `sub/a.txt` is not recorded: moved into a repository of its own; `a.txt` stays
    exit code 0
    ");
    assert_eq!((recorded(&repo), changed(&repo, "3")), (second, json!([])));
    assert_eq!(repo.read("a.txt"), "a\n");

    // Size and time of a deleted file, but other bytes.
    let writes = "echo z > sub/z.txt; touch -r a.txt sub/z.txt; rm a.txt";
    let out = repo.teddy_reads(
        &["-q", "execute", "-", "-y"],
        plan("Write", &[execute(writes)]),
    );
    insta::assert_snapshot!(out.shown(&repo), @r"
    turn 4 executed [id]
    exit code 0
    ");
    assert_eq!(changed(&repo, "4"), json!(["a.txt"]));
}

#[test]
fn promise_d4_a_new_nested_repository_is_reported_and_not_recorded() {
    let repo = project();
    let git = "git -c user.name=a -c user.email=a@b.c";
    let makes = format!(
        "{git} init -q new && cd new && {git} commit -q --allow-empty -m one; cd ..; {git} init -q empty && echo c > c.txt"
    );
    let out = repo.teddy_reads(
        &["-q", "execute", "-", "-y"],
        plan("Make", &[execute(&makes)]),
    );
    insta::assert_snapshot!(out.shown(&repo), @r"
    turn 1 executed [id]
    --- stderr
    warning: `empty` is not recorded: a repository without a commit
    warning: `new` is not recorded: a repository of its own, in which the plan worked
    exit code 0
    ");
    assert_eq!(changed(&repo, "1"), json!(["c.txt"]));
    check_clean(&repo);
    let out = repo.teddy_reads(
        &["-q", "execute", "-", "-y"],
        plan("Rest", &[execute("true")]),
    );
    insta::assert_snapshot!(out.shown(&repo), @r"
    turn 2 executed [id]
    exit code 0
    ");
    assert_eq!(changed(&repo, "2"), json!([]));
}

/// Bug: the warning said that they stay in the session's worktree.
#[test]
fn what_no_turn_records_is_gone_before_the_next_command() {
    for backend in ["worktree.backend=auto", overlay::CHECKOUT] {
        let repo = project();
        let run = |script: &str| overlay::run(&repo, backend, script);
        let out = run("echo K=1 > .env; head -c 20000000 /dev/zero > big.bin");
        let warnings = out
            .stderr
            .lines()
            .filter(|line| line.starts_with("warning"));
        assert_eq!(
            warnings.collect::<Vec<_>>(),
            [
                "warning: `.env` is not recorded: untracked and named like a secret",
                "warning: `big.bin` is not recorded: untracked and large (20000000 bytes)",
            ]
        );
        run("test ! -e .env && test ! -e big.bin").check(0, &[]);
        check_clean(&repo);
    }
}

/// Bug: after a new ignore rule, `status` reported the files of earlier turns as deleted by the
/// user.
#[test]
fn files_of_a_turn_are_kept_if_they_are_ignored_later() {
    let ignore = "echo build/ > .gitignore";
    for backend in ["worktree.backend=auto", overlay::CHECKOUT] {
        for by_user in [false, true] {
            let repo = TestRepo::new().file("a.txt", "a\n");
            repo.commit("init");
            repo.workflow().new_session("demo").done();
            let run = |script: &str| {
                overlay::run(&repo, backend, script).check(0, &[]);
            };
            let files = || repo.git(&["ls-tree", "-r", "--name-only", "teddy/sessions/demo^2"]);
            run("mkdir build; echo x > build/x");
            match by_user {
                true => repo.write(".gitignore", "build/\n"),
                false => run(ignore),
            }
            let missing = || repo.workflow().status()["workspace"]["missing"].clone();
            assert_eq!(missing(), json!([]), "{backend} {by_user}");

            run("echo y > y.txt");
            assert_eq!(
                files(),
                ".gitignore\na.txt\nbuild/x\ny.txt",
                "{backend} {by_user}"
            );
            assert_eq!(missing(), json!([]), "{backend} {by_user}");

            // A turn changes the ignored file, then the user deletes it.
            run("echo changed > build/x");
            assert_eq!(repo.read("build/x"), "changed\n", "{backend} {by_user}");
            repo.remove("build/x");
            run("echo z > z.txt");
            let without = ".gitignore\na.txt\ny.txt\nz.txt";
            assert_eq!(files(), without, "{backend} {by_user}");
            repo.write("build/x", "the user's own\n");
            run("echo q > y.txt");
            assert_eq!(files(), without, "{backend} {by_user}");
        }
    }
}

#[test]
fn a_turn_that_lifts_a_rule_brings_only_what_it_made() {
    for backend in ["worktree.backend=auto", overlay::CHECKOUT] {
        let repo = TestRepo::new().file(".gitignore", "*.log\n");
        repo.commit("init");
        repo.workflow().new_session("demo").done();
        let run = |script: &str| {
            overlay::run(&repo, backend, script).check(0, &[]);
        };
        let logs = || {
            let names = ["one.log", "d/one.log", "two.log", "d/two.log", "three.log"];
            names.map(|name| repo.path().join(name).exists())
        };
        run("echo 1 > one.log; mkdir d; echo 1 > d/one.log; echo k > keep.txt");
        run("rm .gitignore; echo 2 > two.log; echo 2 > d/two.log");
        assert_eq!(logs(), [false, false, true, true, false], "{backend}");
        run("echo 3 > three.log");
        assert_eq!(logs(), [false, false, true, true, true], "{backend}");
    }
}

#[test]
fn a_rule_that_a_restore_brings_back_makes_no_file_seem_deleted() {
    let repo = TestRepo::new().file(".gitignore", "*.log\n");
    repo.commit("init");
    repo.write("mine.log", "mine\n");
    repo.workflow().new_session("demo").done();
    run(&repo, "rm .gitignore");
    repo.workflow()
        .run_plan(&plan("Make", &[create("b.txt", "b\n")]));
    insta::assert_snapshot!(repo.workflow().restore("0").done(), @r"
    at turn 0
      write .gitignore
      delete b.txt
      keep mine.log
    ");
    assert_eq!(repo.read("mine.log"), "mine\n");
    let workspace = repo.workflow().status()["workspace"].clone();
    assert_eq!(workspace["changed"], json!([]));
    assert_eq!(workspace["missing"], json!([]));
}

/// Regression: in a copy, files in a directory that was moved with its rules counted as those of an earlier
/// turn, and were deleted.
#[test]
fn a_directory_that_is_moved_with_its_rules_takes_its_files_along() {
    for (backend, command) in [
        (CHECKOUT, "mv pkg lib"),
        (CHECKOUT, "git mv pkg lib && git commit -qm moved"),
        (CHECKOUT, "mv pkg lib; echo build/ >> .gitignore"),
        (OVERLAY, "mv pkg lib"),
    ] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        let repo = TestRepo::new()
            .file("pkg/.gitignore", "*.o\n")
            .file("pkg/a.py", "a\n");
        repo.commit("init");
        repo.done(&["new", "demo"]);
        let moves = plan("Move", &[execute(command)]);
        let out = repo.teddy_reads(&["-q", "execute", "-", "-y", "-c", backend], moves);
        assert_eq!(out.code, 0, "{command}: {out}");
        assert_eq!(repo.read("lib/a.py"), "a\n", "{backend} {command}: {out}");
        assert!(!repo.path().join("pkg/a.py").exists(), "{command}: {out}");
    }
}

/// Bug: no file was changed, said `record`, and all files matched, said `undo`.
#[test]
fn a_submodule_that_the_user_moved_is_recorded_and_undo_says_what_moves_it_back() {
    let repo = project();
    let first = with_repository(&repo);
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    let inside = repo.path().join("sub");
    repo.git_in(&inside, &["commit", "-q", "--allow-empty", "-m", "two"]);
    insta::assert_snapshot!(repo.printed(&["record", "-m", "Move"]), @"
    write sub
    --- stderr
    Recorded as turn 2: 1 file changed.
    exit code 0
    ");
    let undone = repo.teddy(&["undo"]);
    let way = format!("`git -C sub checkout {first}` does");
    undone.check(0, &[&way]);
    insta::assert_snapshot!(undone.shown(&repo), @"
    keep sub
    --- stderr
    Your files match turn 1 except for 1 file: 0 files changed, 1 of your own kept.
    sub: a repository of its own, which TeDDy does not move; `git -C sub checkout [id]` does
    exit code 0
    ");

    // What `--exact` cannot make is not advised.
    repo.done(&["redo"]);
    repo.git_in(&inside, &["checkout", "-q", &first]);
    repo.teddy(&["status"]).check(
        0,
        &["  sub: a repository of its own, which TeDDy does not move; `git -C sub checkout "],
    );
    std::fs::remove_dir_all(&inside).unwrap();
    repo.teddy(&["status"]).check(
        0,
        &["  sub: a repository of its own, which TeDDy does not make\n"],
    );
}

/// Bug: `undo` named no reason, and `status` a way that was none.
#[test]
fn a_file_in_place_of_a_repository_is_not_undone_and_the_reason_is_said() {
    let repo = project();
    with_repository(&repo);
    std::fs::remove_dir_all(repo.path().join("sub")).unwrap();
    repo.write("sub", "file\n");
    repo.done(&["record", "-m", "File"]);
    insta::assert_snapshot!(repo.printed(&["undo"]), @"
    blocked sub
    --- stderr
    warning: `sub` is a repository of its own on one side, or in one; TeDDy changes nothing there
    warning: 1 file could not be changed; so nothing was changed; `teddy status` says how to continue
    exit code 4
    ");
    assert_eq!(repo.read("sub"), "file\n");
}

/// Bug: the change of a command was recorded as a deletion, and "overlapped with your own edits".
#[test]
fn a_change_of_a_tracked_file_in_a_repository_within_is_recorded_and_stays_away_from_it() {
    for backend in ["worktree.backend=auto", overlay::CHECKOUT] {
        let repo = project().file("src/a.txt", "a\n");
        repo.commit("src");
        let inside = repo.path().join("src");
        repo.git_in(&inside, &["init", "-q"]);
        let out = repo.teddy_reads(
            &["-q", "execute", "-", "-y", "-c", backend],
            plan("Try", &[execute("echo b >> src/a.txt")]),
        );
        insta::allow_duplicates! {
            insta::assert_snapshot!(out.shown(&repo), @"
            turn 1 executed [id]
            --- stderr
            warning: `src/a.txt` is a repository of its own on one side, or in one; TeDDy changes nothing there
            exit code 4
            ");
        }
        let diff = repo.done(&["diff", "1"]);
        assert!(diff.ends_with("\n a\n+b\n"), "{backend}: {diff}");
        assert_eq!(repo.read("src/a.txt"), "a\n");
    }
}
