//! Reads the body of a successful response: a stream of events or a single JSON object.
//!
//! Servers don't always answer in the requested form, or with the right content type. If one form
//! doesn't fit, this reader tries the other.

use serde_json::Value;

use super::Remote;
use super::draft::{AnswerDraft, provider_message};
use crate::model::{Finish, ModelAnswer, ModelError};

/// In bytes, of an unrecognized response.
const SAMPLE: usize = 200;

pub struct AnswerReader<'a> {
    remote: &'a Remote,
    draft: AnswerDraft,
    decoder: SseDecoder,
    stream: bool,
    /// The whole body, or the first `SAMPLE` bytes of a stream.
    raw: Vec<u8>,
    size: usize,
}

impl<'a> AnswerReader<'a> {
    /// `stream` is `true` if the content type says so.
    pub fn new(remote: &'a Remote, stream: bool) -> AnswerReader<'a> {
        AnswerReader {
            remote,
            draft: AnswerDraft::default(),
            decoder: SseDecoder::new(remote.limits.event),
            stream,
            raw: Vec::new(),
            size: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// After the protocol's end marker.
    pub fn is_done(&self) -> bool {
        self.draft.ended
    }

    /// Even if the protocol's end marker is missing.
    pub fn has_finish(&self) -> bool {
        self.draft.finish.is_some()
    }

    pub fn into_text(mut self) -> String {
        self.take_text()
    }

    /// Fails if the answer is too large or the provider reports an error.
    pub fn take(&mut self, bytes: &[u8], watch: &mut dyn FnMut(&str)) -> Result<(), ModelError> {
        // Decompressed bytes: a small response can expand to gigabytes.
        self.size += bytes.len();
        if self.size > self.remote.limits.bytes {
            return Err(self.too_large(self.remote.limits.bytes));
        }

        if !self.stream {
            self.raw.extend_from_slice(bytes);
            return Ok(());
        }

        // Keep only the start of a stream, for the error if nothing in it is recognized.
        let length = SAMPLE.saturating_sub(self.raw.len()).min(bytes.len());
        self.raw.extend_from_slice(&bytes[..length]);
        let events = self
            .decoder
            .feed(bytes)
            .map_err(|EventTooLong| self.too_large(self.remote.limits.event))?;

        self.take_events(events, watch)
    }

    /// At the end of the body.
    pub fn finish(mut self, watch: &mut dyn FnMut(&str)) -> Result<ModelAnswer, ModelError> {
        if self.size == 0 {
            return Err(ModelError::Empty {
                reason: "the server sent nothing".into(),
            });
        }

        if !self.stream && self.take_complete(watch)? {
            return self.answer();
        }

        if !self.stream {
            // Some servers label an event stream with another content type.
            self.stream = true;
            let events = self
                .decoder
                .feed(&self.raw)
                .map_err(|EventTooLong| self.too_large(self.remote.limits.event))?;
            self.take_events(events, watch)?;
        }

        let last = self
            .decoder
            .finish()
            .map_err(|EventTooLong| self.too_large(self.remote.limits.event))?;
        self.take_events(last, watch)?;
        self.answer()
    }

    fn take_events(
        &mut self,
        events: impl IntoIterator<Item = SseEvent>,
        watch: &mut dyn FnMut(&str),
    ) -> Result<(), ModelError> {
        let before = self.draft.text.len();
        for event in events {
            // Ignore events after the end, even if they arrived in the same chunk.
            if self.draft.ended {
                break;
            }

            self.remote
                .protocol
                .event(&mut self.draft, &event)
                .map_err(|message| self.provider(&message))?;
        }

        if self.draft.text.len() > before {
            watch(&self.draft.text);
        }

        Ok(())
    }

    /// `false` if the body isn't an answer.
    fn take_complete(&mut self, watch: &mut dyn FnMut(&str)) -> Result<bool, ModelError> {
        let Ok(value) = serde_json::from_slice::<Value>(&self.raw) else {
            return Ok(false);
        };
        if let Some(message) = value
            .get("error")
            .filter(|error| !error.is_null())
            .and_then(|_| provider_message(&value))
        {
            return Err(self.provider(&message));
        }

        let is_answer = self.remote.protocol.read_complete(&mut self.draft, &value);
        if !self.draft.text.is_empty() {
            watch(&self.draft.text);
        }

        Ok(is_answer)
    }

    /// If nothing was recognized, explains what the server sent.
    fn answer(self) -> Result<ModelAnswer, ModelError> {
        if self.draft.recognised {
            return self.complete_answer();
        }

        if self.stream
            && ["data:", "event:", ":"]
                .iter()
                .any(|field| self.raw.starts_with(field.as_bytes()))
        {
            return Err(ModelError::Broken {
                detail: "the connection closed before the first event".into(),
                partial: String::new(),
            });
        }

        let sample = self.remote.key.scrub(&String::from_utf8_lossy(
            &self.raw[..self.raw.len().min(SAMPLE)],
        ));
        Err(ModelError::NotJson {
            address: self.remote.url.to_string(),
            sample,
        })
    }

    fn complete_answer(mut self) -> Result<ModelAnswer, ModelError> {
        self.draft.text = self.take_text();
        let key = &self.remote.key;
        let answer = self.draft.into_answer(&self.remote.id)?;
        let finish = if let Finish::Other(word) = answer.finish {
            Finish::Other(key.hide(word))
        } else {
            answer.finish
        };

        Ok(ModelAnswer {
            model: key.hide(answer.model),
            cost: None,
            finish,
            ..answer
        })
    }

    fn take_text(&mut self) -> String {
        self.remote.key.hide(std::mem::take(&mut self.draft.text))
    }

    fn provider(&mut self, message: &str) -> ModelError {
        ModelError::Provider {
            detail: self.remote.key.scrub(message),
            partial: self.take_text(),
        }
    }

    fn too_large(&mut self, limit: usize) -> ModelError {
        ModelError::TooLarge {
            limit,
            partial: self.take_text(),
        }
    }
}

// Decodes server-sent events from a byte stream. Accepts CR, LF and CRLF, even if a chunk ends
// between CR and LF. Joins several `data:` lines into one event and skips comments. A line or event
// over the limit is an error, so memory is bounded.

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// Empty if there is no `event:` line.
    pub name: String,
    /// The `data:` lines, joined with newlines.
    pub data: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLong;

#[derive(Debug)]
pub struct SseDecoder {
    line: Vec<u8>,
    /// An LF after a CR belongs to the same line end.
    after_cr: bool,
    /// `None` before its first field.
    event: Option<SseEvent>,
    /// In bytes.
    limit: usize,
}

impl SseDecoder {
    /// `limit` is for a line or event, in bytes.
    pub fn new(limit: usize) -> SseDecoder {
        SseDecoder {
            line: Vec::new(),
            after_cr: false,
            event: None,
            limit,
        }
    }

    /// The decoder is unusable after an error.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, EventTooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            let follows_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if follows_cr => {}
                b'\n' | b'\r' => events.extend(self.end_line()?),
                _ if self.line.len() >= self.limit => return Err(EventTooLong),
                _ => self.line.push(byte),
            }
        }

        Ok(events)
    }

