//! Parses the event that an agent passes to its hook, and queues it. The event is untrusted: prompt
//! and transcript can have any author.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HookedAgent;
use crate::host::file::{FileMode, Root, make_dirs};
use crate::host::lock::{Lock, LockError, patience};
use crate::workflow::hooks;

const MAX_WORDS: usize = 256 << 10;
const MAX_ID: usize = 200;

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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookEvent {
    pub agent: HookedAgent,
    pub moment: HookTrigger,
    pub conversation: String,
    /// `None` for that of the hook.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    #[serde(default)]
    pub words: String,
    /// The agent's last message.
    #[serde(default)]
    pub said: String,
    /// According to the agent.
    #[serde(default)]
    pub transcript: Option<PathBuf>,
}

/// `None` for other kinds.
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
    /// The agent and the start of the conversation's id.
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

/// With more, nothing has handled the queue for a long time.
const MAX_QUEUED: usize = 1000;

const MAX_EVENT: u64 = 4 << 20;

pub fn enqueue(hooks: &Path, event: &HookEvent) -> anyhow::Result<()> {
    let root = open_queue(hooks)?;
    let text = serde_json::to_string(event)?;
    let waiting = queued_events(&root)?;
    anyhow::ensure!(
        waiting.len() < MAX_QUEUED,
        "{MAX_QUEUED} prompts wait to be recorded"
    );
    let last = waiting.last().map_or(0, |(number, _)| *number);

    // Hooks can run concurrently. `create_new` makes each number unique.
    for number in last + 1.. {
        let name = PathBuf::from(format!("{number:08}.json"));
        match root.create_new(&name, text.as_bytes(), FileMode::Plain) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            written => return Ok(written?),
        }
    }

    Ok(())
}

/// One process at a time. Notes and skips a failing event.
pub fn drain_queue(
    hooks: &Path,
    take: &mut dyn FnMut(&HookEvent) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let root = open_queue(hooks)?;
    // Two processes would record the same prompt twice.
    let _lock = Lock::take(hooks, "hook", patience())?;
    while let Some((_, name)) = queued_events(&root)?.into_iter().next() {
        let read = root.read(&name, MAX_EVENT).map_err(anyhow::Error::from);
        let event = read.and_then(|bytes| Ok(serde_json::from_slice::<HookEvent>(&bytes)?));
        match event.and_then(|event| take(&event)) {
            // Another command holds the lock. Keep the event for the next run.
            Err(error) if is_lock_busy(&error) => {
                hooks::note_error(hooks, &format!("{error:#}"));
                return Ok(());
            }
            Err(error) => hooks::note_error(hooks, &format!("{error:#}")),
            Ok(()) => hooks::clear_errors(hooks),
        }

        // A failing event is removed as well, because it would block those behind it.
        std::fs::remove_file(hooks.join(QUEUE_DIR).join(&name))?;
    }

    Ok(())
}

const QUEUE_DIR: &str = "queue";

fn open_queue(hooks: &Path) -> anyhow::Result<Root> {
    make_dirs(&hooks.join(QUEUE_DIR))?;
    Ok(Root::open(&hooks.join(QUEUE_DIR))?)
}

fn queued_events(root: &Root) -> anyhow::Result<Vec<(u64, PathBuf)>> {
    let names = root.names()?.into_iter();
    let mut waiting: Vec<(u64, PathBuf)> = names
        .filter_map(|name| {
            let number = name.to_str()?.strip_suffix(".json")?.parse().ok()?;
            Some((number, name.into()))
        })
        .collect();
    waiting.sort();
    Ok(waiting)
}

fn is_lock_busy(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(LockError::Busy { .. }))
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

#[cfg(test)]
mod queue_tests {
    use super::super::HookedAgent;
    use super::super::event::HookTrigger;
    use super::*;

    fn event(prompt: &str) -> HookEvent {
        HookEvent {
            agent: HookedAgent::Claude,
            moment: HookTrigger::Prompt,
            conversation: "c".to_owned(),
            folder: None,
            words: prompt.to_owned(),
            said: String::new(),
            transcript: None,
        }
    }

    #[test]
    fn events_are_taken_in_order_and_a_bad_one_does_not_stop_the_others() {
        let dir = tempfile::tempdir().unwrap();
        for prompt in ["1", "2", "3"] {
            enqueue(dir.path(), &event(prompt)).unwrap();
        }
        std::fs::write(dir.path().join("queue/00000002.json"), "{").unwrap();
        let mut handled = Vec::new();
        drain_queue(dir.path(), &mut |event| {
            handled.push(event.words.clone());
            anyhow::ensure!(event.words != "3", "three is wrong");
            Ok(())
        })
        .unwrap();
        assert_eq!(handled, ["1", "3"]);
        let noted = hooks::read_errors(dir.path());
        assert_eq!(noted.len(), 2, "{noted:?}");
        assert!(noted[1].ends_with("three is wrong"), "{noted:?}");
        assert_eq!(queued_events(&open_queue(dir.path()).unwrap()).unwrap(), []);
    }

    #[test]
    fn an_event_waits_while_another_process_is_at_work() {
        let dir = tempfile::tempdir().unwrap();
        enqueue(dir.path(), &event("1")).unwrap();
        let busy = || LockError::Busy {
            holder: "process 1".to_owned(),
        };
        drain_queue(dir.path(), &mut |_| Err(busy().into())).unwrap();
        let mut handled = 0;
        drain_queue(dir.path(), &mut |_| {
            handled += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!((handled, hooks::read_errors(dir.path()).len()), (1, 0));
    }

    #[test]
    fn every_event_of_many_hooks_is_there() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        enqueue(dir.path(), &event("x")).unwrap();
                    }
                });
            }
        });
        assert_eq!(
            queued_events(&open_queue(dir.path()).unwrap())
                .unwrap()
                .len(),
            80
        );
    }
}
