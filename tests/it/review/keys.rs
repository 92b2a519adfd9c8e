//! The review on a pseudo-terminal: screens, keys, and the state of the terminal afterwards.

use std::io::Read as _;
use std::sync::mpsc::channel;

use crate::screen::{Screen, start};
use crate::support::{PATIENCE, TestRepo};

/// A memo, a CREATE and a command.
const PLAN: &str = "# Greet\n- **Status:** Green 🟢\n- **Plan Type:** Implementation\n- **Agent:** Pathfinder\n\n## Rationale\n````text\nNobody greets.\n````\n\n## Memos\n````text\n[+] Greet everybody.\n````\n\n## Action Plan\n\n### `CREATE`\n- **File Path:** [hello.txt](/hello.txt)\n- **Description:** Say hello.\n````text\nhello\n````\n\n### `EXECUTE`\n- **Description:** Say more.\n- **Expected Outcome:** More is said.\n````shell\necho more > more.txt\n````\n";

/// The plan is next to the repository.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    std::fs::write(repo.beside("plan.md"), PLAN).unwrap();
    repo
}

fn review(repo: &TestRepo, size: (u16, u16)) -> Screen {
    let plan = repo.beside("plan.md");
    let mut screen = Screen::open(repo, size, &["execute", plan.to_str().unwrap()]);
    screen.wait_for_prompt("(q)uit ›");
    screen
}

#[test]
fn one_key_approves_all_and_the_files_are_there() {
    let repo = project();
    let mut screen = review(&repo, (80, 24));
    let shown = screen.shown();
    assert!(
        shown.contains("- CREATE: 1 file")
            && shown.contains("$ echo more > more.txt")
            && shown.contains("[+] ADD:    Greet everybody."),
        "{shown}"
    );
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(
        (
            repo.read("hello.txt").as_str(),
            repo.read("more.txt").as_str()
        ),
        ("hello\n", "more\n")
    );
}

/// Returns the highlighted part of each line that has one.
fn highlighted(screen: &Screen) -> Vec<String> {
    let (rows, columns) = screen.screen().size();
    let line = |row| {
        let cells = (0..columns).filter_map(move |column| screen.screen().cell(row, column));
        let cells = cells.filter(|cell| cell.inverse());
        cells
            .map(|cell| match cell.contents() {
                "" => " ".to_owned(),
                contents => contents.to_owned(),
            })
            .collect::<String>()
    };
    (0..rows)
        .map(line)
        .filter(|line| !line.is_empty())
        .collect()
}

#[test]
fn the_question_and_the_whole_selected_row_are_highlighted() {
    let colors: [&[(&str, &str)]; 2] = [&[], &[("NO_COLOR", "1")]];
    for variables in colors {
        let repo = project();
        let plan = repo.beside("plan.md");
        let args = ["execute", plan.to_str().unwrap()];
        let mut screen = Screen::open_with(&repo, (80, 24), (&args, variables));
        screen.wait_for_prompt("(q)uit ›");
        screen.settled();
        let question =
            "Execute this plan? (a)pprove / (r)ead / (m)odify / (e)dit / (s)kip / (q)uit ›";
        assert_eq!(highlighted(&screen), [question], "{variables:?}");
        screen.press("m");
        screen.wait_for("2 of 2 actions");
        screen.press("jj");
        screen.settled();
        let row = "›├─[✓] CREATE: hello.txt";
        assert_eq!(
            highlighted(&screen),
            [format!("{row:<80}")],
            "{variables:?}"
        );
        screen.press("q");
        assert_eq!(screen.end(), 0, "{}", screen.shown());
    }
}

#[test]
fn how_the_plan_was_read_is_shown_on_demand() {
    let repo = project();
    let plan = PLAN.replace("### `CREATE`", "### Create");
    std::fs::write(repo.beside("plan.md"), plan).unwrap();
    let mut screen = review(&repo, (100, 40));
    assert!(!screen.shown().contains("spelling"), "{}", screen.shown());
    screen.press("?");
    screen.wait_for(
        "The plan was read in another spelling: line 18: read `### Create` as the action",
    );
    screen.wait_for_prompt("(q)uit ›");
    screen.settled();
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}

#[test]
fn what_is_switched_off_does_not_run() {
    for size in [(80, 24), (200, 60), (40, 12)] {
        let repo = project();
        let mut screen = review(&repo, size);
        screen.press("m");
        screen.wait_for("2 of 2 actions");
        screen.press("G ");
        let shown = screen.wait_for("1 of 2 actions");
        assert!(
            shown.contains("[✓] CREATE: hello.txt") && shown.contains("[ ] EXECUTE: echo more"),
            "{shown}"
        );
        screen.press("a");
        assert_eq!(screen.end(), 0, "{}", screen.shown());
        assert_eq!(repo.read("hello.txt"), "hello\n");
        assert!(!repo.path().join("more.txt").exists());
    }
}

