//! Models behind HTTP: OpenAI-compatible chat completions, OpenAI's Responses and Anthropic's
//! Messages.
//!
//! Answers are streamed, or read as plain JSON if the server doesn't stream. There are separate
//! limits for connecting, the first byte, silence and the whole call. A call is retried only as
//! long as nothing of its answer has arrived. Redirects are not followed, and a key is sent to one
//! origin only.

mod adapt;
mod anthropic;
mod draft;
mod exchange;
mod key;
mod openai;
mod reader;
mod responses;
mod sse;

use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

use adapt::{Adaptation, Remembered};
use draft::AnswerDraft;
use key::{ApiKey, Secrets, Usual, check_encryption, origin};
pub use key::{is_loopback, is_near, is_placeholder};
use sse::SseEvent;

use super::known::{self, Provider};
use super::model_env::ModelEnv;
use super::{Model, ModelAnswer, ModelError, ModelRequest};
use crate::config::settings::{ModelKind, ModelSettings};
use crate::host::http::{self, Url, redirect};
use crate::text::sanitize::sanitize_line;
use crate::text::secret::redact;

pub struct Remote {
    name: String,
    /// The provider's.
    id: String,
    protocol: &'static Protocol,
    url: Url,
    /// What the server rejects.
    remembered: Remembered,
    key: ApiKey,
    secrets: Secrets,
    limits: CallLimits,
    settings: ModelSettings,
    stopped: Rc<dyn Fn() -> bool>,
    /// Tells the user about a retry.
    note: Rc<dyn Fn(&str)>,
    /// From 0 to 1.
    jitter: fn() -> f64,
}

/// One protocol, with functions for its requests and answers.
struct Protocol {
    /// It defined the protocol: its address and key are the usual ones.
    provider: &'static Provider,
    /// Relative to the base URL.
    path: &'static str,
    /// Header with the version of the protocol.
    version: Option<(&'static str, &'static str)>,
    /// The part of a request's body that is its own.
    content: fn(&ModelRequest) -> Value,
    /// Field with the limit of the answer, and the limit that it requires.
    limit: (&'static str, Option<u32>),
    /// The error is the provider's message.
    event: fn(&mut AnswerDraft, &SseEvent) -> Result<(), String>,
    /// `false` if the value isn't an answer.
    read_complete: fn(&mut AnswerDraft, &Value) -> bool,
    /// Changes of a rejected request that are possible.
    adaptations: &'static [Adaptation],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CallLimits {
    connect: Duration,
    /// Silence before the first byte.
    first: Duration,
    /// Silence between two chunks.
    idle: Duration,
    /// The whole call, retries included.
    total: Duration,
    /// Of the answer, after decompression.
    bytes: usize,
    /// Of one stream event.
    event: usize,
    retries: u32,
    /// Before the first retry. Doubles with each further one.
    pause: Duration,
}

impl CallLimits {
    fn new(settings: &ModelSettings) -> CallLimits {
        let seconds = |value: Option<Duration>, usual| value.unwrap_or(Duration::from_secs(usual));
        CallLimits {
            connect: seconds(settings.connect_timeout, 20),
            first: seconds(settings.first_byte_timeout, 300),
            idle: seconds(settings.idle_timeout, 120),
            total: seconds(settings.timeout, 1800),
            bytes: 32 << 20,
            event: 8 << 20,
            retries: 5,
            pause: Duration::from_millis(500),
        }
    }
}

impl Remote {
    /// Gets the key. Sends nothing.
    pub fn new(name: &str, settings: &ModelSettings, env: &ModelEnv) -> Result<Remote, ModelError> {
        let protocol = Protocol::of(settings.kind);
        let usual = protocol.usual_base(name, env)?;
        let base = settings
            .base_url
            .as_deref()
            .map_or_else(|| Ok(usual.clone()), |text| protocol.base(name, text))?;
        let id = settings.require_id(name)?.to_owned();
        let key = ApiKey::fetch(
            name,
            settings,
            &base,
            &Usual {
                variable: protocol.key(),
                base: &usual,
            },
            env,
        )?;
        let secrets = Secrets::new(&key, &settings.headers, &base);
        if !secrets.is_empty() {
            check_encryption(name, &base)?;
        }

        Ok(Remote {
            name: name.to_owned(),
            remembered: Remembered::open(env.adaptations.as_deref(), base.as_str(), &id),
            id,
            protocol,
            url: endpoint(&base, protocol.path),
            secrets,
            key,
            limits: CallLimits::new(settings),
            settings: settings.clone(),
            stopped: env.stopped.clone(),
            note: env.note.clone(),
            jitter: crate::host::http::retry_jitter,
        })
    }

