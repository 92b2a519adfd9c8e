//! A server on loopback that says exactly the bytes that a test wants: it can cut off, stall, drip and lie.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What the server does on one connection, after it has read the request.
#[derive(Clone)]
pub enum Act {
    /// Sends bytes.
    Send(String),
    /// Sends bytes one by one, with a pause between them.
    Drip(String, Duration),
    /// Sends a piece again and again until the other side has enough.
    Flood(String),
    /// Says nothing more and waits until the other side hangs up.
    Stall,
}

/// A running server; it serves one script for each connection and then refuses.
pub struct Fake {
    /// Where it listens.
    pub origin: String,
    /// The requests that came, heads and bodies.
    pub requests: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// Starts a server with a script for each connection.
    pub fn start(scripts: Vec<Vec<Act>>) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = requests.clone();
        thread::spawn(move || {
            for script in scripts {
                let Ok((mut stream, _)) = listener.accept() else { return };
                log.lock().unwrap().push(read_request(&mut stream));
                play(&mut stream, &script);
            }
        });
        Fake { origin, requests }
    }

    /// Starts a server that sends one whole response for each connection.
    pub fn answering(responses: &[String]) -> Fake {
        Fake::start(responses.iter().map(|response| vec![Act::Send(response.clone())]).collect())
    }

    /// Returns the request at a position.
    pub fn request(&self, position: usize) -> String {
        self.requests.lock().unwrap()[position].clone()
    }

    /// Returns how many requests came.
    pub fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

/// Makes a response of status line, headers and body, ended by the end of the connection.
pub fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\n\r\n{body}")
}

/// Makes a stream of events.
pub fn stream(body: &str) -> String {
    response("200 OK", "content-type: text/event-stream\r\n", body)
}

/// Acts; an error means that the other side has hung up.
fn play(stream: &mut TcpStream, script: &[Act]) {
    for act in script {
        let result = match act {
            Act::Send(text) => stream.write_all(text.as_bytes()),
            Act::Drip(text, pause) => text.bytes().try_for_each(|byte| {
                thread::park_timeout(*pause);
                stream.write_all(&[byte])
            }),
            Act::Flood(piece) => loop {
                if let Err(error) = stream.write_all(piece.as_bytes()) {
                    break Err(error);
                }
            },
            Act::Stall => stream.read(&mut [0; 1]).map(|_| ()),
        };
        if result.is_err() {
            return;
        }
    }
}

/// Reads a request with its body.
fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok())
                .unwrap_or(0usize);
            if body.len() >= length {
                return text;
            }
        }
        match stream.read(&mut buffer) {
            Ok(read @ 1..) => bytes.extend_from_slice(&buffer[..read]),
            _ => return text,
        }
    }
}
