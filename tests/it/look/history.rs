//! `log`, `show`, `diff`, `status` and `export`.

use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;

fn two_turns() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\ntwo\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "two", "2")]));
    repo.reply(&plan("Make b", &[create("b.txt", "b\n")]));
    repo.workflow().plan("make b").done();
    repo.workflow().execute().done();
    repo
}

#[test]
fn log_lists_the_turns_newest_first() {
    let repo = two_turns();
    let rows = repo.workflow().log();
    let keys = [
        "number",
        "turn_id",
        "commit",
        "status",
        "title",
        "agent",
        "model",
        "tokens_in",
        "tokens_out",
        "cost",
        "before",
        "after",
        "files",
    ];
    for key in keys {
        assert!(rows[0].get(key).is_some(), "no `{key}` in {rows}");
    }
    let shown: Vec<String> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            format!(
                "{} {} {} {}",
                row["number"], row["status"], row["title"], row["files"]
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            r#"2 "executed" "Make b" ["b.txt"]"#,
            r#"1 "executed" "Change a" ["a.txt"]"#,
            r#"0 "started" "Start session demo" []"#
        ]
    );
    assert_eq!(
        rows[0]["commit"].as_str().unwrap(),
        repo.git(&["rev-parse", "teddy/sessions/demo"])
    );
    let project = repo.workflow().open().unwrap();
    assert_eq!(teddy::query::log::log(&project, 1).unwrap().len(), 1);
}

#[test]
fn git_log_tells_the_same_story() {
    let repo = two_turns();
    let log = repo.git(&[
        "log",
        "--first-parent",
        "--format=%s|%(trailers:key=Teddy-Turn,valueonly,separator=)|%(trailers:key=Teddy-Session,valueonly,separator=)",
        "teddy/sessions/demo",
    ]);
    assert_eq!(
        log,
        "Make b|2|demo\nChange a|1|demo\nStart session demo|0|demo"
    );
    assert_eq!(
        repo.git(&[
            "show",
            "--format=%s",
            "--name-status",
            "teddy/sessions/demo~^2"
        ]),
        "Change a\n\nM\ta.txt"
    );
    assert_eq!(
        repo.git(&[
            "diff",
            "--stat",
            "teddy/sessions/demo~^2",
            "teddy/sessions/demo^2"
        ])
        .lines()
        .last()
        .unwrap()
        .trim(),
        "1 file changed, 1 insertion(+)"
    );
}

#[test]
fn show_prints_the_report_of_a_turn() {
    let repo = two_turns();
    insta::assert_snapshot!(repo.printed(&["show"]), @"
    turn demo:2 [id]
    Title:   Make b
    Status:  executed
    Agent:   assistant
    Model:   replay:[dir]/answers
    Date:    Fri Jan 2 03:04:05 2026 +0000
    Request: make b

    # Execution Report: Make b
    - **Overall Status:** Completed 🟢
    - **Approved By:** the user beforehand, with `-y`
    - **Original Plan:** [.teddy/demo/02/plan.md](/.teddy/demo/02/plan.md)
    - **Start Time:** 2026-01-02T03:04:05Z
    - **End Time:** 2026-01-02T03:04:05Z
    - **Actions:** 1 Total / 1 Approved / 0 Skipped
    - **Outcomes:** 1 Succeeded / 0 Failed

    ## User Prompt
    ````text
    make b
    ````

    ## 1. Rationale
    ````text
    Make b, because it is wanted.
    ````

    ## 2. Execution Summary

    ### Applied State Changes
    *(No state changes were proposed in the plan.)*

    ### Action Log

    #### `CREATE`
    - **Status:** Approved ✅
    - **Execution:** Success 🟢
    - **Duration:** [n]
    - **Outcome:** created, 1 line
    - **File Path:** [b.txt](/b.txt)
    - **Description:** Make b.txt.

    Change of the file:
    ````diff
    --- /dev/null
    +++ b/b.txt
    @@ -0,0 +1 @@
    +b
    ````

    --- /dev/null
    +++ b/b.txt
    @@ -0,0 +1 @@
    +b
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["show", "1"]), @"
    turn demo:1 [id]
    Title:   Change a
    Status:  executed
    Agent:   assistant
    Date:    Fri Jan 2 03:04:05 2026 +0000

    # Execution Report: Change a
    - **Overall Status:** Completed 🟢
    - **Approved By:** the user beforehand, with `-y`
    - **Original Plan:** [.teddy/demo/01/plan.md](/.teddy/demo/01/plan.md)
    - **Start Time:** 2026-01-02T03:04:05Z
    - **End Time:** 2026-01-02T03:04:05Z
    - **Actions:** 1 Total / 1 Approved / 0 Skipped
    - **Outcomes:** 1 Succeeded / 0 Failed

    ## 1. Rationale
    ````text
    Change a, because it is wanted.
    ````

    ## 2. Execution Summary

    ### Applied State Changes
    *(No state changes were proposed in the plan.)*

    ### Action Log

    #### `EDIT`
    - **Status:** Approved ✅
    - **Execution:** Success 🟢
    - **Duration:** [n]
    - **Outcome:** changed 1 place: 1 line added, 1 removed
    - **File Path:** [a.txt](/a.txt)
    - **Description:** Change a.txt.
    - **Match 1:** line 2, whole lines

    Change of the file:
    ````diff
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    ````

    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    exit code 0
    ");
}

