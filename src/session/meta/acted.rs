//! What `meta.yaml` says of a turn whose model edited files itself.

use serde::{Deserialize, Serialize};

/// The program that worked in the session's worktree, as it says itself, and how to go on with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its name for the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The worktree in which the conversation was, which is the only place where it can go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// Whether it went on with the conversation of the turn before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
}
