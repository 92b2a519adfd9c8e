//! Replies and the expected repair. The numbers are those of `docs/formats/repair.md`.

use super::Level::{self, Clean, Doubtful, Hopeless, Refenced, Repaired};
use super::repair;
use crate::plan::reading;
use crate::plan::samples::describe;

/// Placeholders of the cases: the part above the actions, and actions.
const PLACEHOLDERS: [(&str, &str); 9] = [
    (
        "{head}",
        "{title}\n## Rationale\n````text\nAll is well.\n````\n\n## Action Plan\n\n",
    ),
    ("{title}", "# Add a greeting\n{meta}"),
    (
        "{meta}",
        "- **Status:** Green 🟢\n- **Plan Type:** Implementation\n- **Agent:** Developer\n",
    ),
    (
        "{create}",
        "### `CREATE`\n- **File Path:** [notes.md](/notes.md)\n- **Description:** Do it.\n",
    ),
    (
        "{hello}",
        "### `CREATE`\n- **File Path:** [hello](/hello)\n- **Description:** Do it.\n",
    ),
    (
        "{second}",
        "### `CREATE`\n- **File Path:** [second](/second)\n- **Description:** Do it.\n",
    ),
    (
        "{edit}",
        "### `EDIT`\n- **File Path:** [notes.md](/notes.md)\n- **Description:** Do it.\n",
    ),
    ("{execute}", "### `EXECUTE`\n- **Description:** Do it.\n"),
    ("{research}", "### `RESEARCH`\n- **Description:** Do it.\n"),
];
/// An action without a block.
const READ: &str = "### `READ`\n- **Resource:** [second](/second)\n- **Description:** Do it.\n";

/// Expands the placeholders of a case; `{crlf}` selects CRLF line endings.
pub(super) fn expand(case: &str) -> String {
    let text = PLACEHOLDERS
        .iter()
        .fold(case.replace("{read}", READ), |text, (word, part)| {
            text.replace(word, part)
        });
    match text.strip_prefix("{crlf}") {
        Some(text) => text.replace('\n', "\r\n"),
        None => text,
    }
}

/// Compares the repair of a reply, and checks that repairing the result changes nothing.
pub(super) fn check(name: &str, reply: &str, level: Level, expected: &str) {
    let repaired = repair(&expand(reply));
    assert_eq!(repaired.text, expand(expected), "{name}");
    assert_eq!(repaired.level, level, "{name}: {:?}", repaired.notes);
    assert_eq!(
        repair(&repaired.text).text,
        repaired.text,
        "{name}, once more"
    );
}

fn check_outcome(name: &str, reply: &str, expected: &[&str]) {
    let read = reading::read(&expand(reply));
    let actions = read.plan.actions.iter();
    let mut actual: Vec<String> = actions.map(|action| describe(&action.kind)).collect();
    let wrong = read.diagnostics.iter();
    actual.extend(wrong.map(|wrong| format!("{} {}", wrong.line, wrong.message)));
    assert_eq!(actual, expected, "{name}");
}

