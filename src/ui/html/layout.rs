//! Frame of every page, and links between pages.
//!
//! All links are relative, so the same page works below the server's secret path, on static
//! hosting, and as an attachment.

use maud::{DOCTYPE, Markup, html};

use crate::host::clock;
use crate::query::log::LogRow;
use crate::query::view::timeline::SessionLane;
use crate::session::meta::Status;
use crate::session::name::SessionName;
use crate::text::sanitize::sanitize_line;
use crate::text::{counted, grouped};
use crate::ui::style::StyledLine;

/// Style sheet of all pages.
pub const STYLE: &str = include_str!("style.css");

/// Script for live updates and keys.
pub const SCRIPT: &str = include_str!("live.js");

pub const ICON: &str = include_str!("icon.svg");

/// `Content-Security-Policy` of served pages: only files next to the page. `frame-ancestors` works
/// only as a header, so the server adds it.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
    img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'";

/// The same for exported pages, which have no script.
const FILE_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; \
    form-action 'none'; base-uri 'none'";

/// Whether a server answers requests of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageMode {
    /// Served: pages can search, compare and update themselves.
    Live,
    /// Exported to files.
    File,
}

/// Position of a page, for its relative links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLocation {
    /// Directory levels below the first page.
    pub depth: usize,
    /// Whether the page is served.
    pub mode: PageMode,
}

impl PageLocation {
    /// Returns the place of a session's pages.
    pub fn of(session: &SessionName, mode: PageMode) -> PageLocation {
        // A session name can contain `/`, which adds directory levels.
        let depth = 2 + session.as_str().matches('/').count();
        PageLocation { depth, mode }
    }

    pub fn first(mode: PageMode) -> PageLocation {
        PageLocation { depth: 0, mode }
    }

    /// Returns the link to a page, given its address relative to the first page.
    pub fn to(self, page: &str) -> String {
        format!("{}{page}", "../".repeat(self.depth))
    }

    /// Returns whether a server answers requests of the page.
    pub fn is_live(self) -> bool {
        self.mode == PageMode::Live
    }
}

/// Returns the address of a session's page, relative to the first page.
pub fn session_page(session: &SessionName) -> String {
    format!("s/{}/index.html", encoded(session.as_str()))
}

/// Returns the address of a turn's page, relative to the first page.
pub fn turn_page(session: &SessionName, number: u64) -> String {
    format!("s/{}/{number}.html", encoded(session.as_str()))
}

/// Returns the address of a session's waiting plan, relative to the first page.
pub fn plan_page(session: &SessionName) -> String {
    format!("s/{}/{PLAN_PAGE}", encoded(session.as_str()))
}

/// Name of the page of a waiting plan, next to those of turns.
pub const PLAN_PAGE: &str = "plan.html";

/// Characters of a request in a title.
const MAX_TITLE: usize = 90;

/// Returns the request for which a session was started, or its name.
pub fn session_title(lane: &SessionLane) -> String {
    let Some(request) = &lane.request else {
        return sanitize_line(lane.name.as_str()).into_owned();
    };
    let request = sanitize_line(request);
    StyledLine::plain(&request).cut(MAX_TITLE).text()
}

/// Percent-encodes everything except letters, digits and `/-_.~`.
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}

/// A page that others are below: its name, and its address relative to the first page.
pub type Crumb = (String, String);

/// Previous and next page, relative to the first page.
pub type Neighbors = [Option<String>; 2];

/// Returns the page of all sessions.
pub fn first_crumb(project: &str) -> Crumb {
    (sanitize_line(project).into_owned(), "index.html".to_owned())
}

/// Returns the pages above those of a session.
pub fn session_crumbs(project: &str, session: &SessionName) -> [Crumb; 2] {
    let name = sanitize_line(session.as_str()).into_owned();
    [first_crumb(project), (name, session_page(session))]
}

/// Returns the complete HTML of a page. `above`: the first page first.
pub fn page(
    location: PageLocation,
    title: &str,
    above: &[Crumb],
    neighbors: &Neighbors,
    main: Markup,
) -> String {
    let up = above.last().map(|(_, page)| location.to(page));
    let [before, after] = neighbors
        .each_ref()
        .map(|page| page.as_ref().map(|page| location.to(page)));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // The address of a served page contains the secret. Links must not send it.
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                // An exported file has no response headers.
                @if !location.is_live() {
                    meta http-equiv="Content-Security-Policy" content=(FILE_POLICY);
                }
                title { (title) " · TeDDy" }
                link rel="stylesheet" href=(location.to("style.css"));
                link rel="icon" type="image/svg+xml" href=(location.to("icon.svg"));
                @if let Some(up) = &up { link rel="up" href=(up); }
                @if let Some(before) = &before { link rel="prev" href=(before); }
                @if let Some(after) = &after { link rel="next" href=(after); }
                @if location.is_live() { script src=(location.to("live.js")) defer {} }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (header(location, title, above))
                main #main tabindex="-1" { (main) }
                (footer(location))
            }
        }
    };
    page.into_string()
}

