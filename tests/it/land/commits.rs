//! `land`: what the session's turns did, as commits on the user's branch.

use crate::support::landing::land_as;
use serde_json::json;
use teddy::workflow::land::LandOptions;

use crate::plans::{create, edit, execute, plan};
use crate::support::landing::{
    changed, check_clean, everything, hook, project, status, three_turns,
};
use crate::support::scripted_user::{Scripted, ScriptedUser};
use crate::support::{Output, TestRepo};

#[test]
fn all_turns_become_one_commit_without_own_edits() {
    let repo = three_turns();
    repo.write("a.txt", "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n");
    repo.write("mine.txt", "mine\n");
    let head = repo.git(&["rev-parse", "HEAD"]);
    insta::assert_snapshot!(repo.workflow().land(&land_as("Do it all\n\nBecause.")).done(), @"
    landed [1, 2, 3]: Do it all
      commit a.txt
      commit c.txt
      commit dir/b.txt
    ");

    assert_eq!(repo.git(&["rev-parse", "HEAD^"]), head);
    assert_eq!(changed(&repo), "M\ta.txt\nD\tc.txt\nA\tdir/b.txt");
    assert_eq!(
        repo.git(&["show", "HEAD:a.txt"]),
        "1\ntwo\n3\n4\n5\n6\n7\n8\n9"
    );
    assert_eq!(status(&repo), " M a.txt\n?? mine.txt");
    assert_eq!(repo.read("a.txt"), "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n");
    check_clean(&repo);
    assert_eq!(
        repo.git(&["log", "-1", "--format=%an %ae %cn"]),
        "Test test@localhost Test"
    );
    assert_eq!(
        repo.git(&["log", "-g", "-1", "--format=%gs", "main"]),
        "teddy land: Do it all"
    );
}

#[test]
fn t16_a_landing_is_a_turn_that_names_its_commits_and_turns() {
    let repo = three_turns();
    let value = repo.workflow().landed(&land_as("Do it all"));
    let head = repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(value["commits"][0]["commit"], json!(head));
    assert_eq!(value["commits"][0]["turns"], json!([1, 2, 3]));
    assert_eq!(
        (&value["turn"], &value["branch"]),
        (&json!(4), &json!("main"))
    );

    let log = repo.json(&["log"], 0);
    assert_eq!(log[0]["status"], "landed");
    assert_eq!(log[0]["title"], "Land turns 1-3 on main");
    let meta = repo.done(&["show", "@", "meta.yaml"]);
    let id = log[3]["turn_id"].as_str().unwrap();
    for line in [
        "status: landed",
        "  branch: main",
        &format!("  - commit: {head}"),
        &format!("      turn_id: {id}"),
    ] {
        assert!(meta.contains(line), "{line}: {meta}");
    }
    let trailers = repo.git(&["log", "-1", "--format=%(trailers:only)"]);
    let lines: Vec<&str> = trailers.lines().collect();
    assert_eq!(lines[0], "Teddy-Session: demo");
    assert_eq!(lines[1], "Teddy-Turns: 1-3");
    assert_eq!(lines[2], format!("Teddy-Turn: 1 {id}"));
    assert_eq!(lines.len(), 5, "{trailers}");
    assert_eq!(status(&repo), "");

    let value = repo.json(&["status"], 0);
    assert_eq!(
        value["landed"],
        json!({"turn": 4, "branch": "main", "on_branch": true, "commits": [head], "turns": [1, 2, 3], "waiting": []})
    );
    assert_eq!(log[0]["landed"]["commits"][0]["commit"], json!(head));
    let short = &head[..8];
    repo.teddy(&["log"])
        .check(0, &[&format!("Land turns 1-3 on main as {short}")]);

    insta::assert_snapshot!(repo.printed(&["land", "-m", "Again"]), @"
    --- stderr
    error: nothing to land: no turn of session `demo` that is in effect has changes that have not landed yet
    hint: `teddy log` lists the turns; `teddy land <turn>` lands one again
    exit code 1
    ");
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    let landed = format!("Landed on main: turns 1-3 ({short}); not yet: turn 5\n");
    assert!(repo.done(&["status"]).contains(&landed));
    repo.done(&["land", "--no-edit"]);
    assert_eq!(changed(&repo), "A\td.txt");
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "Make d");
    assert_eq!(status(&repo), "");
}

#[test]
fn status_lists_the_turns_that_land_would_take() {
    let repo = three_turns();
    let waiting = || repo.workflow().status()["landed"]["waiting"].clone();
    repo.done(&["land", "2", "--no-edit"]);
    assert_eq!(waiting(), json!([1, 3]));
    let landed = repo.json(&["land", "--no-edit"], 0);
    assert_eq!(landed["commits"][0]["turns"], json!([1, 3]));
    assert_eq!(waiting(), json!([]));

    // A turn on a file that is not committed, which a later turn deletes.
    repo.write("own.txt", "one\n");
    repo.workflow().add(&["own.txt"]);
    repo.workflow()
        .run_plan(&plan("Edit own", &[edit("own.txt", "one", "two")]));
    assert_eq!(waiting(), json!([6]));
    repo.run_plan(&plan(
        "Delete own",
        &[execute("rm own.txt; echo e > e.txt")],
    ));
    assert_eq!(waiting(), json!([7]));
    let landed = repo.json(&["land", "--no-edit"], 0);
    assert_eq!(landed["commits"][0]["turns"], json!([7]));
    assert_eq!(waiting(), json!([]));
}

#[test]
fn staged_changes_are_kept_staged() {
    let repo = three_turns();
    let whole = "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n";
    repo.write("own.txt", "own\n");
    repo.git(&["add", "own.txt"]);
    // Staged without what the turn did.
    repo.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    repo.git(&["add", "a.txt"]);
    repo.write("a.txt", whole);
    // Staged with what the turn did.
    repo.git(&["add", "dir/b.txt"]);
    repo.workflow().land(&land_as("Land")).done();

    assert_eq!(status(&repo), "M  a.txt\nA  own.txt");
    assert_eq!(repo.git(&["show", ":a.txt"]), whole.trim_end());
    assert_eq!(
        repo.git(&["diff", "--cached", "--stat", "--", "a.txt"])
            .lines()
            .last()
            .unwrap(),
        " 1 file changed, 1 insertion(+), 1 deletion(-)"
    );
    assert_eq!(changed(&repo), "M\ta.txt\nD\tc.txt\nA\tdir/b.txt");
    check_clean(&repo);
}

#[test]
fn a_hook_that_refuses_leaves_everything_as_it_was() {
    let repo = three_turns();
    hook(&repo, "pre-commit", "echo 'the linter says no' >&2; exit 1");
    let before = everything(&repo);
    insta::assert_snapshot!(repo.printed(&["land", "-m", "Land"]), @"
    --- stderr
    the linter says no
    error: git made no commit (exit status: 1); nothing was changed
    hint: git, or a hook, has said why above; `--no-verify` skips the pre-commit and commit-msg hooks
    exit code 1
    ");
    assert_eq!(everything(&repo), before);
    check_clean(&repo);
    let error = &repo.json(&["land", "-m", "Land"], 1)["error"];
    assert_eq!(error["kind"], "CommitRefused");

    repo.done(&["land", "-m", "Land", "--no-verify"]);
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "Land");
}

#[test]
fn a_linter_of_messages_sees_the_message_and_the_branch() {
    let repo = three_turns();
    hook(
        &repo,
        "commit-msg",
        "git symbolic-ref --short HEAD > \"$OUT\"\nhead -1 \"$1\" | grep -q '^feat: ' || { echo 'not conventional' >&2; exit 1; }",
    );
    hook(&repo, "prepare-commit-msg", "sed -i '1s/$/ [T-7]/' \"$1\"");
    hook(
        &repo,
        "post-commit",
        "git rev-parse HEAD > \"$OUT.post\"; pwd >> \"$OUT.post\"",
    );
    let run = |message: &str| {
        let mut command = repo.teddy_command(&["land", "-m", message]);
        command
            .current_dir(repo.path())
            .env("OUT", repo.beside("out"));
        Output::of(&mut command)
    };
    let before = everything(&repo);
    run("Land").check(1, &["not conventional"]);
    assert_eq!(everything(&repo), before);

    run("feat: land").check(0, &[]);
    let read = |name: &str| std::fs::read_to_string(repo.beside(name)).unwrap();
    assert_eq!(read("out"), "main\n");
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "feat: land [T-7]");
    // It hears of a commit that is there, where the user is.
    let head = repo.git(&["rev-parse", "HEAD"]);
    assert_eq!(
        read("out.post"),
        format!("{head}\n{}\n", repo.path().display())
    );
}

