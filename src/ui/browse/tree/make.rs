//! Builds the rows of the tree: sessions, their turns, and branches between the turns.

use std::collections::HashMap;

use super::{BrowseTree, TreeItem, TreeRow};
use crate::session::meta::Status;
use crate::workflow::log::LogRow;

pub(super) struct RowMaker<'a> {
    pub(super) tree: &'a BrowseTree,
    /// Branches of each lane: the turn at which each leaves it, and its own lane.
    pub(super) branches: HashMap<usize, Vec<(u64, usize)>>,
    /// Lanes that already have rows.
    pub(super) visited: Vec<bool>,
    pub(super) rows: Vec<TreeRow>,
}

impl RowMaker<'_> {
    pub(super) fn session(&mut self, lane: usize, depth: usize) {
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
