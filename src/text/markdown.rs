//! The block structure of a Markdown text, by line.
//!
//! The only user of comrak, and only for structure: what a block says is cut from the source by
//! its line numbers, because comrak expands tabs, drops indentation and interprets what is inside.
//! Lists are entered, quotations are not. The result is never deeper than [`MAX_NESTING`], so that
//! walking and dropping it cannot overflow a stack, whatever the text.

mod build;
pub mod html;

use std::ops::Range;
use std::time::{Duration, Instant};

use comrak::{Arena, Options, try_parse_document};

use super::lines::Lines;
use build::BlockBuilder;

/// The deepest nesting of blocks that is represented; deeper ones are left out and counted.
pub const MAX_NESTING: usize = 64;
/// How long reading may take before it is given up.
const DEADLINE: Duration = Duration::from_secs(10);

/// A text's structure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Document {
    /// The blocks at the top level, in order.
    pub blocks: Vec<MarkdownBlock>,
    /// How deep blocks nest in the source, however deep that is.
    pub depth: usize,
    /// Whether reading took too long; there are no blocks then.
    pub abandoned: bool,
}

/// A block and its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownBlock {
    /// The first line, from 1.
    pub first: usize,
    /// The last line, from 1, inclusive.
    pub last: usize,
    /// What it is.
    pub node: BlockKind,
}

/// What a block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind {
    /// A heading.
    Heading {
        /// From 1.
        level: u8,
        /// Whether it is underlined instead of marked with `#`.
        setext: bool,
        /// The source between the marks.
        text: String,
    },
    /// A code block.
    Code(MarkdownCode),
    /// A list.
    List {
        /// Whether its items are numbered.
        ordered: bool,
        /// The items, in order.
        items: Vec<Item>,
    },
    /// Running text.
    Paragraph,
    /// A thematic break.
    Rule,
    /// Raw HTML.
    Html,
    /// A quotation.
    Quote,
    /// Anything else, and what is nested too deep.
    Other,
}

/// A code block, fenced or indented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkdownCode {
    /// The info string, entities and escapes decoded.
    pub info: String,
    /// The fence's character; `None` for an indented block.
    pub fence_char: Option<char>,
    /// The length of the opening fence.
    pub fence_len: usize,
    /// The column of the opening fence, from 0.
    pub indent: usize,
    /// Whether a closing fence ends it.
    pub closed: bool,
    /// The lines between the fences, from 1.
    pub content: Range<usize>,
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The line of its marker, from 1.
    pub first: usize,
    /// What it holds.
    pub blocks: Vec<MarkdownBlock>,
}

/// Returns the blocks at the top level of a text.
pub fn blocks(text: &str) -> Vec<MarkdownBlock> {
    read(text).blocks
}

/// Returns the structure of a text. A byte order mark at its start is no part of it.
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
            comrak::arena_tree::NodeEdge::End(node) => builder.leave(node),
        }
    }

    builder.finish()
}

/// Returns the lines of every fenced code block, fences included, in order; those in lists too.
pub fn fenced(blocks: &[MarkdownBlock]) -> Vec<(Range<usize>, &MarkdownCode)> {
    let mut found = Vec::new();
    let mut open: Vec<&MarkdownBlock> = blocks.iter().rev().collect();
    while let Some(block) = open.pop() {
        match &block.node {
            BlockKind::Code(code) if code.fence_char.is_some() => {
                found.push((block.first..block.last + 1, code))
            }
            BlockKind::List { items, .. } => {
                open.extend(items.iter().rev().flat_map(|item| item.blocks.iter().rev()))
            }
            _ => {}
        }
    }

    found
}

/// Returns one line of text as Markdown shows it: backslash escapes and entities decoded, nothing
/// else changed.
pub fn unescape(line: &str) -> String {
    if !line.contains(['\\', '&']) {
        return line.to_owned();
    }

    // An info string is the one place where escapes and entities count and emphasis does not.
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

/// Returns the text of an ATX heading's line: without its marks, closing marks and blanks around.
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

/// Returns how many columns a text takes, with a tab stop every four.
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

    /// Compares the outline of a text: one word and its lines for each block.
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = blocks(text).iter().map(describe).collect();
        assert_eq!(found, expected, "for {text:?}");
    }

    /// Says what a block is.
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
                code.content,
                code.info,
                if code.closed { "" } else { " open" }
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
        let found = blocks("- a\n\n    ```\n    x\n    ```\n");
        let BlockKind::List { items, .. } = &found[0].node else {
            panic!("a list")
        };
        let BlockKind::Code(code) = &items[0].blocks[1].node else {
            panic!("a code block")
        };
        assert_eq!((code.indent, code.content.clone()), (4, 4..5));
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
            let found = read(&(marker.repeat(100_000) + "x"));
            assert!(found.depth > MAX_NESTING, "{} for {marker}", found.depth);
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
