//! Page of a turn.

use maud::{Markup, PreEscaped, html};

use super::changes::{Changes, Loading, changes};
use super::layout::{Neighbors, PageLocation, page, session_crumbs};
use crate::query::log::LogRow;
use crate::query::view::turn_page::{OutputText, TurnPage};
use crate::session::input::ResourceTokens;
use crate::session::name::SessionName;
use crate::text::markdown::render_html as rendered;
use crate::text::sanitize::{sanitize_block, sanitize_line, sanitize_text, strip_ansi};
use crate::text::{counted, grouped, sized};
use crate::ui::html::layout::{dollars, local_time, status_badge};
use crate::ui::turn_text::message_label;

pub struct ShownTurn<'a> {
    pub project: &'a str,
    pub session: &'a SessionName,
    pub page: &'a TurnPage,
    /// Pages of the previous and the next turn.
    pub neighbors: Neighbors,
    /// Reads the changed files.
    pub load: &'a Loading<'a>,
}

pub fn turn(location: PageLocation, contents: &ShownTurn<'_>) -> String {
    let turn = contents.page;
    let at = turn.row.number;
    let main = html! {
        h1 { span.number { (at) } " " (sanitize_line(&turn.row.title)) }
        (facts(&turn.row))
        (steps(location, at, &contents.neighbors))
        @for why in &turn.errors {
            p.trouble role="alert" { "Cannot be read: " (sanitize_block(why)) }
        }
        (conversation(turn))
        @if !turn.files.is_empty() {
            @let changed = Changes {
                files: &turn.files, left_out: turn.files_left_out, load: contents.load,
            };
            (section("changes", "Changes", changes(&changed)))
        }
        @if !turn.outputs.is_empty() { (section("output", "Output", outputs(turn))) }
        @if let Some(report) = &turn.report { (section("report", "Report", render_markdown(report))) }
        (folded(turn))
    };
    let above = session_crumbs(contents.project, contents.session);
    let title = format!("{at} {}", sanitize_line(&turn.row.title));
    page(location, &title, &above, &contents.neighbors, main)
}

fn section(id: &str, title: &str, body: Markup) -> Markup {
    html! { section id=(id) { h2 { (title) } (body) } }
}

fn facts(row: &LogRow) -> Markup {
    let tokens = row.tokens_in.zip(row.tokens_out);
    let fact = |name: &str, value: Markup| html! { div { dt { (name) } dd { (value) } } };
    let commit = row.commit.to_string();
    html! {
        dl.facts-list {
            (fact("Status", status_badge(row.shown_status())))
            (fact("Agent", html! { (sanitize_line(&row.agent)) }))
            @if let Some(model) = &row.model { (fact("Model", html! { (sanitize_line(model)) })) }
            @if let Some((read, written)) = tokens {
                (fact("Tokens", html! { (grouped(read)) " → " (grouped(written)) }))
            }
            @if let Some(cost) = row.cost { (fact("Cost", html! { (dollars(cost)) })) }
            @if row.time.is_some() { (fact("Recorded", local_time(row.time.as_deref()))) }
            @if let Some(landed) = &row.landed {
                (fact("Landed on", html! { (sanitize_line(&landed.branch)) }))
            }
            (fact("Commit", html! { code title=(commit) { (commit.get(..12).unwrap_or(&commit)) } }))
        }
    }
}

fn steps(location: PageLocation, at: u64, neighbors: &Neighbors) -> Markup {
    let [before, after] = neighbors;
    html! {
        nav.steps aria-label="Turns beside this one" {
            @if let Some(before) = before {
                a href=(location.to(before)) { "← Turn " (at.saturating_sub(1)) }
            }
            @if let Some(after) = after { a href=(location.to(after)) { "Turn " (at + 1) " →" } }
        }
    }
}

/// Shows the reply only if there is no plan. The plan has its own section.
fn conversation(turn: &TurnPage) -> Markup {
    let reply = turn
        .closing_text
        .as_ref()
        .or(turn.answer.as_ref().filter(|_| turn.plan.is_none()));
    html! {
        @if turn.message.is_some() || reply.is_some() {
            div.conversation {
                @if let Some(message) = &turn.message {
                    (section("request", message_label(turn.origin), render_message(message)))
                }
                @if let Some(reply) = reply {
                    (section("answer", "Answer", render_markdown(reply)))
                }
            }
        }
    }
}

fn outputs(turn: &TurnPage) -> Markup {
    let outputs: &[OutputText] = &turn.outputs;
    html! {
        @for (at, output) in outputs.iter().enumerate() {
            details id={ "output-" (at) } open[outputs.len() == 1] {
                summary {
                    span.path { (sanitize_line(&output.name)) } " " span.quiet { (sized(output.bytes)) }
                }
                (render_plain(&strip_ansi(&output.text)))
                @if output.is_cut {
                    p.cut {
                        "Cut here: " (sized(output.bytes)) " in all. "
                        code { "teddy show " (turn.row.number) " " (sanitize_line(&output.name)) } " prints all."
                    }
                }
            }
        }
    }
}

/// Folded sections at the end: plan, raw reply, input, metadata.
fn folded(turn: &TurnPage) -> Markup {
    let part = |id: &str, title: &str, body: Markup| {
        html! { details.part id=(id) { summary { h2 { (title) } } (body) } }
    };
    html! {
        @if let Some(plan) = &turn.plan { (part("plan", "Plan", render_markdown(plan))) }
        @if let Some(answer) = turn.answer.as_ref().filter(|_| turn.plan.is_some()) {
            (part("reply", "Raw answer", render_plain(answer)))
        }
        @if !turn.input.is_empty() { (part("input", "Input", input(&turn.input))) }
        @if !turn.meta.is_empty() { (part("meta", "Facts", render_plain(&turn.meta))) }
    }
}

fn input(resources: &[ResourceTokens]) -> Markup {
    let most = resources
        .iter()
        .filter_map(|one| one.tokens)
        .max()
        .unwrap_or(0)
        .max(1);
    let all = resources
        .iter()
        .filter_map(|one| one.tokens)
        .fold(0, u64::saturating_add);
    html! {
        p.facts {
            span { (counted(resources.len(), "resource")) }
            span { (grouped(all)) @if all == 1 { " token" } @else { " tokens" } }
        }
        table.input {
            thead { tr { th { "Resource" } th.n { "Tokens" } th { span.hidden { "Share" } } } }
            tbody {
                @for one in resources {
                    tr {
                        td.path { (sanitize_line(&one.name)) }
                        td.n {
                            @if let Some(tokens) = one.tokens { (grouped(tokens)) }
                            @else if let Some(note) = &one.note { (sanitize_line(note)) }
                        }
                        td.bar {
                            meter min="0" max=(most) value=(one.tokens.unwrap_or(0)) {}
                        }
                    }
                }
            }
        }
    }
}

/// Headings of a text start at this level, below those of the page.
const HEADING_LEVEL: u8 = 3;

/// Renders Markdown, or plain text if it cannot be rendered.
fn render_markdown(text: &str) -> Markup {
    // Safe to embed: the renderer turns raw HTML into text and allows only safe links.
    match rendered(&sanitize_text(text), HEADING_LEVEL) {
        Some(rendered) => html! { div.prose { (PreEscaped(rendered)) } },
        None => render_plain(text),
    }
}

fn render_plain(text: &str) -> Markup {
    html! { pre.plain tabindex="0" { code { (sanitize_text(text)) } } }
}

/// Renders a typed message, keeping its line breaks.
fn render_message(text: &str) -> Markup {
    html! { p.message { (sanitize_text(text.trim_end())) } }
}
