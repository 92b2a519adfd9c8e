//! A difference between two states of a file, as coloured lines of a unified diff.
//!
//! Used by the review, by `teddy show` and by `teddy diff`.

use super::seam::{Hunk, hunks};
use super::style::{Line, Tone};

/// A file before and after; `None` where there is none.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// Its path.
    pub path: &'a str,
    /// What was there.
    pub before: Option<&'a [u8]>,
    /// What is there then.
    pub after: Option<&'a [u8]>,
}

/// How many lines come and go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Lines that come.
    pub added: usize,
    /// Lines that go.
    pub removed: usize,
}

/// Returns the unified diff of a file, headed by its names.
pub fn unified(change: &Change<'_>) -> Vec<Line> {
    let name = |side: &str, there: bool| if there { format!("{side}/{}", change.path) } else { "/dev/null".to_owned() };
    let mut lines = vec![
        Line::of(Tone::Strong, &format!("--- {}", name("a", change.before.is_some()))),
        Line::of(Tone::Strong, &format!("+++ {}", name("b", change.after.is_some()))),
    ];
    lines.extend(body(change));
    lines
}

/// Returns the hunks alone.
pub fn body(change: &Change<'_>) -> Vec<Line> {
    if change.before == change.after {
        return vec![Line::of(Tone::Faint, "no difference")];
    }
    match (text(change.before), text(change.after)) {
        (Some(before), Some(after)) => hunks(before, after).iter().flat_map(hunk).collect(),
        _ => vec![Line::of(Tone::Faint, "binary content differs")],
    }
}

/// Counts the lines that come and go; nothing for binary content.
pub fn counts(change: &Change<'_>) -> Counts {
    let (Some(before), Some(after)) = (text(change.before), text(change.after)) else { return Counts::default() };
    let hunks = hunks(before, after);
    let count = |sign| hunks.iter().flat_map(|h| &h.lines).filter(|line| line.sign == sign).count();
    Counts { added: count('+'), removed: count('-') }
}

impl Counts {
    /// Returns `+3 -1`; a side that is nothing is left out, a change without lines is `±0`.
    pub fn line(self) -> Line {
        let added = if self.added > 0 { format!("+{}", self.added) } else { String::new() };
        let removed = if self.removed > 0 { format!("-{}", self.removed) } else { String::new() };
        let gap = if added.is_empty() || removed.is_empty() { "" } else { " " };
        match (added.is_empty(), removed.is_empty()) {
            (true, true) => Line::of(Tone::Faint, "±0"),
            _ => Line::default().with(Tone::Added, &added).with(Tone::Plain, gap).with(Tone::Removed, &removed),
        }
    }
}

/// Returns the content as text; nothing is empty text, and a NUL makes it binary as git sees it.
fn text(bytes: Option<&[u8]>) -> Option<&str> {
    let bytes = bytes.unwrap_or_default();
    if bytes.contains(&0) { None } else { std::str::from_utf8(bytes).ok() }
}

/// Returns the lines of a hunk.
fn hunk(hunk: &Hunk) -> Vec<Line> {
    let mut lines = vec![Line::of(Tone::Accent, &hunk.header)];
    for changed in &hunk.lines {
        let tone = match changed.sign {
            '+' => Tone::Added,
            '-' => Tone::Removed,
            _ => Tone::Plain,
        };
        let (text, end) = split_end(&changed.text);
        lines.push(Line::of(tone, &format!("{}{text}", changed.sign)));
        if end.is_empty() {
            lines.push(Line::of(Tone::Faint, "\\ No newline at end of file"));
        }
    }
    lines
}

/// Splits the final newline off; a carriage return stays, so that it is seen.
fn split_end(line: &str) -> (&str, &str) {
    line.split_at(line.len() - usize::from(line.ends_with('\n')))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares a difference as bare text.
    fn check(before: Option<&str>, after: Option<&str>, expected: &str) {
        let change = Change { path: "a.txt", before: before.map(str::as_bytes), after: after.map(str::as_bytes) };
        let found: Vec<String> = unified(&change).iter().map(Line::text).collect();
        assert_eq!(found.join("\n"), expected);
    }

    #[test]
    fn a_new_file_is_all_added() {
        check(None, Some("a\nb\n"), "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,2 @@\n+a\n+b");
    }

    #[test]
    fn a_lost_final_newline_is_said() {
        let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file";
        check(Some("a\n"), Some("a"), expected);
    }

    #[test]
    fn a_carriage_return_is_seen() {
        let expected = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+a\\u{d}";
        check(Some("a\n"), Some("a\r\n"), expected);
    }

    #[test]
    fn binary_content_is_not_shown() {
        check(Some("a\0b"), Some("c"), "--- a/a.txt\n+++ b/a.txt\nbinary content differs");
    }

    #[test]
    fn counts_leave_out_what_is_nothing() {
        let line = |added, removed| Counts { added, removed }.line().text();
        assert_eq!([line(3, 1), line(3, 0), line(0, 1), line(0, 0)], ["+3 -1", "+3", "-1", "±0"]);
    }
}
