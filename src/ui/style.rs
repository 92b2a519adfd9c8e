//! Text for the screen: lines of toned spans, and how they become bytes of a terminal.
//!
//! A [`StyledLine`] can only be built from text that went through `visible`, so that nothing in it
//! can hide, move or recolour what the person reads. Widths are columns, not characters.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::visible::{visible, visible_text};

/// What stands before a row that continues the one above.
const FOLD: &str = "↪ ";

/// A text of more bytes has no tones.
const MAX_STYLED: usize = 8 << 20;

/// Columns from one tab stop to the next.
const TAB: usize = 4;

/// What a piece of text means; the terminal's own palette decides how that looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Nothing special.
    Plain,
    /// A heading, a name.
    Strong,
    /// Less important.
    Faint,
    /// A line that comes.
    Added,
    /// A line that goes.
    Removed,
    /// What differs in a line that comes.
    AddedPart,
    /// What differs in a line that goes.
    RemovedPart,
    /// Something to look at before saying yes.
    Warning,
    /// A key, a position, code.
    Accent,
}

/// A piece of one tone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledSpan {
    /// How it looks.
    pub tone: Tone,
    /// The text, free of deceptive characters.
    text: String,
}

/// One line of the screen, without its line end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StyledLine {
    /// Its pieces, from left to right.
    spans: Vec<StyledSpan>,
    /// The columns of all pieces: a line from elsewhere may have any number of them.
    columns: usize,
}

/// When colours are used: `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorChoice {
    /// On a terminal that takes them, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Whether lines are written with colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// With escape sequences of our own.
    Colors,
    /// As bare text.
    Bare,
}

impl ColorChoice {
    /// Returns what applies to a stream, which may be a terminal that takes colours; `no_color` is
    /// the variable of that name.
    pub fn paint(self, terminal: bool, no_color: Option<&str>) -> Paint {
        let allowed = no_color.is_none_or(str::is_empty);
        match self {
            ColorChoice::Always => Paint::Colors,
            ColorChoice::Auto if terminal && allowed => Paint::Colors,
            ColorChoice::Auto | ColorChoice::Never => Paint::Bare,
        }
    }
}

impl StyledSpan {
    /// Returns the text as it is shown.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl StyledLine {
    /// Returns a line of one tone.
    pub fn of(tone: Tone, text: &str) -> StyledLine {
        StyledLine::default().with(tone, text)
    }

    /// Returns a line without a tone.
    pub fn plain(text: &str) -> StyledLine {
        StyledLine::of(Tone::Plain, text)
    }

    /// Returns a line of pieces that are visible already.
    fn of_spans(spans: Vec<StyledSpan>) -> StyledLine {
        let columns = spans.iter().map(|span| span.text.width()).sum();
        StyledLine { spans, columns }
    }

    /// Returns the line with a piece more; tabs become blanks, whatever deceives a code point.
    #[must_use]
    pub fn with(mut self, tone: Tone, text: &str) -> StyledLine {
        let text = visible(&expand_tabs(text, self.columns)).into_owned();
        if !text.is_empty() {
            self.columns += text.width();
            self.spans.push(StyledSpan { tone, text });
        }
        self
    }

    /// Returns the line with blanks behind it, however many.
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

    /// Returns the line with another one behind it.
    #[must_use]
    pub fn join(mut self, other: StyledLine) -> StyledLine {
        self.columns += other.columns;
        self.spans.extend(other.spans);
        self
    }

    /// Returns its pieces.
    pub fn spans(&self) -> &[StyledSpan] {
        &self.spans
    }

    /// Returns its width in columns.
    pub fn width(&self) -> usize {
        self.columns
    }

    /// Returns its text without tones.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns the line, with an ellipsis at its end where it is wider than `width`.
    #[must_use]
    pub fn cut(self, width: usize) -> StyledLine {
        if self.width() <= width {
            return self;
        }

        let rows = self.wrap(width.saturating_sub(1).max(1));
        let first = rows.into_iter().next().unwrap_or_default();
        first.with(Tone::Faint, "…")
    }

