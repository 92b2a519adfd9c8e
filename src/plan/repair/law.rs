//! Properties that hold for any reply.

use proptest::prelude::*;

use super::{Level, repair, reply};
use crate::plan::line::{self, LineKind};

/// Lines of plans and documents, and typical mistakes.
const LINES: [&str; 50] = [
    "<think>",
    "</think>",
    "# Title",
    "#Title",
    "- **Status:** Green",
    "## Rationale",
    "## Memos",
    "## Action Plan",
    "## Other",
    "### `CREATE`",
    "### `EDIT`",
    "### EXECUTE",
    "### `READ`",
    "### `RESEARCH`",
    "### CHAT WITH USER",
    "### `INVOKE`",
    "### RETURN",
    "- **File Path:** [a.md](/a.md)",
    "- **File Path:** [a.rs](/a.rs)",
    "- **Description:** d",
    "`FIND:`",
    "`REPLACE:`",
    "#### FIND:",
    "REPLACE:",
    "```",
    "```",
    "```",
    "````",
    "````",
    "`````",
    "```md",
    "````markdown",
    "```sh",
    "````rust",
    "``` (end)",
    "```` <!-- x -->",
    "``` a`b",
    "~~~",
    "~~~~",
    "~~~text",
    "  ```",
    "  ```md",
    "    ```",
    "\t```",
    "---",
    "",
    "",
    "text",
    "  indented",
    "use ```` inline",
];

/// Returns replies of such lines, with any line endings.
fn replies() -> impl Strategy<Value = String> {
    let line = (
        prop::sample::select(LINES.to_vec()),
        prop::sample::select(vec!["\n", "\n", "\n", "\r\n", "\r"]),
    );
    let free = prop::collection::vec(line.clone(), 0..60);
    let body = prop::collection::vec(line, 0..40);
    let concat = |lines: Vec<(&str, &str)>| {
        lines
            .into_iter()
            .map(|(text, end)| format!("{text}{end}"))
            .collect::<String>()
    };

    let head = "# T\n- **Status:** Green\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n\n";
    prop_oneof![
        free.prop_map(concat),
        body.prop_map(move |lines| format!("{head}{}", concat(lines)))
    ]
}

/// Returns the lines that repair must keep, except those above the title and after a fence around
/// the plan.
fn content_lines(text: &str) -> Vec<&str> {
    let is_fence = |l: &str| matches!(line::classify_line(l), LineKind::Fence(_) | LineKind::Blank);
    crate::text::fence::split_lines(text)
        .map(|l| l.text)
        .filter(|l| !is_fence(l))
        .map(|l| l.trim_start())
        .collect()
}

/// Returns the action headings outside CommonMark's fences, or all of them.
fn actions(text: &str, outside_blocks: bool) -> Vec<&str> {
    let mut open: Option<line::Fence> = None;
    let mut visible = |l: &reply::ReplyLine<'_>| {
        match (l.kind, open) {
            (LineKind::Fence(fence), None) if fence.indent < 4 => open = Some(fence),
            (LineKind::Fence(fence), Some(outer)) if fence.closes(outer) => open = None,
            _ => {}
        }

        matches!(l.kind, LineKind::Action(_)) && (open.is_none() || !outside_blocks)
    };
    crate::plan::repair::reply::read_lines(text, super::Spelling::Exact)
        .iter()
        .filter(|l| visible(l))
        .map(|l| l.text)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rp2_a_repaired_reply_is_not_changed_again(reply in replies()) {
        let once = repair(&reply);
        let twice = repair(&once.text);
        prop_assert_eq!(&twice.text, &once.text);
    }

    #[test]
    fn rp3_every_line_survives_in_order(reply in replies()) {
        let repaired = repair(&reply);
        let mut before = content_lines(&reply).into_iter();
        for line in content_lines(&repaired.text) {
            let line = line.strip_prefix("# ").unwrap_or(line);
            prop_assert!(before.any(|other| other == line || other.trim_start_matches('#').trim_start() == line), "{:?} is new", line);
        }
    }

    #[test]
    fn rp3_nothing_but_a_preamble_and_a_tail_is_dropped(reply in replies()) {
        let repaired = repair(&reply);
        let has_note = |prefix: &str| repaired.notes.iter().any(|note| note.message.starts_with(prefix));
        if repaired.level < Level::Hopeless && !has_note("dropped the text") && !has_note("took the whole plan") && !has_note("add a space after") {
            prop_assert_eq!(content_lines(&repaired.text), content_lines(&reply));
        }

        let mut originals = actions(&reply, false).into_iter();
        for action in actions(&repaired.text, true) {
            prop_assert!(originals.any(|other| other == action), "{:?} is no action of the reply", action);
        }
    }

    #[test]
    fn rp12_what_is_clean_or_hopeless_is_byte_for_byte_the_reply(reply in replies()) {
        let repaired = repair(&reply);
        if matches!(repaired.level, Level::Clean | Level::Hopeless) {
            prop_assert_eq!(repaired.text, reply);
        }
    }

    #[test]
    fn rp1_a_plan_by_the_rule_stays_whatever_its_contents_are(contents in prop::collection::vec(prop::collection::vec(prop::sample::select(LINES.to_vec()), 0..15), 1..5)) {
        let mut plan = String::from("# T\n- **Status:** Green\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n");
        for (number, lines) in contents.iter().enumerate() {
            let code: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let fence = crate::text::fence::fence_for(&code, 3);
            let info = ["md", "rust", ""][number % 3];
            plan.push_str(&format!("\n### `CREATE`\n- **File Path:** [a](/a)\n{fence}{info}\n{code}{fence}\n"));
        }

        let repaired = repair(&plan);
        prop_assert_eq!((repaired.text.as_str(), repaired.level), (plan.as_str(), Level::Clean));
    }

    #[test]
    fn notes_name_lines_of_the_reply(reply in replies()) {
        let lines = crate::text::fence::split_lines(&reply).count().max(1);
        for note in repair(&reply).notes {
            prop_assert!((1..=lines + 1).contains(&note.line), "{:?}", note);
        }
    }

    #[test]
    fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let reply = String::from_utf8_lossy(&bytes);
        let repaired = repair(&reply);
        prop_assert_eq!(repaired.text, reply);
    }
}
