//! Adapts a request to a server that rejects one of its fields, and remembers what a server rejects.
//!
//! Only fields that TeDDy added are changed, each once, so a request is repeated a few times at most.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::host::file::{read_regular, write_atomic};
use crate::text::digest;

const MAX_FILE: u64 = 4096;

/// A change of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adaptation {
    /// Ask for no usage in the stream.
    NoStreamOptions,
    /// Use the new name of `max_tokens`.
    NewLimitName,
    /// Send no limit of the answer.
    NoLimit,
    NoTemperature,
    /// Put the system prompt into the message.
    NoSystem,
    /// Ask for the answer in one piece.
    NoStream,
}

const LIMITS: [&str; 3] = ["max_tokens", "max_output_tokens", "max_completion_tokens"];

/// In the order in which they are tried: the name, and the words for it in a server's message.
const ALL: [(&str, Adaptation, &[&str]); 6] = [
    (
        "stream_options",
        Adaptation::NoStreamOptions,
        &["stream_options"],
    ),
    (
        "max_completion_tokens",
        Adaptation::NewLimitName,
        &["max_completion_tokens"],
    ),
    ("max_tokens", Adaptation::NoLimit, &LIMITS),
    ("temperature", Adaptation::NoTemperature, &["temperature"]),
    ("system", Adaptation::NoSystem, &["system", "developer"]),
    ("stream", Adaptation::NoStream, &["stream"]),
];

/// Phrases for a field that a server does not take, in lower case.
const REJECTED: [&str; 16] = [
    "unsupported",
    "not support",
    "not allowed",
    "not permitted",
    "not enabled",
    "not available",
    "unknown",
    "unrecognized",
    "unexpected",
    "unrecognised",
    "deprecated",
    "invalid",
    "cannot both",
    "extra inputs",
    "only the default",
    "must be",
];

impl Adaptation {
    /// Name of the field that is not sent.
    pub fn name(self) -> &'static str {
        let row = ALL.iter().find(|(_, adaptation, _)| *adaptation == self);
        row.map_or("", |(name, ..)| name)
    }

    /// Chooses the change for a server's message and applies it. `own` are fields of the user, which
    /// stay. `None` if nothing can be changed.
    pub fn choose(
        body: &mut Value,
        message: &str,
        own: &Map<String, Value>,
        possible: &[Adaptation],
    ) -> Option<Adaptation> {
        let message = message.to_ascii_lowercase();
        let names = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if !names(&REJECTED) {
            return None;
        }

        let fitting = ALL.iter().filter(|(_, _, words)| names(words));
        fitting
            .map(|(_, adaptation, _)| *adaptation)
            .filter(|adaptation| possible.contains(adaptation))
            .find(|adaptation| adaptation.apply(body, own))
    }

    /// Applies the change. `false` if there is nothing to change.
    pub fn apply(self, body: &mut Value, own: &Map<String, Value>) -> bool {
        let Some(fields) = body.as_object_mut() else {
            return false;
        };
        let remove = |fields: &mut Map<String, Value>, name: &str| match own.contains_key(name) {
            true => None,
            false => fields.remove(name),
        };
        match self {
            Adaptation::NoStreamOptions => remove(fields, "stream_options").is_some(),
            Adaptation::NewLimitName => {
                let limit = remove(fields, "max_tokens");
                let is_there = limit.is_some();
                fields.extend(limit.map(|limit| ("max_completion_tokens".to_owned(), limit)));
                is_there
            }
            Adaptation::NoLimit => LIMITS.iter().any(|name| remove(fields, name).is_some()),
            Adaptation::NoTemperature => remove(fields, "temperature").is_some(),
            Adaptation::NoSystem => merge_system(fields),
            Adaptation::NoStream => {
                if own.contains_key("stream") || fields.get("stream") != Some(&Value::Bool(true)) {
                    return false;
                }
                fields.insert("stream".to_owned(), Value::Bool(false));
                remove(fields, "stream_options");
                true
            }
        }
    }
}

/// Puts the system prompt in front of the message. `false` if there is none.
fn merge_system(fields: &mut Map<String, Value>) -> bool {
    let prepend = |system: &str, text: &mut Value| {
        let message = text.as_str().unwrap_or_default();
        *text = Value::from(format!("{}\n\n{message}", system.trim_end()));
    };
    if let (Some(Value::String(system)), true) = (
        fields.get("instructions").cloned(),
        fields.contains_key("input"),
    ) {
        fields.remove("instructions");
        prepend(&system, &mut fields["input"]);
        return true;
    }

    let Some(Value::Array(messages)) = fields.get_mut("messages") else {
        return false;
    };
    if messages.len() < 2 || messages[0]["role"] != "system" {
        return false;
    }
    let system = messages.remove(0);
    let system = system["content"].as_str().unwrap_or_default();
    prepend(system, &mut messages[0]["content"]);
    true
}

