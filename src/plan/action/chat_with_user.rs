//! CHAT_WITH_USER: says something to the user and waits for the answer.

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatWithUser {
    /// The Markdown, cut from the source, without blank lines at its ends.
    pub message: String,
}
