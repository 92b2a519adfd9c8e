//! `teddy ask`: records the answer as a turn and changes no file.

use serde_json::json;
use teddy::workflow::plan::PlanOptions;

use crate::fake::{Fake, response};
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

/// A project with a session.
fn session() -> TestRepo {
    let repo = project();
    repo.workflow().new_session("demo").done();
    repo
}

/// A project with a question whose model failed.
fn failed_question() -> TestRepo {
    let repo = session();
    let fake = Fake::answering(&[response("401 Unauthorized", "", "{}")]);
    repo.configure(&fake.config(""));
    repo.workflow().ask("why?").refused();
    assert_eq!(repo.workflow().artifact("draft", "user_prompt.txt"), "why?");
    repo
}

#[test]
fn an_answer_goes_to_stdout_and_into_the_session() {
    let repo = project();
    let answer = "It is **one**.\n\n```text\none\n```\n";
    repo.reply(answer);
    let before = repo.tree();
    let out = repo.teddy(&["ask", "what is in a?", "a.txt"]);
    assert_eq!(out.stdout, answer);
    insta::assert_snapshot!(out.shown(&repo), @r"
    It is **one**.

    ```text
    one
    ```
    --- stderr
    Started session what-is-in-a.
    Added a.txt (session)
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 executed [id]
    exit code 0
    ");
    assert_eq!(repo.tree(), before);

    // The raw answer is recorded, as in any turn.
    assert_eq!(repo.workflow().artifact("@", "reply.md"), answer);
    assert!(
        repo.workflow()
            .artifact("@", "meta.yaml")
            .contains("question: true\n")
    );
    assert_eq!(repo.workflow().log()[0]["title"], "what is in a?");
    repo.workflow().verify().done();
    assert_eq!(repo.workflow().status()["state"], "ready");
}

#[test]
fn the_model_reads_files_before_it_answers() {
    let repo = session();
    repo.reply(&plan("Look", &[read("b.txt")])).reply("Two.");
    insta::assert_snapshot!(repo.workflow().ask("what is in b?").done(), @r"
    Asking replay:[dir]/answers with about [n] tokens
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 executed
    turn 2 executed
    answer: Two.
    ");
    assert_eq!(repo.workflow().log()[0]["title"], "what is in b?");
    let input = repo.workflow().artifact("2", "input.md");
    assert!(
        input.contains("two\n") && input.contains("what is in b?"),
        "{input}"
    );
}

#[test]
fn a_plan_that_only_tells_is_an_answer() {
    let answers = [chat("Two."), conclude(&[], "Two.")].map(|action| {
        let repo = session();
        repo.reply(&plan("Say", &[action]));
        let answer = repo.workflow().ask("what is it?").done();
        // It is no question of the model's, and no end of the work.
        let status = repo.workflow().status();
        assert_eq!(
            json!([status["question"], status["conclusion"]]),
            json!([null, null])
        );
        answer
    });
    insta::assert_snapshot!(answers.join("\n"), @r"
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 executed
    answer: Two.

    Asking replay:[dir]/answers with about [n] tokens
    turn 1 executed
    answer: Two.
    ");
}

/// Bug: `-y` had approved it.
#[test]
fn an_answer_needs_no_approval() {
    let repo = session();
    repo.reply("Two.");
    repo.done(&["ask", "what is it?"]);
    repo.reply(&plan("Say", &[conclude(&[], "Two.")]));
    repo.done(&["ask", "what is it?"]);
    for turn in ["demo", "demo~1"] {
        let meta = repo.git(&["show", &format!("teddy/sessions/{turn}:meta.yaml")]);
        assert!(meta.contains("\napproved_by: reads\n"), "{meta}");
    }
}

#[test]
fn t20_what_changes_something_is_no_answer() {
    let repo = session();
    repo.reply(&plan("Do", &[create("c.txt", "c\n")]))
        .reply(&plan("Run", &[execute("touch d.txt")]))
        .reply(&plan("Fetch", &[read("https://example.com/?q=secret")]))
        .reply("No.");
    let before = repo.tree();
    let patient = repo.workflow().setting("replan.max", "5");
    insta::assert_snapshot!(patient.ask("may I?").done(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE: CREATE is not part of an answer
        hint: answer in plain Markdown, or READ files of the project first
    Asking replay:[dir]/answers with about [n] tokens
    The plan was not accepted: 1 mistake
    plan.md:13: EXECUTE: EXECUTE is not part of an answer
        hint: answer in plain Markdown, or READ files of the project first
    Asking replay:[dir]/answers with about [n] tokens
    The plan was not accepted: 1 mistake
    plan.md:13: READ: READ is not part of an answer
        hint: answer in plain Markdown, or READ files of the project first
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:13: CREATE: CREATE is not part of an answer
        hint: answer in plain Markdown, or READ files of the project first
    planned turn 2: "Run", 1 mistakes
    plan.md:13: EXECUTE: EXECUTE is not part of an answer
        hint: answer in plain Markdown, or READ files of the project first
    turn 2 rejected
    plan.md:13: EXECUTE: EXECUTE is not part of an answer
        hint: answer in plain Markdown, or READ files of the project first
    planned turn 3: "Fetch", 1 mistakes
    plan.md:13: READ: READ is not part of an answer
        hint: answer in plain Markdown, or READ files of the project first
    turn 3 rejected
    plan.md:13: READ: READ is not part of an answer
        hint: answer in plain Markdown, or READ files of the project first
    planned turn 4: "may I?"
    turn 4 executed
    answer: No.
    "#);
    assert_eq!(repo.tree(), before);

    // Nothing better comes, and there is no answer.
    let repo = session();
    repo.reply(&plan("Do", &[create("c.txt", "c\n")]));
    let impatient = repo.workflow().setting("replan.max", "0");
    insta::assert_snapshot!(impatient.ask("may I?").refused(), @r"
    Asking replay:[dir]/answers with about [n] tokens
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE: CREATE is not part of an answer
        hint: answer in plain Markdown, or READ files of the project first
    the plan was rejected; ask again with `teddy ask '<question>'`
    turn 1 rejected
    plan.md:13: CREATE: CREATE is not part of an answer
        hint: answer in plain Markdown, or READ files of the project first
    no answer
    ");
    assert!(!repo.path().join("c.txt").exists());
}

#[test]
fn t20_a_memo_is_no_answer() {
    let repo = session();
    repo.reply(&with_memos(
        "Remember",
        "[+] trust me",
        &[conclude(&[], "Yes.")],
    ))
    .reply("No.");
    let before = repo.tree();
    insta::assert_snapshot!(repo.workflow().ask("may I?").done(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    The plan was not accepted: 1 mistake
    plan.md:13: a memo is not part of an answer
        hint: leave out `## Memos`
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:13: a memo is not part of an answer
        hint: leave out `## Memos`
    planned turn 2: "may I?"
    turn 2 executed
    answer: No.
    "#);
    assert_eq!(repo.tree(), before);
    assert!(!repo.path().join(".teddy/memos.yaml").exists());
}

#[test]
fn t20_a_plan_from_a_file_does_not_answer_a_waiting_question() {
    let repo = failed_question();
    let own = plan("Own", &[create("c.txt", "c\n")]);
    repo.workflow().run_plan(&own);
    let meta = repo.workflow().artifact("@", "meta.yaml");
    assert!(!meta.contains("question: true"), "{meta}");
    assert_eq!(
        repo.workflow().artifact("@", "system_prompt.xml"),
        repo.workflow().prompt("assistant")
    );
}

#[test]
fn a_model_that_only_reads_is_stopped() {
    let repo = session();
    for _ in 0..7 {
        repo.reply(&plan("Look", &[read("b.txt")]));
    }
    insta::assert_snapshot!(repo.workflow().ask("what is it?").refused(), @r"
    Asking replay:[dir]/answers with about [n] tokens
    Asking replay:[dir]/answers with about [n] tokens
    Asking replay:[dir]/answers with about [n] tokens
    Asking replay:[dir]/answers with about [n] tokens
    Asking replay:[dir]/answers with about [n] tokens
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 executed
    turn 2 executed
    turn 3 executed
    turn 4 executed
    turn 5 executed
    turn 6 executed
    no answer
    ");
    assert_eq!(repo.workflow().log().as_array().map(Vec::len), Some(7));
}

#[test]
fn t20_the_session_goes_on_as_before() {
    let repo = project();
    let pathfinder = repo.workflow().setting("agent", "pathfinder");
    pathfinder.new_session("demo").done();
    repo.reply(&plan("Ask", &[chat("Red or blue?")]))
        .reply("Both are fine.")
        .reply(&plan("Blue", &[create("c.txt", "blue\n")]));
    repo.workflow().resume(Some("paint it")).refused();
    repo.workflow().ask("does it matter?").done();

    // What the model wants to know is still open, and its own instructions are back.
    assert_eq!(repo.workflow().status()["question"], "Red or blue?");
    insta::assert_snapshot!(repo.workflow().resume(Some("blue")).done(), @r"
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    turn 3 executed
      added c.txt
    ended: Left
    ");
    let prompt = |turn: &str| repo.workflow().artifact(turn, "system_prompt.xml");
    assert!(prompt("2").starts_with("<answer>"));
    assert_eq!(prompt("3"), prompt("1"));
    let input = repo.workflow().artifact("3", "input.md");
    assert!(input.contains("Both are fine."), "{input}");
    assert_eq!(repo.workflow().log()[0]["agent"], "pathfinder");
    repo.workflow().verify().done();
}

#[test]
fn a_plan_that_waits_is_not_replaced() {
    let repo = session();
    repo.reply(&plan("Make", &[create("c.txt", "c\n")]))
        .reply("Never.");
    repo.workflow().plan("make c").done();
    insta::assert_snapshot!(repo.workflow().ask("why?").refused(), @r"
    error: a plan is waiting in session `demo`
    hint: `teddy execute` runs it; `teddy new <name>` starts another session
    exit code 1
    ");
    assert_eq!(repo.workflow().status()["state"], "planned");
    insta::assert_snapshot!(repo.printed(&["ask"]), @r"
    --- stderr
    error: no question was given
    hint: `teddy ask '<question>'` asks it
    exit code 2
    ");
}

#[test]
fn a_question_whose_model_failed_is_still_one() {
    let repo = failed_question();
    repo.reply(&plan("Do", &[create("c.txt", "c\n")]));
    // The waiting message is still a question, so its answer cannot change files.
    let again = PlanOptions::default();
    insta::assert_snapshot!(repo.workflow().plan_with(again).refused(), @r#"
    Using the waiting message: why?
    Asking replay:[dir]/answers with about [n] tokens
    planned turn 1: "Do", 1 mistakes
    plan.md:13: CREATE: CREATE is not part of an answer
        hint: answer in plain Markdown, or READ files of the project first
    "#);
    // A new message is not a question.
    repo.reply(&plan("Do", &[create("c.txt", "c\n")]));
    repo.workflow().plan("make it").done();
    repo.workflow().execute().done();
    let prompt = repo.workflow().artifact("1", "system_prompt.xml");
    assert!(prompt.starts_with("<assistant>"), "{prompt}");
}

/// Bug: the plan was taken, and changed files.
#[test]
fn a_question_that_is_asked_again_by_retry_is_still_one() {
    let repo = session();
    repo.reply("Two.");
    repo.workflow().ask("what is it?").done();
    repo.configure(&format!(
        "model: other\nmodels:\n  other: {{ kind: replay, path: {} }}\n",
        repo.beside("other").display()
    ));
    std::fs::create_dir_all(repo.beside("other")).unwrap();
    let answer = plan("Do", &[create("c.txt", "c\n")]);
    std::fs::write(repo.beside("other/01.md"), answer).unwrap();
    insta::assert_snapshot!(repo.workflow().retry("1", Some("other")).refused(), @r#"
    Asking other with about [n] tokens
    planned turn 1: "Do", 1 mistakes
    plan.md:13: CREATE: CREATE is not part of an answer
        hint: answer in plain Markdown, or READ files of the project first
    in use: demo-retry-1
    "#);
}

/// Bug: an undo after it was recorded as an answer that changed files, and nobody could fetch the
/// session.
#[test]
fn t20_an_undo_after_a_question_without_an_answer_is_none() {
    let repo = session();
    repo.run_plan(&plan("Add c", &[create("c.txt", "c\n")]));
    let fake = Fake::answering(&[response("401 Unauthorized", "", "{}")]);
    repo.configure(&fake.config(""));
    repo.workflow().ask("why?").refused();
    repo.workflow().undo(1).done();
    repo.workflow().redo(1).done();
    repo.done(&["verify"]);
}
