//! A scripted HTTP provider on loopback. It sends exact bytes, and can cut off, stall or drip.
//!
//! The unit tests of `model::remote` include this file by its path.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// One step on a connection, after the provider has read the request.
#[derive(Clone)]
pub enum Act {
    Send(String),
    Bytes(Vec<u8>),
    /// Sends the bytes one by one with this pause between them.
    Drip(String, Duration),
    /// Repeats the text until the client disconnects.
    Flood(String),
    /// Sends nothing more and waits until the client disconnects.
    Stall,
}

/// Serves one script per connection, then refuses connections.
pub struct Fake {
    pub origin: String,
    /// Heads and bodies.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Fake {
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

    /// Sends one complete response per connection.
    pub fn answering(responses: &[String]) -> Fake {
        Fake::start(
            responses
                .iter()
                .map(|response| vec![Act::Send(response.clone())])
                .collect(),
        )
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Configures this provider as the model `fake`. `more` are extra settings of the model.
    pub fn config(&self, more: &str) -> String {
        self.config_as("openai", more)
    }

    /// Like [`Fake::config`], with another `kind` of provider.
    pub fn config_as(&self, kind: &str, more: &str) -> String {
        let base = format!("{}/v1", self.origin);
        format!(
            "model: fake\nmodels:\n  fake: {{ kind: {kind}, id: gpt-5, base_url: \"{base}\", api_key_env: FAKE_KEY{more} }}\n"
        )
    }
}

/// Builds a response without a length: the end of the connection ends the body.
pub fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}connection: close\r\n\r\n{body}")
}

pub fn events(body: &str) -> String {
    response("200 OK", "content-type: text/event-stream\r\n", body)
}

/// Starts a Chat Completions stream with one piece of an answer.
pub fn begun(text: &str) -> String {
    let piece =
        serde_json::json!({ "model": "gpt-5-2", "choices": [{ "delta": { "content": text } }] });
    events(&format!("data: {piece}\n\n"))
}

/// Builds a complete Chat Completions stream.
pub fn stream(text: &str, finish: &str, (input, output): (u64, u64)) -> String {
    let end = serde_json::json!({ "choices": [{ "delta": {}, "finish_reason": finish }] });
    let usage = serde_json::json!({ "choices": [], "usage": { "prompt_tokens": input, "completion_tokens": output } });
    format!(
        "{}data: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n",
        begun(text)
    )
}

/// Starts a stream of the Messages protocol.
pub fn messages_begun(text: &str, usage: &serde_json::Value) -> String {
    let start = serde_json::json!({ "type": "message_start", "message": { "model": "claude-x", "usage": usage } });
    let piece = serde_json::json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": text } });
    events(&format!(
        "event: message_start\ndata: {start}\n\nevent: content_block_delta\ndata: {piece}\n\n"
    ))
}

pub fn messages(text: &str, finish: &str, (usage, output): (&serde_json::Value, u64)) -> String {
    let end = serde_json::json!({ "type": "message_delta", "delta": { "stop_reason": finish }, "usage": { "output_tokens": output } });
    let begun = messages_begun(text, usage);
    format!(
        "{begun}event: message_delta\ndata: {end}\n\nevent: message_stop\ndata: {{\"type\":\"message_stop\"}}\n\n"
    )
}

/// Fails if the client has disconnected.
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
