//! Repositories that differ from a plain clone: bare, sparse, shallow, submodules, and settings
//! that change how git works.

use std::path::{Path, PathBuf};

use crate::plans::{create, edit, execute, plan};
use crate::support::{Output, TestRepo};

/// A project with two commits.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "a\n")
        .file("kept/b.txt", "b\n")
        .file("left/c.txt", "c\n");
    repo.commit("init");
    repo.write("a.txt", "aa\n");
    repo.commit("second");
    repo
}

/// Runs a turn with a command, an undo and a redo in a directory.
#[track_caller]
fn turn_in(repo: &TestRepo, folder: &Path) {
    let actions = [
        edit("a.txt", "aa", "A"),
        create("kept/new.txt", "new\n"),
        execute("cat a.txt > said.txt && git log --format=%s -1 >> said.txt"),
    ];
    std::fs::write(repo.beside("plan.md"), plan("Make it", &actions)).unwrap();
    let run = |args: &[&str]| {
        repo.teddy_in(folder, args).check(0, &[]);
    };
    run(&["new", "demo"]);
    run(&["context", "add", "a.txt", "--session"]);
    run(&["execute", repo.beside("plan.md").to_str().unwrap(), "-y"]);
    let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap();
    assert_eq!(read("a.txt"), "A\n");
    assert_eq!(read("said.txt"), "A\nsecond\n");
    run(&["undo"]);
    assert_eq!(read("a.txt"), "aa\n");
    assert!(!folder.join("said.txt").exists());
    run(&["redo"]);
    assert_eq!(read("kept/new.txt"), "new\n");
    run(&["doctor", "--fix"]);
    run(&["gc"]);
    repo.git_in(folder, &["fsck", "--no-dangling"]);
}

/// Returns the directory of the clone.
fn clone(repo: &TestRepo, args: &[&str]) -> PathBuf {
    let (from, to) = (
        format!("file://{}", repo.path().display()),
        repo.beside("clone"),
    );
    let args = [
        &["clone", "-q"],
        args,
        &[from.as_str(), to.to_str().unwrap()],
    ]
    .concat();
    repo.git(&args);
    to
}

