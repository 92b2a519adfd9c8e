//! The loop of `start` and `resume`, with and without a user.

use crate::fake::{Act, Fake, begun, stream};
use crate::plans::{chat, create, edit, execute, plan};
use crate::screen::Screen;
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "a.txt"]);
    repo
}

fn make(name: &str) -> String {
    plan(
        &format!("Make {name}"),
        &[create(&format!("{name}.txt"), &format!("{name}\n"))],
    )
}

/// A plan whose FIND does not match.
fn wrong(find: &str) -> String {
    plan(&format!("Change {find}"), &[edit("a.txt", find, "2")])
}

/// Waits for the review, which must be the last thing on the screen.
fn reviewed(screen: &mut Screen, title: &str) {
    while screen
        .wait_for(&format!("Reviewing Plan: \"{title}\""))
        .trim_end()
        .lines()
        .last()
        .is_none_or(|last| !last.ends_with("(q)uit ›"))
    {
        screen.read();
    }
}

/// Waits for a question and its prompt.
fn asked(screen: &mut Screen, question: &str) {
    screen.wait_for(&format!("{question}\n"));
    screen.wait_for("ctrl-d leaves\n›");
}

/// Returns the subjects of the turns, newest first.
fn turns(repo: &TestRepo) -> String {
    repo.git(&[
        "log",
        "--first-parent",
        "--format=%s",
        "teddy/sessions/demo",
    ])
    .replace('\n', ", ")
}

#[test]
fn without_a_person_the_loop_goes_on_by_itself_to_its_limit() {
    let repo = project();
    repo.reply(&make("b")).reply(&make("c")).reply(&make("d"));
    let out = repo.teddy(&["resume", "--yolo", "-m", "go", "--max-turns", "2"]);
    out.check(
        5,
        &[
            "turn 1 executed",
            "turn 2 executed",
            "stopped after 2 turns",
        ],
    );
    assert_eq!(turns(&repo), "Make c, Make b, Start session demo");
    let prompt = |turn: &str| {
        (
            repo.done(&["show", turn, "user_prompt.txt"]),
            repo.done(&["show", turn, "meta.yaml"])
                .contains("origin: user\n"),
        )
    };
    assert_eq!(prompt("1"), ("go".to_owned(), true));
    // A generated message is not attributed to the user.
    assert_eq!(
        prompt("2"),
        ("Continue with the next step.".to_owned(), false)
    );
    repo.teddy(&["-c", "limits.turns=1", "resume", "--yolo"])
        .check(5, &["stopped after 1 turn"]);
    assert_eq!(turns(&repo), "Make d, Make c, Make b, Start session demo");
}

#[test]
fn a_question_of_the_model_stops_it_and_the_next_message_answers() {
    let repo = project();
    repo.reply(&plan("Ask", &[chat("Red or blue?")]))
        .reply(&make("blue"))
        .reply(&make("never"));
    repo.teddy(&["resume", "--yolo", "-m", "paint it"])
        .check(5, &["the model waits for your answer", "teddy resume -m"]);
    repo.teddy(&["resume", "-y", "-m", "blue"])
        .check(0, &["turn 2 executed"]);
    assert_eq!(repo.done(&["show", "2", "user_prompt.txt"]), "blue");
    assert_eq!(turns(&repo), "Make blue, Ask, Start session demo");
}

#[test]
fn a_second_rejected_correction_in_a_row_stops_it() {
    let repo = project();
    repo.reply(&wrong("two"))
        .reply(&wrong("three"))
        .reply(&wrong("four"))
        .reply(&make("never"));
    let out = repo.teddy(&["resume", "--yolo", "-m", "go"]);
    out.check(
        3,
        &[
            "3 plans in a row were rejected",
            "stopped: the plan was rejected",
        ],
    );
    assert_eq!(
        turns(&repo),
        "Change four, Change three, Change two, Start session demo"
    );
    assert_eq!(repo.json(&["status"], 0)["state"], "ready");
}

