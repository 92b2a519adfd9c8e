//! Errors of models: what failed, and what the user can do about it.

use super::known::{KnownProgram, PROGRAMS, PROVIDERS, Provider};
use crate::config::settings::ModelKind;
use crate::text::near::nearest;

/// `Display` describes the failure, [`ModelError::remedy`] a way out. `partial` is the part that
/// had arrived, `detail` the message of the provider or system, `origin` the scheme, host and port.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    #[error("{0}")]
    Settings(String),
    #[error("{0}")]
    Unknown(String),
    #[error("`{word}` is not a known model")]
    NoSuchModel {
        word: String,
        configured: Vec<String>,
    },
    #[error("model `{model}` has no key: {variable} is not set, empty or a placeholder")]
    NoKey {
        model: String,
        /// Where the key was expected.
        variable: String,
    },
    #[error("the command for the key failed: {detail}")]
    KeyCommand { detail: String },
    /// HTTP 401 or 403.
    #[error("{origin} does not accept the key{}", colon(detail))]
    Unauthorized { origin: String, detail: String },
    /// HTTP 404: unknown model or wrong address.
    #[error("{address} knows no model `{id}`{}", colon(detail))]
    NotFound {
        id: String,
        address: String,
        detail: String,
    },
    /// HTTP 429, even after retries.
    #[error("too many requests, or no credit left{}", colon(detail))]
    Quota { detail: String },
    /// HTTP 402, or a message that means the same.
    #[error("no credit is left{}", colon(detail))]
    Credit { detail: String },
    /// Any other rejection, such as HTTP 400, 413 or 422.
    #[error("the request was refused with status {status}{}", colon(detail))]
    Refused { status: u16, detail: String },
    /// HTTP 5xx, even after retries.
    #[error("the provider failed with status {status}{}", colon(detail))]
    Server { status: u16, detail: String },
    #[error("{address} returned something that is not a model response: `{sample}`")]
    NotJson {
        address: String,
        /// The start of the response.
        sample: String,
    },
    /// The connection failed or broke before the first byte.
    #[error("cannot reach {origin}{}", colon(detail))]
    Connect { origin: String, detail: String },
    #[error("the answer broke off{}", colon(detail))]
    Broken { detail: String, partial: String },
    #[error("the provider {}{}", provider_step(partial), colon(detail))]
    Provider { detail: String, partial: String },
    #[error("the model refused to answer{}", colon(detail))]
    Declined { detail: String, partial: String },
    #[error("the model called the tool `{tool}` instead of answering, and TeDDy offers none")]
    CalledTool { tool: String, partial: String },
    /// The model stopped early: it refused, or asked for a tool.
    #[error("the model ended its answer before it was done: `{reason}`")]
    Ended {
        /// As the provider names it.
        reason: String,
        partial: String,
    },
    #[error("nothing arrived for {} s", limit.as_secs_f64())]
    Idle {
        limit: std::time::Duration,
        partial: String,
    },
    #[error("the answer was not complete after {} s", limit.as_secs_f64())]
    Timeout {
        limit: std::time::Duration,
        partial: String,
    },
    #[error("{origin} redirects to {location}, which is not followed")]
    Redirect { origin: String, location: String },
    #[error("the answer is larger than {} MB", limit.div_ceil(1 << 20))]
    TooLarge {
        /// In bytes.
        limit: usize,
        partial: String,
    },
    #[error("the answer is empty{}", colon(reason))]
    Empty {
        /// Why it ended. Empty if the model doesn't report it.
        reason: String,
    },
    /// Cut, and the caller needs a complete answer.
    #[error("the answer was cut at the limit of tokens")]
    Truncated { partial: String },
    #[error("cannot find the program `{program}`")]
    CommandMissing { program: String },
    #[error("`{program}` failed ({status}){}", colon(stderr))]
    CommandFailed {
        program: String,
        /// Such as `exit status: 1` or `signal: 9`.
        status: String,
        stderr: String,
        partial: String,
    },
    #[error("`{program}` printed no answer{}", colon(stderr))]
    CommandSilent { program: String, stderr: String },
    /// An agent failed (not installed, not logged in, broke off), or a plan was requested from a
    /// model that edits files itself.
    #[error("{detail}")]
    Agent { detail: String, remedy: String },
    #[error("all {answers} recorded answers are used up")]
    ReplayEnded { answers: usize },
    #[error("{action}: {detail}")]
    Io {
        /// Such as ``reading `answers/01.md` ``.
        action: String,
        detail: String,
    },
    #[error(
        "{}${session_cost:.2} is spent, and the limit is ${limit:.2}; nothing was sent",
        would_cost(*estimate)
    )]
    CostLimit {
        /// `None` if the price is not known before.
        estimate: Option<f64>,
        session_cost: f64,
        limit: f64,
    },
    #[error("it used up the remaining ${budget:.2} and was stopped; TeDDy discarded its changes")]
    BudgetExceeded {
        /// At its start, in US dollars.
        budget: f64,
    },
    #[error(
        "someone must fetch the answer, but stdin is not a terminal{}",
        colon(detail)
    )]
    NoTerminal {
        /// Progress so far, such as the path of the input.
        detail: String,
    },
    #[error("no answer was taken; the input stays where it is")]
    NotTaken,
    #[error("interrupted")]
    Interrupted { partial: String },
}

