//! Plain aligned tables for lists on stdout, and dates as distances.

use jiff::Zoned;

use super::style::{Line, Paint, Tone};

/// The blanks between two columns.
const GAP: usize = 2;

/// How a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table: a heading for each column, then rows of as many cells.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Heading and alignment of each column.
    columns: Vec<(String, Option<Align>)>,
    /// The rows.
    rows: Vec<Vec<Line>>,
}

impl Table {
    /// Returns a table without rows; a heading that starts with `>` stands right, as its column does.
    pub fn new(headings: &[&str]) -> Table {
        let column = |heading: &&str| match heading.strip_prefix('>') {
            Some(name) => (name.to_owned(), Some(Align::Right)),
            None => ((*heading).to_owned(), None),
        };
        Table { columns: headings.iter().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Line>) {
        self.rows.push(cells);
    }

    /// Returns heading and rows; the last column is cut where a line would be wider than `width`.
    pub fn lines(&self, width: Option<usize>) -> Vec<Line> {
        let heading = self.columns.iter().map(|(name, _)| Line::of(Tone::Faint, name)).collect();
        let widths: Vec<usize> = (0..self.columns.len()).map(|at| self.width(at)).collect();
        let rows = std::iter::once(&heading).chain(&self.rows);
        rows.map(|cells| self.aligned(cells, &widths)).map(|line| width.map_or(line.clone(), |width| line.cut(width))).collect()
    }

    /// Returns the table as text that ends with a line end.
    pub fn text(&self, width: Option<usize>, paint: Paint) -> String {
        self.lines(width).iter().map(|line| line.paint(paint).trim_end().to_owned() + "\n").collect()
    }

    /// Returns the width of a column.
    fn width(&self, at: usize) -> usize {
        let heading = Line::plain(&self.columns[at].0).width();
        self.rows.iter().filter_map(|row| row.get(at)).map(Line::width).max().unwrap_or(0).max(heading)
    }

    /// Returns one row with its cells in their columns.
    fn aligned(&self, cells: &[Line], widths: &[usize]) -> Line {
        let mut line = Line::default();
        for (at, cell) in cells.iter().enumerate().take(widths.len()) {
            let blanks = widths[at].saturating_sub(cell.width());
            let last = at + 1 == widths.len();
            line = match self.columns[at].1 {
                Some(Align::Right) => line.blanks(blanks).join(cell.clone()),
                _ if last => line.join(cell.clone()),
                _ => line.join(cell.clone()).blanks(blanks),
            };
            line = if last { line } else { line.blanks(GAP) };
        }
        line
    }
}

/// Returns how long ago a time was: `just now`, `5 minutes ago`, `3 days ago`, then the date.
pub fn relative(then: &Zoned, now: &Zoned) -> String {
    let seconds = now.timestamp().as_second() - then.timestamp().as_second();
    let ago = |number: i64, unit: &str| format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" });
    match seconds {
        i64::MIN..=-60 => then.date().to_string(),
        -59..=59 => "just now".to_owned(),
        60..=3599 => ago(seconds / 60, "minute"),
        3600..=86_399 => ago(seconds / 3600, "hour"),
        86_400..=1_209_599 => ago(seconds / 86_400, "day"),
        _ => then.date().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_width() {
        let mut table = Table::new(&["NAME", ">TURNS", "TITLE"]);
        table.row(vec![Line::plain("日本"), Line::plain("3"), Line::plain("Add a thing")]);
        table.row(vec![Line::plain("a"), Line::plain("12"), Line::plain("b")]);
        assert_eq!(table.text(None, Paint::Bare), "NAME  TURNS  TITLE\n日本      3  Add a thing\na        12  b\n");
        assert_eq!(table.text(Some(18), Paint::Bare), "NAME  TURNS  TITLE\n日本      3  Add …\na        12  b\n");
    }

    #[test]
    fn a_table_without_rows_has_its_heading() {
        assert_eq!(Table::new(&["A", "B"]).text(None, Paint::Bare), "A  B\n");
    }

    /// Compares how long ago a time was.
    fn check(then: &str, expected: &str) {
        let now: Zoned = "2026-03-10T12:00:00+00:00[UTC]".parse().unwrap();
        assert_eq!(relative(&then.parse().unwrap(), &now), expected);
    }

    #[test]
    fn times_are_distances_then_dates() {
        check("2026-03-10T11:59:30+00:00[UTC]", "just now");
        check("2026-03-10T11:59:00+00:00[UTC]", "1 minute ago");
        check("2026-03-10T09:00:00+00:00[UTC]", "3 hours ago");
        check("2026-03-08T09:00:00+00:00[UTC]", "2 days ago");
        check("2026-01-08T09:00:00+00:00[UTC]", "2026-01-08");
        check("2026-04-08T09:00:00+00:00[UTC]", "2026-04-08");
    }
}