#[test]
fn keys_that_arrive_together_approve_nothing() {
    let repo = project();
    let mut screen = review(&repo, (80, 24));
    for burst in ["xa", "a\r", "\rab", "\x1b[200~a\ra\x1b[201~"] {
        screen.press(burst);
        screen.settled();
        assert!(!repo.path().join("hello.txt").exists(), "{burst:?}");
    }
    assert!(
        screen
            .shown()
            .contains("Keys that arrive together approve nothing")
    );

    screen.press("m");
    screen.wait_for("2 of 2 actions");
    screen.press("xa");
    screen.wait_for("Keys that arrive together approve nothing");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("hello.txt"), "hello\n");
}

#[test]
fn a_yes_that_arrives_with_other_keys_is_none() {
    let repo = project();
    repo.workflow().new_session("demo").done();
    let mut screen = Screen::open(&repo, (80, 24), &["gc", "demo"]);
    screen.wait_for_prompt("(y/n) ›");
    screen.press("teddy status\r");
    screen.wait_for("Keys that arrive together approve nothing");
    assert!(
        repo.git(&["for-each-ref", "refs/teddy/sessions"])
            .contains("demo")
    );

    // A line with one key is an answer.
    screen.press("y\r");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.git(&["for-each-ref", "refs/teddy/sessions"]), "");
}

#[test]
fn keys_typed_at_an_editor_do_not_approve_what_it_changed() {
    let repo = project();
    let plan = repo.beside("plan.md");
    let args = ["execute", plan.to_str().unwrap()];
    let editor = [("GIT_EDITOR", "sleep 0.5; true")];
    let mut screen = Screen::open_with(&repo, (80, 24), (&args, &editor));
    screen.wait_for_prompt("(q)uit ›");
    screen.press("exa");
    screen.wait_for("(q)uit › e");
    // It asks again after the editor.
    screen.wait_for_prompt("(q)uit ›");
    screen.settled();
    assert!(!repo.path().join("hello.txt").exists());
    screen.press("q");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert!(!repo.path().join("hello.txt").exists());
}

#[test]
fn a_key_means_the_same_in_the_summary_and_in_the_tree() {
    let is_tree = [false, true];
    let open = |repo: &TestRepo, is_tree: bool| {
        let mut screen = review(repo, (80, 24));
        if is_tree {
            screen.press("m");
            screen.wait_for("2 of 2 actions");
        }
        screen
    };
    for is_tree in is_tree {
        for (key, does) in [("a", "Updated your files"), ("\r", "Updated your files")] {
            let repo = project();
            let mut screen = open(&repo, is_tree);
            screen.press(key);
            screen.wait_for(does);
            assert_eq!(screen.end(), 0, "{}", screen.shown());
        }

        let repo = project();
        let mut screen = open(&repo, is_tree);
        screen.press("s");
        screen.wait_for("What should be done instead?");
        screen.press("\x04");
        screen.end();
        assert!(!repo.path().join("hello.txt").exists());

        let repo = project();
        let mut screen = open(&repo, is_tree);
        screen.press("q");
        screen.wait_for("Nothing was run; the plan of turn 1 is waiting.");
        assert_eq!(screen.end(), 0);
    }
}

