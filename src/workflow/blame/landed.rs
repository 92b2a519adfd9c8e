//! The lines that landed with a commit, and which of its turns brought each.
//!
//! That a message names turns does not say which lines are theirs: a landing can have several,
//! hooks change what lands, and who amends a commit adds lines of their own. So git tells where the
//! lines of the file as committed come from in the code of the session, from before the first of
//! the turns to after the last.

use std::collections::HashMap;
use std::io::Write as _;

use super::brought;
use crate::git::blame::{Asked, blame};
use crate::git::object::CommitId;
use crate::git::repository::Repository;
use crate::workflow::log::LogRow;

/// A commit that names turns of a session.
pub(super) struct LandedFile<'a> {
    /// The repository.
    pub repository: &'a Repository,
    /// The turns of the session, newest first.
    pub rows: &'a [LogRow],
    /// Which turn made each commit of the session's code.
    pub turns: &'a HashMap<CommitId, usize>,
    /// The turns that it names, newest first.
    pub named: &'a [usize],
    /// The commit.
    pub commit: CommitId,
    /// The name of the file there.
    pub path: &'a str,
}

impl LandedFile<'_> {
    /// Returns for each line of the file as committed which of the turns brought it, as far as git
    /// can tell.
    ///
    /// # Errors
    /// The repository cannot be read, or git cannot be started.
    pub(super) fn lines(&self) -> anyhow::Result<Vec<Option<usize>>> {
        let Some(bytes) = self.file(self.commit)? else {
            return Ok(Vec::new());
        };
        let mut code = self.named.iter().filter_map(|at| self.rows[*at].after);
        let Some(code) = code.find(|code| self.file(*code).is_ok_and(|file| file.is_some())) else {
            return Ok(Vec::new());
        };
        let mut contents = tempfile::NamedTempFile::new()?;

        contents.write_all(&bytes)?;
        let oldest = self.named.last();
        let told = blame(
            self.repository,
            &Asked {
                commit: code,
                path: self.path,
                contents: contents.path(),
                range: None,
                since: oldest.and_then(|at| self.rows[*at].before),
            },
        )?;

        let turn = |commit: CommitId| self.turns.get(&commit).copied();
        let lines = told.lines.iter().map(|line| line.commit.and_then(turn));
        Ok(lines
            .map(|found| found.filter(|at| self.named.contains(at)))
            .collect())
    }

    /// Returns which of the turns brought a line of which git cannot tell: one that has it after
    /// and not before; or the newest that changed the file, if a hook made the line of theirs.
    pub(super) fn by_content(&self, line: &str) -> Option<usize> {
        let has = |at: &&usize| brought(self.repository, &self.rows[**at], self.path, line);
        if let Some(at) = self.named.iter().find(has) {
            return Some(*at);
        }

        if !self.is_of_landing(line) {
            return None;
        }

        let touches = |at: &&usize| self.rows[**at].files.iter().any(|path| path == self.path);
        self.named.iter().find(touches).copied()
    }

    /// Returns whether a line came with the landing itself, as far as its commit is still there.
    fn is_of_landing(&self, line: &str) -> bool {
        let is_named = |id: uuid::Uuid| self.named.iter().any(|at| self.rows[*at].turn_id == id);
        let landings = self.rows.iter().filter_map(|row| row.landed.as_ref());
        let mut commits = landings.flat_map(|landed| &landed.commits);
        let committed = self.file(self.commit).ok().flatten();
        commits.any(|landed| {
            if !landed.turns.iter().any(|turn| is_named(turn.turn_id)) {
                return false;
            }

            // As it landed, whatever the id of the commit is by now.
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

    /// Returns the file in a commit.
    fn file(&self, commit: CommitId) -> anyhow::Result<Option<Vec<u8>>> {
        let tree = self.repository.commit(commit)?.tree;
        self.repository.file(tree, self.path)
    }
}
