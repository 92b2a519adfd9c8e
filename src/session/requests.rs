//! `requests.yaml`: what the user asked for in a session, as each turn hands it on to the next
//! (`docs/formats/requests.md`).
//!
//! Pure, and bounded: a turn costs the same after thousands of others, because nothing older than
//! the list of the turn before is read.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::text::counted;
use crate::text::resource::Artifact;
use crate::text::yaml::guard;

use super::artifact;
use super::meta::Meta;

/// The version of the format that we write.
const SCHEMA: u32 = 1;
/// The largest file that is read, in bytes.
const MAX_FILE: usize = 4 << 20;
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
const HEADING: usize = 64;

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
    pub requests: Vec<Request>,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The number of the turn that it was made for.
    pub turn: u64,
    /// The session in which it was made.
    pub session: String,
    /// The id of the turn, or of the draft that was replaced.
    pub turn_id: Uuid,
    /// Whether it still holds.
    #[serde(default, skip_serializing_if = "State::is_open")]
    pub state: State,
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
pub enum State {
    /// It does.
    #[default]
    Open,
    /// The session went back to before it.
    Undone,
    /// The user said something else before a plan for it ran.
    Replaced,
}

impl State {
    /// Returns whether the request holds.
    fn is_open(&self) -> bool {
        *self == State::Open
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
    pub fn of(requests: Vec<Request>) -> Requests {
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
    pub fn push(&mut self, request: Request) {
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
            .map(|request| Request {
                state: match request.state {
                    State::Open => State::Undone,
                    state => state,
                },
                ..request
            });
        let mut requests: Vec<Request> = target.requests.into_iter().chain(later).collect();
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
    fn size(&self) -> usize {
        self.requests.iter().map(Request::size).sum()
    }

    /// Returns whether the words of a turn's message stand here, whole.
    pub fn has_whole(&self, message: &Artifact) -> bool {
        message.name == artifact::USER_PROMPT
            && self.requests.iter().any(|request| {
                request.turn == message.turn
                    && request.session == message.session
                    && request.state != State::Replaced
                    && !request.cut
            })
    }
}

impl Request {
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
            State::Replaced => String::new(),
            State::Open | State::Undone => format!("; READ {whole} has all of it"),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a request for a turn.
    fn request(turn: u64, text: &str) -> Request {
        Request {
            turn,
            session: "s".to_owned(),
            turn_id: Uuid::from_u128(u128::from(turn)),
            state: State::Open,
            work: None,
            question: None,
            text: text.to_owned(),
            cut: false,
        }
    }

    /// Makes a list, one request for each turn from 1.
    fn list(texts: &[&str]) -> Requests {
        let requests = texts.iter().zip(1..);
        Requests::of(requests.map(|(text, turn)| request(turn, text)).collect())
    }

    /// Shows a list: turns and words, with marks for those that do not hold.
    fn shown(requests: &Requests) -> String {
        let mark = |state| match state {
            State::Open => "",
            State::Undone => "-",
            State::Replaced => "~",
        };
        let each: Vec<String> = requests
            .requests
            .iter()
            .map(|r| format!("{}{}{}", mark(r.state), r.turn, r.text))
            .collect();
        format!("{} +{}", each.join(" "), requests.left_out)
    }

    #[test]
    fn q1_what_is_written_is_read_again() {
        let mut requests = list(&["add a form\n  with two fields\n", "# no comment: \"x\"\r\n"]);
        requests.left_out = 3;
        requests.requests[1].question = Some("Which?\n".to_owned());
        requests.requests[1].state = State::Undone;
        assert_eq!(Requests::read(&requests.write()).unwrap(), requests);
        assert!(
            requests
                .write()
                .starts_with("schema: 1\nleft_out: 3\nrequests:\n- turn: 1\n"),
            "{}",
            requests.write()
        );
    }

    #[test]
    fn q1_a_newer_version_is_refused_by_its_number() {
        let error = Requests::read("schema: 9\nrequests: []\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`requests.yaml` has schema 9, and this teddy reads up to 1: it was written by a newer one"
        );
    }

    #[test]
    fn q4_a_session_that_goes_back_keeps_later_requests_as_undone() {
        let tip = list(&["a", "b", "c"]);
        assert_eq!(shown(&tip.clone().back_to(list(&["a"]))), "1a -2b -3c +0");
        // Forward again.
        let back = tip.clone().back_to(list(&["a"]));
        assert_eq!(shown(&back.back_to(list(&["a", "b"]))), "1a 2b -3c +0");
        assert_eq!(shown(&tip.back_to(Requests::default())), "-1a -2b -3c +0");
    }

    #[test]
    fn q5_a_piece_of_work_takes_the_place_of_the_one_before_it() {
        let work = |turn, text| Request {
            work: Some(format!("Task {turn}")),
            ..request(turn, text)
        };
        let mut requests = list(&["a"]);
        requests.push(work(2, "b"));
        requests.push(work(3, "c"));
        requests.push(request(4, "d"));
        assert_eq!(shown(&requests), "1a 3c 4d +0");
    }

    #[test]
    fn q6_the_oldest_ones_behind_the_first_are_left_out() {
        let four = 4 * (HEADING + 2);
        let few = list(&["a", "b", "c", "d"]);
        assert_eq!(shown(&few.within(four)), "1a 2b 3c 4d +0");
        let many: Vec<&str> = vec!["xx"; 9];
        assert_eq!(shown(&list(&many).within(four)), "1xx 7xx 8xx 9xx +5");
        let mut undone = list(&many);
        undone.requests[0].state = State::Undone;
        // The first that holds is the one that stays.
        assert_eq!(shown(&undone.within(four)), "2xx 7xx 8xx 9xx +5");
    }

    #[test]
    fn q6_a_long_request_is_cut_before_another_is_left_out() {
        let long = "ä".repeat(400);
        let cut = list(&[&long, "b", "c"]).within(400);
        let [first, b, c] = cut.requests.as_slice() else {
            panic!("{cut:?}")
        };
        assert_eq!(
            (first.cut, b.text.as_str(), c.text.as_str(), cut.left_out),
            (true, "b", "c", 0)
        );
        assert_eq!(
            first.text,
            format!(
                "{}\n[... 726 bytes left out; READ .teddy/s/01/user_prompt.txt has all of it ...]\n{}",
                "ä".repeat(25),
                "ä".repeat(12)
            )
        );
        let message = |turn| Artifact {
            session: "s".to_owned(),
            turn,
            name: "user_prompt.txt".to_owned(),
        };
        assert_eq!(
            (cut.has_whole(&message(1)), cut.has_whole(&message(2))),
            (false, true)
        );
    }

    /// Hands the requests of a session on from turn to turn, as the turns do, and returns the bytes
    /// that have been read and written after each turn.
    fn handed_on(turns: u64, limit: usize, text: impl Fn(u64) -> String) -> Vec<usize> {
        // What YAML puts around the words of a request.
        let most = (limit / HEADING + 2) * 256 + 4 * limit;
        let (mut file, mut sums) = (Requests::default().write(), vec![0]);
        for turn in 1..=turns {
            let mut requests = Requests::read(&file).unwrap();
            requests.push(request(turn, &text(turn)));
            let requests = requests.within(limit);
            let kept = requests.requests.len() as u64;
            assert!(requests.size() <= limit, "turn {turn}");
            assert_eq!(kept + requests.left_out, turn, "none is lost uncounted");

            let before = file.len();
            file = requests.write();
            assert!(file.len() <= most, "turn {turn}: {}", file.len());
            sums.push(sums[sums.len() - 1] + before + file.len());
        }
        sums
    }

    #[test]
    fn promise_c1_the_requests_of_two_thousand_turns_cost_bounded_linear_work() {
        for text in [
            |_: u64| "go on".to_owned(),
            |turn: u64| "please\n".repeat(usize::try_from(turn % 40).unwrap()),
        ] {
            let sums = handed_on(2000, 1 << 10, text);
            let (young, old) = (sums[1000] - sums[500], sums[2000] - sums[1500]);
            assert!(old <= young + young / 10, "{young} {old}");
        }
    }

    #[test]
    fn promise_c1_whatever_the_limit_is_the_list_can_be_read_again() {
        let mut requests = Requests::default();
        for turn in 1..=40 {
            requests.push(request(turn, &"\u{1}".repeat(64 << 10)));
        }
        let text = requests.within(usize::MAX).write();
        assert!(Requests::read(&text).is_ok(), "{}", text.len());
    }

    #[test]
    fn q6_the_first_and_the_newest_stay_however_small_the_limit_is() {
        for limit in [0, 1, 7, 100, 1000] {
            let long = "x".repeat(5000);
            let mut requests = list(&[&long, &long, &long]);
            requests.requests[2].question = Some(long.clone());
            let turns: Vec<u64> = requests
                .within(limit)
                .requests
                .iter()
                .map(|r| r.turn)
                .collect();
            assert!(
                turns.starts_with(&[1]) && turns.ends_with(&[3]),
                "{turns:?}"
            );
        }
    }
}
