//! Page of a session: usage, and turns with their branches.

use maud::{Markup, html};

use super::layout::{PageLocation, first_crumb, page, plan_page, session_page, turn_page};
use crate::query::log::LogRow;
use crate::query::view::timeline::SessionPage;
use crate::text::grouped;
use crate::text::sanitize::{sanitize_block, sanitize_line};
use crate::ui::html::layout::{
    dollars, session_title, short_number, status_badge, status_class, turn_facts,
};

/// Returns the page.
///
/// `has_plan`: whether a plan waits, for a link to its page.
pub fn session(
    location: PageLocation,
    project: &str,
    contents: &SessionPage,
    has_plan: bool,
) -> String {
    let lane = &contents.lane;
    let main = html! {
        h1 { (session_title(lane)) @if lane.in_use { " " span.badge.current { "in use" } } }
        @if lane.request.is_some() { p.facts { span { (sanitize_line(lane.name.as_str())) } } }
        @if let Some((parent, number)) = &lane.parent {
            p.facts {
                span {
                    "branched off from "
                    a href=(location.to(&turn_page(parent, *number))) {
                        (sanitize_line(parent.as_str())) ":" (number)
                    }
                }
            }
        }
        @if let Some(why) = &lane.ailing {
            p.trouble role="alert" { "Not all of it can be read: " (sanitize_block(why)) }
        }
        @if has_plan { p { a data-item href=(location.to(&plan_page(&lane.name))) { "A plan waits for your review" } } }
        @if lane.rows.is_empty() {
            p.empty { "Nothing has happened in it since." }
        } @else {
            (totals(&lane.rows))
            (chart(&lane.rows))
            (turns(location, contents))
        }
    };
    let (title, above) = (session_title(lane), [first_crumb(project)]);
    page(location, &title, &above, &[None, None], main)
}

fn totals(rows: &[LogRow]) -> Markup {
    let sum = |part: fn(&LogRow) -> Option<u64>| {
        rows.iter().filter_map(part).fold(0, u64::saturating_add)
    };
    let costs = rows
        .iter()
        .filter_map(|row| row.cost)
        .filter(|cost| cost.is_finite());
    let mut files: Vec<&String> = rows.iter().flat_map(|row| &row.files).collect();
    files.sort_unstable();
    files.dedup();
    // Turn 0 only starts the session.
    let turns = rows.iter().filter(|row| row.number > 0).count();
    let tile = |name: &str, value: String| html! { div { dt { (name) } dd { (value) } } };
    let has = |part: fn(&LogRow) -> bool| rows.iter().any(part);
    html! {
        dl.tiles {
            (tile("Turns", turns.to_string()))
            (tile("Files changed", files.len().to_string()))
            @if has(|row| row.tokens_in.is_some()) {
                (tile("Tokens read", grouped(sum(|row| row.tokens_in))))
                (tile("Tokens written", grouped(sum(|row| row.tokens_out))))
            }
            @if has(|row| row.cost.is_some()) { (tile("Cost", dollars(costs.sum()))) }
        }
    }
}

fn turns(location: PageLocation, contents: &SessionPage) -> Markup {
    let rows = &contents.lane.rows;
    let list = html! {
        // The policy forbids `style` attributes, so the width of the drawing is a class.
        div class={ "timeline lanes-" (drawn_forks(contents)) } {
            (graph(contents))
            ol reversed { @for row in rows { (turn(location, row, contents)) } }
        }
    };
    html! {
        h2 { "Turns" }
        @if location.is_live() && rows.len() > 1 {
            form action=(location.to("compare.html")) method="get" {
                (list)
                p.actions { button type="submit" { "Compare the two marked turns" } }
            }
        } @else { (list) }
    }
}

