//! `land` commits in the user's checkout, so that hooks see what they see in `git commit`; what they
//! change or take is named.

use crate::support::landing::land_as;
use serde_json::json;

use crate::plans::{create, edit, edit_pairs, execute, plan, with_memos};
use crate::screen::Screen;
use crate::support::landing::{
    changed, check_clean, everything, hook, project, status, three_turns,
};
use crate::support::{Output, PATIENCE, TestRepo};

/// Edits a file that a turn changed, so that git cannot commit it from the user's checkout.
fn edit_landed(repo: &TestRepo) {
    let edited = repo.read("a.txt").replace('9', "nine");
    repo.write("a.txt", edited);
}

#[test]
fn hooks_see_the_checkout_as_in_git_commit() {
    let repo = three_turns();
    repo.write("own.txt", "own\n");
    repo.git(&["add", "own.txt"]);
    hook(
        &repo,
        "pre-commit",
        "{ pwd; test -f .git/HEAD && echo git; echo \"${GIT_DIR-none} ${GIT_WORK_TREE-none}\"\n\
         git diff --cached --name-only; git config --get core.hooksPath; cat own.txt; } > \"$OUT\"",
    );
    let mut command = repo.teddy_command(&["land", "-m", "Land"]);
    command
        .current_dir(repo.path())
        .env("OUT", repo.beside("out"));
    Output::of(&mut command).check(0, &[]);
    let shown = std::fs::read_to_string(repo.beside("out")).unwrap();
    let top = repo.path().display().to_string();
    assert_eq!(
        shown,
        format!("{top}\ngit\nnone none\na.txt\nc.txt\ndir/b.txt\nown\n")
    );
    assert_eq!(status(&repo), "A  own.txt");
    check_clean(&repo);
}

#[test]
fn a_commit_whose_files_a_hook_of_the_commit_before_changed_is_made_in_the_separate_directory() {
    let repo = three_turns();
    hook(
        &repo,
        "pre-commit",
        "pwd >> \"$OUT\"; echo hook >> dir/b.txt",
    );
    let out = repo.beside("out");
    let mut command = repo.teddy_command(&["land", "--each"]);
    command.current_dir(repo.path()).env("OUT", &out);
    Output::of(&mut command).check(0, &[]);
    let dirs = std::fs::read_to_string(out).unwrap();
    let in_checkout = dirs
        .lines()
        .map(|dir| std::path::Path::new(dir) == repo.path());
    assert_eq!(
        in_checkout.collect::<Vec<_>>(),
        [true, false, true],
        "{dirs}"
    );
}

#[test]
fn a_stash_entry_that_a_hook_takes_is_named() {
    let repo = three_turns();
    repo.write("own.txt", "1\n");
    repo.git(&["add", "own.txt"]);
    repo.git(&["commit", "-q", "-m", "own", "own.txt"]);
    let turns = repo.read("a.txt");
    repo.write("own.txt", "precious\n");
    repo.git(&["stash", "push", "-q", "-m", "mine", "own.txt"]);
    let id = repo.git(&["rev-parse", "stash"]);
    hook(&repo, "pre-commit", "git stash pop -q; exit 0");
    let out = repo.teddy(&["land", "-m", "Land"]);
    let command = format!("`git stash store -m 'On main: mine' {id}` restores it");
    out.check(
        0,
        &[
            "was taken while git committed",
            &command,
            "1 file changed while git committed",
        ],
    );
    // As after `git commit`.
    assert_eq!(repo.read("own.txt"), "precious\n");
    assert_eq!(repo.read("a.txt"), turns);
}

