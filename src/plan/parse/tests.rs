//! The rules of `docs/formats/plan.md`, each with the spellings that models use.

use super::*;
use crate::plan::action::Kind;

/// A plan's beginning, down to the first action.
const HEAD: &str =
    "# T\n- **Status:** Green 🟢\n- **Plan Type:** X\n- **Agent:** Pathfinder\n\n## Rationale\n````text\nr\n````\n\n## Action Plan\n\n";

/// Compares what the actions behind [`HEAD`] are read as, and what is wrong with them; lines count from the first action's.
fn check(actions: &str, expected: &[&str]) {
    let (plan, wrong) = parse(&format!("{HEAD}{actions}"));
    let offset = HEAD.lines().count();
    let mut found: Vec<String> = plan.actions.iter().map(|a| say(&a.kind)).collect();
    found.extend(wrong.iter().map(|w| format!("{} [{}] {}", w.line.saturating_sub(offset), w.action, w.message)));
    assert_eq!(found, expected, "for {actions:?}");
}

/// Compares what is wrong with a whole plan.
fn check_plan(text: &str, expected: &[&str]) {
    let found: Vec<String> = parse(text).1.iter().map(|w| format!("{} {}", w.line, w.message)).collect();
    assert_eq!(found, expected, "for {text:?}");
}

/// Says what an action is, in one line.
fn say(kind: &Kind) -> String {
    let list = |items: &[crate::text::resource::Resource]| items.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    match kind {
        Kind::Create(c) => format!("CREATE {} {:?} {}{}", c.path, c.content, c.language, if c.overwrite { "!" } else { "" }),
        Kind::Read(r) => format!("READ {}", r.resource),
        Kind::Prune(p) => format!("PRUNE {}", p.resource),
        Kind::Edit(e) => {
            format!("EDIT {} {:?}", e.path, e.pairs.iter().map(|p| (p.find.as_str(), p.replace.as_str())).collect::<Vec<_>>())
        }
        Kind::Execute(e) => {
            let cwd = e.cwd.as_ref().map(|c| format!(" in {c}")).unwrap_or_default();
            let env: String = e.env.iter().map(|(k, v)| format!(" {k}={v}")).collect();
            let limit = e.timeout.map(|t| format!(" {}s", t.as_secs())).unwrap_or_default();
            format!("EXECUTE {:?}{cwd}{env}{limit}{}", e.command, if e.allow_failure { " may fail" } else { "" })
        }
        Kind::Research(r) => format!("RESEARCH {:?}", r.queries),
        Kind::ChatWithUser(c) => format!("CHAT {:?}", c.message),
        Kind::Invoke(i) => format!("INVOKE {} [{}] {:?}", i.agent, list(&i.resources), i.message),
        Kind::Conclude(c) => format!("CONCLUDE [{}] {:?}", list(&c.resources), c.message),
    }
}

/// A CREATE's heading and list.
const CREATE: &str = "### `CREATE`\n- **File Path:** [a](/a)\n- **Description:** d\n";
/// An EDIT's heading and list.
const EDIT: &str = "### `EDIT`\n- **File Path:** [a](/a)\n- **Description:** d\n";

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
    check_plan("# T\n\n## Rationale\n```\nr\n```\n\n## Action Plan\n", &["8 the action plan is empty"]);
    check_plan(
        "Sure!\n\n# T\n\n## Rationale\n```\nr\n```\n",
        &["1 \"Sure!\" stands before the title", "8 the plan has no `## Action Plan`"],
    );
}

#[test]
fn p1_sections_stand_once_and_in_order() {
    let plan = "# T\n## Memos\n## Rationale\n```\nr\n```\n## Action Plan\n### READ\n- Resource: a\n# U\n## Rationale\n```\nr\n```\n";
    check_plan(plan, &["3 `Rationale` stands behind `Memos`", "10 a second level 1 heading", "11 `Rationale` stands behind `Action Plan`"]);
    check_plan(
        "# T\n## Rationale\n```\nr\n```\n### READ\n- Resource: a\n## Action Plan\n### READ\n- Resource: a\n",
        &["6 READ stands outside of the action plan"],
    );
}

