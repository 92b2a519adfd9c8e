//! `log` of several sessions, with a graph, a start time, a path or the changes.

use crate::plans::{create, edit, plan};
use crate::support::TestRepo;

/// One session has two turns, the other branches off after the first.
fn two_sessions() -> TestRepo {
    let repo = TestRepo::new().file("src/a.txt", "one\ntwo\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["src/a.txt"]);
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("src/a.txt", "two", "2")]));
    repo.workflow()
        .run_plan(&plan("Make b", &[create("b.txt", "b\n")]));
    repo.workflow().branch("1", "other").done();
    repo.workflow()
        .run_plan(&plan("Make c", &[create("src/c.txt", "c\n")]));
    repo
}

/// Returns the lines without commit ids and the time, which is always the same.
fn shown(repo: &TestRepo, args: &[&str]) -> Vec<String> {
    let out = repo.done(&[&["log"], args].concat());
    let without_ids = |line: &str| {
        let is_id = |word: &str| word.len() == 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
        let is_time = |word: &str| word == "2026-01-02" || word == "03:04";
        let is_told = |word: &&str| !is_id(word) && !is_time(word);
        let words: Vec<&str> = line.split(' ').filter(is_told).collect();
        words.join(" ")
    };
    out.lines().map(without_ids).collect()
}

#[test]
fn a_drawing_shows_where_sessions_part() {
    let repo = two_sessions();
    // git orders commits of the same second arbitrarily.
    let parted = [
        "* other:2 executed Make c (1 file) (other)",
        "* demo:2 executed Make b (1 file) (demo)",
    ];
    let mut lines = shown(&repo, &["--graph", "--all"]);
    for line in &mut lines[..2] {
        *line = line.replacen("| *", "*", 1);
    }
    lines[..2].sort();
    lines[..2].reverse();
    assert_eq!(
        lines,
        [
            &parted[..],
            &[
                "|/  ",
                "* demo:1 executed Change a (1 file)",
                "* demo:0 started  Start session demo",
            ]
        ]
        .concat()
    );
    assert_eq!(
        shown(&repo, &["--graph", "-n", "1"]),
        ["* other:2 executed Make c (1 file) (other)"]
    );
}

#[test]
fn turns_of_all_sessions_are_listed_once() {
    let repo = two_sessions();
    assert_eq!(
        shown(&repo, &["--all"]),
        [
            "other:2 executed Make c (1 file)",
            "demo:2  executed Make b (1 file)",
            "demo:1  executed Change a (1 file)",
            "demo:0  started  Start session demo",
        ]
    );
    let rows = repo.json(&["log", "--all", "-n", "2"], 0);
    let told: Vec<String> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{}:{}", row["session"].as_str().unwrap(), row["number"]))
        .collect();
    assert_eq!(told, ["other:2", "demo:2"]);
}

#[test]
fn turns_are_chosen_by_path_and_time() {
    let repo = two_sessions();
    assert_eq!(
        shown(&repo, &["--all", "--", "src"]),
        [
            "other:2 executed Make c (1 file)",
            "demo:1  executed Change a (1 file)"
        ]
    );
    let out = repo.teddy_in(&repo.path().join("src"), &["log", "--", "a.txt"]);
    assert_eq!(out.stdout.lines().count(), 1, "{out}");
    assert_eq!(shown(&repo, &["--since", "2099-01-01"]), [""; 0]);
    assert_eq!(shown(&repo, &["--since", "2001-01-01"]).len(), 3);
}

#[test]
fn what_turns_changed_can_be_shown() {
    let repo = two_sessions();
    let stat = shown(&repo, &["--stat", "-s", "demo", "--", "b.txt"]);
    assert_eq!(
        stat,
        [
            "   2 executed Make b (1 file)",
            " b.txt | 1 +",
            " 1 file changed, 1 insertion(+)",
            "",
        ]
    );
    insta::assert_snapshot!(repo.printed(&["log", "-p", "-s", "demo", "--", "src/a.txt"]), @"
       1 [id] 2026-01-02 03:04 executed Change a (1 file)
    --- a/src/a.txt
    +++ b/src/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2

    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["log", "--graph", "--json"]), @r#"
    {
      "error": {
        "exit_code": 2,
        "hint": "Usage: teddy log --graph [SESSION] [-- <PATH>...]; `teddy log --help` shows its arguments, with examples",
        "kind": "Usage",
        "message": "the argument '--graph' cannot be used with '--json'"
      }
    }
    --- stderr
    error: the argument '--graph' cannot be used with '--json'

    Usage: teddy log --graph [SESSION] [-- <PATH>...]

    hint: `teddy log --help` shows its arguments, with examples
    exit code 2
    "#);
}

#[test]
fn a_short_list_has_number_id_and_title() {
    let repo = two_sessions();
    let short = ["   2 Make b", "   1 Change a", "   0 Start session demo"];
    assert_eq!(shown(&repo, &["-s", "demo", "--oneline"]), short);
    let mut reversed = short;
    reversed.reverse();
    assert_eq!(
        shown(&repo, &["-s", "demo", "--oneline", "--reverse"]),
        reversed
    );
    assert_eq!(
        shown(&repo, &["--graph", "--oneline", "-n", "1"]),
        ["* other:2 Make c (other)"]
    );
    assert_eq!(
        shown(
            &repo,
            &[
                "--all",
                "--reverse",
                "--stat",
                "--oneline",
                "--",
                "src/c.txt"
            ]
        ),
        [
            "other:2 Make c",
            " src/c.txt | 1 +",
            " 1 file changed, 1 insertion(+)",
            ""
        ]
    );
}

#[test]
fn a_drawing_shows_what_turns_changed_beside_its_lines() {
    let repo = two_sessions();
    assert_eq!(
        shown(&repo, &["-s", "demo", "--graph", "--stat", "--oneline"]),
        [
            "* demo:2 Make b (demo)",
            "|  b.txt | 1 +",
            "|  1 file changed, 1 insertion(+)",
            "* demo:1 Change a",
            "|  src/a.txt | 2 +-",
            "|  1 file changed, 1 insertion(+), 1 deletion(-)",
            "* demo:0 Start session demo",
        ]
    );
    let patch = shown(&repo, &["-s", "demo", "--graph", "-p", "-n", "1"]);
    assert!(patch.contains(&"  +++ b/b.txt".to_owned()), "{patch:?}");
}

#[test]
fn a_row_fits_the_terminal() {
    let repo = two_sessions();
    let mut screen = crate::screen::Screen::open_with(
        &repo,
        (60, 24),
        (&["log", "-s", "demo"], &[("GIT_PAGER", "cat")]),
    );
    screen.end();
    let shown = screen.shown();
    assert!(
        shown.contains(" just now   executed Make b (1 file)"),
        "{shown}"
    );
    assert_eq!(shown.lines().count(), 3, "{shown}");
}
