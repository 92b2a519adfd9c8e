//! Counts the commands that an agent ran, from its transcript.
//!
//! The agent wrote the transcript, so this is what it reported. A command counts if the agent
//! reported that it started or ended, and as failed only with another exit code than 0, or if the
//! agent reported a failure without any exit code.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{MAX_READ, MAX_TOOLS, exit_code, parse, tool_updates};
use crate::model::acting::ToolStatus;
use crate::model::acting::json_line::text_at;

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