#[test]
fn what_a_formatter_changes_is_in_the_commit_and_in_the_files() {
    let repo = three_turns();
    repo.write("a.txt", "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n");
    // It sees what is committed, and nothing else.
    hook(
        &repo,
        "pre-commit",
        "test ! -e c.txt || exit 1\ngrep -q nine a.txt && exit 1\nsed -i 's/^two$/TWO/' a.txt\necho made > made.txt\ngit add a.txt made.txt",
    );
    let value = repo.workflow().landed(&land_as("Land"));
    assert_eq!(value["formatted"], json!(["a.txt", "made.txt"]));
    assert_eq!(
        repo.git(&["show", "HEAD:a.txt"]),
        "1\nTWO\n3\n4\n5\n6\n7\n8\n9"
    );
    assert_eq!(repo.read("a.txt"), "1\nTWO\n3\n4\n5\n6\n7\n8\nnine\n");
    assert_eq!(repo.read("made.txt"), "made\n");
    assert_eq!(status(&repo), " M a.txt");
    check_clean(&repo);
}

#[test]
fn an_overlap_changes_nothing_and_is_named() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    repo.git(&["stash", "-q"]);
    repo.write("a.txt", "1\nzwei\n3\n4\n5\n6\n7\n8\n9\n");
    repo.commit("german");
    repo.git(&["checkout", "-q", "stash@{0}", "--", "a.txt"]);
    repo.git(&["reset", "-q"]);
    let before = everything(&repo);
    insta::assert_snapshot!(repo.workflow().land(&land_as("Land")).refused(), @"
    turn 1 overlaps with main
      overlap a.txt
    ");
    assert_eq!(everything(&repo), before);
    let value = repo.workflow().landed(&land_as("Land"));
    assert_eq!(
        (&value["overlaps"], &value["overlapping"], &value["commits"]),
        (&json!(["a.txt"]), &json!(1), &json!([]))
    );
}

