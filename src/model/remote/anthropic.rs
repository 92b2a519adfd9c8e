//! Anthropic's Messages protocol: requests with cache breakpoints, streams and plain JSON answers.

use serde_json::{Value, json};

use super::Protocol;
use super::adapt::Adaptation;
use super::draft::{AnswerDraft, number, provider_message, text};
use crate::model::known;
use crate::model::remote::sse::SseEvent;
use crate::model::{Finish, ModelRequest, TokenUsage, message_part};

pub(super) const PROTOCOL: Protocol = Protocol {
    provider: &known::ANTHROPIC,
    path: "messages",
    version: Some(("anthropic-version", "2023-06-01")),
    content,
    limit: ("max_tokens", Some(MAX_TOKENS)),
    event,
    read_complete,
    // It requires a limit.
    adaptations: &[Adaptation::NoTemperature],
};
/// The protocol requires a limit.
const MAX_TOKENS: u32 = 16_384;

fn content(request: &ModelRequest) -> Value {
    // Cache breakpoints after the system prompt and the input, which stay the same if only the
    // message changes.
    let cached = |text: &str| json!({ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } });
    let mut parts = Vec::new();
    if !request.input.trim().is_empty() {
        parts.push(cached(&request.input));
    }

    let message = message_part(&request.message);
    if !message.is_empty() {
        parts.push(json!({ "type": "text", "text": message }));
    }

    let mut body = json!({ "messages": [{ "role": "user", "content": parts }] });
    if !request.system.trim().is_empty() {
        body["system"] = json!([cached(&request.system)]);
    }

    body
}

/// The error is the provider's message.
fn event(draft: &mut AnswerDraft, event: &SseEvent) -> Result<(), String> {
    let Some(value) = draft.json(event) else {
        return Ok(());
    };
    match text(&value, "/type").unwrap_or(&event.name) {
        "message_start" => {
            draft.recognised = true;
            draft.model = text(&value, "/message/model").map(str::to_owned);
            take_usage(draft, &value["message"]);
        }
        "content_block_start" => take_tool(draft, &value["content_block"]),
        "content_block_delta" => draft
            .text
            .push_str(text(&value, "/delta/text").unwrap_or_default()),
        "message_delta" => {
            draft.finish = text(&value, "/delta/stop_reason")
                .map(Finish::of)
                .or(draft.finish.take());
            take_usage(draft, &value);
        }
        "message_stop" => draft.ended = true,
        "error" => return Err(provider_message(&value).unwrap_or_else(|| event.data.clone())),
        _ => {}
    }

    Ok(())
}

/// `false` if `value` isn't an answer.
fn read_complete(draft: &mut AnswerDraft, value: &Value) -> bool {
    let Some(blocks) = value.get("content").and_then(Value::as_array) else {
        return false;
    };
    draft
        .text
        .extend(blocks.iter().filter_map(|block| text(block, "/text")));
    blocks.iter().for_each(|block| take_tool(draft, block));
    draft.model = text(value, "/model").map(str::to_owned);
    draft.finish = text(value, "/stop_reason").map(Finish::of);
    take_usage(draft, value);
    draft.recognised = true;
    draft.ended = true;

    true
}

fn take_usage(draft: &mut AnswerDraft, message: &Value) {
    // Anthropic's `input_tokens` excludes cached tokens, ours includes them.
    let cached = number(message, "/usage/cache_read_input_tokens");
    let cache_written = number(message, "/usage/cache_creation_input_tokens");
    let input = number(message, "/usage/input_tokens")
        .saturating_add(cache_written)
        .saturating_add(cached);

    // Later events can lack some of the input counts.
    if input >= draft.usage.input {
        draft.usage = TokenUsage {
            input,
            cached,
            cache_written,
            output: draft.usage.output,
        };
    }

    // The output count of `message_delta` is cumulative.
    draft.usage.output = number(message, "/usage/output_tokens").max(draft.usage.output);
}

fn take_tool(draft: &mut AnswerDraft, block: &Value) {
    if text(block, "/type") == Some("tool_use") {
        draft.tool = text(block, "/name").map(str::to_owned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::ModelSettings;

    const START: &str = r#"{"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":3,"cache_creation_input_tokens":10,"cache_read_input_tokens":20,"output_tokens":1}}}"#;

    fn take(events: &[&str]) -> Result<AnswerDraft, String> {
        let mut draft = AnswerDraft::default();
        events.iter().try_for_each(|data| {
            event(
                &mut draft,
                &SseEvent {
                    name: String::new(),
                    data: (*data).into(),
                    is_damaged: false,
                },
            )
        })?;
        Ok(draft)
    }

    #[test]
    fn deltas_make_the_text_and_the_sum_of_the_caches_the_usage() {
        let draft = take(&[
            START,
            r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r##"{"type":"content_block_delta","delta":{"type":"text_delta","text":"# T\n"}}"##,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":3,"output_tokens":5}}"#,
            r#"{"type":"message_stop"}"#,
        ])
        .unwrap();
        assert_eq!(
            draft.usage,
            TokenUsage {
                input: 33,
                output: 5,
                cached: 20,
                cache_written: 10
            }
        );
        assert_eq!(
            (
                draft.text.as_str(),
                draft.model.as_deref(),
                draft.finish,
                draft.ended
            ),
            ("# T\n", Some("claude-x"), Some(Finish::Stop), true)
        );
    }

    #[test]
    fn a_cut_answer_says_so() {
        let draft = take(&[
            START,
            r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#,
        ])
        .unwrap();
        assert_eq!(draft.finish, Some(Finish::Length));
    }

    #[test]
    fn an_error_in_the_stream_has_the_providers_words() {
        assert_eq!(
            take(&[
                START,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#
            ]),
            Err("Overloaded".into())
        );
    }

    #[test]
    fn what_stays_is_marked_for_the_cache() {
        let request = ModelRequest {
            system: "S".into(),
            input: "I".into(),
            message: "M".into(),
            max_tokens: None,
        };
        let body = PROTOCOL.body("claude", &ModelSettings::default(), &request);
        let mark = json!({ "type": "ephemeral" });
        assert_eq!(
            body["system"],
            json!([{ "type": "text", "text": "S", "cache_control": mark }])
        );
        assert_eq!(
            body["messages"][0]["content"],
            json!([{ "type": "text", "text": "I", "cache_control": mark }, { "type": "text", "text": "# Message\n\nM" }])
        );
        assert_eq!(body["max_tokens"], json!(MAX_TOKENS));
    }
}
