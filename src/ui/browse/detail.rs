//! The right side: the lines of a tab, the place in them, and a search in what is shown.

use super::tabs::TabLine;
use crate::ui::key::Key;
use crate::ui::search::{Search, SearchDirection};

/// The lines of a tab.
#[derive(Debug, Clone, Default)]
pub struct DetailPane {
    /// The lines.
    pub lines: Vec<TabLine>,
    /// The first one on the screen.
    pub top: usize,
    /// The one that keys are for, where that matters.
    pub cursor: usize,
    /// Lines on the screen.
    height: usize,
    /// What is searched for.
    search: Option<Search>,
}

impl DetailPane {
    /// Takes other lines; the place stays if they are those of the same thing.
    pub fn fill(&mut self, lines: Vec<TabLine>, is_same: bool) {
        self.lines = lines;
        if !is_same {
            (self.top, self.cursor) = (0, 0);
        }
        self.scroll(0);
    }

    /// Fits it to so many lines on the screen.
    pub fn fit(&mut self, height: usize) {
        self.height = height.max(1);
        self.scroll(0);
    }

    /// Returns the lines on the screen, each with its number.
    pub fn shown(&self) -> impl Iterator<Item = (usize, &TabLine)> {
        let lines = self.lines.iter().enumerate();
        lines.skip(self.top).take(self.height)
    }

    /// Returns how far a page goes.
    pub fn page(&self) -> isize {
        self.height.saturating_sub(1).max(1) as isize
    }

    /// Returns how much is above the end of the screen.
    pub fn place(&self) -> String {
        let end = (self.top + self.height).min(self.lines.len());
        format!("{end}/{}", self.lines.len())
    }

    /// Moves the screen; the cursor comes along.
    pub fn scroll(&mut self, by: isize) {
        let last = self.lines.len().saturating_sub(self.height);
        self.top = self.top.saturating_add_signed(by).min(last);
        let lowest = self.top + self.height.saturating_sub(1);
        self.cursor = self.cursor.clamp(self.top, lowest);
        self.cursor = self.cursor.min(self.lines.len().saturating_sub(1));
    }

    /// Moves the cursor; the screen comes along.
    pub fn step(&mut self, by: isize) {
        let last = self.lines.len().saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(by).min(last);
        let lowest = self.cursor.saturating_sub(self.height.saturating_sub(1));
        self.top = self.top.clamp(lowest, self.cursor);
    }

    /// Returns the file under the cursor.
    pub fn file(&self) -> Option<usize> {
        self.lines.get(self.cursor)?.file
    }

    /// Goes to the first line of a file.
    pub fn go_to_file(&mut self, file: usize) {
        let is_head = |line: &TabLine| line.is_head && line.file == Some(file);
        if let Some(at) = self.lines.iter().position(is_head) {
            self.step(at as isize - self.cursor as isize);
        }
    }

    /// Begins a search.
    pub fn begin_search(&mut self) {
        self.search = Some(Search::begin());
    }

    /// Returns the search while it is written.
    pub fn open_search(&self) -> Option<&Search> {
        self.search
            .as_ref()
            .filter(|search| matches!(search, Search::Open(_)))
    }

    /// Takes a key while the search is written. Returns what was not found.
    pub fn type_in(&mut self, key: &Key) -> Option<String> {
        self.search = self.search.take().and_then(|search| search.press(key));
        match self.search {
            Some(Search::Known(_)) => self.find(SearchDirection::Here),
            _ => None,
        }
    }

    /// Goes to the next line that has what is searched for. Returns what was not found.
    pub fn find(&mut self, step: SearchDirection) -> Option<String> {
        let search = self.search.as_ref()?;
        let text = |at: usize| self.lines[at].line.text();
        match search.find((step, self.cursor), self.lines.len(), text) {
            Some(at) => {
                self.step(at as isize - self.cursor as isize);
                None
            }
            None => Some(search.text().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::style::StyledLine;

    /// Moves in ten lines, four of which are on the screen, and compares place and cursor.
    #[track_caller]
    fn check(moves: &[(bool, isize)], expected: (usize, usize)) {
        let line = |n| TabLine::of(StyledLine::plain(&format!("line {n}")));
        let mut pane = DetailPane::default();
        pane.fit(4);
        pane.fill((0..10).map(line).collect(), false);
        for (is_step, by) in moves {
            match is_step {
                true => pane.step(*by),
                false => pane.scroll(*by),
            }
        }
        assert_eq!((pane.top, pane.cursor), expected, "{moves:?}");
    }

    #[test]
    fn the_cursor_is_on_the_screen() {
        check(&[(true, 3)], (0, 3));
        check(&[(true, 4)], (1, 4));
        check(&[(true, 99)], (6, 9));
        check(&[(true, 99), (true, -1)], (6, 8));
        check(&[(false, 2)], (2, 2));
        check(&[(false, 99), (false, -99)], (0, 3));
        check(&[(true, -1)], (0, 0));
    }

    #[test]
    fn a_text_is_searched_from_the_cursor_on() {
        let mut pane = DetailPane::default();
        let lines = ["one", "two", "one"].map(|text| TabLine::of(StyledLine::plain(text)));
        pane.fill(lines.to_vec(), false);
        pane.begin_search();
        for key in [Key::Char('O'), Key::Char('n'), Key::Char('e'), Key::Enter] {
            assert_eq!(pane.type_in(&key), None);
        }
        assert_eq!((pane.cursor, pane.find(SearchDirection::Next)), (0, None));
        assert_eq!(pane.cursor, 2);
        pane.fill(lines[1..2].to_vec(), false);
        assert_eq!(pane.find(SearchDirection::Next), Some("One".to_owned()));
    }
}
