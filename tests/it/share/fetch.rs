//! `fetch`: fetched sessions can be read like others and are never run.

use crate::plans::{create, plan};
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

/// Checks the output that a user sees.
fn check(out: &Output, code: i32, words: &[&str]) {
    out.check(code, words);
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

    check(&ben.teddy(&["sessions"]), 0, &["There are no sessions"]);
    let rows = ben.json(&["sessions", "-r"], 0);
    assert_eq!(rows[0]["name"], "origin/add-auth");
    assert_eq!(rows[0]["code"], true);
    check(
        &ben.teddy(&["show", "origin/add-auth:1"]),
        0,
        &["One", "one.txt"],
    );
    check(&ben.teddy(&["show", "origin/add-auth"]), 0, &["Two"]);
    check(
        &ben.teddy(&["show", "origin/add-auth:1", "plan.md"]),
        0,
        &["# One"],
    );
    check(
        &ben.teddy(&["diff", "origin/add-auth:2"]),
        0,
        &["two.txt", "+2"],
    );
    check(
        &ben.teddy(&["diff", "origin/add-auth:1", "origin/add-auth:2"]),
        0,
        &["two.txt"],
    );
    check(
        &ben.teddy(&["-s", "origin/add-auth", "log"]),
        0,
        &["Two", "One"],
    );
    check(&ben.teddy(&["log", "origin/add-auth"]), 0, &["Two", "One"]);
    check(&ben.teddy(&["log", "a.txt"]), 2, &["teddy log -- a.txt"]);
    check(
        &ben.teddy(&["find", "Two", "-s", "origin/add-auth"]),
        0,
        &["origin/add-auth:2"],
    );
    check(
        &ben.teddy(&["compare", "origin/add-auth:1", "origin/add-auth:2"]),
        0,
        &["origin/add-auth:2"],
    );
    check(
        &ben.teddy(&["verify", "origin/add-auth"]),
        0,
        &["origin/add-auth"],
    );
    check(
        &ben.teddy(&["export", "-s", "origin/add-auth", "../out"]),
        0,
        &["out"],
    );
}

#[test]
fn nothing_is_written_to_a_session_of_a_remote() {
    let (ada, ben) = two_people();
    send(&ada);
    ben.done(&["fetch"]);
    ben.done(&["new", "mine"]);
    let before = ben.git(&["for-each-ref"]);
    let only = "can only be looked at";
    let hint = "`teddy branch origin/add-auth:@ <name>`";
    check(
        &ben.teddy(&["-s", "origin/add-auth", "undo"]),
        2,
        &[only, hint],
    );
    check(
        &ben.teddy(&["-s", "origin/add-auth", "plan", "x"]),
        2,
        &[only],
    );
    check(
        &ben.teddy(&["restore", "origin/add-auth:1", "-y"]),
        2,
        &[only],
    );
    check(
        &ben.teddy(&["verify", "--rerun", "origin/add-auth:1"]),
        2,
        &[only],
    );
    check(&ben.teddy(&["retry", "origin/add-auth:1"]), 2, &[only]);
    check(&ben.teddy(&["gc", "origin/add-auth", "-y"]), 2, &[only]);
    check(&ben.teddy(&["push", "origin/add-auth"]), 2, &[only, hint]);
    check(
        &ben.teddy(&["push", "--delete", "origin/add-auth"]),
        2,
        &["hint: `teddy push --delete add-auth --remote origin`"],
    );
    check(
        &ben.teddy(&["export", "--bundle", "../one.bundle", "origin/add-auth"]),
        2,
        &[only, hint],
    );
    assert_eq!(ben.git(&["for-each-ref"]), before);
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
    check(&ben.teddy(&["log"]), 0, &["Three", "One"]);
    check(&ben.teddy(&["verify"]), 0, &["mine"]);
    ben.done(&["undo"]);
    ben.done(&["pick", "origin/add-auth:2"]);
    assert_eq!(ben.read("two.txt"), "2\n");
}

