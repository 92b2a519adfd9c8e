//! Parses the parts of a plan other than actions: header, rationale, memos.

use std::ops::Range;

use crate::plan::action::body::block_text;
use crate::plan::action::border::{Border, border};
use crate::plan::diagnostic::{Diagnostic, quote};
use crate::plan::field::Field;
use crate::plan::line::field_item::{self, Own};
use crate::plan::memo;
use crate::text::markdown::{BlockKind, Lines, MarkdownBlock};

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
                    match field_item::read(lines, item, Own::All) {
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
    for block in blocks.iter().filter(|block| block.node != BlockKind::Rule) {
        match block.fenced() {
            Some(code) if first.is_none() => {
                let text = block_text(lines, code)
                    .unwrap_or_else(|| lines.span(code.line_range.clone()).to_owned());
                first = Some((block.first, text));
            }
            Some(_) => {
                let message = format!("`{name}` has more than one code block");
                let hint = "put all of it into one block whose fence is longer than any run of backticks inside";
                diagnostics.push(Diagnostic::new(block.first, message).hint(hint));
            }
            None => diagnostics.push(unexpected(lines, block.first, "expected one code block")),
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

/// Part of a plan between two borders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The border that opens it; `None` before the first one.
    pub border: Option<Border>,
    pub text: String,
    /// Level of the heading; 0 before the first border.
    pub level: u8,
    /// Line of the heading, from 1.
    pub line: usize,
    /// The line after its last.
    pub end: usize,
    /// Indexes of its blocks, without the heading.
    pub blocks: Range<usize>,
    /// Set for the first region with a title.
    pub first_title: bool,
}

/// Splits a plan. Inside a message only the format's own headings are borders; elsewhere, any
/// heading down to level 3.
pub fn split_regions(lines: &Lines<'_>, blocks: &[MarkdownBlock]) -> Vec<Region> {
    let start = Region {
        border: None,
        text: String::new(),
        level: 0,
        line: 1,
        end: 1,
        blocks: 0..0,
        first_title: false,
    };
    let mut regions = vec![start];
    for (index, block) in blocks.iter().enumerate() {
        let open = regions.last_mut().expect("there is one from the start");
        let BlockKind::Heading {
            level,
            setext: false,
            text,
        } = &block.node
        else {
            open.blocks.end = index + 1;
            continue;
        };

        let unknown = (*level <= 3 && !is_message_region(open)).then_some(Border::Unknown);
        let Some(kind) = border(lines, blocks, index).or(unknown) else {
            open.blocks.end = index + 1;
            continue;
        };

        open.end = block.first;
        let first_title =
            kind == Border::Title && regions.iter().all(|r| r.border != Some(Border::Title));
        let (text, level) = (text.clone(), *level);
        regions.push(Region {
            border: Some(kind),
            text,
            level,
            line: block.first,
            end: 0,
            blocks: index + 1..index + 1,
            first_title,
        });
    }

    regions.last_mut().expect("there is one from the start").end = lines.len() + 1;
    regions
}

fn is_message_region(region: &Region) -> bool {
    matches!(region.border, Some(Border::Action(row)) if row.is_message())
}