#[test]
fn show_prints_any_file_of_a_turn() {
    let repo = two_turns();
    assert_eq!(repo.done(&["show", "user_prompt.txt"]), "make b");
    assert_eq!(
        repo.done(&["show", "2", "plan.md"]),
        repo.git(&["show", "teddy/sessions/demo:plan.md"]) + "\n"
    );
    insta::assert_snapshot!(repo.printed(&["show", "2", "nothing.md"]), @"
    --- stderr
    error: turn 2 has no `nothing.md`; it has input.md, meta.yaml, next/meta.yaml, next/requests.yaml, next/system_prompt.xml, next/turn.context, plan.md, report.md, requests.yaml, session.context, system_prompt.xml, turn.context, user_prompt.txt
    exit code 1
    ");
    let names = repo.json(&["show", "2"], 0)["artifacts"].to_string();
    insta::assert_snapshot!(names, @r#"["input.md","meta.yaml","next/meta.yaml","next/requests.yaml","next/system_prompt.xml","next/turn.context","plan.md","report.md","requests.yaml","session.context","system_prompt.xml","turn.context","user_prompt.txt"]"#);
}

/// Regression: `HEAD` named no turn.
#[test]
fn show_of_a_landing_commit_shows_the_turns_in_it() {
    let repo = two_turns();
    repo.done(&["land", "1", "--no-edit"]);
    assert_eq!(repo.done(&["show", "HEAD"]), repo.done(&["show", "1"]));
    repo.git(&["reset", "--soft", "HEAD~1"]);
    repo.done(&["land", "1..2", "--no-edit"]);
    let turns = ["1", "2"].map(|turn| repo.done(&["show", turn]));
    assert_eq!(repo.done(&["show", "HEAD"]), turns.join("\n"));
    let rows = repo.json(&["show", "HEAD"], 0);
    assert_eq!(
        (&rows[0]["number"], &rows[1]["number"]),
        (&1.into(), &2.into())
    );
    insta::assert_snapshot!(repo.printed(&["show", "HEAD", "plan.md"]), @"
    --- stderr
    error: the commit has turns 1-2 of `demo`
    hint: `teddy show demo:1 plan.md` names one of them
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["show", "HEAD~1", "--no-patch"]), @"
    --- stderr
    error: `HEAD~1` names no turn: commit [id] is not a turn of a session
    exit code 1
    ");
}

#[test]
fn diff_shows_a_turn_or_what_is_between_two() {
    let repo = two_turns();
    insta::assert_snapshot!(repo.printed(&["diff"]), @"
    --- /dev/null
    +++ b/b.txt
    @@ -0,0 +1 @@
    +b
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["diff", "1"]), @"
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["diff", "2", "1"]), @"
    --- a/b.txt
    +++ /dev/null
    @@ -1 +0,0 @@
    -b
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["diff", "0"]), @"
    --- stderr
    error: turn 0 changed no code: it is the session's start
    exit code 1
    ");
    assert_eq!(
        repo.json(&["diff"], 0),
        serde_json::json!([{ "path": "b.txt", "change": "added" }])
    );
}