#[test]
fn a_turn_on_another_that_has_not_landed_overlaps_and_names_it() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    repo.workflow()
        .run_plan(&plan("Change it again", &[edit("a.txt", "two", "zwei")]));
    let before = everything(&repo);
    insta::assert_snapshot!(repo.printed(&["land", "2", "-m", "Land"]), @"
    overlap a.txt
    --- stderr
    warning: turn 2 overlaps with what HEAD has there, and builds on turn 1, which HEAD lacks; nothing was changed
    hint: `teddy land 1..2` lands them together
    exit code 4
    ");
    assert_eq!(everything(&repo), before);
    repo.done(&["land", "1..2", "-m", "Land"]);
    assert_eq!(
        repo.git(&["show", "HEAD:a.txt"]),
        repo.read("a.txt").trim_end()
    );
}

/// Bug: the hint was about edits of the user's.
#[test]
fn a_turn_on_another_that_landed_on_another_branch_overlaps_and_names_it() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    repo.done(&["land", "-m", "One", "--branch", "side"]);
    repo.workflow()
        .run_plan(&plan("Change it again", &[edit("a.txt", "two", "zwei")]));
    insta::assert_snapshot!(repo.printed(&["land", "-m", "Land"]), @"
    overlap a.txt
    --- stderr
    warning: turn 3 overlaps with what HEAD has there, and builds on turn 1, which HEAD lacks; nothing was changed
    hint: `teddy land 1..3` lands them together
    exit code 4
    ");
    repo.done(&["land", "1..3", "-m", "Land"]);
    assert_eq!(
        repo.git(&["show", "HEAD:a.txt"]),
        repo.read("a.txt").trim_end()
    );
}

