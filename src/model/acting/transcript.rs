//! Renders `transcript.jsonl` as Markdown (`transcript.md`), counts the commands in it, and records
//! it.
//!
//! A transcript is untrusted. Everything an agent sent is put into code spans and fenced blocks, so
//! that none of it is interpreted as Markdown. Control characters are made visible, keys are
//! redacted, and sizes are bounded.
//!
//! The commands are those that the agent reported. One counts if the agent reported that it started
//! or ended, and as failed only with another exit code than 0, or if the agent reported a failure
//! without any exit code.

mod recorder;

use std::collections::BTreeMap;

use serde_json::Value;

pub(super) use recorder::{Speaker, TranscriptRecorder};

use crate::model::TokenUsage;
use crate::model::acting::ToolStatus;
use crate::model::acting::agent_output::sanitize_title;
use crate::model::acting::json_line::{text_at, updates_of};
use crate::text::fence::fence_for;
use crate::text::foreign_json;
use crate::text::sanitize::sanitize_text;
use crate::text::secret::redact;
use crate::text::{counted, floor_char_boundary};

/// In bytes.
const MAX_READ: usize = 64 << 20;

/// From the first and last lines.
#[derive(Debug, Default)]
struct Head {
    program: String,
    agent: String,
    conversation: String,
    resumed: bool,
    tokens: Option<TokenUsage>,
    cost: Option<f64>,
    error: String,
    /// Start and end.
    times: [String; 2],
}

/// Skips invalid lines.
pub fn render_transcript(jsonl: &[u8]) -> String {
    let (mut head, mut body) = (Head::default(), TranscriptBody::default());
    for line in parse(jsonl) {
        head.take(&line);
        body.take(&line);
    }

    head.write() + &body.finish()
}

/// Returns what failed tools and a failed agent printed. Skips invalid lines.
pub fn printed_failures(jsonl: &[u8]) -> String {
    let (mut printed, mut texts) = (String::new(), String::new());
    for line in parse(jsonl) {
        printed.push_str(text_at(&line, "/complaint"));
        texts.push_str(text_at(&line, "/text"));
        texts.push('\n');
        let failed = tool_updates(&line).into_iter().filter(|update| {
            let has_failed = matches!(text_at(update, "/status"), "failed" | "denied");
            exit_code(update).map_or(has_failed, |code| code != 0)
        });
        failed.for_each(|update| printed.push_str(&format!("{}\n", output_of(&update))));
        let error = text_at(&line, "/end/error");
        if !error.is_empty() {
            printed.push_str(&format!("\n{error}\n{texts}"));
        }
    }
    printed
}

fn tool_updates(line: &Value) -> Vec<Value> {
    let mut updates = match line.pointer("/message/params/update") {
        Some(update) => vec![update.clone()],
        None => line.get("message").map(updates_of).unwrap_or_default(),
    };
    updates.retain(|update| text_at(update, "/sessionUpdate").starts_with("tool_call"));
    updates
}

/// Skips lines that are not JSON.
fn parse(jsonl: &[u8]) -> impl Iterator<Item = Value> {
    let lines = jsonl[..jsonl.len().min(MAX_READ)].split(|byte| *byte == b'\n');
    lines.filter_map(|line| foreign_json::parse(line).ok())
}

impl Head {
    fn take(&mut self, line: &Value) {
        let time = span(text_at(line, "/time"));
        if self.times[0].is_empty() {
            self.times[0].clone_from(&time);
        }
        self.times[1] = time;

        let is_ours = text_at(line, "/from") == "teddy";
        if is_ours && line.get("start").is_some() {
            self.program = span(text_at(line, "/start/run/0"));
        }
        if let Some(end) = line.get("end").filter(|_| is_ours) {
            let agent = [text_at(end, "/agent/0"), text_at(end, "/agent/1")];
            self.agent = span(agent.join(" ").trim());
            self.conversation = span(text_at(end, "/conversation"));
            self.resumed = end.get("resumed").and_then(Value::as_bool) == Some(true);
            self.tokens = end
                .get("tokens")
                .and_then(|tokens| serde_json::from_value(tokens.clone()).ok());
            self.cost = end.get("cost").and_then(Value::as_f64);
            self.error = span(text_at(end, "/error"));
        }
    }

