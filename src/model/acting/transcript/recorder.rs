//! Records the conversation with an agent as `transcript.jsonl`: without keys, lists of options and
//! repetitions, and bounded.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::host::clock;
use crate::model::ModelError;
use crate::model::acting::json_line::text_at;
use crate::model::acting::{
    AgentFailure, AgentResult, PermissionDecision, PermissionGiver, PermissionQuestion,
};
use crate::text::digest;
use crate::text::secret::{redact_values, replace_values};

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
pub(in crate::model::acting) enum Speaker {
    Agent,
    Teddy,
}

#[derive(Debug, Default)]
pub(in crate::model::acting) struct TranscriptRecorder {
    lines: Vec<u8>,
    /// Number of lines dropped because of `MAX_BYTES`.
    left_out: u64,
    /// Values to redact.
    pub(in crate::model::acting) secrets: Vec<String>,
    /// A part of a text, to which the next part is added.
    part: Option<(Speaker, Value)>,
    /// Names of long texts that were recorded already, by digest.
    names: BTreeMap<String, String>,
    /// Artifacts with the complete texts.
    texts: Vec<(String, Vec<u8>)>,
    texts_size: usize,
}

impl TranscriptRecorder {
    pub(in crate::model::acting) fn new(secrets: Vec<String>) -> TranscriptRecorder {
        TranscriptRecorder {
            secrets,
            ..TranscriptRecorder::default()
        }
    }

    /// Replaces the values of secrets in what an agent sent. The rest of TeDDy never sees them.
    pub(in crate::model::acting) fn redact(&self, message: &mut Value) {
        match message {
            Value::String(text) => {
                if let Cow::Owned(clean) = replace_values(text, &self.secrets()) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.redact(field)),
            _ => {}
        }
    }

    /// Replaces keys in a complete text, also those that came in pieces.
    pub(in crate::model::acting) fn redact_text(&self, text: &str) -> String {
        redact_values(text, &self.secrets()).into_owned()
    }

    fn secrets(&self) -> Vec<&str> {
        self.secrets.iter().map(String::as_str).collect()
    }

    /// Records a protocol message or any other JSON line.
    pub(in crate::model::acting) fn message(&mut self, from: Speaker, message: &Value) {
        let Some(mut message) = without_lists(message) else {
            return;
        };
        if self.joins(&message) {
            return;
        }
        self.flush();
        self.shorten(&mut message);
        match is_part(&message) {
            true => self.part = Some((from, message)),
            false => self.line(from, "message", message),
        }
    }

    /// Records a line that isn't JSON.
    pub(in crate::model::acting) fn text(&mut self, text: &str) {
        self.line(Speaker::Agent, "text", text.into());
    }

    /// Records the end of stderr.
    pub(in crate::model::acting) fn complaint(&mut self, text: &str) {
        if !text.is_empty() {
            self.line(Speaker::Agent, "complaint", text.into());
        }
    }

    /// Records a notice of ours that the agent doesn't get.
    pub(in crate::model::acting) fn note(&mut self, text: &str) {
        self.line(Speaker::Teddy, "note", text.into());
    }

    pub(in crate::model::acting) fn start(&mut self, argv: &[String], is_confined: bool) {
        let start = json!({ "run": argv, "confined": is_confined });
        self.line(Speaker::Teddy, "start", start);
    }

