//! Reads a reply that the parser rejected again, in any unambiguous spelling.

use std::borrow::Cow;

use super::{Reading, aside_notes, read_exactly, unwrapped, without_thoughts};
use crate::plan::action::field::{has_weight, is_fence};
use crate::plan::action::{Action, ActionKind};
use crate::plan::repair::{Level, Note, Repaired, Spelling, is_cut_off, repair_as};
use crate::plan::spelling::{self, Remark};
use crate::text::fence::{TextLine, split_lines};

/// Reads a reply in any unambiguous spelling. If the fences are correct, Markdown's own
/// interpretation is used. If text between the blocks was dropped, repair must give the same plan.
pub(super) fn read(reply: &str) -> Option<Reading> {
    let taken_out = spelling::unwrapped(reply);
    let (whole, remark) = match taken_out {
        Some((text, remark)) => (Cow::Owned(text), Some(remark)),
        None => (Cow::Borrowed(reply), None),
    };

    // The dropped text could be the sign that the answer was truncated.
    if is_cut_off(&whole) {
        return None;
    }

    let plain = unwrapped(&without_thoughts(&whole)).into_owned();
    // Repair must remove and report what `unwrapped` removed.
    let whole_plan = plain == *whole;
    let plain = Repaired {
        text: plain,
        level: Level::Clean,
        notes: Vec::new(),
    };

    let as_it_is = Attempt::new(&whole, plain, remark.as_ref());
    let is_right = whole_plan && as_it_is.is_sound(Level::Clean);
    if is_right && !as_it_is.spoken {
        return as_it_is.taken(reply);
    }

    let first = repair_as(&whole, Spelling::Free);
    match first.level {
        Level::Doubtful => None,
        // Repair fails on a block inside a field. Such a plan cannot run, but its diagnostics can
        // be reported.
        Level::Hopeless => {
            let told = is_right || !as_it_is.reading.diagnostics.is_empty();
            told.then(|| as_it_is.taken(reply)).flatten()
        }
        _ => {
            let mended = Attempt::new(&whole, first, remark.as_ref());
            let differs = is_right && !as_it_is.says_the_same(&mended);
            let runs = mended.reading.diagnostics.is_empty();
            if differs || (runs && !mended.is_sound(Level::Repaired)) {
                return None;
            }
            mended.taken(reply)
        }
    }
}

struct Attempt {
    reading: Reading,
    /// Whether text next to the blocks was dropped.
    spoken: bool,
}

impl Attempt {
    /// Respells and reads a repaired text. Its notes refer to lines of the reply.
    fn new(reply: &str, repaired: Repaired, remark: Option<&Remark>) -> Attempt {
        let respelled = spelling::respell(&repaired.text);
        let mut reading = read_exactly(&respelled.text);
        let places = places(reply, &respelled.source);
        let remarks = remark.into_iter().chain(&respelled.remarks);
        let mut notes = repaired.notes;

        notes.extend(remarks.map(|remark| {
            let line = places.get(remark.line - 1).copied().unwrap_or(remark.line);
            Note::of_spelling(line, remark.message.as_str()).as_aside(remark.aside)
        }));
        if reading.diagnostics.is_empty() {
            notes.extend(aside_notes(reply, &reading.repaired.text, &reading.plan));
        }
        notes.sort_by_key(|note| note.line);
        reading.repaired.notes = notes;
        reading.repaired.level = reading.repaired.level.max(repaired.level);

        Attempt {
            reading,
            spoken: respelled.spoken,
        }
    }

    /// Returns whether the plan is valid with at most this level of repair.
    fn is_sound(&self, most: Level) -> bool {
        self.reading.diagnostics.is_empty() && self.reading.repaired.level <= most
    }

    /// Returns whether both plans have the same actions.
    fn says_the_same(&self, other: &Attempt) -> bool {
        let kinds = |attempt: &Attempt| -> Vec<ActionKind> {
            let actions = attempt.reading.plan.actions.iter();
            actions.map(|action| action.kind.without_lines()).collect()
        };
        kinds(self) == kinds(other)
    }

    /// Returns the reading, if the text was changed.
    fn taken(mut self, reply: &str) -> Option<Reading> {
        let repaired = &mut self.reading.repaired;
        let changed = repaired.text != reply;
        repaired.level = repaired.level.max(Level::Refenced);
        changed.then_some(self.reading)
    }
}

/// Returns for each line of a repaired text its number in the reply: fences apart, every line
/// survives repair in order.
pub(super) fn places(reply: &str, text: &str) -> Vec<usize> {
    let lines: Vec<&str> = split_lines(reply).map(|line| line.text.trim()).collect();
    let mut next = 0;
    let place = |line: TextLine<'_>| {
        let wanted = line.text.trim();
        // A fence or blank line can be new, so it is only compared with the next line.
        let free = wanted.is_empty() || is_fence(wanted);
        let window = if free { 1 } else { lines.len() };
        let rest = lines[next..].iter().take(window);
        let same = |known: &&&str| **known == wanted || (is_fence(wanted) && is_fence(known));

        if let Some(found) = rest.clone().position(|known| same(&known)) {
            next += found + 1;
        }

        next.max(1)
    };

    split_lines(text).map(place).collect()
}

/// Returns whether the free reading has fewer diagnostics than the exact one, or different ones,
/// which then are not about spelling.
pub(super) fn says_more(free: &Reading, exact: &Reading) -> bool {
    let said = |reading: &Reading| -> Vec<String> {
        let wrong = reading.diagnostics.iter();
        wrong.map(|wrong| wrong.message.clone()).collect()
    };
    let (free, exact) = (said(free), said(exact));
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
    let closed = tail.and_then(|line| line.trim().strip_prefix("</"));
    let tagged = closed.is_some_and(|name| {
        let opener = format!("<{name}");
        reply.contains(&opener) && !reading.repaired.text.contains(&opener)
    });

    tagged || reading.plan.actions.iter().any(fields)
}
