//! Lists fit the terminal. In a pipe nothing is cut.

use crate::plans::{create, edit, plan};
use crate::screen::Screen;
use crate::support::TestRepo;

const TITLE: &str = "Greet everybody by their name, in the language that they speak at home";

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\ntwo\n");
    repo.commit("Describe what the program does, and for whom it was made");
    repo.done(&["new", "greet-everybody-by-name"]);
    repo.done(&["context", "add", "a.txt"]);
    repo.run_plan(&plan(TITLE, &[edit("a.txt", "two", "needle two")]));
    repo.done(&["branch", "other"]);
    repo.run_plan(&plan("Say goodbye", &[create("b.txt", "bye\n")]));
    repo
}

/// Returns what a terminal of this width shows of some commands.
fn shown(repo: &TestRepo, width: u16) -> String {
    let script = "for line in 'log' 'log --all' 'sessions' 'status' 'find needle' 'blame a.txt'; do
        echo \"\\$ teddy $line\"; $TEDDY $line 2>&1; done; echo the end";
    let variables = [("GIT_PAGER", "cat"), ("PAGER", "cat")];
    let mut screen = Screen::shell(repo, (width, 60), (script, &variables));
    let text = screen.wait_for("the end");
    let id = regex::Regex::new(r"\b[0-9a-f]{8}\b").unwrap();
    let lines = text
        .lines()
        .map(|line| id.replace(line.trim_end(), "<commit>"));
    let lines: Vec<_> = lines.collect();
    lines.join("\n")
}

#[test]
fn lists_fit_60_columns() {
    insta::assert_snapshot!("fits-60", shown(&project(), 60));
}

#[test]
fn lists_fit_80_columns() {
    insta::assert_snapshot!("fits-80", shown(&project(), 80));
}

#[test]
fn lists_fit_200_columns() {
    insta::assert_snapshot!("fits-200", shown(&project(), 200));
}

#[test]
fn in_a_pipe_nothing_is_cut() {
    let repo = project();
    let full = |args: &[&str], text: &str| {
        let out = repo.done(args);
        assert!(out.contains(text) && !out.contains('…'), "{out}");
    };
    full(&["log"], "Say goodbye");
    full(&["log", "--all"], TITLE);
    full(&["log", "--oneline", "--all"], TITLE);
    full(&["sessions"], TITLE);
    full(&["blame", "a.txt"], TITLE);
    full(&["blame", "a.txt"], "and for whom it was made");
    full(&["find", "Greet everybody"], TITLE);
}

#[test]
fn find_prints_a_line_of_a_turn_once() {
    let repo = project();
    let out = repo.done(&["find", "^# Greet"]);
    assert_eq!(out.lines().count(), 1, "{out}");
}

#[test]
fn blame_takes_lines_after_the_file() {
    let repo = project();
    let one = repo.json(&["blame", "a.txt:2"], 0);
    assert_eq!(one, repo.json(&["blame", "-L", "2,2", "a.txt"], 0));
    assert_eq!(one[0]["text"], "needle two");
    assert_eq!(
        repo.json(&["blame", "a.txt:1,2"], 0),
        repo.json(&["blame", "a.txt"], 0)
    );
    // A file whose name ends so is that file.
    repo.write("a:1", "x\n");
    assert_eq!(repo.json(&["blame", "a:1"], 0)[0]["text"], "x");
}