#[test]
fn p2_a_byte_order_mark_and_crlf_throughout_are_transport() {
    let text = format!("{HEAD}{CREATE}```\nx\ny\n```\n");
    let (plain, wrong) = parse(&text);
    assert_eq!(wrong, []);
    assert_eq!(parse(&text.replace('\n', "\r\n")), (plain.clone(), vec![]));
    assert_eq!(parse(&format!("\u{feff}{text}")), (plain, vec![]));
}

#[test]
fn p2_a_plan_with_mixed_line_ends_keeps_them_in_contents() {
    check(&format!("{CREATE}```\nx\r\ny\rz\n```\n"), &["CREATE a \"x\\r\\ny\\rz\\n\" "]);
}

#[test]
fn p4_the_title_and_its_list_are_the_header() {
    let (plan, wrong) = parse(&format!("{HEAD}### READ\n- Resource: a\n"));
    assert_eq!((wrong.len(), plan.title.as_str(), plan.field("agent"), plan.rationale.as_str()), (0, "T", Some("Pathfinder"), "r\n"));
    check_plan(
        "# T\nwords\n- no key\n\n## Rationale\n```\nr\n```\n## Action Plan\n### READ\n- Resource: a\n",
        &["2 unexpected text \"words\"", "3 unexpected text \"- no key\""],
    );
}

#[test]
fn p5_header_fields_are_optional_and_the_status_is_read_from_the_header_alone() {
    for (value, expected) in [("Green 🟢", true), ("Green", true), ("🟢", true), ("Green ðŸŸ¢", true), ("fine", false)] {
        let text = format!("# T\n- **Status:** {value}\n\n## Rationale\n```\n🟡\n```\n## Action Plan\n### READ\n- Resource: a\n");
        let (plan, wrong) = parse(&text);
        assert_eq!((plan.status() == Some(crate::plan::Status::Green), wrong), (expected, vec![]), "{value}");
    }
    check_plan("# T\n\n## Rationale\n```\nr\n```\n## Action Plan\n### READ\n- Resource: a\n", &[]);
}

#[test]
fn p6_the_rationale_is_one_block() {
    let tail = "\n## Action Plan\n### READ\n- Resource: a\n";
    check_plan(&format!("# T\n## Rationale\nwords\n{tail}"), &["2 `Rationale` has no code block", "3 unexpected text \"words\""]);
    check_plan(
        &format!("# T\n## Rationale\n```\nsaw:\n```\nerr\n```\nmore\n```\n{tail}"),
        &["6 unexpected text \"err\"", "7 `Rationale` has more than one code block"],
    );
    check_plan(&format!("# T\n## Rationale\n```\n \n```\n{tail}"), &["2 the rationale is empty"]);
    check_plan(&format!("# T\n## Rationale\n```\n1. Synthesis\nplain\n```\n{tail}"), &[]);
}

#[test]
fn p7_memos_are_one_block_of_lines() {
    let plan = |memos: &str| format!("# T\n## Rationale\n```\nr\n```\n## Memos\n{memos}## Action Plan\n### READ\n- Resource: a\n");
    let (read, wrong) = parse(&plan("```\n[+] A fact. # why\n\n[-] Old issue #42 closed # reason\n[+] Use C# here\n```\n"));
    let memos: Vec<(usize, &str)> = read.memos.iter().map(|m| (m.line, m.text.as_str())).collect();
    assert_eq!((memos, wrong), (vec![(8, "A fact."), (10, "Old issue #42 closed"), (11, "Use C# here")], vec![]));
    check_plan(&plan(""), &[]);
    check_plan(&plan("```\nx\n```\n"), &["8 a memo starts with `[+]` or `[-]`: \"x\""]);
    check_plan(&plan("None.\n\n"), &["6 `Memos` has no code block", "7 unexpected text \"None.\""]);
}

