//! Respells plans in the format's exact spelling, and removes tags and comments around their parts.
//!
//! The parser is strict, and whatever it accepts is not changed. A text that it rejects is tried
//! once more here: headings, fields, labels, sections and values in other spellings are replaced by
//! the format's own, and text next to the blocks is removed, each with a remark. Ambiguous text is
//! left for the parser to reject. Rules P25 to P37 of `docs/formats/plan.md`.
//!
//! Only lines outside code blocks are considered, so the fences must be correct already.

mod action;
mod edits;
mod extra;
mod passage;
mod section;

use edits::LineEdits;
use passage::{Passage, cut, is_beside_command};

use crate::plan::line::condition::is_aside;
use crate::plan::line::{looks_like_border, name};
use crate::plan::repair::Note;
use crate::text::fence::split_lines;
use crate::text::has_word;
use crate::text::markdown::{self, BlockKind, Lines, MarkdownBlock};

#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod refused_tests;

/// A text in the format's spelling.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Respelled {
    pub text: String,
    /// The text that the remarks' lines refer to: the given one, with some lines separated.
    pub source: String,
    /// Changes made.
    pub notes: Vec<Note>,
    /// Whether text next to the blocks was removed. The extent of blocks then depends on the fences
    /// alone.
    pub spoken: bool,
}

/// Respells a plan wherever its meaning is unambiguous.
pub fn respell(original: &str) -> Respelled {
    let (text, mut notes) = without_tags(&passage::separate_headings(original));
    let (text, more) = passage::with_headings(&text);
    notes.extend(more);
    let lines = Lines::new(&text);
    let blocks = markdown::blocks(&text);
    let mut passages = passage::cut(&lines, &blocks);
    if !passage::is_plan(&lines, &passages) {
        return Respelled {
            text: original.to_owned(),
            source: original.to_owned(),
            ..Respelled::default()
        };
    }

    let mut edits = LineEdits::new(&lines);
    section::name_all(&blocks, &mut passages, &mut edits);
    let mut proposed = false;
    let last = passages.iter().rposition(passage::Passage::is_action);
    for (index, passage) in passages.iter().enumerate() {
        let own = &blocks[passage.blocks.clone()];
        if passage.is_action() {
            action::respell(passage, own, proposed, last == Some(index), &mut edits);
            proposed |= passage.is_message() && name::is_announced(&lines, passage.end);
        } else {
            section::respell(passage, own, &mut edits);
        }
    }

    edits.mark_asides(&|line| is_beside_command(&lines, &passages, line));
    let spoken = edits.spoken;
    let (respelled, more) = edits.finish();
    notes.extend(more);
    Respelled {
        text: respelled,
        source: text,
        notes,
        spoken,
    }
}

/// Passes over a text. A tag hides the text below it until the next blank line.
const MAX_ROUNDS: usize = 4;

/// Longest tag, in bytes.
const MAX_TAG: usize = 80;

/// Parts of the names of tags that only wrap their contents. Any other tag changes the meaning: an
/// example, a draft, deleted text.
const CONTAINER_WORDS: &str = "\
    action actions answer arguments article artifact args body br call calls center content \
    details div document final function functions html input invoke main markdown memos message \
    output p parameter parameters plan rationale reply response result section span steps summary \
    tool tools use teddy";

/// Returns a text without the tags and comments outside its messages and blocks.
fn without_tags(text: &str) -> (String, Vec<Note>) {
    let (mut text, mut notes) = (text.to_owned(), Vec::new());
    for _ in 0..MAX_ROUNDS {
        let (next, more) = strip_tags_once(&text);
        if more.is_empty() {
            break;
        }
        text = next;
        notes.extend(more);
    }

    (text, notes)
}

/// Removes everything that Markdown currently parses as HTML.
fn strip_tags_once(text: &str) -> (String, Vec<Note>) {
    let lines = Lines::new(text);
    let blocks = markdown::blocks(text);
    let mut edits = LineEdits::new(&lines);
    let passages = cut(&lines, &blocks);
    for passage in &passages {
        let own = &blocks[passage.blocks.clone()];
        if passage.is_message() {
            remove_closing_tag(&lines, passage, own, &mut edits);
            continue;
        }

        for block in own.iter().filter(|block| block.node == BlockKind::Html) {
            remove_tags(&lines, block, &mut edits);
        }

        // In the middle of a paragraph, Markdown treats a tag as text.
        let texts = own
            .iter()
            .filter(|block| block.node == BlockKind::Paragraph);
        for line in texts.flat_map(|block| block.lines()) {
            if is_tag(lines.get(line)) {
                blank_line(&lines, line, &mut edits);
            }
        }
    }

    edits.mark_asides(&|line| is_beside_command(&lines, &passages, line));
    edits.finish()
}