#[test]
fn one_rejected_plan_is_corrected_and_the_loop_goes_on() {
    let repo = project();
    repo.reply(&wrong("two"))
        .reply(&make("b"))
        .reply(&make("c"));
    repo.teddy(&["resume", "--yolo", "-m", "go", "--max-turns", "3"])
        .check(5, &[]);
    assert_eq!(
        turns(&repo),
        "Make c, Make b, Change two, Start session demo"
    );
}

#[test]
fn the_limit_of_dollars_stops_it_before_the_call() {
    let repo = project();
    let answers: Vec<String> = ["b", "c", "d"]
        .iter()
        .map(|name| stream(&make(name), "stop", (1_000_000, 0)))
        .collect();
    let fake = Fake::answering(&answers);
    let model = format!(
        "{{ kind: openai, id: x, base_url: \"{}/v1\", price: {{ input: 1, output: 0 }} }}",
        fake.origin
    );
    repo.configure(&format!("model: fake\nmodels:\n  fake: {model}\n"));
    repo.teddy(&["resume", "--yolo", "-m", "go", "--max-cost", "2"])
        .check(
            5,
            &["stopped: the session has cost $2.00, and the limit is $2.00"],
        );
    assert_eq!(
        (turns(&repo).as_str(), fake.requests().len()),
        ("Make c, Make b, Start session demo", 2)
    );
    repo.teddy(&["resume", "--yolo", "-m", "go", "--max-cost", "2"])
        .check(5, &["stopped: the call would cost"]);
    assert_eq!(fake.requests().len(), 2);
}

