//! What a session did, without the edits that the user made before, between and after its turns.

use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;
use teddy::workflow::land::LandOptions;

/// A project in which the user works beside two turns: on files of their own, and on those of the
/// turns.
fn project() -> TestRepo {
    let lines: String = (1..=20).map(|number| format!("l{number}\n")).collect();
    let repo = TestRepo::new()
        .file("shared.txt", &lines)
        .file("mine.txt", "1\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["shared.txt"]);
    repo.write("before.txt", "mine\n");
    repo.workflow().run_plan(&plan(
        "One",
        &[
            edit("shared.txt", "l3", "three"),
            create("turn.txt", "turn\n"),
        ],
    ));
    repo.write("mine.txt", "2\n");
    repo.write("between.txt", "mine\n");
    let shared = repo.read("shared.txt").replace("l18", "eighteen");
    repo.write("shared.txt", shared);
    repo.run_plan(&plan("Two", &[execute("echo two > two.txt")]));
    repo.write("after.txt", "mine\n");
    repo
}

/// Returns the files that a summary, a difference and a comparison count, and the lines.
#[track_caller]
fn check(repo: &TestRepo, files: &[&str], lines: (u64, u64)) {
    let diff = repo.done(&["diff", "--session", "--name-only"]);
    assert_eq!(diff.lines().collect::<Vec<_>>(), files, "diff");

    let summary = repo.json(&["export", "--format", "json"], 0);
    let rows = summary["files"].as_array().unwrap();
    let named: Vec<&str> = rows
        .iter()
        .map(|row| row["path"].as_str().unwrap())
        .collect();
    assert_eq!(named, files, "export");
    let sum = |key: &str| {
        rows.iter()
            .map(|row| row[key].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!((sum("added"), sum("removed")), lines, "export");

    let sides = repo.json(&["compare", "demo", "demo"], 0);
    let side = &sides[0];
    assert_eq!(side["files"], files.len(), "compare: {sides}");
    let counted = (&side["added"], &side["removed"]);
    assert_eq!(counted, (&lines.0.into(), &lines.1.into()), "compare");
}

#[test]
fn the_users_own_files_and_lines_are_not_counted() {
    let repo = project();
    check(&repo, &["shared.txt", "turn.txt", "two.txt"], (3, 1));
}

#[test]
fn what_landed_is_counted_and_what_is_undone_is_not() {
    let repo = project();
    repo.workflow().land(&LandOptions::default()).done();
    check(&repo, &["shared.txt", "turn.txt", "two.txt"], (3, 1));
    repo.workflow()
        .run_plan(&plan("Three", &[create("three.txt", "3\n")]));
    repo.workflow().undo(1).done();
    repo.write("later.txt", "mine\n");
    repo.workflow()
        .run_plan(&plan("Four", &[create("four.txt", "4\n")]));
    check(
        &repo,
        &["four.txt", "shared.txt", "turn.txt", "two.txt"],
        (4, 1),
    );
}

#[test]
fn what_the_user_took_back_or_changed_on_the_same_line_is_not_the_sessions() {
    let repo = project();
    repo.remove("turn.txt");
    let shared = repo.read("shared.txt").replace("l10", "mine");
    repo.write("shared.txt", shared);
    repo.workflow()
        .run_plan(&plan("Three", &[edit("shared.txt", "mine", "theirs")]));
    check(&repo, &["shared.txt", "two.txt"], (3, 2));
}

/// Bug: undo and redo counted with everything that they wrote.
#[test]
fn what_another_session_did_is_not_counted_after_undo_and_redo() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("other").done();
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.workflow().switch("other").done();
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    repo.workflow().switch("demo").done();
    check(&repo, &["one.txt"], (1, 0));
    repo.workflow().undo(1).done();
    check(&repo, &[], (0, 0));
    repo.workflow().redo(1).done();
    check(&repo, &["one.txt"], (1, 0));
}

/// Bug: the user's line counted as the session's, because an undo brought it back.
#[test]
fn what_the_user_wrote_is_not_counted_if_an_undo_brings_it_back() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "one\n}\n")]));
    repo.write("one.txt", "mine\n}\n");
    repo.done(&["restore", "0", "--theirs"]);
    assert!(!repo.path().join("one.txt").exists());
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("one.txt"), "mine\n}\n");
    check(&repo, &["one.txt"], (2, 0));
    let diff = repo.done(&["diff", "--session"]);
    assert!(diff.contains("+one") && !diff.contains("mine"), "{diff}");
    let lines = repo.json(&["blame", "one.txt"], 0);
    assert_eq!(lines[0]["kind"], "uncommitted", "{lines}");
    assert_eq!(lines[1]["turn"], 1, "{lines}");
}

/// Bug: all 20 lines counted as the session's.
#[test]
fn the_users_lines_between_those_of_two_turns_are_not_counted() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.run_plan(&plan("One", &[create("n.txt", "t1\n")]));
    let own: String = (0..20).map(|number| format!("u{number}\n")).collect();
    repo.write("n.txt", format!("t1\n{own}"));
    repo.workflow().add(&["n.txt"]);
    let two = plan("Two", &[edit("n.txt", "t1\nu0", "t1\nt2\nu0")]);
    repo.run_plan(&two);
    check(&repo, &["n.txt"], (2, 0));
}

/// Bug: a line that a restore had taken out before counted as removed.
#[test]
fn what_a_restore_took_out_of_another_session_is_not_counted_as_removed() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("other").done();
    repo.run_plan(&plan("Other", &[execute("echo t2 >> a.txt")]));
    repo.workflow().new_session("demo").done();
    repo.run_plan(&plan("One", &[create("n.txt", "n\n")]));
    repo.workflow().restore("other:0").done();
    repo.run_plan(&plan("Two", &[execute("echo t7 >> a.txt")]));
    check(&repo, &["a.txt"], (1, 0));
}
