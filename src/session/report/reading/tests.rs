//! Property tests: a rendered report parses back to the same facts, with hostile text in every
//! field.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::plan::action::ActionKind;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::memo::MemoChange;
use crate::plan::repair::Note;
use crate::plan::run::{Ending, Outcome};
use crate::plan::samples;
use crate::plan::{Plan, action};
use crate::session::meta::{Approver, Status};
use crate::session::report::{Modification, Report};
use crate::text::sanitize::{sanitize_line, sanitize_text};

#[derive(Debug)]
struct Turn {
    plan: Plan,
    /// Empty if the plan was rejected.
    outcomes: Vec<Outcome>,
    /// Text for all free-form fields.
    hostile_text: String,
    memos: Vec<bool>,
    proposed: Vec<MemoChange>,
}

impl Turn {
    fn modification(&self) -> Modification {
        if self.hostile_text.len().is_multiple_of(2) {
            Modification::File(self.hostile_text.clone())
        } else {
            Modification::Action(self.hostile_text.clone())
        }
    }
}

/// Text that could be mistaken for Markdown structure or terminal control.
fn hostile() -> impl Strategy<Value = String> {
    (
        samples::block_text(),
        proptest::sample::select(vec![
            "",
            "\0",
            "\u{1b}[31m",
            "\r",
            "\u{202e}",
            "\r\n```\r\n",
            "````\n",
            "# x\n",
        ]),
    )
        .prop_map(|(text, end)| text + end)
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let ending = prop_oneof![
        Just(Ending::Success),
        Just(Ending::Failure),
        Just(Ending::Skipped)
    ];
    (ending, hostile(), hostile(), proptest::option::of(-1..256)).prop_map(
        |(ending, detail, output, exit_code)| Outcome {
            difference: output.clone(),
            duration: Duration::from_millis(7),
            exit_code,
            output: output.into_bytes(),
            ..Outcome::of(ending, detail)
        },
    )
}

/// Turns that executed, or were rejected and so have no outcomes.
fn turn() -> impl Strategy<Value = Turn> {
    (
        samples::plan(),
        proptest::collection::vec(outcome(), 4),
        hostile(),
        any::<bool>(),
    )
        .prop_map(|(plan, mut outcomes, hostile_text, ran)| {
            outcomes.truncate(if ran { plan.actions.len() } else { 0 });
            let memos = plan
                .memos
                .iter()
                .enumerate()
                .map(|(n, _)| n % 2 == 0)
                .collect();
            let mut proposed = plan.memos.clone();
            proposed
                .iter_mut()
                .take(1)
                .for_each(|memo| memo.text.push_str(" ` and more"));

            Turn {
                plan,
                outcomes,
                hostile_text,
                memos,
                proposed,
            }
        })
}

fn written(turn: &Turn) -> String {
    let wrong = [Diagnostic::new(3, turn.hostile_text.clone()).hint(turn.hostile_text.clone())];
    Report {
        plan_name: ".teddy/demo/01/plan.md",
        status: if turn.outcomes.is_empty() {
            Status::Rejected
        } else {
            Status::Executed
        },
        started: "2026-01-02T03:04:05Z",
        ended: "2026-01-02T03:04:06Z",
        user_prompt: &turn.hostile_text,
        plan: &turn.plan,
        outcomes: &turn.outcomes,
        memos: &turn.memos,
        proposed_memos: &turn.proposed,
        modifications: &[(0, turn.modification())],
        approved_by: Some(Approver::Yes),
        interruption: Some(&turn.hostile_text),
        repairs: &[Note::new(1, turn.hostile_text.clone())],
        diagnostics: if turn.outcomes.is_empty() {
            &wrong
        } else {
            &[]
        },
        outline: Some(&turn.hostile_text),
        overlaps: std::slice::from_ref(&turn.hostile_text),
        not_captured: &[],
        repository_changes: std::slice::from_ref(&turn.hostile_text),
        output_limit: 1000,
    }
    .render()
}

