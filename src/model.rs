//! Language models behind one trait, [`Model`].
//!
//! A model turns a [`ModelRequest`] into a [`ModelAnswer`]. If it fails, the [`ModelError`] keeps
//! the part of the answer that had arrived. This module knows nothing of sessions, plans or
//! terminals; [`model_env::ModelEnv`] is its way to the environment and the user.

pub mod acting;
pub mod discovery;
mod error;
mod job;
pub mod known;
pub mod local;
pub mod model_env;
pub mod open;
pub mod pipeline;
pub mod price;
pub mod prompt;
pub mod remote;
pub mod settings;
pub mod token;

pub use error::ModelError;

/// An API, a program, a recording or the user.
pub trait Model {
    /// Fails if the model is a program that is not installed.
    fn check_installed(&self) -> Result<(), ModelError> {
        Ok(())
    }

    /// Requests an answer. `watch` gets the whole text each time more arrives, and an empty string
    /// now and then while nothing does, so that the caller can show progress.
    fn answer(
        &self,
        request: &ModelRequest,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError>;
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelRequest {
    pub system: String,
    /// The turn's `input.md`. Sent before the message, so that providers can cache what stays the
    /// same.
    pub input: String,
    pub message: String,
    /// `None` uses the model's own limit.
    pub max_tokens: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelAnswer {
    pub text: String,
    /// As the provider reports it. Can differ from the requested one.
    pub model: String,
    pub usage: TokenUsage,
    /// US dollars. `None` if the model doesn't report it.
    pub cost: Option<f64>,
    /// Only [`Finish::Stop`] marks a complete answer.
    pub finish: Finish,
}

/// More than any model reports. Sums of numbers up to this cannot overflow.
pub const MOST_TOKENS: u64 = 1 << 40;

/// Of one exchange. All zero if the model doesn't report usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TokenUsage {
    /// With cached tokens.
    pub input: u64,
    /// With hidden reasoning.
    pub output: u64,
    /// The part of `input` read from the provider's cache.
    pub cached: u64,
    /// The part of `input` written to the cache, if the provider charges for that.
    pub cache_written: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Finish {
    Stop,
    /// Cut at the token limit.
    Length,
    /// As the provider names it.
    Other(String),
    /// The call failed after the provider had reported tokens, which cost money.
    Failed(Box<ModelError>),
}

impl ModelAnswer {
    /// Creates a complete answer of a model that reports nothing about it.
    pub(crate) fn unmeasured(text: String, model: impl Into<String>) -> ModelAnswer {
        ModelAnswer {
            text,
            model: model.into(),
            usage: TokenUsage::default(),
            cost: None,
            finish: Finish::Stop,
        }
    }

    /// Shows an answer that someone else got. Fails if it is empty.
    fn shown(
        text: String,
        model: &str,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError> {
        if text.trim().is_empty() {
            let reason = String::new();
            return Err(ModelError::Empty { reason });
        }
        watch(&text);
        Ok(ModelAnswer::unmeasured(text, model))
    }

    /// An incomplete answer is never executed.
    pub fn is_complete(&self) -> bool {
        self.finish == Finish::Stop
    }

    /// Returns the text. Fails if the answer is incomplete.
    pub fn into_complete(self) -> Result<String, ModelError> {
        let partial = self.text;
        match self.finish {
            Finish::Stop => Ok(partial),
            Finish::Length => Err(ModelError::Truncated { partial }),
            Finish::Other(reason) => Err(ModelError::Ended { reason, partial }),
            Finish::Failed(error) => Err(*error),
        }
    }
}

impl Finish {
    /// Classifies a provider's reason. Compatible servers use several names, in any case.
    pub(crate) fn of(reason: &str) -> Finish {
        match reason.to_ascii_lowercase().as_str() {
            "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "complete"
            | "completed" => Finish::Stop,
            "length"
            | "max_tokens"
            | "max_output_tokens"
            | "max_length"
            | "model_length"
            | "model_context_window_exceeded" => Finish::Length,
            _ => Finish::Other(reason.to_owned()),
        }
    }
}

impl TokenUsage {
    /// The tokens since an earlier count. `None` if one of the numbers is smaller than before.
    pub fn since(self, before: TokenUsage) -> Option<TokenUsage> {
        Some(TokenUsage {
            input: self.input.checked_sub(before.input)?,
            output: self.output.checked_sub(before.output)?,
            cached: self.cached.checked_sub(before.cached)?,
            cache_written: self.cache_written.checked_sub(before.cache_written)?,
        })
    }

    /// `false` if the model didn't report its usage.
    pub fn is_known(&self) -> bool {
        // No request is empty.
        self.input > 0
    }
}

impl ModelRequest {
    /// Input first.
    pub fn user_text(&self) -> String {
        join_parts(&[self.input.trim_end(), &message_part(&self.message)])
    }

    /// For models without a separate system prompt.
    pub fn full_text(&self) -> String {
        join_parts(&[
            self.system.trim_end(),
            self.input.trim_end(),
            &message_part(&self.message),
        ])
    }
}

pub(crate) fn message_part(message: &str) -> String {
    if message.trim().is_empty() {
        String::new()
    } else {
        format!("# Message\n\n{}", message.trim_end())
    }
}

fn join_parts(parts: &[&str]) -> String {
    let mut text = parts
        .iter()
        .filter(|part| !part.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join("\n\n");
    text.push('\n');
    text
}
