//! The prompt of the loop on a terminal: commands, shell, files, history and completion.

use crate::fake::{Fake, response, stream};
use crate::plans::{chat, conclude, create, edit, execute, plan, read};
use crate::screen::Screen;
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\n")
        .file("src/long_name.txt", "two\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo
}

fn make(name: &str) -> String {
    plan(
        &format!("Make {name}"),
        &[create(&format!("{name}.txt"), "x\n")],
    )
}

/// Opens the loop and waits for its prompt.
fn open(repo: &TestRepo) -> Screen {
    let mut screen = Screen::open(repo, (100, 60), &["resume"]);
    ready(&mut screen, "turn 1: what should be done?");
    screen
}

/// Waits for a question and an empty prompt.
fn ready(screen: &mut Screen, question: &str) {
    screen.wait_for(question);
    while !screen.settled().trim_end().ends_with('›') {
        screen.read();
    }
}

fn approve(screen: &mut Screen, title: &str) {
    screen.wait_for(&format!("Reviewing Plan: \"{title}\""));
    while !screen.settled().trim_end().ends_with('›') {
        screen.read();
    }
    screen.press("a");
}

/// Leaves the loop and returns the requests that were sent.
fn leave(mut screen: Screen, repo: &TestRepo) -> Vec<String> {
    screen.press("\x04");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    let turns = repo.json(&["log"], 0);
    let turns = turns.as_array().unwrap();
    (1..turns.len())
        .map(|turn| {
            let out = repo.teddy(&["show", &turn.to_string(), "user_prompt.txt"]);
            if out.code == 0 {
                out.stdout
            } else {
                "-".to_owned()
            }
        })
        .collect()
}

#[test]
fn a_command_is_done_and_never_sent() {
    let repo = project();
    repo.reply(&make("b")).reply(&make("c"));
    let mut screen = open(&repo);
    screen.press("make b\r");
    approve(&mut screen, "Make b");
    ready(&mut screen, "turn 2: what should be done?");
    assert!(
        screen.shown().contains("Updated your files: b.txt (new)"),
        "{}",
        screen.shown()
    );

    screen.press("/undo\r");
    ready(&mut screen, "turn 3: what should be done?");
    assert!(!repo.path().join("b.txt").exists());
    screen.press("/redo\r");
    ready(&mut screen, "turn 4: what should be done?");
    assert!(repo.path().join("b.txt").exists());
    screen.press("/undp\r");
    screen.wait_for("there is no command `/undp`; did you mean `/undo`?");
    ready(&mut screen, "turn 4: what should be done?");
    screen.press("/help\r");
    screen.wait_for("/land [OPTION...]");
    ready(&mut screen, "turn 4: what should be done?");
    screen.press("/status\r");
    screen.wait_for("Session demo, turn 3");
    ready(&mut screen, "turn 4: what should be done?");
    screen.press("/undo nonsense\r");
    screen.wait_for("invalid value 'nonsense'");
    ready(&mut screen, "turn 4: what should be done?");
    assert_eq!(leave(screen, &repo), ["make b", "-", "-"]);
}

#[test]
fn files_join_and_leave_and_a_message_can_name_one() {
    let repo = project();
    repo.reply(&make("b"));
    repo.write(".gitignore", "*.log\n");
    repo.write("my.log", "log\n");
    let mut screen = open(&repo);
    screen.press("/add a.txt\r");
    screen.wait_for("Added a.txt (session)");
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("/drop a.txt\r");
    screen.wait_for("Removed a.txt (session)");
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("look at @src/lo\t and @a.tx, @my.log @nofile @cache(1)\r");
    screen.wait_for("there is no file `a.tx`; did you mean `@a.txt`?");
    screen.wait_for("`@nofile` names no file of the project, so it is sent as text.");
    screen.wait_for("Added src/long_name.txt (turn)");
    screen.wait_for("snapshots leave out `my.log`");
    approve(&mut screen, "Make b");
    ready(&mut screen, "turn 2: what should be done?");
    assert!(!screen.written().contains("`@cache(1)`"));
    assert_eq!(
        leave(screen, &repo),
        ["look at @src/long_name.txt  and @a.tx, @my.log @nofile @cache(1)"]
    );
    let input = repo.workflow().artifact("1", "input.md");
    assert!(input.contains("two\n"), "{input}");
}

