//! Tracks an agent's work from its `session/update` messages.
//!
//! Unknown updates are ignored. None of this proves what the agent changed; only the files do.

use std::collections::HashMap;

use serde_json::Value;

use crate::model::TokenUsage;
use crate::model::acting::facts::{MAX_MESSAGE, bound};
use crate::model::acting::label::sanitize_label;
use crate::model::acting::{
    AgentHost, AgentPlanEntry, AgentProgress, PermissionQuestion, ToolStatus, ToolUse,
};

/// Maximum number of tools to remember.
const MAX_TOOLS: usize = 10_000;
/// Maximum number of plan steps to show.
const MAX_STEPS: usize = 100;
/// Maximum number of paths to show in a question.
const MAX_PATHS: usize = 10;

#[derive(Debug, Default)]
pub(super) struct WorkState {
    /// The last message.
    pub(super) message: String,
    /// `true` after a tool use: the next text starts a new message.
    is_ended: bool,
    /// Tools by id.
    tools: HashMap<String, ToolUse>,
    /// `true` if a tool is running, which can be silent for long.
    pub(super) has_tool: bool,
    pub(super) usage: TokenUsage,
    /// Cumulative cost of the conversation in US dollars, as reported.
    cost: Option<f64>,
    /// `cost` at the start of the current prompt.
    cost_before: f64,
}

impl WorkState {
    pub(super) fn begin_prompt(&mut self) {
        *self = WorkState {
            // Agents report the total cost of the conversation.
            cost_before: self.cost.unwrap_or_default(),
            ..WorkState::default()
        };
    }

    /// Cost of the current prompt. `None` if the agent doesn't report it.
    pub(super) fn cost(&self) -> Option<f64> {
        self.cost.map(|cost| (cost - self.cost_before).max(0.0))
    }

    pub(super) fn update(&mut self, update: &Value, host: &mut dyn AgentHost) {
        let kind = text_at(update, "/sessionUpdate");
        self.has_tool = false;
        match kind {
            "agent_message_chunk" => self.append_text(text_at(update, "/content/text"), host),
            "agent_thought_chunk" => {
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
                let cost = cost.filter(|cost| cost.is_finite() && *cost >= 0.0);
                self.cost = cost.or(self.cost);
                let usage = self.usage;
                let cost = self.cost();
                host.progress(AgentProgress::Used { usage, cost });
            }
            _ => {}
        }
    }

    /// Takes the token counts from the answer to `session/prompt`.
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
        let paths = call.get("locations").and_then(Value::as_array);
        let paths = paths.into_iter().flatten().take(MAX_PATHS);
        let paths = paths.map(|location| text_at(location, "/path").to_owned());
        let detail = command.into_iter().chain(paths);

        PermissionQuestion {
            title: tool.title,
            kind: tool.kind,
            detail: detail
                .filter(|text| !text.is_empty())
                .map(|text| sanitize_label(&text))
                .collect(),
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

    /// Merges an update into the known state of a tool: agents send only the fields that changed.
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
            "failed" => ToolStatus::Failed,
            _ => tool.status,
        };
        if self.tools.len() < MAX_TOOLS || self.tools.contains_key(&id) {
            self.tools.insert(id, tool.clone());
        }

        tool
    }
}

/// Reads a command, which agents send as a string or a list.
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

/// Returns the string at a JSON pointer, or an empty one.
pub(super) fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
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

    fn after(updates: &[Value]) -> WorkState {
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
    fn the_cost_of_an_earlier_prompt_is_not_counted_again() {
        let cost =
            |amount: f64| json!({ "sessionUpdate": "usage_update", "cost": { "amount": amount } });
        let mut work = after(&[cost(2.0)]);
        work.begin_prompt();
        assert_eq!(work.cost(), None);
        work.update(&cost(2.5), &mut RecordingHost::default());
        assert_eq!(work.cost(), Some(0.5));
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
