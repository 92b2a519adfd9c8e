//! Parses the event that an agent passes to its hook, and queues it. The event is untrusted: prompt
//! and transcript can have any author.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HookedAgent;
use crate::host::file::{FileMode, Root, make_dirs};
use crate::host::lock::{Lock, LockError, patience};
use crate::text::{floor_char_boundary, foreign_json};
use crate::workflow::hooks;

const MAX_WORDS: usize = 256 << 10;
const MAX_ID: usize = 200;
const UUID_DIGITS: usize = 32;
const SHORT_ID: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookTrigger {
    /// The agent received a prompt and has done nothing yet.
    Prompt,
    /// The agent changed files.
    Tool,
    /// The agent finished the prompt.
    Stop,
    /// The agent finished a prompt whose start it does not report.
    Whole,
}

impl HookTrigger {
    fn of_kind(kind: &str) -> Option<HookTrigger> {
        match kind {
            "UserPromptSubmit" | "BeforeAgent" => Some(HookTrigger::Prompt),
            "PostToolUse" | "AfterTool" => Some(HookTrigger::Tool),
            "Stop" | "AfterAgent" => Some(HookTrigger::Stop),
            "agent-turn-complete" => Some(HookTrigger::Whole),
            _ => None,
        }
    }
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
    /// Files that the agent changed, as absolute paths.
    #[serde(default)]
    pub touched: Vec<PathBuf>,
    /// Working directory of the prompt, if the agent has left its repository since.
    #[serde(default)]
    pub home: Option<PathBuf>,
    /// The agent did not report this end; the next prompt implies it.
    #[serde(default)]
    pub interrupted: bool,
    /// When the hook was called, in nanoseconds since 1970, by the clock of the file system.
    #[serde(skip)]
    pub at: i64,
}

/// `None` for other kinds.
pub fn parse_event(agent: HookedAgent, text: &str) -> anyhow::Result<Option<HookEvent>> {
    let value: Value = foreign_json::parse(text.as_bytes())
        .map_err(|error| anyhow::anyhow!("the event of {} is not JSON: {error}", agent.name()))?;
    let field = |name: &str| value[name].as_str().unwrap_or_default();
    // Codex calls `notify` with keys of its own.
    let is_notify = agent == HookedAgent::Codex && value.get("hook_event_name").is_none();
    let (kind, id) = match is_notify {
        true => (field("type"), field("thread-id")),
        false => (field("hook_event_name"), field("session_id")),
    };
    let Some(trigger) = HookTrigger::of_kind(kind) else {
        return Ok(None);
    };

    anyhow::ensure!(
        !id.is_empty() && id.len() <= MAX_ID,
        "the event of {} has no valid conversation id",
        agent.name()
    );
    let prompt = match is_notify {
        true => messages(&value["input-messages"]),
        false => field("prompt").to_owned(),
    };
    let reply = match agent {
        HookedAgent::Codex if is_notify => field("last-assistant-message"),
        HookedAgent::Gemini => field("prompt_response"),
        HookedAgent::Claude | HookedAgent::Codex => field("last_assistant_message"),
    };
    let path = |name: &str| {
        Some(field(name))
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };
    // A relative path would depend on where the queue is handled.
    let dir = path("cwd").filter(|dir| dir.is_absolute());
    let touched = match trigger {
        HookTrigger::Tool => touched_files(&value["tool_input"], dir.as_deref()),
        _ => Vec::new(),
    };
    if trigger == HookTrigger::Tool && touched.is_empty() {
        return Ok(None);
    }

    Ok(Some(HookEvent {
        agent,
        moment: trigger,
        conversation: id.to_owned(),
        folder: dir,
        words: cut(&prompt).to_owned(),
        said: cut(reply).to_owned(),
        transcript: path("transcript_path"),
        touched,
        home: None,
        interrupted: false,
        at: 0,
    }))
}

const MAX_TOUCHED: usize = 500;

/// Files that the arguments of a writing tool name.
fn touched_files(arguments: &Value, dir: Option<&Path>) -> Vec<PathBuf> {
    let keys = ["file_path", "notebook_path", "absolute_path", "path"];
    let named = keys.iter().filter_map(|key| arguments[*key].as_str());
    let command = &arguments["command"];
    let patches = command.as_array().into_iter().flatten().chain([command]);
    let patched = patches.filter_map(Value::as_str).flat_map(patched_files);
    let absolute = |path: &str| match dir {
        Some(dir) => Some(dir.join(path)),
        None => Some(PathBuf::from(path)).filter(|path| path.is_absolute()),
    };
    named
        .chain(patched)
        .filter_map(absolute)
        .take(MAX_TOUCHED)
        .collect()
}

fn patched_files(patch: &str) -> impl Iterator<Item = &str> {
    let markers = [
        "*** Add File: ",
        "*** Update File: ",
        "*** Delete File: ",
        "*** Move to: ",
    ];
    let file = move |line: &'_ str| {
        let start = markers.iter().find(|marker| line.starts_with(**marker))?;
        Some(line.len() - line[start.len()..].len())
    };
    let lines = patch.lines().filter(|_| patch.contains("*** Begin Patch"));
    lines.filter_map(move |line| Some(line[file(line)?..].trim()))
}

fn messages(value: &Value) -> String {
    let messages = value.as_array().into_iter().flatten();
    let texts: Vec<&str> = messages.filter_map(Value::as_str).collect();
    texts.join("\n\n")
}

