//! Whole turns of the program with real servers, from `new` to `replay`.

use std::time::Instant;

use serde_json::{Value, json};

use crate::support::TestRepo;
use crate::{BOUND, KEY, LITELLM, LLAMA, base};

/// Short, because a small model on two cores reads slowly.
const SCRIBE: &str = "<scribe><title>Write down</title>You write down what the user says, as a plan that makes one file.</scribe>\n";

/// A project whose session uses its own agent and one model with these settings.
fn project(settings: &Value) -> TestRepo {
    let repo = TestRepo::new()
        .file("README.md", "# Cats\n")
        .file(".teddy/prompts/scribe.xml", SCRIBE);
    repo.commit("init");
    repo.configure(&json!({ "model": "real", "models": { "real": settings } }).to_string());
    repo.done(&["trust", "-y"]);
    repo.done(&["new", "cats", "-a", "scribe"]);
    repo
}

/// Plans a turn, and executes it with this exit code. Returns the JSON of `plan` and `log`.
fn turn(repo: &TestRepo, exit: i32) -> (Value, Value) {
    let start = Instant::now();
    let planned = repo.json(&["plan", "-m", "A cat purrs."], 0);
    eprintln!("planned in {:?}: {planned}", start.elapsed());
    let executed = repo.json(&["execute", "-y"], exit);
    assert_eq!(
        (&executed["status"], &executed["synced"]),
        (&"executed".into(), &true.into()),
        "{executed}"
    );
    let log = repo.json(&["log"], 0);
    assert_eq!(
        (&log[0]["title"], &log[0]["model"]),
        (&planned["title"], &"real".into()),
        "{log}"
    );
    (planned, log)
}

/// Runs a turn with SmolLM2 and a grammar that only allows a plan which creates `notes.md`.
fn check(kind: &str, server: &str, extra: &Value) {
    let repo = project(&json!({
        "kind": kind, "id": "smollm2", "base_url": format!("{}/v1", base(server)), "max_tokens": 400, "temperature": 0.2,
        "timeout": 1200, "first_byte_timeout": 600, "extra": extra,
    }));
    let (planned, log) = turn(&repo, 0);
    assert!(
        planned["tokens_in"].as_u64() > Some(100) && planned["tokens_out"].as_u64() > Some(50),
        "{planned}"
    );
    assert_eq!(log[0]["files"], json!(["notes.md"]), "{log}");
    assert_eq!(
        repo.git(&["show", "teddy/sessions/cats^2:notes.md"]) + "\n",
        repo.read("notes.md")
    );
    repo.teddy(&["verify", "--rerun", "@", "-y"])
        .check(0, &["turn 1 same"]);
}

#[test]
fn a_whole_turn_runs_on_a_real_model_that_gets_a_grammar_with_the_request() {
    check(
        "openai",
        LLAMA,
        &json!({ "grammar": include_str!("plan.gbnf") }),
    );
}

#[test]
fn a_whole_turn_runs_on_a_real_model_through_the_messages_protocol() {
    check("anthropic", BOUND, &json!({}));
}

#[test]
fn a_whole_turn_runs_through_the_proxy_in_both_protocols() {
    for (kind, id) in [("openai", "mock-openai"), ("anthropic", "bridge")] {
        let base = format!("{}/v1", base(LITELLM));
        let repo = project(
            &json!({ "kind": kind, "id": id, "base_url": base, "api_key_command": ["echo", KEY] }),
        );
        // The plan asks a question.
        let (planned, _) = turn(&repo, 5);
        assert_eq!(planned["title"], "A canned plan", "{planned}");
        repo.teddy(&["resume", "--yolo", "-m", "again"])
            .check(5, &["turn 2 executed", "the model waits for your answer"]);
    }
}
