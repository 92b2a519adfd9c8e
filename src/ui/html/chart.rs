//! Chart of a session's usage: tokens as bars, total cost as a line.

use maud::{Markup, html};

use super::fragments::{dollars, grouped_number, short_number};
use crate::workflow::log::LogRow;

/// Width and height in SVG units.
const CHART_SIZE: (f64, f64) = (960.0, 200.0);
/// Margins for labels: left, top, right, bottom.
const CHART_MARGINS: [f64; 4] = [52.0, 12.0, 60.0, 22.0];
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
    let bars = group_into_bars(rows);
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
    let (read, written) = (
        sum_bars(&bars, |bar| bar.read),
        sum_bars(&bars, |bar| bar.written),
    );
    let summary = format!(
        "Turns {first} to {last}: {} tokens read, {} written, {} in all",
        grouped_number(read),
        grouped_number(written),
        dollars(cost)
    );
    html! {
        figure.chart {
            svg viewBox={ "0 0 " (CHART_SIZE.0) " " (CHART_SIZE.1) } role="img" aria-label=(summary) {
                (draw_axes(most, cost, (first, last)))
                @for (at, bar) in bars.iter().enumerate() { (draw_bar(bar, at, bars.len(), most)) }
                @if cost > 0.0 { polyline.cost points=(cost_points(&bars, cost)) {} }
            }
            figcaption {
                span.key.read { "read" } " " span.key.written { "written" }
                @if cost > 0.0 { " " span.key.sum { "cost so far" } }
                " · " (summary)
            }
        }
    }
}

/// Groups turns into bars, oldest first.
fn group_into_bars(rows: &[LogRow]) -> Vec<Bar> {
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

fn sum_bars(bars: &[Bar], part: fn(&Bar) -> u64) -> u64 {
    bars.iter().map(part).fold(0, u64::saturating_add)
}

fn bar_slot(at: usize, count: usize) -> (f64, f64) {
    let width = (CHART_SIZE.0 - CHART_MARGINS[0] - CHART_MARGINS[2]) / count.max(1) as f64;
    (CHART_MARGINS[0] + width * at as f64, width)
}

fn bar_height(part: f64, total: f64) -> f64 {
    (CHART_SIZE.1 - CHART_MARGINS[1] - CHART_MARGINS[3]) * (part / total).clamp(0.0, 1.0)
}

/// One decimal is enough and keeps the page small.
fn svg_number(number: f64) -> String {
    format!("{number:.1}")
}

fn draw_bar(bar: &Bar, at: usize, count: usize, most: u64) -> Markup {
    let (start, width) = bar_slot(at, count);
    let wide = (width * 0.72).clamp(0.8, 36.0);
    let x = start + (width - wide) / 2.0;
    let foot = CHART_SIZE.1 - CHART_MARGINS[3];
    let [read, written] = [bar.read, bar.written].map(|n| bar_height(n as f64, most as f64));
    let turns = match bar.first == bar.last {
        true => format!("turn {}", bar.first),
        false => format!("turns {} to {}", bar.first, bar.last),
    };
    html! {
        g {
            title {
                (turns) ": " (grouped_number(bar.read)) " read, " (grouped_number(bar.written)) " written"
            }
            rect.read x=(svg_number(x)) y=(svg_number(foot - read)) width=(svg_number(wide)) height=(svg_number(read)) {}
            rect.written x=(svg_number(x)) y=(svg_number(foot - read - written)) width=(svg_number(wide))
                height=(svg_number(written)) {}
        }
    }
}

fn draw_axes(most: u64, cost: f64, (first, last): (u64, u64)) -> Markup {
    let (foot, right_edge) = (
        CHART_SIZE.1 - CHART_MARGINS[3],
        CHART_SIZE.0 - CHART_MARGINS[2],
    );
    html! {
        @for part in [0.0, 0.5, 1.0] {
            @let y = foot - bar_height(part, 1.0);
            line.grid x1=(svg_number(CHART_MARGINS[0])) x2=(svg_number(right_edge)) y1=(svg_number(y)) y2=(svg_number(y)) {}
            text.axis x=(svg_number(CHART_MARGINS[0] - 8.0)) y=(svg_number(y + 4.0)) text-anchor="end" {
                (short_number((most as f64 * part) as u64))
            }
            @if cost > 0.0 {
                text.axis x=(svg_number(right_edge + 8.0)) y=(svg_number(y + 4.0)) { (dollars(cost * part)) }
            }
        }
        text.axis x=(svg_number(CHART_MARGINS[0])) y=(svg_number(CHART_SIZE.1 - 4.0)) { "turn " (first) }
        @if last > first {
            text.axis x=(svg_number(right_edge)) y=(svg_number(CHART_SIZE.1 - 4.0)) text-anchor="end" { "turn " (last) }
        }
    }
}

fn cost_points(bars: &[Bar], cost: f64) -> String {
    let point = |(at, bar): (usize, &Bar)| {
        let (start, width) = bar_slot(at, bars.len());
        let y = CHART_SIZE.1 - CHART_MARGINS[3] - bar_height(bar.cost, cost);
        format!("{},{}", svg_number(start + width / 2.0), svg_number(y))
    };
    let points: Vec<String> = bars.iter().enumerate().map(point).collect();
    points.join(" ")
}
