//! `bisect` and `compare`: try the results of turns in a scratch worktree.

use serde_json::{Value, json};

use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;

/// The fifth turn breaks something.
fn history() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "works\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    for number in 1..=8 {
        let action = match number {
            5 => edit("a.txt", "works", "broken"),
            _ => create(&format!("{number}.txt"), "x\n"),
        };
        repo.workflow()
            .run_plan(&plan(&format!("Step {number}"), &[action]));
    }
    repo
}

/// Captures what a trial must not change.
fn standing(repo: &TestRepo) -> [String; 3] {
    [
        repo.git(&["for-each-ref"]),
        repo.git(&["status", "--porcelain"]),
        repo.git(&["worktree", "list"]),
    ]
}

/// Bug: the turn after the edit was blamed.
#[test]
fn bisect_blames_no_turn_for_an_edit_before_it() {
    let repo = TestRepo::new().file("a.txt", "a\n").file("b.txt", "b\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let step = |number: u32| {
        let run = execute(&format!("echo {number} >> a.txt"));
        repo.run_plan(&plan(&format!("Step {number}"), &[run]));
    };
    step(1);
    repo.write("b.txt", "broken\n");
    step(2);
    step(3);
    let command = ["bisect", "run", "! grep -q broken b.txt"];
    let out = repo.done(&command);
    assert_eq!(
        out,
        "No turn: the files were changed before demo:2, and fail since\n  b.txt\n"
    );
    let found = repo.json(&command, 0);
    assert_eq!(found["culprits"], json!([]));
    assert_eq!(found["edits"], json!({ "before": 2, "files": ["b.txt"] }));
}

#[test]
fn bisect_names_the_turn_that_broke_it() {
    let repo = history();
    let before = standing(&repo);
    let out = repo.teddy(&["bisect", "run", "grep -q works a.txt"]);
    assert_eq!(out.code, 0, "{out}");
    assert_eq!(
        out.stdout,
        "demo:5 is the first bad turn\n  Step 5 (no model)\n  a.txt\n"
    );
    assert_eq!(standing(&repo), before);
    assert!(!repo.path().join(".git/teddy/worktrees/_trial").exists());

    // What follows the options of `bisect run` is the command, with its own options.
    let command = ["grep", "-q", "works", "a.txt"];
    let found = repo.json(&[&["bisect", "run"][..], &command].concat(), 0);
    assert_eq!(
        repo.json(&[&["bisect", "run", "--"][..], &command].concat(), 0)["culprits"],
        found["culprits"]
    );
    let runs = found["runs"].as_array().unwrap();
    assert!(runs.len() <= 2 + 3, "both ends and the halvings: {found}");
    assert_eq!(found["culprits"][0]["turn"], 5);
    assert_eq!(found["culprits"][0]["files"], json!(["a.txt"]));
    let codes: Vec<_> = runs.iter().map(|run| &run["verdict"]).collect();
    assert_eq!(codes[..2], [&json!("bad"), &json!("good")]);
}

#[test]
fn bisect_says_what_is_wrong_with_its_ends() {
    let repo = history();
    insta::assert_snapshot!(repo.printed(&["bisect", "run", "true"]), @"
    --- stderr
    ▶ 1. EXECUTE true
      ✓ the command succeeded
    turn 8, Step 8: good
    error: the command succeeds after turn 8: there is nothing to find
    hint: `--bad <turn>` names a turn after which it fails
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["bisect", "run", "false"]), @"
    --- stderr
    ▶ 1. EXECUTE false
      ✗ the command failed with exit code 1
    turn 8, Step 8: bad (exit code 1)
    ▶ 1. EXECUTE false
      ✗ the command failed with exit code 1
    before the first turn: bad (exit code 1)
    error: the command fails before the first turn already
    hint: `--good <turn>` names a turn after which it succeeds
    exit code 1
    ");
    let shown = repo.printed(&["bisect", "run", "--good", "7", "--bad", "3", "true"]);
    insta::assert_snapshot!(shown, @"
    --- stderr
    error: turn 7 is not before turn 3: name an older turn as good
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["bisect", "run", "exit 200"]), @"
    --- stderr
    ▶ 1. EXECUTE exit 200
      ✗ the command failed with exit code 200
    error: the command ended with exit code 200 after turn 8, which stops the search: no output
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["bisect", "run", "--bad", "99", "true"]), @"
    --- stderr
    error: session `demo` has no turn `99`; its turns are 0 to 8
    hint: `teddy log` lists the turns
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["bisect", "run"]), @"
    --- stderr
    error: the following required arguments were not provided:
      <COMMAND>...

    Usage: teddy bisect run <COMMAND>...

    hint: `teddy bisect run --help` shows its arguments, with examples
    exit code 2
    ");
}

