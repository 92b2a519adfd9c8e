//! Discovers model servers on this machine and lists their models.
//!
//! Sends a single request to each usual port, without a proxy, redirects or a key: anything can
//! listen there.

use std::time::Duration;

use serde_json::Value;

use crate::host::http::{self, Response, StatusCode, Url, redirect};
use crate::model::model_env::Variable;
use crate::text::sanitize::sanitize_line;

const LIMIT: Duration = Duration::from_secs(1);
/// In bytes.
const MAX_BYTES: usize = 1 << 20;
/// Per server.
const MAX_MODELS: usize = 100;
/// In bytes.
const MAX_ID: usize = 200;
const OLLAMA_PORT: u16 = 11434;

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
        format!("{}/v1", self.address.origin)
    }
}

/// `OLLAMA_HOST` overrides Ollama's address.
pub fn usual(variable: &Variable) -> Vec<ServerAddress> {
    let local = |name, title, port: u16| ServerAddress {
        name,
        title,
        origin: format!("http://127.0.0.1:{port}"),
    };
    let ollama = variable("OLLAMA_HOST").and_then(|host| ollama_origin(&host));

    vec![
        ServerAddress {
            origin: ollama.unwrap_or_else(|| format!("http://127.0.0.1:{OLLAMA_PORT}")),
            ..local("ollama", "Ollama", OLLAMA_PORT)
        },
        local("llamacpp", "llama.cpp", 8080),
        local("lmstudio", "LM Studio", 1234),
        local("vllm", "vLLM", 8000),
    ]
}

/// Given by the user. Ignores its path.
pub fn parse_address(address: &str) -> Option<ServerAddress> {
    let url = Url::parse(address.trim()).ok()?;
    let is_fit = matches!(url.scheme(), "http" | "https") && url.has_host();
    is_fit.then(|| ServerAddress {
        name: "local",
        title: "",
        origin: url.origin().ascii_serialization(),
    })
}

/// `OLLAMA_HOST`: a host, a port, both, or a URL.
fn ollama_origin(host: &str) -> Option<String> {
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
        url.set_port(Some(OLLAMA_PORT)).ok()?;
    }
    // 0.0.0.0 is an address to listen on, not one to connect to.
    if url.host_str() == Some("0.0.0.0") {
        url.set_host(Some("127.0.0.1")).ok()?;
    }

    parse_address(url.as_str()).map(|address| address.origin)
}

/// `None` if no model server listens there.
pub(super) fn ask(address: &ServerAddress) -> Option<FoundServer> {
    let bytes = http::block_on(async {
        tokio::time::timeout(LIMIT, get(&format!("{}/v1/models", address.origin)))
            .await
            .ok()
            .flatten()
    });
    let models = models(&bytes.ok().flatten()?)?;
    Some(FoundServer {
        address: address.clone(),
        models,
    })
}

async fn get(address: &str) -> Option<Vec<u8>> {
    let client = http::client(|builder| {
        builder
            .no_proxy()
            .redirect(redirect::Policy::none())
            .timeout(LIMIT)
    });
    let request = client.ok()?.get(address);
    let mut response: Response = request.send().await.ok()?;
    if response.status() != StatusCode::OK {
        return None;
    }

    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        // Anything can listen on a usual port, and send without end.
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_BYTES {
            return None;
        }
    }
    Some(bytes)
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
    fn ollama_is_where_its_variable_says() {
        let check = |host: &str, expected: Option<&str>| {
            assert_eq!(ollama_origin(host).as_deref(), expected, "{host}");
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
