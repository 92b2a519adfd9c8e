//! Language models behind one trait.
//!
//! A model gets a [`ModelRequest`] and yields a [`ModelAnswer`], or says why not in a
//! [`ModelError`] that keeps what had arrived. Nothing here knows sessions, plans or a terminal;
//! what depends on the machine and the person comes in through [`outside::Outside`].

pub mod acting;
pub mod command;
mod error;
pub mod found;
mod job;
mod likely;
pub mod manual;
pub mod open;
pub mod outside;
pub mod pipeline;
pub mod price;
pub mod prompt;
pub mod remote;
pub mod replay;
pub mod settings;
pub mod token;

/// Something that answers.
pub trait Model {
    /// Returns the name under which the user knows it.
    fn name(&self) -> &str;

    /// Asks for an answer. `watch` gets the whole text so far, each time that more has arrived, and
    /// an empty one now and then while nothing does.
    ///
    /// # Errors
    /// Any [`ModelError`]; nothing of it was executed or stored.
    fn answer(
        &self,
        request: &ModelRequest,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError>;
}

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelRequest {
    /// The system prompt.
    pub system: String,
    /// The turn's `input.md`. It stands before the message, so that providers can cache the part
    /// that stays.
    pub input: String,
    /// The user's words.
    pub message: String,
    /// The most tokens of an answer; the model's own limit without it.
    pub max_tokens: Option<u32>,
}

/// What a model said.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAnswer {
    /// The text.
    pub text: String,
    /// The model that answered, which may be another one than was asked.
    pub model: String,
    /// What it used.
    pub usage: TokenUsage,
    /// What it cost in dollars, where it says so itself.
    pub cost: Option<f64>,
    /// Why it ended. Only [`Finish::Stop`] is a whole answer.
    pub finish: Finish,
}

/// Tokens of one exchange; all zero where the model does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TokenUsage {
    /// All tokens that were sent, those from a cache included.
    pub input: u64,
    /// The tokens of the answer, hidden reasoning included.
    pub output: u64,
    /// Those of `input` that came from the provider's cache.
    pub cached: u64,
    /// Those of `input` that the provider put into its cache, where it has a price for that.
    pub cache_written: u64,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// The model was done.
    Stop,
    /// The limit of tokens was reached: the answer is cut.
    Length,
    /// Something else, in the provider's word.
    Other(String),
}

