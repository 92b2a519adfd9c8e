//! JSON-RPC 2.0 messages, one object per line.
//!
//! Everything that an agent sends is optional here: agents deviate from the protocol.

use serde_json::{Value, json};

use crate::model::acting::ACP_VERSION;

/// "Method not found".
pub(super) const NO_METHOD: i64 = -32601;
/// "Authentication required" of the Agent Client Protocol.
pub(super) const NOT_LOGGED_IN: i64 = -32000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Incoming {
    Answer {
        id: u64,
        outcome: Result<Value, RpcFailure>,
    },
    /// Must be answered.
    Request {
        /// Echoed in our answer. Can be a number or a string.
        id: Value,
        method: String,
        params: Value,
    },
    /// Needs no answer.
    Notification {
        method: String,
        /// `null` if the message has none.
        params: Value,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RpcFailure {
    pub(super) code: i64,
    pub(super) message: String,
}

impl Incoming {
    /// `None` if it is neither a request, a notification nor an answer to one of our requests.
    pub(super) fn read(message: &Value) -> Option<Incoming> {
        let params = || message.get("params").cloned().unwrap_or_default();
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id")) {
            (Some(method), Some(id)) if !id.is_null() => Some(Incoming::Request {
                id: id.clone(),
                method: method.to_owned(),
                params: params(),
            }),
            (Some(method), _) => Some(Incoming::Notification {
                method: method.to_owned(),
                params: params(),
            }),
            (None, Some(id)) => Some(Incoming::Answer {
                id: id.as_u64()?,
                outcome: outcome(message),
            }),
            (None, None) => None,
        }
    }
}

fn outcome(message: &Value) -> Result<Value, RpcFailure> {
    let Some(error) = message.get("error").filter(|error| !error.is_null()) else {
        return Ok(message.get("result").cloned().unwrap_or_default());
    };
    let text = error.get("message").and_then(Value::as_str);
    // Some agents put only `Internal error` in `message` and the reason in `data`.
    let detail = ["/data/details", "/data/message", "/data"]
        .iter()
        .find_map(|pointer| error.pointer(pointer)?.as_str());
    let parts: Vec<&str> = text.into_iter().chain(detail).collect();

    Err(RpcFailure {
        code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
        message: parts.join(": "),
    })
}

pub(in crate::model::acting) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Parameters of the first request of a conversation.
pub(in crate::model::acting) fn initialize_params() -> Value {
    json!({
        "protocolVersion": ACP_VERSION,
        "clientCapabilities": {
            // If offered, only some agents would use these. Without them, all agents work with
            // their own tools: in the worktree, inside the sandbox.
            "fs": { "readTextFile": false, "writeTextFile": false },
            "terminal": false,
        },
        "clientInfo": { "name": "teddy", "title": "TeDDy", "version": env!("CARGO_PKG_VERSION") },
    })
}

pub(super) fn notification(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

pub(super) fn answer(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

pub(super) fn no_method(id: &Value, method: &str) -> Value {
    let error = json!({ "code": NO_METHOD, "message": format!("no method `{method}`") });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

pub(super) fn line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Incoming>) {
        let message: Value = serde_json::from_str(text).unwrap();
        assert_eq!(Incoming::read(&message), expected, "{text}");
    }

    #[test]
    fn the_three_forms_are_told_apart() {
        let answered = |outcome| Some(Incoming::Answer { id: 1, outcome });
        check(
            r#"{"id":1,"result":{"a":2}}"#,
            answered(Ok(json!({ "a": 2 }))),
        );
        check(r#"{"id":1}"#, answered(Ok(Value::Null)));
        check(
            r#"{"id":"x","method":"m","params":[1]}"#,
            Some(Incoming::Request {
                id: "x".into(),
                method: "m".into(),
                params: json!([1]),
            }),
        );
        check(
            r#"{"method":"m"}"#,
            Some(Incoming::Notification {
                method: "m".into(),
                params: Value::Null,
            }),
        );
    }

    #[test]
    fn what_is_none_is_junk() {
        check("{}", None);
        check("[1]", None);
        check("3", None);
        check(r#"{"id":"not ours","result":1}"#, None);
    }

    #[test]
    fn an_error_has_its_reason() {
        let failed = |text: &str| match Incoming::read(&serde_json::from_str(text).unwrap()) {
            Some(Incoming::Answer { outcome, .. }) => outcome.unwrap_err(),
            other => panic!("{other:?}"),
        };
        let error = failed(
            r#"{"id":1,"error":{"code":-32603,"message":"Internal error","data":{"details":"no key"}}}"#,
        );
        assert_eq!(
            (error.code, error.message.as_str()),
            (-32603, "Internal error: no key")
        );
        assert_eq!(failed(r#"{"id":1,"error":7}"#), RpcFailure::default());
    }
}
