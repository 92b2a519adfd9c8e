//! Discovers model servers on this machine and lists their models.
//!
//! Sends a single request to each usual port, without a proxy, redirects or a key: anything can
//! listen there. A server that the environment names in the place of a provider gets its key.

use std::time::Duration;

use serde_json::Value;

use super::keys;
use crate::config::settings::ModelKind;
use crate::host::http::{self, Response, StatusCode, Url, redirect};
use crate::model::known::{LocalServer, PROVIDERS, Provider, SERVERS};
use crate::model::model_env::Variable;
use crate::model::remote::{is_loopback, is_near};
use crate::text::sanitize::sanitize_line;

const LIMIT: Duration = Duration::from_secs(1);
const LATE: &str = "no answer within a second";
const NO_LIST: &str = "what it sent is no list of models";
/// In bytes.
const MAX_BYTES: usize = 1 << 20;
/// Per server.
const MAX_MODELS: usize = 100;
/// In bytes.
const MAX_ID: usize = 200;

/// Parts of the ids of models that don't generate text, such as embedding and speech models.
const OTHERS: [&str; 4] = ["embed", "rerank", "whisper", "bge-"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// In the configuration.
    pub name: &'static str,
    /// Empty if unknown.
    pub title: &'static str,
    /// Scheme, host and port.
    pub origin: String,
    /// If a variable such as `OPENAI_BASE_URL` names the server.
    pub gateway: Option<Gateway>,
}

/// A server that stands in for a service, as the user's environment says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    pub provider: &'static Provider,
    /// That names it.
    pub variable: &'static str,
    /// As in the variable, with its path.
    pub base_url: String,
    /// Variable with the key of the service, if it is set.
    pub key: Option<&'static str>,
    /// On this machine or in its private network.
    pub is_near: bool,
}

/// No other machine can read what is sent there.
pub fn is_confidential(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| url.scheme() == "https" || is_loopback(&url))
}

impl ServerAddress {
    /// By the user or their environment, and at no usual port.
    pub fn is_named(&self) -> bool {
        let is_usual = |server: &LocalServer| self.origin == usual_origin(server.port);
        self.gateway.is_none() && (self.title.is_empty() || !SERVERS.iter().any(is_usual))
    }
}

