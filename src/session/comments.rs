//! Comments on lines of a plan's result (`comments.md`).
//!
//! A comment quotes the lines that it is about, with a line or two around them, so that the next
//! review can say whether they were addressed. The text is read strictly: it may come from a fetched turn.

use std::iter::Peekable;
use std::str::Lines;

use crate::text::fence::fence_for;
use crate::text::path::RepoPath;
use crate::text::sanitize::sanitize_tabbed;

/// Quoted lines around those that a comment is about.
const AROUND: usize = 2;

/// Lines of a range that are quoted.
const MAX_QUOTED: usize = 40;

/// Comments of one turn.
pub const MAX_COMMENTS: usize = 1000;

/// Characters of a quoted line.
const MAX_LINE: usize = 400;

const TITLE: &str = "# Comments";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineComment {
    pub path: RepoPath,
    /// First and last line, counted from 1.
    pub first: usize,
    pub last: usize,
    /// Lines in front of the range.
    pub before: Vec<String>,
    pub quoted: Vec<String>,
    /// Lines behind the range.
    pub after: Vec<String>,
    pub text: String,
}

/// A comment of an earlier review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedComment {
    pub comment: LineComment,
    pub status: CommentStatus,
    /// Line number of the end of the range in the new version. `None` if it is stale.
    pub line: Option<usize>,
}

/// State of the lines of a comment in a later version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommentStatus {
    /// They are as they were.
    Open,
    /// They changed.
    Addressed,
    /// They are gone, or their place cannot be found.
    Stale,
}

impl CommentStatus {
    pub fn word(self) -> &'static str {
        match self {
            CommentStatus::Open => "open",
            CommentStatus::Addressed => "addressed",
            CommentStatus::Stale => "stale",
        }
    }
}

impl LineComment {
    /// Returns a comment on lines of `text`. `None` if it does not have them.
    pub fn on(
        path: RepoPath,
        first: usize,
        last: usize,
        text: &str,
        comment: &str,
    ) -> Option<Self> {
        let lines: Vec<&str> = text.lines().collect();
        if first == 0 || last < first || last > lines.len() {
            return None;
        }
        let quote =
            |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| cut(line)).collect() };
        let range = &lines[first - 1..last];
        Some(LineComment {
            path,
            first,
            last,
            before: quote(&lines[(first - 1).saturating_sub(AROUND)..first - 1]),
            quoted: quote(&range[..range.len().min(MAX_QUOTED)]),
            after: quote(&lines[last..(last + AROUND).min(lines.len())]),
            text: plain_text(comment),
        })
    }

    #[must_use]
    pub fn with_text(self, text: &str) -> LineComment {
        LineComment {
            text: plain_text(text),
            ..self
        }
    }

    /// Returns whether the lines of the comment are those that it quotes.
    pub fn is_on(&self, text: &str) -> bool {
        let lines = text.lines().skip(self.first - 1);
        lines
            .take(self.quoted.len())
            .map(cut)
            .eq(self.quoted.iter().cloned())
    }

    /// The file and its lines: `a.rs:3` or `a.rs:3-5`.
    pub fn place(&self) -> String {
        match self.last - self.first {
            0 => format!("{}:{}", self.path, self.first),
            _ => format!("{}:{}-{}", self.path, self.first, self.last),
        }
    }

    /// Returns the comment with the state of its lines in another version of the file, given as by
    /// [`quotable`]. `None` if the file is deleted.
    pub fn follow(self, lines: Option<&[String]>) -> FollowedComment {
        let lines = lines.unwrap_or_default();
        let open = position(lines, &self.quoted).map(|at| at + self.quoted.len());
        let (status, line) = match open.or_else(|| self.last_in_place(lines)) {
            None => (CommentStatus::Stale, None),
            line if open.is_some() => (CommentStatus::Open, line),
            line => (CommentStatus::Addressed, line),
        };
        FollowedComment {
            comment: self,
            status,
            line,
        }
    }

    /// Returns the number of the last line of those that replaced the commented ones. `None` if no
    /// line did, or if the place cannot be found.
    fn last_in_place(&self, lines: &[String]) -> Option<usize> {
        let start = match self.before.as_slice() {
            [] => Some(0),
            // The nearest line alone will do if the one in front of it changed.
            before => (0..before.len()).find_map(|skipped| {
                let near = &before[skipped..];
                position(lines, near).map(|at| at + near.len())
            }),
        }?;
        let rest = &lines[start..];
        let end = match self.after.as_slice() {
            [] => Some(rest.len()),
            after => (1..=after.len())
                .rev()
                .find_map(|count| position(rest, &after[..count])),
        }?;
        (end > 0).then_some(start + end)
    }
}

