//! Rules of `docs/formats/plan.md`, with the spellings that models use.

use super::*;
use crate::plan::samples::describe;

/// Start of a plan, up to the first action.
const HEAD: &str = "# T\n- **Status:** Green 🟢\n- **Plan Type:** X\n- **Agent:** Pathfinder\n\n## Rationale\n````text\nr\n````\n\n## Action Plan\n\n";

/// Compares parsed actions and diagnostics of the actions that follow [`HEAD`]. Lines count from
/// the first action.
fn check(actions: &str, expected: &[&str]) {
    let (plan, wrong) = parse(&format!("{HEAD}{actions}"));
    let offset = HEAD.lines().count();
    let mut actual: Vec<String> = plan.actions.iter().map(|a| describe(&a.kind)).collect();
    actual.extend(wrong.iter().map(|w| {
        format!(
            "{} [{}] {}",
            w.line.saturating_sub(offset),
            w.action,
            w.message
        )
    }));

    assert_eq!(actual, expected, "for {actions:?}");
}

fn check_plan(text: &str, expected: &[&str]) {
    let actual: Vec<String> = parse(text)
        .1
        .iter()
        .map(|w| format!("{} {}", w.line, w.message))
        .collect();
    assert_eq!(actual, expected, "for {text:?}");
}

/// Heading and list of a CREATE.
const CREATE: &str = "### `CREATE`\n- **File Path:** [a](/a)\n- **Description:** d\n";
/// Heading and list of an EDIT.
const EDIT: &str = "### `EDIT`\n- **File Path:** [a](/a)\n- **Description:** d\n";

mod actions;
mod cases;
mod edits;
mod limits;

#[test]
fn p1_a_plan_needs_a_title_a_rationale_and_an_action_plan() {
    check_plan("", &["1 the plan is empty"]);
    check_plan(" \n\t\n", &["1 the plan is empty"]);
    check_plan(
        "## Just a Sub-heading\n- Item",
        &[
            "1 unknown level 2 heading \"Just a Sub-heading\"",
            "1 the plan has no level 1 heading",
            "1 the plan has no `## Rationale`",
            "2 the plan has no `## Action Plan`",
        ],
    );
    check_plan(
        "# T\n- **Status:** Green\n\n## Action Plan\n\n### `READ`\n- **Resource:** [a](/a)\n",
        &["4 the plan has no `## Rationale`"],
    );
    check_plan(
        "# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n",
        &["8 the action plan is empty"],
    );

    check_plan(
        "Sure!\n\n# T\n\n## Rationale\n```\nr\n```\n",
        &[
            "1 \"Sure!\" is before the title",
            "8 the plan has no `## Action Plan`",
        ],
    );
}

#[test]
fn p1_sections_stand_once_and_in_order() {
    let plan = "# T\n## Memos\n## Rationale\n```\nr\n```\n## Action Plan\n### READ\n- Resource: a\n# U\n## Rationale\n```\nr\n```\n";
    check_plan(
        plan,
        &[
            "3 `Rationale` is after `Memos`",
            "10 a second level 1 heading",
            "11 `Rationale` is after `Action Plan`",
        ],
    );
    check_plan(
        "# T\n## Rationale\n```\nr\n```\n### READ\n- Resource: a\n## Action Plan\n### READ\n- Resource: a\n",
        &["6 READ is outside of the action plan"],
    );

    check_plan(
        "# T\n## Rationale\n```\nr\n```\n### READ\n- Resource: a\n### READ\n- Resource: b\n",
        &["6 the plan has no `## Action Plan`"],
    );
}

#[test]
fn p1_what_the_whole_plan_lacks_is_no_action_s_mistake() {
    let (_, wrong) = parse("### READ\n- Resource: a\n");
    let messages: Vec<String> = wrong
        .iter()
        .map(|w| format!("{} [{}] {}", w.line, w.action, w.message))
        .collect();
    assert_eq!(
        messages,
        [
            "1 [] the plan has no level 1 heading",
            "1 [] the plan has no `## Rationale`",
            "1 [] the plan has no `## Action Plan`"
        ]
    );
}

#[test]
fn p2_a_byte_order_mark_and_crlf_throughout_are_transport() {
    let text = format!("{HEAD}{CREATE}```\nx\ny\n```\n");
    let (plain, wrong) = parse(&text);
    assert_eq!(wrong, []);
    assert_eq!(parse(&text.replace('\n', "\r\n")), (plain.clone(), vec![]));
    assert_eq!(parse(&text.replace('\n', "\r")), (plain.clone(), vec![]));
    assert_eq!(parse(&format!("\u{feff}{text}")), (plain, vec![]));
}

#[test]
fn p2_a_plan_with_mixed_line_ends_keeps_them_in_contents() {
    check(
        &format!("{CREATE}```\nx\r\ny\rz\n```\n"),
        &["CREATE a \"x\\r\\ny\\rz\\n\" "],
    );
}

#[test]
fn p4_the_title_and_its_list_are_the_header() {
    let (plan, wrong) = parse(&format!("{HEAD}### READ\n- Resource: a\n"));
    assert_eq!(
        (
            wrong.len(),
            plan.title.as_str(),
            plan.field("agent"),
            plan.rationale.as_str()
        ),
        (0, "T", Some("Pathfinder"), "r\n")
    );
    check_plan(
        "# T\nwords\n- no key\n\n## Rationale\n```\nr\n```\n## Action Plan\n### READ\n- Resource: a\n",
        &[
            "2 unexpected text \"words\"",
            "3 unexpected text \"- no key\"",
        ],
    );
}

