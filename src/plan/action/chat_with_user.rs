//! CHAT_WITH_USER: says something to the user and waits for the answer.

use super::body::Body;
use super::shape::{BodyShape, SummaryGroup};
use super::{ActionKind, ActionRow};

/// The row of the table.
pub static ROW: ActionRow = ActionRow {
    name: "CHAT_WITH_USER",
    aliases: &["PROMPT"],
    other_names: &["CHAT", "ASK_USER", "ASK", "MESSAGE", "REPLY", "RESPOND"],
    keys: &[],
    other_keys: &[],
    shape: BodyShape::Message,
    group: SummaryGroup::Messages,
    unit: ("message", "messages"),
    counts_targets: false,
    read: |body| read(body).map(ActionKind::ChatWithUser),
};

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatWithUser {
    /// The Markdown, cut from the source, without blank lines at its ends.
    pub message: String,
}

/// Reads the action.
fn read(body: &mut Body<'_>) -> Option<ChatWithUser> {
    Some(ChatWithUser {
        message: body.message()?,
    })
}