    fn write(&self) -> String {
        let resumed = if self.resumed { ", resumed" } else { "" };
        let tokens = self.tokens.map(|tokens| {
            let TokenUsage {
                input,
                output,
                cached,
                ..
            } = tokens;
            format!("{input} sent ({cached} from a cache), {output} written")
        });
        let facts = [
            ("Agent", self.agent.clone()),
            ("Program", self.program.clone()),
            ("Conversation", with(&self.conversation, resumed)),
            ("Began", self.times[0].clone()),
            ("Ended", self.times[1].clone()),
            ("Tokens", tokens.unwrap_or_default()),
            (
                "Cost",
                self.cost
                    .map(|cost| format!("${cost:.4}"))
                    .unwrap_or_default(),
            ),
            ("Failed", self.error.clone()),
        ];

        let mut text = "# Transcript\n\n".to_owned();
        for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
            text += &format!("- {name}: {fact}\n");
        }
        text
    }
}

/// Except for an empty text.
fn with(text: &str, suffix: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("{text}{suffix}"),
    }
}

/// On one line. Empty for an empty text.
fn span(text: &str) -> String {
    // A backtick would end the code span.
    match sanitize_title(text).replace('`', "'") {
        text if text.is_empty() => text,
        text => format!("`{text}`"),
    }
}

/// In bytes. The result exceeds it by up to one message.
const MAX_RENDERED: usize = 1 << 20;

/// In bytes.
const MAX_MESSAGE: usize = 64 << 10;

const MAX_TOOLS: usize = 10_000;

#[derive(Debug, Default)]
struct TranscriptBody {
    text: String,
    /// Complete once an event of another kind arrives.
    message: String,
    has_message: bool,
    /// The last thing in `text` is a list item.
    is_list: bool,
    is_cut: bool,
    /// JSON lines that aren't protocol messages.
    others: usize,
    /// Title and kind of unfinished tools, by id.
    tools: BTreeMap<String, [String; 2]>,
    /// Of the latest to-do list.
    plan: Vec<String>,
}

impl TranscriptBody {
    fn take(&mut self, line: &Value) {
        if self.text.len() > MAX_RENDERED {
            self.is_cut = true;
            return;
        }

        match text_at(line, "/from") {
            "agent" => self.agent(line),
            "teddy" => self.teddy(line),
            _ => {}
        }
    }

    fn finish(mut self) -> String {
        self.end_message();
        for [title, kind] in std::mem::take(&mut self.tools).into_values() {
            self.item(&format!("{}: not finished", tool_line(&title, &kind)));
        }

        let plan = std::mem::take(&mut self.plan);
        if !plan.is_empty() {
            let gap = if self.is_list { "\n" } else { "" };
            self.text.push_str(&format!("{gap}## Plan\n\n"));
            plan.iter().for_each(|step| self.item(step));
        }
        if self.is_cut {
            self.text.push_str("\nThe rest is in `transcript.jsonl`.\n");
        }

        let text = self.text.trim_end();
        match text {
            "" => String::new(),
            text => format!("\n## Course\n\n{text}\n"),
        }
    }

    fn agent(&mut self, line: &Value) {
        if let Some(text) = line.get("text").and_then(Value::as_str) {
            self.append_text(text);
            self.append_text("\n");
        } else if !text_at(line, "/complaint").is_empty() {
            self.end_message();
            self.item("error output:");
            self.is_list = false;
            self.text.push('\n');
            self.block(text_at(line, "/complaint"));
        } else if let Some(update) = line.pointer("/message/params/update") {
            self.update(update);
        } else if line.pointer("/message/jsonrpc").is_none()
            && let Some(message) = line.get("message")
        {
            let updates = updates_of(message);
            updates.iter().for_each(|update| self.update(update));
            self.others += usize::from(updates.is_empty());
        }
    }

