//! Streams a command's output as complete lines without control sequences.
//!
//! Colors and cursor movements are removed. Of a line rewritten with carriage returns, the last
//! state remains. A command that writes faster than anyone can read does not wait for the terminal:
//! within each [`REFRESH`] interval a limited amount is shown, then the newest lines, and what is
//! skipped in between is counted. The report has the beginning and the end of the whole output.

use std::time::Instant;

use super::super::style::{StyledLine, Tone};
use super::{REFRESH, grouped};
use crate::text::sanitize::strip_ansi;

/// In bytes. A longer line without an end is shown in pieces, so the buffer stays bounded.
const MAX_OUTPUT_LINE: usize = 4096;
/// Lines shown in an interval.
const LINES: usize = 1000;
/// Bytes shown in an interval, and bytes kept for the next one.
const BYTES: usize = 64 << 10;

/// Output of one command.
#[derive(Debug, Default)]
pub struct OutputLines {
    /// Bytes that are not shown yet.
    partial: Vec<u8>,
    /// Number of bytes dropped in front of `rest`.
    dropped: usize,
    /// Start of the current interval.
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
                let bytes = grouped(std::mem::take(&mut self.dropped));
                lines.push(StyledLine::of(
                    Tone::Faint,
                    &format!("  │ [{bytes} bytes are not shown]"),
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

#[cfg(test)]
mod tests {
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
