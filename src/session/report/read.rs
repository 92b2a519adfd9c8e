//! Reading a report again: from the Markdown to what it says.
//!
//! The counterpart of [`super::Report::render`], for `verify` and tests: structure comes from the
//! Markdown reader, every text is cut from the source. It proves that a report is Markdown whatever
//! a plan, a command or a person put into it; a report of a later version has fields that it keeps
//! as they are.

use crate::session::artifact::MAX_REPORT;
use crate::text::lines::Lines;
use crate::text::markdown::{self, BlockKind, MarkdownBlock};

/// What a report says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportFacts {
    /// The plan's title.
    pub title: String,
    /// The list below it.
    pub fields: Vec<ReportField>,
    /// The sections of level 2 in their order, without the summary.
    pub sections: Vec<ReportSection>,
    /// Which memos came and went: whether it was applied, and the change as the plan wrote it.
    pub memos: Vec<(bool, String)>,
    /// The actions, in order.
    pub actions: Vec<ReportAction>,
}

/// A field of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportField {
    /// The text in bold, without the colon.
    pub key: String,
    /// The text behind it.
    pub value: String,
    /// The items below it.
    pub items: Vec<String>,
}

/// A section that is no action.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportSection {
    /// Its heading.
    pub title: String,
    /// The items of its list, as they are written.
    pub items: Vec<String>,
    /// Its code blocks.
    pub blocks: Vec<CodeBlock>,
}

/// An action of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportAction {
    /// Its name.
    pub name: String,
    /// Whether the user changed it.
    pub modified: bool,
    /// Its list.
    pub fields: Vec<ReportField>,
    /// Its code blocks.
    pub blocks: Vec<CodeBlock>,
    /// The sentences below the list.
    pub notes: Vec<String>,
}

/// A code block with the sentence above it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeBlock {
    /// The sentence, as `Command:`; empty without one.
    pub caption: String,
    /// The info string.
    pub language: String,
    /// What stands between the fences.
    pub content: String,
}

impl ReportAction {
    /// Returns the value of the first field with a key.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|field| field.key == key)
            .map(|field| field.value.as_str())
    }
}

/// The words in front of the plan's title.
const TITLE: &str = "# Execution Report: ";

/// Reads a report; `None` where the text is none, or longer than one can be.
pub fn read(text: &str) -> Option<ReportFacts> {
    if text.len() > MAX_REPORT {
        return None;
    }

    let lines = Lines::new(text);
    let mut facts = ReportFacts {
        title: text.lines().next()?.strip_prefix(TITLE)?.to_owned(),
        ..ReportFacts::default()
    };
    let mut place = ReportPlace::Head;
    let mut caption = String::new();

    for block in &markdown::blocks(text) {
        match &block.node {
            BlockKind::Heading { level, text, .. } => {
                place = facts.enter(*level, text, place);
                caption.clear();
            }
            BlockKind::List { .. } => facts.list(place, &span(&lines, block)),
            BlockKind::Code(code) => {
                let content = lines.span(code.content.clone()).to_owned();
                facts.code(
                    place,
                    CodeBlock {
                        caption: std::mem::take(&mut caption),
                        language: code.info.clone(),
                        content,
                    },
                );
            }
            _ => {
                caption = span(&lines, block).join("\n");
                facts.sentence(place, &caption);
            }
        }
    }

    Some(facts)
}

/// Where a report is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportPlace {
    /// Below the title.
    Head,
    /// In a section.
    Section,
    /// In the list of memos.
    Memos,
    /// In the log, before or in an action.
    Log,
}

impl ReportFacts {
    /// Goes below a heading, and returns where that is.
    fn enter(&mut self, level: u8, text: &str, place: ReportPlace) -> ReportPlace {
        match (level, text, place) {
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
            _ => place,
        }
    }

    /// Takes the lines of a list.
    fn list(&mut self, place: ReportPlace, lines: &[&str]) {
        match place {
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

    /// Takes a code block.
    fn code(&mut self, place: ReportPlace, block: CodeBlock) {
        let blocks = match place {
            ReportPlace::Section => self.sections.last_mut().map(|section| &mut section.blocks),
            ReportPlace::Log => self.actions.last_mut().map(|action| &mut action.blocks),
            ReportPlace::Head | ReportPlace::Memos => None,
        };
        blocks
            .into_iter()
            .for_each(|blocks| blocks.push(block.clone()));
    }

    /// Takes a sentence of an action.
    fn sentence(&mut self, place: ReportPlace, text: &str) {
        if let Some(action) = self
            .actions
            .last_mut()
            .filter(|_| place == ReportPlace::Log)
        {
            action.notes.push(text.to_owned());
        }
    }
}

/// Returns the lines of a block without their ends.
fn span<'a>(lines: &Lines<'a>, block: &MarkdownBlock) -> Vec<&'a str> {
    (block.first..=block.last)
        .map(|number| lines.get(number))
        .collect()
}

/// Reads the lines of a list of fields.
fn fields(lines: &[&str]) -> Vec<ReportField> {
    let mut found: Vec<ReportField> = Vec::new();
    for line in lines {
        if let Some((key, value)) = line
            .strip_prefix("- **")
            .and_then(|rest| rest.split_once(":**"))
        {
            let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
            found.push(ReportField {
                key: key.to_owned(),
                value,
                items: Vec::new(),
            });
        } else if let (Some(item), Some(field)) = (line.strip_prefix("  - "), found.last_mut()) {
            field.items.push(item.to_owned());
        }
    }

    found
}

/// Reads a line of the applied memos.
fn memo(line: &str) -> Option<(bool, String)> {
    let (applied, rest) = match line.strip_prefix("- Applied: ") {
        Some(rest) => (true, rest),
        None => (false, line.strip_prefix("- Not applied: ")?),
    };
    let ticks = rest.len() - rest.trim_start_matches('`').len();

    // The change as it was proposed may follow.
    let (change, _) = rest
        .get(ticks + 1..)?
        .split_once(&format!(" {}", "`".repeat(ticks)))?;
    Some((applied, change.to_owned()))
}

#[cfg(test)]
mod tests;
