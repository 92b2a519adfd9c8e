//! State of the `teddy browse` screen.
//!
//! It knows neither the terminal nor the repository, so tests can drive it with keys and data
//! alone.

use std::collections::{HashMap, HashSet};

use super::source::{BrowseNews, BrowseRequest};
use super::tree::BrowseTree;
use super::turn_view::{FileDiffView, TurnView};
use crate::git::object::CommitId;
use crate::text::counted;
use crate::ui::browse::turn_view::{BrowseTab, TabLine};
use crate::ui::browse::{TurnAddress, turn_view};
use crate::ui::list::{List, Search};
use crate::ui::pager::Pager;
use crate::ui::style::{StyledLine, Tone};

/// Turns that stay in memory once they were shown.
const MAX_SHEETS: usize = 24;

/// Pane that receives keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BrowseSide {
    #[default]
    Tree,
    /// The selected turn.
    Detail,
}

#[derive(Default)]
pub struct Browser {
    /// Sessions and turns.
    pub tree: BrowseTree,
    pub tab: BrowseTab,
    /// Pane that receives keys.
    pub side: BrowseSide,
    /// Whether the turn fills the screen.
    pub is_zoomed: bool,
    pub lines: Vec<TabLine>,
    /// Position in these lines, and the message of the screen.
    pub detail: List,
    /// Turns marked for a comparison, at most two.
    pub marks: Vec<(CommitId, TurnAddress)>,
    /// Search across sessions, while the user types it.
    pub search: Option<Search>,
    /// Why the sessions can't be read. `None` if they can.
    pub trouble: Option<String>,
    /// Text that covers the screen, such as the help.
    pub text: Option<Pager>,
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
                let is_read = self.side == BrowseSide::Detail || self.detail.visible().start > 0;
                self.tree.learn(timeline, is_read);
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
                self.text = Some(Pager::new(&title, lines));
                self.detail.notice = None;
            }
            BrowseNews::Compared(_, Err(why)) => self.detail.notice = Some(why),
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
        let chosen = self.file_at_cursor().filter(|_| self.has_cursor());
        match (chosen, files.as_slice()) {
            (Some(at), files) => files.get(at),
            (None, [only]) => Some(only),
            _ => None,
        }
    }

    fn file_at_cursor(&self) -> Option<usize> {
        self.lines.get(self.detail.cursor())?.file
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
        let at = self.file_at_cursor();
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
        let is_heading = |line: &TabLine| line.is_head && line.file == at;
        if let Some(heading) = self.lines.iter().position(is_heading) {
            self.detail.go_to(heading);
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
        self.lines = self.render_lines(width);
        match is_same {
            true => self.detail.resize(self.lines.len()),
            false => self.detail.restart(self.lines.len()),
        }
        self.is_stale = false;
    }

    fn render_lines(&self, width: usize) -> Vec<TabLine> {
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
        self.detail.notice = Some(format!("searching for `{text}`…"));
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
                self.detail.notice = Some(why);
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
            self.detail.notice = Some(format!("`{text}` was found nowhere"));
            self.search_results = None;
            return;
        }
        self.search_results = Some(FoundTurns { text, turns, at: 0 });
        self.go_to_found(0);
    }

    /// Moves by `by` among the matching turns, wrapping around.
    pub fn go_to_found(&mut self, by: isize) {
        let Some(results) = &mut self.search_results else {
            self.detail.notice = Some("nothing was searched for yet: / does".to_owned());
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
        self.detail.notice = Some(format!(
            "{number} of {} with `{}`: {location}",
            counted(count, "turn"),
            results.text
        ));
    }
}

#[cfg(test)]
mod tests;
