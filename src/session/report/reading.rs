//! Parses a report: the inverse of [`super::Report::render`], for `verify` and tests.
//!
//! Also proves that hostile input cannot break the Markdown of a report. Keeps unknown fields of
//! later versions.

use crate::session::artifact::MAX_REPORT;
use crate::text::markdown::{self, BlockKind, Lines, MarkdownBlock};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportFacts {
    pub title: String,
    /// The list below the title.
    pub fields: Vec<ReportField>,
    /// Level 2, in order, without the summary.
    pub sections: Vec<ReportSection>,
    /// As in the plan; `true` if it was applied.
    pub memos: Vec<(bool, String)>,
    pub actions: Vec<ReportAction>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportField {
    /// In bold, without the colon.
    pub key: String,
    pub value: String,
    pub items: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportSection {
    pub title: String,
    /// Verbatim.
    pub items: Vec<String>,
    pub blocks: Vec<CodeBlock>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportAction {
    pub name: String,
    pub modified: bool,
    pub fields: Vec<ReportField>,
    pub blocks: Vec<CodeBlock>,
    /// The paragraphs below the list.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeBlock {
    /// The paragraph above, such as `Command:`. Empty if there is none.
    pub caption: String,
    pub language: String,
    pub contents: String,
}

impl ReportAction {
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|field| field.key == key)
            .map(|field| field.value.as_str())
    }
}

const TITLE: &str = "# Execution Report: ";

/// `None` if the text is not a report or exceeds [`MAX_REPORT`].
pub fn read(text: &str) -> Option<ReportFacts> {
    if text.len() > MAX_REPORT {
        return None;
    }

    let lines = Lines::new(text);
    let mut facts = ReportFacts {
        title: text.lines().next()?.strip_prefix(TITLE)?.to_owned(),
        ..ReportFacts::default()
    };
    let mut position = ReportPlace::Head;
    let mut caption = String::new();

    for block in &markdown::blocks(text) {
        match &block.node {
            BlockKind::Heading { level, text, .. } => {
                position = facts.enter(*level, text, position);
                caption.clear();
            }
            BlockKind::List { .. } => facts.list(position, &span(&lines, block)),
            BlockKind::Code(code) => {
                let contents = lines.span(code.line_range.clone()).to_owned();
                facts.code(
                    position,
                    CodeBlock {
                        caption: std::mem::take(&mut caption),
                        language: code.info.clone(),
                        contents,
                    },
                );
            }
            _ => {
                caption = span(&lines, block).join("\n");
                facts.sentence(position, &caption);
            }
        }
    }

    Some(facts)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportPlace {
    Head,
    Section,
    Memos,
    Log,
}

impl ReportFacts {
    fn enter(&mut self, level: u8, text: &str, position: ReportPlace) -> ReportPlace {
        match (level, text, position) {
            (2, "2. Execution Summary", _) => ReportPlace::Memos,
            (2, ..) => {
                self.sections.push(ReportSection {
                    title: text.to_owned(),
                    ..ReportSection::default()
                });
                ReportPlace::Section
            }
            (3, "Action Log", ReportPlace::Memos) => ReportPlace::Log,
            (4, _, ReportPlace::Log) => {
                let name = text.split('`').nth(1).unwrap_or_default().to_owned();
                self.actions.push(ReportAction {
                    name,
                    modified: text.ends_with("(user modified)"),
                    ..ReportAction::default()
                });
                ReportPlace::Log
            }
            _ => position,
        }
    }

    fn list(&mut self, position: ReportPlace, lines: &[&str]) {
        match position {
            ReportPlace::Head => self.fields.extend(fields(lines)),
            ReportPlace::Section => {
                if let Some(section) = self.sections.last_mut() {
                    section.items.extend(
                        lines
                            .iter()
                            .filter_map(|line| line.strip_prefix("- "))
                            .map(str::to_owned),
                    );
                }
            }
            ReportPlace::Memos => self
                .memos
                .extend(lines.iter().filter_map(|line| memo(line))),
            ReportPlace::Log => {
                if let Some(action) = self.actions.last_mut() {
                    action.fields.extend(fields(lines));
                }
            }
        }
    }

    fn code(&mut self, position: ReportPlace, block: CodeBlock) {
        let blocks = match position {
            ReportPlace::Section => self.sections.last_mut().map(|section| &mut section.blocks),
            ReportPlace::Log => self.actions.last_mut().map(|action| &mut action.blocks),
            ReportPlace::Head | ReportPlace::Memos => None,
        };
        blocks
            .into_iter()
            .for_each(|blocks| blocks.push(block.clone()));
    }

    fn sentence(&mut self, position: ReportPlace, text: &str) {
        if let Some(action) = self
            .actions
            .last_mut()
            .filter(|_| position == ReportPlace::Log)
        {
            action.notes.push(text.to_owned());
        }
    }
}

fn span<'a>(lines: &Lines<'a>, block: &MarkdownBlock) -> Vec<&'a str> {
    (block.first..=block.last)
        .map(|number| lines.get(number))
        .collect()
}

fn fields(lines: &[&str]) -> Vec<ReportField> {
    let mut fields: Vec<ReportField> = Vec::new();
    for line in lines {
        if let Some((key, value)) = line
            .strip_prefix("- **")
            .and_then(|tail| tail.split_once(":**"))
        {
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            fields.push(ReportField {
                key: key.to_owned(),
                value,
                items: Vec::new(),
            });
        } else if let (Some(item), Some(field)) = (line.strip_prefix("  - "), fields.last_mut()) {
            field.items.push(item.to_owned());
        }
    }

    fields
}

fn memo(line: &str) -> Option<(bool, String)> {
    let (applied, tail) = match line.strip_prefix("- Applied: ") {
        Some(tail) => (true, tail),
        None => (false, line.strip_prefix("- Not applied: ")?),
    };
    let ticks = tail.len() - tail.trim_start_matches('`').len();

    // The proposed change can follow.
    let (change, _) = tail
        .get(ticks + 1..)?
        .split_once(&format!(" {}", "`".repeat(ticks)))?;
    Some((applied, change.to_owned()))
}

#[cfg(test)]
mod tests;
