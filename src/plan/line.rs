//! What a line of a plan can be: a heading of a section or an action, a label, a field, a fence.
//!
//! The functions here know the spellings that the parser accepts; the modules below also know those
//! that models use. Parser, repair and respelling ask nothing else about a line, so that they agree
//! on it.

pub mod condition;
pub mod field_item;
pub mod key;
pub mod name;
pub mod prose;
pub mod value;

use crate::plan::action::{ActionRow, ROWS};
use crate::text::fence::{self, columns};
use crate::text::markdown::heading_text;

/// Longest key, in bytes.
const MAX_KEY: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    Rationale,
    Memos,
    /// `## Action Plan`
    Plan,
}

impl Section {
    pub const ALL: [Section; 3] = [Section::Rationale, Section::Memos, Section::Plan];

    /// Returns the heading's text as the format spells it.
    pub fn name(self) -> &'static str {
        match self {
            Section::Rationale => "Rationale",
            Section::Memos => "Memos",
            Section::Plan => "Action Plan",
        }
    }
}

/// Returns the section that a level 2 heading opens. Ignores case, numbering, emphasis and a colon.
pub fn section(text: &str) -> Option<Section> {
    let name = bare(text);
    let mut sections = Section::ALL.into_iter();
    sections.find(|section| section.name().eq_ignore_ascii_case(name))
}

/// Returns the action that a level 3 heading opens: the name in upper case, or in any case between
/// backticks. Ignores numbering, emphasis and a colon, and accepts a space for `_`.
pub fn action(text: &str) -> Option<&'static ActionRow> {
    let name = bare(text).replace([' ', '-'], "_");
    let quoted = unnumbered(text)
        .trim_start_matches(['*', '_'])
        .starts_with('`');
    let same = |candidate: &str| {
        if quoted {
            candidate.eq_ignore_ascii_case(&name)
        } else {
            candidate == name
        }
    };

    ROWS.iter()
        .find(|row| same(row.name) || row.aliases.iter().any(|a| same(a)))
        .copied()
}

/// Returns the label if a line or a heading of an EDIT is `FIND:` or `REPLACE:`.
pub fn label(line: &str) -> Option<Label> {
    let name = bare(line.trim_start_matches('#'));
    [("FIND", Label::Find), ("REPLACE", Label::Replace)]
        .into_iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(name))
        .map(|(_, l)| l)
}

/// Returns a line without its bullet and leading whitespace.
pub fn unlisted(line: &str) -> &str {
    let text = line.trim_start_matches([' ', '\t']);
    text.strip_prefix(['-', '*', '+'])
        .filter(|tail| tail.starts_with([' ', '\t']))
        .map_or(text, |tail| tail.trim_start_matches([' ', '\t']))
}

pub fn is_listed(line: &str) -> bool {
    unlisted(line).len() < line.len() - indent_of(line).len()
}

/// Returns the leading spaces and tabs of a line.
pub fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Label {
    Find,
    Replace,
}

/// Lists the action names that a model can use, for messages.
pub fn allowed() -> String {
    let rows = ROWS.iter().filter(|row| !row.is_ours());
    let names: Vec<String> = rows.map(|row| format!("`{}`", row.name)).collect();
    names.join(", ")
}

/// Removes numbering, emphasis, backticks, a colon and whitespace around a heading's text.
pub fn bare(text: &str) -> &str {
    unnumbered(text).trim_matches(['`', '*', '_', ':', ' ', '\t', '\u{a0}'])
}

fn unnumbered(text: &str) -> &str {
    let text = text.trim_matches([' ', '\t', '\u{a0}']);
    let tail = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = tail.len() < text.len() && tail.starts_with(['.', ')']);
    if numbered {
        tail[1..].trim_start_matches([' ', '\t', '\u{a0}'])
    } else {
        text
    }
}

