//! What the browser shows, and what it learns: without a terminal, without a repository.

use std::collections::{HashMap, HashSet};

use super::deed::TurnAddress;
use super::detail::DetailPane;
use super::sheet::{FileSheet, TurnSheet};
use super::source::{BrowseNews, BrowseWish};
use super::tabs::{self, BrowseTab, TabLine};
use super::tree::BrowseTree;
use crate::git::object::CommitId;
use crate::ui::search::Search;
use crate::ui::style::{StyledLine, Tone};
use crate::ui::viewer::Viewer;

/// So many turns are kept once they were shown.
const MAX_SHEETS: usize = 24;

/// Where keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BrowseSide {
    /// To the tree.
    #[default]
    Tree,
    /// To what is shown of a turn.
    Detail,
}

/// The browser.
#[derive(Default)]
pub struct Browser {
    /// The sessions and turns.
    pub tree: BrowseTree,
    /// What is shown of the turn.
    pub tab: BrowseTab,
    /// Where keys go.
    pub side: BrowseSide,
    /// Whether the turn has the whole screen.
    pub is_zoomed: bool,
    /// The lines of the tab.
    pub detail: DetailPane,
    /// Two turns that are to be compared.
    pub marks: Vec<(CommitId, TurnAddress)>,
    /// A search in what the sessions recorded, while it is written.
    pub search: Option<Search>,
    /// What is to be said until the next key.
    pub notice: Option<String>,
    /// Why the sessions cannot be read any more.
    pub trouble: Option<String>,
    /// A text above everything.
    pub text: Option<Viewer>,
    /// Whether all turns are there.
    pub is_whole: bool,
    /// What was found.
    found: Option<FoundTurns>,
    /// Turns that were shown, the one that was read last at the end.
    sheets: Vec<(CommitId, Result<Box<TurnSheet>, String>)>,
    /// The turn that is being read.
    asked: Option<CommitId>,
    /// Files that were opened or folded by hand.
    toggled: HashMap<CommitId, HashSet<usize>>,
    /// What the lines of the tab were made for: the turn, the tab, the width.
    made_for: Option<(Option<CommitId>, BrowseTab, usize)>,
    /// Whether they have to be made anew all the same.
    is_stale: bool,
}

/// The turns in which a text was found.
struct FoundTurns {
    /// The text.
    text: String,
    /// The turns, each with a line of it.
    turns: Vec<(CommitId, String)>,
    /// Which of them was gone to last.
    at: usize,
}

