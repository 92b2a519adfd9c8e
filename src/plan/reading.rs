//! Reads a reply: checks limits, repairs fences, parses, outlines.
//!
//! Each mistake is reported by exactly one stage. Limits (P22) come first and stop everything else.
//! Repair reports doubts about where a block ends, and the parser everything else visible in the
//! text. Validation reports mistakes that only the project reveals, and skips what the parser
//! rejected.

mod answer;
mod aside;
mod mark;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

pub use answer::{ProseKind, read_answer, read_reply};
use aside::command_notes;

use super::action::Action;
use super::diagnostic::Diagnostic;
use super::document::Plan;
use super::field::Field;
use super::parse::{self, MAX_PLAN, normal};
use super::repair::{Level, Note, Repaired, repair, thoughts};
use super::spelling;
use crate::plan::diagnostic::quote;
use crate::plan::line::field_item::has_weight;
use crate::plan::line::value::{is_nothing, unmentioned};
use crate::plan::line::{is_fence, key, looks_like_border};
use crate::plan::repair::{Spelling, is_cut_off, repair_as};
use crate::plan::spelling::unwrapped_plan;
use crate::text::fence::{self, TextLine, split_lines};
use crate::text::markdown::{self, BlockKind, Lines, MarkdownBlock};
use crate::text::path::RepoPath;
use crate::text::{counted, link};

/// A reply after reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Its text, and the repairs made.
    pub repaired: Repaired,
    pub plan: Plan,
    /// All diagnostics visible in the text, by line.
    pub diagnostics: Vec<Diagnostic>,
    /// Outline of the text, if its structure is wrong.
    pub outline: Option<String>,
    /// Whether the reply is a plan, valid or not: it has an action, or a section that every plan
    /// must have.
    pub is_plan: bool,
    /// Set for a prose answer, which [`read_reply`] made a plan with that message.
    pub prose: Option<ProseKind>,
}

/// A reply with repaired fences and spelling, if the repair is safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preprocessed {
    /// The text, and what was done or is in doubt.
    pub repaired: Repaired,
    /// Whether the text has one meaning. If not, it is the reply as it came.
    pub is_sure: bool,
}

/// Reads a reply. Never fails: a wrong plan is a value.
pub fn read(reply: &str) -> Reading {
    // Before repair, so that a text over the limits costs no time.
    if let Some(limit) = parse::over_limit(reply) {
        let note = Note::new(limit.line, limit.message.clone());
        let repaired = Repaired {
            text: reply.to_owned(),
            level: Level::Hopeless,
            notes: vec![note],
        };
        return Reading {
            repaired,
            plan: Plan::default(),
            diagnostics: vec![limit],
            outline: None,
            is_plan: true,
            prose: None,
        };
    }

    let inner = mark::inner(reply);
    if inner.len() < reply.len() {
        return between_marks(reply, inner);
    }
    read_plain(reply)
}

fn between_marks(reply: &str, inner: Range<usize>) -> Reading {
    let above = split_lines(&reply[..inner.start]).count();
    let above = above.saturating_sub(usize::from(!reply[..inner.start].ends_with(['\n', '\r'])));
    let end_line = split_lines(&reply[..inner.end]).count();
    let mut reading = read_plain(&reply[inner.clone()]);
    let notes = reading.repaired.notes.iter_mut();
    notes.for_each(|note| note.line += above);
    let wrong = reading.diagnostics.iter_mut();
    wrong.for_each(|wrong| wrong.line += above);
    if reading.repaired.level == Level::Hopeless {
        reading.repaired.text = reply.to_owned();
        return reading;
    }

    let mut note_removed = |line: usize, position: &str| {
        let note = Note::of_spelling(line, format!("left out the marks {position} the plan"));
        reading.repaired.notes.push(note);
    };
    if inner.start > 0 {
        note_removed(1, "before");
    }
    if inner.end < reply.len() {
        note_removed(end_line.max(1), "behind");
    }
    reading.repaired.notes.sort_by_key(|note| note.line);
    reading.repaired.level = reading.repaired.level.max(Level::Refenced);
    reading
}

fn read_plain(reply: &str) -> Reading {
    let exact = read_exactly(reply);
    if exact.diagnostics.is_empty() && !is_misspelled(&exact, reply) {
        return doubt_hidden_actions(reply, exact);
    }

    match read_freely(reply, Level::Repaired) {
        Some(freely) if freely.diagnostics.is_empty() || is_more_helpful(&freely, &exact) => freely,
        _ => exact,
    }
}

