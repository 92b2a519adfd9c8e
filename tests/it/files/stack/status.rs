//! What TeDDy reports about the user's files: after git operations, after another session, and
//! while the result of a turn is not applied.

use serde_json::{Value, json};

use super::cases::{overlapping_turn, project};
use crate::plans::{chat, create, edit, execute, plan};
use crate::support::TestRepo;

fn workspace(repo: &TestRepo) -> Value {
    repo.workflow().status()["workspace"].clone()
}

/// Asserts whether `status` reports that the files are as the newest turn left them.
fn check_as_left(repo: &TestRepo, expected: bool) {
    let out = repo.teddy(&["status"]);
    let found = out.stdout.contains("as the newest turn left them");
    assert_eq!(found, expected, "{out}");
}

/// Runs a turn that creates a file and changes another. The user commits both.
fn committed_turn() -> TestRepo {
    let repo = project();
    repo.git(&["switch", "-q", "-c", "feature"]);
    repo.workflow().run_plan(&plan(
        "One",
        &[create("f1.txt", "1\n"), edit("a.txt", "2", "two")],
    ));
    repo.commit("turn 1");
    repo
}

#[test]
fn promise_b2_a_commit_takes_nothing_away() {
    let repo = committed_turn();
    check_as_left(&repo, true);
    let files = workspace(&repo);
    assert_eq!(
        (&files["same_turns"], &files["missing"], &files["branch"]),
        (&json!(true), &json!([]), &Value::Null)
    );
}

#[test]
fn promise_b2_a_reset_that_removes_a_turn_is_reported() {
    let repo = committed_turn();
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let told = [
        "Your files match turn 1 except for 2 files:\n",
        "  a.txt: what turn 1 of one changed was taken back since; `teddy restore 1 --exact a.txt` restores it\n",
        "  f1.txt: deleted since by you; `teddy restore 1 --exact f1.txt` restores it\n",
    ];
    let out = repo.teddy(&["status"]);
    assert!(told.iter().all(|line| out.stdout.contains(line)), "{out}");
    check_as_left(&repo, false);
    assert_eq!(
        workspace(&repo)["missing"],
        json!([
            { "path": "a.txt", "why": "taken-back", "session": "one", "turn": 1 },
            { "path": "f1.txt", "why": "deleted" },
        ])
    );

    repo.done(&["restore", "1", "--exact", "-y"]);
    check_as_left(&repo, true);
}

/// Bug: the command that was named stopped at the file.
#[test]
fn promise_b2_a_file_in_place_of_a_directory_is_named_to_be_restored() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("dir/n.txt", "n\n")]));
    std::fs::remove_dir_all(repo.path().join("dir")).unwrap();
    repo.write("dir", "file\n");
    insta::assert_snapshot!(repo.printed(&["restore", "@"]), @"
    keep dir
    --- stderr
    Your files match turn 1 except for 1 file: 0 files changed, 2 of your own kept.
    dir/n.txt: `dir` is in the way; `teddy restore 1 --exact dir` puts the directory back
    exit code 0
    ");
    assert_eq!(
        workspace(&repo)["missing"],
        json!([{ "path": "dir/n.txt", "why": "blocked", "file": "dir" }])
    );
    repo.done(&["restore", "1", "--exact", "dir", "-y"]);
    check_as_left(&repo, true);
    assert_eq!(repo.read("dir/n.txt"), "n\n");
}