#[test]
fn a_file_outside_of_the_project_is_refused_and_nothing_is_sent() {
    let repo = project();
    repo.reply(&make("b"));
    std::fs::write(repo.beside("secret.txt"), "s\n").unwrap();
    let mut screen = open(&repo);
    screen.press("look at @../secret.txt\r");
    screen.wait_for("error: ");
    ready(&mut screen, "turn 1: what should be done?");
    assert_eq!(leave(screen, &repo), Vec::<String>::new());
}

#[test]
fn a_plan_is_asked_for_with_all_that_goes_along() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = open(&repo);
    screen.press("!echo from the shell\r");
    screen.wait_for("with your next message, enter continues");
    screen.settled();
    screen.press("y\r");
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("/plan see @a.txt, not @/etc/passwd\r");
    screen.wait_for("Added a.txt (turn)");
    approve(&mut screen, "Make b");
    assert!(!screen.shown().contains("passwd (turn)"));
    // Bug: the suggestion was the name itself.
    assert!(!screen.written().contains("did you mean"));
    ready(&mut screen, "turn 2: what should be done?");
    let sent = leave(screen, &repo).remove(0);
    assert!(
        sent.starts_with("see @a.txt, not @/etc/passwd\n\nI ran `echo from the shell`"),
        "{sent}"
    );
}

#[test]
fn a_command_of_the_shell_is_offered_to_the_model() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = open(&repo);
    screen.press("!echo from the shell; pwd; exit 3\r");
    screen.wait_for("y and enter shows this to the model with your next message");
    assert!(
        screen.shown().contains("exited with 3"),
        "{}",
        screen.shown()
    );
    screen.settled();
    screen.press("y\r");
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("why?\r");
    approve(&mut screen, "Make b");
    ready(&mut screen, "turn 2: what should be done?");
    let sent = leave(screen, &repo).remove(0);
    assert!(sent.starts_with("why?\n\nI ran `echo from the shell; pwd; exit 3` (exit status: 3):\n\n````text\nfrom the shell\n"), "{sent}");
    assert!(sent.contains(repo.path().to_str().unwrap()), "{sent}");
}

#[test]
fn enter_goes_on_where_something_is_left_to_do() {
    let repo = project();
    repo.reply(&plan("Look", &[read("a.txt")]))
        .reply(&plan("Test", &[execute("false")]))
        .reply(&make("b"));
    let mut screen = open(&repo);
    screen.press("go\r");
    // Reading needs no approval, and the model continues with what it read.
    approve(&mut screen, "Test");
    assert!(
        screen
            .shown()
            .contains("\"Look\" only reads, so it needs no approval.")
    );
    ready(&mut screen, "turn 3: enter lets the model continue");
    screen.press("\r");
    approve(&mut screen, "Make b");
    ready(&mut screen, "turn 4: what should be done?");
    // Without anything to continue, an empty line does nothing.
    screen.press("\r");
    screen.settled();
    assert_eq!(
        leave(screen, &repo),
        [
            "go",
            "Continue with the next step.",
            "Continue with the next step."
        ]
    );
}

#[test]
fn a_failed_test_is_fixed_with_three_keys_after_the_request() {
    let repo = project();
    let test = "grep -qx three a.txt";
    repo.reply(&plan("Look", &[read("a.txt")]))
        .reply(&plan(
            "Change",
            &[edit("a.txt", "one", "tree"), execute(test)],
        ))
        .reply(&plan(
            "Fix",
            &[edit("a.txt", "tree", "three"), execute(test)],
        ));
    let mut screen = open(&repo);
    screen.press("make it three\r");
    approve(&mut screen, "Change");
    ready(&mut screen, "turn 3: enter lets the model continue");
    screen.press("\r");
    approve(&mut screen, "Fix");
    ready(&mut screen, "turn 4: what should be done?");
    assert_eq!(repo.read("a.txt"), "three\n");
    leave(screen, &repo);
}

#[test]
fn a_question_is_answered_in_place_and_commands_work_there_too() {
    let repo = project();
    repo.reply(&plan("Ask", &[chat("Red or blue?")]))
        .reply(&make("blue"));
    let mut screen = open(&repo);
    screen.press("paint it\r");
    ready(&mut screen, "Your answer:");
    screen.press("/context\r");
    screen.wait_for("total");
    ready(&mut screen, "Your answer:");
    screen.press("blue\r");
    approve(&mut screen, "Make blue");
    ready(&mut screen, "turn 3: what should be done?");
    assert_eq!(leave(screen, &repo), ["paint it", "blue"]);
}