    /// Records a decision. `by` is `None` if an earlier "always" decided.
    pub(in crate::model::acting) fn permission(
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

    /// Moves what was recorded into the result.
    pub(in crate::model::acting) fn finish(
        mut self,
        mut work: AgentResult,
        outcome: Result<Option<String>, ModelError>,
    ) -> Result<AgentResult, Box<AgentFailure>> {
        self.flush();
        if self.left_out > 0 {
            let note = match self.left_out {
                1 => "1 line was left out".to_owned(),
                left_out => format!("{left_out} lines were left out"),
            };
            self.add("note", &note);
        }

        // Recorded beyond the limit as well: `transcript.md` takes the result from it.
        let end = json!({
            "message": work.message,
            "agent": work.agent.as_ref().map(|agent| [&agent.name, &agent.version]),
            "conversation": work.conversation,
            "resumed": work.resumed,
            "tokens": work.usage.is_known().then_some(work.usage),
            "cost": work.cost,
            "error": outcome.as_ref().err().map(ToString::to_string),
        });
        let end = self.entry(Speaker::Teddy, "end", end);
        self.lines.extend(end.as_bytes());
        work.transcript = self.lines;
        work.texts = self.texts;
        match outcome {
            Ok(stop) => Ok(AgentResult { stop, ..work }),
            Err(error) => {
                work.stop = Some("cancelled".to_owned());
                Err(Box::new(AgentFailure { error, work }))
            }
        }
    }

    /// Adds a part of a text to the one before. `false` if it does not continue it.
    fn joins(&mut self, message: &Value) -> bool {
        let Some((_, before)) = self.part.as_mut().filter(|_| is_part(message)) else {
            return false;
        };
        let same = ["/params/update/sessionUpdate", "/params/update/messageId"];
        if same
            .iter()
            .any(|key| before.pointer(key) != message.pointer(key))
        {
            return false;
        }
        let piece = message.pointer(PART_TEXT).and_then(Value::as_str);
        let Some(Value::String(text)) = before.pointer_mut(PART_TEXT) else {
            return false;
        };
        if text.len() > MAX_PART {
            return false;
        }
        text.push_str(piece.unwrap_or_default());
        true
    }

    fn flush(&mut self) {
        if let Some((from, message)) = self.part.take() {
            self.line(from, "message", message);
        }
    }

    /// Drops what is not text, and keeps one copy of each long text: its beginning and end.
    fn shorten(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let has_data = fields.contains_key("mimeType");
                fields.retain(|key, _| key != "_meta" && !(has_data && key == "data"));
                fields.values_mut().for_each(|value| self.shorten(value));
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.shorten(value)),
            Value::String(text) if text.len() > REPEATED_TEXT => {
                let id = digest(text);
                if let Some(name) = self.names.get(&id) {
                    *text = format!("[{name} again]");
                    return;
                }
                let mut name = format!("the text {id}");
                if text.len() > LONG_TEXT {
                    // A key that is cut in two would not be recognized later.
                    let clean = redact_values(text, &self.secrets()).into_owned();
                    name = self.keep(&clean).unwrap_or(name);
                    *text = head_and_tail(&clean, &name);
                }
                self.names.insert(id, name);
            }
            _ => {}
        }
    }

    /// Keeps a complete text as an artifact and returns its name. `None` beyond the limits.
    fn keep(&mut self, text: &str) -> Option<String> {
        let size = self.texts_size + text.len();
        if size > MAX_RECORD_BYTES || self.texts.len() >= MAX_TEXTS {
            return None;
        }
        self.texts_size = size;
        let artifact = format!("{TEXTS}{:02}", self.texts.len() + 1);
        let name = format!("`{artifact}`");
        self.texts.push((artifact, text.as_bytes().to_vec()));
        Some(name)
    }

    /// Appends a line within the limits.
    fn line(&mut self, from: Speaker, key: &str, value: Value) {
        self.flush();
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
        let line = entry.to_string();
        let clean = redact_values(&line, &self.secrets());
        if serde_json::from_str::<serde::de::IgnoredAny>(&clean).is_ok() {
            return format!("{clean}\n");
        }

        // A redacted key can extend beyond the end of a JSON string and break the syntax.
        let entry = json!({ "time": clock::stamp(), "from": from, "text": clean });
        format!("{entry}\n")
    }
}

/// Location of the text in a part of a message.
const PART_TEXT: &str = "/params/update/content/text";

/// Size at which no further part is added to a text.
const MAX_PART: usize = 64 << 10;

/// Texts from this size on are recorded once.
const REPEATED_TEXT: usize = 200;

/// Directory of the artifacts.
const TEXTS: &str = "texts/";

/// Number of texts that are kept as artifacts.
const MAX_TEXTS: usize = 1000;

/// Of a longer text, the lines have only the beginning and the end.
const LONG_TEXT: usize = 4 << 10;
const HEAD: usize = 2 << 10;
const TAIL: usize = 1 << 10;

/// Returns whether a message is a part of what the agent says or thinks.
fn is_part(message: &Value) -> bool {
    let kind = text_at(message, "/params/update/sessionUpdate");
    matches!(kind, "agent_message_chunk" | "agent_thought_chunk")
        && message.pointer(PART_TEXT).is_some_and(Value::is_string)
}

