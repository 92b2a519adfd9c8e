//! TeDDy does not change the user's refs, HEAD, index, stash, settings or hooks. Plain git
//! transfers sessions.

use std::os::unix::fs::PermissionsExt;

use teddy::workflow::restore::OnOverlap;

use crate::plans::{create, execute, plan};
use crate::support::in_process::resolving;
use crate::support::{Output, TestRepo};

/// A project with a stash, a staged file, a second branch, and hooks that leave a trace.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.git(&["branch", "side"]);
    repo.write("a.txt", "stashed\n");
    repo.git(&["stash", "-q"]);
    repo.write("staged.txt", "staged\n");
    repo.git(&["add", "staged.txt"]);
    repo.git(&["config", "commit.gpgsign", "true"]);
    repo.git(&["config", "gpg.program", "false"]);
    // `doctor --fix` sets it otherwise.
    repo.git(&["config", "log.excludeDecoration", "refs/teddy/"]);
    for hook in [
        "pre-commit",
        "post-commit",
        "reference-transaction",
        "post-checkout",
        "post-index-change",
        "pre-auto-gc",
        "fsmonitor-watchman",
    ] {
        let path = repo.path().join(".git/hooks").join(hook);
        std::fs::write(
            &path,
            format!("#!/bin/sh\ntouch {}\n", repo.beside("hook-ran").display()),
        )
        .unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    repo
}

#[test]
fn no_command_touches_refs_index_settings_or_fires_a_hook() {
    let repo = project();
    let before = repo.users();
    let unharmed = |what: &str| {
        assert_eq!(repo.users(), before, "after {what}");
        assert!(!repo.beside("hook-ran").exists(), "{what} ran a hook");
    };
    repo.reply(&plan(
        "One",
        &[create("one.txt", "1\n"), execute("echo 2 > two.txt")],
    ));
    let commands: [&[&str]; 20] = [
        &["new", "demo"],
        &["context", "add", "a.txt"],
        &["context"],
        &["plan", "-m", "x"],
        &["execute", "-y"],
        &["status"],
        &["log"],
        &["show"],
        &["diff"],
        &["restore", "0"],
        &["undo"],
        &["redo"],
        &["restore", "1", "--exact", "-y"],
        &["branch", "1", "other"],
        &["switch", "demo"],
        &["sessions"],
        &["export", "/dev/null/x"],
        &["trust"],
        &["get-prompt"],
        &["doctor", "--fix"],
    ];
    for command in commands {
        repo.teddy(command);
        unharmed(&command.join(" "));
    }
    assert_eq!(repo.read("two.txt"), "2\n");
    assert_eq!(
        repo.git(&["log", "-1", "--format=%G?", "teddy/sessions/demo"]),
        "N",
        "nothing is signed"
    );
}

#[test]
fn a_command_of_a_plan_that_uses_git_works_in_its_own_worktree() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    let before = repo.users();
    let commit = "git add -A && git -c user.name=x -c user.email=x@localhost commit -q -m inside; git log --oneline > log.txt";
    repo.run_plan(&plan("Commit", &[create("b.txt", "b\n"), execute(commit)]));
    assert_eq!(repo.users(), before);
    let log = repo.git(&["log", "--format=%s", "teddy/sessions/commit^2"]);
    assert_eq!(
        log, "Commit\ninside\ninit",
        "what the plan committed is below the turn's own commit"
    );
}

#[test]
fn without_a_user_name_turns_are_recorded_all_the_same() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    std::fs::write(
        repo.beside("plan.md"),
        plan("One", &[create("one.txt", "1\n")]),
    )
    .unwrap();
    let mut command = repo.teddy_command(&["execute", "../plan.md", "-y"]);
    for name in [
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ] {
        command.env_remove(name);
    }
    let out = Output::of(command.current_dir(repo.path()));
    assert_eq!(out.code, 0, "{out}");
}

#[test]
fn a_clone_and_a_fetch_bring_sessions_over_and_they_go_on_there() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.write("untracked.txt", "u\n");
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    assert_eq!(repo.git(&["fsck", "--strict", "--no-dangling"]), "");
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
        repo.git_in(&clone, &["fsck", "--strict", "--no-dangling"]),
        ""
    );
    let shown = |folder: &std::path::Path| repo.teddy_in(folder, &["show", "demo:2"]).stdout;
    assert_eq!(shown(&clone), shown(&repo.path()));
    let restored = repo.teddy_in(&clone, &["-s", "demo", "restore", "@", "--exact", "-y"]);
    assert_eq!(restored.code, 0, "{restored}");
    assert_eq!(
        std::fs::read_to_string(clone.join("untracked.txt")).unwrap(),
        "u\n"
    );
    std::fs::write(
        repo.beside("plan.md"),
        plan("Three", &[create("three.txt", "3\n")]),
    )
    .unwrap();
    let out = repo.teddy_in(&clone, &["execute", "../plan.md", "-y"]);
    assert_eq!(out.code, 0, "{out}");
    assert!(clone.join("three.txt").exists());
}

#[test]
fn garbage_collection_takes_nothing_of_a_session() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.write("mine.txt", "mine\n");
    repo.workflow()
        .restore_with("0", &resolving(OnOverlap::Exact))
        .done();
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.workflow().undo(1).done();
    assert_eq!(
        (
            repo.read("mine.txt").as_str(),
            repo.read("one.txt").as_str()
        ),
        ("mine\n", "1\n")
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test looks git up itself")]
fn git_finds_it_as_a_command_of_its_own() {
    let repo = TestRepo::new();
    repo.workflow().new_session("demo").done();
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_git-teddy"))
        .parent()
        .unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let out = Output::of(
        repo.command("git")
            .env("PATH", path)
            .args(["teddy", "log"])
            .current_dir(repo.path()),
    );
    assert!(
        out.code == 0 && out.stdout.contains("Start session demo"),
        "{out}"
    );
}

#[test]
fn git_teddy_without_a_teddy_says_what_is_missing() {
    let repo = TestRepo::new();
    let alone = repo.beside("git-teddy");
    // A child process does the copy. If this process had the file open for writing, another test
    // could fork meanwhile and inherit the handle, and `exec` would fail with ETXTBSY.
    let copied = Output::of(
        repo.command("cp")
            .arg(env!("CARGO_BIN_EXE_git-teddy"))
            .arg(&alone),
    );
    assert_eq!(copied.code, 0, "{copied}");
    let out = Output::of(
        repo.command(alone.to_str().unwrap())
            .env("PATH", "")
            .arg("log"),
    );
    assert_eq!(
        (out.code, out.stdout.as_str(), out.stderr.as_str()),
        (
            1,
            "",
            "error: cannot start `teddy`: No such file or directory (os error 2)\n\
             hint: install `teddy` beside `git-teddy`, or on your PATH\n"
        )
    );
}

#[test]
fn the_session_of_two_terminals_gets_one_turn_after_the_other() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    std::thread::scope(|scope| {
        for name in ["one", "two", "three"] {
            let repo = &repo;
            scope.spawn(move || {
                repo.workflow()
                    .run_plan(&plan(name, &[create(&format!("{name}.txt"), "x\n")]))
            });
        }
    });
    assert_eq!(repo.workflow().status()["turn"], 3);
    assert_eq!(
        repo.git(&["rev-parse", "teddy/sessions/demo^2^{tree}"]),
        repo.tree()
    );
}