#[test]
fn a_change_of_the_mode_is_shown_as_one() {
    let repo = TestRepo::new().file("a.sh", "a\n").file("b.sh", "b\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.run_plan(&plan(
        "Run",
        &[execute("chmod +x a.sh b.sh; echo c >> b.sh")],
    ));
    let expected = "\
--- a/a.sh
+++ b/a.sh
(file became executable)
--- a/b.sh
+++ b/b.sh
(file became executable)
@@ -1 +1,2 @@
 b
+c
";
    assert_eq!(repo.done(&["diff"]), expected);
    let browsed = repo.teddy_reads(&["browse", "--linear"], "1\ndiff\n");
    assert!(
        browsed.stdout.contains("(file became executable)\n"),
        "{browsed}"
    );
    assert!(!browsed.stdout.contains("no difference"), "{browsed}");
}

#[test]
fn a_new_link_and_a_new_program_are_named_as_such() {
    let repo = TestRepo::new().file("a", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let command = "echo b > b; chmod +x b; ln -s a c; echo d > d";
    repo.run_plan(&plan("New", &[execute(command)]));
    let expected = "\
--- /dev/null
+++ b/b
(executable)
@@ -0,0 +1 @@
+b
--- /dev/null
+++ b/c
(link)
@@ -0,0 +1 @@
+a
\\ No newline at end of file
--- /dev/null
+++ b/d
@@ -0,0 +1 @@
+d
";
    assert_eq!(repo.done(&["diff"]), expected);
}

#[test]
fn bytes_that_are_no_text_are_told_apart() {
    let repo = TestRepo::new().file("a.txt", b"caf\xe9\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.write("a.txt", b"caf\xe8\n");
    repo.workflow().record("Change").done();
    let browsed = repo.teddy_reads(&["browse", "--linear"], "1\ndiff\n");
    let lines = "-caf\\xe9\n+caf\\xe8\n";
    assert!(browsed.stdout.contains(lines), "{browsed}");
}

#[test]
fn the_table_has_repositories_within_whatever_git_is_told() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.write("sub/x.txt", "x\n");
    let inside = repo.path().join("sub");
    repo.git_in(&inside, &["init", "-q"]);
    repo.git_in(&inside, &["add", "."]);
    repo.git_in(&inside, &["commit", "-qm", "one"]);
    repo.git(&["config", "diff.ignoreSubmodules", "all"]);
    repo.write("a.txt", "b\n");
    repo.workflow().record("Change").done();
    let table = repo.done(&["diff", "--stat"]);
    assert!(table.contains(" sub   | 1 +\n"), "{table}");
}

#[test]
fn status_says_what_waits_and_what_the_user_changed() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    assert_eq!(repo.workflow().status()["state"], "none");
    repo.workflow().new_session("demo").done();
    let status = repo.workflow().status();
    for key in [
        "session",
        "ref",
        "tip",
        "turn",
        "state",
        "draft",
        "workspace",
    ] {
        assert!(status.get(key).is_some(), "no `{key}` in {status}");
    }
    assert_eq!(
        (
            &status["state"],
            &status["turn"],
            &status["workspace"]["changed"]
        ),
        (&"ready".into(), &0.into(), &serde_json::json!([]))
    );
    repo.write("a.txt", "mine\n");
    assert_eq!(
        repo.workflow().status()["workspace"]["changed"],
        serde_json::json!(["a.txt"])
    );
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session demo, turn 0, on branch main
    Ready for turn 1
    1 file changed since HEAD:
      a.txt
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
}

