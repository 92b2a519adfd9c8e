//! Reads the body of a successful response: a stream of events or a single JSON object.
//!
//! Servers don't always answer in the requested form, or with the right content type, so the first
//! byte tells the two apart.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::Remote;
use super::draft::{AnswerDraft, provider_message};
use super::sse::{EventTooLong, SseDecoder, SseEvent};
use crate::model::{Finish, ModelAnswer, ModelError, TokenUsage};

/// In bytes, of an unrecognized response.
const SAMPLE: usize = 200;

pub struct AnswerReader<'a> {
    remote: &'a Remote,
    draft: AnswerDraft,
    decoder: SseDecoder,
    /// `None` before the first byte.
    is_stream: Option<bool>,
    /// The whole body, or the first `SAMPLE` bytes of a stream.
    raw: Vec<u8>,
    size: usize,
}

impl<'a> AnswerReader<'a> {
    pub fn new(remote: &'a Remote) -> AnswerReader<'a> {
        AnswerReader {
            remote,
            draft: AnswerDraft::default(),
            decoder: SseDecoder::new(remote.limits.event),
            is_stream: None,
            raw: Vec::new(),
            size: 0,
        }
    }

    /// While only whitespace and comments have arrived, which servers send to keep a connection
    /// open.
    pub fn is_empty(&self) -> bool {
        self.is_stream != Some(false) && !self.draft.recognised && !self.decoder.is_in_event()
    }

    pub fn usage(&self) -> TokenUsage {
        self.draft.usage
    }

    /// After the protocol's end marker.
    pub fn is_done(&self) -> bool {
        self.draft.ended
    }

    /// Even if the protocol's end marker is missing.
    pub fn has_finish(&self) -> bool {
        self.draft.finish.is_some()
    }

    /// Fails if the answer is too large or the provider reports an error.
    pub fn take(&mut self, bytes: &[u8], watch: &mut dyn FnMut(&str)) -> Result<(), ModelError> {
        // Decompressed bytes: a small response can expand to gigabytes.
        self.size += bytes.len();
        if self.size > self.remote.limits.bytes {
            return Err(self.too_large(self.remote.limits.bytes));
        }

        if self.is_stream.is_none() {
            let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
            // No line of an event starts with a bracket.
            self.is_stream = first.map(|byte| !b"{[".contains(byte));
        }
        match self.is_stream {
            None => return Ok(()),
            Some(false) => {
                self.raw.extend_from_slice(bytes);
                return Ok(());
            }
            Some(true) => {}
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
    pub fn finish(&mut self, watch: &mut dyn FnMut(&str)) -> Result<ModelAnswer, ModelError> {
        let Some(is_stream) = self.is_stream else {
            return Err(ModelError::Empty {
                reason: "the server sent nothing".into(),
            });
        };
        if !is_stream && self.take_complete(watch)? {
            return self.answer();
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

            (self.remote.protocol.event)(&mut self.draft, &event)
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

        let is_answer = (self.remote.protocol.read_complete)(&mut self.draft, &value);
        if !self.draft.text.is_empty() {
            watch(&self.draft.text);
        }

        Ok(is_answer)
    }

    /// If nothing was recognized, explains what the server sent.
    fn answer(&mut self) -> Result<ModelAnswer, ModelError> {
        if self.draft.recognised {
            return self.complete_answer();
        }

        let fields = ["data:", "event:", ":"];
        let start = self.raw.trim_ascii_start();
        if fields
            .iter()
            .any(|field| start.starts_with(field.as_bytes()))
        {
            return Err(ModelError::Broken {
                detail: "the connection closed before the first event".into(),
                partial: String::new(),
            });
        }

        let cut =
            serde_json::from_slice::<IgnoredAny>(&self.raw).is_err_and(|error| error.is_eof());
        if cut && start.starts_with(b"{") {
            return Err(ModelError::Broken {
                detail: "the connection closed before the end".into(),
                partial: String::new(),
            });
        }

        let sample = self.remote.secrets.scrub(&String::from_utf8_lossy(
            &self.raw[..self.raw.len().min(SAMPLE)],
        ));
        Err(ModelError::NotJson {
            address: self.remote.address(),
            sample,
        })
    }

    fn complete_answer(&mut self) -> Result<ModelAnswer, ModelError> {
        self.draft.text = self.take_text();
        let secrets = &self.remote.secrets;
        let usage = self.draft.usage;
        let draft = std::mem::take(&mut self.draft);
        self.draft.usage = usage;
        let answer = AnswerDraft {
            refusal: secrets.hide(&draft.refusal),
            tool: draft.tool.map(|name| secrets.hide(&name)),
            model: draft.model.map(|name| secrets.hide(&name)),
            finish: draft.finish.map(|finish| match finish {
                Finish::Other(word) => Finish::Other(secrets.hide(&word)),
                finish => finish,
            }),
            ..draft
        }
        .into_answer(&self.remote.id)?;
        Ok(ModelAnswer {
            cost: None,
            ..answer
        })
    }

    pub fn take_text(&mut self) -> String {
        self.remote
            .secrets
            .hide(&std::mem::take(&mut self.draft.text))
    }

    fn provider(&mut self, message: &str) -> ModelError {
        ModelError::Provider {
            detail: self.remote.secrets.scrub(message),
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
