//! A small HTTP server on the loopback interface.
//!
//! Accepts many connections, but builds pages in a few threads. Answers only GET and HEAD, one
//! request per connection, and does not read bodies. Slow clients are disconnected. If all places
//! are taken, a new client replaces the oldest one that has not sent its request yet.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::io::Errno;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};
use tokio::task::AbortHandle;
use uuid::Uuid;

use super::process;

// Pages built at the same time.
const THREADS: usize = 4;

// Any local user can connect, even without the secret in the URL, so every client is limited.
const LIMITS: ServeLimits = ServeLimits {
    connections: 512,
    patience: Duration::from_secs(15),
};

/// Interval for checking whether to stop.
const BEAT: Duration = Duration::from_millis(100);

/// How long running answers can take after the server stops.
const FAREWELL: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
struct ServeLimits {
    /// Open connections. Further clients wait if all of them have sent a request.
    connections: usize,
    /// How long a client has to send its request. It has four times as long to read the answer.
    patience: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The path, still percent-encoded.
    pub path: String,
    /// The query string, still percent-encoded.
    pub query: String,
    /// The `Host` header. `None` if it is missing or repeated.
    pub host: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageAnswer {
    pub status: u16,
    /// Media type.
    pub kind: &'static str,
    pub body: Vec<u8>,
    /// Additional headers, with lower-case names.
    pub headers: Vec<(&'static str, String)>,
}

/// Builds answers. Called from several threads.
pub type Answering = dyn Fn(&PageRequest) -> PageAnswer + Send + Sync;

/// Listens on the loopback interface. Port 0 selects a free one.
pub fn listen(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Answers requests until `is_over` returns `true`.
pub fn serve(
    listener: TcpListener,
    answering: Arc<Answering>,
    is_over: impl Fn() -> bool,
) -> io::Result<()> {
    serve_within(LIMITS, listener, answering, is_over)
}

fn serve_within(
    limits: ServeLimits,
    listener: TcpListener,
    answering: Arc<Answering>,
    is_over: impl Fn() -> bool,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(THREADS)
        .build()?;
    let result = runtime.block_on(take_clients(limits, listener, answering, is_over));
    runtime.shutdown_timeout(FAREWELL);
    result
}

async fn take_clients(
    limits: ServeLimits,
    listener: TcpListener,
    answering: Arc<Answering>,
    is_over: impl Fn() -> bool,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let permits = Arc::new(Semaphore::new(limits.connections));
    let silent = SilentClients::default();

    for number in 0.. {
        let stream = loop {
            let accepted = tokio::time::timeout(BEAT, listener.accept()).await;
            if is_over() {
                return Ok(());
            }
            match accepted {
                Ok(Ok((stream, _))) => break stream,
                Ok(Err(error)) => {
                    // Otherwise the client has disconnected, which does not affect later ones.
                    if is_out_of_descriptors(&error) {
                        silent.close_oldest();
                    }
                    tokio::time::sleep(BEAT).await;
                }
                Err(_) => {}
            }
        };

        if permits.available_permits() == 0 {
            silent.close_oldest();
        }
        let permit = loop {
            let permit = Arc::clone(&permits).acquire_owned();
            // The wait must notice that the server ends.
            let permit = tokio::time::timeout(BEAT, permit).await;
            if is_over() {
                return Ok(());
            }
            if let Ok(permit) = permit {
                break permit.map_err(io::Error::other)?;
            }
        };

        let (answering, own) = (Arc::clone(&answering), silent.clone());
        let client = tokio::spawn(async move {
            attend(stream, &answering, limits.patience, || own.remove(number)).await;
            own.remove(number);
            drop(permit);
        });
        // The runtime has one thread, so the task has not run yet.
        silent.add(number, client.abort_handle());
    }
    Ok(())
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

/// Connections whose request has not arrived yet, by the order in which they were accepted.
#[derive(Clone, Default)]
struct SilentClients(Arc<Mutex<BTreeMap<u64, AbortHandle>>>);

impl SilentClients {
    fn add(&self, number: u64, connection: AbortHandle) {
        self.lock().insert(number, connection);
    }

    fn remove(&self, number: u64) {
        self.lock().remove(&number);
    }

    fn close_oldest(&self) {
        // Aborting the task drops its stream and its place.
        if let Some((_, connection)) = self.lock().pop_first() {
            connection.abort();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves one request, and disconnects a client that is too slow. Calls `on_request` once the
/// request has arrived.
async fn attend(
    stream: TcpStream,
    answering: &Arc<Answering>,
    patience: Duration,
    on_request: impl Fn(),
) {
    let answered = Notify::new();
    let service = service_fn(async |request| {
        on_request();
        let answer = answer(Arc::clone(answering), request).await;
        answered.notify_one();
        answer
    });
    let mut connection = http1::Builder::new();
    connection
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        // An idle connection would keep its place.
        .keep_alive(false)
        .max_buf_size(64 << 10);
    let timeout = async {
        answered.notified().await;
        tokio::time::sleep(4 * patience).await;
    };

    // Errors of a connection concern only its client.
    tokio::select! {
        _ = connection.serve_connection(TokioIo::new(stream), service) => {}
        () = timeout => {}
    }
}

async fn answer(
    answering: Arc<Answering>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(response(plain(405, "Only GET and HEAD are answered.\n")));
    }

    let asked = asked(&request);
    let result = tokio::task::spawn_blocking(move || answering(&asked)).await;
    Ok(response(result.unwrap_or_else(|_| {
        plain(500, "This page could not be made.\n")
    })))
}

fn asked(request: &Request<Incoming>) -> PageRequest {
    let headers = request.headers();
    PageRequest {
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        host: only(headers, &header::HOST),
    }
}

fn only(headers: &HeaderMap, name: &header::HeaderName) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    // A repeated header counts as missing, because it is ambiguous.
    values.next().is_none().then_some(())?;
    value.to_str().ok().map(str::to_owned)
}

pub fn plain(status: u16, text: &str) -> PageAnswer {
    PageAnswer {
        status,
        kind: "text/plain; charset=utf-8",
        body: text.as_bytes().to_vec(),
        headers: Vec::new(),
    }
}

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
        // Skips a value that is not valid in a header.
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
    response
}

/// Returns 32 hexadecimal digits with 122 random bits.
pub fn random_token() -> String {
    Uuid::new_v4().simple().to_string()
}

/// Compares in constant time.
pub fn is_same_token(one: &str, other: &str) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let pairs = one.bytes().zip(other.bytes());
    let differing = pairs.fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differing) == 0
}

// Opens a URL in the user's browser.
//
// Other users can see the arguments of a process, and the URL can contain a secret. The browser
// therefore gets the path of a private HTML file that redirects to the URL.

const BROWSER_OPENER: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// A redirect page. Dropping it deletes the file.
#[derive(Debug)]
pub struct RedirectPage {
    path: PathBuf,
}

/// Opens `url` through a redirect page that is written to `dir`.
pub fn open_in_browser(url: &str, dir: &Path) -> io::Result<RedirectPage> {
    super::file::make_dirs(dir)?;
    let path = dir.join(format!("open-{}.html", random_token()));
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    let lead = RedirectPage { path };
    // An unusual umask can remove the owner's bits as well.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(redirect_html(url).as_bytes())?;
    drop(file);

    process::spawn_detached(process::command_by_hand(BROWSER_OPENER).arg(&lead.path))?;
    Ok(lead)
}

/// `url` must not contain characters that HTML treats specially.
fn redirect_html(url: &str) -> String {
    format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\"><title>TeDDy</title>\
         <a href=\"{url}\">TeDDy</a>\n"
    )
}

impl Drop for RedirectPage {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream as Client;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;