#[test]
fn the_arrows_bring_earlier_messages_back() {
    let repo = project();
    repo.reply(&make("b")).reply(&make("c"));
    repo.teddy(&["resume", "-y", "first words"]).check(0, &[]);
    let mut screen = Screen::open(&repo, (100, 60), &["resume"]);
    ready(&mut screen, "turn 2: what should be done?");
    screen.press("/status\r");
    ready(&mut screen, "turn 2: what should be done?");
    screen.press("kept");
    screen.press("\x1b[A");
    screen.wait_for("› /status");
    screen.press("\x1b[A");
    screen.wait_for("› first words");
    screen.press("\x1b[B\x1b[B");
    screen.wait_for("› kept");
    screen.press("\x1b[A\x1b[A again\r");
    approve(&mut screen, "Make c");
    ready(&mut screen, "turn 3: what should be done?");
    assert_eq!(leave(screen, &repo), ["first words", "first words again"]);
}

#[test]
fn the_model_and_the_agent_can_be_chosen() {
    let repo = project();
    repo.reply(&make("b"));
    let other = repo.beside("other.md");
    std::fs::write(&other, make("other")).unwrap();
    let mut screen = open(&repo);
    screen.press("/model gpt-none\r");
    screen.wait_for("error: ");
    ready(&mut screen, "turn 1: what should be done?");
    screen.press(&format!("/model replay:{}\r", other.display()));
    screen.wait_for("answers from now on.");
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("/agent developer\r");
    screen.wait_for("The agent developer plans from now on.");
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("go\r");
    approve(&mut screen, "Make other");
    ready(&mut screen, "turn 2: what should be done?");
    leave(screen, &repo);
    assert_eq!(repo.json(&["show", "1"], 0)["agent"], "developer");
}

#[test]
fn a_command_is_not_sent_from_where_none_is_taken() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = Screen::open(&repo, (100, 60), &["-s", "demo", "start"]);
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("/help\r");
    screen.wait_for("are for the prompt of `teddy resume`");
    screen.settled();
    screen.press("make b\r");
    approve(&mut screen, "Make b");
    ready(&mut screen, "turn 2: what should be done?");
    // Bug: with `-s`, a command was for that session.
    screen.press("/status\r");
    screen.wait_for("Session make-b, turn 1");
    ready(&mut screen, "turn 2: what should be done?");
    assert_eq!(leave(screen, &repo), ["make b"]);
}

/// Bug: instead of an answer to the offer of an output, a command was the message.
#[test]
fn a_command_is_not_sent_from_the_offer_of_an_output_either() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = Screen::open(&repo, (100, 60), &["start"]);
    ready(&mut screen, "turn 1: what should be done?");
    for (count, command) in ["/help", "/no-such", "/Help"].iter().enumerate() {
        screen.press("!echo from the shell\r");
        screen.wait_for("shows this to the model");
        screen.settled();
        screen.press(&format!("{command}\r"));
        screen.wait_for("are for the prompt of `teddy resume`; !ls works here, too.");
        ready(&mut screen, "turn 1: what should be done?");
        let answers = screen.written().matches("Commands such as").count();
        assert_eq!(answers, count + 1, "{}", screen.shown());
    }
    screen.press("/no-such\r");
    screen.settled();
    screen.press("make b\r");
    approve(&mut screen, "Make b");
    ready(&mut screen, "turn 2: what should be done?");
    assert_eq!(leave(screen, &repo), ["make b"]);

    let mut screen = Screen::open(&repo, (100, 60), &["start"]);
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("quit\r");
    screen.wait_for("Nothing was started.");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}

