//! Message loop of the Agent Client Protocol.
//!
//! TeDDy has at most one request of its own in flight and handles the agent's messages while it
//! waits. It offers neither file access nor a terminal, so the agent does everything itself, inside
//! its sandbox.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::OpeningParams;
use crate::host::supervisor::CommandEnding;
use crate::model::acting::call::{AgentCall, AgentOutput, TICK};
use crate::model::acting::clock::AgentStop;
use crate::model::acting::json_line::text_at;
use crate::model::acting::transcript::Speaker;
use crate::model::acting::{
    ACP_VERSION, AgentProgress, PermissionDecision, PermissionGiver, PermissionQuestion,
};
use crate::text::foreign_json;

/// For the agent to stop after `session/cancel`.
const CANCEL: Duration = Duration::from_secs(3);

/// In characters, of a line that is not a valid message.
const MAX_JUNK: usize = 2000;

#[derive(Debug)]
pub(super) enum TalkError {
    Stop(AgentStop),
    /// The agent speaks no version of ours. `None` if it named none.
    Version(Option<u64>),
    /// The agent has exited.
    Over(CommandEnding),
    /// The agent answered with an error.
    Failed(RpcFailure),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TalkPhase {
    /// Messages count as the agent's work.
    Work,
    /// The agent replays an earlier conversation, which is ignored.
    Memory,
    /// The rest of its messages is ignored.
    Cancelled,
}

pub(super) struct Talk<'a> {
    pub(super) call: AgentCall<'a>,
    waiting: VecDeque<Incoming>,
    /// Kinds of tools that the user allowed for the rest of this call.
    allowed: BTreeSet<String>,
    /// `false` if the sandbox makes questions unnecessary; then TeDDy approves them all.
    asks_host: bool,
    is_confined: bool,
    next: u64,
    phase: TalkPhase,
}

impl<'a> Talk<'a> {
    pub(super) fn new(call: AgentCall<'a>, asks_host: bool, is_confined: bool) -> Talk<'a> {
        Talk {
            call,
            waiting: VecDeque::new(),
            allowed: BTreeSet::new(),
            asks_host,
            is_confined,
            next: 0,
            phase: TalkPhase::Work,
        }
    }

    pub(super) fn ask(&mut self, method: &str, params: Value) -> Result<Value, TalkError> {
        let request = request(self.next, method, params);
        self.call.record.message(Speaker::Teddy, &request);
        self.ask_unrecorded(&request)
    }

    /// Records the request without the keys of MCP servers.
    pub(super) fn ask_to_open(
        &mut self,
        method: &str,
        params: OpeningParams,
    ) -> Result<Value, TalkError> {
        let recorded = request(self.next, method, params.recorded);
        self.call.record.message(Speaker::Teddy, &recorded);
        self.ask_unrecorded(&request(self.next, method, params.sent))
    }

    /// Ignores the old conversation that the agent replays.
    pub(super) fn ask_memory(
        &mut self,
        method: &str,
        params: OpeningParams,
    ) -> Result<Value, TalkError> {
        self.phase = TalkPhase::Memory;
        let answer = self.ask_to_open(method, params);
        self.phase = TalkPhase::Work;
        answer
    }

    /// Waits until the agent is done.
    pub(super) fn prompt(&mut self, conversation: &str, text: &str) -> Result<Value, TalkError> {
        self.call.work.begin_prompt();
        // The turn already stores the text.
        let recorded = json!({ "sessionId": conversation, "prompt": "the text of the turn" });
        let recorded = request(self.next, "session/prompt", recorded);
        self.call.record.message(Speaker::Teddy, &recorded);

        let parts = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": conversation, "prompt": parts });
        self.ask_unrecorded(&request(self.next, "session/prompt", params))
    }

    /// For the transcript and the user.
    pub(super) fn note(&mut self, note: &str) {
        self.call.record.note(note);
        self.call.host.progress(AgentProgress::Note(note));
    }

    /// For the transcript and the user.
    pub(super) fn stopped_early(&mut self, reason: &str) {
        self.call
            .record
            .note(&format!("the agent stopped early: {reason}"));
        self.call.host.progress(AgentProgress::StoppedEarly(reason));
    }

    /// Waits up to `CANCEL`, ignoring everything that the agent sends.
    pub(super) fn cancel(&mut self, conversation: &str) {
        let notification = notification("session/cancel", json!({ "sessionId": conversation }));
        self.send(&notification);
        self.phase = TalkPhase::Cancelled;

        // The answer to the pending prompt means that the agent has stopped.
        let last = self.next.saturating_sub(1);
        let deadline = Instant::now() + CANCEL;
        while let Some(remaining) = deadline.checked_duration_since(Instant::now()) {
            let Ok(incoming) = self.recv(remaining.min(TICK)) else {
                return;
            };
            match incoming {
                Some(Incoming::Answer { id, .. }) if id == last => return,
                Some(incoming) => self.take(incoming),
                None => {}
            }
        }
    }

    fn ask_unrecorded(&mut self, request: &Value) -> Result<Value, TalkError> {
        let own = self.next;
        self.next += 1;
        self.call.dialogue.send(line(request));

        loop {
            self.check()?;
            match self.recv(TICK)? {
                Some(Incoming::Answer { id, outcome }) if id == own => {
                    return outcome.map_err(TalkError::Failed);
                }
                Some(incoming) => self.take(incoming),
                None => self.call.report_idle(),
            }
        }
    }

    fn check(&mut self) -> Result<(), TalkError> {
        self.call.clock.has_tool = self.call.work.has_tool;
        self.call.check().map_err(TalkError::Stop)
    }

    fn recv(&mut self, limit: Duration) -> Result<Option<Incoming>, TalkError> {
        if let Some(incoming) = self.waiting.pop_front() {
            return Ok(Some(incoming));
        }

        match self.call.next_output(limit).map_err(TalkError::Stop)? {
            AgentOutput::Lines(lines) => {
                if lines.is_empty() {
                    self.call.clock.record_activity();
                }
                lines.iter().for_each(|line| self.read(line));
            }
            // Output on stderr doesn't prove progress.
            AgentOutput::Stderr | AgentOutput::Timeout => {}
            AgentOutput::Ended(ending) => return Err(TalkError::Over(ending)),
        }

        Ok(self.waiting.pop_front())
    }

    /// Records invalid lines as text.
    fn read(&mut self, line: &[u8]) {
        let mut message: Option<Value> = foreign_json::parse(line).ok();
        if let Some(message) = &mut message {
            self.call.record.redact(message);
        }
        // Codex sends this each minute while it cannot reach its server.
        let kind = "/params/update/sessionUpdate";
        if message.as_ref().map(|it| text_at(it, kind)) != Some("session_info_update") {
            self.call.clock.record_activity();
        }
        let incoming = message.as_ref().and_then(Incoming::read);
        match (message, incoming) {
            (Some(message), Some(incoming)) => {
                if self.phase == TalkPhase::Work {
                    self.call.record.message(Speaker::Agent, &message);
                }
                self.waiting.push_back(incoming);
            }
            _ if self.phase == TalkPhase::Work => {
                // Before it is cut: a part of a key would not be recognized.
                let line = self.call.record.redact_text(&String::from_utf8_lossy(line));
                let start: String = line.chars().take(MAX_JUNK).collect();
                self.call.record.text(&start);
            }
            _ => {}
        }
    }

    fn take(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Request { id, method, params } if method == "session/request_permission" => {
                self.permit(&id, &params);
            }
            // Without an answer, the agent would wait forever.
            Incoming::Request { id, method, .. } => self.send(&no_method(&id, &method)),
            Incoming::Notification { method, params } if method == "session/update" => {
                if let (TalkPhase::Work, Some(update)) = (self.phase, params.get("update")) {
                    self.call.work.update(update, self.call.host);
                }
            }
            Incoming::Notification { .. } | Incoming::Answer { .. } => {}
        }
    }

