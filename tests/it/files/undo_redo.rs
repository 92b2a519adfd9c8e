//! Undo and redo are each other's inverse, N times one is N at once, and what is said of a restore that
//! could not be applied is true.

use serde_json::{Value, json};

use crate::plans::{create, edit, execute, plan, read};
use crate::support::TestRepo;

/// A repository with a file, and a session.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "1\n2\n3\n4\n5\n")
        .file(".gitignore", ".teddy/\n*.log\n");
    repo.commit("init");
    repo.write(".teddy/global.context", "**\n");
    repo.done(&["new", "one"]);
    repo
}

/// Runs a turn that makes a file of its name.
fn turn(repo: &TestRepo, name: &str) {
    repo.run_plan(&plan(name, &[create(&format!("{name}.txt"), "x\n")]));
}

/// Returns the names of the files that turns made.
fn made(repo: &TestRepo) -> String {
    let names = ["one", "two", "three"].into_iter();
    let there = names.filter(|name| repo.path().join(format!("{name}.txt")).exists());
    there.collect::<Vec<_>>().join(" ")
}

fn three_turns() -> TestRepo {
    let repo = project();
    for name in ["one", "two", "three"] {
        turn(&repo, name);
    }
    repo
}

#[test]
fn undo_n_over_a_restore_is_n_times_undo() {
    let repo = three_turns();
    repo.done(&["restore", "2"]);
    let undone = repo.json(&["undo", "2"], 0);
    assert_eq!(
        (&undone["over"], &undone["passed_over"]),
        (&json!([4, 3]), &json!([]))
    );
    assert_eq!(made(&repo), "one two");
    repo.done(&["redo", "2"]);
    assert_eq!(made(&repo), "one two");
    repo.done(&["undo"]);
    assert_eq!(made(&repo), "one two three");

    let repo = three_turns();
    repo.done(&["restore", "0"]);
    repo.done(&["undo", "2"]);
    assert_eq!(made(&repo), "one two");
    repo.done(&["redo"]);
    assert_eq!(made(&repo), "one two three");
    repo.done(&["redo"]);
    assert_eq!(made(&repo), "");
}

#[test]
fn undo_n_conflicts_where_one_of_n_undos_would() {
    let repo = project();
    // Together the two turns change nothing.
    repo.run_plan(&plan("There", &[edit("a.txt", "1", "one")]));
    repo.run_plan(&plan("And back", &[edit("a.txt", "one", "1")]));
    repo.write("a.txt", "mine\n2\n3\n4\n5\n");
    for steps in ["1", "2"] {
        let stopped = repo.json(&["undo", steps], 4);
        assert_eq!(stopped["overlaps"], json!(["a.txt"]), "{steps}");
    }
    assert_eq!(repo.read("a.txt"), "mine\n2\n3\n4\n5\n");
}

#[test]
fn a_redo_takes_back_an_undo_that_passed_over_another_checkouts_turn() {
    let repo = project();
    let linked = repo.beside("linked");
    let name = linked.to_str().unwrap();
    repo.git(&["worktree", "add", "-q", name, "-b", "side"]);
    turn(&repo, "one");
    turn(&repo, "two");
    repo.done(&["-C", name, "switch", "one"]);
    let three = plan("three", &[create("three.txt", "x\n")]);
    let ran = repo.teddy_reads(&["-C", name, "execute", "-", "-y"], three);
    ran.check(0, &[]);

    let undone = repo.json(&["undo", "2"], 0);
    assert_eq!(undone["over"], json!([2, 1]));
    let redone = repo.teddy(&["redo", "2"]);
    redone.check(0, &["Turns 1, 2 are redone: 2 files changed."]);
    assert_eq!(made(&repo), "one two");
}

#[test]
fn a_redo_takes_back_an_undo_that_passed_over_a_turn_taken_out_by_another_session() {
    let repo = project();
    turn(&repo, "one");
    turn(&repo, "two");
    repo.done(&["branch", "1", "other"]);
    repo.done(&["restore", "@"]);
    repo.done(&["switch", "one"]);
    turn(&repo, "three");
    repo.done(&["-s", "other", "undo"]);
    let before = made(&repo);
    repo.done(&["undo"]);
    assert_ne!(made(&repo), before);
    repo.done(&["redo"]);
    assert_eq!(made(&repo), before);
}

#[test]
fn t24_a_redo_brings_back_what_the_user_had_reverted_before_the_undo() {
    let reverted = || {
        let repo = project();
        repo.run_plan(&plan("One", &[edit("a.txt", "3", "3\none")]));
        repo.git(&["stash", "-q"]);
        repo.run_plan(&plan("Two", &[execute("echo two > a.txt")]));
        repo.done(&["undo", "2"]);
        assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\n5\n");
        repo
    };
    let repo = reverted();
    repo.done(&["redo", "2"]);
    assert_eq!(repo.read("a.txt"), "two\n");
    // Step by step it is the same.
    let repo = reverted();
    repo.done(&["redo"]);
    repo.done(&["redo"]);
    assert_eq!(repo.read("a.txt"), "two\n");
}

