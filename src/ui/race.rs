//! Progress of a race: a table rewritten in place on a terminal, or one line per change elsewhere.

use std::io::Write;
use std::time::{Duration, Instant};

use super::progress::OutputStyle;
use super::style::{StyledLine, Tone};
use crate::text::grouped_count;
use crate::workflow::race::{LaneRow, LaneState, Spectator};

/// Minimum interval between redraws.
const REFRESH: Duration = Duration::from_millis(200);

pub struct RaceTable<W: Write> {
    out: W,
    style: OutputStyle,
    /// Rows of the table on the screen.
    drawn_rows: usize,
    drawn: Option<Instant>,
    /// States written last, if there is no terminal.
    reported: Vec<LaneState>,
    /// Remarks on the screen. Lanes that run in the same way have the same.
    remarks: Vec<String>,
}

impl<W: Write> RaceTable<W> {
    pub fn new(out: W, style: OutputStyle) -> RaceTable<W> {
        RaceTable {
            out,
            style,
            drawn_rows: 0,
            drawn: None,
            reported: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Removes the table from the screen.
    pub fn clear(&mut self) {
        if self.drawn_rows > 0 {
            let rows = std::mem::take(&mut self.drawn_rows);
            let _ = write!(self.out, "\x1b[{rows}A\x1b[J");
            let _ = self.out.flush();
        }
    }

    fn draw(&mut self, rows: &[LaneRow], width: usize) {
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= REFRESH);
        if !is_due {
            return;
        }

        self.clear();
        for line in lines(rows) {
            // A line that wraps would take two rows, and `clear` moves up by one row per lane.
            let line = line.cut(width.saturating_sub(1)).paint(self.style.paint);
            let _ = writeln!(self.out, "{line}");
        }
        let _ = self.out.flush();
        self.drawn_rows = rows.len();
        self.drawn = Some(Instant::now());
    }

    fn report_remarks(&mut self, rows: &[LaneRow]) {
        for remark in rows.iter().flat_map(|row| &row.remarks) {
            if !self.remarks.contains(remark) {
                self.clear();
                let _ = writeln!(self.out, "{remark}");
                self.remarks.push(remark.clone());
            }
        }
    }

    fn report_changes(&mut self, rows: &[LaneRow]) {
        for (at, (row, line)) in rows.iter().zip(lines(rows)).enumerate() {
            let last = self.reported.get(at).copied().unwrap_or(LaneState::Waiting);
            if last != row.state {
                let _ = writeln!(self.out, "{}", line.paint(self.style.paint));
            }
        }
        self.reported = rows.iter().map(|row| row.state).collect();
    }
}

impl<W: Write> Spectator for RaceTable<W> {
    fn watch(&mut self, rows: &[LaneRow]) {
        if self.style.is_quiet {
            return;
        }
        self.report_remarks(rows);
        match (self.style.width)() {
            Some(width) if self.style.moves_cursor => self.draw(rows, width),
            _ => self.report_changes(rows),
        }
    }
}

fn lines(rows: &[LaneRow]) -> Vec<StyledLine> {
    let longest = rows.iter().map(|row| row.model.chars().count()).max();
    let width = longest.unwrap_or_default();
    rows.iter().map(|row| line(row, width)).collect()
}

/// Formats a lane as `claude  12 s  3,400 tokens  $0.02  edit src/main.rs`.
fn line(row: &LaneRow, width: usize) -> StyledLine {
    let (sign, tone) = match row.state {
        LaneState::Waiting => ("·", Tone::Faint),
        LaneState::Running => ("▶", Tone::Accent),
        LaneState::Done => ("✓", Tone::Added),
        LaneState::Failed => ("✗", Tone::Removed),
    };
    let mut facts = format!("{:>4} s", row.seconds);
    if row.tokens > 0 {
        facts.push_str(&format!("  {}", grouped_count(row.tokens, "token")));
    }
    if let Some(cost) = row.cost {
        facts.push_str(&format!("  ${cost:.4}"));
    }

    let doing = match row.state {
        LaneState::Waiting => "waits for its turn",
        _ => &row.doing,
    };
    let first = doing.lines().next().unwrap_or_default();
    StyledLine::of(tone, &format!("{sign} "))
        .with(Tone::Strong, &format!("{:width$}  ", row.model))
        .with(Tone::Faint, &format!("{facts}  "))
        .with(Tone::Plain, first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &[LaneRow], expected: &[&str]) {
        let got: Vec<String> = lines(rows).iter().map(StyledLine::text).collect();
        assert_eq!(got, expected);
    }

    fn row(model: &str, state: LaneState, doing: &str) -> LaneRow {
        LaneRow {
            model: model.to_owned(),
            state,
            doing: doing.to_owned(),
            seconds: 12,
            tokens: 0,
            cost: None,
            remarks: Vec::new(),
        }
    }

    #[test]
    fn a_row_says_who_how_long_and_what() {
        let busy = LaneRow {
            tokens: 3400,
            cost: Some(0.02),
            ..row("claude", LaneState::Running, "edit a.txt\nmore")
        };
        check(
            &[busy, row("gpt", LaneState::Failed, "no key")],
            &[
                "▶ claude    12 s  3,400 tokens  $0.0200  edit a.txt",
                "✗ gpt       12 s  no key",
            ],
        );
    }

    #[test]
    fn where_no_line_is_rewritten_each_change_of_state_and_each_remark_is_a_line() {
        let mut out = Vec::new();
        let style = OutputStyle {
            paint: super::super::style::Paint::Bare,
            width: || Some(80),
            moves_cursor: false,
            is_quiet: false,
        };
        let mut table = RaceTable::new(&mut out, style);
        let running = row("m", LaneState::Running, "writing");
        table.watch(std::slice::from_ref(&running));
        table.watch(&[running]);
        let remarks = vec!["warning: it lacks `target`".to_owned()];
        let done = LaneRow {
            remarks,
            ..row("m", LaneState::Done, "Add it")
        };
        table.watch(&[done.clone(), done]);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "▶ m    12 s  writing\nwarning: it lacks `target`\n✓ m    12 s  Add it\n✓ m    12 s  Add it\n"
        );
    }
}