#[test]
fn a_session_is_taken_over_under_its_own_name() {
    let (ada, ben) = two_people();
    send(&ada);
    ben.done(&["fetch"]);
    check(
        &ben.teddy(&["switch", "origin/add-auth"]),
        0,
        &["Session add-auth with 2 turns is now yours"],
    );
    assert_eq!(ben.json(&["status"], 0)["session"], "add-auth");
    check(
        &ben.teddy(&["switch", "origin/add-auth"]),
        1,
        &["there is a session `add-auth` already"],
    );
}

#[test]
fn what_was_adopted_was_never_brought_here() {
    let (ada, ben) = two_people();
    send(&ada);
    ada.done(&["land", "-m", "one and two"]);
    ada.git(&["push", "-q", "origin", "main"]);
    ben.git(&["pull", "-q", "origin", "main"]);
    ben.done(&["fetch"]);
    ben.done(&["switch", "origin/add-auth"]);

    let told = "TeDDy has not written to these files before, so everything in them counts as your own; `teddy restore @` restores them to turn 2.";
    let status = ben.teddy(&["status"]);
    check(&status, 0, &[told]);
    insta::assert_snapshot!(status.shown(&ben), @"
    Session add-auth, turn 2, on branch main
    Ready for turn 3
    TeDDy has not written to these files before, so everything in them counts as your own; `teddy restore @` restores them to turn 2.
    Next: teddy '<what you want>'
    exit code 0
    ");

    let restored = ben.teddy(&["restore", "@"]);
    check(&restored, 0, &[]);
    insta::assert_snapshot!(restored.shown(&ben), @"
    Your files match turn 2: 0 files changed.
    exit code 0
    ");
    assert!(!ben.teddy(&["status"]).stdout.contains("TeDDy has"));
}

#[test]
fn sessions_of_remotes_are_listed_with_an_option() {
    let (_, ben) = two_people();
    let hint = "`teddy sessions -r` lists those of remotes";
    check(&ben.teddy(&["switch", "origin/nope"]), 1, &[hint]);
    check(&ben.teddy(&["browse", "origin/x"]), 1, &[hint]);
}

#[test]
fn fetching_again_says_what_is_new_and_what_was_rewritten() {
    let (ada, ben) = two_people();
    send(&ada);
    ben.done(&["fetch"]);
    check(
        &ben.teddy(&["fetch"]),
        0,
        &["`origin` has 1 session, and nothing new."],
    );
    ada.run_plan(&plan("Three", &[create("three.txt", "3\n")]));
    send(&ada);
    check(
        &ben.teddy(&["fetch", "origin", "add-auth"]),
        0,
        &["updated    origin/add-auth  3 turns  Three"],
    );
    ada.git(&[
        "push",
        "-q",
        "-f",
        "origin",
        "refs/teddy/sessions/add-auth~2:refs/teddy/sessions/add-auth",
    ]);
    check(
        &ben.teddy(&["fetch"]),
        0,
        &["rewritten  origin/add-auth  1 turn  One"],
    );
    ada.git(&["push", "-q", "origin", ":refs/teddy/sessions/add-auth"]);
    check(
        &ben.teddy(&["fetch"]),
        0,
        &["`origin` has 0 sessions, and nothing new."],
    );
    check(&ben.teddy(&["sessions", "-r"]), 0, &["origin/add-auth"]);
    check(
        &ben.teddy(&["fetch", "--prune"]),
        0,
        &["gone       origin/add-auth"],
    );
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
    check(
        &ben.teddy(&["fetch", "origin", "add-auth"]),
        0,
        &["origin/add-auth  2 turns"],
    );
    let refs = ben.git(&["for-each-ref", "--format=%(refname)", "refs/teddy"]);
    assert_eq!(refs, "refs/teddy/remotes/origin/add-auth");
    ben.done(&["fetch", "origin", "change/add-auth", "add"]);
    check(
        &ben.teddy(&["show", "origin/change/add-auth:1"]),
        0,
        &["One"],
    );
    check(
        &ben.teddy(&["fetch", "origin", "no-such"]),
        1,
        &[
            "remote `origin` has no session `no-such`",
            "teddy fetch -n origin",
        ],
    );
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
fn t22_a_record_is_read_without_its_files_and_cannot_be_gone_on_with() {
    let (ada, ben) = two_people();
    send_record(&ada);
    check(
        &ben.teddy(&["fetch"]),
        0,
        &["new        origin/add-auth  2 turns  Two (without code)"],
    );
    check(&ben.teddy(&["sessions", "-r"]), 0, &["Two (without code)"]);
    check(
        &ben.teddy(&["show", "origin/add-auth:2"]),
        0,
        &["CREATE", "were not pushed"],
    );
    check(
        &ben.teddy(&["-s", "origin/add-auth", "log"]),
        0,
        &["Two", "One"],
    );
    check(
        &ben.teddy(&["find", "two.txt", "-s", "origin/add-auth"]),
        0,
        &["origin/add-auth:2"],
    );
    check(
        &ben.teddy(&["verify", "origin/add-auth"]),
        0,
        &["origin/add-auth"],
    );
    check(
        &ben.teddy(&["diff", "origin/add-auth:2"]),
        1,
        &["were not pushed", "teddy push --code"],
    );
    check(
        &ben.teddy(&["compare", "origin/add-auth", "origin/add-auth:1"]),
        1,
        &[
            "the files of `origin/add-auth` were not pushed",
            "teddy push --code",
        ],
    );
    check(
        &ben.teddy(&["export", "--html", "../pages", "origin/add-auth"]),
        0,
        &["pages"],
    );
    check(
        &ben.teddy(&["branch", "origin/add-auth:2", "mine"]),
        1,
        &["were not pushed"],
    );
    check(
        &ben.teddy(&["switch", "origin/add-auth"]),
        1,
        &["were not pushed"],
    );
    ben.done(&["new", "mine"]);
    check(
        &ben.teddy(&["pick", "origin/add-auth:2"]),
        1,
        &["were not pushed"],
    );
    assert_eq!(
        ben.git(&["for-each-ref", "--format=%(refname)", "refs/teddy/sessions"]),
        "refs/teddy/sessions/mine"
    );
}

#[test]
fn without_a_remote_the_error_says_what_helps() {
    let repo = TestRepo::new();
    check(
        &repo.teddy(&["fetch"]),
        1,
        &["has no remote", "git remote add origin"],
    );
    repo.git(&["remote", "add", "one", "/nowhere"]);
    check(
        &repo.teddy(&["fetch", "two"]),
        1,
        &["there is no remote `two`", "the only remote is `one`"],
    );
    check(
        &repo.teddy(&["fetch"]),
        1,
        &[
            "remote `one`",
            "does not appear to be a git repository",
            "git remote get-url one",
        ],
    );
    repo.git(&["remote", "add", "ones", "/nowhere"]);
    check(
        &repo.teddy(&["fetch"]),
        1,
        &["several remotes", "`one`, `ones`"],
    );
    check(&repo.teddy(&["fetch", "onees"]), 1, &["did you mean `one"]);
}

#[test]
fn blame_finds_a_landed_turn_in_a_session_of_a_remote() {
    let (ada, ben) = two_people();
    ada.done(&["land", "--no-edit"]);
    ada.git(&["push", "-q", "origin", "main"]);
    send(&ada);
    ben.git(&["pull", "-q", "--ff-only", "origin", "main"]);
    check(&ben.teddy(&["blame", "one.txt"]), 0, &["add-auth:1"]);
    ben.done(&["fetch"]);
    check(&ben.teddy(&["blame", "one.txt"]), 0, &["origin/add-auth:1"]);
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
    error: `origin` has 10001 sessions, and a fetch takes at most 10000; none was taken
    hint: `teddy fetch origin <session>` fetches the ones that you name
    exit code 1
    ");
    assert_eq!(ben.git(&["for-each-ref", "refs/teddy"]), "");
    check(
        &ben.teddy(&["fetch", "origin", "s00007"]),
        0,
        &["origin/s00007"],
    );
}
