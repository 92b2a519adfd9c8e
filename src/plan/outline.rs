//! Outline of a plan as Markdown parsed it: one line per top-level block.
//!
//! A model that misplaced a fence sees nothing wrong in its own text. The outline shows it how
//! Markdown parsed the text, and marks the blocks with diagnostics.

use super::diagnostic::{Diagnostic, quote};
use super::parse::{MAX_PLAN, normal};
use crate::text::counted;
use crate::text::lines::Lines;
use crate::text::markdown::{self, BlockKind, MarkdownBlock};

/// Blocks listed.
const MAX_OUTLINE_BLOCKS: usize = 500;

/// Returns the outline of a text, with marks for its diagnostics. Empty for a text over the size
/// limit.
pub fn outline(text: &str, wrong: &[Diagnostic]) -> String {
    if text.len() > MAX_PLAN {
        return String::new();
    }

    let text = normal(text);
    let lines = Lines::new(&text);
    let blocks = markdown::blocks(&text);
    let mut out = String::new();
    for (index, block) in blocks.iter().take(MAX_OUTLINE_BLOCKS).enumerate() {
        let mistaken = wrong
            .iter()
            .any(|w| (block.first..=block.last).contains(&w.line));
        let mark = if mistaken { '✗' } else { '✓' };
        out.push_str(&format!(
            "[{mark}] [{index:03}] line {}: {}\n",
            block.first,
            describe_block(block, &lines)
        ));
    }

    if blocks.len() > MAX_OUTLINE_BLOCKS {
        out.push_str(&format!(
            "... and {} more\n",
            blocks.len() - MAX_OUTLINE_BLOCKS
        ));
    }

    out
}

fn describe_block(block: &MarkdownBlock, lines: &Lines<'_>) -> String {
    let first = quote(lines.get(block.first));
    match &block.node {
        BlockKind::Heading {
            level,
            setext: false,
            text,
        } => format!("Heading (level {level}): \"{}\"", quote(text)),
        BlockKind::Heading { level, text, .. } => {
            format!("Heading (level {level}, underlined): \"{}\"", quote(text))
        }
        BlockKind::Code(code) => {
            let fence = match code.fence_char {
                Some('`') => format!("{} backticks", code.fence_len),
                Some(_) => format!("{} tildes", code.fence_len),
                None => "indented".to_owned(),
            };
            let unclosed = if code.is_closed { "" } else { ", never closed" };
            let first_line = code
                .line_range
                .clone()
                .map(|n| lines.get(n))
                .find(|line| !line.trim().is_empty())
                .unwrap_or_default();

            format!(
                "Code block ({fence}, {}{unclosed}): \"{}\"",
                counted(code.line_range.len(), "line"),
                quote(first_line)
            )
        }
        BlockKind::List { items, .. } => {
            format!("List ({}): \"{first}\"", counted(items.len(), "item"))
        }
        BlockKind::Paragraph => format!("Paragraph: \"{first}\""),
        BlockKind::Rule => "Rule".to_owned(),
        BlockKind::Html => format!("HTML: \"{first}\""),
        BlockKind::Quote => format!("Quotation: \"{first}\""),
        BlockKind::Other => format!("Block: \"{first}\""),
    }
}

#[cfg(test)]
mod tests {
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
}
