//! Renders turns or sessions side by side as a table.

use unicode_width::UnicodeWidthStr as _;

use crate::text::sanitize::sanitize_line;
use crate::workflow::compare::Side;

/// Returns a table with one column per side.
pub fn table(sides: &[Side]) -> String {
    let row = |name: &str, cell: &dyn Fn(&Side) -> String| -> Vec<String> {
        let cells = sides
            .iter()
            .map(|side| sanitize_line(&cell(side)).into_owned());
        std::iter::once(format!("{name:7}")).chain(cells).collect()
    };
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
    let mut rows = vec![
        row("", &|side| side.name.clone()),
        row("status", &|side| side.status.word().to_owned()),
        row("model", &|side| listed(&side.models)),
        row("turns", &|side| side.turns.to_string()),
        row("files", &|side| side.files.to_string()),
        row("lines", &|side| {
            let lines = side.added.zip(side.removed);
            or_unknown(lines.map(|(added, removed)| format!("+{added} -{removed}")))
        }),
        row("tokens", &|side| {
            let tokens = side.tokens_in.zip(side.tokens_out);
            or_unknown(tokens.map(|(read, written)| format!("{read} in, {written} out")))
        }),
        row("cost", &|side| {
            or_unknown(side.cost.map(|cost| format!("${cost:.2}")))
        }),
        row("time", &|side| {
            or_unknown(side.seconds.map(|time| format!("{time:.1} s")))
        }),
    ];
    if sides.iter().any(|side| side.check.is_some()) {
        rows.push(row("check", &|side| match &side.check {
            Some(run) if run.has_not_run() => format!("cannot test (exit {})", run.exit_code),
            Some(run) => format!("exit {} in {:.1} s", run.exit_code, run.seconds),
            None => UNKNOWN.to_owned(),
        }));
    }
    aligned(&rows)
}

/// Returns rows of the same length as lines with aligned columns.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |at: usize| rows.iter().map(|row| row[at].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths);
        let cells =
            cells.map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.width())));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

const UNKNOWN: &str = "-";

fn listed(names: &[String]) -> String {
    match names {
        [] => UNKNOWN.to_owned(),
        names => names.join(", "),
    }
}
