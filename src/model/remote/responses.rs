//! OpenAI's Responses protocol: requests, streams and plain JSON answers. Some models speak nothing
//! else.

use serde_json::{Value, json};

use super::Protocol;
use super::adapt::Adaptation;
use super::draft::{AnswerDraft, number, provider_message, text};
use crate::model::known;
use crate::model::remote::sse::SseEvent;
use crate::model::{Finish, ModelRequest, TokenUsage};

pub(super) const PROTOCOL: Protocol = Protocol {
    provider: &known::OPENAI,
    path: "responses",
    version: None,
    content,
    limit: ("max_output_tokens", None),
    event,
    read_complete,
    adaptations: &[
        Adaptation::NoLimit,
        Adaptation::NoTemperature,
        Adaptation::NoSystem,
        Adaptation::NoStream,
    ],
};

fn content(request: &ModelRequest) -> Value {
    // The provider must not keep the conversation.
    let mut body = json!({ "input": request.user_text(), "store": false });
    if !request.system.trim().is_empty() {
        body["instructions"] = request.system.as_str().into();
    }

    body
}

/// Handles a stream event. The error is the provider's message.
fn event(draft: &mut AnswerDraft, event: &SseEvent) -> Result<(), String> {
    let Some(value) = draft.json(event) else {
        return Ok(());
    };
    let kind = text(&value, "/type").unwrap_or(&event.name);
    draft.recognised |= kind.starts_with("response.");
    match kind {
        "response.output_text.delta" => {
            draft
                .text
                .push_str(text(&value, "/delta").unwrap_or_default());
        }
        "response.refusal.delta" => {
            draft
                .refusal
                .push_str(text(&value, "/delta").unwrap_or_default());
        }
        "response.output_item.added" => take_tool(draft, &value["item"]),
        "response.completed" | "response.incomplete" => {
            let response = &value["response"];
            // Some servers send the text only here.
            if draft.text.is_empty() {
                take_output(draft, response);
            }
            take_end(draft, response, &kind["response.".len()..]);
        }
        "response.failed" => {
            let message = provider_message(&value["response"]);
            return Err(message.unwrap_or_else(|| event.data.clone()));
        }
        "error" => return Err(provider_message(&value).unwrap_or_else(|| event.data.clone())),
        _ => {}
    }

    Ok(())
}

/// Reads an answer that is a single JSON object. `false` if `value` isn't one.
fn read_complete(draft: &mut AnswerDraft, value: &Value) -> bool {
    if !value.get("output").is_some_and(Value::is_array) {
        return false;
    }
    draft.recognised = true;
    take_output(draft, value);
    take_end(draft, value, "completed");
    true
}

fn take_output(draft: &mut AnswerDraft, response: &Value) {
    let items = response["output"].as_array();
    for item in items.into_iter().flatten() {
        take_tool(draft, item);
        let parts = item["content"].as_array().into_iter().flatten();
        // Reasoning has another type of item.
        for part in parts.filter(|_| item["type"] == "message") {
            draft.text.push_str(text(part, "/text").unwrap_or_default());
            draft
                .refusal
                .push_str(text(part, "/refusal").unwrap_or_default());
        }
    }
}

fn take_tool(draft: &mut AnswerDraft, item: &Value) {
    let is_call = text(item, "/type").is_some_and(|kind| kind.ends_with("_call"));
    if is_call {
        let name = text(item, "/name").or(text(item, "/type"));
        draft.tool = name.map(str::to_owned);
    }
}

fn take_end(draft: &mut AnswerDraft, response: &Value, usual_status: &str) {
    draft.ended = true;
    draft.model = text(response, "/model").map(str::to_owned);
    // A cancelled response, or one that still runs, has no reason.
    let reason = text(response, "/incomplete_details/reason").or(text(response, "/status"));
    draft.finish = Some(Finish::of(reason.unwrap_or(usual_status)));
    draft.usage = TokenUsage {
        input: number(response, "/usage/input_tokens"),
        output: number(response, "/usage/output_tokens"),
        cached: number(response, "/usage/input_tokens_details/cached_tokens"),
        cache_written: 0,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::ModelSettings;

    fn read(events: &[&str]) -> Result<AnswerDraft, String> {
        let mut draft = AnswerDraft::default();
        for data in events {
            let data = (*data).to_owned();
            let name = String::new();
            event(
                &mut draft,
                &SseEvent {
                    name,
                    data,
                    is_damaged: false,
                },
            )?;
        }
        Ok(draft)
    }

    #[test]
    fn a_stream_is_an_answer() {
        let draft = read(&[
            r#"{"type":"response.created","response":{"id":"r"}}"#,
            r#"{"type":"response.reasoning_summary_text.delta","delta":"Hm"}"#,
            r##"{"type":"response.output_text.delta","delta":"# T"}"##,
            r#"{"type":"response.output_text.delta","delta":"\n"}"#,
            r##"{"type":"response.completed","response":{"model":"gpt-5-codex","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"# T\n"}]}],"usage":{"input_tokens":9,"output_tokens":4,"input_tokens_details":{"cached_tokens":8}}}}"##,
        ])
        .unwrap();
        let usage = TokenUsage {
            input: 9,
            output: 4,
            cached: 8,
            cache_written: 0,
        };
        let expected = AnswerDraft {
            text: "# T\n".to_owned(),
            model: Some("gpt-5-codex".to_owned()),
            usage,
            finish: Some(Finish::Stop),
            ended: true,
            recognised: true,
            ..AnswerDraft::default()
        };
        assert_eq!(draft, expected);
    }

    #[test]
    fn an_answer_in_one_piece_leaves_out_reasoning() {
        let mut draft = AnswerDraft::default();
        let value = json!({ "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" },
            "output": [{ "type": "reasoning", "content": [{ "text": "Hm" }] },
                       { "type": "message", "content": [{ "type": "output_text", "text": "a" }] }] });
        assert!(read_complete(&mut draft, &value));
        assert_eq!(
            (draft.text.as_str(), draft.finish),
            ("a", Some(Finish::Length))
        );
        assert!(!read_complete(
            &mut AnswerDraft::default(),
            &json!({ "choices": [] })
        ));
    }

    #[test]
    fn a_refusal_a_tool_and_a_failure_are_told_apart() {
        let draft = read(&[r#"{"type":"response.refusal.delta","delta":"I can't."}"#]).unwrap();
        assert_eq!(draft.refusal, "I can't.");
        let item = r#"{"type":"response.output_item.added","item":{"type":"function_call","name":"shell"}}"#;
        assert_eq!(read(&[item]).unwrap().tool.as_deref(), Some("shell"));
        let failed = r#"{"type":"response.failed","response":{"error":{"message":"overloaded"}}}"#;
        assert_eq!(read(&[failed]), Err("overloaded".to_owned()));
    }

    #[test]
    fn a_request_has_its_own_fields() {
        let request = ModelRequest {
            system: "S".into(),
            input: "I".into(),
            message: "M".into(),
            max_tokens: Some(7),
        };
        let expected = json!({ "model": "gpt", "instructions": "S", "input": "I\n\n# Message\n\nM\n",
            "max_output_tokens": 7, "stream": true, "store": false });
        let body = PROTOCOL.body("gpt", &ModelSettings::default(), &request);
        assert_eq!(body, expected);
    }
}
