//! Renders turns or sessions side by side as a table.

use unicode_width::UnicodeWidthStr as _;

use crate::text::sanitize::sanitize_line;
use crate::workflow::compare::Side;

/// Returns a table with one column per side.
pub fn table(sides: &[Side]) -> String {
    let mut rows: Vec<(&str, Vec<String>)> = vec![("", column(sides, |side| side.name.clone()))];
    rows.push((
        "status",
        column(sides, |side| side.status.word().to_owned()),
    ));
    rows.push(("model", column(sides, |side| listed(&side.models))));
    rows.push(("turns", column(sides, |side| side.turns.to_string())));
    rows.push(("files", column(sides, |side| side.files.to_string())));
    rows.push(("lines", column(sides, changed_lines)));
    rows.push(("tokens", column(sides, tokens)));

    let cost = |side: &Side| {
        side.cost
            .map_or(UNKNOWN.to_owned(), |cost| format!("${cost:.2}"))
    };
    rows.push(("cost", column(sides, cost)));
    let time = |side: &Side| {
        side.seconds
            .map_or(UNKNOWN.to_owned(), |time| format!("{time:.1} s"))
    };

    rows.push(("time", column(sides, time)));
    if sides.iter().any(|side| side.check.is_some()) {
        let code = |side: &Side| match &side.check {
            Some(run) if run.has_not_run() => format!("cannot test (exit {})", run.exit_code),
            Some(run) => format!("exit {} in {:.1} s", run.exit_code, run.seconds),
            None => UNKNOWN.to_owned(),
        };
        rows.push(("check", column(sides, code)));
    }

    let widths: Vec<usize> = (0..sides.len())
        .map(|at| {
            rows.iter()
                .map(|(_, cells)| cells[at].width())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for (name, cells) in rows {
        let mut line = format!("{name:7}");
        for (cell, width) in cells.iter().zip(&widths) {
            line.push_str("  ");
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.width()));
        }

        text.push_str(line.trim_end());
        text.push('\n');
    }

    text
}

const UNKNOWN: &str = "-";

fn column(sides: &[Side], cell: impl Fn(&Side) -> String) -> Vec<String> {
    sides
        .iter()
        .map(|side| sanitize_line(&cell(side)).into_owned())
        .collect()
}

fn listed(names: &[String]) -> String {
    match names {
        [] => UNKNOWN.to_owned(),
        names => names.join(", "),
    }
}

fn changed_lines(side: &Side) -> String {
    match (side.added, side.removed) {
        (Some(added), Some(removed)) => format!("+{added} -{removed}"),
        _ => UNKNOWN.to_owned(),
    }
}

fn tokens(side: &Side) -> String {
    match (side.tokens_in, side.tokens_out) {
        (Some(read), Some(written)) => format!("{read} in, {written} out"),
        _ => UNKNOWN.to_owned(),
    }
}
