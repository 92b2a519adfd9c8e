//! Collects changes to single lines and applies them together.

use std::collections::{BTreeMap, BTreeSet};

use crate::plan::diagnostic::quote;
use crate::plan::line::prose::{is_ended, is_prose};
use crate::plan::line::{condition, heading_of, is_fence};
use crate::plan::repair::Note;
use crate::text::markdown::Lines;

const TEXT_PART: &str = "the words";
/// What is left out that can say something about the action beside it.
const NOTED_PARTS: [&str; 3] = [TEXT_PART, "the heading", "the section"];

pub(super) struct LineEdits<'a> {
    pub lines: &'a Lines<'a>,
    changed: BTreeMap<usize, LineEdit>,
    notes: Vec<Note>,
    /// Whether text next to the blocks was removed.
    pub spoken: bool,
    /// The lines at which words for a person are left out.
    text_lines: BTreeSet<usize>,
    /// The last line that is a heading or a fence. Text after it precedes nothing.
    last_part: usize,
}

#[derive(Default)]
struct LineEdit {
    before: Vec<String>,
    dropped: bool,
    text: Option<String>,
}

impl<'a> LineEdits<'a> {
    pub fn new(lines: &'a Lines<'a>) -> LineEdits<'a> {
        let is_part = |line: &usize| {
            let text = lines.get(*line);
            is_fence(text) || heading_of(text).is_some()
        };
        LineEdits {
            lines,
            changed: BTreeMap::new(),
            notes: Vec::new(),
            spoken: false,
            text_lines: BTreeSet::new(),
            last_part: (1..=lines.len()).rev().find(is_part).unwrap_or_default(),
        }
    }

    pub fn replace(&mut self, line: usize, text: impl Into<String>) {
        self.changed.entry(line).or_default().text = Some(text.into());
    }

    pub fn remove(&mut self, line: usize) {
        self.changed.entry(line).or_default().dropped = true;
    }

    /// Inserts a line before another one, or at the end.
    pub fn insert(&mut self, line: usize, text: impl Into<String>) {
        let edit = self.changed.entry(line).or_default();
        edit.before.push(text.into());
    }

    pub fn add_note(&mut self, line: usize, message: impl Into<String>) {
        self.notes.push(Note::of_spelling(line, message));
    }

    /// Tells what was done at a line with words that belong to a command.
    pub fn add_aside(&mut self, line: usize, message: impl Into<String>) {
        self.add_note(line, message);
        self.notes.last_mut().expect("a note was added").aside = true;
    }

    /// Notes that words for a person are left out at a line.
    pub fn mark_text(&mut self, line: usize) {
        self.text_lines.insert(line);
    }

    /// Marks the remarks on words that are left out beside commands.
    pub fn mark_asides(&mut self, is_beside_command: &dyn Fn(usize) -> bool) {
        for note in &mut self.notes {
            note.aside |= self.text_lines.contains(&note.line) && is_beside_command(note.line);
        }
    }

    /// Leaves lines out that are sentences, unless they say that something is not to be done, or
    /// not in any case; `texts` has them without their marks.
    pub fn leave_out_words(&mut self, lines: std::ops::RangeInclusive<usize>, texts: &[&str]) {
        let goes_on = *lines.end() < self.last_part;
        if condition::is_removable(&texts.join(" "), goes_on) {
            self.leave_out_sentences(lines, texts);
        }
    }

    /// Leaves out sentences inside or directly behind a command. What they say is not weighed here:
    /// they make the plan doubtful in any case. Only those that make what follows depend on something
    /// stay.
    pub fn leave_out_asides(&mut self, lines: std::ops::RangeInclusive<usize>, texts: &[&str]) {
        let goes_on = *lines.end() < self.last_part;
        if !(goes_on && condition::makes_depend(&texts.join(" "))) {
            self.leave_out_sentences(lines, texts);
        }
    }

    /// Leaves lines out if they are sentences that are not cut off.
    fn leave_out_sentences(&mut self, lines: std::ops::RangeInclusive<usize>, texts: &[&str]) {
        let is_last = *lines.end() == self.lines.len();
        let cut = is_last && ending(self.lines.raw(*lines.end())).is_empty() && !is_ended(texts);
        if is_prose(texts) && !cut {
            self.leave_out(lines, TEXT_PART);
        }
    }

    /// Removes lines and adds a remark.
    pub fn leave_out(&mut self, lines: std::ops::RangeInclusive<usize>, part: &str) {
        let first = *lines.start();
        let quoted = quote(self.lines.get(first));
        self.spoken |= part == TEXT_PART;
        if NOTED_PARTS.contains(&part) {
            self.text_lines.insert(first);
        }
        self.add_note(first, format!("left out {part} \"{quoted}\""));
        // The first line becomes blank, so that the text around stays separate.
        self.replace(first, "");
        lines.skip(1).for_each(|line| self.remove(line));
    }

    /// Returns the new text and the remarks.
    pub fn finish(mut self) -> (String, Vec<Note>) {
        let usual = (1..=self.lines.len())
            .map(|line| ending(self.lines.raw(line)))
            .find(|end| !end.is_empty())
            .unwrap_or("\n");
        let mut text = String::new();
        for line in 1..=self.lines.len() + 1 {
            let edit = self.changed.remove(&line).unwrap_or_default();
            for new in edit.before {
                if !text.is_empty() && !text.ends_with(['\n', '\r']) {
                    text.push_str(usual);
                }
                text.push_str(&new);
                text.push_str(usual);
            }

            if edit.dropped || line > self.lines.len() {
                continue;
            }

            let raw = self.lines.raw(line);
            match edit.text {
                Some(new) => {
                    text.push_str(&new);
                    text.push_str(ending(raw));
                }
                None => text.push_str(raw),
            }
        }

        self.notes.sort_by_key(|note| note.line);
        (text, self.notes)
    }
}

fn ending(raw: &str) -> &str {
    &raw[raw.trim_end_matches(['\n', '\r']).len()..]
}
