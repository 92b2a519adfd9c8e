//! Mistakes anywhere in a plan, and limits (P18-P22).

use super::*;

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
            "5 [READ a] `Resource` appears twice",
        ],
    );

    check(
        &format!("{read}\n###`READ`\n"),
        &[
            "READ a",
            "4 [READ a] \"###`READ`\" looks like a heading, but Markdown reads it as part of text",
        ],
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
            "4 [CREATE a] unexpected line that is not a fence in Markdown \"```md `x`\"",
            "6 [CREATE a] the code block that opens here is never closed",
        ],
    );
}

#[test]
fn p20_fields_of_weight_stand_once_and_where_they_mean_something() {
    check(
        &format!("{CREATE}- **File Path:** [b](/b)\n```\nx\n```\n"),
        &[
            "CREATE a \"x\\n\" ",
            "4 [CREATE a] `File Path` appears twice",
        ],
    );
    check(
        "### READ\n- Resource: a\n- File Path: b\n",
        &[
            "READ a",
            "3 [READ a] `Resource` and `File Path` mean the same here",
        ],
    );
    check(
        "### READ\n- Resource: a\n- Lines: 1-5\n",
        &["READ a", "3 [READ a] `Lines` has no meaning in READ"],
    );
    check(
        "### READ\n- Resource: a\n- cwd: b\n",
        &["READ a", "3 [READ a] `cwd` has no meaning in READ"],
    );
    check(
        "### READ\n- Resource: a Description: x\n",
        &[
            "2 [READ a Description: x] a path with a space must be a link or in backticks: \"a Description: x\"",
        ],
    );

    check(
        "### READ\n- Description: one\n- Description: two\n- Resource: a\n",
        &["READ a"],
    );
}

#[test]
fn p21_nul_is_wrong() {
    check(
        &format!("{CREATE}```\na\0b\n```\n"),
        &[
            "CREATE a \"a\\0b\\n\" ",
            "5 [CREATE a] the plan has a NUL character",
        ],
    );
}

#[test]
fn p22_limits_are_one_clear_mistake() {
    check_plan(
        &"x".repeat(MAX_PLAN + 1),
        &["1 the plan has 16777217 bytes; at most 16777216 are read"],
    );
    check_plan(
        &format!("{HEAD}{}", "### READ\n- Resource: a\n".repeat(2001)),
        &["1 the plan has over 2000 actions"],
    );
    for text in [
        "> ".repeat(100_000),
        "- ".repeat(100_000),
        "[".repeat(100_000),
        "*a ".repeat(50_000),
        "#".repeat(100_000),
    ] {
        assert!(!parse(&text).1.is_empty());
    }

    check_plan(
        &("> ".repeat(100_000) + "x"),
        &["1 lists or quotations are nested 100001 deep; at most 64 are read"],
    );
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
        for head in [
            EDIT.to_owned(),
            "### EXECUTE\n- env:\n".to_owned(),
            "### INVOKE\n- Handoff Resources:\n".to_owned(),
        ] {
            let (_, wrong) = parse(&format!("{HEAD}{head}{}", piece.repeat(2_000)));
            assert!(
                wrong.len() <= crate::plan::diagnostic::MAX_MISTAKES + 1,
                "{}",
                wrong.len()
            );
        }
    }

    assert!(started.elapsed().as_secs() < 120, "{:?}", started.elapsed());
    let (_, wrong) = parse(&format!("{HEAD}{EDIT}{}", "words\n\n".repeat(300)));
    assert_eq!(
        wrong.last().map(|w| (w.line, w.message.as_str())),
        Some((416, "there are 100 more mistakes from here on"))
    );
}

#[test]
fn pp38_a_plan_of_forty_actions_and_two_megabytes_is_read_soon() {
    let code = "let x = \"some line of code\";\n".repeat(1800);
    let text = format!(
        "{HEAD}{}",
        format!("{CREATE}````rust\n{code}````\n\n").repeat(40)
    );
    let started = std::time::Instant::now();
    let (plan, wrong) = parse(&text);

    assert_eq!(
        (plan.actions.len(), wrong.len(), text.len() > 2_000_000),
        (40, 0, true)
    );
    // An optimized build on an idle machine takes less than a second.
    assert!(
        started.elapsed().as_secs_f64() < 60.0,
        "{:?}",
        started.elapsed()
    );
}