#[test]
fn a_landing_on_a_branch_that_was_renamed_is_found_where_the_user_is() {
    let repo = three_turns();
    repo.workflow().land(&land_as("All")).done();
    repo.git(&["branch", "-m", "main", "trunk"]);
    let commit = repo.git(&["rev-parse", "--short=8", "HEAD"]);
    repo.teddy(&["status"]).check(
        0,
        &[&format!(
            "Landed on main: turns 1-3, now {commit} on trunk\n"
        )],
    );
    assert_eq!(repo.json(&["status"], 0)["landed"]["here"], "trunk");
}

#[test]
fn the_hint_of_an_overlap_leads_to_a_commit_of_ones_own_and_the_landing() {
    let repo = project();
    repo.write("a.txt", "mine\n");
    repo.workflow()
        .run_plan(&plan("Change mine", &[edit("a.txt", "mine", "theirs")]));
    let out = repo.teddy(&["land", "-m", "Land"]);
    out.check(4, &["if these are edits of yours: `teddy restore 0`"]);
    assert!(!out.stderr.contains("another turn"), "there is only one");

    repo.workflow().restore("0").done();
    repo.commit("my own");
    repo.workflow().undo(1).done();
    repo.workflow().land(&land_as("Land")).done();
    assert_eq!(repo.git(&["show", "HEAD^:a.txt"]), "mine");
    assert_eq!(repo.git(&["show", "HEAD:a.txt"]), "theirs");
}

#[test]
fn a_hook_finds_what_git_ignores_and_cannot_commit_it() {
    let repo = three_turns();
    repo.write(".gitignore", "*.log\nnode_modules/\n");
    repo.git(&["commit", "-q", "-m", "ignore", ".gitignore"]);
    repo.write(
        "node_modules/.bin/fmt",
        "#!/bin/sh\nsed -i 's/^two$/TWO/' \"$1\"\n",
    );
    repo.write("my own.log", "log\n");
    repo.git(&["config", "core.excludesFile", ".git/own"]);
    repo.write(".git/own", "*.tmp");
    hook(
        &repo,
        "pre-commit",
        "test -f 'my own.log' || exit 1\ntouch x.tmp\nsh node_modules/.bin/fmt a.txt && git add -A",
    );
    repo.workflow().land(&land_as("Land")).done();
    assert_eq!(changed(&repo), "M\ta.txt\nD\tc.txt\nA\tdir/b.txt");
    assert_eq!(repo.read("a.txt"), "1\nTWO\n3\n4\n5\n6\n7\n8\n9\n");
    assert_eq!(status(&repo), "");
    assert_eq!(repo.read("my own.log"), "log\n");
}

/// Regression: turn 1 overlapped with HEAD for good, although HEAD has it, with the user's edit.
#[test]
fn a_turn_that_was_edited_and_committed_by_hand_does_not_block_the_next() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow().run_plan(&plan(
        "Two",
        &[edit("a.txt", "one", "two"), create("b.txt", "b\n")],
    ));
    repo.write("a.txt", "two, mine\n");
    repo.workflow()
        .run_plan(&plan("Three", &[edit("a.txt", "two, mine", "three")]));
    insta::assert_snapshot!(repo.workflow().land(&land_as("Land")).refused(), @"
    turn 2 overlaps with main
      overlap a.txt
    ");
    repo.write("a.txt", "two, mine\n");
    repo.commit("mine");
    repo.write("a.txt", "three\n");
    repo.workflow().land(&land_as("Land")).done();
    assert_eq!(repo.git(&["show", "HEAD:a.txt"]), "three");
    assert!(
        !repo
            .git(&["log", "-1", "--format=%B"])
            .contains("Teddy-Turn: 1")
    );
    insta::assert_snapshot!(repo.workflow().land(&land_as("Land")).refused(), @"
    error: nothing to land: HEAD already has what turn 1 did
    hint: `git log` shows which commit has it
    exit code 1
    ");
    repo.write("a.txt", "four\n");
    repo.commit("more of mine");
    repo.write("b.txt", "not committed\n");
    insta::assert_snapshot!(repo.workflow().land(&land_as("Land")).refused(), @"
    error: nothing to land: HEAD already has what turn 1 did
    hint: `git log` shows which commit has it
    exit code 1
    ");
}

/// Regression: the subject was `Call it c`.
#[test]
fn a_plan_made_instead_of_a_declined_one_lands_with_its_title() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.reply(&plan("Make b", &[create("b.txt", "made\n")]))
        .reply(&plan("Make c", &[create("c.txt", "made\n")]));
    repo.workflow().plan("make a file").done();
    let user = ScriptedUser::deciding([Scripted::Skip(Some("call it c"))]);
    repo.workflow().with(user).execute().done();
    let user = ScriptedUser::deciding([Scripted::Approve]);
    repo.workflow().with(user).execute().done();
    repo.workflow().land(&LandOptions::default()).done();
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "Make c");
}

