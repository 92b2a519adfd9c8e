//! Metadata of a turn whose model edited files itself.

use serde::{Deserialize, Serialize};

/// The program of an acting model, as it identifies itself, and how to resume its conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its conversation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// Name of the worktree of the conversation. It can be resumed only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    /// `true` if it resumed the conversation of the previous turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumed: bool,
}
