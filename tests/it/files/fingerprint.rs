//! The fingerprint of the user's repository state reports what a command changed, and nothing else.

use teddy::git::fingerprint;
use teddy::git::fingerprint::{DifferenceKind, RepositoryDifference};

use crate::support::TestRepo;

/// A repository with a commit, a stash and a hook.
fn repo() -> TestRepo {
    let repo = TestRepo::new().file("a", "1").file("b", "1");
    repo.commit("one");
    repo.write("a", "2");
    repo.git(&["stash", "-q"]);
    repo.write(".git/hooks/pre-commit", "#!/bin/sh\n");
    repo
}

/// Changes a repository and compares the reported differences.
fn check(change: impl Fn(&TestRepo), expected: &[(&str, DifferenceKind)]) {
    let repo = repo();
    let before = fingerprint::take_fingerprint(&repo.open()).unwrap();
    change(&repo);
    let found = before.differences(&fingerprint::take_fingerprint(&repo.open()).unwrap());
    let expected: Vec<_> = expected
        .iter()
        .map(|&(part, what)| RepositoryDifference {
            part: part.to_owned(),
            kind: what,
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn what_a_command_changed_is_named() {
    use DifferenceKind::{Added, Changed, Removed};
    check(
        |r| drop(r.git(&["config", "core.pager", "evil"])),
        &[("config", Changed)],
    );
    check(
        |r| r.write(".git/hooks/post-commit", "x"),
        &[("hooks/post-commit", Added)],
    );
    check(
        |r| r.write(".git/info/attributes", "x"),
        &[("info/attributes", Added)],
    );
    check(
        |r| drop(r.git(&["branch", "new"])),
        &[("refs/heads/new", Added)],
    );
    check(
        |r| drop(r.git(&["stash", "drop", "-q"])),
        &[("logs/refs/stash", Removed), ("refs/stash", Removed)],
    );
    check(
        |r| drop(r.git(&["checkout", "-q", "--detach"])),
        &[("HEAD", Changed)],
    );
    check(
        |r| (r.write("b", "2"), r.git(&["add", "b"])).1.clear(),
        &[("index", Changed)],
    );
    check(
        |r| (r.git(&["commit", "-q", "--allow-empty", "-m", "two"]), ()).1,
        &[("refs/heads/main", Changed)],
    );
}

#[test]
fn what_says_the_same_is_no_difference() {
    check(|r| drop(r.git(&["pack-refs", "--all"])), &[]);
    check(
        |r| {
            (r.write("b", "1"), r.git(&["update-index", "--refresh"]))
                .1
                .clear()
        },
        &[],
    );
    check(
        |r| drop(r.git(&["update-ref", "refs/teddy/sessions/x", "HEAD"])),
        &[],
    );
    check(|r| r.write("b", "2"), &[]);
}

#[test]
fn an_executable_bit_of_a_hook_counts() {
    use std::os::unix::fs::PermissionsExt;
    let path = ".git/hooks/pre-commit";
    let allow = |r: &TestRepo| {
        std::fs::set_permissions(r.path().join(path), std::fs::Permissions::from_mode(0o755))
            .unwrap()
    };
    check(allow, &[("hooks/pre-commit", DifferenceKind::Changed)]);
}