/// Replies that are not changed, with what the parser finds in each: actions, and diagnostics with their
/// lines.
#[rustfmt::skip]
const UNCHANGED: [(&str, &str, Level, &[&str]); 46] = [
    ("F03: queries that follow each other are not joined", "{head}{research}```text\nq1\n```\n```text\nq2\n```\n", Clean, &["RESEARCH [\"q1\", \"q2\"]"]),
    ("F05: a label behind a blank line", "{head}{edit}\n`FIND:`\n```\na\n```\n`REPLACE:`\n```\nb\n```\n", Clean, &["EDIT notes.md [(\"a\\n\", \"b\\n\")]"]),
    ("F08: a closer may be longer", "{head}{execute}```shell\nmake\n`````\n\n{read}", Clean, &["EXECUTE \"make\\n\"", "READ second"]),
    ("F11: a block inside the last list item is the reader's business", "{head}{hello}  ```\n  x\n  ```\n", Clean, &["CREATE hello \"x\\n\" "]),
    ("F12: the same, four columns in", "{head}{hello}\n    ```\n    x\n    ```\n", Clean, &["CREATE hello \"x\\n\" "]),
    ("F14: a nested list", "{head}{execute}- **Expected Outcome:** e\n- **cwd:** sub/dir\n- **env:**\n    - `VAR1`: \"value1\"\n    - `VAR2`: \"value2\"\n````shell\nmake\n````\n", Clean, &["EXECUTE \"make\\n\" in sub/dir VAR1=value1 VAR2=value2"]),
    ("F15: underscores in a path", "{head}### `READ`\n- **Resource:** src/__main__.py\n- **Description:** Do it.\n", Clean, &["READ src/__main__.py"]),
    ("F16: a rule between actions", "{head}{read}\n---\n\n{read}- **Description:** Do it.\n", Clean, &["READ second", "READ second"]),
    ("F17: an underlined line in a message does not start a section", "{head}### `CHAT_WITH_USER`\nGood morning\n---\n\n{read}- **Description:** Do it.\n", Clean, &["CHAT \"Good morning\\n---\"", "READ second"]),
    ("F18: a heading with broken marks", "{head}### `READ**\n- **Resource:** [third](/third)\n", Clean, &["READ third"]),
    ("F19: a path with a blank", "{head}### `READ`\n- **Resource:** [my file.md](/my file.md)\n- **Description:** Do it.\n", Clean, &["READ my file.md"]),
    ("F20: a path in angle brackets", "{head}### `READ`\n- **Resource:** [my file.md](</my file.md>)\n- **Description:** Do it.\n", Clean, &["READ my file.md"]),
    ("F21: a path with percent signs", "{head}### `READ`\n- **Resource:** [my file.md](/my%20file.md)\n- **Description:** Do it.\n", Clean, &["READ my file.md"]),
    ("F22: a link in backticks", "{head}### `READ`\n- **Resource:** `[third](/third)`\n- **Description:** Do it.\n", Clean, &["READ third"]),
    ("F23: headings and fences in a message", "{head}### `CHAT_WITH_USER`\nHi\n\n### Options\n- a\n\n```sh\nmake\n```\nbye\n", Clean, &["CHAT \"Hi\\n\\n### Options\\n- a\\n\\n```sh\\nmake\\n```\\nbye\""]),
    ("F24: blanks at the end", "{head}{read}          \n### `READ`\n- **Resource:** [fourth](/fourth)\n    ", Clean, &["READ second", "READ fourth"]),
    ("F25: stray text at the end is the parser's business", "{head}{read}\nDoes that suit you?\n", Clean, &["READ second"]),
    ("F26: the same right below the list", "{head}{read}- **Description:** Do it.\nDoes that suit you?\n", Clean, &["READ second"]),
    ("F27: a backtick in the info string: no fence, and no content to close", "{head}{hello}```md `x`\nfoo\n```\n", Hopeless, &["CREATE hello \"\" ", "16 unexpected line that is not a fence in Markdown \"```md `x`\"", "18 the answer was cut off: it ends inside the block that starts here"]),
    ("F28: memos with comments", "{title}\n## Rationale\n````text\nAll is well.\n````\n\n## Memos\n````\n[+] A fact. # why\n[-] Old issue #42 closed # reason\n[+] Use C# here\n````\n\n## Action Plan\n\n{read}", Clean, &["READ second"]),
    ("F29: line ends of two characters", "{crlf}{head}{hello}```\nx\ny\n```\n", Clean, &["CREATE hello \"x\\ny\\n\" "]),
    ("F31: a block indented by a tab", "{head}{hello}\n\t```\n\tx\n\t```\n", Clean, &["CREATE hello \"x\\n\" "]),
    ("F32: an empty block", "{head}{hello}```\n```\n", Clean, &["CREATE hello \"\" "]),
    ("F33: a blank line at the end of a content", "{head}{hello}```\nx\n\n```\n", Clean, &["CREATE hello \"x\\n\\n\" "]),
    ("F34: lists in other spellings", "{head}### `READ`\n- **Resource**: [third](/third)\n- *Description:* d\n* **Other:** z\n", Clean, &["READ third"]),
    ("F36: blank lines before a block", "{head}{execute}\n\n```sh\nmake\n```\n", Clean, &["EXECUTE \"make\\n\""]),
    ("F37: no plan at all", "```markdown\nThat plan was wrong.\n\n## Original Faulty Plan:\n````markdown\n# Original\n````\n````\n```\nafter\n", Hopeless, &["1 the plan has no level 1 heading", "1 the plan has no `## Rationale`", "8 the answer was cut off: it ends inside the block that starts here", "10 the plan has no `## Action Plan`"]),
    ("F38: a block right below the list", "{head}{hello}```py\nx\n```\n", Clean, &["CREATE hello \"x\\n\" py"]),
    ("F39: a label and a fence on one line", "{head}### `EDIT`\n- **File Path:** [hello](/hello)\n- **Description:** Do it.\n\n`FIND:` ```py\na\n```\n`REPLACE:`\n```\nb\n```\n", Hopeless, &["EDIT hello []", "17 unexpected text \"`FIND:` ```py\"", "19 this code block has no label above it", "22 unexpected text \"b\"", "23 the answer was cut off: it ends inside the block that starts here"]),
    ("F40: backticks inside tildes", "{head}{hello}~~~~~~markdown\n```sh\nmake\n```\n~~~~~~\n", Clean, &["CREATE hello \"```sh\\nmake\\n```\\n\" markdown"]),
    ("G05: a fence by the rule", "{head}{create}````markdown\n```sh\nx\n```\n````\n", Clean, &["CREATE notes.md \"```sh\\nx\\n```\\n\" markdown"]),
    ("G09: a repaired plan", "{head}{create}````markdown\n# A\n```shell\nmake all\n```\nafter\n````\n", Clean, &["CREATE notes.md \"# A\\n```shell\\nmake all\\n```\\nafter\\n\" markdown"]),
    ("G11: a fence in a message", "{head}### `CHAT_WITH_USER`\nTry:\n```sh\nmake\n```\nOK?\n", Clean, &["CHAT \"Try:\\n```sh\\nmake\\n```\\nOK?\""]),
    ("G12: stray text behind the last block", "{head}{hello}```py\nx\n```\nSo much for that.\n", Clean, &["CREATE hello \"x\\n\" py"]),
    ("G14: runs in the middle of lines end nothing", "{head}### `CREATE`\n- **File Path:** [a.rs](/a.rs)\n- **Description:** Do it.\n```rust\n/// ```\n/// let x = 1;\n/// ```\nfn a() {}\n```\n", Clean, &["CREATE a.rs \"/// ```\\n/// let x = 1;\\n/// ```\\nfn a() {}\\n\" rust"]),
    ("G20: a heading right behind a closer", "{head}{execute}```sh\nmake\n```\n### READ\n- **Resource:** [second](/second)\n", Clean, &["EXECUTE \"make\\n\"", "READ second"]),
    ("G22: tildes inside backticks", "{head}{create}```markdown\n~~~sh\nx\n~~~\n```\n", Clean, &["CREATE notes.md \"~~~sh\\nx\\n~~~\\n\" markdown"]),
    ("G23: a run in a memo", "{title}\n## Rationale\n````text\nAll is well.\n````\n\n## Memos\n```\n[+] Use ``` for code\n```\n\n## Action Plan\n\n{read}", Clean, &["READ second"]),
    ("G24: three queries", "{head}{research}\n```text\nq1\n```\n\n```text\nq2\n```\n\n```\nq3\n```\n\n{read}", Clean, &["RESEARCH [\"q1\", \"q2\", \"q3\"]", "READ second"]),
    ("D01: stray text behind a block joins nothing", "{head}{hello}```py\nx\n```\nSo much for that.\n\n{second}```\ny\n```\n", Clean, &["CREATE hello \"x\\n\" py", "CREATE second \"y\\n\" "]),
    ("D02: the same in a document", "{head}{create}```markdown\nx\n```\nSo much for that.\n\n{second}```\ny\n```\n", Doubtful, &["CREATE notes.md \"x\\n\" markdown", "CREATE second \"y\\n\" ", "18 the fences can be read in two ways: line 18 closes its block, or line 26 closes its block", "19 unexpected text \"So much for that.\""]),
    ("D03: stray text between FIND and REPLACE", "{head}### `EDIT`\n- **File Path:** [hello](/hello)\n- **Description:** Do it.\n\n`FIND:`\n```\na\n```\nand then\n\n`REPLACE:`\n```\nb\n```\n", Clean, &["EDIT hello [(\"a\\n\", \"b\\n\")]", "21 unexpected text \"and then\""]),
    ("D04: stray text between queries", "{head}{research}```text\nq1\n```\nand also\n```text\nq2\n```\n", Clean, &["RESEARCH [\"q1\", \"q2\"]", "18 unexpected text \"and also\""]),
    ("D05: labels as content", "{head}{edit}\n`FIND:`\n````markdown\non `FIND:`\n`FIND:`\nx\n`REPLACE:`\ny\n````\n`REPLACE:`\n````markdown\nnew\n````\n", Clean, &["EDIT notes.md [(\"on `FIND:`\\n`FIND:`\\nx\\n`REPLACE:`\\ny\\n\", \"new\\n\")]"]),
    ("D06: stray text between two blocks", "{head}{hello}```py\nx\n```\nchatter\n```py\nz\n```\n\n{second}```\ny\n```\n", Clean, &["CREATE hello \"x\\n\" py", "CREATE second \"y\\n\" ", "19 unexpected text \"chatter\"", "20 CREATE has more than one code block"]),
    ("D07: an action's heading as content", "{head}{create}````markdown\n### `READ`\ntext\n````\n\n{read}", Clean, &["CREATE notes.md \"### `READ`\\ntext\\n\" markdown", "READ second"]),
];

