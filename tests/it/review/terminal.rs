//! The terminal around the review: suspended, killed, resized and redirected, and what remains when
//! the user leaves.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::plans::{create, edit, execute, plan};
use crate::screen::Screen;
use crate::support::{PATIENCE, TestRepo};

/// A project whose session has a waiting plan.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    std::fs::write(
        repo.beside("plan.md"),
        plan(
            "Make it",
            &[create("b.txt", "b\n"), execute("echo more > more.txt")],
        ),
    )
    .unwrap();
    repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
    repo
}

/// Returns the commit of the draft.
fn draft(repo: &TestRepo) -> String {
    repo.git(&[
        "rev-parse",
        "refs/teddy/drafts/demo",
        "refs/teddy/drafts/demo^{tree}",
    ])
}

/// Opens the tree of the review.
fn tree(repo: &TestRepo, size: (u16, u16)) -> Screen {
    let mut screen = Screen::open(repo, size, &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("m");
    screen.wait_for("2 of 2 actions");
    screen
}

/// Skips the plan with this message.
fn skip(repo: &TestRepo, words: &str) -> Screen {
    let mut screen = Screen::open(repo, (100, 30), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("s");
    screen.wait_for("enter declines with it");
    screen.press(&format!("{words}\r"));
    screen
}

/// Reads the help repeatedly for 200 ms, the least time in which a user can decide.
fn look_around(screen: &mut Screen) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(200) {
        // The awaited text is drawn last, so the frame is complete.
        screen.press("?");
        screen.wait_for("n/N next");
        screen.press("q");
        screen.wait_for("* all  v view");
    }
}

#[test]
fn a_stop_from_outside_gives_the_terminal_back_and_keeps_the_draft() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let repo = project();
        let before = draft(&repo);
        let mut screen = tree(&repo, (80, 24));
        screen.press(" ");
        screen.wait_for("1 of 2 actions");
        screen.signal(signal);
        assert_eq!(screen.end(), 130, "{signal:?}: {}", screen.shown());
        assert_eq!(
            (draft(&repo), repo.path().join("b.txt").exists()),
            (before, false),
            "{signal:?}"
        );
        assert_eq!(
            screen.written().matches("Reviewing Plan").count(),
            1,
            "who is gone is not asked again"
        );
    }
}

