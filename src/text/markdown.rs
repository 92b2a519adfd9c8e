//! Parses the block structure of a Markdown text, with line numbers.
//!
//! This is the only user of comrak, and only for structure. Contents are cut from the source by
//! line numbers, because comrak expands tabs, drops indentation and interprets inline markup. List
//! items are parsed into blocks, quotations are not.
//!
//! The result is never deeper than [`MAX_NESTING`], so walking or dropping it cannot overflow the
//! stack.

mod build;
pub mod html;

use std::ops::Range;
use std::time::{Duration, Instant};

use comrak::{Arena, Options, try_parse_document};

use super::lines::Lines;
use build::BlockBuilder;

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
    /// Its kind and content.
    pub node: BlockKind,
}

/// Kind of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind {
    /// A heading.
    Heading {
        /// Level, from 1.
        level: u8,
        /// `true` if it is underlined rather than marked with `#`.
        setext: bool,
        /// The source between the marks.
        text: String,
    },
    /// A code block.
    Code(MarkdownCode),
    /// A list.
    List {
        /// `true` for a numbered list.
        ordered: bool,
        /// The items, in order.
        items: Vec<Item>,
    },
    /// A paragraph.
    Paragraph,
    /// A thematic break.
    Rule,
    /// Raw HTML.
    Html,
    /// A quotation.
    Quote,
    /// Another kind, or a block that is nested too deep.
    Other,
}

/// A code block, fenced or indented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownCode {
    /// The info string, decoded.
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

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Line of its marker, from 1.
    pub first: usize,
    /// Its blocks.
    pub blocks: Vec<MarkdownBlock>,
}

/// Returns the top-level blocks of a text.
pub fn blocks(text: &str) -> Vec<MarkdownBlock> {
    read(text).blocks
}

/// Parses a text. Ignores a byte order mark.
pub fn read(text: &str) -> Document {
    let arena = Arena::new();
    let options = Options::default();
    let started = Instant::now();
    let too_late = || started.elapsed() > DEADLINE;
    let Ok(root) = try_parse_document(&arena, text, &options, &too_late) else {
        return Document {
            abandoned: true,
            ..Document::default()
        };
    };

    let lines = Lines::new(text);
    let mut builder = BlockBuilder::new(&lines);
    for edge in root.traverse() {
        match edge {
            comrak::arena_tree::NodeEdge::Start(node) => builder.enter(node),
            comrak::arena_tree::NodeEdge::End(node) => builder.exit(node),
        }
    }

    builder.finish()
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

/// Returns the width of a text in columns, with tab stops at multiples of 4.
pub fn columns(text: &str) -> usize {
    text.chars().fold(0, |column, c| {
        if c == '\t' {
            column / 4 * 4 + 4
        } else {
            column + 1
        }
    })
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
