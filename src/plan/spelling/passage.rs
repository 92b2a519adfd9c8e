//! Splits a plan at its headings, in any spelling.

use std::collections::BTreeSet;
use std::ops::Range;

use super::edits::LineEdits;
use crate::plan::action::ActionRow;
use crate::plan::line::field_item::letters;
use crate::plan::line::name::{self, ActionHeading, text_below};
use crate::plan::line::{self, Section, condition, heading_of, key};
use crate::plan::repair::Note;
use crate::text::markdown::{self, BlockKind, Lines, MarkdownBlock};

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
    pub fn is_message(&self) -> bool {
        matches!(&self.role, PassageRole::Action(heading) if heading.row.is_message())
    }

    fn is_edit(&self) -> bool {
        matches!(&self.role, PassageRole::Action(heading) if heading.row.has_labels())
    }

    pub fn is_action(&self) -> bool {
        matches!(self.role, PassageRole::Action(_))
    }

    fn can_hold_actions(&self) -> bool {
        match &self.role {
            PassageRole::Section(section) => *section == Section::Plan,
            PassageRole::Action(heading) => !heading.row.is_message(),
            PassageRole::Unknown(level) => *level > 2,
            PassageRole::Start | PassageRole::Title => false,
        }
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
        let Some(role) = role(lines, block, open, titled, &exact) else {
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
pub(super) fn separate_headings(text: &str) -> String {
    let lines = Lines::new(text);
    let mut edits = LineEdits::new(&lines);
    let blocks = markdown::blocks(text);
    let longer =
        |block: &&MarkdownBlock| block.node == BlockKind::Paragraph && block.first < block.last;
    let passages = cut(&lines, &blocks);
    let outside_messages = passages.iter().filter(|passage| !passage.is_message());
    let outside_messages = outside_messages.flat_map(|passage| &blocks[passage.blocks.clone()]);
    for block in outside_messages.filter(longer) {
        let line = lines.get(block.first);
        let next_line = lines.get(block.first + 1);
        if name::action(line, next_line).is_some() || name::section(line).is_some() {
            edits.insert(block.first + 1, "");
        }
    }

    edits.finish().0
}

/// Returns a text in which a list that begins with `- **Action:** EDIT` has the heading of that action:
/// in the place of the heading above it, if there is one.
pub(super) fn with_headings(text: &str) -> (String, Vec<Note>) {
    let lines = Lines::new(text);
    let blocks = markdown::blocks(text);
    let mut edits = LineEdits::new(&lines);
    for passage in cut(&lines, &blocks) {
        let holds = passage.can_hold_actions();
        let unknown = matches!(passage.role, PassageRole::Unknown(_));
        let own_blocks = &blocks[passage.blocks.clone()];
        for (index, block) in own_blocks.iter().enumerate() {
            let listed = matches!(block.node, BlockKind::List { .. });
            let Some(row) = named_action(lines.get(block.first)).filter(|_| holds && listed) else {
                continue;
            };
            // Right below the heading of an action it says what the heading says.
            if index == 0 && passage.is_action() {
                continue;
            }
            let above = match index.checked_sub(1) {
                None if unknown => Some(passage.line),
                None => None,
                Some(above) => {
                    let above = &own_blocks[above];
                    let heading = matches!(above.node, BlockKind::Heading { setext: false, .. });
                    heading.then_some(above.first)
                }
            };
            let title = above.map_or("", |line| lines.get(line));
            if condition::is_aside(title) || condition::is_crossed_out(title) {
                continue;
            }

            let original = lines.get(block.first).trim();
            edits.add_note(
                block.first,
                format!("read `{original}` as the action {}", row.name),
            );
            edits.replace(above.unwrap_or(block.first), format!("### `{}`", row.name));
            if above.is_some() {
                edits.remove(block.first);
            }
        }
    }

    edits.finish()
}

fn named_action(item: &str) -> Option<&'static ActionRow> {
    let (key, value) = key::split(item)?;
    let kind = ["action", "actiontype", "type"].contains(&&*letters(key));
    let name = value.trim_matches(['`', '*', ' ']).to_uppercase();
    kind.then(|| line::action(&name)).flatten()
}

/// Returns the sections in a spelling that the parser reads.
fn exact_sections(blocks: &[MarkdownBlock]) -> BTreeSet<Section> {
    let section = |block: &MarkdownBlock| match &block.node {
        BlockKind::Heading {
            level: 2,
            setext: false,
            text,
        } => line::section(text),
        _ => None,
    };
    blocks.iter().filter_map(section).collect()
}

fn role_in_message(line: &str, next_text: &str, level: usize) -> Option<PassageRole> {
    let action = name::action(line, next_text).filter(|action| action.exact);
    let action = action.map(PassageRole::Action);
    action.or((level == 1).then_some(PassageRole::Unknown(1)))
}

/// Below a part of the rationale a block shows something, unless it is surely an action.
fn is_action_below(action: &ActionHeading, next_text: &str, open: &Passage) -> bool {
    let sure = action.exact || action.sure;
    sure || !open.is(Section::Rationale) || key::field(next_text, Some(action.row)).is_some()
}

/// Returns the role of a block that starts a new passage after `open`. `exact` lists the sections
/// that already have an exact heading.
fn role(
    lines: &Lines<'_>,
    block: &MarkdownBlock,
    open: &Passage,
    titled: bool,
    exact: &BTreeSet<Section>,
) -> Option<PassageRole> {
    let line = lines.get(block.first);
    let next_text = text_below(lines, block.last);
    let section = |level: usize| {
        let (named_section, _) = name::section(line)?;
        let free = !exact.contains(&named_section) && (level != 1 || titled);
        free.then_some(PassageRole::Section(named_section))
    };

    let action = || {
        let action = name::action(line, next_text)?;
        is_action_below(&action, next_text, open).then_some(PassageRole::Action(action))
    };

    match &block.node {
        BlockKind::Heading {
            level,
            setext: false,
            text,
        } => {
            let exact_section = line::section(text).filter(|_| *level == 2);
            let level = usize::from(*level);
            if let Some(exact_section) = exact_section {
                return Some(PassageRole::Section(exact_section));
            }

            if open.is_message() {
                return role_in_message(line, next_text, level);
            }

            if let Some(action) = action() {
                return Some(action);
            }

            match level {
                _ if open.is_edit() && name::label(line, next_text).is_some() => None,
                1 if !titled => Some(PassageRole::Title),
                _ => section(level).or_else(|| unknown(level, open)),
            }
        }
        BlockKind::Heading { level, text, .. } if *level == 1 && !titled && !open.is_message() => {
            (!text.is_empty()).then_some(PassageRole::Title)
        }
        // A bold line, or marks of a heading without their blank. In a message it is text.
        BlockKind::Paragraph if block.first == block.last && !open.is_message() => {
            heading_of(line)?;
            action().or_else(|| section(0))
        }
        _ => None,
    }
}

/// Returns whether the text that is left out at a line is inside a command, directly after it, or
/// directly before it. There, words that only announce the command do not count, if it is one in the
/// exact spelling.
pub(super) fn is_beside_command(lines: &Lines<'_>, passages: &[Passage], line: usize) -> bool {
    let Some(at) = passages.iter().rposition(|passage| passage.line <= line) else {
        return false;
    };
    let closing = |passage: &&Passage| matches!(passage.role, PassageRole::Unknown(_));
    let owner = passages[..=at]
        .iter()
        .rev()
        .find(|passage| !closing(passage));
    if owner.is_some_and(|owner| command(owner).is_some()) {
        return true;
    }

    let planned = passages.iter().any(|passage| passage.is(Section::Plan));
    let next = passages.get(at + 1).and_then(command);
    let text = || {
        let texts = (line..=lines.len()).map(|line| lines.get(line).trim());
        texts
            .take_while(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    };
    next.is_some_and(|heading| !(heading.exact && planned && condition::announces(&text())))
}

/// Returns the heading of a passage that runs a command or reaches outside otherwise.
fn command(passage: &Passage) -> Option<&ActionHeading> {
    match &passage.role {
        PassageRole::Action(heading) if heading.row.shape.reaches_outside() => Some(heading),
        _ => None,
    }
}

/// Returns the role of an unknown heading; `None` for a part of the rationale.
fn unknown(level: usize, open: &Passage) -> Option<PassageRole> {
    let deepest = if open.is(Section::Rationale) { 2 } else { 3 };
    (level <= deepest).then(|| PassageRole::Unknown(u8::try_from(level).unwrap_or(u8::MAX)))
}