    /// Returns the line in pieces that are no wider than `width`; an empty line is one piece.
    pub fn wrap(self, width: usize) -> Vec<StyledLine> {
        if self.width() <= width {
            return vec![self];
        }

        let (mut lines, mut row) = (Vec::new(), Vec::new());
        let mut used = 0;
        for span in self.spans {
            for c in span.text.chars() {
                let columns = c.width().unwrap_or(0);
                if used + columns > width && used > 0 {
                    lines.push(StyledLine::of_spans(std::mem::take(&mut row)));
                    used = 0;
                }

                used += columns;
                push(&mut row, span.tone, c);
            }
        }

        lines.push(StyledLine::of_spans(row));
        lines
    }

    /// Returns the line in rows for reading: broken at blanks where that is possible, each further
    /// row indented and marked, so that it cannot pass for a line of its own.
    pub fn fold(self, width: usize) -> Vec<StyledLine> {
        if self.width() <= width {
            return vec![self];
        }

        let cells: Vec<(Tone, char)> = self
            .spans
            .iter()
            .flat_map(|span| span.text.chars().map(|c| (span.tone, c)))
            .collect();
        let indent = cells
            .iter()
            .take_while(|(_, c)| *c == ' ')
            .count()
            .min(width / 3);
        let mark = if width > 2 * FOLD.width() + indent {
            FOLD
        } else {
            ""
        };

        let (mut rows, mut rest) = (Vec::new(), cells.as_slice());
        while !rest.is_empty() {
            let start = if rows.is_empty() {
                StyledLine::default()
            } else {
                StyledLine::default().blanks(indent).with(Tone::Faint, mark)
            };

            let (row, behind) = rest.split_at(taken(rest, width.saturating_sub(start.width())));
            let mut spans = start.spans;
            row.iter().for_each(|&(tone, c)| push(&mut spans, tone, c));
            rows.push(StyledLine::of_spans(spans));
            rest = behind;
        }

        rows
    }

    /// Returns the line as bytes for a terminal, without a line end.
    pub fn paint(&self, paint: Paint) -> String {
        match paint {
            Paint::Bare => self.text(),
            Paint::Colors => self.spans.iter().map(painted).collect(),
        }
    }
}

/// Returns lines as bytes for a terminal or a pager, each with its line end.
pub fn text(lines: &[StyledLine], paint: Paint) -> String {
    lines.iter().map(|line| line.paint(paint) + "\n").collect()
}

/// Returns a text of any length as bytes for a terminal or a pager: in lines as they are made of it,
/// or without tones where it is so long that its lines would take many times its size.
pub fn long_text(
    long: &str,
    lines: impl Fn(&str) -> Vec<StyledLine>,
    paint: Paint,
) -> Cow<'_, str> {
    match long.len() > MAX_STYLED {
        true => visible_text(long),
        false => text(&lines(long), paint).into(),
    }
}

/// Returns every line of a text in one tone.
pub fn block(tone: Tone, text: &str) -> Vec<StyledLine> {
    text.lines()
        .map(|line| StyledLine::of(tone, line))
        .collect()
}

/// Returns all lines, folded to the width.
pub fn wrap_all(lines: Vec<StyledLine>, width: usize) -> Vec<StyledLine> {
    lines
        .into_iter()
        .flat_map(|line| line.fold(width.max(1)))
        .collect()
}

/// Returns how many characters of a row are taken, so that it ends behind a blank where one is
/// near.
fn taken(cells: &[(Tone, char)], width: usize) -> usize {
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

/// Adds a character to the last piece, or starts one where the tone changes.
fn push(spans: &mut Vec<StyledSpan>, tone: Tone, c: char) {
    match spans.last_mut() {
        Some(last) if last.tone == tone => last.text.push(c),
        _ => spans.push(StyledSpan {
            tone,
            text: c.to_string(),
        }),
    }
}

/// Replaces tabs by blanks up to the next stop, for a text that starts at a column.
fn expand_tabs(text: &str, column: usize) -> String {
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

    expanded
}

/// Returns a piece between its escape sequences.
fn painted(span: &StyledSpan) -> String {
    let code = match span.tone {
        Tone::Plain => return span.text.clone(),
        Tone::Strong => "1",
        Tone::Faint => "2",
        Tone::Added => "32",
        Tone::Removed => "31",
        Tone::AddedPart => "1;4;32",
        Tone::RemovedPart => "1;4;31",
        Tone::Warning => "33",
        Tone::Accent => "36",
    };
    format!("\x1b[{code}m{}\x1b[0m", span.text)
}

#[cfg(test)]
mod tests;
