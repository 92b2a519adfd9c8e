//! `restore`, `undo` and `redo`: go back to a turn and keep the user's own edits. Each is recorded
//! as a turn.

use serde_json::json;

use crate::plans::{create, edit, execute, plan};
use crate::screen::Screen;
use crate::support::TestRepo;

/// The turns change `a.txt`, create a file and delete one.
fn three_turns() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "1\n2\n3\n4\n5\n")
        .file("c.txt", "c\n")
        .file(".gitignore", "*.log\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "a.txt"]);
    repo.run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    repo.run_plan(&plan("Make b", &[create("dir/b.txt", "b\n")]));
    repo.run_plan(&plan("Delete c", &[execute("rm c.txt")]));
    repo
}

#[test]
fn the_turns_after_it_are_undone_and_the_users_own_edits_stay() {
    let repo = three_turns();
    repo.write("a.txt", "1\ntwo\n3\n4\nfive\n");
    repo.write("mine.txt", "mine\n");
    let value = repo.json(&["restore", "0"], 0);
    assert_eq!(value["turn"], 0);
    assert_eq!(value["written"], json!(["a.txt", "c.txt"]));
    assert_eq!(value["deleted"], json!(["dir/b.txt"]));
    assert_eq!(value["kept"], json!(["a.txt", "mine.txt"]));
    assert_eq!(
        (value["overlaps"].clone(), value["not_captured"].clone()),
        (json!([]), json!([]))
    );
    assert_eq!(
        value["commit"].as_str().unwrap(),
        repo.git(&["rev-parse", "teddy/sessions/demo"])
    );
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\nfive\n");
    assert_eq!(
        (repo.read("c.txt").as_str(), repo.read("mine.txt").as_str()),
        ("c\n", "mine\n")
    );
    assert!(
        !repo.path().join("dir").exists(),
        "a folder that a turn made goes with its last file"
    );
}

#[test]
fn a_file_with_own_edits_is_said_to_be_merged() {
    let repo = three_turns();
    repo.write("a.txt", "1\ntwo\n3\n4\nfive\n");
    repo.write("mine.txt", "mine\n");
    assert_eq!(
        repo.done(&["restore", "0"]),
        "merge a.txt\nwrite c.txt\ndelete dir/b.txt\nkeep mine.txt\n"
    );
}

#[test]
fn a_path_that_is_nowhere_is_refused_and_nothing_is_recorded() {
    let repo = three_turns();
    let refs = repo.git(&["for-each-ref", "refs/teddy/sessions"]);
    for args in [
        &["restore", "1", "gone.txt"][..],
        &["restore", "1", "a.txt", "gone.txt", "-n"],
    ] {
        repo.teddy(args).check(
            1,
            &["`gone.txt` is neither in turn 1 nor in a snapshot of your files"],
        );
    }
    repo.teddy(&["restore", "1", "dir", "-n"])
        .check(0, &["delete dir/b.txt"]);
    assert_eq!(repo.git(&["for-each-ref", "refs/teddy/sessions"]), refs);
}

#[test]
fn a_dry_run_says_the_same_and_changes_nothing() {
    let repo = three_turns();
    let (tree, refs) = (
        repo.tree(),
        repo.git(&["for-each-ref", "refs/teddy/sessions"]),
    );
    let dry = repo.json(&["restore", "1", "-n"], 0);
    assert_eq!(
        (
            repo.tree(),
            repo.git(&["for-each-ref", "refs/teddy/sessions"])
        ),
        (tree, refs)
    );
    assert_eq!(dry["commit"], json!(null));
    let done = repo.json(&["restore", "1"], 0);
    assert_eq!(
        (&dry["written"], &dry["deleted"]),
        (&done["written"], &done["deleted"])
    );
}

#[test]
fn what_is_said_is_about_the_paths_that_were_named() {
    let repo = three_turns();
    repo.teddy(&["restore", "1", "-n"])
        .check(0, &["Your files would match turn 1: "]);
    let path = repo.json(&["restore", "0", "-n"], 0)["deleted"][0]
        .as_str()
        .unwrap()
        .to_owned();
    repo.teddy(&["restore", "0", &path])
        .check(0, &[&format!("{path} matches turn 0: 1 file changed.\n")]);
    repo.teddy(&["restore", "3", &path, "a.txt"])
        .check(0, &[&format!("{path}, a.txt match turn 3: ")]);
}

