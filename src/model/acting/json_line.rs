//! Translates the JSON lines of known commands into updates of the Agent Client Protocol.
//!
//! Live progress, the transcript and the count of commands then read one format. A line that is
//! unknown has no updates.

use serde_json::{Value, json};

/// Parts of one line that are read. An update takes more memory than the line needs for it.
const MAX_PARTS: usize = 1000;

/// Empty for an unknown line.
pub(super) fn updates_of(line: &Value) -> Vec<Value> {
    let readers = [claude, codex, gemini, opencode];
    readers
        .iter()
        .map(|read| read(line))
        .find(|updates| !updates.is_empty())
        .unwrap_or_default()
}

fn message(text: &str) -> Value {
    json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })
}

/// Creates an update of a tool call.
fn tool(id: &str, mut fields: Value) -> Value {
    fields["sessionUpdate"] = "tool_call_update".into();
    fields["toolCallId"] = id.into();
    fields
}

/// A tool by the name and arguments that its agent uses.
fn call(id: &str, name: &str, input: &Value) -> Value {
    let keys = ["command", "file_path", "filePath", "path", "pattern", "url"];
    let detail = keys.iter().find_map(|key| input[key].as_str());
    let lower = name.to_ascii_lowercase();
    let kind = match () {
        () if ["bash", "run_shell_command"].contains(&&*lower) => "execute",
        () if lower.contains("read") => "read",
        () if lower.contains("write") || lower.contains("edit") || lower == "replace" => "edit",
        () => "other",
    };
    let title = match detail {
        Some(command) if kind == "execute" => command.to_owned(),
        Some(detail) => format!("{name} {detail}"),
        None => name.to_owned(),
    };
    tool(
        id,
        json!({ "title": title, "kind": kind, "status": "pending" }),
    )
}

/// A line of `claude --output-format stream-json`.
fn claude(line: &Value) -> Vec<Value> {
    let parts = line.pointer("/message/content").and_then(Value::as_array);
    let parts = parts.into_iter().flatten();
    let is_agent = text_at(line, "/type") == "assistant";
    let part = |part: &Value| match text_at(part, "/type") {
        "text" if is_agent => Some(message(&format!("{}\n", text_at(part, "/text")))),
        "tool_use" => Some(call(
            text_at(part, "/id"),
            text_at(part, "/name"),
            &part["input"],
        )),
        "tool_result" => Some(claude_result(part)),
        _ => None,
    };
    let denials = line.get("permission_denials").and_then(Value::as_array);
    let ids = denials.into_iter().flatten().take(MAX_PARTS);
    let ids = ids.map(|denial| text_at(denial, "/tool_use_id"));
    let denied = ids
        .filter(|id| !id.is_empty())
        .map(|id| tool(id, json!({ "status": "denied" })));
    parts
        .take(MAX_PARTS)
        .filter_map(part)
        .chain(denied)
        .collect()
}

fn claude_result(part: &Value) -> Value {
    let texts = part.get("content").and_then(Value::as_array);
    let texts = texts.into_iter().flatten().map(|it| text_at(it, "/text"));
    let output = match part["content"].as_str() {
        Some(text) => text.to_owned(),
        None => texts.collect::<Vec<_>>().join("\n"),
    };
    let has_failed = part["is_error"].as_bool() == Some(true);
    let code = output.strip_prefix("Exit code ").filter(|_| has_failed);
    let code = code.and_then(|text| text.lines().next()?.trim().parse::<i64>().ok());
    let status = if has_failed { "failed" } else { "completed" };
    tool(
        text_at(part, "/tool_use_id"),
        json!({ "status": status, "rawOutput": { "output": output, "exit_code": code } }),
    )
}

/// A line of `codex exec --json`.
fn codex(line: &Value) -> Vec<Value> {
    let item = &line["item"];
    let id = text_at(item, "/id");
    let status = match text_at(item, "/status") {
        "declined" => "denied",
        status => status,
    };
    let update = match text_at(item, "/type") {
        "agent_message" => message(&format!("{}\n", text_at(item, "/text"))),
        "command_execution" => tool(
            id,
            json!({
                "title": item["command"], "kind": "execute", "status": status,
                "rawOutput": { "output": item["aggregated_output"], "exit_code": item["exit_code"] },
            }),
        ),
        "file_change" => {
            let changes = item.get("changes").and_then(Value::as_array);
            let paths = changes.into_iter().flatten().map(|it| text_at(it, "/path"));
            let paths: Vec<&str> = paths.collect();
            let title = format!("edit {}", paths.join(", "));
            tool(
                id,
                json!({ "title": title, "kind": "edit", "status": status }),
            )
        }
        "mcp_tool_call" => tool(
            id,
            json!({ "title": item["tool"], "kind": "other", "status": status }),
        ),
        _ => return Vec::new(),
    };
    vec![update]
}

/// A line of `gemini -o stream-json`.
fn gemini(line: &Value) -> Vec<Value> {
    let id = text_at(line, "/tool_id");
    let update = match text_at(line, "/type") {
        "message" if text_at(line, "/role") == "assistant" => message(text_at(line, "/content")),
        "tool_use" if !id.is_empty() => call(id, text_at(line, "/tool_name"), &line["parameters"]),
        "tool_result" if !id.is_empty() => {
            let status = match text_at(line, "/error/type") {
                "policy_violation" => "denied",
                _ if text_at(line, "/status") == "error" => "failed",
                _ => "completed",
            };
            tool(
                id,
                json!({ "status": status, "rawOutput": { "output": line["output"] } }),
            )
        }
        _ => return Vec::new(),
    };
    vec![update]
}

/// A line of `opencode run --format json`.
fn opencode(line: &Value) -> Vec<Value> {
    let part = &line["part"];
    let (id, name) = (text_at(part, "/callID"), text_at(part, "/tool"));
    if text_at(line, "/type") == "text" {
        return vec![message(&format!("{}\n", text_at(part, "/text")))];
    }
    if id.is_empty() || name.is_empty() {
        return Vec::new();
    }

    let mut update = call(id, name, &part["state"]["input"]);
    update["status"] = match text_at(part, "/state/status") {
        "running" => "in_progress",
        "completed" => "completed",
        // Also for a command that was not allowed, so it is not known to have run.
        "error" => "denied",
        _ => "pending",
    }
    .into();
    let exit = part.pointer("/state/metadata/exit");
    update["rawOutput"] = json!({ "output": part["state"]["output"], "exit_code": exit });
    vec![update]
}

/// Empty if it is missing.
pub(super) fn text_at<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
