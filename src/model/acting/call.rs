//! A running agent: its process, its limits, and the work that its `session/update` messages
//! report.
//!
//! Unknown updates are ignored. None of them proves what the agent changed; only the files do.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use super::agent::AgentSettings;
use super::agent_output::{LineSplitter, sanitize_command, sanitize_label, sanitize_title};
use super::clock::{AgentClock, AgentStop, check_survivors};
use super::facts::{MAX_MESSAGE, bound};
use super::json_line::text_at;
use super::transcript::{TranscriptRecorder, exit_code, output_of};
use super::{
    AgentFailure, AgentHost, AgentPlanEntry, AgentProgress, AgentResult, AgentTask, ContextUse,
    ConversationTotals, PermissionQuestion, ProposedText, ToolStatus, ToolUse,
};
use crate::host::dialogue::{Dialogue, DialogueEvent};
use crate::host::supervisor::CommandEnding;
use crate::model::job::Complaints;
use crate::model::{MOST_TOKENS, ModelError, TokenUsage};
use crate::text::sanitize::strip_ansi;

/// How long to wait for output before the limits are checked again.
pub(super) const TICK: Duration = Duration::from_millis(50);

pub(super) struct AgentCall<'a> {
    pub(super) dialogue: Dialogue,
    pub(super) host: &'a mut dyn AgentHost,
    pub(super) clock: AgentClock,
    pub(super) record: TranscriptRecorder,
    pub(super) work: WorkState<'a>,
    pub(super) complaints: Complaints,
    lines: LineSplitter,
}

pub(super) enum AgentOutput {
    /// Complete lines of stdout. Empty if only a part of one arrived.
    Lines(Vec<Vec<u8>>),
    Stderr,
    Timeout,
    /// All lines were returned before.
    Ended(CommandEnding),
}

impl<'a> AgentCall<'a> {
    /// `secrets` are redacted from what is recorded.
    pub(super) fn new(
        agent: &'a AgentSettings,
        task: &AgentTask<'_>,
        dialogue: Dialogue,
        host: &'a mut dyn AgentHost,
        secrets: Vec<String>,
    ) -> AgentCall<'a> {
        let mut record = TranscriptRecorder::new(secrets.clone());
        record.start(&agent.run, task.is_confined);
        AgentCall {
            dialogue,
            host,
            clock: AgentClock::new(task.limits),
            record,
            work: WorkState::new(agent),
            complaints: Complaints::new(secrets),
            lines: LineSplitter::default(),
        }
    }

    pub(super) fn check(&mut self) -> Result<(), AgentStop> {
        if self.host.stopped() {
            return Err(AgentStop::Cancelled);
        }
        self.clock.exceeded().map_or(Ok(()), Err)
    }

    /// Waits up to `limit`. The caller decides what counts as activity.
    pub(super) fn next_output(&mut self, limit: Duration) -> Result<AgentOutput, AgentStop> {
        Ok(match self.dialogue.next_event(limit) {
            DialogueEvent::Stdout(bytes) => {
                self.clock.record_output(bytes.len());
                AgentOutput::Lines(self.lines.add(&bytes)?)
            }
            DialogueEvent::Stderr(bytes) => {
                self.clock.record_output(bytes.len());
                self.complaints.add(&bytes);
                AgentOutput::Stderr
            }
            DialogueEvent::Timeout => AgentOutput::Timeout,
            DialogueEvent::Ended(ending) => match self.lines.take() {
                Some(last) => AgentOutput::Lines(vec![last]),
                None => AgentOutput::Ended(ending),
            },
        })
    }

    pub(super) fn report_idle(&mut self) {
        let idle = self.clock.idle_time();
        self.host.progress(AgentProgress::Idle(idle));
    }

    /// Ends all processes, and completes the result.
    pub(super) fn end(
        mut self,
        outcome: Result<Option<String>, ModelError>,
        result: AgentResult,
    ) -> Result<AgentResult, Box<AgentFailure>> {
        let (usage, cost, totals) = self.work.usage_of_call();
        let ended = match &outcome {
            Ok(_) => self.dialogue.finish(),
            Err(_) => self.dialogue.end(),
        };
        self.complaints.add(&ended.stderr);
        self.record.complaint(&self.complaints.text());
        let result = AgentResult {
            usage,
            cost,
            totals,
            ..result
        };
        // A survivor can still change files, which spoils even a successful run.
        let outcome = check_survivors(&ended.survivors).and(outcome);
        self.record.finish(result, outcome)
    }
}

const MAX_TOOLS: usize = 10_000;

const MAX_STEPS: usize = 100;

