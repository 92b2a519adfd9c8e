//! Reads an agent's transcript for a turn: truncated, redacted, and named by its format.
//!
//! Finds the end of an interrupted prompt in the transcripts of Claude, Codex and Gemini, which
//! report no end then. The next prompt can be in the transcript already.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use crate::host::clock;
use crate::host::file::{FileEnd, Root, read_end};
use crate::text::counted;
use crate::text::secret::redact;

/// In bytes. The end of a longer transcript is kept.
pub const MAX_TRANSCRIPT: u64 = 2 << 20;
const LOOKED_AT: usize = 8;
/// In bytes. A line that is cut in half is left out if it ends within so many.
const MAX_PARTIAL: usize = 4 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    pub name: &'static str,
    pub text: String,
}

/// Refuses symlinks and special files.
pub fn read(path: &Path) -> anyhow::Result<Transcript> {
    let describe = || format!("cannot read the transcript `{}`", path.display());
    let name = path.file_name().with_context(describe)?;
    let dir = path.parent().unwrap_or(Path::new(""));
    let dir = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };

    let root = Root::open(dir)?;
    let end = read_end(&root, Path::new(name), 0, MAX_TRANSCRIPT)?;
    Ok(transcript(&name.to_string_lossy(), end))
}

/// If the content does not determine the format, the file name does.
pub fn transcript(name: &str, end: FileEnd) -> Transcript {
    let FileEnd {
        bytes,
        mut left_out,
    } = end;
    let start = if left_out > 0 { whole_from(&bytes) } else { 0 };
    left_out += start as u64;
    let text = String::from_utf8_lossy(&bytes[start..]);
    let text = text.as_ref();

    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_markdown = ["md", "markdown"].contains(&ending.to_ascii_lowercase().as_str());
    let (name, mark) = if is_json_lines(text) {
        ("transcript.jsonl", format!("{{\"left_out\":{left_out}}}\n"))
    } else if is_markdown {
        (
            "transcript.md",
            format!("*({} left out)*\n\n", counted(left_out, "byte")),
        )
    } else {
        (
            "transcript.txt",
            format!("({} left out)\n", counted(left_out, "byte")),
        )
    };

    let mark = if left_out > 0 { mark } else { String::new() };
    Transcript {
        name,
        text: mark + &redact(text),
    }
}

/// Returns the start of what is not cut in half: of a line, or in a long line of a word. A part of a
/// word could be a part of a key.
fn whole_from(bytes: &[u8]) -> usize {
    let line = memchr::memchr(b'\n', bytes).map(|at| at + 1);
    let tail = line.map(|start| String::from_utf8_lossy(&bytes[start..]));
    if let Some(start) = line
        && (start <= MAX_PARTIAL || tail.is_some_and(|tail| is_json_lines(&tail)))
    {
        return start;
    }

    let near = &bytes[..bytes.len().min(MAX_PARTIAL)];
    let space = near.iter().position(u8::is_ascii_whitespace);
    let is_inside = |byte: &&u8| **byte & 0xc0 == 0x80;
    space.map_or_else(
        || bytes.iter().take(3).take_while(is_inside).count(),
        |at| at + 1,
    )
}

fn is_json_lines(text: &str) -> bool {
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(LOOKED_AT)
        .peekable();
    let is_object = |line: &str| {
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line).is_ok()
    };
    lines.peek().is_some() && lines.all(is_object)
}

/// When the work on a prompt ended, in nanoseconds since 1970. `None` if no entry has a time.
pub fn last_time(transcript: &str, prompt: &str, next_prompt: &str) -> Option<i64> {
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

    #[track_caller]
    fn check(file: &str, bytes: &[u8], left_out: u64, expected: (&str, &str)) {
        let end = FileEnd {
            bytes: bytes.to_vec(),
            left_out,
        };
        let actual = transcript(file, end);
        assert_eq!((actual.name, actual.text.as_str()), expected);
    }

    #[test]
    fn a_transcript_is_named_by_what_it_is() {
        let lines = "{\"a\":1}\n\n{}\n";
        check("a.md", lines.as_bytes(), 0, ("transcript.jsonl", lines));
        check("a.jsonl", b"{\"a\n", 0, ("transcript.txt", "{\"a\n"));
        check("A.MD", b"# Hello\n", 0, ("transcript.md", "# Hello\n"));
        check("a", b"", 0, ("transcript.txt", ""));
        check("a", b"\xff\n", 0, ("transcript.txt", "\u{fffd}\n"));
    }

    #[test]
    fn what_is_left_out_is_said() {
        let cut = b"1}\n{\"b\":2}\n";
        let expected = "{\"left_out\":12}\n{\"b\":2}\n";
        check("a", cut, 9, ("transcript.jsonl", expected));
        check(
            "a.md",
            b"x\ny",
            9,
            ("transcript.md", "*(11 bytes left out)*\n\ny"),
        );
        let expected = ("transcript.txt", "(11 bytes left out)\ny");
        check("a", b"x\ny", 9, expected);
    }

    /// Bug: all of a long line was left out, and not counted.
    #[test]
    fn the_end_of_a_long_line_is_kept() {
        let long = "word ".repeat(MAX_PARTIAL);
        let expected = format!("(14 bytes left out)\n{long}\nend");
        let cut = format!("half {long}\nend");
        check("a", cut.as_bytes(), 9, ("transcript.txt", &expected));

        let long = "\u{e4}".repeat(MAX_PARTIAL);
        let expected = format!("(10 bytes left out)\n{long}");
        let cut = [b"\xa4", long.as_bytes()].concat();
        check("a", &cut, 9, ("transcript.txt", &expected));

        let cut = format!("{long}\n{{}}\n");
        let expected = format!("{{\"left_out\":{}}}\n{{}}\n", 9 + long.len() + 1);
        check("a", cut.as_bytes(), 9, ("transcript.jsonl", &expected));
    }

    #[test]
    fn keys_are_taken_out() {
        let key = format!("sk-ant-{}", "aB3dE5gH7j".repeat(4));
        let actual = transcript(
            "a",
            FileEnd {
                bytes: format!("{{\"k\":\"{key}\"}}\n").into_bytes(),
                left_out: 0,
            },
        );
        assert!(!actual.text.contains(&key), "{}", actual.text);
    }

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
