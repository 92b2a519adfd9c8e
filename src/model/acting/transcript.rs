//! Renders `transcript.jsonl` as Markdown for people to read (`transcript.md`).
//!
//! A transcript is untrusted. Everything the agent said is put into code spans and fenced blocks,
//! so that none of it is interpreted as Markdown. Control characters are made visible, and the size
//! of the result is bounded.

mod body;

use std::fmt::Write as _;

use serde_json::Value;

use super::label::sanitize_label;
use crate::model::TokenUsage;
use body::TranscriptBody;

/// Bytes to read of a transcript.
const MAX_READ: usize = 64 << 20;

/// Metadata from the first and last lines.
#[derive(Debug, Default)]
struct Head {
    program: String,
    agent: String,
    conversation: String,
    resumed: bool,
    tokens: Option<TokenUsage>,
    cost: Option<f64>,
    error: String,
    /// Start and end.
    times: [String; 2],
}

/// Renders a transcript. Skips invalid lines.
pub fn render_transcript(jsonl: &[u8]) -> String {
    let jsonl = &jsonl[..jsonl.len().min(MAX_READ)];
    let (mut head, mut body) = (Head::default(), TranscriptBody::default());
    for line in jsonl.split(|byte| *byte == b'\n') {
        if let Ok(line) = serde_json::from_slice::<Value>(line) {
            head.take(&line);
            body.take(&line);
        }
    }

    head.write() + &body.finish()
}

impl Head {
    fn take(&mut self, line: &Value) {
        let time = span(string(line, "/time"));
        if self.times[0].is_empty() {
            self.times[0].clone_from(&time);
        }
        self.times[1] = time;

        let is_ours = string(line, "/from") == "teddy";
        if is_ours && line.get("start").is_some() {
            self.program = span(string(line, "/start/run/0"));
        }
        if let Some(end) = line.get("end").filter(|_| is_ours) {
            let agent = [string(end, "/agent/0"), string(end, "/agent/1")];
            self.agent = span(agent.join(" ").trim());
            self.conversation = span(string(end, "/conversation"));
            self.resumed = end.get("resumed").and_then(Value::as_bool) == Some(true);
            self.tokens = end
                .get("tokens")
                .and_then(|tokens| serde_json::from_value(tokens.clone()).ok());
            self.cost = end.get("cost").and_then(Value::as_f64);
            self.error = span(string(end, "/error"));
        }
    }

    fn write(&self) -> String {
        let resumed = if self.resumed { ", resumed" } else { "" };
        let tokens = self.tokens.map(|tokens| {
            let TokenUsage {
                input,
                output,
                cached,
                ..
            } = tokens;
            format!("{input} sent ({cached} from a cache), {output} written")
        });
        let facts = [
            ("Agent", self.agent.clone()),
            ("Program", self.program.clone()),
            ("Conversation", with(&self.conversation, resumed)),
            ("Began", self.times[0].clone()),
            ("Ended", self.times[1].clone()),
            ("Tokens", tokens.unwrap_or_default()),
            (
                "Cost",
                self.cost
                    .map(|cost| format!("${cost:.4}"))
                    .unwrap_or_default(),
            ),
            ("Failed", self.error.clone()),
        ];

        let mut text = "# Transcript\n\n".to_owned();
        for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
            writeln!(text, "- {name}: {fact}").expect("writing to a string cannot fail");
        }
        text
    }
}

/// Appends a suffix, but not to an empty text.
fn with(text: &str, suffix: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("{text}{suffix}"),
    }
}

/// Formats a text as a code span on one line. Empty for an empty text.
fn span(text: &str) -> String {
    // A backtick would end the code span.
    match sanitize_label(text).replace('`', "'") {
        text if text.is_empty() => text,
        text => format!("`{text}`"),
    }
}

