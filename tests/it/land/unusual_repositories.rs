//! `land` in repositories that are not quite ordinary.

use crate::support::landing::land_as;
use serde_json::json;

use crate::plans::{create, edit, execute, plan};
use crate::support::landing::{changed, check_clean, hook, project, status, three_turns};
use crate::support::{Output, TestRepo};

/// Lands one new file beside own edits of all kinds, and checks that just these are left.
#[track_caller]
fn lands(repo: &TestRepo) {
    repo.workflow()
        .run_plan(&plan("Make d", &[create("deep/d.txt", "d\n")]));
    repo.write("own.txt", "own\n");
    let before = status(repo).replace("?? deep/d.txt\n", "");
    repo.workflow().land(&land_as("Land")).done();
    assert_eq!(changed(repo), "A\tdeep/d.txt");
    assert_eq!(status(repo), before);
    check_clean(repo);
    assert_eq!(repo.git(&["fsck", "--no-dangling"]), "");
}

#[test]
fn every_kind_of_repository_lands() {
    for kind in [
        &["--object-format=sha256"][..],
        &["--ref-format=reftable"],
        &["--ref-format=reftable", "--object-format=sha256"],
    ] {
        let repo = TestRepo::with(kind).file("a.txt", "a\n");
        repo.commit("init");
        repo.workflow().new_session("demo").done();
        hook(&repo, "pre-commit", "test -e deep/d.txt");
        hook(
            &repo,
            "commit-msg",
            "test \"$(git branch --show-current)\" = main",
        );
        repo.write("a.txt", "b\n");
        repo.git(&["add", "a.txt"]);
        lands(&repo);
        repo.workflow().verify().done();
        repo.workflow().undo(1).done();
    }
}

#[test]
fn a_reftable_survives_a_kill_between_branch_and_session() {
    use std::os::unix::process::ExitStatusExt as _;
    let repo = TestRepo::with(&["--ref-format=reftable"]).file("a.txt", "a\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    for point in ["before-branch", "after-branch"] {
        let mut command = repo.teddy_command(&["land", "-m", "Land"]);
        let armed = format!("{point}=1*return(kill)");
        let out = command.current_dir(repo.path()).env("FAILPOINTS", armed);
        assert_eq!(out.output().unwrap().status.signal(), Some(9));
        repo.done(&["doctor", "--fix"]);
        check_clean(&repo);
    }
    assert_eq!(repo.json(&["log"], 0)[0]["status"], "landed");
    assert_eq!(
        (changed(&repo), status(&repo)),
        ("A\td.txt".to_owned(), String::new())
    );
    repo.done(&["verify"]);
}

#[test]
fn an_index_keeps_its_format() {
    let repo = project();
    repo.git(&["update-index", "--assume-unchanged", "c.txt"]);
    repo.git(&["config", "core.untrackedCache", "true"]);
    repo.git(&["update-index", "--split-index", "--untracked-cache"]);
    repo.write("a.txt", "staged\n");
    repo.git(&["add", "a.txt"]);
    lands(&repo);
    assert!(repo.git(&["ls-files", "-v", "c.txt"]).starts_with('h'));
    let shared = std::fs::read_dir(repo.path().join(".git")).unwrap();
    let names = shared.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(
        names
            .into_iter()
            .any(|name| name.starts_with("sharedindex."))
    );
}

/// Bug: a landing dropped the marks, and the next `git commit -a` had the local line.
#[test]
fn marks_of_the_index_outlive_a_landing() {
    for (mark, tag) in [("--skip-worktree", "S"), ("--assume-unchanged", "h")] {
        let repo = TestRepo::new().file("conf", "1\n2\n3\n4\n5\n6\n7\n8\n");
        repo.commit("init");
        repo.write("conf", "1\n2\n3\n4\n5\n6\n7\nlocal\n");
        repo.done(&["new", "demo"]);
        repo.git(&["update-index", mark, "conf"]);
        repo.workflow().add(&["conf"]);
        repo.run_plan(&plan("Edit", &[edit("conf", "1", "one")]));
        repo.done(&["land", "-m", "Land"]);
        assert_eq!(repo.git(&["ls-files", "-v"]), format!("{tag} conf"));
        assert_eq!(status(&repo), "");
        assert!(repo.read("conf").starts_with("one\n"));
    }
}