#[test]
fn p9_paths_are_read_from_links_code_and_plain_text() {
    for value in ["[src/__main__.py](/src/__main__.py)", "`src/__main__.py`", "src/__main__.py", "`[src/__main__.py](/src/__main__.py)`"] {
        check(&format!("### READ\n- **Resource:** {value}\n"), &["READ src/__main__.py"]);
    }
    for value in ["[my file.md](/my file.md)", "[my file.md](</my file.md>)", "[my file.md](/my%20file.md)"] {
        check(&format!("### READ\n- **Resource:** {value}\n"), &["READ my file.md"]);
    }
    check("### READ\n- **File Path:** [a\\b.toml](/a\\b.toml)\n", &["READ a/b.toml"]);
    check("### READ\n- **Resource:** [x](https://example.com/docs)\n", &["READ https://example.com/docs"]);
    check("### READ\n- **Resource:** <https://example.com/docs>\n", &["READ https://example.com/docs"]);
    check("### PRUNE\n- **Resource:** [.teddy/x/03/report.md](/.teddy/x/03/report.md)\n", &["PRUNE .teddy/x/03/report.md"]);
    check("### READ\n- **Resource:** [src/](/src/)\n", &["READ src"]);
}

#[test]
fn p10_a_name_that_deceives_or_leaves_the_project_is_refused() {
    let one = |value: &str, message: &str| {
        let (plan, wrong) = parse(&format!("{HEAD}{}", CREATE.replace("[a](/a)", value) + "```\nx\n```\n"));
        assert_eq!(plan.actions, [], "{value}");
        assert_eq!(wrong.iter().map(|w| w.message.as_str()).collect::<Vec<_>>(), [message], "{value}");
    };
    one("[a.md](/b.md)", "the link's text `a.md` and its destination `/b.md` differ: \"[a.md](/b.md)\"");
    one("[../x](/../x)", "the path leaves the project with `..`: \"[../x](/../x)\"");
    one("[&#46;&#46;/x](/&#46;&#46;/x)", "the path leaves the project with `..`: \"[&#46;&#46;/x](/&#46;&#46;/x)\"");
    one("[\\.\\./x](/\\.\\./x)", "the path leaves the project with `..`: \"[\\.\\./x](/\\.\\./x)\"");
    one("/etc/passwd", "the path must be relative to the project's root: \"/etc/passwd\"");
    one("[.git/config](/.git/config)", "`.git` is git's own: \"[.git/config](/.git/config)\"");
    one("[.teddy/x/03/report.md](/.teddy/x/03/report.md)", "`.teddy` is TeDDy's own: \"[.teddy/x/03/report.md](/.teddy/x/03/report.md)\"");
    one("a\u{202e}b", "the path has the character U+202E, which is not allowed in a path: \"a\\u{202e}b\"");
    one("[a](/a), [b](/b)", "there is more than one link: \"[a](/a), [b](/b)\"");
    one("[a][b]\n\n[b]: /etc/passwd", "the link is not of the form `[path](/path)`: \"[a][b]\"");
    one("https://example.com", "the path has an empty or `.` component: \"https://example.com\"");
}

#[test]
fn p11_create_has_one_block_and_its_bytes_survive() {
    check(&format!("{CREATE}```text\nHello, world!\n```\n"), &["CREATE a \"Hello, world!\\n\" text"]);
    check(&format!("{CREATE}```\n```\n"), &["CREATE a \"\" "]);
    check(&format!("{CREATE}```\nx\n\n```\n"), &["CREATE a \"x\\n\\n\" "]);
    check(&format!("{CREATE}~~~~~~text trailing extra\n\tx\u{c}\u{2028} \n~~~~~~\n"), &["CREATE a \"\\tx\\u{c}\\u{2028} \\n\" text"]);
    check(&format!("{CREATE}````markdown\n### `READ`\ntext\n````\n"), &["CREATE a \"### `READ`\\ntext\\n\" markdown"]);
    check(CREATE, &["1 [CREATE [a](/a)] CREATE has no code block"]);
    check(&format!("{CREATE}```\nx\n```\n```\ny\n```\n"), &["CREATE a \"x\\n\" ", "7 [CREATE a] CREATE has more than one code block"]);
    check(&format!("{CREATE}```py\nx\n```\nThat is all.\n"), &["CREATE a \"x\\n\" py", "7 [CREATE a] unexpected text \"That is all.\""]);
    check("### CREATE\n```\nx\n```\n", &["1 [CREATE] CREATE has no `File Path`"]);
}