    fn permit(&mut self, id: &Value, params: &Value) {
        let question = self.call.work.question(params, self.is_confined);
        let (decision, by) = self.decide(&question);
        self.call.record.permission(&question, decision, by);

        let options = params.get("options").and_then(Value::as_array);
        let option = options.and_then(|options| choose(options, decision));
        let outcome = match option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        self.send(&answer(id, json!({ "outcome": outcome })));
    }

    /// Asks the host unless the sandbox or an earlier "always" answers the question.
    fn decide(
        &mut self,
        question: &PermissionQuestion,
    ) -> (PermissionDecision, Option<PermissionGiver>) {
        if self.phase == TalkPhase::Cancelled || self.call.host.stopped() {
            return (PermissionDecision::Cancelled, None);
        }

        if !self.asks_host {
            return (PermissionDecision::Once, Some(PermissionGiver::Sandbox));
        }

        if self.allowed.contains(&question.kind) {
            return (PermissionDecision::Once, None);
        }

        let host = &mut *self.call.host;
        let answer = self.call.clock.waiting(|| host.permission(question));
        // The user cancelled everything while the question was open, which approves nothing.
        if self.call.host.stopped() {
            return (PermissionDecision::Cancelled, Some(answer.by));
        }

        if answer.decision == PermissionDecision::Always && !question.kind.is_empty() {
            self.allowed.insert(question.kind.clone());
        }
        (answer.decision, Some(answer.by))
    }

    fn send(&mut self, message: &Value) {
        self.call.record.message(Speaker::Teddy, message);
        self.call.dialogue.send(line(message));
    }
}

fn choose(options: &[Value], decision: PermissionDecision) -> Option<&Value> {
    let kinds: &[&str] = match decision {
        // `allow_once` even for `Always`: TeDDy remembers the decision for this call, but the agent
        // would write it into its settings.
        PermissionDecision::Once | PermissionDecision::Always => &["allow_once", "allow_always"],
        PermissionDecision::No => &["reject_once", "reject_always"],
        PermissionDecision::Cancelled => &[],
    };
    let of_kind = |kind: &&str| {
        let option = options
            .iter()
            .find(|option| text_at(option, "/kind") == *kind);
        option?.get("optionId")
    };
    kinds.iter().find_map(of_kind)
}

