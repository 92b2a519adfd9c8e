//! Rules of repair that no row of [`super::cases`] covers.

use super::Level::{Clean, Doubtful, Hopeless, Refenced, Repaired};
use super::cases::{check, expand};
use super::repair;

#[test]
fn rp4_every_later_spelling_of_an_edit_is_structure() {
    let block = "```md\n```sh\nold\n```\n```\n";
    let repaired = "````md\n```sh\nold\n```\n````\n";
    for [find, replace] in [
        ["#### FIND:", "#### REPLACE:"],
        ["#### `FIND:`", "#### `REPLACE:`"],
        ["**FIND:**", "**REPLACE:**"],
        ["FIND:", "REPLACE:"],
    ] {
        let edit = |block: &str| {
            format!("{{head}}{{edit}}\n{find}\n{block}{replace}\n{block}\n### RETURN\nDone.\n")
        };
        check(find, &edit(block), Refenced, &edit(repaired));
    }
}

#[test]
fn rp3_what_a_model_thought_aloud_is_words_before_the_title() {
    let plan = "{head}{execute}```sh\nmake\n```\n";
    for tag in ["think", "thinking"] {
        let thoughts = format!("\n<{tag}>\nSay:\n# T\n```\n## Action Plan\n{{read}}\n</{tag}>\n\n");
        check(tag, &format!("{thoughts}{plan}"), Refenced, plan);
    }

    let open = format!("<think>\n{plan}");
    check("a tag that is never closed", &open, Doubtful, plan);
    let later = format!("Well.\n<think>\n{plan}</think>\n");
    assert!(
        repair(&expand(&later)).text.ends_with("</think>\n"),
        "a tag further down is text"
    );
}

#[test]
fn rp4_every_later_spelling_of_an_action_ends_a_block() {
    for heading in [
        "### `RETURN`",
        "### RETURN",
        "### `PROMPT`",
        "### CHAT WITH USER",
        "### `READ**`",
        "### READ",
        "### **PRUNE**",
    ] {
        let plan = |closer: &str| {
            format!("{{head}}{{create}}```md\nx\n{closer}\n{heading}\n- **Resource:** [a](/a)\n")
        };
        check(heading, &plan(""), Repaired, &plan("```\n"));
    }
}

/// Compares the notes about a reply, each as `line: message`.
fn check_notes(reply: &str, expected: &[&str]) {
    let notes: Vec<_> = repair(&expand(reply))
        .notes
        .iter()
        .map(|note| format!("{}: {}", note.line, note.message))
        .collect();
    assert_eq!(notes, expected);
}

#[test]
fn notes_say_what_was_done_at_which_line() {
    check_notes("{head}{execute}```sh\nmake\n```\n", &[]);
    check_notes(
        "{head}{execute}```sh\nmake\n\n{read}",
        &["17: closed the block that opens at line 15; its closing fence was missing"],
    );
    check_notes(
        "{head}{execute}````sh\nmake\n```\n\n{read}",
        &["17: made the closing fence as long as the one that opens at line 15"],
    );
    check_notes(
        "{head}{execute}```sh\nmake\n``` (end)\n\n{read}",
        &["17: dropped the text behind the closing fence"],
    );
    check_notes(
        "{head}{execute}```sh\nmake\n```\n```\n",
        &["18: dropped a fence that closes nothing"],
    );
    check_notes(
        "Words.\n\n#Add a greeting\n{meta}\n## Rationale\n```\nr\n```\n## Action Plan\n{read}",
        &["3: add a space after the `#` of the title"],
    );

    check_notes(
        "{head}{create}```md\nbegin with\n```\nend so\n```\n",
        &[
            "16: rewrote the fence, so that the fences inside cannot end its block",
            "20: the fences can be read in two ways: line 20 closes its block, or line 20 follows a block whose closing fence is missing",
        ],
    );
}

#[test]
fn rp9_a_content_that_hides_an_action_is_told() {
    let hidden =
        "18: the content that starts at line 17 contains this action's heading; it is not run";
    check_notes("{head}{create}````md\nx\n{read}````\n", &[hidden]);
    check_notes("{head}{create}````md\n```md\n{read}```\n````\n", &[]);
}

#[test]
fn rp9_a_heading_that_only_looks_like_one_is_not_hidden_either() {
    let pair = "`FIND:`\n```\none\n```\n`REPLACE:`\n```\n1\n```\n";
    for heading in ["    ### `EDIT`", "\t### EDIT", "###`EDIT`"] {
        let reply = format!(
            "{{head}}{{create}}```\n# N\n```sh\nls\n```\nend\n```\n\n{heading}\n- **File Path:** [a](/a)\n\n{pair}{pair}"
        );
        let repaired = repair(&expand(&reply));
        assert_eq!(repaired.level, Doubtful, "{heading}: {:?}", repaired.notes);
    }
}

