//! What stands below an action's heading, cut into fields, labels, code blocks and what should not be there.
//!
//! The readers of the nine actions take from it what they need and leave a diagnostic for each
//! mistake; none of them looks at Markdown again.

use std::collections::BTreeSet;
use std::ops::Range;

use super::heading::{self, Label};
use super::{Row, field};
use crate::plan::Field;
use crate::plan::diagnostic::{Diagnostic, quote};
use crate::text::link;
use crate::text::markdown::{Block, Code, Item, Lines, Node};
use crate::text::path::{PathError, RepoPath};
use crate::text::resource::Resource;

/// An action that is being read.
#[derive(Debug)]
pub struct Body<'a> {
    /// The plan's lines.
    lines: &'a Lines<'a>,
    /// The action's row of the table.
    row: &'static Row,
    /// The line of the heading.
    pub line: usize,
    /// The list below the heading.
    pub fields: Vec<Field>,
    /// What follows, in order.
    pub parts: Vec<Part>,
    /// The lines of a message, for actions that have one.
    message: Range<usize>,
    /// Whether a label came; what looks like a field behind it is none.
    labelled: bool,
    /// The mistakes so far.
    pub found: Vec<Diagnostic>,
}

/// A piece of an action below its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// `FIND:` or `REPLACE:`.
    Label {
        /// Its line.
        line: usize,
        /// Which.
        label: Label,
    },
    /// A fenced code block.
    Code {
        /// The line of its opening fence.
        line: usize,
        /// What is between the fences.
        content: String,
        /// The first word of the info string.
        language: String,
    },
    /// Something that an action has no place for.
    Stray {
        /// Its first line.
        line: usize,
        /// What it is, with its first words.
        what: String,
    },
}