#[test]
fn an_undo_that_never_reached_the_files_leaves_the_session_where_it_was() {
    let repo = project();
    turn(&repo, "one");
    repo.run_plan(&plan("Two", &[edit("a.txt", "2", "two")]));
    let held = std::fs::OpenOptions::new()
        .append(true)
        .open(repo.path().join("a.txt"))
        .unwrap();
    let blocked = repo.json(&["undo"], 4);
    for list in ["written", "deleted", "kept", "missing", "over"] {
        assert_eq!(blocked[list], json!([]), "{list}");
    }
    assert_eq!(blocked["overlaps"], json!(["a.txt"]));
    assert_eq!(blocked["same_turns"], json!(false));
    repo.teddy(&["undo"])
        .check(4, &["blocked a.txt", "so nothing was changed"]);
    drop(held);

    turn(&repo, "three");
    assert_eq!(repo.json(&["undo", "2"], 0)["over"], json!([5, 2]));
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\n5\n");
    assert_eq!(made(&repo), "one");
}

/// A project whose undone turn puts a file where the user has a directory with an ignored file.
fn directory_in_the_way(ignored: &str) -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "1\n")
        .file("dir/c.txt", "c\n")
        .file(".gitignore", "*.log\n.env\n");
    repo.commit("init");
    repo.done(&["new", "one"]);
    repo.run_plan(&plan(
        "One",
        &[execute("echo one > a.txt; rm -r dir; echo file > dir")],
    ));
    repo.done(&["undo"]);
    repo.write(&format!("dir/{ignored}"), "mine\n");
    repo
}

#[test]
fn an_ignored_file_in_the_way_is_an_overlap_that_every_flag_settles() {
    let repo = directory_in_the_way("y.log");
    let stopped = repo.json(&["redo"], 4);
    assert_eq!(
        (&stopped["commit"], &stopped["written"], &stopped["deleted"]),
        (&Value::Null, &json!([]), &json!([]))
    );
    assert_eq!(stopped["same_turns"], json!(false));
    assert_eq!(
        stopped["overlaps"],
        json!(["dir", "dir/c.txt", "dir/y.log"])
    );
    assert_eq!(repo.read("a.txt"), "1\n");

    repo.done(&["redo", "--theirs"]);
    assert_eq!(
        (repo.read("a.txt"), repo.read("dir")),
        ("one\n".to_owned(), "file\n".to_owned())
    );
    let replaced = repo.git(&["show", "teddy/sessions/one^2^:dir/y.log"]);
    assert_eq!(replaced, "mine");

    for flag in ["--ours", "--markers"] {
        let repo = directory_in_the_way("y.log");
        repo.done(&["redo", flag]);
        assert_eq!(repo.read("a.txt"), "one\n", "{flag}");
        assert_eq!(repo.read("dir/y.log"), "mine\n", "{flag}");
        let status = repo.teddy(&["status"]);
        assert!(!status.stdout.contains("he result of"), "{flag}: {status}");
        assert!(!status.stdout.contains("y.log"), "{flag}: {status}");
    }

    let repo = directory_in_the_way("y.log");
    repo.done(&["restore", "1", "--exact", "-y"]);
    assert_eq!(repo.read("dir"), "file\n");
    repo.done(&["undo"]);
    assert_eq!(repo.read("dir/y.log"), "mine\n");
}

#[test]
fn a_secret_in_the_way_stays_and_is_named() {
    for flag in ["--theirs", "--markers", "--exact"] {
        let repo = directory_in_the_way(".env");
        repo.teddy(&["redo", flag, "-y"]).check(
            4,
            &[
                "overlap dir",
                "`dir/.env` is in the way and in no snapshot, so nothing was changed",
            ],
        );
        assert_eq!(repo.read("dir/.env"), "mine\n", "{flag}");
        assert_eq!(repo.read("a.txt"), "1\n", "{flag}");
    }
    let repo = directory_in_the_way(".env");
    repo.done(&["redo", "--ours"]);
    assert_eq!(repo.read("dir/.env"), "mine\n");
    assert_eq!(repo.read("a.txt"), "one\n");
}

