//! State of the `teddy browse` screen.
//!
//! It knows neither the terminal nor the repository, so tests can drive it with keys and data
//! alone.

use std::collections::{HashMap, HashSet};

use super::source::{BrowseNews, BrowseRequest};
use super::tree::BrowseTree;
use super::turn_view::{FileDiffView, TurnView};
use crate::git::object::CommitId;
use crate::ui::browse::TurnAddress;
use crate::ui::browse::turn_view;
use crate::ui::browse::turn_view::{BrowseTab, TabLine};
use crate::ui::key::Key;
use crate::ui::search::{Search, SearchDirection};
use crate::ui::style::{StyledLine, Tone};
use crate::ui::viewer::Viewer;

/// Turns that stay in memory once they were shown.
const MAX_SHEETS: usize = 24;

/// Pane that receives keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BrowseSide {
    /// The tree of sessions.
    #[default]
    Tree,
    /// The selected turn.
    Detail,
}

/// State of the browser.
#[derive(Default)]
pub struct Browser {
    /// Sessions and turns.
    pub tree: BrowseTree,
    /// Selected tab.
    pub tab: BrowseTab,
    /// Pane that receives keys.
    pub side: BrowseSide,
    /// Whether the turn fills the screen.
    pub is_zoomed: bool,
    /// Lines of the selected tab.
    pub detail: DetailPane,
    /// Turns marked for a comparison, at most two.
    pub marks: Vec<(CommitId, TurnAddress)>,
    /// Search across sessions, while the user types it.
    pub search: Option<Search>,
    /// Message shown until the next key.
    pub notice: Option<String>,
    /// Why the sessions can't be read. `None` if they can.
    pub trouble: Option<String>,
    /// Text that covers the screen, such as the help.
    pub text: Option<Viewer>,
    /// Whether all turns have been read.
    pub is_whole: bool,
    search_results: Option<FoundTurns>,
    /// Turns read so far, the latest at the end.
    turn_views: Vec<(CommitId, Result<Box<TurnView>, String>)>,
    /// The turn requested last. It is not requested twice.
    asked: Option<CommitId>,
    /// Indices of files that the user folded or unfolded.
    toggled: HashMap<CommitId, HashSet<usize>>,
    /// Turn, tab and width that the lines of the tab were rendered for.
    made_for: Option<(Option<CommitId>, BrowseTab, usize)>,
    is_stale: bool,
}

struct FoundTurns {
    text: String,
    /// Each with a matching line.
    turns: Vec<(CommitId, String)>,
    /// Index of the current match.
    at: usize,
}

impl Browser {
    /// Applies data from the reader.
    pub fn learn(&mut self, news: BrowseNews) {
        match news {
            BrowseNews::Timeline(timeline, is_whole) => {
                let follows = self.side == BrowseSide::Tree && self.detail.top == 0;
                self.tree.learn(timeline, follows);
                self.is_whole |= is_whole;
                self.trouble = None;
                self.forget_failures();
            }
            BrowseNews::Turn(commit, turn_view) => {
                self.turn_views.retain(|(other, _)| *other != commit);
                if self.turn_views.len() >= MAX_SHEETS {
                    let _oldest = self.turn_views.remove(0);
                }
                self.turn_views.push((commit, turn_view));
                self.asked = self.asked.filter(|asked| *asked != commit);
                self.is_stale = true;
            }
            BrowseNews::Matches(text, result) => self.show_search_results(text, result),
            BrowseNews::Compared(names, Ok(lines)) => {
                let title = format!("{} and {}", names[0], names[1]);
                self.text = Some(Viewer::new(&title, lines));
                self.notice = None;
            }
            BrowseNews::Compared(_, Err(why)) => self.notice = Some(why),
            BrowseNews::Trouble(why) => {
                self.trouble = why;
                if self.trouble.is_none() {
                    self.forget_failures();
                }
            }
        }
    }

    /// Drops turns that could not be read, so they are requested again.
    fn forget_failures(&mut self) {
        self.turn_views.retain(|(_, turn_view)| turn_view.is_ok());
        self.is_stale = true;
    }

    /// Returns the next read request. Each turn is requested once.
    pub fn next_request(&mut self) -> Option<BrowseRequest> {
        let (lane, row) = self.tree.selected()?;
        let (session, commit) = (lane.name.clone(), row.commit);
        if self.asked == Some(commit) || self.turn_view_of(commit).is_some() {
            return None;
        }
        self.asked = Some(commit);
        Some(BrowseRequest::Turn(session, commit))
    }

    /// Returns the address of the selected turn.
    pub fn address(&self) -> Option<TurnAddress> {
        let (lane, row) = self.tree.selected()?;
        Some(TurnAddress {
            session: lane.name.clone(),
            number: row.number,
        })
    }

    /// Returns the commit of the selected turn.
    pub fn commit(&self) -> Option<CommitId> {
        self.tree.selected().map(|(_, row)| row.commit)
    }

    /// Returns the contents of the selected turn, once they were read.
    pub fn turn_view(&self) -> Option<&TurnView> {
        let turn_view = self.turn_view_of(self.commit()?)?;
        turn_view.as_deref().ok()
    }

