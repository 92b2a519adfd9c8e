//! Plans that look different to a reader than to the parser, or cannot be parsed. Each is refused
//! with a line number and changes nothing.

use super::ground::{Ground, create, edit, plan, read, run};

/// A name, a plan and the expected message.
type Row = (&'static str, String, &'static str);

/// Text that looks like a heading and isn't one, and headings that look like others.
fn headings() -> Vec<Row> {
    let message = |text: &str| plan(&format!("### `CHAT_WITH_USER`\n\n{text}\n"));
    vec![
        (
            "an action with a letter of another alphabet",
            plan("### `\u{415}XECUTE`\n- **Description:** d\n```sh\ntouch evil\n```\n"),
            "unknown action",
        ),
        (
            "an action in wide letters",
            plan(
                "### `\u{ff25}\u{ff38}\u{ff25}\u{ff23}\u{ff35}\u{ff34}\u{ff25}`\n```sh\ntouch evil\n```\n",
            ),
            "unknown action",
        ),
        (
            "an action with an invisible letter",
            plan("### `EXE\u{200b}CUTE`\n```sh\ntouch evil\n```\n"),
            "EXE\\u{200b}CUTE",
        ),
        (
            "an action in another direction",
            plan("### `\u{202e}ETUCEXE`\n```sh\ntouch evil\n```\n"),
            "\\u{202e}ETUCEXE",
        ),
        (
            "an action in entities",
            plan("### &#69;XECUTE\n```sh\ntouch evil\n```\n"),
            "unknown action",
        ),
        (
            "an action with a hidden end",
            plan("### `EXECUTE` <!-- x -->\n```sh\ntouch evil\n```\n"),
            "unknown action",
        ),
        (
            "an action that is underlined",
            plan(&format!(
                "{}EXECUTE\n-------\n```sh\ntouch evil\n```\n",
                read("[a.txt](/a.txt)")
            )),
            "",
        ),
        (
            "a section that is underlined",
            plan("x").replace("## Action Plan\n", "Action Plan\n-----------\n"),
            "",
        ),
        (
            "an action in a quotation",
            plan(&format!("> {}", run("touch evil").replace('\n', "\n> "))),
            "unexpected text",
        ),
        (
            "an action in a list",
            plan(&format!(
                "- x\n\n  {}",
                run("touch evil").replace('\n', "\n  ")
            )),
            "Markdown reads it as part of a list",
        ),
        (
            "an action in a comment",
            plan(&format!("<!--\n{}-->\n", run("touch evil"))),
            "Markdown reads it as part of HTML",
        ),
        (
            "an action behind a script",
            plan(&format!("<script>\n\n{}", run("touch evil"))),
            "HTML",
        ),
        (
            "an action that is indented code",
            plan(&format!("    {}", run("touch evil"))),
            "",
        ),
        (
            "an action at level 7",
            plan(&run("touch evil").replace("### ", "####### ")),
            "",
        ),
        (
            "an action behind a form feed",
            plan(&format!("\u{c}{}", run("touch evil"))),
            "",
        ),
        (
            "an action in a message, in HTML",
            message("<div>\n### `EXECUTE`\n```sh\ntouch evil\n```\n</div>"),
            "HTML",
        ),
        (
            "an action in a message, in a list",
            message("- a\n\n  ### `EXECUTE`\n  ```sh\n  touch evil\n  ```"),
            "list",
        ),
    ]
}

