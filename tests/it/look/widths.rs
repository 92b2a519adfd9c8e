//! Lists fit the terminal. In a pipe nothing is cut.

use unicode_width::UnicodeWidthStr as _;

use crate::plans::{create, edit, execute, plan};
use crate::screen::Screen;
use crate::support::TestRepo;

const TITLE: &str = "Greet everybody by their name, in the language that they speak at home";

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\ntwo\n");
    repo.commit("Describe what the program does, and for whom it was made");
    repo.workflow()
        .new_session("greet-everybody-by-name")
        .done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow()
        .run_plan(&plan(TITLE, &[edit("a.txt", "two", "needle two")]));
    repo.done(&["branch", "other"]);
    repo.workflow()
        .run_plan(&plan("Say goodbye", &[create("b.txt", "bye\n")]));
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
fn rows_of_the_log_have_the_same_columns() {
    let repo = project();
    repo.done(&["land", "--no-edit"]);
    let rows = |width: u16| {
        let text = shown(&repo, width);
        let log = text.split("$ teddy ").nth(1).unwrap();
        log.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    for (width, column) in [(60, 25), (40, 5)] {
        for row in rows(width) {
            let status = row.get(column..).unwrap_or_default();
            let words = ["executed", "landed", "started", "branched"];
            assert!(words.iter().any(|word| status.starts_with(word)), "{row}");
        }
    }
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
fn lists_with_long_names_fit_every_width() {
    let repo = project();
    let long = "a-session-whose-name-says-all-that-was-asked-for-and-more";
    repo.done(&["new", long]);
    repo.run_plan(&plan("Run", &[execute("true")]));
    repo.done(&["new", "validate-password"]);
    repo.put(repo.beside("plan.md"), plan(TITLE, &[execute("true")]));
    repo.done(&["plan", "--from", "../plan.md", "-q"]);
    repo.configure(&format!(
        "model: {long}\nmodels:\n  {long}: {{ kind: command, run: [/bin/true, --with-an-option, '{TITLE}'] }}\n"
    ));
    let script = "for line in 'gc -n' 'setup --list' 'sessions' 'status' 'help' 'help --all' log \
        'log --all' 'log --oneline' 'log --graph --all' 'find Greet' 'blame a.txt'; do
        $TEDDY $line; done; echo the end";
    for width in [40, 60, 80, 200] {
        let pager = [("GIT_PAGER", "cat")];
        let mut screen = Screen::shell(&repo, (width, 400), (script, &pager));
        let text = screen.wait_for("the end");
        // The screen joins a line that the terminal wrapped.
        let is_wide = |line: &&str| line.width() > usize::from(width);
        let wide: Vec<&str> = text.lines().filter(is_wide).collect();
        assert!(wide.is_empty(), "{width} columns: {wide:#?}");
        assert!(text.contains(" worktree a-session-"), "{text}");
    }
    let piped = repo.done(&["gc", "-n"]) + &repo.done(&["setup", "--list"]);
    assert!(piped.contains(&format!("/{long}\n")) && !piped.contains('…'));
    assert!(piped.contains(TITLE), "{piped}");
}

#[test]
fn names_that_differ_at_the_end_are_told_apart() {
    let repo = project();
    for model in ["one", "two"] {
        repo.done(&["new", &format!("greet-everybody-by-name-at-home-{model}")]);
    }
    for width in [40, 60, 80] {
        let text = shown(&repo, width);
        let sessions = text
            .split("$ teddy ")
            .find(|part| part.starts_with("sessions"));
        let sessions = sessions.unwrap_or_default();
        let of = |model: &str| sessions.lines().filter(|row| row.contains(model)).count();
        assert_eq!((of("-one  "), of("-two  ")), (1, 1), "{width}: {sessions}");
    }
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

/// Bug: a session had the title of its last question.
#[test]
fn a_session_is_listed_by_its_first_request() {
    let repo = project();
    repo.reply(&plan("Change", &[edit("a.txt", "one", "1")]));
    repo.reply("Two lines.");
    repo.done(&[
        "start",
        "count the lines\nof a.txt",
        "-y",
        "--name",
        "asked",
        "a.txt",
    ]);
    repo.done(&["ask", "how many?"]);
    repo.done(&["branch", "1", "branch-of-asked"]);
    insta::assert_snapshot!(repo.printed(&["sessions"]), @r"
      asked                       2 turns  2026-01-02  count the lines
    * branch-of-asked              1 turn  2026-01-02  Change
      greet-everybody-by-name      1 turn  2026-01-02  Greet everybody by their name, in the language that they speak at home
      other                       2 turns  2026-01-02  Say goodbye
    exit code 0
    ");
    repo.done(&["-s", "asked", "branch", "-m", "renamed"]);
    let rows = repo.json(&["sessions"], 0);
    let asked = |row: &serde_json::Value| (row["name"].clone(), row["request"].clone());
    let rows: Vec<_> = rows.as_array().unwrap().iter().map(asked).collect();
    assert!(
        rows.contains(&("renamed".into(), "count the lines".into())),
        "{rows:?}"
    );
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
