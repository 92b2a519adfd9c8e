//! Styled text for the terminal.
//!
//! A [`StyledLine`] can be built only from text that passed through `visible`, so nothing in it can
//! hide, move or recolor what the user reads. Widths are columns, not characters.

use std::borrow::Cow;
use std::iter::Peekable;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::sanitize::{sanitize_line, sanitize_text};

/// Marks a row that continues the one above.
const FOLD: &str = "↪ ";

/// In bytes. A longer text is not styled.
const MAX_STYLED: usize = 8 << 20;

const TAB: usize = 4;

/// Meaning of a piece of text. The terminal's palette determines the color.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// A heading or a name.
    Strong,
    /// Less important text.
    Faint,
    Added,
    Removed,
    /// The changed part of an added line.
    AddedPart,
    /// The changed part of a removed line.
    RemovedPart,
    /// Something to check before approving.
    Warning,
    /// A key, a position, or code.
    Accent,
    /// The question that decides about a plan.
    Question,
}

/// Text of one tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledSpan {
    pub tone: Tone,
    /// Contains no deceptive characters.
    text: String,
}

/// One line without its line end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StyledLine {
    spans: Vec<StyledSpan>,
    /// Total width. Cached, because a line can have very many spans and each `with` needs it.
    columns: usize,
}

/// Which escape sequences to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Colors,
    /// Bold, faint and reversed text without colors.
    Weights,
    /// As plain text.
    Bare,
}

impl StyledSpan {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn width(&self) -> usize {
        width(&self.text)
    }

    fn paint(&self, paint: Paint) -> String {
        let (weight, color) = self.tone.codes();
        let codes = match paint {
            Paint::Bare => "",
            Paint::Weights => weight,
            Paint::Colors if weight.is_empty() => color,
            Paint::Colors if color.is_empty() => weight,
            Paint::Colors => return format!("\x1b[{weight};{color}m{}\x1b[0m", self.text),
        };
        match codes {
            "" => self.text.clone(),
            codes => format!("\x1b[{codes}m{}\x1b[0m", self.text),
        }
    }
}

impl Tone {
    /// Returns the parameters of the escape sequence: weight, then color.
    fn codes(self) -> (&'static str, &'static str) {
        match self {
            Tone::Plain => ("", ""),
            Tone::Strong => ("1", ""),
            Tone::Faint => ("2", ""),
            Tone::Added => ("", "32"),
            Tone::Removed => ("", "31"),
            Tone::AddedPart => ("1;4", "32"),
            Tone::RemovedPart => ("1;4", "31"),
            Tone::Warning => ("", "33"),
            Tone::Accent => ("", "36"),
            Tone::Question => ("1;7", ""),
        }
    }
}

impl StyledLine {
    pub fn of(tone: Tone, text: &str) -> StyledLine {
        StyledLine::default().with(tone, text)
    }

    pub fn plain(text: &str) -> StyledLine {
        StyledLine::of(Tone::Plain, text)
    }

    /// The spans must contain visible text only.
    fn of_spans(spans: Vec<StyledSpan>) -> StyledLine {
        let columns = spans.iter().map(|span| width(&span.text)).sum();
        StyledLine { spans, columns }
    }

    /// Appends text. Tabs become spaces, deceptive characters become code points.
    #[must_use]
    pub fn with(mut self, tone: Tone, text: &str) -> StyledLine {
        let text = sanitize_line(&expand_tabs(text, self.columns)).into_owned();
        if !text.is_empty() {
            self.columns += width(&text);
            self.spans.push(StyledSpan { tone, text });
        }
        self
    }

    /// Appends this many spaces.
    #[must_use]
    pub fn blanks(mut self, number: usize) -> StyledLine {
        if number > 0 {
            self.columns += number;
            self.spans.push(StyledSpan {
                tone: Tone::Plain,
                text: " ".repeat(number),
            });
        }
        self
    }

    #[must_use]
    pub fn append(mut self, other: StyledLine) -> StyledLine {
        self.columns += other.columns;
        self.spans.extend(other.spans);
        self
    }

