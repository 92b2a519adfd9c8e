//! Draws the turns of a session as a line from bottom to top, with branches and restores.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::fragments::status_class;
use crate::session::name::SessionName;
use crate::workflow::log::LogRow;

/// Height of a row in SVG units, 16 to a `rem`. `style.css` contains the same height.
pub const ROW_HEIGHT: usize = 60;
const LANE_WIDTH: usize = 18;
/// Horizontal position of the session's own line.
const OWN_LANE_X: usize = 28;
/// Branches drawn next to each other. The row of the turn lists all of them.
const MOST_LANES: usize = 3;
/// In rows. A longer line of a restore is not drawn.
const MOST_BACK: usize = 40;

/// Branches and restores of a session.
#[derive(Debug, Clone, Default)]
pub struct Branching {
    /// Sessions that branch off, by the last turn that they share.
    pub forks: BTreeMap<u64, Vec<SessionName>>,
    /// Target of each restore, by the number of the restoring turn.
    pub back: BTreeMap<u64, u64>,
}

/// Draws the line next to `rows`, which are newest first.
pub fn graph(rows: &[LogRow], branching: &Branching) -> Markup {
    if rows.is_empty() {
        return html! {};
    }

    let lanes = branching
        .forks
        .values()
        .map(Vec::len)
        .max()
        .unwrap_or(0)
        .min(MOST_LANES);
    let (width, height) = (
        OWN_LANE_X + 14 + LANE_WIDTH * lanes,
        ROW_HEIGHT * rows.len(),
    );
    let rem = |units: usize| format!("{}rem", units as f64 / 16.0);
    html! {
        svg.graph viewBox={ "0 0 " (width) " " (height) } width=(rem(width)) height=(rem(height))
            aria-hidden="true" {
            line.own x1=(OWN_LANE_X) x2=(OWN_LANE_X) y1=(row_middle(0)) y2=(row_middle(rows.len() - 1)) {}
            @for (at, row) in rows.iter().enumerate() {
                @if let Some(target) = branching.back.get(&row.number) { (draw_back_edge(rows, at, *target)) }
                @let forks = branching.forks.get(&row.number).map_or(0, Vec::len);
                @for lane in 1..=forks.min(MOST_LANES) { (draw_fork(at, lane)) }
            }
            @for (at, row) in rows.iter().enumerate() {
                circle class={ "dot " (status_class(row.status)) } cx=(OWN_LANE_X) cy=(row_middle(at)) r="5.5" {}
            }
        }
    }
}

/// Returns the width of the drawing in SVG units.
pub fn graph_width(branching: &Branching) -> usize {
    let lanes = branching.forks.values().map(Vec::len).max().unwrap_or(0);
    OWN_LANE_X + 14 + LANE_WIDTH * lanes.min(MOST_LANES)
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