    /// Returns the file under the cursor, or the turn's only file.
    pub fn file(&self) -> Option<&FileDiffView> {
        let files = &self.turn_view()?.files;
        let chosen = self.detail.file().filter(|_| self.has_cursor());
        match (chosen, files.as_slice()) {
            (Some(at), files) => files.get(at),
            (None, [only]) => Some(only),
            _ => None,
        }
    }

    /// Returns whether the lines of the tab have a cursor.
    pub fn has_cursor(&self) -> bool {
        self.tab == BrowseTab::Difference && self.side == BrowseSide::Detail
    }

    /// Folds or unfolds the file under the cursor, or all files.
    pub fn toggle_files(&mut self, all: bool) {
        let (Some(commit), Some(turn_view)) = (self.commit(), self.turn_view()) else {
            return;
        };
        let count = turn_view.files.len();
        let at = self.detail.file();
        let toggled = self.toggled.entry(commit).or_default();
        let chosen = if all {
            0..count
        } else {
            at.map_or(0..0, |at| at..at + 1)
        };
        for file in chosen {
            // The set contains deviations from the default, so toggling twice removes the entry.
            if !toggled.insert(file) {
                toggled.remove(&file);
            }
        }

        self.is_stale = true;
        let width = self.made_for.map_or(1, |(.., width)| width);
        self.refresh(width);
        // The lines have moved: keep the cursor on the file.
        if let Some(at) = at {
            self.detail.go_to_file(at);
        }
    }

    /// Renders the lines of the tab for a width, unless they are current.
    pub fn refresh(&mut self, width: usize) {
        let current = (self.commit(), self.tab, width);
        let before = self.made_for.replace(current);
        if before == Some(current) && !self.is_stale {
            return;
        }

        // Keep the scroll position if only the width or the contents changed.
        let is_same =
            before.is_some_and(|(commit, tab, _)| (commit, tab) == (current.0, current.1));
        let lines = self.lines(width);
        self.detail.set_lines(lines, is_same);
        self.is_stale = false;
    }

    fn lines(&self, width: usize) -> Vec<TabLine> {
        let one = |line: StyledLine| line.fold(width.max(1)).into_iter().map(TabLine::of);
        let Some(commit) = self.commit() else {
            let text = match self.tree.is_empty() {
                true if self.is_whole => "There are no sessions.",
                true => "Reading…",
                false => "No turn is selected.",
            };
            return one(StyledLine::of(Tone::Faint, text)).collect();
        };

        match self.turn_view_of(commit) {
            None => one(StyledLine::of(Tone::Faint, "Reading…")).collect(),
            Some(Err(why)) => one(StyledLine::of(Tone::Warning, &format!("! {why}"))).collect(),
            Some(Ok(turn_view)) => {
                let toggled = self.toggled.get(&commit);
                let is_toggled = |at| toggled.is_some_and(|toggled| toggled.contains(&at));
                turn_view::tab_lines(turn_view, self.tab, width, &is_toggled)
            }
        }
    }

    fn turn_view_of(&self, commit: CommitId) -> Option<&Result<Box<TurnView>, String>> {
        let entry = self.turn_views.iter().find(|(other, _)| *other == commit);
        entry.map(|(_, turn_view)| turn_view)
    }

    /// Marks the selected turn, or removes its mark. A third mark replaces the oldest.
    pub fn mark(&mut self) {
        let (Some(commit), Some(address)) = (self.commit(), self.address()) else {
            return;
        };
        let before = self.marks.len();
        self.marks.retain(|(other, _)| *other != commit);
        if self.marks.len() == before {
            self.marks.push((commit, address));
        }
        if self.marks.len() > 2 {
            self.marks.remove(0);
        }
    }

    /// Starts a search through the recorded sessions.
    pub fn seek(&mut self, text: &str) -> BrowseRequest {
        self.notice = Some(format!("searching for `{text}`…"));
        BrowseRequest::Find(text.to_owned())
    }

    /// Stores the matches, adds turns whose title matches, and goes to the first one.
    fn show_search_results(
        &mut self,
        text: String,
        result: Result<Vec<(CommitId, String)>, String>,
    ) {
        let mut turns = match result {
            Ok(turns) => turns,
            Err(why) => {
                self.notice = Some(why);
                return;
            }
        };
        let matched: HashSet<CommitId> = turns.iter().map(|(commit, _)| *commit).collect();
        let titled = self
            .tree
            .titled(&text)
            .filter(|commit| !matched.contains(commit));
        turns.extend(titled.map(|commit| (commit, "in the title".to_owned())));

        if turns.is_empty() {
            self.notice = Some(format!("`{text}` was found nowhere"));
            self.search_results = None;
            return;
        }
        self.search_results = Some(FoundTurns { text, turns, at: 0 });
        self.go_to_found(0);
    }

