//! What is known of a conversation of an agent: its session, and the prompt that it works on.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::event::HookEvent;
use crate::git::object::CommitId;
use crate::host::file::{make_folders, read_regular, write_atomic};
use crate::text::digest;
use crate::workflow::record::RecordStart;

/// The largest file that is read.
const MAX_FILE: u64 = 4 << 20;

/// A conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Conversation {
    /// Its session.
    pub session: String,
    /// The prompt that is not done yet.
    #[serde(default)]
    pub prompt: Option<OpenPrompt>,
}

/// A prompt that an agent works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenPrompt {
    /// The user's words.
    pub words: String,
    /// The user's files when it came.
    pub files: CommitId,
    /// What had been brought to them last.
    #[serde(default)]
    pub published: Option<CommitId>,
    /// How long the transcript was.
    #[serde(default)]
    pub transcript_from: u64,
}

impl OpenPrompt {
    /// Returns where the work on it began.
    pub(super) fn start(&self) -> RecordStart {
        RecordStart {
            files: self.files,
            published: self.published,
        }
    }
}

/// Reads what is known of the conversation of an event; nothing if that is the first of it.
pub(super) fn read(hooks: &Path, event: &HookEvent) -> Option<Conversation> {
    let bytes = read_regular(&file(hooks, event), MAX_FILE).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Writes it.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(hooks: &Path, event: &HookEvent, known: &Conversation) -> anyhow::Result<()> {
    let path = file(hooks, event);
    let folder = path.parent().expect("the file has a folder");
    let text = serde_json::to_string(known)?;
    make_folders(folder)
        .and_then(|()| write_atomic(&path, text.as_bytes()))
        .with_context(|| format!("writing `{}`", path.display()))
}

/// Returns the file of a conversation.
fn file(hooks: &Path, event: &HookEvent) -> PathBuf {
    let name = format!(
        "{}-{}.json",
        event.agent.name(),
        digest(&event.conversation)
    );
    hooks.join("conversations").join(name)
}
