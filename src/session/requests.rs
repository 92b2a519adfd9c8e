//! `requests.yaml`: the user's requests in a session, copied from turn to turn
//! (`docs/formats/requests.md`).
//!
//! Pure and bounded: reads only the list of the previous turn, so the cost of a turn does not
//! depend on the length of the session.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::artifact;
use super::meta::Meta;
use crate::text::resource::Artifact;
use crate::text::yaml::guard;
use crate::text::{counted, floor_char_boundary};

const SCHEMA: u32 = 1;

// In bytes.
pub(super) const MAX_FILE: usize = 4 << 20;

/// Oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    schema: u32,
    /// Number of requests that were dropped after the first one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    #[serde(default)]
    pub requests: Vec<UserRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRequest {
    pub turn: u64,
    pub session: String,
    /// Id of its turn, or of the draft that was replaced.
    pub turn_id: Uuid,
    #[serde(default, skip_serializing_if = "RequestState::is_open")]
    pub state: RequestState,
    /// The piece of work of a change. `None` for the user's own message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
    /// The model's question that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    pub text: String,
    /// The middle was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RequestState {
    #[default]
    Open,
    /// The session was restored to an earlier turn.
    Undone,
    /// The user sent another message before a plan for this one ran.
    Replaced,
}

impl RequestState {
    fn is_open(&self) -> bool {
        *self == RequestState::Open
    }
}

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
    /// Fails with an explanation if the schema is newer than ours.
    pub fn read(text: &str) -> anyhow::Result<Requests> {
        let of_file = || format!("`{}`", artifact::REQUESTS);
        guard(text, MAX_FILE).with_context(of_file)?;
        let requests: Requests = serde_yaml::from_str(text).with_context(of_file)?;
        anyhow::ensure!(
            requests.schema <= SCHEMA,
            "`{}` has schema {}, and this teddy reads up to {SCHEMA}: it was written by a newer one",
            artifact::REQUESTS,
            requests.schema
        );

        Ok(requests)
    }

    pub fn write(&self) -> String {
        serde_yaml::to_string(self).expect("plain structs of strings and numbers are always YAML")
    }

    /// A piece of work replaces the previous one.
    pub fn push(&mut self, request: UserRequest) {
        if request.work.is_some() {
            self.requests.retain(|earlier| earlier.work.is_none());
        }
        self.requests.push(request);
    }

    /// The requests after a restore: those of the target, and later ones marked as undone.
    #[must_use]
    pub fn back_to(self, target: Requests) -> Requests {
        let target_turns: BTreeSet<Uuid> = target.requests.iter().map(|r| r.turn_id).collect();
        let later = self
            .requests
            .into_iter()
            .filter(|request| !target_turns.contains(&request.turn_id))
            .map(|request| UserRequest {
                state: match request.state {
                    // Not removed: "not like that" refers to an undone request.
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

    /// The requests to show in the input of a turn, without its own message.
    #[must_use]
    pub fn before(mut self, turn: &Meta) -> Requests {
        self.requests.retain(|request| {
            let is_now = request.turn == turn.number && request.state.is_open();
            !(is_now || request.work.is_some() && turn.work.is_some())
        });
        self
    }

    /// `message` must name a `user_prompt.txt`.
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

/// Maximum size in bytes, regardless of the configured limit. Even with YAML escapes, the file
/// stays below the size that can be read.
pub const MAX_LIST_SIZE: usize = 512 << 10;

// No request is shortened below this fraction of the limit. At a quarter, the first and the newest
// request always fit.
const SHARE_DIVISOR: usize = 4;

// Upper bound on the size of the note that marks omitted text.
const MAX_NOTE: usize = 256;

// Overhead per request: a heading and fences. Without it, thousands of short requests would fit
// into any limit.
const HEADING_SIZE: usize = 64;

impl Requests {
    /// Shortens the longest requests to fit `limit` bytes, then drops the oldest ones except the
    /// first.
    #[must_use]
    pub fn limited_to(mut self, limit: usize) -> Requests {
        let limit = limit.min(MAX_LIST_SIZE);
        let share = limit / SHARE_DIVISOR;
        let mut size = self.size();
        while size > limit {
            let longest = self.requests.iter_mut().max_by_key(|r| r.longest());
            let Some(request) = longest.filter(|r| r.longest() > share + MAX_NOTE) else {
                break;
            };
            size -= request.size();
            request.shorten(share);
            size += request.size();
        }

        // The first request has the task, the newest what to do now.
        while size > limit && self.requests.len() > 2 {
            let oldest = usize::from(self.first() == 0);
            size -= self.requests.remove(oldest).size();
            self.left_out += 1;
        }

        self
    }

    fn first(&self) -> usize {
        self.requests
            .iter()
            .position(|request| request.state.is_open())
            .unwrap_or(0)
    }

    fn size(&self) -> usize {
        self.requests.iter().map(UserRequest::size).sum()
    }
}

impl UserRequest {
    pub fn size(&self) -> usize {
        HEADING_SIZE + self.text.len() + self.question.as_ref().map_or(0, String::len)
    }

    fn longest(&self) -> usize {
        self.text
            .len()
            .max(self.question.as_ref().map_or(0, String::len))
    }

    fn shorten(&mut self, most: usize) {
        if let Some(question) = self.question.as_mut().filter(|text| text.len() > most) {
            *question = shorten_middle(question, most, "");
        }

        if self.text.len() <= most {
            return;
        }

        let full_text = Artifact {
            session: self.session.clone(),
            turn: self.turn,
            name: artifact::USER_PROMPT.to_owned(),
        };
        // A replaced message is not an artifact of any turn.
        let hint = match self.state {
            RequestState::Replaced => String::new(),
            RequestState::Open | RequestState::Undone => {
                format!("; READ {full_text} has all of it")
            }
        };

        self.text = shorten_middle(&self.text, most, &hint);
        self.cut = true;
    }
}

/// Keeps twice as much of the head as of the tail.
fn shorten_middle(text: &str, most: usize, note: &str) -> String {
    let head = floor_char_boundary(text, most / 2);
    let tail = ceil_char_boundary(text, text.len() - most / 4);
    format!(
        "{}\n[... {} left out{note} ...]\n{}",
        &text[..head],
        counted(tail - head, "byte"),
        &text[tail..]
    )
}

fn ceil_char_boundary(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
