//! Reads a reply that the parser rejected again, in any unambiguous spelling.

use std::borrow::Cow;

use super::{Reading, aside_notes, read_exactly, unwrapped, without_thoughts};
use crate::plan::action::field::{has_weight, is_fence};
use crate::plan::action::{Action, ActionKind};
use crate::plan::repair::{Level, Note, Repaired, Spelling, is_cut_off, repair_as};
use crate::plan::spelling::{self, SpellingNote};
use crate::text::fence::{TextLine, split_lines};

/// Reads a reply in any unambiguous spelling. If the fences are correct, Markdown's own
/// interpretation is used. If text between the blocks was dropped, repair must give the same plan.
pub(super) fn read_freely(reply: &str) -> Option<Reading> {
    let taken_out = spelling::unwrapped_plan(reply);
    let (unwrapped_reply, unwrap_note) = match taken_out {
        Some((text, unwrap_note)) => (Cow::Owned(text), Some(unwrap_note)),
        None => (Cow::Borrowed(reply), None),
    };

    // The dropped text could be the sign that the answer was truncated.
    if is_cut_off(&unwrapped_reply) {
        return None;
    }

    let plain = unwrapped(&without_thoughts(&unwrapped_reply)).into_owned();
    // Repair must remove and report what `unwrapped` removed.
    let whole_plan = plain == *unwrapped_reply;
    let plain = Repaired {
        text: plain,
        level: Level::Clean,
        notes: Vec::new(),
    };

    let as_it_is = FreeAttempt::new(&unwrapped_reply, plain, unwrap_note.as_ref());
    let is_right = whole_plan && as_it_is.is_acceptable(Level::Clean);
    if is_right && !as_it_is.spoken {
        return as_it_is.into_reading(reply);
    }

    let first = repair_as(&unwrapped_reply, Spelling::Free);
    match first.level {
        Level::Doubtful => None,
        // Repair fails on a block inside a field. Such a plan cannot run, but its diagnostics can
        // be reported.
        Level::Hopeless => {
            let is_useful = is_right || !as_it_is.reading.diagnostics.is_empty();
            is_useful.then(|| as_it_is.into_reading(reply)).flatten()
        }
        _ => {
            let repaired = FreeAttempt::new(&unwrapped_reply, first, unwrap_note.as_ref());
            let differs = is_right && !as_it_is.has_same_plan(&repaired);
            let runs = repaired.reading.diagnostics.is_empty();
            if differs || (runs && !repaired.is_acceptable(Level::Repaired)) {
                return None;
            }
            repaired.into_reading(reply)
        }
    }
}

struct FreeAttempt {
    reading: Reading,
    /// Whether text next to the blocks was dropped.
    spoken: bool,
}

impl FreeAttempt {
    /// Respells and reads a repaired text. Its notes refer to lines of the reply.
    fn new(reply: &str, repaired: Repaired, unwrap_note: Option<&SpellingNote>) -> FreeAttempt {
        let respelled = spelling::respell(&repaired.text);
        let mut reading = read_exactly(&respelled.text);
        let line_map = map_lines(reply, &respelled.source);
        let spelling_notes = unwrap_note.into_iter().chain(&respelled.notes);
        let mut notes = repaired.notes;

        notes.extend(spelling_notes.map(|remark| {
            let line = line_map
                .get(remark.line - 1)
                .copied()
                .unwrap_or(remark.line);
            Note::of_spelling(line, remark.message.as_str()).as_aside(remark.aside)
        }));
        if reading.diagnostics.is_empty() {
            notes.extend(aside_notes(reply, &reading.repaired.text, &reading.plan));
        }
        notes.sort_by_key(|note| note.line);
        reading.repaired.notes = notes;
        reading.repaired.level = reading.repaired.level.max(repaired.level);

        FreeAttempt {
            reading,
            spoken: respelled.spoken,
        }
    }

    /// Returns whether the plan is valid with at most this level of repair.
    fn is_acceptable(&self, most: Level) -> bool {
        self.reading.diagnostics.is_empty() && self.reading.repaired.level <= most
    }

    /// Returns whether both plans have the same actions.
    fn has_same_plan(&self, other: &FreeAttempt) -> bool {
        let kinds = |attempt: &FreeAttempt| -> Vec<ActionKind> {
            let actions = attempt.reading.plan.actions.iter();
            actions.map(|action| action.kind.without_lines()).collect()
        };
        kinds(self) == kinds(other)
    }

    /// Returns the reading, if the text was changed.
    fn into_reading(mut self, reply: &str) -> Option<Reading> {
        let repaired = &mut self.reading.repaired;
        let changed = repaired.text != reply;
        repaired.level = repaired.level.max(Level::Refenced);
        changed.then_some(self.reading)
    }
}

/// Returns for each line of a repaired text its number in the reply: fences apart, every line
/// survives repair in order.
pub(super) fn map_lines(reply: &str, text: &str) -> Vec<usize> {
    let lines: Vec<&str> = split_lines(reply).map(|line| line.text.trim()).collect();
    let mut next = 0;
    let line_number = |line: TextLine<'_>| {
        let target = line.text.trim();
        // A fence or blank line can be new, so it is only compared with the next line.
        let free = target.is_empty() || is_fence(target);
        let window = if free { 1 } else { lines.len() };
        let candidates = lines[next..].iter().take(window);
        let same =
            |candidate: &&&str| **candidate == target || (is_fence(target) && is_fence(candidate));

        if let Some(offset) = candidates.clone().position(|candidate| same(&candidate)) {
            next += offset + 1;
        }

        next.max(1)
    };

    split_lines(text).map(line_number).collect()
}

/// Returns whether the free reading has fewer diagnostics than the exact one, or different ones,
/// which then are not about spelling.
pub(super) fn is_more_helpful(free: &Reading, exact: &Reading) -> bool {
    let messages = |reading: &Reading| -> Vec<String> {
        let wrong = reading.diagnostics.iter();
        wrong.map(|wrong| wrong.message.clone()).collect()
    };
    let (free, exact) = (messages(free), messages(exact));
    exact.is_empty() || free.len() < exact.len() || (free.len() == exact.len() && free != exact)
}

/// Returns whether a plan that the parser reads says something that it does not understand: a word
/// for nothing as a value, another key for a setting of a command, quotes around a path, the end of
/// a tag that was opened above the plan.
pub(super) fn is_misspelled(reading: &Reading, reply: &str) -> bool {
    let fields = |action: &Action| {
        let row = action.kind.row();
        action.fields.iter().any(|field| {
            let nothing = has_weight(&field.key) && spelling::is_nothing(&field.value);
            nothing || spelling::is_misread(field, row)
        })
    };
    let tail = reading.repaired.text.trim_end().rsplit('\n').next();
    let closing_tag = tail.and_then(|line| line.trim().strip_prefix("</"));
    let tagged = closing_tag.is_some_and(|name| {
        let opener = format!("<{name}");
        reply.contains(&opener) && !reading.repaired.text.contains(&opener)
    });

    tagged || reading.plan.actions.iter().any(fields)
}
