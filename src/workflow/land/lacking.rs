//! Files without a change that is about to be committed, because the user took it back.

use std::ops::Range;

use serde::Serialize;

use super::landing_plan::{Landing, PlannedCommit};
use crate::git::diff;
use crate::git::land::branch::Target;
use crate::git::merge::keeps_ours;
use crate::git::object::read::text_of;
use crate::git::object::{EntryMode, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::project::Project;
use crate::session::turn::Turn;
use crate::text::diff::changed;
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
            (Some(before), Some(version), Some(after))
                if keeps_ours(self.repository, self.path, after, version, before)? =>
            {
                Ok(true)
            }
            (before, Some(version), Some(after)) => {
                let text = |entry| text_of(self.repository, entry);
                let texts = (
                    text(before.as_ref())?,
                    text(Some(version))?,
                    text(Some(after))?,
                );
                let (Some(before), Some(version), Some(after)) = texts else {
                    return Ok(false);
                };
                Ok(is_text_reversed(&before, &version, &after))
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

/// Returns whether no line of the change from `before` to `after` is in a version, although the user
/// edited some of its places. At least one place must be as before, or have fewer lines than the
/// change added: in any other, the user can have edited what the change added.
fn is_text_reversed(before: &str, version: &str, after: &str) -> bool {
    let lines = |text| str::lines(text).collect::<Vec<_>>();
    let (before, version, after) = (lines(before), lines(version), lines(after));
    let edits = changed(&before, &version);
    let mut is_reversed = false;
    for (old, new) in changed(&before, &after) {
        let touching: Vec<_> = edits
            .iter()
            .filter(|(edited, _)| meet(edited, &old))
            .collect();
        let added = &after[new];
        let now: Vec<&str> = touching
            .iter()
            .flat_map(|(_, new)| &version[new.clone()])
            .copied()
            .collect();
        // Lines such as `}` say nothing.
        let is_left = |line: &&str| now.contains(line) && line.contains(char::is_alphanumeric);
        let is_removed = added.is_empty() && !before[old].iter().any(|line| now.contains(line));
        match touching.is_empty() {
            true => is_reversed = true,
            false if is_removed || added.iter().any(is_left) => return false,
            false => is_reversed |= now.len() < added.len(),
        }
    }
    is_reversed
}

/// Whether two ranges of lines overlap. An insertion also meets what ends or begins at its place.
fn meet(one: &Range<usize>, other: &Range<usize>) -> bool {
    match one.is_empty() || other.is_empty() {
        true => one.start <= other.end && other.start <= one.end,
        false => one.start < other.end && other.start < one.end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: &str, version: &str, after: &str, expected: bool) {
        let [before, version, after] = [before, version, after].map(|it| it.replace(' ', "\n"));
        assert_eq!(is_text_reversed(&before, &version, &after), expected);
    }

    #[test]
    fn what_the_user_took_back_is_lacking_although_they_edited_one_of_its_places() {
        check("a b c", "a b c mine", "a x b c t1 t2", true);
        check("a b c", "a b c mine", "a b c t1 t2", true);
        check("a b c", "a b c mine more", "x a b c t1 t2", true);
        check("", "mine", "t1 t2 t3", true);
        check("a b c d", "a b mine d", "a b c2 c3 d e", true);
    }

    #[test]
    fn what_the_user_edited_is_not_lacking() {
        check("a b c", "a b c mine", "a b c t1", false);
        check("a b c", "a t1 b c mine", "a t1 b c t2", false);
        check("a b c", "a mine c", "a t1 c", false);
        check("a b c", "a c mine", "a c", false);
        check("a b c", "a b c t1 mine", "a b c t1 t2 t3", false);
        check("", "mine too long", "t1 t2", false);
    }
}
