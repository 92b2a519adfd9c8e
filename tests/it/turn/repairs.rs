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
    repo.workflow().plan("go").done();
    insta::assert_snapshot!(repo.workflow().execute().done(), @"
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    ▶ 2. CREATE c.txt
      ✓ created, 1 line
    turn 1 executed
      added b.txt
      added c.txt
    ");
    let report = repo.workflow().artifact("1", "report.md");
    let (_, repairs) = report.split_once("## Repairs\n").unwrap();
    insta::assert_snapshot!(repairs.split("\n## ").next().unwrap(), @r"
    - line 3: dropped the text before the title
    - line 20: closed the block that opens at line 18; its closing fence was missing
    ");
    assert!(
        repo.workflow()
            .artifact("1", "reply.md")
            .starts_with("Here is the plan.")
    );
}

#[test]
fn files_over_the_limit_are_reported_once_and_named_in_the_report() {
    let repo = answered(&plan(
        "Make much",
        &[execute("head -c 3000 /dev/zero > big.bin; echo s > .env")],
    ));
    repo.workflow().plan("go").done();
    let execute_small = [
        "execute",
        "-y",
        "-c",
        "snapshot.max_file_size=1KiB",
        "-c",
        "execute.sandbox=off",
    ];
    insta::assert_snapshot!(repo.printed(&execute_small), @r#"
    turn 1 executed [id]
    --- stderr
    ▶ Reviewing Plan: "Make much"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Make much, because it is wanted.
     Look at:
      ⚠ commands run with all your rights (not sandboxed)
     Action Plan:
      - EXECUTE: 1 command (not sandboxed)
        $ head -c 3000 /dev/zero > big.bin; echo s > .env
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. EXECUTE head -c 3000 /dev/zero > big.bin; echo s > .env
      ✓ the command succeeded
    Your files are unchanged.
    warning: `.env` is not recorded: untracked and named like a secret
    warning: `big.bin` is not recorded: untracked and large (3000 bytes)
    exit code 0
    "#);
    let report = repo.workflow().artifact("1", "report.md");
    for line in [
        "- `big.bin`: untracked and large (3000 bytes)",
        "- `.env`: untracked and named like a secret",
    ] {
        assert!(report.contains(line), "{report}");
    }
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.reply(&plan("Make a little", &[execute("true")]));
    repo.workflow().plan("once more").done();
    insta::assert_snapshot!(repo.printed(&execute_small), @r#"
    turn 2 executed [id]
    --- stderr
    ▶ Reviewing Plan: "Make a little"
      demo · turn 2 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Make a little, because it is wanted.
     Look at:
      ⚠ commands run with all your rights (not sandboxed)
     Action Plan:
      - EXECUTE: 1 command (not sandboxed)
        $ true
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. EXECUTE true
      ✓ the command succeeded
    Your files are unchanged.
    exit code 0
    "#);
}