/// Doubts a plan whose fences were rewritten, if they also fit as they are: what became a line of a
/// block is an action or a pair in another spelling then.
fn doubt_hidden_actions(reply: &str, mut exact: Reading) -> Reading {
    if exact.repaired.level == Level::Clean {
        return exact;
    }
    let Some(free) = read_freely(reply, Level::Clean) else {
        return exact;
    };
    let actions = free.plan.actions.iter().zip(&exact.plan.actions);
    let same = actions.take_while(|(free, exact)| free.kind == exact.kind);
    let same = same.count();
    if same == free.plan.actions.len().max(exact.plan.actions.len()) {
        return exact;
    }
    let line = free.plan.actions.get(same).map_or(1, |action| action.line);
    let line_map = map_lines(reply, &free.repaired.text);
    let line = line_map.get(line - 1).copied().unwrap_or(line);
    let why =
        "the fences of this action fit as they are, and also if the block above ends further down";
    exact.repaired.notes.push(Note {
        doubt: true,
        ..Note::new(line, why)
    });
    exact.repaired.notes.sort_by_key(|note| note.line);
    exact.repaired.level = Level::Doubtful;
    exact.diagnostics = doubts(&exact.repaired, true);
    exact.outline = Some(outline(&exact.repaired.text, &exact.diagnostics));
    exact
}

/// Returns a reply as a plan in the exact format; if it is not a plan, the reply with repaired fences.
/// An ambiguous reply is returned byte for byte, and so is one with text next to a command.
pub fn preprocess(reply: &str) -> Preprocessed {
    let repair_text = |text: &str| {
        let reading = read(text);
        if reading.diagnostics.is_empty() || reading.repaired.level == Level::Doubtful {
            reading.repaired
        } else {
            repair(text)
        }
    };
    // A reader of the result would not see text next to a command.
    let is_safe = |repaired: &Repaired| {
        repaired.level <= Level::Repaired && repaired.asides().next().is_none()
    };

    let mut repaired = repair_text(reply);
    let is_sure = is_safe(&repaired)
        && (repaired.text == reply || {
            let again = repair_text(&repaired.text);
            again.text == repaired.text && is_safe(&again)
        });
    if !is_sure {
        repaired.text = reply.to_owned();
    }
    Preprocessed { repaired, is_sure }
}

/// Reads a plan once more if it names a file as a mention, `@src/a.rs`, or with the lines of a link,
/// `src/a.rs#L4-L5`, and only the plain path exists.
pub fn with_plain_paths(reading: Reading, exists: &dyn Fn(&RepoPath) -> bool) -> Reading {
    let mut lines: Vec<String> = split_lines(&reading.repaired.text)
        .map(|line| [line.text, line.ending].concat())
        .collect();
    let mut notes = Vec::new();
    for action in &reading.plan.actions {
        let Some((path, plain)) = mention(action, exists) else {
            continue;
        };
        let is_path_field = |field: &&Field| matches!(field.key.as_str(), "File Path" | "Resource");
        let Some(field) = action.fields.iter().find(is_path_field) else {
            continue;
        };
        let Some(line) = lines.get_mut(field.line - 1) else {
            continue;
        };
        let ending = line.trim_end_matches(['\n', '\r']).len();
        let ending = line.split_off(ending);
        *line = format!(
            "- **{}:** {}{ending}",
            field.key,
            link::write_path(plain.as_str())
        );
        notes.push(Note::of_spelling(
            field.line,
            format!("read `{path}` as `{plain}`"),
        ));
    }

    if notes.is_empty() {
        return reading;
    }
    let mut again = read(&lines.concat());
    let same = again.plan.actions.len() == reading.plan.actions.len();
    if !(same && again.diagnostics.len() <= reading.diagnostics.len()) {
        return reading;
    }

    again.repaired.level = reading.repaired.level.max(Level::Refenced);
    again.repaired.notes = reading.repaired.notes;
    again.repaired.notes.extend(notes);
    again.repaired.notes.sort_by_key(|note| note.line);
    again
}

/// Returns the path of an action that names no file as it is, and the one that it stands for.
fn mention(action: &Action, exists: &dyn Fn(&RepoPath) -> bool) -> Option<(RepoPath, RepoPath)> {
    let path = action.kind.worktree_path()?;
    let plain = RepoPath::parse(unmentioned(path.as_str())).ok()?;
    if plain == *path || exists(path) {
        return None;
    }

    // A new file has at least its directory.
    let above = |path: &RepoPath| path.ancestors().last().map(RepoPath::parse);
    let has_parent = |path: &RepoPath| {
        above(path)
            .and_then(Result::ok)
            .is_some_and(|dir| exists(&dir))
    };
    let is_new = action.kind.new_path().is_some() && has_parent(&plain) && !has_parent(path);
    (exists(&plain) || is_new).then(|| (path.clone(), plain))
}