#[test]
fn promise_d7_status_names_what_no_snapshot_has() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.configure("snapshot: { max_file_size: 10 }\n");
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session demo, turn 0, on branch main
    Ready for turn 1
    No file changed since HEAD
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
    repo.write("big.csv", "12345678901");
    repo.write(".env", "A=1\n");
    let status = repo.done(&["status"]);
    let expected = "No file changed since HEAD\nIn no snapshot, left as they are:\n  \
                    .env: untracked and named like a secret\n  big.csv: untracked and large (11 bytes)\n";
    assert!(status.ends_with(expected), "{status}");
    assert_eq!(
        repo.workflow().status()["workspace"]["not_captured"],
        serde_json::json!([
            { "path": ".env", "reason": "untracked and named like a secret" },
            { "path": "big.csv", "reason": "untracked and large (11 bytes)" },
        ])
    );
    // Bug: an excluded file was said to be named like a secret.
    repo.configure("snapshot: { exclude: [\"*.csv\"] }\n");
    assert_eq!(
        repo.workflow().status()["workspace"]["not_captured"][1],
        serde_json::json!({ "path": "big.csv", "reason": "untracked and named by `snapshot.exclude`" })
    );
    repo.configure("snapshot: { max_file_size: 10 }\n");
    (0..20).for_each(|n| repo.write(&format!("big{n}.csv"), "12345678901"));
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session demo, turn 0, on branch main
    Ready for turn 1
    No file changed since HEAD
    In no snapshot, left as they are:
      .env: untracked and named like a secret
      big.csv: untracked and large (11 bytes)
      big0.csv: untracked and large (11 bytes)
      big1.csv: untracked and large (11 bytes)
      big10.csv: untracked and large (11 bytes)
      big11.csv: untracked and large (11 bytes)
      big12.csv: untracked and large (11 bytes)
      big13.csv: untracked and large (11 bytes)
      big14.csv: untracked and large (11 bytes)
      big15.csv: untracked and large (11 bytes)
      ... and 12 more; `--json` lists them all
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
    // Snapshots always contain tracked files and never ignored ones, so `status` mentions neither.
    repo.git(&["add", "-f", "."]);
    repo.write(".gitignore", "x.csv");
    repo.write("x.csv", "12345678901");
    let status = repo.done(&["status"]);
    insta::assert_snapshot!(repo.plain(&status), @"
    Session demo, turn 0, on branch main
    Ready for turn 1
    23 files changed since HEAD:
      .env
      .gitignore
      big.csv
      big0.csv
      big1.csv
      big10.csv
      big11.csv
      big12.csv
      big13.csv
      big14.csv
      big15.csv
      big16.csv
      big17.csv
      big18.csv
      big19.csv
      big2.csv
      big3.csv
      big4.csv
      big5.csv
      big6.csv
      big7.csv
      big8.csv
      big9.csv
    ");
}

#[test]
fn a_file_of_a_turn_is_no_json() {
    let repo = two_turns();
    for args in [
        &["show", "1", "plan.md", "--json"][..],
        &["show", "none.md", "--json"],
    ] {
        assert_eq!(repo.json(args, 2)["error"]["kind"], "Usage");
    }
}

