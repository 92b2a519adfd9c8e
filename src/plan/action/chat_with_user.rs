//! CHAT_WITH_USER: says something to the user and waits for the answer.

use super::body::Body;
use super::heading::Act;
use super::{Kind, Row};

/// The line of the table.
pub const ROW: Row = Row {
    act: Act::Chat,
    name: "CHAT_WITH_USER",
    aliases: &["PROMPT"],
    keys: &[],
    shape: "a message alone",
    message: true,
    labels: false,
    read: |body| read(body).map(Kind::ChatWithUser),
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
