//! Changes: `plan`, `impl`, `archive` and their steps. The first tests are the scenarios of the
//! specification, with its names. The tests `aN` are cases that an earlier implementation got wrong.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use teddy::host::lock::Lock;
use teddy::workflow::restore::OnOverlap;

use crate::fake::{Fake, stream};
use crate::plans::{chat, create, execute, plan, read};
use crate::scripted_agent::scripted_agent;
use crate::support::in_process::{Reply, Workflow};
use crate::support::scripted_user::{Scripted, ScriptedUser};
use crate::support::{Output, PATIENCE, TestRepo};

const ANSWERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/change");
const ID: &str = "greet-by-name";

/// A project whose program greets everybody the same way.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("greet.sh", "#!/bin/sh\necho 'Hello!'\n");
    repo.commit("init");
    repo
}

/// A project with all recorded answers in one replay.
fn recorded() -> TestRepo {
    let repo = project();
    repo.configure(&format!(
        "model: recorded\nmodels:\n  recorded: {{ kind: replay, path: {ANSWERS} }}\n"
    ));
    repo
}

/// A project with these answers, in order.
fn answering(answers: &[&str]) -> TestRepo {
    let repo = project();
    answers.iter().for_each(|answer| {
        repo.reply(answer);
    });
    repo
}

fn answer(name: &str) -> String {
    std::fs::read_to_string(format!("{ANSWERS}/{name}.md")).unwrap()
}

/// A review with a verdict and one issue.
fn verdict(word: &str, severity: &str) -> String {
    format!(
        "## Summary\nSo.\n\n## Issues\n\n### Issue: One\n- **Severity**: {severity}\n- **Location**: x\n\n## Verdict\n{word}\n"
    )
}

/// Creates a change in a phase with plain git. Its state has only the id and the phase.
pub(crate) fn put(repo: &TestRepo, id: &str, phase: &str) {
    put_with(repo, (id, phase), &answer("01-proposal").replace(ID, id));
}

/// Like [`put`], with this proposal.
pub(crate) fn put_with(repo: &TestRepo, of: (&str, &str), proposal: &str) {
    put_documents(repo, of, proposal, &answer("03-tasks"));
}

fn put_documents(repo: &TestRepo, (id, phase): (&str, &str), proposal: &str, tasks: &str) {
    let folder = repo.beside(&format!("put-{id}"));
    std::fs::create_dir_all(folder.join("specs")).unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    let done = matches!(phase, "complete" | "archived");
    write(
        "STATE.yaml",
        format!("change_id: {id}\nphase: {phase}\nmood: good\n"),
    );
    write("proposal.md", proposal.to_owned());
    write("specs/greeting.md", answer("02-spec"));
    write(
        "tasks.md",
        if done {
            tasks.replace("[ ]", "[x]")
        } else {
            tasks.to_owned()
        },
    );
    let index = repo.beside(&format!("index-{id}"));
    let git = |args: &[&str]| {
        let mut command = repo.command("git");
        command
            .current_dir(&folder)
            .env("GIT_DIR", repo.path().join(".git"))
            .env("GIT_WORK_TREE", &folder)
            .env("GIT_INDEX_FILE", &index);
        let output = command.args(args).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["add", "-A"]);
    let tree = git(&["write-tree"]);
    let commit = git(&["commit-tree", &tree, "-m", "by hand"]);
    git(&["update-ref", &format!("refs/teddy/changes/{id}"), &commit]);
}

