//! Fetches web pages as text, from public addresses only, with limits on time and size.
//!
//! A host is resolved once. All its addresses must be allowed, and the connection uses exactly
//! those, so a DNS answer that changes in between (DNS rebinding) has no effect. Redirects are
//! checked the same way. Uses no proxy, cookies or credentials.

mod readable;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url, redirect};

use super::{http, interrupt};

const MAX_REDIRECTS: usize = 5;

/// `Accept` header: Markdown is preferred.
const ACCEPTED_TYPES: &str = "text/markdown, text/html;q=0.9, text/plain";

const TICK: Duration = Duration::from_millis(50);

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

#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// Final URL, after redirects.
    pub url: String,
    pub title: Option<String>,
    /// Text, or Markdown if the page is HTML.
    pub text: String,
}

#[derive(Debug, thiserror::Error)]
pub enum WebError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("the host `{0}` is not known")]
    UnknownHost(String),
    #[error("the page cannot be fetched: {0}")]
    Failed(String),
    #[error("the server answered {0}")]
    Status(u16),
    #[error("it redirects more than {MAX_REDIRECTS} times")]
    Redirects,
    #[error("the page is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the page did not arrive within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("interrupted")]
    Interrupted,
    #[error("the page cannot be used: {0}")]
    Unreadable(String),
}

pub fn fetch(url: &str, rules: &FetchRules) -> Result<Page, WebError> {
    let first = parse_url(url)?;
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
            .map_err(|e| WebError::Failed(http::root_cause(&e)))?;
        let status = response.status();

        match redirected(&url, &response) {
            Some(next) => {
                url = next?;
                check_url(&url)?;
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
        .find(|address| !is_public_address(address.ip()));
    match private.filter(|_| !is_allowed_host(url, &rules.allowed_hosts)) {
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
            // `follow` follows redirects and checks each URL.
            .redirect(redirect::Policy::none())
            .referer(false)
            .dns_resolver(Arc::clone(&pinned))
    });
    configured.map_err(|e| WebError::Failed(http::root_cause(&e)))
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
    let bytes = http::read_body(&mut response, limit).await;
    let bytes = bytes.map_err(|e| WebError::Failed(http::root_cause(&e)))?;
    Ok(PageBody {
        url,
        content_type,
        bytes: bytes.ok_or(WebError::TooLarge(limit))?,
    })
}

// Decides which URLs can be fetched: public ones, and hosts that the user allowed.
//
// A URL comes from a model or from another page. It must not reach the user's own network, so all
// addresses of a host are checked before one of them is used.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("`{0}` is not a web address (http or https)")]
    NotWeb(String),
    #[error("a URL must not contain a user name or password")]
    Credentials,
    #[error(
        "`{host}` is not a public address ({address}); list it under the allowed hosts of your own configuration to fetch it"
    )]
    Private {
        /// Host name in the URL.
        host: String,
        address: IpAddr,
    },
}

/// Parses and checks a URL. Rewrites a link to a file's page on GitHub or GitLab to the raw file.
pub fn parse_url(text: &str) -> Result<Url, AddressError> {
    let url = Url::parse(text).map_err(|_| AddressError::NotWeb(text.to_owned()))?;
    check_url(&url)?;
    Ok(raw_file_url(&url).unwrap_or(url))
}

/// Checks scheme and credentials. Does not resolve the host.
pub fn check_url(url: &Url) -> Result<(), AddressError> {
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(AddressError::NotWeb(url.to_string()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::Credentials);
    }
    Ok(())
}

fn raw_file_url(url: &Url) -> Option<Url> {
    let path = url.path();
    let raw = match url.host_str()? {
        "github.com" => {
            let mut parts = path.trim_start_matches('/').splitn(4, '/');
            let (owner, repository, kind, file_path) =
                (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
            (kind == "blob").then(|| {
                format!("https://raw.githubusercontent.com/{owner}/{repository}/{file_path}")
            })?
        }
        "gitlab.com" => format!(
            "https://gitlab.com{}",
            path.split_once("/-/blob/")
                .map(|(p, file_path)| format!("{p}/-/raw/{file_path}"))?
        ),
        _ => return None,
    };
    Url::parse(&raw).ok()
}

/// Returns whether the user allowed the host, by name or by name and port.
pub fn is_allowed_host(url: &Url, allowed: &[String]) -> bool {
    let host = url.host_str().unwrap_or_default();
    let with_port = format!("{host}:{}", url.port_or_known_default().unwrap_or(0));
    allowed
        .iter()
        .any(|name| name.eq_ignore_ascii_case(host) || name.eq_ignore_ascii_case(&with_port))
}

/// Returns whether an address is globally reachable.
pub fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => match v6.segments() {
            // IPv4-mapped addresses and NAT64 (`64:ff9b::/96`) lead to the embedded IPv4 address.
            [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
                is_public_v4(embedded_v4(v6))
            }
            _ => is_public_v6(v6),
        },
    }
}

