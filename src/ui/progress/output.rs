//! Streams a command's output as complete lines without control sequences.
//!
//! Colors and cursor movements are removed. Of a line rewritten with carriage returns, the last
//! state remains.

use super::super::style::{StyledLine, Tone};
use crate::text::visible::strip_ansi;

/// In bytes. A longer line is shown in pieces, so the buffer stays bounded.
const MAX_LINE: usize = 4096;

/// Output of one command.
#[derive(Debug, Default)]
pub struct Output {
    /// Bytes of the unfinished line.
    rest: Vec<u8>,
}

impl Output {
    /// Adds bytes and returns the lines that are now complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<StyledLine> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|&b| b == b'\n') {
            self.rest.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.rest.len() > MAX_LINE {
                lines.push(shown(&std::mem::take(&mut self.rest)));
            }
        }
        lines
    }

    /// Returns the last line, if it has no line end.
    pub fn finish(self) -> Vec<StyledLine> {
        if self.rest.is_empty() {
            Vec::new()
        } else {
            vec![shown(&self.rest)]
        }
    }
}

fn shown(bytes: &[u8]) -> StyledLine {
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
        let mut output = Output::default();
        let mut lines: Vec<StyledLine> =
            chunks.iter().flat_map(|chunk| output.feed(chunk)).collect();
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
        let mut output = Output::default();
        let lines: usize = (0..10).map(|_| output.feed(&[b'x'; 1000]).len()).sum();
        assert_eq!(lines, 2);
    }
}