#[test]
fn p12_create_says_what_a_block_cannot() {
    let with = |field: &str| format!("{CREATE}{field}\n```\nx\ny\n```\n");
    check(&with("- **Final Newline:** no"), &["CREATE a \"x\\ny\" "]);
    check(&with("- **Line Endings:** CRLF"), &["CREATE a \"x\\r\\ny\\r\\n\" "]);
    check(&with("- **Line Endings:** CRLF\n- **Final Newline:** no"), &["CREATE a \"x\\r\\ny\" "]);
    check(&with("- Overwrite: true"), &["CREATE a \"x\\ny\\n\" !"]);
    check(&with("- Overwrite: maybe"), &["CREATE a \"x\\ny\\n\" ", "4 [CREATE a] `Overwrite` is neither true nor false: \"maybe\""]);
}

#[test]
fn p13_an_indented_block_loses_the_indentation_of_its_fence() {
    check(&format!("{CREATE}  ```\n  x\n  ```\n"), &["CREATE a \"x\\n\" "]);
    check(&format!("{CREATE}\n    ```\n    x\n      y\n\n    ```\n"), &["CREATE a \"x\\n  y\\n\\n\" "]);
    check(&format!("{CREATE}\n\t```\n\tx\n\t```\n"), &["CREATE a \"x\\n\" "]);
    check(&format!("{CREATE}  ```make\n  all:\n  \tcc\n  ```\n"), &["CREATE a \"all:\\n\\tcc\\n\" make"]);
    check(
        &format!("{CREATE}  ```make\n  all:\n\tcc\n  ```\n"),
        &["CREATE a \"  all:\\n\\tcc\\n\" make", "4 [CREATE a] the lines of this code block are not all indented as far as its fence"],
    );
    check(
        "### CREATE\n- File Path: a\n\ntext\n\n  ```py\ndef f():\n    pass\n  ```\n",
        &["CREATE a \"def f():\\n    pass\\n\" py", "4 [CREATE a] unexpected text \"text\""],
    );
}

#[test]
fn p14_edit_alternates_find_and_replace() {
    let pair = "```\na\n```\n`REPLACE:`\n```\nb\n```\n";
    for label in ["\n`FIND:`\n", "`FIND:`\n", "\n#### `FIND:`\n", "\nFIND:\n", "\n**FIND:**\n", "\n**`FIND`:**\n", "- **FIND:**\n\n"] {
        check(&format!("{EDIT}{label}{pair}"), &["EDIT a [(\"a\\n\", \"b\\n\")]"]);
    }
    check(&format!("{EDIT}\n`FIND:`\n{pair}\n#### `FIND:`\n{pair}"), &["EDIT a [(\"a\\n\", \"b\\n\"), (\"a\\n\", \"b\\n\")]"]);
    check(
        &format!("{EDIT}\n`FIND:`\n````\n#### `FIND:`\n`REPLACE:`\n```\n````\n`REPLACE:`\n```\n```\n"),
        &["EDIT a [(\"#### `FIND:`\\n`REPLACE:`\\n```\\n\", \"\")]"],
    );
    check(&format!("{EDIT}- **FIND:**\n  ```\n  a\n  ```\n- **REPLACE:**\n  ```\n    b\n  ```\n"), &["EDIT a [(\"a\\n\", \"  b\\n\")]"]);
}

#[test]
fn p14_a_description_ends_where_the_label_starts() {
    let (plan, _) = parse(&format!("{HEAD}{EDIT}`FIND:`\n```\na\n```\n`REPLACE:`\n```\nb\n```\n"));
    assert_eq!(plan.actions[0].description(), "d");
}