/// Replies that are changed, with the result, and with what the parser finds in it.
#[rustfmt::skip]
const REPAIRED: [(&str, &str, Level, &str, &[&str]); 31] = [
    ("F01: a fence with a language inside one of the same length", "{head}{create}```markdown\n# A\n```shell\nmake all\n```\nafter\n```\n", Refenced, "{head}{create}````markdown\n# A\n```shell\nmake all\n```\nafter\n````\n", &["CREATE notes.md \"# A\\n```shell\\nmake all\\n```\\nafter\\n\" markdown"]),
    ("F02: a pair of bare fences inside a bare one", "{head}{create}```\nx\n```\ny\n```\nz\n```\n", Refenced, "{head}{create}````\nx\n```\ny\n```\nz\n````\n", &["CREATE notes.md \"x\\n```\\ny\\n```\\nz\\n\" "]),
    ("F04: a label right below the list", "{head}{edit}`FIND:`\n```\na\n```\n`REPLACE:`\n```\nb\n```\n", Refenced, "{head}{edit}\n`FIND:`\n```\na\n```\n`REPLACE:`\n```\nb\n```\n", &["EDIT notes.md [(\"a\\n\", \"b\\n\")]"]),
    ("F06: text behind a closer", "{head}{hello}~~~~~~\nHello\n~~~~~~ and no more\n\n{read}", Repaired, "{head}{hello}~~~~~~\nHello\n~~~~~~\n\n{read}", &["CREATE hello \"Hello\\n\" ", "READ second"]),
    ("F07: the whole plan in a fence", "```markdown\n{title}\n## Rationale\n```text\nAll is well.\n```\n\n## Action Plan\n\n{read}```\n", Refenced, "{title}\n## Rationale\n```text\nAll is well.\n```\n\n## Action Plan\n\n{read}", &["READ second"]),
    ("F09: a closer that is shorter", "{head}{execute}````shell\nmake\n```\n\n{read}", Repaired, "{head}{execute}````shell\nmake\n````\n\n{read}", &["EXECUTE \"make\\n\"", "READ second"]),
    ("F10: the last closer is missing", "{head}{execute}```shell\nmake\n", Doubtful, "{head}{execute}```shell\nmake\n```\n", &["EXECUTE \"make\\n\"", "15 the answer was cut off: it ends inside the block that starts here"]),
    ("F13: no blank behind the title's mark", "#Add a greeting\n{meta}\n## Rationale\n````text\nAll is well.\n````\n\n## Action Plan\n\n{read}", Refenced, "{head}{read}", &["READ second"]),
    ("F30: fences in the rationale", "{title}\n## Rationale\n```text\n### 1. Synthesis\nsaw:\n```\nerr\n```\n### 2. Justification\n```\n\n## Action Plan\n\n{read}", Refenced, "{title}\n## Rationale\n````text\n### 1. Synthesis\nsaw:\n```\nerr\n```\n### 2. Justification\n````\n\n## Action Plan\n\n{read}", &["READ second"]),
    ("F35: a byte order mark", "\u{feff}{title}\n## Rationale\n````text\nAll is well.\n````\n\n## Action Plan\n\n{read}", Refenced, "{title}\n## Rationale\n````text\nAll is well.\n````\n\n## Action Plan\n\n{read}", &["READ second"]),
    ("F41: a plan inside a plan", "{head}{create}````markdown\n# Inner\n## Action Plan\n### `EXECUTE`\n- **Description:** A command.\n````shell\necho \"hello\"\n````\n````\n", Repaired, "{head}{create}`````markdown\n# Inner\n## Action Plan\n### `EXECUTE`\n- **Description:** A command.\n````shell\necho \"hello\"\n````\n`````\n", &["CREATE notes.md \"# Inner\\n## Action Plan\\n### `EXECUTE`\\n- **Description:** A command.\\n````shell\\necho \\\"hello\\\"\\n````\\n\" markdown"]),
    ("G01: the inner fence ends right before the outer one", "{head}{create}```markdown\n# A\n```shell\nmake all\n```\n```\n\n{read}", Refenced, "{head}{create}````markdown\n# A\n```shell\nmake all\n```\n````\n\n{read}", &["CREATE notes.md \"# A\\n```shell\\nmake all\\n```\\n\" markdown", "READ second"]),
    ("G02: two inner fences", "{head}{create}```markdown\n```sh\n1\n```\nmid\n```py\n2\n```\n```\n\n{read}", Refenced, "{head}{create}````markdown\n```sh\n1\n```\nmid\n```py\n2\n```\n````\n\n{read}", &["CREATE notes.md \"```sh\\n1\\n```\\nmid\\n```py\\n2\\n```\\n\" markdown", "READ second"]),
    ("G03: both sides of an edit", "{head}{edit}\n`FIND:`\n```markdown\n```sh\nold\n```\n```\n`REPLACE:`\n```markdown\n```sh\nnew\n```\n```\n", Refenced, "{head}{edit}\n`FIND:`\n````markdown\n```sh\nold\n```\n````\n`REPLACE:`\n````markdown\n```sh\nnew\n```\n````\n", &["EDIT notes.md [(\"```sh\\nold\\n```\\n\", \"```sh\\nnew\\n```\\n\")]"]),
    ("G04: a run of four in a line", "{head}{create}```markdown\nuse ```` inline\n```sh\nx\n```\n```\n", Refenced, "{head}{create}`````markdown\nuse ```` inline\n```sh\nx\n```\n`````\n", &["CREATE notes.md \"use ```` inline\\n```sh\\nx\\n```\\n\" markdown"]),
    ("G06: a plan with actions inside a plan", "{head}{create}````markdown\n# P\n\n## Action Plan\n\n### `EXECUTE`\n- **Description:** x\n````shell\nmake\n````\n\n### `READ`\n- **Resource:** [z](/z)\n````\n\n{read}", Repaired, "{head}{create}`````markdown\n# P\n\n## Action Plan\n\n### `EXECUTE`\n- **Description:** x\n````shell\nmake\n````\n\n### `READ`\n- **Resource:** [z](/z)\n`````\n\n{read}", &["CREATE notes.md \"# P\\n\\n## Action Plan\\n\\n### `EXECUTE`\\n- **Description:** x\\n````shell\\nmake\\n````\\n\\n### `READ`\\n- **Resource:** [z](/z)\\n\" markdown", "READ second"]),
    ("G07: the whole plan in a longer fence", "````markdown\n{title}\n## Rationale\n```text\nAll is well.\n```\n\n## Action Plan\n\n{read}````\n", Refenced, "{title}\n## Rationale\n```text\nAll is well.\n```\n\n## Action Plan\n\n{read}", &["READ second"]),
    ("G08: words before the title", "This is what I would do.\n\n{head}{read}", Refenced, "{head}{read}", &["READ second"]),
    ("G10: tildes inside tildes", "{head}{hello}~~~md\n~~~sh\nx\n~~~\n~~~\n", Refenced, "{head}{hello}~~~~md\n~~~sh\nx\n~~~\n~~~~\n", &["CREATE hello \"~~~sh\\nx\\n~~~\\n\" md"]),
    ("G13: a fence in a script", "{head}{execute}```shell\ncat > x.md <<'EOF'\n```py\nx\n```\nEOF\n```\n\n{read}", Refenced, "{head}{execute}````shell\ncat > x.md <<'EOF'\n```py\nx\n```\nEOF\n````\n\n{read}", &["EXECUTE \"cat > x.md <<'EOF'\\n```py\\nx\\n```\\nEOF\\n\"", "READ second"]),
    ("G15: one odd fence", "{head}{create}```markdown\nbegin with\n```\nend so\n```\n\n{read}", Doubtful, "{head}{create}````markdown\nbegin with\n```\nend so\n````\n\n{read}", &["CREATE notes.md \"begin with\\n```\\nend so\\n\" markdown", "READ second", "20 the fences can be read in two ways: line 20 closes its block, or line 22 follows a block whose closing fence is missing"]),
    ("G16: a content that is one fence", "{head}{edit}\n`FIND:`\n```\n```\n```\n`REPLACE:`\n```\nx\n```\n", Repaired, "{head}{edit}\n`FIND:`\n````\n```\n````\n`REPLACE:`\n```\nx\n```\n", &["EDIT notes.md [(\"```\\n\", \"x\\n\")]"]),
    ("G17: an inner fence that is longer", "{head}{create}```markdown\n````sh\nx\n````\nend\n```\n\n{read}", Refenced, "{head}{create}`````markdown\n````sh\nx\n````\nend\n`````\n\n{read}", &["CREATE notes.md \"````sh\\nx\\n````\\nend\\n\" markdown", "READ second"]),
    ("G18: three levels of the same length", "{head}{create}```md\n```a\n```b\nx\n```\n```\n```\n\n{read}", Refenced, "{head}{create}````md\n```a\n```b\nx\n```\n```\n````\n\n{read}", &["CREATE notes.md \"```a\\n```b\\nx\\n```\\n```\\n\" md", "READ second"]),
    ("G19: line ends of two characters", "{crlf}{head}{create}```markdown\n# A\n```shell\nmake all\n```\nafter\n```\n", Refenced, "{crlf}{head}{create}````markdown\n# A\n```shell\nmake all\n```\nafter\n````\n", &["CREATE notes.md \"# A\\n```shell\\nmake all\\n```\\nafter\\n\" markdown"]),
    ("G21: front matter inside a fence", "{head}{create}```markdown\nExample:\n```\n---\nk: v\n---\n```\nend\n```\n\n---\n\n{read}", Refenced, "{head}{create}````markdown\nExample:\n```\n---\nk: v\n---\n```\nend\n````\n\n---\n\n{read}", &["CREATE notes.md \"Example:\\n```\\n---\\nk: v\\n---\\n```\\nend\\n\" markdown", "READ second"]),
    ("G25: a closer is missing before an action", "{head}{execute}```shell\nmake\n\n{read}", Repaired, "{head}{execute}```shell\nmake\n```\n\n{read}", &["EXECUTE \"make\\n\"", "READ second"]),
    ("G26: a message keeps its fences", "{head}### `INVOKE`\n- **Agent:** Architect\n\nRun:\n```sh\nmake\n```\n\n{create}```md\n```sh\n1\n```\n```\n", Refenced, "{head}### `INVOKE`\n- **Agent:** Architect\n\nRun:\n```sh\nmake\n```\n\n{create}````md\n```sh\n1\n```\n````\n", &["INVOKE Architect [] \"Run:\\n```sh\\nmake\\n```\"", "CREATE notes.md \"```sh\\n1\\n```\\n\" md"]),
    ("G27: fences in a list of the content", "{head}{create}```markdown\n1. step\n   ```sh\n   x\n   ```\n2. next\n```\n\n{read}", Refenced, "{head}{create}````markdown\n1. step\n   ```sh\n   x\n   ```\n2. next\n````\n\n{read}", &["CREATE notes.md \"1. step\\n   ```sh\\n   x\\n   ```\\n2. next\\n\" markdown", "READ second"]),
    ("G28: words on both sides of the plan's fence", "Here:\n```\n{title}\n## Rationale\n~~~text\nAll is well.\n~~~\n\n## Action Plan\n\n{read}```\nTell me what you think.\n", Refenced, "{title}\n## Rationale\n~~~text\nAll is well.\n~~~\n\n## Action Plan\n\n{read}", &["READ second"]),
    ("D08: an odd fence in the rationale", "{title}\n## Rationale\n```text\n### 1. Synthesis\nuse\n```\nas fence\n```\n\n## Action Plan\n\n{read}", Repaired, "{title}\n## Rationale\n````text\n### 1. Synthesis\nuse\n```\nas fence\n````\n\n## Action Plan\n\n{read}", &["READ second"]),
];

