//! Paths of repositories with special characters: git in a command, and libraries that do not read the
//! quoted form, find the objects that it borrows.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::plans::{execute, plan};
use crate::support::TestRepo;
use crate::support::overlay::{CHECKOUT, OVERLAY, overlays};

/// Notes the list of borrowed objects, and whether git can use them.
const LOOK: &str = "
cat .git/objects/info/alternates > seen.txt
while IFS= read -r dir; do test -d \"$dir\" && echo exists >> seen.txt; done < .git/objects/info/alternates
git log -1 --format=%s -- a.txt >> seen.txt
git status --short a.txt >> seen.txt
git fsck --no-dangling >> seen.txt && echo sound >> seen.txt";

/// Returns what the command saw, in the order of `LOOK`.
fn seen(name: &str, backend: &str) -> String {
    let outer = tempfile::tempdir().unwrap();
    let repo = below(&outer.path().join(name));
    repo.put("../plan.md", plan("Look", &[execute(LOOK)]));
    repo.teddy(&["new", "s"]).check(0, &[]);
    let out = repo.teddy(&["execute", "../plan.md", "-y", "-c", backend]);
    out.check(0, &[]);
    repo.read("seen.txt")
}

fn below(dir: &Path) -> TestRepo {
    std::fs::create_dir(dir).unwrap();
    let repo = TestRepo::below(dir, &[]).file("a.txt", "a\n");
    repo.commit("init");
    repo
}

#[test]
fn objects_are_borrowed_by_a_plain_path_wherever_one_line_can_hold_it() {
    let names = [
        "with space",
        " quote\"d and it's #back\\slash, \u{fc}ml\u{e4}ut \u{1f4a1}: $HOME `x` ",
    ];
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        for name in names {
            let text = seen(name, backend);
            let (path, rest) = text.split_once('\n').unwrap();
            assert!(path.starts_with('/') && path.ends_with("objects"), "{path}");
            assert!(path.contains(name), "{text}");
            assert_eq!(rest, "exists\ninit\nsound\n", "{backend}: {text}");
        }
    }
}

/// No other form of such a path is one line, so git alone can read it.
#[test]
fn a_path_with_control_characters_is_quoted_for_git() {
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        let text = seen("tab\there, line\nbreak, \u{1b}[31mred", backend);
        assert!(text.starts_with("\"/"), "{text}");
        assert!(text.ends_with("\"\ninit\nsound\n"), "{backend}: {text}");
    }
}

#[test]
fn a_path_that_is_not_utf_8_is_refused_before_a_session_begins() {
    let outer = tempfile::tempdir().unwrap();
    let repo = below(&outer.path().join(OsStr::from_bytes(b"not \xff UTF-8")));
    insta::assert_snapshot!(repo.printed(&["new", "s"]), @"
    --- stderr
    error: the path `[dir]/repo` is not valid UTF-8
    hint: rename the directory; TeDDy records paths in files that must be UTF-8
    exit code 1
    ");
    let refs = repo.git(&["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, "refs/heads/main");
}

#[test]
fn an_alternate_that_is_gone_does_not_stop_a_commit() {
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        let repo = TestRepo::new().file("a.txt", "a\n");
        repo.commit("init");
        repo.put(".git/objects/info/alternates", "/nowhere/objects\n");
        repo.done(&["new", "s"]);
        let commits = plan(
            "Commit",
            &[execute("echo n > n; git add n; git commit -qm n")],
        );
        let out = repo.teddy_reads(&["-q", "execute", "-", "-y", "-c", backend], commits);
        assert_eq!(out.code, 0, "{out}");
        let log = repo.git(&["log", "--format=%s", "refs/teddy/sessions/s^2"]);
        assert_eq!(log.lines().last(), Some("init"), "{log}");
        assert!(log.lines().any(|subject| subject == "n"), "{log}");
    }
}
