//! Validation cases, each from the text of a plan.
//!
//! Each row: name, actions, expected diagnostics. `differs` as in the parser's cases.

use super::*;
use crate::plan::reading;

/// A row: name, actions, diagnostics.
type Row<'a> = (&'a str, &'a str, &'a [&'a str]);

/// Everything above the actions.
const HEAD: &str = "# T\n\n## Rationale\n```\nr\n```\n\n{memos}## Action Plan\n\n";

/// Validates a plan and formats its diagnostics: `action: message`, followed by the hint.
fn judged(actions: &str, memos: &str, facts: &Snapshot) -> Vec<String> {
    let memos = if memos.is_empty() {
        String::new()
    } else {
        format!("## Memos\n````\n{memos}````\n\n")
    };

    let reading = reading::read(&format!("{}{actions}", HEAD.replace("{memos}", &memos)));
    let simulation = validate(&reading.plan, facts).expect("the snapshot can be read");
    let all = reading.diagnostics.iter().chain(&simulation.diagnostics);
    all.map(|d| {
        format!(
            "{}: {} ({})",
            d.action,
            d.message,
            d.hint.as_deref().unwrap_or("-")
        )
    })
    .collect()
}

/// Expands to the text of an EDIT with these pairs.
macro_rules! edit {
    ($path:literal $(, $find:literal => $replace:literal)+) => {
        concat!("### EDIT\n- File Path: ", $path, "\n\n" $(, "`FIND:`\n````\n", $find, "````\n`REPLACE:`\n````\n", $replace, "````\n")+)
    };
}

/// Compares all rows and reports every difference.
fn check_rows(rows: &[Row<'_>], facts: &Snapshot) {
    let mut wrong = Vec::new();
    for (name, text, expected) in rows {
        let (memos, actions) = text.split_once("@@\n").unwrap_or(("", text));
        let actual = judged(actions, memos, facts);
        if actual != *expected {
            wrong.push(format!("{name:?} => &{actual:?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[rustfmt::skip]
const ROWS: &[Row<'_>] = &[
    ("V1: a CREATE of an existing file", "### CREATE\n- File Path: README.md\n```\nx\n```\n", &["CREATE README.md: `README.md` already exists (change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole)"]),
    ("V2: a CREATE below a file", "### CREATE\n- File Path: README.md/b\n```\nx\n```\n", &["CREATE README.md/b: `README.md/b` is below `README.md`, which is a file (choose another path)"]),
    ("V2: a CREATE of a folder", "### CREATE\n- File Path: src\n```\nx\n```\n", &["CREATE src: `src` is a directory (choose another path)"]),
    ("V3: two CREATEs of one path", "### CREATE\n- File Path: n\n```\nx\n```\n### CREATE\n- File Path: n\n```\ny\n```\n", &["CREATE n: `n` is created twice (keep one CREATE; change the new file in it, or with an EDIT)"]),
    ("V4: an EDIT of what the plan creates", concat!("### CREATE\n- File Path: n\n```\nx\ny\n```\n", edit!("n", "x\n" => "z\n")), &[]),
    ("V5: an EDIT of a missing file", edit!("none.txt", "x\n" => "y\n"), &["EDIT none.txt: there is no file `none.txt` (use CREATE for a new file)"]),
    ("V6 differs: any of the three lists shows a file", edit!("README.md", "hello\n" => "y\n"), &[]),
    ("V6: an EDIT of a file that no list names", edit!("hidden.rs", "secret\n" => "y\n"), &["EDIT hidden.rs: `hidden.rs` is in no context list (READ it in this plan and edit it in the next one, when its text is before you; by hand, `teddy context add /hidden.rs` adds it)"]),
    ("V7: a FIND that is nowhere", edit!("README.md", "Goodbye world\n" => "y\n"), &["EDIT README.md: FIND is not in `README.md`\nno place in the file is like it (copy the lines to change from the file as they are, including spaces)"]),
    ("V8: a FIND that occurs twice", concat!("### CREATE\n- File Path: n\n```\nfn a() {\n    pass\nfn a() {\n    pass\n```\n", edit!("n", "fn a() {\n    pass\n" => "y\n")), &["EDIT n: FIND occurs in 2 places in `n`: lines 1, 3\n  line 1 is the first\n  line 3 is below `    pass` (repeat enough of the lines around the right place in FIND and REPLACE that only this place has them)"]),
    ("V9: FIND and REPLACE alike", edit!("README.md", "hello\n" => "hello\n"), &["EDIT README.md: FIND and its REPLACE are equal (leave the pair out, or write what should be there into REPLACE)"]),
    ("V10: two bad pairs", edit!("src/a.rs", "Bad1\n" => "x\n", "Bad2\n" => "y\n"), &["EDIT src/a.rs: FIND 1 of 2 is not in `src/a.rs`\nno place in the file is like it (copy the lines to change from the file as they are, including spaces)", "EDIT src/a.rs: FIND 2 of 2 is not in `src/a.rs`\nno place in the file is like it (copy the lines to change from the file as they are, including spaces)"]),
    ("V11 and V14 differ: no score, the difference itself", concat!("### CREATE\n- File Path: n\n```\nThis is the original content\n```\n", edit!("n", "This is the orignal content\n" => "y\n")), &["EDIT n: FIND is not in `n`\nthe closest place is line 1\nthe first difference is at line 1: content: the file has `i`, FIND has nothing, at column 17\n  file 1 | This is the original content\n  FIND 1 | This is the orignal content\n         |                 ^ (copy the lines to change from the file as they are, including spaces)"]),
    ("V12: an EDIT that was made already", edit!("src/a.rs", "zwei\n" => "two\n"), &["EDIT src/a.rs: FIND is not in `src/a.rs`\nthe REPLACE is already there, at line 2 (leave the pair out if it has been applied already)"]),
    ("V13: a part of two lines", concat!("### CREATE\n- File Path: n\n```\nblock1\nblock2\n```\n", edit!("n", "block\n" => "y\n")), &["EDIT n: FIND occurs in 2 places in `n`, inside a line: lines 1, 2\n  line 1 is the first\n  line 2 is below `block1` (repeat enough of the lines around the right place in FIND and REPLACE that only this place has them)"]),
    ("V16: a FIND that only the pair before it makes", edit!("src/a.rs", "one\n" => "uno\n", "uno\n" => "x\n"), &[]),
    ("V16: a FIND that the pair before it takes away", edit!("src/a.rs", "one\n" => "uno\n", "one\n" => "x\n"), &["EDIT src/a.rs: FIND 2 of 2 is not in `src/a.rs`\nno place in the file is like it (copy the lines to change from the file as they are, including spaces; pair 1 of 2 fits, repeat it as it is)"]),
    ("V17: a FIND that the pair before it doubles", edit!("src/a.rs", "one\n" => "two\n", "two\n" => "x\n"), &["EDIT src/a.rs: FIND 2 of 2 occurs in 2 places in `src/a.rs`: lines 1, 2\n  line 1 is the first\n  line 2 is below `two` (repeat enough of the lines around the right place in FIND and REPLACE that only this place has them; pair 1 of 2 fits, repeat it as it is)"]),
    ("V18: a PRUNE of what the turn's list does not have", "### PRUNE\n- Resource: README.md\n", &["PRUNE README.md: `README.md` is not in the turn's context (it comes from the session's or the global list, which the user keeps)"]),
    ("V19: a READ of a missing file", "### READ\n- Resource: none.md\n", &["READ none.md: there is no file `none.md` (the project structure in the input lists what exists)"]),
    ("V20: a READ of a file that is before the model", "### READ\n- Resource: src/a.rs\n", &[]),
    ("V21: a READ of an address", "### READ\n- Resource: https://nowhere.invalid/\n", &[]),
    ("V24 and V25: a link in the way", "### CREATE\n- File Path: link/x\n```\nx\n```\n### EXECUTE\n- cwd: link\n```\nls\n```\n", &["CREATE link/x: `link/x` is below `link`, which is a symbolic link (choose another path)", "EXECUTE ls: `link` is a symbolic link (run in a directory of the project)"]),
    ("V25: an EDIT of a link", edit!("link", "x\n" => "y\n"), &["EDIT link: `link` is a symbolic link (EDIT changes text files of the project only)"]),
    ("V27: an EXECUTE without a command", "### EXECUTE\n- Description: d\n```\n \n```\n", &["EXECUTE: there is no command (put the command into the code block)"]),
    ("V28: an existing memo", "[+] Use pnpm.\n@@\n### READ\n- Resource: src\n", &[": the memo already exists: `Use pnpm.` (leave the line out)"]),
    ("V29: a missing memo", "[-] Use npm.\n@@\n### READ\n- Resource: src\n", &[": there is no such memo: `Use npm.` (copy the memo that you want to remove word for word)"]),
    ("V30: a memo twice", "[+] New.\n[+] New.\n@@\n### READ\n- Resource: src\n", &[": the memo is named twice, first at line 10: `New.` (keep one line)"]),
    ("V30: a memo that comes and goes", "[+] New.\n[-] New.\n@@\n### READ\n- Resource: src\n", &[": the memo is added and removed, first at line 10: `New.` (keep only the line that you want)"]),
    ("V31: an unknown agent", "### INVOKE\n- Agent: Wizard\n\nGo.\n", &["INVOKE Wizard: there is no agent `Wizard` (the agents are `architect`, `developer`)"]),
    ("V32: a missing resource", "### INVOKE\n- Agent: Architect\n- Handoff Resources: none.md\n\nGo.\n", &["INVOKE Architect: there is no file `none.md` (the project structure in the input lists what exists)"]),
    ("V33: a CONCLUDE without a caller ends the work", "### CONCLUDE\n\nDone.\n", &[]),
    ("V34: two hand-overs", "### INVOKE\n- Agent: Architect\n\nGo.\n\n### INVOKE\n- Agent: Developer\n\nGo.\n", &["INVOKE Developer: the plan hands over twice, first at line 10 (keep one INVOKE or CONCLUDE)"]),
    ("V37: a binary file", edit!("bin.dat", "x\n" => "y\n"), &["EDIT bin.dat: `bin.dat` is binary (change it with EXECUTE)"]),
    ("V37: a file in another encoding", edit!("latin.txt", "x\n" => "y\n"), &["EDIT latin.txt: `latin.txt` is not UTF-8 (change it with EXECUTE)"]),
    ("NUL is the parser's to say, once", "### CREATE\n- File Path: n\n```\na\0b\n```\n", &["CREATE n: the plan has a NUL character (make binary files with EXECUTE, as with `base64 -d`)"]),
];

#[test]
fn every_case_is_found_before_anything_runs() {
    check_rows(ROWS, &snapshot());
}

#[test]
fn v15_a_long_find_in_a_long_file_is_explained_at_once() {
    let line = |n: usize| format!("let value_{n} = compute({n}, \"text\");\n");
    let file: String = (0..500).map(line).collect();
    let find: String = (200..300)
        .map(line)
        .collect::<String>()
        .replace("value_250", "valve_250");
    let started = std::time::Instant::now();
    let messages = judged(
        &format!(
            "### CREATE\n- File Path: n\n```\n{file}```\n### EDIT\n- File Path: n\n\n`FIND:`\n```\n{find}```\n`REPLACE:`\n```\n```\n"
        ),
        "",
        &snapshot(),
    );

    assert!(
        messages.len() == 1 && messages[0].contains("the closest place is lines 201 to 300"),
        "{messages:?}"
    );
    assert!(
        started.elapsed().as_secs_f64() < 20.0,
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn p22_a_flood_of_mistakes_is_counted() {
    let messages = judged(
        "### READ\n- Resource: src\n",
        &"[+] m\n".repeat(1000),
        &snapshot(),
    );
    assert_eq!(
        (messages.len(), messages.last().map(String::as_str)),
        (201, Some(": there are 799 more mistakes from here on (-)"))
    );
}

#[test]
fn v38_a_sign_in_the_rationale_is_no_status() {
    let plan = reading::read(
        "# T\n- **Status:** Green 🟢\n\n## Rationale\n```\n🟡 was the last\n```\n\n## Action Plan\n\n### READ\n- Resource: a\n",
    )
    .plan;
    assert_eq!(plan.status(), Some(crate::plan::PlanStatus::Green));
}
