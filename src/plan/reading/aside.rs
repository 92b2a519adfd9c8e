//! Words inside a command that the parser takes for more of a field, or for a field of another name.
//!
//! Neither changes what runs, and either can say that it must not: `- **Note:** not before Friday`,
//! or a sentence right below the last field. Whatever the language, a plan that has such words is for
//! a person to weigh.

use std::collections::HashSet;

use crate::plan::action::Action;
use crate::plan::diagnostic::quote;
use crate::plan::document::Plan;
use crate::plan::line::field_item::letters;
use crate::plan::line::{is_fence, is_listed, key, prose};
use crate::plan::repair::Note;
use crate::text::has_word;
use crate::text::markdown::{self, Lines, MarkdownBlock};

/// Keys that only describe the block or count the step.
const PLAIN_KEYS: &str = "\
    language shell type action actiontype id step number order category";

/// Returns a note for each such word in the commands of a plan.
pub(super) fn command_notes(plan: &Plan, text: &str) -> Vec<Note> {
    let lines = Lines::new(text);
    let reaches_outside = |action: &&Action| action.kind.row().shape.reaches_outside();
    let commands: Vec<&Action> = plan.actions.iter().filter(reaches_outside).collect();
    if commands.is_empty() {
        return Vec::new();
    }
    let notes = commands.iter();
    let notes = notes.flat_map(|action| notes_of_command(action, &lines));
    notes.chain(unseen_notes(plan, &lines, text)).collect()
}

/// Returns a note for each link definition outside of messages, which Markdown shows nobody:
/// `[//]: # (not yet)`.
fn unseen_notes(plan: &Plan, lines: &Lines<'_>, text: &str) -> Vec<Note> {
    let blocks = markdown::blocks(text);
    let visible: HashSet<usize> = blocks.iter().flat_map(MarkdownBlock::lines).collect();
    let is_in_message = |line: usize| {
        let above = plan.actions.iter().rfind(|action| action.line < line);
        above.is_some_and(|action| action.kind.row().is_message())
    };
    let is_unseen = |line: &usize| {
        let text = lines.get(*line).trim_start();
        let is_definition = text.starts_with('[') && text.contains("]:");
        is_definition && !visible.contains(line) && !is_in_message(*line)
    };
    let note = |line| {
        let message = format!("\"{}\" is invisible in Markdown", quote(lines.get(line)));
        Note::of_spelling(line, message).as_aside(true)
    };
    (1..=lines.len()).filter(is_unseen).map(note).collect()
}

fn notes_of_command(action: &Action, lines: &Lines<'_>) -> Vec<Note> {
    let row = action.kind.row();
    let other = action.fields.iter().filter(|field| {
        key::resolve(&field.key, Some(row)).is_none() && !has_word(PLAIN_KEYS, &letters(&field.key))
    });
    let mut notes: Vec<Note> = other
        .map(|field| {
            let item_text = format!("{}: {}", field.key, field.value);
            let message = format!("{} has no field \"{}\"", row.name, quote(&item_text));
            Note::of_spelling(field.line, message).as_aside(true)
        })
        .collect();

    // Markdown takes a line without an indentation for more of the item above.
    let own = |line: &usize| {
        let text = lines.get(*line);
        let item = is_listed(text) || text.starts_with([' ', '\t']);
        !item && prose::is_sentence_of_its_own(lines.get(line - 1), text)
    };
    let fields = (action.line + 1..=lines.len()).take_while(|&line| {
        let text = lines.get(line);
        !text.trim().is_empty() && !is_fence(text)
    });
    let candidates = fields.filter(|&line| !lines.get(line - 1).trim().is_empty());
    notes.extend(candidates.filter(own).map(|line| {
        let message = format!(
            "took \"{}\" for more of the field above",
            quote(lines.get(line))
        );
        Note::of_spelling(line, message).as_aside(true)
    }));

    notes
}