#[test]
fn bisect_searches_the_session_whose_turns_are_named() {
    let repo = history();
    repo.workflow().branch("2", "other").done();
    repo.workflow()
        .run_plan(&plan("Other 3", &[create("other.txt", "x\n")]));
    let run = |ends: &[&str], script: &str, code: i32| {
        repo.json(&[&["bisect", "run"], ends, &[script]].concat(), code)
    };
    let found = run(
        &["--good", "demo:3", "--bad", "demo:6"],
        "grep -q works a.txt",
        0,
    );
    assert_eq!(
        (&found["session"], &found["culprits"][0]["turn"]),
        (&json!("demo"), &json!(5))
    );
    let found = run(&["--good", "demo:3"], "test ! -e 7.txt", 0);
    assert_eq!(
        (&found["session"], &found["culprits"][0]["turn"]),
        (&json!("demo"), &json!(7))
    );
    // The two sessions share the turns before the branch.
    let found = run(
        &["--good", "demo:1", "--bad", "3"],
        "test ! -e other.txt",
        0,
    );
    assert_eq!(
        (&found["session"], &found["culprits"][0]["turn"]),
        (&json!("other"), &json!(3))
    );
    let ends = ["--good", "demo:3", "--bad", "other:3"];
    let error = run(&ends, "test ! -e other.txt", 1);
    assert_eq!(
        error["error"]["message"],
        "`demo:3` is not a turn of session `other`"
    );
}

