//! Readings of whole answers.

use super::*;
use crate::plan::samples::describe;

fn check(reply: &str, expected: &[&str]) {
    let actual: Vec<String> = read(reply)
        .diagnostics
        .iter()
        .map(|wrong| format!("{} {}", wrong.line, wrong.message))
        .collect();
    assert_eq!(actual, expected);
}

/// Everything above the actions.
const HEAD: &str = "# T\n\n## Rationale\n````\nr\n````\n\n## Action Plan\n\n";

/// Returns how long this thread has run, which does not depend on the load. Linux only.
fn seconds_run() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = times
        .split(' ')
        .next()
        .and_then(|time| time.parse::<f64>().ok());
    nanoseconds.unwrap_or_default() / 1e9
}

#[test]
fn promise_d10_repair_and_parser_agree_about_labels() {
    let block = |lines: &str| format!("```md\n{lines}```\n");
    for [find, replace] in [
        ["`FIND:`", "`REPLACE:`"],
        ["FIND:", "REPLACE:"],
        ["FIND", "REPLACE"],
        ["**FIND:**", "**REPLACE:**"],
        ["**Find:**", "**Replace:**"],
        ["**Find**:", "**Replace**:"],
        ["Find:", "Replace:"],
        ["find", "replace"],
        ["#### FIND", "#### REPLACE"],
        ["#### Find:", "#### Replace:"],
        ["- FIND:", "- REPLACE:"],
        ["* **Find:**", "* **Replace:**"],
    ] {
        let pair =
            |one: &str, two: &str| format!("{find}\n{}{replace}\n\n{}", block(one), block(two));
        let edit = format!(
            "### EDIT\n- File Path: a.md\n\n{}\n{}",
            pair("a\n", "b\n"),
            pair("```sh\nls\n```\n", "c\n")
        );
        let reading = read(&format!("{HEAD}{edit}"));
        let actions: Vec<String> = reading
            .plan
            .actions
            .iter()
            .map(|a| describe(&a.kind))
            .collect();
        assert_eq!(
            (actions, reading.diagnostics),
            (
                vec![
                    "EDIT a.md [(\"a\\n\", \"b\\n\"), (\"```sh\\nls\\n```\\n\", \"c\\n\")]"
                        .to_owned()
                ],
                vec![]
            ),
            "{find}"
        );
    }
    check(
        &format!(
            "{HEAD}### EDIT\n- File Path: a\n- **Find:**\n  ```\n  x\n  ```\n- **Replace:**\n  ```\n  y\n  ```\n"
        ),
        &[],
    );
}

#[test]
fn p22_a_limit_is_the_only_mistake_and_nothing_is_read_after_it() {
    let action = "### READ\n- Resource: a\n";
    let many = format!("{HEAD}{}", action.repeat(2001));
    check(&many, &["1 the plan has over 2000 actions"]);
    let reading = read(&many);
    assert_eq!(
        (
            reading.repaired.text == many,
            reading.repaired.level,
            reading.outline
        ),
        (true, Level::Hopeless, None)
    );
    let in_block = format!(
        "{HEAD}### CREATE\n- File Path: a\n````md\n{}````\n",
        action.repeat(2001)
    );
    check(&in_block, &[]);
}

#[test]
fn p22_a_hundred_thousand_actions_are_refused_at_once() {
    let many = format!(
        "{HEAD}{}",
        "### `EXECUTE`\n- **Description:** d\n```sh\ntrue\n```\n".repeat(100_000)
    );
    let started = seconds_run();
    check(&many, &["1 the plan has over 2000 actions"]);
    let seconds = seconds_run() - started;
    assert!(seconds < 3.0, "{seconds}");
}

#[test]
fn many_blank_lines_beside_a_damaged_fence_are_read_at_once() {
    let create = format!(
        "### CREATE\n- File Path: a\n\n```\n{}x\n```\n\n",
        "\n".repeat(20_000)
    );
    let started = seconds_run();
    check(
        &format!("{HEAD}### EXECUTE\n- Description: d\n\n````sh\nmake\n```\n\n{create}"),
        &[],
    );
    let seconds = seconds_run() - started;
    assert!(seconds < 2.0, "{seconds}");
}

#[test]
fn many_queries_beside_a_damaged_fence_are_read_at_once() {
    let queries = "```\nq\n```\n".repeat(20_000);
    let command = "### EXECUTE\n- Description: d\n````sh\nls\n```\n";
    let started = seconds_run();
    let reading = read(&format!(
        "{HEAD}### RESEARCH\n- Description: d\n{queries}\n{command}"
    ));
    assert_eq!(reading.repaired.level, Level::Doubtful);
    let seconds = seconds_run() - started;
    assert!(seconds < 12.0, "{seconds}");
}

