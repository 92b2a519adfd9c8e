//! What `land` refuses, and that nothing has happened then; and what it can do in odd places.

use crate::support::PATIENCE;
use crate::support::landing::land_as;
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use teddy::workflow::land::LandOptions;
use teddy::workflow::restore::OnOverlap;

use crate::plans::{create, edit, execute, plan};
use crate::screen::Screen;
use crate::support::in_process::resolving;
use crate::support::landing::{
    changed, check_clean, everything, hook, project, status, three_turns,
};
use crate::support::{Output, TestRepo};

/// Checks that everything is as it was after a landing that was refused. Returns the refusal.
#[track_caller]
fn refused(repo: &TestRepo, options: &LandOptions) -> String {
    let before = everything(repo);
    let refusal = repo.workflow().land(options).refused();
    assert_eq!(everything(repo), before);
    refusal
}

/// Like [`refused`], but starts the program, for what only the command line can get wrong.
#[track_caller]
fn refused_call(repo: &TestRepo, args: &[&str]) -> String {
    let before = everything(repo);
    let refusal = repo.printed(&[&["land"], args].concat());
    assert_eq!(everything(repo), before);
    refusal
}

#[test]
fn a_ref_that_is_no_branch_is_not_landed_on() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("new.txt", "new\n")]));
    repo.git(&["update-ref", "refs/other/x", "HEAD"]);
    repo.git(&["symbolic-ref", "HEAD", "refs/other/x"]);
    insta::assert_snapshot!(repo.workflow().land(&land_as("x")).refused(), @"
    error: HEAD is on `refs/other/x`, which is not a branch
    hint: `--branch <name>` lands on a new branch; or `git switch <branch>` first
    exit code 1
    ");
    let refs = repo.git(&["for-each-ref", "refs/heads"]);
    assert!(!refs.contains("refs/other"), "{refs}");
}