fn usual_origin(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

impl Gateway {
    fn models_url(&self) -> String {
        let base = &self.base_url;
        // `ANTHROPIC_BASE_URL` lacks it by convention.
        let version = match self.provider.kind == ModelKind::Anthropic && !base.ends_with("/v1") {
            true => "/v1",
            false => "",
        };
        format!("{base}{version}/models")
    }
}

/// Servers that the environment names in the place of a provider. An address with a password is left
/// out.
pub fn gateways(variable: &Variable) -> Vec<ServerAddress> {
    let gateway = |provider: &'static Provider| {
        let base_variable = provider.base_variable?;
        let url = Url::parse(variable(base_variable)?.trim()).ok()?;
        let own = Url::parse(provider.base_url).ok()?;
        // The address is written to the configuration.
        let is_plain = url.username().is_empty() && url.password().is_none();
        let is_other = url.has_host() && url.host_str() != own.host_str();
        if !is_plain || !is_other || url.query().is_some() {
            return None;
        }
        let mut keys = keys(variable).into_iter();
        let key = keys.find(|key| key.provider == provider);
        Some(ServerAddress {
            gateway: Some(Gateway {
                provider,
                variable: base_variable,
                base_url: url.as_str().trim_end_matches('/').to_owned(),
                key: key.map(|key| key.variable),
                is_near: is_near(&url),
            }),
            name: provider.name,
            ..parse_address(url.as_str())?
        })
    };
    PROVIDERS.iter().filter_map(gateway).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundServer {
    pub address: ServerAddress,
    /// Most suitable first.
    pub models: Vec<String>,
}

impl FoundServer {
    /// Name of the product, or the address if unknown.
    pub fn titled(&self) -> String {
        if self.address.title.is_empty() {
            self.address.origin.clone()
        } else {
            self.address.title.to_owned()
        }
    }

    pub fn base_url(&self) -> String {
        match &self.address.gateway {
            Some(gateway) => gateway.base_url.clone(),
            None => format!("{}/v1", self.address.origin),
        }
    }

    /// A gateway that has not said what it serves.
    pub fn unlisted(address: &ServerAddress) -> Option<FoundServer> {
        let gateway = address.gateway.as_ref()?;
        Some(FoundServer {
            address: address.clone(),
            models: vec![gateway.provider.model.to_owned()],
        })
    }
}

/// On the usual ports, unless a variable such as `OLLAMA_HOST` names another address.
pub fn usual(variable: &Variable) -> Vec<ServerAddress> {
    let servers = SERVERS.iter().map(|server| {
        let other = server.variable.and_then(variable);
        let other = other.and_then(|host| server_origin(&host, server.port));
        ServerAddress {
            name: server.name,
            title: server.title,
            origin: other.unwrap_or_else(|| usual_origin(server.port)),
            gateway: None,
        }
    });
    servers.collect()
}

/// Given by the user. Ignores its path.
pub fn parse_address(address: &str) -> Option<ServerAddress> {
    let url = Url::parse(address.trim()).ok()?;
    let is_fit = matches!(url.scheme(), "http" | "https") && url.has_host();
    is_fit.then(|| ServerAddress {
        name: "local",
        title: "",
        origin: url.origin().ascii_serialization(),
        gateway: None,
    })
}

/// `OLLAMA_HOST` contains a host, a port, both, or a URL.
fn server_origin(host: &str, port: u16) -> Option<String> {
    let host = host.trim().trim_end_matches('/');
    let (scheme, authority) = match host.split_once("://") {
        Some((scheme, authority)) => (scheme, authority),
        None => ("http", host),
    };
    let authority = if authority.starts_with(':') {
        format!("127.0.0.1{authority}")
    } else {
        authority.to_owned()
    };

    let mut url = Url::parse(&format!("{scheme}://{authority}")).ok()?;
    // With a scheme, Ollama uses the scheme's default port instead of its own.
    if url.port().is_none() && !host.contains("://") {
        url.set_port(Some(port)).ok()?;
    }
    // 0.0.0.0 is an address to listen on, not one to connect to.
    if url.host_str() == Some("0.0.0.0") {
        url.set_host(Some("127.0.0.1")).ok()?;
    }

    parse_address(url.as_str()).map(|address| address.origin)
}

/// Fails with the reason if no model server answers there; a gateway that does not answer has the
/// usual model. Only a gateway gets the key of its service, as it does with every request, and never
/// without encryption to another machine: the user has not confirmed that yet.
pub(super) fn ask(address: &ServerAddress, key: Option<&str>) -> Result<FoundServer, String> {
    let mut headers = Vec::new();
    let mut url = format!("{}/v1/models", address.origin);
    if let Some(gateway) = &address.gateway {
        url = gateway.models_url();
        let key = key.filter(|_| is_confidential(&gateway.base_url));
        headers.extend(key.map(|key| key_header(gateway.provider, key.trim())));
        if gateway.provider.kind == ModelKind::Anthropic {
            headers.push(("anthropic-version", "2023-06-01".to_owned()));
        }
    }
    let bytes = http::block_on(async {
        let sent = tokio::time::timeout(LIMIT, get(&url, &headers));
        sent.await.unwrap_or_else(|_| Err(LATE.to_owned()))
    });
    let bytes = bytes.unwrap_or_else(|error| Err(error.to_string()));
    let listed = bytes.and_then(|bytes| models(&bytes).ok_or_else(|| NO_LIST.to_owned()));
    match listed {
        Ok(models) if address.gateway.is_none() || !models.is_empty() => Ok(FoundServer {
            address: address.clone(),
            models,
        }),
        Ok(_) => FoundServer::unlisted(address).ok_or_else(|| NO_LIST.to_owned()),
        Err(why) => FoundServer::unlisted(address).ok_or(why),
    }
}

fn key_header(provider: &Provider, key: &str) -> (&'static str, String) {
    match provider.kind {
        ModelKind::Anthropic => ("x-api-key", key.to_owned()),
        _ => ("authorization", format!("Bearer {key}")),
    }
}

async fn get(address: &str, headers: &[(&'static str, String)]) -> Result<Vec<u8>, String> {
    let client = http::client(|builder| {
        builder
            .no_proxy()
            .redirect(redirect::Policy::none())
            .timeout(LIMIT)
    });
    let mut request = client.map_err(|error| error.to_string())?.get(address);
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let sent = request.send().await;
    let mut response: Response = sent.map_err(|error| http::root_cause(&error))?;
    if response.status() != StatusCode::OK {
        return Err(format!("it answers with HTTP status {}", response.status()));
    }

    // Anything can listen on a usual port, and send without end.
    let body = http::read_body(&mut response, MAX_BYTES).await;
    let body = body.map_err(|error| http::root_cause(&error))?;
    body.ok_or_else(|| NO_LIST.to_owned())
}

/// `None` if it isn't a list of models.
fn models(bytes: &[u8]) -> Option<Vec<String>> {
    let reply: Value = serde_json::from_slice(bytes).ok()?;
    let ids = reply.get("data")?.as_array()?.iter().take(MAX_MODELS);
    let mut ids: Vec<String> = ids
        .filter_map(|model| model.get("id")?.as_str())
        .filter(|id| is_plain(id) && !is_other(id))
        .map(str::to_owned)
        .collect();

    // Put models for code first and otherwise keep the server's order (the sort is stable).
    ids.sort_by_key(|id| !is_for_code(id));
    Some(ids)
}

/// Can be displayed and written to a file without escaping.
fn is_plain(id: &str) -> bool {
    let is_short = (1..=MAX_ID).contains(&id.len());
    is_short && !id.contains(char::is_whitespace) && sanitize_line(id) == id
}

fn is_other(id: &str) -> bool {
    let id = id.to_ascii_lowercase();
    OTHERS.iter().any(|other| id.contains(other))
}

fn is_for_code(id: &str) -> bool {
    let id = id.to_ascii_lowercase();
    ["coder", "code", "devstral"]
        .iter()
        .any(|word| id.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reply: &str, expected: Option<&[&str]>) {
        let actual = models(reply.as_bytes());
        let actual = actual.as_ref().map(|ids| ids.iter().map(String::as_str));
        assert_eq!(
            actual.map(Iterator::collect::<Vec<_>>).as_deref(),
            expected,
            "{reply}"
        );
    }

    #[test]
    fn models_are_listed_with_those_for_code_first() {
        check(
            r#"{"object":"list","data":[{"id":"llama3.3:70b"},{"id":"nomic-embed-text"},{"id":"qwen3-coder:30b"}]}"#,
            Some(&["qwen3-coder:30b", "llama3.3:70b"]),
        );
        check(r#"{"data":[]}"#, Some(&[]));
    }

    #[test]
    fn what_a_stranger_says_is_no_model() {
        check("<html>", None);
        check(r#"{"data":{"id":"a"}}"#, None);
        check(r#"[{"id":"a"}]"#, None);
        check(r#"{"data":[1,{"id":2},{"name":"a"},{"id":""}]}"#, Some(&[]));
        check(
            r#"{"data":[{"id":"a\u001b[31m"},{"id":"a\nb"},{"id":"\u202eb"},{"id":"a b"}]}"#,
            Some(&[]),
        );
        check(
            &format!(r#"{{"data":[{{"id":"{}"}}]}}"#, "a".repeat(300)),
            Some(&[]),
        );
        check(&"[".repeat(100_000), None);
    }

    #[test]
    fn a_list_has_an_end() {
        let ids: Vec<String> = (0..1000).map(|n| format!(r#"{{"id":"m{n}"}}"#)).collect();
        let actual = models(format!(r#"{{"data":[{}]}}"#, ids.join(",")).as_bytes());
        assert_eq!(actual.map(|ids| ids.len()), Some(MAX_MODELS));
    }

    #[test]
    fn servers_are_asked_at_their_usual_ports() {
        let origins = |variable: &Variable| -> Vec<String> {
            let addresses = usual(variable).into_iter();
            addresses.map(|address| address.origin).collect()
        };
        let others = [8080, 1234, 8000].map(|port| format!("http://127.0.0.1:{port}"));
        let check = |actual: Vec<String>, ollama: &str| {
            assert_eq!(actual[0], ollama);
            assert_eq!(actual[1..], others);
        };
        check(origins(&|_| None), "http://127.0.0.1:11434");
        check(
            origins(&|name| (name == "OLLAMA_HOST").then(|| "0.0.0.0:5".to_owned())),
            "http://127.0.0.1:5",
        );
        check(origins(&|_| Some(String::new())), "http://127.0.0.1:11434");
    }

    #[test]
    fn a_base_url_in_the_environment_is_a_server_of_its_service() {
        let check =
            |name: &'static str, value: &'static str, expected: Option<(&str, &str, bool)>| {
                let variable = move |other: &str| match other {
                    "OPENAI_API_KEY" => Some("sk-abc123".to_owned()),
                    other => (other == name).then(|| value.to_owned()),
                };
                let actual = gateways(&variable).into_iter().next();
                let actual = actual.as_ref().map(|address| {
                    let gateway = address.gateway.as_ref().unwrap();
                    (address.name, gateway.models_url(), gateway.key.is_some())
                });
                let actual = actual
                    .as_ref()
                    .map(|(name, url, has_key)| (*name, url.as_str(), *has_key));
                assert_eq!(actual, expected, "{value}");
            };
        check(
            "OPENAI_BASE_URL",
            "http://box:4000/openai/v1/",
            Some(("openai", "http://box:4000/openai/v1/models", true)),
        );
        check(
            "ANTHROPIC_BASE_URL",
            "https://gate.example",
            Some(("anthropic", "https://gate.example/v1/models", false)),
        );
        check("OPENAI_BASE_URL", "https://api.openai.com/v1", None);
        check("OPENAI_BASE_URL", "https://me:word@box/v1", None);
        check("OPENAI_BASE_URL", "", None);
    }

    #[test]
    fn ollama_is_where_its_variable_says() {
        let check = |host: &str, expected: Option<&str>| {
            assert_eq!(server_origin(host, 11434).as_deref(), expected, "{host}");
        };
        check("127.0.0.1", Some("http://127.0.0.1:11434"));
        check("0.0.0.0:5000", Some("http://127.0.0.1:5000"));
        check(":5000", Some("http://127.0.0.1:5000"));
        check("http://box:8000/", Some("http://box:8000"));
        check("https://box", Some("https://box"));
        check("file:///etc/passwd", None);
        check("a b", None);
    }
}
