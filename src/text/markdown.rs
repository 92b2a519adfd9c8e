//! Parses the block structure of a Markdown text, with line numbers.
//!
//! This is the only user of comrak, and only for structure. Contents are cut from the source by
//! line numbers, because comrak expands tabs, drops indentation and interprets inline markup. List
//! items are parsed into blocks, quotations are not.
//!
//! The result is never deeper than [`MAX_NESTING`], so walking or dropping it cannot overflow the
//! stack.

use std::ops::{Range, RangeInclusive};
use std::time::{Duration, Instant};

use super::fence::{TextLine, columns, split_lines};
use comrak::arena_tree::NodeEdge;
use comrak::nodes::{Ast, AstNode, ListType, NodeCodeBlock, NodeValue};
use comrak::{Arena, Options, format_html, try_parse_document};

/// Maximum nesting of blocks in the result. Deeper blocks are omitted, but counted in
/// [`Document::depth`].
pub const MAX_NESTING: usize = 64;

// Comrak has quadratic cases.
const DEADLINE: Duration = Duration::from_secs(10);

/// A parsed text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Document {
    /// The top-level blocks, in order.
    pub blocks: Vec<MarkdownBlock>,
    /// Nesting of blocks in the source, without limit.
    pub depth: usize,
    /// `true` if parsing took too long. There are no blocks then.
    pub abandoned: bool,
}

/// A block and its line numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownBlock {
    /// First line, from 1.
    pub first: usize,
    /// Last line, from 1, inclusive.
    pub last: usize,
    pub node: BlockKind,
}

impl MarkdownBlock {
    pub fn lines(&self) -> RangeInclusive<usize> {
        self.first..=self.last
    }

    /// Returns the code of a fenced block; `None` for any other block.
    pub fn fenced(&self) -> Option<&MarkdownCode> {
        match &self.node {
            BlockKind::Code(code) if code.fence_char.is_some() => Some(code),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind {
    Heading {
        /// Level, from 1.
        level: u8,
        /// `true` if it is underlined rather than marked with `#`.
        setext: bool,
        /// The source between the marks.
        text: String,
    },
    Code(MarkdownCode),
    List {
        /// `true` for a numbered list.
        ordered: bool,
        items: Vec<Item>,
    },
    Paragraph,
    /// A thematic break.
    Rule,
    Html,
    Quote,
    /// Another kind, or a block that is nested too deep.
    Other,
}

/// A code block, fenced or indented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownCode {
    pub info: String,
    /// Character of the fence. `None` for an indented block.
    pub fence_char: Option<char>,
    /// Length of the opening fence.
    pub fence_len: usize,
    /// Column of the opening fence, from 0.
    pub indent: usize,
    /// `true` if it has a closing fence.
    pub is_closed: bool,
    /// The lines between the fences, from 1.
    pub line_range: Range<usize>,
}

impl MarkdownCode {
    pub fn fence(&self) -> String {
        std::iter::repeat_n(self.fence_char.unwrap_or('`'), self.fence_len).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Line of its marker, from 1.
    pub first: usize,
    pub blocks: Vec<MarkdownBlock>,
}

/// Returns the top-level blocks of a text.
pub fn blocks(text: &str) -> Vec<MarkdownBlock> {
    read(text).blocks
}

/// Parses a text. Ignores a byte order mark.
pub fn read(text: &str) -> Document {
    let arena = Arena::new();
    let Some(root) = parse(&arena, text, &Options::default()) else {
        return Document {
            abandoned: true,
            ..Document::default()
        };
    };

    Document {
        blocks: child_blocks(root, 1, &Lines::new(text)),
        depth: block_depth(root),
        abandoned: false,
    }
}

/// `None` after [`DEADLINE`].
fn parse<'a>(arena: &'a Arena<'a>, text: &str, options: &Options<'_>) -> Option<&'a AstNode<'a>> {
    let started = Instant::now();
    let too_late = || started.elapsed() > DEADLINE;
    try_parse_document(arena, text, options, &too_late).ok()
}

/// Returns all fenced code blocks with their lines, including the fences and those in lists.
pub fn fenced(blocks: &[MarkdownBlock]) -> Vec<(Range<usize>, &MarkdownCode)> {
    let mut fences = Vec::new();
    let mut open: Vec<&MarkdownBlock> = blocks.iter().rev().collect();
    while let Some(block) = open.pop() {
        match &block.node {
            BlockKind::Code(code) if code.fence_char.is_some() => {
                fences.push((block.first..block.last + 1, code))
            }
            BlockKind::List { items, .. } => {
                open.extend(items.iter().rev().flat_map(|item| item.blocks.iter().rev()))
            }
            _ => {}
        }
    }

    fences
}

/// Decodes backslash escapes and entities in a line.
pub fn unescape(line: &str) -> String {
    if !line.contains(['\\', '&']) {
        return line.to_owned();
    }

    // Parse it as an info string, where escapes and entities apply and emphasis does not.
    let flat = line.replace(['\n', '\r'], " ");
    match read(&format!("~~~ {flat}\n"))
        .blocks
        .into_iter()
        .next()
        .map(|block| block.node)
    {
        Some(BlockKind::Code(code)) => code.info,
        _ => line.to_owned(),
    }
}

/// Returns the text of an ATX heading without its marks.
pub fn heading_text(line: &str) -> &str {
    let text = line.trim_start_matches([' ', '\t', '\u{feff}', '>', '-', '*', '+']);
    let text = text
        .trim_start_matches('#')
        .trim_matches([' ', '\t', '\r', '\n']);
    let bare = text.trim_end_matches('#');

    if bare.len() < text.len() && (bare.is_empty() || bare.ends_with([' ', '\t'])) {
        bare.trim_end()
    } else {
        text
    }
}

fn is_block(node: &AstNode<'_>) -> bool {
    let value = &node.data.borrow().value;
    value.block() && !matches!(value, NodeValue::Document)
}

/// Returns the nesting of the blocks below the document. Does not recurse: it has no limit.
fn block_depth<'a>(root: &'a AstNode<'a>) -> usize {
    let (mut depth, mut deepest) = (0, 0);
    for edge in root.traverse() {
        match edge {
            NodeEdge::Start(node) if is_block(node) => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            NodeEdge::End(node) if is_block(node) => depth -= 1,
            _ => {}
        }
    }
    deepest
}

/// Returns the blocks directly below a node, which are nested this deep.
fn child_blocks<'a>(node: &'a AstNode<'a>, depth: usize, lines: &Lines<'_>) -> Vec<MarkdownBlock> {
    let block = |node: &'a AstNode<'a>| {
        let data = node.data.borrow();
        let (first, last) = line_span(&data, lines);
        let node = match &data.value {
            NodeValue::List(list) if depth <= MAX_NESTING => BlockKind::List {
                ordered: list.list_type == ListType::Ordered,
                items: list_items(node, depth + 1, lines),
            },
            value => leaf(value, first, last, lines),
        };
        MarkdownBlock { first, last, node }
    };
    let children = node.children().filter(|child| is_block(child));
    children.map(block).collect()
}