#[test]
fn a_detached_head_has_no_branch_but_a_new_one_can_be_made() {
    let repo = three_turns();
    repo.git(&["checkout", "-q", "--detach"]);
    insta::assert_snapshot!(refused(&repo, &land_as("x")), @"
    error: HEAD is detached: there is no branch to land on
    hint: `--branch <name>` lands on a new branch; or `git switch <branch>` first
    exit code 1
    ");
    let before = (repo.tree(), status(&repo), repo.git(&["rev-parse", "HEAD"]));
    let value = repo.json(&["land", "-m", "Land", "--branch", "topic/land"], 0);
    assert_eq!(value["branch"], "topic/land");
    assert_eq!(
        (repo.tree(), status(&repo), repo.git(&["rev-parse", "HEAD"])),
        before
    );
    assert_eq!(
        repo.git(&["diff", "--name-status", "HEAD", "topic/land"]),
        "M\ta.txt\nD\tc.txt\nA\tdir/b.txt"
    );
    assert_eq!(repo.git(&["rev-parse", "topic/land^"]), before.2);
    check_clean(&repo);
    let options = LandOptions {
        range: Some("1".to_owned()),
        branch: Some("main".to_owned()),
        ..land_as("x")
    };
    insta::assert_snapshot!(refused(&repo, &options), @"
    error: a branch named `main` already exists
    hint: choose another name
    exit code 1
    ");
    for name in ["a..b", "-x", "HEAD", "a b"] {
        let branch = format!("--branch={name}");
        repo.teddy(&["land", "1", &branch, "-m", "x"])
            .check(2, &["is not a valid branch name"]);
    }
}

#[test]
fn a_landing_is_refused_before_the_message_prompt() {
    let repo = three_turns();
    insta::assert_snapshot!(refused_call(&repo, &[]), @"
    --- stderr
    error: the commit needs a message
    hint: `-m '<message>'` gives it; `--no-edit` takes one made of the turns' titles and requests
    exit code 1
    ");
    insta::assert_snapshot!(refused_call(&repo, &["9"]), @"
    --- stderr
    error: session `demo` has no turn `9`; its turns are 0 to 3
    hint: `teddy log` lists the turns
    exit code 1
    ");
    insta::assert_snapshot!(refused_call(&repo, &["x"]), @"
    --- stderr
    error: session `demo` has no turn `x`; its turns are 0 to 3
    hint: `teddy log` lists the turns
    exit code 1
    ");
    let empty = TestRepo::new();
    insta::assert_snapshot!(refused_call(&empty, &[]), @"
    --- stderr
    error: no session is in use here
    hint: `teddy start '<what you want>'` or `teddy new <name>` starts one, `teddy sessions` lists them, `-s <name>` names one
    exit code 1
    ");
}

#[test]
fn nothing_lands_in_the_middle_of_something_else() {
    let repo = three_turns();
    let git = repo.path().join(".git");
    for (file, words) in [
        ("MERGE_HEAD", "a merge is in progress"),
        ("CHERRY_PICK_HEAD", "a cherry-pick is in progress"),
        ("REVERT_HEAD", "a revert is in progress"),
        ("sequencer/todo", "a cherry-pick or revert is in progress"),
        ("BISECT_LOG", "a bisection is in progress"),
        ("rebase-merge/interactive", "a rebase is in progress"),
        ("rebase-apply/applying", "`git am` is in progress"),
    ] {
        let path = git.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, repo.git(&["rev-parse", "HEAD"])).unwrap();
        let out = repo.teddy(&["land", "-m", "x"]);
        out.check(1, &[words, "hint: finish it"]);
        std::fs::remove_file(&path).unwrap();
        let _ = std::fs::remove_dir(path.parent().unwrap());
    }
    let blob = repo.git(&["rev-parse", "HEAD:a.txt"]);
    let lines = format!("100644 {blob} 1\ta.txt\n100644 {blob} 2\ta.txt\n");
    let script = format!("printf '0 {blob}\\ta.txt\\n{lines}' | git update-index --index-info");
    let out = repo
        .command("sh")
        .current_dir(repo.path())
        .args(["-c", &script])
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    insta::assert_snapshot!(refused(&repo, &land_as("x")), @"
    error: the index has unresolved conflicts: `a.txt`
    hint: resolve them and `git add` the files first
    exit code 1
    ");
    repo.git(&["reset", "-q"]);
    let mut command = repo.teddy_command(&["land", "-m", "x"]);
    command
        .env("GIT_INDEX_FILE", repo.beside("other-index"))
        .current_dir(repo.path());
    Output::of(&mut command).check(1, &["`GIT_INDEX_FILE` names another index"]);
    let mut command = repo.teddy_command(&["land", "-m", "Land"]);
    command
        .env("GIT_INDEX_FILE", ".git/index")
        .current_dir(repo.path());
    Output::of(&mut command).check(0, &[]);
}

#[test]
fn a_git_that_outlives_a_killed_landing_is_waited_for_and_recorded() {
    let repo = three_turns();
    let (began, go) = (repo.beside("began"), repo.beside("go"));
    let script = format!(
        "touch {}; while ! test -e {}; do sleep 0.05; done",
        began.display(),
        go.display()
    );
    hook(&repo, "pre-commit", &script);
    let mut command = repo.teddy_command(&["land", "-m", "Land"]);
    let mut child = command.current_dir(repo.path()).spawn().unwrap();
    while !began.exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    insta::assert_snapshot!(refused(&repo, &land_as("x")), @"
    error: a landing on `main` that was stopped is just ending
    hint: try again in a moment
    exit code 1
    ");
    std::fs::write(&go, "").unwrap();
    let start = std::time::Instant::now();
    while repo.git(&["log", "-1", "--format=%s"]) != "Land" {
        assert!(start.elapsed() < PATIENCE, "git does not commit");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    repo.done(&["doctor", "--fix"]);
    assert_eq!(repo.json(&["log"], 0)[0]["status"], "landed");
    assert_eq!(status(&repo), "");
    check_clean(&repo);
}

/// Bug: the restore was said to have changed no file.
#[test]
fn a_restore_does_not_land_itself() {
    let repo = three_turns();
    repo.workflow().restore("1").done();
    insta::assert_snapshot!(refused_call(&repo, &["4", "--no-edit"]), @"
    --- stderr
    error: turn 4 restores what other turns did, so it does not land itself
    hint: `teddy land <turn>` lands the turn that made the change; `teddy show` names what a restore restored
    exit code 1
    ");
}

#[test]
fn a_branch_checked_out_in_another_worktree_is_refused() {
    let repo = three_turns();
    let other = repo.beside("other");
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "--force",
        other.to_str().unwrap(),
        "main",
    ]);
    insta::assert_snapshot!(refused(&repo, &land_as("x")), @"
    error: `main` is also checked out in `[dir]/other`
    hint: land there (`-C [dir]/other`), or on a new branch (`--branch <name>`)
    exit code 1
    ");
    std::fs::remove_dir_all(&other).unwrap();
    insta::assert_snapshot!(refused(&repo, &land_as("x")), @"
    error: `main` is also checked out in `[dir]/other`
    hint: it is not there; `git worktree remove --force --force [dir]/other` forgets it; or land on a new branch (`--branch <name>`)
    exit code 1
    ");
    let forget = ["worktree", "remove", "--force", "--force"];
    repo.git(&[&forget[..], &[other.to_str().unwrap()]].concat());
    repo.workflow().land(&land_as("Land")).done();
}

#[test]
fn a_branch_checked_out_in_another_worktree_is_refused_in_a_bare_repository_and_a_submodule() {
    let repo = project();
    let [bare, outer] = ["bare", "outer"].map(|name| repo.beside(name));
    let submodule = outer.join("mod");
    let [bare, outer, module] = [&bare, &outer, &submodule].map(|path| path.to_str().unwrap());
    let linked = |from: &str, name: &str| {
        let path = repo.beside(name);
        let add = [
            "worktree",
            "add",
            "-q",
            "-f",
            path.to_str().unwrap(),
            "main",
        ];
        repo.git(&[&["-C", from][..], &add].concat());
        path
    };
    repo.git(&["clone", "-q", "--bare", ".", bare]);
    linked(bare, "first");
    repo.git(&["init", "-q", outer]);
    let url = repo.path();
    let add = ["submodule", "--quiet", "add", url.to_str().unwrap(), "mod"];
    let allowed = ["-C", outer, "-c", "protocol.file.allow=always"];
    repo.git(&[&allowed[..], &add].concat());

    for own in [linked(bare, "second"), linked(module, "third")] {
        std::fs::write(own.join("a.txt"), "mine\n").unwrap();
        repo.teddy_in(&own, &["record", "edit"]).check(0, &[]);
        repo.teddy_in(&own, &["land", "-m", "x"])
            .check(1, &["`main` is also checked out in"]);
    }
}

#[test]
fn a_linked_worktree_lands_on_its_own_branch() {
    let repo = project();
    let other = repo.beside("other");
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "topic",
        other.to_str().unwrap(),
    ]);
    let teddy = |args: &[&str]| repo.teddy_in(&other, args);
    std::fs::write(
        repo.beside("plan.md"),
        plan("Make d", &[create("d.txt", "d\n")]),
    )
    .unwrap();
    teddy(&["execute", "../plan.md", "-y", "-s", "demo"]).check(0, &[]);
    hook(
        &repo,
        "commit-msg",
        "test \"$(git branch --show-current)\" = topic",
    );
    teddy(&["land", "-s", "demo", "-m", "Land"]).check(0, &["on topic"]);
    assert_eq!(repo.git_in(&other, &["status", "--porcelain"]), "");
    assert_eq!(
        repo.git_in(&other, &["show", "--format=%s", "--name-only"]),
        "Land\n\nd.txt"
    );
    assert_eq!(status(&repo), "");
    repo.git(&["fsck", "--no-dangling"]);
}

#[test]
fn the_first_commit_of_a_repository_can_be_a_landing() {
    let repo = TestRepo::new().file("own.txt", "own\n");
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("Make a", &[create("a.txt", "a\n")]));
    hook(&repo, "pre-commit", "test \"$(git ls-files)\" = a.txt");
    repo.workflow().land(&land_as("First")).done();
    assert_eq!(
        repo.git(&["log", "--format=%s", "--name-status"]),
        "First\n\nA\ta.txt"
    );
    assert_eq!(status(&repo), "?? own.txt");
    check_clean(&repo);
}

#[test]
fn a_landing_needs_the_users_name() {
    let repo = three_turns();
    repo.git(&["config", "user.useConfigOnly", "true"]);
    let mut command = repo.teddy_command(&["land", "-m", "x"]);
    for name in [
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ] {
        command.env_remove(name);
    }
    let out = Output::of(command.current_dir(repo.path()));
    insta::assert_snapshot!(out.shown(&repo), @"
    --- stderr
    error: git does not know who you are: no email was given and auto-detection is disabled
    hint: `git config --global user.name <name>` and `git config --global user.email <address>`
    exit code 1
    ");
}

#[test]
fn a_branch_that_moved_concurrently_is_not_overwritten() {
    let repo = three_turns();
    hook(
        &repo,
        "pre-commit",
        &format!(
            "cd {} && GIT_DIR= && unset GIT_DIR GIT_INDEX_FILE && git -c core.hooksPath=/dev/null commit -q --allow-empty -m theirs",
            repo.path().display()
        ),
    );
    insta::assert_snapshot!(repo.workflow().land(&land_as("x")).refused(), @"
    error: another process moved `main` meanwhile
    hint: `git log main` shows it; run the command again
    exit code 1
    ");
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "theirs");
    assert_eq!(repo.workflow().log()[0]["number"], 3);
    assert_eq!(status(&repo), " M a.txt\n D c.txt\n?? dir/b.txt");
    check_clean(&repo);
    std::fs::remove_file(repo.path().join(".git/hooks/pre-commit")).unwrap();
    repo.workflow().land(&land_as("Land")).done();
    assert_eq!(status(&repo), "");
}

/// Bug: the landing was put on top of what came between, with a tree that had nothing of it.
#[test]
fn what_another_git_commits_or_checks_out_meanwhile_is_not_reverted() {
    let theirs = "git commit -q --allow-empty -m theirs";
    let elsewhere = "git checkout -q -b side && git commit -q --allow-empty -m theirs";
    // Before our git starts, and after the last look.
    for (script, at_point) in [
        (theirs, true),
        (elsewhere, true),
        (theirs, false),
        (elsewhere, false),
    ] {
        let repo = three_turns();
        let program = repo.beside("bin/git");
        std::fs::create_dir(program.parent().unwrap()).unwrap();
        let real = Output::of(repo.command("sh").args(["-c", "command -v git"])).stdout;
        let real = real.trim();
        let script = script.replace("git ", &format!("env -u GIT_INDEX_FILE -u GIT_DIR {real} "));
        let script = format!("cd {} && {script}", repo.path().display());
        let wrapper = format!(
            "#!/bin/sh\ncase \" $* \" in *\" commit --quiet \"*) ( {script} );; esac\nexec {real} \"$@\"\n"
        );
        std::fs::write(&program, if at_point { script.clone() } else { wrapper }).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();

        let mut command = repo.teddy_command(&["land", "-m", "Land"]);
        if at_point {
            command.env(
                "FAILPOINTS",
                format!("before-branch=1*return(sh:{})", program.display()),
            );
        } else {
            let path = teddy::host::env::var("PATH").unwrap();
            command.env(
                "PATH",
                format!("{}:{path}", program.parent().unwrap().display()),
            );
        }
        let out = Output::of(command.current_dir(repo.path()));
        let (name, hint) = match script.contains("checkout") {
            true => ("HEAD", "git status"),
            false => ("main", "git log main"),
        };
        assert_eq!(
            out.shown(&repo),
            format!(
                "--- stderr\nerror: another process moved `{name}` meanwhile\nhint: `{hint}` shows it; \
                 run the command again\nexit code 1\n"
            )
        );
        assert_eq!(
            repo.git(&["log", "-1", "--format=%s"]),
            "theirs",
            "{script}"
        );
        assert_eq!(
            repo.git(&["log", "--all", "--grep=Land", "--format=%s", "--branches"]),
            ""
        );
        check_clean(&repo);
    }
}

#[test]
fn the_index_lock_of_another_process_is_kept() {
    let repo = three_turns();
    let lock = repo.path().join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    let head = repo.git(&["rev-parse", "HEAD"]);
    insta::assert_snapshot!(repo.workflow().land(&land_as("x")).refused(), @"
    error: another git is writing the index, or left `[dir]/repo/.git/index.lock`; nothing was changed
    exit code 1
    ");
    assert!(lock.exists());
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    std::fs::remove_file(&lock).unwrap();
    repo.workflow().land(&land_as("Land")).done();
    check_clean(&repo);
}

#[test]
fn an_index_locked_after_the_commit_is_updated_later() {
    let repo = three_turns();
    let git = repo.path().join(".git");
    let (lock, index) = (git.join("index.lock"), git.join("index"));
    hook(&repo, "post-commit", &format!("touch {}", lock.display()));
    let before = std::fs::read(&index).unwrap();
    insta::assert_snapshot!(repo.printed(&["land", "-m", "Land"]), @"
    --- stderr
    error: `refs/heads/main` is at [id] now, but that is not recorded yet; `teddy doctor --fix` does it: another git is writing the index, or left `[dir]/repo/.git/index.lock`; nothing was changed
    exit code 1
    ");
    assert!(lock.exists());
    assert_eq!(std::fs::read(&index).unwrap(), before);

    std::fs::remove_file(&lock).unwrap();
    repo.done(&["doctor", "--fix"]);
    assert_eq!(status(&repo), "");
    check_clean(&repo);
}

#[test]
fn a_hook_that_hangs_is_ended_and_nothing_has_happened() {
    use rustix::process::{Pid, Signal, kill_process};
    let repo = three_turns();
    let sign = repo.beside("sign");
    let script = format!(
        "echo $$ > {0}.new; mv {0}.new {0}; trap '' TERM; while :; do sleep 0.1; done",
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
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let out = Output::from(child.wait_with_output().unwrap());
    out.check(130, &["interrupted"]);
    assert_eq!(everything(&repo), before);
    check_clean(&repo);
    let hanging = std::fs::read_to_string(&sign).unwrap();
    let stat = format!("/proc/{}/stat", hanging.trim());
    // What nobody has waited for yet is dead all the same.
    let is_alive = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    let start = std::time::Instant::now();
    while is_alive() {
        assert!(start.elapsed() < PATIENCE, "the hook is still there");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Regression: git named a script of TeDDy's, and the hint was about hooks.
#[test]
fn an_editor_that_is_missing_is_named_before_git_commits() {
    let repo = three_turns();
    let options: &[(&str, &str)] = &[("GIT_EDITOR", "no-such-editor -w")];
    let mut screen = Screen::open_with(&repo, (120, 40), (&["land"], options));
    assert_eq!(screen.end(), 1, "{}", screen.shown());
    insta::assert_snapshot!(screen.shown().trim(), @"
    error: the editor `no-such-editor` was not found; nothing was changed
    hint: `core.editor`, `VISUAL` or `EDITOR` names one; `-m '<message>'` gives the message without one
    ");
    check_clean(&repo);
}

/// Regression: only git's message was there, which names a script of TeDDy's.
#[test]
fn an_editor_that_fails_is_named() {
    let repo = three_turns();
    let options: &[(&str, &str)] = &[("GIT_EDITOR", "false -w")];
    let mut screen = Screen::open_with(&repo, (160, 40), (&["land"], options));
    assert_eq!(screen.end(), 1, "{}", screen.shown());
    let shown = screen.shown();
    let (_, shown) = shown.split_once("error: git made").expect("an error");
    insta::assert_snapshot!(shown.trim(), @"
    no commit, because the editor `false -w` failed; nothing was changed
    hint: `core.editor`, `VISUAL` or `EDITOR` names one; `-m '<message>'` gives the message without one
    ");
    check_clean(&repo);
}

#[test]
fn at_a_terminal_the_editor_opens_with_a_draft() {
    let repo = three_turns();
    repo.write(".git/template", "# Why:\n");
    repo.git(&["config", "commit.template", ".git/template"]);
    let editor = format!(
        "cp \"$1\" {}; sed -i '1s/.*/Mine/' \"$1\" #",
        repo.beside("draft").display()
    );
    let editor = format!("sh -c '{}' -", editor.replace('\'', "'\\''"));
    let mut screen = Screen::open_with(&repo, (100, 40), (&["land"], &[("GIT_EDITOR", &editor)]));
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    let draft = std::fs::read_to_string(repo.beside("draft")).unwrap();
    for part in [
        "Change a\n\n- Change a\n- Make b\n- Delete c\n",
        "# Why:\n",
        "Teddy-Session: demo\n",
        "# On branch main\n",
    ] {
        assert!(draft.contains(part), "{part}: {draft}");
    }
    assert_eq!(repo.git(&["log", "-1", "--format=%s"]), "Mine");
    assert_eq!(
        repo.git(&[
            "log",
            "-1",
            "--format=%(trailers:key=Teddy-Session,valueonly)"
        ])
        .trim(),
        "demo"
    );
    assert_eq!(status(&repo), "");
}

#[test]
fn an_empty_message_stops_it() {
    let repo = three_turns();
    let before = everything(&repo);
    let mut screen = Screen::open_with(&repo, (100, 40), (&["land"], &[("GIT_EDITOR", "true >")]));
    assert_eq!(screen.end(), 1, "{}", screen.shown());
    assert!(
        screen.shown().contains("empty commit message"),
        "{}",
        screen.shown()
    );
    assert_eq!(everything(&repo), before);
    insta::assert_snapshot!(refused_call(&repo, &["-m", " "]), @"
    --- stderr
    error: the message is empty
    hint: `-m '<message>'` gives one
    exit code 1
    ");
    insta::assert_snapshot!(refused_call(&repo, &[]), @"
    --- stderr
    error: the commit needs a message
    hint: `-m '<message>'` gives it; `--no-edit` takes one made of the turns' titles and requests
    exit code 1
    ");
}

#[test]
fn a_signature_is_made_with_the_users_key() {
    let repo = three_turns();
    let key = repo.beside("key");
    let made = repo
        .command("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(&key)
        .status();
    if made.is_err() {
        // Without ssh-keygen git has nothing to sign with either.
        return;
    }
    let public = std::fs::read_to_string(repo.beside("key.pub")).unwrap();
    std::fs::write(repo.beside("signers"), format!("test@localhost {public}")).unwrap();
    for (name, value) in [
        ("gpg.format", "ssh"),
        ("user.signingKey", key.to_str().unwrap()),
        ("commit.gpgSign", "true"),
        (
            "gpg.ssh.allowedSignersFile",
            repo.beside("signers").to_str().unwrap(),
        ),
    ] {
        repo.git(&["config", name, value]);
    }
    repo.done(&["land", "--each"]);
    for commit in ["HEAD", "HEAD~1", "HEAD~2"] {
        repo.git(&["verify-commit", commit]);
    }
    // No turn asks for the key.
    let plain = repo.git(&["cat-file", "commit", "teddy/sessions/demo"]);
    assert!(!plain.contains("gpgsig"), "{plain}");

    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.git(&["config", "user.signingKey", "/nowhere/key"]);
    insta::assert_snapshot!(refused(&repo, &land_as("x")), @"
    error: git made no commit (exit status: 128); nothing was changed
    hint: git, or a hook, has said why above; `--no-verify` skips the pre-commit and commit-msg hooks
    exit code 1
    ");
}

#[test]
fn edits_of_the_users_on_which_a_turn_builds_must_be_committed_first() {
    let repo = project();
    repo.write("a.txt", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
    repo.write("own.txt", "own\n");
    repo.workflow().add(&["own.txt"]);
    repo.workflow().run_plan(&plan(
        "Change both",
        &[
            edit("a.txt", "five", "5!"),
            edit("own.txt", "own", "theirs"),
        ],
    ));
    let before = everything(&repo);
    let value = repo.workflow().landed(&land_as("x"));
    assert_eq!(value["overlaps"], json!(["a.txt", "own.txt"]));
    assert_eq!(everything(&repo), before);
}

#[test]
fn what_git_ignores_is_left_out_and_named() {
    let repo = project();
    repo.workflow().run_plan(&plan(
        "Make two",
        &[create("x.log", "x\n"), create("d.txt", "d\n")],
    ));
    let value = repo.workflow().landed(&land_as("Land"));
    assert_eq!(value["ignored"], json!(["x.log"]));
    assert_eq!(changed(&repo), "A\td.txt");
    assert_eq!(status(&repo), "");
    repo.workflow()
        .run_plan(&plan("Make one", &[create("y.log", "y\n")]));
    insta::assert_snapshot!(refused(&repo, &land_as("x")), @"
    error: nothing to land: git ignores every file that the turns changed
    hint: `git add --force` takes an ignored file into the next commit
    exit code 1
    ");
}

#[test]
fn modes_links_binaries_and_renames_land_as_they_are() {
    let repo = project();
    repo.write("bin", [0, 1, 2, 255]);
    repo.write("move me", "moved\n");
    repo.commit("more");
    repo.run_plan(&plan(
        "Do much",
        &[execute("chmod +x c.txt; ln -s a.txt link; printf '\\000\\001' > bin; git mv 'move me' moved; mkdir -p c; rm -rf c; printf x > 'ü\"'")],
    ));
    let after = repo.git(&["rev-parse", "teddy/sessions/demo^2^{tree}"]);
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(repo.git(&["rev-parse", "HEAD^{tree}"]), after);
    assert_eq!(status(&repo), "");
}

#[test]
fn a_waiting_plan_is_kept() {
    let repo = three_turns();
    repo.reply(&plan("Make e", &[create("e.txt", "e\n")]));
    repo.workflow().plan("make e").done();
    repo.workflow().land(&land_as("Land")).done();
    let value = repo.workflow().status();
    assert_eq!(
        (&value["turn"], &value["draft"]["title"]),
        (&json!(4), &json!("Make e"))
    );
    repo.workflow().execute().done();
    assert_eq!(repo.workflow().log()[0]["title"], "Make e");
    repo.workflow().land(&LandOptions::default()).done();
    assert_eq!(
        repo.git(&["log", "-1", "--format=%B"])
            .lines()
            .take(3)
            .collect::<Vec<_>>(),
        ["Make e", "", "Teddy-Session: demo"]
    );
}

#[test]
fn staged_changes_that_overlap_are_kept_and_named() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    let theirs = repo.read("a.txt");
    repo.write("a.txt", "1\nzwei\n3\n4\n5\n6\n7\n8\n9\n");
    repo.git(&["add", "a.txt"]);
    repo.write("a.txt", &theirs);
    let value = repo.workflow().landed(&land_as("Land"));
    assert_eq!(value["staged"], json!(["a.txt"]));
    assert_eq!(status(&repo), "MM a.txt");
    assert!(repo.git(&["show", ":a.txt"]).contains("zwei"));
}

#[test]
fn trailers_of_the_settings_are_added() {
    let repo = three_turns();
    repo.configure("land:\n  trailers: [\"Assisted-by: TeDDy ({agent})\", \"Model: {model}\"]\n");
    repo.workflow().land(&land_as("Land")).done();
    let trailers = repo.git(&[
        "log",
        "-1",
        "--format=%(trailers:key=Assisted-by,valueonly)",
    ]);
    assert_eq!(trailers.trim(), "TeDDy (assistant)");
    assert!(!repo.git(&["log", "-1", "--format=%B"]).contains("Model:"));
    repo.configure("land:\n  trailers: [nonsense]\n");
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    insta::assert_snapshot!(refused(&repo, &land_as("x")), @"
    error: `land.trailers`: `nonsense` is not a trailer
    hint: write `Key: value`, such as `Assisted-by: {model}`
    exit code 1
    ");
}

#[test]
fn turns_of_another_session_below_do_not_land() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    repo.workflow().new_session("other").done();
    repo.workflow()
        .run_plan(&plan("Make e", &[create("e.txt", "e\n")]));
    repo.workflow().land(&land_as("Other")).done();
    assert_eq!(changed(&repo), "A\te.txt");
    assert_eq!(status(&repo), "?? d.txt");
    repo.workflow()
        .session("demo")
        .land(&land_as("Demo"))
        .done();
    assert_eq!(changed(&repo), "A\td.txt");

    // A turn that another session undid does not land.
    repo.workflow()
        .run_plan(&plan("Make f", &[create("f.txt", "f\n")]));
    repo.workflow().restore("demo:1").done();
    let before = everything(&repo);
    let third = LandOptions {
        range: Some("3".to_owned()),
        ..land_as("x")
    };
    let refusal = repo.workflow().session("other").land(&third).refused();
    assert_eq!(everything(&repo), before);
    insta::assert_snapshot!(refusal, @"
    error: turn 3 is not in effect: it was undone, or its result was never applied
    hint: `teddy redo` or `teddy restore 3` restores it
    exit code 1
    ");
}

#[test]
fn conflict_markers_of_a_restore_do_not_land() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "2", "two")]));
    repo.workflow().undo(1).done();
    repo.write("a.txt", repo.read("a.txt").replace('2', "my two"));
    let markers = resolving(OnOverlap::Markers);
    repo.workflow().redo_with(1, &markers).done();
    let dry_run = LandOptions {
        dry_run: true,
        ..land_as("x")
    };
    for options in [dry_run, land_as("x")] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused(&repo, &options), @"
            error: unresolved conflicts are in `a.txt`
            hint: resolve them in the files first
            exit code 1
            ");
        }
    }

    let resolved = repo.read("a.txt").replace("<<<<<<< yours\n", "");
    repo.write("a.txt", resolved);
    repo.workflow().land(&land_as("Land")).done();
}
