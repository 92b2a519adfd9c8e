//! Words inside a command that the parser takes for more of a field, or for a field of another name.
//!
//! Neither changes what runs, and either can say that it must not: `- **Note:** not before Friday`,
//! or a sentence right below the last field. Whatever the language, a plan that has such words is for
//! a person to weigh.

use crate::plan::Plan;
use crate::plan::action::Action;
use crate::plan::action::field::is_fence;
use crate::plan::action::heading::unlisted;
use crate::plan::diagnostic::quote;
use crate::plan::repair::Note;
use crate::plan::spelling::{key, prose};
use crate::text::lines::Lines;

/// Keys that only describe the block or count the step.
const PLAIN_KEYS: [&str; 10] = [
    "language",
    "shell",
    "type",
    "action",
    "actiontype",
    "id",
    "step",
    "number",
    "order",
    "category",
];

/// Returns a note for each such word in the commands of a plan.
pub(super) fn command_notes(plan: &Plan, text: &str) -> Vec<Note> {
    let lines = Lines::new(text);
    let commands = plan.actions.iter();
    let commands = commands.filter(|action| action.kind.row().shape.reaches_outside());
    commands
        .flat_map(|action| notes_of_command(action, &lines))
        .collect()
}

/// Returns the notes of one action.
fn notes_of_command(action: &Action, lines: &Lines<'_>) -> Vec<Note> {
    let row = action.kind.row();
    let other = action.fields.iter().filter(|field| {
        let plain: String = field.key.chars().filter(|c| c.is_alphanumeric()).collect();
        key::resolve(&field.key, Some(row)).is_none()
            && !PLAIN_KEYS.contains(&&*plain.to_lowercase())
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
        let item = unlisted(text) != text.trim_start() || text.starts_with([' ', '\t']);
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
