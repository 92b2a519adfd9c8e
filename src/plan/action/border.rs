//! Headings that end an action, and which therefore no message can contain.
//!
//! Parser and renderer share this definition. A rendered message never contains what the parser
//! reads as an action, a section or a title.

use std::collections::BTreeSet;

use super::ActionRow;
use crate::plan::line::{self, Section, field_item, looks_like_border, name};
use crate::text::markdown::{self, BlockKind, Lines, MarkdownBlock};

/// A heading that ends the text above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Border {
    /// Level 1.
    Title,
    /// Level 2 with the name of a section.
    Section(Section),
    /// Level 3 with the name of an action.
    Action(&'static ActionRow),
    /// The name of an action at another level or in another spelling, or other words at level 3 with
    /// an action's fields below.
    Unknown,
}

/// Returns the border at a block index. An underlined (setext) heading is never a border.
pub fn border(lines: &Lines<'_>, blocks: &[MarkdownBlock], index: usize) -> Option<Border> {
    let BlockKind::Heading {
        level,
        setext: false,
        text,
    } = &blocks[index].node
    else {
        return None;
    };
    match (level, line::section(text), line::action(text)) {
        (1, ..) => Some(Border::Title),
        (2, Some(section), _) => Some(Border::Section(section)),
        (3, _, Some(row)) => Some(Border::Action(row)),
        (_, _, Some(_)) => Some(Border::Unknown),
        (3, ..) if fields_follow(lines, blocks, index) => Some(Border::Unknown),
        // A message that announces the action ("I would run:") shows it.
        _ => (!name::is_announced(lines, blocks[index].first)
            && name::is_action(lines, blocks[index].first))
        .then_some(Border::Unknown),
    }
}

/// Returns whether the block behind an index is a list that starts with a field of the format.
fn fields_follow(lines: &Lines<'_>, blocks: &[MarkdownBlock], index: usize) -> bool {
    match blocks.get(index + 1).map(|block| &block.node) {
        Some(BlockKind::List {
            ordered: false,
            items,
        }) => field_item::starts_known(lines, items),
        _ => false,
    }
}

/// Returns the lines, from 1, that look like a border but that Markdown parses as part of something
/// other than a fenced code block.
pub fn hidden(lines: &Lines<'_>, blocks: &[MarkdownBlock]) -> Vec<usize> {
    let headings: Vec<usize> = (0..blocks.len())
        .filter(|&i| matches!(blocks[i].node, BlockKind::Heading { setext: false, .. }))
        .map(|i| blocks[i].first)
        .collect();
    let fenced = markdown::fenced(blocks);
    let mut inside = fenced.iter().peekable();
    let mut hidden_lines = Vec::new();

    for number in 1..=lines.len() {
        while inside.next_if(|(range, _)| range.end <= number).is_some() {}
        let in_code = inside
            .peek()
            .is_some_and(|(range, _)| range.contains(&number));
        if !in_code
            && looks_like_border(lines.get(number))
            && headings.binary_search(&number).is_err()
        {
            hidden_lines.push(number);
        }
    }

    hidden_lines
}

/// Writes a message. Escapes lines that would end it with a backslash, and closes an open code
/// block.
pub fn write_message(message: &str, out: &mut String) {
    let lines = Lines::new(message);
    let blocks = markdown::blocks(message);
    let mut borders: BTreeSet<usize> = hidden(&lines, &blocks).into_iter().collect();
    borders.extend(
        (0..blocks.len())
            .filter(|&i| border(&lines, &blocks, i).is_some())
            .map(|i| blocks[i].first),
    );

    for number in 1..=lines.len() {
        let line = lines.raw(number);
        let text = line.trim_start_matches([' ', '\t', '\u{a0}']);
        if borders.contains(&number) {
            out.push_str(&line[..line.len() - text.len()]);
            out.push('\\');
            out.push_str(text);
        } else {
            out.push_str(line);
        }
    }

    if !message.ends_with('\n') {
        out.push('\n');
    }

    // An open code block would swallow the next action.
    if let Some(code) = markdown::fenced(&blocks)
        .into_iter()
        .map(|(_, code)| code)
        .find(|code| !code.is_closed)
    {
        out.push_str(&code.fence());
        out.push('\n');
    }
}
