//! `export --format`: a summary of a session for reviewers.

use serde_json::json;

use crate::plans::{chat, create, edit, execute, plan};
use crate::support::TestRepo;

/// A project whose session has turns of every kind.
fn used() -> TestRepo {
    let repo = TestRepo::new()
        .file("greet.sh", "echo Hello\n")
        .file("old.bin", b"\0\x01");
    repo.commit("init");
    repo.workflow().new_session("greet-by-name").done();
    repo.workflow().add(&["greet.sh"]);
    repo.reply(&plan(
        "Greet by name",
        &[
            edit("greet.sh", "Hello", "Hello, $1"),
            execute("sh greet.sh Ada"),
        ],
    ));
    repo.done(&[
        "plan",
        "-m",
        "Greet people by name.\n\nAsk @team about #12 <b>.",
    ]);
    repo.done(&["execute", "-y"]);
    repo.reply(&plan("Test it", &[execute("false")]));
    repo.done(&["plan", "-m", "test it"]);
    repo.teddy(&["execute", "-y", "--no-replan"]).check(1, &[]);
    repo.reply(&plan("Ask", &[chat("Which language?")]));
    repo.done(&["plan", "-m", "and translate it"]);
    repo.teddy(&["execute", "-y"]);
    repo.reply(&plan(
        "Say `Hallo` to @all",
        &[create("de.sh", "echo Hallo\n")],
    ));
    repo.teddy(&["plan", "-m", "German"]);
    repo.done(&["execute", "-y"]);
    repo
}

#[test]
fn ex1_a_summary_says_what_a_reviewer_asks_first() {
    let repo = used();
    let text = repo.done(&["export", "--format", "md"]);
    let tip = repo.git(&["rev-parse", "--short=12", "teddy/sessions/greet-by-name"]);
    let answers = repo.beside("answers");
    let shown = text.replace(&tip, "<commit>");
    insta::assert_snapshot!(shown.replace(answers.to_str().unwrap(), "<answers>"));
    assert_eq!(
        repo.done(&["export", "--format", "md", "greet-by-name"]),
        text
    );
    let told = repo.json(&["export", "--format", "md"], 0);
    assert_eq!(told["markdown"], text);
}

#[test]
fn ex2_json_has_the_same_facts_in_full() {
    let repo = used();
    let told = repo.json(&["export", "--format", "json"], 0);
    let field = |list: &str, name: &str| -> Vec<String> {
        let rows = told[list].as_array().unwrap().iter();
        rows.map(|row| row[name].to_string().replace('"', ""))
            .collect()
    };
    assert_eq!(told["schema"], 1);
    assert_eq!(
        field("turns", "status"),
        ["executed", "failed", "executed", "executed"]
    );
    assert_eq!(field("files", "path"), ["de.sh", "greet.sh"]);
    assert_eq!(field("files", "change"), ["added", "modified"]);
    assert_eq!(field("runs", "exit_code"), ["0", "1"]);
    assert_eq!(field("decisions", "kind"), ["answered"]);
    assert_eq!(field("decisions", "said"), ["German"]);
    let request = "Greet people by name.\n\nAsk @team about #12 <b>.";
    assert_eq!(told["requests"][0]["text"], request);
}

#[test]
fn ex1_a_session_without_turns_has_a_summary_too() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let text = repo.done(&["export", "--format", "md"]);
    insta::assert_snapshot!(repo.plain(&text), @"
    ### Session `demo`

    0 turns · commit `[id]`
    ");

    repo.workflow()
        .run_plan(&plan("One", &[create("b.txt", "b\n")]));
    let text = repo.done(&["export", "--format", "md"]);
    insta::assert_snapshot!(repo.plain(&text), @"
    ### Session `demo`

    1 turn · commit `[id]`

    **1 file (+1 −0)**

    - `b.txt` +1 −0, added

    **Turns**

    - 1: `One` executed
    ");
    insta::assert_snapshot!(repo.printed(&["export", "--format", "md", "gone"]), @"
    --- stderr
    error: there is no session `gone`
    hint: `teddy sessions` lists the sessions
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["export", "--format", "html"]), @"
    --- stderr
    error: invalid value 'html' for '--format <FORMAT>'
      [possible values: md, json]

    hint: `teddy export --help` shows its arguments, with examples
    exit code 2
    ");
    let clone = repo.beside("bare");
    repo.git(&["clone", "-q", "--mirror", ".", clone.to_str().unwrap()]);
    let bare = repo.teddy_in(&clone, &["export", "--format", "md", "-s", "demo"]);
    assert_eq!(bare.stdout, text);
}

#[test]
fn lines_are_counted_as_diff_shows_them() {
    let repo = TestRepo::new().file("nul.bin", "a\0b\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.write("nul.bin", "a\0b\nc\n");
    repo.write("latin.txt", b"caf\xe9\n");
    repo.workflow().record("Change").done();
    let told = repo.json(&["export", "--format", "json"], 0);
    let lines = |at: usize| {
        let file = &told["files"][at];
        json!([file["path"], file["added"], file["removed"]])
    };
    assert_eq!(lines(0), json!(["latin.txt", 1, 0]));
    assert_eq!(lines(1), json!(["nul.bin", null, null]));
}
