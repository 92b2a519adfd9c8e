//! A small HTTP server on this machine: it answers from functions, and nothing else reaches them.
//!
//! Connections are many and cheap; answers are made by a few threads, whatever is asked at once.
//! Only GET and HEAD are answered, bodies of requests are not read, and a client that does not say
//! what it wants is let go. What a panic ends is one answer.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;

/// So many answers are made at once.
const THREADS: usize = 4;
/// So many connections are open at once; others wait to be taken.
const MAX_CONNECTIONS: usize = 512;
/// So long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(15);
/// So often is looked whether to end.
const BEAT: Duration = Duration::from_millis(100);
/// So long answers that are under way may take when the server ends.
const FAREWELL: Duration = Duration::from_millis(500);

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The path, as it was sent.
    pub path: String,
    /// What stands behind the question mark, as it was sent.
    pub query: String,
    /// The host by which the client knows the server; nothing if it says none, or several.
    pub host: Option<String>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageAnswer {
    /// The status, such as 200.
    pub status: u16,
    /// The media type.
    pub kind: &'static str,
    /// The bytes.
    pub body: Vec<u8>,
    /// Further headers: names in lower case.
    pub headers: Vec<(&'static str, String)>,
}

/// What answers; it is called on several threads.
pub type Answering = dyn Fn(&PageRequest) -> PageAnswer + Send + Sync;

/// Listens on this machine only; port 0 is any that is free.
///
/// # Errors
/// The port is in use, or may not be used.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Answers until it is to end.
///
/// # Errors
/// The system gives no event queue, or takes the listener away.
pub fn serve(
    listener: TcpListener,
    answering: Arc<Answering>,
    is_over: impl Fn() -> bool,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(THREADS)
        .build()?;
    let result = runtime.block_on(take_clients(listener, answering, is_over));
    runtime.shutdown_timeout(FAREWELL);
    result
}

/// Takes one client after the other.
async fn take_clients(
    listener: TcpListener,
    answering: Arc<Answering>,
    is_over: impl Fn() -> bool,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        if is_over() {
            return Ok(());
        }
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return Ok(());
        };
        let stream = loop {
            match tokio::time::timeout(BEAT, listener.accept()).await {
                Ok(Ok((stream, _))) => break stream,
                // Out of descriptors, or a client that left before it was taken: later ones count.
                Ok(Err(_)) => tokio::time::sleep(BEAT).await,
                Err(_) if is_over() => return Ok(()),
                Err(_) => {}
            }
        };

        let answering = Arc::clone(&answering);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&answering), request));
            let mut connection = http1::Builder::new();
            connection
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .max_buf_size(64 << 10);
            // What goes wrong between the client and here is the client's to notice.
            let _ = connection
                .serve_connection(TokioIo::new(stream), service)
                .await;
            drop(place);
        });
    }
}

/// Answers a request.
async fn answer(
    answering: Arc<Answering>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(response(plain(405, "Only GET and HEAD are answered.\n")));
    }

    let asked = asked(&request);
    let made = tokio::task::spawn_blocking(move || answering(&asked)).await;
    Ok(response(made.unwrap_or_else(|_| {
        plain(500, "This page could not be made.\n")
    })))
}

/// Reads what a client asks for.
fn asked(request: &Request<Incoming>) -> PageRequest {
    let headers = request.headers();
    PageRequest {
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        host: only(headers, &header::HOST),
    }
}

/// Returns a header that stands there once.
fn only(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then_some(())?;
    value.to_str().ok().map(str::to_owned)
}

/// Returns an answer in plain words.
pub fn plain(status: u16, words: &str) -> PageAnswer {
    PageAnswer {
        status,
        kind: "text/plain; charset=utf-8",
        body: words.as_bytes().to_vec(),
        headers: Vec::new(),
    }
}

/// Returns an answer as it is sent.
fn response(answered: PageAnswer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(answered.body)));
    let status = StatusCode::from_u16(answered.status);
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);

    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(answered.kind),
    );
    for (name, value) in answered.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    response
}
