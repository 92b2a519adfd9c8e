//! Chart of a session's usage: tokens as bars, total cost as a line.

use maud::{Markup, html};

use super::words::{dollars, number, short};
use crate::workflow::log::LogRow;

/// Width and height in SVG units.
const SIZE: (f64, f64) = (960.0, 200.0);
/// Margins for labels: left, top, right, bottom.
const EDGE: [f64; 4] = [52.0, 12.0, 60.0, 22.0];
/// With more turns than this, each bar stands for several.
const MOST_BARS: usize = 160;

/// Consecutive turns, shown as one bar.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bar {
    first: u64,
    last: u64,
    read: u64,
    written: u64,
    /// In dollars, including all earlier turns.
    cost: f64,
}

/// Returns the chart of turns that are given newest first. Empty if no model reported tokens.
pub fn chart(rows: &[LogRow]) -> Markup {
    let bars = bars(rows);
    let most = bars
        .iter()
        .map(|bar| bar.read.saturating_add(bar.written))
        .max();
    let most = most.unwrap_or_default();
    if most == 0 {
        return html! {};
    }

    let cost = bars.last().map_or(0.0, |bar| bar.cost);
    let (first, last) = (bars[0].first, bars[bars.len() - 1].last);
    let (read, written) = (sum(&bars, |bar| bar.read), sum(&bars, |bar| bar.written));
    let said = format!(
        "Turns {first} to {last}: {} tokens read, {} written, {} in all",
        number(read),
        number(written),
        dollars(cost)
    );
    html! {
        figure.chart {
            svg viewBox={ "0 0 " (SIZE.0) " " (SIZE.1) } role="img" aria-label=(said) {
                (axes(most, cost, (first, last)))
                @for (at, bar) in bars.iter().enumerate() { (drawn(bar, at, bars.len(), most)) }
                @if cost > 0.0 { polyline.cost points=(line(&bars, cost)) {} }
            }
            figcaption {
                span.key.read { "read" } " " span.key.written { "written" }
                @if cost > 0.0 { " " span.key.sum { "cost so far" } }
                " · " (said)
            }
        }
    }
}

/// Groups turns into bars, oldest first.
fn bars(rows: &[LogRow]) -> Vec<Bar> {
    // Turn 0 only starts the session.
    let rows: Vec<&LogRow> = rows.iter().rev().filter(|row| row.number > 0).collect();
    let group = rows.len().div_ceil(MOST_BARS).max(1);
    let mut cost = 0.0;
    let bar = |rows: &[&LogRow]| {
        let sum = |part: fn(&LogRow) -> Option<u64>| {
            let numbers = rows.iter().filter_map(|row| part(row));
            numbers.fold(0, u64::saturating_add)
        };
        let costs = rows.iter().filter_map(|row| row.cost);
        cost += costs
            // A record from elsewhere can contain `.nan` or a negative cost.
            .filter(|cost| cost.is_finite() && *cost > 0.0)
            .sum::<f64>();
        Bar {
            first: rows.first().map_or(0, |row| row.number),
            last: rows.last().map_or(0, |row| row.number),
            read: sum(|row| row.tokens_in),
            written: sum(|row| row.tokens_out),
            cost,
        }
    };
    rows.chunks(group).map(bar).collect()
}

fn sum(bars: &[Bar], part: fn(&Bar) -> u64) -> u64 {
    bars.iter().map(part).fold(0, u64::saturating_add)
}

fn place(at: usize, count: usize) -> (f64, f64) {
    let width = (SIZE.0 - EDGE[0] - EDGE[2]) / count.max(1) as f64;
    (EDGE[0] + width * at as f64, width)
}

fn height(part: f64, whole: f64) -> f64 {
    (SIZE.1 - EDGE[1] - EDGE[3]) * (part / whole).clamp(0.0, 1.0)
}

/// One decimal is enough and keeps the page small.
fn px(number: f64) -> String {
    format!("{number:.1}")
}

fn drawn(bar: &Bar, at: usize, count: usize, most: u64) -> Markup {
    let (left, width) = place(at, count);
    let wide = (width * 0.72).clamp(0.8, 36.0);
    let x = left + (width - wide) / 2.0;
    let foot = SIZE.1 - EDGE[3];
    let [read, written] = [bar.read, bar.written].map(|n| height(n as f64, most as f64));
    let turns = match bar.first == bar.last {
        true => format!("turn {}", bar.first),
        false => format!("turns {} to {}", bar.first, bar.last),
    };
    html! {
        g {
            title {
                (turns) ": " (number(bar.read)) " read, " (number(bar.written)) " written"
            }
            rect.read x=(px(x)) y=(px(foot - read)) width=(px(wide)) height=(px(read)) {}
            rect.written x=(px(x)) y=(px(foot - read - written)) width=(px(wide))
                height=(px(written)) {}
        }
    }
}

fn axes(most: u64, cost: f64, (first, last): (u64, u64)) -> Markup {
    let (foot, right) = (SIZE.1 - EDGE[3], SIZE.0 - EDGE[2]);
    html! {
        @for part in [0.0, 0.5, 1.0] {
            @let y = foot - height(part, 1.0);
            line.grid x1=(px(EDGE[0])) x2=(px(right)) y1=(px(y)) y2=(px(y)) {}
            text.axis x=(px(EDGE[0] - 8.0)) y=(px(y + 4.0)) text-anchor="end" {
                (short((most as f64 * part) as u64))
            }
            @if cost > 0.0 {
                text.axis x=(px(right + 8.0)) y=(px(y + 4.0)) { (dollars(cost * part)) }
            }
        }
        text.axis x=(px(EDGE[0])) y=(px(SIZE.1 - 4.0)) { "turn " (first) }
        @if last > first {
            text.axis x=(px(right)) y=(px(SIZE.1 - 4.0)) text-anchor="end" { "turn " (last) }
        }
    }
}

fn line(bars: &[Bar], cost: f64) -> String {
    let point = |(at, bar): (usize, &Bar)| {
        let (left, width) = place(at, bars.len());
        let y = SIZE.1 - EDGE[3] - height(bar.cost, cost);
        format!("{},{}", px(left + width / 2.0), px(y))
    };
    let points: Vec<String> = bars.iter().enumerate().map(point).collect();
    points.join(" ")
}
