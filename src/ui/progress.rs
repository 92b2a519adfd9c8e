//! What happens between question and result, told on stderr: the model's answer as it arrives,
//! mistakes of a plan, actions, the output of commands.
//!
//! On a terminal one line is rewritten while the model writes; elsewhere only whole lines come.

pub mod output;
pub mod scan;
pub mod work;

use std::io::Write;
use std::time::{Duration, Instant};

use super::mistakes::rejected;
use super::notice;
use super::style::{Paint, StyledLine, Tone, wrap_all};
use crate::git::worktree::fill::Filled;
use crate::host::clock;
use crate::model::acting::AgentProgress;
use crate::plan::run::{Ending, Outcome};
use crate::text::counted;
use crate::workflow::user::{Estimate, Event};
use output::Output;
use scan::Scan;
use work::AgentWork;

/// The shortest time between two rewrites of the status line.
const REFRESH: Duration = Duration::from_millis(100);

/// How much is told, and how.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// With colours or without.
    pub paint: Paint,
    /// Returns the terminal's width as it is now; `None` where there is no terminal: then nothing
    /// is rewritten.
    pub width: fn() -> Option<usize>,
    /// `-q`: warnings and rejections only.
    pub quiet: bool,
}

/// Tells events.
pub struct Progress<W: Write> {
    /// Where to.
    out: W,
    /// How.
    manner: Manner,
    /// The request that is under way.
    asking: Option<PendingAnswer>,
    /// The command that is under way.
    output: Output,
    /// The action that is under way, by its index.
    running: Option<usize>,
    /// Whether the status line stands on the screen.
    standing: bool,
}

/// A request to a model.
struct PendingAnswer {
    /// The model's name.
    model: String,
    /// When it was asked.
    start: Instant,
    /// When the status line was last written.
    written: Option<Instant>,
    /// What has been seen of the answer.
    scan: Scan,
    /// What it has done, if it edits files itself.
    work: Option<AgentWork>,
}

impl<W: Write> Progress<W> {
    /// Returns a teller that has told nothing yet.
    pub fn new(out: W, manner: Manner) -> Progress<W> {
        Progress {
            out,
            manner,
            asking: None,
            output: Output::default(),
            running: None,
            standing: false,
        }
    }

    /// Tells one event. A stream that is gone is no reason to stop: what cannot be written is
    /// dropped.
    pub fn tell(&mut self, event: &Event<'_>) {
        match event {
            Event::Asking {
                model,
                tokens,
                estimate,
            } => self.asking(model, *tokens, *estimate),
            Event::Received { text } => self.received(text),
            Event::Working { progress, .. } => self.working(progress),
            Event::Answered => self.answered(),
            Event::Rejected { file, diagnostics } => self.always(rejected(*file, diagnostics)),
            Event::Filling(Some(filled)) => self.filling(*filled),
            Event::Filling(None) => self.clear(),
            Event::Started { index, label } => self.started(*index, label),
            Event::Output { bytes } => self.printed(bytes),
            Event::Finished { index, outcome } => self.finished(*index, outcome),
            Event::Notice(notice) if notice::is_warning(notice) => {
                self.always(notice::lines(notice));
            }
            Event::Notice(notice) => self.lines(notice::lines(notice)),
        }
    }