fn list_items<'a>(list: &'a AstNode<'a>, depth: usize, lines: &Lines<'_>) -> Vec<Item> {
    let is_item = |node: &&'a AstNode<'a>| {
        depth <= MAX_NESTING && matches!(node.data.borrow().value, NodeValue::Item(_))
    };
    let item = |node: &'a AstNode<'a>| Item {
        first: line_span(&node.data.borrow(), lines).0,
        blocks: child_blocks(node, depth + 1, lines),
    };
    list.children().filter(is_item).map(item).collect()
}

/// Returns the first and last line of a node. An end at column 0 means the line before.
fn line_span(data: &Ast, lines: &Lines<'_>) -> (usize, usize) {
    let (start, end) = (data.sourcepos.start, data.sourcepos.end);
    let last = if end.column == 0 {
        end.line.saturating_sub(1)
    } else {
        end.line
    };

    let first = start.line.max(1);
    (first, last.clamp(first, lines.len().max(first)))
}

fn leaf(value: &NodeValue, first: usize, last: usize, lines: &Lines<'_>) -> BlockKind {
    match value {
        NodeValue::Heading(heading) if heading.setext => BlockKind::Heading {
            level: heading.level,
            setext: true,
            text: (first..last)
                .map(|line| lines.get(line).trim())
                .collect::<Vec<_>>()
                .join(" "),
        },
        NodeValue::Heading(heading) => BlockKind::Heading {
            level: heading.level,
            setext: false,
            text: heading_text(lines.get(first)).to_owned(),
        },
        NodeValue::CodeBlock(code) => BlockKind::Code(code_block(code, first, last, lines)),
        NodeValue::Paragraph => BlockKind::Paragraph,
        NodeValue::ThematicBreak => BlockKind::Rule,
        NodeValue::HtmlBlock(_) => BlockKind::Html,
        NodeValue::BlockQuote => BlockKind::Quote,
        _ => BlockKind::Other,
    }
}