impl<'a> Body<'a> {
    /// Cuts the blocks below a heading. `end` is the line behind the action's last.
    pub fn new(lines: &'a Lines<'a>, row: &'static Row, (line, end): (usize, usize), blocks: &[Block]) -> Body<'a> {
        let mut body =
            Body { lines, row, line, fields: Vec::new(), parts: Vec::new(), message: line + 1..end, labelled: false, found: Vec::new() };
        if row.message {
            body.cut_message(blocks);
        } else {
            for block in blocks {
                body.cut(block);
            }
        }
        body.check_fields();
        body
    }

    /// Takes the leading fields of an action with a message; the message starts behind them.
    fn cut_message(&mut self, blocks: &[Block]) {
        for block in blocks {
            let Node::List { ordered: false, items } = &block.node else { return };
            for item in items {
                let known = field::read(self.lines, item, field::Own::Indented)
                    .filter(|entry| self.row.keys.contains(&entry.field.key.as_str()) || field::is_unsupported(&entry.field.key));
                let Some(entry) = known else {
                    self.message.start = item.first;
                    return;
                };
                self.fields.push(entry.field);
                let more = item.blocks.iter().skip(1).find(|b| !matches!(b.node, Node::List { .. })).map(|b| b.first);
                if let Some(start) = entry.rest.or(more) {
                    self.message.start = start;
                    return;
                }
            }
            self.message.start = block.last + 1;
        }
    }

    /// Takes a block of an action without a message.
    fn cut(&mut self, block: &Block) {
        match &block.node {
            Node::List { ordered: false, items } => items.iter().for_each(|item| self.cut_item(item)),
            Node::Code(code) if code.fence_char.is_some() => self.cut_code(block.first, code, Place::Top),
            Node::Paragraph => self.cut_text(block.first, block.last),
            Node::Heading { text, setext: false, level: 4.. } if self.row.labels && heading::label(text).is_some() => {
                self.cut_text(block.first, block.first);
            }
            Node::Rule => {}
            other => self.stray(block.first, kind(other)),
        }
    }

    /// Takes an item: a field, or a label that is written as one.
    fn cut_item(&mut self, item: &Item) {
        let entry = field::read(self.lines, item, field::Own::All);
        let label = self.row.labels.then(|| entry.as_ref().and_then(|e| heading::label(&e.field.key))).flatten();
        match (entry, label) {
            (Some(entry), Some(label)) if entry.field.value.is_empty() => self.label_at(item.first, label),
            (Some(entry), None) if !self.labelled => {
                let rest = entry.rest;
                self.fields.push(entry.field);
                if let (Some(rest), Some(last)) = (rest, item.blocks.first().map(|b| b.last)) {
                    self.cut_text(rest, last);
                }
            }
            _ => return self.stray(item.first, "list item"),
        }
        for block in item.blocks.iter().skip(1) {
            self.cut_nested(block);
        }
    }

    /// Takes what stands inside of an item, below its text.
    fn cut_nested(&mut self, block: &Block) {
        match &block.node {
            Node::Code(code) if code.fence_char.is_some() => self.cut_code(block.first, code, Place::Item),
            Node::List { items, .. } => {
                for inner in items.iter().flat_map(|item| item.blocks.iter().skip(1)) {
                    if let Node::Code(code) = &inner.node {
                        self.cut_code(inner.first, code, Place::Item);
                    }
                }
            }
            Node::Paragraph => self.cut_text(block.first, block.last),
            other => self.stray(block.first, kind(other)),
        }
    }

    /// Takes lines of text: labels, or words that should not be there.
    fn cut_text(&mut self, first: usize, last: usize) {
        let mut said = false;
        for line in first..=last {
            let text = self.lines.get(line).trim();
            match heading::label(text).filter(|_| self.row.labels) {
                Some(label) => {
                    self.label_at(line, label);
                    said = false;
                }
                None if said => {}
                None => {
                    let kind = if field::is_fence(text) { "line that is no fence to Markdown" } else { "text" };
                    self.stray(line, kind);
                    said = true;
                }
            }
        }
    }

    /// Takes a label.
    fn label_at(&mut self, line: usize, label: Label) {
        self.labelled = true;
        self.parts.push(Part::Label { line, label });
    }

    /// Takes a fenced code block.
    fn cut_code(&mut self, line: usize, code: &Code, place: Place) {
        let content = content(self.lines, code);
        if place == Place::Item && content.is_none() && code.indent > 0 {
            let message = "the lines of this code block are not all indented as far as its fence";
            self.found.push(Diagnostic::new(line, message).hint("put the fences and the content at the start of the line"));
        }
        let content = content.unwrap_or_else(|| self.lines.span(code.content.clone()).to_owned());
        let language = code.info.split_whitespace().next().unwrap_or_default().to_owned();
        self.parts.push(Part::Code { line, content, language });
    }

    /// Notes something that should not be there.
    fn stray(&mut self, line: usize, kind: &str) {
        let what = format!("{kind} \"{}\"", quote(self.lines.get(line)));
        self.parts.push(Part::Stray { line, what });
    }

    /// Says which fields have no meaning here, and which stand there twice.
    fn check_fields(&mut self) {
        let name = self.row.name;
        let mut seen = BTreeSet::new();
        for found in &self.fields {
            let key = found.key.as_str();
            if !field::has_weight(key) {
                continue;
            }
            if field::is_unsupported(key) || !self.row.keys.contains(&key) {
                let keys: Vec<String> = self.row.keys.iter().map(|k| format!("`{k}`")).collect();
                let message = format!("`{key}` has no meaning in {name}");
                self.found.push(Diagnostic::new(found.line, message).hint(format!("leave it out; {name} knows {}", keys.join(", "))));
            } else if !seen.insert(key) {
                self.found.push(Diagnostic::new(found.line, format!("`{key}` stands here for the second time")).hint("keep one of them"));
            }
        }
    }

    /// Returns a field by the format's key.
    pub fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.key == key)
    }

    /// Notes a mistake.
    pub fn wrong(&mut self, line: usize, message: impl Into<String>, hint: impl Into<String>) {
        self.found.push(Diagnostic::new(line, message).hint(hint));
    }

    /// Reads the one path of `File Path`.
    pub fn path(&mut self) -> Option<RepoPath> {
        let Some(field) = self.field("File Path").cloned() else {
            self.wrong(self.line, format!("{} has no `File Path`", self.row.name), "add `- **File Path:** [src/a.rs](/src/a.rs)`");
            return None;
        };
        self.name(&field, RepoPath::parse)
    }

    /// Reads the one resource of `Resource`, or of `File Path`.
    pub fn resource(&mut self) -> Option<Resource> {
        let fields: Vec<Field> = self.fields.iter().filter(|f| f.key == "Resource" || f.key == "File Path").cloned().collect();
        let Some(first) = fields.first() else {
            self.wrong(self.line, format!("{} has no `Resource`", self.row.name), "add `- **Resource:** [src/a.rs](/src/a.rs)`");
            return None;
        };
        if let Some(second) = fields.get(1).filter(|f| f.key != first.key) {
            self.wrong(second.line, "`Resource` and `File Path` mean the same here", "keep one of them");
        }
        self.name(first, resource)
    }

    /// Reads `Handoff Resources`: a nested list, or names on its line.
    pub fn resources(&mut self) -> Vec<Resource> {
        let Some(field) = self.field("Handoff Resources").cloned() else { return Vec::new() };
        let inline = without_optional(&field.value);
        let inline = if matches!(inline.to_lowercase().as_str(), "none" | "n/a" | "-") { "" } else { inline };
        let mut values = Vec::new();
        for value in std::iter::once(inline).chain(field.items.iter().map(String::as_str)) {
            match link::read_all(value) {
                Ok(names) => values.extend(names),
                Err(error) => self.bad_name(field.line, value, &error.to_string()),
            }
        }
        values.iter().filter_map(|name| resource(name).map_err(|e| self.bad_name(field.line, name, &e.to_string())).ok()).collect()
    }

    /// Reads a field that names one thing.
    pub fn name<T>(&mut self, field: &Field, parse: fn(&str) -> Result<T, PathError>) -> Option<T> {
        let name = link::read(&field.value).map_err(|e| e.to_string());
        let parsed = name.and_then(|name| parse(&name).map_err(|e| e.to_string()));
        let parsed = parsed.map_err(|message| self.bad_name(field.line, &field.value, &message)).ok();
        if let Some(item) = field.items.first() {
            self.wrong(field.line, format!("`{}` names more than one thing: \"{}\"", field.key, quote(item)), "write one action for each");
            return None;
        }
        parsed
    }

    /// Notes a name that is none.
    fn bad_name(&mut self, line: usize, value: &str, message: &str) {
        let hint = "write `[path/from/root](/path/from/root)`, text and destination alike, inside the project";
        self.wrong(line, format!("{message}: \"{}\"", quote(value)), hint);
    }

    /// Reads a field that says yes or no.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        let field = self.field(key)?.clone();
        match field.value.trim_matches(['`', '*', '"', '.']).to_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => {
                self.wrong(
                    field.line,
                    format!("`{key}` is neither true nor false: \"{}\"", quote(&field.value)),
                    "write `true` or `false`",
                );
                None
            }
        }
    }

    /// Reads the one code block of CREATE and EXECUTE: its content and its language.
    pub fn one_block(&mut self) -> Option<(String, String)> {
        let name = self.row.name;
        let mut blocks = self.blocks().into_iter();
        let Some((_, content, language)) = blocks.next() else {
            self.wrong(self.line, format!("{name} has no code block"), "add exactly one fenced code block below the list");
            return None;
        };
        for (line, ..) in blocks {
            let hint = "put all of the content into one block whose fence is longer than any run of backticks inside";
            self.wrong(line, format!("{name} has more than one code block"), hint);
        }
        Some((content, language))
    }

    /// Takes all code blocks, and says what else should not be there.
    pub fn blocks(&mut self) -> Vec<(usize, String, String)> {
        let mut blocks = Vec::new();
        for part in std::mem::take(&mut self.parts) {
            match part {
                Part::Code { line, content, language } => blocks.push((line, content, language)),
                other => self.misplaced(&other),
            }
        }
        blocks
    }

    /// Says that an action with no code blocks has some, and what else should not be there.
    pub fn nothing_below(&mut self) {
        let name = self.row.name;
        for (line, ..) in self.blocks() {
            self.wrong(line, format!("{name} has a code block"), format!("{name} takes a list alone"));
        }
    }

    /// Says that a part has no place.
    pub fn misplaced(&mut self, part: &Part) {
        let name = self.row.name;
        match part {
            Part::Stray { line, what } => {
                self.wrong(*line, format!("unexpected {what}"), format!("{name} has {}; leave everything else out", self.row.shape));
            }
            Part::Label { line, .. } => self.wrong(*line, format!("{name} has no FIND or REPLACE"), "use EDIT to change a file"),
            Part::Code { line, .. } => {
                self.wrong(*line, "this code block has no label above it", "put `FIND:` or `REPLACE:` on the line above the block");
            }
        }
    }

    /// Returns the message: its lines without blank ones and rules at its ends.
    pub fn message(&mut self) -> Option<String> {
        let blank = |n: usize| self.lines.get(n).trim().is_empty();
        let mut range = self.message.clone();
        while range.start < range.end && blank(range.start) {
            range.start += 1;
        }
        while range.start < range.end && (blank(range.end - 1) || self.ends_with_rule(&range)) {
            range.end -= 1;
        }
        let text = self.lines.span(range).trim_end_matches(['\n', '\r']);
        if text.is_empty() {
            self.wrong(self.line, format!("{} has no message", self.row.name), "write the message below the heading and the list");
            return None;
        }
        Some(text.to_owned())
    }

    /// Returns whether the last line separates this action from the next: a rule with a blank line above.
    fn ends_with_rule(&self, range: &Range<usize>) -> bool {
        let line = self.lines.get(range.end - 1).trim();
        let above = range.end - 2 < range.start || self.lines.get(range.end - 2).trim().is_empty();
        above && line.len() >= 3 && (line.chars().all(|c| c == '-') || line.chars().all(|c| c == '*') || line.chars().all(|c| c == '_'))
    }

    /// Returns what to call the action where it could not be read: its name and the raw value that names its target.
    pub fn label(&self) -> String {
        let target = self.field("File Path").or_else(|| self.field("Resource")).map(|f| quote(&f.value)).unwrap_or_default();
        format!("{} {target}", self.row.name).trim_end().to_owned()
    }
}

