//! Parses the event that an agent passes to its hook. Untrusted: prompt and transcript can have any
//! author. Pure.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HookedAgent;

const MAX_WORDS: usize = 256 << 10;
const MAX_ID: usize = 200;

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookTrigger {
    /// The agent received a prompt and has done nothing yet.
    Prompt,
    /// The agent finished the prompt.
    Stop,
    /// The agent finished a prompt whose start it does not report.
    Whole,
}

/// An event of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEvent {
    /// The agent.
    pub agent: HookedAgent,
    /// Kind of event.
    pub moment: HookTrigger,
    /// The agent's id of the conversation.
    pub conversation: String,
    /// Working directory of the agent; `None` for that of the hook.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    /// The user's prompt.
    #[serde(default)]
    pub words: String,
    /// The agent's last message.
    #[serde(default)]
    pub said: String,
    /// Path of the transcript, according to the agent.
    #[serde(default)]
    pub transcript: Option<PathBuf>,
}

/// Parses an event. `None` for other kinds.
pub fn parse_event(agent: HookedAgent, text: &str) -> anyhow::Result<Option<HookEvent>> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| anyhow::anyhow!("what {} tells is not JSON: {error}", agent.name()))?;
    let field = |name: &str| value[name].as_str().unwrap_or_default();
    let (kind, id) = match agent {
        HookedAgent::Codex => (field("type"), field("thread-id")),
        _ => (field("hook_event_name"), field("session_id")),
    };
    let trigger = match kind {
        "UserPromptSubmit" | "BeforeAgent" => HookTrigger::Prompt,
        "Stop" | "AfterAgent" => HookTrigger::Stop,
        "agent-turn-complete" => HookTrigger::Whole,
        _ => return Ok(None),
    };

    anyhow::ensure!(
        !id.is_empty() && id.len() <= MAX_ID,
        "{} does not say which conversation it is",
        agent.name()
    );
    let prompt = match agent {
        HookedAgent::Codex => messages(&value["input-messages"]),
        _ => field("prompt").to_owned(),
    };
    let reply = match agent {
        HookedAgent::Codex => field("last-assistant-message"),
        HookedAgent::Gemini => field("prompt_response"),
        HookedAgent::Claude => field("last_assistant_message"),
    };
    let path = |name: &str| {
        Some(field(name))
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };

    Ok(Some(HookEvent {
        agent,
        moment: trigger,
        conversation: id.to_owned(),
        // A relative path would depend on where the queue is handled.
        folder: path("cwd").filter(|dir| dir.is_absolute()),
        words: cut(&prompt).to_owned(),
        said: cut(reply).to_owned(),
        transcript: path("transcript_path"),
    }))
}

fn messages(value: &Value) -> String {
    let messages = value.as_array().into_iter().flatten();
    let texts: Vec<&str> = messages.filter_map(Value::as_str).collect();
    texts.join("\n\n")
}

fn cut(text: &str) -> &str {
    let ends = (0..=text.len().min(MAX_WORDS)).rev();
    let end = ends.into_iter().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

impl HookEvent {
    /// Session name for the conversation: the agent and the start of its id.
    pub fn session(&self) -> String {
        let id = self.conversation.to_ascii_lowercase();
        let short: String = id
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(8)
            .collect();
        let name = self.agent.name();
        match short.is_empty() {
            true => format!("{name}-{}", crate::text::digest(&self.conversation)),
            false => format!("{name}-{short}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(agent: HookedAgent, text: &str, expected: (HookTrigger, &str, &str, &str)) {
        let event = parse_event(agent, text).unwrap().unwrap();
        let actual = (
            event.moment,
            event.session(),
            event.words.as_str(),
            event.said.as_str(),
        );
        let (trigger, session, prompt, reply) = expected;
        assert_eq!(actual, (trigger, session.to_owned(), prompt, reply));
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<HookEvent>(&json).unwrap(), event);
    }

    #[test]
    fn what_each_agent_tells_is_read() {
        check(
            HookedAgent::Claude,
            r#"{"session_id":"0AF1-b2c3-d4e5","transcript_path":"/x","cwd":"/p",
               "hook_event_name":"UserPromptSubmit","prompt":"add a form"}"#,
            (HookTrigger::Prompt, "claude-0af1b2c3", "add a form", ""),
        );
        check(
            HookedAgent::Gemini,
            r#"{"session_id":"s","hook_event_name":"AfterAgent","prompt":"p","prompt_response":"r"}"#,
            (HookTrigger::Stop, "gemini-s", "p", "r"),
        );
        check(
            HookedAgent::Codex,
            r#"{"type":"agent-turn-complete","thread-id":"t-1","turn-id":"1","cwd":"/p",
               "input-messages":["a","b"],"last-assistant-message":"done"}"#,
            (HookTrigger::Whole, "codex-t1", "a\n\nb", "done"),
        );
        check(
            HookedAgent::Claude,
            r#"{"session_id":"é","hook_event_name":"Stop"}"#,
            (HookTrigger::Stop, "claude-4a99557e4033", "", ""),
        );
    }

    #[test]
    fn what_is_about_something_else_is_passed_over() {
        let other = r#"{"session_id":"s","hook_event_name":"PreToolUse"}"#;
        assert_eq!(parse_event(HookedAgent::Claude, other).unwrap(), None);
    }

    #[test]
    fn what_no_agent_tells_is_an_error() {
        for text in ["", "{", r#"{"hook_event_name":"Stop"}"#] {
            assert!(parse_event(HookedAgent::Claude, text).is_err(), "{text}");
        }
        let long = format!(
            r#"{{"hook_event_name":"Stop","session_id":"{}"}}"#,
            "x".repeat(201)
        );
        assert!(parse_event(HookedAgent::Claude, &long).is_err());
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        let long_prompt = "é".repeat(MAX_WORDS);
        let text =
            format!(r#"{{"hook_event_name":"Stop","session_id":"s","prompt":"x{long_prompt}"}}"#);
        let event = parse_event(HookedAgent::Claude, &text).unwrap().unwrap();
        assert_eq!(event.words.len(), MAX_WORDS - 1);
    }
}
