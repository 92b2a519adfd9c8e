//! Parsing of EDIT (P14).

use super::*;

#[test]
fn p14_edit_alternates_find_and_replace() {
    let pair = "```\na\n```\n`REPLACE:`\n```\nb\n```\n";
    for label in [
        "\n`FIND:`\n",
        "`FIND:`\n",
        "\n#### `FIND:`\n",
        "\nFIND:\n",
        "\n**FIND:**\n",
        "\n**`FIND`:**\n",
        "- **FIND:**\n\n",
    ] {
        check(
            &format!("{EDIT}{label}{pair}"),
            &["EDIT a [(\"a\\n\", \"b\\n\")]"],
        );
    }

    check(
        &format!("{EDIT}\n`FIND:`\n{pair}\n#### `FIND:`\n{pair}"),
        &["EDIT a [(\"a\\n\", \"b\\n\"), (\"a\\n\", \"b\\n\")]"],
    );
    check(
        &format!(
            "{EDIT}\n`FIND:`\n````\n#### `FIND:`\n`REPLACE:`\n```\n````\n`REPLACE:`\n```\n```\n"
        ),
        &["EDIT a [(\"#### `FIND:`\\n`REPLACE:`\\n```\\n\", \"\")]"],
    );
    check(
        &format!("{EDIT}- **FIND:**\n  ```\n  a\n  ```\n- **REPLACE:**\n  ```\n    b\n  ```\n"),
        &["EDIT a [(\"a\\n\", \"  b\\n\")]"],
    );
}

#[test]
fn p14_a_description_ends_where_the_label_starts() {
    let (plan, _) = parse(&format!(
        "{HEAD}{EDIT}`FIND:`\n```\na\n```\n`REPLACE:`\n```\nb\n```\n"
    ));
    assert_eq!(plan.actions[0].description(), "d");
}

#[test]
fn p14_an_edit_that_does_not_alternate_is_wrong() {
    let block = "```\na\n```\n";
    check(
        EDIT,
        &[
            "EDIT a []",
            "1 [EDIT a] EDIT has no pair of FIND and REPLACE",
        ],
    );
    check(
        &format!("{EDIT}\n`FIND:`\n{block}\nwords\n"),
        &[
            "EDIT a []",
            "5 [EDIT a] FIND without a REPLACE behind it",
            "10 [EDIT a] unexpected text \"words\"",
        ],
    );
    check(
        &format!("{EDIT}\n`REPLACE:`\n{block}"),
        &["EDIT a []", "5 [EDIT a] REPLACE without a FIND before it"],
    );
    check(
        &format!("{EDIT}\n`FIND:`\n{block}`FIND:`\n{block}`REPLACE:`\n{block}"),
        &[
            "EDIT a [(\"a\\n\", \"a\\n\")]",
            "9 [EDIT a] FIND where a REPLACE is expected: the FIND above has none",
        ],
    );
    check(
        &format!("{EDIT}\n`FIND:`\n{block}and then\n\n`REPLACE:`\n{block}"),
        &[
            "EDIT a [(\"a\\n\", \"a\\n\")]",
            "9 [EDIT a] unexpected text \"and then\"",
        ],
    );
    check(
        &format!("{EDIT}\n`FIND:`\n{block}{block}`REPLACE:`\n{block}"),
        &[
            "EDIT a [(\"a\\n\", \"a\\n\")]",
            "9 [EDIT a] this code block has no label above it",
        ],
    );

    check(
        &format!("{EDIT}\n`FIND:`\n```\n```\n`REPLACE:`\n{block}"),
        &["EDIT a [(\"\", \"a\\n\")]"],
    );
}

#[test]
fn p14_a_label_and_a_fence_on_one_line_are_no_pair() {
    let (_, wrong) = parse(&format!(
        "{HEAD}{EDIT}\n`FIND:` ```py\na\n```\n`REPLACE:`\n```\nb\n```\n"
    ));
    assert!(
        wrong.iter().any(|w| w.message.contains("never closed")),
        "{wrong:?}"
    );
}