    pub fn spans(&self) -> &[StyledSpan] {
        &self.spans
    }

    pub fn width(&self) -> usize {
        self.columns
    }

    /// Returns the text without tones.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Cuts a line that is wider than `width`, ending it with an ellipsis.
    #[must_use]
    pub fn cut(self, width: usize) -> StyledLine {
        if self.width() <= width {
            return self;
        }

        let mut cells = self.cells().peekable();
        let first = take_row(&mut cells, width.saturating_sub(1).max(1));
        first.with(Tone::Faint, "…")
    }

    /// Returns the line without its first `columns` columns, of which there must be at least one.
    #[must_use]
    pub fn skip(self, columns: usize) -> StyledLine {
        let mut cells = self.cells().peekable();
        take_row(&mut cells, columns);
        take_row(&mut cells, usize::MAX)
    }

    /// Splits the line into rows of at most `width` columns. An empty line is one row.
    pub fn wrap(self, width: usize) -> Vec<StyledLine> {
        if self.width() <= width {
            return vec![self];
        }

        let mut rows = Vec::new();
        let mut cells = self.cells().peekable();
        while cells.peek().is_some() {
            rows.push(take_row(&mut cells, width));
        }
        rows
    }

    /// Splits the line into rows for reading, at spaces if possible. Further rows are indented and
    /// marked, so they can't be mistaken for lines of their own.
    pub fn fold(self, width: usize) -> Vec<StyledLine> {
        if self.width() <= width {
            return vec![self];
        }

        let cells: Vec<(Tone, char)> = self.cells().collect();
        let indent = cells
            .iter()
            .take_while(|(_, c)| *c == ' ')
            .count()
            .min(width / 3);
        // On a very narrow screen, the mark would leave no columns for text.
        let mark = if width > 2 * FOLD.width() + indent {
            FOLD
        } else {
            ""
        };

        let (mut rows, mut remaining) = (Vec::new(), cells.as_slice());
        while !remaining.is_empty() {
            let start = if rows.is_empty() {
                StyledLine::default()
            } else {
                StyledLine::default().blanks(indent).with(Tone::Faint, mark)
            };

            let (row, tail) =
                remaining.split_at(row_length(remaining, width.saturating_sub(start.width())));
            let mut spans = start.spans;
            row.iter().for_each(|&(tone, c)| push(&mut spans, tone, c));
            rows.push(StyledLine::of_spans(spans));
            remaining = tail;
        }

        rows
    }

    fn cells(&self) -> impl Iterator<Item = (Tone, char)> {
        self.spans
            .iter()
            .flat_map(|span| span.text.chars().map(move |c| (span.tone, c)))
    }

    /// Returns the line for a terminal, without a line end.
    pub fn paint(&self, paint: Paint) -> String {
        self.spans.iter().map(|span| span.paint(paint)).collect()
    }
}

/// Returns lines for a terminal or a pager, each with a line end.
pub fn text(lines: &[StyledLine], paint: Paint) -> String {
    lines.iter().map(|line| line.paint(paint) + "\n").collect()
}

/// Styles a text with `lines`. A text beyond 8 MiB is returned without styles.
pub fn long_text(
    long: &str,
    lines: impl Fn(&str) -> Vec<StyledLine>,
    paint: Paint,
) -> Cow<'_, str> {
    match long.len() > MAX_STYLED {
        // Its lines would take many times its size.
        true => sanitize_text(long),
        false => text(&lines(long), paint).into(),
    }
}

pub fn block(tone: Tone, text: &str) -> Vec<StyledLine> {
    text.lines()
        .map(|line| StyledLine::of(tone, line))
        .collect()
}

pub fn wrap_all(lines: Vec<StyledLine>, width: usize) -> Vec<StyledLine> {
    lines
        .into_iter()
        .flat_map(|line| line.fold(width.max(1)))
        .collect()
}

