//! Assumptions made by repair are shown in the review and the report, or sent back to the model.

use crate::plans::{create, execute, plan};
use crate::support::TestRepo;

/// A project with a session and a model with this answer.
fn answered(reply: &str) -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.reply(reply);
    repo
}

#[test]
fn a_doubtful_plan_is_not_run_by_a_second_command_either() {
    let header = plan("Two files", &[]);
    let repo = answered(&format!(
        "{header}\n### `CREATE`\n- **File Path:** [a.md](/a.md)\n- **Description:** d\n```markdown\nx\n```\nThat is all.\n\n\
         ### `CREATE`\n- **File Path:** [b](/b)\n- **Description:** d\n```\ny\n```\n"
    ));
    repo.workflow().plan("go").refused();
    insta::assert_snapshot!(repo.workflow().execute_with(None, false).refused(), @r#"
    The plan was not accepted: 2 mistakes
    plan.md:19: the fences can be read in two ways: line 19 closes its block, or line 27 closes its block
        hint: write the plan again; the fence of each block must be longer than any run of its character inside
    plan.md:20: CREATE a.md: unexpected text "That is all."
        hint: CREATE has a list and one code block; leave everything else out
    turn 1 rejected
    plan.md:19: the fences can be read in two ways: line 19 closes its block, or line 27 closes its block
        hint: write the plan again; the fence of each block must be longer than any run of its character inside
    plan.md:20: CREATE a.md: unexpected text "That is all."
        hint: CREATE has a list and one code block; leave everything else out
    "#);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_repaired_plan_says_so_in_the_review_and_in_the_report() {
    let text = plan("Make it", &[create("b.txt", "b\n"), create("c.txt", "c\n")]);
    let unclosed = text.replacen("b\n````\n", "b\n", 1);
    let repo = answered(&format!("Here is the plan.\n\n{unclosed}"));
    repo.done(&["plan", "-m", "go"]);
    repo.teddy(&["execute", "-y"]).check(0, &["repaired"]);
    let report = repo.done(&["show", "1"]);
    assert!(
        report.contains("## Repairs\n\n- line 3: dropped the text before the title\n- line "),
        "{report}"
    );
    assert!(
        repo.done(&["show", "1", "reply.md"])
            .starts_with("Here is the plan.")
    );
}

#[test]
fn what_a_command_leaves_over_the_limit_is_said_once_and_named_in_the_report() {
    let repo = answered(&plan(
        "Make much",
        &[execute("head -c 3000 /dev/zero > big.bin; echo s > .env")],
    ));
    repo.done(&["plan", "-m", "go"]);
    let said =
        "warning: `big.bin` stays in the session's worktree: untracked and large (3000 bytes)";
    repo.teddy(&["execute", "-y", "-c", "snapshot.max_file_size=1KiB"])
        .check(0, &[said, "warning: `.env` stays"]);
    let report = repo.done(&["show", "1"]);
    assert!(
        report.contains("- `big.bin`: untracked and large (3000 bytes)"),
        "{report}"
    );
    assert!(
        report.contains("- `.env`: untracked and named like a secret"),
        "{report}"
    );
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.reply(&plan("Make a little", &[execute("true")]));
    repo.done(&["plan", "-m", "once more"]);
    let again = repo.teddy(&["execute", "-y", "-c", "snapshot.max_file_size=1KiB"]);
    assert!(
        again.code == 0 && !again.stderr.contains("big.bin` stays"),
        "{}",
        again.stderr
    );
}