#[test]
fn bisect_names_all_turns_that_it_cannot_distinguish() {
    let repo = history();
    let script = "test -e 6.txt -a ! -e 7.txt && exit 125; test -e 4.txt -a ! -e 6.txt && exit 125; grep -q works a.txt";
    let found = repo.json(&["bisect", "run", script], 1);
    let culprits = found["culprits"].as_array().unwrap().iter();
    let turns: Vec<_> = culprits.map(|one| one["turn"].as_u64().unwrap()).collect();
    assert_eq!(turns, [4, 5, 6, 7]);
    insta::assert_snapshot!(repo.printed(&["bisect", "run", script]), @"
    The first bad turn is one of these; some turns between them could not be tested:
      demo:4 Step 4
      demo:5 Step 5
      demo:6 Step 6
      demo:7 Step 7
    --- stderr
    ▶ 1. EXECUTE test -e 6.txt -a ! -e 7.txt && exit 125; test -e 4.txt -a ! -e 6.txt && exit 125; grep -q works a.txt
      ✗ the command failed with exit code 1
    turn 8, Step 8: bad (exit code 1)
    ▶ 1. EXECUTE test -e 6.txt -a ! -e 7.txt && exit 125; test -e 4.txt -a ! -e 6.txt && exit 125; grep -q works a.txt
      ✓ the command succeeded
    before the first turn: good
    ▶ 1. EXECUTE test -e 6.txt -a ! -e 7.txt && exit 125; test -e 4.txt -a ! -e 6.txt && exit 125; grep -q works a.txt
      ✗ the command failed with exit code 125
    turn 4, Step 4: skipped (exit code 125)
    ▶ 1. EXECUTE test -e 6.txt -a ! -e 7.txt && exit 125; test -e 4.txt -a ! -e 6.txt && exit 125; grep -q works a.txt
      ✓ the command succeeded
    turn 3, Step 3: good
    ▶ 1. EXECUTE test -e 6.txt -a ! -e 7.txt && exit 125; test -e 4.txt -a ! -e 6.txt && exit 125; grep -q works a.txt
      ✗ the command failed with exit code 125
    turn 5, Step 5: skipped (exit code 125)
    ▶ 1. EXECUTE test -e 6.txt -a ! -e 7.txt && exit 125; test -e 4.txt -a ! -e 6.txt && exit 125; grep -q works a.txt
      ✗ the command failed with exit code 125
    turn 6, Step 6: skipped (exit code 125)
    ▶ 1. EXECUTE test -e 6.txt -a ! -e 7.txt && exit 125; test -e 4.txt -a ! -e 6.txt && exit 125; grep -q works a.txt
      ✗ the command failed with exit code 1
    turn 7, Step 7: bad (exit code 1)
    exit code 1
    ");
}

#[test]
fn a_state_on_which_the_command_cannot_be_run_stops_the_search() {
    let repo = history();
    let scripts = [
        "echo x: not found; exit 127",
        "echo x: Permission denied; exit 126",
        "test -e 7.txt && exit 1; echo x: not found; exit 127",
        "test -e 7.txt && exit 1; test -e 1.txt || exit 0; exit 126",
    ];
    let printed = scripts.map(|script| repo.printed(&["--quiet", "bisect", "run", script]));
    insta::assert_snapshot!(printed.join("\n"), @"
    --- stderr
      ✗ the command failed with exit code 127
    error: the command cannot be run after turn 8 (exit code 127), so it says nothing about the files: x: not found
    exit code 1

    --- stderr
      ✗ the command failed with exit code 126
    error: the command cannot be run after turn 8 (exit code 126), so it says nothing about the files: x: Permission denied
    exit code 1

    --- stderr
      ✗ the command failed with exit code 1
      ✗ the command failed with exit code 127
    error: the command cannot be run before the first turn (exit code 127), so it says nothing about the files: x: not found
    exit code 1

    --- stderr
      ✗ the command failed with exit code 1
      ✗ the command failed with exit code 126
    error: the command cannot be run after turn 4 (exit code 126), so it says nothing about the files: no output
    exit code 1
    ");
    let printed = ["exit 127", "exit 126"].map(|command| {
        repo.printed(&["--quiet", "compare", "demo:4", "demo:5", "--check", command])
    });
    insta::assert_snapshot!(printed.join("\n"), @"
             demo:4                  demo:5
    status   executed                executed
    model    -                       -
    turns    1                       1
    files    1                       1
    lines    +1 -0                   +1 -1
    tokens   -                       -
    cost     -                       -
    time [time] [time]
    check    cannot test (exit 127)  cannot test (exit 127)
    --- stderr
      ✗ the command failed with exit code 127
      ✗ the command failed with exit code 127
    exit code 0

             demo:4                  demo:5
    status   executed                executed
    model    -                       -
    turns    1                       1
    files    1                       1
    lines    +1 -0                   +1 -1
    tokens   -                       -
    cost     -                       -
    time [time] [time]
    check    cannot test (exit 126)  cannot test (exit 126)
    --- stderr
      ✗ the command failed with exit code 126
      ✗ the command failed with exit code 126
    exit code 0
    ");
}

#[test]
fn git_bisects_the_code_of_a_session_too() {
    let repo = history();
    let tip = repo.git(&["rev-parse", "teddy/sessions/demo^2"]);
    let folder = repo.beside("scratch").display().to_string();
    repo.git(&["worktree", "add", "-q", "--detach", &folder, &tip]);
    let folder = repo.beside("scratch");
    repo.git_in(&folder, &["bisect", "start", &tip, "main"]);
    repo.git_in(&folder, &["bisect", "run", "grep", "-q", "works", "a.txt"]);
    let found = repo.git_in(&folder, &["log", "-1", "--format=%s", "refs/bisect/bad"]);
    assert_eq!(found, "Step 5");
}

#[test]
fn compare_puts_turns_and_sessions_side_by_side() {
    let repo = history();
    repo.workflow().branch("4", "other").done();
    repo.workflow().restore("4").done();
    repo.workflow()
        .run_plan(&plan("Another", &[create("other.txt", "1\n2\n")]));
    let sides = repo.json(
        &["compare", "demo", "other", "--check", "grep -q works a.txt"],
        0,
    );
    let told: Vec<_> = sides
        .as_array()
        .unwrap()
        .iter()
        .map(|side| {
            let exit = &side["check"]["exit_code"];
            json!([
                side["name"],
                side["turns"],
                side["files"],
                side["added"],
                side["removed"],
                exit
            ])
        })
        .collect();
    assert_eq!(
        told,
        [
            json!(["demo", 4, 4, 4, 1, 1]),
            // The restore is also a turn. It restored what the branch did not have.
            json!(["other", 2, 1, 2, 0, 0])
        ]
    );
    insta::assert_snapshot!(repo.printed(&["compare", "demo:5", "other:6", "--diff"]), @"
             demo:5    other:6
    status   executed  executed
    model    -         -
    turns    1         1
    files    1         1
    lines    +1 -1     +2 -0
    tokens   -         -
    cost     -         -
    time [time] [time]
    --- a/a.txt
    +++ b/a.txt
    @@ -1 +1 @@
    -broken
    +works
    --- /dev/null
    +++ b/other.txt
    @@ -0,0 +1,2 @@
    +1
    +2
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["compare", "demo:0", "demo:1"]), @"
    --- stderr
    error: `demo:0` has no files: no plan has run in it
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["compare", "demo", "othr"]), @"
    --- stderr
    error: there is no session `othr`
    hint: did you mean `other`? `teddy sessions` lists the sessions
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["compare", "1", "99"]), @"
    --- stderr
    error: session `other` has no turn `99`; its turns are 0 to 6
    hint: `teddy log` lists the turns
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["compare", "demo"]), @"
    --- stderr
    error: 2 values required by '<TURN|SESSION> <TURN|SESSION>...'; only 1 was provided

    Usage: teddy compare [OPTIONS] <TURN|SESSION> <TURN|SESSION>...

    hint: `teddy compare --help` shows its arguments, with examples
    exit code 2
    ");
}

