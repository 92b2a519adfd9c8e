//! `new`, `sessions`, `switch` and `branch`.

use std::fmt::Write as _;

use crate::plans::{create, plan};
use crate::support::{Output, TestRepo};

fn two_turns() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("first").done();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    repo
}

#[test]
fn new_prints_the_ref_of_a_first_commit_without_parent_and_workspace() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    assert_eq!(
        repo.done(&["new", "add-auth", "-a", "architect"]),
        "refs/teddy/sessions/add-auth\n"
    );
    let log = repo.git(&[
        "log",
        "--format=%s|%P|%(trailers:key=Teddy-Status,valueonly)%(trailers:key=Teddy-Agent,valueonly)",
        "teddy/sessions/add-auth",
    ]);
    assert_eq!(log, "Start session add-auth||started\narchitect");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_name_in_use_is_refused_and_the_session_keeps_its_name() {
    let repo = two_turns();
    let before = repo.git(&["for-each-ref"]);
    insta::assert_snapshot!(repo.workflow().new_session("first").refused(), @r"
    error: there is a session `first` already
    hint: `teddy switch first` continues it; or choose another name
    exit code 1
    ");
    insta::assert_snapshot!(repo.workflow().branch("1", "first").refused(), @r"
    error: there is a session `first` already
    hint: `teddy switch first` continues it; or choose another name
    exit code 1
    ");
    let own = repo.workflow().session("first").branch("@", "first");
    insta::assert_snapshot!(own.refused(), @r"
    error: there is a session `first` already
    hint: `teddy switch first` continues it; or choose another name
    exit code 1
    ");
    assert_eq!(repo.git(&["for-each-ref"]), before);
}

#[test]
fn a_name_that_is_not_kebab_case_is_refused_with_the_rule() {
    let repo = TestRepo::new();
    let refused = ["A B", "../x", "", "a_b", "-a", "a--b", "a.lock", "a/b", "é"]
        .map(|name| repo.workflow().new_session(name).refused());
    insta::assert_snapshot!(refused.concat(), @r"
    error: `A B` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`
    exit code 2
    error: `../x` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`
    exit code 2
    error: `` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`
    exit code 2
    error: `a_b` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`
    exit code 2
    error: `-a` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`
    exit code 2
    error: `a--b` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`
    exit code 2
    error: `a.lock` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`
    exit code 2
    error: `a/b` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`
    exit code 2
    error: `é` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`
    exit code 2
    ");
    assert_eq!(repo.git(&["for-each-ref"]), "");
}

#[test]
fn a_name_that_reads_as_a_turn_is_refused_and_a_session_that_has_one_is_reached() {
    let repo = two_turns();
    let before = repo.git(&["for-each-ref"]);
    insta::assert_snapshot!(repo.printed(&["branch", "1"]), @"
    --- stderr
    error: `1` cannot be a session name, because it could be a turn: a number, or an abbreviated commit id
    hint: `teddy branch 1 <name>` starts a session at that turn
    exit code 2
    ");
    for args in [
        &["new", "2026"][..],
        &["start", "--name", "7", "-m", "x", "--model", "replay:x"],
        &["branch", "1", "3ae29549"],
    ] {
        repo.teddy(args)
            .check(2, &["cannot be a session name, because it could be a turn"]);
    }
    assert_eq!(repo.git(&["for-each-ref"]), before);
    // An earlier version allowed this name.
    repo.git(&[
        "update-ref",
        "refs/teddy/sessions/1",
        "refs/teddy/sessions/first~1",
    ]);
    repo.workflow().switch("1").done();
    assert_eq!(repo.workflow().status()["session"], "1");
    assert_eq!(repo.workflow().session("first").turn("1:1")["title"], "One");
    assert_eq!(repo.workflow().session("1").turn("first:2")["title"], "Two");
}

#[test]
fn an_unknown_agent_is_refused_before_anything_is_made() {
    let repo = TestRepo::new();
    insta::assert_snapshot!(repo.printed(&["new", "x", "-a", "nobody"]), @"
    --- stderr
    error: there is no agent `nobody`; available: architect, assistant, debugger, developer, pathfinder, prototyper
    hint: `teddy get-prompt` lists the agents
    exit code 1
    ");
    assert_eq!(repo.git(&["for-each-ref"]), "");
}

#[test]
fn a_branch_shares_the_turns_before_it_and_leaves_the_files() {
    let repo = two_turns();
    repo.workflow().branch("1", "other").done();
    assert_eq!(
        repo.git(&["rev-parse", "teddy/sessions/other"]),
        repo.git(&["rev-parse", "teddy/sessions/first~1"])
    );
    assert_eq!(repo.read("two.txt"), "2\n");
    repo.workflow().restore("@").done();
    assert!(!repo.path().join("two.txt").exists());
    repo.workflow()
        .run_plan(&plan("Other", &[create("other.txt", "o\n")]));
    let subjects = |session: &str| {
        repo.git(&[
            "log",
            "--first-parent",
            "--format=%s",
            &format!("teddy/sessions/{session}"),
        ])
    };
    assert_eq!(
        subjects("other"),
        "Other\nRestore 1: One\nOne\nStart session first"
    );
    assert_eq!(subjects("first"), "Two\nOne\nStart session first");
}

#[test]
fn git_alone_makes_a_branch_too() {
    let repo = two_turns();
    repo.git(&[
        "update-ref",
        "refs/teddy/sessions/copy",
        "teddy/sessions/first~1",
    ]);
    let log = repo.workflow().session("copy").log();
    assert_eq!(log[0]["title"], "One");
}

#[test]
fn switch_and_the_option_and_the_variable_choose_the_session() {
    let repo = two_turns();
    repo.workflow().new_session("second").done();
    let session = |args: &[&str]| repo.json(args, 0)["session"].as_str().unwrap().to_owned();
    assert_eq!(session(&["status"]), "second");
    assert_eq!(session(&["-s", "first", "status"]), "first");
    repo.workflow().switch("first").done();
    assert_eq!(session(&["status"]), "first");
    let mut command = repo.teddy_command(&["--json", "status"]);
    let out = crate::support::Output::of(
        command
            .env("TEDDY_SESSION", "second")
            .current_dir(repo.path()),
    );
    assert!(out.stdout.contains("\"session\": \"second\""), "{out}");
    let mut command = repo.teddy_command(&["--json", "status"]);
    let out = crate::support::Output::of(command.env("TEDDY_SESSION", "").current_dir(repo.path()));
    assert!(
        out.stdout.contains("\"session\": \"first\""),
        "set to nothing is not set: {out}"
    );
    insta::assert_snapshot!(repo.printed(&["-s", "", "status"]), @"
    --- stderr
    error: `` is not a valid session name: use lower-case letters, digits and single hyphens, such as `add-auth`
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["switch"]), @"
    --- stderr
    error: stdin is not a terminal, so no session can be chosen
    hint: `teddy switch <name>` names one; `teddy sessions` lists them
    exit code 1
    ");
    insta::assert_snapshot!(repo.workflow().switch("third").refused(), @r"
    error: there is no session `third`
    hint: `teddy sessions` lists the sessions
    exit code 1
    ");
}

#[test]
fn sessions_lists_names_refs_and_turns() {
    let repo = two_turns();
    repo.workflow().new_session("second").done();
    let rows = repo.workflow().sessions();
    let mut found: Vec<String> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            format!(
                "{} {} {} {} {}",
                row["name"],
                row["ref"],
                row["turns"],
                row["title"],
                row["tip"].as_str().unwrap().len()
            )
        })
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            "\"first\" \"refs/teddy/sessions/first\" 2 \"Two\" 40",
            "\"second\" \"refs/teddy/sessions/second\" 0 \"Start session second\" 40"
        ]
    );
    assert!(
        rows[0]["updated"]
            .as_str()
            .unwrap()
            .starts_with("2026-01-02T03:04:05")
    );
    assert_eq!(rows.as_array().unwrap().len(), 2);
}

#[test]
fn a_turn_of_another_session_is_named_with_a_colon() {
    let repo = two_turns();
    repo.workflow().new_session("second").done();
    assert!(
        repo.workflow()
            .artifact("first:1", "report.md")
            .starts_with("# Execution Report: One\n")
    );
}

#[test]
fn start_without_a_person_makes_a_session_named_after_the_message_and_runs_one_turn() {
    let repo = TestRepo::new();
    repo.reply(&plan("Hello", &[create("hello.txt", "hi\n")]));
    let shown = repo.printed(&["start", "-m", "Say hello to everybody", "-y"]);
    insta::assert_snapshot!(shown, @r#"
    turn 1 executed [id]
    --- stderr
    Started session say-hello-to-everybody.
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "Hello"
      say-hello-to-everybody · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Hello, because it is wanted.
     Changes: 1 file  +1
      hello.txt  +1  new file
        +hi
     Action Plan:
      - CREATE: 1 file
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE hello.txt
      ✓ created, 1 line
    Updated your files: hello.txt (new)
    exit code 0
    "#);
    assert_eq!(repo.read("hello.txt"), "hi\n");
    assert_eq!(
        repo.workflow().sessions()[0]["name"],
        "say-hello-to-everybody"
    );
    assert_eq!(
        repo.done(&["session", "show", "1", "user_prompt.txt"]),
        "Say hello to everybody"
    );
}

#[test]
fn promise_d7_an_adopted_session_is_the_one_in_use() {
    let repo = two_turns();
    repo.workflow().new_session("other").done();
    insta::assert_snapshot!(repo.workflow().adopt("first").done(), @"adopted first: 2 turns");
    assert_eq!(repo.workflow().status()["session"], "first");
    insta::assert_snapshot!(repo.workflow().adopt("nobody").refused(), @r"
    error: there is no session `nobody`
    hint: `teddy sessions` lists the sessions
    exit code 1
    ");
    assert_eq!(repo.workflow().status()["session"], "first");
}

/// A project with hundreds of sessions, each at its own commit.
fn hundreds() -> TestRepo {
    let repo = two_turns();
    let tip = repo.git(&["cat-file", "commit", "refs/teddy/sessions/first"]);
    let copies = repo.beside("commits");
    std::fs::create_dir(&copies).unwrap();
    let mut paths = String::new();
    for n in 0..300 {
        let copy = copies.join(format!("s-{n}"));
        let text = tip.replace("Session: first", &format!("Session: s-{n}"));
        std::fs::write(&copy, text + "\n").unwrap();
        writeln!(paths, "{}", copy.display()).unwrap();
    }
    let mut hash = repo.command("git");
    hash.args(["hash-object", "-t", "commit", "-w", "--stdin-paths"]);
    let hashed = repo.reads(hash, paths);
    let mut moves = String::new();
    for (n, id) in hashed.stdout.lines().enumerate() {
        writeln!(moves, "update refs/teddy/sessions/s-{n} {id}").unwrap();
    }
    let head = repo.git(&["rev-parse", "HEAD"]);
    writeln!(moves, "update refs/teddy/sessions/stray {head}").unwrap();
    let mut update = repo.command("git");
    update.args(["update-ref", "--stdin"]);
    repo.reads(update, moves).check(0, &[]);
    repo
}

#[test]
fn hundreds_of_sessions_are_listed_by_what_their_commits_say() {
    let repo = hundreds();
    let rows = repo.workflow().sessions();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 301);
    for row in rows {
        assert_eq!(
            (&row["turns"], &row["title"]),
            (&serde_json::json!(2), &serde_json::json!("Two"))
        );
    }
    let current = rows.iter().filter(|row| row["current"] == true);
    assert_eq!(current.count(), 1);
}

#[test]
fn that_hundreds_of_refs_can_be_read_is_noted_until_the_machine_goes_down() {
    let repo = hundreds();
    repo.git(&["pack-refs", "--all"]);
    let note = repo.path().join(".git/teddy/readable");
    assert!(!note.exists());
    repo.workflow().undo(1).done();
    assert_eq!(std::fs::read_to_string(&note).unwrap().lines().count(), 1);
    if repo.path().join(".git/reftable").exists() {
        return;
    }

    // Later damage is found by a command that looks for it, or after a reboot.
    let nothing = "1234567890".repeat(4);
    let damage = || repo.write(".git/refs/teddy/sessions/s-7", format!("{nothing}\n"));
    damage();
    let out = repo.teddy(&["redo"]);
    assert!(out.code == 0 && !out.to_string().contains("s-7"), "{out}");
    // The exit code depends on how many sessions are checked within a second.
    let out = repo.teddy(&["doctor", "--fix"]);
    assert!(out.stderr.contains("`refs/teddy/sessions/s-7`"), "{out}");
    damage();
    std::fs::write(&note, "another start\n").unwrap();
    insta::assert_snapshot!(repo.printed(&["undo"]), @"
    delete two.txt
    --- stderr
    `refs/teddy/sessions/s-7` was damaged and was taken away: no commit of it is left
    Your files match turn 1: 1 file changed.
    exit code 0
    ");
}

#[test]
fn turns_in_the_files_have_the_name_that_their_session_has_now() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.done(&["new", "first"]);
    repo.workflow()
        .run_plan(&plan("Make b", &[create("b.txt", "b\n")]));
    repo.done(&["branch", "-m", "first", "second"]);
    repo.done(&["new", "other"]);
    repo.workflow()
        .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
    repo.done(&["switch", "second"]);
    repo.done(&["branch", "-m", "other", "another"]);
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session second, turn 1, on branch main
    Ready for turn 2
    Your files do not match turn 1: they have turn 1 of another; `teddy restore @` takes them there.
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");

    repo.done(&["switch", "another"]);
    insta::assert_snapshot!(repo.printed(&["restore", "0"]), @"
    delete c.txt
    --- stderr
    Your files match turn 0: 1 file changed.
    exit code 0
    ");
}

/// Three turns in the files: of `one`, of `two`, which is then renamed or deleted, and of a new `two`.
fn name_taken_again(rename: bool) -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    let turn = |session: &str, path: &str| {
        repo.workflow().new_session(session).done();
        let text = format!("{path} of {session}\n");
        repo.workflow()
            .run_plan(&plan(&format!("Make {path}"), &[create(path, &text)]));
    };
    turn("one", "b.txt");
    turn("two", "c.txt");
    match rename {
        true => repo.done(&["branch", "-m", "two", "zwei"]),
        false => repo.done(&["gc", "two", "-y"]),
    };
    turn("two", "d.txt");
    repo
}

/// Bug: both were turn 1 of `two`, once.
#[test]
fn a_turn_of_a_renamed_session_is_not_one_of_the_session_that_has_its_name_now() {
    let repo = name_taken_again(true);
    repo.workflow().switch("one").done();
    let undone = repo.workflow().undo(1).done();
    let says = "no longer contain turn 1 of two, turn 1 of zwei; `teddy pick two:1 zwei:1` applies only them";
    assert!(undone.contains(says), "{undone}");
    repo.done(&["pick", "two:1", "zwei:1"]);
    assert_eq!(repo.read("c.txt"), "c.txt of two\n");
}

#[test]
fn a_turn_of_a_deleted_session_is_not_one_of_the_session_that_has_its_name_now() {
    let repo = name_taken_again(false);
    repo.workflow().switch("one").done();
    assert_eq!(
        repo.json(&["status"], 0)["workspace"]["extra"],
        serde_json::json!([
            { "session": "two", "turn": 1 },
            { "session": "two", "turn": 1, "deleted": true },
        ])
    );
    let undone = repo.workflow().undo(1).done();
    for says in [
        "no longer contain turn 1 of two; `teddy pick two:1` applies only it",
        "no longer contain turn 1 of two (deleted); if `teddy gc` left a bundle",
    ] {
        assert!(undone.contains(says), "{undone}");
    }
}

/// Bug: `log --all` and `find` named a turn of the new session, and `browse` and `web` no turn of the
/// renamed one.
#[test]
fn the_turns_of_a_renamed_session_have_its_name_in_every_list() {
    let repo = name_taken_again(true);
    let log = repo.json(&["log", "--all"], 0);
    let mut names: Vec<String> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{}:{}", row["session"].as_str().unwrap(), row["number"]))
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["one:0", "one:1", "two:0", "two:1", "zwei:0", "zwei:1"]
    );
    let browse = repo.json(&["browse"], 0);
    let sessions = browse["sessions"].as_array().unwrap();
    let zwei = sessions.iter().find(|row| row["name"] == "zwei").unwrap();
    assert_eq!(zwei["parent"], serde_json::Value::Null);
    assert_eq!(zwei["rows"].as_array().unwrap().len(), 2);
}

/// Bug: `show` found no turn, and `blame` said that it is not here.
#[test]
fn a_landed_turn_of_a_renamed_session_is_found_by_its_id() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("two").done();
    repo.workflow()
        .run_plan(&plan("Make b", &[create("b.txt", "b\n")]));
    repo.done(&["land", "--no-edit"]);
    repo.done(&["branch", "-m", "two", "zwei"]);
    repo.done(&["new", "two"]);
    repo.teddy(&["show", "HEAD"]).check(0, &["turn zwei:1 "]);
    repo.teddy(&["blame", "b.txt"])
        .check(0, &["zwei:1 Make b 1) b"]);
}

#[test]
fn a_session_is_renamed_with_its_waiting_plan() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.done(&["new", "My first session"]);
    repo.workflow()
        .run_plan(&plan("Make b", &[create("b.txt", "b\n")]));
    repo.reply(&plan("Make c", &[create("c.txt", "c\n")]));
    repo.done(&["plan", "make c"]);
    let tip = repo.git(&["rev-parse", "teddy/sessions/my-first-session"]);

    insta::assert_snapshot!(repo.printed(&["branch", "-m", "Better name"]), @"
    refs/teddy/sessions/better-name
    --- stderr
    Session my-first-session is now better-name.
    exit code 0
    ");
    assert_eq!(repo.git(&["rev-parse", "teddy/sessions/better-name"]), tip);
    assert_eq!(
        repo.git(&[
            "for-each-ref",
            "--format=%(refname)",
            "refs/teddy/sessions",
            "refs/teddy/drafts"
        ]),
        "refs/teddy/drafts/better-name\nrefs/teddy/sessions/better-name"
    );
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("c.txt"), "c\n");
    repo.done(&["verify"]);
    repo.teddy(&["doctor"]).check(0, &[]);

    // A name that is in use stays what it is.
    repo.workflow().branch("1", "other").done();
    let refs = repo.git(&["for-each-ref"]);
    insta::assert_snapshot!(repo.printed(&["branch", "-m", "better-name"]), @"
    --- stderr
    error: there is a session `better-name` already
    hint: `teddy switch better-name` continues it; or choose another name
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["branch", "-m", "nope", "x"]), @"
    --- stderr
    error: there is no session `nope`
    hint: `teddy sessions` lists the sessions
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["branch", "-m", "other", "other"]), @"
    --- stderr
    error: there is a session `other` already
    hint: `teddy switch other` continues it; or choose another name
    exit code 1
    ");
    assert_eq!(repo.git(&["for-each-ref"]), refs);
}

#[test]
fn start_without_running_is_new() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    insta::assert_snapshot!(repo.printed(&["start", "--no-run", "Add a form", "a.txt"]), @"
    refs/teddy/sessions/add-a-form
    --- stderr
    Started session add-a-form with the agent assistant. Next: teddy plan '...'
    Added a.txt (session)
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["start", "--no-run", "--name", "other"]), @"
    refs/teddy/sessions/other
    --- stderr
    Started session other with the agent assistant. Next: teddy plan '...'
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["start", "--no-run"]), @"
    --- stderr
    error: the session needs a name
    hint: `teddy start --no-run --name <name>` gives it
    exit code 2
    ");
    assert_eq!(repo.json(&["sessions"], 0)[0]["turns"], 0);
}

#[test]
fn a_session_of_someone_else_runs_only_what_was_shown() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("theirs").done();
    let theirs = || repo.workflow().session("theirs");
    theirs().run_plan(&plan("One", &[create("one.txt", "1\n")]));
    let reply = format!("Sure!\n\n{}", plan("Two", &[create("two.txt", "2\n")]));
    theirs().plan_from("go", &reply).done();
    insta::assert_snapshot!(repo.printed(&["-s", "theirs", "show", "draft", "reply.md"]), @"
    Sure!

    # Two
    - **Status:** Green 🟢
    - **Plan Type:** Implementation
    - **Agent:** Pathfinder

    ## Rationale
    ````text
    Two, because it is wanted.
    ````

    ## Action Plan

    ### `CREATE`
    - **File Path:** [two.txt](/two.txt)
    - **Description:** Make two.txt.
    ````text
    2
    ````
    exit code 0
    ");
    for own in ["tips", "own-drafts"] {
        std::fs::remove_dir_all(repo.path().join(".git/teddy").join(own)).unwrap();
    }

    insta::assert_snapshot!(repo.printed(&["verify", "--rerun", "1", "-s", "theirs", "-y"]), @"
    --- stderr
    error: turn 1 of session `theirs` is not recorded as yours; its plan does not run
    hint: `teddy switch --adopt theirs` accepts the session
    exit code 1
    ");
    // A branch of it is no more the user's than itself.
    repo.workflow().branch("theirs:1", "mine").done();
    insta::assert_snapshot!(repo.printed(&["verify", "--rerun", "mine:1", "-y"]), @"
    --- stderr
    error: turn 1 of session `mine` is not recorded as yours; its plan does not run
    hint: `teddy switch --adopt mine` accepts the session
    exit code 1
    ");
    insta::assert_snapshot!(theirs().execute().refused(), @"
    error: the plan waiting in session `theirs` is not recorded as yours
    hint: look at it with `git show refs/teddy/drafts/theirs:plan.md`; `teddy switch --adopt theirs` accepts it
    exit code 1
    ");
    theirs().adopt("theirs").done();
    // What `execute` would parse instead of the plan that was shown.
    let reply = repo.teddy(&["-s", "theirs", "show", "draft", "reply.md"]);
    assert_ne!(reply.code, 0, "{reply}");
    theirs().execute().done();
    repo.done(&["verify", "--rerun", "1", "-s", "theirs"]);
}

/// Regression: the command said that another session is in use, and the next one used the old one.
#[test]
fn a_session_in_the_environment_that_stays_in_use_is_named() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.done(&["new", "one"]);
    let stays = "warning: TEDDY_SESSION=one is set, so commands here still use that session; `unset TEDDY_SESSION` lets them use";
    for (args, used) in [
        (&["new", "two"][..], "two"),
        (&["switch", "two"], "two"),
        (&["branch", "0", "three"], "three"),
    ] {
        let mut command = repo.teddy_command(args);
        command.current_dir(repo.path()).env("TEDDY_SESSION", "one");
        Output::of(&mut command).check(0, &[&format!("{stays} {used}\n")]);
    }
    let mut command = repo.teddy_command(&["switch", "one"]);
    command.current_dir(repo.path()).env("TEDDY_SESSION", "one");
    let out = Output::of(&mut command);
    out.check(0, &["Switched to session one."]);
    assert!(!out.stderr.contains("TEDDY_SESSION"), "{out}");
}

/// Bug: they named the old session, also after its command had put another one to use.
#[test]
fn hints_after_a_switch_name_no_session() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    for name in ["one", "two"] {
        repo.workflow().new_session(name).done();
        let path = format!("{name}.txt");
        repo.workflow()
            .run_plan(&plan(&format!("Make {name}"), &[create(&path, "x\n")]));
    }
    let printed = [
        repo.printed(&["-s", "one", "branch", "1", "more"]),
        repo.printed(&["-s", "two", "switch", "one"]),
        repo.printed(&["-s", "two", "new", "other"]),
    ];
    insta::assert_snapshot!(printed.concat(), @"
    refs/teddy/sessions/more
    --- stderr
    Session more is in use now.
    Your files do not match turn 1: they have turn 1 of two; `teddy restore @` takes them there.
    exit code 0
    --- stderr
    Switched to session one.
    Your files do not match turn 1: they have turn 1 of two; `teddy restore @` takes them there.
    exit code 0
    refs/teddy/sessions/other
    --- stderr
    Started session other with the agent assistant. Next: teddy plan '...'
    exit code 0
    ");
}

/// Bug: run literally, they worked on the session in use.
#[test]
fn hints_name_the_session_if_another_one_is_in_use() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    for name in ["one", "two"] {
        repo.workflow().new_session(name).done();
        let path = format!("{name}.txt");
        repo.workflow()
            .run_plan(&plan(&format!("Make {name}"), &[create(&path, "x\n")]));
    }
    repo.put(
        repo.beside("next.md"),
        plan("Next", &[create("n.txt", "x\n")]),
    );
    let printed = [
        repo.printed(&["-s", "one", "undo"]),
        repo.teddy(&["-s", "one", "plan", "--from", "../next.md"])
            .stderr,
        repo.printed(&["-s", "one", "status"]),
        repo.printed(&["-s", "one", "show", "9"]),
        repo.printed(&["-s", "two", "status"]),
    ];
    insta::assert_snapshot!(printed.concat(), @r#"
    delete one.txt
    delete two.txt
    --- stderr
    warning: your files no longer contain turn 1 of two; `teddy -s one pick two:1` applies only it, `teddy switch two` and `teddy restore @` restore all that was below as well
    Your files match turn 0: 2 files changed.
    exit code 0
    Planned turn 3: "Next". Next: `teddy -s one execute`
    Session one, turn 2, on branch main
    A plan is waiting for turn 3: Next (1 action)
    Your files are as the newest turn left them
    --- stderr
    Next: teddy -s one execute
    exit code 0
    --- stderr
    error: session `one` has no turn `9`; its turns are 0 to 2
    hint: `teddy -s one log` lists the turns
    exit code 1
    Session two, turn 1, on branch main
    Ready for turn 2
    Your files do not match turn 1: they lack turn 1 of one, turn 1 of two; `teddy restore @` takes them there.
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    "#);
}
