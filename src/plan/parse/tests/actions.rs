//! Parsing of each action (P9-P17).

use super::*;

#[test]
fn p9_paths_are_read_from_links_code_and_plain_text() {
    for value in [
        "[src/__main__.py](/src/__main__.py)",
        "`src/__main__.py`",
        "src/__main__.py",
        "`[src/__main__.py](/src/__main__.py)`",
    ] {
        check(
            &format!("### READ\n- **Resource:** {value}\n"),
            &["READ src/__main__.py"],
        );
    }

    for value in [
        "[my file.md](/my file.md)",
        "[my file.md](</my file.md>)",
        "[my file.md](/my%20file.md)",
    ] {
        check(
            &format!("### READ\n- **Resource:** {value}\n"),
            &["READ my file.md"],
        );
    }

    check(
        "### READ\n- **File Path:** [a\\b.toml](/a\\b.toml)\n",
        &["READ a/b.toml"],
    );
    check(
        "### READ\n- **Resource:** [x](https://example.com/docs)\n",
        &["READ https://example.com/docs"],
    );
    check(
        "### READ\n- **Resource:** <https://example.com/docs>\n",
        &["READ https://example.com/docs"],
    );
    check(
        "### PRUNE\n- **Resource:** [.teddy/x/03/report.md](/.teddy/x/03/report.md)\n",
        &["PRUNE .teddy/x/03/report.md"],
    );

    check("### READ\n- **Resource:** [src/](/src/)\n", &["READ src"]);
}

#[test]
fn p10_a_name_that_deceives_or_leaves_the_project_is_refused() {
    let one = |value: &str, message: &str| {
        let (plan, wrong) = parse(&format!(
            "{HEAD}{}",
            CREATE.replace("[a](/a)", value) + "```\nx\n```\n"
        ));
        assert_eq!(plan.actions, [], "{value}");
        assert_eq!(
            wrong.iter().map(|w| w.message.as_str()).collect::<Vec<_>>(),
            [message],
            "{value}"
        );
    };
    one(
        "[a.md](/b.md)",
        "the link's text `a.md` and its destination `/b.md` differ: \"[a.md](/b.md)\"",
    );
    one(
        "[../x](/../x)",
        "the path leaves the project with `..`: \"[../x](/../x)\"",
    );
    one(
        "[&#46;&#46;/x](/&#46;&#46;/x)",
        "the path leaves the project with `..`: \"[&#46;&#46;/x](/&#46;&#46;/x)\"",
    );
    one(
        "[\\.\\./x](/\\.\\./x)",
        "the path leaves the project with `..`: \"[\\.\\./x](/\\.\\./x)\"",
    );
    one(
        "/etc/passwd",
        "the path must be relative to the project's root: \"/etc/passwd\"",
    );
    one(
        "[.git/config](/.git/config)",
        "`.git` is git's own: \"[.git/config](/.git/config)\"",
    );
    one(
        "[.teddy/x/03/report.md](/.teddy/x/03/report.md)",
        "`.teddy` is TeDDy's own: \"[.teddy/x/03/report.md](/.teddy/x/03/report.md)\"",
    );
    one(
        "[a](/a), [b](/b)",
        "there is more than one link: \"[a](/a), [b](/b)\"",
    );
    one(
        "[a][b]\n\n[b]: /etc/passwd",
        "the link is not of the form `[path](/path)`: \"[a][b]\"",
    );

    one(
        "https://example.com",
        "a URL is not a file of the project: \"https://example.com\"",
    );
}

#[test]
fn p11_create_has_one_block_and_its_bytes_survive() {
    check(
        &format!("{CREATE}```text\nHello, world!\n```\n"),
        &["CREATE a \"Hello, world!\\n\" text"],
    );
    check(&format!("{CREATE}```\n```\n"), &["CREATE a \"\" "]);
    check(
        &format!("{CREATE}```\nx\n\n```\n"),
        &["CREATE a \"x\\n\\n\" "],
    );
    check(
        &format!("{CREATE}~~~~~~text trailing extra\n\tx\u{c}\u{2028} \n~~~~~~\n"),
        &["CREATE a \"\\tx\\u{c}\\u{2028} \\n\" text"],
    );
    check(
        &format!("{CREATE}````markdown\n### `READ`\ntext\n````\n"),
        &["CREATE a \"### `READ`\\ntext\\n\" markdown"],
    );
    check(CREATE, &["1 [CREATE [a](/a)] CREATE has no code block"]);
    check(
        &format!("{CREATE}```\nx\n```\n```\ny\n```\n"),
        &[
            "CREATE a \"x\\n\" ",
            "7 [CREATE a] CREATE has more than one code block",
        ],
    );
    check(
        &format!("{CREATE}```py\nx\n```\nThat is all.\n"),
        &[
            "CREATE a \"x\\n\" py",
            "7 [CREATE a] unexpected text \"That is all.\"",
        ],
    );

    check(
        "### CREATE\n```\nx\n```\n",
        &["1 [CREATE] CREATE has no `File Path`"],
    );
}