fn read_exactly(reply: &str) -> Reading {
    let mut repaired = repair(reply);
    let is_hopeless = repaired.level == Level::Hopeless;
    let spoken = if is_hopeless {
        without_thoughts(&repaired.text)
    } else {
        Cow::Borrowed(repaired.text.as_str())
    };

    let text = if is_hopeless {
        unwrapped(&spoken)
    } else {
        Cow::Borrowed(&*spoken)
    };

    let (plan, mut diagnostics) = parse::parse(&text);
    let doubts = doubts(&repaired, diagnostics.is_empty());
    // Other mistakes in a doubtful line follow from the doubt.
    diagnostics.retain(|wrong| doubts.iter().all(|doubt| doubt.line != wrong.line));
    diagnostics.extend(doubts);
    diagnostics.sort_by_key(|wrong| wrong.line);
    let is_plan = diagnostics.is_empty() || parse::has_border_of_plan(&text);
    if diagnostics.is_empty() {
        repaired.notes.extend(aside_notes(reply, &text, &plan));
        repaired.notes.sort_by_key(|note| note.line);
    }
    let outline = (!diagnostics.is_empty()).then(|| outline(&text, &diagnostics));

    Reading {
        repaired,
        plan,
        diagnostics,
        outline,
        is_plan,
        prose: None,
    }
}

/// Returns the notes on words inside the commands of a plan, by the lines of the reply.
fn aside_notes(reply: &str, text: &str, plan: &Plan) -> Vec<Note> {
    let mut notes = command_notes(plan, text);
    if !notes.is_empty() && text != reply {
        let line_map = map_lines(reply, text);
        for note in &mut notes {
            note.line = line_map.get(note.line - 1).copied().unwrap_or(note.line);
        }
    }
    notes
}

/// Returns a text that repair gave up without what the model thought aloud before its plan; the
/// other lines keep their numbers.
fn without_thoughts(text: &str) -> Cow<'_, str> {
    match thoughts(text) {
        0 => Cow::Borrowed(text),
        thoughts => Cow::Owned(with_lines(text, |at| at >= thoughts)),
    }
}

/// Blanks the other lines of a text, given by index.
fn with_lines(text: &str, is_kept: impl Fn(usize) -> bool) -> String {
    let lines = split_lines(text).enumerate();
    lines
        .flat_map(|(at, line)| [if is_kept(at) { line.text } else { "" }, line.ending])
        .collect()
}

/// Blanks the fence around a plan and the text before it, in a text that repair gave up on, so that
/// the plan's own mistakes are reported. Line numbers are preserved.
fn unwrapped(text: &str) -> Cow<'_, str> {
    let lines: Vec<TextLine<'_>> = split_lines(text).collect();
    let starts = |at: &usize| {
        lines[at + 1..]
            .iter()
            .find(|l| !l.text.trim().is_empty())
            .is_some_and(|l| l.text.starts_with("# "))
    };
    let titled = lines.iter().position(|line| line.text.starts_with("# "));
    let opener = (0..titled.unwrap_or_default())
        .rev()
        .find_map(|at| Some((at, fence::read(lines[at].text)?)));
    let Some((first, opener)) = opener.filter(|(at, _)| starts(at)) else {
        return Cow::Borrowed(text);
    };

    let closes = |line: &TextLine<'_>| {
        fence::read(line.text).is_some_and(|fence| fence.closes(opener.mark, opener.len))
    };
    // A code block of the plan can also start with `# `. It has a border above it, or ends before
    // the next border.
    let border = lines.iter().position(|line| looks_like_border(line.text));
    if !border.is_some_and(|border| border > first && !lines[first + 1..border].iter().any(closes))
    {
        return Cow::Borrowed(text);
    }

    let last = lines
        .iter()
        .rposition(|line| !line.text.trim().is_empty())
        .filter(|&at| at > first && closes(&lines[at]));
    Cow::Owned(with_lines(text, |at| at > first && Some(at) != last))
}

/// Returns the doubts as diagnostics. The reason for giving up is included only if the parser finds
/// nothing.
fn doubts(repaired: &Repaired, is_sound: bool) -> Vec<Diagnostic> {
    let last = split_lines(&repaired.text).count().max(1);
    // A diagnostic from the parser is more precise than the reason for giving up.
    let gave_up = repaired.level == Level::Hopeless && is_sound;
    let doubts = repaired.notes.iter().filter(|note| note.doubt || gave_up);
    doubts
        .map(|note| {
            let hint = if note.is_cut() {
                "write the whole plan again, up to its end; if it is too long for one answer, plan less"
            } else {
                "write the plan again; the fence of each block must be longer than any run of its character inside"
            };
            Diagnostic::new(note.line.min(last), &note.message).hint(hint)
        })
        .collect()
}

// Outline of a plan as Markdown parsed it: one line per top-level block.
//
// A model that misplaced a fence sees nothing wrong in its own text. The outline shows it how
// Markdown parsed the text, and marks the blocks with diagnostics.

const MAX_OUTLINE_BLOCKS: usize = 500;