fn embedded_v4(v6: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = v6.octets();
    Ipv4Addr::new(a, b, c, d)
}

fn is_public_v4(v4: Ipv4Addr) -> bool {
    // IANA registry of special-purpose addresses (RFC 6890 and updates).
    !matches!(
        v4.octets(),
        [0 | 10 | 127, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [192, 168, ..]
            | [198, 18..=19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [224..=255, ..]
    )
}

fn is_public_v6(v6: Ipv6Addr) -> bool {
    // Global unicast (`2000::/3`) without the special-purpose blocks.
    match v6.segments() {
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => {
            false
        }
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod address_tests {
    use super::*;

    fn check_parse(text: &str, expected: &str) {
        let result = parse_url(text).map_or_else(|e| e.to_string(), |url| url.to_string());
        assert_eq!(result, expected, "for {text:?}");
    }

    #[test]
    fn only_the_web_is_fetched() {
        check_parse("https://example.com/a?b", "https://example.com/a?b");
        check_parse(
            "file:///etc/passwd",
            "`file:///etc/passwd` is not a web address (http or https)",
        );
        check_parse(
            "gopher://x",
            "`gopher://x` is not a web address (http or https)",
        );
        check_parse("http://", "`http://` is not a web address (http or https)");
        check_parse(
            "https://user:pw@example.com/",
            "a URL must not contain a user name or password",
        );
    }

    #[test]
    fn a_file_shown_at_a_code_host_is_fetched_bare() {
        check_parse(
            "https://github.com/o/r/blob/main/src/a.rs#L3",
            "https://raw.githubusercontent.com/o/r/main/src/a.rs",
        );
        check_parse(
            "https://github.com/o/r/issues/3",
            "https://github.com/o/r/issues/3",
        );
        check_parse(
            "https://gitlab.com/g/p/-/blob/main/a",
            "https://gitlab.com/g/p/-/raw/main/a",
        );
    }

    #[test]
    fn every_spelling_of_a_local_address_is_seen() {
        for text in [
            "http://127.0.0.1",
            "http://2130706433",
            "http://0x7f.1",
            "http://0177.0.0.1",
            "http://127.1",
            "http://0",
            "http://10.1.2.3",
            "http://172.31.0.1",
            "http://192.168.1.1",
            "http://169.254.169.254",
            "http://100.100.0.1",
            "http://198.19.0.1",
            "http://224.0.0.1",
            "http://255.255.255.255",
            "http://[::1]",
            "http://[::]",
            "http://[::ffff:127.0.0.1]",
            "http://[::ffff:7f00:1]",
            "http://[fe80::1]",
            "http://[fd00::1]",
            "http://[ff02::1]",
            "http://[64:ff9b::7f00:1]",
            "http://[2002:7f00:1::]",
            "http://[2001:db8::1]",
            "http://[2001::1]",
        ] {
            let url = parse_url(text).expect("each of these is an address");
            let address: IpAddr = url
                .host_str()
                .unwrap()
                .trim_matches(['[', ']'])
                .parse()
                .expect("each of these is a number");
            assert!(!is_public_address(address), "{text} counts as public");
        }
    }

    #[test]
    fn public_addresses_are_public() {
        for text in [
            "1.1.1.1",
            "192.0.1.1",
            "172.32.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "64:ff9b::101:101",
            "::ffff:8.8.8.8",
        ] {
            assert!(
                is_public_address(text.parse().unwrap()),
                "{text} does not count as public"
            );
        }
    }

    #[test]
    fn a_host_is_allowed_by_name_or_with_its_port() {
        let url = parse_url("http://Docs.local:8080/x").unwrap();
        assert!(is_allowed_host(&url, &["docs.local".to_owned()]));
        assert!(is_allowed_host(&url, &["docs.local:8080".to_owned()]));
        assert!(!is_allowed_host(
            &url,
            &["docs.local:80".to_owned(), "local".to_owned()]
        ));
    }
}
