//! Progress on stderr: the model's reply, rejected plans, actions, and output of commands.
//!
//! On a terminal, a status line is rewritten in place. Elsewhere only complete lines are written.

pub mod output;
pub mod scan;
pub mod work;

use std::io::Write;
use std::time::{Duration, Instant};

use super::mistakes::rejected;
use super::notice;
use super::style::{Paint, StyledLine, Tone, wrap_all};
use crate::git::worktree::progress::WriteCount;
use crate::host::clock;
use crate::model::acting::AgentProgress;
use crate::plan::run::{Ending, Outcome};
use crate::text::counted;
use crate::workflow::user::{Estimate, Event};
use output::OutputLines;
use scan::PlanScan;
use work::AgentWork;

/// Minimum interval between updates of the status line.
const REFRESH: Duration = Duration::from_millis(100);

/// Output style of progress messages.
#[derive(Debug, Clone, Copy)]
pub struct OutputStyle {
    /// Whether to use colors.
    pub paint: Paint,
    /// Returns the current width of the terminal. `None` if there is none; then nothing is
    /// rewritten.
    pub width: fn() -> Option<usize>,
    /// `-q`: write only warnings and rejected plans.
    pub is_quiet: bool,
}

/// Writes events as they happen.
pub struct Progress<W: Write> {
    out: W,
    style: OutputStyle,
    pending: Option<PendingAnswer>,
    output: OutputLines,
    /// Index of the running action.
    running: Option<usize>,
    /// Whether a status line is on the screen.
    has_status: bool,
}

struct PendingAnswer {
    model: String,
    start: Instant,
    written: Option<Instant>,
    scan: PlanScan,
    /// Set if the model edits files itself.
    work: Option<AgentWork>,
}

impl<W: Write> Progress<W> {
    /// Returns a writer that has written nothing.
    pub fn new(out: W, style: OutputStyle) -> Progress<W> {
        Progress {
            out,
            style,
            pending: None,
            output: OutputLines::default(),
            running: None,
            has_status: false,
        }
    }

    /// Writes one event. Ignores write errors: a closed stream must not end the turn.
    pub fn report(&mut self, event: &Event<'_>) {
        match event {
            Event::Asking {
                model,
                tokens,
                estimate,
            } => self.begin_answer(model, *tokens, *estimate),
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

    /// Removes the status line, so other output can follow.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.has_status) {
            let _ = write!(self.out, "\r\x1b[K");
            let _ = self.out.flush();
        }
    }

    fn begin_answer(&mut self, model: &str, tokens: usize, estimate: Estimate) {
        self.lines(vec![StyledLine::of(
            Tone::Faint,
            &format!(
                "Asking {model} with about {} tokens{}",
                grouped(tokens),
                cost(estimate)
            ),
        )]);
        self.pending = Some(PendingAnswer {
            model: model.to_owned(),
            start: Instant::now(),
            written: None,
            scan: PlanScan::default(),
            work: None,
        });
    }

    fn received(&mut self, text: &str) {
        let Some(width) = (self.style.width)().filter(|_| !self.style.is_quiet) else {
            return;
        };
        let Some(pending) = &mut self.pending else {
            return;
        };
        let news = pending.scan.feed(text);
        // Write new lines immediately, the status at most every `REFRESH`.
        let due = !news.is_empty()
            || pending
                .written
                .is_none_or(|written| written.elapsed() >= REFRESH);

        if !due {
            return;
        }

        pending.written = Some(Instant::now());
        let status = pending
            .status()
            .cut(width.saturating_sub(1))
            .paint(self.style.paint);
        self.lines(news);
        self.show_status(&status);
    }

