//! Repairs the fences of a reply: finds the best segmentation by the plan grammar.
//!
//! A block ends where the grammar can continue. Only fences are rewritten: the content and its line
//! endings are preserved, a valid plan is returned unchanged, and repairing a repaired plan changes
//! nothing. The rules are in `docs/formats/repair.md`.

mod block;
#[cfg(test)]
mod cases;

mod cost;
#[cfg(test)]
mod damage;
mod doubt;
#[cfg(test)]
mod doubt_tests;
mod emit;

#[cfg(test)]
mod law;
mod reply;

mod note;
mod pass;

#[cfg(test)]
mod price_tests;
#[cfg(test)]
mod rules;
mod state;
mod step;
mod token;
mod truncation;

use std::ops::Range;

use crate::plan::line::{LineKind, Section};

/// Amount of guessing in a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// None: the text is unchanged.
    Clean,
    /// Fences were made longer; the reading was never in doubt.
    Refenced,
    /// A mistake was repaired; review and report show it.
    Repaired,
    /// Another reading is about as likely: the model is asked again.
    Doubtful,
    /// No reading fits: the model is asked again.
    Hopeless,
}

/// Accepted spellings of headings, labels and fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// Those that the parser accepts.
    Exact,
    /// Also those that [`super::spelling`] knows.
    Free,
}

/// A repair or a doubt.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Note {
    /// Line in the reply, from 1.
    pub line: usize,
    /// A sentence without a full stop.
    pub message: String,
    /// Whether it is a doubt, which the model must resolve.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub doubt: bool,
    /// Whether it is about spelling or extra text, not about fences.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub spelling: bool,
    /// Whether it is about words inside or directly behind a command, which can say that it must not
    /// run: a person weighs them in the review; unattended, the plan waits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aside: bool,
}

impl Note {
    /// Creates a note about a repair.
    pub fn new(line: usize, message: impl Into<String>) -> Note {
        Note {
            line,
            message: message.into(),
            ..Note::default()
        }
    }

    /// Returns the same as a note on words beside a command, if they are.
    #[must_use]
    pub fn as_aside(self, aside: bool) -> Note {
        Note { aside, ..self }
    }

    pub fn of_spelling(line: usize, message: impl Into<String>) -> Note {
        Note {
            spelling: true,
            ..Note::new(line, message)
        }
    }

    /// Returns whether it reports a truncated reply.
    pub fn is_cut(&self) -> bool {
        self.message.starts_with(truncation::TRUNCATED)
    }

    #[must_use]
    fn doubted(self) -> Note {
        Note {
            doubt: true,
            ..self
        }
    }
}

impl Repaired {
    /// Returns the notes on words beside commands.
    pub fn asides(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(|note| note.aside)
    }
}

/// A reply after repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    pub text: String,
    /// Amount of guessing.
    pub level: Level,
    /// Repairs and doubts, by line.
    pub notes: Vec<Note>,
}

/// Returns whether a reply is visibly truncated, regardless of its fences.
pub fn is_cut_off(reply: &str) -> bool {
    truncation::truncation_of_text(&reply::read_lines(reply, Spelling::Free)).is_some()
}

/// Repairs a reply. Pure. A reply that cannot be repaired is returned unchanged.
pub fn repair(reply: &str) -> Repaired {
    repair_as(reply, Spelling::Exact)
}

/// Like [`repair`], but recognizes headings and labels in the given spelling. Only fences are
/// changed.
pub fn repair_as(reply: &str, spelling: Spelling) -> Repaired {
    let text = reply.strip_prefix('\u{feff}').unwrap_or(reply);
    let mut repaired = segment(text, spelling);
    // RP2: repairing the result must change nothing.
    if repaired.level < Level::Hopeless
        && repaired.text != text
        && segment(&repaired.text, spelling).text != repaired.text
    {
        repaired = hopeless(text, 0, "no repair of these fences is stable");
    }

    if repaired.level == Level::Hopeless {
        return Repaired {
            text: reply.to_owned(),
            ..repaired
        };
    }

    if text.len() < reply.len() {
        repaired.level = repaired.level.max(Level::Refenced);
        repaired
            .notes
            .insert(0, note::note(0, "dropped the byte order mark"));
    }

    repaired
}