/// Where a code block stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the top level.
    Top,
    /// In an item of a list.
    Item,
}

/// Cuts a block's content; without the fence's indentation if every line that is not blank has it,
/// `None` if only some have.
pub fn content(lines: &Lines<'_>, code: &Code) -> Option<String> {
    let whole = lines.span(code.content.clone());
    if code.indent == 0 {
        return Some(whole.to_owned());
    }
    let mut text = String::with_capacity(whole.len());
    for number in code.content.clone() {
        text.push_str(dedented(lines.raw(number), code.indent)?);
    }
    Some(text)
}

/// Removes columns of blanks from a line; as many as there are from a blank one.
fn dedented(line: &str, indent: usize) -> Option<&str> {
    let mut column = 0;
    for (at, c) in line.char_indices() {
        match c {
            _ if column == indent => return Some(&line[at..]),
            ' ' => column += 1,
            '\t' => column = column / 4 * 4 + 4,
            '\n' | '\r' => return Some(&line[at..]),
            _ => return None,
        }
        if column > indent {
            return None;
        }
    }
    Some("")
}

/// Reads a name as a resource of a plan: unlike a context list, it has no leading `/`.
fn resource(name: &str) -> Result<Resource, PathError> {
    if name.starts_with('/') { Err(PathError::Absolute) } else { Resource::parse(name) }
}

/// Removes the word that the format's own examples put before optional values.
pub fn without_optional(value: &str) -> &str {
    value.strip_prefix("(Optional)").or_else(|| value.strip_prefix("(optional)")).unwrap_or(value).trim()
}

/// Says what a block is.
fn kind(node: &Node) -> &'static str {
    match node {
        Node::Heading { .. } => "heading",
        Node::Code(_) => "indented code",
        Node::List { .. } => "numbered list",
        Node::Paragraph => "text",
        Node::Rule => "rule",
        Node::Html => "HTML",
        Node::Quote => "quotation",
        Node::Other => "block",
    }
}
