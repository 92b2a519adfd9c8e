//! Respells one action: its heading, fields and labels, and the text next to its blocks.

mod field;

use std::ops::Range;

use super::edits::LineEdits;
use super::extra::ExtraBlocks;
use super::passage::Passage;
use crate::plan::action::{ActionRow, BodyShape};
use crate::plan::diagnostic::quote;
use crate::plan::line::condition::{is_aside, is_output};
use crate::plan::line::field_item::canonical;
use crate::plan::line::key::{self, COMMAND, KeyedLine};
use crate::plan::line::name::{self, ActionHeading, text_below};
use crate::plan::line::{self, Label, is_fence, prose, unlisted};
use crate::text::link;
use crate::text::markdown::Lines;
use crate::text::markdown::{BlockKind, Item, MarkdownBlock};

/// State while an action is respelled.
struct Speller<'a, 'b> {
    lines: &'a Lines<'a>,
    row: &'static ActionRow,
    edits: &'b mut LineEdits<'a>,
    /// Path or resource that a field names.
    target: Option<String>,
    /// Whether a field names the receiving agent.
    agent: bool,
    /// Texts from fields that become blocks.
    blocks: Vec<String>,
    /// Lines of its code blocks.
    fenced: Vec<Range<usize>>,
    /// Whether FIND and REPLACE occur in the format's own words. Other words are not labels then.
    labelled: [bool; 2],
    /// Whether a message above announces the action. Text after its blocks can belong to that
    /// message.
    proposed: bool,
}

/// Position of an action.
pub(super) struct ActionContext<'a> {
    pub heading: &'a ActionHeading,
    pub blocks: &'a [MarkdownBlock],
    pub proposed: bool,
    /// Whether no other action follows.
    pub is_last: bool,
}

/// Respells an action in the format's spelling.
pub(super) fn respell<'a>(
    lines: &'a Lines<'a>,
    passage: &Passage,
    context: ActionContext<'_>,
    edits: &mut LineEdits<'a>,
) {
    let ActionContext {
        heading,
        blocks,
        proposed,
        is_last,
    } = context;
    let extra = ExtraBlocks {
        lines,
        row: heading.row,
        blocks,
        is_last,
    };
    let remaining = extra.respell(passage, edits);
    let mut speller = Speller {
        lines,
        row: heading.row,
        edits,
        target: None,
        agent: false,
        blocks: Vec::new(),
        fenced: blocks.iter().filter_map(code_of).collect(),
        labelled: own_labels(lines, blocks),
        proposed,
    };

    for (index, block) in blocks[..remaining].iter().enumerate() {
        let above = index.checked_sub(1).map(|above| &blocks[above]);
        if above.is_some_and(|above| speller.nests(above, block)) {
            continue;
        }

        let goes_on = speller.block(block);
        if passage.is_message() && !goes_on {
            break;
        }
    }

    speller.heading(passage.line, heading);
    speller.add_blocks(passage);
}

fn code_of(block: &MarkdownBlock) -> Option<Range<usize>> {
    match &block.node {
        BlockKind::Code(code) if code.fence_char.is_some() => Some(code.line_range.clone()),
        _ => None,
    }
}

/// Returns whether FIND and REPLACE occur in the format's own words.
fn own_labels(lines: &Lines<'_>, blocks: &[MarkdownBlock]) -> [bool; 2] {
    let text_blocks = blocks.iter().filter(|block| code_of(block).is_none());
    let labels: Vec<Label> = text_blocks
        .flat_map(|block| block.first..=block.last)
        .filter_map(|line| name::own_label(lines.get(line)))
        .collect();
    [Label::Find, Label::Replace].map(|label| labels.contains(&label))
}

impl Speller<'_, '_> {
    /// Respells a block. Returns whether further fields of an action with a message can follow it.
    fn block(&mut self, block: &MarkdownBlock) -> bool {
        match &block.node {
            BlockKind::List { items, .. } => {
                let fields = items.iter().all(|item| self.item(item));
                if !self.row.is_message() {
                    self.fields_in_items(block);
                }
                fields
            }
            BlockKind::Paragraph => self.paragraph(block.first, block.last),
            BlockKind::Heading {
                level,
                setext: false,
                text,
            } if !self.row.is_message() => {
                let read = *level > 3 && line::label(text).is_some();
                self.heading_below(block.first, read);
                true
            }
            BlockKind::Quote if !self.row.is_message() => {
                self.quotation(block);
                true
            }
            _ => false,
        }
    }

