//! Converts comrak's tree to blocks in one walk, without recursion.

use comrak::nodes::{AstNode, NodeCodeBlock, NodeValue};

use super::{
    BlockKind, Document, Item, MAX_NESTING, MarkdownBlock, MarkdownCode, columns, heading_text,
};
use crate::text::lines::Lines;

pub(super) struct BlockBuilder<'a> {
    lines: &'a Lines<'a>,
    /// The document, and the open lists and items.
    frames: Vec<Frame>,
    /// Number of open block nodes below the document.
    depth: usize,
    /// Maximum of `depth`.
    deepest: usize,
    /// Number of open nodes at or below a leaf, whose content is ignored.
    skipped: usize,
}

#[derive(Default)]
struct Frame {
    span: (usize, usize),
    /// For the document and items.
    blocks: Vec<MarkdownBlock>,
    /// For lists.
    items: Vec<Item>,
}

impl<'a> BlockBuilder<'a> {
    pub(super) fn new(lines: &'a Lines<'a>) -> BlockBuilder<'a> {
        BlockBuilder {
            lines,
            frames: vec![Frame::default()],
            depth: 0,
            deepest: 0,
            skipped: 0,
        }
    }

    pub(super) fn finish(mut self) -> Document {
        let blocks = self
            .frames
            .pop()
            .map(|frame| frame.blocks)
            .unwrap_or_default();
        Document {
            blocks,
            depth: self.deepest,
            abandoned: false,
        }
    }

    pub(super) fn enter(&mut self, node: &AstNode<'_>) {
        let data = node.data.borrow();
        if matches!(data.value, NodeValue::Document) || !data.value.block() {
            return;
        }

        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        if self.skipped > 0 {
            self.skipped += 1;
            return;
        }

        let span = self.span(&data);
        let container = matches!(data.value, NodeValue::List(_) | NodeValue::Item(_));
        if container && self.depth <= MAX_NESTING {
            self.frames.push(Frame {
                span,
                ..Frame::default()
            });
            return;
        }

        let node = self.leaf(&data.value, span);
        self.push(MarkdownBlock {
            first: span.0,
            last: span.1,
            node,
        });
        self.skipped = 1;
    }

    pub(super) fn exit(&mut self, node: &AstNode<'_>) {
        let data = node.data.borrow();
        if matches!(data.value, NodeValue::Document) || !data.value.block() {
            return;
        }

        self.depth -= 1;
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }

        let frame = self
            .frames
            .pop()
            .expect("every container that ends was entered");
        match &data.value {
            NodeValue::List(list) => {
                let ordered = list.list_type == comrak::nodes::ListType::Ordered;
                let node = BlockKind::List {
                    ordered,
                    items: frame.items,
                };
                self.push(MarkdownBlock {
                    first: frame.span.0,
                    last: frame.span.1,
                    node,
                });
            }
            _ => self.top().items.push(Item {
                first: frame.span.0,
                blocks: frame.blocks,
            }),
        }
    }

    fn push(&mut self, block: MarkdownBlock) {
        self.top().blocks.push(block);
    }

    fn top(&mut self) -> &mut Frame {
        self.frames
            .last_mut()
            .expect("the document's frame is never popped during the walk")
    }

    /// Returns the first and last line of a node. An end at column 0 means the line before.
    fn span(&self, data: &comrak::nodes::Ast) -> (usize, usize) {
        let (start, end) = (data.sourcepos.start, data.sourcepos.end);
        let last = if end.column == 0 {
            end.line.saturating_sub(1)
        } else {
            end.line
        };

        let first = start.line.max(1);
        (first, last.clamp(first, self.lines.len().max(first)))
    }

    fn leaf(&self, value: &NodeValue, span: (usize, usize)) -> BlockKind {
        match value {
            NodeValue::Heading(heading) => BlockKind::Heading {
                level: heading.level,
                setext: heading.setext,
                text: self.heading(heading.setext, span),
            },
            NodeValue::CodeBlock(code) => BlockKind::Code(self.code(code, span)),
            NodeValue::Paragraph => BlockKind::Paragraph,
            NodeValue::ThematicBreak => BlockKind::Rule,
            NodeValue::HtmlBlock(_) => BlockKind::Html,
            NodeValue::BlockQuote => BlockKind::Quote,
            _ => BlockKind::Other,
        }
    }

    fn heading(&self, setext: bool, span: (usize, usize)) -> String {
        if setext {
            let lines = span.0..span.1;
            return lines
                .map(|n| self.lines.get(n).trim())
                .collect::<Vec<_>>()
                .join(" ");
        }
        heading_text(self.lines.get(span.0)).to_owned()
    }

    fn code(&self, code: &NodeCodeBlock, (first, last): (usize, usize)) -> MarkdownCode {
        if !code.fenced {
            let (info, line_range) = (String::new(), first..last + 1);
            return MarkdownCode {
                info,
                fence_char: None,
                fence_len: 0,
                indent: 4,
                is_closed: true,
                line_range,
            };
        }

        let fence_char = char::from(code.fence_char);
        let fence: String = std::iter::repeat_n(fence_char, code.fence_length).collect();
        let opener = self.lines.get(first);
        let indent = columns(&opener[..opener.find(&fence).unwrap_or(0)]);
        let end = if code.closed { last } else { last + 1 };
        MarkdownCode {
            info: code.info.clone(),
            fence_char: Some(fence_char),
            fence_len: code.fence_length,
            indent,
            is_closed: code.closed,
            line_range: first + 1..end.max(first + 1),
        }
    }
}
