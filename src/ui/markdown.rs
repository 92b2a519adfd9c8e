//! Styles Markdown for the terminal: records keep their source text, messages of the model are
//! rendered.

use super::style::{StyledLine, StyledSpan, Tone};
use crate::text::fence;

/// Returns the source lines with styles. Nothing is removed.
pub fn lines(message: &str) -> Vec<StyledLine> {
    let mut open = None;
    message
        .lines()
        .map(|line| styled(line, &mut open))
        .collect()
}

/// Renders Markdown: removes the marks of headings, strong text and fences, and uses bullets. Code
/// spans keep their backticks, so they are visible without colors.
pub fn rendered(message: &str) -> Vec<StyledLine> {
    let mut open = None;
    let mut lines = Vec::new();
    for line in message.lines() {
        let was_open = open.is_some();
        let toned = styled(line, &mut open);
        match (was_open, open.is_some()) {
            (true, true) => lines.push(StyledLine::plain("  ").append(toned)),
            (false, false) => lines.push(unmarked(line)),
            // The line is an opening or closing fence.
            _ => {}
        }
    }

    lines
}

/// Like [`rendered`], with a bar before each line to set it off from TeDDy's messages.
pub fn quoted(message: &str) -> Vec<StyledLine> {
    rendered(message)
        .into_iter()
        .map(|line| StyledLine::of(Tone::Faint, "▌ ").append(line))
        .collect()
}

fn unmarked(line: &str) -> StyledLine {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    if is_heading(text) {
        return StyledLine::of(Tone::Strong, text.trim_start_matches('#').trim_start());
    }

    // A plan holds a message with this escape, because a heading of the first level ends it.
    let text = text
        .strip_prefix('\\')
        .filter(|rest| is_heading(rest))
        .unwrap_or(text);
    if let Some(quoted) = text.strip_prefix('>') {
        return StyledLine::of(Tone::Faint, &format!("{indent}│ {}", quoted.trim_start()));
    }

    let item = ["- ", "* ", "+ "]
        .iter()
        .find_map(|mark| text.strip_prefix(mark));
    let (start, text) = item.map_or((indent.to_owned(), text), |item| {
        (format!("{indent}• "), item)
    });
    let inside = |line: StyledLine, span: &StyledSpan| match span.tone {
        Tone::Strong => line.with(Tone::Strong, span.text().trim_matches('*')),
        tone => line.with(tone, span.text()),
    };

    inline(text)
        .spans()
        .iter()
        .fold(StyledLine::plain(&start), inside)
}

struct OpenCodeBlock {
    mark: u8,
    length: usize,
    is_diff: bool,
}

/// Tracks the open code block across lines.
fn styled(line: &str, block: &mut Option<OpenCodeBlock>) -> StyledLine {
    let fence = fence::read(line);
    let closes =
        |open: &OpenCodeBlock| fence.is_some_and(|fence| fence.closes(open.mark, open.length));
    let trimmed = line.trim_start();

    match (block.as_ref(), fence) {
        (Some(open), _) if closes(open) => {
            *block = None;
            StyledLine::of(Tone::Faint, line)
        }
        (Some(open), _) if open.is_diff => StyledLine::of(of_difference(line), line),
        (Some(_), _) => StyledLine::of(Tone::Accent, line),
        (None, Some(fence)) => {
            *block = Some(OpenCodeBlock {
                mark: fence.mark,
                length: fence.len,
                is_diff: matches!(fence.info, "diff" | "patch"),
            });
            StyledLine::of(Tone::Faint, line)
        }
        (None, None) if is_heading(trimmed) => StyledLine::of(Tone::Strong, line),
        (None, None) if trimmed.starts_with('>') => StyledLine::of(Tone::Faint, line),
        (None, None) => inline(line),
    }
}

fn of_difference(line: &str) -> Tone {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Tone::Strong,
        [b'@', b'@', ..] => Tone::Accent,
        [b'+', ..] => Tone::Added,
        [b'-', ..] => Tone::Removed,
        _ => Tone::Plain,
    }
}

fn is_heading(line: &str) -> bool {
    let level = line.chars().take_while(|&c| c == '#').count();
    (1..=6).contains(&level) && line[level..].starts_with(' ')
}

