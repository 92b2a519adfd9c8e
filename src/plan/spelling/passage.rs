//! Splits a plan at its headings, in any spelling.

use std::ops::Range;

use super::condition::is_condition;
use super::edits::LineEdits;
use super::key;
use super::name::{self, ActionHeading};
use crate::plan::action::field::has_weight;
use crate::plan::action::heading::{self, Section};
use crate::text::lines::Lines;
use crate::text::markdown::{self, BlockKind, MarkdownBlock};

/// Part of a plan between two headings.
#[derive(Debug)]
pub(super) struct Passage {
    pub role: PassageRole,
    /// Line of the heading; 0 before the first one.
    pub line: usize,
    /// The line after its last.
    pub end: usize,
    /// Indexes of its blocks, without the heading.
    pub blocks: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PassageRole {
    /// Before the first heading.
    Start,
    /// The title and the text below it.
    Title,
    Section(Section),
    /// Below an unknown heading of this level.
    Unknown(u8),
    Action(ActionHeading),
}

impl Passage {
    /// Returns whether it is an action with a message.
    pub fn is_message(&self) -> bool {
        matches!(&self.role, PassageRole::Action(heading) if heading.row.is_message())
    }

    fn is_edit(&self) -> bool {
        matches!(&self.role, PassageRole::Action(heading) if heading.row.has_labels())
    }

    pub fn is_action(&self) -> bool {
        matches!(self.role, PassageRole::Action(_))
    }