/// Returns the string at a JSON pointer, or an empty one.
fn string<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(lines: &[&str]) -> String {
        let lines: Vec<String> = lines
            .iter()
            .map(|line| format!("{{\"time\":\"2026-11-23T12:00:00Z\",{line}}}\n"))
            .collect();
        render_transcript(lines.concat().as_bytes())
    }

    /// Compares the part below the metadata.
    #[track_caller]
    fn check(lines: &[&str], expected: &str) {
        let text = rendered(lines);
        let (_, body) = text.split_once("\n## Course\n\n").unwrap();
        assert_eq!(body, expected);
    }

    fn update(fields: &str) -> String {
        format!(
            r#""from":"agent","message":{{"method":"session/update","params":{{"update":{{{fields}}}}}}}"#
        )
    }

    fn piece(text: &str) -> String {
        let text = Value::from(text);
        update(&format!(
            r#""sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":{text}}}"#
        ))
    }

    #[test]
    fn tr6_the_head_tells_who_and_how_much() {
        let text = rendered(&[
            r#""from":"teddy","start":{"run":["claude-agent-acp"],"confined":true}"#,
            r#""from":"teddy","end":{"agent":["claude","1.2"],"conversation":"s-1","resumed":true,"tokens":{"input":100,"output":20,"cached":5,"cache_written":0},"cost":0.25,"error":null}"#,
        ]);
        assert_eq!(
            text.trim_end(),
            "# Transcript\n\n- Agent: `claude 1.2`\n- Program: `claude-agent-acp`\n- Conversation: `s-1`, resumed\n\
             - Began: `2026-11-23T12:00:00Z`\n- Ended: `2026-11-23T12:00:00Z`\n\
             - Tokens: 100 sent (5 from a cache), 20 written\n- Cost: $0.2500"
        );
    }

    #[test]
    fn tr7_messages_tools_and_answers_stand_in_their_order() {
        let tool = update(
            r#""sessionUpdate":"tool_call","toolCallId":"1","title":"Edit `a`","kind":"edit","status":"pending""#,
        );
        let ended =
            update(r#""sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed""#);
        check(
            &[
                &piece("I "),
                &piece("will."),
                &tool,
                r#""from":"teddy","permission":{"title":"Edit a","kind":"edit","decision":"once","by":"person"}"#,
                &ended,
                &piece("Done."),
                r#""from":"teddy","note":"a new one begins""#,
            ],
            "```text\nI will.\n```\n\n- asked for `Edit a` (`edit`): once, by the person\n\
             - `Edit 'a'` (`edit`): completed\n\n```text\nDone.\n```\n\n- note: `a new one begins`\n",
        );
    }

    #[test]
    fn a_tool_that_never_ended_is_named() {
        let tool = update(
            r#""sessionUpdate":"tool_call","toolCallId":"1","title":"Build","status":"in_progress""#,
        );
        check(&[&tool], "- `Build`: not finished\n");
    }

    #[test]
    fn the_last_plan_stands_at_the_end() {
        let plan = |status: &str| {
            update(&format!(
                r#""sessionUpdate":"plan","entries":[{{"content":"One","status":"{status}"}}]"#
            ))
        };
        check(
            &[&plan("pending"), &piece("a"), &plan("completed")],
            "```text\na\n```\n\n## Plan\n\n- `One`: `completed`\n",
        );
    }

    #[test]
    fn a_command_is_rendered_by_its_text_or_by_its_last_message() {
        let end = r#""from":"teddy","end":{"message":"All done."}"#;
        check(
            &[
                r#""from":"agent","text":"one""#,
                r#""from":"agent","text":"two""#,
                end,
            ],
            "```text\none\ntwo\n```\n",
        );
        check(
            &[
                r#""from":"agent","message":{"type":"x"}"#,
                r#""from":"agent","message":{"type":"y"}"#,
                end,
            ],
            "- 2 lines of JSON\n\n```text\nAll done.\n```\n",
        );
    }

    #[test]
    fn tr8_what_an_agent_says_is_no_markdown_and_is_visible() {
        check(
            &[&piece("```\n# Heading\n<img src=x>\u{202e}\u{1b}[2J\n")],
            "````text\n```\n# Heading\n<img src=x>\\u{202e}\\u{1b}[2J\n````\n",
        );
        let text = rendered(&[r#""from":"teddy","note":"a`\n# b""#]);
        assert!(text.ends_with("- note: `a'\\u{a}# b`\n"), "{text}");
    }

    #[test]
    fn tr9_the_rendering_is_bounded() {
        let long = piece(&"x".repeat(100_000));
        let lines: Vec<&str> = std::iter::repeat_n(long.as_str(), 50).collect();
        assert!(rendered(&lines).len() < 100_000);
        let note = r#""from":"teddy","note":"n""#;
        let notes: Vec<&str> = std::iter::repeat_n(note, 200_000).collect();
        let text = rendered(&notes);
        assert!(text.len() < 2 << 20 && text.ends_with("The rest is in `transcript.jsonl`.\n"));
    }

    #[test]
    fn anything_at_all_can_be_rendered() {
        for junk in [
            &b""[..],
            b"\xff\n{\n[]\n3\n{}",
            b"{\"from\":\"teddy\",\"end\":3}",
        ] {
            assert!(render_transcript(junk).starts_with("# Transcript\n"));
        }
    }
}