/// Regression: the path was printed from the root, and the command overwrote `lib/a.txt`.
#[test]
fn promise_b2_the_command_that_is_printed_works_in_the_directory_of_the_user() {
    let repo = committed_turn();
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    repo.write("lib/a.txt", "mine\n");
    let lib = repo.path().join("lib");
    insta::assert_snapshot!(repo.teddy_in(&lib, &["status"]).shown(&repo), @"
    Session one, turn 1, on branch feature
    Ready for turn 2
    Your files match turn 1 except for 2 files:
      a.txt: what turn 1 of one changed was taken back since; `teddy restore 1 --exact ../a.txt` restores it
      f1.txt: deleted since by you; `teddy restore 1 --exact ../f1.txt` restores it
    1 file changed since:
      lib/a.txt
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
    let out = repo.teddy_in(&lib, &["restore", "1", "--exact", "-y", "../a.txt"]);
    assert!(out.stdout.contains("write a.txt"), "{out}");
    assert_eq!(repo.read("a.txt"), "1\ntwo\n3\n4\n5\n");
    assert_eq!(repo.read("lib/a.txt"), "mine\n");
}

#[test]
fn promise_b2_another_branch_is_named_until_a_turn_ran_on_it() {
    let repo = committed_turn();
    repo.git(&["switch", "-q", "main"]);
    let moved = "you were on `feature` at turn 1, you are on `main` now";
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session one, turn 1, on branch main
    Ready for turn 2
    You were on `feature` at turn 1, you are on `main` now.
    Your files match turn 1 except for 2 files:
      a.txt: what turn 1 of one changed was taken back since; `teddy restore 1 --exact a.txt` restores it
      f1.txt: not on your branch `main`; `teddy restore 1 --exact f1.txt` restores it
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
    assert_eq!(
        workspace(&repo)["branch"],
        json!({ "turn": 1, "then": "feature", "now": "main" })
    );

    std::fs::write(
        repo.beside("two.md"),
        plan("Two", &[create("two.txt", "2\n")]),
    )
    .unwrap();
    repo.teddy(&["plan", "--from", "../two.md", "-m", "more"])
        .check(0, &[moved]);
    repo.teddy(&["execute", "-y"]).check(0, &[moved]);
    assert_eq!(workspace(&repo)["branch"], Value::Null);
}

#[test]
fn promise_b2_no_branch_is_another_one_too() {
    let repo = committed_turn();
    repo.git(&["switch", "-q", "--detach"]);
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session one, turn 1, on no branch
    Ready for turn 2
    You were on `feature` at turn 1, you are on no branch now.
    Your files are as the newest turn left them
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
}

#[test]
fn promise_b2_a_stash_is_missed_until_it_is_popped() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "2", "two")]));
    repo.git(&["stash", "-q"]);
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session one, turn 1, on branch main
    Ready for turn 2
    Your files match turn 1 except for 1 file:
      a.txt: what turn 1 of one changed was taken back since; `teddy restore 1 --exact a.txt` restores it
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["restore", "@", "-n"]), @"
    keep a.txt
    --- stderr
    Your files would match turn 1 except for 1 file: 0 files changed.
    a.txt: what turn 1 of one changed was taken back since; `teddy restore 1 --exact a.txt` restores it
    exit code 0
    ");
    repo.git(&["stash", "pop", "-q"]);
    check_as_left(&repo, true);
}

/// Bug: the file counted as one that lacks the turn, and the command that was named would have removed
/// the commit.
#[test]
fn promise_b2_a_commit_on_top_of_turns_takes_nothing_away() {
    let repo = committed_turn();
    repo.workflow()
        .run_plan(&plan("Two", &[edit("a.txt", "two", "zwei")]));
    repo.write("a.txt", "1\nzwei\n3\n4\nfive\n");
    repo.write("f1.txt", "1\nmore\n");
    repo.commit("five");
    let files = workspace(&repo);
    assert_eq!(
        (&files["missing"], &files["changed"]),
        (&json!([]), &json!(["a.txt", "f1.txt"]))
    );
    repo.teddy(&["restore", "@"])
        .check(0, &["Your files match turn 2: 0 files changed"]);
}

#[test]
fn promise_b2_a_commit_that_lacks_a_turn_is_named() {
    let repo = committed_turn();
    repo.write("a.txt", "1\n2\n3\n4\nfive\n");
    repo.commit("five");
    let head = repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(
        workspace(&repo)["missing"],
        json!([{ "path": "a.txt", "why": "committed", "commit": head }])
    );
}

#[test]
fn promise_b2_a_rebase_takes_nothing_away() {
    let repo = committed_turn();
    repo.git(&["switch", "-q", "main"]);
    repo.write("a.txt", "1\n2\n3\n4\nfive\n");
    repo.commit("five");
    repo.git(&["switch", "-q", "feature"]);
    repo.git(&["rebase", "-q", "main"]);
    assert_eq!(workspace(&repo)["missing"], json!([]));
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\nfive\n");
}

