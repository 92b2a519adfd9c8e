//! Language models behind one trait, [`Model`].
//!
//! A model turns a [`ModelRequest`] into a [`ModelAnswer`]. If it fails, the [`ModelError`] keeps
//! the part of the answer that had arrived. This module knows nothing of sessions, plans or
//! terminals; [`model_env::ModelEnv`] is its way to the environment and the user.

pub mod acting;

pub mod command;
pub mod discovery;
mod error;
mod job;
pub mod known;
pub mod manual;
pub mod model_env;
pub mod open;
pub mod pipeline;
pub mod price;
pub mod prompt;
pub mod remote;
pub mod replay;
pub mod settings;
pub mod token;

/// An API, a program, a recording or the user.
pub trait Model {
    /// As configured.
    fn name(&self) -> &str;

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    Stop,
    /// Cut at the token limit.
    Length,
    /// As the provider names it.
    Other(String),
}

/// `Display` describes the failure, [`ModelError::remedy`] a way out. `partial` is the part that
/// had arrived, `detail` the message of the provider or system, `origin` the scheme, host and port.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelError {
    Settings(String),
    Unknown(String),
    /// A name that matches no model.
    NoSuchModel {
        word: String,
        configured: Vec<String>,
    },
    /// Missing, empty or a placeholder.
    NoKey {
        model: String,
        /// Where the key was expected.
        variable: String,
    },
    KeyCommand {
        detail: String,
    },
    /// HTTP 401 or 403.
    Unauthorized {
        origin: String,
        detail: String,
    },
    /// HTTP 404: unknown model or wrong address.
    NotFound {
        id: String,
        address: String,
        detail: String,
    },
    /// HTTP 429, even after retries.
    Quota {
        detail: String,
    },
    /// HTTP 402, or a message that means the same.
    Credit {
        detail: String,
    },
    /// Any other rejection, such as HTTP 400, 413 or 422.
    Refused {
        status: u16,
        detail: String,
    },
    /// HTTP 5xx, even after retries.
    Server {
        status: u16,
        detail: String,
    },
    /// Neither JSON nor an event stream.
    NotJson {
        address: String,
        /// The start of the response.
        sample: String,
    },
    /// The connection failed or broke before the first byte.
    Connect {
        origin: String,
        detail: String,
    },
    /// The connection ended before the answer did.
    Broken {
        detail: String,
        partial: String,
    },
    /// The provider reported an error instead of an answer, or in the middle of one.
    Provider {
        detail: String,
        partial: String,
    },
    /// The model refused to answer.
    Declined {
        /// Its words.
        detail: String,
        /// The answer so far.
        partial: String,
    },
    CalledTool {
        tool: String,
        /// The answer so far.
        partial: String,
    },
    /// The model stopped early: it refused, or asked for a tool.
    Ended {
        /// As the provider names it.
        reason: String,
        partial: String,
    },
    /// Silence beyond the idle limit.
    Idle {
        limit: std::time::Duration,
        partial: String,
    },
    /// The answer as a whole took too long.
    Timeout {
        limit: std::time::Duration,
        partial: String,
    },
    /// TeDDy never follows redirects.
    Redirect {
        origin: String,
        location: String,
    },
    TooLarge {
        /// In bytes.
        limit: usize,
        partial: String,
    },
    /// No text.
    Empty {
        /// Why it ended. Empty if the model doesn't report it.
        reason: String,
    },
    /// Cut, and the caller needs a complete answer.
    Truncated {
        partial: String,
    },
    CommandMissing {
        program: String,
    },
    CommandFailed {
        program: String,
        /// Such as `exit status: 1` or `signal: 9`.
        status: String,
        /// The end of it.
        stderr: String,
    },
    /// The program succeeded but printed nothing.
    CommandSilent {
        program: String,
        /// The end of it.
        stderr: String,
    },
    /// An agent failed (not installed, not logged in, broke off), or a plan was requested from a
    /// model that edits files itself.
    Agent {
        detail: String,
        remedy: String,
    },
    ReplayEnded {
        answers: usize,
    },
    Io {
        /// Such as ``reading `answers/01.md` ``.
        action: String,
        detail: String,
    },
    /// The call would exceed the cost limit. Nothing was sent.
    CostLimit {
        /// Of the call, in US dollars.
        estimate: f64,
        session_cost: f64,
        limit: f64,
    },
    /// An agent was stopped because it used up the remaining budget.
    BudgetExceeded {
        /// At its start, in US dollars.
        budget: f64,
    },
    /// Only the user can get the answer, but stdin is not a terminal.
    NoTerminal {
        /// Progress so far, such as the path of the input.
        detail: String,
    },
    /// The user left without the answer of their chat.
    NotTaken,
    Interrupted {
        partial: String,
    },
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

    /// An incomplete answer is never executed.
    pub fn is_complete(&self) -> bool {
        self.finish == Finish::Stop
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