    /// Takes the status line off the screen, before something else is written.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.standing) {
            let _ = write!(self.out, "\r\x1b[K");
            let _ = self.out.flush();
        }
    }

    /// A model is asked.
    fn asking(&mut self, model: &str, tokens: usize, estimate: Estimate) {
        self.lines(vec![StyledLine::of(
            Tone::Faint,
            &format!(
                "Asking {model} with about {} tokens{}",
                grouped(tokens),
                cost(estimate)
            ),
        )]);
        self.asking = Some(PendingAnswer {
            model: model.to_owned(),
            start: Instant::now(),
            written: None,
            scan: Scan::default(),
            work: None,
        });
    }

    /// More of the answer is there.
    fn received(&mut self, text: &str) {
        let Some(width) = (self.manner.width)().filter(|_| !self.manner.quiet) else {
            return;
        };
        let Some(asking) = &mut self.asking else {
            return;
        };
        let news = asking.scan.feed(text);
        let due = !news.is_empty()
            || asking
                .written
                .is_none_or(|written| written.elapsed() >= REFRESH);

        if !due {
            return;
        }

        asking.written = Some(Instant::now());
        let status = asking
            .status()
            .cut(width.saturating_sub(1))
            .paint(self.manner.paint);
        self.lines(news);
        self.stand(&status);
    }

    /// A model that edits files itself did something.
    fn working(&mut self, progress: &AgentProgress<'_>) {
        let Some(asking) = &mut self.asking else {
            return;
        };
        let work = asking.work.get_or_insert_with(AgentWork::default);
        let news = work.feed(progress);
        let status = work.status(&asking.model);
        let is_due = !news.is_empty()
            || asking
                .written
                .is_none_or(|written| written.elapsed() >= REFRESH);
        if is_due {
            asking.written = Some(Instant::now());
        }

        self.lines(news);
        let width = (self.manner.width)().filter(|_| is_due && !self.manner.quiet);
        if let Some(width) = width {
            let status = status.cut(width.saturating_sub(1)).paint(self.manner.paint);
            self.stand(&status);
        }
    }

    /// The worktree is being filled.
    fn filling(&mut self, filled: Filled) {
        let Some(width) = (self.manner.width)().filter(|_| !self.manner.quiet) else {
            return;
        };
        let (files, of) = (grouped(filled.files), grouped(filled.of));
        let status = format!("filling the worktree: {files} of {of} files");
        let status = StyledLine::of(Tone::Faint, &status).cut(width.saturating_sub(1));
        self.stand(&status.paint(self.manner.paint));
    }

    /// Writes the status line over the one that stands there.
    fn stand(&mut self, status: &str) {
        let _ = write!(self.out, "\r\x1b[K{status}");
        let _ = self.out.flush();
        self.standing = true;
    }

    /// The answer is complete.
    fn answered(&mut self) {
        let Some(asking) = self.asking.take() else {
            return;
        };
        let last = match &asking.work {
            Some(work) => Some(work.end(&asking.model)),
            None => (!asking.scan.is_empty()).then(|| asking.status()),
        };
        if (self.manner.width)().is_some() || asking.work.is_some() {
            self.lines(last.into_iter().collect());
        }
        self.clear();
    }

    /// An action starts.
    fn started(&mut self, index: usize, label: &str) {
        self.output = Output::default();
        self.running = Some(index);
        self.lines(vec![
            StyledLine::of(Tone::Accent, &format!("▶ {}. ", index + 1)).with(Tone::Strong, label),
        ]);
    }

    /// A command wrote something.
    fn printed(&mut self, bytes: &[u8]) {
        let lines = self.output.feed(bytes);
        self.lines(lines);
    }

    /// An action ended; one that never started says which it is.
    fn finished(&mut self, index: usize, outcome: &Outcome) {
        let rest = std::mem::take(&mut self.output).finish();
        self.lines(rest);
        let place = if self.running.take() == Some(index) {
            String::new()
        } else {
            format!("{}. ", index + 1)
        };

        let line = ended(&place, outcome);
        if outcome.ending == Ending::Failure {
            self.always(vec![line])
        } else {
            self.lines(vec![line])
        }
    }

    /// Writes lines, unless only what matters is told.
    pub fn lines(&mut self, lines: Vec<StyledLine>) {
        if !self.manner.quiet {
            self.always(lines);
        }
    }

    /// Writes lines.
    fn always(&mut self, lines: Vec<StyledLine>) {
        if lines.is_empty() {
            return;
        }

        self.clear();
        let lines = match (self.manner.width)() {
            Some(width) => wrap_all(lines, width),
            None => lines,
        };
        for line in lines {
            let _ = writeln!(self.out, "{}", line.paint(self.manner.paint));
        }

        let _ = self.out.flush();
    }
}

impl PendingAnswer {
    /// Returns `sonnet: ~1,200 tokens, 12 s, 3 actions`.
    fn status(&self) -> StyledLine {
        let seconds = self.start.elapsed().as_secs();
        if self.scan.is_empty() {
            return StyledLine::of(
                Tone::Faint,
                &format!("{}: nothing yet, {seconds} s", self.model),
            );
        }

        let actions = match self.scan.actions() {
            0 => String::new(),
            number => format!(", {}", counted(number, "action")),
        };
        let tokens = grouped(self.scan.tokens());
        StyledLine::of(
            Tone::Faint,
            &format!("{}: ~{tokens} tokens, {seconds} s{actions}", self.model),
        )
    }
}

/// Returns what a call will cost, behind a comma.
fn cost(estimate: Estimate) -> String {
    match estimate {
        Estimate::Free => String::new(),
        Estimate::Unknown => ", price unknown".to_owned(),
        Estimate::Dollars(least, Some(most)) => {
            format!(", ${least:.4} and the answer, ${most:.4} at most")
        }
        Estimate::Dollars(least, None) => format!(", ${least:.4} and the answer"),
    }
}

/// Returns how an action ended.
fn ended(place: &str, outcome: &Outcome) -> StyledLine {
    let (sign, tone) = match outcome.ending {
        Ending::Success => ("  ✓ ", Tone::Added),
        Ending::Failure => ("  ✗ ", Tone::Removed),
        Ending::Skipped => ("  - ", Tone::Faint),
    };
    let seconds = outcome.duration.as_secs_f64();
    let time = if seconds >= 0.1 && !clock::is_fixed() {
        format!(" ({seconds:.1} s)")
    } else {
        String::new()
    };

    StyledLine::of(tone, sign)
        .with(Tone::Plain, &format!("{place}{}", outcome.detail))
        .with(Tone::Faint, &time)
}

/// Returns a number with a comma between thousands.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let comma = |at: usize| at > 0 && (digits.len() - at).is_multiple_of(3);
    digits
        .chars()
        .enumerate()
        .flat_map(|(at, digit)| comma(at).then_some(',').into_iter().chain([digit]))
        .collect()
}

#[cfg(test)]
mod tests;
