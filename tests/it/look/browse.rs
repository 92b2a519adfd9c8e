//! `browse`: sessions and turns on a full screen and line by line, and the commands that it starts.

use std::process::Stdio;

use rustix::process::Signal;
use teddy::workflow::restore::OnOverlap;

use crate::plans::{create, edit, execute, plan};
use crate::screen::Screen;
use crate::support::TestRepo;
use crate::support::in_process::resolving;

/// One session has three turns, the other branches off after the first.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("greet.sh", "#!/bin/sh\necho \"Hello!\"\n");
    repo.commit("Say hello");
    repo.workflow().new_session("other").done();
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["greet.sh"]);
    repo.reply(&plan(
        "Greet by name",
        &[
            edit(
                "greet.sh",
                "echo \"Hello!\"",
                "echo \"Hello, ${1:-world}!\"",
            ),
            execute("sh greet.sh Ada"),
        ],
    ));
    repo.done(&["plan", "-m", "greet people by their name"]);
    repo.done(&["execute", "-y"]);
    repo.workflow().run_plan(&plan(
        "Say how it is used",
        &[create("README.md", "# greet\n")],
    ));
    repo.workflow()
        .run_plan(&plan("Note the rest", &[create("notes.txt", "rest\n")]));
    repo.workflow().branch("1", "way").done();
    repo.workflow()
        .run_plan(&plan("Another way", &[create("way.txt", "way\n")]));
    repo.workflow().switch("demo").done();
    repo.workflow()
        .restore_with("@", &resolving(OnOverlap::Exact))
        .done();
    repo
}

/// Opens the browser and waits for a text.
fn open(repo: &TestRepo, size: (u16, u16), awaited: &str) -> Screen {
    let mut screen = Screen::open(repo, size, &["browse"]);
    screen.wait_for(awaited);
    screen
}

/// Presses keys and waits for a text.
fn press(screen: &mut Screen, keys: &str, awaited: &str) -> String {
    screen.press(keys);
    screen.wait_for(awaited)
}

/// Quits, and checks the exit code.
fn leave(mut screen: Screen) {
    screen.press("\u{3}");
    assert_eq!(screen.end(), 0);
}

/// Runs the line mode with these commands as input.
fn linear(repo: &TestRepo, commands: &str) -> crate::support::Output {
    repo.teddy_reads(&["browse", "--linear"], commands)
}

#[test]
fn the_tree_and_the_parts_of_a_turn_are_shown() {
    let repo = project();
    let mut screen = open(&repo, (100, 30), "Note the rest");
    let shown = press(&mut screen, "k", "way 1 turn from demo:1");
    for text in [
        "demo (in use)",
        "3 ✓ Note the rest",
        "1 ✓ Greet by name",
        "0 ○",
    ] {
        assert!(shown.contains(text), "{text} in\n{shown}");
    }
    press(&mut screen, "/greet people\r", "1 of ");
    press(&mut screen, "", "greet people by their name");
    press(&mut screen, "d", "+echo \"Hello, ${1:-world}!\"");
    press(&mut screen, "3", "Hello, Ada!");
    press(&mut screen, "4", "greet.sh");
    press(&mut screen, "5", "turn_id:");
    press(&mut screen, "?", "suspend; fg resumes");
    press(&mut screen, "qq", "1 ✓ Greet by name");
    screen.press("q");
    assert_eq!(screen.end(), 0);
}

#[test]
fn a_turn_of_another_process_appears() {
    let repo = project();
    let mut screen = open(&repo, (80, 24), "Note the rest");
    repo.workflow()
        .run_plan(&plan("Made elsewhere", &[create("new.txt", "new\n")]));
    // A user who reads a turn stays there, in the tree as well.
    screen.wait_for("5 ✓ Made elsewhere");
    assert!(screen.settled().contains("demo:4 ·"), "{}", screen.shown());
    screen.press("\r");
    screen.settled();
    repo.workflow()
        .run_plan(&plan("Made later", &[create("later.txt", "later\n")]));
    screen.wait_for("6 ✓ Made later");
    assert!(screen.settled().contains("demo:4 ·"), "{}", screen.shown());
    leave(screen);
}

#[test]
fn a_session_is_branched_off_from_the_browser() {
    let repo = project();
    let mut screen = open(&repo, (80, 24), "Note the rest");
    press(&mut screen, "jj", "demo:2");
    // The prompt appears when it accepts keys.
    press(&mut screen, "b", "› demo-2");
    press(&mut screen, "\r", "Press a key");
    press(&mut screen, " ", "demo-2 (in use)");
    leave(screen);
    let parent = repo.json(&["browse"], 0)["sessions"][0]["parent"].clone();
    assert_eq!(parent, serde_json::json!(["demo", 2]));
}