/// Duplicate fields and blocks, and ones that are not visible when rendered.
fn fields() -> Vec<Row> {
    let field =
        |line: &str| plan(&create("[new.txt](/new.txt)").replace("- **Description:** d", line));
    vec![
        (
            "a second path behind blank lines",
            field("\n\n\n- **File Path:** [b.txt](/b.txt)"),
            "appears twice",
        ),
        (
            "a second path in other letters",
            field("- **file_path**: `b.txt`"),
            "appears twice",
        ),
        (
            "a path in a nested list",
            plan(
                "### `CREATE`\n- **Description:** d\n  - **File Path:** [b.txt](/b.txt)\n```\nx\n```\n",
            ),
            "has no `File Path`",
        ),
        (
            "a path by reference",
            plan(&format!("{}\n[a]: /a.txt\n", create("[a]"))),
            "",
        ),
        (
            "a path that is a picture",
            plan(&create("![new.txt](/new.txt)")),
            "",
        ),
        (
            "a path behind a comment",
            plan(&create("<!-- [a](/a) -->[new.txt](/new.txt)")),
            "",
        ),
        (
            "a number without end",
            plan(
                &run("true").replace("** d", &format!("** d\n- **Timeout:** {}", "9".repeat(500))),
            ),
            "`Timeout` is not a number",
        ),
        (
            "a number below zero",
            plan(&run("true").replace("** d", "** d\n- **Timeout:** -1")),
            "`Timeout` is not a number",
        ),
        (
            "a number with a sign of another alphabet",
            plan(&run("true").replace("** d", "** d\n- **Timeout:** \u{663}\u{660}")),
            "`Timeout` is not a number",
        ),
        (
            "a number that is none",
            plan(&run("true").replace("** d", "** d\n- **Timeout:** NaN")),
            "`Timeout` is not a number",
        ),
        (
            "a yes that is none",
            plan(
                &create("[new.txt](/new.txt)").replace("** d", "** d\n- **Overwrite:** y\u{435}s"),
            ),
            "neither true nor false",
        ),
        (
            "a block in a quotation",
            plan(&format!(
                "### `EXECUTE`\n- **Description:** d\n> ```sh\n> touch evil\n> ```\n{}",
                run("true")
            )),
            "quotation",
        ),
        (
            "a block that a comment hides",
            plan("### `EXECUTE`\n- **Description:** d\n<!--\n```sh\ntouch evil\n```\n-->\n"),
            "",
        ),
        (
            "two blocks of which one may be output",
            plan("### `EXECUTE`\n- **Description:** d\n```sh\ntrue\n```\n```\ntouch evil\n```\n"),
            "",
        ),
        (
            "a block that is never closed",
            plan("### `EXECUTE`\n- **Description:** d\n```sh\n"),
            "",
        ),
        (
            "a memo over two lines",
            plan("x").replace(
                "## Action Plan",
                "## Memos\n````\n[+] a\u{2028}[-] b\n````\n\n## Action Plan",
            ),
            "control character",
        ),
        (
            "a pair with a path of its own",
            plan(&edit("[a.txt](/a.txt)").replace(
                "#### `REPLACE:`",
                "- **File Path:** [src/main.rs](/src/main.rs)\n\n#### `REPLACE:`",
            )),
            "",
        ),
    ]
}

