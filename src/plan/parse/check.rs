//! Mistakes that can occur anywhere in a plan: unclosed fences, headings hidden from Markdown, NUL.

use crate::plan::action::border;
use crate::plan::diagnostic::{Diagnostic, quote};
use crate::text::lines::Lines;
use crate::text::markdown::{self, BlockKind, MarkdownBlock, MarkdownCode};

/// Reports fenced blocks that are never closed, and the structure they swallow (P19).
pub fn unclosed_fences(lines: &Lines<'_>, blocks: &[MarkdownBlock]) -> Vec<Diagnostic> {
    let open = markdown::fenced(blocks)
        .into_iter()
        .filter(|(_, code)| !code.is_closed);
    open.map(|(range, code)| {
        let swallowed = code
            .line_range
            .clone()
            .find(|&line| border::looks_like_border(lines.get(line)));
        let tail = swallowed
            .map(|line| {
                format!(
                    "; it swallows \"{}\" in line {line}",
                    quote(lines.get(line))
                )
            })
            .unwrap_or_default();
        let message = format!("the code block that opens here is never closed{tail}");

        Diagnostic::new(range.start, message).hint(format!(
            "close it with {} alone on a line",
            fence_text(code)
        ))
    })
    .collect()
}

/// Reports lines that look like the heading of an action or a section but that Markdown parses as
/// something else (P18).
pub fn hidden_headings(lines: &Lines<'_>, blocks: &[MarkdownBlock]) -> Vec<Diagnostic> {
    let around = |line: usize| blocks[..blocks.partition_point(|block| block.first <= line)].last();
    let wrong = |line: usize| {
        let container = match around(line).map(|block| &block.node) {
            Some(BlockKind::Html) => "HTML",
            Some(BlockKind::List { .. }) => "a list",
            Some(BlockKind::Code(_)) => "indented code",
            Some(BlockKind::Paragraph) => "text",
            _ => "something else",
        };
        let message = format!(
            "\"{}\" looks like a heading, but Markdown reads it as part of {container}",
            quote(lines.get(line))
        );
        let hint = "start it in the first column, with one space after the `#` and an empty line above; or put it into a code block";

        Diagnostic::new(line, message).hint(hint)
    };
    border::hidden(lines, blocks)
        .into_iter()
        .map(wrong)
        .collect()
}

/// Reports the first NUL (P21).
pub fn first_nul(text: &str) -> Option<Diagnostic> {
    let at = text.find('\0')?;
    let line =
        Lines::new(&text[..at]).len().max(1) + usize::from(text[..at].ends_with(['\n', '\r']));
    Some(
        Diagnostic::new(line, "the plan has a NUL character")
            .hint("make binary files with EXECUTE, as with `base64 -d`"),
    )
}

fn fence_text(code: &MarkdownCode) -> String {
    std::iter::repeat_n(code.fence_char.unwrap_or('`'), code.fence_len.min(80)).collect()
}