#[test]
fn p14_an_edit_that_does_not_alternate_is_wrong() {
    let block = "```\na\n```\n";
    check(EDIT, &["EDIT a []", "1 [EDIT a] EDIT has no pair of FIND and REPLACE"]);
    check(
        &format!("{EDIT}\n`FIND:`\n{block}\nwords\n"),
        &["EDIT a []", "5 [EDIT a] FIND without a REPLACE behind it", "10 [EDIT a] unexpected text \"words\""],
    );
    check(&format!("{EDIT}\n`REPLACE:`\n{block}"), &["EDIT a []", "5 [EDIT a] REPLACE without a FIND before it"]);
    check(
        &format!("{EDIT}\n`FIND:`\n{block}`FIND:`\n{block}`REPLACE:`\n{block}"),
        &["EDIT a [(\"a\\n\", \"a\\n\")]", "9 [EDIT a] FIND where a REPLACE must stand: the FIND above has none"],
    );
    check(
        &format!("{EDIT}\n`FIND:`\n{block}and then\n\n`REPLACE:`\n{block}"),
        &["EDIT a [(\"a\\n\", \"a\\n\")]", "9 [EDIT a] unexpected text \"and then\""],
    );
    check(
        &format!("{EDIT}\n`FIND:`\n{block}{block}`REPLACE:`\n{block}"),
        &["EDIT a [(\"a\\n\", \"a\\n\")]", "9 [EDIT a] this code block has no label above it"],
    );
    check(&format!("{EDIT}\n`FIND:`\n```\n```\n`REPLACE:`\n{block}"), &["EDIT a [(\"\", \"a\\n\")]", "5 [EDIT a] the FIND block is empty"]);
}

#[test]
fn p14_a_label_and_a_fence_on_one_line_are_no_pair() {
    let (_, wrong) = parse(&format!("{HEAD}{EDIT}\n`FIND:` ```py\na\n```\n`REPLACE:`\n```\nb\n```\n"));
    assert!(wrong.iter().any(|w| w.message.contains("never closed")), "{wrong:?}");
}

#[test]
fn p15_execute_runs_its_block() {
    let list = "### `EXECUTE`\n- **Description:** d\n";
    check(&format!("{list}```shell\nls\n`````\n"), &["EXECUTE \"ls\\n\""]);
    check(
        &format!("{list}\n\n```sh\ngit commit -m 'Subject\n\nBody' && a || b; c | d & \\\n  e\n```\n"),
        &["EXECUTE \"git commit -m 'Subject\\n\\nBody' && a || b; c | d & \\\\\\n  e\\n\""],
    );
    check(
        &format!(
            "{list}- **Expected Outcome:** e\n- **cwd:** sub/dir\n- **env:**\n    - `VAR1`: \"value1\"\n    - VAR2: a:b=c\n  - 'X: y'\n- **Allow Failure:** true\n- **Timeout:** 30\n```\nls\n```\n"
        ),
        &["EXECUTE \"ls\\n\" in sub/dir VAR1=value1 VAR2=a:b=c 30s may fail", "5 [EXECUTE ls] this is no variable: \"'X: y'\""],
    );
    check(
        &format!("{list}- **cwd:** (Optional) `a/b`\n- env: (Optional)\n  - `A`: 'x'\n```\nls\n```\n"),
        &["EXECUTE \"ls\\n\" in a/b A=x"],
    );
    check(&format!("{list}- **cwd:** .\n```\nls\n```\n"), &["EXECUTE \"ls\\n\""]);
    check(&format!("{list}```\n \n```\n"), &["EXECUTE \" \\n\"", "1 [EXECUTE] EXECUTE has an empty code block"]);
}