impl ModelError {
    /// Detail of [`ModelError::Unauthorized`] if a web page answered.
    pub(super) const WEB_PAGE: &str = "an HTML page";

    pub(super) fn io(action: impl Into<String>, error: &std::io::Error) -> ModelError {
        ModelError::Io {
            action: action.into(),
            detail: error.to_string(),
        }
    }

    /// What arrived before the failure.
    pub fn partial(&self) -> Option<&str> {
        match self {
            ModelError::Broken { partial, .. }
            | ModelError::Provider { partial, .. }
            | ModelError::Ended { partial, .. }
            | ModelError::Declined { partial, .. }
            | ModelError::CalledTool { partial, .. }
            | ModelError::Idle { partial, .. }
            | ModelError::Timeout { partial, .. }
            | ModelError::TooLarge { partial, .. }
            | ModelError::CommandFailed { partial, .. }
            | ModelError::Truncated { partial }
            | ModelError::Interrupted { partial } => {
                Some(partial.as_str()).filter(|text| !text.is_empty())
            }
            _ => None,
        }
    }

    /// A sentence without a full stop.
    pub fn remedy(&self) -> String {
        match self {
            ModelError::NoSuchModel { word, configured } => model_advice(word, configured),
            ModelError::Unknown(_) => "correct `--model`, or the name in the configuration or pipeline".into(),
            ModelError::Settings(_) => "correct the model's entry under `models:` in the configuration".into(),
            ModelError::NoKey { variable, .. } => {
                format!("set {variable}, or give the model `api_key_env` or `api_key_command` in your own configuration")
            }
            ModelError::KeyCommand { .. } => "run the `api_key_command` by hand; it must print the key and nothing else".into(),
            ModelError::Unauthorized { detail, .. } if detail == ModelError::WEB_PAGE => {
                "check `base_url` and the proxy: a web page answered, and not the API; else check that the key is current and belongs to this address".into()
            }
            ModelError::Unauthorized { .. } => "check that the key is current and belongs to this address; `api_key_env` names its variable".into(),
            ModelError::NotFound { detail, .. } if detail.contains("/responses") => {
                "this model speaks another protocol: give it `kind: responses`, or use `--model responses:<id>`".into()
            }
            ModelError::NotFound { .. } => "check the model's `id`, and that `base_url` ends where the API begins (mostly `/v1`)".into(),
            ModelError::Quota { .. } => "wait a while, raise the limit at the provider, or use another model with `--model`".into(),
            ModelError::Credit { .. } => "add credit at the provider, or use another model with `--model`".into(),
            ModelError::Refused { status: 407, .. } => "the proxy asks for a login: put it into `http_proxy`, as in `http://name:password@host`".into(),
            ModelError::Refused { status, .. } if ![400, 413, 422].contains(status) => {
                "check `base_url` and the model's settings, and whether a proxy is in between".into()
            }
            ModelError::Refused { .. } => {
                "if the input is too long, take resources out of the context (`teddy context list` shows the largest); else check the model's settings".into()
            }
            ModelError::Server { .. } => "try again later, or use another model with `--model`".into(),
            ModelError::NotJson { .. } => "check `base_url`: it seems to be a web page and not an API, or a proxy is in between".into(),
            ModelError::Connect { .. } => "check `base_url`, the network and the proxy; for a local model, that its server runs".into(),
            ModelError::Redirect { .. } => "set `base_url` to the address of the API itself; a key is never forwarded to another address".into(),
            ModelError::CostLimit { .. } | ModelError::BudgetExceeded { .. } => {
                "raise `--max-cost` if you gave it, else `limits.cost` (`-c limits.cost=10` for one call), take resources out of the context, or use another model".into()
            }
            other => other.remedy_answer(),
        }
    }

