//! Undo and redo are each other's inverse, N times one is N at once, and what is said of a restore that
//! could not be applied is true.

use serde_json::json;
use teddy::workflow::restore::{OnOverlap, RestoreOptions};

use crate::plans::{create, edit, plan, read};
use crate::support::TestRepo;
use crate::support::in_process::resolving;

/// A repository with a file, and a session.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "1\n2\n3\n4\n5\n")
        .file(".gitignore", ".teddy/\n*.log\n");
    repo.commit("init");
    repo.write(".teddy/global.context", "**\n");
    repo.workflow().new_session("one").done();
    repo
}

/// Runs a turn that makes a file of its name.
fn turn(repo: &TestRepo, name: &str) {
    repo.workflow()
        .run_plan(&plan(name, &[create(&format!("{name}.txt"), "x\n")]));
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

/// Bug: it said that there was nothing to redo.
#[test]
fn a_redo_of_too_many_turns_names_their_number() {
    let repo = three_turns();
    repo.workflow().undo(2).done();
    insta::assert_snapshot!(repo.printed(&["redo", "3"]), @"
    --- stderr
    error: only 2 turns can be redone
    hint: `teddy redo 2` redoes all of them
    exit code 1
    ");
    repo.workflow().redo(2).done();
    assert_eq!(made(&repo), "one two three");
}

/// A repository whose second and third turn changed only `d/b.txt`.
fn turns_in_a_folder() -> TestRepo {
    let repo = project();
    repo.write("d/b.txt", "1\n2\n3\n4\n5\n");
    repo.commit("b");
    for (title, path, line) in [
        ("One", "a.txt", "2"),
        ("Two", "d/b.txt", "2"),
        ("Three", "d/b.txt", "4"),
    ] {
        repo.workflow()
            .run_plan(&plan(title, &[edit(path, line, title)]));
    }
    repo
}

/// Bug: the undo wrote the second turn into the file again.
#[test]
fn promise_b5_an_undo_adds_no_turn_where_only_the_record_was_restored() {
    let repo = turns_in_a_folder();
    repo.git(&["checkout", "-q", "d/b.txt"]);
    repo.teddy(&["restore", "1", "d"])
        .check(0, &["d matches turn 1: 0 files changed"]);
    insta::assert_snapshot!(repo.printed(&["undo"]), @"
    write a.txt
    --- stderr
    Your files match turn 0: 1 file changed.
    Skipped turn 4 (no files changed).
    Skipped turns 2-3 (no longer in your files).
    exit code 0
    ");
    assert_eq!(repo.read("d/b.txt"), "1\n2\n3\n4\n5\n");
    repo.workflow().redo(1).done();
    assert_eq!(repo.read("d/b.txt"), "1\n2\n3\n4\n5\n");
    assert_eq!(repo.read("a.txt"), "1\nOne\n3\n4\n5\n");
}

/// Bug: the same, and the turn on top was undone first.
#[test]
fn promise_b5_an_undo_adds_no_turn_that_another_session_took_out_of_a_folder() {
    let repo = turns_in_a_folder();
    repo.workflow().new_session("two").done();
    repo.done(&["restore", "one:1", "d"]);
    repo.workflow().switch("one").done();
    repo.workflow()
        .run_plan(&plan("Four", &[edit("a.txt", "4", "Four")]));
    repo.workflow().undo(2).done();
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\n5\n");
    assert_eq!(repo.read("d/b.txt"), "1\n2\n3\n4\n5\n");
    repo.workflow().redo(1).done();
    repo.workflow().redo(1).done();
    assert_eq!(repo.read("a.txt"), "1\nOne\n3\nFour\n5\n");
    assert_eq!(repo.read("d/b.txt"), "1\n2\n3\n4\n5\n");
}

#[test]
fn undo_n_over_a_restore_is_n_times_undo() {
    let repo = three_turns();
    repo.workflow().restore("2").done();
    insta::assert_snapshot!(repo.workflow().undo(2).done(), @r"
    at turn 2
      over [4, 3]
    ");
    assert_eq!(made(&repo), "one two");
    repo.workflow().redo(2).done();
    assert_eq!(made(&repo), "one two");
    repo.workflow().undo(1).done();
    assert_eq!(made(&repo), "one two three");

    let repo = three_turns();
    repo.workflow().restore("0").done();
    repo.workflow().undo(2).done();
    assert_eq!(made(&repo), "one two");
    repo.workflow().redo(1).done();
    assert_eq!(made(&repo), "one two three");
    repo.workflow().redo(1).done();
    assert_eq!(made(&repo), "");
}

#[test]
fn undo_n_conflicts_where_one_of_n_undos_would() {
    let repo = project();
    // Together the two turns change nothing.
    repo.workflow()
        .run_plan(&plan("There", &[edit("a.txt", "1", "one")]));
    repo.workflow()
        .run_plan(&plan("And back", &[edit("a.txt", "one", "1")]));
    repo.write("a.txt", "mine\n2\n3\n4\n5\n");
    let stopped = [1, 2].map(|steps| repo.workflow().undo(steps).refused());
    insta::assert_snapshot!(stopped.concat(), @r"
    at turn 1, not the same turns, not recorded
      overlap a.txt
    at turn 0, not the same turns, not recorded
      overlap a.txt
    ");
    assert_eq!(repo.read("a.txt"), "mine\n2\n3\n4\n5\n");
}

#[test]
fn a_file_that_kept_the_users_side_is_without_the_turns_that_a_restore_reverted_before() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("First", &[edit("a.txt", "1", "one")]));
    // An edit in between: the turns are reverted in two steps.
    repo.write("a.txt", "one\n2\nmine\n4\n5\n");
    repo.workflow()
        .run_plan(&plan("Last", &[edit("a.txt", "5", "five")]));
    repo.write("a.txt", "uno\n2\nmine\n4\nfive\n");
    let ours = resolving(OnOverlap::Ours);
    repo.workflow().restore_with("0", &ours).done();
    assert_eq!(repo.read("a.txt"), "uno\n2\nmine\n4\n5\n");

    repo.workflow().restore("2").done();
    assert_eq!(repo.read("a.txt"), "uno\n2\nmine\n4\nfive\n");
}

#[test]
fn a_redo_takes_back_an_undo_that_passed_over_another_checkouts_turn() {
    let repo = project();
    repo.git(&["worktree", "add", "-q", "../linked", "-b", "side"]);
    let linked = || repo.workflow().below("../linked");
    turn(&repo, "one");
    turn(&repo, "two");
    linked().switch("one").done();
    let three = plan("three", &[create("three.txt", "x\n")]);
    linked().run_plan(&three);

    insta::assert_snapshot!(repo.workflow().undo(2).done(), @r"
    at turn 0
      over [2, 1]
      passed over 3: TakenBack
      delete one.txt
      delete two.txt
    ");
    insta::assert_snapshot!(repo.workflow().redo(2).done(), @r"
    at turn 3, not the same turns
      over [1, 2]
      write one.txt
      write two.txt
    ");
    assert_eq!(made(&repo), "one two");
}

#[test]
fn a_redo_takes_back_an_undo_that_passed_over_a_turn_taken_out_by_another_session() {
    let repo = project();
    turn(&repo, "one");
    turn(&repo, "two");
    repo.workflow().branch("1", "other").done();
    repo.workflow().restore("@").done();
    repo.workflow().switch("one").done();
    turn(&repo, "three");
    repo.workflow().session("other").undo(1).done();
    let before = made(&repo);
    repo.workflow().undo(1).done();
    assert_ne!(made(&repo), before);
    repo.workflow().redo(1).done();
    assert_eq!(made(&repo), before);
}

#[test]
fn t24_a_redo_brings_back_what_the_user_had_reverted_before_the_undo() {
    let reverted = || {
        let repo = project();
        repo.workflow()
            .run_plan(&plan("One", &[edit("a.txt", "3", "3\none")]));
        repo.git(&["stash", "-q"]);
        let whole = create("a.txt", "two\n").replace(
            "- **Description:**",
            "- **Overwrite:** true\n- **Description:**",
        );
        repo.workflow().run_plan(&plan("Two", &[whole]));
        repo.workflow().undo(2).done();
        assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\n5\n");
        repo
    };
    let repo = reverted();
    repo.workflow().redo(2).done();
    assert_eq!(repo.read("a.txt"), "two\n");
    // Step by step it is the same.
    let repo = reverted();
    repo.workflow().redo(1).done();
    repo.workflow().redo(1).done();
    assert_eq!(repo.read("a.txt"), "two\n");
}

#[test]
fn an_undo_that_never_reached_the_files_leaves_the_session_where_it_was() {
    let repo = project();
    turn(&repo, "one");
    repo.workflow()
        .run_plan(&plan("Two", &[edit("a.txt", "2", "two")]));
    let held = std::fs::OpenOptions::new()
        .append(true)
        .open(repo.path().join("a.txt"))
        .unwrap();
    let blocked = [repo.workflow().undo(1), repo.workflow().undo(1)];
    insta::assert_snapshot!(blocked.map(|reply| reply.refused()).concat(), @r"
    at turn 1, not the same turns
      overlap a.txt
      `a.txt` is open for writing in another program; once that has closed it, `teddy restore @ --theirs` writes the turn's version
    at turn 1, not the same turns
      overlap a.txt
      `a.txt` is open for writing in another program; once that has closed it, `teddy restore @ --theirs` writes the turn's version
    ");
    drop(held);

    turn(&repo, "three");
    insta::assert_snapshot!(repo.workflow().undo(2).done(), @r"
    at turn 1
      over [5, 2]
      write a.txt
      delete three.txt
    ");
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
    repo.workflow().new_session("one").done();
    repo.write("a.txt", "one\n");
    repo.remove("dir");
    repo.write("dir", "file\n");
    repo.workflow().record("One").done();
    repo.workflow().undo(1).done();
    repo.write(&format!("dir/{ignored}"), "mine\n");
    repo
}

#[test]
fn an_ignored_file_in_the_way_is_an_overlap_that_every_flag_settles() {
    let repo = directory_in_the_way("y.log");
    insta::assert_snapshot!(repo.workflow().redo(1).refused(), @r"
    at turn 1, not the same turns, not recorded
      overlap dir
      overlap dir/c.txt
      overlap dir/y.log
    ");
    assert_eq!(repo.read("a.txt"), "1\n");

    repo.workflow()
        .redo_with(1, &resolving(OnOverlap::Theirs))
        .done();
    assert_eq!(
        (repo.read("a.txt"), repo.read("dir")),
        ("one\n".to_owned(), "file\n".to_owned())
    );
    let replaced = repo.git(&["show", "teddy/sessions/one^2^:dir/y.log"]);
    assert_eq!(replaced, "mine");

    let partly = [OnOverlap::Ours, OnOverlap::Markers].map(|way| {
        let repo = directory_in_the_way("y.log");
        let reply = repo.workflow().redo_with(1, &resolving(way)).done();
        assert_eq!(repo.read("a.txt"), "one\n", "{way:?}");
        assert_eq!(repo.read("dir/y.log"), "mine\n", "{way:?}");
        let workspace = &repo.workflow().status()["workspace"];
        format!("{way:?}\n{reply}{workspace:#}\n")
    });
    insta::assert_snapshot!(partly.concat(), @r#"
    Ours
    at turn 1, not the same turns
      over [1]
      write a.txt
      keep dir
      keep dir/c.txt
    {
      "branch": null,
      "changed": [],
      "extra": [],
      "lacking": [],
      "marked": [],
      "missing": [],
      "not_brought": null,
      "not_captured": [],
      "same_turns": true
    }
    Markers
    at turn 1, not the same turns
      over [1]
      write a.txt
      keep dir
      keep dir/c.txt
    {
      "branch": null,
      "changed": [],
      "extra": [],
      "lacking": [],
      "marked": [],
      "missing": [],
      "not_brought": null,
      "not_captured": [],
      "same_turns": true
    }
    "#);

    let repo = directory_in_the_way("y.log");
    repo.workflow()
        .restore_with("1", &resolving(OnOverlap::Exact))
        .done();
    assert_eq!(repo.read("dir"), "file\n");
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("dir/y.log"), "mine\n");
}

#[test]
fn a_secret_at_a_path_of_an_undo_is_kept_and_named() {
    let stopped = [OnOverlap::Theirs, OnOverlap::Markers, OnOverlap::Exact].map(|way| {
        let repo = directory_in_the_way(".env");
        let reply = repo.workflow().redo_with(1, &resolving(way)).refused();
        assert_eq!(repo.read("dir/.env"), "mine\n", "{way:?}");
        assert_eq!(repo.read("a.txt"), "1\n", "{way:?}");
        reply
    });
    insta::assert_snapshot!(stopped.concat(), @r"
    at turn 1, not the same turns, not recorded
      overlap dir
      `dir/.env` is in the way and in no snapshot, so nothing was changed; move it away, or `--ours` leaves it there
    at turn 1, not the same turns, not recorded
      overlap dir
      `dir/.env` is in the way and in no snapshot, so nothing was changed; move it away, or `--ours` leaves it there
    at turn 1, not the same turns, not recorded
      overlap dir
      `dir/.env` is in the way and in no snapshot, so nothing was changed; move it away, or `--ours` leaves it there
    ");
    let repo = directory_in_the_way(".env");
    repo.workflow()
        .redo_with(1, &resolving(OnOverlap::Ours))
        .done();
    assert_eq!(repo.read("dir/.env"), "mine\n");
    assert_eq!(repo.read("a.txt"), "one\n");
}

#[test]
fn conflict_markers_are_named_after_a_redo_of_other_files() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "1", "one")]));
    turn(&repo, "two");
    repo.workflow().undo(2).done();
    repo.write("a.txt", "mine\n2\n3\n4\n5\n");
    repo.workflow()
        .redo_with(1, &resolving(OnOverlap::Markers))
        .done();
    repo.workflow().redo(1).done();
    assert_eq!(made(&repo), "two");
    assert_eq!(
        repo.workflow().status()["workspace"]["marked"],
        json!(["a.txt"])
    );
}

#[test]
fn an_ignored_file_where_a_turn_has_a_directory_is_in_the_way_too() {
    let in_the_way = || {
        let repo = project();
        repo.workflow().run_plan(&plan(
            "One",
            &[create("x.log/y.txt", "1\n"), create("z.txt", "z\n")],
        ));
        repo.workflow().undo(1).done();
        repo.write("x.log", "mine\n");
        repo
    };
    let repo = in_the_way();
    insta::assert_snapshot!(repo.workflow().redo(1).refused(), @r"
    at turn 1, not the same turns, not recorded
      overlap x.log
      overlap x.log/y.txt
    ");
    assert_eq!(repo.read("x.log"), "mine\n");
    repo.workflow()
        .redo_with(1, &resolving(OnOverlap::Ours))
        .done();
    assert_eq!(
        (repo.read("x.log"), repo.read("z.txt")),
        ("mine\n".to_owned(), "z\n".to_owned())
    );
    let repo = in_the_way();
    repo.workflow()
        .redo_with(1, &resolving(OnOverlap::Theirs))
        .done();
    assert_eq!(repo.read("x.log/y.txt"), "1\n");
    let replaced = repo.git(&["show", "teddy/sessions/one^2^:x.log"]);
    assert_eq!(replaced, "mine");
}

#[test]
fn markers_leave_a_directory_of_the_users_where_the_turn_has_a_file() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "2", "two")]));
    repo.remove("a.txt");
    repo.write("a.txt/inner", "mine\n");
    let undone = repo.workflow().undo_with(1, &resolving(OnOverlap::Markers));
    insta::assert_snapshot!(undone.done(), @r"
    at turn 0, not the same turns
      over [1]
      keep a.txt
      keep a.txt/inner
    ");
    assert_eq!(repo.read("a.txt/inner"), "mine\n");
    let workspace = &repo.workflow().status()["workspace"];
    insta::assert_snapshot!(format!("{workspace:#}"), @r#"
    {
      "branch": null,
      "changed": [],
      "extra": [],
      "lacking": [],
      "marked": [],
      "missing": [],
      "not_brought": null,
      "not_captured": [],
      "same_turns": true
    }
    "#);
}

#[test]
fn exact_paths_leave_a_file_that_is_not_on_them() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("dir/sub/x.txt", "1\n")]));
    repo.remove("dir");
    repo.write("dir", "mine\n");
    let below = |path: &str| RestoreOptions {
        paths: vec![path.to_owned()],
        ..resolving(OnOverlap::Exact)
    };
    let stopped = repo.workflow().restore_with("1", &below("dir/sub"));
    insta::assert_snapshot!(stopped.refused(), @r"
    at turn 1, not the same turns, not recorded
      overlap dir
      `dir` is in the way and not on the paths that you named, so nothing was changed; name it as well, or move it away
    ");
    assert_eq!(repo.read("dir"), "mine\n");
    repo.workflow().restore_with("1", &below("dir")).done();
    assert_eq!(repo.read("dir/sub/x.txt"), "1\n");
}