#[test]
fn a_turn_of_another_session_is_named_as_it_was_typed() {
    let repo = three_turns();
    repo.done(&["new", "other"]);
    repo.write("own.txt", "mine\n");
    repo.teddy(&["restore", "demo:1", "--exact"])
        .check(1, &["equal to turn demo:1?\"", "hint: `-y` says yes"]);
    repo.teddy(&["restore", "demo:1", "-n"])
        .check(0, &["Your files would match turn demo:1: "]);
}

#[test]
fn exact_makes_the_files_equal_to_the_snapshot_and_what_was_there_is_kept_in_git() {
    let repo = three_turns();
    repo.write("a.txt", "mine\n");
    repo.write("new.txt", "mine too\n");
    repo.write("x.log", "ignored\n");
    repo.teddy(&["restore", "1", "--exact"]).check(1, &["`-y`"]);
    repo.done(&["restore", "1", "--exact", "-y"]);
    assert_eq!(
        repo.tree(),
        repo.git(&["rev-parse", "teddy/sessions/demo~3^2^{tree}"])
    );
    assert_eq!(repo.read("x.log"), "ignored\n");
    let before = "teddy/sessions/demo^2^";
    assert_eq!(
        repo.git(&["show", &format!("{before}:new.txt")]),
        "mine too"
    );
    repo.done(&["undo"]);
    assert_eq!(
        (repo.read("a.txt").as_str(), repo.read("new.txt").as_str()),
        ("mine\n", "mine too\n")
    );
}

#[test]
fn an_overlap_writes_nothing_and_names_the_ways_out() {
    let repo = three_turns();
    repo.write("a.txt", "1\nmy two\n3\n4\n5\n");
    let tree = repo.tree();
    let out = repo.teddy(&["restore", "0"]);
    out.check(
        4,
        &["overlap a.txt", "--ours, --theirs, --markers or --exact"],
    );
    assert_eq!(repo.tree(), tree);
    assert_eq!(repo.json(&["log"], 0)[0]["number"], 3);
    let ways = [
        ("--ours", "1\nmy two\n3\n4\n5\n"),
        ("--theirs", "1\n2\n3\n4\n5\n"),
    ];
    for (way, expected) in ways {
        repo.write("a.txt", "1\nmy two\n3\n4\n5\n");
        repo.done(&["-s", "demo", "restore", "0", way]);
        assert_eq!(repo.read("a.txt"), expected, "{way}");
        assert!(!repo.path().join("dir").exists());
        repo.done(&["restore", "3", "--exact", "-y"]);
    }
    repo.write("a.txt", "1\nmy two\n3\n4\n5\n");
    repo.done(&["restore", "0", "--markers"]);
    let text = repo.read("a.txt");
    assert!(
        text.contains("<<<<<<<") && text.contains("my two") && text.contains(">>>>>>>"),
        "{text}"
    );
}

#[test]
fn paths_restrict_it_and_are_relative_to_the_folder_in_use() {
    let repo = three_turns();
    repo.done(&["restore", "0", "c.txt"]);
    assert!(repo.path().join("c.txt").exists() && repo.path().join("dir/b.txt").exists());
    let out = repo.teddy_in(&repo.path().join("dir"), &["restore", "0", "b.txt"]);
    assert_eq!(out.code, 0, "{out}");
    assert!(!repo.path().join("dir/b.txt").exists());
    assert_eq!(repo.read("a.txt"), "1\ntwo\n3\n4\n5\n");
}

#[test]
fn undo_and_redo_walk_over_the_turns_without_an_end() {
    let repo = three_turns();
    let trees: Vec<String> = ["~3", "~2", "~1", ""]
        .iter()
        .map(|at| {
            if *at == "~3" {
                "HEAD^{tree}".to_owned()
            } else {
                format!("teddy/sessions/demo{at}^2^{{tree}}")
            }
        })
        .map(|name| repo.git(&["rev-parse", &name]))
        .collect();
    repo.done(&["undo"]);
    assert_eq!(repo.tree(), trees[2]);
    repo.done(&["undo", "2"]);
    assert_eq!(repo.tree(), trees[0]);
    repo.teddy(&["undo"]).check(1, &["nothing to undo"]);
    repo.done(&["redo"]);
    assert_eq!(repo.tree(), trees[1]);
    repo.done(&["redo", "2"]);
    assert_eq!(repo.tree(), trees[3]);
    repo.teddy(&["redo"]).check(1, &["nothing to redo"]);
    let statuses = repo.git(&[
        "log",
        "--first-parent",
        "--format=%(trailers:key=Teddy-Status,valueonly,separator=)",
        "teddy/sessions/demo",
    ]);
    assert_eq!(
        statuses
            .split_whitespace()
            .filter(|word| *word == "restored")
            .count(),
        4
    );
}

