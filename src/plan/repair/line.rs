//! Classifies a single line of a reply for the plan grammar.
//!
//! The pass decides whether the line has that role or is content.

use crate::plan::action::ActionRow;
use crate::plan::action::heading::{self, Label, Section};
use crate::text::fence;

#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyLine<'a> {
    /// The line without its ending.
    pub text: &'a str,
    pub ending: &'a str,
    pub kind: LineKind,
}

/// Classification of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    Blank,
    /// A fence at any indentation.
    Fence(Fence),
    /// A level 3 heading with the name of an action.
    Action(&'static ActionRow),
    /// A level 2 heading with the name of a section.
    Section(Section),
    /// `FIND:` or `REPLACE:`.
    Label(Label),
    /// A level 1 heading, or `#Title`.
    Title {
        /// Whether a space follows the `#`.
        spaced: bool,
    },
    /// A list item or an indented line.
    List,
    /// A thematic break.
    Rule,
    /// A sentence; only in free spelling.
    Sentence,
    Text,
}

/// A fence, reduced to what the grammar needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fence {
    /// Backtick or tilde.
    pub mark: u8,
    /// Length, capped at 65,535.
    pub len: u16,
    /// Indentation in columns, capped at 255.
    pub indent: u8,
    pub info: Info,
}

/// Classification of an info string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Info {
    /// Empty: the fence can close a block.
    Bare,
    /// The language of a document.
    Document,
    /// The language of code.
    Code,
    /// Not a language: more likely text after a closing fence.
    Odd,
}

pub(super) fn classify_line(line: &str) -> LineKind {
    let (indent, body) = fence::split_indent(line);
    let Some(&first) = body.as_bytes().first() else {
        return LineKind::Blank;
    };
    if matches!(first, b'`' | b'~')
        && let Some(fence) = fence::read(line)
    {
        return LineKind::Fence(reduce_fence(&fence));
    }

    if indent >= 4 {
        return LineKind::List;
    }

    match first {
        b'#' => heading_kind(body, indent)
            .or_else(|| label_kind(body))
            .unwrap_or(LineKind::Text),
        b'`' | b'F' | b'R' | b'_' => label_kind(body).unwrap_or(LineKind::Text),
        b'*' | b'-' if is_rule(body) => LineKind::Rule,
        b'*' | b'-' | b'+' => item_kind(body)
            .or_else(|| label_kind(body))
            .unwrap_or(LineKind::Text),
        b'0'..=b'9' => numbered_kind(body),
        _ if indent > 0 => LineKind::List,
        _ => LineKind::Text,
    }
}

fn reduce_fence(fence: &fence::FenceLine<'_>) -> Fence {
    let len = u16::try_from(fence.len).unwrap_or(u16::MAX);
    let indent = u8::try_from(fence.indent).unwrap_or(u8::MAX);
    Fence {
        mark: fence.mark,
        len,
        indent,
        info: classify_info(fence.info),
    }
}

fn classify_info(text: &str) -> Info {
    let word = text.split([' ', '\t', ',']).next().unwrap_or_default();
    let Some(first) = word.chars().next() else {
        return Info::Bare;
    };
    if is_document(word) {
        Info::Document
    } else if first.is_alphanumeric() || matches!(first, '{' | '.' | '_') {
        Info::Code
    } else {
        Info::Odd
    }
}

/// Returns whether a language or file extension means prose.
pub(super) fn is_document(word: &str) -> bool {
    let others = ["text", "txt", "rst", "plaintext", "plan"];
    is_markdown(word) || others.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Returns whether a language or file extension means Markdown.
pub(super) fn is_markdown(word: &str) -> bool {
    let names = [
        "md", "markdown", "mdx", "mdc", "mkd", "mdown", "qmd", "rmd", "livemd",
    ];
    names.iter().any(|name| word.eq_ignore_ascii_case(name))
}

fn heading_kind(body: &str, indent: usize) -> Option<LineKind> {
    let level = body.bytes().take_while(|&b| b == b'#').count();
    let tail = &body[level..];
    let spaced = tail.starts_with([' ', '\t']);
    let name = tail.trim().trim_end_matches('#').trim_end();
    match level {
        1 if !tail.is_empty() && indent == 0 => Some(LineKind::Title { spaced }),
        2 if spaced => heading::section(name).map(LineKind::Section),
        3 if spaced => parse_action_name(name).map(LineKind::Action),
        _ => None,
    }
}

/// Parses the name of an action like the parser. A name in backticks ends a block even if more text
/// follows, which the parser then reports.
fn parse_action_name(text: &str) -> Option<&'static ActionRow> {
    let unnumbered = text
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim_start_matches(['.', ')', ' ']);
    let quoted = || heading::action(unnumbered.strip_prefix('`')?.split_once('`')?.0);
    heading::action(text).or_else(quoted)
}