#[test]
fn a_file_of_another_session_is_not_kept_as_the_users() {
    let repo = project();
    turn(&repo, "one");
    repo.workflow().new_session("other").done();
    turn(&repo, "two");
    repo.write("mine.txt", "mine\n");
    repo.workflow().switch("one").done();
    insta::assert_snapshot!(repo.workflow().undo(1).done(), @r"
    at turn 0
      over [1]
      delete one.txt
      delete two.txt
      keep mine.txt
      your files no longer contain turn 1 of other; `teddy pick other:1` applies only it, `teddy switch other` and `teddy restore @` restore all that was below as well
    ");

    // A turn of another checkout is in no file here, and its own are not missed as if the user had
    // deleted them.
    let repo = project();
    turn(&repo, "one");
    repo.workflow().branch("@", "other").done();
    turn(&repo, "two");
    repo.workflow().switch("one").done();
    turn(&repo, "three");
    repo.workflow().switch("other").done();
    insta::assert_snapshot!(repo.workflow().undo(1).done(), @r"
    at turn 1
      over [2]
      delete three.txt
      delete two.txt
      your files no longer contain turn 2 of one; `teddy pick one:2` applies only it, `teddy switch one` and `teddy restore @` restore all that was below as well
    ");
}

/// Regression: only the undo said it.
#[test]
fn a_dry_run_names_the_turns_that_have_landed() {
    let repo = project();
    turn(&repo, "one");
    repo.done(&["land", "-m", "One", "-q"]);
    let commit = repo.git(&["rev-parse", "HEAD"]);
    let short = &commit[..8];
    for (args, says) in [
        (
            &["undo", "-n"][..],
            "on main, and would stay there; `git revert` takes back a commit",
        ),
        (
            &["undo"],
            "on main, where it stays; commit your files as they are now",
        ),
    ] {
        let says = format!("turn 1 has landed as {short} {says}");
        repo.teddy(args).check(0, &[&says]);
    }
}

/// Regression: it named commands that failed.
#[test]
fn a_deleted_session_is_not_named_as_one_to_switch_to() {
    let repo = project();
    turn(&repo, "one");
    repo.workflow().new_session("other").done();
    turn(&repo, "two");
    repo.done(&["gc", "other", "-y"]);
    repo.workflow().switch("one").done();
    let restored = repo.workflow().restore("@").done();
    let says = "your files no longer contain turn 1 of other (deleted); if `teddy gc` left a bundle in `.git/teddy/archive`, `teddy fetch <bundle>` restores what it has";
    assert!(restored.contains(says), "{restored}");
    assert!(!restored.contains("teddy switch"), "{restored}");
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
    repo.workflow().plan_file(Some("more"), "two.md").done();
    let waiting = json!({ "title": "Make two", "actions": 1 });
    insta::assert_snapshot!(repo.workflow().undo(1).done(), @r"
    at turn 0
      over [1]
      delete one.txt
      the plan that waits was made before this: Make two; `teddy execute` checks it against your files as they are now
    ");
    assert_eq!(repo.workflow().status()["draft"], waiting);
    insta::assert_snapshot!(repo.workflow().redo(1).done(), @r"
    at turn 1
      over [1]
      write one.txt
      the plan that waits was made before this: Make two; `teddy execute` checks it against your files as they are now
    ");
    assert_eq!(repo.workflow().status()["draft"], waiting);
    repo.workflow().restore("0").done();
    repo.workflow().execute().done();
    assert_eq!(made(&repo), "two");
}

#[test]
fn t24_a_restore_that_changes_nothing_is_not_a_turn() {
    let repo = project();
    turn(&repo, "one");
    turn(&repo, "two");
    let turns = || repo.workflow().status()["turn"].clone();
    let same = ["@", "2"].map(|turn| repo.workflow().restore(turn).done());
    insta::assert_snapshot!(same.concat(), @r"
    at turn 2, not recorded
    at turn 2, not recorded
    ");
    assert_eq!(turns(), json!(2));

    // One that changes the context, or which turns are in the files, is one.
    repo.workflow().run_plan(&plan("Look", &[read("a.txt")]));
    repo.workflow().restore("2").done();
    assert_eq!(turns(), json!(4));
    repo.workflow().restore("2").done();
    assert_eq!(turns(), json!(4));
    repo.workflow().restore("1").done();
    repo.workflow().restore("1").done();
    assert_eq!(turns(), json!(5));
}

/// Bug: with `union`, going back left the turn in the file and said that it was out, and a landing had
/// the user's own line.
#[test]
fn attributes_for_merges_change_nothing_about_turns() {
    let lines: String = (1..=30).map(|number| format!("l{number}\n")).collect();
    for attribute in ["union", "ours"] {
        let repo = TestRepo::new().file("a.txt", &lines);
        repo.write(".gitattributes", format!("a.txt merge={attribute}\n"));
        repo.commit("init");
        repo.git(&["config", "merge.ours.driver", "true"]);
        repo.workflow().new_session("demo").done();
        repo.write("a.txt", lines.replace("l5\n", "l5\nown\n"));
        repo.workflow().add(&["a.txt"]);
        repo.run_plan(&plan("One", &[edit("a.txt", "own", "own\nT1")]));
        repo.teddy(&["land", "--no-edit"])
            .check(4, &["overlap a.txt"]);
        repo.write("a.txt", repo.read("a.txt").replace("T1\n", "T1\nmine\n"));
        repo.teddy(&["undo"]).check(4, &["a.txt"]);
        repo.write(
            "a.txt",
            repo.read("a.txt")
                .replace("mine\n", "")
                .replace("l25\n", "mine 25\n"),
        );
        repo.done(&["undo"]);
        let own = lines
            .replace("l5\n", "l5\nown\n")
            .replace("l25\n", "mine 25\n");
        assert_eq!(repo.read("a.txt"), own);
    }
}
