//! Whether HEAD contains a turn, also if it was committed by hand together with edits.

use std::collections::BTreeSet;

use anyhow::Context as _;

use crate::git::history::merge_base;
use crate::git::merge::keeps_ours;
use crate::git::object::read::small_blob;
use crate::git::object::{BlobId, CommitId, TreeEntry, TreeId};
use crate::git::refs;
use crate::git::repository::Repository;
use crate::project::Project;
use crate::session::turn::Turn;
use crate::workspace::file_move::trees_of;
use crate::workspace::snapshot;

/// Limit on the commits since a turn that are searched.
const MAX_COMMITS_BACK: usize = 1000;

/// Limit on the versions of files that are compared.
const MAX_VERSIONS: usize = 100;

/// Limit on the added lines that are searched for.
const MAX_LINES: usize = 1000;

/// Returns whether HEAD has what a turn did to some files, with edits of the user's on top. A commit
/// since the turn can have exactly that. Otherwise one must have text that the turn added, and the
/// version of HEAD must be that of the user's files or of a later turn: git can have put any other one
/// there, as by a pull.
pub fn is_contained(
    project: &Project,
    tip: &Turn,
    turn: &Turn,
    paths: &[Vec<u8>],
    compares_files: bool,
) -> anyhow::Result<bool> {
    if paths.is_empty() {
        return Ok(true);
    }
    let repository = &project.repository;
    let Some(head) = refs::head(repository)? else {
        return Ok(false);
    };
    let change = TurnChange::of(repository, turn)?;
    let mut missing: BTreeSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
    let committed = change.committed(head, &missing)?;
    missing.retain(|path| !committed.whole.contains(path));
    let entries = repository.entries_at(repository.commit(head)?.tree, &missing)?;
    if compares_files && !committed.in_part.is_empty() {
        let now = snapshot::snapshot(&project.checkout(), &[])?.tree;
        let now = repository.entries_at(now, &missing)?;
        let is_same = |path: &[u8]| now.get(path) == entries.get(path);
        missing.retain(|path| !(committed.in_part.contains(path) && is_same(path)));
    }
    if missing.is_empty() {
        return Ok(true);
    }

    let (number, mut later) = (turn.number(), Vec::new());
    for turn in project.store().history(tip.clone()) {
        let turn = turn?;
        if turn.number() <= number {
            break;
        }
        later.push(turn);
    }
    let later = later.iter().rev();
    for turn in later.take_while(|turn| turn.meta.restored.is_none()) {
        let Some(workspace) = &turn.meta.workspace else {
            continue;
        };
        let at = |commit| repository.entries_at(repository.commit(commit)?.tree, &missing);
        let [old, new] = [at(workspace.before)?, at(workspace.after)?];
        let mut in_head = BTreeSet::new();
        for path in &missing {
            let [old, new, entry] = [old.get(path), new.get(path), entries.get(path)];
            let is_kept = committed.in_part.contains(path) && (old == entry || new == entry);
            let is_replaced = new == entry && old != new;
            if is_kept || (is_replaced && change.is_in(path, old)? == Some(true)) {
                in_head.insert(*path);
            }
        }
        missing.retain(|path| !in_head.contains(path));
        if missing.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Files of which a commit since a turn has what the turn did.
#[derive(Default)]
struct CommittedFiles<'p> {
    /// Merging the turn into the commit changes nothing.
    whole: BTreeSet<&'p [u8]>,
    /// With some of the text that the turn added.
    in_part: BTreeSet<&'p [u8]>,
}

struct TurnChange<'a> {
    repository: &'a Repository,
    base: CommitId,
    before: TreeId,
    after: TreeId,
}