#[test]
fn a_model_that_fails_loses_no_turn_before_it() {
    let repo = project();
    std::fs::create_dir(repo.beside("answers")).unwrap();
    std::fs::write(repo.beside("answers/1.md"), make("b")).unwrap();
    std::fs::write(repo.beside("answers/2.md"), make("c")).unwrap();
    repo.configure(&format!(
        "model: replay:{}\n",
        repo.beside("answers").display()
    ));
    let out = repo.teddy(&["resume", "--yolo", "-m", "go"]);
    out.check(
        1,
        &[
            "turn 1 executed",
            "turn 2 executed",
            "all 2 recorded answers are used up",
        ],
    );
    let value = repo.json(&["resume", "--yolo", "-m", "more"], 1);
    assert_eq!(value["turns"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_message_behind_a_waiting_plan_is_kept_for_the_turn_after_it() {
    let repo = project();
    repo.reply(&make("b")).reply(&make("c"));
    repo.done(&["plan", "-m", "one"]);
    repo.teddy(&["resume", "-y", "-m", "two"]).check(
        0,
        &["turn 1 executed", "your message is kept for the next turn"],
    );
    repo.teddy(&["resume", "-y"]).check(0, &["turn 2 executed"]);
    assert_eq!(repo.done(&["show", "2", "user_prompt.txt"]), "two");
}

#[test]
fn without_a_person_the_flag_that_answers_is_named() {
    let repo = project();
    repo.reply(&make("b"));
    repo.teddy(&["resume"]).check(1, &["`-m "]);
    repo.teddy(&["resume", "-m", "go"])
        .check(1, &["`-y` approves it"]);
    assert_eq!(repo.json(&["status"], 0)["state"], "planned");
    // Don't create a session that cannot continue.
    repo.teddy(&["start", "more"]).check(
        1,
        &["`more` was taken as the session's name; `-m more` makes it"],
    );
    repo.configure("");
    repo.teddy(&["start", "more", "-m", "go"])
        .check(1, &["no model is configured"]);
    assert_eq!(
        repo.json(&["sessions"], 0).as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn a_person_is_asked_again_and_again_and_leaves_with_ctrl_d() {
    let repo = project();
    repo.reply(&make("b"))
        .reply(&plan("Ask", &[chat("Red or blue?")]))
        .reply(&make("blue"));
    let mut screen = Screen::open(&repo, (100, 40), &["resume"]);
    asked(&mut screen, "turn 1: what should be done?");
    screen.press("make b\r");
    screen.wait_for("(q)uit ›");
    screen.press("a");
    asked(&mut screen, "turn 2: what should be done?");
    screen.press("paint it\r");
    asked(&mut screen, "Your answer:");
    screen.press("blue\r");
    reviewed(&mut screen, "Make blue");
    screen.press("a");
    asked(&mut screen, "turn 4: what should be done?");
    screen.press("\x04");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(turns(&repo), "Make blue, Ask, Make b, Start session demo");
    assert_eq!(repo.done(&["show", "3", "user_prompt.txt"]), "blue");
    assert!(
        repo.done(&["show", "3", "meta.yaml"])
            .contains("origin: user\n")
    );
}

#[test]
fn a_skipped_plan_is_made_again_with_the_persons_words() {
    let repo = project();
    repo.reply(&make("b")).reply(&make("c"));
    let mut screen = Screen::open(&repo, (100, 40), &["resume", "-m", "make b"]);
    screen.wait_for("(q)uit ›");
    screen.press("s");
    asked(&mut screen, "Skipped Make b. What should be done instead?");
    screen.press("rather c\r");
    reviewed(&mut screen, "Make c");
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(turns(&repo), "Make b, Start session demo");
    assert!(
        repo.done(&["show", "1", "meta.yaml"])
            .contains("status: declined")
    );
    assert_eq!(
        repo.git(&["show", "refs/teddy/drafts/demo:user_prompt.txt"]),
        "rather c"
    );
    assert!(!repo.path().join("b.txt").exists());
}

#[test]
fn ctrl_c_leaves_with_130_wherever_the_person_is() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = Screen::open(&repo, (100, 40), &["resume"]);
    asked(&mut screen, "turn 1: what should be done?");
    screen.press("\x03");
    assert_eq!(screen.end(), 130, "{}", screen.shown());
    let mut screen = Screen::open(&repo, (100, 40), &["resume", "-m", "go"]);
    screen.wait_for("(q)uit ›");
    screen.press("\x03");
    assert_eq!(screen.end(), 130, "{}", screen.shown());
    assert_eq!(repo.json(&["status"], 0)["state"], "planned");
}

#[test]
fn ctrl_c_while_the_model_writes_leaves_the_loop_and_keeps_what_arrived() {
    let repo = project();
    let fake = Fake::start(vec![
        vec![Act::Send(stream(&make("b"), "stop", (9, 9)))],
        vec![Act::Send(begun("# Half a plan\n\nand more")), Act::Stall],
    ]);
    repo.configure(&format!(
        "model: fake\nmodels:\n  fake: {{ kind: openai, id: x, base_url: \"{}/v1\" }}\n",
        fake.origin
    ));
    let mut screen = Screen::open(&repo, (100, 40), &["resume", "-m", "make b"]);
    reviewed(&mut screen, "Make b");
    screen.press("a");
    asked(&mut screen, "turn 2: what should be done?");
    screen.press("make c\r");
    screen.wait_for("Half a plan");
    screen.press("\x03");
    assert_eq!(screen.end(), 130, "{}", screen.shown());
    assert_eq!(turns(&repo), "Make b, Start session demo");
    assert_eq!(
        repo.git(&["show", "refs/teddy/drafts/demo:reply.md"]),
        "# Half a plan\n\nand more"
    );
    // The next call uses the message.
    repo.reply(&make("never")).reply(&make("c"));
    repo.teddy(&["resume", "-y"])
        .check(0, &["Using the waiting message: make c", "turn 2 executed"]);
}

#[test]
fn an_unattended_loop_at_a_terminal_waits_for_the_answer_and_goes_on() {
    let repo = project();
    repo.reply(&plan("Ask", &[chat("Red or blue?")]))
        .reply(&plan("End", &[execute("true")]));
    let mut screen = Screen::open(
        &repo,
        (100, 40),
        &["resume", "--yolo", "--max-turns", "2", "-m", "paint it"],
    );
    asked(&mut screen, "Your answer:");
    screen.press("blue\r");
    assert_eq!(screen.end(), 5, "{}", screen.shown());
    assert_eq!(turns(&repo), "End, Ask, Start session demo");
    assert_eq!(repo.done(&["show", "2", "user_prompt.txt"]), "blue");
}