#[test]
fn a_stash_entry_that_a_hook_moves_is_put_back() {
    let repo = three_turns();
    repo.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    repo.write(".gitignore", "*.log\n*.tmp\n");
    repo.git(&["stash", "push", "-q", "-m", "mine", ".gitignore"]);
    let id = repo.git(&["rev-parse", "stash"]);
    edit_landed(&repo);
    hook(
        &repo,
        "pre-commit",
        "git stash pop -q; echo unstaged >> a.txt; exit 0",
    );
    insta::assert_snapshot!(repo.workflow().land(&land_as("Land")).done(), @r#"
    the stash entry "On main: mine" was taken while git committed; it is back in the stash
    landed [1, 2, 3]: Land
      commit a.txt
      commit c.txt
      commit dir/b.txt
    "#);
    assert_eq!(repo.git(&["rev-parse", "stash"]), id);
    assert_eq!(
        repo.git(&["stash", "list", "--format=%gs"]),
        "On main: mine"
    );
    // What a hook does not stage there stays there.
    assert!(!repo.read("a.txt").contains("unstaged"));
    check_clean(&repo);
}

#[test]
fn stash_entries_that_a_hook_moves_are_put_back_in_order() {
    let repo = three_turns();
    repo.write("own.txt", "own\n");
    repo.git(&["add", "own.txt"]);
    repo.git(&["commit", "-q", "-m", "x", "own.txt"]);
    for [path, name] in [[".gitignore", "first"], ["own.txt", "second"]] {
        repo.write(path, "*.log\n*.tmp\n");
        repo.git(&["stash", "push", "-q", "-m", name, path]);
    }
    let before = repo.git(&["stash", "list", "--format=%H %gs"]);
    edit_landed(&repo);
    hook(
        &repo,
        "pre-commit",
        "git stash pop -q && git stash pop -q; exit 0",
    );
    insta::assert_snapshot!(repo.workflow().land(&land_as("Land")).done(), @r#"
    the stash entry "On main: second" was taken while git committed; it is back in the stash
    the stash entry "On main: first" was taken while git committed; it is back in the stash
    landed [1, 2, 3]: Land
      commit a.txt
      commit c.txt
      commit dir/b.txt
    "#);
    assert_eq!(repo.git(&["stash", "list", "--format=%H %gs"]), before);
    check_clean(&repo);
}

#[test]
fn what_a_hook_repairs_before_it_refuses_can_land() {
    let script = "grep -q '^two$' a.txt || exit 0\nsed -i 's/^two$/TWO/' a.txt\nexit 1";
    for is_separate in [false, true] {
        let repo = three_turns();
        if is_separate {
            edit_landed(&repo);
        }
        hook(&repo, "pre-commit", script);
        let head = repo.git(&["rev-parse", "HEAD"]);
        let out = repo.teddy(&["land", "-m", "Land"]);
        out.check(
            1,
            &[
                "before it refused, a hook changed `a.txt`",
                "hint: `--with-repairs` lands what the hook made of them; `git diff ",
            ],
        );
        assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
        // As after `git commit`, the repair is in the files in which the hook ran.
        assert_eq!(repo.read("a.txt").contains("TWO"), !is_separate);

        let value = repo.json(&["land", "-m", "Land", "--with-repairs"], 0);
        assert_eq!(value["formatted"], json!(["a.txt"]));
        assert!(repo.git(&["show", "HEAD:a.txt"]).contains("TWO"));
        assert!(repo.read("a.txt").contains("TWO"));
        assert_eq!(status(&repo), if is_separate { " M a.txt" } else { "" });
        check_clean(&repo);
    }
}

#[test]
fn at_a_terminal_a_repair_is_offered() {
    let repo = three_turns();
    hook(
        &repo,
        "pre-commit",
        "grep -q '^two$' a.txt || exit 0\nsed -i 's/^two$/TWO/' a.txt\nexit 1",
    );
    let mut screen = Screen::open(&repo, (100, 40), &["land", "-m", "Land"]);
    screen.wait_for("a hook changed 1 file and refused: a.txt; land with that?");
    screen.press("y");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert!(repo.git(&["show", "HEAD:a.txt"]).contains("TWO"));
    assert_eq!(status(&repo), "");
}

#[test]
fn edits_that_a_hook_loses_are_named_with_a_command_that_brings_them_back() {
    for refuses in [false, true] {
        let repo = three_turns();
        repo.write(".gitignore", "*.log\nmine\n");
        repo.write("own [1].txt", "own\n");
        hook(
            &repo,
            "pre-commit",
            &format!(
                "git checkout -q -- .gitignore; rm 'own [1].txt'; exit {}",
                i32::from(refuses)
            ),
        );
        let out = repo.teddy(&["land", "-m", "Land"]);
        assert_eq!(out.code, i32::from(refuses), "{out}");
        let said = "2 files changed while git committed: `.gitignore`, `own [1].txt`; `";
        let (_, rest) = out.stderr.split_once(said).expect(&out.stderr);
        let command = rest.split('`').next().unwrap();
        assert!(command.starts_with("git restore --source="), "{command}");
        std::fs::create_dir_all(repo.path().join("dir")).unwrap();
        let mut shell = repo.command("sh");
        let shell = shell.current_dir(repo.path().join("dir"));
        Output::of(shell.args(["-c", command])).check(0, &[]);
        assert_eq!(repo.read(".gitignore"), "*.log\nmine\n");
        assert_eq!(repo.read("own [1].txt"), "own\n");
    }
}

#[test]
fn what_the_user_took_back_lands_only_if_they_say_so() {
    for path in ["a.txt", "dir/b.txt"] {
        let repo = three_turns();
        match path {
            "a.txt" => drop(repo.git(&["checkout", "-q", "--", path])),
            _ => repo.remove(path),
        }
        let turn = if path == "a.txt" { 1 } else { 2 };
        let before = everything(&repo);
        let out = repo.teddy(&["land", "-m", "Land"]);
        let lacks = format!("lacks turn {turn}: {path}\n");
        out.check(
            4,
            &[
                &lacks,
                "nothing was changed",
                "`teddy land -m Land --anyway`",
            ],
        );
        assert_eq!(everything(&repo), before);
        repo.teddy(&["land", "-n"]).check(4, &[&lacks]);
        let range = turn.to_string();
        let again = format!("`teddy land {range} --each --anyway` commits it anyway");
        let out = repo.teddy(&["land", &range, "--each"]);
        out.check(4, &[&again]);
        repo.done(&["land", "-n", "--anyway"]);
        let value = repo.workflow().landed(&land_as("Land"));
        assert_eq!(value["lacking"], json!([{"path": path, "turn": turn}]));

        let mut screen = Screen::open(&repo, (100, 40), &["land", "-m", "Land"]);
        screen.wait_for(&format!("{path} no longer has turn {turn}; land anyway?"));
        screen.press("n");
        assert_eq!(screen.end(), 4, "{}", screen.shown());

        repo.done(&["land", "-m", "Land", "--anyway"]);
        assert_eq!(changed(&repo), "M\ta.txt\nD\tc.txt\nA\tdir/b.txt");
        // The files are what the user made of them, and nothing says otherwise.
        assert!(
            !repo
                .done(&["status"])
                .contains("as the newest turn left them")
        );
    }
}

/// Regression: with an edit of their own in the file, or a turn on top, it landed without a question.
#[test]
fn what_the_user_took_back_is_noticed_beside_other_changes_of_the_file() {
    let lines = |prefix: &str| {
        let line = |number| match number {
            5 => format!("{prefix}5\n"),
            _ => format!("{number}\n"),
        };
        (1..=20).map(line).collect::<String>()
    };
    let start = || {
        let repo = TestRepo::new()
            .file("a.txt", lines(""))
            .file("b.txt", "b\n");
        repo.commit("init");
        repo.workflow().new_session("demo").done();
        repo.workflow().add(&["a.txt"]);
        repo
    };
    let edit_5 = plan("Edit", &[edit("a.txt", "5", "t1 5")]);
    let lacking = |repo: &TestRepo| repo.workflow().landed(&land_as("Land"))["lacking"].clone();

    let repo = start();
    repo.workflow().run_plan(&edit_5);
    repo.git(&["checkout", "-q", "a.txt"]);
    repo.write("a.txt", lines("").replace("18", "mine 18"));
    assert_eq!(lacking(&repo), json!([{"path": "a.txt", "turn": 1}]));
    let hint = "`teddy restore <turn> --exact <file>` takes the turn's version";
    repo.teddy(&["land", "-m", "Land"]).check(4, &[hint]);

    let repo = start();
    repo.workflow().run_plan(&edit_5);
    repo.git(&["checkout", "-q", "a.txt"]);
    let edit_15 = plan("Edit", &[edit("a.txt", "15", "t2 15")]);
    repo.workflow().run_plan(&edit_15);
    assert_eq!(lacking(&repo), json!([{"path": "a.txt", "turn": 1}]));

    let repo = start();
    repo.remove("b.txt");
    repo.workflow().record("Delete b").done();
    repo.git(&["checkout", "-q", "b.txt"]);
    repo.write("b.txt", "b\nmine\n");
    assert_eq!(lacking(&repo), json!([{"path": "b.txt", "turn": 1}]));

    // One of the places that the turn changed has an edit of the user's now.
    let repo = start();
    let places = [
        edit("a.txt", "5", "t1 5"),
        edit("a.txt", "20", "20\nt1\nt2"),
    ];
    repo.workflow().run_plan(&plan("Edit", &places));
    repo.git(&["checkout", "-q", "a.txt"]);
    repo.write("a.txt", lines("") + "mine\n");
    assert_eq!(lacking(&repo), json!([{"path": "a.txt", "turn": 1}]));
    // But the user may edit what the turn did.
    repo.write("a.txt", lines("t1 ") + "t1 and mine\nt2\n");
    assert_eq!(lacking(&repo), json!([]));

    let repo = start();
    let make = [create("new.txt", &lines(""))];
    repo.workflow().run_plan(&plan("Make", &make));
    repo.write("new.txt", "mine\n");
    assert_eq!(lacking(&repo), json!([{"path": "new.txt", "turn": 1}]));

    // What a later turn took back is no concern of a landing without that turn.
    let repo = start();
    repo.workflow().run_plan(&edit_5);
    let back = plan(
        "Back",
        &[edit_pairs("a.txt", &[("t1 5", "5"), ("15", "t2 15")])],
    );
    repo.workflow().run_plan(&back);
    repo.write("a.txt", repo.read("a.txt").replace("18", "mine 18"));
    repo.done(&["land", "1", "-m", "Land"]);
    assert_eq!(changed(&repo), "M\ta.txt");
}

/// Bug: "HEAD already has what turn 1 did", and its other file landed as all of it.
#[test]
fn what_git_took_back_with_an_edit_below_it_is_not_in_head() {
    let lines: String = (1..=9).map(|number| format!("l{number}\n")).collect();
    let repo = TestRepo::new().file("a.txt", &lines).file("b.txt", &lines);
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.write("a.txt", lines.replace("l5", "mine"));
    repo.workflow().add(&["a.txt", "b.txt"]);
    let edits = [
        edit("a.txt", "mine", "mine T1"),
        edit("b.txt", "l5", "l5 T1"),
    ];
    repo.run_plan(&plan("Both", &edits));
    repo.git(&["checkout", "-q", "a.txt"]);
    insta::assert_snapshot!(repo.printed(&["land", "--no-edit"]), @"
    overlap a.txt
    --- stderr
    warning: turn 1 overlaps with what HEAD has there, or builds on edits of yours that are not committed; nothing was changed
    hint: `teddy restore 1 --exact a.txt` takes the turn's version; if you renamed one, `git commit` of its new name commits the turn's lines
    exit code 4
    ");
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "init");

    // Nor is what a stash held back while another turn ran.
    repo.done(&["restore", "1", "--exact", "a.txt", "-y"]);
    repo.git(&["stash", "-q"]);
    repo.run_plan(&plan("Other", &[create("c.txt", "c\n")]));
    repo.git(&["stash", "pop", "-q"]);
    let landed = repo.teddy(&["land", "--no-edit"]);
    landed.check(4, &["overlap a.txt"]);
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "init");
}

/// Bug: "HEAD already has what turn 1 did", whose line only the renamed file has.
#[test]
fn a_file_that_was_renamed_without_the_turn_does_not_contain_it() {
    let lines: String = (1..=9).map(|number| format!("l{number}\n")).collect();
    let repo = TestRepo::new().file("a.txt", &lines);
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.run_plan(&plan("One", &[edit("a.txt", "l5", "l5 T1")]));
    repo.git(&["mv", "a.txt", "z.txt"]);
    repo.git(&["commit", "-q", "-m", "rename"]);
    insta::assert_snapshot!(repo.printed(&["land", "--no-edit"]), @"
    overlap a.txt
    --- stderr
    warning: turn 1 overlaps with what HEAD has there, or builds on edits of yours that are not committed; nothing was changed
    hint: `teddy restore 1 --exact a.txt` takes the turn's version; if you renamed one, `git commit` of its new name commits the turn's lines
    exit code 4
    ");
    repo.git(&["mv", "z.txt", "a.txt"]);
    repo.git(&["commit", "-q", "-am", "with the turn"]);
    repo.git(&["rm", "-q", "a.txt"]);
    repo.git(&["commit", "-q", "-m", "delete"]);
    let in_head = "HEAD already has what turn 1 did";
    repo.teddy(&["land", "--no-edit"]).check(1, &[in_head]);
}

/// Bug: the hint did not lead to a commit of turn 2.
#[test]
fn a_turn_beside_a_line_that_a_hook_formatted_lands_by_git() {
    let repo = TestRepo::new().file("a.txt", "l1\nl2\nl3\n");
    repo.commit("init");
    let format = "sed -i 's/^T1$/T1 fmt/' a.txt && git add a.txt";
    hook(&repo, "pre-commit", format);
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.run_plan(&plan("One", &[edit("a.txt", "l2", "l2\nT1")]));
    repo.run_plan(&plan("Two", &[edit("a.txt", "T1", "T1\nT2")]));
    insta::assert_snapshot!(repo.printed(&["land", "--each", "--no-edit"]), @"
    --- stderr
    error: turn 1 as [id] landed on main; the next commit failed: a hook changed `a.txt` where turn 2 does, too, so that turn 2 does not land
    hint: `git commit a.txt` commits the turn as your files have it; without `--each`, hooks see both turns in one commit
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["land", "--no-edit"]), @"
    overlap a.txt
    --- stderr
    warning: turn 2 overlaps with what HEAD has there, or builds on edits of yours that are not committed; nothing was changed
    hint: `git commit a.txt` commits them as they are; if these are edits of yours: `teddy restore 1` takes the turn and all later ones out of your files, `git commit a.txt` then commits only the edits, `teddy undo` puts the turns back, and `teddy land` lands them
    exit code 4
    ");
    repo.git(&["commit", "-q", "-m", "By hand", "a.txt"]);
    let in_head = "HEAD already has what turn 2 did";
    repo.teddy(&["land", "--no-edit"]).check(1, &[in_head]);
}

/// Bug: what a hook had put into the first commit was taken back by the second.
#[test]
fn the_commits_of_a_landing_keep_what_hooks_put_into_those_before() {
    let repo = TestRepo::new().file("a.txt", "a\n").file("log", "");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    for number in 1..=3 {
        let run = execute(&format!("echo T{number} >> a.txt"));
        repo.run_plan(&plan(&format!("Turn {number}"), &[run]));
    }
    hook(
        &repo,
        "pre-commit",
        "git diff --cached -U0 a.txt | grep '^+T' >> log; git add log",
    );
    repo.done(&["land", "--each"]);
    assert_eq!(repo.git(&["show", "HEAD:log"]), "+T1\n+T2\n+T3");
    assert_eq!(repo.read("log"), "+T1\n+T2\n+T3\n");
}

/// Bug: "it was undone, or its result was never applied".
#[test]
fn a_turn_lands_from_its_worktree_after_an_undo_in_another() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let run = |dir: &std::path::Path, title: &str, file: &str| {
        let plan = plan(title, &[create(file, "1\n")]);
        std::fs::write(repo.beside("plan.md"), plan).unwrap();
        let ran = repo.teddy_in(dir, &["-s", "demo", "execute", "-y", "../plan.md"]);
        ran.check(0, &[]);
    };
    run(&repo.path(), "One", "one.txt");
    let linked = repo.beside("linked");
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    run(&linked, "Two", "two.txt");
    repo.teddy_in(&linked, &["-s", "demo", "undo", "-y"])
        .check(0, &[]);
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(
        repo.git(&["show", "--format=", "--name-only", "HEAD"]),
        "one.txt"
    );
}

/// Bug: the files "do not match", and the hint removed the turn from the only place that had it.
#[test]
fn a_landing_from_another_worktree_moves_no_files() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let linked = repo.beside("linked");
    let path = linked.to_str().unwrap();
    repo.git(&["worktree", "add", "-q", "-b", "side", path]);
    let text = plan("One", &[create("one.txt", "1\n")]);
    std::fs::write(repo.beside("plan.md"), text).unwrap();
    let run = |args: &[&str]| repo.teddy_in(&linked, &[&["-s", "demo"], args].concat());
    run(&["execute", "-y", "../plan.md"]).check(0, &[]);
    repo.done(&["-s", "demo", "land", "--no-edit", "--branch", "new"]);

    let status = run(&["status"]);
    assert!(!status.stdout.contains("do not match"), "{status}");
    run(&["land", "1", "--no-edit"]).check(0, &[]);
    let landed = repo.git_in(&linked, &["show", "--format=", "--name-only", "HEAD"]);
    assert_eq!(landed.trim(), "one.txt");
}

