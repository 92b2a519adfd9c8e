//! What has arrived of an answer, whatever the protocol.

use crate::model::{Finish, ModelAnswer, ModelError, TokenUsage};
use crate::text::visible::visible;

/// The longest name that a server may give itself or the end of its answer, in characters.
const MAX_WORD: usize = 200;

/// An answer on its way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerDraft {
    /// The text so far.
    pub text: String,
    /// The model that answers, once it is named.
    pub model: Option<String>,
    /// What was used, as far as it is known.
    pub usage: TokenUsage,
    /// Why it ended, once that is said.
    pub finish: Option<Finish>,
    /// Whether the protocol's mark of the end came.
    pub ended: bool,
    /// Whether anything of the protocol was seen.
    pub recognised: bool,
}

impl AnswerDraft {
    /// Makes the answer of it.
    ///
    /// # Errors
    /// [`ModelError::Broken`] where the end was never announced, [`ModelError::Empty`] where there
    /// is no text.
    pub fn into_answer(self, id: &str) -> Result<ModelAnswer, ModelError> {
        let finish = self.finish.map(|finish| {
            if let Finish::Other(reason) = finish {
                Finish::Other(word(&reason))
            } else {
                finish
            }
        });

        let Some(finish) = finish.or_else(|| self.ended.then_some(Finish::Stop)) else {
            return Err(ModelError::Broken {
                detail: "the connection closed before the end".into(),
                partial: self.text,
            });
        };

        if self.text.trim().is_empty() {
            let reason = match finish {
                Finish::Stop => String::new(),
                Finish::Length => "the limit of tokens was reached before any text".into(),
                Finish::Other(word) => word,
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

/// Returns a server's word as one visible line: it goes into records and onto the screen.
fn word(text: &str) -> String {
    visible(&text.chars().take(MAX_WORD).collect::<String>()).into_owned()
}

/// Returns a number of a JSON object, 0 where there is none.
pub fn number(value: &serde_json::Value, pointer: &str) -> u64 {
    value
        .pointer(pointer)
        .and_then(serde_json::Value::as_u64)
        .unwrap_or(0)
}

/// Returns a text of a JSON object, if it is there and not empty.
pub fn text<'a>(value: &'a serde_json::Value, pointer: &str) -> Option<&'a str> {
    value
        .pointer(pointer)
        .and_then(serde_json::Value::as_str)
        .filter(|text| !text.is_empty())
}

/// Returns the words of an error as providers wrap them: `{"error": {"message"}}`, `{"error":
/// ".."}`, `{"message"}`, `{"detail"}`.
pub fn error_words(value: &serde_json::Value) -> Option<String> {
    let found = [
        "/error/message",
        "/error",
        "/message",
        "/detail",
        "/0/error/message",
    ]
    .iter()
    .find_map(|pointer| text(value, pointer));

    found.map(str::to_owned).or_else(|| {
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
                error_words(&serde_json::from_str(text).unwrap()).as_deref(),
                Some("m"),
                "{text}"
            );
        }
        assert_eq!(
            error_words(&serde_json::json!({ "error": { "code": 7 } })).as_deref(),
            Some("{\"code\":7}")
        );
    }
}