    pub fn is(&self, section: Section) -> bool {
        self.role == PassageRole::Section(section)
    }
}

pub(super) fn cut(lines: &Lines<'_>, blocks: &[MarkdownBlock]) -> Vec<Passage> {
    let mut passages = vec![Passage {
        role: PassageRole::Start,
        line: 0,
        end: lines.len() + 1,
        blocks: 0..0,
    }];
    let exact = exact_sections(blocks);
    let mut titled = false;

    for (index, block) in blocks.iter().enumerate() {
        let open = passages.last_mut().expect("there is one from the start");
        let Some(role) = role(lines, block, open, (titled, &exact)) else {
            open.blocks.end = index + 1;
            continue;
        };

        open.end = block.first;
        titled |= role == PassageRole::Title;
        passages.push(Passage {
            role,
            line: block.first,
            end: lines.len() + 1,
            blocks: index + 1..index + 1,
        });
    }

    passages
}

/// Returns whether passages form a plan: they have an action, and also a title or a section, or
/// nothing but actions. Text followed by an action can be an explanation with an example.
pub(super) fn is_plan(lines: &Lines<'_>, passages: &[Passage]) -> bool {
    let Some(first) = passages.iter().find(|passage| passage.is_action()) else {
        return false;
    };
    let is_part = |passage: &Passage| {
        let part = matches!(
            passage.role,
            PassageRole::Title | PassageRole::Section(_) | PassageRole::Unknown(_)
        );
        part && passage.line < first.line
    };

    let is_blank = |line: usize| lines.get(line).trim().is_empty();
    passages.iter().any(is_part) || (1..first.line).all(is_blank)
}

/// Separates every line that is a heading without its marks or its space from the lines below.
pub(super) fn apart(text: &str) -> String {
    let lines = Lines::new(text);
    let mut edits = LineEdits::new(&lines);
    let longer =
        |block: &MarkdownBlock| block.node == BlockKind::Paragraph && block.first < block.last;
    for block in markdown::blocks(text).iter().filter(|block| longer(block)) {
        let line = lines.get(block.first);
        let below = lines.get(block.first + 1);
        if name::action(line, below).is_some() || name::section(line).is_some() {
            edits.insert(block.first + 1, "");
        }
    }

    edits.finish().0
}

/// Returns the sections with a heading that the parser accepts.
fn exact_sections(blocks: &[MarkdownBlock]) -> Vec<Section> {
    let found: Vec<Section> = blocks
        .iter()
        .filter_map(|block| match &block.node {
            BlockKind::Heading {
                level: 2,
                setext: false,
                text,
            } => heading::section(text),
            _ => None,
        })
        .collect();
    // Each section once, in order.
    let all = [Section::Rationale, Section::Memos, Section::Plan];
    all.into_iter()
        .filter(|section| found.contains(section))
        .collect()
}

/// Returns the role of a block that starts a new passage after `open`. `exact` lists the sections
/// that already have an exact heading.
fn role(
    lines: &Lines<'_>,
    block: &MarkdownBlock,
    open: &Passage,
    (titled, exact): (bool, &[Section]),
) -> Option<PassageRole> {
    let line = lines.get(block.first);
    let below = below(lines, block.last);
    let section = |level: usize| {
        let (found, _) = name::section(line)?;
        let free = !exact.contains(&found) && (level != 1 || titled);
        free.then_some(PassageRole::Section(found))
    };

    match &block.node {
        BlockKind::Heading {
            level,
            setext: false,
            text,
        } => {
            let known = heading::section(text).filter(|_| *level == 2);
            let level = usize::from(*level);
            if let Some(known) = known {
                return Some(PassageRole::Section(known));
            }

            if open.is_message() {
                let action = message_end(lines, block).map(PassageRole::Action);
                return action.or((level == 1).then_some(PassageRole::Unknown(1)));
            }

            // Below a part of the rationale, a block is an illustration.
            let keyed = |action: &ActionHeading| {
                let sure = action.exact || action.sure;
                sure || !open.is(Section::Rationale)
                    || key::field(below, Some(action.row)).is_some()
            };
            if let Some(action) = name::action(line, below).filter(keyed) {
                return Some(PassageRole::Action(action));
            }

            match level {
                _ if open.is_edit() && is_label(line, below) => None,
                1 if !titled => Some(PassageRole::Title),
                _ => section(level).or_else(|| unknown(level, open)),
            }
        }
        BlockKind::Heading { level, text, .. } if *level == 1 && !titled && !open.is_message() => {
            (!text.is_empty()).then_some(PassageRole::Title)
        }
        BlockKind::Paragraph if block.first == block.last && open.is_message() => {
            message_end(lines, block).map(PassageRole::Action)
        }
        // A bold line, or marks of a heading without the space.
        BlockKind::Paragraph if block.first == block.last => {
            name::heading_of(line)?;
            let action = || name::action(line, below).map(PassageRole::Action);
            action().or_else(|| section(0))
        }
        _ => None,
    }
}

/// Parses a block inside a message as the heading of an action: its name is unmistakable, or a
/// field of the action follows.
pub(super) fn message_end(lines: &Lines<'_>, block: &MarkdownBlock) -> Option<ActionHeading> {
    let below = below(lines, block.last);
    let heading = name::action(lines.get(block.first), below)?;
    let keyed = key::field(below, Some(heading.row))
        .is_some_and(|field| has_weight(field.key) || field.key == "Description");
    let sure = heading.sure || keyed;
    (heading.exact || (sure && !is_proposed(lines, block.first))).then_some(heading)
}

/// Returns whether the text above a line announces it or makes it conditional. In a message, such
/// an action can be a proposal.
pub(super) fn is_proposed(lines: &Lines<'_>, line: usize) -> bool {
    let mut above = (1..line).rev().map(|line| lines.get(line));
    let words = above.find(|text| !text.trim().is_empty());
    let words = words.filter(|text| name::heading_of(text).is_none());
    words.is_some_and(|text| text.trim_end().ends_with(':') || is_condition(text))
}

fn is_label(line: &str, below: &str) -> bool {
    name::label(line, below).is_some()
}

/// Returns the role of an unknown heading; `None` for a part of the rationale.
fn unknown(level: usize, open: &Passage) -> Option<PassageRole> {
    let deepest = if open.is(Section::Rationale) { 2 } else { 3 };
    (level <= deepest).then(|| PassageRole::Unknown(u8::try_from(level).unwrap_or(u8::MAX)))
}

/// Returns the next non-blank line.
pub(super) fn below<'a>(lines: &Lines<'a>, line: usize) -> &'a str {
    (line + 1..=lines.len())
        .map(|number| lines.get(number))
        .find(|text| !text.trim().is_empty())
        .unwrap_or_default()
}
