//! Parses and creates Markdown code fences.
//!
//! Line ends are those of CommonMark: `\n`, `\r\n` and `\r`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLine<'a> {
    /// The line without its end.
    pub text: &'a str,
    /// `\n`, `\r\n` or `\r`. Empty for a last line without one.
    pub ending: &'a str,
}

/// An opening or closing fence in the sense of CommonMark, with any indentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FenceLine<'a> {
    /// Indentation in columns, with tab stops at multiples of 4.
    pub indent: usize,
    /// The backtick or tilde.
    pub mark: u8,
    /// Length of the run, at least 3.
    pub len: usize,
    /// The info string, trimmed.
    pub info: &'a str,
}

impl FenceLine<'_> {
    /// Returns whether it closes a block that a fence of this character and length opened.
    pub fn closes(&self, mark: u8, len: usize) -> bool {
        self.mark == mark && self.len >= len && self.info.is_empty()
    }
}

/// Tells the lines of code blocks from other lines, given in order.
#[derive(Debug, Default)]
pub struct FenceTracker {
    /// Character and length of the open fence.
    open: Option<(u8, usize)>,
}

impl FenceTracker {
    /// Returns whether the next line belongs to a code block, fences included.
    pub fn is_code(&mut self, line: &str) -> bool {
        let fence = read(line);
        let Some((mark, len)) = self.open else {
            self.open = fence.map(|fence| (fence.mark, fence.len));
            return fence.is_some();
        };
        if fence.is_some_and(|fence| fence.closes(mark, len)) {
            self.open = None;
        }
        true
    }
}

/// Splits a text into lines. A final line end does not start another line.
pub fn split_lines(text: &str) -> impl Iterator<Item = TextLine<'_>> {
    let mut remaining = text;
    std::iter::from_fn(move || {
        if remaining.is_empty() {
            return None;
        }

        let end = memchr::memchr2(b'\n', b'\r', remaining.as_bytes()).unwrap_or(remaining.len());
        let after = match &remaining.as_bytes()[end..] {
            [b'\r', b'\n', ..] => end + 2,
            [] => end,
            _ => end + 1,
        };
        let line = TextLine {
            text: &remaining[..end],
            ending: &remaining[end..after],
        };

        remaining = &remaining[after..];
        Some(line)
    })
}

/// Parses a line as a fence. `None` for a backtick fence with a backtick in its info string.
pub fn read(line: &str) -> Option<FenceLine<'_>> {
    let (indent, body) = split_indent(line);
    let mark = *body
        .as_bytes()
        .first()
        .filter(|b| matches!(b, b'`' | b'~'))?;
    let len = body.bytes().take_while(|&b| b == mark).count();
    let info = body[len..].trim_matches([' ', '\t']);
    let fence = len >= 3 && (mark == b'~' || !info.contains('`'));

    fence.then_some(FenceLine {
        indent,
        mark,
        len,
        info,
    })
}

/// Returns the width of a text in columns, with tab stops at multiples of 4.
pub fn columns(text: &str) -> usize {
    text.chars().fold(0, |column, c| {
        if c == '\t' {
            column / 4 * 4 + 4
        } else {
            column + 1
        }
    })
}

/// Removes `indent` columns of whitespace from a line, or fewer from a blank line. `None` if the
/// line is indented less.
pub fn dedented(line: &str, indent: usize) -> Option<&str> {
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

/// Returns the indentation in columns, and the rest of the line.
pub fn split_indent(line: &str) -> (usize, &str) {
    let body = line.trim_start_matches([' ', '\t']);
    (columns(&line[..line.len() - body.len()]), body)
}

/// Returns the length of the longest run of an ASCII character.
pub fn longest_run(text: &str, mark: char) -> usize {
    let mark = u8::try_from(mark).unwrap_or_default();
    let bytes = text.as_bytes();
    let (mut longest, mut at) = (0, 0);
    while let Some(offset) = memchr::memchr(mark, &bytes[at..]) {
        let start = at + offset;
        let run = bytes[start..].iter().take_while(|&&b| b == mark).count();
        longest = longest.max(run);
        at = start + run;
    }

    longest
}

/// Returns a backtick fence longer than any run of backticks in the content.
pub fn fence_for(text: &str, min_len: usize) -> String {
    "`".repeat(min_len.max(3).max(longest_run(text, '`') + 1))
}

/// A code block without a line end.
pub fn fenced(text: &str, info: &str, min_len: usize) -> String {
    let fence = fence_for(text, min_len);
    format!("{fence}{info}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_lines(text: &str, expected: &[(&str, &str)]) {
        let lines: Vec<_> = split_lines(text).map(|l| (l.text, l.ending)).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn lines_end_at_every_kind_of_line_end() {
        check_lines(
            "a\nb\r\nc\rd",
            &[("a", "\n"), ("b", "\r\n"), ("c", "\r"), ("d", "")],
        );
        check_lines("\r\r\n\n", &[("", "\r"), ("", "\r\n"), ("", "\n")]);
        check_lines("", &[]);
    }

    fn check_fence(line: &str, expected: Option<(usize, char, usize, &str)>) {
        assert_eq!(
            read(line).map(|f| (f.indent, char::from(f.mark), f.len, f.info)),
            expected,
            "{line:?}"
        );
    }

    #[test]
    fn a_fence_has_three_marks_and_no_backtick_behind_backticks() {
        check_fence("```", Some((0, '`', 3, "")));
        check_fence("  ~~~~ md x \t", Some((2, '~', 4, "md x")));
        check_fence("\t```sh", Some((4, '`', 3, "sh")));
        check_fence(" \t```", Some((4, '`', 3, "")));
        check_fence("~~~ a`b", Some((0, '~', 3, "a`b")));
        check_fence("``` a`b", None);
        check_fence("``", None);
        check_fence("x ```", None);
    }

    #[test]
    fn a_fence_is_longer_than_any_run_inside() {
        assert_eq!(fence_for("plain", 3), "```");
        assert_eq!(fence_for("a ```` b\n```", 3), "`````");
        assert_eq!(fence_for("x", 6), "``````");
        assert_eq!(longest_run("~~ ~~~ ~", '~'), 3);
    }
}
