//! Reads prose answers: to a question, plain Markdown or a plan that only reads and reports; to
//! any other message, a reply without any part of a plan.

use super::{Reading, mark, read, without_thoughts};
use crate::plan::action::chat_with_user::ChatWithUser;
use crate::plan::action::{Action, ActionKind, conclude, foreign};
use crate::plan::diagnostic::Diagnostic;
use crate::plan::document::Plan;
use crate::plan::field::Field;
use crate::plan::render::render;
use crate::text::fence::{FenceTracker, fence_for};

/// Longest title, in characters.
const MAX_TITLE: usize = 60;
const MIN_FENCE: usize = 4;
const RATIONALE: &str = "The answer to a question. Nothing is changed.";
const RATIONALE_WITHOUT_PLAN: &str = "The model answered without a plan. Nothing is changed.";
/// Lines at the end of an answer in which a question asks the user.
const LAST_LINES: usize = 4;

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

/// What a prose answer wants from the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProseKind {
    /// It asks something.
    Question,
    /// It only tells something.
    Statement,
}

/// Reads the reply to a message. A reply in prose, without any part of a plan, becomes a plan whose
/// only action is a message to the user.
pub fn read_reply(reply: &str, request: &str) -> Reading {
    let reading = read(reply);
    let Some((text, kind)) = prose_of(&reading, reply) else {
        return reading;
    };

    let action = |message: &str| match kind {
        ProseKind::Question => ChatWithUser {
            message: message.trim().to_owned(),
        }
        .into(),
        ProseKind::Statement => conclude::with_message(message),
    };
    Reading {
        prose: Some(kind),
        is_plan: false,
        ..plan_of_message(request, RATIONALE_WITHOUT_PLAN, &text, &action)
    }
}

/// Returns the text of a reply that is a prose answer, and what it wants. `None` for a plan, for
/// input of another program, and for code alone.
fn prose_of(reading: &Reading, reply: &str) -> Option<(String, ProseKind)> {
    let inner = &reply[mark::inner(reply)];
    let spoken = without_thoughts(inner);
    let text = spoken.trim();
    let is_candidate = !reading.is_plan && !text.is_empty() && foreign::reply(text).is_none();
    let lines = is_candidate.then(|| lines_outside_fences(text))?;
    let has_words = |line: &&&str| line.chars().any(char::is_alphabetic);
    let said: Vec<&&str> = lines.iter().filter(has_words).collect();
    if said.is_empty() {
        return None;
    }

    let asks = |line: &&&&str| {
        let words = line.split_whitespace();
        let mut ends = words.map(|word| word.trim_end_matches(['*', '_', '"', ')', '”', '`']));
        ends.any(|end| end.ends_with(['?', '？']))
    };
    let kind = match said.iter().rev().take(LAST_LINES).any(|line| asks(&line)) {
        true => ProseKind::Question,
        false => ProseKind::Statement,
    };
    Some((text.to_owned(), kind))
}

fn lines_outside_fences(text: &str) -> Vec<&str> {
    let mut fences = FenceTracker::default();
    text.lines().filter(|line| !fences.is_code(line)).collect()
}

fn mistake(action: &Action) -> Diagnostic {
    let message = format!("{} is not part of an answer", action.kind.name());
    let hint = "answer in plain Markdown, or READ files of the project first";
    Diagnostic {
        action: action.kind.name().to_owned(),
        ..Diagnostic::new(action.line, message).hint(hint)
    }
}

fn as_plan(reply: &str, question: &str) -> Reading {
    let answer = reply.trim();
    if answer.is_empty() {
        return read(reply);
    }

    plan_of_message(question, RATIONALE, answer, &conclude::with_message)
}

/// Returns a plan whose only action is this message. If its code blocks are so broken that parts would
/// be read as actions, the message becomes a code block.
fn plan_of_message(
    request: &str,
    rationale: &str,
    message: &str,
    action: &dyn Fn(&str) -> ActionKind,
) -> Reading {
    let with_message = |message: &str| {
        let plan = Plan {
            title: title(request),
            fields: vec![Field::new("Status", "Green 🟢")],
            rationale: rationale.to_owned(),
            actions: vec![Action {
                line: 0,
                fields: Vec::new(),
                kind: action(message),
            }],
            ..Plan::default()
        };
        read(&render(&plan))
    };
    let reading = with_message(message);
    if reading.diagnostics.is_empty() && reading.plan.actions.len() == 1 {
        return reading;
    }
    let fence = fence_for(message, MIN_FENCE);
    with_message(&format!("{fence}text\n{message}\n{fence}"))
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
    fn t25_a_prose_answer_is_a_message_to_the_user() {
        let check = |reply: &str, expected: Option<(ProseKind, &str)>| {
            let reading = read_reply(reply, "Add a login form.\nSoon.");
            let said = reading.plan.actions.first().and_then(|a| a.kind.message());
            assert_eq!(reading.prose.zip(said), expected, "{reply}");
            assert_eq!(reading.prose.is_some(), reading.diagnostics.is_empty());
        };
        let asks = "Sure! I would add `login.html`.\n\nShall I continue?";
        check(asks, Some((ProseKind::Question, asks)));
        let tells = "It has one already:\n\n```html\n<form>?\n```";
        check(tells, Some((ProseKind::Statement, tells)));
        check(
            "<think>\nWhat now?\n</think>\nI cannot do that.\n",
            Some((ProseKind::Statement, "I cannot do that.")),
        );
        check("", None);
        check("```json\n{\"name\": \"edit\"}\n```\n", None);
        check("<tool_call>\n<name>edit</name>\n</tool_call>\n", None);
        check("```sh\nls\n```\n", None);
        check("# T\n\n## Action Plan\n\nSure?\n", None);
    }

    #[test]
    fn a_title_is_the_beginning_of_the_question() {
        assert_eq!(title("  # Why?\nReally?"), "Why?");
        assert_eq!(title(""), "Answer");
        assert_eq!(title(&"a".repeat(70)), format!("{}...", "a".repeat(60)));
    }
}