#[test]
fn a_stop_at_the_question_and_in_a_text_ends_as_well() {
    let repo = project();
    let mut screen = Screen::open(&repo, (80, 24), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.signal(Signal::TERM);
    assert_eq!(screen.end(), 130, "{}", screen.shown());
    repo.reply("an answer that nobody waits for");
    let mut screen = Screen::open(&repo, (80, 24), &["plan"]);
    screen.wait_for("enter sends");
    screen.press("half a mes");
    screen.wait_for("half a mes");
    screen.signal(Signal::TERM);
    assert_eq!(screen.end(), 130, "{}", screen.shown());
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_fg_draws_the_tree_again() {
    let repo = project();
    let mut shell = Screen::jobs(&repo, (80, 24));
    shell.wait_for("SHELL>");
    shell.press("\"$TEDDY\" execute\r");
    shell.wait_for_prompt("(q)uit ›");
    shell.press("m");
    shell.wait_for("2 of 2 actions");
    shell.press(" ");
    shell.wait_for("1 of 2 actions");
    shell.press("\x1a");
    shell.wait_for("Stopped");
    assert!(!shell.is_full() && shell.is_ordinary());
    shell.press("echo in the $((40 + 2)) shell\r");
    shell.wait_for("in the 42 shell");
    shell.press("fg\r");
    let shown = shell.wait_for("1 of 2 actions");
    assert!(shell.is_full() && !shell.is_ordinary(), "{shown}");
    assert!(
        shown.contains("[ ] CREATE: b.txt") && !shown.contains("SHELL>"),
        "{shown}"
    );
    shell.press("\x1b");
    shell.wait_for_prompt("(q)uit ›");
    shell.wait_for("1 action switched off; (a) runs what is shown");
    shell.press("\x1a");
    while shell.written().matches("Stopped").count() < 2 {
        shell.read();
    }
    shell.press("clear; fg\r");
    shell.wait_for_prompt("(q)uit ›");
    shell.press("q");
    shell.wait_for("your changes to it are lost. (y/n)");
    shell.press("y");
    shell.wait_for("Nothing was run");
    shell.press("exit\r");
    shell.end();
}

/// Bug: what the user had switched off ran the next time, and a decline lost it without a word.
#[test]
fn an_interrupted_plan_waits_as_the_user_had_changed_it() {
    let repo = project();
    let fault = [("FAILPOINTS", "before-action=1*return(interrupt)")];
    let mut screen = Screen::open_with(&repo, (80, 24), (&["execute"], &fault));
    screen.wait_for_prompt("(q)uit ›");
    screen.press("m");
    screen.wait_for("2 of 2 actions");
    screen.press(" ");
    screen.wait_for("1 of 2 actions");
    screen.press("\x1b");
    screen.wait_for("1 action switched off; (a) runs what is shown");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("s");
    screen.wait_for("Decline the plan? Your changes to it are lost. (y/n)");
    screen.press("n");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("a");
    screen.wait_for("interrupted");
    assert_eq!(screen.end(), 130, "{}", screen.shown());

    let waiting = repo.done(&["show", "draft", "plan.md"]);
    assert!(!waiting.contains("b.txt"), "{waiting}");
    repo.done(&["execute", "-y"]);
    assert!(!repo.path().join("b.txt").exists());
}

/// Regression: only TeDDy stopped, and the command went on.
#[test]
fn ctrl_z_stops_the_command_that_runs_and_fg_continues_it() {
    let repo = project();
    let script = "trap 'exit 0' USR1; echo \"pid $$ runs\"; while :; do sleep 0.1; done";
    std::fs::write(
        repo.beside("plan.md"),
        plan("Wait", &[execute(script), execute("echo more > more.txt")]),
    )
    .unwrap();
    let mut shell = Screen::jobs(&repo, (80, 24));
    shell.wait_for("SHELL>");
    shell.press("\"$TEDDY\" execute -y ../plan.md\r");
    shell.wait_for("│ pid ");
    let shown = shell.settled();
    let pid = shown.lines().find_map(|line| {
        let line = line.trim().strip_prefix("│ pid ")?;
        line.strip_suffix(" runs")?.parse().ok()
    });
    let pid = rustix::process::Pid::from_raw(pid.unwrap()).unwrap();

    shell.press("\x1a");
    shell.wait_for("Stopped");
    wait_for_state(pid, true);
    shell.press("fg\r");
    wait_for_state(pid, false);
    rustix::process::kill_process(pid, Signal::USR1).unwrap();
    shell.wait_for("turn 1 executed");
    shell.wait_for_prompt("SHELL>");
    assert_eq!(repo.read("more.txt"), "more\n");
    shell.press("exit\r");
    shell.end();
}

/// Waits until a process is stopped, or runs.
fn wait_for_state(pid: rustix::process::Pid, is_stopped: bool) {
    let start = Instant::now();
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    while std::fs::read_to_string(&path).unwrap().contains(") T ") != is_stopped {
        assert!(start.elapsed() < PATIENCE, "stopped: {}", !is_stopped);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn a_program_that_was_stopped_from_outside_draws_anew_when_it_goes_on() {
    let repo = project();
    let mut screen = tree(&repo, (80, 24));
    screen.signal(Signal::STOP);
    screen.signal(Signal::CONT);
    while screen.written().matches("\x1b[?1049h").count() < 2 {
        screen.read();
    }
    screen.wait_for("2 of 2 actions");
    assert!(screen.is_full() && !screen.is_ordinary());
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}

#[test]
fn a_window_is_resized_while_the_tree_is_open() {
    let repo = project();
    let mut screen = tree(&repo, (80, 24));
    let first = screen.settled();
    screen.resize((40, 12));
    while !screen.shown().ends_with("a approve  esc back  ? help") {
        screen.read();
    }
    insta::assert_snapshot!(screen.settled(), @r"
    ▶ Make it
     Action Plan
    ›├─[✓] CREATE: b.txt
     └─[✓] EXECUTE: echo more > more.txt






    2 of 2 actions will run
    a approve  esc back  ? help
    ");
    screen.resize((80, 24));
    while screen.shown() != first {
        screen.read();
    }
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}

#[test]
fn a_window_is_resized_while_the_summary_is_open() {
    let repo = project();
    let mut screen = Screen::open(&repo, (90, 24), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    let first = screen.settled();
    screen.resize((40, 24));
    screen.wait_for_prompt("(m)odify /\n(e)dit / (s)kip / (q)uit ›");
    insta::assert_snapshot!(screen.settled(), @r#"
    ▶ Reviewing Plan: "Make it"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────
     Rationale:
      Make it, because it is wanted.
     Changes: 1 file  +1
      b.txt  +1  new file
        +b
     Action Plan:
      - CREATE: 1 file
      - EXECUTE: 1 command (sandboxed, no
      ↪ network)
        $ echo more > more.txt
    ────────────────────────────────────────
    enter approves · d diff · c comment · ?
    Execute this plan?
    (a)pprove / (r)ead / (m)odify /
    (e)dit / (s)kip / (q)uit ›
    "#);
    screen.resize((90, 24));
    while screen.shown() != first {
        screen.read();
    }
    screen.resize((90, 8));
    screen.wait_for("CREATE 1 file, EXECUTE 1 command");
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}

#[test]
fn with_stderr_redirected_the_review_is_on_the_terminal() {
    let repo = project();
    let mut screen = Screen::shell(
        &repo,
        (80, 24),
        ("\"$TEDDY\" execute 2> ../log; echo code $?", &[]),
    );
    screen.wait_for_prompt("(q)uit ›");
    screen.press("m");
    screen.wait_for("2 of 2 actions");
    assert!(screen.is_full());
    screen.press("a");
    screen.wait_for("code 0");
    screen.end();
    let log = std::fs::read_to_string(repo.beside("log")).unwrap();
    assert!(
        log.contains("▶ 1. CREATE b.txt")
            && !log.contains('\u{1b}')
            && !log.contains("Execute this plan?"),
        "{log}"
    );
    assert_eq!(repo.read("b.txt"), "b\n");
}

#[test]
fn an_approval_by_flag_says_all_of_it_where_stderr_goes() {
    let repo = project();
    let mut screen = Screen::shell(
        &repo,
        (80, 24),
        ("\"$TEDDY\" execute -y 2> ../log; echo code $?", &[]),
    );
    assert_eq!(screen.end(), 0);
    assert!(
        !screen.shown().contains("Reviewing Plan"),
        "{}",
        screen.shown()
    );
    assert!(
        std::fs::read_to_string(repo.beside("log"))
            .unwrap()
            .contains("▶ Reviewing Plan: ")
    );
}

#[test]
fn a_summary_that_goes_into_a_file_is_not_cut_to_the_height_of_the_terminal() {
    let repo = project();
    let many: Vec<String> = (0..40)
        .map(|number| create(&format!("{number}.txt"), "x\n"))
        .collect();
    std::fs::write(repo.beside("many.md"), plan("Make many", &many)).unwrap();
    let mut screen = Screen::shell(
        &repo,
        (80, 24),
        ("\"$TEDDY\" execute ../many.md -y 2> ../log", &[]),
    );
    assert_eq!(screen.end(), 0);
    let log = std::fs::read_to_string(repo.beside("log")).unwrap();
    assert!(
        (0..40).all(|number| log.contains(&format!("  {number}.txt  +1  new file\n    +x\n"))),
        "{log}"
    );
    assert!(!log.contains("more: (m)odify lists them all"), "{log}");
}

#[test]
fn ctrl_c_at_a_question_is_an_interruption() {
    let repo = project();
    repo.done(&["execute", "-y"]);
    for (args, question) in [
        (&["restore", "0", "--exact"][..], "equal to turn 0? (y/n)"),
        (&["gc", "demo"], "(y/n)"),
    ] {
        let mut screen = Screen::open(&repo, (80, 24), args);
        screen.wait_for(question);
        screen.press("\x03");
        assert_eq!(screen.end(), 130, "{}", screen.shown());
    }
    assert_eq!(repo.read("b.txt"), "b\n");
}

#[test]
fn with_all_output_redirected_an_editor_gets_the_terminal() {
    let repo = project();
    let editor = "seen() { tty < /dev/fd/1 > ../out-is; }; seen";
    let mut screen = Screen::shell(
        &repo,
        (80, 24),
        (
            "\"$TEDDY\" execute > ../out 2> ../log",
            &[("GIT_EDITOR", editor)],
        ),
    );
    screen.wait_for_prompt("(q)uit ›");
    screen.press("mp");
    screen.wait_for("(y/n)");
    screen.press("y");
    screen.wait_for("will run");
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    let terminal = std::fs::read_to_string(repo.beside("out-is")).unwrap();
    assert!(terminal.starts_with("/dev/"), "{terminal}");
}

#[test]
fn an_error_and_its_hint_are_folded_between_words() {
    let repo = TestRepo::new();
    repo.workflow().new_session("demo").done();
    let mut screen = Screen::open(&repo, (60, 10), &["plan", "-m", "x"]);
    assert_eq!(screen.end(), 1);
    insta::assert_snapshot!(screen.shown().trim_end(), @r"
    error: no model is configured
    hint: `teddy setup` sets one up, `--model` names one for
    ↪ this call, and `teddy plan --from <file>` takes an answer
    ↪ from elsewhere
    ");
}

#[test]
fn without_colours_no_colour_is_written() {
    let colours = regex::Regex::new(r"\x1b\[([0-9]*;)*(3[0-7]|38;5;[0-9]+|9[0-7])m").unwrap();
    for (variables, args, coloured) in [
        (&[][..], &["execute"][..], true),
        (&[("NO_COLOR", "1")], &["execute"], false),
        (&[], &["--color", "never", "execute"], false),
    ] {
        let repo = project();
        let mut screen = Screen::open_with(&repo, (120, 30), (args, variables));
        screen.wait_for_prompt("(q)uit ›");
        screen.press("m");
        screen.wait_for("+b");
        screen.press("q");
        screen.end();
        assert_eq!(
            colours.is_match(&screen.written()),
            coloured,
            "{variables:?} {args:?}: {:?}",
            screen.written()
        );
    }
}

#[test]
fn a_terminal_that_can_only_print_gets_no_colour() {
    let repo = TestRepo::new();
    repo.workflow().new_session("demo").done();
    for (term, coloured) in [("xterm", true), ("dumb", false), ("", false)] {
        let variables = [("TERM", term), ("GIT_PAGER", "cat")];
        let mut screen = Screen::open_with(&repo, (80, 10), (&["log"], &variables));
        assert_eq!(screen.end(), 0);
        assert_eq!(screen.written().contains("\x1b["), coloured, "{term:?}");
    }
}

#[test]
fn leaving_keeps_the_draft_byte_for_byte() {
    let repo = project();
    let before = draft(&repo);
    for keys in ["q", "mq", "m\x1b q"] {
        let mut screen = Screen::open(&repo, (80, 24), &["execute"]);
        screen.wait_for_prompt("(q)uit ›");
        for key in keys.split(' ') {
            screen.press(key);
            screen.settled();
        }
        assert_eq!(screen.end(), 0, "{keys:?}: {}", screen.shown());
        assert!(
            screen
                .shown()
                .contains("Nothing was run; the plan of turn 1 is waiting."),
            "{}",
            screen.shown()
        );
        assert_eq!(draft(&repo), before, "{keys:?}");
    }
    let mut screen = Screen::open(&repo, (80, 24), &["resume"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("q");
    assert_eq!((screen.end(), draft(&repo)), (0, before.clone()));
    assert!(
        screen
            .shown()
            .contains("Nothing was run; the plan of turn 1 is waiting."),
        "{}",
        screen.shown()
    );
    let mut screen = Screen::open(&repo, (80, 24), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("\x03");
    assert_eq!((screen.end(), draft(&repo)), (130, before));
}

#[test]
fn skipping_records_the_words_and_plans_with_them() {
    let repo = project();
    repo.reply(&plan("Make another", &[create("c.txt", "c\n")]));
    let mut screen = Screen::open(&repo, (80, 24), &["resume"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("s");
    screen.wait_for("Declining Make it. What should be done instead?");
    screen.press("rather c,\\\rplease\r");
    screen.wait_for("Reviewing Plan: \"Make another\"");
    screen.press("a");
    screen.wait_for("what should be done?");
    screen.press("\x04");
    screen.end();
    assert_eq!(
        repo.done(&["show", "1", "declined.txt"]),
        "rather c,\nplease"
    );
    assert!(
        repo.done(&["show", "1"])
            .contains("- **Overall Status:** Skipped 🟡")
    );
    assert_eq!(
        repo.done(&["show", "2", "user_prompt.txt"]),
        "rather c,\nplease"
    );
    assert_eq!(
        (
            repo.read("c.txt").as_str(),
            repo.path().join("b.txt").exists()
        ),
        ("c\n", false)
    );
}

#[test]
fn a_session_without_a_name_is_called_by_what_is_asked_of_it() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.reply(&plan("Make it", &[create("b.txt", "b\n")]));
    let mut screen = Screen::open(&repo, (80, 24), &["start"]);
    screen.wait_for("new session · turn 1: what should be done?");
    screen.press("\x04");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(
        repo.git(&["for-each-ref", "refs/teddy"]),
        "",
        "nothing is started for nothing"
    );
    let mut screen = Screen::open(&repo, (80, 24), &["start"]);
    screen.wait_for("enter sends");
    screen.press("Add a greeting!\r");
    screen.wait_for("Started session add-a-greeting.");
    screen.wait_for("Reviewing Plan: \"Make it\"");
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}

/// Bug: the other plan waited for a second `execute`.
#[test]
fn execute_reviews_the_plan_that_the_model_makes_instead() {
    let repo = project();
    repo.reply(&plan("Wrong", &[edit("none.txt", "x", "y")]))
        .reply(&plan("Make another", &[create("c.txt", "c\n")]));
    let mut screen = skip(&repo, "rather c");
    screen.wait_for("The plan was not accepted: 1 mistake");
    screen.wait_for("Reviewing Plan: \"Make another\"");
    screen.wait_for_prompt("(q)uit ›");
    screen.settled();
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    let shown = screen.shown();
    assert!(shown.contains("Updated your files: c.txt (new)"), "{shown}");
    // It was reviewed, so nothing announces it.
    assert!(!screen.written().contains("another plan"), "{shown}");
    assert_eq!(repo.done(&["show", "2", "user_prompt.txt"]), "rather c");
    let turns = repo.json(&["log"], 0);
    let status = |turn: &serde_json::Value| turn["status"].as_str().unwrap().to_owned();
    let status: Vec<String> = turns.as_array().unwrap().iter().map(status).collect();
    assert_eq!(status, ["executed", "rejected", "declined", "started"]);
}

#[test]
fn quitting_the_review_of_the_other_plan_keeps_it() {
    let repo = project();
    repo.reply(&plan("Make another", &[create("c.txt", "c\n")]));
    let mut screen = skip(&repo, "rather c");
    screen.wait_for("Reviewing Plan: \"Make another\"");
    screen.wait_for_prompt("(q)uit ›");
    screen.settled();
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    let shown = screen.shown();
    assert!(
        shown.contains("Nothing was run; the plan of turn 2 is waiting."),
        "{shown}"
    );
    assert_eq!(
        repo.git(&["show", "teddy/drafts/demo:user_prompt.txt"]),
        "rather c"
    );
}

#[test]
fn words_that_no_model_heard_wait_for_the_next_plan() {
    let repo = project();
    let mut screen = skip(&repo, "rather c");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    let shown = screen.shown();
    assert!(
        shown.contains("no other plan was made: no model is configured"),
        "{shown}"
    );
    repo.reply(&plan("Make another", &[create("c.txt", "c\n")]));
    repo.done(&["plan"]);
    assert_eq!(
        repo.git(&["show", "teddy/drafts/demo:user_prompt.txt"]),
        "rather c"
    );
}

#[test]
fn an_interrupted_skip_declines_nothing() {
    let repo = project();
    let before = draft(&repo);
    let mut screen = Screen::open(&repo, (80, 24), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("s");
    screen.wait_for("enter declines with it");
    screen.press("no, wait\x04");
    screen.wait_for("› no, wait");
    // The text is dropped, then the review is back, then it ends.
    screen.press("\x03");
    screen.wait_for("› no, wait\n›");
    screen.settled();
    screen.press("\x03");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("\x03");
    assert_eq!(
        (screen.end(), draft(&repo)),
        (130, before),
        "{}",
        screen.shown()
    );
}

#[test]
fn files_that_change_under_the_review_are_noticed_before_anything_runs() {
    let repo = project();
    let mut screen = tree(&repo, (80, 24));
    look_around(&mut screen);
    screen.press("j ");
    screen.wait_for("1 of 2 actions");
    repo.write("a.txt", "one and mine\n");
    screen.press("a");
    screen.wait_for("your files changed while the plan was reviewed; it is validated again");
    screen.wait_for("1 action switched off; (a) runs what is shown");
    assert!(!repo.path().join("b.txt").exists() && !repo.path().join("more.txt").exists());
    screen.press("m");
    screen.wait_for("1 of 2 actions");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(
        (repo.read("a.txt").as_str(), repo.read("b.txt").as_str()),
        ("one and mine\n", "b\n")
    );
    assert!(!repo.path().join("more.txt").exists());
}

#[test]
fn promise_a6_what_no_longer_fits_is_named_and_the_rest_can_run() {
    let repo = project();
    repo.reply("never asked for");
    let before = draft(&repo);
    let mut screen = tree(&repo, (100, 30));
    look_around(&mut screen);
    repo.write("b.txt", "mine\n");
    screen.press("a");
    screen.wait_for("it is validated again");
    screen.wait_for("Switched off, because it no longer fits your files:");
    screen.wait_for("CREATE b.txt:");
    screen.wait_for("(a) runs the rest");
    assert_eq!(draft(&repo), before, "no turn, and no model");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(
        (repo.read("b.txt").as_str(), repo.read("more.txt").as_str()),
        ("mine\n", "more\n")
    );
    let report = repo.workflow().artifact("1", "report.md");
    assert!(
        report.contains("2 Total / 1 Approved / 1 Skipped"),
        "{report}"
    );
}

#[test]
fn promise_a6_a_plan_of_which_nothing_fits_waits_until_it_does() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    std::fs::write(
        repo.beside("plan.md"),
        plan("Make", &[create("b.txt", "b\n")]),
    )
    .unwrap();
    repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
    let before = draft(&repo);
    let mut screen = Screen::open(&repo, (100, 30), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("m");
    screen.wait_for("1 of 1 action");
    look_around(&mut screen);
    repo.write("b.txt", "mine\n");
    screen.press("a");
    screen.wait_for("Nothing is left to run");
    screen.settled();
    screen.press("a");
    screen.settled();
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(
        (draft(&repo), repo.read("b.txt").as_str()),
        (before, "mine\n")
    );
    repo.remove("b.txt");
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("b.txt"), "b\n");
}

#[test]
fn a_program_that_decides_gets_the_review_as_a_value() {
    let repo = project();
    let before = draft(&repo);
    let value = repo.json(&["execute"], 1);
    assert_eq!(
        (&value["status"], &value["turn"], &value["commit"]),
        (&"planned".into(), &1.into(), &serde_json::Value::Null)
    );
    let review = &value["review"];
    assert_eq!(
        (&review["title"], &review["actions"][1]["command"]),
        (&"Make it".into(), &"echo more > more.txt\n".into())
    );
    assert_eq!(
        (
            &review["actions"][0]["target"],
            &review["actions"][0]["added"]
        ),
        (&"b.txt".into(), &1.into())
    );
    insta::assert_snapshot!(repo.printed(&["--json", "execute"]), @r#"
    {
      "commit": null,
      "error": {
        "exit_code": 1,
        "hint": "`-y` approves it",
        "kind": "Unapproved",
        "message": "stdin is not a terminal, so TeDDy cannot ask for approval of this plan"
      },
      "review": {
        "actions": [
          {
            "added": 1,
            "description": "Make b.txt.",
            "index": 0,
            "kind": "CREATE",
            "removed": 0,
            "target": "b.txt"
          },
          {
            "command": "echo more > more.txt\n",
            "description": "Run it.",
            "index": 1,
            "kind": "EXECUTE",
            "target": "echo more > more.txt"
          }
        ],
        "agent": "Pathfinder",
        "agent_commands": null,
        "comments": [],
        "confinement": "sandboxed, no network",
        "damage": [],
        "memos": [],
        "repair": "clean",
        "risks": [],
        "session": "demo",
        "spellings": [],
        "status": "Green 🟢",
        "title": "Make it",
        "turn": 1
      },
      "session": "demo",
      "status": "planned",
      "turn": 1
    }
    --- stderr
    ▶ Reviewing Plan: "Make it"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Make it, because it is wanted.
     Changes: 1 file  +1
      b.txt  +1  new file
        +b
     Action Plan:
      - CREATE: 1 file
      - EXECUTE: 1 command (sandboxed, no network)
        $ echo more > more.txt
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    error: stdin is not a terminal, so TeDDy cannot ask for approval of this plan
    hint: `-y` approves it
    exit code 1
    "#);
    assert_eq!(draft(&repo), before);
    assert_eq!(repo.json(&["execute", "-y"], 0)["status"], "executed");
}

#[test]
fn a_quiet_approval_says_nothing() {
    let repo = project();
    let out = repo.teddy(&["-q", "execute", "-y"]);
    assert_eq!((out.code, out.stderr.as_str()), (0, ""), "{out}");
    insta::assert_snapshot!(out.shown(&repo), @"
    turn 1 executed [id]
    exit code 0
    ");
    let repo = project();
    let mut screen = Screen::open(&repo, (80, 24), &["-q", "execute", "-y"]);
    assert_eq!(screen.end(), 0);
    assert_eq!(screen.shown().lines().count(), 1, "{}", screen.shown());
    insta::assert_snapshot!(repo.printed(&["-q", "execute"]), @"
    --- stderr
    error: no plan is waiting in session `demo`
    hint: `teddy plan '<message>'` makes one; `teddy execute <file>` takes one from elsewhere
    exit code 1
    ");
}

#[test]
fn long_results_go_through_the_pager_and_one_that_is_left_early_is_no_error() {
    let repo = project();
    repo.done(&["-q", "execute", "-y"]);
    let check = |variables: &[(&str, &str)], args: &[&str], expected: &str| {
        let mut screen = Screen::open_with(&repo, (80, 24), (args, variables));
        assert_eq!(screen.end(), 0, "{}", screen.shown());
        assert_eq!(screen.shown(), expected, "{args:?}");
    };
    let count = [("PAGER", "grep -c ''")];
    check(&count, &["show", "1", "user_prompt.txt"], "1");
    check(
        &[("PAGER", "false"), ("GIT_PAGER", "head -n 1")],
        &["show", "1", "report.md"],
        "# Execution Report: Make it",
    );
    check(
        &[("PAGER", "head -n 2")],
        &["diff"],
        "--- /dev/null\n+++ b/b.txt",
    );
    check(
        &[("GIT_PAGER", "cat")],
        &["show", "1", "user_prompt.txt"],
        "go",
    );
    repo.git(&["config", "core.pager", "echo configured; cat > /dev/null"]);
    check(&count, &["diff"], "configured");
    // Regression: the result was lost.
    let mut missing = Screen::open_with(
        &repo,
        (80, 24),
        (&["diff"], &[("GIT_PAGER", "no-such-pager")]),
    );
    assert_eq!(missing.end(), 0);
    let shown = missing.shown();
    assert!(
        shown.contains("no-such-pager") && shown.ends_with("+++ b/more.txt\n@@ -0,0 +1 @@\n+more"),
        "{shown}"
    );
    assert!(
        repo.done(&["show", "1", "report.md"])
            .starts_with("# Execution Report: Make it\n"),
        "a pipe gets it as it is"
    );
}

#[test]
fn ctrl_c_in_the_pager_is_the_pagers() {
    let repo = project();
    repo.done(&["-q", "execute", "-y"]);
    let pager =
        "cat > /dev/null; trap 'echo heard; exit 0' INT; echo paging; while :; do sleep 0.05; done";
    let mut screen = Screen::open_with(&repo, (80, 24), (&["show"], &[("PAGER", pager)]));
    screen.wait_for("paging");
    // A shell can miss a signal that arrives while it starts a command. A user would press again.
    for _ in 0..5 {
        screen.press("\x03");
        if screen.settled().contains("heard") {
            break;
        }
    }
    screen.wait_for("heard");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}

/// Bug: ratatui reported the closed terminal on that terminal, and panicked.
#[test]
fn a_terminal_that_is_closed_during_a_full_screen_ends_the_program_like_a_signal() {
    let repo = project();
    let before = draft(&repo);
    // The terminal is closed when the outer shell ends.
    let script = r#"sh -c 'trap : HUP; "$TEDDY" execute; echo $? > ../code'; :"#;
    let mut screen = Screen::shell(&repo, (100, 30), (script, &[]));
    screen.wait_for_prompt("(q)uit ›");
    screen.press("m");
    screen.wait_for("2 of 2 actions");
    screen.signal(Signal::KILL);
    let start = Instant::now();
    let code = loop {
        let code = std::fs::read_to_string(repo.beside("code")).unwrap_or_default();
        if !code.is_empty() || start.elapsed() > PATIENCE {
            break code;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(code, "130\n");
    assert_eq!(draft(&repo), before, "the plan waits");
}
