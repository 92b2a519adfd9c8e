//! Translates the JSON lines of known commands into updates of the Agent Client Protocol.
//!
//! Live progress, the transcript and the count of commands then read one format. A line that is
//! unknown has no updates.

use serde_json::{Value, json};

pub(super) fn updates_of(line: &Value) -> Vec<Value> {
    let readers = [claude, codex, gemini, opencode];
    let updates = readers.iter().map(|read| read(line));
    updates
        .into_iter()
        .find(|updates| !updates.is_empty())
        .unwrap_or_default()
}

fn message(text: &str) -> Value {
    json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })
}

/// With the fields of `fields`.
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
    let is_agent = string(line, "/type") == "assistant";
    let part = |part: &Value| match string(part, "/type") {
        "text" if is_agent => Some(message(&format!("{}\n", string(part, "/text")))),
        "tool_use" => Some(call(
            string(part, "/id"),
            string(part, "/name"),
            &part["input"],
        )),
        "tool_result" => Some(claude_result(part)),
        _ => None,
    };
    let denials = line.get("permission_denials").and_then(Value::as_array);
    let denials = denials.into_iter().flatten();
    let denied = denials.map(|denial| {
        tool(
            string(denial, "/tool_use_id"),
            json!({ "status": "denied" }),
        )
    });
    parts.filter_map(part).chain(denied).collect()
}

fn claude_result(part: &Value) -> Value {
    let texts = part.get("content").and_then(Value::as_array);
    let texts = texts.into_iter().flatten().map(|it| string(it, "/text"));
    let output = match part["content"].as_str() {
        Some(text) => text.to_owned(),
        None => texts.collect::<Vec<_>>().join("\n"),
    };
    let has_failed = part["is_error"].as_bool() == Some(true);
    let code = output.strip_prefix("Exit code ").filter(|_| has_failed);
    let code = code.and_then(|text| text.lines().next()?.trim().parse::<i64>().ok());
    let status = if has_failed { "failed" } else { "completed" };
    tool(
        string(part, "/tool_use_id"),
        json!({ "status": status, "rawOutput": { "output": output, "exit_code": code } }),
    )
}

/// A line of `codex exec --json`.
fn codex(line: &Value) -> Vec<Value> {
    let item = &line["item"];
    let id = string(item, "/id");
    let status = match string(item, "/status") {
        "declined" => "denied",
        status => status,
    };
    let update = match string(item, "/type") {
        "agent_message" => message(&format!("{}\n", string(item, "/text"))),
        "command_execution" => tool(
            id,
            json!({
                "title": item["command"], "kind": "execute", "status": status,
                "rawOutput": { "output": item["aggregated_output"], "exit_code": item["exit_code"] },
            }),
        ),
        "file_change" => {
            let changes = item.get("changes").and_then(Value::as_array);
            let paths = changes.into_iter().flatten().map(|it| string(it, "/path"));
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
    let id = string(line, "/tool_id");
    let update = match string(line, "/type") {
        "message" if string(line, "/role") == "assistant" => message(string(line, "/content")),
        "tool_use" if !id.is_empty() => call(id, string(line, "/tool_name"), &line["parameters"]),
        "tool_result" if !id.is_empty() => {
            let status = match string(line, "/error/type") {
                "policy_violation" => "denied",
                _ if string(line, "/status") == "error" => "failed",
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
    let (id, name) = (string(part, "/callID"), string(part, "/tool"));
    if string(line, "/type") == "text" {
        return vec![message(&format!("{}\n", string(part, "/text")))];
    }
    if id.is_empty() || name.is_empty() {
        return Vec::new();
    }

    let mut update = call(id, name, &part["state"]["input"]);
    update["status"] = match string(part, "/state/status") {
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
pub(super) fn string<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}