/// Why there is no answer. The text after the facts is in `Display`; what to do is in
/// [`ModelError::remedy`].
#[derive(Debug, Clone, PartialEq)]
pub enum ModelError {
    /// The settings make no model.
    Settings(String),
    /// A name or a `kind:id` that means no model.
    Unknown(String),
    /// A word that is the name of no model.
    NoSuchModel {
        /// The word.
        word: String,
        /// The names in the configuration.
        configured: Vec<String>,
    },
    /// There is no key, or a placeholder, in this variable.
    NoKey {
        /// The model's name.
        model: String,
        /// The variable that was looked at.
        variable: String,
    },
    /// The command that prints the key did not.
    KeyCommand {
        /// What went wrong.
        detail: String,
    },
    /// 401 or 403.
    Unauthorized {
        /// Scheme, host and port.
        origin: String,
        /// The provider's words.
        detail: String,
    },
    /// 404: no such model, or no such address.
    NotFound {
        /// The model's id.
        id: String,
        /// The address that was asked.
        address: String,
        /// The provider's words.
        detail: String,
    },
    /// 429, also after waiting.
    Quota {
        /// The provider's words.
        detail: String,
    },
    /// 402, or words that say as much.
    Credit {
        /// The provider's words.
        detail: String,
    },
    /// Another refusal: 400, 413, 422.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The provider's words.
        detail: String,
    },
    /// 5xx, also after waiting.
    Server {
        /// The HTTP status.
        status: u16,
        /// The provider's words.
        detail: String,
    },
    /// The answer is neither JSON nor an event stream.
    NotJson {
        /// The address that was asked.
        address: String,
        /// How it begins.
        sample: String,
    },
    /// No connection, or it broke before the first byte.
    Connect {
        /// Scheme, host and port.
        origin: String,
        /// What the system said.
        detail: String,
    },
    /// The connection ended before the answer did.
    Broken {
        /// What is missing.
        detail: String,
        /// What had arrived.
        partial: String,
    },
    /// The provider reported an error in place of its answer, or in the middle of it.
    Provider {
        /// The provider's words.
        detail: String,
        /// What had arrived.
        partial: String,
    },
    /// The model ended its answer before it was done: it refused, or wanted a tool.
    Ended {
        /// The provider's word for it.
        reason: String,
        /// What had arrived.
        partial: String,
    },
    /// Nothing came for too long.
    Idle {
        /// The limit.
        limit: std::time::Duration,
        /// What had arrived.
        partial: String,
    },
    /// The whole took too long.
    Timeout {
        /// The limit.
        limit: std::time::Duration,
        /// What had arrived.
        partial: String,
    },
    /// The server sends elsewhere.
    Redirect {
        /// Scheme, host and port that was asked.
        origin: String,
        /// Where it points.
        location: String,
    },
    /// More than an answer can have.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
        /// What had arrived.
        partial: String,
    },
    /// The answer has no text.
    Empty {
        /// Why it ended, if it said so.
        reason: String,
    },
    /// The answer was cut where only a whole one is of use.
    Truncated {
        /// What had arrived.
        partial: String,
    },
    /// The program is not there.
    CommandMissing {
        /// The program.
        program: String,
    },
    /// The program failed.
    CommandFailed {
        /// The program.
        program: String,
        /// `exit status: 1`, `signal: 9`.
        status: String,
        /// The end of what it wrote to stderr.
        stderr: String,
    },
    /// The program succeeded and printed nothing.
    CommandSilent {
        /// The program.
        program: String,
        /// The end of what it wrote to stderr.
        stderr: String,
    },
    /// An agent did not do its work: it is not installed, not logged in, or broke off; or a model
    /// that edits files itself was asked for an answer.
    Agent {
        /// What went wrong.
        detail: String,
        /// What the user can do about it.
        remedy: String,
    },
    /// The recorded answers are used up.
    ReplayEnded {
        /// How many there are.
        answers: usize,
    },
    /// Reading or writing failed.
    Io {
        /// What was tried: ``reading `answers/01.md` ``.
        action: String,
        /// What the system said.
        detail: String,
    },
    /// The call would cost more than is left.
    CostLimit {
        /// What it would cost, in dollars.
        estimate: f64,
        /// What the session has cost.
        spent: f64,
        /// What it may cost.
        limit: f64,
    },
    /// A model that edits files itself was stopped, because it used up what was left.
    SpentWhileActing {
        /// What was left for it, in dollars.
        left: f64,
    },
    /// A person must answer, and none is at a terminal.
    Nobody {
        /// What was done so far: where the input is.
        detail: String,
    },
    /// The user stopped it.
    Interrupted {
        /// What had arrived.
        partial: String,
    },
}

impl ModelAnswer {
    /// Says whether the model was done; any other answer is never executed.
    pub fn is_whole(&self) -> bool {
        self.finish == Finish::Stop
    }
}

impl TokenUsage {
    /// Says whether the model told what it used.
    pub fn is_known(&self) -> bool {
        self.input > 0 || self.output > 0
    }
}

impl ModelRequest {
    /// Returns input and message as one text, the input first.
    pub fn user_text(&self) -> String {
        join(&[self.input.trim_end(), &message_part(&self.message)])
    }

    /// Returns everything as one text, for what has no place of its own for a system prompt.
    pub fn whole_text(&self) -> String {
        join(&[
            self.system.trim_end(),
            self.input.trim_end(),
            &message_part(&self.message),
        ])
    }
}

/// Returns the message under its heading, or nothing.
pub(crate) fn message_part(message: &str) -> String {
    if message.trim().is_empty() {
        String::new()
    } else {
        format!("# Message\n\n{}", message.trim_end())
    }
}

/// Joins the parts that are not empty with a blank line and ends with a newline.
fn join(parts: &[&str]) -> String {
    let mut text = parts
        .iter()
        .filter(|part| !part.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join("\n\n");
    text.push('\n');
    text
}
