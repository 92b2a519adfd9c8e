//! What is kept of a script's output: the beginning and the end, within a limit.

use std::collections::VecDeque;

/// A script's output, with a gap in the middle if it was long.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The beginning; everything if nothing was lost.
    pub head: Vec<u8>,
    /// The end, if something was lost between it and the beginning.
    pub tail: Vec<u8>,
    /// How many bytes in between were not kept.
    pub lost: u64,
}

impl CapturedOutput {
    /// Returns the output as one piece of text, with a line that says what is missing.
    pub fn joined(&self) -> Vec<u8> {
        let mut all = self.head.clone();
        if self.lost > 0 {
            all.extend(format!("\n[{} bytes are left out here]\n", self.lost).bytes());
        }
        all.extend(&self.tail);
        all
    }
}

/// Takes output as it comes.
pub struct Capture {
    /// The beginning.
    head: Vec<u8>,
    /// What came behind it, at most `tail_limit` bytes.
    tail: VecDeque<u8>,
    /// How long the beginning may be.
    head_limit: usize,
    /// How long the end may be.
    tail_limit: usize,
    /// How many bytes fell out of the end.
    lost: u64,
}

impl Capture {
    /// Returns an empty one for so many bytes.
    pub fn new(limit: usize) -> Capture {
        let head_limit = limit.div_ceil(2);
        Capture {
            head: Vec::new(),
            tail: VecDeque::new(),
            head_limit,
            tail_limit: limit - head_limit,
            lost: 0,
        }
    }

    /// Takes the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let room = self.head_limit - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend(first);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.lost += excess as u64;
    }

    /// Returns what was kept.
    pub fn finish(mut self) -> CapturedOutput {
        if self.lost == 0 {
            self.head.extend(self.tail.drain(..));
        }

        CapturedOutput {
            head: self.head,
            tail: self.tail.into(),
            lost: self.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares head, tail and loss of ten bytes in pieces of three.
    fn check(limit: usize, expected: (&str, &str, u64)) {
        let mut capture = Capture::new(limit);
        b"0123456789".chunks(3).for_each(|piece| capture.add(piece));
        let kept = capture.finish();
        assert_eq!(
            (
                str::from_utf8(&kept.head).unwrap(),
                str::from_utf8(&kept.tail).unwrap(),
                kept.lost
            ),
            expected
        );
    }

    #[test]
    fn beginning_and_end_are_kept() {
        check(10, ("0123456789", "", 0));
        check(5, ("012", "89", 5));
        check(0, ("", "", 10));
    }

    #[test]
    fn the_gap_is_said() {
        let kept = CapturedOutput {
            head: b"a".into(),
            tail: b"b".into(),
            lost: 7,
        };
        assert_eq!(kept.joined(), b"a\n[7 bytes are left out here]\nb");
    }
}
