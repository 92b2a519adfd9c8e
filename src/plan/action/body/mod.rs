//! Splits the part below an action's heading into fields, labels, code blocks and misplaced text.
//!
//! The parser of each action takes what it needs and reports a diagnostic for every mistake. None
//! of them handles Markdown again.

mod parts;

use std::collections::BTreeSet;
use std::ops::Range;

use super::heading::{self, Label};
use super::{ActionRow, field};
use crate::plan::Field;
use crate::plan::diagnostic::{Diagnostic, quote};
use crate::text::lines::Lines;
use crate::text::markdown::{BlockKind, Item, MarkdownBlock, MarkdownCode};
pub use parts::without_optional;

/// The body of an action during parsing.
#[derive(Debug)]
pub struct Body<'a> {
    /// The lines of the plan.
    pub(in crate::plan::action) lines: &'a Lines<'a>,
    /// The action's entry in the table.
    pub(in crate::plan::action) row: &'static ActionRow,
    /// Line of the heading.
    pub line: usize,
    /// The list below the heading.
    pub fields: Vec<Field>,
    /// The parts after the list, in order.
    pub parts: Vec<BodyPart>,
    /// Lines of the message, for actions that have one.
    pub(in crate::plan::action) message: Range<usize>,
    /// Set once a label was seen. A later list item that looks like a field is not one.
    labelled: bool,
    /// Diagnostics so far.
    pub diagnostics: Vec<Diagnostic>,
}

/// Part of an action below its field list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPart {
    /// `FIND:` or `REPLACE:`.
    Label {
        /// Its line.
        line: usize,
        /// The label.
        label: Label,
    },
    /// A fenced code block.
    Code {
        /// Line of the opening fence.
        line: usize,
        /// Text between the fences.
        text: String,
        /// First word of the info string.
        language: String,
    },
    /// Text that the action has no place for.
    Unexpected {
        /// Its first line.
        line: usize,
        /// Kind of text, and its first words.
        description: String,
    },
}

impl<'a> Body<'a> {
    /// Splits the blocks below a heading. `end` is the line after the action's last line.
    pub fn new(
        lines: &'a Lines<'a>,
        row: &'static ActionRow,
        (line, end): (usize, usize),
        blocks: &[MarkdownBlock],
    ) -> Body<'a> {
        let mut body = Body {
            lines,
            row,
            line,
            fields: Vec::new(),
            parts: Vec::new(),
            message: line + 1..end,
            labelled: false,
            diagnostics: Vec::new(),
        };
        if row.is_message() {
            body.cut_message(blocks);
        } else {
            for block in blocks {
                body.cut(block);
            }
        }

