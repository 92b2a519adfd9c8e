//! Access to the lines of a text by number.

use std::ops::Range;

/// A text split at `\n`, `\r\n` and `\r`.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Splits a text.
    pub fn new(text: &'a str) -> Lines<'a> {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            // In a CRLF, the LF ends the line.
            let inside = bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n');
            if !inside {
                starts.push(at + 1);
            }
        }

        // A final line end does not start another line.
        if starts.last() == Some(&text.len()) {
            starts.pop();
        }

        Lines { text, starts }
    }

    /// Returns the number of lines.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns `true` if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns a line by its number, from 1, without its end. Empty if it does not exist.
    pub fn get(&self, number: usize) -> &'a str {
        self.raw(number).trim_end_matches(['\n', '\r'])
    }

    /// Returns a line by its number, from 1, with its end. Empty if it does not exist.
    pub fn raw(&self, number: usize) -> &'a str {
        self.span(number..number + 1)
    }

    /// Returns a range of lines by their numbers, from 1, with their ends.
    pub fn span(&self, lines: Range<usize>) -> &'a str {
        let start = |number: usize| match number {
            0 => 0,
            _ => self
                .starts
                .get(number - 1)
                .copied()
                .unwrap_or(self.text.len()),
        };
        let (from, to) = (start(lines.start), start(lines.end));
        &self.text[from.min(to)..to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_every_line_end() {
        let lines = Lines::new("a\r\nb\rc\nd");
        assert_eq!(
            (1..=5).map(|n| lines.get(n)).collect::<Vec<_>>(),
            ["a", "b", "c", "d", ""]
        );
        assert_eq!(
            (lines.span(2..4), lines.len(), Lines::new("").len()),
            ("b\rc\n", 4, 0)
        );
    }
}
