//! Pages that only the server has: the search in all sessions, the comparison of two turns, and a
//! waiting plan with the command that comments on it.

use maud::{Markup, html};

use super::changes::{Changes, changes};
use super::layout::{
    PageLocation, dollars, first_crumb, page, session_crumbs, status_badge, turn_page,
};
use crate::query::find::{FindResult, LinePattern, Match, TurnPart};
use crate::query::view::turn_page::{ChangedFile, FileView};
use crate::session::name::SessionName;
use crate::text::sanitize::{sanitize_block, sanitize_line};
use crate::text::shell_word::shell_word;
use crate::text::{counted, grouped};
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
    let above = [first_crumb(project)];
    page(location, "Search", &above, &[None, None], main)
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
    let above = [first_crumb(project)];
    page(location, &title, &above, &[None, None], main)
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

pub struct ShownPlan<'a> {
    pub project: &'a str,
    pub session: &'a SessionName,
    /// Whether commands without a session's name are for this one.
    pub in_use: bool,
    pub number: u64,
    pub title: &'a str,
    /// Distinguishes it from the plan that replaces it.
    pub digest: &'a str,
    pub changes: Changes<'a>,
    /// Commands of the plan, whose changes are not known yet.
    pub commands: usize,
    /// Why the plan cannot run.
    pub mistakes: &'a [String],
}

/// A file on whose lines a comment is possible.
struct CommentedFile<'a> {
    /// In the list of changes.
    index: usize,
    path: &'a str,
    lines: usize,
}

pub fn waiting(location: PageLocation, plan: &ShownPlan<'_>) -> String {
    let files = commented_files(&plan.changes);
    let main = html! {
        h1 { span.number { (plan.number) } " " (sanitize_line(plan.title)) }
        p.facts { span { "This plan waits for your review." } }
        @for mistake in plan.mistakes {
            p.trouble role="alert" { "The plan cannot run: " (sanitize_block(mistake)) }
        }
        @if plan.commands > 0 {
            p.note {
                "What " (counted(plan.commands, "command")) " of the plan would change is unknown before the run."
            }
        }
        @if plan.changes.files.is_empty() {
            p.empty { "Its actions change no file." }
        } @else {
            section id="changes" { h2 { "Changes" } (changes(&plan.changes)) }
        }
        @if !files.is_empty() && plan.mistakes.is_empty() { (comment(plan, &files)) }
    };
    let above = session_crumbs(plan.project, plan.session);
    let title = format!("{} {}", plan.number, sanitize_line(plan.title));
    page(location, &title, &above, &[None, None], main)
}

fn commented_files<'a>(changes: &Changes<'a>) -> Vec<CommentedFile<'a>> {
    let lines = |file: &ChangedFile| match (changes.load)(file).1 {
        FileView::Text(text) => text.lines().count(),
        _ => 0,
    };
    let files = changes.files.iter().enumerate();
    let files = files.map(|(index, file)| CommentedFile {
        index,
        path: &file.path,
        lines: lines(file),
    });
    files.filter(|file| file.lines > 0).collect()
}

/// The script composes comments in the fields. Without it, the command has placeholders.
fn comment(plan: &ShownPlan<'_>, files: &[CommentedFile<'_>]) -> Markup {
    let command = match plan.in_use {
        true => "teddy execute".to_owned(),
        false => format!(
            "teddy --session {} execute",
            shell_word(plan.session.as_str())
        ),
    };
    let file = match files {
        [file] => shell_word(file.path),
        _ => "FILE".to_owned(),
    };
    html! {
        section id="comment" data-command=(command) data-plan=(plan.digest) {
            h2 { "Comment" }
            p {
                "Comments on lines, as they would be after the plan, decline it, and the model gets them as your \
                 next message. This page sends nothing: run the command in the project."
            }
            div.compose hidden {
                label {
                    "File"
                    select name="file" autocomplete="off" {
                        @for file in files {
                            option value=(shell_word(file.path)) data-file={ "file-" (file.index) }
                                data-lines=(file.lines) { (sanitize_line(file.path)) }
                        }
                    }
                }
                label {
                    "Lines, for example 3 or 3-5; a click on a line chooses it, with Shift a range"
                    input type="text" name="lines" inputmode="numeric" autocomplete="off" spellcheck="false";
                }
                label { "Comment" textarea name="text" rows="3" autocomplete="off" {} }
                p {
                    button type="button" name="add" { "Add to the command" } " "
                    button type="button" name="remove" { "Remove the last one" }
                }
                p.note role="status" {}
            }
            pre.plain tabindex="0" { code { (command) " --comment " (file) ":LINE='TEXT'" } }
        }
    }
}
