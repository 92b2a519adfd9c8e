//! API keys. A key belongs to one origin and is never sent anywhere else.
//!
//! Plain HTTP carries keys only within this machine or a private network.

use std::fmt;
use std::net::IpAddr;

use crate::config::settings::{Headers, ModelSettings};
use crate::host::http::Url;
use crate::host::inherited::is_secret_name;
use crate::model::ModelError;
use crate::model::job::{JobEnvironment, ProgramJob};
use crate::model::model_env::ModelEnv;
use crate::text::sanitize::sanitize_line;
use crate::text::secret::{redact, redact_values, replace_values};

/// In bytes, of a server's message in an error.
const MAX_DETAIL: usize = 600;
const COMMAND_LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// `None` for servers that need none. Neither `Debug` nor any error prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Option<String>);

/// Secrets of a request, which a server can echo: the key, and keys in headers and in the address.
pub struct Secrets(Vec<String>);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Key(***)"
        } else {
            "Key(none)"
        })
    }
}

/// The provider's usual key variable, for its usual address only.
pub struct Usual<'a> {
    pub variable: &'static str,
    /// The only address whose server gets this key.
    pub base: &'a Url,
}

impl ApiKey {
    pub fn fetch(
        name: &str,
        settings: &ModelSettings,
        url: &Url,
        usual: &Usual<'_>,
        env: &ModelEnv,
    ) -> Result<ApiKey, ModelError> {
        let from = |variable: &str| {
            let value = (env.variable)(variable)
                .map(|value| value.trim().to_owned())
                .filter(|value| !is_placeholder(value));
            value.ok_or_else(|| ModelError::NoKey {
                model: name.to_owned(),
                variable: variable.to_owned(),
            })
        };
        let key = if !settings.api_key_command.is_empty() {
            from_command(settings, env)?
        } else if let Some(variable) = &settings.api_key_env {
            from(variable)?
        // The usual variables are set on most developers' machines, and a mistyped or foreign
        // `base_url` must not receive their keys. Any other address needs an explicit setting.
        } else if url.origin() == usual.base.origin() && !is_loopback(url) {
            from(usual.variable)?
        } else if url.origin() == usual.base.origin() {
            // A local server might not need a key, so it's no error if that is missing.
            return Ok(ApiKey(from(usual.variable).ok()));
        } else {
            return Ok(ApiKey(None));
        };
        Ok(ApiKey(Some(key)))
    }

