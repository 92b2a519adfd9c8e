//! A model server on loopback that answers immediately.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A running server.
pub struct Model {
    origin: String,
    answer: Arc<Mutex<String>>,
}

impl Model {
    /// Starts a server, which runs until the process ends.
    pub fn start() -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let answer = Arc::new(Mutex::new(String::new()));
        let said = answer.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(&mut stream.unwrap(), &said.lock().unwrap());
            }
        });
        Model { origin, answer }
    }

    /// Sets the answer to all further requests.
    pub fn says(&self, answer: &str) {
        answer.clone_into(&mut self.answer.lock().unwrap());
    }

    /// Returns a configuration with this server as the only model.
    pub fn settings(&self) -> String {
        format!(
            "model: loopback\nmodels:\n  loopback: {{ kind: openai, id: gpt-5, base_url: \"{}/v1\" }}\n",
            self.origin
        )
    }
}

fn serve(stream: &mut TcpStream, answer: &str) {
    let mut seen = Vec::new();
    let mut piece = [0; 1 << 16];
    while !is_whole(&seen) {
        let read = stream.read(&mut piece).unwrap();
        if read == 0 {
            return;
        }
        seen.extend_from_slice(&piece[..read]);
    }

    let events = [
        serde_json::json!({ "model": "gpt-5", "choices": [{ "delta": { "content": answer } }] }),
        serde_json::json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }),
        serde_json::json!({ "choices": [], "usage": { "prompt_tokens": 1, "completion_tokens": 1 } }),
    ];
    let events: String = events.map(|event| format!("data: {event}\n\n")).concat();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    // The client can disconnect before the end.
    let _ = stream.write_all(format!("{head}{events}data: [DONE]\n\n").as_bytes());
}

fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |length| length.trim().parse().unwrap());
    request.len() >= end + 4 + length
}
