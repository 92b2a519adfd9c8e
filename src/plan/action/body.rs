//! Splits the part below an action's heading into fields, labels, code blocks and misplaced text.
//!
//! The parser of each action takes what it needs and reports a diagnostic for every mistake. None
//! of them handles Markdown again.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{ActionRow, BodyShape};
use crate::plan::diagnostic::{Diagnostic, quote};
use crate::plan::field::Field;
use crate::plan::line::{self, Label, field_item};
use crate::text::fence::dedented;
use crate::text::link;
use crate::text::markdown::{BlockKind, Item, Lines, MarkdownBlock, MarkdownCode};
use crate::text::path::{PathError, RepoPath};
use crate::text::resource::{Resource, is_url};

/// The body of an action during parsing.
#[derive(Debug)]
pub struct Body<'a> {
    pub(in crate::plan::action) lines: &'a Lines<'a>,
    /// The action's entry in the table.
    pub(in crate::plan::action) row: &'static ActionRow,
    pub line: usize,
    /// The list below the heading.
    pub fields: Vec<Field>,
    /// The parts after the list, in order.
    pub parts: Vec<BodyPart>,
    /// Lines of the message, for actions that have one.
    pub(in crate::plan::action) message: Range<usize>,
    /// Set once a label was seen. A later list item that looks like a field is not one.
    labelled: bool,
    /// Diagnostics so far.
    pub diagnostics: Vec<Diagnostic>,
}

/// Part of an action below its field list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyPart {
    /// `FIND:` or `REPLACE:`.
    Label { line: usize, label: Label },
    /// A fenced code block.
    Code {
        /// Line of the opening fence.
        line: usize,
        /// Text between the fences.
        text: String,
        /// First word of the info string.
        language: String,
    },
    /// Text that the action has no place for.
    Unexpected {
        /// Its first line.
        line: usize,
        /// Kind of text, and its first words.
        description: String,
    },
}

impl<'a> Body<'a> {
    /// Splits the blocks below a heading. `end` is the line after the action's last line.
    pub fn new(
        lines: &'a Lines<'a>,
        row: &'static ActionRow,
        line: usize,
        end: usize,
        blocks: &[MarkdownBlock],
    ) -> Body<'a> {
        let mut body = Body {
            lines,
            row,
            line,
            fields: Vec::new(),
            parts: Vec::new(),
            message: line + 1..end,
            labelled: false,
            diagnostics: Vec::new(),
        };
        if row.is_message() {
            body.cut_message(blocks);
        } else {
            for block in blocks {
                body.cut(block);
            }
        }

