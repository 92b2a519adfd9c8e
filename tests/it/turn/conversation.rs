//! The state of a conversation: when the work is done, a question that waits for an answer, and the
//! user's requests, which every input contains.

use serde_json::{Value, json};
use teddy::workflow::execute::options::ExecuteOptions;
use teddy::workflow::plan::PlanOptions;
use teddy::workflow::restore::RestoreOptions;
use teddy::workflow::resume::ResumeOptions;

use crate::fake::{Fake, response};
use crate::plans::{chat, conclude, create, edit, execute, invoke, plan, read};
use crate::screen::Screen;
use crate::support::{Output, TestRepo};

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo
}

fn make(name: &str) -> String {
    plan(
        &format!("Make {name}"),
        &[create(&format!("{name}.txt"), &format!("{name}\n"))],
    )
}

/// Returns the number of the newest turn.
fn turns(repo: &TestRepo) -> u64 {
    repo.workflow().status()["turn"].as_u64().unwrap()
}

/// Returns the waiting question and the conclusion.
fn open_question_and_conclusion(repo: &TestRepo) -> Value {
    let status = repo.workflow().status();
    json!([status["question"], status["conclusion"]])
}

/// What a refused command must not change.
fn refs(repo: &TestRepo) -> String {
    repo.git(&["for-each-ref"])
}

