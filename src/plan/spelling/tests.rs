//! Plans as current models write them.

use crate::plan::reading::{Reading, preprocess, read};
use crate::plan::repair::Level;
use crate::plan::samples::describe;

/// Formats the reading of each plan in `fixtures/spellings`: notes, actions, diagnostics.
fn meanings() -> String {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/spellings");
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    let mut out = String::new();

    for name in &names {
        let reading = read(&std::fs::read_to_string(format!("{dir}/{name}")).unwrap());
        out.push_str(&format!("== {}\n", name.trim_end_matches(".md")));
        for note in &reading.repaired.notes {
            out.push_str(&format!("note {}: {}\n", note.line, note.message));
        }

        for action in &reading.plan.actions {
            out.push_str(&format!("{}\n", describe(&action.kind)));
        }

        for wrong in &reading.diagnostics {
            let message = wrong.message.replace('\n', "\n  ");
            out.push_str(&format!("wrong {}: {message}\n", wrong.line));
        }
    }

    out
}

#[test]
fn promise_d10_plans_in_the_manner_of_models_are_read_as_they_are_meant() {
    let expected = include_str!("../../../fixtures/spellings/meanings.txt");
    let actual = meanings();
    let differs = actual
        .lines()
        .zip(expected.lines())
        .position(|(a, b)| a != b);
    let from = differs.unwrap_or_default().saturating_sub(3);
    let excerpt: Vec<&str> = actual.lines().skip(from).take(12).collect();

    assert!(
        actual == expected,
        "from line {}:\n{}",
        from + 1,
        excerpt.join("\n")
    );
}

#[test]
fn promise_d10_what_has_two_meanings_is_refused_and_nothing_else_is() {
    let meanings = meanings();
    let plans: Vec<&str> = meanings.split("== ").skip(1).collect();
    for plan in &plans {
        let refused = plan.lines().any(|line| line.starts_with("wrong "));
        assert_eq!(refused, plan.starts_with("no-"), "{plan}");
    }
    assert!(plans.len() >= 60, "{}", plans.len());
}

#[test]
fn p25_words_and_an_action_without_any_part_of_a_plan_are_no_plan() {
    let action = "### Execute\n- **Description:** d\n```sh\nrm -rf build\n```\n";
    for (text, expected) in [
        (action.to_owned(), true),
        (format!("# T\n\n{action}"), true),
        (format!("## Steps\n\n{action}"), true),
        (format!("You could write this:\n\n{action}"), false),
    ] {
        assert_eq!(read(&text).diagnostics.is_empty(), expected, "{text}");
    }
}

/// Checks each plan in `fixtures/spellings` whose name has this prefix: it has no diagnostics, has
/// notes, and satisfies `fits`.
fn check(start: &str, fits: impl Fn(&Reading) -> bool) {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/spellings");
    let mut checked = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.starts_with(start) {
            continue;
        }

        let text = std::fs::read_to_string(&path).unwrap();
        let reading = read(&text);
        assert_eq!(reading.diagnostics, vec![], "{name}");
        let noted = reading.repaired.text == text
            || reading.repaired.notes.iter().any(|note| note.spelling);

        assert!(noted && fits(&reading), "{name}: {reading:?}");
        checked += 1;
    }

    assert!(checked > 0, "nothing begins with {start}");
}

/// Returns whether a plan has the single EDIT of the fixtures.
fn edits(reading: &Reading) -> bool {
    let edit = "EDIT src/app.py [(\"    return \\\"hi\\\"\\n\", \"    return \\\"Hello\\\"\\n\")]";
    reading
        .plan
        .actions
        .first()
        .is_some_and(|action| describe(&action.kind) == edit)
}

#[test]
fn p25_what_the_parser_reads_stays_and_what_it_does_not_is_noted() {
    let text = "# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n\n### READ\n- Resource: a\n";
    let reading = read(text);
    assert_eq!(
        (
            reading.repaired.text.as_str(),
            reading.repaired.level,
            reading.repaired.notes.len()
        ),
        (text, Level::Clean, 0)
    );
    let reading = read(&text.replace("### READ", "### Read"));
    let notes: Vec<(usize, &str, bool)> = reading
        .repaired
        .notes
        .iter()
        .map(|note| (note.line, note.message.as_str(), note.spelling))
        .collect();

    assert_eq!(notes, [(10, "read `### Read` as the action READ", true)]);
    assert_eq!(
        (reading.repaired.text, reading.repaired.level),
        (text.replace("### READ", "### `READ`"), Level::Refenced)
    );
}

#[test]
fn p26_the_heading_of_an_action_is_known_with_what_is_around_its_name() {
    check("heading-", |reading| !reading.plan.actions.is_empty());
    check("heading-title", edits);
    check("heading-number", edits);
    check("heading-bold", edits);
}

#[test]
fn p27_sections_are_known_by_their_place() {
    check("sections-", |reading| {
        edits(reading) && reading.plan.rationale.contains("curt")
    });
    check("action-plan-", edits);
    check("memos-in-german", |reading| reading.plan.memos.len() == 1);
}

#[test]
fn p28_a_rationale_without_a_block_is_put_into_one() {
    check("rationale-", |reading| {
        edits(reading) && !reading.plan.rationale.trim().is_empty()
    });
}