#[test]
fn p15_a_command_runs_inside_the_project() {
    for (cwd, message) in [
        ("/etc", "the path must be relative to the project's root"),
        ("C:\\Windows", "the path must be relative to the project's root"),
        ("../secret", "the path leaves the project with `..`"),
        ("foo/../../bar", "the path leaves the project with `..`"),
    ] {
        let expected = format!("2 [EXECUTE] {message}: \"{cwd}\"");
        check(&format!("### EXECUTE\n- cwd: {cwd}\n```\nls\n```\n"), &[&expected]);
    }
    check(
        "### EXECUTE\n- Timeout: soon\n```\nls\n```\n",
        &["EXECUTE \"ls\\n\"", "2 [EXECUTE ls] `Timeout` is no number of seconds from 1 to 86400: \"soon\""],
    );
}

#[test]
fn p16_research_has_a_query_in_each_block() {
    let list = "### `RESEARCH`\n- **Description:** d\n";
    check(&format!("{list}```text\nq1\n```\n```text\nq2\nmore\n```\n\n```\n \n```\n"), &["RESEARCH [\"q1\", \"q2\\nmore\"]"]);
    check(list, &["RESEARCH []", "1 [RESEARCH] RESEARCH has no query"]);
    check(
        &format!("{list}```\nq1\n```\nand also\n```\nq2\n```\n"),
        &["RESEARCH [\"q1\", \"q2\"]", "6 [RESEARCH q1] unexpected text \"and also\""],
    );
}

#[test]
fn p16_read_and_prune_have_a_list_alone() {
    let read = "### `READ`\n- **Resource:** [b](/b)\n- **Description:** d\n";
    check(&format!("{read}\n---\n\n{read}"), &["READ b", "READ b"]);
    check(&format!("{read}          \n{read}\n    "), &["READ b", "READ b"]);
    check(&format!("{read}```\nx\n```\n"), &["READ b", "4 [READ b] READ has a code block"]);
    check(
        &format!("{read}\nLet me know if this looks good!\n"),
        &["READ b", "5 [READ b] unexpected text \"Let me know if this looks good!\""],
    );
    check(&format!("{read}Let me know if this looks good!\n"), &["READ b"]);
    check("### READ\n- **Resource**: [c](/c)\n- *Description:* d\n* **Other:** z\n", &["READ c"]);
    check("### READ\n", &["1 [READ] READ has no `Resource`"]);
}

#[test]
fn p17_a_message_is_the_source_down_to_the_next_action() {
    check(
        "### `CHAT_WITH_USER`\nHi **b**\n\n### Options\n- a\n\n| x |\n|---|\n\n```sh\nls\n```\nbye\n\n### READ\n- Resource: a\n",
        &["CHAT \"Hi **b**\\n\\n### Options\\n- a\\n\\n| x |\\n|---|\\n\\n```sh\\nls\\n```\\nbye\"", "READ a"],
    );
    check("### CHAT WITH USER\n- **Option:** a\n\n---\n\n### READ\n- Resource: c\n", &["CHAT \"- **Option:** a\"", "READ c"]);
    check("### PROMPT\nhello there\n---\n\n### READ\n- Resource: c\n", &["CHAT \"hello there\\n---\"", "READ c"]);
    check("### PROMPT\n\n", &["1 [CHAT_WITH_USER] CHAT_WITH_USER has no message"]);
    check("### PROMPT\nx\n\n## Words\n\n#### More\n", &["CHAT \"x\\n\\n## Words\\n\\n#### More\""]);
}

