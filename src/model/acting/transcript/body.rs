//! Renders the chronological part of a transcript: messages, tools, questions and plan.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::{span, string};
use crate::text::counted;
use crate::text::fence::fence_for;
use crate::text::redaction::redact;
use crate::text::sanitize::sanitize_text;

/// Size in bytes at which rendering stops. The result exceeds it by up to one message.
const MAX_RENDERED: usize = 1 << 20;
/// Bytes to show of a message.
const MAX_MESSAGE: usize = 64 << 10;
/// Maximum number of unfinished tools to remember.
const MAX_TOOLS: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct TranscriptBody {
    text: String,
    /// The current message. Complete once an event of another kind arrives.
    message: String,
    has_message: bool,
    /// `true` if the last thing in `text` is a list item.
    is_list: bool,
    /// `true` if something was truncated.
    is_cut: bool,
    /// Number of JSON lines that aren't protocol messages.
    others: usize,
    /// Title and kind of unfinished tools, by id.
    tools: BTreeMap<String, [String; 2]>,
    /// Steps of the latest to-do list.
    plan: Vec<String>,
}

impl TranscriptBody {
    pub(super) fn take(&mut self, line: &Value) {
        if self.text.len() > MAX_RENDERED {
            self.is_cut = true;
            return;
        }

        match string(line, "/from") {
            "agent" => self.agent(line),
            "teddy" => self.teddy(line),
            _ => {}
        }
    }

    pub(super) fn finish(mut self) -> String {
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
        } else if !string(line, "/complaint").is_empty() {
            self.end_message();
            self.item("error output:");
            self.is_list = false;
            self.text.push('\n');
            self.block(string(line, "/complaint"));
        } else if let Some(update) = line.pointer("/message/params/update") {
            self.update(update);
        } else if line.pointer("/message/jsonrpc").is_none() && line.get("message").is_some() {
            self.others += 1;
        }
    }

    fn teddy(&mut self, line: &Value) {
        if let Some(permission) = line.get("permission") {
            self.end_message();
            let [title, kind] = ["/title", "/kind"].map(|pointer| string(permission, pointer));
            let by = match string(permission, "/by") {
                "" => String::new(),
                "person" => ", by the person".to_owned(),
                "sandbox" => ", by the sandbox".to_owned(),
                "beforehand" => ", by `-y`".to_owned(),
                "nobody" => ", because no user could be asked".to_owned(),
                "earlier answer" => ", by an earlier answer".to_owned(),
                other => format!(", by {}", span(other)),
            };
            let decision = match string(permission, "/decision") {
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
                self.append_text(string(end, "/message"));
                self.end_message();
            }
        }
    }

    fn update(&mut self, update: &Value) {
        match string(update, "/sessionUpdate") {
            "agent_message_chunk" => self.append_text(string(update, "/content/text")),
            "tool_call" | "tool_call_update" => self.tool(update),
            "plan" => {
                let steps = update.get("entries").and_then(Value::as_array);
                let steps = steps.into_iter().flatten().take(100);
                let step = |step: &Value| {
                    let [content, status] =
                        ["/content", "/status"].map(|pointer| string(step, pointer));
                    format!("{}: {}", span(content), span(status))
                };
                self.plan = steps.map(step).collect();
            }
            _ => {}
        }
    }

    fn tool(&mut self, update: &Value) {
        self.end_message();
        let id = string(update, "/toolCallId").to_owned();
        let mut labels = self.tools.remove(&id).unwrap_or_default();
        for (pointer, field) in ["/title", "/kind"].iter().zip(&mut labels) {
            let text = string(update, pointer);
            if !text.is_empty() {
                text.clone_into(field);
            }
        }

        match string(update, "/status") {
            status @ ("completed" | "failed") => {
                self.item(&format!("{}: {status}", tool_line(&labels[0], &labels[1])));
            }
            // Rendered once it has finished, or at the end.
            _ if self.tools.len() < MAX_TOOLS => drop(self.tools.insert(id, labels)),
            _ => {}
        }
    }

    /// Appends a chunk of a message.
    fn append_text(&mut self, piece: &str) {
        let capacity = MAX_MESSAGE.saturating_sub(self.message.len());
        let end = (0..=capacity.min(piece.len()))
            .rev()
            .find(|end| piece.is_char_boundary(*end));
        self.message.push_str(&piece[..end.unwrap_or_default()]);
        if end != Some(piece.len()) {
            self.is_cut = true;
        }
    }

    /// Renders the current message.
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

    /// Renders a text as a fenced block.
    fn block(&mut self, text: &str) {
        let text = redact(text.trim_end());
        let text = sanitize_text(&text);
        let fence = fence_for(&text, 3);
        write!(self.text, "{fence}text\n{text}\n{fence}\n\n")
            .expect("writing to a string cannot fail");
    }

    fn item(&mut self, text: &str) {
        self.is_list = true;
        writeln!(self.text, "- {text}").expect("writing to a string cannot fail");
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

/// Formats the command and paths of a permission request, with a leading separator. Empty if there
/// are none.
fn permission_details(permission: &Value) -> String {
    let details = permission.get("detail").and_then(Value::as_array);
    let details = details.into_iter().flatten().take(10);
    let details: Vec<String> = details.filter_map(Value::as_str).map(span).collect();
    match details.as_slice() {
        [] => String::new(),
        details => format!("; {}", details.join(", ")),
    }
}