    fn address(&self) -> String {
        let mut address = self.url.clone();
        // It can have a key.
        address.set_query(None);
        address.to_string()
    }
}

impl Model for Remote {
    fn answer(
        &self,
        request: &ModelRequest,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError> {
        let mut body = self.protocol.body(&self.id, &self.settings, request);
        if let Some(fields) = body.as_object_mut() {
            // Last, so that the user can override any field.
            fields.extend(self.settings.extra.clone());
        }
        let mut adaptations = self.remembered.read();
        adaptations.retain(|adaptation| adaptation.apply(&mut body, &self.settings.extra));

        let call = exchange::Call::new(self)?;
        let result = crate::host::http::block_on(call.run(body, adaptations, watch));
        result.map_err(|error| ModelError::io("starting the network", &error))?
    }
}

impl Protocol {
    fn of(kind: ModelKind) -> &'static Protocol {
        match kind {
            ModelKind::Anthropic => &anthropic::PROTOCOL,
            ModelKind::Responses => &responses::PROTOCOL,
            _ => &openai::PROTOCOL,
        }
    }

    fn is_anthropic(&self) -> bool {
        self.provider == &known::ANTHROPIC
    }

    fn body(&self, id: &str, settings: &ModelSettings, request: &ModelRequest) -> Value {
        let mut body = (self.content)(request);
        body["model"] = id.into();
        body["stream"] = true.into();
        let (name, usual) = self.limit;
        if let Some(limit) = request.max_tokens.or(settings.max_tokens).or(usual) {
            body[name] = limit.into();
        }
        if let Some(temperature) = settings.temperature {
            body["temperature"] = temperature.into();
        }
        body
    }

    /// Name of the usual key variable.
    fn key(&self) -> &'static str {
        self.provider.keys[0]
    }

    /// If the settings have no base URL: from the environment, else the provider's.
    fn usual_base(&self, name: &str, env: &ModelEnv) -> Result<Url, ModelError> {
        let Provider {
            base_url,
            base_variable,
            ..
        } = self.provider;
        let other = base_variable.and_then(|variable| (env.variable)(variable));
        self.base(name, other.as_deref().unwrap_or(base_url))
    }

    fn base(&self, name: &str, text: &str) -> Result<Url, ModelError> {
        let url = parse_url(name, text.trim())?;
        // `ANTHROPIC_BASE_URL` lacks it by convention.
        let lacks_version =
            self.is_anthropic() && !url.path().trim_end_matches('/').ends_with("/v1");
        Ok(if lacks_version {
            endpoint(&url, "v1")
        } else {
            url
        })
    }
}

/// Refuses credentials in the URL.
fn parse_url(name: &str, text: &str) -> Result<Url, ModelError> {
    let wrong =
        |detail: &str| ModelError::Settings(format!("the `base_url` of model `{name}` {detail}"));
    let url =
        Url::parse(text).map_err(|error| wrong(&format!("is not a valid address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("must begin with https:// or http://"));
    }

    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(
            "has a name or password in it; a key comes from `api_key_env` or `api_key_command`",
        ));
    }

    Ok(url)
}

fn endpoint(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let full_path = format!("{}/{path}", base.path().trim_end_matches('/'));
    url.set_path(&full_path);
    url
}

// Where a remote model's answers come from: its address and the source of its key. Sends no
// requests that cost money, and no keys.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSource {
    /// Scheme, host and port.
    pub origin: String,
    pub key: KeySource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    Nowhere,
    Variable {
        name: String,
        /// To something other than a placeholder.
        is_set: bool,
    },
    Program(String),
}

/// Runs no command.
pub fn model_source(
    name: &str,
    settings: &ModelSettings,
    env: &ModelEnv,
) -> Result<ModelSource, ModelError> {
    let protocol = Protocol::of(settings.kind);
    let usual = protocol.usual_base(name, env)?;
    let base = match settings.base_url.as_deref() {
        Some(text) => protocol.base(name, text)?,
        None => usual.clone(),
    };
    settings.require_id(name)?;

    let variable = |name: &str| KeySource::Variable {
        name: name.to_owned(),
        is_set: (env.variable)(name).is_some_and(|value| !is_placeholder(value.trim())),
    };
    let key = match (settings.api_key_command.first(), &settings.api_key_env) {
        (Some(program), _) => KeySource::Program(program.clone()),
        (None, Some(name)) => variable(name),
        // Same rule as `ApiKey::fetch`. A local server might not need a key, so none is expected.
        (None, None) if base.origin() == usual.origin() && !is_loopback(&base) => {
            variable(protocol.key())
        }
        (None, None) => KeySource::Nowhere,
    };

    if key != KeySource::Nowhere {
        check_encryption(name, &base)?;
    }
    Ok(ModelSource {
        origin: origin(&base),
        key,
    })
}

