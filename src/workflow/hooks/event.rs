//! What an agent tells its hook: read as anybody's, since whatever writes the transcript or the
//! prompt has a say in it. Pure.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HookedAgent;

/// The longest words that are kept, in bytes.
const MAX_WORDS: usize = 256 << 10;
/// The longest id of a conversation.
const MAX_ID: usize = 200;

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookMoment {
    /// The agent got a prompt and has done nothing yet.
    Prompt,
    /// It is done with it.
    Stop,
    /// It is done with a prompt that was not told before.
    Whole,
}

/// What an agent told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEvent {
    /// The agent.
    pub agent: HookedAgent,
    /// When.
    pub moment: HookMoment,
    /// The agent's own id of its conversation.
    pub conversation: String,
    /// The folder in which it works; the hook's own without it.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    /// The user's words.
    #[serde(default)]
    pub words: String,
    /// What the agent said last.
    #[serde(default)]
    pub said: String,
    /// Where it says that its transcript is.
    #[serde(default)]
    pub transcript: Option<PathBuf>,
}

/// Reads what an agent tells; nothing if it is about something else.
///
/// # Errors
/// It is not what such an agent tells.
pub fn read(agent: HookedAgent, text: &str) -> anyhow::Result<Option<HookEvent>> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| anyhow::anyhow!("what {} tells is not JSON: {error}", agent.name()))?;
    let field = |name: &str| value[name].as_str().unwrap_or_default();
    let (kind, id) = match agent {
        HookedAgent::Codex => (field("type"), field("thread-id")),
        _ => (field("hook_event_name"), field("session_id")),
    };
    let moment = match kind {
        "UserPromptSubmit" | "BeforeAgent" => HookMoment::Prompt,
        "Stop" | "AfterAgent" => HookMoment::Stop,
        "agent-turn-complete" => HookMoment::Whole,
        _ => return Ok(None),
    };

    anyhow::ensure!(
        !id.is_empty() && id.len() <= MAX_ID,
        "{} does not say which conversation it is",
        agent.name()
    );
    let words = match agent {
        HookedAgent::Codex => messages(&value["input-messages"]),
        _ => field("prompt").to_owned(),
    };
    let said = match agent {
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
        moment,
        conversation: id.to_owned(),
        folder: path("cwd").filter(|folder| folder.is_absolute()),
        words: cut(&words).to_owned(),
        said: cut(said).to_owned(),
        transcript: path("transcript_path"),
    }))
}

/// Returns messages as one text.
fn messages(value: &Value) -> String {
    let messages = value.as_array().into_iter().flatten();
    let texts: Vec<&str> = messages.filter_map(Value::as_str).collect();
    texts.join("\n\n")
}

/// Returns as much of a text as is kept.
fn cut(text: &str) -> &str {
    let ends = (0..=text.len().min(MAX_WORDS)).rev();
    let end = ends.into_iter().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

impl HookEvent {
    /// Returns a name for the conversation: the agent, and what tells it from others.
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
    fn check(agent: HookedAgent, text: &str, expected: (HookMoment, &str, &str, &str)) {
        let event = read(agent, text).unwrap().unwrap();
        let found = (
            event.moment,
            event.session(),
            event.words.as_str(),
            event.said.as_str(),
        );
        let (moment, session, words, said) = expected;
        assert_eq!(found, (moment, session.to_owned(), words, said));
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<HookEvent>(&json).unwrap(), event);
    }

    #[test]
    fn what_each_agent_tells_is_read() {
        check(
            HookedAgent::Claude,
            r#"{"session_id":"0AF1-b2c3-d4e5","transcript_path":"/x","cwd":"/p",
               "hook_event_name":"UserPromptSubmit","prompt":"add a form"}"#,
            (HookMoment::Prompt, "claude-0af1b2c3", "add a form", ""),
        );
        check(
            HookedAgent::Gemini,
            r#"{"session_id":"s","hook_event_name":"AfterAgent","prompt":"p","prompt_response":"r"}"#,
            (HookMoment::Stop, "gemini-s", "p", "r"),
        );
        check(
            HookedAgent::Codex,
            r#"{"type":"agent-turn-complete","thread-id":"t-1","turn-id":"1","cwd":"/p",
               "input-messages":["a","b"],"last-assistant-message":"done"}"#,
            (HookMoment::Whole, "codex-t1", "a\n\nb", "done"),
        );
        check(
            HookedAgent::Claude,
            r#"{"session_id":"é","hook_event_name":"Stop"}"#,
            (HookMoment::Stop, "claude-4a99557e4033", "", ""),
        );
    }

    #[test]
    fn what_is_about_something_else_is_passed_over() {
        let other = r#"{"session_id":"s","hook_event_name":"PreToolUse"}"#;
        assert_eq!(read(HookedAgent::Claude, other).unwrap(), None);
    }

    #[test]
    fn what_no_agent_tells_is_an_error() {
        for text in ["", "{", r#"{"hook_event_name":"Stop"}"#] {
            assert!(read(HookedAgent::Claude, text).is_err(), "{text}");
        }
        let long = format!(
            r#"{{"hook_event_name":"Stop","session_id":"{}"}}"#,
            "x".repeat(201)
        );
        assert!(read(HookedAgent::Claude, &long).is_err());
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        let words = "é".repeat(MAX_WORDS);
        let text = format!(r#"{{"hook_event_name":"Stop","session_id":"s","prompt":"x{words}"}}"#);
        let event = read(HookedAgent::Claude, &text).unwrap().unwrap();
        assert_eq!(event.words.len(), MAX_WORDS - 1);
    }
}