    fn working(&mut self, progress: &AgentProgress<'_>) {
        let Some(pending) = &mut self.pending else {
            return;
        };
        let work = pending.work.get_or_insert_with(AgentWork::default);
        let news = work.feed(progress);
        let status = work.status(&pending.model);
        let is_due = !news.is_empty()
            || pending
                .written
                .is_none_or(|written| written.elapsed() >= REFRESH);
        if is_due {
            pending.written = Some(Instant::now());
        }

        self.lines(news);
        let width = (self.style.width)().filter(|_| is_due && !self.style.is_quiet);
        if let Some(width) = width {
            let status = status.cut(width.saturating_sub(1)).paint(self.style.paint);
            self.show_status(&status);
        }
    }

    fn filling(&mut self, filled: WriteCount) {
        let Some(width) = (self.style.width)().filter(|_| !self.style.is_quiet) else {
            return;
        };
        let (files, of) = (grouped(filled.files), grouped(filled.total));
        let status = format!("filling the worktree: {files} of {of} files");
        let status = StyledLine::of(Tone::Faint, &status).cut(width.saturating_sub(1));
        self.show_status(&status.paint(self.style.paint));
    }

    fn show_status(&mut self, status: &str) {
        let _ = write!(self.out, "\r\x1b[K{status}");
        let _ = self.out.flush();
        self.has_status = true;
    }

    fn answered(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        let last = match &pending.work {
            Some(work) => Some(work.end(&pending.model)),
            None => (!pending.scan.is_empty()).then(|| pending.status()),
        };
        if (self.style.width)().is_some() || pending.work.is_some() {
            self.lines(last.into_iter().collect());
        }
        self.clear();
    }

    fn started(&mut self, index: usize, label: &str) {
        self.output = OutputLines::default();
        self.running = Some(index);
        self.lines(vec![
            StyledLine::of(Tone::Accent, &format!("▶ {}. ", index + 1)).with(Tone::Strong, label),
        ]);
    }

    fn printed(&mut self, bytes: &[u8]) {
        let lines = self.output.feed(bytes, Instant::now());
        self.lines(lines);
    }

    /// An action that was skipped has no `Started` event, so its number is shown here.
    fn finished(&mut self, index: usize, outcome: &Outcome) {
        let remaining = std::mem::take(&mut self.output).finish();
        self.lines(remaining);
        let prefix = if self.running.take() == Some(index) {
            String::new()
        } else {
            format!("{}. ", index + 1)
        };

        let line = ended(&prefix, outcome);
        if outcome.ending == Ending::Failure {
            self.always(vec![line])
        } else {
            self.lines(vec![line])
        }
    }

    /// Writes lines, unless `-q` is set.
    pub fn lines(&mut self, lines: Vec<StyledLine>) {
        if !self.style.is_quiet {
            self.always(lines);
        }
    }

    /// Writes lines even with `-q`.
    fn always(&mut self, lines: Vec<StyledLine>) {
        if lines.is_empty() {
            return;
        }

        self.clear();
        // Read the width for each write: the window can be resized at any time.
        let lines = match (self.style.width)() {
            Some(width) => wrap_all(lines, width),
            None => lines,
        };
        // One write: standard error has no buffer.
        let paint = |line: StyledLine| format!("{}\n", line.paint(self.style.paint));
        let text: String = lines.into_iter().map(paint).collect();
        let _ = self.out.write_all(text.as_bytes());
        let _ = self.out.flush();
    }
}

impl PendingAnswer {
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

/// Starts with a comma, if not empty.
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

fn ended(prefix: &str, outcome: &Outcome) -> StyledLine {
    let (sign, tone) = match outcome.ending {
        Ending::Success => ("  ✓ ", Tone::Added),
        Ending::Failure => ("  ✗ ", Tone::Removed),
        Ending::Skipped => ("  - ", Tone::Faint),
    };
    let seconds = outcome.duration.as_secs_f64();
    // With a fixed clock, the output must not vary between runs.
    let time = if seconds >= 0.1 && !clock::is_fixed() {
        format!(" ({seconds:.1} s)")
    } else {
        String::new()
    };

    StyledLine::of(tone, sign)
        .with(Tone::Plain, &format!("{prefix}{}", outcome.detail))
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
