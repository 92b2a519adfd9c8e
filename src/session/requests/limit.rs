//! Limits the size of a request list: shortens long requests, then drops old ones.

use super::{RequestState, Requests, UserRequest};
use crate::session::artifact;
use crate::text::counted;
use crate::text::resource::Artifact;

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
pub(super) const HEADING_SIZE: usize = 64;

impl Requests {
    /// Returns the requests in at most `limit` bytes. Shortens the longest ones first, then drops
    /// the oldest ones except the first.
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

    pub(super) fn size(&self) -> usize {
        self.requests.iter().map(UserRequest::size).sum()
    }
}

impl UserRequest {
    /// Returns its size in bytes.
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

/// Returns the head and tail of a text, less than `most` bytes in total, with a note between them.
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

fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

fn ceil_char_boundary(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}