    fn remedy_answer(&self) -> String {
        match self {
            ModelError::Broken { .. } | ModelError::Provider { .. } if self.partial().is_none() => {
                "run `teddy plan` again, or use another model with `--model`".into()
            }
            ModelError::Broken { .. } | ModelError::Provider { .. } => "run `teddy plan` again; what arrived is kept and was not executed".into(),
            ModelError::CalledTool { .. } => "run `teddy plan` again, or use another model with `--model`".into(),
            ModelError::Declined { .. } | ModelError::Ended { .. } => "rephrase the request, or use another model with `--model`".into(),
            ModelError::Idle { .. } => "run `teddy plan` again, or raise the model's `idle_timeout` and `first_byte_timeout`".into(),
            ModelError::Timeout { .. } => "raise the model's `timeout`, or ask for a smaller step".into(),
            ModelError::TooLarge { .. } => "ask for a smaller step; an answer of this size is not a plan".into(),
            ModelError::Empty { .. } => "run `teddy plan` again, or raise the model's `max_tokens` if it reasons before it answers".into(),
            ModelError::Truncated { .. } => "raise the model's `max_tokens`, or ask for a smaller step".into(),
            ModelError::CommandMissing { .. } => "install it, or correct `run` in the model's entry".into(),
            ModelError::CommandFailed { .. } | ModelError::CommandSilent { .. } => {
                "run it by hand: it gets the input on stdin and must print the plan on stdout; a key that it needs is named with `api_key_env`".into()
            }
            ModelError::Agent { remedy, .. } => remedy.clone(),
            ModelError::ReplayEnded { .. } => "add another answer, or use another model with `--model`".into(),
            ModelError::NotTaken => "run `teddy plan` again, or take the answer from a file with `teddy plan --from <file>`".into(),
            ModelError::NoTerminal { .. } => "take the input to your chat, and its answer back with `teddy plan --from <file>`".into(),
            ModelError::Io { .. } => "check the path and its permissions".into(),
            _ => "run `teddy plan` again".into(),
        }
    }
}

fn provider_step(partial: &str) -> &'static str {
    match partial {
        "" => "answered with an error",
        _ => "stopped in the middle of its answer",
    }
}

fn would_cost(estimate: Option<f64>) -> String {
    estimate.map_or_else(String::new, |dollars| {
        format!("the call would cost about ${dollars:.2}, ")
    })
}

fn colon(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(": {detail}")
    }
}

fn model_advice(word: &str, configured: &[String]) -> String {
    let listing = match configured {
        [] => "no model is configured: `teddy setup` finds one".to_owned(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("configured: {}", names.join(", "))
        }
    };
    match suggest_model(word, configured) {
        Some(suggestion) if suggestion.ends_with('?') => format!("{suggestion} {listing}"),
        Some(suggestion) => format!("{suggestion}; {listing}"),
        None => format!(
            "{listing}; or use `openai:<id>`, `responses:<id>`, `anthropic:<id>`, `command:<program>`, `replay:<path>`, `acp:<agent>`, `agent:<agent>`, `manual`"
        ),
    }
}

/// A shorter word resembles too many names.
const MIN_TYPO: usize = 4;

fn did_you_mean(suggestion: &str) -> String {
    format!("did you mean `{suggestion}`?")
}

fn sets_up(model: &str) -> String {
    format!("`teddy setup --model {model}` sets it up")
}

fn suggest_model(word: &str, configured: &[String]) -> Option<String> {
    if let Some(name) = nearest(word, configured.iter().map(String::as_str)) {
        return Some(did_you_mean(name));
    }

    let is_offered = Provider::find(word).is_some()
        || KnownProgram::find(word).is_some_and(KnownProgram::answers);
    if is_offered {
        return Some(sets_up(word));
    }
    if let Some(name) = nearest_offer(word) {
        return Some(format!("{} {}", did_you_mean(name), sets_up(name)));
    }
    if nearest(word, ["manual"]).is_some() {
        return Some(did_you_mean("manual"));
    }

    if let Some((kind, id)) = word.split_once(':').filter(|(_, id)| !id.is_empty()) {
        if Provider::find(kind).is_some() {
            return Some(sets_up(word));
        }
        let kind = nearest(kind, ModelKind::names())?;
        return Some(did_you_mean(&format!("{kind}:{id}")));
    }
    suggest_provider(word)
}

/// Returns the program or provider with the most similar name.
fn nearest_offer(word: &str) -> Option<&'static str> {
    let programs = PROGRAMS.iter().filter(|program| program.answers());
    let offered = programs.map(|program| program.name);
    let offered = offered.chain(PROVIDERS.iter().map(|provider| provider.name));
    let is_similar = |name: &&str| name.len().min(word.len()) >= MIN_TYPO && !word.contains(':');
    nearest(word, offered.filter(is_similar))
}

