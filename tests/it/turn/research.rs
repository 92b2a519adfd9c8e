//! RESEARCH with the default settings and with a search engine.

use crate::plans::{create, execute, plan, research};
use crate::support::TestRepo;

/// Finds the same page for every query.
const SEARCH: &str = "#!/bin/sh\n# The query is the last argument.\nprintf '[{\"title\": \"On %s\", \"url\": \"https://example.com/\", \"snippet\": \"words\"}]' \"$1\"\n";

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo
}

/// Configures `SEARCH` as the search engine.
fn set_up(repo: &TestRepo) {
    repo.put(repo.beside("find.sh"), SEARCH);
    let program = repo.beside("find.sh");
    repo.configure(&format!(
        "research: {{ engine: command, run: [sh, '{}'] }}\n",
        program.display()
    ));
}

#[test]
fn promise_a3_without_an_engine_a_search_is_refused_before_anything_runs() {
    let repo = project();
    let text = plan(
        "Look",
        &[
            execute("touch ran"),
            research(&["how"]),
            create("b.txt", "b\n"),
        ],
    );
    insta::assert_snapshot!(repo.workflow().execute_text(&text).refused(), @r"
    The plan was not accepted: 1 mistake
    plan.md:20: RESEARCH how: RESEARCH cannot search: no search engine is set up; `research.engine` names one
        hint: leave RESEARCH out: READ pages whose address you know, or ask the user to set up a search engine as `docs/research.md` says
    no model is configured to correct the plan
    turn 1 rejected
    plan.md:20: RESEARCH how: RESEARCH cannot search: no search engine is set up; `research.engine` names one
        hint: leave RESEARCH out: READ pages whose address you know, or ask the user to set up a search engine as `docs/research.md` says
    ");
    assert!(!repo.path().join("ran").exists());
}

#[test]
fn promise_a3_an_engine_that_lacks_something_is_refused_too() {
    let repo = project();
    let refused = [
        "{ engine: brave }",
        "{ engine: tavily, api_key_env: MY_KEY }",
        "{ engine: searxng }",
        "{ engine: command }",
    ]
    .map(|engine| {
        repo.configure(&format!("research: {engine}\n"));
        let text = plan("Look", &[research(&["how"])]);
        repo.workflow().execute_text(&text).refused()
    });
    insta::assert_snapshot!(refused.concat(), @r"
    The plan was not accepted: 1 mistake
    plan.md:13: RESEARCH how: RESEARCH cannot search: the search engine's key is missing; `BRAVE_API_KEY` is not set
        hint: leave RESEARCH out: READ pages whose address you know, or ask the user to set up a search engine as `docs/research.md` says
    no model is configured to correct the plan
    turn 1 rejected
    plan.md:13: RESEARCH how: RESEARCH cannot search: the search engine's key is missing; `BRAVE_API_KEY` is not set
        hint: leave RESEARCH out: READ pages whose address you know, or ask the user to set up a search engine as `docs/research.md` says
    The plan was not accepted: 1 mistake
    plan.md:13: RESEARCH how: RESEARCH cannot search: the search engine's key is missing; `MY_KEY` is not set
        hint: leave RESEARCH out: READ pages whose address you know, or ask the user to set up a search engine as `docs/research.md` says
    no model is configured to correct the plan
    turn 2 rejected
    plan.md:13: RESEARCH how: RESEARCH cannot search: the search engine's key is missing; `MY_KEY` is not set
        hint: leave RESEARCH out: READ pages whose address you know, or ask the user to set up a search engine as `docs/research.md` says
    The plan was not accepted: 1 mistake
    plan.md:13: RESEARCH how: RESEARCH cannot search: `research.base_url` does not say where SearXNG is
        hint: leave RESEARCH out: READ pages whose address you know, or ask the user to set up a search engine as `docs/research.md` says
    no model is configured to correct the plan
    turn 3 rejected
    plan.md:13: RESEARCH how: RESEARCH cannot search: `research.base_url` does not say where SearXNG is
        hint: leave RESEARCH out: READ pages whose address you know, or ask the user to set up a search engine as `docs/research.md` says
    The plan was not accepted: 1 mistake
    plan.md:13: RESEARCH how: RESEARCH cannot search: `research.run` names no program
        hint: leave RESEARCH out: READ pages whose address you know, or ask the user to set up a search engine as `docs/research.md` says
    4 plans in a row were rejected; say what to do with `teddy plan '<message>'`
    turn 4 rejected
    plan.md:13: RESEARCH how: RESEARCH cannot search: `research.run` names no program
        hint: leave RESEARCH out: READ pages whose address you know, or ask the user to set up a search engine as `docs/research.md` says
    ");
}

#[test]
fn promise_a3_a_query_is_no_option_of_the_search_program() {
    let repo = project();
    set_up(&repo);
    let text = plan("Look", &[research(&["how", "--output=/x/y"])]);
    insta::assert_snapshot!(repo.workflow().execute_text(&text).refused(), @r"
    The plan was not accepted: 1 mistake
    plan.md:13: RESEARCH how: the query `--output=/x/y` starts with `-`, and the search program would read it as an option
        hint: start the query with a word
    no model is configured to correct the plan
    turn 1 rejected
    plan.md:13: RESEARCH how: the query `--output=/x/y` starts with `-`, and the search program would read it as an option
        hint: start the query with a word
    ");

    let text = plan("Look", &[research(&["how -x"])]);
    repo.workflow().execute_text(&text).done();
}

#[test]
fn promise_a3_the_prompt_speaks_of_research_as_soon_as_it_can_work() {
    let repo = project();
    let speaks = |file: &str| {
        std::fs::write(repo.beside("plan.md"), plan("Make", &[create(file, "x\n")])).unwrap();
        repo.workflow().plan_file(Some("go"), "plan.md").done();
        repo.workflow().execute().done();
        let prompt = repo.workflow().artifact("@", "system_prompt.xml");
        prompt.contains("### `RESEARCH`")
    };
    assert!(!speaks("b.txt"));
    set_up(&repo);
    assert!(speaks("c.txt"));
    assert!(repo.workflow().prompt("pathfinder").contains("RESEARCH"));
    repo.configure("");
    assert!(!repo.workflow().prompt("pathfinder").contains("RESEARCH"));
}

#[test]
fn promise_a3_a_comprehensive_plan_runs_with_a_search_command_of_three_lines() {
    let repo = TestRepo::new()
        .file(
            "prompts/pathfinder.xml",
            "<handoff_targets>\n  <agent>Architect</agent>\n  <agent>Debugger</agent>\n</handoff_targets>\n",
        )
        .file(
            ".teddy/memos.yaml",
            "- The 'Architect' agent is responsible for all handoffs.\n",
        );
    repo.commit("init");
    set_up(&repo);
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["prompts/pathfinder.xml"]);
    let text = include_str!("../../../fixtures/comprehensive.md");
    let out = repo.teddy_reads(&["execute", "-", "-y"], text);
    out.check(out.code, &["2 of 2 queries have results"]);
    let report = repo.workflow().artifact("1", "report.md");
    assert!(
        report.contains("On software development release manager responsibilities"),
        "{report}"
    );
    assert!(repo.read("prompts/pathfinder.xml").contains("Finisher"));
    assert!(
        repo.read("docs/briefs/01-finisher-agent-brief.md")
            .starts_with("# Brief: The \"Finisher\" Agent\n")
    );
    assert_eq!(
        repo.read(".teddy/memos.yaml"),
        "- A new 'Finisher' agent role is being explored.\n"
    );
}
