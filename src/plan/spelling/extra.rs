//! Blocks behind the one that an action asks for: what a command prints, a footer for a program, more
//! lines of the same script.
//!
//! A fence inside of a here-document or a string belongs to it (RP14), so a block is separate only if
//! the code above it has ended.

use std::ops::Range;

use super::edits::LineEdits;
use super::passage::Passage;
use crate::plan::action::{ActionRow, BodyShape};
use crate::plan::line::field_item::canonical;
use crate::plan::line::split_item;
use crate::text::fence::{self, fence_for};
use crate::text::markdown::{BlockKind, Lines, MarkdownBlock, MarkdownCode};
use crate::text::{has_phrase, language, link};

/// What the blocks of scripts say that they are.
const SHELLS: [&str; 4] = ["sh", "bash", "shell", "zsh"];
/// What the blocks of output say that they are.
const PRINTED: [&str; 7] = ["", "text", "txt", "plaintext", "output", "console", "log"];
/// The labels of what a command prints, in small letters.
const OUTPUT: &str = "\
    output, outputs, expected output, sample output, example output, console output, \
    terminal output, command output, stdout, result, results, expected result";
const PROMPT: &str = "$ ";

pub(super) struct ExtraBlocks<'a, 'b> {
    pub lines: &'a Lines<'a>,
    pub row: &'static ActionRow,
    pub blocks: &'b [MarkdownBlock],
    /// Whether no other action follows.
    pub is_last: bool,
}

impl ExtraBlocks<'_, '_> {
    /// Leaves out or joins what has one clear meaning. Returns how many of the blocks are left to be
    /// read, from the first one.
    pub fn respell(&self, passage: &Passage, edits: &mut LineEdits<'_>) -> usize {
        let mut end = self.blocks.len();
        if self.is_last && self.is_footer() {
            end -= 1;
            self.leave_out(end..end + 1, "the footer", edits);
        }

        if self.row.shape == BodyShape::Script {
            if let Some(output) = self.output(end).filter(|_| self.is_last) {
                self.leave_out(output.clone(), "the output", edits);
                end = output.start;
            }
            end = self.merge_blocks(passage, end, edits);
            self.remove_prompts(edits);
        }
        end
    }

    fn leave_out(&self, blocks: Range<usize>, part: &str, edits: &mut LineEdits<'_>) {
        let [first, last] = [blocks.start, blocks.end - 1].map(|at| &self.blocks[at]);
        edits.leave_out(first.first..=last.last, part);
    }

    /// Returns whether the last block is an object for a program, behind an action that is complete.
    fn is_footer(&self) -> bool {
        let Some((last, above)) = self.blocks.split_last() else {
            return false;
        };
        let text = match &last.node {
            BlockKind::Code(code) if code.fence_char.is_some() && code.is_closed => {
                let plain = ["", "json"].contains(&code.info.trim());
                plain.then(|| self.lines.span(code.line_range.clone()))
            }
            BlockKind::Paragraph => Some(self.lines.span(last.first..last.last + 1)),
            _ => None,
        };
        let text = text.filter(|text| text.trim_start().starts_with('{'));
        let object = text.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
        if !object.is_some_and(|value| value.is_object()) {
            return false;
        }

        let codes = above
            .iter()
            .filter(|block| block.fenced().is_some())
            .count();
        let complete = match self.row.shape {
            BodyShape::ListAlone => codes == 0,
            BodyShape::File | BodyShape::Script => codes == 1,
            BodyShape::Pairs => codes > 0 && codes % 2 == 0,
            BodyShape::Queries | BodyShape::Message => false,
        };
        let own = above.iter().rev().find_map(MarkdownBlock::fenced);
        complete && own.is_none_or(|code| self.is_over(code, last.first))
    }

    /// Returns whether the code of a block is over before a line below it. Prose and languages that are
    /// not known can hold any fence.
    fn is_over(&self, code: &MarkdownCode, line: usize) -> bool {
        let word = match self.row.shape {
            BodyShape::Script => "sh".to_owned(),
            _ => match self.ending() {
                Some(ending) => ending,
                None => code
                    .info
                    .split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            },
        };
        if !code.is_closed || word == "json" || !language::is_known(&word) {
            return false;
        }

        let start = code.line_range.start;
        let texts = self.lines.texts(start..=self.lines.len());
        let spanned = language::spanned(&word, &texts);
        !(code.line_range.end..=line).any(|at| spanned.get(at - start).copied().unwrap_or(false))
    }

    /// Returns the ending of the file that the action writes.
    fn ending(&self) -> Option<String> {
        let list = self.blocks.first()?;
        let mut texts = (list.first..=list.last).map(|line| self.lines.get(line));
        let value = texts.find_map(|text| {
            let (key, value) = split_item(text)?;
            (canonical(key) == Some("File Path")).then_some(value)
        })?;
        let path = link::read(value).ok()?;
        let (_, ending) = path.rsplit('/').next()?.rsplit_once('.')?;
        Some(ending.to_owned())
    }

