//! Page of a session: usage, and turns with their branches.

use maud::{Markup, html};

use super::chart::chart;
use super::fragments::{dollars, grouped_number, status_badge, turn_facts, visible_line};
use super::graph::{Branching, graph, graph_width};
use super::layout::{PageLocation, PageParts, page, session_page, turn_page};
use crate::session::name::SessionName;
use crate::text::sanitize::sanitize_block;
use crate::workflow::log::LogRow;
use crate::workflow::view::session_page::SessionPage;

/// Returns the page.
pub fn session(location: PageLocation, project: &str, contents: &SessionPage) -> String {
    let lane = &contents.lane;
    let branching = Branching {
        forks: contents.forks.clone(),
        back: contents.back.clone(),
    };
    let main = html! {
        h1 { (visible_line(lane.name.as_str())) @if lane.in_use { " " span.badge.current { "in use" } } }
        @if let Some((parent, number)) = &lane.parent {
            p.facts {
                span {
                    "branched off from "
                    a href=(location.to(&turn_page(parent, *number))) {
                        (visible_line(parent.as_str())) ":" (number)
                    }
                }
            }
        }
        @if let Some(why) = &lane.ailing {
            p.trouble role="alert" { "Not all of it can be read: " (sanitize_block(why)) }
        }
        @if lane.rows.is_empty() {
            p.empty { "Nothing has happened in it since." }
        } @else {
            (totals(&lane.rows))
            (chart(&lane.rows))
            (turns(location, lane.rows.as_slice(), (&lane.name, &branching)))
        }
    };
    let above = [(visible_line(project).into_owned(), "index.html".to_owned())];
    let title = visible_line(lane.name.as_str());
    page(
        location,
        PageParts {
            title: &title,
            above: &above,
            neighbors: [None, None],
            main,
        },
    )
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
                (tile("Tokens read", grouped_number(sum(|row| row.tokens_in))))
                (tile("Tokens written", grouped_number(sum(|row| row.tokens_out))))
            }
            @if has(|row| row.cost.is_some()) { (tile("Cost", dollars(costs.sum()))) }
        }
    }
}

fn turns(
    location: PageLocation,
    rows: &[LogRow],
    (session, branching): (&SessionName, &Branching),
) -> Markup {
    let list = html! {
        // The policy forbids `style` attributes, so the width of the drawing is a class.
        div class={ "timeline lanes-" (lanes(branching)) } {
            (graph(rows, branching))
            ol reversed { @for row in rows { (turn(location, row, (session, branching))) } }
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

/// Number of lines drawn next to the session's own.
fn lanes(branching: &Branching) -> usize {
    // `LANE` of the graph.
    (graph_width(branching) - graph_width(&Branching::default())) / 18
}

fn turn(
    location: PageLocation,
    row: &LogRow,
    (session, branching): (&SessionName, &Branching),
) -> Markup {
    let forks = branching
        .forks
        .get(&row.number)
        .map_or(&[][..], Vec::as_slice);
    let name = format!("{session}:{}", row.number);
    html! {
        li.turn id={ "turn-" (row.number) } {
            div.words {
                p.title {
                    span.number { (row.number) } " "
                    a data-item href=(location.to(&turn_page(session, row.number))) {
                        (visible_line(&row.title))
                    }
                }
                p.facts {
                    (status_badge(row.status))
                    @for fork in forks {
                        a.badge.fork href=(location.to(&session_page(fork))) { (visible_line(fork.as_str())) }
                    }
                    @if let Some(target) = branching.back.get(&row.number) {
                        span { "to turn " (target) }
                    }
                    @if let Some(landed) = &row.landed { span { "on " (visible_line(&landed.branch)) } }
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
