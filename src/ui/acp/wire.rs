//! JSON-RPC over two streams, one message per line, as the Agent Client Protocol specifies.
//!
//! A separate thread reads, so `session/cancel` takes effect while a model or a command runs. The
//! client is untrusted: line length, queued messages and deferred requests are bounded.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::host::interrupt;
use crate::text::foreign_json;

/// In bytes. A longer line ends the connection.
const MAX_LINE: u64 = 16 << 20;
/// Limit for the channel, and again for requests deferred during a prompt.
const MAX_WAITING: usize = 64;
/// Interval at which a waiting request checks for a cancellation.
const TICK: Duration = Duration::from_millis(50);
/// Interval at which a server without a prompt checks for a signal.
const IDLE_TICK: Duration = Duration::from_millis(250);

const CANCEL: &str = "session/cancel";
pub const PROMPT: &str = "session/prompt";

enum ClientLine {
    Message(Value),
    /// Not a JSON object.
    Junk,
}

#[derive(Debug, Default)]
struct PromptState {
    prompts: Mutex<EditorPrompts>,
    /// Set by `session/cancel`, and when the client disconnects.
    is_cancelled: AtomicBool,
}

#[derive(Debug, Default)]
struct EditorPrompts {
    /// Session of the prompt that runs.
    running: Option<String>,
    /// Those that were read and do not run yet.
    waiting: Vec<WaitingPrompt>,
}

#[derive(Debug)]
struct WaitingPrompt {
    id: Value,
    session: String,
    is_cancelled: bool,
}

impl PromptState {
    fn prompts(&self) -> MutexGuard<'_, EditorPrompts> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the prompts of a session, or all of them.
    fn cancel(&self, session: Option<&str>) {
        let is_meant = |of: &str| session.is_none_or(|session| session == of);
        let mut prompts = self.prompts();
        let waiting = prompts.waiting.iter_mut();
        waiting
            .filter(|prompt| is_meant(&prompt.session))
            .for_each(|prompt| prompt.is_cancelled = true);
        if prompts.running.as_deref().is_some_and(is_meant) {
            self.is_cancelled.store(true, Ordering::SeqCst);
            interrupt::raise();
        }
    }

    /// Notes what the reader has to know of a message, before the main thread gets it.
    fn note(&self, message: &Value) {
        let session = message["params"]["sessionId"].as_str();
        match message["method"].as_str() {
            Some(CANCEL) => self.cancel(Some(session.unwrap_or_default())),
            // Without an id it is a notification, which has no answer.
            Some(PROMPT) if !message["id"].is_null() => {
                self.prompts().waiting.push(WaitingPrompt {
                    id: message["id"].clone(),
                    session: session.unwrap_or_default().to_owned(),
                    is_cancelled: false,
                })
            }
            _ => {}
        }
    }

    /// Returns whether the prompt was cancelled while it waited.
    fn stop_waiting(prompts: &mut EditorPrompts, id: &Value) -> bool {
        let place = prompts.waiting.iter().position(|prompt| prompt.id == *id);
        place.is_some_and(|place| prompts.waiting.remove(place).is_cancelled)
    }
}

/// Connection to an ACP client.
pub struct AcpWire {
    incoming: Receiver<ClientLine>,
    out: Box<dyn Write>,
    /// Messages that arrived during [`AcpWire::request`]; `next_message` returns them first.
    later: VecDeque<Value>,
    prompt: Arc<PromptState>,
    requests: u64,
}

impl AcpWire {
    /// Starts the reader thread.
    pub fn new(input: impl Read + Send + 'static, out: Box<dyn Write>) -> AcpWire {
        // Bounded: a client that sends too much blocks on its own pipe.
        let (sender, incoming) = sync_channel(MAX_WAITING);
        let prompt = Arc::new(PromptState::default());
        let state = Arc::clone(&prompt);
        thread::spawn(move || {
            read(input, &sender, &state);
            // A client that disconnected does not need the result.
            state.cancel(None);
        });
        AcpWire {
            incoming,
            out,
            later: VecDeque::new(),
            prompt,
            requests: 0,
        }
    }

    /// Returns the next message, or `None` once the client has disconnected or a signal ends TeDDy.
    pub fn next_message(&mut self) -> Option<Value> {
        if let Some(message) = self.later.pop_front() {
            return Some(message);
        }
        loop {
            match self.incoming.recv_timeout(IDLE_TICK) {
                Ok(ClientLine::Message(message)) => return Some(message),
                Ok(ClientLine::Junk) => self.fail(&Value::Null, -32700, "this is not JSON"),
                Err(RecvTimeoutError::Timeout) if !interrupt::requested() => {}
                Err(_) => return None,
            }
        }
    }