    /// Nests a list into the bulletless field above it. Returns whether it belongs there.
    fn nests(&mut self, above: &MarkdownBlock, list: &MarkdownBlock) -> bool {
        let line = above.last;
        let field = key::field(self.lines.get(line), Some(self.row));
        let open = field.is_some_and(|field| {
            field.value.is_empty() && ["env", "Handoff Resources"].contains(&field.key)
        });
        let nests = open
            && above.node == BlockKind::Paragraph
            && matches!(list.node, BlockKind::List { .. })
            && list.first == line + 1;

        if nests {
            for line in list.first..=list.last {
                self.edits
                    .replace(line, format!("    {}", self.lines.get(line)));
            }
        }

        nests
    }

    /// Respells lines below an item that are marked as separate fields.
    fn fields_in_items(&mut self, list: &MarkdownBlock) {
        for line in list.first..=list.last {
            if let Some(field) = key::unlisted_field(self.lines.get(line), self.row) {
                self.field(line, field, None);
            }
        }
    }

    /// Respells an item: a field or a label. Returns whether it is a field.
    fn item(&mut self, item: &Item) -> bool {
        let line = item.first;
        let text = self.lines.get(line);
        let first = item.blocks.first();
        let last = first
            .filter(|block| block.node == BlockKind::Paragraph)
            .map_or(line, |block| block.last);

        if let Some(label) = self.label(line) {
            if line::label(unlisted(text)).is_none() {
                let indent = &text[..text.len() - text.trim_start().len()];
                self.write_label(line, &format!("{indent}- "), label);
            }
            return false;
        }

        let lists = item
            .blocks
            .iter()
            .filter(|block| matches!(block.node, BlockKind::List { .. }));
        let nested: Vec<usize> = lists.flat_map(|block| block.first..=block.last).collect();
        let Some(field) = key::field(text, Some(self.row)) else {
            return self.unknown_item(line);
        };

        for more in line + 1..=last {
            if let Some(label) = self.label(more) {
                self.separate_label(more, label);
            }
        }

        let alone = last == line && item.blocks.len() <= 1;
        self.field(line, field, if alone { None } else { Some(&nested) });
        true
    }

    /// Respells an item with an unknown key. The only link of an action without a path is its path.
    fn unknown_item(&mut self, line: usize) -> bool {
        let text = self.lines.get(line);
        let Some(target_key) = self.row.target_key() else {
            return false;
        };
        let linked = key::split(text).filter(|(key, value)| {
            canonical(key).is_none() && value.starts_with('[') && link::read(value).is_ok()
        });
        let Some((_, value)) = linked.filter(|_| self.target.is_none()) else {
            return false;
        };

        let field = KeyedLine {
            key: target_key,
            value,
        };
        self.field(line, field, None);
        true
    }

    /// Respells a paragraph: fields without bullets, labels, sentences. Returns whether it consists
    /// of fields only.
    fn paragraph(&mut self, first: usize, last: usize) -> bool {
        let (lines, row) = (self.lines, self.row);
        let keyed = |line: usize| key::field(lines.get(line), Some(row));
        if keyed(first).is_some() {
            let until = (first..=last)
                .find(|&line| self.label(line).is_some() || is_fence(self.lines.get(line)))
                .unwrap_or(last + 1);
            for line in first..until {
                match keyed(line) {
                    // The command can continue on the next line.
                    Some(field)
                        if field.key == COMMAND
                            && line + 1 < until
                            && keyed(line + 1).is_none() => {}
                    Some(field) => self.field(line, field, None),
                    None if self.row.is_message() => {
                        self.edits.insert(line, "");
                        return false;
                    }
                    None => self.more_of_field(line),
                }
            }

            if until <= last {
                self.edits.insert(until, "");
                self.respell_text(until, last);
            }

            return until > last;
        }

        if !self.row.is_message() {
            self.respell_text(first, last);
        }

        false
    }