#[test]
fn a_sparse_checkout_stays_sparse() {
    let repo = project();
    repo.write("far/away.txt", "far\n");
    repo.commit("far");
    repo.git(&["sparse-checkout", "set", "--cone", "deep"]);
    repo.git(&["config", "index.sparse", "true"]);
    repo.git(&["sparse-checkout", "reapply"]);
    hook(&repo, "pre-commit", "test -e deep/d.txt");
    lands(&repo);
    assert!(!repo.path().join("far").exists());
    assert_eq!(repo.git(&["show", "HEAD:far/away.txt"]), "far");
}

/// Bug: the commit had the tree of a new directory outside of the sparse checkout as a file.
#[test]
fn a_new_directory_outside_of_a_sparse_checkout_lands() {
    let repo = TestRepo::new()
        .file("src/a.txt", "a\n")
        .file("docs/c/b.txt", "b\n");
    repo.commit("init");
    repo.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "src"]);
    repo.done(&["new", "demo"]);
    let script = "mkdir -p new/sub && echo n > new/sub/n.txt && echo x >> src/a.txt";
    repo.run_plan(&plan("Add", &[execute(script)]));
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(
        (changed(&repo), status(&repo)),
        ("A\tnew/sub/n.txt\nM\tsrc/a.txt".to_owned(), String::new())
    );
    repo.git(&["fsck", "--strict"]);
    assert_eq!(repo.git(&["ls-files", "new"]), "new/sub/n.txt");
}

#[test]
fn a_submodule_is_not_moved() {
    let repo = project();
    let other = TestRepo::new().file("x.txt", "x\n");
    other.commit("init");
    let url = other.path().display().to_string();
    repo.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "-q",
        "add",
        &url,
        "sub",
    ]);
    repo.commit("sub");
    repo.write("sub/x.txt", "edited\n");
    hook(
        &repo,
        "pre-commit",
        "git submodule status > /dev/null && test -e deep/d.txt",
    );
    lands(&repo);
    assert_eq!(repo.read("sub/x.txt"), "edited\n");
}

#[test]
fn lines_that_end_otherwise_in_files_land_as_git_stores_them() {
    let repo = TestRepo::new()
        .file(".gitattributes", "*.txt text eol=crlf\n")
        .file("a.txt", "1\r\n2\r\n3\r\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.run_plan(&plan(
        "Change a",
        &[execute("printf '1\\r\\ntwo\\r\\n3\\r\\n' > a.txt")],
    ));
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(repo.git(&["cat-file", "blob", "HEAD:a.txt"]), "1\ntwo\n3");
    assert_eq!(repo.read("a.txt"), "1\r\ntwo\r\n3\r\n");
    assert_eq!(status(&repo), "");
}

