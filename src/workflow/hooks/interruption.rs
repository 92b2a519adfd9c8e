//! Finds the end of an interrupted prompt in the transcripts of Claude, Codex and Gemini.
//!
//! The agents report no end then. The next prompt can be in the transcript already.

use serde_json::Value;

use crate::host::clock;

/// When the work on a prompt ended, in nanoseconds since 1970. `None` if no entry has a time.
pub(super) fn last_time(transcript: &str, prompt: &str, next_prompt: &str) -> Option<i64> {
    let entries = entries_of(transcript, prompt);
    let entries = entries.iter().filter(|entry| {
        // Codex begins the next prompt with lines that do not contain it.
        let begins = entry["type"] == "turn_context" || entry["payload"]["type"] == "task_started";
        !begins && !has_text(entry, next_prompt)
    });
    let entries: Vec<&Value> = entries.collect();
    let interruption = entries.iter().rev().find(|entry| is_interruption(entry));
    let last = || entries.iter().rev().find_map(|entry| time_of(entry));
    interruption.and_then(|entry| time_of(entry)).or_else(last)
}

/// Entries of a transcript since a prompt. Gemini writes one document with all prompts, the others one
/// line for each entry.
fn entries_of(transcript: &str, prompt: &str) -> Vec<Value> {
    let document = serde_json::from_str::<Value>(transcript).ok();
    let Some(Value::Array(mut messages)) = document.map(|mut it| it["messages"].take()) else {
        let lines = transcript.lines();
        return lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
    };
    let starts = messages.iter().rposition(|entry| has_text(entry, prompt));
    starts.map_or_else(Vec::new, |start| messages.split_off(start + 1))
}

fn is_interruption(entry: &Value) -> bool {
    let claude = ["", " for tool use"].map(|why| format!("[Request interrupted by user{why}]"));
    entry["payload"]["type"] == "turn_aborted"
        || (entry["type"] == "info" && has_text(entry, "Request cancelled."))
        || claude.iter().any(|text| has_text(entry, text))
}

/// Of an entry or of the last tool in it, in nanoseconds since 1970.
fn time_of(entry: &Value) -> Option<i64> {
    let tools = entry["toolCalls"].as_array().into_iter().flatten();
    let times = tools.chain([entry]).filter_map(|it| {
        let time = clock::parse(it["timestamp"].as_str()?)?;
        i64::try_from(time.timestamp().as_nanosecond()).ok()
    });
    times.max()
}

fn has_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string == text && !text.is_empty(),
        Value::Array(values) => values.iter().any(|value| has_text(value, text)),
        Value::Object(values) => values.values().any(|value| has_text(value, text)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn work_ends_with_the_last_line_before_the_next_prompt() {
        let check = |lines: &str, seconds: Option<i64>| {
            let expected = seconds.map(|seconds| seconds * SECOND);
            assert_eq!(last_time(lines, "begin", "continue"), expected, "{lines}");
        };
        let line = |time: u32, text: &str| {
            format!(
                "{{\"timestamp\":\"1970-01-01T00:00:{time:02}Z\",\"message\":{{\"content\":[{{\"text\":\"{text}\"}}]}}}}\n"
            )
        };
        let interrupted = line(5, "[Request interrupted by user]");
        check(&(line(1, "x") + &interrupted), Some(5));
        check(&(interrupted + &line(9, "continue")), Some(5));
        check(&line(9, "continue"), None);
        check("{}\n{\n\nx", None);

        let codex = |time: u32, payload: &str| {
            format!("{{\"timestamp\":\"1970-01-01T00:00:{time:02}Z\",\"payload\":{payload}}}\n")
        };
        let aborted = codex(3, r#"{"type":"turn_aborted","reason":"interrupted"}"#);
        let started = codex(9, r#"{"type":"task_started"}"#);
        check(&(codex(1, "{}") + &started), Some(1));
        check(
            &(codex(1, "{}") + &aborted + &codex(8, "{}") + &started),
            Some(3),
        );

        let gemini = |messages: &str| format!("{{\n  \"messages\": [{messages}]\n}}");
        let message = |time: u32, kind: &str, text: &str| {
            format!(
                r#"{{"timestamp":"1970-01-01T00:00:{time:02}Z","type":"{kind}","content":"{text}",
                "toolCalls":[{{"timestamp":"1970-01-01T00:00:0{}Z"}}]}},"#,
                time + 1
            )
        };
        let begin = message(1, "info", "Request cancelled.") + &message(2, "user", "begin");
        let next = message(8, "user", "continue")
            .trim_end_matches(',')
            .to_owned();
        let cancelled = message(5, "info", "Request cancelled.");
        check(&gemini(&(begin.clone() + &next)), None);
        check(
            &gemini(&(begin.clone() + &message(4, "gemini", "x") + &next)),
            Some(5),
        );
        check(
            &gemini(&(begin + &cancelled + &message(7, "gemini", "x") + &next)),
            Some(6),
        );
    }
}
