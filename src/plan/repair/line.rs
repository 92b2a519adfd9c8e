//! Classifies a single line of a reply for the plan grammar.
//!
//! The pass decides whether the line has that role or is content.

use super::Spelling;
use crate::plan::action::ActionRow;
use crate::plan::action::heading::{self, Label, Section};
use crate::plan::spelling::{self, name};
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

pub(super) fn read_lines(text: &str, spelling: Spelling) -> Vec<ReplyLine<'_>> {
    let read = |l: fence::TextLine<'_>| classify_line(l.text);
    let line = |l| (l, read(l));
    let mut lines = Vec::with_capacity(text.len() / 32 + 1);
    lines.extend(
        fence::split_lines(text)
            .map(line)
            .map(|(l, kind)| ReplyLine {
                text: l.text,
                ending: l.ending,
                kind,
            }),
    );
    classify_labels(&mut lines);
    if spelling == Spelling::Free {
        classify_any_spelling(&mut lines);
    }

    // Structure inside the model's thoughts is not part of the plan.
    let thoughts = thought_lines(&lines);
    lines[..thoughts]
        .iter_mut()
        .for_each(|line| line.kind = LineKind::Text);
    lines
}

/// Classifies a line as a label if only the fence below shows that it is one: `Find`, `- FIND:`.
/// Without a fence it is ordinary text.
fn classify_labels(lines: &mut [ReplyLine<'_>]) {
    for fence in 1..lines.len() {
        if !matches!(lines[fence].kind, LineKind::Fence(_)) {
            continue;
        }

        let above = lines[..fence]
            .iter_mut()
            .rev()
            .find(|line| line.kind != LineKind::Blank);
        let Some(line) = above.filter(|line| matches!(line.kind, LineKind::Text | LineKind::List))
        else {
            continue;
        };

        let (indent, text) = fence::split_indent(line.text);
        // At deeper indentation it is code or a nested item.
        if let Some(label) = heading::label(heading::unlisted(text)).filter(|_| indent < 4) {
            line.kind = LineKind::Label(label);
        }
    }
}

/// Returns the number of leading lines that contain the model's thoughts, in `<think>` tags.
pub(super) fn thought_lines(lines: &[ReplyLine<'_>]) -> usize {
    let Some(first) = lines.iter().find(|line| !line.text.trim().is_empty()) else {
        return 0;
    };
    let close = match first.text.trim_start() {
        text if text.starts_with("<think>") => "</think>",
        text if text.starts_with("<thinking>") => "</thinking>",
        _ => return 0,
    };
    lines
        .iter()
        .position(|line| line.text.contains(close))
        .map_or(0, |last| last + 1)
}

// Classifies lines in any spelling: headings, labels and fields as models write them, and
// sentences between blocks.

/// Classifies lines again, in any spelling.
pub(super) fn classify_any_spelling(lines: &mut [ReplyLine<'_>]) {
    let inside = lines_in_fences(lines);
    let sections: Vec<Section> = (0..lines.len())
        .filter(|&at| !inside[at])
        .filter_map(|at| section_of(lines[at].kind))
        .collect();
    let (mut next_text, mut changes) = ("", Vec::new());

    for at in (0..lines.len()).rev() {
        let line = lines[at];
        if matches!(
            line.kind,
            LineKind::Text | LineKind::List | LineKind::Title { .. }
        ) {
            changes.extend(respelled_kind(line.text, next_text, &sections).map(|kind| (at, kind)));
        }

        if line.kind != LineKind::Blank {
            next_text = line.text;
        }
    }

    // The first heading of level 1 is the title, whatever its text.
    let title = lines
        .iter()
        .position(|line| matches!(line.kind, LineKind::Title { .. }));
    changes
        .into_iter()
        .filter(|(at, _)| Some(*at) != title)
        .for_each(|(at, kind)| lines[at].kind = kind);
    infer_sections(lines, &inside);

    classify_text(lines);
}

/// Returns which lines are inside a fence, assuming that all fences are correct.
fn lines_in_fences(lines: &[ReplyLine<'_>]) -> Vec<bool> {
    let mut open = None::<Fence>;
    let is_inside = |line: &ReplyLine<'_>| {
        match (line.kind, open) {
            (LineKind::Fence(fence), None) => open = Some(fence),
            (LineKind::Fence(fence), Some(outer)) if closes(fence, outer) => open = None,
            _ => {}
        }
        open.is_some()
    };
    lines.iter().map(is_inside).collect()
}

fn closes(fence: Fence, outer: Fence) -> bool {
    fence.info == Info::Bare && fence.mark == outer.mark && fence.len >= outer.len
}

/// Returns the kind of a line in another spelling. `known` lists the sections that already have an
/// exact heading.
fn respelled_kind(line: &str, next_text: &str, sections: &[Section]) -> Option<LineKind> {
    let label = || name::label(line, next_text).map(LineKind::Label);
    let action = || name::action(line, next_text).map(|heading| LineKind::Action(heading.row));
    let section = || {
        let (found, level) = name::section(line)?;
        (level == 2 || !sections.contains(&found)).then_some(LineKind::Section(found))
    };
    action().or_else(section).or_else(label)
}

/// Treats unknown headings as the sections that belong in their place: the last one above the
/// actions as the action plan, the first one as the rationale.
fn infer_sections(lines: &mut [ReplyLine<'_>], inside: &[bool]) {
    let (mut unknown, mut known_sections) = (Vec::new(), Vec::new());
    for (at, line) in lines.iter().enumerate().filter(|(at, _)| !inside[*at]) {
        match line.kind {
            LineKind::Action(_) => break,
            LineKind::Section(section) => known_sections.push(section),
            LineKind::Text if line.text.starts_with("## ") => unknown.push(at),
            _ => {}
        }
    }

    if !known_sections.contains(&Section::Plan)
        && let Some(at) = unknown.pop()
    {
        lines[at].kind = LineKind::Section(Section::Plan);
    }
    if !known_sections.contains(&Section::Rationale)
        && let Some(&at) = unknown.first()
    {
        lines[at].kind = LineKind::Section(Section::Rationale);
    }
}

/// Classifies fields without bullets as items, and finds sentences.
fn classify_text(lines: &mut [ReplyLine<'_>]) {
    let mut row = None;
    for line in lines {
        match line.kind {
            LineKind::Action(action_row) => row = Some(action_row),
            LineKind::Section(_) | LineKind::Title { .. } => row = None,
            LineKind::Text if spelling::is_field(line.text, row) => line.kind = LineKind::List,
            LineKind::Text if spelling::is_prose(line.text) => line.kind = LineKind::Sentence,
            _ => {}
        }
    }
}

fn section_of(kind: LineKind) -> Option<Section> {
    match kind {
        LineKind::Section(section) => Some(section),
        _ => None,
    }
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
