//! `requests.yaml`: what the user asked for in a session, as each turn hands it on to the next
//! (`docs/formats/requests.md`).
//!
//! Pure, and bounded: a turn costs the same after thousands of others, because nothing older than
//! the list of the turn before is read.

pub mod limit;

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::text::resource::Artifact;
use crate::text::yaml::guard;

use super::artifact;
use super::meta::Meta;

/// The version of the format that we write.
const SCHEMA: u32 = 1;
/// The largest file that is read, in bytes.
const MAX_FILE: usize = 4 << 20;
/// The requests of a session, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// The version of the format.
    schema: u32,
    /// How many were left out behind the first one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Those that stay.
    #[serde(default)]
    pub requests: Vec<UserRequest>,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRequest {
    /// The number of the turn that it was made for.
    pub turn: u64,
    /// The session in which it was made.
    pub session: String,
    /// The id of the turn, or of the draft that was replaced.
    pub turn_id: Uuid,
    /// Whether it still holds.
    #[serde(default, skip_serializing_if = "RequestState::is_open")]
    pub state: RequestState,
    /// The piece of work of a change that it describes; nothing for the user's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// The question of the model that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The words; head and tail of them where `cut` says so.
    pub text: String,
    /// Whether words are left out in the middle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Whether a request holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestState {
    /// It does.
    #[default]
    Open,
    /// The session went back to before it.
    Undone,
    /// The user said something else before a plan for it ran.
    Replaced,
}

impl RequestState {
    /// Returns whether the request holds.
    fn is_open(&self) -> bool {
        *self == RequestState::Open
    }
}

/// Says whether there is nothing to write.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            schema: SCHEMA,
            left_out: 0,
            requests: Vec::new(),
        }
    }
}

impl Requests {
    /// Makes a list of requests, oldest first.
    pub fn of(requests: Vec<UserRequest>) -> Requests {
        Requests {
            requests,
            ..Requests::default()
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Where it is not of this format, or of a newer version of it.
    pub fn read(text: &str) -> anyhow::Result<Requests> {
        guard(text, MAX_FILE)?;
        let requests: Requests =
            serde_yaml::from_str(text).with_context(|| format!("`{}`", artifact::REQUESTS))?;
        anyhow::ensure!(
            requests.schema <= SCHEMA,
            "`{}` has schema {}, and this teddy reads up to {SCHEMA}: it was written by a newer one",
            artifact::REQUESTS,
            requests.schema
        );

        Ok(requests)
    }

    /// Writes the file.
    pub fn write(&self) -> String {
        serde_yaml::to_string(self).expect("plain structs of strings and numbers are always YAML")
    }

    /// Adds a request. A piece of work takes the place of the one before it, which is done or
    /// described anew.
    pub fn push(&mut self, request: UserRequest) {
        if request.work.is_some() {
            self.requests.retain(|earlier| earlier.work.is_none());
        }
        self.requests.push(request);
    }

    /// Returns the requests after the session went back to a turn: those of that turn, and the
    /// later ones as undone.
    #[must_use]
    pub fn back_to(self, target: Requests) -> Requests {
        let known: BTreeSet<Uuid> = target.requests.iter().map(|r| r.turn_id).collect();
        let later = self
            .requests
            .into_iter()
            .filter(|request| !known.contains(&request.turn_id))
            .map(|request| UserRequest {
                state: match request.state {
                    RequestState::Open => RequestState::Undone,
                    state => state,
                },
                ..request
            });

        let mut requests: Vec<UserRequest> = target.requests.into_iter().chain(later).collect();
        requests.sort_by_key(|request| request.turn);
        Requests {
            requests,
            left_out: self.left_out.max(target.left_out),
            ..target
        }
    }

    /// Returns the requests that the input of a turn shows: not the words that its own message has.
    #[must_use]
    pub fn before(mut self, turn: &Meta) -> Requests {
        self.requests.retain(|request| {
            let is_now = request.turn == turn.number && request.state.is_open();
            !(is_now || request.work.is_some() && turn.work.is_some())
        });
        self
    }

    /// Returns whether the words of a turn's message stand here, whole.
    pub fn has_whole(&self, message: &Artifact) -> bool {
        message.name == artifact::USER_PROMPT
            && self.requests.iter().any(|request| {
                request.turn == message.turn
                    && request.session == message.session
                    && request.state != RequestState::Replaced
                    && !request.cut
            })
    }
}

#[cfg(test)]
mod tests;