#[test]
fn a_continued_session_shares_all_its_turns() {
    let repo = history();
    repo.workflow().branch("@", "longer").done();
    repo.workflow()
        .run_plan(&plan("More", &[create("more.txt", "1\n")]));
    let sides = repo.json(&["compare", "demo", "longer"], 0);
    let told = |side: &Value| json!([side["turns"], side["files"], side["added"]]);
    assert_eq!(
        [told(&sides[0]), told(&sides[1])],
        [json!([0, 0, 0]), json!([1, 1, 1])]
    );
    let same = repo.json(&["compare", "demo", "demo"], 0);
    assert_ne!(same[0]["turns"], 0);
}

#[test]
fn a_trial_is_confined_and_keeps_nothing() {
    let repo = history();
    let target = repo.path().join("a.txt");
    let script = format!(
        "echo lost > '{}'; echo new > made.txt; exit 0",
        target.display()
    );
    let sides = repo.json(&["compare", "1", "2", "--check", &script], 0);
    assert_eq!(sides[0]["check"]["exit_code"], 0);
    if teddy::host::sandbox::availability() == teddy::host::sandbox::Availability::Full {
        assert_eq!(repo.read("a.txt"), "broken\n");
    }
    assert!(!repo.path().join("made.txt").exists());
    let run = plan("Run", &[execute("ls")]);
    repo.run_plan(&run);
}

#[test]
fn compare_counts_what_a_restore_changed_as_log_does() {
    let repo = history();
    repo.workflow().new_session("other").done();
    repo.workflow()
        .run_plan(&plan("Make new", &[create("new.txt", "1\n2\n")]));
    repo.workflow().switch("demo").done();
    repo.workflow()
        .run_plan(&plan("Step 9", &[create("9.txt", "x\n")]));
    repo.workflow().switch("other").done();
    // Takes the turn of the other session out.
    repo.workflow().restore("1").done();
    assert_eq!(repo.workflow().log()[0]["files"], json!(["9.txt"]));
    let sides = repo.json(&["compare", "@", "1"], 0);
    let lines = [&sides[0]["added"], &sides[0]["removed"]];
    assert_eq!(
        (&sides[0]["files"], lines),
        (&json!(1), [&json!(0), &json!(1)])
    );
}
