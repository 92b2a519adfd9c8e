//! Renders a summary as Markdown for a pull request.
//!
//! Untrusted text is only placed in code spans and fences that it cannot close. No forge interprets
//! mentions, issue links, images or HTML there.

use std::fmt::Write as _;

use super::{CommandRun, DecisionKind, DifferingFile, SessionSummary, TurnInShort, UserDecision};
use crate::text::counted;
use crate::text::fence::{fence_for, longest_run};
use crate::text::sanitize::{excerpt, sanitize_block, sanitize_line};
use crate::workspace::file_move::PathChange;

/// In characters. Forges accept comments of 65,536.
pub const MAX_CHARACTERS: usize = 60_000;
const MAX_LINE: usize = 160;
const MAX_REQUEST: (usize, usize) = (20, 400);
const MAX_FILES: usize = 30;
const MAX_TURNS: usize = 20;
const MAX_RUNS: usize = 10;
const MAX_DECISIONS: usize = 10;

pub fn render(summary: &SessionSummary) -> String {
    let mut text = format!("### Session {}\n", code(&summary.session));
    if let Some(first) = summary.requests.first() {
        text.push_str(&block(&first.text));
        let more = summary.requests.len() - 1;
        if more > 0 {
            writeln!(text, "\nand {}.", counted(more, "more request")).expect("a string");
        }
    }

    writeln!(text, "\n{}", facts(summary)).expect("a string");
    text.push_str(&files(&summary.files));
    text.push_str(&turns(&summary.turns));
    text.push_str(&runs(&summary.runs));
    text.push_str(&decisions(&summary.decisions));
    if let Some(question) = &summary.question {
        text.push_str("\n**Waits for an answer**\n");
        text.push_str(&block(question));
    }

    debug_assert!(text.chars().count() < MAX_CHARACTERS);
    text
}

fn facts(summary: &SessionSummary) -> String {
    let mut facts = vec![counted(summary.turns.len(), "turn")];
    let models: Vec<String> = summary
        .models
        .iter()
        .take(5)
        .map(|name| code(name))
        .collect();
    if !models.is_empty() {
        facts.push(models.join(", "));
    }

    if let (Some(read), Some(written)) = (summary.tokens_in, summary.tokens_out) {
        facts.push(format!("{} in, {written} out", counted(read, "token")));
    }
    facts.extend(summary.cost.map(|cost| format!("${cost:.2}")));
    facts.push(format!("commit {}", code(&summary.tip.to_string()[..12])));
    facts.join(" · ")
}

fn files(files: &[DifferingFile]) -> String {
    let sum = |part: fn(&DifferingFile) -> Option<usize>| files.iter().filter_map(part).sum();
    let (added, removed): (usize, usize) = (sum(|file| file.added), sum(|file| file.removed));
    let title = format!("{} (+{added} −{removed})", counted(files.len(), "file"));
    let line = |file: &DifferingFile| {
        let lines = match (file.added, file.removed) {
            (Some(added), Some(removed)) => format!("+{added} −{removed}"),
            _ => "binary".to_owned(),
        };
        let change = match file.change {
            PathChange::Modified => "",
            PathChange::Added => ", added",
            PathChange::Deleted => ", deleted",
        };
        format!("- {} {lines}{change}\n", code(&file.path))
    };
    list(&title, files.iter().map(line), MAX_FILES, files.len())
}

fn turns(turns: &[TurnInShort]) -> String {
    let earlier = turns.len().saturating_sub(MAX_TURNS);
    let mut text = String::new();
    if earlier > 0 {
        writeln!(text, "- {}", counted(earlier, "earlier turn")).expect("a string");
    }
    for turn in &turns[earlier..] {
        let (number, status) = (turn.number, turn.status.word());
        writeln!(text, "- {number}: {} {status}", code(&turn.title)).expect("a string");
    }

    match turns.is_empty() {
        true => text,
        false => format!("\n**Turns**\n\n{text}"),
    }
}

fn runs(runs: &[CommandRun]) -> String {
    let mut last: Vec<(&CommandRun, usize)> = Vec::new();
    for run in runs {
        match last
            .iter_mut()
            .find(|(other, _)| other.command == run.command)
        {
            Some(other) => *other = (run, other.1 + 1),
            None => last.push((run, 1)),
        }
    }

    let line = |(run, times): &(&CommandRun, usize)| {
        let mark = if run.exit_code == 0 { "✅" } else { "❌" };
        let often = match times {
            1 => String::new(),
            times => format!(", the last of {times} runs"),
        };
        let (command, code_, turn) = (code(&run.command), run.exit_code, run.turn);
        format!("- {mark} {command} exit code {code_} (turn {turn}{often})\n")
    };
    list("Commands", last.iter().map(line), MAX_RUNS, last.len())
}

fn decisions(decisions: &[UserDecision]) -> String {
    let line = |one: &UserDecision| {
        let (turn, about) = (one.turn, code(&one.about));
        let detail = match one.said.is_empty() {
            true => String::new(),
            false => format!(": {}", code(&one.said)),
        };
        let text = match one.kind {
            DecisionKind::Answered => format!("answered {about}{detail}"),
            DecisionKind::Declined => format!("declined {about}{detail}"),
            DecisionKind::Commented => format!("commented on {about}{detail}"),
            DecisionKind::Changed => format!("changed {about} in the review"),
            DecisionKind::LeftOut => format!("left out {} in the review", one.about),
        };
        format!("- turn {turn}: {text}\n")
    };
    let lines = decisions.iter().map(line);
    list("Decisions", lines, MAX_DECISIONS, decisions.len())
}

