//! Answers of real servers that differ from what a protocol says: one row each.

use super::*;

/// How a row is sent: as a stream of events, or in one piece with this status.
enum Sent {
    Stream(&'static str),
    Whole(&'static str, &'static str),
}

fn outcome(kind: ModelKind, sent: &Sent) -> String {
    let fake = match sent {
        Sent::Stream(body) => Fake::answering(&[events(body)]),
        Sent::Whole(status, body) => {
            Fake::answering(&[response(status, "content-type: application/json\r\n", body)])
        }
    };
    let remote = model(&fake, |remote| {
        remote.protocol = super::super::Protocol::of(kind);
        remote.limits.retries = 0;
    });
    let failed = |error: &ModelError| {
        let message = error.to_string().replace(&fake.origin, "http://fake");
        format!("error: {message}; kept {:?}", error.partial())
    };
    match ask(&remote) {
        Ok(answer) => {
            let usage = answer.usage;
            let tokens = match usage.is_known() {
                true => format!("{} in, {} out", usage.input, usage.output),
                false => "tokens unknown".to_owned(),
            };
            match &answer.finish {
                Finish::Failed(error) => format!("{}, {tokens}", failed(error)),
                finish => format!("{:?} {finish:?}, {tokens}", answer.text),
            }
        }
        Err(error) => failed(&error),
    }
}

#[test]
fn each_quirk_has_its_outcome() {
    let table = ROWS.iter().map(|(name, kind, sent)| {
        let outcome = outcome(*kind, sent);
        format!("{name}: {outcome}\n")
    });
    insta::assert_snapshot!(table.collect::<String>());
}

#[rustfmt::skip]
const ROWS: [(&str, ModelKind, Sent); 73] = [
    ("finish stop", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("finish STOP", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"STOP"}]}

data: [DONE]

"##)),
    ("finish Stop", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"Stop"}]}

data: [DONE]

"##)),
    ("finish eos", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"eos"}]}

data: [DONE]

"##)),
    ("finish EOS_TOKEN", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"EOS_TOKEN"}]}

data: [DONE]

"##)),
    ("finish end_turn", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"end_turn"}]}

data: [DONE]

"##)),
    ("finish COMPLETE", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"COMPLETE"}]}

data: [DONE]

"##)),
    ("finish stop_sequence", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop_sequence"}]}

data: [DONE]

"##)),
    ("finish length", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"length"}]}

data: [DONE]

"##)),
    ("finish LENGTH", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"LENGTH"}]}

data: [DONE]

"##)),
    ("finish MAX_TOKENS", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"MAX_TOKENS"}]}

data: [DONE]

"##)),
    ("finish model_length", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"model_length"}]}

data: [DONE]

"##)),
    ("finish content_filter", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"content_filter"}]}

data: [DONE]

"##)),
    ("finish SAFETY", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"SAFETY"}]}

data: [DONE]

"##)),
    ("finish RECITATION", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"RECITATION"}]}

data: [DONE]

"##)),
    ("finish insufficient_system_resource", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"insufficient_system_resource"}]}

data: [DONE]

"##)),
    ("no finish, done", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"}}]}

data: [DONE]

"##)),
    ("no finish, cut", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"}}]}

"##)),
    ("finish null", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]}

data: {"choices":[{"delta":{},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("content parts", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":[{"type":"thinking","thinking":"Hm"},{"type":"text","text":"a"}]},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("content parts of strings", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":["a","b"]},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("content part output_text", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":[{"type":"output_text","text":"a"}]},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("content part image", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":[{"type":"image_url","image_url":{"url":"x"}},{"text":"a"}]},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("content null", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":null,"reasoning_content":"Hm"}}]}

data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("content number", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":3}}]}

data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("refusal", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"refusal":"I can"}}]}

data: {"choices":[{"delta":{"refusal":"not."},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("refusal null", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"refusal":null,"content":"a"},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("refusal after text", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"}}]}

data: {"choices":[{"delta":{"refusal":"No."},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("tool call", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"shell","arguments":""}}]}}]}

data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

"##)),
    ("tool call after text", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"}}]}

data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"shell"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

"##)),
    ("function call", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"function_call":{"name":"edit"}},"finish_reason":"function_call"}]}

data: [DONE]

"##)),
    ("usage", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}

data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}

data: [DONE]

"##)),
    ("usage in every chunk", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}

data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}

data: [DONE]