impl<'a> TurnChange<'a> {
    fn of(repository: &'a Repository, turn: &Turn) -> anyhow::Result<TurnChange<'a>> {
        let files = turn.meta.workspace.as_ref().context("it has files")?;
        let [before, after] = trees_of(repository, files.change())?;
        Ok(TurnChange {
            repository,
            base: files.before,
            before,
            after,
        })
    }

    fn committed<'p>(
        &self,
        head: CommitId,
        paths: &BTreeSet<&'p [u8]>,
    ) -> anyhow::Result<CommittedFiles<'p>> {
        let repository = self.repository;
        let base = merge_base(repository, head, self.base)?;
        let (mut committed, mut next) = (CommittedFiles::default(), Some(head));
        let mut versions = 0;
        for _ in 0..MAX_COMMITS_BACK {
            let missing: BTreeSet<&[u8]> = paths.difference(&committed.whole).copied().collect();
            let is_over = missing.is_empty() || versions > MAX_VERSIONS;
            // A shallow clone has commits without their parents.
            let commit = next.filter(|id| Some(*id) != base && !is_over);
            let Some(commit) = commit.and_then(|id| repository.commit(id).ok()) else {
                break;
            };
            next = commit.parents.first().copied();
            let parent = next.and_then(|id| repository.commit(id).ok());
            let old = parent.map(|parent| repository.entries_at(parent.tree, &missing));
            let old = old.transpose()?.unwrap_or_default();
            let new = repository.entries_at(commit.tree, &missing)?;
            for path in missing {
                let Some(version) = new.get(path).filter(|entry| old.get(path) != Some(entry))
                else {
                    continue;
                };
                versions += 1;
                let is_in = self.is_in(path, Some(version))?;
                if is_in != Some(false) && self.is_whole_in(path, version)? {
                    committed.whole.insert(path);
                } else if is_in == Some(true) {
                    committed.in_part.insert(path);
                }
            }
        }
        Ok(committed)
    }

    /// Whether merging the turn into a version of a file changes nothing.
    fn is_whole_in(&self, path: &[u8], version: &TreeEntry) -> anyhow::Result<bool> {
        let before = self.repository.entry(self.before, path)?;
        let after = self.repository.entry(self.after, path)?;
        match (before, after) {
            (Some(before), Some(after)) => {
                keeps_ours(self.repository, path, &before, version, &after)
            }
            (_, after) => Ok(after.as_ref() == Some(version)),
        }
    }

    /// Whether a version of a file is the turn's, or has a line that the turn added, or one with more
    /// text around it. `None` if the turn added no text.
    fn is_in(&self, path: &[u8], version: Option<&TreeEntry>) -> anyhow::Result<Option<bool>> {
        let repository = self.repository;
        let before = repository.entry(self.before, path)?;
        let after = repository.entry(self.after, path)?;
        if after.as_ref() == version {
            return Ok(Some(true));
        }
        let text = |entry: Option<&TreeEntry>| match entry.filter(|entry| entry.is_file()) {
            Some(entry) => small_blob(repository, BlobId::of(entry.id)),
            None => Ok(Some(Vec::new())),
        };
        let texts = [
            text(before.as_ref())?,
            text(after.as_ref())?,
            text(version)?,
        ];
        let [Some(before), Some(after), Some(version)] = texts else {
            return Ok(None);
        };
        let [before, after, version] =
            [&before, &after, &version].map(|text| String::from_utf8_lossy(text));
        let is_text = |line: &&str| line.contains(char::is_alphanumeric);
        let lines = after.lines().map(str::trim).filter(is_text);
        let added = lines.filter(|line| !before.contains(line));
        let added: Vec<&str> = added.take(MAX_LINES).collect();
        let is_in = added.iter().any(|line| has_words(&version, line));
        Ok((!added.is_empty()).then_some(is_in))
    }
}

/// Whether a text has a line, or more text around its words: `x = 1` is not in `x = 10`.
fn has_words(text: &str, line: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let (first, last) = (line.chars().next(), line.chars().next_back());
    text.match_indices(line).any(|(at, _)| {
        let [before, after] = [&text[..at], &text[at + line.len()..]];
        let is_longer = (is_word(first) && is_word(before.chars().next_back()))
            || (is_word(last) && is_word(after.chars().next()));
        !is_longer
    })
}

#[cfg(test)]
mod tests {
    use super::has_words;

    #[test]
    fn a_line_with_more_text_around_its_words_is_in_a_text() {
        for (text, expected) in [
            ("a\nx = 1\nb\n", true),
            ("a\nif (x = 1) // mine\n", true),
            ("a\nx = 10\n", false),
            ("a\nmax = 1\n", false),
            ("a\nmax = 1; x = 1\n", true),
            ("", false),
        ] {
            assert_eq!(has_words(text, "x = 1"), expected, "{text:?}");
        }
    }
}
