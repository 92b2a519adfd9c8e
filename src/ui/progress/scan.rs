//! Extracts title, actions and length from a plan while it is still being received.
//!
//! An approximation for the progress display. The review uses the real parser.

use super::super::style::{StyledLine, Tone};
use crate::plan::action::ROWS;
use crate::text::fence;

/// Rough average; the exact number arrives with the reply.
const BYTES_PER_TOKEN: usize = 4;

/// State of the scan.
#[derive(Debug, Default)]
pub struct PlanScan {
    /// Bytes of complete lines that were scanned.
    parsed: usize,
    /// Bytes received so far.
    length: usize,
    /// Mark and length of the open fence.
    fence: Option<(u8, usize)>,
    titled: bool,
    actions: usize,
}

impl PlanScan {
    /// Takes the whole reply so far and returns lines for what is new.
    pub fn feed(&mut self, text: &str) -> Vec<StyledLine> {
        self.length = self.length.max(text.len());
        let fresh = text.get(self.parsed..).unwrap_or_default();
        let complete = fresh.rfind('\n').map_or(0, |at| at + 1);
        self.parsed += complete;
        fresh[..complete]
            .lines()
            .filter_map(|line| self.line(line))
            .collect()
    }

    /// Returns the number of actions so far.
    pub fn actions(&self) -> usize {
        self.actions
    }

    /// Returns whether nothing was received.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the approximate number of tokens so far.
    pub fn tokens(&self) -> usize {
        self.length / BYTES_PER_TOKEN
    }

    fn line(&mut self, line: &str) -> Option<StyledLine> {
        if self.in_block(line) {
            return None;
        }

        if let Some(title) = line.strip_prefix("# ").filter(|_| !self.titled) {
            self.titled = true;
            return Some(StyledLine::of(Tone::Strong, title));
        }

        let name = action_keyword(line)?;
        self.actions += 1;
        Some(StyledLine::of(Tone::Faint, &format!("  {}. ", self.actions)).with(Tone::Plain, name))
    }

    /// Returns whether the line belongs to a code block, fences included.
    fn in_block(&mut self, line: &str) -> bool {
        let fence = fence::read(line);
        match self.fence {
            Some((mark, length)) => {
                let closes = fence.is_some_and(|fence| {
                    fence.mark == mark && fence.len >= length && fence.info.is_empty()
                });
                self.fence = self.fence.filter(|_| !closes);
                true
            }
            None => {
                self.fence = fence.map(|fence| (fence.mark, fence.len));
                fence.is_some()
            }
        }
    }
}

fn action_keyword(line: &str) -> Option<&'static str> {
    let heading = line.strip_prefix("### ")?.trim().trim_matches('`');
    ROWS.iter()
        .map(|row| row.name)
        .find(|name| heading.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&str], expected: &[&str]) {
        let (mut scan, mut text, mut lines) = (PlanScan::default(), String::new(), Vec::new());
        for piece in pieces {
            text.push_str(piece);
            lines.extend(scan.feed(&text).iter().map(StyledLine::text));
        }
        assert_eq!(lines, expected);
    }

    #[test]
    fn title_and_actions_are_said_once_when_their_lines_are_whole() {
        check(
            &["# Ti", "tle\n### `CRE", "ATE`\n", "x"],
            &["Title", "  1. CREATE"],
        );
    }

    #[test]
    fn headings_in_code_blocks_are_content() {
        check(
            &["# T\n````md\n### `EDIT`\n```\n# x\n````\n### READ\n"],
            &["T", "  1. READ"],
        );
    }
}
