//! `export --bundle` and `import`: sessions in a file and back.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::plans::{create, plan};
use crate::support::TestRepo;
use crate::support::remotes::session_refs;

/// A project with two sessions. The first has a waiting plan.
pub fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("first").done();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    repo.reply(&plan("Three", &[create("three.txt", "3\n")]));
    repo.workflow().plan("make three").done();
    repo.workflow().branch("1", "second").done();
    repo.workflow().switch("first").done();
    repo
}

/// Returns a repository that shares no objects with the first.
pub fn elsewhere() -> TestRepo {
    let repo = TestRepo::new().file("other.txt", "other\n");
    repo.commit("Other");
    repo
}

/// Writes a bundle next to the repository and returns its path.
pub fn bundle(repo: &TestRepo, args: &[&str]) -> String {
    let path = repo.beside("it.bundle").to_str().unwrap().to_owned();
    repo.done(&[&["export", "--force", "--bundle", &path], args].concat());
    path
}

#[test]
fn b1_a_bundle_has_all_that_its_sessions_need() {
    let repo = project();
    let file = bundle(&repo, &["--all"]);
    let other = elsewhere();
    let users = other.users();
    assert_eq!(
        other.done(&["fetch", &file]),
        "first  2 turns  Two\nsecond  1 turn  One\n"
    );
    let tip = repo.git(&["rev-parse", "teddy/sessions/first"]);
    assert_eq!(other.git(&["rev-parse", "teddy/sessions/first"]), tip);
    assert_eq!(other.git(&["show", "teddy/sessions/first^2:two.txt"]), "2");
    assert_eq!(other.git(&["fsck", "--strict", "--no-dangling"]), "");
    assert_eq!(other.users(), users);
    other.done(&["verify"]);

    insta::assert_snapshot!(other.printed(&["fetch", &file]), @"
    first  2 turns  Two (already here)
    second  1 turn  One (already here)
    --- stderr
    Nothing to import: everything is here already.
    exit code 0
    ");
    let incoming = other.path().join(".git/teddy/incoming");
    assert_eq!(std::fs::read_dir(incoming).unwrap().count(), 0);
}

#[test]
fn b2_the_manifest_says_what_is_in_it_to_git_alone() {
    let repo = project();
    let file = bundle(&repo, &["second"]);
    let heads = repo.git(&["bundle", "list-heads", &file]);
    let names = heads.lines().map(|line| line.split_once(' ').unwrap().1);
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["refs/teddy/manifest", "refs/teddy/sessions/second"]
    );

    let other = elsewhere();
    other.git(&["fetch", "-q", &file, "refs/teddy/manifest"]);
    let text = other.git(&["show", "FETCH_HEAD:manifest.json"]);
    let manifest: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        manifest,
        json!({
            "schema": 1,
            "teddy": env!("CARGO_PKG_VERSION"),
            "made": "2026-01-02T03:04:05Z",
            "sessions": [{
                "name": "second",
                "tip": repo.git(&["rev-parse", "teddy/sessions/second"]),
                "turns": 1,
                "title": "One",
                "signed": false,
                "draft": false
            }]
        })
    );
    // A bundle made by `git bundle` has no manifest and can be imported.
    repo.git(&[
        "bundle",
        "create",
        "-q",
        &file,
        "refs/teddy/sessions/second",
    ]);
    let told = other.json(&["fetch", &file], 0);
    assert_eq!(
        (&told["manifest"], &told["ignored"]),
        (&json!(false), &json!([]))
    );
    assert_eq!(told["sessions"][0]["state"], "imported");
}