impl Browser {
    /// Takes what was read.
    pub fn learn(&mut self, news: BrowseNews) {
        match news {
            BrowseNews::Timeline(timeline, is_whole) => {
                self.tree.learn(timeline);
                self.is_whole |= is_whole;
                self.trouble = None;
                self.forget_failures();
            }
            BrowseNews::Sheet(commit, sheet) => {
                self.sheets.retain(|(known, _)| *known != commit);
                if self.sheets.len() >= MAX_SHEETS {
                    let _oldest = self.sheets.remove(0);
                }
                self.sheets.push((commit, sheet));
                self.asked = self.asked.filter(|asked| *asked != commit);
                self.is_stale = true;
            }
            BrowseNews::Found(text, found) => self.take_found(text, found),
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

    /// Has turns that could not be read asked for again.
    fn forget_failures(&mut self) {
        self.sheets.retain(|(_, sheet)| sheet.is_ok());
        self.is_stale = true;
    }

    /// Returns what is to be read next, once.
    pub fn wish(&mut self) -> Option<BrowseWish> {
        let (lane, row) = self.tree.selected()?;
        let (session, commit) = (lane.name.clone(), row.commit);
        if self.asked == Some(commit) || self.sheet_of(commit).is_some() {
            return None;
        }
        self.asked = Some(commit);
        Some(BrowseWish::Sheet(session, commit))
    }

    /// Returns the turn under the cursor.
    pub fn address(&self) -> Option<TurnAddress> {
        let (lane, row) = self.tree.selected()?;
        Some(TurnAddress {
            session: lane.name.clone(),
            number: row.number,
        })
    }

    /// Returns the commit of the turn under the cursor.
    pub fn commit(&self) -> Option<CommitId> {
        self.tree.selected().map(|(_, row)| row.commit)
    }

    /// Returns what is shown of the turn under the cursor, if it was read.
    pub fn sheet(&self) -> Option<&TurnSheet> {
        let sheet = self.sheet_of(self.commit()?)?;
        sheet.as_deref().ok()
    }

    /// Returns the file that is meant: the one under the cursor, or the only one.
    pub fn file(&self) -> Option<&FileSheet> {
        let files = &self.sheet()?.files;
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

    /// Opens or folds the file under the cursor, or all of them.
    pub fn toggle_files(&mut self, all: bool) {
        let (Some(commit), Some(sheet)) = (self.commit(), self.sheet()) else {
            return;
        };
        let count = sheet.files.len();
        let at = self.detail.file();
        let toggled = self.toggled.entry(commit).or_default();
        let chosen = if all {
            0..count
        } else {
            at.map_or(0..0, |at| at..at + 1)
        };
        for file in chosen {
            if !toggled.insert(file) {
                toggled.remove(&file);
            }
        }

        self.is_stale = true;
        let width = self.made_for.map_or(1, |(.., width)| width);
        self.fill(width);
        if let Some(at) = at {
            self.detail.go_to_file(at);
        }
    }

    /// Makes the lines of the tab for a width, if they are not there already.
    pub fn fill(&mut self, width: usize) {
        let wanted = (self.commit(), self.tab, width);
        let before = self.made_for.replace(wanted);
        if before == Some(wanted) && !self.is_stale {
            return;
        }

        let is_same = before.is_some_and(|(commit, tab, _)| (commit, tab) == (wanted.0, wanted.1));
        let lines = self.lines(width);
        self.detail.fill(lines, is_same);
        self.is_stale = false;
    }

    /// Returns the lines of the tab.
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

        match self.sheet_of(commit) {
            None => one(StyledLine::of(Tone::Faint, "Reading…")).collect(),
            Some(Err(why)) => one(StyledLine::of(Tone::Warning, &format!("! {why}"))).collect(),
            Some(Ok(sheet)) => {
                let toggled = self.toggled.get(&commit);
                let is_toggled = |at| toggled.is_some_and(|toggled| toggled.contains(&at));
                tabs::lines(sheet, self.tab, width, &is_toggled)
            }
        }
    }

    /// Returns what was read of a turn.
    fn sheet_of(&self, commit: CommitId) -> Option<&Result<Box<TurnSheet>, String>> {
        let found = self.sheets.iter().find(|(known, _)| *known == commit);
        found.map(|(_, sheet)| sheet)
    }

    /// Marks the turn under the cursor, or takes the mark away; of three marks the oldest goes.
    pub fn mark(&mut self) {
        let (Some(commit), Some(address)) = (self.commit(), self.address()) else {
            return;
        };
        let before = self.marks.len();
        self.marks.retain(|(marked, _)| *marked != commit);
        if self.marks.len() == before {
            self.marks.push((commit, address));
        }
        if self.marks.len() > 2 {
            self.marks.remove(0);
        }
    }

    /// Begins to search what the sessions recorded.
    pub fn seek(&mut self, text: &str) -> BrowseWish {
        self.notice = Some(format!("searching for `{text}`…"));
        BrowseWish::Find(text.to_owned())
    }

    /// Takes what was found, with the turns whose title has it, and goes to the first.
    fn take_found(&mut self, text: String, found: Result<Vec<(CommitId, String)>, String>) {
        let mut turns = match found {
            Ok(turns) => turns,
            Err(why) => {
                self.notice = Some(why);
                return;
            }
        };
        let known: HashSet<CommitId> = turns.iter().map(|(commit, _)| *commit).collect();
        let titled = self
            .tree
            .titled(&text)
            .filter(|commit| !known.contains(commit));
        turns.extend(titled.map(|commit| (commit, "in the title".to_owned())));

        if turns.is_empty() {
            self.notice = Some(format!("`{text}` was found nowhere"));
            self.found = None;
            return;
        }
        self.found = Some(FoundTurns { text, turns, at: 0 });
        self.go_to_found(0);
    }

    /// Goes to another turn among those that were found.
    pub fn go_to_found(&mut self, by: isize) {
        let Some(found) = &mut self.found else {
            self.notice = Some("nothing was searched for yet: / does".to_owned());
            return;
        };
        let count = found.turns.len();
        found.at = (found.at as isize + by).rem_euclid(count as isize) as usize;
        let (commit, place) = &found.turns[found.at];
        let number = found.at + 1;
        let place = match self.tree.go_to(*commit) {
            true => place.as_str(),
            false => "in a session that is not shown",
        };
        self.notice = Some(format!(
            "{number} of {count} turns with `{}`: {place}",
            found.text
        ));
    }
}

#[cfg(test)]
mod tests;
