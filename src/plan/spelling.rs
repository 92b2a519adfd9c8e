//! Respells plans in the format's exact spelling.
//!
//! The parser is strict, and whatever it accepts is not changed. A text that it rejects is tried
//! once more here: headings, fields, labels, sections and values in other spellings are replaced by
//! the format's own, and text next to the blocks is removed, each with a remark. Ambiguous text is
//! left for the parser to reject. Rules P25 to P37 of `docs/formats/plan.md`.
//!
//! Only lines outside code blocks are considered, so the fences must be correct already.

mod action;
mod edits;
mod extra;
pub(super) mod markup;
mod passage;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod refused_tests;
mod section;
#[cfg(test)]
mod tests;

use crate::plan::line::name;
use crate::plan::repair::Note;
use crate::text::markdown;
use crate::text::markdown::Lines;
use edits::LineEdits;

/// A text in the format's spelling.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Respelled {
    pub text: String,
    /// The text that the remarks' lines refer to: the given one, with some lines separated.
    pub source: String,
    /// Changes made.
    pub notes: Vec<Note>,
    /// Whether text next to the blocks was removed. The extent of blocks then depends on the fences
    /// alone.
    pub spoken: bool,
}

/// Respells a plan wherever its meaning is unambiguous.
pub fn respell(original: &str) -> Respelled {
    let (text, mut notes) = markup::without_tags(&passage::separate_headings(original));
    let (text, more) = passage::with_headings(&text);
    notes.extend(more);
    let lines = Lines::new(&text);
    let blocks = markdown::blocks(&text);
    let mut passages = passage::cut(&lines, &blocks);
    if !passage::is_plan(&lines, &passages) {
        return Respelled {
            text: original.to_owned(),
            source: original.to_owned(),
            ..Respelled::default()
        };
    }

    let mut edits = LineEdits::new(&lines);
    section::name_all(&blocks, &mut passages, &mut edits);
    let mut proposed = false;
    let last = passages.iter().rposition(passage::Passage::is_action);
    for (index, passage) in passages.iter().enumerate() {
        let own = &blocks[passage.blocks.clone()];
        if passage.is_action() {
            action::respell(passage, own, proposed, last == Some(index), &mut edits);
            proposed |= passage.is_message() && name::is_announced(&lines, passage.end);
        } else {
            section::respell(passage, own, &mut edits);
        }
    }

    edits.mark_asides(&|line| passage::is_beside_command(&passages, line));
    let spoken = edits.spoken;
    let (respelled, more) = edits.finish();
    notes.extend(more);
    Respelled {
        text: respelled,
        source: text,
        notes,
        spoken,
    }
}
