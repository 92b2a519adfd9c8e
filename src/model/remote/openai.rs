//! OpenAI's chat completions protocol: requests, streams and plain JSON answers.

use serde_json::{Value, json};

use super::Protocol;
use super::adapt::Adaptation;
use super::draft::{AnswerDraft, number, provider_message, text};
use crate::model::known;
use crate::model::remote::sse::SseEvent;
use crate::model::{Finish, ModelRequest, TokenUsage};

pub(super) const PROTOCOL: Protocol = Protocol {
    provider: &known::OPENAI,
    path: "chat/completions",
    version: None,
    content,
    limit: ("max_tokens", None),
    event,
    read_complete,
    adaptations: &[
        Adaptation::NoStreamOptions,
        Adaptation::NewLimitName,
        Adaptation::NoLimit,
        Adaptation::NoTemperature,
        Adaptation::NoSystem,
        Adaptation::NoStream,
    ],
};

fn content(request: &ModelRequest) -> Value {
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }

    // One message: the chat templates of some models reject two user messages in a row.
    messages.push(json!({ "role": "user", "content": request.user_text() }));
    json!({ "messages": messages, "stream_options": { "include_usage": true } })
}

/// Handles a stream event. The error is the provider's message.
fn event(draft: &mut AnswerDraft, event: &SseEvent) -> Result<(), String> {
    if event.data.trim() == "[DONE]" {
        draft.recognised = true;
        draft.ended = true;
        return Ok(());
    }

    let Some(value) = draft.json(event) else {
        return Ok(());
    };
    if event.name == "error" || value.get("error").is_some_and(|error| !error.is_null()) {
        return Err(provider_message(&value).unwrap_or_else(|| event.data.clone()));
    }

    take(draft, &value, "/choices/0/delta");
    Ok(())
}

/// `false` if `value` isn't an answer.
fn read_complete(draft: &mut AnswerDraft, value: &Value) -> bool {
    take(draft, value, "/choices/0/message");
    draft.ended = draft.recognised;
    draft.recognised
}

/// Reads a chunk or a whole answer. `message` is the JSON pointer of its message.
fn take(draft: &mut AnswerDraft, value: &Value, message: &str) {
    draft.recognised |= value.get("choices").is_some_and(Value::is_array);
    if let Some(message) = value.pointer(message) {
        push_content(&mut draft.text, &message["content"]);
        draft
            .refusal
            .push_str(text(message, "/refusal").unwrap_or_default());
        let tool = text(message, "/tool_calls/0/function/name");
        let tool = tool.or(text(message, "/function_call/name"));
        draft.tool = tool.map(str::to_owned).or(draft.tool.take());
    }
    if let Some(model) = text(value, "/model") {
        draft.model = Some(model.to_owned());
    }

    if let Some(reason) = text(value, "/choices/0/finish_reason") {
        draft.finish = Some(Finish::of(reason));
    }

    // With `include_usage`, the last chunk has the usage and no choices.
    if value.get("usage").is_some_and(Value::is_object) {
        draft.usage = TokenUsage {
            input: number(value, "/usage/prompt_tokens"),
            output: number(value, "/usage/completion_tokens"),
            cached: number(value, "/usage/prompt_tokens_details/cached_tokens"),
            cache_written: 0,
        };
    }
}

/// Appends a content: a text, or a list of parts of which only texts belong to the answer.
fn push_content(answer: &mut String, content: &Value) {
    match content {
        Value::String(text) => answer.push_str(text),
        Value::Array(parts) => {
            let is_text = |part: &&Value| {
                part.is_string() || text(part, "/type").is_none_or(|kind| kind.ends_with("text"))
            };
            for part in parts.iter().filter(is_text) {
                let piece = part.as_str().or(text(part, "/text"));
                answer.push_str(piece.unwrap_or_default());
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::ModelSettings;

    fn check(events: &[&str], expected: Result<(&str, Option<Finish>), &str>) {
        let mut draft = AnswerDraft::default();
        let result = events.iter().try_for_each(|data| {
            event(
                &mut draft,
                &SseEvent {
                    name: String::new(),
                    data: (*data).into(),
                    is_damaged: false,
                },
            )
        });
        assert_eq!(
            result.map(|()| (draft.text, draft.finish)),
            expected
                .map(|(text, finish)| (text.to_owned(), finish))
                .map_err(str::to_owned)
        );
    }

    #[test]
    fn chunks_make_the_text() {
        check(
            &[
                r#"{"choices":[{"delta":{"role":"assistant"}}]}"#,
                r##"{"choices":[{"delta":{"content":"# T"}}]}"##,
                r#"{"choices":[{"delta":{"content":"\n"},"finish_reason":"stop"}]}"#,
                "[DONE]",
            ],
            Ok(("# T\n", Some(Finish::Stop))),
        );
    }

    #[test]
    fn reasoning_is_no_part_of_the_answer() {
        check(
            &[
                r#"{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}"#,
                r#"{"choices":[{"delta":{"content":"a"}}]}"#,
            ],
            Ok(("a", None)),
        );
    }

    #[test]
    fn an_error_in_the_stream_has_the_providers_words() {
        check(
            &[
                r#"{"choices":[{"delta":{"content":"a"}}]}"#,
                r#"{"error":{"message":"overloaded","code":502}}"#,
            ],
            Err("overloaded"),
        );
        check(&[r#"{"error":"out of memory"}"#], Err("out of memory"));
        check(&[r#"{"choices":[],"error":null}"#], Ok(("", None)));
    }

    #[test]
    fn usage_comes_with_the_last_chunk() {
        let mut draft = AnswerDraft::default();
        let data = r#"{"model":"gpt-5-2","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8}}}"#;
        event(
            &mut draft,
            &SseEvent {
                name: String::new(),
                data: data.into(),
                is_damaged: false,
            },
        )
        .unwrap();
        assert_eq!(
            (draft.usage, draft.model.as_deref()),
            (
                TokenUsage {
                    input: 9,
                    output: 4,
                    cached: 8,
                    cache_written: 0
                },
                Some("gpt-5-2")
            )
        );
    }

    #[test]
    fn a_request_has_the_stable_part_first() {
        let request = ModelRequest {
            system: "S".into(),
            input: "I".into(),
            message: "M".into(),
            max_tokens: Some(7),
        };
        let body = PROTOCOL.body("gpt", &ModelSettings::default(), &request);
        assert_eq!(
            body["messages"],
            json!([{ "role": "system", "content": "S" }, { "role": "user", "content": "I\n\n# Message\n\nM\n" }])
        );
        assert_eq!(
            (&body["model"], &body["max_tokens"], &body["stream"]),
            (&json!("gpt"), &json!(7), &json!(true))
        );
    }

    #[test]
    fn content_can_be_a_list_of_parts() {
        check(
            &[
                r#"{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]}}]}"#,
                r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"},"b"]}}]}"#,
                r#"{"choices":[{"delta":{"content":[]},"finish_reason":"STOP"}]}"#,
            ],
            Ok(("ab", Some(Finish::Stop))),
        );
    }
}
