//! `teddy ask`: records the answer as a turn and changes no file.

use serde_json::json;

use crate::plans::{chat, conclude, create, execute, plan, read, with_memos};
use crate::support::TestRepo;

/// A project without a session.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\n")
        .file("b.txt", "two\n");
    repo.commit("init");
    repo
}

#[test]
fn an_answer_goes_to_stdout_and_into_the_session() {
    let repo = project();
    repo.reply("It is **one**.\n\n```text\none\n```\n");
    let before = repo.tree();
    let out = repo.teddy(&["ask", "what is in a?", "a.txt"]);
    out.check(
        0,
        &[
            "Started session what-is-in-a.",
            "Added a.txt (session)",
            "turn 1 executed",
        ],
    );
    assert_eq!(out.stdout, "It is **one**.\n\n```text\none\n```\n");
    assert_eq!(repo.tree(), before);

    // The raw answer is recorded, as in any turn.
    assert_eq!(
        repo.done(&["show", "@", "reply.md"]),
        "It is **one**.\n\n```text\none\n```\n"
    );
    assert!(
        repo.done(&["show", "@", "meta.yaml"])
            .contains("question: true\n")
    );
    assert_eq!(repo.json(&["log"], 0)[0]["title"], "what is in a?");
    repo.done(&["verify"]);
    assert_eq!(repo.json(&["status"], 0)["state"], "ready");
}

#[test]
fn the_model_looks_before_it_answers() {
    let repo = project();
    repo.reply(&plan("Look", &[read("b.txt")])).reply("Two.");
    let value = repo.json(&["ask", "what is in b?"], 0);
    assert_eq!(
        json!([value["answer"], value["turns"], value["turn"]]),
        json!(["Two.", 2, 2])
    );
    assert_eq!(repo.json(&["log"], 0)[0]["title"], "what is in b?");
    let input = repo.done(&["show", "2", "input.md"]);
    assert!(
        input.contains("two\n") && input.contains("what is in b?"),
        "{input}"
    );
}

#[test]
fn a_plan_that_only_tells_is_an_answer() {
    for action in [chat("Two."), conclude(&[], "Two.")] {
        let repo = project();
        repo.reply(&plan("Say", &[action]));
        let out = repo.teddy(&["ask", "what is it?"]);
        out.check(0, &[]);
        assert_eq!(out.stdout, "Two.\n");
        // Such a plan counts neither as a question to the user nor as the end of the work.
        let status = repo.json(&["status"], 0);
        assert_eq!(
            json!([status["question"], status["conclusion"]]),
            json!([null, null])
        );
    }
}

#[test]
fn t20_what_changes_something_is_no_answer() {
    let repo = project();
    repo.reply(&plan("Do", &[create("c.txt", "c\n")]))
        .reply(&plan("Run", &[execute("touch d.txt")]))
        .reply(&plan("Fetch", &[read("https://example.com/?q=secret")]))
        .reply("No.");
    let before = repo.tree();
    let out = repo.teddy(&["-c", "replan.max=5", "ask", "may I?"]);
    out.check(
        0,
        &[
            "CREATE is not part of an answer",
            "EXECUTE is not part of an answer",
            "READ is not part of an answer",
        ],
    );
    assert_eq!((out.stdout.as_str(), repo.tree()), ("No.\n", before));

    // Without a replan, the exit code is that of the rejected plan.
    let repo = project();
    repo.reply(&plan("Do", &[create("c.txt", "c\n")]));
    repo.teddy(&["-c", "replan.max=0", "ask", "may I?"])
        .check(3, &["the model gave no answer"]);
    assert!(!repo.path().join("c.txt").exists());
}

#[test]
fn t20_a_memo_is_no_answer() {
    let repo = project();
    repo.reply(&with_memos(
        "Remember",
        "[+] trust me",
        &[conclude(&[], "Yes.")],
    ))
    .reply("No.");
    let before = repo.tree();
    let out = repo.teddy(&["ask", "may I?"]);
    out.check(0, &["a memo is not part of an answer"]);
    assert_eq!((out.stdout.as_str(), repo.tree()), ("No.\n", before));
    assert!(!repo.path().join(".teddy/memos.yaml").exists());
}

