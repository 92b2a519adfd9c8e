//! A message and files on the command line, which start a session if there is none.

use serde_json::json;

use crate::plans::{conclude, create, execute, plan};
use crate::support::TestRepo;

/// A project without a session.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\n")
        .file("src/b.txt", "two\n");
    repo.commit("init");
    repo
}

/// A plan that creates a file and concludes.
fn make(name: &str) -> String {
    plan(
        &format!("Make {name}"),
        &[
            create(&format!("{name}.txt"), "x\n"),
            conclude(&[], &format!("Made {name}.")),
        ],
    )
}

fn listed(repo: &TestRepo) -> Vec<String> {
    let rows = repo.json(&["context", "list"], 0);
    let session = rows
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["scope"] == "session");
    session
        .map(|row| row["resource"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn start_takes_a_message_and_files() {
    let repo = project();
    repo.reply(&make("c"));
    let out = repo.teddy(&["start", "-y", "add a form", "a.txt", "src"]);
    out.check(
        0,
        &[
            "Started session add-a-form.",
            "Updated your files: c.txt (new)",
        ],
    );
    assert!(out.stdout.ends_with("Made c.\n"), "{out}");
    assert_eq!(repo.done(&["show", "1", "user_prompt.txt"]), "add a form");
    assert_eq!(listed(&repo), ["a.txt", "src/b.txt"]);
}

#[test]
fn a_word_like_a_name_is_the_name() {
    let repo = project();
    repo.reply(&plan("Run", &[execute("true")]));
    repo.teddy(&["start", "-y", "add-form", "add a form"])
        .check(0, &["Started session add-form."]);
    repo.teddy(&["start", "-y", "other", "-m", "go", "-f", "a.txt"])
        .check(0, &["Started session other.", "Added a.txt"]);
    repo.teddy(&["start", "add-form", "-m", "go"])
        .check(1, &["already"]);
    repo.teddy(&["start", "Add-Form", "-m", "go"])
        .check(2, &["session name"]);
}

#[test]
fn plan_and_resume_start_a_session_where_none_is_in_use() {
    let repo = project();
    repo.reply(&make("c")).reply(&make("d")).reply(&make("e"));
    repo.teddy(&["plan", "make c", "a.txt"])
        .check(0, &["Started session make-c."]);
    assert_eq!(repo.json(&["status"], 0)["state"], "planned");
    repo.done(&["execute", "-y"]);
    // In a session, the text is its next message.
    repo.teddy(&["resume", "-y", "now d"])
        .check(0, &["turn 2 executed"]);
    repo.teddy(&["now e", "-y"]).check(0, &["turn 3 executed"]);
    assert_eq!(
        repo.json(&["sessions"], 0).as_array().map(Vec::len),
        Some(1)
    );

    let repo = project();
    repo.reply(&make("c"));
    repo.teddy(&["make it so", "-y"])
        .check(0, &["Started session make-it-so."]);
    let repo = project();
    let answer = make("c");
    let out = repo.teddy_reads(&["plan", "--from", "-"], &answer);
    out.check(0, &["Started session make-c."]);
}

#[test]
fn nothing_is_started_for_what_cannot_go_on() {
    let repo = project();
    repo.teddy(&["plan", "make c"])
        .check(1, &["no model is configured"]);
    repo.reply(&make("c"));
    repo.teddy(&["plan", "make c", "-f", "a.tx"])
        .check(2, &["there is no file `a.tx`", "did you mean `a.txt`?"]);
    repo.teddy(&["plan", "make", "it", "so"])
        .check(2, &["there is no file `it`", "needs quotes"]);
    repo.teddy(&["plan", "make it", "a.txy"])
        .check(2, &["there is no file `a.txy`", "did you mean `a.txt`?"]);
    repo.teddy(&["plan"]).check(1, &["no session is in use"]);
    repo.teddy(&["resume"]).check(1, &["no session is in use"]);
    repo.teddy(&["plan", "x y", "-a", "nobody"])
        .check(1, &["there is no agent `nobody`"]);
    assert_eq!(repo.json(&["sessions"], 0), json!([]));
}

#[test]
fn the_agent_can_change_on_the_way() {
    let repo = project();
    repo.reply(&plan("Run", &[execute("true")]))
        .reply(&plan("Run", &[execute("true")]))
        .reply(&make("c"));
    let agent = |turn: &str| repo.json(&["show", turn], 0)["agent"].clone();
    repo.teddy(&["start", "-y", "go on"]).check(0, &[]);
    assert_eq!(agent("1"), "assistant");
    repo.teddy(&["resume", "-y", "-a", "developer", "and on"])
        .check(0, &["The agent developer plans from now on."]);
    assert_eq!(agent("2"), "developer");
    repo.teddy(&["plan", "and on"]).check(0, &[]);
    repo.teddy(&["plan", "-a", "architect", "again"])
        .check(1, &["a plan of the agent developer is waiting"]);
    repo.done(&["execute", "-y"]);
    assert_eq!(agent("3"), "developer");
    assert!(
        repo.done(&["show", "3", "system_prompt.xml"])
            .starts_with("<developer>")
    );
    repo.done(&["verify"]);
}

#[test]
fn work_that_is_left_goes_on_until_it_is_done() {
    let repo = project();
    repo.reply(&plan("Test", &[execute("test -e c.txt")]))
        .reply(&make("c"));
    let out = repo.teddy(&["start", "-y", "make the test pass"]);
    out.check(
        0,
        &[
            "turn 1 failed",
            "turn 2 executed",
            "Your files are unchanged.",
        ],
    );
    let meta = repo.done(&["show", "2", "meta.yaml"]);
    assert!(meta.contains("origin: loop\n"), "{meta}");
}
