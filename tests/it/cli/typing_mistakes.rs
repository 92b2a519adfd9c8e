//! Typing mistakes, and the messages about them.

use crate::machine::Machine;
use crate::plans::{create, plan};
use crate::screen::Screen;
use crate::support::TestRepo;

/// A project with one executed turn.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("notes.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.reply(&plan("Make b", &[create("b.txt", "b\n")]));
    repo.done(&["resume", "-y", "-m", "make b"]);
    repo
}

/// Runs a command line and compares exit code and messages.
fn check(repo: &TestRepo, line: &[&str], code: i32, words: &[&str]) {
    repo.teddy(line).check(code, words);
}

#[test]
fn a_number_is_a_turn_and_no_plan() {
    let repo = project();
    check(
        &repo,
        &["execute", "1"],
        1,
        &[
            "turn 1 ran already",
            "teddy show 1 plan.md | teddy execute -",
        ],
    );
    // Bug: the hint was the same for a turn without a plan.
    check(
        &repo,
        &["execute", "0"],
        1,
        &[
            "turn 0 is over: it is `started`",
            "hint: it has no plan; `teddy log` lists the turns",
        ],
    );
    repo.reply(&plan("Make c", &[create("c.txt", "c\n")]));
    repo.done(&["plan", "make c"]);
    // The number of the turn whose plan is waiting is accepted.
    check(&repo, &["execute", "2", "-y"], 0, &["turn 2 executed"]);
    check(
        &repo,
        &["execute", "7"],
        1,
        &["session `demo` has no turn `7`; its turns are 0 to 2"],
    );
}

/// Bug: an empty word, as of a variable that is not set, was a file.
#[test]
fn an_empty_message_is_named_as_one() {
    let repo = project();
    for line in [
        &["plan", ""][..],
        &["resume", ""],
        &["start", ""],
        &["plan", "-m", ""],
    ] {
        check(&repo, line, 1, &["error: the message is empty"]);
    }
    check(&repo, &["plan", "make it", ""], 2, &["there is no file ``"]);
}

#[test]
fn a_file_that_is_not_there_is_a_warning_with_the_nearest_name() {
    let repo = project();
    check(
        &repo,
        &["-q", "context", "add", "note.txt"],
        0,
        &[
            "warning: there is no `note.txt` yet",
            "did you mean `notes.txt`?",
        ],
    );
}

#[test]
fn a_command_of_another_tool_leads_to_ours() {
    let repo = project();
    for (word, way) in [
        ("delete", "teddy gc <session>"),
        ("rm", "teddy context rm"),
        ("rename", "teddy branch -m <new-name>"),
        ("recover", "teddy doctor --fix"),
        ("replay", "teddy verify --rerun <turn>"),
        ("adopt", "teddy switch --adopt"),
        ("du", "teddy gc -n"),
        ("commit", "teddy land"),
        ("config", "teddy setup"),
        ("model", "teddy setup --list"),
        ("checkout", "teddy switch"),
        ("sesions", "did you mean `teddy sessions`?"),
    ] {
        check(
            &repo,
            &[word],
            2,
            &[&format!("there is no command `{word}`"), way],
        );
        let out = repo.teddy(&[word]);
        assert!(!out.stderr.contains("execute"), "{word}: {out}");
    }
}

/// Bug: the terminal broke these lines inside of a word.
#[test]
fn a_long_hint_is_wrapped_at_a_word() {
    let repo = project();
    for width in [40, 60, 80] {
        let mut screen = Screen::open(&repo, (width, 40), &["stash"]);
        assert_eq!(screen.end(), 2, "{}", screen.shown());
        let shown = screen.shown();
        let hint =
            "every turn is recorded by itself; `teddy branch <name>` keeps a name for this point";
        let lines = shown
            .lines()
            .map(|line| line.trim_start_matches(['↪', ' ']).trim_end());
        let joined: Vec<&str> = lines.collect();
        assert!(joined.join(" ").contains(hint), "{width}: {shown}");
        assert!(shown.contains("\n↪ "), "{width}: {shown}");
    }
}

