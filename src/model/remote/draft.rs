//! A partially received answer, independent of the protocol.
//!
//! An answer is complete once the model reported its end. A truncated one must never look complete,
//! because its plan would be executed.

use serde_json::Value;

use super::sse::SseEvent;
use crate::model::{Finish, MOST_TOKENS, ModelAnswer, ModelError, TokenUsage};
use crate::text::sanitize::sanitize_line;

/// Maximum length of a name, a reason or a refusal from the server, in characters.
const MAX_WORD: usize = 200;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnswerDraft {
    pub text: String,
    /// The model's words for not answering.
    pub refusal: String,
    /// Name of the tool that the model called.
    pub tool: Option<String>,
    pub model: Option<String>,
    pub usage: TokenUsage,
    /// Once the server has sent it.
    pub finish: Option<Finish>,
    /// After the protocol's end marker.
    pub ended: bool,
    /// Anything looked like the protocol.
    pub recognised: bool,
    /// An event before the end could not be read, so a part of the text can be missing.
    pub damaged: bool,
}

impl AnswerDraft {
    pub fn json(&mut self, event: &SseEvent) -> Option<Value> {
        let value = serde_json::from_str(&event.data).ok();
        // Servers send pings as text, but a piece of the answer is an object.
        let is_broken = value.is_none() && event.data.trim_start().starts_with('{');
        self.damaged |= (is_broken || event.is_damaged) && self.finish.is_none();
        value
    }

    /// Fails with [`ModelError::Broken`] if the end is missing and with [`ModelError::Empty`] if
    /// there is no text.
    pub fn into_answer(self, id: &str) -> Result<ModelAnswer, ModelError> {
        let finish = self.finish.map(|finish| {
            if let Finish::Other(reason) = finish {
                Finish::Other(word(&reason))
            } else {
                finish
            }
        });

        // Without a finish reason, the protocol's end marker is enough.
        let Some(finish) = finish.or_else(|| self.ended.then_some(Finish::Stop)) else {
            return Err(ModelError::Broken {
                detail: "the connection closed before the end".into(),
                partial: self.text,
            });
        };

        if self.damaged {
            return Err(ModelError::Broken {
                detail: "a part of it arrived damaged".into(),
                partial: self.text,
            });
        }
        if !self.refusal.trim().is_empty() {
            return Err(ModelError::Declined {
                detail: word(self.refusal.trim()),
                partial: self.text,
            });
        }
        // A finished answer that also calls a tool is an answer.
        if let Some(tool) = &self.tool
            && (finish != Finish::Stop || self.text.trim().is_empty())
        {
            return Err(ModelError::CalledTool {
                tool: word(tool),
                partial: self.text,
            });
        }

        if self.text.trim().is_empty() {
            let reason = match finish {
                Finish::Stop => String::new(),
                Finish::Length => "the limit of tokens was reached before any text".into(),
                Finish::Other(word) => word,
                Finish::Failed(error) => error.to_string(),
            };
            return Err(ModelError::Empty { reason });
        }

        let model = self
            .model
            .map_or_else(|| id.to_owned(), |model| word(&model));
        Ok(ModelAnswer {
            text: self.text,
            model,
            usage: self.usage,
            cost: None,
            finish,
        })
    }
}

/// Strings from the server go into commit trailers and onto the screen.
fn word(text: &str) -> String {
    sanitize_line(&text.chars().take(MAX_WORD).collect::<String>()).into_owned()
}

/// A number of tokens. 0 if it is missing.
pub fn number(value: &Value, pointer: &str) -> u64 {
    value
        .pointer(pointer)
        .and_then(Value::as_u64)
        .map_or(0, |tokens| tokens.min(MOST_TOKENS))
}

/// `None` if it is empty.
pub fn text<'a>(value: &'a serde_json::Value, pointer: &str) -> Option<&'a str> {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

/// Providers use `{"error": {"message": ..}}`, `{"error": ".."}`, `{"message": ..}` or `{"detail":
/// ..}`.
pub fn provider_message(value: &Value) -> Option<String> {
    let message = [
        "/error/message",
        "/error",
        "/message",
        "/detail",
        "/0/error/message",
    ]
    .iter()
    .find_map(|pointer| text(value, pointer));

    message.map(str::to_owned).or_else(|| {
        value
            .get("error")
            .filter(|error| !error.is_null())
            .map(ToString::to_string)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_words_cannot_forge_a_record() {
        let draft = AnswerDraft {
            text: "a".into(),
            model: Some("gpt\nTeddy-Status: executed".into()),
            finish: Some(Finish::Other("x\u{1b}[2J".into())),
            ..AnswerDraft::default()
        };
        let answer = draft.into_answer("gpt").unwrap();
        assert_eq!(
            (answer.model.as_str(), answer.finish),
            (
                "gpt\\u{a}Teddy-Status: executed",
                Finish::Other("x\\u{1b}[2J".into())
            )
        );
    }

    #[test]
    fn an_error_is_found_in_every_wrapping() {
        for text in [
            r#"{"error":{"message":"m"}}"#,
            r#"{"error":"m"}"#,
            r#"{"message":"m"}"#,
            r#"{"detail":"m"}"#,
            r#"[{"error":{"message":"m"}}]"#,
        ] {
            assert_eq!(
                provider_message(&serde_json::from_str(text).unwrap()).as_deref(),
                Some("m"),
                "{text}"
            );
        }
        assert_eq!(
            provider_message(&serde_json::json!({ "error": { "code": 7 } })).as_deref(),
            Some("{\"code\":7}")
        );
    }
}