/// Regression: the help said that enter sends and ctrl-d leaves.
#[test]
fn the_keys_of_a_decline_say_what_they_do_there() {
    let repo = project();
    let mut screen = review(&repo, (80, 24));
    screen.press("s");
    screen.wait_for("What should be done instead?");
    screen.press("?\r");
    let shown = screen.wait_for("go back to the review");
    let (_, keys) = shown.rsplit_once("ctrl-d declines without").unwrap();
    let (_, keys) = keys.split_once('\n').unwrap();
    insta::assert_snapshot!(keys.trim_end().trim_end_matches("›").trim_end(), @r"
    › ?
      enter              decline the plan with this text
      \ enter, alt-enter start a new line
      ctrl-e             continue in your editor
      ctrl-u, ctrl-w     delete the line, the word
      ctrl-d             decline it without a text, if nothing is written
      ctrl-c             drop the text; go back to the review, if nothing is written
    ");
    screen.press("\x04");
    screen.end();
}

/// Closes the window of a review and waits until the program ends.
fn close_window(variables: &[(&str, &str)]) {
    let repo = project();
    let plan = repo.beside("plan.md");
    let arguments = ["execute", plan.to_str().unwrap()];
    let (master, mut child) = start(&repo, (80, 24), (&arguments, variables));
    let mut reader = master.try_clone_reader().unwrap();
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    while !seen.contains("uit") {
        let length = reader.read(&mut buffer).unwrap();
        assert!(length > 0, "it ended before the review: {seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    drop((reader, master));
    let (sender, ended) = channel();
    std::thread::spawn(move || sender.send(child.wait().is_ok()));
    assert!(
        ended.recv_timeout(PATIENCE).is_ok(),
        "it runs on without a terminal"
    );
    assert!(!repo.path().join("hello.txt").exists());
}

#[test]
fn a_review_whose_window_is_closed_ends_and_changes_nothing() {
    close_window(&[]);
}

#[test]
fn a_review_whose_window_is_closed_while_keys_are_read_ends_too() {
    close_window(&[("FAILPOINTS", "before-reading=sleep(400)")]);
}

#[test]
fn reading_and_leaving_changes_nothing() {
    let repo = project();
    let mut screen = review(&repo, (80, 24));
    screen.press("r");
    screen.wait_for("Nobody greets.");
    screen.press("q");
    screen.settled();
    screen.press("\x03");
    screen.end();
    assert!(!repo.path().join("hello.txt").exists());
}

#[test]
fn r7_what_the_person_edits_is_what_runs_and_what_the_report_says() {
    let repo = project();
    let mut screen = review(&repo, (80, 24));
    screen.press("mjjp");
    screen.wait_for("CREATE: hello.txt  *modified");
    screen.press("f");
    screen.wait_for("File path: [hello.txt]");
    screen.press("mine.txt\r");
    screen.wait_for("CREATE: mine.txt  *modified");
    screen.press("jp");
    screen.wait_for("(e)dit or (c)lose");
    screen.press("e");
    screen.wait_for("› echo more > more.txt");
    screen.press("\x15echo other > other.txt\r");
    screen.wait_for("EXECUTE: echo other > other.txt  *modified");
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(
        (
            repo.read("mine.txt").as_str(),
            repo.read("other.txt").as_str()
        ),
        ("mine\n", "other\n")
    );
    assert!(!repo.path().join("hello.txt").exists() && !repo.path().join("more.txt").exists());
    let session = repo.git(&["for-each-ref", "--format=%(refname)", "refs/teddy/sessions"]);
    let report = repo.git(&["show", &format!("{}:report.md", session.trim())]);
    assert!(
        report.contains("#### `CREATE` (user modified)")
            && report.contains("+echo other > other.txt"),
        "{report}"
    );
}

#[test]
fn a_session_is_chosen_from_a_list_and_leaving_changes_nothing() {
    let repo = project();
    repo.workflow().new_session("first").done();
    repo.workflow().new_session("second").done();
    repo.workflow().switch("first").done();
    let current = || {
        repo.json(&["status"], 0)["session"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let open = || {
        let mut screen = Screen::open(&repo, (80, 24), &["switch"]);
        screen.wait_for("second: Start session second");
        screen
    };
    let mut screen = open();
    // A paste chooses nothing.
    screen.press("\x1b[200~j\r\x1b[201~");
    screen.settled();
    screen.press("\x1b");
    assert_eq!(
        (screen.end(), current()),
        (1, "first".to_owned()),
        "{}",
        screen.shown()
    );
    let mut screen = open();
    let second = screen
        .shown()
        .lines()
        .position(|line| line.contains("second:"))
        > screen
            .shown()
            .lines()
            .position(|line| line.contains("first:"));
    screen.press(if second { "j\r" } else { "\r" });
    assert_eq!(
        (screen.end(), current()),
        (0, "second".to_owned()),
        "{}",
        screen.shown()
    );
    let mut screen = open();
    screen.press("\x03");
    assert_eq!(
        (screen.end(), current()),
        (130, "second".to_owned()),
        "{}",
        screen.shown()
    );
}

/// Bug: a resize ended the command as ctrl-c does.
#[test]
fn a_list_is_drawn_again_when_the_window_is_resized() {
    let repo = project();
    repo.workflow().new_session("first").done();
    repo.workflow().new_session("second").done();
    let mut screen = Screen::open(&repo, (80, 24), &["switch"]);
    screen.wait_for("first: Start session first");
    screen.settled();
    for size in [(40, 10), (70, 20)] {
        screen.resize(size);
        screen.settled();
        let shown = screen.shown();
        assert_eq!(shown.matches("Start session first").count(), 1, "{shown}");
    }
    screen.press("\r");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
}

/// Bug: it was a panic.
#[test]
fn a_window_without_rows_for_a_list_is_an_error() {
    let repo = project();
    repo.workflow().new_session("first").done();
    let mut screen = Screen::open(&repo, (80, 10), &["switch"]);
    screen.wait_for("first: Start session first");
    screen.settled();
    screen.resize((80, 2));
    screen.wait_for("too low for a list");
    assert_eq!(screen.end(), 1, "{}", screen.shown());
}