#[test]
fn the_file_is_whole_private_and_never_replaced_unasked() {
    let repo = project();
    let path = repo.beside("kept.bundle");
    let file = path.to_str().unwrap();
    let out = repo.json(&["export", "--bundle", file], 0);
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(out["bytes"], bytes.len());
    assert_eq!(out["sessions"][0]["name"], "first");
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    insta::assert_snapshot!(repo.printed(&["export", "--bundle", file, "second"]), @"
    --- stderr
    error: `[dir]/kept.bundle` already exists
    hint: `--force` replaces it
    exit code 1
    ");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    insta::assert_snapshot!(repo.printed(&["export", "--bundle", file, "second", "--force"]), @"
    [dir]/kept.bundle
    --- stderr
    1 session in [n] KiB. It holds snapshots, inputs and outputs as they are.
    exit code 0
    ");
    assert_ne!(std::fs::read(&path).unwrap(), bytes);

    // Failures leave no temporary files.
    let shown = repo.printed(&["export", "--bundle", file, "gone", "--force"]);
    insta::assert_snapshot!(shown, @"
    --- stderr
    error: there is no session `gone`
    hint: `teddy sessions` lists the sessions
    exit code 1
    ");
    let shown = repo.printed(&["export", "--bundle", "no/such/folder.bundle"]);
    insta::assert_snapshot!(shown, @"
    --- stderr
    error: cannot write `no/such/folder.bundle`: no such file or directory
    exit code 1
    ");
    let left = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let left = left.filter(|it| {
        let name = it.as_ref().unwrap().file_name();
        name.to_string_lossy().contains("teddy-tmp")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn a_bundle_goes_through_a_pipe() {
    let repo = project();
    let out = repo
        .teddy_command(&["export", "--bundle", "-", "second"])
        .current_dir(repo.path())
        .output()
        .unwrap();
    assert!(out.status.success());
    let path = repo.beside("piped.bundle");
    std::fs::write(&path, out.stdout).unwrap();
    elsewhere().done(&["fetch", path.to_str().unwrap()]);
    insta::assert_snapshot!(repo.printed(&["export", "--bundle", "-", "--json"]), @r#"
    {
      "error": {
        "exit_code": 1,
        "hint": "name a file",
        "kind": "Failed",
        "message": "standard output cannot have both the bundle and JSON"
      }
    }
    --- stderr
    error: standard output cannot have both the bundle and JSON
    hint: name a file
    exit code 1
    "#);
}

#[test]
fn b6_an_imported_session_does_not_run_until_it_is_adopted() {
    let repo = project();
    let file = bundle(&repo, &["first", "--drafts"]);
    let other = elsewhere();
    insta::assert_snapshot!(other.printed(&["fetch", &file]), @"
    first  2 turns  Two (with a turn in progress)
    --- stderr
    Imported 1 session. `teddy show -s first` shows it; `teddy switch --adopt first` makes it yours.
    exit code 0
    ");
    let run = other.teddy(&["execute", "-y", "-s", "first"]);
    insta::assert_snapshot!(run.shown(&other), @"
    --- stderr
    error: the plan waiting in session `first` is not recorded as yours
    hint: look at it with `git show refs/teddy/drafts/first:plan.md`; `teddy switch --adopt first` accepts it
    exit code 1
    ");
    assert!(!other.path().join("three.txt").exists());

    other.done(&["switch", "--adopt", "first"]);
    other.done(&["execute", "-y"]);
    assert_eq!(other.read("three.txt"), "3\n");

    // The draft is only exported with `--drafts`.
    let third = elsewhere();
    third.done(&["fetch", &bundle(&repo, &["first"])]);
    assert!(
        !session_refs(&third).contains("drafts"),
        "{}",
        session_refs(&third)
    );
}

#[test]
fn b7_a_session_that_is_here_never_moves() {
    let repo = project();
    let before = bundle(&repo, &["first"]);
    let before = std::fs::read(before).unwrap();
    repo.done(&["execute", "-y"]);
    let after = bundle(&repo, &["first", "second"]);

    // The session here has more turns than the bundle.
    let old = repo.beside("old.bundle");
    std::fs::write(&old, &before).unwrap();
    let here = session_refs(&repo);
    insta::assert_snapshot!(repo.printed(&["fetch", old.to_str().unwrap()]), @"
    first  2 turns  Two (already here)
    --- stderr
    Nothing to import: everything is here already.
    exit code 0
    ");
    assert_eq!(session_refs(&repo), here);

    // The session there has fewer turns: the import fails as a whole.
    let other = elsewhere();
    other.done(&["fetch", old.to_str().unwrap()]);
    let there = session_refs(&other);
    insta::assert_snapshot!(other.printed(&["fetch", &after]), @"
    --- stderr
    error: there is a session `first` already, with fewer turns, and an import changes no existing session
    hint: `teddy fetch FILE first --as first-2` imports it under another name
    exit code 1
    ");
    assert_eq!(session_refs(&other), there);
    other.done(&["fetch", &after, "first", "--as", "first-2"]);
    other.done(&["fetch", &after, "second"]);
    assert_eq!(session_refs(&other).lines().count(), 3);

    // The session has the same name and other turns.
    let third = elsewhere();
    third.done(&["new", "first"]);
    insta::assert_snapshot!(third.printed(&["fetch", &after]), @"
    --- stderr
    error: there is a session `first` already, with other turns
    hint: `teddy fetch FILE first --as first-2` imports it under another name
    exit code 1
    ");
    insta::assert_snapshot!(third.printed(&["fetch", &after, "--as", "x"]), @"
    --- stderr
    error: `--as` names one session, and the bundle has first, second
    hint: name the one that you mean: `teddy fetch FILE SESSION --as NAME`
    exit code 1
    ");
    insta::assert_snapshot!(third.printed(&["fetch", &after, "nobody"]), @"
    --- stderr
    error: the bundle has no session `nobody`; it has first, second
    exit code 1
    ");
}

#[test]
fn a_dry_run_changes_nothing() {
    let repo = project();
    let file = bundle(&repo, &["--all"]);
    let other = elsewhere();
    let before = other.git(&["count-objects", "-v"]);
    insta::assert_snapshot!(other.printed(&["fetch", "-n", &file]), @"
    first  2 turns  Two
    second  1 turn  One
    --- stderr
    The bundle is sound; 2 sessions would be imported.
    exit code 0
    ");
    assert_eq!(session_refs(&other), "");
    assert_eq!(other.git(&["count-objects", "-v"]), before);
    let told = other.json(&["fetch", "-n", &file], 0);
    assert_eq!(told["dry_run"], true);
}

#[test]
fn a_bundle_of_other_ids_is_refused() {
    let other = TestRepo::with(&["--object-format=sha256"]).file("a.txt", "a\n");
    other.commit("init");
    other.done(&["new", "first"]);
    let file = bundle(&other, &["first"]);
    project().teddy(&["fetch", &file]).check(
        1,
        &["its object ids are sha256, and those of this repository sha1"],
    );
    let third = TestRepo::with(&["--object-format=sha256"]);
    third.done(&["fetch", &file]);
}

#[test]
fn a_shallow_clone_has_not_all_that_a_bundle_needs() {
    let repo = project();
    repo.commit("More");
    let from = format!("file://{}", repo.path().display());
    let clone = repo.beside("clone");
    repo.git(&["clone", "-q", "--depth=1", &from, clone.to_str().unwrap()]);
    repo.done(&["-C", clone.to_str().unwrap(), "new", "here"]);
    let shown = repo
        .teddy_in(&clone, &["export", "--bundle", "x.bundle"])
        .shown(&repo);
    insta::assert_snapshot!(shown, @"
    --- stderr
    error: this clone is shallow: the beginning of its history is missing
    hint: `git fetch --unshallow` gets the rest
    exit code 1
    ");
    assert!(!clone.join("x.bundle").exists());
}

/// Imports a bundle and runs a command between the import of objects and the update of refs.
fn import_while(into: &TestRepo, file: &str, what: &str) -> crate::support::Output {
    let mut command = into.teddy_command(&["fetch", file]);
    command
        .current_dir(into.path())
        .env("FAILPOINTS", format!("before-snapshot-ref={what}"));
    crate::support::Output::of(&mut command)
}

#[test]
fn b5_an_import_that_is_killed_brings_nothing_and_can_be_repeated() {
    let repo = project();
    let file = bundle(&repo, &["--all"]);
    let other = elsewhere();
    let killed = import_while(&other, &file, "return(kill)");
    assert_ne!(killed.code, 0, "{killed}");
    assert_eq!(session_refs(&other), "");
    other.done(&["fetch", &file]);
    other.done(&["verify"]);

    let packs = other.path().join(".git/objects/pack");
    let files = std::fs::read_dir(packs).unwrap();
    let kept = files.filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with(".keep")
    });
    assert_eq!(kept.count(), 0);
    assert_eq!(other.git(&["fsck", "--strict", "--no-dangling"]), "");
}

#[test]
fn imported_objects_survive_a_prune_and_a_concurrent_session_wins() {
    let repo = project();
    let file = bundle(&repo, &["second"]);
    let other = elsewhere();
    let script = other.beside("meanwhile.sh");
    let during = |words: String| {
        std::fs::write(&script, words).unwrap();
        import_while(&other, &file, &format!("return(sh:{})", script.display()))
    };
    let git = format!("git -C '{}'", other.path().display());
    let taken = "refs/teddy/sessions/second";
    let main = other.git(&["rev-parse", "main"]);
    let late = during(format!("{git} update-ref {taken} {main}\n"));
    late.check(1, &["another process moved `refs/teddy/sessions/second`"]);
    assert_eq!(session_refs(&other), format!("{taken} {main}"));
    other.git(&["update-ref", "-d", taken]);

    during(format!("{git} gc -q --prune=now\n")).check(0, &["Imported 1 session"]);
    other.workflow().verify().done();
    assert_eq!(other.git(&["fsck", "--strict", "--no-dangling"]), "");
}