fn turn(location: PageLocation, row: &LogRow, contents: &SessionPage) -> Markup {
    let session = &contents.lane.name;
    let forks = contents.forks.get(&row.number).into_iter().flatten();
    let name = format!("{session}:{}", row.number);
    html! {
        li.turn id={ "turn-" (row.number) } {
            div.words {
                p.title {
                    span.number { (row.number) } " "
                    a data-item href=(location.to(&turn_page(session, row.number))) {
                        (sanitize_line(&row.title))
                    }
                }
                p.facts {
                    (status_badge(row.shown_status()))
                    @for fork in forks {
                        a.badge.fork href=(location.to(&session_page(fork))) { (sanitize_line(fork.as_str())) }
                    }
                    @if let Some(target) = contents.back.get(&row.number) {
                        span { "to turn " (target) }
                    }
                    @if let Some(landed) = &row.landed { span { "on " (sanitize_line(&landed.branch)) } }
                    (turn_facts(row))
                }
            }
            @if location.is_live() {
                label.mark {
                    input type="checkbox" name="t" value=(name);
                    span.hidden { "Compare turn " (row.number) }
                }
            }
        }
    }
}

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
fn chart(rows: &[LogRow]) -> Markup {
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
    let mut summary = format!(
        "Turns {first} to {last}: {} tokens read, {} written",
        grouped(read),
        grouped(written)
    );
    if rows.iter().any(|row| row.cost.is_some()) {
        summary.push_str(&format!(", {} in all", dollars(cost)));
    }
    html! {
        figure.chart {
            svg viewBox={ "0 0 " (CHART_SIZE.0) " " (CHART_SIZE.1) } role="img" aria-label=(summary) {
                (draw_axes(most, cost, first, last))
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
                (turns) ": " (grouped(bar.read)) " read, " (grouped(bar.written)) " written"
            }
            rect.read x=(svg_number(x)) y=(svg_number(foot - read)) width=(svg_number(wide)) height=(svg_number(read)) {}
            rect.written x=(svg_number(x)) y=(svg_number(foot - read - written)) width=(svg_number(wide))
                height=(svg_number(written)) {}
        }
    }
}

fn draw_axes(most: u64, cost: f64, first: u64, last: u64) -> Markup {
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

/// Height of a row in SVG units, 16 to a `rem`. `style.css` contains the same height.
const ROW_HEIGHT: usize = 60;

const LANE_WIDTH: usize = 18;

/// Horizontal position of the session's own line.
const OWN_LANE_X: usize = 28;

/// Branches drawn next to each other. The row of the turn lists all of them.
const MOST_LANES: usize = 3;

/// In rows. A longer line of a restore is not drawn.
const MOST_BACK: usize = 40;

/// Draws the line next to the turns, of which there is at least one.
fn graph(contents: &SessionPage) -> Markup {
    let rows = &contents.lane.rows;
    let width = OWN_LANE_X + 14 + LANE_WIDTH * drawn_forks(contents);
    let height = ROW_HEIGHT * rows.len();
    let rem = |units: usize| format!("{}rem", units as f64 / 16.0);
    html! {
        svg.graph viewBox={ "0 0 " (width) " " (height) } width=(rem(width)) height=(rem(height))
            aria-hidden="true" {
            line.own x1=(OWN_LANE_X) x2=(OWN_LANE_X) y1=(row_middle(0)) y2=(row_middle(rows.len() - 1)) {}
            @for (at, row) in rows.iter().enumerate() {
                @if let Some(target) = contents.back.get(&row.number) { (draw_back_edge(rows, at, *target)) }
                @let forks = contents.forks.get(&row.number).map_or(0, Vec::len);
                @for lane in 1..=forks.min(MOST_LANES) { (draw_fork(at, lane)) }
            }
            @for (at, row) in rows.iter().enumerate() {
                circle class={ "dot " (status_class(row.shown_status())) } cx=(OWN_LANE_X) cy=(row_middle(at)) r="5.5" {}
            }
        }
    }
}

/// Number of lines drawn next to the session's own.
fn drawn_forks(contents: &SessionPage) -> usize {
    let forks = contents.forks.values().map(Vec::len);
    forks.max().unwrap_or(0).min(MOST_LANES)
}

fn row_middle(row: usize) -> usize {
    row * ROW_HEIGHT + ROW_HEIGHT / 2
}

fn draw_fork(at: usize, lane: usize) -> Markup {
    let (y, x) = (row_middle(at), OWN_LANE_X + LANE_WIDTH * lane);
    let end = y.saturating_sub(ROW_HEIGHT / 2 + 4);
    let path = format!("M{OWN_LANE_X} {y} C{x} {y} {x} {y} {x} {end}");
    html! {
        path.fork d=(path) {}
        circle.fork cx=(x) cy=(end) r="3" {}
    }
}

/// Draws the line from a restore to its target, on the left.
fn draw_back_edge(rows: &[LogRow], at: usize, target: u64) -> Markup {
    let later = rows.iter().enumerate().skip(at).take(MOST_BACK);
    let Some((to, _)) = later.into_iter().find(|(_, row)| row.number == target) else {
        return html! {};
    };
    let (from, to, x) = (row_middle(at), row_middle(to), OWN_LANE_X - 20);
    let (a, b) = (from + 16, to.saturating_sub(16).max(from + 16));
    let start = OWN_LANE_X - 6;
    let path = format!("M{start} {from} Q{x} {from} {x} {a} L{x} {b} Q{x} {to} {start} {to}");
    html! { path.back d=(path) {} }
}
