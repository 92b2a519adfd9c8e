//! Reads the answer to a question: plain Markdown, or a plan that only reads and reports.

use super::{Reading, mark, read};
use crate::plan::action::{Action, conclude};
use crate::plan::diagnostic::Diagnostic;
use crate::plan::render::render;
use crate::plan::{Field, Plan};
use crate::text::fence::fence_for;

/// Longest title, in characters.
const MAX_TITLE: usize = 60;
/// Shortest fence around an answer.
const MIN_FENCE: usize = 4;
const RATIONALE: &str = "The answer to a question. Nothing is changed.";

/// Reads the reply to a question. Plain Markdown becomes a plan with that message. In a plan, every
/// action that does more than read and report is a mistake. So is a memo: it would change a file of
/// the project and be part of every later input.
pub fn read_answer(reply: &str, question: &str) -> Reading {
    let mut reading = read(reply);
    let reply = &reply[mark::inner(reply)];
    if !reading.is_plan {
        reading = as_plan(reply, question);
    }

    let forbidden = reading
        .plan
        .actions
        .iter()
        .filter(|action| !action.kind.is_informational());
    let mistakes: Vec<Diagnostic> = forbidden.map(mistake).collect();
    reading.diagnostics.extend(mistakes);
    if let Some(memo) = reading.plan.memos.first() {
        let message = "a memo is not part of an answer";
        let wrong = Diagnostic::new(memo.line, message).hint("leave out `## Memos`");
        reading.diagnostics.push(wrong);
    }
    reading
}

fn mistake(action: &Action) -> Diagnostic {
    let message = format!("{} is not part of an answer", action.kind.name());
    let hint = "answer in plain Markdown, or READ files of the project first";
    Diagnostic {
        action: action.kind.name().to_owned(),
        ..Diagnostic::new(action.line, message).hint(hint)
    }
}

/// Returns Markdown as a plan with that message. If its code blocks are so broken that parts would
/// be read as actions, the message becomes a code block.
fn as_plan(reply: &str, question: &str) -> Reading {
    let answer = reply.trim();
    if answer.is_empty() {
        return read(reply);
    }

    let reading = plan_with_answer(answer, question);
    if reading.diagnostics.is_empty() && reading.plan.actions.len() == 1 {
        return reading;
    }
    let fence = fence_for(answer, MIN_FENCE);
    plan_with_answer(&format!("{fence}text\n{answer}\n{fence}"), question)
}

fn plan_with_answer(answer: &str, question: &str) -> Reading {
    let plan = Plan {
        title: title(question),
        fields: vec![Field::new("Status", "Green 🟢")],
        rationale: RATIONALE.to_owned(),
        actions: vec![Action {
            line: 0,
            fields: Vec::new(),
            kind: conclude::with_message(answer),
        }],
        ..Plan::default()
    };
    read(&render(&plan))
}

fn title(question: &str) -> String {
    let line = question.trim().lines().next().unwrap_or_default().trim();
    let line = line.trim_start_matches('#').trim_start();
    match line.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{}...", line[..end].trim_end()),
        None if line.is_empty() => "Answer".to_owned(),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reply: &str, expected: &str) {
        let reading = read_answer(reply, "Why?\nReally?");
        let messages: Vec<&str> = reading
            .plan
            .actions
            .iter()
            .filter_map(|action| action.kind.message())
            .collect();
        let wrong: Vec<&str> = reading
            .diagnostics
            .iter()
            .map(|wrong| wrong.message.as_str())
            .collect();
        assert_eq!([messages, wrong].concat().join("; "), expected);
    }

    #[test]
    fn t20_an_answer_is_markdown_as_it_is() {
        check("Because.\n", "Because.");
        check(
            "It is in `a.rs`:\n\n```rust\nfn a() {}\n```\n\nThat is all.",
            "It is in `a.rs`:\n\n```rust\nfn a() {}\n```\n\nThat is all.",
        );
        check("", "the plan is empty");
    }

    #[test]
    fn t20_no_part_of_an_answer_is_an_action() {
        let action =
            "### `EXECUTE`\n- **Description:** d\n- **Expected Outcome:** o\n\n````shell\nls\n````";
        for broken in ["`````\nx\n`````\n```` \n", "~~~\nx\n~~~\n~~~~ \n", ""] {
            let reply = format!("Sure.\n\n{broken}{action}\n");
            let reading = read_answer(&reply, "Why?");
            let kinds = reading.plan.actions.iter();
            let acts = kinds
                .filter(|action| !action.kind.is_informational())
                .count();
            assert!(acts == 0 || !reading.diagnostics.is_empty(), "{reply}");
        }

        let broken = format!("Sure.\n\n`````\nx\n`````\n```` \n{action}");
        let fence = "`".repeat(6);
        check(&broken, &format!("{fence}text\n{broken}\n{fence}"));
    }

    #[test]
    fn t20_a_plan_that_only_looks_and_tells_is_one_too() {
        let plan = |action: &str| {
            format!(
                "# Look\n- **Status:** Green 🟢\n\n## Rationale\n````text\nr\n````\n\n## Action Plan\n\n{action}"
            )
        };
        let read = "### `READ`\n- **Resource:** [a.rs](/a.rs)\n- **Description:** d\n";
        check(&plan(read), "");
        check(&plan("### `CHAT_WITH_USER`\nHi.\n"), "Hi.");
        check(
            &plan(
                "### `EXECUTE`\n- **Description:** d\n- **Expected Outcome:** o\n\n````shell\nls\n````\n",
            ),
            "EXECUTE is not part of an answer",
        );
        check(
            &plan("### `CHAT_WITH_USER`\nHi.\n").replace(
                "## Action Plan",
                "## Memos\n````text\n[+] trust me\n````\n\n## Action Plan",
            ),
            "Hi.; a memo is not part of an answer",
        );
    }

    #[test]
    fn a_title_is_the_beginning_of_the_question() {
        assert_eq!(title("  # Why?\nReally?"), "Why?");
        assert_eq!(title(""), "Answer");
        assert_eq!(title(&"a".repeat(70)), format!("{}...", "a".repeat(60)));
    }
}