    fn teddy(&mut self, line: &Value) {
        if let Some(permission) = line.get("permission") {
            self.end_message();
            let [title, kind] = ["/title", "/kind"].map(|pointer| text_at(permission, pointer));
            let by = match text_at(permission, "/by") {
                "" => String::new(),
                "person" => ", by the user".to_owned(),
                "sandbox" => ", by the sandbox".to_owned(),
                "beforehand" => ", by `-y`".to_owned(),
                "nobody" => ", because no user could be asked".to_owned(),
                "earlier answer" => ", by an earlier answer".to_owned(),
                other => format!(", by {}", span(other)),
            };
            let decision = match text_at(permission, "/decision") {
                known @ ("once" | "always" | "no" | "cancelled") => known.to_owned(),
                other => span(other),
            };
            let detail = permission_details(permission);
            self.item(&format!(
                "asked for {}: {decision}{by}{detail}",
                tool_line(title, kind)
            ));
        } else if let Some(note) = line.get("note").and_then(Value::as_str) {
            self.end_message();
            self.item(&format!("note: {}", span(note)));
        } else if let Some(end) = line.get("end") {
            self.end_message();
            if self.others > 0 {
                self.item(&format!("{} of JSON", counted(self.others, "line")));
            }
            if !self.has_message {
                self.append_text(text_at(end, "/message"));
                self.end_message();
            }
        }
    }

    fn update(&mut self, update: &Value) {
        match text_at(update, "/sessionUpdate") {
            "agent_message_chunk" => self.append_text(text_at(update, "/content/text")),
            "tool_call" | "tool_call_update" => self.tool(update),
            "plan" => {
                let steps = update.get("entries").and_then(Value::as_array);
                let steps = steps.into_iter().flatten().take(100);
                let step = |step: &Value| {
                    let [content, status] =
                        ["/content", "/status"].map(|pointer| text_at(step, pointer));
                    format!("{}: {}", span(content), span(status))
                };
                self.plan = steps.map(step).collect();
            }
            _ => {}
        }
    }

    fn tool(&mut self, update: &Value) {
        self.end_message();
        let id = text_at(update, "/toolCallId").to_owned();
        let mut labels = self.tools.remove(&id).unwrap_or_default();
        for (pointer, field) in ["/title", "/kind"].iter().zip(&mut labels) {
            let text = text_at(update, pointer);
            if !text.is_empty() {
                text.clone_into(field);
            }
        }

        match text_at(update, "/status") {
            status @ ("completed" | "failed" | "denied") => {
                let exit = exit_code(update)
                    .map_or_else(String::new, |code| format!(", exit code {code}"));
                self.item(&format!(
                    "{}: {status}{exit}",
                    tool_line(&labels[0], &labels[1])
                ));
                let output = output_of(update);
                if !output.trim().is_empty() && labels[1] != "read" {
                    self.is_list = false;
                    self.text.push('\n');
                    self.block(&excerpt(&output));
                }
            }
            // Rendered once it has finished, or at the end.
            _ if self.tools.len() < MAX_TOOLS => drop(self.tools.insert(id, labels)),
            _ => {}
        }
    }

    fn append_text(&mut self, piece: &str) {
        let capacity = MAX_MESSAGE.saturating_sub(self.message.len());
        let end = floor_char_boundary(piece, capacity);
        self.message.push_str(&piece[..end]);
        self.is_cut |= end < piece.len();
    }

    fn end_message(&mut self) {
        let message = std::mem::take(&mut self.message);
        if message.trim().is_empty() {
            return;
        }

        self.has_message = true;
        if std::mem::take(&mut self.is_list) {
            self.text.push('\n');
        }
        self.block(&message);
    }