/// Returns the outline of a text, with marks for its diagnostics. Empty for a text over the size
/// limit.
pub fn outline(text: &str, wrong: &[Diagnostic]) -> String {
    if text.len() > MAX_PLAN {
        return String::new();
    }

    let text = normal(text);
    let lines = Lines::new(&text);
    let blocks = markdown::blocks(&text);
    let mut out = String::new();
    for (index, block) in blocks.iter().take(MAX_OUTLINE_BLOCKS).enumerate() {
        let mistaken = wrong.iter().any(|w| block.lines().contains(&w.line));
        let mark = if mistaken { '✗' } else { '✓' };
        out.push_str(&format!(
            "[{mark}] [{index:03}] line {}: {}\n",
            block.first,
            describe_block(block, &lines)
        ));
    }

    if blocks.len() > MAX_OUTLINE_BLOCKS {
        out.push_str(&format!(
            "... and {} more\n",
            blocks.len() - MAX_OUTLINE_BLOCKS
        ));
    }

    out
}

fn describe_block(block: &MarkdownBlock, lines: &Lines<'_>) -> String {
    let first = quote(lines.get(block.first));
    match &block.node {
        BlockKind::Heading {
            level,
            setext,
            text,
        } => {
            let underlined = if *setext { ", underlined" } else { "" };
            format!("Heading (level {level}{underlined}): \"{}\"", quote(text))
        }
        BlockKind::Code(code) => {
            let fence = match code.fence_char {
                Some('`') => format!("{} backticks", code.fence_len),
                Some(_) => format!("{} tildes", code.fence_len),
                None => "indented".to_owned(),
            };
            let unclosed = if code.is_closed { "" } else { ", never closed" };
            let first_line = code
                .line_range
                .clone()
                .map(|n| lines.get(n))
                .find(|line| !line.trim().is_empty())
                .unwrap_or_default();

            format!(
                "Code block ({fence}, {}{unclosed}): \"{}\"",
                counted(code.line_range.len(), "line"),
                quote(first_line)
            )
        }
        BlockKind::List { items, .. } => {
            format!("List ({}): \"{first}\"", counted(items.len(), "item"))
        }
        BlockKind::Paragraph => format!("Paragraph: \"{first}\""),
        BlockKind::Rule => "Rule".to_owned(),
        BlockKind::Html => format!("HTML: \"{first}\""),
        BlockKind::Quote => format!("Quotation: \"{first}\""),
        BlockKind::Other => format!("Block: \"{first}\""),
    }
}

/// Reads a reply in any unambiguous spelling. If the fences are correct, Markdown's own
/// interpretation is used. If text between the blocks was dropped, repair must give the same plan.
/// `most` limits the repair of fences.
fn read_freely(reply: &str, most: Level) -> Option<Reading> {
    let taken_out = unwrapped_plan(reply);
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
    if is_right && (most == Level::Clean || !as_it_is.spoken) {
        return as_it_is.into_reading(reply);
    }
    if most == Level::Clean {
        return None;
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
            if differs || (runs && !repaired.is_acceptable(most)) {
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
    fn new(reply: &str, repaired: Repaired, unwrap_note: Option<&Note>) -> FreeAttempt {
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
            Note {
                line,
                ..remark.clone()
            }
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

    fn has_same_plan(&self, other: &FreeAttempt) -> bool {
        let [own, others] = [self, other].map(|attempt| attempt.reading.plan.kinds());
        own.eq(others)
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
fn map_lines(reply: &str, text: &str) -> Vec<usize> {
    let lines: Vec<&str> = split_lines(reply).map(|line| line.text.trim()).collect();
    let mut positions: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        positions.entry(line).or_default().push(at);
    }
    let mut next = 0;
    let line_number = |line: TextLine<'_>| {
        let target = line.text.trim();
        // A fence or blank line can be new, so it is only compared with the next line.
        if target.is_empty() || is_fence(target) {
            let same = |line: &&str| *line == target || (is_fence(target) && is_fence(line));
            next += usize::from(lines.get(next).is_some_and(same));
        } else if let Some(all) = positions.get(target) {
            let following = all.get(all.partition_point(|&at| at < next));
            next = following.map_or(next, |at| at + 1);
        }

        next.max(1)
    };

    split_lines(text).map(line_number).collect()
}

/// Returns whether the free reading has fewer diagnostics than the exact one, or different ones,
/// which then are not about spelling.
fn is_more_helpful(free: &Reading, exact: &Reading) -> bool {
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
fn is_misspelled(reading: &Reading, reply: &str) -> bool {
    let fields = |action: &Action| {
        let row = action.kind.row();
        action.fields.iter().any(|field| {
            let nothing = has_weight(&field.key) && is_nothing(&field.value);
            nothing || key::is_misread(field, row)
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

#[cfg(test)]
mod tests;

#[cfg(test)]
mod outline_tests;