/// Returns the block as the report sanitizes it.
fn block(caption: &str, language: &str, contents: &str) -> CodeBlock {
    let mut contents = sanitize_text(contents).into_owned();
    if !contents.is_empty() && !contents.ends_with('\n') {
        contents.push('\n');
    }

    CodeBlock {
        caption: caption.to_owned(),
        language: language.to_owned(),
        contents,
    }
}

fn blocks(action: &action::Action, outcome: Option<&Outcome>) -> Vec<CodeBlock> {
    let Some(outcome) = outcome else {
        return Vec::new();
    };
    let changed = !outcome.difference.is_empty();
    let change = || block("Change of the file:", "diff", &outcome.difference);
    let mut blocks: Vec<CodeBlock> = changed.then(change).into_iter().collect();

    blocks.extend(match &action.kind {
        ActionKind::Execute(execute) => vec![block("Command:", "shell", &execute.command)],
        ActionKind::Research(research) => research
            .queries
            .iter()
            .map(|query| block("", "text", query))
            .collect(),
        kind => kind
            .message()
            .map(|message| block("Message:", "markdown", message))
            .into_iter()
            .collect(),
    });
    if matches!(
        action.kind,
        ActionKind::Execute(_) | ActionKind::Research(_)
    ) && !outcome.output.is_empty()
    {
        let raw = String::from_utf8_lossy(&outcome.output);
        let output: String = crate::text::sanitize::strip_ansi(&raw)
            .lines()
            .map(|line| format!("{}\n", sanitize_line(line)))
            .collect();
        blocks.push(block("Output:", "text", &output));
    }

    blocks
}

fn rendered_fields(action: &action::Action) -> Vec<ReportField> {
    let text = |text: &String| sanitize_line(text).into_owned();
    let field = |f: &crate::plan::Field| ReportField {
        key: text(&f.key),
        value: text(&f.value),
        items: f.items.iter().map(text).collect(),
    };
    action.fields.iter().map(field).collect()
}

/// Returns the report of a command with this output, redacted as when it is stored.
fn of_output(output: &str) -> String {
    let command = "\n### `EXECUTE`\n- **Description:** d\n````shell\nls\n````\n";
    let head = "# T\n- **Status:** Green\n\n## Rationale\n````text\nx\n````\n\n## Action Plan\n";
    let (plan, wrong) = crate::plan::parse(&format!("{head}{command}"));
    assert_eq!(wrong, []);
    let outcome = Outcome {
        output: output.into(),
        ..Outcome::of(Ending::Success, "")
    };
    written(&Turn {
        plan,
        outcomes: vec![outcome],
        hostile_text: String::new(),
        memos: Vec::new(),
        proposed: Vec::new(),
    })
}