#[test]
fn an_ignored_file_where_a_turn_has_a_directory_is_in_the_way_too() {
    let in_the_way = || {
        let repo = project();
        repo.run_plan(&plan(
            "One",
            &[create("x.log/y.txt", "1\n"), create("z.txt", "z\n")],
        ));
        repo.done(&["undo"]);
        repo.write("x.log", "mine\n");
        repo
    };
    let repo = in_the_way();
    let stopped = repo.json(&["redo"], 4);
    assert_eq!(stopped["commit"], Value::Null);
    assert_eq!(repo.read("x.log"), "mine\n");
    repo.done(&["redo", "--ours"]);
    assert_eq!(
        (repo.read("x.log"), repo.read("z.txt")),
        ("mine\n".to_owned(), "z\n".to_owned())
    );
    let repo = in_the_way();
    repo.done(&["redo", "--theirs"]);
    assert_eq!(repo.read("x.log/y.txt"), "1\n");
    let replaced = repo.git(&["show", "teddy/sessions/one^2^:x.log"]);
    assert_eq!(replaced, "mine");
}

#[test]
fn markers_leave_a_directory_of_the_users_where_the_turn_has_a_file() {
    let repo = project();
    repo.run_plan(&plan("One", &[edit("a.txt", "2", "two")]));
    repo.remove("a.txt");
    repo.write("a.txt/inner", "mine\n");
    let undone = repo.json(&["undo", "--markers"], 0);
    assert_eq!(repo.read("a.txt/inner"), "mine\n");
    assert_eq!(
        (
            &undone["deleted"],
            &undone["conflicts"],
            &undone["same_turns"]
        ),
        (&json!([]), &json!([]), &json!(false))
    );
    let status = repo.teddy(&["status"]);
    assert!(!status.stdout.contains("a.txt/inner"), "{status}");
}

#[test]
fn exact_paths_leave_a_file_that_is_not_on_them() {
    let repo = project();
    repo.run_plan(&plan("One", &[create("dir/sub/x.txt", "1\n")]));
    repo.remove("dir");
    repo.write("dir", "mine\n");
    repo.teddy(&["restore", "1", "dir/sub", "--exact", "-y"])
        .check(
            4,
            &[
                "overlap dir",
                "`dir` is in the way and not on the paths that you named, so nothing was changed",
            ],
        );
    assert_eq!(repo.read("dir"), "mine\n");
    repo.done(&["restore", "1", "dir", "--exact", "-y"]);
    assert_eq!(repo.read("dir/sub/x.txt"), "1\n");
}

#[test]
fn a_file_of_another_session_is_not_kept_as_the_users() {
    let repo = project();
    turn(&repo, "one");
    repo.done(&["new", "other"]);
    turn(&repo, "two");
    repo.write("mine.txt", "mine\n");
    repo.done(&["switch", "one"]);
    let undone = repo.json(&["undo"], 0);
    assert_eq!(
        (&undone["deleted"], &undone["kept"]),
        (&json!(["one.txt", "two.txt"]), &json!(["mine.txt"]))
    );

    // A turn of another checkout is in no file here, and its own are not missed as if the user had
    // deleted them.
    let repo = project();
    turn(&repo, "one");
    repo.done(&["branch", "@", "other"]);
    turn(&repo, "two");
    repo.done(&["switch", "one"]);
    turn(&repo, "three");
    repo.done(&["switch", "other"]);
    let undone = repo.json(&["undo"], 0);
    assert_eq!(undone["kept"], json!([]));
}

#[test]
fn t14_a_plan_that_waits_survives_an_undo_and_is_named() {
    let repo = project();
    turn(&repo, "one");
    std::fs::write(
        repo.beside("two.md"),
        plan("Make two", &[create("two.txt", "x\n")]),
    )
    .unwrap();
    repo.done(&["plan", "--from", "../two.md", "-m", "more"]);
    for command in ["undo", "redo"] {
        repo.teddy(&[command])
            .check(0, &["the plan that waits was made before this: Make two"]);
        let draft = &repo.json(&["status"], 0)["draft"];
        assert_eq!(draft, &json!({ "title": "Make two", "actions": 1 }));
    }
    repo.done(&["restore", "0"]);
    repo.done(&["execute", "-y"]);
    assert_eq!(made(&repo), "two");
}

#[test]
fn t24_a_restore_that_changes_nothing_is_not_a_turn() {
    let repo = project();
    turn(&repo, "one");
    turn(&repo, "two");
    let turns = || repo.json(&["status"], 0)["turn"].clone();
    let restored = repo.json(&["restore", "@"], 0);
    assert_eq!((&restored["commit"], turns()), (&Value::Null, json!(2)));
    repo.teddy(&["restore", "2"])
        .check(0, &["Your files match turn 2: 0 files changed."]);
    assert_eq!(turns(), json!(2));

    // One that changes the context, or which turns are in the files, is one.
    repo.run_plan(&plan("Look", &[read("a.txt")]));
    repo.done(&["restore", "2"]);
    assert_eq!(turns(), json!(4));
    repo.done(&["restore", "2"]);
    assert_eq!(turns(), json!(4));
    repo.done(&["restore", "1"]);
    repo.done(&["restore", "1"]);
    assert_eq!(turns(), json!(5));
}