    /// Serves large answers to at most two clients at a time. The result of `attempt` lives until
    /// the server has stopped.
    fn while_served<T>(patience: Duration, attempt: impl FnOnce(SocketAddr) -> T) {
        let listener = listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let limits = ServeLimits {
            connections: 2,
            patience,
        };
        let answering: Arc<Answering> = Arc::new(|_| plain(200, &"x".repeat(32 << 20)));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let is_over = || over.load(Ordering::SeqCst);
            let served = scope.spawn(move || serve_within(limits, listener, answering, is_over));
            let _clients = attempt(address);
            over.store(true, Ordering::SeqCst);
            let asked = Instant::now();
            served.join().unwrap().unwrap();
            assert!(asked.elapsed() < Duration::from_secs(5), "it did not end");
        });
    }

    /// Sends requests without reading the answers.
    fn ask(address: SocketAddr, pages: usize) -> Client {
        let mut client = Client::connect(address).unwrap();
        let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(pages);
        client.write_all(request.as_bytes()).unwrap();
        client
    }

    #[test]
    fn who_takes_no_answer_keeps_nobody_else_from_one() {
        while_served(Duration::from_millis(300), |address| {
            let deaf = [ask(address, 100), ask(address, 100)];
            let mut answer = Vec::new();
            let mut client = ask(address, 1);
            let limit = Some(Duration::from_secs(20));
            client.set_read_timeout(limit).unwrap();
            client.read_to_end(&mut answer).unwrap();
            assert!(answer.len() > 32 << 20, "{} bytes", answer.len());
            deaf
        });
    }

    #[test]
    fn idle_clients_do_not_delay_the_answer_to_another() {
        while_served(Duration::from_secs(60), |address| {
            let silent = [(); 100].map(|()| Client::connect(address).unwrap());
            let mut half = Client::connect(address).unwrap();
            half.write_all(b"GET / HTTP/1.1\r\n").unwrap();

            let mut client = ask(address, 1);
            client
                .set_read_timeout(Some(Duration::from_secs(20)))
                .unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).unwrap();
            assert!(answer.len() > 32 << 20, "{} bytes", answer.len());
            (silent, half)
        });
    }

    #[test]
    fn a_client_that_has_sent_its_request_keeps_its_place() {
        while_served(Duration::from_secs(60), |address| {
            let mut client = ask(address, 1);
            client.read_exact(&mut [0]).unwrap();
            let silent = [(); 20].map(|()| Client::connect(address).unwrap());
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).unwrap();
            assert!(answer.len() > 32 << 20, "{} bytes", answer.len());
            silent
        });
    }

    #[test]
    fn it_ends_while_all_places_are_taken() {
        while_served(Duration::from_secs(60), |address| {
            let mut clients = [ask(address, 1), ask(address, 1)];
            for client in &mut clients {
                client.read_exact(&mut [0]).unwrap();
            }
            clients
        });
    }
}

#[cfg(test)]
mod token_tests {
    use super::*;

    #[test]
    fn words_are_compared_as_a_whole() {
        let check = |one, other, expected| assert_eq!(is_same_token(one, other), expected);
        check("abc", "abc", true);
        check("abc", "abd", false);
        check("abc", "bbc", false);
        check("abc", "ab", false);
        check("", "", true);
    }

    #[test]
    fn no_word_comes_twice() {
        let (one, other) = (random_token(), random_token());
        assert_eq!((one.len(), other.len()), (32, 32));
        assert_ne!(one, other);
    }
}