    fn send(&mut self, message: &Value) {
        // Ignore a failed write: the reader thread notices the disconnect.
        let _ = writeln!(self.out, "{message}").and_then(|()| self.out.flush());
    }

    /// Sends the result of a request.
    pub fn answer(&mut self, id: &Value, result: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    /// Sends an error reply.
    pub fn fail(&mut self, id: &Value, code: i32, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    /// Sends a `session/update` notification.
    pub fn update(&mut self, session: &str, update: &Value) {
        let params = json!({ "sessionId": session, "update": update });
        self.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    /// Sends a request and waits for its result. Returns `None` if the prompt is cancelled, the client
    /// disconnects or a signal ends TeDDy.
    pub fn request(&mut self, method: &str, params: &Value) -> Option<Value> {
        self.requests += 1;
        let id = json!(format!("teddy-{}", self.requests));
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            if self.prompt.is_cancelled.load(Ordering::SeqCst) || interrupt::requested() {
                return None;
            }
            match self.incoming.recv_timeout(TICK) {
                Ok(ClientLine::Message(message)) if message["method"].is_null() => {
                    // Drop late replies to requests that were cancelled.
                    if message["id"] == id {
                        return Some(message["result"].clone());
                    }
                }
                Ok(ClientLine::Message(message)) => self.put_off(message),
                Ok(ClientLine::Junk) => self.fail(&Value::Null, -32700, "this is not JSON"),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn put_off(&mut self, message: Value) {
        if self.later.len() < MAX_WAITING {
            self.later.push_back(message);
        } else {
            PromptState::stop_waiting(&mut self.prompt.prompts(), &message["id"]);
            self.fail(&message["id"], -32603, "too many requests wait");
        }
    }

    /// Marks a prompt as running, so the client can cancel it. Returns whether it was cancelled while
    /// it waited.
    pub fn begin_prompt(&mut self, id: &Value, session: &str) -> bool {
        let mut prompts = self.prompt.prompts();
        let is_cancelled = PromptState::stop_waiting(&mut prompts, id);
        self.prompt
            .is_cancelled
            .store(is_cancelled, Ordering::SeqCst);
        prompts.running = Some(session.to_owned());
        is_cancelled
    }

    /// Marks the prompt as done. Returns whether it was cancelled.
    pub fn end_prompt(&mut self) -> bool {
        // Under the lock, so that a later `cancel` does nothing.
        let mut prompts = self.prompt.prompts();
        prompts.running = None;
        let is_cancelled = self.prompt.is_cancelled.load(Ordering::SeqCst);
        if is_cancelled {
            // The interrupt was for this prompt only. The server keeps running.
            interrupt::flag().store(false, Ordering::SeqCst);
        }
        is_cancelled
    }
}

/// Reads until the client disconnects or exceeds `MAX_LINE`.
fn read(input: impl Read, sender: &SyncSender<ClientLine>, prompt: &PromptState) {
    let mut input = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        // `take` bounds the memory for a line without an end.
        let count = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if !matches!(count, Ok(1..)) || line.len() as u64 >= MAX_LINE {
            return;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }

        let incoming = match foreign_json::parse(&line) {
            Ok(message) if message.is_object() => ClientLine::Message(message),
            _ => ClientLine::Junk,
        };
        // Cancel here: the main thread is busy with the prompt and does not read the queue.
        if let ClientLine::Message(message) = &incoming {
            prompt.note(message);
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

    #[test]
    fn a_prompt_that_waits_can_be_cancelled_and_that_of_another_session_runs() {
        let text = b"{\"method\":\"session/prompt\",\"id\":1,\"params\":{\"sessionId\":\"a\"}}\n\
            {\"method\":\"session/prompt\",\"id\":2,\"params\":{\"sessionId\":\"b\"}}\n\
            {\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"a\"}}\n";
        let prompt = PromptState::default();
        let (sender, _incoming) = sync_channel(MAX_WAITING);
        read(&text[..], &sender, &prompt);
        let mut prompts = prompt.prompts();
        let cancelled = [1, 2, 3].map(|id| PromptState::stop_waiting(&mut prompts, &json!(id)));
        assert_eq!(cancelled, [true, false, false]);
        assert!(prompts.waiting.is_empty());
    }
}
