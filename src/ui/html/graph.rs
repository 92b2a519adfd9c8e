//! The turns of a session as a line from bottom to top, with the branches that leave it.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::words::tone;
use crate::session::name::SessionName;
use crate::workflow::log::LogRow;

/// The height of a row, in units of which 16 are a `rem`; the style has the same.
pub const ROW: usize = 60;
/// The distance between two lines.
const LANE: usize = 18;
/// Where the session's own line is.
const OWN: usize = 28;
/// The most branches that are drawn beside each other; all of them are named in their rows.
const MOST_LANES: usize = 3;
/// A way back that is longer is only said.
const MOST_BACK: usize = 40;

/// What leaves the line of a session.
#[derive(Debug, Clone, Default)]
pub struct Branching {
    /// The sessions that branch off, by the turn that they share last.
    pub forks: BTreeMap<u64, Vec<SessionName>>,
    /// Where restores went, by their turn.
    pub back: BTreeMap<u64, u64>,
}

/// Draws the line beside rows, newest first.
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
    let (width, height) = (OWN + 14 + LANE * lanes, ROW * rows.len());
    let rem = |units: usize| format!("{}rem", units as f64 / 16.0);
    html! {
        svg.graph viewBox={ "0 0 " (width) " " (height) } width=(rem(width)) height=(rem(height))
            aria-hidden="true" {
            line.own x1=(OWN) x2=(OWN) y1=(middle(0)) y2=(middle(rows.len() - 1)) {}
            @for (at, row) in rows.iter().enumerate() {
                @if let Some(target) = branching.back.get(&row.number) { (way(rows, at, *target)) }
                @let forks = branching.forks.get(&row.number).map_or(0, Vec::len);
                @for lane in 1..=forks.min(MOST_LANES) { (fork(at, lane)) }
            }
            @for (at, row) in rows.iter().enumerate() {
                circle class={ "dot " (tone(row.status)) } cx=(OWN) cy=(middle(at)) r="5.5" {}
            }
        }
    }
}

/// Returns the width that the drawing takes, in units.
pub fn width(branching: &Branching) -> usize {
    let lanes = branching.forks.values().map(Vec::len).max().unwrap_or(0);
    OWN + 14 + LANE * lanes.min(MOST_LANES)
}

/// Returns the middle of a row.
fn middle(row: usize) -> usize {
    row * ROW + ROW / 2
}

/// Draws a branch that leaves.
fn fork(at: usize, lane: usize) -> Markup {
    let (y, x) = (middle(at), OWN + LANE * lane);
    let end = y.saturating_sub(ROW / 2 + 4);
    let path = format!("M{OWN} {y} C{x} {y} {x} {y} {x} {end}");
    html! {
        path.fork d=(path) {}
        circle.fork cx=(x) cy=(end) r="3" {}
    }
}

/// Draws the way back to an earlier turn, on the left.
fn way(rows: &[LogRow], at: usize, target: u64) -> Markup {
    let later = rows.iter().enumerate().skip(at).take(MOST_BACK);
    let Some((to, _)) = later.into_iter().find(|(_, row)| row.number == target) else {
        return html! {};
    };
    let (from, to, x) = (middle(at), middle(to), OWN - 20);
    let (a, b) = (from + 16, to.saturating_sub(16).max(from + 16));
    let start = OWN - 6;
    let path = format!("M{start} {from} Q{x} {from} {x} {a} L{x} {b} Q{x} {to} {start} {to}");
    html! { path.back d=(path) {} }
}