#[test]
fn p29_memos_may_be_a_list_or_none() {
    check("memos-list", |reading| reading.plan.memos.len() == 2);
    check("memos-lines", |reading| reading.plan.memos.len() == 2);
    check("memos-no", |reading| reading.plan.memos.is_empty());
}

#[test]
fn p29_a_memo_with_its_mark_is_one_whatever_it_says() {
    // The action uses a free spelling, so the whole plan is respelled.
    let plan = "# a\n- **Status:** Green 🟢\n\n## Rationale\n````text\nr\n````\n\n## Memos\n````\n[-] na\n````\n\n## Action Plan\n\n### Create\n- **File Path:** [a.md](/a.md)\n\n````md\na\n````\n";
    let memos = read(plan).plan.memos;
    assert_eq!(memos.len(), 1);
    assert_eq!(memos[0].text, "na");
}

#[test]
fn p30_the_header_may_be_lines_and_the_title_another_heading() {
    check("header-lines", |reading| {
        reading.plan.field("Agent") == Some("Developer")
    });
    check("title-", |reading| !reading.plan.title.is_empty());
}

#[test]
fn p31_fields_are_known_without_bullets_and_by_other_keys() {
    check("fields-", edits);
    check("path-file", edits);
    check("path-german", edits);
}

#[test]
fn p33_commands_and_queries_may_stand_in_fields() {
    check("command-", |reading| {
        describe(&reading.plan.actions[0].kind) == "EXECUTE \"make test\\n\""
    });
    check("query-", |reading| {
        describe(&reading.plan.actions[0].kind) == "RESEARCH [\"rust diff crates\", \"myers diff\"]"
    });
}

#[test]
fn p34_labels_are_known_above_their_blocks() {
    check("labels-", |reading| {
        reading.plan.actions.len() == 1
            && describe(&reading.plan.actions[0].kind)
                .starts_with("EDIT src/app.py [(\"    return \\\"hi")
    });
}

#[test]
fn p37_the_forms_of_other_tools_are_named_and_never_read() {
    for (name, message) in [
        ("no-diff-in-edit", "is a diff"),
        ("no-conflict-markers", "has conflict markers"),
        ("no-json", "the reply is JSON"),
        ("no-tool-call", "a call of a tool"),
    ] {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/spellings");
        let reading = read(&std::fs::read_to_string(format!("{dir}/{name}.md")).unwrap());
        assert!(
            reading.diagnostics[0].message.contains(message),
            "{reading:?}"
        );
    }
}

/// Bug: the added title ended with LF, so that the other lines kept their CR.
#[test]
fn rp13_a_title_that_is_added_ends_like_the_other_lines() {
    let plan = "## Action Plan\n\n### `EXECUTE`\n- **Description:** d\n```sh\necho x > E\n```\n";
    for head in ["", "Title: x\n\n"] {
        let expected = format!("{head}{plan}");
        let expected: Vec<String> = actions(&read(&expected));
        for ending in ["\r\n", "\r"] {
            let text = format!("{head}{plan}").replace('\n', ending);
            assert_eq!(actions(&read(&text)), expected, "{text:?}");
            let cut = text.strip_suffix('\n').unwrap_or(&text);
            assert_eq!(actions(&read(cut)), expected, "{cut:?}");
        }
    }
}

/// Bug: a body that is indented by other characters than its fence kept its indentation.
#[test]
fn p13_the_columns_of_a_fence_are_removed_also_from_tabs() {
    let head = "# T\n\n## Rationale\n```text\nx\n```\n\n## Action Plan\n\n### `CREATE`\n- **File Path:** [v.py](/v.py)\n";
    let body = "    ```python\n    def a():\n\t    return 1\n    x = a()\n    ```\n";
    let reading = read(&format!("{head}{body}"));
    assert_eq!(reading.diagnostics, []);
    let plain = "```python\ndef a():\n    return 1\nx = a()\n```\n";
    assert_eq!(actions(&reading), actions(&read(&format!("{head}{plain}"))));
}

/// Bug: it became a part of the file, and did not run.
#[test]
fn rp9_an_action_in_another_spelling_behind_a_document_is_in_doubt() {
    let head = "# T\n\n## Rationale\n```text\nx\n```\n\n## Action Plan\n\n### `CREATE`\n- **File Path:** [notes.md](/notes.md)\n```markdown\none\n```\n\n";
    let headings = [
        "### Execute",
        "#### EXECUTE",
        "**EXECUTE**",
        "### \u{2705} EXECUTE",
        "## EXECUTE",
    ];
    for heading in headings {
        let plan = format!("{head}{heading}\n- **Description:** d\n```\necho x > E2\n```\n");
        let reading = read(&plan);
        let is_read = reading.plan.actions.len() == 2 && reading.diagnostics.is_empty();
        assert!(
            is_read || reading.repaired.level >= Level::Doubtful,
            "{plan}"
        );
        assert!(is_read || !reading.diagnostics.is_empty(), "{plan}");
        assert!(is_read || !preprocess(&plan).is_sure, "{plan}");
    }
}

fn actions(reading: &Reading) -> Vec<String> {
    let actions = reading.plan.actions.iter();
    actions.map(|action| describe(&action.kind)).collect()
}
