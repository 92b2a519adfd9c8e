//! Sessions that `git filter-branch` rewrote, and how all of a session is deleted.

use crate::plans::{create, edit, plan};
use crate::support::{Output, TestRepo};

const SECRET: &str = "secret.txt";

/// A project with a session of two turns; the first one makes the secret.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow().run_plan(&plan(
        "One",
        &[create(SECRET, "hunter2\n"), edit("a.txt", "a", "b")],
    ));
    repo.workflow()
        .run_plan(&plan("Two", &[create("b.txt", "b\n")]));
    repo
}

/// Removes the secret from all refs, and everything that still holds it.
fn rewrite(repo: &TestRepo) {
    // It wants no changes in the files that git tracks.
    repo.git(&["commit", "-qam", "mine"]);
    let filter = format!("git rm -q --cached --ignore-unmatch {SECRET}");
    let mut git = repo.command("git");
    git.current_dir(repo.path())
        .env("FILTER_BRANCH_SQUELCH_WARNING", "1")
        .args(["filter-branch", "-f", "--index-filter", &filter])
        .args(["--", "--all"]);
    Output::of(&mut git).check(0, &[]);
}

/// Deletes the copies that `git filter-branch` keeps, and all objects that no ref reaches.
fn prune(repo: &TestRepo) {
    for name in repo
        .git(&["for-each-ref", "--format=%(refname)", "refs/original"])
        .lines()
    {
        repo.git(&["update-ref", "-d", name]);
    }
    repo.git(&["reflog", "expire", "--expire=now", "--all"]);
    repo.git(&["gc", "-q", "--prune=now"]);
}

/// Returns the refs from which the secret can be reached.
fn holders(repo: &TestRepo) -> Vec<String> {
    let refs = repo.git(&["for-each-ref", "--format=%(refname)"]);
    let has = |name: &&str| {
        let listed = repo.git(&["rev-list", "--objects", name]);
        listed.lines().any(|line| line.ends_with(SECRET))
    };
    refs.lines().filter(has).map(str::to_owned).collect()
}

#[test]
fn what_is_left_of_a_rewritten_session_is_shown() {
    for is_pruned in [false, true] {
        let repo = project();
        rewrite(&repo);
        if is_pruned {
            prune(&repo);
        }
        for args in [
            &["status"][..],
            &["log"],
            &["log", "--stat"],
            &["undo", "-n"],
            &["restore", "1", "-n"],
        ] {
            repo.teddy(args).check(0, &["has rewritten this session"]);
        }
        assert!(repo.done(&["log"]).contains("Two"));
        let diff = repo.done(&["diff", "1"]);
        assert!(diff.contains("+b") && !diff.contains("hunter2"), "{diff}");
        repo.done(&["diff", "--session"]);
        assert_eq!(repo.workflow().status()["rewritten"], true);
        repo.teddy(&["verify"]).check(1, &["(T3)"]);
    }
}

#[test]
fn pb6_a_rewritten_session_is_undone_and_goes_on() {
    let repo = project();
    rewrite(&repo);
    prune(&repo);
    repo.workflow().undo(2).done();
    assert_eq!(repo.read("a.txt"), "a\n");
    assert!(!repo.path().join("b.txt").exists());
    // No turn has it any more, so it is the user's.
    assert_eq!(repo.read(SECRET), "hunter2\n");
    repo.workflow().redo(2).done();
    assert_eq!(repo.read("a.txt"), "b\n");
    repo.workflow()
        .run_plan(&plan("Three", &[create("c.txt", "c\n")]));
    repo.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_session_that_is_deleted_for_good_names_every_ref_that_still_has_some_of_it() {
    for is_rewritten in [false, true] {
        let repo = project();
        repo.done(&["branch", "fork"]);
        repo.workflow().switch("demo").done();
        if is_rewritten {
            rewrite(&repo);
        }
        let planned = repo.json(&["gc", "demo", "--no-bundle", "-n"], 0);
        let done = repo.json(&["gc", "demo", "--no-bundle", "-y"], 0);
        assert_eq!(planned["held_by"], done["held_by"]);
        let named: Vec<String> = serde_json::from_value(done["held_by"].clone()).unwrap();
        let unnamed: Vec<String> = holders(&repo)
            .into_iter()
            .filter(|name| !named.contains(name))
            .collect();
        assert_eq!(unnamed, Vec::<String>::new(), "named: {named:?}");
        assert!(named.contains(&"refs/teddy/sessions/fork".to_owned()));
        let refs = repo.git(&["for-each-ref", "--format=%(refname)"]);
        assert!(
            !refs.lines().any(|name| name.ends_with("sessions/demo")),
            "{refs}"
        );
    }
}

#[test]
fn the_commands_that_gc_names_delete_what_is_left() {
    let repo = project();
    rewrite(&repo);
    let out = repo.teddy(&["gc", "demo", "--no-bundle", "-y"]);
    insta::assert_snapshot!(out.shown(&repo), @"
    session demo
    --- stderr
    warning: `refs/original/refs/teddy/published/main` still has some of it: `git update-ref -d refs/original/refs/teddy/published/main` deletes it
    warning: `refs/teddy/published/main` still has some of it: it says which turns are in your files, and `undo` in other sessions needs it; `git update-ref -d refs/teddy/published/main` deletes it
    Loose objects are packed.
    exit code 0
    ");
    let commands = out.stderr.split('`');
    let commands: Vec<&str> = commands
        .filter(|text| text.starts_with("git update-ref -d "))
        .collect();
    assert!(!commands.is_empty(), "{out}");
    for command in commands {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        repo.git(&words);
    }
    let left = holders(&repo);
    // `git filter-branch` keeps the branches of the user's, too.
    let of_teddy = left.iter().filter(|name| name.contains("teddy"));
    assert_eq!(of_teddy.count(), 0, "{left:?}");
}