/// Bug: after an undo and a redo, the file counted as the turn left it, and the landing that it still
/// stopped named a command that restored nothing.
#[test]
fn promise_b2_an_undo_and_a_redo_do_not_hide_what_was_taken_back() {
    let repo = project();
    repo.write("b.txt", "1\n2\n3\n");
    repo.commit("b");
    repo.workflow()
        .run_plan(&plan("One", &[edit("b.txt", "2", "two")]));
    repo.workflow()
        .run_plan(&plan("Two", &[edit("a.txt", "2", "two")]));
    repo.git(&["checkout", "-q", "b.txt"]);
    let missing = workspace(&repo)["missing"].clone();
    let expected = json!([{ "path": "b.txt", "why": "taken-back", "session": "one", "turn": 1 }]);
    assert_eq!(missing, expected);

    repo.workflow().undo(1).done();
    assert_eq!(workspace(&repo)["missing"], expected);
    repo.workflow().redo(1).done();
    assert_eq!(workspace(&repo)["missing"], expected);
    let told = "  b.txt: what turn 1 of one changed was taken back since; `teddy restore 2 --exact b.txt` restores it";
    repo.teddy(&["status"])
        .check(0, &["Your files match turn 4 except for 1 file:\n", told]);
    repo.teddy(&["restore", "@"])
        .check(0, &["match turn 4 except for 1 file", &told[2..]]);
    repo.teddy(&["land", "-m", "both"]).check(
        4,
        &[
            "lacks turn 1: b.txt",
            "`teddy status` says what restores it",
        ],
    );

    repo.done(&["restore", "2", "--exact", "-y", "b.txt"]);
    assert_eq!(repo.read("b.txt"), "1\ntwo\n3\n");
    check_as_left(&repo, true);
}

/// Bug: it counted as a new file, and the landing that it stopped named a status that said nothing.
#[test]
fn promise_b2_a_deleted_file_that_is_there_again_is_named_unless_it_is_another() {
    let repo = project();
    repo.run_plan(&plan("One", &[execute("rm a.txt"), create("b.txt", "b\n")]));
    repo.git(&["checkout", "-q", "a.txt"]);
    let told = "  a.txt: what turn 1 of one changed was taken back since; `teddy restore 1 --exact a.txt` restores it";
    repo.teddy(&["status"]).check(0, &[told]);
    repo.teddy(&["land", "-m", "one"]).check(
        4,
        &[
            "lacks turn 1: a.txt",
            "`teddy status` says what restores it",
        ],
    );

    repo.write("a.txt", "mine\n");
    let files = workspace(&repo);
    assert_eq!(
        (&files["missing"], &files["changed"]),
        (&json!([]), &json!(["a.txt"]))
    );
    repo.done(&["restore", "1", "--exact", "-y", "a.txt"]);
    assert!(!repo.path().join("a.txt").exists());
    check_as_left(&repo, true);
}

/// Bug: it named the landing, whose files lack the turn as well.
#[test]
fn promise_b2_a_landing_does_not_hide_what_was_taken_back() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    repo.remove("one.txt");
    repo.done(&["land", "2", "-m", "two"]);
    repo.teddy(&["status"]).check(
        0,
        &["  one.txt: deleted since by you; `teddy restore 2 --exact one.txt` restores it"],
    );
}

/// Bug: a file that was never in a clone was said to be deleted by the user.
#[test]
fn promise_b2_a_file_that_no_turn_changed_is_not_missed() {
    let repo = project();
    repo.write("mine.txt", "mine\n");
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    let (clone, from) = (repo.beside("clone"), repo.path());
    let clone_name = clone.to_str().unwrap();
    repo.git(&["clone", "-q", from.to_str().unwrap(), clone_name]);
    let sessions = "refs/teddy/sessions/one:refs/teddy/sessions/one";
    repo.git_in(&clone, &["fetch", "-q", "origin", sessions]);
    repo.done(&["-C", clone_name, "switch", "one"]);
    let restored = repo.json(&["-C", clone_name, "restore", "@"], 0);
    assert_eq!(restored["missing"], json!([]));
    let status = repo.json(&["-C", clone_name, "status"], 0);
    assert_eq!(status["workspace"]["missing"], json!([]));

    repo.remove("mine.txt");
    let files = workspace(&repo);
    assert_eq!(
        (&files["missing"], &files["changed"]),
        (&json!([]), &json!(["mine.txt"]))
    );
}

