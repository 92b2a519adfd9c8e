//! Outlines of plans whose structure is wrong.

use super::*;

fn outlined(text: &str) -> String {
    outline(text, &crate::plan::parse(text).1)
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(outlined(text).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn p23_wrong_blocks_are_marked_and_fences_are_named() {
    check(
        "# T\n- a: b\n\n## Rationale\n````text\nr\n````\n\n## Action Plan\n\n### `CREATE`\n- **File Path:** a\n```py\nx\n```\nThat is all.\n```\n",
        &[
            "[✓] [000] line 1: Heading (level 1): \"T\"",
            "[✓] [001] line 2: List (1 item): \"- a: b\"",
            "[✓] [002] line 4: Heading (level 2): \"Rationale\"",
            "[✓] [003] line 5: Code block (4 backticks, 1 line): \"r\"",
            "[✓] [004] line 9: Heading (level 2): \"Action Plan\"",
            "[✓] [005] line 11: Heading (level 3): \"`CREATE`\"",
            "[✓] [006] line 12: List (1 item): \"- **File Path:** a\"",
            "[✓] [007] line 13: Code block (3 backticks, 1 line): \"x\"",
            "[✗] [008] line 16: Paragraph: \"That is all.\"",
            "[✗] [009] line 17: Code block (3 backticks, 0 lines, never closed): \"\"",
        ],
    );
}

#[test]
fn p23_text_is_cut_between_characters() {
    let actual = outlined(&"ü".repeat(100));
    assert_eq!(
        actual,
        format!("[✗] [000] line 1: Paragraph: \"{}…\"\n", "ü".repeat(60))
    );
}

#[test]
fn p23_a_hostile_text_has_an_outline_too() {
    assert!(outlined(&"> ".repeat(100_000)).starts_with("[✗] [000] line 1: Quotation"));
    assert_eq!(outlined(""), "");
}