#[test]
fn a_bare_repository_shows_its_sessions_and_does_no_more() {
    let repo = project();
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("Make it", &[create("new.txt", "new\n")]));
    let bare = clone(&repo, &["--bare"]);
    repo.git_in(
        &bare,
        &["fetch", "-q", "origin", "refs/teddy/*:refs/teddy/*"],
    );
    let objects = bare.join("objects");

    for folder in [&bare, &objects] {
        let run = |args: &[&str]| repo.teddy_in(folder, args).check(0, &[]).stdout.clone();
        assert!(run(&["sessions"]).contains("demo"), "{}", folder.display());
        assert!(run(&["log"]).contains("Make it"));
        assert!(run(&["show", "1", "plan.md"]).contains("# Make it"));
        assert!(run(&["show"]).contains("new.txt"));
        assert!(run(&["find", "Make it"]).contains("demo:1:"));
        run(&["verify"]);
    }
    let out = repo.beside("exported");
    repo.teddy_in(&bare, &["-s", "demo", "export", out.to_str().unwrap()])
        .check(0, &[]);
    assert!(out.join("01/plan.md").exists());

    let bundle = repo.beside("all.bundle");
    let file = bundle.to_str().unwrap();
    repo.done(&["export", "--bundle", file]);
    repo.teddy_in(&bare, &["fetch", file, "--as", "copy"])
        .check(0, &["copy"]);
    assert!(
        repo.teddy_in(&bare, &["-s", "copy", "log"])
            .stdout
            .contains("Make it")
    );
    repo.git_in(&bare, &["update-ref", "-d", "refs/teddy/sessions/copy"]);

    for args in [
        &["new", "x"][..],
        &["execute", "-y"],
        &["undo"],
        &["status"],
        &["gc"],
    ] {
        repo.teddy_in(&bare, args).check(
            1,
            &["is a bare repository", "hint: use a clone with a worktree"],
        );
    }
    repo.git_in(&bare, &["update-ref", "-d", "refs/teddy/sessions/demo"]);
    let empty = repo.teddy_in(&bare, &["sessions"]);
    insta::assert_snapshot!(empty.shown(&repo), @"
    --- stderr
    There are no sessions.
    exit code 0
    ");
    let log = repo.teddy_in(&bare, &["log"]);
    insta::assert_snapshot!(log.shown(&repo), @"
    --- stderr
    error: no session is in use here
    hint: `teddy sessions` lists them, `-s <name>` names one
    exit code 1
    ");
    assert!(!bare.join("teddy/current").exists());
    assert!(!bare.join(".teddy").exists());
}

#[test]
fn a_bare_repository_among_the_files_is_not_entered_where_the_user_says_so() {
    let repo = project();
    let bare = clone(&repo, &["--bare"]);
    let config = repo.beside("gitconfig");
    std::fs::write(&config, "[safe]\n\tbareRepository = explicit\n").unwrap();
    let run = |named: bool, args: &[&str]| {
        let mut command = repo.teddy_command(args);
        command.current_dir(&bare).env("GIT_CONFIG_GLOBAL", &config);
        if named {
            command.env("GIT_DIR", &bare);
        }
        Output::of(&mut command)
    };
    run(false, &["sessions"]).check(
        1,
        &[
            "`safe.bareRepository` says must be named",
            "hint: set `GIT_DIR=",
        ],
    );
    run(true, &["sessions"]).check(0, &[]);

    // Only the user's own setting counts, not that of the repository.
    repo.git_in(&bare, &["config", "safe.bareRepository", "all"]);
    run(false, &["sessions"]).check(1, &["must be named"]);
    repo.git_in(&bare, &["config", "safe.bareRepository", "explicit"]);
    std::fs::write(&config, "").unwrap();
    run(false, &["sessions"]).check(0, &[]);
}

#[test]
fn attack_10_a_pipe_in_a_bare_repository_is_not_waited_at() {
    let repo = project();
    let bare = clone(&repo, &["--bare"]);
    for name in ["HEAD", "config", "packed-refs"] {
        let (path, aside) = (bare.join(name), repo.beside("aside"));
        // A repository with a reftable has no `packed-refs`.
        if !path.exists() {
            std::fs::write(&path, "").unwrap();
        }
        std::fs::rename(&path, &aside).unwrap();
        assert!(
            repo.command("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        repo.teddy_in(&bare, &["sessions"])
            .check(1, &["it is not a regular file", name]);
        std::fs::remove_file(&path).unwrap();
        std::fs::rename(&aside, &path).unwrap();
    }
    repo.teddy_in(&bare, &["sessions"]).check(0, &[]);
}

#[test]
fn git_that_wants_bare_repositories_named_is_content_with_ours() {
    let repo = project();
    let config = "[safe]\n\tbareRepository = explicit\n";
    let home = repo.beside("home");
    std::fs::write(home.join(".gitconfig"), config).unwrap();
    let run = |args: &[&str]| {
        let mut command = repo.teddy_command(args);
        command
            .current_dir(repo.path())
            .env("GIT_CONFIG_GLOBAL", home.join(".gitconfig"));
        Output::of(&mut command).check(0, &[]).stdout.clone()
    };
    let actions = [
        create("new.txt", "new\n"),
        execute("git add new.txt && git commit -qm 'By a command'"),
    ];
    std::fs::write(repo.beside("plan.md"), plan("Commit", &actions)).unwrap();
    run(&["new", "demo"]);
    run(&["execute", "../plan.md", "-y"]);
    let chain = repo.git(&["log", "-2", "--format=%s", "teddy/sessions/demo^2"]);
    assert_eq!(chain, "By a command\nsecond");
    run(&["undo"]);
    run(&["doctor", "--fix"]);
    run(&["gc"]);
}

#[test]
fn a_sparse_checkout_goes_through_a_turn_with_what_it_has() {
    for (cone, rules) in [("--cone", &["kept"][..]), ("--no-cone", &["/*", "!/left/"])] {
        let repo = project();
        repo.git(&[&["sparse-checkout", "set", cone], rules].concat());
        assert!(!repo.path().join("left").exists(), "{cone}");
        turn_in(&repo, &repo.path());
        assert!(!repo.path().join("left").exists(), "{cone}");
        let left = repo.git(&["show", "teddy/sessions/demo^2:left/c.txt"]);
        assert_eq!(left, "c", "{cone}: what is left out is not deleted");
        assert_eq!(repo.git(&["status", "--short", "left"]), "");
    }
}

/// Bug: over the user's files, the turn also deleted what is left out of the directory.
#[test]
fn who_removes_a_directory_does_not_remove_what_is_left_out_of_it() {
    let repo = TestRepo::new()
        .file("d/f.txt", "f\n")
        .file("d/e/g.txt", "g\n")
        .file("k.txt", "k\n");
    repo.commit("init");
    repo.git(&["sparse-checkout", "set", "--cone", "d/x"]);
    repo.workflow().new_session("demo").done();
    repo.run_plan(&plan("Remove d", &[execute("rm -rf d; echo t >> k.txt")]));
    assert_eq!(
        repo.git(&["diff", "--name-status", "HEAD", "teddy/sessions/demo^2"]),
        "D\td/f.txt\nM\tk.txt"
    );
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(
        repo.git(&["ls-tree", "-r", "--name-only", "HEAD"]),
        "d/e/g.txt\nk.txt"
    );
}

#[test]
fn a_sparse_index_goes_through_a_turn() {
    let repo = project();
    repo.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "kept"]);
    turn_in(&repo, &repo.path());
    assert_eq!(repo.git(&["show", "teddy/sessions/demo^2:left/c.txt"]), "c");
}

/// Bug: if a directory entry of a sparse index existed on disk, TeDDy wrote a tree that git could
/// not read.
#[test]
fn a_folder_of_a_sparse_index_that_is_there_goes_through_turns() {
    for (backend, own) in [
        ("overlay", false),
        ("overlay", true),
        ("checkout", false),
        ("checkout", true),
    ] {
        let repo = TestRepo::new()
            .file("a.txt", "a\n")
            .file("kept/b.txt", "b\n")
            .file("left/c.txt", "c\n")
            .file("left/deep/d.txt", "d\n")
            .file("left/deep/e.txt", "e\n");
        repo.commit("init");
        repo.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "kept"]);
        std::fs::create_dir_all(repo.path().join("left/deep")).unwrap();
        if own {
            repo.write("left/deep/d.txt", "mine\n");
        }
        let run = |title: &str, command: &str| {
            std::fs::write(repo.beside("plan.md"), plan(title, &[execute(command)])).unwrap();
            let backend = format!("worktree.backend={backend}");
            repo.done(&["execute", "../plan.md", "-y", "-c", &backend]);
        };

        run(
            "One",
            "echo q > q.txt; mkdir -p left/deep; echo new > left/deep/new.txt",
        );
        run("Two", "echo more >> left/deep/new.txt");
        assert_eq!(repo.read("left/deep/new.txt"), "new\nmore\n", "{backend}");
        let tip = "teddy/sessions/one^2";
        let names = repo.git(&["ls-tree", "-r", "--name-only", tip]);
        let expected = "a.txt\nkept/b.txt\nleft/c.txt\nleft/deep/d.txt\nleft/deep/e.txt\nleft/deep/new.txt\nq.txt";
        assert_eq!(names, expected, "{backend} {own}");
        let content = if own { "mine" } else { "d" };
        assert_eq!(
            repo.git(&["show", &format!("{tip}:left/deep/d.txt")]),
            content
        );
        repo.git(&["fsck", "--strict", "--no-dangling"]);
        repo.workflow().undo(2).done();
        assert!(!repo.path().join("left/deep/new.txt").exists());
        assert_eq!(repo.path().join("left/deep/d.txt").exists(), own);
        assert!(!repo.path().join("left/c.txt").exists());
        repo.workflow().redo(2).done();
        assert_eq!(repo.read("left/deep/new.txt"), "new\nmore\n");
        repo.git(&["gc", "-q"]);
        repo.workflow().verify().done();
    }
}