/// There can be thousands of undos and redos between the newest turn and the undone one. Only their
/// commits are read, not their files.
#[test]
fn an_undo_reads_no_turns_but_those_that_it_speaks_of() {
    let repo = three_turns();
    repo.done(&["land", "-m", "Land"]);
    repo.done(&["undo"]);
    repo.done(&["redo"]);
    let session = "refs/teddy/sessions/demo";
    let again = |turn: &str, tree: &str, previous: &str| {
        let parents = repo.git(&["log", "-1", "--format=%P", turn]);
        let message = repo.git(&["log", "-1", "--format=%B", turn]);
        let mut arguments = vec!["commit-tree", tree, "-m", &message, "-p", previous];
        arguments.extend(parents.split(' ').skip(1).flat_map(|id| ["-p", id]));
        repo.git(&arguments)
    };

    // The undo without its files, which must not be read.
    let empty = repo.git(&["mktree"]);
    let undo = again("teddy/sessions/demo~1", &empty, "teddy/sessions/demo~2");
    let redo = again(session, &format!("{session}^{{tree}}"), &undo);
    repo.git(&["update-ref", session, &redo]);
    let landed = "turns 2, 3 have landed";
    repo.teddy(&["undo", "2"]).check(0, &[landed]);
    repo.done(&["redo"]);
    assert_eq!(repo.read("dir/b.txt"), "b\n");
}

#[test]
fn an_undo_that_takes_edits_away_asks_as_a_restore_does() {
    let repo = three_turns();
    repo.write("own.txt", "mine\n");
    repo.teddy(&["undo", "--exact"]).check(
        1,
        &["stdin is not a terminal, so TeDDy cannot ask \"Make 2 files equal to turn 2?\""],
    );
    let mut screen = Screen::open(&repo, (80, 10), &["undo", "--exact"]);
    screen.wait_for("Make 2 files equal to turn 2?");
    screen.press("n");
    assert_eq!(screen.end(), 1, "{}", screen.shown());
    assert_eq!(repo.read("own.txt"), "mine\n");
    repo.done(&["undo", "--exact", "-y"]);
    assert!(!repo.path().join("own.txt").exists());
}

#[test]
fn what_was_kept_is_counted_where_there_is_something() {
    let repo = three_turns();
    repo.teddy(&["undo"])
        .check(0, &["Your files match turn 2: ", " changed.\n"]);
    repo.write("own.txt", "mine\n");
    repo.teddy(&["redo"])
        .check(0, &[" changed, 1 of your own kept.\n"]);
}

#[test]
fn a_restore_can_be_undone_like_any_turn() {
    let repo = three_turns();
    let tree = repo.tree();
    repo.done(&["restore", "1"]);
    repo.done(&["undo"]);
    assert_eq!(repo.tree(), tree);
}

#[test]
fn the_context_goes_back_too_unless_only_files_are_wanted() {
    let repo = three_turns();
    let context = || repo.done(&["show", "@", "next/turn.context"]);
    repo.done(&["restore", "1"]);
    assert!(
        context().contains(".teddy/demo/01/report.md"),
        "{}",
        context()
    );
    repo.done(&["restore", "3"]);
    repo.done(&["restore", "1", "--files-only"]);
    assert!(
        context().contains(".teddy/demo/03/report.md"),
        "{}",
        context()
    );
}

#[test]
fn any_expression_of_git_names_a_turn() {
    let repo = three_turns();
    let first = repo.git(&["rev-parse", "teddy/sessions/demo~2"]);
    for name in [
        "1",
        "@~2",
        "teddy/sessions/demo~2",
        &first,
        &first[..10],
        "demo:1",
    ] {
        assert!(
            repo.done(&["show", name, "report.md"])
                .starts_with("# Execution Report: Change a"),
            "{name}"
        );
    }
}

#[test]
fn an_abbreviated_id_of_digits_alone_names_its_turn() {
    let repo = three_turns();
    // Append to the message until the abbreviated id consists of digits.
    let mut commit = repo.git(&["cat-file", "commit", "teddy/sessions/demo~2"]);
    let id = loop {
        std::fs::write(repo.beside("commit"), format!("{commit}\n")).unwrap();
        let file = repo.beside("commit");
        let id = repo.git(&["hash-object", "-t", "commit", "-w", file.to_str().unwrap()]);
        if id[..7].bytes().all(|digit| digit.is_ascii_digit()) {
            break id;
        }
        commit.push('.');
    };
    let report = repo.done(&["show", &id[..7], "report.md"]);
    assert!(
        report.starts_with("# Execution Report: Change a"),
        "{report}"
    );
    repo.teddy(&["show", "999999"])
        .check(1, &["has no turn `999999`"]);
}