fn cut(text: &str) -> &str {
    &text[..floor_char_boundary(text, MAX_WORDS)]
}

impl HookEvent {
    /// Working directory of the prompt.
    pub fn checkout(&self) -> Option<&Path> {
        self.home.as_deref().or(self.folder.as_deref())
    }

    /// Name of a file about the conversation.
    pub fn conversation_file(&self) -> String {
        // The id is the agent's and could contain a path.
        let id = crate::text::digest(&self.conversation);
        format!("{}-{id}.json", self.agent.name())
    }

    /// Session name for the conversation: the agent and a part of its id.
    pub fn session(&self) -> String {
        let id = self.conversation.to_ascii_lowercase();
        let id: Vec<char> = id.chars().filter(char::is_ascii_alphanumeric).collect();
        // The first digits of a UUID of version 7 are a time: the same for conversations of one
        // minute.
        let is_timed = id.len() == UUID_DIGITS && id[12] == '7';
        let short: String = match is_timed {
            true => id[UUID_DIGITS - SHORT_ID..].iter().collect(),
            false => id.iter().take(SHORT_ID).collect(),
        };
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

/// Appends an event. Returns how many wait.
pub fn enqueue(hooks: &Path, event: &HookEvent) -> anyhow::Result<usize> {
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
            written => {
                written?;
                break;
            }
        }
    }

    Ok(waiting.len() + 1)
}

/// One process at a time. Notes and skips a failing event.
pub fn drain_queue(
    hooks: &Path,
    take: &mut dyn FnMut(&HookEvent) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let root = open_queue(hooks)?;
    // Two processes would record the same prompt twice.
    let _lock = Lock::take(hooks, "hook", patience())?;
    while let Some(name) = next_event(&root)? {
        match read_event(&root, &name).and_then(|event| take(&event)) {
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

/// The oldest event. One of a tool goes before those of other conversations: the files that it names
/// do not belong to a turn that ends now.
fn next_event(root: &Root) -> anyhow::Result<Option<PathBuf>> {
    let waiting = queued_events(root)?;
    let mut conversations = HashSet::new();
    for (_, name) in &waiting {
        let Ok(event) = read_event(root, name) else {
            continue;
        };
        let is_first = conversations.insert(event.conversation_file());
        if is_first && event.moment == HookTrigger::Tool {
            return Ok(Some(name.clone()));
        }
    }
    Ok(waiting.into_iter().next().map(|(_, name)| name))
}

fn read_event(root: &Root, name: &Path) -> anyhow::Result<HookEvent> {
    let bytes = root.read(name, MAX_EVENT)?;
    let at = root.entry(name)?.map_or(0, |file| file.modified);
    let event = serde_json::from_slice::<HookEvent>(&bytes)?;
    Ok(HookEvent { at, ..event })
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

pub(super) fn is_lock_busy(error: &anyhow::Error) -> bool {
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
            HookedAgent::Codex,
            r#"{"session_id":"019a7c1e-1111-7000-8000-0123456789ab","cwd":"/p",
               "hook_event_name":"UserPromptSubmit","prompt":"p","turn_id":"1"}"#,
            (HookTrigger::Prompt, "codex-456789ab", "p", ""),
        );
        check(
            HookedAgent::Codex,
            r#"{"session_id":"t","hook_event_name":"Stop","last_assistant_message":"done"}"#,
            (HookTrigger::Stop, "codex-t", "", "done"),
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
    fn the_files_that_a_tool_changed_are_read() {
        let touched = |agent, input: &str| {
            let text = format!(
                r#"{{"session_id":"s","cwd":"/p","hook_event_name":"PostToolUse","tool_input":{input}}}"#
            );
            let event = parse_event(agent, &text).unwrap();
            event.map_or_else(Vec::new, |event| event.touched)
        };
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let edited = touched(HookedAgent::Claude, r#"{"file_path":"/q/a b"}"#);
        assert_eq!(edited, paths(&["/q/a b"]));
        let patch =
            r#"{"command":"*** Begin Patch\n*** Update File: a\n*** Move to: b/c\n*** End Patch"}"#;
        assert_eq!(
            touched(HookedAgent::Codex, patch),
            paths(&["/p/a", "/p/b/c"])
        );
        let command = r#"{"command":"echo '*** Add File: x'"}"#;
        assert_eq!(touched(HookedAgent::Claude, command), paths(&[]));
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
            touched: Vec::new(),
            home: None,
            interrupted: false,
            at: 0,
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
    fn an_event_of_a_tool_is_taken_before_the_end_of_another_conversation() {
        let dir = tempfile::tempdir().unwrap();
        let events = [
            ("x", HookTrigger::Stop),
            ("y", HookTrigger::Tool),
            ("z", HookTrigger::Prompt),
            ("z", HookTrigger::Tool),
            ("x", HookTrigger::Tool),
            ("y", HookTrigger::Tool),
        ];
        for (conversation, moment) in events {
            let conversation = conversation.to_owned();
            let event = HookEvent {
                conversation,
                moment,
                ..event("")
            };
            enqueue(dir.path(), &event).unwrap();
        }
        let mut handled = Vec::new();
        drain_queue(dir.path(), &mut |event| {
            handled.push((event.conversation.clone(), event.moment));
            Ok(())
        })
        .unwrap();
        let order = [1, 5, 0, 4, 2, 3].map(|at| (events[at].0.to_owned(), events[at].1));
        assert_eq!(handled, order);
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