#[test]
fn t20_a_plan_from_elsewhere_is_no_answer_to_a_question_that_waits() {
    let repo = project();
    repo.done(&["new", "demo"]);
    let prompt = repo.done(&["get-prompt", "assistant"]);
    repo.teddy(&["ask", "why?", "--model", "command:false"])
        .check(1, &[]);
    repo.write("own.md", plan("Own", &[create("c.txt", "c\n")]));
    repo.teddy(&["execute", "-y", "own.md"]).check(0, &[]);
    let meta = repo.done(&["show", "@", "meta.yaml"]);
    assert!(!meta.contains("question: true"), "{meta}");
    assert_eq!(repo.done(&["show", "@", "system_prompt.xml"]), prompt);
}

#[test]
fn who_only_looks_is_stopped() {
    let repo = project();
    for _ in 0..7 {
        repo.reply(&plan("Look", &[read("b.txt")]));
    }
    repo.teddy(&["ask", "what is it?"])
        .check(5, &["the model gave no answer"]);
    assert_eq!(repo.json(&["log"], 0).as_array().map(Vec::len), Some(7));
}

#[test]
fn t20_the_session_goes_on_as_before() {
    let repo = project();
    repo.done(&["new", "demo", "-a", "pathfinder"]);
    repo.reply(&plan("Ask", &[chat("Red or blue?")]))
        .reply("Both are fine.")
        .reply(&plan("Blue", &[create("c.txt", "blue\n")]));
    repo.teddy(&["resume", "-y", "paint it"]).check(5, &[]);
    repo.teddy(&["ask", "does it matter?"]).check(0, &[]);

    // The question is still open, and the agent's own prompt applies again.
    assert_eq!(repo.json(&["status"], 0)["question"], "Red or blue?");
    repo.teddy(&["resume", "-y", "blue"])
        .check(0, &["turn 3 executed"]);
    let prompt = |turn: &str| repo.done(&["show", turn, "system_prompt.xml"]);
    assert!(prompt("2").starts_with("<answer>"));
    assert_eq!(prompt("3"), prompt("1"));
    assert!(
        repo.done(&["show", "3", "input.md"])
            .contains("Both are fine.")
    );
    assert_eq!(repo.json(&["log"], 0)[0]["agent"], "pathfinder");
    repo.done(&["verify"]);
}

#[test]
fn a_plan_that_waits_is_not_replaced() {
    let repo = project();
    repo.reply(&plan("Make", &[create("c.txt", "c\n")]))
        .reply("Never.");
    repo.done(&["plan", "make c"]);
    repo.teddy(&["ask", "why?"])
        .check(1, &["a plan is waiting", "teddy execute"]);
    assert_eq!(repo.json(&["status"], 0)["state"], "planned");
    repo.teddy(&["ask"]).check(2, &["no question was given"]);
}

#[test]
fn a_question_whose_model_failed_is_still_one() {
    let repo = project();
    repo.teddy(&["ask", "why?", "--model", "command:false"])
        .check(1, &[]);
    repo.reply(&plan("Do", &[create("c.txt", "c\n")]));
    // The waiting message is still a question, so its answer cannot change files.
    repo.teddy(&["plan"])
        .check(3, &["CREATE is not part of an answer"]);
    // A new message is not a question.
    repo.reply(&plan("Do", &[create("c.txt", "c\n")]));
    repo.teddy(&["plan", "make it"]).check(0, &[]);
    repo.teddy(&["execute", "-y"])
        .check(0, &["turn 1 executed"]);
    let prompt = repo.done(&["show", "1", "system_prompt.xml"]);
    assert!(prompt.starts_with("<assistant>"), "{prompt}");
}