#[test]
fn the_hint_restores_what_the_user_took_back_in_any_directory() {
    let repo = three_turns();
    repo.git(&["checkout", "-q", "--", "a.txt"]);
    repo.remove("dir/b.txt");
    let dir = repo.path().join("dir");
    std::fs::create_dir_all(&dir).unwrap();
    let out = repo.teddy_in(&dir, &["land", "-m", "Land"]);
    insta::assert_snapshot!(out.shown(&repo), @"
    lacks turn 1: a.txt
    lacks turn 2: dir/b.txt
    --- stderr
    warning: these files no longer have what would be committed; nothing was changed
    hint: `teddy land -m Land --anyway` commits it anyway; `teddy status` says what restores it if you took it back, else `teddy restore <turn> --exact <file>` takes a turn's version
    exit code 4
    ");
    let status = repo.teddy_in(&dir, &["status"]).stdout;
    for path in ["../a.txt", "b.txt"] {
        let start = "`teddy restore ";
        let command = status.lines().filter_map(|line| line.split(start).nth(1));
        let mut command =
            command.filter(|command| command.ends_with(&format!("--exact {path}` restores it")));
        let turn = command
            .next_back()
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .to_owned();
        repo.teddy_in(&dir, &["restore", &turn, "--exact", "-y", path])
            .check(0, &[]);
    }
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(changed(&repo), "M\ta.txt\nD\tc.txt\nA\tdir/b.txt");
}

#[test]
fn a_repository_within_is_left_out_unless_it_is_a_submodule() {
    let repo = project();
    let script = "git init -q lib && git -C lib commit -q --allow-empty -m x; echo 2 > c.txt";
    repo.done(&["record", "work", "--", "sh", "-c", script]);
    let value = repo.workflow().landed(&land_as("Land"));
    assert_eq!(value["repositories"], json!(["lib"]));
    assert_eq!(changed(&repo), "M\tc.txt");
    assert!(repo.path().join("lib/.git").exists());

    insta::assert_snapshot!(repo.printed(&["undo"]), @"
    write c.txt
    keep lib
    --- stderr
    warning: turn 1 has landed as [id] on main, where it stays; commit your files as they are now, or `teddy redo` and then `git revert [id]`
    Your files match turn 0: 1 file changed, 1 of your own kept.
    Skipped turn 2 (a landing; its commits stay).
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["redo"]), @"
    write c.txt
    --- stderr
    Your files match turn 2: 1 file changed.
    exit code 0
    ");

    let script = "git init -q sub && git -C sub commit -q --allow-empty -m x\n\
                  printf '[submodule \"s\"]\\n\\tpath = sub\\n\\turl = ./sub\\n' > .gitmodules";
    repo.done(&["record", "sub", "--", "sh", "-c", script]);
    repo.done(&["land", "-m", "Sub"]);
    assert_eq!(changed(&repo), "A\t.gitmodules\nA\tsub");

    repo.done(&[
        "record",
        "only",
        "--",
        "sh",
        "-c",
        "git init -q x && git -C x commit -q --allow-empty -m x",
    ]);
    insta::assert_snapshot!(repo.printed(&["land", "-m", "x"]), @"
    --- stderr
    error: nothing to land: the turns changed only nested repositories that are not submodules
    hint: `git submodule add <url> <path>` makes a submodule of one
    exit code 1
    ");
}

#[test]
fn an_edit_in_the_same_second_as_the_index_is_visible() {
    let repo = project();
    // The edit changes nothing that git compares, and the time of the index makes git read the file.
    repo.git(&["config", "core.trustctime", "false"]);
    repo.git(&["config", "core.checkStat", "minimal"]);
    let set_time = |path: &str| {
        let path = repo.path().join(path);
        let file = std::fs::File::options().write(true).open(path).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
        file.set_modified(time).unwrap();
    };
    repo.write("c.txt", "aaaa\n");
    set_time("c.txt");
    repo.git(&["add", "c.txt"]);
    repo.git(&["commit", "-q", "-m", "c"]);
    repo.write("c.txt", "bbbb\n");
    set_time("c.txt");
    set_time(".git/index");
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.workflow().land(&land_as("Land")).done();
    assert_eq!(status(&repo), " M c.txt");
}

#[test]
fn a_message_that_is_empty_but_for_trailers_is_refused() {
    let repo = three_turns();
    let before = everything(&repo);
    let editor = "sh -c 'grep \"^Teddy-\" \"$1\" > \"$1.x\"; mv \"$1.x\" \"$1\"' -";
    let options: &[(&str, &str)] = &[("GIT_EDITOR", editor)];
    let mut screen = Screen::open_with(&repo, (100, 40), (&["land"], options));
    assert_eq!(screen.end(), 1, "{}", screen.shown());
    assert!(
        screen.shown().contains("empty commit message"),
        "{}",
        screen.shown()
    );
    assert_eq!(everything(&repo), before);

    // What git keeps is no comment.
    repo.git(&["config", "commit.cleanup", "scissors"]);
    let editor = "sed -i '1s/.*/#42 mine/'";
    let options: &[(&str, &str)] = &[("GIT_EDITOR", editor)];
    let mut screen = Screen::open_with(&repo, (100, 40), (&["land", "1"], options));
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "#42 mine");
    let before = everything(&repo);

    repo.git(&["config", "commit.cleanup", "strip"]);
    for message in ["# a comment", "Signed-off-by: A <a@b>"] {
        repo.teddy(&["land", "-m", message])
            .check(1, &["the message is empty"]);
    }
    assert_eq!(everything(&repo).2, before.2);
}

#[test]
fn a_title_that_begins_like_a_comment_is_kept() {
    for (name, value) in [
        ("x.y", "z"),
        ("commit.cleanup", "strip"),
        ("core.commentChar", ";"),
    ] {
        let repo = project();
        repo.git(&["config", name, value]);
        repo.git(&["config", "commit.template", ".git/template"]);
        repo.write(".git/template", "# Why: x\n; Why: y\n");
        repo.workflow()
            .run_plan(&plan("#42: fix the number", &[create("n.txt", "x\n")]));
        repo.done(&["land", "--no-edit"]);
        assert_eq!(
            repo.git(&["log", "-1", "--format=%s"]),
            "#42: fix the number"
        );

        repo.workflow()
            .run_plan(&plan("; #43", &[create("m.txt", "x\n")]));
        let options: &[(&str, &str)] = &[("GIT_EDITOR", "true")];
        let mut screen = Screen::open_with(&repo, (100, 40), (&["land"], options));
        assert_eq!(screen.end(), 0, "{}", screen.shown());
        let body = repo.git(&["log", "-1", "--format=%B"]);
        assert!(body.starts_with("; #43\n"), "{name}: {body}");
        let comment = if value == ";" { "; Why" } else { "# Why" };
        assert!(!body.contains(comment), "{name}: {body}");
    }
}

#[test]
fn teddy_in_a_hook_does_not_wait_for_the_landing() {
    let repo = three_turns();
    let teddy = env!("CARGO_BIN_EXE_teddy");
    hook(
        &repo,
        "pre-commit",
        &format!(
            "{teddy} status -q || exit 1\n{teddy} record x --allow-empty 2> \"$OUT\"; test $? = 75"
        ),
    );
    let start = std::time::Instant::now();
    let mut command = repo.teddy_command(&["land", "-m", "Land"]);
    command
        .current_dir(repo.path())
        .env("OUT", repo.beside("out"));
    Output::of(&mut command).check(0, &[]);
    assert!(start.elapsed() < PATIENCE);
    let said = std::fs::read_to_string(repo.beside("out")).unwrap();
    assert!(
        said.contains("(land) is at work in this repository"),
        "{said}"
    );
}

#[test]
fn the_identity_is_that_of_the_users_git_directory_in_the_separate_directory_too() {
    for is_separate in [false, true] {
        let repo = three_turns();
        let key = format!("includeIf.gitdir:{}/.git.path", repo.path().display());
        repo.git(&["config", &key, "who"]);
        repo.write(".git/who", "[user]\n\temail = work@example.org\n");
        repo.write(".git/key", "k");
        hook(
            &repo,
            "pre-commit",
            "unset GIT_DIR GIT_WORK_TREE; test -e \"$(git rev-parse --git-dir)/key\"",
        );
        if is_separate {
            edit_landed(&repo);
        }
        let mut command = repo.teddy_command(&["land", "-m", "Land"]);
        command.current_dir(repo.path());
        for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            command.env_remove(name);
        }
        Output::of(&mut command).check(0, &[]);
        assert_eq!(
            repo.git(&["log", "-1", "--format=%ae %ce"]),
            "work@example.org work@example.org"
        );
        check_clean(&repo);
    }
}