    /// Returns the label and the block of what the command prints, at the end of the first blocks.
    fn output(&self, end: usize) -> Option<Range<usize>> {
        let start = end.checked_sub(2)?;
        let [label, block] = &self.blocks[start..end] else {
            return None;
        };
        let caption = label_of(self.lines, label)?;
        let code = block.fenced()?;
        let printed = PRINTED.contains(&&*code.info.trim().to_lowercase()) && code.is_closed;
        let script = self.blocks[..start]
            .iter()
            .rev()
            .find_map(MarkdownBlock::fenced)?;
        let is_printed = has_phrase(OUTPUT, &caption) && printed;
        (is_printed && self.is_over(script, block.first)).then_some(start..end)
    }

    /// Returns whether blocks of code, each of them over one of `next` except for the last, are parts of
    /// one script.
    fn is_one_script(&self, codes: &[&MarkdownCode], next: &[MarkdownBlock]) -> bool {
        let info = codes[0].info.trim().to_lowercase();
        let is_alike = codes.iter().all(|code| {
            let same = code.info.trim().eq_ignore_ascii_case(&info);
            same && code.is_closed && code.indent == 0
        });
        let is_over =
            |(code, next): (&&MarkdownCode, &MarkdownBlock)| self.is_over(code, next.first);
        let starts_anew =
            |code: &&MarkdownCode| self.lines.span(code.line_range.clone()).starts_with("#!");
        SHELLS.contains(&&*info)
            && is_alike
            && codes.iter().zip(next).all(is_over)
            && !codes[1..].iter().any(starts_anew)
    }

    /// Joins blocks of one shell that follow each other directly. Returns how many of the first blocks
    /// are left.
    fn merge_blocks(&self, passage: &Passage, end: usize, edits: &mut LineEdits<'_>) -> usize {
        let first = self.blocks[..end]
            .iter()
            .position(|block| block.fenced().is_some());
        let Some(first) = first.filter(|first| first + 1 < end) else {
            return end;
        };
        let codes: Vec<&MarkdownCode> = self.blocks[first..end]
            .iter()
            .filter_map(MarkdownBlock::fenced)
            .collect();
        let more = &self.blocks[first + 1..end];
        // With something else among them, there are fewer blocks of code than blocks.
        if codes.len() <= more.len() || !self.is_one_script(&codes, more) {
            return end;
        }

        let info = codes[0].info.trim().to_lowercase();
        let last = &self.blocks[end - 1];
        let text = self.lines.span(self.blocks[first].first..last.last + 1);
        let fence = fence_for(text, 4);
        edits.replace(self.blocks[first].first, format!("{fence}{info}"));
        edits.replace(last.last, fence);
        for (code, next) in codes.iter().zip(more) {
            (code.line_range.end..=next.first).for_each(|line| edits.remove(line));
        }
        let number = codes.len();
        edits.add_note(
            passage.line,
            format!("joined the {number} code blocks of the command in their order"),
        );
        first + 1
    }

    /// Takes the prompts off a script in which every command has one.
    fn remove_prompts(&self, edits: &mut LineEdits<'_>) {
        let mut codes = self.blocks.iter().filter_map(MarkdownBlock::fenced);
        let (Some(code), None) = (codes.next(), codes.next()) else {
            return;
        };
        let lines = || {
            code.line_range
                .clone()
                .map(|line| (line, self.lines.get(line)))
        };
        let mut solid = lines()
            .filter(|(_, text)| !text.trim().is_empty())
            .peekable();
        if code.indent > 0 || solid.peek().is_none() {
            return;
        }

        let mut changes = Vec::new();
        let mut continued = false;
        for (line, text) in solid {
            match (text.strip_prefix(PROMPT), continued) {
                (Some(command), false) => changes.push((line, command)),
                (_, true) => changes.push((line, text.strip_prefix("> ").unwrap_or(text))),
                (None, false) => return,
            }
            continued = text.ends_with('\\');
        }

        let first = code.line_range.start;
        edits.add_note(first, "took the prompts off the commands");
        changes
            .into_iter()
            .for_each(|(line, text)| edits.replace(line, text));
    }
}

/// Returns the text of a label, in lower case.
fn label_of(lines: &Lines<'_>, block: &MarkdownBlock) -> Option<String> {
    let is_label = matches!(block.node, BlockKind::Paragraph | BlockKind::Heading { .. });
    if block.first != block.last || !is_label {
        return None;
    }

    let text = lines.get(block.first).trim();
    let is_marked = text.starts_with(['#', '*', '_', '`']) || text.ends_with([':', '：']);
    let title = text.trim_matches(|c: char| !c.is_alphanumeric());
    let plain = fence::read(text).is_none() && is_marked;
    plain.then(|| title.to_lowercase())
}
