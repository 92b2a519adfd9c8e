//! Why a session is not sent, and what helps.

use crate::git::remote::RemoteName;
use crate::session::name::SessionName;
use crate::session::verify::Fault;
use crate::text::counted;
use crate::text::visible::visible;

/// As many turns of somebody else are named.
const MOST: usize = 10;

/// A turn on the remote.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TheirTurn {
    /// Its number, if it can be read.
    pub number: Option<u64>,
    /// Its title.
    pub title: String,
    /// Who recorded it.
    pub author: String,
}

/// A session is not sent.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The remote has other turns of that name.
    #[error("remote `{remote}` has turns of `{name}` that are not here{}", told(.turns))]
    Diverged {
        /// The remote.
        remote: RemoteName,
        /// The name there.
        name: SessionName,
        /// The turns, newest first; nothing if they could not be read.
        turns: Vec<TheirTurn>,
    },
    /// The remote has the session with its code.
    #[error("remote `{remote}` has `{name}` with its code, a record cannot take its place")]
    HasCode {
        /// The remote.
        remote: RemoteName,
        /// The name there.
        name: SessionName,
    },
    /// The remote has what is to be taken out.
    #[error("remote `{remote}` has turns of `{name}` with what would be taken out of them now")]
    Unredacted {
        /// The remote.
        remote: RemoteName,
        /// The name there.
        name: SessionName,
    },
    /// Something was found that not everybody may read.
    #[error("nothing was sent: {} may be private", counted(*.count, "finding"))]
    Findings {
        /// How many.
        count: usize,
        /// The name of the first.
        first: String,
        /// Whether a record is sent, from which it can be taken out.
        can_redact: bool,
    },
    /// A turn breaks a rule, and whoever fetched it would refuse it.
    #[error("nothing was sent: nobody could fetch `{session}`: {fault}")]
    Unsound {
        /// The session.
        session: SessionName,
        /// What is wrong first.
        fault: Fault,
    },
    /// A session with its code stays what it is.
    #[error("nothing can be taken out of `{0}`, which would go there with its code")]
    RedactCode(SessionName),
}

impl PushError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            PushError::Diverged { remote, name, .. } => format!(
                "`--as <name>` sends yours under another name; `teddy fetch {remote} {name}` \
                 brings theirs"
            ),
            PushError::HasCode { .. } => {
                "`--code` goes on with it there; `--as <name>` sends a record under another name"
                    .to_owned()
            }
            PushError::Unredacted { remote, name } => format!(
                "`--as <name>` sends it under another name; `teddy push --delete --remote \
                 {remote} {name}` deletes what is there"
            ),
            PushError::Findings {
                first, can_redact, ..
            } => {
                let redact = match can_redact {
                    true => "`--redact` takes them out of the copy that is sent; ",
                    false => "",
                };
                format!("{redact}`--allow {first}` lets one go, `--allow <kind>` all of a kind")
            }
            PushError::Unsound { session, .. } => {
                format!("`teddy verify {session}` lists what is wrong with the session itself")
            }
            PushError::RedactCode(_) => "`--record` sends the turns without the code".to_owned(),
        }
    }
}

/// Returns turns as the end of a sentence.
fn told(turns: &[TheirTurn]) -> String {
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
                visible(&turn.title),
                visible(&turn.author)
            )
        })
        .collect();
    if turns.len() > MOST {
        lines.push(format!("{} more", turns.len() - MOST));
    }
    format!(": {}", lines.join(", "))
}
