//! HTTP clients: selects the TLS provider and runs futures.

use std::future::Future;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::sync::Once;

/// Re-exported so that only `host` depends on reqwest.
pub use reqwest::{
    Client, ClientBuilder, Error, RequestBuilder, Response, StatusCode, Url, header, redirect,
};

static PROVIDER: Once = Once::new();

/// Builds a client. On a machine without root certificates it trusts none.
pub fn client(configure: impl Fn(ClientBuilder) -> ClientBuilder) -> reqwest::Result<Client> {
    PROVIDER.call_once(|| {
        // Fails if another provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let builder =
        || configure(Client::builder().user_agent(concat!("teddy/", env!("CARGO_PKG_VERSION"))));
    builder()
        .build()
        // Without root certificates the platform verifier cannot be built. Plain HTTP, for example
        // to a local model, must still work.
        .or_else(|_| builder().tls_certs_only(std::iter::empty()).build())
}

/// Builds a client for plain HTTP to a server on this machine.
pub fn plain_client(configure: impl Fn(ClientBuilder) -> ClientBuilder) -> reqwest::Result<Client> {
    client(|builder| {
        configure(builder)
            .no_proxy()
            // Loading certificates takes longer than the request.
            .tls_certs_only(std::iter::empty())
    })
}

/// Runs a future to its end on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(future);
    // A DNS lookup can still block in a thread. Do not wait for it.
    runtime.shutdown_background();
    Ok(result)
}

/// Reads a body of at most `limit` bytes. `None` if it is longer.
pub async fn read_body(response: &mut Response, limit: usize) -> reqwest::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > limit {
            return Ok(None);
        }
    }
    Ok(Some(bytes))
}

/// The innermost message. The outer ones repeat the URL.
pub fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Returns a random number in `0.0..1.0`.
pub fn retry_jitter() -> f64 {
    // The standard library seeds each state from the system's random numbers. A float holds 53
    // bits.
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_can_be_built_here() {
        assert!(client(ClientBuilder::no_proxy).is_ok());
    }

    #[test]
    fn a_future_with_a_timer_ends() {
        assert_eq!(
            block_on(async {
                tokio::time::timeout(std::time::Duration::ZERO, std::future::pending::<()>())
                    .await
                    .is_err()
            })
            .ok(),
            Some(true)
        );
    }
}

#[cfg(test)]
mod jitter_tests {
    use super::*;

    #[test]
    fn it_is_spread_between_nought_and_one() {
        let drawn: Vec<f64> = (0..200).map(|_| retry_jitter()).collect();
        assert!(
            drawn.iter().all(|number| (0.0..1.0).contains(number)),
            "{drawn:?}"
        );
        assert!(
            drawn.iter().any(|number| *number < 0.5) && drawn.iter().any(|number| *number >= 0.5),
            "{drawn:?}"
        );
    }
}
