//! Writes `transcript.jsonl` while an agent works. See docs/formats/transcript.md.

use serde_json::{Value, json};

use super::{AgentResult, PermissionDecision, PermissionGiver, PermissionQuestion};
use crate::host::clock;
use crate::text::redaction::redact_values;

/// Maximum length of a line in bytes.
const MAX_RECORD_LINE: usize = 1 << 20;
/// Maximum size of the transcript in bytes.
const MAX_RECORD_BYTES: usize = 32 << 20;
/// Lists dropped from messages: long and irrelevant to the work.
const DROPPED_LISTS: [&str; 4] = [
    "models",
    "availableModels",
    "availableCommands",
    "configOptions",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    Agent,
    Teddy,
}

#[derive(Debug, Default)]
pub(super) struct TranscriptRecorder {
    lines: Vec<u8>,
    /// Number of lines dropped because of `MAX_BYTES`.
    left_out: u64,
    /// Values to redact.
    secrets: Vec<String>,
}

impl TranscriptRecorder {
    pub(super) fn new(secrets: Vec<String>) -> TranscriptRecorder {
        TranscriptRecorder {
            secrets,
            ..TranscriptRecorder::default()
        }
    }

    /// Records a protocol message or any other JSON line.
    pub(super) fn message(&mut self, from: Speaker, message: &Value) {
        if let Some(message) = without_lists(message) {
            self.line(from, "message", message);
        }
    }

    /// Records a line that isn't JSON.
    pub(super) fn text(&mut self, text: &str) {
        self.line(Speaker::Agent, "text", text.into());
    }

    /// Records the end of stderr.
    pub(super) fn complaint(&mut self, text: &str) {
        if !text.is_empty() {
            self.line(Speaker::Agent, "complaint", text.into());
        }
    }

    /// Records a notice of ours that the agent doesn't get.
    pub(super) fn note(&mut self, text: &str) {
        self.line(Speaker::Teddy, "note", text.into());
    }

    pub(super) fn start(&mut self, argv: &[String], is_confined: bool) {
        let start = json!({ "run": argv, "confined": is_confined });
        self.line(Speaker::Teddy, "start", start);
    }

    /// Records a decision. `by` is `None` if an earlier "always" decided.
    pub(super) fn permission(
        &mut self,
        question: &PermissionQuestion,
        decision: PermissionDecision,
        by: Option<PermissionGiver>,
    ) {
        let decision = match decision {
            PermissionDecision::Once => "once",
            PermissionDecision::Always => "always",
            PermissionDecision::No => "no",
            PermissionDecision::Cancelled => "cancelled",
        };
        let by = match by {
            Some(PermissionGiver::Person) => "person",
            Some(PermissionGiver::Sandbox) => "sandbox",
            Some(PermissionGiver::Beforehand) => "beforehand",
            Some(PermissionGiver::Nobody) => "nobody",
            None => "earlier answer",
        };
        let answer = json!({
            "title": question.title,
            "kind": question.kind,
            "detail": question.detail,
            "decision": decision,
            "by": by,
        });
        self.line(Speaker::Teddy, "permission", answer);
    }

    pub(super) fn finish(mut self, work: &AgentResult, error: Option<String>) -> Vec<u8> {
        if self.left_out > 0 {
            let left_out = self.left_out;
            self.add("note", &format!("{left_out} lines were left out"));
        }

        // Recorded beyond the limit as well: `transcript.md` takes the result from it.
        let end = json!({
            "message": work.message,
            "agent": work.agent.as_ref().map(|agent| [&agent.name, &agent.version]),
            "conversation": work.conversation,
            "resumed": work.resumed,
            "tokens": work.usage.is_known().then_some(work.usage),
            "cost": work.cost,
            "error": error,
        });
        let end = self.entry(Speaker::Teddy, "end", end);
        self.lines.extend(end.as_bytes());
        self.lines
    }

