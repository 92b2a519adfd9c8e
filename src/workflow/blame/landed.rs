//! Assigns the lines of a landed commit to the turns that its message names.
//!
//! The message alone is not enough: a landing can contain several turns, hooks change what lands,
//! and amending adds lines of the user's. So git blames the committed file against the code of the
//! session, from before the first named turn to after the last.

use std::collections::HashMap;
use std::io::Write as _;

use super::introduces_line;
use crate::git::blame::{BlameRequest, blame_file};
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::workflow::log::LogRow;

pub(super) struct LandedFile<'a> {
    pub repository: &'a Repository,
    /// Newest first.
    pub rows: &'a [LogRow],
    /// Maps the commits of the session's code to turns.
    pub turns: &'a HashMap<CommitId, usize>,
    /// Indices into `rows` of the named turns, newest first.
    pub positions: &'a [usize],
    pub commit: CommitId,
    pub path: &'a str,
}

impl LandedFile<'_> {
    /// Returns the turn for each line of the committed file; `None` where git cannot tell.
    pub(super) fn lines(&self) -> anyhow::Result<Vec<Option<usize>>> {
        let Some(bytes) = self.file(self.commit)? else {
            return Ok(Vec::new());
        };
        let mut code = self.positions.iter().filter_map(|at| self.rows[*at].after);
        let Some(code) = code.find(|code| self.file(*code).is_ok_and(|file| file.is_some())) else {
            return Ok(Vec::new());
        };
        let mut contents = tempfile::NamedTempFile::new()?;

        contents.write_all(&bytes)?;
        let oldest = self.positions.last();
        let attribution = blame_file(
            self.repository,
            &BlameRequest {
                commit: code,
                path: self.path,
                contents: contents.path(),
                range: None,
                since: oldest.and_then(|at| self.rows[*at].before),
            },
        )?;

        let turn = |commit: CommitId| self.turns.get(&commit).copied();
        let lines = attribution
            .lines
            .iter()
            .map(|line| line.commit.and_then(turn));
        Ok(lines
            .map(|position| position.filter(|at| self.positions.contains(at)))
            .collect())
    }

    /// Fallback by content: a turn that has the line after it and not before. A line that a hook
    /// wrote during the landing is assigned to the newest turn that changed the file.
    pub(super) fn by_content(&self, line: &str) -> Option<usize> {
        let has = |at: &&usize| introduces_line(self.repository, &self.rows[**at], self.path, line);
        // `named` is newest first: the last turn that added the line wins.
        if let Some(at) = self.positions.iter().find(has) {
            return Some(*at);
        }

        if !self.is_of_landing(line) {
            return None;
        }

        let touches = |at: &&usize| self.rows[**at].files.iter().any(|path| path == self.path);
        self.positions.iter().find(touches).copied()
    }

    /// Returns `true` if the landing itself added the line. `false` if the landed commit is gone.
    fn is_of_landing(&self, line: &str) -> bool {
        let is_named =
            |id: uuid::Uuid| self.positions.iter().any(|at| self.rows[*at].turn_id == id);
        let landings = self.rows.iter().filter_map(|row| row.landed.as_ref());
        let mut commits = landings.flat_map(|landed| &landed.commits);
        let committed = self.file(self.commit).ok().flatten();
        commits.any(|landed| {
            if !landed.turns.iter().any(|turn| is_named(turn.turn_id)) {
                return false;
            }

            // Compare content: a rebase changes the commit's id.
            if self.file(landed.commit).is_ok_and(|file| file == committed) {
                return true;
            }

            let has = |commit: CommitId| {
                let file = self.file(commit).ok().flatten().unwrap_or_default();
                super::has_line(&file, line)
            };
            let parent = self.repository.commit(landed.commit).ok();
            let parent = parent.and_then(|commit| commit.parents.first().copied());

            has(landed.commit) && !parent.is_some_and(has)
        })
    }

    fn file(&self, commit: CommitId) -> anyhow::Result<Option<Vec<u8>>> {
        let tree = self.repository.commit(commit)?.tree;
        self.repository.file(tree, self.path)
    }
}