fn header(location: PageLocation, title: &str, above: &[Crumb]) -> Markup {
    html! {
        header.top {
            nav aria-label="Pages above" {
                ol.crumbs {
                    @for (name, page) in above { li { a href=(location.to(page)) { (name) } } }
                    li aria-current="page" { (title) }
                }
            }
            @if location.is_live() {
                form.search role="search" action=(location.to("find.html")) method="get" {
                    input type="search" name="q" aria-label="Search all sessions"
                        placeholder="Search" autocomplete="off" spellcheck="false" maxlength="500";
                }
                p #live role="status" {}
            }
        }
    }
}

fn footer(location: PageLocation) -> Markup {
    html! {
        footer {
            @if location.is_live() {
                p.keys {
                    kbd { "j" } " " kbd { "k" } " next, previous · "
                    kbd { "Enter" } " open · " kbd { "n" } " " kbd { "p" } " newer, older turn · "
                    kbd { "u" } " up · " kbd { "/" } " search"
                }
            } @else {
                p { "Made by TeDDy. What looks like a key, and names in paths, are taken out." }
            }
        }
    }
}

/// Returns a page that reports an error.
pub fn trouble(location: PageLocation, title: &str, why: &str) -> String {
    let main = html! {
        h1 { (title) }
        p.trouble role="alert" { (crate::text::sanitize::sanitize_block(why)) }
        p { a href=(location.to("index.html")) { "All sessions" } }
    };
    page(location, title, &[], &[None, None], main)
}

/// Returns a time in the user's time zone.
pub fn local_time(stamp: Option<&str>) -> Markup {
    let formatted = stamp.and_then(|stamp| clock::in_zone(stamp, "%Y-%m-%d %H:%M"));
    html! {
        @if let (Some(stamp), Some(formatted)) = (stamp, formatted) {
            time datetime=(stamp) { (formatted) }
        }
    }
}

pub fn status_badge(status: Status) -> Markup {
    html! { span class={ "badge " (status_class(status)) } { (status.word()) } }
}

pub fn status_class(status: Status) -> &'static str {
    match status {
        Status::Executed | Status::Picked | Status::Recorded => "good",
        Status::Failed | Status::Rejected | Status::Interrupted => "bad",
        Status::Declined | Status::Restored => "quiet",
        Status::Landed => "landed",
        Status::Started | Status::Ready | Status::Planned => "plain",
    }
}

/// Formats an amount in dollars: cents, or four digits if it is below ten cents.
pub fn dollars(cost: f64) -> String {
    match cost {
        cost if !cost.is_finite() => "unknown".to_owned(),
        // An empty sum of floats is -0.0.
        0.0 => "$0.00".to_owned(),
        cost if cost.abs() < 0.1 => format!("${cost:.4}"),
        cost => format!("${cost:.2}"),
    }
}

/// Returns a short form of a number, such as `12.3k`.
pub fn short_number(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// Returns model, usage and size of a turn for one line.
pub fn turn_facts(row: &LogRow) -> Markup {
    let tokens = row.tokens_in.zip(row.tokens_out);
    html! {
        @if let Some(model) = &row.model { span { (sanitize_line(model)) } }
        @if let Some((read, written)) = tokens {
            span title={ (grouped(read)) " tokens read, " (grouped(written)) " written" } {
                (short_number(read)) " → " (short_number(written)) " tokens"
            }
        }
        @if let Some(cost) = row.cost { span { (dollars(cost)) } }
        @if !row.files.is_empty() {
            span { (counted(row.files.len(), "file")) }
        }
        @if row.too_many_files { span { "too many files to list" } }
        @if row.time.is_some() { span { (local_time(row.time.as_deref())) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_relative_and_encoded() {
        let name = |text| SessionName::from_address(text).unwrap();
        let check = |text, page: &str, back: &str| {
            let location = PageLocation::of(&name(text), PageMode::File);
            assert_eq!(
                (turn_page(&name(text), 3).as_str(), location.to("").as_str()),
                (page, back)
            );
        };
        check("demo", "s/demo/3.html", "../../");
        check("change/a-b", "s/change/a-b/3.html", "../../../");
        check("o\"<x>/demo", "s/o%22%3Cx%3E/demo/3.html", "../../../");
    }

    #[test]
    fn a_title_is_text() {
        let page = trouble(
            PageLocation::first(PageMode::Live),
            "<b>",
            "<script>\u{202e}",
        );
        assert!(page.contains("<title>&lt;b&gt; · TeDDy</title>"), "{page}");
        assert!(page.contains("&lt;script&gt;\\u{202e}"), "{page}");
    }
}

#[cfg(test)]
mod fragments_tests {
    use super::*;

    #[test]
    fn small_amounts_of_money_have_more_digits() {
        let check = |cost: f64, expected: &str| assert_eq!(dollars(cost), expected);
        check(0.0, "$0.00");
        check(-0.0, "$0.00");
        check(0.0254, "$0.0254");
        check(0.1, "$0.10");
        check(12.345, "$12.35");
        check(f64::NAN, "unknown");
    }

    #[test]
    fn large_numbers_are_short() {
        assert_eq!(
            [0, 999, 1_000, 12_345, 3_456_789].map(short_number),
            ["0", "999", "1.0k", "12.3k", "3.5M"]
        );
    }
}