/// Returns the lines of a file as comments quote them.
pub fn quotable(text: &str) -> Vec<String> {
    text.lines().map(cut).collect()
}

/// Writes `comments.md`.
pub fn render(comments: &[LineComment]) -> String {
    let mut text = format!("{TITLE}\n");
    for comment in comments {
        let number = comment.first - comment.before.len();
        let lines = [&comment.before, &comment.quoted, &comment.after];
        let quoted: String = lines
            .iter()
            .flat_map(|part| part.iter())
            .map(|line| format!("{line}\n"))
            .collect();
        let fence = fence_for(&quoted, 4);
        let [before, quoted_count] = [comment.before.len(), comment.quoted.len()];
        text.push_str(&format!(
            "\n## {}\n\nQuoted from line {number}: {before} in front, {quoted_count} meant\n\n{fence}text\n{quoted}{fence}\n\n",
            comment.place()
        ));
        for line in comment.text.lines() {
            text.push_str(&format!("> {line}\n"));
        }
    }
    text
}

/// Reads `comments.md`. `None` if it is not what [`render`] writes, or has more than
/// [`MAX_COMMENTS`].
pub fn parse(text: &str) -> Option<Vec<LineComment>> {
    let mut lines = text
        .strip_prefix(TITLE)?
        .strip_prefix('\n')?
        .lines()
        .peekable();
    let mut comments = Vec::new();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let comment = parse_comment(line, &mut lines)?;
        (comments.len() < MAX_COMMENTS).then_some(())?;
        comments.push(comment);
    }
    Some(comments)
}

/// Reads the comment below a heading.
fn parse_comment(heading: &str, lines: &mut Peekable<Lines<'_>>) -> Option<LineComment> {
    let (path, range) = heading.strip_prefix("## ")?.rsplit_once(':')?;
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let [first, last] = [number(first)?, number(last)?];
    lines.next().filter(|line| line.is_empty())?;
    let (before, meant) = parse_counts(lines.next()?)?;
    lines.next().filter(|line| line.is_empty())?;
    let mut quoted = parse_quoted(lines)?;
    lines.next().filter(|line| line.is_empty())?;
    let mut text = Vec::new();
    while let Some(line) = lines.next_if(|line| line.starts_with('>')) {
        text.push(line.strip_prefix("> ").unwrap_or(&line[1..]));
    }

    let is_valid = before <= AROUND
        && (1..=MAX_QUOTED).contains(&meant)
        && (before + meant..=before + meant + AROUND).contains(&quoted.len())
        && first > before
        && first <= last;
    is_valid.then_some(())?;
    let after = quoted.split_off(before + meant);
    let meant = quoted.split_off(before);
    Some(LineComment {
        path: RepoPath::parse(path).ok()?,
        first,
        last,
        before: quoted,
        quoted: meant,
        after,
        text: text.join("\n"),
    })
}

/// Returns how many of the quoted lines are in front of the commented ones, and how many are
/// commented.
fn parse_counts(line: &str) -> Option<(usize, usize)> {
    let counts = line.strip_prefix("Quoted from line ")?;
    let (_, counts) = counts.split_once(": ")?;
    let (before, meant) = counts.split_once(" in front, ")?;
    Some((number(before)?, number(meant.strip_suffix(" meant")?)?))
}

