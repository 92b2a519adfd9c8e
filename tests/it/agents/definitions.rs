//! Agents selected by name. A trusted project can replace the built-in ones.

use crate::support::TestRepo;

/// A project with its own definition of the built-in assistant.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n").file(
        ".teddy/prompts/assistant.xml",
        "<title>Ours</title> {{agent}}\n",
    );
    repo.commit("init");
    repo
}

/// Returns the system prompt of the next turn.
fn prompt(repo: &TestRepo, session: &str) -> String {
    repo.git(&[
        "show",
        &format!("teddy/sessions/{session}:next/system_prompt.xml"),
    ])
}

#[test]
fn a_prompt_of_the_repository_takes_trust() {
    let repo = project();
    repo.done(&["new", "before", "-a", "assistant"]);
    assert!(prompt(&repo, "before").contains("<role>"));
    repo.done(&["trust", "-y"]);
    repo.done(&["new", "after", "-a", "ASSISTANT"]);
    assert_eq!(prompt(&repo, "after"), "<title>Ours</title> Assistant");
    assert_eq!(
        repo.done(&["get-prompt", "Assistant"]),
        "<title>Ours</title> Assistant\n"
    );
    repo.write(".teddy/prompts/assistant.xml", "<title>Theirs</title>\n");
    assert!(repo.done(&["get-prompt", "assistant"]).contains("<role>"));
}

#[test]
fn an_unknown_agent_lists_those_that_there_are() {
    let repo = project();
    let words = [
        "there is no agent `poet`; available: architect, assistant, debugger, developer, pathfinder, prototyper",
    ];
    repo.teddy(&["new", "x", "-a", "poet"]).check(1, &words);
    repo.reply("none");
    repo.teddy(&["start", "--name", "x", "-a", "poet", "-m", "hi"])
        .check(1, &words);
    assert_eq!(
        repo.json(&["sessions"], 0).as_array().map(Vec::len),
        Some(0)
    );
}

#[test]
fn promise_c4_an_agent_that_lacks_trust_is_named_as_such() {
    let repo = TestRepo::new().file(".teddy/prompts/poet.xml", "<title>Ours</title>\n");
    repo.commit("init");
    let words = [
        "the agent `poet` is not trusted: only this repository has it, in `.teddy/prompts/poet.xml`",
        "hint: `teddy trust` shows it",
    ];
    repo.teddy(&["new", "x", "-a", "Poet"]).check(1, &words);
    repo.teddy(&["get-prompt", "poet"]).check(1, &words);
    repo.done(&["new", "x"]);
    let text = crate::plans::plan(
        "Go",
        &["### `INVOKE`\n- **Agent:** Poet\n\nWrite.\n".to_owned()],
    );
    insta::assert_snapshot!(repo.teddy_reads(&["execute", "-", "-y"], &text).shown(&repo), @"
    turn 1 rejected [id]
    --- stderr
    The plan was not accepted: 1 mistake
    plan.md:13: INVOKE Poet: the agent `Poet` of this repository is not trusted; the user can trust it with `teddy trust`
        hint: the agents are `architect`, `assistant`, `debugger`, `developer`, `pathfinder`, `prototyper`
    `teddy show 1 report.md` says what is wrong.
    exit code 3
    ");
    repo.done(&["trust", "-y"]);
    repo.done(&["new", "y", "-a", "poet"]);
    repo.run_plan(&text);
}