    fn block(&mut self, text: &str) {
        let text = redact(text.trim_end());
        let text = sanitize_text(&text);
        let fence = fence_for(&text, 3);
        self.text += &format!("{fence}text\n{text}\n{fence}\n\n");
    }

    fn item(&mut self, text: &str) {
        self.is_list = true;
        self.text += &format!("- {text}\n");
    }
}

fn tool_line(title: &str, kind: &str) -> String {
    let title = match span(title) {
        title if title.is_empty() => "a tool".to_owned(),
        title => title,
    };
    match span(kind) {
        kind if kind.is_empty() => title,
        kind => format!("{title} ({kind})"),
    }
}

/// Exit code of a command, as agents report it.
pub(super) fn exit_code(update: &Value) -> Option<i64> {
    let keys = ["exit_code", "exitCode", "returnCode", "exit"];
    let raw = ["/rawOutput", "/rawOutput/metadata"];
    let values = raw.iter().filter_map(|pointer| update.pointer(pointer));
    values
        .flat_map(|raw| keys.map(|key| raw[key].as_i64()))
        .flatten()
        .next()
        .or_else(|| exit_code_in_text(&output_of(update)))
}

/// Qwen Code reports it only in the text for its model, after the output.
fn exit_code_in_text(text: &str) -> Option<i64> {
    let (_, end) = text
        .strip_prefix("Command: ")?
        .rsplit_once("\nExit Code: ")?;
    end.lines().next()?.parse().ok()
}

/// Text that a tool printed.
pub(super) fn output_of(update: &Value) -> String {
    let parts = update.get("content").and_then(Value::as_array);
    let texts = parts.into_iter().flatten();
    let texts: Vec<&str> = texts.map(|part| text_at(part, "/content/text")).collect();
    let text = texts.join("\n");
    match text.trim().is_empty() {
        true => {
            let raw = ["/rawOutput", "/rawOutput/output", "/rawOutput/stdout"];
            let raw = raw.iter().map(|pointer| text_at(update, pointer));
            raw.into_iter()
                .find(|text| !text.is_empty())
                .unwrap_or_default()
                .to_owned()
        }
        false => text,
    }
}

/// The first and the last lines of an output.
fn excerpt(output: &str) -> String {
    const SHOWN: usize = 10;
    let lines: Vec<&str> = output.trim_end().lines().collect();
    if lines.len() <= 2 * SHOWN + 1 {
        return lines.join("\n");
    }
    let left_out = format!("[{} lines left out]", lines.len() - 2 * SHOWN);
    let tail = &lines[lines.len() - SHOWN..];
    [&lines[..SHOWN], &[left_out.as_str()], tail]
        .concat()
        .join("\n")
}

/// Formats the command and paths of a permission request, with a leading separator. Empty if there
/// is neither.
fn permission_details(permission: &Value) -> String {
    let details = permission.get("detail").and_then(Value::as_array);
    let details = details.into_iter().flatten().take(10);
    let details: Vec<String> = details.filter_map(Value::as_str).map(span).collect();
    match details.as_slice() {
        [] => String::new(),
        details => format!("; {}", details.join(", ")),
    }
}

/// Number of commands that an agent ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommandCounts {
    pub ran: usize,
    pub failed: usize,
    /// The transcript is incomplete: there can be more.
    pub is_minimum: bool,
}

/// Skips invalid lines.
pub fn count_commands(jsonl: &[u8]) -> CommandCounts {
    let mut log = CommandLog {
        is_cut: jsonl.len() > MAX_READ,
        ..CommandLog::default()
    };
    parse(jsonl).for_each(|line| log.take(&line));

    let ran = log.calls.values().filter(|call| call.ran());
    CommandCounts {
        ran: ran.clone().count(),
        failed: ran.filter(|call| call.failed()).count(),
        is_minimum: log.is_cut,
    }
}