/// Reads a code block. `None` if it does not end.
fn parse_quoted(lines: &mut Peekable<Lines<'_>>) -> Option<Vec<String>> {
    let fence = lines.next()?.strip_suffix("text")?;
    let is_fence = fence.len() >= 4 && fence.bytes().all(|byte| byte == b'`');
    is_fence.then_some(())?;
    let mut quoted = Vec::new();
    loop {
        match lines.next()? {
            line if line == fence => return Some(quoted),
            line => quoted.push(line.to_owned()),
        }
    }
}

const INTRODUCTION: &str =
    "Please change the plan as these comments on its result say. The rest of it can stay.\n";

pub fn message(comments: &[LineComment]) -> String {
    let mut text = INTRODUCTION.to_owned();
    for comment in comments {
        let lines = match comment.last - comment.first {
            0 => format!("line {}", comment.first),
            _ => format!("lines {} to {}", comment.first, comment.last),
        };
        let quoted = comment.quoted.join("\n");
        let fence = fence_for(&quoted, 4);
        text.push_str(&format!(
            "\n## {}, {lines}\n{fence}text\n{quoted}\n{fence}\n{}\n",
            comment.path, comment.text
        ));
    }
    text
}

/// Returns the first line of the first comment in a message to the model. `None` for another message.
pub fn first_line(message: &str) -> Option<&str> {
    let mut lines = message.strip_prefix(INTRODUCTION)?.lines().skip(2);
    let fence = lines.next()?.strip_suffix("text")?;
    lines.find(|line| *line == fence)?;
    lines.find(|line| !line.trim().is_empty())
}

/// Returns the position of the only place at which `part` is. `None` if there are none or several.
fn position(lines: &[String], part: &[String]) -> Option<usize> {
    let mut places = lines.windows(part.len().max(1)).enumerate();
    let (at, _) = places.find(|(_, window)| *window == part)?;
    let is_only = !places.any(|(_, window)| window == part);
    is_only.then_some(at)
}

fn number(text: &str) -> Option<usize> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

/// Returns the text of a comment, without control characters but the tab.
fn plain_text(text: &str) -> String {
    let lines: Vec<String> = text
        .trim()
        .lines()
        .map(|line| sanitize_tabbed(line.trim_end_matches('\r')))
        .collect();
    lines.join("\n")
}

