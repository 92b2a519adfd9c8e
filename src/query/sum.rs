//! What turns did to the files together, without the user's own edits between them.
//!
//! Like `teddy land`, it applies the change of each turn in effect to the result of those before it.
//! If a turn changes the same lines as an edit of the user's, the edit counts as part of the files
//! that the turns started from. What was not applied does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;

use crate::git::diff;
use crate::git::merge;
use crate::git::object::read::small_blob;
use crate::git::object::{BlobId, CommitId, TreeEntry, TreeId};
use crate::git::repository::Repository;
use crate::session::meta::Workspace;
use crate::session::publication::Stack;
use crate::session::turn::Turn;
use crate::text::diff::changed;
use crate::workspace::file_move::{changes_of, tree_left_by, trees_of, with_paths_of};
use crate::workspace::stack::Stacks;
use crate::workspace::stack::in_effect::{InEffect, UndoneTurns};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnsSum {
    pub before: TreeId,
    pub after: TreeId,
}

type Edits = BTreeMap<Vec<u8>, Option<TreeEntry>>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LastTurn {
    /// It counts even if it was not applied.
    AsItRan,
    AsApplied,
}

/// `turns` are consecutive, oldest first. `start` replaces the files before the first one. `None`
/// if none of the turns has files.
pub fn sum<'a>(
    repository: &Repository,
    start: Option<TreeId>,
    turns: impl IntoIterator<Item = &'a Turn>,
    last: LastTurn,
) -> anyhow::Result<Option<TurnsSum>> {
    let turns: Vec<&Turn> = turns.into_iter().collect();
    let oldest = turns.first().map_or(0, |turn| turn.number());
    // A landing only records what hooks changed in files that are the user's by then.
    let turns = turns
        .into_iter()
        .filter(|turn| turn.meta.landed.is_none())
        .filter_map(|turn| Some((turn, turn.meta.workspace.as_ref()?)))
        .collect::<Vec<_>>();
    let tree = |commit| repository.commit(commit).map(|commit| commit.tree);
    let Some((_, first)) = turns.first() else {
        return Ok(None);
    };

    let first = tree(first.before)?;
    let stacks = Stacks::new(repository);
    let mut adding = Adding::new(repository, start.unwrap_or(first), first);
    for (at, (turn, workspace)) in turns.iter().enumerate() {
        let [before, after] = trees_of(repository, workspace.change())?;
        let next = turns.get(at + 1).map(|(_, next)| tree(next.before));
        let next = next.transpose()?;
        let after = match next.is_none() && last == LastTurn::AsItRan {
            true => after,
            false => tree_left_by(repository, workspace)?,
        };
        let applied = match next {
            Some(next) => drop_unapplied(repository, before, after, next)?,
            None => after,
        };
        match stack_after_restore(&stacks, turn, oldest)? {
            Some(stack) => {
                let mut undone = UndoneTurns::default();
                let newest_first = turns[..=at].iter().rev();
                newest_first.for_each(|(turn, _)| undone.add_restore(turn));
                let paths = changed_paths(repository, before, applied)?;
                adding.restore(turn, paths, &InEffect::new(&stacks, stack), &undone)?;
            }
            None => {
                if turn.meta.restored.is_none() {
                    adding.count(turn.number(), workspace, before);
                }
                adding.turn(before, applied)?;
            }
        }
        if let Some(next) = next {
            adding.user(after, next)?;
        }
    }

    Ok(Some(adding.sum))
}

/// `None` if the turn is no restore that this repository knows everything about, or if it crosses
/// turns that are not counted. Then its whole change counts.
fn stack_after_restore(
    stacks: &Stacks<'_>,
    turn: &Turn,
    oldest: u64,
) -> anyhow::Result<Option<Stack<CommitId>>> {
    let Some(restored) = &turn.meta.restored else {
        return Ok(None);
    };
    let is_older = restored.over.iter().any(|number| *number < oldest);
    if is_older || restored.turn + 1 < oldest {
        return Ok(None);
    }
    let own = stacks.own(turn)?;
    Ok(own.map(|(id, publication)| publication.stack(id)))
}

