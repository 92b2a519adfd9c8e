//! The review of a plan that only asks, and of a plan from standard input.

use crate::plans::{chat, create, execute, plan};
use crate::screen::Screen;
use crate::support::TestRepo;

/// Returns a project whose session has a waiting plan.
fn project(actions: &[String]) -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.git(&["config", "teddy.review.reads", "ask"]);
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    std::fs::write(repo.beside("plan.md"), plan("Which one", actions)).unwrap();
    repo.done(&["plan", "-m", "go", "--from", "../plan.md"]);
    repo
}

#[test]
fn a_plan_that_only_asks_is_the_question_and_the_answer_approves_it() {
    for size in [(60, 24), (80, 24), (200, 60)] {
        let repo = project(&[chat("Which **colour**?\n\n- red\n- green")]);
        let mut screen = Screen::open(&repo, size, &["execute"]);
        let shown = screen.wait_for("enter sends");
        assert!(
            shown.contains("▌ Which colour?") && shown.contains("▌ • green"),
            "{shown}"
        );
        assert!(!shown.contains("Execute this plan?"), "{shown}");
        screen.press("?\r");
        screen.wait_for("continue in your editor");
        screen.press("green, please\r");
        assert_eq!(screen.end(), 0, "{}", screen.shown());
        assert_eq!(screen.written().matches("Your answer:").count(), 1);
        assert_eq!(
            repo.git(&["show", "teddy/drafts/demo:user_prompt.txt"]),
            "green, please"
        );
        let meta = repo.done(&["show", "@", "meta.yaml"]);
        assert!(meta.contains("approved_by: person\n"), "{meta}");
    }
}

#[test]
fn an_empty_answer_leaves_and_the_question_waits() {
    let repo = project(&[chat("Which one?")]);
    let before = repo.git(&["rev-parse", "refs/teddy/drafts/demo"]);
    for keys in ["\r", "  \r", "\x04"] {
        let mut screen = Screen::open(&repo, (80, 24), &["execute"]);
        screen.wait_for("enter sends");
        screen.press(keys);
        assert_eq!(screen.end(), 0, "{}", screen.shown());
        let after = repo.git(&["rev-parse", "refs/teddy/drafts/demo"]);
        assert_eq!(after, before, "{keys:?}");
    }
}

/// Regression: a command became the answer, and no file was added.
#[test]
fn an_answer_follows_the_rules_of_messages() {
    for actions in [
        vec![chat("Which one?")],
        vec![create("b.txt", "b\n"), chat("Which one?")],
    ] {
        let repo = project(&actions);
        let mut screen = Screen::open(&repo, (100, 40), &["execute"]);
        if actions.len() > 1 {
            screen.wait_for_prompt("(q)uit ›");
            screen.press("a");
        }
        screen.wait_for("enter sends");
        screen.settled();
        screen.press("/undo\r");
        screen.wait_for("Commands such as /help");
        screen.settled();
        screen.press("see @a.txt\r");
        assert_eq!(screen.end(), 0, "{}", screen.shown());
        assert!(
            screen.shown().contains("Added a.txt (turn)"),
            "{}",
            screen.shown()
        );
        assert_eq!(
            repo.git(&["show", "teddy/drafts/demo:user_prompt.txt"]),
            "see @a.txt"
        );
    }
}

#[test]
fn a_question_that_deceives_says_so() {
    let repo = project(&[chat("Delete \u{202e}it?")]);
    let mut screen = Screen::open(&repo, (100, 24), &["execute"]);
    let shown = screen.wait_for("enter sends");
    assert!(
        shown.contains("1 hidden or misleading characters")
            && shown.contains("Delete \\u{202e}it?"),
        "{shown}"
    );
    screen.press("\x04");
    screen.end();
}

#[test]
fn a_plan_from_standard_input_is_reviewed_at_the_terminal() {
    let actions = [create("b.txt", "b\n"), execute("echo more > more.txt")];
    let repo = project(&actions);
    let script = "cat ../plan.md | \"$TEDDY\" execute -; echo code $?";
    let mut screen = Screen::shell(&repo, (80, 30), (script, &[]));
    let shown = screen.wait_for_prompt("(q)uit ›");
    assert!(shown.contains("    +b"), "{shown}");
    screen.press("m");
    screen.wait_for("2 of 2 actions");
    screen.press("G ");
    screen.wait_for("1 of 2 actions");
    screen.press("a");
    screen.wait_for("code 0");
    screen.end();
    assert_eq!(repo.read("b.txt"), "b\n");
    assert!(!repo.path().join("more.txt").exists());
}

#[test]
fn a_plan_file_on_standard_input_is_reviewed_with_stdout_redirected() {
    let repo = project(&[create("b.txt", "b\n")]);
    let script = "\"$TEDDY\" execute - < ../plan.md > ../result; echo code $?";
    let mut screen = Screen::shell(&repo, (80, 30), (script, &[]));
    screen.wait_for_prompt("(q)uit ›");
    screen.press("a");
    screen.wait_for("code 0");
    screen.end();
    let result = std::fs::read_to_string(repo.beside("result")).unwrap();
    assert!(result.starts_with("turn 1 executed "), "{result}");
}

#[test]
fn a_plan_from_standard_input_without_a_terminal_needs_the_flag() {
    let repo = project(&[create("b.txt", "b\n")]);
    let script = "cat ../plan.md | \"$TEDDY\" execute - > ../out 2>&1; echo code $?";
    let mut screen = Screen::shell(&repo, (80, 30), (script, &[]));
    screen.wait_for("code 1");
    screen.end();
    let out = std::fs::read_to_string(repo.beside("out")).unwrap();
    assert!(out.contains("stdin is not a terminal"), "{out}");
    assert!(out.contains("-y"), "{out}");
}

#[test]
fn a_terminal_that_can_only_print_is_called_so() {
    let repo = project(&[create("b.txt", "b\n")]);
    let words = ["execute", "../plan.md"];
    let mut screen = Screen::open_with(&repo, (100, 30), (&words, &[("TERM", "dumb")]));
    screen.wait_for(
        "the terminal can only print (`TERM=dumb`), so TeDDy cannot ask for approval of this plan",
    );
    assert_eq!(screen.end(), 1);
}
