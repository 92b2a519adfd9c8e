//! Describes where a remote model's answers come from: its address and the source of its key.
//!
//! Sends no requests that cost money, and no keys.

use std::time::Duration;

use super::key::{is_loopback, is_near, is_placeholder, origin};
use super::{Protocol, exchange};
use crate::host::http::{self, redirect};
use crate::model::ModelError;
use crate::model::model_env::ModelEnv;
use crate::model::settings::{ModelConfig, ModelKind};
use crate::text::redaction::redact;
use crate::text::sanitize::sanitize_line;

/// Address and key source of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSource {
    /// Scheme, host and port.
    pub origin: String,
    /// Source of the key.
    pub key: KeySource,
}

/// Source of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// No key is sent.
    Nowhere,
    /// An environment variable.
    Variable {
        /// Its name.
        name: String,
        /// `true` if it contains something other than a placeholder.
        is_set: bool,
    },
    /// The output of a program.
    Program(String),
}

/// Determines address and key source from the settings and the environment. Runs no command.
pub fn model_source(
    name: &str,
    settings: &ModelConfig,
    env: &ModelEnv,
) -> Result<ModelSource, ModelError> {
    let protocol = match settings.kind {
        ModelKind::Anthropic => Protocol::Anthropic,
        _ => Protocol::Openai,
    };
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

    if key != KeySource::Nowhere && base.scheme() != "https" && !is_near(&base) {
        return Err(ModelError::Settings(format!(
            "the key of model `{name}` would go unencrypted to {}: use https",
            origin(&base)
        )));
    }
    Ok(ModelSource {
        origin: origin(&base),
        key,
    })
}

/// Checks whether a server answers at `origin`. Any response will do. The error is a short reason.
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
    sanitize_line(&redact(&exchange::root(error))).into_owned()
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    /// Only `KEY` is set in the environment.
    fn check(settings: &str, expected: Result<(&str, KeySource), &str>) {
        let entry = serde_yaml::from_str(settings).unwrap();
        let settings = ModelConfig::from_config("m", &entry).unwrap();
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
            Err("the key of model `m` would go unencrypted to http://a.example: use https"),
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