    /// Respells lines of text: labels are written exactly, sentences are removed.
    fn respell_text(&mut self, first: usize, last: usize) {
        let mut start = first;
        for line in first..=last + 1 {
            let label = (line <= last).then(|| self.label(line)).flatten();
            if label.is_none() && line <= last {
                continue;
            }

            if start < line {
                self.leave_out_words(start, line - 1);
            }

            if let Some(label) = label
                && line::label(self.lines.get(line)).is_none()
            {
                self.write_label(line, "", label);
            }
            start = line + 1;
        }
    }

    /// Removes sentences, with two exceptions: above a command's block they can say that it is
    /// output, and after an action that a message announces they can belong to the message.
    fn leave_out_words(&mut self, first: usize, last: usize) {
        let texts: Vec<&str> = (first..=last).map(|line| self.lines.get(line)).collect();
        let follows_code = self.fenced.iter().all(|block| block.start < first);
        let is_output_text =
            self.row.shape == BodyShape::Script && !follows_code && is_output(&texts.join(" "));
        if is_output_text || (follows_code && self.proposed) {
            return;
        }

        if self.row.shape.reaches_outside() {
            self.edits.leave_out_asides(first..=last, &texts);
        } else {
            self.edits.leave_out_words(first..=last, &texts);
        }
    }

    /// Takes a line below a field without a bullet for more of the field.
    fn more_of_field(&mut self, line: usize) {
        let text = self.lines.get(line).trim();
        self.edits.replace(line, format!("  {text}"));
        let own = self.row.shape.reaches_outside()
            && prose::is_sentence_of_its_own(self.lines.get(line - 1), text);
        if own {
            let message = format!("took \"{}\" for more of the field above", quote(text));
            self.edits.add_aside(line, message);
        }
    }

    /// Takes a heading below the action's own: a label, or a word above a block that says nothing.
    fn heading_below(&mut self, line: usize, is_read: bool) {
        match self.label(line) {
            Some(_) if is_read => {}
            Some(label) => self.write_label(line, "", label),
            None if is_aside(self.lines.get(line)) || is_output(self.lines.get(line)) => {}
            None if is_fence(text_below(self.lines, line)) || self.label_follows(line) => {
                self.edits.leave_out(line..=line, "the heading");
            }
            None => {}
        }
    }

    /// Removes a quotation without meaning for the plan.
    fn quotation(&mut self, block: &MarkdownBlock) {
        let texts: Vec<&str> = (block.first..=block.last)
            .map(|line| {
                self.lines
                    .get(line)
                    .trim_start()
                    .trim_start_matches(['>', ' '])
            })
            .collect();
        if self.row.shape.reaches_outside() {
            self.edits
                .leave_out_asides(block.first..=block.last, &texts);
        } else {
            self.edits.leave_out_words(block.first..=block.last, &texts);
        }
    }

    fn label(&self, line: usize) -> Option<Label> {
        if !self.row.has_labels() {
            return None;
        }

        let text = self.lines.get(line);
        let plain = unlisted(text).trim_start_matches('#');
        let other = || {
            let label = name::label(text, text_below(self.lines, line))?;
            let has_label = self.labelled[usize::from(label == Label::Replace)];
            (!has_label || name::own_label(text).is_some()).then_some(label)
        };

        line::label(plain).or_else(other)
    }

    /// Returns whether the next non-blank line is a label.
    fn label_follows(&self, line: usize) -> bool {
        let next =
            (line + 1..=self.lines.len()).find(|&number| !self.lines.get(number).trim().is_empty());
        next.is_some_and(|number| self.label(number).is_some())
    }

    fn write_label(&mut self, line: usize, before: &str, label: Label) {
        let name = if label == Label::Find {
            "FIND"
        } else {
            "REPLACE"
        };

        let original = self.lines.get(line).trim();
        self.edits
            .add_note(line, format!("read `{original}` as {name}"));
        let marks = if before.is_empty() { "`" } else { "" };
        self.edits
            .replace(line, format!("{before}{marks}{name}:{marks}"));
    }

    /// Separates a label from the field above it.
    fn separate_label(&mut self, line: usize, label: Label) {
        if line::label(self.lines.get(line).trim()).is_none() {
            self.edits.insert(line, "");
            self.write_label(line, "", label);
        }
    }
}
