//! The tree of sessions and turns: rows, folding and cursor.
//!
//! A branch is an indented row above the turn at which it left its parent. At first, only the
//! session in use and its ancestors are unfolded. Consecutive restores share one row.

use std::collections::{HashMap, HashSet};

use crate::git::object::CommitId;
use crate::query::log::LogRow;
use crate::query::view::timeline::{SessionLane, Timeline};
use crate::session::meta::Status;
use crate::session::name::SessionName;
use crate::ui::list::List;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeRow {
    /// Contents of the row.
    pub item: TreeItem,
    /// Index of the session in the timeline.
    pub lane: usize,
    /// Number of branches between the session and a root session.
    pub depth: usize,
}

/// Contents of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeItem {
    Session,
    /// A warning that the session is damaged.
    Damaged,
    /// A turn, by its index in the lane.
    Turn(usize),
    /// Consecutive restores: index of the newest, and their number.
    Restores(usize, usize),
}

/// Session and turn under the cursor, independent of row numbers, which change. Without a turn, the
/// row of the session.
type TreePosition = (SessionName, Option<CommitId>);

#[derive(Debug, Clone, Default)]
pub struct BrowseTree {
    timeline: Timeline,
    /// Sessions that the user folded or unfolded. The others have a default.
    open: HashMap<SessionName, bool>,
    /// Restores that the user unfolded.
    open_restores: HashSet<CommitId>,
    rows: Vec<TreeRow>,
    pub list: List,
}

impl BrowseTree {
    pub fn rows(&self) -> &[TreeRow] {
        &self.rows
    }

    /// Returns the row under the cursor.
    pub fn row(&self) -> Option<TreeRow> {
        self.rows.get(self.list.cursor()).copied()
    }

    pub fn lane(&self, row: &TreeRow) -> &SessionLane {
        &self.timeline.sessions[row.lane]
    }

    pub fn is_empty(&self) -> bool {
        self.timeline.sessions.is_empty()
    }

    /// Returns the selected turn. A session counts as its newest turn, which can belong to its
    /// parent; a group of restores counts as the newest of them.
    pub fn selected(&self) -> Option<(&SessionLane, &LogRow)> {
        let row = self.row()?;
        let lane = &self.timeline.sessions[row.lane];
        match row.item {
            TreeItem::Turn(at) | TreeItem::Restores(at, _) => Some((lane, lane.rows.get(at)?)),
            TreeItem::Session | TreeItem::Damaged => self.newest(row.lane),
        }
    }

    /// Returns the newest turn of a session, or of its nearest ancestor that has one.
    fn newest(&self, lane: usize) -> Option<(&SessionLane, &LogRow)> {
        self.timeline.ancestry(lane).find_map(|(lane, last)| {
            let lane = &self.timeline.sessions[lane];
            let mut rows = lane.rows.iter();
            Some((lane, rows.find(|row| row.number <= last)?))
        })
    }

    /// Returns the session in use, if the timeline contains it.
    pub fn in_use(&self) -> Option<&SessionName> {
        let mut lanes = self.timeline.sessions.iter();
        lanes.find(|lane| lane.in_use).map(|lane| &lane.name)
    }

    /// Returns whether a turn is an ancestor of the newest turn of the session in use, or that
    /// turn.
    pub fn is_before_in_use(&self, session: &SessionName, number: u64) -> bool {
        let sessions = &self.timeline.sessions;
        let in_use = sessions.iter().position(|lane| lane.in_use);
        let mut ancestry = in_use.into_iter().flat_map(|at| self.timeline.ancestry(at));
        let shared = ancestry.find(|(lane, _)| sessions[*lane].name == *session);
        shared.is_some_and(|(_, last)| number <= last)
    }

