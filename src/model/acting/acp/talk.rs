//! Message loop of the Agent Client Protocol.
//!
//! TeDDy has at most one request of its own in flight and handles the agent's messages while it
//! waits. It offers neither file access nor a terminal, so the agent does everything itself, inside
//! its sandbox.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::OpeningParams;
use super::message::{self, Incoming, RpcFailure};
use crate::host::dialogue::{Dialogue, DialogueEnding, DialogueEvent};
use crate::model::TokenUsage;
use crate::model::acting::agent::AgentSettings;
use crate::model::acting::agent_output::Complaints;
use crate::model::acting::agent_output::LineSplitter;
use crate::model::acting::agent_output::{sanitize_command, sanitize_label};
use crate::model::acting::clock::{AgentClock, AgentStop};
use crate::model::acting::facts::{MAX_MESSAGE, bound};
use crate::model::acting::json_line::text_at;
use crate::model::acting::transcript::{Speaker, TranscriptRecorder, exit_code, output_of};
use crate::model::acting::{
    AgentHost, AgentPlanEntry, AgentProgress, ContextUse, ConversationTotals, PermissionDecision,
    PermissionGiver, PermissionQuestion, ToolStatus, ToolUse,
};
use crate::text::sanitize::strip_ansi;

const TICK: Duration = Duration::from_millis(50);

/// For the agent to stop after `session/cancel`.
const CANCEL: Duration = Duration::from_secs(3);

/// In characters, of a line that is not a valid message.
const MAX_JUNK: usize = 2000;

#[derive(Debug)]
pub(super) enum TalkError {
    Stop(AgentStop),
    /// A line exceeds `MAX_LINE`.
    Line,
    /// The agent has exited.
    Over(DialogueEnding),
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
    dialogue: Dialogue,
    pub(super) host: &'a mut dyn AgentHost,
    pub(super) record: TranscriptRecorder,
    clock: AgentClock,
    pub(super) work: WorkState<'a>,
    pub(super) complaints: Complaints,
    lines: LineSplitter,
    waiting: VecDeque<Incoming>,
    /// Kinds of tools that the user allowed for the rest of this call.
    allowed: BTreeSet<String>,
    /// `false` if the sandbox makes questions unnecessary; then TeDDy approves them all.
    pub(super) asks_host: bool,
    pub(super) is_confined: bool,
    next: u64,
    phase: TalkPhase,
}