#[test]
fn export_writes_a_folder_for_each_turn() {
    let repo = two_turns();
    let target = repo.beside("out");
    repo.done(&["export", target.to_str().unwrap()]);
    let names = |folder: &str| {
        let mut names: Vec<String> = std::fs::read_dir(target.join(folder))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(names(""), "00 01 02");
    assert_eq!(
        names("02"),
        "input.md meta.yaml next plan.md report.md requests.yaml session.context system_prompt.xml turn.context user_prompt.txt"
    );
    assert_eq!(
        std::fs::read_to_string(target.join("02/user_prompt.txt")).unwrap(),
        "make b"
    );
    insta::assert_snapshot!(repo.printed(&["export", target.to_str().unwrap()]), @"
    --- stderr
    error: cannot write `[dir]/out`: it is not empty
    hint: name another directory
    exit code 1
    ");
}

#[test]
fn export_takes_no_session_for_a_directory() {
    let repo = two_turns();
    repo.workflow().new_session("other").done();
    insta::assert_snapshot!(repo.printed(&["export", "demo"]), @"
    --- stderr
    error: `demo` is a session, and its turns need a directory
    hint: `teddy -s demo export` exports it; `teddy export ./demo` makes a directory for session `other`
    exit code 2
    ");
    assert!(!repo.path().join("demo").exists());
    assert_eq!(repo.done(&["-s", "demo", "export", "demo"]), "demo\n");
    assert!(repo.path().join("demo/02").exists());
    insta::assert_snapshot!(repo.printed(&["export", "a", "b"]), @"
    --- stderr
    error: the turns of a session are written to one directory
    hint: `--bundle <file>` and `--html <directory>` take several sessions
    exit code 2
    ");
}

#[test]
fn looking_writes_nothing() {
    let repo = two_turns();
    let before = (repo.users(), repo.git(&["for-each-ref"]));
    for args in [
        &["log"][..],
        &["show"],
        &["diff"],
        &["status"],
        &["sessions"],
        &["context", "list"],
    ] {
        repo.done(args);
    }
    assert_eq!((repo.users(), repo.git(&["for-each-ref"])), before);
}

#[test]
fn show_has_what_the_turn_was_its_report_and_what_it_changed() {
    let repo = two_turns();
    let shown = repo.done(&["show"]);
    let id = repo.git(&["rev-parse", "teddy/sessions/demo"]);
    assert!(shown.starts_with(&format!("turn demo:2 {id}\n")), "{shown}");
    assert!(
        shown.ends_with("+++ b/b.txt\n@@ -0,0 +1 @@\n+b\n"),
        "{shown}"
    );
    let bare = repo.done(&["show", "--no-patch"]);
    assert!(
        shown.starts_with(&bare) && shown.len() > bare.len(),
        "{bare}"
    );
    let stat = repo.done(&["show", "--stat"]);
    assert!(
        stat.ends_with("\n b.txt | 1 +\n 1 file changed, 1 insertion(+)\n"),
        "{stat}"
    );
    assert!(repo.done(&["show", "--name-only"]).ends_with("\n\nb.txt\n"));
    assert!(repo.done(&["show", "0"]).starts_with("turn demo:0 "));
    insta::assert_snapshot!(repo.printed(&["show", "2", "plan.md", "--stat"]), @"
    --- stderr
    error: the argument '[ARTIFACT]' cannot be used with '--stat'

    Usage: teddy show <TURN> <ARTIFACT>

    hint: `teddy show --help` shows its arguments, with examples
    exit code 2
    ");
}

#[test]
fn diff_goes_from_the_start_of_a_session_to_now() {
    let repo = two_turns();
    let whole = repo.done(&["diff", "0", "@"]);
    let names = |args: &[&str]| repo.done(&[&["diff"], args].concat());
    insta::assert_snapshot!(repo.plain(&whole), @"
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    --- /dev/null
    +++ b/b.txt
    @@ -0,0 +1 @@
    +b
    ");
    assert_eq!(names(&["--session"]), whole);
    assert_eq!(names(&["--whole"]), whole);
    assert_eq!(names(&["0", "1"]), names(&["1"]));
    assert_eq!(names(&["--session", "--name-only"]), "a.txt\nb.txt\n");
    assert_eq!(
        names(&["--session", "--name-only", "--", "b.txt"]),
        "b.txt\n"
    );
    assert_eq!(names(&["--session", "demo", "--name-only"]), "b.txt\n");
    assert_eq!(
        names(&["--session", "--stat", "--", "b.txt"]),
        " b.txt | 1 +\n 1 file changed, 1 insertion(+)\n"
    );
    assert_eq!(names(&["--session", "--", "none"]), "");
    insta::assert_snapshot!(repo.printed(&["diff", "1", "--whole"]), @"
    --- stderr
    error: the argument '[TURN]' cannot be used with '--whole'

    Usage: teddy diff <TURN> [OTHER] [-- <PATH>...]

    hint: `teddy diff --help` shows its arguments, with examples
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["--color", "always", "diff", "--stat"]), @"
     b.txt | 1 [32m+[0m
     1 file changed, 1 insertion(+)
    exit code 0
    ");
}

#[test]
fn status_names_the_branch_in_colour() {
    let repo = two_turns();
    let branch = repo.git(&["symbolic-ref", "--short", "HEAD"]);
    let first = format!("Session demo, turn 2, on branch {branch}\n");
    assert!(repo.done(&["status"]).starts_with(&first));
    insta::assert_snapshot!(repo.printed(&["--color", "always", "status"]), @"
    Session [1mdemo[0m, turn 2, on branch [36mmain[0m
    Ready for turn 3
    Your files are as the newest turn left them
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
    repo.git(&["checkout", "-q", "--detach"]);
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    Session demo, turn 2, on no branch
    Ready for turn 3
    You were on `main` at turn 2, you are on no branch now.
    Your files are as the newest turn left them
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
}
