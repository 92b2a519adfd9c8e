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
    insta::assert_snapshot!(repo.plain(&report), @"
    # Execution Report: Make
    - **Overall Status:** Completed 🟢
    - **Approved By:** the user beforehand, with `-y`
    - **Original Plan:** [.teddy/demo/01/plan.md](/.teddy/demo/01/plan.md)
    - **Start Time:** 2026-01-02T03:04:05Z
    - **End Time:** 2026-01-02T03:04:05Z
    - **Actions:** 2 Total / 2 Approved / 0 Skipped
    - **Outcomes:** 2 Succeeded / 0 Failed

    ## 1. Rationale
    ````text
    Make, because it is wanted.
    ````

    ## 2. Execution Summary

    ### Applied State Changes
    *(No state changes were proposed in the plan.)*

    ### Action Log

    #### `CREATE`
    - **Status:** Approved ✅
    - **Execution:** Success 🟢
    - **Duration:** [n]
    - **Outcome:** created, 1 line
    - **File Path:** [b.txt](/b.txt)
    - **Description:** Make b.txt.

    Change of the file:
    ````diff
    --- /dev/null
    +++ b/b.txt
    @@ -0,0 +1 @@
    +b
    ````

    #### `EDIT`
    - **Status:** Approved ✅
    - **Execution:** Success 🟢
    - **Duration:** [n]
    - **Outcome:** changed 1 place: 1 line added, 1 removed
    - **File Path:** [a.txt](/a.txt)
    - **Description:** Change a.txt.
    - **Match 1:** line 2, whole lines

    Change of the file:
    ````diff
    --- a/a.txt
    +++ b/a.txt
    @@ -1,3 +1,3 @@
     one
    -two
    +2
     three
    ````
    ");
    insta::assert_snapshot!(repo.workflow().artifacts("@").join("\n"), @"
    meta.yaml
    next/meta.yaml
    next/requests.yaml
    next/system_prompt.xml
    next/turn.context
    plan.md
    report.md
    session.context
    system_prompt.xml
    turn.context
    ");
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
    let approval = |repo: &TestRepo| {
        let texts = ["meta.yaml", "report.md"].map(|name| of_turn(repo, name));
        let lines = texts.iter().flat_map(|text| text.lines());
        let is_approval =
            |line: &&str| line.contains("approved_by") || line.contains("Approved By");
        lines.filter(is_approval).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(approval(&repo), @"
    approved_by: -y
    - **Approved By:** the user beforehand, with `-y`
    ");
    repo.reply(&plan("Make", &[create("c.txt", "c\n")]));
    let _ = repo.workflow().resume_turns(Some("go"), 1);
    insta::assert_snapshot!(approval(&repo), @"
    approved_by: --yolo
    - **Approved By:** the user beforehand, with `--yolo`
    ");
    // Nobody approved a rejected plan.
    let wrong = plan("Wrong", &[edit("a.txt", "no", "x")]);
    repo.workflow().execute_text(&wrong).refused();
    assert!(of_turn(&repo, "meta.yaml").contains("status: rejected"));
    assert_eq!(approval(&repo), "");
}
