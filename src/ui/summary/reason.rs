//! Short reason for a plan, from its rationale.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::sanitize::sanitize_line;
use crate::ui::style::{StyledLine, Tone};

const MAX_LINES: usize = 3;
/// More does not fit on three lines of any screen.
const MAX_CHARACTERS: usize = 4000;
/// Longer lines are hard to read.
const MAX_WIDTH: usize = 100;
const ELLIPSIS: &str = " …";
/// Appended to a cut reason: the key that shows all.
pub(super) const KEY: &str = " the rest: r";
/// Heading of the section with the reason. Earlier sections describe the past.
const SECTION: &str = "justification";

/// Returns the reason in at most three lines. `key` is appended if it is cut.
pub(super) fn lines(rationale: &str, width: usize, key: &str) -> Vec<StyledLine> {
    let width = width.min(MAX_WIDTH).saturating_sub(2).max(1);
    let (text, is_cut) = chosen(rationale);
    let mut rows = wrapped(&text, width);
    let is_cut = is_cut || rows.len() > MAX_LINES;
    rows.truncate(MAX_LINES);

    let last = rows.len().saturating_sub(1);
    let suffix = format!("{ELLIPSIS}{key}");
    let line = |(at, row): (usize, String)| {
        let line = StyledLine::plain("  ").with(Tone::Plain, &row);
        match is_cut && at == last {
            true => {
                shortened(&row, width.saturating_sub(suffix.width())).with(Tone::Faint, &suffix)
            }
            false => line,
        }
    };
    rows.into_iter().enumerate().map(line).collect()
}

/// Returns the text of the reason, and whether it was cut.
fn chosen(rationale: &str) -> (String, bool) {
    let is_heading = |line: &&str| line.trim_start().starts_with('#');
    let mut lines = rationale.lines();
    let has_section = lines.any(|line| is_heading(&line) && line.to_lowercase().contains(SECTION));
    let selected: Vec<&str> = match has_section {
        true => lines.take_while(|line| !is_heading(line)).collect(),
        false => rationale.lines().filter(|line| !is_heading(line)).collect(),
    };

    let tokens: Vec<&str> = selected
        .iter()
        .flat_map(|line| line.split_whitespace())
        .collect();
    let text = tokens.join(" ");
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => (sanitize_line(&text[..end]).into_owned(), true),
        None => (sanitize_line(&text).into_owned(), false),
    }
}

/// Breaks between words, or within a word that is too long.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.extend(pieces(word, width)),
        }
    }

    lines
}

fn pieces(word: &str, width: usize) -> Vec<String> {
    let pieces = StyledLine::plain(word).wrap(width);
    pieces.iter().map(StyledLine::text).collect()
}

/// Drops words at the end until the line fits.
fn shortened(line: &str, width: usize) -> StyledLine {
    let mut used = 0;
    let fits = line.chars().take_while(|c| {
        used += c.width().unwrap_or(0);
        used <= width
    });
    let end: usize = fits.map(char::len_utf8).sum();
    let prefix = match line[..end].rfind(' ').filter(|_| end < line.len()) {
        Some(blank) => &line[..blank],
        None => &line[..end],
    };
    StyledLine::plain("  ").with(Tone::Plain, prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rationale: &str, width: usize, expected: &[&str]) {
        let rows: Vec<String> = lines(rationale, width, KEY)
            .iter()
            .map(StyledLine::text)
            .collect();
        assert_eq!(rows, expected);
        assert!(rows.iter().all(|line| line.width() <= width), "{rows:?}");
    }

    #[test]
    fn a_short_reason_is_whole() {
        check("It is\nwanted.", 60, &["  It is wanted."]);
        check("", 60, &[]);
    }

    #[test]
    fn of_a_rationale_with_sections_the_one_that_says_why_is_shown() {
        let rationale = "### 1. Synthesis\nA was done.\n### 2. Justification\nB is next.\n\
                         Really.\n### 3. Expected Outcome\nC.\n";
        check(rationale, 80, &["  B is next. Really."]);
        check("# Why\nA\n# How\nB", 80, &["  A B"]);
    }

    #[test]
    fn a_long_reason_is_cut_after_three_lines_and_says_where_the_rest_is() {
        let long = "one two three four five six seven eight nine ten ".repeat(9);
        check(
            &long,
            60,
            &[
                "  one two three four five six seven eight nine ten one two",
                "  three four five six seven eight nine ten one two three",
                "  four five six seven eight nine ten one two … the rest: r",
            ],
        );
        assert_eq!(lines(&long, 200, KEY).len(), 3);
        check(
            &"日本語".repeat(40),
            30,
            &[
                "  日本語日本語日本語日本語日本",
                "  語日本語日本語日本語日本語日",
                "  本語日本語日本 … the rest: r",
            ],
        );
    }

    #[test]
    fn what_deceives_is_visible_and_cannot_break_the_width() {
        check("a \u{202e}b", 40, &["  a \\u{202e}b"]);
    }
}