#[test]
fn promise_b2_switch_and_branch_say_which_turns_are_in_the_files() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.workflow().new_session("two").done();
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    repo.write("mine.txt", "mine\n");
    let told = "your files do not match turn 1: they have turn 1 of two; `teddy restore @` takes them there";
    let name = json!([{ "session": "two", "turn": 1 }]);

    let switched = repo.json(&["switch", "one"], 0);
    assert_eq!(switched["workspace"]["extra"], name);
    assert_eq!(switched["workspace"]["changed"], json!(["mine.txt"]));
    repo.teddy(&["switch", "one"]).check(0, &["Y", &told[1..]]);
    check_as_left(&repo, false);
    repo.teddy(&["branch", "@", "alt"])
        .check(0, &["Y", &told[1..]]);
    std::fs::write(
        repo.beside("three.md"),
        plan("Three", &[create("three.txt", "3\n")]),
    )
    .unwrap();
    repo.teddy(&["plan", "--from", "../three.md", "-m", "more"])
        .check(0, &[told]);

    repo.done(&["restore", "@"]);
    insta::assert_snapshot!(repo.printed(&["switch", "one"]), @"
    --- stderr
    Switched to session one.
    Your files match turn 1.
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["switch", "two"]), @"
    --- stderr
    Switched to session two.
    Your files do not match turn 1: they lack turn 1 of two; `teddy restore @` takes them there.
    exit code 0
    ");
    repo.done(&["restore", "@"]);
    repo.write("mine.txt", "more\n");
    insta::assert_snapshot!(repo.printed(&["switch", "two"]), @"
    --- stderr
    Switched to session two.
    Your files match turn 2.
    exit code 0
    ");
}

#[test]
fn promise_b1_without_a_record_all_files_count_as_the_users() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    repo.git(&["update-ref", "-d", "refs/teddy/published/main"]);
    let gone = "TeDDy has no record of which turns are in your files, so everything in them counts as your own";
    repo.teddy(&["status"]).check(0, &[gone]);
    repo.teddy(&["undo"]).check(1, &["nothing to undo: ", gone]);
    let out = repo.teddy(&["restore", "1"]);
    out.check(
        0,
        &[
            "keep two.txt",
            gone,
            "match turn 1 except where your side was kept",
        ],
    );
    assert_eq!(repo.read("two.txt"), "2\n");

    // The restore makes the state known again.
    repo.workflow().restore("2").done();
    check_as_left(&repo, true);
    repo.workflow().restore("1").done();
    assert!(!repo.path().join("two.txt").exists());
}

/// The warning that a turn is not applied.
const NOT_BROUGHT: &str = "he result of turn 1 is not in your files (`a.txt`, `new.txt`); `teddy restore 1 --theirs` takes it, `--markers` writes conflict markers, `--ours` keeps your side";

/// Asserts that no command shows the warning.
fn check_silent(repo: &TestRepo) {
    let out = repo.teddy(&["status"]);
    assert!(!out.stdout.contains("he result of turn"), "{out}");
    assert_eq!(workspace(repo)["not_brought"], Value::Null);
    let rows = repo.json(&["log"], 0);
    let marked = |row: &&Value| row.get("not_brought").is_some();
    assert_eq!(rows.as_array().unwrap().iter().find(marked), None);
}

/// The newest turn was not applied.
fn overlapped() -> TestRepo {
    let repo = project();
    overlapping_turn(&repo);
    repo
}