/// Returns the number of leading lines that contain the model's thoughts.
pub(super) fn thoughts(reply: &str) -> usize {
    let text = reply.strip_prefix('\u{feff}').unwrap_or(reply);
    reply::thought_lines(&reply::read_lines(text, Spelling::Exact))
}

fn is_of_plan(kind: LineKind) -> bool {
    matches!(kind, LineKind::Action(_) | LineKind::Section(Section::Plan))
}

/// Returns the best reading of a text, written out.
fn segment(text: &str, spelling: Spelling) -> Repaired {
    let lines = reply::read_lines(text, spelling);
    if !lines.iter().any(|line| is_of_plan(line.kind)) {
        let why = "there is no `## Action Plan` and no action";
        return hopeless(text, 0, why).doubted(truncation::truncation_without_plan(&lines));
    }

    let mut tokens = token::tokenize(&lines);
    if let Some(contents) = pass::unambiguous_blocks(&lines, &tokens) {
        return unchanged(text, &lines, &contents);
    }

    token::mark_complete_blocks(&mut tokens);
    token::mark_code_spans(&lines, &mut tokens);
    let Some(best) = pass::best_readings(&tokens) else {
        let why = "no reading fits the plan's grammar";
        return hopeless(text, 0, why).doubted(truncation::truncation_without_plan(&lines));
    };

    if let Some(step) = best
        .first
        .steps
        .iter()
        .find(|step| step.event == state::RepairEvent::Broken)
    {
        let at = step.line.min(lines.len() - 1);
        let why = "what the grammar asks for before this line is missing";
        return hopeless(text, at, why).doubted(truncation::truncation_of_structure(&lines, step));
    }

    let spans = emit::spans(&lines, &best.first.steps);
    let repaired = emit::emit(&lines, &best.first.steps, &spans);
    let analysis = doubt::Analysis {
        lines: &lines,
        tokens: &tokens,
        best: &best,
        spans: &spans,
    };

    let truncation = truncation::truncation_of_reading(&lines, &best.first.steps);
    let doubts = analysis.doubts(truncation);
    let level = note::level(&best, &doubts, repaired != text);
    let mut notes = note::notes(&lines, &best, &spans);
    notes.extend(doubts.into_iter().map(Note::doubted));
    notes.sort_by_key(|note| note.line);
    Repaired {
        text: repaired,
        level,
        notes,
    }
}

/// Returns a plan that follows the fence rule, with notes about actions inside its contents.
fn unchanged(text: &str, lines: &[reply::ReplyLine<'_>], contents: &[Range<usize>]) -> Repaired {
    let hidden = |body| note::hidden_action(lines, body);
    let repaired = Repaired {
        text: text.to_owned(),
        level: Level::Clean,
        notes: contents.iter().filter_map(hidden).collect(),
    };
    let doubts = [
        contents
            .iter()
            .find_map(|body| doubt::longer_closer(lines, body)),
        truncation::truncation_of_text(lines),
    ];

    doubts.into_iter().fold(repaired, Repaired::doubted)
}

impl Repaired {
    /// Adds a doubt, if there is one.
    fn doubted(mut self, why: Option<Note>) -> Self {
        if let Some(why) = why {
            self.level = self.level.max(Level::Doubtful);
            self.notes.push(why.doubted());
        }
        self
    }
}

fn hopeless(text: &str, at: usize, why: &str) -> Repaired {
    Repaired {
        text: text.to_owned(),
        level: Level::Hopeless,
        notes: vec![note::note(at, why)],
    }
}