#[test]
fn p17_hand_overs_have_a_list_before_the_message() {
    check(
        "### `INVOKE`\n- **Agent:** Architect\n- **Handoff Resources:** (Optional)\n  - [docs/a.md](/docs/a.md)\n  - [https://a.example](https://a.example)\n\nGo on.\n",
        &["INVOKE Architect [docs/a.md,https://a.example] \"Go on.\""],
    );
    check("### INVOKE\n- **Agent:** Architect\nGo on.\n", &["INVOKE Architect [] \"Go on.\""]);
    check("### INVOKE\n- **Agent:** A\n- **Reference Files:** [a](/a), [b](/b)\n\nx\n", &["INVOKE A [a,b] \"x\""]);
    check("### RETURN\n- **Handoff Resources:** (Optional)\n\n- fixed a\n- fixed b\n", &["CONCLUDE [] \"- fixed a\\n- fixed b\""]);
    check("### `CONCLUDE`\n- fixed\n- **Result:** fine\n", &["CONCLUDE [] \"- fixed\\n- **Result:** fine\""]);
    check("### INVOKE\n\nx\n", &["1 [INVOKE] INVOKE has no `Agent`"]);
    check("### INVOKE\n- **Agent:** A\n", &["1 [INVOKE] INVOKE has no message"]);
    check("### CONCLUDE\n", &["1 [CONCLUDE] CONCLUDE has no message"]);
    check(
        "### CONCLUDE\n- **Handoff Resources:** [../a](/../a)\n\nx\n",
        &["CONCLUDE [] \"x\"", "2 [CONCLUDE x] the path leaves the project with `..`: \"../a\""],
    );
}

#[test]
fn p3_unknown_headings_and_words_between_actions_are_wrong() {
    let read = "### READ\n- Resource: a\n";
    check(
        &format!("{read}\n### `UNKNOWN_ACTION`\n- x\n\n{read}"),
        &["READ a", "READ a", "4 [UNKNOWN_ACTION] unknown action `UNKNOWN_ACTION`"],
    );
    check(&format!("{read}\n### MESSAGE\nhello\n"), &["READ a", "4 [MESSAGE] unknown action `MESSAGE`"]);
    check(&format!("words\n\n{read}"), &["READ a", "1 [] unexpected text \"words\""]);
    check(&format!("{read}\nSome free text\n\n{read}"), &["READ a", "READ a", "4 [READ a] unexpected text \"Some free text\""]);
    check(&format!("{read}\n## Notes\n"), &["READ a", "4 [] unknown level 2 heading \"Notes\""]);
    check(&format!("#### `READ`\n- Resource: a\n{read}"), &["READ a", "1 [] READ is a level 4 heading; actions are level 3"]);
    check("### PROMPT\nx\n\n### `DELETE`\n- **File Path:** a\n", &["CHAT \"x\"", "4 [DELETE] unknown action `DELETE`"]);
    let (_, wrong) = parse(&format!("{HEAD}### SYNTHESIS\n"));
    let allowed = "the actions are `CREATE`, `READ`, `EDIT`, `EXECUTE`, `RESEARCH`, `CHAT_WITH_USER`, `INVOKE`, `CONCLUDE`, `PRUNE`";
    assert_eq!(wrong[0].hint.as_deref(), Some(allowed));
}

#[test]
fn p18_a_swallowed_heading_is_found() {
    let read = "### READ\n- Resource: a\n";
    check(
        &format!("### PROMPT\n<details>\n{read}</details>\n"),
        &[
            "CHAT \"<details>\\n### READ\\n- Resource: a\\n</details>\"",
            "3 [CHAT_WITH_USER <details>] \"### READ\" looks like a heading, but Markdown reads it as part of HTML",
        ],
    );
    check(
        &format!("{read}\n  {read}"),
        &[
            "READ a",
            "4 [READ a] \"### READ\" looks like a heading, but Markdown reads it as part of a list",
            "5 [READ a] `Resource` stands here for the second time",
        ],
    );
    check(
        &format!("{read}\n###`READ`\n"),
        &["READ a", "4 [READ a] \"###`READ`\" looks like a heading, but Markdown reads it as part of text"],
    );
}

#[test]
fn p19_an_open_fence_is_wrong_and_says_what_it_swallows() {
    check(
        "### EXECUTE\n```shell\nls\n\n### `READ`\n- **Resource:** [b](/b)\n",
        &[
            "EXECUTE \"ls\\n\\n### `READ`\\n- **Resource:** [b](/b)\\n\"",
            "2 [EXECUTE ls] the code block that opens here is never closed; it swallows \"### `READ`\" in line 17",
        ],
    );
    let orphan = format!("{CREATE}```md `x`\nfoo\n```\n");
    check(
        &orphan,
        &[
            "CREATE a \"\" ",
            "4 [CREATE a] unexpected line that is no fence to Markdown \"```md `x`\"",
            "6 [CREATE a] the code block that opens here is never closed",
        ],
    );
}