        body.check_fields();
        body
    }

    /// Takes the leading fields of an action with a message; the message starts after them.
    fn cut_message(&mut self, blocks: &[MarkdownBlock]) {
        for block in blocks {
            let BlockKind::List {
                ordered: false,
                items,
            } = &block.node
            else {
                return;
            };
            for item in items {
                let parsed =
                    field_item::read(self.lines, item, field_item::Own::Indented).filter(|entry| {
                        self.row.keys.contains(&entry.field.key.as_str())
                            || field_item::is_unsupported(&entry.field.key)
                    });
                let Some(entry) = parsed else {
                    self.message.start = item.first;
                    return;
                };

                self.fields.push(entry.field);
                // Anything but a nested list after the item's text starts the message.
                let more = item
                    .blocks
                    .iter()
                    .skip(1)
                    .find(|b| !matches!(b.node, BlockKind::List { .. }))
                    .map(|b| b.first);
                if let Some(start) = entry.text_start.or(more) {
                    self.message.start = start;
                    return;
                }
            }

            self.message.start = block.last + 1;
        }
    }

    fn cut(&mut self, block: &MarkdownBlock) {
        match &block.node {
            BlockKind::List {
                ordered: false,
                items,
            } => items.iter().for_each(|item| self.cut_item(item)),
            BlockKind::Code(code) if code.fence_char.is_some() => self.cut_code(block.first, code),
            BlockKind::Paragraph => self.cut_text(block.first, block.last),
            BlockKind::Heading {
                text,
                setext: false,
                level: 4..,
            } if self.row.has_labels() && line::label(text).is_some() => {
                self.cut_text(block.first, block.first);
            }
            BlockKind::Rule => {}
            other => self.push_unexpected(block.first, block_kind(other)),
        }
    }

    /// Takes a list item: a field, or a label written as one.
    fn cut_item(&mut self, item: &Item) {
        let entry = field_item::read(self.lines, item, field_item::Own::All);
        let label = self
            .row
            .has_labels()
            .then(|| entry.as_ref().and_then(|e| line::label(&e.field.key)))
            .flatten();
        match (entry, label) {
            (Some(entry), Some(label)) if entry.field.value.is_empty() => {
                self.label_at(item.first, label)
            }
            (Some(entry), None) if !self.labelled => {
                let text_start = entry.text_start;
                self.fields.push(entry.field);
                if let (Some(text_start), Some(last)) =
                    (text_start, item.blocks.first().map(|b| b.last))
                {
                    self.cut_text(text_start, last);
                }
            }
            _ => return self.push_unexpected(item.first, "list item"),
        }

        for block in item.blocks.iter().skip(1) {
            self.cut_nested(block);
        }
    }

    fn cut_nested(&mut self, block: &MarkdownBlock) {
        match &block.node {
            BlockKind::Code(code) if code.fence_char.is_some() => {
                self.cut_code_of_item(block.first, code);
            }
            BlockKind::List { items, .. } => {
                for inner in items.iter().flat_map(|item| item.blocks.iter().skip(1)) {
                    if let BlockKind::Code(code) = &inner.node {
                        self.cut_code_of_item(inner.first, code);
                    }
                }
            }
            BlockKind::Paragraph => self.cut_text(block.first, block.last),
            other => self.push_unexpected(block.first, block_kind(other)),
        }
    }

    fn cut_text(&mut self, first: usize, last: usize) {
        let mut reported = false;
        for line in first..=last {
            let text = self.lines.get(line).trim();
            match line::label(text).filter(|_| self.row.has_labels()) {
                Some(label) => {
                    self.label_at(line, label);
                    reported = false;
                }
                None if reported => {}
                None => {
                    let kind = if line::is_fence(text) {
                        "line that is not a fence in Markdown"
                    } else {
                        "text"
                    };
                    self.push_unexpected(line, kind);
                    reported = true;
                }
            }
        }
    }

    fn label_at(&mut self, line: usize, label: Label) {
        self.labelled = true;
        self.parts.push(BodyPart::Label { line, label });
    }

    fn cut_code_of_item(&mut self, line: usize, code: &MarkdownCode) {
        if block_text(self.lines, code).is_none() {
            let message = "the lines of this code block are not all indented as far as its fence";
            let hint = "put the fences and the content at the start of the line";
            self.report(line, message, hint);
        }
        self.cut_code(line, code);
    }

    fn cut_code(&mut self, line: usize, code: &MarkdownCode) {
        let text = block_text(self.lines, code)
            .unwrap_or_else(|| self.lines.span(code.line_range.clone()).to_owned());
        let language = code
            .info
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned();
        self.parts.push(BodyPart::Code {
            line,
            text,
            language,
        });
    }

    fn push_unexpected(&mut self, line: usize, kind: &str) {
        let description = format!("{kind} \"{}\"", quote(self.lines.get(line)));
        self.parts.push(BodyPart::Unexpected { line, description });
    }

    /// Reports fields that have no meaning here, and fields that occur twice.
    fn check_fields(&mut self) {
        let name = self.row.name;
        let mut used_keys = BTreeSet::new();
        for entry in &self.fields {
            let key = entry.key.as_str();
            // In a message, a line such as `When: ...` is ordinary text (P20).
            let is_condition = field_item::is_condition(key) && !self.row.is_message();
            let writes = matches!(self.row.shape, BodyShape::File | BodyShape::Pairs);
            let is_meaningless = is_condition || (writes && field_item::asks_for_more(entry));
            if !field_item::has_weight(key) && !is_meaningless {
                continue;
            }

            if is_meaningless || field_item::is_unsupported(key) || !self.row.keys.contains(&key) {
                let keys: Vec<String> = self.row.keys.iter().map(|k| format!("`{k}`")).collect();
                let message = format!("`{key}` has no meaning in {name}");
                self.diagnostics.push(
                    Diagnostic::new(entry.line, message)
                        .hint(format!("leave it out; {name} knows {}", keys.join(", "))),
                );
            } else if !used_keys.insert(key) {
                self.diagnostics.push(
                    Diagnostic::new(entry.line, format!("`{key}` appears twice"))
                        .hint("keep one of them"),
                );
            }
        }
    }
}

