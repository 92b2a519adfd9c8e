//! A provider on loopback that says exactly the bytes that a test wants: it can cut off, stall,
//! drip and lie.
//!
//! One file for both kinds of tests: those of `model::remote` take it in by its path.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What the provider does on one connection, after it has read the request.
#[derive(Clone)]
pub enum Act {
    /// Sends a text.
    Send(String),
    /// Sends bytes that are no text.
    Bytes(Vec<u8>),
    /// Sends bytes one by one, with a pause between them.
    Drip(String, Duration),
    /// Sends a piece again and again until the other side has enough.
    Flood(String),
    /// Says nothing more and waits until the other side hangs up.
    Stall,
}

/// A running provider; it serves one script for each connection and then refuses.
pub struct Fake {
    /// Where it listens.
    pub origin: String,
    /// The requests that came, heads and bodies.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// Starts a provider with a script for each connection.
    pub fn start(scripts: Vec<Vec<Act>>) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = requests.clone();
        thread::spawn(move || {
            for script in scripts {
                let Ok((mut stream, _)) = listener.accept() else {
                    return;
                };
                log.lock().unwrap().push(read_request(&mut stream));
                play(&mut stream, &script);
            }
        });
        Fake { origin, requests }
    }

    /// Starts a provider that sends one whole response for each connection.
    pub fn answering(responses: &[String]) -> Fake {
        Fake::start(
            responses
                .iter()
                .map(|response| vec![Act::Send(response.clone())])
                .collect(),
        )
    }

    /// Returns the requests that came.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns a configuration with this provider as the model `fake`; `more` are further settings
    /// of the model.
    pub fn config(&self, more: &str) -> String {
        self.config_as("openai", more)
    }

    /// Returns a configuration with this provider as the model `fake` of a kind.
    pub fn config_as(&self, kind: &str, more: &str) -> String {
        let base = format!("{}/v1", self.origin);
        format!(
            "model: fake\nmodels:\n  fake: {{ kind: {kind}, id: gpt-5, base_url: \"{base}\", api_key_env: FAKE_KEY{more} }}\n"
        )
    }
}

/// Makes a response of status line, headers and body, ended by the end of the connection.
pub fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\n\r\n{body}")
}

/// Makes a stream of events.
pub fn events(body: &str) -> String {
    response("200 OK", "content-type: text/event-stream\r\n", body)
}

/// Makes the beginning of a stream with a piece of an answer.
pub fn begun(text: &str) -> String {
    let piece =
        serde_json::json!({ "model": "gpt-5-2", "choices": [{ "delta": { "content": text } }] });
    events(&format!("data: {piece}\n\n"))
}

/// Makes a whole stream: the answer, why it ended, and what it took.
pub fn stream(text: &str, finish: &str, (input, output): (u64, u64)) -> String {
    let end = serde_json::json!({ "choices": [{ "delta": {}, "finish_reason": finish }] });
    let usage = serde_json::json!({ "choices": [], "usage": { "prompt_tokens": input, "completion_tokens": output } });
    format!(
        "{}data: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n",
        begun(text)
    )
}

/// Makes the beginning of a stream of the Messages protocol.
pub fn messages_begun(text: &str, usage: &serde_json::Value) -> String {
    let start = serde_json::json!({ "type": "message_start", "message": { "model": "claude-x", "usage": usage } });
    let piece = serde_json::json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": text } });
    events(&format!(
        "event: message_start\ndata: {start}\n\nevent: content_block_delta\ndata: {piece}\n\n"
    ))
}

/// Makes a whole stream of the Messages protocol.
pub fn messages(text: &str, finish: &str, (usage, output): (&serde_json::Value, u64)) -> String {
    let end = serde_json::json!({ "type": "message_delta", "delta": { "stop_reason": finish }, "usage": { "output_tokens": output } });
    let begun = messages_begun(text, usage);
    format!(
        "{begun}event: message_delta\ndata: {end}\n\nevent: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n"
    )
}

/// Acts; an error means that the other side has hung up.
fn play(stream: &mut TcpStream, script: &[Act]) {
    for act in script {
        let result = match act {
            Act::Send(text) => stream.write_all(text.as_bytes()),
            Act::Bytes(bytes) => stream.write_all(bytes),
            Act::Drip(text, pause) => text.bytes().try_for_each(|byte| {
                thread::park_timeout(*pause);
                stream.write_all(&[byte])
            }),
            Act::Flood(piece) => loop {
                if let Err(error) = stream.write_all(piece.as_bytes()) {
                    break Err(error);
                }
            },
            Act::Stall => stream.read(&mut [0; 1]).map(drop),
        };
        if result.is_err() {
            return;
        }
    }
}

/// Reads a request with its body.
fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = |line: &str| {
                line.to_ascii_lowercase()
                    .strip_prefix("content-length:")?
                    .trim()
                    .parse()
                    .ok()
            };
            if body.len() >= head.lines().find_map(length).unwrap_or(0usize) {
                return text;
            }
        }
        match stream.read(&mut buffer) {
            Ok(read @ 1..) => bytes.extend_from_slice(&buffer[..read]),
            _ => return text,
        }
    }
}
