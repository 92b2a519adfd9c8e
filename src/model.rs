//! Language models behind one trait, [`Model`].
//!
//! A model turns a [`ModelRequest`] into a [`ModelAnswer`]. If it fails, the [`ModelError`] keeps
//! the part of the answer that had arrived. This module knows nothing of sessions, plans or
//! terminals; the environment and the user come in through [`outside::Outside`].

pub mod acting;

pub mod command;
pub mod discovery;
mod error;
mod job;
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

/// A source of answers: an API, a program, a recording or the user.
pub trait Model {
    /// The name under which the user configured the model.
    fn name(&self) -> &str;

    /// Requests an answer.
    ///
    /// `watch` gets the whole text so far each time more arrives, and an empty string every now and
    /// then while nothing does, so that the caller can show progress.
    fn answer(
        &self,
        request: &ModelRequest,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError>;
}

/// One request to a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelRequest {
    /// The system prompt.
    pub system: String,
    /// The turn's `input.md`. Sent before the message so that providers can cache the prefix that
    /// stays the same from turn to turn.
    pub input: String,
    /// The user's message.
    pub message: String,
    /// Upper bound on the answer. `None` uses the model's own limit.
    pub max_tokens: Option<u32>,
}

/// An answer from a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAnswer {
    pub text: String,
    /// The model that answered. Can differ from the one requested.
    pub model: String,
    pub usage: TokenUsage,
    /// Cost in US dollars. `None` if the model doesn't report it.
    pub cost: Option<f64>,
    /// Reason for the end. Only [`Finish::Stop`] marks a complete answer.
    pub finish: Finish,
}

/// Token counts of one exchange. All zero if the model doesn't report usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TokenUsage {
    /// All input tokens, cached ones included.
    pub input: u64,
    /// Output tokens, hidden reasoning included.
    pub output: u64,
    /// The part of `input` read from the provider's cache.
    pub cached: u64,
    /// The part of `input` written to the provider's cache, if the provider charges for that.
    pub cache_written: u64,
}

/// Reason for the end of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The model finished.
    Stop,
    /// The answer was cut at the token limit.
    Length,
    /// Any other reason, as the provider names it.
    Other(String),
}

/// A failed request. `Display` describes the failure, [`ModelError::remedy`] a way out.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelError {
    /// The model's configuration is invalid.
    Settings(String),
    /// An invalid model name or `kind:id`.
    Unknown(String),
    /// A name that matches no model.
    NoSuchModel {
        word: String,
        /// All configured names.
        configured: Vec<String>,
    },
    /// The API key is missing, empty or a placeholder.
    NoKey {
        model: String,
        /// The variable expected to contain the key.
        variable: String,
    },
    /// `api_key_command` failed.
    KeyCommand {
        /// Description of the failure.
        detail: String,
    },
    /// HTTP 401 or 403.
    Unauthorized {
        /// Scheme, host and port.
        origin: String,
        /// The provider's message.
        detail: String,
    },
    /// HTTP 404: unknown model or wrong address.
    NotFound {
        id: String,
        /// The requested URL.
        address: String,
        /// The provider's message.
        detail: String,
    },
    /// HTTP 429, even after retries.
    Quota {
        /// The provider's message.
        detail: String,
    },
    /// HTTP 402, or a message that means the same.
    Credit {
        /// The provider's message.
        detail: String,
    },
    /// Any other rejection, such as HTTP 400, 413 or 422.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The provider's message.
        detail: String,
    },
    /// HTTP 5xx, even after retries.
    Server {
        /// The HTTP status.
        status: u16,
        /// The provider's message.
        detail: String,
    },
    /// The response is neither JSON nor an event stream.
    NotJson {
        /// The requested URL.
        address: String,
        /// The start of the response.
        sample: String,
    },
    /// The connection failed or broke before the first byte.
    Connect {
        /// Scheme, host and port.
        origin: String,
        /// The system's error message.
        detail: String,
    },
    /// The connection ended before the answer did.
    Broken {
        /// Description of the missing part.
        detail: String,
        /// The part that had arrived.
        partial: String,
    },
    /// The provider reported an error instead of an answer, or in the middle of one.
    Provider {
        /// The provider's message.
        detail: String,
        /// The part that had arrived.
        partial: String,
    },
    /// The model refused to answer.
    Declined {
        /// Its words.
        detail: String,
        /// The answer so far.
        partial: String,
    },
    /// The model called a tool.
    CalledTool {
        /// Name of the tool.
        tool: String,
        /// The answer so far.
        partial: String,
    },
    /// The model stopped early: it refused, or asked for a tool.
    Ended {
        /// The provider's name for the reason.
        reason: String,
        /// The part that had arrived.
        partial: String,
    },
    /// No data arrived within the idle limit.
    Idle {
        /// The limit that was exceeded.
        limit: std::time::Duration,
        /// The part that had arrived.
        partial: String,
    },
    /// The answer as a whole took too long.
    Timeout {
        /// The limit that was exceeded.
        limit: std::time::Duration,
        /// The part that had arrived.
        partial: String,
    },
    /// The server redirects, which TeDDy never follows.
    Redirect {
        /// Scheme, host and port of the original request.
        origin: String,
        /// The redirect's target.
        location: String,
    },
    /// The answer is too large.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
        /// The part that had arrived.
        partial: String,
    },
    /// The answer contains no text.
    Empty {
        /// Reason for the end. Empty if the model doesn't report one.
        reason: String,
    },
    /// The answer was cut, and the caller needs a complete one.
    Truncated {
        /// The part that had arrived.
        partial: String,
    },
    /// The program doesn't exist.
    CommandMissing {
        program: String,
    },
    /// The program failed.
    CommandFailed {
        program: String,
        /// Its exit status, such as `exit status: 1` or `signal: 9`.
        status: String,
        /// The end of its stderr.
        stderr: String,
    },
    /// The program succeeded but printed nothing.
    CommandSilent {
        program: String,
        /// The end of its stderr.
        stderr: String,
    },
    /// An agent failed (not installed, not logged in, broke off), or a plan was requested from a
    /// model that edits files itself.
    Agent {
        /// Description of the failure.
        detail: String,
        /// Suggestion for the user.
        remedy: String,
    },
    /// All recorded answers are used up.
    ReplayEnded {
        /// Number of recorded answers.
        answers: usize,
    },
    /// Reading or writing failed.
    Io {
        /// The attempted operation, such as ``reading `answers/01.md` ``.
        action: String,
        /// The system's error message.
        detail: String,
    },
    /// The call would exceed the cost limit. Nothing was sent.
    CostLimit {
        /// Estimated cost of the call in US dollars.
        estimate: f64,
        /// Cost of the session so far.
        session_cost: f64,
        /// The session's limit.
        limit: f64,
    },
    /// An agent was stopped because it used up the remaining budget.
    BudgetExceeded {
        /// The budget at its start, in US dollars.
        budget: f64,
    },
    /// Only the user can get the answer, but stdin is not a terminal.
    NoTerminal {
        /// Progress so far, such as the path of the input.
        detail: String,
    },
    /// The user cancelled the request.
    Interrupted {
        /// The part that had arrived.
        partial: String,
    },
}

impl ModelAnswer {
    /// `true` if the model finished. Any other answer is never executed.
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
    /// Joins input and message, input first.
    pub fn user_text(&self) -> String {
        join_parts(&[self.input.trim_end(), &message_part(&self.message)])
    }

    /// Joins everything into one text, for models without a separate system prompt.
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
