//! `fetch`: fetched sessions can be read like others and are never run.

use serde_json::Value;

use crate::plans::{create, edit, plan};
use crate::support::remotes::two_people;
use crate::support::{Output, TestRepo};

/// Pushes every session, with its code.
fn send(ada: &TestRepo) {
    ada.git(&[
        "push",
        "-q",
        "origin",
        "refs/teddy/sessions/*:refs/teddy/sessions/*",
    ]);
}

/// Pushes the session without its code, as `push --no-code` does.
fn send_record(ada: &TestRepo) -> String {
    let turns = ada.git(&[
        "rev-list",
        "--first-parent",
        "--reverse",
        "teddy/sessions/add-auth",
    ]);
    let mut parent = String::new();
    for turn in turns.lines() {
        let tree = ada.git(&["rev-parse", &format!("{turn}^{{tree}}")]);
        let message = ada.git(&["log", "-1", "--format=%B", turn]);
        let mut args = vec!["commit-tree", &tree, "-m", &message];
        if !parent.is_empty() {
            args.extend(["-p", &parent]);
        }
        parent = ada.git(&args);
    }
    ada.git(&[
        "push",
        "-q",
        "origin",
        &format!("{parent}:refs/teddy/bare/add-auth"),
    ]);
    parent
}

#[test]
fn a_fetched_session_is_named_where_a_session_is_missing() {
    let (ada, ben) = two_people();
    send(&ada);
    ben.done(&["fetch"]);
    insta::assert_snapshot!(ben.printed(&["sessions"]), @"
    --- stderr
    There are no sessions of yours; `teddy sessions -r` lists those of remotes, `teddy switch <remote>/<session>` makes one yours.
    exit code 0
    ");
    // Regression: the hint named `teddy sessions`, which listed none.
    insta::assert_snapshot!(ben.printed(&["switch", "add-auth"]), @"
    --- stderr
    error: there is no session `add-auth`
    hint: it was fetched as `origin/add-auth`, which can be shown; `teddy switch origin/add-auth` makes it yours
    exit code 1
    ");
}

#[test]
fn a_fetched_session_is_read_wherever_a_session_is() {
    let (ada, ben) = two_people();
    send(&ada);
    let out = ben.teddy(&["fetch"]);
    assert_eq!(
        out.stdout, "new        origin/add-auth  2 turns  Two\n",
        "{out}"
    );
    let tip = ada.git(&["rev-parse", "teddy/sessions/add-auth"]);
    assert_eq!(
        ben.git(&["rev-parse", "refs/teddy/remotes/origin/add-auth"]),
        tip
    );
    assert_eq!(
        ben.git(&["for-each-ref", "refs/teddy/incoming", "refs/teddy/sessions"]),
        ""
    );

    let rows = ben.json(&["sessions", "-r"], 0);
    assert_eq!(rows[0]["name"], "origin/add-auth");
    assert_eq!(rows[0]["code"], true);
    ben.teddy(&["show", "origin/add-auth:1"])
        .check(0, &["One", "one.txt"]);
    ben.teddy(&["show", "origin/add-auth"]).check(0, &["Two"]);
    insta::assert_snapshot!(ben.printed(&["show", "origin/add-auth:1", "plan.md"]), @"
    # One
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    One, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [one.txt](/one.txt)
    - **Description:** Make one.txt.
    ````text
    1
    ````
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["diff", "origin/add-auth:2"]), @"
    --- /dev/null
    +++ b/two.txt
    @@ -0,0 +1 @@
    +2
    exit code 0
    ");
    let shown = ben.printed(&["diff", "origin/add-auth:1", "origin/add-auth:2"]);
    insta::assert_snapshot!(shown, @"
    --- /dev/null
    +++ b/two.txt
    @@ -0,0 +1 @@
    +2
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["-s", "origin/add-auth", "log"]), @"
       2 [id] 2026-01-02 03:04 executed Two (1 file)
       1 [id] 2026-01-02 03:04 executed One (1 file)
       0 [id] 2026-01-02 03:04 started  Start session add-auth
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["log", "origin/add-auth"]), @"
       2 [id] 2026-01-02 03:04 executed Two (1 file)
       1 [id] 2026-01-02 03:04 executed One (1 file)
       0 [id] 2026-01-02 03:04 started  Start session add-auth
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["log", "a.txt"]), @"
    --- stderr
    error: `a.txt` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`
    hint: `teddy log -- a.txt` lists the turns that changed it
    exit code 2
    ");
    insta::assert_snapshot!(ben.printed(&["find", "Two", "-s", "origin/add-auth"]), @"
    origin/add-auth:2:plan.md:1: # Two
    origin/add-auth:2:plan.md:8: Two, because it is wanted.
    exit code 0
    ");
    let shown = ben.printed(&["compare", "origin/add-auth:1", "origin/add-auth:2"]);
    insta::assert_snapshot!(shown, @"
             origin/add-auth:1  origin/add-auth:2
    status   executed           executed
    model    -                  -
    turns    1                  1
    files    1                  1
    lines    +1 -0              +1 -0
    tokens   -                  -
    cost     -                  -
    time [time] [time]
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["verify", "origin/add-auth"]), @"
    origin/add-auth: 2 turns, sound, not signed
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["export", "-s", "origin/add-auth", "../out"]), @"
    ../out
    exit code 0
    ");
}

#[test]
fn nothing_is_written_to_a_session_of_a_remote() {
    let (ada, ben) = two_people();
    send(&ada);
    ben.done(&["fetch"]);
    ben.done(&["new", "mine"]);
    let before = ben.git(&["for-each-ref"]);
    insta::assert_snapshot!(ben.printed(&["-s", "origin/add-auth", "undo"]), @"
    --- stderr
    error: `origin/add-auth` is a session of a remote, and can only be looked at
    hint: `teddy branch origin/add-auth:@ <name>` continues from it, if its files were pushed
    exit code 2
    ");
    insta::assert_snapshot!(ben.printed(&["-s", "origin/add-auth", "plan", "x"]), @"
    --- stderr
    error: `origin/add-auth` is a session of a remote, and can only be looked at
    hint: `teddy branch origin/add-auth:@ <name>` continues from it, if its files were pushed
    exit code 2
    ");
    insta::assert_snapshot!(ben.printed(&["restore", "origin/add-auth:1", "-y"]), @"
    --- stderr
    error: `origin/add-auth` is a session of a remote, and can only be looked at
    hint: `teddy branch origin/add-auth:@ <name>` continues from it, if its files were pushed
    exit code 2
    ");
    insta::assert_snapshot!(ben.printed(&["verify", "--rerun", "origin/add-auth:1"]), @"
    --- stderr
    error: `origin/add-auth` is a session of a remote, and can only be looked at
    hint: `teddy branch origin/add-auth:@ <name>` continues from it, if its files were pushed
    exit code 2
    ");
    insta::assert_snapshot!(ben.printed(&["retry", "origin/add-auth:1"]), @"
    --- stderr
    error: `origin/add-auth` is a session of a remote, and can only be looked at
    hint: `teddy branch origin/add-auth:@ <name>` continues from it, if its files were pushed
    exit code 2
    ");
    insta::assert_snapshot!(ben.printed(&["push", "origin/add-auth"]), @"
    --- stderr
    error: `origin/add-auth` is a session of a remote, and can only be looked at
    hint: `teddy branch origin/add-auth:@ <name>` continues from it, if its files were pushed
    exit code 2
    ");
    insta::assert_snapshot!(ben.printed(&["push", "--delete", "origin/add-auth"]), @"
    --- stderr
    error: `origin/add-auth` is what was fetched of a session of `origin`
    hint: `teddy push --delete add-auth --remote origin` deletes it there
    exit code 2
    ");
    let shown = ben.printed(&["export", "--bundle", "../one.bundle", "origin/add-auth"]);
    insta::assert_snapshot!(shown, @"
    --- stderr
    error: `origin/add-auth` is a session of a remote, and can only be looked at
    hint: `teddy branch origin/add-auth:@ <name>` continues from it, if its files were pushed
    exit code 2
    ");
    assert_eq!(ben.git(&["for-each-ref"]), before);
}

/// Regression: no command deleted it, nor those of a remote that is gone.
#[test]
fn what_was_fetched_of_a_session_is_deleted_by_its_name() {
    let (ada, ben) = two_people();
    send(&ada);
    ben.done(&["fetch"]);
    ben.done(&["new", "mine"]);
    ben.git(&["remote", "remove", "origin"]);
    insta::assert_snapshot!(ben.printed(&["gc", "origin/add-auth", "-y"]), @"
    session origin/add-auth
    --- stderr
    Loose objects are packed.
    exit code 0
    ");
    let left = ben.git(&["for-each-ref", "--format=%(refname)", "refs/teddy"]);
    assert!(!left.contains("add-auth"), "{left}");
    assert!(left.contains("refs/teddy/sessions/mine"), "{left}");
}

#[test]
fn a_branch_goes_on_from_a_fetched_turn() {
    let (ada, ben) = two_people();
    send(&ada);
    ben.done(&["fetch"]);
    assert_eq!(
        ben.done(&["branch", "origin/add-auth:1", "mine"]),
        "refs/teddy/sessions/mine\n"
    );
    ben.done(&["restore", "@", "-y"]);
    assert_eq!(ben.read("one.txt"), "1\n");
    ben.run_plan(&plan("Three", &[create("three.txt", "3\n")]));
    insta::assert_snapshot!(ben.printed(&["log"]), @"
       3 [id] 2026-01-02 03:04 executed Three (1 file)
       2 [id] 2026-01-02 03:04 restored Restore 1: One (1 file)
       1 [id] 2026-01-02 03:04 executed One (1 file)
       0 [id] 2026-01-02 03:04 started  Start session add-auth
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["verify"]), @"
    mine: 3 turns, sound, not signed
    exit code 0
    ");
    ben.done(&["undo"]);
    ben.done(&["pick", "origin/add-auth:2"]);
    assert_eq!(ben.read("two.txt"), "2\n");
}

#[test]
fn a_session_is_taken_over_under_its_own_name() {
    let (ada, ben) = two_people();
    send(&ada);
    ben.done(&["fetch"]);
    insta::assert_snapshot!(ben.printed(&["switch", "origin/add-auth"]), @"
    --- stderr
    Session add-auth with 2 turns is now yours and in use.
    exit code 0
    ");
    assert_eq!(ben.json(&["status"], 0)["session"], "add-auth");
    // It has all of it.
    insta::assert_snapshot!(ben.printed(&["switch", "origin/add-auth"]), @"
    --- stderr
    Session add-auth with 2 turns is now yours and in use.
    exit code 0
    ");
}

#[test]
fn a_session_that_another_user_continued_goes_on_with_their_turns() {
    let (ada, ben) = two_people();
    send(&ada);
    ben.done(&["fetch"]);
    ben.done(&["switch", "origin/add-auth"]);
    ben.done(&["restore", "@"]);
    ben.write("three.txt", "3\n");
    ben.done(&["record", "three"]);
    ben.done(&["push", "--code", "-y"]);

    ada.done(&["fetch"]);
    insta::assert_snapshot!(ada.printed(&["push", "add-auth", "-y"]), @"
    add-auth: origin has all of it, and more turns; `teddy fetch` and `teddy switch origin/add-auth` get them
    --- stderr
    `origin` has all of it.
    exit code 0
    ");
    ada.reply(&plan("Make four", &[create("four.txt", "4\n")]));
    ada.done(&["plan", "make four"]);
    insta::assert_snapshot!(ada.printed(&["switch", "origin/add-auth"]), @"
    --- stderr
    error: there is a session `add-auth` already
    hint: `teddy switch add-auth` continues it; or choose another name
    exit code 1
    ");

    ada.workflow().execute().done();
    ada.workflow().undo(1).done();
    insta::assert_snapshot!(ada.printed(&["switch", "origin/add-auth"]), @"
    --- stderr
    error: there is a session `add-auth` already
    hint: `teddy switch add-auth` continues it; or choose another name
    exit code 1
    ");
    ada.done(&["branch", "2", "shared"]);
    ada.done(&["gc", "add-auth", "-y"]);
    ada.done(&["branch", "-m", "shared", "add-auth"]);
    insta::assert_snapshot!(ada.printed(&["switch", "origin/add-auth"]), @"
    --- stderr
    Session add-auth with 4 turns is now yours and in use.
    exit code 0
    ");
    insta::assert_snapshot!(ada.printed(&["restore", "@"]), @"
    write three.txt
    --- stderr
    Your files match turn 4: 1 file changed.
    exit code 0
    ");
    ada.done(&["verify"]);
}

/// Bug: the overlap did not name the turn that is missing, and `status` said that the landing was not
/// on main "any more".
#[test]
fn a_turn_on_a_landing_that_was_not_pulled_overlaps_and_names_it() {
    let (ada, ben) = two_people();
    ada.done(&["land", "-m", "one and two"]);
    send(&ada);
    ben.done(&["fetch"]);
    ben.done(&["switch", "origin/add-auth"]);
    ben.done(&["restore", "@"]);
    let commit = ada.git(&["rev-parse", "--short=8", "HEAD"]);
    let line = format!("turns 1, 2 ({commit}, which your main does not have)\n");
    ben.teddy(&["status"]).check(0, &[&line]);

    let next = plan("Three", &[edit("one.txt", "1", "one")]);
    ben.teddy_reads(&["-q", "execute", "-", "-y"], next)
        .check(0, &[]);
    let land = || ben.printed(&["land", "-m", "Land"]);
    insta::assert_snapshot!(land(), @"
    overlap one.txt
    --- stderr
    warning: turn 5 overlaps with what HEAD has there, and builds on turn 1, which HEAD lacks; nothing was changed
    hint: `teddy land 1..5` lands them together
    exit code 4
    ");
    ada.git(&["push", "-q", "origin", "main"]);
    ben.git(&["fetch", "-q", "origin"]);
    insta::assert_snapshot!(land(), @"
    overlap one.txt
    --- stderr
    warning: turn 5 overlaps with what HEAD has there, and builds on turn 1, which HEAD lacks; nothing was changed
    hint: `origin/main` has it; `git pull` takes it here
    exit code 4
    ");
}

/// Bug: the landing was "not on main any more", and landing it again was advised.
#[test]
fn a_landing_that_was_not_pulled_is_said_to_be_on_the_remote() {
    let (ada, ben) = two_people();
    ada.done(&["land", "-m", "one and two"]);
    ada.git(&["push", "-q", "origin", "main"]);
    send(&ada);
    ben.git(&["fetch", "-q", "origin"]);
    ben.done(&["fetch"]);
    ben.done(&["switch", "origin/add-auth"]);

    let commit = ada.git(&["rev-parse", "--short=8", "HEAD"]);
    let there = "on origin/main but not on your main; `git pull` takes it there";
    let line = format!("Landed on main: turns 1, 2 ({commit}, {there})\n");
    let status = ben.done(&["status"]);
    assert!(status.contains(&line), "{status}");
    assert_eq!(ben.json(&["status"], 0)["landed"]["remote"], "origin/main");
    let hint = "hint: the landing of turns 1, 2 is on `origin/main` but not on your `main`; `git pull` takes it there\n";
    ben.teddy(&["land", "-m", "again"]).check(1, &[hint]);

    // Rebased on the server, it is found by its trailers.
    ada.git(&[
        "commit",
        "-q",
        "--amend",
        "-m",
        &ada.git(&["log", "-1", "--format=%B"]),
        "--date=2001-01-01",
    ]);
    ada.git(&["push", "-qf", "origin", "main"]);
    ben.git(&["fetch", "-q", "origin"]);
    ben.teddy(&["land", "-m", "again"]).check(1, &[hint]);
    ben.git(&["pull", "-q", "origin", "main"]);
    let status = ben.done(&["status"]);
    assert!(
        status.contains("Landed on main: turns 1, 2, now "),
        "{status}"
    );
}

#[test]
fn an_adopted_session_that_landed_is_in_the_files_of_a_clone() {
    let (ada, ben) = two_people();
    send(&ada);
    ada.done(&["land", "-m", "one and two"]);
    ada.git(&["push", "-q", "origin", "main"]);
    ben.git(&["pull", "-q", "origin", "main"]);
    ben.done(&["fetch"]);
    ben.done(&["switch", "origin/add-auth"]);

    insta::assert_snapshot!(ben.printed(&["status"]), @"
    Session add-auth, turn 2, on branch main
    Ready for turn 3
    Your files are as the newest turn left them
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");

    ben.write("three.txt", "3\n");
    ben.done(&["record", "three"]);
    ben.done(&["push", "--code", "-y"]);
    ada.done(&["fetch"]);
    ada.done(&["branch", "origin/add-auth:@", "with-three"]);
    insta::assert_snapshot!(ada.printed(&["restore", "@"]), @"
    write three.txt
    --- stderr
    Your files match turn 3: 1 file changed.
    exit code 0
    ");

    insta::assert_snapshot!(ben.printed(&["undo", "2"]), @"
    delete three.txt
    delete two.txt
    --- stderr
    Your files match turn 1: 2 files changed.
    exit code 0
    ");
}

/// Regression: git's check of the pack failed, because the clone lacks what it need not have.
#[test]
fn a_session_is_fetched_into_a_partial_clone_that_lacks_a_file_of_its_base() {
    let ada = TestRepo::new().file("b.txt", "one\n");
    ada.commit("init");
    ada.git(&["config", "uploadpack.allowFilter", "true"]);
    ada.done(&["new", "s"]);
    let file = ada.beside("plan.md");
    std::fs::write(&file, plan("Make n", &[create("n.txt", "n\n")])).unwrap();
    ada.done(&["execute", "-y", file.to_str().unwrap()]);
    ada.write("b.txt", "two\n");
    ada.git(&["commit", "-qam", "two"]);
    let (url, clone) = (
        format!("file://{}", ada.path().display()),
        ada.beside("clone"),
    );
    ada.git(&[
        "clone",
        "-q",
        "--filter=blob:none",
        &url,
        clone.to_str().unwrap(),
    ]);

    let config = || ada.git_in(&clone, &["config", "--local", "--list"]);
    let before = config();
    ada.teddy_in(&clone, &["fetch"])
        .check(0, &["new        origin/s"]);
    assert_eq!(config(), before);
    ada.teddy_in(&clone, &["verify", "origin/s"]).check(0, &[]);
    ada.teddy_in(&clone, &["diff", "origin/s:1"])
        .check(0, &["+n"]);
}

#[test]
fn an_adopted_session_with_edits_in_its_files_is_not_in_them() {
    let (ada, ben) = two_people();
    send(&ada);
    ada.done(&["land", "-m", "one and two"]);
    ada.git(&["push", "-q", "origin", "main"]);
    ben.git(&["pull", "-q", "origin", "main"]);
    ben.write("two.txt", "2, and more\n");
    ben.done(&["fetch"]);
    ben.done(&["switch", "origin/add-auth"]);

    insta::assert_snapshot!(ben.printed(&["status"]), @"
    Session add-auth, turn 2, on branch main
    Ready for turn 3
    TeDDy has not written to these files before, so everything in them counts as your own; `teddy restore @` restores them to turn 2.
    1 file changed since:
      two.txt
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
}

/// Bug: the session was fetched, and could not be continued.
#[test]
fn t5_a_list_of_requests_that_is_too_large_is_refused_by_its_name() {
    let (ada, ben) = two_people();
    ada.write("large", format!("schema: 1\n#{}\n", "x".repeat(4 << 20)));
    let blob = ada.git(&["hash-object", "-w", "large"]);
    let replaced = |tree: &str, name: &str, id: &str| {
        let listed = ada.git(&["ls-tree", tree]);
        let lines = listed.lines().map(|line| match line.split_once('\t') {
            Some((old, at)) if at == name => {
                let (kind, _) = old.rsplit_once(' ').unwrap();
                format!("{kind} {id}\t{name}\n")
            }
            _ => format!("{line}\n"),
        });
        let mut git = ada.command("git");
        git.arg("mktree");
        let made = ada.reads(git, lines.collect::<String>());
        made.stdout.trim().to_owned()
    };
    let session = "refs/teddy/sessions/add-auth";
    let next = replaced(&format!("{session}:next"), "requests.yaml", &blob);
    let tree = replaced(session, "next", &next);
    let message = ada.git(&["log", "-1", "--format=%B", session]);
    let parents = ada.git(&["rev-parse", &format!("{session}^@")]);
    let mut args = vec!["commit-tree", &tree, "-m", &message];
    for parent in parents.lines() {
        args.extend(["-p", parent]);
    }
    let commit = ada.git(&args);
    ada.git(&["push", "-q", "origin", &format!("{commit}:{session}")]);

    let words = "`next/requests.yaml` has 4194316 bytes, and at most 4194304 are read of it (T5)";
    ben.teddy(&["fetch"]).check(1, &[words]);
    assert_eq!(ben.git(&["for-each-ref", "refs/teddy"]), "");
}

#[test]
fn sessions_of_remotes_are_listed_with_an_option() {
    let (_, ben) = two_people();
    insta::assert_snapshot!(ben.printed(&["switch", "origin/nope"]), @"
    --- stderr
    error: there is no session `origin/nope`
    hint: `teddy sessions -r` lists those of remotes, as they were last fetched
    exit code 1
    ");
    insta::assert_snapshot!(ben.printed(&["browse", "origin/x"]), @"
    --- stderr
    error: there is no session `origin/x`
    hint: `teddy sessions -r` lists those of remotes, as they were last fetched
    exit code 1
    ");
}

#[test]
fn fetching_again_says_what_is_new_and_what_was_rewritten() {
    let (ada, ben) = two_people();
    send(&ada);
    ben.done(&["fetch"]);
    insta::assert_snapshot!(ben.printed(&["fetch"]), @"
    --- stderr
    `origin` has 1 session, and nothing new.
    exit code 0
    ");
    ada.run_plan(&plan("Three", &[create("three.txt", "3\n")]));
    send(&ada);
    insta::assert_snapshot!(ben.printed(&["fetch", "origin", "add-auth"]), @"
    updated    origin/add-auth  3 turns  Three
    exit code 0
    ");
    ada.git(&[
        "push",
        "-q",
        "-f",
        "origin",
        "refs/teddy/sessions/add-auth~2:refs/teddy/sessions/add-auth",
    ]);
    insta::assert_snapshot!(ben.printed(&["fetch"]), @"
    rewritten  origin/add-auth  1 turn  One
    exit code 0
    ");
    ada.git(&["push", "-q", "origin", ":refs/teddy/sessions/add-auth"]);
    insta::assert_snapshot!(ben.printed(&["fetch"]), @"
    --- stderr
    `origin` has 0 sessions, and nothing new.
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["sessions", "-r"]), @"
      origin/add-auth      1 turn  2026-01-02  One
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["fetch", "--prune"]), @"
    gone       origin/add-auth
    exit code 0
    ");
    assert_eq!(ben.git(&["for-each-ref", "refs/teddy"]), "");
}

#[test]
fn one_session_is_fetched_and_none_whose_name_begins_alike() {
    let (ada, ben) = two_people();
    for name in ["add", "add-auth-2", "add-authority", "change/add-auth"] {
        ada.git(&[
            "update-ref",
            &format!("refs/teddy/sessions/{name}"),
            "refs/teddy/sessions/add-auth",
        ]);
    }
    send(&ada);
    insta::assert_snapshot!(ben.printed(&["fetch", "origin", "add-auth"]), @"
    new        origin/add-auth  2 turns  Two
    exit code 0
    ");
    let refs = ben.git(&["for-each-ref", "--format=%(refname)", "refs/teddy"]);
    assert_eq!(refs, "refs/teddy/remotes/origin/add-auth");
    ben.done(&["fetch", "origin", "change/add-auth", "add"]);
    ben.teddy(&["show", "origin/change/add-auth:1"])
        .check(0, &["One"]);
    insta::assert_snapshot!(ben.printed(&["fetch", "origin", "no-such"]), @"
    --- stderr
    error: remote `origin` has no session `no-such`
    hint: `teddy fetch -n origin` lists what the remote has
    exit code 1
    ");
}

#[test]
fn what_a_remote_has_is_listed_without_an_object() {
    let (ada, ben) = two_people();
    send(&ada);
    send_record(&ada);
    let before = ben.git(&["count-objects", "-v"]);
    let listed = ben.json(&["fetch", "-n"], 0);
    assert_eq!(listed["remote"], "origin");
    assert_eq!(listed["sessions"][0]["session"], "origin/add-auth");
    assert_eq!(listed["sessions"][0]["code"], true);
    assert_eq!(listed["sessions"][0]["fetched"], false);
    assert_eq!(ben.git(&["count-objects", "-v"]), before);
}

#[test]
fn t22_a_session_without_its_files_can_be_read_but_not_continued() {
    let (ada, ben) = two_people();
    send_record(&ada);
    insta::assert_snapshot!(ben.printed(&["fetch"]), @"
    new        origin/add-auth  2 turns  Two (without code)
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["sessions", "-r"]), @"
      origin/add-auth     2 turns  2026-01-02  Two (without code)
    exit code 0
    ");
    ben.teddy(&["show", "origin/add-auth:2"])
        .check(0, &["CREATE", "were not pushed"]);
    insta::assert_snapshot!(ben.printed(&["-s", "origin/add-auth", "log"]), @"
       2 [id] 2026-01-02 03:04 executed Two (files not pushed)
       1 [id] 2026-01-02 03:04 executed One (files not pushed)
       0 [id] 2026-01-02 03:04 started  Start session add-auth
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["log", "origin/add-auth", "--stat"]), @"
       2 [id] 2026-01-02 03:04 executed Two (files not pushed)

       1 [id] 2026-01-02 03:04 executed One (files not pushed)

       0 [id] 2026-01-02 03:04 started  Start session add-auth

    --- stderr
    warning: the files of 2 turns were not pushed, so what these changed is unknown; `teddy push --code` on the other side sends the files
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["log", "origin/add-auth", "--", "two.txt"]), @"
    --- stderr
    warning: the files of 2 turns were not pushed, so what these changed is unknown; `teddy push --code` on the other side sends the files
    exit code 0
    ");
    let rows = ben.json(&["log", "origin/add-auth"], 0);
    let unknown = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["without_code"]);
    assert_eq!(
        unknown.collect::<Vec<_>>(),
        [&true.into(), &true.into(), &Value::Null]
    );
    insta::assert_snapshot!(ben.printed(&["find", "two", "--in", "code", "-s", "origin/add-auth"]), @"
    --- stderr
    warning: not searched: the files of 2 turns of `origin/add-auth`, which were not pushed; `teddy push --code` on the other side sends them
    exit code 1
    ");
    insta::assert_snapshot!(ben.printed(&["find", "two"]), @"
    --- stderr
    Sessions of remotes were not searched; `-s origin/add-auth` searches one.
    exit code 1
    ");
    insta::assert_snapshot!(ben.printed(&["find", "two.txt", "-s", "origin/add-auth"]), @"
    origin/add-auth:2:plan.md:14: - **File Path:** [two.txt](/two.txt)
    origin/add-auth:2:plan.md:15: - **Description:** Make two.txt.
    origin/add-auth:2:report.md:33: +++ b/two.txt
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["verify", "origin/add-auth"]), @"
    origin/add-auth: 2 turns, sound, not signed
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["diff", "origin/add-auth:2"]), @"
    --- stderr
    error: the files of turn 2 of `origin/add-auth` were not pushed
    hint: `teddy show origin/add-auth:2` has its report; `teddy push --code` on the other side sends files too
    exit code 1
    ");
    let shown = ben.printed(&["compare", "origin/add-auth", "origin/add-auth:1"]);
    insta::assert_snapshot!(shown, @"
    --- stderr
    error: the files of `origin/add-auth` were not pushed
    hint: `teddy push --code` on the other side sends them
    exit code 1
    ");
    let shown = ben.printed(&["export", "--html", "../pages", "origin/add-auth"]);
    insta::assert_snapshot!(shown, @"
    ../pages
    --- stderr
    7 files of 1 session, without what looks like a key or a home directory. Read them before you share them.
    exit code 0
    ");
    insta::assert_snapshot!(ben.printed(&["branch", "origin/add-auth:2", "mine"]), @"
    --- stderr
    error: the files of session `origin/add-auth` were not pushed, so no turn can follow
    hint: `teddy push --code` on the other side sends them
    exit code 1
    ");
    insta::assert_snapshot!(ben.printed(&["switch", "origin/add-auth"]), @"
    --- stderr
    error: the files of session `origin/add-auth` were not pushed, so no turn can follow
    hint: `teddy push --code` on the other side sends them
    exit code 1
    ");
    ben.done(&["new", "mine"]);
    insta::assert_snapshot!(ben.printed(&["pick", "origin/add-auth:2"]), @"
    --- stderr
    error: the files of turn `origin/add-auth:2` were not pushed, so there is nothing of it to pick
    exit code 1
    ");
    assert_eq!(
        ben.git(&["for-each-ref", "--format=%(refname)", "refs/teddy/sessions"]),
        "refs/teddy/sessions/mine"
    );
}

#[test]
fn without_a_remote_the_error_says_what_helps() {
    let repo = TestRepo::new();
    insta::assert_snapshot!(repo.printed(&["fetch"]), @"
    --- stderr
    error: this repository has no remote
    hint: `git remote add origin <url>` adds one
    exit code 1
    ");
    repo.git(&["remote", "add", "one", "/nowhere"]);
    insta::assert_snapshot!(repo.printed(&["fetch", "two"]), @"
    --- stderr
    error: there is no remote `two`
    hint: the only remote is `one`
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["fetch"]), @"
    --- stderr
    error: remote `one`: '/nowhere' does not appear to be a git repository
    hint: `git remote get-url one` shows where it is looked for
    exit code 1
    ");
    repo.git(&["remote", "add", "ones", "/nowhere"]);
    insta::assert_snapshot!(repo.printed(&["fetch"]), @"
    --- stderr
    error: this repository has several remotes, and none of them is the default
    hint: name one of `one`, `ones`
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["fetch", "onees"]), @"
    --- stderr
    error: there is no remote `onees`
    hint: did you mean `ones`?
    exit code 1
    ");
}

#[test]
fn blame_finds_a_landed_turn_in_a_session_of_a_remote() {
    let (ada, ben) = two_people();
    ada.done(&["land", "--no-edit"]);
    ada.git(&["push", "-q", "origin", "main"]);
    send(&ada);
    ben.git(&["pull", "-q", "--ff-only", "origin", "main"]);
    insta::assert_snapshot!(ben.printed(&["blame", "one.txt"]), @"
    add-auth:1-2 (not here) 1) 1
    exit code 0
    ");
    ben.done(&["fetch"]);
    insta::assert_snapshot!(ben.printed(&["blame", "one.txt"]), @"
    origin/add-auth:1 One 1) 1
    exit code 0
    ");
}

/// Bug: the whole fetch failed, and named no session.
#[test]
fn a_session_with_an_object_that_git_refuses_is_left_out_and_the_others_come() {
    let (ada, ben) = two_people();
    send(&ada);
    copies(&ada, 3);
    push_forged(&ada, &["bad", "s00001"]);
    insta::assert_snapshot!(ben.printed(&["fetch"]), @"
    new        origin/add-auth  2 turns  Two
    new        origin/s00000  2 turns  Two
    new        origin/s00002  2 turns  Two
    --- stderr
    warning: `refs/teddy/sessions/bad` of `origin` was not taken: git refuses it: remote `origin`: object [id]: hasDotgit: contains '.git'; fsck error in packed object; index-pack failed
    warning: `refs/teddy/sessions/s00001` of `origin` was not taken: git refuses it: remote `origin`: object [id]: hasDotgit: contains '.git'; fsck error in packed object; index-pack failed
    error: 2 sessions of `origin` could not be taken
    hint: its author can check it with `teddy verify`
    exit code 1
    ");
    let refs = ben.git(&["for-each-ref", "--format=%(refname)", "refs/teddy"]);
    insta::assert_snapshot!(refs, @"
    refs/teddy/remotes/origin/add-auth
    refs/teddy/remotes/origin/s00000
    refs/teddy/remotes/origin/s00002
    ");
    insta::assert_snapshot!(ben.printed(&["fetch", "origin", "bad"]), @"
    --- stderr
    error: remote `origin`: object [id]: hasDotgit: contains '.git'; fsck error in packed object; index-pack failed
    hint: what the remote sent is damaged or not what it says; nothing of it is used
    exit code 1
    ");
}

/// Bug: the whole fetch failed, or waited for a lock that nobody held.
#[test]
fn a_session_with_the_name_of_another_remote_is_left_out() {
    let (ada, ben) = two_people();
    send(&ada);
    copies(&ada, 1);
    ben.git(&["remote", "rename", "origin", "team"]);
    ben.git(&["remote", "add", "team/add-auth", "/nowhere"]);
    insta::assert_snapshot!(ben.printed(&["fetch", "team"]), @"
    new        team/s00000  2 turns  Two
    --- stderr
    warning: `refs/teddy/sessions/add-auth` of `team` was not taken: `team/add-auth` is a remote, so its name is taken here
    exit code 0
    ");

    let server = ada.beside("server.git");
    ben.git(&[
        "remote",
        "set-url",
        "team/add-auth",
        server.to_str().unwrap(),
    ]);
    ben.git(&["update-ref", "refs/teddy/remotes/team/add-auth", "HEAD"]);
    insta::assert_snapshot!(ben.printed(&["fetch", "team/add-auth"]), @"
    --- stderr
    error: cannot write `refs/teddy/remotes/team/add-auth/add-auth`: a ref exists at the start of its name
    exit code 1
    ");
}

/// A session that cannot be taken is not gone.
#[test]
fn pruning_keeps_a_session_whose_new_turns_git_refuses() {
    let (ada, ben) = two_people();
    send(&ada);
    copies(&ada, 1);
    ben.done(&["fetch"]);
    push_forged(&ada, &["s00000"]);
    let refs = || ben.git(&["for-each-ref", "refs/teddy"]);
    let before = refs();
    ben.teddy(&["fetch", "--prune"])
        .check(1, &["1 session of `origin` could not be taken"]);
    assert_eq!(refs(), before);
}

/// Pushes a commit with a file that git refuses, as the tip of these sessions.
fn push_forged(ada: &TestRepo, names: &[&str]) {
    let blob = ada.git(&["rev-parse", "teddy/sessions/add-auth:plan.md"]);
    let mut mktree = ada.command("git");
    mktree.arg("mktree");
    let tree = ada.reads(mktree, format!("100644 blob {blob}\t.git\n"));
    let forged = ada.git(&["commit-tree", tree.stdout.trim(), "-m", "x"]);
    for name in names {
        let to = format!("+{forged}:refs/teddy/sessions/{name}");
        ada.git(&["push", "-q", "origin", &to]);
    }
}

/// Gives the remote a number of refs that all point at one session.
fn copies(ada: &TestRepo, number: usize) {
    let tip = ada.git(&["rev-parse", "teddy/sessions/add-auth"]);
    let line = |number| format!("{tip} refs/teddy/sessions/s{number:05}\n");
    let mut lines: Vec<String> = (0..number).map(line).collect();
    lines.sort();
    let server = ada.beside("server.git");
    ada.git_in(&server, &["pack-refs", "--all"]);
    let packed = std::fs::read_to_string(server.join("packed-refs")).unwrap();
    std::fs::write(server.join("packed-refs"), packed + &lines.concat()).unwrap();
}

#[test]
fn thousands_of_sessions_are_fetched_in_one_pass() {
    let (ada, ben) = two_people();
    send(&ada);
    copies(&ada, 2000);
    // Fewer files than sessions can be open.
    let mut command = ben.command("sh");
    let teddy = ben.teddy_command(&[]);
    for (name, value) in teddy.get_envs() {
        value.map(|value| command.env(name, value));
    }
    let out = Output::of(command.current_dir(ben.path()).args([
        "-c",
        "ulimit -n 256; exec \"$0\" fetch",
        env!("CARGO_BIN_EXE_teddy"),
    ]));
    out.check(0, &["Checking 2001 sessions."]);
    assert_eq!(out.stdout.lines().count(), 2001);
    let refs = |below: &str| ben.git(&["for-each-ref", "--format=%(refname)", below]);
    assert_eq!(refs("refs/teddy/remotes/origin").lines().count(), 2001);
    assert_eq!(refs("refs/teddy/incoming"), "");

    ada.git(&["push", "-q", "origin", ":refs/teddy/sessions/add-auth"]);
    let out = ben.teddy(&["fetch", "--prune"]);
    assert_eq!(out.stdout, "gone       origin/add-auth\n", "{out}");
}

#[test]
fn a_remote_with_too_many_sessions_is_refused() {
    let (ada, ben) = two_people();
    send(&ada);
    copies(&ada, 10_000);
    insta::assert_snapshot!(ben.printed(&["fetch"]), @"
    --- stderr
    error: `origin` has 10001 sessions, and a fetch takes at most 10000; none was taken
    hint: `teddy fetch origin <session>` fetches the ones that you name
    exit code 1
    ");
    assert_eq!(ben.git(&["for-each-ref", "refs/teddy"]), "");
    insta::assert_snapshot!(ben.printed(&["fetch", "origin", "s00007"]), @"
    new        origin/s00007  2 turns  Two
    exit code 0
    ");
}

/// A server that lists refs without end.
#[cfg(target_os = "linux")]
#[test]
fn a_list_without_end_takes_a_limited_part_of_the_memory() {
    use std::os::unix::fs::PermissionsExt as _;

    let (_ada, ben) = two_people();
    // Long names, so that the limit is reached soon.
    let line = format!(
        "{} refs/teddy/sessions/{}",
        "1".repeat(40),
        "x".repeat(4000)
    );
    std::fs::write(ben.beside("line"), format!("{:04x}{line}", line.len() + 5)).unwrap();
    let server = ben.beside("endless.sh");
    let script = format!(
        "#!/bin/sh\nyes \"$(cat '{}')\"\n",
        ben.beside("line").display()
    );
    std::fs::write(&server, script).unwrap();
    std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
    ben.git(&[
        "config",
        "remote.origin.uploadpack",
        server.to_str().unwrap(),
    ]);

    let out = ben.teddy(&["fetch"]);
    assert_eq!(out.code, 1, "{out}");
    assert!(out.stderr.contains("ut of memory"), "{out}");
    assert_eq!(ben.git(&["for-each-ref", "refs/teddy"]), "");
}