/// A call of any tool: some agents send the kind after the first update.
#[derive(Debug, Default)]
struct ToolCall {
    is_command: bool,
    status: ToolStatus,
    exit_code: Option<i64>,
    /// The agent was not allowed to run it.
    is_denied: bool,
}

impl ToolCall {
    fn ran(&self) -> bool {
        let is_started = self.status != ToolStatus::Pending && !self.is_denied;
        self.is_command && (is_started || self.exit_code.is_some())
    }

    fn failed(&self) -> bool {
        let has_failed = self.status == ToolStatus::Failed;
        self.exit_code.map_or(has_failed, |code| code != 0)
    }
}

#[derive(Debug, Default)]
struct CommandLog {
    /// By id.
    calls: BTreeMap<String, ToolCall>,
    /// Open permission requests by id, with the id of the call and the options that reject it.
    questions: BTreeMap<String, (String, Vec<String>)>,
    is_cut: bool,
}

impl CommandLog {
    fn take(&mut self, line: &Value) {
        let message = line.get("message").unwrap_or(&Value::Null);
        match text_at(line, "/from") {
            "agent" if text_at(message, "/method") == "session/request_permission" => {
                self.question(message);
            }
            "agent" => tool_updates(line).iter().for_each(|it| self.update(it)),
            "teddy" => {
                self.answer(message);
                // The recorder notes what exceeds its limits.
                self.is_cut |= text_at(line, "/note").ends_with("left out");
            }
            _ => {}
        }
    }

    /// `None` beyond the limit.
    fn call(&mut self, id: &str) -> Option<&mut ToolCall> {
        if self.calls.len() >= MAX_TOOLS && !self.calls.contains_key(id) {
            self.is_cut = true;
            return None;
        }
        Some(self.calls.entry(id.to_owned()).or_default())
    }

    /// Of the Agent Client Protocol.
    fn update(&mut self, update: &Value) {
        let Some(call) = self.call(text_at(update, "/toolCallId")) else {
            return;
        };
        match text_at(update, "/kind") {
            "" => {}
            kind => call.is_command = kind == "execute",
        }
        match text_at(update, "/status") {
            "in_progress" => call.status = ToolStatus::Running,
            "completed" => call.status = ToolStatus::Completed,
            "failed" => call.status = ToolStatus::Failed,
            "denied" => call.is_denied = true,
            _ => {}
        }
        call.exit_code = exit_code(update).or(call.exit_code);
    }

    fn question(&mut self, message: &Value) {
        let options = message.pointer("/params/options").and_then(Value::as_array);
        let options = options.into_iter().flatten();
        let rejecting = options.filter(|option| text_at(option, "/kind").starts_with("reject"));
        let rejecting = rejecting.map(|option| text_at(option, "/optionId").to_owned());
        let call = text_at(message, "/params/toolCall/toolCallId").to_owned();
        if self.questions.len() < MAX_TOOLS {
            let question = (call, rejecting.collect());
            self.questions.insert(message["id"].to_string(), question);
        }
    }

