//! Splits a plan at its borders: title, sections, actions.

use std::ops::Range;

use crate::plan::action::border::{Border, border};
use crate::text::lines::Lines;
use crate::text::markdown::{BlockKind, MarkdownBlock};

/// Part of a plan between two borders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The border that opens it; `None` before the first one.
    pub border: Option<Border>,
    /// Text of the heading.
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