fn code_block(code: &NodeCodeBlock, first: usize, last: usize, lines: &Lines<'_>) -> MarkdownCode {
    if !code.fenced {
        return MarkdownCode {
            info: String::new(),
            fence_char: None,
            fence_len: 0,
            indent: 4,
            is_closed: true,
            line_range: first..last + 1,
        };
    }

    let fence_char = char::from(code.fence_char);
    let fence: String = std::iter::repeat_n(fence_char, code.fence_length).collect();
    let opener = lines.get(first);
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

// Renders untrusted Markdown as inert HTML.
//
// Raw HTML is escaped. Only `http`, `https` and `mailto` links are kept. Images are replaced by
// their descriptions, because loading one would contact its server.

/// Renders a text as HTML with headings from `level` on. `None` if that takes too long or the
/// nesting is too deep.
pub fn render_html(text: &str, level: u8) -> Option<String> {
    let arena = Arena::new();
    let mut options = Options::default();
    options.extension.table = true;
    options.extension.strikethrough = true;
    options.extension.tasklist = true;
    options.extension.autolink = true;
    options.render.escape = true;

    let root = parse(&arena, text, &options)?;
    let nodes: Vec<&AstNode<'_>> = root.descendants().collect();
    if nodes
        .iter()
        .any(|node| node.ancestors().count() > MAX_NESTING)
    {
        return None;
    }
    // Raw HTML is escaped by `options.render.escape`, so only links and images can have an effect.
    for node in nodes {
        disarm_links(node, level);
    }

    let mut html = String::new();
    format_html(root, &options, &mut html).ok()?;
    Some(html)
}

/// Removes an unsafe link or image, but keeps its content.
fn disarm_links<'a>(node: &'a AstNode<'a>, first: u8) {
    let is_kept = match &mut node.data.borrow_mut().value {
        NodeValue::Heading(heading) => {
            heading.level = (heading.level + first - 1).min(6);
            true
        }
        NodeValue::Link(link) => is_link_address(&link.url),
        NodeValue::Image(_) => false,
        _ => true,
    };
    if is_kept {
        return;
    }

    while let Some(child) = node.first_child() {
        node.insert_before(child);
    }
    node.detach();
}

fn is_link_address(url: &str) -> bool {
    let plain = |c: char| !c.is_control() && !c.is_whitespace();
    let lower = url.to_ascii_lowercase();
    let starts = ["http://", "https://", "mailto:"];
    starts.iter().any(|start| lower.starts_with(start)) && url.chars().all(plain)
}