/// Bug: after `/redo` of a turn that concluded, the loop ended.
#[test]
fn a_command_that_restores_a_conclusion_stays_at_the_prompt() {
    for args in [&["resume"][..], &["resume", "-y"]] {
        let repo = project();
        repo.reply(&plan(
            "Make b",
            &[create("b.txt", "b\n"), conclude(&[], "All is there.")],
        ));
        repo.teddy(&["resume", "-y", "make b"]).check(0, &[]);
        repo.done(&["undo"]);
        let mut screen = Screen::open(&repo, (100, 60), args);
        ready(&mut screen, "turn 3: what should be done?");
        screen.press("/redo\r");
        ready(&mut screen, "turn 4: what should be done?");
        screen.press("/status\r");
        screen.wait_for("The work is done, says the model:");
        ready(&mut screen, "turn 4: what should be done?");
        screen.press("\x04");
        assert_eq!(screen.end(), 0, "{}", screen.shown());
    }
}

/// Bug: `clear` started a session of that name, and a mentioned file was not shown.
#[test]
fn the_first_prompt_asks_before_it_sends_a_shell_command_and_shows_mentioned_files() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = Screen::open(&repo, (100, 60), &["start"]);
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("clear\r");
    screen.wait_for("`clear` looks like a shell command; `!clear` runs it. Send it to the model?");
    screen.settled();
    screen.press("n");
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("!echo from the shell\r");
    screen.wait_for("shows this to the model");
    screen.settled();
    screen.press("\r");
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("!echo shown\r");
    screen.wait_for("shows this to the model");
    screen.settled();
    // The output is sent, but names no session.
    screen.press("y\r");
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("look at @src/lo\t\r");
    screen.wait_for("Added src/long_name.txt (turn)");
    approve(&mut screen, "Make b");
    ready(&mut screen, "turn 2: what should be done?");
    screen.press("\x04");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    let input = repo
        .workflow()
        .artifact("look-at-src-long-name-txt:1", "input.md");
    assert!(
        input.contains("two\n") && !input.contains("from the shell"),
        "{input}"
    );
    let sessions = repo.json(&["sessions"], 0);
    assert!(!sessions.to_string().contains("clear"), "{sessions}");
}

/// Bug: clap's hint was shown, and the `--help` that it names would have been sent to the model.
#[test]
fn a_command_with_wrong_arguments_has_a_hint_for_the_prompt() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = open(&repo);
    for line in ["/add\r", "/status all\r"] {
        screen.press(line);
        screen.wait_for("hint: `/help` lists the commands with their arguments");
        ready(&mut screen, "turn 1: what should be done?");
    }
    let written = screen.written();
    assert!(!written.contains("try '--help'"), "{written}");
    assert_eq!(leave(screen, &repo), [""; 0]);
}

/// Bug: `@FILE` stayed text.
#[test]
fn a_file_that_a_message_for_plan_mentions_is_shown() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = Screen::open(&repo, (100, 60), &["plan"]);
    ready(&mut screen, "turn 1: what should be done?");
    screen.press("look at @src/long_name.txt and @nofile\r");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    let written = screen.written();
    assert!(
        written.contains("Added src/long_name.txt (turn)")
            && written.contains("`@nofile` names no file"),
        "{written}"
    );
    let input = repo.done(&["show", "draft", "input.md"]);
    assert!(input.contains("](/src/long_name.txt)"), "{input}");
}

#[test]
fn a_paste_sends_nothing_and_answers_nothing() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = open(&repo);
    screen.press("\x1b[200~one\rtwo\r\x1b[201~");
    screen.wait_for("› one\n  two\n");
    screen.settled();
    screen.press("\x03");
    screen.settled();

    screen.press("ls\r");
    screen.wait_for("Send it to the model? (y/n) ›");
    screen.press("\x1b[200~y\r\x1b[201~");
    let shown = screen.settled();
    assert!(shown.ends_with("(y/n) ›"), "{shown}");
    screen.press("n");
    ready(&mut screen, "turn 1: what should be done?");

    screen.press("!echo hi\r");
    screen.wait_for("with your next message, enter continues");
    screen.settled();
    screen.press("\x1b[200~y\r\x1b[201~");
    screen.wait_for("› y\n");
    screen.settled();
    screen.press("\x03");
    ready(&mut screen, "turn 1: what should be done?");
    assert_eq!(leave(screen, &repo), Vec::<String>::new());
}

#[test]
fn quit_leaves_as_ctrl_d_does() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = open(&repo);
    screen.press("/quit\r");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}