    /// Returns the turns whose title contains `text`, ignoring case.
    pub fn titled<'a>(&'a self, text: &str) -> impl Iterator<Item = CommitId> + use<'a> {
        let query = text.to_lowercase();
        let lanes = self.timeline.sessions.iter();
        let rows = lanes.flat_map(|lane| &lane.rows);
        let has = move |row: &&LogRow| row.title.to_lowercase().contains(&query);
        rows.filter(has).map(|row| row.commit)
    }

    /// Replaces the timeline. The cursor stays on its item. A turn that the user reads stays
    /// selected, although its session or its group of restores has a newer one.
    pub fn learn(&mut self, timeline: Timeline, is_read: bool) {
        let position = self.position();
        let selected = self.selected().map(|(_, row)| row.commit);
        let was_empty = self.rows.is_empty();
        self.timeline = timeline;
        self.rebuild();

        if was_empty {
            self.list.go_to(self.start());
        } else if let Some(position) = position {
            self.move_to(self.find(&position));
        }
        if let Some(commit) = selected.filter(|_| is_read)
            && self.selected().map(|(_, row)| row.commit) != Some(commit)
        {
            self.go_to(commit);
        }
    }

    fn move_to(&mut self, row: Option<usize>) {
        self.list.go_to(row.unwrap_or(self.list.cursor()));
    }

    /// Row of the newest turn of the session in use, or of the turn that it branched from.
    fn start(&self) -> usize {
        let mut lanes = self.timeline.sessions.iter();
        let in_use = lanes.position(|lane| lane.in_use).unwrap_or(0);
        let is_turn = |row: &TreeRow| {
            let is_head = matches!(row.item, TreeItem::Session | TreeItem::Damaged);
            row.lane == in_use && !is_head
        };
        let turn = self.rows.iter().position(is_turn);

        // The branch point is the row below the branch.
        let is_child = |lane: &SessionLane| lane.rows.is_empty() && lane.parent.is_some();
        let steps = usize::from(self.timeline.sessions.get(in_use).is_some_and(is_child));
        let session = self.rows.iter().position(|row| row.lane == in_use);
        let row = turn.or_else(|| Some(session? + steps)).unwrap_or(0);
        row.min(self.rows.len().saturating_sub(1))
    }

    /// Moves the cursor to a turn, unfolding what hides it. Returns whether the turn exists.
    pub fn go_to(&mut self, commit: CommitId) -> bool {
        let mut lanes = self.timeline.sessions.iter();
        let has_turn = |lane: &SessionLane| lane.rows.iter().any(|row| row.commit == commit);
        let Some(lane) = lanes.position(has_turn) else {
            return false;
        };

        // Unfold the session and its ancestors.
        for (lane, _) in self.timeline.ancestry(lane) {
            let name = self.timeline.sessions[lane].name.clone();
            self.open.insert(name, true);
        }
        self.rebuild();
        let turn = (self.timeline.sessions[lane].name.clone(), Some(commit));
        // The turn can be inside a group of restores, which has to be unfolded as well.
        self.move_to(self.find(&turn));
        if self.open_restores() {
            self.move_to(self.find(&turn));
        }
        true
    }

    /// Returns `false` if the cursor is not on a group of restores.
    fn open_restores(&mut self) -> bool {
        let Some(TreeRow {
            lane,
            item: TreeItem::Restores(first, count),
            ..
        }) = self.row()
        else {
            return false;
        };
        let folded = self.timeline.sessions[lane].rows[first..first + count].iter();
        self.open_restores.extend(folded.map(|row| row.commit));
        self.rebuild();
        true
    }

    /// Unfolds (`Some(true)`), folds (`Some(false)`) or toggles the item under the cursor. Folding
    /// a turn moves the cursor to its session. Returns whether anything changed.
    pub fn fold(&mut self, open: Option<bool>) -> bool {
        let Some(row) = self.row() else {
            return false;
        };
        let lane = &self.timeline.sessions[row.lane];
        match row.item {
            TreeItem::Session | TreeItem::Damaged => {
                let is_open = self.is_open(row.lane);
                let should_open = open.unwrap_or(!is_open);
                if should_open == is_open {
                    return false;
                }
                self.open.insert(lane.name.clone(), should_open);
            }
            TreeItem::Restores(..) if open != Some(false) => return self.open_restores(),
            _ if open == Some(false) => {
                let is_own =
                    |other: &TreeRow| other.lane == row.lane && other.item == TreeItem::Session;
                self.move_to(self.rows.iter().position(is_own));
                return true;
            }
            _ => return false,
        }

        self.rebuild();
        true
    }

    /// Sets the number of visible rows.
    pub fn fit(&mut self, height: usize) {
        self.list.fit(self.rows.len(), height);
    }

    /// Returns whether a session is unfolded.
    pub fn is_open(&self, lane: usize) -> bool {
        let one = &self.timeline.sessions[lane];
        let by_hand = self.open.get(&one.name).copied();
        by_hand.unwrap_or_else(|| {
            let is_used = self.is_before_in_use(&one.name, 0);
            let nobody_is = !self.timeline.sessions.iter().any(|lane| lane.in_use);
            is_used || nobody_is && lane == 0
        })
    }

    fn position(&self) -> Option<TreePosition> {
        let row = self.row()?;
        let lane = self.lane(&row);
        let commit = match row.item {
            TreeItem::Turn(at) | TreeItem::Restores(at, _) => Some(lane.rows[at].commit),
            _ => None,
        };
        Some((lane.name.clone(), commit))
    }

    fn find(&self, position: &TreePosition) -> Option<usize> {
        let (name, commit) = position;
        let is_there = |row: &TreeRow| {
            let lane = self.lane(row);
            let turns = match row.item {
                TreeItem::Session => return commit.is_none() && lane.name == *name,
                TreeItem::Damaged => return false,
                TreeItem::Turn(at) => at..at + 1,
                TreeItem::Restores(at, count) => at..at + count,
            };
            let mut rows = lane.rows[turns].iter();
            lane.name == *name && rows.any(|row| Some(row.commit) == *commit)
        };
        self.rows.iter().position(is_there)
    }

    fn rebuild(&mut self) {
        let lanes = &self.timeline.sessions;
        let indices: HashMap<&SessionName, usize> = lanes
            .iter()
            .enumerate()
            .map(|(at, lane)| (&lane.name, at))
            .collect();
        let mut branches: HashMap<usize, Vec<(u64, usize)>> = HashMap::new();
        let mut roots = Vec::new();
        for (at, lane) in lanes.iter().enumerate() {
            let parent = lane.parent.as_ref();
            match parent.and_then(|(name, turn)| Some((*indices.get(name)?, *turn))) {
                Some((parent, turn)) => branches.entry(parent).or_default().push((turn, at)),
                None => roots.push(at),
            }
        }

        let mut rows = RowMaker {
            tree: self,
            branches,
            visited: vec![false; lanes.len()],
            rows: Vec::new(),
        };
        // A second pass over all lanes: parents that form a cycle, in damaged sessions, are no
        // roots. `session` skips lanes that have their rows.
        for lane in roots.into_iter().chain(0..lanes.len()) {
            rows.session(lane, 0);
        }

        self.rows = rows.rows;
        self.list.resize(self.rows.len());
    }
}

