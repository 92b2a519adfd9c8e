//! Cursor, scroll position and search in the rows of a screen, without a terminal.
//!
//! A list knows the number of rows, not the rows themselves. All full screens use it, so a key does
//! the same in each.

use std::ops::Range;

use super::key::Key;
use super::style::{StyledLine, Tone};

/// Position in rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct List {
    count: usize,
    cursor: usize,
    /// Index of the first visible row.
    top: usize,
    height: usize,
    search: Option<Search>,
    /// Whether keys scroll a text, instead of moving a cursor through rows.
    pub is_text: bool,
    /// Message shown until the next key.
    pub notice: Option<String>,
}

impl List {
    /// Returns a list without a cursor.
    pub fn text() -> List {
        List {
            is_text: true,
            ..List::default()
        }
    }

    /// Sets the number of rows, and how many of them are visible.
    pub fn fit(&mut self, count: usize, height: usize) {
        self.height = height;
        self.resize(count);
    }

    /// Sets the number of rows. The cursor stays visible, and no rows are empty if all could be
    /// filled.
    pub fn resize(&mut self, count: usize) {
        self.count = count;
        self.cursor = self.cursor.min(count.saturating_sub(1));
        // Before the first `fit`, the cursor can move without scrolling.
        if self.height > 0 && !self.is_text {
            let lowest = (self.cursor + 1).saturating_sub(self.height);
            self.top = self.top.clamp(lowest, self.cursor);
        }
        self.top = self.top.min(count.saturating_sub(self.height));
    }

    /// Goes to the start of other rows.
    pub fn restart(&mut self, count: usize) {
        (self.cursor, self.top) = (0, 0);
        self.resize(count);
    }

    pub fn cursor(&self) -> usize {
        self.cursor
    }

    pub fn visible(&self) -> Range<usize> {
        self.top..(self.top + self.height).min(self.count)
    }

    /// Returns whether rows above and below the visible ones exist.
    pub fn has_more(&self) -> (bool, bool) {
        (self.top > 0, self.visible().end < self.count)
    }

    /// Returns the position as `last visible row/number of rows`.
    pub fn position(&self) -> String {
        format!("{}/{}", self.visible().end, self.count)
    }

    /// Moves the cursor to a row. A text has the row at the top, if it is long enough.
    pub fn go_to(&mut self, at: usize) {
        self.cursor = at;
        if self.is_text {
            self.top = at;
        }
        self.resize(self.count);
    }

    /// Moves the cursor, or scrolls a text.
    pub fn step(&mut self, by: isize) {
        match self.is_text {
            true => self.scroll(by),
            false => self.go_to(self.cursor.saturating_add_signed(by)),
        }
    }

    /// Scrolls. The cursor stays on the screen.
    pub fn scroll(&mut self, by: isize) {
        let last = self.count.saturating_sub(self.height.max(1));
        self.top = self.top.saturating_add_signed(by).min(last);
        let lowest = self.top + self.height.saturating_sub(1);
        self.cursor = match self.is_text {
            true => self.top,
            false => self.cursor.clamp(self.top, lowest),
        };
        self.resize(self.count);
    }

    /// Handles a key that moves or searches, and returns whether it does. `text` returns the text of
    /// a row.
    pub fn press(&mut self, key: &Key, text: impl Fn(usize) -> String) -> bool {
        self.search_by(key, text) || self.move_by(key)
    }

    /// Like [`List::press`], with the keys of a pager.
    pub fn read(&mut self, key: &Key, text: impl Fn(usize) -> String) -> bool {
        match key {
            _ if self.is_searching() => self.press(key, text),
            Key::Enter => self.press(&Key::Down, text),
            Key::Char(' ' | 'f') => self.press(&Key::PageDown, text),
            Key::Char('b') => self.press(&Key::PageUp, text),
            key => self.press(key, text),
        }
    }

    /// Handles a key that moves. Returns whether it does.
    pub fn move_by(&mut self, key: &Key) -> bool {
        let page = self.height.saturating_sub(1).max(1) as isize;
        self.step(match key {
            Key::Char('j') | Key::Down => 1,
            Key::Char('k') | Key::Up => -1,
            Key::PageDown | Key::Ctrl('f') => page,
            Key::PageUp | Key::Ctrl('b') => -page,
            Key::Char('g') | Key::Home => isize::MIN / 2,
            Key::Char('G') | Key::End => isize::MAX / 2,
            _ => return false,
        });
        true
    }

    /// Handles a key that searches, which is every key while the user types the text.
    pub fn search_by(&mut self, key: &Key, text: impl Fn(usize) -> String) -> bool {
        self.notice = None;
        let (here, count) = (self.cursor, self.count);
        match key {
            _ if self.is_searching() => {
                self.search = self.search.take().and_then(|search| search.press(key));
                self.find((here..count).chain(0..here), text);
            }
            Key::Char('/') => self.search = Some(Search::begin()),
            Key::Char('n') => self.find((here + 1..count).chain(0..count.min(here + 1)), text),
            Key::Char('N') => self.find((0..here).rev().chain((here..count).rev()), text),
            _ => return false,
        }
        true
    }