#[test]
fn ctrl_c_drops_the_text_and_leaves_only_an_empty_prompt() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = open(&repo);
    screen.press("make b");
    screen.wait_for("› make b");
    screen.press("\x03");
    ready(&mut screen, "› make b\n›");
    // At yes or no, `q` and escape mean no.
    for no in ["q", "\x1b"] {
        screen.press("ls\r");
        screen.wait_for("Send it to the model? (y/n) ›");
        screen.settled();
        screen.press(no);
        screen.wait_for("(y/n) › n\n");
        ready(&mut screen, "turn 1: what should be done?");
    }
    screen.press("\x03");
    assert_eq!(screen.end(), 130, "{}", screen.shown());
    assert_eq!(repo.json(&["log"], 0).as_array().unwrap().len(), 1);
}

#[test]
fn ctrl_c_ends_a_command_of_the_shell_and_not_the_loop() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = open(&repo);
    screen.press("!echo 'be''gun'; sleep 60\r");
    screen.wait_for("begun");
    // A shell can miss a signal that arrives while it starts a command. A user would press again.
    while !screen.settled().contains("shows this to the model") {
        screen.press("\x03");
    }
    screen.settled();
    screen.press("\r");
    ready(&mut screen, "turn 1: what should be done?");
    leave(screen, &repo);
}

#[test]
fn a_prose_answer_is_shown_and_enter_asks_for_the_plan() {
    for size in [(40, 30), (100, 30)] {
        let repo = project();
        repo.reply("Sure! I would add **b**.\n\nShall I go on?")
            .reply(&make("b"));
        let mut screen = Screen::open(&repo, size, &["resume", "make b"]);
        screen.wait_for("or enter to ask for the");
        let shown = screen.settled();
        assert!(
            shown.contains("The model answered without a plan:\n▌ Sure! I would add b.\n"),
            "{shown}"
        );
        assert_eq!(shown.matches("Shall I go on?").count(), 1, "{shown}");
        assert!(
            !shown.contains("Rationale") && !shown.contains("mistake"),
            "{shown}"
        );
        // A command does not show it again.
        screen.press("/agent\r");
        screen.wait_for("throwaway code");
        ready(&mut screen, "or enter to ask for the");
        assert_eq!(screen.written().matches("Shall I go on?").count(), 1);
        screen.press("\r");
        screen.wait_for_prompt("(q)uit ›");
        screen.settled();
        screen.press("\r");
        ready(&mut screen, "turn 3: what should be done?");
        assert_eq!(
            leave(screen, &repo),
            ["make b", "Go ahead: write the plan."]
        );
    }
}

#[test]
fn enter_that_was_typed_while_the_model_works_starts_no_other_call() {
    let repo = project();
    let gate = repo.beside("gate");
    let path = gate.to_str().unwrap();
    repo.git(&["-c", "alias.pipe=!mkfifo", "pipe", path]);
    let model = format!("read line < {}; echo 'Shall I go on?'", gate.display());
    repo.configure(&format!(
        "model: slow\nmodels:\n  slow: {{ kind: command, run: [sh, -c, \"{model}\"] }}\n"
    ));
    let mut screen = Screen::open(&repo, (100, 30), &["resume", "make b"]);
    screen.wait_for("Asking slow");
    screen.press("\rand c");
    std::fs::write(&gate, "go\n").unwrap();
    // The text is kept, and is not sent either.
    screen.wait_for("or enter to ask for the plan");
    screen.wait_for("and c");
    screen.settled();
    assert_eq!(screen.written().matches("Asking slow").count(), 1);
    screen.press("\x03");
    screen.settled();
    screen.press("\x04");
    assert_eq!(screen.end(), 5, "{}", screen.shown());
}

/// Bug: the hint of a second mistake named a command, and another plan was announced that was
/// rejected next.
#[test]
fn what_a_rejected_plan_says_holds_at_the_prompt() {
    let repo = project();
    let wrong = plan("Wrong", &[edit("none.txt", "x", "y")]);
    repo.reply(&wrong).reply(&wrong).reply(&make("b"));
    let mut screen = open(&repo);
    screen.press("make b\r");
    ready(&mut screen, "turn 3: enter tries again");
    let shown = screen.shown();
    assert!(
        shown.contains("\nthe same mistake was made twice\nturn 2 rejected"),
        "{shown}"
    );
    assert!(
        shown.contains("\n`/show 2 report.md` says what is wrong.\n"),
        "{shown}"
    );
    assert!(
        !shown.contains("`teddy") && !shown.contains("another plan"),
        "{shown}"
    );
    screen.press("/show 2 report.md\r");
    screen.wait_for("there is no file `none.txt`");
    ready(&mut screen, "turn 3: enter tries again");
    screen.press("\r");
    approve(&mut screen, "Make b");
    ready(&mut screen, "turn 4: what should be done?");
    assert_eq!(
        leave(screen, &repo).pop().unwrap(),
        "Your plan was rejected, so nothing was done. Write it again without the mistakes in the report."
    );
}

