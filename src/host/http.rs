//! HTTP clients: the one place that chooses TLS, and the runtime that drives them.

use std::future::Future;
use std::io;
use std::sync::Once;

/// What callers handle of the HTTP library, named from here so that it has one home.
pub use reqwest::{
    Client, ClientBuilder, Error, RequestBuilder, Response, StatusCode, Url, header, redirect,
};

/// Installs the TLS provider, once for the process.
static PROVIDER: Once = Once::new();

/// Builds a client that `configure` has set up.
///
/// On a machine without any root certificate the platform's verifier cannot be made, which would
/// forbid plain HTTP to a local model too; such a machine gets a client that trusts nobody.
///
/// # Errors
/// What `reqwest` says about the settings.
pub fn client(configure: impl Fn(ClientBuilder) -> ClientBuilder) -> reqwest::Result<Client> {
    PROVIDER.call_once(|| {
        // Another part of the process may have installed one: any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let builder =
        || configure(Client::builder().user_agent(concat!("teddy/", env!("CARGO_PKG_VERSION"))));
    builder()
        .build()
        .or_else(|_| builder().tls_certs_only(std::iter::empty()).build())
}

/// Builds a client for a server on this machine that is asked without TLS. It knows no certificates:
/// to read those of the machine takes longer than such a server does to answer.
///
/// # Errors
/// What `reqwest` says about the settings.
pub fn plain_client(configure: impl Fn(ClientBuilder) -> ClientBuilder) -> reqwest::Result<Client> {
    client(|builder| {
        configure(builder)
            .no_proxy()
            .tls_certs_only(std::iter::empty())
    })
}

/// Drives a future to its end on this thread.
///
/// # Errors
/// Where the system gives no event queue.
pub fn block_on<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(future);
    // A name lookup can still hang in a thread; nobody waits for it.
    runtime.shutdown_background();
    Ok(result)
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
