//! A machine that forbids namespaces and mounts: every kind of run tests the files of its turn in a
//! copy, with the project's own dependencies, and says what the copy lacks.

use crate::plans::{execute, plan};
use crate::support::container::{containers, teddy_in_container};
use crate::support::overlay::overlays;
use crate::support::{Output, TestRepo};
use crate::worktree::walkthroughs::configure_models;

/// Passes if `calc.txt` is in order. The program is in an ignored directory of dependencies.
const CHECK: &str = "node_modules/.bin/check";

/// What a run says first.
const LACKS: &str = "commands run in a copy of your files: without `target`, which git ignores; `worktree.copy` or `worktree.link` provides such directories";

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file(".gitignore", "/node_modules\ntarget/\n.env\n")
        .file("calc.txt", "works\n");
    repo.commit("init");
    repo.write("target/built", "built\n");
    repo.write(".env", "KEY=1\n");
    // Outside of the project, as stores of packages are.
    repo.write("../store/expected", "works\n");
    repo.write(
        "../store/.bin/check",
        "#!/bin/sh\ncmp node_modules/expected calc.txt && echo passed\n",
    );
    let store = repo.beside("store");
    std::os::unix::fs::symlink(&store, repo.path().join("node_modules")).unwrap();
    let mut command = repo.command("chmod");
    command.arg("+x").arg(store.join(".bin/check"));
    assert!(command.status().unwrap().success());
    repo
}

/// Starts with what the copy lacks.
#[track_caller]
fn lacks(out: &Output, code: i32) {
    out.check(code, &[]);
    let mut lines = out.stderr.lines();
    assert!(lines.any(|line| line.contains(LACKS)), "{out}");
}

#[test]
fn without_namespaces_every_kind_of_run_tests_its_files_and_says_what_it_lacks() {
    let repo = project();
    if !containers(&repo) {
        return;
    }
    let teddy = |args: &[&str]| teddy_in_container(&repo, args);
    teddy(&["new", "s"]).check(0, &[]);
    teddy(&["context", "add", "calc.txt"]).check(0, &[]);

    // A turn and its replay.
    repo.put("../plan.md", plan("Test", &[execute(CHECK)]));
    lacks(&teddy(&["execute", "../plan.md", "-y"]), 0);
    let printed = teddy(&["show", "@", "output/01.txt"]);
    printed.check(0, &["passed"]);
    lacks(&teddy(&["verify", "--rerun", "1"]), 0);

    // An agent, and a race of three with a check.
    configure_models(&repo, CHECK, "calc.txt", "works", "fails");
    lacks(&teddy(&["plan", "-m", "test it", "--model", "agent"]), 0);
    teddy(&["execute", "-y"]).check(0, &[]);
    assert_eq!(repo.read("tested.txt"), "passed\n");
    let race = ["race", "go", "calc.txt", "--with", "good,good,bad"];
    let raced = teddy(&[&race[..], &["--check", CHECK]].concat());
    lacks(&raced, 0);
    assert_eq!(raced.stdout.matches("passed").count(), 2, "{raced}");
    assert_eq!(raced.stdout.matches("exit 1").count(), 1, "{raced}");
    let raced = teddy(&["race", "go", "--with", "good", "--check", "no-such-program"]);
    raced.check(0, &["cannot test (127)"]);

    // Bisect and compare.
    for file in ["../bad.md", "../good.md"] {
        teddy(&["execute", file, "-y"]).check(0, &[]);
    }
    let found = teddy(&["bisect", "run", CHECK]);
    lacks(&found, 0);
    assert!(
        found.stdout.contains("s:3 is the first bad turn"),
        "{found}"
    );
    lacks(&teddy(&["compare", "s:2", "s:3", "--check", CHECK]), 0);

    teddy(&["doctor"]).check(
        0,
        &["run in a copy of your files", "no namespace of mounts"],
    );
    assert_eq!(repo.read("target/built"), "built\n");
    assert!(repo.path().join("node_modules").is_symlink());
    teddy(&["verify"]).check(0, &[]);
}

/// Bug: the answer of a container that had the same home directory was believed until the next boot.
#[test]
fn what_a_container_cannot_do_is_tried_again_outside() {
    let repo = project();
    if !containers(&repo) || !overlays() {
        return;
    }
    repo.done(&["new", "s"]);
    let told = "Commands run in a copy of your files (no namespace of mounts)";
    teddy_in_container(&repo, &["-v", "status"]).check(0, &[told]);
    repo.teddy(&["-v", "status"])
        .check(0, &["Commands run over your files"]);

    // Nor is what the machine outside can do believed inside.
    repo.put("../plan.md", plan("Test", &[execute(CHECK)]));
    let out = teddy_in_container(&repo, &["execute", "../plan.md", "-y"]);
    out.check(
        0,
        &["commands run in a copy of your files, not over them: no namespace"],
    );
    lacks(&out, 0);
}

#[test]
fn dependencies_are_found_through_links_and_in_paths_with_spaces_and_line_breaks() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("my files, \u{fc}:\nall");
    std::fs::create_dir(&dir).unwrap();
    for backend in ["worktree.backend=auto", "worktree.backend=checkout"] {
        let repo = TestRepo::below(&dir, &[])
            .file(".gitignore", "/node_modules\n")
            .file("a.txt", "a\n");
        repo.commit("init");
        repo.write("../store/dep.txt", "dep\n");
        let link = |target: &str, at: &std::path::Path| {
            std::os::unix::fs::symlink(repo.beside(target), at).unwrap();
        };
        link("store", &repo.path().join("node_modules"));
        let below_link = repo.beside("link");
        link("repo", &below_link);

        let script = "cat node_modules/dep.txt a.txt > seen; echo x > node_modules/dep.txt; true";
        repo.put("../plan.md", plan("Look", &[execute(script)]));
        repo.teddy_in(&below_link, &["new", "s"]).check(0, &[]);
        let file = repo.beside("plan.md").display().to_string();
        let out = repo.teddy_in(&below_link, &["execute", &file, "-y", "-c", backend]);
        out.check(0, &[]);
        assert_eq!(repo.read("seen"), "dep\na\n", "{backend}: {out}");
        assert_eq!(repo.read("../store/dep.txt"), "dep\n", "{backend}");
        let bisected = repo.teddy_in(&below_link, &["bisect", "run", "test", "!", "-e", "seen"]);
        bisected.check(0, &["s:1 is the first bad turn"]);
    }
}