#[test]
fn a_model_that_fails_is_asked_again_only_by_a_key() {
    let repo = project();
    let down = response(
        "402 Payment Required",
        "content-type: application/json\r\n",
        "{\"error\":{\"message\":\"pay first\"}}",
    );
    let fake = Fake::answering(&[down, stream(&make("b"), "stop", (9, 9))]);
    repo.configure(&fake.config(""));
    let variables = [("FAKE_KEY", "0123456789abcdef")];
    let mut screen = Screen::open_with(&repo, (100, 30), (&["resume", "make b"], &variables));
    screen.wait_for("enter tries again, /model chooses another");
    let shown = screen.settled();
    assert!(shown.contains("no credit is left: pay first"), "{shown}");
    assert_eq!(fake.requests().len(), 1);
    screen.press("/status\r");
    screen.wait_for("Session demo, turn 0");
    screen.wait_for("enter tries again");
    screen.settled();
    assert_eq!(fake.requests().len(), 1, "a command is no answer");
    screen.press("\r");
    approve(&mut screen, "Make b");
    ready(&mut screen, "turn 2: what should be done?");
    assert_eq!(fake.requests().len(), 2);
    screen.press("\x04");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}

#[test]
fn the_keys_of_the_prompt_are_shown_three_times() {
    let repo = project();
    repo.reply(&make("b"));
    let mut screen = open(&repo);
    for _ in 0..4 {
        screen.press("/log\r");
        screen.settled();
    }
    assert_eq!(screen.written().matches("enter sends").count(), 3);
    screen.press("\x04");
    screen.end();

    // A session with some turns shows none, not even with a question.
    let repo = project();
    for name in ["b", "c", "d"] {
        repo.reply(&make(name));
    }
    repo.reply("Shall I go on?");
    let limited = repo.workflow().resume_turns(Some("go"), 3);
    assert!(limited.refused().contains("ended: Turns(3)"));
    repo.teddy(&["plan", "and now?"]).check(5, &[]);
    let mut screen = Screen::open(&repo, (100, 60), &["resume"]);
    ready(&mut screen, "or enter to ask for the plan");
    assert!(!screen.written().contains("enter sends"));
    screen.press("\x04");
    screen.end();
}

/// Regression: these texts were sent as what should be done instead, and no file was added.
#[test]
fn the_message_that_declines_a_plan_follows_the_rules_of_messages() {
    let repo = project();
    repo.reply(&make("b")).reply(&make("c"));
    let mut screen = open(&repo);
    screen.press("make b\r");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("s");
    ready(&mut screen, "What should be done instead?");
    for text in ["/undo\r", "!ls\r", "/nonsense\r"] {
        let count = screen.written().matches("Commands such as /help").count();
        screen.press(text);
        while screen.written().matches("Commands such as /help").count() == count {
            screen.read();
        }
        ready(&mut screen, "Commands such as /help");
    }
    screen.press("git status\r");
    screen.wait_for("`git status` looks like a shell command. Send it to the model?");
    screen.settled();
    screen.press("n");
    ready(&mut screen, "Send it to the model? (y/n) › n");
    screen.press("/quit\r");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("s");
    ready(&mut screen, "What should be done instead?");
    screen.press("look at @a.t\t and @nofile\r");
    screen.wait_for("Added a.txt (turn)");
    screen.wait_for("`@nofile` names no file of the project");
    approve(&mut screen, "Make c");
    ready(&mut screen, "turn 3: what should be done?");
    assert_eq!(
        leave(screen, &repo),
        ["make b", "look at @a.txt  and @nofile"]
    );
    let input = repo.workflow().artifact("2", "input.md");
    assert!(input.contains("one\n"), "{input}");
}
