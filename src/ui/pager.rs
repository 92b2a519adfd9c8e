//! A text on a full screen, with scrolling and search.

use std::io;

use ratatui::layout::Rect;

use super::draw;
use super::key::Key;
use super::list::List;
use super::style::{Paint, StyledLine, Tone, wrap_all};
use super::terminal::Full;

/// A text with a title.
#[derive(Debug, Clone)]
pub struct Pager {
    title: String,
    /// Unwrapped text, to wrap again after a resize.
    source: Vec<StyledLine>,
    lines: Vec<StyledLine>,
    width: u16,
    list: List,
    /// The keys, shown over the text.
    help: Option<Box<Pager>>,
}

pub fn key_lines(keys: &[(&str, &str)]) -> Vec<StyledLine> {
    let line = |(keys, meaning): &(&str, &str)| {
        StyledLine::of(Tone::Accent, &format!("{keys:<16}")).with(Tone::Plain, meaning)
    };
    keys.iter().map(line).collect()
}

/// Lines for title and keys.
const FRAME: u16 = 2;

const KEYS: &str = "j/k, space, PgUp/PgDn, g/G scroll · / search, n/N next · ? help · q back";
const HELP: [(&str, &str); 8] = [
    ("↑ ↓  k j, enter", "scroll by a line"),
    ("PgUp PgDn", "scroll by a page, as do b and space"),
    ("home end  g G", "to the start, to the end"),
    ("/", "search, ignoring case"),
    ("n N", "to the next or previous match"),
    ("ctrl-z", "suspend; fg resumes"),
    ("?", "this help"),
    ("q, esc", "back"),
];

impl Pager {
    pub fn new(title: &str, source: Vec<StyledLine>) -> Pager {
        Pager {
            title: title.to_owned(),
            source,
            lines: Vec::new(),
            width: 0,
            list: List::text(),
            help: None,
        }
    }

    pub fn keys(keys: &[(&str, &str)]) -> Pager {
        Pager::new("Keys", key_lines(keys))
    }

    /// Shows the text until the user closes it.
    pub fn run(mut self, full: &mut Full, paint: Paint) -> io::Result<()> {
        loop {
            self.fit(full.area()?);
            full.draw(|frame| self.draw(frame, paint))?;
            if self.press(&full.next_key()?) {
                return Ok(());
            }
        }
    }

    /// Wraps the text for a screen size.
    pub fn fit(&mut self, area: Rect) {
        if area.width != self.width {
            // Keep the relative position: line numbers change when the text is wrapped again.
            let fraction = self.list.visible().start as f64 / self.lines.len().max(1) as f64;
            self.lines = wrap_all(self.source.clone(), usize::from(area.width));
            self.width = area.width;
            self.list.resize(self.lines.len());
            let top = (fraction * self.lines.len() as f64).round();
            self.list.go_to(top as usize);
        }
        let height = area.height.saturating_sub(FRAME).max(1);
        self.list.fit(self.lines.len(), usize::from(height));
        if let Some(help) = &mut self.help {
            help.fit(area);
        }
    }

    pub fn draw(&self, frame: &mut ratatui::Frame<'_>, paint: Paint) {
        if let Some(help) = &self.help {
            return help.draw(frame, paint);
        }
        let body = self.lines[self.list.visible()].iter().cloned();
        draw::page(frame, &self.title, body, self.footer(), paint);
    }

    /// Handles a key. Returns whether it closes the pager.
    pub fn press(&mut self, key: &Key) -> bool {
        if *key == Key::Terminate {
            return true;
        }
        if let Some(help) = &mut self.help {
            // The list of keys has the same keys.
            if *key == Key::Char('?') || help.press(key) {
                self.help = None;
            }
            return false;
        }

        match key {
            key if self.list.read(key, |at| self.lines[at].text()) => {}
            Key::Char('q') | Key::Esc | Key::Ctrl('c' | 'd') => return true,
            Key::Char('?') => self.help = Some(Box::new(Pager::keys(&HELP))),
            _ => {}
        }
        false
    }

    /// Returns the search, or position and keys.
    fn footer(&self) -> StyledLine {
        let position = || {
            StyledLine::of(Tone::Accent, &format!("{} ", self.list.position()))
                .with(Tone::Faint, KEYS)
        };
        self.list.status().unwrap_or_else(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pager(lines: impl Iterator<Item = String>, width: u16, height: u16) -> Pager {
        let mut pager = Pager::new("text", lines.map(|line| StyledLine::plain(&line)).collect());
        pager.fit(Rect::new(0, 0, width, height + FRAME));
        pager
    }

    #[test]
    fn a_failed_search_is_reported_until_the_next_key() {
        let mut pager = pager(["line".to_owned()].into_iter(), 40, 4);
        for key in [Key::Char('/'), Key::Char('n'), Key::Char('o'), Key::Enter] {
            assert!(!pager.press(&key));
        }
        assert_eq!(pager.footer().text(), "`no` was not found");
        pager.press(&Key::Down);
        assert!(pager.footer().text().starts_with("1/1 "));
    }

    /// Regression: in the browser, the key did nothing.
    #[test]
    fn the_keys_are_shown_over_the_text() {
        let mut pager = pager(["line".to_owned()].into_iter(), 40, 4);
        for close in [Key::Char('q'), Key::Char('?')] {
            assert!(!pager.press(&Key::Char('?')));
            assert!(pager.help.is_some());
            assert!(!pager.press(&close));
            assert!(pager.help.is_none());
        }
        assert!(!pager.press(&Key::Char('?')));
        assert!(pager.press(&Key::Terminate));
    }

    #[test]
    fn a_resize_rewraps_the_text_and_keeps_the_position() {
        let lines = (0..10).map(|n| format!("{n}{}", "x".repeat(9)));
        let mut pager = pager(lines, 10, 2);
        for _ in 0..5 {
            pager.press(&Key::Down);
        }
        pager.fit(Rect::new(0, 0, 5, 2 + FRAME));
        assert_eq!(pager.lines[pager.list.visible()][0].text(), "5xxxx");
    }
}