    /// As sent in the HTTP header.
    pub fn value(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Secrets {
    pub fn new(key: &ApiKey, headers: &Headers, url: &Url) -> Secrets {
        let query = url.query().unwrap_or_default().split('&');
        // As sent, and decoded.
        let sent = query.filter_map(|pair| pair.split_once('='));
        let sent = sent.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let decoded = url.query_pairs().into_owned();
        let headers = headers.0.iter();
        let headers = headers.flat_map(|(name, value)| {
            // Such as `Bearer <token>`.
            let token = value.rsplit(' ').next().unwrap_or_default();
            [value.as_str(), token].map(|value| (name.clone(), value.to_owned()))
        });
        let named = sent.chain(decoded).chain(headers);
        let named = named
            .filter(|(name, _)| is_secret(name))
            .map(|named| named.1);
        Secrets(key.0.iter().cloned().chain(named).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn values(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }

    /// Changes nothing else in the text.
    pub fn hide(&self, text: &str) -> String {
        replace_values(text, &self.values()).into_owned()
    }

    /// For an error: one line of limited length without these, other keys or control characters.
    pub fn scrub(&self, text: &str) -> String {
        // Redact before truncating: a truncated key can't be recognized.
        let clean = redact_values(text.trim(), &self.values());
        let end = clean
            .char_indices()
            .map(|(at, c)| at + c.len_utf8())
            .take_while(|end| *end <= MAX_DETAIL)
            .last()
            .unwrap_or(0);
        let mark = if end < clean.len() { " ..." } else { "" };

        format!(
            "{}{mark}",
            sanitize_line(
                &clean[..end]
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
            )
        )
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    name.contains("AUTHORIZATION") || is_secret_name(&name)
}

fn from_command(settings: &ModelSettings, env: &ModelEnv) -> Result<String, ModelError> {
    let argv = &settings.api_key_command;
    let job = ProgramJob {
        argv,
        stdin: None,
        // The program can need a session of a password manager.
        dir: None,
        environment: JobEnvironment::Whole,
        timeout: COMMAND_LIMIT,
        idle: None,
        max_bytes: 64 << 10,
        stopped: &*env.stopped,
    };
    match job.run(&mut |_| ()) {
        Ok(finished) if is_placeholder(finished.stdout.trim()) => Err(ModelError::KeyCommand {
            detail: format!("`{}` printed no key", argv[0]),
        }),
        Ok(finished) => Ok(finished.stdout.trim().to_owned()),
        Err(error @ ModelError::Interrupted { .. }) => Err(error),
        Err(error) => Err(ModelError::KeyCommand {
            detail: redact(&error.to_string()).into_owned(),
        }),
    }
}

/// Also `true` for text that can't be a key.
pub fn is_placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    text.is_empty()
        || text.contains(|c: char| c.is_whitespace() || c.is_control())
        || text.contains("...")
        || text.starts_with('<')
        || ["your", "changeme", "xxx", "todo", "replace"]
            .iter()
            .any(|word| lower.starts_with(word))
}

pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Fails if a key would be sent unencrypted beyond this machine and its private network.
pub fn check_encryption(name: &str, url: &Url) -> Result<(), ModelError> {
    if url.scheme() == "https" || is_near(url) {
        return Ok(());
    }
    Err(ModelError::Settings(format!(
        "the key of model `{name}` would be sent unencrypted to {}: use https",
        origin(url)
    )))
}

/// This machine or its private network: a private address, a name without a dot, or a suffix that
/// doesn't exist in public DNS.
pub fn is_near(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        Err(_) => {
            // Such as a gateway in an office network or a service of a compose file.
            !host.contains('.')
                || [".localhost", ".local", ".internal", ".lan", ".home.arpa"]
                    .iter()
                    .any(|end| host.ends_with(end))
        }
    }
}

/// Scheme, host and port, without anything that can be secret.
pub fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    const SECRET: &str = "abcdefgh-12345678";

    fn fetch(
        settings: &ModelSettings,
        url: &str,
        value: Option<&str>,
    ) -> Result<ApiKey, ModelError> {
        let usual = Url::parse("https://api.openai.com/v1").unwrap();
        let value = value.map(str::to_owned);
        let env = ModelEnv {
            variable: Rc::new(move |_| value.clone()),
            ..ModelEnv::default()
        };
        ApiKey::fetch(
            "m",
            settings,
            &Url::parse(url).unwrap(),
            &Usual {
                variable: "OPENAI_API_KEY",
                base: &usual,
            },
            &env,
        )
    }

    fn with_key_env() -> ModelSettings {
        ModelSettings {
            api_key_env: Some("MY_KEY".into()),
            ..ModelSettings::default()
        }
    }

    #[test]
    fn the_usual_variable_serves_the_usual_address_only() {
        let settings = ModelSettings::default();
        assert_eq!(
            fetch(&settings, "https://api.openai.com/v1", Some(SECRET)),
            Ok(ApiKey(Some(SECRET.into())))
        );
        assert_eq!(
            fetch(&settings, "https://evil.example/v1", Some(SECRET)),
            Ok(ApiKey(None))
        );
        assert_eq!(
            fetch(&settings, "http://127.0.0.1:8080/v1", Some(SECRET)),
            Ok(ApiKey(None))
        );
    }

    #[test]
    fn a_named_variable_serves_any_address() {
        for near in [
            "http://10.0.0.5:4000/v1",
            "http://litellm:4000",
            "http://gateway.internal/v1",
            "http://[fd00::1]:80",
        ] {
            assert_eq!(
                fetch(&with_key_env(), near, Some(SECRET)),
                Ok(ApiKey(Some(SECRET.into()))),
                "{near}"
            );
        }
        assert_eq!(
            fetch(
                &with_key_env(),
                "https://openrouter.ai/api/v1",
                Some(SECRET)
            ),
            Ok(ApiKey(Some(SECRET.into())))
        );
        assert_eq!(
            fetch(&with_key_env(), "http://[::1]:8080/v1", Some(SECRET)),
            Ok(ApiKey(Some(SECRET.into())))
        );
    }

    #[test]
    fn a_placeholder_is_no_key() {
        for value in [
            None,
            Some(" "),
            Some("sk-..."),
            Some("your-api-key"),
            Some("<key>"),
            Some("two words"),
            Some("xxxxxxxx"),
        ] {
            assert_eq!(
                fetch(&with_key_env(), "https://openrouter.ai", value),
                Err(ModelError::NoKey {
                    model: "m".into(),
                    variable: "MY_KEY".into()
                }),
                "{value:?}"
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_command_prints_the_key() {
        let with = |script: &str| ModelSettings {
            api_key_command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            ..ModelSettings::default()
        };
        assert_eq!(
            fetch(
                &with(&format!("echo {SECRET}")),
                "https://openrouter.ai",
                None
            ),
            Ok(ApiKey(Some(SECRET.into())))
        );
        assert_eq!(
            fetch(&with("true"), "https://openrouter.ai", None),
            Err(ModelError::KeyCommand {
                detail: "`sh` printed no key".into()
            })
        );
        let error = fetch(
            &with("echo locked >&2; exit 1"),
            "https://openrouter.ai",
            None,
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the command for the key failed: `sh` failed (exit status: 1): locked"
        );
    }

    #[test]
    fn no_text_of_ours_shows_the_key() {
        let key = ApiKey(Some(SECRET.into()));
        assert_eq!(format!("{key:?}"), "Key(***)");
        let url = Url::parse("https://a.example/v1").unwrap();
        let secrets = Secrets::new(&key, &Headers::default(), &url);
        assert_eq!(
            secrets.scrub(&format!("bad key {SECRET}\nat \u{1b}[31mhost")),
            "bad key [redacted key] at \\u{1b}[31mhost"
        );
        assert!(secrets.scrub(&"long ".repeat(1000)).len() < MAX_DETAIL + 10);
    }

    /// Regression: a server that echoed a request put them into the error and into the draft.
    #[test]
    fn no_text_of_ours_shows_a_key_in_a_header_or_in_the_address() {
        let headers = [
            ("Authorization", format!("Bearer {SECRET}")),
            ("Api-Key", "azure-12345678".to_owned()),
            ("X-Title", "my project".to_owned()),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value));
        let url = Url::parse("https://a.example/v1?key=url%2D12345678&version=2026-11-28").unwrap();
        let secrets = Secrets::new(&ApiKey(None), &Headers(headers.into()), &url);
        let echo = format!(
            "{SECRET} Bearer {SECRET} azure-12345678 url%2D12345678 url-12345678 my project 2026-11-28"
        );
        assert_eq!(
            secrets.hide(&echo),
            "[redacted key] [redacted key] [redacted key] [redacted key] [redacted key] my project 2026-11-28"
        );
    }
}