#[test]
fn changes_of_a_hook_that_overlap_own_edits_do_not_land() {
    let repo = three_turns();
    repo.write("a.txt", "1\ntwo, and mine\n3\n4\n5\n6\n7\n8\n9\n");
    hook(
        &repo,
        "pre-commit",
        "sed -i 's/^two$/TWO/' a.txt && git add a.txt",
    );
    insta::assert_snapshot!(repo.workflow().land(&land_as("Land")).refused(), @"
    landed [1, 2, 3]: Land
      commit a.txt
      commit c.txt
      commit dir/b.txt
      overlap a.txt
    ");
    assert!(repo.git(&["show", "HEAD:a.txt"]).contains("TWO"));
    assert!(repo.read("a.txt").contains("two, and mine"));
    assert_eq!(status(&repo), " M a.txt");
    assert_eq!(repo.workflow().log()[0]["status"], "landed");
}

#[test]
fn what_was_taken_back_in_a_part_of_the_files_does_not_land() {
    let repo = three_turns();
    repo.done(&["restore", "0", "dir", "c.txt"]);
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(changed(&repo), "M\ta.txt");
    assert_eq!(status(&repo), "");
}

#[test]
fn a_branch_that_is_forked_lands_only_its_own() {
    let repo = three_turns();
    repo.workflow().land(&land_as("Land")).done();
    repo.workflow().branch("2", "other").done();
    repo.workflow().restore("@").done();
    repo.workflow()
        .run_plan(&plan("Make e", &[create("e.txt", "e\n")]));
    let value = repo.workflow().landed(&land_as("Fork"));
    // The turns that it shares are in HEAD.
    assert_eq!(value["commits"][0]["turns"], json!([4]));
    assert_eq!(changed(&repo), "A\te.txt");
    assert_eq!(status(&repo), "?? c.txt");
}

#[test]
fn as_a_git_command_in_a_subdirectory_it_is_the_same() {
    let repo = three_turns();
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_teddy"))
        .parent()
        .unwrap();
    let like = repo.teddy_command(&[]);
    let mut git = repo.command("git");
    for (name, value) in like.get_envs() {
        git.env(name, value.unwrap_or_default());
    }
    let path = std::env::join_paths(
        [bin.to_owned()].into_iter().chain(std::env::split_paths(
            like.get_envs()
                .find(|(name, _)| *name == "PATH")
                .unwrap()
                .1
                .unwrap(),
        )),
    );
    git.env("PATH", path.unwrap())
        .current_dir(repo.path().join("dir"))
        .args([
            "-c",
            "user.name=Somebody Else",
            "teddy",
            "land",
            "-m",
            "Land",
        ])
        .env_remove("GIT_AUTHOR_NAME");
    Output::of(&mut git).check(0, &["Landed turns 1-3 on main"]);
    assert_eq!(repo.git(&["log", "-1", "--format=%an"]), "Somebody Else");
    assert_eq!(status(&repo), "");
}

#[test]
fn turns_that_undo_each_other_leave_nothing() {
    let repo = project();
    repo.run_plan(&plan("There", &[edit("a.txt", "2", "two")]));
    repo.run_plan(&plan("And back", &[edit("a.txt", "two", "2")]));
    insta::assert_snapshot!(repo.printed(&["land", "-m", "x"]), @"
    --- stderr
    error: nothing to land: turns 1, 2 revert each other
    hint: `teddy land --each` makes a commit of each of them
    exit code 1
    ");
    let value = repo.json(&["land", "--each"], 0);
    assert_eq!(value["commits"].as_array().unwrap().len(), 2);
}

#[test]
fn a_tool_that_writes_hooks_anew_moves_nothing() {
    let repo = three_turns();
    let head = repo.git(&["rev-parse", "HEAD"]);
    // As lefthook does when it finds them out of date.
    hook(
        &repo,
        "pre-commit",
        "h=$(git rev-parse --git-path hooks)\nprintf '#!/bin/sh\\n' > $h/commit-msg; chmod +x $h/commit-msg\ngit config --get core.hooksPath && exit 1; exit 0",
    );
    repo.workflow().land(&land_as("Land")).done();
    assert_eq!(repo.git(&["rev-parse", "HEAD^"]), head);
    assert_eq!(status(&repo), "");
    assert!(repo.path().join(".git/hooks/commit-msg").exists());
    check_clean(&repo);
}

#[test]
fn a_message_is_utf_8_with_any_commit_encoding() {
    let repo = project();
    repo.git(&["config", "i18n.commitEncoding", "ISO-8859-1"]);
    repo.workflow()
        .run_plan(&plan("Over", &[edit("a.txt", "2", "two")]));
    repo.workflow()
        .land(&land_as("\u{dc}ber die Stra\u{df}e"))
        .done();
    let raw = repo.git(&[
        "-c",
        "i18n.logOutputEncoding=UTF-8",
        "log",
        "-1",
        "--format=%s",
    ]);
    assert_eq!(raw, "\u{dc}ber die Stra\u{df}e");
}

#[test]
fn what_hooks_changed_is_undone_with_the_turn_before_it() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.workflow()
        .run_plan(&plan("Make e", &[create("e.txt", "e\n")]));
    hook(&repo, "pre-commit", "echo formatted > e.txt; git add e.txt");
    repo.workflow().land(&land_as("Land")).done();
    assert_eq!(repo.read("e.txt"), "formatted\n");

    insta::assert_snapshot!(repo.workflow().undo(3).refused(), @"
    error: only 2 turns can be undone
    hint: `teddy undo 2` goes back to the start
    exit code 1
    ");
    repo.workflow().undo(1).done();
    assert!(!repo.path().join("e.txt").exists());
    assert_eq!(repo.workflow().log()[0]["title"], "Undo 2: Make e");
    repo.workflow().redo(1).done();
    assert_eq!(repo.read("e.txt"), "formatted\n");
    repo.workflow().undo(2).done();
    assert!(!repo.path().join("d.txt").exists());
}

/// As nbstripout does with the output of notebooks.
#[test]
fn what_a_clean_filter_drops_stays_in_the_files_and_out_of_the_commit() {
    for is_separate in [false, true] {
        let repo = TestRepo::new().file(".gitattributes", "*.nb filter=strip\n");
        repo.git(&["config", "filter.strip.clean", "sed '/^out:/d'"]);
        repo.git(&["config", "filter.strip.smudge", "cat"]);
        let text = "in: 1\nout: 1\n\n\n\n\nin: 2\nout: 2\n";
        repo.write("a.nb", text);
        repo.commit("init");
        repo.workflow().new_session("demo").done();
        repo.workflow().add(&["a.nb"]);
        repo.workflow()
            .run_plan(&plan("Edit", &[edit("a.nb", "in: 1", "in: one")]));
        let mut expected = text.replace("in: 1", "in: one");
        assert_eq!(repo.read("a.nb"), expected);
        if is_separate {
            expected.push_str("in: mine\nout: mine\n");
            repo.write("a.nb", &expected);
        }
        hook(&repo, "pre-commit", "exit 0");
        repo.workflow().land(&land_as("Land")).done();
        let landed = "in: one\n\n\n\n\nin: 2";
        assert_eq!(repo.git(&["show", "HEAD:a.nb"]), landed);
        assert_eq!(repo.read("a.nb"), expected);
        let own = if is_separate { " M a.nb" } else { "" };
        assert_eq!(status(&repo), own);
    }
}

/// Bug: HEAD counted as unborn, so that the commit deleted all other files.
#[test]
fn a_branch_that_stands_for_another_one_is_that_one() {
    for kind in [&["--ref-format=files"][..], &["--ref-format=reftable"]] {
        let repo = TestRepo::with(kind).file("a.txt", "a\n");
        repo.commit("init");
        repo.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
        repo.git(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
        repo.workflow().new_session("demo").done();
        let status = repo.done(&["status"]);
        assert!(status.contains("on branch main\n"), "{status}");
        assert!(status.contains("No file changed since HEAD"), "{status}");
        repo.write("a.txt", "b\n");
        repo.git(&["add", "a.txt"]);
        lands(&repo);
        assert_eq!(repo.git(&["log", "--format=%s", "main"]), "Land\ninit");
    }
}

/// Bug: HEAD counted as detached.
#[test]
fn a_head_that_is_a_symbolic_link_is_on_its_branch() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.git(&["config", "core.preferSymlinkRefs", "true"]);
    repo.git(&["switch", "-q", "-c", "side"]);
    assert!(repo.path().join(".git/HEAD").is_symlink());
    repo.workflow().new_session("demo").done();
    repo.write("a.txt", "b\n");
    repo.git(&["add", "a.txt"]);
    lands(&repo);
    assert_eq!(repo.git(&["log", "--format=%s", "side"]), "Land\ninit");
}