#[test]
fn hooks_of_a_relative_folder_run() {
    let repo = three_turns();
    repo.git(&["config", "core.hooksPath", "hooks"]);
    repo.write(
        "hooks/pre-commit",
        "#!/bin/sh\ncat \"$(dirname \"$0\")/words\" >&2\nexit 1\n",
    );
    repo.write("hooks/words", "found where it is\n");
    let mut permissions = repo
        .path()
        .join("hooks/pre-commit")
        .metadata()
        .unwrap()
        .permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(repo.path().join("hooks/pre-commit"), permissions).unwrap();
    insta::assert_snapshot!(repo.workflow().land(&land_as("Land")).refused(), @"
    error: git made no commit (exit status: 1); nothing was changed
    hint: git, or a hook, has said why above; `--no-verify` skips the pre-commit and commit-msg hooks
    exit code 1
    ");
}

#[test]
fn a_dry_run_shows_message_and_files_and_changes_nothing() {
    let repo = three_turns();
    let before = everything(&repo);
    insta::assert_snapshot!(repo.printed(&["land", "-n"]), @"
    turns 1-3 on main

        Change a

        - Change a
        - Make b
        - Delete c

        Teddy-Session: demo
        Teddy-Turns: 1-3
        Teddy-Turn: 1 [id]
        Teddy-Turn: 2 [id]
        Teddy-Turn: 3 [id]

     a.txt     | 2 +-
     c.txt     | 1 -
     dir/b.txt | 1 +
     3 files changed, 2 insertions(+), 2 deletions(-)
    exit code 0
    ");
    let value = repo.json(&["land", "-n", "-m", "Mine"], 0);
    assert_eq!(value["commits"][0]["title"], "Mine");
    assert_eq!(
        value["commits"][0]["files"],
        json!(["a.txt", "c.txt", "dir/b.txt"])
    );
    assert_eq!(
        (&value["turn"], &value["commits"][0]["commit"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(everything(&repo), before);
}

#[test]
fn each_turn_becomes_a_commit() {
    let repo = three_turns();
    // What a hook changes in one commit is what the next one stands on.
    hook(
        &repo,
        "pre-commit",
        "git diff --cached --quiet -- a.txt && exit 0\nsed -i 's/^two$/TWO/' a.txt\ngit add a.txt",
    );
    repo.write("a.txt", "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n");
    let value = repo.json(&["land", "--each"], 0);
    assert_eq!(value["commits"].as_array().unwrap().len(), 3);
    assert_eq!(
        repo.git(&[
            "log",
            "--reverse",
            "--format=%s",
            "--name-status",
            "HEAD~3.."
        ]),
        "Change a\n\nM\ta.txt\nMake b\n\nA\tdir/b.txt\nDelete c\n\nD\tc.txt"
    );
    assert_eq!(
        repo.git(&["log", "-1", "--format=%(trailers:key=Teddy-Turn,valueonly)"])
            .split(' ')
            .next(),
        Some("3")
    );
    assert_eq!(repo.read("a.txt"), "1\nTWO\n3\n4\n5\n6\n7\n8\nnine\n");
    assert_eq!(status(&repo), " M a.txt");
}

#[test]
fn a_refusal_in_the_middle_leaves_the_commits_before_it() {
    let repo = three_turns();
    let head = repo.git(&["rev-parse", "HEAD"]);
    repo.git(&["config", "includeIf.onbranch:main.path", "who"]);
    repo.write(".git/who", "[user]\n\temail = main@example.org\n");
    hook(
        &repo,
        "pre-commit",
        "git diff --cached --quiet -- c.txt || { echo 'c must stay' >&2; exit 1; }",
    );
    let mut command = repo.teddy_command(&["land", "--each"]);
    command
        .env_remove("GIT_AUTHOR_EMAIL")
        .current_dir(repo.path());
    let out = Output::of(&mut command);
    let short = |name: &str| repo.git(&["rev-parse", name])[..8].to_owned();
    let landed = format!(
        "turn 1 as {}, turn 2 as {} landed on main; the next commit failed: git made no commit",
        short("HEAD~1"),
        short("HEAD")
    );
    out.check(1, &["c must stay", &landed, "hint: "]);
    assert_eq!(repo.git(&["rev-parse", "HEAD~2"]), head);
    assert_eq!(
        repo.git(&["log", "-2", "--format=%s %ae"]),
        "Make b main@example.org\nChange a main@example.org"
    );
    assert_eq!(status(&repo), " D c.txt");
    check_clean(&repo);

    let value = repo.json(&["status"], 0);
    assert_eq!(value["landed"]["turns"], json!([1, 2]));
    repo.done(&["land", "--no-edit", "--no-verify"]);
    assert_eq!(changed(&repo), "D\tc.txt");
}

#[test]
fn a_range_lands_what_it_names() {
    let repo = three_turns();
    repo.done(&["land", "2", "-m", "Two"]);
    assert_eq!(changed(&repo), "A\tdir/b.txt");
    assert_eq!(status(&repo), " M a.txt\n D c.txt");
    repo.done(&["land", "-m", "Rest"]);
    assert_eq!(changed(&repo), "M\ta.txt\nD\tc.txt");
    assert_eq!(status(&repo), "");
    repo.git(&["reset", "-q", "--hard", "HEAD~2"]);
    repo.done(&["restore", "@", "--exact", "-y"]);
    insta::assert_snapshot!(repo.printed(&["land", "-m", "x"]), @"
    --- stderr
    error: nothing to land: no turn of session `demo` that is in effect has changes that have not landed yet
    hint: your `main` does not have the commit of turns 1-3; if it lacks the changes, too, `teddy land 1..3` lands them again
    exit code 1
    ");
    repo.done(&["land", "1..2", "-m", "Again"]);
    assert_eq!(changed(&repo), "M\ta.txt\nA\tdir/b.txt");

    for (range, code, words) in [
        ("9", 1, "has no turn `9`"),
        ("2..1", 2, "`2..1` is not a range of turns"),
        ("4", 1, "turn 4 changed no file"),
        ("2", 1, "HEAD already has what turn 2 did"),
    ] {
        repo.teddy(&["land", range, "-m", "x"])
            .check(code, &[words]);
    }
}

#[test]
fn a_landing_that_is_not_on_the_branch_any_more_is_named_with_what_lands_it_again() {
    let repo = three_turns();
    repo.workflow().land(&land_as("All")).done();
    repo.git(&["reset", "-q", "--soft", "HEAD~1"]);
    insta::assert_snapshot!(repo.workflow().land(&land_as("x")).refused(), @"
    error: nothing to land: no turn of session `demo` that is in effect has changes that have not landed yet
    hint: your `main` does not have the commit of turns 1-3; if it lacks the changes, too, `teddy land 1..3` lands them again
    exit code 1
    ");
    let two = LandOptions {
        range: Some("2".to_owned()),
        ..land_as("Two")
    };
    repo.workflow().land(&two).done();
    insta::assert_snapshot!(repo.workflow().land(&land_as("x")).refused(), @"
    error: nothing to land: no turn of session `demo` that is in effect has changes that have not landed yet
    hint: your `main` does not have the commit of turns 1, 3; if it lacks the changes, too, `teddy land 1` lands the first of them again
    exit code 1
    ");
    repo.workflow().undo(1).done();
    insta::assert_snapshot!(repo.workflow().land(&land_as("x")).refused(), @"
    error: nothing to land: no turn of session `demo` that is in effect has changes that have not landed yet
    hint: your `main` does not have the commit of turn 1; if it lacks the changes, too, `teddy land 1` lands it again
    exit code 1
    ");
}

#[test]
fn a_turn_that_another_session_landed_does_not_wait_in_a_branch_of_the_session() {
    let repo = three_turns();
    repo.workflow().land(&land_as("First")).done();
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.workflow().branch("5", "x").done();
    let branched = || repo.workflow().session("x");
    assert_eq!(branched().status()["landed"]["waiting"], json!([5]));

    repo.workflow()
        .session("demo")
        .land(&land_as("Second"))
        .done();
    assert_eq!(branched().status()["landed"]["waiting"], json!([]));
    insta::assert_snapshot!(branched().land(&land_as("x")).refused(), @"
    error: nothing to land: HEAD already has what turn 5 did
    hint: `git log` shows which commit has it
    exit code 1
    ");
}

#[test]
fn undo_in_a_renamed_session_names_landed_turns() {
    let repo = three_turns();
    repo.done(&["land", "-m", "Land"]);
    repo.done(&["branch", "-m", "renamed"]);
    let short = &repo.git(&["rev-parse", "HEAD"])[..8];
    let out = repo.teddy(&["undo"]);
    out.check(0, &[&format!("landed as {short} on main"), "git revert"]);
}

#[test]
fn t17_turns_that_were_undone_do_not_land_and_landed_ones_leave_the_branch() {
    let repo = three_turns();
    repo.workflow().undo(1).done();
    insta::assert_snapshot!(repo.printed(&["land", "3", "-m", "x"]), @"
    --- stderr
    error: turn 3 is not in effect: it was undone, or its result was never applied
    hint: `teddy redo` or `teddy restore 3` restores it
    exit code 1
    ");
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(changed(&repo), "M\ta.txt\nA\tdir/b.txt");
    assert_eq!(status(&repo), "");
    let head = repo.git(&["rev-parse", "HEAD"]);

    let out = repo.teddy(&["undo"]);
    let short = &head[..8];
    out.check(
        0,
        &[
            &format!("turn 2 has landed as {short} on main"),
            "git revert",
        ],
    );
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(status(&repo), " D dir/b.txt");
    insta::assert_snapshot!(repo.printed(&["land", "-m", "x"]), @"
    --- stderr
    error: nothing to land: no turn of session `demo` that is in effect has changes that have not landed yet
    hint: `teddy log` lists the turns; `teddy land <turn>` lands one again
    exit code 1
    ");
    repo.done(&["redo"]);
    assert_eq!(status(&repo), "");
    repo.workflow().restore("0").done();
    assert_eq!(status(&repo), " M a.txt\n D dir/b.txt");
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
}

/// Where an undo kept the user's side, what the turn did is still below it in the files; the turn
/// landed once all the same.
#[test]
fn a_turn_that_was_undone_for_the_users_side_does_not_land() {
    let repo = project();
    repo.workflow().run_plan(&plan(
        "Change a",
        &[edit("a.txt", "2", "two"), create("b.txt", "b\n")],
    ));
    repo.write("a.txt", repo.read("a.txt").replace("two", "my two"));
    assert_eq!(repo.teddy(&["undo"]).code, 4);
    repo.done(&["undo", "--ours"]);
    assert!(repo.read("a.txt").contains("my two"));
    insta::assert_snapshot!(repo.printed(&["land", "-m", "x"]), @"
    --- stderr
    error: nothing to land: no turn of session `demo` that is in effect has changes that have not landed yet
    hint: `teddy log` lists the turns; `teddy land <turn>` lands one again
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["land", "1", "-m", "x"]), @"
    --- stderr
    error: turn 1 is not in effect: it was undone, or its result was never applied
    hint: `teddy redo` or `teddy restore 1` restores it
    exit code 1
    ");

    repo.done(&["redo", "--ours"]);
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(changed(&repo), "M\ta.txt\nA\tb.txt");
    assert!(repo.git(&["show", "HEAD:a.txt"]).contains("two"));
    assert_eq!(status(&repo), " M a.txt");
}
