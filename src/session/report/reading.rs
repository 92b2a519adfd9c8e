//! Parses the actions of a report, as [`super::Report::render`] writes them.
//!
//! The tests prove that hostile input cannot break the Markdown of a report.

use crate::session::artifact::MAX_REPORT;
use crate::text::markdown::{self, BlockKind, Lines, MarkdownBlock};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportField {
    /// In bold, without the colon.
    pub key: String,
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReportAction {
    pub name: String,
    pub modified: bool,
    pub fields: Vec<ReportField>,
    pub blocks: Vec<CodeBlock>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodeBlock {
    /// The paragraph above, such as `Command:`. Empty if there is none.
    pub caption: String,
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

/// `None` if the text is not a report or exceeds [`MAX_REPORT`].
pub fn read(text: &str) -> Option<Vec<ReportAction>> {
    if text.len() > MAX_REPORT || !text.starts_with("# Execution Report: ") {
        return None;
    }

    let lines = Lines::new(text);
    let mut actions: Vec<ReportAction> = Vec::new();
    let (mut is_summary, mut is_log) = (false, false);
    let mut caption = String::new();
    for block in &markdown::blocks(text) {
        if let BlockKind::Heading { level, text, .. } = &block.node {
            caption.clear();
            match (level, text.as_str()) {
                (2, title) => (is_summary, is_log) = (title == "2. Execution Summary", false),
                (3, "Action Log") => is_log = is_summary,
                (4, title) if is_log => actions.push(ReportAction {
                    name: title.split('`').nth(1).unwrap_or_default().to_owned(),
                    modified: title.ends_with("(user modified)"),
                    ..ReportAction::default()
                }),
                _ => {}
            }
            continue;
        }

        let action = actions.last_mut().filter(|_| is_log);
        match &block.node {
            BlockKind::List { .. } => {
                if let Some(action) = action {
                    action.fields.extend(fields(&span(&lines, block)));
                }
            }
            BlockKind::Code(code) => {
                let caption = std::mem::take(&mut caption);
                if let Some(action) = action {
                    let contents = lines.span(code.line_range.clone()).to_owned();
                    action.blocks.push(CodeBlock { caption, contents });
                }
            }
            _ => caption = span(&lines, block).join("\n"),
        }
    }

    Some(actions)
}

fn span<'a>(lines: &Lines<'a>, block: &MarkdownBlock) -> Vec<&'a str> {
    (block.first..=block.last)
        .map(|number| lines.get(number))
        .collect()
}

fn fields(lines: &[&str]) -> Vec<ReportField> {
    let field = |line: &&str| {
        let (key, value) = line.strip_prefix("- **")?.split_once(":**")?;
        Some(ReportField {
            key: key.to_owned(),
            value: value.strip_prefix(' ').unwrap_or(value).to_owned(),
        })
    };
    lines.iter().filter_map(field).collect()
}

#[cfg(test)]
mod tests;
