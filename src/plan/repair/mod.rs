//! Repair: the best segmentation of a reply by the plan grammar.
//!
//! Every block ends where the grammar can go on. Only fences are rewritten: a content's bytes and
//! line ends stay, a plan that reads as valid comes back as it was, and a repaired plan is not
//! changed again. The rules stand in `docs/formats/repair.md`.

mod block;
#[cfg(test)]
mod cases;
mod check;
mod cost;
mod cut;
#[cfg(test)]
mod damage;
mod doubt;
#[cfg(test)]
mod doubt_tests;
mod emit;
mod event;
mod free;
mod frontier;
mod grammar_step;
#[cfg(test)]
mod law;
mod line;
mod lines;
mod near;
mod note;
#[cfg(test)]
mod outcomes;
mod pass;
mod prefix;
#[cfg(test)]
mod price_tests;
#[cfg(test)]
mod rules;
mod spanned;
mod state;
mod step;
#[cfg(test)]
mod strict;
mod token;
mod view;
mod whole;

use std::ops::Range;

use super::action::heading::Section;

/// How much had to be assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing: the text is as it came.
    Clean,
    /// Fences were made longer; the reading was never in doubt.
    Refenced,
    /// A slip was mended; shown in review and report.
    Repaired,
    /// Another reading is about as likely: the model is asked again.
    Doubtful,
    /// No reading fits: the model is asked again.
    Hopeless,
}

/// Which spellings of headings, labels and fields count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// Those that the parser reads.
    Exact,
    /// Those that [`super::spelling`] knows too.
    Free,
}

/// One thing that was mended or is in doubt.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Note {
    /// The line in the reply, from 1.
    pub line: usize,
    /// What, as a sentence without a full stop.
    pub message: String,
    /// Whether it is in doubt, and for the model to write again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub doubt: bool,
    /// Whether it is about spelling or words beside the plan, not about fences.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub spelling: bool,
    /// Whether it is about words inside or directly behind a command, which can say that it must not
    /// run: a person weighs them in the review; unattended, the plan waits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aside: bool,
}

impl Note {
    /// Makes a note of what was mended.
    pub fn new(line: usize, message: impl Into<String>) -> Note {
        Note {
            line,
            message: message.into(),
            doubt: false,
            spelling: false,
            aside: false,
        }
    }

    /// Returns the same as a note on words beside a command, if they are.
    #[must_use]
    pub fn as_aside(self, aside: bool) -> Note {
        Note { aside, ..self }
    }

    /// Makes a note of a spelling.
    pub fn of_spelling(line: usize, message: impl Into<String>) -> Note {
        Note {
            spelling: true,
            ..Note::new(line, message)
        }
    }

    /// Returns whether it says that the answer was cut off.
    pub fn is_cut(&self) -> bool {
        self.message.starts_with(cut::CUT)
    }

    /// Returns the same as a doubt.
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
    /// The plan's text.
    pub text: String,
    /// How much had to be assumed.
    pub level: Level,
    /// What was done, by line.
    pub notes: Vec<Note>,
}

/// Returns whether a reply ends before its end, whatever its fences are.
pub fn is_cut_off(reply: &str) -> bool {
    cut::end_of_text(&lines::read(reply, Spelling::Free)).is_some()
}

/// Repairs a reply. Pure; never fails: what cannot be repaired comes back as it was.
pub fn repair(reply: &str) -> Repaired {
    repair_as(reply, Spelling::Exact)
}

/// Repairs a reply, where headings and labels count in some spellings. They stay as they are.
pub fn repair_as(reply: &str, spelling: Spelling) -> Repaired {
    let text = reply.strip_prefix('\u{feff}').unwrap_or(reply);
    let mut repaired = segment(text, spelling);
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

/// Returns how many lines at the start of a reply hold what the model thought aloud.
pub(super) fn thoughts(reply: &str) -> usize {
    let text = reply.strip_prefix('\u{feff}').unwrap_or(reply);
    lines::thoughts(&lines::read(text, Spelling::Exact))
}

/// Returns the best reading of a text, written out.
fn segment(text: &str, spelling: Spelling) -> Repaired {
    let lines = lines::read(text, spelling);
    if !lines.iter().any(|l| {
        matches!(
            l.kind,
            line::LineKind::Action(_) | line::LineKind::Section(Section::Plan)
        )
    }) {
        let why = "there is no `## Action Plan` and no action";
        return hopeless(text, 0, why).doubted(cut::open_end(&lines));
    }

    let mut tokens = token::tokens(&lines);
    if let Some(contents) = check::clean(&lines, &tokens) {
        return unchanged(text, &lines, &contents);
    }

    whole::mark(&mut tokens);
    spanned::mark(&lines, &mut tokens);
    let Some(best) = pass::best(&tokens) else {
        let why = "no reading fits the plan's grammar";
        return hopeless(text, 0, why).doubted(cut::open_end(&lines));
    };

    if let Some(step) = best
        .first
        .steps
        .iter()
        .find(|step| step.event == event::RepairEvent::Broken)
    {
        let at = step.line.min(lines.len() - 1);
        let why = "what the grammar asks for before this line is missing";
        return hopeless(text, at, why).doubted(cut::broken(&lines, step));
    }

    let spans = emit::spans(&lines, &best.first.steps);
    let repaired = emit::emit(&lines, &best.first.steps, &spans);
    let view = view::View {
        lines: &lines,
        tokens: &tokens,
        best: &best,
        spans: &spans,
    };

    let doubts = view.doubts();
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

/// Returns a plan by the rule, with what its contents hide.
fn unchanged(text: &str, lines: &[line::ReplyLine<'_>], contents: &[Range<usize>]) -> Repaired {
    let hidden = |content| note::hidden_action(lines, content);
    let repaired = Repaired {
        text: text.to_owned(),
        level: Level::Clean,
        notes: contents.iter().filter_map(hidden).collect(),
    };
    let doubts = [
        contents
            .iter()
            .find_map(|content| doubt::longer(lines, content)),
        cut::end_of_text(lines),
    ];

    doubts.into_iter().fold(repaired, Repaired::doubted)
}

impl Repaired {
    /// Returns the same in doubt, if there is one.
    fn doubted(mut self, why: Option<Note>) -> Self {
        if let Some(why) = why {
            self.level = self.level.max(Level::Doubtful);
            self.notes.push(why.doubted());
        }
        self
    }
}

/// Returns a text that stays as it is.
fn hopeless(text: &str, at: usize, why: &str) -> Repaired {
    Repaired {
        text: text.to_owned(),
        level: Level::Hopeless,
        notes: vec![note::note(at, why)],
    }
}
