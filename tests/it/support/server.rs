//! Real git servers on loopback: `git http-backend` behind a small HTTP server, and a `git daemon`
//! for each connection.
//!
//! Both serve the bare repositories of one directory, accept pushes and stop when dropped.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::support::TestRepo;

/// How the HTTP server misbehaves.
#[derive(Default)]
pub struct Conduct {
    /// Requires this user: `name:password` in base64.
    pub lets_in: Option<&'static str>,
    /// Drops one connection after this many bytes of a request's body.
    pub drops_upload_after: Option<usize>,
    /// Drops one connection after this many bytes of a response's body.
    pub drops_answer_after: Option<usize>,
}

/// An HTTP server that runs `git http-backend`.
pub struct WebServer {
    /// `http://host:port`.
    pub origin: String,
    /// Bytes of all response bodies.
    pub sent: Arc<AtomicUsize>,
    _listener: Listener,
}

struct Backend {
    root: PathBuf,
    environment: Vec<(OsString, OsString)>,
    conduct: Conduct,
    dropped: AtomicBool,
    sent: Arc<AtomicUsize>,
}

impl WebServer {
    pub fn start(repo: &TestRepo, root: &Path, conduct: Conduct) -> WebServer {
        let sent = Arc::default();
        let backend = Backend {
            root: root.to_owned(),
            environment: environment(repo),
            conduct,
            dropped: AtomicBool::new(false),
            sent: Arc::clone(&sent),
        };
        let listener = Listener::start(move |stream| {
            backend.serve(stream);
        });
        WebServer {
            origin: format!("http://{}", listener.address),
            sent,
            _listener: listener,
        }
    }
}

impl Backend {
    /// Handles one request, then closes the connection.
    fn serve(&self, stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace();
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let headers = read_headers(&mut reader)?;
        let header = |name: &str| {
            let found = headers.iter().find(|(key, _)| key == name);
            found.map(|(_, value)| value.as_str())
        };

        if let Some(secret) = self.conduct.lets_in
            && header("authorization") != Some(&format!("Basic {secret}"))
        {
            let refusal = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\n\
                           Content-Length: 0\r\nConnection: close\r\n\r\n";
            return (&stream).write_all(refusal.as_bytes()).ok();
        }

        if header("expect").is_some() {
            (&stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
        }
        let body = self.body(
            &mut reader,
            header("content-length"),
            header("transfer-encoding"),
        );
        let Some(body) = body else {
            return stream.shutdown(Shutdown::Both).ok();
        };

        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let mut git = command("git");
        git.arg("http-backend")
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("GIT_PROJECT_ROOT", &self.root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("REMOTE_USER", "ada")
            .env("REQUEST_METHOD", method)
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
            .env("CONTENT_LENGTH", body.len().to_string());
        for (name, variable) in [
            ("git-protocol", "GIT_PROTOCOL"),
            ("content-encoding", "HTTP_CONTENT_ENCODING"),
        ] {
            header(name).map(|value| git.env(variable, value));
        }
        let answer = fed(git, body)?;
        self.answer(&stream, &answer)
    }

    /// Returns `None` if the connection is to be dropped in the middle of the body.
    fn body(
        &self,
        reader: &mut impl BufRead,
        length: Option<&str>,
        encoding: Option<&str>,
    ) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        if encoding == Some("chunked") {
            loop {
                let mut size = String::new();
                reader.read_line(&mut size).ok()?;
                let size = u64::from_str_radix(size.trim(), 16).ok()?;
                reader.take(size).read_to_end(&mut body).ok()?;
                reader.read_line(&mut String::new()).ok()?;
                if self.drops(self.conduct.drops_upload_after, body.len()) {
                    return None;
                }
                if size == 0 {
                    break;
                }
            }
        } else {
            let length: u64 = length.unwrap_or("0").parse().ok()?;
            reader.take(length).read_to_end(&mut body).ok()?;
        }

        let dropped = self.drops(self.conduct.drops_upload_after, body.len());
        (!dropped).then_some(body)
    }

    /// Returns `true` for one connection only.
    fn drops(&self, after: Option<usize>, so_far: usize) -> bool {
        after.is_some_and(|after| so_far > after) && !self.dropped.swap(true, Ordering::Relaxed)
    }

    fn answer(&self, mut stream: &TcpStream, answer: &[u8]) -> Option<()> {
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
        let (head, body) = (String::from_utf8_lossy(&answer[..end]), &answer[end + 4..]);
        let status = head.lines().find_map(|line| line.strip_prefix("Status: "));
        let rest: Vec<&str> = head
            .lines()
            .filter(|line| !line.starts_with("Status:"))
            .collect();
        let head = format!(
            "HTTP/1.1 {}\r\n{}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            status.unwrap_or("200 OK"),
            rest.join("\r\n"),
            body.len()
        );

        stream.write_all(head.as_bytes()).ok()?;
        let after = self.conduct.drops_answer_after;
        let body = match after {
            Some(after) if self.drops(after.into(), body.len()) => &body[..after],
            _ => body,
        };
        self.sent.fetch_add(body.len(), Ordering::Relaxed);
        stream.write_all(body).ok()?;
        stream.shutdown(Shutdown::Both).ok()
    }
}

/// Header names are returned in lower case.
fn read_headers(reader: &mut impl BufRead) -> Option<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            return Some(headers);
        };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
}

fn fed(mut command: Command, input: Vec<u8>) -> Option<Vec<u8>> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    let writer = thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().ok()?;
    let _ = writer.join();
    Some(output.stdout)
}

pub struct Daemon {
    /// `git://host:port`.
    pub origin: String,
    _listener: Listener,
}

impl Daemon {
    /// Allows everyone to fetch and push.
    pub fn start(repo: &TestRepo, root: &Path) -> Daemon {
        let environment = environment(repo);
        let base = format!("--base-path={}", root.display());
        let listener = Listener::start(move |stream| {
            let mut git = command("git");
            git.args(["daemon", "--inetd", "--export-all", "--enable=receive-pack"])
                .arg(&base)
                .env_clear()
                .envs(environment.iter().map(|(name, value)| (name, value)))
                .stdin(OwnedFd::from(stream.try_clone().unwrap()))
                .stdout(OwnedFd::from(stream))
                .stderr(Stdio::null());
            let _ = git.status();
        });
        Daemon {
            origin: format!("git://{}", listener.address),
            _listener: listener,
        }
    }
}

/// Accepts connections until it is dropped.
struct Listener {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Listener {
    fn start(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Listener {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, serve) = (Arc::new(AtomicBool::new(false)), Arc::new(serve));
        let stopped = Arc::clone(&stop);
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let serve = Arc::clone(&serve);
                thread::spawn(move || serve(stream));
            }
        });
        Listener { address, stop }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes `accept`, so that the thread sees `stop`.
        let _ = TcpStream::connect(self.address);
    }
}

/// The variables that programs of a test get.
fn environment(repo: &TestRepo) -> Vec<(OsString, OsString)> {
    let git = repo.command("git");
    let variables = git.get_envs();
    variables
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect()
}

#[expect(clippy::disallowed_methods, reason = "a test starts git itself")]
fn command(program: &str) -> Command {
    Command::new(program)
}