/// Suggests a provider for the id of one of its models, such as `gpt-5`.
fn suggest_provider(word: &str) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    let provider = PROVIDERS.iter().find(|provider| {
        let mut families = provider.families.iter();
        families.any(|start| is_of_family(&lower, start))
    })?;
    let (name, is_kind) = (provider.name, provider.name == provider.kind.name());
    Some(match is_kind {
        true => did_you_mean(&format!("{name}:{word}")),
        false => sets_up(&format!("{name}:{word}")),
    })
}

/// Matches `o3` and `o3-mini`, but not `o3x`.
fn is_of_family(id: &str, start: &str) -> bool {
    id.strip_prefix(start)
        .is_some_and(|suffix| start.ends_with('-') || suffix.is_empty() || suffix.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_failed_and_the_remedy_what_to_do() {
        let error = ModelError::NoKey {
            model: "gpt".into(),
            variable: "OPENAI_API_KEY".into(),
        };
        assert_eq!(
            error.to_string(),
            "model `gpt` has no key: OPENAI_API_KEY is not set, empty or a placeholder"
        );
        assert_eq!(
            error.remedy(),
            "set OPENAI_API_KEY, or give the model `api_key_env` or `api_key_command` in your own configuration"
        );
    }

    #[test]
    fn details_that_are_missing_leave_no_colon() {
        assert_eq!(
            ModelError::Empty {
                reason: String::new()
            }
            .to_string(),
            "the answer is empty"
        );
        assert_eq!(
            ModelError::Quota {
                detail: "slow down".into()
            }
            .to_string(),
            "too many requests, or no credit left: slow down"
        );
    }

    #[test]
    fn what_arrived_is_kept() {
        assert_eq!(
            ModelError::Interrupted {
                partial: "# T".into()
            }
            .partial(),
            Some("# T")
        );
        assert_eq!(
            ModelError::Interrupted {
                partial: String::new()
            }
            .partial(),
            None
        );
        assert_eq!(
            ModelError::Empty {
                reason: String::new()
            }
            .partial(),
            None
        );
    }
}

#[cfg(test)]
mod advice_tests {
    use super::*;

    /// `sonnet` and `local` are configured.
    #[track_caller]
    fn check(word: &str, expected: Option<&str>) {
        let configured = ["sonnet".to_owned(), "local".to_owned()];
        assert_eq!(
            suggest_model(word, &configured).as_deref(),
            expected,
            "{word}"
        );
    }

    #[test]
    fn an_id_without_its_kind_gets_one() {
        check("gpt-5", Some("did you mean `openai:gpt-5`?"));
        check("GPT-5", Some("did you mean `openai:GPT-5`?"));
        check("o3", Some("did you mean `openai:o3`?"));
        check("o3-mini", Some("did you mean `openai:o3-mini`?"));
        check(
            "claude-opus-5",
            Some("did you mean `anthropic:claude-opus-5`?"),
        );
        check(
            "gemini-3.8-flash",
            Some("`teddy setup --model gemini:gemini-3.8-flash` sets it up"),
        );
        check("o3x", None);
        check("nonsense", None);
    }

    #[test]
    fn a_slip_of_the_keys_is_forgiven() {
        check("sonet", Some("did you mean `sonnet`?"));
        check("opnai:gpt-5", Some("did you mean `openai:gpt-5`?"));
        check(
            "comand:claude -p",
            Some("did you mean `command:claude -p`?"),
        );
        check("openai:", None);
        check(
            "cluade",
            Some("did you mean `claude`? `teddy setup --model claude` sets it up"),
        );
        check("manaul", Some("did you mean `manual`?"));
        check("typo", None);
    }

    #[test]
    fn a_program_or_a_service_is_set_up() {
        check("claude", Some("`teddy setup --model claude` sets it up"));
        check("groq", Some("`teddy setup --model groq` sets it up"));
        check("groq:x", Some("`teddy setup --model groq:x` sets it up"));
        check("aider", None);
    }

    #[test]
    fn advice_names_what_is_configured() {
        assert_eq!(
            model_advice("gpt-5", &["a".to_owned(), "b".to_owned()]),
            "did you mean `openai:gpt-5`? configured: `a`, `b`"
        );
        assert!(
            model_advice("x", &[])
                .starts_with("no model is configured: `teddy setup` finds one; or use")
        );
    }
}
