//! Parser cases collected from models and other tools.
//!
//! Each row: name, actions (or the whole plan), then the parsed actions and the diagnostics.
//! `differs` in a name means that another parser decides otherwise; `docs/formats/plan.md` explains
//! the decision.

use super::*;
use crate::plan::reading;
use crate::plan::samples::describe;

/// A row of actions that follow [`HEAD`].
type Row<'a> = (&'a str, &'a str, &'a [&'a str]);

/// Parses a text and formats its actions, then its diagnostics by line.
fn read_as(text: &str, offset: usize) -> Vec<String> {
    let reading = reading::read(text);
    let mut actual: Vec<String> = reading
        .plan
        .actions
        .iter()
        .map(|a| describe(&a.kind))
        .collect();
    actual.extend(
        reading
            .diagnostics
            .iter()
            .map(|w| format!("{} {}", w.line.saturating_sub(offset), w.message)),
    );

    actual
}

/// Compares all rows and reports every difference.
fn check_rows(rows: &[Row<'_>], head: &str) {
    let offset = head.lines().count();
    let mut wrong = Vec::new();
    for (name, text, expected) in rows {
        let actual = read_as(&format!("{head}{text}"), offset);
        if actual != *expected {
            wrong.push(format!(
                "    (\n        {name:?},\n        {text:?},\n        &{actual:?},\n    ),"
            ));
        }
    }

    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[rustfmt::skip]
const ACTIONS: &[Row<'_>] = &[
    ("PP5: words between actions", "### READ\n- Resource: a\n\nAnd then the next.\n\n### READ\n- Resource: b\n", &["READ a", "READ b"]),
    ("PP6: a rule between actions", "### READ\n- Resource: a\n\n---\n\n### READ\n- Resource: b\n", &["READ a", "READ b"]),
    ("PP7 differs: a content keeps its last line end", "### `CREATE`\n- **File Path:** [greet.txt](/greet.txt)\n- **Description:** d\n```text\nGood morning!\n```\n", &["CREATE greet.txt \"Good morning!\\n\" text"]),
    ("PP8: a leading slash is the project's root", "### `READ`\n- **Resource:** [docs/guide.md](/docs/guide.md)\n- **Description:** d\n", &["READ docs/guide.md"]),
    ("PP9: an address", "### `READ`\n- **Resource:** [x](https://example.com/docs)\n- **Description:** d\n", &["READ https://example.com/docs"]),
    ("PP10: plain", "### `READ`\n- **Resource:** src/a_b/__init__.py\n", &["READ src/a_b/__init__.py"]),
    ("PP10: in backticks", "### `READ`\n- **Resource:** `src/a_b/__init__.py`\n", &["READ src/a_b/__init__.py"]),
    ("PP10: a link", "### `READ`\n- **Resource:** [src/a_b/__init__.py](/src/a_b/__init__.py)\n", &["READ src/a_b/__init__.py"]),
    ("PP11: labels as headings", "### EDIT\n- File Path: a\n\n#### `FIND:`\n```\nx\n```\n#### `REPLACE:`\n```\ny\n```\n", &["EDIT a [(\"x\\n\", \"y\\n\")]"]),
    ("PP11: labels as lines", "### EDIT\n- File Path: a\n\n`FIND:`\n```\nx\n```\n`REPLACE:`\n```\ny\n```\n", &["EDIT a [(\"x\\n\", \"y\\n\")]"]),
    ("PP11: labels of both kinds", "### EDIT\n- File Path: a\n\n#### `FIND:`\n```\nx\n```\n`REPLACE:`\n```\ny\n```\n`FIND:`\n```\nv\n```\n#### `REPLACE:`\n```\nw\n```\n", &["EDIT a [(\"x\\n\", \"y\\n\"), (\"v\\n\", \"w\\n\")]"]),
    ("PP12: labels inside of a FIND", "### EDIT\n- File Path: a\n\n`FIND:`\n````\n#### `FIND:`\nx\n#### `REPLACE:`\n````\n`REPLACE:`\n````\ny\n````\n", &["EDIT a [(\"#### `FIND:`\\nx\\n#### `REPLACE:`\\n\", \"y\\n\")]"]),
    ("PP13: a FIND without its REPLACE", "### EDIT\n- File Path: a\n\n`FIND:`\n```\nx\n```\n\nThat is it.\n", &["EDIT a []", "4 FIND without a REPLACE behind it"]),
    ("PP14: an EDIT without pairs", "### EDIT\n- **File Path:** [a](/a)\n- **Description:** d\n", &["EDIT a []", "1 EDIT has no pair of FIND and REPLACE"]),
    ("PP15: indentation and blank lines of a pair", "### EDIT\n- File Path: a\n\n`FIND:`\n```\n    x\n\n\ty \n```\n`REPLACE:`\n```\n  z\n\n```\n", &["EDIT a [(\"    x\\n\\n\\ty \\n\", \"  z\\n\\n\")]"]),
    ("PP16: backslashes as separators", "### READ\n- **Resource:** [a\\\\b.toml](/a\\\\b.toml)\n", &["READ a/b.toml"]),
    ("PP16: the same without escapes", "### READ\n- **Resource:** [a\\b.toml](/a\\b.toml)\n", &["READ a/b.toml"]),
    ("PP17: a heading with broken marks", "### `READ**\n- Resource: a\n", &["READ a"]),
    ("PP17: a heading without marks", "### READ\n- Resource: a\n", &["READ a"]),
    ("PP17: the same of an EDIT", "### `EDIT**\n- File Path: a\n\n`FIND:`\n```\nx\n```\n`REPLACE:`\n```\ny\n```\n", &["EDIT a [(\"x\\n\", \"y\\n\")]"]),
    ("PP20: blanks behind the last action", "### READ\n- Resource: a\n    ", &["READ a"]),
    ("PP20: tabs behind the last action", "### READ\n- Resource: a\n\t\t", &["READ a"]),
    ("PP20: a line of blanks between actions", "### READ\n- Resource: a\n          \n### READ\n- Resource: b\n", &["READ a", "READ b"]),
    ("PP21: more words behind an opener", "### CREATE\n- File Path: a\n~~~~~~text and more words\nx\n~~~~~~\n", &["CREATE a \"x\\n\" text"]),
    ("PP22: a block behind a READ is a mistake", "### READ\n- Resource: a\n```\nx\n```\n", &["READ a", "3 READ has a code block"]),
    ("PP23: keys without bold", "### CREATE\n- Description: d\n- File Path: [a](/a)\n```\nx\n```\n", &["CREATE a \"x\\n\" "]),
    ("PP23: the colon outside of the bold", "### CREATE\n- **Description**: d\n- **File Path**: [a](/a)\n```\nx\n```\n", &["CREATE a \"x\\n\" "]),
    ("PP24: a command of several lines", "### EXECUTE\n- Description: d\n```sh\ncargo \\\n  test\ngit commit -m 'Subject\n\nBody && more'\n```\n", &["EXECUTE \"cargo \\\\\\n  test\\ngit commit -m 'Subject\\n\\nBody && more'\\n\""]),
    ("PP25: chains and pipes", "### EXECUTE\n- Description: d\n```sh\na && b || c; d | e & wait\n```\n", &["EXECUTE \"a && b || c; d | e & wait\\n\""]),
    ("PP26: variables in every spelling", "### EXECUTE\n- **Description:** d\n- **env:**\n    - `A`: \"one\"\n    - B: two\n    - `C`: 'three'\n    - D: a:b:c\n```sh\nls\n```\n", &["EXECUTE \"ls\\n\" A=one B=two C=three D=a:b:c"]),
    ("PP27: a RESEARCH without a query", "### RESEARCH\n- **Description:** d\n", &["RESEARCH []", "1 RESEARCH has no query"]),
    ("PP28: a query for each block, blank ones do not count", "### RESEARCH\n- **Description:** d\n```text\none\n```\n```\n \n```\n```\ntwo\nof two lines\n```\n", &["RESEARCH [\"one\", \"two\\nof two lines\"]"]),
    ("PP29: a message is its source", "### CHAT_WITH_USER\n**Bold** and [a link](https://example.com)\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\n## A heading\n\n```sh\nls  \n```\n", &["CHAT \"**Bold** and [a link](https://example.com)\\n\\n| a | b |\\n|---|:-:|\\n| 1 | 2 |\\n\\n## A heading\\n\\n```sh\\nls  \\n```\""]),
    ("PP30: an INVOKE without a message", "### INVOKE\n- **Agent:** Architect\n", &["1 INVOKE has no message"]),
    ("PP30: a CONCLUDE without a message", "### CONCLUDE\n- **Handoff Resources:**\n  - [a](/a)\n", &["1 CONCLUDE has no message"]),
    ("PP31: resources as a nested list", "### INVOKE\n- **Agent:** Architect\n- **Handoff Resources:**\n  - [a](/a)\n  - [b](/b)\n\nGo.\n", &["INVOKE Architect [a,b] \"Go.\""]),
    ("PP31: resources on one line", "### INVOKE\n- **Agent:** Architect\n- **Handoff Resources:** [a](/a), [b](/b)\n\nGo.\n", &["INVOKE Architect [a,b] \"Go.\""]),
    ("PP31: no resources", "### INVOKE\n- **Agent:** Architect\n- **Handoff Resources:** (Optional)\n\nGo.\n", &["INVOKE Architect [] \"Go.\""]),
    ("PP32: a second title", "### READ\n- Resource: a\n\n# Another\n", &["READ a", "4 a second level 1 heading"]),
    ("PP32: a title in a fence is ignored", "### CREATE\n- File Path: a.md\n```md\n# Another\n```\n", &["CREATE a.md \"# Another\\n\" md"]),
    ("PP34: a path with blanks in angle brackets", "### READ\n- **Resource:** [my file.md](</my file.md>)\n", &["READ my file.md"]),
    ("PP35 differs: text and destination must agree", "### READ\n- **Resource:** [a.md](/b.md)\n", &["2 the link's text `a.md` and its destination `/b.md` differ: \"[a.md](/b.md)\""]),
    ("PP37: a key twice", "### CREATE\n- **File Path:** [a](/a)\n- **File Path:** [b](/b)\n```\nx\n```\n", &["CREATE a \"x\\n\" ", "3 `File Path` appears twice"]),
    ("PP37: a key's name inside of a value", "### READ\n- **Resource:** [Description: a.md](</Description: a.md>)\n- **Description:** File Path: b\n", &["READ Description: a.md"]),
    ("PP39: a name of another format", "### MESSAGE\nHello.\n", &["CHAT \"Hello.\""]),
    ("PP39: a part of the rationale", "### SYNTHESIS\nHello.\n", &["1 unknown action `SYNTHESIS`"]),
    ("PP40: blanks for the line in CHAT_WITH_USER", "### `CHAT WITH USER`\nHello?\n", &["CHAT \"Hello?\""]),
    ("V22: a folder from the root", "### EXECUTE\n- cwd: /etc\n```\nls\n```\n", &["2 the path must be relative to the project's root: \"/etc\""]),
    ("V22: a folder with a drive", "### EXECUTE\n- cwd: C:\\Windows\n```\nls\n```\n", &["2 the path must be relative to the project's root: \"C:\\Windows\""]),
    ("V23: a folder above", "### EXECUTE\n- cwd: ../secret\n```\nls\n```\n", &["2 the path leaves the project with `..`: \"../secret\""]),
    ("V23: a path that goes up in the middle", "### READ\n- Resource: foo/../../bar\n", &["2 the path leaves the project with `..`: \"foo/../../bar\""]),
    ("V26: a file of git's", "### CREATE\n- **File Path:** [.git/config](/.git/config)\n```\nx\n```\n", &["2 `.git` is git's own: \"[.git/config](/.git/config)\""]),
    ("V26: a file of TeDDy's", "### CREATE\n- **File Path:** [.teddy/config.yaml](/.teddy/config.yaml)\n```\nx\n```\n", &["2 `.teddy` is TeDDy's own: \"[.teddy/config.yaml](/.teddy/config.yaml)\""]),
    ("V36: a path that starts with a dot", "### READ\n- **Resource:** [.pre-commit-config.yaml](/.pre-commit-config.yaml)\n", &["READ .pre-commit-config.yaml"]),
    ("V36: backslashes as separators", "### READ\n- **Resource:** src\\logic.py\n", &["READ src/logic.py"]),
    ("V36: `./` in front of a path", "### READ\n- **Resource:** ./src/logic.py\n", &["READ src/logic.py"]),
    ("M5 differs: more lines", "### CREATE\n- File Path: a\n- Append: true\n- Encoding: UTF-8\n\n```\na\n```\n", &["CREATE a \"a\\n\" ", "3 `Append` has no meaning in CREATE"]),
    ("M5 differs: every match", "### EDIT\n- File Path: a\n- Match All: true\n\n`FIND:`\n```\na\n```\n`REPLACE:`\n```\nb\n```\n", &["EDIT a [(\"a\\n\", \"b\\n\")]", "3 `Match All` has no meaning in EDIT"]),
];

#[rustfmt::skip]
const PLANS: &[Row<'_>] = &[
    ("PP1: nothing", "", &["1 the plan is empty"]),
    ("PP1: blanks", " \n\t\n", &["1 the plan is empty"]),
    ("PP2: no title", "## A heading\n- an item\n", &["1 unknown level 2 heading \"A heading\"", "1 the plan has no level 1 heading", "1 the plan has no `## Rationale`", "2 the plan has no `## Action Plan`"]),
    ("PP3: no rationale", "# T\n- **Status:** Green\n\n## Action Plan\n\n### READ\n- Resource: a\n", &["READ a"]),
    ("PP4: an unknown action", "# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n\n### `DANCE`\n- **Resource:** a\n", &["10 unknown action `DANCE`"]),
    ("PP18: words before the title", "I would do this:\n\n# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n\n### READ\n- Resource: a\n", &["READ a"]),
    ("PP18: words with a fence before the title", "First, look:\n\n```sh\nls\n```\n\n# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n\n### READ\n- Resource: a\n", &["READ a"]),
    ("PP18: words with ` # ` before the title", "This is issue # 12 of many.\n\n# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n\n### READ\n- Resource: a\n", &["READ a"]),
    ("PP19: a title without its blank", "#My title\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n\n### CREATE\n- File Path: a\n```sh\n#!/bin/sh\n##x\n```\n", &["CREATE a \"#!/bin/sh\\n##x\\n\" sh"]),
    ("PP33 differs: nothing in the header is asked for", "# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n\n### READ\n- Resource: a\n", &["READ a"]),
    ("VM1 to VM5: lines of memos", "# T\n\n## Rationale\n```\nr\n```\n\n## Memos\n````\n[+] A fact to keep. # it was agreed\n\n[-] Old. # why\n[+] Close issue #42\n[+] Use C# here\nno mark\n````\n\n## Action Plan\n\n### READ\n- Resource: a\n", &["READ a", "15 a memo starts with `[+]` or `[-]`: \"no mark\""]),
];

#[test]
fn every_case_of_actions_is_read_as_it_is_meant() {
    check_rows(ACTIONS, HEAD);
}

#[test]
fn every_case_of_whole_plans_is_read_as_it_is_meant() {
    check_rows(PLANS, "");
}

#[test]
fn pp3_and_pp4_the_outline_marks_what_is_wrong() {
    let outline = |text: &str| reading::read(text).outline.unwrap_or_default();
    assert!(
        outline("# T\n- a: b\n\n## Action Plan\n")
            .contains("[✗] [002] line 4: Heading (level 2): \"Action Plan\"")
    );
    assert!(
        outline(PLANS[4].1).contains("[✗] [004] line 10: Heading (level 3): \"`DANCE`\""),
        "{}",
        outline(PLANS[4].1)
    );
}

#[test]
fn pp36_the_status_is_known_in_every_spelling() {
    for value in ["Green 🟢", "Green", "🟢", "Green ðŸŸ¢", "green"] {
        let plan = parse(&HEAD.replace("Green 🟢", value)).0;
        assert_eq!(
            plan.status(),
            Some(crate::plan::PlanStatus::Green),
            "{value}"
        );
    }
}
