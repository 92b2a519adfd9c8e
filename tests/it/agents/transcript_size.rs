//! The size of a turn's transcript, with agents that report as much as Claude Code and Gemini CLI do.

use serde_json::{Value, json};

use crate::scripted_agent::use_scripted_agent;
use crate::support::TestRepo;

/// In bytes, of a turn.
const MAX_SIZE: usize = 100_000;

/// Lines of source code, different for each version.
fn body(version: usize) -> String {
    let line = |number| format!("    let value_{number} = compute(\"{version}\", {number})?;\n");
    (0..600).map(line).collect()
}

/// Output of a test run.
fn output(run: usize) -> String {
    let line = |number| format!("test module::case_{number} ... ok ({run}.{number} s)\n");
    (0..1000).map(line).collect()
}

/// The path of a file as the agent reports it.
const FILE: &str = "/work/project/src/lib.rs";

/// What an agent reports about one step of the feature: the call, its progress and its end.
type Step = [Value; 3];

fn step(number: usize, call: &Value, end: &Value) -> Step {
    let update = |kind: &str, status: &str, fields: &Value| {
        let mut update = fields.clone();
        update["sessionUpdate"] = kind.into();
        update["toolCallId"] = format!("toolu_{number}").into();
        update["status"] = status.into();
        update
    };
    [
        update("tool_call", "pending", call),
        update("tool_call_update", "in_progress", call),
        update("tool_call_update", "completed", end),
    ]
}

fn text(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

fn image(seed: usize) -> Value {
    let data = format!("iVBORw0KGgo{seed}").repeat(12_000);
    json!({ "type": "content", "content": { "type": "image", "mimeType": "image/png", "data": data } })
}

fn diff(old: &str, new: &str) -> Value {
    json!({ "type": "diff", "path": FILE, "oldText": old, "newText": new })
}

/// Claude repeats bodies in `_meta` and `rawOutput`.
fn like_claude(number: usize) -> Step {
    let (old, new) = (body(number - 1), body(number));
    let meta =
        |response: Value| json!({ "claudeCode": { "toolName": "X", "toolResponse": response } });
    match number % 5 {
        0 => step(
            number,
            &json!({ "title": "cargo test", "kind": "execute", "rawInput": { "command": "cargo test" } }),
            &json!({ "content": [text(&format!("```console\n{}```", output(number)))],
                     "rawOutput": output(number), "_meta": meta(json!({ "stdout": output(number) })) }),
        ),
        1 => step(
            number,
            &json!({ "title": "Read screenshot.png", "kind": "read", "rawInput": { "file_path": "s.png" } }),
            &json!({ "content": [image(number)], "_meta": meta(json!({ "file": { "base64": image(number) } })) }),
        ),
        2 => step(
            number,
            &json!({ "title": "Read src/lib.rs", "kind": "read", "rawInput": { "file_path": FILE } }),
            &json!({ "content": [text(&old)], "rawOutput": old, "_meta": meta(json!({ "file": { "content": old } })) }),
        ),
        _ => step(
            number,
            &json!({ "title": "Edit src/lib.rs", "kind": "edit", "content": [diff(&old, &new)],
                     "rawInput": { "file_path": FILE, "old_string": old, "new_string": new } }),
            &json!({ "content": [diff(&old, &new)],
                     "_meta": meta(json!({ "originalFile": old, "structuredPatch": [{ "lines": new.lines().collect::<Vec<_>>() }] })) }),
        ),
    }
}

/// Gemini sends both versions of a file with each call and each end.
fn like_gemini(number: usize) -> Step {
    let (old, new) = (body(number - 1), body(number));
    match number % 5 {
        0 => step(
            number,
            &json!({ "title": "cargo test", "kind": "execute", "content": [] }),
            &json!({ "content": [text(&output(number))] }),
        ),
        1 => step(
            number,
            &json!({ "title": "ReadFile screenshot.png", "kind": "read", "locations": [{ "path": "s.png" }] }),
            &json!({ "content": [image(number)] }),
        ),
        _ => step(
            number,
            &json!({ "title": "Edit src/lib.rs", "kind": "edit", "content": [diff(&old, &new)] }),
            &json!({ "content": [diff(&old, &new)], "locations": [{ "path": FILE }] }),
        ),
    }
}

/// Records a turn of fifteen such steps. Returns the sizes of what the agent sent and of the recorded
/// transcript.
fn sizes(report: fn(usize) -> Step) -> [usize; 2] {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    let line = |update: Value| {
        let params = json!({ "sessionId": "s-1", "update": update });
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string() + "\n"
    };
    let sent: String = (1..=15).flat_map(report).map(line).collect();
    use_scripted_agent(
        &repo,
        "cat \"${0%/*}/updates.jsonl\"; echo two > a.txt; message 'Done.'",
    );
    std::fs::write(repo.beside("agent/updates.jsonl"), &sent).unwrap();
    repo.done(&["new", "demo"]);
    repo.done(&["plan", "-m", "develop the feature"]);
    repo.done(&["execute", "-y"]);

    let show = |name: &str| repo.done(&["show", "@", name]);
    let recorded = [show("transcript.jsonl"), show("transcript.md")].concat();
    // The complete texts are next to it.
    assert!(
        recorded.contains("bytes of `texts/01` left out"),
        "{recorded}"
    );
    assert_eq!(show("texts/01").matches("compute").count(), 600);
    [sent.len(), recorded.len()]
}

/// Regression: the transcript had every copy of a body: 0.4 MB a turn of Claude, 1.4 MB of Gemini.
#[test]
fn a_transcript_of_fifteen_steps_has_at_most_100_kilobytes() {
    for report in [like_claude, like_gemini] {
        let [sent, recorded] = sizes(report);
        assert!(sent > 1_000_000, "{sent}");
        assert!(recorded <= MAX_SIZE, "{recorded}");
    }
}