#[test]
fn a_message_without_quotes_is_quoted_in_the_hint() {
    let repo = project();
    insta::assert_snapshot!(repo.printed(&["rename", "foo", "to", "bar"]), @"
    --- stderr
    error: there is no command `rename`
    hint: a message of several words needs quotes, as in `teddy 'rename foo to bar'`; `teddy branch -m <new-name>` renames the session
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["make", "it", "user's"]), @r"
    --- stderr
    error: there is no command `make`
    hint: did you mean `teddy man`? Otherwise, a message of several words needs quotes, as in `teddy 'make it user'\''s'`
    exit code 2
    ");
    insta::assert_snapshot!(repo.printed(&["swich", "to", "main"]), @"
    --- stderr
    error: there is no command `swich`
    hint: did you mean `teddy switch`? Otherwise, a message of several words needs quotes, as in `teddy 'swich to main'`
    exit code 2
    ");
}

#[test]
fn a_command_group_alone_prints_its_help_without_a_hint() {
    let out = project().teddy(&["change"]);
    out.check(2, &["Usage: teddy change", "teddy change archive add-auth"]);
    assert!(!out.stderr.contains("hint:"), "{out}");
}

#[test]
fn the_manual_is_a_page_at_a_terminal_and_troff_in_a_pipe() {
    // With `man`, which formats the page.
    let machine = Machine::new()
        .program("man", "echo \"laid out: $(head -c 3 \"$1\")\"")
        .program("head", "exec /usr/bin/head \"$@\"");
    let mut screen = machine.screen(&["man"], &[]);
    screen.wait_for("laid out: .ie");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    // Without `man`, the pager shows the help.
    let mut screen = Machine::new().screen(&["man"], &[("PAGER", "cat")]);
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert!(
        screen.written().contains("Usage: teddy"),
        "{}",
        screen.written()
    );
    assert!(!screen.written().contains(".TH"), "{}", screen.written());
    let page = TestRepo::new().done(&["man"]);
    assert!(page.contains("\n.TH teddy 1"), "{page}");
    assert!(
        page.contains(".SH EXIT STATUS\n.TP\n0\nsuccess\n"),
        "{page}"
    );
    assert!(
        page.contains(".SH ENVIRONMENT\n.TP\nTEDDY_SESSION\n"),
        "{page}"
    );
}

#[test]
fn undo_says_how_far_it_can_go() {
    let repo = project();
    check(
        &repo,
        &["undo", "99"],
        1,
        &["only 1 turn can be undone", "teddy undo 1"],
    );
    assert!(repo.path().join("b.txt").exists());
}

#[test]
fn an_option_that_does_not_exist_leads_to_the_one_that_does() {
    let repo = project();
    check(&repo, &["plan", "--mesage", "x"], 2, &["--message"]);
    check(&repo, &["restore", "--exat", "1"], 2, &["--exact"]);
}

#[test]
fn log_takes_a_number_as_git_does() {
    let repo = project();
    let shown = repo.done(&["log", "-1", "--oneline"]);
    assert!(
        shown.contains("Make b") && shown.lines().count() == 1,
        "{shown}"
    );
    check(&repo, &["log", "--all", "-x"], 2, &["unexpected argument"]);
}

#[test]
fn a_misspelled_model_leads_to_the_nearest_that_teddy_knows() {
    let repo = project();
    check(
        &repo,
        &["plan", "x", "--model", "cluade"],
        1,
        &["did you mean `claude`? `teddy setup --model claude` sets it up"],
    );
}

#[test]
fn a_message_without_quotes_is_distinguished_from_files() {
    let repo = project();
    check(
        &repo,
        &["start", "add", "a", "form"],
        2,
        &["there is no file `a`", "quotes"],
    );
    check(
        &repo,
        &["plan", "fix", "it", "now"],
        2,
        &["there is no file `it`", "quotes"],
    );
    check(
        &repo,
        &["record", "by", "hand"],
        2,
        &["unexpected argument 'hand' found", "needs quotes"],
    );
}

#[test]
fn a_name_that_does_not_exist_leads_to_the_nearest() {
    let repo = project();
    check(&repo, &["switch", "dmeo"], 1, &["did you mean `demo`?"]);
    check(&repo, &["-s", "dem", "log"], 1, &["did you mean `demo`?"]);
    check(
        &repo,
        &["new", "x", "-a", "develper"],
        1,
        &["did you mean `developer`?"],
    );
}