    /// Appends a line within the limits.
    fn line(&mut self, from: Speaker, key: &str, value: Value) {
        if self.lines.len() > MAX_RECORD_BYTES {
            self.left_out += 1;
            return;
        }

        let entry = self.entry(from, key, value);
        if entry.len() > MAX_RECORD_LINE {
            let size = entry.len();
            self.add("note", &format!("a line of {size} bytes is left out"));
        } else {
            self.lines.extend(entry.as_bytes());
        }
    }

    /// Appends a note regardless of the limits.
    fn add(&mut self, key: &str, text: &str) {
        let entry = self.entry(Speaker::Teddy, key, text.into());
        self.lines.extend(entry.as_bytes());
    }

    /// Formats a line and redacts keys in it.
    fn entry(&self, from: Speaker, key: &str, value: Value) -> String {
        let from = match from {
            Speaker::Agent => "agent",
            Speaker::Teddy => "teddy",
        };
        let entry = json!({ "time": clock::stamp(), "from": from, key: value });
        let secrets: Vec<&str> = self.secrets.iter().map(String::as_str).collect();
        let line = entry.to_string();
        let clean = redact_values(&line, &secrets).text;
        if serde_json::from_str::<serde::de::IgnoredAny>(&clean).is_ok() {
            return format!("{clean}\n");
        }

        // A redacted key can extend beyond the end of a JSON string and break the syntax.
        let entry = json!({ "time": clock::stamp(), "from": from, "text": clean });
        format!("{entry}\n")
    }
}

/// Removes long lists from a message. `None` if it consists of one.
fn without_lists(message: &Value) -> Option<Value> {
    let kind = message
        .pointer("/params/update/sessionUpdate")
        .and_then(Value::as_str);
    if matches!(
        kind,
        Some("available_commands_update" | "config_option_update")
    ) {
        return None;
    }

    let mut message = message.clone();
    for pointer in ["/result", "/params/update"] {
        if let Some(Value::Object(fields)) = message.pointer_mut(pointer) {
            DROPPED_LISTS
                .iter()
                .for_each(|list| drop(fields.remove(*list)));
        }
    }
    Some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The recorded line, without its time.
    fn recorded(message: &Value, secrets: &[&str]) -> Option<Value> {
        let secrets = secrets.iter().map(|value| (*value).to_owned()).collect();
        let mut recorder = TranscriptRecorder::new(secrets);
        recorder.message(Speaker::Agent, message);
        let mut line: Value = serde_json::from_slice(&recorder.lines).ok()?;
        line.as_object_mut()?.remove("time");
        Some(line)
    }

    #[test]
    fn tr3_lists_of_models_and_commands_are_dropped() {
        let answer = json!({ "id": 1, "result": { "sessionId": "a", "models": [1], "modes": 2 } });
        assert_eq!(
            recorded(&answer, &[]).unwrap()["message"],
            json!({ "id": 1, "result": { "sessionId": "a", "modes": 2 } })
        );
        let update =
            json!({ "params": { "update": { "sessionUpdate": "available_commands_update" } } });
        assert_eq!(recorded(&update, &[]), None);
    }

    #[test]
    fn tr4_keys_are_taken_out() {
        let key = format!("sk-ant-{}", "a1B2".repeat(10));
        let got = recorded(
            &json!({ "a": key, "b": "my-own-secret" }),
            &["my-own-secret"],
        );
        assert_eq!(
            got.unwrap()["message"],
            json!({ "a": "[redacted anthropic key]", "b": "[redacted key]" })
        );
    }

    #[test]
    fn tr5_a_line_that_is_too_long_is_counted_only() {
        let got = recorded(&json!("x".repeat(2 << 20)), &[]).unwrap();
        assert!(got["note"].as_str().unwrap().ends_with("bytes is left out"));
        let mut recorder = TranscriptRecorder::default();
        let long = "x".repeat(1 << 19);
        (0..100).for_each(|_| recorder.text(&long));
        assert!(recorder.lines.len() < MAX_RECORD_BYTES + MAX_RECORD_LINE);
        let text = String::from_utf8(recorder.finish(&AgentResult::default(), None)).unwrap();
        assert!(text.contains("lines were left out"));
    }
}
