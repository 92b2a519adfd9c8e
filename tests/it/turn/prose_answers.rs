//! Prose answers, and plans that need no approval.

use teddy::workflow::resume::ResumeOptions;

use crate::plans::{chat, conclude, create, edit, plan, read};
use crate::support::TestRepo;
use crate::support::scripted_user::{Scripted, ScriptedUser};

const ASKS: &str = "Sure! I would add `b.txt`.\n\nShall I go on?";
const TELLS: &str = "The file is fine as it is.";

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo
}

fn make_b() -> String {
    plan("Make b", &[create("b.txt", "b\n")])
}

/// A loop with a user at the terminal.
fn attended(message: &str) -> ResumeOptions {
    ResumeOptions {
        message: Some(message.to_owned()),
        ..ResumeOptions::default()
    }
}

#[test]
fn t25_a_prose_question_is_a_turn_and_enter_asks_for_the_plan() {
    let repo = project();
    repo.reply(ASKS).reply(&make_b());
    let user = ScriptedUser::deciding([Scripted::Approve])
        .answering(Some(""))
        .answering(None);
    let reply = repo.workflow().with(user).resume_with(attended("make b"));
    insta::assert_snapshot!(reply.done(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 executed
      asks (Open): Sure! I would add `b.txt`.

    Shall I go on?
    asked reply to the answer: Some("")
    Asking replay:[dir]/answers with about [n] tokens
    review "Make b": Approve
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    turn 2 executed
      added b.txt
    asked message of turn 3 of `demo`: None
    ended: Left
    "#);
    let input = repo.workflow().artifact("2", "input.md");
    assert!(input.contains("Shall I go on?"), "{input}");
    assert_eq!(
        repo.workflow().artifact("2", "user_prompt.txt"),
        "Go ahead: write the plan."
    );
    assert_eq!(repo.workflow().artifact("1", "reply.md"), ASKS);
}

#[test]
fn a_commit_is_named_after_the_request_and_not_after_a_reply() {
    let landed = |replies: &[&str], answers: &[&'static str]| {
        let repo = project();
        for reply in replies {
            repo.reply(reply);
        }
        let mut user = ScriptedUser::deciding([Scripted::Approve]);
        for answer in answers {
            user = user.answering(Some(answer));
        }
        let user = user.answering(None);
        let ended = repo
            .workflow()
            .with(user)
            .resume_with(attended("write what b needs"));
        ended.done();
        let message = repo.done(&["land", "-n"]);
        message.lines().nth(2).unwrap().trim().to_owned()
    };
    let asks = plan("Ask", &[chat("In capitals?")]);
    let reads = plan("Look", &[read("a.txt")]);
    let wrong = plan("Wrong", &[edit("a.txt", "no such line", "x")]);
    let b = make_b();
    let request = "Write what b needs";
    assert_eq!(landed(&[ASKS, &b], &[""]), request);
    // Regression: the subject was `Go ahead: write the plan`.
    assert_eq!(landed(&[TELLS, &b], &[""]), request);
    assert_eq!(landed(&[ASKS, &b], &["yes, both"]), request);
    assert_eq!(landed(&[&asks, &b], &["yes"]), request);
    assert_eq!(landed(&[&reads, &b], &[]), request);
    assert_eq!(landed(&[&wrong, &b], &[]), request);
}

/// Bug: the message of the commit had the output of a command, and the `@` of a file.
#[test]
fn a_commit_has_the_request_without_what_is_only_for_the_model() {
    let repo = project();
    repo.reply(&make_b());
    let request = "make b as in @a.txt, for @types/b\n\nIt is urgent.\n\nI ran `make` (exit status: 2):\n\n````text\nno b\n````";
    let user = ScriptedUser::deciding([Scripted::Approve]).answering(None);
    let made = repo.workflow().with(user).resume_with(attended(request));
    made.done();
    let message = repo.done(&["land", "-n"]);
    let lines: Vec<&str> = message.lines().skip(2).take(4).map(str::trim).collect();
    let expected = ["Make b as in a.txt, for @types/b", "", "It is urgent.", ""];
    assert_eq!(lines, expected, "{message}");
}

/// Bug: a turn without a model counted as the answer to the question before it.
#[test]
fn a_commit_of_recorded_work_is_not_named_after_an_open_question() {
    let repo = project();
    repo.reply(&plan("Ask", &[chat("Which provider?")]));
    let user = ScriptedUser::deciding([]).answering(None);
    let asked = repo.workflow().with(user);
    let _ = asked.resume_with(attended("add a login page"));
    repo.write("a.txt", "by hand\n");
    repo.done(&["record", "Fix the typo"]);
    let message = repo.done(&["land", "-n"]);
    let subject = message.lines().nth(2).unwrap().trim();
    assert_eq!(subject, "Fix the typo", "{message}");
}

#[test]
fn t25_an_answer_that_asks_nothing_leaves_no_question() {
    let repo = project();
    repo.reply(TELLS).reply(&make_b());
    let user = ScriptedUser::deciding([]).answering(None);
    let reply = repo.workflow().with(user).resume_with(attended("make b"));
    insta::assert_snapshot!(reply.refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 executed
      answers: The file is fine as it is.
    asked reply to the answer: None
    ended: Left
    "#);
    let status = repo.workflow().status();
    assert!(status["question"].is_null() && status["conclusion"].is_null());
    repo.workflow().verify().done();

    // Later, the answer is shown again above the prompt.
    let user = ScriptedUser::deciding([]).answering(None);
    let options = ResumeOptions::default();
    let reply = repo.workflow().with(user).resume_with(options);
    insta::assert_snapshot!(reply.done(), @r#"
    asked reply to `The file is fine as it is.`: None
    ended: Left
    "#);
}

#[test]
fn t25_an_unattended_loop_asks_for_the_plan_once() {
    let repo = project();
    repo.reply(TELLS)
        .reply(&make_b())
        .reply(&plan("Done", &[conclude(&[], "All.")]));
    insta::assert_snapshot!(repo.workflow().resume_yolo("make b").done(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 executed
      answers: The file is fine as it is.
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    turn 2 executed
      added b.txt
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CONCLUDE All.
      ✓ done
    turn 3 executed
      concludes: All.
    ended: Complete("All.")
    "#);

    let repo = project();
    repo.reply(TELLS).reply("I said so.").reply(&make_b());
    insta::assert_snapshot!(repo.workflow().resume_yolo("make b").refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 executed
      answers: The file is fine as it is.
    Asking replay:[dir]/answers with about [n] tokens
    turn 2 executed
      answers: I said so.
    ended: NoPlan
    "#);

    let repo = project();
    repo.reply(ASKS).reply(&make_b());
    insta::assert_snapshot!(repo.workflow().resume_yolo("make b").refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 executed
      asks (Open): Sure! I would add `b.txt`.

    Shall I go on?
    ended: Question("Sure! I would add `b.txt`.\n\nShall I go on?")
    "#);
}

#[test]
fn t25_plan_shows_the_answer_and_keeps_it_as_a_turn() {
    let repo = project();
    repo.reply(ASKS).reply(&make_b());
    let out = repo.teddy(&["plan", "make b"]);
    assert_eq!(out.stdout, format!("{ASKS}\n"));
    insta::assert_snapshot!(out.shown(&repo), @r"
    Sure! I would add `b.txt`.

    Shall I go on?
    --- stderr
    Asking replay:[dir]/answers with about [n] tokens
    The model answered without a plan:
    Next: `teddy resume` replies to it, or asks for the plan
    exit code 5
    ");
    assert_eq!(repo.workflow().status()["question"], ASKS);
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r"
    error: no plan is waiting in session `demo`
    hint: `teddy plan '<message>'` makes one; `teddy execute <file>` takes one from elsewhere
    exit code 1
    ");
    insta::assert_snapshot!(repo.workflow().plan("yes").done(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    planned turn 2: "Make b"
    "#);
}

/// Bug: after a continuation, the loop ended at once.
#[test]
fn without_a_user_each_prose_answer_is_asked_once_for_a_plan() {
    let done = plan("Done", &[conclude(&[], "All of it.")]);
    let repo = project();
    repo.reply(&make_b()).reply(TELLS).reply(&done);
    repo.workflow().resume_yolo("make b").done();
    let messages = ["2", "3"].map(|turn| repo.workflow().artifact(turn, "user_prompt.txt"));
    assert_eq!(messages[0], "Continue with the next step.");
    let asks = "Your answer was not a plan, so nothing was done.";
    assert!(messages[1].starts_with(asks), "{messages:?}");

    let repo = project();
    let again = "Nothing is left to do.";
    repo.reply(&make_b()).reply(TELLS).reply(again).reply(&done);
    let said = repo.workflow().resume_yolo("make b").refused();
    assert!(
        said.contains("turn 3 executed") && said.ends_with("ended: NoPlan\n"),
        "{said}"
    );
}

/// Bug: it was kept as a plan with one action that waits.
#[test]
fn t25_a_prose_answer_from_a_file_is_a_turn_too() {
    let repo = project();
    std::fs::write(repo.beside("answer.md"), ASKS).unwrap();
    let shown = [
        repo.printed(&["plan", "-q", "-m", "make b", "--from", "../answer.md"]),
        repo.printed(&["status", "-q"]),
    ];
    insta::assert_snapshot!(shown.join("\n"), @r"
    Sure! I would add `b.txt`.

    Shall I go on?
    exit code 5

    Session demo, turn 1, on branch main
    Ready for turn 2
    The model waits for your answer:
      Sure! I would add `b.txt`.

      Shall I go on?
    Your files are as the newest turn left them
    exit code 0
    ");
}

#[test]
fn t25_an_answer_to_a_declined_plan_is_shown_and_recorded_as_a_turn() {
    let repo = project();
    repo.reply(&make_b()).reply(TELLS);
    repo.workflow().plan("make b").done();
    let declined = repo.teddy(&["execute", "--comment", "b.txt:1=why?"]);
    insta::assert_snapshot!(declined.shown(&repo), @r"
    turn 1 declined [id]
    The file is fine as it is.
    --- stderr
    Using the waiting message: Please change the plan as these comments on its result say. The rest of it can s...
    Asking replay:[dir]/answers with about [n] tokens
    The model answered without a plan:
    Next: `teddy resume` replies to it, or asks for the plan
    exit code 0
    ");
    assert_eq!(repo.workflow().artifact("2", "reply.md"), TELLS);
    // Bug: the title was the first line of the message around the comments.
    assert_eq!(repo.workflow().log()[0]["title"], "why?");
}

#[test]
fn a_plan_that_only_reads_runs_without_approval_and_the_loop_continues() {
    let repo = project();
    repo.reply(&plan("Look", &[read("a.txt")]))
        .reply(&plan("Change", &[edit("a.txt", "one", "two")]))
        .reply(&plan("Done", &[conclude(&[], "It is two.")]));
    let user = ScriptedUser::deciding([Scripted::Approve])
        .answering(Some("and now?"))
        .answering(None);
    let reply = repo
        .workflow()
        .with(user)
        .resume_with(attended("make it two"));
    insta::assert_snapshot!(reply.done(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    "Look" only reads, so it needs no approval.
    ▶ 1. READ a.txt
      ✓ read; it is in the context of the next turn
    turn 1 executed
    Asking replay:[dir]/answers with about [n] tokens
    review "Change": Approve
    ▶ 1. EDIT a.txt
      ✓ changed 1 place: 1 line added, 1 removed
    turn 2 executed
      modified a.txt
    asked message of turn 3 of `demo`: Some("and now?")
    Asking replay:[dir]/answers with about [n] tokens
    turn 3 executed
      concludes: It is two.
    asked message of turn 4 of `demo`: None
    ended: Left
    "#);
    let report = repo.workflow().artifact("1", "report.md");
    assert!(report.contains("not needed: it only reads"), "{report}");
}

#[test]
fn a_model_that_reads_the_same_again_is_not_asked_a_third_time() {
    let repo = project();
    for _ in 0..3 {
        repo.reply(&plan("Look", &[read("a.txt")]));
    }
    let user = ScriptedUser::deciding([]).answering(None);
    let reply = repo
        .workflow()
        .with(user)
        .resume_with(attended("make it two"));
    insta::assert_snapshot!(reply.done(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    "Look" only reads, so it needs no approval.
    ▶ 1. READ a.txt
      ✓ read; it is in the context of the next turn
    turn 1 executed
    Asking replay:[dir]/answers with about [n] tokens
    "Look" only reads, so it needs no approval.
    ▶ 1. READ a.txt
      ✓ read; it is in the context of the next turn
    turn 2 executed
    asked message of turn 3 of `demo`: None
    ended: Left
    "#);
}

/// Bug: the loop failed because it could not ask for a message.
#[test]
fn a_model_that_only_reads_leaves_unfinished_work_if_nobody_can_be_asked() {
    let repo = project();
    for _ in 0..3 {
        repo.reply(&plan("Look", &[read("a.txt")]));
    }
    let shown = repo.json(&["resume", "look at it"], 5);
    assert_eq!(shown["turns"].as_array().unwrap().len(), 2);
    assert_eq!(
        shown["stopped"],
        "stopped: turn 3 of `demo` needs a message; `-m '<message>'` says it"
    );
    // No turn was made, so a message was missing from the start.
    let missing = repo.teddy(&["resume"]);
    assert_eq!(missing.code, 1, "{missing}");
}

#[test]
fn what_reaches_outside_or_names_a_secret_is_approved_by_the_user() {
    let repo = TestRepo::new().file(".env", "A=1\n").file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let quits = |text: &str, setting: &str| {
        let user = ScriptedUser::deciding([Scripted::Quit]);
        let workflow = repo.workflow().with(user).setting("review.reads", setting);
        assert!(workflow.execute_text(text).done().contains("undecided"));
    };
    quits(&plan("Look", &[read(".env")]), "auto");
    quits(
        &plan("Look", &[read("a.txt"), create("b.txt", "b\n")]),
        "auto",
    );
    quits(&plan("Look", &[read("a.txt")]), "ask");
    quits(&plan("Ask", &[chat("Well?")]), "ask");
}

#[test]
fn a_file_that_a_turn_created_is_in_the_context_of_the_next() {
    let repo = project();
    repo.workflow().run_plan(&make_b());
    repo.workflow()
        .run_plan(&plan("Change", &[edit("b.txt", "b", "c")]));
    assert_eq!(repo.read("b.txt"), "c\n");
}

#[test]
fn a_plan_for_a_file_that_was_not_shown_gets_it_with_one_more_call() {
    let repo = project();
    let change = plan("Change", &[edit("a.txt", "ten", "two")]);
    let corrected = plan("Change", &[edit("a.txt", "one", "two")]);
    repo.reply(&change).reply(&corrected);
    let user = ScriptedUser::deciding([Scripted::Approve]).answering(None);
    let reply = repo
        .workflow()
        .with(user)
        .resume_with(attended("make it two"));
    insta::assert_snapshot!(reply.done(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    The model changed files that it had not read: showing it `a.txt` and asking again.
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 recorded
    plan.md:13: EDIT a.txt: `a.txt` is in no context list
        hint: READ it in this plan and edit it in the next one, when its text is before you; by hand, `teddy context add /a.txt` adds it
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 2: "Change"
    review "Change": Approve
    ▶ 1. EDIT a.txt
      ✓ changed 1 place: 1 line added, 1 removed
    turn 2 executed
      modified a.txt
    asked message of turn 3 of `demo`: None
    ended: Left
    "#);
    assert_eq!(repo.read("a.txt"), "two\n");
    let prompt = repo.workflow().artifact("2", "user_prompt.txt");
    assert!(prompt.starts_with("Your plan changes files that were not in the context"));
    assert!(!prompt.to_lowercase().contains("error"), "{prompt}");
    insta::assert_snapshot!(repo.printed(&["log"]), @r"
       2 [id] 2026-01-02 03:04 executed Change (1 file, replay:[dir]/answers)
       1 [id] 2026-01-02 03:04 recorded Change (replay:[dir]/answers)
       0 [id] 2026-01-02 03:04 started  Start session demo
    exit code 0
    ");
    let rows = repo.workflow().log();
    let row = &rows[1];
    assert_eq!(row["status"], "rejected");
    assert_eq!(row["showed_files"], true);
    repo.workflow().verify().done();
}

/// Bug: `plan` called the plan wrong, and announced a rejection.
#[test]
fn plan_names_the_files_that_the_model_has_not_read() {
    let repo = project();
    repo.reply(&plan("Change", &[edit("a.txt", "ten", "two")]))
        .reply(&plan("Change", &[edit("a.txt", "one", "two")]));
    let out = repo.teddy(&["plan", "make it two"]);
    out.check(3, &["The plan of turn 1 changes files that the model has not read: `a.txt`. `teddy execute` shows them to it and asks again."]);
    assert!(!out.stderr.contains("mistake"), "{out}");
    repo.teddy(&["execute"]).check(
        3,
        &["showing it `a.txt` and asking again", "turn 1 recorded"],
    );
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("a.txt"), "two\n");
}

#[test]
fn a_small_project_is_in_the_first_input_without_its_secrets() {
    let repo = TestRepo::new()
        .file("src/a.rs", "fn a() {}\n")
        .file("Cargo.lock", "version = 4\n")
        .file(".env", "A=1\n")
        .file("logo.bin", b"\0\x01")
        .file("notes/private.txt", "p\n")
        .file(".teddyignore", "notes/\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.reply(&plan("Change", &[edit("src/a.rs", "a()", "b()")]));
    let whole = || {
        repo.workflow()
            .setting("context.whole_project_tokens", "20000")
    };
    insta::assert_snapshot!(whole().plan("rename it").done(), @r#"
    The model sees the whole project: 2 files, about [n] tokens.
    Asking replay:[dir]/answers with about [n] tokens
    planned turn 1: "Change"
    "#);
    let shown = whole().resources(0);
    let shown: Vec<&str> = shown
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["resource"].as_str().unwrap())
        .collect();
    assert_eq!(shown, [".teddyignore", "src/a.rs"]);

    // `teddy context` shows the input that `plan` would send, and the lists stay as they are.
    repo.workflow().new_session("carried").done();
    assert!(whole().input(0).contains("fn a() {}"));
    assert_eq!(repo.done(&["context", "list", "--json"]).trim(), "[]");
    let change = plan("Change", &[edit("src/a.rs", "a()", "b()")]);
    let user = ScriptedUser::deciding([Scripted::Approve]);
    let reply = whole().with(user).execute_text(&change);
    insta::assert_snapshot!(reply.done(), @r#"
    review "Change": Approve
    ▶ 1. EDIT src/a.rs
      ✓ changed 1 place: 1 line added, 1 removed
    turn 1 executed
      modified src/a.rs
    "#);
    repo.workflow().undo(1).done();

    // Files that the user listed are a choice, and a larger project is not shown.
    for (name, limit, listed) in [("listed", "20000", true), ("large", "1", false)] {
        repo.workflow().new_session(name).done();
        if listed {
            repo.workflow().add(&["src/a.rs"]);
        }
        repo.reply(&make_b());
        let workflow = repo
            .workflow()
            .setting("context.whole_project_tokens", limit);
        let reply = workflow.plan("make b").to_string();
        assert!(!reply.contains("whole project"), "{name}: {reply}");
    }
}

#[test]
fn a_plan_from_a_file_never_asks_a_model() {
    let repo = project();
    repo.reply(&make_b());
    repo.write("plan.md", plan("Wrong", &[edit("a.txt", "ten", "two")]));
    insta::assert_snapshot!(repo.workflow().execute_file("plan.md", false).refused(), @r"
    snapshots include 1 untracked file; use `.gitignore` or `snapshot.exclude` to leave files out
    The plan was not accepted: 2 mistakes
    plan.md:13: EDIT a.txt: `a.txt` is in no context list
        hint: READ it in this plan and edit it in the next one, when its text is before you; by hand, `teddy context add /a.txt` adds it
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    turn 1 rejected
    plan.md:13: EDIT a.txt: `a.txt` is in no context list
        hint: READ it in this plan and edit it in the next one, when its text is before you; by hand, `teddy context add /a.txt` adds it
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    ");
    // The command line does not ask a model about the plan of a file either.
    let shown = repo.printed(&["execute", "plan.md", "-y"]);
    insta::assert_snapshot!(shown, @"
    turn 2 rejected [id]
    --- stderr
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    `teddy show 2 report.md` says what is wrong.
    exit code 3
    ");
}

/// Bug: the title was TeDDy's own message to the model.
#[test]
fn a_prose_answer_to_mistakes_has_the_title_of_the_plan() {
    let repo = project();
    repo.reply(TELLS);
    repo.write("../plan.md", plan("Change a", &[edit("a.txt", "two", "x")]));
    repo.teddy(&["plan", "--from", "../plan.md"]).check(3, &[]);
    repo.teddy(&["execute", "-y"]);
    let log = repo.json(&["log"], 0);
    assert_eq!(
        [&log[0]["title"], &log[1]["title"]],
        ["Change a", "Change a"],
        "{log}"
    );
}
