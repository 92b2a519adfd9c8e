//! The report of a plan's actions, and of who approved it.

use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\ntwo\nthree\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo
}

fn of_turn(repo: &TestRepo, name: &str) -> String {
    repo.workflow().artifact("@", name)
}

#[test]
fn promise_a4_each_written_file_is_in_the_report_as_a_difference() {
    let repo = project();
    repo.workflow().run_plan(&plan(
        "Make",
        &[create("b.txt", "b\n"), edit("a.txt", "two", "2")],
    ));
    let report = of_turn(&repo, "report.md");
    for change in [
        "Change of the file:\n````diff\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+b\n````\n",
        "Change of the file:\n````diff\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n````\n",
    ] {
        assert!(report.contains(change), "{change}\n{report}");
    }
    assert!(
        !repo
            .git(&["ls-tree", "-r", "--name-only", "teddy/sessions/demo"])
            .contains("changes/")
    );
}

#[test]
fn promise_a4_a_long_difference_is_cut_and_whole_in_an_artifact() {
    let repo = project();
    let content: String = (1..=1000).map(|n| format!("line {n}\n")).collect();
    repo.run_plan(&plan("Make", &[execute("true"), create("b.txt", &content)]));
    let report = of_turn(&repo, "report.md");
    assert!(
        report.contains("\n... 803 lines left out ...\n"),
        "{report}"
    );
    assert!(
        report.contains("The whole difference is `changes/02.diff`."),
        "{report}"
    );
    let whole = of_turn(&repo, "changes/02.diff");
    assert_eq!(
        whole
            .lines()
            .filter(|line| line.starts_with("+line "))
            .count(),
        1000
    );
}

#[test]
fn promise_a4_a_long_line_and_a_key_do_not_get_into_the_report() {
    let repo = project();
    let key = ["ghp_", "k3Wd9QzR7tYb2LmX5vNc8HsJ4fGp6TaE1uKo"].concat();
    // One copy of the key is where the report truncates the line.
    let long = format!("{} {key} {}", "x".repeat(480), "x".repeat(10_000));
    let content = format!("{long}\nid = {key}\n");
    repo.workflow()
        .run_plan(&plan("Make", &[create("b.txt", &content)]));
    let (report, whole) = (
        of_turn(&repo, "report.md"),
        of_turn(&repo, "changes/01.diff"),
    );
    assert!(report.len() < 5_000, "{report}");
    assert!(whole.contains(&"x".repeat(10_000)));
    assert!(
        !report.contains(&key[..12]) && !whole.contains(&key[..12]),
        "{report}"
    );
}

#[test]
fn promise_a4_who_approved_is_on_record() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Make", &[create("b.txt", "b\n")]));
    assert!(
        of_turn(&repo, "meta.yaml").contains("\napproved_by: -y\n"),
        "{}",
        of_turn(&repo, "meta.yaml")
    );
    assert!(
        of_turn(&repo, "report.md").contains("- **Approved By:** the user beforehand, with `-y`\n")
    );
    repo.reply(&plan("Make", &[create("c.txt", "c\n")]));
    let _ = repo.workflow().resume_turns(Some("go"), 1);
    assert!(
        of_turn(&repo, "meta.yaml").contains("\napproved_by: --yolo\n"),
        "{}",
        of_turn(&repo, "meta.yaml")
    );
    assert!(
        of_turn(&repo, "report.md")
            .contains("- **Approved By:** the user beforehand, with `--yolo`\n")
    );
    // Nobody approved a rejected plan.
    let wrong = plan("Wrong", &[edit("a.txt", "no", "x")]);
    repo.workflow().execute_text(&wrong).refused();
    let (meta, report) = (of_turn(&repo, "meta.yaml"), of_turn(&repo, "report.md"));
    assert!(
        meta.contains("status: rejected") && !meta.contains("approved_by"),
        "{meta}"
    );
    assert!(!report.contains("Approved By"), "{report}");
}