/// Number of characters for the next row. Ends after a space, if there is one in the second half.
fn row_length(cells: &[(Tone, char)], width: usize) -> usize {
    let mut used = 0;
    let fits = cells.iter().take_while(|(_, c)| {
        used += c.width().unwrap_or(0);
        used <= width
    });
    let most = fits.count().max(1);
    if most >= cells.len() {
        return cells.len();
    }

    let blank = cells[..most]
        .iter()
        .rposition(|&(_, c)| c == ' ')
        .map(|at| at + 1);
    blank.filter(|&at| at > most / 2).unwrap_or(most)
}

/// Appends a character to the last span if the tone is the same.
fn push(spans: &mut Vec<StyledSpan>, tone: Tone, c: char) {
    match spans.last_mut() {
        Some(last) if last.tone == tone => last.text.push(c),
        _ => spans.push(StyledSpan {
            tone,
            text: c.to_string(),
        }),
    }
}

/// Takes the cells of one row, at least one.
fn take_row(cells: &mut Peekable<impl Iterator<Item = (Tone, char)>>, width: usize) -> StyledLine {
    let (mut spans, mut used) = (Vec::new(), 0);
    let columns = |c: char| c.width().unwrap_or(0);
    while let Some((tone, c)) = cells.next_if(|(_, c)| used == 0 || used + columns(*c) <= width) {
        used += columns(c);
        push(&mut spans, tone, c);
    }
    StyledLine::of_spans(spans)
}

/// Returns the width of sanitized text. A line can have megabytes, mostly ASCII.
fn width(text: &str) -> usize {
    let (mut columns, mut rest) = (0, text);
    while !rest.is_ascii() {
        let is_other = |byte: u8| !byte.is_ascii();
        let first = rest.bytes().position(is_other).unwrap_or(rest.len());
        // The last one can be the beginning of an emoji, such as a keycap.
        let start = first.saturating_sub(1);
        let others = rest.bytes().skip(first).position(|byte| byte.is_ascii());
        let end = others.map_or(rest.len(), |others| first + others);
        columns += start + rest[start..end].width();
        rest = &rest[end..];
    }
    columns + rest.len()
}

/// `column` is where the text starts, for the tab stops.
fn expand_tabs(text: &str, column: usize) -> Cow<'_, str> {
    if !text.contains('\t') {
        return Cow::Borrowed(text);
    }
    let mut expanded = String::with_capacity(text.len());
    let mut column = column;
    for c in text.chars() {
        let blanks = TAB - column % TAB;
        if c == '\t' {
            expanded.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        } else {
            expanded.push(c);
            column += c.width().unwrap_or(0);
        }
    }

    Cow::Owned(expanded)
}

/// In columns, if the output is not a terminal.
const DEFAULT_WIDTH: usize = 100;

/// Space available to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextArea {
    pub width: usize,
    pub height: usize,
}

impl TextArea {
    /// For files and pipes: nothing is shortened.
    pub const UNLIMITED: TextArea = TextArea {
        width: DEFAULT_WIDTH,
        height: usize::MAX,
    };
}

/// Fits a text into `width` columns: cut at a word, with an ellipsis. A word that would leave less
/// than half of the columns in use is cut itself.
pub fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }

    let (mut kept, mut used) = (String::new(), 0);
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used >= width {
            break;
        }
        kept.push(c);
    }
    let is_at_word = text[kept.len()..].starts_with(char::is_whitespace);
    if !is_at_word
        && let Some(end) = kept.rfind(char::is_whitespace)
        && 2 * kept[..end].width() >= width
    {
        kept.truncate(end);
    }
    kept.truncate(kept.trim_end().len());
    kept + "…"
}

/// Fits a name into `width` columns with an ellipsis in the middle: names that are made from one
/// another differ at the end.
pub fn shortened_within(name: &str, width: usize) -> String {
    let count = name.chars().count();
    if count <= width {
        return name.to_owned();
    }
    let end = width.saturating_sub(1) / 2;
    let start = width.saturating_sub(1 + end);
    let chars = |skipped: usize, taken: usize| name.chars().skip(skipped).take(taken);
    let start = chars(0, start).collect::<String>();
    start + "…" + &chars(count - end, end).collect::<String>()
}

#[cfg(test)]
mod tests;