/// Returns the content of a block. The fence's indentation is removed if every non-blank line has
/// it; `None` if only some lines have it.
pub fn block_text(lines: &Lines<'_>, code: &MarkdownCode) -> Option<String> {
    let raw = lines.span(code.line_range.clone());
    if code.indent == 0 {
        return Some(raw.to_owned());
    }

    let mut text = String::with_capacity(raw.len());
    for number in code.line_range.clone() {
        text.push_str(dedented(lines.raw(number), code.indent)?);
    }
    Some(text)
}

fn block_kind(node: &BlockKind) -> &'static str {
    match node {
        BlockKind::Heading { .. } => "heading",
        BlockKind::Code(_) => "indented code",
        BlockKind::List { .. } => "numbered list",
        BlockKind::Paragraph => "text",
        BlockKind::Rule => "rule",
        BlockKind::Html => "HTML",
        BlockKind::Quote => "quotation",
        BlockKind::Other => "block",
    }
}

// Accessors with which the actions' parsers read a [`Body`]: names, flags, blocks, the message.
//
// Each accessor reports what is wrong with the part it reads, with a hint at the correct form.

impl Body<'_> {
    pub fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.key == key)
    }

    pub fn report(&mut self, line: usize, message: impl Into<String>, hint: impl Into<String>) {
        self.diagnostics
            .push(Diagnostic::new(line, message).hint(hint));
    }

    /// Reads `File Path`, which names one path.
    pub fn path(&mut self) -> Option<RepoPath> {
        let Some(field) = self.field("File Path").cloned() else {
            self.report(
                self.line,
                format!("{} has no `File Path`", self.row.name),
                "add `- **File Path:** [src/a.rs](/src/a.rs)`",
            );
            return None;
        };
        self.name(&field, parse_path)
    }

    /// Returns the resource of an action that has no text below its fields.
    pub fn only_resource(&mut self) -> Option<Resource> {
        let resource = self.resource();
        self.nothing_below();
        resource
    }

    /// Reads `Resource` or `File Path`, which names one resource.
    pub fn resource(&mut self) -> Option<Resource> {
        let fields: Vec<Field> = self
            .fields
            .iter()
            .filter(|f| f.key == "Resource" || f.key == "File Path")
            .cloned()
            .collect();
        let Some(first) = fields.first() else {
            self.report(
                self.line,
                format!("{} has no `Resource`", self.row.name),
                "add `- **Resource:** [src/a.rs](/src/a.rs)`",
            );
            return None;
        };

        if let Some(second) = fields.get(1).filter(|f| f.key != first.key) {
            self.report(
                second.line,
                "`Resource` and `File Path` mean the same here",
                "keep one of them",
            );
        }

        self.name(first, parse_resource)
    }

    /// Reads `Handoff Resources`: a nested list, or names on the field's line.
    pub fn resources(&mut self) -> Vec<Resource> {
        let Some(field) = self.field("Handoff Resources").cloned() else {
            return Vec::new();
        };
        let inline = without_optional(&field.value);
        let inline = if matches!(inline.to_lowercase().as_str(), "none" | "n/a" | "-") {
            ""
        } else {
            inline
        };

        let mut values = Vec::new();
        for value in std::iter::once(inline).chain(field.items.iter().map(String::as_str)) {
            match link::read_all(value) {
                Ok(names) => values.extend(names),
                Err(error) => self.bad_name(field.line, value, &error.to_string()),
            }
        }

        values
            .iter()
            .filter_map(|name| {
                parse_resource(name)
                    .map_err(|e| self.bad_name(field.line, name, &e.to_string()))
                    .ok()
            })
            .collect()
    }

    /// Reads a field that names one thing.
    pub fn name<T, E: std::fmt::Display>(
        &mut self,
        field: &Field,
        parse: fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let name = link::read(&field.value).map_err(|e| e.to_string());
        let parsed = name.and_then(|name| parse(&name).map_err(|e| e.to_string()));
        let parsed = parsed
            .map_err(|message| self.bad_name(field.line, &field.value, &message))
            .ok();

        if let Some(item) = field.items.first() {
            self.report(
                field.line,
                format!(
                    "`{}` names more than one thing: \"{}\"",
                    field.key,
                    quote(item)
                ),
                "write one action for each",
            );
            return None;
        }

        parsed
    }

    fn bad_name(&mut self, line: usize, value: &str, message: &str) {
        let hint = "write `[path/from/root](/path/from/root)`, text and destination alike, inside the project";
        self.report(line, format!("{message}: \"{}\"", quote(value)), hint);
    }

    /// Reads a yes/no field.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        let field = self.field(key)?.clone();
        match field
            .value
            .trim_matches(['`', '*', '"', '.'])
            .to_lowercase()
            .as_str()
        {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => {
                self.report(
                    field.line,
                    format!(
                        "`{key}` is neither true nor false: \"{}\"",
                        quote(&field.value)
                    ),
                    "write `true` or `false`",
                );
                None
            }
        }
    }

    /// Reads the single code block of CREATE and EXECUTE: content and language.
    pub fn one_block(&mut self) -> Option<(String, String)> {
        let name = self.row.name;
        let mut blocks = self.blocks().into_iter();
        let Some((_, text, language)) = blocks.next() else {
            self.report(
                self.line,
                format!("{name} has no code block"),
                "add exactly one fenced code block below the list",
            );
            return None;
        };

        for (line, ..) in blocks {
            let hint = "put all of the content into one block whose fence is longer than any run of backticks inside";
            self.report(line, format!("{name} has more than one code block"), hint);
        }

        Some((text, language))
    }

    /// Takes all code blocks as line, content and language, and reports everything else as
    /// misplaced.
    pub fn blocks(&mut self) -> Vec<(usize, String, String)> {
        let mut blocks = Vec::new();
        for part in std::mem::take(&mut self.parts) {
            match part {
                BodyPart::Code {
                    line,
                    text: content,
                    language,
                } => blocks.push((line, content, language)),
                other => self.misplaced(&other),
            }
        }

        blocks
    }

    /// Reports everything below the fields of an action that has only fields.
    pub fn nothing_below(&mut self) {
        let name = self.row.name;
        for (line, ..) in self.blocks() {
            self.report(
                line,
                format!("{name} has a code block"),
                format!("{name} takes a list alone"),
            );
        }
    }

    pub fn misplaced(&mut self, part: &BodyPart) {
        let name = self.row.name;
        match part {
            BodyPart::Unexpected { line, description } => {
                self.report(
                    *line,
                    format!("unexpected {description}"),
                    format!(
                        "{name} has {}; leave everything else out",
                        self.row.layout()
                    ),
                );
            }
            BodyPart::Label { line, .. } => self.report(
                *line,
                format!("{name} has no FIND or REPLACE"),
                "use EDIT to change a file",
            ),
            BodyPart::Code { line, .. } => {
                self.report(
                    *line,
                    "this code block has no label above it",
                    "put `FIND:` or `REPLACE:` on the line above the block",
                );
            }
        }
    }

    /// Returns the message without blank lines and rules at its ends.
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
            self.report(
                self.line,
                format!("{} has no message", self.row.name),
                "write the message below the heading and the list",
            );
            return None;
        }

        Some(text.to_owned())
    }

    /// Returns whether the last line is a rule after a blank line, which separates this action from
    /// the next.
    fn ends_with_rule(&self, range: &Range<usize>) -> bool {
        let line = self.lines.get(range.end - 1).trim();
        let above = range.end - 2 < range.start || self.lines.get(range.end - 2).trim().is_empty();
        above
            && line.len() >= 3
            && (line.chars().all(|c| c == '-')
                || line.chars().all(|c| c == '*')
                || line.chars().all(|c| c == '_'))
    }

    /// Returns a label for an action that could not be parsed: its name, and the raw value of the
    /// field that names its target.
    pub fn label(&self) -> String {
        let target = self
            .field("File Path")
            .or_else(|| self.field("Resource"))
            .map(|f| quote(&f.value))
            .unwrap_or_default();
        format!("{} {target}", self.row.name).trim_end().to_owned()
    }
}

fn parse_path(name: &str) -> Result<RepoPath, String> {
    if is_url(name) {
        Err("a URL is not a file of the project".to_owned())
    } else {
        RepoPath::parse(name).map_err(|e| e.to_string())
    }
}

/// Parses a resource of a plan. Unlike in a context list, a leading `/` is an error.
fn parse_resource(name: &str) -> Result<Resource, PathError> {
    if name.starts_with('/') {
        Err(PathError::Absolute)
    } else {
        Resource::parse(name)
    }
}

/// Removes the "(Optional)" that the format's examples put before optional values.
pub fn without_optional(value: &str) -> &str {
    value
        .strip_prefix("(Optional)")
        .or_else(|| value.strip_prefix("(optional)"))
        .unwrap_or(value)
        .trim()
}