#[test]
fn p5_header_fields_are_optional_and_the_status_is_read_from_the_header_alone() {
    for (value, expected) in [
        ("Green 🟢", true),
        ("Green", true),
        ("🟢", true),
        ("Green ðŸŸ¢", true),
        ("fine", false),
    ] {
        let text = format!(
            "# T\n- **Status:** {value}\n\n## Rationale\n```\n🟡\n```\n## Action Plan\n### READ\n- Resource: a\n"
        );
        let (plan, wrong) = parse(&text);
        assert_eq!(
            (plan.status() == Some(crate::plan::PlanStatus::Green), wrong),
            (expected, vec![]),
            "{value}"
        );
    }

    check_plan(
        "# T\n\n## Rationale\n```\nr\n```\n## Action Plan\n### READ\n- Resource: a\n",
        &[],
    );
}

#[test]
fn p6_the_rationale_is_one_block() {
    let tail = "\n## Action Plan\n### READ\n- Resource: a\n";
    check_plan(
        &format!("# T\n## Rationale\nwords\n{tail}"),
        &[
            "2 `Rationale` has no code block",
            "3 unexpected text \"words\"",
        ],
    );
    check_plan(
        &format!("# T\n## Rationale\n```\nsaw:\n```\nerr\n```\nmore\n```\n{tail}"),
        &[
            "6 unexpected text \"err\"",
            "7 `Rationale` has more than one code block",
        ],
    );
    check_plan(
        &format!("# T\n## Rationale\n```\n \n```\n{tail}"),
        &["2 the rationale is empty"],
    );

    check_plan(
        &format!("# T\n## Rationale\n```\n1. Synthesis\nplain\n```\n{tail}"),
        &[],
    );
}

#[test]
fn p7_memos_are_one_block_of_lines() {
    let plan = |memos: &str| {
        format!(
            "# T\n## Rationale\n```\nr\n```\n## Memos\n{memos}## Action Plan\n### READ\n- Resource: a\n"
        )
    };
    let (read, wrong) = parse(&plan(
        "```\n[+] A fact. # why\n\n[-] Old issue #42 closed # reason\n[+] Use C# here\n```\n",
    ));
    let memos: Vec<(usize, &str)> = read
        .memos
        .iter()
        .map(|m| (m.line, m.text.as_str()))
        .collect();
    assert_eq!(
        (memos, wrong),
        (
            vec![
                (8, "A fact."),
                (10, "Old issue #42 closed"),
                (11, "Use C# here")
            ],
            vec![]
        )
    );
    check_plan(&plan(""), &[]);
    check_plan(
        &plan("```\nx\n```\n"),
        &["8 a memo starts with `[+]` or `[-]`: \"x\""],
    );

    check_plan(
        &plan("None.\n\n"),
        &["6 `Memos` has no code block", "7 unexpected text \"None.\""],
    );
}

#[test]
fn p3_unknown_headings_and_words_between_actions_are_wrong() {
    let read = "### READ\n- Resource: a\n";
    check(
        &format!("{read}\n### `UNKNOWN_ACTION`\n- x\n\n{read}"),
        &[
            "READ a",
            "READ a",
            "4 [UNKNOWN_ACTION] unknown action `UNKNOWN_ACTION`",
        ],
    );
    check(
        &format!("{read}\n### MESSAGE\nhello\n"),
        &["READ a", "4 [MESSAGE] unknown action `MESSAGE`"],
    );
    check(
        &format!("words\n\n{read}"),
        &["READ a", "1 [] unexpected text \"words\""],
    );
    check(
        &format!("{read}\nSome free text\n\n{read}"),
        &[
            "READ a",
            "READ a",
            "4 [READ a] unexpected text \"Some free text\"",
        ],
    );
    check(
        &format!("{read}\n## Notes\n"),
        &["READ a", "4 [] unknown level 2 heading \"Notes\""],
    );
    check(
        &format!("#### `READ`\n- Resource: a\n{read}"),
        &[
            "READ a",
            "1 [] READ is a level 4 heading; actions are level 3",
        ],
    );
    check(
        "### PROMPT\nx\n\n### `DELETE`\n- **File Path:** a\n",
        &["CHAT \"x\"", "4 [DELETE] unknown action `DELETE`"],
    );

    let (_, wrong) = parse(&format!("{HEAD}### SYNTHESIS\n"));
    let allowed = "the actions are `CREATE`, `READ`, `EDIT`, `EXECUTE`, `RESEARCH`, `CHAT_WITH_USER`, `INVOKE`, `CONCLUDE`, `PRUNE`";
    assert_eq!(wrong[0].hint.as_deref(), Some(allowed));
    for heading in ["### `CREATE` src/a.rs", "### CREATE: src/a.rs"] {
        let (_, wrong) = parse(&format!("{HEAD}{heading}\n"));
        assert_eq!(
            wrong[0].hint.as_deref(),
            Some("write ### `CREATE` alone; the rest belongs below it"),
            "{}",
            wrong[0].message
        );
    }
}
