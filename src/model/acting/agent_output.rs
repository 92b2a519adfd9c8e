//! Splits output into lines of bounded length, and sanitizes parts of it for display.

use super::clock::AgentStop;
use crate::text::counted;
use crate::text::sanitize::{excerpt_at_word, sanitize_block, sanitize_line};
use crate::text::secret::redact;

/// In bytes.
const MAX_LINE: usize = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    partial: Vec<u8>,
}

impl LineSplitter {
    /// Returns completed lines, trimmed and without empty ones. Discards a line that is too long.
    pub(super) fn add(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, AgentStop> {
        let mut lines = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            if self.partial.len() + part.len() > MAX_LINE {
                // Frees up to `MAX_LINE` bytes, unlike `clear`.
                self.partial = Vec::new();
                return Err(AgentStop::Output(MAX_LINE as u64));
            }

            self.partial.extend_from_slice(part);
            if self.partial.last() == Some(&b'\n') {
                lines.extend(self.take());
            }
        }

        Ok(lines)
    }

    /// The incomplete last line.
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.partial);
        let line = line.trim_ascii();
        (!line.is_empty()).then(|| line.to_vec())
    }
}

/// In characters.
const MAX_LABEL: usize = 300;

/// One short line without keys or control characters.
pub(super) fn sanitize_label(text: &str) -> String {
    // Redact before truncating: a truncated key can't be recognized.
    let begin: String = text.trim().chars().take(10 * MAX_LABEL).collect();
    let clean = redact(&begin);
    sanitize_line(&excerpt_at_word(&clean, MAX_LABEL)).into_owned()
}

/// Like [`sanitize_label`], with a mark between lines.
pub(super) fn sanitize_title(text: &str) -> String {
    // Redact before joining: a key can have several lines.
    let begin: String = text.trim().chars().take(10 * MAX_LABEL).collect();
    let clean = redact(&begin);
    let lines = clean.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty());
    sanitize_label(&lines.collect::<Vec<_>>().join(" ↵ "))
}

/// The last answer in a chat history of aider, without its blocks of code: they are in the files.
pub(super) fn last_answer(history: &str) -> String {
    let (mut answer, mut is_ended, mut is_code) = (String::new(), false, false);
    for line in history.lines() {
        let is_other = ["#### ", "> ", "# aider chat started"]
            .iter()
            .any(|start| line.starts_with(start));
        if line.starts_with("```") {
            is_code = !is_code;
            // The line before a block names its file.
            let end = answer.trim_end().rfind('\n').map_or(0, |end| end + 1);
            if is_code && !answer[end..].trim().contains(' ') {
                answer.truncate(end);
            }
        } else if is_other && !is_code {
            is_ended = true;
        } else if !is_code {
            if is_ended && !line.trim().is_empty() {
                answer.clear();
                is_ended = false;
            }
            answer.push_str(line);
            answer.push('\n');
        }
    }
    answer.trim().to_owned()
}

/// In characters.
const MAX_COMMAND: usize = 4000;

/// A command that the user allows or not, with its lines, without keys or control characters. A
/// longer one is cut at a word and says so: its end can do anything.
pub(super) fn sanitize_command(text: &str) -> String {
    let text = text.trim().replace("\r\n", "\n");
    let clean = redact(&text);
    let length = clean.chars().count();
    let short = excerpt_at_word(&clean, MAX_COMMAND);
    let shown = sanitize_block(&short);
    match length > MAX_COMMAND {
        false => shown.into_owned(),
        true => {
            // Without the ellipsis.
            let more = length - (short.chars().count() - 1);
            let verb = if more == 1 { "is" } else { "are" };
            let more = counted(more, "more character");
            format!("{shown} ({more} {verb} not shown)")
        }
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

#[cfg(test)]
mod history_tests {
    use super::*;

    #[test]
    fn the_last_answer_has_no_other_lines_and_no_code() {
        let history = "\n# aider chat started at 2026-11-27 10:13:59\n\n> Aider v0.86.2  \n\n\
            #### Please do it  \n> gone.txt  \n\nFirst try.\n\n> Tokens: 80 sent, 4 received.  \n\n\
            I fix the sum.\n\nnotes.md\n```\n# Notes\n> quoted\n```\n\nThe test passes now.\n\n\
            > Tokens: 80 sent, 4 received.  \n> Applied edit to notes.md  \n";
        assert_eq!(
            last_answer(history),
            "I fix the sum.\n\n\nThe test passes now."
        );
        assert_eq!(last_answer("a.txt\n```\nx\n```\n> Tokens: 1 sent"), "");
    }
}

#[cfg(test)]
mod label_tests {
    use super::*;

    #[test]
    fn a_label_is_short_and_visible() {
        assert_eq!(sanitize_label(" a\nb\u{202e} "), "a\\u{a}b\\u{202e}");
        assert_eq!(
            sanitize_label(&"x".repeat(1000)).chars().count(),
            MAX_LABEL + 1
        );
        assert!(sanitize_label(&"word ".repeat(100)).ends_with(" word…"));
    }
}