#[test]
fn r6_a_report_is_never_longer_than_it_is_read() {
    let output_of = |text: &str| {
        let action = read(text).expect("a report").actions.remove(0);
        let mut blocks = action.blocks.into_iter();
        blocks.find(|block| block.caption == "Output:")
    };
    let full = "x".repeat(1 << 20);
    let actual = output_of(&of_output(&full));
    assert!(actual == Some(block("Output:", "text", &full)));

    // Not even a part of a key may remain at the point where its line is cut.
    let key = format!("ghp_{}", "Ab3dE6gH9jK2mN5pQ8sT1vW4".repeat(2));
    let long = format!(
        "{} {key} {}\nlast\n",
        "y".repeat(480),
        "z".repeat(MAX_REPORT)
    );
    let text = of_output(&long);
    assert!(text.len() < 4096, "{}", text.len());
    assert!(!text.contains("ghp_"), "{text}");
    let truncated = output_of(&text).expect("the output").contents;
    assert!(
        truncated.starts_with("yyyy") && truncated.ends_with("…\nlast\n"),
        "{truncated}"
    );
    assert!(text.contains("The whole output is `output/01.txt`."));

    assert_eq!(read(&(of_output("") + &"\n".repeat(MAX_REPORT))), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn r8_a_report_is_read_as_what_was_written(turn in turn()) {
        let text = written(&turn);
        let facts = read(&text).expect("a report");
        prop_assert!(!text.chars().any(|c| c != '\n' && c != '\t' && c != '\r' && crate::text::path::is_deceptive(c)), "{:?}", text);
        prop_assert_eq!(&facts.title, &*sanitize_line(&turn.plan.title));
        let sections: Vec<&str> = facts.sections.iter().map(|section| section.title.as_str()).collect();
        let rejected = if turn.outcomes.is_empty() { "Validation Errors " } else { "" };
        let prompt = if turn.hostile_text.trim().is_empty() { "" } else { "User Prompt " };
        let expected = format!("{prompt}Repairs Overlaps Repository Changes {rejected}How the Plan Was Read 1. Rationale");

        prop_assert_eq!(sections.join(" "), expected, "{}", text);
        let rationale = &facts.sections.last().expect("the rationale").blocks;
        prop_assert_eq!(rationale, &vec![block("", "text", &turn.plan.rationale)]);
        if !prompt.is_empty() {
            prop_assert_eq!(&facts.sections[0].blocks, &vec![block("", "text", &turn.hostile_text)]);
        }

        let memos: Vec<bool> = facts.memos.iter().map(|(applied, _)| *applied).collect();
        prop_assert_eq!(&memos, &turn.memos);
        for ((_, change), memo) in facts.memos.iter().zip(&turn.plan.memos) {
            prop_assert!(change.ends_with(&*sanitize_line(&memo.text)), "{}", change);
        }

        prop_assert_eq!(facts.actions.len(), turn.plan.actions.len(), "{}", text);
        for (index, (reported, action)) in facts.actions.iter().zip(&turn.plan.actions).enumerate() {
            let outcome = turn.outcomes.get(index);
            prop_assert_eq!((reported.name.as_str(), reported.modified), (action.kind.name(), index == 0));
            let own = reported.fields.iter().rev().filter(|field| !field.key.starts_with("Match ")).take(action.fields.len());
            let mut own: Vec<ReportField> = own.cloned().collect();
            own.reverse();
            prop_assert_eq!(own, rendered_fields(action), "{}", text);
            let status = match outcome.map(|outcome| outcome.ending) {
                None => "Not run",
                Some(Ending::Skipped) => "Skipped 🟡",
                Some(_) => "Approved ✅",
            };

            prop_assert_eq!(reported.field("Status"), Some(status));
            let mut expected = blocks(action, outcome);
            let caption = match turn.modification() {
                Modification::File(_) => "The user changed this action. As proposed it would have been:",
                Modification::Action(_) => "The user changed this action:",
            };
            expected.extend((index == 0).then(|| block(caption, "diff", &turn.hostile_text)));

            prop_assert_eq!(&reported.blocks, &expected, "{}", text);
        }
    }

    #[test]
    fn no_text_makes_the_reader_fail(text in hostile()) {
        prop_assert_eq!(read(&text), None);
        read(&format!("# Execution Report: x\n{text}"));
    }
}

#[test]
fn the_documents_example_is_read() {
    let document = include_str!("../../../../docs/formats/report.md");
    let lines = Lines::new(document);
    let all = markdown::blocks(document);
    let example = markdown::fenced(&all)
        .into_iter()
        .find(|(_, code)| code.info == "markdown")
        .expect("the example");
    let facts = read(lines.span(example.1.line_range.clone())).expect("a report");
    let outcome_of = |action: &ReportAction| {
        format!(
            "{} {}",
            action.name,
            action.field("Outcome").unwrap_or_default()
        )
    };

    assert_eq!(
        facts.actions.iter().map(outcome_of).collect::<Vec<_>>(),
        [
            "EDIT changed 1 place: 1 line added, 1 removed",
            "EXECUTE the command succeeded"
        ]
    );
    assert_eq!(
        facts.actions[0].field("Match 1"),
        Some("line 3, whole lines")
    );
    assert_eq!(
        facts.actions[1].blocks[1],
        block("Output:", "text", "ok: Hello, Ada!")
    );
    assert_eq!(
        facts.actions[1].notes.last().map(String::as_str),
        Some("The whole output is `output/02.txt`.")
    );

    assert_eq!(facts.fields[0].value, "Completed 🟢");
}
