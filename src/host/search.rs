//! Web search with the configured engine: SearXNG, Brave, Tavily, or a program that prints JSON.
//!
//! Returns at most [`MAX_HITS`] hits. Errors and debug output do not contain the keys of Brave
//! and Tavily.

use std::fmt;
use std::io;
use std::time::Duration;

use reqwest::{Client, RequestBuilder, Url, redirect};
use serde::Deserialize;

use super::inherited::{ChildKind, give_listed};
use super::{helper, http, process};

const LIMIT: Duration = Duration::from_secs(30);
// In bytes.
const MAX_ANSWER: usize = 2 << 20;
pub const MAX_HITS: usize = 10;
const BRAVE: &str = "https://api.search.brave.com";
const TAVILY: &str = "https://api.tavily.com";

#[derive(Clone, PartialEq, Eq, Default)]
pub enum SearchEngine {
    #[default]
    None,
    /// A SearXNG instance with JSON output enabled.
    Searxng {
        /// Base URL, without `/search`.
        base_url: String,
    },
    Brave {
        key: String,
    },
    Tavily {
        key: String,
    },
    /// A program. The query is appended to its arguments, and it prints the results as JSON.
    Command {
        run: Vec<String>,
        /// Variables that it inherits besides the listed ones.
        keep: Vec<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Hit {
    #[serde(default)]
    pub title: String,
    pub url: String,
    #[serde(default, alias = "content", alias = "description")]
    pub snippet: String,
}

#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error("no search engine is configured; set `research:` in your config")]
    NoEngine,
    #[error("the search engine cannot be asked: {0}")]
    Unreachable(String),
    #[error("the search engine answered {0}")]
    Status(u16),
    #[error("the search engine's answer cannot be read: {0}")]
    Answer(String),
}

impl From<io::Error> for SearchError {
    fn from(error: io::Error) -> SearchError {
        SearchError::Unreachable(super::file::reason(&error))
    }
}

impl From<reqwest::Error> for SearchError {
    fn from(error: reqwest::Error) -> SearchError {
        // The URL can contain a key.
        SearchError::Unreachable(error.without_url().to_string())
    }
}

impl fmt::Debug for SearchEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchEngine::None => f.write_str("None"),
            SearchEngine::Searxng { base_url } => write!(f, "Searxng({base_url})"),
            SearchEngine::Brave { .. } => f.write_str("Brave"),
            SearchEngine::Tavily { .. } => f.write_str("Tavily"),
            SearchEngine::Command { run, .. } => write!(f, "Command({run:?})"),
        }
    }
}

pub fn search(engine: &SearchEngine, query: &str) -> Result<Vec<Hit>, SearchError> {
    let answer = match engine {
        SearchEngine::None => return Err(SearchError::NoEngine),
        SearchEngine::Command { run, keep } => ask_program(run, keep, query)?,
        SearchEngine::Searxng { base_url } => ask(|client| {
            Ok(client.get(address(
                base_url,
                "search",
                &[("q", query), ("format", "json")],
            )?))
        })?,
        SearchEngine::Brave { key } => ask(|client| {
            let url = address(BRAVE, "res/v1/web/search", &[("q", query)])?;
            Ok(client.get(url).header("X-Subscription-Token", key))
        })?,
        SearchEngine::Tavily { key } => ask(|client| {
            let body = serde_json::json!({ "query": query, "max_results": MAX_HITS });
            Ok(client
                .post(address(TAVILY, "search", &[])?)
                .bearer_auth(key)
                .json(&body))
        })?,
    };
    hits(&answer)
}

fn address(base: &str, path: &str, query: &[(&str, &str)]) -> Result<Url, SearchError> {
    let text = format!("{}/{path}", base.trim_end_matches('/'));
    let parsed = if query.is_empty() {
        Url::parse(&text)
    } else {
        Url::parse_with_params(&text, query)
    };
    parsed.map_err(|_| SearchError::Unreachable(format!("`{base}` is not a web address")))
}

fn ask(
    request: impl FnOnce(&Client) -> Result<RequestBuilder, SearchError>,
) -> Result<Vec<u8>, SearchError> {
    // A redirect could send the key to another host.
    let client = http::client(|builder| builder.redirect(redirect::Policy::none()).timeout(LIMIT))?;
    let request = request(&client)?;
    http::block_on(async {
        let mut response = request.send().await?;
        if !response.status().is_success() {
            return Err(SearchError::Status(response.status().as_u16()));
        }
        let body = http::read_body(&mut response, MAX_ANSWER).await?;
        body.ok_or_else(|| SearchError::Answer(format!("it is larger than {MAX_ANSWER} bytes")))
    })?
}