/// Texts on which a slow parser would hang.
#[allow(clippy::too_many_lines, reason = "a table")]
fn texts() -> Vec<Row> {
    let many = if crate::WORLDS { 20_000 } else { 4_000 };
    let nested: String = (3..500).map(|n| format!("{}\n", "`".repeat(n))).collect();
    vec![
        (
            "fences within fences",
            plan(&format!(
                "{}### `EXECUTE`\n{nested}touch evil\n",
                create("../x")
            )),
            "",
        ),
        (
            "as many openers as there is room for",
            plan(&"```sh\n".repeat(many)),
            "",
        ),
        (
            "as many fences of either kind",
            plan(&"~~~\n```\n".repeat(many / 2)),
            "",
        ),
        (
            "a fence as long as a book",
            plan(&format!(
                "{}### `EXECUTE`\n{}\ntouch evil\n",
                create("../x"),
                "`".repeat(10 * many)
            )),
            "",
        ),
        (
            "a title as long as a book",
            plan(&create("../x")).replace("# Hostile", &format!("# {}", "x".repeat(10 * many))),
            "leaves the project",
        ),
        (
            "a name as long as a book",
            plan(&create(&"a".repeat(10 * many))),
            "too long",
        ),
        (
            "a link with as many brackets",
            plan(&create(&format!(
                "{}a{}(/a)",
                "[".repeat(many),
                "]".repeat(many)
            ))),
            "",
        ),
        (
            "a value of backslashes",
            plan(&create(&"\\".repeat(many))),
            "",
        ),
        (
            "a value of entities",
            plan(&create(&"&#46;&#46;/".repeat(many / 2))),
            "too long",
        ),
        (
            "as many fields",
            plan(&format!(
                "### `CREATE`\n{}```\nx\n```\n",
                "- **File Path:** [a](/a)\n- **File Path:** [b](/b)\n".repeat(500)
            )),
            "appears twice",
        ),
        (
            "as many variables",
            plan(&format!(
                "### `EXECUTE`\n- **env:**\n{}```\ntrue\n```\n",
                "  - `PATH`: x\n".repeat(1000)
            )),
            "a plan may not set",
        ),
        (
            "quotations in lists in quotations",
            plan(&format!("{}x\n", "> - ".repeat(many / 4))),
            "nested",
        ),
        (
            "lines that only return",
            plan(&create("../x")).replace('\n', "\r"),
            "leaves the project",
        ),
        (
            "returns in front of every action",
            plan(&create("../x").replace('\n', "\r\r\n")),
            "",
        ),
        (
            "a mark in front of every line",
            plan(&run("touch evil")).replace('\n', "\n\u{feff}"),
            "",
        ),
        (
            "NUL in a heading",
            plan(&run("touch evil").replace("`EXECUTE`", "`EXE\0CUTE`")),
            "",
        ),
        (
            "NUL between actions",
            plan(&format!(
                "{}\0\n{}",
                read("[a.txt](/a.txt)"),
                read("[a.txt](/a.txt)")
            )),
            "NUL",
        ),
        (
            "one long line of headings",
            plan(&"### `EXECUTE` ".repeat(many)),
            "",
        ),
    ]
}

/// Checks that every row is refused within a time limit by a diagnostic with a line number, and
/// that nothing changes.
fn refused(rows: Vec<Row>) {
    let ground = Ground::new();
    ground.ok(&["context", "add", "a.txt"]);
    let before = ground.state();
    let mut wrong = Vec::new();
    for (name, text, expected) in rows {
        let tried = ground.execute(text);
        let diagnostics = tried.json["diagnostics"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let placed = diagnostics
            .iter()
            .all(|d| d["line"].as_u64().is_some_and(|line| line > 0));
        let worded = diagnostics.iter().any(|d| {
            d["message"]
                .as_str()
                .is_some_and(|message| message.contains(expected))
        });
        if tried.code != 3 || !placed || !worded || ground.state() != before {
            let said: String = tried.words.chars().take(1500).collect();
            wrong.push(format!(
                "{name}: exit code {}, nothing says {expected:?}: {said}",
                tried.code
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_heading_is_what_it_looks_like_or_a_mistake() {
    refused(headings());
}

#[test]
fn promise_d10_a_heading_that_is_read_in_another_spelling_is_named_before_it_runs() {
    let evil = run("touch evil");
    for (name, text) in [
        ("without a blank", evil.replace("### ", "###")),
        ("a no-break space", evil.replace("### ", "###\u{a0}")),
        ("level 2", evil.replace("### ", "## ")),
        ("in tags", format!("<details>\n{evil}</details>\n")),
    ] {
        let ground = Ground::new();
        let tried = ground.execute(plan(&text));
        let said = tried.words.contains("read in another spelling")
            && tried.words.contains("$ touch evil");
        assert!(tried.code == 0 && said, "{name}: {}", tried.words);
    }
}

#[test]
fn a_field_says_one_thing_or_is_a_mistake() {
    refused(fields());
}

#[test]
fn a_text_that_no_reader_expects_is_a_mistake() {
    refused(texts());
}

#[test]
fn a_letter_of_another_alphabet_in_a_path_is_shown_as_it_is_and_no_twin() {
    let ground = Ground::new();
    // A Cyrillic `a` instead of the Latin one: a different file for git.
    let tried = ground.execute(plan(&create("[\u{430}.txt](/\u{430}.txt)")));
    assert_eq!(tried.code, 0, "{}", tried.words);
    assert_eq!(
        (
            ground.repo.read("a.txt").as_str(),
            ground.repo.read("\u{430}.txt").as_str()
        ),
        ("one\n", "evil\n")
    );
}