/// What a server rejects for a model, kept in a directory of the cache.
#[derive(Debug, Clone)]
pub struct Remembered {
    /// `None` forgets.
    file: Option<PathBuf>,
}

impl Remembered {
    /// Opens the memory for a model at an address.
    pub fn open(dir: Option<&Path>, address: &str, id: &str) -> Remembered {
        let name = format!("{}.json", digest(&format!("{address}\n{id}")));
        Remembered {
            file: dir.map(|dir| dir.join(name)),
        }
    }

    /// The changes that the last answer needed.
    pub fn read(&self) -> Vec<Adaptation> {
        let bytes = self
            .file
            .as_ref()
            .and_then(|file| read_regular(file, MAX_FILE).ok());
        let names: Vec<String> = bytes
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let known = |name: &String| ALL.iter().find(|(known, ..)| known == name);
        names.iter().filter_map(known).map(|row| row.1).collect()
    }

    /// Remembers changes. The memory only saves requests, so a failure does not matter.
    pub fn write(&self, adaptations: &[Adaptation]) {
        let names: Vec<&str> = adaptations
            .iter()
            .map(|adaptation| adaptation.name())
            .collect();
        let text = Value::from(names).to_string();
        if let Some(file) = &self.file {
            let _ = write_atomic(file, text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EVERY: [Adaptation; 6] = [
        Adaptation::NoStreamOptions,
        Adaptation::NewLimitName,
        Adaptation::NoLimit,
        Adaptation::NoTemperature,
        Adaptation::NoSystem,
        Adaptation::NoStream,
    ];

    /// What servers say, and the field that goes.
    #[test]
    fn each_servers_message_is_understood() {
        for (message, expected) in [
            (
                "Unrecognized request argument supplied: stream_options",
                Some("stream_options"),
            ),
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Some("max_completion_tokens"),
            ),
            (
                "Unsupported parameter: max_output_tokens",
                Some("max_tokens"),
            ),
            (
                "max_tokens: Extra inputs are not permitted",
                Some("max_tokens"),
            ),
            (
                "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
                Some("temperature"),
            ),
            (
                "`temperature` is deprecated for this model.",
                Some("temperature"),
            ),
            (
                "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
                Some("system"),
            ),
            ("System role not supported", Some("system")),
            (
                "Developer instruction is not enabled for models/gemma-3",
                Some("system"),
            ),
            ("Invalid value for stream: must be false", Some("stream")),
            ("This model's maximum context length is 8192 tokens", None),
            ("temperature 3 is hot", None),
        ] {
            let mut body = json!({ "messages": [
                { "role": "system", "content": "S" }, { "role": "user", "content": "U" },
            ], "stream": true, "stream_options": {}, "max_tokens": 5, "temperature": 0.2 });
            let chosen = Adaptation::choose(&mut body, message, &Map::new(), &EVERY);
            assert_eq!(chosen.map(Adaptation::name), expected, "{message}");
        }
    }

    #[test]
    fn a_change_is_made_once_and_fields_of_the_user_stay() {
        let mut own = Map::new();
        own.insert("temperature".to_owned(), json!(1));
        let mut body = json!({ "messages": [
            { "role": "system", "content": "S\n" }, { "role": "user", "content": "U" },
        ], "stream": true, "stream_options": {}, "max_tokens": 5, "temperature": 1 });
        let applied = EVERY.map(|adaptation| adaptation.apply(&mut body, &own));
        assert_eq!(applied, [true, true, true, false, true, true]);
        let expected = json!({ "messages": [{ "role": "user", "content": "S\n\nU" }],
            "stream": false, "temperature": 1 });
        assert_eq!(body, expected);
        assert_eq!(
            EVERY.map(|adaptation| adaptation.apply(&mut body, &own)),
            [false; 6]
        );

        let mut body = json!({ "instructions": "S", "input": "U" });
        assert!(Adaptation::NoSystem.apply(&mut body, &own));
        assert_eq!(body, json!({ "input": "S\n\nU" }));
    }

    #[test]
    fn what_is_remembered_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let memory = Remembered::open(Some(dir.path()), "http://a", "m");
        assert_eq!(memory.read(), []);
        memory.write(&[Adaptation::NoSystem, Adaptation::NewLimitName]);
        assert_eq!(
            memory.read(),
            [Adaptation::NoSystem, Adaptation::NewLimitName]
        );
        assert_eq!(
            Remembered::open(Some(dir.path()), "http://a", "n").read(),
            []
        );
    }
}