    /// Goes to the first of `rows` that contains the submitted text, ignoring case.
    fn find(&mut self, mut rows: impl Iterator<Item = usize>, text: impl Fn(usize) -> String) {
        let Some(Search::Submitted(query)) = &self.search else {
            return;
        };
        let lowercase = query.to_lowercase();
        match rows.find(|at| text(*at).to_lowercase().contains(&lowercase)) {
            Some(at) => self.go_to(at),
            None => self.notice = Some(format!("`{query}` was not found")),
        }
    }

    fn is_searching(&self) -> bool {
        matches!(self.search, Some(Search::Open(_)))
    }

    /// Returns the search while the user types it, or else the notice.
    pub fn status(&self) -> Option<StyledLine> {
        let prompt = self.search.as_ref().and_then(Search::prompt);
        let notice = self.notice.as_deref();
        prompt.or_else(|| notice.map(|notice| StyledLine::of(Tone::Warning, notice)))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Search {
    /// The user is typing it.
    Open(String),
    /// Submitted; the user can go to further matches.
    Submitted(String),
}

impl Search {
    /// Returns an empty search prompt.
    pub fn begin() -> Search {
        Search::Open(String::new())
    }

    /// Handles a key at the prompt. Returns `None` if the user cancels.
    pub fn press(self, key: &Key) -> Option<Search> {
        let Search::Open(mut text) = self else {
            return Some(self);
        };
        match key {
            Key::Char(c) => text.push(*c),
            Key::Backspace => drop(text.pop()),
            Key::Enter => return (!text.is_empty()).then_some(Search::Submitted(text)),
            Key::Esc | Key::Ctrl('c') | Key::Terminate => return None,
            _ => {}
        }

        Some(Search::Open(text))
    }

    /// Returns the prompt, while the user is typing.
    pub fn prompt(&self) -> Option<StyledLine> {
        let Search::Open(text) = self else {
            return None;
        };
        Some(StyledLine::of(Tone::Accent, &format!("/{text}█")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Presses keys on ten rows, of which four are visible. Returns the top row and the cursor.
    fn pressed(mut list: List, keys: &str) -> [usize; 2] {
        list.fit(10, 4);
        for c in keys.chars() {
            let key = if c == '\n' { Key::Enter } else { Key::Char(c) };
            list.read(&key, |at| format!("row {at}"));
        }
        [list.top, list.cursor]
    }

    #[test]
    fn the_cursor_is_on_the_screen() {
        let check = |keys, expected| assert_eq!(pressed(List::default(), keys), expected, "{keys}");
        check("jjj", [0, 3]);
        check("jjjj", [1, 4]);
        check("G", [6, 9]);
        check("Gk", [6, 8]);
        check("Gg", [0, 0]);
        check("k", [0, 0]);
        check("  b", [3, 3]);
        let scrolled = |by: &[isize]| {
            let mut list = List::default();
            list.fit(10, 4);
            by.iter().for_each(|by| list.scroll(*by));
            [list.top, list.cursor]
        };
        assert_eq!(scrolled(&[2]), [2, 2]);
        assert_eq!(scrolled(&[99, -99]), [0, 3]);
    }

    #[test]
    fn a_text_scrolls_and_stops_at_both_ends() {
        let check = |keys, expected| assert_eq!(pressed(List::text(), keys)[0], expected, "{keys}");
        check("jjk", 1);
        check("kk", 0);
        check("G", 6);
        check("    ", 6);
        check("Ggj", 1);
        check("/ROW 3\n", 3);
        check("/row\nnn", 2);
    }

    #[test]
    fn a_search_goes_around_in_both_directions() {
        let check = |keys, expected| {
            for list in [List::default(), List::text()] {
                assert_eq!(pressed(list, keys)[1], expected, "{keys}");
            }
        };
        check("/ROW 3\n", 3);
        check("/row\nn", 1);
        check("/row\nnN", 0);
        check("/row\nN", 9);
        check("/row\nNn", 0);
        // A text cannot scroll its last rows to the top, but the search reaches them.
        check("/row 7\nn/row\nnn", 9);
        check("/none\n", 0);
    }

    #[test]
    fn a_search_without_a_match_is_reported() {
        let mut list = List::default();
        list.fit(10, 4);
        let mut press = |key| {
            let is_taken = list.read(&key, |at| format!("row {at}"));
            (is_taken, list.notice.clone())
        };
        assert_eq!(press(Key::Char('n')), (true, None));
        for key in [Key::Char('/'), Key::Char('x'), Key::Char(' ')] {
            assert_eq!(press(key), (true, None));
        }
        let missing = "`x ` was not found".to_owned();
        assert_eq!(press(Key::Enter), (true, Some(missing)));
        assert_eq!(press(Key::Char('x')), (false, None));
    }

    #[test]
    fn a_shorter_list_has_no_gap_and_a_visible_cursor() {
        let mut list = List::default();
        list.fit(10, 4);
        list.go_to(9);
        list.resize(5);
        assert_eq!([list.top, list.cursor], [1, 4]);
        list.resize(0);
        assert_eq!((list.visible(), list.cursor), (0..0, 0));
        list.step(1);
        list.scroll(1);
        assert_eq!(list.position(), "0/0");
    }

    #[test]
    fn a_search_text_can_be_edited_and_cancelled() {
        let search = Search::begin()
            .press(&Key::Char('a'))
            .and_then(|search| search.press(&Key::Backspace));
        assert_eq!(search, Some(Search::begin()));
        assert_eq!(search.and_then(|search| search.press(&Key::Esc)), None);
    }
}
