//! Draws the browser with ratatui.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::widgets::Paragraph;

use super::browser::{BrowseSide, Browser};
use super::panes::{self, BrowsePanes};
use super::rows;
use super::tabs::BrowseTab;
use crate::ui::draw::{drawn, key_line, put, text};
use crate::ui::search::Search;
use crate::ui::style::{Paint, StyledLine, Tone};

/// Most important first: a narrow screen omits the rest.
const KEYS: [(&str, &str); 14] = [
    ("q", "quit"),
    ("?", "help"),
    ("enter", "open"),
    ("tab", "next tab"),
    ("/", "search"),
    ("d", "diff"),
    ("r", "restore"),
    ("u", "undo to here"),
    ("b", "branch"),
    ("l", "land"),
    ("m", "mark"),
    ("c", "compare"),
    ("e", "editor"),
    ("y", "copy id"),
];

/// Lines around a full-screen text: title and keys.
const FRAME: u16 = 2;

/// Fits the state to a screen size.
pub fn fit(browser: &mut Browser, area: Rect) {
    let panes = panes::split_panes(area, browser.side, browser.is_zoomed);
    browser.tree.fit(usize::from(panes.tree.height));
    browser.detail.fit(usize::from(panes.detail.height));
    let (width, height) = (usize::from(area.width), area.height.saturating_sub(FRAME));
    let text = browser.text.take();
    browser.text = text.map(|text| text.fit(width, usize::from(height)));
    if panes.detail.width > 0 {
        browser.refresh(usize::from(panes.detail.width));
    }
}

/// Draws the browser. The caller must [`fit`] it to the frame first.
pub fn draw(frame: &mut Frame<'_>, browser: &Browser, (title, paint): (&str, Paint)) {
    if let Some(viewer) = &browser.text {
        return text(frame, viewer, paint);
    }

    let panes = panes::split_panes(frame.area(), browser.side, browser.is_zoomed);
    let title = StyledLine::of(Tone::Accent, "▶ ").with(Tone::Strong, title);
    put(frame, panes.title, &[title], paint);
    tree(frame, panes.tree, browser, paint);
    let bar = vec![StyledLine::of(Tone::Faint, "│"); usize::from(panes.divider.height)];
    put(frame, panes.divider, &bar, paint);
    put(frame, panes.tabs, &[tabs(browser)], paint);
    detail(frame, panes.detail, browser, paint);
    put(frame, panes.status, &[status(browser, &panes)], paint);
    put(
        frame,
        panes.keys,
        &[key_line(&KEYS, usize::from(panes.keys.width))],
        paint,
    );
}

fn tree(frame: &mut Frame<'_>, area: Rect, browser: &Browser, paint: Paint) {
    let width = usize::from(area.width.saturating_sub(1));
    let lines = browser.tree.visible_rows().map(|(at, row)| {
        let is_here = at == browser.tree.cursor;
        let mark = StyledLine::of(Tone::Accent, if is_here { "›" } else { " " });
        let line = drawn(mark.append(rows::tree_line(browser, row, width)), paint);
        match is_here && browser.side == BrowseSide::Tree {
            true => line.patch_style(Modifier::REVERSED),
            false => line,
        }
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn detail(frame: &mut Frame<'_>, area: Rect, browser: &Browser, paint: Paint) {
    let width = usize::from(area.width);
    let lines = browser.detail.visible_lines().map(|(at, line)| {
        let is_here = browser.has_cursor() && at == browser.detail.cursor;
        let line = drawn(line.line.clone().cut(width), paint);
        match is_here {
            true => line.patch_style(Modifier::REVERSED),
            false => line,
        }
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

fn tabs(browser: &Browser) -> StyledLine {
    let name = |line: StyledLine, tab: &BrowseTab| match *tab == browser.tab {
        true => {
            let tone = match browser.side {
                BrowseSide::Detail => Tone::Accent,
                BrowseSide::Tree => Tone::Strong,
            };
            line.with(tone, &format!("[{}] ", tab.name()))
        }
        false => line.with(Tone::Faint, &format!("{} ", tab.name())),
    };
    BrowseTab::ALL.iter().fold(StyledLine::default(), name)
}

fn status(browser: &Browser, panes: &BrowsePanes) -> StyledLine {
    let search = browser.search.as_ref().or(browser.detail.open_search());
    if let Some(prompt) = search.and_then(Search::prompt) {
        return prompt;
    }
    if let Some(notice) = &browser.notice {
        return StyledLine::of(Tone::Warning, notice);
    }
    if let Some(why) = &browser.trouble {
        return StyledLine::of(Tone::Removed, &format!("✗ {why}"));
    }

    let count = browser.tree.rows().len();
    let at = (browser.tree.cursor + 1).min(count);
    let mut line = StyledLine::of(Tone::Faint, &format!("{at}/{count}"));
    if !browser.is_whole {
        line = line.with(Tone::Faint, " reading…");
    }
    if let Some(address) = browser.address() {
        line = line.with(Tone::Faint, &format!(" · {address}"));
    }
    if panes.detail.height > 0 {
        line = line.with(Tone::Faint, &format!(" · {}", browser.detail.position()));
    }
    if let [(_, one), others @ ..] = browser.marks.as_slice() {
        let other = others
            .first()
            .map_or("…".to_owned(), |(_, other)| other.to_string());
        line = line.with(Tone::Warning, &format!(" · c compares {one} and {other}"));
    }
    line
}

#[cfg(test)]
mod tests;