fn list(title: &str, lines: impl Iterator<Item = String>, most: usize, count: usize) -> String {
    if count == 0 {
        return String::new();
    }
    let mut text = format!("\n**{title}**\n\n");
    lines.take(most).for_each(|line| text.push_str(&line));
    if count > most {
        writeln!(text, "- and {} more", count - most).expect("a string");
    }
    text
}

fn code(text: &str) -> String {
    let tokens: Vec<&str> = text.split_whitespace().collect();
    let text = tokens.join(" ");
    let text = sanitize_line(&text);
    let line = excerpt(&text, MAX_LINE);
    if line.is_empty() {
        return "(nothing)".to_owned();
    }

    let longest = longest_run(&line, '`');
    let ticks = "`".repeat(longest + 1);
    match longest {
        0 => format!("{ticks}{line}{ticks}"),
        _ => format!("{ticks} {line} {ticks}"),
    }
}

/// The text cannot close the fence.
fn block(text: &str) -> String {
    let (most, width) = MAX_REQUEST;
    let visible_text = sanitize_block(text);
    let lines: Vec<_> = visible_text
        .lines()
        .map(|line| excerpt(line, width))
        .collect();
    let mut body = lines[..lines.len().min(most)].join("\n");
    if lines.len() > most {
        body.push_str("\n…");
    }

    let fence = fence_for(&body, 3);
    format!("\n{fence}text\n{body}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::session::meta::Status;

    /// Text that would ping, link, show an image or escape from a span.
    const HOSTILE: &str =
        "@team #12 GH-3 </details><img src=x> [a](http://b) ``` ~~~ | **x** \u{202e}";

    /// A summary with `count` entries of each kind, all hostile.
    fn summary(count: usize) -> SessionSummary {
        let text = |number: usize| format!("{number} {}", HOSTILE.repeat(40));
        let many = 0..count;
        SessionSummary {
            schema: 1,
            session: "demo".to_owned(),
            tip: "1465b844761618fe5910618bbc86deda6df5f057".parse().unwrap(),
            requests: vec![super::super::AskedRequest {
                turn: 1,
                text: format!("{}\n", text(0)).repeat(200),
            }],
            files: many
                .clone()
                .map(|number| DifferingFile {
                    path: text(number),
                    change: PathChange::Modified,
                    added: Some(1),
                    removed: Some(2),
                })
                .collect(),
            turns: many
                .clone()
                .map(|number| TurnInShort {
                    number: number as u64 + 1,
                    commit: "1465b844761618fe5910618bbc86deda6df5f057".parse().unwrap(),
                    status: Status::Executed,
                    title: text(number),
                    agent: text(number),
                    model: None,
                    cost: None,
                })
                .collect(),
            runs: many
                .clone()
                .map(|number| CommandRun {
                    turn: 1,
                    about: text(number),
                    command: text(number),
                    exit_code: 1,
                })
                .collect(),
            decisions: many
                .map(|number| UserDecision {
                    turn: 1,
                    kind: DecisionKind::Answered,
                    about: text(number),
                    said: text(number),
                })
                .collect(),
            question: Some(text(0).repeat(100)),
            conclusion: None,
            models: vec![text(0); count],
            tokens_in: Some(1),
            tokens_out: Some(1),
            cost: Some(0.5),
        }
    }

    #[test]
    fn ex4_a_summary_is_bounded_whatever_a_session_is() {
        for count in [0, 1, 200, 5000] {
            let text = render(&summary(count));
            let characters = text.chars().count();
            assert!(characters < MAX_CHARACTERS, "{count}: {characters}");
        }
        let text = render(&summary(200));
        assert!(text.contains("- 180 earlier turns\n") && text.contains("- and 170 more\n"));
    }

    fn strip_fences(text: &str) -> String {
        let (mut remaining, mut fence) = (String::new(), None::<String>);
        for line in text.lines() {
            let ticks: String = line.chars().take_while(|c| *c == '`').collect();
            let begins = line[ticks.len()..].starts_with("text") && ticks.len() > 2;
            match &fence {
                Some(open) if line == open => fence = None,
                Some(_) => {}
                None if begins => fence = Some(ticks),
                None => remaining.push_str(&format!("{}\n", without_spans(line))),
            }
        }
        remaining
    }

    /// Removes code spans as CommonMark parses them.
    fn without_spans(line: &str) -> String {
        let (mut output, mut tail) = (String::new(), line);
        while let Some(start) = tail.find('`') {
            output.push_str(&tail[..start]);
            let run = tail[start..].bytes().take_while(|b| *b == b'`').count();
            let mut at = start + run;
            let end = loop {
                let next = at + tail[at..].find('`').expect("a span ends on its line");
                let length = tail[next..].bytes().take_while(|b| *b == b'`').count();
                at = next + length;
                if length == run {
                    break at;
                }
            };
            tail = &tail[end..];
        }
        output + tail
    }

    #[test]
    fn ex3_what_others_wrote_cannot_leave_its_place() {
        let text = strip_fences(&render(&summary(3)));
        for sign in ["@", "#1", "<", "](", "http", "GH-", "~~~", "|", "\u{202e}"] {
            assert!(!text.contains(sign), "{sign}: {text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_one_code_span(text in "(`|\\\\|\n|\r|[a-z@#<|]| |\u{202e}){0,40}") {
            let span = code(&text);
            prop_assert!(!span.contains(['\n', '\r']));
            prop_assert!(span == "(nothing)" || without_spans(&span).is_empty(), "{span}");
        }
    }

    #[test]
    fn a_text_is_in_as_many_backticks_as_it_takes() {
        let check = |text: &str, expected: &str| assert_eq!(code(text), expected);
        check("a b", "`a b`");
        check("a\n\n b", "`a b`");
        check("`", "`` ` ``");
        check("a ``` b", "```` a ``` b ````");
        check("\u{202e}x", "`\\u{202e}x`");
        check(" \n", "(nothing)");
    }
}
