//! `restore`, `undo` and `redo`: go back to a turn and keep the user's own edits. Each is recorded
//! as a turn.

use crate::support::landing::land_as;
use teddy::workflow::restore::{OnOverlap, RestoreOptions};

use crate::plans::{create, edit, execute, plan};
use crate::screen::Screen;
use crate::support::TestRepo;
use crate::support::in_process::resolving;

/// Makes turns that change `a.txt`, create a file and delete one.
pub fn three_turns() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "1\n2\n3\n4\n5\n")
        .file("c.txt", "c\n")
        .file(".gitignore", "*.log\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    repo.workflow()
        .run_plan(&plan("Make b", &[create("dir/b.txt", "b\n")]));
    repo.remove("c.txt");
    repo.workflow().record("Delete c").done();
    repo
}

fn dry_run() -> RestoreOptions {
    RestoreOptions {
        dry_run: true,
        ..RestoreOptions::default()
    }
}

fn paths(paths: &[&str]) -> RestoreOptions {
    RestoreOptions {
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..RestoreOptions::default()
    }
}

#[test]
fn a_restore_undoes_later_turns_and_keeps_own_edits() {
    let repo = three_turns();
    repo.write("a.txt", "1\ntwo\n3\n4\nfive\n");
    repo.write("mine.txt", "mine\n");
    insta::assert_snapshot!(repo.workflow().restore("0").done(), @r"
    at turn 0
      write a.txt
      write c.txt
      delete dir/b.txt
      keep a.txt
      keep mine.txt
    ");
    assert_eq!(repo.workflow().turn("4")["status"], "restored");
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
fn a_path_that_is_nowhere_is_refused_and_nothing_is_recorded() {
    let repo = three_turns();
    let refs = repo.git(&["for-each-ref", "refs/teddy/sessions"]);
    let several = RestoreOptions {
        dry_run: true,
        ..paths(&["a.txt", "gone.txt"])
    };
    for options in [paths(&["gone.txt"]), several] {
        let refused = repo.workflow().restore_with("1", &options).refused();
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused, @r"
            error: `gone.txt` is neither in turn 1 nor in a snapshot of your files
            exit code 1
            ");
        }
    }
    let dir = RestoreOptions {
        dry_run: true,
        ..paths(&["dir"])
    };
    insta::assert_snapshot!(repo.workflow().restore_with("1", &dir).done(), @r"
    at turn 1, not recorded
      delete dir/b.txt
    ");
    assert_eq!(repo.git(&["for-each-ref", "refs/teddy/sessions"]), refs);
}

#[test]
fn a_dry_run_says_the_same_and_changes_nothing() {
    let repo = three_turns();
    let (tree, refs) = (
        repo.tree(),
        repo.git(&["for-each-ref", "refs/teddy/sessions"]),
    );
    let dry = repo.workflow().restore_with("1", &dry_run()).done();
    assert_eq!(
        (
            repo.tree(),
            repo.git(&["for-each-ref", "refs/teddy/sessions"])
        ),
        (tree, refs)
    );
    insta::assert_snapshot!(dry, @r"
    at turn 1, not recorded
      write c.txt
      delete dir/b.txt
    ");
    let done = repo.workflow().restore("1").done();
    assert_eq!(dry.replace(", not recorded", ""), done);
}

#[test]
fn exact_makes_the_files_equal_to_the_snapshot_and_what_was_there_is_kept_in_git() {
    let repo = three_turns();
    repo.write("a.txt", "mine\n");
    repo.write("new.txt", "mine too\n");
    repo.write("x.log", "ignored\n");
    let unasked = repo.teddy(&["restore", "1", "--exact"]);
    insta::assert_snapshot!(unasked.to_string(), @r#"
    exit code 1
    --- stdout

    --- stderr
    error: stdin is not a terminal, so TeDDy cannot ask "Make 4 files equal to turn 1?"
    hint: `-y` says yes
    "#);
    repo.workflow()
        .restore_with("1", &resolving(OnOverlap::Exact))
        .done();
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
    repo.workflow().undo(1).done();
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
    insta::assert_snapshot!(out.to_string(), @r"
    exit code 4
    --- stdout
    overlap a.txt

    --- stderr
    warning: your own edits overlap with what the turns did; use --ours, --theirs, --markers or --exact
    ");
    assert_eq!(repo.tree(), tree);
    assert_eq!(repo.workflow().log()[0]["number"], 3);
    let ways = [
        (OnOverlap::Ours, "1\nmy two\n3\n4\n5\n"),
        (OnOverlap::Theirs, "1\n2\n3\n4\n5\n"),
    ];
    for (way, expected) in ways {
        repo.write("a.txt", "1\nmy two\n3\n4\n5\n");
        repo.workflow().restore_with("0", &resolving(way)).done();
        assert_eq!(repo.read("a.txt"), expected, "{way:?}");
        assert!(!repo.path().join("dir").exists());
        repo.workflow()
            .restore_with("3", &resolving(OnOverlap::Exact))
            .done();
    }
    repo.write("a.txt", "1\nmy two\n3\n4\n5\n");
    repo.workflow()
        .restore_with("0", &resolving(OnOverlap::Markers))
        .done();
    insta::assert_snapshot!(repo.read("a.txt"), @r"
    1
    <<<<<<< yours
    my two
    =======
    2
    >>>>>>> turn
    3
    4
    5
    ");
}

#[test]
fn paths_restrict_it_and_are_relative_to_the_folder_in_use() {
    let repo = three_turns();
    repo.workflow().restore_with("0", &paths(&["c.txt"])).done();
    assert!(repo.path().join("c.txt").exists() && repo.path().join("dir/b.txt").exists());
    // Relative paths are resolved by the command line.
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
    repo.workflow().undo(1).done();
    assert_eq!(repo.tree(), trees[2]);
    repo.workflow().undo(2).done();
    assert_eq!(repo.tree(), trees[0]);
    insta::assert_snapshot!(repo.workflow().undo(1).refused(), @r"
    error: nothing to undo
    hint: `teddy log` lists the turns; `teddy restore <turn>` goes back to one
    exit code 1
    ");
    repo.workflow().redo(1).done();
    assert_eq!(repo.tree(), trees[1]);
    repo.workflow().redo(2).done();
    assert_eq!(repo.tree(), trees[3]);
    insta::assert_snapshot!(repo.workflow().redo(1).refused(), @r"
    error: nothing to redo
    hint: `teddy log` lists the turns; `teddy restore <turn>` goes to one
    exit code 1
    ");
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
    repo.workflow().land(&land_as("Land")).done();
    repo.workflow().undo(1).done();
    repo.workflow().redo(1).done();
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
    insta::assert_snapshot!(repo.workflow().undo(2).done(), @"
    at turn 1
      over [3, 2]
      passed over 4: Landed
      write c.txt
      delete dir/b.txt
      turns 2, 3 have landed as [id] on main, where it stays; commit your files as they are now, or `teddy redo` and then `git revert [id]`
    ");
    repo.workflow().redo(1).done();
    assert_eq!(repo.read("dir/b.txt"), "b\n");
}

#[test]
fn an_undo_that_takes_edits_away_asks_as_a_restore_does() {
    let repo = three_turns();
    repo.write("own.txt", "mine\n");
    insta::assert_snapshot!(repo.printed(&["undo", "--exact"]), @r#"
    --- stderr
    error: stdin is not a terminal, so TeDDy cannot ask "Make 2 files equal to turn 2?"
    hint: `-y` says yes
    exit code 1
    "#);
    let mut screen = Screen::open(&repo, (80, 10), &["undo", "--exact"]);
    screen.wait_for("Make 2 files equal to turn 2?");
    screen.press("n");
    assert_eq!(screen.end(), 1, "{}", screen.shown());
    assert_eq!(repo.read("own.txt"), "mine\n");
    repo.workflow()
        .undo_with(1, &resolving(OnOverlap::Exact))
        .done();
    assert!(!repo.path().join("own.txt").exists());
}

#[test]
fn a_restore_can_be_undone_like_any_turn() {
    let repo = three_turns();
    let tree = repo.tree();
    repo.workflow().restore("1").done();
    repo.workflow().undo(1).done();
    assert_eq!(repo.tree(), tree);
}

#[test]
fn the_context_goes_back_too_unless_only_files_are_wanted() {
    let repo = three_turns();
    let context = || repo.workflow().artifact("@", "next/turn.context");
    let first = ".teddy/demo/01/report.md\n.teddy/demo/01/plan.md\n";
    let second = "dir/b.txt\n.teddy/demo/02/report.md\n.teddy/demo/02/plan.md\n";
    repo.workflow().restore("1").done();
    assert_eq!(context(), first);
    repo.workflow().restore("2").done();
    assert_eq!(context(), second);
    let files_only = RestoreOptions {
        files_only: true,
        ..RestoreOptions::default()
    };
    repo.workflow().restore_with("1", &files_only).done();
    assert_eq!(context(), second);
}

/// Bug: the context went back, and a restore of paths that had nothing to change was a turn.
#[test]
fn a_restore_of_paths_keeps_the_context_and_says_in_its_title_what_it_restored() {
    let repo = three_turns();
    let context = || repo.workflow().artifact("@", "next/turn.context");
    let before = context();
    let tip = || repo.git(&["rev-parse", "teddy/sessions/demo"]);
    let first = tip();
    let nothing = repo.json(&["restore", "0", ".gitignore"], 0);
    assert!(nothing["commit"].is_null());
    assert_eq!(tip(), first);
    repo.workflow()
        .restore_with("0", &paths(&["a.txt", "dir"]))
        .done();
    assert_eq!(context(), before);
    let meta = repo.git(&["show", "teddy/sessions/demo:meta.yaml"]);
    assert!(meta.contains("  paths:\n  - a.txt\n  - dir"), "{meta}");
    let title = repo.git(&["log", "-1", "--format=%s", "teddy/sessions/demo"]);
    assert_eq!(
        title,
        "Restore a.txt and 1 other path to 0: Start session demo"
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
            repo.workflow()
                .artifact(name, "report.md")
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
    let report = repo.workflow().artifact(&id[..7], "report.md");
    assert!(
        report.starts_with("# Execution Report: Change a"),
        "{report}"
    );
    insta::assert_snapshot!(repo.workflow().find_turn("999999").refused(), @r"
    error: session `demo` has no turn `999999`; its turns are 0 to 3
    hint: `teddy log` lists the turns
    exit code 1
    ");
}

#[test]
fn what_no_snapshot_has_is_neither_overwritten_nor_deleted() {
    let repo = three_turns();
    repo.write(".env", "KEY=1\n");
    repo.write("x.log", "log\n");
    repo.workflow().restore("0").done();
    repo.workflow()
        .restore_with("3", &resolving(OnOverlap::Exact))
        .done();
    assert_eq!(
        (repo.read(".env").as_str(), repo.read("x.log").as_str()),
        ("KEY=1\n", "log\n")
    );
    insta::assert_snapshot!(repo.workflow().restore("1").done(), @r"
    at turn 1
      write c.txt
      delete dir/b.txt
      not captured .env
    ");
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
    insta::assert_snapshot!(repo.teddy_reads(&["execute", "-", "-y"], &more).shown(&repo), @r#"
    turn 4 executed [id]
    --- stderr
    ▶ Reviewing Plan: "More"
      demo · turn 4 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      More, because it is wanted.
     Changes: 1 file  +1
      new.txt  +1  new file
        +n
     Action Plan:
      - CREATE: 1 file
      - EXECUTE: 1 command (sandboxed, no network)
        $ echo six >> a.txt
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE new.txt
      ✓ created, 1 line
    ▶ 2. EXECUTE echo six >> a.txt
      ✓ the command succeeded
    warning: `a.txt` is open for writing in another program; once that has closed it, `teddy restore @ --theirs` writes the turn's version
    exit code 4
    "#);
    drop(open);
    assert!(!repo.path().join("new.txt").exists());
    assert!(
        repo.git(&["show", "teddy/sessions/demo:meta.yaml"])
            .contains("synced: false")
    );
    let applied = repo
        .workflow()
        .restore_with("@", &resolving(OnOverlap::Theirs));
    insta::assert_snapshot!(applied.done(), @r"
    at turn 4
      write a.txt
      write new.txt
    ");
    assert_eq!(repo.read("a.txt"), "1\ntwo\n3\n4\n5\nsix\n");
    repo.workflow().undo(1).done();
    assert_eq!(
        (repo.read("a.txt"), repo.path().join("new.txt").exists()),
        ("1\ntwo\n3\n4\n5\n".to_owned(), false)
    );
    repo.git(&["fsck", "--strict"]);
}

#[test]
fn a_replacement_of_an_object_is_not_written_to_files() {
    let repo = three_turns();
    let other = repo.git(&["rev-parse", "HEAD:c.txt"]);
    repo.git(&["replace", &repo.git(&["rev-parse", "HEAD:a.txt"]), &other]);
    repo.workflow()
        .restore_with("0", &resolving(OnOverlap::Exact))
        .done();
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\n5\n");
}

#[test]
fn an_ignored_file_that_a_turn_made_goes_with_it_unless_it_was_changed() {
    let repo = three_turns();
    repo.write("own.log", "mine\n");
    repo.workflow()
        .run_plan(&plan("Log", &[create("made.log", "log\n")]));
    let made = || std::fs::read_to_string(repo.path().join("made.log")).ok();
    insta::assert_snapshot!(repo.workflow().undo(1).done(), @r"
    at turn 3
      over [4]
      delete made.log
    ");
    assert_eq!(made(), None);
    repo.workflow().redo(1).done();
    assert_eq!(made().as_deref(), Some("log\n"));
    repo.write("made.log", "log\nmore\n");
    insta::assert_snapshot!(repo.workflow().undo(1).refused(), @r"
    at turn 3, not the same turns, not recorded
      overlap made.log
    ");
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
    repo.workflow().new_session("demo").done();
    repo.write("a.big", "two\n");
    repo.write("b.txt", "two\n");
    repo.workflow().record("Two").done();
    std::fs::write(&far, "").unwrap();
    insta::assert_snapshot!(repo.workflow().undo(1).refused(), @r#"
    at turn 0, not the same turns
      overlap a.big
      filtering `a.big`: Driver process cd "[dir]/repo" && GIT_DIR="[dir]/repo/.git" GIT_NO_REPLACE_OBJECTS="1" GIT_WORK_TREE="[dir]/repo" "/bin/sh" "-c" "test ! -e [dir]/far && cat" "sh" failed, exit_code=1, exit_status="exit status: 1", program="/bin/sh"; once that works, `teddy restore @ --theirs` writes the turn's version
    "#);
    assert_eq!(
        (repo.read("a.big").as_str(), repo.read("b.txt").as_str()),
        ("two\n", "two\n")
    );
    repo.workflow().new_session("other").done();
    std::fs::remove_file(&far).unwrap();
    repo.workflow()
        .session("demo")
        .restore_with("@", &resolving(OnOverlap::Theirs))
        .done();
    assert_eq!(
        (repo.read("a.big").as_str(), repo.read("b.txt").as_str()),
        ("one\n", "one\n")
    );
}

#[test]
fn an_undo_takes_back_a_turn_whose_file_was_edited_after_a_crash() {
    let repo = TestRepo::new().file("a.txt", "1\n2\n3\n4\n5\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
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
    insta::assert_snapshot!(repo.workflow().recover().done(), @r"
    finished an interrupted turn of `demo`: 0 files
    `a.txt` was changed meanwhile and is left as it is
    recovered: true
    ");
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\nfive\n");
}

/// Bug: an empty directory of another program was not counted as an obstacle, but made the undo
/// stop halfway.
#[test]
fn nested_empty_directories_block_no_restore() {
    let repo = TestRepo::new().file("a", "a\n").file("e", "e\n");
    repo.commit("one");
    repo.workflow().new_session("s").done();
    repo.remove("e");
    repo.write("e/x", "1\n");
    repo.write("a", "new\n");
    repo.workflow().record("Replace").done();
    std::fs::create_dir_all(repo.path().join("e/tmp/deep")).unwrap();
    repo.workflow().undo(1).done();
    assert_eq!([repo.read("a"), repo.read("e")], ["a\n", "e\n"]);

    // With a file in it, the directory stays and the undo changes nothing.
    repo.workflow().redo(1).done();
    repo.write("e/tmp/mine", "mine\n");
    insta::assert_snapshot!(repo.workflow().undo(1).refused(), @r"
    at turn 0, not the same turns, not recorded
      overlap e
      overlap e/tmp/mine
      overlap e/x
    ");
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
fn an_unedited_file_is_restored_past_a_turn_that_added_its_filter() {
    let upper = [
        ["config", "filter.up.clean", "tr a-z A-Z"],
        ["config", "filter.up.smudge", "tr A-Z a-z"],
    ];
    let attributes = create(".gitattributes", "x.txt filter=up\n");
    for back in [&["undo", "2"][..], &["restore", "0"]] {
        let repo = TestRepo::new().file("x.txt", "hello\n");
        upper.iter().for_each(|args| drop(repo.git(args)));
        repo.commit("init");
        repo.workflow().new_session("demo").done();
        repo.workflow()
            .run_plan(&plan("Filter", std::slice::from_ref(&attributes)));
        repo.run_plan(&plan("More", &[execute("echo more >> x.txt")]));
        let printed = repo.done(back);
        assert_eq!(printed, "write x.txt\ndelete .gitattributes\n", "{back:?}");
        assert_eq!(repo.read("x.txt"), "hello\n", "{back:?}");
        repo.workflow().restore("2").done();
        assert_eq!(repo.read("x.txt"), "hello\nmore\n", "{back:?}");
        repo.workflow().restore("0").done();
        assert_eq!(repo.read("x.txt"), "hello\n", "{back:?}");
    }

    let repo = TestRepo::new().file("x.txt", "1\n2\n3\nhello\n");
    upper.iter().for_each(|args| drop(repo.git(args)));
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().run_plan(&plan("Filter", &[attributes]));
    repo.write("x.txt", "own\n2\n3\nhello\n");
    repo.run_plan(&plan("More", &[execute("echo more >> x.txt")]));
    repo.workflow().undo(2).done();
    assert_eq!(repo.read("x.txt"), "own\n2\n3\nhello\n");
}

#[test]
fn a_branch_says_nothing_of_the_turns_that_it_began_with() {
    let repo = three_turns();
    repo.workflow().branch("1", "other").done();
    insta::assert_snapshot!(repo.workflow().undo(1).done(), @r"
    at turn 0
      over [1]
      write a.txt
      write c.txt
      delete dir/b.txt
      your files no longer contain turns 2 and 3 of demo; `teddy pick demo:2 demo:3` applies only them, `teddy switch demo` and `teddy restore @` restore all that was below as well
    ");
}

#[test]
fn a_restore_of_a_path_leaves_the_turns_that_never_changed_it() {
    let repo = three_turns();
    repo.workflow().new_session("other").done();
    let other = || repo.workflow().session("other");
    other().run_plan(&plan("Alpha", &[create("alpha.txt", "1\n")]));
    let paths = RestoreOptions {
        paths: vec!["a.txt".to_owned()],
        ..RestoreOptions::default()
    };
    let restored = repo.workflow().session("demo").restore_with("0", &paths);
    insta::assert_snapshot!(restored.done(), @"
    at turn 0
      write a.txt
    ");
    insta::assert_snapshot!(repo.printed(&["-s", "other", "status"]), @"
    Session other, turn 1, on branch main
    Ready for turn 2
    Your files do not match turn 1: they lack turn 1 of demo; `teddy restore @` takes them there.
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
}

/// Bug: there was "nothing to go back to", although the files had turns of the other session.
#[test]
fn a_branch_at_the_start_goes_back_to_the_files_before_the_first_turn() {
    let repo = three_turns();
    repo.workflow().branch("0", "fresh").done();
    repo.workflow().restore("@").done();
    assert_eq!(repo.read("a.txt"), "1\n2\n3\n4\n5\n");
    assert!(!repo.path().join("dir/b.txt").exists());
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("dir/b.txt"), "b\n");
}
