//! First page: all sessions.

use std::collections::HashMap;

use maud::{Markup, html};

use super::layout::{PageLocation, page, session_page, turn_page};
use crate::query::history::SessionRow;
use crate::query::log::LogRow;
use crate::query::view::timeline::{SessionLane, Timeline};
use crate::session::name::SessionName;
use crate::text::counted;
use crate::text::sanitize::{sanitize_block, sanitize_line};
use crate::ui::html::layout::{dollars, local_time, session_title, status_badge, status_class};

/// Returns the page. `timeline` has the local sessions, `remote` the fetched ones.
pub fn sessions(
    location: PageLocation,
    project: &str,
    timeline: &Timeline,
    remote: &[SessionRow],
) -> String {
    let lanes = &timeline.sessions;
    let main = html! {
        h1 { (sanitize_line(project)) }
        @if lanes.is_empty() {
            p.empty {
                "There are no sessions yet. " code { "teddy start" } " begins one, and "
                code { "teddy demo" } " shows how that goes."
            }
        }
        (forest(location, timeline))
        ul.rows { @for lane in lanes { (session(location, lane)) } }
        @if !remote.is_empty() {
            h2 { "Fetched" }
            ul.rows { @for row in remote { (fetched(location, row)) } }
        }
    };
    page(location, &sanitize_line(project), &[], &[None, None], main)
}

fn session(location: PageLocation, lane: &SessionLane) -> Markup {
    let newest = lane.rows.first();
    let costs = lane.rows.iter().filter_map(|row| row.cost);
    let cost: f64 = costs.filter(|cost| cost.is_finite()).sum();
    html! {
        li.row {
            p.title {
                a data-item href=(location.to(&session_page(&lane.name))) { (session_title(lane)) }
                @if lane.in_use { " " span.badge.current { "in use" } }
                @if let Some(row) = newest { " " (status_badge(row.shown_status())) }
            }
            @if let Some(row) = newest { p { (sanitize_line(&row.title)) } }
            p.facts {
                @if lane.request.is_some() { span { (sanitize_line(lane.name.as_str())) } }
                span { (counted(lane.turns(), "turn")) }
                @if let Some((parent, number)) = &lane.parent {
                    span { "from " (sanitize_line(parent.as_str())) ":" (number) }
                }
                @if cost > 0.0 { span { (dollars(cost)) } }
                @if let Some(row) = newest { span { (local_time(row.time.as_deref())) } }
            }
            @if let Some(why) = &lane.ailing {
                p.trouble { "Not all of it can be read: " (sanitize_block(why)) }
            }
        }
    }
}

fn fetched(location: PageLocation, row: &SessionRow) -> Markup {
    let page = format!("s/{}/index.html", super::layout::encoded(&row.name));
    html! {
        li.row {
            p.title { a data-item href=(location.to(&page)) { (sanitize_line(&row.name)) } }
            p { (sanitize_line(row.label())) }
            p.facts {
                span { (counted(row.turns, "turn")) }
                span { (local_time(row.updated.as_deref())) }
            }
        }
    }
}

/// Further sessions are not drawn. The page lists them.
const MOST_LANES: usize = 24;

/// Dots per line. Some turns of a longer session have none.
const MOST_DOTS: usize = 120;

const FOREST_WIDTH: f64 = 960.0;

/// End of the names, start of the lines.
const MARGIN_LEFT: f64 = 190.0;

/// Space after the longest line.
const MARGIN_RIGHT: f64 = 24.0;

const LANE_HEIGHT: f64 = 34.0;

/// Maximum distance between two turns.
const TURN_STEP: f64 = 40.0;

/// Characters of a name that fit.
const MAX_NAME_LETTERS: usize = 24;

type Point = (f64, f64);

