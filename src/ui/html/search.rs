//! Page that searches all sessions.

use maud::{Markup, html};

use super::layout::{PageParts, PagePlace, page, turn_page};
use super::words::line;
use crate::text::visible::{visible, visible_block};
use crate::workflow::find::{FindResult, LinePattern, Match, TurnPart};

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
/// Parts searched by default.
pub const DEFAULT: [TurnPart; 4] = [
    TurnPart::Request,
    TurnPart::Plan,
    TurnPart::Report,
    TurnPart::Output,
];

/// A search and its results.
pub struct ShownSearch<'a> {
    /// Name of the project.
    pub project: &'a str,
    /// Text that the user typed.
    pub text: &'a str,
    /// Parts to search.
    pub parts: &'a [TurnPart],
    /// Whether the search is case-sensitive.
    pub has_case: bool,
    /// Matches and the pattern, or why the search failed. `None` before the first search.
    pub found: Option<Result<(&'a FindResult, &'a LinePattern), String>>,
}

/// Returns the page.
pub fn search(place: PagePlace, searched: &ShownSearch<'_>) -> String {
    let main = html! {
        h1 { "Search" }
        (form(place, searched))
        @match &searched.found {
            None => {},
            Some(Err(why)) => p.trouble role="alert" { (visible_block(why)) },
            Some(Ok((found, pattern))) => (matches(place, found, pattern)),
        }
    };
    let above = [(line(searched.project).into_owned(), "index.html".to_owned())];
    page(
        place,
        PageParts {
            title: "Search",
            above: &above,
            beside: [None, None],
            main,
        },
    )
}

fn form(place: PagePlace, searched: &ShownSearch<'_>) -> Markup {
    html! {
        form.wide-search action=(place.to("find.html")) method="get" {
            p {
                input type="search" name="q" value=(searched.text) aria-label="What to look for"
                    autocomplete="off" spellcheck="false" maxlength="500" size="40";
                " " button type="submit" { "Search" }
            }
            p.choices {
                @for (part, name) in PARTS {
                    label {
                        input type="checkbox" name="in" value=(name)
                            checked[searched.parts.contains(&part)];
                        " " (name)
                    }
                }
                label {
                    input type="checkbox" name="case" value="1" checked[searched.has_case];
                    " case counts"
                }
            }
        }
    }
}

fn matches(place: PagePlace, found: &FindResult, pattern: &LinePattern) -> Markup {
    let shown = &found.matches[..found.matches.len().min(MOST)];
    let turns = shown.chunk_by(|a, b| a.session == b.session && a.turn == b.turn);
    let count = found.matches.len();
    html! {
        p.facts role="status" {
            span { (count) @if count == 1 { " match" } @else { " matches" } }
            @if count > MOST { span { "the first " (MOST) " are shown" } }
        }
        @for why in &found.skipped { p.note { "Not searched: " (visible_block(why)) } }
        ul.rows {
            @for matches in turns {
                @let first = &matches[0];
                li.row {
                    p.title {
                        a data-item href=(place.to(&turn_page(&first.session, first.turn))) {
                            (line(first.session.as_str())) ":" (first.turn)
                        }
                    }
                    ul.matches { @for one in matches { li { (found_line(one, pattern)) } } }
                }
            }
        }
    }
}

/// Marks the match within the line.
fn found_line(found: &Match, pattern: &LinePattern) -> Markup {
    let text: String = found
        .text
        .iter()
        .flat_map(|text| text.chars().take(MAX_LETTERS))
        .collect();
    // The match can be beyond the cut, and a byte pattern can match within a character.
    let place = pattern
        .place(&text)
        .filter(|place| text.is_char_boundary(place.start) && text.is_char_boundary(place.end));
    let place = place.unwrap_or(text.len()..text.len());
    html! {
        span.path { (line(&found.file)) @if let Some(number) = found.line { ":" (number) } }
        " "
        @if found.text.is_some() {
            code {
                (visible(&text[..place.start]))
                @if !place.is_empty() { mark { (visible(&text[place.clone()])) } }
                (visible(&text[place.end..]))
            }
        } @else { span.quiet { "binary file matches" } }
    }
}
