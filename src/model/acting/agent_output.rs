//! Splits output into lines of bounded length.

/// Maximum length of a line in bytes.
pub(super) const MAX_LINE: usize = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineTooLong;

#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    /// The incomplete last line.
    partial: Vec<u8>,
}

impl LineSplitter {
    /// Adds output and returns the lines it completes, trimmed and without empty ones. Discards a
    /// line that is too long.
    pub(super) fn add(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, LineTooLong> {
        let mut lines = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            if self.partial.len() + part.len() > MAX_LINE {
                // Frees up to `MAX_LINE` bytes, unlike `clear`.
                self.partial = Vec::new();
                return Err(LineTooLong);
            }

            self.partial.extend_from_slice(part);
            if self.partial.last() == Some(&b'\n') {
                lines.extend(self.take());
            }
        }

        Ok(lines)
    }

    /// Takes the incomplete last line.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.partial);
        let line = line.trim_ascii();
        (!line.is_empty()).then(|| line.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], expected: &[&str], partial: Option<&str>) {
        let mut lines = LineSplitter::default();
        let got = pieces
            .iter()
            .flat_map(|piece| lines.add(piece.as_bytes()).unwrap());
        let got: Vec<String> = got.map(|line| String::from_utf8(line).unwrap()).collect();
        assert_eq!(got, expected);
        assert_eq!(lines.take().as_deref(), partial.map(str::as_bytes));
    }

    #[test]
    fn lines_are_put_together() {
        check(&["a", "b\nc\r\n", "\n\nd"], &["ab", "c"], Some("d"));
        check(&[], &[], None);
    }

    #[test]
    fn an_endless_line_is_not_kept() {
        let mut lines = LineSplitter::default();
        let piece = vec![b'x'; 1 << 20];
        let accepted = (0..65).take_while(|_| lines.add(&piece).is_ok()).count();
        assert_eq!((accepted, lines.take()), (64, None));
    }
}