    pub fn finish(&mut self) -> Result<Option<SseEvent>, EventTooLong> {
        // Some servers omit the blank line after the last event.
        if !self.line.is_empty() {
            self.end_line()?;
        }
        Ok(self.event.take())
    }

    /// An empty line ends the event.
    fn end_line(&mut self) -> Result<Option<SseEvent>, EventTooLong> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return Ok(self.event.take());
        }

        // Decode whole lines only, so that chunks can't cut a character.
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        // A stream can start with a byte order mark.
        match field.trim_start_matches('\u{feff}') {
            "event" => value.clone_into(&mut self.event.get_or_insert_default().name),
            "data" => self.add_data(value)?,
            _ => {}
        }

        Ok(None)
    }

    fn add_data(&mut self, value: &str) -> Result<(), EventTooLong> {
        let data = &mut self.event.get_or_insert_default().data;
        if data.len() + value.len() >= self.limit {
            return Err(EventTooLong);
        }

        if !data.is_empty() {
            data.push('\n');
        }

        data.push_str(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(pieces: &[&[u8]]) -> Result<Vec<SseEvent>, EventTooLong> {
        let mut decoder = SseDecoder::new(1000);
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(decoder.feed(piece)?);
        }
        events.extend(decoder.finish()?);
        Ok(events)
    }

    fn check(text: &str, expected: &[(&str, &str)]) {
        let events = expected
            .iter()
            .map(|(name, data)| SseEvent {
                name: (*name).into(),
                data: (*data).into(),
            })
            .collect();
        assert_eq!(decode(&[text.as_bytes()]), Ok(events));
    }

    #[test]
    fn an_event_ends_with_a_blank_line_of_any_kind() {
        check(
            "data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\n",
            &[("", "a"), ("", "b"), ("", "c"), ("", "d")],
        );
    }

    #[test]
    fn comments_and_unknown_fields_say_nothing() {
        check(
            ": OPENROUTER PROCESSING\n\nid: 7\nretry: 3\nevent: ping\ndata: {}\n\n",
            &[("ping", "{}")],
        );
    }

    #[test]
    fn several_lines_of_data_are_one_event() {
        check("data: {\ndata:  \"a\"\ndata:}\n\n", &[("", "{\n \"a\"\n}")]);
    }

    #[test]
    fn a_last_event_without_its_blank_line_counts() {
        check("data: [DONE]", &[("", "[DONE]")]);
    }

    #[test]
    fn an_endless_line_is_an_error() {
        assert_eq!(decode(&[&[b'x'; 1001]]), Err(EventTooLong));
        assert_eq!(
            decode(&["data: aaaaaaaaa\n".repeat(200).as_bytes()]),
            Err(EventTooLong)
        );
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_events(
            lines in prop::collection::vec(("(data: |event: |: |)[a-z äöü€😀]{0,12}", "\n|\r\n|\r"), 0..12),
            cuts in prop::collection::vec(0usize..200, 0..8),
        ) {
            let text: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decode(&pieces), decode(&[bytes]));
        }

        #[test]
        fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode(&[&bytes]);
        }
    }
}
