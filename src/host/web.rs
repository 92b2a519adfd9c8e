//! Fetches web pages as text, from public addresses only, with limits on time and size.
//!
//! A host is resolved once. All its addresses must be allowed, and the connection uses exactly
//! those, so a DNS answer that changes in between (DNS rebinding) has no effect. Redirects are
//! checked the same way. Uses no proxy, cookies or credentials.

pub mod address;
mod readable;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url, redirect};

use super::{http, interrupt};
use address::AddressError;

const MAX_REDIRECTS: usize = 5;
/// `Accept` header: Markdown is preferred.
const ACCEPTED_TYPES: &str = "text/markdown, text/html;q=0.9, text/plain";
const TICK: Duration = Duration::from_millis(50);

/// Limits for fetching.
#[derive(Debug, Clone)]
pub struct FetchRules {
    /// Allowed hosts in private networks: `name` or `name:port`.
    pub allowed_hosts: Vec<String>,
    /// Time limit for the whole fetch, redirects included.
    pub timeout: Duration,
    /// Maximum size of a body, before and after decompression.
    pub max_body: usize,
}

impl Default for FetchRules {
    fn default() -> FetchRules {
        FetchRules {
            allowed_hosts: Vec::new(),
            timeout: Duration::from_secs(30),
            max_body: 5 << 20,
        }
    }
}

/// A web page.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// Final URL, after redirects.
    pub url: String,
    /// Title, if it has one.
    pub title: Option<String>,
    /// Text, or Markdown if the page is HTML.
    pub text: String,
}

/// Reason why a page could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The URL is not allowed.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The host could not be resolved.
    #[error("the host `{0}` is not known")]
    UnknownHost(String),
    /// The connection failed.
    #[error("the page cannot be fetched: {0}")]
    Failed(String),
    /// The server answered with this HTTP status.
    #[error("the server answered {0}")]
    Status(u16),
    /// Too many redirects.
    #[error("it redirects more than {MAX_REDIRECTS} times")]
    Redirects,
    /// The body exceeds the limit.
    #[error("the page is larger than {0} bytes")]
    TooLarge(usize),
    /// The time limit was exceeded.
    #[error("the page did not arrive within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The body cannot be converted to text, with the reason.
    #[error("the page cannot be used: {0}")]
    Unreadable(String),
}

/// Fetches a page.
pub fn fetch(url: &str, rules: &FetchRules) -> Result<Page, WebError> {
    let first = address::parse_url(url)?;
    let stop = interrupt::flag();
    let fetched = http::block_on(async {
        tokio::select! {
            answer = tokio::time::timeout(rules.timeout, follow(first, rules)) => answer.unwrap_or(Err(WebError::TimedOut(rules.timeout))),
            () = raised(&stop) => Err(WebError::Interrupted),
        }
    });

    let body = fetched.map_err(|e| WebError::Failed(e.to_string()))??;
    let text = readable::read(&body.bytes, body.content_type.as_deref(), body.url.as_str())
        .map_err(WebError::Unreadable)?;
    Ok(Page {
        url: body.url.into(),
        title: text.title,
        text: text.text,
    })
}

async fn raised(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        tokio::time::sleep(TICK).await;
    }
}

struct PageBody {
    /// Final URL.
    url: Url,
    content_type: Option<String>,
    /// After decompression.
    bytes: Vec<u8>,
}

/// Follows redirects. Checks every URL before it is used.
async fn follow(mut url: Url, rules: &FetchRules) -> Result<PageBody, WebError> {
    for _ in 0..=MAX_REDIRECTS {
        let addresses = resolve(&url, rules).await?;
        let response = client(addresses)?
            .get(url.clone())
            .header(ACCEPT, ACCEPTED_TYPES)
            .send()
            .await
            .map_err(|e| WebError::Failed(cause(&e)))?;
        let status = response.status();

        match redirected(&url, &response) {
            Some(next) => {
                url = next?;
                address::check_url(&url)?;
            }
            None if status.is_success() => return receive(url, response, rules.max_body).await,
            None => return Err(WebError::Status(status.as_u16())),
        }
    }

    Err(WebError::Redirects)
}

fn redirected(url: &Url, response: &Response) -> Option<Result<Url, WebError>> {
    if !response.status().is_redirection() {
        return None;
    }

    let target = response.headers().get(LOCATION)?.to_str().ok()?;
    Some(
        url.join(target)
            .map_err(|_| AddressError::NotWeb(target.to_owned()).into()),
    )
}

/// Resolves a host. Fails unless all addresses are public or the user allowed the host.
async fn resolve(url: &Url, rules: &FetchRules) -> Result<Vec<SocketAddr>, WebError> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(0);
    let unknown = || WebError::UnknownHost(host.to_owned());
    let resolved = tokio::net::lookup_host((host.trim_matches(['[', ']']), port))
        .await
        .map_err(|_| unknown())?;
    let addresses: Vec<SocketAddr> = resolved.collect();

    if addresses.is_empty() {
        return Err(unknown());
    }

    let private = addresses
        .iter()
        .find(|address| !address::is_public_address(address.ip()));
    match private.filter(|_| !address::is_allowed_host(url, &rules.allowed_hosts)) {
        Some(address) => Err(AddressError::Private {
            host: host.to_owned(),
            address: address.ip(),
        }
        .into()),
        None => Ok(addresses),
    }
}

fn client(addresses: Vec<SocketAddr>) -> Result<Client, WebError> {
    let pinned = Arc::new(Pinned(addresses));
    let configured = http::client(|builder| {
        builder
            // A proxy would resolve the host itself, past the check.
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .dns_resolver(Arc::clone(&pinned))
    });
    configured.map_err(|e| WebError::Failed(cause(&e)))
}

/// A resolver that always returns these addresses.
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// Checks the announced length first, then the bytes received.
async fn receive(url: Url, mut response: Response, limit: usize) -> Result<PageBody, WebError> {
    if response
        .content_length()
        .is_some_and(|length| length > limit as u64)
    {
        return Err(WebError::TooLarge(limit));
    }
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let mut bytes = Vec::new();

    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|e| WebError::Failed(cause(&e)))?
    {
        if bytes.len() + chunk.len() > limit {
            return Err(WebError::TooLarge(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(PageBody {
        url,
        content_type,
        bytes,
    })
}

fn cause(error: &dyn std::error::Error) -> String {
    // The outer errors repeat the URL.
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests;