/// Draws the sessions. Empty if there is only one, or no turn.
fn forest(location: PageLocation, timeline: &Timeline) -> Markup {
    let lanes = order_lanes(timeline);
    let last = lanes
        .iter()
        .filter_map(|lane| lane.rows.first())
        .map(|row| row.number)
        .max();
    let last = last.unwrap_or_default();
    if lanes.len() < 2 || last == 0 {
        return html! {};
    }

    let step = ((FOREST_WIDTH - MARGIN_LEFT - MARGIN_RIGHT) / last as f64).min(TURN_STEP);
    let x = |number: u64| MARGIN_LEFT + step * number.min(last) as f64;
    let lines = lanes.iter().enumerate();
    let y: HashMap<&SessionName, f64> = lines
        .map(|(at, lane)| (&lane.name, (LANE_HEIGHT * (at as f64 + 0.6)).round()))
        .collect();
    let height = LANE_HEIGHT * (lanes.len() as f64 + 0.2);
    html! {
        figure.forest {
            svg viewBox={ "0 0 " (FOREST_WIDTH) " " (height) } role="img"
                aria-label="Sessions, and where they branch off from each other" {
                @for lane in &lanes {
                    @let from = lane.parent.as_ref().and_then(|(name, number)| {
                        Some((x(*number), *y.get(name)?))
                    });
                    (draw_lane(location, lane, y[&lane.name], &x, from))
                }
            }
        }
    }
}

/// Returns each session after its parent, depth first.
fn order_lanes(timeline: &Timeline) -> Vec<&SessionLane> {
    let mut by_parent: HashMap<Option<&SessionName>, Vec<&SessionLane>> = HashMap::new();
    for lane in &timeline.sessions {
        let parent = lane.parent.as_ref().map(|(name, _)| name);
        // The parent can be deleted, or not part of the export.
        let parent = parent.filter(|name| timeline.sessions.iter().any(|lane| lane.name == **name));
        by_parent
            .entry(parent.filter(|name| **name != lane.name))
            .or_default()
            .push(lane);
    }

    let mut ordered = Vec::new();
    let mut open: Vec<&SessionLane> = by_parent.remove(&None).unwrap_or_default();
    open.reverse();
    while let Some(lane) = open.pop() {
        ordered.push(lane);
        if let Some(children) = by_parent.remove(&Some(&lane.name)) {
            open.extend(children.into_iter().rev());
        }
    }
    ordered.truncate(MOST_LANES);
    ordered
}

fn draw_lane(
    location: PageLocation,
    lane: &SessionLane,
    y: f64,
    x: &dyn Fn(u64) -> f64,
    from: Option<Point>,
) -> Markup {
    let own: Vec<&LogRow> = lane.rows.iter().rev().collect();
    let (first, last) = (
        own.first().map(|row| row.number),
        own.last().map(|row| row.number),
    );
    let every = own.len().div_ceil(MOST_DOTS).max(1);
    let dots = own.iter().rev().step_by(every);
    let branch = from.map(|(px, py)| {
        let end = first.map_or(px + TURN_STEP / 2.0, x);
        let bend = px + 14.0;
        format!("M{px:.1} {py:.1} C{bend:.1} {py:.1} {px:.1} {y:.1} {end:.1} {y:.1}")
    });
    html! {
        (draw_name(location, lane, y))
        @if let Some(branch) = branch { path.fork d=(branch) {} }
        @if let (None, Some((px, _))) = (first, from) {
            circle.fork cx=(format!("{:.1}", px + TURN_STEP / 2.0)) cy=(y) r="3" {}
        }
        @if let Some((first, last)) = first.zip(last) {
            line.own x1=(format!("{:.1}", x(first))) x2=(format!("{:.1}", x(last))) y1=(y) y2=(y) {}
        }
        @for row in dots {
            a href=(location.to(&turn_page(&lane.name, row.number))) tabindex="-1" {
                (draw_turn(row, x(row.number), y))
            }
        }
    }
}

fn draw_name(location: PageLocation, lane: &SessionLane, y: f64) -> Markup {
    let name: String = lane.name.as_str().chars().take(MAX_NAME_LETTERS).collect();
    html! {
        a href=(location.to(&session_page(&lane.name))) {
            text class=[lane.in_use.then_some("current")] x=(MARGIN_LEFT - 16.0) y=(y + 4.0)
                text-anchor="end" { (sanitize_line(&name)) @if name.len() < lane.name.as_str().len() { "…" } }
        }
    }
}

fn draw_turn(row: &LogRow, x: f64, y: f64) -> Markup {
    html! {
        circle class={ "dot " (status_class(row.shown_status())) } cx=(format!("{x:.1}")) cy=(y) r="5" {
            title { "Turn " (row.number) ": " (sanitize_line(&row.title)) }
        }
    }
}