impl<'a> Talk<'a> {
    pub(super) fn new(
        dialogue: Dialogue,
        host: &'a mut dyn AgentHost,
        clock: AgentClock,
        record: TranscriptRecorder,
    ) -> Talk<'a> {
        Talk {
            complaints: Complaints::new(record.secrets.clone()),
            dialogue,
            host,
            record,
            clock,
            work: WorkState::default(),
            lines: LineSplitter::default(),
            waiting: VecDeque::new(),
            allowed: BTreeSet::new(),
            asks_host: true,
            is_confined: false,
            next: 0,
            phase: TalkPhase::Work,
        }
    }

    pub(super) fn ask(&mut self, method: &str, params: Value) -> Result<Value, TalkError> {
        let request = message::request(self.next, method, params);
        self.record.message(Speaker::Teddy, &request);
        self.ask_unrecorded(&request)
    }

    /// Records the request without the keys of MCP servers.
    pub(super) fn ask_to_open(
        &mut self,
        method: &str,
        params: OpeningParams,
    ) -> Result<Value, TalkError> {
        let recorded = message::request(self.next, method, params.recorded);
        self.record.message(Speaker::Teddy, &recorded);
        self.ask_unrecorded(&message::request(self.next, method, params.sent))
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
        self.work.begin_prompt();
        // The turn already stores the text.
        let recorded = json!({ "sessionId": conversation, "prompt": "the text of the turn" });
        let recorded = message::request(self.next, "session/prompt", recorded);
        self.record.message(Speaker::Teddy, &recorded);

        let parts = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": conversation, "prompt": parts });
        self.ask_unrecorded(&message::request(self.next, "session/prompt", params))
    }

    /// Waits up to `CANCEL`, ignoring everything that the agent sends.
    pub(super) fn cancel(&mut self, conversation: &str) {
        let notification =
            message::notification("session/cancel", json!({ "sessionId": conversation }));
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

    /// Ends all processes. Returns those that survived, and the transcript.
    pub(super) fn end(mut self, is_well: bool) -> (Vec<String>, TranscriptRecorder) {
        let ended = if is_well {
            self.dialogue.finish()
        } else {
            self.dialogue.end()
        };
        self.complaints.add(&ended.stderr);
        self.record.complaint(&self.complaints.text());
        (ended.survivors, self.record)
    }

    fn ask_unrecorded(&mut self, request: &Value) -> Result<Value, TalkError> {
        let own = self.next;
        self.next += 1;
        self.dialogue.send(message::line(request));

        loop {
            self.check()?;
            match self.recv(TICK)? {
                Some(Incoming::Answer { id, outcome }) if id == own => {
                    return outcome.map_err(TalkError::Failed);
                }
                Some(incoming) => self.take(incoming),
                None => {
                    let idle = self.clock.idle_time();
                    self.host.progress(AgentProgress::Idle(idle));
                }
            }
        }
    }

    fn check(&mut self) -> Result<(), TalkError> {
        if self.host.stopped() {
            return Err(TalkError::Stop(AgentStop::Cancelled));
        }

        self.clock.has_tool = self.work.has_tool;
        self.clock
            .exceeded()
            .map_or(Ok(()), |stop| Err(TalkError::Stop(stop)))
    }

    fn recv(&mut self, limit: Duration) -> Result<Option<Incoming>, TalkError> {
        if let Some(incoming) = self.waiting.pop_front() {
            return Ok(Some(incoming));
        }

        match self.dialogue.next_event(limit) {
            DialogueEvent::Stdout(bytes) => {
                self.clock.record_stdout(bytes.len());
                let lines = self.lines.add(&bytes).map_err(|_| TalkError::Line)?;
                lines.iter().for_each(|line| self.read(line));
            }
            DialogueEvent::Stderr(bytes) => {
                // Output on stderr doesn't prove progress.
                self.clock.record_stderr(bytes.len());
                self.complaints.add(&bytes);
            }
            DialogueEvent::Timeout => {}
            DialogueEvent::Ended(ending) => {
                // Handle the agent's last messages before its exit.
                let last_line = self.lines.take();
                last_line.iter().for_each(|line| self.read(line));
                if self.waiting.is_empty() {
                    return Err(TalkError::Over(ending));
                }
            }
        }

        Ok(self.waiting.pop_front())
    }

    /// Records invalid lines as text.
    fn read(&mut self, line: &[u8]) {
        let mut message: Option<Value> = serde_json::from_slice(line).ok();
        if let Some(message) = &mut message {
            self.record.redact(message);
        }
        let incoming = message.as_ref().and_then(Incoming::read);
        match (message, incoming) {
            (Some(message), Some(incoming)) => {
                if self.phase == TalkPhase::Work {
                    self.record.message(Speaker::Agent, &message);
                }
                self.waiting.push_back(incoming);
            }
            _ if self.phase == TalkPhase::Work => {
                let line = String::from_utf8_lossy(line);
                let start: String = line.chars().take(MAX_JUNK).collect();
                self.record.text(&start);
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
            Incoming::Request { id, method, .. } => self.send(&message::no_method(&id, &method)),
            Incoming::Notification { method, params } if method == "session/update" => {
                if let (TalkPhase::Work, Some(update)) = (self.phase, params.get("update")) {
                    self.work.update(update, self.host);
                }
            }
            Incoming::Notification { .. } | Incoming::Answer { .. } => {}
        }
    }

    fn permit(&mut self, id: &Value, params: &Value) {
        let question = PermissionQuestion {
            is_confined: self.is_confined,
            ..self.work.question(params)
        };
        let (decision, by) = self.decide(&question);
        self.record.permission(&question, decision, by);

        let options = params.get("options").and_then(Value::as_array);
        let option = options.and_then(|options| choose(options, decision));
        let outcome = match option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        self.send(&message::answer(id, json!({ "outcome": outcome })));
    }

    /// Asks the host unless the sandbox or an earlier "always" answers the question.
    fn decide(
        &mut self,
        question: &PermissionQuestion,
    ) -> (PermissionDecision, Option<PermissionGiver>) {
        if self.phase == TalkPhase::Cancelled || self.host.stopped() {
            return (PermissionDecision::Cancelled, None);
        }

        if !self.asks_host {
            return (PermissionDecision::Once, Some(PermissionGiver::Sandbox));
        }

        if self.allowed.contains(&question.kind) {
            return (PermissionDecision::Once, None);
        }

        let host = &mut *self.host;
        let answer = self.clock.waiting(|| host.permission(question));
        // The user cancelled everything while the question was open, which approves nothing.
        if self.host.stopped() {
            return (PermissionDecision::Cancelled, Some(answer.by));
        }

        if answer.decision == PermissionDecision::Always && !question.kind.is_empty() {
            self.allowed.insert(question.kind.clone());
        }
        (answer.decision, Some(answer.by))
    }

    fn send(&mut self, message: &Value) {
        self.record.message(Speaker::Teddy, message);
        self.dialogue.send(message::line(message));
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

// Tracks an agent's work from its `session/update` messages. Unknown updates are ignored. None of
// this proves what the agent changed; only the files do.

const MAX_TOOLS: usize = 10_000;

const MAX_STEPS: usize = 100;

const MAX_PATHS: usize = 10;

#[derive(Debug, Default)]
pub(in crate::model::acting) struct WorkState<'a> {
    /// The last message.
    pub(super) message: String,
    /// `true` after a tool use or a thought: the next text starts a new message.
    is_ended: bool,
    /// The agent's id of the message. Empty if it has none.
    message_id: String,
    /// Tools by id.
    tools: HashMap<String, ToolUse>,
    /// A running tool can be silent for long.
    pub(super) has_tool: bool,
    pub(super) usage: TokenUsage,
    /// Cost in US dollars, as reported.
    cost: Option<f64>,
    /// Totals of the resumed conversation before this call. `None` in a new one.
    pub(super) earlier: Option<ConversationTotals>,
    /// Says what reported numbers cover.
    pub(super) agent: Option<&'a AgentSettings>,
}

impl WorkState<'_> {
    pub(super) fn begin_prompt(&mut self) {
        *self = WorkState {
            earlier: self.earlier,
            agent: self.agent,
            ..WorkState::default()
        };
    }

    /// Usage of this call and of the whole conversation.
    pub(super) fn usage_of_call(&self) -> (TokenUsage, Option<f64>, ConversationTotals) {
        match self.agent {
            Some(agent) => agent.usage_of_call(self.usage, self.cost, self.earlier.as_ref()),
            None => (self.usage, self.cost, ConversationTotals::default()),
        }
    }

    pub(in crate::model::acting) fn update(&mut self, update: &Value, host: &mut dyn AgentHost) {
        let kind = text_at(update, "/sessionUpdate");
        self.has_tool = false;
        match kind {
            "agent_message_chunk" => {
                let id = text_at(update, "/messageId");
                self.is_ended |= id != self.message_id;
                self.message_id = id.to_owned();
                self.append_text(text_at(update, "/content/text"), host);
            }
            "agent_thought_chunk" => {
                self.is_ended = true;
                host.progress(AgentProgress::Thinks(text_at(update, "/content/text")));
            }
            "tool_call" | "tool_call_update" => {
                self.is_ended = true;
                let tool = self.tool(update);
                self.has_tool = matches!(tool.status, ToolStatus::Pending | ToolStatus::Running);
                host.progress(AgentProgress::Tool(&tool));
            }
            "plan" => host.progress(AgentProgress::Plan(&plan_entries(update))),
            "usage_update" => {
                let cost = update.pointer("/cost/amount").and_then(Value::as_f64);
                // A negative or infinite cost would break the budget.
                let cost = cost.filter(|cost| cost.is_finite() && *cost >= 0.0);
                self.cost = cost.or(self.cost);
                let (usage, cost, _) = self.usage_of_call();
                let number = |key: &str| update[key].as_u64();
                let context = number("used").zip(number("size"));
                let context = context.map(|(used, size)| ContextUse { used, size });
                host.progress(AgentProgress::Used {
                    usage,
                    cost,
                    context,
                });
            }
            _ => {}
        }
    }

    /// From the answer to `session/prompt`.
    pub(super) fn used(&mut self, end: &Value) {
        let usage = token_usage(end);
        if usage.is_known() {
            self.usage = usage;
        }
    }

    pub(super) fn question(&mut self, params: &Value) -> PermissionQuestion {
        let call = params.get("toolCall").unwrap_or(&Value::Null);
        let tool = self.tool(call);
        let command = ["/rawInput/command", "/rawInput/cmd"]
            .iter()
            .find_map(|pointer| call.pointer(pointer).and_then(command_text));
        let arguments = call.pointer("/rawInput/args").and_then(command_text);
        let command = match (command, arguments) {
            (Some(command), Some(arguments)) => Some(format!("{command} {arguments}")),
            (command, arguments) => command.or(arguments),
        };
        let paths = call.get("locations").and_then(Value::as_array);
        let paths = paths.into_iter().flatten().take(MAX_PATHS);
        let paths = paths.map(|location| text_at(location, "/path").to_owned());
        let command = command.map(|command| sanitize_command(&command));
        let paths = paths.map(|path| sanitize_label(&path));
        let detail = command.into_iter().chain(paths);

        PermissionQuestion {
            title: tool.title,
            kind: tool.kind,
            is_confined: false,
            detail: detail.filter(|text| !text.is_empty()).collect(),
        }
    }

    fn append_text(&mut self, piece: &str, host: &mut dyn AgentHost) {
        if std::mem::take(&mut self.is_ended) && !piece.trim().is_empty() {
            self.message.clear();
        }
        if self.message.len() < MAX_MESSAGE {
            self.message.push_str(piece);
            bound(&mut self.message);
        }
        host.progress(AgentProgress::Says(piece));
    }

    /// Agents send only the fields that changed.
    fn tool(&mut self, update: &Value) -> ToolUse {
        let id = sanitize_label(text_at(update, "/toolCallId"));
        let mut tool = self.tools.get(&id).cloned().unwrap_or_default();
        tool.id.clone_from(&id);
        for (pointer, field) in [("/title", &mut tool.title), ("/kind", &mut tool.kind)] {
            let text = text_at(update, pointer);
            if !text.is_empty() {
                *field = sanitize_label(text);
            }
        }

        tool.status = match text_at(update, "/status") {
            "pending" => ToolStatus::Pending,
            "in_progress" => ToolStatus::Running,
            "completed" => ToolStatus::Completed,
            "failed" | "denied" => ToolStatus::Failed,
            _ => tool.status,
        };
        // The title of a read names the file, and its result is only the first line of it.
        let output = output_of(update);
        let line = output.lines().find(|line| !line.trim().is_empty());
        if let Some(line) = line.filter(|_| tool.kind != "read") {
            tool.result = sanitize_label(&strip_ansi(line));
        }
        tool.exit_code = exit_code(update).or(tool.exit_code);
        // An agent can invent any number of ids.
        if self.tools.len() < MAX_TOOLS || self.tools.contains_key(&id) {
            self.tools.insert(id, tool.clone());
        }

        tool
    }
}

/// Agents send a string or a list.
fn command_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let args: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            Some(args.join(" "))
        }
        _ => None,
    }
}