#[test]
fn promise_a7_conclude_without_a_caller_ends_the_work() {
    let repo = project();
    repo.reply(&plan(
        "All of it",
        &[create("b.txt", "b\n"), conclude(&[], "Both are **there**.")],
    ))
    .reply(&make("never"));
    insta::assert_snapshot!(repo.printed(&["resume", "--yolo", "-m", "go"]), @r#"
    turn 1 executed [id]
    Both are **there**.
    --- stderr
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "All of it"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      All of it, because it is wanted.
     Changes: 1 file  +1
      b.txt  +1  new file
        +b
     Action Plan:
      - CREATE: 1 file
      - CONCLUDE: 1 message
          Both are **there**.
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    ▶ 2. CONCLUDE Both are **there**.
      ✓ done
    Updated your files: b.txt (new)
    The work is done, says the model:
    exit code 0
    "#);
    assert_eq!(
        open_question_and_conclusion(&repo),
        json!([null, "Both are **there**."])
    );
    insta::assert_snapshot!(repo.printed(&["status"]), @r"
    Session demo, turn 1, on branch main
    Ready for turn 2
    The work is done, says the model:
      Both are **there**.
    Your files are as the newest turn left them
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");

    // Neither the model nor the user is asked again.
    let again = [&["resume"][..], &["resume", "-y"], &["resume", "--yolo"]];
    let again = again.map(|args| repo.printed(args));
    insta::assert_snapshot!(again.concat(), @r"
    Both are **there**.
    --- stderr
    The work is done, says the model:
    Next: teddy resume '...', if there is more to do
    exit code 0
    Both are **there**.
    --- stderr
    The work is done, says the model:
    Next: teddy resume '...', if there is more to do
    exit code 0
    Both are **there**.
    --- stderr
    The work is done, says the model:
    Next: teddy resume '...', if there is more to do
    exit code 0
    ");
    let mut screen = Screen::open(&repo, (100, 30), &["resume"]);
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(turns(&repo), 1);
}

#[test]
fn promise_a7_work_that_is_done_goes_on_with_a_new_message() {
    let repo = project();
    repo.reply(&plan("All", &[conclude(&[], "Done.")]))
        .reply(&make("more"));
    repo.workflow().resume(Some("go")).done();
    insta::assert_snapshot!(repo.workflow().resume(Some("more")).done(), @r"
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE more.txt
      ✓ created, 1 line
    turn 2 executed
      added more.txt
    ended: Left
    ");
    assert_eq!(open_question_and_conclusion(&repo), json!([null, null]));
    // Whoever goes back to where it was done is where it was done.
    repo.workflow().undo(1).done();
    assert_eq!(open_question_and_conclusion(&repo), json!([null, "Done."]));
    // Bug: the conclusion of an earlier turn was shown after later ones.
    repo.write("by-hand.txt", "x\n");
    repo.done(&["record", "By hand"]);
    assert_eq!(open_question_and_conclusion(&repo), json!([null, null]));
    repo.workflow().undo(1).done();
    repo.reply("It is fine.");
    repo.workflow().ask("is it good?").done();
    assert_eq!(open_question_and_conclusion(&repo), json!([null, null]));
}

#[test]
fn promise_a7_who_was_called_returns_and_ends_nothing() {
    let repo = project();
    repo.workflow().run_plan(&plan(
        "Hand over",
        &[invoke("Architect", &[], "Design it.")],
    ));
    repo.workflow()
        .run_plan(&plan("Designed", &[conclude(&[], "Here it is.")]));
    assert_eq!(open_question_and_conclusion(&repo), json!([null, null]));
    repo.workflow()
        .run_plan(&plan("Done", &[conclude(&[], "All of it.")]));
    assert_eq!(
        open_question_and_conclusion(&repo),
        json!([null, "All of it."])
    );
}

#[test]
fn promise_a7_a_question_beside_the_conclusion_keeps_the_work_open() {
    let repo = project();
    repo.reply(&plan("All", &[chat("Is it good?"), conclude(&[], "Done.")]));
    repo.workflow().resume_yolo("go").refused();
    assert_eq!(
        open_question_and_conclusion(&repo),
        json!(["Is it good?", null])
    );
}

#[test]
fn promise_a7_a_file_that_is_no_plan_is_refused_without_a_turn_and_a_model() {
    let repo = project();
    repo.reply(&make("b"));
    repo.write(
        "README.md",
        "# Project\n\n## Usage\n\nRun it.\n\n### Read this\n\n- well\n",
    );
    repo.write("empty.md", "\n\n");
    repo.write("sorry.md", "Sorry, I cannot do that.\n");
    repo.write("main.rs", "fn main() {}\n");
    repo.workflow().plan("make b").done();
    let before = refs(&repo);
    let refused = ["README.md", "empty.md", "sorry.md", "main.rs"].map(|file| {
        let reply = repo.workflow().execute_file(file, true).refused();
        let alone = repo.workflow().execute_file(file, false).refused();
        assert_eq!(reply, alone);
        assert_eq!(refs(&repo), before, "{file}");
        format!("{file}: {reply}")
    });
    insta::assert_snapshot!(refused.concat(), @r#"
    README.md: not a plan in demo
    plan.md:1: the plan has no `## Rationale`
        hint: add `## Rationale` with one code block before `## Action Plan`
    plan.md:3: unknown level 2 heading "Usage"
        hint: a plan has `## Rationale`, `## Memos` if needed, and `## Action Plan`; put other headings into a code block
    plan.md:7: unknown level 3 heading "Read this"
        hint: a plan has `## Rationale`, `## Memos` if needed, and `## Action Plan`; put other headings into a code block
    plan.md:9: the plan has no `## Action Plan`
        hint: add `## Action Plan` and at least one action
    empty.md: not a plan in demo
    plan.md:1: the plan is empty
        hint: start with `# Title`
    sorry.md: not a plan in demo
    plan.md:1: the plan has no level 1 heading
        hint: start the plan with `# Title`
    plan.md:1: the plan has no `## Rationale`
        hint: add `## Rationale` with one code block before `## Action Plan`
    plan.md:1: the plan has no `## Action Plan`
        hint: add `## Action Plan` and at least one action
    main.rs: not a plan in demo
    plan.md:1: the plan has no level 1 heading
        hint: start the plan with `# Title`
    plan.md:1: the plan has no `## Rationale`
        hint: add `## Rationale` with one code block before `## Action Plan`
    plan.md:1: the plan has no `## Action Plan`
        hint: add `## Action Plan` and at least one action
    "#);
    // The plan that waited still does.
    repo.workflow().execute().done();
    assert_eq!(repo.read("b.txt"), "b\n");
}

#[test]
fn promise_a7_a_plan_with_mistakes_is_still_a_turn_and_goes_back_to_the_model() {
    let refused = [
        "# T\n\n## Rationale\n````\nr\n````\n".to_owned(),
        "### `READ`\n- **Resource:** [a.txt](/../a.txt)\n".to_owned(),
        plan("Wrong", &[edit("a.txt", "nine", "9")]),
    ]
    .map(|text| {
        let repo = project();
        repo.reply(&make("b"));
        repo.workflow().execute_text(&text).refused()
    });
    insta::assert_snapshot!(refused.join("\n"), @r#"
    The plan was not accepted: 1 mistake
    plan.md:6: the plan has no `## Action Plan`
        hint: add `## Action Plan` and at least one action
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:6: the plan has no `## Action Plan`
        hint: add `## Action Plan` and at least one action
    planned turn 2: "Make b"

    The plan was not accepted: 1 mistake
    plan.md:11: READ [a.txt](/../a.txt): the link's text `a.txt` and its destination `/../a.txt` differ: "[a.txt](/../a.txt)"
        hint: write `[path/from/root](/path/from/root)`, text and destination alike, inside the project
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:11: READ [a.txt](/../a.txt): the link's text `a.txt` and its destination `/../a.txt` differ: "[a.txt](/../a.txt)"
        hint: write `[path/from/root](/path/from/root)`, text and destination alike, inside the project
    planned turn 2: "Make b"

    The model changed files that it had not read: showing it `a.txt` and asking again.
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 recorded
    plan.md:13: EDIT a.txt: `a.txt` is in no context list
        hint: READ it in this plan and edit it in the next one, when its text is before you; by hand, `teddy context add /a.txt` adds it
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 2: "Make b"
    "#);
}

#[test]
fn promise_c2_a_question_ends_an_unattended_loop_with_a_code_of_its_own() {
    let repo = project();
    let question = "Which colour?\n\n- red\n- blue\n\nI need to know before I go on.";
    repo.reply(&plan("Ask", &[chat(question)]))
        .reply(&make("blue"));
    insta::assert_snapshot!(repo.workflow().resume_yolo("paint it").refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CHAT_WITH_USER Which colour?
      ✓ asks the user
    turn 1 executed
      asks (Open): Which colour?

    - red
    - blue

    I need to know before I go on.
    ended: Question("Which colour?\n\n- red\n- blue\n\nI need to know before I go on.")
    "#);
    assert_eq!(open_question_and_conclusion(&repo), json!([question, null]));
    insta::assert_snapshot!(repo.printed(&["status"]), @r"
    Session demo, turn 1, on branch main
    Ready for turn 2
    The model waits for your answer:
      Which colour?

      - red
      - blue

      I need to know before I go on.
    Your files are as the newest turn left them
    --- stderr
    Next: teddy resume -m '<answer>'
    exit code 0
    ");
    insta::assert_snapshot!(repo.workflow().resume_turns(Some("blue"), 1).refused(), @r"
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE blue.txt
      ✓ created, 1 line
    turn 2 executed
      added blue.txt
    ended: Turns(1)
    ");
    assert_eq!(repo.workflow().artifact("2", "user_prompt.txt"), "blue");
    assert_eq!(open_question_and_conclusion(&repo), json!([null, null]));
}

#[test]
fn promise_c2_no_call_runs_past_a_question_that_waits() {
    let repo = project();
    repo.reply(&plan("Ask", &[chat("Red or blue?")]))
        .reply(&make("never"));
    repo.workflow().resume_yolo("paint it").refused();
    let before = refs(&repo);
    let yolo = ResumeOptions {
        yolo: true,
        alone: true,
        ..ResumeOptions::default()
    };
    let replies = [
        repo.workflow().resume_with(yolo).refused(),
        repo.workflow().resume(None).refused(),
        repo.workflow().plan_with(PlanOptions::default()).refused(),
    ];
    assert_eq!(refs(&repo), before);
    insta::assert_snapshot!(replies.join("\n"), @r#"
    ended: Question("Red or blue?")

    ended: Question("Red or blue?")

    error: the model waits for your answer
    Red or blue?
    hint: `teddy resume -m '<answer>'` answers and continues
    exit code 5
    "#);
}

#[test]
fn promise_c2_the_next_loop_shows_the_question_whole_and_waits() {
    let repo = project();
    repo.reply(&plan("Ask", &[chat("Red or blue?\n\nSay why, too.")]))
        .reply(&make("blue"));
    repo.workflow().resume_yolo("paint it").refused();
    for flags in [&["resume"][..], &["resume", "--yolo"], &["plan"]] {
        let mut screen = Screen::open(&repo, (100, 30), flags);
        let shown = screen.wait_for("Your answer:");
        assert!(
            shown.contains("Red or blue?") && shown.contains("Say why, too."),
            "{shown}"
        );
        screen.press("\x04");
        assert_eq!(screen.end(), 5, "{}", screen.shown());
    }
    let mut screen = Screen::open(&repo, (100, 30), &["resume"]);
    screen.wait_for("Your answer:");
    screen.press("blue\r");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(
        repo.git(&["show", "refs/teddy/drafts/demo:user_prompt.txt"]),
        "blue"
    );
}

#[test]
fn promise_c2_a_plan_from_a_file_leaves_the_question_open() {
    let repo = project();
    repo.workflow().run_plan(&make("b"));
    let said = repo
        .workflow()
        .execute_text(&plan("Ask", &[chat("Red?"), chat("Or blue?")]))
        .refused();
    insta::assert_snapshot!(said, @r"
    ▶ 1. CHAT_WITH_USER Red?
      ✓ asks the user
    ▶ 2. CHAT_WITH_USER Or blue?
      ✓ asks the user
    turn 2 executed
      asks (Open): Red?

    Or blue?
    ");
    insta::assert_snapshot!(repo.workflow().execute_text(&make("c")).refused(), @r"
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    turn 3 executed
      added c.txt
      asks (Open): Red?

    Or blue?
    ");
    assert_eq!(
        open_question_and_conclusion(&repo),
        json!(["Red?\n\nOr blue?", null])
    );
}

#[test]
fn t12_questions_and_conclusions_are_recorded_for_the_next_turn() {
    let repo = project();
    repo.workflow()
        .execute_text(&plan("Ask", &[chat("Red?")]))
        .refused();
    let next = |turn: &str| {
        let names = repo.workflow().artifacts(turn);
        let wanted = ["next/question.md", "next/conclusion.md"];
        names
            .iter()
            .filter(|name| wanted.contains(&name.as_str()))
            .map(|name| format!("{name}: {}", repo.workflow().artifact(turn, name)))
            .collect::<Vec<_>>()
    };
    assert_eq!(next("1"), ["next/question.md: Red?"]);
    repo.workflow().execute_text(&make("c")).refused();
    assert_eq!(next("2"), ["next/question.md: Red?"]);
    repo.reply(&plan("All", &[conclude(&[], "Done.")]));
    repo.workflow().plan("red, and that is all").done();
    repo.workflow().execute().done();
    assert_eq!(next("3"), ["next/conclusion.md: Done."]);
}

#[test]
fn promise_c2_a_question_follows_branches_and_restores() {
    let repo = project();
    repo.workflow().run_plan(&make("b"));
    repo.workflow()
        .execute_text(&plan("Ask", &[chat("Red?")]))
        .refused();
    repo.reply(&make("c"));
    repo.workflow().plan("red").done();
    repo.workflow().execute().done();
    assert_eq!(open_question_and_conclusion(&repo), json!([null, null]));
    repo.workflow().undo(1).done();
    assert_eq!(open_question_and_conclusion(&repo), json!(["Red?", null]));
    repo.workflow().restore("1").done();
    assert_eq!(open_question_and_conclusion(&repo), json!([null, null]));
    repo.workflow().branch("2", "other").done();
    assert_eq!(open_question_and_conclusion(&repo), json!(["Red?", null]));
}

/// A command line and its expected exit code.
struct Row {
    args: &'static [&'static str],
    answers: &'static [fn() -> String],
    code: i32,
}

fn look() -> String {
    plan("Look", &[read("a.txt")])
}

fn ask() -> String {
    plan("Ask", &[chat("Red or blue?")])
}

fn work() -> String {
    plan("Work", &[execute("true")])
}

/// Runs a command and concludes.
fn end() -> String {
    plan("End", &[execute("true"), conclude(&[], "Done.")])
}

fn fail() -> String {
    plan("Fail", &[execute("false")])
}

/// Fails after a question.
fn ask_and_fail() -> String {
    plan("Ask and fail", &[chat("Red or blue?"), execute("false")])
}

/// Invokes another agent.
fn hand_over() -> String {
    plan(
        "Hand over",
        &[execute("true"), invoke("Architect", &[], "Design it.")],
    )
}

fn wrong() -> String {
    plan("Wrong", &[edit("a.txt", "nine", "9")])
}

/// Command lines without a user.
const ALONE: &[Row] = &[
    // Continues while the model has something to do, and ends where a user would have to answer.
    Row {
        args: &["resume", "-y", "-m", "go"],
        answers: &[end],
        code: 0,
    },
    Row {
        args: &["resume", "-y", "-m", "go"],
        answers: &[work],
        code: 0,
    },
    Row {
        args: &["resume", "-y", "-m", "go"],
        answers: &[look, end],
        code: 0,
    },
    Row {
        args: &["resume", "-y", "-m", "go"],
        answers: &[look, work, ask],
        code: 0,
    },
    Row {
        args: &["resume", "-y", "-m", "go"],
        answers: &[look, look],
        code: 5,
    },
    Row {
        args: &["resume", "-y", "-m", "go", "--max-turns", "1"],
        answers: &[look],
        code: 5,
    },
    Row {
        args: &["resume", "-y", "-m", "go"],
        answers: &[hand_over, end, end],
        code: 0,
    },
    Row {
        args: &["resume", "-y", "-m", "go"],
        answers: &[ask],
        code: 5,
    },
    Row {
        args: &["resume", "-y", "-m", "go"],
        answers: &[ask_and_fail],
        code: 5,
    },
    Row {
        args: &["resume", "-y", "-m", "go"],
        answers: &[fail, work],
        code: 0,
    },
    Row {
        args: &["resume", "-y", "-m", "go"],
        answers: &[fail, fail],
        code: 1,
    },
    Row {
        args: &["resume", "-y", "-m", "go"],
        answers: &[wrong, work],
        code: 0,
    },
    Row {
        args: &["resume", "-y", "-m", "go"],
        answers: &[wrong, wrong],
        code: 3,
    },
    Row {
        args: &["start", "--name", "x", "-y", "-m", "go"],
        answers: &[end],
        code: 0,
    },
    Row {
        args: &["start", "--name", "x", "-y", "-m", "go"],
        answers: &[look, ask],
        code: 5,
    },
    Row {
        args: &["start", "--name", "x", "-y", "-m", "go"],
        answers: &[ask],
        code: 5,
    },
    Row {
        args: &["start", "-y", "-m", "go"],
        answers: &[look, look],
        code: 5,
    },
    Row {
        args: &["-c", "limits.turns=2", "start", "-y", "go on"],
        answers: &[look, fail, work],
        code: 1,
    },
    // `--yolo` continues on its own.
    Row {
        args: &["resume", "--yolo", "-m", "go"],
        answers: &[look, work, end],
        code: 0,
    },
    Row {
        args: &["resume", "--yolo", "-m", "go"],
        answers: &[look, ask, work],
        code: 5,
    },
    Row {
        args: &["resume", "--yolo", "-m", "go"],
        answers: &[wrong, work, ask],
        code: 5,
    },
    Row {
        args: &["resume", "--yolo", "-m", "go", "--max-turns", "1"],
        answers: &[end],
        code: 0,
    },
    Row {
        args: &["resume", "--yolo", "-m", "go", "--max-turns", "1"],
        answers: &[work],
        code: 5,
    },
    Row {
        args: &["resume", "--yolo", "-m", "go", "--max-turns", "1"],
        answers: &[fail],
        code: 1,
    },
    Row {
        args: &["-c", "limits.turns=1", "resume", "--yolo", "-m", "go"],
        answers: &[work],
        code: 5,
    },
    Row {
        args: &["start", "--name", "x", "--yolo", "-m", "go"],
        answers: &[look, end],
        code: 0,
    },
    Row {
        args: &["start", "--name", "x", "--yolo", "-m", "go"],
        answers: &[ask],
        code: 5,
    },
    Row {
        args: &[
            "start",
            "--name",
            "x",
            "--yolo",
            "-m",
            "go",
            "--max-turns",
            "1",
        ],
        answers: &[look],
        code: 5,
    },
    // A missing argument is an error, and nothing changes.
    Row {
        args: &["resume"],
        answers: &[work],
        code: 1,
    },
    Row {
        args: &["resume", "-m", "go"],
        answers: &[work],
        code: 1,
    },
    Row {
        args: &["start", "--name", "x"],
        answers: &[work],
        code: 1,
    },
    Row {
        args: &["plan"],
        answers: &[work],
        code: 1,
    },
    // `plan` makes the plan. The question in it comes up on execution.
    Row {
        args: &["plan", "-m", "go"],
        answers: &[ask],
        code: 0,
    },
    Row {
        args: &["plan", "-m", "go"],
        answers: &[wrong],
        code: 3,
    },
];

/// Runs a row in a new project.
fn run(row: &Row, flags: &[&str]) -> (TestRepo, Output) {
    let repo = project();
    for answer in row.answers {
        repo.reply(&answer());
    }
    let out = repo.teddy(&[flags, row.args].concat());
    (repo, out)
}

#[test]
fn promise_c2_without_a_terminal_the_exit_code_has_the_result() {
    // The exit code does not depend on these flags, so each row gets one of them.
    let flags: [&[&str]; 3] = [&[], &["--json"], &["-q"]];
    for (row, flags) in ALONE.iter().zip(flags.iter().cycle()) {
        let (_, out) = run(row, flags);
        let titles: Vec<String> = row
            .answers
            .iter()
            .map(|answer| answer().lines().next().unwrap().to_owned())
            .collect();
        assert_eq!(
            out.code, row.code,
            "{flags:?} {:?} {titles:?}: {out}",
            row.args
        );
    }
}

#[test]
fn promise_c2_what_a_plan_asks_is_asked_when_it_is_executed() {
    for (answer, code) in [
        (ask as fn() -> String, 5),
        (ask_and_fail, 5),
        (look, 0),
        (work, 0),
        (end, 0),
        (hand_over, 0),
        (fail, 1),
    ] {
        let repo = project();
        repo.reply(&answer());
        repo.workflow().plan("go").done();
        let value = repo.json(&["execute", "-y"], code);
        let question = (code == 5).then_some("Red or blue?");
        assert_eq!(value["question"], json!(question), "{value}");
    }
}

#[test]
fn promise_c2_json_has_the_question_and_why_a_loop_ended() {
    let row = |args, answers| Row {
        args,
        answers,
        code: 0,
    };
    let ended = |row: &Row| {
        let (_, out) = run(row, &["--json"]);
        let value: Value = serde_json::from_str(&out.stdout).unwrap();
        json!([value["question"], value["conclusion"], value["stopped"]])
    };
    assert_eq!(
        ended(&row(&["resume", "--yolo", "-m", "go"], &[ask])),
        json!([
            "Red or blue?",
            null,
            "stopped: the model asks you something"
        ])
    );
    assert_eq!(
        ended(&row(&["resume", "--yolo", "-m", "go"], &[end])),
        json!([null, "Done.", null])
    );
    assert_eq!(
        ended(&row(&["resume", "-y", "-m", "go"], &[work])),
        json!([null, null, null])
    );
}

#[test]
fn promise_c2_at_a_terminal_who_leaves_at_the_question_leaves_it_open() {
    for (args, code) in [
        (&["resume", "-y", "-m", "go"][..], 5),
        (&["resume", "--yolo", "-m", "go"], 5),
        (&["start", "--name", "x", "-y", "-m", "go"], 5),
    ] {
        let repo = project();
        repo.reply(&ask());
        let mut screen = Screen::open(&repo, (100, 30), args);
        screen.wait_for("Your answer:");
        screen.press("\x04");
        assert_eq!(screen.end(), code, "{args:?}: {}", screen.shown());
        assert_eq!(
            open_question_and_conclusion(&repo),
            json!(["Red or blue?", null]),
            "{args:?}"
        );
    }
    let repo = project();
    repo.reply(&ask());
    repo.workflow().plan("go").done();
    let mut screen = Screen::open(&repo, (100, 30), &["execute", "-y"]);
    screen.wait_for("Your answer:");
    screen.press("\x04");
    assert_eq!(screen.end(), 5, "{}", screen.shown());
}

#[test]
fn promise_c2_the_answer_to_a_question_survives_later_words() {
    let repo = project();
    repo.reply(&ask()).reply(&make("b"));
    repo.workflow().plan("go").done();
    let mut screen = Screen::open(&repo, (100, 30), &["execute", "-y"]);
    screen.wait_for("Your answer:");
    screen.press("blue\r");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.workflow().status()["message"], "blue");
    assert_eq!(open_question_and_conclusion(&repo), json!([null, null]));
    insta::assert_snapshot!(repo.workflow().resume(None).done(), @r"
    Using the waiting message: blue
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    turn 2 executed
      added b.txt
    ended: Left
    ");
    assert_eq!(repo.workflow().artifact("2", "user_prompt.txt"), "blue");
}

#[test]
fn promise_c2_feedback_that_waits_for_a_model_does_not_become_a_message() {
    let repo = project();
    repo.reply(&wrong());
    repo.workflow().add(&["a.txt"]);
    repo.workflow().plan("make it 9").refused();
    let fake = Fake::answering(&[response("401 Unauthorized", "", "{}")]);
    repo.configure(&fake.config(""));
    let by_another = ExecuteOptions {
        replan: true,
        model: Some("fake".to_owned()),
        ..ExecuteOptions::default()
    };
    let reply = repo.workflow().execute_by(None, &by_another);
    insta::assert_snapshot!(reply.refused(), @r"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    Asking fake with about [n] tokens, no price set
    the model could not be asked again: http://[host] does not accept the key: {}
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    ");
    repo.reply(&plan("Better", &[edit("a.txt", "one", "9")]));
    insta::assert_snapshot!(repo.workflow().resume(None).done(), @r"
    Using the waiting message: The previous plan failed validation. Please review the errors and the original p...
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. EDIT a.txt
      ✓ changed 1 place: 1 line added, 1 removed
    turn 2 executed
      modified a.txt
    ended: Left
    ");
    let meta = repo.workflow().artifact("2", "meta.yaml");
    assert!(meta.contains("origin: validation\n"), "{meta}");
}

fn input(repo: &TestRepo) -> String {
    repo.workflow().input(0)
}

/// Returns the last section of an input.
fn requests(input: &str) -> &str {
    input
        .split_once("\n## 7. User Requests\n")
        .map_or("", |(_, section)| section)
}

/// Returns the headings in that section.
fn headings(input: &str) -> Vec<&str> {
    requests(input)
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect()
}

/// Plans with a message and executes, with any result.
fn turn(repo: &TestRepo, message: &str, answer: &str) {
    repo.reply(answer);
    let _ = repo.workflow().plan(message);
    let _ = repo.workflow().execute_with(None, false);
}

#[test]
fn promise_c1_every_input_shows_each_request_once_at_any_depth() {
    let repo = project();
    assert_eq!(requests(&input(&repo)), "");
    for (message, name) in [("request-a", "b"), ("request-b", "c"), ("request-c", "d")] {
        turn(&repo, message, &make(name));
    }
    for depth in [0, 1, 9] {
        let input = repo.workflow().input(depth);
        assert_eq!(headings(&input), ["Turn 1", "Turn 2", "Turn 3"], "{depth}");
        for message in ["request-a", "request-b", "request-c"] {
            assert_eq!(
                input.matches(message).count(),
                1,
                "{depth} {message}: {input}"
            );
        }
    }
    // The current message is sent separately from the input.
    repo.reply(&make("e"));
    repo.workflow().plan("request-d").done();
    let sent = repo.git(&["show", "refs/teddy/drafts/demo:input.md"]);
    assert_eq!(headings(&sent), ["Turn 1", "Turn 2", "Turn 3"]);
    assert!(!sent.contains("request-d"), "{sent}");
    assert!(
        input(&repo).contains("user_prompt.txt) (in 7. User Requests)"),
        "{}",
        input(&repo)
    );
}

#[test]
fn promise_c1_an_unattended_loop_keeps_the_request_before_the_model() {
    let repo = project();
    repo.reply(&make("b")).reply(&make("c")).reply(&make("d"));
    repo.workflow()
        .resume_turns(Some("build it all"), 3)
        .refused();
    for turn in ["2", "3"] {
        let sent = repo.workflow().artifact(turn, "input.md");
        assert_eq!(sent.matches("build it all").count(), 1, "{sent}");
        assert!(!sent.contains("Continue with the next step"), "{sent}");
    }
}

#[test]
fn promise_c1_feedback_is_in_one_input_next_to_the_users_message() {
    let repo = project();
    repo.workflow().add(&["a.txt"]);
    let faulty = plan("Faulty", &[edit("a.txt", "nine", "9")]);
    repo.reply(&faulty)
        .reply(&plan("Better", &[edit("a.txt", "one", "9")]))
        .reply(&make("b"));
    repo.workflow().plan("make it nine-fold").refused();
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r#"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 2: "Better"
    "#);

    // The input of the correction.
    let sent = repo.git(&["show", "refs/teddy/drafts/demo:input.md"]);
    let message = repo.git(&["show", "refs/teddy/drafts/demo:user_prompt.txt"]);
    assert_eq!(sent.matches("make it nine-fold").count(), 1, "{sent}");
    assert!(!message.contains("make it nine-fold"), "{message}");
    assert_eq!(format!("{sent}{message}").matches("# Faulty").count(), 1);

    // What comes after it.
    repo.workflow().execute().done();
    for depth in [0, 3] {
        let input = repo.workflow().input(depth);
        assert_eq!(headings(&input), ["Turn 1"]);
        assert!(!input.contains("failed validation"), "{input}");
        assert!(!input.contains("Original Faulty Plan"), "{input}");
        assert_eq!(input.matches("make it nine-fold").count(), 1, "{input}");
    }
    // The turn still records it.
    assert!(
        repo.workflow()
            .artifact("2", "user_prompt.txt")
            .contains("## Original Faulty Plan")
    );
}

#[test]
fn promise_c1_an_answer_is_next_to_its_question() {
    let repo = project();
    turn(&repo, "paint it", &plan("Ask", &[chat("Red or blue?")]));
    turn(&repo, "the second one", &make("blue"));
    turn(&repo, "go on", &make("more"));
    let input = input(&repo);
    assert!(
        requests(&input).contains(
            "### Turn 2\nYour question:\n````markdown\nRed or blue?\n````\nThe answer:\n````text\nthe second one\n````\n"
        ),
        "{input}"
    );
}

#[test]
fn promise_c1_an_undone_request_is_marked_until_it_is_redone() {
    let repo = project();
    turn(&repo, "first", &make("b"));
    turn(&repo, "second", &make("c"));
    repo.workflow().undo(1).done();
    assert_eq!(headings(&input(&repo)), ["Turn 1", "Turn 2 (undone since)"]);
    repo.workflow().redo(1).done();
    assert_eq!(headings(&input(&repo)), ["Turn 1", "Turn 2"]);
    repo.workflow().restore("0").done();
    assert_eq!(
        headings(&input(&repo)),
        ["Turn 1 (undone since)", "Turn 2 (undone since)"]
    );
    turn(&repo, "third", &make("d"));
    assert_eq!(
        headings(&input(&repo)),
        ["Turn 1 (undone since)", "Turn 2 (undone since)", "Turn 6"]
    );
    // Files alone go back; the conversation does not.
    repo.workflow()
        .restore_with(
            "2",
            &RestoreOptions {
                files_only: true,
                ..RestoreOptions::default()
            },
        )
        .done();
    assert_eq!(headings(&input(&repo)).last(), Some(&"Turn 6"));
}

#[test]
fn promise_c1_a_branch_has_the_requests_of_the_turns_that_it_shares() {
    let repo = project();
    turn(&repo, "first", &make("b"));
    turn(&repo, "second", &make("c"));
    repo.workflow().branch("1", "other").done();
    turn(&repo, "elsewhere", &make("d"));
    assert_eq!(headings(&input(&repo)), ["Turn 1 of demo", "Turn 2"]);
    let own = repo.workflow().session("demo").input(0);
    assert_eq!(headings(&own), ["Turn 1", "Turn 2"]);
    assert!(!own.contains("elsewhere"), "{own}");
}

#[test]
fn promise_c1_words_whose_plan_was_replaced_are_not_lost() {
    let repo = project();
    repo.reply(&make("b")).reply(&make("c"));
    repo.workflow().plan("paint the shed").done();
    repo.workflow().plan("but blue").done();
    let sent = repo.git(&["show", "refs/teddy/drafts/demo:input.md"]);
    assert_eq!(
        headings(&sent),
        ["Turn 1 (said before the turn's own message; nothing ran for it)"]
    );
    assert_eq!(sent.matches("paint the shed").count(), 1, "{sent}");
    repo.workflow().execute().done();
    assert_eq!(headings(&input(&repo)).last(), Some(&"Turn 1"));
}

#[test]
fn promise_c1_a_retry_sends_what_was_sent() {
    let repo = project();
    turn(&repo, "first", &make("b"));
    turn(&repo, "second", &make("c"));
    repo.remove("c.txt");
    repo.workflow().retry("2", None).done();
    let sent = repo.git(&["show", "refs/teddy/drafts/demo-retry-1:input.md"]);
    assert_eq!(headings(&sent), ["Turn 1"]);
    repo.workflow().execute().done();
    assert_eq!(headings(&input(&repo)), ["Turn 1 of demo", "Turn 2"]);
}

#[test]
fn promise_c1_one_setting_limits_the_requests_but_keeps_the_first() {
    let repo = project();
    let limited = || repo.workflow().setting("context.max_requests_size", "700");
    for n in 1..=9 {
        repo.reply(&make(&format!("f{n}")));
        let message = format!("request {n} {}", "x".repeat(60));
        limited().plan(&message).done();
        limited().execute().done();
    }
    let input = limited().input(0);
    assert_eq!(
        headings(&input),
        ["Turn 1", "Turn 6", "Turn 7", "Turn 8", "Turn 9"]
    );
    assert!(
        requests(&input).contains("(4 requests left out)"),
        "{input}"
    );
    let kept = repo.workflow().artifact("9", "next/requests.yaml");
    assert!(kept.len() < 2000, "{kept}");
}

#[test]
fn q2_only_words_of_the_user_are_requests() {
    let repo = project();
    repo.workflow().add(&["a.txt"]);
    repo.reply(&plan("Faulty", &[edit("a.txt", "nine", "9")]))
        .reply(&make("b"))
        .reply(&make("c"));
    repo.workflow().resume_turns(Some("go"), 3).refused();
    repo.workflow().run_plan(&make("d"));
    assert_eq!(turns(&repo), 4);
    assert_eq!(headings(&input(&repo)), ["Turn 1"]);
}

#[test]
fn q3_a_turn_passes_on_earlier_requests_and_its_own() {
    let repo = project();
    turn(&repo, "first", &make("b"));
    turn(&repo, "second", &make("c"));
    let list = |turn: &str, name: &str| repo.workflow().artifact(turn, name);
    assert_eq!(list("2", "requests.yaml"), list("1", "next/requests.yaml"));
    let handed_on = list("2", "next/requests.yaml");
    assert!(
        handed_on.starts_with("schema: 1\nrequests:\n- turn: 1\n  session: demo\n")
            && handed_on.contains("  text: first\n- turn: 2\n")
            && handed_on.ends_with("  text: second\n"),
        "{handed_on}"
    );
}
