//! A text by the numbers of its lines, wherever they end.

use std::ops::Range;

/// A text cut into lines that end with `\n`, `\r\n` or `\r`.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    /// The whole.
    text: &'a str,
    /// Where each line starts.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Cuts a text.
    pub fn new(text: &'a str) -> Lines<'a> {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for at in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            let inside = bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n');
            if !inside {
                starts.push(at + 1);
            }
        }

        if starts.last() == Some(&text.len()) {
            starts.pop();
        }

        Lines { text, starts }
    }

    /// Returns how many lines there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns a line, counted from 1, without its line end; an empty text where there is none.
    pub fn get(&self, number: usize) -> &'a str {
        self.raw(number).trim_end_matches(['\n', '\r'])
    }

    /// Returns a line, counted from 1, with its line end; an empty text where there is none.
    pub fn raw(&self, number: usize) -> &'a str {
        self.span(number..number + 1)
    }

    /// Returns lines, counted from 1, with their line ends.
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