"##)),
    ("usage null", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":null}

data: [DONE]

"##)),
    ("usage zero", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":0,"completion_tokens":0}}

data: [DONE]

"##)),
    ("usage output only", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"completion_tokens":2}}

data: [DONE]

"##)),
    ("error in stream", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"}}]}

data: {"error":{"message":"overloaded"}}

data: [DONE]

"##)),
    ("error event text", ModelKind::Openai, Sent::Stream(r##"data: {"error":"out of memory"}

data: [DONE]

"##)),
    ("junk line", ModelKind::Openai, Sent::Stream(r##"data: nonsense

data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("ping", ModelKind::Openai, Sent::Stream(r##"data: : ping

data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("damaged event", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"}}]}

data: {"choices":[{"delta":{"content":"b"}}

data: {"choices":[{"delta":{"content":"c"},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("half a character", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a\ud83d"}}]}

data: {"choices":[{"delta":{"content":"\ude00"},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("damaged event after the end", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}

data: {"choices":[],"usage":{"prompt_tok"##)),
    ("empty choices", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[]}

data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("nothing", ModelKind::Openai, Sent::Stream("")),
    ("empty text", ModelKind::Openai, Sent::Stream(r##"data: {"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}

data: [DONE]

"##)),
    ("whole", ModelKind::Openai, Sent::Whole("200 OK", r##"{"model":"m","choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}"##)),
    ("whole, parts", ModelKind::Openai, Sent::Whole("200 OK", r##"{"choices":[{"message":{"content":[{"type":"text","text":"a"}]},"finish_reason":"stop"}]}"##)),
    ("whole, refusal", ModelKind::Openai, Sent::Whole("200 OK", r##"{"choices":[{"message":{"content":null,"refusal":"No."},"finish_reason":"stop"}]}"##)),
    ("whole, no finish", ModelKind::Openai, Sent::Whole("200 OK", r##"{"choices":[{"message":{"content":"a"}}]}"##)),
    ("html", ModelKind::Openai, Sent::Whole("200 OK", "<html>")),
    ("error with 200", ModelKind::Openai, Sent::Whole("200 OK", r##"{"error":{"message":"quota"}}"##)),
    ("chat model error", ModelKind::Openai, Sent::Whole("404 Not Found", r##"{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions."}}"##)),
    ("responses", ModelKind::Responses, Sent::Stream(r##"data: {"type":"response.output_text.delta","delta":"a"}

data: {"type":"response.completed","response":{"model":"m","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":2}}}

"##)),
    ("responses, text at the end", ModelKind::Responses, Sent::Stream(r##"data: {"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}}

"##)),
    ("responses, incomplete", ModelKind::Responses, Sent::Stream(r##"data: {"type":"response.output_text.delta","delta":"a"}

data: {"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}

"##)),
    ("responses, incomplete without a reason", ModelKind::Responses, Sent::Stream(r##"data: {"type":"response.output_text.delta","delta":"a"}

data: {"type":"response.incomplete","response":{}}

"##)),
    ("responses, whole, cancelled", ModelKind::Responses, Sent::Whole("200 OK", r##"{"status":"cancelled","incomplete_details":null,"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}"##)),
    ("responses, damaged event", ModelKind::Responses, Sent::Stream(r##"data: {"type":"response.output_text.delta","delta":"a"

data: {"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":2}}}

"##)),
    ("responses, filtered", ModelKind::Responses, Sent::Stream(r##"data: {"type":"response.output_text.delta","delta":"a"}

data: {"type":"response.incomplete","response":{"incomplete_details":{"reason":"content_filter"}}}

"##)),
    ("responses, refusal", ModelKind::Responses, Sent::Stream(r##"data: {"type":"response.refusal.delta","delta":"No."}

data: {"type":"response.completed","response":{"model":"m","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":2}}}

"##)),
    ("responses, tool", ModelKind::Responses, Sent::Stream(r##"data: {"type":"response.output_item.added","item":{"type":"function_call","name":"shell"}}

data: {"type":"response.completed","response":{"model":"m","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":2}}}

"##)),
    ("responses, failed", ModelKind::Responses, Sent::Stream(r##"data: {"type":"response.failed","response":{"error":{"message":"overloaded"}}}

"##)),
    ("responses, error", ModelKind::Responses, Sent::Stream(r##"data: {"type":"error","message":"too long"}

"##)),
    ("responses, cut", ModelKind::Responses, Sent::Stream(r##"data: {"type":"response.output_text.delta","delta":"a"}

"##)),
    ("responses, whole", ModelKind::Responses, Sent::Whole("200 OK", r##"{"status":"completed","model":"m","output":[{"type":"reasoning","content":[{"text":"Hm"}]},{"type":"message","content":[{"type":"output_text","text":"a"}]}],"usage":{"input_tokens":9,"output_tokens":2}}"##)),
    ("messages, end_turn", ModelKind::Anthropic, Sent::Stream(r##"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":9}}}

data: {"type":"content_block_delta","delta":{"text":"a"}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}

data: {"type":"message_stop"}

"##)),
    ("messages, END_TURN", ModelKind::Anthropic, Sent::Stream(r##"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":9}}}

data: {"type":"content_block_delta","delta":{"text":"a"}}

data: {"type":"message_delta","delta":{"stop_reason":"END_TURN"},"usage":{"output_tokens":2}}

data: {"type":"message_stop"}

"##)),
    ("messages, max_tokens", ModelKind::Anthropic, Sent::Stream(r##"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":9}}}

data: {"type":"content_block_delta","delta":{"text":"a"}}

data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":2}}

data: {"type":"message_stop"}

"##)),
    ("messages, refusal", ModelKind::Anthropic, Sent::Stream(r##"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":9}}}

data: {"type":"content_block_delta","delta":{"text":"a"}}

data: {"type":"message_delta","delta":{"stop_reason":"refusal"},"usage":{"output_tokens":2}}

data: {"type":"message_stop"}

"##)),
    ("messages, pause_turn", ModelKind::Anthropic, Sent::Stream(r##"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":9}}}

data: {"type":"content_block_delta","delta":{"text":"a"}}

data: {"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":2}}

data: {"type":"message_stop"}

"##)),
    ("messages, broken", ModelKind::Anthropic, Sent::Stream(r##"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":9}}}

data: {"type":"content_block_delta","delta":{"text":"a"}}

"##)),
    ("messages, tool", ModelKind::Anthropic, Sent::Stream(r##"data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":9}}}

data: {"type":"content_block_start","content_block":{"type":"tool_use","name":"bash"}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}

data: {"type":"message_stop"}

"##)),
];