/// Returns whether a reader would take a line for the heading of an action or a section: at any
/// indentation, and also without the space after the `#` marks.
pub fn looks_like_border(line: &str) -> bool {
    let (level, text) = marks(line);
    match level {
        2 => text[2..].starts_with([' ', '\t', '\u{a0}']) && section(heading_text(text)).is_some(),
        _ => looks_like_action(line),
    }
}

/// Like [`looks_like_border`], but for actions only.
pub fn looks_like_action(line: &str) -> bool {
    let (level, text) = marks(line);
    level == 3 && action(heading_text(text)).is_some()
}

/// Returns the number of `#` marks, and the line without surrounding whitespace.
fn marks(line: &str) -> (usize, &str) {
    let text = line.trim_matches([' ', '\t', '\u{a0}', '\r', '\n']);
    (text.len() - text.trim_start_matches('#').len(), text)
}

/// Returns level and text of a heading. A line that is entirely bold has level 0.
pub fn heading_of(line: &str) -> Option<(usize, &str)> {
    if indent_of(line).len() > 3 {
        return None;
    }

    let (level, text) = marks(line);
    if level > 0 {
        return (level <= 6).then(|| (level, heading_text(text).trim_matches('\u{a0}')));
    }

    let inner = text.trim_end_matches(':').strip_prefix("**")?;
    let inner = inner.strip_suffix("**")?.trim();
    (!inner.is_empty() && !inner.contains("**")).then_some((0, inner))
}

/// Splits an item's first line after its bullet. Returns the width of the first part in columns,
/// and the rest.
pub fn split_marker(line: &str) -> (usize, &str) {
    let text = line.trim_start_matches([' ', '\t']);
    let text = text
        .strip_prefix(['-', '*', '+'])
        .unwrap_or(text)
        .trim_start_matches([' ', '\t']);
    (columns(&line[..line.len() - text.len()]), text)
}

/// Splits an item's first line into key and value.
pub fn split_item(line: &str) -> Option<(&str, &str)> {
    split_key(unlisted(line)).filter(|_| is_listed(line))
}

/// Splits `**Key:** value` in any spelling: bold, italic, code or plain, colon inside or outside.
pub fn split_key(text: &str) -> Option<(&str, &str)> {
    const MARKS: [char; 3] = ['*', '_', '`'];

    let (key, value) = text.split_once(':')?;
    let key = key.trim_matches(MARKS).trim();
    let is_decorated = text.starts_with(MARKS);
    let is_key = !key.is_empty()
        && key.len() <= MAX_KEY
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || " _-/()`".contains(c));

    // `https://...` is a URL, not a key.
    if !is_key || value.starts_with("//") {
        return None;
    }

    let value = if is_decorated {
        value.trim_start_matches(['*', '_'])
    } else {
        value
    };
    Some((key, value.trim()))
}

pub fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
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
pub struct Fence {
    /// Backtick or tilde.
    pub mark: u8,
    /// Length, capped at 65,535.
    pub len: u16,
    /// Indentation in columns, capped at 255.
    pub indent: u8,
    pub info: Info,
}

impl Fence {
    /// Returns whether it closes a block that `opener` opened, as CommonMark closes it.
    pub fn closes(self, opener: Fence) -> bool {
        self.info == Info::Bare && self.is_long_enough(opener)
    }

    /// Returns whether it could close that block, but for the text behind it.
    pub fn is_long_enough(self, opener: Fence) -> bool {
        self.mark == opener.mark && self.len >= opener.len
    }

    /// Returns whether it is indented no further than CommonMark lets a closing fence be.
    pub fn is_aligned(self, opener: Fence) -> bool {
        self.indent <= opener.indent.saturating_add(3)
    }
}

/// Classification of an info string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Info {
    /// Empty: the fence can close a block.
    Bare,
    Document,
    Code,
    /// Not a language: more likely text after a closing fence.
    Odd,
}

