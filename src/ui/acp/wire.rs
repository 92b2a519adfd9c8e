//! JSON-RPC over two streams, one message a line, as the Agent Client Protocol has it.
//!
//! A thread reads, so that a wish to stop is heard while a model is asked or a command runs. A
//! client is a stranger: a line, what waits, and what is answered have limits.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::host::interrupt;

/// The longest line.
const MAX_LINE: u64 = 16 << 20;
/// How many messages wait at most.
const MAX_WAITING: usize = 64;
/// How often a wish to stop is looked for while an answer is awaited.
const TICK: Duration = Duration::from_millis(50);

/// What was read.
enum ClientLine {
    /// A message.
    Message(Value),
    /// A line that is none.
    Junk,
}

/// Whether a prompt is worked on, and whether it was cancelled.
#[derive(Debug, Default)]
struct PromptState {
    /// It is worked on.
    is_busy: AtomicBool,
    /// The client, or its end, wants it to stop.
    is_cancelled: AtomicBool,
}

impl PromptState {
    /// Stops the work on a prompt, if there is one.
    fn cancel(&self) {
        if self.is_busy.load(Ordering::SeqCst) {
            self.is_cancelled.store(true, Ordering::SeqCst);
            interrupt::raise();
        }
    }
}

/// A client at the other end.
pub struct AcpWire {
    /// What was read.
    incoming: Receiver<ClientLine>,
    /// Where answers go.
    out: Box<dyn Write>,
    /// What came while an answer was awaited.
    later: VecDeque<Value>,
    /// The prompt that is worked on.
    prompt: Arc<PromptState>,
    /// How many requests were sent.
    requests: u64,
}

impl AcpWire {
    /// Begins to read.
    pub fn new(input: impl Read + Send + 'static, out: Box<dyn Write>) -> AcpWire {
        let (sender, incoming) = sync_channel(MAX_WAITING);
        let prompt = Arc::new(PromptState::default());
        let state = Arc::clone(&prompt);
        thread::spawn(move || {
            read(input, &sender, &state);
            // Whoever is gone wants nothing any more.
            state.cancel();
        });
        AcpWire {
            incoming,
            out,
            later: VecDeque::new(),
            prompt,
            requests: 0,
        }
    }

    /// Returns the next message; nothing if the client is gone.
    pub fn next_message(&mut self) -> Option<Value> {
        if let Some(message) = self.later.pop_front() {
            return Some(message);
        }
        loop {
            match self.incoming.recv().ok()? {
                ClientLine::Message(message) => return Some(message),
                ClientLine::Junk => self.fail(&Value::Null, (-32700, "this is not JSON")),
            }
        }
    }

    /// Sends a message; a client that is gone is noticed where it is read from.
    fn send(&mut self, message: &Value) {
        let _ = writeln!(self.out, "{message}").and_then(|()| self.out.flush());
    }

    /// Answers a request.
    pub fn answer(&mut self, id: &Value, result: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    /// Says that a request failed.
    pub fn fail(&mut self, id: &Value, (code, message): (i32, &str)) {
        let error = json!({ "code": code, "message": message });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    /// Tells what goes on in a session.
    pub fn update(&mut self, session: &str, update: &Value) {
        let params = json!({ "sessionId": session, "update": update });
        self.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    /// Asks the client and returns what it answers; nothing if the prompt is cancelled.
    pub fn request(&mut self, method: &str, params: &Value) -> Option<Value> {
        self.requests += 1;
        let id = json!(format!("teddy-{}", self.requests));
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            if self.prompt.is_cancelled.load(Ordering::SeqCst) {
                return None;
            }
            match self.incoming.recv_timeout(TICK) {
                Ok(ClientLine::Message(message)) if message["method"].is_null() => {
                    if message["id"] == id {
                        return Some(message["result"].clone());
                    }
                }
                Ok(ClientLine::Message(message)) => self.put_off(message),
                Ok(ClientLine::Junk) => self.fail(&Value::Null, (-32700, "this is not JSON")),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Keeps a message for when the prompt is done; too many are refused.
    fn put_off(&mut self, message: Value) {
        if self.later.len() < MAX_WAITING {
            self.later.push_back(message);
        } else {
            self.fail(&message["id"], (-32603, "too many requests wait"));
        }
    }

    /// Begins to work on a prompt.
    pub fn begin_prompt(&mut self) {
        self.prompt.is_cancelled.store(false, Ordering::SeqCst);
        self.prompt.is_busy.store(true, Ordering::SeqCst);
    }

    /// Ends the work on a prompt; says whether it was cancelled.
    pub fn end_prompt(&mut self) -> bool {
        self.prompt.is_busy.store(false, Ordering::SeqCst);
        let is_cancelled = self.prompt.is_cancelled.load(Ordering::SeqCst);
        if is_cancelled {
            // It was about this prompt, and not about us.
            interrupt::flag().store(false, Ordering::SeqCst);
        }
        is_cancelled
    }
}

/// Reads messages until the client is gone, or sends what nobody would.
fn read(input: impl Read, sender: &SyncSender<ClientLine>, prompt: &PromptState) {
    let mut input = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        let count = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if !matches!(count, Ok(1..)) || line.len() as u64 >= MAX_LINE {
            return;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }

        let incoming = match serde_json::from_slice::<Value>(&line) {
            Ok(message) if message.is_object() => ClientLine::Message(message),
            _ => ClientLine::Junk,
        };
        if matches!(&incoming, ClientLine::Message(message) if message["method"] == "session/cancel")
        {
            prompt.cancel();
        }
        if sender.send(incoming).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn junk_is_answered_and_a_line_without_an_end_ends_it() {
        let text = b"{\"method\":\"a\",\"id\":1}\n\njunk\n[]\n{\"method\":\"b\"}\n".to_vec();
        let endless = std::io::repeat(b'x').take(MAX_LINE + 10);
        let input = std::io::Cursor::new(text).chain(endless);
        let mut wire = AcpWire::new(input, Box::new(std::io::sink()));
        let mut methods = Vec::new();
        while let Some(message) = wire.next_message() {
            methods.push(message["method"].clone());
        }
        assert_eq!(methods, ["a", "b"]);
    }

    #[test]
    fn an_answer_is_awaited_and_what_comes_before_it_is_put_off() {
        let text = b"{\"method\":\"b\",\"id\":2}\n{\"id\":\"x\",\"result\":0}\n{\"id\":\"teddy-1\",\"result\":7}\n";
        let mut wire = AcpWire::new(&text[..], Box::new(std::io::sink()));
        assert_eq!(wire.request("ask", &json!({})), Some(json!(7)));
        assert_eq!(wire.next_message().unwrap()["method"], "b");
        assert_eq!(wire.request("ask", &json!({})), None);
        assert_eq!(wire.next_message(), None);
    }
}
