//! Collects a program's output incrementally and decodes stdout as UTF-8.

use crate::text::redaction::redact;
use crate::text::sanitize::{sanitize_block, strip_ansi};

/// Bytes of stderr to keep.
const STDERR_TAIL: usize = 4096;

/// A chunk of output from one of the two pipes.
pub enum OutputPiece {
    Out(Vec<u8>),
    Err(Vec<u8>),
}

/// The output so far.
#[derive(Default)]
pub struct JobOutput {
    /// Decoded part of stdout. Invalid UTF-8 is replaced by U+FFFD.
    text: String,
    /// Undecoded end of stdout: a truncated character.
    partial: Vec<u8>,
    /// The last `STDERR_TAIL` bytes of stderr.
    stderr: Vec<u8>,
}

impl JobOutput {
    /// Appends a chunk and passes all of stdout so far to `watch`. Decodes every byte once, even if
    /// the chunks are tiny.
    pub fn add(&mut self, piece: OutputPiece, watch: &mut dyn FnMut(&str)) {
        match piece {
            OutputPiece::Out(bytes) => {
                self.partial.extend(bytes);
                self.take_characters();
                watch(&self.text);
            }
            OutputPiece::Err(bytes) => {
                self.stderr.extend(bytes);
                let surplus = self.stderr.len().saturating_sub(STDERR_TAIL);
                self.stderr.drain(..surplus);
            }
        }
    }

    /// Length of stdout in bytes.
    pub fn len(&self) -> usize {
        self.text.len() + self.partial.len()
    }

    pub fn text(&self) -> String {
        format!("{}{}", self.text, String::from_utf8_lossy(&self.partial))
    }

    /// Stdout, once the program has ended.
    pub fn into_text(mut self) -> String {
        self.text.push_str(&String::from_utf8_lossy(&self.partial));
        self.text
    }

    /// The end of stderr, sanitized for an error message: no ANSI sequences, keys or control
    /// characters.
    pub fn stderr(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        sanitize_block(&redact(&strip_ansi(text.trim()))).into_owned()
    }

    fn take_characters(&mut self) {
        let bytes = std::mem::take(&mut self.partial);
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text.push_str(chunk.valid());
            if chunk.invalid().is_empty() {
                continue;
            }

            match chunks.peek() {
                Some(_) => self.text.push(char::REPLACEMENT_CHARACTER),
                // Can be the start of a character that the next chunk completes.
                None => self.partial = chunk.invalid().to_vec(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], updates: &[&str], expected: &str) {
        let (mut output, mut received) = (JobOutput::default(), Vec::new());
        pieces.iter().for_each(|piece| {
            output.add(OutputPiece::Out(piece.to_vec()), &mut |text| {
                received.push(text.to_owned())
            })
        });
        assert_eq!(
            (
                output.text().as_str(),
                output.into_text().as_str(),
                received
            ),
            (
                expected,
                expected,
                updates.iter().map(|t| (*t).to_owned()).collect()
            )
        );
    }

    #[test]
    fn a_character_that_is_cut_waits_for_its_end() {
        check(&[b"a\xc3", b"\xa9b"], &["a", "a\u{e9}b"], "a\u{e9}b");
    }

    #[test]
    fn what_is_no_text_is_marked_and_hides_nothing_behind_it() {
        check(
            &[b"a\xff", b"b\xc3"],
            &["a", "a\u{fffd}b"],
            "a\u{fffd}b\u{fffd}",
        );
    }

    #[test]
    fn bytes_one_by_one_are_read_as_at_once() {
        let bytes = b"\xf0\x9f\x9f\xa2 \xe2\x82 \xed\xa0\x80 \xc0 end\xe2";
        let mut output = JobOutput::default();
        bytes
            .iter()
            .for_each(|byte| output.add(OutputPiece::Out(vec![*byte]), &mut |_| ()));
        assert_eq!(output.into_text(), String::from_utf8_lossy(bytes));
    }

    #[test]
    fn many_small_pieces_cost_what_they_weigh() {
        let (mut output, mut calls) = (JobOutput::default(), 0);
        let start = std::time::Instant::now();
        (0..400_000).for_each(|_| output.add(OutputPiece::Out(vec![b'x']), &mut |_| calls += 1));
        assert_eq!((output.len(), calls), (400_000, 400_000));
        // Decoding everything again for each chunk would take minutes.
        assert!(start.elapsed() < std::time::Duration::from_secs(20));
    }
}
