//! INVOKE and CONCLUDE: agents hand over to each other and return, over several levels.

use serde_json::json;

use crate::plans::{conclude, create, invoke, plan, read};
use crate::support::TestRepo;

/// The assistant invoked the architect, who invoked the debugger.
fn two_levels() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "a\n")
        .file("b.txt", "b\n")
        .file("brief.md", "do it\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().run_plan(&plan("Look", &[read("a.txt")]));
    repo.workflow().run_plan(&plan(
        "Hand over",
        &[invoke("Architect", &["brief.md"], "Please design it.")],
    ));
    repo.workflow().run_plan(&plan("Design", &[read("b.txt")]));
    repo.workflow().run_plan(&plan(
        "Ask for help",
        &[invoke("Debugger", &[], "Please look into it.")],
    ));
    repo
}

/// Returns the next turn's context, without files that the last turn added.
fn context(repo: &TestRepo) -> Vec<String> {
    let list = repo.workflow().artifact("@", "next/turn.context");
    list.lines()
        .filter(|line| !line.starts_with(".teddy/"))
        .map(ToOwned::to_owned)
        .collect()
}

/// Returns the agent of the next turn.
fn agent(repo: &TestRepo) -> String {
    let meta = repo.workflow().artifact("@", "next/meta.yaml");
    meta.lines()
        .find_map(|line| line.strip_prefix("agent: "))
        .unwrap()
        .to_owned()
}

#[test]
fn an_invoked_agent_starts_with_its_prompt_and_the_given_resources() {
    let repo = two_levels();
    let next = repo.workflow().artifact("2", "next/turn.context");
    assert_eq!(next, "brief.md\n.teddy/demo/02/report.md\n");
    assert_eq!(
        repo.workflow().artifact("2", "next/system_prompt.xml"),
        repo.workflow().prompt("architect")
    );
    assert!(
        repo.workflow()
            .artifact("2", "report.md")
            .contains("Please design it.")
    );
}

#[test]
fn concluding_returns_to_the_caller_level_by_level() {
    let repo = two_levels();
    assert_eq!(agent(&repo), "debugger");
    repo.workflow().run_plan(&plan(
        "Found",
        &[
            create("rca.md", "found\n"),
            conclude(&["rca.md"], "It was this."),
        ],
    ));
    assert_eq!(
        (agent(&repo).as_str(), context(&repo)),
        (
            "architect",
            vec![
                "brief.md".to_owned(),
                "b.txt".to_owned(),
                "rca.md".to_owned()
            ]
        )
    );
    repo.workflow()
        .run_plan(&plan("Designed", &[conclude(&["brief.md"], "Here it is.")]));
    assert_eq!(
        (agent(&repo).as_str(), context(&repo)),
        ("assistant", vec!["a.txt".to_owned(), "brief.md".to_owned()])
    );
    assert_eq!(
        repo.workflow().artifact("@", "next/system_prompt.xml"),
        repo.workflow().prompt("assistant")
    );
    assert!(
        !repo
            .workflow()
            .artifact("@", "next/meta.yaml")
            .contains("caller_turn_id")
    );
}

#[test]
fn the_ledger_says_who_called_and_log_shows_the_nesting() {
    let repo = two_levels();
    repo.workflow()
        .run_plan(&plan("Found", &[conclude(&[], "It was this.")]));
    repo.workflow()
        .run_plan(&plan("Designed", &[conclude(&[], "Here it is.")]));
    repo.workflow().run_plan(&plan("Go on", &[read("b.txt")]));
    let rows = repo.workflow().log();
    let shown: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["number"], row["agent"], row["depth"]]))
        .collect();
    let expected = json!([
        [7, "assistant", 0],
        [6, "architect", 1],
        [5, "debugger", 2],
        [4, "architect", 1],
        [3, "architect", 1],
        [2, "assistant", 0],
        [1, "assistant", 0],
        [0, "assistant", 0]
    ]);
    assert_eq!(json!(shown), expected);
    let log = repo.done(&["log"]);
    insta::assert_snapshot!(repo.plain(&log), @"
    7 [id] 2026-01-02 03:04 executed Go on
    6 [id] 2026-01-02 03:04 executed   Designed
    5 [id] 2026-01-02 03:04 executed     Found
    4 [id] 2026-01-02 03:04 executed   Ask for help
    3 [id] 2026-01-02 03:04 executed   Design
    2 [id] 2026-01-02 03:04 executed Hand over
    1 [id] 2026-01-02 03:04 executed Look
    0 [id] 2026-01-02 03:04 started  Start session demo
    ");
}

#[test]
fn an_agent_that_is_not_there_is_a_mistake_of_the_plan_and_the_names_are_listed() {
    let repo = TestRepo::new();
    repo.workflow().new_session("demo").done();
    let said = repo
        .workflow()
        .execute_text(&plan("Nobody", &[invoke("Nobody", &[], "Hi.")]))
        .refused();
    insta::assert_snapshot!(said, @r"
    The plan was not accepted: 1 mistake
    plan.md:13: INVOKE Nobody: there is no agent `Nobody`
        hint: the agents are `architect`, `assistant`, `debugger`, `developer`, `pathfinder`, `prototyper`
    no model is configured to correct the plan
    turn 1 rejected
    plan.md:13: INVOKE Nobody: there is no agent `Nobody`
        hint: the agents are `architect`, `assistant`, `debugger`, `developer`, `pathfinder`, `prototyper`
    ");
}

#[test]
fn an_invoke_is_the_last_action() {
    let repo = TestRepo::new();
    repo.workflow().new_session("demo").done();
    let early = plan(
        "Early",
        &[invoke("Architect", &[], "Hi."), create("a.txt", "a\n")],
    );
    insta::assert_snapshot!(repo.workflow().execute_text(&early).refused(), @r"
    The plan was not accepted: 1 mistake
    plan.md:13: INVOKE Architect: INVOKE is not the last action
        hint: put it at the end: nothing of this plan runs after it
    no model is configured to correct the plan
    turn 1 rejected
    plan.md:13: INVOKE Architect: INVOKE is not the last action
        hint: put it at the end: nothing of this plan runs after it
    ");
    assert!(!repo.path().join("a.txt").exists());
}