/// A text split at `\n`, `\r\n` and `\r`.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub fn new(text: &'a str) -> Lines<'a> {
        let mut end = 0;
        let start = |line: TextLine<'_>| {
            let start = end;
            end += line.text.len() + line.ending.len();
            start
        };
        Lines {
            text,
            starts: split_lines(text).map(start).collect(),
        }
    }

    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns `true` if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns a line by its number, from 1, without its end. Empty if it does not exist.
    pub fn get(&self, number: usize) -> &'a str {
        self.raw(number).trim_end_matches(['\n', '\r'])
    }

    /// Returns a line by its number, from 1, with its end. Empty if it does not exist.
    pub fn raw(&self, number: usize) -> &'a str {
        self.span(number..number + 1)
    }

    /// Returns several lines without their ends.
    pub fn texts(&self, numbers: RangeInclusive<usize>) -> Vec<&'a str> {
        numbers.map(|number| self.get(number)).collect()
    }

    /// Returns a range of lines by their numbers, from 1, with their ends.
    pub fn span(&self, lines: Range<usize>) -> &'a str {
        let start = |number: usize| match number {
            0 => 0,
            _ => self
                .starts
                .get(number - 1)
                .copied()
                .unwrap_or(self.text.len()),
        };
        let (from, to) = (start(lines.start), start(lines.end));
        &self.text[from.min(to)..to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the outline of a text: the kind and lines of each block.
    fn check(text: &str, expected: &[&str]) {
        let actual: Vec<String> = blocks(text).iter().map(describe).collect();
        assert_eq!(actual, expected, "for {text:?}");
    }

    fn describe(block: &MarkdownBlock) -> String {
        let lines = format!("{}-{}", block.first, block.last);
        match &block.node {
            BlockKind::Heading {
                level,
                setext,
                text,
            } => format!("h{level}{} {lines} {text}", if *setext { "=" } else { "" }),
            BlockKind::Code(code) => format!(
                "code {lines} {:?} {}{}",
                code.line_range,
                code.info,
                if code.is_closed { "" } else { " open" }
            ),
            BlockKind::List { items, .. } => {
                let inner: Vec<String> = items
                    .iter()
                    .map(|i| i.blocks.iter().map(describe).collect::<Vec<_>>().join(", "))
                    .collect();
                format!("list {lines} [{}]", inner.join("; "))
            }
            other => format!("{other:?} {lines}").to_lowercase(),
        }
    }

    #[test]
    fn blocks_have_the_lines_of_the_source() {
        check(
            "# T\n- a\n- b\n\n```sh\nx\n```\ntext\n",
            &[
                "h1 1-1 T",
                "list 2-3 [paragraph 2-2; paragraph 3-3]",
                "code 5-7 6..7 sh",
                "paragraph 8-8",
            ],
        );
    }

    #[test]
    fn every_kind_of_line_end_counts() {
        check(
            "# T\r\n\r\n```\r\nx\r\n```\r\n",
            &["h1 1-1 T", "code 3-5 4..5 "],
        );
        check("# T\r```\rx\r```\r", &["h1 1-1 T", "code 2-4 3..4 "]);
    }

    #[test]
    fn an_unclosed_block_reaches_to_the_end() {
        check("```\na\nb", &["code 1-3 2..4  open"]);
        check("```\na\nb\n", &["code 1-3 2..4  open"]);
        check("```", &["code 1-1 2..2  open"]);
    }

    #[test]
    fn a_block_in_a_list_keeps_its_column() {
        let blocks = blocks("- a\n\n    ```\n    x\n    ```\n");
        let BlockKind::List { items, .. } = &blocks[0].node else {
            panic!("a list")
        };
        let BlockKind::Code(code) = &items[0].blocks[1].node else {
            panic!("a code block")
        };
        assert_eq!((code.indent, code.line_range.clone()), (4, 4..5));
    }

    #[test]
    fn an_underlined_heading_is_marked() {
        check("hello\n---\n", &["h2= 1-2 hello"]);
        check("### `A` ###\n", &["h3 1-1 `A`"]);
    }

    #[test]
    fn a_byte_order_mark_is_no_text() {
        check("\u{feff}# T\n", &["h1 1-1 T"]);
    }

    #[test]
    fn depth_is_counted_and_bounded() {
        for marker in ["> ", "- "] {
            let document = read(&(marker.repeat(100_000) + "x"));
            assert!(
                document.depth > MAX_NESTING,
                "{} for {marker}",
                document.depth
            );
        }
    }

    #[test]
    fn escapes_and_entities_are_decoded() {
        for (line, expected) in [
            ("a\\_b &amp; &#46;&#x2e;/c", "a_b & ../c"),
            ("~x `y` __z__", "~x `y` __z__"),
            ("a\\b&c=1", "a\\b&c=1"),
        ] {
            assert_eq!(unescape(line), expected);
        }
    }
}

#[cfg(test)]
mod html_tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(render_html(text, 3).as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn what_somebody_wrote_does_nothing() {
        check(
            "<script>alert(1)</script>\n",
            "&lt;script&gt;alert(1)&lt;/script&gt;\n",
        );
        check(
            "a <b onclick=x>b</b>\n",
            "<p>a &lt;b onclick=x&gt;b&lt;/b&gt;</p>\n",
        );
        check("[a](javascript:alert(1))\n", "<p>a</p>\n");
        check("[a](data:text/html,x) [*b*](/b)\n", "<p>a <em>b</em></p>\n");
        check(
            "![*a* b](https://example.org/x.png)\n",
            "<p><em>a</em> b</p>\n",
        );
        check(
            "[a](https://example.org/?\"><x>)\n",
            "<p><a href=\"https://example.org/?%22%3E%3Cx%3E\">a</a></p>\n",
        );
        check(
            "```\"><script>\nx\n```\n",
            "<pre><code class=\"language-&quot;&gt;&lt;script&gt;\">x\n</code></pre>\n",
        );
    }

    #[test]
    fn what_somebody_meant_is_seen() {
        check(
            "# A\n\n- [x] b\n",
            "<h3>A</h3>\n<ul>\n<li><input type=\"checkbox\" checked=\"\" disabled=\"\" /> b</li>\n</ul>\n",
        );
        check("###### A\n", "<h6>A</h6>\n");
        check(
            "<https://example.org>\n",
            "<p><a href=\"https://example.org\">https://example.org</a></p>\n",
        );
    }

    #[test]
    fn what_nobody_means_is_left_alone() {
        assert_eq!(render_html(&">".repeat(5000), 3), None);
    }
}

#[cfg(test)]
mod lines_tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_every_line_end() {
        let lines = Lines::new("a\r\nb\rc\nd");
        assert_eq!(
            (1..=5).map(|n| lines.get(n)).collect::<Vec<_>>(),
            ["a", "b", "c", "d", ""]
        );
        assert_eq!(
            (lines.span(2..4), lines.len(), Lines::new("").len()),
            ("b\rc\n", 4, 0)
        );
    }
}
