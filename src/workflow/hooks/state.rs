//! State of an agent's conversation: its session, and the prompt it is working on.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::event::HookEvent;
use crate::git::object::CommitId;
use crate::host::file::{make_dirs, read_regular, write_atomic};
use crate::text::digest;
use crate::workflow::record::RecordStart;

const MAX_CONVERSATION: u64 = 4 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Conversation {
    pub session: String,
    #[serde(default)]
    pub prompt: Option<OpenPrompt>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OpenPrompt {
    pub words: String,
    /// Workspace commit when the prompt arrived.
    pub files: CommitId,
    /// Last publication at that time.
    #[serde(default)]
    pub published: Option<CommitId>,
    /// Length of the transcript at that time.
    #[serde(default)]
    pub transcript_from: u64,
}

impl OpenPrompt {
    pub(super) fn start(&self) -> RecordStart {
        RecordStart {
            files: self.files,
            published: self.published,
        }
    }
}

/// `None` for a new conversation.
pub(super) fn read_conversation(hooks: &Path, event: &HookEvent) -> Option<Conversation> {
    let bytes = read_regular(&conversation_file(hooks, event), MAX_CONVERSATION).ok()?;
    serde_json::from_slice(&bytes).ok()
}

pub(super) fn write_conversation(
    hooks: &Path,
    event: &HookEvent,
    conversation: &Conversation,
) -> anyhow::Result<()> {
    let path = conversation_file(hooks, event);
    let dir = path.parent().expect("the file has a folder");
    let text = serde_json::to_string(conversation)?;
    make_dirs(dir)
        .and_then(|()| write_atomic(&path, text.as_bytes()))
        .with_context(|| format!("writing `{}`", path.display()))
}

fn conversation_file(hooks: &Path, event: &HookEvent) -> PathBuf {
    let name = format!(
        "{}-{}.json",
        event.agent.name(),
        // The id is the agent's and could contain a path.
        digest(&event.conversation)
    );
    hooks.join("conversations").join(name)
}
