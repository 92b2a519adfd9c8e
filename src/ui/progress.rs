//! Progress on stderr: the model's reply, rejected plans, actions, and output of commands.
//!
//! On a terminal, a status line is rewritten in place. Elsewhere only complete lines are written.

mod agent_work;

use std::io::Write;
use std::time::{Duration, Instant};

pub use agent_work::AgentWork;

use super::mistakes::rejected;
use super::notice;
use super::style::{Paint, StyledLine, Tone, wrap_all};
use crate::git::worktree::progress::WriteCount;
use crate::host::clock;
use crate::model::acting::AgentProgress;
use crate::plan::action::ROWS;
use crate::plan::run::{Ending, Outcome};
use crate::text::fence::FenceTracker;
use crate::text::sanitize::strip_ansi;
use crate::text::{counted, grouped, grouped_count};
use crate::workflow::user::{Estimate, Event};

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
    /// Whether the terminal can rewrite lines. One that can only print gets each of them once.
    pub moves_cursor: bool,
    /// `-q`: write only warnings and rejected plans.
    pub is_quiet: bool,
}

/// Writes events as they happen.
pub struct Progress<W: Write> {
    pub(super) out: W,
    pub(super) style: OutputStyle,
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
            Event::Working(progress) => self.working(progress),
            Event::Answered { failed } => self.answered(*failed),
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
        if self.status_width().is_none() {
            return;
        }
        let Some(pending) = &mut self.pending else {
            return;
        };
        pending.scan.feed(text);
        if pending.is_due() {
            let status = pending.status();
            self.show_status(status);
        }
    }

    fn working(&mut self, progress: &AgentProgress<'_>) {
        let Some(pending) = &mut self.pending else {
            return;
        };
        let work = pending.work.get_or_insert_with(AgentWork::default);
        let news = work.feed(progress);
        let status = work.status(&pending.model);
        let is_due = pending.is_due() || !news.is_empty();
        self.lines(news);
        if is_due {
            self.show_status(status);
        }
    }

    fn filling(&mut self, filled: WriteCount) {
        let (files, of) = (grouped(filled.files), grouped_count(filled.total, "file"));
        let status = format!("filling the worktree: {files} of {of}");
        self.show_status(StyledLine::of(Tone::Faint, &status));
    }

    /// Returns the width of the status line. `None` if there is none.
    fn status_width(&self) -> Option<usize> {
        let has_status = self.style.moves_cursor && !self.style.is_quiet;
        let width = (self.style.width)().filter(|_| has_status)?;
        Some(width.saturating_sub(1))
    }

    fn show_status(&mut self, status: StyledLine) {
        let Some(width) = self.status_width() else {
            return;
        };
        let status = status.cut(width).paint(self.style.paint);
        let _ = write!(self.out, "\r\x1b[K{status}");
        let _ = self.out.flush();
        self.has_status = true;
    }

    fn answered(&mut self, failed: bool) {
        let Some(mut pending) = self.pending.take() else {
            return;
        };
        let words = pending.work.as_mut().map(AgentWork::flush_message);
        self.lines(words.unwrap_or_default());
        let last = match &pending.work {
            Some(work) => Some(work.end(&pending.model, failed)),
            None => (pending.scan.length > 0).then(|| pending.status()),
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
    /// Returns whether the status line must be written again, and records the time if so.
    fn is_due(&mut self) -> bool {
        let is_due = self
            .written
            .is_none_or(|written| written.elapsed() >= REFRESH);
        if is_due {
            self.written = Some(Instant::now());
        }
        is_due
    }

    fn status(&self) -> StyledLine {
        let seconds = self.start.elapsed().as_secs();
        if self.scan.length == 0 {
            return StyledLine::of(
                Tone::Faint,
                &format!("{}: nothing yet, {seconds} s", self.model),
            );
        }

        let actions = match self.scan.actions {
            0 => String::new(),
            number => format!(", {}", counted(number, "action")),
        };
        let tokens = grouped_count(self.scan.length / BYTES_PER_TOKEN, "token");
        StyledLine::of(
            Tone::Faint,
            &format!("{}: ~{tokens}, {seconds} s{actions}", self.model),
        )
    }
}

/// Starts with a comma, if not empty.
fn cost(estimate: Estimate) -> String {
    match estimate {
        Estimate::Free => String::new(),
        Estimate::Unknown => ", no price set".to_owned(),
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

// Streams a command's output as complete lines without control sequences.
//
// Colors and cursor movements are removed. Of a line rewritten with carriage returns, the last
// state remains. A command that writes faster than anyone can read does not wait for the terminal:
// within each [`REFRESH`] interval a limited amount is shown, then the newest lines, and what is
// skipped in between is counted. The report has the beginning and the end of the whole output.

/// In bytes. A longer line without an end is shown in pieces, so the buffer stays bounded.
const MAX_OUTPUT_LINE: usize = 4096;

/// Lines shown in an interval.
const LINES: usize = 1000;

/// Bytes shown in an interval, and bytes kept for the next one.
const BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub struct OutputLines {
    /// Bytes that are not shown yet.
    partial: Vec<u8>,
    /// Number of bytes dropped in front of `rest`.
    dropped: usize,
    interval_start: Option<Instant>,
    lines_shown: usize,
    bytes_shown: usize,
}

impl OutputLines {
    /// Adds bytes and returns the lines to show now. Without bytes, returns those that an earlier
    /// interval held back.
    pub fn feed(&mut self, bytes: &[u8], now: Instant) -> Vec<StyledLine> {
        let is_over = |begun| now.saturating_duration_since(begun) >= REFRESH;
        if self.interval_start.is_none_or(is_over) {
            self.begin(now);
        }

        let mut lines = self.take();
        for part in bytes.chunks(BYTES) {
            self.partial.extend_from_slice(part);
            lines.extend(self.take());
            if self.partial.len() > BYTES {
                self.drop_front(self.partial.len() - BYTES);
            }
        }
        lines
    }

    /// Returns the newest lines that are left, and a last one without a line end.
    pub fn finish(mut self) -> Vec<StyledLine> {
        self.begin(Instant::now());
        let mut lines = self.take();
        if !self.partial.is_empty() {
            lines.push(render_output_line(&self.partial));
        }
        lines
    }

    fn begin(&mut self, now: Instant) {
        self.interval_start = Some(now);
        (self.lines_shown, self.bytes_shown) = (0, 0);
        if let Some(end) = memchr::memrchr_iter(b'\n', &self.partial).nth(LINES) {
            self.drop_front(end + 1);
        }
    }

    /// Drops at least `most` bytes, up to the end of a line if there is one.
    fn drop_front(&mut self, most: usize) {
        let end = memchr::memchr(b'\n', &self.partial[most - 1..]);
        let end = end.map_or(most, |end| most + end);
        self.partial.drain(..end);
        self.dropped += end;
    }

    /// Removes as many complete lines as the interval still allows, and returns them.
    fn take(&mut self) -> Vec<StyledLine> {
        let (mut lines, mut start) = (Vec::new(), 0);
        while self.lines_shown < LINES && self.bytes_shown < BYTES {
            let tail = &self.partial[start..];
            let length = match memchr::memchr(b'\n', tail) {
                Some(end) => end + 1,
                None if tail.len() > MAX_OUTPUT_LINE => piece(tail),
                None => break,
            };
            if self.dropped > 0 {
                let bytes = std::mem::take(&mut self.dropped);
                let verb = if bytes == 1 { "is" } else { "are" };
                let bytes = grouped_count(bytes, "byte");
                lines.push(StyledLine::of(
                    Tone::Faint,
                    &format!("  │ [{bytes} {verb} not shown]"),
                ));
            }
            lines.push(render_output_line(&tail[..length]));
            start += length;
            self.lines_shown += 1;
            self.bytes_shown += length;
        }

        self.partial.drain(..start);
        lines
    }
}

/// Returns the length of a piece of a long line that ends between two characters.
fn piece(bytes: &[u8]) -> usize {
    let is_inside = |at: &usize| bytes[*at] & 0xc0 == 0x80;
    let ends = MAX_OUTPUT_LINE - 3..=MAX_OUTPUT_LINE;
    ends.rev()
        .find(|at| !is_inside(at))
        .unwrap_or(MAX_OUTPUT_LINE)
}

fn render_output_line(bytes: &[u8]) -> StyledLine {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches(['\r', '\n']);
    // Drop earlier states of the line, for example of a progress bar.
    let last = text.rsplit('\r').next().unwrap_or_default();
    StyledLine::of(Tone::Faint, "  │ ").with(Tone::Plain, &strip_ansi(last))
}

// Counts the actions and the length of a plan while it is still being received. The summary lists
// them.
//
// An approximation for the progress display. The review uses the real parser.

/// Rough average; the exact number arrives with the reply.
const BYTES_PER_TOKEN: usize = 4;

#[derive(Debug, Default)]
pub struct PlanScan {
    /// Bytes of complete lines that were scanned.
    parsed: usize,
    /// Bytes received so far.
    length: usize,
    fences: FenceTracker,
    actions: usize,
}

impl PlanScan {
    /// Takes the whole reply so far.
    pub fn feed(&mut self, text: &str) {
        self.length = self.length.max(text.len());
        let fresh = text.get(self.parsed..).unwrap_or_default();
        let complete = fresh.rfind('\n').map_or(0, |at| at + 1);
        self.parsed += complete;
        for line in fresh[..complete].lines() {
            if !self.fences.is_code(line) && is_action(line) {
                self.actions += 1;
            }
        }
    }
}

fn is_action(line: &str) -> bool {
    let heading = line.strip_prefix("### ").unwrap_or_default();
    let heading = heading.trim().trim_matches('`');
    ROWS.iter().any(|row| heading.starts_with(row.name))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod output_tests {
    use super::*;

    fn check(chunks: &[&[u8]], expected: &[&str]) {
        let (mut output, now) = (OutputLines::default(), Instant::now());
        let mut lines: Vec<StyledLine> = chunks
            .iter()
            .flat_map(|chunk| output.feed(chunk, now))
            .collect();
        lines.extend(output.finish());
        assert_eq!(
            lines.iter().map(StyledLine::text).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn lines_come_whole_even_in_pieces() {
        check(&[b"a", b"b\nc", b"\n", b"d"], &["  │ ab", "  │ c", "  │ d"]);
    }

    #[test]
    fn sequences_go_and_what_deceives_is_seen() {
        check(
            &[b"\x1b[1;31mred\x1b[0m\x1b[2Jx\xff\x07\n"],
            &["  │ redx\u{fffd}\\u{7}"],
        );
    }

    #[test]
    fn of_a_rewritten_line_the_last_state_stays() {
        check(&[b"10%\r50%\r100%\r\n"], &["  │ 100%"]);
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_forever() {
        let (mut output, now) = (OutputLines::default(), Instant::now());
        let lines: usize = (0..10).map(|_| output.feed(&[b'x'; 1000], now).len()).sum();
        assert_eq!(lines, 2);
    }

    #[test]
    fn a_piece_of_a_long_line_ends_between_two_characters() {
        let text = "é".repeat(5000);
        for text in [text.clone(), format!("x{text}")] {
            let lines = OutputLines::default().feed(text.as_bytes(), Instant::now());
            assert_eq!(lines.len(), 2);
            assert!(lines.iter().all(|line| !line.text().contains('\u{fffd}')));
        }
    }

    fn numbers(range: std::ops::Range<usize>) -> String {
        range.map(|number| format!("{number}\n")).collect()
    }

    fn texts(lines: &[StyledLine]) -> Vec<String> {
        lines.iter().map(StyledLine::text).collect()
    }

    #[test]
    fn of_a_flood_the_beginning_and_the_newest_lines_are_shown() {
        let (mut output, now) = (OutputLines::default(), Instant::now());
        let flood = numbers(0..100_000);
        let first = texts(&output.feed(flood.as_bytes(), now));
        assert_eq!((first.len(), first[LINES - 1].as_str()), (LINES, "  │ 999"));
        assert!(output.partial.len() <= BYTES);

        let later = texts(&output.feed(b"", now + REFRESH));
        assert_eq!(later.len(), 1 + LINES);
        let hidden = numbers(1000..99_000).len();
        let gap = format!("  │ [{} bytes are not shown]", grouped(hidden));
        assert_eq!([&later[0], &later[1]], [&gap, "  │ 99000"]);
        assert_eq!(later[LINES], "  │ 99999");
        assert_eq!(texts(&output.finish()), Vec::<String>::new());
    }

    #[test]
    fn what_was_held_back_is_shown_at_the_end() {
        let (mut output, now) = (OutputLines::default(), Instant::now());
        output.feed(numbers(0..LINES).as_bytes(), now);
        assert_eq!(texts(&output.feed(b"a\nb\nc", now)), Vec::<String>::new());
        assert_eq!(texts(&output.finish()), ["  │ a", "  │ b", "  │ c"]);
    }

    #[test]
    fn a_flood_without_line_ends_is_cut_too() {
        let (mut output, now) = (OutputLines::default(), Instant::now());
        let first = output.feed(&vec![b'x'; 10 << 20], now);
        let length: usize = first.iter().map(|line| line.text().len()).sum();
        assert!(length < 2 * BYTES, "{length}");
        assert!(output.partial.len() <= BYTES);
    }
}

#[cfg(test)]
mod scan_tests {
    use super::*;

    fn check(pieces: &[&str], expected: usize) {
        let (mut scan, mut text) = (PlanScan::default(), String::new());
        for piece in pieces {
            text.push_str(piece);
            scan.feed(&text);
        }
        assert_eq!(scan.actions, expected);
    }

    #[test]
    fn actions_are_counted_once_when_their_lines_are_whole() {
        check(&["# Ti", "tle\n### `CRE", "ATE`\n", "x"], 1);
        check(&["# Title\n### `CRE"], 0);
    }

    #[test]
    fn headings_in_code_blocks_are_content() {
        check(&["# T\n````md\n### `EDIT`\n```\n# x\n````\n### READ\n"], 1);
    }
}
