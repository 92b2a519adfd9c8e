//! Accessors with which the actions' parsers read a [`Body`]: names, flags, blocks, the message.
//!
//! Each accessor reports what is wrong with the part it reads, with a hint at the correct form.

use std::ops::Range;

use super::{Body, BodyPart};
use crate::plan::Field;
use crate::plan::diagnostic::{Diagnostic, quote};
use crate::text::link;
use crate::text::path::{PathError, RepoPath};
use crate::text::resource::{Resource, is_url};

impl Body<'_> {
    /// Returns a field by the format's key.
    pub fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.key == key)
    }

    /// Adds a diagnostic.
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

    /// Reports a misplaced part.
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
