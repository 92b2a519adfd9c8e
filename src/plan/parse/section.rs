//! Parses the parts of a plan other than actions: header, rationale, memos.

use super::region::Region;
use crate::plan::Field;
use crate::plan::action::body::block_text;
use crate::plan::action::field::{self, Own};
use crate::plan::diagnostic::{Diagnostic, quote};
use crate::plan::memo;
use crate::text::lines::Lines;
use crate::text::markdown::{BlockKind, MarkdownBlock};

/// Parses the list below the title (P4, P5).
pub fn header(
    lines: &Lines<'_>,
    region: &Region,
    blocks: &[MarkdownBlock],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Field> {
    if region.text.trim().is_empty() {
        diagnostics.push(
            Diagnostic::new(region.line, "the title is empty")
                .hint("write `# What this plan does`"),
        );
    }

    let mut fields = Vec::new();
    for block in blocks {
        match &block.node {
            BlockKind::List {
                ordered: false,
                items,
            } => {
                for item in items {
                    match field::read(lines, item, Own::All) {
                        Some(entry) => fields.push(entry.field),
                        None => diagnostics.push(unexpected(
                            lines,
                            item.first,
                            "expected `- **Key:** value`",
                        )),
                    }
                }
            }
            BlockKind::Rule => {}
            _ => diagnostics.push(unexpected(
                lines,
                block.first,
                "expected `- **Key:** value` or a section",
            )),
        }
    }

    fields
}

/// Parses the rationale (P6).
pub fn rationale(
    lines: &Lines<'_>,
    region: &Region,
    blocks: &[MarkdownBlock],
    diagnostics: &mut Vec<Diagnostic>,
) -> String {
    let Some((_, text)) = one_block(lines, region, blocks, diagnostics) else {
        return String::new();
    };
    if text.trim().is_empty() {
        diagnostics.push(
            Diagnostic::new(region.line, "the rationale is empty")
                .hint("say in the block why this plan is right"),
        );
    }

    text
}

/// Parses the memos. An empty section changes nothing (P7).
pub fn memos(
    lines: &Lines<'_>,
    region: &Region,
    blocks: &[MarkdownBlock],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<memo::MemoChange> {
    if blocks.iter().all(|block| block.node == BlockKind::Rule) {
        return Vec::new();
    }

    let Some((line, text)) = one_block(lines, region, blocks, diagnostics) else {
        return Vec::new();
    };
    let (changes, mut wrong) = memo::parse_section(&text, line + 1);
    diagnostics.append(&mut wrong);
    changes
}

/// Reports every block except rules as unexpected.
pub fn report_unexpected(
    lines: &Lines<'_>,
    blocks: &[MarkdownBlock],
    expected: &str,
    diagnostics: &mut Vec<Diagnostic>,
) {
    diagnostics.extend(
        blocks
            .iter()
            .filter(|b| b.node != BlockKind::Rule)
            .map(|block| unexpected(lines, block.first, expected)),
    );
}

fn one_block(
    lines: &Lines<'_>,
    region: &Region,
    blocks: &[MarkdownBlock],
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(usize, String)> {
    let name = region.text.trim();
    let mut first = None;
    for block in blocks {
        match &block.node {
            BlockKind::Code(code) if code.fence_char.is_some() && first.is_none() => {
                let text = block_text(lines, code)
                    .unwrap_or_else(|| lines.span(code.line_range.clone()).to_owned());
                first = Some((block.first, text));
            }
            BlockKind::Code(code) if code.fence_char.is_some() => {
                let hint = "put all of it into one block whose fence is longer than any run of backticks inside";
                diagnostics.push(
                    Diagnostic::new(
                        block.first,
                        format!("`{name}` has more than one code block"),
                    )
                    .hint(hint),
                );
            }
            BlockKind::Rule => {}
            _ => diagnostics.push(unexpected(lines, block.first, "expected one code block")),
        }
    }

    if first.is_none() {
        let wrong = Diagnostic::new(region.line, format!("`{name}` has no code block"));
        diagnostics.push(wrong.hint("put its text into one fenced code block"));
    }

    first
}

fn unexpected(lines: &Lines<'_>, line: usize, expected: &str) -> Diagnostic {
    Diagnostic::new(
        line,
        format!("unexpected text \"{}\"", quote(lines.get(line))),
    )
    .hint(expected)
}
