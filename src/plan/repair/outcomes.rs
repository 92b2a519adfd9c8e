//! Parses the repaired [`super::cases`].
//!
//! Each row: number of the case, parsed actions, diagnostics with their lines.

use super::cases::{REPAIRED, UNCHANGED, expand};
use crate::plan::reading;
use crate::plan::samples::describe;

type OutcomeRow<'a> = (&'a str, &'a [&'a str]);

#[rustfmt::skip]
const READ: &[OutcomeRow<'_>] = &[
    ("D01", &["CREATE hello \"x\\n\" py", "CREATE second \"y\\n\" "]),
    ("D02", &["CREATE notes.md \"x\\n\" markdown", "CREATE second \"y\\n\" ", "18 the fences can be read in two ways: line 18 closes its block, or line 26 closes its block", "19 unexpected text \"So much for that.\""]),
    ("D03", &["EDIT hello [(\"a\\n\", \"b\\n\")]", "21 unexpected text \"and then\""]),
    ("D04", &["RESEARCH [\"q1\", \"q2\"]", "18 unexpected text \"and also\""]),
    ("D05", &["EDIT notes.md [(\"on `FIND:`\\n`FIND:`\\nx\\n`REPLACE:`\\ny\\n\", \"new\\n\")]"]),
    ("D06", &["CREATE hello \"x\\n\" py", "CREATE second \"y\\n\" ", "19 unexpected text \"chatter\"", "20 CREATE has more than one code block"]),
    ("D07", &["CREATE notes.md \"### `READ`\\ntext\\n\" markdown", "READ second"]),
    ("D08", &["READ second"]),
    ("F01", &["CREATE notes.md \"# A\\n```shell\\nmake all\\n```\\nafter\\n\" markdown"]),
    ("F02", &["CREATE notes.md \"x\\n```\\ny\\n```\\nz\\n\" "]),
    ("F03", &["RESEARCH [\"q1\", \"q2\"]"]),
    ("F04", &["EDIT notes.md [(\"a\\n\", \"b\\n\")]"]),
    ("F05", &["EDIT notes.md [(\"a\\n\", \"b\\n\")]"]),
    ("F06", &["CREATE hello \"Hello\\n\" ", "READ second"]),
    ("F07", &["READ second"]),
    ("F08", &["EXECUTE \"make\\n\"", "READ second"]),
    ("F09", &["EXECUTE \"make\\n\"", "READ second"]),
    ("F10", &["EXECUTE \"make\\n\"", "15 the answer was cut off: it ends inside the block that starts here"]),
    ("F11", &["CREATE hello \"x\\n\" "]),
    ("F12", &["CREATE hello \"x\\n\" "]),
    ("F13", &["READ second"]),
    ("F14", &["EXECUTE \"make\\n\" in sub/dir VAR1=value1 VAR2=value2"]),
    ("F15", &["READ src/__main__.py"]),
    ("F16", &["READ second", "READ second"]),
    ("F17", &["CHAT \"Good morning\\n---\"", "READ second"]),
    ("F18", &["READ third"]),
    ("F19", &["READ my file.md"]),
    ("F20", &["READ my file.md"]),
    ("F21", &["READ my file.md"]),
    ("F22", &["READ third"]),
    ("F23", &["CHAT \"Hi\\n\\n### Options\\n- a\\n\\n```sh\\nmake\\n```\\nbye\""]),
    ("F24", &["READ second", "READ fourth"]),
    ("F25", &["READ second"]),
    ("F26", &["READ second"]),
    ("F27", &["CREATE hello \"\" ", "16 unexpected line that is not a fence in Markdown \"```md `x`\"", "18 the answer was cut off: it ends inside the block that starts here"]),
    ("F28", &["READ second"]),
    ("F29", &["CREATE hello \"x\\ny\\n\" "]),
    ("F30", &["READ second"]),
    ("F31", &["CREATE hello \"x\\n\" "]),
    ("F32", &["CREATE hello \"\" "]),
    ("F33", &["CREATE hello \"x\\n\\n\" "]),
    ("F34", &["READ third"]),
    ("F35", &["READ second"]),
    ("F36", &["EXECUTE \"make\\n\""]),
    ("F37", &["1 the plan has no level 1 heading", "1 the plan has no `## Rationale`", "8 the answer was cut off: it ends inside the block that starts here", "10 the plan has no `## Action Plan`"]),
    ("F38", &["CREATE hello \"x\\n\" py"]),
    ("F39", &["EDIT hello []", "17 unexpected text \"`FIND:` ```py\"", "19 this code block has no label above it", "22 unexpected text \"b\"", "23 the answer was cut off: it ends inside the block that starts here"]),
    ("F40", &["CREATE hello \"```sh\\nmake\\n```\\n\" markdown"]),
    ("F41", &["CREATE notes.md \"# Inner\\n## Action Plan\\n### `EXECUTE`\\n- **Description:** A command.\\n````shell\\necho \\\"hello\\\"\\n````\\n\" markdown"]),
    ("G01", &["CREATE notes.md \"# A\\n```shell\\nmake all\\n```\\n\" markdown", "READ second"]),
    ("G02", &["CREATE notes.md \"```sh\\n1\\n```\\nmid\\n```py\\n2\\n```\\n\" markdown", "READ second"]),
    ("G03", &["EDIT notes.md [(\"```sh\\nold\\n```\\n\", \"```sh\\nnew\\n```\\n\")]"]),
    ("G04", &["CREATE notes.md \"use ```` inline\\n```sh\\nx\\n```\\n\" markdown"]),
    ("G05", &["CREATE notes.md \"```sh\\nx\\n```\\n\" markdown"]),
    ("G06", &["CREATE notes.md \"# P\\n\\n## Action Plan\\n\\n### `EXECUTE`\\n- **Description:** x\\n````shell\\nmake\\n````\\n\\n### `READ`\\n- **Resource:** [z](/z)\\n\" markdown", "READ second"]),
    ("G07", &["READ second"]),
    ("G08", &["READ second"]),
    ("G09", &["CREATE notes.md \"# A\\n```shell\\nmake all\\n```\\nafter\\n\" markdown"]),
    ("G10", &["CREATE hello \"~~~sh\\nx\\n~~~\\n\" md"]),
    ("G11", &["CHAT \"Try:\\n```sh\\nmake\\n```\\nOK?\""]),
    ("G12", &["CREATE hello \"x\\n\" py"]),
    ("G13", &["EXECUTE \"cat > x.md <<'EOF'\\n```py\\nx\\n```\\nEOF\\n\"", "READ second"]),
    ("G14", &["CREATE a.rs \"/// ```\\n/// let x = 1;\\n/// ```\\nfn a() {}\\n\" rust"]),
    ("G15", &["CREATE notes.md \"begin with\\n```\\nend so\\n\" markdown", "READ second", "20 the fences can be read in two ways: line 20 closes its block, or line 22 follows a block whose closing fence is missing"]),
    ("G16", &["EDIT notes.md [(\"```\\n\", \"x\\n\")]"]),
    ("G17", &["CREATE notes.md \"````sh\\nx\\n````\\nend\\n\" markdown", "READ second"]),
    ("G18", &["CREATE notes.md \"```a\\n```b\\nx\\n```\\n```\\n\" md", "READ second"]),
    ("G19", &["CREATE notes.md \"# A\\n```shell\\nmake all\\n```\\nafter\\n\" markdown"]),
    ("G20", &["EXECUTE \"make\\n\"", "READ second"]),
    ("G21", &["CREATE notes.md \"Example:\\n```\\n---\\nk: v\\n---\\n```\\nend\\n\" markdown", "READ second"]),
    ("G22", &["CREATE notes.md \"~~~sh\\nx\\n~~~\\n\" markdown"]),
    ("G23", &["READ second"]),
    ("G24", &["RESEARCH [\"q1\", \"q2\", \"q3\"]", "READ second"]),
    ("G25", &["EXECUTE \"make\\n\"", "READ second"]),
    ("G26", &["INVOKE Architect [] \"Run:\\n```sh\\nmake\\n```\"", "CREATE notes.md \"```sh\\n1\\n```\\n\" md"]),
    ("G27", &["CREATE notes.md \"1. step\\n   ```sh\\n   x\\n   ```\\n2. next\\n\" markdown", "READ second"]),
    ("G28", &["READ second"]),
];

fn number(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

#[test]
fn every_case_means_what_it_should() {
    let replies = UNCHANGED
        .iter()
        .map(|(name, reply, _)| (number(name), *reply))
        .chain(
            REPAIRED
                .iter()
                .map(|(name, reply, ..)| (number(name), *reply)),
        );
    let mut wrong = Vec::new();
    for (number, reply) in replies {
        let read = reading::read(&expand(reply));
        let mut actual: Vec<String> = read
            .plan
            .actions
            .iter()
            .map(|action| describe(&action.kind))
            .collect();
        actual.extend(
            read.diagnostics
                .iter()
                .map(|d| format!("{} {}", d.line, d.message)),
        );
        let expected = READ
            .iter()
            .find(|(known, _)| *known == number)
            .map(|(_, expected)| *expected);
        if expected.is_none_or(|expected| expected != actual) {
            wrong.push(format!("    ({number:?}, &{actual:?}),"));
        }
    }

    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert_eq!(READ.len(), UNCHANGED.len() + REPAIRED.len());
}
