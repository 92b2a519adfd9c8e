//! Reads an accepted answer: a stream of events, or one piece of JSON, whatever the server made of
//! the request.

use serde_json::Value;

use super::Remote;
use super::draft::{AnswerDraft, error_words};
use super::sse::{Decoder, SseEvent, TooLong};
use crate::model::{Finish, ModelAnswer, ModelError};

/// How much of a foreign answer is shown, in bytes.
const SAMPLE: usize = 200;

/// What reads an answer.
pub struct AnswerReader<'a> {
    /// The model.
    remote: &'a Remote,
    /// What has arrived of the answer.
    draft: AnswerDraft,
    /// The events of a stream.
    decoder: Decoder,
    /// Whether it is a stream.
    stream: bool,
    /// The bytes of an answer in one piece, or the beginning of a stream.
    raw: Vec<u8>,
    /// How many bytes came.
    size: usize,
}

impl<'a> AnswerReader<'a> {
    /// Makes a reader; `stream` is what the server says.
    pub fn new(remote: &'a Remote, stream: bool) -> AnswerReader<'a> {
        AnswerReader {
            remote,
            draft: AnswerDraft::default(),
            decoder: Decoder::new(remote.limits.event),
            stream,
            raw: Vec::new(),
            size: 0,
        }
    }

    /// Says whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Says whether the protocol's mark of the end came.
    pub fn is_done(&self) -> bool {
        self.draft.ended
    }

    /// Says whether the model has said that it is done, even if the protocol's mark is missing.
    pub fn has_finish(&self) -> bool {
        self.draft.finish.is_some()
    }

    /// Returns what has arrived.
    pub fn into_text(mut self) -> String {
        self.take_text()
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`ModelError::TooLarge`], or [`ModelError::Provider`] with the server's words.
    pub fn take(&mut self, bytes: &[u8], watch: &mut dyn FnMut(&str)) -> Result<(), ModelError> {
        self.size += bytes.len();
        if self.size > self.remote.limits.bytes {
            return Err(self.too_large(self.remote.limits.bytes));
        }

        if !self.stream {
            self.raw.extend_from_slice(bytes);
            return Ok(());
        }

        let room = SAMPLE.saturating_sub(self.raw.len()).min(bytes.len());
        self.raw.extend_from_slice(&bytes[..room]);
        let events = self
            .decoder
            .feed(bytes)
            .map_err(|TooLong| self.too_large(self.remote.limits.event))?;

        self.take_events(events, watch)
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// Why it is none.
    pub fn finish(mut self, watch: &mut dyn FnMut(&str)) -> Result<ModelAnswer, ModelError> {
        if self.size == 0 {
            return Err(ModelError::Empty {
                reason: "the server sent nothing".into(),
            });
        }

        if !self.stream && self.take_whole(watch)? {
            return self.answer();
        }

        if !self.stream {
            // A stream that the server calls something else.
            self.stream = true;
            let events = self
                .decoder
                .feed(&self.raw)
                .map_err(|TooLong| self.too_large(self.remote.limits.event))?;
            self.take_events(events, watch)?;
        }

        let last = self
            .decoder
            .finish()
            .map_err(|TooLong| self.too_large(self.remote.limits.event))?;
        self.take_events(last, watch)?;
        self.answer()
    }

    /// Takes events and shows what they add.
    fn take_events(
        &mut self,
        events: impl IntoIterator<Item = SseEvent>,
        watch: &mut dyn FnMut(&str),
    ) -> Result<(), ModelError> {
        let before = self.draft.text.len();
        for event in events {
            // What comes behind the end is none of the answer, even where it comes in the same
            // piece.
            if self.draft.ended {
                break;
            }

            self.remote
                .protocol
                .event(&mut self.draft, &event)
                .map_err(|words| self.provider(&words))?;
        }

        if self.draft.text.len() > before {
            watch(&self.draft.text);
        }

        Ok(())
    }

    /// Takes an answer in one piece; says whether it is JSON of the protocol.
    fn take_whole(&mut self, watch: &mut dyn FnMut(&str)) -> Result<bool, ModelError> {
        let Ok(value) = serde_json::from_slice::<Value>(&self.raw) else {
            return Ok(false);
        };
        if let Some(words) = value
            .get("error")
            .filter(|error| !error.is_null())
            .and_then(|_| error_words(&value))
        {
            return Err(self.provider(&words));
        }

        let is_answer = self.remote.protocol.whole(&mut self.draft, &value);
        if !self.draft.text.is_empty() {
            watch(&self.draft.text);
        }

        Ok(is_answer)
    }

    /// Makes the answer, or says what came instead.
    fn answer(self) -> Result<ModelAnswer, ModelError> {
        if self.draft.recognised {
            return self.whole_answer();
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

    /// Makes the answer of what was recognised, without the key that a server may have echoed.
    fn whole_answer(mut self) -> Result<ModelAnswer, ModelError> {
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

    /// Takes the text out, without the key.
    fn take_text(&mut self) -> String {
        self.remote.key.hide(std::mem::take(&mut self.draft.text))
    }

    /// Wraps the provider's words.
    fn provider(&mut self, words: &str) -> ModelError {
        ModelError::Provider {
            detail: self.remote.key.scrub(words),
            partial: self.take_text(),
        }
    }

    /// Says that a limit of size was passed.
    fn too_large(&mut self, limit: usize) -> ModelError {
        ModelError::TooLarge {
            limit,
            partial: self.take_text(),
        }
    }
}