#[test]
fn rp9_new_fences_hide_no_pair_without_a_word() {
    let first = "`FIND:`\n```\na\n```\n`REPLACE:`\n```\nb\n``\n";
    let second = "`FIND:`\n```\nc\n```\n    `REPLACE:`\n```\nd\n```\n";
    let repaired = repair(&expand(&format!(
        "{{head}}{{edit}}\n{first}{second}\n{{read}}"
    )));
    let messages: Vec<_> = repaired
        .notes
        .iter()
        .filter(|note| note.doubt)
        .map(|note| note.message.as_str())
        .collect();

    assert_eq!(
        (repaired.level, messages),
        (
            Doubtful,
            vec!["the content that starts at line 23 contains this label and its block"]
        )
    );
}

#[test]
fn rp5_among_equals_the_reading_with_fewer_inner_fences_wins() {
    // A pair of fences or none: CommonMark's reading has none.
    let queries = "{head}{research}```text\nq1\n```\n```text\nq2\n```\n";
    check("two queries", queries, Clean, queries);

    // An expensive deviation loses against a cheap one: a longer closing fence against a missing
    // one.
    let reply = |closer: &str| {
        format!("{{head}}{{execute}}````sh\nmake\n{closer}\n\n{{create}}```md\nx\n```\n")
    };
    check("a longer closer", &reply("``````"), Clean, &reply("``````"));
    check("a shorter one", &reply("```"), Repaired, &reply("````"));
}

#[test]
fn rp6_another_reading_that_is_about_as_likely_makes_it_doubtful() {
    let odd = "{head}{create}```markdown\nbegin with\n```\nend so\n```\n\n{read}";
    assert_eq!(repair(&expand(odd)).level, Doubtful);
    check_notes(
        odd,
        &[
            "16: rewrote the fence, so that the fences inside cannot end its block",
            "20: the fences can be read in two ways: line 20 closes its block, or line 22 follows a block whose closing fence is missing",
        ],
    );

    // In the rationale and in a message it has no effect.
    let rationale =
        "{title}\n## Rationale\n```text\nuse\n```\nas fence\n```\n\n## Action Plan\n\n{read}";
    assert_eq!(repair(&expand(rationale)).level, Repaired);
}

#[test]
fn rp5_a_closer_that_is_indented_too_far_closes_all_the_same() {
    let pair = |closer: &str| format!("`FIND:`\n```\na\n```\n`REPLACE:`\n```\nb\n{closer}\n");
    let edit = |closer: &str| {
        format!(
            "{{head}}{{edit}}\n{}{}\n{{read}}",
            pair(closer),
            pair("```")
        )
    };

    for closer in ["    ```", "\t```", "        ```"] {
        check(closer, &edit(closer), Refenced, &edit("```"));
    }

    let list = "{head}{create}````md\n1. a\n    ```\n    b\n    ```\n````\n";
    check("fences of a list in a content", list, Clean, list);
}

#[test]
fn rp7_a_missing_closer_goes_above_the_blank_lines_and_is_told() {
    check(
        "before an action",
        "{head}{execute}```sh\nmake\n\n\n{read}",
        Repaired,
        "{head}{execute}```sh\nmake\n```\n\n\n{read}",
    );
    check(
        "at the end",
        "{head}{execute}```sh\nmake\n\n\n",
        Doubtful,
        "{head}{execute}```sh\nmake\n```\n\n\n",
    );
    let empty = "{head}{execute}```sh\n\n";
    check("a block without content", empty, Hopeless, empty);

    assert!(
        repair(&expand("{head}{execute}```sh\n\n{read}")).level >= Doubtful,
        "nothing is closed that has no content"
    );
}

#[test]
fn rp8_a_block_by_the_rule_is_trusted_whatever_is_wrong_elsewhere() {
    let strange = "````md\n```\n### `READ`\n```\n`REPLACE:`\n~~~\n````\n";
    let reply = |closer: &str| {
        format!("{{head}}{{create}}{strange}\n{{execute}}````sh\nmake\n{closer}\n\n{{read}}")
    };
    check(
        "a shorter closer elsewhere",
        &reply("```"),
        Repaired,
        &reply("````"),
    );
}

#[test]
fn rp8_blocks_by_the_rule_are_trusted_in_a_reply_that_is_cut_off() {
    let edit = "{head}{edit}\n`FIND:`\n````\none\n````\n`REPLACE:`\n````\n1\n````\n`FIND:`\n````\ntwo\n````\n`REPLACE:`\n````\n2\n````\n";
    let lines: Vec<&str> = edit.split_inclusive('\n').collect();
    let second = lines
        .iter()
        .rposition(|line| *line == "`FIND:`\n")
        .expect("there are two");

    for end in second + 1..lines.len() - 2 {
        let cut = lines[..end].concat();
        check(&format!("cut off at line {end}"), &cut, Hopeless, &cut);
    }
}