#[test]
fn p20_fields_of_weight_stand_once_and_where_they_mean_something() {
    check(
        &format!("{CREATE}- **File Path:** [b](/b)\n```\nx\n```\n"),
        &["CREATE a \"x\\n\" ", "4 [CREATE a] `File Path` stands here for the second time"],
    );
    check("### READ\n- Resource: a\n- File Path: b\n", &["READ a", "3 [READ a] `Resource` and `File Path` mean the same here"]);
    check("### READ\n- Resource: a\n- Lines: 1-5\n", &["READ a", "3 [READ a] `Lines` has no meaning in READ"]);
    check("### READ\n- Resource: a\n- cwd: b\n", &["READ a", "3 [READ a] `cwd` has no meaning in READ"]);
    check(
        "### READ\n- Resource: a Description: x\n",
        &["2 [READ a Description: x] a path with a blank must be a link or stand in backticks: \"a Description: x\""],
    );
    check("### READ\n- Description: one\n- Description: two\n- Resource: a\n", &["READ a"]);
}

#[test]
fn p21_nul_is_wrong() {
    check(&format!("{CREATE}```\na\0b\n```\n"), &["CREATE a \"a\\0b\\n\" ", "5 [CREATE a] the plan has a NUL character"]);
}

#[test]
fn p22_limits_are_one_clear_mistake() {
    check_plan(&"x".repeat(MAX_PLAN + 1), &["1 the plan has 16777217 bytes; at most 16777216 are read"]);
    check_plan(&format!("{HEAD}{}", "### READ\n- Resource: a\n".repeat(2001)), &["1 the plan has 2001 actions; at most 2000 are read"]);
    for text in ["> ".repeat(100_000), "- ".repeat(100_000), "[".repeat(100_000), "*a ".repeat(50_000), "#".repeat(100_000)] {
        assert!(!parse(&text).1.is_empty());
    }
    check_plan(&("> ".repeat(100_000) + "x"), &["1 lists or quotations are nested 100001 deep; at most 64 are read"]);
}

#[test]
fn p22_a_flood_of_mistakes_is_cut_and_costs_no_time() {
    let started = std::time::Instant::now();
    let pieces = [
        "words\n\n",
        "- x\n",
        "- Description: x\n",
        "- File Path: a\n",
        "# T\n",
        "###`READ`\n\n",
        "`REPLACE:`\n\n",
        "```\n```\n",
        "  - `A`: b\n",
        "<!-- -->\n",
    ];
    for piece in pieces {
        for head in [EDIT.to_owned(), "### EXECUTE\n- env:\n".to_owned(), "### INVOKE\n- Handoff Resources:\n".to_owned()] {
            let (_, wrong) = parse(&format!("{HEAD}{head}{}", piece.repeat(2_000)));
            assert!(wrong.len() <= MAX_MISTAKES + 1, "{}", wrong.len());
        }
    }
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    let (_, wrong) = parse(&format!("{HEAD}{EDIT}{}", "words\n\n".repeat(300)));
    assert_eq!(wrong.last().map(|w| (w.line, w.message.as_str())), Some((416, "there are 100 more mistakes from here on")));
}

#[test]
fn a_large_plan_is_read_in_a_second() {
    let content = "let x = \"some line of code\";\n".repeat(1800);
    let text = format!("{HEAD}{}", format!("{CREATE}````rust\n{content}````\n\n").repeat(40));
    let started = std::time::Instant::now();
    let (plan, wrong) = parse(&text);
    assert_eq!((plan.actions.len(), wrong.len(), text.len() > 2_000_000), (40, 0, true));
    assert!(started.elapsed().as_secs_f64() < 1.0, "{:?}", started.elapsed());
}
