//! Respells plans in the format's exact spelling.
//!
//! The parser is strict, and whatever it accepts is not changed. A text that it rejects is tried
//! once more here: headings, fields, labels, sections and values in other spellings are replaced by
//! the format's own, and text next to the blocks is removed, each with a remark. Ambiguous text is
//! left for the parser to reject. Rules P25 to P37 of `docs/formats/plan.md`.
//!
//! Only lines outside code blocks are considered, so the fences must be correct already. Repair,
//! which corrects them, uses [`name`] to classify lines.

mod action;
mod condition;
mod edits;
mod extra;
pub(super) mod key;
mod markup;
pub mod name;
mod passage;
pub(super) mod prose;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod refused_tests;
mod section;
#[cfg(test)]
mod tests;

mod value;

use crate::plan::Field;
use crate::plan::action::ActionRow;
use crate::plan::action::BodyShape;
use crate::plan::action::field;
pub use crate::plan::spelling::markup::unwrapped_plan;
use crate::text::markdown;
use crate::text::markdown::Lines;
use edits::LineEdits;

/// Longest value that is searched for a further field, in bytes.
const MAX_VALUE: usize = 4096;

/// A respelled or removed part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpellingNote {
    /// Line in the given text, from 1.
    pub line: usize,
    /// Description, without a full stop.
    pub message: String,
    /// Whether it is about words inside or directly behind a command.
    pub aside: bool,
}

/// A text in the format's spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Respelled {
    pub text: String,
    /// The text that the remarks' lines refer to: the given one, with some lines separated.
    pub source: String,
    /// Changes made.
    pub notes: Vec<SpellingNote>,
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
            notes: Vec::new(),
            spoken: false,
        };
    }

    let mut edits = LineEdits::new(&lines);
    section::name_all(&lines, &blocks, &mut passages, &mut edits);
    let mut proposed = false;
    let last = passages.iter().rposition(passage::Passage::is_action);
    for (index, passage) in passages.iter().enumerate() {
        let own = &blocks[passage.blocks.clone()];
        match &passage.role {
            passage::PassageRole::Action(heading) => {
                let context = action::ActionContext {
                    heading,
                    blocks: own,
                    proposed,
                    is_last: last == Some(index),
                };
                action::respell(&lines, passage, context, &mut edits);
                proposed |= passage.is_message() && passage::is_proposed(&lines, passage.end);
            }
            _ => section::respell(&lines, passage, own, &mut edits),
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

/// Returns whether a line is a field of an action or the header, with or without a bullet.
pub fn is_field(line: &str, row: Option<&'static ActionRow>) -> bool {
    key::field(line, row).is_some()
}

/// Returns whether a line is a field that changes what an action does, and could be incomplete.
pub fn is_open_setting(line: &str, row: &'static ActionRow) -> bool {
    let keyed = key::field(line, Some(row)).filter(|keyed| field::has_weight(keyed.key));
    keyed.is_some_and(|keyed| !keyed.value.ends_with([')', '`', '"', '>']))
}

/// Returns whether the parser misreads a field: a setting of a command under another key, a path in
/// quotes, a value that contains a further field.
pub fn is_misread(field: &Field, row: &'static ActionRow) -> bool {
    let texts = std::iter::once(&field.value).chain(&field.items);
    if texts.into_iter().any(|text| holds_field(text, row)) {
        return true;
    }

    let other = field::canonical(&field.key).is_none() && row.shape == BodyShape::Script;
    let is_weighted = key::resolve(&field.key, Some(row)).is_some_and(field::has_weight);
    let path = matches!(field.key.as_str(), "File Path" | "Resource");
    (other && is_weighted) || (path && field.value.starts_with(['"', '\'', '“']))
}

/// Returns whether a value goes on with a field that changes what its action does; a longer one is
/// not looked at, as every word of it could begin one.
fn holds_field(value: &str, row: &'static ActionRow) -> bool {
    value.len() <= MAX_VALUE
        && value
            .match_indices(' ')
            .filter_map(|(at, _)| key::unlisted_field(&value[at + 1..], row))
            .any(|keyed| field::has_weight(keyed.key))
}

/// Returns whether a heading is that of an action in any spelling, by its name alone or by a field of
/// the action below it.
pub fn is_action(lines: &Lines<'_>, line: usize) -> bool {
    let next_text = passage::text_below(lines, line);
    let Some(heading) = name::action(lines.get(line), next_text) else {
        return false;
    };
    let field = key::field(next_text, Some(heading.row));
    heading.sure
        || field.is_some_and(|keyed| field::has_weight(keyed.key) || keyed.key == "Description")
}

/// Returns whether the words above a line announce it, or say what would be done.
pub fn is_announced(lines: &Lines<'_>, line: usize) -> bool {
    passage::is_proposed(lines, line)
}

/// Returns a path without the `@` of a mention before it and the lines behind it.
pub fn unmentioned(path: &str) -> &str {
    value::unmentioned(path)
}

/// Returns whether a line is a sentence.
pub fn is_prose(line: &str) -> bool {
    prose::is_prose(&[line])
}

/// Returns whether a field's value means "none".
pub fn is_nothing(value: &str) -> bool {
    value::is_nothing(value)
}