/// Styles code spans and strong text. Keeps all marks.
fn inline(line: &str) -> StyledLine {
    let pieces: Vec<&str> = line.split('`').collect();
    // An unpaired backtick is literal.
    if pieces.len().is_multiple_of(2) {
        return strong(StyledLine::default(), line);
    }

    let code = |line: StyledLine, (at, piece): (usize, &&str)| match at % 2 {
        0 => strong(line, piece),
        _ => line.with(Tone::Accent, &format!("`{piece}`")),
    };
    pieces.iter().enumerate().fold(StyledLine::default(), code)
}

/// Styles text between `**`, keeping the marks.
fn strong(line: StyledLine, text: &str) -> StyledLine {
    let pieces: Vec<&str> = text.split("**").collect();
    if pieces.len().is_multiple_of(2) {
        return line.with(Tone::Plain, text);
    }

    let toned = |line: StyledLine, (at, piece): (usize, &&str)| match at % 2 {
        0 => line.with(Tone::Plain, piece),
        _ => line.with(Tone::Strong, &format!("**{piece}**")),
    };
    pieces.iter().enumerate().fold(line, toned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(message: &str, expected: &[(Tone, &str)]) {
        let lines = lines(message);
        let spans: Vec<(Tone, &str)> = lines
            .iter()
            .flat_map(StyledLine::spans)
            .map(|s| (s.tone, s.text()))
            .collect();
        assert_eq!(spans, expected);
    }

    #[test]
    fn a_message_is_rendered_without_its_marks() {
        let message = "# Which?\n> you said\n\n- **One** or `two`\n  * three\n\n```sh\n# ls\n```\n2 * 3 ** 4\n\\# Title";
        let lines: Vec<String> = rendered(message)
            .iter()
            .map(|line| line.spans().iter().map(StyledSpan::text).collect())
            .collect();
        assert_eq!(
            lines,
            [
                "Which?",
                "│ you said",
                "",
                "• One or `two`",
                "  • three",
                "",
                "  # ls",
                "2 * 3 ** 4",
                "# Title"
            ]
        );
        let tones: Vec<Tone> = rendered(message)[3]
            .spans()
            .iter()
            .map(|span| span.tone)
            .collect();
        assert_eq!(
            tones,
            [Tone::Plain, Tone::Strong, Tone::Plain, Tone::Accent]
        );
    }

    #[test]
    fn headings_quotes_and_code_have_tones() {
        check(
            "# A\n> b\n`c` d",
            &[
                (Tone::Strong, "# A"),
                (Tone::Faint, "> b"),
                (Tone::Accent, "`c`"),
                (Tone::Plain, " d"),
            ],
        );
    }

    #[test]
    fn a_heading_inside_a_block_is_code() {
        check(
            "````\n# a\n```\n````\nb",
            &[
                (Tone::Faint, "````"),
                (Tone::Accent, "# a"),
                (Tone::Accent, "```"),
                (Tone::Faint, "````"),
                (Tone::Plain, "b"),
            ],
        );
    }

    #[test]
    fn a_difference_is_coloured() {
        let tones: Vec<Tone> = lines("```diff\n--- a\n@@ -1 +1 @@\n-x\n+y\n z\n```")
            .iter()
            .map(|line| line.spans()[0].tone)
            .collect();
        assert_eq!(
            tones,
            [
                Tone::Faint,
                Tone::Strong,
                Tone::Accent,
                Tone::Removed,
                Tone::Added,
                Tone::Plain,
                Tone::Faint
            ]
        );
    }

    #[test]
    fn strong_text_is_strong_and_keeps_its_marks() {
        check(
            "a **b** `**c**`",
            &[
                (Tone::Plain, "a "),
                (Tone::Strong, "**b**"),
                (Tone::Plain, " "),
                (Tone::Accent, "`**c**`"),
            ],
        );
        check("2 ** 3", &[(Tone::Plain, "2 ** 3")]);
    }

    #[test]
    fn an_odd_backtick_is_text() {
        check("it`s", &[(Tone::Plain, "it`s")]);
    }
}
