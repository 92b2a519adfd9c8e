//! Splits a Markdown document into sections by its headings.
//!
//! Uses the Markdown parser, so headings in code blocks don't count.

use crate::text::markdown::{self, BlockKind, Lines, MarkdownBlock};

/// The content ends at the next heading of the same or a higher level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentSection {
    /// From 1.
    pub level: u8,
    pub title: String,
    /// From 1.
    pub line: usize,
    /// First line after the heading.
    pub first: usize,
    /// With subsections.
    pub body: String,
}

impl DocumentSection {
    /// Without subsections.
    pub fn own(&self) -> String {
        let end = read(&self.body)
            .first()
            .map_or(usize::MAX, |inner| inner.line - 1);
        self.body.split_inclusive('\n').take(end).collect()
    }
}

pub fn read(text: &str) -> Vec<DocumentSection> {
    let lines = Lines::new(text);
    let headings: Vec<(u8, String, usize, usize)> = markdown::blocks(text)
        .into_iter()
        .filter_map(heading)
        .collect();
    let section = |(index, (level, title, first, last)): (usize, &(u8, String, usize, usize))| {
        let next = headings[index + 1..]
            .iter()
            .find(|(other, ..)| other <= level);
        let end = next.map_or(lines.len() + 1, |(_, _, line, _)| *line);
        let body = (last + 1..end)
            .map(|line| format!("{}\n", lines.get(line).trim_end_matches(['\n', '\r'])))
            .collect();

        DocumentSection {
            level: *level,
            title: title.trim().to_owned(),
            line: *first,
            first: last + 1,
            body,
        }
    };

    headings.iter().enumerate().map(section).collect()
}

fn heading(block: MarkdownBlock) -> Option<(u8, String, usize, usize)> {
    match block.node {
        BlockKind::Heading { level, text, .. } => Some((level, text, block.first, block.last)),
        _ => None,
    }
}

/// Ignores case.
pub fn find<'a>(
    sections: &'a [DocumentSection],
    level: u8,
    title: &str,
) -> Option<&'a DocumentSection> {
    sections
        .iter()
        .find(|section| section.level == level && section.title.eq_ignore_ascii_case(title))
}

/// Empties code blocks, quotations and raw HTML, and keeps line numbers.
pub fn prose(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut open = markdown::blocks(text);
    while let Some(block) = open.pop() {
        match block.node {
            BlockKind::Code(_) | BlockKind::Quote | BlockKind::Html => {
                for line in lines.iter_mut().take(block.last).skip(block.first - 1) {
                    line.clear();
                }
            }
            BlockKind::List { items, .. } => {
                open.extend(items.into_iter().flat_map(|item| item.blocks))
            }
            _ => {}
        }
    }

    lines
}

/// Without the mark of a list item and bold marks.
pub fn plain(line: &str) -> String {
    let line = line.trim().trim_start_matches(['-', '*', '+']);
    line.trim_start().replace("**", "")
}

/// `- **Key:** value`, `- **Key**: value` or `Key: value`
pub fn key_value(line: &str) -> Option<(String, String)> {
    let plain = plain(line);
    let (key, value) = plain.split_once(':')?;
    Some((key.trim().to_owned(), value.trim().to_owned()))
}

/// The value of the first such line, with its line number. Ignores case.
pub fn field(text: &str, key: &str) -> Option<(usize, String)> {
    prose(text).iter().enumerate().find_map(|(index, line)| {
        let (name, value) = key_value(line)?;
        name.eq_ignore_ascii_case(key).then_some((index + 1, value))
    })
}

/// The mark of a `- [x] ...` and the text after the box.
pub fn checkbox(line: &str) -> Option<(&str, &str)> {
    let tail = line.strip_prefix(['-', '*', '+'])?.trim_start();
    tail.strip_prefix('[')?.split_once(']')
}

pub fn is_ticked(mark: &str) -> bool {
    matches!(mark.trim(), "x" | "X" | "✓" | "✔")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_has_what_stands_below_its_heading() {
        let text = "# A\n\none\n\n## B\ntwo\n```\n## no\n```\n### C\nthree\n## D\n";
        let actual: Vec<(u8, String, usize, String)> = read(text)
            .into_iter()
            .map(|s| (s.level, s.title.clone(), s.line, s.own()))
            .collect();
        let expected = [
            (1, "A", 1, "\none\n\n"),
            (2, "B", 5, "two\n```\n## no\n```\n"),
            (3, "C", 10, "three\n"),
            (2, "D", 12, ""),
        ];
        assert_eq!(
            actual,
            expected.map(|(level, title, line, own)| (
                level,
                title.to_owned(),
                line,
                own.to_owned()
            ))
        );
    }

    #[test]
    fn a_field_is_found_in_every_usual_spelling_but_not_in_code() {
        for line in [
            "- **Key:** value",
            "- **Key**: value",
            "**key**: value",
            "Key: value",
            "* Key : value",
        ] {
            assert_eq!(
                field(&format!("```\nKey: no\n```\n\n{line}\n"), "key"),
                Some((5, "value".to_owned())),
                "{line}"
            );
        }
        assert_eq!(field("Keys: value\n", "key"), None);
    }
}