#[test]
fn p12_create_says_what_a_block_cannot() {
    let with = |field: &str| format!("{CREATE}{field}\n```\nx\ny\n```\n");
    check(&with("- **Final Newline:** no"), &["CREATE a \"x\\ny\" "]);
    check(
        &with("- **Line Endings:** CRLF"),
        &["CREATE a \"x\\r\\ny\\r\\n\" "],
    );
    check(
        &with("- **Line Endings:** CRLF\n- **Final Newline:** no"),
        &["CREATE a \"x\\r\\ny\" "],
    );
    check(&with("- Overwrite: true"), &["CREATE a \"x\\ny\\n\" !"]);

    check(
        &with("- Overwrite: maybe"),
        &[
            "CREATE a \"x\\ny\\n\" ",
            "4 [CREATE a] `Overwrite` is neither true nor false: \"maybe\"",
        ],
    );
}

#[test]
fn p13_an_indented_block_loses_the_indentation_of_its_fence() {
    check(
        &format!("{CREATE}  ```\n  x\n  ```\n"),
        &["CREATE a \"x\\n\" "],
    );
    check(
        &format!("{CREATE}\n    ```\n    x\n      y\n\n    ```\n"),
        &["CREATE a \"x\\n  y\\n\\n\" "],
    );
    check(
        &format!("{CREATE}\n\t```\n\tx\n\t```\n"),
        &["CREATE a \"x\\n\" "],
    );
    check(
        &format!("{CREATE}  ```make\n  all:\n  \tcc\n  ```\n"),
        &["CREATE a \"all:\\n\\tcc\\n\" make"],
    );
    check(
        &format!("{CREATE}  ```make\n  all:\n\tcc\n  ```\n"),
        &[
            "CREATE a \"  all:\\n\\tcc\\n\" make",
            "4 [CREATE a] the lines of this code block are not all indented as far as its fence",
        ],
    );

    check(
        "### CREATE\n- File Path: a\n\ntext\n\n  ```py\ndef f():\n    pass\n  ```\n",
        &[
            "CREATE a \"def f():\\n    pass\\n\" py",
            "4 [CREATE a] unexpected text \"text\"",
        ],
    );
}

#[test]
fn p15_execute_runs_its_block() {
    let list = "### `EXECUTE`\n- **Description:** d\n";
    check(
        &format!("{list}```shell\nls\n`````\n"),
        &["EXECUTE \"ls\\n\""],
    );
    check(
        &format!(
            "{list}\n\n```sh\ngit commit -m 'Subject\n\nBody' && a || b; c | d & \\\n  e\n```\n"
        ),
        &["EXECUTE \"git commit -m 'Subject\\n\\nBody' && a || b; c | d & \\\\\\n  e\\n\""],
    );
    check(
        &format!(
            "{list}- **Expected Outcome:** e\n- **cwd:** sub/dir\n- **env:**\n    - `VAR1`: \"value1\"\n    - VAR2: a:b=c\n  - 'X: y'\n- **Allow Failure:** true\n- **Timeout:** 30\n```\nls\n```\n"
        ),
        &[
            "EXECUTE \"ls\\n\" in sub/dir VAR1=value1 VAR2=a:b=c 30s may fail",
            "5 [EXECUTE ls] this is not a variable: \"'X: y'\"",
        ],
    );
    check(
        &format!(
            "{list}- **cwd:** (Optional) `a/b`\n- env: (Optional)\n  - `A`: 'x'\n```\nls\n```\n"
        ),
        &["EXECUTE \"ls\\n\" in a/b A=x"],
    );
    check(
        &format!("{list}- **cwd:** .\n```\nls\n```\n"),
        &["EXECUTE \"ls\\n\""],
    );

    check(&format!("{list}```\n \n```\n"), &["EXECUTE \" \\n\""]);
}

#[test]
fn p15_a_command_runs_inside_the_project() {
    for (cwd, message) in [
        ("/etc", "the path must be relative to the project's root"),
        (
            "C:\\Windows",
            "the path must be relative to the project's root",
        ),
        ("../secret", "the path leaves the project with `..`"),
        ("foo/../../bar", "the path leaves the project with `..`"),
    ] {
        let expected = format!("2 [EXECUTE] {message}: \"{cwd}\"");
        check(
            &format!("### EXECUTE\n- cwd: {cwd}\n```\nls\n```\n"),
            &[&expected],
        );
    }

    check(
        "### EXECUTE\n- Timeout: soon\n```\nls\n```\n",
        &[
            "EXECUTE \"ls\\n\"",
            "2 [EXECUTE ls] `Timeout` is not a number of seconds from 1 to 86400: \"soon\"",
        ],
    );
}

