//! Models behind HTTP: OpenAI-compatible chat completions and Anthropic's Messages.
//!
//! A call streams and falls back to an answer in one piece. It has a limit for connecting, for the
//! first byte, for silence and for the whole; it is tried again only as long as nothing arrived;
//! it follows no redirect; and its key goes to one origin.

mod anthropic;
mod clock;
mod draft;
mod exchange;
#[cfg(test)]
#[path = "../../../tests/it/fake.rs"]
#[allow(dead_code, reason = "the tests of whole turns use more of it")]
mod fake;
mod key;
mod openai;
mod reader;
mod retry;
pub mod source;
mod sse;
#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;

use super::outside::Outside;
use super::settings::{ModelConfig, ModelKind};
use super::{Model, ModelAnswer, ModelError, ModelRequest};
use draft::AnswerDraft;
use key::{ApiKey, Usual};
use sse::SseEvent;

use crate::host::http::Url;

pub use key::is_placeholder;

/// A model behind HTTP.
pub struct Remote {
    /// The model's name.
    name: String,
    /// The provider's name for it.
    id: String,
    /// How it is spoken to.
    protocol: Protocol,
    /// The address of a request.
    url: Url,
    /// The key.
    key: ApiKey,
    /// The limits of a call.
    limits: CallLimits,
    /// The rest of the settings.
    settings: ModelConfig,
    /// Says whether the user wants to stop.
    stopped: Rc<dyn Fn() -> bool>,
    /// Tells the user that a request is tried again.
    note: Rc<dyn Fn(&str)>,
    /// Draws a number from 0 to 1, by which pauses differ.
    chance: fn() -> f64,
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// Chat completions.
    Openai,
    /// Messages.
    Anthropic,
}

/// The limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CallLimits {
    /// Making the connection.
    connect: Duration,
    /// The silence before the first piece.
    first: Duration,
    /// The silence between two pieces.
    idle: Duration,
    /// The whole call, its repetitions included.
    total: Duration,
    /// The largest answer, in bytes after decompression.
    bytes: usize,
    /// The largest event of a stream, in bytes.
    event: usize,
    /// How often a call is tried again.
    retries: u32,
    /// The pause before the first repetition; each further one is twice as long.
    pause: Duration,
}

impl CallLimits {
    /// Reads the limits of the settings, with ours where they have none.
    fn new(settings: &ModelConfig) -> CallLimits {
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
    /// Makes a model of its settings; fetches the key, sends nothing.
    ///
    /// # Errors
    /// [`ModelError::Settings`], [`ModelError::NoKey`] or [`ModelError::KeyCommand`].
    pub fn new(
        name: &str,
        settings: &ModelConfig,
        outside: &Outside,
    ) -> Result<Remote, ModelError> {
        let protocol = if settings.kind == ModelKind::Anthropic {
            Protocol::Anthropic
        } else {
            Protocol::Openai
        };

        let usual = protocol.usual_base(name, outside)?;
        let base = settings
            .base_url
            .as_deref()
            .map_or_else(|| Ok(usual.clone()), |text| protocol.base(name, text))?;
        let id = settings.require_id(name)?.to_owned();
        let key = ApiKey::fetch(
            name,
            settings,
            (
                &base,
                &Usual {
                    variable: protocol.key(),
                    base: &usual,
                },
            ),
            outside,
        )?;

        Ok(Remote {
            name: name.to_owned(),
            id,
            protocol,
            url: endpoint(&base, protocol.path()),
            key,
            limits: CallLimits::new(settings),
            settings: settings.clone(),
            stopped: outside.stopped.clone(),
            note: outside.note.clone(),
            chance: crate::host::chance::chance,
        })
    }
}

impl Model for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn answer(
        &self,
        request: &ModelRequest,
        watch: &mut dyn FnMut(&str),
    ) -> Result<ModelAnswer, ModelError> {
        let mut body = self.protocol.body(&self.id, &self.settings, request);
        if let Some(fields) = body.as_object_mut() {
            fields.extend(self.settings.extra.clone());
        }

        let call = exchange::Call::new(self)?;
        let result = crate::host::http::block_on(call.run(body, watch));
        result.map_err(|error| ModelError::Io {
            action: "starting the network".into(),
            detail: error.to_string(),
        })?
    }
}

impl Protocol {
    /// Returns the variable with the usual key.
    fn key(self) -> &'static str {
        match self {
            Protocol::Openai => openai::KEY,
            Protocol::Anthropic => anthropic::KEY,
        }
    }

    /// Returns the path of a request behind the base.
    fn path(self) -> &'static str {
        match self {
            Protocol::Openai => openai::PATH,
            Protocol::Anthropic => anthropic::PATH,
        }
    }

    /// Returns where the API begins if the settings don't say: what the environment names, else the
    /// provider's own.
    fn usual_base(self, name: &str, outside: &Outside) -> Result<Url, ModelError> {
        let (variable, base) = match self {
            Protocol::Openai => (openai::BASE_VARIABLE, openai::BASE),
            Protocol::Anthropic => (anthropic::BASE_VARIABLE, anthropic::BASE),
        };
        self.base(
            name,
            (outside.variable)(variable).as_deref().unwrap_or(base),
        )
    }

    /// Reads an address. Anthropic's may lack the version, as its variable does.
    fn base(self, name: &str, text: &str) -> Result<Url, ModelError> {
        let url = parse_url(name, text.trim())?;
        let lacks_version =
            self == Protocol::Anthropic && !url.path().trim_end_matches('/').ends_with("/v1");
        Ok(if lacks_version {
            endpoint(&url, "v1")
        } else {
            url
        })
    }

    /// Returns the body of a request.
    fn body(self, id: &str, settings: &ModelConfig, request: &ModelRequest) -> Value {
        match self {
            Protocol::Openai => openai::body(id, settings, request),
            Protocol::Anthropic => anthropic::body(id, settings, request),
        }
    }

    /// Takes an event of the stream; the error has the provider's words.
    fn event(self, draft: &mut AnswerDraft, event: &SseEvent) -> Result<(), String> {
        match self {
            Protocol::Openai => openai::event(draft, event),
            Protocol::Anthropic => anthropic::event(draft, event),
        }
    }

    /// Takes an answer in one piece; says whether it is one.
    fn whole(self, draft: &mut AnswerDraft, value: &Value) -> bool {
        match self {
            Protocol::Openai => openai::whole(draft, value),
            Protocol::Anthropic => anthropic::whole(draft, value),
        }
    }

    /// Changes a refused body so that it may be accepted; says whether it did.
    fn adapt(self, body: &mut Value, words: &str) -> bool {
        self == Protocol::Openai && openai::adapt(body, words)
    }
}

/// Reads an address: http or https, without a name and password in it.
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

/// Appends a path to an address.
fn endpoint(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let whole = format!("{}/{path}", base.path().trim_end_matches('/'));
    url.set_path(&whole);
    url
}

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
            let settings = ModelConfig {
                id: Some("m".into()),
                base_url: Some(base.into()),
                ..ModelConfig::default()
            };
            let error = Remote::new("mine", &settings, &Outside::default()).err();
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
            let outside = Outside {
                variable: Rc::new(move |name| (name == variable).then(|| base.to_owned())),
                ..Outside::default()
            };
            let remote = Remote::new(
                "mine",
                &ModelConfig {
                    kind,
                    id: Some("m".into()),
                    ..ModelConfig::default()
                },
                &outside,
            )
            .unwrap();
            assert_eq!((remote.url.as_str(), remote.key.value()), (expected, None));
        }
    }
}
