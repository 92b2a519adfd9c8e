//! The loop of `start` and `resume`, with and without a user.

use teddy::workflow::resume::ResumeOptions;

use crate::fake::{Act, Fake, begun, stream};
use crate::plans::{chat, create, edit, execute, plan};
use crate::screen::Screen;
use crate::support::TestRepo;
use crate::support::in_process::Reply;
use crate::support::scripted_user::{Scripted, ScriptedUser};

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
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
    screen.wait_for_prompt("\n›");
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
    insta::assert_snapshot!(repo.workflow().resume_turns(Some("go"), 2).refused(), @r"
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    turn 1 executed
      added b.txt
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    turn 2 executed
      added c.txt
    ended: Turns(2)
    ");
    assert_eq!(turns(&repo), "Make c, Make b, Start session demo");
    let prompt = |turn: &str| {
        (
            repo.workflow().artifact(turn, "user_prompt.txt"),
            repo.workflow()
                .artifact(turn, "meta.yaml")
                .contains("origin: user\n"),
        )
    };
    assert_eq!(prompt("1"), ("go".to_owned(), true));
    // A generated message is not attributed to the user.
    assert_eq!(
        prompt("2"),
        ("Continue with the next step.".to_owned(), false)
    );
    let limited = repo.workflow().setting("limits.turns", "1");
    let yolo = ResumeOptions {
        yolo: true,
        alone: true,
        ..ResumeOptions::default()
    };
    insta::assert_snapshot!(limited.resume_with(yolo).refused(), @r"
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE d.txt
      ✓ created, 1 line
    turn 3 executed
      added d.txt
    ended: Turns(1)
    ");
    assert_eq!(turns(&repo), "Make d, Make c, Make b, Start session demo");
}

#[test]
fn a_question_of_the_model_stops_it_and_the_next_message_answers() {
    let repo = project();
    repo.reply(&plan("Ask", &[chat("Red or blue?")]))
        .reply(&make("blue"))
        .reply(&make("never"));
    insta::assert_snapshot!(repo.workflow().resume_yolo("paint it").refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CHAT_WITH_USER Red or blue?
      ✓ asks the user
    turn 1 executed
      asks (Open): Red or blue?
    ended: Question("Red or blue?")
    "#);
    insta::assert_snapshot!(repo.workflow().resume(Some("blue")).done(), @r"
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE blue.txt
      ✓ created, 1 line
    turn 2 executed
      added blue.txt
    ended: Left
    ");
    assert_eq!(repo.workflow().artifact("2", "user_prompt.txt"), "blue");
    assert_eq!(turns(&repo), "Make blue, Ask, Start session demo");
}

#[test]
fn a_second_rejected_correction_in_a_row_stops_it() {
    let repo = project();
    repo.reply(&wrong("two"))
        .reply(&wrong("three"))
        .reply(&wrong("four"))
        .reply(&make("never"));
    insta::assert_snapshot!(repo.workflow().resume_yolo("go").refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 2: "Change three", 1 mistakes
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    Asking replay:[dir]/answers with about [n] tokens
    turn 2 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 3: "Change four", 1 mistakes
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    3 plans in a row were rejected; say what to do with `teddy plan '<message>'`
    turn 3 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    ended: Rejected
    "#);
    assert_eq!(
        turns(&repo),
        "Change four, Change three, Change two, Start session demo"
    );
    assert_eq!(repo.workflow().status()["state"], "ready");
}

#[test]
fn one_rejected_plan_is_corrected_and_the_loop_goes_on() {
    let repo = project();
    repo.reply(&wrong("two"))
        .reply(&make("b"))
        .reply(&make("c"));
    repo.workflow().resume_turns(Some("go"), 3).refused();
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
    let resume = || {
        repo.workflow().resume_with(ResumeOptions {
            message: Some("go".to_owned()),
            yolo: true,
            alone: true,
            max_cost: Some(2.0),
            ..ResumeOptions::default()
        })
    };
    insta::assert_snapshot!(resume().refused(), @r"
    Asking fake with about [n] tokens, $[n] and the answer
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    turn 1 executed
      added b.txt
    Asking fake with about [n] tokens, $[n] and the answer
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    turn 2 executed
      added c.txt
    ended: Cost { used: 2.0, limit: 2.0 }
    ");
    assert_eq!(
        (turns(&repo).as_str(), fake.requests().len()),
        ("Make c, Make b, Start session demo", 2)
    );
    insta::assert_snapshot!(resume().refused(), @r#"
    Asking fake with about [n] tokens, $[n] and the answer
    ended: NextCall("the call would cost about $0.00, $2.00 is spent, and the limit is $2.00; nothing was sent")
    "#);
    assert_eq!(fake.requests().len(), 2);
}

#[test]
fn an_input_that_the_server_cut_is_a_warning_and_stops_an_unattended_loop() {
    let repo = project();
    repo.write("big.txt", "0123 ".repeat(20_000));
    repo.workflow().add(&["big.txt"]);
    let fake = Fake::answering(&[
        stream(&make("b"), "stop", (2051, 9)),
        stream(&make("c"), "stop", (60_000, 9)),
    ]);
    repo.configure(&format!(
        "model: fake\nmodels:\n  fake: {{ kind: openai, id: x, base_url: \"{}/v1\" }}\n",
        fake.origin
    ));
    let cut = repo.workflow().resume_turns(Some("make b"), 1).refused();
    insta::assert_snapshot!(cut, @"
    About [n] tokens in each turn: big.txt is 60,000 of them (`teddy context rm /big.txt` leaves it out)
    Asking fake with about [n] tokens, no price set
    warning: the server read only 2,051 of about [n] tokens, so the model has not seen all of the input.
    Its context window is too small: for Ollama, start the server with `OLLAMA_CONTEXT_LENGTH=131072`, or set `num_ctx` in the Modelfile.
    ended: InputCut
    ");
    assert!(!repo.path().join("b.txt").exists());
    let whole = repo.workflow().plan("make c").done();
    insta::assert_snapshot!(whole, @r#"
    About [n] tokens in each turn: big.txt is 60,000 of them (`teddy context rm /big.txt` leaves it out)
    Asking fake with about [n] tokens, no price set
    planned turn 1: "Make c"
    "#);
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
    insta::assert_snapshot!(repo.workflow().resume_yolo("go").refused(), @r"
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    turn 1 executed
      added b.txt
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    turn 2 executed
      added c.txt
    Asking replay:[dir]/answers with about [n] tokens
    error: all 2 recorded answers are used up
    hint: add another answer, or use another model with `--model`
    exit code 1
    ");
    insta::assert_snapshot!(repo.workflow().resume_yolo("more").refused(), @r"
    Asking replay:[dir]/answers with about [n] tokens
    error: all 2 recorded answers are used up
    hint: add another answer, or use another model with `--model`
    exit code 1
    ");
}

#[test]
fn a_message_behind_a_waiting_plan_is_kept_for_the_turn_after_it() {
    let repo = project();
    repo.reply(&make("b")).reply(&make("c"));
    repo.workflow().plan("one").done();
    insta::assert_snapshot!(repo.workflow().resume(Some("two")).done(), @r"
    a plan is waiting and comes first; your message is for the turn after it
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    turn 1 executed
      added b.txt
    your message is kept for the next turn
    ended: Left
    ");
    insta::assert_snapshot!(repo.workflow().resume(None).done(), @r"
    Using the waiting message: two
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    turn 2 executed
      added c.txt
    ended: Left
    ");
    assert_eq!(repo.workflow().artifact("2", "user_prompt.txt"), "two");
}

#[test]
fn without_a_person_the_flag_that_answers_is_named() {
    let repo = project();
    repo.reply(&make("b"));
    let shown = [&["resume"][..], &["resume", "-m", "go"]].map(|args| repo.printed(args));
    insta::assert_snapshot!(shown.concat(), @r#"
    --- stderr
    error: turn 1 of `demo` needs a message
    hint: `-m '<message>'` says it
    exit code 1
    --- stderr
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "Make b"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Make b, because it is wanted.
     Changes: 1 file  +1
      b.txt  +1  new file
        +b
     Action Plan:
      - CREATE: 1 file
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    error: stdin is not a terminal, so TeDDy cannot ask for approval of this plan
    hint: `-y` approves it
    exit code 1
    "#);
    assert_eq!(repo.workflow().status()["state"], "planned");
    // Nothing is begun that cannot go on.
    insta::assert_snapshot!(repo.printed(&["start"]), @r"
    --- stderr
    error: stdin is not a terminal, so TeDDy cannot ask what to do
    hint: `teddy start '<message>'` says it
    exit code 1
    ");
    repo.configure("");
    insta::assert_snapshot!(repo.printed(&["start", "--name", "more", "-m", "go"]), @r"
    --- stderr
    error: no model is configured
    hint: `teddy setup` sets one up, `--model` names one for this call, and `teddy plan --from <file>` takes an answer from elsewhere
    exit code 1
    ");
    assert_eq!(repo.workflow().sessions().as_array().map(Vec::len), Some(1));
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
    screen.wait_for_prompt("(q)uit ›");
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
    assert_eq!(repo.workflow().artifact("3", "user_prompt.txt"), "blue");
    assert!(
        repo.workflow()
            .artifact("3", "meta.yaml")
            .contains("origin: user\n")
    );
}

#[test]
fn a_skipped_plan_is_made_again_with_the_persons_words() {
    let repo = project();
    repo.reply(&make("b")).reply(&make("c"));
    let user =
        ScriptedUser::deciding([Scripted::Skip(None), Scripted::Quit]).answering(Some("rather c"));
    let options = ResumeOptions {
        message: Some("make b".to_owned()),
        ..ResumeOptions::default()
    };
    let said = repo.workflow().with(user).resume_with(options);
    insta::assert_snapshot!(said, @r#"
    Asking replay:[dir]/answers with about [n] tokens
    review "Make b": Skip(None)
    asked what to do instead of `Make b`: Some("rather c")
    turn 1 declined
      declined: rather c
    Asking replay:[dir]/answers with about [n] tokens
    review "Make c": Quit
    ended: Undecided(2)
    "#);
    assert_eq!(turns(&repo), "Make b, Start session demo");
    assert!(
        repo.workflow()
            .artifact("1", "meta.yaml")
            .contains("status: declined")
    );
    assert_eq!(
        repo.git(&["show", "refs/teddy/drafts/demo:user_prompt.txt"]),
        "rather c"
    );
    assert!(!repo.path().join("b.txt").exists());
}

/// Returns a user who asks for a plan after commands of another terminal.
fn user_during(repo: &TestRepo, lines: &[&[&str]], user: ScriptedUser) -> ScriptedUser {
    let commands = lines.iter().map(|args| {
        let mut command = repo.teddy_command(args);
        command.current_dir(repo.path());
        command
    });
    let commands: Vec<_> = commands.collect();
    user.acting_when_asked(move || {
        for mut command in commands {
            assert!(command.output().unwrap().status.success());
        }
    })
    .answering(Some("make b"))
}

/// Bug: the loop ended with the message that there is no such session.
#[test]
fn a_session_that_is_renamed_meanwhile_goes_on_under_its_new_name() {
    let repo = project();
    repo.reply(&make("b"));
    // The same turns, but not the same session.
    repo.workflow().branch("0", "other").done();
    let user = ScriptedUser::deciding([Scripted::Approve]);
    let user = user_during(&repo, &[&["branch", "-m", "demo", "better"]], user).answering(None);
    let workflow = repo.workflow().session("demo").with(user);
    insta::assert_snapshot!(workflow.resume_with(ResumeOptions::default()), @r#"
    asked message of turn 1 of `demo`: Some("make b")
    Session demo is now better.
    Asking replay:[dir]/answers with about [n] tokens
    review "Make b": Approve
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    turn 1 executed
      added b.txt
    asked message of turn 2 of `better`: None
    ended: Left
    "#);
}

/// Bug: the answer was sent as one to a question that the user had not seen.
#[test]
fn an_answer_is_not_sent_if_another_process_adds_a_turn_meanwhile() {
    let repo = project();
    repo.reply(&plan("Ask", &[chat("Which port?")]));
    repo.done(&["plan", "make b"]);
    repo.teddy(&["execute", "-y"]);
    repo.write("c.txt", "c\n");
    let record = ["record", "by hand"];
    let user = user_during(&repo, &[&record], ScriptedUser::default()).answering(None);
    let workflow = repo.workflow().session("demo").with(user);
    insta::assert_snapshot!(workflow.resume_with(ResumeOptions::default()), @r#"
    asked answer to `Which port?`: Some("make b")
    another process added a turn meanwhile, so your answer was not used: make b
    asked answer to `Which port?`: None
    ended: Question("Which port?")
    "#);
}

/// Bug: only the last name was in the log.
#[test]
fn a_session_that_is_renamed_twice_meanwhile_goes_on() {
    let repo = project();
    repo.reply(&make("b"));
    let user = ScriptedUser::deciding([Scripted::Approve]);
    let renames: [&[&str]; 2] = [
        &["branch", "-m", "demo", "better"],
        &["branch", "-m", "better", "best"],
    ];
    let user = user_during(&repo, &renames, user).answering(None);
    let workflow = repo.workflow().session("demo").with(user);
    insta::assert_snapshot!(workflow.resume_with(ResumeOptions::default()), @r#"
    asked message of turn 1 of `demo`: Some("make b")
    Session demo is now best.
    Asking replay:[dir]/answers with about [n] tokens
    review "Make b": Approve
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    turn 1 executed
      added b.txt
    asked message of turn 2 of `best`: None
    ended: Left
    "#);
}

#[test]
fn a_session_that_is_gone_meanwhile_ends_the_loop_with_a_reason() {
    let repo = project();
    repo.reply(&make("b"));
    repo.workflow().branch("0", "other").done();
    let user = user_during(&repo, &[&["gc", "demo", "-y"]], ScriptedUser::default());
    let workflow = repo.workflow().session("demo").with(user);
    insta::assert_snapshot!(workflow.resume_with(ResumeOptions::default()), @r#"
    asked message of turn 1 of `demo`: Some("make b")
    error: session `demo` is gone: it was renamed or deleted meanwhile
    hint: `teddy sessions` lists the sessions, and `teddy switch <session>` goes to one
    exit code 1
    "#);
}

/// Executes a plan with a question, which gets its answer after a command of another terminal.
fn answered_after(repo: &TestRepo, args: &[&str]) -> Reply {
    repo.reply(&plan("Ask", &[chat("Red or blue?")]))
        .reply(&make("c"));
    let mut command = repo.teddy_command(args);
    command.current_dir(repo.path());
    let user = ScriptedUser::default()
        .acting_when_asked(move || assert!(command.output().unwrap().status.success()))
        .answering(Some("blue"));
    repo.workflow().session("demo").plan("ask me").done();
    repo.workflow().session("demo").with(user).execute()
}

fn waiting_message(repo: &TestRepo, session: &str) -> String {
    let name = format!("refs/teddy/drafts/{session}:user_prompt.txt");
    repo.git(&["show", &name])
}

/// Bug: the answer was lost, and the turn not shown.
#[test]
fn an_answer_is_kept_in_a_session_that_is_renamed_meanwhile() {
    let repo = project();
    let said = answered_after(&repo, &["branch", "-m", "demo", "better"]).done();
    for words in ["turn 1 executed", "Session demo is now better."] {
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(waiting_message(&repo, "better"), "blue");
}

/// Bug: the plan got the answer as its message, and its own was lost.
#[test]
fn an_answer_does_not_replace_the_message_of_a_plan_that_was_made_meanwhile() {
    let repo = project();
    let said = answered_after(&repo, &["-s", "demo", "plan", "rather c"]).refused();
    let unused = "your message was not used, because a plan is still waiting";
    assert!(said.contains(unused), "{said}");
    assert_eq!(waiting_message(&repo, "demo"), "rather c");
}

/// Bug: the turn was not shown.
#[test]
fn a_turn_is_shown_although_its_session_is_deleted_before_the_answer() {
    let repo = project();
    repo.workflow().branch("0", "other").done();
    let said = answered_after(&repo, &["gc", "demo", "-y"]).refused();
    for words in ["turn 1 executed", "session `demo` is gone"] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
#[should_panic(expected = "the script does not decide on `Make b`")]
fn a_user_who_is_there_decides_on_every_plan() {
    let repo = project();
    repo.reply(&make("b"));
    repo.workflow().plan("make b").done();
    let silent = ScriptedUser::deciding([]);
    repo.workflow().with(silent).execute().done();
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
    screen.wait_for_prompt("(q)uit ›");
    screen.press("\x03");
    assert_eq!(screen.end(), 130, "{}", screen.shown());
    assert_eq!(repo.workflow().status()["state"], "planned");
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
    screen.wait_for("fake: ~5 tokens");
    screen.press("\x03");
    assert_eq!(screen.end(), 130, "{}", screen.shown());
    assert_eq!(turns(&repo), "Make b, Start session demo");
    assert_eq!(
        repo.git(&["show", "refs/teddy/drafts/demo:reply.md"]),
        "# Half a plan\n\nand more"
    );
    // The next call uses the message.
    repo.reply(&make("never")).reply(&make("c"));
    insta::assert_snapshot!(repo.workflow().resume(None).done(), @r"
    Using the waiting message: make c
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    turn 2 executed
      added c.txt
    ended: Left
    ");
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
    assert_eq!(repo.workflow().artifact("2", "user_prompt.txt"), "blue");
}