#[test]
fn p16_research_has_a_query_in_each_block() {
    let list = "### `RESEARCH`\n- **Description:** d\n";
    check(
        &format!("{list}```text\nq1\n```\n```text\nq2\nmore\n```\n\n```\n \n```\n"),
        &["RESEARCH [\"q1\", \"q2\\nmore\"]"],
    );
    check(list, &["RESEARCH []", "1 [RESEARCH] RESEARCH has no query"]);

    check(
        &format!("{list}```\nq1\n```\nand also\n```\nq2\n```\n"),
        &[
            "RESEARCH [\"q1\", \"q2\"]",
            "6 [RESEARCH q1] unexpected text \"and also\"",
        ],
    );
}

#[test]
fn p16_read_and_prune_have_a_list_alone() {
    let read = "### `READ`\n- **Resource:** [b](/b)\n- **Description:** d\n";
    check(&format!("{read}\n---\n\n{read}"), &["READ b", "READ b"]);
    check(
        &format!("{read}          \n{read}\n    "),
        &["READ b", "READ b"],
    );
    check(
        &format!("{read}```\nx\n```\n"),
        &["READ b", "4 [READ b] READ has a code block"],
    );
    check(
        &format!("{read}\nLet me know if this looks good!\n"),
        &[
            "READ b",
            "5 [READ b] unexpected text \"Let me know if this looks good!\"",
        ],
    );
    check(
        &format!("{read}Let me know if this looks good!\n"),
        &["READ b"],
    );
    check(
        "### READ\n- **Resource**: [c](/c)\n- *Description:* d\n* **Other:** z\n",
        &["READ c"],
    );

    check("### READ\n", &["1 [READ] READ has no `Resource`"]);
}

#[test]
fn p17_a_message_is_the_source_down_to_the_next_action() {
    check(
        "### `CHAT_WITH_USER`\nHi **b**\n\n### Options\n- a\n\n| x |\n|---|\n\n```sh\nls\n```\nbye\n\n### READ\n- Resource: a\n",
        &[
            "CHAT \"Hi **b**\\n\\n### Options\\n- a\\n\\n| x |\\n|---|\\n\\n```sh\\nls\\n```\\nbye\"",
            "READ a",
        ],
    );
    check(
        "### CHAT WITH USER\n- **Option:** a\n\n---\n\n### READ\n- Resource: c\n",
        &["CHAT \"- **Option:** a\"", "READ c"],
    );
    check(
        "### PROMPT\nhello there\n---\n\n### READ\n- Resource: c\n",
        &["CHAT \"hello there\\n---\"", "READ c"],
    );
    check(
        "### PROMPT\n\n",
        &["1 [CHAT_WITH_USER] CHAT_WITH_USER has no message"],
    );

    check(
        "### PROMPT\nx\n\n## Words\n\n#### More\n",
        &["CHAT \"x\\n\\n## Words\\n\\n#### More\""],
    );
}

#[test]
fn p17_hand_overs_have_a_list_before_the_message() {
    check(
        "### `INVOKE`\n- **Agent:** Architect\n- **Handoff Resources:** (Optional)\n  - [docs/a.md](/docs/a.md)\n  - [https://a.example](https://a.example)\n\nGo on.\n",
        &["INVOKE Architect [docs/a.md,https://a.example] \"Go on.\""],
    );
    check(
        "### INVOKE\n- **Agent:** Architect\nGo on.\n",
        &["INVOKE Architect [] \"Go on.\""],
    );
    check(
        "### INVOKE\n- **Agent:** A\n- **Reference Files:** [a](/a), [b](/b)\n\nx\n",
        &["INVOKE A [a,b] \"x\""],
    );
    check(
        "### RETURN\n- **Handoff Resources:** (Optional)\n\n- fixed a\n- fixed b\n",
        &["CONCLUDE [] \"- fixed a\\n- fixed b\""],
    );
    check(
        "### `CONCLUDE`\n- fixed\n- **Result:** fine\n",
        &["CONCLUDE [] \"- fixed\\n- **Result:** fine\""],
    );
    check("### INVOKE\n\nx\n", &["1 [INVOKE] INVOKE has no `Agent`"]);
    check(
        "### INVOKE\n- **Agent:** A\n",
        &["1 [INVOKE] INVOKE has no message"],
    );
    check("### CONCLUDE\n", &["1 [CONCLUDE] CONCLUDE has no message"]);

    check(
        "### CONCLUDE\n- **Handoff Resources:** [../a](/../a)\n\nx\n",
        &[
            "CONCLUDE [] \"x\"",
            "2 [CONCLUDE x] the path leaves the project with `..`: \"../a\"",
        ],
    );
}
