//! The requests of a session within a limit of bytes: long ones are cut, old ones are left out.

use super::{RequestState, Requests, UserRequest};
use crate::session::artifact;
use crate::text::counted;
use crate::text::resource::Artifact;

/// As many bytes the requests take at most, whatever the limit is: so that, with what YAML needs to
/// write any byte, the file can always be read again.
pub const MAX_SIZE: usize = 512 << 10;
/// No request is cut to less than this part of the limit, so that the first one and the newest
/// always stay.
const SHARES: usize = 4;
/// As many bytes the note takes at most that stands for words that are left out.
const MAX_NOTE: usize = 256;
/// What a request takes besides its words: a heading and fences. Without it a session of short
/// answers would hand on thousands of them within any limit of words.
pub(super) const HEADING: usize = 64;

impl Requests {
    /// Returns the requests in at most `limit` bytes: long ones are cut in the middle, then the
    /// oldest ones behind the first are left out.
    #[must_use]
    pub fn within(mut self, limit: usize) -> Requests {
        let limit = limit.min(MAX_SIZE);
        let share = limit / SHARES;
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

    /// Returns the position of the first request that holds, which is never left out.
    fn first(&self) -> usize {
        self.requests
            .iter()
            .position(|request| request.state.is_open())
            .unwrap_or(0)
    }

    /// Returns the bytes of all.
    pub(super) fn size(&self) -> usize {
        self.requests.iter().map(UserRequest::size).sum()
    }
}

impl UserRequest {
    /// Returns the bytes that it takes.
    pub fn size(&self) -> usize {
        HEADING + self.text.len() + self.question.as_ref().map_or(0, String::len)
    }

    /// Returns the bytes of the longer of its texts.
    fn longest(&self) -> usize {
        self.text
            .len()
            .max(self.question.as_ref().map_or(0, String::len))
    }

    /// Leaves out words in the middle of texts of more than `most` bytes.
    fn shorten(&mut self, most: usize) {
        if let Some(question) = self.question.as_mut().filter(|text| text.len() > most) {
            *question = shortened(question, most, "");
        }

        if self.text.len() <= most {
            return;
        }

        let whole = Artifact {
            session: self.session.clone(),
            turn: self.turn,
            name: artifact::USER_PROMPT.to_owned(),
        };
        // What was replaced is in no turn.
        let place = match self.state {
            RequestState::Replaced => String::new(),
            RequestState::Open | RequestState::Undone => format!("; READ {whole} has all of it"),
        };

        self.text = shortened(&self.text, most, &place);
        self.cut = true;
    }
}

/// Returns head and tail of a text, less than `most` bytes of it, with a note between them.
fn shortened(text: &str, most: usize, note: &str) -> String {
    let head = floor(text, most / 2);
    let tail = ceil(text, text.len() - most / 4);
    format!(
        "{}\n[... {} left out{note} ...]\n{}",
        &text[..head],
        counted(tail - head, "byte"),
        &text[tail..]
    )
}

/// Returns the last boundary of a character up to a position.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

/// Returns the first boundary of a character from a position.
fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}
