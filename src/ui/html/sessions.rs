//! First page: all sessions.

use maud::{Markup, html};

use super::forest::forest;
use super::fragments::{dollars, local_time, status_badge, visible_line};
use super::layout::{PageLocation, PageParts, page, session_page};
use crate::text::sanitize::sanitize_block;
use crate::workflow::history::SessionRow;
use crate::workflow::view::timeline::{SessionLane, Timeline};

/// Data of the first page.
pub struct Overview<'a> {
    /// Name of the project.
    pub project: &'a str,
    /// Local sessions.
    pub timeline: &'a Timeline,
    /// Sessions fetched from remotes.
    pub remote: &'a [SessionRow],
}

/// Returns the page.
pub fn sessions(location: PageLocation, overview: &Overview<'_>) -> String {
    let Overview {
        project,
        timeline,
        remote,
    } = overview;
    let lanes = &timeline.sessions;
    let main = html! {
        h1 { (visible_line(project)) }
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
            ul.rows { @for row in *remote { (fetched(location, row)) } }
        }
    };
    let parts = PageParts {
        title: &visible_line(project),
        above: &[],
        neighbors: [None, None],
        main,
    };
    page(location, parts)
}

fn session(location: PageLocation, lane: &SessionLane) -> Markup {
    let newest = lane.rows.first();
    let turns = lane.rows.iter().filter(|row| row.number > 0).count();
    let costs = lane.rows.iter().filter_map(|row| row.cost);
    let cost: f64 = costs.filter(|cost| cost.is_finite()).sum();
    html! {
        li.row {
            p.title {
                a data-item href=(location.to(&session_page(&lane.name))) { (visible_line(lane.name.as_str())) }
                @if lane.in_use { " " span.badge.current { "in use" } }
                @if let Some(row) = newest { " " (status_badge(row.status)) }
            }
            @if let Some(row) = newest { p { (visible_line(&row.title)) } }
            p.facts {
                span { (turns) @if turns == 1 { " turn" } @else { " turns" } }
                @if let Some((parent, number)) = &lane.parent {
                    span { "from " (visible_line(parent.as_str())) ":" (number) }
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
            p.title { a data-item href=(location.to(&page)) { (visible_line(&row.name)) } }
            p { (visible_line(&row.title)) }
            p.facts {
                span { (row.turns) @if row.turns == 1 { " turn" } @else { " turns" } }
                span { (local_time(row.updated.as_deref())) }
            }
        }
    }
}