        body.check_fields();
        body
    }

    /// Takes the leading fields of an action with a message; the message starts after them.
    fn cut_message(&mut self, blocks: &[MarkdownBlock]) {
        for block in blocks {
            let BlockKind::List {
                ordered: false,
                items,
            } = &block.node
            else {
                return;
            };
            for item in items {
                let parsed = field::read(self.lines, item, field::Own::Indented).filter(|entry| {
                    self.row.keys.contains(&entry.field.key.as_str())
                        || field::is_unsupported(&entry.field.key)
                });
                let Some(entry) = parsed else {
                    self.message.start = item.first;
                    return;
                };

                self.fields.push(entry.field);
                // Anything but a nested list after the item's text starts the message.
                let more = item
                    .blocks
                    .iter()
                    .skip(1)
                    .find(|b| !matches!(b.node, BlockKind::List { .. }))
                    .map(|b| b.first);
                if let Some(start) = entry.text_start.or(more) {
                    self.message.start = start;
                    return;
                }
            }

            self.message.start = block.last + 1;
        }
    }

    fn cut(&mut self, block: &MarkdownBlock) {
        match &block.node {
            BlockKind::List {
                ordered: false,
                items,
            } => items.iter().for_each(|item| self.cut_item(item)),
            BlockKind::Code(code) if code.fence_char.is_some() => {
                self.cut_code(block.first, code, BlockPlace::Top)
            }
            BlockKind::Paragraph => self.cut_text(block.first, block.last),
            BlockKind::Heading {
                text,
                setext: false,
                level: 4..,
            } if self.row.has_labels() && heading::label(text).is_some() => {
                self.cut_text(block.first, block.first);
            }
            BlockKind::Rule => {}
            other => self.push_unexpected(block.first, block_kind(other)),
        }
    }

    /// Takes a list item: a field, or a label written as one.
    fn cut_item(&mut self, item: &Item) {
        let entry = field::read(self.lines, item, field::Own::All);
        let label = self
            .row
            .has_labels()
            .then(|| entry.as_ref().and_then(|e| heading::label(&e.field.key)))
            .flatten();
        match (entry, label) {
            (Some(entry), Some(label)) if entry.field.value.is_empty() => {
                self.label_at(item.first, label)
            }
            (Some(entry), None) if !self.labelled => {
                let text_start = entry.text_start;
                self.fields.push(entry.field);
                if let (Some(text_start), Some(last)) =
                    (text_start, item.blocks.first().map(|b| b.last))
                {
                    self.cut_text(text_start, last);
                }
            }
            _ => return self.push_unexpected(item.first, "list item"),
        }

        for block in item.blocks.iter().skip(1) {
            self.cut_nested(block);
        }
    }

    fn cut_nested(&mut self, block: &MarkdownBlock) {
        match &block.node {
            BlockKind::Code(code) if code.fence_char.is_some() => {
                self.cut_code(block.first, code, BlockPlace::Item)
            }
            BlockKind::List { items, .. } => {
                for inner in items.iter().flat_map(|item| item.blocks.iter().skip(1)) {
                    if let BlockKind::Code(code) = &inner.node {
                        self.cut_code(inner.first, code, BlockPlace::Item);
                    }
                }
            }
            BlockKind::Paragraph => self.cut_text(block.first, block.last),
            other => self.push_unexpected(block.first, block_kind(other)),
        }
    }

    fn cut_text(&mut self, first: usize, last: usize) {
        let mut reported = false;
        for line in first..=last {
            let text = self.lines.get(line).trim();
            match heading::label(text).filter(|_| self.row.has_labels()) {
                Some(label) => {
                    self.label_at(line, label);
                    reported = false;
                }
                None if reported => {}
                None => {
                    let kind = if field::is_fence(text) {
                        "line that is not a fence in Markdown"
                    } else {
                        "text"
                    };
                    self.push_unexpected(line, kind);
                    reported = true;
                }
            }
        }
    }

    fn label_at(&mut self, line: usize, label: Label) {
        self.labelled = true;
        self.parts.push(BodyPart::Label { line, label });
    }

    fn cut_code(&mut self, line: usize, code: &MarkdownCode, position: BlockPlace) {
        let text = block_text(self.lines, code);
        if position == BlockPlace::Item && text.is_none() && code.indent > 0 {
            let message = "the lines of this code block are not all indented as far as its fence";
            self.diagnostics.push(
                Diagnostic::new(line, message)
                    .hint("put the fences and the content at the start of the line"),
            );
        }

        let text = text.unwrap_or_else(|| self.lines.span(code.line_range.clone()).to_owned());
        let language = code
            .info
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned();
        self.parts.push(BodyPart::Code {
            line,
            text,
            language,
        });
    }

    fn push_unexpected(&mut self, line: usize, kind: &str) {
        let description = format!("{kind} \"{}\"", quote(self.lines.get(line)));
        self.parts.push(BodyPart::Unexpected { line, description });
    }

    /// Reports fields that have no meaning here, and fields that occur twice.
    fn check_fields(&mut self) {
        let name = self.row.name;
        let mut used_keys = BTreeSet::new();
        for entry in &self.fields {
            let key = entry.key.as_str();
            // In a message, a line such as `When: ...` is ordinary text (P20).
            let condition = field::is_condition(key) && !self.row.is_message();
            if !field::has_weight(key) && !condition {
                continue;
            }

            if condition || field::is_unsupported(key) || !self.row.keys.contains(&key) {
                let keys: Vec<String> = self.row.keys.iter().map(|k| format!("`{k}`")).collect();
                let message = format!("`{key}` has no meaning in {name}");
                self.diagnostics.push(
                    Diagnostic::new(entry.line, message)
                        .hint(format!("leave it out; {name} knows {}", keys.join(", "))),
                );
            } else if !used_keys.insert(key) {
                self.diagnostics.push(
                    Diagnostic::new(entry.line, format!("`{key}` appears twice"))
                        .hint("keep one of them"),
                );
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockPlace {
    Top,
    Item,
}

/// Returns the content of a block. The fence's indentation is removed if every non-blank line has
/// it; `None` if only some lines have it.
pub fn block_text(lines: &Lines<'_>, code: &MarkdownCode) -> Option<String> {
    let raw = lines.span(code.line_range.clone());
    if code.indent == 0 {
        return Some(raw.to_owned());
    }

    let mut text = String::with_capacity(raw.len());
    for number in code.line_range.clone() {
        text.push_str(dedented(lines.raw(number), code.indent)?);
    }
    Some(text)
}

/// Removes `indent` columns of whitespace from a line, or fewer from a blank line. `None` if the
/// line is indented less.
fn dedented(line: &str, indent: usize) -> Option<&str> {
    let mut column = 0;
    for (at, c) in line.char_indices() {
        match c {
            _ if column == indent => return Some(&line[at..]),
            ' ' => column += 1,
            '\t' => column = column / 4 * 4 + 4,
            '\n' | '\r' => return Some(&line[at..]),
            _ => return None,
        }

        if column > indent {
            return None;
        }
    }

    Some("")
}

fn block_kind(node: &BlockKind) -> &'static str {
    match node {
        BlockKind::Heading { .. } => "heading",
        BlockKind::Code(_) => "indented code",
        BlockKind::List { .. } => "numbered list",
        BlockKind::Paragraph => "text",
        BlockKind::Rule => "rule",
        BlockKind::Html => "HTML",
        BlockKind::Quote => "quotation",
        BlockKind::Other => "block",
    }
}
