//! Errors of a push, with hints.

use crate::git::remote::RemoteName;
use crate::session::name::SessionName;
use crate::session::verify::Fault;
use crate::text::counted;
use crate::text::sanitize::sanitize_line;

/// More turns are only counted.
const MOST: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TheirTurn {
    /// If readable.
    pub number: Option<u64>,
    pub title: String,
    pub author: String,
}

#[derive(Debug, thiserror::Error)]
pub enum PushError {
    #[error("remote `{remote}` has turns of `{name}` that you don't have{}", describe_turns(.turns))]
    Diverged {
        remote: RemoteName,
        name: SessionName,
        /// Newest first; empty if they cannot be read.
        turns: Vec<TheirTurn>,
    },
    #[error(
        "remote `{remote}` has `{name}` with its code; a session without code cannot take its place"
    )]
    HasCode {
        remote: RemoteName,
        name: SessionName,
    },
    /// The remote has what should be redacted now.
    #[error("remote `{remote}` has turns of `{name}` with what would be taken out of them now")]
    Unredacted {
        remote: RemoteName,
        name: SessionName,
    },
    #[error("nothing was sent: {} may be private", counted(*.count, "finding"))]
    Findings {
        count: usize,
        first: String,
        /// Redaction would remove some of them.
        can_redact: bool,
        /// Files of commits would be sent, which cannot be redacted.
        in_code: bool,
    },
    #[error("nothing was sent: no one could fetch `{session}`: {fault}")]
    Unsound { session: SessionName, fault: Fault },
}

impl PushError {
    pub fn hint(&self) -> String {
        match self {
            PushError::Diverged { remote, name, .. } => format!(
                "`--as <name>` sends yours under another name; `teddy fetch {remote} {name}` \
                 brings theirs"
            ),
            PushError::HasCode { .. } => {
                "`--code` sends it as a copy there; `--as <name>` sends it without code under another name"
                    .to_owned()
            }
            PushError::Unredacted { remote, name } => format!(
                "`--as <name>` sends it under another name; `teddy push --delete --remote \
                 {remote} {name}` deletes what is there"
            ),
            PushError::Findings {
                first,
                can_redact,
                in_code,
                ..
            } => {
                let redact = match (can_redact, in_code) {
                    (true, false) => "`--redact` takes them out of the copy that is sent; ",
                    (true, true) => "`--redact` takes them out of all but the files and messages of commits; ",
                    (false, true) => "`--no-code` sends the turns without the files; ",
                    (false, false) => "",
                };
                format!("{redact}`--allow {first}` lets one go, `--allow <kind>` all of a kind")
            }
            PushError::Unsound { session, .. } => {
                format!("`teddy verify {session}` lists what is wrong with the session itself")
            }
        }
    }
}

fn describe_turns(turns: &[TheirTurn]) -> String {
    if turns.is_empty() {
        return String::new();
    }

    let mut lines: Vec<String> = turns
        .iter()
        .take(MOST)
        .map(|turn| {
            let number = turn
                .number
                .map_or("turn".to_owned(), |n| format!("turn {n}"));
            format!(
                "{number} `{}` by {}",
                sanitize_line(&turn.title),
                sanitize_line(&turn.author)
            )
        })
        .collect();
    if turns.len() > MOST {
        lines.push(format!("{} more", turns.len() - MOST));
    }
    format!(": {}", lines.join(", "))
}