/// The commit has the same message and another id.
fn amend(repo: &TestRepo) {
    let date = "--date=2001-01-01";
    repo.git(&[
        "commit",
        "-q",
        "--amend",
        "--no-edit",
        "--reset-author",
        date,
    ]);
}

#[test]
fn a_landing_is_found_by_its_trailers_after_an_amendment() {
    let repo = three_turns();
    repo.done(&["land", "-m", "Land"]);
    amend(&repo);
    repo.git(&["commit", "-q", "--allow-empty", "-m", "later"]);
    let head = repo.git(&["rev-parse", "HEAD~1"]);
    let value = repo.json(&["status"], 0);
    assert_eq!(value["landed"]["on_branch"], json!(false));
    assert_eq!(value["landed"]["now"], json!([head]));
    let short = &head[..8];
    let shown = repo.done(&["status"]);
    assert!(
        shown.contains(&format!("turns 1-3, now {short}")),
        "{shown}"
    );
    repo.teddy(&["undo"])
        .check(0, &[&format!("turn 3 has landed as {short} on main")]);

    repo.git(&["reset", "-q", "--hard", "HEAD~2"]);
    let shown = repo.done(&["status"]);
    insta::assert_snapshot!(repo.plain(&shown), @"
    Session demo, turn 5, on branch main
    Ready for turn 6
    Landed on main: turns 1-3 ([id], which your main does not have)
    Your files match turn 5 except for 2 files:
      a.txt: what turn 1 of demo changed was taken back since; `teddy restore 2 --exact a.txt` restores it
      dir/b.txt: deleted since by you; `teddy restore 2 --exact dir/b.txt` restores it
    ");
}

#[test]
fn a_landing_of_which_one_commit_is_gone_is_not_called_rewritten() {
    let repo = three_turns();
    repo.done(&["land", "--each"]);
    let landed = repo.git(&["rev-parse", "--short=8", "HEAD"]);
    repo.git(&["reset", "-q", "HEAD~1"]);
    amend(&repo);
    let shown = repo.done(&["status"]);
    let line = format!("Landed on main: turns 1-3 ({landed}, which your main does not have)");
    assert!(shown.contains(&line), "{shown}");
}

#[test]
fn a_landing_on_a_branch_that_was_deleted_is_not_called_missing_on_it() {
    let repo = three_turns();
    repo.git(&["switch", "-q", "-c", "feature"]);
    repo.done(&["land", "-m", "Land"]);
    let landed = repo.git(&["rev-parse", "feature"]);
    repo.git(&["switch", "-q", "main"]);
    repo.git(&["branch", "-q", "-D", "feature"]);
    let landing = || {
        let shown = repo.done(&["status"]);
        let line = shown.lines().find(|line| line.starts_with("Landed"));
        line.unwrap_or(&shown).replace(&landed[..8], "[id]")
    };
    assert_eq!(
        landing(),
        "Landed on feature: turns 1-3 ([id], feature is gone)"
    );

    repo.git(&["config", "remote.origin.url", "elsewhere"]);
    repo.git(&["update-ref", "refs/remotes/origin/feature", &landed]);
    assert_eq!(
        landing(),
        "Landed on feature: turns 1-3 ([id], on origin/feature; your feature is gone)"
    );
    repo.git(&["branch", "-q", "feature", "HEAD"]);
    assert_eq!(
        landing(),
        "Landed on feature: turns 1-3 ([id], on origin/feature but not on your feature; `git pull` takes it there)"
    );

    repo.git(&["branch", "-q", "-D", "feature"]);
    repo.git(&["stash", "-q"]);
    repo.git(&["merge", "-q", "--squash", "origin/feature"]);
    repo.git(&["commit", "-q", "--no-edit"]);
    let squashed = repo.git(&["rev-parse", "--short=8", "HEAD"]);
    assert_eq!(
        landing(),
        format!("Landed on feature: turns 1-3, now {squashed} on main")
    );

    repo.git(&["reset", "-q", "--hard", "origin/feature"]);
    assert_eq!(landing(), "Landed on feature: turns 1-3, now [id] on main");
}

#[test]
fn an_undo_names_the_squash_on_the_current_branch() {
    let repo = three_turns();
    repo.git(&["switch", "-q", "-c", "feature"]);
    repo.done(&["land", "--each"]);
    repo.git(&["switch", "-q", "main"]);
    repo.git(&["merge", "-q", "--squash", "feature"]);
    repo.git(&["commit", "-q", "--no-edit"]);
    let squashed = repo.git(&["rev-parse", "--short=8", "HEAD"]);
    let line = format!(
        "warning: turns 2, 3 have landed as {squashed} on main, where it stays; commit your files as they are now, or `teddy redo` and then `git revert {squashed}`"
    );
    repo.teddy(&["undo", "2"]).check(0, &[&line]);
    repo.done(&["redo", "2"]);
    repo.git(&["branch", "-q", "-D", "feature"]);
    repo.teddy(&["undo", "2"]).check(0, &[&line]);
}

#[test]
fn a_branch_of_gitbutler_is_not_landed_on() {
    let repo = three_turns();
    repo.git(&["switch", "-q", "-c", "gitbutler/workspace"]);
    for args in [
        &["land", "-m", "x"][..],
        &["land", "-m", "x", "--branch", "y"],
    ] {
        repo.teddy(args)
            .check(1, &["GitButler writes anew", "hint: commit with GitButler"]);
    }
}

#[test]
fn a_file_that_only_a_command_left_is_named() {
    let repo = project();
    repo.run_plan(&plan(
        "Test",
        &[create("t.txt", "t\n"), execute("echo ok > result.txt")],
    ));
    insta::assert_snapshot!(repo.printed(&["land", "-n"]), @"
    turn 1 on main

        Test

        Teddy-Session: demo
        Teddy-Turn: 1 [id]

     result.txt | 1 +
     t.txt      | 1 +
     2 files changed, 2 insertions(+)
    --- stderr
    Only a command made these new files:
      result.txt
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["land", "-m", "Land"]), @"
    [id] Land (2 files)
    --- stderr
    New files that only a command made are committed, too: `result.txt`
    Landed turn 1 on main: 1 commit.
    exit code 0
    ");
    assert_eq!(
        repo.json(&["land", "1", "-n", "--branch", "x", "-m", "x"], 1)["error"]["kind"],
        "NothingToLand"
    );
}

/// Bug: the memos of a plan without a command were said to be a command's.
#[test]
fn the_memos_of_a_plan_are_no_file_of_a_command() {
    let repo = project();
    let remembers = with_memos("Note", "[+] Tests first.", &[create("t.txt", "t\n")]);
    repo.run_plan(&remembers);
    let landed = repo.json(&["land", "-m", "All"], 0);
    assert_eq!(
        landed["commits"][0]["files"],
        json!([".teddy/memos.yaml", "t.txt"])
    );
    assert_eq!(landed["by_commands"], json!([]));
}

/// Bug: a file that a later turn removed was named, and one that the user had renamed in the review.
#[test]
fn a_file_of_a_command_is_named_only_if_it_is_committed() {
    let repo = project();
    let both = execute("echo tmp > scratch.txt; echo k > keep.txt");
    repo.run_plan(&plan("Make", &[both]));
    repo.run_plan(&plan("Tidy", &[execute("rm scratch.txt")]));
    let file = repo.beside("plan.md");
    repo.put(file.clone(), plan("New", &[create("old.txt", "x\n")]));
    let args = ["execute", file.to_str().unwrap()];
    let mut screen = Screen::open(&repo, (100, 40), &args);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("m");
    screen.settled();
    screen.press("f");
    screen.wait_for("File path: [old.txt]");
    screen.press("new.txt\r");
    screen.wait_for("new.txt  ");
    screen.settled();
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("new.txt"), "x\n");
    let landed = repo.json(&["land", "-m", "All"], 0);
    assert_eq!(landed["by_commands"], json!(["keep.txt"]));
}