#[test]
fn what_no_snapshot_has_is_neither_overwritten_nor_deleted() {
    let repo = three_turns();
    repo.write(".env", "KEY=1\n");
    repo.write("x.log", "log\n");
    repo.done(&["restore", "0"]);
    repo.done(&["restore", "3", "--exact", "-y"]);
    assert_eq!(
        (repo.read(".env").as_str(), repo.read("x.log").as_str()),
        ("KEY=1\n", "log\n")
    );
    let value = repo.json(&["restore", "1"], 0);
    assert_eq!(value["not_captured"], json!([".env"]));
}

#[test]
fn what_a_program_had_open_can_be_brought_later_and_undone() {
    let repo = three_turns();
    let open = std::fs::File::options()
        .append(true)
        .open(repo.path().join("a.txt"))
        .unwrap();
    let more = plan(
        "More",
        &[create("new.txt", "n\n"), execute("echo six >> a.txt")],
    );
    repo.teddy_reads(&["execute", "-", "-y"], &more)
        .check(4, &["`a.txt` is open for writing in another program"]);
    drop(open);
    assert!(!repo.path().join("new.txt").exists());
    assert!(
        repo.git(&["show", "teddy/sessions/demo:meta.yaml"])
            .contains("synced: false")
    );
    let value = repo.json(&["restore", "@", "--theirs"], 0);
    assert_eq!(value["written"], json!(["a.txt", "new.txt"]));
    assert_eq!(repo.read("a.txt"), "1\ntwo\n3\n4\n5\nsix\n");
    repo.done(&["undo"]);
    assert_eq!(
        (repo.read("a.txt"), repo.path().join("new.txt").exists()),
        ("1\ntwo\n3\n4\n5\n".to_owned(), false)
    );
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn what_stands_in_for_an_object_does_not_come_into_the_files() {
    let repo = three_turns();
    let other = repo.git(&["rev-parse", "HEAD:c.txt"]);
    repo.git(&["replace", &repo.git(&["rev-parse", "HEAD:a.txt"]), &other]);
    repo.done(&["restore", "0", "--exact", "-y"]);
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\n5\n");
}

#[test]
fn an_ignored_file_that_a_turn_made_goes_with_it_unless_it_was_changed() {
    let repo = three_turns();
    repo.write("own.log", "mine\n");
    repo.run_plan(&plan("Log", &[create("made.log", "log\n")]));
    let made = || std::fs::read_to_string(repo.path().join("made.log")).ok();
    assert_eq!(repo.json(&["undo"], 0)["deleted"], json!(["made.log"]));
    assert_eq!(made(), None);
    repo.done(&["redo"]);
    assert_eq!(made().as_deref(), Some("log\n"));
    repo.write("made.log", "log\nmore\n");
    assert_eq!(repo.json(&["undo"], 4)["overlaps"], json!(["made.log"]));
    assert_eq!(
        (made().as_deref(), repo.read("own.log").as_str()),
        (Some("log\nmore\n"), "mine\n")
    );
}

#[test]
fn a_filter_that_fails_leaves_everything_as_it_is_and_holds_nothing_up() {
    let repo = TestRepo::new()
        .file(".gitattributes", "*.big filter=far\n")
        .file("a.big", "one\n")
        .file("b.txt", "one\n");
    let far = repo.beside("far");
    repo.git(&[
        "config",
        "filter.far.smudge",
        &format!("test ! -e {} && cat", far.display()),
    ]);
    repo.git(&["config", "filter.far.clean", "cat"]);
    repo.git(&["config", "filter.far.required", "true"]);
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.run_plan(&plan(
        "Two",
        &[execute("echo two > a.big; echo two > b.txt")],
    ));
    std::fs::write(&far, "").unwrap();
    repo.teddy(&["undo"]).check(
        4,
        &["filtering `a.big`", "`teddy restore @ --theirs` writes"],
    );
    assert_eq!(
        (repo.read("a.big").as_str(), repo.read("b.txt").as_str()),
        ("two\n", "two\n")
    );
    repo.done(&["new", "other"]);
    std::fs::remove_file(&far).unwrap();
    repo.done(&["-s", "demo", "restore", "@", "--theirs"]);
    assert_eq!(
        (repo.read("a.big").as_str(), repo.read("b.txt").as_str()),
        ("one\n", "one\n")
    );
}

#[test]
fn an_undo_takes_back_a_turn_whose_file_was_edited_after_a_crash() {
    let repo = TestRepo::new().file("a.txt", "1\n2\n3\n4\n5\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "a.txt"]);
    std::fs::write(
        repo.beside("plan.md"),
        plan("Change a", &[edit("a.txt", "2", "two")]),
    )
    .unwrap();
    let mut command = repo.teddy_command(&["execute", "../plan.md", "-y"]);
    let killed = command
        .current_dir(repo.path())
        .env("FAILPOINTS", "after-publish=return(kill)")
        .output()
        .unwrap();
    assert_eq!(killed.status.code(), None);
    assert_eq!(repo.read("a.txt"), "1\ntwo\n3\n4\n5\n");
    repo.write("a.txt", "1\ntwo\n3\n4\nfive\n");
    repo.teddy(&["doctor", "--fix"]).check(0, &["a.txt"]);
    repo.done(&["undo"]);
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\nfive\n");
}

/// Bug: an empty directory of another program was not counted as an obstacle, but made the undo
/// stop halfway.
#[test]
fn empty_folders_below_each_other_are_in_nobodys_way() {
    let repo = TestRepo::new().file("a", "a\n").file("e", "e\n");
    repo.commit("one");
    repo.done(&["new", "s"]);
    let script = "rm e; mkdir e; echo 1 > e/x; echo new > a";
    repo.run_plan(&plan("Replace", &[execute(script)]));
    std::fs::create_dir_all(repo.path().join("e/tmp/deep")).unwrap();
    repo.done(&["undo"]);
    assert_eq!([repo.read("a"), repo.read("e")], ["a\n", "e\n"]);

    // With a file in it, the directory stays and the undo changes nothing.
    repo.done(&["redo"]);
    repo.write("e/tmp/mine", "mine\n");
    assert_eq!(repo.teddy(&["undo"]).code, 4);
    assert_eq!([repo.read("a"), repo.read("e/x")], ["new\n", "1\n"]);
}

#[test]
fn an_empty_path_is_refused_and_not_taken_for_everything() {
    let repo = three_turns();
    for args in [
        &["restore", "0", ""][..],
        &["diff", "--", ""],
        &["log", "--", "a.txt", ""],
    ] {
        repo.teddy(args).check(2, &["a path is empty", "hint: `.`"]);
    }
    assert!(repo.path().join("dir/b.txt").exists());
}

#[test]
fn a_file_that_nobody_edited_comes_back_over_a_turn_that_brought_a_filter_for_it() {
    let upper = [
        ["config", "filter.up.clean", "tr a-z A-Z"],
        ["config", "filter.up.smudge", "tr A-Z a-z"],
    ];
    let attributes = create(".gitattributes", "x.txt filter=up\n");
    for back in [&["undo", "2"][..], &["restore", "0"]] {
        let repo = TestRepo::new().file("x.txt", "hello\n");
        upper.iter().for_each(|args| drop(repo.git(args)));
        repo.commit("init");
        repo.done(&["new", "demo"]);
        repo.run_plan(&plan("Filter", std::slice::from_ref(&attributes)));
        repo.run_plan(&plan("More", &[execute("echo more >> x.txt")]));
        let printed = repo.done(back);
        assert_eq!(printed, "write x.txt\ndelete .gitattributes\n", "{back:?}");
        assert_eq!(repo.read("x.txt"), "hello\n", "{back:?}");
        repo.done(&["restore", "2"]);
        assert_eq!(repo.read("x.txt"), "hello\nmore\n", "{back:?}");
        repo.done(&["restore", "0"]);
        assert_eq!(repo.read("x.txt"), "hello\n", "{back:?}");
    }

    let repo = TestRepo::new().file("x.txt", "1\n2\n3\nhello\n");
    upper.iter().for_each(|args| drop(repo.git(args)));
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.run_plan(&plan("Filter", &[attributes]));
    repo.write("x.txt", "own\n2\n3\nhello\n");
    repo.run_plan(&plan("More", &[execute("echo more >> x.txt")]));
    repo.done(&["undo", "2"]);
    assert_eq!(repo.read("x.txt"), "own\n2\n3\nhello\n");
}

#[test]
fn a_branch_says_nothing_of_the_turns_that_it_began_with() {
    let repo = three_turns();
    repo.done(&["branch", "1", "other"]);
    repo.teddy(&["undo"]).check(
        0,
        &["your files no longer contain turns 2 and 3 of demo; to get them back: `teddy switch demo && teddy restore @`"],
    );
}