pub fn classify_line(line: &str) -> LineKind {
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
pub fn is_document(word: &str) -> bool {
    let others = ["text", "txt", "rst", "plaintext", "plan"];
    is_markdown(word) || others.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Returns whether a language or file extension means Markdown.
pub fn is_markdown(word: &str) -> bool {
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
        2 if spaced => section(name).map(LineKind::Section),
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
    let quoted = || action(unnumbered.strip_prefix('`')?.split_once('`')?.0);
    action(text).or_else(quoted)
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

    fn check(text: &str, expected: &str) {
        let actual = action(text).map(|row| row.name).unwrap_or_default();
        assert_eq!(actual, expected, "for {text:?}");
    }

    #[test]
    fn p17_an_action_is_known_in_every_usual_spelling() {
        for text in [
            "`READ`",
            "READ",
            "**READ**",
            "`READ**",
            "1. READ",
            "2) `READ`",
            "**`READ`**",
            "READ:",
            "`read`",
            "\u{a0}`READ`",
        ] {
            check(text, "READ");
        }
        for text in [
            "CHAT WITH USER",
            "`CHAT_WITH_USER`",
            "CHAT-WITH-USER",
            "PROMPT",
        ] {
            check(text, "CHAT_WITH_USER");
        }
        check("`RETURN`", "CONCLUDE");
    }

    #[test]
    fn p17_words_are_no_action() {
        for text in ["Read", "Research", "READ the docs", "MESSAGE", "", "FIND:"] {
            check(text, "");
        }
    }

    #[test]
    fn sections_and_labels_are_known_by_name() {
        assert_eq!(section("2. Action plan:"), Some(Section::Plan));
        assert_eq!(section("**Rationale**"), Some(Section::Rationale));
        assert_eq!(section("Plan"), None);
        assert_eq!(label("#### `FIND:`"), Some(Label::Find));
        assert_eq!(label("**REPLACE:**"), Some(Label::Replace));
        assert_eq!(label("find the bug"), None);
    }

    fn check_kind(lines: &[&str], expected: LineKind) {
        for line in lines {
            assert_eq!(classify_line(line), expected, "{line:?}");
        }
    }

    #[test]
    fn actions_are_known_in_every_spelling() {
        check_kind(
            &[
                "### `READ`",
                "### READ",
                "### **READ**",
                "### `READ**",
                "### READ**",
                "### 1. READ",
                " ### `READ` ###",
            ],
            LineKind::Action(&crate::plan::action::read::ROW),
        );
        check_kind(
            &["### `CHAT WITH USER`", "### CHAT_WITH_USER", "### `PROMPT`"],
            LineKind::Action(&crate::plan::action::chat_with_user::ROW),
        );
        check_kind(
            &["### RETURN", "### `CONCLUDE`"],
            LineKind::Action(&crate::plan::action::conclude::ROW),
        );
        check_kind(
            &[
                "### `CREATE`: a.md",
                "### 1. `CREATE` a.md",
                "### CREATE:",
                "### `create`",
            ],
            LineKind::Action(&crate::plan::action::create::ROW),
        );
        check_kind(
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
        check_kind(&["    ### `READ`"], LineKind::List);
    }

    #[test]
    fn labels_are_known_in_every_spelling() {
        check_kind(
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
        check_kind(
            &["`REPLACE:`", "REPLACE:", "__REPLACE__:", "#### **REPLACE**"],
            LineKind::Label(Label::Replace),
        );
        check_kind(&["FIND", "about `FIND:`", "`FIND:` ```py"], LineKind::Text);
    }

    #[test]
    fn other_lines_are_told_apart() {
        check_kind(&["", " \t"], LineKind::Blank);
        check_kind(&["- a", "* **b**", "+", "1. x", "  more"], LineKind::List);
        check_kind(&["---", "* * *", "------"], LineKind::Rule);
        check_kind(&["# T"], LineKind::Title { spaced: true });
        check_kind(&["#T"], LineKind::Title { spaced: false });
        check_kind(
            &[
                "## Action Plan",
                "## action plan:",
                "## 3. Action Plan",
                "## **Action Plan**",
            ],
            LineKind::Section(Section::Plan),
        );
        check_kind(&["##Rationale", "## Other", "#", "text"], LineKind::Text);
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