/// Bug: changes by a command to a file outside of the sparse checkout were lost without a message.
#[test]
fn what_a_turn_makes_of_a_file_that_is_left_out_is_recorded() {
    for (cone, rules) in [("--cone", &["kept"][..]), ("--no-cone", &["/*", "!/left/"])] {
        for backend in ["overlay", "checkout"] {
            let repo = project();
            repo.git(&[&["sparse-checkout", "set", cone], rules].concat());
            let command = execute("mkdir -p left; echo X > left/c.txt");
            std::fs::write(repo.beside("plan.md"), plan("One", &[command])).unwrap();
            let backend = format!("worktree.backend={backend}");
            repo.done(&["execute", "../plan.md", "-y", "-c", &backend]);
            assert_eq!(repo.read("left/c.txt"), "X\n", "{cone} {backend}");
            assert_eq!(repo.git(&["show", "teddy/sessions/one^2:left/c.txt"]), "X");
            repo.write("left/c.txt", "X\nmine\n");
            repo.done(&["record", "mine"]);
            assert_eq!(
                repo.git(&["show", "teddy/sessions/one^2:left/c.txt"]),
                "X\nmine"
            );
            repo.workflow().undo(2).done();
            assert!(!repo.path().join("left/c.txt").exists() || repo.read("left/c.txt") == "c\n");
        }
    }
}