/// Parses a label of EDIT: a heading, in backticks, bold, or plain with a colon.
fn label_kind(body: &str) -> Option<LineKind> {
    if body.len() > 32 {
        return None;
    }

    let bare: String = body
        .chars()
        .filter(|c| !matches!(c, '`' | '*' | '_' | '#' | ' ' | '\t'))
        .collect();
    let name = bare
        .strip_suffix(':')
        .or_else(|| body.starts_with(['`', '*', '#']).then_some(&*bare))?;
    match name {
        "FIND" => Some(LineKind::Label(Label::Find)),
        "REPLACE" => Some(LineKind::Label(Label::Replace)),
        _ => None,
    }
}

fn item_kind(body: &str) -> Option<LineKind> {
    matches!(body.as_bytes().get(1), None | Some(b' ' | b'\t')).then_some(LineKind::List)
}

fn numbered_kind(body: &str) -> LineKind {
    let tail = body.trim_start_matches(|c: char| c.is_ascii_digit());
    if tail.starts_with(". ") || tail.starts_with(") ") {
        LineKind::List
    } else {
        LineKind::Text
    }
}

fn is_rule(body: &str) -> bool {
    let mark = body.as_bytes()[0];
    let marks = body.bytes().filter(|&b| b == mark).count();
    marks >= 3 && body.bytes().all(|b| b == mark || b == b' ' || b == b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::action;

    fn check(lines: &[&str], expected: LineKind) {
        for line in lines {
            assert_eq!(classify_line(line), expected, "{line:?}");
        }
    }

    #[test]
    fn actions_are_known_in_every_spelling() {
        check(
            &[
                "### `READ`",
                "### READ",
                "### **READ**",
                "### `READ**",
                "### READ**",
                "### 1. READ",
                " ### `READ` ###",
            ],
            LineKind::Action(&action::read::ROW),
        );
        check(
            &["### `CHAT WITH USER`", "### CHAT_WITH_USER", "### `PROMPT`"],
            LineKind::Action(&action::chat_with_user::ROW),
        );
        check(
            &["### RETURN", "### `CONCLUDE`"],
            LineKind::Action(&action::conclude::ROW),
        );
        check(
            &[
                "### `CREATE`: a.md",
                "### 1. `CREATE` a.md",
                "### CREATE:",
                "### `create`",
            ],
            LineKind::Action(&action::create::ROW),
        );
        check(
            &[
                "###`READ`",
                "### Read",
                "#### `READ`",
                "### READ me",
                "### 1. Synthesis",
                "### 1. Use `READ`",
                "## READ",
            ],
            LineKind::Text,
        );
        check(&["    ### `READ`"], LineKind::List);
    }

    #[test]
    fn labels_are_known_in_every_spelling() {
        check(
            &[
                "`FIND:`",
                "FIND:",
                "**FIND:**",
                "#### `FIND:`",
                "#### FIND:",
                "`FIND`:",
                "### FIND",
            ],
            LineKind::Label(Label::Find),
        );
        check(
            &["`REPLACE:`", "REPLACE:", "__REPLACE__:", "#### **REPLACE**"],
            LineKind::Label(Label::Replace),
        );
        check(&["FIND", "about `FIND:`", "`FIND:` ```py"], LineKind::Text);
    }

    #[test]
    fn other_lines_are_told_apart() {
        check(&["", " \t"], LineKind::Blank);
        check(&["- a", "* **b**", "+", "1. x", "  more"], LineKind::List);
        check(&["---", "* * *", "------"], LineKind::Rule);
        check(&["# T"], LineKind::Title { spaced: true });
        check(&["#T"], LineKind::Title { spaced: false });
        check(
            &[
                "## Action Plan",
                "## action plan:",
                "## 3. Action Plan",
                "## **Action Plan**",
            ],
            LineKind::Section(Section::Plan),
        );
        check(&["##Rationale", "## Other", "#", "text"], LineKind::Text);
    }

    #[test]
    fn an_info_string_that_is_no_language_is_odd() {
        let info = |line| match classify_line(line) {
            LineKind::Fence(fence) => fence.info,
            other => panic!("{other:?}"),
        };
        assert_eq!(info("```"), Info::Bare);
        assert_eq!(info("~~~markdown x"), Info::Document);
        assert_eq!(info("```rust,no_run"), Info::Code);
        assert_eq!(
            [
                info("``` # done"),
                info("````(end)"),
                info("``` <!-- x -->")
            ],
            [Info::Odd; 3]
        );
    }
}