fn plan_entries(update: &Value) -> Vec<AgentPlanEntry> {
    let entries = update.get("entries").and_then(Value::as_array);
    let entries = entries.into_iter().flatten().take(MAX_STEPS);
    let step = |entry: &Value| AgentPlanEntry {
        text: sanitize_label(text_at(entry, "/content")),
        status: sanitize_label(text_at(entry, "/status")),
    };
    entries.map(step).collect()
}

fn token_usage(end: &Value) -> TokenUsage {
    let number = |pointer: &str| end.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let quota = "/_meta/quota/token_count";
    let input = number("/usage/inputTokens").max(number(&format!("{quota}/input_tokens")));
    let output = number("/usage/outputTokens").max(number(&format!("{quota}/output_tokens")));
    let thought = number("/usage/thoughtTokens");
    let cached = number("/usage/cachedReadTokens");
    let cache_written = number("/usage/cachedWriteTokens");
    let total = number("/usage/totalTokens");

    // Some agents include cached and reasoning tokens in the input and output counts, others report
    // them separately. The total shows which.
    let with_cache = input.saturating_add(cached).saturating_add(cache_written);
    let is_apart = total >= with_cache.saturating_add(output) && total > 0;
    let input = if is_apart { with_cache } else { input };
    let is_thought_apart =
        total > 0 && total >= input.saturating_add(output).saturating_add(thought);

    TokenUsage {
        input,
        output: output + if is_thought_apart { thought } else { 0 },
        cached,
        cache_written,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::acting::PermissionAnswer;

    #[derive(Default)]
    struct RecordingHost(Vec<String>);

    impl AgentHost for RecordingHost {
        fn progress(&mut self, progress: AgentProgress<'_>) {
            self.0.push(format!("{progress:?}"));
        }

        fn permission(&mut self, _: &PermissionQuestion) -> PermissionAnswer {
            panic!("nobody asks")
        }

        fn stopped(&self) -> bool {
            false
        }
    }

    fn after(updates: &[Value]) -> WorkState<'static> {
        let (mut work, mut host) = (WorkState::default(), RecordingHost::default());
        updates
            .iter()
            .for_each(|update| work.update(update, &mut host));
        work
    }

    fn piece(text: &str) -> Value {
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })
    }

    fn tool(status: &str) -> Value {
        json!({ "sessionUpdate": "tool_call", "toolCallId": "1", "title": "Edit a", "kind": "edit", "status": status })
    }

    #[test]
    fn the_last_message_is_what_came_behind_the_last_tool() {
        let work = after(&[
            piece("I will."),
            tool("completed"),
            piece("Do"),
            piece("ne."),
        ]);
        assert_eq!(work.message, "Done.");
        assert_eq!(
            after(&[piece("I will."), tool("completed")]).message,
            "I will."
        );
    }

    #[test]
    fn messages_are_not_glued_together() {
        let thought =
            json!({ "sessionUpdate": "agent_thought_chunk", "content": { "text": "Hm" } });
        assert_eq!(
            after(&[piece("One."), thought, piece("Two.")]).message,
            "Two."
        );
        let named = |id: &str, text: &str| {
            let mut piece = piece(text);
            piece["messageId"] = id.into();
            piece
        };
        let work = after(&[named("1", "One."), named("2", "Tw"), named("2", "o.")]);
        assert_eq!(work.message, "Two.");
    }

    #[test]
    fn a_tool_at_work_may_be_silent() {
        assert!(after(&[tool("in_progress")]).has_tool);
        assert!(!after(&[tool("in_progress"), tool("completed")]).has_tool);
        assert!(!after(&[tool("in_progress"), piece("a")]).has_tool);
    }

    #[test]
    fn what_is_unknown_or_broken_is_passed_over() {
        let work = after(&[
            json!(3),
            json!({ "sessionUpdate": "new" }),
            piece("a"),
            tool("x"),
        ]);
        assert_eq!(work.message, "a");
    }

    #[test]
    fn a_question_shows_what_was_told_before() {
        let mut work = after(&[tool("pending")]);
        let question = work.question(&json!({ "toolCall": {
            "toolCallId": "1", "rawInput": { "command": ["rm", "\u{1b}[2J"] }, "locations": [{ "path": "/w/a" }],
        } }));
        assert_eq!(
            (
                question.title.as_str(),
                question.kind.as_str(),
                question.detail
            ),
            (
                "Edit a",
                "edit",
                vec!["rm \\u{1b}[2J".to_owned(), "/w/a".to_owned()]
            )
        );
    }

    #[test]
    fn tokens_from_a_cache_are_counted_once() {
        let used = |usage: Value| {
            let usage = super::token_usage(&json!({ "usage": usage }));
            (usage.input, usage.output)
        };
        let separate = json!({ "inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 100, "totalTokens": 115 });
        assert_eq!(used(separate), (110, 5));
        let included = json!({ "inputTokens": 110, "outputTokens": 5, "cachedReadTokens": 100, "totalTokens": 115 });
        assert_eq!(used(included), (110, 5));
        let quota = json!({ "_meta": { "quota": { "token_count": { "input_tokens": 7, "output_tokens": 2 } } } });
        assert_eq!(super::token_usage(&quota).input, 7);
    }
}
