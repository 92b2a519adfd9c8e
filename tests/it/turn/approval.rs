//! Approval by a user or a flag: the turn does and reports exactly what was approved.

use crate::plans::{create, execute, execute_with, with_memos};
use crate::screen::Screen;
use crate::support::TestRepo;

/// Returns a project whose session has a waiting plan.
fn waiting(text: &str) -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\ntwo\nthree\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    std::fs::write(repo.beside("plan.md"), text).unwrap();
    repo.workflow().plan_file(Some("go"), "plan.md").done();
    repo
}

/// Opens the checklist of the waiting plan.
fn checklist(repo: &TestRepo) -> Screen {
    let mut screen = Screen::open(repo, (100, 30), &["execute"]);
    screen.wait_for_prompt("(q)uit ›");
    screen.press("m");
    screen.wait_for("a approve");
    screen
}

/// Runs a plan with a memo and a command that exits with `code`. Returns the memos (`None` if there
/// are none) and the lines of the report about them.
fn memos_after(fields: &str, code: i32) -> (Option<String>, String) {
    let repo = waiting(&with_memos(
        "Remember",
        "[+] Tests are green.",
        &[execute_with(fields, &format!("exit {code}"))],
    ));
    repo.teddy(&["execute", "-y"]);
    let report = repo.workflow().artifact("1", "report.md");
    let section = report.split_once("### Applied State Changes\n").unwrap().1;
    let said = section.split_once("\n### Action Log").unwrap().0.to_owned();
    let memos = std::fs::read_to_string(repo.path().join(".teddy/memos.yaml")).ok();
    (memos, said)
}

#[test]
fn promise_a5_a_plan_of_which_nothing_was_approved_is_declined() {
    let repo = waiting(&with_memos(
        "Make it",
        "[+] A fact.",
        &[create("b.txt", "b\n"), execute("touch c.txt")],
    ));
    let mut screen = checklist(&repo);
    screen.press("*");
    screen.settled();
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert!(
        screen.shown().contains("turn 1 declined"),
        "{}",
        screen.shown()
    );
    assert_eq!(repo.workflow().log()[0]["status"], "declined");
    let report = repo.workflow().artifact("1", "report.md");
    assert!(
        report.contains("- **Overall Status:** Skipped 🟡\n") && report.contains("- Not applied:"),
        "{report}"
    );
    assert!(!repo.path().join("b.txt").exists() && !repo.path().join(".teddy").exists());
}

#[test]
fn promise_a5_a_single_memo_is_something() {
    let repo = waiting(&with_memos(
        "Make it",
        "[+] A fact.",
        &[create("b.txt", "b\n")],
    ));
    let mut screen = checklist(&repo);
    screen.press("G ");
    screen.settled();
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.workflow().log()[0]["status"], "executed");
    assert_eq!(repo.read(".teddy/memos.yaml"), "- A fact.\n");
}

#[test]
fn promise_a5_memos_of_a_plan_that_fails_are_not_applied() {
    assert_eq!(
        memos_after("", 1),
        (
            None,
            "- Not applied: ` [+] Tests are green. `\n\n\
             The plan did not run to its end, so its memos were left out.\n"
                .to_owned()
        )
    );
}

#[test]
fn m9_memos_of_a_plan_that_runs_to_its_end_are_applied() {
    let applied = "- Applied: ` [+] Tests are green. `\n".to_owned();
    let memos = Some("- Tests are green.\n".to_owned());
    assert_eq!(memos_after("", 0), (memos.clone(), applied.clone()));
    assert_eq!(
        memos_after("- **Allow Failure:** true\n", 1),
        (memos, applied),
        "a failure that is allowed does not end the plan"
    );
}

#[test]
fn promise_a5_memos_written_by_a_command_are_kept() {
    let repo = waiting(&with_memos(
        "Remember",
        "[+] A fact.",
        &[execute(
            "mkdir -p .teddy && echo '- Of the command.' > .teddy/memos.yaml",
        )],
    ));
    repo.done(&["execute", "-y"]);
    assert_eq!(
        repo.read(".teddy/memos.yaml"),
        "- Of the command.\n- A fact.\n"
    );
}