#[test]
fn a_restore_shows_what_it_changes_and_asks() {
    let repo = project();
    let mut screen = open(&repo, (80, 24), "Note the rest");
    press(&mut screen, "jj", "demo:2");
    let preview = press(&mut screen, "r", "Take your files back");
    insta::assert_snapshot!(repo.plain(&preview), @"
    ▶ teddy restore demo:2 -n
    delete notes.txt
    Your files would match turn demo:2: 1 file changed.
    Take your files back to turn demo:2? (y/n) ›
    ");
    press(&mut screen, "n", "Press a key");
    press(&mut screen, " ", "Nothing was changed.");
    assert!(repo.path().join("notes.txt").exists());

    screen.press("r");
    screen.wait_for_prompt("(y/n) ›");
    screen.press("y");
    screen.wait_for_prompt("Press a key to go back to the browser.");
    press(&mut screen, " ", "done: restore");
    leave(screen);
    assert!(!repo.path().join("notes.txt").exists());
}

#[test]
fn a_review_that_is_left_is_not_called_done() {
    let repo = project();
    repo.reply(&plan("Make more", &[create("more.txt", "more\n")]));
    repo.done(&["plan", "make more"]);
    let mut screen = open(&repo, (80, 24), "Note the rest");
    screen.press("c");
    screen.wait_for_prompt("(q)uit ›");
    screen.press("q");
    screen.wait_for_prompt("Press a key to go back to the browser.");
    press(&mut screen, " ", "back from the review");
    leave(screen);
}

#[test]
fn an_undo_goes_back_to_the_turn_under_the_cursor() {
    let repo = project();
    let mut screen = open(&repo, (80, 24), "Note the rest");
    press(&mut screen, "jjjj", "· demo:1");
    let preview = press(&mut screen, "u", "Undo what came after");
    insta::assert_snapshot!(repo.plain(&preview), @"
    ▶ teddy undo 3 -n
    delete README.md
    delete notes.txt
    Your files would match turn 1: 2 files changed.
    Undo what came after turn demo:1? (y/n) ›
    ");
    press(&mut screen, "y", "Press a key");
    press(&mut screen, " ", "done: undo");
    leave(screen);
    let has = |name: &str| repo.path().join(name).exists();
    assert!(!has("README.md") && !has("notes.txt"));
    assert!(repo.read("greet.sh").contains("world"));
}

#[test]
fn a_landing_shows_the_commit_and_asks() {
    let repo = project();
    let mut screen = open(&repo, (80, 24), "Note the rest");
    press(&mut screen, "l", "(a)ll turns");
    press(&mut screen, "a", "Commit this?");
    press(&mut screen, "y", "Press a key");
    press(&mut screen, " ", "⚑");
    leave(screen);
    assert_eq!(repo.git(&["rev-list", "--count", "HEAD"]), "2");
}

#[test]
fn two_turns_are_compared_and_a_file_is_opened_as_it_was() {
    let repo = project();
    let variables = [("GIT_EDITOR", "cat")];
    let mut screen = Screen::open_with(&repo, (100, 30), (&["browse"], &variables));
    screen.wait_for("Note the rest");
    press(&mut screen, "jjmjjm", "C compares demo:2 and demo:1");
    press(&mut screen, "C", "demo:2 and demo:1");
    press(&mut screen, "", "README.md");
    press(&mut screen, "q", "1 ✓ Greet");
    press(&mut screen, "e", "was opened as it was then");
    assert!(screen.written().contains("echo \"Hello, ${1:-world}!\""));
    leave(screen);
}

#[test]
fn a_screen_of_any_size_is_drawn_again() {
    let repo = project();
    let mut screen = open(&repo, (100, 30), "Note the rest");
    for size in [(60, 20), (20, 5), (1, 1), (200, 50), (20, 5)] {
        screen.resize(size);
        screen.press("d");
        screen.settled();
        screen.press("\u{1b}");
        screen.settled();
    }
    screen.resize((80, 24));
    press(&mut screen, "\u{c}", "Note the rest");
    leave(screen);
}

#[test]
fn a_signal_ends_it_and_the_terminal_is_as_it_was() {
    let repo = project();
    let mut screen = open(&repo, (80, 24), "Note the rest");
    screen.signal(Signal::TERM);
    assert_eq!(screen.end(), 130);
    assert!(screen.is_ordinary());
}

#[test]
fn a_damaged_turn_and_hostile_titles_do_no_harm() {
    let repo = project();
    let reference = "refs/teddy/sessions/demo";
    let empty = repo.git(&["mktree"]);
    let before = format!("{reference}~");
    let bad = repo.git(&["commit-tree", &empty, "-p", &before, "-m", "x"]);
    let message = repo.git(&["log", "-1", "--format=%B", reference]);
    let hostile = format!("\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}{message}");
    let tree = format!("{reference}^{{tree}}");
    let tip = repo.git(&["commit-tree", &tree, "-p", &bad, "-m", &hostile]);
    repo.git(&["update-ref", reference, &tip]);

    let mut screen = open(&repo, (100, 30), "! commit");
    let shown = press(&mut screen, "j", "Say how it is used");
    assert!(shown.contains("\\u{1b}]0;owned"), "{shown}");
    press(&mut screen, "j", "Another way");
    leave(screen);
    assert!(!screen_wrote(&repo, "\u{1b}]0;"));
}

/// Checks whether the program writes a text to the terminal.
fn screen_wrote(repo: &TestRepo, text: &str) -> bool {
    let mut screen = open(repo, (100, 30), "! commit");
    screen.press("\u{3}");
    screen.end();
    screen.written().contains(text)
}

#[test]
fn a_deleted_repository_is_reported_and_loaded_turns_are_kept() {
    let repo = project();
    let mut screen = open(&repo, (80, 24), "│ turn demo:");
    let (there, away) = (repo.path().join(".git"), repo.beside("gone"));
    std::fs::rename(&there, &away).unwrap();
    screen.wait_for("✗ ");
    press(&mut screen, "G", "is missing");

    std::fs::rename(&away, &there).unwrap();
    screen.wait_for("│ turn other:0");
    leave(screen);
}

#[test]
fn without_a_terminal_the_other_way_is_named() {
    let repo = project();
    let hint = "`teddy browse --linear` reads line by line";
    repo.teddy(&["browse"])
        .check(1, &["a full screen needs a terminal", hint]);
    let dumb = [("TERM", "dumb")];
    let mut screen = Screen::open_with(&repo, (80, 24), (&["browse"], &dumb));
    assert_eq!(screen.end(), 1);
    assert!(screen.shown().contains("--linear"), "{}", screen.shown());
    let empty = TestRepo::new();
    insta::assert_snapshot!(empty.printed(&["browse"]), @"
    --- stderr
    There are no sessions; `teddy start '<what you want>'` starts one.
    exit code 0
    ");
}

#[test]
fn everything_is_read_line_by_line() {
    let repo = project();
    let commands = " 1 \nd\noutputs\ninput\nfind how it is used\n/used by nobody\n\ncompare 1 way:2\n\
        compare 1\nway:2\nk\nback\nnonsense\nquit now\nq\n2\n";
    let out = linear(&repo, commands);
    out.check(
        0,
        &[
            "Session demo: 4 turns, in use",
            "Session way: 1 turn, from demo:1",
            "   1 ",
            "greet people by their name",
            "+echo \"Hello, ${1:-world}!\"",
            "Hello, Ada!",
            "greet.sh",
            "demo:2 ",
            "`used by nobody` was found nowhere",
            "demo:1 ",
            "way:2",
            "there is no command `compare 1`; help lists them",
            "turn way:2 ",
            "there is no further turn in this session",
            "there is no command `nonsense`; help lists them",
            "there is no command `quit now`; help lists them",
        ],
    );
    assert!(
        !out.stdout.contains('\u{1b}') && !out.stdout.contains("turn demo:2"),
        "{out}"
    );
}

#[test]
fn nothing_is_done_line_by_line_without_a_person() {
    let repo = project();
    let out = linear(&repo, "2\nrestore\nland\nbranch\n");
    out.check(0, &["delete notes.txt", "No terminal to ask in"]);
    assert!(repo.path().join("notes.txt").exists());
    assert_eq!(repo.git(&["rev-list", "--count", "HEAD"]), "1");
}

#[test]
fn a_person_at_a_simple_terminal_is_asked_line_by_line() {
    let repo = project();
    let dumb = [("TERM", "dumb")];
    let mut screen = Screen::open_with(&repo, (80, 40), (&["browse", "--linear"], &dumb));
    screen.wait_for_prompt("demo:4 ›");
    press(&mut screen, "2\n", "demo:2 ›");
    press(&mut screen, "restore\n", "(y/n) ›");
    press(&mut screen, "y\n", "done: restore");
    screen.press("quit\n");
    assert_eq!(screen.end(), 0);
    assert!(!repo.path().join("notes.txt").exists());
}

#[test]
fn one_session_is_shown_and_worked_on() {
    let repo = project();
    let mut screen = Screen::open(&repo, (80, 24), &["browse", "way"]);
    let shown = screen.wait_for("way (in use)");
    assert!(!shown.contains("Note the rest"), "{shown}");
    leave(screen);
    insta::assert_snapshot!(repo.printed(&["browse", "nothing"]), @"
    --- stderr
    error: there is no session `nothing`
    hint: `teddy sessions` lists the sessions
    exit code 1
    ");
}

#[test]
fn a_reader_that_goes_away_ends_the_reading() {
    let repo = project();
    let mut child = repo
        .teddy_command(&["browse", "--linear"])
        .current_dir(repo.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), words.as_ref()), (Some(0), ""));
}