/// Any response will do. The error is a short reason.
pub fn check_reachable(origin: &str, limit: Duration) -> Result<(), String> {
    let is_here = http::Url::parse(origin).is_ok_and(|url| is_loopback(&url));
    let client = http::client(|builder| {
        let builder = builder
            .redirect(redirect::Policy::none())
            .referer(false)
            .timeout(limit);
        if is_here { builder.no_proxy() } else { builder }
    });
    let client = client.map_err(|error| error_message(&error))?;

    let sent =
        http::block_on(async { tokio::time::timeout(limit, client.head(origin).send()).await });
    match sent {
        Ok(Ok(Ok(_))) => Ok(()),
        Ok(Ok(Err(error))) if error.is_timeout() => Err(timeout_message(limit)),
        Ok(Ok(Err(error))) => Err(error_message(&error)),
        Ok(Err(_)) => Err(timeout_message(limit)),
        Err(error) => Err(error.to_string()),
    }
}

fn timeout_message(limit: Duration) -> String {
    format!("no answer within {} s", limit.as_secs())
}

fn error_message(error: &http::Error) -> String {
    sanitize_line(&redact(&http::root_cause(error))).into_owned()
}

#[cfg(test)]
#[path = "../../tests/it/support/fake.rs"]
#[allow(dead_code, reason = "the tests of whole turns use more of it")]
mod fake;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod address_tests {
    use super::*;

    #[test]
    fn an_address_with_a_password_or_another_scheme_is_refused() {
        for base in [
            "file:///etc/passwd",
            "https://me:pw@host/v1",
            "api.openai.com",
            "ftp://host",
        ] {
            let settings = ModelSettings {
                id: "m".into(),
                base_url: Some(base.into()),
                ..ModelSettings::default()
            };
            let error = Remote::new("mine", &settings, &ModelEnv::default()).err();
            assert!(
                matches!(error, Some(ModelError::Settings(_))),
                "{base}: {error:?}"
            );
        }
    }

    #[test]
    fn the_environment_may_move_the_usual_address() {
        for (kind, variable, base, expected) in [
            (
                ModelKind::Openai,
                "OPENAI_BASE_URL",
                "http://127.0.0.1:9/openai/v1/",
                "http://127.0.0.1:9/openai/v1/chat/completions",
            ),
            (
                ModelKind::Anthropic,
                "ANTHROPIC_BASE_URL",
                "http://127.0.0.1:9",
                "http://127.0.0.1:9/v1/messages",
            ),
        ] {
            let env = ModelEnv {
                variable: Rc::new(move |name| (name == variable).then(|| base.to_owned())),
                ..ModelEnv::default()
            };
            let remote = Remote::new(
                "mine",
                &ModelSettings {
                    kind,
                    id: "m".into(),
                    ..ModelSettings::default()
                },
                &env,
            )
            .unwrap();
            assert_eq!((remote.url.as_str(), remote.key.value()), (expected, None));
        }
    }
}

#[cfg(test)]
mod source_tests {
    use std::rc::Rc;

    use super::*;

    /// Only `KEY` is set in the environment.
    fn check(settings: &str, expected: Result<(&str, KeySource), &str>) {
        let settings: ModelSettings = serde_yaml::from_str(settings).unwrap();
        let env = ModelEnv {
            variable: Rc::new(|name| (name == "KEY").then(|| "abcdefgh-1".to_owned())),
            ..ModelEnv::default()
        };
        let actual = model_source("m", &settings, &env).map(|source| (source.origin, source.key));
        let actual = actual.map_err(|error| error.to_string());
        let expected = expected.map(|(origin, key)| (origin.to_owned(), key));
        assert_eq!(actual, expected.map_err(str::to_owned));
    }

    fn variable(name: &str, is_set: bool) -> KeySource {
        KeySource::Variable {
            name: name.to_owned(),
            is_set,
        }
    }

    #[test]
    fn a_key_is_looked_up_and_not_fetched() {
        check(
            "{kind: openai, id: x}",
            Ok(("https://api.openai.com", variable("OPENAI_API_KEY", false))),
        );
        check(
            "{kind: anthropic, id: x, api_key_env: KEY}",
            Ok(("https://api.anthropic.com", variable("KEY", true))),
        );
        check(
            "{kind: openai, id: x, base_url: 'http://127.0.0.1:9/v1'}",
            Ok(("http://127.0.0.1:9", KeySource::Nowhere)),
        );
        check(
            "{kind: openai, id: x, api_key_command: [false]}"
                .replace("false", "'false'")
                .as_str(),
            Ok((
                "https://api.openai.com",
                KeySource::Program("false".to_owned()),
            )),
        );
        check(
            "{kind: openai, id: x, base_url: 'http://a.example/v1', api_key_env: KEY}",
            Err("the key of model `m` would be sent unencrypted to http://a.example: use https"),
        );
    }

    #[test]
    fn a_port_where_nobody_listens_does_not_answer() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        // Nothing accepts the connection, so the request times out.
        let limit = Duration::from_millis(200);
        assert_eq!(
            check_reachable(&address, limit),
            Err("no answer within 0 s".to_owned())
        );
        drop(listener);
        assert!(check_reachable(&address, limit).is_err());
    }
}
