//! What all pages have around them, and how they find each other.
//!
//! Every link is relative: the same page works below a secret word on a server, on a forge's page
//! hosting, and as an attachment.

use maud::{DOCTYPE, Markup, html};

use crate::session::name::SessionName;

/// The style of all pages.
pub const STYLE: &str = include_str!("style.css");
/// What brings a page up to date while a session runs, and reads its keys.
pub const SCRIPT: &str = include_str!("live.js");
/// The icon.
pub const ICON: &str = include_str!("icon.svg");

/// What a page may load: files beside it, and nothing else. A frame is named by headers alone.
pub const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
    img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'";
/// The same for pages that are files.
const FILE_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; \
    form-action 'none'; base-uri 'none'";

/// Whether somebody is there to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageMode {
    /// A server: pages can be searched and compared, and stay up to date.
    Live,
    /// Nobody: pages are files.
    File,
}

/// Where a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagePlace {
    /// How many folders it is below the first page.
    pub depth: usize,
    /// Whether somebody is there to answer.
    pub mode: PageMode,
}

/// A page without what is around it.
pub struct PageParts<'a> {
    /// Its title.
    pub title: &'a str,
    /// The pages above it: their names, and where they are from the first page.
    pub above: &'a [(String, String)],
    /// The page before and the one after it, from the first page.
    pub beside: [Option<String>; 2],
    /// What stands on it.
    pub main: Markup,
}

impl PagePlace {
    /// Returns where the pages of a session are.
    pub fn of(session: &SessionName, mode: PageMode) -> PagePlace {
        let depth = 2 + session.as_str().matches('/').count();
        PagePlace { depth, mode }
    }

    /// Returns the first page's place.
    pub fn first(mode: PageMode) -> PagePlace {
        PagePlace { depth: 0, mode }
    }

    /// Returns a link from here to a page that is named from the first page.
    pub fn to(self, page: &str) -> String {
        format!("{}{page}", "../".repeat(self.depth))
    }

    /// Returns whether somebody is there to answer.
    pub fn is_live(self) -> bool {
        self.mode == PageMode::Live
    }
}

/// Returns the page of a session, from the first page.
pub fn session_page(session: &SessionName) -> String {
    format!("s/{}/index.html", encoded(session.as_str()))
}

/// Returns the page of a turn, from the first page.
pub fn turn_page(session: &SessionName, number: u64) -> String {
    format!("s/{}/{number}.html", encoded(session.as_str()))
}

/// Returns a part of an address in which only letters, digits and `/-_.~` stand for themselves.
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

/// Returns a whole page.
pub fn page(place: PagePlace, parts: PageParts<'_>) -> String {
    let PageParts {
        title,
        above,
        beside,
        main,
    } = parts;
    let up = above.last().map(|(_, page)| place.to(page));
    let [before, after] = beside.map(|page| page.map(|page| place.to(&page)));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                @if !place.is_live() {
                    meta http-equiv="Content-Security-Policy" content=(FILE_POLICY);
                }
                title { (title) " · TeDDy" }
                link rel="stylesheet" href=(place.to("style.css"));
                link rel="icon" type="image/svg+xml" href=(place.to("icon.svg"));
                @if let Some(up) = &up { link rel="up" href=(up); }
                @if let Some(before) = &before { link rel="prev" href=(before); }
                @if let Some(after) = &after { link rel="next" href=(after); }
                @if place.is_live() { script src=(place.to("live.js")) defer {} }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                (header(place, title, above))
                main #main tabindex="-1" { (main) }
                (footer(place))
            }
        }
    };
    page.into_string()
}

/// Returns what stands above every page.
fn header(place: PagePlace, title: &str, above: &[(String, String)]) -> Markup {
    html! {
        header.top {
            nav aria-label="Pages above" {
                ol.crumbs {
                    @for (name, page) in above { li { a href=(place.to(page)) { (name) } } }
                    li aria-current="page" { (title) }
                }
            }
            @if place.is_live() {
                form.search role="search" action=(place.to("find.html")) method="get" {
                    input type="search" name="q" aria-label="Search all sessions"
                        placeholder="Search" autocomplete="off" spellcheck="false" maxlength="500";
                }
                p #live role="status" {}
            }
        }
    }
}

/// Returns what stands below every page.
fn footer(place: PagePlace) -> Markup {
    html! {
        footer {
            @if place.is_live() {
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

/// Returns a page that says what is wrong.
pub fn trouble(place: PagePlace, title: &str, why: &str) -> String {
    let main = html! {
        h1 { (title) }
        p.trouble role="alert" { (crate::text::visible::visible_block(why)) }
        p { a href=(place.to("index.html")) { "All sessions" } }
    };
    let parts = PageParts {
        title,
        above: &[],
        beside: [None, None],
        main,
    };
    page(place, parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_relative_and_encoded() {
        let name = |text| SessionName::from_address(text).unwrap();
        let check = |text, page: &str, back: &str| {
            let place = PagePlace::of(&name(text), PageMode::File);
            assert_eq!(
                (turn_page(&name(text), 3).as_str(), place.to("").as_str()),
                (page, back)
            );
        };
        check("demo", "s/demo/3.html", "../../");
        check("change/a-b", "s/change/a-b/3.html", "../../../");
        check("o\"<x>/demo", "s/o%22%3Cx%3E/demo/3.html", "../../../");
    }

    #[test]
    fn a_title_is_text() {
        let page = trouble(PagePlace::first(PageMode::Live), "<b>", "<script>\u{202e}");
        assert!(page.contains("<title>&lt;b&gt; · TeDDy</title>"), "{page}");
        assert!(page.contains("&lt;script&gt;\\u{202e}"), "{page}");
    }
}