/// Removes the tags from a block, or the whole block if it is a comment.
fn remove_tags(lines: &Lines<'_>, block: &MarkdownBlock, edits: &mut LineEdits<'_>) {
    let first = lines.get(block.first).trim();
    let hides = block.lines().any(|line| looks_like_border(lines.get(line)));
    let last = lines.get(block.last).trim();
    let ends = block
        .lines()
        .filter(|&line| lines.get(line).contains("-->"));
    let one = ends.count() == 1 && last.matches("-->").count() == 1;
    let is_comment = first.starts_with("<!--") && last.ends_with("-->") && one;

    if is_comment && !hides {
        edits.add_note(block.first, "left out the comment");
        edits.mark_text(block.first);
        block.lines().for_each(|line| edits.replace(line, ""));
        return;
    }

    for line in block.lines().filter(|&line| is_tag(lines.get(line))) {
        blank_line(lines, line, edits);
    }
}

/// Removes the closing tag at the end of a message if it was opened above the message.
fn remove_closing_tag(
    lines: &Lines<'_>,
    passage: &Passage,
    blocks: &[MarkdownBlock],
    edits: &mut LineEdits<'_>,
) {
    let Some(block) = blocks.last().filter(|_| passage.end > lines.len()) else {
        return;
    };
    let line = block.last;
    let text = lines.get(line).trim();
    let Some(name) = text
        .strip_prefix("</")
        .and_then(|tail| tail.strip_suffix('>'))
    else {
        return;
    };
    let html = matches!(block.node, BlockKind::Html | BlockKind::Paragraph);
    let opens = |number: usize| lines.get(number).contains(&format!("<{name}"));
    let own = (passage.line..line).any(opens);
    if html && !own && is_tag(text) {
        blank_line(lines, line, edits);
    }
}

fn blank_line(lines: &Lines<'_>, line: usize, edits: &mut LineEdits<'_>) {
    // A blank line keeps the text around it separate.
    edits.replace(line, "");
    let tag = lines.get(line).trim();
    edits.add_note(line, format!("left out `{tag}`"));
    if tag.contains("</summary") {
        edits.mark_text(line);
    }
}

/// Returns whether a line is only a tag, or a summary between its tags.
fn is_tag(line: &str) -> bool {
    let text = line.trim();
    let inner = text
        .strip_prefix('<')
        .and_then(|tail| tail.strip_suffix('>'));
    let Some(inner) = inner.filter(|_| text.len() <= MAX_TAG) else {
        return false;
    };
    let summary = inner.starts_with("summary>") && inner.ends_with("</summary");
    let name = inner.trim_start_matches('/');
    let (word, attributes) = name
        .split_once(|c: char| c.is_whitespace() || c == '/')
        .unwrap_or((name, ""));
    let holds = word
        .to_lowercase()
        .split(['_', '-'])
        .all(|part| has_word(CONTAINER_WORDS, part));
    let is_visible = !attributes.contains("hidden") && !attributes.contains("style");
    let plain = holds && is_visible && !inner.contains(['<', '>', '@']);

    (summary || plain) && !is_aside(inner)
}

/// Removes the quotation marks or the indentation that every line has; `None` without either. Line
/// numbers are preserved.
pub fn unwrapped_plan(text: &str) -> Option<(String, Note)> {
    let (strip, message): (fn(&str) -> Option<&str>, _) = match () {
        () if every_line_strips(text, without_quote_mark) => {
            (without_quote_mark, "took the plan out of its quotation")
        }
        () if every_line_strips(text, |line| line.strip_prefix("    ")) => (
            |line| line.strip_prefix("    "),
            "took the indentation off the plan",
        ),
        () if every_line_strips(text, |line| line.strip_prefix('\t')) => (
            |line| line.strip_prefix('\t'),
            "took the indentation off the plan",
        ),
        () => return None,
    };
    let lines = split_lines(text).map(|line| {
        [
            strip(line.text).unwrap_or(line.text.trim_start()),
            line.ending,
        ]
        .concat()
    });

    Some((lines.collect(), Note::of_spelling(1, message)))
}

/// Returns whether every non-blank line has a prefix, and there is such a line.
fn every_line_strips(text: &str, strip: fn(&str) -> Option<&str>) -> bool {
    let mut solid = split_lines(text).filter(|line| !line.text.trim().is_empty());
    let first = solid.next().is_some_and(|line| strip(line.text).is_some());
    first && solid.all(|line| strip(line.text).is_some())
}

fn without_quote_mark(line: &str) -> Option<&str> {
    let tail = line.strip_prefix('>')?;
    Some(tail.strip_prefix(' ').unwrap_or(tail))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod tag_tests {
    use super::*;

    #[test]
    fn p36_a_plan_that_is_quoted_or_indented_as_a_whole_is_taken_out() {
        for (text, expected) in [
            ("> # T\n>\n> - a\n>   b\n", Some("# T\n\n- a\n  b\n")),
            ("    # T\n\n      x\n", Some("# T\n\n  x\n")),
            ("\t# T\n", Some("# T\n")),
            ("# T\n> x\n", None),
            ("", None),
        ] {
            assert_eq!(
                unwrapped_plan(text).map(|(text, _)| text).as_deref(),
                expected
            );
        }
    }
}