/// Returns a line as it is quoted: not longer than [`MAX_LINE`], and without control characters but
/// the tab, which a FIND that is copied from it needs.
fn cut(line: &str) -> String {
    let line: String = line.chars().take(MAX_LINE).collect();
    sanitize_tabbed(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "fn a() {\n    slow();\n    slow();\n}\n\nfn b() {\n    slow();\n}\n";

    fn comment(first: usize, last: usize, text: &str) -> LineComment {
        let path = RepoPath::parse("src/a.rs").unwrap();
        LineComment::on(path, first, last, TEXT, text).unwrap()
    }

    #[test]
    fn cm1_a_comment_quotes_its_lines_and_those_around_them() {
        let rendered = render(&[
            comment(2, 3, "This is slow.\n\n## Really"),
            comment(1, 1, "Why?"),
        ]);
        assert_eq!(
            rendered,
            "# Comments\n\n## src/a.rs:2-3\n\nQuoted from line 1: 1 in front, 2 meant\n\n````text\n\
             fn a() {\n    slow();\n    slow();\n}\n\n````\n\n> This is slow.\n> \n> ## Really\n\n\
             ## src/a.rs:1\n\nQuoted from line 1: 0 in front, 1 meant\n\n````text\n\
             fn a() {\n    slow();\n    slow();\n````\n\n> Why?\n"
        );
    }

    #[test]
    fn cm1_tabs_are_quoted_as_they_are() {
        let path = RepoPath::parse("a.go").unwrap();
        let text = "func f() {\n\treturn 1\n}\n";
        let comment = LineComment::on(path, 2, 2, text, "not\t1\u{7}").unwrap();
        assert_eq!(comment.quoted, ["\treturn 1"]);
        assert_eq!(comment.text, "not\t1\\u{7}");
        assert!(!comment.is_on(&text.replace('\t', "        ")));
        assert_eq!(
            parse(&render(std::slice::from_ref(&comment))),
            Some(vec![comment])
        );
    }

    #[test]
    fn cm2_lines_that_the_file_does_not_have_cannot_be_commented() {
        let path = || RepoPath::parse("a").unwrap();
        for (first, last) in [(0, 1), (3, 2), (8, 9), (usize::MAX, usize::MAX)] {
            assert_eq!(LineComment::on(path(), first, last, TEXT, "x"), None);
        }
    }

    #[test]
    fn cm3_what_is_written_is_read_back_and_nothing_else_is_read() {
        let odd = "````\n> quoted\n# Comments\n\u{1b}[31m";
        let path = RepoPath::parse("a:1 b").unwrap();
        let odd = LineComment::on(path, 1, 4, odd, "````\n## a:1\n> b\n").unwrap();
        let control = comment(1, 1, " \u{1b}[31mred\r\r\nb\0\n");
        assert_eq!(control.text, "\\u{1b}[31mred\nb\\u{0}");
        let comments = [comment(2, 3, "a\nb"), odd, control, comment(8, 8, "")];
        let text = render(&comments);
        assert_eq!(parse(&text).unwrap(), comments);

        let good = render(&[comment(2, 2, "x")]);
        let broken = [
            good.replace("# Comments", "# Remarks"),
            good.replace("src/a.rs", "../a.rs"),
            good.replace("src/a.rs", ".git/config"),
            good.replace(":2", ":0"),
            good.replace(":2\n", ":99999999999999999999999\n"),
            good.replace("1 meant", "41 meant"),
            good.replace("1 in front", "3 in front"),
            good.replace("````text", "```text"),
            good.replace("\n````\n", "\n"),
            format!("{good}\nmore\n"),
        ];
        for text in broken {
            assert_eq!(parse(&text), None, "{text}");
        }
        let many = vec![comment(2, 2, "x"); MAX_COMMENTS + 1];
        assert_eq!(parse(&render(&many)), None);
    }

    #[test]
    fn cm4_the_status_says_what_became_of_the_lines() {
        let check = |version: Option<&str>, status, line: Option<usize>| {
            let lines = version.map(quotable);
            let followed = comment(2, 3, "x").follow(lines.as_deref());
            assert_eq!(
                (followed.status, followed.line),
                (status, line),
                "{version:?}"
            );
        };
        check(Some(TEXT), CommentStatus::Open, Some(3));
        let moved = format!("use x;\n\n{TEXT}");
        check(Some(&moved), CommentStatus::Open, Some(5));
        let changed = TEXT.replacen("    slow();\n    slow();\n", "    fast();\n", 1);
        check(Some(&changed), CommentStatus::Addressed, Some(2));
        let removed = TEXT.replacen("    slow();\n    slow();\n", "", 1);
        check(Some(&removed), CommentStatus::Stale, None);
        check(Some("something else\n"), CommentStatus::Stale, None);
        check(Some(""), CommentStatus::Stale, None);
        check(None, CommentStatus::Stale, None);
    }

    #[test]
    fn cm5_the_message_has_each_comment_with_its_lines() {
        assert_eq!(
            message(&[comment(2, 3, "Cache it.")]),
            "Please change the plan as these comments on its result say. The rest of it can stay.\n\n\
             ## src/a.rs, lines 2 to 3\n````text\n    slow();\n    slow();\n````\nCache it.\n"
        );
        let two = message(&[comment(2, 3, "Cache it.\nSoon."), comment(1, 1, "Why?")]);
        assert_eq!(first_line(&two), Some("Cache it."));
        assert_eq!(first_line("Cache it."), None);
    }
}