#[test]
fn what_is_right_or_beyond_repair_stays_as_it_is() {
    for (name, reply, level, outcome) in UNCHANGED {
        check(name, reply, level, reply);
        check_outcome(name, reply, outcome);
    }
}

#[test]
fn what_is_damaged_becomes_what_was_meant() {
    for (name, reply, level, expected, outcome) in REPAIRED {
        check(name, reply, level, expected);
        check_outcome(name, reply, outcome);
    }
}

#[test]
fn whole_replies_become_plans() {
    let replies = [
        (
            include_str!("../../../fixtures/replies/nested.reply.md"),
            Refenced,
            include_str!("../../../fixtures/replies/nested.plan.md"),
        ),
        (
            include_str!("../../../fixtures/replies/equal.reply.md"),
            Refenced,
            include_str!("../../../fixtures/replies/equal.plan.md"),
        ),
        (
            include_str!("../../../fixtures/replies/wrapped.reply.md"),
            Refenced,
            include_str!("../../../fixtures/replies/wrapped.plan.md"),
        ),
        (
            include_str!("../../../fixtures/replies/unclosed.reply.md"),
            Repaired,
            include_str!("../../../fixtures/replies/unclosed.plan.md"),
        ),
    ];
    for (reply, level, plan) in replies {
        check("a whole reply", reply, level, plan);
        check("its plan", plan, Clean, plan);
    }
}
