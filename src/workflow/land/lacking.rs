//! Files without a change that is about to be committed, because the user took it back.

use serde::Serialize;

use super::landing_plan::{Landing, PlannedCommit};
use crate::git::diff;
use crate::git::land::branch::Target;
use crate::git::merge::keeps_ours;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::project::Project;
use crate::session::turn::Turn;
use crate::text::path::lossy;
use crate::workspace::file_move::trees_of;

/// The user reverted or deleted the changes of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TakenBackFile {
    pub path: String,
    /// Newest missing turn.
    pub turn: u64,
    /// Whether the file is as it was before a turn, without other changes. `status` names only those.
    #[serde(skip)]
    pub is_whole: bool,
}

/// Files that lack what a landing commits: after it, they would differ from HEAD by the reverse of
/// the landing, and the next commit would revert it. None if the landing is to another branch.
pub(super) fn find_lacking(
    project: &Project,
    tip: &Turn,
    planned: &[PlannedCommit],
    target: &Target,
    files: TreeId,
) -> anyhow::Result<Vec<TakenBackFile>> {
    let repository = &project.repository;
    let Some(last) = planned.last().filter(|_| target.is_current) else {
        return Ok(Vec::new());
    };
    let mut taken_back = Vec::new();
    for change in diff::changes(repository, target.tree, last.tree)? {
        let now = repository.entry(files, &change.path)?;
        if now == change.new {
            continue;
        }

        let mut is_back = now == change.old || now.is_none();
        let (mut newest, mut reversed) = (None, None);
        for landing in planned.iter().flat_map(|commit| &commit.landings) {
            let before = repository.entry(landing.before, &change.path)?;
            let after = repository.entry(landing.after, &change.path)?;
            if before == after {
                continue;
            }
            newest = Some(landing.turn.number());
            is_back |= before == now;
            let part = FileChange {
                repository,
                path: &change.path,
                before,
                after,
            };
            if part.is_reversed(&now)?
                && !part.is_reversed(&change.new)?
                && !part.is_reversed_by_turn(project, tip, landing)?
            {
                reversed = newest;
            }
        }
        if let Some(turn) = newest.filter(|_| is_back).or(reversed) {
            taken_back.push(TakenBackFile {
                path: lossy(&change.path),
                turn,
                is_whole: is_back,
            });
        }
    }
    Ok(taken_back)
}

/// What a turn did to a file.
struct FileChange<'a> {
    repository: &'a Repository,
    path: &'a [u8],
    before: Option<TreeEntry>,
    after: Option<TreeEntry>,
}

impl FileChange<'_> {
    /// Returns whether nothing of the change is in a version of the file, whatever else is.
    fn is_reversed(&self, version: &Option<TreeEntry>) -> anyhow::Result<bool> {
        if *version == self.before {
            return Ok(true);
        }
        match (&self.before, version, &self.after) {
            (Some(before), Some(version), Some(after)) => {
                keeps_ours(self.repository, self.path, after, version, before)
            }
            (_, Some(version), None) => Ok(version.mode != EntryMode::Tree),
            _ => Ok(false),
        }
    }

    /// Returns whether it was a later turn that took the change back.
    fn is_reversed_by_turn(
        &self,
        project: &Project,
        tip: &Turn,
        landing: &Landing,
    ) -> anyhow::Result<bool> {
        for turn in project.store().history(tip.clone()) {
            let turn = turn?;
            if turn.commit == landing.turn.commit {
                break;
            }
            let Some(workspace) = &turn.meta.workspace else {
                continue;
            };
            let [before, after] = trees_of(self.repository, workspace.change())?
                .map(|tree| self.repository.entry(tree, self.path));
            let [was_reversed, is_reversed] =
                [self.is_reversed(&before?)?, self.is_reversed(&after?)?];
            if was_reversed != is_reversed {
                return Ok(is_reversed);
            }
        }
        Ok(false)
    }
}