/// Bug: TeDDy recorded the nested repository's commit, whose id has the wrong length for the tree.
#[test]
fn a_repository_within_may_have_another_hash_function() {
    for (outer, inner) in [("sha1", "sha256"), ("sha256", "sha1")] {
        let repo = TestRepo::new();
        let top = repo.beside("outer");
        let nest = top.join("nest");
        for (path, format) in [(&top, outer), (&nest, inner)] {
            let format = format!("--object-format={format}");
            repo.git(&["init", "-q", "-b", "main", &format, path.to_str().unwrap()]);
            std::fs::write(path.join("a.txt"), "aa\n").unwrap();
            repo.git_in(path, &["add", "a.txt"]);
            repo.git_in(path, &["commit", "-qm", "second"]);
        }
        std::fs::create_dir(top.join("kept")).unwrap();
        turn_in(&repo, &top);
        let names = repo.git_in(&top, &["ls-tree", "--name-only", "teddy/sessions/demo^2"]);
        assert!(!names.contains("nest"), "{names}");
    }
}

#[test]
fn actions_on_a_file_that_is_left_out_are_judged_before_they_run() {
    let repo = project();
    repo.git(&["sparse-checkout", "set", "--cone", "kept"]);
    repo.workflow().new_session("one").done();
    repo.workflow().add(&["left/c.txt"]);
    std::fs::write(
        repo.beside("plan.md"),
        plan("Edit", &[edit("left/c.txt", "c", "C")]),
    )
    .unwrap();
    insta::assert_snapshot!(repo.printed(&["execute", "../plan.md", "-y", "--no-replan"]), @"
    turn 1 rejected [id]
    --- stderr
    The plan was not accepted: 1 mistake
    ../plan.md:13: EDIT left/c.txt: `left/c.txt` is left out by the user's sparse checkout
        hint: EDIT changes files that exist; `git sparse-checkout add` adds a directory
    `teddy show 1 report.md` says what is wrong.
    exit code 3
    ");

    let whole = create("left/c.txt", "C\n")
        .replace("- **Description", "- **Overwrite:** true\n- **Description");
    std::fs::write(repo.beside("plan.md"), plan("Create", &[whole])).unwrap();
    repo.done(&["execute", "../plan.md", "-y"]);
    assert_eq!(repo.read("left/c.txt"), "C\n");
    repo.workflow().undo(1).done();
    assert_eq!(repo.git(&["diff", "HEAD", "--", "left"]), "");
}

/// Bug: TeDDy took the turn's change to such a file for undone, so `undo` left it.
#[test]
fn a_turn_in_a_file_that_is_assumed_unchanged_is_undone() {
    for mark in ["--assume-unchanged", "--skip-worktree"] {
        let repo = project();
        repo.git(&["update-index", mark, "a.txt"]);
        for title in ["One", "Two"] {
            let command = execute(&format!("echo {title} >> a.txt"));
            std::fs::write(repo.beside("plan.md"), plan(title, &[command])).unwrap();
            repo.done(&["execute", "../plan.md", "-y"]);
        }
        assert_eq!(repo.read("a.txt"), "aa\nOne\nTwo\n", "{mark}");
        let changed = repo.git(&["show", "--format=", "teddy/sessions/one^2", "--", "a.txt"]);
        assert!(changed.ends_with(" One\n+Two"), "{mark}: {changed}");
        repo.workflow().undo(1).done();
        assert_eq!(repo.read("a.txt"), "aa\nOne\n", "{mark}");
        repo.workflow().undo(1).done();
        assert_eq!(repo.read("a.txt"), "aa\n", "{mark}");
        repo.workflow().redo(2).done();
        assert_eq!(repo.read("a.txt"), "aa\nOne\nTwo\n", "{mark}");
    }
}

#[test]
fn a_shallow_clone_goes_through_a_turn_and_stays_shallow() {
    let repo = project();
    let clone = clone(&repo, &["--depth=1"]);
    turn_in(&repo, &clone);
    assert_eq!(
        repo.git_in(&clone, &["rev-parse", "--is-shallow-repository"]),
        "true"
    );
    let count = repo.git_in(&clone, &["rev-list", "--count", "HEAD"]);
    assert_eq!(count, "1");
}

#[test]
fn the_worktree_of_a_submodule_is_a_project_of_its_own() {
    let repo = project();
    let parent = repo.beside("parent");
    repo.git(&["init", "-q", "-b", "main", parent.to_str().unwrap()]);
    let from = repo.path();
    let args = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
    repo.git_in(
        &parent,
        &[&args[..], &[from.to_str().unwrap(), "part"]].concat(),
    );
    repo.git_in(&parent, &["commit", "-qm", "parent"]);
    let part = parent.join("part");
    turn_in(&repo, &part);
    assert!(parent.join(".git/modules/part/teddy").is_dir());
    assert!(
        !parent.join(".git/teddy").exists(),
        "the parent is left alone"
    );

    // The parent repository records the submodule's HEAD and does not descend into it.
    repo.teddy_in(&parent, &["new", "above"]).check(0, &[]);
    std::fs::write(
        repo.beside("above.md"),
        plan("Above", &[create("x.txt", "x\n")]),
    )
    .unwrap();
    let above = repo.beside("above.md");
    repo.teddy_in(&parent, &["execute", above.to_str().unwrap(), "-y"])
        .check(0, &[]);
    let tree = repo.git_in(&parent, &["rev-parse", "teddy/sessions/above^2:part"]);
    assert_eq!(tree, repo.git_in(&part, &["rev-parse", "HEAD"]));
}

#[test]
fn what_git_remembers_of_files_is_neither_believed_nor_broken() {
    let repo = project();
    let hook = repo.beside("monitor");
    // A broken fsmonitor that never reports a change.
    std::fs::write(
        &hook,
        "#!/bin/sh\necho asked >> \"$0.log\"\nprintf 'token\\0'\n",
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, mode).unwrap();
    repo.git(&["config", "core.untrackedCache", "true"]);
    repo.git(&["config", "core.fsmonitor", hook.to_str().unwrap()]);
    repo.git(&["config", "core.fsmonitorHookVersion", "2"]);
    repo.git(&["update-index", "--untracked-cache", "--fsmonitor"]);
    repo.git(&["status", "--short"]);
    let asked = std::fs::read(repo.beside("monitor.log")).unwrap_or_default();

    repo.write("a.txt", "aa, and more\n");
    repo.write("own.txt", "own\n");
    repo.workflow().new_session("demo").done();
    repo.run_plan(&plan(
        "Make it",
        &[create("new.txt", "new\n"), execute("git status --short")],
    ));
    repo.git(&["config", "core.fsmonitor", "false"]);
    assert_eq!(
        repo.git(&["show", "teddy/sessions/demo^2:a.txt"]),
        "aa, and more"
    );
    assert_eq!(repo.git(&["show", "teddy/sessions/demo^2:own.txt"]), "own");
    let now = std::fs::read(repo.beside("monitor.log")).unwrap_or_default();
    assert_eq!(now, asked, "the program that a repository names is not run");
    repo.workflow().undo(1).done();
    assert_eq!(repo.git(&["status", "--short"]), " M a.txt\n?? own.txt");
}
