//! What has arrived of an answer, whatever the protocol.

use crate::model::{Answer, Finish, ModelError, Usage};

/// An answer on its way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    /// The text so far.
    pub text: String,
    /// The model that answers, once it is named.
    pub model: Option<String>,
    /// What was used, as far as it is known.
    pub usage: Usage,
    /// Why it ended, once that is said.
    pub finish: Option<Finish>,
    /// Whether the protocol's mark of the end came.
    pub ended: bool,
    /// Whether anything of the protocol was seen.
    pub recognised: bool,
}

impl Draft {
    /// Makes the answer of it.
    ///
    /// # Errors
    /// [`ModelError::Broken`] where the end was never announced, [`ModelError::Empty`] where there is no text.
    pub fn into_answer(self, id: &str) -> Result<Answer, ModelError> {
        let Some(finish) = self.finish.or_else(|| self.ended.then_some(Finish::Stop)) else {
            return Err(ModelError::Broken { detail: "the connection closed before the end".into(), partial: self.text });
        };
        if self.text.trim().is_empty() {
            let reason = match finish {
                Finish::Stop => String::new(),
                Finish::Length => "the limit of tokens was reached before any text".into(),
                Finish::Other(word) => word,
            };
            return Err(ModelError::Empty { reason });
        }
        Ok(Answer { text: self.text, model: self.model.unwrap_or_else(|| id.to_owned()), usage: self.usage, finish })
    }
}

/// Returns a number of a JSON object, 0 where there is none.
pub fn number(value: &serde_json::Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(serde_json::Value::as_u64).unwrap_or(0)
}

/// Returns a text of a JSON object, if it is there and not empty.
pub fn text<'a>(value: &'a serde_json::Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(serde_json::Value::as_str).filter(|text| !text.is_empty())
}

/// Returns the words of an error as providers wrap them: `{"error": {"message"}}`, `{"error": ".."}`, `{"message"}`, `{"detail"}`.
pub fn error_words(value: &serde_json::Value) -> Option<String> {
    let found = ["/error/message", "/error", "/message", "/detail", "/0/error/message"].iter().find_map(|pointer| text(value, pointer));
    found.map(str::to_owned).or_else(|| value.get("error").filter(|error| !error.is_null()).map(ToString::to_string))
}