/// The beginning and the end of a long text, with its name.
fn head_and_tail(text: &str, name: &str) -> String {
    let boundary = |at: usize| (at..).find(|at| text.is_char_boundary(*at));
    let end = boundary(HEAD).unwrap_or(text.len());
    let start = boundary(text.len().saturating_sub(TAIL).max(end)).unwrap_or(text.len());
    format!(
        "{}\n[{} bytes of {name} left out]\n{}",
        &text[..end],
        start - end,
        &text[start..]
    )
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

    fn finished(messages: &[Value]) -> AgentResult {
        let mut record = TranscriptRecorder::default();
        for message in messages {
            record.message(Speaker::Agent, message);
        }
        let finished = record.finish(AgentResult::default(), Ok(None));
        finished.unwrap()
    }

    fn recorded(messages: &[Value]) -> Vec<Value> {
        let transcript = finished(messages).transcript;
        let lines = transcript
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let lines = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
        lines.filter(|line| line.get("end").is_none()).collect()
    }

    fn update(update: Value) -> Value {
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "update": update } })
    }

    #[test]
    fn parts_of_a_text_are_one_line() {
        let part = |kind: &str, text: &str| {
            update(json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } }))
        };
        let lines = recorded(&[
            part("agent_message_chunk", "a"),
            part("agent_message_chunk", "b"),
            part("agent_thought_chunk", "c"),
            update(json!({ "sessionUpdate": "plan" })),
            part("agent_thought_chunk", "d"),
        ]);
        let texts: Vec<&str> = lines
            .iter()
            .map(|line| text_at(line, "/message/params/update/content/text"))
            .collect();
        assert_eq!(texts, ["ab", "c", "", "d"]);
    }

    #[test]
    fn tr10_a_long_text_is_recorded_once_and_what_is_no_text_is_dropped() {
        let body = "é".repeat(5000);
        let tool = update(
            json!({ "sessionUpdate": "tool_call", "_meta": { "x": 1 }, "content": [
            { "type": "diff", "newText": body },
            { "content": { "type": "image", "mimeType": "image/png", "data": "AAAA" } },
        ] }),
        );
        let messages = [tool.clone(), tool];
        let lines = recorded(&messages);
        let text =
            |line: &Value| text_at(line, "/message/params/update/content/0/newText").to_owned();
        let (first, again) = (text(&lines[0]), text(&lines[1]));
        assert!(
            first.contains("[6928 bytes of `texts/01` left out]"),
            "{first}"
        );
        assert_eq!(again, "[`texts/01` again]");
        let texts = finished(&messages).texts;
        assert_eq!(texts, [("texts/01".to_owned(), body.into_bytes())]);
        let line = lines[0].to_string();
        assert!(!line.contains("_meta") && !line.contains("AAAA"), "{line}");
    }

    #[test]
    fn secrets_are_replaced_in_what_an_agent_sent() {
        let recorder = TranscriptRecorder::new(vec!["se\"cret-1".to_owned()]);
        let mut message = json!({ "error": { "message": "bad se\"cret-1" }, "id": "ghp_1" });
        recorder.redact(&mut message);
        assert_eq!(
            message,
            json!({ "error": { "message": "bad [redacted key]" }, "id": "ghp_1" })
        );
        assert_eq!(recorder.redact_text("se\"cret-1."), "[redacted key].");
    }

    /// The recorded line, without its time.
    fn recorded_line(message: &Value, secrets: &[&str]) -> Option<Value> {
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
            recorded_line(&answer, &[]).unwrap()["message"],
            json!({ "id": 1, "result": { "sessionId": "a", "modes": 2 } })
        );
        let update =
            json!({ "params": { "update": { "sessionUpdate": "available_commands_update" } } });
        assert_eq!(recorded_line(&update, &[]), None);
    }

    #[test]
    fn tr4_keys_are_taken_out() {
        let key = format!("sk-ant-{}", "a1B2".repeat(10));
        let got = recorded_line(
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
        let got = recorded_line(&json!(vec![1; 1 << 20]), &[]).unwrap();
        assert!(got["note"].as_str().unwrap().ends_with("bytes is left out"));
        let mut recorder = TranscriptRecorder::default();
        let long = "x".repeat(1 << 19);
        (0..100).for_each(|_| recorder.text(&long));
        assert!(recorder.lines.len() < MAX_RECORD_BYTES + MAX_RECORD_LINE);
        let work = recorder.finish(AgentResult::default(), Ok(None));
        let work = work.unwrap();
        let text = String::from_utf8(work.transcript).unwrap();
        assert!(text.contains("lines were left out"));
    }
}