fn phase(repo: &TestRepo, id: &str) -> String {
    repo.workflow().change_status(id)["phase"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Returns the subjects of the steps, oldest first.
fn steps(repo: &TestRepo, id: &str) -> Vec<String> {
    repo.git(&[
        "log",
        "--reverse",
        "--format=%s",
        &format!("refs/teddy/changes/{id}"),
    ])
    .lines()
    .map(str::to_owned)
    .collect()
}

fn tip(repo: &TestRepo, id: &str) -> String {
    repo.git(&[
        "for-each-ref",
        "--format=%(objectname)",
        &format!("refs/teddy/changes/{id}"),
    ])
}

/// Runs a command that must fail without a change of refs or files. Returns its output.
fn refused(repo: &TestRepo, id: &str, args: &[&str], code: i32) -> Output {
    let (before, files) = (tip(repo, id), repo.tree());
    let out = repo.teddy(args);
    assert_eq!(out.code, code, "{args:?}: {out}");
    assert_eq!((tip(repo, id), repo.tree()), (before, files), "{args:?}");
    out
}

/// As [`refused`], in this process.
#[track_caller]
fn refuses(repo: &TestRepo, id: &str, call: impl FnOnce(Workflow<'_>) -> Reply) -> String {
    let (before, files) = (tip(repo, id), repo.tree());
    let reply = call(repo.workflow()).refused();
    assert_eq!((tip(repo, id), repo.tree()), (before, files), "{reply}");
    reply
}

/// Returns a document of a change.
fn document(repo: &TestRepo, id: &str, name: &str) -> String {
    repo.git(&["show", &format!("refs/teddy/changes/{id}:{name}")])
}

// The scenarios of the specification.

#[test]
fn initial_planning() {
    let repo = recorded();
    let planned = repo
        .workflow()
        .plan_change(ID, Some("Greet people by name"));
    insta::assert_snapshot!(planned.done(), @r#"
    author: proposal.md
    Asking recorded with about [n] tokens
    author: specs/greeting.md
    Asking recorded with about [n] tokens
    author: tasks.md
    Asking recorded with about [n] tokens
    challenger: a review with a verdict
    Asking recorded with about [n] tokens
    author: documents in `<file>` blocks
    Asking recorded with about [n] tokens
    challenger: a review with a verdict
    Asking recorded with about [n] tokens
    {
      "change": "greet-by-name",
      "action": "planned",
      "phase": "challenged",
      "iteration": 2,
      "written": 3,
      "challenges": 2,
      "reproposals": 1,
      "verdict": "approved",
      "issues": {
        "high": 0,
        "medium": 0,
        "low": 0,
        "unclear": 0
      },
      "only_minor_issues": false,
      "next": "planning is complete; `teddy change impl greet-by-name` implements it"
    }
    "#);
    let expected = [
        "Propose: Greet people by name instead of all alike.",
        "Specify: greeting",
        "List tasks: 2",
        "Challenge 1: needs revision (1 high)",
        "Revise 2: specs/greeting.md",
        "Challenge 2: approved (no issues)",
    ];
    assert_eq!(steps(&repo, ID), expected);
    let names = repo.git(&[
        "ls-tree",
        "-r",
        "--name-only",
        &format!("refs/teddy/changes/{ID}"),
    ]);
    assert_eq!(
        names,
        "STATE.yaml\nproposal.md\nspecs/greeting.md\ntasks.md"
    );
}

#[test]
fn the_documents_of_a_change_are_held_against_the_limit_of_dollars() {
    let repo = project();
    let fake = Fake::answering(
        &["01-proposal", "02-spec"].map(|name| stream(&answer(name), "stop", (1_000_000, 0))),
    );
    let model = format!(
        "{{ kind: openai, id: x, base_url: \"{}/v1\", price: {{ input: 2, output: 0 }} }}",
        fake.origin
    );
    repo.configure(&format!(
        "model: fake\nmodels: {{ fake: {model} }}\nlimits: {{ cost: 4 }}\n"
    ));
    let over = [
        "the call would cost about $0.00, $4.00 is spent, and the limit is $4.00; nothing was sent",
        "limits.cost",
    ];
    repo.teddy(&["change", "plan", ID, "Greet people by name"])
        .check(1, &over);
    assert_eq!(fake.requests().len(), 2);
    assert_eq!(steps(&repo, ID).len(), 2, "what was paid is kept");
    // The next call includes the cost of earlier calls.
    repo.teddy(&["change", "plan", ID]).check(1, &over);
    assert_eq!(fake.requests().len(), 2);
}

#[test]
fn planning_with_reproposal_loop() {
    let revision = answer("05-revision");
    let (high, low) = (
        verdict("NEEDS_REVISION", "High"),
        verdict("NEEDS_REVISION", "Low"),
    );
    let documents = [answer("01-proposal"), answer("02-spec"), answer("03-tasks")];
    let [a, b, c] = documents.each_ref().map(String::as_str);
    let repo = answering(&[
        a, b, c, &high, &revision, &high, &revision, &high, &revision, &low,
    ]);
    // A9: with the limit of 3, exactly three reproposals and four challenges.
    // A10: at the limit, with only minor issues left, the phase stays.
    let planned = repo.workflow().plan_change(ID, Some("Greet"));
    insta::assert_snapshot!(planned.done(), @r#"
    author: proposal.md
    Asking replay:[dir]/answers with about [n] tokens
    author: specs/greeting.md
    Asking replay:[dir]/answers with about [n] tokens
    author: tasks.md
    Asking replay:[dir]/answers with about [n] tokens
    challenger: a review with a verdict
    Asking replay:[dir]/answers with about [n] tokens
    author: documents in `<file>` blocks
    Asking replay:[dir]/answers with about [n] tokens
    challenger: a review with a verdict
    Asking replay:[dir]/answers with about [n] tokens
    author: documents in `<file>` blocks
    Asking replay:[dir]/answers with about [n] tokens
    challenger: a review with a verdict
    Asking replay:[dir]/answers with about [n] tokens
    author: documents in `<file>` blocks
    Asking replay:[dir]/answers with about [n] tokens
    challenger: a review with a verdict
    Asking replay:[dir]/answers with about [n] tokens
    {
      "change": "greet-by-name",
      "action": "planned",
      "phase": "proposed",
      "iteration": 4,
      "written": 3,
      "challenges": 4,
      "reproposals": 3,
      "verdict": "needs_revision",
      "issues": {
        "high": 0,
        "medium": 0,
        "low": 1,
        "unclear": 0
      },
      "only_minor_issues": true,
      "next": "`teddy change plan greet-by-name` challenges it; `teddy change approve greet-by-name --reason '<why>'` overrides the challenge"
    }
    "#);
    assert_eq!(repo.workflow().change_status(ID)["only_minor_issues"], true);
    // The user decides, and that is on record.
    let reason = "only a matter of taste is left";
    repo.workflow().approve(ID, reason).done();
    assert_eq!(phase(&repo, ID), "challenged");
    assert_eq!(
        steps(&repo, ID).last().unwrap(),
        "Approve in place of the challenge: only a matter of taste is left"
    );
    assert!(document(&repo, ID, "STATE.yaml").contains("reason: only a matter of taste is left"));
}

#[test]
fn planning_complete() {
    let repo = project();
    put(&repo, ID, "challenged");
    // A4: no model is configured, so none is asked.
    let planned = repo.workflow().plan_change(ID, Some("something else"));
    insta::assert_snapshot!(planned.done(), @r#"
    {
      "change": "greet-by-name",
      "action": "already_complete",
      "phase": "challenged",
      "iteration": 1,
      "written": 0,
      "challenges": 0,
      "reproposals": 0,
      "verdict": null,
      "issues": {
        "high": 0,
        "medium": 0,
        "low": 0,
        "unclear": 0
      },
      "only_minor_issues": false,
      "next": "planning is complete; `teddy change impl greet-by-name` implements it"
    }
    "#);
    insta::assert_snapshot!(repo.workflow().plan_change(ID, None).done(), @r#"
    {
      "change": "greet-by-name",
      "action": "already_complete",
      "phase": "challenged",
      "iteration": 1,
      "written": 0,
      "challenges": 0,
      "reproposals": 0,
      "verdict": null,
      "issues": {
        "high": 0,
        "medium": 0,
        "low": 0,
        "unclear": 0
      },
      "only_minor_issues": false,
      "next": "planning is complete; `teddy change impl greet-by-name` implements it"
    }
    "#);
    assert_eq!(steps(&repo, ID), ["by hand"]);
}

#[test]
fn without_a_model_the_hint_is_one_that_helps_a_change() {
    let repo = project();
    let planned = repo.workflow().plan_change(ID, Some("Greet people"));
    insta::assert_snapshot!(planned.refused(), @r"
    error: no model is configured
    hint: `teddy setup` sets one up, `change.roles` in your configuration names one for each role, and `--model` one for this call
    exit code 1
    ");
}

#[test]
fn rejected_proposal() {
    let repo = project();
    put(&repo, ID, "rejected");
    // A5: no model is asked; the review block is named.
    let refused = refuses(&repo, ID, |workflow| workflow.plan_change(ID, None));
    insta::assert_snapshot!(refused, @r"
    error: the proposal of `greet-by-name` is rejected
    hint: `teddy change show greet-by-name review` has the reasons; change the proposal with `teddy change reproposal greet-by-name --from <file>` and run `teddy change challenge greet-by-name`, or override it with `teddy change approve greet-by-name --reason '<why>'`
    exit code 1
    ");
}

#[test]
fn start_implementation() {
    let repo = project();
    put(&repo, ID, "challenged");
    repo.configure("model: command:false\n");
    // A11: the phase is recorded before the call of the model, which fails here.
    insta::assert_snapshot!(repo.printed(&["change", "impl", ID, "-y"]), @"
    --- stderr
    task 1.1: Say what is wanted
    Asking command:false with about [n] tokens, no price set
    error: `false` failed (exit status: 1)
    hint: run it by hand: it gets the input on stdin and must print the plan on stdout; a key that it needs is named with `api_key_env`
    exit code 1
    ");
    assert_eq!(
        (phase(&repo, ID), steps(&repo, ID)),
        (
            "implementing".to_owned(),
            vec!["by hand".to_owned(), "Begin to implement".to_owned()]
        )
    );
}

#[test]
fn continue_implementation() {
    let repo = answering(&[
        &plan("One", &[create("test.sh", "true\n")]),
        &plan("Two", &[create("two.txt", "2\n")]),
        &verdict("APPROVED", "Low"),
    ]);
    put(&repo, ID, "implementing");
    insta::assert_snapshot!(repo.workflow().implement(ID, true).done(), @r#"
    task 1.1: Say what is wanted
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE test.sh
      ✓ created, 1 line
    task 2.1: Take a name
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE two.txt
      ✓ created, 1 line
    reviewer: a review with a verdict
    Asking replay:[dir]/answers with about [n] tokens
    {
      "change": "greet-by-name",
      "done": 2,
      "fixes": 0,
      "issues": {
        "high": 0,
        "low": 1,
        "medium": 0,
        "unclear": 0
      },
      "next": "`teddy change archive greet-by-name` merges its specs into the project's",
      "phase": "complete",
      "reviews": 1,
      "stopped": null,
      "tasks": 2,
      "verdict": "approved"
    }
    "#);
    let expected = [
        "by hand",
        "Do 1.1: Say what is wanted (turn 1)",
        "Do 2.1: Take a name (turn 2)",
        "Review 1: approved (1 low)",
    ];
    assert_eq!(steps(&repo, ID), expected);
    assert_eq!(repo.read("two.txt"), "2\n");
}

#[test]
fn c13_a_task_is_open_again_if_its_turn_was_undone() {
    let repo = answering(&[
        &plan("One", &[create("test.sh", "true\n")]),
        &plan("Two", &[create("two.txt", "2\n")]),
        &plan("Another two", &[create("two.txt", "two\n")]),
        &verdict("APPROVED", "Low"),
    ]);
    put(&repo, ID, "implementing");
    repo.workflow().implement(ID, false).done();
    let done = || repo.json(&["change", "status", ID], 0)["done"].take();
    let session = || repo.workflow().session("change/greet-by-name");
    session().undo(2).done();
    assert_eq!(done(), 0);
    session().redo(2).done();
    assert_eq!(done(), 2);
    session().undo(1).done();
    assert_eq!(done(), 1);
    assert_eq!(repo.json(&["change", "list"], 0)[0]["done"], 1);
    repo.teddy(&["change", "review", ID])
        .check(1, &["has 1 open task"]);

    repo.workflow().implement(ID, true).done();
    let expected = [
        "by hand",
        "Do 1.1: Say what is wanted (turn 1)",
        "Do 2.1: Take a name (turn 2)",
        "Do 2.1: Take a name (turn 6)",
        "Review 1: approved (1 low)",
    ];
    assert_eq!(steps(&repo, ID), expected);
    assert_eq!(repo.read("two.txt"), "two\n");
    assert_eq!(done(), 2);
}

/// Bug: the newest turn, of another worktree, counted as all that was in effect.
#[test]
fn c13_a_task_that_another_worktree_did_is_done() {
    let repo = answering(&[
        &plan("One", &[create("test.sh", "true\n")]),
        &plan("Two", &[create("two.txt", "2\n")]),
        &verdict("NEEDS_FIX", "High"),
        &plan("Fix", &[create("three.txt", "3\n")]),
        &verdict("APPROVED", "Low"),
    ]);
    put(&repo, ID, "implementing");
    repo.workflow().implement(ID, false).done();
    let session = || repo.workflow().session("change/greet-by-name");
    session().undo(1).done();
    session().redo(1).done();
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    repo.teddy_in(&linked, &["change", "impl", ID, "-y"])
        .check(0, &["complete, 2 of 2 tasks done"]);
    let status = repo.json(&["change", "status", ID], 0);
    assert_eq!(
        (&status["phase"], &status["done"], &status["undone"]),
        (&"complete".into(), &2.into(), &serde_json::json!([]))
    );
    session().restore("1").done();
    assert_eq!(repo.json(&["change", "status", ID], 0)["done"], 1);
}

/// Bug: the change was complete without it.
#[test]
fn c13_a_task_that_another_session_took_out_is_done_again_before_the_review() {
    let repo = answering(&[
        &plan("One", &[create("test.sh", "true\n")]),
        &plan("Two", &[create("two.txt", "2\n")]),
        &plan("Two again", &[create("two.txt", "two\n")]),
        &plan("One again", &[create("test.sh", "false\n")]),
        &verdict("APPROVED", "Low"),
    ]);
    put(&repo, ID, "implementing");
    let other = repo.beside("other.md");
    std::fs::write(&other, plan("Other", &[create("other.txt", "x\n")])).unwrap();
    repo.done(&["new", "other"]);
    repo.done(&["execute", other.to_str().unwrap(), "-y"]);
    repo.workflow().implement(ID, false).done();
    let session = || repo.workflow().session("change/greet-by-name");
    session().undo(1).done();
    repo.done(&["-s", "other", "restore", "1"]);
    repo.done(&["change", "impl", ID, "-y"]);
    let status = repo.json(&["change", "status", ID], 0);
    assert_eq!(
        (&status["phase"], &status["done"], &status["undone"]),
        (&"complete".into(), &2.into(), &serde_json::json!([]))
    );
    assert_eq!(repo.read("test.sh"), "false\n");
}

#[test]
fn a_plan_of_a_task_that_needs_an_approval_is_next_to_the_error() {
    let repo = answering(&[&plan("One", &[create("test.sh", "true\n")])]);
    put(&repo, ID, "implementing");
    let out = repo.json(&["change", "impl", ID], 1);
    assert_eq!(out["error"]["kind"], "Unapproved");
    assert_eq!(out["review"]["title"], "One");
    assert_eq!(out["turn"], 1);
}

/// Bug: run literally, they worked on the session in use.
#[test]
fn hints_of_a_change_name_its_session() {
    let repo = recorded();
    put(&repo, ID, "challenged");
    repo.done(&["new", "other"]);
    let shown = repo.printed(&["change", "impl", ID]);
    let hint = format!("say what to do with `teddy -s change/{ID} plan '<message>'`");
    assert!(shown.contains(&hint), "{shown}");
}

#[test]
fn c14_a_fix_that_was_undone_before_the_review_is_due_again() {
    let repo = answering(&[
        &plan("One", &[create("test.sh", "true\n")]),
        &plan("Two", &[create("two.txt", "2\n")]),
        &verdict("NEEDS_FIX", "High"),
        &plan("Fix", &[create("three.txt", "3\n")]),
        &plan("Fix again", &[create("three.txt", "three\n")]),
    ]);
    put(&repo, ID, "implementing");
    repo.workflow().implement(ID, false).done();
    repo.done(&["change", "review", ID]);
    repo.workflow().implement(ID, false).done();
    let session = || repo.workflow().session("change/greet-by-name");
    let undone = || repo.json(&["change", "status", ID], 0)["undone"].take();
    assert_eq!(undone(), serde_json::json!([]));
    session().undo(1).done();
    assert_eq!(undone(), serde_json::json!([3]));

    repo.workflow().implement(ID, false).done();
    assert_eq!(undone(), serde_json::json!([]));
    assert_eq!(repo.read("three.txt"), "three\n");
    let fixes = steps(&repo, ID).split_off(4);
    let expected = [
        "Fix what review 1 found (turn 3)",
        "Fix what review 1 found (turn 5)",
    ];
    assert_eq!(fixes, expected);
}

/// Bug: it ran under the heading of the task before, was recorded for none, and was done again.
#[test]
fn a_waiting_plan_of_a_later_task_does_not_run_for_one_before_it() {
    let append = || plan("Two", &[execute("echo once >> two.txt")]);
    let repo = answering(&[
        &plan("One", &[create("test.sh", "true\n")]),
        &append(),
        &plan("One again", &[create("test.sh", "true\n")]),
        &append(),
        &verdict("APPROVED", "Low"),
    ]);
    put(&repo, ID, "implementing");
    let session = format!("change/{ID}");
    repo.teddy(&["change", "impl", ID]).check(1, &[]);
    repo.done(&["-s", &session, "execute", "-y"]);
    repo.teddy(&["change", "impl", ID]).check(1, &[]);
    repo.done(&["-s", &session, "undo", "-y"]);
    repo.done(&["change", "impl", ID, "-y"]);
    let expected = [
        "by hand",
        "Do 1.1: Say what is wanted (turn 1)",
        "Do 1.1: Say what is wanted (turn 3)",
        "Do 2.1: Take a name (turn 4)",
        "Review 1: approved (1 low)",
    ];
    assert_eq!(steps(&repo, ID), expected);
    assert_eq!(repo.read("two.txt"), "once\n");
}

/// Bug: turns of an earlier change with the same id counted, for tasks that they were not about.
#[test]
fn c13_a_turn_about_another_task_of_the_same_number_does_not_count() {
    let repo = answering(&[
        &plan("One", &[create("test.sh", "true\n")]),
        &plan("Two", &[create("two.txt", "2\n")]),
        &verdict("APPROVED", "Low"),
        &plan("Other", &[create("other.txt", "1\n")]),
        &plan("Other two", &[create("three.txt", "3\n")]),
        &verdict("APPROVED", "Low"),
    ]);
    put(&repo, ID, "implementing");
    repo.done(&["change", "impl", ID, "-y"]);
    repo.git(&["update-ref", "-d", &format!("refs/teddy/changes/{ID}")]);
    // The replay answers with the verdict once more, which is turn 3.
    let tasks = answer("03-tasks").replace("Say what is wanted", "Something else");
    put_documents(&repo, (ID, "implementing"), &answer("01-proposal"), &tasks);
    repo.done(&["change", "impl", ID, "-y"]);
    let expected = [
        "by hand",
        "Do 1.1: Something else (turn 4)",
        "Do 2.1: Take a name (turn 5)",
        "Review 1: approved (1 low)",
    ];
    assert_eq!(steps(&repo, ID), expected);
    assert_eq!(repo.read("other.txt"), "1\n");
}

/// Bug: the task was done a second time.
#[test]
fn c13_a_task_is_done_if_an_earlier_turn_of_it_is_in_effect_or_was_picked() {
    let repo = answering(&[
        &plan("One", &[create("test.sh", "true\n")]),
        &plan("Two", &[create("two.txt", "2\n")]),
        &plan("Another two", &[create("two.txt", "two\n")]),
    ]);
    put(&repo, ID, "implementing");
    repo.workflow().implement(ID, false).done();
    let done = || repo.json(&["change", "status", ID], 0)["done"].take();
    let session = || repo.workflow().session("change/greet-by-name");
    session().undo(1).done();
    repo.workflow().implement(ID, false).done();
    session().restore("2").done();
    assert_eq!(done(), 2);
    session().restore("1").done();
    assert_eq!(done(), 1);
    repo.done(&["-s", "change/greet-by-name", "pick", "2"]);
    assert_eq!(done(), 2);
}

/// Bug: the change stayed complete, and its archive said nothing.
#[test]
fn c15_what_was_undone_after_its_approval_is_reviewed_again() {
    let repo = answering(&[
        &plan("One", &[create("test.sh", "true\n")]),
        &plan("Two", &[create("two.txt", "2\n")]),
        &verdict("NEEDS_FIX", "High"),
        &plan("Fix", &[create("three.txt", "3\n")]),
        &verdict("APPROVED", "Low"),
        &verdict("NEEDS_FIX", "High"),
        &plan("Fix again", &[create("three.txt", "three\n")]),
        &verdict("APPROVED", "Low"),
    ]);
    put(&repo, ID, "implementing");
    repo.workflow().implement(ID, true).done();
    let session = || repo.workflow().session("change/greet-by-name");
    let now = || {
        let status = repo.json(&["change", "status", ID], 0);
        format!("{} {}", status["phase"].as_str().unwrap(), status["undone"])
    };
    assert_eq!(now(), "complete []");
    session().undo(1).done();
    insta::assert_snapshot!(repo.printed(&["change", "status", ID]), @"
    Change greet-by-name: Greet people by name instead of all alike.
    Phase implementing, iteration 1, 2 of 2 tasks done
    Latest review: approved (1 low; only minor issues remain)
    Undone since: turn 3
    Edited since it was challenged: proposal.md, specs/greeting.md
    Session change/greet-by-name
    5 answers
    --- stderr
    Next: `teddy change impl greet-by-name` continues it
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["change", "archive", ID]), @"
    --- stderr
    error: the change `greet-by-name` is implementing, not complete
    hint: `teddy change impl greet-by-name` continues it
    exit code 1
    ");
    session().redo(1).done();
    assert_eq!(now(), "complete []");
    session().restore("2").done();
    assert_eq!(now(), "implementing [3]");

    // The reviewer sees the files as they are.
    repo.workflow().implement(ID, true).done();
    assert_eq!(
        (now(), repo.read("three.txt")),
        ("complete []".to_owned(), "three\n".to_owned())
    );

    // An approval covers what is in effect then.
    session().undo(1).done();
    let approve = ["change", "approve", ID, "--reason", "two files are enough"];
    repo.done(&approve);
    assert_eq!(now(), "complete []");
    session().restore("1").done();
    assert_eq!(now(), "implementing [2]");
}

#[test]
fn implementation_not_ready() {
    let repo = project();
    // A12: nothing is written.
    let refused = ["proposed", "rejected", "complete", "archived"].map(|phase| {
        put(&repo, phase, phase);
        refuses(&repo, phase, |workflow| workflow.implement(phase, true))
    });
    insta::assert_snapshot!(refused.concat(), @r"
    error: the change `proposed` is proposed, so `impl` is not possible
    hint: `teddy change plan proposed` challenges it; `teddy change approve proposed --reason '<why>'` overrides the challenge
    exit code 1
    error: the change `rejected` is rejected, so `impl` is not possible
    hint: `teddy change show rejected review` has the reasons; fix the proposal and run `teddy change challenge rejected`
    exit code 1
    error: the change `complete` is complete, so `impl` is not possible
    hint: `teddy change archive complete` merges its specs into the project's
    exit code 1
    error: the change `archived` is archived, so `impl` is not possible
    hint: it is archived; `teddy change show archived` still reads it
    exit code 1
    ");
    assert_eq!(repo.git(&["for-each-ref", "refs/teddy/sessions"]), "");
}

#[test]
fn archive_complete_change() {
    let repo = project();
    put(&repo, ID, "complete");
    assert_eq!(
        repo.done(&["change", "archive", ID]),
        "greet-by-name archived\n"
    );
    assert_eq!(repo.read("specs/greeting.md"), answer("02-spec"));
    // A13: the archived change stays readable under its ref.
    assert_eq!(phase(&repo, ID), "archived");
    assert_eq!(
        repo.done(&["change", "show", ID, "specs/greeting.md"]),
        answer("02-spec")
    );
    let listed = repo.teddy(&["change", "list"]);
    assert_eq!(
        (
            listed.code,
            listed.stdout.as_str(),
            listed.stderr.contains("All changes are archived")
        ),
        (0, "", true),
        "{listed}"
    );
    insta::assert_snapshot!(repo.printed(&["change", "list", "--archived"]), @"
    greet-by-name  archived        2/2  Greet people by name instead of all alike.
    exit code 0
    ");
    // The turn that changed the user's files can be undone.
    repo.done(&["-s", "change/greet-by-name", "undo"]);
    assert!(!repo.path().join("specs").exists());
}

#[test]
fn an_archive_with_something_in_the_way_says_what_is_recorded() {
    let repo = project();
    put(&repo, ID, "complete");
    // git ignores what is in the way, so that no snapshot shows it.
    repo.write(".git/info/exclude", "mine\n");
    repo.write("specs/greeting.md/mine", "mine\n");
    insta::assert_snapshot!(repo.printed(&["change", "archive", ID]), @"
    --- stderr
    warning: `specs/greeting.md` was not written: something in your files is in the way
    Turn 1 has the specs, and the change is not archived yet. Move the obstacle, then archive again.
    exit code 4
    ");
    assert_eq!(phase(&repo, ID), "complete");
    assert_eq!(repo.read("specs/greeting.md/mine"), "mine\n");
    repo.remove("specs");
    repo.done(&["change", "archive", ID]);
    assert_eq!(repo.read("specs/greeting.md"), answer("02-spec"));
    assert_eq!(phase(&repo, ID), "archived");
}

#[test]
fn t23_the_turn_that_archives_a_change_has_no_plan() {
    let repo = project();
    put(&repo, ID, "complete");
    repo.workflow().archive(ID, OnOverlap::Stop).done();
    let tip = "teddy/sessions/change/greet-by-name";
    let status = "--format=%s: %(trailers:key=Teddy-Status,valueonly,separator=)";
    assert_eq!(
        repo.git(&["log", "-1", status, tip]),
        "Archive change greet-by-name: executed"
    );
    let files = repo.git(&["ls-tree", "--name-only", tip]);
    assert!(!files.lines().any(|name| name == "plan.md"), "{files}");
    repo.workflow().verify().done();
}

#[test]
fn archive_not_ready() {
    let repo = project();
    // A14: nothing is moved.
    let phases = [
        "proposed",
        "challenged",
        "rejected",
        "implementing",
        "archived",
    ];
    let refused = phases.map(|phase| {
        put(&repo, phase, phase);
        refuses(&repo, phase, |workflow| {
            workflow.archive(phase, OnOverlap::Stop)
        })
    });
    insta::assert_snapshot!(refused.concat(), @r"
    error: the change `proposed` is proposed, not complete
    hint: `teddy change plan proposed` challenges it; `teddy change approve proposed --reason '<why>'` overrides the challenge
    exit code 1
    error: the change `challenged` is challenged, not complete
    hint: planning is complete; `teddy change impl challenged` implements it
    exit code 1
    error: the change `rejected` is rejected, not complete
    hint: `teddy change show rejected review` has the reasons; fix the proposal and run `teddy change challenge rejected`
    exit code 1
    error: the change `implementing` is implementing, not complete
    hint: `teddy change impl implementing` continues it
    exit code 1
    error: the change `archived` is archived, not complete
    hint: it is archived; `teddy change show archived` still reads it
    exit code 1
    ");
    assert!(!repo.path().join("specs").exists());
}

// Complete runs.

#[test]
fn a_whole_change_runs_on_recorded_answers() {
    let repo = recorded();
    let users = repo.users();
    repo.done(&["change", "plan", ID, "Greet people by name"]);
    let done = repo.json(&["change", "impl", ID, "-y"], 0);
    assert_eq!(
        (
            done["phase"].as_str(),
            done["reviews"].as_u64(),
            done["fixes"].as_u64()
        ),
        (Some("complete"), Some(2), Some(1))
    );
    repo.done(&["change", "archive", ID]);
    let expected = [
        "Begin to implement",
        "Do 1.1: Say what is wanted (turn 1)",
        "Do 2.1: Take a name (turn 2)",
        "Review 1: needs fix (1 medium)",
        "Fix what review 1 found (turn 3)",
        "Review 2: approved (no issues)",
        "Archive: specs/greeting.md",
    ];
    assert_eq!(steps(&repo, ID)[6..], expected);
    assert_eq!(
        repo.done(&["change", "show", ID, "tasks.md"]),
        answer("03-tasks").replace("[ ]", "[x]")
    );
    assert_eq!(
        repo.json(&["change", "status", ID], 0)["usage"]["calls"],
        11
    );
    assert_eq!(
        repo.git(&["status", "--porcelain"]),
        " M greet.sh\n?? specs/\n?? test.sh"
    );
    // The user's files and refs are unchanged, and the current session is still the same.
    assert_eq!(repo.users(), users);
    assert!(!repo.path().join(".git/teddy/current/main").exists());
}

/// Regression: the subject was the instruction of the first turn, `Task 1.1 of change ...`.
#[test]
fn a_change_lands_with_its_request_as_the_subject() {
    let repo = recorded();
    repo.done(&["change", "plan", ID, "greet people by name"]);
    repo.done(&["change", "impl", ID, "-y"]);
    repo.done(&["change", "archive", ID]);
    let session = format!("change/{ID}");
    let message = || {
        let text = repo.git(&["log", "-1", "--format=%B"]);
        let lines = text.lines().filter(|line| !line.starts_with("Teddy-"));
        lines.collect::<Vec<_>>().join("\n")
    };
    repo.done(&["land", "-s", &session, "1", "--no-edit"]);
    insta::assert_snapshot!(message(), @"Write the test first");
    repo.git(&["reset", "--soft", "HEAD~1"]);
    repo.done(&["land", "-s", &session, "1..4", "--no-edit"]);
    insta::assert_snapshot!(message(), @"
    Greet people by name

    - Write the test first
    - Greet by name
    - Test the empty name
    - Archive change greet-by-name
    ");
}

#[test]
fn a34_a_change_that_is_killed_at_each_answer_is_resumed() {
    let repo = project();
    let folder = repo.beside("model");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("kill"), "").unwrap();
    repo.configure(&format!(
        "model: m\nmodels:\n  m: {{ kind: command, run: [sh, {ANSWERS}/model.sh, {}] }}\n",
        folder.display()
    ));
    let until_done = |args: &[&str]| {
        let killed = (0..12).take_while(|_| repo.teddy(args).code != 0).count();
        assert!(killed < 12, "{args:?} never ended: {}", repo.teddy(args));
        killed
    };
    assert_eq!(
        until_done(&["change", "plan", ID, "Greet people by name"]),
        6
    );
    assert_eq!(until_done(&["change", "impl", ID, "-y"]), 5);
    repo.done(&["change", "archive", ID]);
    let asked = std::fs::read_to_string(folder.join("asked")).unwrap();
    let times = |name: &str| asked.lines().filter(|line| *line == name).count();
    // Recorded answers are not requested again, except for the challenge with which a call in phase
    // `proposed` starts.
    let expected = [
        ("01-proposal", 2),
        ("02-spec", 2),
        ("03-tasks", 2),
        ("04-challenge", 3),
        ("05-revision", 2),
        ("06-challenge", 2),
    ];
    expected
        .iter()
        .for_each(|(name, count)| assert_eq!(times(name), *count, "{name}"));
    ["07-task", "08-task", "09-review", "10-fix", "11-review"]
        .iter()
        .for_each(|name| assert_eq!(times(name), 2, "{name}"));
    assert_eq!(
        (phase(&repo, ID).as_str(), repo.read("greet.sh").as_str()),
        ("archived", "#!/bin/sh\necho \"Hello, ${1:-world}!\"\n")
    );
    // There is only one change.
    assert_eq!(
        repo.git(&["for-each-ref", "--format=%(refname)", "refs/teddy/changes"]),
        format!("refs/teddy/changes/{ID}")
    );
    let fsck = repo.git(&["fsck", "--strict"]);
    assert!(
        fsck.lines().all(|line| line.starts_with("dangling")),
        "{fsck}"
    );
}

#[test]
fn a34_a_turn_whose_note_was_lost_is_not_done_again() {
    let repo = answering(&[&plan("One", &[create("test.sh", "true\n")])]);
    put(&repo, ID, "implementing");
    insta::assert_snapshot!(repo.workflow().implement(ID, false).refused(), @r#"
    task 1.1: Say what is wanted
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE test.sh
      ✓ created, 1 line
    task 2.1: Take a name
    Asking replay:[dir]/answers with about [n] tokens
    The plan was not accepted: 3 mistakes
    plan.md:1: the plan has no level 1 heading
        hint: start the plan with `# Title`
    plan.md:1: the plan has no `## Rationale`
        hint: add `## Rationale` with one code block before `## Action Plan`
    plan.md:1: the plan has no `## Action Plan`
        hint: add `## Action Plan` and at least one action
    Asking replay:[dir]/answers with about [n] tokens
    the model could not be asked again: all 2 recorded answers are used up
    {
      "change": "greet-by-name",
      "done": 1,
      "fixes": 0,
      "issues": {
        "high": 0,
        "low": 0,
        "medium": 0,
        "unclear": 0
      },
      "next": "`teddy change impl greet-by-name` continues it",
      "phase": "implementing",
      "reviews": 0,
      "stopped": "task 2.1: turn rejected",
      "tasks": 2,
      "verdict": null
    }
    "#);
    assert_eq!(
        steps(&repo, ID).last().unwrap(),
        "Do 1.1: Say what is wanted (turn 1)"
    );
    let noted = tip(&repo, ID);
    repo.git(&[
        "update-ref",
        &format!("refs/teddy/changes/{ID}"),
        &format!("{noted}~1"),
    ]);
    let _ = repo.workflow().implement(ID, false);
    assert_eq!(
        steps(&repo, ID)
            .iter()
            .filter(|step| step.starts_with("Do 1.1"))
            .count(),
        1
    );
    assert_eq!(document(&repo, ID, "tasks.md").matches("[x]").count(), 1);
}

// Cases.

#[test]
fn a1_a_new_change_without_a_description_is_an_error() {
    let repo = recorded();
    let refused = [
        refuses(&repo, ID, |workflow| workflow.plan_change(ID, None)),
        refuses(&repo, ID, |workflow| workflow.plan_change(ID, Some("  "))),
        refuses(&repo, ID, |workflow| workflow.propose(ID, None)),
    ];
    insta::assert_snapshot!(refused.concat(), @r"
    error: the change `greet-by-name` is new and has no description
    hint: say what it is for: `teddy change plan greet-by-name '<description>'`
    exit code 1
    error: the change `greet-by-name` is new and has no description
    hint: say what it is for: `teddy change plan greet-by-name '<description>'`
    exit code 1
    error: the change `greet-by-name` is new and has no description
    hint: say what it is for: `teddy change plan greet-by-name '<description>'`
    exit code 1
    ");
}

#[test]
fn a3_a_proposed_change_is_challenged_and_not_written_again() {
    let repo = answering(&[&verdict("REJECTED", "High")]);
    put(&repo, ID, "proposed");
    let planned = repo.workflow().plan_change(ID, Some("Another description"));
    insta::assert_snapshot!(planned.refused(), @r#"
    challenger: a review with a verdict
    Asking replay:[dir]/answers with about [n] tokens
    {
      "change": "greet-by-name",
      "action": "planned",
      "phase": "rejected",
      "iteration": 1,
      "written": 0,
      "challenges": 1,
      "reproposals": 0,
      "verdict": "rejected",
      "issues": {
        "high": 1,
        "medium": 0,
        "low": 0,
        "unclear": 0
      },
      "only_minor_issues": false,
      "next": "`teddy change show greet-by-name review` has the reasons; fix the proposal and run `teddy change challenge greet-by-name`"
    }
    "#);
    assert_eq!(
        repo.git(&["for-each-ref", "refs/teddy/changes"])
            .lines()
            .count(),
        1
    );
    // All documents exist, so `proposal` does not call the model.
    put(&repo, "other", "proposed");
    repo.configure("");
    insta::assert_snapshot!(repo.workflow().propose("other", None).done(), @r#"
    {
      "phase": "proposed",
      "written": 0
    }
    "#);
}

#[test]
fn a6_a_change_past_planning_is_refused_and_not_changed() {
    let repo = project();
    for phase in ["implementing", "complete", "archived"] {
        put(&repo, phase, phase);
        let planned = repo.workflow().plan_change(phase, None).done();
        let planned: serde_json::Value = serde_json::from_str(&planned).unwrap();
        assert_eq!(
            (planned["action"].as_str(), planned["phase"].as_str()),
            (Some("beyond_planning"), Some(phase))
        );
        assert_eq!(steps(&repo, phase), ["by hand"]);
    }
}

#[test]
fn a7_a_challenge_puts_its_verdict_on_record() {
    for (word, expected) in [
        ("APPROVED", "challenged"),
        ("needs_revision", "proposed"),
        ("- [ ] APPROVED\n- [✓] REJECTED", "rejected"),
    ] {
        let repo = answering(&[&verdict(word, "Medium")]);
        put(&repo, ID, "proposed");
        let reply = repo.workflow().challenge(ID);
        match expected {
            "rejected" => reply.refused(),
            _ => reply.done(),
        };
        assert_eq!(phase(&repo, ID), expected);
        assert!(
            document(&repo, ID, "proposal.md")
                .contains("<review iteration=\"1\" reviewer=\"challenger\""),
            "{word}"
        );
    }
}

#[test]
fn a8_after_an_approval_the_state_says_challenged() {
    let repo = recorded();
    repo.workflow().plan_change(ID, Some("Greet")).done();
    let state = repo.git(&["show", &format!("refs/teddy/changes/{ID}:STATE.yaml")]);
    assert!(
        state.contains("\nphase: challenged\n") && state.contains("\niteration: 2\n"),
        "{state}"
    );
}

#[test]
fn a10_an_override_needs_a_reason() {
    let repo = project();
    put(&repo, ID, "proposed");
    refused(&repo, ID, &["change", "approve", ID, "--reason", " "], 1).check(1, &["--reason"]);
    refused(&repo, ID, &["change", "approve", ID], 2);
}

#[test]
fn a12_open_tasks_are_not_approved_away() {
    let repo = project();
    put(&repo, ID, "implementing");
    let refused = [
        refuses(&repo, ID, |workflow| workflow.approve(ID, "x")),
        refuses(&repo, ID, |workflow| workflow.review(ID)),
    ];
    insta::assert_snapshot!(refused.concat(), @r"
    error: the change `greet-by-name` has 2 open tasks
    hint: `teddy change impl greet-by-name` continues them
    exit code 1
    error: the change `greet-by-name` has 2 open tasks
    hint: `teddy change impl greet-by-name` continues them
    exit code 1
    ");
}

#[test]
fn a_message_that_no_task_or_fix_would_take_is_not_kept() {
    let repo = project();
    put(&repo, ID, "implementing");
    std::fs::write(
        repo.beside(&format!("put-{ID}/tasks.md")),
        answer("03-tasks").replace("[ ]", "[x]"),
    )
    .unwrap();
    put_again(&repo, ID);
    let out = refused(&repo, ID, &["change", "impl", ID, "-m", "and in French"], 1);
    insta::assert_snapshot!(out.shown(&repo), @"
    --- stderr
    error: every task of `greet-by-name` is done and no fix is due, so your message would not be used
    hint: `teddy -s change/greet-by-name resume '<message>'` asks for it directly, and `teddy change review greet-by-name` reviews all of it
    exit code 1
    ");
}

#[test]
fn an_agent_is_refused_as_reviewer_before_it_works() {
    let repo = project();
    put(&repo, ID, "implementing");
    let agent = scripted_agent(repo.path().parent().unwrap(), "touch made.txt");
    let agent = format!("acp:{}", agent.display());
    let args = ["change", "impl", ID, "-y", "--model", &agent];
    insta::assert_snapshot!(refused(&repo, ID, &args, 1).shown(&repo), @"
    --- stderr
    error: `acp:[dir]/agent.sh` edits files itself, and the reviewer of a change answers with a text
    hint: `--model` is for every role of the change; `change.roles.reviewer` in your configuration names a model for this one
    exit code 1
    ");
    assert!(!repo.path().join("made.txt").exists());
}

#[test]
fn a15_an_unknown_change_is_not_found() {
    let repo = project();
    for command in [
        "impl",
        "archive",
        "challenge",
        "reproposal",
        "implement",
        "review",
        "validate",
        "status",
        "show",
        "log",
        "diff",
    ] {
        repo.teddy(&["change", command, "nobody"])
            .check(1, &["there is no change `nobody`", "teddy change list"]);
    }
}

#[test]
fn a18_an_unknown_verdict_never_advances() {
    let unfilled = "## Summary\n\n## Verdict\nAPPROVED | NEEDS_REVISION | REJECTED\n";
    let both = "## Verdict\n- [x] APPROVED\n- [x] REJECTED\n";
    for text in [
        unfilled,
        both,
        "I approved of it; my verdict is that it is approved.\n",
        "## Verdict\n- [ ] APPROVED\n",
    ] {
        let repo = answering(&[text, text]);
        for (id, from, command) in [
            ("one", "proposed", "challenge"),
            ("two", "rejected", "challenge"),
            ("three", "implementing", "review"),
        ] {
            put(&repo, id, from);
            if from == "implementing" {
                let tasks = repo.beside("put-three/tasks.md");
                std::fs::write(&tasks, answer("03-tasks").replace("[ ]", "[x]")).unwrap();
                put_again(&repo, id);
            }
            let said = refuses(&repo, id, |workflow| match command {
                "review" => workflow.review(id),
                _ => workflow.challenge(id),
            });
            assert!(said.contains("the verdict is unknown"), "{said}");
            assert!(said.contains("nothing was recorded"), "{said}");
        }
    }
}

/// Records the files of a change made by `put` again.
fn put_again(repo: &TestRepo, id: &str) {
    let (folder, index) = (
        repo.beside(&format!("put-{id}")),
        repo.beside(&format!("index-{id}")),
    );
    let git = |args: &[&str]| {
        let mut command = repo.command("git");
        command
            .current_dir(&folder)
            .env("GIT_DIR", repo.path().join(".git"))
            .env("GIT_WORK_TREE", &folder)
            .env("GIT_INDEX_FILE", &index);
        String::from_utf8_lossy(&command.args(args).output().unwrap().stdout)
            .trim()
            .to_owned()
    };
    git(&["add", "-A"]);
    let commit = git(&[
        "commit-tree",
        &git(&["write-tree"]),
        "-p",
        &tip(repo, id),
        "-m",
        "by hand again",
    ]);
    git(&["update-ref", &format!("refs/teddy/changes/{id}"), &commit]);
}

#[test]
fn a22_what_others_keep_in_the_state_stays() {
    let repo = answering(&[&verdict("APPROVED", "Low")]);
    put(&repo, ID, "proposed");
    repo.workflow().challenge(ID).done();
    assert!(document(&repo, ID, "STATE.yaml").contains("mood: good"));
}

#[test]
fn a23_an_unknown_phase_is_an_error_and_hides_no_other_change() {
    let repo = project();
    put(&repo, ID, "Proposed");
    put(&repo, "other", "proposed");
    insta::assert_snapshot!(repo.printed(&["change", "plan", ID]), @"
    --- stderr
    error: reading `STATE.yaml` of `greet-by-name`: phase: unknown variant `Proposed`, expected one of `proposed`, `challenged`, `rejected`, `implementing`, `complete`, `archived` at line 2 column 8
    hint: `git update-ref refs/teddy/changes/greet-by-name refs/teddy/changes/greet-by-name~` goes back to the step before
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["change", "list"]), @"
    other  proposed        0/2  Greet people by name instead of all alike.
    --- stderr
    warning: cannot be read: `greet-by-name`: reading `STATE.yaml` of `greet-by-name`: phase: unknown variant `Proposed`, expected one of `proposed`, `challenged`, `rejected`, `implementing`, `complete`, `archived` at line 2 column 8
    exit code 0
    ");
}

#[test]
fn a24_a_wrong_id_is_refused() {
    let repo = recorded();
    for id in ["Add Auth", "../x", "a_b", "a--b", ""] {
        repo.teddy(&["change", "plan", id, "x"])
            .check(2, &["is not a valid change id"]);
    }
    assert_eq!(repo.git(&["for-each-ref", "refs/teddy"]), "");
}

/// Bug: it was sent to the author.
#[test]
fn a_key_in_a_message_to_the_author_is_not_sent() {
    let repo = project();
    put(&repo, ID, "proposed");
    let fake = Fake::answering(&[stream("No.", "stop", (1, 1)), stream("No.", "stop", (1, 1))]);
    repo.configure(&format!(
        "model: fake\nmodels: {{ fake: {{ kind: openai, id: x, base_url: \"{}/v1\" }} }}\n",
        fake.origin
    ));
    let key = format!("ghp_{}", "a1B2".repeat(9));
    let message = format!("the key is {key}");
    repo.teddy(&["change", "reproposal", ID, "-m", &message])
        .check(1, &["what looks like a key was taken out"]);
    let request = fake.requests().remove(0);
    assert!(request.contains("the key is ") && !request.contains(&key));
}

#[test]
fn a25_a_rejected_change_is_edited_and_challenged_again() {
    let repo = answering(&[&verdict("REJECTED", "High"), &verdict("APPROVED", "Low")]);
    put(&repo, ID, "proposed");
    insta::assert_snapshot!(repo.workflow().challenge(ID).refused(), @r#"
    challenger: a review with a verdict
    Asking replay:[dir]/answers with about [n] tokens
    {
      "change": "greet-by-name",
      "phase": "rejected",
      "iteration": 1,
      "verdict": "rejected",
      "issues": {
        "high": 1,
        "medium": 0,
        "low": 0,
        "unclear": 0
      },
      "only_minor_issues": false
    }
    "#);
    let better = answer("01-proposal").replace("instead of all alike", "and nobody else");
    repo.workflow().revise(ID, "proposal.md", &better).done();
    assert_eq!(phase(&repo, ID), "proposed");
    let text = document(&repo, ID, "proposal.md");
    assert!(
        text.contains("and nobody else") && text.contains("status=\"rejected\""),
        "{text}"
    );
    // A27: what was challenged is not what is there.
    assert_eq!(repo.workflow().change_status(ID)["stale"][0], "proposal.md");
    repo.workflow().challenge(ID).done();
    assert_eq!(phase(&repo, ID), "challenged");
    assert_eq!(
        repo.workflow().change_status(ID)["stale"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn a28_mistakes_have_a_file_and_a_line() {
    let repo = project();
    put(&repo, ID, "proposed");
    let spec = repo.beside(&format!("put-{ID}/specs/greeting.md"));
    std::fs::write(
        &spec,
        answer("02-spec").replace("- **THEN** it prints `Hello, world!`\n", ""),
    )
    .unwrap();
    put_again(&repo, ID);
    let out = repo.teddy(&["change", "validate", ID]);
    assert_eq!(
        (out.code, out.stdout.as_str()),
        (
            1,
            "specs/greeting.md:20: error: scenario \"No name is given\" has no `- **THEN** ...`\n"
        )
    );
    refused(&repo, ID, &["change", "challenge", ID], 1)
        .check(1, &["have 1 mistake\n", "teddy change validate"]);
}

#[test]
fn a28_an_answer_with_mistakes_is_asked_for_again_with_them() {
    let wrong = answer("01-proposal").replace("## Why", "## Reason");
    let repo = answering(&[
        &wrong,
        &answer("01-proposal"),
        &answer("02-spec"),
        &answer("03-tasks"),
    ]);
    insta::assert_snapshot!(repo.workflow().propose(ID, Some("Greet")).done(), @r#"
    author: proposal.md
    Asking replay:[dir]/answers with about [n] tokens
    the answer is not proposal.md; asking again:
    proposal.md:1: error: has no section `## Why`
    Asking replay:[dir]/answers with about [n] tokens
    author: specs/greeting.md
    Asking replay:[dir]/answers with about [n] tokens
    author: tasks.md
    Asking replay:[dir]/answers with about [n] tokens
    {
      "phase": "proposed",
      "written": 3
    }
    "#);
    assert_eq!(repo.workflow().change_status(ID)["usage"]["calls"], 4);
    // Twice the same is an error, and nothing is there.
    let repo = answering(&[&wrong, &wrong]);
    insta::assert_snapshot!(repo.workflow().propose(ID, Some("Greet")).refused(), @r"
    author: proposal.md
    Asking replay:[dir]/answers with about [n] tokens
    the answer is not proposal.md; asking again:
    proposal.md:1: error: has no section `## Why`
    Asking replay:[dir]/answers with about [n] tokens
    error: the author's answer is not proposal.md, so nothing was recorded (it is kept in `[dir]/repo/.git/teddy/changes/greet-by-name/answer.md`):
    proposal.md:1: error: has no section `## Why`
    exit code 1
    ");
    assert_eq!(tip(&repo, ID), "");
}

#[test]
fn a29_the_examples_of_the_prompts_are_documents_without_a_mistake() {
    use teddy::change::document::Documents;
    use teddy::change::id::ChangeId;
    use teddy::change::shape::DocumentKind;
    let id = ChangeId::parse("add-greeting").unwrap();
    let prompt = |name: &str| {
        std::fs::read_to_string(format!(
            "{}/prompts/change/{name}.md",
            env!("CARGO_MANIFEST_DIR")
        ))
        .unwrap()
    };
    let example = |name: &str| {
        prompt(name)
            .split_once("<example>\n")
            .unwrap()
            .1
            .split_once("</example>")
            .unwrap()
            .0
            .to_owned()
    };
    let mut documents = Documents::default();
    for (name, path) in [
        ("proposal", "proposal.md"),
        ("spec", "specs/greeting.md"),
        ("tasks", "tasks.md"),
    ] {
        documents.insert(path, example(name));
    }
    assert_eq!(documents.check(&id), []);
    let files = teddy::change::document::files_in_answer(&example("revision"));
    assert_eq!(files.len(), 1);
    let kind = DocumentKind::of(&files[0].0).unwrap();
    assert_eq!(kind.check(&id, &files[0].0, &files[0].1), []);
    for (name, high) in [("challenger", 0), ("reviewer", 1)] {
        let body = teddy::change::document::review_text(&example(name));
        assert_eq!(
            teddy::change::review::read_verdict(&body),
            Ok(teddy::change::review::ReviewVerdict::NeedsRevision),
            "{name}"
        );
        assert_eq!(teddy::change::review::issues(&body).high, high, "{name}");
    }
}

#[test]
fn a29_the_examples_of_the_format_documents_are_what_the_parser_reads() {
    let page = |name: &str| {
        std::fs::read_to_string(format!(
            "{}/docs/formats/{name}.md",
            env!("CARGO_MANIFEST_DIR")
        ))
        .unwrap()
    };
    let example = |name: &str, language: &str| {
        page(name)
            .split_once(&format!("```{language}\n"))
            .unwrap()
            .1
            .split_once("\n```\n")
            .unwrap()
            .0
            .to_owned()
            + "\n"
    };
    let id = teddy::change::id::ChangeId::parse("add-greeting").unwrap();
    let mut documents = teddy::change::document::Documents::default();
    for (name, path) in [
        ("proposal", "proposal.md"),
        ("spec", "specs/greeting.md"),
        ("tasks", "tasks.md"),
        ("review", "review.md"),
    ] {
        documents.insert(path, example(name, "markdown"));
    }
    assert_eq!(documents.check(&id), []);
    let state = teddy::change::state::read(&example("change-state", "yaml")).unwrap();
    assert_eq!(
        (state.phase.word(), state.history.len(), state.rest.len()),
        ("challenged", 1, 0)
    );
}

/// The change `two` changes a spec of `one`, which is archived, in the same place.
fn two_changes() -> TestRepo {
    let repo = project();
    put(&repo, "one", "complete");
    put(&repo, "two", "complete");
    let spec = repo.beside("put-two/specs/greeting.md");
    std::fs::write(
        &spec,
        answer("02-spec").replace("Hello, Ada!", "Good day, Ada!"),
    )
    .unwrap();
    put_again(&repo, "two");
    repo.workflow().archive("one", OnOverlap::Stop).done();
    repo
}

#[test]
fn an_archive_with_conflict_markers_says_so_until_they_are_resolved() {
    let repo = two_changes();
    repo.commit("one");
    insta::assert_snapshot!(repo.printed(&["change", "archive", "two", "--markers"]), @"
    two archived
    --- stderr
    write specs/greeting.md
    warning: `specs/greeting.md` has conflict markers now; resolve them
    exit code 0
    ");
    let marked = || repo.json(&["-s", "change/two", "status"], 0)["workspace"]["marked"].take();
    assert_eq!(marked(), serde_json::json!(["specs/greeting.md"]));
    let land = ["-s", "change/two", "land", "-m", "specs"];
    let unresolved = "unresolved conflicts are in `specs/greeting.md`";
    repo.teddy(&land).check(1, &[unresolved]);
    repo.write("specs/greeting.md", answer("02-spec"));
    assert_eq!(marked(), serde_json::json!([]));
}

/// Bug: it was archived without the spec.
#[test]
fn an_archive_with_a_directory_in_the_place_of_a_spec_cannot_have_markers() {
    let repo = project();
    put(&repo, ID, "complete");
    repo.write("specs/greeting.md/x", "mine\n");
    insta::assert_snapshot!(repo.printed(&["change", "archive", ID, "--markers"]), @"
    --- stderr
    warning: `specs/greeting.md` cannot have conflict markers
    warning: `specs/greeting.md/x` cannot have conflict markers
    Nothing was written. `--ours` or `--theirs` resolves the conflict.
    exit code 4
    ");
    assert_eq!(phase(&repo, ID), "complete");
}

/// Bug: neither said that the work was not there.
#[test]
fn a_change_whose_work_is_on_another_branch_says_so() {
    let repo = answering(&[
        &plan("One", &[create("a.txt", "a\n")]),
        &plan("Two", &[create("b.txt", "b\n")]),
        &verdict("APPROVED", "Low"),
    ]);
    put(&repo, ID, "implementing");
    let main = repo.git(&["symbolic-ref", "--short", "HEAD"]);
    repo.git(&["checkout", "-q", "-b", "feat"]);
    repo.workflow().implement(ID, true).done();
    repo.commit("feat");
    repo.git(&["checkout", "-q", &main]);
    let words = "your files lack turns 1 and 2 of change/greet-by-name; `teddy --session change/greet-by-name restore @ --exact` restores them";
    repo.teddy(&["change", "status", ID]).check(0, &[words]);
    repo.teddy(&["change", "archive", ID]).check(0, &[words]);
}

/// Bug: the archive met it as an edit, or replaced it by a spec whose author had not seen it.
#[test]
fn a_spec_that_git_ignores_is_in_the_base_of_a_change() {
    let repo = answering(&[&answer("01-proposal")]);
    repo.write(".gitignore", "specs/\n");
    repo.write("specs/greeting.md", "# Mine\n");
    repo.workflow().propose(ID, Some("Greet")).refused();
    let base = format!("refs/teddy/changes/{ID}:base/specs/greeting.md");
    assert_eq!(repo.git(&["show", &base]), "# Mine");
}

/// Bug: the archive said nothing, and dropped the plan.
#[test]
fn an_archive_names_work_that_is_not_in_the_files_and_keeps_a_waiting_plan() {
    let repo = answering(&[
        &plan("One", &[create("test.sh", "true\n")]),
        &plan("Two", &[create("two.txt", "2\n")]),
    ]);
    repo.workflow().new_session("other").done();
    repo.write("hand.txt", "x\n");
    repo.workflow().record("By hand").done();
    put(&repo, ID, "implementing");
    repo.workflow().implement(ID, false).done();
    repo.done(&["change", "approve", ID, "--reason", "it is small"]);
    repo.put(
        repo.beside("next.md"),
        plan("Next", &[create("next.txt", "x\n")]),
    );
    repo.done(&["-s", "change/greet-by-name", "plan", "--from", "../next.md"]);
    repo.workflow().session("other").undo(1).done();

    assert_eq!(
        repo.json(&["change", "status", ID], 0)["lacking"],
        serde_json::json!([
            { "session": "change/greet-by-name", "turn": 1 },
            { "session": "change/greet-by-name", "turn": 2 },
        ])
    );
    let warned = "warning: your files lack turns 1 and 2 of change/greet-by-name; `teddy";
    repo.teddy(&["change", "status", ID]).check(0, &[warned]);
    insta::assert_snapshot!(repo.printed(&["change", "archive", ID]), @"
    greet-by-name archived
    --- stderr
    your files lack turns 1 and 2 of change/greet-by-name; `teddy --session change/greet-by-name restore @` restores them to its newest turn
    write specs/greeting.md
    exit code 0
    ");
    let waiting = repo.git(&["show", "refs/teddy/drafts/change/greet-by-name:plan.md"]);
    assert!(waiting.starts_with("# Next"), "{waiting}");
}

#[test]
fn c12_a_change_whose_session_is_gone_is_not_archived() {
    let repo = answering(&[
        &plan("One", &[create("test.sh", "true\n")]),
        &plan("Two", &[create("two.txt", "2\n")]),
    ]);
    put(&repo, ID, "implementing");
    repo.workflow().implement(ID, false).done();
    repo.done(&["change", "approve", ID, "--reason", "it is small"]);
    repo.done(&["gc", "change/greet-by-name", "-y"]);
    let gone =
        "session `change/greet-by-name` with the work on `greet-by-name` is not in this repository";
    repo.teddy(&["change", "archive", ID]).check(1, &[gone]);
}

#[test]
fn an_archive_that_was_undone_can_be_repeated() {
    let repo = two_changes();
    let session = || repo.workflow().session("change/two");
    repo.workflow().archive("two", OnOverlap::Markers).done();
    session().undo(1).done();
    assert_eq!(repo.read("specs/greeting.md"), answer("02-spec"));
    let asks_to_repeat = || {
        let status = repo.printed(&["change", "status", "two"]);
        status.contains("Phase complete") && status.contains("`teddy change archive two` merges")
    };
    assert!(asks_to_repeat());
    repo.workflow().archive("two", OnOverlap::Theirs).done();
    assert!(repo.read("specs/greeting.md").contains("Good day, Ada!"));
    let archive = |repo: &TestRepo| {
        refuses(repo, "two", |workflow| {
            workflow.archive("two", OnOverlap::Theirs)
        })
    };
    archive(&repo);
    session().undo(1).done();
    session().redo(1).done();
    assert!(!asks_to_repeat());
    let refused = archive(&repo);
    insta::assert_snapshot!(refused, @"
    error: the change `two` is archived, not complete
    hint: it is archived; `teddy change show two` still reads it
    exit code 1
    ");

    // One that finds its specs in place has no turn that could be undone.
    let archived = repo.read("specs/greeting.md");
    session().undo(1).done();
    assert!(asks_to_repeat());
    repo.write("specs/greeting.md", archived);
    repo.workflow().archive("two", OnOverlap::Stop).done();
    assert_eq!(phase(&repo, "two"), "archived");
    assert!(!asks_to_repeat());

    // The change is read without the turns of its session.
    repo.git(&["update-ref", "refs/teddy/sessions/change/two", "HEAD"]);
    assert!(!asks_to_repeat());
    assert_eq!(phase(&repo, "two"), "archived");
}

#[test]
fn a30_a_conflict_with_another_archived_change_is_shown_and_nothing_is_written() {
    let repo = two_changes();
    let before = repo.read("specs/greeting.md");
    let refused = refuses(&repo, "two", |workflow| {
        workflow.archive("two", OnOverlap::Stop)
    });
    insta::assert_snapshot!(refused, @r#"
    {
      "change": "two",
      "phase": "complete",
      "done": [],
      "conflicts": [
        "specs/greeting.md"
      ]
    }
    "#);
    assert_eq!(
        (phase(&repo, "two").as_str(), repo.read("specs/greeting.md")),
        ("complete", before)
    );
    repo.workflow().archive("two", OnOverlap::Theirs).done();
    assert!(repo.read("specs/greeting.md").contains("Good day, Ada!"));
    assert_eq!(phase(&repo, "two"), "archived");
}

#[test]
fn a30_what_others_did_to_the_specs_meanwhile_stays() {
    let old = answer("02-spec");
    let repo = project()
        .file("specs/greeting.md", &old)
        .file("specs/other.md", "# Other\n");
    repo.commit("specs");
    let answers = [
        answer("01-proposal"),
        old.replace("Hello, world!", "Hello, everybody!"),
        answer("03-tasks"),
        verdict("APPROVED", "Low"),
    ];
    answers.iter().for_each(|text| {
        repo.reply(text);
    });
    repo.workflow().plan_change(ID, Some("Greet")).done();
    // Meanwhile somebody changes another line of the same spec, another spec, and this user has an
    // edit of their own.
    repo.write(
        "specs/greeting.md",
        old.replace("# Spec: Greeting", "# Spec: How we greet"),
    );
    repo.write("specs/other.md", "# Another\n");
    repo.commit("meanwhile");
    repo.write("greet.sh", "mine\n");
    done_by_hand(&repo, ID);
    repo.workflow().archive(ID, OnOverlap::Stop).done();
    let merged = old
        .replace("Hello, world!", "Hello, everybody!")
        .replace("# Spec: Greeting", "# Spec: How we greet");
    assert_eq!(
        (
            repo.read("specs/greeting.md"),
            repo.read("specs/other.md"),
            repo.read("greet.sh")
        ),
        (merged, "# Another\n".into(), "mine\n".into())
    );
}

/// A complete change to a spec of the project, with this spec in the project.
fn changing_a_spec(bytes: &str, mode: u32) -> TestRepo {
    let repo = project().file("specs/greeting.md", bytes);
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(repo.path().join("specs/greeting.md"), permissions).unwrap();
    repo.commit("specs");
    let new = answer("02-spec").replace("Hello, world!", "Hello, everybody!");
    for text in [
        answer("01-proposal"),
        new,
        answer("03-tasks"),
        verdict("APPROVED", "Low"),
    ] {
        repo.reply(&text);
    }
    repo.workflow().plan_change(ID, Some("Greet")).done();
    done_by_hand(&repo, ID);
    repo
}

#[test]
fn s6_an_archive_keeps_line_ends_and_mode_of_a_spec() {
    let old = answer("02-spec").replace('\n', "\r\n");
    let repo = changing_a_spec(&old, 0o755);
    // An edit of another line is no conflict.
    let edited = old.replace("# Spec: Greeting", "# Spec: How we greet");
    repo.write("specs/greeting.md", &edited);
    repo.workflow().archive(ID, OnOverlap::Stop).done();
    assert_eq!(
        repo.read("specs/greeting.md"),
        edited.replace("Hello, world!", "Hello, everybody!")
    );
    let file = std::fs::metadata(repo.path().join("specs/greeting.md")).unwrap();
    assert_eq!(file.permissions().mode() & 0o111, 0o111);
}

#[test]
fn s6_an_archive_replaces_no_link() {
    let repo = changing_a_spec(&answer("02-spec"), 0o644);
    repo.write("kept.md", answer("02-spec"));
    repo.remove("specs/greeting.md");
    std::os::unix::fs::symlink("../kept.md", repo.path().join("specs/greeting.md")).unwrap();
    let refused = refuses(&repo, ID, |workflow| {
        workflow.archive(ID, OnOverlap::Theirs)
    });
    insta::assert_snapshot!(refused, @"
    error: `specs/greeting.md` is a symbolic link, so the spec cannot be written
    hint: put a file in its place, then archive again
    exit code 1
    ");
}

/// Marks a change as complete without an implementation.
fn done_by_hand(repo: &TestRepo, id: &str) {
    let reference = format!("refs/teddy/changes/{id}");
    let folder = repo.beside(&format!("put-{id}"));
    std::fs::create_dir_all(&folder).unwrap();
    let index = repo.beside(&format!("index-{id}"));
    let git = |args: &[&str]| {
        let mut command = repo.command("git");
        command
            .current_dir(&folder)
            .env("GIT_DIR", repo.path().join(".git"))
            .env("GIT_WORK_TREE", &folder)
            .env("GIT_INDEX_FILE", &index);
        let output = command.args(args).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    git(&["read-tree", &reference]);
    git(&["checkout-index", "-a", "-f"]);
    let state = std::fs::read_to_string(folder.join("STATE.yaml")).unwrap();
    std::fs::write(
        folder.join("STATE.yaml"),
        state.replacen("phase: challenged", "phase: complete", 1),
    )
    .unwrap();
    put_again(repo, id);
}

#[test]
fn a31_a_program_that_is_missing_is_named_and_nothing_changes() {
    let repo = project();
    repo.configure("model: command:no-such-program-anywhere\n");
    insta::assert_snapshot!(repo.printed(&["change", "plan", ID, "Greet"]), @"
    --- stderr
    author: proposal.md
    Asking command:no-such-program-anywhere with about [n] tokens, no price set
    error: cannot find the program `no-such-program-anywhere`
    hint: install it, or correct `run` in the model's entry
    exit code 1
    ");
    assert_eq!(repo.git(&["for-each-ref", "refs/teddy/changes"]), "");
    put(&repo, ID, "proposed");
    refused(&repo, ID, &["change", "plan", ID], 1);
}

#[test]
fn a32_a_program_that_does_not_read_its_input_is_heard() {
    let large = "All work and no play.\n".repeat(2800);
    let repo = project()
        .file("README.md", &large)
        .file("specs/large.md", &large)
        .file("specs/larger.md", &large);
    repo.configure("model: m\nmodels:\n  m: { kind: command, run: [sh, -c, 'echo \"not logged in\" >&2; exit 3'] }\n");
    insta::assert_snapshot!(repo.printed(&["change", "plan", ID, "Greet"]), @"
    --- stderr
    author: proposal.md
    Asking m with about [n] tokens, no price set
    error: `sh` failed (exit status: 3): not logged in
    hint: run it by hand: it gets the input on stdin and must print the plan on stdout; a key that it needs is named with `api_key_env`
    exit code 1
    ");
}

#[test]
fn a33_wide_letters_are_cut_between_letters() {
    let long = "ü🐻‍❄️漢".repeat(100);
    let repo = answering(&[
        &answer("01-proposal").replace("Greet people by name instead of all alike.", &long),
        &answer("02-spec"),
        &answer("03-tasks"),
    ]);
    repo.done(&["change", "proposal", ID, &long]);
    assert!(
        steps(&repo, ID)[0].starts_with("Propose: ü"),
        "{:?}",
        steps(&repo, ID)[0]
    );
    // Without an id, `status` lists the changes.
    let listed = repo.done(&["change", "list"]);
    assert!(listed.starts_with(ID), "{listed}");
    assert_eq!(repo.done(&["change", "status"]), listed);
    repo.done(&["change", "status", ID]);
}

// Roles, limits and concurrent changes.

#[test]
fn every_role_has_a_model_of_its_own() {
    let repo = project();
    let folder = |name: &str, answers: &[&str]| {
        let folder = repo.beside(name);
        std::fs::create_dir(&folder).unwrap();
        answers
            .iter()
            .enumerate()
            .for_each(|(at, text)| std::fs::write(folder.join(format!("{at}.md")), text).unwrap());
        std::fs::write(folder.join("99.md"), "no more").unwrap();
        folder.display().to_string()
    };
    let documents = [
        answer("01-proposal"),
        answer("02-spec"),
        answer("03-tasks"),
        answer("05-revision"),
    ];
    let author = folder("author", &documents.each_ref().map(String::as_str));
    let challenger = folder(
        "challenger",
        &[
            &verdict("NEEDS_REVISION", "High"),
            &verdict("APPROVED", "Low"),
        ],
    );
    let implementer = folder("implementer", &[&answer("07-task"), &answer("08-task")]);
    let reviewer = folder("reviewer", &[&verdict("APPROVED", "Low")]);
    repo.configure(&format!(
        "change:\n  roles: {{ author: gemini, challenger: codex, implementer: 'replay:{implementer}', reviewer: r }}\nmodels:\n  gemini: {{ kind: replay, path: {author} }}\n  codex: {{ kind: replay, path: {challenger} }}\n  r: {{ kind: replay, path: {reviewer} }}\n"
    ));
    repo.done(&["change", "plan", ID, "Greet"]);
    repo.done(&["change", "impl", ID, "-y"]);
    let models = repo.git(&[
        "log",
        "--reverse",
        "--format=%(trailers:key=Teddy-Model,valueonly)",
        &format!("refs/teddy/changes/{ID}"),
    ]);
    let models: Vec<&str> = models.lines().filter(|line| !line.is_empty()).collect();
    let turn = format!("replay:{implementer}");
    assert_eq!(
        models,
        [
            "gemini", "gemini", "gemini", "codex", "gemini", "codex", &turn, &turn, "r"
        ]
    );
}

#[test]
fn reviews_that_never_approve_end_at_the_limit_and_the_user_decides() {
    let fix = |n: u32| plan("Mend", &[create(&format!("fix{n}.txt"), "x\n")]);
    let needs = verdict("NEEDS_CHANGES", "High");
    let repo = answering(&[
        &plan("One", &[create("a.txt", "a\n")]),
        &plan("Two", &[create("b.txt", "b\n")]),
        &needs,
        &fix(1),
        &needs,
        &fix(2),
        &needs,
    ]);
    put(&repo, ID, "challenged");
    insta::assert_snapshot!(repo.workflow().implement(ID, true).refused(), @r#"
    task 1.1: Say what is wanted
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE a.txt
      ✓ created, 1 line
    task 2.1: Take a name
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    reviewer: a review with a verdict
    Asking replay:[dir]/answers with about [n] tokens
    fixing what review 1 found
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE fix1.txt
      ✓ created, 1 line
    reviewer: a review with a verdict
    Asking replay:[dir]/answers with about [n] tokens
    fixing what review 2 found
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE fix2.txt
      ✓ created, 1 line
    reviewer: a review with a verdict
    Asking replay:[dir]/answers with about [n] tokens
    {
      "change": "greet-by-name",
      "done": 2,
      "fixes": 2,
      "issues": {
        "high": 1,
        "low": 0,
        "medium": 0,
        "unclear": 0
      },
      "next": "`teddy change impl greet-by-name` continues it",
      "phase": "implementing",
      "reviews": 3,
      "stopped": "after 2 rounds",
      "tasks": 2,
      "verdict": "needs_revision"
    }
    "#);
    repo.workflow().approve(ID, "good enough").done();
    assert_eq!(
        (
            phase(&repo, ID).as_str(),
            steps(&repo, ID).last().unwrap().as_str()
        ),
        ("complete", "Approve in place of the review: good enough")
    );
}

#[test]
fn changes_go_on_side_by_side() {
    let repo = answering(&[&verdict("APPROVED", "Low"), &verdict("REJECTED", "High")]);
    put(&repo, "one", "proposed");
    put(&repo, "two", "proposed");
    repo.workflow().challenge("one").done();
    // A replay counts for each change by itself.
    repo.workflow().challenge("two").done();
    assert_eq!(
        [phase(&repo, "one"), phase(&repo, "two")],
        ["challenged", "challenged"]
    );
    assert_eq!(
        repo.git(&["for-each-ref", "refs/teddy/changes"])
            .lines()
            .count(),
        2
    );
}

#[test]
fn a_rejected_plan_of_a_task_stops_with_its_exit_code() {
    let repo = answering(&["no plan at all"]);
    put(&repo, ID, "challenged");
    insta::assert_snapshot!(repo.workflow().implement(ID, true).refused(), @r#"
    task 1.1: Say what is wanted
    Asking replay:[dir]/answers with about [n] tokens
    The plan was not accepted: 3 mistakes
    plan.md:1: the plan has no level 1 heading
        hint: start the plan with `# Title`
    plan.md:1: the plan has no `## Rationale`
        hint: add `## Rationale` with one code block before `## Action Plan`
    plan.md:1: the plan has no `## Action Plan`
        hint: add `## Action Plan` and at least one action
    Asking replay:[dir]/answers with about [n] tokens
    The plan was not accepted: 3 mistakes
    plan.md:1: the plan has no level 1 heading
        hint: start the plan with `# Title`
    plan.md:1: the plan has no `## Rationale`
        hint: add `## Rationale` with one code block before `## Action Plan`
    plan.md:1: the plan has no `## Action Plan`
        hint: add `## Action Plan` and at least one action
    the same mistake was made twice; say what to do with `teddy plan '<message>'`
    {
      "change": "greet-by-name",
      "done": 0,
      "fixes": 0,
      "issues": {
        "high": 0,
        "low": 0,
        "medium": 0,
        "unclear": 0
      },
      "next": "`teddy change impl greet-by-name` continues it",
      "phase": "implementing",
      "reviews": 0,
      "stopped": "task 1.1: turn rejected",
      "tasks": 2,
      "verdict": null
    }
    "#);
    assert_eq!(phase(&repo, ID), "implementing");
}

#[test]
fn the_steps_are_listed_shown_and_compared() {
    let repo = recorded();
    repo.done(&["change", "plan", ID, "Greet people by name"]);
    let log = repo.done(&["change", "log", ID]);
    assert!(
        log.lines()
            .next()
            .unwrap()
            .ends_with("challenged   Challenge 2: approved (no issues)"),
        "{log}"
    );
    assert_eq!(
        repo.json(&["change", "log", ID, "-n", "2"], 0)
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let diff = repo.done(&["change", "diff", ID, "4", "5"]);
    insta::assert_snapshot!(repo.plain(&diff), @"
    --- a/specs/greeting.md
    +++ b/specs/greeting.md
    @@ -1,7 +1,7 @@
     # Spec: Greeting
     
     ## Overview
    -The program greets whoever it is told to greet, and the world if it is told nobody.
    +The program greets whoever it is told to greet, and the world if it is told nobody or an empty name.
     
     ## Requirements
     
    @@ -9,7 +9,7 @@
     It takes a name as its first argument and greets it.
     
     ### R2: World
    -Without an argument it greets the world.
    +Without an argument, or with an empty one, it greets the world.
     
     ## Acceptance Criteria
     
    @@ -18,5 +18,5 @@
     - **THEN** it prints `Hello, Ada!`
     
     ### Scenario: No name is given
    -- **WHEN** `greet.sh` runs
    +- **WHEN** `greet.sh` or `greet.sh ''` runs
     - **THEN** it prints `Hello, world!`
    ");
    assert_eq!(
        repo.done(&["change", "show", ID, "specs/greeting.md", "--at", "2"]),
        answer("02-spec")
    );
    insta::assert_snapshot!(repo.printed(&["change", "show", ID, "nothing.md"]), @"
    --- stderr
    error: the change has no `nothing.md`; it has proposal.md, specs/greeting.md, tasks.md, STATE.yaml
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["change", "diff", ID, "99"]), @"
    --- stderr
    error: `greet-by-name` has no step 99; its steps are 1 to 6
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["change", "diff", ID]), @"
    --- stderr
    error: nothing of `greet-by-name` is implemented yet; `teddy change diff greet-by-name 1` compares its documents
    exit code 1
    ");
}

#[test]
fn a_document_that_is_viewed_cannot_steer_the_terminal() {
    let repo = project();
    put_with(
        &repo,
        (ID, "challenged"),
        &format!("{}\n\u{1b}]0;evil\u{7}\u{202e}x\n", answer("01-proposal")),
    );
    let mut screen = crate::screen::Screen::open_with(
        &repo,
        (100, 60),
        (&["change", "plan", ID], &[("GIT_PAGER", "cat")]),
    );
    screen.wait_for_prompt("(i)mplement / (v)iew / (q)uit ›");
    screen.press("v");
    screen.wait_for("\\u{1b}]0;evil\\u{7}\\u{202e}x");
    screen.settled();
    screen.press("q");
    screen.end();
    assert!(
        !screen.written().contains("\u{1b}]0;evil"),
        "{}",
        screen.shown()
    );
}

#[test]
fn at_a_terminal_the_user_decides_what_comes_next() {
    let repo = answering(&[&verdict("NEEDS_REVISION", "Low")]);
    put(&repo, ID, "proposed");
    let mut screen = crate::screen::Screen::open(
        &repo,
        (100, 30),
        &["-c", "change.planning_iterations=0", "change", "plan", ID],
    );
    let shown = screen.wait_for_prompt("(q)uit ›");
    assert!(shown.contains("Only minor issues remain; it can be implemented. (i)mplement / (v)iew / (c)ontinue fixing"), "{shown}");
    screen.press("i");
    screen.wait_for("The reason is recorded.");
    screen.press("a matter of taste\r");
    screen.end();
    let taken = steps(&repo, ID);
    assert_eq!(
        taken[2..4],
        [
            "Approve in place of the challenge: a matter of taste",
            "Begin to implement"
        ]
    );
}

#[test]
fn the_walkthrough_prints_what_it_shows() {
    let repo = recorded();
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/docs/walkthroughs/change.md"
    ))
    .unwrap();
    let id = regex::Regex::new(r"\b[0-9a-f]{8}\b").unwrap();
    let blocks: Vec<&str> = page
        .split("```console\n")
        .skip(1)
        .map(|rest| rest.split_once("\n```").unwrap().0)
        .collect();
    assert_eq!(blocks.len(), 5);
    for step in blocks
        .iter()
        .flat_map(|block| block.strip_prefix("$ ").unwrap().split("\n$ "))
    {
        let (line, expected) = step.split_once('\n').unwrap();
        let words = shlex::split(line).unwrap();
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let printed = if words[0] == "teddy" {
            repo.done(&args)
        } else {
            repo.git(&args)
        };
        let plain = |text: &str| id.replace_all(text, "<id>").trim_end().to_owned();
        assert_eq!(plain(&printed), plain(expected), "{line}");
    }
}

#[test]
fn a_link_in_the_place_of_a_spec_is_none() {
    let repo = project();
    put(&repo, ID, "complete");
    let spec = repo.beside(&format!("put-{ID}/specs/greeting.md"));
    std::fs::remove_file(&spec).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &spec).unwrap();
    put_again(&repo, ID);
    let refused = refuses(&repo, ID, |workflow| workflow.archive(ID, OnOverlap::Stop));
    insta::assert_snapshot!(refused, @r"
    specs/greeting.md:1: error: is missing, and the proposal names it
    error: the documents of `greet-by-name` have 1 mistake
    hint: `teddy change validate greet-by-name` lists them; a commit on `refs/teddy/changes/greet-by-name` corrects them
    exit code 1
    ");
}

#[test]
fn a34_an_archive_that_was_cut_short_behind_the_files_is_finished() {
    let repo = project();
    put(&repo, ID, "complete");
    repo.workflow().archive(ID, OnOverlap::Stop).done();
    let turns = repo.git(&["rev-parse", "refs/teddy/sessions/change/greet-by-name"]);
    let archived = tip(&repo, ID);
    repo.git(&[
        "update-ref",
        &format!("refs/teddy/changes/{ID}"),
        &format!("{archived}~1"),
    ]);
    repo.workflow().archive(ID, OnOverlap::Stop).done();
    // The files were there already, so that no second turn is needed.
    assert_eq!(
        repo.git(&["rev-parse", "refs/teddy/sessions/change/greet-by-name"]),
        turns
    );
    assert_eq!(repo.read("specs/greeting.md"), answer("02-spec"));
}

#[test]
fn a_question_of_the_implementer_pauses_the_work_until_the_answer() {
    let repo = answering(&[
        &plan("Ask", &[chat("Which greeting?")]),
        &plan("One", &[create("a.txt", "a\n")]),
        &plan("Two", &[create("b.txt", "b\n")]),
    ]);
    put(&repo, ID, "implementing");
    for _ in 0..2 {
        repo.teddy(&["change", "implement", ID, "-y"]).check(
            5,
            &[
                "stopped: task 1.1: the model asks you something",
                "Which greeting?",
                "teddy change impl greet-by-name -m",
            ],
        );
        assert_eq!(steps(&repo, ID), ["by hand"]);
    }
    let args = ["change", "implement", ID, "-y", "-m", "Hello!"];
    let done = repo.json(&args, 0);
    assert!(
        repo.done(&["-s", "change/greet-by-name", "show", "2", "user_prompt.txt"])
            .contains("## What the user says\n\nHello!\n")
    );
    assert_eq!(
        (done["done"].as_u64(), done["stopped"].is_null()),
        (Some(2), true)
    );
    assert_eq!(steps(&repo, ID)[1], "Do 1.1: Say what is wanted (turn 2)");
}

#[test]
fn an_answer_that_resume_sends_does_the_task_that_asked() {
    let repo = answering(&[
        &plan("Ask", &[chat("Which greeting?")]),
        &plan("One", &[create("a.txt", "a\n")]),
        &plan("Two", &[create("b.txt", "b\n")]),
    ]);
    put(&repo, ID, "implementing");
    repo.teddy(&["change", "implement", ID, "-y"]).check(5, &[]);
    let session = repo.workflow().session("change/greet-by-name");
    session.resume(Some("Hello!")).done();
    repo.workflow().implement(ID, false).done();
    assert_eq!(
        steps(&repo, ID)[1..],
        [
            "Do 1.1: Say what is wanted (turn 2)",
            "Do 2.1: Take a name (turn 3)"
        ]
    );
}

#[test]
fn a_task_is_not_done_by_changes_that_the_user_left_out() {
    let repo = answering(&[
        &plan("One", &[read("greet.sh"), create("a.txt", "a\n")]),
        &plan("One again", &[create("a.txt", "a\n")]),
        &plan("Two", &[create("b.txt", "b\n")]),
    ]);
    put(&repo, ID, "implementing");
    let user = ScriptedUser::deciding([
        Scripted::ApproveOnly(vec![0]),
        Scripted::Approve,
        Scripted::Approve,
    ]);
    repo.workflow().with(user).implement(ID, false).done();
    assert_eq!(
        steps(&repo, ID)[1..],
        [
            "Do 1.1: Say what is wanted (turn 2)",
            "Do 2.1: Take a name (turn 3)"
        ]
    );
}

/// Saves `a.txt` when the first plan has run and its result is not in the files yet.
fn implement_during_a_save(repo: &TestRepo) {
    let script = repo.beside("save");
    let file = repo.path().join("a.txt");
    std::fs::write(&script, format!("echo mine > {}\n", file.display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = repo.teddy_command(&["change", "impl", ID, "-y"]);
    let armed = format!("after-run=1*return(sh:{})", script.display());
    let out = Output::of(command.current_dir(repo.path()).env("FAILPOINTS", armed));
    assert_eq!(out.code, 4, "{out}");
}

#[test]
fn c10_a_task_is_not_done_until_a_conflict_with_its_result_is_settled() {
    for (side, content) in [("--theirs", "a\n"), ("--ours", "mine\n")] {
        let repo = answering(&[
            &plan("One", &[create("a.txt", "a\n")]),
            &plan("Two", &[create("b.txt", "b\n")]),
            &verdict("APPROVED", "Low"),
        ]);
        put(&repo, ID, "implementing");
        implement_during_a_save(&repo);
        refused(&repo, ID, &["change", "impl", ID, "-y"], 4);
        repo.done(&["-s", "change/greet-by-name", "restore", "@", side]);
        repo.done(&["change", "impl", ID, "-y"]);
        assert_eq!(
            steps(&repo, ID)[1..],
            [
                "Do 1.1: Say what is wanted (turn 1)",
                "Do 2.1: Take a name (turn 3)",
                "Review 1: approved (1 low)"
            ],
            "{side}"
        );
        assert_eq!(repo.read("a.txt"), content, "{side}");
        let status = repo.json(&["change", "status", ID], 0);
        assert_eq!(
            (&status["done"], &status["undone"]),
            (&2.into(), &serde_json::json!([]))
        );
        let changed = repo.done(&["change", "diff", ID]);
        assert_eq!(changed.contains("a.txt"), side == "--theirs", "{changed}");

        // What was never in the files cannot be undone.
        repo.done(&["-s", "change/greet-by-name", "restore", "0"]);
        let done = repo.json(&["change", "status", ID], 0)["done"].take();
        assert_eq!(done, if side == "--theirs" { 0 } else { 1 });
    }
}

/// Bug: another worktree counted it as done.
#[test]
fn c10_a_conflict_in_another_worktree_is_settled_there() {
    let repo = answering(&[
        &plan("One", &[create("a.txt", "a\n")]),
        &plan("Two", &[create("b.txt", "b\n")]),
        &verdict("APPROVED", "Low"),
    ]);
    put(&repo, ID, "implementing");
    implement_during_a_save(&repo);
    let linked = repo.beside("linked");
    repo.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let there = || repo.teddy_in(&linked, &["change", "impl", ID, "-y"]);
    there().check(4, &["the result is not in all of your files"]);
    repo.done(&["-s", "change/greet-by-name", "restore", "@", "--ours"]);
    there().check(0, &["complete, 2 of 2 tasks done"]);
}

/// A restore of other paths undoes no turn, and one of the turn's path settles its conflict.
#[test]
fn c10_a_restore_of_paths_settles_a_conflict_and_hides_no_turn() {
    let repo = answering(&[
        &plan("One", &[create("a.txt", "a\n")]),
        &plan("Two", &[create("b.txt", "b\n")]),
    ]);
    put(&repo, ID, "implementing");
    implement_during_a_save(&repo);
    let session = ["-s", "change/greet-by-name"];
    repo.done(&[&session[..], &["restore", "1", "a.txt", "--ours"]].concat());
    repo.write("hand.txt", "x\n");
    repo.done(&[&session[..], &["record", "by hand"]].concat());
    repo.workflow().implement(ID, false).done();
    let expected = [
        "Do 1.1: Say what is wanted (turn 1)",
        "Do 2.1: Take a name (turn 4)",
    ];
    assert_eq!(steps(&repo, ID)[1..], expected);
}

#[test]
fn a_result_that_is_not_in_the_files_is_not_judged() {
    let repo = answering(&[
        &plan("One", &[create("a.txt", "a\n")]),
        &plan("Two", &[create("b.txt", "b\n")]),
    ]);
    put(&repo, ID, "implementing");
    implement_during_a_save(&repo);
    assert!(!repo.teddy(&["change", "diff", ID]).stdout.contains("a.txt"));
    insta::assert_snapshot!(repo.printed(&["change", "impl", ID, "-y"]), @"
    greet-by-name implementing, 0 of 2 tasks done
    --- stderr
    task 1.1: Say what is wanted
    warning: stopped: task 1.1: the result is not in all of your files; `teddy -s change/greet-by-name restore 1 --theirs` takes it, `--ours` keeps your side
    Next: `teddy change impl greet-by-name` continues it
    exit code 4
    ");
    // A later turn of the user's settles nothing, and the task is asked again.
    repo.workflow()
        .session("change/greet-by-name")
        .run_plan(&plan("Own", &[create("own.txt", "o\n")]));
    let changed = repo.done(&["change", "diff", ID]);
    assert_eq!(
        [changed.contains("a.txt"), changed.contains("own.txt")],
        [false, true],
        "{changed}"
    );
    repo.teddy(&["change", "implement", ID, "-y"]);
    assert!(steps(&repo, ID)[1].ends_with("(turn 3)"));
}

#[test]
fn promise_c1_the_work_of_a_change_is_before_the_model_that_corrects_a_plan_for_it() {
    let repo = answering(&[
        &plan("Wrong", &[crate::plans::edit("none.txt", "x", "y")]),
        &plan("One", &[create("a.txt", "a\n")]),
        &plan("Two", &[create("b.txt", "b\n")]),
    ]);
    put(&repo, ID, "implementing");
    repo.workflow().implement(ID, false).done();
    let session = || repo.workflow().session("change/greet-by-name");
    let sent = |turn: &str| session().artifact(turn, "input.md");
    let first = "Task 1.1 of change greet-by-name";
    let count = |turn: &str| sent(turn).matches(first).count();
    assert_eq!((count("1"), count("2"), count("3")), (0, 1, 0));
    assert!(
        sent("2").contains("### Turn 1 (the work to be done)\n"),
        "{}",
        sent("2")
    );
}

#[test]
fn a_review_that_rejects_the_whole_stops_and_the_phase_stays() {
    let repo = answering(&[
        &plan("One", &[create("a.txt", "a\n")]),
        &plan("Two", &[create("b.txt", "b\n")]),
        &verdict("MAJOR_ISSUES", "High"),
        &plan("Better", &[create("c.txt", "c\n")]),
        &verdict("APPROVED", "Low"),
    ]);
    put(&repo, ID, "challenged");
    insta::assert_snapshot!(repo.workflow().implement(ID, true).refused(), @r#"
    task 1.1: Say what is wanted
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE a.txt
      ✓ created, 1 line
    task 2.1: Take a name
    Asking replay:[dir]/answers with about [n] tokens
    ▶ 1. CREATE b.txt
      ✓ created, 1 line
    reviewer: a review with a verdict
    Asking replay:[dir]/answers with about [n] tokens
    {
      "change": "greet-by-name",
      "done": 2,
      "fixes": 0,
      "issues": {
        "high": 1,
        "low": 0,
        "medium": 0,
        "unclear": 0
      },
      "next": "`teddy change show greet-by-name review` has the reasons; `teddy change impl greet-by-name -m '<what to do>'` lets the implementer fix it, `teddy change review greet-by-name` asks again, and `teddy change approve greet-by-name --reason '<why>'` overrides the review",
      "phase": "implementing",
      "reviews": 1,
      "stopped": "the review rejects it",
      "tasks": 2,
      "verdict": "rejected"
    }
    "#);
    assert_eq!(phase(&repo, ID), "implementing");

    // Bug: only the same review was paid again, and a message was not used.
    let before = steps(&repo, ID);
    for command in ["impl", "implement"] {
        repo.teddy(&["change", command, ID, "-y"])
            .check(1, &["-m '<what to do>'` lets the implementer fix it"]);
    }
    assert_eq!(steps(&repo, ID), before);
    repo.done(&["change", "impl", ID, "-y", "-m", "Do it better"]);
    let asked = repo.done(&["-s", "change/greet-by-name", "show", "3", "user_prompt.txt"]);
    assert!(asked.starts_with("Fix review 1 of change"), "{asked}");
    assert!(
        asked.contains("## What the user says\n\nDo it better\n"),
        "{asked}"
    );
    assert_eq!(
        (repo.read("c.txt"), phase(&repo, ID)),
        ("c\n".into(), "complete".into())
    );
}

/// Bug: answers that no step took cost nothing.
#[test]
fn c11_what_unusable_answers_cost_is_held_against_the_limit() {
    let repo = project();
    let answers = ["stop", "stop", "length"];
    let fake = Fake::answering(&answers.map(|end| stream("No.", end, (500_000, 0))));
    let model = format!(
        "{{ kind: openai, id: x, base_url: \"{}/v1\", price: {{ input: 2, output: 0 }} }}",
        fake.origin
    );
    repo.configure(&format!(
        "model: fake\nmodels: {{ fake: {model} }}\nlimits: {{ cost: 3 }}\n"
    ));
    for words in [
        "the author's answer is not proposal.md",
        "the model's answer is cut off",
        "$3.00 is spent, and the limit is $3.00; nothing was sent",
    ] {
        repo.teddy(&["change", "plan", ID, "Greet people by name"])
            .check(1, &[words]);
    }
    assert_eq!(fake.requests().len(), 3);
    put(&repo, ID, "proposed");
    let usage = repo.workflow().change_status(ID)["usage"].clone();
    assert_eq!((&usage["calls"], &usage["cost"]), (&3.into(), &3.0.into()));
}

/// Bug: such an answer was lost and did not count, so that the limit never stopped the next call.
#[test]
fn c11_what_an_answer_cost_that_cannot_be_recorded_counts() {
    let repo = project();
    put(&repo, ID, "proposed");
    let lock = repo
        .path()
        .join(format!(".git/refs/teddy/changes/{ID}.lock"));
    let script = format!(
        "touch {}; cat > /dev/null; echo '{}'",
        lock.display(),
        verdict("APPROVED", "Low")
    );
    repo.configure(&format!(
        "model: program\nmodels:\n  program: {{ kind: command, run: [sh, -c, {} ] }}\n",
        serde_json::to_string(&script).unwrap()
    ));
    repo.teddy(&["change", "challenge", ID])
        .check(1, &["the answer was not recorded (it is kept in `"]);
    std::fs::remove_file(lock).unwrap();
    let status = repo.workflow().change_status(ID);
    assert_eq!(
        (&status["phase"], &status["usage"]["calls"]),
        (&"proposed".into(), &1.into())
    );
    let kept = std::fs::read_to_string(
        repo.path()
            .join(format!(".git/teddy/changes/{ID}/answer.md")),
    );
    assert!(kept.unwrap().contains("APPROVED"));
}

/// Regression: a filtered answer was called cut off, and an empty one cost nothing.
#[test]
fn c11_an_answer_that_its_model_ended_has_the_reason_and_counts() {
    let repo = project();
    let fake = Fake::answering(&[
        stream("No.", "content_filter", (500_000, 0)),
        stream("", "length", (500_000, 0)),
    ]);
    repo.configure(&format!(
        "model: fake\nmodels: {{ fake: {{ kind: openai, id: x, base_url: \"{}/v1\", price: {{ input: 2, output: 0 }} }} }}\nlimits: {{ cost: 2 }}\n",
        fake.origin
    ));
    for words in [
        "answer.md`): the model ended its answer before it was done: `content_filter`",
        "the model's answer was not taken: the answer is empty",
        "$2.00 is spent, and the limit is $2.00; nothing was sent",
    ] {
        repo.teddy(&["change", "plan", ID, "Greet people by name"])
            .check(1, &[words]);
    }
}

/// Bug: nobody carried them out.
#[test]
fn t8_tasks_that_the_author_ticked_are_still_to_be_done() {
    let ticked = answer("03-tasks").replace("[ ]", "[x]");
    let repo = answering(&[&answer("01-proposal"), &answer("02-spec"), &ticked]);
    repo.workflow().propose(ID, Some("Greet")).done();
    assert_eq!(document(&repo, ID, "tasks.md").matches("[x]").count(), 0);
    let status = repo.workflow().change_status(ID);
    assert_eq!((&status["done"], &status["tasks"]), (&0.into(), &2.into()));
}

/// Bug: the first turn of the new session was not recognized, and its task asked for again.
#[test]
fn work_goes_on_after_its_session_was_deleted() {
    let repo = answering(&[&plan("One", &[create("a.txt", "a\n")])]);
    put(&repo, ID, "implementing");
    let implement = ["change", "implement", ID, "-y"];
    assert_ne!(repo.teddy(&implement).code, 0);
    repo.done(&["gc", "change/greet-by-name", "-y"]);
    repo.remove("a.txt");
    let mut later = repo.teddy_command(&implement);
    later
        .current_dir(repo.path())
        .env("TEDDY_NOW", "2026-01-03T00:00:00+00:00");
    Output::of(&mut later).check(0, &["2 of 2 tasks done"]);
    let done: Vec<String> = steps(&repo, ID).split_off(1);
    assert_eq!(
        done,
        [
            "Do 1.1: Say what is wanted (turn 1)",
            "Do 2.1: Take a name (turn 1)"
        ]
    );
}

/// Bug: the reviewer judged that nothing was done, and the implementer did it again.
#[test]
fn c12_work_in_a_session_that_is_gone_is_not_reviewed() {
    let repo = answering(&[
        &plan("One", &[create("a.txt", "a\n")]),
        &plan("Two", &[create("b.txt", "b\n")]),
        &verdict("NEEDS_FIX", "High"),
    ]);
    put(&repo, ID, "implementing");
    repo.done(&["change", "implement", ID, "-y"]);
    repo.done(&["gc", "change/greet-by-name", "-y"]);
    for args in [
        &["change", "review", ID][..],
        &["change", "impl", ID, "-y"],
        &["change", "diff", ID],
    ] {
        refused(&repo, ID, args, 1).check(
            1,
            &[
                "error: session `change/greet-by-name` with the work on `greet-by-name` is not in this repository",
                "`teddy switch <remote>/change/greet-by-name` takes it from a remote",
            ],
        );
    }
    let sessions = repo.git(&["for-each-ref", "refs/teddy/sessions"]);
    assert_eq!(sessions, "");
}

/// Bug: the hint named a step that the phase does not allow.
#[test]
fn wrong_documents_of_a_change_in_work_are_corrected_with_git() {
    let repo = project();
    put_with(
        &repo,
        (ID, "implementing"),
        &answer("01-proposal").replace(ID, "other"),
    );
    insta::assert_snapshot!(repo.printed(&["change", "impl", ID]), @"
    --- stderr
    proposal.md:1: error: the title is `# Change: other`, not `# Change: greet-by-name`
    error: the documents of `greet-by-name` have 1 mistake
    hint: `teddy change validate greet-by-name` lists them; a commit on `refs/teddy/changes/greet-by-name` corrects them
    exit code 1
    ");
}

#[test]
fn a34_a_plan_that_waits_is_not_asked_for_again() {
    let repo = answering(&[
        &plan("One", &[create("a.txt", "a\n")]),
        &plan("Two", &[create("b.txt", "b\n")]),
        &verdict("APPROVED", "Low"),
    ]);
    put(&repo, ID, "challenged");
    insta::assert_snapshot!(repo.printed(&["change", "impl", ID]), @r#"
    --- stderr
    task 1.1: Say what is wanted
    Asking replay:[dir]/answers with about [n] tokens
    ▶ Reviewing Plan: "One"
      change/greet-by-name · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      One, because it is wanted.
     Changes: 1 file  +1
      a.txt  +1  new file
        +a
     Action Plan:
      - CREATE: 1 file
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    error: stdin is not a terminal, so TeDDy cannot ask for approval of this plan
    hint: `-y` approves it
    exit code 1
    "#);
    assert!(!repo.path().join("a.txt").exists());
    assert_eq!(
        repo.json(&["change", "impl", ID, "-y"], 0)["phase"],
        "complete"
    );
    assert_eq!(
        (repo.read("a.txt"), repo.read("b.txt")),
        ("a\n".to_owned(), "b\n".to_owned())
    );
}

#[test]
fn a_change_that_another_process_works_on_is_waited_for_as_long_as_the_user_says() {
    let repo = project();
    put(&repo, "held", "reviewing");
    let folder = repo.path().join(".git/teddy/changes/held");
    let _held = Lock::take(&folder, "change impl", Duration::ZERO).unwrap();

    let started = Instant::now();
    let output = Output::of(
        repo.teddy_command(&["change", "approve", "held", "--reason", "seen"])
            .current_dir(repo.path())
            .env("TEDDY_LOCK_TIMEOUT", "0.1"),
    );
    insta::assert_snapshot!(output.shown(&repo), @"
    --- stderr
    error: busy: process [pid] (change impl) is at work in this repository
    hint: try again once it has ended; `TEDDY_LOCK_TIMEOUT=<seconds>` waits longer
    exit code 75
    ");
    assert!(started.elapsed() < PATIENCE);
}