struct RowMaker<'a> {
    tree: &'a BrowseTree,
    /// Branches of each lane: the turn at which each leaves it, and its own lane.
    branches: HashMap<usize, Vec<(u64, usize)>>,
    /// Lanes that already have rows.
    visited: Vec<bool>,
    rows: Vec<TreeRow>,
}

impl RowMaker<'_> {
    fn session(&mut self, lane: usize, depth: usize) {
        // Already shown below its parent, or part of a cycle.
        if std::mem::replace(&mut self.visited[lane], true) {
            return;
        }
        let row = |item| TreeRow { item, lane, depth };
        let one = &self.tree.timeline.sessions[lane];
        self.rows.push(row(TreeItem::Session));
        if one.ailing.is_some() {
            self.rows.push(row(TreeItem::Damaged));
        }

        let mut branches = self.branches.remove(&lane).unwrap_or_default();
        let is_open = self.tree.is_open(lane);
        let mut at = 0;
        while is_open && at < one.rows.len() {
            // Branches that leave at this turn or a newer one belong above it.
            let (here, later): (Vec<_>, Vec<_>) = branches
                .into_iter()
                .partition(|(turn, _)| *turn >= one.rows[at].number);
            branches = later;
            for (_, branch) in here {
                self.session(branch, depth + 1);
            }

            let next = branches.iter().map(|(turn, _)| *turn).max();
            let count = self.restores(&one.rows[at..], next);
            if count > 1 {
                self.rows.push(row(TreeItem::Restores(at, count)));
            } else {
                self.rows.push(row(TreeItem::Turn(at)));
            }
            at += count.max(1);
        }

        // These left before the first turn of the lane, or the lane is folded.
        for (_, branch) in branches {
            self.session(branch, depth + 1);
        }
    }

    /// Number of restores at the start of `rows` to fold into one row. A branch point ends the
    /// group.
    fn restores(&self, rows: &[LogRow], branch: Option<u64>) -> usize {
        let is_open = |row: &LogRow| self.tree.open_restores.contains(&row.commit);
        let folded = rows.iter().enumerate().take_while(|(at, row)| {
            let is_parted = *at > 0 && branch.is_some_and(|turn| turn >= row.number);
            row.status == Status::Restored && !is_parted && !is_open(row)
        });
        folded.count()
    }
}

#[cfg(test)]
mod tests;
