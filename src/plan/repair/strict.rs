//! Strict parser for tests: reads a plan by CommonMark alone.
//!
//! It knows nothing about repair and tolerates nothing. Comparing with its results proves that the
//! repaired fences mean the same to any Markdown parser.

use crate::plan::action::{ActionRow, BodyShape};
use crate::plan::line::{self, Label, LineKind, Section};
use crate::text::markdown::{self, BlockKind, MarkdownBlock, MarkdownCode};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedAction {
    /// As the format spells it.
    pub name: &'static str,
    /// Text of the link in the first item; empty without one.
    pub path: String,
    /// Contents of the blocks, byte for byte, or the message.
    pub parts: Vec<String>,
}

/// Parses a plan. The error says why the text is not one.
pub(super) fn read(text: &str) -> Result<Vec<ParsedAction>, String> {
    let lines: Vec<&str> = crate::text::fence::split_lines(text)
        .map(|l| l.text)
        .collect();
    let document = markdown::read(text);
    let mut blocks = document.blocks.as_slice();
    let kind = |block: &MarkdownBlock| match &block.node {
        BlockKind::Heading { setext: false, .. } => line::classify_line(lines[block.first - 1]),
        _ => LineKind::Text,
    };

    let start = blocks
        .iter()
        .position(|b| matches!(kind(b), LineKind::Section(Section::Plan)))
        .ok_or("no action plan")?;
    let header: Vec<LineKind> = blocks[..start].iter().map(kind).collect();
    if header.first() != Some(&LineKind::Title { spaced: true }) {
        return Err("no title".into());
    }

    if blocks[..start].iter().any(|b| {
        matches!(
            b.node,
            BlockKind::Paragraph | BlockKind::Html | BlockKind::Quote | BlockKind::Other
        )
    }) {
        return Err("stray text above the action plan".into());
    }

    blocks = &blocks[start + 1..];
    let mut actions = Vec::new();
    while let Some((head, tail)) = blocks.split_first() {
        if matches!(head.node, BlockKind::Rule) {
            blocks = tail;
            continue;
        }

        let LineKind::Action(row) = kind(head) else {
            return Err(format!("line {}: no action", head.first));
        };
        let len = tail
            .iter()
            .position(|b| matches!(kind(b), LineKind::Action(_)))
            .unwrap_or(tail.len());
        let last = tail.get(len).map_or(lines.len(), |next| next.first - 1);
        actions.push(parse_action(text, row, &tail[..len], head.first..last)?);

        blocks = &tail[len..];
    }

    Ok(actions)
}

fn parse_action(
    text: &str,
    row: &'static ActionRow,
    body: &[MarkdownBlock],
    span: std::ops::Range<usize>,
) -> Result<ParsedAction, String> {
    let name = row.name;
    if row.is_message() {
        let open = body.iter().any(
            |b| matches!(&b.node, BlockKind::Code(code) if !code.is_closed && code.fence_char.is_some()),
        );
        let message = cut(text, span.start..span.end)
            .trim_matches(['\n', '\r'])
            .trim_end()
            .to_owned();
        return if open {
            Err(format!("{name}: open fence"))
        } else {
            Ok(ParsedAction {
                name,
                path: String::new(),
                parts: vec![message],
            })
        };
    }

    let (path, codes) = parts(text, body)?;
    let labels: Vec<_> = codes.iter().map(|(label, _)| *label).collect();
    let fits = match row.shape {
        BodyShape::File | BodyShape::Script => labels == [None],
        BodyShape::Queries => !labels.is_empty() && labels.iter().all(Option::is_none),
        BodyShape::Pairs => {
            !labels.is_empty()
                && labels
                    .chunks(2)
                    .all(|pair| pair == [Some(Label::Find), Some(Label::Replace)])
        }
        _ => labels.is_empty(),
    };

    let parts = codes.into_iter().map(|(_, content)| content).collect();
    if fits {
        Ok(ParsedAction { name, path, parts })
    } else {
        Err(format!("{name}: its blocks are {labels:?}"))
    }
}

/// A content with the label above it.
type Labelled = (Option<Label>, String);

fn parts(text: &str, body: &[MarkdownBlock]) -> Result<(String, Vec<Labelled>), String> {
    let (mut path, mut label, mut codes) = (String::new(), None, Vec::new());
    for block in body {
        let line = cut(text, block.first - 1..block.first);
        let own_label = if let LineKind::Label(own_label) =
            line::classify_line(line.trim_end_matches(['\n', '\r']))
        {
            Some(own_label)
        } else {
            None
        };

        match &block.node {
            BlockKind::Code(code) => {
                codes.push((std::mem::take(&mut label), block_text(text, code)?))
            }
            BlockKind::List { items, .. } if path.is_empty() => {
                path = line
                    .split_once("](/")
                    .map_or("", |(_, tail)| tail.trim_end().trim_end_matches(')'))
                    .to_owned();
                path.push_str(if path.is_empty() { "-" } else { "" });
                let nested = items.iter().flat_map(|item| &item.blocks);

                for code in nested.filter_map(|b| {
                    if let BlockKind::Code(code) = &b.node {
                        Some(code)
                    } else {
                        None
                    }
                }) {
                    codes.push((None, block_text(text, code)?));
                }
            }
            BlockKind::Rule => {}
            BlockKind::Paragraph | BlockKind::Heading { .. }
                if own_label.is_some() && block.first == block.last =>
            {
                label = own_label
            }
            other => return Err(format!("line {}: stray {other:?}", block.first)),
        }
    }

    if label.is_some() {
        Err("label without a block".into())
    } else {
        Ok((path, codes))
    }
}

/// Returns the bytes of a content without the opener's indentation.
fn block_text(text: &str, code: &MarkdownCode) -> Result<String, String> {
    if !code.is_closed {
        return Err(format!("line {}: open fence", code.line_range.start));
    }

    let opener = cut(text, code.line_range.start - 2..code.line_range.start - 1);
    let indent = &opener[..opener.len() - opener.trim_start_matches([' ', '\t']).len()];
    let raw = cut(text, code.line_range.start - 1..code.line_range.end - 1);
    let lines = crate::text::fence::split_lines(raw);
    Ok(lines
        .map(|l| {
            format!(
                "{}{}",
                l.text.strip_prefix(indent).unwrap_or(l.text),
                l.ending
            )
        })
        .collect())
}

/// Returns the bytes of a range of line indexes.
fn cut(text: &str, lines: std::ops::Range<usize>) -> &str {
    let mut ends = vec![0];
    ends.extend(crate::text::fence::split_lines(text).scan(0, |at, l| {
        *at += l.text.len() + l.ending.len();
        Some(*at)
    }));
    let end = lines.end.min(ends.len() - 1);
    &text[ends[lines.start.min(end)]..ends[end]]
}