// JSON-RPC 2.0 messages, one object per line. Everything that an agent sends is optional here: agents
// deviate from the protocol.

/// "Method not found".
pub(super) const NO_METHOD: i64 = -32601;
/// "Authentication required" of the Agent Client Protocol.
pub(super) const NOT_LOGGED_IN: i64 = -32000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Incoming {
    Answer {
        id: u64,
        outcome: Result<Value, RpcFailure>,
    },
    /// Must be answered.
    Request {
        /// Echoed in our answer. Can be a number or a string.
        id: Value,
        method: String,
        params: Value,
    },
    /// Needs no answer.
    Notification {
        method: String,
        /// `null` if the message has none.
        params: Value,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RpcFailure {
    pub(super) code: i64,
    pub(super) message: String,
}

impl Incoming {
    /// `None` if it is neither a request, a notification nor an answer to one of our requests.
    pub(super) fn read(message: &Value) -> Option<Incoming> {
        let params = || message.get("params").cloned().unwrap_or_default();
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id")) {
            (Some(method), Some(id)) if !id.is_null() => Some(Incoming::Request {
                id: id.clone(),
                method: method.to_owned(),
                params: params(),
            }),
            (Some(method), _) => Some(Incoming::Notification {
                method: method.to_owned(),
                params: params(),
            }),
            (None, Some(id)) => Some(Incoming::Answer {
                id: id.as_u64()?,
                outcome: outcome(message),
            }),
            (None, None) => None,
        }
    }
}

fn outcome(message: &Value) -> Result<Value, RpcFailure> {
    let Some(error) = message.get("error").filter(|error| !error.is_null()) else {
        return Ok(message.get("result").cloned().unwrap_or_default());
    };
    let text = error.get("message").and_then(Value::as_str);
    // Some agents put only `Internal error` in `message` and the reason in `data`.
    let detail = ["/data/details", "/data/message", "/data"]
        .iter()
        .find_map(|pointer| error.pointer(pointer)?.as_str());
    let parts: Vec<&str> = text.into_iter().chain(detail).collect();

    Err(RpcFailure {
        code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
        message: parts.join(": "),
    })
}

pub(in crate::model::acting) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Parameters of the first request of a conversation.
pub(in crate::model::acting) fn initialize_params() -> Value {
    json!({
        "protocolVersion": ACP_VERSION,
        "clientCapabilities": {
            // If offered, only some agents would use these. Without them, all agents work with
            // their own tools: in the worktree, inside the sandbox.
            "fs": { "readTextFile": false, "writeTextFile": false },
            "terminal": false,
        },
        "clientInfo": { "name": "teddy", "title": "TeDDy", "version": env!("CARGO_PKG_VERSION") },
    })
}

pub(super) fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

pub(super) fn answer(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(super) fn no_method(id: &Value, method: &str) -> Value {
    let error = json!({ "code": NO_METHOD, "message": format!("no method `{method}`") });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

pub(super) fn line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Incoming>) {
        let message: Value = serde_json::from_str(text).unwrap();
        assert_eq!(Incoming::read(&message), expected, "{text}");
    }

    #[test]
    fn the_three_forms_are_told_apart() {
        let answered = |outcome| Some(Incoming::Answer { id: 1, outcome });
        check(
            r#"{"id":1,"result":{"a":2}}"#,
            answered(Ok(json!({ "a": 2 }))),
        );
        check(r#"{"id":1}"#, answered(Ok(Value::Null)));
        check(
            r#"{"id":"x","method":"m","params":[1]}"#,
            Some(Incoming::Request {
                id: "x".into(),
                method: "m".into(),
                params: json!([1]),
            }),
        );
        check(
            r#"{"method":"m"}"#,
            Some(Incoming::Notification {
                method: "m".into(),
                params: Value::Null,
            }),
        );
    }

    #[test]
    fn what_is_none_is_junk() {
        check("{}", None);
        check("[1]", None);
        check("3", None);
        check(r#"{"id":"not ours","result":1}"#, None);
    }

    #[test]
    fn an_error_has_its_reason() {
        let failed = |text: &str| match Incoming::read(&serde_json::from_str(text).unwrap()) {
            Some(Incoming::Answer { outcome, .. }) => outcome.unwrap_err(),
            other => panic!("{other:?}"),
        };
        let error = failed(
            r#"{"id":1,"error":{"code":-32603,"message":"Internal error","data":{"details":"no key"}}}"#,
        );
        assert_eq!(
            (error.code, error.message.as_str()),
            (-32603, "Internal error: no key")
        );
        assert_eq!(failed(r#"{"id":1,"error":7}"#), RpcFailure::default());
    }
}