#[test]
fn promise_b3_every_command_reports_an_unapplied_result() {
    let repo = overlapped();
    repo.teddy(&["status"]).check(0, &["T", NOT_BROUGHT]);
    let files = json!(["a.txt", "new.txt"]);
    assert_eq!(
        workspace(&repo)["not_brought"],
        json!({ "turn": 1, "files": files })
    );
    assert_eq!(repo.json(&["log"], 0)[0]["not_brought"], files);
    assert_eq!(repo.json(&["show", "1"], 0)["not_brought"], files);
    insta::assert_snapshot!(repo.printed(&["log"]), @"
       1 [id] 2026-01-02 03:04 executed Meet (2 files) (not in your files)
       0 [id] 2026-01-02 03:04 started  Start session one
    exit code 0
    ");

    std::fs::write(repo.beside("ask.md"), plan("Ask", &[chat("Well?")])).unwrap();
    repo.teddy(&["plan", "--from", "../ask.md", "-m", "more"])
        .check(0, &["t", NOT_BROUGHT]);
    repo.teddy(&["execute", "-y"]).check(5, &["t", NOT_BROUGHT]);
    // A turn that changes no file leaves the conflict unresolved.
    repo.teddy(&["status"]).check(0, &["T", NOT_BROUGHT]);
}

#[test]
fn promise_b3_after_each_resolution_nothing_is_reported() {
    for (way, expected) in [("--theirs", "1\ntwo\n3\n4\n5\n"), ("--ours", "mine\n")] {
        let repo = overlapped();
        repo.done(&["restore", "1", way]);
        assert_eq!(repo.read("a.txt"), expected, "{way}");
        check_silent(&repo);
        check_as_left(&repo, true);
    }
    let repo = overlapped();
    repo.done(&["restore", "1", "--markers"]);
    check_silent(&repo);
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session one, turn 2, on branch main
    Ready for turn 3
    Conflict markers are in `a.txt`.
    Your files are as the newest turn left them
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
    assert_eq!(workspace(&repo)["marked"], json!(["a.txt"]));
    repo.write("a.txt", "settled\n");
    assert_eq!(workspace(&repo)["marked"], json!([]));
}

#[test]
fn promise_b3_a_result_that_the_user_applies_counts_as_applied() {
    let repo = overlapped();
    repo.write("new.txt", "n\n");
    assert_eq!(workspace(&repo)["not_brought"]["files"], json!(["a.txt"]));
    repo.write("a.txt", "1\ntwo\n3\n4\n5\n");
    check_silent(&repo);
}

#[test]
fn promise_b3_the_next_turn_changes_files_without_the_result() {
    let repo = overlapped();
    repo.workflow()
        .run_plan(&plan("On", &[create("on.txt", "o\n")]));
    check_silent(&repo);
    check_as_left(&repo, true);
}

#[test]
fn promise_b3_a_branch_reports_it_but_not_another_session() {
    let repo = overlapped();
    repo.workflow().branch("@", "alt").done();
    repo.teddy(&["status"]).check(0, &["T", NOT_BROUGHT]);
    repo.workflow().new_session("two").done();
    check_silent(&repo);
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    check_silent(&repo);

    // A restore in another session applies the turn, and this session knows.
    repo.done(&["restore", "one:1", "--theirs"]);
    repo.workflow().switch("one").done();
    check_silent(&repo);
}

#[test]
fn promise_b3_another_checkout_lacks_the_turn_and_nothing_overlaps_there() {
    let repo = overlapped();
    let other = repo.beside("other");
    let name = other.to_str().unwrap();
    repo.git(&["worktree", "add", "-q", "-b", "other", name]);
    repo.done(&["-C", name, "switch", "one"]);
    let files = repo.json(&["-C", name, "status"], 0)["workspace"].clone();
    assert_eq!(
        (&files["not_brought"], &files["lacking"], &files["branch"]),
        (
            &Value::Null,
            &json!([{ "session": "one", "turn": 1 }]),
            &Value::Null
        )
    );
    repo.done(&["-C", name, "restore", "@"]);
    assert_eq!(
        std::fs::read_to_string(other.join("new.txt")).unwrap(),
        "n\n"
    );
    insta::assert_snapshot!(repo.printed(&["-C", name, "status"]), @"
    Session one, turn 2, on branch other
    Ready for turn 3
    Your files are as the newest turn left them
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
}

#[test]
fn promise_b3_an_undo_names_the_turns_of_others_that_go_with_it() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "2", "two")]));
    repo.workflow().new_session("other").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow()
        .run_plan(&plan("Other", &[edit("a.txt", "3", "three")]));
    insta::assert_snapshot!(repo.printed(&["-s", "one", "undo", "-n"]), @"
    write a.txt
    --- stderr
    warning: this would also remove turn 1 of other from your files
    Your files would match turn 0: 1 file changed.
    exit code 0
    ");
    let told = "your files no longer contain turn 1 of other; `teddy -s one pick other:1` applies only it, `teddy switch other` and `teddy restore @` restore all that was below as well";

    repo.teddy(&["-s", "one", "undo"]).check(0, &[told]);
    repo.workflow().switch("other").done();
    repo.done(&["restore", "@"]);
    let lines = repo.read("a.txt");
    assert!(lines.contains("two") && lines.contains("three"), "{lines}");
    // No message if no turn of another session was removed.
    repo.workflow()
        .run_plan(&plan("More", &[edit("a.txt", "4", "four")]));
    let out = repo.teddy(&["undo"]);
    assert!(
        out.code == 0 && !out.to_string().contains("as well"),
        "{out}"
    );
}