const MAX_PATHS: usize = 10;

#[derive(Debug, Default)]
pub(super) struct WorkState<'a> {
    pub(super) message: String,
    /// `true` after a tool use or a thought: the next text starts a new message.
    is_ended: bool,
    /// The agent's id of the message. Empty if it has none.
    message_id: String,
    tools: HashMap<String, ReportedTool>,
    /// The latest tool call without an id, or beyond `MAX_TOOLS`.
    unlisted: ReportedTool,
    /// A running tool can be silent for long.
    pub(super) has_tool: bool,
    pub(super) usage: TokenUsage,
    /// Cost in US dollars, as reported.
    pub(super) cost: Option<f64>,
    /// Totals of the resumed conversation before this call. `None` in a new one.
    earlier: Option<ConversationTotals>,
    /// Determines what reported numbers cover.
    agent: Option<&'a AgentSettings>,
}

/// A tool call, as reported so far.
#[derive(Debug, Default)]
struct ReportedTool {
    tool_use: ToolUse,
    title: String,
    command: Option<String>,
    paths: Vec<String>,
    differences: Vec<ProposedText>,
    /// Files that it would write, without their texts.
    unshown: Vec<String>,
}

impl<'a> WorkState<'a> {
    pub(super) fn new(agent: &'a AgentSettings) -> WorkState<'a> {
        WorkState {
            agent: Some(agent),
            ..WorkState::default()
        }
    }

    /// The task's conversation is resumed.
    pub(super) fn count_on(&mut self, task: &AgentTask<'_>) {
        let earlier = task.conversation.as_ref().zip(self.agent);
        self.earlier = earlier.map(|(earlier, agent)| agent.totals_before(earlier));
    }

    pub(super) fn begin_prompt(&mut self) {
        *self = WorkState {
            earlier: self.earlier,
            agent: self.agent,
            ..WorkState::default()
        };
    }

    pub(super) fn usage_of_call(&self) -> (TokenUsage, Option<f64>, ConversationTotals) {
        match self.agent {
            Some(agent) => agent.usage_of_call(self.usage, self.cost, self.earlier.as_ref()),
            None => (self.usage, self.cost, ConversationTotals::default()),
        }
    }

    pub(super) fn update(&mut self, update: &Value, host: &mut dyn AgentHost) {
        let kind = text_at(update, "/sessionUpdate");
        match kind {
            "agent_message_chunk" => {
                self.has_tool = false;
                let id = text_at(update, "/messageId");
                self.is_ended |= id != self.message_id;
                self.message_id = id.to_owned();
                self.append_text(text_at(update, "/content/text"), host);
            }
            "agent_thought_chunk" => {
                self.is_ended = true;
                self.has_tool = false;
                host.progress(AgentProgress::Thinks(text_at(update, "/content/text")));
            }
            "tool_call" | "tool_call_update" => {
                self.is_ended = true;
                let tool = &self.tool(update).tool_use;
                host.progress(AgentProgress::Tool(tool));
                self.has_tool = matches!(tool.status, ToolStatus::Pending | ToolStatus::Running);
            }
            "plan" => host.progress(AgentProgress::Plan(&plan_entries(update))),
            "usage_update" => {
                let cost = update.pointer("/cost/amount").and_then(Value::as_f64);
                // A negative or infinite cost would break the budget, and others are not dollars.
                let is_dollars = ["", "USD"].contains(&text_at(update, "/cost/currency"));
                let cost = cost.filter(|cost| cost.is_finite() && *cost >= 0.0 && is_dollars);
                self.cost = cost.or(self.cost);
                let number = |key: &str| update[key].as_u64();
                let context = number("used").zip(number("size"));
                let context = context.map(|(used, size)| ContextUse { used, size });
                self.report_usage(context, host);
            }
            _ => {}
        }
    }

    pub(super) fn report_usage(&self, context: Option<ContextUse>, host: &mut dyn AgentHost) {
        let (usage, cost, _) = self.usage_of_call();
        host.progress(AgentProgress::Used {
            usage,
            cost,
            context,
        });
    }

    /// From the answer to `session/prompt`.
    pub(super) fn used(&mut self, end: &Value) {
        let usage = token_usage(end);
        if usage.is_known() {
            self.usage = usage;
        }
    }

    /// Some agents report the command only when they announce the tool call, not with the question.
    pub(super) fn question(&mut self, params: &Value, is_confined: bool) -> PermissionQuestion {
        let call = params.get("toolCall").unwrap_or(&Value::Null);
        let tool = self.tool(call);
        let parts = call.get("content").and_then(Value::as_array);
        let texts = parts.into_iter().flatten().filter_map(explanation);
        let detail = tool.command.iter().chain(&tool.paths).chain(&tool.unshown);
        let detail = detail.cloned().chain(texts);

        PermissionQuestion {
            tool: tool.tool_use.id.clone(),
            title: tool.title.clone(),
            kind: tool.tool_use.kind.clone(),
            detail: detail.filter(|text| !text.is_empty()).collect(),
            differences: tool.differences.clone(),
            is_confined,
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

    fn tool(&mut self, update: &Value) -> &ReportedTool {
        let id = sanitize_label(text_at(update, "/toolCallId"));
        // An agent can invent any number of ids. Calls without one are different calls.
        let is_listed = self.tools.len() < MAX_TOOLS || self.tools.contains_key(&id);
        let tool = match is_listed && !id.is_empty() {
            true => self.tools.entry(id.clone()).or_default(),
            false => {
                self.unlisted = ReportedTool::default();
                &mut self.unlisted
            }
        };
        tool.tool_use.id = id;
        tool.update(update);
        tool
    }
}

impl ReportedTool {
    /// Agents send only the fields that changed.
    fn update(&mut self, update: &Value) {
        let title = text_at(update, "/title");
        if !title.is_empty() {
            self.tool_use.title = sanitize_title(title);
            self.title = sanitize_command(title);
        }
        let kind = text_at(update, "/kind");
        if !kind.is_empty() {
            self.tool_use.kind = sanitize_label(kind);
        }
        self.tool_use.status = match text_at(update, "/status") {
            "pending" => ToolStatus::Pending,
            "in_progress" => ToolStatus::Running,
            "completed" => ToolStatus::Completed,
            "failed" | "denied" => ToolStatus::Failed,
            _ => self.tool_use.status,
        };
        // The title of a read names the file, and its result is only the first line of it.
        let output = output_of(update);
        // Claude puts output in a code block.
        let is_text = |line: &&str| !line.trim().is_empty() && !line.starts_with("```");
        let line = output.lines().find(is_text);
        if let Some(line) = line.filter(|_| self.tool_use.kind != "read") {
            self.tool_use.result = sanitize_label(&strip_ansi(line));
        }
        self.tool_use.exit_code = exit_code(update).or(self.tool_use.exit_code);
        self.update_request(update);
    }

    /// What the tool would do.
    fn update_request(&mut self, update: &Value) {
        if matches!(
            self.tool_use.status,
            ToolStatus::Completed | ToolStatus::Failed
        ) {
            // No question about it follows, and texts of files can be long.
            (self.command, self.paths) = Default::default();
            (self.differences, self.unshown) = Default::default();
            return;
        }

        let command = ["/rawInput/command", "/rawInput/cmd"]
            .iter()
            .find_map(|pointer| update.pointer(pointer).and_then(command_text));
        let arguments = update.pointer("/rawInput/args").and_then(command_text);
        let command = match (command, arguments) {
            (Some(command), Some(arguments)) => Some(format!("{command} {arguments}")),
            (command, arguments) => command.or(arguments),
        };
        if let Some(command) = command {
            self.command = Some(sanitize_command(&command));
        }
        if let Some(paths) = update.get("locations").and_then(Value::as_array) {
            let paths = paths.iter().map(|location| text_at(location, "/path"));
            self.paths = listed(paths.map(sanitize_label).collect());
        }
        if let Some(parts) = update.get("content").and_then(Value::as_array) {
            self.update_differences(parts);
        }
    }

    fn update_differences(&mut self, parts: &[Value]) {
        let parts = parts.iter().filter(|part| text_at(part, "/type") == "diff");
        let (mut differences, mut unshown) = (Vec::new(), Vec::new());
        for part in parts {
            match proposed_text(part).filter(|_| differences.len() < MAX_PATHS) {
                Some(difference) => differences.push(difference),
                None => {
                    let path = sanitize_label(text_at(part, "/path"));
                    unshown.push(format!("{path} (its text is not shown)"));
                }
            }
        }
        if !differences.is_empty() || !unshown.is_empty() {
            (self.differences, self.unshown) = (differences, listed(unshown));
        }
    }
}

/// Cuts a list of paths, and says so.
fn listed(mut paths: Vec<String>) -> Vec<String> {
    let more = paths.len().saturating_sub(MAX_PATHS);
    if more > 0 {
        paths.truncate(MAX_PATHS);
        paths.push(format!("and {more} more"));
    }
    paths
}

/// The text in a part of a permission request, without a code block around it.
fn explanation(part: &Value) -> Option<String> {
    let text = text_at(part, "/content/text").trim();
    let code = text.strip_prefix("```").and_then(|code| {
        let (_, code) = code.strip_suffix("```")?.split_once('\n')?;
        Some(code)
    });
    let text = sanitize_command(code.unwrap_or(text));
    (!text.is_empty()).then_some(text)
}

/// The difference in a part of a tool call. `None` if there is none, if it is too long, or if its path
/// is not displayed unchanged.
fn proposed_text(part: &Value) -> Option<ProposedText> {
    let text = |key: &str| part[key].as_str().filter(|text| text.len() <= MAX_MESSAGE);
    let old = match &part["oldText"] {
        Value::Null => None,
        _ => Some(text("oldText")?.to_owned()),
    };
    let path = text_at(part, "/path").to_owned();
    if path != sanitize_label(&path) {
        // An editor would take it for another file.
        return None;
    }
    Some(ProposedText {
        path,
        old,
        new: text("newText")?.to_owned(),
    })
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
    let number = |pointer: &str| {
        let tokens = end.pointer(pointer).and_then(Value::as_u64);
        tokens.map_or(0, |tokens| tokens.min(MOST_TOKENS))
    };
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
            panic!("unexpected permission request")
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
    fn the_last_message_is_the_text_after_the_last_tool() {
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
    fn messages_stay_separate() {
        let thought =
            json!({ "sessionUpdate": "agent_thought_chunk", "content": { "text": "Hm" } });
        assert_eq!(
            after(&[piece("One."), thought, piece("Two.")]).message,
            "Two."
        );
        let with_id = |id: &str, text: &str| {
            let mut piece = piece(text);
            piece["messageId"] = id.into();
            piece
        };
        let work = after(&[with_id("1", "One."), with_id("2", "Tw"), with_id("2", "o.")]);
        assert_eq!(work.message, "Two.");
    }

    /// Regression: an editor took a truncated path for another file, and then the question named no
    /// file.
    #[test]
    fn a_difference_needs_a_path_that_is_displayed_unchanged() {
        let part = |path: &str| json!({ "type": "diff", "path": path, "newText": "x" });
        let long = format!("/{}", "a".repeat(400));
        let parts = ["/work/a b", &long, "/work/a\u{202e}", " /work/a"].map(part);
        let call = json!({ "toolCall": { "toolCallId": "1", "content": parts } });
        let question = WorkState::default().question(&call, true);
        let paths = question.differences.iter().map(|it| it.path.as_str());
        assert_eq!(paths.collect::<Vec<_>>(), ["/work/a b"]);
        let unshown = ["/work/a\\u{202e}", "/work/a"];
        let unshown = unshown.map(|path| format!("{path} (its text is not shown)"));
        assert!(question.detail[0].starts_with("/aaa"), "{question:?}");
        assert_eq!(question.detail[1..], unshown);
    }

    #[test]
    fn a_question_says_how_many_files_it_leaves_out() {
        let paths = (0..12).map(|number| format!("/w/{number}"));
        let locations: Vec<Value> = paths.clone().map(|path| json!({ "path": path })).collect();
        let parts = paths.map(|path| json!({ "type": "diff", "path": path, "newText": "x" }));
        let parts: Vec<Value> = parts.collect();
        let call = json!({ "toolCall": { "locations": locations, "content": parts } });
        let question = WorkState::default().question(&call, true);
        assert_eq!(question.differences.len(), 10);
        let unshown = [
            "and 2 more",
            "/w/10 (its text is not shown)",
            "/w/11 (its text is not shown)",
        ];
        assert_eq!(question.detail[10..], unshown);
    }

    #[test]
    fn a_running_tool_can_be_silent() {
        assert!(after(&[tool("in_progress")]).has_tool);
        assert!(!after(&[tool("in_progress"), tool("completed")]).has_tool);
        assert!(!after(&[tool("in_progress"), piece("a")]).has_tool);
        let other = json!({ "sessionUpdate": "usage_update" });
        assert!(after(&[tool("in_progress"), other]).has_tool);
    }

    /// Regression: an amount of euros was taken for dollars.
    #[test]
    fn a_cost_is_in_dollars() {
        let cost =
            |cost: Value| after(&[json!({ "sessionUpdate": "usage_update", "cost": cost })]).cost;
        assert_eq!(cost(json!({ "amount": 0.5, "currency": "USD" })), Some(0.5));
        assert_eq!(cost(json!({ "amount": 0.5 })), Some(0.5));
        assert_eq!(cost(json!({ "amount": 0.5, "currency": "EUR" })), None);
    }

    #[test]
    fn the_result_of_a_tool_is_its_first_line_of_text() {
        let mut work = after(&[tool("in_progress")]);
        let mut end = tool("completed");
        end["content"] = json!([{ "content": { "text": "```console\n2 passed\n```" } }]);
        assert_eq!(work.tool(&end).tool_use.result, "2 passed");
    }

    #[test]
    fn unknown_and_invalid_updates_are_ignored() {
        let work = after(&[
            json!(3),
            json!({ "sessionUpdate": "new" }),
            piece("a"),
            tool("x"),
        ]);
        assert_eq!(work.message, "a");
    }

    #[test]
    fn a_question_shows_the_tool_call_reported_before() {
        let mut work = after(&[tool("pending")]);
        let question = work.question(&json!({ "toolCall": {
            "toolCallId": "1", "rawInput": { "command": ["rm", "\u{1b}[2J"] }, "locations": [{ "path": "/w/a" }],
            "content": [{ "type": "diff", "path": "/w/a", "oldText": null, "newText": "a\n" }, { "newText": 3 }],
        } }), true);
        let difference = ProposedText {
            path: "/w/a".to_owned(),
            old: None,
            new: "a\n".to_owned(),
        };
        assert_eq!(
            (question.tool.as_str(), &question.differences),
            ("1", &vec![difference])
        );
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

    /// Regression: the command was on one line, with `\u{a}` in it.
    #[test]
    fn a_question_keeps_the_lines_of_a_command() {
        let command = "cd web\r\nnpm test\n\u{1b}[2J";
        let call =
            json!({ "toolCallId": "1", "title": command, "rawInput": { "command": command } });
        let mut work = WorkState::default();
        let question = work.question(&json!({ "toolCall": call }), false);
        assert_eq!(question.title, "cd web\nnpm test\n\\u{1b}[2J");
        assert_eq!(question.detail, [question.title]);
        assert_eq!(
            work.tool(&call).tool_use.title,
            "cd web ↵ npm test ↵ \\u{1b}[2J"
        );
    }

    /// Regression: a question showed only what its own message repeated of the tool call.
    #[test]
    fn a_question_shows_the_command_reported_before() {
        let mut before = tool("pending");
        before["rawInput"] = json!({ "command": "bash", "args": ["-lc", "rm a\nrm b"] });
        before["locations"] = json!([{ "path": "/w/a" }]);
        before["content"] = json!([{ "type": "diff", "path": "/w/a", "newText": "a\n" }]);
        let update =
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "rawInput": {} });
        let mut work = after(&[before, update]);
        let asked = |work: &mut WorkState<'_>, call: Value| {
            let question = work.question(&json!({ "toolCall": call }), true);
            (question.title, question.detail, question.differences.len())
        };
        let detail = |texts: &[&str]| {
            texts
                .iter()
                .map(|&text| text.into())
                .collect::<Vec<String>>()
        };
        let lines = detail(&["bash -lc rm a\nrm b", "/w/a"]);
        let by_id = json!({ "toolCallId": "1" });
        assert_eq!(asked(&mut work, by_id.clone()), ("Edit a".into(), lines, 1));
        let other = json!({ "toolCallId": "1", "title": "rm", "rawInput": { "command": "rm c" },
            "content": [{ "content": { "text": "```sh\nrm c\n```" } }, { "content": { "text": "Cleans up." } }] });
        let lines = detail(&["rm c", "/w/a", "rm c", "Cleans up."]);
        assert_eq!(asked(&mut work, other), ("rm".into(), lines, 1));

        work.tool(&tool("completed"));
        assert_eq!(asked(&mut work, by_id), ("Edit a".into(), Vec::new(), 0));
    }

    #[test]
    fn a_question_without_an_id_shows_nothing_of_another_one() {
        let mut work = WorkState::default();
        let call = json!({ "title": "ls", "kind": "execute", "rawInput": { "command": "ls" } });
        work.question(&json!({ "toolCall": call }), true);
        let question = work.question(&json!({ "toolCall": { "kind": "edit" } }), true);
        assert_eq!(
            (question.title, question.detail),
            (String::new(), Vec::new())
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
        let huge = json!({ "inputTokens": 1, "outputTokens": u64::MAX, "thoughtTokens": u64::MAX, "totalTokens": u64::MAX });
        assert_eq!(used(huge), (1, MOST_TOKENS));
        let quota = json!({ "_meta": { "quota": { "token_count": { "input_tokens": 7, "output_tokens": 2 } } } });
        assert_eq!(super::token_usage(&quota).input, 7);
    }
}
