//! Pages that answer a query, and that only the server has: one searches all sessions, the other
//! compares two turns.

use maud::{Markup, html};

use super::changes::{Changes, changes};
use super::layout::{PageLocation, dollars, first_crumb, page, status_badge, turn_page};
use crate::query::find::{FindResult, LinePattern, Match, TurnPart};
use crate::text::grouped;
use crate::text::sanitize::{sanitize_block, sanitize_line};
use crate::workflow::compare::Side;

/// Matches shown.
const MOST: usize = 300;
/// Characters shown of a line.
const MAX_LETTERS: usize = 300;

/// Searchable parts with their names in the query string.
pub const PARTS: [(TurnPart, &str); 6] = [
    (TurnPart::Request, "request"),
    (TurnPart::Plan, "plan"),
    (TurnPart::Report, "report"),
    (TurnPart::Output, "output"),
    (TurnPart::Input, "input"),
    (TurnPart::Code, "code"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSearch {
    pub text: String,
    pub parts: Vec<TurnPart>,
    /// Whether the search is case-sensitive.
    pub has_case: bool,
}

/// Returns the page. `result` has matches and the pattern, or why the search failed; `None` before
/// the first search.
pub fn search(
    location: PageLocation,
    project: &str,
    request: &WebSearch,
    result: Option<Result<(&FindResult, &LinePattern), String>>,
) -> String {
    let main = html! {
        h1 { "Search" }
        (form(location, request))
        @match &result {
            None => {},
            Some(Err(why)) => p.trouble role="alert" { (sanitize_block(why)) },
            Some(Ok((result, pattern))) => (matches(location, result, pattern)),
        }
    };
    page(
        location,
        "Search",
        &[first_crumb(project)],
        &[None, None],
        main,
    )
}

fn form(location: PageLocation, request: &WebSearch) -> Markup {
    html! {
        form.wide-search action=(location.to("find.html")) method="get" {
            p {
                input type="search" name="q" value=(request.text) aria-label="What to look for"
                    autocomplete="off" spellcheck="false" maxlength="500" size="40";
                " " button type="submit" { "Search" }
            }
            p.choices {
                @for (part, name) in PARTS {
                    label {
                        input type="checkbox" name="in" value=(name)
                            checked[request.parts.contains(&part)];
                        " " (name)
                    }
                }
                label {
                    input type="checkbox" name="case" value="1" checked[request.has_case];
                    " case counts"
                }
            }
        }
    }
}

fn matches(location: PageLocation, result: &FindResult, pattern: &LinePattern) -> Markup {
    let listed = &result.matches[..result.matches.len().min(MOST)];
    let turns = listed.chunk_by(|a, b| a.session == b.session && a.turn == b.turn);
    let count = result.matches.len();
    html! {
        p.facts role="status" {
            span { (count) @if count == 1 { " match" } @else { " matches" } }
            @if count > MOST { span { "the first " (MOST) " are shown" } }
        }
        @for why in &result.skipped { p.note { "Not searched: " (sanitize_block(why)) } }
        ul.rows {
            @for matches in turns {
                @let first = &matches[0];
                li.row {
                    p.title {
                        a data-item href=(location.to(&turn_page(&first.session, first.turn))) {
                            (sanitize_line(first.session.as_str())) ":" (first.turn)
                        }
                    }
                    ul.matches { @for one in matches { li { (found_line(one, pattern)) } } }
                }
            }
        }
    }
}

/// Marks the match within the line.
fn found_line(hit: &Match, pattern: &LinePattern) -> Markup {
    let text: String = hit
        .text
        .iter()
        .flat_map(|text| text.chars().take(MAX_LETTERS))
        .collect();
    // The match can be beyond the cut, and a byte pattern can match within a character.
    let range = pattern
        .match_range(&text)
        .filter(|range| text.is_char_boundary(range.start) && text.is_char_boundary(range.end));
    let range = range.unwrap_or(text.len()..text.len());
    html! {
        span.path { (sanitize_line(&hit.file)) @if let Some(number) = hit.line { ":" (number) } }
        " "
        @if hit.text.is_some() {
            code {
                (sanitize_line(&text[..range.start]))
                @if !range.is_empty() { mark { (sanitize_line(&text[range.clone()])) } }
                (sanitize_line(&text[range.end..]))
            }
        } @else { span.quiet { "binary file matches" } }
    }
}

const UNKNOWN: &str = "–";

/// Returns the page. `changed`: how the files after the two turns differ.
pub fn compare(
    location: PageLocation,
    project: &str,
    sides: &[Side],
    changed: &Changes<'_>,
) -> String {
    let names: Vec<_> = sides.iter().map(|side| sanitize_line(&side.name)).collect();
    let title = format!("{} compared", names.join(" and "));
    let main = html! {
        h1 { (title) }
        (table(sides))
        section {
            h2 { "How the files after them differ" }
            @if changed.files.is_empty() { p.empty { "Not at all." } }
            @else { (changes(changed)) }
        }
    };
    page(
        location,
        &title,
        &[first_crumb(project)],
        &[None, None],
        main,
    )
}

fn table(sides: &[Side]) -> Markup {
    let row = |name: &str, cell: &dyn Fn(&Side) -> Markup| {
        html! { tr { th scope="row" { (name) } @for side in sides { td { (cell(side)) } } } }
    };
    let or_unknown = |value: Option<String>| html! { (value.as_deref().unwrap_or(UNKNOWN)) };
    html! {
        div.scroll {
            table.sides {
                thead {
                    tr { td {} @for side in sides { th scope="col" { (sanitize_line(&side.name)) } } }
                }
                tbody {
                    (row("Status", &|side| status_badge(side.status)))
                    (row("Model", &|side| {
                        let models = side.models.iter().map(|model| sanitize_line(model));
                        or_unknown(models.reduce(|all, next| format!("{all}, {next}").into())
                            .map(std::borrow::Cow::into_owned))
                    }))
                    (row("Files", &|side| html! { (side.files) }))
                    (row("Lines", &|side| or_unknown(side.added.zip(side.removed)
                        .map(|(added, removed)| format!("+{added} −{removed}")))))
                    (row("Tokens", &|side| or_unknown(side.tokens_in.zip(side.tokens_out)
                        .map(|(read, written)| {
                            format!("{} → {}", grouped(read), grouped(written))
                        }))))
                    (row("Cost", &|side| or_unknown(side.cost.map(dollars))))
                    (row("Time", &|side| or_unknown(side.seconds.map(|time| format!("{time:.1} s")))))
                }
            }
        }
    }
}
