//! Keeps the beginning and the end of a script's output, within a limit.

use std::collections::VecDeque;

/// Output of a script. If it was long, the middle is missing.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The beginning, or everything if `lost` is 0.
    pub head: Vec<u8>,
    /// The end. Empty if `lost` is 0.
    pub tail: Vec<u8>,
    /// Number of bytes missing between `head` and `tail`.
    pub lost: u64,
}

impl CapturedOutput {
    /// Returns the output as one text, with a line about the missing bytes.
    pub fn joined(&self) -> Vec<u8> {
        let mut all = self.head.clone();
        if self.lost > 0 {
            all.extend(format!("\n[{} bytes are left out here]\n", self.lost).bytes());
        }
        all.extend(&self.tail);
        all
    }
}

/// Collects output.
pub struct Capture {
    head: Vec<u8>,
    /// Everything after `head`, up to `tail_limit` bytes.
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    lost: u64,
}

impl Capture {
    /// Returns an empty capture that keeps `limit` bytes.
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

    /// Appends bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let free = self.head_limit - self.head.len();
        let (first, excess_bytes) = bytes.split_at(free.min(bytes.len()));
        self.head.extend(first);
        self.tail.extend(excess_bytes);
        let excess = self.tail.len().saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.lost += excess as u64;
    }

    /// Returns the collected output.
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

    /// Expects head, tail and loss for ten bytes in pieces of three.
    fn check(limit: usize, expected: (&str, &str, u64)) {
        let mut capture = Capture::new(limit);
        b"0123456789".chunks(3).for_each(|piece| capture.add(piece));
        let captured = capture.finish();
        assert_eq!(
            (
                str::from_utf8(&captured.head).unwrap(),
                str::from_utf8(&captured.tail).unwrap(),
                captured.lost
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
        let captured = CapturedOutput {
            head: b"a".into(),
            tail: b"b".into(),
            lost: 7,
        };
        assert_eq!(captured.joined(), b"a\n[7 bytes are left out here]\nb");
    }
}