#[test]
fn a_reply_that_is_no_plan_is_told_so_by_the_parser_alone() {
    check(
        "Sorry, I cannot help.\n",
        &[
            "1 the plan has no level 1 heading",
            "1 the plan has no `## Rationale`",
            "1 the plan has no `## Action Plan`",
        ],
    );
    let unclosed = format!(
        "{HEAD}### EDIT\n- File Path: a\n\n`FIND:` ```py\na\n```\n`REPLACE:`\n```\nb\n```\n"
    );
    let reading = read(&unclosed);
    assert_eq!(reading.repaired.level, Level::Hopeless);
    assert!(
        !reading.diagnostics.is_empty()
            && reading
                .diagnostics
                .iter()
                .all(|wrong| !wrong.message.contains("grammar")),
        "{reading:?}"
    );
}

#[test]
fn a_plan_in_a_fence_that_cannot_be_repaired_has_its_own_mistakes_told() {
    let edit = "### EDIT\n- File Path: a\n\n`FIND:`\n````\nx\n````\n\n### READ\n- Resource: /etc\n";
    let expected = [
        "15 FIND without a REPLACE behind it",
        "21 the path must be relative to the project's root: \"/etc\"",
    ];
    check(&format!("Sure:\n```markdown\n{HEAD}{edit}```\n"), &expected);
    check(&format!("Sure:\n~~~~\n{HEAD}{edit}~~~~\n\n"), &expected);
    let reading = read(&format!("Sure:\n```markdown\n{HEAD}{edit}```\n"));
    assert!(
        reading
            .outline
            .is_some_and(|outline| outline.contains("line 3: Heading (level 1): \"T\""))
    );
}

#[test]
fn what_is_thought_aloud_is_no_mistake_where_repair_gives_up() {
    let edit = "### EDIT\n- File Path: a\n\n`FIND:`\n````\nx\n````\n\n### READ\n- Resource: /etc\n";
    let path = "the path must be relative to the project's root: \"/etc\"";
    for thoughts in [
        "<think>\n# A title\n## Action Plan\n### READ\n</think>\n",
        "\n<thinking>\n```\n## Rationale\n</thinking>\n\n",
    ] {
        let reading = read(&format!("{thoughts}{HEAD}{edit}"));
        let messages: Vec<&str> = reading
            .diagnostics
            .iter()
            .map(|wrong| wrong.message.as_str())
            .collect();
        assert_eq!(
            (reading.repaired.level, messages),
            (
                Level::Hopeless,
                vec!["FIND without a REPLACE behind it", path]
            )
        );
        assert_eq!(reading.diagnostics[0].line, 13 + thoughts.lines().count());
    }
}

#[test]
fn a_block_that_begins_with_a_comment_is_not_taken_for_the_fence_around_the_plan() {
    let actions = "## Action Plan\n\n### EXECUTE\n- Description: d\n```sh\n# build\nmake\n```\n\n### READ\n- Resource: /etc\n";
    let path = "the path must be relative to the project's root: \"/etc\"";
    for title in ["", "#T\n\n"] {
        let edit = "### EDIT\n- File Path: a\n\n`FIND:`\n````\nx\n````\n";
        let reading = read(&format!(
            "{title}## Rationale\n````\nr\n````\n\n{actions}\n{edit}"
        ));
        let last: Vec<&str> = reading
            .diagnostics
            .iter()
            .map(|wrong| wrong.message.as_str())
            .filter(|m| !m.contains("level 1"))
            .collect();
        assert_eq!(last, [path, "FIND without a REPLACE behind it"], "{title}");
    }
    let reading_of_block = read(&format!(
        "Run this:\n```sh\n# build\nmake\n```\n\n{actions}"
    ));
    assert!(
        reading_of_block
            .diagnostics
            .iter()
            .all(|wrong| !wrong.message.contains("closes nothing")),
        "{reading_of_block:?}"
    );
}

#[test]
fn what_is_in_doubt_is_a_mistake_though_the_parser_reads_it() {
    let doubtful =
        format!("{HEAD}### CREATE\n- File Path: a.md\n```markdown\nbegin with\n```\nend so\n```\n");
    assert!(
        read(&doubtful)
            .diagnostics
            .iter()
            .any(|wrong| wrong.message.contains("can be read in two ways"))
    );
}