fn changed_paths(
    repository: &Repository,
    before: TreeId,
    after: TreeId,
) -> anyhow::Result<BTreeSet<Vec<u8>>> {
    let changes = diff::changes(repository, before, after)?.into_iter();
    Ok(changes.map(|change| change.path).collect())
}

/// Without the changes that the next turn did not find in the files: they were not applied.
fn drop_unapplied(
    repository: &Repository,
    before: TreeId,
    after: TreeId,
    next: TreeId,
) -> anyhow::Result<TreeId> {
    if next == after {
        return Ok(after);
    }
    let mut lost = Edits::new();
    for change in diff::changes(repository, before, after)? {
        if repository.entry(next, &change.path)? == change.old {
            lost.insert(change.path, change.old);
        }
    }
    diff::tree_with(repository, after, &lost)
}

/// A turn other than a restore.
struct CountedTurn<'a> {
    number: u64,
    workspace: &'a Workspace,
    before: TreeId,
    /// With nothing but the user's edits before it.
    users: TreeId,
}

struct Adding<'a> {
    repository: &'a Repository,
    start: TreeId,
    sum: TurnsSum,
    /// With nothing but the user's edits.
    users: TreeId,
    counted: Vec<CountedTurn<'a>>,
}

impl<'a> Adding<'a> {
    fn new(repository: &'a Repository, start: TreeId, users: TreeId) -> Adding<'a> {
        Adding {
            repository,
            start,
            sum: TurnsSum {
                before: start,
                after: start,
            },
            users,
            counted: Vec::new(),
        }
    }

    fn count(&mut self, number: u64, workspace: &'a Workspace, before: TreeId) {
        self.counted.push(CountedTurn {
            number,
            workspace,
            before,
            users: self.users,
        });
    }

    /// Takes the files that a restore changed from the turns that are in effect after it. The rest
    /// of its change is the user's, or of other sessions.
    fn restore(
        &mut self,
        turn: &Turn,
        mut paths: BTreeSet<Vec<u8>>,
        in_effect: &InEffect<'_>,
        undone: &UndoneTurns,
    ) -> anyhow::Result<()> {
        let repository = self.repository;
        let over = turn.meta.restored.iter().flat_map(|it| &it.over);
        for number in over {
            let crossed = self.counted.iter().filter(|turn| turn.number == *number);
            for turn in crossed {
                let changes = changes_of(repository, turn.workspace.change())?;
                paths.extend(changes.into_iter().map(|change| change.path));
            }
        }

        let mut again = Adding::new(repository, self.start, self.users);
        for turn in self.counted.iter().filter(|it| !undone.has(it.number)) {
            let changes = in_effect.of(turn.workspace.change())?.into_iter();
            let edits: Edits = changes
                .filter(|change| paths.contains(&change.path))
                .map(|change| (change.path, change.new))
                .collect();
            again.users = turn.users;
            again.turn(
                turn.before,
                diff::tree_with(repository, turn.before, &edits)?,
            )?;
        }

        let copied = |tree, from| with_paths_of(repository, tree, from, paths.iter().cloned());
        self.sum.before = copied(self.sum.before, again.sum.before)?;
        self.sum.after = copied(self.sum.after, again.sum.after)?;
        Ok(())
    }

    fn turn(&mut self, before: TreeId, after: TreeId) -> anyhow::Result<()> {
        if before == after {
            return Ok(());
        }
        let repository = self.repository;
        let merged = merge::merge_trees(repository, before, self.sum.after, after)?;
        // If the turn changed lines that the user edited, the edit becomes part of the state before.
        let mut edits = Edits::new();
        for path in merged.paths {
            let entry = match self.without_sum(before, &path)? {
                Some(entry) => Some(entry),
                None => repository.entry(self.users, &path)?,
            };
            edits.insert(path, entry);
        }
        self.sum.before = diff::tree_with(repository, self.sum.before, &edits)?;
        self.sum.after = merged.theirs;
        Ok(())
    }

    /// Returns a file of `tree` without what the turns so far did to it. `None` if it is binary.
    fn without_sum(&self, tree: TreeId, path: &[u8]) -> anyhow::Result<Option<TreeEntry>> {
        let repository = self.repository;
        let Some(entry) = repository.entry(tree, path)? else {
            return Ok(None);
        };
        let text = |entry: Option<TreeEntry>| match entry {
            Some(entry) if entry.is_file() => {
                let bytes = small_blob(repository, BlobId::of(entry.id))?;
                anyhow::Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
            }
            Some(_) => Ok(None),
            None => Ok(Some(String::new())),
        };
        let before = text(repository.entry(self.sum.before, path)?)?;
        let after = text(repository.entry(self.sum.after, path)?)?;
        let (Some(before), Some(after), Some(now)) = (before, after, text(Some(entry.clone()))?)
        else {
            return Ok(None);
        };

        let id = repository.write_blob(without_change(&before, &after, &now).as_bytes())?;
        Ok(Some(TreeEntry {
            id: id.into(),
            ..entry
        }))
    }

    /// Edits between two turns. They count only if they revert what turns did.
    fn user(&mut self, after: TreeId, next: TreeId) -> anyhow::Result<()> {
        if after == next {
            return Ok(());
        }
        let repository = self.repository;
        let mut edits = Edits::new();
        for change in diff::changes(repository, after, next)? {
            // The file is again as it was before the turns.
            if change.new == repository.entry(self.sum.before, &change.path)? {
                edits.insert(change.path, change.new);
            }
        }
        self.sum.after = diff::tree_with(repository, self.sum.after, &edits)?;
        // Conflicts are edits in what turns wrote.
        self.users = merge::merge_trees(repository, after, self.users, next)?.ours;
        Ok(())
    }
}

/// Returns `text` without the change from `before` to `after`, as far as its lines are in it. Other
/// lines stay, also right beside those.
fn without_change(before: &str, after: &str, text: &str) -> String {
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<_>>();
    let (before, after, text) = (lines(before), lines(after), lines(text));

    let mut places = vec![None; after.len()];
    let (mut line, mut place) = (0, 0);
    let end = (after.len()..after.len(), text.len()..text.len());
    for (old, new) in changed(&after, &text).into_iter().chain(once(end)) {
        for (equal, at) in places[line..old.start].iter_mut().zip(place..) {
            *equal = Some(at);
        }
        (line, place) = (old.end, new.end);
    }

    // Behind the last line that is still in the text.
    let mut behind = vec![0; after.len() + 1];
    for (line, place) in places.iter().enumerate() {
        behind[line + 1] = place.map_or(behind[line], |place| place + 1);
    }

    let mut removed = BTreeSet::new();
    let mut restored: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (added, old) in changed(&after, &before) {
        let in_text: Vec<usize> = places[added.clone()].iter().flatten().copied().collect();
        let place = match in_text.first() {
            Some(&first) => first,
            // The user replaced what was added.
            None if !added.is_empty() => continue,
            None => behind[added.start],
        };
        removed.extend(in_text);
        restored
            .entry(place)
            .or_default()
            .extend_from_slice(&before[old]);
    }

    let mut output = String::new();
    for (place, line) in text.iter().map(Some).chain(once(None)).enumerate() {
        output.extend(restored.remove(&place).into_iter().flatten());
        output.extend(line.filter(|_| !removed.contains(&place)).copied());
    }
    output
}

#[cfg(test)]
mod tests {
    use super::without_change;

    #[test]
    fn lines_beside_a_change_stay_when_it_is_taken_out() {
        let cases = [
            ("", "t\n", "t\nu\n", "u\n"),
            ("a\n", "a\nt\n", "a\nu\nt\nv\n", "a\nu\nv\n"),
            ("a\nb\n", "a\n", "a\nu\n", "a\nb\nu\n"),
            (
                "a\nb\nc\n",
                "a\nt\nc\n",
                "u\na\nt\nv\nc\n",
                "u\na\nb\nv\nc\n",
            ),
            ("a\n", "t\n", "mine\n", "mine\n"),
            ("b\na\n", "a\n", "u\n", "b\nu\n"),
            ("a\n", "a\n", "x\ny", "x\ny"),
            ("a\nb\n", "", "u\n", "a\nb\nu\n"),
        ];
        for (before, after, text, expected) in cases {
            assert_eq!(
                without_change(before, after, text),
                expected,
                "{after:?} {text:?}"
            );
        }
    }
}