    /// Moves by `by` among the matching turns, wrapping around.
    pub fn go_to_found(&mut self, by: isize) {
        let Some(results) = &mut self.search_results else {
            self.notice = Some("nothing was searched for yet: / does".to_owned());
            return;
        };
        let count = results.turns.len();
        results.at = (results.at as isize + by).rem_euclid(count as isize) as usize;
        let (commit, location) = &results.turns[results.at];
        let number = results.at + 1;
        let location = match self.tree.go_to(*commit) {
            true => location.as_str(),
            false => "in a session that is not shown",
        };
        self.notice = Some(format!(
            "{number} of {count} turns with `{}`: {location}",
            results.text
        ));
    }
}

/// Lines of a tab with a scroll position.
#[derive(Debug, Clone, Default)]
pub struct DetailPane {
    pub lines: Vec<TabLine>,
    /// Index of the first visible line.
    pub top: usize,
    /// Index of the selected line, in tabs with a cursor.
    pub cursor: usize,
    height: usize,
    search: Option<Search>,
}

impl DetailPane {
    /// Replaces the lines. Keeps the position if `is_same`.
    pub fn set_lines(&mut self, lines: Vec<TabLine>, is_same: bool) {
        self.lines = lines;
        if !is_same {
            (self.top, self.cursor) = (0, 0);
        }
        self.scroll(0);
    }

    /// Sets the number of visible lines.
    pub fn fit(&mut self, height: usize) {
        self.height = height.max(1);
        self.scroll(0);
    }

    /// Returns the visible lines with their indices.
    pub fn visible_lines(&self) -> impl Iterator<Item = (usize, &TabLine)> {
        let lines = self.lines.iter().enumerate();
        lines.skip(self.top).take(self.height)
    }

    /// Returns the number of lines in a page.
    pub fn page(&self) -> isize {
        self.height.saturating_sub(1).max(1) as isize
    }

    /// Returns the position as `last visible line/line count`.
    pub fn position(&self) -> String {
        let end = (self.top + self.height).min(self.lines.len());
        format!("{end}/{}", self.lines.len())
    }

    /// Scrolls and keeps the cursor visible.
    pub fn scroll(&mut self, by: isize) {
        let last = self.lines.len().saturating_sub(self.height);
        self.top = self.top.saturating_add_signed(by).min(last);
        let lowest = self.top + self.height.saturating_sub(1);
        self.cursor = self.cursor.clamp(self.top, lowest);
        self.cursor = self.cursor.min(self.lines.len().saturating_sub(1));
    }

    /// Moves the cursor and scrolls to keep it visible.
    pub fn step(&mut self, by: isize) {
        let last = self.lines.len().saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(by).min(last);
        let lowest = self.cursor.saturating_sub(self.height.saturating_sub(1));
        self.top = self.top.clamp(lowest, self.cursor);
    }

    /// Returns the index of the file under the cursor.
    pub fn file(&self) -> Option<usize> {
        self.lines.get(self.cursor)?.file
    }

    /// Moves the cursor to the header of a file.
    pub fn go_to_file(&mut self, file: usize) {
        let is_head = |line: &TabLine| line.is_head && line.file == Some(file);
        if let Some(at) = self.lines.iter().position(is_head) {
            self.step(at as isize - self.cursor as isize);
        }
    }

    /// Opens the search prompt.
    pub fn begin_search(&mut self) {
        self.search = Some(Search::begin());
    }

    /// Returns the search while the user types it.
    pub fn open_search(&self) -> Option<&Search> {
        self.search
            .as_ref()
            .filter(|search| matches!(search, Search::Open(_)))
    }

    /// Handles a key at the search prompt. Returns the text if it has no match.
    pub fn type_in(&mut self, key: &Key) -> Option<String> {
        self.search = self.search.take().and_then(|search| search.press(key));
        match self.search {
            Some(Search::Submitted(_)) => self.find(SearchDirection::Here),
            _ => None,
        }
    }

    /// Moves to the next match. Returns the text if it has no match.
    pub fn find(&mut self, step: SearchDirection) -> Option<String> {
        let search = self.search.as_ref()?;
        let text = |at: usize| self.lines[at].line.text();
        match search.find(step, self.cursor, self.lines.len(), text) {
            Some(at) => {
                self.step(at as isize - self.cursor as isize);
                None
            }
            None => Some(search.text().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod detail_tests {
    use super::*;
    use crate::ui::style::StyledLine;

    #[track_caller]
    fn check(moves: &[(bool, isize)], expected: (usize, usize)) {
        let line = |n| TabLine::of(StyledLine::plain(&format!("line {n}")));
        let mut pane = DetailPane::default();
        pane.fit(4);
        pane.set_lines((0..10).map(line).collect(), false);
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
        pane.set_lines(lines.to_vec(), false);
        pane.begin_search();
        for key in [Key::Char('O'), Key::Char('n'), Key::Char('e'), Key::Enter] {
            assert_eq!(pane.type_in(&key), None);
        }
        assert_eq!((pane.cursor, pane.find(SearchDirection::Next)), (0, None));
        assert_eq!(pane.cursor, 2);
        pane.set_lines(lines[1..2].to_vec(), false);
        assert_eq!(pane.find(SearchDirection::Next), Some("One".to_owned()));
    }
}
