//! Property tests: a rendered report parses back to the same facts, with hostile text in every
//! field.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::plan::action::{self, ActionKind};
use crate::plan::samples;

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
fn block(caption: &str, contents: &str) -> CodeBlock {
    let mut contents = sanitize_text(contents).into_owned();
    if !contents.is_empty() && !contents.ends_with('\n') {
        contents.push('\n');
    }

    CodeBlock {
        caption: caption.to_owned(),
        contents,
    }
}

fn blocks(action: &action::Action, outcome: Option<&Outcome>) -> Vec<CodeBlock> {
    let Some(outcome) = outcome else {
        return Vec::new();
    };
    let changed = !outcome.difference.is_empty();
    let change = || block("Change of the file:", &outcome.difference);
    let mut blocks: Vec<CodeBlock> = changed.then(change).into_iter().collect();

    blocks.extend(match &action.kind {
        ActionKind::Execute(execute) => vec![block("Command:", &execute.command)],
        ActionKind::Research(research) => research
            .queries
            .iter()
            .map(|query| block("", query))
            .collect(),
        kind => kind
            .message()
            .map(|message| block("Message:", message))
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
        blocks.push(block("Output:", &output));
    }

    blocks
}

fn rendered_fields(action: &action::Action) -> Vec<ReportField> {
    let text = |text: &String| sanitize_line(text).into_owned();
    let field = |f: &crate::plan::Field| ReportField {
        key: text(&f.key),
        value: text(&f.value),
    };
    action.fields.iter().map(field).collect()
}

/// Returns the titles of level 2, each with the code blocks below it.
fn sections(text: &str) -> Vec<(String, Vec<String>)> {
    let lines = Lines::new(text);
    let mut sections: Vec<(String, Vec<String>)> = Vec::new();
    for block in markdown::blocks(text) {
        match (block.node, sections.last_mut()) {
            (BlockKind::Heading { level: 2, text, .. }, _) => sections.push((text, Vec::new())),
            (BlockKind::Code(code), Some((_, blocks))) => {
                blocks.push(lines.span(code.line_range).to_owned());
            }
            _ => {}
        }
    }
    sections
}

/// Returns the lines of the list of memos.
fn memo_lines(text: &str) -> Vec<&str> {
    let lines = Lines::new(text);
    let blocks = markdown::blocks(text);
    let is_title = |block: &MarkdownBlock| matches!(&block.node, BlockKind::Heading { level: 3, text, .. } if text == "Applied State Changes");
    let at = blocks.iter().position(is_title).expect("the title");
    match &blocks[at + 1].node {
        BlockKind::List { .. } => span(&lines, &blocks[at + 1]),
        _ => Vec::new(),
    }
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
        let action = read(text).expect("a report").remove(0);
        let mut blocks = action.blocks.into_iter();
        blocks.find(|block| block.caption == "Output:")
    };
    let full = "x".repeat(1 << 20);
    let actual = output_of(&of_output(&full));
    assert!(actual == Some(block("Output:", &full)));

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
        let actions = read(&text).expect("a report");
        prop_assert!(!text.chars().any(|c| c != '\n' && c != '\t' && c != '\r' && crate::text::path::is_deceptive(c)), "{:?}", text);
        let title = format!("# Execution Report: {}\n", sanitize_line(&turn.plan.title));
        prop_assert!(text.starts_with(&title), "{}", text);
        let sections = sections(&text);
        let titles: Vec<&str> = sections.iter().map(|(title, _)| title.as_str()).collect();
        let rejected = if turn.outcomes.is_empty() { "Validation Errors " } else { "" };
        let prompt = if turn.hostile_text.trim().is_empty() { "" } else { "User Prompt " };
        let expected = format!("{prompt}Repairs Overlaps Repository Changes {rejected}How the Plan Was Read 1. Rationale 2. Execution Summary");

        prop_assert_eq!(titles.join(" "), expected, "{}", text);
        let rationale = &sections[sections.len() - 2].1;
        prop_assert_eq!(rationale, &vec![block("", &turn.plan.rationale).contents]);
        if !prompt.is_empty() {
            prop_assert_eq!(&sections[0].1, &vec![block("", &turn.hostile_text).contents]);
        }

        let memos = memo_lines(&text);
        prop_assert_eq!(memos.len(), turn.plan.memos.len(), "{}", text);
        for ((line, memo), applied) in memos.iter().zip(&turn.plan.memos).zip(&turn.memos) {
            let start = if *applied { "- Applied: `" } else { "- Not applied: `" };
            prop_assert!(line.starts_with(start), "{}", line);
            prop_assert!(line.contains(&format!("] {}", sanitize_line(&memo.text))), "{}", line);
        }

        prop_assert_eq!(actions.len(), turn.plan.actions.len(), "{}", text);
        for (index, (reported, action)) in actions.iter().zip(&turn.plan.actions).enumerate() {
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
            expected.extend((index == 0).then(|| block(caption, &turn.hostile_text)));

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
    let document = include_str!("../../../docs/formats/report.md");
    let lines = Lines::new(document);
    let all = markdown::blocks(document);
    let example = markdown::fenced(&all)
        .into_iter()
        .find(|(_, code)| code.info == "markdown")
        .expect("the example");
    let text = lines.span(example.1.line_range.clone());
    let actions = read(text).expect("a report");
    let outcome_of = |action: &ReportAction| {
        format!(
            "{} {}",
            action.name,
            action.field("Outcome").unwrap_or_default()
        )
    };

    assert_eq!(
        actions.iter().map(outcome_of).collect::<Vec<_>>(),
        [
            "EDIT changed 1 place: 1 line added, 1 removed",
            "EXECUTE the command succeeded"
        ]
    );
    assert_eq!(actions[0].field("Match 1"), Some("line 3, whole lines"));
    assert_eq!(actions[1].blocks[1], block("Output:", "ok: Hello, Ada!"));
    assert!(text.contains("\nThe whole output is `output/02.txt`.\n"));
    assert!(text.contains("\n- **Overall Status:** Completed 🟢\n"));
}
