//! A model's Markdown, shown as the text that it is, with light tones: headings, quotes, code.

use super::style::{Line, Tone};

/// Returns the lines of a message.
pub fn lines(message: &str) -> Vec<Line> {
    let mut fence: Option<&str> = None;
    message.lines().map(|line| styled(line, &mut fence)).collect()
}

/// Returns one line, following the code blocks that open and close.
fn styled<'a>(line: &'a str, fence: &mut Option<&'a str>) -> Line {
    let trimmed = line.trim_start();
    let run = fence_run(trimmed);
    match *fence {
        Some(open) if run.len() >= open.len() && run.starts_with(open) && trimmed.trim_end() == run => {
            *fence = None;
            Line::of(Tone::Faint, line)
        }
        Some(_) => Line::of(Tone::Accent, line),
        None if run.len() >= 3 => {
            *fence = Some(run);
            Line::of(Tone::Faint, line)
        }
        None if is_heading(trimmed) => Line::of(Tone::Strong, line),
        None if trimmed.starts_with('>') => Line::of(Tone::Faint, line),
        None => inline(line),
    }
}

/// Returns the backticks or tildes at the start of a line.
fn fence_run(line: &str) -> &str {
    let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'));
    let length = sign.map_or(0, |sign| line.chars().take_while(|&c| c == sign).count());
    &line[..length]
}

/// Tells whether the line is `# ` to `###### `.
fn is_heading(line: &str) -> bool {
    let level = line.chars().take_while(|&c| c == '#').count();
    (1..=6).contains(&level) && line[level..].starts_with(' ')
}

/// Returns a line with its code spans in the tone of code.
fn inline(line: &str) -> Line {
    let pieces: Vec<&str> = line.split('`').collect();
    if pieces.len().is_multiple_of(2) {
        return Line::plain(line);
    }
    let code = |line: Line, (at, piece): (usize, &&str)| match at % 2 {
        0 => line.with(Tone::Plain, piece),
        _ => line.with(Tone::Accent, &format!("`{piece}`")),
    };
    pieces.iter().enumerate().fold(Line::default(), code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares text and tones of a message.
    fn check(message: &str, expected: &[(Tone, &str)]) {
        let lines = lines(message);
        let found: Vec<(Tone, &str)> = lines.iter().flat_map(Line::spans).map(|s| (s.tone, s.text())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn headings_quotes_and_code_have_tones() {
        check("# A\n> b\n`c` d", &[(Tone::Strong, "# A"), (Tone::Faint, "> b"), (Tone::Accent, "`c`"), (Tone::Plain, " d")]);
    }

    #[test]
    fn a_heading_inside_a_block_is_code() {
        check(
            "````\n# a\n```\n````\nb",
            &[(Tone::Faint, "````"), (Tone::Accent, "# a"), (Tone::Accent, "```"), (Tone::Faint, "````"), (Tone::Plain, "b")],
        );
    }

    #[test]
    fn an_odd_backtick_is_text() {
        check("it`s", &[(Tone::Plain, "it`s")]);
    }
}
