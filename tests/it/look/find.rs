//! `find`: searches the recorded turns, newest first.

use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;

/// The second session branches off the first.
fn two_sessions() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\ntwo\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "two", "needle here")]));
    repo.reply(&plan(
        "Print it",
        &[
            create("src/b.rs", "fn needle() {}\n"),
            execute("printf 'x\\nneedle printed\\n'"),
        ],
    ));
    repo.done(&["plan", "-m", "print the needle"]);
    repo.done(&["execute", "-y"]);
    repo.workflow().branch("1", "other").done();
    repo.workflow()
        .run_plan(&plan("Another way", &[create("c.txt", "a Needle\n")]));
    repo
}

fn found(repo: &TestRepo, args: &[&str]) -> Vec<String> {
    let out = repo.done(&[&["find"], args].concat());
    out.lines().map(str::to_owned).collect()
}

#[test]
fn each_part_is_searched_and_each_turn_is_named_once() {
    let repo = two_sessions();
    assert_eq!(
        found(&repo, &["needle", "--in", "request"]),
        ["demo:2:user_prompt.txt:1: print the needle"]
    );
    assert_eq!(
        found(&repo, &["needle", "--in", "code"]),
        [
            "demo:2:src/b.rs:1: fn needle() {}",
            "demo:1:a.txt:2: needle here"
        ]
    );
    assert_eq!(
        found(&repo, &["-i", "needle", "--path", "*.txt"]),
        ["other:2:c.txt:1: a Needle", "demo:1:a.txt:2: needle here"]
    );
    assert_eq!(
        found(&repo, &["^needle printed$", "--in", "output"]),
        ["demo:2:output/02.txt:2: needle printed"]
    );
    assert_eq!(
        found(&repo, &["NEEDLE()", "-F", "-i", "--in", "code", "-n", "1"]),
        ["demo:2:src/b.rs:1: fn needle() {}"]
    );
    let all = found(&repo, &["needle"]);
    for part in ["user_prompt.txt", "plan.md", "output/02.txt"] {
        let line = format!("demo:2:{part}:");
        assert!(all.iter().any(|found| found.starts_with(&line)), "{all:#?}");
    }
    assert!(
        !all.iter().any(|found| found.contains(":input.md:")),
        "{all:#?}"
    );
}

#[test]
fn the_header_of_a_report_is_no_match() {
    let repo = two_sessions();
    // Each report names the session and repeats the title.
    assert!(
        !repo
            .teddy(&["find", "\\.teddy/"])
            .stdout
            .contains("report.md")
    );
    assert_eq!(
        found(&repo, &["# .*Print it"]),
        ["demo:2:plan.md:1: # Print it"]
    );
}

#[test]
fn a_match_is_json_and_one_session_can_be_searched() {
    let repo = two_sessions();
    let found = repo.json(&["find", "Needle", "--in", "code", "-s", "other"], 0);
    assert_eq!(
        found,
        serde_json::json!([{
            "session": "other",
            "turn": 2,
            "commit": repo.git(&["rev-parse", "teddy/sessions/other"]),
            "part": "code",
            "file": "c.txt",
            "line": 1,
            "text": "a Needle",
        }])
    );
    let shown = repo.printed(&["find", "Needle", "--in", "code", "-s", "gone"]);
    insta::assert_snapshot!(shown, @"
    --- stderr
    error: there is no session `gone`
    hint: `teddy sessions` lists the sessions
    exit code 1
    ");
}

#[test]
fn nothing_found_is_exit_code_1_and_no_word() {
    let repo = two_sessions();
    let out = repo.teddy(&["find", "nowhere"]);
    assert_eq!((out.code, &*out.stdout, &*out.stderr), (1, "", ""));
    assert_eq!(repo.json(&["find", "nowhere"], 1), serde_json::json!([]));
    insta::assert_snapshot!(repo.printed(&["find", "a("]), @"
    --- stderr
    error: `a(` is not a regular expression: unclosed group
    hint: `-F` searches for it literally
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["find", "a", "--path", "["]), @"
    --- stderr
    error: `[` is not a path pattern: unclosed character class; missing ']'
    exit code 2
    ");
}

#[test]
fn a_damaged_session_hides_no_other() {
    let repo = two_sessions();
    repo.put(
        ".git/refs/teddy/sessions/broken",
        "0123456789012345678901234567890123456789\n",
    );
    let shown = repo.printed(&["find", "print the needle", "--in", "request"]);
    insta::assert_snapshot!(shown, @"
    demo:2:user_prompt.txt:1: print the needle
    --- stderr
    warning: not searched: session `broken`: reading commit [id]: object [id] is missing
    exit code 0
    ");
}

#[test]
fn binary_files_match_without_their_bytes() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.run_plan(&plan(
        "Make a binary",
        &[execute("printf 'a\\0needle\\n' > data.bin")],
    ));
    assert_eq!(
        found(&repo, &["needle", "--in", "code"]),
        ["demo:1:data.bin: binary file matches"]
    );
    let found = repo.json(&["find", "needle", "--in", "code"], 0);
    assert_eq!(
        (&found[0]["line"], &found[0]["text"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
}