    /// Of TeDDy, to a permission request.
    fn answer(&mut self, message: &Value) {
        let Some(outcome) = message.pointer("/result/outcome") else {
            return;
        };
        let Some((id, rejecting)) = self.questions.remove(&message["id"].to_string()) else {
            return;
        };
        let option = text_at(outcome, "/optionId");
        let is_denied = text_at(outcome, "/outcome") == "cancelled"
            || rejecting.iter().any(|rejected| rejected == option);
        if let Some(call) = self.call(&id) {
            call.is_denied = is_denied;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(lines: &[&str]) -> String {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| format!("{{\"time\":\"2026-11-23T12:00:00Z\",{line}}}\n"))
            .collect();
        render_transcript(lines.concat().as_bytes())
    }

    /// Compares the part below the metadata.
    #[track_caller]
    fn check(lines: &[&str], expected: &str) {
        let text = rendered(lines);
        let (_, body) = text.split_once("\n## Course\n\n").unwrap();
        assert_eq!(body, expected);
    }

    fn update(fields: &str) -> String {
        format!(
            r#""from":"agent","message":{{"method":"session/update","params":{{"update":{{{fields}}}}}}}"#
        )
    }

    fn piece(text: &str) -> String {
        let text = Value::from(text);
        update(&format!(
            r#""sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":{text}}}"#
        ))
    }

    #[test]
    fn tr6_the_head_tells_who_and_how_much() {
        let text = rendered(&[
            r#""from":"teddy","start":{"run":["claude-agent-acp"],"confined":true}"#,
            r#""from":"teddy","end":{"agent":["claude","1.2"],"conversation":"s-1","resumed":true,"tokens":{"input":100,"output":20,"cached":5,"cache_written":0},"cost":0.25,"error":null}"#,
        ]);
        assert_eq!(
            text.trim_end(),
            "# Transcript\n\n- Agent: `claude 1.2`\n- Program: `claude-agent-acp`\n- Conversation: `s-1`, resumed\n\
             - Began: `2026-11-23T12:00:00Z`\n- Ended: `2026-11-23T12:00:00Z`\n\
             - Tokens: 100 sent (5 from a cache), 20 written\n- Cost: $0.2500"
        );
    }

    #[test]
    fn tr7_messages_tools_and_answers_stand_in_their_order() {
        let tool = update(
            r#""sessionUpdate":"tool_call","toolCallId":"1","title":"Edit `a`","kind":"edit","status":"pending""#,
        );
        let ended =
            update(r#""sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed""#);
        check(
            &[
                &piece("I "),
                &piece("will."),
                &tool,
                r#""from":"teddy","permission":{"title":"Edit a","kind":"edit","decision":"once","by":"person"}"#,
                &ended,
                &piece("Done."),
                r#""from":"teddy","note":"a new one begins""#,
            ],
            "```text\nI will.\n```\n\n- asked for `Edit a` (`edit`): once, by the user\n\
             - `Edit 'a'` (`edit`): completed\n\n```text\nDone.\n```\n\n- note: `a new one begins`\n",
        );
    }

    #[test]
    fn a_tool_that_never_ended_is_named() {
        let tool = update(
            r#""sessionUpdate":"tool_call","toolCallId":"1","title":"Build","status":"in_progress""#,
        );
        check(&[&tool], "- `Build`: not finished\n");
    }

    #[test]
    fn the_last_plan_stands_at_the_end() {
        let plan = |status: &str| {
            update(&format!(
                r#""sessionUpdate":"plan","entries":[{{"content":"One","status":"{status}"}}]"#
            ))
        };
        check(
            &[&plan("pending"), &piece("a"), &plan("completed")],
            "```text\na\n```\n\n## Plan\n\n- `One`: `completed`\n",
        );
    }

    #[test]
    fn a_command_is_rendered_by_its_text_or_by_its_last_message() {
        let end = r#""from":"teddy","end":{"message":"All done."}"#;
        check(
            &[
                r#""from":"agent","text":"one""#,
                r#""from":"agent","text":"two""#,
                end,
            ],
            "```text\none\ntwo\n```\n",
        );
        check(
            &[
                r#""from":"agent","message":{"type":"x"}"#,
                r#""from":"agent","message":{"type":"y"}"#,
                end,
            ],
            "- 2 lines of JSON\n\n```text\nAll done.\n```\n",
        );
    }

    #[test]
    fn tr8_what_an_agent_says_is_no_markdown_and_is_visible() {
        check(
            &[&piece("```\n# Heading\n<img src=x>\u{202e}\u{1b}[2J\n")],
            "````text\n```\n# Heading\n<img src=x>\\u{202e}\\u{1b}[2J\n````\n",
        );
        let text = rendered(&[r#""from":"teddy","note":"a`\n# b""#]);
        assert!(text.ends_with("- note: `a' ↵ # b`\n"), "{text}");
    }

    #[test]
    fn tr9_the_rendering_is_bounded() {
        let long = piece(&"x".repeat(100_000));
        let lines: Vec<&str> = std::iter::repeat_n(long.as_str(), 50).collect();
        assert!(rendered(&lines).len() < 100_000);
        let note = r#""from":"teddy","note":"n""#;
        let notes: Vec<&str> = std::iter::repeat_n(note, 200_000).collect();
        let text = rendered(&notes);
        assert!(text.len() < 2 << 20 && text.ends_with("The rest is in `transcript.jsonl`.\n"));
    }

    #[test]
    fn anything_at_all_can_be_rendered() {
        for junk in [
            &b""[..],
            b"\xff\n{\n[]\n3\n{}",
            b"{\"from\":\"teddy\",\"end\":3}",
        ] {
            assert!(render_transcript(junk).starts_with("# Transcript\n"));
        }
    }
}

#[cfg(test)]
mod commands_tests {
    use super::*;

    /// Compares the commands that ran and those that failed.
    #[track_caller]
    fn check(messages: &[&str], expected: [usize; 2]) {
        let line = |message: &&str| match message.strip_prefix("teddy ") {
            Some(message) => format!("{{\"from\":\"teddy\",\"message\":{message}}}\n"),
            None => format!("{{\"from\":\"agent\",\"message\":{message}}}\n"),
        };
        let lines: String = messages.iter().map(line).collect();
        let counts = count_commands(lines.as_bytes());
        assert_eq!([counts.ran, counts.failed], expected, "{lines}");
        assert!(!counts.is_minimum);
    }

    fn update(fields: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"update":{{"sessionUpdate":"tool_call_update",{fields}}}}}}}"#
        )
    }

    fn command(id: u32, fields: &str) -> String {
        update(&format!(r#""toolCallId":"{id}","kind":"execute",{fields}"#))
    }

    #[test]
    fn tr11_each_command_of_the_protocol_counts_once() {
        check(
            &[
                &command(1, r#""status":"in_progress""#),
                // Codex.
                &update(r#""toolCallId":"1","status":"failed","rawOutput":{"exit_code":2}"#),
                &update(r#""toolCallId":"1","status":"failed""#),
                // Claude has no exit code.
                &command(2, r#""status":"failed","rawOutput":"Exit code 1""#),
                // OpenCode completes it in any case.
                &command(
                    3,
                    r#""status":"completed","rawOutput":{"metadata":{"exit":1}}"#,
                ),
                // Gemini has only text.
                &command(
                    4,
                    r#""status":"completed","content":[{"content":{"text":"Exit Code: 1"}}]"#,
                ),
                &command(5, r#""status":"completed","rawOutput":{"exitCode":0}"#),
                &update(r#""toolCallId":"6","kind":"edit","status":"failed""#),
                // Qwen Code has only text, of a fixed form.
                &command(
                    7,
                    r#""status":"completed","content":[{"content":{"text":"Command: x\nOutput: Exit Code: 0\nExit Code: 1\nSignal: 0"}}]"#,
                ),
            ],
            [6, 4],
        );
    }

    #[test]
    fn tr11_a_command_that_did_not_start_does_not_count() {
        let ask = |id: u32| {
            format!(
                r#"{{"id":{id},"method":"session/request_permission","params":{{"toolCall":{{"toolCallId":"{id}"}},"options":[{{"optionId":"y","kind":"allow_once"}},{{"optionId":"n","kind":"reject_once"}}]}}}}"#
            )
        };
        let answer = |id: u32, outcome: &str| {
            format!(r#"teddy {{"id":{id},"result":{{"outcome":{outcome}}}}}"#)
        };
        let mut messages = Vec::new();
        let outcomes = [
            r#"{"outcome":"selected","optionId":"y"}"#,
            r#"{"outcome":"selected","optionId":"n"}"#,
            r#"{"outcome":"cancelled"}"#,
        ];
        for (id, outcome) in (1..).zip(outcomes) {
            messages.push(command(id, r#""status":"pending""#));
            messages.push(ask(id));
            messages.push(answer(id, outcome));
            messages.push(command(id, r#""status":"failed""#));
        }
        messages.push(command(9, r#""status":"pending""#));
        let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
        check(&messages, [1, 1]);
    }

    #[test]
    fn lines_of_claude() {
        let call = |id: &str, name: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"{id}","name":"{name}"}}]}}}}"#
            )
        };
        let result = |id: &str, is_error: bool| {
            format!(
                r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","is_error":{is_error}}}]}}}}"#
            )
        };
        check(
            &[
                &call("a", "Bash"),
                &result("a", false),
                &call("b", "Bash"),
                &result("b", true),
                &call("c", "Edit"),
                &result("c", true),
                &call("d", "Bash"),
                &result("d", true),
                &call("e", "Bash"),
                r#"{"type":"result","permission_denials":[{"tool_name":"Bash","tool_use_id":"d"}]}"#,
            ],
            [2, 1],
        );
    }

    #[test]
    fn lines_of_codex() {
        let item = |id: u32, rest: &str| {
            format!(
                r#"{{"type":"item.completed","item":{{"id":"{id}","type":"command_execution",{rest}}}}}"#
            )
        };
        check(
            &[
                &item(0, r#""exit_code":null,"status":"in_progress""#),
                &item(0, r#""exit_code":0,"status":"completed""#),
                &item(1, r#""exit_code":101,"status":"completed""#),
                &item(2, r#""exit_code":null,"status":"in_progress""#),
                &item(3, r#""status":"declined""#),
                r#"{"type":"item.completed","item":{"id":"4","type":"agent_message","text":"x"}}"#,
            ],
            [3, 1],
        );
    }

    #[test]
    fn lines_of_gemini_and_opencode() {
        let call = |id: &str, name: &str| {
            format!(r#"{{"type":"tool_use","tool_name":"{name}","tool_id":"{id}"}}"#)
        };
        let result =
            |id: &str, rest: &str| format!(r#"{{"type":"tool_result","tool_id":"{id}",{rest}}}"#);
        check(
            &[
                &call("a", "run_shell_command"),
                &result("a", r#""status":"success""#),
                &call("b", "run_shell_command"),
                &result(
                    "b",
                    r#""status":"error","error":{"type":"shell_execute_error"}"#,
                ),
                &call("c", "run_shell_command"),
                &result(
                    "c",
                    r#""status":"error","error":{"type":"policy_violation"}"#,
                ),
                &call("d", "read_file"),
                &result("d", r#""status":"error""#),
            ],
            [2, 1],
        );
        let part = |id: u32, state: &str| {
            format!(
                r#"{{"type":"tool_use","part":{{"tool":"bash","callID":"{id}","state":{{{state}}}}}}}"#
            )
        };
        check(
            &[
                &part(1, r#""status":"completed","metadata":{"exit":0}"#),
                &part(2, r#""status":"completed","metadata":{"exit":3}"#),
                &part(3, r#""status":"error""#),
            ],
            [2, 1],
        );
    }

    #[test]
    fn tr11_an_incomplete_transcript_gives_a_minimum() {
        let lines: String = (0..10_050)
            .map(|id| {
                let message = command(id, r#""status":"failed""#);
                format!("{{\"from\":\"agent\",\"message\":{message}}}\n")
            })
            .collect();
        let expected = CommandCounts {
            ran: 10_000,
            failed: 10_000,
            is_minimum: true,
        };
        assert_eq!(count_commands(lines.as_bytes()), expected);

        let note = br#"{"from":"teddy","note":"12 lines were left out"}"#;
        assert!(count_commands(note).is_minimum);
        for junk in [
            &b""[..],
            b"\xff\n{\n[]\n3\n{}",
            b"{\"from\":\"agent\",\"message\":3}",
        ] {
            assert_eq!(count_commands(junk), CommandCounts::default());
        }
    }
}