#[test]
fn a_hook_that_leaves_the_branch_is_reported() {
    let repo = three_turns();
    edit_landed(&repo);
    repo.git(&["branch", "other"]);
    hook(
        &repo,
        "pre-commit",
        "git symbolic-ref HEAD refs/heads/other; exit 1",
    );
    insta::assert_snapshot!(repo.printed(&["land", "-m", "Land"]), @"
    --- stderr
    HEAD left `main` while git committed; it is back there
    error: git made no commit (exit status: 1); nothing was changed
    hint: git, or a hook, has said why above; `--no-verify` skips the pre-commit and commit-msg hooks
    exit code 1
    ");
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");

    hook(
        &repo,
        "pre-commit",
        "git tag -d t > /dev/null; git update-ref refs/heads/other HEAD^0",
    );
    repo.git(&["tag", "t"]);
    let head = repo.git(&["rev-parse", "HEAD"]);
    let out = repo.teddy(&["land", "-m", "Land"]);
    out.check(
        0,
        &[&format!(
            "`refs/tags/t` changed while git committed; `git update-ref refs/tags/t {head}`"
        )],
    );
}

/// Bug: HEAD went back to `main`, while index and files were those of the other branch.
#[test]
fn a_checkout_of_the_user_while_git_commits_stays() {
    let repo = three_turns();
    edit_landed(&repo);
    repo.git(&["branch", "other"]);
    let dir = repo.path();
    let dir = dir.display();
    let checkout = format!("env -i PATH=\"$PATH\" git -C '{dir}' checkout -q other");
    hook(&repo, "pre-commit", &format!("{checkout}; exit 1"));
    insta::assert_snapshot!(repo.printed(&["land", "-m", "Land"]), @"
    --- stderr
    HEAD left `main` while git committed, and is on `other` now
    error: git made no commit (exit status: 1); nothing was changed
    hint: git, or a hook, has said why above; `--no-verify` skips the pre-commit and commit-msg hooks
    exit code 1
    ");
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/other");

    repo.git(&["checkout", "-q", "main"]);
    hook(&repo, "pre-commit", "git branch -m main trunk; exit 1");
    let renamed = repo.teddy(&["land", "-m", "Land"]);
    let left = "HEAD left `main` while git committed, and is on `trunk` now";
    renamed.check(1, &[left]);
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/trunk");
}

#[test]
fn a_new_branch_can_have_the_first_commit() {
    let repo = TestRepo::new();
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("Make a", &[create("a.txt", "a\n")]));
    hook(
        &repo,
        "pre-commit",
        "test \"$(git branch --show-current)\" = topic && test -e a.txt",
    );
    repo.done(&["land", "-m", "First", "--branch", "topic"]);
    assert_eq!(repo.git(&["log", "--format=%s", "topic"]), "First");
    assert_eq!(status(&repo), "?? a.txt");
    check_clean(&repo);

    hook(&repo, "pre-commit", "exit 0");
    repo.commit("all");
    repo.workflow()
        .run_plan(&plan("Make b", &[create("b.txt", "b\n")]));
    hook(&repo, "pre-commit", "exit 1");
    insta::assert_snapshot!(repo.printed(&["land", "-m", "x", "--branch", "second"]), @"
    --- stderr
    error: git made no commit (exit status: 1); nothing was changed
    hint: git, or a hook, has said why above; `--no-verify` skips the pre-commit and commit-msg hooks
    exit code 1
    ");
    assert_eq!(repo.git(&["branch", "--list", "second"]), "");
    check_clean(&repo);
}

/// git opens a relative `diff.orderFile` from its current directory, which for a landing is not the
/// user's.
#[test]
fn a_relative_order_file_changes_nothing() {
    let repo = three_turns();
    let preview = repo.printed(&["land", "-n"]);
    repo.write("order", "z\n");
    repo.git(&["config", "diff.orderFile", "order"]);
    assert_eq!(repo.printed(&["land", "-n"]), preview);
    repo.workflow().land(&land_as("Land")).done();
}

/// Whatever a hook does with git, the landing says what is there.
#[test]
fn hooks_that_use_git_have_the_effect_they_have_in_git_commit() {
    let repo = three_turns();
    repo.write("own.txt", "own\n");
    hook(&repo, "pre-commit", "unset GIT_INDEX_FILE; git add own.txt");
    hook(
        &repo,
        "post-commit",
        "test -e .git/once && exit; touch .git/once\n\
         git commit -q --amend --no-edit --no-verify --date=2001-01-01T00:00:00Z",
    );
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(changed(&repo), "M\ta.txt\nD\tc.txt\nA\tdir/b.txt");
    assert_eq!(
        repo.git(&["log", "-1", "--format=%ad", "--date=short"]),
        "2001-01-01"
    );
    assert_eq!(status(&repo), "A  own.txt");
    let head = repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(
        repo.json(&["status"], 0)["landed"]["commits"],
        json!([head])
    );

    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    hook(
        &repo,
        "post-commit",
        "test \"$(git log -1 --format=%s)\" = more || git commit -q --allow-empty --no-verify -m more",
    );
    repo.done(&["land", "-m", "Land d"]);
    assert_eq!(repo.git(&["log", "-2", "--format=%s"]), "more\nLand d");
    assert_eq!(status(&repo), "A  own.txt");

    repo.workflow()
        .run_plan(&plan("Make e", &[create("e.txt", "e\n")]));
    hook(&repo, "post-commit", "git reset -q --soft HEAD^");
    let head = repo.git(&["rev-parse", "HEAD"]);
    insta::assert_snapshot!(repo.printed(&["land", "-m", "Land e"]), @"
    --- stderr
    error: git reported a commit, but a hook took it away again
    exit code 1
    ");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(status(&repo), "A  own.txt\n?? e.txt");

    std::fs::remove_file(repo.path().join(".git/hooks/post-commit")).unwrap();
    hook(&repo, "pre-commit", "git reset -q --hard");
    let out = repo.teddy(&["land", "-m", "Land e"]);
    // As by hand, the commit is there and empty; the turn can land again.
    insta::assert_snapshot!(out.shown(&repo), @"
    [id] Land e (0 files)
    --- stderr
    1 file changed while git committed: `e.txt`; `git restore --source=[id] -- :/e.txt` restores what you had
    Landed no turn on main: 1 commit.
    Hooks changed these files; your copies were updated:
      e.txt
    exit code 0
    ");
    check_clean(&repo);
    std::fs::remove_file(repo.path().join(".git/hooks/pre-commit")).unwrap();
    repo.write("e.txt", "e\n");
    repo.done(&["land", "-m", "Land e"]);
    assert_eq!(changed(&repo), "A\te.txt");
}

/// A pipe has room for 64 KiB.
#[test]
fn more_names_than_fit_into_a_pipe_land() {
    let repo = project();
    let dir = "d".repeat(200);
    let files: Vec<_> = (0..400)
        .map(|number| create(&format!("{dir}/{number}"), "new\n"))
        .collect();
    repo.workflow().run_plan(&plan("Make many", &files));
    hook(
        &repo,
        "pre-commit",
        "test \"$(git diff --cached --name-only | wc -l)\" -eq 400",
    );
    repo.workflow().land(&land_as("Land")).done();
    assert_eq!(status(&repo), "");
}

#[test]
fn after_the_commit_a_hook_sees_the_index_of_the_commit() {
    let repo = three_turns();
    repo.write("own.txt", "own\n");
    repo.git(&["add", "own.txt"]);
    hook(
        &repo,
        "post-commit",
        "git diff --cached --quiet && touch .git/same",
    );
    repo.workflow().land(&land_as("Land")).done();
    assert!(repo.path().join(".git/same").exists());
    assert_eq!(status(&repo), "A  own.txt");
}

#[test]
fn a_hook_that_is_ended_has_time_to_put_things_back() {
    use rustix::process::{Pid, Signal, kill_process};
    let repo = three_turns();
    repo.write("own.txt", "own\n");
    let sign = repo.beside("sign");
    let script = format!(
        "mv own.txt .git/aside\ntrap 'sleep 1; mv .git/aside own.txt; exit 1' TERM\n\
         touch {}\nwhile :; do sleep 0.1; done",
        sign.display()
    );
    hook(&repo, "pre-commit", &script);
    let before = everything(&repo);
    let mut command = repo.teddy_command(&["land", "-m", "x"]);
    command
        .current_dir(repo.path())
        .stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    while !sign.exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    Output::from(child.wait_with_output().unwrap()).check(130, &["interrupted"]);
    assert_eq!(everything(&repo), before);
}

#[test]
fn what_a_hook_lost_when_the_landing_was_killed_is_named() {
    let repo = three_turns();
    repo.write("own.txt", "precious\n");
    let (began, go) = (repo.beside("began"), repo.beside("go"));
    let script = format!(
        "rm own.txt; touch {}; while ! test -e {}; do sleep 0.05; done; exit 1",
        began.display(),
        go.display()
    );
    hook(&repo, "pre-commit", &script);
    let head = repo.git(&["rev-parse", "HEAD"]);
    let mut command = repo.teddy_command(&["land", "-m", "Land"]);
    let mut child = command.current_dir(repo.path()).spawn().unwrap();
    while !began.exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::write(&go, "").unwrap();

    let out = repo.teddy(&["doctor", "--fix"]);
    let said = "1 file changed while git committed: `own.txt`; `";
    let (_, rest) = out.stderr.split_once(said).expect(&out.stderr);
    let command = rest.split('`').next().unwrap();
    let mut shell = repo.command("sh");
    Output::of(shell.current_dir(repo.path()).args(["-c", command])).check(0, &[]);
    assert_eq!(repo.read("own.txt"), "precious\n");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    check_clean(&repo);
}

/// Bug: it was an overlap, and no later turn could land.
#[test]
fn a_turn_that_the_user_committed_with_edits_has_landed_whatever_else_they_edit() {
    let repo = TestRepo::new()
        .file("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
        .file("b.txt", "b\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt", "b.txt"]);
    let actions = [edit("a.txt", "9", "9\nt1"), edit("b.txt", "b", "b\nt1")];
    repo.workflow().run_plan(&plan("One", &actions));
    repo.write("b.txt", "b\nt1 as I like it\n");
    repo.commit("mine");
    repo.write("a.txt", "1\nmine\n2\n3\n4\n5\n6\n7\n8\n9\nt1\n");
    let in_head = "nothing to land: HEAD already has what turn 1 did";
    repo.teddy(&["land", "-n"]).check(1, &[in_head]);
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    repo.done(&["land", "--no-edit"]);
    assert_eq!(changed(&repo), "A\ttwo.txt");
}

/// Bug: a change of the same lines that a pull brought counted as the turn, and the turn's other file
/// landed as all of it.
#[test]
fn what_git_brought_to_the_lines_of_a_turn_is_not_the_turn() {
    let lines: String = (1..=9).map(|number| format!("l{number}\n")).collect();
    let theirs = lines.replace("l5", "l5 theirs");
    let both = plan(
        "Both",
        &[edit("a.txt", "l5", "l5 T1"), edit("b.txt", "l5", "l5 T1")],
    );
    let ways: [&[&[&str]]; 4] = [
        &[&["stash", "-q"], &["merge", "-q", "theirs"]],
        &[&["reset", "-q", "--hard", "theirs"]],
        &[&["checkout", "-q", "a.txt"], &["merge", "-q", "theirs"]],
        &[
            &["commit", "-q", "-am", "mine"],
            &["reset", "-q", "--hard", "theirs"],
        ],
    ];
    for way in ways {
        let repo = TestRepo::new().file("a.txt", &lines).file("b.txt", &lines);
        repo.commit("init");
        repo.git(&["checkout", "-q", "-b", "theirs"]);
        repo.write("a.txt", &theirs);
        repo.git(&["commit", "-q", "-am", "theirs"]);
        repo.git(&["checkout", "-q", "-"]);
        repo.workflow().new_session("demo").done();
        repo.workflow().add(&["a.txt", "b.txt"]);
        repo.run_plan(&both);
        for args in way {
            repo.git(args);
        }
        assert_eq!(repo.read("a.txt"), theirs);
        let head = repo.git(&["rev-parse", "HEAD"]);
        repo.write("b.txt", lines.replace("l5", "l5 T1"));
        let landed = repo.teddy(&["land", "--no-edit", "--anyway"]);
        landed.check(4, &["overlap a.txt"]);
        assert_eq!(repo.git(&["rev-parse", "HEAD"]), head, "{way:?}");
    }
}

/// The user's commit of a turn with edits in its lines, also after a rebase.
#[test]
fn a_turn_that_was_committed_with_edits_in_its_lines_is_in_head() {
    let lines: String = (1..=9).map(|number| format!("l{number}\n")).collect();
    let repo = TestRepo::new().file("a.txt", &lines);
    repo.commit("init");
    repo.git(&["branch", "theirs"]);
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.run_plan(&plan("One", &[edit("a.txt", "l5", "l5 T1")]));
    repo.write("a.txt", lines.replace("l5", "l5 T1 and mine"));
    repo.git(&["commit", "-q", "-am", "with mine"]);
    let in_head = "HEAD already has what turn 1 did";
    repo.teddy(&["land", "--no-edit"]).check(1, &[in_head]);

    let branch = repo.git(&["branch", "--show-current"]);
    repo.git(&["checkout", "-q", "theirs"]);
    repo.write("b.txt", "b\n");
    repo.commit("theirs");
    repo.git(&["checkout", "-q", branch.trim()]);
    repo.git(&["rebase", "-q", "theirs"]);
    repo.teddy(&["land", "--no-edit"]).check(1, &[in_head]);
}

/// Bug: an undo between two turns, or a turn that was taken back before it, made a turn that the user
/// had committed a conflict.
#[test]
fn a_turn_that_was_committed_by_hand_is_in_head_whatever_the_files_are() {
    let lines: String = (1..=30).map(|number| format!("l{number}\n")).collect();
    let repo = TestRepo::new().file("a.txt", &lines).file("b.txt", &lines);
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt", "b.txt"]);
    repo.run_plan(&plan("One", &[edit("b.txt", "l20", "l20\nT1")]));
    repo.git(&["commit", "-q", "-am", "by hand"]);
    repo.run_plan(&plan("X", &[edit("a.txt", "l5", "l5 X")]));
    repo.workflow().undo(1).done();
    repo.run_plan(&plan("Two", &[edit("b.txt", "l20", "l20\nT2")]));
    repo.done(&["land", "--no-edit"]);
    repo.workflow().undo(1).done();
    repo.run_plan(&plan("Three", &[create("c.txt", "c\n")]));
    repo.done(&["land", "--no-edit"]);

    let repo = TestRepo::new().file("b.txt", &lines);
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["b.txt"]);
    repo.run_plan(&plan("One", &[edit("b.txt", "l5", "l5 T1")]));
    repo.run_plan(&plan("Two", &[edit("b.txt", "l20", "l20\nT2")]));
    repo.run_plan(&plan("Three", &[edit("b.txt", "l20", "l20\nT3")]));
    let own = repo.read("b.txt").replace("l5 T1", "l5");
    repo.write("b.txt", format!("{own}own\n"));
    repo.git(&["commit", "-q", "-am", "mine"]);
    repo.teddy(&["land", "--no-edit"])
        .check(4, &["lacks turn 1: b.txt"]);
}

/// Bug: any commit made here that touched the file, or a later turn, made the turn one that HEAD has.
#[test]
fn a_commit_of_other_lines_is_not_the_turn() {
    let lines: String = (1..=30).map(|number| format!("l{number}\n")).collect();
    let begin = || {
        let repo = TestRepo::new().file("a.txt", &lines).file("b.txt", &lines);
        repo.commit("init");
        repo.git(&["checkout", "-q", "-b", "theirs"]);
        repo.write("a.txt", lines.replace("l5\n", "l5 theirs\n"));
        repo.git(&["commit", "-q", "-am", "theirs"]);
        repo.git(&["checkout", "-q", "main"]);
        repo.workflow().new_session("demo").done();
        repo.workflow().add(&["a.txt", "b.txt"]);
        let both = [edit("a.txt", "l5", "l5 T1"), edit("b.txt", "l5", "l5 T1")];
        repo.run_plan(&plan("Both", &both));
        repo
    };
    let check = |repo: &TestRepo| {
        let landed = repo.teddy(&["land", "1", "--no-edit", "--anyway"]);
        landed.check(4, &["overlap a.txt"]);
    };
    // The user's own version.
    let repo = begin();
    repo.git(&["checkout", "-q", "a.txt"]);
    repo.write("a.txt", lines.replace("l5\n", "l5 own\n"));
    repo.git(&["commit", "-q", "-m", "own", "a.txt"]);
    check(&repo);
    // git's, under the name of a commit.
    let repo = begin();
    repo.git(&["checkout", "-q", "a.txt"]);
    repo.git(&["merge", "-q", "--squash", "theirs"]);
    repo.git(&["commit", "-q", "-m", "squashed", "a.txt"]);
    check(&repo);
    // A later turn in the same file.
    let repo = begin();
    repo.git(&["checkout", "-q", "a.txt"]);
    repo.git(&["merge", "-q", "theirs"]);
    repo.run_plan(&plan("Two", &[edit("a.txt", "l25", "l25 T2")]));
    repo.done(&["land", "2", "--no-edit"]);
    check(&repo); // On a new branch, too.
    let landed = repo.teddy(&["land", "1", "--no-edit", "--anyway", "--branch", "new"]);
    landed.check(4, &["overlap a.txt"]);

    // A turn with edits in its line, which a new branch committed.
    let repo = begin();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.write("a.txt", lines.replace("l5\n", "l5 T1 mine\n"));
    repo.git(&["commit", "-q", "-am", "mine"]);
    let in_head = "HEAD already has what turn 1 did";
    repo.teddy(&["land", "--no-edit"]).check(1, &[in_head]);
}