#[test]
fn rp8_an_action_in_code_of_a_message_is_never_hidden_without_a_word() {
    let hidden =
        "{head}### `CHAT_WITH_USER`\nRun:\n```sh\nmake\n\n{execute}```shell\nmake all\n```\n";
    let repaired = repair(&expand(hidden));
    let open = repaired.text.contains("make\n```\n\n### `EXECUTE`");
    assert!(
        open || repaired.level >= Doubtful,
        "{:?}: {}",
        repaired.level,
        repaired.text
    );
    let tildes = "{head}### `CONCLUDE`\nStart.\n~~~\nx\n~~~\n\n### `CHAT_WITH_USER`\nStart.\n```sh\n### `READ`\n```\n~~~\ny\n~~~\n";
    let repaired = repair(&expand(tildes));

    assert!(
        repaired.text == expand(tildes) || repaired.level >= Doubtful,
        "{:?}: {}",
        repaired.level,
        repaired.text
    );
    let unchanged = "{head}### `CHAT_WITH_USER`\nStart.\n```md\n### `READ`\n```\nEnd.\n";
    check(
        "a document's fence shows an action",
        unchanged,
        Clean,
        unchanged,
    );
}

#[test]
fn rp8_a_fence_behind_an_action_does_not_hide_it_in_code_of_a_message() {
    let reply = "{head}### `CHAT_WITH_USER`\nRun:\n```sh\nmake\n\n{read}```\n";
    check("a fence behind an action", reply, Clean, reply);
    check_notes(reply, &[]);
}

#[test]
fn rp10_a_message_that_commonmark_ends_rightly_is_never_rewritten() {
    let reply = |create: &str| {
        format!(
            "{{head}}### `INVOKE`\n- **Agent:** Architect\n\nRun:\n```sh\n```md\nmake\n```\n\n{{create}}{create}"
        )
    };
    check(
        "a fence in a message",
        &reply("```md\n```sh\n1\n```\n```\n"),
        Refenced,
        &reply("````md\n```sh\n1\n```\n````\n"),
    );
}

#[test]
fn rp11_a_part_that_is_missing_is_not_invented() {
    for actions in [
        "{execute}",
        "{research}",
        "{create}",
        "{edit}\n`FIND:`\n```\na\n```\n",
        "{edit}\n`REPLACE:`\n```\na\n```\n",
    ] {
        let reply = format!("{{head}}{actions}");
        check(actions, &reply, Hopeless, &reply);
    }
}

#[test]
fn rp11_of_two_plans_the_second_is_never_taken_for_content() {
    let plan = |name: &str| {
        format!(
            "{{title}}\n## Rationale\n```\nr\n```\n\n## Action Plan\n\n### `CREATE`\n- **File Path:** [{name}](/{name})\n```\nx\n```\n"
        )
    };
    let (first, second) = (plan("a.md"), plan("b.md"));
    for fence in ["```", "````", "~~~"] {
        for between in ["\n", "or\n", "\nOr, as an alternative:\n\n"] {
            let both = format!(
                "{fence}markdown\n{first}{fence}\n{between}{fence}markdown\n{second}{fence}\n"
            );
            check(&both, &both, Doubtful, &first);
            check(
                &both,
                &format!("{fence}markdown\n{first}{fence}\n{between}{second}"),
                Doubtful,
                &first,
            );
        }
    }

    let reply = format!("{first}\n````markdown\n{second}````\n");
    assert!(
        repair(&expand(&reply))
            .text
            .contains("```\nx\n```\n\n````markdown\n"),
        "the reader says that the block is one too many"
    );
}

#[test]
fn rp12_a_text_without_a_plan_comes_back_as_it_is() {
    for reply in [
        "",
        "Sorry.\n",
        "# T\n\n```\nx\n",
        "```markdown\n# T\n```\n",
        "\u{feff}no plan",
    ] {
        check(reply, reply, Hopeless, reply);
    }
}

#[test]
fn rp13_lines_end_as_they_came() {
    check(
        "CRLF",
        "{crlf}{head}{execute}```sh\nmake\n\n{read}",
        Repaired,
        "{crlf}{head}{execute}```sh\nmake\n```\n\n{read}",
    );
    check(
        "no final line end",
        "{head}{execute}````sh\nmake\n```",
        Doubtful,
        "{head}{execute}````sh\nmake\n````",
    );
    check(
        "a missing closer and no line end",
        "{head}{execute}```sh\nmake",
        Doubtful,
        "{head}{execute}```sh\nmake\n```",
    );
}

#[test]
fn rp9_a_hidden_action_behind_a_closer_that_is_too_long_is_in_doubt() {
    let reply = "{head}{execute}````sh\nmake\n```\n\n{create}```md\nx\n`````\n";
    check("two slips that cancel out", reply, Doubtful, reply);
}