fn ask_program(run: &[String], keep: &[String], query: &str) -> Result<Vec<u8>, SearchError> {
    let (program, arguments) = run.split_first().ok_or(SearchError::NoEngine)?;
    let mut command = process::command(program);
    give_listed(&mut command, ChildKind::Tool, keep);
    let answer = helper::run_for_answer(command.args(arguments).arg(query), b"", LIMIT)?;
    if answer.status.success() {
        return Ok(answer.stdout);
    }

    let message = String::from_utf8_lossy(&answer.stderr)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    Err(SearchError::Unreachable(format!(
        "`{program}` ended with {}: {message}",
        answer.status
    )))
}

/// Accepts a list, an object with `results`, and Brave's `web.results`.
fn hits(answer: &[u8]) -> Result<Vec<Hit>, SearchError> {
    let unreadable = |e: serde_json::Error| SearchError::Answer(e.to_string());
    let value: serde_json::Value = serde_json::from_slice(answer).map_err(unreadable)?;
    let candidates = [
        Some(&value).filter(|v| v.is_array()),
        value.get("results"),
        value.pointer("/web/results"),
    ];
    let list = match candidates.into_iter().flatten().next() {
        Some(list) => Vec::<Hit>::deserialize(list).map_err(unreadable)?,
        // Brave omits `web` if there are no results.
        None if value.is_object() && value.get("query").is_some() => Vec::new(),
        None => return Err(SearchError::Answer("it has no list `results`".to_owned())),
    };

    Ok(list
        .into_iter()
        .filter(|hit| crate::text::resource::is_url(&hit.url))
        .take(MAX_HITS)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(result: Result<Vec<Hit>, SearchError>, expected: &str) {
        let rendered = result.map_or_else(
            |e| e.to_string(),
            |hits| {
                hits.iter()
                    .map(|hit| format!("{}|{}|{}", hit.title, hit.url, hit.snippet))
                    .collect::<Vec<_>>()
                    .join("\n")
            },
        );
        assert_eq!(rendered, expected);
    }

    #[test]
    fn every_engines_answer_is_read() {
        check(
            hits(
                br#"{"results": [{"title": "T", "url": "http://a", "content": "c", "score": 1}]}"#,
            ),
            "T|http://a|c",
        );
        check(hits(br#"{"query": {}, "web": {"results": [{"title": "T", "url": "https://a", "description": "d"}]}}"#), "T|https://a|d");
        check(
            hits(br#"[{"url": "http://a"}, {"url": "javascript:x"}]"#),
            "|http://a|",
        );
        check(hits(br#"{"query": {}}"#), "");
        check(
            hits(b"{}"),
            "the search engine's answer cannot be read: it has no list `results`",
        );
        check(
            hits(b"<html>"),
            "the search engine's answer cannot be read: expected value at line 1 column 1",
        );
    }

    #[test]
    fn without_an_engine_the_way_out_is_said() {
        check(
            search(&SearchEngine::None, "x"),
            "no search engine is configured; set `research:` in your config",
        );
    }

    fn command(run: Vec<String>) -> SearchEngine {
        let keep = Vec::new();
        SearchEngine::Command { run, keep }
    }

    #[test]
    fn a_program_gets_the_query_as_one_argument() {
        let script = r#"printf '[{"url": "http://a", "title": "%s"}]' "$1""#;
        let run = ["sh", "-c", script, "sh"].map(str::to_owned).to_vec();
        check(
            search(&command(run), "two words; $HOME"),
            "two words; $HOME|http://a|",
        );
        let run = ["sh", "-c", "echo no luck >&2; exit 2"]
            .map(str::to_owned)
            .to_vec();
        check(
            search(&command(run), "x"),
            "the search engine cannot be asked: `sh` ended with exit status: 2: no luck",
        );
    }

    #[test]
    fn a_query_is_encoded() {
        let url = address("http://127.0.0.1:8888/", "search", &[("q", "a&b c")]).unwrap();
        assert_eq!(url.as_str(), "http://127.0.0.1:8888/search?q=a%26b+c");
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(
            format!(
                "{:?}",
                SearchEngine::Brave {
                    key: "secret".to_owned()
                }
            ),
            "Brave"
        );
    }

    #[test]
    fn an_instance_is_asked_and_its_refusal_said() {
        use std::io::{BufRead as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let request = io::BufReader::new(&stream).lines().next().unwrap().unwrap();
            stream
                .write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
                .unwrap();
            request
        });
        check(
            search(&SearchEngine::Searxng { base_url }, "x y"),
            "the search engine answered 403",
        );
        assert_eq!(
            server.join().unwrap(),
            "GET /search?q=x+y&format=json HTTP/1.1"
        );
    }
}
